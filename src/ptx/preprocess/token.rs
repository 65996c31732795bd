//! Preprocessing tokens: what C's preprocessor takes a text for. Nothing is left out, so that tokens in a row are the text
//! again.

use std::borrow::Cow;
use std::collections::HashSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Name,
    Number,
    Text,
    Blank,
    Newline,
    /// One character, or an operator of two.
    Mark,
}

/// A preprocessing token: by C's rules, so that `%r1` is `%` and `r1`, and `add.TYPE` has `TYPE` to replace.
#[derive(Clone, Debug)]
pub struct Token<'s> {
    pub kind: Kind,
    pub text: Cow<'s, str>,
    /// A macro's name met while that macro was being replaced: never replaced again.
    pub spent: bool,
}

impl<'s> Token<'s> {
    pub fn new(kind: Kind, text: impl Into<Cow<'s, str>>) -> Token<'s> {
        Token {
            kind,
            text: text.into(),
            spent: false,
        }
    }
    pub fn is(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }
    pub fn is_space(&self) -> bool {
        matches!(self.kind, Kind::Blank | Kind::Newline)
    }
}

/// Preprocessing tokens of a text, nothing left out.
#[derive(Clone)]
pub struct Scan<'s> {
    pub rest: &'s str,
}

impl<'s> Iterator for Scan<'s> {
    type Item = Token<'s>;

    fn next(&mut self) -> Option<Token<'s>> {
        let bytes = self.rest.as_bytes();
        let first = *bytes.first()?;
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
        let length = |test: &dyn Fn(&u8) -> bool| bytes.iter().take_while(|byte| test(byte)).count();
        let (kind, end) = match first {
            b'\n' => (Kind::Newline, 1),
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => (
                Kind::Blank,
                length(&|byte| matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)),
            ),
            b'\\' if bytes.get(1) == Some(&b'\n') => (Kind::Blank, 2),
            b'\\' if bytes.get(1..3) == Some(b"\r\n") => (Kind::Blank, 3),
            b'/' if bytes.get(1) == Some(&b'/') => (Kind::Blank, length(&|&byte| byte != b'\n')),
            b'/' if bytes.get(1) == Some(&b'*') => (
                Kind::Blank,
                self.rest[2..].find("*/").map_or(bytes.len(), |end| end + 4),
            ),
            b'"' => {
                let mut at = 1;
                while let Some(&byte) = bytes.get(at).filter(|&&byte| byte != b'\n') {
                    at += if byte == b'\\' { 2 } else { 1 };
                    if byte == b'"' {
                        break;
                    }
                }
                let mut end = at.min(bytes.len());
                while !self.rest.is_char_boundary(end) {
                    end += 1;
                }
                (Kind::Text, end)
            }
            b'0'..=b'9' => (Kind::Number, length(&|byte| word(byte) || *byte == b'.')),
            byte if word(&byte) => (Kind::Name, length(&word)),
            b'#' | b'=' | b'&' | b'|' | b'<' | b'>' if bytes.get(1) == Some(&first) => (Kind::Mark, 2),
            b'!' | b'<' | b'>' if bytes.get(1) == Some(&b'=') => (Kind::Mark, 2),
            _ => (Kind::Mark, self.rest.chars().next().map_or(1, char::len_utf8)),
        };
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(Token::new(kind, text))
    }
}

/// Whether a comment is open at the end of `line`, if one was at its start or not.
pub fn open_comment(line: &str, mut open: bool) -> bool {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if open {
            match line[at..].find("*/") {
                Some(end) => (at, open) = (at + end + 2, false),
                None => return true,
            }
            continue;
        }
        // Nothing but these matters.
        match bytes[at..].iter().position(|byte| matches!(byte, b'/' | b'"')) {
            None => return false,
            Some(ahead) => at += ahead,
        }
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'/')) => return false,
            (b'/', Some(b'*')) => {
                open = true;
                at += 2;
            }
            (b'"', _) => {
                at += 1;
                while !matches!(bytes.get(at), None | Some(b'"' | b'\n')) {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
                while at < bytes.len() && !line.is_char_boundary(at) {
                    at += 1;
                }
            }
            _ => at += 1,
        }
    }
    open
}

/// Where tokens come from: the text, and on top of it what macros were replaced by.
#[derive(Default)]
pub struct Feed<'s> {
    text: Option<Scan<'s>>,
    stack: Vec<(std::vec::IntoIter<Token<'s>>, Option<Cow<'s, str>>)>,
    open: HashSet<Cow<'s, str>>,
}

impl<'s> Feed<'s> {
    pub fn of(text: Scan<'s>) -> Feed<'s> {
        Feed {
            text: Some(text),
            ..Feed::default()
        }
    }

    /// Tokens to come first; a macro's name is open until they are used up.
    pub fn push(&mut self, list: Vec<Token<'s>>, name: Option<Cow<'s, str>>) {
        if let Some(name) = &name {
            self.open.insert(name.clone());
        }
        self.stack.push((list.into_iter(), name));
    }

    pub fn is_open(&self, name: &str) -> bool {
        self.open.contains(name)
    }

    /// Bytes of the text that are still to come, when the text is what comes next.
    pub fn left(&self) -> Option<usize> {
        match self.stack.is_empty() {
            true => self.text.as_ref().map(|text| text.rest.len()),
            false => None,
        }
    }
}

impl<'s> Iterator for Feed<'s> {
    type Item = Token<'s>;

    fn next(&mut self) -> Option<Token<'s>> {
        while let Some((list, _)) = self.stack.last_mut() {
            if let Some(token) = list.next() {
                return Some(token);
            }
            if let Some((_, Some(name))) = self.stack.pop() {
                self.open.remove(&name);
            }
        }
        self.text.as_mut()?.next()
    }
}
