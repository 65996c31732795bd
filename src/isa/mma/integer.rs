//! Integers and bits: exact sums, to which C is added, wrapping or saturating once at the end (PTX ISA, `mma`).

use super::decode::numbers;
use super::level::{self, Kernel};
use super::vector::Vector;
use super::{BitOp, Element, LANES, Product, Scratch, Tiles, stride};
use crate::isa::simd::Level;

/// Products of eight bits whose sum `f32` holds exactly: 255² · 256 < 2^24.
const CHUNK: usize = 256;
const COLUMNS: usize = 4;

pub fn multiply(level: Level, product: &Product, tiles: Tiles, scratch: &mut Scratch) {
    if tiles.packed && product.packs() == 4 {
        level::run::<Bytes>(level, (product, tiles, &mut scratch.pairs));
        return;
    }
    let [a, b] = &mut scratch.numbers;
    numbers(level, product.a, &tiles.a[..product.k * stride(product.m)], a);
    numbers(level, product.b, &tiles.b[..product.k * product.n], b);
    level::run::<Sum>(level, (product, a, b, tiles.d));
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
                        let other = b[k * product.n + n + j];
                        for l in 0..LANES {
                            sum[l] += row[l] * other;
                        }
                    }
                }
                for (j, sum) in sums.iter().enumerate() {
                    let mut whole = [0; LANES];
                    for l in 0..LANES {
                        // SAFETY: a whole number below 2^24.
                        whole[l] = unsafe { sum[l].to_int_unchecked::<i32>() };
                    }
                    add_to(&mut d[(n + j) * stride + m..][..LANES], &whole, product.saturate);
                }
            }
        }
    }
}

/// Adds to a column of C.
#[inline(always)]
fn add_to(c: &mut [u32], sums: &[i32; LANES], saturate: bool) {
    for (c, &sum) in c.iter_mut().zip(sums) {
        let before = *c as i32;
        let wrapped = before.wrapping_add(sum);
        *c = if saturate { before.saturating_add(sum) } else { wrapped } as u32;
    }
}

/// Words of four bytes: as two pairs of numbers of 16 bits, whose products are summed two at a time.
struct Bytes;

impl Kernel for Bytes {
    type Arguments<'a> = (&'a Product, Tiles<'a>, &'a mut Vec<[[u32; LANES]; 2]>);
    #[inline(always)]
    unsafe fn run<C: Vector>((product, tiles, pairs): Self::Arguments<'_>) {
        let (stride, words) = (stride(product.m), product.k / 4);
        // B comes by vectors, whichever columns they have.
        pairs.clear();
        for words in tiles.b[..words * product.n].chunks(LANES) {
            let mut whole = [0; LANES];
            whole[..words.len()].copy_from_slice(words);
            let mut both = [[0; LANES]; 2];
            // SAFETY: the caller's.
            unsafe {
                for (pair, vector) in both.iter_mut().zip(apart::<C>(C::ints(&whole), product.b)) {
                    C::store(vector, pair);
                }
            }
            pairs.push(both);
        }
        for n in (0..product.n).step_by(COLUMNS) {
            for m in (0..product.m).step_by(LANES) {
                // SAFETY: the caller's; sums of two products of numbers of eight bits fit `i32`, and so do those of all along k.
                unsafe {
                    let mut sums = [C::int(0); COLUMNS];
                    for word in 0..words {
                        let rows = tiles.a[word * stride + m..]
                            .first_chunk()
                            .expect("rows come in sixteens");
                        let rows = apart::<C>(C::ints(rows), product.a);
                        let place = word * product.n + n;
                        for second in 0..2 {
                            let columns: &[u32; COLUMNS] = pairs[place / LANES][second][place % LANES..]
                                .first_chunk()
                                .expect("columns come in fours");
                            for j in 0..COLUMNS {
                                let products = C::multiply_halves(rows[second], C::int(columns[j] as i32));
                                sums[j] = C::add(sums[j], products);
                            }
                        }
                    }
                    for (j, sum) in sums.into_iter().enumerate() {
                        let mut whole = [0; LANES];
                        C::store(sum, &mut whole);
                        let whole = whole.map(|sum| sum as i32);
                        add_to(&mut tiles.d[(n + j) * stride + m..][..LANES], &whole, product.saturate);
                    }
                }
            }
        }
    }
}

/// The first and third bytes of words, and the others, as numbers of 16 bits.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn apart<C: Vector>(words: C::Ints, element: Element) -> [C::Ints; 2] {
    // SAFETY: the caller's.
    unsafe {
        if element == Element::S8 {
            [
                C::down_halves::<8>(C::left_halves::<8>(words)),
                C::down_halves::<8>(words),
            ]
        } else {
            [C::and(words, C::int(0x00ff_00ff)), C::right_halves::<8>(words)]
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
                    let other = tiles.b[k * product.n + n];
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
