//! `f16` and `bf16` arithmetic, alone, in pairs and mixed with `f32` (PTX ISA, Half Precision Floating Point Instructions;
//! Mixed Precision Floating-Point Instructions): the operations, and which kernel computes each.

pub mod read;
mod scalar;

use std::fmt;

pub use self::scalar::*;
use super::algebra::Contractible;
use super::float;
use super::lane::Lane;
use super::types::{HalfType, Rounding, Type, subtypes};
use super::words::{modifiers, opcode};

/// What a sum or a product is of. `x2`: both halves of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Format { F16 { x2: bool, ftz: bool, sat: bool }, Bf16 { x2: bool } }

impl Format {
    pub const fn ty(self) -> Type {
        match self {
            Format::F16 { x2: false, .. } => Type::F16,
            Format::F16 { x2: true, .. } => Type::F16x2,
            Format::Bf16 { x2: false } => Type::Bf16,
            Format::Bf16 { x2: true } => Type::Bf16x2,
        }
    }
    pub const fn sat(self) -> bool {
        self.flags().1
    }
    #[must_use]
    pub const fn without_sat(self) -> Format {
        match self {
            Format::F16 { x2, ftz, sat: _ } => Format::F16 { x2, ftz, sat: false },
            Format::Bf16 { .. } => self,
        }
    }
    /// `.ftz`, `.sat`
    const fn flags(self) -> (bool, bool) {
        match self {
            Format::F16 { ftz, sat, .. } => (ftz, sat),
            Format::Bf16 { .. } => (false, false),
        }
    }
}

/// The same where results are not limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Plain { F16 { x2: bool, ftz: bool }, Bf16 { x2: bool } }

impl Plain {
    pub const fn ty(self) -> Type {
        match self {
            Plain::F16 { x2: false, .. } => Type::F16,
            Plain::F16 { x2: true, .. } => Type::F16x2,
            Plain::Bf16 { x2: false } => Type::Bf16,
            Plain::Bf16 { x2: true } => Type::Bf16x2,
        }
    }
    const fn ftz(self) -> bool {
        match self {
            Plain::F16 { ftz, .. } => ftz,
            Plain::Bf16 { .. } => false,
        }
    }
}

/// What becomes of a fused multiply-add's result: `.sat` into [0, 1], `.relu` not below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Limit { None, Sat, Relu }

subtypes! {
    /// The format that is widened.
    Element { F16, Bf16 }
}
modifiers! { Element }

/// An instruction on halves. Without `rn` sums and products may become an `fma`; they round to nearest even either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Op {
    Add { rn: bool, format: Format },
    Sub { rn: bool, format: Format },
    Mul { rn: bool, format: Format },
    /// To nearest even.
    FmaF16 { x2: bool, ftz: bool, limit: Limit },
    FmaBf16 { x2: bool, rounding: Rounding, relu: bool },
    /// `fma.oob`: zero where a factor is what tensor copies write out of bounds.
    FmaOobF16 { x2: bool, limit: Limit },
    FmaOobBf16 { x2: bool, rounding: Rounding, relu: bool },
    Neg { format: Plain },
    Abs { format: Plain },
    /// `ex2.approx`, with `.ftz` for `bf16`.
    Ex2 { ty: HalfType },
    Tanh { ty: HalfType },
    Min { format: Plain, nan: bool, xorsign_abs: bool },
    Max { format: Plain, nan: bool, xorsign_abs: bool },
    /// `add.f32.f16 d, a, c`
    MixedAdd { rounding: Rounding, sat: bool, of: Element },
    MixedSub { rounding: Rounding, sat: bool, of: Element },
    MixedFma { rounding: Rounding, sat: bool, of: Element },
}

