//! A function between tree and code: blocks of instructions whose slots still name *virtual registers* (a slot's
//! `offset` is the register's number), joined by explicit ends. Selection makes it, the passes improve it, layout and
//! slot allocation turn it into [`Function`](crate::program::Function)s.

use std::collections::HashMap;

pub use crate::isa::Linear;
use crate::isa::lanes::Width;
use crate::program::instr::{Guard, Initial, Instr, Slot};
use crate::ptx::ast::Span;

/// A virtual register's number.
pub type Register = u32;
/// A block's number: its place in the text.
pub type BlockId = u32;

#[derive(Clone, Copy, Debug)]
pub struct RegisterInfo {
    pub width: Width,
    /// Set before the function runs; never written by code.
    pub initial: Option<Initial>,
    /// Computed once before the code runs; not written by it either.
    pub hoisted: bool,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub instr: Instr,
    /// Place in the source by `.loc`: (file, line), if any.
    pub line: Option<(u32, u32)>,
    /// The destination is a plain copy of the source, same width.
    pub copy: Option<(Register, Register)>,
    /// What it computes, where that is linear in its operands.
    pub linear: Option<Linear>,
    /// A product or sum of floats whose rounding the text leaves open.
    pub contractible: Option<Contractible>,
}

/// `mul`, `add`, `sub` of floats without a rounding modifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contractible {
    Product { modifiers: Modifiers },
    Sum { subtract: bool, modifiers: Modifiers },
}

/// Modifiers and type behind the mnemonic: `.ftz.sat.f32`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modifiers {
    pub text: String,
}

impl Modifiers {
    /// Those that the product of such a sum must have.
    pub fn without_sat(&self) -> Modifiers {
        Modifiers {
            text: self.text.replace(".sat", ""),
        }
    }

    /// Those of the negation of an operand: it changes a sign, no more.
    pub fn of_negation(&self) -> String {
        self.without_sat().text.replace(".ftz", "")
    }
}

/// How a block ends.
#[derive(Clone, Debug)]
pub enum End {
    Jump(BlockId),
    Branch {
        guard: Guard,
        taken: BlockId,
        fall: BlockId,
        span: Span,
    },
    Indexed {
        index: Slot,
        targets: Vec<BlockId>,
        span: Span,
    },
    /// The last node leaves the function.
    Stop,
}

impl End {
    /// Calls `f` with every successor, the likely next one first.
    pub fn successors(&self, mut f: impl FnMut(BlockId)) {
        match self {
            End::Jump(to) => f(*to),
            End::Branch { taken, fall, .. } => {
                f(*fall);
                f(*taken);
            }
            End::Indexed { targets, .. } => targets.iter().copied().for_each(f),
            End::Stop => {}
        }
    }

    pub fn successors_mut(&mut self, mut f: impl FnMut(&mut BlockId)) {
        match self {
            End::Jump(to) => f(to),
            End::Branch { taken, fall, .. } => {
                f(fall);
                f(taken);
            }
            End::Indexed { targets, .. } => targets.iter_mut().for_each(f),
            End::Stop => {}
        }
    }

    /// The register that the end reads.
    pub fn register_mut(&mut self) -> Option<&mut Register> {
        match self {
            End::Branch { guard, .. } => Some(&mut guard.slot.offset),
            End::Indexed { index, .. } => Some(&mut index.offset),
            End::Jump(_) | End::Stop => None,
        }
    }

    pub fn register(&self) -> Option<Register> {
        self.clone().register_mut().map(|r| *r)
    }
}

#[derive(Clone, Debug)]
pub struct Block {
    pub nodes: Vec<Node>,
    pub end: End,
    /// Where the block stands in the text; made-up blocks stand between others.
    pub place: u64,
}

/// The blocks and registers of a function; block 0 is the entry.
#[derive(Debug, Default)]
pub struct Body {
    pub blocks: Vec<Block>,
    pub registers: Vec<RegisterInfo>,
    initials: HashMap<(Width, Initial), Register>,
}

impl Body {
    pub fn register(&mut self, width: Width) -> Register {
        self.registers.push(RegisterInfo {
            width,
            initial: None,
            hoisted: false,
        });
        self.registers.len() as u32 - 1
    }

    /// The register that holds `value` from the start; one for each width and value.
    pub fn initial(&mut self, width: Width, value: Initial) -> Register {
        let value = match value {
            Initial::Constant(bits) => Initial::Constant(truncate(bits, width)),
            other => other,
        };
        *self.initials.entry((width, value)).or_insert_with(|| {
            self.registers.push(RegisterInfo {
                width,
                initial: Some(value),
                hoisted: false,
            });
            self.registers.len() as u32 - 1
        })
    }

    pub fn slot(&self, register: Register) -> Slot {
        Slot {
            offset: register,
            width: self.registers[register as usize].width,
        }
    }

    /// Has its value before the code runs.
    pub fn is_fixed(&self, register: Register) -> bool {
        let info = &self.registers[register as usize];
        info.initial.is_some() || info.hoisted
    }

    /// The value of a register that holds a constant.
    pub fn constant(&self, register: Register) -> Option<u128> {
        match self.registers[register as usize].initial {
            Some(Initial::Constant(bits)) => Some(bits),
            _ => None,
        }
    }

    pub fn is_launch_constant(&self, register: Register) -> bool {
        match self.registers[register as usize].initial {
            Some(Initial::Constant(_) | Initial::Param { .. }) => true,
            Some(Initial::Special(special)) => special.is_launch_constant(),
            None => false,
        }
    }
}

/// The bits of a constant that its width holds; a predicate is 0 or 1.
pub fn truncate(bits: u128, width: Width) -> u128 {
    match width {
        Width::Pred => u128::from(bits != 0),
        Width::B16 => bits & 0xffff,
        Width::B32 => bits & 0xffff_ffff,
        Width::B64 => bits & u128::from(u64::MAX),
        Width::B128 => bits,
    }
}
