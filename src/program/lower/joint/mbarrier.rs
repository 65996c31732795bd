//! Lowering of `mbarrier` and its family: [`Op`] says which registers each has.

use crate::isa::joint::Joint;
use crate::isa::joint::mbarrier::Op;
use crate::isa::lanes::Width;
use crate::program::check::tree::{Instruction, Operand};
use crate::program::ir::{Address, Guard, JointOp, Op as Operation, Reg};
use crate::program::lower::operand::{Fit, miscounted};
use crate::program::lower::{Lower, Outcome};

impl Lower<'_> {
    pub(super) fn mbarrier(&mut self, op: Op, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let at = instruction
            .operands
            .iter()
            .position(|operand| matches!(operand, Operand::Address(_)));
        let (before, after) = match at {
            Some(at) => (&instruction.operands[..at], &instruction.operands[at + 1..]),
            // `pending_count d, state`
            None => instruction.operands.split_at(1.min(instruction.operands.len())),
        };
        let addresses: Box<[Address]> = match at {
            Some(at) => {
                let space = instruction.form.space();
                Box::new([self.address(&instruction.operands[at], space)?])
            }
            None => Box::new([]),
        };
        let (src, dst) = match op {
            Op::Init { .. } => {
                let [count] = after else {
                    return Err(miscounted(instruction));
                };
                (vec![self.word_of(count)?], vec![])
            }
            Op::Invalidate | Op::CopiesArrive { .. } => (vec![], vec![]),
            Op::CheckLayout { .. } => (vec![], vec![self.result(before.first(), Width::Pred)?]),
            Op::Transactions { .. } => (self.words_of(after)?, vec![]),
            Op::Arrive(arrive) => {
                // The count may be left out, in front of the blocks.
                let named = after.len() - usize::from(arrive.multicast).min(after.len());
                let mut src = self.words_of(after)?;
                if named == 0 {
                    let one = self.constant(Width::B32, 1);
                    src.insert(0, self.body.reg(one));
                }
                (src, vec![self.result(before.first(), Width::B64)?])
            }
            Op::Wait(wait) => {
                let [phase, ..] = after else {
                    return Err(miscounted(instruction));
                };
                let width = if wait.parity { Width::B32 } else { Width::B64 };
                let phase = self.source(phase, width, Fit::Exact, false)?;
                let phase = self.body.reg(phase);
                let (complete, report) = match before.first() {
                    Some(Operand::Pair(complete, report)) => (Some(&**complete), Some(&**report)),
                    complete => (complete, None),
                };
                let dst = vec![
                    self.result(complete, Width::Pred)?,
                    self.result(report, Width::Pred)?,
                    self.result(before.get(1), Width::B16)?,
                ];
                (vec![phase], dst)
            }
            Op::PendingCount => {
                let [state] = after else {
                    return Err(miscounted(instruction));
                };
                let state = self.source(state, Width::B64, Fit::Exact, false)?;
                let state = self.body.reg(state);
                (vec![state], vec![self.result(before.first(), Width::B32)?])
            }
        };
        let operation = JointOp {
            what: Joint::Mbarrier(op),
            addresses,
            src: src.into(),
            dst: dst.into(),
            objects: Box::new([]),
        };
        self.push(guard, instruction.span, Operation::Joint(Box::new(operation)));
        Ok(())
    }

    /// A source of 32 bits.
    pub(super) fn word_of(&mut self, operand: &Operand) -> Outcome<Reg> {
        let register = self.source(operand, Width::B32, Fit::Exact, false)?;
        Ok(self.body.reg(register))
    }

    fn words_of(&mut self, operands: &[Operand]) -> Outcome<Vec<Reg>> {
        operands.iter().map(|operand| self.word_of(operand)).collect()
    }

    /// A result that may be left out or thrown away.
    fn result(&mut self, operand: Option<&Operand>, width: Width) -> Outcome<Option<Reg>> {
        match operand {
            None | Some(Operand::Sink(_)) => Ok(None),
            Some(operand) => {
                let register = self.destination(operand, width, Fit::Wider)?;
                Ok(Some(self.body.reg(register)))
            }
        }
    }
}
