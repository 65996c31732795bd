//! `cvt` and `cvt.pack` (PTX ISA, cvt, cvt.pack), on exact fractions: a number is an integer times a power of two.

use super::{Expect, Kind, Op, Type, cut, float};

/// A floating-point format: signed unless it is one of scales.
#[derive(Clone, Copy)]
struct Format {
    exponent: u32,
    mantissa: u32,
    /// The code of the greatest finite number, without sign.
    greatest: u128,
    infinity: Option<u128>,
    nan: Option<u128>,
}

const fn ieee(exponent: u32, mantissa: u32, nan: u128) -> Format {
    let infinity = ((1u128 << exponent) - 1) << mantissa;
    Format {
        exponent,
        mantissa,
        greatest: infinity - 1,
        infinity: Some(infinity),
        nan: Some(nan),
    }
}

/// By the words of opcodes.
fn format(word: &str) -> Option<Format> {
    let finite = |exponent, mantissa, greatest, nan| Format {
        exponent,
        mantissa,
        greatest,
        infinity: None,
        nan,
    };
    Some(match word {
        "f16" => ieee(5, 10, 0x7fff),
        "bf16" => ieee(8, 7, 0x7fff),
        "f32" => ieee(8, 23, 0x7fff_ffff),
        "f64" => ieee(11, 52, 0x7ff8 << 48),
        "tf32" => ieee(8, 10, 0x3ffff),
        "e5m2" => ieee(5, 2, 0x7f),
        "e4m3" => finite(4, 3, 0x7e, Some(0x7f)),
        "e2m3" => finite(2, 3, 0x1f, None),
        "e3m2" => finite(3, 2, 0x1f, None),
        "e2m1" => finite(2, 1, 0x7, None),
        _ => return None,
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Rounding {
    Nearest,
    NearestAway,
    Zero,
    Down,
    Up,
    /// Random bits are added to those that do not fit: so many of them, and which.
    Random(u32, u128),
}

impl Format {
    fn bias(&self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }
    fn sign(&self) -> u128 {
        1 << (self.exponent + self.mantissa)
    }

    fn decode(&self, code: u128) -> f64 {
        let sign = if code & self.sign() != 0 { -1.0 } else { 1.0 };
        let magnitude = code & (self.sign() - 1);
        let is_nan = match self.infinity {
            Some(infinity) if magnitude == infinity => return sign * f64::INFINITY,
            Some(infinity) => magnitude > infinity,
            None => self.nan == Some(magnitude),
        };
        if is_nan {
            return f64::NAN;
        }
        let (e, m) = (magnitude >> self.mantissa, magnitude & ((1 << self.mantissa) - 1));
        let (whole, e) = match e {
            0 => (m, 1),
            e => (m | 1 << self.mantissa, e as i32),
        };
        // Exact: at most 53 bits, and two factors keep the power in range.
        let power = e - self.bias() - self.mantissa as i32;
        sign * whole as f64 * 2f64.powi(power / 2) * 2f64.powi(power - power / 2)
    }

    /// The code of `x`, not NaN, rounded; what does not fit becomes infinity or, `saturating`, the greatest number.
    fn encode(&self, x: f64, rounding: Rounding, saturating: bool) -> u128 {
        let negative = x.is_sign_negative();
        let sign = if negative { self.sign() } else { 0 };
        let overflow = |towards_infinity: bool| match self.infinity {
            Some(infinity) if towards_infinity && !saturating => sign | infinity,
            _ => sign | self.greatest,
        };
        if x.is_infinite() {
            return overflow(true);
        }
        if x == 0.0 {
            return sign;
        }
        // |x| = whole · 2^power
        let bits = x.abs().to_bits();
        let (whole, power) = match bits >> 52 {
            0 => (bits, -1074),
            e => (bits & ((1 << 52) - 1) | 1 << 52, e as i32 - 1075),
        };
        let top = 63 - whole.leading_zeros() as i32 + power;
        let least = 1 - self.bias() - self.mantissa as i32;
        let quantum = (top - self.mantissa as i32).max(least);
        let drop = quantum - power;
        let (kept, rest, all) = if drop <= 0 {
            ((whole as u128) << -drop, 0, 1)
        } else if drop < 100 {
            (
                (whole as u128) >> drop,
                whole as u128 & ((1 << drop) - 1),
                1u128 << drop,
            )
        } else {
            (0, 1, 4)
        };
        let up = match rounding {
            Rounding::Nearest => rest * 2 > all || (rest * 2 == all && kept & 1 == 1),
            Rounding::NearestAway => rest * 2 >= all,
            Rounding::Zero => false,
            Rounding::Down => negative && rest != 0,
            Rounding::Up => !negative && rest != 0,
            // The upper bits of the rest, as many as there are random ones.
            Rounding::Random(count, random) => {
                let fraction = if drop <= 0 { 0 } else { (rest << count) / all };
                (fraction + random) >> count != 0
            }
        };
        let rounded = kept + u128::from(up);
        // Codes of numbers follow each other: a carry goes into the exponent.
        let code = if quantum == least {
            rounded
        } else {
            rounded + (((quantum - least) as u128) << self.mantissa)
        };
        if code > self.greatest {
            let towards = match rounding {
                Rounding::Zero => false,
                Rounding::Down => negative,
                Rounding::Up => !negative,
                _ => true,
            };
            return overflow(towards);
        }
        sign | code
    }
}

fn rounding(op: &Op) -> Rounding {
    let named = |words: [&str; 2]| words.iter().any(|word| op.has(word));
    if named(["rz", "rzi"]) {
        Rounding::Zero
    } else if named(["rm", "rmi"]) {
        Rounding::Down
    } else if named(["rp", "rpi"]) {
        Rounding::Up
    } else if op.has("rna") {
        Rounding::NearestAway
    } else {
        Rounding::Nearest
    }
}

pub fn expected(op: &Op, destination: u32, sources: &[u128]) -> Option<Vec<Expect>> {
    if op.has("pack") {
        return pack(op, sources).map(|bits| vec![Expect::Bits(bits)]);
    }
    // The last two words are the types.
    let [.., to, from] = &op.words[..] else { return None };
    if op.words.iter().any(|word| word.starts_with("scaled")) {
        return None;
    }
    let (to_one, count) = elements(to);
    let (from_one, given) = elements(from);
    if count == 1 && given == 1 && to != "tf32" {
        return single(op, destination, sources[0]).map(|e| vec![e]);
    }
    let (target, source) = (format(to_one)?, format(from_one)?);
    let values: Vec<f64> = if given == 1 {
        // `d, a, b`: a becomes the upper element.
        sources[..count]
            .iter()
            .rev()
            .map(|&s| source.decode(cut(s, 32)))
            .collect()
    } else {
        let bits = match from_one {
            "e2m1" => 4,
            "f16" | "bf16" => 16,
            _ => 8,
        };
        let width = source.exponent + source.mantissa + 1;
        (0..given as u32)
            .map(|i| source.decode(cut(sources[0] >> (bits * i), width)))
            .collect()
    };
    if op.has("rs") && count == 4 {
        return None;
    }
    let bits = match to_one {
        "e2m1" => 4,
        "f16" | "bf16" => 16,
        "tf32" => 32,
        _ => 8,
    };
    let mut result = 0;
    for (i, &x) in values.iter().enumerate() {
        let how = if op.has("rs") {
            let random = sources[2] >> (16 * i);
            if to_one == "f16" {
                Rounding::Random(13, cut(random, 13))
            } else {
                Rounding::Random(16, cut(random, 16))
            }
        } else {
            rounding(op)
        };
        let code = if x.is_nan() {
            target.nan.unwrap_or(target.greatest)
        } else if op.has("relu") && x.is_sign_negative() {
            0
        } else {
            target.encode(x, how, op.has("satfinite") || target.infinity.is_none())
        };
        let code = if to == "tf32" { code << 13 } else { code };
        result |= code << (bits * i as u32);
    }
    if to == "tf32" && values[0].is_nan() {
        return Some(vec![Expect::Nan(32)]);
    }
    Some(vec![Expect::Bits(result)])
}

/// `e4m3x2` → (`e4m3`, 2)
fn elements(word: &str) -> (&str, usize) {
    match word.rsplit_once('x') {
        Some((one, count)) => (one, count.parse().unwrap_or(1)),
        None => (word, 1),
    }
}

/// One number to one number, of integers and IEEE formats.
fn single(op: &Op, destination: u32, source: u128) -> Option<Expect> {
    let types = op.types();
    let [to, from] = types[types.len().checked_sub(2)?..] else {
        return None;
    };
    let name = |ty: Type| match (ty.kind, ty.bits) {
        (Kind::Brain, _) => "bf16",
        (_, 16) => "f16",
        (_, 32) => "f32",
        _ => "f64",
    };
    // Results narrower than their register extend by their sign, or by zeros.
    let number = |x: i128| Some(Expect::Bits(cut(x as u128, destination)));
    let ftz = op.has("ftz");
    let clamp = |x: i128| x.clamp(to.least(), to.greatest());
    match (from.is_float(), to.is_float()) {
        (false, false) => {
            let x = from.number(source);
            let x = if op.has("sat") {
                clamp(x)
            } else {
                to.number(cut(x as u128, to.bits))
            };
            number(x)
        }
        (false, true) => {
            let x = from.number(source);
            let format = format(name(to))?;
            // Integers of 64 bits may not fit a double: round them here, in two steps that are one (sticky).
            let magnitude = x.unsigned_abs();
            let drop = (128 - magnitude.leading_zeros()).saturating_sub(53);
            let kept = magnitude >> drop;
            let sticky = u128::from(kept << drop != magnitude);
            let whole = (kept | sticky) as f64 * 2f64.powi(drop as i32);
            let x = if x < 0 { -whole } else { whole };
            saturated(op, to, format.encode(x, rounding(op), false))
        }
        (true, false) => {
            let x = float::flushed(from, source, ftz && from.bits == 32);
            if x.is_nan() {
                if from.bits == 64 && to.bits < 32 {
                    return Some(Expect::Any);
                }
                let zero = from.bits < 64 && to.bits < 64;
                return number(if zero { 0 } else { to.number(1 << (to.bits - 1)) });
            }
            let rounded = match rounding(op) {
                Rounding::Zero => x.trunc(),
                Rounding::Down => x.floor(),
                Rounding::Up => x.ceil(),
                _ => x.round_ties_even(),
            };
            // Beyond 128 bits casts saturate.
            number(clamp(rounded as i128))
        }
        (true, true) => {
            let flushes = ftz && (from.bits == 32 || from.kind == Kind::Brain);
            let x = float::flushed(from, source, flushes);
            let integral = ["rni", "rzi", "rmi", "rpi"].iter().any(|r| op.has(r));
            if x.is_nan() {
                return Some(match (op.has("sat"), to.bits) {
                    (true, _) => Expect::Bits(0),
                    (_, 16) if to == from => Expect::Any,
                    (_, 16) => Expect::Bits(0x7fff),
                    (_, bits) => Expect::Nan(bits),
                });
            }
            // Whether such an operand is flushed before it is rounded one way is not agreed upon.
            if ftz && from.bits == 32 && to.bits == 16 && float::value(from, source) != x {
                return Some(Expect::Any);
            }
            let x = if integral {
                let whole = match rounding(op) {
                    Rounding::Zero => x.trunc(),
                    Rounding::Down => x.floor(),
                    Rounding::Up => x.ceil(),
                    _ => x.round_ties_even(),
                };
                whole.copysign(x)
            } else {
                x
            };
            let format = format(name(to))?;
            let x = if op.has("relu") && x.is_sign_negative() { 0.0 } else { x };
            let code = format.encode(x, rounding(op), op.has("satfinite"));
            let least_normal = 1u128 << format.mantissa;
            let magnitude = code & (format.sign() - 1);
            if ftz && to.bits == 32 && magnitude <= least_normal && magnitude != 0 {
                // At the edge the documents differ.
                if magnitude == least_normal && format.decode(code) != x {
                    return Some(Expect::Any);
                }
                if magnitude < least_normal {
                    return saturated(op, to, code & format.sign());
                }
            }
            saturated(op, to, code)
        }
    }
}

/// `.sat`: to the range from zero to one.
fn saturated(op: &Op, ty: Type, code: u128) -> Option<Expect> {
    let value = float::value(ty, code);
    let code = match op.has("sat") {
        true if value <= 0.0 => 0,
        true if value > 1.0 => match (ty.kind, ty.bits) {
            (Kind::Brain, _) => 0x3f80,
            (_, 16) => 0x3c00,
            (_, 32) => 0x3f80_0000,
            _ => 0x3ff0 << 48,
        },
        _ => code,
    };
    Some(Expect::Bits(code))
}

/// `cvt.pack.sat.u8.s32.b32 d, a, b, c`: c's low part, then a, then b.
fn pack(op: &Op, sources: &[u128]) -> Option<u128> {
    let word = &op.words[3];
    let bits: u32 = word[1..].parse().ok()?;
    let kind = if word.starts_with('s') {
        Kind::Signed
    } else {
        Kind::Unsigned
    };
    let narrow = Type::new(kind, bits, 1);
    let source = Type::new(Kind::Signed, 32, 1);
    let part = |i: usize| {
        cut(
            source.number(sources[i]).clamp(narrow.least(), narrow.greatest()) as u128,
            bits,
        )
    };
    let above = if bits == 16 {
        0
    } else {
        cut(sources[2], 32 - 2 * bits) << (2 * bits)
    };
    Some(above | part(0) << bits | part(1))
}
