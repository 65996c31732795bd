//! Values that follow the number of the lane: addresses of arrays by thread index, and the bounds checks before them.
//!
//! Such a value is `base + step · lane` over a run of lanes, the same `step` for all of a bundle. It is computed once
//! when a bundle enters a block, as two numbers instead of a register of all lanes; the instructions that computed it
//! lane by lane are spared, accesses know without looking that their addresses are consecutive, and guards of whole
//! bundles are known beforehand.
//!
//! Found by [`super::affine`], for kernels. The interpreter may use it where runs of lanes exist: [`Source::Tid`]
//! counts up by one in a one-dimensional block, within a warp where a row of the block is a multiple of a warp, and within
//! a row of 8 or 16 threads. A kernel that takes `%tid.x` apart (`% 16`, `/ 16`) has runs that are no longer than the
//! parts, in which either part is such a value. Where a sum wraps around between lanes, it is no such value after all, and the interpreter falls back on the code
//! that computes lane by lane.

use super::{Pc, Slot};
use crate::isa::Compare;
use crate::program::Register;

/// Index of a value in [`Affine`]: sources first, then what steps compute.
pub type ValueId = u16;

/// All such values of a kernel, and what they are good for.
#[derive(Clone, Debug, Default)]
pub struct Affine {
    pub sources: Vec<Source>,
    /// Values in all, sources included.
    pub values: u16,
    /// Steps that need no more than the launch and the bundle.
    pub once: Vec<Step>,
    /// Steps that depend on the block, in order.
    pub each: Vec<Step>,
    /// Accesses by such addresses, ascending by pc.
    pub addresses: Vec<(Pc, ValueId)>,
    /// The values among these that need no more than the launch and the bundle, and those that depend on the block.
    pub bases_once: Vec<ValueId>,
    pub bases_each: Vec<ValueId>,
    /// Instructions that need not run, ascending.
    pub spared: Vec<Pc>,
    /// What they would have left in their registers, but for predicates: those are written all the same.
    pub registers: Vec<(Register, ValueId)>,
    /// Lanes of the longest runs in which this holds.
    pub longest: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    Constant(u64),
    /// A slot that holds the same value in all lanes for the whole launch.
    Slot(Slot),
    /// `%tid`: the thread's coordinate on this axis. Only `%tid.x` differs within a run of lanes.
    Tid(u8),
    /// `%ctaid`
    Ctaid(u8),
}

/// `dst = a op b`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub op: Op,
    pub dst: ValueId,
    pub a: ValueId,
    pub b: ValueId,
}

/// Sums and products are taken modulo 2^64, or 2^32 where `wide` is false; the second factor of a product and the second
/// operand of a comparison are the same for all lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Add {
        wide: bool,
    },
    Sub {
        wide: bool,
    },
    Mul {
        wide: bool,
    },
    /// 32 bits to 64.
    Widen {
        signed: bool,
    },
    /// 64 bits to 32.
    Narrow,
    /// Of `%tid.x`, the bits that change within a run, and perhaps more: `a & (2^bits - 1)`.
    Low {
        bits: u32,
    },
    /// Of `%tid.x`, bits that are the same in all lanes of a run: `a` without its low `bits`.
    High {
        bits: u32,
    },
    /// These, moved to the bottom: `a >> bits`.
    Shift {
        bits: u32,
    },
    /// Writes a predicate, no value.
    Compare {
        relation: Compare,
        signed: bool,
        wide: bool,
        dst: Slot,
    },
}
