//! The text of a module → its declarations. Function bodies and sections are skipped by brace matching and parsed when
//! somebody asks for them: loading a module costs a scan (PTX ISA, Source Format; PTX Module Directives).

use std::sync::{Arc, OnceLock};

use chumsky::Parser;
use chumsky::error::EmptyErr;
use chumsky::extra::SimpleState;
use chumsky::prelude::*;

use super::Source;
use super::ast::{Body, Function, Item, Module, Name, Section, Span, Variable};
use super::body::{self, Mode, extent, is_function, read};
use super::declaration;
use super::diagnostic::{Diagnostic, Diagnostics, Findings, unexpected};
use super::grammar::{Failure, Part, Why, integer, mark, name, token, word};
use super::legacy::{Old, Reading};
use super::lexer::{Kind, Lexer, Token, skip_braces};
use super::names::Context;
use super::preprocess;
use super::record::Records;
use super::rules::{self, Scope};

/// `.target sm_90a, debug`
fn target<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Vec<Name>, E> {
    word(".target").ignore_then(name().separated_by(mark(Kind::Comma)).at_least(1).collect())
}

/// `.file 1 "a.cu", 1339013327, 64118`
fn file<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Item, E> {
    let stamp = mark(Kind::Comma)
        .ignore_then(integer())
        .then_ignore(mark(Kind::Comma))
        .then(integer());
    word(".file")
        .ignore_then(integer())
        .then(declaration::string())
        .then(stamp.or_not())
        .map(|((index, name), timestamp)| Item::File { index, name, timestamp })
}

/// `.alias a, b;`
fn alias<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Item, E> {
    word(".alias")
        .ignore_then(name())
        .then_ignore(mark(Kind::Comma))
        .then(name())
        .then_ignore(mark(Kind::Semicolon))
        .map(|(name, target)| Item::Alias { name, target })
}

/// `.section .debug_info { … }`
fn section<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, (Name, Span), E> {
    let title = choice((token(Kind::Word), token(Kind::Name)));
    word(".section")
        .ignore_then(title.map_with(|token, e| e.state().name(token.span)))
        .then(token(Kind::Braces).map(|token| token.span))
}

/// `.version 8.7`
fn version<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, (u16, u16), E> {
    let number = choice((token(Kind::Float), token(Kind::Number)));
    word(".version").ignore_then(number).try_map_with(|token, e| {
        let text = e.state().at(token.span);
        text.split_once('.')
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
            .ok_or_else(|| E::because(e.span(), format!("`{text}` is not a version: that looks like 8.7")))
    })
}

/// The tokens of a module, each body in one piece. A body without end is left as it is: the caller reads on behind its
/// `{`, and will say more than that it has no end.
fn scan(text: &str) -> (Vec<Token>, Option<Token>) {
    let mut lexer = Lexer::new(text, 0, text.len());
    let mut tokens: Vec<Token> = Vec::new();
    while let Some(token) = lexer.next() {
        let initialiser = tokens
            .last()
            .is_some_and(|last| matches!(last.kind, Kind::Equals | Kind::Comma | Kind::OpenBrace));
        if token.kind != Kind::OpenBrace || initialiser {
            tokens.push(token);
            continue;
        }
        match skip_braces(text, token.span.start as usize) {
            Some(end) => {
                tokens.push(Token {
                    kind: Kind::Braces,
                    span: Span {
                        start: token.span.start,
                        end: end as u32,
                    },
                });
                lexer.jump(end);
            }
            None => {
                tokens.push(Token {
                    kind: Kind::Braces,
                    span: Span {
                        start: token.span.start,
                        end: text.len() as u32,
                    },
                });
                return (tokens, Some(token));
            }
        }
    }
    (tokens, None)
}

/// How far a declaration that starts at `start` reaches: behind its `;` or its body. The `;` of a `.pragma` in a
/// function's header ends nothing.
fn declaration_extent(tokens: &[Token], start: usize, text: &str) -> Result<usize, (usize, &'static str)> {
    let mut at = start;
    loop {
        let to = extent(tokens, at)?;
        if let Some(body) = tokens[at..to].iter().position(|token| token.kind == Kind::Braces) {
            return Ok(at + body + 1);
        }
        let pragma = tokens[at..to].iter().rposition(|token| token.kind == Kind::Word);
        let ends_pragma = pragma.is_some_and(|word| tokens[at + word].text(text) == ".pragma");
        let goes_on = tokens.get(to).is_some_and(|next| {
            next.kind == Kind::Braces
                || next.kind == Kind::Word && !starts_item(next.text(text))
                || next.kind == Kind::Word && next.text(text) == ".pragma"
        });
        if !(ends_pragma && goes_on) {
            return Ok(to);
        }
        at = to;
    }
}

