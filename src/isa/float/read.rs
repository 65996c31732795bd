//! Which operation a line of the table means, for the words that an opcode has.

use super::{Extremum, FloatType, Format, Op, Property, Scalar};
use crate::isa::types::{Rounding, Type};
use crate::isa::words::Words;
use crate::isa::{Compute, approx};

fn format(w: Words) -> Option<Format> {
    Some(match FloatType::of(w.ty(0)) {
        Some(FloatType::F32) => Format::F32 {
            ftz: w.has("ftz"),
            sat: w.has("sat"),
        },
        Some(FloatType::F64) => Format::F64,
        None if w.ty(0) == Type::F32x2 => Format::F32x2 { ftz: w.has("ftz") },
        None => return None,
    })
}
fn scalar(w: Words) -> Option<Scalar> {
    Some(match FloatType::of(w.ty(0))? {
        FloatType::F32 => Scalar::F32 { ftz: w.has("ftz") },
        FloatType::F64 => Scalar::F64,
    })
}
/// Single precision without a rounding modifier is approximate: the assembler takes it before PTX 1.4 alone.
fn is_approximate(w: Words) -> bool {
    w.has("approx") || w.rounding().is_none() && w.ty(0) == Type::F32
}
fn nearest(w: Words) -> Rounding {
    w.rounding().unwrap_or(Rounding::Rn)
}
fn extremum(w: Words) -> Option<Extremum> {
    Some(match FloatType::of(w.ty(0))? {
        FloatType::F32 => Extremum::F32 {
            ftz: w.has("ftz"),
            nan: w.has("NaN"),
            xorsign_abs: w.has("xorsign"),
        },
        FloatType::F64 => Extremum::F64,
    })
}
/// `.abs` alone.
fn is_of_magnitudes(w: Words) -> bool {
    w.has("abs") && !w.has("xorsign")
}

macro_rules! readers {
    ($($(#[$doc:meta])* $name:ident |$w:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name($w: Words) -> Option<Compute> {
            Some($body.into())
        }
    )*};
}
readers! {
    add |w| Op::Add { rounding: w.rounding(), format: format(w)? };
    sub |w| Op::Sub { rounding: w.rounding(), format: format(w)? };
    mul |w| Op::Mul { rounding: w.rounding(), format: format(w)? };
    fma |w| Op::Fma { rounding: nearest(w), format: format(w)? };
    abs |w| Op::Abs { format: scalar(w)? };
    neg |w| Op::Neg { format: scalar(w)? };
    /// Of three operands, too: without `.abs` lowering makes them of two.
    min |w| match is_of_magnitudes(w) {
        true => Op::MinAbs { ftz: w.has("ftz"), nan: w.has("NaN") },
        false => Op::Min { of: extremum(w)? },
    };
    /// As [`min`].
    max |w| match is_of_magnitudes(w) {
        true => Op::MaxAbs { ftz: w.has("ftz"), nan: w.has("NaN") },
        false => Op::Max { of: extremum(w)? },
    };
    copysign |w| Op::Copysign { ty: FloatType::of(w.ty(0))? };
    testp |w| Op::Testp { property: w.find(Property::from_word)?, ty: FloatType::of(w.ty(0))? };
    div_approx |w| approx::Op::Div { ftz: w.has("ftz") };
    div_full |w| approx::Op::DivFull { ftz: w.has("ftz") };
    rcp_approx_f64 |_w| approx::Op::RcpF64;
}
pub fn div(w: Words) -> Option<Compute> {
    if is_approximate(w) {
        return div_approx(w);
    }
    let (rounding, format) = (nearest(w), scalar(w)?);
    Some(Op::Div { rounding, format }.into())
}
pub fn rcp(w: Words) -> Option<Compute> {
    if is_approximate(w) {
        return Some(approx::Op::Rcp { ftz: w.has("ftz") }.into());
    }
    let (rounding, format) = (nearest(w), scalar(w)?);
    Some(Op::Rcp { rounding, format }.into())
}
pub fn sqrt(w: Words) -> Option<Compute> {
    if is_approximate(w) {
        return Some(approx::Op::Sqrt { ftz: w.has("ftz") }.into());
    }
    let (rounding, format) = (nearest(w), scalar(w)?);
    Some(Op::Sqrt { rounding, format }.into())
}
