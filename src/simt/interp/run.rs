//! The loop: a fragment's instructions one after the other, until it meets another one, waits, or has had its share.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use crate::isa::lanes::{MAX_WARPS, Mask};
use crate::program::{Op as Operation, Ordering};
use crate::simt::jit::{self, Native};
use crate::simt::machine::access;
use crate::simt::machine::shadow;
use crate::simt::machine::slots::first_lane;
use crate::simt::machine::state::State as BlockState;
use crate::simt::machine::{BlockEnv, Cx, Env, LANES, NONE, RawFault, within};
use crate::simt::schedule::Schedule;

use super::affine::Values;
use super::bundle::{Bundle, Conditions, Fragment, Located, Next, PATIENCE, SLICE, SPIN, State, WORK, located};
use super::code::{Code, Executable, Op};
use super::compile::Pc;
use super::rare::Rare;

/// What choosing a fragment costs of a slice: calls and branches may be all that a kernel does.
pub(super) const CHOICE: i64 = 16;

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

/// Instructions up to the others of a warp that lanes rather have interpreted than enter code for them.
const FAR: Pc = 24;

impl Bundle {
    /// Runs until every fragment waits or one has had its share; under a seed, for one turn of one fragment.
    ///
    /// # Errors
    /// The first fault, with the pc and function in which it happened; also the end of the launch's time.
    pub fn run(&mut self, block: &BlockEnv<impl Conditions>, state: &mut BlockState) -> Result<Pause, Box<Located>> {
        // Nothing is drawn as a rule, and fragments of a loop that diverges change often: code without what seeds ask
        // for.
        match block.env.schedule() {
            None => self.run_by(None, block, state),
            schedule => self.run_by(schedule, block, state),
        }
    }

    #[inline(always)]
    fn run_by(
        &mut self,
        schedule: Option<&Schedule>,
        block: &BlockEnv<impl Conditions>,
        state: &mut BlockState,
    ) -> Result<Pause, Box<Located>> {
        let apart = schedule.filter(|schedule| schedule.apart);
        loop {
            // Those that meet need not become one: now and then they do not.
            let meet = apart.is_none_or(|schedule| !schedule.one_in(4));
            if self.fragments.len() > 1 {
                self.merge(meet);
            }
            let at = match self.pick(apart) {
                Next::Fragment(at) => at,
                Next::Nobody => return Ok(Pause::Waiting),
                Next::Others => {
                    self.begin_share();
                    return Ok(Pause::Share);
                }
            };
            if self.fair.is_none() {
                self.fragments[at].ran = self.shares;
            }
            self.slice -= CHOICE;
            if self.slice < 0 {
                self.slice = SLICE;
                self.look_around(at, block)?;
                if block.env.has_stopped() {
                    return Ok(Pause::Share);
                }
            }
            let (mut limit, mut floor) = self.bounds(at, meet);
            if schedule.is_none()
                && state.stuck == 0
                && let Some((native, entry)) = self.native_of(at, (limit, floor))
            {
                // SAFETY: the fragment's frame keeps its executable, and that its code, until the fragment leaves the frame:
                // code returns before.
                let native = unsafe { &*native };
                if let Some(entry) = entry
                    && self.run_native(at, (native, entry), (limit, floor), block, state)?
                {
                    if state.changed {
                        self.wake();
                    }
                    // Those that have ended give way to nobody.
                    if self.share <= 0 && at < self.fragments.len() && self.give_way(at, apart) {
                        return Ok(Pause::Share);
                    }
                    continue;
                }
                let pc = self.fragments[at].pc;
                (limit, floor) = (limit.min(native.next_entry(pc)), floor.max(native.behind_entry(pc)));
            }
            let mut turn = schedule.map_or(SLICE, Schedule::turn).min(self.share).max(1);
            if state.stuck != 0 {
                // Does anybody do more than look at barriers again and again?
                turn = 1;
                if self.reaches_out(at, block) {
                    state.stuck = 0;
                }
            }
            // An instruction all the same, so that nobody gives way for ever.
            let mut spent = self.share <= 0 && self.give_way(at, apart);
            match self.run_fragment(at, (limit, floor, turn), block, state)? {
                Stop::Meets | Stop::Turn if self.share <= 0 => spent |= self.give_way(at, apart),
                // Who moved may have become two, or none: whoever is chosen next gives way.
                Stop::Meets | Stop::Moved | Stop::Turn => {}
                Stop::Pass => {
                    self.share = -SPIN;
                    spent |= self.give_way(at, apart);
                }
                Stop::Barrier => {
                    if state.barriers.released() {
                        // The whole block may go on: let the block tell everybody.
                        return Ok(Pause::Waiting);
                    }
                }
                Stop::Fault => unreachable!("faults leave by the error path"),
            }
            if state.changed {
                self.wake();
            }
            if spent {
                return Ok(Pause::Share);
            }
            if schedule.is_some() {
                return Ok(Pause::Turn);
            }
        }
    }

