//! Arithmetic of the CPU on `f64` in a rounding mode that is not its own (Intel 64 Software Developer's Manual, volume 1, 10.2.3: MXCSR).
//! The mode changes for one instruction, so that nobody else computes in it.

use std::arch::asm;

use crate::isa::types::Rounding;

/// MXCSR with all exceptions masked, subnormals as they are, and this mode.
fn control(mode: Rounding) -> u32 {
    let mode = match mode {
        Rounding::Rm => 1,
        Rounding::Rp => 2,
        Rounding::Rz => 3,
        Rounding::Rn | Rounding::Rna | Rounding::Rs => 0,
    };
    0x1f80 | mode << 13
}

/// An instruction between two changes of the mode.
macro_rules! rounded {
    ($instruction:literal, $mode:ident, $first:ident $(, $name:ident = $more:ident)*) => {{
        let (mut own, mut result, control) = (0_u32, $first, control($mode));
        // SAFETY: MXCSR is as it was when the last line is done. The instruction reads and writes registers alone.
        unsafe {
            asm!(
                "stmxcsr dword ptr [{own}]",
                "ldmxcsr dword ptr [{control}]",
                $instruction,
                "ldmxcsr dword ptr [{own}]",
                own = in(reg) &raw mut own,
                control = in(reg) &raw const control,
                result = inout(xmm_reg) result,
                $($name = in(xmm_reg) $more,)*
                options(nostack, preserves_flags),
            );
        }
        result
    }};
}

#[inline(always)]
pub(super) fn add(a: f64, b: f64, mode: Rounding) -> f64 {
    rounded!("addsd {result}, {b}", mode, a, b = b)
}

#[inline(always)]
pub(super) fn mul(a: f64, b: f64, mode: Rounding) -> f64 {
    rounded!("mulsd {result}, {b}", mode, a, b = b)
}

#[inline(always)]
pub(super) fn div(a: f64, b: f64, mode: Rounding) -> f64 {
    rounded!("divsd {result}, {b}", mode, a, b = b)
}

#[inline(always)]
pub(super) fn sqrt(a: f64, mode: Rounding) -> f64 {
    rounded!("sqrtsd {result}, {result}", mode, a)
}

/// `a · b + c`; `None`: the CPU has no such instruction.
#[inline(always)]
pub(super) fn fma(a: f64, b: f64, c: f64, mode: Rounding) -> Option<f64> {
    if !std::arch::is_x86_feature_detected!("fma") {
        return None;
    }
    // The instruction adds the product of its last two to its first.
    Some(rounded!("vfmadd231sd {result}, {a}, {b}", mode, c, a = a, b = b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::soft::{self, Binary64};

    const MODES: [Rounding; 4] = [Rounding::Rn, Rounding::Rm, Rounding::Rp, Rounding::Rz];

    /// Zeros, subnormals, ends of the range, neighbours of 1, infinities and NaN, of both signs, and numbers whose sums, products and
    /// quotients are tiny, huge, exact and halfway.
    fn numbers() -> Vec<f64> {
        let edges: [u64; 17] = [
            0,
            1,
            2,
            0x000f_ffff_ffff_ffff,
            0x0010_0000_0000_0000,
            0x0010_0000_0000_0001,
            0x1ff0_0000_0000_0001,
            0x2000_0000_0000_0000,
            0x3c90_0000_0000_0000,
            0x3fef_ffff_ffff_ffff,
            0x3ff0_0000_0000_0000,
            0x3ff0_0000_0000_0001,
            0x4008_0000_0000_0000,
            0x5fff_ffff_ffff_ffff,
            0x7fef_ffff_ffff_ffff,
            0x7ff0_0000_0000_0000,
            0x7ff8_0000_0000_0000,
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let random = (0..40).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Exponents near each other, so that all of a sum counts.
            state >> 12 | ((state & 63) + 990) << 52
        });
        let all = edges.into_iter().chain(random);
        all.flat_map(|bits| [bits, bits | 1 << 63])
            .map(f64::from_bits)
            .collect()
    }

    #[track_caller]
    fn same(found: f64, expected: u64, what: std::fmt::Arguments<'_>) {
        let expected = f64::from_bits(expected);
        let equal = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
        assert!(equal, "{what}: {found:e} for {expected:e}");
    }

    #[test]
    fn sums_products_quotients_and_roots_are_those_of_integer_arithmetic() {
        let numbers = numbers();
        for mode in MODES {
            for &a in &numbers {
                let x = a.to_bits();
                same(
                    sqrt(a, mode),
                    soft::sqrt::<Binary64>(x, mode),
                    format_args!("√{a:e} {mode:?}"),
                );
                for &b in &numbers {
                    let y = b.to_bits();
                    same(
                        add(a, b, mode),
                        soft::add::<Binary64>(x, y, mode),
                        format_args!("{a:e} + {b:e} {mode:?}"),
                    );
                    same(
                        mul(a, b, mode),
                        soft::mul::<Binary64>(x, y, mode),
                        format_args!("{a:e} · {b:e} {mode:?}"),
                    );
                    same(
                        div(a, b, mode),
                        soft::div::<Binary64>(x, y, mode),
                        format_args!("{a:e} / {b:e} {mode:?}"),
                    );
                }
            }
        }
    }

    #[test]
    fn fused_products_are_those_of_integer_arithmetic() {
        let numbers: Vec<f64> = numbers().into_iter().step_by(3).collect();
        for mode in MODES {
            for (&a, &b) in numbers.iter().flat_map(|a| numbers.iter().map(move |b| (a, b))) {
                for &c in &numbers {
                    let Some(found) = fma(a, b, c, mode) else { return };
                    let expected = soft::fma::<Binary64>(a.to_bits(), b.to_bits(), c.to_bits(), mode);
                    same(found, expected, format_args!("{a:e} · {b:e} + {c:e} {mode:?}"));
                }
            }
        }
    }

    /// Whoever computes next does so in the mode of the process.
    #[test]
    fn the_mode_is_as_it_was() {
        assert!(div(1.0, 3.0, Rounding::Rp) > div(1.0, 3.0, Rounding::Rm));
        let third = std::hint::black_box(1.0) / std::hint::black_box(3.0_f64);
        assert_eq!(third, div(1.0, 3.0, Rounding::Rn));
    }
}
