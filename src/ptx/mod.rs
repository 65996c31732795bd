//! Text → syntax tree, with spans; tree → text; diagnostics. Knows nothing of execution, nor of what opcodes mean.

pub mod ast;
pub mod diagnostic;

use std::sync::Arc;

/// A PTX text and the name it goes by in messages.
#[derive(Debug)]
pub struct Source {
    pub name: String,
    pub text: Arc<str>,
}
