//! The truncated fused dot product, sixteen rows and four columns at a time.
//!
//! A product's magnitude is below 4 and at most 27 bits of it remain, so that sixteen of them fit an `i32`: products are
//! made in `f32`, where they are exact, scaled to units of the last bit that is kept, and cut by the conversion to `i32`.
//! Infinities and NaN among the operands are rare: they count as zero here, and their rows and columns are computed
//! again, one element at a time (`single.rs`).

use super::decode::Operand;
use super::level::{self, Kernel};
use super::rule::{Outcome, Truncated};
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
    let mut order = [0u16; 256];
    for (at, column) in order[..product.k].iter_mut().enumerate() {
        *column = rule.order.column(at, product.k) as u16;
    }
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
            for block in order[..product.k].chunks(rule.block) {
                let at = Place {
                    a,
                    b,
                    block,
                    stride,
                    k: product.k,
                    m,
                    n,
                };
                // SAFETY: the caller's.
                unsafe {
                    let exponents = align::<C>(&at, &c, rule.floor, least);
                    let sums = products::<C, APART>(&at, &exponents, rule.fraction);
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

/// Where a block lies in the operands.
struct Place<'a> {
    a: &'a Operand,
    b: &'a Operand,
    /// The columns of A that it takes.
    block: &'a [u16],
    stride: usize,
    k: usize,
    m: usize,
    n: usize,
}

impl Place<'_> {
    /// Sixteen rows of a column of A.
    #[inline(always)]
    fn rows<'t, T>(&self, from: &'t [T], column: usize) -> &'t [T; LANES] {
        from[column * self.stride + self.m..]
            .first_chunk()
            .expect("columns are whole")
    }
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
unsafe fn align<C: Vector>(at: &Place, c: &Block<f32>, floor: i32, least: i32) -> Block<i32> {
    let mut largest = [floor; TILE];
    for i in 0..TILE {
        largest[i] = floor.max(convert::exponent(c[i], least));
    }
    // SAFETY: the caller's.
    unsafe {
        let mut vectors: [C::Ints; COLUMNS] = std::array::from_fn(|j| C::ints(lanes(&largest, j)));
        for &column in at.block {
            let column = usize::from(column);
            let rows = C::ints(at.rows(&at.a.exponents, column));
            for (j, vector) in vectors.iter_mut().enumerate() {
                let other = C::int(at.b.exponents[(at.n + j) * at.k + column]);
                *vector = C::max(*vector, C::add(rows, other));
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
unsafe fn products<C: Vector, const APART: bool>(at: &Place, exponents: &Block<i32>, fraction: i32) -> Block<f64> {
    // Biased powers of two that products are multiplied with; where they are cut off above there are no products.
    let mut powers = [0i32; TILE];
    for i in 0..TILE {
        let power = fraction - exponents[i] + 127;
        powers[i] = if APART { power } else { power.min(254) };
    }
    let mut sums = [0f64; TILE];
    for chunk in at.block.chunks(CHUNK) {
        // SAFETY: the caller's; terms are below 2^(2 + fraction), and no fraction has more than 25 bits.
        unsafe {
            let powers: [C::Ints; COLUMNS] = std::array::from_fn(|j| C::ints(lanes(&powers, j)));
            let mut vectors = [C::int(0); COLUMNS];
            for &column in chunk {
                let column = usize::from(column);
                let values = C::floats(at.rows(&at.a.values, column));
                let own = C::ints(at.rows(&at.a.exponents, column));
                for (j, vector) in vectors.iter_mut().enumerate() {
                    let place = (at.n + j) * at.k + column;
                    let product = C::mul(values, C::float(at.b.values[place]));
                    let power = if APART {
                        let both = C::add(own, C::int(at.b.exponents[place]));
                        // What is far below the last bit stays below it.
                        C::max(C::add(both, powers[j]), C::int(27))
                    } else {
                        powers[j]
                    };
                    *vector = C::add(*vector, C::truncate(C::mul(product, C::power(power))));
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
    let mut result = [0f32; TILE];
    for i in 0..TILE {
        let finite = if c[i].is_finite() { c[i] } else { 0.0 };
        let term = f64::from(finite) * convert::power(fraction - exponents[i]);
        // SAFETY: terms are below 2^(1 + fraction), and no fraction has more than 25 bits.
        let sum = sums[i] + f64::from(unsafe { term.to_int_unchecked::<i32>() });
        let sum = sum * convert::power(exponents[i] - fraction);
        result[i] = match OUTCOME {
            0 => convert::to_f32(sum),
            1 => convert::to_e8m13(sum),
            _ => convert::to_odd(sum),
        };
    }
    if OUTCOME == 2 {
        for run in result.as_chunks_mut::<WARP>().0 {
            // SAFETY: the caller's.
            *run = unsafe { C::widen_f16(&C::narrow_f16(run)) };
        }
    }
    for i in 0..TILE {
        let before = crate::isa::number::canonical(c[i]);
        c[i] = if before.is_finite() { result[i] } else { before };
    }
}
