//! The syntax tree of a PTX module: what the text says, with a span on everything a message may point at.
//!
//! The tree knows the *shape* of statements only (guard, opcode with dotted modifiers, operands); what an opcode means
//! is the instruction table's business ([`crate::isa`]). Names are kept as written.

use std::sync::{Arc, OnceLock};

use super::diagnostic::Diagnostics;
use super::record::Records;

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

macro_rules! types {
    ($($variant:ident = $word:literal),* $(,)?) => {
        /// Fundamental types and the packed/alternate formats (PTX ISA, Types).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Type { $($variant),* }

        impl Type {
            /// All types, in the order of the enum.
            pub const ALL: &[Type] = &[$(Type::$variant),*];

            /// `b32` for `.b32`.
            pub fn word(self) -> &'static str {
                match self { $(Type::$variant => $word),* }
            }

            /// The type that is written `.word`.
            pub fn from_word(word: &str) -> Option<Type> {
                match word { $($word => Some(Type::$variant),)* _ => None }
            }
        }
    };
}

types! {
    B8 = "b8", B16 = "b16", B32 = "b32", B64 = "b64", B128 = "b128", U8 = "u8", U16 = "u16", U32 = "u32",
    U64 = "u64", S8 = "s8", S16 = "s16", S32 = "s32", S64 = "s64", F16 = "f16", F16x2 = "f16x2", Bf16 = "bf16",
    Bf16x2 = "bf16x2", F32 = "f32", F32x2 = "f32x2", F64 = "f64", Tf32 = "tf32", U8x4 = "u8x4", S8x4 = "s8x4",
    U16x2 = "u16x2", S16x2 = "s16x2", E4m3 = "e4m3", E5m2 = "e5m2", E4m3x2 = "e4m3x2", E5m2x2 = "e5m2x2",
    E3m2x2 = "e3m2x2", E2m3x2 = "e2m3x2", E2m1x2 = "e2m1x2", E4m3x4 = "e4m3x4", E5m2x4 = "e5m2x4",
    E3m2x4 = "e3m2x4", E2m3x4 = "e2m3x4", E2m1x4 = "e2m1x4", Ue8m0x2 = "ue8m0x2", Ue5m3x2 = "ue5m3x2",
    S2f6x2 = "s2f6x2", Pred = "pred", TexRef = "texref", SamplerRef = "samplerref", SurfRef = "surfref",
}

/// State spaces (PTX ISA, State Spaces). `Generic` is the absence of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Space {
    Generic, Reg, Sreg, Const, Global, Local, Param, ParamEntry, ParamFunc, Shared, SharedCta, SharedCluster, Tex, Surf,
}

impl Space {
    /// As written behind a dot; nothing for the generic space.
    pub fn word(self) -> &'static str {
        match self {
            Space::Generic => "",
            Space::Reg => "reg",
            Space::Sreg => "sreg",
            Space::Const => "const",
            Space::Global => "global",
            Space::Local => "local",
            Space::Param => "param",
            Space::ParamEntry => "param::entry",
            Space::ParamFunc => "param::func",
            Space::Shared => "shared",
            Space::SharedCta => "shared::cta",
            Space::SharedCluster => "shared::cluster",
            Space::Tex => "tex",
            Space::Surf => "surf",
        }
    }

    /// The space that is written `.word`.
    pub fn from_word(word: &str) -> Option<Space> {
        Some(match word {
            "reg" => Space::Reg,
            "sreg" => Space::Sreg,
            "const" => Space::Const,
            "global" => Space::Global,
            "local" => Space::Local,
            "param" => Space::Param,
            "param::entry" => Space::ParamEntry,
            "param::func" => Space::ParamFunc,
            "shared" => Space::Shared,
            "shared::cta" => Space::SharedCta,
            "shared::cluster" => Space::SharedCluster,
            "tex" => Space::Tex,
            "surf" => Space::Surf,
            _ => return None,
        })
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
    pub(super) parsed: Arc<OnceLock<Result<Vec<Statement>, Diagnostics>>>,
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
            .as_deref()
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
