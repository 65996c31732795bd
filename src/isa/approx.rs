//! The approximate instructions: `.approx` and `.full` of division, reciprocal, roots, sine, cosine, logarithm, power,
//! hyperbolic tangent. Knows nothing of registers or lanes.
//!
//! Special values and error bounds are the manual's. The bits are not yet those of any GPU: results are computed in
//! `f64` and rounded, which is within the bounds; models of the hardware's tables can replace the functions here one by
//! one, without anything else changing.

use super::float::{canonical, flush_if, root};
use super::simd::op;
use super::{Form, Lane};
use crate::ptx::ast::Type;

/// The function units treat subnormal operands as zero and give zero for subnormal results; forms without `.ftz` are
/// wrapped in scaling that brings both back.
#[inline(always)]
fn unit<const FTZ: bool>(exact: f64) -> f32 {
    canonical(flush_if::<FTZ>(exact as f32))
}

#[inline(always)]
pub fn rcp_approx_f32<const FTZ: bool>(a: f32) -> f32 {
    unit::<FTZ>(f64::from(1.0 / flush_if::<FTZ>(a)))
}
op!(RcpApproxF32[FTZ] = rcp_approx_f32(a: f32) -> f32);

/// `a · (1/b)`; with a divisor above 2^126, zero (or NaN for an infinite dividend), as the manual says.
#[inline(always)]
pub fn div_approx_f32<const FTZ: bool>(a: f32, b: f32) -> f32 {
    let (a, b) = (flush_if::<FTZ>(a), flush_if::<FTZ>(b));
    // 1/b is subnormal there, and flushed.
    let huge = (b.abs() > 8.507_059e37) & b.is_finite();
    let reciprocal = if huge { 0f32.copysign(b) } else { 1.0 / b };
    let quotient = (f64::from(a) / f64::from(b)) as f32;
    // Infinities and zeros follow the product's rules.
    let special = huge | !b.is_finite() | (b == 0.0) | !a.is_finite();
    canonical(flush_if::<FTZ>(if special { a * reciprocal } else { quotient }))
}
op!(DivApproxF32[FTZ] = div_approx_f32(a: f32, b: f32) -> f32);

#[inline(always)]
pub fn div_full_f32<const FTZ: bool>(a: f32, b: f32) -> f32 {
    canonical(flush_if::<FTZ>(flush_if::<FTZ>(a) / flush_if::<FTZ>(b)))
}
op!(DivFullF32[FTZ] = div_full_f32(a: f32, b: f32) -> f32);

#[inline(always)]
pub fn sqrt_approx_f32<const FTZ: bool>(a: f32) -> f32 {
    flush_if::<FTZ>(root(flush_if::<FTZ>(a)))
}
op!(SqrtApproxF32[FTZ] = sqrt_approx_f32(a: f32) -> f32);

#[inline(always)]
pub fn rsqrt_approx_f32<const FTZ: bool>(a: f32) -> f32 {
    let a = flush_if::<FTZ>(a);
    // The root of −0 is −0, and its reciprocal −Inf, as the manual wants.
    unit::<FTZ>(1.0 / f64::from(a).sqrt())
}
op!(RsqrtApproxF32[FTZ] = rsqrt_approx_f32(a: f32) -> f32);

/// Horner's scheme, highest coefficient first. Written out, not looped over: lanes are vectorised, loops in lanes are not.
macro_rules! polynomial {
    ($x:ident: $first:expr $(, $c:expr)*) => {{
        let sum: f64 = $first;
        $(let sum = sum * $x + $c;)*
        sum
    }};
}

/// 2^x for |x| ≤ 1/2: Taylor's series, error below 2^-36.
#[inline(always)]
fn exp2_core(x: f64) -> f64 {
    let t = x * std::f64::consts::LN_2;
    polynomial!(
        t: 1.0 / 362_880.0, 1.0 / 40_320.0, 1.0 / 5_040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0
    )
}
/// Rounds to the nearest integer, for |x| < 2^31: adding pushes the fraction out.
#[inline(always)]
fn nearest(x: f64) -> f64 {
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    (x + MAGIC) - MAGIC
}
/// 2^x; NaN gives NaN.
#[inline(always)]
fn exp2(x: f64) -> f64 {
    let clamped = if x > 1000.0 { 1000.0 } else { x };
    let clamped = if clamped < -1000.0 { -1000.0 } else { clamped };
    let n = nearest(clamped);
    // The integer is in the low bits of the sum with the magic number.
    let bits = (clamped + 6_755_399_441_055_744.0).to_bits();
    let scale = f64::from_bits((bits.wrapping_add(1023)) << 52);
    exp2_core(clamped - n) * scale
}

