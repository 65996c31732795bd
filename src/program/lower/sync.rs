//! Barriers and what the lanes of a warp do together (PTX ISA, Parallel Synchronization and Communication).

use super::operand::Fit;
use super::{Lower, Outcome, width_of};
use crate::isa::lanes::Width;
use crate::isa::operation::Barrier;
use crate::program::ir::{BarrierOp, Guard, Op, ReduxOp, Reg, ShuffleMode, Value, VoteMode};
use crate::ptx::ast::{Instruction, Operand, Type};
use crate::ptx::diagnostic::Diagnostic;

impl Lower<'_> {
    /// `bar{.cta}.sync a{, b}`, `.arrive a, b`, `.red.op d, a{, b}, {!}c`; `barrier` alike.
    pub fn barrier(&mut self, barrier: Barrier, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        let operands = &instruction.operands[..];
        let (mut dst, mut pred) = (None, None);
        let op = barrier.op;
        let result = match op {
            BarrierOp::Sync | BarrierOp::Arrive => None,
            BarrierOp::Popc => Some(Width::B32),
            BarrierOp::And | BarrierOp::Or => Some(Width::Pred),
        };
        let ids = match (op, result) {
            (_, Some(width)) => {
                self.operand_count(instruction, 3, 4)?;
                let register = self.destination(&operands[0], width, Fit::Exact)?;
                dst = Some(self.body.reg(register));
                let last = operands.len() - 1;
                let (register, negated) = self.signed_predicate(&operands[last])?;
                pred = Some((self.body.reg(register), negated));
                &operands[1..last]
            }
            (BarrierOp::Arrive, None) => {
                self.operand_count(instruction, 2, 2)?;
                operands
            }
            (_, None) => {
                self.operand_count(instruction, 1, 2)?;
                operands
            }
        };
        let id = self.value(&ids[0])?;
        if let Value::Immediate(id) = id
            && id > 15
        {
            return Err(Diagnostic::error(ids[0].span(), "a block has barriers 0 to 15"));
        }
        let threads = ids.get(1).map(|o| self.value(o)).transpose()?;
        self.push(
            guard,
            instruction.span,
            Op::Barrier {
                op,
                id,
                threads,
                dst,
                pred,
            },
        );
        Ok(())
    }

    /// `d` or `d|p`: the register and the predicate, either of which may be `_`.
    fn with_predicate(&mut self, operand: &Operand, width: Width) -> Outcome<(Reg, Option<Reg>)> {
        let (first, second) = match operand {
            Operand::Pair(a, b) => (&**a, Some(&**b)),
            other => (other, None),
        };
        let dst = self.destination(first, width, Fit::Exact)?;
        let dst = self.body.reg(dst);
        let pred = match second {
            None | Some(Operand::Sink(_)) => None,
            Some(operand) => {
                let register = self.destination(operand, Width::Pred, Fit::Exact)?;
                Some(self.body.reg(register))
            }
        };
        Ok((dst, pred))
    }

    fn word(&mut self, operand: &Operand) -> Outcome<Reg> {
        let register = self.source(operand, Width::B32, Fit::Exact, false)?;
        Ok(self.body.reg(register))
    }

    /// `shfl{.sync}.mode.b32 d{|p}, a, b, c{, members}`
    pub fn shuffle(
        &mut self,
        mode: ShuffleMode,
        sync: bool,
        instruction: &Instruction,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        let count = if sync { 5 } else { 4 };
        self.operand_count(instruction, count, count)?;
        let operands = &instruction.operands;
        let a = self.word(&operands[1])?;
        let b = self.word(&operands[2])?;
        let c = self.word(&operands[3])?;
        let members = if sync { Some(self.value(&operands[4])?) } else { None };
        let (dst, dst_pred) = self.with_predicate(&operands[0], Width::B32)?;
        self.push(
            guard,
            instruction.span,
            Op::Shuffle {
                mode,
                dst,
                dst_pred,
                a,
                b,
                c,
                members,
            },
        );
        Ok(())
    }

    /// `vote{.sync}.mode.pred d, {!}a{, members}`, `vote{.sync}.ballot.b32 d, {!}a{, members}`
    pub fn vote(&mut self, mode: VoteMode, sync: bool, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        let count = if sync { 3 } else { 2 };
        self.operand_count(instruction, count, count)?;
        let width = match mode {
            VoteMode::All | VoteMode::Any | VoteMode::Uni => Width::Pred,
            VoteMode::Ballot => Width::B32,
        };
        let operands = &instruction.operands;
        let (pred, negated) = self.signed_predicate(&operands[1])?;
        let members = if sync { Some(self.value(&operands[2])?) } else { None };
        let dst = self.destination(&operands[0], width, Fit::Exact)?;
        let (dst, pred) = (self.body.reg(dst), self.body.reg(pred));
        self.push(
            guard,
            instruction.span,
            Op::Vote {
                mode,
                dst,
                pred: (pred, negated),
                members,
            },
        );
        Ok(())
    }

    /// `match.any.sync.type d, a, members`, `match.all.sync.type d{|p}, a, members`
    pub fn match_lanes(&mut self, all: bool, ty: Type, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        self.operand_count(instruction, 3, 3)?;
        let operands = &instruction.operands;
        let a = self.source(&operands[1], width_of(ty), Fit::Exact, false)?;
        let a = self.body.reg(a);
        let members = self.value(&operands[2])?;
        let (dst, dst_pred) = self.with_predicate(&operands[0], Width::B32)?;
        self.push(
            guard,
            instruction.span,
            Op::Match {
                all,
                dst,
                dst_pred,
                a,
                members,
            },
        );
        Ok(())
    }

    /// `redux.sync.op.type d, a, members`
    pub fn redux(&mut self, op: ReduxOp, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        self.operand_count(instruction, 3, 3)?;
        let float = matches!(op, ReduxOp::MinF { .. } | ReduxOp::MaxF { .. });
        let operands = &instruction.operands;
        let a = self.source(&operands[1], Width::B32, Fit::Exact, float)?;
        let members = self.value(&operands[2])?;
        let dst = self.destination(&operands[0], Width::B32, Fit::Exact)?;
        let (dst, a) = (self.body.reg(dst), self.body.reg(a));
        self.push(guard, instruction.span, Op::Redux { op, dst, a, members });
        Ok(())
    }

    /// `elect.sync d|p, members`
    pub fn elect(&mut self, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        self.operand_count(instruction, 2, 2)?;
        let operands = &instruction.operands;
        let members = self.value(&operands[1])?;
        let Operand::Pair(first, second) = &operands[0] else {
            return Err(Diagnostic::error(operands[0].span(), "`d|p` is expected"));
        };
        let dst = match &**first {
            Operand::Sink(_) => None,
            other => Some(self.destination(other, Width::B32, Fit::Exact)?),
        };
        let dst_pred = self.destination(second, Width::Pred, Fit::Exact)?;
        let dst = dst.map(|d| self.body.reg(d));
        let dst_pred = self.body.reg(dst_pred);
        self.push(guard, instruction.span, Op::Elect { dst, dst_pred, members });
        Ok(())
    }
}
