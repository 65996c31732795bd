//! `f32` and `f64` arithmetic (PTX ISA, Floating Point Instructions) except the approximations: the operations, and which
//! kernel computes each.

mod directed;
pub mod read;
mod scalar;

use std::fmt;

pub use self::scalar::*;
use super::algebra::Contractible;
use super::lane::Lane;
use super::types::{Rounding, Type, subtypes};
use super::words::{modifiers, opcode};

/// What a sum or a product is of, with what happens to subnormals and results of that type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Format { F32 { ftz: bool, sat: bool }, F32x2 { ftz: bool }, F64 }

impl Format {
    pub const fn ty(self) -> Type {
        match self {
            Format::F32 { .. } => Type::F32,
            Format::F32x2 { .. } => Type::F32x2,
            Format::F64 => Type::F64,
        }
    }
    pub const fn ftz(self) -> bool {
        match self {
            Format::F32 { ftz, .. } | Format::F32x2 { ftz } => ftz,
            Format::F64 => false,
        }
    }
    #[must_use]
    pub const fn without_sat(self) -> Format {
        match self {
            Format::F32 { ftz, sat: _ } => Format::F32 { ftz, sat: false },
            Format::F32x2 { .. } | Format::F64 => self,
        }
    }
    pub const fn sat(self) -> bool {
        match self {
            Format::F32 { sat, .. } => sat,
            Format::F32x2 { .. } | Format::F64 => false,
        }
    }
}

/// The same where results are not limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Scalar { F32 { ftz: bool }, F64 }

impl Scalar {
    pub const fn ty(self) -> Type {
        match self {
            Scalar::F32 { .. } => Type::F32,
            Scalar::F64 => Type::F64,
        }
    }
    const fn ftz(self) -> bool {
        match self {
            Scalar::F32 { ftz } => ftz,
            Scalar::F64 => false,
        }
    }
}

/// What `min` and `max` compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Extremum {
    /// `nan`: NaN wins; `xorsign_abs`: magnitudes, with the product's sign.
    F32 { ftz: bool, nan: bool, xorsign_abs: bool },
    F64,
}

/// What `testp` asks, in the order of its kernels' constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Property { Finite, Infinite, Number, NotANumber, Normal, Subnormal }

impl Property {
    pub const ALL: [Property; 6] = [
        Property::Finite,
        Property::Infinite,
        Property::Number,
        Property::NotANumber,
        Property::Normal,
        Property::Subnormal,
    ];

    /// As written behind a dot.
    pub fn word(self) -> &'static str {
        match self {
            Property::Finite => "finite",
            Property::Infinite => "infinite",
            Property::Number => "number",
            Property::NotANumber => "notanumber",
            Property::Normal => "normal",
            Property::Subnormal => "subnormal",
        }
    }

    fn from_word(word: &str) -> Option<Property> {
        Property::ALL.into_iter().find(|property| property.word() == word)
    }
}

subtypes! {
    /// Single and double precision.
    FloatType { F32, F64 }
}
modifiers! { Property FloatType }

/// A floating-point instruction. Without a rounding modifier sums and products round to nearest even, and may become an
/// `fma`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Op {
    Add { rounding: Option<Rounding>, format: Format },
    Sub { rounding: Option<Rounding>, format: Format },
    Mul { rounding: Option<Rounding>, format: Format },
    /// `mad`, too, which is the same since sm_20.
    Fma { rounding: Rounding, format: Format },
    Div { rounding: Rounding, format: Scalar },
    Rcp { rounding: Rounding, format: Scalar },
    Sqrt { rounding: Rounding, format: Scalar },
    Abs { format: Scalar },
    Neg { format: Scalar },
    Min { of: Extremum },
    Max { of: Extremum },
    /// `min.abs`: the least of three magnitudes.
    MinAbs { ftz: bool, nan: bool },
    MaxAbs { ftz: bool, nan: bool },
    Copysign { ty: FloatType },
    Testp { property: Property, ty: FloatType },
}

/// The constant of a kernel that rounds by it.
pub(super) fn constant(mode: Rounding, ftz: bool, sat: bool, subtract: bool) -> u64 {
    let flag = |set, bit| if set { bit } else { 0 };
    mode.code() | flag(ftz, FTZ) | flag(sat, SAT) | flag(subtract, NEGATE_B)
}