/// Words with which a new declaration starts at module level.
const DIRECTIVES: &[&str] = &[
    ".version",
    ".target",
    ".address_size",
    ".file",
    ".section",
    ".alias",
    ".pragma",
    ".entry",
    ".func",
    ".extern",
    ".visible",
    ".weak",
    ".common",
    ".global",
    ".const",
    ".shared",
    ".local",
    ".reg",
    ".param",
    ".tex",
    ".surf",
    ".align",
    ".attribute",
    ".sreg",
];

fn starts_item(word: &str) -> bool {
    DIRECTIVES.contains(&word)
}

/// Reads a module's declarations; bodies are read when asked for.
///
/// # Errors
/// All that is wrong outside of bodies.
pub fn parse(source: Arc<Source>) -> Result<Module, Diagnostics> {
    let source = preprocess::run(source)?;
    let mut findings = Findings::default();
    let module = items(&source, &mut findings);
    findings.finish(&source, module)
}

/// Reads a module with all its bodies.
///
/// # Errors
/// All that is wrong anywhere.
pub fn parse_all(source: Arc<Source>) -> Result<Module, Diagnostics> {
    let source = preprocess::run(source)?;
    let mut findings = Findings::default();
    let module = items(&source, &mut findings);
    if let Err(inside) = module.check() {
        findings.list.extend(inside.list);
    }
    findings.finish(&source, module)
}

fn items(source: &Arc<Source>, findings: &mut Findings) -> Module {
    let module = Module {
        version: (0, 0),
        target: Vec::new(),
        address_size: 64,
        items: Vec::new(),
        source: source.clone(),
    };
    let text = &*source.text;
    if text.len() > u32::MAX as usize {
        findings.push(Diagnostic::error(Span::default(), "the text is longer than 4 GiB"));
        return module;
    }
    let (tokens, unclosed) = scan(text);
    let items = Items {
        text,
        source,
        tokens: &tokens,
        unclosed,
        context: SimpleState(Context::new(text, (9, 0))),
        records: Arc::new(OnceLock::new()),
        module,
        findings,
        version_at: None,
        sized: false,
        complained: false,
        targeted: false,
    };
    items.read()
}

/// A module on its way from tokens to declarations.
struct Items<'t, 's> {
    text: &'s str,
    source: &'s Arc<Source>,
    tokens: &'t [Token],
    /// The `{` of a body without end.
    unclosed: Option<Token>,
    context: SimpleState<Context<'s>>,
    records: Arc<OnceLock<Records>>,
    module: Module,
    findings: &'t mut Findings,
    version_at: Option<Span>,
    /// `.address_size` was there.
    sized: bool,
    /// Said that the module does not start as it should.
    complained: bool,
    /// `.target` was there, or was missed.
    targeted: bool,
}

