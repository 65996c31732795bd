//! Opcode text → [`Form`], by matching it against the table's syntax lines; or an error that says what was expected.
//!
//! The order of modifiers is free, as it is for NVIDIA's assembler: compilers write several orders of the same thing.
//! What keeps its order is what means something by its place: types and state spaces (destination first), layouts,
//! primary and secondary priorities.

use std::fmt;

use super::form::Form;
use super::operation;
use super::table::{self, Compiled, Element, Meaning, legacy, refused};
use super::types::Type;
use super::words::{Ordered, Words, ordered};
use crate::spelling::distance;

/// Why an opcode is not in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The opcode as written.
    pub opcode: String,
    /// The word at which no syntax line goes on; `None` if something is missing at the end.
    pub found: Option<String>,
    /// Which words could stand there (with their dots), in the order of the table.
    pub expected: Vec<&'static str>,
    /// The legal opcode that differs least, if one is close.
    pub nearest: Option<String>,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(refused) = refused::why(&self.opcode) {
            return write!(f, "`{}` {}", refused.name, refused.why);
        }
        let name = self.opcode.split('.').next().unwrap_or_default();
        match &self.found {
            Some(found) if *found == name => write!(f, "unknown instruction `{name}`")?,
            Some(found) => write!(f, "`{}`: unexpected `.{found}`", self.opcode)?,
            None => write!(f, "`{}`: incomplete", self.opcode)?,
        }
        if !self.expected.is_empty() {
            let some: Vec<_> = self.expected.iter().take(16).map(|word| format!("`.{word}`")).collect();
            let more = if self.expected.len() > some.len() { ", …" } else { "" };
            write!(f, "; expected {}{more}", some.join(", "))?;
        }
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean `{nearest}`?")?;
        }
        Ok(())
    }
}

impl std::error::Error for DecodeError {}

/// Steps that matching a line may take: no legal opcode needs nearly so many.
const PATIENCE: u32 = 1 << 20;

/// The same where the answer is a guess at what was meant.
const GUESS: u32 = 1 << 10;

/// Finds the syntax line that an opcode follows.
///
/// # Errors
/// No line of the table can be read as this opcode.
pub fn decode(opcode: &str) -> Result<Form, DecodeError> {
    lookup(opcode, PATIENCE).ok_or_else(|| explain(opcode))
}

/// Every syntax line that an opcode follows: some have several, which take different operands.
pub fn decode_all(opcode: &str) -> Vec<Form> {
    let mut forms = Vec::new();
    search(opcode, table::lines_of, PATIENCE, &mut |form| {
        forms.push(form);
        false
    });
    forms
}

/// [`decode`] for a module of this version.
///
/// # Errors
/// As [`decode`].
pub fn decode_in(opcode: &str, version: (u16, u16)) -> Result<Form, DecodeError> {
    let unbanked = without_bank(opcode);
    let opcode = unbanked.as_deref().unwrap_or(opcode);
    match version < (2, 0) {
        true => decode_legacy(opcode),
        false => decode(opcode),
    }
}

/// The opcode without the bank of `ld.const[2].b32` (PTX 2.1 and before), which says nothing that the address does not.
pub fn without_bank(opcode: &str) -> Option<String> {
    let (head, tail) = opcode.split_once('[')?;
    let tail = tail.split_once(']').map_or("", |(_, tail)| tail);
    Some(format!("{head}{tail}"))
}

/// Whether an opcode calls: its operands have a shape of their own.
pub fn is_call(opcode: &str) -> bool {
    opcode.split('.').next() == Some("call")
}

/// Whether an instruction takes addresses as values: what stands outside of brackets is no access to memory.
pub fn takes_addresses(opcode: &str) -> bool {
    let mnemonic = opcode.split('.').next().unwrap_or_default();
    let takes = |line: &Compiled| matches!(line.line.meaning, Meaning::Move | Meaning::ConvertAddress);
    table::lines_of(mnemonic).is_some_and(|lines| lines.iter().any(takes))
}

/// [`decode_legacy`], and how many elements the opcode names: PTX 1.x takes whole vectors where an instruction computes
/// on one value (PTX ISA 1.1, 6.4). Accesses and textures say themselves how many elements they have.
///
/// # Errors
/// As [`decode`].
pub fn decode_elements(opcode: &str) -> Result<(Form, Option<u8>), DecodeError> {
    let unbanked = without_bank(opcode);
    let opcode = unbanked.as_deref().unwrap_or(opcode);
    let lanes = |word: &str| match word {
        "v2" => Some(2),
        "v3" => Some(3),
        "v4" => Some(4),
        _ => None,
    };
    let mnemonic = opcode.split('.').next().unwrap_or_default();
    let count = opcode.split('.').find_map(lanes);
    if count.is_none() || matches!(mnemonic, "ld" | "st" | "tex") {
        return decode_legacy(opcode).map(|form| (form, None));
    }
    let words: Vec<&str> = opcode.split('.').filter(|word| lanes(word).is_none()).collect();
    decode_legacy(&words.join(".")).map(|form| (form, count))
}

