//! What integer, logic, selection, move and video instructions give, from the formulas of the PTX ISA manual in integers
//! of 128 bits; bit fields bit by bit.

use crate::text::Operand;
use crate::values::{Expected, Inputs, integer, is_signed, ones, range, width};

/// The results in the order of the destinations; with `.cc` the carry flag comes last.
pub fn results(inputs: &Inputs) -> Option<Vec<Expected>> {
    let statement = inputs.statement;
    let ty = *statement.types.first()?;
    let bits = |value: i128| Expected::Bits(value as u128 & ones(width(ty)));
    let int = |i: usize| integer(ty, inputs.source(i, ty));
    let has = |word| statement.has(word);
    let word = |i: usize| inputs.source(i, "b32") & 0xffff_ffff;
    let clamp = |value: i128| value.clamp(range(ty).0, range(ty).1);
    let carry = i128::from(inputs.carry);
    if let Some((element, count)) = packed(ty) {
        return Some(vec![Expected::Bits(lanes(inputs, element, count))]);
    }
    Some(vec![match statement.name {
        "add" if has("sat") => bits(clamp(int(0) + int(1))),
        "sub" if has("sat") => bits(clamp(int(0) - int(1))),
        "add" | "sub" | "addc" | "subc" => {
            // Subtraction adds the complement; the flag is carry for both, so it means "no borrow".
            let mask = ones(width(ty)) as i128;
            let subtract = statement.name.starts_with("sub");
            let (a, b) = (int(0) & mask, int(1) & mask);
            let b = if subtract { !b & mask } else { b };
            let sum = a
                + b
                + if statement.name.ends_with('c') {
                    carry
                } else {
                    i128::from(subtract)
                };
            let out = if has("cc") { sum >> width(ty) } else { carry };
            return Some(vec![bits(sum), Expected::Bits(out as u128)]);
        }
        "mul" if has("wide") => Expected::Bits((int(0) * int(1)) as u128 & ones(2 * width(ty))),
        "mad" if has("wide") => {
            let wide = format!("{}{}", &ty[..1], 2 * width(ty));
            let sum = int(0) * int(1) + integer(&wide, inputs.source(2, &wide));
            Expected::Bits(sum as u128 & ones(2 * width(ty)))
        }
        "mul" | "mad" | "madc" => {
            let product = product(ty, int(0), int(1), has("hi"));
            if statement.name == "mul" {
                return Some(vec![bits(product)]);
            }
            if has("sat") {
                return Some(vec![bits(clamp(product + int(2)))]);
            }
            let mask = ones(width(ty)) as i128;
            let sum = (product & mask) + (int(2) & mask) + if statement.name == "madc" { carry } else { 0 };
            let out = if has("cc") { sum >> width(ty) } else { carry };
            let mut all = vec![bits(sum)];
            if statement.carries() {
                all.push(Expected::Bits(out as u128));
            }
            return Some(all);
        }
        "mul24" | "mad24" => {
            let low = |i: usize| {
                let value = int(i) & 0xff_ffff;
                if is_signed(ty) && value >> 23 != 0 {
                    value - (1 << 24)
                } else {
                    value
                }
            };
            let product = low(0) * low(1);
            let part = if has("hi") { product >> 16 } else { product };
            let part = integer(ty, part as u128);
            match (statement.name, has("sat")) {
                ("mul24", _) => bits(part),
                (_, true) => bits(clamp(part + int(2))),
                (_, false) => bits(part + int(2)),
            }
        }
        "sad" => bits(int(2) + (int(0) - int(1)).abs()),
        // By zero: all ones for both.
        "div" if int(1) == 0 => bits(-1),
        "rem" if int(1) == 0 => bits(-1),
        "div" => bits(int(0) / int(1)),
        "rem" => bits(int(0) % int(1)),
        "abs" => bits(int(0).abs()),
        "neg" => bits(-int(0)),
        "min" => bits(relu(has("relu"), int(0).min(int(1)))),
        "max" => bits(relu(has("relu"), int(0).max(int(1)))),
        "popc" => Expected::Bits((0..width(ty)).filter(|&i| bit(int(0), i)).count() as u128),
        "clz" => Expected::Bits((0..width(ty)).rev().take_while(|&i| !bit(int(0), i)).count() as u128),
        "brev" => {
            let reversed = (0..width(ty))
                .filter(|&i| bit(int(0), i))
                .map(|i| 1u128 << (width(ty) - 1 - i));
            Expected::Bits(reversed.sum())
        }
        "bfind" => {
            let value = int(0);
            let sought = if is_signed(ty) && value < 0 { !value } else { value };
            let top = (0..width(ty)).rev().find(|&i| bit(sought, i));
            Expected::Bits(match top {
                None => 0xffff_ffff,
                Some(top) if has("shiftamt") => u128::from(width(ty) - 1 - top),
                Some(top) => top.into(),
            })
        }
        "fns" => find_nth(word(0), word(1), integer("s32", word(2)))?,
        "bfe" => {
            let (a, position, length) = (int(0), word(1), word(2));
            let (position, length) = if width(ty) == 32 {
                (position & 0xff, length & 0xff)
            } else {
                (position, length)
            };
            let top = u128::from(width(ty)) - 1;
            let fill = is_signed(ty) && length != 0 && bit(a, (position + length - 1).min(top) as u32);
            let one = |i: u32| {
                let at = position + u128::from(i);
                if u128::from(i) < length && at <= top {
                    bit(a, at as u32)
                } else {
                    fill
                }
            };
            Expected::Bits((0..width(ty)).filter(|&i| one(i)).map(|i| 1u128 << i).sum())
        }
        "bfi" => {
            let (a, b, position, length) = (int(0), int(1), word(2), word(3));
            let (position, length) = if width(ty) == 32 {
                (position & 0xff, length & 0xff)
            } else {
                (position, length)
            };
            let one = |i: u32| {
                let from = u128::from(i).wrapping_sub(position);
                if u128::from(i) >= position && from < length {
                    bit(a, from as u32)
                } else {
                    bit(b, i)
                }
            };
            Expected::Bits((0..width(ty)).filter(|&i| one(i)).map(|i| 1u128 << i).sum())
        }
        "szext" => {
            let length = if has("wrap") { word(1) & 31 } else { word(1).min(32) };
            if length == 0 {
                return Some(vec![bits(0)]);
            }
            bits(integer(&format!("{}{length}", &ty[..1]), inputs.source(0, ty)))
        }
        "bmsk" => {
            let (from, length) = (word(0), word(1));
            let (from, length) = if has("wrap") {
                (from & 31, length & 31)
            } else {
                (from, length.min(32))
            };
            Expected::Bits(
                (0..32)
                    .filter(|&i| i >= from && i < from + length)
                    .map(|i| 1u128 << i)
                    .sum(),
            )
        }
        "dp4a" | "dp2a" => {
            let (a, b) = (statement.types[0], statement.types[1]);
            let part = |word: u128, i: u32, width: u32, ty: &str| {
                integer(&format!("{}{width}", &ty[..1]), word >> (width * i))
            };
            let products: i128 = if statement.name == "dp4a" {
                (0..4).map(|i| part(word(0), i, 8, a) * part(word(1), i, 8, b)).sum()
            } else {
                let first = if has("hi") { 2 } else { 0 };
                (0..2)
                    .map(|i| part(word(0), i, 16, a) * part(word(1), first + i, 8, b))
                    .sum()
            };
            Expected::Bits((products + word(2) as i128) as u128 & 0xffff_ffff)
        }

        "and" => bits(int(0) & int(1)),
        "or" => bits(int(0) | int(1)),
        "xor" => bits(int(0) ^ int(1)),
        "not" => bits(!int(0)),
        "cnot" => bits(i128::from(int(0) == 0)),
        "shl" => bits(if word(1) >= width(ty).into() {
            0
        } else {
            int(0) << word(1)
        }),
        "shr" => bits(int(0) >> word(1).min(64)),
        "shf" => {
            let amount = if has("wrap") { word(2) & 31 } else { word(2).min(32) };
            let both = word(1) << 32 | word(0);
            Expected::Bits(
                0xffff_ffff
                    & if has("l") {
                        (both << amount) >> 32
                    } else {
                        both >> amount
                    },
            )
        }
        "lop3" => {
            let table = inputs.source(3, "b32");
            let (a, b, c) = (word(0) as i128, word(1) as i128, word(2) as i128);
            let row = |i: u32| u32::from(bit(a, i)) << 2 | u32::from(bit(b, i)) << 1 | u32::from(bit(c, i));
            let value: u128 = (0..32).filter(|&i| table >> row(i) & 1 != 0).map(|i| 1u128 << i).sum();
            let mut all = vec![Expected::Bits(value)];
            if inputs.count() == 5 {
                let (p, q) = (value != 0, inputs.source(4, "pred") & 1 != 0);
                all.push(Expected::Bits(u128::from(if has("and") { p && q } else { p || q })));
            }
            return Some(all);
        }
        "prmt" => Expected::Bits(permuted(inputs, word(0), word(1), word(2))),
        "selp" => {
            let first = inputs.source(2, "pred") & 1 != 0;
            Expected::Bits(inputs.source(if first { 0 } else { 1 }, ty) & ones(width(ty)))
        }
        "mov" => return moved(inputs, ty),
        name if name.starts_with('v') => Expected::Bits(video(inputs)),
        _ => return None,
    }])
}

