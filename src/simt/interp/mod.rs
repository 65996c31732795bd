//! The interpreter: runs the fragments of one bundle, an operation over all their lanes at a time.
//!
//! **Fragments.** A bundle is a set of fragments (pc, mask, call stack). The runnable fragment with the deepest call
//! stack and, among those, the lowest pc runs until it meets another one, waits, or has had its share; fragments of one
//! frame that stand at the same pc are one. As programs are laid out in reverse post-order, that reconverges at the
//! immediate post-dominator. A fragment that spins loses its turn for a while, so that the lane it waits for comes
//! forward: the progress that independent thread scheduling promises (PTX ISA, since sm_70). Under a seed it is drawn which
//! fragment runs, and for how long.

pub mod affine;
mod calls;
pub mod code;
mod collective;
pub mod compile;

use std::collections::HashMap;
use std::sync::Arc;

use crate::isa::lanes::{MAX_WARPS, Mask};
use crate::program::{BarrierOp, Op as Operation, Ordering};

use super::Cause;
use super::block::{Barriers, BlockEnv, write_reduction};
use super::machine::slots::{first_lane, predicate, value};
use super::machine::{Cx, NONE, RawFault, warp};
use super::schedule::Schedule;
use super::special::{self, Place};
use affine::{Runs, Values};
use calls::{Frame, Window};
use code::{Code, Executable, Op};
use compile::{Pc, Slot};

/// Instructions that a fragment may run before others get a turn.
const SHARE: i64 = 1 << 22;
/// What going round a loop costs of that share if it looked at memory that others change: such loops spin.
const SPIN: i64 = 1 << 17;
/// The share of a fragment that runs ahead of one that spins.
const CATCH_UP: i64 = 1 << 12;
/// Instructions between two looks at whether the grid goes on.
const SLICE: i64 = 1 << 13;
/// What choosing a fragment costs of a slice: calls and branches may be all that a kernel does.
const CHOICE: i64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ready,
    /// Arrived at this barrier of the block.
    Barrier(u32),
    /// At a `.sync` operation whose other members have not come yet.
    Gathering,
}

/// Lanes of a bundle that stand at the same place.
#[derive(Clone, Debug)]
pub struct Fragment {
    pub pc: Pc,
    pub frame: u32,
    pub mask: [u32; MAX_WARPS],
    pub state: State,
    /// Had its share while others waited: they go first.
    pub passed: bool,
    /// Nobody else can come to the `.sync` operation where it waits: it goes ahead without them.
    forced: bool,
}

/// Up to four warps of a block that run as one.
pub struct Bundle {
    pub first_thread: u32,
    pub warps: u32,
    /// Lanes that have not exited.
    pub live: [u32; MAX_WARPS],
    pub fragments: Vec<Fragment>,
    exist: [u32; MAX_WARPS],
    frames: Vec<Frame>,
    vacant: Vec<u32>,
    /// Windows of functions that ran before, constants in place, by executable.
    windows: HashMap<usize, Vec<Window>>,
    kernel: Arc<Executable>,
    /// Values that follow the lane's number, and the kernel's form that uses them.
    affine: Option<(Values, Arc<Executable>)>,
    /// Counts blocks: a window's block-dependent values are stale when its number differs.
    epoch: u64,
    /// What is left of the share: who runs when it is used up passes his turn. It outlasts calls, branches and barriers,
    /// for a loop may consist of them.
    share: i64,
    /// What is left of the slice.
    slice: i64,
    /// A strong load or an atomic since the last turn of a loop.
    looked: bool,
}

/// Why a bundle stopped running.
#[derive(Debug, PartialEq, Eq)]
pub enum Pause {
    /// No fragment can go on: all lanes have exited, or wait.
    Waiting,
    /// A fragment had its share.
    Share,
    /// Under a seed: the turn is over.
    Turn,
}

