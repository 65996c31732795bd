//! What the instructions on `f32` and `f64` compute, as functions of plain numbers, each with its kernel.
//!
//! Round-to-nearest is the hardware's, and so are the other modes of `f64` ([`directed`]); those of `f32` are computed in integers
//! ([`crate::isa::soft`]). NaN results of `f32`
//! are canonical, those of `f64` carry an operand's payload.

use crate::isa::number::canonical;
use crate::isa::simd::{Cpu, nan_op, op};
use crate::isa::soft::{self, Binary32, Binary64};
use crate::isa::types::Rounding;

use super::directed;

/// `.ftz`: a subnormal becomes zero of its sign.
#[inline(always)]
pub fn flush(a: f32) -> f32 {
    if a.abs() < f32::MIN_POSITIVE {
        f32::from_bits(a.to_bits() & 0x8000_0000)
    } else {
        a
    }
}
#[inline(always)]
pub(in crate::isa) fn flush_if<const FTZ: bool>(a: f32) -> f32 {
    if FTZ { flush(a) } else { a }
}
/// `.sat`: into [0, 1]; NaN and −0 become +0.
#[inline(always)]
pub fn saturate(a: f32) -> f32 {
    let a = if a > 0.0 { a } else { 0.0 };
    if a < 1.0 { a } else { 1.0 }
}
/// The square root with NaN made canonical by its bits: LLVM turns `x < 0 ? NaN : sqrt(x)`, which it makes of the test
/// above, into `sqrt(x)`, whatever the NaN was.
#[inline(always)]
pub(in crate::isa) fn root(a: f32) -> f32 {
    let bits = a.sqrt().to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 {
        0x7fff_ffff
    } else {
        bits
    })
}
/// What happens to a result after rounding.
#[inline(always)]
pub(in crate::isa) fn finish<const FTZ: bool, const SAT: bool>(a: f32) -> f32 {
    let a = flush_if::<FTZ>(a);
    if SAT { saturate(a) } else { canonical(a) }
}

// ---- f32 -----------------------------------------------------------------------------------------------------------

