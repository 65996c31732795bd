//! The text of a function body → statements. Finds where each statement ends, hands it to the grammar, and after an
//! error goes on behind the next `;` or `}`, so that one reading reports them all. Blocks are kept on a list, not on
//! the stack, and their depth is bounded.

use std::sync::Arc;

use chumsky::Parser;
use chumsky::error::EmptyErr;
use chumsky::extra::SimpleState;

use super::Source;
use super::ast::{Name, Parsed, Span, Statement};
use super::declaration;
use super::diagnostic::{Diagnostic, Findings};
use super::grammar::{self, Why};
use super::legacy::{self, Special};
use super::lexer::{Kind, Lexer, Token};
use super::names::Context;
use super::record::Records;
use super::rules::{self, Scope};
use crate::{isa, spelling};

/// Blocks within blocks.
const MAX_DEPTH: usize = 200;

/// Opening marks and operators that one operand may hold: what bounds the grammar's recursion.
const MAX_NESTING: usize = 200;

/// Reads with `$parser`, whose errors say nothing; if it fails, again with `$slow` to say why.
macro_rules! read {
    ($parser:expr, $slow:expr, $tokens:expr, $context:expr) => {{
        let tokens: &[Token] = $tokens;
        match $parser.parse_with_state(tokens, $context).into_result() {
            Ok(tree) => Ok(tree),
            Err(_) => match $slow.parse_with_state(tokens, $context).into_result() {
                Ok(tree) => Ok(tree),
                Err(errors) => Err($crate::ptx::diagnostic::explain(errors, tokens, $context.source)),
            },
        }
    }};
}
pub(super) use read;

/// How far a statement that starts at `start` reaches: behind its `;`, or up to the `}` that cuts it off.
pub(super) fn extent(tokens: &[Token], start: usize) -> Result<usize, (usize, &'static str)> {
    let mut braces = 0usize;
    let mut nesting = Nesting::default();
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.kind {
            // A skipped body ends a declaration without a mark.
            Kind::Semicolon | Kind::Braces => return Ok(at + 1),
            Kind::OpenBrace => {
                nesting = Nesting::default();
                braces += 1;
                if braces > MAX_NESTING {
                    return Err((at, "braces are nested too deeply"));
                }
            }
            Kind::CloseBrace if braces == 0 => return Ok(at),
            Kind::CloseBrace => braces -= 1,
            Kind::Comma => nesting = Nesting::default(),
            kind => {
                nesting.read(kind);
                if nesting.depth() > MAX_NESTING {
                    return Err((at, "the expression is nested too deeply"));
                }
            }
        }
    }
    Ok(tokens.len())
}

/// How deep the grammar goes into an operand: a level for each open parenthesis, each sign before its operand, and each
/// `?`, whose sides are read one within the other. A sum may be as long as it likes.
#[derive(Default)]
struct Nesting {
    /// The operators before each open parenthesis.
    open: Vec<usize>,
    /// All of them, and the parentheses.
    outer: usize,
    /// Operators since the last operand or parenthesis.
    signs: usize,
    choices: usize,
    /// An operand came last: `-` is a difference now.
    operand: bool,
}

impl Nesting {
    fn depth(&self) -> usize {
        self.outer + self.signs + self.choices
    }

    fn read(&mut self, kind: Kind) {
        let operand = std::mem::replace(&mut self.operand, false);
        match kind {
            Kind::OpenParen => {
                self.outer += self.signs + 1;
                self.open.push(std::mem::take(&mut self.signs));
            }
            Kind::CloseParen => {
                self.outer -= self.open.pop().map_or(0, |signs| signs + 1);
                self.signs = 0;
                self.operand = true;
            }
            Kind::Plus | Kind::Minus if operand => {}
            Kind::Not | Kind::Minus | Kind::Plus | Kind::Tilde => self.signs += 1,
            Kind::Question => self.choices += 1,
            Kind::Name | Kind::Dotted | Kind::Number | Kind::Float | Kind::Typed | Kind::CloseBracket => {
                self.signs = 0;
                self.operand = true;
            }
            _ => {}
        }
    }
}