/// Why the inner loop handed a fragment back.
enum Stop {
    /// It stands where another one stands, or has gone past one.
    Meets,
    /// Its instructions are used up.
    Turn,
    /// It has done something after which others go first.
    Pass,
    /// Its place was updated already: look again who goes next.
    Moved,
    /// As above, and it has arrived at a barrier.
    Barrier,
    Fault,
}

impl Bundle {
    /// A bundle of threads `first..first + count`, about to enter the kernel.
    pub fn new(kernel: &Arc<Executable>, first_thread: u32, count: u32, block: &BlockEnv<'_>) -> Bundle {
        let warps = count.div_ceil(32);
        let mut exist = [0; MAX_WARPS];
        for (w, lanes) in exist.iter_mut().enumerate().take(warps as usize) {
            let n = (count - w as u32 * 32).min(32);
            *lanes = if n == 32 { u32::MAX } else { (1 << n) - 1 };
        }
        let window = Window::new(kernel.window);
        let place = Place {
            block,
            first_thread,
            warps,
        };
        for (slot, initial) in &kernel.initial {
            // SAFETY: the window was made for this executable, whose slots these are.
            unsafe { special::set_initial(window.regs(), *slot, initial, &place) };
        }
        let mask = Mask {
            warps,
            lanes: [u32::MAX; MAX_WARPS],
        };
        for op in &kernel.prologue {
            if let Code::Lane { kernel, operands } = &op.code {
                // SAFETY: as above; the level was detected.
                unsafe { (kernel.full)(window.regs(), operands, &mask) };
            }
        }
        let affine = block.env.runs.zip(kernel.lean.as_ref()).and_then(|(runs, lean)| {
            // SAFETY: the window's initial values are set, and those computed from them.
            let values =
                unsafe { Values::new(lean, runs, block.env.launch.block, first_thread, warps, window.regs()) }?;
            Some((values, Arc::clone(lean)))
        });
        let frame = Frame::kernel(Arc::clone(kernel), window);
        Bundle {
            first_thread,
            warps,
            live: exist,
            fragments: Vec::with_capacity(4),
            exist,
            frames: vec![frame],
            vacant: Vec::new(),
            windows: HashMap::new(),
            epoch: 0,
            share: SHARE,
            slice: SLICE,
            looked: false,
            kernel: Arc::clone(kernel),
            affine,
        }
    }

    /// All threads back to the kernel's first instruction, in a new block.
    pub fn enter(&mut self, block: &BlockEnv<'_>) {
        self.epoch += 1;
        (self.share, self.looked) = (SHARE, false);
        self.live = self.exist;
        self.fragments.clear();
        self.fragments.push(Fragment {
            pc: 0,
            frame: 0,
            mask: self.exist,
            state: State::Ready,
            passed: false,
            forced: false,
        });
        let place = Place {
            block,
            first_thread: self.first_thread,
            warps: self.warps,
        };
        let frame = &mut self.frames[0];
        frame.reset();
        if let Some((values, lean)) = &mut self.affine
            && let Some(affine) = &lean.affine
        {
            // SAFETY: the window of this kernel, in whose place its lean form may stand.
            let linear = unsafe { values.enter(affine, block.ctaid, frame.regs()) };
            let form = if linear { &*lean } else { &self.kernel };
            if !Arc::ptr_eq(&frame.exec, form) {
                frame.exec = Arc::clone(form);
            }
        }
        for &(slot, which) in &frame.exec.per_block {
            // SAFETY: slots of the kernel's window.
            unsafe { special::set_special(frame.regs(), slot, which, &place) };
        }
    }

    pub fn is_done(&self) -> bool {
        self.fragments.is_empty()
    }

    pub fn is_ready(&self) -> bool {
        self.fragments.iter().any(|f| f.state == State::Ready)
    }

    /// Lets fragments that wait in vain for members of a `.sync` go on without them; `false`: there is none.
    pub fn force(&mut self) -> bool {
        match self.fragments.iter().position(|f| f.state == State::Gathering) {
            Some(i) => {
                let fragment = &mut self.fragments[i];
                (fragment.state, fragment.passed, fragment.forced) = (State::Ready, false, true);
                true
            }
            None => false,
        }
    }

