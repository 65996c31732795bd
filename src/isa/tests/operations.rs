//! Typed operations: every line of the table has one, its opcode says the same as the text that it came from, and what
//! passes ask of it is right.

use std::collections::{HashMap, HashSet};

use super::super::table::{Compiled, Element, compiled_lines};
use super::levels::Random;
use super::*;
use crate::isa::types::{Bits, IntType};

/// One way to write the opcode of a line, chosen by chance.
fn written(line: &Compiled, random: &mut Random) -> String {
    fn write(elements: &[Element], random: &mut Random, text: &mut String) {
        for element in elements {
            match element {
                Element::Word(word, ..) => {
                    text.push('.');
                    text.push_str(word);
                }
                Element::Optional(elements) if random.next() >> 63 == 0 => write(elements, random, text),
                Element::Optional(_) => {}
                Element::Group(alternatives) => {
                    let chosen = (random.next() >> 8) as usize % alternatives.len();
                    write(&alternatives[chosen], random, text);
                }
            }
        }
    }
    let mut text = line.mnemonic.to_owned();
    write(&line.elements, random, &mut text);
    text
}

/// What its reader makes of a line's own words; no other line is asked.
#[test]
fn every_line_is_read() {
    let mut random = Random(0x0123_4567_89ab_cdef);
    let (mut lines, mut opcodes) = (0, HashSet::new());
    for line in compiled_lines() {
        lines += 1;
        for _ in 0..400 {
            let text = written(line, &mut random);
            if !opcodes.insert((lines, text.clone())) {
                continue;
            }
            let mut forms = decode_all(&text);
            forms.extend(decode_legacy(&text));
            assert!(
                forms.iter().any(|form| std::ptr::eq(form.line, line.line)) || forms.len() == 1,
                "`{text}` of `{}` has no operation",
                line.line.head()
            );
        }
    }
    assert!(
        lines > 300 && opcodes.len() > 18_000,
        "{lines} lines, {} opcodes",
        opcodes.len()
    );
}

/// Words that say nothing, by mnemonic: what an opcode means without them (`""`), or with another one of the same list.
const SYNONYMS: &[(&str, &[&str])] = &[
    // What is so if nothing is said.
    ("ld st", &["", "weak"]),
    ("atom red", &["", "relaxed"]),
    ("fence", &["", "acq_rel"]),
    ("bar barrier", &["", "cta"]),
    ("barrier", &["", "release", "acquire"]),
    ("add sub mad div sqrt", &["", "rn"]),
    ("rcp sqrt rsqrt sin cos lg2 ex2", &["", "approx"]),
    // Of unsigned numbers.
    ("set setp", &["lt", "lo"]),
    ("set setp", &["le", "ls"]),
    ("set setp", &["gt", "hi"]),
    ("set setp", &["ge", "hs"]),
    ("redux", &["u32", "s32"]),
    // Registers say how wide an address is.
    ("cvta mapa getctarank alloca stacksave stackrestore", &["u32", "u64"]),
    // The assembler takes the word for `f64`, of which nothing is flushed.
    ("rcp", &["", "ftz"]),
    ("tensormap", &["shared", "shared::cta"]),
    // What a copy does where it says nothing else.
    (
        "cp",
        &[
            "",
            "tile",
            "cta_group::1",
            "mbarrier::report::disabled",
            "L2::cache_hint",
        ],
    ),
];

/// The words of an opcode that say something, in no order.
fn telling(text: &str) -> Vec<&str> {
    let (mnemonic, rest) = text.split_once('.').unwrap_or((text, ""));
    let first = |word| {
        SYNONYMS
            .iter()
            .find(|(of, words)| of.split(' ').any(|one| one == mnemonic) && words.contains(&word))
            .map_or(word, |(_, words)| words[0])
    };
    let mut words: Vec<&str> = rest.split('.').map(first).filter(|word| !word.is_empty()).collect();
    words.sort_unstable();
    words
}