#[inline(always)]
pub fn add_f32<const FTZ: bool, const SAT: bool>(a: f32, b: f32) -> f32 {
    finish::<FTZ, SAT>(flush_if::<FTZ>(a) + flush_if::<FTZ>(b))
}
#[inline(always)]
pub fn sub_f32<const FTZ: bool, const SAT: bool>(a: f32, b: f32) -> f32 {
    finish::<FTZ, SAT>(flush_if::<FTZ>(a) - flush_if::<FTZ>(b))
}
#[inline(always)]
pub fn mul_f32<const FTZ: bool, const SAT: bool>(a: f32, b: f32) -> f32 {
    let (a, b) = (flush_if::<FTZ>(a), flush_if::<FTZ>(b));
    let product = a * b;
    let product = if FTZ {
        flush_tiny(product, a * SCALE * b)
    } else {
        product
    };
    finish::<false, SAT>(product)
}
#[inline(always)]
pub fn fma_f32<C: Cpu, const FTZ: bool, const SAT: bool>(a: f32, b: f32, c: f32) -> f32 {
    let (a, b, c) = (flush_if::<FTZ>(a), flush_if::<FTZ>(b), flush_if::<FTZ>(c));
    let sum = C::fma32(a, b, c);
    let sum = if FTZ {
        flush_tiny(sum, C::fma32(a * SCALE, b, c * SCALE))
    } else {
        sum
    };
    finish::<false, SAT>(sum)
}
/// A power of two that takes results near the least normal number to where all are normal.
pub const SCALE: f32 = (1u64 << 63) as f32;
/// `.ftz` after an operation whose result may be rounded up to the least normal number: what would be less if exponents
/// had no end is flushed (seen on an H100). `scaled` is the result of operands that are [`SCALE`] times as large. Where
/// that overflows, the result is far from subnormal: operands are not subnormal themselves, so products have no digits
/// that are both that large and that small.
#[inline(always)]
fn flush_tiny(result: f32, scaled: f32) -> f32 {
    if scaled.abs() < const { f32::MIN_POSITIVE * SCALE } {
        f32::from_bits(result.to_bits() & 0x8000_0000)
    } else {
        result
    }
}
#[inline(always)]
pub fn div_f32<const FTZ: bool>(a: f32, b: f32) -> f32 {
    let (a, b) = (flush_if::<FTZ>(a), flush_if::<FTZ>(b));
    let quotient = a / b;
    let quotient = if FTZ & is_tiny_quotient(a, b) {
        0f32.copysign(quotient)
    } else {
        quotient
    };
    finish::<FTZ, false>(quotient)
}
/// Whether a quotient would be subnormal if exponents had no end: that is what `.ftz` flushes (seen on an H100), also
/// where rounding to a subnormal would reach the least normal number. A quotient below that number is so by half of a last
/// place at least.
#[inline(always)]
fn is_tiny_quotient(a: f32, b: f32) -> bool {
    // Exact, or so small that `a` is no smaller.
    a.abs() < f32::MIN_POSITIVE * b.abs()
}
#[inline(always)]
pub fn rcp_f32<const FTZ: bool>(a: f32) -> f32 {
    finish::<FTZ, false>(1.0 / flush_if::<FTZ>(a))
}
#[inline(always)]
pub fn sqrt_f32<const FTZ: bool>(a: f32) -> f32 {
    flush_if::<FTZ>(root(flush_if::<FTZ>(a)))
}
op!(AddF32[FTZ, SAT] = add_f32(a: f32, b: f32) -> f32);
op!(SubF32[FTZ, SAT] = sub_f32(a: f32, b: f32) -> f32);
op!(MulF32[FTZ, SAT] = mul_f32(a: f32, b: f32) -> f32);
op!(FmaF32[FTZ, SAT] @cpu = fma_f32(a: f32, b: f32, c: f32) -> f32);
op!(DivF32[FTZ] = div_f32(a: f32, b: f32) -> f32);
op!(RcpF32[FTZ] = rcp_f32(a: f32) -> f32);
op!(SqrtF32[FTZ] = sqrt_f32(a: f32) -> f32);

/// The constant of the kernels with a rounding mode: the mode, and flags from bit 8 on.
pub(super) const FTZ: u64 = 1 << 8;
pub(super) const SAT: u64 = 1 << 9;
pub(super) const NEGATE_B: u64 = 1 << 10;
pub(super) const INVERT: u64 = 1 << 11;

