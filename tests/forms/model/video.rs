//! Video instructions (PTX ISA, Scalar Video Instructions, SIMD Video Instructions), on 128-bit integers.

use super::{Expect, Kind, Op, Type, cut};

/// Operands come with their selectors and signs: [`Part`].
pub struct Part {
    pub value: u128,
    pub selector: String,
    pub negated: bool,
}

/// A byte, a half or all of a register.
fn selected(part: &Part, signed: bool) -> i128 {
    let kind = if signed { Kind::Signed } else { Kind::Unsigned };
    let (bits, at) = field(&part.selector);
    let x = Type::new(kind, bits, 1).number(part.value >> at);
    if part.negated { -x } else { x }
}

fn field(selector: &str) -> (u32, u32) {
    let index = selector[selector.len().min(1)..].parse().unwrap_or(0);
    match selector.chars().next() {
        Some('b') => (8, 8 * index),
        Some('h') => (16, 16 * index),
        _ => (32, 0),
    }
}

pub fn expected(op: &Op, destination: &str, parts: &[Part]) -> Option<Vec<Expect>> {
    let name = op.mnemonic();
    let lanes = match name.chars().last()? {
        '2' => 2,
        '4' => 4,
        _ => return scalar(op, destination, parts),
    };
    simd(op, &name[..name.len() - 1], lanes, destination, parts)
}

/// What combines the result with `c`.
fn second(op: &Op) -> Option<&'static str> {
    ["add", "min", "max"].into_iter().find(|word| op.has(word))
}

fn relation(op: &Op, a: i128, b: i128) -> bool {
    match ["eq", "ne", "lt", "le", "gt", "ge"].into_iter().find(|r| op.has(r)) {
        Some("eq") => a == b,
        Some("ne") => a != b,
        Some("lt") => a < b,
        Some("le") => a <= b,
        Some("gt") => a > b,
        _ => a >= b,
    }
}

fn scalar(op: &Op, destination: &str, parts: &[Part]) -> Option<Vec<Expect>> {
    let name = op.mnemonic();
    let types = op.types();
    // `vset` has no type of its own for the result, which is unsigned.
    let (to, ta, tb) = match name {
        "vset" => (Type::new(Kind::Unsigned, 32, 1), types[0], types[1]),
        _ => (types[0], types[1], types[2]),
    };
    let (a, b) = (selected(&parts[0], ta.signed()), selected(&parts[1], tb.signed()));
    if name == "vmad" {
        return vmad(op, &types, parts);
    }
    let amount = || if op.has("clamp") { b.min(32) } else { b & 31 };
    let mut x = match name {
        "vadd" => a + b,
        "vsub" => a - b,
        "vabsdiff" => (a - b).abs(),
        "vmin" => a.min(b),
        "vmax" => a.max(b),
        "vshl" => a << amount(),
        "vshr" => a >> amount(),
        "vset" => i128::from(relation(op, a, b)),
        _ => return None,
    };
    // Merging clamps to the part that is written.
    let (bits, at) = field(destination);
    let range = Type::new(to.kind, bits, 1);
    if op.has("sat") {
        x = x.clamp(range.least(), range.greatest());
    }
    let c = parts.get(2).map(|c| c.value);
    Some(vec![Expect::Bits(match (second(op), c) {
        (Some(second), Some(c)) => {
            let x = to.number(cut(x as u128, 32));
            let c = to.number(c);
            let sum = match second {
                "add" => x + c,
                "min" => x.min(c),
                _ => x.max(c),
            };
            cut(sum as u128, 32)
        }
        (None, Some(c)) if !destination.is_empty() => {
            let mask = ((1u128 << bits) - 1) << at;
            cut(c, 32) & !mask | cut(x as u128, bits) << at
        }
        _ => cut(x as u128, 32),
    })])
}

