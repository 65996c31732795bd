//! The single-precision function unit: reciprocal, roots, power, logarithm, sine, cosine and hyperbolic tangent, to the bit.
//!
//! The unit interpolates: the upper bits of the operand's significand choose a slice of a table, the lower ones, `x`, and
//! a truncated square of them go into `A + B·x + C·x²` with integer coefficients (Oberman and Siu, "A High-Performance
//! Area-Efficient Multifunction Interpolator", ARITH-17, 2005). Tables and roundings are those read out of GT200 chips and
//! published by the envytools project; an H100 has the same results for all 2^32 arguments. The square root and the
//! hyperbolic tangent, which those chips have no tables of, were measured there.
//!
//! Everything is on the bits of an `f32`. A warp goes through in stages — range reduction, square, table, polynomial,
//! composition — each a loop over the lanes without branches, which the compiler makes vectors of, with lanes no wider
//! than that stage needs. Subnormal operands count as zero, and results below the least normal number are zero;
//! [`super::approx`] scales where an instruction wants more.

pub mod rom;
mod tanh;

use super::lanes::WARP;
use super::simd::Cpu;
use rom::{EX2, LG2, RCP, RSQRT, SIN, SQRT};
pub use tanh::tanh;

/// What range reduction makes of an operand.
#[derive(Clone, Copy)]
pub struct Reduced {
    /// Of the table; bits above its size do not count.
    slice: u32,
    /// Where in the slice: 16 or 17 bits.
    x: u32,
    /// What [`Function::compose`] wants to know.
    rest: u32,
}

/// `A·2^SHIFT + B·x + C·square + ROUND`, as `256·high + low`.
#[derive(Clone, Copy)]
pub struct Sum {
    high: u32,
    low: i32,
}
impl Sum {
    /// Divided by `2^(8 + shift)`, cut off.
    #[inline(always)]
    fn shifted(self, shift: u32) -> u32 {
        self.high.wrapping_add((self.low >> 8) as u32) >> shift
    }
}

/// A function of the unit.
pub trait Function: 'static {
    /// Position of A above B·x.
    const SHIFT: u32;
    /// The square's operand is x without that many bits.
    const SQUARE_OF: u32 = 2;
    /// The square counts that many bits higher.
    const SQUARE_BY: u32 = 0;
    const ROUND: i32;
    /// Of the table.
    const SLICES: usize;
    fn reduce(a: u32) -> Reduced;
    fn compose(a: u32, rest: u32, sum: Sum) -> u32;
    /// The coefficients of slices: A; B and C.
    ///
    /// # Safety
    /// The caller is compiled with the features of `C`.
    unsafe fn look_up<C: Cpu>(slices: &[u32; WARP]) -> ([u32; WARP], [u32; WARP]);
    /// The coefficients of one slice.
    fn coefficients(slice: u32) -> (u32, u32);
}

/// Every number below is of 32 bits: x is split, so that no product is wider.
#[inline(always)]
fn interpolate<F: Function>((a, bc): (u32, u32), x: u32, square: u16) -> Sum {
    let b = bc as i32 >> 12;
    let c = (bc as i32) << 20 >> 20;
    let square = i32::from(square) << F::SQUARE_BY;
    Sum {
        high: (a << (F::SHIFT - 8)).wrapping_add(b.wrapping_mul((x >> 8) as i32) as u32),
        low: b
            .wrapping_mul((x & 0xff) as i32)
            .wrapping_add(c.wrapping_mul(square))
            .wrapping_add(F::ROUND),
    }
}

/// The unit's squarer: y² of 15 bits, over 2^15, each row of the product cut off by itself.
///
/// That is half the sum of the products of all pairs of bits whose weights reach 14. Pairs in the upper half of y are the
/// square of it; of the mixed ones those with the four upper bits of both halves are a product, too, and what is left is
/// two triangles of three rows, which lie side by side in one word here.
#[inline(always)]
fn square(y: u16) -> u16 {
    let (high, low) = (y >> 7, y & 0x7f);
    let bits = high | high << 4;
    let rows = (low >> 4) | (low << 8 & 0x700);
    let row = |n: u32| ((bits >> (1 + n) & 0x101) * 7) & (rows >> (2 - n));
    let triangles = row(0) + row(1) + row(2);
    let mixed = (low >> 3) * (high >> 4) + (triangles & 0xff) + (triangles >> 8);
    (high * high + 2 * mixed) >> 1
}

/// A function of a warp's operands.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
pub unsafe fn run<C: Cpu, F: Function>(operands: &[u32; WARP]) -> [u32; WARP] {
    let (mut slices, mut x, mut rest) = ([0; WARP], [0; WARP], [0; WARP]);
    let mut squares = [0; WARP];
    for lane in 0..WARP {
        let reduced = F::reduce(operands[lane]);
        slices[lane] = reduced.slice;
        x[lane] = reduced.x;
        rest[lane] = reduced.rest;
        squares[lane] = (reduced.x >> F::SQUARE_OF) as u16;
    }
    for y in &mut squares {
        *y = square(*y);
    }
    // SAFETY: the caller's.
    let (a, bc) = unsafe { F::look_up::<C>(&slices) };
    let mut results = [0; WARP];
    for lane in 0..WARP {
        let sum = interpolate::<F>((a[lane], bc[lane]), x[lane], squares[lane]);
        results[lane] = F::compose(operands[lane], rest[lane], sum);
    }
    results
}

