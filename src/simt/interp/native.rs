//! Fragments run compiled code: they enter it with their registers in the window, and leave it as the fragments that they
//! have become.

use std::any::Any;
use std::cell::{RefCell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrayvec::ArrayVec;

use crate::config;
use crate::isa::joint::Joint;
use crate::isa::joint::matrix::Op as Matrix;
use crate::isa::lanes::{MAX_WARPS, Mask, WARP, Width};
use crate::memory::{AddressSpace, READ, WRITE};
use crate::program;
use crate::ptx::ast::Span;
use crate::simt::jit::context::{
    Context, Cut, ENDED, Extent, LaneCall, NOWHERE, SCRATCH, Warp, outcome, step, together,
};
use crate::simt::jit::{Native, moves};
use crate::simt::machine::slots::{Slot, bits, first_lane, read};
use crate::simt::machine::state::State as BlockState;
use crate::simt::machine::{BlockEnv, Cx, Env, MemOp, NONE, RawFault, joint, texture, warp, within};

use super::bundle::{Bundle, Conditions, Fragment, Located, State};
use super::code::{Code, Executable};
use super::collective;
use super::compile::Pc;
use super::handed;

/// Instructions that code runs until it comes back for a look at the clock.
pub(super) fn budget() -> i64 {
    config::get().jit_turn.into()
}

/// What the helpers know besides what code sees. A bundle has one, of which most stays from one time to the next.
#[repr(C)]
pub(super) struct Run {
    /// First, so that code's context is this.
    context: Context,
    /// The bundle's one warp: code has pointers to it while helpers have the run.
    warp: Box<UnsafeCell<Warp>>,
    /// Of the first bundle: who has the first turn of those that go abreast.
    first: *mut Warp,
    /// The block, whose lifetime nothing here knows: it is there while code runs.
    block: *const Env<'static>,
    state: *mut BlockState,
    exec: *const Executable,
    native: *const Native,
    frame: u32,
    /// It was prepared for a march, and not again since.
    marches: bool,
    /// The instruction that a helper was asked for last.
    pc: Pc,
    fault: Option<RawFault>,
    /// A helper has panicked: it goes on when code has returned.
    panic: Option<Box<dyn Any + Send>>,
    /// Where the function's accesses go.
    extents: Option<Arc<Extents>>,
    /// Where registers stay at barriers.
    saved: Vec<SavedLine>,
}

/// A line of the CPU's caches, and as long as its longest vectors.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct SavedLine([u8; 64]);

// SAFETY: the pointers are followed while code runs, and set before each time.
unsafe impl Send for Run {}

/// Extents of one function's sites, as a thread has seen them.
pub(super) struct Extents {
    id: u64,
    /// The state of the address space for which they hold.
    version: AtomicU64,
    /// Those that code compares with, and behind them, in the same order, those that were there before.
    extents: UnsafeCell<Box<[Extent]>>,
}

// SAFETY: a thread's extents are used by the bundles that it runs, one after the other; a bundle stays with its thread.
unsafe impl Send for Extents {}
// SAFETY: others than the thread hold it at most to drop it.
unsafe impl Sync for Extents {}

thread_local! {
    /// Of the functions that the thread has run last.
    static EXTENTS: RefCell<ArrayVec<Arc<Extents>, 8>> = const { RefCell::new(ArrayVec::new_const()) };
}

/// The extents of a function's sites.
fn extents(native: &Native) -> Arc<Extents> {
    EXTENTS.with(|all| {
        let mut all = all.borrow_mut();
        if let Some(one) = all.iter().find(|one| one.id == native.id) {
            return Arc::clone(one);
        }
        if all.is_full() {
            all.remove(0);
        }
        let one = Arc::new(Extents {
            id: native.id,
            version: AtomicU64::new(u64::MAX),
            extents: UnsafeCell::new(vec![Extent::NONE; 2 * native.sites.len()].into()),
        });
        all.push(Arc::clone(&one));
        one
    })
}

impl Bundle {
    /// Fragment `at` enters its function's code at this entry, and goes no further than where it meets others, below `limit` and from
    /// `floor` on there is none. `false`: it stands where it stood, and the interpreter is to go on:
    /// its lanes differ where the code takes them for the same, or do what code leaves to it.
    ///
    /// # Errors
    /// The first fault.
    pub(super) fn run_native(
        &mut self,
        at: usize,
        code: (&Native, u32),
        (limit, floor): (Pc, Pc),
        block: &BlockEnv<impl Conditions>,
        state: &mut BlockState,
    ) -> Result<bool, Box<Located>> {
        let Fragment { pc, frame, mask, .. } = self.fragments[at];
        let untouched = self.together.take() == Some((frame, pc)) && mask[0] == u32::MAX;
        let together = if untouched {
            together::UNTOUCHED
        } else {
            together::IN_WINDOW
        };
        let budget = self.share.clamp(1, budget());
        self.prepare(frame, self.live, code.0, block, state);
        if let Some(run) = &mut self.native {
            (run.context.limit, run.context.floor) = (limit, floor);
        }
        // SAFETY: it was prepared for this code, this block and this state, which are borrowed here.
        let gone = unsafe { self.go((frame, pc, mask[0]), together, code, budget) }?;
        let Some((first, count, spent)) = gone else {
            return Ok(false);
        };
        if self.has_packed() {
            self.unpack((frame, first + 1), code.0)?;
        }
        self.share -= spent;
        self.slice -= spent;
        // They may have left again before the first instruction, and no loop was gone round: it is the interpreter's.
        if count == 1 && first == pc && spent == 1 {
            return Ok(false);
        }
        // What most warps come to: their end, or a barrier, all lanes together.
        if count == 1 && self.fragments.len() == 1 {
            if first & ENDED != 0 {
                self.end_of_all(frame, mask);
                state.barriers.left(self.first_warp(), self.live_by_warp());
                return Ok(true);
            }
            if let Some(id) = self.barrier_of_all(frame, first) {
                self.fragments[0].pc = first;
                self.together = Some((frame, first + 1));
                if block.env.bundles() == 1 {
                    self.fragments[0].pc = first + 1;
                    return Ok(true);
                }
                self.wait(0, State::Barrier(id));
                state.barriers.arrive(id, self.first_warp(), &mask[..1], None);
                return Ok(true);
            }
        }
        self.scatter(at, count, state);
        // They may come back before anybody does anything else, as from a loop that waits for others.
        if count == 1 && first & ENDED == 0 && self.fragments.len() == 1 {
            self.together = Some((frame, first));
        }
        Ok(true)
    }

    /// Registers that code has left where a warp keeps them at a barrier go to the window; the code goes on at `pc`.
    ///
    /// # Errors
    /// A fault: none is known that moving registers could have.
    pub(super) fn unpack(&mut self, (frame, pc): (u32, Pc), native: &Native) -> Result<(), Box<Located>> {
        let entry = native.entry(pc);
        let (entry, _) = entry.expect("registers stay packed only where code goes on");
        // SAFETY: it was prepared when it left its registers there; code does no more than move them, and looks at neither block
        // nor state.
        unsafe { self.go((frame, pc, u32::MAX), together::UNPACK, (native, entry), 1) }?;
        // The warp stands where it stood: at the barrier.
        if let Some(run) = &mut self.native {
            run.context.cuts[0].pc = pc.wrapping_sub(1);
        }
        Ok(())
    }

    /// The number of the barrier of the whole block that stands at a place without a guard.
    pub(super) fn barrier_of_all(&self, frame: u32, pc: Pc) -> Option<u32> {
        let op = &self.frames[frame as usize].exec.code[pc as usize];
        match op.code {
            Code::BarrierAll { id } if op.guard.offset == NONE => Some(id),
            _ => None,
        }
    }

    /// Tells compiled code where it runs: in a frame of this bundle, of which these lanes are there.
    pub(super) fn prepare(
        &mut self,
        number: u32,
        live: [u32; MAX_WARPS],
        native: &Native,
        block: &Env<'_>,
        state: &mut BlockState,
    ) {
        let frame = &self.frames[number as usize];
        // SAFETY: only the lifetime changes; the pointer is followed in [`Bundle::go`], whose callers have `block` borrowed.
        let erased = unsafe { std::mem::transmute::<*const Env<'_>, *const Env<'static>>(block) };
        let first_thread = self.first_thread;
        let run = self.native.get_or_insert_with(|| Run::new(block, first_thread));
        run.block = erased;
        run.state = state;
        let warp = run.warp.get_mut();
        (warp.regs, warp.live) = (frame.regs(), live[0]);
        run.marches = false;
        run.context.turns = i64::MAX;
        (run.context.limit, run.context.floor) = (Pc::MAX, 0);
        run.frame = frame.base;
        run.context.frame = u64::from(frame.base);
        run.exec = Arc::as_ptr(&frame.exec);
        run.native = native;
        if run.extents.as_ref().is_none_or(|extents| extents.id != native.id) {
            let extents = extents(native);
            run.context.calls = native.calls.as_ptr();
            // SAFETY: the thread is here, and not in code.
            run.context.extents = unsafe { &mut *extents.extents.get() }.as_mut_ptr();
            run.extents = Some(extents);
            let lines = native.saved / size_of::<SavedLine>();
            if run.saved.len() < lines {
                run.saved = vec![SavedLine([0; 64]); lines];
            }
            run.warp.get_mut().saved = run.saved.as_mut_ptr().cast();
        }
    }

    /// How many turns of loops through memory the prepared code makes before it pauses.
    #[inline(always)]
    pub(super) fn set_turns(&mut self, turns: i64) {
        if let Some(run) = &mut self.native {
            run.context.turns = turns;
        }
    }

    /// What [`Bundle::prepare`] was told last is for a march.
    pub(super) fn prepared(&mut self) {
        if let Some(run) = &mut self.native {
            run.marches = true;
        }
    }

    /// Whether all lanes that have left code, to so many places, have ended.
    pub(super) fn have_ended(&self, count: usize) -> bool {
        self.native.as_ref().is_some_and(|run| {
            let mut cuts = run.context.cuts[..count].iter();
            cuts.all(|cut| cut.pc & ENDED != 0)
        })
    }

    /// Whether code has left registers where they are kept at barriers.
    #[inline(always)]
    pub(super) fn has_packed(&self) -> bool {
        self.native.as_ref().is_some_and(|run| run.context.packed != 0)
    }

    /// Whether what [`Bundle::prepare`] was told last still holds, for a march.
    #[inline(always)]
    pub(super) fn is_prepared(&self, native: &Native, block: &Env<'_>, state: &mut BlockState) -> bool {
        self.native.as_ref().is_some_and(|run| {
            run.marches
                && std::ptr::addr_eq(run.block, block)
                && std::ptr::eq(run.state, state)
                && std::ptr::eq(run.native, native)
        })
    }

    /// Lanes that stand at a place of the prepared frame run in code until all of them have left it: the first of the places where
    /// they stand then, how many there are, and what that cost. `None`: they could not enter.
    ///
    /// # Safety
    /// The bundle is prepared for this code, and for a block and a state that the caller has borrowed.
    ///
    /// # Errors
    /// The first fault.
    #[inline(always)]
    pub(super) unsafe fn go(
        &mut self,
        (number, pc, lanes): (u32, Pc, u32),
        together: u64,
        (native, entry): (&Native, u32),
        budget: i64,
    ) -> Result<Option<(Pc, usize, i64)>, Box<Located>> {
        let Some(run) = &mut self.native else {
            return Ok(None);
        };
        run.pc = pc;
        run.context.budget = budget;
        (run.context.paid, run.context.spun) = (budget + self.since, 0);
        run.context.together = together;
        run.context.packed = 0;
        run.context.looked = u64::from(self.looked);
        run.note_copies();
        run.context.warp = run.warp.get();
        run.context.same = run.warp.get_mut().regs;
        run.context.abreast = 0;
        // SAFETY: the code was made for this executable, in whose window the lanes run; what the context points to lives until it
        // returns, as the caller says; the entry is one of its own.
        let outcome = unsafe { run.call(native, entry, lanes) };
        if outcome != outcome::LEFT || run.panic.is_some() {
            return self.stopped(outcome, number, lanes).map(|()| None);
        }
        self.looked = run.context.looked != 0;
        let spent = (budget - run.context.budget).max(1);
        self.since = run.context.paid - run.context.budget;
        self.did.add(spent, run.context.spun);
        Ok(Some((run.context.cuts[0].pc, run.context.cut_count as usize, spent)))
    }

    /// Code has not run to where lanes leave it.
    #[cold]
    fn stopped(&mut self, outcome: u32, number: u32, lanes: u32) -> Result<(), Box<Located>> {
        let Some(run) = &mut self.native else { return Ok(()) };
        if let Some(panic) = run.panic.take() {
            resume_unwind(panic);
        }
        if outcome == outcome::NOT_ENTERED {
            return Ok(());
        }
        let (pc, fault) = (run.pc, run.fault.take());
        let lane = first_lane(&only(lanes));
        Err(Box::new(Located {
            fault: fault.unwrap_or_else(|| RawFault::instruction("compiled code gave up".into(), lane)),
            stack: self.stack(number, pc),
            first_thread: self.first_thread,
        }))
    }

    /// Warps of a block, each a bundle that is prepared for this code, run abreast from one place, all of their lanes, until one of
    /// them does something else or their time is over. Where they stand then is in the context of the first one; the number
    /// of the warp that had its turn is given, and nobody's if all stand at one place.
    ///
    /// # Safety
    /// The bundles are prepared for this code, and for a block and a state that the caller has borrowed.
    ///
    /// # Errors
    /// The first fault.
    #[inline(always)]
    pub(super) unsafe fn go_abreast(
        bundles: &mut [Bundle],
        (pc, together): (Pc, u64),
        (native, entry): (&Native, u32),
        (budget, turns, stops): (i64, i64, bool),
    ) -> Result<Stand, Box<Located>> {
        let since = bundles[0].since;
        let warps = bundles.len() as u64;
        let Some(run) = &mut bundles[0].native else {
            unreachable!("its caller has prepared it")
        };
        run.pc = pc;
        run.context.budget = budget;
        (run.context.paid, run.context.spun) = (budget + since, 0);
        run.context.together = together;
        run.context.turns = turns;
        run.context.stops = u64::from(stops);
        run.context.packed = 0;
        run.context.looked = 0;
        run.note_copies();
        run.context.same = run.warp.get_mut().regs;
        let first = run.first;
        (run.context.warp, run.context.first, run.context.abreast) = (first, first, warps);
        (run.context.ended, run.context.gaps) = (0, 0);
        // SAFETY: as for one warp; the warps belong to runs that live as long as the bundles, which are borrowed here.
        let outcome = unsafe { run.call(native, entry, u32::MAX) };
        let Context {
            warp,
            met,
            since,
            came,
            first,
            ended,
            gaps,
            cut_count,
            budget: rest,
            paid,
            spun,
            ..
        } = run.context;
        let stand = Stand {
            spent: (budget - rest).max(1),
            all_ended: first.is_null(),
            ended,
            met,
            since,
            came,
            cuts: cut_count as usize,
            entered: outcome == outcome::LEFT,
            at: match warp.is_null() {
                true => None,
                false => bundles.iter().position(|bundle| {
                    let run = bundle.native.as_ref();
                    run.is_some_and(|run| std::ptr::eq(run.warp.get(), warp))
                }),
            },
        };
        bundles[0].since = paid - rest;
        bundles[0].did.add(stand.spent, spun);
        if stand.all_ended && gaps != 0 {
            Bundle::link(bundles, true);
        }
        let Some(run) = &mut bundles[0].native else {
            unreachable!("it was there before")
        };
        let panic = run.panic.take();
        if outcome == outcome::LEFT && panic.is_none() {
            return Ok(stand);
        }
        let (pc, fault) = (run.pc, run.fault.take());
        let Some(at) = stand.at else {
            unreachable!("code stops at a warp")
        };
        // Whoever was asked to help knows, and the warp whose turn it was tells.
        if let Some(own) = &mut bundles[at].native {
            (own.pc, own.fault, own.panic) = (pc, fault, panic);
        }
        bundles[at].stopped(outcome, 0, u32::MAX).map(|()| stand)
    }

    /// Each warp leads to the next one that has not ended, or to the next one whether it has or not.
    pub(super) fn link(bundles: &mut [Bundle], all: bool) {
        let mut first = std::ptr::null_mut();
        for (i, bundle) in bundles.iter_mut().enumerate().rev() {
            let is_linked = all || bundle.is_under_way();
            if let Some(run) = &mut bundle.native
                && is_linked
            {
                let warp = run.warp.get_mut();
                (warp.next, warp.bit) = (first, 1 << i);
                first = warp;
            }
        }
        if let Some(run) = &mut bundles[0].native {
            run.first = first;
        }
    }

    /// The place where the first of its lanes stand that have left code.
    pub(super) fn first_cut(&self) -> Pc {
        self.native.as_ref().map_or(0, |run| run.context.cuts[0].pc)
    }

    /// Takes over from the run of the first bundle where its lanes have left code.
    pub(super) fn take_cuts(bundles: &mut [Bundle], at: usize, count: usize) {
        let cuts = bundles[0].native.as_ref().map(|run| run.context.cuts);
        if let (Some(cuts), Some(run)) = (cuts, &mut bundles[at].native) {
            run.context.cuts[..count].copy_from_slice(&cuts[..count]);
        }
    }

    /// Fragment `at` becomes those that have left the code.
    pub(super) fn scatter(&mut self, at: usize, count: usize, state: &mut BlockState) {
        let number = self.fragments[at].frame;
        let mut gone = ArrayVec::<Cut, 32>::new();
        for cut_number in 0..count {
            let cut = self
                .native
                .as_ref()
                .map_or_else(Cut::default, |run| run.context.cuts[cut_number]);
            let place = match cut_number {
                0 => at,
                _ => {
                    self.frames[number as usize].refs += 1;
                    let one = self.fragments[at].clone();
                    self.fragments.push(one);
                    self.fragments.len() - 1
                }
            };
            let fragment = &mut self.fragments[place];
            (fragment.pc, fragment.state) = (cut.pc & !ENDED, State::Ready);
            fragment.mask = [0; MAX_WARPS];
            fragment.mask[0] = cut.lanes;
            if cut.pc & ENDED != 0 {
                gone.push(cut);
            }
        }
        for cut in gone {
            let of = |f: &Fragment| f.frame == number && f.pc == cut.pc & !ENDED && f.mask[0] == cut.lanes;
            if let Some(at) = self.fragments.iter().position(of) {
                self.exit(at, only(cut.lanes), cut.pc & !ENDED);
                state.barriers.left(self.first_warp(), self.live_by_warp());
            }
        }
    }
}

/// Where warps stand that ran abreast.
#[derive(Clone, Copy, Debug)]
pub struct Stand {
    /// Instructions that it took.
    pub spent: i64,
    pub all_ended: bool,
    /// Those that have, by bit.
    pub ended: u32,
    /// Of [`Context`].
    pub met: Pc,
    pub since: Pc,
    pub came: Pc,
    /// In how many places lanes of the one stand whose turn it is.
    pub cuts: usize,
    /// It could enter.
    pub entered: bool,
    /// Whose turn it is.
    pub at: Option<usize>,
}

impl Run {
    /// Calls code, prepared for it.
    ///
    /// # Safety
    /// The code is the one for which this was prepared, and has this entry; what the context points to lives until it returns.
    #[inline(always)]
    unsafe fn call(&mut self, native: &Native, entry: u32, lanes: u32) -> u32 {
        let version = AddressSpace::get().version();
        if let Some(extents) = &self.extents
            && extents.version.load(Ordering::Relaxed) != version
        {
            // SAFETY: the thread is here, and not in code.
            unsafe { &mut *extents.extents.get() }.fill(Extent::NONE);
            extents.version.store(version, Ordering::Relaxed);
        }
        self.context.cut_count = 0;
        let context = std::ptr::from_mut::<Run>(self).cast::<Context>();
        // SAFETY: the caller promises it.
        unsafe { (native.run)(context, entry, lanes) }
    }

    #[cold]
    fn new(block: &Env<'_>, first_thread: u32) -> Box<Run> {
        let local = block.local + u64::from(first_thread) * u64::from(block.local_stride);
        Box::new(Run {
            context: Context {
                step: step_for,
                enter,
                leave,
                product,
                lane: lane_call,
                calls: std::ptr::null(),
                extents: std::ptr::null_mut(),
                shared: block.shared,
                shared_start: u64::from(block.shared_start()),
                shared_bytes: u64::from(block.shared_bytes),
                cluster_shared: block.cluster_shared(),
                local_stride: u64::from(block.local_stride),
                frame: 0,
                locals: block.local,
                local_bytes: block.local_bytes,
                param: block.param,
                param_bytes: u64::from(block.param_bytes),
                same: std::ptr::null_mut(),
                together: 0,
                warp: std::ptr::null_mut(),
                abreast: 0,
                first: std::ptr::null_mut(),
                straight: u64::from(matches!(block.env.launch().block, [_, 1, 1])),
                only: u64::from(block.env.launch().block.iter().product::<u32>() <= WARP as u32),
                ended: 0,
                gaps: 0,
                met: NOWHERE,
                since: NOWHERE,
                came: NOWHERE,
                packed: 0,
                apart: 0,
                limit: Pc::MAX,
                floor: 0,
                stops: 0,
                looked: 0,
                copying: 0,
                turns: i64::MAX,
                budget: 0,
                paid: 0,
                spun: 0,
                cut_count: 0,
                cuts: [Cut::default(); 32],
                scratch: [0; SCRATCH],
                zeros: [0; 4],
            },
            warp: Box::new(UnsafeCell::new(Warp {
                regs: std::ptr::null_mut(),
                saved: std::ptr::null_mut(),
                local,
                next: std::ptr::null_mut(),
                bit: 0,
                first_thread,
                live: 0,
                left: 0,
            })),
            first: std::ptr::null_mut(),
            // SAFETY: only the lifetime changes; nobody follows it before it is set again.
            block: unsafe { std::mem::transmute::<*const Env<'_>, *const Env<'static>>(block) },
            state: std::ptr::null_mut(),
            exec: std::ptr::null(),
            native: std::ptr::null(),
            frame: 0,
            marches: false,
            pc: 0,
            fault: None,
            panic: None,
            extents: None,
            saved: Vec::new(),
        })
    }
}

/// An operation on copies of registers.
extern "C" fn lane_call(call: *const LaneCall, scratch: *mut u8) {
    // SAFETY: code passes one of the calls that were made with it, and scratch memory laid out as its operands say; kernels
    // are of the level that the CPU was found to have, and do not panic.
    unsafe { ((*call).run)(scratch, &(*call).operands, &(*call).mask) }
}

/// A product of matrices, on copies of registers.
extern "C" fn product(context: *mut Context, number: u32, registers: *mut u8) -> u32 {
    // SAFETY: code passes the context that it was given, which is the first field of a `Run`, and holds no reference to it; whoever has
    // entered the code holds the others until it returns.
    let (native, block) = unsafe { (&*(*context.cast::<Run>()).native, &*(*context.cast::<Run>()).block) };
    let op = &native.products[number as usize];
    let (count, results) = (op.elements(), op.registers(op.d));
    // SAFETY: code passes memory for all of these registers, aligned as vectors are, which nobody else has.
    let registers = unsafe { std::slice::from_raw_parts_mut(registers.cast::<[u32; WARP]>(), count + results) };
    let (registers, results) = registers.split_at_mut(count);
    match catch_unwind(AssertUnwindSafe(|| {
        joint::matrix_product(op, block.env.launch().tensor, registers, results);
    })) {
        Ok(()) => step::DONE,
        Err(panic) => {
            // SAFETY: the run is the code's, which waits, and nobody else looks at it.
            unsafe { (*context.cast::<Run>()).panic = Some(panic) };
            step::FAULT
        }
    }
}

/// Instructions of the interpreter's code, one after the other.
extern "C" fn step_for(context: *mut Context, regs: *mut u8, pc: Pc, lanes: u32, stretch: u32) -> u32 {
    // SAFETY: code passes the context that it was given, which is the first field of a `Run`, and holds no reference to it.
    let run = unsafe { &mut *context.cast::<Run>() };
    run.pc = pc;
    match catch_unwind(AssertUnwindSafe(|| run.steps(regs, pc, lanes, stretch))) {
        Ok(answer) => answer,
        Err(panic) => {
            run.panic = Some(panic);
            step::FAULT
        }
    }
}

/// Lanes come into code.
extern "C" fn enter(context: *mut Context, regs: *const u8, unit: u32, lanes: u32) -> u32 {
    // SAFETY: code passes the context that it was given, which is the first field of a `Run`, and holds no reference to it; the
    // code that runs lives until it returns.
    let (context, native) = unsafe { (&*context, &*(*context.cast::<Run>()).native) };
    // SAFETY: code runs one of the warps that it was given, all of which are there until it returns.
    let warp = unsafe { &mut *context.warp };
    let proved = context.together == together::UNTOUCHED;
    // Who comes back to where he was finds everything as he left it.
    if std::mem::take(&mut warp.left) == native.id && proved {
        return 1;
    }
    let saved = warp.saved;
    let Some(stand) = native.stands.get(unit as usize) else {
        return 0;
    };
    // SAFETY: code passes the window that it was given, of the function for which both were made; places are as long as it says.
    unsafe { moves::enter(&stand.moves, regs, saved, lanes, proved) }.into()
}

/// Lanes leave code.
extern "C" fn leave(context: *mut Context, regs: *mut u8, unit: u32, lanes: u32) {
    // SAFETY: code passes the context that it was given, the first field of a `Run`, and holds no reference to it; the code that
    // runs lives until it returns.
    let (context, native) = unsafe { (&mut *context, &*(*context.cast::<Run>()).native) };
    // SAFETY: code runs one of the warps that it was given, all of which are there until it returns.
    let warp = unsafe { &mut *context.warp };
    let saved = warp.saved;
    let Some(stand) = native.stands.get(unit as usize).filter(|_| lanes != 0) else {
        return;
    };
    // SAFETY: window and places are those of the warp that runs, and as long as the code's own table says.
    unsafe { moves::leave(&stand.moves, regs, saved, lanes) };
    let at = context.cut_count as usize;
    warp.left = if at == 0 { native.id } else { 0 };
    context.cuts[at] = Cut { pc: stand.pc, lanes };
    context.cut_count += 1;
}

impl Run {
    fn steps(&mut self, regs: *mut u8, pc: Pc, lanes: u32, stretch: u32) -> u32 {
        // SAFETY: whoever has entered the code holds both until it returns, and the warps that it runs.
        let (exec, native, saved) = unsafe { (&*self.exec, &*self.native, (*self.context.warp).saved) };
        let stretch = &native.stretches[stretch as usize];
        handed::note(exec, pc, stretch.count);
        // SAFETY: slots are the window's of the function for which the code was made, and places as long as it says.
        unsafe { moves::leave(&stretch.operands, regs, saved, lanes) };
        let mut sites = &stretch.sites[..];
        for at in 0..stretch.count {
            self.pc = pc + at;
            let guard = exec.code[self.pc as usize].guard;
            let mut lanes = lanes;
            if stretch.guarded && guard.offset != NONE {
                // SAFETY: the guard is a predicate slot of the window, a word for the one warp.
                let holds = unsafe { *regs.add(guard.offset as usize).cast::<u32>() };
                lanes &= if guard.negated { !holds } else { holds };
            }
            let own = sites.iter().take_while(|&&(place, _)| place == at).count();
            let (own, later) = sites.split_at(own);
            sites = later;
            if lanes != 0 {
                let answer = self.step(regs, self.pc, lanes, own);
                if answer != step::DONE {
                    return answer;
                }
            }
        }
        // SAFETY: results have slots and places of the same window and the same memory as the operands.
        unsafe { moves::enter(&stretch.results, regs, saved, lanes, true) };
        step::DONE
    }

    fn step(&mut self, regs: *mut u8, pc: Pc, lanes: u32, sites: &[(u32, u32)]) -> u32 {
        let mut mask = [0; MAX_WARPS];
        mask[0] = lanes;
        // SAFETY: code runs one of the warps that it was given, all of which are there until it returns.
        let (first_thread, alive) = unsafe { ((*self.context.warp).first_thread, (*self.context.warp).live) };
        let mut live = [0; MAX_WARPS];
        live[0] = alive;
        // SAFETY: whoever has entered the code holds all three until it returns, and does nothing with them meanwhile.
        let (exec, block, state) = unsafe { (&*self.exec, &*self.block, &mut *self.state) };
        let mut cx = Cx {
            regs,
            mask: Mask { warps: 1, lanes: mask },
            block,
            first_thread,
            frame: self.frame,
            affine: std::ptr::null(),
            run: crate::simt::machine::LANES,
            forced: false,
            fault: None,
            function: &exec.function,
            span: Span::default(),
            operation: None,
        };
        let cx = &mut cx;
        let machine = exec.machine;
        let done = match &exec.code[pc as usize].code {
            Code::Lane { kernel, operands } => {
                // SAFETY: the operands are slots of the window, which `cx` has; kernels are of the CPU's level.
                unsafe { (kernel.masked)(cx.regs, operands, &cx.mask) };
                true
            }
            Code::Inspected(inspected) => {
                // SAFETY: the operands are slots of the window, which `cx` has.
                unsafe { inspected.run(false, cx) };
                true
            }
            Code::Load { run, mem } => {
                if mem.ordering != program::Ordering::Weak {
                    self.context.looked = 1;
                }
                // SAFETY: `mem` has slots of the window, which `cx` has.
                unsafe { run(cx, mem) && self.remember(cx, mem, sites, READ) }
            }
            // SAFETY: `mem` has slots of the window, which `cx` has.
            Code::Store { run, mem } => unsafe { run(cx, mem) && self.remember(cx, mem, sites, WRITE) },
            Code::Atomic { run, atom } => {
                if !atom.dst.is_empty() {
                    self.context.looked = 1;
                }
                // SAFETY: `atom` has slots of the window, which `cx` has.
                unsafe { run(cx, atom) && self.remember(cx, &atom.mem, sites, READ | WRITE) }
            }
            Code::Rare(op) if let program::Op::Joint(joint) = &**op => {
                // What lanes hold that do not run is not in the window.
                if lanes != u32::MAX {
                    return step::MISSING;
                }
                // SAFETY: `joint` is of the code in whose window `cx` is.
                cx.fault = match unsafe { (machine.joint)(joint, cx, state) } {
                    joint::Step::Done => None,
                    joint::Step::Fault(fault) => Some(fault),
                    joint::Step::Pass | joint::Step::Wait { .. } => unreachable!("a warp alone waits for nobody"),
                };
                // SAFETY: likewise.
                cx.fault.is_none() && unsafe { self.remember_tile(cx, joint, sites) }
            }
            Code::Rare(op) => {
                if let Some(members) = collective::members(op) {
                    // SAFETY: the member mask is a number or a slot of the window, which `cx` has.
                    let ready = unsafe { warp::gathered(cx, members, &live) };
                    if ready != cx.mask.lanes {
                        return step::MISSING;
                    }
                }
                state.touched = true;
                // SAFETY: `op` is of the code in whose window `cx` is.
                cx.fault = unsafe { collective::execute(op, cx, machine, state) };
                self.note_copies();
                // SAFETY: likewise.
                cx.fault.is_none() && unsafe { self.remember_copy(cx, op, sites) && self.remember_row(cx, op, sites) }
            }
            Code::Within { op, affine } => {
                // SAFETY: `op` is of the code in whose window `cx` is. That code names no values that follow the lane's number.
                cx.fault = unsafe { within::check(op, *affine, cx) };
                // SAFETY: likewise.
                cx.fault.is_none() && unsafe { self.remember_object(cx, op, sites) }
            }
            Code::Branch { .. }
            | Code::BranchIndexed { .. }
            | Code::BarrierAll { .. }
            | Code::Call(_)
            | Code::Shadow { .. }
            | Code::Return
            | Code::Exit => unreachable!("code is left before these"),
        };
        if done {
            return step::DONE;
        }
        self.fault = cx.fault.take();
        step::FAULT
    }

    /// Looks up where an access that was carried out for the lanes of the mask may go without being asked; always `true`.
    fn remember(&self, cx: &Cx<'_>, mem: &MemOp, sites: &[(u32, u32)], bits: u8) -> bool {
        self.learn(cx, address(cx, mem), sites, bits);
        true
    }

    /// What accesses of an instruction's sites may reach without being asked, around an address.
    fn learn(&self, cx: &Cx<'_>, address: u64, of: &[(u32, u32)], bits: u8) {
        // SAFETY: the code that runs is this one's, which lives until it returns.
        let sites = &unsafe { &*self.native }.sites;
        for &(_, site) in of {
            let Some(reach) = sites.get(site as usize) else {
                continue;
            };
            // SAFETY: there are two extents for each site, which the thread's code alone looks at; it waits for this.
            let (now, before) = unsafe {
                let now = self.context.extents.add(site as usize);
                (&mut *now, &mut *now.add(sites.len()))
            };
            // By turns in one and in the other, as where blocks choose between two arrays.
            std::mem::swap(now, before);
            if address.wrapping_sub(now.low) >= now.room {
                let (low, length) = AddressSpace::get().around(cx.block.view, address, bits);
                *now = Extent {
                    low,
                    room: (length + 1).saturating_sub(*reach),
                };
            }
        }
    }

    /// Code asks whether there are copies of `cp.async` to be waited for.
    fn note_copies(&mut self) {
        // SAFETY: who enters code has set the state before, and holds it until the code returns.
        let fresh = unsafe { (*self.state).asynchronous.copies.is_fresh() };
        self.context.copying = u64::from(!fresh);
    }

    /// Looks up where a copy of `cp.async` that was carried out for the lanes of the mask may read without being asked; always `true`.
    ///
    /// # Safety
    /// Slots of `op` lie in the running window.
    unsafe fn remember_copy(&self, cx: &Cx<'_>, op: &program::Op<Slot>, sites: &[(u32, u32)]) -> bool {
        if let program::Op::CopyAsync {
            src, bytes, src_size, ..
        } = op
        {
            let reads = |lane: &usize| match *src_size {
                // SAFETY: the caller promises it.
                Some(size) => unsafe { read(cx.regs, size, *lane) >= u64::from(*bytes) },
                None => true,
            };
            if let Some(lane) = bits(cx.mask.lanes[0]).find(reads) {
                // SAFETY: likewise.
                let register = src.register.map_or(0, |slot| unsafe { read(cx.regs, slot, lane) });
                self.learn(cx, register.wrapping_add(src.offset as u64), sites, READ);
            }
        }
        true
    }

    /// Where a tile lies, all of whose lanes give one address. Always `true`.
    ///
    /// # Safety
    /// Slots of `op` lie in the running window.
    unsafe fn remember_tile(&self, cx: &Cx<'_>, op: &joint::Operands, sites: &[(u32, u32)]) -> bool {
        if let (Joint::Matrix(what), [address]) = (op.what, &op.addresses[..]) {
            let kind = match what {
                Matrix::LoadTile(_) => READ,
                Matrix::StoreTile(_) => WRITE,
                Matrix::LoadRows(_) | Matrix::StoreRows(_) | Matrix::Transpose | Matrix::Multiply(_) => return true,
            };
            // SAFETY: the caller promises it.
            let register = address.register.map_or(0, |slot| unsafe { read(cx.regs, slot, 0) });
            self.learn(cx, register.wrapping_add(address.offset as u64), sites, kind);
        }
        true
    }

    /// The texture from which texels were read by their numbers, if it is a row of words in ordinary memory: its next texels code loads itself.
    /// Always `true`.
    ///
    /// # Safety
    /// Slots of `op` lie in the running window.
    unsafe fn remember_row(&self, cx: &Cx<'_>, op: &program::Op<Slot>, of: &[(u32, u32)]) -> bool {
        if let (program::Op::Texture(op), Some(&(_, site))) = (op, of.first())
            // SAFETY: the caller promises it.
            && let Some(row) = unsafe { texture::row(op, cx) }
        {
            let found = [
                Extent {
                    low: row.handle,
                    room: row.address,
                },
                Extent {
                    low: row.width.into(),
                    room: u64::from(row.channels) | u64::from(row.one) << 32,
                },
            ];
            for (at, extent) in (site as usize..).zip(found) {
                // SAFETY: there is an extent for each site, and such a read has two, which the thread's code alone looks at; it waits
                // for this.
                unsafe { *self.context.extents.add(at) = extent };
            }
        }
        true
    }

    /// Looks up where accesses that were found to stay in an object stay in it without being asked, by the same pointer. A pointer into
    /// no allocation asks nothing of them. Always `true`.
    ///
    /// # Safety
    /// Slots of `op` lie in the running window.
    unsafe fn remember_object(&self, cx: &Cx<'_>, op: &program::Within<Slot>, of: &[(u32, u32)]) -> bool {
        // SAFETY: the code that runs is this one's, which lives until it returns.
        let sites = &unsafe { &*self.native }.sites;
        let Some((site, reach)) = of
            .first()
            .and_then(|&(_, site)| Some((site, sites.get(site as usize)?)))
        else {
            return true;
        };
        // SAFETY: the caller promises it.
        let pointed = unsafe { within::pointed(op, cx) };
        if let Some((pointer, object)) = pointed {
            let (start, end) = object.unwrap_or((0, u64::MAX));
            let found = Extent {
                low: start,
                room: (end - start).saturating_add(1).saturating_sub(*reach),
            };
            let of = Extent { low: pointer, room: 0 };
            // SAFETY: there is an extent for each site, and such a check has two, which the thread's code alone looks at; it waits
            // for this.
            unsafe {
                *self.context.extents.add(site as usize) = found;
                *self.context.extents.add(site as usize + 1) = of;
            }
        }
        true
    }
}

/// The address of the first lane of the mask.
fn address(cx: &Cx<'_>, mem: &MemOp) -> u64 {
    let register = if mem.register == NONE {
        0
    } else {
        let slot = Slot {
            offset: mem.register,
            width: if mem.narrow { Width::B32 } else { Width::B64 },
        };
        // SAFETY: the address register is a slot of the window, which `cx` has.
        unsafe { read(cx.regs, slot, first_lane(&cx.mask.lanes)) }
    };
    register.wrapping_add(mem.offset as u64)
}

/// Lanes of a bundle's only warp.
pub(super) fn only(lanes: u32) -> [u32; MAX_WARPS] {
    let mut all = [0; MAX_WARPS];
    all[0] = lanes;
    all
}
