//! What is wrong with a text, where, and what would be right: findings in sentences, with places. How they look on a terminal
//! is `report`'s business.

use std::sync::Arc;

use chumsky::error::{RichPattern, RichReason};

use super::Source;
use super::ast::Span;
use super::grammar::Why;
use super::lexer::{Kind, Token};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Error,
    /// The text uses what its `.version` or `.target` does not have: an error to NVIDIA's assembler, harmless here.
    Requirement,
    Warning,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub span: Span,
    /// One sentence: what was found.
    pub message: String,
    /// What the excerpt says under the place: what was expected, mostly.
    pub label: String,
    /// The nearest valid spelling, another place that matters.
    pub notes: Vec<String>,
    /// The text is of a version that is not known yet: what is wrong is this program's age.
    pub newer: bool,
}

impl Diagnostic {
    pub fn error(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            span,
            message: message.into(),
            label: String::new(),
            notes: Vec::new(),
            newer: false,
        }
    }
    pub fn warning(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(span, message)
        }
    }
    pub fn requirement(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Requirement,
            ..Diagnostic::error(span, message)
        }
    }
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
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

impl Diagnostics {
    /// Whether anything keeps the text from being used.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// With what `.version` and `.target` lack taken as errors, as NVIDIA's assembler does.
    pub fn strictly(mut self) -> Diagnostics {
        for finding in &mut self.list {
            if finding.severity == Severity::Requirement {
                finding.severity = Severity::Error;
            }
        }
        self
    }

    /// Those that are errors, or those that are not.
    pub fn only(&self, errors: bool) -> Diagnostics {
        let chosen = |finding: &&Diagnostic| (finding.severity == Severity::Error) == errors;
        Diagnostics {
            source: self.source.clone(),
            list: self.list.iter().filter(chosen).cloned().collect(),
        }
    }
}

/// Findings while a text is being read.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub list: Vec<Diagnostic>,
    /// Something that could not be read declares names, perhaps: what follows is not to be blamed for using them.
    pub undeclared: bool,
}

impl Findings {
    /// Reports beyond this many help nobody.
    const ENOUGH: usize = 50;

    pub fn push(&mut self, finding: Diagnostic) {
        self.list.push(finding);
    }

    pub fn enough(&self) -> bool {
        self.list.len() >= Self::ENOUGH
    }

    /// The tree, if nothing is wrong with it.
    pub fn finish<T>(mut self, source: &Arc<Source>, tree: T) -> Result<T, Diagnostics> {
        if self.list.is_empty() {
            return Ok(tree);
        }
        self.list.sort_by_key(|finding| finding.span.start);
        Err(Diagnostics {
            source: source.clone(),
            list: self.list,
        })
    }
}

