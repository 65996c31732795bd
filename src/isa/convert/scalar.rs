//! What conversions compute: one exact function for every pair of types, and quick ones for the pairs that programs use
//! all the time.

use crate::isa::float::{flush, quiet, saturate};
use crate::isa::number::{canonical, narrow_bf16, narrow_f16, widen_f16};
use crate::isa::simd::{Cpu, Op, Value, op};
use crate::isa::soft::{self, Bfloat16, Binary16, Binary32, Binary64, Number, Tf32};
use crate::isa::types::{Rounding, subtypes};

// ---- every pair ----------------------------------------------------------------------------------------------------

subtypes! {
    /// The types that `cvt` converts between one by one, in the order of the kernels' constants.
    Kind { U8, S8, U16, S16, U32, S32, U64, S64, F16, Bf16, Tf32, F32, F64 }
}

/// The formats among them.
#[derive(Clone, Copy, PartialEq, Eq)]
#[rustfmt::skip]
pub(super) enum Float { F16, Bf16, Tf32, F32, F64 }

impl Kind {
    fn from_code(code: u64) -> Kind {
        Kind::ALL[(code & 15) as usize % Kind::ALL.len()]
    }
    pub(super) fn bits(self) -> u32 {
        match self {
            Kind::U8 | Kind::S8 => 8,
            Kind::U16 | Kind::S16 | Kind::F16 | Kind::Bf16 => 16,
            Kind::U32 | Kind::S32 | Kind::F32 | Kind::Tf32 => 32,
            Kind::U64 | Kind::S64 | Kind::F64 => 64,
        }
    }
    /// Which format it is; integers are none.
    pub(super) fn float(self) -> Option<Float> {
        match self {
            Kind::U8 | Kind::S8 | Kind::U16 | Kind::S16 | Kind::U32 | Kind::S32 | Kind::U64 | Kind::S64 => None,
            Kind::F16 => Some(Float::F16),
            Kind::Bf16 => Some(Float::Bf16),
            Kind::Tf32 => Some(Float::Tf32),
            Kind::F32 => Some(Float::F32),
            Kind::F64 => Some(Float::F64),
        }
    }
    fn is_signed(self) -> bool {
        match self {
            Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 => false,
            Kind::S8 | Kind::S16 | Kind::S32 | Kind::S64 => true,
            Kind::F16 | Kind::Bf16 | Kind::Tf32 | Kind::F32 | Kind::F64 => true,
        }
    }
    /// Least and greatest value of an integer type.
    fn range(self) -> (i128, i128) {
        let bits = self.bits();
        if self.is_signed() {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        }
    }
}

pub(super) const FTZ: u64 = 1 << 16;
pub(super) const SAT: u64 = 1 << 17;
pub(super) const RELU: u64 = 1 << 18;
pub(super) const SATFINITE: u64 = 1 << 19;
/// The rounding modifier is one to integral values.
pub(super) const INTEGRAL: u64 = 1 << 20;

/// A conversion as a kernel's constant.
pub(super) fn code(to: Kind, from: Kind, mode: Rounding, flags: u64) -> u64 {
    to as u64 | (from as u64) << 4 | mode.code() << 8 | flags
}

fn unpack(format: Float, bits: u64) -> Number {
    match format {
        Float::F16 => soft::unpack::<Binary16>(bits),
        Float::Bf16 => soft::unpack::<Bfloat16>(bits),
        Float::Tf32 => soft::unpack::<Tf32>(bits >> 13),
        Float::F32 => soft::unpack::<Binary32>(bits),
        Float::F64 => soft::unpack::<Binary64>(bits),
    }
}
fn round(format: Float, negative: bool, significand: u128, exponent: i32, mode: Rounding) -> u64 {
    match format {
        Float::F16 => soft::round::<Binary16>(negative, significand, exponent, mode),
        Float::Bf16 => soft::round::<Bfloat16>(negative, significand, exponent, mode),
        Float::Tf32 => soft::round::<Tf32>(negative, significand, exponent, mode) << 13,
        Float::F32 => soft::round::<Binary32>(negative, significand, exponent, mode),
        Float::F64 => soft::round::<Binary64>(negative, significand, exponent, mode),
    }
}
/// `(sign, infinity, one)` of a format.
fn marks(format: Float) -> (u64, u64, u64) {
    match format {
        Float::F16 => (0x8000, 0x7c00, 0x3c00),
        Float::Bf16 => (0x8000, 0x7f80, 0x3f80),
        Float::Tf32 | Float::F32 => (0x8000_0000, 0x7f80_0000, 0x3f80_0000),
        Float::F64 => (1 << 63, 0x7ff << 52, 0x3ff << 52),
    }
}

