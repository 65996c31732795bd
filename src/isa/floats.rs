//! What operations on floats compute with, for those who look at values: which formats their operands and results have, and in what
//! way numbers may go wrong in them.

use super::types::{HalfType, Type};
use super::{Compute, approx, convert, float, half};

/// A format of floating-point numbers that registers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Real {
    F16,
    Bf16,
    F32,
    F64,
}

/// What registers hold: so many numbers of a format each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packed {
    pub real: Real,
    pub count: usize,
}

/// What is done with them, as far as it says how a number goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Does {
    /// A sum or a difference, of products perhaps.
    Sum,
    /// A product or a quotient, whose result may be too small.
    Product,
    /// The result is no float, so that a value that is no number is lost.
    ToInteger,
    Other,
}

/// An operation on floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Floats {
    /// Of the first destination; of the sources, if the result is no float.
    pub result: Packed,
    /// `None`: a source that is no float.
    pub sources: [Option<Packed>; 4],
    pub does: Does,
}

impl Real {
    /// Bits of the whole, and of the significand as it is kept.
    pub const fn bits(self) -> (u32, u32) {
        match self {
            Real::F16 => (16, 10),
            Real::Bf16 => (16, 7),
            Real::F32 => (32, 23),
            Real::F64 => (64, 52),
        }
    }

    /// The exponent as it is kept, all bits of which are set in infinities and NaN.
    pub const fn exponent(self, bits: u64) -> u64 {
        let (whole, kept) = self.bits();
        bits << (65 - whole) >> (65 - whole) >> kept
    }

    pub const fn largest_exponent(self) -> u64 {
        let (whole, kept) = self.bits();
        (1 << (whole - 1 - kept)) - 1
    }

    /// The significand as it is kept.
    pub const fn fraction(self, bits: u64) -> u64 {
        bits & ((1 << self.bits().1) - 1)
    }

    pub const fn is_nan(self, bits: u64) -> bool {
        self.exponent(bits) == self.largest_exponent() && self.fraction(bits) != 0
    }

    pub const fn is_infinite(self, bits: u64) -> bool {
        self.exponent(bits) == self.largest_exponent() && self.fraction(bits) == 0
    }

    pub const fn is_subnormal(self, bits: u64) -> bool {
        self.exponent(bits) == 0 && self.fraction(bits) != 0
    }

    pub const fn is_zero(self, bits: u64) -> bool {
        self.exponent(bits) == 0 && self.fraction(bits) == 0
    }
}

impl Packed {
    fn of(ty: Type) -> Option<Packed> {
        let (real, count) = match ty {
            Type::F16 => (Real::F16, 1),
            Type::F16x2 => (Real::F16, 2),
            Type::Bf16 => (Real::Bf16, 1),
            Type::Bf16x2 => (Real::Bf16, 2),
            Type::F32 => (Real::F32, 1),
            Type::F32x2 => (Real::F32, 2),
            Type::F64 => (Real::F64, 1),
            // What is narrower is a format to keep numbers in, not to compute with; and the rest are no floats.
            _ => return None,
        };
        Some(Packed { real, count })
    }

    /// One of the numbers in a register.
    pub fn element(self, register: u64, index: usize) -> u64 {
        let (whole, _) = self.real.bits();
        let shifted = register >> (index as u32 * whole);
        if whole == 64 {
            shifted
        } else {
            shifted & ((1 << whole) - 1)
        }
    }
}

impl Compute {
    /// Which floats it computes with; `None`: with none, or it only moves them.
    pub fn floats(self) -> Option<Floats> {
        match self {
            Compute::Float(op) => of_float(op),
            Compute::Approx(op) => of_approx(op),
            Compute::Half(op) => of_half(op),
            Compute::Convert(op) => of_convert(op),
            Compute::Int(_)
            | Compute::Compare(_)
            | Compute::Logic(_)
            | Compute::Narrow(_)
            | Compute::Video(_)
            | Compute::Legacy(_)
            | Compute::Move(_) => None,
        }
    }
}

/// All operands of one type.
fn alike(ty: Type, sources: usize, does: Does) -> Option<Floats> {
    let result = Packed::of(ty)?;
    let mut all = [None; 4];
    all[..sources].fill(Some(result));
    Some(Floats {
        result,
        sources: all,
        does,
    })
}

