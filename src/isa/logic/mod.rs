//! Logic, shifts, selection and byte permutation (PTX ISA, Logic and Shift Instructions; `prmt`, `selp`, `slct`): the
//! operations, and which kernel computes each.

pub mod read;
mod scalar;

use std::fmt;

pub use self::scalar::*;
use super::algebra::{Bitwise, Linear};
use super::lane::Lane;
use super::types::{Bits, Movable, subtypes};
use super::words::{modifiers, opcode};

subtypes! {
    /// Bits of a register, or a predicate.
    Logical { Pred, B16, B32, B64 }
    /// What `shr` shifts: signs follow signed types.
    Shifted { B16, B32, B64, U16, U32, U64, S16, S32, S64 }
}
modifiers! { Logical Shifted PrmtMode }

/// What `prmt` does instead of taking bytes by selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum PrmtMode { F4e, B4e, Rc8, Ecl, Ecr, Rc16 }

impl PrmtMode {
    const ALL: [PrmtMode; 6] = [
        PrmtMode::F4e,
        PrmtMode::B4e,
        PrmtMode::Rc8,
        PrmtMode::Ecl,
        PrmtMode::Ecr,
        PrmtMode::Rc16,
    ];

    /// As written behind a dot.
    pub fn word(self) -> &'static str {
        match self {
            PrmtMode::F4e => "f4e",
            PrmtMode::B4e => "b4e",
            PrmtMode::Rc8 => "rc8",
            PrmtMode::Ecl => "ecl",
            PrmtMode::Ecr => "ecr",
            PrmtMode::Rc16 => "rc16",
        }
    }

    /// The selectors of the general form that do what the mode does for `c & 3` = 0 … 3, packed.
    pub(crate) fn selectors(self) -> u64 {
        let selectors: [u16; 4] = match self {
            PrmtMode::F4e => [0x3210, 0x4321, 0x5432, 0x6543],
            PrmtMode::B4e => [0x5670, 0x6701, 0x7012, 0x0123],
            PrmtMode::Rc8 => [0x0000, 0x1111, 0x2222, 0x3333],
            PrmtMode::Ecl => [0x3210, 0x3211, 0x3222, 0x3333],
            PrmtMode::Ecr => [0x0000, 0x1110, 0x2210, 0x3210],
            PrmtMode::Rc16 => [0x1010, 0x3232, 0x1010, 0x3232],
        };
        selectors
            .iter()
            .rev()
            .fold(0, |packed, &selector| packed << 16 | u64::from(selector))
    }
}

/// How `lop3.BoolOp` combines "the result is not zero" with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Lop3Predicate { And, Or }

/// What decides `slct`: `a` where it is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Sign { S32, F32 { ftz: bool } }

/// A logic, shift or selecting instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Op {
    And { ty: Logical },
    Or { ty: Logical },
    Xor { ty: Logical },
    Not { ty: Logical },
    Cnot { ty: Bits },
    /// Any function of three bits: bit `4a + 2b + c` of `table` is its value. Text has the table as an operand: decoding
    /// leaves it 0, [`Compute::with_immediate`] puts it in.
    Lop3 { predicate: Option<Lop3Predicate>, table: u8 },
    Shl { ty: Bits },
    Shr { ty: Shifted },
    /// Funnel shifts; `wrap`: the low bits of the amount count.
    ShfL { wrap: bool },
    ShfR { wrap: bool },
    Prmt { mode: Option<PrmtMode> },
    Selp { ty: Movable },
    Slct { ty: Movable, by: Sign },
}

macro_rules! by_bits {
    ($op:ident, $ty:expr) => {
        match $ty {
            Bits::B16 => Lane::of::<$op<u16>>(),
            Bits::B32 => Lane::of::<$op<u32>>(),
            Bits::B64 => Lane::of::<$op<u64>>(),
        }
    };
}
macro_rules! by_logical {
    ($op:ident, $predicate:ident, $ty:expr) => {
        match $ty {
            Logical::Pred => predicate_lane::<$predicate>(),
            Logical::B16 => Lane::of::<$op<u16>>(),
            Logical::B32 => Lane::of::<$op<u32>>(),
            Logical::B64 => Lane::of::<$op<u64>>(),
        }
    };
}

impl Op {
    pub fn lane(self) -> Lane {
        match self {
            Op::And { ty } => by_logical!(And, PredAnd, ty),
            Op::Or { ty } => by_logical!(Or, PredOr, ty),
            Op::Xor { ty } => by_logical!(Xor, PredXor, ty),
            Op::Not { ty } => by_logical!(Not, PredNot, ty),
            Op::Cnot { ty } => by_bits!(Cnot, ty),
            Op::Lop3 { predicate, table } => {
                let lane = match predicate {
                    None => Lane::of::<Lop3>(),
                    Some(Lop3Predicate::And) => Lane::of::<Lop3And>(),
                    Some(Lop3Predicate::Or) => Lane::of::<Lop3Or>(),
                };
                lane.with(table.into()).immediate(3)
            }
            Op::Shl { ty } => by_bits!(Shl, ty),
            Op::Shr { ty } => match ty {
                Shifted::B16 | Shifted::U16 => Lane::of::<ShrU<u16>>(),
                Shifted::B32 | Shifted::U32 => Lane::of::<ShrU<u32>>(),
                Shifted::B64 | Shifted::U64 => Lane::of::<ShrU<u64>>(),
                Shifted::S16 => Lane::of::<ShrS<u16>>(),
                Shifted::S32 => Lane::of::<ShrS<u32>>(),
                Shifted::S64 => Lane::of::<ShrS<u64>>(),
            },
            Op::ShfL { wrap: false } => Lane::of::<ShfL<false>>(),
            Op::ShfL { wrap: true } => Lane::of::<ShfL<true>>(),
            Op::ShfR { wrap: false } => Lane::of::<ShfR<false>>(),
            Op::ShfR { wrap: true } => Lane::of::<ShfR<true>>(),
            Op::Prmt { mode: Some(mode) } => Lane::of::<PrmtByMode>().with(mode.selectors()),
            Op::Prmt { mode: None } => Lane::of::<Prmt>(),
            Op::Selp { ty } => by_bits!(Selp, ty.bits()),
            Op::Slct { ty, by: Sign::S32 } => by_bits!(Slct, ty.bits()),
            Op::Slct {
                ty,
                by: Sign::F32 { ftz: true },
            } => by_bits!(SlctF32Ftz, ty.bits()),
            Op::Slct {
                ty,
                by: Sign::F32 { ftz: false },
            } => by_bits!(SlctF32, ty.bits()),
        }
    }
}