/// `f64` → `f32` in any mode, where the operand is exact or was rounded to odd.
#[inline(always)]
fn narrow_directed(exact: f64, imm: u64) -> f32 {
    let mode = imm & 7;
    let nearest = exact as f32;
    let back = f64::from(nearest);
    // Comparisons are false for NaN, and for infinities that are exact.
    let up = (mode == const { Rounding::Rp as u64 }) & (back < exact);
    let down = (mode == const { Rounding::Rm as u64 }) & (back > exact);
    let inwards = (mode == const { Rounding::Rz as u64 }) & (back.abs() > exact.abs());
    let bits = nearest.to_bits();
    let negative = bits >> 31 != 0;
    let grow = (up & !negative) | (down & negative);
    let shrink = (up & negative) | (down & !negative) | inwards;
    let step = if grow { 1 } else { 0 };
    let step = if shrink { u32::MAX } else { step };
    let result = f32::from_bits(bits.wrapping_add(step));
    // What is rounded up to the least normal number from further away than a last place of normal numbers is tiny, too.
    let tiny = exact.abs() <= const { f32::MIN_POSITIVE as f64 * (1.0 - f32::EPSILON as f64 / 2.0) };
    let result = if tiny & (imm & FTZ != 0) {
        0f32.copysign(result)
    } else {
        result
    };
    let result = if imm & FTZ != 0 { flush(result) } else { result };
    if imm & SAT != 0 {
        saturate(result)
    } else {
        canonical(result)
    }
}
/// `a + b` for [`narrow_directed`]: an exact zero is negative when rounding down, unless both are +0.
#[inline(always)]
fn sum_directed(a: f64, b: f64, imm: u64) -> f64 {
    let sum = soft::sum_to_odd(a, b);
    let negative = (a.to_bits() | b.to_bits()) >> 63 != 0;
    let minus = (sum == 0.0) & negative & (imm & 7 == const { Rounding::Rm as u64 });
    if minus { -0.0 } else { sum }
}
#[inline(always)]
fn operand(a: f32, imm: u64) -> f64 {
    f64::from(if imm & FTZ != 0 { flush(a) } else { a })
}
/// In any rounding mode, by the constant.
#[inline(always)]
pub fn add_f32_rnd(a: f32, b: f32, imm: u64) -> f32 {
    let b = if imm & NEGATE_B != 0 { -b } else { b };
    narrow_directed(sum_directed(operand(a, imm), operand(b, imm), imm), imm)
}
#[inline(always)]
pub fn mul_f32_rnd(a: f32, b: f32, imm: u64) -> f32 {
    narrow_directed(operand(a, imm) * operand(b, imm), imm)
}
#[inline(always)]
pub fn fma_f32_rnd(a: f32, b: f32, c: f32, imm: u64) -> f32 {
    narrow_directed(
        sum_directed(operand(a, imm) * operand(b, imm), operand(c, imm), imm),
        imm,
    )
}
op!(AddF32Rnd = add_f32_rnd(a: f32, b: f32; imm) -> f32);
op!(MulF32Rnd = mul_f32_rnd(a: f32, b: f32; imm) -> f32);
op!(FmaF32Rnd = fma_f32_rnd(a: f32, b: f32, c: f32; imm) -> f32);

macro_rules! directed_f32 {
    ($($name:ident $op:ident ($($a:ident),*) = |$f:ident, $mode:ident, $imm:ident| $body:expr;)*) => {$(
        /// In any rounding mode, by the constant.
        #[inline(never)]
        pub fn $name($($a: f32,)* $imm: u64) -> f32 {
            let $mode = Rounding::from_code($imm);
            let $f = |x: f32| u64::from((if $imm & FTZ != 0 { flush(x) } else { x }).to_bits());
            let (bits, tiny) = $body;
            let result = f32::from_bits(bits as u32);
            let result = if tiny & ($imm & FTZ != 0) { 0f32.copysign(result) } else { result };
            let result = if $imm & FTZ != 0 { flush(result) } else { result };
            if $imm & SAT != 0 { saturate(result) } else { canonical(result) }
        }
        op!($op = $name($($a: f32),*; imm) -> f32);
    )*};
}
directed_f32! {
    div_f32_rnd DivF32Rnd(a, b) = |f, mode, imm| (soft::div::<Binary32>(f(a), f(b), mode), is_tiny_quotient(a, b));
    sqrt_f32_rnd SqrtF32Rnd(a) = |f, mode, imm| {
        if imm & INVERT != 0 {
            (soft::div::<Binary32>(f(1.0), f(a), mode), is_tiny_quotient(1.0, a))
        } else {
            (soft::sqrt::<Binary32>(f(a), mode), false)
        }
    };
}

#[inline(always)]
pub fn abs_f32<const FTZ: bool>(a: f32) -> f32 {
    finish::<FTZ, false>(a.abs())
}
#[inline(always)]
pub fn neg_f32<const FTZ: bool>(a: f32) -> f32 {
    finish::<FTZ, false>(-a)
}
op!(AbsF32[FTZ] = abs_f32(a: f32) -> f32);
op!(NegF32[FTZ] = neg_f32(a: f32) -> f32);

