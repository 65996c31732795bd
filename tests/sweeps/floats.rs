//! What floating-point instructions give: LLVM's arbitrary-precision arithmetic, one rounding, and the manual's rules for
//! NaN, subnormals and saturation. Roots are judged by their squares in 113 bits; approximations by the manual's bounds.

use rustc_apfloat::ieee::{BFloat, Double, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use crate::text::Statement;
use crate::values::{Expected, Inputs, number, ones, width};

/// The mode that a statement names; to nearest even otherwise.
pub fn mode(statement: &Statement) -> Round {
    let named = |words: [&str; 2]| words.iter().any(|word| statement.has(word));
    match () {
        () if named(["rz", "rzi"]) => Round::TowardZero,
        () if named(["rm", "rmi"]) => Round::TowardNegative,
        () if named(["rp", "rpi"]) => Round::TowardPositive,
        () if named(["rna", "rna"]) => Round::NearestTiesToAway,
        () => Round::NearestTiesToEven,
    }
}

/// The NaN that arithmetic returns.
pub fn canonical(ty: &str) -> u128 {
    match ty {
        "f32" => 0x7fff_ffff,
        "f64" => 0xfff8 << 48,
        _ => 0x7fff,
    }
}
pub fn sign(ty: &str) -> u128 {
    1 << (width(ty) - 1)
}
/// Exponent bits all set.
pub fn infinity(ty: &str) -> u128 {
    match ty {
        "f16" => 0x7c00,
        "bf16" => 0x7f80,
        "f32" => 0x7f80_0000,
        _ => 0x7ff << 52,
    }
}
pub fn is_nan(ty: &str, bits: u128) -> bool {
    bits & !sign(ty) & ones(width(ty)) > infinity(ty)
}
pub fn one(ty: &str) -> u128 {
    match ty {
        "f16" => 0x3c00,
        "bf16" => 0x3f80,
        "f32" => 0x3f80_0000,
        _ => 0x3ff << 52,
    }
}
fn least_normal(ty: &str) -> u128 {
    infinity(ty) & infinity(ty).wrapping_neg()
}
/// Subnormal numbers become zeros of their sign.
pub fn flushed(ty: &str, bits: u128, ftz: bool) -> u128 {
    if ftz && bits & !sign(ty) < least_normal(ty) {
        bits & sign(ty)
    } else {
        bits
    }
}

/// `.ftz`, then `.sat` or `.relu`.
fn finished(statement: &Statement, ty: &str, bits: u128) -> u128 {
    let bits = flushed(ty, bits, statement.has("ftz") && ty != "f64");
    let negative = bits & sign(ty) != 0;
    match () {
        () if statement.has("sat") && (is_nan(ty, bits) || negative) => 0,
        () if statement.has("sat") => bits.min(one(ty)),
        () if statement.has("relu") && negative && !is_nan(ty, bits) => 0,
        () => bits,
    }
}

/// A sum, difference, product, quotient or fused sum of one format.
fn exact<A: Float>(name: &str, operands: &[u128], round: Round) -> A {
    let a: Vec<A> = operands.iter().map(|&bits| A::from_bits(bits)).collect();
    match name {
        "add" => a[0].add_r(a[1], round),
        "sub" => a[0].sub_r(a[1], round),
        "mul" => a[0].mul_r(a[1], round),
        "div" => a[0].div_r(a[1], round),
        "fma" | "mad" => a[0].mul_add_r(a[1], a[2], round),
        "rcp" => A::from_u128(1).value.div_r(a[0], round),
        other => panic!("{other} of floats"),
    }
    .value
}
pub fn by_type(name: &str, ty: &str, operands: &[u128], round: Round) -> u128 {
    let bits = match ty {
        "f16" => exact::<Half>(name, operands, round).to_bits(),
        "bf16" => exact::<BFloat>(name, operands, round).to_bits(),
        "f32" => exact::<Single>(name, operands, round).to_bits(),
        _ => exact::<Double>(name, operands, round).to_bits(),
    };
    if !is_nan(ty, bits) {
        return bits;
    }
    // `f64` passes an operand on, made quiet; which one goes by the instruction.
    let order: &[usize] = match name {
        _ if ty != "f64" => &[],
        "add" | "sub" | "mul" => &[1, 0],
        "fma" | "mad" => &[1, 2, 0],
        "div" => &[0, 1],
        _ => &[0],
    };
    let passed = order.iter().map(|&i| operands[i]).find(|&bits| is_nan(ty, bits));
    passed.map_or(canonical(ty), |bits| bits | 1 << 51)
}

/// Whether a result of `f32` would be subnormal if exponents had no end: what `.ftz` flushes on an H100.
fn is_tiny(name: &str, operands: &[u128], round: Round) -> bool {
    const UP: i32 = 64;
    let mut a: Vec<Single> = operands.iter().map(|&bits| Single::from_bits(bits)).collect();
    a[0] = a[0].scalbn(UP);
    let scaled = match name {
        "add" => a[0].add_r(a[1].scalbn(UP), round),
        "sub" => a[0].sub_r(a[1].scalbn(UP), round),
        "mul" => a[0].mul_r(a[1], round),
        "div" => a[0].div_r(a[1], round),
        "rcp" => Single::from_u128(1)
            .value
            .scalbn(UP)
            .div_r(Single::from_bits(operands[0]), round),
        _ => a[0].mul_add_r(a[1], a[2].scalbn(UP), round),
    };
    let least = Single::from_bits(least_normal("f32")).scalbn(UP);
    scaled.value.abs() < least
}

/// The lesser or greater of two, −0 below +0; a NaN counts only against another one, or with `.NaN`.
fn extremum(statement: &Statement, ty: &str, a: u128, b: u128) -> u128 {
    let (sign_a, sign_b) = (a & sign(ty), b & sign(ty));
    let xor = statement.has("xorsign");
    let (a, b) = if statement.has("abs") {
        (a & !sign(ty), b & !sign(ty))
    } else {
        (a, b)
    };
    let (nan_a, nan_b) = (is_nan(ty, a), is_nan(ty, b));
    if nan_a && nan_b || statement.has("NaN") && (nan_a || nan_b) {
        // Of two NaN `f64` returns the second, made quiet.
        return if ty == "f64" { b | 1 << 51 } else { canonical(ty) };
    }
    // Zeros order by sign: so does the order of sign and magnitude.
    let key = |bits: u128| {
        let magnitude = (bits & !sign(ty)) as i128;
        if bits & sign(ty) != 0 {
            -1 - magnitude
        } else {
            magnitude
        }
    };
    let first = (key(a) < key(b)) == (statement.name == "min") || key(a) == key(b);
    let chosen = if nan_b || (first && !nan_a) { a } else { b };
    if xor { chosen | (sign_a ^ sign_b) } else { chosen }
}

/// One element of a type.
fn scalar(statement: &Statement, ty: &str, operands: &[u128]) -> Expected {
    // Correctly rounded `f64` has no `.ftz`; the assembler takes the word.
    let exact = ty == "f64" && !statement.has("approx");
    let ftz = statement.has("ftz") && !exact;
    let a: Vec<u128> = operands
        .iter()
        .map(|&bits| flushed(ty, bits & ones(width(ty)), ftz))
        .collect();
    let round = mode(statement);
    let done = |bits: u128| Expected::Bits(finished(statement, ty, bits));
    let approximate = statement.has("approx") || statement.has("full");
    match statement.name {
        "neg" | "abs" if is_nan(ty, a[0]) => {
            if ty == "f64" {
                Expected::Nan(64)
            } else {
                Expected::Bits(canonical(ty))
            }
        }
        "neg" => done(a[0] ^ sign(ty)),
        "abs" => done(a[0] & !sign(ty)),
        "min" | "max" => done(a[1..].iter().fold(a[0], |x, &y| extremum(statement, ty, x, y))),
        "copysign" => Expected::Bits(a[0] & sign(ty) | a[1] & !sign(ty)),
        "testp" => {
            let magnitude = a[0] & !sign(ty);
            let (nan, infinite) = (is_nan(ty, a[0]), magnitude == infinity(ty));
            let subnormal = magnitude != 0 && magnitude < least_normal(ty);
            Expected::Bits(u128::from(match () {
                () if statement.has("finite") => !nan && !infinite,
                () if statement.has("infinite") => infinite,
                () if statement.has("number") => !nan,
                () if statement.has("notanumber") => nan,
                () if statement.has("normal") => !nan && !infinite && !subnormal,
                () => subnormal,
            }))
        }
        "fma" if statement.has("oob") && a[..2].iter().any(|bits| bits & 0x7fff == 0x7ff7) => Expected::Bits(0),
        "sqrt" if !approximate => root(statement, ty, a[0], round),
        "add" | "sub" | "mul" | "fma" | "mad" | "div" | "rcp"
            if !approximate && (!matches!(statement.name, "div" | "rcp") || statement.has_rounding()) =>
        {
            let result = by_type(statement.name, ty, &a, round);
            let tiny = ftz && ty == "f32" && is_tiny(statement.name, &a, round);
            done(if tiny { result & sign(ty) } else { result })
        }
        _ => approximation(statement, ty, &a),
    }
}

impl Statement<'_> {
    fn has_rounding(&self) -> bool {
        ["rn", "rz", "rm", "rp"].iter().any(|word| self.has(word))
    }
}

