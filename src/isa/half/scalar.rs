//! What the instructions on `f16` and `bf16` compute, as functions of plain numbers, each with its kernel.
//!
//! Operands become `f32`, where sums and products of halves are rounded so finely that rounding again to eleven or eight
//! bits gives the right result (24 ≥ 2·11 + 2). So it does of most fused multiply-adds; where it may not, they round to odd
//! in between.
//! Subnormals are kept without `.ftz`; NaN results are 0x7fff.

use crate::isa::approx;
use crate::isa::float::{add_f32_rnd, fma_f32_rnd};
use crate::isa::lane::Lane;
use crate::isa::lanes::{Operands, WARP, Width};
use crate::isa::number::{narrow_bf16, narrow_f16, widen_f16};
use crate::isa::simd::{Cpu, Op, Value, WarpOp, op};
use crate::isa::soft::{self, Bfloat16, sum_to_odd};
use crate::isa::types::Rounding;

/// The two formats.
pub trait Half: 'static {
    const INFINITY: u16;
    const ONE: u16;
    const LEAST_NORMAL: u16;
    fn widen(a: u16) -> f32;
    fn narrow(a: f32) -> u16;
    /// Of a number that is not negative, towards zero; what is too large is infinite.
    fn cut(a: f32) -> u16;
    /// `a·b + c` in `f32`, rounded to odd.
    fn fma(a: f32, b: f32, c: f32) -> f32;
    /// Whether rounding `sum`, which is `a·b + c` rounded to `f32` twice, to a half may differ from rounding once. It
    /// holds at least where `sum` lies halfway between halves.
    fn is_rare(a: f32, b: f32, sum: f32) -> bool;
    /// # Safety
    /// The caller is compiled with the features of `C`.
    unsafe fn widen_run<C: Cpu>(halves: &[u16; WARP]) -> [f32; WARP];
    /// NaN stays NaN.
    ///
    /// # Safety
    /// The caller is compiled with the features of `C`.
    unsafe fn narrow_run<C: Cpu>(values: &[f32; WARP]) -> [u16; WARP];
}
pub struct F16;
pub struct Bf16;
impl Half for F16 {
    const INFINITY: u16 = 0x7c00;
    const ONE: u16 = 0x3c00;
    const LEAST_NORMAL: u16 = 0x400;
    #[inline(always)]
    fn widen(a: u16) -> f32 {
        widen_f16(a)
    }
    #[inline(always)]
    fn narrow(a: f32) -> u16 {
        narrow_f16(a)
    }
    #[inline(always)]
    fn cut(a: f32) -> u16 {
        let bits = a.to_bits();
        // Below 2^-14 steps are of 2^-24.
        let subnormal = (a.min(1.0) * 16_777_216.0) as u32;
        let normal = bits.wrapping_sub(112 << 23) >> 13;
        let finite = if bits < 0x3880_0000 { subnormal } else { normal };
        (if bits >= 0x4780_0000 { 0x7c00 } else { finite }) as u16
    }
    #[inline(always)]
    fn fma(a: f32, b: f32, c: f32) -> f32 {
        // The product of two halves is exact in `f32`.
        sum_to_odd_f32(a * b, c)
    }
    #[inline(always)]
    fn is_rare(_: f32, _: f32, sum: f32) -> bool {
        // Subnormal halves lie wider apart; zero is exact.
        const LEAST_NORMAL: u32 = 0x3880_0000;
        let magnitude = sum.to_bits() & 0x7fff_ffff;
        (magnitude & 0x1fff == 0x1000) | (magnitude.wrapping_sub(1) < LEAST_NORMAL - 1)
    }
    #[inline(always)]
    unsafe fn widen_run<C: Cpu>(halves: &[u16; WARP]) -> [f32; WARP] {
        // SAFETY: the caller's.
        unsafe { C::widen_f16(halves) }
    }
    #[inline(always)]
    unsafe fn narrow_run<C: Cpu>(values: &[f32; WARP]) -> [u16; WARP] {
        // SAFETY: the caller's.
        unsafe { C::narrow_f16(values) }
    }
}
impl Half for Bf16 {
    const INFINITY: u16 = 0x7f80;
    const ONE: u16 = 0x3f80;
    const LEAST_NORMAL: u16 = 0x80;
    #[inline(always)]
    fn widen(a: u16) -> f32 {
        f32::from_bits(u32::from(a) << 16)
    }
    #[inline(always)]
    fn narrow(a: f32) -> u16 {
        narrow_bf16(a)
    }
    #[inline(always)]
    fn cut(a: f32) -> u16 {
        (a.to_bits() >> 16) as u16
    }
    #[inline(always)]
    fn fma(a: f32, b: f32, c: f32) -> f32 {
        // Exponents may leave the range of `f32`.
        to_odd(sum_to_odd(f64::from(a) * f64::from(b), f64::from(c)))
    }
    #[inline(always)]
    fn is_rare(a: f32, b: f32, sum: f32) -> bool {
        // Where a sum is as large as that, a product that is not exact does not count; unless it overflows.
        const LARGE: u32 = 0x1000_0000;
        const INFINITY: u32 = 0x7f80_0000;
        let magnitude = |x: f32| x.to_bits() & 0x7fff_ffff;
        let in_range = magnitude(sum).wrapping_sub(LARGE) < INFINITY - LARGE;
        // A sum with nothing is exact.
        let nothing = (magnitude(a).min(magnitude(b)) == 0) & (magnitude(sum) < INFINITY);
        !(in_range | nothing) | (sum.to_bits() & 0xffff == 0x8000)
    }
    #[inline(always)]
    unsafe fn widen_run<C: Cpu>(halves: &[u16; WARP]) -> [f32; WARP] {
        let mut values = [0.0; WARP];
        for lane in 0..WARP {
            values[lane] = Bf16::widen(halves[lane]);
        }
        values
    }
    #[inline(always)]
    unsafe fn narrow_run<C: Cpu>(values: &[f32; WARP]) -> [u16; WARP] {
        let mut halves = [0; WARP];
        for lane in 0..WARP {
            halves[lane] = narrow_bf16(values[lane]);
        }
        halves
    }
}

