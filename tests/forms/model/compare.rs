//! `set`, `setp`, `selp`, `slct` (PTX ISA, Comparison and Selection Instructions).

use std::cmp::Ordering;

use super::{Expect, Kind, Op, Type, cut, float};

pub fn expected(op: &Op, destinations: usize, sources: &[u128]) -> Option<Vec<Expect>> {
    let types = op.types();
    match op.mnemonic() {
        "selp" => Some(vec![Expect::Bits(if sources[2] != 0 {
            sources[0]
        } else {
            sources[1]
        })]),
        "slct" => {
            let positive = match types[1].kind {
                Kind::Float => float::flushed(types[1], sources[2], op.has("ftz")) >= 0.0,
                _ => types[1].number(sources[2]) >= 0,
            };
            Some(vec![Expect::Bits(if positive { sources[0] } else { sources[1] })])
        }
        "setp" => {
            let ty = op.ty();
            let results = results(op, ty, sources);
            Some(if ty.elements == 2 {
                // Both halves, for two destinations or the first.
                let both = [results[0].0, results[1].0];
                both[..destinations].iter().map(|&t| Expect::Bits(t.into())).collect()
            } else {
                let (t, not) = results[0];
                [t, not][..destinations]
                    .iter()
                    .map(|&t| Expect::Bits(t.into()))
                    .collect()
            })
        }
        "set" => {
            let (to, from) = (types[0], types[1]);
            let results = results(op, from, sources);
            if from.elements == 2 {
                let one = match to.kind {
                    Kind::Float => 0x3c00,
                    Kind::Brain => 0x3f80,
                    _ => 0xffff,
                };
                let half = |i: usize| if results[i].0 { one } else { 0u128 };
                return Some(vec![Expect::Bits(half(0) | half(1) << 16)]);
            }
            let one = match (to.kind, to.bits) {
                (Kind::Float, 32) => 0x3f80_0000,
                (Kind::Float, _) => 0x3c00,
                (Kind::Brain, _) => 0x3f80,
                (_, bits) => cut(u128::MAX, bits),
            };
            Some(vec![Expect::Bits(if results[0].0 { one } else { 0 })])
        }
        _ => None,
    }
}

/// For each element `t op c` and `!t op c`.
fn results(op: &Op, ty: Type, sources: &[u128]) -> Vec<(bool, bool)> {
    let element = ty.element();
    (0..ty.elements)
        .map(|i| {
            let at = |x: u128| cut(x >> (i * ty.bits), ty.bits);
            let t = relation(op, element, at(sources[0]), at(sources[1]));
            let combined = |t: bool| match sources.get(2) {
                None => t,
                Some(&c) if op.has("and") => t & (c != 0),
                Some(&c) if op.has("or") => t | (c != 0),
                Some(&c) => t ^ (c != 0),
            };
            (combined(t), combined(!t))
        })
        .collect()
}

fn relation(op: &Op, ty: Type, a: u128, b: u128) -> bool {
    let order: Option<Ordering> = if ty.is_float() {
        let ftz = op.has("ftz");
        float::flushed(ty, a, ftz).partial_cmp(&float::flushed(ty, b, ftz))
    } else {
        Some(ty.number(a).cmp(&ty.number(b)))
    };
    let name = op.words[1].as_str();
    let (name, unordered) = match name {
        "lo" => ("lt", false),
        "ls" => ("le", false),
        "hi" => ("gt", false),
        "hs" => ("ge", false),
        "num" => return order.is_some(),
        "nan" => return order.is_none(),
        name => match name.strip_suffix('u') {
            Some(name) => (name, true),
            None => (name, false),
        },
    };
    let Some(order) = order else { return unordered };
    match name {
        "eq" => order.is_eq(),
        "ne" => order.is_ne(),
        "lt" => order.is_lt(),
        "le" => order.is_le(),
        "gt" => order.is_gt(),
        "ge" => order.is_ge(),
        other => panic!("no relation is called {other}"),
    }
}
