//! What `cvt` and `cvt.pack` give: LLVM's arbitrary-precision conversions, and for the formats of eight bits and fewer a
//! look through all their numbers, which `f64` holds exactly.

use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use crate::floats::{canonical, flushed, infinity, is_nan, mode, one, sign};
use crate::text::{Operand, Statement};
use crate::values::{Expected, Inputs, integer, ones, range, width};

fn is_float(ty: &str) -> bool {
    matches!(ty, "f16" | "bf16" | "f32" | "f64" | "tf32")
}

pub fn results(inputs: &Inputs) -> Option<Vec<Expected>> {
    let statement = inputs.statement;
    let (to, from) = (statement.types[0], *statement.types.get(1)?);
    if statement.has("pack") {
        return Some(vec![packed(inputs)]);
    }
    if let Some(format) = Format::of(to) {
        return Some(vec![Expected::Bits(down(inputs, &format, from))]);
    }
    if let Some(format) = Format::of(from) {
        return Some(vec![Expected::Bits(up(inputs, &format, to))]);
    }
    if let Some(half) = to.strip_suffix("x2") {
        let one = |i: usize| {
            let bits = inputs.source(i, "f32") & 0xffff_ffff;
            if statement.has("rs") {
                let random = inputs.source(2, "b32") >> if i == 0 { 16 } else { 0 };
                random_half(statement, half, bits, random)
            } else {
                single(statement, half, "f32", bits)
            }
        };
        return Some(vec![Expected::Bits(one(0) << 16 | one(1))]);
    }
    Some(vec![Expected::Bits(single(
        statement,
        to,
        from,
        inputs.source(0, from) & ones(width(from)),
    ))])
}

/// One number. Integers come back extended to 64 bits: the register takes what fits.
fn single(statement: &Statement, to: &str, from: &str, bits: u128) -> u128 {
    let ftz = statement.has("ftz");
    match (is_float(from), is_float(to)) {
        (false, false) => {
            let value = integer(from, bits);
            let (low, high) = range(to);
            let value = if statement.has("sat") {
                value.clamp(low, high)
            } else {
                value
            };
            integer(to, value as u128) as u128
        }
        (false, true) => {
            let value = integer(from, bits);
            limited(statement, to, from_integer(to, value, mode(statement)))
        }
        (true, false) => {
            let bits = if from == "f32" { flushed(from, bits, ftz) } else { bits };
            to_integer(from, bits, to, mode(statement)) as u128
        }
        (true, true) => {
            // What the result is too narrow to show is not flushed before.
            let bits = if from == "f32" && to != "f16" {
                flushed(from, bits, ftz)
            } else {
                bits
            };
            if (to, from, ftz, is_nan(from, bits)) == ("f64", "f32", true, true) && !statement.has("sat") {
                // A multiplication by one comes first and has its own NaN.
                return 0x7fff_ffff_e000_0000;
            }
            // As seen on an H100.
            match (to, from, is_nan(from, bits)) {
                // A move.
                ("f32", "f32", true) | ("f64", "f64", true) if statement.words.len() == 2 => return bits,
                ("f32", "bf16", true) if ftz => return limited(statement, to, canonical(to)),
                ("tf32", "f32", true) if statement.has("rna") => {
                    let cut = bits & 0xffff_e000;
                    return if statement.has("satfinite") { cut - 0x2000 } else { cut };
                }
                _ => {}
            }
            let integral = statement
                .words
                .iter()
                .any(|w| matches!(*w, "rni" | "rzi" | "rmi" | "rpi"));
            limited(statement, to, to_float(from, bits, to, mode(statement), integral))
        }
    }
}

fn from_integer(to: &str, value: i128, round: Round) -> u128 {
    match to {
        "f16" => Half::from_i128_r(value, round).value.to_bits(),
        "bf16" => BFloat::from_i128_r(value, round).value.to_bits(),
        "f32" => Single::from_i128_r(value, round).value.to_bits(),
        _ => Double::from_i128_r(value, round).value.to_bits(),
    }
}

fn to_integer(from: &str, bits: u128, to: &str, round: Round) -> i128 {
    if is_nan(from, bits) {
        // Zero from the small formats to the small integers, otherwise the lone top bit.
        let small = from != "f64" && width(to) <= 32;
        return if small { 0 } else { integer(to, 1 << (width(to) - 1)) };
    }
    let mut exact = false;
    let (low, high) = range(to);
    let clamped = |value: i128, overflow: bool, negative: bool| match (overflow, negative) {
        (true, true) => low,
        (true, false) => high,
        (false, _) => value.clamp(low, high),
    };
    macro_rules! convert {
        ($format:ty) => {{
            let value = <$format>::from_bits(bits);
            let found = value.to_i128_r(120, round, &mut exact);
            let overflow = found.status.contains(rustc_apfloat::Status::INVALID_OP);
            clamped(found.value, overflow, value.is_negative())
        }};
    }
    match from {
        "f16" => convert!(Half),
        "bf16" => convert!(BFloat),
        "f32" => convert!(Single),
        _ => convert!(Double),
    }
}

