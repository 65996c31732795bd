//! Operations that lowering makes itself, of no opcode or of one that the text does not have.

use super::compare::{self, Compare, Operands};
use super::lanes::Width;
use super::logic::{self, Logical};
use super::moves::{self, Extract, Pack, Resize, Words};
use super::types::{Bits, IntType, Movable};
use super::{Compute, int};

impl Compute {
    pub const fn add(ty: IntType) -> Compute {
        Compute::Int(int::Op::Add { ty })
    }
    pub const fn sub(ty: IntType) -> Compute {
        Compute::Int(int::Op::Sub { ty })
    }
    pub const fn mul_lo(ty: IntType) -> Compute {
        let part = int::Part::Lo;
        Compute::Int(int::Op::Mul { part, ty })
    }
    pub const fn min(ty: int::Ordered) -> Compute {
        Compute::Int(int::Op::Min { ty })
    }
    pub const fn and(ty: Logical) -> Compute {
        Compute::Logic(logic::Op::And { ty })
    }
    pub const fn or(ty: Logical) -> Compute {
        Compute::Logic(logic::Op::Or { ty })
    }
    pub const fn xor(ty: Logical) -> Compute {
        Compute::Logic(logic::Op::Xor { ty })
    }
    pub const fn not(ty: Logical) -> Compute {
        Compute::Logic(logic::Op::Not { ty })
    }
    pub const fn shl(ty: Bits) -> Compute {
        Compute::Logic(logic::Op::Shl { ty })
    }
    pub const fn setp(compare: Compare, of: Operands) -> Compute {
        let boolean = None;
        Compute::Compare(compare::Op::Setp { compare, boolean, of })
    }
    /// `dst = p ? a : b`, as wide as a slot; predicates are selected otherwise.
    pub const fn select(width: Width) -> Option<Compute> {
        let ty = match width {
            Width::B16 => Movable::B16,
            Width::B32 => Movable::B32,
            Width::B64 => Movable::B64,
            Width::B128 => return Some(Compute::Move(moves::Op::Select128)),
            Width::Pred => return None,
        };
        Some(Compute::Logic(logic::Op::Selp { ty }))
    }

    /// Copies a slot of one width to a slot of the same width.
    pub const fn copy(width: Width) -> Compute {
        Compute::Move(moves::Op::Copy { width })
    }

    /// Copies between slots of different widths: truncates, or extends by zeros or by the sign. Predicates take no
    /// part.
    pub const fn resize(from: Width, to: Width, signed: bool) -> Option<Compute> {
        use Width::*;
        Some(Compute::Move(moves::Op::Resize(match (from, to, signed) {
            (B16, B32, true) => Resize::Sign16To32,
            (B16, B64, true) => Resize::Sign16To64,
            (B32, B64, true) => Resize::Sign32To64,
            (B16, B32, false) => Resize::Zero16To32,
            (B16, B64, false) => Resize::Zero16To64,
            (B16, B128, _) => Resize::Zero16To128,
            (B32, B64, false) => Resize::Zero32To64,
            (B32, B128, _) => Resize::Zero32To128,
            (B64, B128, _) => Resize::Zero64To128,
            (B32, B16, _) => Resize::Low32To16,
            (B64, B16, _) => Resize::Low64To16,
            (B64, B32, _) => Resize::Low64To32,
            (B128, B16, _) => Resize::Low128To16,
            (B128, B32, _) => Resize::Low128To32,
            (B128, B64, _) => Resize::Low128To64,
            (Pred, _, _) | (_, Pred, _) => return None,
            (B16, B16, _) | (B32, B32, _) | (B64, B64, _) | (B128, B128, _) => return Some(Compute::copy(from)),
        })))
    }

    /// The low byte of a `B16` slot extended to the whole slot.
    pub const fn extend_byte(signed: bool) -> Compute {
        Compute::Move(moves::Op::ExtendByte { signed })
    }

    /// `dst = (src != 0)`.
    pub fn is_nonzero(width: Width) -> Option<Compute> {
        Some(Compute::Move(moves::Op::IsNonzero(Words::of(width)?)))
    }

    /// Packs `count` elements, the first lowest. Elements are bytes where `bytes` is 1 (in `B16` slots), otherwise
    /// slots of 2, 4 or 8 bytes.
    pub const fn pack(bytes: u32, count: usize) -> Option<Compute> {
        Some(Compute::Move(moves::Op::Pack(match (bytes, count) {
            (1, 2) => Pack::B8x2,
            (1, 4) => Pack::B8x4,
            (2, 2) => Pack::B16x2,
            (2, 4) => Pack::B16x4,
            (4, 2) => Pack::B32x2,
            (4, 4) => Pack::B32x4,
            (8, 2) => Pack::B64x2,
            _ => return None,
        })))
    }

    /// Element `index` (of `bytes` bytes each, 1 meaning bytes in `B16` slots) of a slot of width `from`. The caller
    /// sees to it that no destination is the source before its last use.
    pub const fn extract(from: Width, bytes: u32, index: u32) -> Option<Compute> {
        let of = match (from, bytes) {
            (Width::B16, 1) => Extract::B8From16,
            (Width::B32, 1) => Extract::B8From32,
            (Width::B32, 2) => Extract::B16From32,
            (Width::B64, 2) => Extract::B16From64,
            (Width::B64, 4) => Extract::B32From64,
            (Width::B128, 4) => Extract::B32From128,
            (Width::B128, 8) => Extract::B64From128,
            _ => return None,
        };
        let index = index as u8;
        Some(Compute::Move(moves::Op::Extract { of, index }))
    }

    /// Writes a constant to all lanes.
    pub fn constant(width: Width, value: u64) -> Option<Compute> {
        let of = Words::of(width)?;
        Some(Compute::Move(moves::Op::Constant { of, value }))
    }
}
