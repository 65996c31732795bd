//! `ld`, `st`, `atom`, `red` on a window of bytes, one thread at a time (PTX ISA, Data Movement, atom, red).

use super::{Expect, Kind, Type, cut, float, width};
use crate::case::Case;

pub fn expected(case: &Case, sources: &[u128], window: &mut [u8], shared: bool) -> Option<Vec<Expect>> {
    let op = &case.op;
    let ty = op.ty();
    let bytes = (ty.bits * ty.elements / 8) as usize;
    let count = ["v2", "v4", "v8"]
        .iter()
        .find(|v| op.has(v))
        .map_or(1, |v| v[1..].parse().unwrap_or(1));
    let load = |window: &[u8], k: usize| {
        let mut raw = [0; 16];
        raw[..bytes].copy_from_slice(&window[k * bytes..][..bytes]);
        u128::from_le_bytes(raw)
    };
    let store = |window: &mut [u8], k: usize, value: u128| {
        window[k * bytes..][..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    };
    match op.mnemonic() {
        "ld" | "ldu" => Some(
            (0..count)
                .map(|k| {
                    // Registers may be wider than what is loaded: by sign, or by zeros.
                    let value = ty.number(load(window, k)) as u128;
                    Expect::Bits(cut(value, width(&case.destinations[k])))
                })
                .collect(),
        ),
        "st" if !op.has("async") && !op.has("bulk") => {
            (0..count).for_each(|k| store(window, k, sources[k]));
            Some(Vec::new())
        }
        "atom" | "red" if !op.has("async") => {
            let mut old = Vec::new();
            for k in 0..count {
                let before = load(window, k);
                let b = sources[k];
                let third = sources.get(1).copied();
                let after = op.words.iter().find_map(|w| update(w, ty, before, b, third, shared))?;
                store(window, k, after);
                old.push(Expect::Bits(before));
            }
            Some(if op.mnemonic() == "atom" { old } else { Vec::new() })
        }
        _ => None,
    }
}

/// The memory's new content; `None`: the word is no operation.
fn update(word: &str, ty: Type, s: u128, r: u128, third: Option<u128>, shared: bool) -> Option<u128> {
    let bits = ty.bits * ty.elements;
    let (s, r) = (cut(s, bits), cut(r, bits));
    if ty.is_float() && matches!(word, "add" | "min" | "max") {
        let one = ty.element();
        return Some((0..ty.elements).fold(0, |all, i| {
            let at = |x: u128| cut(x >> (i * one.bits), one.bits);
            all | float_update(word, one, at(s), at(r), shared) << (i * one.bits)
        }));
    }
    let number = |x: u128| ty.number(x);
    Some(match word {
        "add" => cut(s.wrapping_add(r), bits),
        "and" => s & r,
        "or" => s | r,
        "xor" => s ^ r,
        "exch" => r,
        "min" => {
            if number(s) <= number(r) {
                s
            } else {
                r
            }
        }
        "max" => {
            if number(s) >= number(r) {
                s
            } else {
                r
            }
        }
        "inc" => {
            if s >= r {
                0
            } else {
                s + 1
            }
        }
        "dec" => {
            if s == 0 || s > r {
                r
            } else {
                s - 1
            }
        }
        "cas" => {
            if s == r {
                cut(third?, bits)
            } else {
                s
            }
        }
        _ => return None,
    })
}

fn float_update(word: &str, ty: Type, s: u128, r: u128, shared: bool) -> u128 {
    use super::Op;
    // Global addition of f32 flushes subnormals; in shared memory it does not.
    let ftz = if ty.bits == 32 && word == "add" && !shared {
        ".ftz"
    } else {
        ""
    };
    let name = match (ty.kind, ty.bits) {
        (Kind::Brain, _) => "bf16",
        (_, 16) => "f16",
        (_, 32) => "f32",
        _ => "f64",
    };
    let op = Op::of(&format!("{word}{ftz}.{name}"));
    match float::expected(&op, &[s, r]).as_deref() {
        Some([Expect::Bits(bits)]) => *bits,
        // Some NaN: which one is compared by the caller's register only where it is defined.
        _ => NAN,
    }
}

/// Stands for any f64 NaN in memory: the runner asks no more of one.
pub const NAN: u128 = 0x7ff8_dead_dead_dead;
