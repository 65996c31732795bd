//! What a module holds in PTX 1.x and in no later version (PTX ISA 1.1, chapters 5 and 9): structures, code outside of
//! functions, linkage said apart, debug data, parameters declared in bodies. It becomes the tree that later versions would
//! give, so that nobody behind the reader needs to know.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use chumsky::Parser;
use chumsky::error::EmptyErr;
use chumsky::extra::SimpleState;

use super::Source;
use super::ast::{
    Body, Expr, Function, Guard, Init, Instruction, Item, Linkage, Module, Name, Opcode, Operand, Parsed, Place, Space,
    Span, Statement, Type, Variable,
};
use super::body::{self, Mode, read};
use super::declaration;
use super::diagnostic::{Diagnostic, Findings};
use super::grammar::Why;
use super::lexer::{Kind, Token, skip_braces};
use super::names::Context;
use super::record::{self, Record, Records, settled};

/// The entry point that code outside of functions makes; the first specification calls it anonymous (Table 68).
const ANONYMOUS: &str = "_";

/// Until 1.4 kernels had no parameter list (PTX ISA 3.1, .entry).
const PARAMETER_LISTS: (u16, u16) = (1, 4);

/// Parameters of file scope times kernels.
const MAX_COMMON: usize = 1 << 16;

type Outcome<T> = Result<T, (Span, String)>;

// ---- variables ------------------------------------------------------------------------------------------------------

/// Makes a declaration one of later versions: a structure becomes an array of bytes, open dimensions get their sizes,
/// initial values the kind that their type has.
///
/// # Errors
/// An initialiser that does not fit the structure.
pub fn settle(variable: &mut Variable, record: Option<Arc<Record>>, records: &mut Records) -> Outcome<()> {
    if let Some(init) = &mut variable.init
        && record.is_none()
    {
        settle_values(init, variable.ty);
        if variable.ty == Type::F16 {
            // Its values are bits now.
            variable.ty = Type::B16;
        }
    }
    if let Some(Init::List(list)) = &variable.init {
        let mut rows: Vec<&Init> = list.iter().collect();
        let mut count = list.len();
        for dim in &mut variable.dims {
            dim.get_or_insert(count as u64);
            let inner = rows.iter().filter_map(|row| match row {
                Init::List(list) => Some(list),
                _ => None,
            });
            count = inner.clone().map(Vec::len).max().unwrap_or(0);
            rows = inner.flatten().collect();
        }
    }
    let Some(record) = record else {
        if !records.variables.is_empty() {
            // It hides a structure of that name.
            records.variables.remove(&variable.name.text);
        }
        return Ok(());
    };
    variable.align = variable.align.or(Some(record.align));
    if let Some(init) = variable.init.take() {
        let span = variable.name.span;
        variable.init = Some(structures(
            &init,
            variable.dims.len(),
            &record,
            span,
            &mut records.room,
        )?);
    }
    variable.dims.push(Some(record.size));
    records.variables.insert(variable.name.text.clone(), record);
    Ok(())
}

fn settle_values(init: &mut Init, ty: Type) {
    match init {
        Init::Value(value) => {
            let zero = Expr::Int {
                bits: 0,
                unsigned: false,
                span: value.span(),
            };
            *value = settled(std::mem::replace(value, zero), ty);
        }
        Init::List(list) => list.iter_mut().for_each(|one| settle_values(one, ty)),
        Init::Fields(_) => {}
    }
}

/// The initialiser of an array of structures of `dims` dimensions, as bytes.
fn structures(init: &Init, dims: usize, record: &Record, span: Span, room: &mut usize) -> Outcome<Init> {
    if dims == 0 {
        return record.bytes(init, span, room);
    }
    match init {
        Init::List(list) => {
            let rows = list.iter().map(|row| structures(row, dims - 1, record, span, room));
            rows.collect::<Outcome<Vec<Init>>>().map(Init::List)
        }
        _ => Err((span, "an array is initialised by a list in braces".to_owned())),
    }
}

/// `.struct name { … };` and `.union name { … };` at the token `at`, its body at `braces` in the text.
///
/// # Errors
/// What is wrong with the definition.
fn define(tokens: &[Token], at: usize, braces: Span, context: &mut Context<'_>) -> Outcome<()> {
    let word = context.at(tokens[at].span);
    let Some(name) = tokens.get(at + 1).filter(|token| token.kind == Kind::Name) else {
        return Err((tokens[at].span, format!("`{word}` needs a name")));
    };
    let record = record::define(context.source, braces, word == ".union", &context.records)?;
    let name = context.name(name.span);
    if context
        .records
        .types
        .insert(name.text.clone(), Arc::new(record))
        .is_some()
    {
        return Err((name.span, format!("there is a structure `{}` already", name.text)));
    }
    Ok(())
}