/// Converts the low bits of `bits` as `code` says; integer results narrower than the register are extended.
#[inline(never)]
pub fn convert(bits: u64, code: u64) -> u64 {
    let (to, from, mode) = (
        Kind::from_code(code),
        Kind::from_code(code >> 4),
        Rounding::from_code(code >> 8),
    );
    match (from.float(), to.float()) {
        (None, None) => {
            let value = integer(from, bits);
            let (low, high) = to.range();
            extend(to, if code & SAT != 0 { value.clamp(low, high) } else { value })
        }
        (None, Some(to)) => {
            let value = integer(from, bits);
            finish(to, round(to, value < 0, value.unsigned_abs(), 0, mode), code)
        }
        (Some(from), None) => {
            let (low, high) = to.range();
            match unpack(from, bits) {
                // NaN becomes zero from the small formats to the small integers, otherwise the lone top bit.
                Number::Nan if from != Float::F64 && to.bits() <= 32 => 0,
                Number::Nan => extend(to, 1 << (to.bits() - 1)),
                Number::Infinity { negative } => extend(to, if negative { low } else { high }),
                Number::Finite {
                    negative,
                    significand,
                    exponent,
                } => {
                    let subnormal = from == Float::F32 && bits & 0x7f80_0000 == 0;
                    let significand = if subnormal && code & FTZ != 0 { 0 } else { significand };
                    let magnitude = if exponent > 63 && significand != 0 {
                        1 << 100
                    } else {
                        soft::integral(negative, significand, exponent, mode) as i128
                    };
                    extend(to, (if negative { -magnitude } else { magnitude }).clamp(low, high))
                }
            }
        }
        (Some(from), Some(to)) => float_to_float(to, from, bits, mode, code),
    }
}

fn float_to_float(to: Float, from: Float, bits: u64, mode: Rounding, code: u64) -> u64 {
    let (sign, infinity, _) = marks(to);
    let result = match unpack(from, bits) {
        Number::Nan => nan(to, from, bits, code),
        Number::Infinity { negative } => infinity | if negative { sign } else { 0 },
        Number::Finite {
            negative,
            significand,
            exponent,
        } => {
            // Operands of `f32` that are subnormal are flushed, except where the result is too narrow to show it.
            let flushed = code & FTZ != 0 && from == Float::F32 && bits & 0x7f80_0000 == 0 && to != Float::F16;
            let significand = if flushed { 0 } else { significand };
            if code & INTEGRAL != 0 && exponent < 0 {
                let value = soft::integral(negative, significand, exponent, mode);
                round(to, negative, value, 0, Rounding::Rz)
            } else {
                round(to, negative, u128::from(significand), exponent, mode)
            }
        }
    };
    finish(to, result, code)
}

