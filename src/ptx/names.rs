//! Words of a text → shared strings, one allocation for each distinct word.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::ast::{Name, Span};
use super::record::Records;

/// Multiply-and-rotate over eight bytes at a time: names are short and come from the text being read, so that speed
/// matters and collisions cost the author of the text alone.
#[derive(Default, Clone, Copy)]
pub struct WordHasher(u64);

impl WordHasher {
    #[inline]
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for WordHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.add(u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
        }
        let rest = chunks.remainder();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(last));
    }
    #[inline]
    fn finish(&self) -> u64 {
        // The table uses the top bits and the bottom bits.
        self.0 ^ (self.0 >> 32)
    }
}

/// What the grammar needs besides tokens: the text they point into, and the words seen so far.
pub struct Context<'s> {
    pub source: &'s str,
    /// `.version`
    pub version: (u16, u16),
    /// PTX 1.x: the first specification's forms are allowed.
    pub legacy: bool,
    /// Structures of PTX 1.x.
    pub records: Records,
    words: HashMap<&'s str, Arc<str>, BuildHasherDefault<WordHasher>>,
}

impl<'s> Context<'s> {
    pub fn new(source: &'s str, version: (u16, u16)) -> Context<'s> {
        Context {
            source,
            version,
            legacy: version < (2, 0),
            records: Records {
                // Kernels of the time were short; structures that matter are small.
                room: 16 * source.len() + (1 << 16),
                ..Records::default()
            },
            words: HashMap::default(),
        }
    }

    pub fn at(&self, span: Span) -> &'s str {
        &self.source[span.start as usize..span.end as usize]
    }

    pub fn word(&mut self, text: &'s str) -> Arc<str> {
        if let Some(word) = self.words.get(text) {
            return word.clone();
        }
        let word: Arc<str> = Arc::from(text);
        self.words.insert(text, word.clone());
        word
    }

    pub fn name(&mut self, span: Span) -> Name {
        Name {
            text: self.word(self.at(span)),
            span,
        }
    }
}