#[inline(always)]
fn is_nan<H: Half>(a: u16) -> bool {
    a & 0x7fff > H::INFINITY
}
#[inline(always)]
fn flush<H: Half>(a: u16) -> u16 {
    if a & 0x7fff < H::LEAST_NORMAL { a & 0x8000 } else { a }
}
#[inline(always)]
fn flush_if<H: Half, const FTZ: bool>(a: u16) -> u16 {
    if FTZ { flush::<H>(a) } else { a }
}
/// Into [0, 1]; NaN and everything negative become +0.
#[inline(always)]
fn saturate<H: Half>(a: u16) -> u16 {
    let clamped = if a > H::ONE { H::ONE } else { a };
    if (a & 0x8000 != 0) | is_nan::<H>(a) { 0 } else { clamped }
}
#[inline(always)]
fn finish<H: Half, const FTZ: bool, const SAT: bool>(a: u16) -> u16 {
    let a = flush_if::<H, FTZ>(a);
    if SAT { saturate::<H>(a) } else { a }
}

/// `f64` → `f32` rounded to odd, so that rounding once more is right.
#[inline(always)]
fn to_odd(x: f64) -> f32 {
    let nearest = x as f32;
    let bits = nearest.to_bits();
    let back = f64::from(nearest);
    let inexact = (back > x) | (back < x);
    // Away from zero where the nearest is too near to it.
    let step = if (back < x) == (x > 0.0) { 1 } else { u32::MAX };
    f32::from_bits(bits.wrapping_add(if inexact & (bits & 1 == 0) { step } else { 0 }))
}

/// The sum of two `f32` rounded to odd, where neither overflows.
#[inline(always)]
fn sum_to_odd_f32(a: f32, b: f32) -> f32 {
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    let bits = sum.to_bits();
    let inexact = (error > 0.0) | (error < 0.0);
    let step = if (error > 0.0) == (sum > 0.0) { 1 } else { u32::MAX };
    f32::from_bits(bits.wrapping_add(if inexact & (bits & 1 == 0) { step } else { 0 }))
}

