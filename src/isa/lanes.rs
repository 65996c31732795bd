//! How an operation touches a warp's registers: the layout of lanes, and functions over all lanes of an operation.
//!
//! **Layout.** Up to [`MAX_WARPS`] warps of a block run as one *bundle* (DESIGN §3). A register window is a byte buffer,
//! 64-byte aligned. A slot of width [`Width::B32`] in a bundle of `W` warps is `W` consecutive runs of `[u32; 32]`,
//! i.e. `128·W` bytes; `B16` is `W × [u16; 32]`, `B64` `W × [u64; 32]`, `B128` `W × [u128; 32]`; a predicate is
//! `W × u32`, one bit a lane. Every offset is linear in `W`: a program stores the offset for `W = 1`, a launch
//! multiplies once. `.b8` registers live in `B16` slots (upper byte unspecified).

/// Warps in the widest bundle: blocks of 256 threads, of which most have no more, are one, and their barriers nothing.
pub const MAX_WARPS: usize = 8;
/// Lanes in a warp (WARP_SZ).
pub const WARP: usize = 32;

/// Width of a register slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Width {
    Pred,
    B16,
    B32,
    B64,
    B128,
}

impl Width {
    /// Bytes of one warp's run in this slot.
    pub const fn warp_bytes(self) -> u32 {
        match self {
            Width::Pred => 4,
            Width::B16 => 64,
            Width::B32 => 128,
            Width::B64 => 256,
            Width::B128 => 512,
        }
    }
}

/// Where an operation's operands lie: byte offsets into the register window, already multiplied by the bundle's width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Operands {
    pub dst: [u32; 2],
    pub src: [u32; 4],
    /// A constant that is part of the operation (a `lop3` table); most have none.
    pub imm: u64,
}

/// Which lanes run: `warps` runs of 32, `lanes[w]` the active ones of warp `w`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Mask {
    pub warps: u32,
    pub lanes: [u32; MAX_WARPS],
}

/// Computes all lanes of an operation.
///
/// # Safety
/// `regs` points at a window in which every operand slot lies, 64-byte aligned, exclusively the caller's; the CPU has
/// the features that the function was compiled for.
pub type LaneFn = unsafe fn(regs: *mut u8, operands: &Operands, mask: &Mask);

/// An operation over lanes in its two forms: `full` writes every lane of `mask.warps` warps whatever the mask says;
/// `masked` writes active lanes only, by bit blends.
#[derive(Clone, Copy, Debug)]
pub struct LaneKernel {
    pub full: LaneFn,
    pub masked: LaneFn,
}
