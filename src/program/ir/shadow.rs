//! What follows values that nobody has written (`MARGAY_CHECK=init`): operations on shadows, which `passes/shadows` puts beside
//! the program's own. A shadow is a register with a bit for each bit of another, set where nobody has written that.

use super::op::{Address, Element, Reg, Register};
use crate::isa::definedness::Rule;
use crate::isa::joint::{matrix, warpgroup};

/// An operation on shadows.
#[derive(Clone, Debug)]
pub struct ShadowOp<R = Reg> {
    pub what: Shadow,
    /// The program's own, of what loads and stores touch.
    pub address: Option<Address<R>>,
    /// Shadows; `None`: all bits have been written.
    pub src: Box<[Option<R>]>,
    /// The values whose shadows these are, where they count.
    pub values: Box<[R]>,
    pub dst: Box<[Option<R>]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shadow {
    /// What the elements of a load bring with them, behind the load itself, which has checked the address.
    Load(Element),
    /// What the elements of a store leave, before the store itself: who reads what it has written finds that, too.
    Store(Element),
    /// From operands to the result.
    Follow(Rule),
    /// All of the result, if any bit of an operand but the first is set; else the first.
    Also,
    /// From the values that threads of a warp compare to the mask and the predicate that `match.all`, or else `match.any`, gives:
    /// before the operation itself, with the same members. `values` are what is compared, and the mask of members.
    Match { all: bool },
    /// What an operation on matrices moves or multiplies, behind the operation itself, which has checked addresses and brought the
    /// warp together. `src` has the shadows of all registers that hold elements, metadata and factors, `values` the stride of a tile,
    /// or what stands behind the elements of a product.
    Matrix(matrix::Op),
    /// A product of four warps, likewise. `values` are its sources, with the shadows of elements in registers in the place of these;
    /// `src` has the shadows of what stands between D and A.
    Warpgroup(warpgroup::Mma),
    /// All bits.
    Undefine,
    /// Bytes of the running frame, from and to, that nobody has written yet.
    Frame(u32, u32),
    /// Something depends on a value: lanes in which it has undefined bits are told of, and count as defined from then on.
    Check { decision: Decision, register: Register },
}

impl<R: Copy> ShadowOp<R> {
    /// The member mask that the operation waits for, as a `.sync` instruction does.
    pub fn members(&self) -> Option<R> {
        match self.what {
            Shadow::Match { .. } => self.values.get(1).copied(),
            Shadow::Load(_)
            | Shadow::Store(_)
            | Shadow::Follow(_)
            | Shadow::Also
            | Shadow::Matrix(_)
            | Shadow::Warpgroup(_)
            | Shadow::Undefine
            | Shadow::Frame(..)
            | Shadow::Check { .. } => None,
        }
    }
}

/// What depends on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    Branch,
    /// A branch or call by an index or address.
    Target,
    /// Whether an instruction is carried out.
    Guard,
    Address,
    /// The operand of an atomic operation.
    Atomic,
    /// What an atomic operation finds in memory.
    AtomicMemory,
    /// An argument of `printf`.
    Print,
}
