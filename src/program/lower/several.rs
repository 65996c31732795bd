//! Lane operations that take more than one kernel, and policies of caches.

use super::operand::{Fit, miscounted, unexpected};
use super::{Lower, Outcome};
use crate::isa::lanes::Width;
use crate::isa::operation::{Eviction, Policy, PolicyKind};
use crate::isa::{Compute, narrow};
use crate::program::check::tree::{Instruction, Operand};
use crate::program::ir::{Guard, Register};
use crate::ptx::ast::Expr;
use crate::ptx::diagnostic::Diagnostic;

impl Lower<'_> {
    /// `cvt.rs.….x4.f32 d, {a, b, e, f}, rbits`: two operations on two numbers each.
    pub fn convert_four(
        &mut self,
        format: narrow::Four,
        relu: bool,
        instruction: &Instruction<'_>,
        sources: &[&Operand],
        guard: Option<Guard>,
    ) -> Outcome<()> {
        let [to, ..] = self.operands::<3>(instruction)?;
        let span = instruction.span;
        if sources.len() != 5 {
            return Err(miscounted(instruction));
        }
        let mut src = Vec::with_capacity(5);
        for operand in sources {
            let float = src.len() < 4;
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
    pub fn create_policy(
        &mut self,
        policy: Policy,
        instruction: &Instruction<'_>,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        let span = instruction.span;
        let Some((dst, operands)) = instruction.operands.split_first() else {
            return Err(miscounted(instruction));
        };
        let dst = self.destination(dst, Width::B64, Fit::Exact)?;
        match (policy.kind, operands) {
            (PolicyKind::Converted, [property]) => {
                let property = self.source(property, Width::B64, Fit::Exact, false)?;
                return self.copy(guard, dst, property, span);
            }
            (PolicyKind::Range, [Operand::Address(_), primary, total]) => {
                for size in [primary, total] {
                    self.source(size, Width::B32, Fit::Exact, false)?;
                }
            }
            (PolicyKind::Fractional, []) => {}
            (PolicyKind::Fractional, [fraction]) => {
                if let Operand::Immediate(expr) = fraction {
                    let value = match *expr {
                        Expr::F32 { bits, .. } => f64::from(f32::from_bits(bits)),
                        Expr::F64 { bits, .. } => f64::from_bits(bits),
                        Expr::Int { .. } | Expr::Symbol { .. } => return unexpected(fraction),
                    };
                    if !(value > 0.0 && value <= 1.0) {
                        return Err(Diagnostic::error(
                            fraction.span(),
                            "a fraction lies above 0 and is at most 1",
                        ));
                    }
                }
                self.source(fraction, Width::B32, Fit::Exact, true)?;
            }
            (PolicyKind::Range | PolicyKind::Converted | PolicyKind::Fractional, _) => {
                return Err(miscounted(instruction));
            }
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
