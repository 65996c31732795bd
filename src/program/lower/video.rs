//! Video instructions, whose operands have selectors and signs (PTX ISA, Video Instructions), and lane operations that
//! take more than one kernel.

use super::operand::Fit;
use super::scope::Binding;
use super::{Lower, Outcome};
use crate::isa::lanes::Width;
use crate::isa::operation::{Eviction, Policy, PolicyKind};
use crate::isa::video::Opcode;
use crate::isa::{Compute, narrow};
use crate::program::ir::{Guard, Register};
use crate::program::video;
use crate::ptx::ast::{Expr, Instruction, Name, Operand, Type};
use crate::ptx::diagnostic::Diagnostic;

impl Lower<'_> {
    pub fn video(&mut self, opcode: Opcode, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        let is_register = |name: &Name| matches!(self.find(name), Some(Binding::Register { .. }));
        let read = video::read(opcode, instruction, is_register)?;
        let mut src = Vec::with_capacity(3);
        for operand in &read.operands[1..] {
            self.check_kind(operand, Some(Type::U32), Fit::Exact)?;
            src.push(self.source(operand, Width::B32, Fit::Exact, false)?);
        }
        self.check_kind(&read.operands[0], Some(Type::U32), Fit::Exact)?;
        let dst = self.destination(&read.operands[0], Width::B32, Fit::Exact)?;
        self.compute(read.compute, &[dst], &src, guard, instruction.span);
        Ok(())
    }

    /// `cvt.rs.….x4.f32 d, {a, b, e, f}, rbits`: two operations on two numbers each.
    pub fn convert_four(
        &mut self,
        format: narrow::Four,
        relu: bool,
        instruction: &Instruction,
        sources: &[Operand],
        guard: Option<Guard>,
    ) -> Outcome<()> {
        self.operand_count(instruction, 3, 3)?;
        let (to, span) = (&instruction.operands[0], instruction.span);
        if sources.len() != 5 {
            let at = instruction.operands[1].span();
            return Err(Diagnostic::error(at, "four numbers in braces are expected here"));
        }
        let mut src = Vec::with_capacity(5);
        for operand in sources {
            let float = src.len() < 4;
            let ty = if float { Type::F32 } else { Type::B32 };
            self.check_kind(operand, Some(ty), Fit::Wider)?;
            src.push(self.source(operand, Width::B32, Fit::Exact, float)?);
        }
        let random = src[4];
        let nothing = self.constant(Width::B32, 0);
        let above = self.body.register(Width::B32);
        let half = |upper| {
            Compute::Narrow(narrow::Op::RandomFour {
                to: format,
                relu,
                upper,
            })
        };
        self.compute(half(true), &[above], &[src[0], src[1], random, nothing], None, span);
        let op = half(false);
        let width = op.lane().dst[0];
        let dst = self.destination(to, width, Fit::Wider)?;
        let pair: [Register; 4] = [src[2], src[3], random, above];
        if self.width(dst) == width {
            self.compute(op, &[dst], &pair, guard, span);
            return Ok(());
        }
        let result = self.body.register(width);
        self.compute(op, &[result], &pair, None, span);
        self.resize_into(guard, dst, result, false, span)
    }

    /// `createpolicy`: what it makes is opaque, and nothing but hints takes it. The numbers are the ones that CUTLASS
    /// knows for whole fractions (`cute::TMA::CacheHintSm90`).
    pub fn create_policy(&mut self, policy: Policy, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        let span = instruction.span;
        let operands = &instruction.operands;
        let (least, most) = match policy.kind {
            PolicyKind::Range => (4, 4),
            PolicyKind::Converted => (2, 2),
            PolicyKind::Fractional => (1, 2),
        };
        self.operand_count(instruction, least, most)?;
        let dst = self.destination(&operands[0], Width::B64, Fit::Exact)?;
        if policy.kind == PolicyKind::Converted {
            let property = self.source(&operands[1], Width::B64, Fit::Exact, false)?;
            return self.copy(guard, dst, property, span);
        }
        if policy.kind == PolicyKind::Range {
            if !matches!(operands[1], Operand::Address(_)) {
                return Err(Diagnostic::error(operands[1].span(), "an address is expected"));
            }
            for size in &operands[2..] {
                self.source(size, Width::B32, Fit::Exact, false)?;
            }
        } else if let Some(fraction) = operands.get(1) {
            if let Operand::Immediate(expr @ (Expr::F32 { .. } | Expr::F64 { .. })) = fraction {
                let value = match *expr {
                    Expr::F32 { bits, .. } => f64::from(f32::from_bits(bits)),
                    Expr::F64 { bits, .. } => f64::from_bits(bits),
                    _ => 1.0,
                };
                if !(value > 0.0 && value <= 1.0) {
                    return Err(Diagnostic::error(
                        fraction.span(),
                        "a fraction lies above 0 and is at most 1",
                    ));
                }
            }
            self.check_kind(fraction, Some(Type::F32), Fit::Exact)?;
            self.source(fraction, Width::B32, Fit::Exact, true)?;
        }
        let value: u64 = match policy.primary {
            Eviction::First => 0x12f0_0000_0000_0000,
            Eviction::Last => 0x14f0_0000_0000_0000,
            Eviction::Normal | Eviction::Unchanged | Eviction::NoAllocate => 0x1000_0000_0000_0000,
        };
        let value = self.constant(Width::B64, value.into());
        self.copy(guard, dst, value, span)
    }
}