fn to_float(from: &str, bits: u128, to: &str, round: Round, integral: bool) -> u128 {
    if is_nan(from, bits) {
        return match (to, from) {
            ("tf32", _) => 0x7fff_e000,
            ("f32", "bf16") => bits << 16,
            // Sign and the top of the payload stay, made quiet.
            ("f16", "f64") => (bits >> 63) << 15 | 0x7e00 | bits >> 42 & 0x1ff,
            ("bf16", "f64") => (bits >> 63) << 15 | 0x7fc0 | bits >> 45 & 0x3f,
            ("f32", "f64") => (bits >> 63) << 31 | 0x7fc0_0000 | bits >> 29 & 0x3f_ffff,
            ("f64", "f32") => (bits >> 31) << 63 | 0x7ff8 << 48 | (bits & 0x7f_ffff) << 29,
            ("f64", "f16") => (bits >> 15) << 63 | 0x7ff8 << 48 | (bits & 0x3ff) << 42,
            ("f64", "bf16") => (bits >> 15) << 63 | 0x7ff8 << 48 | (bits & 0x7f) << 45,
            ("f64", _) => bits | 1 << 51,
            _ => canonical(to),
        };
    }
    macro_rules! convert {
        ($format:ty) => {{
            let value = <$format>::from_bits(bits);
            let value = if integral {
                value.round_to_integral(round).value
            } else {
                value
            };
            let mut lossy = false;
            match to {
                "f16" => FloatConvert::<Half>::convert_r(value, round, &mut lossy)
                    .value
                    .to_bits(),
                "bf16" => FloatConvert::<BFloat>::convert_r(value, round, &mut lossy)
                    .value
                    .to_bits(),
                "f32" => FloatConvert::<Single>::convert_r(value, round, &mut lossy)
                    .value
                    .to_bits(),
                "tf32" => tf32(bits, round),
                _ => FloatConvert::<Double>::convert_r(value, round, &mut lossy)
                    .value
                    .to_bits(),
            }
        }};
    }
    match from {
        "f16" => convert!(Half),
        "bf16" => convert!(BFloat),
        "f32" => convert!(Single),
        _ => convert!(Double),
    }
}

/// Ten bits of fraction: of the bits of `f32`, thirteen go. Sign and magnitude: modes go by the magnitude.
fn tf32(bits: u128, round: Round) -> u128 {
    let (kept, rest) = (bits >> 13, bits & 0x1fff);
    let up = match round {
        Round::NearestTiesToEven => rest > 0x1000 || rest == 0x1000 && kept & 1 != 0,
        Round::NearestTiesToAway => rest >= 0x1000,
        _ => false,
    };
    (kept + u128::from(up)) << 13
}

/// `.ftz`, `.sat`, `.relu`, `.satfinite` on a result.
fn limited(statement: &Statement, to: &str, bits: u128) -> u128 {
    let format = if to == "tf32" { "f32" } else { to };
    let bits = if to == "f32" {
        flushed(to, bits, statement.has("ftz"))
    } else {
        bits
    };
    let (nan, negative) = (is_nan(format, bits), bits & sign(format) != 0);
    match () {
        () if statement.has("sat") && (nan || negative) => 0,
        () if statement.has("sat") => bits.min(one(format)),
        () if nan => bits,
        () if statement.has("relu") && negative => 0,
        () if statement.has("satfinite") && bits & !sign(format) == infinity(format) => {
            bits - if to == "tf32" { 0x2000 } else { 1 }
        }
        () => bits,
    }
}

