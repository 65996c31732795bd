//! Which registers and constants may stand where an instruction wants a type (PTX ISA, Operand Type Information; Operand
//! Size Exceeding Instruction-Type Size; Constants).

use crate::program::layout;
use crate::ptx::ast::{Expr, Type};

/// What values of a type may stand in for each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Pred,
    Bits,
    Integer,
    Float,
    Half,
    HalfPair,
    /// Other packed and narrow formats: they live in untyped registers.
    Packed,
    Handle,
}

pub fn class(ty: Type) -> Class {
    use Type::*;
    match ty {
        Pred => Class::Pred,
        B8 | B16 | B32 | B64 | B128 => Class::Bits,
        U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64 => Class::Integer,
        F32 | F64 => Class::Float,
        F16 => Class::Half,
        F16x2 => Class::HalfPair,
        TexRef | SamplerRef | SurfRef => Class::Handle,
        Bf16 | Bf16x2 | F32x2 | Tf32 | U8x4 | S8x4 | U16x2 | S16x2 | E4m3 | E5m2 | E3m2 | E2m3 | E2m1 | E4m3x2
        | E5m2x2 | E3m2x2 | E2m3x2 | E2m1x2 | E4m3x4 | E5m2x4 | E3m2x4 | E2m3x4 | E2m1x4 | Ue8m0x2 | Ue5m3x2
        | S2f6x2 => Class::Packed,
    }
}

/// Whether a register declared `.is` may stand where an instruction wants a `.want`.
pub fn agrees(want: Type, wider: bool, is: Type) -> bool {
    let (wanted, declared) = (class(want), class(is));
    if wanted == Class::Pred || declared == Class::Pred {
        return wanted == declared;
    }
    let (least, bytes) = (layout::size_of(want), layout::size_of(is));
    // Values of the newer formats have registers of their own width.
    if bytes < least || bytes > least && (!wider || wanted == Class::Packed) {
        return false;
    }
    match wanted {
        Class::Bits => true,
        Class::Integer => matches!(declared, Class::Bits | Class::Integer | Class::HalfPair),
        // Floating-point registers are as wide as their values; untyped ones may be wider.
        Class::Float => declared == Class::Bits || declared == Class::Float && bytes == least,
        Class::Half | Class::HalfPair => declared == Class::Bits || declared == wanted,
        Class::Packed if matches!(want, Type::U16x2 | Type::S16x2 | Type::U8x4 | Type::S8x4) => {
            matches!(declared, Class::Bits | Class::HalfPair)
        }
        Class::Packed if want == Type::S2f6x2 => matches!(declared, Class::Bits | Class::Integer),
        Class::Packed | Class::Handle => declared == Class::Bits,
        Class::Pred => false,
    }
}

/// Whether a constant may stand where an instruction wants a `.want`.
pub fn constant_agrees(want: Type, expr: &Expr) -> bool {
    match (expr, class(want)) {
        (Expr::Int { .. }, Class::Pred | Class::Bits | Class::Integer) => true,
        (Expr::F32 { .. } | Expr::F64 { .. }, Class::Float) => true,
        // Bits of the constant's own width.
        (Expr::F32 { .. }, Class::Bits) => want == Type::B32,
        (Expr::F64 { .. }, Class::Bits) => want == Type::B64,
        _ => false,
    }
}

/// What a message calls a type.
pub fn a_type(want: Type, wider: bool) -> String {
    match (want, wider) {
        (Type::Pred, _) => "a predicate is expected".to_owned(),
        // No register is declared with such a type.
        (ty, _) if class(ty) == Class::Packed => format!("a `.b{}` is expected", 8 * layout::size_of(ty)),
        (ty, false) => format!("a `.{}` is expected", ty.word()),
        (ty, true) => format!("a `.{}`, or something wider, is expected", ty.word()),
    }
}
