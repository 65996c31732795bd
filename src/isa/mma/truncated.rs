//! The truncated fused dot product, sixteen rows and four columns at a time.
//!
//! A product's magnitude is below 4 and at most 27 bits of it remain, so that sixteen of them fit an `i32`: products are
//! made in `f32`, where they are exact, scaled to units of the last bit that is kept, and cut by the conversion to `i32`.
//! Infinities and NaN among the operands are rare: they count as zero here, and their rows and columns are computed
//! again, one element at a time (`single.rs`).

use std::ops::Range;

use super::decode::{Layout, Operand, add_to_both, first_of};
use super::level::{self, Kernel};
use super::rule::{Order, Outcome, Truncated};
use super::vector::Vector;
use super::{Accumulator, Element, LANES, Product, Scratch, Tiles, convert, single, stride};
use crate::isa::lanes::WARP;
use crate::isa::number;
use crate::isa::simd::Level;

/// Columns of B that are worked on at a time.
const COLUMNS: usize = 4;
/// Pairs of products that an `i32` can hold the sum of.
const CHUNK: usize = 8;

/// # Panics
/// If the product has a number of columns of A that is no power of two.
pub fn multiply(level: Level, product: &Product, rule: &Truncated, tiles: Tiles, scratch: &mut Scratch) {
    assert!(product.k.is_power_of_two(), "blocks are parts of k");
    if product.k == 1 {
        let (a, b) = with_zeros(product, &tiles);
        let product = Product { k: 2, ..*product };
        let (a, b) = (&a[..], &b[..]);
        return multiply(level, &product, rule, Tiles { a, b, ..tiles }, scratch);
    }
    let is_packed = tiles.packed && product.packs() == 2;
    let words = if is_packed { product.k / 2 } else { product.k };
    let codes = [&tiles.a[..words * stride(product.m)], &tiles.b[..words * product.n]];
    let layouts = match is_packed {
        true => [Layout::Pairs; 2],
        false => [Layout::Apart(stride(product.m)), Layout::Apart(product.n)],
    };
    let Scratch { a, b, .. } = scratch;
    let mut decode = |apart| {
        if rule.order == Order::Ascending {
            a.decode(level, (product.a, layouts[0]), apart, codes[0]);
            b.decode(level, (product.b, layouts[1]), apart, codes[1]);
        } else {
            let (order, k) = (rule.order, product.k);
            a.decode_in_order(
                level,
                (product.a, layouts[0]),
                apart,
                codes[0],
                (order, k, stride(product.m)),
            );
            b.decode_in_order(level, (product.b, layouts[1]), apart, codes[1], (order, k, product.n));
        }
        apart || are_narrow(product, a, b)
    };
    let mut apart = product.scaling.is_some();
    if !decode(apart) {
        apart = true;
        decode(apart);
    }
    let mut special = a.special | b.special;
    if product.scaling.is_some() {
        special |= scale(product, a, b, tiles.scale_a, tiles.scale_b);
    }
    let c = special.then(|| tiles.d.to_vec());
    let work = Work {
        product,
        rule,
        a,
        b,
        d: tiles.d,
    };
    if apart {
        level::run::<Sum<true>>(level, work);
    } else {
        level::run::<Sum<false>>(level, work);
    }
    if let Some(c) = c {
        let tiles = Tiles { d: tiles.d, ..tiles };
        single::mend(product, rule, tiles, &c, false);
    }
}

/// A product of one column with a second one, of zeros.
fn with_zeros(product: &Product, tiles: &Tiles) -> (Vec<u32>, Vec<u32>) {
    let mut a = tiles.a[..stride(product.m)].to_vec();
    a.resize(2 * a.len(), 0);
    let mut b = tiles.b[..product.n].to_vec();
    b.resize(2 * b.len(), 0);
    (a, b)
}

/// Whether `f32` holds all products, and what they are in units of the last bit that is kept, where that is not less than one.
fn are_narrow(product: &Product, a: &Operand, b: &Operand) -> bool {
    let is_wide = |element| matches!(element, Element::Bf16 | Element::Tf32);
    let wide = is_wide(product.a) || is_wide(product.b);
    !wide || (a.least.saturating_add(b.least) >= -100 && a.most + b.most <= 120)
}

/// Adds the exponents of the factors to those of the elements. True if a factor is NaN.
fn scale(product: &Product, a: &mut Operand, b: &mut Operand, rows: &[u8], columns: &[u8]) -> bool {
    let Some(scaling) = product.scaling else { return false };
    let factors = scaling.factors;
    let (stride, pairs) = (stride(product.m), product.k / 2);
    for pair in 0..pairs {
        // Factors are for more than two columns.
        let factor = pair * factors / pairs;
        for m in 0..product.m {
            let code = rows[m * factors + factor];
            add_to_both(&mut a.exponents[pair * stride + m], i32::from(code) - 127);
        }
        for n in 0..product.n {
            let code = columns[n * factors + factor];
            add_to_both(&mut b.exponents[pair * product.n + n], i32::from(code) - 127);
        }
    }
    rows[..product.m * factors].contains(&0xff) || columns[..product.n * factors].contains(&0xff)
}

