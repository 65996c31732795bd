//! The truncated fused dot product, sixteen rows and four columns at a time.
//!
//! A product's magnitude is below 4 and at most 27 bits of it remain, so that sixteen of them fit an `i32`: products are
//! made in `f32`, where they are exact, scaled to units of the last bit that is kept, and cut by the conversion to `i32`.
//! Infinities and NaN among the operands are rare: they count as zero here, and their rows and columns are computed
//! again, one element at a time (`single.rs`).

use super::decode::Operand;
use super::level::{self, Kernel};
use super::rule::{Order, Outcome, Truncated};
use super::vector::Vector;
use super::{Element, LANES, Product, Scratch, Tiles, convert, single, stride};
use crate::isa::lanes::WARP;
use crate::isa::simd::Level;

/// Columns of B that are worked on at a time.
const COLUMNS: usize = 4;
/// Products that an `i32` can hold the sum of.
const CHUNK: usize = 16;

/// Elements of a tile, column by column.
const TILE: usize = LANES * COLUMNS;

type Block<T> = [T; TILE];

pub fn multiply(level: Level, product: &Product, rule: &Truncated, tiles: Tiles, scratch: &mut Scratch) {
    let apart = product.scaling.is_some() || is_wide(product.a) || is_wide(product.b);
    let Scratch { a, b } = scratch;
    a.decode(level, product.a, apart, &tiles.a[..product.k * stride(product.m)]);
    b.decode(level, product.b, apart, &tiles.b[..product.k * product.n]);
    let mut special = a.special | b.special;
    if product.scaling.is_some() {
        special |= scale(product, a, b, tiles.scale_a, tiles.scale_b);
    }
    if rule.order != Order::Ascending {
        a.arrange(rule.order, product.k, stride(product.m));
        b.arrange(rule.order, product.k, 1);
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
        single::mend(product, rule, tiles, &c);
    }
}

/// Whether products are beyond what `f32` holds.
fn is_wide(element: Element) -> bool {
    matches!(element, Element::Bf16 | Element::Tf32)
}

/// Adds the exponents of the factors to those of the elements. True if a factor is NaN.
fn scale(product: &Product, a: &mut Operand, b: &mut Operand, rows: &[u8], columns: &[u8]) -> bool {
    let Some(scaling) = product.scaling else { return false };
    let factors = scaling.factors;
    let add = |exponent: &mut i32, code: u8| *exponent += i32::from(code) - 127;
    for k in 0..product.k {
        let factor = k * factors / product.k;
        for m in 0..product.m {
            add(&mut a.exponents[k * stride(product.m) + m], rows[m * factors + factor]);
        }
        for n in 0..product.n {
            add(&mut b.exponents[n * product.k + k], columns[n * factors + factor]);
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
        // SAFETY: the caller's.
        unsafe {
            match work.rule.outcome {
                Outcome::F32 => blocks::<C, APART, 0>(work),
                Outcome::E8m13 => blocks::<C, APART, 1>(work),
                Outcome::F16 => blocks::<C, APART, 2>(work),
            }
        }
    }
}

/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn blocks<C: Vector, const APART: bool, const OUTCOME: usize>(work: Work<'_>) {
    let Work { product, rule, a, b, d } = work;
    let stride = stride(product.m);
    for n in (0..product.n).step_by(COLUMNS) {
        for m in (0..product.m).step_by(LANES) {
            let mut c: Block<f32> = [0.0; TILE];
            for j in 0..COLUMNS {
                let from = &d[(n + j) * stride + m..][..LANES];
                for l in 0..LANES {
                    c[j * LANES + l] = convert::read(product.c, from[l]);
                }
            }
            let addend = c;
            let mut least = convert::least(product.c);
            if rule.separate {
                c = [0.0; TILE];
            }
            for first in (0..product.k).step_by(rule.block) {
                let size = rule.block.min(product.k - first);
                let rows = first * stride + m..(first + size) * stride;
                let rows = Part {
                    values: &a.values[rows.clone()],
                    exponents: &a.exponents[rows],
                };
                let mut columns = [rows; COLUMNS];
                for (j, column) in columns.iter_mut().enumerate() {
                    let from = (n + j) * product.k + first;
                    *column = Part {
                        values: &b.values[from..][..size],
                        exponents: &b.exponents[from..][..size],
                    };
                }
                let place = Place {
                    size,
                    stride,
                    rows,
                    columns,
                };
                // SAFETY: the caller's.
                unsafe {
                    let exponents = align::<C>(&place, &c, rule.floor, least);
                    let sums = products::<C, APART>(&place, &exponents, rule.fraction);
                    finish::<C, OUTCOME>(&sums, &exponents, rule.fraction, &mut c);
                }
                least = convert::least(product.d);
            }
            if rule.separate {
                for i in 0..TILE {
                    c[i] += addend[i];
                }
            }
            for j in 0..COLUMNS {
                let to = &mut d[(n + j) * stride + m..][..LANES];
                for l in 0..LANES {
                    to[l] = convert::write(product.d, c[j * LANES + l]);
                }
            }
        }
    }
}

/// A block of the operands.
struct Place<'a> {
    /// Columns of A, and rows of B.
    size: usize,
    /// From a column of A to the next.
    stride: usize,
    /// Of A, from the first of sixteen rows on.
    rows: Part<'a>,
    columns: [Part<'a>; COLUMNS],
}

#[derive(Clone, Copy)]
struct Part<'a> {
    values: &'a [f32],
    exponents: &'a [i32],
}