// ---- modules --------------------------------------------------------------------------------------------------------

/// What is known of a module before its end.
#[derive(Default)]
pub struct Old {
    /// `.extern foo`, `.visible foo`
    announced: Vec<(Name, Linkage)>,
    /// A kernel's header without body, whose code may follow: its item.
    open: Option<usize>,
    files: u64,
}

/// Where a module keeps what is read.
pub struct Reading<'a> {
    pub tokens: &'a [Token],
    pub source: &'a Arc<Source>,
    pub module: &'a mut Module,
    pub findings: &'a mut Findings,
    pub records: &'a Arc<OnceLock<Records>>,
}

impl Old {
    /// Reads the item that starts at token `at`, if it is one that only PTX 1.x has; where the next one starts.
    pub fn item(
        &mut self,
        at: usize,
        reading: &mut Reading<'_>,
        context: &mut SimpleState<Context<'_>>,
    ) -> Option<usize> {
        let tokens = reading.tokens;
        let text = &*reading.source.text;
        let kind = |at: usize| tokens.get(at).map(|token| token.kind);
        let first = *tokens.get(at)?;
        if matches!(first.kind, Kind::Name | Kind::Dotted | Kind::At | Kind::Braces) {
            return Some(self.code(at, reading, context));
        }
        match first.text(text) {
            ".byte" => {
                let mut to = at + 1;
                while matches!(kind(to), Some(Kind::Number | Kind::Comma | Kind::Minus)) {
                    to += 1;
                }
                to += usize::from(kind(to) == Some(Kind::Semicolon));
                reading.debug(at, to);
                Some(to)
            }
            ".section" if kind(at + 2) == Some(Kind::Comma) => {
                let mut to = at + 2;
                while kind(to) == Some(Kind::Comma) {
                    to += 1;
                    to += usize::from(kind(to) == Some(Kind::At));
                    to += usize::from(matches!(kind(to), Some(Kind::Text | Kind::Word | Kind::Name)));
                }
                to += usize::from(kind(to) == Some(Kind::Semicolon));
                reading.debug(at, to);
                Some(to)
            }
            ".file" if kind(at + 1) == Some(Kind::Text) => {
                self.files += 1;
                let name = tokens[at + 1].text(text);
                reading.module.items.push(Item::File {
                    index: self.files,
                    name: name[1..name.len() - 1].to_owned(),
                    timestamp: None,
                });
                Some(at + 2)
            }
            word @ (".extern" | ".visible") if kind(at + 1) == Some(Kind::Name) => {
                let linkage = if word == ".extern" {
                    Linkage::Extern
                } else {
                    Linkage::Visible
                };
                self.announced.push((context.name(tokens[at + 1].span), linkage));
                Some(at + 2 + usize::from(kind(at + 2) == Some(Kind::Semicolon)))
            }
            // All special registers are there already (5.1.2).
            ".sreg" => {
                let rest = &tokens[at..];
                let end = rest.iter().position(|token| token.kind == Kind::Semicolon);
                Some(end.map_or(tokens.len(), |end| at + end + 1))
            }
            ".struct" | ".union" => {
                let braces = tokens[at..].iter().take(3).position(|token| token.kind == Kind::Braces);
                let Some(braces) = braces else {
                    let message = "a structure's members stand in braces";
                    reading.findings.push(Diagnostic::error(first.span, message));
                    return Some(at + 1);
                };
                let to = at + braces + 1;
                if let Err((span, message)) = define(tokens, at, tokens[at + braces].span, context) {
                    reading.findings.push(Diagnostic::error(span, message));
                }
                Some(to + usize::from(kind(to) == Some(Kind::Semicolon)))
            }
            // `.b32 foo;`: without a state space it is global memory (Table 74).
            word if first.kind == Kind::Word && Type::from_word(&word[1..]).is_some() => {
                let rest = &tokens[at..];
                let to = at + rest.iter().position(|token| token.kind == Kind::Semicolon)? + 1;
                let read = read!(
                    declaration::variables::<EmptyErr>(),
                    declaration::variables::<Why>(),
                    &tokens[at..to],
                    context
                );
                match read {
                    Ok(list) => reading.module.items.extend(list.into_iter().map(|mut variable| {
                        variable.space = Space::Global;
                        Item::Variable(Box::new(variable))
                    })),
                    Err(found) => reading.findings.push(found),
                }
                Some(to)
            }
            _ => None,
        }
    }