macro_rules! arithmetic {
    ($op:ident, $format:expr) => {
        match $format {
            Format::F16 { x2, ftz, sat } => match (x2, ftz, sat) {
                (false, false, false) => staged::<$op, F16, false, false, 1>(),
                (false, false, true) => staged::<$op, F16, false, true, 1>(),
                (false, true, false) => staged::<$op, F16, true, false, 1>(),
                (false, true, true) => staged::<$op, F16, true, true, 1>(),
                (true, false, false) => staged::<$op, F16, false, false, 2>(),
                (true, false, true) => staged::<$op, F16, false, true, 2>(),
                (true, true, false) => staged::<$op, F16, true, false, 2>(),
                (true, true, true) => staged::<$op, F16, true, true, 2>(),
            },
            Format::Bf16 { x2: false } => staged::<$op, Bf16, false, false, 1>(),
            Format::Bf16 { x2: true } => staged::<$op, Bf16, false, false, 2>(),
        }
    };
}
macro_rules! unary {
    ($one:ident $two:ident, $format:expr) => {
        match $format {
            Plain::F16 { x2, ftz } => match (x2, ftz) {
                (false, false) => Lane::of::<$one<F16, false, false>>(),
                (false, true) => Lane::of::<$one<F16, true, false>>(),
                (true, false) => Lane::of::<$two<F16, false, false>>(),
                (true, true) => Lane::of::<$two<F16, true, false>>(),
            },
            Plain::Bf16 { x2: false } => Lane::of::<$one<Bf16, false, false>>(),
            Plain::Bf16 { x2: true } => Lane::of::<$two<Bf16, false, false>>(),
        }
    };
}
macro_rules! approximate {
    ($one:ident $two:ident $bf16_ftz:literal, $ty:expr) => {
        match $ty {
            HalfType::F16 => Lane::of::<$one<F16, false, false>>(),
            HalfType::F16x2 => Lane::of::<$two<F16, false, false>>(),
            HalfType::Bf16 => Lane::of::<$one<Bf16, $bf16_ftz, false>>(),
            HalfType::Bf16x2 => Lane::of::<$two<Bf16, $bf16_ftz, false>>(),
        }
    };
}
macro_rules! extremum {
    ($one:ident $two:ident, $format:expr, $nan:expr, $xorsign:expr) => {{
        let flag = |set, bit| if set { bit } else { 0 };
        let constant = flag($format.ftz(), FTZ) | flag($nan, NAN) | flag($xorsign, XORSIGN);
        let lane = match $format {
            Plain::F16 { x2: false, .. } => Lane::of::<$one<F16>>(),
            Plain::F16 { x2: true, .. } => Lane::of::<$two<F16>>(),
            Plain::Bf16 { x2: false } => Lane::of::<$one<Bf16>>(),
            Plain::Bf16 { x2: true } => Lane::of::<$two<Bf16>>(),
        };
        lane.with(constant)
    }};
}
macro_rules! mixed {
    ($op:ident, $of:expr, $constant:expr) => {
        match $of {
            Element::F16 => Lane::of::<$op<F16>>().with($constant),
            Element::Bf16 => Lane::of::<$op<Bf16>>().with($constant),
        }
    };
}

