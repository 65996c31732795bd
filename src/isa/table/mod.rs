//! The instruction table: one entry for each instruction, with every syntax line of the PTX manual once and what the
//! manual says of it in prose ([`entry`] has the types, a file for each family the entries); and the small compiler
//! that reads its notation.
//!
//! A line is written as in the manual: the opcode, the operands, then the modifier groups that it uses, separated by
//! semicolons:
//!
//! ```text
//! add{.rnd}{.ftz}{.sat}.f32  d, a, b;  .rnd = { .rn, .rz, .rm, .rp }
//! ```
//!
//! Operands are described in [`signature`]. `.word` stands for itself unless a group of that name follows; `{…}` is
//! optional; a group's alternatives are sequences in the same notation and may use groups defined after it; an
//! alternative may be empty (`{ , .b }`). `.m64n[8..256/8]k16` stands for a word with a number from 8 to 256 in steps
//! of 8.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

pub use self::entry::{Gone, Instruction, Line, Meaning, Need, Rule, Then};
pub use self::needs::{Lack, Target};
use self::signature::Signature;
use super::types::Type;
use super::words::{Ordered, ordered};

mod agree;
mod bulk;
mod control;
mod entry;
mod float;
pub mod fragment;
mod int;
pub mod legacy;
mod logic;
mod matrix;
mod memory;
mod needs;
pub mod refused;
pub mod signature;
mod texture;
mod video;

/// Every line of the table, family by family.
pub fn lines() -> impl Iterator<Item = &'static Line> {
    let instructions = FAMILIES.iter().copied().flatten();
    instructions.flat_map(|instruction| instruction.lines)
}

/// The lines of PTX 1.x alone.
pub fn legacy_lines() -> impl Iterator<Item = &'static Line> {
    legacy::INSTRUCTIONS.iter().flat_map(|instruction| instruction.lines)
}

static FAMILIES: &[&[Instruction]] = &[
    int::INSTRUCTIONS,
    float::INSTRUCTIONS,
    logic::INSTRUCTIONS,
    memory::INSTRUCTIONS,
    control::INSTRUCTIONS,
    video::INSTRUCTIONS,
    texture::INSTRUCTIONS,
    bulk::INSTRUCTIONS,
    matrix::INSTRUCTIONS,
];

/// A line ready for matching.
pub(super) struct Compiled {
    pub instruction: &'static Instruction,
    pub line: &'static Line,
    pub mnemonic: &'static str,
    pub elements: Vec<Element>,
    /// Every word that it may hold.
    pub vocabulary: HashSet<&'static str>,
    pub signature: Signature,
    /// How many words after the first it has, at least and at most.
    pub least: usize,
    pub most: usize,
}

pub(super) enum Element {
    /// A word without its dot, the type it names if it names one, and among what it keeps its place.
    Word(&'static str, Option<Type>, Option<Ordered>),
    Group(Vec<Vec<Element>>),
    Optional(Vec<Element>),
}

/// The lines of one mnemonic, compiled when first asked for.
struct Entry {
    lines: Vec<(&'static Instruction, &'static Line)>,
    compiled: OnceLock<Vec<Compiled>>,
}

type Index = HashMap<&'static str, Entry>;

fn indexed(families: &[&'static [Instruction]]) -> Index {
    let mut index = Index::new();
    for family in families {
        for instruction in *family {
            let entry = index.entry(instruction.name).or_insert_with(|| Entry {
                lines: Vec::new(),
                compiled: OnceLock::new(),
            });
            let lines = instruction.lines.iter();
            entry.lines.extend(lines.map(|line| (instruction, line)));
        }
    }
    index
}

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| indexed(FAMILIES))
}

fn find(index: &'static Index, mnemonic: &str) -> Option<&'static [Compiled]> {
    let entry = index.get(mnemonic)?;
    Some(entry.compiled.get_or_init(|| {
        entry
            .lines
            .iter()
            .map(|&(instruction, line)| compile(instruction, line))
            .collect()
    }))
}

pub(super) fn lines_of(mnemonic: &str) -> Option<&'static [Compiled]> {
    find(index(), mnemonic)
}

/// Lines that only PTX 1.x has.
pub(super) fn legacy_lines_of(mnemonic: &str) -> Option<&'static [Compiled]> {
    static INDEX: OnceLock<Index> = OnceLock::new();
    find(INDEX.get_or_init(|| indexed(&[legacy::INSTRUCTIONS])), mnemonic)
}

/// All lines, ready for matching; those of PTX 1.x alone come last.
#[cfg(test)]
pub(super) fn compiled_lines() -> impl Iterator<Item = &'static Compiled> {
    let legacy: HashSet<_> = legacy::INSTRUCTIONS.iter().map(|one| one.name).collect();
    mnemonics()
        .filter_map(lines_of)
        .chain(legacy.into_iter().filter_map(legacy_lines_of))
        .flatten()
}

