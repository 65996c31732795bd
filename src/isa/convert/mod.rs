//! `cvt` and `cvt.pack` (PTX ISA, Data Movement and Conversion Instructions) but for the formats of eight bits and fewer:
//! the operations, and which kernel computes each.

pub mod read;
mod scalar;

use std::fmt;

pub use self::scalar::*;
use self::scalar::{FTZ, INTEGRAL, RELU, SAT, SATFINITE, code};
use super::algebra::Linear;
use super::lane::Lane;
use super::types::{Rounding, Type, subtypes};
use super::words::{modifiers, opcode};

subtypes! {
    /// Two halves from two numbers.
    Halves { F16x2, Bf16x2 }
}
modifiers! { Kind Halves Packed }

/// How a conversion rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Round {
    /// It need not, or does as integers do.
    Unsaid,
    To(Rounding),
    /// To integral values: `.rni` …
    Integral(Rounding),
}

impl Round {
    fn mode(self) -> Option<Rounding> {
        match self {
            Round::Unsaid => None,
            Round::To(mode) | Round::Integral(mode) => Some(mode),
        }
    }
    fn word(self) -> Option<&'static str> {
        match self {
            Round::Unsaid => None,
            Round::To(mode) => Some(mode.word()),
            Round::Integral(mode) => Some(match mode {
                Rounding::Rn | Rounding::Rna | Rounding::Rs => "rni",
                Rounding::Rz => "rzi",
                Rounding::Rm => "rmi",
                Rounding::Rp => "rpi",
            }),
        }
    }
}

/// What becomes of operands and results besides rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    pub ftz: bool,
    pub sat: bool,
    pub relu: bool,
    pub satfinite: bool,
}

impl Flags {
    fn code(self) -> u64 {
        let flag = |set, bit| if set { bit } else { 0 };
        flag(self.ftz, FTZ) | flag(self.sat, SAT) | flag(self.relu, RELU) | flag(self.satfinite, SATFINITE)
    }
}

/// The elements of `cvt.pack`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Packed { U16, S16, U8, S8, U4, S4, U2, S2 }

impl Packed {
    const ALL: [Packed; 8] = [
        Packed::U16,
        Packed::S16,
        Packed::U8,
        Packed::S8,
        Packed::U4,
        Packed::S4,
        Packed::U2,
        Packed::S2,
    ];

    /// As written behind a dot.
    pub fn word(self) -> &'static str {
        match self {
            Packed::U16 => "u16",
            Packed::S16 => "s16",
            Packed::U8 => "u8",
            Packed::S8 => "s8",
            Packed::U4 => "u4",
            Packed::S4 => "s4",
            Packed::U2 => "u2",
            Packed::S2 => "s2",
        }
    }
    /// Bits, and whether there is a sign.
    fn shape(self) -> (u64, bool) {
        match self {
            Packed::U16 => (16, false),
            Packed::S16 => (16, true),
            Packed::U8 => (8, false),
            Packed::S8 => (8, true),
            Packed::U4 => (4, false),
            Packed::S4 => (4, true),
            Packed::U2 => (2, false),
            Packed::S2 => (2, true),
        }
    }
}

/// A conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Op {
    Cvt { to: Kind, from: Kind, round: Round, flags: Flags },
    /// Two `f32` to two halves: the first one goes to the upper half.
    Halves { to: Halves, rounding: Rounding, relu: bool, satfinite: bool },
    /// `cvt.pack.sat.u16.s32`: two numbers; of fewer bits over the low bits of a third operand.
    Pack { to: Packed },
}

impl Op {
    pub fn lane(self) -> Lane {
        match self {
            Op::Cvt { to, from, round, flags } => cvt(to, from, round, flags),
            Op::Halves {
                to,
                rounding,
                relu,
                satfinite,
            } => match (to, rounding == Rounding::Rn && !relu && !satfinite) {
                (Halves::F16x2, true) => Lane::of::<F16x2FromF32>(),
                (Halves::Bf16x2, true) => Lane::of::<Bf16x2FromF32>(),
                (half, false) => {
                    let half = match half {
                        Halves::F16x2 => Kind::F16,
                        Halves::Bf16x2 => Kind::Bf16,
                    };
                    let flags = Flags {
                        relu,
                        satfinite,
                        ..Flags::default()
                    };
                    Lane::of::<HalvesFromF32>().with(code(half, Kind::F32, rounding, flags.code()))
                }
            },
            Op::Pack { to } => {
                let (bits, signed) = to.shape();
                let lane = match bits {
                    16 => Lane::of::<CvtPack>(),
                    _ => Lane::of::<CvtPackC>(),
                };
                lane.with(bits | u64::from(signed) << 8)
            }
        }
    }
}

impl Op {
    pub(super) fn is_between_integers(self) -> bool {
        match self {
            Op::Cvt { to, from, .. } => to.float().is_none() && from.float().is_none(),
            Op::Halves { .. } | Op::Pack { .. } => false,
        }
    }

