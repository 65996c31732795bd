//! The expression of a preprocessor's `#if`: C's, which is that of PTX's constants. Macros are replaced before it is read.

use chumsky::Parser;
use chumsky::error::EmptyErr;
use chumsky::extra::SimpleState;

use super::ast::Expr;
use super::body::extent;
use super::grammar::expression;
use super::lexer::{Lexer, Token};
use super::names::Context;

/// Whether `text` is not zero.
///
/// # Errors
/// What is wrong with it.
pub fn holds(text: &str) -> Result<bool, String> {
    let tokens: Vec<Token> = Lexer::new(text, 0, text.len()).collect();
    let tokens = &tokens[..];
    let unreadable = || "this is not an expression that `#if` can decide".to_owned();
    extent(tokens, 0).map_err(|(_, message)| message.to_owned())?;
    let mut context = SimpleState(Context::new(text, (1, 0)));
    let parsed = expression::<EmptyErr>(false).parse_with_state(tokens, &mut context);
    match parsed.into_result() {
        Ok(Ok(Expr::Int { bits, .. })) => Ok(bits != 0),
        Ok(Ok(_)) | Err(_) => Err(unreadable()),
        Ok(Err(complaint)) => Err(complaint.1),
    }
}