fn vmad(op: &Op, types: &[Type], parts: &[Part]) -> Option<Vec<Expect>> {
    let [_, ta, tb] = types[..] else { return None };
    let turned = parts[0].negated ^ parts[1].negated;
    let product_signed = ta.signed() || tb.signed() || turned || parts[2].negated;
    let plain = |p: &Part, signed| {
        selected(
            &Part {
                value: p.value,
                selector: p.selector.clone(),
                negated: false,
            },
            signed,
        )
    };
    let (a, b) = (plain(&parts[0], ta.signed()), plain(&parts[1], tb.signed()));
    let mut product = a * b;
    // The sign of the product is one exclusive or.
    if turned {
        product = -product;
    }
    let c_type = Type::new(if product_signed { Kind::Signed } else { Kind::Unsigned }, 32, 1);
    let c = c_type.number(parts[2].value);
    let mut x = product + if parts[2].negated { -c } else { c };
    if op.has("po") {
        x += 1;
    }
    if op.has("shr7") {
        x >>= 7;
    } else if op.has("shr15") {
        x >>= 15;
    }
    if op.has("sat") {
        // The result's range follows the sign of what was computed.
        let range = Type::new(if product_signed { Kind::Signed } else { Kind::Unsigned }, 32, 1);
        x = x.clamp(range.least(), range.greatest());
    }
    Some(vec![Expect::Bits(cut(x as u128, 32))])
}

fn simd(op: &Op, name: &str, lanes: u32, destination: &str, parts: &[Part]) -> Option<Vec<Expect>> {
    let types = op.types();
    let (to, ta, tb) = match name {
        "vset" => (Type::new(Kind::Unsigned, 32, 1), types[0], types[1]),
        _ => (types[0], types[1], types[2]),
    };
    let bits = 32 / lanes;
    // Sources are four or two parts picked out of b and a together, the destination a mask of parts.
    let pick = |part: &Part, ty: Type, which: usize| -> Vec<i128> {
        let digits: Vec<u32> = part.selector.chars().skip(1).filter_map(|c| c.to_digit(16)).collect();
        let default: Vec<u32> = (0..lanes).rev().collect();
        let digits = if digits.is_empty() { default } else { digits };
        let both = parts[0].value | parts[1].value << 32;
        digits
            .iter()
            .rev()
            .map(|&d| {
                // Without a selector each operand has its own parts; with one, the digits count through both.
                let at = if part.selector.is_empty() {
                    d + which as u32 * lanes
                } else {
                    d
                };
                Type::new(ty.kind, bits, 1).number(both >> (at * bits))
            })
            .collect()
    };
    let (a, b) = (pick(&parts[0], ta, 0), pick(&parts[1], tb, 1));
    let range = Type::new(to.kind, bits, 1);
    let mask: Vec<bool> = (0..lanes)
        .map(|i| destination.is_empty() || destination.chars().skip(1).any(|c| c.to_digit(10) == Some(i)))
        .collect();
    let mut packed = cut(parts[2].value, 32);
    let mut sum = Type::new(to.kind, 32, 1).number(parts[2].value);
    for i in 0..lanes as usize {
        if !mask[i] {
            continue;
        }
        let (x, y) = (a[i], b[i]);
        let mut value = match name {
            "vadd" => x + y,
            "vsub" => x - y,
            // Halves go away from zero.
            "vavrg" => {
                let s = x + y;
                (s + i128::from(s >= 0)) >> 1
            }
            "vabsdiff" => (x - y).abs(),
            "vmin" => x.min(y),
            "vmax" => x.max(y),
            "vset" => i128::from(relation(op, x, y)),
            _ => return None,
        };
        if op.has("sat") {
            value = value.clamp(range.least(), range.greatest());
        }
        let field = cut(value as u128, bits);
        let at = i as u32 * bits;
        packed = packed & !(((1u128 << bits) - 1) << at) | field << at;
        sum += value;
    }
    Some(vec![Expect::Bits(if op.has("add") {
        cut(sum as u128, 32)
    } else {
        packed
    })])
}