impl Op {
    pub(super) fn with_immediate(self, value: u64) -> Op {
        match self {
            Op::Lop3 { predicate, table: _ } => Op::Lop3 {
                predicate,
                table: value as u8,
            },
            Op::And { .. }
            | Op::Or { .. }
            | Op::Xor { .. }
            | Op::Not { .. }
            | Op::Cnot { .. }
            | Op::Shl { .. }
            | Op::Shr { .. }
            | Op::ShfL { .. }
            | Op::ShfR { .. }
            | Op::Prmt { .. }
            | Op::Selp { .. }
            | Op::Slct { .. } => self,
        }
    }

    pub(super) fn is_shift(self) -> bool {
        match self {
            Op::Shl { .. } | Op::Shr { .. } => true,
            // Funnel shifts take their amount last.
            Op::ShfL { .. } | Op::ShfR { .. } => false,
            Op::And { .. }
            | Op::Or { .. }
            | Op::Xor { .. }
            | Op::Not { .. }
            | Op::Cnot { .. }
            | Op::Lop3 { .. }
            | Op::Prmt { .. }
            | Op::Selp { .. }
            | Op::Slct { .. } => false,
        }
    }

    pub(super) fn bitwise(self) -> Option<Bitwise> {
        let long = |ty, bitwise| match ty {
            Logical::Pred | Logical::B16 => None,
            Logical::B32 | Logical::B64 => Some(bitwise),
        };
        match self {
            Op::And { ty } => long(ty, Bitwise::And),
            Op::Or { ty } => long(ty, Bitwise::Or),
            Op::Shr { ty } => match ty {
                Shifted::B32 | Shifted::U32 | Shifted::B64 | Shifted::U64 => {
                    Some(Bitwise::ShiftRight { signed: false })
                }
                Shifted::S32 | Shifted::S64 => Some(Bitwise::ShiftRight { signed: true }),
                Shifted::B16 | Shifted::U16 | Shifted::S16 => None,
            },
            Op::Xor { .. }
            | Op::Not { .. }
            | Op::Cnot { .. }
            | Op::Lop3 { .. }
            | Op::Shl { .. }
            | Op::ShfL { .. }
            | Op::ShfR { .. }
            | Op::Prmt { .. }
            | Op::Selp { .. }
            | Op::Slct { .. } => None,
        }
    }

    pub(super) fn linear(self) -> Option<Linear> {
        match self {
            Op::Shl { ty } => match ty {
                Bits::B16 => None,
                Bits::B32 | Bits::B64 => Some(Linear::Shl),
            },
            Op::And { .. }
            | Op::Or { .. }
            | Op::Xor { .. }
            | Op::Not { .. }
            | Op::Cnot { .. }
            | Op::Lop3 { .. }
            | Op::Shr { .. }
            | Op::ShfL { .. }
            | Op::ShfR { .. }
            | Op::Prmt { .. }
            | Op::Selp { .. }
            | Op::Slct { .. } => None,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = |wrap| if wrap { "wrap" } else { "clamp" };
        match *self {
            Op::And { ty } => opcode!(f, "and", ty),
            Op::Or { ty } => opcode!(f, "or", ty),
            Op::Xor { ty } => opcode!(f, "xor", ty),
            Op::Not { ty } => opcode!(f, "not", ty),
            Op::Cnot { ty } => opcode!(f, "cnot", ty),
            Op::Lop3 { predicate, table: _ } => {
                let word = predicate.map(|predicate| match predicate {
                    Lop3Predicate::And => "and",
                    Lop3Predicate::Or => "or",
                });
                opcode!(f, "lop3", word, "b32")
            }
            Op::Shl { ty } => opcode!(f, "shl", ty),
            Op::Shr { ty } => opcode!(f, "shr", ty),
            Op::ShfL { wrap } => opcode!(f, "shf.l", mode(wrap), "b32"),
            Op::ShfR { wrap } => opcode!(f, "shf.r", mode(wrap), "b32"),
            Op::Prmt { mode } => opcode!(f, "prmt.b32", mode),
            Op::Selp { ty } => opcode!(f, "selp", ty),
            Op::Slct { ty, by: Sign::S32 } => opcode!(f, "slct", ty, "s32"),
            Op::Slct {
                ty,
                by: Sign::F32 { ftz },
            } => opcode!(f, "slct", (ftz, "ftz"), ty, "f32"),
        }
    }
}
