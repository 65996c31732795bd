//! Sums of products in plain integers: the truncated fused dot product (F. Khattak, M. Mikaitis; X. Li et al.) on significands
//! and exponents, of each generation of tensor cores.

/// What is multiplied, and as whom.
#[derive(Clone, Debug)]
pub struct Rule {
    pub architecture: u32,
    pub a: &'static str,
    pub b: &'static str,
    pub c: &'static str,
    pub d: &'static str,
    pub k: usize,
    pub sparse: bool,
    pub saturate: bool,
    pub xor: bool,
    pub rounding: &'static str,
    /// `""`, `"f8f6f4"` or `"mxf4"`.
    pub kind: &'static str,
    /// Factors along k and their type; none: 0.
    pub factors: usize,
    pub factor_type: &'static str,
    pub quad_pair: bool,
    /// `wmma.mma`, which assemblers make of other instructions.
    pub wmma: bool,
    /// `wgmma`, whose architecture is 90.
    pub warpgroup: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Nan,
    Infinite(bool),
    /// Sign, significand, power of two of its last place, nominal exponent.
    Finite(bool, u64, i32, i32),
}
use Number::{Finite, Infinite, Nan};

/// Fields of a format: bits of exponent and fraction.
fn fields(ty: &str) -> (u32, u32) {
    match ty {
        "f16" => (5, 10),
        "bf16" => (8, 7),
        "tf32" => (8, 10),
        "f32" => (8, 23),
        "e4m3" | "ue4m3" => (4, 3),
        "e5m2" => (5, 2),
        "e3m2" => (3, 2),
        "e2m3" => (2, 3),
        "e2m1" => (2, 1),
        other => panic!("{other}"),
    }
}

fn number(ty: &str, code: u64) -> Number {
    if ty == "ue8m0" {
        let code = code & 0xff;
        return if code == 0xff {
            Nan
        } else {
            Finite(false, 1, code as i32 - 127, code as i32 - 127)
        };
    }
    let code = match ty {
        "tf32" => code >> 13,
        // Its sign is ignored.
        "ue4m3" => code & 0x7f,
        _ => code,
    };
    let (exponent, fraction) = fields(ty);
    let bias = (1 << (exponent - 1)) - 1;
    let negative = code >> (exponent + fraction) & 1 == 1;
    let field = (code >> fraction & ((1 << exponent) - 1)) as i32;
    let low = code & ((1 << fraction) - 1);
    let top = field == (1 << exponent) - 1;
    match ty {
        "e4m3" | "ue4m3" if top && low == 7 => return Nan,
        "f16" | "bf16" | "tf32" | "f32" | "e5m2" if top => {
            return if low == 0 { Infinite(negative) } else { Nan };
        }
        _ => {}
    }
    let nominal = field.max(1) - bias;
    let significand = if field == 0 { low } else { low | 1 << fraction };
    Finite(negative, significand, nominal - fraction as i32, nominal)
}

/// Sign and exact value `significand · 2^power` → a code of `f32`: towards zero.
fn to_f32(negative: bool, significand: u128, power: i32) -> u64 {
    let sign = u64::from(negative) << 31;
    if significand == 0 {
        return sign;
    }
    let top = 127 - significand.leading_zeros() as i32 + power;
    if top > 127 {
        return sign | 0x7f80_0000;
    }
    let last = (top - 23).max(-149);
    let kept = shifted(significand, power - last) as u64;
    if top < -126 {
        sign | kept
    } else {
        sign | (kept & 0x7f_ffff) | ((top + 127) as u64) << 23
    }
}

/// To nearest even `f16`.
fn to_f16(negative: bool, significand: u128, power: i32) -> u64 {
    let sign = u64::from(negative) << 15;
    if significand == 0 {
        return sign;
    }
    let top = 127 - significand.leading_zeros() as i32 + power;
    let last = (top - 10).max(-24);
    let kept = shifted(significand, power - last);
    let twice = shifted(significand, power - last + 1);
    // What lies below half of the last place.
    let beyond = power + 1 < last && shifted(twice, last - 1 - power) != significand;
    let up = twice & 1 == 1 && power < last && (beyond || kept & 1 == 1);
    let kept = kept + u128::from(up);
    // Significand and exponent of the rounded value.
    let value = kept as f64 * 2f64.powi(last);
    if value > 65504.0 {
        return sign | 0x7c00;
    }
    if value < 2f64.powi(-14) {
        return sign | (value * 2f64.powi(24)) as u64;
    }
    let exponent = (value.to_bits() >> 52) as i32 - 1023;
    sign | ((exponent + 15) as u64) << 10 | (value.to_bits() >> 42 & 0x3ff)
}