impl Op {
    pub fn lane(self) -> Lane {
        match self {
            Op::Add { rn: _, format } => arithmetic!(Add, format),
            Op::Sub { rn: _, format } => arithmetic!(Sub, format),
            Op::Mul { rn: _, format } => arithmetic!(Mul, format),
            Op::FmaF16 { x2, ftz, limit } => fma_f16(x2, ftz, limit),
            Op::FmaBf16 { x2, rounding, relu } => fma_bf16(x2, rounding, relu),
            Op::FmaOobF16 { x2, limit } => {
                let lane = match (x2, limit) {
                    (false, Limit::None | Limit::Relu) => Lane::of::<FmaOob<F16, false, false>>(),
                    (false, Limit::Sat) => Lane::of::<FmaOob<F16, true, false>>(),
                    (true, Limit::None | Limit::Relu) => Lane::of::<FmaOobX2<F16, false, false>>(),
                    (true, Limit::Sat) => Lane::of::<FmaOobX2<F16, true, false>>(),
                };
                lane.with(relu_code(Rounding::Rn, limit == Limit::Relu))
            }
            Op::FmaOobBf16 { x2, rounding, relu } => {
                let lane = match (x2, rounding == Rounding::Rn) {
                    (false, true) => Lane::of::<FmaOob<Bf16, false, false>>(),
                    (false, false) => Lane::of::<FmaOob<Bf16, false, true>>(),
                    (true, true) => Lane::of::<FmaOobX2<Bf16, false, false>>(),
                    (true, false) => Lane::of::<FmaOobX2<Bf16, false, true>>(),
                };
                lane.with(relu_code(rounding, relu))
            }
            Op::Neg { format } => unary!(Neg NegX2, format),
            Op::Abs { format } => unary!(Abs AbsX2, format),
            Op::Ex2 { ty } => approximate!(Ex2 Ex2X2 true, ty),
            Op::Tanh { ty } => approximate!(Tanh TanhX2 false, ty),
            Op::Min {
                format,
                nan,
                xorsign_abs,
            } => extremum!(Min MinX2, format, nan, xorsign_abs),
            Op::Max {
                format,
                nan,
                xorsign_abs,
            } => extremum!(Max MaxX2, format, nan, xorsign_abs),
            Op::MixedAdd { rounding, sat, of } => mixed!(MixedAdd, of, float::constant(rounding, false, sat, false)),
            Op::MixedSub { rounding, sat, of } => mixed!(MixedAdd, of, float::constant(rounding, false, sat, true)),
            Op::MixedFma { rounding, sat, of } => mixed!(MixedFma, of, float::constant(rounding, false, sat, false)),
        }
    }
}

fn relu_code(rounding: Rounding, relu: bool) -> u64 {
    rounding.code() | u64::from(relu) << 8
}

fn fma_f16(x2: bool, ftz: bool, limit: Limit) -> Lane {
    let plain = |sat| arithmetic!(Fma, Format::F16 { x2, ftz, sat });
    match (limit, x2, ftz) {
        (Limit::None, ..) => plain(false),
        (Limit::Sat, ..) => plain(true),
        (Limit::Relu, false, false) => staged::<FmaRelu, F16, false, false, 1>(),
        (Limit::Relu, false, true) => staged::<FmaRelu, F16, true, false, 1>(),
        (Limit::Relu, true, false) => staged::<FmaRelu, F16, false, false, 2>(),
        (Limit::Relu, true, true) => staged::<FmaRelu, F16, true, false, 2>(),
    }
}

fn fma_bf16(x2: bool, rounding: Rounding, relu: bool) -> Lane {
    match (rounding == Rounding::Rn, x2, relu) {
        (true, false, false) => staged::<Fma, Bf16, false, false, 1>(),
        (true, true, false) => staged::<Fma, Bf16, false, false, 2>(),
        (true, false, true) => staged::<FmaRelu, Bf16, false, false, 1>(),
        (true, true, true) => staged::<FmaRelu, Bf16, false, false, 2>(),
        (false, false, _) => Lane::of::<FmaBf16Rnd>().with(relu_code(rounding, relu)),
        (false, true, _) => Lane::of::<FmaBf16x2Rnd>().with(relu_code(rounding, relu)),
    }
}

