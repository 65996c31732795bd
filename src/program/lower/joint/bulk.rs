//! Lowering of bulk copies, asynchronous stores and their like: [`Op`] says which addresses and registers each has.

use crate::isa::joint::Joint;
use crate::isa::joint::bulk::Op;
use crate::isa::lanes::Width;
use crate::program::check::tree::{Instruction, Operand};
use crate::program::ir::{Address, Guard, JointOp, Op as Operation, Reg};
use crate::program::layout::is_float;
use crate::program::lower::operand::{Fit, miscounted};
use crate::program::lower::{Lower, Outcome, width_of};
use crate::ptx::ast::Space;

impl Lower<'_> {
    pub(super) fn bulk(&mut self, op: Op, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let mut values: Vec<&Operand> = Vec::new();
        let mut places: Vec<&Operand> = Vec::new();
        for operand in &instruction.operands {
            match operand {
                Operand::Address(_) => places.push(operand),
                other => values.push(other),
            }
        }
        if instruction.form.has_one_of("L2::cache_hint") {
            // The policy is the last, but for a mask of bytes.
            let behind = usize::from(matches!(op, Op::Copy(copy) if copy.masked));
            match values.len().checked_sub(1 + behind) {
                Some(at) => values.remove(at),
                None => return Err(miscounted(instruction)),
            };
        }
        let mut addresses: Vec<Address> = Vec::with_capacity(places.len());
        let named: Vec<Space> = instruction.form.spaces().collect();
        for (index, place) in places.into_iter().enumerate() {
            let space = match (op, index) {
                (Op::Copy(_) | Op::Reduce { .. }, 2) => Space::Shared,
                // The barrier is named as the place is.
                (Op::Store { .. } | Op::Update { .. }, _) => named.first().copied().unwrap_or(Space::Generic),
                _ => named.get(index).copied().unwrap_or(Space::Generic),
            };
            addresses.push(self.address(place, space)?);
        }
        let src = self.bulk_values(op, &values, instruction)?;
        let operation = JointOp {
            what: Joint::Bulk(op),
            addresses: addresses.into(),
            src: src.into(),
            dst: Box::new([]),
            objects: Box::new([]),
        };
        self.push(guard, instruction.span, Operation::Joint(Box::new(operation)));
        Ok(())
    }

    /// What is no address, in registers.
    fn bulk_values(&mut self, op: Op, values: &[&Operand], instruction: &Instruction<'_>) -> Outcome<Vec<Reg>> {
        let mut registers = Vec::with_capacity(values.len());
        match op {
            Op::Copy(copy) => {
                // The mask of bytes has 16 bits, and so has that of a cluster's blocks in its first form.
                let narrow = match (copy.masked, copy.multicast) {
                    (false, false) => usize::MAX,
                    (true, _) => values.len() - 1,
                    (false, true) if instruction.form.has_one_of("multicast::cluster::32b") => usize::MAX,
                    (false, true) => 1,
                };
                for (index, value) in values.iter().enumerate() {
                    let width = if index == narrow { Width::B16 } else { Width::B32 };
                    registers.push(self.value_at(value, width, false)?);
                }
            }
            Op::Reduce { .. } | Op::CommitGroup | Op::WaitGroup { .. } => {
                for value in values {
                    registers.push(self.value_at(value, Width::B32, false)?);
                }
            }
            Op::Store { ty, .. } | Op::StoreGlobal { ty, .. } => {
                for element in values.iter().flat_map(|value| value.list()) {
                    registers.push(self.value_at(element, width_of(ty), is_float(ty))?);
                }
            }
            Op::Update { ty, .. } | Op::UpdateGlobal { ty, .. } => {
                for value in values {
                    registers.push(self.value_at(value, width_of(ty.ty()), false)?);
                }
            }
            // What it is cleared to is 0.
            Op::Clear => {
                let [size, ..] = values else {
                    return Err(miscounted(instruction));
                };
                let register = self.source_any(size, Width::B64, false)?;
                registers.push(self.body.reg(register));
            }
        }
        Ok(registers)
    }

    fn value_at(&mut self, operand: &Operand, width: Width, float: bool) -> Outcome<Reg> {
        let register = self.source(operand, width, Fit::Wider, float)?;
        Ok(self.body.reg(register))
    }
}