    /// A kernel without a body was read: code may follow.
    pub fn header(&mut self, item: usize) {
        self.open = Some(item);
    }

    /// Code outside of braces: of the kernel whose header stands before it, or of the anonymous entry point.
    fn code(&mut self, at: usize, reading: &mut Reading<'_>, context: &mut SimpleState<Context<'_>>) -> usize {
        let text = &*reading.source.text;
        let rest = &reading.tokens[at..];
        let ends = |token: &Token| {
            token.kind == Kind::Word
                && matches!(
                    token.text(text),
                    ".entry"
                        | ".func"
                        | ".extern"
                        | ".visible"
                        | ".version"
                        | ".target"
                        | ".file"
                        | ".section"
                        | ".byte"
                )
        };
        let to = rest.iter().position(ends).unwrap_or(rest.len());
        let start = rest[0].span.start as usize;
        let end = rest.get(to).map_or(text.len(), |token| token.span.start as usize);
        let mode = Mode {
            version: context.version,
            closed: true,
            records: Some(&context.records),
        };
        let statements = body::statements(text, start, end, mode, reading.findings);
        let span = Span::new(start, end);
        let body = Body {
            span,
            source: reading.source.clone(),
            version: context.version,
            records: reading.records.clone(),
            parsed: Arc::new(OnceLock::from(Parsed::good(statements))),
            checked: Arc::default(),
        };
        let items = &mut reading.module.items;
        match self.open.take().map(|item| &mut items[item]) {
            Some(Item::Function(kernel)) => kernel.body = Some(body),
            _ => items.push(Item::Function(Box::new(Function {
                linkage: Linkage::Internal,
                entry: true,
                name: Name {
                    text: ANONYMOUS.into(),
                    span: rest[0].span,
                },
                dims: Vec::new(),
                returns: Vec::new(),
                params: Vec::new(),
                variadic: false,
                noreturn: false,
                directives: Vec::new(),
                attributes: Vec::new(),
                body: Some(body),
                span,
            }))),
        }
        at + to
    }

    /// What can only be done when everything is read.
    pub fn finish(self, module: &mut Module, findings: &mut Findings) {
        let mut announced: HashMap<Arc<str>, (Name, Linkage)> = HashMap::new();
        for (name, linkage) in self.announced {
            announced.entry(name.text.clone()).or_insert((name, linkage));
        }
        let mut declared: HashSet<Arc<str>> = HashSet::new();
        for item in &mut module.items {
            let (name, own) = match item {
                Item::Variable(variable) => (&variable.name, &mut variable.linkage),
                Item::Function(function) => (&function.name, &mut function.linkage),
                _ => continue,
            };
            if let Some((_, linkage)) = announced.get(&name.text) {
                declared.insert(name.text.clone());
                if *own == Linkage::Internal {
                    *own = *linkage;
                }
            }
        }
        for (name, linkage) in announced.values() {
            if *linkage == Linkage::Visible && !declared.contains(&name.text) {
                let message = format!("`{}` is said to be visible and not declared", name.text);
                findings.push(Diagnostic::error(name.span, message));
            }
        }
        parameters(module, findings);
    }
}

impl Reading<'_> {
    /// Tokens `at..to` as a piece of debug information.
    fn debug(&mut self, at: usize, to: usize) {
        let tokens = &self.tokens[at..to];
        let mut text = String::new();
        for (index, token) in tokens.iter().enumerate() {
            let word = token.text(&self.source.text);
            let tight = index == 0 || matches!(token.kind, Kind::Comma | Kind::Semicolon);
            let after_mark = index > 0 && matches!(tokens[index - 1].kind, Kind::At | Kind::Minus);
            if !tight && !after_mark {
                text.push(' ');
            }
            text.push_str(word);
        }
        self.module.items.push(Item::Debug(text));
    }
}