/// Sixteen rows of column `at` of A.
#[inline(always)]
fn rows<T>(from: &[T], at: usize, stride: usize) -> &[T; LANES] {
    from[at * stride..].first_chunk().expect("columns are whole")
}

/// The sixteen lanes of a column of a tile.
#[inline(always)]
fn lanes<T>(tile: &Block<T>, j: usize) -> &[T; LANES] {
    &tile.as_chunks().0[j]
}

/// The exponents that the terms are aligned to.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn align<C: Vector>(place: &Place, c: &Block<f32>, floor: i32, least: i32) -> Block<i32> {
    let mut largest = [floor; TILE];
    for i in 0..TILE {
        largest[i] = floor.max(convert::exponent(c[i], least));
    }
    // SAFETY: the caller's.
    unsafe {
        let mut vectors = [C::int(0); COLUMNS];
        let mut columns: [&[i32]; COLUMNS] = [&[]; COLUMNS];
        for j in 0..COLUMNS {
            vectors[j] = C::ints(lanes(&largest, j));
            columns[j] = &place.columns[j].exponents[..place.size];
        }
        #[expect(
            clippy::needless_range_loop,
            reason = "four columns and the rows are walked side by side"
        )]
        for at in 0..place.size {
            let rows = C::ints(rows(place.rows.exponents, at, place.stride));
            for j in 0..COLUMNS {
                vectors[j] = C::max(vectors[j], C::add(rows, C::int(columns[j][at])));
            }
        }
        for (vector, lanes) in vectors.into_iter().zip(largest.as_chunks_mut().0) {
            C::store(vector, lanes);
        }
    }
    largest
}

/// The sums of the products, in units of the last bit that is kept.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn products<C: Vector, const APART: bool>(place: &Place, exponents: &Block<i32>, fraction: i32) -> Block<f64> {
    // Biased powers of two that products are multiplied with; where they are cut off above there are no products.
    let mut powers = [0i32; TILE];
    for i in 0..TILE {
        let power = fraction - exponents[i] + 127;
        powers[i] = if APART { power } else { power.min(254) };
    }
    let mut sums = [0f64; TILE];
    for first in (0..place.size).step_by(CHUNK) {
        let size = CHUNK.min(place.size - first);
        let mut of_columns: [&[f32]; COLUMNS] = [&[]; COLUMNS];
        let mut exponents: [&[i32]; COLUMNS] = [&[]; COLUMNS];
        for j in 0..COLUMNS {
            of_columns[j] = &place.columns[j].values[first..][..size];
            exponents[j] = &place.columns[j].exponents[first..][..size];
        }
        let from = first * place.stride;
        let (values, own) = (&place.rows.values[from..], &place.rows.exponents[from..]);
        // SAFETY: the caller's; terms are below 2^(2 + fraction), and no fraction has more than 25 bits.
        unsafe {
            let mut vectors = [C::int(0); COLUMNS];
            let mut of_lanes = vectors;
            for (j, of_lanes) in of_lanes.iter_mut().enumerate() {
                *of_lanes = C::ints(lanes(&powers, j));
            }
            for at in 0..size {
                let values = C::floats(rows(values, at, place.stride));
                let own = C::ints(rows(own, at, place.stride));
                for j in 0..COLUMNS {
                    let product = C::mul(values, C::float(of_columns[j][at]));
                    let power = if APART {
                        let both = C::add(own, C::int(exponents[j][at]));
                        // What is far below the last bit stays below it.
                        C::max(C::add(both, of_lanes[j]), C::int(27))
                    } else {
                        of_lanes[j]
                    };
                    vectors[j] = C::add(vectors[j], C::truncate(C::mul(product, C::power(power))));
                }
            }
            let mut sum = [0i32; TILE];
            for (vector, lanes) in vectors.into_iter().zip(sum.as_chunks_mut().0) {
                C::store(vector, lanes);
            }
            for i in 0..TILE {
                sums[i] += f64::from(sum[i]);
            }
        }
    }
    sums
}

/// Adds the accumulators and converts the sums to those of the next block. What was infinite or NaN stays so.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn finish<C: Vector, const OUTCOME: usize>(
    sums: &Block<f64>,
    exponents: &Block<i32>,
    fraction: i32,
    c: &mut Block<f32>,
) {
    let mut powers = [0; TILE];
    for i in 0..TILE {
        powers[i] = fraction - exponents[i];
    }
    let mut result = [0f32; TILE];
    for (j, result) in result.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        // SAFETY: the caller's; terms are below 2^(1 + fraction), and no fraction has more than 25 bits.
        let (sums, narrow) = unsafe {
            let sums = C::close(lanes(sums, j), lanes(c, j), lanes(&powers, j));
            (sums, C::to_f32(&sums))
        };
        for l in 0..LANES {
            result[l] = match OUTCOME {
                0 => narrow[l],
                1 => convert::to_e8m13(narrow[l]),
                _ => convert::to_odd(narrow[l], sums[l]),
            };
        }
    }
    if OUTCOME == 2 {
        for run in result.as_chunks_mut::<WARP>().0 {
            // SAFETY: the caller's.
            *run = unsafe { C::widen_f16(&C::narrow_f16(run)) };
            for value in run {
                *value = convert::positive_zero(*value);
            }
        }
    }
    for i in 0..TILE {
        let before = crate::isa::number::canonical(c[i]);
        c[i] = if before.is_finite() { result[i] } else { before };
    }
}