    /// Makes one of fragments that stand at the same place of the same frame; unless `all`, only where one waits for others
    /// to come there.
    #[inline(always)]
    fn merge(&mut self, all: bool) {
        let mut i = 0;
        while i < self.fragments.len() {
            let mut j = i + 1;
            while j < self.fragments.len() {
                let (a, b) = (&self.fragments[i], &self.fragments[j]);
                let meet = a.pc == b.pc
                    && a.frame == b.frame
                    && (all || a.state == State::Gathering || b.state == State::Gathering)
                    && !matches!(a.state, State::Barrier(_))
                    && !matches!(b.state, State::Barrier(_));
                if meet {
                    let b = self.fragments.swap_remove(j);
                    self.frames[b.frame as usize].refs -= 1;
                    let a = &mut self.fragments[i];
                    for (x, y) in a.mask.iter_mut().zip(b.mask) {
                        *x |= y;
                    }
                    a.state = State::Ready;
                    a.passed &= b.passed;
                } else {
                    j += 1;
                }
            }
            i += 1;
        }
    }

    /// Who runs next: those that have not passed, the deepest, the lowest pc; or whoever is drawn of the first.
    #[inline(always)]
    fn pick(&mut self, drawn: Option<&Schedule>) -> Option<usize> {
        if let [only] = &mut self.fragments[..] {
            if std::mem::take(&mut only.passed) {
                self.share = SHARE;
            }
            return (only.state == State::Ready).then_some(0);
        }
        self.first_of(drawn).or_else(|| {
            self.fragments.iter_mut().for_each(|f| f.passed = false);
            self.share = SHARE;
            self.first_of(drawn)
        })
    }

    /// The same among those that are ready and have not passed.
    #[inline(always)]
    fn first_of(&self, drawn: Option<&Schedule>) -> Option<usize> {
        let may = |f: &Fragment| f.state == State::Ready && !f.passed;
        if let Some(schedule) = drawn {
            return schedule.one_of(self.fragments.len(), |i| may(&self.fragments[i]));
        }
        // As one number: the lack of depth, then the pc.
        let key = |f: &Fragment| u64::from(u32::MAX - self.frames[f.frame as usize].depth) << 32 | u64::from(f.pc);
        let mut first = None;
        for (i, f) in self.fragments.iter().enumerate().filter(|(_, f)| may(f)) {
            let key = key(f);
            if first.is_none_or(|(least, _)| key < least) {
                first = Some((key, i));
            }
        }
        first.map(|(_, i)| i)
    }

    /// Runs until every fragment waits or one has had its share; under a seed, for one turn of one fragment.
    ///
    /// # Errors
    /// The first fault, with the pc and function in which it happened; also the end of the launch's time.
    pub fn run(&mut self, block: &BlockEnv<'_>, barriers: &mut Barriers) -> Result<Pause, Box<Located>> {
        // Nothing is drawn as a rule, and fragments of a loop that diverges change often: code without what seeds ask for.
        match &block.env.schedule {
            None => self.run_by(None, block, barriers),
            schedule => self.run_by(schedule.as_ref(), block, barriers),
        }
    }

