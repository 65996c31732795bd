//! Floating-point instructions, on LLVM's arbitrary-precision floats; approximations within the manual's bounds, on f64
//! (PTX ISA, Floating-Point, Half-Precision and Mixed-Precision Floating-Point Instructions).

use rustc_apfloat::ieee::{BFloat, Double, Half as Half16, Single};
use rustc_apfloat::{Float, FloatConvert, Round, Status, StatusAnd};

use super::{Expect, Half, Kind, Op, Type, cut};

/// A float of any type as f64: exact.
pub fn value(ty: Type, bits: u128) -> f64 {
    fn to_double<F: FloatConvert<Double>>(bits: u128) -> f64 {
        let mut lost = false;
        let double: Double = F::from_bits(bits).convert(&mut lost).value;
        f64::from_bits(double.to_bits() as u64)
    }
    let bits = cut(bits, ty.bits);
    match (ty.kind, ty.bits) {
        (Kind::Brain, _) => to_double::<BFloat>(bits),
        (_, 16) => to_double::<Half16>(bits),
        (_, 32) => to_double::<Single>(bits),
        _ => f64::from_bits(bits as u64),
    }
}

/// Subnormal numbers become zeros of their sign, if `ftz`.
pub fn flushed(ty: Type, bits: u128, ftz: bool) -> f64 {
    let x = value(ty, bits);
    if ftz && x != 0.0 && x.abs() < least_normal(ty) {
        0f64.copysign(x)
    } else {
        x
    }
}

fn least_normal(ty: Type) -> f64 {
    match (ty.kind, ty.bits) {
        (Kind::Brain, _) | (_, 32) => f64::from(f32::MIN_POSITIVE),
        (_, 16) => 2f64.powi(-14),
        _ => f64::MIN_POSITIVE,
    }
}

pub fn expected(op: &Op, sources: &[u128]) -> Option<Vec<Expect>> {
    let types = op.types();
    let first = *types.first()?;
    // `add.f32.f16`: the last operand is f32, the others are halves.
    if let [_, half] = types[..] {
        let widened = |i: usize| {
            let x = value(half, sources[i]) as f32;
            u128::from(x.to_bits())
        };
        let mut wide: Vec<u128> = (0..sources.len() - 1).map(widened).collect();
        wide.push(sources[sources.len() - 1]);
        return exact::<Single>(op, first, &wide).map(|e| vec![e]);
    }
    let part = first.element();
    let element = |i: u32| -> Option<Expect> {
        let at: Vec<u128> = sources.iter().map(|s| cut(s >> (i * part.bits), part.bits)).collect();
        scalar(op, part, &at)
    };
    if first.elements == 1 {
        return element(0).map(|e| vec![e]);
    }
    let parts = [element(0)?, element(1)?];
    if let [Expect::Bits(low), Expect::Bits(high)] = parts {
        return Some(vec![Expect::Bits(low | high << part.bits)]);
    }
    if parts.contains(&Expect::Any) {
        return Some(vec![Expect::Any]);
    }
    let half = |e: &Expect| match *e {
        Expect::Bits(bits) => Half::Bits(bits as u16),
        Expect::Near(value, distance, ty) => Half::Near(value, distance, ty),
        _ => unreachable!("halves have one NaN"),
    };
    Some(vec![Expect::Halves([half(&parts[0]), half(&parts[1])])])
}

fn scalar(op: &Op, ty: Type, sources: &[u128]) -> Option<Expect> {
    if let Some(expect) = approximate(op, ty, sources) {
        return Some(expect);
    }
    match (ty.kind, ty.bits) {
        (Kind::Brain, _) => exact::<BFloat>(op, ty, sources),
        (_, 16) => exact::<Half16>(op, ty, sources),
        (_, 32) => exact::<Single>(op, ty, sources),
        _ => exact::<Double>(op, ty, sources),
    }
}

