//! What `mbarrier` and its family do besides writing registers.

use crate::isa::joint::mbarrier::Op;
use crate::isa::types;
use crate::program::ir::JointOp;
use crate::program::ir::{Effects, Ordering, Reach};

pub(super) fn effects<R>(op: Op, _operands: &JointOp<R>) -> Effects {
    // What a barrier says of copies makes them visible, wherever they went.
    let barrier = Effects {
        reads: Some(Reach::Anything),
        writes: Some(Reach::Anything),
        synchronises: true,
        faults: true,
        ..Effects::NONE
    };
    let ordered = |ordering: types::Ordering, scope| Effects {
        ordering: match ordering {
            types::Ordering::Acquire => Ordering::Acquire,
            types::Ordering::Release => Ordering::Release,
            types::Ordering::AcqRel | types::Ordering::Sc => Ordering::AcqRel,
            types::Ordering::Weak | types::Ordering::Volatile | types::Ordering::Relaxed | types::Ordering::Mmio => {
                Ordering::Relaxed
            }
        },
        scope: Some(scope),
        ..barrier
    };
    match op {
        Op::Init { .. } | Op::Invalidate | Op::CheckLayout { .. } | Op::CopiesArrive { .. } => barrier,
        Op::Transactions { scope, .. } => ordered(types::Ordering::Relaxed, scope),
        Op::Arrive(arrive) => ordered(arrive.ordering, arrive.scope),
        Op::Wait(wait) => Effects {
            waits: true,
            ..ordered(wait.ordering, wait.scope)
        },
        // Of a value that an arrival gave.
        Op::PendingCount => Effects::NONE,
    }
}