    #[inline(always)]
    fn run_by(
        &mut self,
        schedule: Option<&Schedule>,
        block: &BlockEnv<'_>,
        barriers: &mut Barriers,
    ) -> Result<Pause, Box<Located>> {
        let apart = schedule.filter(|schedule| schedule.apart);
        loop {
            // Those that meet need not become one: now and then they do not.
            let meet = apart.is_none_or(|schedule| !schedule.one_in(4));
            if self.fragments.len() > 1 {
                self.merge(meet);
            }
            let Some(at) = self.pick(apart) else {
                return Ok(Pause::Waiting);
            };
            self.slice -= CHOICE;
            if self.slice < 0 {
                self.slice = SLICE;
                if let Some(cause) = block.env.overdue() {
                    let fragment = &self.fragments[at];
                    let lane = first_lane(&fragment.mask);
                    return Err(Box::new(located(self, fragment, RawFault { cause, lane })));
                }
                if block.env.has_stopped() {
                    return Ok(Pause::Share);
                }
            }
            let (limit, floor, passed) = self.bounds(at, meet);
            if passed {
                self.share = self.share.min(CATCH_UP);
            }
            let turn = schedule.map_or(SLICE, Schedule::turn).min(self.share);
            let stop = self.run_fragment(at, (limit, floor, turn), block, barriers)?;
            match stop {
                Stop::Meets | Stop::Moved | Stop::Turn if self.share > 0 => {}
                // Whoever is there now, if it has gone elsewhere.
                Stop::Meets | Stop::Moved | Stop::Turn | Stop::Pass => {
                    self.share = SHARE;
                    if let Some(fragment) = self.fragments.get_mut(at) {
                        fragment.passed = true;
                    }
                    let others = self.fragments.iter().any(|f| f.state == State::Ready && !f.passed);
                    if !others {
                        return Ok(Pause::Share);
                    }
                }
                Stop::Barrier => {
                    if barriers.released() {
                        // The whole block may go on: let the block tell everybody.
                        return Ok(Pause::Waiting);
                    }
                }
                Stop::Fault => unreachable!("faults leave by the error path"),
            }
            if schedule.is_some() {
                return Ok(Pause::Turn);
            }
        }
    }

    /// Where fragment `at` meets others of its frame: the lowest pc above its own, and one more than the highest below
    /// (0: none); and whether others have had their share. Unless it meets `all`, only those that wait for others.
    #[inline(always)]
    fn bounds(&self, at: usize, all: bool) -> (Pc, Pc, bool) {
        let f = &self.fragments[at];
        let mut limit = Pc::MAX;
        let mut floor = 0;
        let mut passed = false;
        for (i, other) in self.fragments.iter().enumerate() {
            passed |= i != at && other.passed;
            let counts = match other.state {
                State::Ready => all,
                State::Gathering => true,
                State::Barrier(_) => false,
            };
            if i == at || other.frame != f.frame || !counts {
                continue;
            }
            if other.pc > f.pc {
                limit = limit.min(other.pc);
            } else {
                floor = floor.max(other.pc + 1);
            }
        }
        (limit, floor, passed)
    }

    /// What the operations of a fragment see.
    fn context<'a, 'l>(&self, fragment: &Fragment, exec: &'a Executable, block: &'a BlockEnv<'l>) -> Cx<'a, 'l> {
        let frame = &self.frames[fragment.frame as usize];
        let values = self.affine.as_ref().map(|(values, _)| values);
        Cx {
            regs: frame.regs(),
            mask: Mask {
                warps: self.warps,
                lanes: fragment.mask,
            },
            block,
            first_thread: self.first_thread,
            frame: frame.base,
            affine: values.map_or(std::ptr::null(), Values::as_ptr),
            by_warp: values.is_some_and(|values| values.runs == Runs::Warp),
            fault: None,
            function: &exec.function,
            span: Default::default(),
        }
    }

