//! Instructions that are rare, or after which a fragment does not simply go on.

use crate::isa::lanes::{MAX_WARPS, Mask};
use crate::program::{BarrierOp, Op as Operation};
use crate::simt::cause::Cause;
use crate::simt::machine::barrier::{Arrival, Tally, write_reduction};
use crate::simt::machine::joint::{self, Step};
use crate::simt::machine::slots::first_lane;
use crate::simt::machine::state::State as BlockState;
use crate::simt::machine::{Cx, Env, RawFault, warp};

use super::bundle::{Bundle, Fragment, State};
use super::code::{Code, Executable};
use super::collective;
use super::compile::{Pc, Slot};

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

impl Bundle {
    pub(super) fn rare(
        &mut self,
        (at, pc): (usize, Pc),
        op: &Operation<Slot>,
        full: bool,
        cx: &mut Cx<'_>,
        state: &mut BlockState,
        exec: &Executable,
    ) -> Rare {
        let machine = exec.machine;
        if machine.watched || matches!(op, Operation::Syscall { .. }) {
            cx.span = exec.span(pc);
        }
        match op {
            Operation::Barrier {
                op,
                aligned,
                id,
                threads,
                dst: _,
                pred,
            } => {
                let arrival = Arrival {
                    op: *op,
                    aligned: *aligned,
                    id: *id,
                    threads: *threads,
                    pred: *pred,
                };
                let taken = cx.mask.lanes;
                // SAFETY: the operands are slots of the code that runs, whose window `cx` has.
                cx.mask.lanes = unsafe { arrival.alike(cx) };
                // SAFETY: the operands are slots of the code that runs, whose window `cx` has.
                let id = match unsafe { (machine.barrier)(cx, &mut state.barriers, &arrival) } {
                    Ok(id) => id,
                    Err(fault) => return Rare::Fault(fault),
                };
                let mut at = self.leave(at, taken, pc);
                if cx.mask.lanes != taken {
                    // The others stay here, and come to barriers of their own.
                    self.split(at, cx.mask.lanes, pc, pc);
                    at = self.fragments.len() - 1;
                }
                if *op == BarrierOp::Arrive {
                    self.fragments[at].pc = pc + 1;
                    return if state.barriers.released() {
                        Rare::Barrier
                    } else {
                        Rare::Left
                    };
                }
                self.wait(at, State::Barrier(id));
                Rare::Barrier
            }
            Operation::Nanosleep => Rare::Yield,
            Operation::Trap => Rare::Fault(RawFault {
                cause: Cause::Trap,
                lane: first_lane(&cx.mask.lanes),
                others: 0,
            }),
            // Without a debugger a breakpoint ends the program like a trap (PTX ISA, brkpt).
            Operation::Breakpoint => Rare::Fault(RawFault {
                cause: Cause::Trap,
                lane: first_lane(&cx.mask.lanes),
                others: 0,
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
            Operation::Syscall { which, args, results } => match (machine.syscall)(*which, args, results, cx) {
                Ok(()) => Rare::Long,
                Err(fault) => Rare::Fault(fault),
            },
            other => {
                let members = collective::members(other);
                if machine.watched
                    && let Some(members) = members
                {
                    // SAFETY: the member mask is a number or a slot of the code that runs, whose window `cx` has.
                    unsafe { self.tell_members(members, false, cx) };
                }
                if let Some(members) = members
                    && !full
                    && !std::mem::take(&mut self.fragments[at].forced)
                {
                    // SAFETY: the member mask is a number or a slot of the code that runs, whose window `cx` has.
                    let ready = unsafe { warp::gathered(cx, members, &self.live) };
                    if ready != cx.mask.lanes {
                        return self.gather((at, pc), other, ready, cx, state, exec);
                    }
                }
                self.together((at, pc), other, cx, state, exec)
            }
        }
    }

    /// Lanes whose partners are all there go on, for warps of a bundle do not wait for each other; the others wait.
    fn gather(
        &mut self,
        (at, pc): (usize, Pc),
        op: &Operation<Slot>,
        ready: [u32; MAX_WARPS],
        cx: &mut Cx<'_>,
        state: &mut BlockState,
        exec: &Executable,
    ) -> Rare {
        let waiting: [u32; MAX_WARPS] = std::array::from_fn(|w| cx.mask.lanes[w] & !ready[w]);
        let at = self.leave(at, cx.mask.lanes, pc);
        self.wait(at, State::Gathering);
        if ready != [0; MAX_WARPS] {
            self.split(at, ready, pc, pc);
            let apart = self.fragments.len() - 1;
            self.fragments[apart].state = State::Ready;
            cx.mask.lanes = ready;
            let rare = self.together((apart, pc), op, cx, state, exec);
            match rare {
                Rare::Next | Rare::Yield => self.fragments[apart].pc = pc + 1,
                Rare::Left => {}
                Rare::Fault(_) | Rare::Long | Rare::Barrier => return rare,
            }
        }
        self.resolve(&waiting, cx, exec.machine.watched);
        Rare::Left
    }

    /// An instruction all of whose partners are there.
    fn together(
        &mut self,
        (at, pc): (usize, Pc),
        op: &Operation<Slot>,
        cx: &mut Cx<'_>,
        state: &mut BlockState,
        exec: &Executable,
    ) -> Rare {
        if exec.machine.watched {
            // SAFETY: `op` is of the code that runs, whose window `cx` has.
            unsafe { self.tell_together(op, cx) };
        }
        if let Operation::Joint(joint) = op {
            cx.forced = std::mem::take(&mut self.fragments[at].forced);
            // SAFETY: `joint` is of the code that runs, whose window `cx` has.
            let step = unsafe { (exec.machine.joint)(joint, cx, state) };
            return self.after((at, pc), step, cx);
        }
        // SAFETY: `op` is of the code that runs, whose window `cx` has.
        match unsafe { collective::execute(op, cx, exec.machine, state) } {
            None => Rare::Next,
            Some(fault) => Rare::Fault(fault),
        }
    }

    /// What became of an instruction that the machine carried out for the lanes of `cx`, at `pc`.
    fn after(&mut self, (at, pc): (usize, Pc), step: Step, cx: &Cx<'_>) -> Rare {
        match step {
            Step::Done => Rare::Next,
            Step::Pass => Rare::Yield,
            Step::Fault(fault) => Rare::Fault(fault),
            Step::Wait { done } => {
                let at = self.leave(at, cx.mask.lanes, pc);
                if done != [0; MAX_WARPS] {
                    self.split(at, done, pc, pc + 1);
                }
                self.wait(at, State::Waiting);
                Rare::Left
            }
        }
    }

    /// Those who wait for something to change try again; `false`: there is none.
    pub fn wake(&mut self) -> bool {
        let mut any = false;
        for f in self.fragments.iter_mut().filter(|f| f.state == State::Waiting) {
            (f.state, any) = (State::Ready, true);
        }
        any
    }

    /// As [`Self::wake`], without what they wait for.
    pub fn go_ahead(&mut self) -> bool {
        let mut any = false;
        for f in self.fragments.iter_mut().filter(|f| f.state == State::Waiting) {
            (f.state, f.forced, any) = (State::Ready, true, true);
        }
        any
    }

    /// What a fragment waits for that tries its instruction again when something has changed, for people.
    pub fn waits_for(&self, f: &Fragment, block: &Env<'_>) -> Option<String> {
        let exec = &self.frames[f.frame as usize].exec;
        let Code::Rare(op) = &exec.code[f.pc as usize].code else {
            return None;
        };
        let Operation::Joint(joint) = &**op else { return None };
        let mut cx = self.context(f, exec, block);
        // SAFETY: the fragment stands at this instruction of its frame, whose window `cx` has.
        Some(unsafe { joint::waits_for(joint, &mut cx, first_lane(&f.mask)) })
    }

    /// Lets everybody who waits at barrier `id` go on; a reduction's result goes to those that asked.
    pub fn release_barrier(&mut self, id: u32, result: &Tally) {
        for f in self.fragments.iter_mut().filter(|f| f.state == State::Barrier(id)) {
            let frame = &self.frames[f.frame as usize];
            if let Code::Rare(op) = &frame.exec.code[f.pc as usize].code
                && let Operation::Barrier { op, dst: Some(dst), .. } = &**op
            {
                let mask = Mask {
                    warps: self.warps,
                    lanes: f.mask,
                };
                // SAFETY: the fragment stands at this instruction of its frame, so `dst` is a slot of the frame's
                // window.
                unsafe { write_reduction(frame.regs(), *dst, *op, result, &mask) };
            }
            f.state = State::Ready;
            f.pc += 1;
        }
    }

    pub(super) fn branch_indexed(
        &mut self,
        at: usize,
        pc: Pc,
        index: Slot,
        targets: &[Pc],
        cx: &Cx<'_>,
    ) -> Result<(), RawFault> {
        let taken = cx.mask.lanes;
        let lane = first_lane(&taken);
        // SAFETY: `index` is a slot of 32 bits of the code that runs, whose window `cx` has, with a value for each
        // lane.
        let at_lane = |l: usize| unsafe { *(cx.regs.add(index.offset as usize) as *const u32).add(l) };
        let chosen = at_lane(lane);
        let Some(&target) = targets.get(chosen as usize) else {
            let why = format!("brx.idx with index {chosen} into a list of {} labels", targets.len());
            return Err(RawFault {
                cause: Cause::IllegalInstruction { why },
                lane,
                others: 0,
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
