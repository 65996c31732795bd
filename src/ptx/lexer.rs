//! PTX text → tokens: each a kind and a place in the [`Source`](super::Source), nothing owned. Comments, blanks, `#line`
//! markers and `@@DWARF` lines vanish here (PTX ISA, Source Format, Comments). Also the quick skipper that finds the `}` of
//! a function body without making tokens.
//!
//! Words mean nothing yet: `.global`, `add` and `.maxntid` are words with and without a dot.

use std::fmt;

use logos::{FilterResult, Logos};

use super::ast::Span;

/// What a token is. Dotted words stay in one piece (`ld.global.L1::no_allocate.v4.f32`, `%tid.x`): the parser sees one
/// token where the manual sees one opcode.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\n\x0b\x0c]+")]
#[logos(skip(r"//[^\n]*", allow_greedy = true))]
#[rustfmt::skip]
pub enum Kind {
    /// Identifier: register, variable, label, opcode without modifiers.
    #[regex(r"[A-Za-z][A-Za-z0-9_$]*")]
    #[regex(r"[_$%][A-Za-z0-9_$]+")]
    Name,
    /// Identifier with dotted words behind it: opcode with modifiers, or a register and its selector.
    #[regex(r"([A-Za-z][A-Za-z0-9_$]*|[_$%][A-Za-z0-9_$]+)(\.[A-Za-z0-9_]+(::[A-Za-z0-9_]+(:[0-9]+)?)*)+")]
    Dotted,
    /// `.global`, `.b32`, `.2d`: a dotted word that stands alone.
    #[regex(r"\.[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z0-9_]+(:[0-9]+)?)*")]
    #[regex(r"\.[0-9]+[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z0-9_]+(:[0-9]+)?)*")]
    Word,
    /// Starts with a digit and has no point: integers of all bases, `0f…` and `0d…`. Checked when its value is needed.
    #[regex(r"[0-9][A-Za-z0-9_$]*")]
    Number,
    #[regex(r"[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?", priority = 5)]
    #[regex(r"\.[0-9]+([eE][+-]?[0-9]+)?", priority = 5)]
    #[regex(r"[0-9]+[eE][+-]?[0-9]+", priority = 5)]
    Float,
    /// `5.u32`: an immediate that says its type, in PTX 1.x.
    #[regex(r"[0-9][A-Za-z0-9]*(\.[0-9]*([eE][+-]?[0-9]+)?)?\.([bsu](8|16|32|64)|f(16|32|64))", priority = 9)]
    Typed,
    #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
    Text,
    #[token("_")] Underscore,
    #[token(",")] Comma,
    #[token(";")] Semicolon,
    #[token(":")] Colon,
    #[token("(")] OpenParen,
    #[token(")")] CloseParen,
    #[token("[")] OpenBracket,
    #[token("]")] CloseBracket,
    #[token("{")] OpenBrace,
    #[token("}")] CloseBrace,
    #[token("@")] At,
    #[token("!")] Not,
    #[token("|")] Or,
    #[token("+")] Plus,
    #[token("-")] Minus,
    #[token("*")] Star,
    #[token("/")] Slash,
    #[token("%")] Percent,
    #[token("&")] And,
    #[token("^")] Xor,
    #[token("~")] Tilde,
    #[token("?")] Question,
    #[token("=")] Equals,
    #[token("<")] Less,
    #[token(">")] Greater,
    #[token("<<")] ShiftLeft,
    #[token(">>")] ShiftRight,
    #[token("<=")] LessEqual,
    #[token(">=")] GreaterEqual,
    #[token("==")] EqualEqual,
    #[token("!=")] NotEqual,
    #[token("&&")] AndAnd,
    #[token("||")] OrOr,
    #[token(".")] Dot,
    #[token("...")] Ellipsis,
    /// A preprocessor line that is not a line marker.
    #[token("#", line_marker)] Hash,
    /// `/*` without its `*/`; a closed comment vanishes.
    #[token("/*", comment)] UnclosedComment,
    #[regex(r#""([^"\\\n]|\\[^\n])*"#)] UnclosedText,
    /// `@@DWARF …` lines of PTX before 3.0.
    #[token("@@", rest_of_line)] Dwarf,
    /// `{ … }` skipped in one piece: a function's body, a section's content. Never made by the lexer itself.
    Braces,
    /// A character that belongs to no token.
    Unknown,
}