/// What becomes of a NaN operand.
fn nan(to: Float, from: Float, bits: u64, code: u64) -> u64 {
    match to {
        // What is narrowed from `f64` keeps its sign and the top of its payload, as on an H100.
        Float::F16 if from == Float::F64 => (bits >> 63) << 15 | 0x7e00 | (bits >> 42) & 0x1ff,
        Float::Bf16 if from == Float::F64 => (bits >> 63) << 15 | 0x7fc0 | (bits >> 45) & 0x3f,
        Float::F16 | Float::Bf16 => 0x7fff,
        // `.rna` is done with integers, without a look at what is NaN; `.satfinite` takes what has no finite exponent down
        // by one (seen on an H100).
        Float::Tf32 if Rounding::from_code(code >> 8) == Rounding::Rna => {
            let cut = bits & 0xffff_e000;
            if code & SATFINITE != 0 { cut - 0x2000 } else { cut }
        }
        Float::Tf32 => 0x7fff_e000,
        Float::F32 => match from {
            // A shift by sixteen bits; a multiplication where it flushes.
            Float::Bf16 if code & FTZ != 0 => 0x7fff_ffff,
            Float::Bf16 => bits << 16 & 0xffff_ffff,
            Float::F64 => (bits >> 63) << 31 | 0x7fc0_0000 | (bits >> 29) & 0x3f_ffff,
            Float::F16 | Float::Tf32 | Float::F32 => 0x7fff_ffff,
        },
        Float::F64 => match from {
            Float::F32 if code & FTZ != 0 => 0x7fff_ffff_e000_0000,
            Float::F32 | Float::Tf32 => (bits >> 31 & 1) << 63 | 0x7ff8 << 48 | (bits & 0x7f_ffff) << 29,
            Float::F16 => (bits >> 15 & 1) << 63 | 0x7ff8 << 48 | (bits & 0x3ff) << 42,
            Float::Bf16 => (bits >> 15 & 1) << 63 | 0x7ff8 << 48 | (bits & 0x7f) << 45,
            Float::F64 => bits | 1 << 51,
        },
    }
}

/// `.ftz`, `.sat`, `.relu`, `.satfinite` on a floating-point result.
fn finish(to: Float, bits: u64, code: u64) -> u64 {
    let (sign, infinity, one) = marks(to);
    let magnitude = bits & !sign;
    let is_nan = magnitude > infinity;
    let negative = bits & sign != 0;
    if code & FTZ != 0 && to == Float::F32 && magnitude < 0x80_0000 {
        return if code & SAT != 0 { 0 } else { bits & sign };
    }
    if code & SAT != 0 {
        return if is_nan || negative { 0 } else { magnitude.min(one) };
    }
    if code & RELU != 0 && negative && !is_nan {
        return 0;
    }
    if code & SATFINITE != 0 && magnitude == infinity {
        let greatest = if to == Float::Tf32 { 0x7f7f_e000 } else { infinity - 1 };
        return bits & sign | greatest;
    }
    bits
}

/// The value of an integer type in the low bits.
fn integer(kind: Kind, bits: u64) -> i128 {
    let spare = 64 - kind.bits();
    if kind.is_signed() {
        i128::from((bits << spare) as i64 >> spare)
    } else {
        i128::from(bits << spare >> spare)
    }
}
/// Truncates to the type's width and extends to 64 bits as the type says.
fn extend(kind: Kind, value: i128) -> u64 {
    integer(kind, value as u64) as u64
}

/// [`convert`] between slots.
pub struct Convert<D, S>(std::marker::PhantomData<(D, S)>);
/// Bits that a conversion reads or writes.
pub trait Slot: Value {
    fn widen(self) -> u64;
    fn narrow(bits: u64) -> Self;
}
macro_rules! slots {
    ($($ty:ident)*) => {$(
        impl Slot for $ty {
            #[inline(always)]
            fn widen(self) -> u64 { self.into() }
            #[inline(always)]
            fn narrow(bits: u64) -> $ty { bits as $ty }
        }
    )*};
}
slots! { u16 u32 u64 }
impl<D: Slot, S: Slot> Op for Convert<D, S> {
    type Src = (S,);
    type Dst = D;
    #[inline(always)]
    fn apply<C: Cpu>((a,): (S,), imm: u64) -> D {
        D::narrow(convert(a.widen(), imm))
    }
}

// ---- quick ones ----------------------------------------------------------------------------------------------------

