//! What the table is written in: an instruction with its lines and notes, as the files of the families list them.

use std::fmt;

use crate::isa::operation::Advice;
use crate::isa::video::Opcode;
use crate::isa::words::Words;
use crate::isa::{Compute, Joint};

/// An instruction, like a page of the manual: its syntax lines, what words of its opcodes need beyond what their line
/// does, what they ask of each other, and what was legal once. A mnemonic has several pages where families share it.
pub struct Instruction {
    pub name: &'static str,
    pub lines: &'static [Line],
    pub needs: &'static [Need],
    pub rules: &'static [Rule],
    pub gone: &'static [Gone],
    /// More needs and rules, which come first.
    pub common: Common,
    /// What says how many registers its operands `:frag` have.
    pub fragments: Option<Fragments>,
}

/// How the words of an opcode say what a thread holds of an operand that threads share ([`super::fragment`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragments {
    /// A number of small matrices: `.x4`.
    Matrices,
    /// Fragments of `wmma`, in whatever registers the implementation likes.
    Wmma,
    /// Fragments of `mma`, element by element.
    Mma,
    Warpgroup,
    TensorMemory,
    /// As many coordinates, sizes and strides as a tensor has dimensions.
    Tensor,
}

/// Needs and rules that instructions have in common.
#[derive(Clone, Copy)]
pub struct Common {
    pub needs: &'static [Need],
    pub rules: &'static [Rule],
}

pub(super) const fn instruction(name: &'static str, lines: &'static [Line]) -> Instruction {
    Instruction {
        name,
        lines,
        needs: &[],
        rules: &[],
        gone: &[],
        common: Common { needs: &[], rules: &[] },
        fragments: None,
    }
}

impl Instruction {
    pub(super) const fn needs(self, needs: &'static [Need]) -> Instruction {
        Instruction { needs, ..self }
    }
    pub(super) const fn rules(self, rules: &'static [Rule]) -> Instruction {
        Instruction { rules, ..self }
    }
    pub(super) const fn gone(self, gone: &'static [Gone]) -> Instruction {
        Instruction { gone, ..self }
    }
    pub(super) const fn common(self, common: Common) -> Instruction {
        Instruction { common, ..self }
    }
    pub(super) const fn fragments(self, fragments: Fragments) -> Instruction {
        Instruction {
            fragments: Some(fragments),
            ..self
        }
    }

    pub fn all_needs(&self) -> impl Iterator<Item = &'static Need> {
        self.common.needs.iter().chain(self.needs)
    }
    pub fn all_rules(&self) -> impl Iterator<Item = &'static Rule> {
        self.common.rules.iter().chain(self.rules)
    }
}

/// One syntax line.
pub struct Line {
    pub syntax: &'static str,
    /// The PTX version that introduced it.
    pub ptx: (u8, u8),
    /// The least `.target` number.
    pub target: u16,
    pub meaning: Meaning,
}

pub(super) const fn line(syntax: &'static str, ptx: (u8, u8), target: u16, meaning: Meaning) -> Line {
    Line {
        syntax,
        ptx,
        target,
        meaning,
    }
}

/// Which [`Operation`](crate::isa::Operation) a line means. Where the words of an opcode say more, the operation reads
/// them itself, or the reader that the line names does.
#[derive(Clone, Copy)]
#[rustfmt::skip]
pub enum Meaning {
    Compute(fn(Words) -> Option<Compute>),
    Video(fn(Words) -> Option<Opcode>),
    Joint(fn(Words) -> Option<Joint>),
    Move, Load, Store, Atomic, Reduction, Branch, BranchIndexed, Call, Return, Exit, Trap, Breakpoint, Nanosleep,
    Barrier, WarpBarrier, Fence, Shuffle, Vote, Match, Redux, Activemask, Elect, ConvertAddress, IsSpace, CreatePolicy,
    Alloca, StackSave, StackRestore, CopyAsync, Texture, TextureQuery, IsHandle, SurfaceLoad, SurfaceStore,
    SurfaceReduce, SurfaceQuery,
    Hint(Advice),
}

/// A line of a family of [`Joint`], with the reader that says which of its operations.
macro_rules! joint {
    ($family:ident $read:path) => {
        $crate::isa::table::entry::Meaning::Joint(|words| Some($crate::isa::Joint::$family($read(words)?)))
    };
}
pub(super) use joint;

impl Line {
    /// The first word of the opcode.
    pub fn mnemonic(&self) -> &'static str {
        let end = self
            .syntax
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(self.syntax.len());
        &self.syntax[..end]
    }
}

impl Line {
    /// The opcode and its operands, as in the manual.
    pub fn head(&self) -> &'static str {
        self.syntax.split(';').next().unwrap_or_default().trim()
    }

    /// The modifier groups that the opcode uses, as `.rnd = { .rn, .rz }`.
    pub fn groups(&self) -> Vec<&'static str> {
        let mut used: Vec<&str> = vec![self.head().split_whitespace().next().unwrap_or_default()];
        let mut groups = Vec::new();
        for group in self.syntax.split(';').skip(1).map(str::trim) {
            let Some((name, body)) = group.split_once('=') else {
                continue;
            };
            let name = name.trim();
            let named = |text: &str| {
                text.match_indices(name).any(|(at, _)| {
                    let next = text[at + name.len()..].bytes().next();
                    next.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b':'))
                })
            };
            if used.iter().any(|text| named(text)) {
                used.push(body);
                groups.push(group);
            }
        }
        groups
    }
}

impl fmt::Debug for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instruction({:?})", self.name)
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line({:?})", self.syntax)
    }
}

/// What words need beyond what their line does.
pub struct Need {
    /// All of them must be in the opcode, of those with `/` between them one; none stands for every opcode.
    pub words: &'static str,
    pub ptx: (u8, u8),
    /// The targets, one of which it must be.
    pub targets: &'static str,
}

/// Targets that have the features of a family, or of an architecture, from sm_100 on.
pub(super) const F100: &str = "100f 103f 107f 110f";
pub(super) const F100_F120: &str = "100f 103f 107f 110f 120f 121f";
pub(super) const F100_F120_A90: &str = "100f 103f 107f 110f 120f 121f 90a";
pub(super) const F120: &str = "120f 121f";
pub(super) const A100: &str = "100a 103a 107a 110a";

pub(super) const fn need(words: &'static str, ptx: (u8, u8), targets: &'static str) -> Need {
    Need { words, ptx, targets }
}

/// An opcode that was legal once.
pub struct Gone {
    /// A word that must be in it; any opcode if empty.
    pub with: &'static str,
    /// Words one of which makes it legal still.
    pub unless: &'static str,
    /// Since which version, on which targets, it is not.
    pub since: (u8, u8),
    pub target: u16,
}

pub(super) const fn gone(with: &'static str, unless: &'static str, since: (u8, u8), target: u16) -> Gone {
    Gone {
        with,
        unless,
        since,
        target,
    }
}

/// What must hold.
pub enum Then {
    /// The opcode's last type is one of these.
    Last(&'static str),
    /// The last type is none of these.
    NotLast(&'static str),
    /// One of these words is there.
    With(&'static str),
    /// None of these words is.
    Without(&'static str),
}

/// What words ask of each other.
pub struct Rule {
    /// When it applies: one of several conditions, each of words joined by `+`, where a type means the opcode's first,
    /// `-word` that the word is absent, `~` that there is no rounding; always if empty.
    pub when: &'static str,
    pub then: Then,
}

pub(super) const fn rule(when: &'static str, then: Then) -> Rule {
    Rule { when, then }
}
