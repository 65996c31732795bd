//! Every pure lane-wise operation, as a value that passes can compare, take apart and make, and that every tier executes.

use std::fmt;

use super::algebra::{Bitwise, Contractible, Linear};
use super::lane::Lane;
use super::lanes::Width;
use super::logic::Logical;
use super::simd::Level;
use super::types::{IntType, Rounding};
use super::{approx, compare, convert, float, half, int, legacy, logic, moves, narrow, video};

/// A function of each lane's registers, and of nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compute {
    Int(int::Op),
    Float(float::Op),
    Approx(approx::Op),
    Half(half::Op),
    Compare(compare::Op),
    Logic(logic::Op),
    Convert(convert::Op),
    Narrow(narrow::Op),
    Video(video::Op),
    /// What PTX 1.x alone has.
    Legacy(legacy::Op),
    /// What no opcode means by itself.
    Move(moves::Op),
}

impl Compute {
    /// How it runs: kernels of the current level, widths of operands, constant.
    pub fn lane(self) -> Lane {
        match self {
            Compute::Int(op) => op.lane(),
            Compute::Float(op) => op.lane(),
            Compute::Approx(op) => op.lane(),
            Compute::Half(op) => op.lane(),
            Compute::Compare(op) => op.lane(),
            Compute::Logic(op) => op.lane(),
            Compute::Convert(op) => op.lane(),
            Compute::Narrow(op) => op.lane(),
            Compute::Video(op) => op.lane(),
            Compute::Legacy(op) => op.lane(),
            Compute::Move(op) => op.lane(),
        }
    }

    /// The same with the kernels of another level, which the CPU must have.
    pub fn at(self, level: Level) -> Lane {
        self.lane().at_level(level)
    }

    /// With the constant operand that its text has ([`Lane::imm`]); others have none.
    #[must_use]
    pub fn with_immediate(self, value: u64) -> Compute {
        match self {
            Compute::Logic(op) => Compute::Logic(op.with_immediate(value)),
            Compute::Int(_)
            | Compute::Float(_)
            | Compute::Approx(_)
            | Compute::Half(_)
            | Compute::Compare(_)
            | Compute::Convert(_)
            | Compute::Narrow(_)
            | Compute::Video(_)
            | Compute::Legacy(_)
            | Compute::Move(_) => self,
        }
    }

    /// Registers may be wider than the types say (PTX ISA, Operand Size Exceeding Instruction-Type Size).
    pub fn takes_wider_registers(self) -> bool {
        match self {
            Compute::Convert(_) | Compute::Narrow(_) => true,
            Compute::Int(_)
            | Compute::Float(_)
            | Compute::Approx(_)
            | Compute::Half(_)
            | Compute::Compare(_)
            | Compute::Logic(_)
            | Compute::Video(_)
            | Compute::Legacy(_)
            | Compute::Move(_) => false,
        }
    }

    /// A conversion from one integer type to another.
    pub fn is_between_integers(self) -> bool {
        match self {
            Compute::Convert(op) => op.is_between_integers(),
            Compute::Int(_)
            | Compute::Float(_)
            | Compute::Approx(_)
            | Compute::Half(_)
            | Compute::Compare(_)
            | Compute::Logic(_)
            | Compute::Narrow(_)
            | Compute::Video(_)
            | Compute::Legacy(_)
            | Compute::Move(_) => false,
        }
    }

    /// Three sources may be written where it takes two: the result is that of twice the same, `max(max(a, b), c)`.
    pub fn folds_three(self) -> bool {
        match self {
            Compute::Float(op) => op.folds_three(),
            Compute::Int(_)
            | Compute::Approx(_)
            | Compute::Half(_)
            | Compute::Compare(_)
            | Compute::Logic(_)
            | Compute::Convert(_)
            | Compute::Narrow(_)
            | Compute::Video(_)
            | Compute::Legacy(_)
            | Compute::Move(_) => false,
        }
    }