macro_rules! casts {
    ($($name:ident $f:ident $from:ty => $to:ty, |$a:ident| $body:expr;)*) => {$(
        #[inline(always)]
        pub fn $f($a: $from) -> $to { $body }
        op!($name = $f(a: $from) -> $to);
    )*};
}
casts! {
    U16ToU32 u16_to_u32 u16 => u32, |a| a.into();
    U16ToU64 u16_to_u64 u16 => u64, |a| a.into();
    S16ToS32 s16_to_s32 i16 => i32, |a| a.into();
    S16ToS64 s16_to_s64 i16 => i64, |a| a.into();
    U32ToU64 u32_to_u64 u32 => u64, |a| a.into();
    S32ToS64 s32_to_s64 i32 => i64, |a| a.into();
    Low32To16 low32_to_16 u32 => u16, |a| a as u16;
    Low64To16 low64_to_16 u64 => u16, |a| a as u16;
    Low64To32 low64_to_32 u64 => u32, |a| a as u32;
    Same16 same16 u16 => u16, |a| a;
    Same32 same32 u32 => u32, |a| a;
    Same64 same64 u64 => u64, |a| a;
    U8To16 u8_to_16 u16 => u16, |a| a & 0xff;
    S8To16 s8_to_16 u16 => i16, |a| i16::from(a as i8);
    U8To32 u8_to_32 u16 => u32, |a| u32::from(a & 0xff);
    S8To32 s8_to_32 u16 => i32, |a| i32::from(a as i8);
    U8To64 u8_to_64 u16 => u64, |a| u64::from(a & 0xff);
    S8To64 s8_to_64 u16 => i64, |a| i64::from(a as i8);
    Low32ToU8 low32_to_u8 u32 => u16, |a| a as u16 & 0xff;
    Low64ToU8 low64_to_u8 u64 => u16, |a| a as u16 & 0xff;
    Low32ToS8 low32_to_s8 u32 => i16, |a| i16::from(a as i8);
    Low64ToS8 low64_to_s8 u64 => i16, |a| i16::from(a as i8);

    S32ToF32 s32_to_f32 i32 => f32, |a| a as f32;
    U32ToF32 u32_to_f32 u32 => f32, |a| a as f32;
    S64ToF32 s64_to_f32 i64 => f32, |a| a as f32;
    U64ToF32 u64_to_f32 u64 => f32, |a| a as f32;
    S16ToF32 s16_to_f32 i16 => f32, |a| a.into();
    U16ToF32 u16_to_f32 u16 => f32, |a| a.into();
    U8ToF32 u8_to_f32 u16 => f32, |a| f32::from(a as u8);
    S8ToF32 s8_to_f32 u16 => f32, |a| f32::from(a as i8);
    S32ToF64 s32_to_f64 i32 => f64, |a| a.into();
    U32ToF64 u32_to_f64 u32 => f64, |a| a.into();
    S64ToF64 s64_to_f64 i64 => f64, |a| a as f64;
    U64ToF64 u64_to_f64 u64 => f64, |a| a as f64;
    S16ToF64 s16_to_f64 i16 => f64, |a| a.into();
    U16ToF64 u16_to_f64 u16 => f64, |a| a.into();

    F16ToF32 f16_to_f32 u16 => f32, |a| widen_f16(a);
    F16ToF32Sat f16_to_f32_sat u16 => f32, |a| saturate(widen_f16(a));
    Bf16ToF32 bf16_to_f32 u16 => f32, |a| f32::from_bits(u32::from(a) << 16);
    F32ToF16 f32_to_f16 f32 => u16, |a| narrow_f16(a);
    F32ToBf16 f32_to_bf16 f32 => u16, |a| narrow_bf16(a);
    F64ToF32 f64_to_f32 f64 => f32, |a| {
        let bits = a.to_bits();
        let nan = (bits >> 63) << 31 | 0x7fc0_0000 | (bits >> 29) & 0x3f_ffff;
        if a.is_nan() { f32::from_bits(nan as u32) } else { a as f32 }
    };
    F32ToF64 f32_to_f64 f32 => f64, |a| {
        let bits = u64::from(a.to_bits());
        let nan = (bits >> 31) << 63 | 0x7ff8 << 48 | (bits & 0x7f_ffff) << 29;
        if a.is_nan() { f64::from_bits(nan) } else { a.into() }
    };
    F32ToF64Ftz f32_to_f64_ftz f32 => f64, |a| f64::from(canonical(flush(a)));
    SatF32 sat_f32 f32 => f32, |a| saturate(a);
    SatFtzF32 sat_ftz_f32 f32 => f32, |a| saturate(flush(a));
    CopyFtzF32 copy_ftz_f32 f32 => f32, |a| canonical(flush(a));
}

