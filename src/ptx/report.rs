//! Findings → a report that people read: file, line, column, excerpt, what is wrong, what was expected. With colours for
//! terminals, without for logs. Its text is under test (`tests/reports`).

use std::fmt;

use ariadne::{CharSet, Color, Config, IndexType, Label, Report, ReportKind};

use super::Source;
use super::ast::Span;
use super::diagnostic::{Diagnostic, Diagnostics, Severity};

/// Longer lines are shown in part.
const LINE: usize = 200;

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
        let config = Config::new()
            .with_index_type(IndexType::Byte)
            .with_color(colours)
            .with_char_set(if colours { CharSet::Unicode } else { CharSet::Ascii });
        let mut out = Vec::new();
        for finding in &self.list {
            write(&self.source, finding, config, &mut out);
        }
        // Lines end where their text ends.
        let text = String::from_utf8_lossy(&out);
        let mut lines: String = text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect();
        if lines.is_empty() {
            lines.push_str("no findings\n");
        }
        lines
    }
}

/// The part of the text to show: the line of the finding, or a piece of it, and where the finding lies in it.
struct Excerpt<'s> {
    text: &'s str,
    span: std::ops::Range<usize>,
    /// The line's number, from 0.
    line: usize,
    cut: bool,
}

fn excerpt(source: &Source, span: Span) -> Excerpt<'_> {
    let text = &*source.text;
    let start = (span.start as usize).min(text.len());
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
    let line_end = line_start + text[line_start..line_end].trim_end().len().max(start - line_start);
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let cut = line_end - line_start > LINE;
    let (from, to) = match cut {
        true => (
            boundary(start.saturating_sub(LINE / 2).max(line_start)),
            boundary((start + LINE / 2).min(line_end)),
        ),
        false => (line_start, line_end),
    };
    let end = (span.end as usize).clamp(start, to);
    Excerpt {
        text: &text[from..to],
        span: start - from..end - from,
        line: text[..line_start].bytes().filter(|&byte| byte == b'\n').count(),
        cut,
    }
}

fn write(source: &Source, finding: &Diagnostic, config: Config, out: &mut Vec<u8>) {
    let (kind, colour) = match finding.severity {
        Severity::Error => (ReportKind::Error, Color::Red),
        Severity::Requirement | Severity::Warning => (ReportKind::Warning, Color::Yellow),
    };
    let excerpt = excerpt(source, finding.span);
    let name = source.name.as_str();
    // Empty lines stand for those before, so that the excerpt has its number.
    let shown = "\n".repeat(excerpt.line) + excerpt.text + " ";
    let span = (name, excerpt.span.start + excerpt.line..excerpt.span.end + excerpt.line);
    let mut label = Label::new(span.clone()).with_color(colour);
    label = label.with_message(if finding.label.is_empty() {
        "here"
    } else {
        &finding.label
    });
    let mut report = Report::build(kind, span)
        .with_config(config)
        .with_message(&finding.message)
        .with_label(label);
    for note in &finding.notes {
        report.add_note(note);
    }
    let mut written = Vec::new();
    // Writing to memory does not fail.
    let _ = report
        .finish()
        .write((name, ariadne::Source::from(shown)), &mut written);
    if excerpt.cut {
        // The excerpt starts within its line, which ariadne cannot know.
        let (line, column) = source.line_column(finding.span.start);
        let counted = excerpt.text[..excerpt.span.start].chars().count() + 1;
        let text = String::from_utf8_lossy(&written);
        let place = format!("{name}:{line}:{column} ");
        out.extend_from_slice(
            text.replacen(&format!("{name}:{line}:{counted} "), &place, 1)
                .as_bytes(),
        );
    } else {
        out.extend_from_slice(&written);
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render_plain())
    }
}

impl std::error::Error for Diagnostics {}
