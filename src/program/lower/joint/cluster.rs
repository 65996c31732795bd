//! Lowering of `mapa` and its family.

use crate::isa::joint::Joint;
use crate::isa::joint::cluster::{Axis, Kind, Op};
use crate::isa::lanes::Width;
use crate::program::check::tree::{Instruction, Operand};
use crate::program::ir::{Address, Guard, JointOp, Op as Operation, Register, Space};
use crate::program::lower::operand::Fit;
use crate::program::lower::{Lower, Outcome, width_of};

impl Lower<'_> {
    /// Operands of each instruction stand in the order in which it is written.
    pub fn cluster(&mut self, op: Op, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        match op {
            Op::Arrive { .. } | Op::Wait { .. } => self.push_cluster(op, [], &[], [], instruction, guard),
            Op::Map(kind) => {
                let [dst, address, rank] = self.operands(instruction)?;
                let width = width_of(instruction.form.ty(0));
                let address = self.window_address(address, width, kind, instruction)?;
                let rank = self.source(rank, Width::B32, Fit::Exact, false)?;
                let dst = self.destination(dst, width, Fit::Exact)?;
                self.push_cluster(op, [], &[address, rank], [Some(dst)], instruction, guard)
            }
            Op::Rank(kind) => {
                let [dst, address] = self.operands(instruction)?;
                let width = width_of(instruction.form.ty(0));
                let address = self.window_address(address, width, kind, instruction)?;
                let dst = self.destination(dst, Width::B32, Fit::Exact)?;
                self.push_cluster(op, [], &[address], [Some(dst)], instruction, guard)
            }
            Op::IsShared => {
                let [dst, address] = self.operands(instruction)?;
                let dst = self.destination(dst, Width::Pred, Fit::Exact)?;
                let address = match self.address_operand(address, Width::B64)? {
                    Some(register) => register,
                    None => self.source(address, Width::B32, Fit::Wider, false)?,
                };
                self.push_cluster(op, [], &[address], [Some(dst)], instruction, guard)
            }
            Op::TryCancel { .. } => {
                let space = instruction.form.space();
                let [response, mbarrier] = self.operands(instruction)?;
                let addresses = [self.address(response, space)?, self.address(mbarrier, space)?];
                self.push_cluster(op, addresses, &[], [], instruction, guard)
            }
            Op::IsCanceled => {
                let [dst, response] = self.operands(instruction)?;
                let response = self.source(response, Width::B128, Fit::Exact, false)?;
                let dst = self.destination(dst, Width::Pred, Fit::Exact)?;
                self.push_cluster(op, [], &[response], [Some(dst)], instruction, guard)
            }
            Op::FirstCtaid(axis) => {
                let [dst, response] = self.operands(instruction)?;
                let response = self.source(response, Width::B128, Fit::Exact, false)?;
                let dst = match axis {
                    Axis::All => self.destinations(dst, 4, Width::B32, Fit::Exact)?,
                    Axis::X | Axis::Y | Axis::Z => vec![Some(self.destination(dst, Width::B32, Fit::Exact)?)],
                };
                self.push_cluster(op, [], &[response], dst, instruction, guard)
            }
        }
    }

    /// An address of the shared window, or one that is generic: also where a variable stands, whose own address is
    /// none.
    fn window_address(
        &mut self,
        operand: &Operand,
        width: Width,
        kind: Kind,
        instruction: &Instruction<'_>,
    ) -> Outcome<Register> {
        let Some(address) = self.address_operand(operand, width)? else {
            return self.source(operand, width, Fit::Exact, false);
        };
        match kind {
            Kind::Shared => Ok(address),
            Kind::Generic => {
                let generic = self.body.register(width);
                let (dst, src) = (self.body.reg(generic), self.body.reg(address));
                let convert = Operation::ConvertAddress {
                    space: Space::Shared,
                    to_generic: true,
                    dst,
                    src,
                };
                self.push(None, instruction.span, convert);
                Ok(generic)
            }
        }
    }

    fn push_cluster(
        &mut self,
        op: Op,
        addresses: impl Into<Vec<Address>>,
        src: &[Register],
        dst: impl IntoIterator<Item = Option<Register>>,
        instruction: &Instruction<'_>,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        let joint = JointOp {
            what: Joint::Cluster(op),
            addresses: addresses.into().into(),
            src: src.iter().map(|&register| self.body.reg(register)).collect(),
            dst: dst
                .into_iter()
                .map(|register| register.map(|register| self.body.reg(register)))
                .collect(),
            objects: Box::new([]),
        };
        self.push(guard, instruction.span, Operation::Joint(Box::new(joint)));
        Ok(())
    }
}
