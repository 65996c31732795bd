//! One instruction of the interpreter's code, with registers of the representation or with slots.

use crate::program::{BlockId, Guard, Op, Role};
use crate::ptx::ast::Span;
use crate::simt::machine::slots::Slot;

/// Index into [`super::Compiled::code`].
pub type Pc = u32;

/// One instruction of the code.
#[derive(Clone, Debug)]
pub struct Instr<R = Slot> {
    pub guard: Option<Guard<R>>,
    pub what: What<R>,
    /// Where in the PTX text; faults and traces name it.
    pub span: Span,
    /// Whose text that is, as [`Block::inlined`](crate::program::Block::inlined) says it.
    pub inlined: u32,
}

#[derive(Clone, Debug)]
pub enum What<R = Slot> {
    Op(Op<R>),
    /// Direct jump; with a guard, divergent.
    Branch {
        target: Pc,
        /// Back to the head of a loop that may go on until other threads do something.
        waits: bool,
        /// The block that ends with it.
        block: BlockId,
    },
    /// `brx.idx`: a lane's index into `targets`; out of range is undefined by the ISA and faults here.
    BranchIndexed {
        index: R,
        targets: Box<[Pc]>,
    },
}

#[cfg(debug_assertions)]
impl<R> What<R> {
    /// Nothing runs after it on this path (when it has no guard).
    pub(super) fn ends_path(&self) -> bool {
        match self {
            What::Op(op) => op.ends_path(),
            What::Branch { .. } | What::BranchIndexed { .. } => false,
        }
    }
}

impl<R> Instr<R> {
    /// Calls `f` with every register and its role, the guard's and other uses first.
    pub fn regs<'a>(&'a self, mut f: impl FnMut(&'a R, Role)) {
        if let Some(guard) = &self.guard {
            f(&guard.reg, Role::Use);
        }
        match &self.what {
            What::Op(op) => op.regs(f),
            What::Branch { .. } => {}
            What::BranchIndexed { index, .. } => f(index, Role::Use),
        }
    }

    /// The same on other registers.
    pub fn map<S>(self, f: &mut impl FnMut(R) -> S) -> Instr<S> {
        Instr {
            guard: self.guard.map(|guard| Guard {
                reg: f(guard.reg),
                negated: guard.negated,
            }),
            what: match self.what {
                What::Op(op) => What::Op(op.map(f)),
                What::Branch { target, waits, block } => What::Branch { target, waits, block },
                What::BranchIndexed { index, targets } => What::BranchIndexed {
                    index: f(index),
                    targets,
                },
            },
            span: self.span,
            inlined: self.inlined,
        }
    }
}