/// The lesser number: NaN loses against a number (or wins, with `.NaN`), −0 is less than +0. `.xorsign.abs` compares
/// magnitudes and gives the result the product's sign.
#[inline(always)]
pub fn min_f32<const FTZ: bool, const NAN: bool, const XORSIGN: bool>(a: f32, b: f32) -> f32 {
    extremum::<FTZ, NAN, XORSIGN, false>(a, b)
}
/// The greater number, with the same rules.
#[inline(always)]
pub fn max_f32<const FTZ: bool, const NAN: bool, const XORSIGN: bool>(a: f32, b: f32) -> f32 {
    extremum::<FTZ, NAN, XORSIGN, true>(a, b)
}
#[inline(always)]
fn extremum<const FTZ: bool, const NAN: bool, const XORSIGN: bool, const MAX: bool>(a: f32, b: f32) -> f32 {
    let (a, b) = (flush_if::<FTZ>(a), flush_if::<FTZ>(b));
    let (x, y) = if XORSIGN { (a.abs(), b.abs()) } else { (a, b) };
    // As integers of sign and magnitude, zeros order by sign.
    let key = |v: f32| {
        let bits = v.to_bits() as i32;
        bits ^ ((bits >> 31) as u32 >> 1) as i32
    };
    let first = if MAX { key(x) > key(y) } else { key(x) < key(y) };
    let chosen = if (first & !x.is_nan()) | y.is_nan() { x } else { y };
    let sign = if XORSIGN {
        (a.to_bits() ^ b.to_bits()) & 0x8000_0000
    } else {
        0
    };
    let signed = f32::from_bits(chosen.to_bits() | sign);
    let nan = if NAN { x.is_nan() | y.is_nan() } else { chosen.is_nan() };
    if nan { f32::from_bits(0x7fff_ffff) } else { signed }
}
op!(MinF32[FTZ, NAN, XORSIGN] = min_f32(a: f32, b: f32) -> f32);
op!(MaxF32[FTZ, NAN, XORSIGN] = max_f32(a: f32, b: f32) -> f32);

/// The least of three magnitudes.
#[inline(always)]
pub fn min_abs_f32<const FTZ: bool, const NAN: bool>(a: f32, b: f32, c: f32) -> f32 {
    let (a, b, c) = (a.abs(), b.abs(), c.abs());
    min_f32::<FTZ, NAN, false>(min_f32::<FTZ, NAN, false>(a, b), c)
}
/// The greatest of three magnitudes.
#[inline(always)]
pub fn max_abs_f32<const FTZ: bool, const NAN: bool>(a: f32, b: f32, c: f32) -> f32 {
    let (a, b, c) = (a.abs(), b.abs(), c.abs());
    max_f32::<FTZ, NAN, false>(max_f32::<FTZ, NAN, false>(a, b), c)
}
op!(MinAbsF32[FTZ, NAN] = min_abs_f32(a: f32, b: f32, c: f32) -> f32);
op!(MaxAbsF32[FTZ, NAN] = max_abs_f32(a: f32, b: f32, c: f32) -> f32);

/// Magnitude of `b` with the sign of `a`.
#[inline(always)]
pub fn copysign_f32(a: f32, b: f32) -> f32 {
    f32::from_bits(a.to_bits() & 0x8000_0000 | b.to_bits() & 0x7fff_ffff)
}
op!(CopysignF32 = copysign_f32(a: f32, b: f32) -> f32);
#[inline(always)]
pub fn copysign_f64(a: f64, b: f64) -> f64 {
    f64::from_bits(a.to_bits() & 1 << 63 | b.to_bits() & !(1 << 63))
}
op!(CopysignF64 = copysign_f64(a: f64, b: f64) -> f64);

/// Whether a number has a [`super::Property`], which is the kernel's constant.
#[inline(always)]
fn testp(zero: bool, subnormal: bool, infinite: bool, nan: bool, property: u64) -> bool {
    match property {
        0 => !infinite & !nan,
        1 => infinite,
        2 => !nan,
        3 => nan,
        // The manual counts zero as normal.
        4 => zero | (!subnormal & !infinite & !nan),
        _ => subnormal,
    }
}
#[inline(always)]
pub fn testp_f32(a: f32, property: u64) -> bool {
    testp(a == 0.0, a.is_subnormal(), a.is_infinite(), a.is_nan(), property)
}
#[inline(always)]
pub fn testp_f64(a: f64, property: u64) -> bool {
    testp(a == 0.0, a.is_subnormal(), a.is_infinite(), a.is_nan(), property)
}
op!(TestpF32 = testp_f32(a: f32; imm) -> bool);
op!(TestpF64 = testp_f64(a: f64; imm) -> bool);

