//! What is wrong with a text, where, and what would be right; and how that reads. Flows in: findings with places. Flows
//! out: a report with file, line, column and excerpt, with colours for terminals and without for logs.

use std::fmt;
use std::sync::Arc;

use chumsky::error::{Rich, RichPattern, RichReason};

use super::Source;
use super::ast::Span;
use super::lexer::{Kind, Token};

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

/// Findings while a text is being read.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub list: Vec<Diagnostic>,
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

/// What a message says of an unexpected token.
fn found(token: &Token, text: &str) -> String {
    let word = token.text(text);
    match token.kind {
        Kind::UnclosedComment => "this comment is not closed".to_owned(),
        Kind::UnclosedText => "this string is not closed".to_owned(),
        Kind::Braces => "`{`".to_owned(),
        Kind::Unknown => match word.chars().next() {
            Some(char::REPLACEMENT_CHARACTER) => "a byte that is not UTF-8".to_owned(),
            Some(c) if c.is_control() => format!("the character U+{:04X}", c as u32),
            _ => format!("`{word}`"),
        },
        _ if word.chars().count() > 60 => format!("`{}…`", word.chars().take(60).collect::<String>()),
        _ => format!("`{word}`"),
    }
}

/// `token` stands where something else should.
pub(super) fn unexpected(token: &Token, text: &str, expected: &str) -> Diagnostic {
    let what = found(token, text);
    match token.kind {
        Kind::UnclosedComment => Diagnostic::error(token.span, what).note("a comment ends with `*/`"),
        Kind::UnclosedText => Diagnostic::error(token.span, what).note("a string ends with `\"` on its line"),
        Kind::Unknown => Diagnostic::error(
            token.span,
            format!("{what} belongs to no PTX text outside comments and strings"),
        ),
        Kind::Hash => Diagnostic::error(token.span, "a preprocessor line in PTX")
            .note("run the text through a preprocessor first"),
        _ => Diagnostic::error(token.span, format!("found {what}, expected {expected}")),
    }
}

/// chumsky's first error as a finding.
pub(super) fn explain(errors: Vec<Rich<'_, Token>>, tokens: &[Token], text: &str) -> Diagnostic {
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
    match error.into_reason() {
        RichReason::Custom(message) => Diagnostic::error(span, message),
        RichReason::ExpectedFound { expected, .. } => {
            let mut names: Vec<String> = expected
                .iter()
                .filter_map(|pattern| match pattern {
                    RichPattern::Token(token) => Some(token.to_string()),
                    RichPattern::Label(label) => Some(label.to_string()),
                    RichPattern::Identifier(word) => Some(format!("`{word}`")),
                    RichPattern::EndOfInput => Some("the end of the statement".to_owned()),
                    RichPattern::Any | RichPattern::SomethingElse => None,
                    _ => None,
                })
                .collect();
            names.sort();
            names.dedup();
            let list = either(&names);
            match tokens.get(at) {
                Some(token) => unexpected(token, text, &list),
                None => Diagnostic::error(span, format!("the statement ends here, expected {list}")),
            }
        }
    }
}

/// `a`, `a or b`, `a, b or c`
fn either(names: &[String]) -> String {
    match names {
        [] => "something else".to_owned(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

impl Diagnostics {
    /// For terminals.
    pub fn render(&self) -> String {
        self.write(true)
    }

    /// For logs: the same without colours.
    pub fn render_plain(&self) -> String {
        self.write(false)
    }

    fn write(&self, colours: bool) -> String {
        use ariadne::{CharSet, Color, Config, IndexType, Label, Report, ReportKind};
        let config = Config::new()
            .with_index_type(IndexType::Byte)
            .with_color(colours)
            .with_char_set(if colours { CharSet::Unicode } else { CharSet::Ascii });
        let name = self.source.name.as_str();
        let mut cache = (name, ariadne::Source::from(&*self.source.text));
        let mut out = Vec::new();
        for finding in &self.list {
            let (kind, colour) = match finding.severity {
                Severity::Error => (ReportKind::Error, Color::Red),
                Severity::Warning => (ReportKind::Warning, Color::Yellow),
            };
            let span = (name, finding.span.start as usize..finding.span.end as usize);
            let mut report = Report::build(kind, span.clone())
                .with_config(config)
                .with_message(&finding.message)
                .with_label(Label::new(span).with_color(colour));
            for note in &finding.notes {
                report.add_note(note);
            }
            // Writing to memory does not fail.
            let _ = report.finish().write(&mut cache, &mut out);
        }
        String::from_utf8_lossy(&out).into_owned()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render_plain())
    }
}

impl std::error::Error for Diagnostics {}