/// What IEEE 754 and the manual define to the bit.
fn exact<F: Float>(op: &Op, ty: Type, sources: &[u128]) -> Option<Expect> {
    // The assembler takes `.ftz` on some f64 forms, and makes the same code as without.
    // `mad` without rounding is `fma.rn.ftz.f32` where it runs now (PTX ISA, mad: Target ISA Notes).
    let unrounded = op.mnemonic() == "mad" && !op.words.iter().any(|w| matches!(w.as_str(), "rn" | "rz" | "rm" | "rp"));
    let ftz = (op.has("ftz") || unrounded) && ty.bits < 64;
    let flush = |x: F| {
        if ftz && x.is_denormal() {
            F::ZERO.copy_sign(x)
        } else {
            x
        }
    };
    let args: Vec<F> = sources.iter().map(|&s| flush(F::from_bits(s))).collect();
    let sign_bit = 1u128 << (ty.bits - 1);
    let nan = match (ty.kind, ty.bits) {
        (_, 16) => Expect::Bits(0x7fff),
        (_, 32) => Expect::Bits(0x7fff_ffff),
        (_, bits) => Expect::Nan(bits),
    };
    let round = if op.has("rz") {
        Round::TowardZero
    } else if op.has("rm") {
        Round::TowardNegative
    } else if op.has("rp") {
        Round::TowardPositive
    } else {
        Round::NearestTiesToEven
    };
    let computed: StatusAnd<F> = match op.mnemonic() {
        "add" => args[0].add_r(args[1], round),
        "sub" => args[0].sub_r(args[1], round),
        "mul" => args[0].mul_r(args[1], round),
        // A factor that was out of bounds of a tensor; the manual leaves its bits open, Hopper writes these.
        "fma" if op.has("oob") && sources[..2].iter().any(|bits| bits & 0x7fff == 0x7ff7) => {
            return Some(Expect::Bits(0));
        }
        "fma" | "mad" => args[0].mul_add_r(args[1], args[2], round),
        "div" => args[0].div_r(args[1], round),
        "rcp" => F::from_u128(1).value.div_r(args[0], round),
        "sqrt" => root(ty, args[0], round),
        "min" | "max" => return Some(extreme(op, &args, nan)),
        "neg" | "abs" => {
            if args[0].is_nan() {
                // The manual leaves the payload open.
                return Some(Expect::Nan(ty.bits)).filter(|_| ty.bits > 16).or(Some(nan));
            }
            let x = if op.mnemonic() == "neg" {
                -args[0]
            } else {
                args[0].abs()
            };
            return Some(Expect::Bits(x.to_bits()));
        }
        "copysign" => return Some(Expect::Bits(sources[1] & !sign_bit | sources[0] & sign_bit)),
        "testp" => {
            let x = F::from_bits(sources[0]);
            let holds = match op.words[1].as_str() {
                "finite" => x.is_finite(),
                "infinite" => x.is_infinite(),
                "number" => !x.is_nan(),
                "notanumber" => x.is_nan(),
                "normal" => x.is_normal() || x.is_zero(),
                _ => x.is_denormal(),
            };
            return Some(Expect::Bits(holds.into()));
        }
        _ => return None,
    };
    let result = computed.value;
    if result.is_nan() {
        return Some(if op.has("sat") { Expect::Bits(0) } else { nan });
    }
    // Rounded up to the least normal number from below: whether that counts as subnormal is not documented.
    if ftz && computed.status.contains(Status::INEXACT) && result.abs().to_bits() == F::SMALLEST_NORMALIZED_BITS(ty) {
        return Some(Expect::Any);
    }
    let result = flush(result);
    let one = F::from_u128(1).value;
    if op.has("sat") {
        return Some(Expect::Bits(if result.is_negative() || result.is_zero() {
            0
        } else if result > one {
            one.to_bits()
        } else {
            result.to_bits()
        }));
    }
    if op.has("relu") && result.is_negative() {
        return Some(Expect::Bits(0));
    }
    Some(Expect::Bits(result.to_bits()))
}

/// The least positive normal number's bits.
trait Limits {
    #[allow(non_snake_case, reason = "the names are those of the formula")]
    fn SMALLEST_NORMALIZED_BITS(ty: Type) -> u128;
}

impl<F: Float> Limits for F {
    fn SMALLEST_NORMALIZED_BITS(ty: Type) -> u128 {
        match (ty.kind, ty.bits) {
            (Kind::Brain, _) => 1 << 7,
            (_, 16) => 1 << 10,
            (_, 32) => 1 << 23,
            _ => 1 << 52,
        }
    }
}

