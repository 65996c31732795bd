//! What the machine does for threads together, or beside them: a file for each family of [`Joint`].

mod bulk;
mod cluster;
mod descriptor;
mod fabric;
mod matrix;
mod mbarrier;
mod multimem;
pub mod tcgen05;
mod tensor;
pub mod warpgroup;

use crate::isa::joint::Joint;

pub use self::matrix::product as matrix_product;
pub(super) use self::matrix::shadow as matrix_shadow;
use super::context::Cx;
use super::state::State;
pub use super::step::{Operands, Step};

/// What a lane waits for at an instruction that has come to [`Step::Wait`], for people.
///
/// # Safety
/// Slots of `operands` lie in the running window.
pub unsafe fn waits_for(operands: &Operands, cx: &mut Cx<'_>, lane: usize) -> String {
    match operands.what {
        // SAFETY: it asks for nothing else.
        Joint::Mbarrier(op) => unsafe { mbarrier::waits_for(op, operands, cx, lane) },
        Joint::Bulk(_)
        | Joint::Tensor(_)
        | Joint::Cluster(_)
        | Joint::Matrix(_)
        | Joint::Warpgroup(_)
        | Joint::Tcgen05(_)
        | Joint::Multimem(_)
        | Joint::Fabric(_) => format!("at {}", operands.what),
    }
}

/// # Safety
/// Slots of `operands` lie in the running window.
pub unsafe fn execute<const WATCHED: bool>(operands: &Operands, cx: &mut Cx<'_>, state: &mut State) -> Step {
    // SAFETY: the families ask for nothing else.
    unsafe {
        match operands.what {
            Joint::Mbarrier(op) => mbarrier::execute::<WATCHED>(op, operands, cx, state),
            Joint::Bulk(op) => bulk::execute::<WATCHED>(op, operands, cx, state),
            Joint::Tensor(op) => tensor::execute::<WATCHED>(op, operands, cx, state),
            Joint::Cluster(op) => cluster::execute::<WATCHED>(op, operands, cx, state),
            Joint::Matrix(op) => matrix::execute::<WATCHED>(op, operands, cx, state),
            Joint::Warpgroup(op) => warpgroup::execute::<WATCHED>(op, operands, cx, &mut state.products),
            Joint::Tcgen05(op) => tcgen05::execute::<WATCHED>(op, operands, cx, state),
            Joint::Multimem(op) => multimem::execute::<WATCHED>(op, operands, cx, state),
            Joint::Fabric(op) => fabric::execute::<WATCHED>(op, operands, cx, state),
        }
    }
}
