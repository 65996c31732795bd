//! What words of one opcode ask of each other, where a syntax line alone would say too much: a comparison and its
//! operands' type, an atomic operation and its type, a vector and its width. The manual says these things in prose.

use super::entry::Rule;
use super::entry::Then::{Last, NotLast, With, Without};
use crate::isa::Form;
use crate::isa::types::Type;

impl Form {
    fn holds(&self, condition: &str) -> bool {
        condition.split('+').all(|atom| match atom.strip_prefix('-') {
            Some(word) => !self.has(word),
            None if atom == "~" => self.rounding().is_none(),
            None => match Type::from_word(atom) {
                Some(ty) => self.types.first() == Some(&ty),
                None => self.has(atom),
            },
        })
    }

    /// What is wrong between the opcode's words: the word at fault, and what was expected.
    pub fn disagreement(&self) -> Option<(&'static str, String)> {
        for Rule { when, then } in self.instruction.all_rules() {
            let Some(condition) = when
                .split(' ')
                .find(|condition| condition.is_empty() || self.holds(condition))
            else {
                continue;
            };
            let last = self.types.last().map_or("", |ty| ty.word());
            let among = |list: &str| list.split(' ').any(|word| word == last);
            let dotted = |list: &str| {
                let words: Vec<String> = list.split(' ').map(|word| format!("`.{word}`")).collect();
                words.join(", ")
            };
            let with = condition
                .split('+')
                .find(|atom| !atom.starts_with(['-', '~']))
                .unwrap_or("");
            let because = match with {
                "" => String::new(),
                word => format!(" with `.{word}`"),
            };
            match then {
                Last("") => return Some((last, format!("there is no such conversion{because}"))),
                Last(list) if !among(list) => return Some((last, format!("expected {}{because}", dotted(list)))),
                NotLast(list) if among(list) => return Some((last, format!("`.{last}` does not go{because}"))),
                With(list) if !list.split(' ').any(|word| self.includes(word)) => {
                    return Some((with, format!("expected {}{because}", dotted(list))));
                }
                Without(list) => {
                    if let Some(word) = self.words.iter().find(|word| list.split(' ').any(|one| one == **word)) {
                        return Some((word, format!("`.{word}` does not go{because}")));
                    }
                }
                // It holds.
                Last(_) | NotLast(_) | With(_) => {}
            }
        }
        None
    }
}
