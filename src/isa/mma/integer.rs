//! Integers and bits: exact sums, to which C is added, wrapping or saturating once at the end (PTX ISA, `mma`).

use super::level::{self, Kernel};
use super::vector::Vector;
use super::{BitOp, LANES, Product, Scratch, Tiles, stride};
use crate::isa::simd::Level;

/// Products of eight bits whose sum `f32` holds exactly: 255² · 256 < 2^24.
const CHUNK: usize = 256;
const COLUMNS: usize = 4;

pub fn multiply(level: Level, product: &Product, tiles: Tiles, scratch: &mut Scratch) {
    scratch
        .a
        .decode(level, product.a, false, &tiles.a[..product.k * stride(product.m)]);
    scratch
        .b
        .decode(level, product.b, false, &tiles.b[..product.k * product.n]);
    level::run::<Sum>(level, (product, &scratch.a.values, &scratch.b.values, tiles.d));
}

struct Sum;

impl Kernel for Sum {
    type Arguments<'a> = (&'a Product, &'a [f32], &'a [f32], &'a mut [u32]);
    #[inline(always)]
    unsafe fn run<C: Vector>((product, a, b, d): Self::Arguments<'_>) {
        debug_assert!(product.k <= CHUNK, "sums stay exact");
        let stride = stride(product.m);
        for n in (0..product.n).step_by(COLUMNS) {
            for m in (0..product.m).step_by(LANES) {
                let mut sums = [[0f32; LANES]; COLUMNS];
                for k in 0..product.k {
                    let row: &[f32; LANES] = a[k * stride + m..][..LANES].try_into().unwrap();
                    for (j, sum) in sums.iter_mut().enumerate() {
                        let other = b[(n + j) * product.k + k];
                        for l in 0..LANES {
                            sum[l] += row[l] * other;
                        }
                    }
                }
                for (j, sum) in sums.iter().enumerate() {
                    let to = &mut d[(n + j) * stride + m..][..LANES];
                    for l in 0..LANES {
                        // SAFETY: a whole number below 2^24.
                        let sum = unsafe { sum[l].to_int_unchecked::<i32>() };
                        let c = to[l] as i32;
                        let wrapped = c.wrapping_add(sum);
                        to[l] = if product.saturate {
                            c.saturating_add(sum)
                        } else {
                            wrapped
                        } as u32;
                    }
                }
            }
        }
    }
}

pub fn multiply_bits(level: Level, product: &Product, tiles: Tiles) {
    level::run::<Count>(level, (product, tiles));
}

struct Count;

impl Kernel for Count {
    type Arguments<'a> = (&'a Product, Tiles<'a>);
    #[inline(always)]
    unsafe fn run<C: Vector>((product, tiles): Self::Arguments<'_>) {
        let (stride, words) = (stride(product.m), product.codes());
        for n in 0..product.n {
            for m in (0..product.m).step_by(LANES) {
                let to: &mut [u32; LANES] = (&mut tiles.d[n * stride + m..][..LANES]).try_into().unwrap();
                for k in 0..words {
                    let row: &[u32; LANES] = tiles.a[k * stride + m..][..LANES].try_into().unwrap();
                    let other = tiles.b[n * words + k];
                    for l in 0..LANES {
                        let both = match product.bits {
                            BitOp::Xor => row[l] ^ other,
                            BitOp::And => row[l] & other,
                        };
                        to[l] = to[l].wrapping_add(both.count_ones());
                    }
                }
            }
        }
    }
}