/// `d = {a, b}`: `a` goes to the upper half.
#[inline(always)]
pub fn f16x2_from_f32(a: f32, b: f32) -> u32 {
    u32::from(narrow_f16(a)) << 16 | u32::from(narrow_f16(b))
}
op!(F16x2FromF32 = f16x2_from_f32(a: f32, b: f32) -> u32);
#[inline(always)]
pub fn bf16x2_from_f32(a: f32, b: f32) -> u32 {
    u32::from(narrow_bf16(a)) << 16 | u32::from(narrow_bf16(b))
}
op!(Bf16x2FromF32 = bf16x2_from_f32(a: f32, b: f32) -> u32);
/// The same with other modes and flags, by the constant.
#[inline(always)]
pub fn halves_from_f32(a: f32, b: f32, code: u64) -> u32 {
    (convert(a.to_bits().into(), code) as u32) << 16 | convert(b.to_bits().into(), code) as u32
}
op!(HalvesFromF32 = halves_from_f32(a: f32, b: f32; imm) -> u32);

/// Towards zero: clamps; NaN as the manual has it. Rust's casts do the same, one lane at a time: LLVM does not vectorise
/// them. The bounds are powers of two, exact in both formats.
macro_rules! to_integers {
    ($($name:ident $f:ident $from:ident => $to:ident by $wide:ident, $low:expr, $high:expr, nan $nan:expr;)*) => {$(
        #[inline(always)]
        pub fn $f(a: $from) -> $to {
            let inside = (a > $low - 1.0) & (a < $high);
            // SAFETY: a finite number that is in range after truncation.
            let value = unsafe { (if inside { a } else { 0.0 }).to_int_unchecked::<$wide>() } as $to;
            let value = if a >= $high { $to::MAX } else { value };
            let value = if a <= $low { $to::MIN } else { value };
            if a.is_nan() { $nan } else { value }
        }
        op!($name = $f(a: $from) -> $to);
    )*};
}
to_integers! {
    F32ToS32 f32_to_s32 f32 => i32 by i32, -2_147_483_648.0, 2_147_483_648.0, nan 0;
    F32ToU32 f32_to_u32 f32 => u32 by u32, 0.0, 4_294_967_296.0, nan 0;
    F32ToS64 f32_to_s64 f32 => i64 by i64, -9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0, nan i64::MIN;
    F32ToU64 f32_to_u64 f32 => u64 by u64, 0.0, 18_446_744_073_709_551_616.0, nan 1 << 63;
    F64ToS32 f64_to_s32 f64 => i32 by i32, -2_147_483_648.0, 2_147_483_648.0, nan i32::MIN;
    F64ToU32 f64_to_u32 f64 => u32 by u32, 0.0, 4_294_967_296.0, nan 1 << 31;
    F64ToS64 f64_to_s64 f64 => i64 by i64, -9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0, nan i64::MIN;
    F64ToU64 f64_to_u64 f64 => u64 by u64, 0.0, 18_446_744_073_709_551_616.0, nan 1 << 63;
}