#[cfg(test)]
pub fn add<H: Half, const FTZ: bool, const SAT: bool>(a: u16, b: u16) -> u16 {
    finish::<H, FTZ, SAT>(H::narrow(
        H::widen(flush_if::<H, FTZ>(a)) + H::widen(flush_if::<H, FTZ>(b)),
    ))
}
#[cfg(test)]
pub fn sub<H: Half, const FTZ: bool, const SAT: bool>(a: u16, b: u16) -> u16 {
    finish::<H, FTZ, SAT>(H::narrow(
        H::widen(flush_if::<H, FTZ>(a)) - H::widen(flush_if::<H, FTZ>(b)),
    ))
}
#[cfg(test)]
pub fn mul<H: Half, const FTZ: bool, const SAT: bool>(a: u16, b: u16) -> u16 {
    finish::<H, FTZ, SAT>(H::narrow(
        H::widen(flush_if::<H, FTZ>(a)) * H::widen(flush_if::<H, FTZ>(b)),
    ))
}
#[inline(always)]
pub fn fma<H: Half, const FTZ: bool, const SAT: bool>(a: u16, b: u16, c: u16) -> u16 {
    let widen = |x: u16| H::widen(flush_if::<H, FTZ>(x));
    finish::<H, FTZ, SAT>(H::narrow(H::fma(widen(a), widen(b), widen(c))))
}
/// `.relu`: a negative result becomes +0.
#[inline(always)]
pub fn relu<H: Half>(a: u16) -> u16 {
    if (a & 0x8000 != 0) & !is_nan::<H>(a) { 0 } else { a }
}
#[cfg(test)]
pub fn fma_relu<H: Half, const FTZ: bool, const SAT: bool>(a: u16, b: u16, c: u16) -> u16 {
    relu::<H>(fma::<H, FTZ, false>(a, b, c))
}
/// `fma.{rz,rm,rp}.bf16`, by the constant: the mode, and in bit 8 `.relu`.
#[inline(never)]
pub fn fma_bf16_rnd(a: u16, b: u16, c: u16, imm: u64) -> u16 {
    let result = soft::fma::<Bfloat16>(a.into(), b.into(), c.into(), Rounding::from_code(imm)) as u16;
    if imm & 1 << 8 != 0 {
        relu::<Bf16>(result)
    } else {
        result
    }
}
/// The bits with which tensor copies fill what lies out of bounds, whatever the sign. The manual names the value and
/// leaves it open; Hopper writes these.
const OUT_OF_BOUNDS: u16 = 0x7ff7;
/// `fma.oob`: +0 where a factor is out of bounds; by the constant the mode, and in bit 8 `.relu`.
#[inline(always)]
fn fma_oob<H: Half, const SAT: bool, const DIRECTED: bool>(a: u16, b: u16, c: u16, imm: u64) -> u16 {
    let result = if DIRECTED {
        fma_bf16_rnd(a, b, c, imm)
    } else {
        let result = fma::<H, false, SAT>(a, b, c);
        let result = if is_nan::<H>(result) { 0x7fff } else { result };
        if imm & 1 << 8 != 0 { relu::<H>(result) } else { result }
    };
    let outside = (a & 0x7fff == OUT_OF_BOUNDS) | (b & 0x7fff == OUT_OF_BOUNDS);
    if outside { 0 } else { result }
}
pub struct FmaOob<H, const SAT: bool, const DIRECTED: bool>(std::marker::PhantomData<H>);
impl<H: Half, const SAT: bool, const DIRECTED: bool> Op for FmaOob<H, SAT, DIRECTED> {
    type Src = (u16, u16, u16);
    type Dst = u16;
    #[inline(always)]
    fn apply<C: Cpu>((a, b, c): Self::Src, imm: u64) -> u16 {
        fma_oob::<H, SAT, DIRECTED>(a, b, c, imm)
    }
}
pub struct FmaOobX2<H, const SAT: bool, const DIRECTED: bool>(std::marker::PhantomData<H>);
impl<H: Half, const SAT: bool, const DIRECTED: bool> Op for FmaOobX2<H, SAT, DIRECTED> {
    type Src = (u32, u32, u32);
    type Dst = u32;
    #[inline(always)]
    fn apply<C: Cpu>((a, b, c): Self::Src, imm: u64) -> u32 {
        let (a, b, c) = (split(a), split(b), split(c));
        join(
            fma_oob::<H, SAT, DIRECTED>(a.0, b.0, c.0, imm),
            fma_oob::<H, SAT, DIRECTED>(a.1, b.1, c.1, imm),
        )
    }
}