fn bit(value: i128, i: u32) -> bool {
    value >> i & 1 != 0
}
fn relu(relu: bool, value: i128) -> i128 {
    if relu { value.max(0) } else { value }
}
/// The product's low or high half, as the type has it. Only unsigned 64-bit products pass 127 bits.
fn product(ty: &str, a: i128, b: i128, high: bool) -> i128 {
    if is_signed(ty) {
        return if high { (a * b) >> width(ty) } else { a * b };
    }
    let product = a as u128 * b as u128;
    (if high { product >> width(ty) } else { product }) as i128
}

fn packed(ty: &str) -> Option<(&str, u32)> {
    let (element, count) = ty.split_once('x')?;
    matches!(element.as_bytes()[0], b'u' | b's').then_some((element, count.parse().ok()?))
}
fn lanes(inputs: &Inputs, element: &str, count: u32) -> u128 {
    let statement = inputs.statement;
    let (low, high) = range(element);
    (0..count)
        .map(|i| {
            let at = i * width(element);
            let part = |operand: usize| integer(element, inputs.source(operand, "b32") >> at);
            let value = match statement.name {
                "add" => part(0) + part(1),
                "sub" => part(0) - part(1),
                "min" => part(0).min(part(1)),
                "max" => part(0).max(part(1)),
                "neg" => -part(0),
                other => panic!("{other} of packed integers"),
            };
            let value = if statement.has("sat") {
                value.clamp(low, high)
            } else {
                value
            };
            (relu(statement.has("relu"), value) as u128 & ones(width(element))) << at
        })
        .sum()
}