/// The root in a mode: found by bisection among the numbers of the format, judged by squares, which 113 bits hold.
fn root(statement: &Statement, ty: &str, a: u128, round: Round) -> Expected {
    let done = |bits: u128| Expected::Bits(finished(statement, ty, bits));
    if is_nan(ty, a) {
        return done(if ty == "f64" { a | 1 << 51 } else { canonical(ty) });
    }
    match a {
        _ if a & !sign(ty) == 0 || a == infinity(ty) => return done(a),
        _ if a & sign(ty) != 0 => return done(canonical(ty)),
        _ => {}
    }
    let wide = |bits: u128| -> Quad {
        let mut lossy = false;
        match ty {
            "f32" => Single::from_bits(bits).convert(&mut lossy).value,
            _ => Double::from_bits(bits).convert(&mut lossy).value,
        }
    };
    let square = |x: Quad| (x * x).value;
    let target = wide(a);
    let (mut low, mut high) = (0, infinity(ty));
    while high - low > 1 {
        let middle = (low + high) / 2;
        if square(wide(middle)) <= target {
            low = middle
        } else {
            high = middle
        }
    }
    let exact = square(wide(low)) == target;
    let half = ((wide(low) + wide(high)).value * Quad::from_bits(0x3ffe << 112)).value;
    let up = match round {
        Round::TowardPositive => !exact,
        // A root is never half-way between two numbers.
        Round::NearestTiesToEven => square(half) < target,
        _ => false,
    };
    done(if up { high } else { low })
}

