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
/// If a slice is shorter than that.
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
        for column in 0..n {
            let to = &mut d[column * m..][..m];
            for depth in 0..k {
                let other = b[column * k + depth];
                let rows = &a[depth * m..][..m];
                for (to, &row) in to.iter_mut().zip(rows) {
                    *to = match rounding {
                        Rounding::Rn => float::fma_f64::<C>(row, other, *to),
                        rounding => float::fma_f64_rnd(row, other, *to, rounding.code()),
                    };
                }
            }
        }
    }
}
