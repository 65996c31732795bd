//! Vectors of accesses, moves and textures (PTX ISA, Vectors).

/// How many elements there are: `.v2` … `.v8`, or one. `.v3` is PTX 1.x's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Vector { One, V2, V3, V4, V8 }

impl Vector {
    /// The number of elements.
    pub fn count(self) -> u8 {
        match self {
            Vector::One => 1,
            Vector::V2 => 2,
            Vector::V3 => 3,
            Vector::V4 => 4,
            Vector::V8 => 8,
        }
    }

    /// The vector that is written `.word`.
    pub fn from_word(word: &str) -> Option<Vector> {
        Some(match word {
            "v2" => Vector::V2,
            "v3" => Vector::V3,
            "v4" => Vector::V4,
            "v8" => Vector::V8,
            _ => return None,
        })
    }
}
