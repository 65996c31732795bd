//! Products of matrices. Of halves and smaller formats they are those of the device's tensor cores, whose sums follow the order
//! of the columns. `f32`, which NVIDIA's compiler leaves to others, `f64` and `i32` are computed as they are, column after column, and
//! so are elements with factors, as `f32`; the reference leaves the order of sums open.

use super::Run;
use super::convert::{from_f64, to_f32, to_f64, widen};
use crate::isa::mma::level::{self, Kernel};
use crate::isa::mma::vector::Vector;
use crate::isa::mma::{self, Accumulator, Architecture, Product, Scratch, Tiles, Unit, stride};
use crate::isa::number::canonical;
use crate::isa::simd::Level;
use crate::isa::types::Rounding;
use crate::tile::op::Code;
use crate::tile::read::Op;
use crate::tile::types::Element;
use crate::tile::value::{Data, Tile, Wide, sign_extend, with_data};

/// How many products, of how many rows, columns and summands.
#[derive(Clone, Copy)]
struct Extent {
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
}

impl Run {
    pub(super) fn product(&self, op: &Op) -> Result<Tile, String> {
        let (a, b, c) = (self.tile(op, 0)?, self.tile(op, 1)?, self.tile(op, 2)?);
        let extent = extent(a, b, c)?;
        let data = match (op.code, c.element) {
            (Code::MmaI, Element::I32) if a.element == Element::I8 && b.element == Element::I8 => {
                let signed = [op.number(0) != 0, op.number(1) != 0];
                let [left, right] = [(a, signed[0]), (b, signed[1])].map(|(tile, signed)| {
                    let value = |bits: u64| {
                        if signed {
                            sign_extend(8, bits) as i32
                        } else {
                            bits as i32
                        }
                    };
                    with_data!(&tile.data, all => all.iter().map(|&bits| value(bits.wide())).collect::<Vec<i32>>())
                });
                let mut sums: Vec<i32> = (0..c.len()).map(|at| c.data.get(at) as i32).collect();
                level::run::<Multiply>(Level::current(), Matrices::I32(extent, &left, &right, &mut sums));
                Data::B32(sums.into_iter().map(|sum| sum as u32).collect())
            }
            (Code::MmaF, Element::F64) if a.element == Element::F64 && b.element == Element::F64 => {
                let [left, right, mut sums] = [a, b, c].map(|tile| {
                    with_data!(&tile.data, all => all.iter().map(|&bits| f64::from_bits(bits.wide())).collect::<Vec<f64>>())
                });
                level::run::<Multiply>(Level::current(), Matrices::F64(extent, &left, &right, &mut sums));
                Data::B64(sums.into_iter().map(f64::to_bits).collect())
            }
            (Code::MmaF, Element::F16 | Element::F32)
                if a.element == b.element && on_tensor_cores(a.element).is_some() =>
            {
                Data::collect(c.element, sums(self.tensor_cores, extent, [a, b, c], op.flag(0)))
            }
            (Code::MmaF | Code::MmaFScaled, Element::F16 | Element::F32)
                if a.element == b.element && a.element.is_float() && a.element != Element::F64 =>
            {
                let (mut left, mut right) = (singles(a), singles(b));
                if op.code == Code::MmaFScaled {
                    let Extent { batch, m, n, k } = extent;
                    let (rows, columns) = (self.tile(op, 3)?, self.tile(op, 4)?);
                    let blocks = rows.len() / (batch * m);
                    if blocks == 0 || k % blocks != 0 || columns.len() != batch * n * blocks {
                        return Err("scales that do not go with the operands".to_string());
                    }
                    let each = k / blocks;
                    for (at, value) in left.iter_mut().enumerate() {
                        *value *= to_f64(rows.element, rows.data.get(at / k * blocks + at % k / each)) as f32;
                    }
                    for (at, value) in right.iter_mut().enumerate() {
                        let (which, row, column) = (at / (k * n), at / n % k, at % n);
                        let place = (which * blocks + row / each) * n + column;
                        *value *= to_f64(columns.element, columns.data.get(place)) as f32;
                    }
                }
                let sums = single(extent, &left, &right, c);
                match c.element {
                    Element::F32 => Data::B32(sums.map(|sum| canonical(sum).to_bits()).collect()),
                    element => Data::collect(element, sums.map(|sum| from_f64(element, sum.into(), Rounding::Rn))),
                }
            }
            _ => return Err(format!("products of {} and {} in {}", a.element, b.element, c.element)),
        };
        Ok(Tile {
            shape: c.shape.clone(),
            element: c.element,
            data,
        })
    }
}

/// Sums of products of `f32`, to which C is added when they are there: that is how NVIDIA's compiler has it.
fn single(extent: Extent, left: &[f32], right: &[f32], c: &Tile) -> impl Iterator<Item = f32> {
    let mut sums = vec![0.0; c.len()];
    level::run::<Multiply>(Level::current(), Matrices::F32(extent, left, right, &mut sums));
    sums.into_iter().zip(singles(c)).map(|(sum, before)| sum + before)
}