fn rest_of_line(lexer: &mut logos::Lexer<Kind>) -> FilterResult<(), ()> {
    let rest = lexer.remainder();
    lexer.bump(rest.find('\n').unwrap_or(rest.len()));
    FilterResult::Skip
}

/// `#line 3 "a.cu"`, `# 3 "a.cu"` and `#file "a.cu"` say where the text came from; other lines are not ours to obey.
fn line_marker(lexer: &mut logos::Lexer<Kind>) -> FilterResult<(), ()> {
    let rest = lexer.remainder();
    let word = rest.trim_start_matches([' ', '\t']);
    if word.starts_with("line") || word.starts_with("file") || word.starts_with(|c: char| c.is_ascii_digit()) {
        return rest_of_line(lexer);
    }
    FilterResult::Emit(())
}

fn comment(lexer: &mut logos::Lexer<Kind>) -> FilterResult<(), ()> {
    let rest = lexer.remainder();
    match rest.find("*/") {
        Some(end) => {
            lexer.bump(end + 2);
            FilterResult::Skip
        }
        None => {
            lexer.bump(rest.len());
            FilterResult::Emit(())
        }
    }
}

/// A token: what it is and where. Tokens are compared by kind alone, which is what a grammar wants.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub kind: Kind,
    pub span: Span,
}

impl PartialEq for Token {
    fn eq(&self, other: &Token) -> bool {
        self.kind == other.kind
    }
}

impl Token {
    /// For grammars: a token of this kind, wherever.
    pub const fn of(kind: Kind) -> Token {
        Token {
            kind,
            span: Span { start: 0, end: 0 },
        }
    }

    pub fn text<'s>(&self, source: &'s str) -> &'s str {
        &source[self.span.start as usize..self.span.end as usize]
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.describe())
    }
}

impl Kind {
    /// How messages call a token of this kind.
    #[rustfmt::skip]
    pub fn describe(self) -> &'static str {
        use Kind::*;
        match self {
            Name => "a name", Dotted => "a dotted name", Word => "a directive", Number => "an integer",
            Float => "a floating-point number", Typed => "a number with a type", Text => "a string", Underscore => "`_`", Comma => "`,`",
            Semicolon => "`;`", Colon => "`:`", OpenParen => "`(`", CloseParen => "`)`", OpenBracket => "`[`",
            CloseBracket => "`]`", OpenBrace => "`{`", CloseBrace => "`}`", At => "`@`", Not => "`!`", Or => "`|`",
            Plus => "`+`", Minus => "`-`", Star => "`*`", Slash => "`/`", Percent => "`%`", And => "`&`", Xor => "`^`",
            Tilde => "`~`", Question => "`?`", Equals => "`=`", Less => "`<`", Greater => "`>`", ShiftLeft => "`<<`",
            ShiftRight => "`>>`", LessEqual => "`<=`", GreaterEqual => "`>=`", EqualEqual => "`==`",
            NotEqual => "`!=`", AndAnd => "`&&`", OrOr => "`||`", Dot => "`.`", Ellipsis => "`...`", Hash => "`#`",
            UnclosedComment => "a comment without end", UnclosedText => "a string without end",
            Dwarf => "debug information", Braces => "a body", Unknown => "a character that starts no token",
        }
    }
}

/// Tokens of `text[start..end]`, places counted in the whole text.
pub struct Lexer<'s> {
    inner: logos::Lexer<'s, Kind>,
    base: u32,
}