/// What an opcode leaves unsaid in PTX 1.x, one after the other.
fn unsaid(opcode: &str) -> impl Iterator<Item = &'static str> {
    let mut words = opcode.split('.');
    let mnemonic = words.next().unwrap_or_default();
    legacy::UNSAID
        .iter()
        .filter(move |unsaid| {
            unsaid.mnemonic == mnemonic && (unsaid.with.is_empty() || words.clone().any(|word| word == unsaid.with))
        })
        .map(|unsaid| unsaid.means)
}

/// With `.ftz`: targets before sm_20 flush subnormals whatever the version, and so does what runs their code later.
pub fn decode_flushing(opcode: &str) -> Option<Form> {
    unsaid(opcode)
        .filter(|&means| means == ".ftz")
        .find_map(|means| lookup(&format!("{opcode}{means}"), PATIENCE))
}

/// [`decode`] as PTX 1.x has it: lines that later versions dropped count, modifiers that it leaves out get the meaning
/// that they had.
///
/// # Errors
/// As [`decode`].
pub fn decode_legacy(opcode: &str) -> Result<Form, DecodeError> {
    unsaid(opcode)
        .find_map(|means| lookup(&format!("{opcode}{means}"), PATIENCE))
        .or_else(|| lookup(opcode, PATIENCE))
        .or_else(|| lookup_in(opcode, table::legacy_lines_of, PATIENCE))
        .ok_or_else(|| explain(opcode))
}

fn lookup(opcode: &str, budget: u32) -> Option<Form> {
    lookup_in(opcode, table::lines_of, budget)
}

/// Where the lines of a mnemonic are found.
type LinesOf = fn(&str) -> Option<&'static [Compiled]>;

fn lookup_in(opcode: &str, lines_of: LinesOf, budget: u32) -> Option<Form> {
    let mut found = None;
    search(opcode, lines_of, budget, &mut |form| {
        found = Some(form);
        true
    });
    found
}

/// Hands the lines that match to `enough`, in the order of the table, until it says so.
fn search(opcode: &str, lines_of: LinesOf, budget: u32, enough: &mut dyn FnMut(Form) -> bool) -> Option<()> {
    let mut words: [(&str, Option<Ordered>); 24] = [("", None); 24];
    let mut split = opcode.split('.');
    let name = split.next()?;
    let lines = lines_of(name)?;
    let mut count = 0;
    for word in split {
        *words.get_mut(count)? = (word, ordered(word));
        count += 1;
    }
    let words = &words[..count];
    for line in lines {
        if count < line.least || count > line.most || !words.iter().all(|word| line.vocabulary.contains(&word.0)) {
            continue;
        }
        let mut search = Search {
            words,
            used: 0,
            picked: Vec::with_capacity(count),
            budget,
            deepest: None,
        };
        if search.elements(&Todo {
            elements: &line.elements,
            next: None,
        }) {
            let (mut types, mut read) = (Vec::new(), Vec::with_capacity(count));
            // Layouts mean what they mean by their order.
            let mut layouts = words
                .iter()
                .map(|word| word.0)
                .filter(|word| matches!(*word, "row" | "col"));
            for (word, ty) in search.picked {
                match (ty, word) {
                    (Some(ty), _) => types.push(ty),
                    (None, "row" | "col") => read.push(match layouts.next() {
                        Some("col") => "col",
                        _ => "row",
                    }),
                    (None, word) => read.push(word),
                }
            }
            let written = Words {
                mnemonic: line.mnemonic,
                types: &types,
                words: &read,
            };
            let Some(op) = operation::read(line.line.meaning, written) else {
                continue;
            };
            let form = Form {
                instruction: line.instruction,
                line: line.line,
                op,
                signature: &line.signature,
                types,
                words: read,
            };
            if enough(form) {
                return Some(());
            }
        }
    }
    None
}

/// Elements still to be matched: a list of slices, as alternatives of groups are entered.
struct Todo<'a> {
    elements: &'a [Element],
    next: Option<&'a Todo<'a>>,
}

struct Search<'a> {
    words: &'a [(&'a str, Option<Ordered>)],
    /// Bit `i`: word `i` is matched.
    used: u32,
    picked: Vec<(&'static str, Option<Type>)>,
    /// How many steps are left: matching tries every way to leave out optional words, which for a long opcode with a wrong
    /// word are too many.
    budget: u32,
    /// When explaining: the most words matched so far, which ones, and what was wanted then.
    deepest: Option<Deepest>,
}

#[derive(Default)]
struct Deepest {
    matched: u32,
    used: u32,
    wanted: Vec<&'static str>,
}

