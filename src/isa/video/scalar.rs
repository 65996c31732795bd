//! What video instructions compute, each with its kernel.
//!
//! Intermediate results are exact: the manual's 33- and 34-bit signed integers fit in `i64`, products in `i128`. Whatever
//! selectors and modifiers an instruction has, it is the same arithmetic with other numbers, which the kernel's constant
//! holds and which are the same for all lanes: no lane branches.

use crate::isa::simd::{Cpu, Op};

/// Which part of a 32-bit operand a scalar instruction reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Its lowest bit.
    pub shift: u32,
    /// 8, 16 or 32.
    pub bits: u32,
}

impl Part {
    pub const WHOLE: Part = Part { shift: 0, bits: 32 };

    fn from_code(code: u64) -> Part {
        Part {
            shift: (code & 3) as u32 * 8,
            bits: 8 << (code >> 2 & 3),
        }
    }
    fn code(self) -> u64 {
        u64::from(self.shift / 8 + self.bits / 16 * 4)
    }
    #[inline(always)]
    fn ones(self) -> i64 {
        (1 << self.bits) - 1
    }
    /// Zero- or sign-extended.
    #[inline(always)]
    fn read(self, word: u32, signed: bool) -> i64 {
        let part = i64::from(word) >> self.shift & self.ones();
        let sign = if signed { 1 << (self.bits - 1) } else { 0 };
        (part ^ sign) - sign
    }
    /// The numbers that fit.
    #[inline(always)]
    fn range(self, signed: bool) -> (i64, i64) {
        if signed {
            (-1 << (self.bits - 1), (1 << (self.bits - 1)) - 1)
        } else {
            (0, self.ones())
        }
    }
}

// ---- scalar --------------------------------------------------------------------------------------------------------

/// The constant of a scalar instruction.
#[derive(Clone, Copy)]
pub(super) struct Scalar {
    pub a: Part,
    pub b: Part,
    pub d: Part,
    pub a_signed: bool,
    pub b_signed: bool,
    pub d_signed: bool,
    pub sat: bool,
    pub second: Second,
    /// The low bits of an amount count (`.wrap`), or the amount counts up to 32 (`.clamp`).
    pub wrap: bool,
    /// `vset`: which of less, equal, greater hold.
    pub relation: u64,
    // `vmad`
    pub plus_one: bool,
    pub negate_product: bool,
    pub negate_c: bool,
    pub scale: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Second {
    None,
    Add,
    Min,
    Max,
}

impl Scalar {
    pub fn code(self) -> u64 {
        let flags = [
            self.a_signed,
            self.b_signed,
            self.d_signed,
            self.sat,
            self.wrap,
            self.plus_one,
            self.negate_product,
            self.negate_c,
        ];
        let flags = flags
            .iter()
            .enumerate()
            .fold(0, |bits, (i, &flag)| bits | u64::from(flag) << i);
        self.a.code()
            | self.b.code() << 4
            | self.d.code() << 8
            | (self.second as u64) << 12
            | self.relation << 16
            | u64::from(self.scale) << 20
            | flags << 32
    }
    #[inline(always)]
    fn from_code(code: u64) -> Scalar {
        let flag = |i: u32| code >> (32 + i) & 1 != 0;
        Scalar {
            a: Part::from_code(code),
            b: Part::from_code(code >> 4),
            d: Part::from_code(code >> 8),
            second: match code >> 12 & 3 {
                0 => Second::None,
                1 => Second::Add,
                2 => Second::Min,
                _ => Second::Max,
            },
            relation: code >> 16 & 7,
            scale: (code >> 20 & 31) as u32,
            a_signed: flag(0),
            b_signed: flag(1),
            d_signed: flag(2),
            sat: flag(3),
            wrap: flag(4),
            plus_one: flag(5),
            negate_product: flag(6),
            negate_c: flag(7),
        }
    }

