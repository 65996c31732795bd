//! Which operation a line of the table means, for the words that an opcode has.

use super::{Flags, Halves, Kind, Op, Packed, Round};
use crate::isa::Compute;
use crate::isa::types::Rounding;
use crate::isa::words::Words;

fn round(w: Words) -> Round {
    match (w.find(Rounding::from_word), w.find(Rounding::from_integral_word)) {
        (Some(mode), _) => Round::To(mode),
        (None, Some(mode)) => Round::Integral(mode),
        (None, None) => Round::Unsaid,
    }
}

pub fn cvt(w: Words) -> Option<Compute> {
    let op = Op::Cvt {
        to: Kind::of(w.ty(0))?,
        from: Kind::of(w.ty(1))?,
        round: round(w),
        flags: Flags {
            ftz: w.has("ftz"),
            sat: w.has("sat"),
            relu: w.has("relu"),
            satfinite: w.has("satfinite"),
        },
    };
    Some(Compute::Convert(op))
}
pub fn halves(w: Words) -> Option<Compute> {
    let op = Op::Halves {
        to: Halves::of(w.ty(0))?,
        rounding: w.find(Rounding::from_word)?,
        relu: w.has("relu"),
        satfinite: w.has("satfinite"),
    };
    Some(Compute::Convert(op))
}
pub fn pack(w: Words) -> Option<Compute> {
    // `.u4` and its like are words: nothing else is of these types.
    let to = w.find(|word| Packed::ALL.into_iter().find(|packed| packed.word() == word));
    let first = || Packed::ALL.into_iter().find(|packed| packed.word() == w.ty(0).word());
    Some(Compute::Convert(Op::Pack { to: to.or_else(first)? }))
}
