//! Instructions of [`Joint`]: each family's file puts its operands in order.

mod bulk;
mod cluster;
mod fabric;
mod matrix;
mod mbarrier;
mod multimem;
mod tcgen05;
mod tensor;
mod warpgroup;

use super::{Lower, Outcome};
use crate::isa::joint::Joint;
use crate::program::check::tree::Instruction;
use crate::program::ir::Guard;

impl Lower<'_> {
    pub fn joint(&mut self, joint: Joint, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        match joint {
            Joint::Mbarrier(op) => self.mbarrier(op, instruction, guard),
            Joint::Bulk(op) => self.bulk(op, instruction, guard),
            Joint::Tensor(op) => self.tensor(op, instruction, guard),
            Joint::Cluster(op) => self.cluster(op, instruction, guard),
            Joint::Matrix(op) => self.matrix(op, instruction, guard),
            Joint::Warpgroup(op) => self.warpgroup(op, instruction, guard),
            Joint::Tcgen05(op) => self.tcgen05(op, instruction, guard),
            Joint::Multimem(op) => self.multimem(op, instruction, guard),
            Joint::Fabric(op) => self.fabric(op, instruction, guard),
        }
    }
}
