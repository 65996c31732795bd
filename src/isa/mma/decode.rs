//! From codes of elements to numbers that vectors can multiply.

use super::Element;
use super::level::{self, Kernel};
use super::rule::Order;
use super::vector::Vector;
use crate::isa::simd::Level;

/// The exponent of zero: so small that no sum with another one, or with a scale's, is the largest, and not so small that such sums
/// would not fit half a word.
pub const NONE: i32 = -1 << 13;

/// How a format lays out its bits. Formats differ in what the largest exponent stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits below the element in its code.
    pub low: u32,
    pub exponent: u32,
    pub fraction: u32,
    pub bias: i32,
    pub specials: Specials,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// Neither infinity nor NaN.
    None,
    /// NaN where all bits but the sign are set.
    Nan,
    /// As IEEE 754 has them.
    Both,
}

/// The layout of a floating-point format (PTX ISA, Alternate Floating-Point Data Formats); of `tf32` the 19 high bits of
/// the word count. `None` for integers and `f64`.
pub const fn format(element: Element) -> Option<Format> {
    let (low, exponent, fraction, bias, specials) = match element {
        Element::F16 => (0, 5, 10, 15, Specials::Both),
        Element::Bf16 => (0, 8, 7, 127, Specials::Both),
        Element::Tf32 => (13, 8, 10, 127, Specials::Both),
        Element::E4m3 => (0, 4, 3, 7, Specials::Nan),
        Element::E5m2 => (0, 5, 2, 15, Specials::Both),
        Element::E3m2 => (0, 3, 2, 3, Specials::None),
        Element::E2m3 => (0, 2, 3, 1, Specials::None),
        Element::E2m1 => (0, 2, 1, 1, Specials::None),
        Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::B1 | Element::F64 => return None,
    };
    Some(Format {
        low,
        exponent,
        fraction,
        bias,
        specials,
    })
}

/// Decoded elements. Columns of A, or rows of B, come in pairs, of which each row, or column, has a *place*: in pair `p`, row `m` of A has
/// `p * stride(M) + m`, column `n` of B `p * N + n`.
#[derive(Default)]
pub struct Operand {
    /// What the elements are; where exponents are `apart`, their significands (less than 2). Zero stands for infinity and
    /// NaN, too. Of each sixteen places, the first elements of all pairs, and then the second ones.
    pub values: Vec<f32>,
    /// The exponents of the format's field, those of the least normal number for subnormal ones, of a pair in the halves of a
    /// word; [`NONE`] for zero.
    pub exponents: Vec<u32>,
    /// Whether there is an infinity or a NaN among them.
    pub special: bool,
    /// The least exponent of a number that is not zero, and the largest.
    pub least: i32,
    pub most: i32,
    /// Codes in the order in which they are summed.
    ordered: Vec<u32>,
}

/// Places that are decoded at a time.
const RUN: usize = 16;

/// How codes lie that are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A word has a pair, the first element in its low half.
    Pairs,
    /// A word has one code. So many places, a multiple of four, have all the first codes of a pair, and then all the second ones.
    Apart(usize),
}

/// Where the first element of the pair at a place is among the values; the second follows by [`RUN`].
#[inline(always)]
pub const fn first_of(place: usize) -> usize {
    place / RUN * 2 * RUN + place % RUN
}

/// Adds to both exponents of a pair.
#[inline(always)]
pub fn add_to_both(pair: &mut u32, more: i32) {
    let half = |down: u32| u32::from(((*pair >> down) as i16).wrapping_add(more as i16) as u16) << down;
    *pair = half(0) | half(16);
}

impl Operand {
    /// Decodes what is to be summed in another order: of every `k` runs of so many neighbours.
    pub fn decode_in_order(
        &mut self,
        level: Level,
        (element, layout): (Element, Layout),
        apart: bool,
        codes: &[u32],
        (order, k, run): (Order, usize, usize),
    ) {
        let mut ordered = std::mem::take(&mut self.ordered);
        ordered.clear();
        for part in codes.chunks_exact(k * run) {
            for at in 0..k {
                ordered.extend_from_slice(&part[order.column(at, k) * run..][..run]);
            }
        }
        self.decode(level, (element, layout), apart, &ordered);
        self.ordered = ordered;
    }

