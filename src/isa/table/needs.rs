//! What an opcode needs beyond what its line says: words that came later than the instruction, or to fewer targets (PTX
//! ISA, the notes on PTX ISA versions and targets of each instruction).

use crate::isa::Form;
use crate::isa::types::Type;

/// A `.target`: `sm_90a` is (90, `a`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub number: u16,
    pub feature: Feature,
}

/// Which of a target's features a module uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
        list.split_whitespace()
            .filter_map(Target::numbered)
            .any(|wanted| match wanted.feature {
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
    /// A word without which the opcode is not legal any more, rather than a newer version or another target.
    pub missing: bool,
}

impl Form {
    /// Whether a word, or a type, is anywhere in the opcode.
    pub(in crate::isa) fn includes(&self, word: &str) -> bool {
        self.has(word) || Type::from_word(word).is_some_and(|ty| self.types.contains(&ty))
    }

    /// What a module of this version and target lacks for this opcode.
    pub fn lacks(&self, version: (u8, u8), target: Option<Target>) -> Option<Lack> {
        let needs = self.instruction.all_needs();
        let needs = needs.filter(|need| need.words.split_whitespace().all(|words| self.has_one_of(words)));
        let own = self.line.target.to_string();
        let mut version_needed = self.line.ptx;
        let mut lists = vec![&*own];
        for need in needs {
            version_needed = version_needed.max(need.ptx);
            lists.push(need.targets);
        }
        if let Some(target) = target
            && let Some(list) = lists
                .into_iter()
                .filter(|list| !target.has(list))
                .max_by_key(|list| demand(list))
        {
            return Some(Lack {
                needs: describe(list),
                has: format!("`.target {target}`"),
                missing: false,
            });
        }
        if version < version_needed {
            return Some(Lack {
                needs: format!("PTX {}.{}", version_needed.0, version_needed.1),
                has: format!("`.version {}.{}`", version.0, version.1),
                missing: false,
            });
        }
        let gone = self.instruction.gone.iter().find(|gone| {
            (gone.with.is_empty() || self.includes(gone.with))
                && !gone.unless.split(' ').any(|word| self.has(word))
                && version >= gone.since
                && target.map_or(u16::MAX, |target| target.number) >= gone.target
        })?;
        let words: Vec<String> = gone.unless.split(' ').map(|word| format!("`.{word}`")).collect();
        Some(Lack {
            needs: words.join(" or "),
            has: format!("`.version {}.{}`", version.0, version.1),
            // Without its rounding the instruction means nothing; without `.sync` it means what it always meant.
            missing: gone.target < 70,
        })
    }
}

/// How much a list of targets asks for: of several the one that asks for most is what a message names.
fn demand(list: &str) -> Option<(u16, Feature)> {
    let targets = list.split_whitespace().filter_map(Target::numbered);
    targets.map(|target| (target.number, target.feature)).min()
}

fn describe(list: &str) -> String {
    let names: Vec<String> = list
        .split_whitespace()
        .filter_map(Target::numbered)
        .map(|target| match target.feature {
            Feature::Base => format!("{target} or later"),
            Feature::Family | Feature::Architecture => target.to_string(),
        })
        .collect();
    format!("`.target` {}", names.join(" or "))
}