/// Within the manual's bounds; where it gives none for an operand, anything.
fn approximation(statement: &Statement, ty: &str, a: &[u128]) -> Expected {
    let value = |bits: u128| match ty {
        "f16" => number(32, widened::<Half>(bits)),
        "bf16" => number(32, bits << 16),
        "f32" => number(32, bits),
        _ => number(64, bits),
    };
    let x = value(a[0]);
    let half = width(ty) == 16;
    let (result, relative, absolute) = match statement.name {
        "div" if a[1] & !sign(ty) > 0x7e80_0000 || (a[1] & !sign(ty)) < least_normal(ty) => return Expected::Any,
        "div" => (x / value(a[1]), 2f64.powi(-22), 2f64.powi(-126)),
        "rcp" if ty == "f64" => (1.0 / x, 2f64.powi(-19), 0.0),
        "rcp" => (1.0 / x, 2f64.powi(-22), 2f64.powi(-126)),
        "sqrt" => (x.sqrt(), 2f64.powi(-22), 2f64.powi(-126)),
        "rsqrt" if ty == "f64" => (1.0 / x.sqrt(), 2f64.powi(-18), 0.0),
        "rsqrt" => (1.0 / x.sqrt(), 2f64.powf(-22.4), 2f64.powi(-126)),
        "sin" | "cos" if x.abs() > std::f64::consts::PI => return Expected::Any,
        "sin" => (x.sin(), 0.0, 2f64.powf(-20.4)),
        "cos" => (x.cos(), 0.0, 2f64.powf(-20.4)),
        "lg2" if (0.5..2.0).contains(&x) => (x.log2(), 0.0, 2f64.powi(-22)),
        "lg2" => (x.log2(), 2f64.powi(-21), 2f64.powi(-22)),
        "ex2" if half => (
            x.exp2(),
            if ty == "f16" { 2f64.powf(-9.9) } else { 2f64.powi(-7) },
            2f64.powi(-24),
        ),
        "ex2" => (x.exp2(), 2f64.powi(-21), 2f64.powi(-126)),
        "tanh" if half => (
            x.tanh(),
            0.0,
            // Of two arguments an H100 is further off than the manual's 2^-8: as far as this.
            if ty == "f16" { 2f64.powf(-10.9) } else { 0.003_906_505 },
        ),
        "tanh" => (x.tanh(), 2f64.powi(-11), 2f64.powi(-126)),
        other => panic!("{other} of floats"),
    };
    // What overflows or vanishes at the edge of the format is the exact cases' business.
    let edge = match ty {
        "f64" => !(1e-300..1e300).contains(&result.abs()) && result != 0.0 && result.is_finite(),
        "f16" => result.abs() > 65000.0 && result.is_finite(),
        _ => result.abs() > 1.7e38 && result.is_finite(),
    };
    // `.ftz` loses what is subnormal, the wide one even low bits of its operand.
    if edge || ty == "f64" && (x.is_subnormal() || x.abs() > 1e300 || x == 0.0) {
        return Expected::Any;
    }
    let within = (result * relative).abs().max(absolute);
    if half {
        return Expected::Half {
            bf16: ty == "bf16",
            value: result,
            within,
        };
    }
    Expected::Near {
        bits: width(ty),
        value: result,
        within,
    }
}
fn widened<A: Float + FloatConvert<Single>>(bits: u128) -> u128 {
    let mut lossy = false;
    A::from_bits(bits).convert(&mut lossy).value.to_bits()
}

