//! What `cp.async.bulk.tensor` and its family do besides writing registers.

use crate::isa::joint::tensor::Op;
use crate::program::ir::JointOp;
use crate::program::ir::{Effects, Ordering, Proxy, Reach, Space};

pub(super) fn effects<R>(op: Op, operands: &JointOp<R>) -> Effects {
    let some = Effects {
        reads: Some(Reach::Anything),
        writes: Some(Reach::Anything),
        synchronises: true,
        faults: true,
        ..Effects::NONE
    };
    match op {
        // What is copied may be read and written from now on, until it has been waited for.
        Op::Load(_) | Op::Store(_) => Effects {
            proxy: Proxy::Async,
            ..some
        },
        Op::Replace { .. } => {
            let map = operands.addresses.first().map(|address| Reach::Space(address.space));
            Effects {
                reads: map,
                writes: map,
                synchronises: false,
                ..some
            }
        }
        Op::CopyMap { scope } => Effects {
            reads: Some(Reach::Space(Space::Shared)),
            writes: Some(Reach::Space(Space::Global)),
            ordering: Ordering::Release,
            scope: Some(scope),
            proxy: Proxy::Tensormap,
            waits: true,
            ..some
        },
    }
}
