//! Which operation a line of the table means, for the words that an opcode has.

use super::{Bytes, Op, Ordered, Part, Relu, SaturatedDifference, SaturatedSum};
use crate::isa::Compute;
use crate::isa::types::{IntType, LongBits, NarrowInt, PackedInt, SignedInt, WideInt, Word};
use crate::isa::words::Words;

fn part(w: Words) -> Part {
    if w.has("hi") { Part::Hi } else { Part::Lo }
}

macro_rules! readers {
    ($($(#[$doc:meta])* $name:ident |$w:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name($w: Words) -> Option<Compute> {
            Some(Compute::Int($body))
        }
    )*};
}
readers! {
    add |w| Op::Add { ty: IntType::of(w.ty(0))? };
    /// `add{.sat}` of what saturates.
    add_or_sat |w| match (w.has("sat"), IntType::of(w.ty(0))) {
        (true, _) => Op::AddSat { ty: SaturatedSum::of(w.ty(0))? },
        (false, Some(ty)) => Op::Add { ty },
        (false, None) => Op::AddPacked { ty: PackedInt::of(w.ty(0))? },
    };
    add_cc |w| Op::AddCc { ty: WideInt::of(w.ty(0))? };
    addc |w| Op::Addc { ty: IntType::of(w.ty(0))? };
    addc_cc |w| Op::AddcCc { ty: WideInt::of(w.ty(0))? };
    sub |w| Op::Sub { ty: IntType::of(w.ty(0))? };
    /// `sub{.sat}` of what saturates.
    sub_or_sat |w| match (w.has("sat"), IntType::of(w.ty(0))) {
        (true, _) => Op::SubSat { ty: SaturatedDifference::of(w.ty(0))? },
        (false, Some(ty)) => Op::Sub { ty },
        (false, None) => Op::SubPacked { ty: Bytes::of(w.ty(0))? },
    };
    sub_cc |w| Op::SubCc { ty: WideInt::of(w.ty(0))? };
    subc |w| Op::Subc { ty: IntType::of(w.ty(0))? };
    subc_cc |w| Op::SubcCc { ty: WideInt::of(w.ty(0))? };
    mul |w| Op::Mul { part: part(w), ty: IntType::of(w.ty(0))? };
    mul_wide |w| Op::MulWide { ty: NarrowInt::of(w.ty(0))? };
    mad |w| Op::Mad { part: part(w), ty: IntType::of(w.ty(0))? };
    mad_wide |w| Op::MadWide { ty: NarrowInt::of(w.ty(0))? };
    mad_hi_sat |_w| Op::MadHiSat;
    mad_cc |w| Op::MadCc { part: part(w), ty: WideInt::of(w.ty(0))? };
    madc |w| Op::Madc { part: part(w), ty: IntType::of(w.ty(0))? };
    madc_cc |w| Op::MadcCc { part: part(w), ty: WideInt::of(w.ty(0))? };
    mul24 |w| Op::Mul24 { part: part(w), ty: Word::of(w.ty(0))? };
    mad24 |w| Op::Mad24 { part: part(w), ty: Word::of(w.ty(0))? };
    mad24_hi_sat |_w| Op::Mad24HiSat;
    sad |w| Op::Sad { ty: IntType::of(w.ty(0))? };
    div |w| Op::Div { ty: IntType::of(w.ty(0))? };
    rem |w| Op::Rem { ty: IntType::of(w.ty(0))? };
    abs |w| Op::Abs { ty: SignedInt::of(w.ty(0))? };
    neg |w| Op::Neg { ty: SignedInt::of(w.ty(0))? };
    neg_packed |_w| Op::NegPacked;
    min |w| match w.has("relu") {
        true => Op::MinRelu { ty: Relu::of(w.ty(0))? },
        false => Op::Min { ty: Ordered::of(w.ty(0))? },
    };
    max |w| match w.has("relu") {
        true => Op::MaxRelu { ty: Relu::of(w.ty(0))? },
        false => Op::Max { ty: Ordered::of(w.ty(0))? },
    };
    popc |w| Op::Popc { ty: LongBits::of(w.ty(0))? };
    clz |w| Op::Clz { ty: LongBits::of(w.ty(0))? };
    brev |w| Op::Brev { ty: LongBits::of(w.ty(0))? };
    bfind |w| Op::Bfind { shiftamt: w.has("shiftamt"), ty: WideInt::of(w.ty(0))? };
    bfe |w| Op::Bfe { ty: WideInt::of(w.ty(0))? };
    bfi |w| Op::Bfi { ty: LongBits::of(w.ty(0))? };
    bmsk |w| Op::Bmsk { wrap: w.has("wrap") };
    szext |w| Op::Szext { wrap: w.has("wrap"), ty: Word::of(w.ty(0))? };
    fns |_w| Op::Fns;
    dp4a |w| Op::Dp4a { a: Word::of(w.ty(0))?, b: Word::of(w.ty(1))? };
    dp2a |w| Op::Dp2a { part: part(w), a: Word::of(w.ty(0))?, b: Word::of(w.ty(1))? };
}