/// Kernels' parameters that are declared outside of a list: at file scope, where every kernel has them ("User parameters
/// begin at address zero", 5.1.6), and in the body.
fn parameters(module: &mut Module, findings: &mut Findings) {
    let is_param = |space| matches!(space, Space::Param | Space::ParamEntry);
    let mut common = Vec::new();
    module.items.retain(|item| match item {
        Item::Variable(variable) if is_param(variable.space) => {
            common.push((**variable).clone());
            false
        }
        _ => true,
    });
    let kernels = module
        .items
        .iter()
        .filter(|item| matches!(item, Item::Function(one) if one.entry))
        .count();
    if let Some(last) = common.get(MAX_COMMON / kernels.max(1)) {
        let message = "too many parameters at file scope, which every kernel has";
        findings.push(Diagnostic::error(last.name.span, message));
        return;
    }
    let in_bodies = module.version < PARAMETER_LISTS;
    for item in &mut module.items {
        let Item::Function(kernel) = item else { continue };
        if !kernel.entry {
            continue;
        }
        let mut own = Vec::new();
        if let Some(body) = &mut kernel.body
            && in_bodies
            && body.text().contains(".param")
            && let Ok(statements) = body.statements()
            && statements
                .iter()
                .any(|one| matches!(one, Statement::Variable(variable) if is_param(variable.space)))
        {
            let mut rest = Vec::with_capacity(statements.len());
            for statement in statements {
                match statement {
                    Statement::Variable(variable) if is_param(variable.space) => own.push((**variable).clone()),
                    other => rest.push(other.clone()),
                }
            }
            body.parsed = Arc::new(OnceLock::from(Parsed::good(rest)));
        }
        let mut params: Vec<Variable> = common
            .iter()
            .filter(|variable| !kernel.params.iter().chain(&own).any(|one| one.name == variable.name))
            .cloned()
            .collect();
        params.append(&mut kernel.params);
        params.append(&mut own);
        kernel.params = params;
    }
}

// ---- bodies ---------------------------------------------------------------------------------------------------------

/// What only PTX 1.x has at the place where a statement of a body starts.
pub enum Special {
    /// Something that ends at this token.
    Skip(usize),
    /// A statement that ends at this token.
    Statement(usize, Statement),
    /// `@p {`: a guarded block starts behind this token. The branch around it, and the label behind.
    Guarded(usize, Instruction, Name),
}

/// The special statement at token `at`, if one is there.
///
/// # Errors
/// What is wrong with it.
pub fn special(tokens: &[Token], at: usize, context: &mut Context<'_>) -> Outcome<Option<Special>> {
    let text = context.source;
    let kind = |at: usize| tokens.get(at).map(|token| token.kind);
    let first = tokens[at];
    if first.kind == Kind::At {
        let negated = kind(at + 1) == Some(Kind::Not);
        let name = at + 1 + usize::from(negated);
        if kind(name) != Some(Kind::Name) || kind(name + 1) != Some(Kind::OpenBrace) {
            return Ok(None);
        }
        let span = first.span.to(tokens[name + 1].span);
        let label = Name {
            text: format!("$guarded_{}", first.span.start).into(),
            span,
        };
        let around = Instruction {
            guard: Some(Guard {
                negated: !negated,
                predicate: context.name(tokens[name].span),
            }),
            opcode: Opcode {
                text: "bra".into(),
                span,
            },
            operands: vec![Operand::Name {
                name: label.clone(),
                select: None,
                offset: 0,
            }],
            span,
        };
        return Ok(Some(Special::Guarded(name + 2, around, label)));
    }
    if first.kind != Kind::Word {
        return Ok(None);
    }
    match first.text(text) {
        // `.loc line`, of the only file (Table 72).
        ".loc" if kind(at + 1) == Some(Kind::Number) && kind(at + 2) != Some(Kind::Number) => {
            let line = tokens[at + 1];
            match line.text(text).parse() {
                Ok(line) => Ok(Some(Special::Statement(
                    at + 2,
                    Statement::Loc {
                        file: 1,
                        line,
                        column: 0,
                        function: None,
                        offset: 0,
                        inlined_at: None,
                        place: Place(first.span.to(tokens[at + 1].span)),
                    },
                ))),
                Err(_) => Err((line.span, "lines are 32-bit numbers".to_owned())),
            }
        }
        ".sreg" => {
            let end = tokens[at..].iter().position(|token| token.kind == Kind::Semicolon);
            Ok(Some(Special::Skip(end.map_or(tokens.len(), |end| at + end + 1))))
        }
        ".struct" | ".union" => {
            let open = tokens[at..].iter().take(3).find(|token| token.kind == Kind::OpenBrace);
            let end = open.and_then(|open| skip_braces(text, open.span.start as usize).map(|end| (open.span, end)));
            let Some((open, end)) = end else {
                return Err((first.span, "a structure's members stand in braces".to_owned()));
            };
            let braces = Span::new(open.start as usize, end);
            define(tokens, at, braces, context)?;
            let behind = tokens[at..].iter().position(|token| token.span.start as usize >= end);
            let to = behind.map_or(tokens.len(), |behind| at + behind);
            Ok(Some(Special::Skip(to + usize::from(kind(to) == Some(Kind::Semicolon)))))
        }
        _ => Ok(None),
    }
}