    /// The code of the function in which fragment `at` is, and the entry at which the fragment stands, if it is to enter there.
    #[inline(always)]
    fn native_of(&self, at: usize, (limit, floor): (Pc, Pc)) -> Option<(*const Native, Option<u32>)> {
        let fragment = &self.fragments[at];
        let exec = &self.frames[fragment.frame as usize].exec;
        let native = &exec.native.as_ref()?.all;
        if (limit, floor) != (Pc::MAX, 0) {
            // Only code for warps that lack lanes looks where others are, and to go there and back takes as long as some instructions: a
            // loop may be many.
            let some = exec.native_for_some(self.live[0] == u32::MAX);
            let far = limit - fragment.pc >= FAR || some.is_some_and(|some| some.turns_before(fragment.pc, limit));
            let entry = some.and_then(|some| some.entry(fragment.pc)).filter(|_| far);
            return Some((some.unwrap_or(native), entry.map(|(entry, _)| entry)));
        }
        match native.entry(fragment.pc) {
            Some((_, masked)) if !masked && fragment.mask[0] != u32::MAX => {
                let some = exec.native_for_some(self.live[0] == u32::MAX);
                let entry = some.and_then(|some| some.entry(fragment.pc));
                Some((some.unwrap_or(native), entry.map(|(entry, _)| entry)))
            }
            entry => Some((native, entry.map(|(entry, _)| entry))),
        }
    }

    /// Whether the next instruction of fragment `at` does something that others than the block may see, or sees something
    /// that others may change.
    #[cold]
    fn reaches_out(&self, at: usize, block: &Env<'_>) -> bool {
        let fragment = &self.fragments[at];
        let exec = &*self.frames[fragment.frame as usize].exec;
        let mut cx = self.context(fragment, exec, block);
        match &exec.code[fragment.pc as usize].code {
            // SAFETY: the operands are slots of the frame's window, which `cx` has.
            Code::Load { mem, .. } | Code::Store { mem, .. } => unsafe { access::leaves_block(&mut cx, mem) },
            // SAFETY: the operands are slots of the frame's window, which `cx` has.
            Code::Atomic { atom, .. } => unsafe { access::leaves_block(&mut cx, &atom.mem) },
            // Barriers in memory are the block's, or of a cluster that stands still as a whole.
            Code::Rare(op) => op.effects().volatile || matches!(**op, Operation::Syscall { .. }),
            Code::Exit => true,
            Code::Lane { .. }
            | Code::Inspected(_)
            | Code::Shadow { .. }
            | Code::Within { .. }
            | Code::Branch { .. }
            | Code::BranchIndexed { .. }
            | Code::BarrierAll { .. }
            | Code::Call(_)
            | Code::Return => false,
        }
    }

    /// What is done now and then, whatever fragment `at` does: looks at the clock.
    #[cold]
    fn look_around(&mut self, at: usize, block: &BlockEnv<impl Conditions>) -> Result<(), Box<Located>> {
        if let Some(cause) = block.env.overdue() {
            let fragment = &self.fragments[at];
            let lane = first_lane(&fragment.mask);
            return Err(Box::new(located(self, fragment, RawFault::new(cause, lane))));
        }
        block.env.lasts();
        if self.has_worked() {
            block.env.works();
        }
        self.tell_stand(block);
        // The order of a seed has nothing to do with time.
        if block.env.schedule().is_none() {
            let now = Instant::now();
            if now - *self.began.get_or_insert(now) > PATIENCE {
                self.share = 0;
            }
        }
        Ok(())
    }

