//! What fabric operations do besides writing registers.

use crate::isa::joint::fabric::Op;
use crate::program::ir::JointOp;
use crate::program::ir::{Effects, Ordering, Proxy, Reach, Scope};

pub(super) fn effects<R>(op: Op, _operands: &JointOp<R>) -> Effects {
    // When they are done is open: like a barrier, nothing moves across.
    let some = Effects {
        reads: Some(Reach::Anything),
        writes: Some(Reach::Anything),
        synchronises: true,
        faults: true,
        ..Effects::NONE
    };
    let access = Effects {
        ordering: Ordering::Relaxed,
        scope: Some(Scope::Sys),
        proxy: Proxy::Fabric,
        ..some
    };
    match op {
        Op::Get | Op::GetTensor(_) | Op::Put { .. } | Op::Reduce { .. } | Op::PutTensor { .. } | Op::Atom { .. } => {
            access
        }
        Op::PullReduce { .. } => Effects { waits: true, ..access },
        Op::Submit(_) | Op::Wait => some,
    }
}