    /// Decodes. `apart` keeps exponents out of the values, for products that `f32` could not hold.
    ///
    /// # Panics
    /// If pairs are incomplete.
    pub fn decode(&mut self, level: Level, (element, layout): (Element, Layout), apart: bool, codes: &[u32]) {
        let places = match layout {
            Layout::Pairs => codes.len(),
            Layout::Apart(by) => {
                assert!(codes.len().is_multiple_of(2 * by), "pairs are whole");
                codes.len() / 2
            }
        };
        // Whole vectors: what is beyond the codes stays zero.
        let padded = places.next_multiple_of(RUN);
        self.values.resize(2 * padded, 0.0);
        self.exponents.resize(padded, NO_PAIR);
        self.special = false;
        (self.least, self.most) = (0, 0);
        match (format(element), layout, apart) {
            (Some(F16), Layout::Pairs, false) => level::run::<Pairs<true>>(level, (codes, self)),
            (Some(BF16), Layout::Pairs, false) => level::run::<Pairs<false>>(level, (codes, self)),
            (Some(format), _, false) => level::run::<Floats<false>>(level, (format, layout, codes, self)),
            (Some(format), _, true) => level::run::<Floats<true>>(level, (format, layout, codes, self)),
            (None, _, _) => unreachable!("integers have no exponents"),
        }
        // Infinities and NaN are rare: that they count as zero takes a second look.
        if let (Some(format), true, Layout::Pairs, false) = (format(element), self.special, layout, apart) {
            level::run::<Floats<false>>(level, (format, layout, codes, self));
        }
    }
}

/// A pair of zeros.
const NO_PAIR: u32 = (NONE as u16 as u32) << 16 | NONE as u16 as u32;

/// Pairs of `f16`, or of `bf16`, whose values `f32` holds.
struct Pairs<const HALVES: bool>;

impl<const HALVES: bool> Kernel for Pairs<HALVES> {
    type Arguments<'a> = (&'a [u32], &'a mut Operand);
    #[inline(always)]
    unsafe fn run<C: Vector>((codes, to): Self::Arguments<'_>) {
        let both = |half: i32| half << 16 | half & 0xffff;
        let (bias, largest) = if HALVES { (15, 0x1f) } else { (127, 0xff) };
        let places = codes.len();
        // SAFETY: the caller's.
        unsafe {
            let (none, one) = (C::int(both(NONE)), C::int(both(1)));
            let bias = C::int(both(-bias));
            let mut most = none;
            let mut least = C::int(both(i16::MAX.into()));
            let far = least;
            let mut special = C::int(0);
            for at in (0..places).step_by(RUN) {
                let mut last = [0; RUN];
                let words = match codes[at..].first_chunk() {
                    Some(words) => C::ints(words),
                    None => {
                        last[..places - at].copy_from_slice(&codes[at..]);
                        C::ints(&last)
                    }
                };
                let magnitudes = C::and(words, C::int(0x7fff_7fff));
                let zero = C::int(0);
                let fields = match HALVES {
                    true => C::right_halves::<10>(magnitudes),
                    false => C::right_halves::<7>(magnitudes),
                };
                special = C::max_halves(special, fields);
                let exponents = C::add_halves(C::max_halves(fields, one), bias);
                let exponents = C::if_halves_equal(magnitudes, zero, none, exponents);
                let values = match HALVES {
                    true => C::widen(words),
                    false => {
                        most = C::max_halves(most, exponents);
                        least = C::min_halves(least, C::if_halves_equal(exponents, none, far, exponents));
                        let high = C::and(words, C::int(0xffff << 16));
                        [C::of_bits(C::left::<16>(words)), C::of_bits(high)]
                    }
                };
                let [first, second] = to.values[2 * at..][..2 * RUN].as_chunks_mut().0 else {
                    unreachable!("two runs")
                };
                C::store_floats(values[0], first);
                C::store_floats(values[1], second);
                let to = to.exponents[at..].first_chunk_mut().expect("runs are whole");
                C::store(exponents, to);
            }
            let (mut fields, mut lows, mut highs) = ([0; RUN], [0; RUN], [0; RUN]);
            C::store(special, &mut fields);
            C::store(least, &mut lows);
            C::store(most, &mut highs);
            to.special = of_halves(&fields, i16::max) == largest;
            if !HALVES {
                to.least = of_halves(&lows, i16::min);
                to.most = of_halves(&highs, i16::max);
            }
        }
    }
}