/// What tensor cores multiply.
fn on_tensor_cores(element: Element) -> Option<mma::Element> {
    match element {
        Element::F16 => Some(mma::Element::F16),
        Element::Bf16 => Some(mma::Element::Bf16),
        Element::Tf32 => Some(mma::Element::Tf32),
        Element::E4m3 => Some(mma::Element::E4m3),
        Element::E5m2 => Some(mma::Element::E5m2),
        _ => None,
    }
}

/// Bits of the sums, row by row. The left operand of tensor cores lies column by column, the right one row by row: here it
/// is the other way round, so that they compute the transposed product.
///
/// Of eight bits Hopper keeps few bits of a sum: unless `fast`, the compiler has C added to it by ordinary arithmetic.
fn sums(cores: Architecture, extent: Extent, [a, b, c]: [&Tile; 3], fast: bool) -> impl Iterator<Item = u64> {
    /// Of columns at a time; what comes after is added to their sum, as tensor cores do anyway.
    const MOST: usize = 256;
    let is_eight = a.element.bits() == 8 && c.element == Element::F32;
    let apart = cores == Architecture::Hopper && is_eight && !fast;
    let Extent { batch, m, n, k } = extent;
    let codes = |tile: &Tile| -> Vec<u32> {
        with_data!(&tile.data, all => all.iter().map(|&bits| bits.wide() as u32).collect())
    };
    let (left, right, sums) = (codes(a), codes(b), codes(c));
    let element = on_tensor_cores(a.element).unwrap_or(mma::Element::F16);
    let accumulator = match c.element {
        Element::F16 => Accumulator::F16,
        _ => Accumulator::F32,
    };
    let unit = match cores {
        Architecture::Hopper => Unit::Wgmma,
        Architecture::BlackwellDatacenter => Unit::Tcgen05,
        _ => Unit::Mma,
    };
    // A row of sums, and of the right operand, is a column there; of columns there are four at least.
    let (row, rows) = (stride(n), m.next_multiple_of(4));
    let (mut d, mut scratch) = (vec![0; row * rows], Scratch::default());
    let (mut across, mut along) = (Vec::new(), Vec::new());
    let mut out = Vec::with_capacity(batch * m * n);
    for which in 0..batch {
        let lines = sums[which * m * n..][..m * n].chunks_exact(n);
        d.chunks_exact_mut(row)
            .zip(lines)
            .for_each(|(to, from)| to[..n].copy_from_slice(from));
        let before = apart.then(|| std::mem::replace(&mut d, vec![0; row * rows]));
        for first in (0..k).step_by(MOST) {
            let columns = MOST.min(k - first);
            across.clear();
            across.resize(columns * row, 0);
            let lines = right[which * k * n + first * n..].chunks_exact(n);
            across
                .chunks_exact_mut(row)
                .zip(lines)
                .for_each(|(to, from)| to[..n].copy_from_slice(from));
            along.clear();
            along.resize(rows * columns, 0);
            for (at, line) in left[which * m * k..][..m * k].chunks_exact(k).enumerate() {
                for (to, &code) in along.chunks_exact_mut(rows).zip(&line[first..][..columns]) {
                    to[at] = code;
                }
            }
            let product = Product::new([element; 2], [accumulator; 2], (n, rows, columns));
            let tiles = Tiles {
                a: &across,
                b: &along,
                packed: false,
                kept: &[],
                scale_a: &[],
                scale_b: &[],
                d: &mut d,
            };
            mma::multiply(&product, cores, unit, tiles, &mut scratch);
        }
        for (sum, before) in d.iter_mut().zip(before.iter().flatten()) {
            *sum = canonical(f32::from_bits(*sum) + f32::from_bits(*before)).to_bits();
        }
        out.extend(
            d.chunks_exact(row)
                .take(m)
                .flat_map(|line| line[..n].iter().map(|bits| u64::from(*bits))),
        );
    }
    out.into_iter()
}

fn extent(a: &Tile, b: &Tile, c: &Tile) -> Result<Extent, String> {
    let of = |tile: &Tile| match tile.shape[..] {
        [rows, columns] => Some((1, rows as usize, columns as usize)),
        [batch, rows, columns] => Some((batch as usize, rows as usize, columns as usize)),
        _ => None,
    };
    match (of(a), of(b), of(c)) {
        (Some((batch, m, k)), Some(right), Some(sums))
            if right == (batch, k, right.2) && sums == (batch, m, right.2) =>
        {
            let n = right.2;
            Ok(Extent { batch, m, n, k })
        }
        _ => Err(format!(
            "matrices of {:?}, {:?} and {:?} elements",
            &a.shape[..],
            &b.shape[..],
            &c.shape[..]
        )),
    }
}

fn singles(tile: &Tile) -> Vec<f32> {
    if let (Element::F16, Data::B16(all)) = (tile.element, &tile.data) {
        return widen(all);
    }
    with_data!(&tile.data, all => all.iter().map(|&bits| to_f32(tile.element, bits.wide())).collect())
}

