//! The instruction table and what each instruction computes. Knows nothing of the API, of programs, of scheduling.
//!
//! `table/` lists each syntax line of the PTX manual once, in the manual's notation, with its minimum PTX version and
//! target and its [`Semantics`]; [`decode`] matches an opcode against it. The other files hold the scalar functions;
//! [`simd`] turns them into lane kernels.

mod approx;
mod compare;
mod convert;
mod decode;
mod float;
mod form;
mod half;
mod int;
pub mod lanes;
mod legacy;
mod logic;
pub mod moves;
pub mod narrow;
mod sfu;
mod simd;
mod soft;
pub mod table;
#[cfg(test)]
mod tests;
pub mod types;
pub mod video;

pub use self::compare::{Boolean, Compare};
pub use self::decode::{DecodeError, decode, decode_all, decode_in, decode_legacy};
pub use self::form::Form;
pub use self::simd::Level;
pub use self::types::Rounding;

use self::lanes::{LaneKernel, Width};
use self::simd::{Destinations, Op, Sources, WarpOp};

/// What kind of thing an instruction does; for lane-wise ones, how to get the function that computes it.
#[derive(Clone, Copy)]
pub enum Semantics {
    /// A pure function of each lane's registers. `None`: this form is legal but not computed yet.
    Lane(fn(&Form) -> Option<Lane>),
    /// Everything else is carried out by the executor, which asks the form for its modifiers.
    Move,
    /// Scalar and SIMD video: lane-wise, by the selectors of their operands ([`video::lane`]).
    Video,
    Load,
    Store,
    Atomic,
    Reduction,
    Branch,
    BranchIndexed,
    Call,
    Return,
    Exit,
    Trap,
    Breakpoint,
    Nanosleep,
    /// `bar`, `barrier`
    Barrier,
    WarpBarrier,
    /// `membar`, `fence`
    Fence,
    Shuffle,
    Vote,
    Match,
    Redux,
    Activemask,
    Elect,
    ConvertAddress,
    IsSpace,
    /// `createpolicy`: a value that only hints take.
    CreatePolicy,
    Alloca,
    StackSave,
    StackRestore,
    /// `cp.async` and its groups (non-bulk).
    CopyAsync,
    /// `tex`, `tld4`
    Texture,
    /// `txq`
    TextureQuery,
    /// `istypep`
    IsHandle,
    SurfaceLoad,
    SurfaceStore,
    SurfaceReduce,
    /// `suq`
    SurfaceQuery,
    /// No effect on results: prefetch, discard of nothing, policies that only hint, pmevent.
    Hint,
    /// Legal, recognised, not executed yet: a kernel that reaches it is refused at load with a message.
    Later,
}

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
            carry_out: false,
            carry_in: false,
            at: simd::warp_kernel_at::<W>,
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