#[inline(always)]
pub fn ex2_approx_f32<const FTZ: bool>(a: f32) -> f32 {
    let a = flush_if::<FTZ>(a);
    unit::<FTZ>(if a.is_nan() { f64::NAN } else { exp2(f64::from(a)) })
}
op!(Ex2ApproxF32[FTZ] = ex2_approx_f32(a: f32) -> f32);

/// log2 of a positive finite number: the exponent, and a series in (m-1)/(m+1), whose error is below 2^-36.
#[inline(always)]
fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    // Brings the significand into [√½, √2).
    let shifted = bits.wrapping_sub(0x3fe6_a09e_667f_3bcd);
    let exponent = (shifted as i64) >> 52;
    let m = f64::from_bits(bits.wrapping_sub((exponent as u64) << 52));
    let t = (m - 1.0) / (m + 1.0);
    let t2 = t * t;
    let sum = polynomial!(
        t2: 1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0
    );
    exponent as i32 as f64 + t * sum * (2.0 * std::f64::consts::LOG2_E)
}

#[inline(always)]
pub fn lg2_approx_f32<const FTZ: bool>(a: f32) -> f32 {
    let a = flush_if::<FTZ>(a);
    let finite = unit::<FTZ>(log2(f64::from(a)));
    let special = if a == 0.0 { f32::NEG_INFINITY } else { a };
    let special = if (a < 0.0) | a.is_nan() {
        f32::from_bits(0x7fff_ffff)
    } else {
        special
    };
    if (a > 0.0) & (a < f32::INFINITY) {
        finite
    } else {
        special
    }
}
op!(Lg2ApproxF32[FTZ] = lg2_approx_f32(a: f32) -> f32);

/// sin(2πt) for |t| ≤ 1/8 and cos likewise.
#[inline(always)]
fn sin_core(x: f64) -> f64 {
    let x2 = x * x;
    let sum = polynomial!(x2: -1.0 / 39_916_800.0, 1.0 / 362_880.0, -1.0 / 5_040.0, 1.0 / 120.0, -1.0 / 6.0, 1.0);
    sum * x
}
#[inline(always)]
fn cos_core(x: f64) -> f64 {
    let x2 = x * x;
    polynomial!(x2: -1.0 / 3_628_800.0, 1.0 / 40_320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0)
}
/// Sine of `a` plus `quarters` quarter turns.
#[inline(always)]
fn sine(a: f32, quarters: u64) -> f64 {
    let turns = f64::from(a) * std::f64::consts::FRAC_1_PI * 0.5;
    // Beyond 2^50 quarter turns the argument says nothing about the angle.
    let four = turns * 4.0;
    let four = if four.abs() < 1.0e15 { four } else { 0.0 };
    let n = nearest(four);
    let quadrant = (four + 6_755_399_441_055_744.0).to_bits().wrapping_add(quarters);
    let x = (four - n) * std::f64::consts::FRAC_PI_2;
    let magnitude = if quadrant & 1 == 0 { sin_core(x) } else { cos_core(x) };
    if quadrant & 2 == 0 { magnitude } else { -magnitude }
}
#[inline(always)]
pub fn sin_approx_f32<const FTZ: bool>(a: f32) -> f32 {
    let a = flush_if::<FTZ>(a);
    let result = unit::<FTZ>(sine(a, 0));
    let result = if a == 0.0 { a } else { result };
    if a.is_finite() {
        result
    } else {
        f32::from_bits(0x7fff_ffff)
    }
}
#[inline(always)]
pub fn cos_approx_f32<const FTZ: bool>(a: f32) -> f32 {
    let result = unit::<FTZ>(sine(flush_if::<FTZ>(a), 1));
    if a.is_finite() {
        result
    } else {
        f32::from_bits(0x7fff_ffff)
    }
}
op!(SinApproxF32[FTZ] = sin_approx_f32(a: f32) -> f32);
op!(CosApproxF32[FTZ] = cos_approx_f32(a: f32) -> f32);

