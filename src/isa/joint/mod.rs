//! Instructions that a machine carries out for threads together, or beside them: barriers in memory, asynchronous copies,
//! clusters, matrices. A family has a file, with its operations and the reader that its lines name; what they compute on
//! values alone stands in a room of its own.
//!
//! Each is registers in, addresses, registers out; who lowers and who executes them is found by family.

pub mod bulk;
pub mod cluster;
pub mod fabric;
pub mod fragment;
pub mod matrix;
pub mod mbarrier;
pub mod multimem;
pub mod tcgen05;
pub mod tensor;
pub mod warpgroup;

use std::fmt;

use super::fidelity::Fidelity;

/// What the machine does for threads together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Joint {
    Mbarrier(mbarrier::Op),
    Bulk(bulk::Op),
    Tensor(tensor::Op),
    Cluster(cluster::Op),
    Matrix(matrix::Op),
    Warpgroup(warpgroup::Op),
    Tcgen05(tcgen05::Op),
    Multimem(multimem::Op),
    Fabric(fabric::Op),
}

impl Joint {
    /// Sums of matrix products have hardware's order and width, which were measured; the rest moves and counts.
    pub fn fidelity(self) -> Fidelity {
        match self {
            Joint::Matrix(_) | Joint::Warpgroup(_) | Joint::Tcgen05(_) => Fidelity::AsMeasured,
            Joint::Mbarrier(_)
            | Joint::Bulk(_)
            | Joint::Tensor(_)
            | Joint::Cluster(_)
            | Joint::Multimem(_)
            | Joint::Fabric(_) => Fidelity::Exact,
        }
    }

    /// All threads of a warp that still live carry it out together (`.sync.aligned`).
    pub fn takes_whole_warps(self) -> bool {
        match self {
            Joint::Mbarrier(op) => op.takes_whole_warps(),
            Joint::Bulk(op) => op.takes_whole_warps(),
            Joint::Tensor(op) => op.takes_whole_warps(),
            Joint::Cluster(op) => op.takes_whole_warps(),
            Joint::Matrix(op) => op.takes_whole_warps(),
            Joint::Warpgroup(op) => op.takes_whole_warps(),
            Joint::Tcgen05(op) => op.takes_whole_warps(),
            Joint::Multimem(op) => op.takes_whole_warps(),
            Joint::Fabric(op) => op.takes_whole_warps(),
        }
    }
}

/// The opcode, as far as it says what is done.
impl fmt::Display for Joint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Joint::Mbarrier(op) => op.fmt(f),
            Joint::Bulk(op) => op.fmt(f),
            Joint::Tensor(op) => op.fmt(f),
            Joint::Cluster(op) => op.fmt(f),
            Joint::Matrix(op) => op.fmt(f),
            Joint::Warpgroup(op) => op.fmt(f),
            Joint::Tcgen05(op) => op.fmt(f),
            Joint::Multimem(op) => op.fmt(f),
            Joint::Fabric(op) => op.fmt(f),
        }
    }
}