/// The least or the largest of the halves of words, as signed numbers.
#[inline(always)]
fn of_halves(words: &[u32; RUN], choose: fn(i16, i16) -> i16) -> i32 {
    let mut chosen = words[0] as i16;
    for word in words {
        chosen = choose(choose(chosen, *word as i16), (word >> 16) as i16);
    }
    chosen.into()
}

struct Floats<const APART: bool>;

impl<const APART: bool> Kernel for Floats<APART> {
    type Arguments<'a> = (Format, Layout, &'a [u32], &'a mut Operand);
    #[inline(always)]
    unsafe fn run<C: Vector>((format, layout, codes, to): Self::Arguments<'_>) {
        // With its constants known, the loop is a few instructions for a vector: of what is multiplied often.
        match format {
            BF16 => floats::<APART>((BF16, layout), codes, to),
            E4M3 => floats::<APART>((E4M3, layout), codes, to),
            F16 if !APART => floats::<APART>((F16, layout), codes, to),
            TF32 if !APART => floats::<APART>((TF32, layout), codes, to),
            E5M2 if !APART => floats::<APART>((E5M2, layout), codes, to),
            format => floats::<APART>((format, layout), codes, to),
        }
    }
}

const F16: Format = format(Element::F16).unwrap();
const BF16: Format = format(Element::Bf16).unwrap();
const TF32: Format = format(Element::Tf32).unwrap();
const E2M1: Format = format(Element::E2m1).unwrap();
const E4M3: Format = format(Element::E4m3).unwrap();
const E5M2: Format = format(Element::E5m2).unwrap();

/// The codes of a run of places: the first of all pairs, the second ones.
#[inline(always)]
fn run_of(layout: Layout, codes: &[u32], place: usize) -> [[u32; RUN]; 2] {
    let mut pairs = [[0; RUN]; 2];
    match layout {
        Layout::Pairs => {
            for (lane, word) in codes[place..].iter().take(RUN).enumerate() {
                pairs[0][lane] = word & 0xffff;
                pairs[1][lane] = word >> 16;
            }
        }
        Layout::Apart(by) if by.is_multiple_of(RUN) => take::<RUN>(codes, by, place, &mut pairs),
        Layout::Apart(by) if by.is_multiple_of(8) => take::<8>(codes, by, place, &mut pairs),
        Layout::Apart(by) => take::<4>(codes, by, place, &mut pairs),
    }
    pairs
}

/// The same, so many places at a time, which all have their codes in one row of `by`.
#[inline(always)]
fn take<const EACH: usize>(codes: &[u32], by: usize, place: usize, pairs: &mut [[u32; RUN]; 2]) {
    for lane in (0..RUN).step_by(EACH) {
        let place = place + lane;
        let first = place / by * 2 * by + place % by;
        // Beyond the last there is nothing.
        let Some(codes) = codes.get(first..first + by + EACH) else {
            break;
        };
        pairs[0][lane..lane + EACH].copy_from_slice(&codes[..EACH]);
        pairs[1][lane..lane + EACH].copy_from_slice(&codes[by..]);
    }
}