#[inline(always)]
pub fn neg<H: Half, const FTZ: bool, const SAT: bool>(a: u16) -> u16 {
    if is_nan::<H>(a) {
        0x7fff
    } else {
        flush_if::<H, FTZ>(a ^ 0x8000)
    }
}
#[inline(always)]
pub fn abs<H: Half, const FTZ: bool, const SAT: bool>(a: u16) -> u16 {
    if is_nan::<H>(a) {
        0x7fff
    } else {
        flush_if::<H, FTZ>(a & 0x7fff)
    }
}

/// Flags of `min` and `max` in the constant.
pub(super) const FTZ: u64 = 1;
pub(super) const NAN: u64 = 2;
pub(super) const XORSIGN: u64 = 4;
#[inline(always)]
fn extremum<H: Half, const MAX: bool>(a: u16, b: u16, imm: u64) -> u16 {
    let least = if imm & FTZ != 0 { H::LEAST_NORMAL } else { 0 };
    let flush = |x: u16| if x & 0x7fff < least { x & 0x8000 } else { x };
    let (a, b) = (flush(a), flush(b));
    let magnitude = if imm & XORSIGN != 0 { 0x7fff } else { 0xffff };
    let (x, y) = (a & magnitude, b & magnitude);
    // As integers of sign and magnitude, zeros order by sign.
    let key = |v: u16| v as i16 ^ ((v as i16 >> 15) as u16 >> 1) as i16;
    let first = if MAX { key(x) > key(y) } else { key(x) < key(y) };
    let chosen = if (first & !is_nan::<H>(x)) | is_nan::<H>(y) {
        x
    } else {
        y
    };
    let signed = chosen | (a ^ b) & !magnitude;
    let either = is_nan::<H>(x) | is_nan::<H>(y);
    let nan = is_nan::<H>(chosen) | (either & (imm & NAN != 0));
    if nan { 0x7fff } else { signed }
}
#[inline(always)]
pub fn min<H: Half>(a: u16, b: u16, imm: u64) -> u16 {
    extremum::<H, false>(a, b, imm)
}
#[inline(always)]
pub fn max<H: Half>(a: u16, b: u16, imm: u64) -> u16 {
    extremum::<H, true>(a, b, imm)
}

/// What `ex2.approx.f32` gives, cut off.
#[inline(always)]
pub fn ex2_approx<H: Half, const FTZ: bool, const SAT: bool>(a: u16) -> u16 {
    let power = approx::ex2_approx_f32(H::widen(flush_if::<H, FTZ>(a)));
    let result = flush_if::<H, FTZ>(H::cut(power));
    if is_nan::<H>(a) { 0x7fff } else { result }
}
/// What `tanh.approx.f32` gives, cut off.
#[inline(always)]
pub fn tanh_approx<H: Half, const FTZ: bool, const SAT: bool>(a: u16) -> u16 {
    let result = H::cut(approx::tanh_approx_f32(H::widen(a & 0x7fff))) | a & 0x8000;
    if is_nan::<H>(a) { 0x7fff } else { result }
}

