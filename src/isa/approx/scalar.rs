//! What the approximate instructions compute, each with its kernel.
//!
//! rcp, roots, ex2, lg2, sin, cos and what divides by rcp have the bits of the hardware's function unit ([`sfu`]), wrapped
//! in the scaling that NVIDIA's assembler puts around it where an instruction keeps subnormals. The 64-bit forms
//! `rcp.approx.ftz.f64` and `rsqrt.approx(.ftz).f64` and `ex2` and `tanh` on halves come from the same tables.

use std::marker::PhantomData;

use crate::isa::float::{flush_if, quiet};
use crate::isa::lane::Lane;
use crate::isa::lanes::{Operands, WARP, Width};
use crate::isa::number::canonical;
use crate::isa::sfu;
use crate::isa::simd::{Cpu, Sources, Value, WarpOp, op};

const LEAST_NORMAL: f32 = f32::MIN_POSITIVE;
/// 2^126: what is above has a subnormal reciprocal.
const LARGE: f32 = 8.507_059e37;
const TWO_24: f32 = 16_777_216.0;

/// An instruction that one of the unit's functions computes, and what stands around it.
pub trait Wrapped: 'static {
    type Src: Sources;
    type Function: sfu::Function;
    /// What goes into the unit.
    fn operand(src: Self::Src) -> f32;
    /// What becomes of its result.
    fn result(src: Self::Src, value: f32) -> f32;
}

