//! Products of `e2m1` with a factor for each 16 or 32 columns (`.kind::mxf4`, `.kind::mxf4nvf4`): sixteen products are
//! summed exactly, the sum is multiplied by both factors, and these terms are aligned and cut to 35 bits (X. Li et al.,
//! "MMA-Sim"). Blocks of a sparse A have as many products, and so twice as many columns.

use super::decode::{NONE, numbers};
use super::level::{self, Kernel};
use super::single::{Value, factor};
use super::vector::Vector;
use super::{LANES, Product, Scaling, Scratch, Tiles, convert, stride};
use crate::isa::simd::Level;

const FRACTION: i32 = 35;
const FLOOR: i32 = -133;
/// Products in a group.
const GROUP: usize = 16;
/// Groups along k.
const GROUPS: usize = 4;

/// A factor as significand and exponent; no number for NaN.
#[derive(Clone, Copy)]
struct Factor {
    significand: f64,
    exponent: i32,
}

fn factors(scaling: Scaling, codes: &[u8]) -> impl Fn(usize, usize) -> Factor {
    move |row, at| match factor(scaling.ty, codes[row * scaling.factors + at]) {
        Value::Finite {
            significand,
            exponent,
            fraction,
            ..
        } => Factor {
            significand: f64::from(significand) * convert::power(-(fraction as i32)),
            exponent: if significand == 0 { NONE } else { exponent },
        },
        Value::Nan | Value::Infinity { .. } => Factor {
            significand: f64::NAN,
            exponent: 0,
        },
    }
}

pub fn multiply(level: Level, product: &Product, tiles: Tiles, scratch: &mut Scratch) {
    let Some(scaling) = product.scaling else { return };
    let [a, b] = &mut scratch.numbers;
    numbers(level, product.a, &tiles.a[..product.k * stride(product.m)], a);
    numbers(level, product.b, &tiles.b[..product.k * product.n], b);
    level::run::<Grouped>(level, (product, scaling, tiles, a, b));
}

struct Grouped;

impl Kernel for Grouped {
    type Arguments<'a> = (&'a Product, Scaling, Tiles<'a>, &'a [f32], &'a [f32]);
    #[inline(always)]
    unsafe fn run<C: Vector>((product, scaling, tiles, a, b): Self::Arguments<'_>) {
        let rows = factors(scaling, tiles.scale_a);
        let columns = factors(scaling, tiles.scale_b);
        let stride = stride(product.m);
        let group = product.k / GROUPS;
        debug_assert!(group == GROUP || (product.sparse && group == 2 * GROUP));
        for m in (0..product.m).step_by(LANES) {
            // Rows beyond the last have no factors.
            let scales: [[Factor; LANES]; GROUPS] = std::array::from_fn(|g| {
                std::array::from_fn(|l| rows((m + l).min(product.m - 1), g * scaling.factors / GROUPS))
            });
            for n in 0..product.n {
                let c: &mut [u32; LANES] = (&mut tiles.d[n * stride + m..][..LANES]).try_into().unwrap();
                let mut terms = [[0f64; LANES]; GROUPS];
                let mut exponents = [[NONE; LANES]; GROUPS];
                for g in 0..GROUPS {
                    let mut sum = [0f32; LANES];
                    for k in g * group..(g + 1) * group {
                        let row: &[f32; LANES] = a[k * stride + m..][..LANES].try_into().unwrap();
                        for l in 0..LANES {
                            // Multiples of a quarter, of 576 at most.
                            sum[l] += row[l] * b[k * product.n + n];
                        }
                    }
                    let other = columns(n, g * scaling.factors / GROUPS);
                    for l in 0..LANES {
                        terms[g][l] = f64::from(sum[l]) * scales[g][l].significand * other.significand;
                        exponents[g][l] = scales[g][l].exponent + other.exponent;
                    }
                }
                for l in 0..LANES {
                    let of = |array: &[[f64; LANES]; GROUPS]| std::array::from_fn(|g| array[g][l]);
                    c[l] = sum(
                        of(&terms),
                        std::array::from_fn(|g| exponents[g][l]),
                        f32::from_bits(c[l]),
                    );
                }
            }
        }
    }
}

/// The terms and C, aligned, cut, summed and cut to `f32`.
#[inline(always)]
fn sum(terms: [f64; GROUPS], exponents: [i32; GROUPS], c: f32) -> u32 {
    if c.is_nan() || terms.iter().any(|term| term.is_nan()) {
        return convert::NAN;
    }
    if c.is_infinite() {
        return c.to_bits();
    }
    let mut largest = FLOOR.max(convert::exponent(c, -126));
    for g in 0..GROUPS {
        largest = largest.max(if terms[g] == 0.0 { NONE } else { exponents[g] });
    }
    let mut sum = (f64::from(c) * convert::power(FRACTION - largest)) as i64;
    for g in 0..GROUPS {
        // Terms are below 2^12: what is cut off here is far below the last bit.
        let power = (FRACTION + exponents[g] - largest).max(-100);
        let term = if terms[g] == 0.0 {
            0.0
        } else {
            terms[g] * convert::power(power)
        };
        sum += term as i64;
    }
    convert::to_f32(sum as f64 * convert::power(largest - FRACTION)).to_bits()
}
