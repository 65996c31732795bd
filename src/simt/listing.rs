//! What compiled code looks like, for people.

use std::sync::Arc;

use crate::program::Function;

use super::interp::compile::Compiled;
use super::jit::{self, For, Input};

/// What is shown of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// LLVM's text, as it is handed to LLVM.
    Llvm,
    /// What LLVM makes of it.
    Assembly,
}

/// The code of a function, in blocks of this shape.
///
/// # Errors
/// It is left to the interpreter, or LLVM is not there; and why.
pub fn listing(function: &Arc<Function>, kernel: bool, block: [u32; 3], what: Listing) -> Result<String, String> {
    let compiled = Compiled::of(function, kernel);
    let input = Input {
        body: &function.body,
        starts: &compiled.starts,
        slots: &compiled.slots,
        window: compiled.window,
    };
    match what {
        Listing::Llvm => Ok(jit::text(&input, jit::rows(block), For::All)?),
        Listing::Assembly => jit::assembly(&input, jit::rows(block), For::All),
    }
}
