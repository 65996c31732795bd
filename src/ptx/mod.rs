//! Text → syntax tree, with spans; tree → text; diagnostics. Knows nothing of execution, nor of what opcodes mean.
//!
//! [`parse`] scans a module's declarations and skips bodies; [`ast::Body::statements`] reads one when first asked.
//! `lexer` makes tokens, `grammar` and `declaration` say what statements look like, `module` and `body` find where each
//! begins and ends.

pub mod ast;
mod body;
mod constant;
mod declaration;
pub mod diagnostic;
mod grammar;
mod lexer;
mod module;
mod names;

pub use module::parse;

use std::sync::Arc;

/// A PTX text and the name it goes by in messages.
#[derive(Debug)]
pub struct Source {
    pub name: String,
    pub text: Arc<str>,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<Arc<str>>) -> Arc<Source> {
        Arc::new(Source {
            name: name.into(),
            text: text.into(),
        })
    }
}
