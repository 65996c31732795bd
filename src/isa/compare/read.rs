//! Which operation a line of the table means, for the words that an opcode has.

use super::{Op, Operands, Truth};
use crate::isa::Compute;
use crate::isa::words::Words;

pub fn setp(w: Words) -> Option<Compute> {
    Some(Compute::Compare(Op::Setp {
        compare: w.compare()?,
        boolean: w.boolean(),
        of: Operands::of(w.ty(0), w.has("ftz"))?,
    }))
}
pub fn set(w: Words) -> Option<Compute> {
    Some(Compute::Compare(Op::Set {
        compare: w.compare()?,
        boolean: w.boolean(),
        to: Truth::of(w.ty(0))?,
        of: Operands::of(w.ty(1), w.has("ftz"))?,
    }))
}
