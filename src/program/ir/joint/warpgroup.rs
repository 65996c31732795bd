//! `wgmma`: where its operands are, and what it does besides writing registers.

use crate::isa::joint::warpgroup::{Mma, Op};
use crate::program::ir::JointOp;
use crate::program::ir::{Effects, Ordering, Proxy, Reach, Scope, Space};

/// The sources of `wgmma.mma_async` in their order; those that an opcode does not have are constants. D's registers are
/// the destinations, too. `wgmma.wait_group` has the number of groups that may go on, and then registers that it completes.
pub struct Multiply<'a, R> {
    pub d: &'a [R],
    /// Its descriptor.
    pub b: &'a R,
    /// A predicate: D is added.
    pub scale_d: &'a R,
    /// 1 or -1.
    pub scale_a: &'a R,
    pub scale_b: &'a R,
    /// 0 or 1: along k there are neighbours, or along the rows (columns).
    pub transpose_a: &'a R,
    pub transpose_b: &'a R,
    pub metadata: &'a R,
    pub selector: &'a R,
    /// Four registers, or one of 64 bits: the descriptor.
    pub a: &'a [R],
}

impl<'a, R> Multiply<'a, R> {
    /// # Panics
    /// If these are not the sources of one.
    pub fn of(op: Mma, src: &'a [R]) -> Multiply<'a, R> {
        let (d, rest) = src.split_at(op.accumulators());
        let [
            b,
            scale_d,
            scale_a,
            scale_b,
            transpose_a,
            transpose_b,
            metadata,
            selector,
            a @ ..,
        ] = rest
        else {
            unreachable!("lowering gives each of them a register");
        };
        Multiply {
            d,
            b,
            scale_d,
            scale_a,
            scale_b,
            transpose_a,
            transpose_b,
            metadata,
            selector,
            a,
        }
    }

    pub fn sources(self) -> Box<[R]>
    where
        R: Copy,
    {
        let Multiply {
            d,
            b,
            scale_d,
            scale_a,
            scale_b,
            transpose_a,
            transpose_b,
            metadata,
            selector,
            a,
        } = self;
        let single = [
            b,
            scale_d,
            scale_a,
            scale_b,
            transpose_a,
            transpose_b,
            metadata,
            selector,
        ];
        d.iter().chain(single).chain(a).copied().collect()
    }
}

pub(super) fn effects<R>(op: Op, _operands: &JointOp<R>) -> Effects {
    let together = Effects {
        synchronises: true,
        waits: true,
        ..Effects::NONE
    };
    match op {
        Op::Mma(_) => Effects {
            reads: Some(Reach::Space(Space::Shared)),
            proxy: Proxy::Async,
            faults: true,
            ..together
        },
        // They order registers, and accesses to them, of the threads themselves.
        Op::Fence | Op::Commit => Effects {
            reads: Some(Reach::Anything),
            writes: Some(Reach::Anything),
            ..together
        },
        // Shared memory that the products read may be written behind it.
        Op::Wait => Effects {
            reads: Some(Reach::Anything),
            writes: Some(Reach::Anything),
            ordering: Ordering::AcqRel,
            scope: Some(Scope::Cta),
            faults: true,
            ..together
        },
    }
}