/// `x · 2^by`, without what falls off.
fn shifted(x: u128, by: i32) -> u128 {
    match by {
        0.. => x << by,
        -127..0 => x >> -by,
        _ => 0,
    }
}

/// One block: terms of products and one accumulator, aligned and cut to `fraction` bits.
fn block(terms: &[(Number, Number, i32)], c: Number, fraction: i32, floor: i32, d: &str) -> u64 {
    let nan = if d == "f16" { 0x7fff } else { 0x7fff_ffff };
    let infinity = |negative: bool| match d {
        "f16" => 0x7c00 | u64::from(negative) << 15,
        _ => 0x7f80_0000 | u64::from(negative) << 31,
    };
    let mut signs = [false; 2];
    let mut sum = Vec::new();
    match c {
        Nan => return nan,
        Infinite(negative) => signs[usize::from(negative)] = true,
        Finite(negative, significand, power, nominal) => sum.push((negative, u128::from(significand), power, nominal)),
    }
    for &(a, b, scale) in terms {
        match (a, b) {
            (Nan, _) | (_, Nan) => return nan,
            (Infinite(_), Finite(_, 0, _, _)) | (Finite(_, 0, _, _), Infinite(_)) => return nan,
            (Infinite(x), Infinite(y) | Finite(y, ..)) | (Finite(x, ..), Infinite(y)) => {
                signs[usize::from(x != y)] = true;
            }
            (Finite(x, s, p, e), Finite(y, t, q, f)) => {
                sum.push((x != y, u128::from(s) * u128::from(t), p + q + scale, e + f + scale));
            }
        }
    }
    match signs {
        [true, true] => return nan,
        [true, false] => return infinity(false),
        [false, true] => return infinity(true),
        [false, false] => {}
    }
    sum.retain(|term| term.1 != 0);
    let largest = sum.iter().map(|term| term.3).fold(floor, i32::max);
    let mut total = 0i128;
    for (negative, significand, power, _) in sum {
        let cut = shifted(significand, power + fraction - largest) as i128;
        total += if negative { -cut } else { cut };
    }
    if total == 0 {
        return 0;
    }
    let (negative, magnitude, power) = (total < 0, total.unsigned_abs(), largest - fraction);
    match d {
        // Never -0, as seen on an H100.
        "f16" => {
            to_f16(negative, magnitude, power)
                & if to_f16(false, magnitude, power) == 0 {
                    0
                } else {
                    0xffff
                }
        }
        "e8m13" => to_f32(negative, magnitude, power) & !0x3ff,
        _ => to_f32(negative, magnitude, power),
    }
}

