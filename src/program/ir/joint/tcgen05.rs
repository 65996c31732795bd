//! `tcgen05`: where its operands are, and what it does besides writing registers.

use crate::isa::joint::tcgen05::Op;
use crate::program::ir::JointOp;
use crate::program::ir::{Effects, Ordering, Proxy, Reach, Scope, Space};

/// The sources of `tcgen05.mma` in their order; those that an opcode does not have are constants 0.
pub struct Multiply<'a, R> {
    /// D's address in tensor memory.
    pub d: &'a R,
    /// A's address in tensor memory, or 64 bits: its descriptor.
    pub a: &'a R,
    /// B's descriptor.
    pub b: &'a R,
    /// The instruction descriptor.
    pub descriptor: &'a R,
    /// A predicate: D is added.
    pub enable_d: &'a R,
    /// D is divided by two to that power before.
    pub scale_d: &'a R,
    /// Addresses in tensor memory.
    pub metadata: &'a R,
    pub scale_a: &'a R,
    pub scale_b: &'a R,
    /// Which columns of B count as zero.
    pub zero_columns: &'a R,
    /// Lanes of D that stay as they are, a bit each: none, or 128 for each block of the group.
    pub disabled: &'a [R],
}

impl<'a, R> Multiply<'a, R> {
    /// # Panics
    /// If these are not the sources of one.
    pub fn of(src: &'a [R]) -> Multiply<'a, R> {
        let [
            d,
            a,
            b,
            descriptor,
            enable_d,
            scale_d,
            metadata,
            scale_a,
            scale_b,
            zero_columns,
            disabled @ ..,
        ] = src
        else {
            unreachable!("lowering gives each of them a register");
        };
        Multiply {
            d,
            a,
            b,
            descriptor,
            enable_d,
            scale_d,
            metadata,
            scale_a,
            scale_b,
            zero_columns,
            disabled,
        }
    }

    pub fn sources(self) -> Box<[R]>
    where
        R: Copy,
    {
        let Multiply {
            d,
            a,
            b,
            descriptor,
            enable_d,
            scale_d,
            metadata,
            scale_a,
            scale_b,
            zero_columns,
            disabled,
        } = self;
        let single = [
            d,
            a,
            b,
            descriptor,
            enable_d,
            scale_d,
            metadata,
            scale_a,
            scale_b,
            zero_columns,
        ];
        single.into_iter().chain(disabled).copied().collect()
    }
}

/// Sources are otherwise in the order of the text: an address in tensor memory; then what is stored, the distance of a
/// second half, the descriptor of what is copied, a number of columns, a mask of blocks. `tcgen05.ld.red` has as
/// destinations what is loaded, then what was found, then metadata.
pub(super) fn effects<R>(op: Op, operands: &JointOp<R>) -> Effects {
    let faults = Effects {
        synchronises: true,
        faults: true,
        ..Effects::NONE
    };
    let together = Effects { waits: true, ..faults };
    let space = operands
        .addresses
        .first()
        .map_or(Space::Shared, |address| address.space);
    match op {
        Op::Allocate(_) => Effects {
            writes: Some(Reach::Space(space)),
            ..together
        },
        // Tensor memory is in no space; that it changes, others may see.
        Op::Free(_) | Op::Relinquish(_) | Op::Load(_) | Op::LoadReduce(..) | Op::Store(_) => Effects {
            writes: Some(Reach::Space(Space::Shared)),
            ..together
        },
        Op::Wait => Effects {
            reads: Some(Reach::Anything),
            writes: Some(Reach::Anything),
            ..together
        },
        Op::Fence => Effects {
            reads: Some(Reach::Anything),
            writes: Some(Reach::Anything),
            ..faults
        },
        Op::Commit(_) => Effects {
            reads: Some(Reach::Anything),
            writes: Some(Reach::Anything),
            ordering: Ordering::Release,
            scope: Some(Scope::Cluster),
            proxy: Proxy::Async,
            ..faults
        },
        Op::Copy(_) | Op::Shift(_) | Op::Mma(_) => Effects {
            reads: Some(Reach::Space(Space::Shared)),
            writes: Some(Reach::Space(Space::Shared)),
            proxy: Proxy::Async,
            ..faults
        },
    }
}