/// Rounding `f32` and `f64` to integral values by adding a number whose last place is one, so that no level needs a
/// library call.
#[inline(always)]
pub fn round_integral_f32(a: f32, mode: u64) -> f32 {
    const STEP: f32 = 8_388_608.0;
    let magnitude = a.abs();
    let nearest = ((magnitude + STEP) - STEP).copysign(a);
    let rounded = match Rounding::from_code(mode) {
        Rounding::Rz => {
            nearest
                - if nearest.abs() > magnitude {
                    1f32.copysign(a)
                } else {
                    0.0
                }
        }
        Rounding::Rm => nearest - if nearest > a { 1.0 } else { 0.0 },
        Rounding::Rp => nearest + if nearest < a { 1.0 } else { 0.0 },
        Rounding::Rn | Rounding::Rna | Rounding::Rs => nearest,
    };
    // Large numbers are integral already; the comparison is false for NaN, too. Zeros keep their sign.
    if magnitude < STEP {
        rounded.abs().copysign(a)
    } else {
        canonical(a)
    }
}
#[inline(always)]
pub fn round_integral_f64(a: f64, mode: u64) -> f64 {
    const STEP: f64 = 4_503_599_627_370_496.0;
    let magnitude = a.abs();
    let nearest = ((magnitude + STEP) - STEP).copysign(a);
    let rounded = match Rounding::from_code(mode) {
        Rounding::Rz => {
            nearest
                - if nearest.abs() > magnitude {
                    1f64.copysign(a)
                } else {
                    0.0
                }
        }
        Rounding::Rm => nearest - if nearest > a { 1.0 } else { 0.0 },
        Rounding::Rp => nearest + if nearest < a { 1.0 } else { 0.0 },
        Rounding::Rn | Rounding::Rna | Rounding::Rs => nearest,
    };
    let large = if a.is_nan() { quiet(a) } else { a };
    if magnitude < STEP {
        rounded.abs().copysign(a)
    } else {
        large
    }
}
op!(RoundF32 = round_integral_f32(a: f32; imm) -> f32);
op!(RoundF64 = round_integral_f64(a: f64; imm) -> f64);

macro_rules! rounded_to_integers {
    ($($name:ident $f:ident = $to:ident($round:ident($from:ident)) -> $d:ident;)*) => {$(
        #[inline(always)]
        pub fn $f(a: $from, mode: u64) -> $d {
            $to($round(a, mode))
        }
        op!($name = $f(a: $from; imm) -> $d);
    )*};
}
rounded_to_integers! {
    F32ToS32Rnd f32_to_s32_rnd = f32_to_s32(round_integral_f32(f32)) -> i32;
    F32ToU32Rnd f32_to_u32_rnd = f32_to_u32(round_integral_f32(f32)) -> u32;
    F64ToS32Rnd f64_to_s32_rnd = f64_to_s32(round_integral_f64(f64)) -> i32;
    F64ToS64Rnd f64_to_s64_rnd = f64_to_s64(round_integral_f64(f64)) -> i64;
}

// ---- cvt.pack ------------------------------------------------------------------------------------------------------

/// Saturates `a` and `b` to `bits` bits and packs them over the low bits of `c`; the constant holds the width and, in
/// bit 8, whether the elements are signed.
#[inline(always)]
pub fn cvt_pack(a: i32, b: i32, c: u32, imm: u64) -> u32 {
    let bits = (imm & 0xff) as u32;
    let (low, high) = if imm >> 8 & 1 != 0 {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1i64 << bits) as i32 - 1)
    };
    let ones = (1u32 << bits) - 1;
    let (a, b) = (a.clamp(low, high) as u32 & ones, b.clamp(low, high) as u32 & ones);
    let rest = if bits >= 16 { 0 } else { c << (2 * bits) };
    rest | a << bits | b
}
op!(CvtPackC = cvt_pack(a: i32, b: i32, c: u32; imm) -> u32);
#[inline(always)]
pub fn cvt_pack_two(a: i32, b: i32, imm: u64) -> u32 {
    cvt_pack(a, b, 0, imm)
}
op!(CvtPack = cvt_pack_two(a: i32, b: i32; imm) -> u32);
