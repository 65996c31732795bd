//! The accumulator's way in and out of a sum.

use super::Accumulator;
use super::decode::NONE;
use super::rule::Outcome;
use crate::isa::number;

/// The NaN that matrix units give, as `f32`.
pub const NAN: u32 = 0x7fff_ffff;

/// The exponent of the least normal number of an accumulator's type, as matrix units read it.
pub const fn least(accumulator: Accumulator) -> i32 {
    match accumulator {
        Accumulator::F16 => -14,
        Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => -126,
    }
}

/// The exponent that an accumulator brings to the alignment.
#[inline(always)]
pub fn exponent(c: f32, least: i32) -> i32 {
    let magnitude = c.to_bits() & 0x7fff_ffff;
    let field = (magnitude >> 23) as i32;
    let exponent = (field - 127).max(least);
    if (magnitude == 0) | (field == 255) {
        NONE
    } else {
        exponent
    }
}

/// `2^exponent`, for exponents of normal numbers.
#[inline(always)]
pub fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Towards zero, to 24 bits and no finer than `f32` goes; infinity beyond its range.
#[inline(always)]
pub fn to_f32(sum: f64) -> f32 {
    let sign = (sum.to_bits() >> 32) as u32 & 0x8000_0000;
    // 29 bits fewer than `f64` has; the conversion then is exact, or beyond the range.
    let normal = f64::from_bits(sum.to_bits() & !((1 << 29) - 1)) as f32;
    let magnitude = sum.abs();
    let small = magnitude < power(-126);
    let units = if small { magnitude * power(149) } else { 0.0 };
    // SAFETY: less than 2^23.
    let units = unsafe { units.to_int_unchecked::<i32>() };
    let subnormal = units as u32 | sign;
    if small { f32::from_bits(subnormal) } else { normal }
}

/// What [`to_f32`] made, with 13 bits behind the point.
#[inline(always)]
pub fn to_e8m13(narrow: f32) -> f32 {
    f32::from_bits(narrow.to_bits() & !0x3ff)
}

/// Of what [`to_f32`] made of `sum`, an `f32` that rounds to the `f16` that the sum rounds to: what is lost shows in its
/// last bit.
#[inline(always)]
pub fn to_odd(narrow: f32, sum: f64) -> f32 {
    let lost = sum.to_bits() & ((1 << 29) - 1) != 0;
    f32::from_bits(narrow.to_bits() | u32::from(lost))
}

/// Tensor cores have no negative zero of `f16` among their results: an H100 gives the positive one for what is too small.
#[inline(always)]
pub fn positive_zero(result: f32) -> f32 {
    // To nearest, -0 + 0 is 0.
    result + 0.0
}

/// One sum, converted, as `f32` holds it.
#[inline(always)]
pub fn convert(sum: f64, outcome: Outcome) -> f32 {
    let narrow = to_f32(sum);
    match outcome {
        Outcome::F32 => narrow,
        Outcome::E8m13 => to_e8m13(narrow),
        Outcome::F16 => positive_zero(number::widen_f16(number::narrow_f16(to_odd(narrow, sum)))),
    }
}

/// A code of an accumulator as `f32`.
#[inline(always)]
pub fn read(accumulator: Accumulator, code: u32) -> f32 {
    match accumulator {
        Accumulator::F16 => number::widen_f16(code as u16),
        Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => f32::from_bits(code),
    }
}

/// The code of an `f32` that the accumulator's type can hold, or is to be rounded to.
#[inline(always)]
pub fn write(accumulator: Accumulator, value: f32) -> u32 {
    match accumulator {
        Accumulator::F16 => u32::from(number::narrow_f16(value)),
        Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => number::canonical(value).to_bits(),
    }
}
