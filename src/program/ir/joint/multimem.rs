//! What `multimem` and its family do besides writing registers.

use crate::isa::joint::multimem::{Access, Op};
use crate::isa::types;
use crate::program::ir::JointOp;
use crate::program::ir::{Effects, Ordering, Proxy, Reach, Scope};

pub(super) fn effects<R>(op: Op, _operands: &JointOp<R>) -> Effects {
    let access = |access: Access| {
        let ordering = match access.ordering {
            types::Ordering::Weak => Ordering::Weak,
            types::Ordering::Volatile | types::Ordering::Mmio => Ordering::Volatile,
            types::Ordering::Relaxed => Ordering::Relaxed,
            types::Ordering::Acquire => Ordering::Acquire,
            types::Ordering::Release => Ordering::Release,
            types::Ordering::AcqRel | types::Ordering::Sc => Ordering::AcqRel,
        };
        Effects {
            ordering,
            scope: (ordering != Ordering::Weak).then_some(access.scope.unwrap_or(Scope::Gpu)),
            faults: true,
            ..Effects::NONE
        }
    };
    match op {
        Op::LoadReduce { access: of, .. } => Effects {
            reads: Some(Reach::Anything),
            ..access(of)
        },
        Op::Store { access: of } => Effects {
            writes: Some(Reach::Anything),
            ..access(of)
        },
        Op::Reduce { access: of, .. } => Effects {
            reads: Some(Reach::Anything),
            writes: Some(Reach::Anything),
            synchronises: true,
            ..access(of)
        },
        // When they are done is open: like a barrier, nothing moves across.
        Op::Copy { .. } | Op::CopyReduce { .. } => Effects {
            reads: Some(Reach::Anything),
            writes: Some(Reach::Anything),
            proxy: Proxy::Async,
            synchronises: true,
            faults: true,
            ..Effects::NONE
        },
    }
}