impl<'s> Lexer<'s> {
    pub fn new(text: &'s str, start: usize, end: usize) -> Lexer<'s> {
        Lexer {
            inner: Kind::lexer(&text[start..end]),
            base: start as u32,
        }
    }

    /// Goes on behind `position` (counted in the whole text).
    pub fn jump(&mut self, position: usize) {
        let here = self.base as usize + self.inner.span().end;
        self.inner.bump(position - here);
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    #[inline]
    fn next(&mut self) -> Option<Token> {
        let kind = self.inner.next()?.unwrap_or(Kind::Unknown);
        let range = self.inner.span();
        Some(Token {
            kind,
            span: Span {
                start: self.base + range.start as u32,
                end: self.base + range.end as u32,
            },
        })
    }
}

/// Bytes at which [`skip_braces`] has to look twice.
static STOPS: [bool; 256] = {
    let mut table = [false; 256];
    table[b'{' as usize] = true;
    table[b'}' as usize] = true;
    table[b'"' as usize] = true;
    table[b'/' as usize] = true;
    table
};

/// `open` is the place of a `{`. The place behind its `}`, or nothing if the text ends before.
pub fn skip_braces(text: &str, open: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut at = open;
    loop {
        // Four at a time: bodies are the bulk of a module.
        while let Some(chunk) = bytes.get(at..at + 8) {
            let stop = chunk.iter().fold(false, |any, &byte| any | STOPS[byte as usize]);
            if stop {
                break;
            }
            at += 8;
        }
        while !STOPS[*bytes.get(at)? as usize] {
            at += 1;
        }
        match bytes[at] {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b'"' => {
                // A string ends on its line (one that does not is an error that the lexer reports).
                at += 1;
                while !matches!(bytes.get(at), None | Some(b'"' | b'\n')) {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            _ => match bytes.get(at + 1) {
                Some(b'/') => at += text.as_bytes()[at..].iter().position(|&byte| byte == b'\n')?,
                Some(b'*') => at += 3 + text[at + 2..].find("*/")?,
                _ => {}
            },
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::Kind::*;
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        Lexer::new(text, 0, text.len()).map(|token| token.kind).collect()
    }

    #[test]
    fn words_and_numbers() {
        assert_eq!(
            kinds("ld.global.L1::no_allocate.v4.f32 {%f1, _}"),
            [Dotted, OpenBrace, Name, Comma, Underscore, CloseBrace]
        );
        assert_eq!(kinds(".global.b32 $L__x _a %r1"), [Word, Word, Name, Name, Name]);
        assert_eq!(
            kinds("1. .5 1e300 1.5e-3 0f3F800000 0x1F 017U 0b1 1abc"),
            [Float, Float, Float, Float, Number, Number, Number, Number, Number]
        );
        assert_eq!(
            kinds("5.u32 0x1F.s16 1.5.f32 1..f64 1.5"),
            [Typed, Typed, Typed, Typed, Float]
        );
        assert_eq!(kinds("7 % 3 7%3"), [Number, Percent, Number, Number, Name]);
        assert_eq!(
            kinds("[%rd1+-4] %r<5> 1<<4"),
            [
                OpenBracket,
                Name,
                Plus,
                Minus,
                Number,
                CloseBracket,
                Name,
                Less,
                Number,
                Greater,
                Number,
                ShiftLeft,
                Number
            ]
        );
        assert_eq!(kinds("tex.1d.v4.f32.s32 .2d .16x64b"), [Dotted, Word, Word]);
    }

    #[test]
    fn what_vanishes() {
        assert_eq!(kinds("a // b\nc /* d \n * / */ e /**/ f"), [Name, Name, Name, Name]);
        assert_eq!(kinds("#line 3 \"x.cu\"\n# 4 \"y\"\n@@DWARF .byte 1\na"), [Name]);
        assert_eq!(kinds("#define K 3"), [Hash, Name, Name, Number]);
        assert_eq!(kinds("a /* b"), [Name, UnclosedComment]);
        assert_eq!(kinds("\"a\\\"b\" \"c\nd"), [Text, UnclosedText, Name]);
        assert_eq!(kinds("é \0"), [Unknown, Unknown]);
    }

    #[test]
    fn braces_in_comments_and_strings_do_not_count() {
        for (text, rest) in [
            ("{ret;}x", "x"),
            ("{ {a} // }\n {b} } y", " y"),
            ("{ /* } */ .pragma \"}\\\"}\"; a/b }z", "z"),
            ("{/}/}", "/}"),
        ] {
            assert_eq!(&text[skip_braces(text, 0).unwrap()..], rest);
        }
        for text in ["{", "{{}", "{ // }", "{ /* }", "{ \"}", "{ \"\\"] {
            assert_eq!(skip_braces(text, 0), None, "{text}");
        }
    }
}
