//! What these conversions compute, each with its kernel.
//!
//! To nearest even and from `f32` or halves there is a quick way without branches; the rest goes by exact numbers
//! ([`crate::isa::soft`]). What the manual leaves open: the unsigned formats take the magnitude of negative numbers, as
//! the host code of `cuda_fp8.hpp` does for `ue8m0`; what does not fit `ue5m3` or `ue8m0` is NaN without `.satfinite`.

use crate::isa::number::{narrow_bf16, narrow_f16, widen_f16};
use crate::isa::simd::{Cpu, Op, Value};
use crate::isa::soft::{self, Bfloat16, Binary16, Binary32, Format, Number};
use crate::isa::types::Rounding;

/// The formats, as stored in a kernel's constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Narrow {
    E4m3,
    E5m2,
    E2m3,
    E3m2,
    E2m1,
    Ue5m3,
    /// A power of two; there is no zero.
    Ue8m0,
    /// Two's complement, in units of 2^-6.
    S2f6,
}
use Narrow::*;

/// How bits make up a number of a format. `ue8m0` and `s2f6` go their own ways.
pub(crate) struct Layout {
    pub fraction: u32,
    pub bias: i32,
    /// The greatest finite number, without sign.
    pub most: u32,
    /// What NaN becomes: the format's own, or the greatest number where it has none.
    pub nan: u32,
    /// The sign bit, or none.
    pub sign: u32,
}

impl Narrow {
    #[inline(always)]
    fn from_code(code: u64) -> Narrow {
        const ALL: [Narrow; 8] = [E4m3, E5m2, E2m3, E3m2, E2m1, Ue5m3, Ue8m0, S2f6];
        ALL[(code & 7) as usize]
    }
    #[inline(always)]
    pub(crate) fn is_signed(self) -> bool {
        self.layout().sign != 0
    }
    /// Its numbers have a fraction and an exponent, as [`Layout`] says.
    pub(crate) fn is_floating(self) -> bool {
        match self {
            E4m3 | E5m2 | E2m3 | E3m2 | E2m1 | Ue5m3 => true,
            Ue8m0 | S2f6 => false,
        }
    }
    #[inline(always)]
    pub(crate) fn layout(self) -> Layout {
        let (fraction, bias, most, nan, sign) = match self {
            E4m3 => (3, 7, 0x7e, 0x7f, 0x80),
            E5m2 => (2, 15, 0x7b, 0x7f, 0x80),
            E2m3 => (3, 1, 0x1f, 0x1f, 0x20),
            E3m2 => (2, 3, 0x1f, 0x1f, 0x20),
            E2m1 => (1, 1, 7, 7, 8),
            Ue5m3 => (3, 15, 0xfe, 0xff, 0),
            Ue8m0 => (0, 127, 0xfe, 0xff, 0),
            S2f6 => (6, 0, 0x7f, 0x7f, 0x80),
        };
        Layout {
            fraction,
            bias,
            most,
            nan,
            sign,
        }
    }
    /// The number that such bits are, but for `s2f6` and `ue8m0`.
    pub(in crate::isa) fn number(self, bits: u32) -> f32 {
        widen(self, bits)
    }
    /// The number that the low bits are.
    pub(crate) fn exact(self, bits: u32) -> Number {
        unpack(self, bits)
    }
    /// The bits of a number rounded in a mode that is not stochastic, the greatest finite one's beyond it.
    pub(crate) fn rounded(self, number: Number, mode: Rounding) -> u32 {
        let negative = matches!(number, Number::Finite { negative: true, .. });
        let way = match (mode, negative) {
            (Rounding::Rn | Rounding::Rna, _) => Way::Nearest,
            (Rounding::Rz | Rounding::Rs, _) | (Rounding::Rm, false) | (Rounding::Rp, true) => Way::Down,
            (Rounding::Rm, true) | (Rounding::Rp, false) => Way::Up,
        };
        pack(self, number, way, SATFINITE)
    }
    /// The nearest number's bits, even where two are as near, the greatest finite one's beyond it, for formats that have a
    /// sign and an exponent.
    pub(in crate::isa) fn nearest(self, value: f32) -> u32 {
        narrow(self, value, SATFINITE)
    }
    /// Bits that an element takes of a packed operand.
    #[inline(always)]
    pub(crate) fn bits(self) -> u32 {
        match self {
            E2m1 => 4,
            E4m3 | E5m2 | E2m3 | E3m2 | Ue5m3 | Ue8m0 | S2f6 => 8,
        }
    }
}