impl Source {
    /// Line and column of a place, both from 1; the column counts characters.
    pub fn line_column(&self, at: u32) -> (usize, usize) {
        let before = &self.text.as_bytes()[..(at as usize).min(self.text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let start = before
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |newline| newline + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        (line, column)
    }
}

/// Messages quote the text, and a word of a text may be a megabyte long.
fn shorten(message: &str) -> String {
    const HALF: usize = 70;
    let count = message.chars().count();
    if count <= 2 * HALF {
        return message.to_owned();
    }
    let start: String = message.chars().take(HALF).collect();
    let end: String = message.chars().skip(count - HALF).collect();
    format!("{start}…{end}")
}

/// What a message says of an unexpected token.
fn found(token: &Token, text: &str) -> String {
    let word = token.text(text);
    match token.kind {
        Kind::Braces => "`{`".to_owned(),
        _ => shorten(&format!("`{word}`")),
    }
}

/// `token` stands where something else should.
pub(super) fn unexpected(token: &Token, text: &str, expected: &str) -> Diagnostic {
    let error = |message: &str| Diagnostic::error(token.span, message);
    match token.kind {
        Kind::UnclosedComment => {
            let opening = Span {
                start: token.span.start,
                end: token.span.start + 2,
            };
            Diagnostic::error(opening, "this comment is not closed").label("expected `*/` somewhere behind")
        }
        Kind::UnclosedText => error("this string is not closed").label("expected `\"` on the same line"),
        Kind::Hash => {
            error("a preprocessor line in PTX").note("only line markers are allowed; preprocess the text first")
        }
        Kind::Unknown => match token.text(text).chars().next() {
            Some(char::REPLACEMENT_CHARACTER) => error("a byte that is not UTF-8"),
            Some(c) if c.is_control() => error(&format!("the control character U+{:04X}", c as u32)),
            _ => error(&format!("unexpected {}", found(token, text))),
        }
        .label("only comments and strings may hold this"),
        _ => error(&format!("unexpected {}", found(token, text))).label(format!("expected {expected}")),
    }
}

/// chumsky's first error as a finding.
pub(super) fn explain(errors: Vec<Why<'_>>, tokens: &[Token], text: &str) -> Diagnostic {
    // A token that is none explains more than what the grammar made of it.
    if let Some(bad) = tokens.iter().find(|token| {
        matches!(
            token.kind,
            Kind::UnclosedComment | Kind::UnclosedText | Kind::Unknown | Kind::Hash
        )
    }) {
        return unexpected(bad, text, "");
    }
    let Some(error) = errors.into_iter().next() else {
        return Diagnostic::error(Span::default(), "this cannot be read");
    };
    let at = error.span().start;
    let last = tokens.last().map_or(Span::default(), |token| token.span);
    let span = match tokens.get(at) {
        Some(first) => {
            let to = error.span().end.clamp(at + 1, tokens.len());
            first.span.to(tokens[to - 1].span)
        }
        None => Span {
            start: last.end,
            end: last.end,
        },
    };
    let expected = match error.into_reason() {
        RichReason::Custom(complaint) => {
            return Diagnostic::error(complaint.at.unwrap_or(span), shorten(&complaint.message));
        }
        RichReason::ExpectedFound { expected, .. } => expectation(&expected),
    };
    let Some(token) = tokens.get(at) else {
        return Diagnostic::error(span, "the statement breaks off").label(format!("expected {expected}"));
    };
    let error = unexpected(token, text, &expected);
    // The first token of a line is hardly ever wrong itself.
    let blank = text[..token.span.start as usize]
        .bytes()
        .rev()
        .find(|byte| !matches!(byte, b' ' | b'\t'));
    if blank == Some(b'\n') && at > 0 && expected.contains("`;`") {
        return error.note("perhaps the line before lacks its `;`");
    }
    error
}

/// What the grammar could have gone on with, in words: sets that make up an operand or an operator get their name.
fn expectation(patterns: &[RichPattern<'_, Token>]) -> String {
    let mut names: Vec<String> = patterns
        .iter()
        .filter_map(|pattern| match pattern {
            RichPattern::Token(token) => Some(token.kind.describe().to_owned()),
            RichPattern::Label(word) => Some(format!("`{word}`")),
            RichPattern::Identifier(word) => Some(format!("`{word}`")),
            RichPattern::EndOfInput => Some("a declaration".to_owned()),
            // `RichPattern` may grow; what is none of these says nothing to a reader.
            _ => None,
        })
        .collect();
    names.sort();
    names.dedup();
    const CONSTANT: &[&str] = &[
        "`!`",
        "`(`",
        "`+`",
        "`-`",
        "`~`",
        "a floating-point number",
        "a number with a type",
        "an integer",
    ];
    const OPERAND: &[&str] = &["`[`", "`{`", "`_`", "a dotted name", "a name", "a directive"];
    const TAIL: &[&str] = &["`+`", "`-`", "`[`", "`|`"];
    const OPERATOR: &[&str] = &[
        "`!=`", "`%`", "`&&`", "`&`", "`*`", "`+`", "`-`", "`/`", "`<<`", "`<=`", "`<`", "`==`", "`>=`", "`>>`", "`>`",
        "`?`", "`^`", "`||`", "`|`",
    ];
    let has = |names: &[String], word: &str| names.iter().any(|name| name == word);
    let drop = |names: &mut Vec<String>, set: &[&str]| names.retain(|name| !set.contains(&&**name));
    if has(&names, "`^`") {
        drop(&mut names, OPERATOR);
        drop(&mut names, &["`(`"]);
        names.push("an operator".to_owned());
    } else if has(&names, "`~`") {
        drop(&mut names, CONSTANT);
        if has(&names, "`[`") {
            drop(&mut names, OPERAND);
            names.insert(0, "an operand".to_owned());
        } else {
            names.push("a constant".to_owned());
        }
    } else if has(&names, "`+`") && has(&names, "`[`") && has(&names, "`|`") {
        drop(&mut names, TAIL);
    }
    match &names[..] {
        [] => "something else".to_owned(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}
