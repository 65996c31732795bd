//! Integer arithmetic, logic and moves, on 128-bit integers (PTX ISA, Integer Arithmetic, Logic and Shift, mov).

use super::{Expect, Op, Type, cut};
use crate::case::Case;

pub fn expected(op: &Op, destinations: usize, sources: &[u128]) -> Option<Vec<Expect>> {
    let ty = op.ty();
    let bits = ty.bits;
    if ty.elements > 1 {
        return packed(op, ty, sources);
    }
    let number = |i: usize| ty.number(sources[i]);
    let raw = |i: usize| cut(sources[i], bits);
    // The low bits of a number.
    let wrap = |x: i128| Some(vec![Expect::Bits(cut(x as u128, bits))]);
    let done = |x: u128| Some(vec![Expect::Bits(x)]);
    let clamp = |x: i128| {
        if op.has("sat") {
            x.clamp(ty.least(), ty.greatest())
        } else {
            x
        }
    };
    // A sum and its carry-out; `subtract` adds the complement.
    let carried = |terms: [u128; 3]| {
        // 64-bit terms: no sum of three leaves 128 bits.
        let sum: u128 = terms.iter().sum();
        let mut results = vec![Expect::Bits(cut(sum, bits))];
        if op.carries_out() {
            results.push(Expect::Bits(sum >> bits));
        }
        Some(results)
    };
    let carry = || *sources.last().unwrap_or(&0);
    let complement = |i: usize| cut(!sources[i], bits);
    match op.mnemonic() {
        "add" if op.has("cc") => carried([raw(0), raw(1), 0]),
        "addc" => carried([raw(0), raw(1), carry()]),
        "sub" if op.has("cc") => carried([raw(0), complement(1), 1]),
        "subc" => carried([raw(0), complement(1), carry()]),
        "add" => wrap(clamp(number(0) + number(1))),
        "sub" => wrap(clamp(number(0) - number(1))),
        "mul" | "mad" | "madc" => {
            let (product, result) = match op.words[1].as_str() {
                "wide" => (number(0).wrapping_mul(number(1)), 2 * bits),
                "lo" => (number(0).wrapping_mul(number(1)), bits),
                // The upper half; unsigned 64-bit products need all 128 bits.
                _ if !ty.signed() => ((raw(0).wrapping_mul(raw(1)) >> bits) as i128, bits),
                _ => ((number(0) * number(1)) >> bits, bits),
            };
            if op.mnemonic() == "mul" {
                return done(cut(product as u128, result));
            }
            if op.carries_out() || op.mnemonic() == "madc" {
                let carry = if op.mnemonic() == "madc" { carry() } else { 0 };
                return carried([cut(product as u128, bits), raw(2), carry]);
            }
            let wide = Type::new(ty.kind, result, 1);
            let sum = product.wrapping_add(wide.number(sources[2]));
            done(cut(clamp(sum) as u128, result))
        }
        "mul24" | "mad24" => {
            let low = Type::new(ty.kind, 24, 1);
            let product = low.number(sources[0]) * low.number(sources[1]);
            let part = if op.has("hi") { product >> 16 } else { product };
            if op.mnemonic() == "mul24" {
                return wrap(part);
            }
            let part = ty.number(cut(part as u128, 32));
            wrap(clamp(part + number(2)))
        }
        "sad" => wrap(number(2) + (number(0) - number(1)).abs()),
        "div" | "rem" if raw(1) == 0 => {
            // What hardware gives, where the manual says unspecified: quotient -1; remainder the dividend, or -1 of 16 bits.
            Some(vec![Expect::Any])
        }
        "div" => wrap(number(0) / number(1)),
        "rem" => wrap(number(0) % number(1)),
        "abs" => wrap(number(0).abs()),
        "neg" => wrap(-number(0)),
        "min" | "max" => {
            let best = if op.mnemonic() == "min" {
                number(0).min(number(1))
            } else {
                number(0).max(number(1))
            };
            wrap(if op.has("relu") { best.max(0) } else { best })
        }
        "popc" => done(raw(0).count_ones().into()),
        "clz" => done((0..bits).take_while(|i| raw(0) >> (bits - 1 - i) & 1 == 0).count() as u128),
        "brev" => done((0..bits).fold(0, |r, i| r | (raw(0) >> i & 1) << (bits - 1 - i))),
        "bfind" => {
            let sign = u128::from(number(0) < 0);
            let top = (0..bits).rev().find(|i| raw(0) >> i & 1 != sign);
            done(match top {
                None => 0xffff_ffff,
                Some(i) if op.has("shiftamt") => u128::from(bits - 1 - i),
                Some(i) => i.into(),
            })
        }
        "fns" => {
            // Base beyond 31 is undefined.
            let (mask, base, offset) = (raw(0), raw(1), sources[2] as u32 as i32);
            if base > 31 {
                return Some(vec![Expect::Any]);
            }
            let set = |i: &i32| mask >> i & 1 == 1;
            let base = base as i32;
            let found = match offset {
                0 => Some(base).filter(set),
                n if n > 0 => (base..32).filter(set).nth(n as usize - 1),
                n => (0..=base).rev().filter(set).nth(n.unsigned_abs() as usize - 1),
            };
            done(found.map_or(0xffff_ffff, |i| i as u128))
        }
        "bfe" => {
            let (at, len) = field(bits, sources[1], sources[2]);
            let top = (at + len).saturating_sub(1).min(bits as u128 - 1);
            let fill = u128::from(ty.signed() && len > 0) & raw(0) >> top;
            done((0..u128::from(bits)).fold(0, |r, i| {
                let inside = i < len && at + i < bits.into();
                r | (if inside { raw(0) >> (at + i) & 1 } else { fill }) << i
            }))
        }
        "bfi" => {
            let (at, len) = field(bits, sources[2], sources[3]);
            done((0..u128::from(bits)).fold(raw(1), |r, i| {
                let inside = i >= at && i - at < len;
                if inside {
                    r & !(1 << i) | (raw(0) >> (i - at) & 1) << i
                } else {
                    r
                }
            }))
        }
        "bmsk" => {
            let (mut at, mut len) = (raw(0), raw(1));
            if op.has("wrap") {
                (at, len) = (at & 31, len & 31);
            }
            done((0..32).fold(0, |r, i| r | u128::from(i >= at && i < at + len) << i))
        }
        "szext" => {
            let mut n = raw(1);
            if op.has("wrap") {
                n &= 31;
            }
            if n >= 32 {
                return done(raw(0));
            }
            if n == 0 {
                return done(0);
            }
            let part = Type::new(ty.kind, n as u32, 1);
            done(cut(part.number(raw(0)) as u128, 32))
        }
        "dp4a" | "dp2a" => {
            let [a, b] = [op.types()[0], op.types()[1]];
            let wide = if op.mnemonic() == "dp2a" { 16 } else { 8 };
            let from = if op.has("hi") { 2 } else { 0 };
            let sum: i128 = (0..32 / wide)
                .map(|i| {
                    let x = Type::new(a.kind, wide, 1).number(raw(0) >> (wide * i));
                    x * Type::new(b.kind, 8, 1).number(raw(1) >> (8 * (i + from)))
                })
                .sum();
            // Modulo 2^32, whatever the sign of the sum.
            done(cut((sum + raw(2) as i128) as u128, 32))
        }
        "and" => done(raw(0) & raw(1)),
        "or" => done(raw(0) | raw(1)),
        "xor" => done(raw(0) ^ raw(1)),
        "not" => done(cut(!raw(0), bits)),
        "cnot" => done(u128::from(raw(0) == 0)),
        "shl" | "shr" => {
            let by = cut(sources[1], 32).min(bits.into()) as u32;
            if op.mnemonic() == "shl" {
                done(cut(raw(0) << by, bits))
            } else {
                wrap(number(0) >> by)
            }
        }
        "shf" => {
            let by = if op.has("clamp") {
                sources[2].min(32)
            } else {
                sources[2] & 31
            };
            let both = raw(1) << 32 | raw(0);
            done(cut(if op.has("l") { (both << by) >> 32 } else { both >> by }, 32))
        }
        "lop3" => {
            let table = sources[3];
            let result = (0..32).fold(0, |r, i| {
                let index = (raw(0) >> i & 1) << 2 | (raw(1) >> i & 1) << 1 | raw(2) >> i & 1;
                r | (table >> index & 1) << i
            });
            if destinations == 1 {
                return done(result);
            }
            let (p, q) = (result != 0, sources[4] != 0);
            let p = if op.has("or") { p | q } else { p & q };
            Some(vec![Expect::Bits(result), Expect::Bits(p.into())])
        }
        "prmt" => {
            let bytes: Vec<u128> = (0..8).map(|i| (raw(1) << 32 | raw(0)) >> (8 * i) & 0xff).collect();
            let s = (sources[2] & 3) as usize;
            let pick: [usize; 4] = match op.words.last().map(String::as_str) {
                Some("f4e") => [s, s + 1, s + 2, s + 3],
                Some("b4e") => std::array::from_fn(|i| (s + 8 - i) % 8),
                Some("rc8") => [s; 4],
                Some("ecl") => std::array::from_fn(|i| i.max(s)),
                Some("ecr") => std::array::from_fn(|i| i.min(s)),
                Some("rc16") => std::array::from_fn(|i| (s & 1) * 2 + i % 2),
                _ => {
                    return done((0..4).fold(0, |r, i| {
                        let nibble = sources[2] >> (4 * i) & 0xf;
                        let byte = bytes[(nibble & 7) as usize];
                        let byte = if nibble & 8 == 0 { byte } else { 0xff * (byte >> 7) };
                        r | byte << (8 * i)
                    }));
                }
            };
            done((0..4).fold(0, |r, i| r | bytes[pick[i]] << (8 * i)))
        }
        _ => None,
    }
}