/// Both halves of packed operands.
#[inline(always)]
fn split(a: u32) -> (u16, u16) {
    (a as u16, (a >> 16) as u16)
}
#[inline(always)]
fn join(low: u16, high: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

/// Arithmetic whose kernels take a run of halves at a time, in stages: widen, compute, narrow. A packed operand is a run
/// of twice as many halves. The result is that of the scalar function of the same name.
pub trait Arithmetic: 'static {
    const SOURCES: usize;
    const RELU: bool = false;
    fn apply<H: Half>(a: f32, b: f32, c: f32) -> f32;
    /// The same, computed quickly; the flag says that it must be done again by `apply`.
    #[inline(always)]
    fn quick<H: Half>(a: f32, b: f32, c: f32) -> (f32, bool) {
        (Self::apply::<H>(a, b, c), false)
    }
}
macro_rules! arithmetic {
    ($($name:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        pub struct $name;
        impl Arithmetic for $name {
            const SOURCES: usize = 2;
            #[inline(always)]
            fn apply<H: Half>($a: f32, $b: f32, _: f32) -> f32 { $body }
        }
    )*};
}
arithmetic! {
    Add |a, b| a + b;
    Sub |a, b| a - b;
    Mul |a, b| a * b;
}
pub struct FusedMultiplyAdd<const RELU: bool>;
impl<const RELU: bool> Arithmetic for FusedMultiplyAdd<RELU> {
    const SOURCES: usize = 3;
    const RELU: bool = RELU;
    #[inline(always)]
    fn apply<H: Half>(a: f32, b: f32, c: f32) -> f32 {
        H::fma(a, b, c)
    }
    #[inline(always)]
    fn quick<H: Half>(a: f32, b: f32, c: f32) -> (f32, bool) {
        let sum = a * b + c;
        (sum, H::is_rare(a, b, sum))
    }
}
pub type Fma = FusedMultiplyAdd<false>;
pub type FmaRelu = FusedMultiplyAdd<true>;

/// [`Arithmetic`] on a warp: `PARTS` halves a lane.
pub struct Staged<A, H, const FTZ: bool, const SAT: bool, const PARTS: usize>(std::marker::PhantomData<(A, H)>);
impl<A: Arithmetic, H: Half, const FTZ: bool, const SAT: bool, const PARTS: usize> WarpOp
    for Staged<A, H, FTZ, SAT, PARTS>
{
    #[inline(always)]
    unsafe fn run<C: Cpu, const MASKED: bool>(regs: *mut u8, operands: &Operands, warp: usize, mask: u32) {
        let bytes = 2 * WARP * PARTS;
        #[repr(align(64))]
        struct Results([[u16; WARP]; 2]);
        let mut results = Results([[0; WARP]; 2]);
        // SAFETY: the caller's: sources and destination are slots of `bytes` a warp.
        unsafe {
            for part in 0..PARTS {
                let mut wide = [[0.0; WARP]; 3];
                for (source, wide) in wide.iter_mut().enumerate().take(A::SOURCES) {
                    let from = regs
                        .add(operands.src[source] as usize + warp * bytes)
                        .cast::<[u16; WARP]>();
                    let mut halves = *from.add(part);
                    if FTZ {
                        for half in &mut halves {
                            *half = flush::<H>(*half);
                        }
                    }
                    *wide = H::widen_run::<C>(&halves);
                }
                let mut values = [0.0; WARP];
                let mut rare = 0;
                for lane in 0..WARP {
                    let (value, is_rare) = A::quick::<H>(wide[0][lane], wide[1][lane], wide[2][lane]);
                    values[lane] = value;
                    rare |= u32::from(is_rare);
                }
                if rare != 0 {
                    for lane in 0..WARP {
                        values[lane] = A::apply::<H>(wide[0][lane], wide[1][lane], wide[2][lane]);
                    }
                }
                let mut halves = H::narrow_run::<C>(&values);
                for half in &mut halves {
                    let a = if is_nan::<H>(*half) { 0x7fff } else { *half };
                    let a = finish::<H, FTZ, SAT>(a);
                    *half = if A::RELU { relu::<H>(a) } else { a };
                }
                results.0[part] = halves;
            }
            let slot = regs.add(operands.dst[0] as usize + warp * bytes);
            if PARTS == 1 {
                u16::store::<C, MASKED>(slot, &results.0[0], mask);
            } else {
                u32::store::<C, MASKED>(slot, &*(&raw const results.0).cast::<[u32; WARP]>(), mask);
            }
        }
    }
}
/// The lane operation of an [`Arithmetic`].
pub(super) fn staged<A: Arithmetic, H: Half, const FTZ: bool, const SAT: bool, const PARTS: usize>() -> Lane {
    let widths: &'static [Width] = if PARTS == 1 { &[Width::B16; 3] } else { &[Width::B32; 3] };
    Lane::of_warps::<Staged<A, H, FTZ, SAT, PARTS>>(&widths[..1], &widths[..A::SOURCES])
}