/// No reader leaves out a word of its line: opcodes of one line that mean the same are the same but for synonyms.
#[test]
fn every_word_says_something() {
    let mut random = Random(0x2468_ace0_1357_9bdf);
    let (mut same, mut lost) = (0, HashSet::new());
    for line in compiled_lines() {
        let mut texts: HashMap<Operation, String> = HashMap::new();
        for _ in 0..300 {
            let text = written(line, &mut random);
            let forms = decode_all(&text);
            let Some(form) = forms.iter().find(|form| std::ptr::eq(form.line, line.line)) else {
                continue;
            };
            let known = match form.op {
                // They do nothing, and the value of a policy is for hints alone.
                Operation::Hint(_) | Operation::CreatePolicy(_) => continue,
                // Many of their words are hints, or repeat what operands say. Each of their forms is executed instead,
                // and compared with a model or a case (`tests/forms`, `tests/tensor_cores`, `tests/ptx/asynchronous`).
                Operation::Joint(_) => continue,
                op if form.disagreement().is_none() => texts.entry(op).or_insert_with(|| text.clone()),
                _ => continue,
            };
            same += usize::from(*known != text);
            if telling(known) != telling(&text) {
                lost.insert(format!("{known} and {text}"));
            }
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
    assert!(same > 1_000, "{same}");
}

/// Operands that are fragments are those of instructions that say how large fragments are.
#[test]
fn fragments_have_sizes() {
    use super::super::table::fragment;
    use super::super::table::signature::{Count, Kind, Operand};
    fn names(operands: &[Operand], into: &mut HashSet<&'static str>) {
        for operand in operands {
            match &operand.kind {
                Kind::Group(inner) => names(inner, into),
                Kind::Destination(value) | Kind::Source(value) if value.count == Count::Fragment => {
                    into.insert(operand.name);
                }
                _ => {}
            }
        }
    }
    let mut random = Random(0x0f0f_0f0f_0f0f_0f0f);
    let (mut all, mut unknown) = (0, HashSet::new());
    for line in compiled_lines() {
        let mut fragments = HashSet::new();
        line.signature.ways.iter().for_each(|way| names(way, &mut fragments));
        assert_eq!(
            line.line.syntax.contains(":frag"),
            !fragments.is_empty(),
            "{:?}",
            line.line
        );
        if fragments.is_empty() {
            continue;
        }
        for _ in 0..20 {
            let text = written(line, &mut random);
            let own = |form: &&Form| std::ptr::eq(form.line, line.line) && form.disagreement().is_none();
            for form in decode_all(&text).iter().filter(own) {
                for name in &fragments {
                    all += 1;
                    if fragment::of(form, name).is_none() {
                        unknown.insert(format!("{name} of {text}"));
                    }
                }
            }
        }
    }
    assert!(all > 2_000 && unknown.is_empty(), "{all}: {unknown:#?}");
}

/// The opcode that an operation prints is the operation.
fn says_the_same(op: Operation, from: &str, legacy: bool) {
    let text = match op {
        Operation::Compute(compute) => compute.to_string(),
        Operation::Video(opcode) => opcode.to_string(),
        _ => return,
    };
    let again = if legacy { decode_legacy(&text) } else { decode(&text) };
    let again = again.unwrap_or_else(|error| panic!("`{from}` prints `{text}`: {error}"));
    assert_eq!(again.op, op, "`{from}` prints `{text}`");
}

#[test]
fn operations_print_their_opcodes() {
    let mut operations = HashSet::new();
    let mut random = Random(0xfeed_beef_1234_5678);
    for row in forms().lines().skip(1) {
        let opcode = row.split('\t').nth(2).unwrap().split(' ').next().unwrap();
        for form in decode_all(opcode) {
            says_the_same(form.op, opcode, false);
            operations.insert(form.op);
        }
    }
    // More than the catalogue has, and what PTX 1.x alone has.
    for line in compiled_lines() {
        for _ in 0..400 {
            let text = written(line, &mut random);
            if let Ok(form) = decode_legacy(&text) {
                says_the_same(form.op, &text, true);
                operations.insert(form.op);
            }
        }
    }
    let computes = operations
        .iter()
        .filter(|op| matches!(op, Operation::Compute(_)))
        .count();
    assert!(computes > 2_000, "{computes}");
}

fn compute(opcode: &str) -> Compute {
    match decode(opcode).unwrap_or_else(|error| panic!("{error}")).op {
        Operation::Compute(compute) => compute,
        other => panic!("{opcode} is {other:?}"),
    }
}

#[test]
fn linear_operations_say_so() {
    let linear = |opcode| compute(opcode).linear();
    assert_eq!(linear("add.s32"), Some(Linear::Add));
    assert_eq!(linear("sub.u64"), Some(Linear::Sub));
    assert_eq!(linear("mul.lo.s64"), Some(Linear::Mul));
    assert_eq!(linear("mad.lo.u32"), Some(Linear::Mad));
    assert_eq!(linear("mul.wide.s32"), Some(Linear::MulWide { signed: true }));
    assert_eq!(linear("mad.wide.u32"), Some(Linear::MadWide { signed: false }));
    assert_eq!(linear("shl.b64"), Some(Linear::Shl));
    assert_eq!(linear("cvt.s64.s32"), Some(Linear::Widen { signed: true }));
    assert_eq!(linear("cvt.s64.u32"), Some(Linear::Widen { signed: false }));
    assert_eq!(linear("cvt.u32.s64"), Some(Linear::Narrow));
    assert_eq!(linear("cvt.u32.s32"), Some(Linear::Copy));
    let less = Compare::Lt;
    let relation = |signed| Some(Linear::Compare { relation: less, signed });
    assert_eq!(linear("setp.lt.s64"), relation(true));
    assert_eq!(linear("setp.lo.u32"), relation(false));
    for other in [
        "add.u16",
        "add.sat.s32",
        "add.cc.u32",
        "mul.hi.s32",
        "mul.wide.u16",
        "shl.b16",
        "shr.s32",
        "cvt.sat.u32.s64",
        "cvt.u64.u16",
        "cvt.rzi.s32.f32",
        "setp.lt.and.s32",
        "setp.lt.f32",
        "add.f32",
    ] {
        assert_eq!(linear(other), None, "{other}");
    }
}

/// Each contractible pair, and the text that stands for it.
#[test]
fn sums_of_products_contract() {
    let of = |opcode| compute(opcode).contractible();
    let fused = |opcode| match of(opcode) {
        Some(Contractible::Product(fused) | Contractible::Sum { of: fused, .. } | Contractible::Negation(fused)) => {
            fused
        }
        None => panic!("{opcode} does not contract"),
    };
    for (sum, product, fma, signs) in [
        ("add.f32", "mul.f32", "fma.rn.f32", 0x8000_0000),
        ("sub.ftz.sat.f32", "mul.ftz.f32", "fma.rn.ftz.sat.f32", 0x8000_0000),
        ("add.f64", "mul.f64", "fma.rn.f64", 0x8000_0000_0000_0000),
        ("sub.f16", "mul.f16", "fma.rn.f16", 0x8000),
        (
            "add.ftz.sat.f16x2",
            "mul.ftz.f16x2",
            "fma.rn.ftz.sat.f16x2",
            0x8000_8000,
        ),
        ("add.bf16", "mul.bf16", "fma.rn.bf16", 0x8000),
        ("add.bf16x2", "mul.bf16x2", "fma.rn.bf16x2", 0x8000_8000),
        ("add.f32x2", "mul.f32x2", "fma.rn.f32x2", 0x8000_0000_8000_0000),
    ] {
        assert_eq!(fused(sum).of_product(), fused(product), "{sum}");
        assert_eq!(fused(sum).fma(), compute(fma), "{sum}");
        assert_eq!(fused(sum).signs().1, signs, "{sum}");
    }
    for (negation, product, kept) in [
        ("neg.f32", "mul.f32", true),
        ("neg.f32", "mul.ftz.f32", true),
        ("neg.ftz.f32", "mul.f32", false),
        ("neg.ftz.f32", "mul.ftz.f32", true),
        ("neg.f64", "mul.f32", false),
        ("neg.ftz.f16x2", "mul.f16x2", false),
        ("neg.bf16", "mul.bf16", true),
    ] {
        assert_eq!(
            fused(negation).keeps_products_of(fused(product)),
            kept,
            "{negation} {product}"
        );
    }
    assert_eq!(of("neg.bf16x2"), None);
    assert!(matches!(of("sub.f32"), Some(Contractible::Sum { subtract: true, .. })));
    for other in [
        "add.rn.f32",
        "mul.rn.f64",
        "mul.sat.f32",
        "mul.rz.f32",
        "add.rn.f16",
        "add.s32",
        "fma.rn.f32",
    ] {
        assert_eq!(of(other), None, "{other}");
    }
}

/// What lowering makes without text is what the text would mean.
#[test]
fn constructors_make_what_text_says() {
    use super::super::compare::Operands;
    use super::super::int::Ordered;
    use super::super::logic::Logical;
    for (made, text) in [
        (Compute::add(IntType::U64), "add.u64"),
        (Compute::sub(IntType::S32), "sub.s32"),
        (Compute::mul_lo(IntType::U32), "mul.lo.u32"),
        (Compute::min(Ordered::U64), "min.u64"),
        (Compute::and(Logical::Pred), "and.pred"),
        (Compute::or(Logical::B32), "or.b32"),
        (Compute::xor(Logical::B64), "xor.b64"),
        (Compute::not(Logical::Pred), "not.pred"),
        (Compute::shl(Bits::B32), "shl.b32"),
        (Compute::setp(Compare::Ne, Operands::B16), "setp.ne.b16"),
        (Compute::select(Width::B16).unwrap(), "selp.b16"),
    ] {
        assert_eq!(made, compute(text));
        assert_eq!(made.to_string(), text);
    }
    assert_eq!(compute("lop3.b32").with_immediate(0x96).lane().constant, 0x96);
    assert!(Compute::select(Width::Pred).is_none() && Compute::resize(Width::Pred, Width::B32, false).is_none());
}