/// How far a `.loc` that starts at `start` reaches: it ends without a mark.
fn location_extent(tokens: &[Token], start: usize) -> usize {
    let kind = |at: usize| tokens.get(at).map(|token| token.kind);
    let numbers = |mut at: usize| {
        for _ in 0..3 {
            if kind(at) == Some(Kind::Number) {
                at += 1;
            }
        }
        at
    };
    let mut at = numbers(start + 1);
    while kind(at) == Some(Kind::Comma) {
        at += 1;
        if kind(at) == Some(Kind::Name) {
            at += 1;
        }
        if kind(at) == Some(Kind::Name) {
            at += 1;
            if kind(at) == Some(Kind::Plus) {
                at += 1;
                at += usize::from(kind(at) == Some(Kind::Number));
            }
        } else {
            at = numbers(at);
        }
    }
    at
}

/// Words with a dot that start a statement, for spelling.
const DIRECTIVES: &[&str] = &[
    ".reg", ".local", ".shared", ".param", ".global", ".const", ".pragma", ".loc", ".align", ".extern",
];

/// `word` starts nothing that may stand here.
pub(super) fn unknown_directive(span: Span, word: &str, what: &str, known: &[&str]) -> Diagnostic {
    let found = Diagnostic::error(span, format!("`{word}` does not start {what}"));
    match spelling::suggestion(word, known.iter().copied()) {
        Some(suggestion) => found.label(suggestion),
        None => found,
    }
}

/// Words that start a variable's declaration.
fn declares(word: &str) -> bool {
    matches!(
        word,
        ".reg"
            | ".sreg"
            | ".local"
            | ".shared"
            | ".param"
            | ".const"
            | ".global"
            | ".tex"
            | ".surf"
            | ".align"
            | ".attribute"
            | ".extern"
            | ".visible"
            | ".weak"
            | ".common"
            | ".shared::cta"
            | ".shared::cluster"
            | ".param::func"
            | ".param::entry"
    )
}

/// The statements of the body at `span` (from `{` to `}`).
pub(super) fn parse(source: &Arc<Source>, span: Span, version: (u16, u16), records: Option<&Records>) -> Parsed {
    let (start, end) = (span.start as usize + 1, span.end as usize - 1);
    let mut findings = Findings::default();
    let mode = Mode {
        version,
        closed: true,
        records,
    };
    let statements = statements(&source.text, start, end, mode, &mut findings);
    let undeclared = findings.undeclared;
    Parsed {
        wrong: findings.finish(source, ()).err(),
        statements,
        undeclared,
    }
}

/// What the reader of a body should know beforehand.
#[derive(Clone, Copy)]
pub(super) struct Mode<'r> {
    /// The module's `.version`.
    pub version: (u16, u16),
    /// The body's end is known. If not, the first `}` too many is taken for it.
    pub closed: bool,
    /// Structures that are declared outside (PTX 1.x).
    pub records: Option<&'r Records>,
}

