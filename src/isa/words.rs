//! The words of an opcode as its line's reader sees them, and the writing of an operation's opcode.

use std::fmt;

use super::compare::{Boolean, Compare};
use super::types::{Ordering, Rounding, Scope, Space, Type, Vector};

/// An opcode that follows a line of the table: its types, and its other words, each in the order of the line.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// Which instruction: lines of several share a reader where they differ in a word.
    pub mnemonic: &'static str,
    pub types: &'a [Type],
    pub words: &'a [&'static str],
}

impl Words<'_> {
    pub fn has(self, word: &str) -> bool {
        self.words.contains(&word)
    }
    /// Type number `i` in written order; for a missing one, the last (`b32` if there is none at all).
    pub fn ty(self, i: usize) -> Type {
        self.types.get(i).or(self.types.last()).copied().unwrap_or(Type::B32)
    }
    /// What the first word that `of` knows means.
    pub fn find<T>(self, of: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.words.iter().find_map(|word| of(word))
    }
    /// The rounding modifier, whether it rounds to floating-point or (`.rni` …) to integral values.
    pub fn rounding(self) -> Option<Rounding> {
        self.find(|word| Rounding::from_word(word).or_else(|| Rounding::from_integral_word(word)))
    }
    pub fn space(self) -> Space {
        self.find(Space::from_word).unwrap_or(Space::Generic)
    }
    pub fn ordering(self) -> Option<Ordering> {
        self.find(Ordering::from_word)
    }
    pub fn scope(self) -> Option<Scope> {
        self.find(Scope::from_word)
    }
    pub fn vector(self) -> Vector {
        self.find(Vector::from_word).unwrap_or(Vector::One)
    }
    pub fn compare(self) -> Option<Compare> {
        self.find(Compare::from_word)
    }
    pub fn boolean(self) -> Option<Boolean> {
        self.find(Boolean::from_word)
    }
}

/// Words that mean something by their place among their like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ordered {
    Type,
    Space,
    Layout,
    Priority,
}

pub(super) fn ordered(word: &str) -> Option<Ordered> {
    if Type::from_word(word).is_some() || matches!(word, "u2" | "s2" | "u4" | "s4" | "b1") {
        return Some(Ordered::Type);
    }
    match word {
        "row" | "col" => Some(Ordered::Layout),
        _ if word.starts_with("L2::evict") => Some(Ordered::Priority),
        _ if Space::from_word(word).is_some() => Some(Ordered::Space),
        _ => None,
    }
}

/// What may stand behind a mnemonic.
pub(super) trait Modifier {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}
impl Modifier for &str {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{self}")
    }
}
/// A word that is there or not.
impl Modifier for (bool, &str) {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 { self.1.write(f) } else { Ok(()) }
    }
}
impl<M: Modifier> Modifier for Option<M> {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().map_or(Ok(()), |modifier| modifier.write(f))
    }
}
macro_rules! modifiers {
    ($($ty:ty)*) => {$(
        impl $crate::isa::words::Modifier for $ty {
            fn write(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, ".{}", self.word())
            }
        }
    )*};
}
pub(super) use modifiers;

modifiers! {
    Type Rounding Ordering Scope super::types::IntType super::types::WideInt super::types::NarrowInt super::types::Word
    super::types::SignedInt super::types::PackedInt super::types::Bits super::types::LongBits super::types::HalfType
    super::types::Movable Compare Boolean
}

/// Writes an opcode: the mnemonic, then its modifiers.
macro_rules! opcode {
    ($f:ident, $name:expr $(, $part:expr)* $(,)?) => {{
        $f.write_str($name)?;
        $($crate::isa::words::Modifier::write(&$part, $f)?;)*
        Ok(())
    }};
}
pub(super) use opcode;
