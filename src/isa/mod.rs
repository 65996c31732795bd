//! The instruction table, the typed operation that each of its lines means, and what each operation computes.
//!
//! `table/` lists each syntax line of the PTX manual once, in the manual's notation, with its minimum PTX version and
//! target and what it means; [`decode`] matches an opcode against it and yields a [`Form`] with its [`Operation`].
//! What is a pure function of each lane's registers is a [`Compute`]: one enum for each family (`int/`, `float/`, …),
//! beside how its lines are read and the scalar functions, of which [`simd`] makes lane kernels.

pub mod approx;
pub mod compare;
mod compute;
pub mod convert;
mod decode;
pub mod float;
mod form;
pub mod half;
pub mod int;
pub mod lanes;
pub mod legacy;
pub mod logic;
pub mod moves;
pub mod narrow;
pub mod operation;
mod sfu;
mod simd;
mod soft;
pub mod table;
#[cfg(test)]
mod tests;
pub mod types;
pub mod video;
pub mod words;

pub use self::compare::{Boolean, Compare};
pub use self::compute::{Compute, Contractible, Fused, Linear};
pub use self::decode::{
    DecodeError, decode, decode_all, decode_elements, decode_flushing, decode_in, decode_legacy, is_call,
    takes_addresses, without_bank,
};
pub use self::form::Form;
pub use self::operation::Operation;
pub use self::simd::Level;
pub use self::types::Rounding;

use self::lanes::{LaneKernel, Width};
use self::simd::{Destinations, Op, Sources, WarpOp};

/// A lane-wise operation, ready to run.
#[derive(Clone, Copy)]
pub struct Lane {
    pub kernel: LaneKernel,
    /// Slot widths of the destinations in operand order; for `add.cc` the carry-out is a last destination `Pred`.
    pub dst: &'static [Width],
    /// Slot widths of the sources in operand order; for `addc` the carry-in is a last source `Pred`.
    pub src: &'static [Width],
    /// The operand (index among sources as written) that goes to `Operands::imm` instead of a slot, if any. It is not
    /// counted in `src`.
    pub imm: Option<usize>,
    /// What `Operands::imm` must be when `imm` names no operand.
    pub constant: u64,
    /// The kernel to use when the instruction is written with a second destination (`setp.lt.s32 p|q, …`): a predicate,
    /// in `Operands::dst[1]`. `kernel` writes the first one only.
    pub pair: Option<LaneKernel>,
    /// The same at other levels.
    pair_at: Option<fn(Level) -> LaneKernel>,
    pub carry_out: bool,
    pub carry_in: bool,
    /// The same kernel at other levels, for comparison.
    pub at: fn(Level) -> LaneKernel,
}

impl Lane {
    /// The operation `O` at the current level.
    pub(crate) fn of<O: Op>() -> Lane {
        Lane {
            kernel: simd::kernel_at::<O>(Level::current()),
            dst: O::Dst::WIDTHS,
            src: O::Src::WIDTHS,
            imm: None,
            constant: 0,
            pair: None,
            pair_at: None,
            carry_out: false,
            carry_in: false,
            at: simd::kernel_at::<O>,
        }
    }
    /// The operation `W` on whole warps at the current level.
    pub(crate) fn of_warps<W: WarpOp>(dst: &'static [Width], src: &'static [Width]) -> Lane {
        Lane {
            kernel: simd::warp_kernel_at::<W>(Level::current()),
            dst,
            src,
            imm: None,
            constant: 0,
            pair: None,
            pair_at: None,
            carry_out: false,
            carry_in: false,
            at: simd::warp_kernel_at::<W>,
        }
    }
    /// The one for this many destinations: a comparison may be asked for its complement, too ([`Lane::pair`]).
    #[must_use]
    pub fn named(self, destinations: usize) -> Lane {
        const TWO: &[Width] = &[Width::Pred, Width::Pred];
        match self.pair {
            Some(kernel) if destinations == 2 => Lane {
                kernel,
                dst: TWO,
                pair: None,
                ..self
            },
            _ => self,
        }
    }
    /// With a kernel for a second destination.
    pub(crate) fn with_pair(self, at: fn(Level) -> LaneKernel) -> Lane {
        Lane {
            pair: Some(at(Level::current())),
            pair_at: Some(at),
            ..self
        }
    }
    /// With a constant that the operation takes.
    pub(crate) fn with(self, constant: u64) -> Lane {
        Lane { constant, ..self }
    }
    /// The last destination is the carry flag.
    pub(crate) fn carry_out(self) -> Lane {
        Lane {
            carry_out: true,
            ..self
        }
    }
    /// The last source is the carry flag.
    pub(crate) fn carry_in(self) -> Lane {
        Lane { carry_in: true, ..self }
    }
}
