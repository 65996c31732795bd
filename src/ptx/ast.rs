//! The syntax tree of a PTX module: what the text says, with a span on everything a message may point at.
//!
//! The tree knows the *shape* of statements only (guard, opcode with dotted modifiers, operands); what an opcode means
//! is the instruction table's business ([`crate::isa`]). Names are kept as written.

use std::sync::{Arc, OnceLock};

use super::diagnostic::{Diagnostic, Diagnostics};
use super::record::Records;
pub use crate::isa::types::{Space, Type};

/// Half-open byte range in the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Span {
        Span {
            start: start as u32,
            end: end as u32,
        }
    }
    pub fn to(self, end: Span) -> Span {
        Span {
            start: self.start,
            end: end.end,
        }
    }
}

/// Where something stands that is equal to its like elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place(pub Span);

impl PartialEq for Place {
    fn eq(&self, _: &Place) -> bool {
        true
    }
}

/// A name as written (`%r1`, `foo`, `$L__BB0_2`, `_ZN…`) and where. Two names are equal when they read the same:
/// spans do not count, so that trees of different texts can be compared.
#[derive(Clone, Debug, Eq)]
pub struct Name {
    pub text: Arc<str>,
    pub span: Span,
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.text == other.text
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Linkage {
    #[default]
    Internal,
    Extern,
    Visible,
    Weak,
    Common,
}

/// A whole module. Function bodies are parsed when first asked for ([`Body::statements`]).
#[derive(Debug, Clone)]
pub struct Module {
    /// `.version major.minor`
    pub version: (u16, u16),
    /// `.target sm_90a, texmode_independent, debug …` as written, in order.
    pub target: Vec<Name>,
    /// 32 or 64; 64 when `.address_size` is absent on a target that implies it.
    pub address_size: u8,
    pub items: Vec<Item>,
    /// The text that all spans point into.
    pub source: Arc<super::Source>,
}

impl PartialEq for Module {
    fn eq(&self, other: &Module) -> bool {
        let Module {
            version,
            target,
            address_size,
            items,
            source: _,
        } = self;
        *version == other.version
            && *target == other.target
            && *address_size == other.address_size
            && *items == other.items
    }
}

impl Module {
    /// Parses every body.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn check(&self) -> Result<(), Diagnostics> {
        let bodies = self.items.iter().filter_map(|item| match item {
            Item::Function(function) => function.body.as_ref(),
            Item::Variable(_)
            | Item::Alias { .. }
            | Item::File { .. }
            | Item::Section(_)
            | Item::Pragma(_)
            | Item::Debug(_) => None,
        });
        let mut found: Option<Diagnostics> = None;
        for wrong in bodies.filter_map(|body| body.statements().err()) {
            match &mut found {
                Some(found) => found.list.extend(wrong.list.iter().cloned()),
                None => found = Some(wrong.clone()),
            }
        }
        found.map_or(Ok(()), Err)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    Variable(Box<Variable>),
    Function(Box<Function>),
    /// `.alias a, b;`
    Alias {
        name: Name,
        target: Name,
    },
    /// `.file index "name" {, timestamp, size}`
    File {
        index: u64,
        name: String,
        timestamp: Option<(u64, u64)>,
    },
    /// `.section name { … }`
    Section(Section),
    /// `.pragma "…", "…";` at module level
    Pragma(Vec<String>),
    /// `.byte 0x7d, 0x01` and `.section .debug_info, "",@progbits` of PTX 1.x: debug information, kept as text.
    Debug(String),
}

impl Item {
    /// What it is called, if others may name it.
    pub fn name(&self) -> Option<&Name> {
        match self {
            Item::Variable(variable) => Some(&variable.name),
            Item::Function(function) => Some(&function.name),
            Item::Alias { name, .. } => Some(name),
            Item::File { .. } | Item::Section(_) | Item::Pragma(_) | Item::Debug(_) => None,
        }
    }
}

/// `.section name { … }` kept as text: debuggers read it, execution does not.
#[derive(Debug, Clone)]
pub struct Section {
    pub name: Name,
    /// From `{` to `}` inclusive.
    pub span: Span,
    pub(super) source: Arc<super::Source>,
}

impl Section {
    /// From `{` to `}` inclusive.
    pub fn text(&self) -> &str {
        &self.source.text[self.span.start as usize..self.span.end as usize]
    }
}

/// A variable declaration, at module level or in a body. `.reg .b32 %r<100>;` is one declaration with `count`.
#[derive(Debug, Clone)]
pub struct Variable {
    pub linkage: Linkage,
    pub space: Space,
    /// `.const[n]` of PTX 1.x.
    pub bank: Option<u32>,
    pub align: Option<u64>,
    /// 2, 3, 4 or 8 for `.v2` …
    pub vector: Option<u8>,
    pub ty: Type,
    pub name: Name,
    /// `%r<100>` declares `%r0` … `%r99`.
    pub count: Option<u32>,
    /// Array dimensions; `None` is an unsized first dimension.
    pub dims: Vec<Option<u64>>,
    pub init: Option<Init>,
    /// `.attribute(.managed)`, `.attribute(.unified(a, b))` … as (name, arguments).
    pub attributes: Vec<(Name, Vec<u64>)>,
    /// `.ptr{.space}{.align n}` of a kernel parameter.
    pub ptr: Option<(Space, Option<u64>)>,
    pub span: Span,
}

/// An initialiser: braces nest as written.
#[derive(Debug, Clone, PartialEq)]
pub enum Init {
    List(Vec<Init>),
    Value(Expr),
    /// `{ addr_mode_0 = wrap, filter_mode = linear }` of textures, surfaces and samplers.
    Fields(Vec<(Name, Expr)>),
}

/// A constant expression, not yet evaluated where it holds names; literals fold while parsing.
#[derive(Debug, Clone)]
pub enum Expr {
    /// Integer constant: 64 bits, `unsigned` when it must be (a `U` suffix, or beyond `i64`); PTX ISA, Constants.
    Int { bits: u64, unsigned: bool, span: Span },
    /// `0f3F800000`
    F32 { bits: u32, span: Span },
    /// `1.0`, `0d3FF0…`: 64-bit; narrows where a 32-bit one is expected.
    F64 { bits: u64, span: Span },
    /// `name`, `name+8`, `generic(name)+8`; `mask` is that of a byte initialiser `0xFF00(name+4)`.
    Symbol {
        name: Name,
        offset: i64,
        generic: bool,
        mask: Option<u64>,
        span: Span,
    },
}

/// `.entry` or `.func`, declared or defined.
#[derive(Debug, Clone)]
pub struct Function {
    pub linkage: Linkage,
    pub entry: bool,
    pub name: Name,
    /// `.entry k[16][8]` of PTX 1.x: the block's dimensions, x last; `None` where brackets are empty.
    pub dims: Vec<Option<u64>>,
    /// Return parameters (`.func (.param .b32 r) f`).
    pub returns: Vec<Variable>,
    pub params: Vec<Variable>,
    /// The last parameter is an array without size.
    pub variadic: bool,
    pub noreturn: bool,
    /// `.maxntid 256, 1, 1`, `.minnctapersm 2`, `.pragma …`: name without dot and its arguments.
    pub directives: Vec<Directive>,
    /// `.attribute(.unified_func_stub)` … as (name, arguments).
    pub attributes: Vec<(Name, Vec<u64>)>,
    pub body: Option<Body>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Directive {
    pub name: Name,
    pub args: Vec<u64>,
    pub text: Vec<String>,
}

/// What became of a body's text.
#[derive(Debug)]
pub(super) struct Parsed {
    pub statements: Vec<Statement>,
    pub wrong: Option<Diagnostics>,
    /// What could not be read declares something, perhaps.
    pub undeclared: bool,
}

impl Parsed {
    /// Nothing was wrong.
    pub fn good(statements: Vec<Statement>) -> Parsed {
        Parsed {
            statements,
            wrong: None,
            undeclared: false,
        }
    }