/// Position and length of a bit field: 8 bits of each say it for 32-bit fields. The code that the assembler makes for 64-bit
/// ones takes all bits.
fn field(bits: u32, at: u128, len: u128) -> (u128, u128) {
    if bits == 32 {
        (at & 0xff, len & 0xff)
    } else {
        (cut(at, 32), cut(len, 32))
    }
}

/// Elements of a register, each on its own.
fn packed(op: &Op, ty: Type, sources: &[u128]) -> Option<Vec<Expect>> {
    let one = ty.element();
    let mut result = 0;
    for i in 0..ty.elements {
        let at = |k: usize| one.number(sources[k] >> (i * ty.bits));
        let value = match op.mnemonic() {
            "add" => at(0) + at(1),
            "sub" => at(0) - at(1),
            "neg" => -at(0),
            "min" => at(0).min(at(1)),
            "max" => at(0).max(at(1)),
            _ => return None,
        };
        let value = if op.has("sat") {
            value.clamp(one.least(), one.greatest())
        } else {
            value
        };
        let value = if op.has("relu") { value.max(0) } else { value };
        result |= cut(value as u128, ty.bits) << (i * ty.bits);
    }
    Some(vec![Expect::Bits(result)])
}

/// `mov`: all bits of the sources in order become all bits of the destinations.
pub fn moved(case: &Case, sources: &[u128]) -> Option<Vec<Expect>> {
    if case.op.mnemonic() != "mov" {
        return None;
    }
    let ty = case.op.ty();
    if case.op.has("v2") || case.op.has("v4") || (sources.len() == 1 && case.destinations.len() == 1) {
        return Some(sources.iter().map(|&s| Expect::Bits(s)).collect());
    }
    let part = ty.bits / case.destinations.len().max(sources.len()) as u32;
    let mut all = 0;
    for (i, &source) in sources.iter().enumerate() {
        all |= if sources.len() == 1 {
            source
        } else {
            cut(source, part) << (part * i as u32)
        };
    }
    if case.destinations.len() == 1 {
        return Some(vec![Expect::Bits(all)]);
    }
    Some(
        (0..case.destinations.len() as u32)
            .map(|i| Expect::Bits(cut(all >> (part * i), part)))
            .collect(),
    )
}
