//! Lowering of `multimem` and its family: [`Op`] says which addresses and registers each has.

use crate::isa::joint::Joint;
use crate::isa::joint::multimem::Op;
use crate::isa::lanes::Width;
use crate::program::check::tree::{Instruction, Operand};
use crate::program::ir::{Guard, JointOp, Op as Operation, Reg};
use crate::program::layout::is_float;
use crate::program::lower::operand::{Fit, miscounted};
use crate::program::lower::{Lower, Outcome, width_of};
use crate::ptx::ast::Space;

impl Lower<'_> {
    pub(super) fn multimem(&mut self, op: Op, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let operands = &instruction.operands[..];
        let (mut src, mut dst): (Vec<Reg>, Vec<Option<Reg>>) = (Vec::new(), Vec::new());
        let addresses = match (op, operands) {
            (Op::LoadReduce { access, .. }, [to, from]) => {
                let registers = self.destinations(to, usize::from(access.elements), width_of(access.ty), Fit::Wider)?;
                dst.extend(registers.into_iter().map(|register| register.map(|r| self.body.reg(r))));
                vec![self.address(from, instruction.form.space())?]
            }
            (Op::Store { access } | Op::Reduce { access, .. }, [to, values]) => {
                for value in values.list() {
                    src.push(self.team_value(value, width_of(access.ty), is_float(access.ty))?);
                }
                vec![self.address(to, instruction.form.space())?]
            }
            (Op::Copy { .. } | Op::CopyReduce { .. }, [to, from, bytes, mask @ ..]) => {
                src.push(self.team_value(bytes, Width::B32, false)?);
                for mask in mask {
                    src.push(self.team_value(mask, Width::B16, false)?);
                }
                vec![self.address(to, Space::Global)?, self.address(from, Space::SharedCta)?]
            }
            _ => return Err(miscounted(instruction)),
        };
        let operation = JointOp {
            what: Joint::Multimem(op),
            addresses: addresses.into(),
            src: src.into(),
            dst: dst.into(),
            objects: Box::new([]),
        };
        self.push(guard, instruction.span, Operation::Joint(Box::new(operation)));
        Ok(())
    }

    fn team_value(&mut self, operand: &Operand, width: Width, float: bool) -> Outcome<Reg> {
        let register = self.source(operand, width, Fit::Wider, float)?;
        Ok(self.body.reg(register))
    }
}
