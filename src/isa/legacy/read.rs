//! Which operation a line of the table means, for the words that an opcode has.

use super::{FloatType, NarrowInt, Op};
use crate::isa::Compute;
use crate::isa::words::Words;

pub fn sad(w: Words) -> Option<Compute> {
    let ty = FloatType::of(w.ty(0))?;
    Some(Compute::Legacy(Op::Sad { ty }))
}
pub fn div_wide(w: Words) -> Option<Compute> {
    let ty = NarrowInt::of(w.ty(0))?;
    Some(Compute::Legacy(Op::DivWide { ty }))
}
pub fn rem_wide(w: Words) -> Option<Compute> {
    let ty = NarrowInt::of(w.ty(0))?;
    Some(Compute::Legacy(Op::RemWide { ty }))
}
