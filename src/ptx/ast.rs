//! The syntax tree of a PTX module: what the text says, with a span on everything a message may point at.
//!
//! The tree knows the *shape* of statements only (guard, opcode with dotted modifiers, operands); what an opcode means
//! is the instruction table's business ([`crate::isa`]). Names are kept as written.

use std::sync::{Arc, OnceLock};

use super::diagnostic::Diagnostics;

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

/// Fundamental types and the packed/alternate formats (PTX ISA, Types).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[rustfmt::skip]
pub enum Type {
    B8, B16, B32, B64, B128, U8, U16, U32, U64, S8, S16, S32, S64,
    F16, F16x2, Bf16, Bf16x2, F32, F32x2, F64, Tf32,
    U8x4, S8x4, U16x2, S16x2,
    E4m3, E5m2, E4m3x2, E5m2x2, E3m2x2, E2m3x2, E2m1x2, E4m3x4, E5m2x4, E3m2x4, E2m3x4, E2m1x4, Ue8m0x2, Ue5m3x2, S2f6x2,
    Pred, TexRef, SamplerRef, SurfRef,
}

/// State spaces (PTX ISA, State Spaces). `Generic` is the absence of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Space {
    Generic, Reg, Sreg, Const, Global, Local, Param, ParamEntry, ParamFunc, Shared, SharedCta, SharedCluster, Tex, Surf,
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
#[derive(Debug, Clone, PartialEq)]
pub struct Module {
    /// `.version major.minor`
    pub version: (u16, u16),
    /// `.target sm_90a, texmode_independent, debug …` as written, in order.
    pub target: Vec<Name>,
    /// 32 or 64; 64 when `.address_size` is absent on a target that implies it.
    pub address_size: u8,
    pub items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    Variable(Variable),
    Function(Function),
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
    /// `.section name { … }` kept as text: debuggers read it, execution does not.
    Section {
        name: String,
        text: String,
        span: Span,
    },
    /// `.pragma "…", "…";` at module level
    Pragma(Vec<String>),
}

/// A variable declaration, at module level or in a body. `.reg .b32 %r<100>;` is one declaration with `count`.
#[derive(Debug, Clone, PartialEq)]
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
}

/// A constant expression, not yet evaluated where it holds names; literals fold while parsing.
#[derive(Debug, Clone, PartialEq)]
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
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    pub linkage: Linkage,
    pub entry: bool,
    pub name: Name,
    /// Return parameters (`.func (.param .b32 r) f`).
    pub returns: Vec<Variable>,
    pub params: Vec<Variable>,
    /// `...` at the end of a variadic prototype.
    pub variadic: bool,
    pub noreturn: bool,
    /// `.maxntid 256, 1, 1`, `.minnctapersm 2`, `.pragma …`: name without dot and its arguments.
    pub directives: Vec<Directive>,
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
    pub(super) parsed: Arc<OnceLock<Result<Vec<Statement>, Diagnostics>>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    Label(Name),
    Variable(Variable),
    Instruction(Instruction),
    /// `{ … }`: a scope of its own.
    Block(Vec<Statement>),
    /// `.loc file line column {, function_name label{+offset}, inlined_at file line column}`
    Loc {
        file: u64,
        line: u32,
        column: u32,
        function: Option<Name>,
        inlined_at: Option<(u64, u32, u32)>,
    },
    Pragma(Vec<String>),
    /// `label: .callprototype (…) _ (…);`
    CallPrototype {
        label: Name,
        returns: Vec<Variable>,
        params: Vec<Variable>,
        noreturn: bool,
        span: Span,
    },
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

/// `@!p opcode.mods operands;`
#[derive(Debug, Clone, PartialEq)]
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

#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// A register, variable, function or label, perhaps with an offset (`var+8`) or a selector (`%tid.x`, `%v.y`).
    Name {
        name: Name,
        select: Option<Name>,
        offset: i64,
    },
    /// `!p`
    Not(Name),
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

#[derive(Debug, Clone, PartialEq)]
pub struct Address {
    pub base: AddressBase,
    /// A register added to the base (`var[%r1]` of old texts).
    pub index: Option<Name>,
    pub offset: i64,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AddressBase {
    /// Register or variable: which one is a matter of scope.
    Name(Name),
    Absolute(u64),
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Body({}..{})", self.span.start, self.span.end)
    }
}

impl PartialEq for Body {
    /// By statements where both parse, else by text.
    fn eq(&self, other: &Body) -> bool {
        let text = |b: &Body| b.source.text[b.span.start as usize..b.span.end as usize].to_owned();
        match (self.parsed.get(), other.parsed.get()) {
            (Some(Ok(a)), Some(Ok(b))) => a == b,
            _ => text(self) == text(other),
        }
    }
}
