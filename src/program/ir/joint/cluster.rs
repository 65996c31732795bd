//! What `mapa` and its family do besides writing registers.

use crate::isa::joint::cluster::Op;
use crate::program::ir::JointOp;
use crate::program::ir::{Effects, Ordering, Proxy, Reach, Scope};

pub(super) fn effects<R>(op: Op, operands: &JointOp<R>) -> Effects {
    let none = Effects::NONE;
    match op {
        Op::Arrive { relaxed, aligned: _ } => Effects {
            ordering: if relaxed { Ordering::Relaxed } else { Ordering::Release },
            scope: Some(Scope::Cluster),
            synchronises: true,
            faults: true,
            ..none
        },
        Op::Wait { aligned: _ } => Effects {
            ordering: Ordering::Acquire,
            scope: Some(Scope::Cluster),
            synchronises: true,
            waits: true,
            ..none
        },
        Op::TryCancel { multicast: _ } => Effects {
            writes: operands.addresses.first().map(|address| Reach::Space(address.space)),
            ordering: Ordering::Relaxed,
            scope: Some(Scope::Cluster),
            proxy: Proxy::Async,
            synchronises: true,
            faults: true,
            ..none
        },
        Op::Map(_) | Op::Rank(_) | Op::IsShared | Op::IsCanceled | Op::FirstCtaid(_) => none,
    }
}