/// The statements of `text[start..end]`.
pub(super) fn statements(
    text: &str,
    start: usize,
    end: usize,
    mode: Mode<'_>,
    findings: &mut Findings,
) -> Vec<Statement> {
    let mut tokens = Vec::with_capacity((end - start) / 5);
    tokens.extend(Lexer::new(text, start, end));
    let tokens = &tokens[..];
    let mut context = SimpleState(Context::new(text, mode.version));
    if let Some(records) = mode.records {
        context.records = records.clone();
        context.records.room = 16 * (end - start);
    }
    let instruction = grammar::instruction::<EmptyErr>();
    let call = grammar::call::<EmptyErr>();
    let variables = declaration::variables::<EmptyErr>();
    let targets = declaration::targets::<EmptyErr>();
    let location = declaration::location::<EmptyErr>();
    let pragma = declaration::pragma::<EmptyErr>();

    let mut reading = Reading {
        tokens,
        text,
        at: 0,
        closed: mode.closed,
        open: Vec::new(),
        list: Vec::with_capacity(tokens.len() / 8),
    };
    while let Some(&first) = tokens.get(reading.at) {
        if findings.enough() {
            findings.undeclared = true;
            break;
        }
        let special = context.legacy && matches!(first.kind, Kind::At | Kind::Word);
        let mut step = match special {
            true => reading.special(first, &mut context, findings),
            false => Step::Statement,
        };
        if step == Step::Statement {
            step = reading.mark(first, &mut context, findings);
        }
        match step {
            Step::Next => continue,
            Step::End => return reading.list,
            Step::Statement => {}
        }
        let word = if first.kind == Kind::Word { first.text(text) } else { "" };
        let list = &mut reading.list;
        let at = reading.at;
        if word == ".loc" {
            let to = location_extent(tokens, at);
            match read!(location, declaration::location::<Why>(), &tokens[at..to], &mut context) {
                Ok(statement) => list.push(statement),
                Err(error) => findings.push(error),
            }
            reading.at = to;
            continue;
        }
        let to = match extent(tokens, at) {
            Ok(to) => to,
            Err((place, message)) => {
                findings.undeclared = true;
                findings.push(Diagnostic::error(tokens[place].span, message));
                reading.at = tokens[place..]
                    .iter()
                    .position(|token| token.kind == Kind::Semicolon)
                    .map_or(tokens.len(), |semicolon| place + semicolon + 1);
                continue;
            }
        };
        let statement = &tokens[at..to];
        if !word.is_empty() && is_function(statement, text) {
            let error = Diagnostic::error(first.span, "a function within a function");
            findings.undeclared = true;
            findings.push(error.label("perhaps a `}` is missing before"));
            if !mode.closed {
                return reading.list;
            }
            let header = statement.iter().position(|token| token.kind == Kind::OpenBrace);
            reading.at = header.map_or(to, |brace| at + brace);
            continue;
        }
        reading.at = to;
        let result = match first.kind {
            Kind::At | Kind::Dotted | Kind::Name if is_call(statement, text) => {
                read!(call, grammar::call::<Why>(), statement, &mut context)
                    .map(|call| list.push(Statement::Instruction(call)))
            }
            Kind::Name if statement.get(1).is_some_and(|next| next.kind == Kind::Colon) => {
                read!(targets, declaration::targets::<Why>(), statement, &mut context).map(|targets| list.push(targets))
            }
            Kind::At | Kind::Dotted | Kind::Name => {
                read!(instruction, grammar::instruction::<Why>(), statement, &mut context).and_then(
                    |mut instruction| {
                        if !context.records.variables.is_empty() {
                            let resolved = context.records.resolve(&mut instruction);
                            resolved.map_err(|(span, message)| Diagnostic::error(span, message))?;
                        }
                        list.push(Statement::Instruction(instruction));
                        Ok(())
                    },
                )
            }
            Kind::Word if word == ".pragma" => read!(pragma, declaration::pragma::<Why>(), statement, &mut context)
                .map(|texts| list.push(Statement::Pragma(texts))),
            Kind::Word if declares(word) => read!(variables, declaration::variables::<Why>(), statement, &mut context)
                .map(|variables| {
                    for variable in variables {
                        let wrong = rules::variable(&variable, Scope::Body, context.legacy, context.version);
                        findings.list.extend(wrong);
                        list.push(Statement::Variable(Box::new(variable)));
                    }
                }),
            Kind::Word => Err(unknown_directive(first.span, word, "a statement", DIRECTIVES)),
            _ => Err(super::diagnostic::unexpected(&first, text, "a statement")),
        };
        if let Err(error) = result {
            // A label may stand before a `.callprototype`.
            findings.undeclared |= !matches!(first.kind, Kind::At | Kind::Dotted);
            findings.push(error);
        }
    }
    reading.finish(findings)
}

/// What became of the token at hand.
#[derive(PartialEq, Eq)]
enum Step {
    /// It is read, or refused.
    Next,
    /// A statement starts with it.
    Statement,
    /// The body ends with it.
    End,
}

/// An open `{`.
struct Open {
    brace: Span,
    /// What stands before it.
    before: Vec<Statement>,
    /// The label behind its `}`: of a guarded block (PTX 1.x).
    label: Option<Name>,
}

/// A body on its way from tokens to statements: what needs no grammar.
struct Reading<'t> {
    tokens: &'t [Token],
    text: &'t str,
    at: usize,
    closed: bool,
    open: Vec<Open>,
    /// Statements of the innermost block so far.
    list: Vec<Statement>,
}