pub fn results(inputs: &Inputs) -> Option<Vec<Expected>> {
    let statement = inputs.statement;
    let ty = *statement.types.first()?;
    if statement.types.len() == 2 {
        return Some(vec![Expected::Bits(mixed(inputs))]);
    }
    let all: Vec<u128> = (0..inputs.count()).map(|i| inputs.source(i, ty)).collect();
    let Some(element) = ty.strip_suffix("x2") else {
        return Some(vec![scalar(statement, ty, &all)]);
    };
    let part = |at: u32| {
        let operands: Vec<u128> = all.iter().map(|bits| bits >> at & ones(width(element))).collect();
        scalar(statement, element, &operands)
    };
    Some(vec![Expected::Two(
        Box::new((part(0), part(width(element)))),
        width(element),
    )])
}

/// `add.f32.f16 d, a, c`: halves are exact in `f32`.
fn mixed(inputs: &Inputs) -> u128 {
    let statement = inputs.statement;
    let half = statement.types[1];
    let wide = |i: usize| {
        let bits = inputs.source(i, half) & 0xffff;
        if half == "f16" {
            widened::<Half>(bits)
        } else {
            bits << 16
        }
    };
    let last = inputs.count() - 1;
    let mut operands: Vec<u128> = (0..last).map(wide).collect();
    operands.push(inputs.source(last, "f32"));
    finished(
        statement,
        "f32",
        by_type(statement.name, "f32", &operands, mode(statement)),
    )
}
