//! One element of a truncated fused dot product, in plain integers: for rows and columns with infinities and NaN.

use super::decode::{Specials, format};
use super::rule::Truncated;
use super::{Element, Product, ScaleType, Tiles, convert, stride};

/// What a code stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Nan,
    Infinity {
        negative: bool,
    },
    /// `±significand · 2^(exponent - fraction)`, where the format has `fraction` bits behind the point.
    Finite {
        negative: bool,
        significand: u32,
        exponent: i32,
        fraction: u32,
    },
}

/// # Panics
/// If the element is no floating-point type of at most 32 bits.
pub fn value(element: Element, code: u32) -> Value {
    let format = format(element).expect("integers have no dot products of this kind");
    let code = code >> format.low;
    let negative = code >> (format.exponent + format.fraction) & 1 != 0;
    let field = code >> format.fraction & ((1 << format.exponent) - 1);
    let fraction = code & ((1 << format.fraction) - 1);
    let largest = field == (1 << format.exponent) - 1;
    match format.specials {
        Specials::Both if largest && fraction == 0 => Value::Infinity { negative },
        Specials::Both if largest => Value::Nan,
        Specials::Nan if largest && fraction == (1 << format.fraction) - 1 => Value::Nan,
        Specials::Both | Specials::Nan | Specials::None => Value::Finite {
            negative,
            significand: fraction | u32::from(field != 0) << format.fraction,
            exponent: (field as i32).max(1) - format.bias,
            fraction: format.fraction,
        },
    }
}

/// The value of a factor: a power of two, or a number of three bits behind the point.
pub fn factor(ty: ScaleType, code: u8) -> Value {
    match (ty, code) {
        (ScaleType::Ue8m0, 0xff) => Value::Nan,
        (ScaleType::Ue8m0, code) => Value::Finite {
            negative: false,
            significand: 1,
            exponent: i32::from(code) - 127,
            fraction: 0,
        },
        (ScaleType::Ue4m3, code) => value(Element::E4m3, u32::from(code & 0x7f)),
    }
}

/// Computes again what an infinity or a NaN of A, B or the factors takes part in, or `all`; `c` is C.
pub fn mend(product: &Product, rule: &Truncated, tiles: Tiles, c: &[u32], all: bool) {
    let stride = stride(product.m);
    for n in 0..product.n {
        for m in 0..product.m {
            let pairs = |column: usize| {
                let kept = !product.sparse || tiles.kept[m] >> column & 1 != 0;
                let (a, b) = match tiles.packed && product.packs() == 2 {
                    true => {
                        let of = |word: u32| word >> (16 * (column % 2)) & 0xffff;
                        (
                            of(tiles.a[column / 2 * stride + m]),
                            of(tiles.b[column / 2 * product.n + n]),
                        )
                    }
                    false => (tiles.a[column * stride + m], tiles.b[column * product.n + n]),
                };
                let (a, b) = (value(product.a, a), value(product.b, b));
                let scales = product.scaling.map(|scaling| {
                    let at = column * scaling.factors / product.k;
                    [
                        factor(scaling.ty, tiles.scale_a[m * scaling.factors + at]),
                        factor(scaling.ty, tiles.scale_b[n * scaling.factors + at]),
                    ]
                });
                kept.then_some((a, b, scales))
            };
            let is_finite = |value: Value| matches!(value, Value::Finite { .. });
            let all_finite = (0..product.k).filter_map(pairs).all(|(a, b, scales)| {
                is_finite(a) && is_finite(b) && scales.is_none_or(|scales| scales.into_iter().all(is_finite))
            });
            if all || !all_finite {
                tiles.d[n * stride + m] = dot(product, rule, pairs, c[n * stride + m]);
            }
        }
    }
}

/// Elements of A and B in a column, and their factors.
type Pair = (Value, Value, Option<[Value; 2]>);

/// All blocks, one after the other.
fn dot(product: &Product, rule: &Truncated, pairs: impl Fn(usize) -> Option<Pair>, c: u32) -> u32 {
    let addend = convert::read(product.c, c);
    let (mut sum, mut least) = (addend, convert::least(product.c));
    if rule.separate {
        sum = 0.0;
    }
    for first in (0..product.k).step_by(rule.block) {
        let columns = first..(first + rule.block).min(product.k);
        let terms = columns.filter_map(|at| pairs(rule.order.column(at, product.k)));
        sum = block(rule, terms, sum, least);
        least = convert::least(product.d);
    }
    convert::write(product.d, if rule.separate { sum + addend } else { sum })
}

fn block(rule: &Truncated, pairs: impl Iterator<Item = Pair>, c: f32, least: i32) -> f32 {
    let nan = f32::from_bits(convert::NAN);
    // Infinities of either sign.
    let mut infinite = [c == f32::INFINITY, c == f32::NEG_INFINITY];
    let mut terms: Vec<(bool, u64, i32, u32)> = Vec::new();
    if c.is_nan() {
        return nan;
    }
    for (a, b, scales) in pairs {
        if scales.is_some_and(|scales| scales.contains(&Value::Nan)) {
            return nan;
        }
        let shift: i32 = scales.into_iter().flatten().map(power).sum();
        match (a, b) {
            (Value::Nan, _) | (_, Value::Nan) => return nan,
            (Value::Infinity { .. }, other) | (other, Value::Infinity { .. }) if is_zero(other) => return nan,
            (Value::Infinity { negative }, other) | (other, Value::Infinity { negative }) => {
                infinite[usize::from(negative ^ is_negative(other))] = true;
            }
            (
                Value::Finite {
                    negative,
                    significand,
                    exponent,
                    fraction,
                },
                Value::Finite {
                    negative: n,
                    significand: s,
                    exponent: e,
                    fraction: f,
                },
            ) => {
                if significand != 0 && s != 0 {
                    let product = u64::from(significand) * u64::from(s);
                    terms.push((negative ^ n, product, exponent + e + shift, fraction + f));
                }
            }
        }
    }
    match infinite {
        [true, true] => return nan,
        [true, false] => return f32::INFINITY,
        [false, true] => return f32::NEG_INFINITY,
        [false, false] => {}
    }
    if c != 0.0 {
        let bits = c.to_bits();
        let exponent = convert::exponent(c, least);
        // Bits behind the point at that exponent.
        let unit = ((bits >> 23 & 0xff) as i32).max(1) - 127 - 23;
        let hidden = u32::from(bits >> 23 & 0xff != 0) << 23;
        let significand = u64::from(bits & 0x7f_ffff | hidden);
        terms.push((bits >> 31 != 0, significand, exponent, (exponent - unit) as u32));
    }
    let largest = terms.iter().map(|term| term.2).fold(rule.floor, i32::max);
    let mut sum = 0i64;
    for (negative, significand, exponent, fraction) in terms {
        let shift = rule.fraction + exponent - largest - fraction as i32;
        let cut = match shift {
            0.. => significand << shift,
            -63..0 => significand >> -shift,
            _ => 0,
        } as i64;
        sum += if negative { -cut } else { cut };
    }
    convert::convert(sum as f64 * convert::power(largest - rule.fraction), rule.outcome)
}

fn is_zero(value: Value) -> bool {
    matches!(value, Value::Finite { significand: 0, .. })
}

fn is_negative(value: Value) -> bool {
    match value {
        Value::Nan => false,
        Value::Infinity { negative } | Value::Finite { negative, .. } => negative,
    }
}

/// The exponent of a power of two.
fn power(factor: Value) -> i32 {
    match factor {
        Value::Finite { exponent, .. } => exponent,
        Value::Nan | Value::Infinity { .. } => 0,
    }
}