    /// The second source is the number of bits to shift by (`shl`, `shr`).
    pub fn is_shift(self) -> bool {
        match self {
            Compute::Logic(op) => op.is_shift(),
            Compute::Int(_)
            | Compute::Float(_)
            | Compute::Approx(_)
            | Compute::Half(_)
            | Compute::Compare(_)
            | Compute::Convert(_)
            | Compute::Narrow(_)
            | Compute::Video(_)
            | Compute::Legacy(_)
            | Compute::Move(_) => false,
        }
    }

    /// The result is the source, of the same width.
    pub fn is_copy(self) -> bool {
        match self {
            Compute::Move(op) => op.is_copy(),
            // Those of `cvt` that change nothing are rare.
            Compute::Int(_)
            | Compute::Float(_)
            | Compute::Approx(_)
            | Compute::Half(_)
            | Compute::Compare(_)
            | Compute::Logic(_)
            | Compute::Convert(_)
            | Compute::Narrow(_)
            | Compute::Video(_)
            | Compute::Legacy(_) => false,
        }
    }

    /// What it computes of its first destination, if that is linear in its operands.
    pub fn linear(self) -> Option<Linear> {
        match self {
            Compute::Int(op) => op.linear(),
            Compute::Logic(op) => op.linear(),
            Compute::Convert(op) => op.linear(),
            Compute::Compare(op) => op.linear(),
            Compute::Move(op) => op.linear(),
            Compute::Float(_)
            | Compute::Approx(_)
            | Compute::Half(_)
            | Compute::Narrow(_)
            | Compute::Video(_)
            | Compute::Legacy(_) => None,
        }
    }

    /// What it does to the bits of two integers, if that is simple.
    pub fn bitwise(self) -> Option<Bitwise> {
        match self {
            Compute::Logic(op) => op.bitwise(),
            Compute::Int(_)
            | Compute::Float(_)
            | Compute::Approx(_)
            | Compute::Half(_)
            | Compute::Compare(_)
            | Compute::Convert(_)
            | Compute::Narrow(_)
            | Compute::Video(_)
            | Compute::Legacy(_)
            | Compute::Move(_) => None,
        }
    }

    /// The sum of two integers of 32 or 64 bits; `None`: of another width.
    pub fn sum(width: Width) -> Option<Compute> {
        let ty = match width {
            Width::B32 => IntType::U32,
            Width::B64 => IntType::U64,
            Width::Pred | Width::B16 | Width::B128 => return None,
        };
        Some(Compute::Int(int::Op::Add { ty }))
    }

    /// NVIDIA's assembler makes a routine with branches of it.
    pub fn is_routine(self) -> bool {
        match self {
            Compute::Int(op) => op.is_routine(),
            Compute::Float(op) => op.is_routine(),
            Compute::Approx(op) => matches!(op, approx::Op::RsqrtF64 { .. }),
            Compute::Half(_)
            | Compute::Compare(_)
            | Compute::Logic(_)
            | Compute::Convert(_)
            | Compute::Narrow(_)
            | Compute::Video(_)
            | Compute::Legacy(_)
            | Compute::Move(_) => false,
        }
    }

    /// A product or sum whose rounding the text leaves open: what the assembler may make an `fma` of.
    pub fn contractible(self) -> Option<Contractible<Fused>> {
        match self {
            Compute::Float(op) => Some(op.contractible()?.map(Fused::Float)),
            Compute::Half(op) => Some(op.contractible()?.map(Fused::Half)),
            Compute::Int(_)
            | Compute::Approx(_)
            | Compute::Compare(_)
            | Compute::Logic(_)
            | Compute::Convert(_)
            | Compute::Narrow(_)
            | Compute::Video(_)
            | Compute::Legacy(_)
            | Compute::Move(_) => None,
        }
    }
}

