//! What `mma` and its family do besides writing registers.

use crate::isa::joint::matrix::Op;
use crate::program::ir::JointOp;
use crate::program::ir::{Effects, Reach};

pub(super) fn effects<R>(op: Op, operands: &JointOp<R>) -> Effects {
    let together = Effects {
        synchronises: true,
        waits: true,
        ..Effects::NONE
    };
    let reach = operands.addresses.first().map(|address| Reach::Space(address.space));
    match op {
        Op::LoadRows(_) | Op::LoadTile(_) => Effects {
            reads: reach,
            faults: true,
            ..together
        },
        Op::StoreRows(_) | Op::StoreTile(_) => Effects {
            writes: reach,
            faults: true,
            ..together
        },
        Op::Transpose | Op::Multiply(_) => together,
    }
}