    /// Runs fragment `at` until it meets another one (below `limit` and from `floor` on there is none) or `turn`
    /// instructions are done.
    fn run_fragment(
        &mut self,
        at: usize,
        (limit, floor, turn): (Pc, Pc, i64),
        block: &BlockEnv<'_>,
        barriers: &mut Barriers,
    ) -> Result<Stop, Box<Located>> {
        let alone = self.fragments.len() == 1;
        let fragment = self.fragments[at].clone();
        // SAFETY: the frame keeps its executable as long as a fragment is in it, and the loop below is left as soon as
        // this one leaves the frame.
        let exec: &Executable = unsafe { &*Arc::as_ptr(&self.frames[fragment.frame as usize].exec) };
        let code: &[Op] = &exec.code;
        let mut cx = self.context(&fragment, exec, block);
        let own = cx.mask;
        let mut pc = fragment.pc;
        let mut share = turn;
        let mut looked = self.looked;
        let stop = loop {
            if pc >= limit {
                break Stop::Meets;
            }
            share -= 1;
            if share < 0 {
                break Stop::Turn;
            }
            let op = &code[pc as usize];
            let mut full = alone;
            if op.guard.offset != NONE {
                // SAFETY: the guard is a predicate slot of the window.
                let taken = unsafe { guarded(cx.regs, op, &own) };
                if let Code::Branch { target } = op.code {
                    if taken == own.lanes {
                        if target <= pc && std::mem::take(&mut looked) {
                            share -= SPIN;
                        }
                        pc = target;
                        if pc < floor {
                            break Stop::Meets;
                        }
                    } else if taken == [0; MAX_WARPS] {
                        pc += 1;
                    } else {
                        if target <= pc && std::mem::take(&mut looked) {
                            share -= SPIN;
                        }
                        self.split(at, taken, pc + 1, target);
                        break Stop::Moved;
                    }
                    continue;
                }
                if taken == [0; MAX_WARPS] {
                    pc += 1;
                    continue;
                }
                full &= taken == own.lanes;
                cx.mask.lanes = taken;
            } else {
                cx.mask.lanes = own.lanes;
            }
            match &op.code {
                Code::Lane { kernel, operands } => {
                    let run = if full { kernel.full } else { kernel.masked };
                    // SAFETY: offsets are slots of this window by construction; the level was detected.
                    unsafe { run(cx.regs, operands, &cx.mask) };
                    pc += 1;
                }
                Code::Load { run, mem } => {
                    looked |= mem.ordering != Ordering::Weak;
                    // SAFETY: offsets are slots of this window by construction.
                    if !unsafe { run(&mut cx, mem) } {
                        break Stop::Fault;
                    }
                    pc += 1;
                }
                Code::Store { run, mem } => {
                    // SAFETY: offsets are slots of this window by construction.
                    if !unsafe { run(&mut cx, mem) } {
                        break Stop::Fault;
                    }
                    pc += 1;
                }
                Code::Atomic { run, atom } => {
                    looked |= !atom.dst.is_empty();
                    // SAFETY: offsets are slots of this window by construction.
                    if !unsafe { run(&mut cx, atom) } {
                        break Stop::Fault;
                    }
                    pc += 1;
                }
                Code::Branch { target } => {
                    if *target <= pc && std::mem::take(&mut looked) {
                        share -= SPIN;
                    }
                    pc = *target;
                    if pc < floor {
                        break Stop::Meets;
                    }
                }
                Code::Rare(op) => match self.rare((at, pc), op, full, &mut cx, barriers, exec) {
                    Rare::Next => pc += 1,
                    Rare::Yield => {
                        pc += 1;
                        break Stop::Pass;
                    }
                    Rare::Long => {
                        pc += 1;
                        self.slice = 0;
                        break Stop::Turn;
                    }
                    Rare::Left => break Stop::Moved,
                    Rare::Barrier => break Stop::Barrier,
                    Rare::Fault(fault) => {
                        cx.fault = Some(fault);
                        break Stop::Fault;
                    }
                },
                Code::BarrierAll { .. } if full && block.env.bundles == 1 => pc += 1,
                Code::BarrierAll { .. } | Code::BranchIndexed { .. } | Code::Call(_) | Code::Return | Code::Exit => {
                    break self.leave_code(at, pc, &op.code, &mut cx, barriers);
                }
            }
        };
        self.looked = looked;
        self.share -= turn - share;
        self.slice -= turn - share;
        if let Some(fault) = cx.fault {
            let frame = self.fragments.get(at).map_or(fragment.frame, |f| f.frame);
            return Err(Box::new(Located {
                fault,
                stack: self.stack(frame, pc),
                first_thread: self.first_thread,
            }));
        }
        if let Stop::Meets | Stop::Turn | Stop::Pass = stop {
            self.fragments[at].pc = pc;
        }
        Ok(stop)
    }