impl<'t, 's: 't> Items<'t, 's> {
    fn read(mut self) -> Module {
        let variables = declaration::variables::<EmptyErr>();
        let function = declaration::function::<EmptyErr>();
        let mut old = Old::default();
        let mut at = 0;
        while let Some(&first) = self.tokens.get(at) {
            if self.findings.enough() {
                break;
            }
            let word = match first.kind {
                Kind::Word => first.text(self.text),
                _ => "",
            };
            if self.misses_start(first, word) && first.kind != Kind::Word {
                at = self.next_word(at);
                continue;
            }
            if self.context.legacy && self.version_at.is_some() && !self.module.target.is_empty() {
                let mut reading = Reading {
                    tokens: self.tokens,
                    source: self.source,
                    module: &mut self.module,
                    findings: self.findings,
                    records: &self.records,
                };
                if let Some(next) = old.item(at, &mut reading, &mut self.context) {
                    at = next.max(at + 1);
                    continue;
                }
            }
            let (to, result) = match word {
                ".version" | ".target" | ".address_size" | ".file" => {
                    let to = self.next_word(at);
                    (to, self.directive(word, first, at, to))
                }
                ".section" => self.section(at),
                _ => match declaration_extent(self.tokens, at, self.text) {
                    Err((place, message)) => {
                        let rest = &self.tokens[place..];
                        let to = rest
                            .iter()
                            .position(|token| token.kind == Kind::Semicolon)
                            .map_or(self.tokens.len(), |semicolon| place + semicolon + 1);
                        (to, Err(Diagnostic::error(self.tokens[place].span, message)))
                    }
                    Ok(end) => {
                        let to = end.max(at + 1);
                        let statement = &self.tokens[at..to];
                        let result = match word {
                            "" => Err(unexpected(&first, self.text, "a declaration")),
                            ".alias" | ".pragma" => self.directive(word, first, at, to),
                            _ if is_function(statement, self.text) => {
                                self.function(statement, &function).map(|header| {
                                    if header {
                                        old.header(self.module.items.len() - 1);
                                    }
                                })
                            }
                            _ if starts_item(word) => self.variables(statement, &variables),
                            _ => Err(body::unknown_directive(first.span, word, "a declaration", DIRECTIVES)),
                        };
                        (to, result)
                    }
                },
            };
            if let Err(error) = result {
                self.findings.push(error);
            }
            at = to;
        }
        self.end();
        if self.context.legacy {
            let _ = self.records.set(std::mem::take(&mut self.context.records));
            old.finish(&mut self.module, self.findings);
        }
        self.module
    }

    /// The next word with a dot behind the token at `at`.
    fn next_word(&self, at: usize) -> usize {
        let rest = &self.tokens[at + 1..];
        let word = rest.iter().position(|token| token.kind == Kind::Word);
        at + 1 + word.unwrap_or(rest.len())
    }

    /// What stands before `.version` is wrong, whatever it is; saying so once is enough. True if it was said now. Likewise
    /// for `.target`.
    fn misses_start(&mut self, first: Token, word: &str) -> bool {
        let missed = self.version_at.is_none() && !matches!(word, ".version" | ".target") && !self.complained;
        if missed {
            let message = "a PTX module starts with `.version`";
            self.findings.push(match first.kind {
                Kind::Word | Kind::Name | Kind::Dotted => Diagnostic::error(first.span, message),
                _ => unexpected(&first, self.text, "`.version`"),
            });
            self.complained = true;
            if first.kind != Kind::Word {
                return true;
            }
        }
        if self.module.target.is_empty() && self.version_at.is_some() && !self.targeted && word != ".target" {
            self.findings
                .push(Diagnostic::error(first.span, "`.target` is missing behind `.version`"));
            self.targeted = true;
        }
        self.targeted |= word == ".target";
        missed
    }

    /// A directive between `at` and `to`, which `word` starts.
    fn directive(&mut self, word: &str, first: Token, at: usize, to: usize) -> Result<(), Diagnostic> {
        let statement = &self.tokens[at..to];
        let context = &mut self.context;
        match word {
            ".version" => return self.version(first, statement),
            ".target" => {
                let names = read!(target::<EmptyErr>(), target::<Why>(), statement, context)?;
                // PTX 1.x may say the same again (PTX ISA 1.1, Table 77).
                if !(context.legacy && names == self.module.target) {
                    self.module.target.extend(names);
                    self.findings.list.extend(rules::target(&self.module));
                }
            }
            ".address_size" => {
                let size = read!(address_size::<EmptyErr>(), address_size::<Why>(), statement, context)?;
                self.sized = true;
                self.module.address_size = size;
            }
            ".file" => {
                let file = read!(file::<EmptyErr>(), file::<Why>(), statement, context)?;
                self.module.items.push(file);
            }
            ".alias" => {
                let alias = read!(alias::<EmptyErr>(), alias::<Why>(), statement, context)?;
                self.module.items.push(alias);
            }
            _ => {
                let (quick, slow) = (declaration::pragma::<EmptyErr>(), declaration::pragma::<Why>());
                let texts = read!(quick, slow, statement, context)?;
                self.module.items.push(Item::Pragma(texts));
            }
        }
        Ok(())
    }

    fn version(&mut self, first: Token, statement: &'t [Token]) -> Result<(), Diagnostic> {
        let context = &mut self.context;
        if let Some(before) = self.version_at {
            let again = read!(version::<EmptyErr>(), version::<Why>(), statement, context);
            if context.legacy && again.is_ok_and(|again| again == self.module.version) {
                return Ok(());
            }
            let line = self.source.line_column(before.start).0;
            return Err(Diagnostic::error(first.span, "`.version` stands once, at the start")
                .note(format!("the first one is in line {line}")));
        }
        self.version_at = Some(first.span);
        if !self.module.target.is_empty() && !self.complained {
            self.complained = true;
            self.findings
                .push(Diagnostic::error(first.span, "`.version` comes before `.target`"));
        }
        let version = read!(version::<EmptyErr>(), version::<Why>(), statement, context)?;
        self.module.version = version;
        (context.version, context.legacy) = (version, version < (2, 0));
        rules::version(version, first.span)
    }

    /// The section at `at`, and where it ends.
    fn section(&mut self, at: usize) -> (usize, Result<(), Diagnostic>) {
        let rest = &self.tokens[at..];
        let body = rest.iter().position(|token| token.kind == Kind::Braces);
        let to = at + body.map_or(rest.len(), |body| body + 1);
        let statement = &self.tokens[at..to];
        let read = read!(section::<EmptyErr>(), section::<Why>(), statement, &mut self.context);
        let result = read.map(|(name, span)| {
            self.module.items.push(Item::Section(Section {
                name,
                span,
                source: self.source.clone(),
            }));
        });
        (to, result)
    }

    /// True for the header of a kernel whose code follows without braces (PTX 1.x).
    fn function(
        &mut self,
        statement: &'t [Token],
        quick: &impl Part<'t, 's, Function, EmptyErr>,
    ) -> Result<bool, Diagnostic> {
        let context = &mut self.context;
        let mut function = read!(quick, declaration::function::<Why>(), statement, context)?;
        let braces = statement.last().filter(|last| last.kind == Kind::Braces);
        // The body without end is read when all else has been.
        let braces = braces.filter(|last| self.unclosed.is_none_or(|open| open.span.start != last.span.start));
        function.body = braces.map(|braces| Body {
            span: braces.span,
            source: self.source.clone(),
            version: context.version,
            records: self.records.clone(),
            parsed: Arc::new(OnceLock::new()),
            checked: Arc::new(OnceLock::new()),
        });
        self.findings
            .list
            .extend(rules::function(&function, context.legacy, context.version));
        let header = context.legacy && function.entry && function.body.is_none();
        self.module.items.push(Item::Function(Box::new(function)));
        Ok(header)
    }

    fn variables(
        &mut self,
        statement: &'t [Token],
        quick: &impl Part<'t, 's, Vec<Variable>, EmptyErr>,
    ) -> Result<(), Diagnostic> {
        let context = &mut self.context;
        let variables = read!(quick, declaration::variables::<Why>(), statement, context)?;
        let wrong = |one| rules::variable(one, Scope::Module, context.legacy, context.version);
        self.findings.list.extend(variables.iter().filter_map(wrong));
        let variables = variables.into_iter().map(|one| Item::Variable(Box::new(one)));
        self.module.items.extend(variables);
        Ok(())
    }

    /// What there is to say when all tokens are read.
    fn end(&mut self) {
        let end = self.text.len() as u32;
        let end = Span { start: end, end };
        if let Some(brace) = self.unclosed {
            // What follows is read as the body it claims to be, to find the place where a brace went missing.
            let before = self.findings.list.len();
            let mode = Mode {
                version: self.context.version,
                closed: false,
                records: Some(&self.context.records),
            };
            let start = brace.span.end as usize;
            body::statements(self.text, start, self.text.len(), mode, self.findings);
            if self.findings.list.len() == before {
                let line = self.source.line_column(brace.span.start).0;
                self.findings.push(
                    Diagnostic::error(end, "the text ends within a body").note(format!("its `{{` is in line {line}")),
                );
            }
        } else if self.version_at.is_none() && !self.complained {
            self.findings
                .push(Diagnostic::error(end, "a PTX module starts with `.version`"));
        }
        if !self.targeted && self.findings.list.is_empty() {
            self.findings
                .push(Diagnostic::error(end, "`.target` is missing behind `.version`"));
        }
        if !self.sized && self.module.version < (2, 3) {
            self.module.address_size = 32;
        }
    }
}

fn address_size<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, u8, E> {
    word(".address_size")
        .ignore_then(integer())
        .try_map(|size, span| match size {
            32 => Ok(32),
            64 => Ok(64),
            _ => Err(E::because(span, "addresses have 32 or 64 bits")),
        })
}