/// `f32` to a half: the number next to it towards zero, or the one beyond, by the carry out of the discarded part (as
/// many bits of it as there are random ones) and the random bits.
fn random_half(statement: &Statement, half: &str, bits: u128, random: u128) -> u128 {
    let count = if half == "f16" { 13 } else { 16 };
    let magnitude = bits & 0x7fff_ffff;
    let signed = (bits >> 31) << 15;
    let result = if is_nan("f32", bits) {
        canonical(half)
    } else if magnitude == infinity("f32") {
        infinity(half) | signed
    } else {
        let value: f64 = f32::from_bits(magnitude as u32).into();
        let number = |bits: u128| match half {
            "f16" => half::f16::from_bits(bits as u16).to_f64(),
            _ => half::bf16::from_bits(bits as u16).to_f64(),
        };
        // Steps go on beyond the greatest number as if exponents had no end.
        let greatest = infinity(half) - 1;
        let below = to_float("f32", magnitude, half, Round::TowardZero, false).min(greatest);
        let step = if below == greatest {
            number(below) - number(below - 1)
        } else {
            number(below + 1) - number(below)
        };
        let part = ((value - number(below)) / step * 2f64.powi(count)).floor();
        let up = part + (random & ((1 << count) - 1)) as f64 >= 2f64.powi(count);
        (below + u128::from(up)) | signed
    };
    limited(statement, half, result)
}

fn packed(inputs: &Inputs) -> Expected {
    let word = inputs
        .statement
        .words
        .iter()
        .find(|w| w.len() <= 3 && w[1..].parse::<u32>().is_ok());
    let to = *word.expect("an element type");
    let bits: u32 = to[1..].parse().expect("a width");
    let (low, high) = if to.starts_with('s') {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    };
    let part = |i: usize| integer("s32", inputs.source(i, "s32")).clamp(low, high) as u128 & ones(bits);
    // What was there moves up by both.
    let rest = if bits == 16 {
        0
    } else {
        inputs.source(2, "b32") << (2 * bits)
    };
    Expected::Bits((rest | part(0) << bits | part(1)) & 0xffff_ffff)
}

// ---- eight bits and fewer ------------------------------------------------------------------------------------------

/// All numbers of a format without sign, ascending: number `i` has the bits `i`.
struct Format {
    name: String,
    numbers: Vec<f64>,
    /// Bits of an element, and of its place in a packed operand.
    bits: u32,
    place: u32,
    nan: Option<u128>,
    infinity: Option<u128>,
    signed: bool,
}

impl Format {
    /// The tables of "OCP 8-bit Floating Point Specification" and "OCP Microscaling Formats"; `ue5m3` and `s2f6` as the
    /// PTX ISA has them.
    fn of(packed: &str) -> Option<Format> {
        let (name, _) = packed.rsplit_once('x')?;
        let (exponent, fraction, bias, bits, nan, infinity) = match name {
            "e4m3" => (4, 3, 7, 8, Some(0x7f), None),
            "e5m2" => (5, 2, 15, 8, Some(0x7f), Some(0x7c)),
            "e2m3" => (2, 3, 1, 6, None, None),
            "e3m2" => (3, 2, 3, 6, None, None),
            "e2m1" => (2, 1, 1, 4, None, None),
            "ue5m3" => (5, 3, 15, 8, Some(0xff), None),
            "ue8m0" => (8, 0, 127, 8, Some(0xff), None),
            "s2f6" => (0, 0, 0, 8, None, None),
            _ => return None,
        };
        let numbers: Vec<f64> = match name {
            "s2f6" => (0..128).map(|i| f64::from(i) / 64.0).collect(),
            "ue8m0" => (0..255).map(|i| 2f64.powi(i - 127)).collect(),
            _ => {
                let all = 1u32 << (exponent + fraction);
                let end = infinity.or(nan).unwrap_or(u128::from(all)) as u32;
                let part = |i: u32| f64::from(i & ((1 << fraction) - 1)) / f64::from(1 << fraction);
                (0..end)
                    .map(|i| match (i >> fraction) as i32 {
                        0 => part(i) * 2f64.powi(1 - bias),
                        field => (1.0 + part(i)) * 2f64.powi(field - bias),
                    })
                    .collect()
            }
        };
        Some(Format {
            name: name.to_owned(),
            numbers,
            bits,
            place: if bits == 4 { 4 } else { 8 },
            nan,
            infinity,
            signed: !name.starts_with('u'),
        })
    }

    /// What bits stand for; `None` is NaN.
    fn value(&self, bits: u128) -> Option<f64> {
        let bits = bits & ones(self.bits);
        if self.name == "s2f6" {
            return Some(f64::from(bits as u8 as i8) / 64.0);
        }
        let sign = if self.signed { 1 << (self.bits - 1) } else { 0 };
        let magnitude = bits & !sign;
        let value = match self.numbers.get(magnitude as usize) {
            Some(&value) => value,
            None if Some(magnitude) == self.infinity => f64::INFINITY,
            None => return None,
        };
        Some(if bits & sign != 0 { -value } else { value })
    }

