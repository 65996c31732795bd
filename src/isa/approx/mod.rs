//! The approximate instructions: `.approx` and `.full` of division, reciprocal, roots, sine, cosine, logarithm, power,
//! hyperbolic tangent (PTX ISA, Floating Point Instructions).

pub mod read;
mod scalar;

use std::fmt;

pub use self::scalar::*;
use super::lane::Lane;
use super::words::opcode;

/// An approximate instruction; of `f32` unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Op {
    Div { ftz: bool },
    DivFull { ftz: bool },
    Rcp { ftz: bool },
    /// `rcp.approx.ftz.f64`
    RcpF64,
    Sqrt { ftz: bool },
    Rsqrt { ftz: bool },
    RsqrtF64 { ftz: bool },
    Sin { ftz: bool },
    Cos { ftz: bool },
    Lg2 { ftz: bool },
    Ex2 { ftz: bool },
    Tanh,
}

impl Op {
    pub fn lane(self) -> Lane {
        macro_rules! by_ftz {
            ($wrapped:ident, $ftz:ident) => {
                match $ftz {
                    false => on_unit::<$wrapped<false>>(),
                    true => on_unit::<$wrapped<true>>(),
                }
            };
        }
        match self {
            Op::Div { ftz } => by_ftz!(DivApproxF32, ftz),
            Op::DivFull { ftz } => by_ftz!(DivFullF32, ftz),
            Op::Rcp { ftz } => by_ftz!(RcpApproxF32, ftz),
            Op::RcpF64 => Lane::of::<RcpApproxF64>(),
            Op::Sqrt { ftz } => by_ftz!(SqrtApproxF32, ftz),
            Op::Rsqrt { ftz } => by_ftz!(RsqrtApproxF32, ftz),
            Op::RsqrtF64 { ftz: false } => Lane::of::<RsqrtApproxF64>(),
            Op::RsqrtF64 { ftz: true } => Lane::of::<RsqrtApproxFtzF64>(),
            Op::Sin { ftz } => by_ftz!(SinApproxF32, ftz),
            Op::Cos { ftz } => by_ftz!(CosApproxF32, ftz),
            Op::Lg2 { ftz } => by_ftz!(Lg2ApproxF32, ftz),
            Op::Ex2 { ftz } => by_ftz!(Ex2ApproxF32, ftz),
            Op::Tanh => Lane::of::<TanhApproxF32>(),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flush = |ftz| (ftz, "ftz");
        match *self {
            Op::Div { ftz } => opcode!(f, "div.approx", flush(ftz), "f32"),
            Op::DivFull { ftz } => opcode!(f, "div.full", flush(ftz), "f32"),
            Op::Rcp { ftz } => opcode!(f, "rcp.approx", flush(ftz), "f32"),
            Op::RcpF64 => opcode!(f, "rcp.approx.ftz.f64"),
            Op::Sqrt { ftz } => opcode!(f, "sqrt.approx", flush(ftz), "f32"),
            Op::Rsqrt { ftz } => opcode!(f, "rsqrt.approx", flush(ftz), "f32"),
            Op::RsqrtF64 { ftz } => opcode!(f, "rsqrt.approx", flush(ftz), "f64"),
            Op::Sin { ftz } => opcode!(f, "sin.approx", flush(ftz), "f32"),
            Op::Cos { ftz } => opcode!(f, "cos.approx", flush(ftz), "f32"),
            Op::Lg2 { ftz } => opcode!(f, "lg2.approx", flush(ftz), "f32"),
            Op::Ex2 { ftz } => opcode!(f, "ex2.approx", flush(ftz), "f32"),
            Op::Tanh => opcode!(f, "tanh.approx.f32"),
        }
    }
}