/// A product's element: codes of A's row and B's column (with the columns that A has, if it is sparse), factors of both, C.
pub fn dot(rule: &Rule, a: &[u64], b: &[u64], kept: &[usize], factors: [&[u8]; 2], c: u64) -> u64 {
    assert_eq!(kept.len(), if rule.sparse { rule.k / 2 } else { rule.k });
    match rule.a {
        "f64" => return doubles(rule, a, b, c),
        "s8" | "u8" | "s4" | "u4" | "b1" => return integers(rule, a, b, kept, c),
        _ => {}
    }
    if rule.wmma && rule.architecture > 70 {
        // As NVIDIA's assembler has it: halves are widened before, narrowed after.
        let wide = |c: &'static str, d: &'static str| Rule { c, d, ..rule.clone() };
        match (rule.c, rule.d) {
            ("f16", "f32") => {
                let Finite(negative, significand, power, _) = number("f16", c) else {
                    let special = (c << 16 & 0x8000_0000) | (c << 13 & 0x7f_e000) | 0x7f80_0000;
                    return dot(&wide("f32", "f32"), a, b, kept, factors, special);
                };
                let c = to_f32(negative, significand.into(), power);
                return dot(&wide("f32", "f32"), a, b, kept, factors, c);
            }
            ("f32", "f16") => {
                let result = dot(&wide("f32", "f32"), a, b, kept, factors, c);
                return match number("f32", result) {
                    Nan => 0x7fff,
                    Infinite(negative) => 0x7c00 | u64::from(negative) << 15,
                    Finite(negative, significand, power, _) => to_f16(negative, significand.into(), power),
                };
            }
            _ => {}
        }
    }
    // What an architecture does not have is done as by the first that has it.
    let least = match (rule.a, rule.b) {
        _ if rule.factors != 0 => 120,
        ("f16", _) => 70,
        ("bf16" | "tf32", _) => 80,
        ("e4m3" | "e5m2", "e4m3" | "e5m2") => 89,
        _ => 120,
    };
    let architecture = rule.architecture.max(least);
    let mut fraction = match architecture {
        70 => 23,
        75..=89 => 24,
        _ => 25,
    };
    let floor = if rule.d == "f16" { -14 } else { -126 } - 5 - (fraction - 23);
    let value_c = number(rule.c, c);
    let products: Vec<(usize, Number, Number, i32)> = kept
        .iter()
        .map(|&k| {
            let factor = k * rule.factors / rule.k;
            let scale = |side: usize| match factors[side].get(factor).map(|&code| number("ue8m0", code.into())) {
                Some(Finite(.., power, _)) => Some(power),
                Some(_) => None,
                None => Some(0),
            };
            let (x, y) = (number(rule.a, a[k]), number(rule.b, b[k]));
            match (scale(0), scale(1)) {
                (Some(one), Some(other)) => (k, x, y, one + other),
                _ => (k, Nan, y, 0),
            }
        })
        .collect();
    if rule.kind == "mxf4" {
        return grouped(rule, a, b, kept, factors, value_c);
    }
    if rule.quad_pair && architecture >= 80 {
        return ordinary(rule, a, b, c);
    }
    let run = |list: &[(usize, Number, Number, i32)], c: Number, fraction: i32, d: &str| {
        let terms: Vec<_> = list.iter().map(|term| (term.1, term.2, term.3)).collect();
        block(&terms, c, fraction, floor, d)
    };
    let narrow = rule.factors == 0 && !matches!(rule.a, "f16" | "bf16" | "tf32");
    if narrow && !rule.warpgroup && matches!(architecture, 90 | 100) {
        // Pairs of bytes, the low ones first; C is added afterwards.
        let pair = |place: usize| place / 2 % 2;
        let side = |which: usize| -> Vec<_> {
            let of = products.iter().enumerate().filter(|(place, _)| pair(*place) == which);
            of.map(|(_, term)| *term).collect()
        };
        let first = run(&side(0), number(rule.d, 0), fraction, rule.d);
        let second = run(&side(1), number(rule.d, first), fraction, rule.d);
        return match rule.d {
            "f16" => half_sum(second, c),
            _ => canonical(f32::from_bits(second as u32) + f32::from_bits(c as u32)),
        };
    }
    let (size, d) = match (rule.a, architecture) {
        ("f16" | "bf16", 70) => (4, rule.d),
        ("f16", 75) if rule.quad_pair => (4, rule.d),
        ("f16" | "bf16", 75..=89) => (8, rule.d),
        ("f16" | "bf16", _) => (16, rule.d),
        ("tf32", 80..=89) => (4, rule.d),
        ("tf32", _) if rule.wmma => (4, rule.d),
        ("tf32", _) => (8, rule.d),
        (_, 89) => {
            fraction = 13;
            (16, if rule.d == "f32" { "e8m13" } else { rule.d })
        }
        (_, 90) => {
            fraction = 13;
            (32, if rule.d == "f32" { "e8m13" } else { rule.d })
        }
        _ => (32, rule.d),
    };
    let mut value = value_c;
    let mut result = 0;
    for list in products.chunks(size) {
        result = run(list, value, fraction, d);
        value = number(rule.d, result);
    }
    result
}

fn canonical(value: f32) -> u64 {
    if value.is_nan() {
        0x7fff_ffff
    } else {
        value.to_bits().into()
    }
}

/// The sum of two halves, which `f64` holds exactly.
fn half_sum(a: u64, b: u64) -> u64 {
    match (number("f16", a), number("f16", b)) {
        (Nan, _) | (_, Nan) => 0x7fff,
        (Infinite(x), Infinite(y)) => {
            if x == y {
                a
            } else {
                0x7fff
            }
        }
        (Infinite(_), _) => a,
        (_, Infinite(_)) => b,
        (Finite(x, s, p, _), Finite(y, t, q, _)) => {
            let value = |negative: bool, s: u64, p: i32| s as f64 * 2f64.powi(p) * if negative { -1.0 } else { 1.0 };
            half(value(x, s, p) + value(y, t, q))
        }
    }
}

/// To nearest even, of a sum of few bits.
pub fn half(value: f64) -> u64 {
    let magnitude = (value.abs() * 2f64.powi(60)) as u128;
    to_f16(value.is_sign_negative(), magnitude, -60)
}