    /// The lanes of `cx` leave the straight path of fragment `at`, which stands at `pc`: for a barrier, a call, a return,
    /// or for good.
    fn leave_code(&mut self, at: usize, pc: Pc, code: &Code, cx: &mut Cx<'_, '_>, barriers: &mut Barriers) -> Stop {
        let taken = cx.mask.lanes;
        match code {
            Code::BarrierAll { id } => {
                let at = self.leave(at, taken, pc);
                barriers.arrive(*id, self, at, None, true);
                return Stop::Barrier;
            }
            Code::BranchIndexed { index, targets } => {
                if let Err(fault) = self.branch_indexed(at, pc, *index, targets, cx) {
                    cx.fault = Some(fault);
                    return Stop::Fault;
                }
            }
            Code::Call(call) => {
                if let Err(fault) = self.call(at, taken, pc, call, cx) {
                    cx.fault = Some(fault);
                    return Stop::Fault;
                }
            }
            Code::Return => {
                if self.ret(at, taken, pc, cx) {
                    barriers.left(self);
                }
            }
            Code::Exit => {
                self.exit(at, taken, pc);
                barriers.left(self);
            }
            Code::Lane { .. }
            | Code::Load { .. }
            | Code::Store { .. }
            | Code::Atomic { .. }
            | Code::Branch { .. }
            | Code::Rare(_) => unreachable!("these stay on the path"),
        }
        Stop::Moved
    }

    /// Lanes `taken` of fragment `at` go to `target`, the others to `next`.
    #[inline]
    fn split(&mut self, at: usize, taken: [u32; MAX_WARPS], next: Pc, target: Pc) {
        let f = &mut self.fragments[at];
        f.pc = next;
        for (lanes, t) in f.mask.iter_mut().zip(taken) {
            *lanes &= !t;
        }
        let other = Fragment {
            pc: target,
            mask: taken,
            ..f.clone()
        };
        self.frames[other.frame as usize].refs += 1;
        self.fragments.push(other);
    }

    /// Separates lanes `taken` of fragment `at`, standing at `pc`, from lanes that an instruction's guard leaves out:
    /// those go on behind it. Returns the index of the fragment that holds exactly `taken`.
    fn leave(&mut self, at: usize, taken: [u32; MAX_WARPS], pc: Pc) -> usize {
        self.fragments[at].pc = pc;
        if self.fragments[at].mask == taken {
            return at;
        }
        self.split(at, taken, pc + 1, pc);
        self.fragments.len() - 1
    }

    /// Lets everybody who waits at barrier `id` go on; a reduction's result goes to those that asked.
    pub fn release_barrier(&mut self, id: u32, result: &super::block::Tally) {
        for f in self.fragments.iter_mut().filter(|f| f.state == State::Barrier(id)) {
            let frame = &self.frames[f.frame as usize];
            if let Code::Rare(op) = &frame.exec.code[f.pc as usize].code
                && let Operation::Barrier { op, dst: Some(dst), .. } = &**op
            {
                let mask = Mask {
                    warps: self.warps,
                    lanes: f.mask,
                };
                // SAFETY: the destination is a slot of the frame's window.
                unsafe { write_reduction(frame.regs(), *dst, *op, result, &mask) };
            }
            f.state = State::Ready;
            f.pc += 1;
        }
    }

    /// Ends the lanes `taken` of fragment `at`.
    fn exit(&mut self, at: usize, taken: [u32; MAX_WARPS], pc: Pc) {
        let at = self.leave(at, taken, pc);
        for (live, t) in self.live.iter_mut().zip(taken) {
            *live &= !t;
        }
        let gone = self.fragments.swap_remove(at);
        self.release(gone.frame);
    }