fn find_nth(mask: u128, base: u128, offset: i128) -> Option<Expected> {
    if base > 31 {
        return Some(Expected::Any);
    }
    let base = base as i128;
    let set = |i: &i128| mask >> *i & 1 != 0;
    let found = match offset {
        0 => Some(base).filter(set),
        1.. => (base..32).filter(set).nth(usize::try_from(offset - 1).ok()?),
        _ => (0..=base).rev().filter(set).nth(usize::try_from(-offset - 1).ok()?),
    };
    Some(Expected::Bits(found.map_or(0xffff_ffff, |i| i as u128)))
}

fn permuted(inputs: &Inputs, a: u128, b: u128, c: u128) -> u128 {
    let both = b << 32 | a;
    let byte = |i: u128| both >> (8 * (i & 7)) & 0xff;
    let s = c & 3;
    let has = |word| inputs.statement.has(word);
    let chosen: [u128; 4] = match () {
        () if has("f4e") => [byte(s), byte(s + 1), byte(s + 2), byte(s + 3)],
        () if has("b4e") => [byte(s), byte(s + 7), byte(s + 6), byte(s + 5)],
        () if has("rc8") => [byte(s); 4],
        () if has("ecl") => [0, 1, 2, 3].map(|i: u128| byte(i.max(s))),
        () if has("ecr") => [0, 1, 2, 3].map(|i: u128| byte(i.min(s))),
        () if has("rc16") => [0, 1, 0, 1].map(|i| byte(2 * (s & 1) + i)),
        () => [0, 1, 2, 3].map(|i| {
            let selector = c >> (4 * i) & 15;
            let value = byte(selector);
            if selector & 8 == 0 {
                value
            } else if value & 0x80 != 0 {
                0xff
            } else {
                0
            }
        }),
    };
    chosen.iter().enumerate().map(|(i, byte)| byte << (8 * i)).sum()
}