fn of_float(op: float::Op) -> Option<Floats> {
    use super::float::Op;
    match op {
        Op::Add { format, .. } | Op::Sub { format, .. } => alike(format.ty(), 2, Does::Sum),
        Op::Mul { format, .. } => alike(format.ty(), 2, Does::Product),
        Op::Fma { format, .. } => alike(format.ty(), 3, Does::Sum),
        Op::Div { format, .. } => alike(format.ty(), 2, Does::Product),
        Op::Rcp { format, .. } => alike(format.ty(), 1, Does::Product),
        Op::Sqrt { format, .. } => alike(format.ty(), 1, Does::Other),
        // A NaN that comes out went in.
        Op::Abs { .. }
        | Op::Neg { .. }
        | Op::Min { .. }
        | Op::Max { .. }
        | Op::MinAbs { .. }
        | Op::MaxAbs { .. }
        | Op::Copysign { .. }
        | Op::Testp { .. } => None,
    }
}

fn of_approx(op: approx::Op) -> Option<Floats> {
    use super::approx::Op;
    match op {
        Op::Div { .. } | Op::DivFull { .. } => alike(Type::F32, 2, Does::Product),
        Op::Rcp { .. } => alike(Type::F32, 1, Does::Product),
        Op::RcpF64 => alike(Type::F64, 1, Does::Product),
        Op::Sqrt { .. }
        | Op::Rsqrt { .. }
        | Op::Sin { .. }
        | Op::Cos { .. }
        | Op::Lg2 { .. }
        | Op::Ex2 { .. }
        | Op::Tanh => alike(Type::F32, 1, Does::Other),
        Op::RsqrtF64 { .. } => alike(Type::F64, 1, Does::Other),
    }
}

fn of_half(op: half::Op) -> Option<Floats> {
    use super::half::{Element, Op};
    let f16 = |x2| if x2 { Type::F16x2 } else { Type::F16 };
    let bf16 = |x2| if x2 { Type::Bf16x2 } else { Type::Bf16 };
    let widened = |of: Element, narrow: usize| {
        let element = match of {
            Element::F16 => Type::F16,
            Element::Bf16 => Type::Bf16,
        };
        let mut all = alike(Type::F32, narrow + 1, Does::Sum)?;
        all.sources[..narrow].fill(Packed::of(element));
        Some(all)
    };
    match op {
        Op::Add { format, .. } | Op::Sub { format, .. } => alike(format.ty(), 2, Does::Sum),
        Op::Mul { format, .. } => alike(format.ty(), 2, Does::Product),
        Op::FmaF16 { x2, .. } | Op::FmaOobF16 { x2, .. } => alike(f16(x2), 3, Does::Sum),
        Op::FmaBf16 { x2, .. } | Op::FmaOobBf16 { x2, .. } => alike(bf16(x2), 3, Does::Sum),
        Op::Ex2 { ty } | Op::Tanh { ty } => {
            let ty = match ty {
                HalfType::F16 => Type::F16,
                HalfType::F16x2 => Type::F16x2,
                HalfType::Bf16 => Type::Bf16,
                HalfType::Bf16x2 => Type::Bf16x2,
            };
            alike(ty, 1, Does::Other)
        }
        Op::MixedAdd { of, .. } | Op::MixedSub { of, .. } => widened(of, 1),
        Op::MixedFma { of, .. } => widened(of, 2),
        Op::Neg { .. } | Op::Abs { .. } | Op::Min { .. } | Op::Max { .. } => None,
    }
}

fn of_convert(op: convert::Op) -> Option<Floats> {
    use super::convert::{Halves, Kind, Op};
    let packed = |kind: Kind| match kind {
        Kind::F16 => Packed::of(Type::F16),
        Kind::Bf16 => Packed::of(Type::Bf16),
        Kind::F32 => Packed::of(Type::F32),
        Kind::F64 => Packed::of(Type::F64),
        Kind::U8 | Kind::S8 | Kind::U16 | Kind::S16 | Kind::U32 | Kind::S32 | Kind::U64 | Kind::S64 | Kind::Tf32 => {
            None
        }
    };
    match op {
        Op::Cvt { to, from, .. } => {
            let (to, from) = (packed(to), packed(from));
            let does = if to.is_some() { Does::Other } else { Does::ToInteger };
            Some(Floats {
                result: to.or(from)?,
                sources: [from, None, None, None],
                does,
            })
        }
        Op::Halves { to, .. } => {
            let ty = match to {
                Halves::F16x2 => Type::F16x2,
                Halves::Bf16x2 => Type::Bf16x2,
            };
            let narrow = Packed::of(Type::F32);
            Some(Floats {
                result: Packed::of(ty)?,
                sources: [narrow, narrow, None, None],
                does: Does::Other,
            })
        }
        Op::Pack { .. } => None,
    }
}