// ---- f64: NaN operands are passed on, made quiet -------------------------------------------------------------------

const DEFAULT_NAN: u64 = 0xfff8_0000_0000_0000;
#[inline(always)]
pub fn quiet(a: f64) -> f64 {
    f64::from_bits(a.to_bits() | 1 << 51)
}
/// `result`, unless it is NaN: then the first NaN among the operands, or the default one.
#[inline(always)]
fn propagate(result: f64, order: [f64; 3]) -> f64 {
    let [first, second, third] = order;
    let nan = if first.is_nan() {
        quiet(first)
    } else if second.is_nan() {
        quiet(second)
    } else if third.is_nan() {
        quiet(third)
    } else {
        f64::from_bits(DEFAULT_NAN)
    };
    if result.is_nan() { nan } else { result }
}
#[inline(always)]
pub fn add_f64(a: f64, b: f64) -> f64 {
    propagate(a + b, [b, a, a])
}
#[inline(always)]
pub fn sub_f64(a: f64, b: f64) -> f64 {
    propagate(a - b, [b, a, a])
}
#[inline(always)]
pub fn mul_f64(a: f64, b: f64) -> f64 {
    propagate(a * b, [b, a, a])
}
#[inline(always)]
pub fn fma_f64<C: Cpu>(a: f64, b: f64, c: f64) -> f64 {
    propagate(C::fma64(a, b, c), [b, c, a])
}
#[inline(always)]
pub fn div_f64(a: f64, b: f64) -> f64 {
    propagate(a / b, [a, b, b])
}
#[inline(always)]
pub fn rcp_f64(a: f64) -> f64 {
    propagate(1.0 / a, [a, a, a])
}
#[inline(always)]
pub fn sqrt_f64(a: f64) -> f64 {
    propagate(a.sqrt(), [a, a, a])
}
#[inline(always)]
pub fn abs_f64(a: f64) -> f64 {
    propagate(a.abs(), [a, a, a])
}
#[inline(always)]
pub fn neg_f64(a: f64) -> f64 {
    propagate(-a, [a, a, a])
}
#[inline(always)]
pub fn min_f64(a: f64, b: f64) -> f64 {
    let first = (a < b) | ((a == b) & a.is_sign_negative()) | b.is_nan();
    propagate(if first { a } else { b }, [b, a, a])
}
#[inline(always)]
pub fn max_f64(a: f64, b: f64) -> f64 {
    let first = (a > b) | ((a == b) & a.is_sign_positive()) | b.is_nan();
    propagate(if first { a } else { b }, [b, a, a])
}
nan_op!(AddF64(a, b), |C| a + b, add_f64(a, b));
nan_op!(SubF64(a, b), |C| a - b, sub_f64(a, b));
nan_op!(MulF64(a, b), |C| a * b, mul_f64(a, b));
nan_op!(FmaF64(a, b, c), |C| C::fma64(a, b, c), fma_f64::<C>(a, b, c));
nan_op!(DivF64(a, b), |C| a / b, div_f64(a, b));
nan_op!(RcpF64(a), |C| 1.0 / a, rcp_f64(a));
nan_op!(SqrtF64(a), |C| a.sqrt(), sqrt_f64(a));
op!(AbsF64 = abs_f64(a: f64) -> f64);
op!(NegF64 = neg_f64(a: f64) -> f64);
op!(MinF64 = min_f64(a: f64, b: f64) -> f64);
op!(MaxF64 = max_f64(a: f64, b: f64) -> f64);

