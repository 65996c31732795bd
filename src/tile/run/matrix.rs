//! Products of matrices. Elements are computed as `f32`, in which products of halves and of smaller formats are exact, or as
//! `f64` or `i32`; sums follow the order of the rows. The reference leaves their order open, and so do tensor cores.

use super::Run;
use super::convert::{from_f64, to_f32, to_f64, widen};
use crate::isa::mma::level::{self, Kernel};
use crate::isa::mma::vector::Vector;
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
                let mut sums = singles(c);
                level::run::<Multiply>(Level::current(), Matrices::F32(extent, &left, &right, &mut sums));
                match c.element {
                    Element::F32 => Data::B32(sums.into_iter().map(f32::to_bits).collect()),
                    element => Data::collect(
                        element,
                        sums.into_iter().map(|sum| from_f64(element, sum.into(), Rounding::Rn)),
                    ),
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