pub(super) const RELU: u64 = 1 << 16;
pub(super) const SATFINITE: u64 = 1 << 17;
/// The other side is `bf16`; otherwise `f16`.
pub(super) const BF16: u64 = 1 << 18;
/// The upper elements of four: their random bits lie higher.
pub(super) const UPPER: u64 = 1 << 19;

pub(super) fn code(format: Narrow, mode: Rounding, flags: u64) -> u64 {
    format as u64 | mode.code() << 8 | flags
}

// ---- exact ---------------------------------------------------------------------------------------------------------

/// What the low bits stand for.
fn unpack(format: Narrow, bits: u32) -> Number {
    let finite = |negative, significand: u32, exponent| Number::Finite {
        negative,
        significand: significand.into(),
        exponent,
    };
    let layout = format.layout();
    let magnitude = match format {
        Ue8m0 if bits & 0xff == 0xff => return Number::Nan,
        Ue8m0 => return finite(false, 1, (bits & 0xff) as i32 - 127),
        S2f6 => {
            let value = i32::from(bits as i8);
            return finite(value < 0, value.unsigned_abs(), -6);
        }
        Ue5m3 => bits & 0xff,
        E4m3 | E5m2 | E2m3 | E3m2 | E2m1 => bits & (layout.sign - 1),
    };
    let negative = bits & layout.sign != 0;
    match format {
        E4m3 | Ue5m3 if magnitude == layout.nan => return Number::Nan,
        E5m2 if magnitude == 0x7c => return Number::Infinity { negative },
        E5m2 if magnitude > 0x7c => return Number::Nan,
        E4m3 | E5m2 | E2m3 | E3m2 | E2m1 | Ue5m3 | Ue8m0 | S2f6 => {}
    }
    let fraction = magnitude & ((1 << layout.fraction) - 1);
    let field = (magnitude >> layout.fraction) as i32;
    let unit = 1 - layout.bias - layout.fraction as i32;
    if field == 0 {
        finite(negative, fraction, unit)
    } else {
        finite(negative, fraction | 1 << layout.fraction, unit + field - 1)
    }
}

/// How a magnitude becomes one of the numbers that a format has.
#[derive(Clone, Copy)]
enum Way {
    Nearest,
    Down,
    Up,
    /// Up where these random bits, so many, carry out of the sum with the highest bits that fall off.
    Random(u32, u32),
}

/// `significand · 2^exponent` in units of a format whose fraction has so many bits and whose least normal number is
/// 2^`least`: the bits without sign, as if exponents had no end.
fn place(fraction: u32, least: i32, significand: u64, exponent: i32, way: Way) -> u64 {
    if significand == 0 {
        return 0;
    }
    let top = 63 - significand.leading_zeros() as i32 + exponent;
    let unit = top.max(least) - fraction as i32;
    let shift = unit - exponent;
    let significand = u128::from(significand);
    let kept = if shift <= 0 {
        significand << -shift
    } else {
        // Two bits more than all others need say that there was something, far below.
        let shift = (shift as u32).min(120);
        let (kept, rest) = (significand >> shift, significand & ((1 << shift) - 1));
        let half = 1 << (shift - 1);
        let up = match way {
            Way::Nearest => rest > half || (rest == half && kept & 1 != 0),
            Way::Down => false,
            Way::Up => rest != 0,
            Way::Random(bits, random) => {
                let highest = if shift > bits {
                    rest >> (shift - bits)
                } else {
                    rest << (bits - shift)
                };
                (highest + u128::from(random)) >> bits != 0
            }
        };
        kept + u128::from(up)
    };
    // The hidden bit, where it is set, adds one to the exponent field.
    let field = (unit + fraction as i32 - least) as u64;
    (field << fraction) + kept as u64
}