/// Copies, packs and unpacks.
fn moved(inputs: &Inputs, ty: &str) -> Option<Vec<Expected>> {
    let operands = &inputs.statement.operands;
    let whole = width(ty);
    Some(match (&operands[0], &operands[1]) {
        (Operand::Group(_), Operand::Group(from)) => from
            .iter()
            .map(|from| Expected::Bits(inputs.value(from, ty) & ones(whole)))
            .collect(),
        (_, Operand::Group(from)) => {
            let part = whole / from.len() as u32;
            let values = from.iter().enumerate();
            let sum = values.map(|(i, from)| (inputs.value(from, "b64") & ones(part)) << (part * i as u32));
            vec![Expected::Bits(sum.sum())]
        }
        (Operand::Group(to), from) => {
            let part = whole / to.len() as u32;
            let value = inputs.value(from, ty);
            (0..to.len())
                .map(|i| Expected::Bits(value >> (part * i as u32) & ones(part)))
                .collect()
        }
        (_, from) => vec![Expected::Bits(inputs.value(from, ty) & ones(whole))],
    })
}

// ---- video ---------------------------------------------------------------------------------------------------------

/// A byte, half-word or word of an operand, extended as the type says.
fn part(word: u128, selector: Option<&str>, ty: &str) -> i128 {
    let sign = &ty[..1];
    match selector.map(|s| s.split_at(1)) {
        None => integer(ty, word),
        Some((size, place)) => {
            let (width, place): (u32, u32) = (if size == "b" { 8 } else { 16 }, place.parse().expect("a digit"));
            integer(&format!("{sign}{width}"), word >> (width * place))
        }
    }
}