struct Work<'a> {
    product: &'a Product,
    rule: &'a Truncated,
    a: &'a Operand,
    b: &'a Operand,
    d: &'a mut [u32],
}

/// `APART`: operands are significands and exponents, else values and exponents.
struct Sum<const APART: bool>;

impl<const APART: bool> Kernel for Sum<APART> {
    type Arguments<'a> = Work<'a>;
    #[inline(always)]
    unsafe fn run<C: Vector>(work: Work<'_>) {
        let Work { product, rule, a, b, d } = work;
        let stride = stride(product.m);
        for n in (0..product.n).step_by(COLUMNS) {
            for m in (0..product.m).step_by(LANES) {
                let place = |j: usize| (n + j) * stride + m;
                let terms = Terms {
                    a,
                    b,
                    row: m,
                    stride,
                    column: n,
                    columns: product.n,
                };
                // SAFETY: the caller's.
                unsafe {
                    let mut c = [C::float(0.0); COLUMNS];
                    for (j, c) in c.iter_mut().enumerate() {
                        *c = read::<C>(product.c, lanes_at(d, place(j)));
                    }
                    let c = blocks::<C, APART>(&terms, product, rule, c);
                    for (j, c) in c.into_iter().enumerate() {
                        let to: &mut [u32; LANES] = d[place(j)..].first_chunk_mut().expect("columns are whole");
                        match product.d {
                            Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => C::store(C::bits(c), to),
                            Accumulator::F16 => {
                                let mut values = [0.0; LANES];
                                C::store_floats(c, &mut values);
                                for l in 0..LANES {
                                    to[l] = convert::write(product.d, values[l]);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// All blocks of four columns, one after the other: what they make of the accumulators.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn blocks<C: Vector, const APART: bool>(
    terms: &Terms,
    product: &Product,
    rule: &Truncated,
    c: [C::Floats; COLUMNS],
) -> [C::Floats; COLUMNS] {
    // SAFETY: the caller's.
    unsafe {
        let mut sums = if rule.separate { [C::float(0.0); COLUMNS] } else { c };
        let mut least = convert::least(product.c);
        let (pairs, block) = (product.k / 2, rule.block.div_ceil(2));
        for first in (0..pairs).step_by(block) {
            let block = first..pairs.min(first + block);
            self::block::<C, APART>(terms, block, (rule, least), &mut sums);
            least = convert::least(product.d);
        }
        if rule.separate {
            for (sums, c) in sums.iter_mut().zip(c) {
                let (mut both, mut addends) = ([0.0; LANES], [0.0; LANES]);
                C::store_floats(*sums, &mut both);
                C::store_floats(c, &mut addends);
                for l in 0..LANES {
                    both[l] = number::canonical(both[l] + addends[l]);
                }
                *sums = C::floats(&both);
            }
        }
        sums
    }
}

/// A column of an accumulator.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn read<C: Vector>(accumulator: Accumulator, codes: &[u32; LANES]) -> C::Floats {
    // SAFETY: the caller's.
    unsafe {
        match accumulator {
            Accumulator::F16 => C::widen(C::ints(codes))[0],
            Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => C::of_bits(C::ints(codes)),
        }
    }
}

/// What is summed: sixteen rows of A, and some columns of B.
struct Terms<'a> {
    a: &'a Operand,
    b: &'a Operand,
    row: usize,
    /// From a pair of columns of A to the next.
    stride: usize,
    column: usize,
    /// Columns of B.
    columns: usize,
}

/// The sixteen lanes from a place on.
#[inline(always)]
fn lanes_at<T>(from: &[T], at: usize) -> &[T; LANES] {
    from[at..].first_chunk().expect("columns are whole")
}

impl<'a> Terms<'a> {
    /// The exponents of A in a pair of columns.
    #[inline(always)]
    fn rows(&self, pair: usize) -> &'a [u32; LANES] {
        let place = pair * self.stride + self.row;
        self.a.exponents[place..].first_chunk().expect("rows come in sixteens")
    }

    /// Its first elements, and behind them the second ones.
    #[inline(always)]
    fn row_values(&self, pair: usize) -> &'a [f32; 2 * LANES] {
        let place = pair * self.stride + self.row;
        self.a.values[2 * place..].first_chunk().expect("rows come in sixteens")
    }

    /// The exponents of B in a pair of rows.
    #[inline(always)]
    fn columns(&self, pair: usize) -> &'a [u32; COLUMNS] {
        let place = pair * self.columns + self.column;
        self.b.exponents[place..].first_chunk().expect("columns come in fours")
    }

    /// Its first elements, and, [`LANES`] behind them, the second ones.
    #[inline(always)]
    fn column_values(&self, pair: usize) -> &'a [f32; LANES + COLUMNS] {
        let place = first_of(pair * self.columns + self.column);
        self.b.values[place..].first_chunk().expect("columns come in fours")
    }
}

/// One block: products and accumulators are aligned, cut, summed and converted.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn block<C: Vector, const APART: bool>(
    terms: &Terms,
    pairs: Range<usize>,
    (rule, least): (&Truncated, i32),
    c: &mut [C::Floats; COLUMNS],
) {
    let is_plain = rule.outcome == Outcome::F32 && least == convert::least(Accumulator::F32);
    // SAFETY: the caller's.
    unsafe {
        if C::QUICK && !APART && is_plain && pairs.len() <= CHUNK {
            let exponents = align_quickly::<C>(terms, pairs.clone(), c);
            let sums = chunk::<C, false>(terms, pairs.clone(), &scales::<C>(&exponents, rule.fraction));
            let (mut results, mut uncertain) = (*c, 0);
            for j in 0..COLUMNS {
                let (result, lanes) = C::quick(sums[j], c[j], exponents[j], rule.fraction);
                results[j] = result;
                uncertain |= lanes;
            }
            if uncertain == 0 {
                *c = results;
                return;
            }
        }
        let exponents = align::<C>(terms, pairs.clone(), c, (rule.floor, least));
        let sums = products::<C, APART>(terms, pairs, &exponents, rule.fraction);
        finish::<C>(&sums, &exponents, rule, c);
    }
}

/// The exponents that the terms are aligned to.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn align<C: Vector>(
    terms: &Terms,
    pairs: Range<usize>,
    c: &[C::Floats; COLUMNS],
    (floor, least): (i32, i32),
) -> [C::Ints; COLUMNS] {
    // SAFETY: the caller's.
    unsafe {
        let mut largest = largest::<C>(terms, pairs);
        for (largest, &c) in largest.iter_mut().zip(c) {
            // What the accumulator brings: [`convert::exponent`].
            let magnitude = C::and(C::bits(c), C::int(i32::MAX));
            let field = C::right::<23>(magnitude);
            let exponent = C::max(C::sub(field, C::int(127)), C::int(least));
            let floor = C::int(floor);
            let exponent = C::if_equal(magnitude, C::int(0), floor, exponent);
            let exponent = C::if_equal(field, C::int(255), floor, exponent);
            *largest = C::max(C::max(*largest, exponent), floor);
        }
        largest
    }
}

