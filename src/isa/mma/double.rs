//! `f64`: a chain of `fma`, k ascending, each rounded (X. Li et al., "MMA-Sim").

use super::level::{self, Kernel};
use super::vector::Vector;
use crate::isa::Rounding;
use crate::isa::float;
use crate::isa::simd::Level;

/// `D = A·B + C`, of `m` rows, `n` columns and depth `k`: row `i` of A's column `j` at `j * m + i`, row `i` of B's column
/// `j` at `j * k + i`, row `i` of D's column `j`, which is C before, at `j * m + i`.
///
/// # Panics
/// If a slice is shorter than that, or `m` is neither 8 nor 16, as in all shapes of `f64` (PTX ISA, mma).
pub fn multiply_f64(
    level: Level,
    (m, n, k): (usize, usize, usize),
    rounding: Rounding,
    a: &[f64],
    b: &[f64],
    d: &mut [f64],
) {
    level::run::<Chain>(level, ((m, n, k), rounding, a, b, d));
}

struct Chain;

impl Kernel for Chain {
    type Arguments<'a> = ((usize, usize, usize), Rounding, &'a [f64], &'a [f64], &'a mut [f64]);
    #[inline(always)]
    unsafe fn run<C: Vector>(((m, n, k), rounding, a, b, d): Self::Arguments<'_>) {
        // Columns stay in registers, since their length is known.
        match m {
            8 => columns::<C, 8>((n, k), rounding, a, b, d),
            16 => columns::<C, 16>((n, k), rounding, a, b, d),
            _ => unreachable!("f64 has shapes of 8 and 16 rows"),
        }
    }
}

#[inline(always)]
fn fma<C: Vector>(a: f64, b: f64, c: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Rn => float::fma_f64::<C>(a, b, c),
        rounding => float::fma_f64_rnd(a, b, c, rounding.code()),
    }
}

#[inline(always)]
fn columns<C: Vector, const M: usize>((n, k): (usize, usize), rounding: Rounding, a: &[f64], b: &[f64], d: &mut [f64]) {
    let a = &a.as_chunks::<M>().0[..k];
    for (to, b) in d.as_chunks_mut::<M>().0[..n].iter_mut().zip(b.chunks_exact(k)) {
        let before = *to;
        if rounding == Rounding::Rn {
            let mut sums = before;
            for (rows, &other) in a.iter().zip(b) {
                for (sum, &row) in sums.iter_mut().zip(rows) {
                    *sum = C::fma64(row, other, *sum);
                }
            }
            *to = sums;
            // What is NaN once stays so, and which NaN it is asks for more care.
            let mut undefined = false;
            for sum in sums {
                undefined |= sum.is_nan();
            }
            if !undefined {
                continue;
            }
        }
        *to = before;
        for (rows, &other) in a.iter().zip(b) {
            for (sum, &row) in to.iter_mut().zip(rows) {
                *sum = fma::<C>(row, other, *sum, rounding);
            }
        }
    }
}