    pub(super) fn linear(self) -> Option<Linear> {
        let Op::Cvt {
            to,
            from,
            round: Round::Unsaid,
            flags:
                Flags {
                    ftz: false,
                    sat: false,
                    relu: false,
                    satfinite: false,
                },
        } = self
        else {
            return None;
        };
        // Integers of 32 and 64 bits: whether they are the longer ones.
        let long = |kind| match kind {
            Kind::U32 | Kind::S32 => Some(false),
            Kind::U64 | Kind::S64 => Some(true),
            Kind::U8
            | Kind::S8
            | Kind::U16
            | Kind::S16
            | Kind::F16
            | Kind::Bf16
            | Kind::Tf32
            | Kind::F32
            | Kind::F64 => None,
        };
        Some(match (long(to)?, long(from)?) {
            (true, false) => Linear::Widen {
                signed: from == Kind::S32,
            },
            (false, true) => Linear::Narrow,
            (true, true) | (false, false) => Linear::Copy,
        })
    }
}

fn cvt(to: Kind, from: Kind, round: Round, flags: Flags) -> Lane {
    let integral = matches!(round, Round::Integral(_));
    let flags = flags.code() | if integral { INTEGRAL } else { 0 };
    quick(to, from, round.mode(), flags).unwrap_or_else(|| {
        let code = code(to, from, round.mode().unwrap_or(Rounding::Rn), flags);
        let lane = match (to.bits(), from.bits()) {
            (8 | 16, 8 | 16) => Lane::of::<Convert<u16, u16>>(),
            (8 | 16, 32) => Lane::of::<Convert<u16, u32>>(),
            (8 | 16, _) => Lane::of::<Convert<u16, u64>>(),
            (32, 8 | 16) => Lane::of::<Convert<u32, u16>>(),
            (32, 32) => Lane::of::<Convert<u32, u32>>(),
            (32, _) => Lane::of::<Convert<u32, u64>>(),
            (_, 8 | 16) => Lane::of::<Convert<u64, u16>>(),
            (_, 32) => Lane::of::<Convert<u64, u32>>(),
            (..) => Lane::of::<Convert<u64, u64>>(),
        };
        lane.with(code)
    })
}

