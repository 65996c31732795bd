//! Lowering of `wgmma` and its family.

use crate::isa::joint::Joint;
use crate::isa::joint::warpgroup::{Mma, Op};
use crate::isa::lanes::Width;
use crate::isa::mma::{Accumulator, Element};
use crate::program::check::tree::{Instruction, Operand};
use crate::program::ir::joint::warpgroup::Multiply;
use crate::program::ir::{Guard, JointOp, Op as Operation, Reg};
use crate::program::lower::operand::{Fit, miscounted};
use crate::program::lower::{Lower, Outcome};

/// Those that are read, and those that are written.
type Registers = (Box<[Reg]>, Box<[Option<Reg>]>);

impl Lower<'_> {
    pub(super) fn warpgroup(&mut self, op: Op, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let (src, dst) = match op {
            Op::Mma(mma) => self.warpgroup_multiply(mma, instruction)?,
            Op::Fence | Op::Commit => ([].into(), [].into()),
            Op::Wait => {
                let [pending] = self.operands(instruction)?;
                let pending = self.joint_source(pending, Width::B32)?;
                ([pending].into(), [].into())
            }
        };
        let joint = JointOp {
            what: Joint::Warpgroup(op),
            addresses: [].into(),
            src,
            dst,
            objects: Box::new([]),
        };
        self.push(guard, instruction.span, Operation::Joint(Box::new(joint)));
        Ok(())
    }

    /// `d, a, b{, metadata, selector}, scale-d{, scale-a, scale-b}{, trans-a}{, trans-b}`
    fn warpgroup_multiply(&mut self, mma: Mma, instruction: &Instruction<'_>) -> Outcome<Registers> {
        let [d, a, b, rest @ ..] = &instruction.operands[..] else {
            return Err(miscounted(instruction));
        };
        let mut rest = rest.iter();
        let mut next = || rest.next().ok_or_else(|| miscounted(instruction));
        let metadata = match mma.sparse {
            true => Some((next()?, next()?)),
            false => None,
        };
        let scale_d = next()?;
        let integers = mma.d == Accumulator::S32;
        let signs = match integers {
            true => None,
            false => Some((next()?, next()?)),
        };
        let halves = matches!(mma.a, Element::F16 | Element::Bf16);
        let descriptor = a.elements().is_none();
        let transpose_a = match halves && descriptor {
            true => Some(next()?),
            false => None,
        };
        let transpose_b = match halves {
            true => Some(next()?),
            false => None,
        };
        let count = mma.accumulators();
        let sum = self.joint_sources(d.list(), Width::B32)?;
        let dst = self.destinations(d, count, Width::B32, Fit::Exact)?;
        if sum.len() != count {
            return Err(miscounted(instruction));
        }
        let zero = self.joint_constant(Width::B32, 0);
        let one = self.joint_constant(Width::B32, 1);
        let or = |lower: &mut Self, operand: Option<&Operand>, other: Reg| {
            operand.map_or(Ok(other), |operand| lower.joint_source(operand, Width::B32))
        };
        let src = Multiply {
            d: &sum,
            b: &self.joint_source(b, Width::B64)?,
            scale_d: &self.joint_source(scale_d, Width::Pred)?,
            scale_a: &or(self, signs.map(|signs| signs.0), one)?,
            scale_b: &or(self, signs.map(|signs| signs.1), one)?,
            transpose_a: &or(self, transpose_a, zero)?,
            transpose_b: &or(self, transpose_b, zero)?,
            metadata: &or(self, metadata.map(|metadata| metadata.0), zero)?,
            selector: &or(self, metadata.map(|metadata| metadata.1), zero)?,
            a: &match descriptor {
                true => [self.joint_source(a, Width::B64)?].into(),
                false => self.joint_sources(a.list(), Width::B32)?,
            },
        };
        let dst = dst.into_iter().map(|reg| reg.map(|reg| self.body.reg(reg))).collect();
        Ok((src.sources(), dst))
    }

    /// An operand at its width, as a register.
    pub(super) fn joint_source(&mut self, operand: &Operand, width: Width) -> Outcome<Reg> {
        let register = self.source(operand, width, Fit::Exact, false)?;
        Ok(self.body.reg(register))
    }

    pub(super) fn joint_sources(&mut self, operands: &[Operand], width: Width) -> Outcome<Box<[Reg]>> {
        operands
            .iter()
            .map(|operand| self.joint_source(operand, width))
            .collect()
    }

    /// A constant as a register.
    pub(super) fn joint_constant(&mut self, width: Width, value: u128) -> Reg {
        let register = self.constant(width, value);
        self.body.reg(register)
    }
}