/// The square root, correctly rounded: found by bisection over the bits, judged by exact products.
fn root<F: Float>(ty: Type, x: F, round: Round) -> StatusAnd<F> {
    let exactly = |value: F| StatusAnd {
        status: Status::OK,
        value,
    };
    if x.is_nan() || (x.is_negative() && !x.is_zero()) {
        return exactly(F::NAN);
    }
    if x.is_zero() || x.is_infinite() {
        return exactly(x);
    }
    // Sign of y·y - x, exactly: a fused product is zero, or has the sign of the true difference. Numbers whose squares
    // leave the format are scaled by powers of four, their roots by powers of two.
    let mut scale = 0;
    let mut scaled = x;
    let low = F::from_u128(1).value;
    let high = F::from_u128(4).value;
    while scaled < low {
        scaled = scaled.scalbn(2);
        scale += 1;
    }
    while scaled >= high {
        scaled = scaled.scalbn(-2);
        scale -= 1;
    }
    let (mut down, mut up) = (low.to_bits(), F::from_u128(2).value.to_bits());
    let compare = |bits: u128| {
        let y = F::from_bits(bits);
        let difference = y.mul_add_r(y, -scaled, Round::NearestTiesToEven).value;
        if difference.is_zero() {
            0
        } else if difference.is_negative() {
            -1
        } else {
            1
        }
    };
    // Greatest y with y² ≤ x.
    while up - down > 1 {
        let middle = (down + up) / 2;
        if compare(middle) <= 0 {
            down = middle
        } else {
            up = middle
        }
    }
    let (lower, upper) = (F::from_bits(down), F::from_bits(up));
    let exact = compare(down) == 0;
    let nearest = || {
        // (lower + half a step)² against x: lower² + lower·step + step²/4 - x, in numbers that hold it exactly.
        let (a, s) = (
            value(ty, lower.to_bits()),
            value(ty, upper.to_bits()) - value(ty, lower.to_bits()),
        );
        let mut lost = false;
        let wide =
            |x: f64| -> rustc_apfloat::ieee::Quad { Double::from_bits(x.to_bits().into()).convert(&mut lost).value };
        let mut wide = wide;
        let middle = wide(a) + wide(s / 2.0);
        let middle = middle.value;
        let square = middle
            .mul_add_r(middle, -wide(value(ty, scaled.to_bits())), Round::NearestTiesToEven)
            .value;
        if square.is_negative() { upper } else { lower }
    };
    let chosen = match round {
        _ if exact => lower,
        Round::TowardPositive => upper,
        Round::NearestTiesToEven => nearest(),
        _ => lower,
    };
    StatusAnd {
        status: if exact { Status::OK } else { Status::INEXACT },
        value: chosen.scalbn(-scale),
    }
}

fn extreme<F: Float>(op: &Op, args: &[F], nan: Expect) -> Expect {
    let min = op.mnemonic() == "min";
    let absolute = op.has("abs");
    let sign = args.iter().fold(false, |s, a| s ^ a.is_negative());
    let values: Vec<F> = args.iter().map(|a| if absolute { a.abs() } else { *a }).collect();
    if op.has("NaN") && values.iter().any(|v| v.is_nan()) {
        return nan;
    }
    let numbers: Vec<F> = values.into_iter().filter(|v| !v.is_nan()).collect();
    let Some(&first) = numbers.first() else { return nan };
    let best = numbers[1..].iter().fold(first, |best, &x| {
        // −0 is less than +0.
        let less = x < best || (x.is_zero() && best.is_zero() && x.is_negative());
        let same = x.bitwise_eq(best);
        if less == min && !same { x } else { best }
    });
    let best = if op.has("xorsign") {
        if sign { -best.abs() } else { best.abs() }
    } else {
        best
    };
    Expect::Bits(best.to_bits())
}