impl Reading<'_> {
    fn kind(&self, at: usize) -> Option<Kind> {
        self.tokens.get(at).map(|token| token.kind)
    }

    /// Opens a block, unless there are too many within one another.
    fn open(&mut self, brace: Span, label: Option<Name>, findings: &mut Findings) -> Step {
        if self.open.len() == MAX_DEPTH {
            findings.push(Diagnostic::error(brace, "blocks are nested too deeply"));
            return Step::End;
        }
        let before = std::mem::take(&mut self.list);
        self.open.push(Open { brace, before, label });
        Step::Next
    }

    /// Closes the innermost block; false if none is open.
    fn close(&mut self) -> bool {
        let Some(Open { before, label, .. }) = self.open.pop() else {
            return false;
        };
        let inner = std::mem::replace(&mut self.list, before);
        self.list.push(Statement::Block(inner));
        self.list.extend(label.map(Statement::Label));
        true
    }

    /// What only PTX 1.x has.
    fn special(&mut self, first: Token, context: &mut Context<'_>, findings: &mut Findings) -> Step {
        match legacy::special(self.tokens, self.at, context) {
            Ok(None) => Step::Statement,
            Ok(Some(Special::Skip(to))) => {
                self.at = to;
                Step::Next
            }
            Ok(Some(Special::Statement(to, statement))) => {
                self.list.push(statement);
                self.at = to;
                Step::Next
            }
            Ok(Some(Special::Guarded(to, around, label))) => {
                self.list.push(Statement::Instruction(around));
                self.at = to;
                self.open(first.span, Some(label), findings)
            }
            Err((span, message)) => {
                findings.push(Diagnostic::error(span, message));
                Step::Statement
            }
        }
    }

    /// Braces, marks that are too many, and labels.
    fn mark(&mut self, first: Token, context: &mut Context<'_>, findings: &mut Findings) -> Step {
        match first.kind {
            Kind::OpenBrace => {
                self.at += 1;
                self.open(first.span, None, findings)
            }
            Kind::CloseBrace => {
                self.at += 1;
                if !self.close() {
                    if !self.closed {
                        return Step::End;
                    }
                    findings.undeclared = true;
                    findings.push(Diagnostic::error(first.span, "this `}` closes nothing"));
                }
                Step::Next
            }
            Kind::Semicolon => {
                findings.push(
                    Diagnostic::error(first.span, "a statement is missing before `;`")
                        .note("PTX has no empty statement"),
                );
                self.at += 1;
                Step::Next
            }
            Kind::Name if self.kind(self.at + 1) == Some(Kind::Colon) => {
                let introduces = self.tokens.get(self.at + 2).is_some_and(|word| {
                    word.kind == Kind::Word
                        && matches!(
                            word.text(self.text),
                            ".callprototype" | ".calltargets" | ".branchtargets"
                        )
                });
                if introduces {
                    return Step::Statement;
                }
                self.list.push(Statement::Label(context.name(first.span)));
                self.at += 2;
                if let Some(next) = self.tokens.get(self.at).filter(|next| next.kind == Kind::Semicolon) {
                    findings.push(
                        Diagnostic::error(next.span, "a label needs a statement behind it")
                            .note("a label may stand before `}`, but not before `;`"),
                    );
                    self.at += 1;
                }
                Step::Next
            }
            _ => Step::Statement,
        }
    }

    /// All statements, once the text is at its end.
    fn finish(mut self, findings: &mut Findings) -> Vec<Statement> {
        if let Some(open) = self.open.first().filter(|_| !findings.enough()) {
            findings.undeclared = true;
            findings.push(Diagnostic::error(open.brace, "this `{` is not closed"));
        }
        for open in &mut self.open {
            // What closes nothing guards nothing.
            open.label = None;
        }
        while self.close() {}
        self.list.shrink_to_fit();
        self.list
    }
}

/// `call` and `call.uni`, behind a guard perhaps.
fn is_call(statement: &[Token], text: &str) -> bool {
    let opcode = statement
        .iter()
        .find(|token| matches!(token.kind, Kind::Dotted | Kind::Name));
    let opcode = match statement.first().map(|token| token.kind) {
        // The first name behind `@` is the predicate.
        Some(Kind::At) => statement
            .iter()
            .filter(|token| matches!(token.kind, Kind::Dotted | Kind::Name))
            .nth(1),
        _ => opcode,
    };
    opcode.is_some_and(|token| isa::is_call(token.text(text)))
}

/// Whether `.entry` or `.func` is among the words at the start.
pub(super) fn is_function(statement: &[Token], text: &str) -> bool {
    statement
        .iter()
        .take_while(|token| token.kind == Kind::Word)
        .any(|token| matches!(token.text(text), ".entry" | ".func"))
}
