//! Preprocessor lines of PTX 1.x: `#define`, `#undef`, `#if` and its kin, by C's rules (PTX ISA 1.1, 4.1 Source Format:
//! "The C preprocessor cpp may be used to process PTX source files"). The text that comes out has macros replaced, and
//! empty lines where a condition leaves some out; line numbers stay what they were.
//!
//! Later versions have line markers only (the lexer skips those) and are left alone. A macro may not be used across a
//! preprocessor line, and `#include` is refused: a module is a text, not a file among others.
//!
//! Expansion is a loop over a stack of token lists, not a recursion; only arguments of macros recurse, to a bounded
//! depth. Work and output are bounded by the length of the text.

mod token;

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::Source;
use super::ast::Span;
use super::condition;
use super::diagnostic::{Diagnostic, Diagnostics};
use token::{Feed, Kind, Scan, Token, open_comment};

/// Macro calls within arguments of macro calls.
const MAX_DEPTH: usize = 64;
/// What replacing a macro costs, in tokens looked at.
const REPLACEMENT: usize = 4;
/// `#if` within `#if`.
const MAX_CONDITIONS: usize = 200;

/// The text after preprocessing: the same one if there is nothing to do.
///
/// # Errors
/// What is wrong with preprocessor lines, in the text as written.
pub fn run(source: Arc<Source>) -> Result<Arc<Source>, Diagnostics> {
    let text = &*source.text;
    let legacy = version_of(text).is_some_and(|version| version < (2, 0));
    if !(legacy && needed(text)) {
        return Ok(source);
    }
    let mut work = Preprocessor {
        text,
        macros: HashMap::new(),
        conditions: Vec::new(),
        // Enough for any text that people write; what doubles and doubles ends soon.
        steps: 4 * text.len() + (1 << 16),
        room: 16 * text.len() + (1 << 16),
        out: String::with_capacity(text.len()),
    };
    match work.lines() {
        Ok(()) => {
            let out = work.out;
            Ok(Source::new(source.name.clone(), out))
        }
        Err(found) => Err(Diagnostics {
            list: vec![*found],
            source,
        }),
    }
}

/// The `.version` that a text starts with; comments and preprocessor lines may stand before it.
fn version_of(text: &str) -> Option<(u16, u16)> {
    let mut rest = text.trim_start();
    loop {
        if rest.starts_with("//") || rest.starts_with('#') {
            rest = rest.split_once('\n')?.1.trim_start();
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/")?.1.trim_start();
        } else {
            let number = rest.strip_prefix(".version")?.trim_start();
            let end = number
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .unwrap_or(number.len());
            let (major, minor) = number[..end].split_once('.')?;
            return Some((major.parse().ok()?, minor.parse().ok()?));
        }
    }
}

/// Whether some line is a preprocessor line other than a line marker.
fn needed(text: &str) -> bool {
    text.lines()
        .filter_map(|line| line.trim_start().strip_prefix('#'))
        .any(|behind| !is_marker(behind))
}

/// `#line 3`, `# 3 "a.cu"`, `#file "a.cu"`: the lexer skips these lines.
fn is_marker(behind_hash: &str) -> bool {
    let word = behind_hash.trim_start_matches([' ', '\t']);
    word.starts_with("line") || word.starts_with("file") || word.starts_with(|c: char| c.is_ascii_digit())
}

type Found = Box<Diagnostic>;

fn wrong<T>(span: Span, message: impl Into<String>) -> Result<T, Found> {
    Err(Box::new(Diagnostic::error(span, message)))
}

struct Macro<'s> {
    /// `None`: takes no arguments.
    params: Option<Vec<&'s str>>,
    body: Vec<Token<'s>>,
}

/// An `#if` that is open.
struct Condition {
    span: Span,
    /// Lines of this branch count.
    active: bool,
    /// Some branch has counted, or none may.
    done: bool,
    has_else: bool,
}

struct Preprocessor<'s> {
    text: &'s str,
    macros: HashMap<&'s str, Rc<Macro<'s>>>,
    conditions: Vec<Condition>,
    /// Tokens that may still be looked at.
    steps: usize,
    /// Bytes that may still be written.
    room: usize,
    out: String,
}