macro_rules! directed_f64 {
    ($($name:ident $op:ident ($($a:ident),*) [$($order:ident),*] = |$mode:ident, $imm:ident| $body:expr;)*) => {$(
        /// In any rounding mode, by the constant.
        #[inline(never)]
        pub fn $name($($a: f64,)* $imm: u64) -> f64 {
            let $mode = Rounding::from_code($imm);
            propagate($body, [$($order),*])
        }
        op!($op = $name($($a: f64),*; imm) -> f64);
    )*};
}
directed_f64! {
    add_f64_rnd AddF64Rnd(a, b) [b, a, a] = |mode, imm| directed::add(a, if imm & NEGATE_B != 0 { -b } else { b }, mode);
    mul_f64_rnd MulF64Rnd(a, b) [b, a, a] = |mode, imm| directed::mul(a, b, mode);
    fma_f64_rnd FmaF64Rnd(a, b, c) [b, c, a] = |mode, imm| match directed::fma(a, b, c, mode) {
        Some(result) => result,
        None => f64::from_bits(soft::fma::<Binary64>(a.to_bits(), b.to_bits(), c.to_bits(), mode)),
    };
    div_f64_rnd DivF64Rnd(a, b) [a, b, b] = |mode, imm| directed::div(a, b, mode);
    sqrt_f64_rnd SqrtF64Rnd(a) [a, a, a] = |mode, imm| match imm & INVERT != 0 {
        true => directed::div(1.0, a, mode),
        false => directed::sqrt(a, mode),
    };
}

// ---- f32x2 ---------------------------------------------------------------------------------------------------------

#[inline(always)]
fn halves(a: u64) -> (f32, f32) {
    (f32::from_bits(a as u32), f32::from_bits((a >> 32) as u32))
}
#[inline(always)]
fn join(low: f32, high: f32) -> u64 {
    u64::from(high.to_bits()) << 32 | u64::from(low.to_bits())
}
macro_rules! pairs {
    ($($name:ident $op:ident = $f:ident, $rnd_name:ident $rnd_op:ident = $rnd:ident ($($a:ident),*);)*) => {$(
        #[inline(always)]
        pub fn $name<C: Cpu, const FTZ: bool>($($a: u64),*) -> u64 {
            $(let $a = halves($a);)*
            join($f::<C, FTZ>($($a.0),*), $f::<C, FTZ>($($a.1),*))
        }
        op!($op[FTZ] @cpu = $name($($a: u64),*) -> u64);
        #[inline(always)]
        pub fn $rnd_name($($a: u64,)* imm: u64) -> u64 {
            $(let $a = halves($a);)*
            join($rnd($($a.0,)* imm), $rnd($($a.1,)* imm))
        }
        op!($rnd_op = $rnd_name($($a: u64),*; imm) -> u64);
    )*};
}
#[inline(always)]
#[expect(clippy::extra_unused_type_parameters, reason = "`pairs` names the same ones for all")]
fn add_one<C: Cpu, const FTZ: bool>(a: f32, b: f32) -> f32 {
    add_f32::<FTZ, false>(a, b)
}
#[inline(always)]
#[expect(clippy::extra_unused_type_parameters, reason = "`pairs` names the same ones for all")]
fn sub_one<C: Cpu, const FTZ: bool>(a: f32, b: f32) -> f32 {
    sub_f32::<FTZ, false>(a, b)
}
#[inline(always)]
#[expect(clippy::extra_unused_type_parameters, reason = "`pairs` names the same ones for all")]
fn mul_one<C: Cpu, const FTZ: bool>(a: f32, b: f32) -> f32 {
    mul_f32::<FTZ, false>(a, b)
}
#[inline(always)]
fn fma_one<C: Cpu, const FTZ: bool>(a: f32, b: f32, c: f32) -> f32 {
    fma_f32::<C, FTZ, false>(a, b, c)
}
pairs! {
    add_f32x2 AddF32x2 = add_one, add_f32x2_rnd AddF32x2Rnd = add_f32_rnd (a, b);
    sub_f32x2 SubF32x2 = sub_one, sub_f32x2_rnd SubF32x2Rnd = add_f32_rnd (a, b);
    mul_f32x2 MulF32x2 = mul_one, mul_f32x2_rnd MulF32x2Rnd = mul_f32_rnd (a, b);
    fma_f32x2 FmaF32x2 = fma_one, fma_f32x2_rnd FmaF32x2Rnd = fma_f32_rnd (a, b, c);
}