    fn rare(
        &mut self,
        (at, pc): (usize, Pc),
        op: &Operation<Slot>,
        full: bool,
        cx: &mut Cx<'_, '_>,
        barriers: &mut Barriers,
        exec: &Executable,
    ) -> Rare {
        let machine = exec.machine;
        if machine.watched {
            cx.span = exec.span(pc);
        }
        match op {
            Operation::Barrier {
                op,
                id,
                threads,
                dst: _,
                pred,
            } => {
                let taken = cx.mask.lanes;
                let lane = first_lane(&taken);
                // SAFETY: slots of the running window.
                let (id, threads) = unsafe { (value(cx.regs, *id, lane), threads.map(|t| value(cx.regs, t, lane))) };
                if id > 15 || threads.is_some_and(|t| t % 32 != 0 || t == 0) {
                    let threads = threads.map_or_else(String::new, |threads| format!(" for {threads} threads"));
                    let why =
                        format!("barrier {id}{threads}: barriers are 0 to 15, and wait for a multiple of 32 threads");
                    return Rare::Fault(RawFault {
                        cause: Cause::IllegalInstruction { why },
                        lane,
                    });
                }
                // SAFETY: a predicate slot of the running window.
                let votes = pred.map(|(slot, negated)| unsafe { predicate(cx.regs, slot, negated) });
                (machine.arrive)(cx, id, *op != BarrierOp::Arrive);
                let at = self.leave(at, taken, pc);
                if let Some(votes) = votes {
                    barriers.vote(id, &taken, &votes);
                }
                if *op == BarrierOp::Arrive {
                    barriers.arrive(id, self, at, threads, false);
                    self.fragments[at].pc = pc + 1;
                    return if barriers.released() { Rare::Barrier } else { Rare::Left };
                }
                barriers.arrive(id, self, at, threads, true);
                Rare::Barrier
            }
            Operation::Nanosleep => Rare::Yield,
            Operation::Trap => Rare::Fault(RawFault {
                cause: Cause::Trap,
                lane: first_lane(&cx.mask.lanes),
            }),
            // Without a debugger a breakpoint ends the program like a trap (PTX ISA, brkpt).
            Operation::Breakpoint => Rare::Fault(RawFault {
                cause: Cause::Trap,
                lane: first_lane(&cx.mask.lanes),
            }),
            Operation::Alloca { dst, size, align } => self.alloca(at, *dst, *size, *align, cx),
            Operation::StackSave { dst } => {
                self.stack_save(at, *dst, cx);
                Rare::Next
            }
            Operation::StackRestore { src } => {
                self.stack_restore(at, *src, cx);
                Rare::Next
            }
            // SAFETY: slots of the running window.
            Operation::Texture(op) => Rare::done(unsafe { (machine.texture)(op, cx) }),
            // SAFETY: slots of the running window.
            Operation::Surface(op) => Rare::done(unsafe { (machine.surface)(op, cx) }),
            // SAFETY: slots of the running window.
            Operation::HandleQuery {
                handle,
                attribute,
                level,
                dst,
            } => Rare::done(unsafe { (machine.query)(cx, *handle, *attribute, *level, *dst) }),
            // SAFETY: slots of the running window.
            Operation::IsHandle { opaque, dst, src } => {
                Rare::done(unsafe { (machine.is_handle)(cx, *opaque, *dst, *src) })
            }
            Operation::Syscall { which, args, results } => match (machine.syscall)(*which, args, results, cx) {
                Ok(()) => Rare::Long,
                Err(fault) => Rare::Fault(fault),
            },
            other => {
                let mut at = at;
                if let Some(members) = collective::members(other)
                    && !full
                    && !std::mem::take(&mut self.fragments[at].forced)
                {
                    let taken = cx.mask.lanes;
                    // SAFETY: the members operand is a slot of the running window.
                    let ready = unsafe { warp::gathered(cx, members, &self.live) };
                    if ready != taken && self.could_gather(at) {
                        // Lanes whose partners are all there go on; warps of a bundle do not wait for each other.
                        at = self.leave(at, taken, pc);
                        if ready != [0; MAX_WARPS] {
                            cx.mask.lanes = ready;
                            // SAFETY: slots of the running window.
                            if let Some(fault) = unsafe { collective::execute(other, cx, machine) } {
                                return Rare::Fault(fault);
                            }
                            self.split(at, ready, pc, pc + 1);
                        }
                        self.fragments[at].state = State::Gathering;
                        return Rare::Left;
                    }
                }
                // SAFETY: slots of the running window.
                match unsafe { collective::execute(other, cx, machine) } {
                    None => Rare::Next,
                    Some(fault) => Rare::Fault(fault),
                }
            }
        }
    }

