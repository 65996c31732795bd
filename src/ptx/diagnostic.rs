//! What is wrong with a text, where, and what would be right.

use std::sync::Arc;

use super::Source;
use super::ast::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub span: Span,
    /// One sentence: what was found.
    pub message: String,
    /// What was expected, the nearest valid spelling, another place that matters.
    pub notes: Vec<String>,
}

impl Diagnostic {
    pub fn error(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            span,
            message: message.into(),
            notes: Vec::new(),
        }
    }
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }
}

/// Findings on one source, in the order of their places.
#[derive(Debug, Clone)]
pub struct Diagnostics {
    pub source: Arc<Source>,
    pub list: Vec<Diagnostic>,
}
