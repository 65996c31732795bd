//! What the machine does for threads together, or beside them: registers in, addresses, registers out. What they mean is
//! the family's business ([`crate::isa::joint`]), and so are its effects, a file each.

mod bulk;
mod cluster;
mod fabric;
mod matrix;
mod mbarrier;
mod multimem;
pub mod tcgen05;
mod tensor;
pub mod warpgroup;

use super::effects::Effects;
use super::op::JointOp;
use crate::isa::joint::Joint;

impl<R> JointOp<R> {
    /// Whether it is a warp's own business: it waits for nobody else, and is done when it has been carried out.
    pub fn is_of_warp(&self) -> bool {
        matches!(self.what, Joint::Matrix(_))
    }

    pub fn effects(&self) -> Effects {
        match self.what {
            Joint::Mbarrier(op) => mbarrier::effects(op, self),
            Joint::Bulk(op) => bulk::effects(op, self),
            Joint::Tensor(op) => tensor::effects(op, self),
            Joint::Cluster(op) => cluster::effects(op, self),
            Joint::Matrix(op) => matrix::effects(op, self),
            Joint::Warpgroup(op) => warpgroup::effects(op, self),
            Joint::Tcgen05(op) => tcgen05::effects(op, self),
            Joint::Multimem(op) => multimem::effects(op, self),
            Joint::Fabric(op) => fabric::effects(op, self),
        }
    }
}