macro_rules! by_flags {
    ($op:ident, $ftz:expr, $sat:expr) => {
        match ($ftz, $sat) {
            (false, false) => Lane::of::<$op<false, false>>(),
            (false, true) => Lane::of::<$op<false, true>>(),
            (true, false) => Lane::of::<$op<true, false>>(),
            (true, true) => Lane::of::<$op<true, true>>(),
        }
    };
}
macro_rules! by_ftz {
    ($op:ident, $ftz:expr) => {
        match $ftz {
            false => Lane::of::<$op<false>>(),
            true => Lane::of::<$op<true>>(),
        }
    };
}
/// Sums and products: kernels to nearest even, and those that round by their constant.
macro_rules! rounded {
    ($rounding:expr, $format:expr, $subtract:literal, $f32:ident $f32x2:ident $f64:ident, $f32r:ident $f32x2r:ident $f64r:ident) => {{
        let (mode, format) = ($rounding, $format);
        let constant = constant(mode, format.ftz(), format.sat(), $subtract);
        match (format, mode == Rounding::Rn) {
            (Format::F32 { ftz, sat }, true) => by_flags!($f32, ftz, sat),
            (Format::F32x2 { ftz }, true) => by_ftz!($f32x2, ftz),
            (Format::F64, true) => Lane::of::<$f64>(),
            (Format::F32 { .. }, false) => Lane::of::<$f32r>().with(constant),
            (Format::F32x2 { .. }, false) => Lane::of::<$f32x2r>().with(constant),
            (Format::F64, false) => Lane::of::<$f64r>().with(constant),
        }
    }};
}
/// Quotients and roots, alike.
macro_rules! rounded_scalar {
    ($rounding:expr, $format:expr, $invert:expr, $f32:ident $f64:ident, $f32r:ident $f64r:ident) => {{
        let (mode, format) = ($rounding, $format);
        let constant = constant(mode, format.ftz(), false, false) | $invert;
        match (format, mode == Rounding::Rn) {
            (Scalar::F32 { ftz }, true) => by_ftz!($f32, ftz),
            (Scalar::F64, true) => Lane::of::<$f64>(),
            (Scalar::F32 { .. }, false) => Lane::of::<$f32r>().with(constant),
            (Scalar::F64, false) => Lane::of::<$f64r>().with(constant),
        }
    }};
}
macro_rules! extremum {
    ($of:expr, $f32:ident $f64:ident) => {
        match $of {
            Extremum::F32 { ftz, nan, xorsign_abs } => match (ftz, nan, xorsign_abs) {
                (false, false, false) => Lane::of::<$f32<false, false, false>>(),
                (false, false, true) => Lane::of::<$f32<false, false, true>>(),
                (false, true, false) => Lane::of::<$f32<false, true, false>>(),
                (false, true, true) => Lane::of::<$f32<false, true, true>>(),
                (true, false, false) => Lane::of::<$f32<true, false, false>>(),
                (true, false, true) => Lane::of::<$f32<true, false, true>>(),
                (true, true, false) => Lane::of::<$f32<true, true, false>>(),
                (true, true, true) => Lane::of::<$f32<true, true, true>>(),
            },
            Extremum::F64 => Lane::of::<$f64>(),
        }
    };
}

impl Op {
    pub fn lane(self) -> Lane {
        let nearest = |rounding: Option<Rounding>| rounding.unwrap_or(Rounding::Rn);
        match self {
            Op::Add { rounding, format } => {
                rounded!(nearest(rounding), format, false, AddF32 AddF32x2 AddF64, AddF32Rnd AddF32x2Rnd AddF64Rnd)
            }
            Op::Sub { rounding, format } => {
                rounded!(nearest(rounding), format, true, SubF32 SubF32x2 SubF64, AddF32Rnd SubF32x2Rnd AddF64Rnd)
            }
            Op::Mul { rounding, format } => {
                rounded!(nearest(rounding), format, false, MulF32 MulF32x2 MulF64, MulF32Rnd MulF32x2Rnd MulF64Rnd)
            }
            Op::Fma { rounding, format } => {
                rounded!(rounding, format, false, FmaF32 FmaF32x2 FmaF64, FmaF32Rnd FmaF32x2Rnd FmaF64Rnd)
            }
            Op::Div { rounding, format } => rounded_scalar!(rounding, format, 0, DivF32 DivF64, DivF32Rnd DivF64Rnd),
            Op::Rcp { rounding, format } => {
                rounded_scalar!(rounding, format, INVERT, RcpF32 RcpF64, SqrtF32Rnd SqrtF64Rnd)
            }
            Op::Sqrt { rounding, format } => {
                rounded_scalar!(rounding, format, 0, SqrtF32 SqrtF64, SqrtF32Rnd SqrtF64Rnd)
            }
            Op::Abs { format } => match format {
                Scalar::F32 { ftz } => by_ftz!(AbsF32, ftz),
                Scalar::F64 => Lane::of::<AbsF64>(),
            },
            Op::Neg { format } => match format {
                Scalar::F32 { ftz } => by_ftz!(NegF32, ftz),
                Scalar::F64 => Lane::of::<NegF64>(),
            },
            Op::Min { of } => extremum!(of, MinF32 MinF64),
            Op::Max { of } => extremum!(of, MaxF32 MaxF64),
            Op::MinAbs { ftz, nan } => by_flags!(MinAbsF32, ftz, nan),
            Op::MaxAbs { ftz, nan } => by_flags!(MaxAbsF32, ftz, nan),
            Op::Copysign { ty: FloatType::F32 } => Lane::of::<CopysignF32>(),
            Op::Copysign { ty: FloatType::F64 } => Lane::of::<CopysignF64>(),
            Op::Testp { property, ty } => match ty {
                FloatType::F32 => Lane::of::<TestpF32>().with(property as u64),
                FloatType::F64 => Lane::of::<TestpF64>().with(property as u64),
            },
        }
    }
}

