//! Scalar and SIMD video instructions (PTX ISA, Video Instructions): scalar functions, and from a form and the selectors
//! of its operands the kernel. Knows nothing of registers or lanes.
//!
//! Intermediate results are exact: the manual's 33- and 34-bit signed integers fit in `i64`, products in `i128`. Whatever
//! selectors and modifiers an instruction has, it is the same arithmetic with other numbers, which the kernel's constant
//! holds and which are the same for all lanes: no lane branches.

use super::simd::{Cpu, Op};
use super::{Form, Lane};
use crate::isa::types::Type;

/// Which part of a 32-bit operand a scalar instruction reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its lowest bit.
    shift: u32,
    /// 8, 16 or 32.
    bits: u32,
}

impl Part {
    pub const WHOLE: Part = Part { shift: 0, bits: 32 };

    /// `b0` … `b3`, `h0`, `h1`.
    fn from_word(word: &str) -> Option<Part> {
        Some(match word {
            "b0" => Part { shift: 0, bits: 8 },
            "b1" => Part { shift: 8, bits: 8 },
            "b2" => Part { shift: 16, bits: 8 },
            "b3" => Part { shift: 24, bits: 8 },
            "h0" => Part { shift: 0, bits: 16 },
            "h1" => Part { shift: 16, bits: 16 },
            _ => return None,
        })
    }
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

/// What is written on the operands of a video instruction, as text without the dot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Selectors<'a> {
    pub d: Option<&'a str>,
    pub a: Option<&'a str>,
    pub b: Option<&'a str>,
    /// `-a` or `-b` but not both; `-c`.
    pub negate_product: bool,
    pub negate_c: bool,
}

// ---- scalar --------------------------------------------------------------------------------------------------------

