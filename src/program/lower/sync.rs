//! Barriers and what the lanes of a warp do together (PTX ISA, Parallel Synchronization and Communication).

use super::operand::{Fit, miscounted, unexpected};
use super::{Lower, Outcome, width_of};
use crate::isa::lanes::Width;
use crate::isa::operation::Barrier;
use crate::program::check::tree::{Instruction, Operand};
use crate::program::ir::{BarrierOp, Guard, Op, ReduxOp, Reg, ShuffleMode, Value, VoteMode};
use crate::ptx::ast::Type;
use crate::ptx::diagnostic::Diagnostic;

impl Lower<'_> {
    /// `bar{.cta}.sync a{, b}`, `.arrive a, b`, `.red.op d, a{, b}, {!}c`; `barrier` alike.
    pub fn barrier(&mut self, barrier: Barrier, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let operands = &instruction.operands[..];
        let (mut dst, mut pred) = (None, None);
        let op = barrier.op;
        let result = match op {
            BarrierOp::Sync | BarrierOp::Arrive => None,
            BarrierOp::Popc => Some(Width::B32),
            BarrierOp::And | BarrierOp::Or => Some(Width::Pred),
        };
        let ids = match (result, operands) {
            (Some(width), [first, ids @ .., last]) => {
                let register = self.destination(first, width, Fit::Exact)?;
                dst = Some(self.body.reg(register));
                let (register, negated) = self.signed_predicate(last)?;
                pred = Some((self.body.reg(register), negated));
                ids
            }
            (Some(_), _) => &[],
            (None, ids) => ids,
        };
        let (first, threads) = match ids {
            [id] => (id, None),
            [id, threads] => (id, Some(threads)),
            _ => return Err(miscounted(instruction)),
        };
        let id = self.value(first)?;
        if let Value::Immediate(id) = id
            && id > 15
        {
            return Err(Diagnostic::error(first.span(), "a block has barriers 0 to 15"));
        }
        let threads = threads.map(|threads| self.value(threads)).transpose()?;
        self.push(
            guard,
            instruction.span,
            Op::Barrier {
                op,
                aligned: barrier.aligned,
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
        instruction: &Instruction<'_>,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        let (first, members) = split_members(sync, instruction)?;
        let [d, a, b, c] = first else {
            return Err(miscounted(instruction));
        };
        let (a, b, c) = (self.word(a)?, self.word(b)?, self.word(c)?);
        let members = members.map(|members| self.value(members)).transpose()?;
        let (dst, dst_pred) = self.with_predicate(d, Width::B32)?;
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
    pub fn vote(
        &mut self,
        mode: VoteMode,
        sync: bool,
        instruction: &Instruction<'_>,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        let width = match mode {
            VoteMode::All | VoteMode::Any | VoteMode::Uni => Width::Pred,
            VoteMode::Ballot => Width::B32,
        };
        let (first, members) = split_members(sync, instruction)?;
        let [d, a] = first else {
            return Err(miscounted(instruction));
        };
        let (pred, negated) = self.signed_predicate(a)?;
        let members = members.map(|members| self.value(members)).transpose()?;
        let dst = self.destination(d, width, Fit::Exact)?;
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
    pub fn match_lanes(
        &mut self,
        all: bool,
        ty: Type,
        instruction: &Instruction<'_>,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        let [d, a, members] = self.operands(instruction)?;
        let a = self.source(a, width_of(ty), Fit::Exact, false)?;
        let a = self.body.reg(a);
        let members = self.value(members)?;
        let (dst, dst_pred) = self.with_predicate(d, Width::B32)?;
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
    pub fn redux(&mut self, op: ReduxOp, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let [d, a, members] = self.operands(instruction)?;
        let float = matches!(op, ReduxOp::MinF { .. } | ReduxOp::MaxF { .. });
        let a = self.source(a, Width::B32, Fit::Exact, float)?;
        let members = self.value(members)?;
        let dst = self.destination(d, Width::B32, Fit::Exact)?;
        let (dst, a) = (self.body.reg(dst), self.body.reg(a));
        self.push(guard, instruction.span, Op::Redux { op, dst, a, members });
        Ok(())
    }

    /// `elect.sync d|p, members`
    pub fn elect(&mut self, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let [d, members] = self.operands(instruction)?;
        let members = self.value(members)?;
        let Operand::Pair(first, second) = d else {
            return unexpected(d);
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

/// The mask of members behind the other operands, which the forms without `.sync` do not have.
fn split_members<'i>(sync: bool, instruction: &'i Instruction<'_>) -> Outcome<(&'i [Operand], Option<&'i Operand>)> {
    match (sync, instruction.operands.split_last()) {
        (true, Some((members, first))) => Ok((first, Some(members))),
        (true, None) => Err(miscounted(instruction)),
        (false, _) => Ok((&instruction.operands, None)),
    }
}
