//! Reductions of elements in memory and of elements that several devices have: numbers in `f64` that are rounded here, and
//! integers.

/// Digits behind the point, least exponent of a normal number, greatest number; beyond it, infinity or that number.
struct Format {
    fraction: i32,
    least: i32,
    greatest: f64,
    saturates: bool,
    bits: u32,
    nan: u64,
}

fn format(number: &str) -> Format {
    let of = |fraction, least, greatest, saturates, bits, nan| Format {
        fraction,
        least,
        greatest,
        saturates,
        bits,
        nan,
    };
    match number {
        "f32" => of(23, -126, f64::from(f32::MAX), false, 32, 0x7fff_ffff),
        "f16" => of(10, -14, 65504.0, false, 16, 0x7fff),
        "bf16" => of(7, -126, 255.0 * 120f64.exp2(), false, 16, 0x7fff),
        "e4m3" => of(3, -6, 448.0, true, 8, 0x7f),
        "e5m2" => of(2, -14, 57344.0, true, 8, 0x7f),
        _ => panic!("{number}"),
    }
}

impl Format {
    fn decode(&self, bits: u64) -> f64 {
        let exponents = self.bits as i32 - 1 - self.fraction;
        let sign = if bits >> (self.bits - 1) & 1 == 1 { -1.0 } else { 1.0 };
        let field = (bits >> self.fraction) as i32 & ((1 << exponents) - 1);
        let fraction = (bits & ((1 << self.fraction) - 1)) as f64;
        let top = field == (1 << exponents) - 1;
        let e4m3 = self.fraction == 3;
        if top && (!e4m3 || fraction == 7.0) {
            return if fraction == 0.0 {
                sign * f64::INFINITY
            } else {
                f64::NAN
            };
        }
        let (whole, exponent) = match field {
            0 => (fraction, self.least - self.fraction),
            _ => (
                fraction + f64::from(self.fraction).exp2(),
                field - 1 + self.least - self.fraction,
            ),
        };
        sign * whole * f64::from(exponent).exp2()
    }

    fn encode(&self, value: f64) -> u64 {
        if value.is_nan() {
            return self.nan;
        }
        let value = self.round(value);
        let sign = u64::from(value.is_sign_negative()) << (self.bits - 1);
        let magnitude = value.abs();
        let exponents = self.bits as i32 - 1 - self.fraction;
        if magnitude.is_infinite() {
            return sign | ((1 << exponents) - 1) << self.fraction;
        }
        if magnitude < f64::from(self.least).exp2() {
            return sign | (magnitude / f64::from(self.least - self.fraction).exp2()) as u64;
        }
        let exponent = magnitude.log2().floor() as i32;
        // The logarithm may be off by a hair.
        let exponent = exponent - i32::from(f64::from(exponent).exp2() > magnitude);
        let fraction = (magnitude / f64::from(exponent - self.fraction).exp2()) as u64 - (1 << self.fraction);
        sign | ((exponent - self.least + 1) as u64) << self.fraction | fraction
    }

    fn round(&self, value: f64) -> f64 {
        if value.is_nan() || value == 0.0 {
            return value;
        }
        if value.is_infinite() {
            return if self.saturates {
                self.greatest.copysign(value)
            } else {
                value
            };
        }
        let exponent = ((value.abs().to_bits() >> 52) as i32 - 1023).max(self.least);
        let quantum = f64::from(exponent - self.fraction).exp2();
        let rounded = (value / quantum).round_ties_even() * quantum;
        match rounded.abs() > self.greatest {
            true if self.saturates => self.greatest.copysign(value),
            true => f64::INFINITY.copysign(value),
            false => rounded,
        }
    }
}

pub fn bytes_of(number: &str) -> usize {
    match number {
        "e4m3" | "e5m2" => 1,
        "f16" | "bf16" => 2,
        "u64" | "s64" | "b64" | "f64" => 8,
        _ => 4,
    }
}

pub fn get(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

fn extreme(op: &str, a: f64, b: f64) -> bool {
    // Whether `b` comes before `a`.
    match () {
        () if b.is_nan() => false,
        () if a.is_nan() => true,
        () if a == 0.0 && b == 0.0 => b.is_sign_negative() == (op == "min") && a.is_sign_negative() != (op == "min"),
        () if op == "min" => b < a,
        () => b > a,
    }
}

/// Two numbers in memory, or of two devices, where each step is rounded to `sums`.
fn integers(op: &str, number: &str, a: u64, b: u64) -> u64 {
    let bits = 8 * bytes_of(number) as u32;
    let signed = |x: u64| {
        if bits == 32 {
            i64::from(x as u32 as i32)
        } else {
            x as i64
        }
    };
    let less = |x: u64, y: u64| match number.starts_with('s') {
        true => signed(x) < signed(y),
        false => x < y,
    };
    let result = match op {
        "add" => a.wrapping_add(b),
        "and" => a & b,
        "or" => a | b,
        "xor" => a ^ b,
        "min" => {
            if less(b, a) {
                b
            } else {
                a
            }
        }
        "max" => {
            if less(a, b) {
                b
            } else {
                a
            }
        }
        "inc" => {
            if a >= b {
                0
            } else {
                a + 1
            }
        }
        "dec" => {
            if a == 0 || a > b {
                b
            } else {
                a - 1
            }
        }
        _ => panic!("{op}"),
    };
    result & u64::MAX >> (64 - bits)
}

/// What memory holds after `red`.
pub fn updated(op: &str, number: &str, old: u64, new: u64, flushes: bool) -> u64 {
    if op == "store" {
        return new;
    }
    if number == "f64" {
        return (f64::from_bits(old) + f64::from_bits(new)).to_bits();
    }
    if !number.starts_with(['f', 'b', 'e']) || number == "b32" || number == "b64" {
        return integers(op, number, old, new);
    }
    let format = format(number);
    let flush = |value: f64| match flushes && value.abs() < (-126f64).exp2() {
        true => 0f64.copysign(value),
        false => value,
    };
    let (a, b) = (flush(format.decode(old)), flush(format.decode(new)));
    match op {
        "add" => format.encode(flush(format.round(a + b))),
        _ if a.is_nan() && b.is_nan() => format.nan,
        _ if extreme(op, a, b) => new,
        _ => old,
    }
}

/// What `ld_reduce` gives for a number that the devices have.
pub fn reduced(op: &str, number: &str, sums: &str, values: &[u64]) -> u64 {
    if number == "f64" {
        return values
            .iter()
            .map(|&bits| f64::from_bits(bits))
            .reduce(|a, b| a + b)
            .expect("one")
            .to_bits();
    }
    if !number.starts_with(['f', 'b', 'e']) || number == "b32" || number == "b64" {
        return values
            .iter()
            .copied()
            .reduce(|a, b| integers(op, number, a, b))
            .expect("one");
    }
    let format = self::format(number);
    if op == "add" {
        let step = self::format(sums);
        let sum = values
            .iter()
            .map(|&bits| format.decode(bits))
            .reduce(|a, b| step.round(a + b));
        return format.encode(sum.expect("one"));
    }
    let best = values.iter().copied().reduce(|a, b| {
        if extreme(op, format.decode(a), format.decode(b)) {
            b
        } else {
            a
        }
    });
    let best = best.expect("one");
    if format.decode(best).is_nan() { format.nan } else { best }
}

pub fn same(number: &str, a: u64, b: u64) -> bool {
    a == b || number == "f64" && f64::from_bits(a).is_nan() && f64::from_bits(b).is_nan()
}
