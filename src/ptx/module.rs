//! The text of a module → its declarations. Function bodies and sections are skipped by brace matching and parsed when
//! somebody asks for them: loading a module costs a scan (PTX ISA, Source Format; PTX Module Directives).

use std::sync::{Arc, OnceLock};

use chumsky::Parser;
use chumsky::error::EmptyErr;
use chumsky::extra::SimpleState;
use chumsky::prelude::*;

use super::Source;
use super::ast::{Body, Item, Module, Name, Section, Span};
use super::body::{self, Mode, extent, is_function, read};
use super::declaration;
use super::diagnostic::{Diagnostic, Diagnostics, Findings, unexpected};
use super::grammar::{Failure, Part, Why, integer, mark, name, token, word};
use super::legacy::{Old, Reading};
use super::lexer::{Kind, Lexer, Token, skip_braces};
use super::names::Context;
use super::preprocess;
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
fn starts_item(word: &str) -> bool {
    matches!(
        word,
        ".version"
            | ".target"
            | ".address_size"
            | ".file"
            | ".section"
            | ".alias"
            | ".pragma"
            | ".entry"
            | ".func"
            | ".extern"
            | ".visible"
            | ".weak"
            | ".common"
            | ".global"
            | ".const"
            | ".shared"
            | ".local"
            | ".reg"
            | ".param"
            | ".tex"
            | ".surf"
            | ".align"
            | ".attribute"
            | ".sreg"
    )
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
    let mut module = Module {
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
    let tokens = &tokens[..];
    let mut context = SimpleState(Context::new(text, (9, 0)));
    let variables = declaration::variables::<EmptyErr>();
    let function = declaration::function::<EmptyErr>();
    let (mut old, records) = (Old::default(), Arc::new(OnceLock::new()));
    let (mut version_at, mut size_at) = (None::<Span>, None);
    let (mut complained, mut targeted) = (false, false);
    let mut at = 0;
    while let Some(&first) = tokens.get(at) {
        if findings.enough() {
            break;
        }
        let word = if first.kind == Kind::Word { first.text(text) } else { "" };
        let next_word = || {
            let rest = &tokens[at + 1..];
            at + 1
                + rest
                    .iter()
                    .position(|token| token.kind == Kind::Word)
                    .unwrap_or(rest.len())
        };
        // What stands before `.version` is wrong, whatever it is; saying so once is enough.
        if version_at.is_none() && word != ".version" && !complained {
            let message = "a PTX module starts with `.version`";
            findings.push(match first.kind {
                Kind::Word | Kind::Name | Kind::Dotted => Diagnostic::error(first.span, message),
                _ => unexpected(&first, text, "`.version`"),
            });
            complained = true;
            if first.kind != Kind::Word {
                at = next_word();
                continue;
            }
        }
        if module.target.is_empty() && version_at.is_some() && !targeted && word != ".target" {
            targeted = true;
            findings.push(Diagnostic::error(first.span, "`.target` is missing behind `.version`"));
        }
        targeted |= word == ".target";
        if context.legacy && version_at.is_some() && !module.target.is_empty() {
            let mut reading = Reading {
                tokens,
                source,
                module: &mut module,
                findings,
                records: &records,
            };
            if let Some(next) = old.item(at, &mut reading, &mut context) {
                at = next.max(at + 1);
                continue;
            }
        }
        let to;
        let result = match word {
            ".version" if version_at.is_some() => {
                to = next_word();
                let again = read!(version::<EmptyErr>(), version::<Why>(), &tokens[at..to], &mut context);
                if context.legacy && again.is_ok_and(|again| again == module.version) {
                    at = to;
                    continue;
                }
                let line = version_at.map_or(1, |before| source.line_column(before.start).0);
                Err(Diagnostic::error(first.span, "`.version` stands once, at the start")
                    .note(format!("the first one is in line {line}")))
            }
            ".version" => {
                to = next_word();
                version_at = Some(first.span);
                let statement = &tokens[at..to];
                read!(version::<EmptyErr>(), version::<Why>(), statement, &mut context).and_then(|version| {
                    module.version = version;
                    (context.version, context.legacy) = (version, version < (2, 0));
                    rules::version(version).map_err(|message| Diagnostic::error(first.span, message))?;
                    Ok(())
                })
            }
            ".target" => {
                to = next_word();
                let statement = &tokens[at..to];
                read!(target::<EmptyErr>(), target::<Why>(), statement, &mut context).map(|names| {
                    // PTX 1.x may say the same again (PTX ISA 1.1, Table 77).
                    if context.legacy && names == module.target {
                        return;
                    }
                    module.target.extend(names);
                    findings.list.extend(rules::target(&module));
                })
            }
            ".address_size" => {
                to = next_word();
                let statement = &tokens[at..to];
                read!(
                    address_size::<EmptyErr>(),
                    address_size::<Why>(),
                    statement,
                    &mut context
                )
                .map(|size| {
                    size_at = Some(first.span);
                    module.address_size = size;
                })
            }
            ".file" => {
                to = next_word();
                let statement = &tokens[at..to];
                read!(file::<EmptyErr>(), file::<Why>(), statement, &mut context).map(|file| module.items.push(file))
            }
            ".section" => {
                let rest = &tokens[at..];
                to = at
                    + rest
                        .iter()
                        .position(|token| token.kind == Kind::Braces)
                        .map_or(rest.len(), |body| body + 1);
                let statement = &tokens[at..to];
                read!(section::<EmptyErr>(), section::<Why>(), statement, &mut context).map(|(name, span)| {
                    module.items.push(Item::Section(Section {
                        name,
                        span,
                        source: source.clone(),
                    }));
                })
            }
            _ => match declaration_extent(tokens, at, text) {
                Err((place, message)) => {
                    to = tokens[place..]
                        .iter()
                        .position(|token| token.kind == Kind::Semicolon)
                        .map_or(tokens.len(), |semicolon| place + semicolon + 1);
                    Err(Diagnostic::error(tokens[place].span, message))
                }
                Ok(end) => {
                    to = end.max(at + 1);
                    let statement = &tokens[at..to];
                    match word {
                        ".alias" => read!(alias::<EmptyErr>(), alias::<Why>(), statement, &mut context)
                            .map(|alias| module.items.push(alias)),
                        ".pragma" => read!(
                            declaration::pragma::<EmptyErr>(),
                            declaration::pragma::<Why>(),
                            statement,
                            &mut context
                        )
                        .map(|texts| module.items.push(Item::Pragma(texts))),
                        "" => Err(unexpected(&first, text, "a declaration")),
                        _ if is_function(statement, text) => {
                            read!(function, declaration::function::<Why>(), statement, &mut context).map(
                                |mut function| {
                                    let braces = statement.last().filter(|last| last.kind == Kind::Braces);
                                    // The body without end is read below.
                                    let braces = braces
                                        .filter(|last| unclosed.is_none_or(|open| open.span.start != last.span.start));
                                    function.body = braces.map(|braces| Body {
                                        span: braces.span,
                                        source: source.clone(),
                                        version: context.version,
                                        records: records.clone(),
                                        parsed: Arc::new(OnceLock::new()),
                                    });
                                    findings
                                        .list
                                        .extend(rules::function(&function, context.legacy, context.version));
                                    if context.legacy && function.entry && function.body.is_none() {
                                        old.header(module.items.len());
                                    }
                                    module.items.push(Item::Function(Box::new(function)));
                                },
                            )
                        }
                        _ if starts_item(word) => {
                            read!(variables, declaration::variables::<Why>(), statement, &mut context).map(
                                |variables| {
                                    let wrong =
                                        |one| rules::variable(one, Scope::Module, context.legacy, context.version);
                                    findings.list.extend(variables.iter().filter_map(wrong));
                                    let variables = variables.into_iter().map(|one| Item::Variable(Box::new(one)));
                                    module.items.extend(variables);
                                },
                            )
                        }
                        _ => Err(Diagnostic::error(
                            first.span,
                            format!("`{word}` does not start a declaration"),
                        )),
                    }
                }
            },
        };
        if let Err(error) = result {
            findings.push(error);
        }
        at = to;
    }
    if let Some(brace) = unclosed {
        // What follows is read as the body it claims to be, to find the place where a brace went missing.
        let before = findings.list.len();
        let mode = Mode {
            version: context.version,
            closed: false,
            records: Some(&context.records),
        };
        body::statements(text, brace.span.end as usize, text.len(), mode, findings);
        if findings.list.len() == before {
            let end = text.len() as u32;
            let line = source.line_column(brace.span.start).0;
            findings.push(
                Diagnostic::error(Span { start: end, end }, "the text ends within a body")
                    .note(format!("its `{{` is in line {line}")),
            );
        }
    } else if version_at.is_none() && !complained {
        let end = text.len() as u32;
        findings.push(Diagnostic::error(
            Span { start: end, end },
            "a PTX module starts with `.version`",
        ));
    }
    if !targeted && findings.list.is_empty() {
        let end = text.len() as u32;
        findings.push(Diagnostic::error(
            Span { start: end, end },
            "`.target` is missing behind `.version`",
        ));
    }
    if size_at.is_none() && module.version < (2, 3) {
        module.address_size = 32;
    }
    if context.legacy {
        let _ = records.set(std::mem::take(&mut context.records));
        old.finish(&mut module, findings);
    }
    module
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
