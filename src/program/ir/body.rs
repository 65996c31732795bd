//! The body of a function: basic blocks of instructions over virtual registers, joined by explicit ends.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::facts::Facts;
use super::op::{Guard, Initial, Inst, Op, Reg, Register};
use crate::isa::Compute;
use crate::isa::lanes::Width;
use crate::ptx::Source;
use crate::ptx::ast::Span;

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

/// How a block ends.
#[derive(Clone, Debug)]
pub enum End {
    Jump {
        to: BlockId,
        /// Of the jump; of nothing where the text goes on by itself.
        span: Span,
    },
    Branch {
        guard: Guard,
        taken: BlockId,
        fall: BlockId,
        span: Span,
    },
    Indexed {
        index: Reg,
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
            End::Jump { to, .. } => f(*to),
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
            End::Jump { to, .. } => f(to),
            End::Branch { taken, fall, .. } => {
                f(fall);
                f(taken);
            }
            End::Indexed { targets, .. } => targets.iter_mut().for_each(f),
            End::Stop => {}
        }
    }

    /// Where the text has it; of nothing where it does not.
    pub fn span(&self) -> Span {
        match self {
            End::Jump { span, .. } | End::Branch { span, .. } | End::Indexed { span, .. } => *span,
            End::Stop => Span::default(),
        }
    }

    /// The register that the end reads.
    pub fn register_mut(&mut self) -> Option<&mut Register> {
        match self {
            End::Branch { guard, .. } => Some(&mut guard.reg.number),
            End::Indexed { index, .. } => Some(&mut index.number),
            End::Jump { .. } | End::Stop => None,
        }
    }

    pub fn register(&self) -> Option<Register> {
        self.clone().register_mut().map(|r| *r)
    }
}

#[derive(Clone, Debug)]
pub struct Block {
    pub insts: Vec<Inst>,
    pub end: End,
    /// Where the block stands in the text; made-up blocks stand between others.
    pub place: u64,
    /// Whose text it is: 0 the function's own, `n` that of the `n`-th of [`Body::inlined`].
    pub inlined: u32,
}

/// A call that was replaced by what it called.
#[derive(Clone, Debug)]
pub struct Inlined {
    /// Index into the module's functions.
    pub function: u32,
    /// The text in which it stands.
    pub source: Arc<Source>,
    /// The call, in the text of the function that made it.
    pub call: Span,
    /// Whose text that is, as [`Block::inlined`] says it.
    pub within: u32,
}

/// The blocks and registers of a function; block 0 is the entry.
#[derive(Clone, Debug, Default)]
pub struct Body {
    pub blocks: Vec<Block>,
    pub registers: Vec<RegisterInfo>,
    /// Calls that were replaced, outer ones first.
    pub inlined: Vec<Inlined>,
    /// Pure operations on constants of the launch, in order: done once before the code runs.
    pub prologue: Vec<Inst>,
    /// What is known of each register's value, once the passes have looked.
    pub facts: Vec<Facts>,
    /// First blocks of loops that look at what other threads change, and end whatever those do.
    pub bounded: BTreeSet<BlockId>,
    initials: HashMap<(Width, Initial), Register>,
}

impl Op {
    /// `op` on these registers of `body`.
    pub fn compute(body: &Body, op: Compute, dst: &[Register], src: &[Register]) -> Op {
        debug_assert!({
            let lane = op.lane().named(dst.len());
            (dst.len(), src.len()) == (lane.dst.len(), lane.src.len())
        });
        Op::Compute {
            op,
            dst: dst.iter().map(|&register| body.reg(register)).collect(),
            src: src.iter().map(|&register| body.reg(register)).collect(),
        }
    }
}

impl Inst {
    /// Destination and source, if this copies one register to another of its width.
    pub fn copied(&self) -> Option<(Register, Register)> {
        let Op::Compute { op, dst, src } = &self.op else {
            return None;
        };
        op.is_copy().then(|| (dst[0].number, src[0].number))
    }
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
            Initial::Param { .. } | Initial::Special(_) => value,
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

    /// A register of its own that holds `value` from the start.
    pub fn initial_apart(&mut self, width: Width, value: Initial) -> Register {
        self.registers.push(RegisterInfo {
            width,
            initial: Some(value),
            hoisted: false,
        });
        self.registers.len() as u32 - 1
    }

    /// Every operation of every block.
    pub fn insts(&self) -> impl Iterator<Item = &Inst> {
        self.blocks.iter().flat_map(|block| &block.insts)
    }

    pub fn reg(&self, register: Register) -> Reg {
        Reg {
            number: register,
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
            Some(Initial::Param { .. } | Initial::Special(_)) | None => None,
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
