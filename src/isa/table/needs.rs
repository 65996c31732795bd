//! What an opcode needs beyond what its line says: words that came later than the instruction, or to fewer targets (PTX
//! ISA, the notes on PTX ISA versions and targets of each instruction).

use super::super::Form;
use crate::ptx::ast::Type;

/// A `.target`: `sm_90a` is (90, `a`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub number: u16,
    pub feature: Feature,
}

/// Which of a target's features a module uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Those that later targets have too.
    Base,
    /// `f`: those of the family.
    Family,
    /// `a`: those of this architecture alone, and the family's.
    Architecture,
}

impl Target {
    /// `sm_90a`, `compute_100f`
    pub fn read(word: &str) -> Option<Target> {
        let digits = word.strip_prefix("sm_").or_else(|| word.strip_prefix("compute_"))?;
        Target::numbered(digits)
    }

    fn numbered(text: &str) -> Option<Target> {
        let (digits, feature) = match text.as_bytes().last()? {
            b'a' => (&text[..text.len() - 1], Feature::Architecture),
            b'f' => (&text[..text.len() - 1], Feature::Family),
            _ => (text, Feature::Base),
        };
        let number = digits.parse().ok()?;
        Some(Target { number, feature })
    }

    /// Whether it has what `list` asks for: one of `90` (and later), `100f` (that family member's features), `90a`.
    fn has(self, list: &str) -> bool {
        list.split_whitespace().filter_map(Target::numbered).any(|wanted| match wanted.feature {
            Feature::Base => self.number >= wanted.number,
            Feature::Family => self.number == wanted.number && self.feature != Feature::Base,
            Feature::Architecture => self == wanted,
        })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suffix = match self.feature {
            Feature::Base => "",
            Feature::Family => "f",
            Feature::Architecture => "a",
        };
        write!(f, "sm_{}{suffix}", self.number)
    }
}

/// What is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// `PTX 7.8`, `.target sm_90 or later`
    pub needs: String,
    pub has: String,
}

/// Words that must all be in the opcode (its first one among them), the PTX version, and the targets: one of them.
type Need = (&'static str, (u8, u8), &'static str);

#[rustfmt::skip]
static NEEDS: &[Need] = &[
];

/// Words that went: from this version on, and on which targets.
#[rustfmt::skip]
static GONE: &[(&str, (u8, u8), u16)] = &[
];

impl Form {
    fn contains(&self, words: &str) -> bool {
        words.split_whitespace().all(|word| {
            self.has(word) || word == self.mnemonic() || Type::from_word(word).is_some_and(|ty| self.types.contains(&ty))
        })
    }

    /// What a module of this version and target lacks for this opcode.
    pub fn lacks(&self, version: (u8, u8), target: Option<Target>) -> Option<Lack> {
        let own = self.line.target.to_string();
        let line = ("", self.line.ptx, &*own);
        let needs = || std::iter::once(line).chain(NEEDS.iter().copied().filter(|need| self.contains(need.0)));
        if let Some((major, minor)) = needs().map(|need| need.1).max().filter(|&least| version < least) {
            return Some(Lack {
                needs: format!("PTX {major}.{minor}"),
                has: format!("`.version {}.{}`", version.0, version.1),
            });
        }
        let target = target?;
        let has = format!("`.target {target}`");
        if let Some((_, _, list)) = needs().find(|need| !target.has(need.2)) {
            return Some(Lack { needs: describe(list), has });
        }
        let (_, (major, minor), number) = GONE.iter().find(|(words, since, number)| {
            self.contains(words) && version >= *since && target.number >= *number && !self.has("sync")
        })?;
        Some(Lack {
            needs: format!("a target before sm_{number} since PTX {major}.{minor}"),
            has,
        })
    }
}

fn describe(list: &str) -> String {
    let names: Vec<String> = list
        .split_whitespace()
        .filter_map(Target::numbered)
        .map(|target| match target.feature {
            Feature::Base => format!("{target} or later"),
            _ => target.to_string(),
        })
        .collect();
    format!("`.target` {}", names.join(" or "))
}