/// Left, right, and sums, to which products are added.
enum Matrices<'a> {
    F32(Extent, &'a [f32], &'a [f32], &'a mut [f32]),
    F64(Extent, &'a [f64], &'a [f64], &'a mut [f64]),
    I32(Extent, &'a [i32], &'a [i32], &'a mut [i32]),
}

struct Multiply;

impl Kernel for Multiply {
    type Arguments<'a> = Matrices<'a>;
    #[inline(always)]
    unsafe fn run<C: Vector>(arguments: Matrices<'_>) {
        match arguments {
            Matrices::F32(extent, a, b, sums) => multiply::<f32, C>(extent, a, b, sums),
            Matrices::F64(extent, a, b, sums) => multiply::<f64, C>(extent, a, b, sums),
            Matrices::I32(extent, a, b, sums) => multiply::<i32, C>(extent, a, b, sums),
        }
    }
}

trait Number: Copy + Default {
    fn fused<C: Vector>(a: Self, b: Self, c: Self) -> Self;
}
impl Number for f32 {
    #[inline(always)]
    fn fused<C: Vector>(a: f32, b: f32, c: f32) -> f32 {
        C::fma32(a, b, c)
    }
}
impl Number for f64 {
    #[inline(always)]
    fn fused<C: Vector>(a: f64, b: f64, c: f64) -> f64 {
        C::fma64(a, b, c)
    }
}
impl Number for i32 {
    #[inline(always)]
    fn fused<C: Vector>(a: i32, b: i32, c: i32) -> i32 {
        a.wrapping_mul(b).wrapping_add(c)
    }
}

/// Sums that are kept in registers: so many rows of so many columns.
const ROWS: usize = 4;
const COLUMNS: usize = 32;

#[inline(always)]
fn multiply<T: Number, C: Vector>(extent: Extent, a: &[T], b: &[T], sums: &mut [T]) {
    let Extent { m, n, k, .. } = extent;
    let all = a
        .chunks_exact(m * k)
        .zip(b.chunks_exact(k * n))
        .zip(sums.chunks_exact_mut(m * n));
    for ((a, b), sums) in all {
        // Sizes are powers of two: either all blocks are whole, or there is less than one.
        if m >= ROWS && n >= COLUMNS {
            for column in (0..n).step_by(COLUMNS) {
                for row in (0..m).step_by(ROWS) {
                    block::<T, C>((n, k), &a[row * k..], &b[column..], &mut sums[row * n + column..]);
                }
            }
        } else {
            for row in 0..m {
                for i in 0..k {
                    let x = a[row * k + i];
                    for column in 0..n {
                        let sum = &mut sums[row * n + column];
                        *sum = T::fused::<C>(x, b[i * n + column], *sum);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn block<T: Number, C: Vector>((n, k): (usize, usize), a: &[T], b: &[T], sums: &mut [T]) {
    let mut own = [[T::default(); COLUMNS]; ROWS];
    for row in 0..ROWS {
        own[row].copy_from_slice(&sums[row * n..row * n + COLUMNS]);
    }
    for i in 0..k {
        let line = &b[i * n..i * n + COLUMNS];
        for row in 0..ROWS {
            let x = a[row * k + i];
            for column in 0..COLUMNS {
                own[row][column] = T::fused::<C>(x, line[column], own[row][column]);
            }
        }
    }
    for row in 0..ROWS {
        sums[row * n..row * n + COLUMNS].copy_from_slice(&own[row]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Products of 64 by 64 elements that an H100 computed, of a kernel of cuTile's that NVIDIA's `tileiras` 13.5 compiled.
    #[test]
    fn products_have_the_bits_of_hardware() {
        let mut count = 0;
        for line in crate::tile::tests::of_hardware("product") {
            let [element, accumulator, given @ .., expected] = &line[..] else {
                panic!("{line:?}");
            };
            let named = |name: &str| match name {
                "f16" => Element::F16,
                "bf16" => Element::Bf16,
                "e4m3" => Element::E4m3,
                "e5m2" => Element::E5m2,
                _ => Element::F32,
            };
            let (of, to) = (named(element), named(accumulator));
            let tile = |hex: &str, element: Element| Tile {
                shape: [64, 64].into_iter().collect(),
                element,
                data: Data::collect(element, crate::tile::tests::numbers(hex, element.bits() / 8)),
            };
            let [a, b, c] = [tile(&given[0], of), tile(&given[1], of), tile(&given[2], to)];
            let extent = extent(&a, &b, &c).expect("matrices");
            let found: Vec<u64> = match of {
                Element::F32 => single(extent, &singles(&a), &singles(&b), &c)
                    .map(|sum| sum.to_bits().into())
                    .collect(),
                _ => sums(Architecture::Hopper, extent, [&a, &b, &c], false).collect(),
            };
            let expected: Vec<u64> = crate::tile::tests::numbers(expected, to.bits() / 8).collect();
            assert_eq!(found, expected, "{element} to {accumulator}");
            count += 1;
        }
        assert_eq!(count, 6);
    }
}