impl Op {
    pub(super) fn folds_three(self) -> bool {
        match self {
            Op::Min { of } | Op::Max { of } => match of {
                Extremum::F32 { xorsign_abs, .. } => !xorsign_abs,
                Extremum::F64 => false,
            },
            // They have kernels of three sources.
            Op::MinAbs { .. } | Op::MaxAbs { .. } => false,
            Op::Add { .. }
            | Op::Sub { .. }
            | Op::Mul { .. }
            | Op::Fma { .. }
            | Op::Div { .. }
            | Op::Rcp { .. }
            | Op::Sqrt { .. }
            | Op::Abs { .. }
            | Op::Neg { .. }
            | Op::Copysign { .. }
            | Op::Testp { .. } => false,
        }
    }

    pub(super) fn contractible(self) -> Option<Contractible<Format>> {
        let sum =
            |rounding: Option<Rounding>, subtract, of| rounding.is_none().then_some(Contractible::Sum { subtract, of });
        match self {
            Op::Add { rounding, format } => sum(rounding, false, format),
            Op::Sub { rounding, format } => sum(rounding, true, format),
            Op::Mul { rounding, format } => {
                (rounding.is_none() && !format.sat()).then_some(Contractible::Product(format))
            }
            Op::Fma { .. }
            | Op::Div { .. }
            | Op::Rcp { .. }
            | Op::Sqrt { .. }
            | Op::Abs { .. }
            | Op::Min { .. }
            | Op::Max { .. }
            | Op::MinAbs { .. }
            | Op::MaxAbs { .. }
            | Op::Copysign { .. }
            | Op::Testp { .. } => None,
            Op::Neg { format } => Some(Contractible::Negation(match format {
                Scalar::F32 { ftz } => Format::F32 { ftz, sat: false },
                Scalar::F64 => Format::F64,
            })),
        }
    }

    /// Divisions and roots that are rounded correctly.
    pub(super) fn is_routine(self) -> bool {
        matches!(self, Op::Div { .. } | Op::Rcp { .. } | Op::Sqrt { .. })
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        macro_rules! formatted {
            ($name:literal, $rounding:expr, $format:expr) => {{
                let format = $format;
                opcode!(
                    f,
                    $name,
                    $rounding,
                    (format.ftz(), "ftz"),
                    (format.sat(), "sat"),
                    format.ty()
                )
            }};
        }
        macro_rules! scalar {
            ($name:literal, $rounding:expr, $format:expr) => {{
                let format = $format;
                opcode!(f, $name, $rounding, (format.ftz(), "ftz"), format.ty())
            }};
        }
        macro_rules! extremum {
            ($name:literal, $of:expr) => {
                match $of {
                    Extremum::F32 {
                        ftz,
                        nan,
                        xorsign_abs,
                    } => opcode!(
                        f,
                        $name,
                        (ftz, "ftz"),
                        (nan, "NaN"),
                        (xorsign_abs, "xorsign.abs"),
                        Type::F32
                    ),
                    Extremum::F64 => opcode!(f, $name, Type::F64),
                }
            };
        }
        match *self {
            Op::Add { rounding, format } => formatted!("add", rounding, format),
            Op::Sub { rounding, format } => formatted!("sub", rounding, format),
            Op::Mul { rounding, format } => formatted!("mul", rounding, format),
            Op::Fma { rounding, format } => formatted!("fma", rounding, format),
            Op::Div { rounding, format } => scalar!("div", rounding, format),
            Op::Rcp { rounding, format } => scalar!("rcp", rounding, format),
            Op::Sqrt { rounding, format } => scalar!("sqrt", rounding, format),
            Op::Abs { format } => scalar!("abs", None::<Rounding>, format),
            Op::Neg { format } => scalar!("neg", None::<Rounding>, format),
            Op::Min { of } => extremum!("min", of),
            Op::Max { of } => extremum!("max", of),
            Op::MinAbs { ftz, nan } => opcode!(f, "min", (ftz, "ftz"), (nan, "NaN"), "abs", Type::F32),
            Op::MaxAbs { ftz, nan } => opcode!(f, "max", (ftz, "ftz"), (nan, "NaN"), "abs", Type::F32),
            Op::Copysign { ty } => opcode!(f, "copysign", ty),
            Op::Testp { property, ty } => opcode!(f, "testp", property, ty),
        }
    }
}