    /// Saturation to the destination's type and part; the second operation, or the merge into `c`.
    #[inline(always)]
    fn finish(self, result: i64, c: u32) -> u32 {
        let (low, high) = self.d.range(self.d_signed);
        let result = if self.sat { result.clamp(low, high) } else { result };
        let third = Part::WHOLE.read(c, self.d_signed);
        let result = match self.second {
            Second::None => result,
            Second::Add => result + third,
            Second::Min => result.min(third),
            Second::Max => result.max(third),
        };
        let ones = self.d.ones() as u32;
        (result as u32 & ones) << self.d.shift | c & !(ones << self.d.shift)
    }
}

/// The relations that hold between two numbers: less 1, equal 2, greater 4.
#[inline(always)]
fn relation(a: i64, b: i64) -> u64 {
    if a < b {
        1
    } else if a == b {
        2
    } else {
        4
    }
}
pub(super) const ADD: u8 = 0;
pub(super) const SUB: u8 = 1;
pub(super) const ABSDIFF: u8 = 2;
pub(super) const MIN: u8 = 3;
pub(super) const MAX: u8 = 4;
pub(super) const AVRG: u8 = 5;
pub(super) const SET: u8 = 6;
pub(super) const SHL: u8 = 7;
pub(super) const SHR: u8 = 8;
pub(super) const MAD: u8 = 9;

/// What scalar and SIMD instructions do to the parts that they selected.
#[inline(always)]
fn primary<const OP: u8>(a: i64, b: i64, wanted: u64) -> i64 {
    match OP {
        ADD => a + b,
        SUB => a - b,
        ABSDIFF => (a - b).abs(),
        MIN => a.min(b),
        MAX => a.max(b),
        // Halves go away from zero.
        AVRG => (a + b + i64::from(a + b >= 0)) >> 1,
        _ => i64::from(relation(a, b) & wanted != 0),
    }
}

#[inline(always)]
fn scalar<const OP: u8>(a: u32, b: u32, c: u32, code: u64) -> u32 {
    let it = Scalar::from_code(code);
    let (x, y) = (it.a.read(a, it.a_signed), it.b.read(b, it.b_signed));
    let amount = if it.wrap { y & 31 } else { y.min(32) };
    let result = match OP {
        SHL => shifted(x, amount),
        SHR => x >> amount,
        MAD => return mad(it, x, y, c),
        _ => primary::<OP>(x, y, it.relation),
    };
    it.finish(result, c)
}

/// `x · 2^amount` for amounts up to 32, or for what does not fit something on the same side that all that follows takes
/// for it: far beyond 32 bits, which are zero.
#[inline(always)]
fn shifted(x: i64, amount: i64) -> i64 {
    if amount == 32 {
        x.signum() << 40
    } else {
        x << (amount & 31)
    }
}

/// `±(a·b) ± c`, one more with `.po`, shifted down.
#[inline(always)]
fn mad(it: Scalar, a: i64, b: i64, c: u32) -> u32 {
    let signed = it.a_signed || it.b_signed || it.negate_product || it.negate_c;
    let product = i128::from(a) * i128::from(b);
    let product = if it.negate_product { -product } else { product };
    let c = if it.negate_c { !c } else { c };
    let c = if signed { i128::from(c as i32) } else { i128::from(c) };
    let sum = product + c + i128::from(it.plus_one || it.negate_c);
    let result = sum >> it.scale;
    let (low, high) = Part::WHOLE.range(signed);
    if it.sat {
        result.clamp(low.into(), high.into()) as u32
    } else {
        result as u32
    }
}

pub(super) struct Two<const OP: u8>;
impl<const OP: u8> Op for Two<OP> {
    type Src = (u32, u32);
    type Dst = u32;
    #[inline(always)]
    fn apply<C: Cpu>((a, b): Self::Src, code: u64) -> u32 {
        scalar::<OP>(a, b, 0, code)
    }
}
pub(super) struct Three<const OP: u8>;
impl<const OP: u8> Op for Three<OP> {
    type Src = (u32, u32, u32);
    type Dst = u32;
    #[inline(always)]
    fn apply<C: Cpu>((a, b, c): Self::Src, code: u64) -> u32 {
        scalar::<OP>(a, b, c, code)
    }
}

// ---- SIMD ----------------------------------------------------------------------------------------------------------

/// Two half-words or four bytes at once; the constant holds, by element, three bits of place among the eight bytes (four
/// half-words) of `b` and `a` for each operand and one of mask, then the flags.
#[inline(always)]
fn simd<const OP: u8, const N: u32>(a: u32, b: u32, c: u32, code: u64) -> u32 {
    let bits = 32 / N;
    let both = u64::from(b) << 32 | u64::from(a);
    let flag = |i: u32| code >> (32 + i) & 1 != 0;
    let (a_signed, b_signed, d_signed, sat, add) = (flag(0), flag(1), flag(2), flag(3), flag(4));
    let wanted = code >> 40 & 7;
    let element = |place: u64, signed: bool| {
        let part = (both >> (place as u32 * bits)) as i64 & ((1 << bits) - 1);
        let sign = if signed { 1 << (bits - 1) } else { 0 };
        (part ^ sign) - sign
    };
    let (low, high) = Part { shift: 0, bits }.range(d_signed);
    let ones = u32::MAX >> (32 - bits);
    let (mut merged, mut sum) = (c, c);
    for i in 0..N {
        let places = code >> (8 * i);
        let x = element(places & 7, a_signed);
        let y = element(places >> 3 & 7, b_signed);
        let chosen = places >> 6 & 1 != 0;
        let result = primary::<OP>(x, y, wanted);
        let result = if sat { result.clamp(low, high) } else { result };
        let at = i * bits;
        let mask = if chosen { ones << at } else { 0 };
        merged = merged & !mask | (result as u32) << at & mask;
        sum = sum.wrapping_add(if chosen { result as u32 } else { 0 });
    }
    if add { sum } else { merged }
}

pub(super) struct Halves<const OP: u8>;
impl<const OP: u8> Op for Halves<OP> {
    type Src = (u32, u32, u32);
    type Dst = u32;
    #[inline(always)]
    fn apply<C: Cpu>((a, b, c): Self::Src, code: u64) -> u32 {
        simd::<OP, 2>(a, b, c, code)
    }
}
pub(super) struct Bytes<const OP: u8>;
impl<const OP: u8> Op for Bytes<OP> {
    type Src = (u32, u32, u32);
    type Dst = u32;
    #[inline(always)]
    fn apply<C: Cpu>((a, b, c): Self::Src, code: u64) -> u32 {
        simd::<OP, 4>(a, b, c, code)
    }
}