/// The largest exponents of products.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn largest<C: Vector>(terms: &Terms, pairs: Range<usize>) -> [C::Ints; COLUMNS] {
    // SAFETY: the caller's.
    unsafe {
        let mut largest = [C::int(1 << 31 | 1 << 15); COLUMNS];
        for pair in pairs {
            let rows = C::ints(terms.rows(pair));
            let columns = terms.columns(pair);
            for j in 0..COLUMNS {
                largest[j] = C::max_halves(largest[j], C::add_halves(rows, C::int(columns[j] as i32)));
            }
        }
        for largest in &mut largest {
            *largest = C::max(C::down::<16>(C::left::<16>(*largest)), C::down::<16>(*largest));
        }
        largest
    }
}

/// [`align`] where all products are so large, or zero, that it does not matter what an accumulator that is zero or subnormal counts as,
/// nor where the floor is. What is infinite or NaN has an exponent of 128.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn align_quickly<C: Vector>(terms: &Terms, pairs: Range<usize>, c: &[C::Floats; COLUMNS]) -> [C::Ints; COLUMNS] {
    // SAFETY: the caller's.
    unsafe {
        let mut largest = largest::<C>(terms, pairs);
        for (largest, &c) in largest.iter_mut().zip(c) {
            let field = C::right::<24>(C::left::<1>(C::bits(c)));
            *largest = C::max(*largest, C::sub(field, C::int(127)));
        }
        largest
    }
}

/// Biased powers of two that products are multiplied with, and these; where they are cut off above there are no products.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn scales<C: Vector>(exponents: &[C::Ints; COLUMNS], fraction: i32) -> Scales<C> {
    // SAFETY: the caller's.
    unsafe {
        let mut powers = [C::int(0); COLUMNS];
        let mut scales = [C::float(0.0); COLUMNS];
        for j in 0..COLUMNS {
            powers[j] = C::sub(C::int(fraction + 127), exponents[j]);
            scales[j] = C::of_bits(C::left::<23>(C::min(powers[j], C::int(254))));
        }
        (powers, scales)
    }
}