/// The format's bits for a number.
fn pack(format: Narrow, number: Number, way: Way, flags: u64) -> u32 {
    let layout = format.layout();
    let limited = |magnitude: u64| match magnitude <= u64::from(layout.most) {
        true => magnitude as u32,
        false if flags & SATFINITE != 0 => layout.most,
        false => layout.nan,
    };
    let (negative, magnitude) = match number {
        Number::Nan => return layout.nan,
        Number::Infinity { negative } => (negative, u64::MAX),
        Number::Finite {
            negative,
            significand,
            exponent,
        } => {
            let magnitude = match format {
                // From 2^-127 on, numbers are their exponents; what is less becomes it.
                Ue8m0 => place(0, -127, significand, exponent, way).saturating_sub(1),
                // No exponent: everything below 2^32 counts as subnormal, in units of 2^-6.
                S2f6 => place(38, 32, significand, exponent, way),
                E4m3 | E5m2 | E2m3 | E3m2 | E2m1 | Ue5m3 => {
                    place(layout.fraction, 1 - layout.bias, significand, exponent, way)
                }
            };
            (negative, magnitude)
        }
    };
    if negative && layout.sign != 0 {
        return match format {
            _ if flags & RELU != 0 => 0,
            S2f6 => magnitude.min(128).wrapping_neg() as u32 & 0xff,
            E4m3 | E5m2 | E2m3 | E3m2 | E2m1 | Ue5m3 | Ue8m0 => limited(magnitude) | layout.sign,
        };
    }
    limited(magnitude)
}

/// The number that an element of the other side stands for.
fn wide(bits: u32, code: u64, single: bool) -> Number {
    match (single, code & BF16 != 0) {
        (true, _) => soft::unpack::<Binary32>(bits.into()),
        (false, true) => soft::unpack::<Bfloat16>(u64::from(bits & 0xffff)),
        (false, false) => soft::unpack::<Binary16>(u64::from(bits & 0xffff)),
    }
}
/// Times 2^`by`, where `scale` is that power as `ue8m0`; its NaN makes NaN.
fn scaled(number: Number, scale: u32, divide: bool) -> Number {
    let scale = (scale & 0xff) as i32;
    match number {
        _ if scale == 0xff => Number::Nan,
        Number::Finite {
            negative,
            significand,
            exponent,
        } => Number::Finite {
            negative,
            significand,
            exponent: exponent + if divide { 127 - scale } else { scale - 127 },
        },
        Number::Nan | Number::Infinity { .. } => number,
    }
}
/// One element down, in any mode, divided by a scale.
#[inline(never)]
fn down_exact(bits: u32, scale: u32, code: u64, single: bool) -> u32 {
    let way = match Rounding::from_code(code >> 8) {
        Rounding::Rz => Way::Down,
        Rounding::Rp => Way::Up,
        // No line has the last three.
        Rounding::Rn | Rounding::Rna | Rounding::Rm | Rounding::Rs => Way::Nearest,
    };
    pack(
        Narrow::from_code(code),
        scaled(wide(bits, code, single), scale, true),
        way,
        code,
    )
}
/// One element up, times a scale.
#[inline(never)]
fn up_exact(bits: u32, scale: u32, code: u64) -> u32 {
    let number = scaled(unpack(Narrow::from_code(code), bits), scale, false);
    if code & BF16 != 0 {
        half::<Bfloat16>(number, code)
    } else {
        half::<Binary16>(number, code)
    }
}
fn half<F: Format>(number: Number, code: u64) -> u32 {
    let bits = match number {
        Number::Nan => F::NAN,
        Number::Infinity { negative } => F::INFINITY | if negative { F::SIGN } else { 0 },
        Number::Finite {
            negative,
            significand,
            exponent,
        } => soft::round::<F>(negative, significand.into(), exponent, Rounding::Rn),
    };
    half_limits::<F>(bits, code)
}
/// `.relu` and `.satfinite` of a half.
fn half_limits<F: Format>(bits: u64, code: u64) -> u32 {
    let (magnitude, negative) = (bits & !F::SIGN, bits & F::SIGN != 0);
    let bits = match () {
        () if magnitude > F::INFINITY => F::NAN,
        () if code & RELU != 0 && negative => 0,
        () if code & SATFINITE != 0 && magnitude == F::INFINITY => bits - 1,
        () => bits,
    };
    bits as u32
}

// ---- quick ---------------------------------------------------------------------------------------------------------