/// A function of one operand, for instructions that are rare.
#[inline(always)]
pub fn one<F: Function>(operand: u32) -> u32 {
    let reduced = F::reduce(operand);
    let sum = interpolate::<F>(
        F::coefficients(reduced.slice),
        reduced.x,
        square((reduced.x >> F::SQUARE_OF) as u16),
    );
    F::compose(operand, reduced.rest, sum)
}

macro_rules! table {
    ($rom:ident) => {
        const SLICES: usize = $rom.a.len();
        #[inline(always)]
        unsafe fn look_up<C: Cpu>(slices: &[u32; WARP]) -> ([u32; WARP], [u32; WARP]) {
            // SAFETY: the caller's.
            unsafe { (C::look_up(&$rom.a, slices), C::look_up(&$rom.bc, slices)) }
        }
        #[inline(always)]
        fn coefficients(slice: u32) -> (u32, u32) {
            let slice = slice as usize & ($rom.a.len() - 1);
            ($rom.a[slice], $rom.bc[slice])
        }
    };
}

const NAN: u32 = 0x7fff_ffff;
const INFINITY: u32 = 0x7f80_0000;
const SIGN: u32 = 0x8000_0000;
const LEAST_NORMAL: u32 = 0x80_0000;

#[inline(always)]
fn select(condition: bool, yes: u32, no: u32) -> u32 {
    if condition { yes } else { no }
}

/// A float from an exponent and a significand of 2^23 to 2^24, of which the last is the next exponent's 2^23; zero
/// where that is below the least normal number.
#[inline(always)]
fn float(exponent: i32, significand: u32) -> u32 {
    let bits = ((exponent - 1) << 23).wrapping_add(significand as i32);
    select(bits < LEAST_NORMAL as i32, 0, bits as u32)
}

/// 1/a
pub struct Rcp;
impl Function for Rcp {
    const SHIFT: u32 = 13;
    const SQUARE_OF: u32 = 1;
    const ROUND: i32 = 0x47e7;
    table!(RCP);
    #[inline(always)]
    fn reduce(a: u32) -> Reduced {
        Reduced {
            slice: a >> 16,
            x: a & 0xffff,
            rest: 0,
        }
    }
    #[inline(always)]
    fn compose(a: u32, _: u32, sum: Sum) -> u32 {
        let magnitude = a & !SIGN;
        let exponent = (magnitude >> 23) as i32;
        // Of infinity, too, there is nothing left.
        let result = float(253 - exponent, sum.shifted(7));
        let result = select(magnitude < LEAST_NORMAL, INFINITY, result) | a & SIGN;
        select(magnitude > INFINITY, NAN, result)
    }
}

/// 1/√a
pub struct Rsqrt;
impl Function for Rsqrt {
    const SHIFT: u32 = 14;
    const SQUARE_BY: u32 = 2;
    const ROUND: i32 = 0x7fff;
    table!(RSQRT);
    #[inline(always)]
    fn reduce(a: u32) -> Reduced {
        // Odd exponents, which have even fields, double the significand.
        let f = (a & 0xff_ffff) ^ LEAST_NORMAL;
        Reduced {
            slice: f >> 17,
            x: f & 0x1_ffff,
            rest: 0,
        }
    }
    #[inline(always)]
    fn compose(a: u32, _: u32, sum: Sum) -> u32 {
        let magnitude = a & !SIGN;
        let k = (magnitude >> 23) as i32 - 127;
        // Even powers of two come out exactly.
        let exact = a & 0xff_ffff == LEAST_NORMAL;
        let result = float(126 - (k >> 1), sum.shifted(8) + u32::from(exact));
        let result = select(a == INFINITY, 0, result);
        let result = select(a > INFINITY, NAN, result);
        select(magnitude < LEAST_NORMAL, (a & SIGN) | INFINITY, result)
    }
}

/// √a
pub struct Sqrt;
impl Function for Sqrt {
    const SHIFT: u32 = 15;
    const SQUARE_BY: u32 = 1;
    const ROUND: i32 = 0xffff;
    table!(SQRT);
    #[inline(always)]
    fn reduce(a: u32) -> Reduced {
        Rsqrt::reduce(a)
    }
    #[inline(always)]
    fn compose(a: u32, _: u32, sum: Sum) -> u32 {
        let magnitude = a & !SIGN;
        let k = (magnitude >> 23) as i32 - 127;
        // The significand's leading one, 2^40 in the sum, is above its 40 bits.
        let result = (((k >> 1) + 127) << 23) as u32 + sum.shifted(9);
        let result = select(a >= INFINITY, select(a == INFINITY, INFINITY, NAN), result);
        select(magnitude < LEAST_NORMAL, a & SIGN, result)
    }
}