fn video(inputs: &Inputs) -> u128 {
    let statement = inputs.statement;
    let name = &statement.name[1..];
    let has = |word| statement.has(word);
    let selector = |i: usize| match &statement.operands[i] {
        Operand::Register(_, selector) => *selector,
        Operand::Negated(inner) => match **inner {
            Operand::Register(_, selector) => selector,
            _ => None,
        },
        _ => None,
    };
    let types = &statement.types;
    let set = name.starts_with("set");
    let (dtype, atype, btype) = if set {
        ("u32", types[0], types[1])
    } else {
        (types[0], types[1], types[2])
    };
    let word = |i: usize| inputs.source(i, "b32") & 0xffff_ffff;
    let compared = |a: i128, b: i128| {
        i128::from(match () {
            () if has("eq") => a == b,
            () if has("ne") => a != b,
            () if has("lt") => a < b,
            () if has("le") => a <= b,
            () if has("gt") => a > b,
            () => a >= b,
        })
    };
    let primary = |name: &str, a: i128, b: i128| match name {
        "add" => a + b,
        "sub" => a - b,
        "absdiff" => (a - b).abs(),
        "min" => a.min(b),
        "max" => a.max(b),
        "avrg" if a + b >= 0 => (a + b + 1) >> 1,
        "avrg" => (a + b) >> 1,
        "set" => compared(a, b),
        other => panic!("v{other}"),
    };

    if let Some(name) = name.strip_suffix(['2', '4']) {
        let count = if statement.name.ends_with('2') { 2 } else { 4 };
        let width = 32 / count;
        let both = word(1) << 32 | word(0);
        // The digits of a selector name its elements from the highest down.
        let places = |i: usize, default: u32| match selector(i) {
            None => (default..default + count).collect(),
            Some(text) => text[1..].bytes().rev().map(|d| u32::from(d - b'0')).collect::<Vec<_>>(),
        };
        let (a, b) = (places(1, 0), places(2, count));
        let chosen = match selector(0) {
            None => (0..count).collect::<Vec<_>>(),
            Some(text) => text[1..].bytes().map(|d| u32::from(d - b'0')).collect(),
        };
        let c = word(2);
        let (low, high) = range(&format!("{}{width}", &dtype[..1]));
        let (mut sum, mut merged) = (c as i128, c);
        for i in chosen {
            let element = |place: u32, ty: &str| integer(&format!("{}{width}", &ty[..1]), both >> (width * place));
            let result = primary(name, element(a[i as usize], atype), element(b[i as usize], btype));
            let result = if has("sat") { result.clamp(low, high) } else { result };
            sum += result;
            let ones = ones(width) << (width * i);
            merged = merged & !ones | (result as u128) << (width * i) & ones;
        }
        return if has("add") { sum as u128 & 0xffff_ffff } else { merged };
    }

    let (a, b) = (part(word(0), selector(1), atype), part(word(1), selector(2), btype));
    if name == "mad" {
        let negated = |i: usize| matches!(statement.operands[i], Operand::Negated(_));
        let negate = negated(1) != negated(2);
        let signed = is_signed(atype) || is_signed(btype) || negate || negated(3);
        // The third operand is complemented before it is extended.
        let c = if negated(3) { !word(2) & 0xffff_ffff } else { word(2) };
        let c = integer(if signed { "s32" } else { "u32" }, c) + i128::from(negated(3));
        let sum = if negate { -(a * b) } else { a * b } + c + i128::from(has("po"));
        let scaled = sum
            >> if has("shr7") {
                7
            } else if has("shr15") {
                15
            } else {
                0
            };
        let (low, high) = range(if signed { "s32" } else { "u32" });
        let result = if has("sat") { scaled.clamp(low, high) } else { scaled };
        return result as u128 & 0xffff_ffff;
    }
    let result = match name {
        "shl" | "shr" => {
            let amount = if has("wrap") { b & 31 } else { b.min(32) };
            if name == "shl" { a << amount } else { a >> amount }
        }
        _ => primary(name, a, b),
    };
    let to = match selector(0) {
        None => dtype.to_owned(),
        Some(s) if s.starts_with('b') => format!("{}8", &dtype[..1]),
        Some(_) => format!("{}16", &dtype[..1]),
    };
    let (low, high) = range(&to);
    let result = if has("sat") { result.clamp(low, high) } else { result };
    if inputs.count() == 2 {
        return result as u128 & 0xffff_ffff;
    }
    let third = integer(dtype, word(2));
    let second = &statement.words[if set { 2 } else { 3 }..];
    let second = second.iter().copied().rfind(|w| matches!(*w, "add" | "min" | "max"));
    match (second, selector(0)) {
        (Some("add"), _) => (result + third) as u128 & 0xffff_ffff,
        (Some("min"), _) => result.min(third) as u128 & 0xffff_ffff,
        (Some(_), _) => result.max(third) as u128 & 0xffff_ffff,
        (None, Some(place)) => {
            let at = width(&to) * place[1..].parse::<u32>().expect("a digit");
            let ones = ones(width(&to)) << at;
            word(2) & !ones | (result as u128) << at & ones
        }
        (None, None) => panic!("three operands and nothing to do with the last"),
    }
}