    /// What the operations of a fragment see.
    pub(super) fn context<'a>(&self, fragment: &Fragment, exec: &'a Executable, block: &'a Env<'a>) -> Cx<'a> {
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
            run: values.map_or(LANES, |values| values.runs.lanes()),
            forced: false,
            fault: None,
            function: &exec.function,
            span: Default::default(),
            operation: None,
        }
    }

    /// Runs fragment `at` until it meets another one (below `limit` and from `floor` on there is none) or `turn`
    /// instructions are done.
    fn run_fragment(
        &mut self,
        at: usize,
        (limit, floor, turn): (Pc, Pc, i64),
        block: &BlockEnv<impl Conditions>,
        state: &mut BlockState,
    ) -> Result<Stop, Box<Located>> {
        let alone = self.fragments.len() == 1;
        self.together = None;
        let fragment = self.fragments[at].clone();
        // SAFETY: the frame keeps its executable as long as a fragment is in it, and the loop below is left as soon as
        // this one leaves the frame.
        let exec: &Executable = unsafe { &*Arc::as_ptr(&self.frames[fragment.frame as usize].exec) };
        let code: &[Op] = &exec.code;
        let ways = &exec.compiled.ways;
        let mut cx = self.context(&fragment, exec, block);
        let own = cx.mask;
        let mut pc = fragment.pc;
        let mut share = turn;
        let mut looked = self.looked;
        // What the share was when a loop was last gone round that looks at memory of others, and what went to those that spin.
        let (mut paid, mut spun) = (turn + self.since, 0);
        let mut pay = |share: &mut i64| {
            if paid - *share < WORK {
                (*share, spun) = (*share - SPIN, spun + SPIN);
            }
            paid = *share;
        };
        // Whether `cx` has fewer lanes, for the operation before. It is written only then: operations read it soon, and
        // wider.
        let mut narrowed = false;
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
            if narrowed {
                cx.mask = own;
                narrowed = false;
            }
            if op.guard.offset != NONE {
                // SAFETY: the guard is a predicate slot of `exec`, in whose window the fragment runs.
                let taken = unsafe { guarded(cx.regs, op, &own) };
                if let Code::Branch {
                    target,
                    waits,
                    block: number,
                    skips,
                } = op.code
                {
                    if taken == own.lanes {
                        ways.note(number, jit::JUMPED);
                        if waits && std::mem::take(&mut looked) {
                            pay(&mut share);
                        }
                        pc = target;
                        if pc < floor {
                            break Stop::Meets;
                        }
                    } else if taken == [0; MAX_WARPS] {
                        ways.note(number, jit::PASSED);
                        pc += 1;
                    } else {
                        let mut warps = taken.iter().zip(&own.lanes);
                        let parted = warps.any(|(taken, all)| *taken != 0 && taken != all);
                        ways.note(number, jit::JUMPED | jit::PASSED | if parted { jit::PARTED } else { 0 });
                        let over = i64::from(target) - i64::from(pc) - 1;
                        if skips && target <= limit && over <= share && turn > 1 && block.env.schedule().is_none() {
                            share -= over;
                            for (lanes, taken) in cx.mask.lanes.iter_mut().zip(taken) {
                                *lanes &= !taken;
                            }
                            narrowed = true;
                            // SAFETY: these are instructions of `exec`, in whose window the fragment runs.
                            match unsafe { run_over(code, pc + 1..target, &mut cx) } {
                                Ok(()) => pc = target,
                                Err(at) => {
                                    pc = at;
                                    break Stop::Fault;
                                }
                            }
                            continue;
                        }
                        if waits && std::mem::take(&mut looked) {
                            pay(&mut share);
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
                if taken != own.lanes {
                    full = false;
                    narrowed = true;
                    cx.mask.lanes = taken;
                }
            }
            match &op.code {
                Code::Lane { kernel, operands } => {
                    let run = if full { kernel.full } else { kernel.masked };
                    // SAFETY: the operands are slots of `exec`'s window, which the frame has (`compile/check.rs`);
                    // kernels are of the level that the CPU was found to have.
                    unsafe { run(cx.regs, operands, &cx.mask) };
                    pc += 1;
                    // Those that follow, as far as nothing is to be looked at between them.
                    let after = i64::from(op.plain)
                        .saturating_sub(1)
                        .min(i64::from(limit - pc))
                        .min(share)
                        .max(0);
                    if after == 0 {
                        continue;
                    }
                    share -= after;
                    let next = pc as usize..(i64::from(pc) + after) as usize;
                    pc = next.end as Pc;
                    if narrowed {
                        cx.mask = own;
                        narrowed = false;
                    }
                    for op in &code[next] {
                        if let Code::Lane { kernel, operands } = &op.code {
                            let run = if alone { kernel.full } else { kernel.masked };
                            // SAFETY: the operands are slots of `exec`'s window, in which the bundle runs.
                            unsafe { run(cx.regs, operands, &cx.mask) };
                        }
                    }
                }
                Code::Inspected(inspected) => {
                    // SAFETY: as of the others: operands of `exec`'s window.
                    unsafe { inspected.run(full, &mut cx) };
                    pc += 1;
                }
                Code::Load { run, mem } => {
                    looked |= mem.ordering != Ordering::Weak;
                    // SAFETY: `mem` has slots of `exec`'s window, which the frame has (`compile/check.rs`).
                    if !unsafe { run(&mut cx, mem) } {
                        break Stop::Fault;
                    }
                    pc += 1;
                }
                Code::Store { run, mem } => {
                    // SAFETY: `mem` has slots of `exec`'s window, which the frame has (`compile/check.rs`).
                    if !unsafe { run(&mut cx, mem) } {
                        break Stop::Fault;
                    }
                    pc += 1;
                }
                Code::Atomic { run, atom } => {
                    looked |= !atom.dst.is_empty();
                    // SAFETY: `atom` has slots of `exec`'s window, which the frame has (`compile/check.rs`).
                    if !unsafe { run(&mut cx, atom) } {
                        break Stop::Fault;
                    }
                    pc += 1;
                }
                Code::Shadow { op, span } => {
                    // SAFETY: `op` has slots of `exec`'s window, which the frame has (`compile/check.rs`).
                    unsafe { shadow::execute(op, *span, &mut cx) };
                    pc += 1;
                }
                Code::Within { op, affine } => {
                    // SAFETY: `op` has slots of `exec`'s window, which the frame has (`compile/check.rs`); `affine` is a value that the
                    // bundle has computed for this code.
                    cx.fault = unsafe { within::check(op, *affine, &cx) };
                    if cx.fault.is_some() {
                        break Stop::Fault;
                    }
                    pc += 1;
                }
                Code::Branch { target, waits, .. } => {
                    if *waits && std::mem::take(&mut looked) {
                        pay(&mut share);
                    }
                    pc = *target;
                    if pc < floor {
                        break Stop::Meets;
                    }
                }
                Code::Rare(op) => match self.rare((at, pc), op, full, &mut cx, state, exec) {
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
                // Under a seed whoever looks on must not change the order: a watched grid has another form of the barrier.
                Code::BarrierAll { .. } if full && block.env.bundles() == 1 && block.env.schedule().is_none() => {
                    pc += 1
                }
                Code::BarrierAll { .. } | Code::BranchIndexed { .. } | Code::Call(_) | Code::Return | Code::Exit => {
                    break self.leave_code((at, pc), &op.code, &mut cx, state, block.env.max_depth());
                }
            }
        };
        self.looked = looked;
        self.since = paid - share;
        self.did.add(turn - share, spun);
        self.share -= turn - share;
        self.slice -= turn - share;
        if let Some(native) = &exec.native {
            native.strays((turn - share).unsigned_abs());
        }
        if let Some(fault) = cx.fault {
            let frame = self.fragments.get(at).map_or(fragment.frame, |f| f.frame);
            return Err(self.faulted(fault, frame, pc));
        }
        if let Stop::Meets | Stop::Turn | Stop::Pass = stop {
            self.fragments[at].pc = pc;
        }
        Ok(stop)
    }

    #[cold]
    fn faulted(&self, fault: RawFault, frame: u32, pc: Pc) -> Box<Located> {
        Box::new(Located {
            fault,
            stack: self.stack(frame, pc),
            first_thread: self.first_thread,
        })
    }

    /// The lanes of `cx` leave the straight path of fragment `at`, which stands at `pc`: for a barrier, a call, a
    /// return, or for good.
    fn leave_code(
        &mut self,
        (at, pc): (usize, Pc),
        code: &Code,
        cx: &mut Cx<'_>,
        state: &mut BlockState,
        max_depth: u64,
    ) -> Stop {
        let taken = cx.mask.lanes;
        match code {
            Code::BarrierAll { id } => {
                let at = self.leave(at, taken, pc);
                self.wait(at, State::Barrier(*id));
                state
                    .barriers
                    .arrive(*id, self.first_warp(), &taken[..self.warps as usize], None);
                return Stop::Barrier;
            }
            Code::BranchIndexed { index, targets } => {
                if let Err(fault) = self.branch_indexed(at, pc, *index, targets, cx) {
                    cx.fault = Some(fault);
                    return Stop::Fault;
                }
            }
            Code::Call(call) => {
                if let Err(fault) = self.call((at, pc), call, cx, max_depth) {
                    cx.fault = Some(fault);
                    return Stop::Fault;
                }
            }
            Code::Return => {
                if self.frames[self.fragments[at].frame as usize].depth == 0 {
                    self.tell_exit(at, pc, cx);
                }
                if self.ret(at, taken, pc, cx) {
                    state.barriers.left(self.first_warp(), self.live_by_warp());
                }
            }
            Code::Exit => {
                self.tell_exit(at, pc, cx);
                self.exit(at, taken, pc);
                state.barriers.left(self.first_warp(), self.live_by_warp());
            }
            Code::Lane { .. }
            | Code::Inspected(_)
            | Code::Load { .. }
            | Code::Store { .. }
            | Code::Atomic { .. }
            | Code::Branch { .. }
            | Code::Shadow { .. }
            | Code::Within { .. }
            | Code::Rare(_) => unreachable!("these stay on the path"),
        }
        Stop::Moved
    }
}

/// Runs what a branch jumps over ([`Code::Branch`]) for the lanes of `cx` that have not jumped.
///
/// # Errors
/// The instruction of a fault, which `cx` has.
///
/// # Safety
/// The instructions are those of the code in whose window the lanes run.
unsafe fn run_over(code: &[Op], over: Range<Pc>, cx: &mut Cx<'_>) -> Result<(), Pc> {
    let own = cx.mask;
    for pc in over {
        let op = &code[pc as usize];
        cx.mask.lanes = own.lanes;
        if op.guard.offset != NONE {
            // SAFETY: the guard is a predicate slot of the window in which the lanes run.
            cx.mask.lanes = unsafe { guarded(cx.regs, op, &own) };
            if cx.mask.lanes == [0; MAX_WARPS] {
                continue;
            }
        }
        // SAFETY: operands and accesses have slots of that window (`compile/check.rs`).
        let good = unsafe {
            match &op.code {
                Code::Lane { kernel, operands } => {
                    (kernel.masked)(cx.regs, operands, &cx.mask);
                    true
                }
                Code::Load { run, mem } | Code::Store { run, mem } => run(cx, mem),
                Code::Inspected(_)
                | Code::Atomic { .. }
                | Code::Branch { .. }
                | Code::BranchIndexed { .. }
                | Code::BarrierAll { .. }
                | Code::Call(_)
                | Code::Shadow { .. }
                | Code::Within { .. }
                | Code::Return
                | Code::Exit
                | Code::Rare(_) => unreachable!("branches skip nothing else"),
            }
        };
        if !good {
            return Err(pc);
        }
    }
    Ok(())
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
