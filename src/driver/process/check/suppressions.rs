//! Findings that somebody knows of and does not want to hear of again (`MARGAY_CHECK_SUPPRESSIONS`): a file with a line for each.
//!
//! ```text
//! # the kind, and what has to be so besides; `*` stands for anything
//! race kernel=_Z7reversePi at=*/reverse.cu:6
//! leak call=cuMemAlloc
//! * instruction=ld.global*
//! ```

use std::path::Path;
use std::sync::OnceLock;

use crate::config;
use crate::program::demangle;

use super::finding::Finding;

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rule {
    /// As in the list of findings: `race`, `leak` and so on.
    kind: String,
    /// The kernel's name, mangled or not.
    kernel: Option<String>,
    /// `FILE:LINE` of a place that the report names.
    at: Option<String>,
    /// An instruction that the report names, as written.
    instruction: Option<String>,
    /// The driver call that it is about.
    call: Option<String>,
}

/// Whether nobody wants to hear of it.
pub fn suppresses(finding: &Finding) -> bool {
    static RULES: OnceLock<Vec<Rule>> = OnceLock::new();
    let rules = RULES.get_or_init(|| {
        config::get()
            .check_suppressions
            .as_deref()
            .map(read)
            .unwrap_or_default()
    });
    rules.iter().any(|rule| rule.applies(finding))
}

/// What is not understood is told of, and suppresses nothing.
fn read(path: &Path) -> Vec<Rule> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            tracing::error!("MARGAY_CHECK_SUPPRESSIONS: {}: {error}", path.display());
            return Vec::new();
        }
    };
    let mut rules = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        match parse(line) {
            Ok(rule) => rules.extend(rule),
            Err(word) => tracing::error!(
                "MARGAY_CHECK_SUPPRESSIONS: {}:{number}: `{word}` is none of kernel=, at=, instruction= and call=",
                path.display()
            ),
        }
    }
    rules
}

/// `None`: a line without a rule. The error is the word that is not understood.
fn parse(line: &str) -> Result<Option<Rule>, &str> {
    let line = line.trim();
    if line.starts_with('#') {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let Some(kind) = words.next() else { return Ok(None) };
    let mut rule = Rule {
        kind: kind.into(),
        ..Rule::default()
    };
    for word in words {
        let place = match word.split_once('=') {
            Some(("kernel", pattern)) => (&mut rule.kernel, pattern),
            Some(("at", pattern)) => (&mut rule.at, pattern),
            Some(("instruction", pattern)) => (&mut rule.instruction, pattern),
            Some(("call", pattern)) => (&mut rule.call, pattern),
            Some(_) | None => return Err(word),
        };
        *place.0 = Some(place.1.into());
    }
    Ok(Some(rule))
}

impl Rule {
    fn applies(&self, finding: &Finding) -> bool {
        let sites = || finding.sites.iter().chain(&finding.other);
        let is_kind = matches(&self.kind, finding.kind.word());
        let is_kernel = self.kernel.as_deref().is_none_or(|pattern| {
            let name = finding.kernel.as_deref();
            name.is_some_and(|name| matches(pattern, name) || matches(pattern, &demangle(name)))
        });
        let is_there = self.at.as_deref().is_none_or(|pattern| {
            let mut lines = sites().flat_map(|site| &site.origin.lines);
            lines.any(|line| matches(pattern, &format!("{}:{}", line.file, line.line)))
        });
        let is_instruction = self.instruction.as_deref().is_none_or(|pattern| {
            // A pattern has no spaces: `*` stands for them as well.
            sites().any(|site| matches(pattern, &site.instruction))
        });
        let is_call = self.call.as_deref().is_none_or(|pattern| {
            let call = finding.call;
            call.is_some_and(|call| matches(pattern, call))
        });
        is_kind && is_kernel && is_there && is_instruction && is_call
    }
}

/// Whether a text is as a pattern has it, in which `*` stands for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut rest) = text.strip_prefix(before) else {
        return false;
    };
    let mut pieces = after.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, is) in [
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c*", "abcd", true),
            ("*b*d", "abcd", true),
            ("a*a", "a", false),
            ("abc", "abcd", false),
            ("*x*", "abc", false),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern, text), is, "{pattern} {text}");
        }
    }

    #[test]
    fn lines_are_read() {
        assert_eq!(parse("  # a word"), Ok(None));
        assert_eq!(parse(""), Ok(None));
        let rule = Rule {
            kind: "race".into(),
            kernel: Some("f*".into()),
            at: Some("*/a.cu:6".into()),
            ..Rule::default()
        };
        assert_eq!(parse("race kernel=f* at=*/a.cu:6"), Ok(Some(rule)));
        assert_eq!(parse("race line=6"), Err("line=6"));
        assert_eq!(parse("race six"), Err("six"));
    }
}