type Scales<C> = ([<C as Vector>::Ints; COLUMNS], [<C as Vector>::Floats; COLUMNS]);

/// The sums of the products, in units of the last bit that is kept.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn products<C: Vector, const APART: bool>(
    terms: &Terms,
    pairs: Range<usize>,
    exponents: &[C::Ints; COLUMNS],
    fraction: i32,
) -> [C::Doubles; COLUMNS] {
    // SAFETY: the caller's.
    unsafe {
        let scales = scales::<C>(exponents, fraction);
        let mut sums = [C::zero(); COLUMNS];
        for first in pairs.clone().step_by(CHUNK) {
            let sum = chunk::<C, APART>(terms, first..pairs.end.min(first + CHUNK), &scales);
            for (sums, sum) in sums.iter_mut().zip(sum) {
                *sums = C::plus(*sums, sum);
            }
        }
        sums
    }
}

/// The sums of so many products as `i32` holds for certain.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn chunk<C: Vector, const APART: bool>(
    terms: &Terms,
    pairs: Range<usize>,
    (powers, scales): &Scales<C>,
) -> [C::Ints; COLUMNS] {
    // SAFETY: the caller's; terms are below 2^(2 + fraction), and no fraction has more than 25 bits.
    unsafe {
        let mut sum = [C::int(0); COLUMNS];
        for pair in pairs {
            let (own, others) = (C::ints(terms.rows(pair)), terms.columns(pair));
            let (rows, columns) = (terms.row_values(pair), terms.column_values(pair));
            for second in 0..2 {
                let rows = C::floats(lanes_at(rows, second * LANES));
                for j in 0..COLUMNS {
                    let product = C::mul(rows, C::float(columns[second * LANES + j]));
                    let scale = if APART {
                        let both = C::add_halves(own, C::int(others[j] as i32));
                        let both = if second == 0 { C::left::<16>(both) } else { both };
                        // What is far below the last bit stays below it.
                        let power = C::max(C::add(C::down::<16>(both), powers[j]), C::int(27));
                        C::of_bits(C::left::<23>(power))
                    } else {
                        scales[j]
                    };
                    sum[j] = C::add(sum[j], C::truncate(C::mul(product, scale)));
                }
            }
        }
        sum
    }
}

/// Adds the accumulators and converts the sums to those of the next block. What was infinite or NaN stays so.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn finish<C: Vector>(
    sums: &[C::Doubles; COLUMNS],
    exponents: &[C::Ints; COLUMNS],
    rule: &Truncated,
    c: &mut [C::Floats; COLUMNS],
) {
    // SAFETY: the caller's; terms are below 2^(1 + fraction), and no fraction has more than 25 bits.
    unsafe {
        let mut results = [C::int(0); COLUMNS];
        let mut closed = *sums;
        for j in 0..COLUMNS {
            closed[j] = C::close(sums[j], c[j], C::sub(C::int(rule.fraction), exponents[j]));
            results[j] = C::bits(C::to_f32(closed[j]));
        }
        match rule.outcome {
            Outcome::F32 => {}
            Outcome::E8m13 => {
                for result in &mut results {
                    // As [`convert::to_e8m13`].
                    *result = C::and(*result, C::int(!0x3ff));
                }
            }
            Outcome::F16 => {
                for (results, sums) in results.as_chunks_mut::<2>().0.iter_mut().zip(closed.as_chunks::<2>().0) {
                    to_halves::<C>(results, sums);
                }
            }
        }
        for (c, result) in c.iter_mut().zip(results) {
            let before = C::bits(*c);
            let magnitude = C::and(before, C::int(i32::MAX));
            let infinite = C::int(0xff << 23);
            let special = C::if_equal(magnitude, infinite, before, C::int(convert::NAN as i32));
            let result = C::if_equal(C::and(before, infinite), infinite, special, result);
            *c = C::of_bits(result);
        }
    }
}

/// Two columns of sums, and of what [`convert::to_f32`] made of them: as `f16` rounds them.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn to_halves<C: Vector>(results: &mut [C::Ints; 2], sums: &[C::Doubles; 2]) {
    // SAFETY: the caller's.
    unsafe {
        let mut run = [0.0; WARP];
        for (j, half) in run.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let mut exact = [0.0; LANES];
            C::store_doubles(sums[j], &mut exact);
            C::store_floats(C::of_bits(results[j]), half);
            for l in 0..LANES {
                half[l] = convert::to_odd(half[l], exact[l]);
            }
        }
        let mut run = C::widen_f16(&C::narrow_f16(&run));
        for value in &mut run {
            *value = convert::positive_zero(*value);
        }
        for (result, half) in results.iter_mut().zip(run.as_chunks().0) {
            *result = C::bits(C::floats(half));
        }
    }
}