/// The first words of all opcodes.
pub fn mnemonics() -> impl Iterator<Item = &'static str> {
    index().keys().copied()
}

/// All words that may occur in these elements, without dots.
pub(super) fn words_of(elements: &[Element], into: &mut Vec<&'static str>) {
    for element in elements {
        match element {
            Element::Word(word, ..) if into.contains(word) => {}
            Element::Word(word, ..) => into.push(word),
            Element::Group(alternatives) => alternatives.iter().for_each(|alternative| words_of(alternative, into)),
            Element::Optional(elements) => words_of(elements, into),
        }
    }
}

fn compile(instruction: &'static Instruction, line: &'static Line) -> Compiled {
    let mut parts = line.syntax.split(';');
    let head = parts.next().unwrap_or_default();
    let opcode = head.split_whitespace().next().unwrap_or_default();
    let groups: Vec<(&'static str, &'static str)> = parts
        .filter_map(|part| {
            let (name, body) = part.split_once('=')?;
            let body = body.trim().strip_prefix('{')?.strip_suffix('}')?;
            Some((name.trim(), body))
        })
        .collect();
    let elements = sequence(&opcode[line.mnemonic().len()..], &groups);
    let (least, most) = extent(&elements);
    let mut words = Vec::new();
    words_of(&elements, &mut words);
    let operands = head.trim_start()[opcode.len()..].trim();
    Compiled {
        instruction,
        line,
        mnemonic: instruction.name,
        elements,
        vocabulary: words.into_iter().collect(),
        signature: signature::read(operands),
        least,
        most,
    }
}

fn extent(elements: &[Element]) -> (usize, usize) {
    elements.iter().fold((0, 0), |(least, most), element| match element {
        Element::Word(..) => (least + 1, most + 1),
        Element::Group(alternatives) => {
            let extents = alternatives.iter().map(|alternative| extent(alternative));
            let (l, m) = extents.fold((usize::MAX, 0), |(l, m), (a, b)| (l.min(a), m.max(b)));
            (least + l, most + m)
        }
        Element::Optional(elements) => (least, most + extent(elements).1),
    })
}

/// Reads `.a{.b}.c`; names found in `groups` become groups.
fn sequence(mut text: &'static str, groups: &[(&'static str, &'static str)]) -> Vec<Element> {
    let mut elements = Vec::new();
    loop {
        text = text.trim_start();
        if let Some(rest) = text.strip_prefix('{') {
            let end = closing(rest);
            elements.push(Element::Optional(sequence(&rest[..end], groups)));
            text = &rest[end + 1..];
        } else if let Some(rest) = text.strip_prefix('.') {
            let end = rest
                .find(|c: char| c == '.' || c == '{' || c.is_whitespace())
                .unwrap_or(rest.len());
            // A range `[8..256/8]` holds dots of its own.
            let end = match rest[..end].find('[') {
                Some(_) => rest.find(']').map_or(end, |bracket| {
                    let tail = &rest[bracket..];
                    bracket
                        + tail
                            .find(|c: char| c == '.' || c == '{' || c.is_whitespace())
                            .unwrap_or(tail.len())
                }),
                None => end,
            };
            let word = &rest[..end];
            elements.push(
                match groups.iter().position(|(name, _)| name.strip_prefix('.') == Some(word)) {
                    Some(at) => Element::Group(
                        alternatives(groups[at].1)
                            .map(|alternative| sequence(alternative, &groups[at + 1..]))
                            .collect(),
                    ),
                    None => words(word),
                },
            );
            text = &rest[end..];
        } else {
            assert!(text.is_empty(), "syntax line not understood at {text:?}");
            return elements;
        }
    }
}

/// A word, or the words of a numbered one.
fn words(word: &'static str) -> Element {
    let Some((head, range)) = word.split_once('[') else {
        return Element::Word(word, Type::from_word(word), ordered(word));
    };
    let (range, tail) = range.split_once(']').unwrap_or((range, ""));
    let (from, to) = range.split_once("..").unwrap_or((range, range));
    let (to, step) = to.split_once('/').unwrap_or((to, "1"));
    let number = |text: &str| text.parse::<usize>().unwrap_or(1);
    let all = (number(from)..=number(to)).step_by(number(step).max(1)).map(|n| {
        // Compiled once per process: the words live as long as the table.
        let word: &'static str = Box::leak(format!("{head}{n}{tail}").into_boxed_str());
        vec![Element::Word(word, None, None)]
    });
    Element::Group(all.collect())
}

/// Splits a group's body at its commas.
fn alternatives(body: &'static str) -> impl Iterator<Item = &'static str> {
    body.split(',').map(str::trim)
}

fn closing(text: &str) -> usize {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return i,
            '}' => depth -= 1,
            _ => {}
        }
    }
    panic!("unbalanced braces in {text:?}")
}