/// The conversions with a kernel of their own.
fn quick(to: Kind, from: Kind, mode: Option<Rounding>, flags: u64) -> Option<Lane> {
    use Kind::*;
    let nearest = matches!(mode, None | Some(Rounding::Rn));
    Some(match (to, from, flags) {
        (U16 | S16, U16 | S16, 0) => Lane::of::<Same16>(),
        (U32 | S32, U32 | S32, 0) => Lane::of::<Same32>(),
        (U64 | S64, U64 | S64, 0) => Lane::of::<Same64>(),
        (U16 | S16, U32 | S32, 0) => Lane::of::<Low32To16>(),
        (U16 | S16, U64 | S64, 0) => Lane::of::<Low64To16>(),
        (U32 | S32, U64 | S64, 0) => Lane::of::<Low64To32>(),
        (U32 | S32, U16, 0) => Lane::of::<U16ToU32>(),
        (U32 | S32, S16, 0) => Lane::of::<S16ToS32>(),
        (U64 | S64, U16, 0) => Lane::of::<U16ToU64>(),
        (U64 | S64, S16, 0) => Lane::of::<S16ToS64>(),
        (U64 | S64, U32, 0) => Lane::of::<U32ToU64>(),
        (U64 | S64, S32, 0) => Lane::of::<S32ToS64>(),
        (U8, U8 | S8 | U16 | S16, 0) | (U16 | S16, U8, 0) => Lane::of::<U8To16>(),
        (S8, U8 | S8 | U16 | S16, 0) | (U16 | S16, S8, 0) => Lane::of::<S8To16>(),
        (U8, U32 | S32, 0) => Lane::of::<Low32ToU8>(),
        (U8, U64 | S64, 0) => Lane::of::<Low64ToU8>(),
        (S8, U32 | S32, 0) => Lane::of::<Low32ToS8>(),
        (S8, U64 | S64, 0) => Lane::of::<Low64ToS8>(),
        (U32 | S32, U8, 0) => Lane::of::<U8To32>(),
        (U32 | S32, S8, 0) => Lane::of::<S8To32>(),
        (U64 | S64, U8, 0) => Lane::of::<U8To64>(),
        (U64 | S64, S8, 0) => Lane::of::<S8To64>(),

        // No integer becomes a subnormal: `.ftz` changes nothing.
        (F32, S32, 0 | FTZ) if nearest => Lane::of::<S32ToF32>(),
        (F32, U32, 0 | FTZ) if nearest => Lane::of::<U32ToF32>(),
        (F32, S64, 0 | FTZ) if nearest => Lane::of::<S64ToF32>(),
        (F32, U64, 0 | FTZ) if nearest => Lane::of::<U64ToF32>(),
        (F32, S16, 0 | FTZ) => Lane::of::<S16ToF32>(),
        (F32, U16, 0 | FTZ) => Lane::of::<U16ToF32>(),
        (F32, S8, 0 | FTZ) => Lane::of::<S8ToF32>(),
        (F32, U8, 0 | FTZ) => Lane::of::<U8ToF32>(),
        (F64, S32, 0) => Lane::of::<S32ToF64>(),
        (F64, U32, 0) => Lane::of::<U32ToF64>(),
        (F64, S64, 0) if nearest => Lane::of::<S64ToF64>(),
        (F64, U64, 0) if nearest => Lane::of::<U64ToF64>(),
        (F64, S16, 0) => Lane::of::<S16ToF64>(),
        (F64, U16, 0) => Lane::of::<U16ToF64>(),

        // Halves are no subnormals of `f32`: `.ftz` changes nothing.
        (F32, F16, 0 | FTZ) => Lane::of::<F16ToF32>(),
        (F32, F16, flags) if flags & !FTZ == SAT => Lane::of::<F16ToF32Sat>(),
        (F32, Bf16, 0) => Lane::of::<Bf16ToF32>(),
        (F16, F32, 0 | FTZ) if nearest => Lane::of::<F32ToF16>(),
        (Bf16, F32, 0) if nearest => Lane::of::<F32ToBf16>(),
        (F32, F64, 0) if nearest => Lane::of::<F64ToF32>(),
        (F64, F32, 0) => Lane::of::<F32ToF64>(),
        (F64, F32, FTZ) => Lane::of::<F32ToF64Ftz>(),
        // Moves: a NaN stays what it is.
        (F32, F32, 0) => Lane::of::<Same32>(),
        (F64, F64, 0) => Lane::of::<Same64>(),
        (F32, F32, FTZ) => Lane::of::<CopyFtzF32>(),
        (F32, F32, SAT) => Lane::of::<SatF32>(),
        (F32, F32, flags) if flags == SAT | FTZ => Lane::of::<SatFtzF32>(),

        (_, _, flags) => match (to, from, mode?, flags & INTEGRAL != 0 && flags & !(INTEGRAL | SAT) == 0) {
            // Saturation is what happens anyway.
            (S32, F32, Rounding::Rz, true) => Lane::of::<F32ToS32>(),
            (U32, F32, Rounding::Rz, true) => Lane::of::<F32ToU32>(),
            (S64, F32, Rounding::Rz, true) => Lane::of::<F32ToS64>(),
            (U64, F32, Rounding::Rz, true) => Lane::of::<F32ToU64>(),
            (S32, F64, Rounding::Rz, true) => Lane::of::<F64ToS32>(),
            (U32, F64, Rounding::Rz, true) => Lane::of::<F64ToU32>(),
            (S64, F64, Rounding::Rz, true) => Lane::of::<F64ToS64>(),
            (U64, F64, Rounding::Rz, true) => Lane::of::<F64ToU64>(),
            (S32, F32, mode, true) => Lane::of::<F32ToS32Rnd>().with(mode.code()),
            (U32, F32, mode, true) => Lane::of::<F32ToU32Rnd>().with(mode.code()),
            (S32, F64, mode, true) => Lane::of::<F64ToS32Rnd>().with(mode.code()),
            (S64, F64, mode, true) => Lane::of::<F64ToS64Rnd>().with(mode.code()),
            (F32, F32, mode, true) if flags & SAT == 0 => Lane::of::<RoundF32>().with(mode.code()),
            (F64, F64, mode, true) if flags & SAT == 0 => Lane::of::<RoundF64>().with(mode.code()),
            // A truncated subnormal is zero whether it is flushed or not.
            (S32, F32, Rounding::Rz, false) if flags & !(INTEGRAL | SAT | FTZ) == 0 => Lane::of::<F32ToS32>(),
            (U32, F32, Rounding::Rz, false) if flags & !(INTEGRAL | SAT | FTZ) == 0 => Lane::of::<F32ToU32>(),
            _ => return None,
        },
    })
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Op::Cvt { to, from, round, flags } => opcode!(
                f,
                "cvt",
                round.word(),
                (flags.ftz, "ftz"),
                (flags.sat, "sat"),
                (flags.relu, "relu"),
                (flags.satfinite, "satfinite"),
                to,
                from
            ),
            Op::Halves {
                to,
                rounding,
                relu,
                satfinite,
            } => opcode!(
                f,
                "cvt",
                rounding,
                (relu, "relu"),
                (satfinite, "satfinite"),
                to,
                Type::F32
            ),
            Op::Pack { to } => {
                let (bits, _) = to.shape();
                opcode!(f, "cvt.pack.sat", to, Type::S32, (bits < 16, "b32"))
            }
        }
    }
}
