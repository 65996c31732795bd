//! Why bytes could not be taken as an image: a kind the driver turns into a `CUresult`, a sentence, and the offset.
//!
//! The driver makes a result code of it where images are loaded (`driver/code/mod.rs`).

use std::fmt;

/// The family of a failure; the driver has one result code per family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The bytes are none of the formats a load call accepts.
    NotAnImage,
    /// A known format that ends early or contradicts itself.
    Corrupt,
    /// A known format, well formed, that cannot be used here (LTO-IR, a host program in memory, an ancient fatbin).
    Unsupported,
    /// A size beyond every plausible image: refused before memory is spent on it.
    TooLarge,
    /// The file does not exist.
    FileNotFound,
    /// The file exists and could not be read.
    FileUnreadable,
}

/// What was wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageError {
    pub kind: ErrorKind,
    /// Bytes from the start of the object named in the message.
    pub offset: Option<u64>,
    pub message: String,
}

impl ImageError {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        ImageError {
            kind,
            offset: None,
            message: message.into(),
        }
    }

    pub(super) fn at(kind: ErrorKind, offset: u64, message: impl Into<String>) -> Self {
        ImageError {
            kind,
            offset: Some(offset),
            message: message.into(),
        }
    }

    pub(super) fn corrupt(offset: u64, message: impl Into<String>) -> Self {
        Self::at(ErrorKind::Corrupt, offset, message)
    }

    /// The same error seen from the outside: `base` bytes further on, within `what`.
    pub(super) fn within(mut self, what: &str, base: u64) -> Self {
        self.offset = self.offset.map(|offset| offset.saturating_add(base));
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{} (at offset {offset:#x})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ImageError {}
