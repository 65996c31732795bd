//! Text → syntax tree, with spans; tree → text; diagnostics. Knows nothing of execution, nor of what opcodes mean.
//!
//! [`parse`] scans a module's declarations and skips bodies; [`ast::Body::statements`] reads one when first asked.
//! `lexer` makes tokens, `grammar` and `declaration` say what statements look like, `module` and `body` find where each
//! begins and ends. The tree's parts print themselves (`printer`).
//!
//! PTX 1.x is read by the same parts; what only it has comes from `preprocess`, `record` and `legacy`, which make of it
//! what later versions would say.

pub mod ast;
mod body;
mod condition;
mod constant;
mod declaration;
pub mod diagnostic;
mod grammar;
mod legacy;
mod lexer;
mod module;
mod names;
mod preprocess;
mod printer;
mod record;
mod report;
mod rules;
#[cfg(test)]
mod tests;

pub use module::{parse, parse_all};

use std::sync::Arc;

use crate::tile;

/// A text from bytes that may be padded with NULs, may start with a byte order mark, and may hold anything in comments
/// and strings. What is not UTF-8 is reported where it stands if it means anything.
pub fn source_from_bytes(name: impl Into<String>, bytes: &[u8]) -> Arc<Source> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    // What is not UTF-8 becomes U+FFFD, which the lexer refuses wherever it means anything.
    Source::new(name, String::from_utf8_lossy(&bytes[..end]))
}

/// [`parse`] for bytes.
///
/// # Errors
/// As [`parse`].
pub fn parse_bytes(name: impl Into<String>, bytes: &[u8]) -> Result<ast::Module, diagnostic::Diagnostics> {
    parse(source_from_bytes(name, bytes))
}

/// A PTX text and the name it goes by in messages.
#[derive(Debug)]
pub struct Source {
    pub name: String,
    pub text: Arc<str>,
    /// Kernels over tiles, if this is the text that calls them.
    pub tiles: Option<Arc<tile::Module>>,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<Arc<str>>) -> Arc<Source> {
        Source::with_tiles(name, text, None)
    }

    /// The text that calls kernels over tiles.
    pub fn with_tiles(
        name: impl Into<String>,
        text: impl Into<Arc<str>>,
        tiles: Option<Arc<tile::Module>>,
    ) -> Arc<Source> {
        Arc::new(Source {
            name: name.into(),
            text: text.into(),
            tiles,
        })
    }
}