    fn whole(&self) -> Result<&[Statement], &Diagnostics> {
        match &self.wrong {
            None => Ok(&self.statements),
            Some(wrong) => Err(wrong),
        }
    }
}

/// A function body: where it stands, and its statements once somebody asked.
#[derive(Clone)]
pub struct Body {
    /// From `{` to `}` inclusive.
    pub span: Span,
    pub(super) source: Arc<super::Source>,
    /// The module's `.version`.
    pub(super) version: (u16, u16),
    /// Structures of the module's scope (PTX 1.x); known once the module is read.
    pub(super) records: Arc<OnceLock<Records>>,
    pub(super) parsed: Arc<OnceLock<Parsed>>,
    pub(super) checked: Arc<OnceLock<Checked>>,
}

/// What whoever checks a body finds.
#[derive(Debug, Default)]
pub struct Checked {
    /// What the rules of the language have against it.
    pub findings: Vec<Diagnostic>,
    pub mentions: Mentions,
}

/// What a body names at module scope: items of the module by number, each once.
#[derive(Debug, Default)]
pub struct Mentions {
    /// Functions called by their names.
    pub called: Vec<u32>,
    /// Items named otherwise.
    pub named: Vec<u32>,
    pub calls_indirectly: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    Label(Name),
    Variable(Box<Variable>),
    Instruction(Instruction),
    /// `{ … }`: a scope of its own.
    Block(Vec<Statement>),
    /// `.loc file line column {, function_name label{+offset}, inlined_at file line column}`
    Loc {
        file: u64,
        line: u32,
        column: u32,
        /// The label of the inlined function's name in `.debug_str`, and the offset from it.
        function: Option<Name>,
        offset: u64,
        inlined_at: Option<(u64, u32, u32)>,
        place: Place,
    },
    Pragma(Vec<String>),
    /// `label: .callprototype (…) _ (…);`
    CallPrototype(Box<CallPrototype>),
    /// `label: .calltargets f, g;`
    CallTargets {
        label: Name,
        targets: Vec<Name>,
    },
    /// `label: .branchtargets a, b;`
    BranchTargets {
        label: Name,
        targets: Vec<Name>,
    },
    /// Directives that may stand inside a body.
    Directive(Directive),
}

#[derive(Debug, Clone)]
pub struct CallPrototype {
    pub label: Name,
    pub returns: Vec<Variable>,
    pub params: Vec<Variable>,
    pub noreturn: bool,
    /// `.abi_preserve n` and the like.
    pub directives: Vec<Directive>,
    pub span: Span,
}

/// `@!p opcode.mods operands;`
#[derive(Debug, Clone)]
pub struct Instruction {
    pub guard: Option<Guard>,
    pub opcode: Opcode,
    pub operands: Vec<Operand>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Guard {
    pub negated: bool,
    pub predicate: Name,
}

/// The opcode as written, e.g. `ld.global.L1::no_allocate.v4.f32`.
#[derive(Debug, Clone, Eq)]
pub struct Opcode {
    pub text: Arc<str>,
    pub span: Span,
}

impl PartialEq for Opcode {
    fn eq(&self, other: &Opcode) -> bool {
        self.text == other.text
    }
}

impl Opcode {
    /// The words between the dots; never none.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.text.split('.')
    }
}

#[derive(Debug, Clone)]
pub enum Operand {
    /// A register, variable, function or label, perhaps with an offset (`var+8`) or a selector (`%tid.x`, `%v.y`).
    Name {
        name: Name,
        select: Option<Name>,
        offset: i64,
    },
    /// `!p`
    Not(Name),
    /// `-%r1`, `-%r1.h0` of the video instructions.
    Negated(Box<Operand>),
    Immediate(Expr),
    /// `[a]`, `[a+8]`, `[var+4]`, `[8]`, `var[reg]`.
    Address(Address),
    /// `{a, b, c, d}`
    Vector(Vec<Operand>, Span),
    /// `p|q`
    Pair(Box<Operand>, Box<Operand>),
    /// `_`
    Sink(Span),
    /// `[tex, {x, y}]`, `[tex, samp, {x}]`, `[desc, {…}]`
    Group(Vec<Operand>, Span),
    /// `(a, b)` of a call.
    Arguments(Vec<Operand>, Span),
}

impl Operand {
    pub fn span(&self) -> Span {
        match self {
            Operand::Name { name, select, .. } => select.as_ref().map_or(name.span, |s| name.span.to(s.span)),
            Operand::Not(name) => name.span,
            Operand::Negated(operand) => operand.span(),
            Operand::Immediate(expr) => expr.span(),
            Operand::Address(address) => address.span,
            Operand::Pair(a, b) => a.span().to(b.span()),
            Operand::Sink(span) | Operand::Vector(_, span) | Operand::Group(_, span) | Operand::Arguments(_, span) => {
                *span
            }
        }
    }
}

impl Expr {
    pub fn span(&self) -> Span {
        match self {
            Expr::Int { span, .. } | Expr::F32 { span, .. } | Expr::F64 { span, .. } | Expr::Symbol { span, .. } => {
                *span
            }
        }
    }
}

#[derive(Debug, Clone)]
pub struct Address {
    pub base: AddressBase,
    /// The register of `var[%r1]` and `var[%r1+4]`.
    pub index: Option<Name>,
    pub offset: i64,
    /// Written `var[…]`, an array element, rather than `[var+…]`.
    pub subscript: bool,
    /// `[a].unified`
    pub unified: bool,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AddressBase {
    /// Register or variable: which one is a matter of scope.
    Name(Name),
    Absolute(u64),
}

impl Body {
    /// From `{` to `}` inclusive, as written.
    pub fn text(&self) -> &str {
        &self.source.text[self.span.start as usize..self.span.end as usize]
    }