/// A code's value, or significand, its exponent, and whether it is infinity or NaN.
#[inline(always)]
fn element<const APART: bool>(format: Format, code: u32) -> (f32, i32, bool) {
    let code = code >> format.low;
    let sign = (code >> (format.exponent + format.fraction) & 1) << 31;
    let field = code >> format.fraction & ((1 << format.exponent) - 1);
    let fraction = code & ((1 << format.fraction) - 1);
    let largest = field == (1 << format.exponent) - 1;
    let is_special = match format.specials {
        Specials::None => false,
        Specials::Nan => largest & (fraction == (1 << format.fraction) - 1),
        Specials::Both => largest,
    };
    let significand = fraction | u32::from(field != 0) << format.fraction;
    let significand = if is_special { 0 } else { significand as i32 };
    let of_field = (field as i32).max(1) - format.bias;
    let value = if APART || format.bias < 127 {
        let unit = if APART { 0 } else { of_field } - format.fraction as i32;
        let magnitude = significand as f32 * f32::from_bits(((127 + unit) as u32) << 23);
        f32::from_bits(magnitude.to_bits() | sign)
    } else {
        // The format is the upper part of an `f32`.
        f32::from_bits(if is_special { 0 } else { code << (23 - format.fraction) })
    };
    let exponent = if significand == 0 { NONE } else { of_field };
    (value, exponent, is_special)
}

#[inline(always)]
fn floats<const APART: bool>((format, layout): (Format, Layout), codes: &[u32], to: &mut Operand) {
    let mut special = 0;
    // Of others nobody asks.
    let is_wide = format.bias == 127;
    let (mut least, mut most) = ([i32::MAX; RUN], [NONE; RUN]);
    for at in (0..to.exponents.len()).step_by(RUN) {
        let mut exponents = [[0; RUN]; 2];
        let codes = run_of(layout, codes, at);
        for second in 0..2 {
            let values = &mut to.values[2 * at + second * RUN..][..RUN];
            for lane in 0..RUN {
                let (value, exponent, is_special) = element::<APART>(format, codes[second][lane]);
                values[lane] = value;
                exponents[second][lane] = exponent;
                special |= u32::from(is_special);
                if is_wide {
                    least[lane] = least[lane].min(if exponent == NONE { i32::MAX } else { exponent });
                    most[lane] = most[lane].max(exponent);
                }
            }
        }
        let pairs = &mut to.exponents[at..][..RUN];
        for lane in 0..RUN {
            pairs[lane] = exponents[0][lane] as u32 & 0xffff | (exponents[1][lane] as u32) << 16;
        }
    }
    to.special = special != 0;
    to.least = least.into_iter().min().unwrap_or_default();
    to.most = most.into_iter().max().unwrap_or_default();
}

/// What codes stand for, one after the other: integers, and elements whose products are exact in `f32`. Infinities and NaN are zero.
///
/// # Panics
/// If the elements are of `f64`.
pub fn numbers(level: Level, element: Element, codes: &[u32], to: &mut Vec<f32>) {
    to.resize(codes.len(), 0.0);
    match format(element) {
        Some(format) => level::run::<Numbers>(level, (format, codes, to)),
        None => level::run::<Integers>(level, (element, codes, to)),
    }
}

struct Numbers;

impl Kernel for Numbers {
    type Arguments<'a> = (Format, &'a [u32], &'a mut [f32]);
    #[inline(always)]
    unsafe fn run<C: Vector>((format, codes, to): Self::Arguments<'_>) {
        // With its constants known, the loop is a few instructions for a vector.
        match format {
            E2M1 => each_number(E2M1, codes, to),
            format => each_number(format, codes, to),
        }
    }
}

#[inline(always)]
fn each_number(format: Format, codes: &[u32], to: &mut [f32]) {
    for (&code, value) in codes.iter().zip(to) {
        *value = element::<false>(format, code).0;
    }
}

struct Integers;

impl Kernel for Integers {
    type Arguments<'a> = (Element, &'a [u32], &'a mut [f32]);
    #[inline(always)]
    unsafe fn run<C: Vector>((element, codes, to): Self::Arguments<'_>) {
        assert!(element.is_integer(), "`f64` is no code");
        let shift = 32 - element.bits();
        let signed = matches!(element, Element::S8 | Element::S4);
        for (&code, value) in codes.iter().zip(to) {
            let code = code << shift;
            let number = if signed {
                code as i32 >> shift
            } else {
                (code >> shift) as i32
            };
            *value = number as f32;
        }
    }
}