/// 2^a
pub struct Ex2;
impl Function for Ex2 {
    const SHIFT: u32 = 13;
    const ROUND: i32 = 0x77e2;
    table!(EX2);
    #[inline(always)]
    fn reduce(a: u32) -> Reduced {
        let magnitude = a & !SIGN;
        // Fixed point with 23 bits of fraction, cut off; from 128 on it does not matter what.
        let p = whole(f32::from_bits(magnitude.min(0x42ff_ffff)) * 8_388_608.0);
        // Negative numbers by one's complement, unless they are whole.
        let negative = (a as i32 >> 31) as u32;
        let p = (p ^ negative).wrapping_add(negative & u32::from(p & 0x7f_ffff == 0));
        Reduced {
            slice: p >> 17,
            x: p & 0x1_ffff,
            rest: p,
        }
    }
    #[inline(always)]
    fn compose(a: u32, p: u32, sum: Sum) -> u32 {
        let magnitude = a & !SIGN;
        let result = float((p as i32 >> 23) + 127, sum.shifted(7));
        let beyond = !(a as i32 >> 31) as u32 & INFINITY;
        let result = select(magnitude < 0x4300_0000, result, beyond);
        select(magnitude > INFINITY, NAN, result)
    }
}

/// The integer part of a number from 0 to 2^31.
#[inline(always)]
fn whole(number: f32) -> u32 {
    debug_assert!((0.0..2_147_483_648.0).contains(&number));
    // SAFETY: the callers' numbers lie in that range; none is a NaN.
    unsafe { number.to_int_unchecked::<i32>() as u32 }
}

/// The bits of `v` as a float, cut off; what is subnormal then is any subnormal.
#[inline(always)]
fn cut(v: f64) -> u32 {
    (f64::from_bits(v.to_bits() & !0x1fff_ffff) as f32).to_bits()
}

/// log2 a
pub struct Lg2;
impl Function for Lg2 {
    const SHIFT: u32 = 12;
    const SQUARE_BY: u32 = 1;
    const ROUND: i32 = 0x3345;
    table!(LG2);
    #[inline(always)]
    fn reduce(a: u32) -> Reduced {
        Reduced {
            slice: a >> 17,
            x: a & 0x1_ffff,
            rest: 0,
        }
    }
    #[inline(always)]
    fn compose(a: u32, _: u32, sum: Sum) -> u32 {
        let magnitude = a & !SIGN;
        let exponent = (magnitude >> 23) as i32 - 127;
        // A quarter of the sum is the fraction in units of 2^-36; with the exponent, exactly.
        const UNIT: f64 = 1.0 / 68_719_476_736.0;
        let fraction = f64::from(sum.high as i32) * (64.0 * UNIT) + f64::from(sum.low >> 2) * UNIT;
        let v = fraction + f64::from(exponent);
        // Negative numbers by one's complement.
        let below = f64::from_bits((v.to_bits() as i64 >> 63) as u64 & UNIT.to_bits());
        // The logarithm of one is zero: it takes no constant of rounding.
        let result = select(a == 0x3f80_0000, 0, cut(v + below));
        let result = select(a == INFINITY, INFINITY, result);
        let result = select(a > INFINITY, NAN, result);
        select(magnitude < LEAST_NORMAL, SIGN | INFINITY, result)
    }
}

/// Sine or cosine.
pub struct Circular<const COSINE: bool>;
impl<const COSINE: bool> Function for Circular<COSINE> {
    const SHIFT: u32 = 11;
    const ROUND: i32 = 0;
    table!(SIN);
    #[inline(always)]
    fn reduce(a: u32) -> Reduced {
        // Turns: a/2π rounded towards zero, as the assembler computes it before a sine or cosine. 24 by 24 bits: the
        // double is exact.
        let turns = cut(f64::from(f32::from_bits(a & !SIGN)) * f64::from(f32::from_bits(0x3e22_f983)));
        // Quarters of them with 23 bits of fraction, modulo four; from 2^24 on turns are whole.
        let turns = f32::from_bits(select(turns < 0x4b80_0000, turns, 0));
        let p = whole((turns - whole(turns) as i32 as f32) * 33_554_432.0);
        let p = p + (u32::from(COSINE) << 23);
        let f = p ^ (((p << 8) as i32) >> 31) as u32;
        Reduced {
            slice: f >> 17,
            x: f & 0x1_ffff,
            rest: p,
        }
    }
    #[inline(always)]
    fn compose(a: u32, p: u32, sum: Sum) -> u32 {
        let sign = (if COSINE { 0 } else { a & SIGN }) ^ (p << 7 & SIGN);
        const UNIT: f64 = 1.0 / 137_438_953_472.0;
        let v = f64::from(sum.high as i32) * (256.0 * UNIT) + f64::from(sum.low) * UNIT;
        let result = sign | cut(v);
        select(a & !SIGN >= INFINITY, NAN, result)
    }
}
