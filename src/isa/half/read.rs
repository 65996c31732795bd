//! Which operation a line of the table means, for the words that an opcode has.

use super::{Element, Format, Limit, Op, Plain};
use crate::isa::Compute;
use crate::isa::types::{HalfType, Rounding};
use crate::isa::words::Words;

fn format(w: Words) -> Option<Format> {
    let f16 = |x2| Format::F16 {
        x2,
        ftz: w.has("ftz"),
        sat: w.has("sat"),
    };
    Some(match HalfType::of(w.ty(0))? {
        HalfType::F16 => f16(false),
        HalfType::F16x2 => f16(true),
        HalfType::Bf16 => Format::Bf16 { x2: false },
        HalfType::Bf16x2 => Format::Bf16 { x2: true },
    })
}
fn plain(w: Words) -> Option<Plain> {
    Some(match format(w)? {
        Format::F16 { x2, ftz, .. } => Plain::F16 { x2, ftz },
        Format::Bf16 { x2 } => Plain::Bf16 { x2 },
    })
}
fn nearest(w: Words) -> Rounding {
    w.rounding().unwrap_or(Rounding::Rn)
}
fn limit(w: Words) -> Limit {
    match (w.has("relu"), w.has("sat")) {
        (true, _) => Limit::Relu,
        (false, true) => Limit::Sat,
        (false, false) => Limit::None,
    }
}

macro_rules! readers {
    ($($name:ident |$w:ident| $body:expr;)*) => {$(
        pub fn $name($w: Words) -> Option<Compute> {
            Some(Compute::Half($body))
        }
    )*};
}
readers! {
    add |w| Op::Add { rn: w.has("rn"), format: format(w)? };
    sub |w| Op::Sub { rn: w.has("rn"), format: format(w)? };
    mul |w| Op::Mul { rn: w.has("rn"), format: format(w)? };
    fma |w| match format(w)? {
        Format::F16 { x2, ftz, .. } => Op::FmaF16 { x2, ftz, limit: limit(w) },
        Format::Bf16 { x2 } => Op::FmaBf16 { x2, rounding: nearest(w), relu: w.has("relu") },
    };
    fma_oob |w| match format(w)? {
        Format::F16 { x2, .. } => Op::FmaOobF16 { x2, limit: limit(w) },
        Format::Bf16 { x2 } => Op::FmaOobBf16 { x2, rounding: nearest(w), relu: w.has("relu") },
    };
    neg |w| Op::Neg { format: plain(w)? };
    abs |w| Op::Abs { format: plain(w)? };
    ex2 |w| Op::Ex2 { ty: HalfType::of(w.ty(0))? };
    tanh |w| Op::Tanh { ty: HalfType::of(w.ty(0))? };
    min |w| Op::Min { format: plain(w)?, nan: w.has("NaN"), xorsign_abs: w.has("xorsign") };
    max |w| Op::Max { format: plain(w)?, nan: w.has("NaN"), xorsign_abs: w.has("xorsign") };
    mixed_add |w| Op::MixedAdd { rounding: nearest(w), sat: w.has("sat"), of: Element::of(w.ty(1))? };
    mixed_sub |w| Op::MixedSub { rounding: nearest(w), sat: w.has("sat"), of: Element::of(w.ty(1))? };
    mixed_fma |w| Op::MixedFma { rounding: nearest(w), sat: w.has("sat"), of: Element::of(w.ty(1))? };
}
