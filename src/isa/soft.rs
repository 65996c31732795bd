//! Floating-point arithmetic in integers: every format, every rounding mode, exact. Slow beside the hardware, which does
//! round-to-nearest of `f32` and `f64`; this does the rest without touching the CPU's rounding mode, and is the fused
//! multiply-add of CPUs that have none. Knows nothing of PTX.

use super::types::Rounding;

/// A binary interchange format: precision (with the hidden bit) and width of the exponent.
pub trait Format: 'static {
    const PRECISION: u32;
    const EXPONENT_BITS: u32;
    const BIAS: i32 = (1 << (Self::EXPONENT_BITS - 1)) - 1;
    /// Exponent of the least normal number.
    const LEAST: i32 = 1 - Self::BIAS;
    const INFINITY: u64 = ((1 << Self::EXPONENT_BITS) - 1) << (Self::PRECISION - 1);
    const SIGN: u64 = 1 << (Self::PRECISION - 1 + Self::EXPONENT_BITS);
    /// The NaN that arithmetic in this format gives.
    const NAN: u64;
}
macro_rules! formats {
    ($($(#[$doc:meta])* $name:ident $precision:literal $exponent:literal $nan:literal;)*) => {$(
        $(#[$doc])*
        pub struct $name;
        impl Format for $name {
            const PRECISION: u32 = $precision;
            const EXPONENT_BITS: u32 = $exponent;
            const NAN: u64 = $nan;
        }
    )*};
}
formats! {
    Binary16 11 5 0x7fff;
    Bfloat16 8 8 0x7fff;
    Binary32 24 8 0x7fff_ffff;
    Binary64 53 11 0xfff8_0000_0000_0000;
    /// The range of `f32` and ten fraction bits; in a register its low 13 bits, which are not here, are zero.
    Tf32 11 8 0x3ffff;
}

/// What bits stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    Nan,
    Infinity {
        negative: bool,
    },
    /// `(-1)^negative · significand · 2^exponent`; zero has a zero significand.
    Finite {
        negative: bool,
        significand: u64,
        exponent: i32,
    },
}

pub fn unpack<F: Format>(bits: u64) -> Number {
    let negative = bits & F::SIGN != 0;
    let fraction = bits & ((1 << (F::PRECISION - 1)) - 1);
    let biased = (bits & F::INFINITY) >> (F::PRECISION - 1);
    let unit = 1 - F::BIAS - (F::PRECISION as i32 - 1);
    if bits & F::INFINITY == F::INFINITY {
        if fraction != 0 {
            Number::Nan
        } else {
            Number::Infinity { negative }
        }
    } else if biased == 0 {
        Number::Finite {
            negative,
            significand: fraction,
            exponent: unit,
        }
    } else {
        let significand = fraction | 1 << (F::PRECISION - 1);
        Number::Finite {
            negative,
            significand,
            exponent: unit + biased as i32 - 1,
        }
    }
}

fn infinity<F: Format>(negative: bool) -> u64 {
    F::INFINITY | if negative { F::SIGN } else { 0 }
}
fn zero<F: Format>(negative: bool) -> u64 {
    if negative { F::SIGN } else { 0 }
}

/// The format's number for `± significand · 2^exponent`. A caller that dropped bits sets the lowest one ("jams" it),
/// well below the precision.
pub fn round<F: Format>(negative: bool, significand: u128, exponent: i32, mode: Rounding) -> u64 {
    if significand == 0 {
        return zero::<F>(negative);
    }
    let (mut significand, mut exponent) = (significand, exponent);
    let top = 127 - significand.leading_zeros() as i32;
    let unit = (exponent + top).max(F::LEAST) - (F::PRECISION as i32 - 1);
    // Far below the least number: keep that there was something.
    if unit - exponent > 126 {
        (significand, exponent) = (1, unit - 2);
    }
    let shift = unit - exponent;
    let mut kept;
    if shift <= 0 {
        kept = significand << -shift;
    } else {
        kept = significand >> shift;
        let rest = significand & ((1 << shift) - 1);
        let half = 1u128 << (shift - 1);
        let up = match mode {
            Rounding::Rn => rest > half || (rest == half && kept & 1 != 0),
            Rounding::Rna => rest >= half,
            Rounding::Rz | Rounding::Rs => false,
            Rounding::Rm => negative && rest != 0,
            Rounding::Rp => !negative && rest != 0,
        };
        kept += u128::from(up);
    }
    // The hidden bit, where it is set, adds one to the exponent field.
    let field = (unit + F::PRECISION as i32 - 1 - F::LEAST) as u64;
    let overflows = field >= (1 << F::EXPONENT_BITS) - 1;
    let bits = if overflows {
        F::INFINITY
    } else {
        (field << (F::PRECISION - 1)) + kept as u64
    };
    let sign = zero::<F>(negative);
    if bits < F::INFINITY {
        return bits | sign;
    }
    let to_infinity = match mode {
        Rounding::Rn | Rounding::Rna => true,
        Rounding::Rz | Rounding::Rs => false,
        Rounding::Rm => negative,
        Rounding::Rp => !negative,
    };
    sign | if to_infinity { F::INFINITY } else { F::INFINITY - 1 }
}

/// `a·b + c`, rounded once. NaN results are [`Format::NAN`].
pub fn fma<F: Format>(a: u64, b: u64, c: u64, mode: Rounding) -> u64 {
    use Number::*;
    let (a, b, c) = (unpack::<F>(a), unpack::<F>(b), unpack::<F>(c));
    let (product_negative, product, mut product_exponent) = match (a, b) {
        (Nan, _) | (_, Nan) => return F::NAN,
        (Infinity { negative: n }, Infinity { negative: m }) => return add_infinity::<F>(n ^ m, c),
        (
            Infinity { negative: n },
            Finite {
                negative: m,
                significand,
                ..
            },
        )
        | (
            Finite {
                negative: m,
                significand,
                ..
            },
            Infinity { negative: n },
        ) => {
            return if significand == 0 {
                F::NAN
            } else {
                add_infinity::<F>(n ^ m, c)
            };
        }
        (
            Finite {
                negative: n,
                significand: x,
                exponent: i,
            },
            Finite {
                negative: m,
                significand: y,
                exponent: j,
            },
        ) => (n ^ m, u128::from(x) * u128::from(y), i + j),
    };
    let (negative, addend, mut exponent) = match c {
        Nan => return F::NAN,
        Infinity { negative } => return infinity::<F>(negative),
        Finite {
            negative,
            significand,
            exponent,
        } => (negative, u128::from(significand), exponent),
    };
    if product == 0 && addend == 0 {
        return zero::<F>(if product_negative == negative {
            negative
        } else {
            mode == Rounding::Rm
        });
    }
    if product == 0 {
        return round::<F>(negative, addend, exponent, mode);
    }
    if addend == 0 {
        return round::<F>(product_negative, product, product_exponent, mode);
    }
    // Both to 125 bits, then the smaller down to the larger's exponent, jamming what falls off: no cancellation of more
    // than a bit can happen then.
    let normalise = |significand: u128, exponent: &mut i32| {
        let by = significand.leading_zeros() as i32 - 3;
        *exponent -= by;
        significand << by
    };
    let mut product = normalise(product, &mut product_exponent);
    let mut addend = normalise(addend, &mut exponent);
    let jam = |significand: u128, by: i32| {
        if by > 126 {
            1
        } else {
            significand >> by | u128::from(significand & ((1 << by) - 1) != 0)
        }
    };
    if product_exponent < exponent {
        product = jam(product, exponent - product_exponent);
        product_exponent = exponent;
    } else {
        addend = jam(addend, product_exponent - exponent);
    }
    if product_negative == negative {
        return round::<F>(negative, product + addend, product_exponent, mode);
    }
    match product.cmp(&addend) {
        std::cmp::Ordering::Equal => zero::<F>(mode == Rounding::Rm),
        std::cmp::Ordering::Greater => round::<F>(product_negative, product - addend, product_exponent, mode),
        std::cmp::Ordering::Less => round::<F>(negative, addend - product, product_exponent, mode),
    }
}

fn add_infinity<F: Format>(negative: bool, c: Number) -> u64 {
    match c {
        Number::Nan => F::NAN,
        Number::Infinity { negative: other } if other != negative => F::NAN,
        Number::Infinity { .. } | Number::Finite { .. } => infinity::<F>(negative),
    }
}

/// `a + b`.
pub fn add<F: Format>(a: u64, b: u64, mode: Rounding) -> u64 {
    let one = (F::BIAS as u64) << (F::PRECISION - 1);
    fma::<F>(a, one, b, mode)
}

/// `a · b`.
pub fn mul<F: Format>(a: u64, b: u64, mode: Rounding) -> u64 {
    use Number::*;
    match (unpack::<F>(a), unpack::<F>(b)) {
        (Nan, _) | (_, Nan) => F::NAN,
        (Infinity { negative: n }, Infinity { negative: m }) => infinity::<F>(n ^ m),
        (
            Infinity { negative: n },
            Finite {
                negative: m,
                significand,
                ..
            },
        )
        | (
            Finite {
                negative: m,
                significand,
                ..
            },
            Infinity { negative: n },
        ) => {
            if significand == 0 {
                F::NAN
            } else {
                infinity::<F>(n ^ m)
            }
        }
        (
            Finite {
                negative: n,
                significand: x,
                exponent: i,
            },
            Finite {
                negative: m,
                significand: y,
                exponent: j,
            },
        ) => round::<F>(n ^ m, u128::from(x) * u128::from(y), i + j, mode),
    }
}

/// `a / b`.
pub fn div<F: Format>(a: u64, b: u64, mode: Rounding) -> u64 {
    use Number::*;
    match (unpack::<F>(a), unpack::<F>(b)) {
        (Nan, _) | (_, Nan) | (Infinity { .. }, Infinity { .. }) => F::NAN,
        (Infinity { negative: n }, Finite { negative: m, .. }) => infinity::<F>(n ^ m),
        (Finite { negative: n, .. }, Infinity { negative: m }) => zero::<F>(n ^ m),
        (
            Finite {
                negative: n,
                significand: x,
                exponent: i,
            },
            Finite {
                negative: m,
                significand: y,
                exponent: j,
            },
        ) => match (x, y) {
            (0, 0) => F::NAN,
            (_, 0) => infinity::<F>(n ^ m),
            _ => {
                // At least 64 bits of quotient: the dividend takes up 127 bits, the divisor at most 53.
                let by = u128::from(x).leading_zeros() as i32 - 1;
                let dividend = u128::from(x) << by;
                let quotient = dividend / u128::from(y);
                let rest = dividend % u128::from(y);
                round::<F>(n ^ m, quotient << 1 | u128::from(rest != 0), i - j - by - 1, mode)
            }
        },
    }
}

/// The square root; of a negative number, NaN.
pub fn sqrt<F: Format>(a: u64, mode: Rounding) -> u64 {
    match unpack::<F>(a) {
        Number::Finite {
            significand: 0,
            negative,
            ..
        } => zero::<F>(negative),
        Number::Infinity { negative: false } => F::INFINITY,
        Number::Finite {
            negative: false,
            significand,
            exponent,
        } => {
            let by = u128::from(significand).leading_zeros() as i32 - 1;
            let by = by - ((exponent - by) & 1);
            let square = u128::from(significand) << by;
            let root = square.isqrt();
            round::<F>(
                false,
                root << 1 | u128::from(root * root != square),
                (exponent - by) / 2 - 1,
                mode,
            )
        }
        Number::Nan | Number::Infinity { negative: true } | Number::Finite { negative: true, .. } => F::NAN,
    }
}

/// The magnitude of `± significand · 2^exponent` rounded to an integer, for exponents below 64.
pub fn integral(negative: bool, significand: u64, exponent: i32, mode: Rounding) -> u128 {
    if exponent >= 0 {
        return u128::from(significand) << exponent.min(63);
    }
    let (significand, shift) = if exponent < -100 {
        (u128::from(significand != 0), 100)
    } else {
        (u128::from(significand), -exponent)
    };
    let (kept, rest, half) = (
        significand >> shift,
        significand & ((1 << shift) - 1),
        1u128 << (shift - 1),
    );
    let up = match mode {
        Rounding::Rn => rest > half || (rest == half && kept & 1 != 0),
        Rounding::Rna => rest >= half,
        Rounding::Rz | Rounding::Rs => false,
        Rounding::Rm => negative && rest != 0,
        Rounding::Rp => !negative && rest != 0,
    };
    kept + u128::from(up)
}

/// Fused multiply-add to nearest even for CPUs without one: the product of two `f32` is exact in `f64`; the sum is
/// rounded to odd there, which leaves the second rounding right (Boldo and Melquiond, "Emulation of FMA and correctly
/// rounded sums").
#[inline(always)]
pub fn fma32(a: f32, b: f32, c: f32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let c = f64::from(c);
    sum_to_odd(product, c) as f32
}

/// The sum of two `f64` rounded to odd, where neither overflows.
#[inline(always)]
pub fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    let bits = sum.to_bits();
    // Towards the error by one step, if the last bit is even and there is an error. Both comparisons fail for NaN.
    let inexact = (error > 0.0) | (error < 0.0);
    let step = if (error > 0.0) == (sum > 0.0) { 1 } else { u64::MAX };
    let step = if inexact & (bits & 1 == 0) { step } else { 0 };
    f64::from_bits(bits.wrapping_add(step))
}

/// Fused multiply-add to nearest even for CPUs without one.
#[inline(never)]
pub fn fma64(a: f64, b: f64, c: f64) -> f64 {
    f64::from_bits(fma::<Binary64>(a.to_bits(), b.to_bits(), c.to_bits(), Rounding::Rn))
}