/// The constant of a scalar instruction.
#[derive(Clone, Copy)]
struct Scalar {
    a: Part,
    b: Part,
    d: Part,
    a_signed: bool,
    b_signed: bool,
    d_signed: bool,
    sat: bool,
    second: Second,
    /// The low bits of an amount count (`.wrap`), or the amount counts up to 32 (`.clamp`).
    wrap: bool,
    /// `vset`: which of less, equal, greater hold.
    relation: u64,
    // `vmad`
    plus_one: bool,
    negate_product: bool,
    negate_c: bool,
    scale: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Second {
    None,
    Add,
    Min,
    Max,
}

impl Scalar {
    fn code(self) -> u64 {
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
/// The relations that satisfy a comparison.
fn relations(form: &Form) -> Option<u64> {
    ["lt", "eq", "le", "gt", "ne", "ge"]
        .iter()
        .position(|word| form.has(word))
        .map(|at| at as u64 + 1)
}

const ADD: u8 = 0;
const SUB: u8 = 1;
const ABSDIFF: u8 = 2;
const MIN: u8 = 3;
const MAX: u8 = 4;
const AVRG: u8 = 5;
const SET: u8 = 6;
const SHL: u8 = 7;
const SHR: u8 = 8;
const MAD: u8 = 9;

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

struct Two<const OP: u8>;
impl<const OP: u8> Op for Two<OP> {
    type Src = (u32, u32);
    type Dst = u32;
    #[inline(always)]
    fn apply<C: Cpu>((a, b): Self::Src, code: u64) -> u32 {
        scalar::<OP>(a, b, 0, code)
    }
}
struct Three<const OP: u8>;
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

struct Halves<const OP: u8>;
impl<const OP: u8> Op for Halves<OP> {
    type Src = (u32, u32, u32);
    type Dst = u32;
    #[inline(always)]
    fn apply<C: Cpu>((a, b, c): Self::Src, code: u64) -> u32 {
        simd::<OP, 2>(a, b, c, code)
    }
}
struct Bytes<const OP: u8>;
impl<const OP: u8> Op for Bytes<OP> {
    type Src = (u32, u32, u32);
    type Dst = u32;
    #[inline(always)]
    fn apply<C: Cpu>((a, b, c): Self::Src, code: u64) -> u32 {
        simd::<OP, 4>(a, b, c, code)
    }
}

/// The places that `h10` or `b7654` names, the lowest element's first.
fn places(word: &str, count: usize) -> Option<Vec<u64>> {
    let digits = word.strip_prefix(if count == 2 { 'h' } else { 'b' })?;
    if digits.len() != count {
        return None;
    }
    digits
        .bytes()
        .rev()
        .map(|digit| Some(u64::from(digit.checked_sub(b'0')?)).filter(|&place| place < 2 * count as u64))
        .collect()
}
/// The elements that a mask such as `b320` names; they stand in falling order.
fn mask(word: &str, count: usize) -> Option<u64> {
    let digits = word.strip_prefix(if count == 2 { 'h' } else { 'b' })?;
    let mut mask = 0;
    let mut above = count as u8;
    for digit in digits.bytes() {
        let element = digit.checked_sub(b'0').filter(|&element| element < above)?;
        (mask, above) = (mask | 1 << element, element);
    }
    Some(mask).filter(|&mask| mask != 0)
}

// ---- from forms to kernels -----------------------------------------------------------------------------------------

/// Why an instruction's operands do not fit its opcode: which operand (0: d, 1: a, 2: b), and what may stand there.
pub struct Misfit {
    pub operand: usize,
    pub expected: &'static str,
}

/// The kernel of a video instruction. `third`: an operand `c` is written.
///
/// # Errors
/// A selector that the instruction does not know.
pub fn lane(form: &Form, selectors: &Selectors, third: bool) -> Result<Lane, Misfit> {
    match form
        .mnemonic()
        .strip_prefix('v')
        .and_then(|name| Some((name, name.chars().last()?)))
    {
        Some((name, '2')) => simd_lane(form, &name[..name.len() - 1], selectors, 2),
        Some((name, '4')) => simd_lane(form, &name[..name.len() - 1], selectors, 4),
        Some((name, _)) => scalar_lane(form, name, selectors, third),
        None => unreachable!("video instructions begin with v"),
    }
}

macro_rules! by_name {
    ($kind:ident, $name:expr, [$($word:literal $op:ident),*], $otherwise:expr) => {
        match $name {
            $($word => Lane::of::<$kind<$op>>(),)*
            _ => $otherwise,
        }
    };
}

fn scalar_lane(form: &Form, name: &str, selectors: &Selectors, third: bool) -> Result<Lane, Misfit> {
    let part = |word: Option<&str>, operand: usize| match word {
        None => Ok(Part::WHOLE),
        Some(word) => Part::from_word(word).ok_or(Misfit {
            operand,
            expected: ".b0, .b1, .b2, .b3, .h0 or .h1",
        }),
    };
    let second = match () {
        () if form.has("add") => Second::Add,
        () if form.has("min") => Second::Min,
        () if form.has("max") => Second::Max,
        () => Second::None,
    };
    // `vset` has no type for its result, which is unsigned.
    let signs = |i: usize| form.types.get(i) == Some(&Type::S32);
    let set = name == "set";
    let merged = name == "mad" || second != Second::None;
    if merged && selectors.d.is_some() {
        return Err(Misfit {
            operand: 0,
            expected: "no selector",
        });
    }
    let code = Scalar {
        a: part(selectors.a, 1)?,
        b: part(selectors.b, 2)?,
        d: part(selectors.d, 0)?,
        a_signed: signs(if set { 0 } else { 1 }),
        b_signed: signs(if set { 1 } else { 2 }),
        d_signed: !set && signs(0),
        sat: form.has("sat"),
        second,
        wrap: form.has("wrap"),
        relation: if set { relations(form).unwrap_or(0) } else { 0 },
        plus_one: form.has("po"),
        negate_product: selectors.negate_product,
        negate_c: selectors.negate_c,
        scale: match () {
            () if form.has("shr7") => 7,
            () if form.has("shr15") => 15,
            () => 0,
        },
    }
    .code();
    let lane = if third {
        by_name!(
            Three,
            name,
            ["add" ADD, "sub" SUB, "absdiff" ABSDIFF, "min" MIN, "max" MAX, "shl" SHL, "shr" SHR, "set" SET],
            Lane::of::<Three<MAD>>()
        )
    } else {
        by_name!(
            Two,
            name,
            ["add" ADD, "sub" SUB, "absdiff" ABSDIFF, "min" MIN, "max" MAX, "shl" SHL, "shr" SHR],
            Lane::of::<Two<SET>>()
        )
    };
    Ok(lane.with(code))
}

fn simd_lane(form: &Form, name: &str, selectors: &Selectors, count: usize) -> Result<Lane, Misfit> {
    let expected = if count == 2 {
        ".h and two digits from 0 to 3"
    } else {
        ".b and four digits from 0 to 7"
    };
    let default = |first: u64| (first..first + count as u64).collect::<Vec<_>>();
    let from = |word: Option<&str>, operand: usize, first: u64| match word {
        None => Ok(default(first)),
        Some(word) => places(word, count).ok_or(Misfit { operand, expected }),
    };
    let (a, b) = (from(selectors.a, 1, 0)?, from(selectors.b, 2, count as u64)?);
    let mask = match selectors.d {
        None => (1 << count) - 1,
        Some(word) => mask(word, count).ok_or(Misfit {
            operand: 0,
            expected: if count == 2 {
                ".h0, .h1 or .h10"
            } else {
                ".b and some of the digits 3, 2, 1, 0 in this order"
            },
        })?,
    };
    let signs = |i: usize| u64::from(form.types.get(i) == Some(&Type::S32));
    let set = name == "set";
    let (wanted, signs) = if set {
        (relations(form).unwrap_or(0), signs(0) | signs(1) << 1)
    } else {
        (0, signs(1) | signs(2) << 1 | signs(0) << 2)
    };
    let flags = signs | u64::from(form.has("sat")) << 3 | u64::from(form.has("add")) << 4;
    let mut code = flags << 32 | wanted << 40;
    for i in 0..count {
        code |= (a[i] | b[i] << 3 | (mask >> i & 1) << 6) << (8 * i);
    }
    let names = if count == 2 {
        by_name!(
            Halves,
            name,
            ["add" ADD, "sub" SUB, "avrg" AVRG, "absdiff" ABSDIFF, "min" MIN, "max" MAX],
            Lane::of::<Halves<SET>>()
        )
    } else {
        by_name!(
            Bytes,
            name,
            ["add" ADD, "sub" SUB, "avrg" AVRG, "absdiff" ABSDIFF, "min" MIN, "max" MAX],
            Lane::of::<Bytes<SET>>()
        )
    };
    Ok(names.with(code))
}