    /// A number in this format.
    fn bits(&self, statement: &Statement, value: Option<f64>, random: u128) -> u128 {
        let most = self.numbers.len() as u128 - 1;
        let Some(value) = value else {
            return self.nan.unwrap_or(most);
        };
        let magnitude = value.abs();
        let above = self.numbers.partition_point(|&x| x <= magnitude) as u128;
        let (low, next) = (above.saturating_sub(1), above.min(most));
        let (x, y) = (self.numbers[low as usize], self.numbers[next as usize]);
        // Beyond the last number steps go on as they were.
        let step = if low == most {
            x - self.numbers[most as usize - 1]
        } else {
            y - x
        };
        let step = if self.name == "ue8m0" { x } else { step };
        let rest = if magnitude < x { 0.0 } else { magnitude - x };
        let up = match () {
            () if statement.has("rs") => (rest / step * 256.0).floor() + random as f64 >= 256.0,
            () if statement.has("rz") => rest >= step,
            () if statement.has("rp") => rest > 0.0,
            () => rest > step / 2.0 || rest == step / 2.0 && low % 2 == 1,
        };
        let negative = value.is_sign_negative();
        if self.name == "s2f6" && negative {
            // −2 is one more than 2 has.
            let steps = if low == most && (up || rest >= step) {
                128
            } else {
                low + u128::from(up)
            };
            let steps = if magnitude > 2.0 { 128 } else { steps };
            return if statement.has("relu") { 0 } else { (256 - steps) & 0xff };
        }
        let found = low + u128::from(up);
        let found = match () {
            () if found <= most && rest < step.max(f64::MIN_POSITIVE) => found,
            () if statement.has("satfinite") => most,
            () => self.nan.expect("saturation is for formats without NaN"),
        };
        match (negative && self.signed, statement.has("relu")) {
            (true, true) => 0,
            (true, false) => found | 1 << (self.bits - 1),
            (false, _) => found,
        }
    }
}

/// A number of a source type; `None` is NaN.
fn number(ty: &str, bits: u128) -> Option<f64> {
    let value = match ty {
        "f16" => half::f16::from_bits(bits as u16).to_f64(),
        "bf16" => half::bf16::from_bits(bits as u16).to_f64(),
        _ => f32::from_bits(bits as u32).into(),
    };
    (!value.is_nan()).then_some(value)
}
/// A factor of type `ue8m0`; `None` is NaN.
fn factor(bits: u128) -> Option<f64> {
    let bits = bits & 0xff;
    (bits != 0xff).then(|| 2f64.powi(bits as i32 - 127))
}

fn down(inputs: &Inputs, format: &Format, from: &str) -> u128 {
    let statement = inputs.statement;
    if let Operand::Group(list) = &statement.operands[1] {
        let random = inputs.source(1, "b32");
        // Eight bits each: for four bits and fewer the lower two numbers have the lower bytes of both halves.
        let bytes: [u32; 4] = if format.bits == 4 { [3, 1, 2, 0] } else { [3, 2, 1, 0] };
        let elements = list.iter().zip(bytes).map(|(operand, byte)| {
            let value = number("f32", inputs.value(operand, "f32"));
            format.bits(statement, value, random >> (8 * byte) & 0xff)
        });
        return elements.fold(0, |all, element| all << format.place | element);
    }
    let halves = from.strip_suffix("x2");
    let count = if halves.is_some() { 1 } else { 2 };
    let scale = if statement.has("scaled::n2::ue8m0") {
        inputs.source(count, "b16")
    } else {
        0x7f7f
    };
    let one = |i: usize| {
        let value = match halves {
            None => number("f32", inputs.source(i, "f32")),
            Some(half) => number(half, inputs.source(0, "b32") >> if i == 0 { 16 } else { 0 } & 0xffff),
        };
        let factor = factor(scale >> if i == 0 { 8 } else { 0 });
        format.bits(statement, value.zip(factor).map(|(value, factor)| value / factor), 0)
    };
    one(0) << format.place | one(1)
}

fn up(inputs: &Inputs, format: &Format, to: &str) -> u128 {
    let statement = inputs.statement;
    let half = to.strip_suffix("x2").expect("two halves");
    let bits = inputs.source(0, "b16");
    let scale = if statement.has("scaled::n2::ue8m0") {
        inputs.source(1, "b16")
    } else {
        0x7f7f
    };
    let one = |i: u32| {
        let value = format.value(bits >> (i * format.place));
        let Some((value, factor)) = value.zip(factor(scale >> (8 * i))) else {
            return canonical(half);
        };
        let result = to_float(
            "f64",
            u128::from((value * factor).to_bits()),
            half,
            Round::NearestTiesToEven,
            false,
        );
        limited(statement, half, result)
    };
    one(1) << 16 | one(0)
}