impl Search<'_> {
    fn elements(&mut self, todo: &Todo) -> bool {
        let Some(left) = self.budget.checked_sub(1) else {
            return false;
        };
        self.budget = left;
        let Some((first, rest)) = todo.elements.split_first() else {
            return match todo.next {
                Some(next) => self.elements(next),
                None => self.used.count_ones() as usize == self.words.len() || self.note(None),
            };
        };
        let rest = Todo {
            elements: rest,
            next: todo.next,
        };
        match first {
            Element::Word(word, ty, order) => {
                let found = match order {
                    // Only the first one left of its kind can match.
                    Some(_) => self
                        .unused()
                        .find(|&i| self.words[i].1 == *order)
                        .filter(|&i| self.words[i].0 == *word),
                    None => self.unused().find(|&i| self.words[i].0 == *word),
                };
                let Some(found) = found else {
                    return self.note(Some(word));
                };
                self.used |= 1 << found;
                self.picked.push((word, *ty));
                if self.elements(&rest) {
                    return true;
                }
                self.picked.pop();
                self.used &= !(1 << found);
                false
            }
            Element::Group(alternatives) => alternatives.iter().any(|alternative| {
                self.elements(&Todo {
                    elements: alternative,
                    next: Some(&rest),
                })
            }),
            Element::Optional(elements) => {
                self.elements(&Todo {
                    elements,
                    next: Some(&rest),
                }) || self.elements(&rest)
            }
        }
    }

    fn unused(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.words.len()).filter(|i| self.used & (1 << i) == 0)
    }

    /// Remembers how far matching came; always false.
    fn note(&mut self, wanted: Option<&'static str>) -> bool {
        let matched = self.used.count_ones();
        if let Some(deepest) = &mut self.deepest {
            if matched > deepest.matched {
                *deepest = Deepest {
                    matched,
                    used: self.used,
                    wanted: Vec::new(),
                };
            }
            if matched == deepest.matched
                && let Some(wanted) = wanted
                && !deepest.wanted.contains(&wanted)
            {
                deepest.wanted.push(wanted);
            }
        }
        false
    }
}

/// Runs the search again, taking notes. Slow and rare.
fn explain(opcode: &str) -> DecodeError {
    let name = opcode.split('.').next().unwrap_or_default();
    let Some(lines) = table::lines_of(name) else {
        let nearest = table::mnemonics()
            .filter(|known| known.len().abs_diff(name.len()) <= 2)
            .map(|known| (distance(known, name), known))
            .filter(|&(d, _)| d <= 2)
            .min()
            .map(|(_, known)| known.to_owned());
        return DecodeError {
            opcode: opcode.to_owned(),
            found: Some(name.to_owned()),
            expected: Vec::new(),
            nearest,
        };
    };
    let words: Vec<_> = opcode
        .split('.')
        .skip(1)
        .take(24)
        .map(|word| (word, ordered(word)))
        .collect();
    let mut search = Search {
        words: &words,
        used: 0,
        picked: Vec::new(),
        budget: 0,
        deepest: Some(Deepest::default()),
    };
    for line in lines {
        (search.used, search.picked, search.budget) = (0, Vec::new(), GUESS);
        search.elements(&Todo {
            elements: &line.elements,
            next: None,
        });
    }
    let deepest = search.deepest.unwrap_or_default();
    let found = (0..words.len())
        .find(|i| deepest.used & (1 << i) == 0)
        .map(|i| words[i].0.to_owned());
    DecodeError {
        opcode: opcode.to_owned(),
        found,
        expected: deepest.wanted,
        nearest: nearest(name, &words, lines),
    }
}

/// More modifiers than this are a long opcode.
const LONG: usize = 8;

/// A legal opcode one edit away: a word spelt otherwise, left out, added or replaced.
fn nearest(name: &str, words: &[(&str, Option<Ordered>)], lines: &[Compiled]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(|w| w.0).collect();
    let join = |words: &[&str]| {
        std::iter::once(name)
            .chain(words.iter().copied())
            .collect::<Vec<_>>()
            .join(".")
    };
    let mut known: Vec<&'static str> = Vec::new();
    for line in lines {
        table::words_of(&line.elements, &mut known);
    }
    let mut best: Option<(usize, String)> = None;
    let mut consider = |cost: usize, candidate: String| {
        if best.as_ref().is_none_or(|(least, _)| cost < *least) && lookup(&candidate, GUESS).is_some() {
            best = Some((cost, candidate));
        }
    };
    // A word that no line has must go; of the others any may be wrong, but a long opcode has too many to try them all.
    let strange: Vec<usize> = (0..words.len()).filter(|&i| !known.contains(&words[i])).collect();
    let suspects = match strange.len() {
        0 if words.len() <= LONG => (0..words.len()).collect(),
        0 | 1 => strange.clone(),
        _ => return None,
    };
    if strange.is_empty() {
        // The order of modifiers is free, that of types is not.
        for i in [0, words.len()] {
            let mut longer = words.clone();
            longer.insert(i, "");
            for &word in &known {
                longer[i] = word;
                consider(1, join(&longer));
            }
        }
    }
    for i in suspects {
        let mut changed = words.clone();
        for &word in &known {
            changed[i] = word;
            consider(2 * distance(words[i], word), join(&changed));
        }
        let mut shorter = words.clone();
        shorter.remove(i);
        consider(3, join(&shorter));
    }
    best.map(|(_, candidate)| candidate)
}