/// An operation on one half and the same on two: `H` is the format.
macro_rules! half_ops {
    ($($one:ident $two:ident = $f:ident($($a:ident),*);)*) => {$(
        pub struct $one<H, const FTZ: bool, const SAT: bool>(std::marker::PhantomData<H>);
        impl<H: Half, const FTZ: bool, const SAT: bool> Op for $one<H, FTZ, SAT> {
            type Src = ($(half_ops!(@u16 $a),)*);
            type Dst = u16;
            #[inline(always)]
            fn apply<C: Cpu>(($($a,)*): Self::Src, _: u64) -> u16 {
                $f::<H, FTZ, SAT>($($a),*)
            }
        }
        pub struct $two<H, const FTZ: bool, const SAT: bool>(std::marker::PhantomData<H>);
        impl<H: Half, const FTZ: bool, const SAT: bool> Op for $two<H, FTZ, SAT> {
            type Src = ($(half_ops!(@u32 $a),)*);
            type Dst = u32;
            #[inline(always)]
            fn apply<C: Cpu>(($($a,)*): Self::Src, _: u64) -> u32 {
                $(let $a = split($a);)*
                join($f::<H, FTZ, SAT>($($a.0),*), $f::<H, FTZ, SAT>($($a.1),*))
            }
        }
    )*};
    (@u16 $a:ident) => { u16 };
    (@u32 $a:ident) => { u32 };
}
half_ops! {
    Neg NegX2 = neg(a);
    Abs AbsX2 = abs(a);
    Ex2 Ex2X2 = ex2_approx(a);
    Tanh TanhX2 = tanh_approx(a);
}
macro_rules! extremum_ops {
    ($($one:ident $two:ident = $f:ident;)*) => {$(
        op!($one<H: Half> = $f(a: u16, b: u16; imm) -> u16);
        pub struct $two<H>(std::marker::PhantomData<H>);
        impl<H: Half> Op for $two<H> {
            type Src = (u32, u32);
            type Dst = u32;
            #[inline(always)]
            fn apply<C: Cpu>((a, b): Self::Src, imm: u64) -> u32 {
                let (a, b) = (split(a), split(b));
                join($f::<H>(a.0, b.0, imm), $f::<H>(a.1, b.1, imm))
            }
        }
    )*};
}
extremum_ops! {
    Min MinX2 = min;
    Max MaxX2 = max;
}
op!(FmaBf16Rnd = fma_bf16_rnd(a: u16, b: u16, c: u16; imm) -> u16);
#[inline(always)]
fn fma_bf16x2_rnd(a: u32, b: u32, c: u32, imm: u64) -> u32 {
    let (a, b, c) = (split(a), split(b), split(c));
    join(fma_bf16_rnd(a.0, b.0, c.0, imm), fma_bf16_rnd(a.1, b.1, c.1, imm))
}
op!(FmaBf16x2Rnd = fma_bf16x2_rnd(a: u32, b: u32, c: u32; imm) -> u32);

// ---- halves with f32 -----------------------------------------------------------------------------------------------

/// `add.f32.f16 d, a, c` and `sub`: the half is widened first; mode and flags by the constant.
#[inline(always)]
pub fn mixed_add<H: Half>(a: u16, c: f32, imm: u64) -> f32 {
    add_f32_rnd(H::widen(a), c, imm)
}
#[inline(always)]
pub fn mixed_fma<H: Half>(a: u16, b: u16, c: f32, imm: u64) -> f32 {
    fma_f32_rnd(H::widen(a), H::widen(b), c, imm)
}
op!(MixedAdd<H: Half> = mixed_add(a: u16, c: f32; imm) -> f32);
op!(MixedFma<H: Half> = mixed_fma(a: u16, b: u16, c: f32; imm) -> f32);