/// Exact, for all formats but `s2f6`: shifts the fields to where `f32` has them and lets a multiplication mend the bias
/// and normalise. NaN stays NaN.
#[inline(always)]
fn widen(format: Narrow, bits: u32) -> f32 {
    let layout = format.layout();
    let magnitude = bits & if layout.sign == 0 { 0xff } else { layout.sign - 1 };
    let factor = f32::from_bits(((254 - layout.bias) as u32) << 23);
    let value = f32::from_bits(magnitude << (23 - layout.fraction)) * factor;
    let special = f32::from_bits(0x7f80_0000 | (magnitude & 3) << 21);
    let (nan, infinity) = match format {
        E4m3 => (0x7f, u32::MAX),
        E5m2 => (0x7d, 0x7c),
        Ue5m3 => (0xff, u32::MAX),
        E2m3 | E3m2 | E2m1 | Ue8m0 | S2f6 => (u32::MAX, u32::MAX),
    };
    let value = if (magnitude >= nan) | (magnitude == infinity) {
        special
    } else {
        value
    };
    let negative = bits & layout.sign != 0;
    f32::from_bits(value.to_bits() | if negative { 0x8000_0000 } else { 0 })
}

/// To nearest even with `.satfinite`, for the formats with a sign and an exponent: normal results are rounded by adding
/// half a step, subnormal ones by adding a number whose last place is theirs.
#[inline(always)]
fn narrow(format: Narrow, value: f32, code: u64) -> u32 {
    let layout = format.layout();
    let drop = 23 - layout.fraction;
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let rebias = ((127 - layout.bias) as u32) << 23;
    // The greatest number's bits as `f32`.
    let most = (layout.most << drop) + rebias;
    let bounded = if magnitude > most { most } else { magnitude };
    let odd = bounded >> drop & 1;
    let normal = (bounded.wrapping_add((1 << (drop - 1)) - 1 + odd).wrapping_sub(rebias)) >> drop;
    let step = f32::from_bits(((127 + 24 - layout.bias - layout.fraction as i32) as u32) << 23);
    let subnormal = (f32::from_bits(bounded) + step).to_bits().wrapping_sub(step.to_bits());
    let least = ((128 - layout.bias) as u32) << 23;
    let finite = if bounded < least { subnormal } else { normal };
    let negative = bits >> 31 != 0;
    let signed = if negative & (code & RELU != 0) {
        0
    } else {
        finite | if negative { layout.sign } else { 0 }
    };
    if magnitude > 0x7f80_0000 { layout.nan } else { signed }
}

/// Both halves of a packed operand.
#[inline(always)]
fn split(word: u32, code: u64) -> (f32, f32) {
    let (low, high) = (word as u16, (word >> 16) as u16);
    if code & BF16 != 0 {
        (f32::from_bits(word << 16), f32::from_bits(word & 0xffff_0000))
    } else {
        (widen_f16(low), widen_f16(high))
    }
}
#[inline(always)]
fn join(high: u32, low: u32, code: u64) -> u32 {
    high << Narrow::from_code(code).bits() | low
}

// ---- kernels -------------------------------------------------------------------------------------------------------

