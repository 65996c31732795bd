//! What `setp`, `set` and `slct` give, from the manual's tables.

use std::cmp::Ordering;

use crate::floats;
use crate::text::Operand;
use crate::values::{Expected, Inputs, integer, ones, width};

fn order(ty: &str, a: u128, b: u128, ftz: bool) -> Option<Ordering> {
    if !ty.starts_with('f') && !ty.starts_with("bf") {
        return Some(integer(ty, a).cmp(&integer(ty, b)));
    }
    let value = |bits: u128| {
        let bits = floats::flushed(ty, bits & ones(width(ty)), ftz);
        match ty {
            "f16" => half::f16::from_bits(bits as u16).to_f64(),
            "bf16" => half::bf16::from_bits(bits as u16).to_f64(),
            "f32" => f32::from_bits(bits as u32).into(),
            _ => f64::from_bits(bits as u64),
        }
    };
    value(a).partial_cmp(&value(b))
}

fn holds(operator: &str, order: Option<Ordering>) -> bool {
    use Ordering::{Equal, Greater, Less};
    match (operator, order) {
        ("num", order) => order.is_some(),
        ("nan", order) => order.is_none(),
        // With an operand that is no number only the unordered ones hold.
        (operator, None) => operator.len() == 3,
        ("eq" | "equ", Some(order)) => order == Equal,
        ("ne" | "neu", Some(order)) => order != Equal,
        ("lt" | "ltu" | "lo", Some(order)) => order == Less,
        ("le" | "leu" | "ls", Some(order)) => order != Greater,
        ("gt" | "gtu" | "hi", Some(order)) => order == Greater,
        ("ge" | "geu" | "hs", Some(order)) => order != Less,
        (other, _) => panic!("{other} compares nothing"),
    }
}

pub fn results(inputs: &Inputs) -> Option<Vec<Expected>> {
    let statement = inputs.statement;
    let ty = *statement.types.last()?;
    let ftz = statement.has("ftz");
    if statement.name == "slct" {
        let to = statement.types[0];
        let c = inputs.source(2, ty);
        let first = match ty {
            "s32" => integer(ty, c) >= 0,
            _ => matches!(order(ty, c, 0, ftz), Some(Ordering::Equal | Ordering::Greater)),
        };
        return Some(vec![Expected::Bits(
            inputs.source(if first { 0 } else { 1 }, to) & ones(width(to)),
        )]);
    }
    let operator = statement.words[0];
    let joined = |t: bool| {
        if inputs.count() < 3 {
            return t;
        }
        let c = inputs.source(2, "pred") & 1 != 0;
        match () {
            () if statement.has("and") => t && c,
            () if statement.has("or") => t || c,
            () => t != c,
        }
    };
    let (element, count) = match ty.strip_suffix("x2") {
        Some(element) => (element, 2),
        None => (ty, 1),
    };
    let (a, b) = (inputs.source(0, ty), inputs.source(1, ty));
    let test = |i: u32| {
        let at = i * width(element);
        holds(operator, order(element, a >> at, b >> at, ftz))
    };
    if statement.name == "setp" {
        let second = if count == 2 { test(1) } else { !test(0) };
        let (p, q) = (joined(test(0)), joined(second));
        let mut all = vec![Expected::Bits(p.into())];
        if matches!(statement.operands[0], Operand::Pair(..)) {
            all.push(Expected::Bits(q.into()));
        }
        return Some(all);
    }
    let to = statement.types[0];
    let truth = match to {
        "f16" | "bf16" | "f32" => floats::one(to),
        "f16x2" => floats::one("f16"),
        "bf16x2" => floats::one("bf16"),
        // Of two halves each has its own half of the word.
        _ if count == 2 => 0xffff,
        _ => ones(width(to)),
    };
    let value = |i: u32| if joined(test(i)) { truth } else { 0 };
    Some(vec![Expected::Bits(if count == 2 {
        value(1) << 16 | value(0)
    } else {
        value(0)
    })])
}
