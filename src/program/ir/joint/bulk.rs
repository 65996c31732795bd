//! What bulk copies, asynchronous stores and their like do besides writing registers.

use crate::isa::joint::bulk::Op;
use crate::program::ir::JointOp;
use crate::program::ir::{Effects, Ordering, Proxy, Reach, Scope};

pub(super) fn effects<R>(op: Op, _operands: &JointOp<R>) -> Effects {
    // When they are done is open: like a barrier, nothing moves across.
    let copy = Effects {
        reads: Some(Reach::Anything),
        writes: Some(Reach::Anything),
        proxy: Proxy::Async,
        synchronises: true,
        faults: true,
        ..Effects::NONE
    };
    let stored = |ordering, scope| Effects {
        ordering,
        scope: Some(scope),
        proxy: Proxy::Generic,
        ..copy
    };
    match op {
        Op::Copy(_) | Op::Reduce { .. } | Op::CommitGroup | Op::WaitGroup { .. } => copy,
        Op::Store { .. } => Effects {
            proxy: Proxy::Generic,
            ..copy
        },
        Op::Update { .. } => stored(Ordering::Relaxed, Scope::Cluster),
        Op::StoreGlobal { scope, .. } | Op::UpdateGlobal { scope, .. } => stored(Ordering::Release, scope),
        Op::Clear => Effects {
            writes: Some(Reach::Anything),
            faults: true,
            ..Effects::NONE
        },
    }
}