/// A [`Wrapped`] instruction on a warp.
pub struct OnUnit<W>(PhantomData<W>);
impl<W: Wrapped> WarpOp for OnUnit<W> {
    #[inline(always)]
    unsafe fn run<C: Cpu, const MASKED: bool>(regs: *mut u8, operands: &Operands, warp: usize, mask: u32) {
        let mut arguments = [0; WARP];
        // SAFETY: the caller's: sources and destination are slots of the widths that `on_unit` says.
        unsafe {
            for (lane, argument) in arguments.iter_mut().enumerate() {
                *argument = W::operand(W::Src::get(regs, operands, warp, lane)).to_bits();
            }
            let mut values = sfu::run::<C, W::Function>(&arguments);
            for (lane, value) in values.iter_mut().enumerate() {
                *value = W::result(W::Src::get(regs, operands, warp, lane), f32::from_bits(*value)).to_bits();
            }
            f32::store::<C, MASKED>(
                regs.add(operands.dst[0] as usize + warp * Width::B32.warp_bytes() as usize),
                &values,
                mask,
            );
        }
    }
}
pub fn on_unit<W: Wrapped>() -> Lane {
    Lane::of_warps::<OnUnit<W>>(&[Width::B32], W::Src::WIDTHS)
}
/// `name[FTZ] = function(sources): operand, |value| result`
macro_rules! wrapped {
    ($($(#[$doc:meta])* $name:ident[$ftz:ident] = $function:ty, ($($a:ident),+): $operand:expr, |$value:ident| $result:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name<const $ftz: bool>;
        impl<const $ftz: bool> Wrapped for $name<$ftz> {
            type Src = ($(wrapped!(@f32 $a),)+);
            type Function = $function;
            #[inline(always)]
            #[allow(unused_variables, reason = "of a quotient, the divisor alone")]
            fn operand(($($a,)+): Self::Src) -> f32 {
                $operand
            }
            #[inline(always)]
            #[allow(unused_variables, reason = "not every instruction looks at its operands again")]
            fn result(($($a,)+): Self::Src, $value: f32) -> f32 {
                $result
            }
        }
    )*};
    (@f32 $a:ident) => { f32 };
}

/// `a` where the condition holds, else one: a factor.
#[inline(always)]
fn factor(condition: bool, a: f32) -> f32 {
    if condition { a } else { 1.0 }
}
#[inline(always)]
fn is_small(a: f32) -> bool {
    a.abs() < LEAST_NORMAL
}
/// What scales a divisor into the range of its reciprocal.
#[inline(always)]
fn scale(a: f32, small: bool) -> f32 {
    factor(a.abs() > LARGE, 0.25) * factor(small & is_small(a), TWO_24)
}

wrapped! {
    RcpApproxF32[FTZ] = sfu::Rcp, (a):
        if FTZ { a } else { a * scale(a, true) },
        |value| if FTZ { value } else { canonical(scale(a, true) * value) };
    /// `a · (1/b)`; with a divisor above 2^126, zero (or NaN for an infinite dividend), as the manual says.
    DivApproxF32[FTZ] = sfu::Rcp, (a, b):
        b * factor(!FTZ & is_small(b), TWO_24),
        |value| canonical(flush_if::<FTZ>(flush_if::<FTZ>(a) * factor(!FTZ & is_small(b), TWO_24) * value));
    DivFullF32[FTZ] = sfu::Rcp, (a, b):
        b * scale(b, !FTZ),
        |value| canonical(flush_if::<FTZ>(flush_if::<FTZ>(flush_if::<FTZ>(a) * scale(b, !FTZ)) * value));
    RsqrtApproxF32[FTZ] = sfu::Rsqrt, (a):
        a * factor(!FTZ & is_small(a), TWO_24),
        |value| canonical(value * factor(!FTZ & is_small(a), 4096.0));
    SqrtApproxF32[FTZ] = sfu::Sqrt, (a):
        a * factor(!FTZ & is_small(a), TWO_24),
        |value| canonical(value * factor(!FTZ & is_small(a), 1.0 / 4096.0));
    /// Below 2^-126 by way of the root: half the exponent, squared.
    Ex2ApproxF32[FTZ] = sfu::Ex2, (a):
        a * factor(!FTZ & (a < -126.0), 0.5),
        |value| if FTZ { value } else { canonical(value * factor(a < -126.0, value)) };
    Lg2ApproxF32[FTZ] = sfu::Lg2, (a):
        a * factor(!FTZ & is_small(a), TWO_24),
        |value| canonical(value - if !FTZ & is_small(a) { 24.0 } else { 0.0 });
    /// The same code with and without `.ftz`.
    SinApproxF32[FTZ] = sfu::Circular<false>, (a): a, |value| value;
    CosApproxF32[FTZ] = sfu::Circular<true>, (a): a, |value| value;
}

/// A wrapped instruction on operands that are nobody's registers.
#[inline(always)]
pub fn of<W: Wrapped>(operands: W::Src) -> f32
where
    W::Src: Copy,
{
    let unit = sfu::one::<W::Function>(W::operand(operands).to_bits());
    W::result(operands, f32::from_bits(unit))
}

#[inline(always)]
pub(in crate::isa) fn ex2_approx_f32(a: f32) -> f32 {
    of::<Ex2ApproxF32<false>>((a,))
}

#[inline(always)]
pub fn tanh_approx_f32(a: f32) -> f32 {
    f32::from_bits(sfu::tanh(a.to_bits()))
}
op!(TanhApproxF32 = tanh_approx_f32(a: f32) -> f32);

/// `.approx.ftz.f64`: of the operand only the high word counts, and the result has only a high word. Its 20 bits of
/// significand go through the unit as those of an `f32` of exponent 0 (or 1, where roots want an odd one), and what the
/// unit adds to the exponent goes to the double's.
#[inline(always)]
fn through_unit<F: sfu::Function>(a: f64, keep: u32, scaled: impl Fn(i32) -> i32) -> f64 {
    let high = (a.to_bits() >> 32) as u32;
    let exponent = (high >> 20 & 0x7ff) as i32 - 1023;
    let low = (exponent as u32 & keep) as i32;
    let unit = sfu::one::<F>((((low + 127) as u32) << 23) | (high & 0xf_ffff) << 3);
    let field = scaled(exponent - low) + (unit >> 23) as i32 - 127 + 1023;
    let sign = u64::from(high) << 32 & SIGN_F64;
    if field > 0 {
        f64::from_bits(sign | (field as u64) << 52 | u64::from(unit >> 3 & 0xf_ffff) << 32)
    } else {
        f64::from_bits(sign)
    }
}
const SIGN_F64: u64 = 1 << 63;
const NAN_F64: f64 = f64::from_bits(0x7fff_ffff_0000_0000);
/// A NaN whose payload is in its low word alone is an infinity.
#[inline(always)]
fn high_word(a: f64) -> f64 {
    f64::from_bits(a.to_bits() & !0xffff_ffff)
}
#[inline(always)]
pub fn rcp_approx_f64(a: f64) -> f64 {
    let a = high_word(a);
    let magnitude = a.abs();
    if a.is_nan() {
        NAN_F64
    } else if magnitude < f64::MIN_POSITIVE {
        f64::INFINITY.copysign(a)
    } else if magnitude == f64::INFINITY {
        0f64.copysign(a)
    } else {
        through_unit::<sfu::Rcp>(a, 0, |exponent| -exponent)
    }
}
op!(RcpApproxF64 = rcp_approx_f64(a: f64) -> f64);
#[inline(always)]
pub fn rsqrt_approx_ftz_f64(a: f64) -> f64 {
    let a = high_word(a);
    if a.abs() < f64::MIN_POSITIVE {
        f64::INFINITY.copysign(a)
    } else if a.is_nan() || a < 0.0 {
        NAN_F64
    } else if a == f64::INFINITY {
        0.0
    } else {
        through_unit::<sfu::Rsqrt>(a, 1, |exponent| -exponent / 2)
    }
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
        quiet(a)
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