impl<'s> Preprocessor<'s> {
    fn active(&self) -> bool {
        self.conditions.last().is_none_or(|condition| condition.active)
    }

    fn lines(&mut self) -> Result<(), Found> {
        let text = self.text;
        // Where ordinary text begins that is not yet written.
        let mut pending = 0;
        let mut at = 0;
        let mut comment = false;
        while at < text.len() {
            let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1);
            let line = &text[at..end];
            let trimmed = line.trim_start();
            if comment || !trimmed.starts_with('#') {
                comment = open_comment(line, comment);
                at = end;
                continue;
            }
            self.ordinary(pending, at)?;
            let hash = at + (line.len() - trimmed.len());
            let mut end = end;
            while text[..end].trim_end_matches(['\r', '\n']).ends_with('\\') && end < text.len() {
                end = text[end..].find('\n').map_or(text.len(), |newline| end + newline + 1);
            }
            // A comment that the line opens reaches further than the line; what follows it is still the directive's.
            let mut from = hash;
            while open_comment(&text[from..end], from != hash) {
                from = end;
                let Some(close) = text[end..].find("*/") else {
                    end = text.len();
                    break;
                };
                end = text[end + close..]
                    .find('\n')
                    .map_or(text.len(), |newline| end + close + newline + 1);
            }
            self.directive(hash, end)?;
            (at, pending) = (end, end);
        }
        self.ordinary(pending, text.len())?;
        match self.conditions.last() {
            Some(open) => wrong(open.span, "this `#if` has no `#endif`"),
            None => Ok(()),
        }
    }

    fn newlines(&mut self, from: usize, to: usize) {
        let count = self.text[from..to].bytes().filter(|&byte| byte == b'\n').count();
        self.out.extend(std::iter::repeat_n('\n', count));
    }

    /// Lines between preprocessor lines.
    fn ordinary(&mut self, from: usize, to: usize) -> Result<(), Found> {
        if !self.active() {
            self.newlines(from, to);
            return Ok(());
        }
        if self.macros.is_empty() {
            self.out.push_str(&self.text[from..to]);
            return Ok(());
        }
        let mut feed = Feed::of(Scan {
            rest: &self.text[from..to],
        });
        let mut place = from;
        while let Some(token) = self.expanded(&mut feed, 0, &mut place, to)? {
            self.out.push_str(&token.text);
        }
        Ok(())
    }

    fn directive(&mut self, hash: usize, end: usize) -> Result<(), Found> {
        let text = self.text;
        let line = text[hash + 1..end].trim_end();
        let span = Span::new(hash, hash + 1 + line.len());
        if is_marker(line) {
            // The lexer knows these.
            if self.active() {
                self.out.push_str(&text[hash..end]);
            } else {
                self.newlines(hash, end);
            }
            return Ok(());
        }
        self.newlines(hash, end);
        let mut tokens: Vec<Token<'s>> = Scan { rest: line }.collect();
        let start = tokens
            .iter()
            .position(|token| !token.is_space())
            .unwrap_or(tokens.len());
        tokens.drain(..start);
        let Some(word) = tokens.first().map(|token| token.text.clone()) else {
            // `#` alone.
            return Ok(());
        };
        let rest = tokens.split_off(1);
        match &*word {
            "if" | "ifdef" | "ifndef" => {
                if self.conditions.len() == MAX_CONDITIONS {
                    return wrong(span, "conditions are nested too deeply");
                }
                let outer = self.active();
                let holds = outer
                    && match &*word {
                        "if" => self.condition(rest, span)?,
                        word => self.macros.contains_key(name_of(&rest, span)?) == (word == "ifdef"),
                    };
                self.conditions.push(Condition {
                    span,
                    active: holds,
                    done: holds || !outer,
                    has_else: false,
                });
            }
            "elif" | "else" => {
                let Some(mut condition) = self.conditions.pop() else {
                    return wrong(span, format!("`#{word}` without `#if`"));
                };
                if condition.has_else {
                    return wrong(span, format!("`#{word}` behind `#else`"));
                }
                condition.has_else = word == "else";
                condition.active = !condition.done && (condition.has_else || self.condition(rest, span)?);
                condition.done |= condition.active;
                self.conditions.push(condition);
            }
            "endif" => {
                if self.conditions.pop().is_none() {
                    return wrong(span, "`#endif` without `#if`");
                }
            }
            _ if !self.active() => {}
            "define" => self.define(rest, span)?,
            "undef" => {
                let name = name_of(&rest, span)?.to_owned();
                self.macros.remove(name.as_str());
            }
            "pragma" | "ident" => {}
            "include" => {
                let found = Diagnostic::error(span, "`#include` in a PTX text")
                    .note("a module is one text, without a place in a file system: run cpp first");
                return Err(Box::new(found));
            }
            "error" => return wrong(span, line.trim_start().to_owned()),
            other => return wrong(span, format!("there is no preprocessor line `#{other}`")),
        }
        Ok(())
    }

    fn define(&mut self, tokens: Vec<Token<'s>>, span: Span) -> Result<(), Found> {
        let mut rest = tokens.into_iter().skip_while(Token::is_space).peekable();
        let Some(name) = rest.next().filter(|token| token.kind == Kind::Name) else {
            return wrong(span, "`#define` needs a name");
        };
        let Cow::Borrowed(name) = name.text else {
            return wrong(span, "`#define` needs a name");
        };
        // Parameters follow without a blank.
        let mut params = None;
        if rest.peek().is_some_and(|token| token.is("(")) {
            rest.next();
            let mut list = Vec::new();
            let mut closed = false;
            let mut expect_name = true;
            for token in rest.by_ref().filter(|token| !token.is_space()) {
                match token.text {
                    Cow::Borrowed(")") if !expect_name || list.is_empty() => {
                        closed = true;
                        break;
                    }
                    Cow::Borrowed(",") if !expect_name => expect_name = true,
                    Cow::Borrowed(text) if token.kind == Kind::Name && expect_name && !list.contains(&text) => {
                        list.push(text);
                        expect_name = false;
                    }
                    _ => break,
                }
            }
            if !closed {
                return wrong(
                    span,
                    format!("the parameters of `{name}` are names with commas between"),
                );
            }
            params = Some(list);
        }
        let mut body: Vec<Token<'s>> = Vec::new();
        for token in rest {
            // Comments and line ends within a macro are blanks.
            if token.is_space() {
                if body.last().is_some_and(|last| !last.is_space()) {
                    body.push(Token::new(Kind::Blank, " "));
                }
            } else {
                body.push(token);
            }
        }
        while body.last().is_some_and(Token::is_space) {
            body.pop();
        }
        if body.first().is_some_and(|token| token.is("##")) || body.last().is_some_and(|token| token.is("##")) {
            return wrong(span, "`##` stands between two things");
        }
        self.macros.insert(name, Rc::new(Macro { params, body }));
        Ok(())
    }

    /// Whether the expression of an `#if` is not zero.
    fn condition(&mut self, tokens: Vec<Token<'s>>, span: Span) -> Result<bool, Found> {
        // `defined X` and `defined(X)` come first: their names are not replaced.
        let mut plain: Vec<Token<'s>> = Vec::with_capacity(tokens.len());
        let mut rest = tokens.into_iter().filter(|token| !token.is_space()).peekable();
        while let Some(token) = rest.next() {
            if token.kind != Kind::Name || token.text != "defined" {
                plain.push(token);
                continue;
            }
            let open = rest.next_if(|token| token.is("(")).is_some();
            let Some(name) = rest.next().filter(|token| token.kind == Kind::Name) else {
                return wrong(span, "`defined` needs a name");
            };
            if open && rest.next_if(|token| token.is(")")).is_none() {
                return wrong(span, "`defined(` is not closed");
            }
            let value = if self.macros.contains_key(&*name.text) {
                "1"
            } else {
                "0"
            };
            plain.push(Token::new(Kind::Number, value));
        }
        let mut expression = String::new();
        for token in self.expand_list(plain, 1, span)? {
            // What is no macro is 0, as in C.
            match token.kind {
                Kind::Name => expression.push('0'),
                _ => expression.push_str(&token.text),
            }
            expression.push(' ');
        }
        condition::holds(&expression).or_else(|message| wrong(span, message))
    }

    // ---- expansion --------------------------------------------------------------------------------------------------

    fn step(&mut self, span: Span) -> Result<(), Found> {
        self.charge(1, span)
    }

    /// The next token that is not replaced. `place` is where in the text that is, for messages; `end` where it ends.
    fn expanded(
        &mut self,
        feed: &mut Feed<'s>,
        depth: usize,
        place: &mut usize,
        end: usize,
    ) -> Result<Option<Token<'s>>, Found> {
        loop {
            let Some(mut token) = feed.next() else {
                return Ok(None);
            };
            if let Some(left) = feed.left() {
                *place = end - left;
            }
            // One that a message may point at.
            let span = Span::new((*place).saturating_sub(1).min(self.text.len()), *place);
            let span = self.whole(span);
            self.step(span)?;
            if token.kind != Kind::Name || token.spent {
                return self.write(token, span).map(Some);
            }
            let Some(found) = self.macros.get(&*token.text).cloned() else {
                return self.write(token, span).map(Some);
            };
            self.charge(REPLACEMENT, span)?;
            if feed.is_open(&token.text) {
                token.spent = true;
                return self.write(token, span).map(Some);
            }
            let mut list = Vec::new();
            if let Some(params) = &found.params {
                // Without `(` it is not a call.
                let mut skipped = Vec::new();
                let next = loop {
                    match feed.next() {
                        Some(space) if space.is_space() => skipped.push(space),
                        other => break other,
                    }
                };
                match next {
                    Some(open) if open.is("(") => {}
                    other => {
                        skipped.extend(other);
                        feed.push(skipped, None);
                        token.spent = true;
                        return self.write(token, span).map(Some);
                    }
                }
                let (arguments, lines) = self.arguments(feed, &token.text, params.len(), span)?;
                self.substitute(&found, params, &arguments, depth, span, &mut list)?;
                if depth == 0 {
                    // The lines that the call took.
                    list.extend((0..lines).map(|_| Token::new(Kind::Newline, "\n")));
                }
            } else {
                self.substitute(&found, &[], &[], depth, span, &mut list)?;
            }
            feed.push(list, Some(token.text));
        }
    }

    /// A span that does not cut a character.
    fn whole(&self, mut span: Span) -> Span {
        while !self.text.is_char_boundary(span.start as usize) {
            span.start -= 1;
        }
        while !self.text.is_char_boundary(span.end as usize) {
            span.end += 1;
        }
        span
    }

    fn write(&mut self, token: Token<'s>, span: Span) -> Result<Token<'s>, Found> {
        match self.room.checked_sub(token.text.len()) {
            Some(left) => {
                self.room = left;
                Ok(token)
            }
            None => wrong(span, "macros grow out of proportion to the text"),
        }
    }

    fn expand_list(&mut self, list: Vec<Token<'s>>, depth: usize, span: Span) -> Result<Vec<Token<'s>>, Found> {
        if depth > MAX_DEPTH {
            return wrong(span, "calls of macros are nested too deeply");
        }
        let mut feed = Feed::default();
        feed.push(list, None);
        let mut out = Vec::new();
        let mut place = span.end as usize;
        while let Some(token) = self.expanded(&mut feed, depth, &mut place, 0)? {
            out.push(token);
        }
        Ok(out)
    }

    /// The arguments of a call behind its `(`, and how many line ends they held.
    #[allow(clippy::type_complexity, reason = "the type is said once, here")]
    fn arguments(
        &mut self,
        feed: &mut Feed<'s>,
        name: &str,
        count: usize,
        span: Span,
    ) -> Result<(Vec<Vec<Token<'s>>>, usize), Found> {
        let mut arguments = vec![Vec::new()];
        let (mut depth, mut lines) = (0usize, 0);
        loop {
            let Some(mut token) = feed.next() else {
                return wrong(span, format!("the call of the macro `{name}` is not closed"));
            };
            self.step(span)?;
            if token.is(")") && depth == 0 {
                break;
            }
            if token.is(",") && depth == 0 {
                arguments.push(Vec::new());
                continue;
            }
            if token.is("(") {
                depth += 1;
            } else if token.is(")") {
                depth -= 1;
            } else if token.is_space() {
                lines += token.text.bytes().filter(|&byte| byte == b'\n').count();
                token = Token::new(Kind::Blank, " ");
            }
            if let Some(last) = arguments.last_mut() {
                last.push(token);
            }
        }
        for argument in &mut arguments {
            let start = argument.iter().position(|token| !token.is_space());
            argument.drain(..start.unwrap_or(argument.len()));
            while argument.last().is_some_and(Token::is_space) {
                argument.pop();
            }
        }
        if count == 0 && matches!(&arguments[..], [only] if only.is_empty()) {
            arguments.clear();
        }
        if arguments.len() != count {
            let message = format!("the macro `{name}` takes {count} arguments, not {}", arguments.len());
            return wrong(span, message);
        }
        Ok((arguments, lines))
    }

    /// A macro's body with its arguments in place.
    fn substitute(
        &mut self,
        found: &Macro<'s>,
        params: &[&'s str],
        arguments: &[Vec<Token<'s>>],
        depth: usize,
        span: Span,
        out: &mut Vec<Token<'s>>,
    ) -> Result<(), Found> {
        let mut expanded: Vec<Option<Vec<Token<'s>>>> = vec![None; arguments.len()];
        let body = &found.body;
        let argument_of = |token: &Token<'s>| match token.kind {
            Kind::Name => params.iter().position(|param| *param == token.text),
            _ => None,
        };
        let behind = |at: usize| {
            body[at + 1..]
                .iter()
                .position(|token| !token.is_space())
                .map(|n| at + 1 + n)
        };
        let mut at = 0;
        let mut paste = false;
        while let Some(token) = body.get(at) {
            self.step(span)?;
            let next = behind(at);
            let pastes_next = next.is_some_and(|next| body[next].is("##"));
            let mut piece: Vec<Token<'s>> = Vec::new();
            if token.is("##") {
                while out.last().is_some_and(Token::is_space) {
                    out.pop();
                }
                (paste, at) = (true, next.unwrap_or(body.len()));
                continue;
            }
            if token.is("#")
                && !params.is_empty()
                && let Some(index) = next.and_then(|next| argument_of(&body[next]))
            {
                let text: String = arguments[index].iter().map(|token| &*token.text).collect();
                self.charge(text.len(), span)?;
                let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
                piece.push(Token::new(Kind::Text, format!("\"{escaped}\"")));
                at = next.unwrap_or(at);
            } else if let Some(index) = argument_of(token) {
                if paste || pastes_next {
                    piece.extend(arguments[index].iter().cloned());
                } else {
                    if expanded[index].is_none() {
                        expanded[index] = Some(self.expand_list(arguments[index].clone(), depth + 1, span)?);
                    }
                    piece.extend(expanded[index].iter().flatten().cloned());
                }
                self.charge(piece.len(), span)?;
            } else {
                piece.push(token.clone());
            }
            if std::mem::take(&mut paste)
                && !piece.is_empty()
                && let Some(left) = out.pop_if(|last| !last.is_space())
            {
                let joined = format!("{}{}", left.text, piece[0].text);
                self.charge(joined.len(), span)?;
                let rest = piece.split_off(1);
                out.extend(Scan { rest: &joined }.map(|token| Token::new(token.kind, token.text.into_owned())));
                piece = rest;
            }
            out.append(&mut piece);
            at += 1;
        }
        Ok(())
    }

    fn charge(&mut self, steps: usize, span: Span) -> Result<(), Found> {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => wrong(span, "macros grow out of proportion to the text"),
        }
    }
}

fn name_of<'t>(tokens: &'t [Token<'_>], span: Span) -> Result<&'t str, Found> {
    match tokens.iter().find(|token| !token.is_space()) {
        Some(token) if token.kind == Kind::Name => Ok(&token.text),
        _ => wrong(span, "a name is expected here"),
    }
}

#[cfg(test)]
mod tests;