/// Approximations and their documented bounds (PTX ISA, the "Notes" of each instruction). A form without any modifier is
/// the approximate one of PTX 1.x.
fn approximate(op: &Op, ty: Type, sources: &[u128]) -> Option<Expect> {
    let plain = op.words.len() == 2 && ty.bits == 32;
    let name = op.mnemonic();
    let is_approximate = op.has("approx")
        || op.has("full")
        || (plain && matches!(name, "div" | "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2"))
        || name == "rsqrt";
    if !is_approximate {
        return None;
    }
    // Old forms flush subnormals, new ones need not.
    let ftz = op.has("ftz") || plain;
    let tiny = |x: f64| x != 0.0 && x.abs() < least_normal(ty);
    let args: Vec<f64> = sources.iter().map(|&s| value(ty, s)).collect();
    // The 64-bit gross forms look at the upper halves alone: such a NaN may look like infinity.
    let hidden = ty.bits == 64 && op.has("ftz") && args[0].is_nan() && (sources[0] >> 32) & 0xf_ffff == 0;
    if hidden {
        return Some(Expect::Any);
    }
    let x = flushed(ty, sources[0], ftz);
    let nan = if ty.bits == 64 || ty.bits == 32 {
        Expect::Nan(ty.bits)
    } else {
        Expect::Bits(0x7fff)
    };
    let relative = |y: f64, bound: f64| {
        if y.is_nan() {
            return nan;
        }
        let greatest = match (ty.kind, ty.bits) {
            (_, 64) => f64::MAX,
            (Kind::Float, 16) => 65504.0,
            (Kind::Brain, _) => 3.3895313892515355e38,
            _ => f64::from(f32::MAX),
        };
        let step = match (ty.kind, ty.bits) {
            (_, 64) => f64::from_bits(1),
            (Kind::Float, 16) => 2f64.powi(-24),
            (Kind::Brain, _) => 2f64.powi(-133),
            _ => f64::from(f32::from_bits(1)),
        };
        // At the ends of the range the bound says nothing.
        if y.is_finite() && (y.abs() > greatest * (1.0 - 2.0 * bound) || (ftz && tiny(y))) {
            return Expect::Any;
        }
        if ftz && y != 0.0 && y.abs() < least_normal(ty) * (1.0 + 2.0 * bound) {
            return Expect::Any;
        }
        Expect::Near(y, if y.is_finite() { y.abs() * bound + step } else { 0.0 }, ty)
    };
    let absolute = |y: f64, bound: f64| if y.is_nan() { nan } else { Expect::Near(y, bound, ty) };
    let power = |n: f64| n.exp2();
    Some(match (name, ty.bits) {
        ("rcp", 64) => match x {
            x if tiny(args[0]) || x == 0.0 => Expect::Near(1.0 / 0f64.copysign(x), 0.0, ty),
            x => relative(1.0 / x, power(-20.0)),
        },
        ("rsqrt", 64) if tiny(args[0]) => Expect::Any,
        ("rsqrt", 64) => relative(1.0 / x.sqrt(), power(-20.0)),
        ("rcp", _) => relative(1.0 / x, power(-23.0)),
        ("rsqrt", _) if x == 0.0 => Expect::Near(1.0 / x, 0.0, ty),
        ("rsqrt", _) => relative(1.0 / x.sqrt(), power(-22.9)),
        // The documents say 2^-23; published measurements of the hardware's rsqrt times x allow a little more.
        ("sqrt", _) => relative(x.sqrt(), power(-22.0)),
        ("div", _) => {
            let y = flushed(ty, sources[1], ftz);
            let quotient = x / y;
            let approx = !op.has("full");
            let large = y.abs() > 2f64.powi(126);
            if approx && large && y.is_finite() && !x.is_nan() {
                return Some(if x.is_infinite() {
                    nan
                } else {
                    Expect::Near(0.0, 0.0, ty)
                });
            }
            if (approx && !ftz && tiny(y))
                || (quotient.is_finite() && quotient.abs() > 1e38)
                || tiny(quotient)
                || tiny(x)
            {
                return Some(Expect::Any);
            }
            relative(quotient, power(-22.0))
        }
        ("sin", _) | ("cos", _) => {
            let y = if name == "sin" { x.sin() } else { x.cos() };
            let turns = x.abs() / std::f64::consts::TAU;
            match turns {
                t if t <= 1.0 => absolute(y, power(-20.4)),
                t if t <= 50.0 => absolute(y, power(-14.7)),
                _ if y.is_nan() => nan,
                _ => Expect::Near(0.0, 1.0 + power(-10.0), ty),
            }
        }
        ("lg2", _) => match x {
            x if x > 0.5 && x < 2.0 => absolute(x.log2(), power(-22.0)),
            0.0 => Expect::Near(f64::NEG_INFINITY, 0.0, ty),
            x => relative(x.log2(), power(-22.0)),
        },
        ("ex2", 32) => relative(x.exp2(), power(-22.0)),
        ("ex2", _) => relative(
            x.exp2(),
            if ty.kind == Kind::Brain {
                power(-7.0)
            } else {
                power(-9.9)
            },
        ),
        ("tanh", 32) => relative(x.tanh(), power(-11.0)),
        ("tanh", _) => absolute(
            x.tanh(),
            // Of two arguments an H100 is further off than the manual's 2^-8: as far as this.
            if ty.kind == Kind::Brain {
                0.003_906_505
            } else {
                power(-10.987)
            },
        ),
        _ => return None,
    })
}
