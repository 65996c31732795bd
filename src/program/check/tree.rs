//! A body as the check hands it to the lowering: each opcode is a line of the instruction table, each name what it
//! stands for. What has a number here is declared by the body or by the function's header.

use std::rc::Rc;

use crate::isa::Form;
use crate::isa::lanes::Width;
use crate::program::ir::Special;
use crate::ptx::ast::{Expr, Opcode, Span, Type, Variable};

#[derive(Default)]
pub struct Tree<'a> {
    pub statements: Vec<Statement<'a>>,
    /// Results and parameters, in order.
    pub returns: Vec<Parameter>,
    pub params: Vec<Parameter>,
    /// Items of the module that are registers of file scope (PTX 1.x), ascending.
    pub file_registers: &'a [u32],
    pub registers: Vec<Declared>,
    pub variables: Vec<&'a Variable>,
    /// How many there are.
    pub labels: u32,
    /// Labels of each `.branchtargets` list.
    pub targets: Vec<Vec<u32>>,
}

/// A register: its type, and elements if it is a vector.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    pub ty: Type,
    pub vector: u8,
    /// At file scope: the item, and which of its range.
    pub file: Option<(u32, u32)>,
}

/// A parameter or result.
#[derive(Clone, Copy)]
pub enum Parameter {
    /// Of the old style: `.func (.reg .u32 r) f (.reg .u32 a)`.
    Register(u32),
    Variable(u32),
}

pub enum Statement<'a> {
    Label(u32),
    Block(Vec<Statement<'a>>),
    /// `.loc`: what follows comes from this line of this file.
    Line(u64, u32),
    /// A register that was declared by its own name.
    Register(u32, &'a Variable),
    /// A variable in memory, or a range of them.
    Variable(u32, &'a Variable),
    Instruction(Instruction<'a>),
    Branch {
        guard: Option<Guard>,
        label: u32,
        span: Span,
    },
    BranchIndexed {
        guard: Option<Guard>,
        index: Operand,
        /// Of [`Tree::targets`].
        targets: u32,
        span: Span,
    },
    Call(Box<Call<'a>>),
}

#[derive(Clone)]
pub struct Instruction<'a> {
    pub guard: Option<Guard>,
    pub form: Rc<Form>,
    /// The opcode names so many elements, for an instruction that takes one (PTX 1.x).
    pub lanes: Option<u8>,
    pub operands: Vec<Operand>,
    pub opcode: &'a Opcode,
    pub span: Span,
}

pub struct Call<'a> {
    pub guard: Option<Guard>,
    pub results: Vec<Operand>,
    pub callee: Callee<'a>,
    pub arguments: Vec<Operand>,
    pub span: Span,
}

#[derive(Clone, Copy)]
pub enum Callee<'a> {
    /// An item of the module.
    Function(u32, Span),
    Indirect {
        address: Register,
        returns: &'a [Variable],
        params: &'a [Variable],
    },
}

#[derive(Clone, Debug)]
pub struct Guard {
    pub predicate: Operand,
    pub negated: bool,
}

/// A register, or an element of one that is a vector.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    pub number: u32,
    pub element: Option<u8>,
    pub span: Span,
}

/// What has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// A variable of the body or the header, and which of a range.
    Own { number: u32, member: u32 },
    /// An item of the module: a variable, a function, an alias.
    Item(u32),
}

#[derive(Clone, Debug)]
pub enum Operand {
    Register(Register),
    /// `%rd1+8`
    Sum(Register, i64),
    Special(Special, Width, Span),
    /// A number.
    Immediate(Expr),
    /// The address of a variable or function, so many bytes on.
    AddressOf(Object, i64, Span),
    Address(Address),
    /// `!p`
    Not(Box<Operand>),
    /// In braces.
    Vector(Vec<Operand>, Span),
    /// A vector by its name: its elements.
    Whole(Vec<Operand>, Span),
    /// `[tex, {x, y}]`
    Group(Vec<Operand>, Span),
    /// `d|p`
    Pair(Box<Operand>, Box<Operand>),
    /// `_`
    Sink(Span),
}

#[derive(Clone, Debug)]
pub struct Address {
    pub base: Base,
    pub index: Option<Register>,
    pub offset: i64,
    /// Written `var[…]`: the offset and the index count elements.
    pub subscript: bool,
    pub span: Span,
}

#[derive(Clone, Copy, Debug)]
pub enum Base {
    Absolute(u64),
    Register(Register),
    Object(Object, Span),
}

impl Operand {
    pub fn span(&self) -> Span {
        match self {
            Operand::Register(register) | Operand::Sum(register, _) => register.span,
            Operand::Immediate(expr) => expr.span(),
            Operand::Address(address) => address.span,
            Operand::Not(inner) => inner.span(),
            Operand::Pair(a, b) => a.span().to(b.span()),
            Operand::Special(.., span)
            | Operand::AddressOf(.., span)
            | Operand::Vector(_, span)
            | Operand::Whole(_, span)
            | Operand::Group(_, span)
            | Operand::Sink(span) => *span,
        }
    }

    /// Elements of a vector, in braces or by its name.
    pub fn elements(&self) -> Option<&[Operand]> {
        match self {
            Operand::Vector(list, _) | Operand::Whole(list, _) => Some(list),
            Operand::Register(_)
            | Operand::Sum(..)
            | Operand::Special(..)
            | Operand::Immediate(_)
            | Operand::AddressOf(..)
            | Operand::Address(_)
            | Operand::Not(_)
            | Operand::Group(..)
            | Operand::Pair(..)
            | Operand::Sink(_) => None,
        }
    }

    /// A vector's elements, or the operand itself.
    pub fn list(&self) -> &[Operand] {
        self.elements().unwrap_or(std::slice::from_ref(self))
    }
}
