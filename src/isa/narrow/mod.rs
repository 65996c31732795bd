//! Conversions to and from the formats of eight bits and fewer, alone and scaled, and stochastic rounding (PTX ISA,
//! Alternate Floating-Point Data Formats, Fixed-point Data format; `cvt`): the operations, and which kernel computes each.

pub mod read;
mod scalar;

use std::fmt;

pub(crate) use self::scalar::Layout;
pub use self::scalar::Narrow;
use self::scalar::{
    BF16, HalvesDown, HalvesDownExact, HalvesDownScaled, HalvesUp, HalvesUpExact, HalvesUpScaled, RELU, RandomHalves,
    RandomPair, SATFINITE, SinglesDown, SinglesDownExact, SinglesDownScaled, UPPER, code,
};
use super::lane::Lane;
use super::types::{Rounding, Type, subtypes};
use super::words::{modifiers, opcode};

impl Narrow {
    fn of(ty: Type) -> Option<Narrow> {
        Some(match ty {
            Type::E4m3x2 | Type::E4m3x4 => Narrow::E4m3,
            Type::E5m2x2 | Type::E5m2x4 => Narrow::E5m2,
            Type::E2m3x2 | Type::E2m3x4 => Narrow::E2m3,
            Type::E3m2x2 | Type::E3m2x4 => Narrow::E3m2,
            Type::E2m1x2 | Type::E2m1x4 => Narrow::E2m1,
            Type::Ue5m3x2 => Narrow::Ue5m3,
            Type::Ue8m0x2 => Narrow::Ue8m0,
            Type::S2f6x2 => Narrow::S2f6,
            _ => return None,
        })
    }
    /// Two of them.
    const fn pair(self) -> Type {
        match self {
            Narrow::E4m3 => Type::E4m3x2,
            Narrow::E5m2 => Type::E5m2x2,
            Narrow::E2m3 => Type::E2m3x2,
            Narrow::E3m2 => Type::E3m2x2,
            Narrow::E2m1 => Type::E2m1x2,
            Narrow::Ue5m3 => Type::Ue5m3x2,
            Narrow::Ue8m0 => Type::Ue8m0x2,
            Narrow::S2f6 => Type::S2f6x2,
        }
    }
}

subtypes! {
    /// What two elements of a narrow format are made of.
    Source { F32, F16x2, Bf16x2 }
    /// What is made of them.
    Halves { F16x2, Bf16x2 }
    /// Four elements of a narrow format.
    Four { E4m3x4, E5m2x4, E2m3x4, E3m2x4, E2m1x4 }
}
modifiers! { Source Halves Four }

impl Four {
    fn format(self) -> Narrow {
        match self {
            Four::E4m3x4 => Narrow::E4m3,
            Four::E5m2x4 => Narrow::E5m2,
            Four::E2m3x4 => Narrow::E2m3,
            Four::E3m2x4 => Narrow::E3m2,
            Four::E2m1x4 => Narrow::E2m1,
        }
    }
}

/// What becomes of results: negative ones become zero, those too large the greatest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    pub relu: bool,
    pub satfinite: bool,
}

impl Limits {
    fn code(self, bf16: bool) -> u64 {
        let flag = |set, bit| if set { bit } else { 0 };
        flag(self.relu, RELU) | flag(self.satfinite, SATFINITE) | flag(bf16, BF16)
    }
}

/// A conversion to or from a narrow format, or with random bits. `scaled`: by powers of two, the last operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Op {
    /// Two elements to a narrow format.
    Down { to: Narrow, from: Source, rounding: Rounding, limits: Limits, scaled: bool },
    /// Two elements of a narrow format to halves.
    Up { to: Halves, from: Narrow, limits: Limits, scaled: bool },
    /// Two elements to halves, with random bits.
    RandomHalves { to: Halves, limits: Limits },
    /// Four elements to a narrow format, with random bits: the operation on two of them, which takes what the other two
    /// became as a last operand. Lowering makes two, the first one `upper`: the upper elements, in a slot of 32 bits,
    /// above which nothing is. Text has no word for that one.
    RandomFour { to: Four, relu: bool, upper: bool },
}

impl Op {
    pub fn lane(self) -> Lane {
        match self {
            Op::Down {
                to,
                from,
                rounding,
                limits,
                scaled,
            } => {
                let quick = rounding == Rounding::Rn && limits.satfinite && to.is_signed() && to.is_floating();
                let lane = match (from, scaled) {
                    (Source::F32, false) if quick => Lane::of::<SinglesDown>(),
                    (Source::F32, false) => Lane::of::<SinglesDownExact>(),
                    (Source::F32, true) => Lane::of::<SinglesDownScaled>(),
                    (Source::F16x2 | Source::Bf16x2, false) if quick => Lane::of::<HalvesDown>(),
                    (Source::F16x2 | Source::Bf16x2, false) => Lane::of::<HalvesDownExact>(),
                    (Source::F16x2 | Source::Bf16x2, true) => Lane::of::<HalvesDownScaled>(),
                };
                lane.with(code(to, rounding, limits.code(from == Source::Bf16x2)))
            }
            Op::Up {
                to,
                from,
                limits,
                scaled,
            } => {
                let quick = !limits.relu && !limits.satfinite && from.is_floating();
                let lane = match scaled {
                    true => Lane::of::<HalvesUpScaled>(),
                    false if quick => Lane::of::<HalvesUp>(),
                    false => Lane::of::<HalvesUpExact>(),
                };
                lane.with(code(from, Rounding::Rn, limits.code(to == Halves::Bf16x2)))
            }
            Op::RandomHalves { to, limits } => {
                // Its kernel does not ask for the format.
                let code = code(Narrow::E4m3, Rounding::Rs, limits.code(to == Halves::Bf16x2));
                Lane::of::<RandomHalves>().with(code)
            }
            Op::RandomFour { to, relu, upper } => {
                let limits = Limits { relu, satfinite: true };
                let lane = match (to, upper) {
                    (Four::E2m1x4, false) => Lane::of::<RandomPair<u16>>(),
                    (Four::E4m3x4 | Four::E5m2x4 | Four::E2m3x4 | Four::E3m2x4, false) | (_, true) => {
                        Lane::of::<RandomPair<u32>>()
                    }
                };
                let upper = if upper { UPPER } else { 0 };
                lane.with(code(to.format(), Rounding::Rs, limits.code(false)) | upper)
            }
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SCALED: &str = "scaled::n2::ue8m0";
        match *self {
            Op::Down {
                to,
                from,
                rounding,
                limits,
                scaled,
            } => opcode!(
                f,
                "cvt",
                rounding,
                (limits.relu, "relu"),
                (limits.satfinite, "satfinite"),
                (scaled, SCALED),
                to.pair(),
                from
            ),
            Op::Up {
                to,
                from,
                limits,
                scaled,
            } => opcode!(
                f,
                "cvt.rn",
                (limits.relu, "relu"),
                (limits.satfinite, "satfinite"),
                (scaled, SCALED),
                to,
                from.pair()
            ),
            Op::RandomHalves { to, limits } => opcode!(
                f,
                "cvt.rs",
                (limits.relu, "relu"),
                (limits.satfinite, "satfinite"),
                to,
                Type::F32
            ),
            Op::RandomFour { to, relu, upper } => {
                opcode!(
                    f,
                    "cvt.rs",
                    (relu, "relu"),
                    "satfinite",
                    to,
                    Type::F32,
                    (upper, "upper")
                )
            }
        }
    }
}