/// Its opcode, from the operation itself. Decoding it gives the operation again, but for what only lowering makes
/// ([`moves`], [`narrow::Op::RandomFour`]) and what stands on operands ([`video`], the table of `lop3`).
impl fmt::Display for Compute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compute::Int(op) => op.fmt(f),
            Compute::Float(op) => op.fmt(f),
            Compute::Approx(op) => op.fmt(f),
            Compute::Half(op) => op.fmt(f),
            Compute::Compare(op) => op.fmt(f),
            Compute::Logic(op) => op.fmt(f),
            Compute::Convert(op) => op.fmt(f),
            Compute::Narrow(op) => op.fmt(f),
            Compute::Video(op) => op.fmt(f),
            Compute::Legacy(op) => op.fmt(f),
            Compute::Move(op) => op.fmt(f),
        }
    }
}

macro_rules! families {
    ($($variant:ident $op:ty;)*) => {$(
        impl From<$op> for Compute {
            fn from(op: $op) -> Compute {
                Compute::$variant(op)
            }
        }
    )*};
}
families! {
    Int int::Op;
    Float float::Op;
    Approx approx::Op;
    Half half::Op;
    Compare compare::Op;
    Logic logic::Op;
    Convert convert::Op;
    Narrow narrow::Op;
    Video video::Op;
    Legacy legacy::Op;
    Move moves::Op;
}

/// The type of a contractible product or sum, with what happens to subnormals and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fused {
    Float(float::Format),
    Half(half::Format),
}

impl Fused {
    /// What a product must be of, to become part of a sum of this: the result of the whole alone is limited.
    #[must_use]
    pub fn of_product(self) -> Fused {
        match self {
            Fused::Float(format) => Fused::Float(format.without_sat()),
            Fused::Half(format) => Fused::Half(format.without_sat()),
        }
    }

    /// The fused product and sum.
    pub fn fma(self) -> Compute {
        match self {
            Fused::Float(format) => Compute::Float(float::Op::Fma {
                rounding: Rounding::Rn,
                format,
            }),
            Fused::Half(half::Format::F16 { x2, ftz, sat }) => {
                let limit = if sat { half::Limit::Sat } else { half::Limit::None };
                Compute::Half(half::Op::FmaF16 { x2, ftz, limit })
            }
            Fused::Half(half::Format::Bf16 { x2 }) => Compute::Half(half::Op::FmaBf16 {
                x2,
                rounding: Rounding::Rn,
                relu: false,
            }),
        }
    }

    /// Whether a negation of this changes the sign of a product of the other and no more: it flushes nothing that the
    /// product has not flushed.
    pub fn keeps_products_of(self, product: Fused) -> bool {
        self == product || self.without_ftz() == self && self == product.without_ftz()
    }

    fn without_ftz(self) -> Fused {
        use half::Format::{Bf16, F16};
        match self {
            Fused::Float(float::Format::F32 { ftz: _, sat }) => Fused::Float(float::Format::F32 { ftz: false, sat }),
            Fused::Float(float::Format::F32x2 { ftz: _ }) => Fused::Float(float::Format::F32x2 { ftz: false }),
            Fused::Half(F16 { x2, ftz: _, sat }) => Fused::Half(F16 { x2, ftz: false, sat }),
            Fused::Float(float::Format::F64) | Fused::Half(Bf16 { x2: _ }) => self,
        }
    }

    /// The bits of a register that hold signs, and the type that all of them have together.
    pub fn signs(self) -> (Logical, u128) {
        match self {
            Fused::Float(float::Format::F32 { .. }) => (Logical::B32, 1 << 31),
            Fused::Float(float::Format::F64) => (Logical::B64, 1 << 63),
            Fused::Float(float::Format::F32x2 { .. }) => (Logical::B64, 1 << 63 | 1 << 31),
            Fused::Half(half::Format::F16 { x2: false, .. } | half::Format::Bf16 { x2: false }) => {
                (Logical::B16, 1 << 15)
            }
            Fused::Half(half::Format::F16 { x2: true, .. } | half::Format::Bf16 { x2: true }) => {
                (Logical::B32, 1 << 31 | 1 << 15)
            }
        }
    }
}
