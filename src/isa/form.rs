//! A decoded opcode: the table's line, its types and its modifiers, with the questions that readers ask of it.

use super::Operation;
use super::table::signature::Signature;
use super::table::{Instruction, Line};
use super::types::{Rounding, Space, Type};
use super::words::Words;

/// An opcode that the table knows, with its modifiers sorted out.
#[derive(Clone, Debug)]
pub struct Form {
    /// Whose line it is.
    pub instruction: &'static Instruction,
    pub line: &'static Line,
    /// What it does.
    pub op: Operation,
    /// What its operands are.
    pub signature: &'static Signature,
    /// The types in written order (`cvt.rn.f16.f32` → `[F16, F32]`).
    pub types: Vec<Type>,
    /// All other words after the first, in the order of the syntax line.
    pub words: Vec<&'static str>,
}

impl Form {
    /// The first word: `add`, `cp`, `tcgen05`.
    pub fn mnemonic(&self) -> &'static str {
        self.instruction.name
    }
    fn read(&self) -> Words<'_> {
        Words {
            mnemonic: self.mnemonic(),
            types: &self.types,
            words: &self.words,
        }
    }
    /// Whether the modifier is present, e.g. `form.has("sat")`, `form.has("L2::cache_hint")`.
    pub(super) fn has(&self, word: &str) -> bool {
        self.read().has(word)
    }
    /// Type number `i` in written order; for a missing one, the last (`mov` and friends have at least one).
    pub fn ty(&self, i: usize) -> Type {
        self.read().ty(i)
    }
    /// Whether one of these words or types, which a signature separates by `/`, is in the opcode.
    pub fn has_one_of(&self, words: &str) -> bool {
        words.split('/').any(|word| self.includes(word))
    }
    /// The rounding modifier, whether it rounds to floating-point or (`.rni` …) to integral values.
    pub(super) fn rounding(&self) -> Option<Rounding> {
        self.read().rounding()
    }
    /// All state spaces in written order (`cvta.to.global` has one, `cp.async.ca.shared.global` two).
    pub fn spaces(&self) -> impl Iterator<Item = Space> + '_ {
        self.words.iter().filter_map(|&word| Space::from_word(word))
    }
    /// The first state space, or `Generic`.
    pub fn space(&self) -> Space {
        self.spaces().next().unwrap_or(Space::Generic)
    }
    /// Elements of a vector access: 1, 2, 4 or 8; 3 in PTX 1.x.
    pub fn vector(&self) -> u8 {
        self.read().vector().count()
    }
}