/// `mma.m8n8k4` of halves as ordinary instructions compute it.
fn ordinary(rule: &Rule, a: &[u64], b: &[u64], c: u64) -> u64 {
    let wide = |code: u64| match number("f16", code) {
        Nan => f32::NAN,
        Infinite(negative) => {
            if negative {
                f32::NEG_INFINITY
            } else {
                f32::INFINITY
            }
        }
        Finite(negative, s, p, _) => s as f32 * 2f32.powi(p) * if negative { -1.0 } else { 1.0 },
    };
    let (a, b): (Vec<f32>, Vec<f32>) = (
        a.iter().map(|x| wide(*x)).collect(),
        b.iter().map(|x| wide(*x)).collect(),
    );
    let c = if rule.c == "f16" {
        wide(c)
    } else {
        f32::from_bits(c as u32)
    };
    if rule.d == "f32" {
        let sum = (0..4).fold(0f32, |sum, k| a[k].mul_add(b[k], sum));
        return canonical(c + sum);
    }
    let low = a[1].mul_add(b[1], a[0] * b[0]);
    let high = a[3].mul_add(b[3], a[2] * b[2]);
    let sum = (c + low) + high;
    match sum {
        _ if sum.is_nan() => 0x7fff,
        _ if sum.is_infinite() => 0x7c00 | u64::from(sum < 0.0) << 15,
        _ => {
            let bits = sum.to_bits();
            let Finite(negative, significand, power, _) = number("f32", bits.into()) else {
                unreachable!()
            };
            to_f16(negative, significand.into(), power)
        }
    }
}

/// Groups of sixteen products, scaled and then summed with 35 bits.
fn grouped(rule: &Rule, a: &[u64], b: &[u64], kept: &[usize], factors: [&[u8]; 2], c: Number) -> u64 {
    let mut terms: Vec<(bool, u128, i32, i32)> = Vec::new();
    match c {
        Nan => return 0x7fff_ffff,
        Infinite(_) | Finite(..) => {}
    }
    for list in kept.chunks(16) {
        let at = list[0] * rule.factors / rule.k;
        let scale = |side: usize| number(rule.factor_type, factors[side][at].into());
        let (Finite(_, one, p, e), Finite(_, other, q, f)) = (scale(0), scale(1)) else {
            return 0x7fff_ffff;
        };
        // Quarters.
        let sum: i64 = list
            .iter()
            .map(|&k| match (number("e2m1", a[k]), number("e2m1", b[k])) {
                (Finite(x, s, p, _), Finite(y, t, q, _)) => {
                    let product = (s * t) as i64 * (1 << (p + q + 2));
                    if x == y { product } else { -product }
                }
                _ => unreachable!(),
            })
            .sum();
        let magnitude = u128::from(sum.unsigned_abs()) * u128::from(one) * u128::from(other);
        terms.push((sum < 0, magnitude, p + q - 2, e + f));
    }
    match c {
        Finite(negative, s, p, e) => terms.push((negative, s.into(), p, e)),
        Infinite(negative) => return 0x7f80_0000 | u64::from(negative) << 31,
        Nan => unreachable!(),
    }
    terms.retain(|term| term.1 != 0);
    let largest = terms.iter().map(|term| term.3).fold(-133, i32::max);
    let total: i128 = terms
        .iter()
        .map(|&(negative, magnitude, power, _)| {
            let cut = shifted(magnitude, power + 35 - largest) as i128;
            if negative { -cut } else { cut }
        })
        .sum();
    if total == 0 {
        0
    } else {
        to_f32(total < 0, total.unsigned_abs(), largest - 35)
    }
}

fn integers(rule: &Rule, a: &[u64], b: &[u64], kept: &[usize], c: u64) -> u64 {
    let value = |ty: &str, code: u64| match ty {
        "s8" => i64::from(code as u8 as i8),
        "s4" => i64::from(((code as u8) << 4) as i8 >> 4),
        _ => code as i64,
    };
    let sum: i64 = kept
        .iter()
        .map(|&k| match rule.a {
            "b1" if rule.xor => i64::from(a[k] != b[k]),
            _ => value(rule.a, a[k]) * value(rule.b, b[k]),
        })
        .sum();
    let total = sum + i64::from(c as u32 as i32);
    let total = if rule.saturate {
        total.clamp(i32::MIN.into(), i32::MAX.into())
    } else {
        total
    };
    u64::from(total as u32)
}

/// A chain of fused multiply-adds. Directed rounding by LLVM's arbitrary-precision floats.
fn doubles(rule: &Rule, a: &[u64], b: &[u64], c: u64) -> u64 {
    use rustc_apfloat::ieee::Double;
    use rustc_apfloat::{Float, Round};
    let round = match rule.rounding {
        "rz" => Round::TowardZero,
        "rm" => Round::TowardNegative,
        "rp" => Round::TowardPositive,
        _ => Round::NearestTiesToEven,
    };
    let of = |bits: u64| Double::from_bits(bits.into());
    let sum = a
        .iter()
        .zip(b)
        .fold(of(c), |sum, (a, b)| of(*a).mul_add_r(of(*b), sum, round).value);
    sum.to_bits() as u64
}