    /// Whether anybody else of this bundle may still come to where fragment `at` waits.
    fn could_gather(&self, at: usize) -> bool {
        self.fragments
            .iter()
            .enumerate()
            .any(|(i, f)| i != at && f.state == State::Ready)
    }

    fn branch_indexed(
        &mut self,
        at: usize,
        pc: Pc,
        index: Slot,
        targets: &[Pc],
        cx: &Cx<'_, '_>,
    ) -> Result<(), RawFault> {
        let taken = cx.mask.lanes;
        let lane = first_lane(&taken);
        // SAFETY: a B32 slot of the running window.
        let at_lane = |l: usize| unsafe { *(cx.regs.add(index.offset as usize) as *const u32).add(l) };
        let chosen = at_lane(lane);
        let Some(&target) = targets.get(chosen as usize) else {
            let why = format!("brx.idx with index {chosen} into a list of {} labels", targets.len());
            return Err(RawFault {
                cause: Cause::IllegalInstruction { why },
                lane,
            });
        };
        let mut same = [0; MAX_WARPS];
        for (w, lanes) in taken.iter().enumerate() {
            for i in (0..32).filter(|i| lanes >> i & 1 == 1) {
                same[w] |= u32::from(at_lane(w * 32 + i) == chosen) << i;
            }
        }
        let at = self.leave(at, taken, pc);
        if same == taken {
            self.fragments[at].pc = target;
        } else {
            // The others stay here and choose for themselves.
            self.split(at, same, pc, target);
        }
        Ok(())
    }
}

/// What became of a rare instruction.
pub enum Rare {
    Next,
    /// Goes on behind it, after others had a turn.
    Yield,
    /// Goes on behind it; it may have taken its time.
    Long,
    /// The fragment's place was updated already.
    Left,
    Barrier,
    Fault(RawFault),
}

impl Rare {
    fn done(fault: Option<RawFault>) -> Rare {
        fault.map_or(Rare::Next, Rare::Fault)
    }
}

/// A fault and where in the program it happened.
pub struct Located {
    pub fault: RawFault,
    /// The call stack, innermost function first: the function, and the instruction at which the thread stands there.
    pub stack: Vec<(Arc<Executable>, Pc)>,
    pub first_thread: u32,
}

/// A fault of a fragment that is not running.
pub fn located(bundle: &Bundle, fragment: &Fragment, fault: RawFault) -> Located {
    Located {
        fault,
        stack: bundle.stack(fragment.frame, fragment.pc),
        first_thread: bundle.first_thread,
    }
}

/// Lanes of `own` in which an instruction's guard holds.
///
/// # Safety
/// The guard is a predicate slot of the window at `regs`.
#[inline(always)]
unsafe fn guarded(regs: *mut u8, op: &Op, own: &Mask) -> [u32; MAX_WARPS] {
    let flip = if op.guard.negated { u32::MAX } else { 0 };
    let mut taken = [0; MAX_WARPS];
    for (w, (taken, lanes)) in taken.iter_mut().zip(own.lanes).enumerate().take(own.warps as usize) {
        // SAFETY: a predicate slot holds one word a warp.
        let bits = unsafe { *(regs.add(op.guard.offset as usize) as *const u32).add(w) };
        *taken = lanes & (bits ^ flip);
    }
    taken
}