impl Op {
    pub(super) fn contractible(self) -> Option<Contractible<Format>> {
        let sum = |rn: bool, subtract, of| (!rn).then_some(Contractible::Sum { subtract, of });
        match self {
            Op::Add { rn, format } => sum(rn, false, format),
            Op::Sub { rn, format } => sum(rn, true, format),
            Op::Mul { rn, format } => (!rn && !format.sat()).then_some(Contractible::Product(format)),
            Op::FmaF16 { .. }
            | Op::FmaBf16 { .. }
            | Op::FmaOobF16 { .. }
            | Op::FmaOobBf16 { .. }
            | Op::Abs { .. }
            | Op::Ex2 { .. }
            | Op::Tanh { .. }
            | Op::Min { .. }
            | Op::Max { .. }
            | Op::MixedAdd { .. }
            | Op::MixedSub { .. }
            | Op::MixedFma { .. } => None,
            Op::Neg { format } => match format {
                Plain::F16 { x2, ftz } => Some(Contractible::Negation(Format::F16 { x2, ftz, sat: false })),
                Plain::Bf16 { x2: false } => Some(Contractible::Negation(Format::Bf16 { x2: false })),
                // The assembler makes a product with −1 of it, which it does not look through.
                Plain::Bf16 { x2: true } => None,
            },
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        macro_rules! arithmetic {
            ($name:literal, $rn:expr, $format:expr) => {{
                let (ftz, sat) = $format.flags();
                opcode!(f, $name, ($rn, "rn"), (ftz, "ftz"), (sat, "sat"), $format.ty())
            }};
        }
        macro_rules! extremum {
            ($name:literal, $format:expr, $nan:expr, $xorsign:expr) => {
                opcode!(
                    f,
                    $name,
                    ($format.ftz(), "ftz"),
                    ($nan, "NaN"),
                    ($xorsign, "xorsign.abs"),
                    $format.ty()
                )
            };
        }
        let limited = |limit| match limit {
            Limit::None => None,
            Limit::Sat => Some("sat"),
            Limit::Relu => Some("relu"),
        };
        let f16 = |x2| if x2 { Type::F16x2 } else { Type::F16 };
        let bf16 = |x2| if x2 { Type::Bf16x2 } else { Type::Bf16 };
        match *self {
            Op::Add { rn, format } => arithmetic!("add", rn, format),
            Op::Sub { rn, format } => arithmetic!("sub", rn, format),
            Op::Mul { rn, format } => arithmetic!("mul", rn, format),
            Op::FmaF16 { x2, ftz, limit } => opcode!(f, "fma.rn", (ftz, "ftz"), limited(limit), f16(x2)),
            Op::FmaBf16 { x2, rounding, relu } => opcode!(f, "fma", rounding, (relu, "relu"), bf16(x2)),
            Op::FmaOobF16 { x2, limit } => match limit {
                Limit::Sat => opcode!(f, "fma.rn.sat.oob", f16(x2)),
                Limit::None | Limit::Relu => opcode!(f, "fma.rn.oob", limited(limit), f16(x2)),
            },
            Op::FmaOobBf16 { x2, rounding, relu } => {
                opcode!(f, "fma", rounding, "oob", (relu, "relu"), bf16(x2))
            }
            Op::Neg { format } => opcode!(f, "neg", (format.ftz(), "ftz"), format.ty()),
            Op::Abs { format } => opcode!(f, "abs", (format.ftz(), "ftz"), format.ty()),
            Op::Ex2 { ty } => {
                // The syntax asks `bf16` for the word.
                let ftz = match ty {
                    HalfType::F16 | HalfType::F16x2 => false,
                    HalfType::Bf16 | HalfType::Bf16x2 => true,
                };
                opcode!(f, "ex2.approx", (ftz, "ftz"), ty)
            }
            Op::Tanh { ty } => opcode!(f, "tanh.approx", ty),
            Op::Min {
                format,
                nan,
                xorsign_abs,
            } => extremum!("min", format, nan, xorsign_abs),
            Op::Max {
                format,
                nan,
                xorsign_abs,
            } => extremum!("max", format, nan, xorsign_abs),
            Op::MixedAdd { rounding, sat, of } => opcode!(f, "add", rounding, (sat, "sat"), Type::F32, of),
            Op::MixedSub { rounding, sat, of } => opcode!(f, "sub", rounding, (sat, "sat"), Type::F32, of),
            Op::MixedFma { rounding, sat, of } => opcode!(f, "fma", rounding, (sat, "sat"), Type::F32, of),
        }
    }
}