macro_rules! kernels {
    ($($name:ident($($a:ident: $t:ty),*) -> $r:ty, |$code:ident| $body:expr;)*) => {$(
        pub(super) struct $name;
        impl Op for $name {
            type Src = ($($t,)*);
            type Dst = $r;
            #[inline(always)]
            fn apply<C: Cpu>(($($a,)*): Self::Src, $code: u64) -> $r {
                $body
            }
        }
    )*};
}
kernels! {
    SinglesDown(a: f32, b: f32) -> u16, |code| {
        let format = Narrow::from_code(code);
        join(narrow(format, a, code), narrow(format, b, code), code) as u16
    };
    HalvesDown(a: u32) -> u16, |code| {
        let (format, (low, high)) = (Narrow::from_code(code), split(a, code));
        join(narrow(format, high, code), narrow(format, low, code), code) as u16
    };
    HalvesUp(a: u16) -> u32, |code| {
        let format = Narrow::from_code(code);
        let (low, high) = (widen(format, a.into()), widen(format, u32::from(a) >> format.bits()));
        let narrow = |value| if code & BF16 != 0 { narrow_bf16(value) } else { narrow_f16(value) };
        u32::from(narrow(high)) << 16 | u32::from(narrow(low))
    };
    SinglesDownExact(a: u32, b: u32) -> u16, |code| {
        join(down_exact(a, 127, code, true), down_exact(b, 127, code, true), code) as u16
    };
    SinglesDownScaled(a: u32, b: u32, scale: u16) -> u16, |code| {
        let scale = u32::from(scale);
        join(down_exact(a, scale >> 8, code, true), down_exact(b, scale, code, true), code) as u16
    };
    HalvesDownExact(a: u32) -> u16, |code| {
        join(down_exact(a >> 16, 127, code, false), down_exact(a, 127, code, false), code) as u16
    };
    HalvesDownScaled(a: u32, scale: u16) -> u16, |code| {
        let scale = u32::from(scale);
        join(down_exact(a >> 16, scale >> 8, code, false), down_exact(a, scale, code, false), code) as u16
    };
    HalvesUpExact(a: u16) -> u32, |code| {
        let (a, bits) = (u32::from(a), Narrow::from_code(code).bits());
        up_exact(a >> bits, 127, code) << 16 | up_exact(a, 127, code)
    };
    HalvesUpScaled(a: u16, scale: u16) -> u32, |code| {
        let (a, scale, bits) = (u32::from(a), u32::from(scale), Narrow::from_code(code).bits());
        up_exact(a >> bits, scale >> 8, code) << 16 | up_exact(a, scale, code)
    };
    RandomHalves(a: u32, b: u32, random: u32) -> u32, |code| {
        random_half(a, random >> 16, code) << 16 | random_half(b, random, code)
    };
}

/// `f32` to a half with random bits: thirteen for `f16`, sixteen for `bf16`.
#[inline(never)]
fn random_half(bits: u32, random: u32, code: u64) -> u32 {
    let (fraction, least, count) = if code & BF16 != 0 { (7, -126, 16) } else { (10, -14, 13) };
    let infinity = ((1 << (15 - fraction)) - 1) << fraction;
    let result = match soft::unpack::<Binary32>(bits.into()) {
        Number::Nan => 0x7fff,
        Number::Infinity { negative } => infinity | u64::from(negative) << 15,
        Number::Finite {
            negative,
            significand,
            exponent,
        } => {
            let way = Way::Random(count, random & ((1 << count) - 1));
            place(fraction, least, significand, exponent, way).min(infinity) | u64::from(negative) << 15
        }
    };
    if code & BF16 != 0 {
        half_limits::<Bfloat16>(result, code)
    } else {
        half_limits::<Binary16>(result, code)
    }
}

/// Two of the four elements of `cvt.rs`, below what is there already: `{a, b}` first, then `{e, f}`. Each has eight
/// random bits: `f` the lowest byte and so on; for `e2m1` `e` and `f` have the lower bytes of both halves.
#[inline(never)]
fn random_pair(a: u32, b: u32, random: u32, above: u32, code: u64) -> u32 {
    let format = Narrow::from_code(code);
    let upper = code & UPPER != 0;
    let (first, second) = match (format, upper) {
        (E2m1, true) => (24, 8),
        (E2m1, false) => (16, 0),
        (E4m3 | E5m2 | E2m3 | E3m2 | Ue5m3 | Ue8m0 | S2f6, true) => (24, 16),
        (E4m3 | E5m2 | E2m3 | E3m2 | Ue5m3 | Ue8m0 | S2f6, false) => (8, 0),
    };
    let one = |bits: u32, shift: u32| {
        let way = Way::Random(8, random >> shift & 0xff);
        pack(format, soft::unpack::<Binary32>(bits.into()), way, code)
    };
    above << (2 * format.bits()) | join(one(a, first), one(b, second), code)
}
/// [`random_pair`] into a slot of either width.
pub(super) struct RandomPair<D>(std::marker::PhantomData<D>);
impl<D: Value + TryFrom<u32>> Op for RandomPair<D> {
    type Src = (u32, u32, u32, u32);
    type Dst = D;
    #[inline(always)]
    fn apply<C: Cpu>((a, b, random, above): Self::Src, code: u64) -> D {
        D::try_from(random_pair(a, b, random, above, code)).unwrap_or_default()
    }
}
