//! Types, operand values and what a result may be.

use crate::text::{Operand, Statement};

/// What the list's statement must give for one register.
#[derive(Clone, Debug)]
pub enum Expected {
    Bits(u128),
    /// Any NaN of `f32` or `f64`: the manual leaves its bits open and no source tells them.
    Nan(u32),
    /// An approximation of so many bits wide: the number and how far away it may be.
    Near {
        bits: u32,
        value: f64,
        within: f64,
    },
    /// The same of a half.
    Half {
        bf16: bool,
        value: f64,
        within: f64,
    },
    /// Two elements of so many bits, the lower one first.
    Two(Box<(Expected, Expected)>, u32),
    /// Less than that.
    Below(u128),
    /// Left open by the manual.
    Any,
}

impl Expected {
    pub fn agrees(&self, found: u128) -> bool {
        match *self {
            Expected::Bits(bits) => bits == found,
            Expected::Nan(width) => number(width, found).is_nan(),
            Expected::Near { bits, value, within } => {
                let found = number(bits, found);
                found == value || (found - value).abs() <= within || (found.is_nan() && value.is_nan())
            }
            Expected::Half { bf16, value, within } => {
                let found = if bf16 {
                    number(32, found << 16)
                } else {
                    half::f16::from_bits(found as u16).into()
                };
                found == value || (found - value).abs() <= within || (found.is_nan() && value.is_nan())
            }
            Expected::Two(ref two, width) => two.0.agrees(found & ones(width)) && two.1.agrees(found >> width),
            Expected::Below(end) => found < end,
            Expected::Any => true,
        }
    }
}

/// The value of an `f32` (32) or `f64` (64).
pub fn number(width: u32, bits: u128) -> f64 {
    match width {
        32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits as u64),
    }
}

/// The width of a type in bits.
pub fn width(ty: &str) -> u32 {
    match ty {
        "pred" => 1,
        "bf16" | "f16" => 16,
        "tf32" => 32,
        "e2m1x2" => 8,
        "e4m3x2" | "e5m2x2" | "e2m3x2" | "e3m2x2" | "ue8m0x2" | "ue5m3x2" | "s2f6x2" | "e2m1x4" => 16,
        "e4m3x4" | "e5m2x4" | "e2m3x4" | "e3m2x4" => 32,
        "f16x2" | "bf16x2" | "u8x4" | "s8x4" | "u16x2" | "s16x2" => 32,
        "f32x2" => 64,
        other => other[1..].parse().unwrap_or_else(|_| panic!("how wide is {other}?")),
    }
}
pub fn is_signed(ty: &str) -> bool {
    ty.starts_with('s') && ty != "s2f6x2"
}
pub fn ones(width: u32) -> u128 {
    u128::MAX >> (128 - width)
}
/// The number that the low bits stand for in an integer type.
pub fn integer(ty: &str, bits: u128) -> i128 {
    let width = width(ty);
    let low = (bits & ones(width)) as i128;
    if is_signed(ty) && low >> (width - 1) & 1 != 0 {
        low - (1 << width)
    } else {
        low
    }
}
/// Least and greatest of an integer type.
pub fn range(ty: &str) -> (i128, i128) {
    let width = width(ty);
    if is_signed(ty) {
        (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    } else {
        (0, (1 << width) - 1)
    }
}

/// One thread's operands.
pub struct Inputs<'s, 'a> {
    pub statement: &'s Statement<'a>,
    /// What each register holds that is read.
    pub registers: Vec<(&'a str, u128)>,
    pub carry: bool,
    /// The thread, and how many there are.
    pub thread: usize,
    pub threads: usize,
    /// Where the text's variables lie.
    pub variables: &'s [(&'static str, u64)],
}

impl<'a> Inputs<'_, 'a> {
    pub fn register(&self, name: &str) -> u128 {
        self.registers.iter().find(|r| r.0 == name).expect("read").1
    }
    /// Source operand `i` as bits, immediates as a type has them.
    pub fn source(&self, i: usize, ty: &str) -> u128 {
        self.value(&self.statement.operands[i + 1], ty)
    }
    pub fn value(&self, operand: &Operand<'a>, ty: &str) -> u128 {
        match operand {
            Operand::Register(name, _) => self.register(name),
            Operand::Negated(inner) => self.value(inner, ty),
            Operand::Not(name) => u128::from(self.register(name) == 0),
            Operand::Immediate(text) => immediate(text, ty),
            other => panic!("no value: {other:?}"),
        }
    }
    pub fn count(&self) -> usize {
        self.statement.operands.len() - 1
    }
}

fn immediate(text: &str, ty: &str) -> u128 {
    if text == "WARP_SZ" {
        return 32;
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u128::from_str_radix(hex, 16).expect("hexadecimal");
    }
    // The bits of an `f32`.
    if let Some(hex) = text.strip_prefix("0f") {
        let bits = u32::from_str_radix(hex, 16).expect("hexadecimal");
        return if ty == "f64" {
            f64::from(f32::from_bits(bits)).to_bits().into()
        } else {
            bits.into()
        };
    }
    if let Some(hex) = text.strip_prefix("0d") {
        return u128::from_str_radix(hex, 16).expect("hexadecimal");
    }
    if ty.starts_with('f') || ty.starts_with("bf") || text.contains('.') {
        let value: f64 = text.parse().expect("a number");
        return match ty {
            "f64" => value.to_bits().into(),
            _ => (value as f32).to_bits().into(),
        };
    }
    text.parse::<i128>().expect("an integer") as u128
}