#[inline(always)]
pub(super) fn tanh(x: f64) -> f64 {
    let exponential = exp2(x * (2.0 * std::f64::consts::LOG2_E));
    let far = 1.0 - 2.0 / (exponential + 1.0);
    // Near zero the difference would cancel.
    let near = x - x * x * x * (1.0 / 3.0) + x * x * x * x * x * (2.0 / 15.0);
    if x.abs() < 1.0 / 64.0 { near } else { far }
}
#[inline(always)]
pub(super) fn exp2_or_nan(x: f64) -> f64 {
    if x.is_nan() { f64::NAN } else { exp2(x) }
}
#[inline(always)]
pub fn tanh_approx_f32(a: f32) -> f32 {
    let result = if a.is_subnormal() | (a == 0.0) {
        a
    } else {
        tanh(f64::from(a)) as f32
    };
    canonical(result)
}
op!(TanhApproxF32 = tanh_approx_f32(a: f32) -> f32);

/// `.approx.ftz.f64`: of the operand only the high word counts, and the result has only a high word.
#[inline(always)]
fn high_word(a: f64) -> f64 {
    let a = f64::from_bits(a.to_bits() & !0xffff_ffff);
    if a.abs() < f64::MIN_POSITIVE {
        0f64.copysign(a)
    } else {
        a
    }
}
#[inline(always)]
fn to_high_word(a: f64) -> f64 {
    if a.is_nan() {
        f64::from_bits(0x7fff_ffff_0000_0000)
    } else {
        high_word(a)
    }
}
#[inline(always)]
pub fn rcp_approx_f64(a: f64) -> f64 {
    to_high_word(1.0 / high_word(a))
}
op!(RcpApproxF64 = rcp_approx_f64(a: f64) -> f64);
#[inline(always)]
pub fn rsqrt_approx_ftz_f64(a: f64) -> f64 {
    to_high_word(1.0 / high_word(a).sqrt())
}
op!(RsqrtApproxFtzF64 = rsqrt_approx_ftz_f64(a: f64) -> f64);
/// One step from the high word's approximation, as the assembler wraps it; subnormals go through it scaled.
#[inline(always)]
pub fn rsqrt_approx_f64(a: f64) -> f64 {
    let small = a.abs() < f64::MIN_POSITIVE;
    let x = if small { a * (1u64 << 54) as f64 } else { a };
    let y0 = rsqrt_approx_ftz_f64(x);
    let e = x.mul_add(-(y0 * y0), 1.0);
    let y = e.mul_add(0.375, 0.5).mul_add(y0 * e, y0);
    let result = if small { y * (1u64 << 27) as f64 } else { y };
    if a.is_nan() {
        super::float::quiet(a)
    } else if a == 0.0 {
        f64::INFINITY.copysign(a)
    } else if a < 0.0 {
        f64::from_bits(0xfff8_0000_0000_0000)
    } else if a == f64::INFINITY {
        0.0
    } else {
        result
    }
}
op!(RsqrtApproxF64 = rsqrt_approx_f64(a: f64) -> f64);

// ---- from forms to kernels -----------------------------------------------------------------------------------------

macro_rules! forms {
    ($($form:ident $op:ident;)*) => {$(
        pub fn $form(f: &Form) -> Option<Lane> {
            Some(match (f.ty(0), f.has("ftz") || super::float::plain(f)) {
                (Type::F32, false) => Lane::of::<$op<false>>(),
                (Type::F32, true) => Lane::of::<$op<true>>(),
                _ => return None,
            })
        }
    )*};
}
forms! {
    sin_form SinApproxF32;
    cos_form CosApproxF32;
    lg2_form Lg2ApproxF32;
    ex2_f32_form Ex2ApproxF32;
}
pub fn rsqrt_form(f: &Form) -> Option<Lane> {
    Some(
        match (
            f.ty(0),
            f.has("ftz") || (f.ty(0) == Type::F32 && super::float::plain(f)),
        ) {
            (Type::F32, false) => Lane::of::<RsqrtApproxF32<false>>(),
            (Type::F32, true) => Lane::of::<RsqrtApproxF32<true>>(),
            (Type::F64, false) => Lane::of::<RsqrtApproxF64>(),
            (Type::F64, true) => Lane::of::<RsqrtApproxFtzF64>(),
            _ => return None,
        },
    )
}
pub fn tanh_form(f: &Form) -> Option<Lane> {
    (f.ty(0) == Type::F32).then(Lane::of::<TanhApproxF32>)
}
