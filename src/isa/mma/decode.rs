//! From codes of elements to numbers that vectors can multiply.

use super::level::{self, Kernel};
use super::rule::Order;
use super::vector::Vector;
use super::{Element, LANES};
use crate::isa::simd::Level;

/// The exponent of zero: so small that no sum with another one, or with a scale's, is the largest.
pub const NONE: i32 = -1 << 20;

/// How a format lays out its bits. Formats differ in what the largest exponent stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits below the element in its code.
    pub low: u32,
    pub exponent: u32,
    pub fraction: u32,
    pub bias: i32,
    pub specials: Specials,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// Neither infinity nor NaN.
    None,
    /// NaN where all bits but the sign are set.
    Nan,
    /// As IEEE 754 has them.
    Both,
}

/// The layout of a floating-point format (PTX ISA, Alternate Floating-Point Data Formats); of `tf32` the 19 high bits of
/// the word count. `None` for integers and `f64`.
pub const fn format(element: Element) -> Option<Format> {
    let (low, exponent, fraction, bias, specials) = match element {
        Element::F16 => (0, 5, 10, 15, Specials::Both),
        Element::Bf16 => (0, 8, 7, 127, Specials::Both),
        Element::Tf32 => (13, 8, 10, 127, Specials::Both),
        Element::E4m3 => (0, 4, 3, 7, Specials::Nan),
        Element::E5m2 => (0, 5, 2, 15, Specials::Both),
        Element::E3m2 => (0, 3, 2, 3, Specials::None),
        Element::E2m3 => (0, 2, 3, 1, Specials::None),
        Element::E2m1 => (0, 2, 1, 1, Specials::None),
        Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::B1 | Element::F64 => return None,
    };
    Some(Format {
        low,
        exponent,
        fraction,
        bias,
        specials,
    })
}

/// Decoded elements, in the order of their codes.
#[derive(Default)]
pub struct Operand {
    /// What the elements are; where exponents are `apart`, their significands (less than 2). Zero stands for infinity and
    /// NaN, too.
    pub values: Vec<f32>,
    /// The exponent of the format's field, that of the least normal number for subnormal ones; [`NONE`] for zero.
    pub exponents: Vec<i32>,
    /// Whether there is an infinity or a NaN among them.
    pub special: bool,
    /// Room to arrange them.
    spare: Vec<f32>,
    spare_exponents: Vec<i32>,
}

impl Operand {
    /// Puts elements in the order in which they are summed: of every `k` runs of so many neighbours.
    pub fn arrange(&mut self, order: Order, k: usize, run: usize) {
        arrange(&mut self.values, &mut self.spare, order, k, run);
        arrange(&mut self.exponents, &mut self.spare_exponents, order, k, run);
    }

    /// Decodes. `apart` keeps exponents out of the values, for formats whose products `f32` could not hold.
    pub fn decode(&mut self, level: Level, element: Element, apart: bool, codes: &[u32]) {
        // Whole vectors: what is beyond the codes stays zero.
        let padded = codes.len().next_multiple_of(LANES);
        self.values.resize(padded, 0.0);
        self.exponents.resize(padded, NONE);
        self.special = false;
        match (format(element), apart) {
            (Some(format), false) => level::run::<Floats<false>>(level, (format, codes, self)),
            (Some(format), true) => level::run::<Floats<true>>(level, (format, codes, self)),
            (None, _) => level::run::<Integers>(level, (element, codes, self)),
        }
    }
}

fn arrange<T: Copy>(values: &mut [T], spare: &mut Vec<T>, order: Order, k: usize, run: usize) {
    for part in values.chunks_exact_mut(k * run) {
        spare.clear();
        spare.extend_from_slice(part);
        for (at, to) in part.chunks_exact_mut(run).enumerate() {
            to.copy_from_slice(&spare[order.column(at, k) * run..][..run]);
        }
    }
}

struct Floats<const APART: bool>;

impl<const APART: bool> Kernel for Floats<APART> {
    type Arguments<'a> = (Format, &'a [u32], &'a mut Operand);
    #[inline(always)]
    unsafe fn run<C: Vector>((format, codes, to): Self::Arguments<'_>) {
        // With its constants known, the loop is a few instructions for a vector.
        match format {
            F16 => floats::<APART>(F16, codes, to),
            BF16 => floats::<APART>(BF16, codes, to),
            TF32 => floats::<APART>(TF32, codes, to),
            E4M3 => floats::<APART>(E4M3, codes, to),
            E5M2 => floats::<APART>(E5M2, codes, to),
            E2M1 => floats::<APART>(E2M1, codes, to),
            format => floats::<APART>(format, codes, to),
        }
    }
}

const F16: Format = format(Element::F16).unwrap();
const BF16: Format = format(Element::Bf16).unwrap();
const TF32: Format = format(Element::Tf32).unwrap();
const E2M1: Format = format(Element::E2m1).unwrap();
const E4M3: Format = format(Element::E4m3).unwrap();
const E5M2: Format = format(Element::E5m2).unwrap();

#[inline(always)]
fn floats<const APART: bool>(format: Format, codes: &[u32], to: &mut Operand) {
    let mut special = 0;
    let every = codes.iter().zip(&mut to.values).zip(&mut to.exponents);
    for ((&code, value), exponent) in every {
        let code = code >> format.low;
        let sign = (code >> (format.exponent + format.fraction) & 1) << 31;
        let field = code >> format.fraction & ((1 << format.exponent) - 1);
        let fraction = code & ((1 << format.fraction) - 1);
        let largest = field == (1 << format.exponent) - 1;
        let is_special = match format.specials {
            Specials::None => false,
            Specials::Nan => largest & (fraction == (1 << format.fraction) - 1),
            Specials::Both => largest,
        };
        special |= u32::from(is_special);
        let significand = fraction | u32::from(field != 0) << format.fraction;
        let significand = if is_special { 0 } else { significand as i32 };
        let of_field = (field as i32).max(1) - format.bias;
        let unit = if APART { 0 } else { of_field } - format.fraction as i32;
        let magnitude = significand as f32 * f32::from_bits(((127 + unit) as u32) << 23);
        *value = f32::from_bits(magnitude.to_bits() | sign);
        *exponent = if significand == 0 { NONE } else { of_field };
    }
    to.special = special != 0;
}

struct Integers;

impl Kernel for Integers {
    type Arguments<'a> = (Element, &'a [u32], &'a mut Operand);
    #[inline(always)]
    unsafe fn run<C: Vector>((element, codes, to): Self::Arguments<'_>) {
        let shift = 32 - element.bits();
        let signed = matches!(element, Element::S8 | Element::S4);
        for (&code, value) in codes.iter().zip(&mut to.values) {
            let code = code << shift;
            let number = if signed {
                code as i32 >> shift
            } else {
                (code >> shift) as i32
            };
            *value = number as f32;
        }
    }
}
