//! PTX text as it arrives → the same text without byte order mark and NULs, and the little its first lines say.
//!
//! No more of PTX is looked at than the module prologue (PTX ISA, "PTX Module Directives"): whether the rest is valid
//! is for the parser to say.

use super::{Suffix, Target};
use std::sync::Arc;

/// Bytes → text. What follows the first NUL is padding. Bytes that are not UTF-8 can only stand in comments, strings
/// and file names; they become U+FFFD there.
pub(super) fn to_text(bytes: &[u8]) -> Arc<str> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let bytes = &bytes[..end];
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => Arc::from(text),
        Err(_) => Arc::from(String::from_utf8_lossy(bytes)),
    }
}

/// Whether bytes that no magic number claims can be PTX: blanks, then a directive or a comment.
pub(super) fn looks_like_ptx(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    match head
        .iter()
        .find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0B | 0x0C))
    {
        // NUL: an empty text is the parser's to refuse.
        Some(first) => matches!(first, b'.' | b'/' | 0),
        // Nothing but blanks so far.
        None => true,
    }
}

/// `.version` and `.target` of a module's first lines, as far as they can be found.
pub(super) fn prologue(text: &str) -> (Option<(u16, u16)>, Option<Target>) {
    let mut isa = None;
    let mut rest = text;
    loop {
        rest = skip_blanks_and_comments(rest);
        if let Some(after) = rest.strip_prefix(".version") {
            let after = skip_blanks_and_comments(after);
            let end = after
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .unwrap_or(after.len());
            isa = after[..end]
                .split_once('.')
                .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix(".target") {
            // The architecture is usually first, but the options (`debug`, `texmode_unified`) may stand before it.
            let line = skip_blanks_and_comments(after);
            let words = line.split(|c: char| c != '_' && !c.is_ascii_alphanumeric() && c != ',' && c != ' ');
            let words = words.take(1).flat_map(|list| list.split([',', ' ']));
            return (isa, words.filter_map(|word| word.parse().ok()).next());
        } else {
            return (isa, None);
        }
    }
}

fn skip_blanks_and_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        if let Some(after) = text.strip_prefix("//") {
            text = after.find('\n').map_or("", |end| &after[end..]);
        } else if let Some(after) = text.strip_prefix("/*") {
            text = after.find("*/").map_or("", |end| &after[end + 2..]);
        } else {
            return text;
        }
    }
}

impl std::str::FromStr for Target {
    type Err = ();

    /// `sm_90a` (PTX, nvcc) or `compute_90a` (nvcc).
    fn from_str(word: &str) -> Result<Self, ()> {
        let word = word
            .strip_prefix("sm_")
            .or_else(|| word.strip_prefix("compute_"))
            .ok_or(())?;
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let suffix = match &word[digits.len()..] {
            "" => None,
            "a" => Some(Suffix::Architecture),
            "f" => Some(Suffix::Family),
            _ => return Err(()),
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(());
        }
        Ok(Target {
            number: digits.parse().map_err(|_| ())?,
            suffix,
        })
    }
}