    /// The statements, parsed when first asked for.
    ///
    /// # Errors
    /// All that is wrong with the body.
    pub fn statements(&self) -> Result<&[Statement], &Diagnostics> {
        self.parsed
            .get_or_init(|| super::body::parse(&self.source, self.span, self.version, self.records.get()))
            .whole()
    }

    /// The statements that could be read, although others could not; none if a declaration is among those.
    pub fn readable(&self) -> &[Statement] {
        match self.parsed.get() {
            Some(parsed) if !parsed.undeclared => &parsed.statements,
            _ => &[],
        }
    }

    /// What a check finds: kept here, so that whoever checks does so once.
    pub fn checked(&self, check: impl FnOnce() -> Checked) -> &Checked {
        self.checked.get_or_init(check)
    }

    /// What a check has found already.
    pub fn known(&self) -> Option<&Checked> {
        self.checked.get()
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Body({}..{})", self.span.start, self.span.end)
    }
}

/// Trees are equal when they say the same: spans do not count, so that trees of different texts can be compared.
macro_rules! equal_but_for_place {
    ($($type:ident { $($field:ident),+ })+) => { $(
        impl PartialEq for $type {
            fn eq(&self, other: &$type) -> bool {
                // Naming every field makes a new one an error here.
                let $type { $($field),+, span: _ } = self;
                $(*$field == other.$field)&&+
            }
        }
    )+ };
}

equal_but_for_place! {
    Variable { linkage, space, bank, align, vector, ty, name, count, dims, init, attributes, ptr }
    Function { linkage, entry, name, dims, returns, params, variadic, noreturn, directives, attributes, body }
    CallPrototype { label, returns, params, noreturn, directives }
    Instruction { guard, opcode, operands }
    Address { base, index, offset, subscript, unified }
}

impl PartialEq for Section {
    fn eq(&self, other: &Section) -> bool {
        self.name == other.name && self.text() == other.text()
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Body) -> bool {
        match (self.statements(), other.statements()) {
            (Ok(a), Ok(b)) => a == b,
            (Err(_), Err(_)) => self.text() == other.text(),
            _ => false,
        }
    }
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        use Expr::*;
        match (self, other) {
            (
                Int { bits, unsigned, .. },
                Int {
                    bits: b, unsigned: u, ..
                },
            ) => (bits, unsigned) == (b, u),
            (F32 { bits, .. }, F32 { bits: b, .. }) => bits == b,
            (F64 { bits, .. }, F64 { bits: b, .. }) => bits == b,
            (
                Symbol {
                    name,
                    offset,
                    generic,
                    mask,
                    ..
                },
                Symbol {
                    name: n,
                    offset: o,
                    generic: g,
                    mask: m,
                    ..
                },
            ) => (name, offset, generic, mask) == (n, o, g, m),
            (Int { .. } | F32 { .. } | F64 { .. } | Symbol { .. }, _) => false,
        }
    }
}

impl PartialEq for Operand {
    fn eq(&self, other: &Operand) -> bool {
        use Operand::*;
        match (self, other) {
            (
                Name { name, select, offset },
                Name {
                    name: n,
                    select: s,
                    offset: o,
                },
            ) => (name, select, offset) == (n, s, o),
            (Not(a), Not(b)) => a == b,
            (Negated(a), Negated(b)) => a == b,
            (Immediate(a), Immediate(b)) => a == b,
            (Address(a), Address(b)) => a == b,
            (Pair(a, b), Pair(c, d)) => (a, b) == (c, d),
            (Sink(_), Sink(_)) => true,
            (Vector(a, _), Vector(b, _)) | (Group(a, _), Group(b, _)) | (Arguments(a, _), Arguments(b, _)) => a == b,
            (
                Name { .. }
                | Not(_)
                | Negated(_)
                | Immediate(_)
                | Address(_)
                | Pair(..)
                | Sink(_)
                | Vector(..)
                | Group(..)
                | Arguments(..),
                _,
            ) => false,
        }
    }
}
