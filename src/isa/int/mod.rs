//! Integer arithmetic (PTX ISA, Integer Arithmetic Instructions; Extended-Precision Integer Arithmetic Instructions):
//! the operations, and which kernel computes each.

pub mod read;
mod scalar;

use std::fmt;

pub use self::scalar::*;
use super::algebra::Linear;
use super::lane::Lane;
use super::types::{IntType, LongBits, NarrowInt, PackedInt, SignedInt, WideInt, Word, subtypes};
use super::words::{modifiers, opcode};

subtypes! {
    /// What `add.sat` adds.
    SaturatedSum { S32, U32, U16x2, S16x2, U8x4, S8x4 }
    /// What `sub.sat` subtracts.
    SaturatedDifference { S32, U8x4, S8x4 }
    /// What `sub` takes apart in parts of a register.
    Bytes { U8x4, S8x4 }
    /// What has a least and a greatest.
    Ordered { U16, S16, U32, S32, U64, S64, U16x2, S16x2, U8x4, S8x4 }
    /// What `.relu` raises to zero.
    Relu { S32, S16x2, S8x4 }
}
modifiers! { SaturatedSum SaturatedDifference Bytes Ordered Relu Part }

/// Which half of a product, or of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Part { Lo, Hi }

impl Part {
    /// As written behind a dot.
    pub fn word(self) -> &'static str {
        match self {
            Part::Lo => "lo",
            Part::Hi => "hi",
        }
    }
}

/// An integer instruction. `…Cc` write the carry flag, `…c` read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Op {
    Add { ty: IntType },
    AddSat { ty: SaturatedSum },
    AddPacked { ty: PackedInt },
    AddCc { ty: WideInt },
    Addc { ty: IntType },
    AddcCc { ty: WideInt },
    Sub { ty: IntType },
    SubSat { ty: SaturatedDifference },
    SubPacked { ty: Bytes },
    SubCc { ty: WideInt },
    Subc { ty: IntType },
    SubcCc { ty: WideInt },
    Mul { part: Part, ty: IntType },
    MulWide { ty: NarrowInt },
    Mad { part: Part, ty: IntType },
    MadWide { ty: NarrowInt },
    /// `mad.hi.sat.s32`
    MadHiSat,
    MadCc { part: Part, ty: WideInt },
    Madc { part: Part, ty: IntType },
    MadcCc { part: Part, ty: WideInt },
    Mul24 { part: Part, ty: Word },
    Mad24 { part: Part, ty: Word },
    /// `mad24.hi.sat.s32`
    Mad24HiSat,
    Sad { ty: IntType },
    Div { ty: IntType },
    Rem { ty: IntType },
    Abs { ty: SignedInt },
    Neg { ty: SignedInt },
    /// `neg.s8x4`
    NegPacked,
    Min { ty: Ordered },
    Max { ty: Ordered },
    MinRelu { ty: Relu },
    MaxRelu { ty: Relu },
    Popc { ty: LongBits },
    Clz { ty: LongBits },
    Brev { ty: LongBits },
    Bfind { shiftamt: bool, ty: WideInt },
    Bfe { ty: WideInt },
    Bfi { ty: LongBits },
    /// `wrap`: the low bits of places and lengths count; else they count up to the width.
    Bmsk { wrap: bool },
    Szext { wrap: bool, ty: Word },
    Fns,
    Dp4a { a: Word, b: Word },
    Dp2a { part: Part, a: Word, b: Word },
}

/// Picks by the width of the type, for operations that do not see signs.
macro_rules! by_width {
    ($op:ident, $ty:expr) => {
        match $ty {
            IntType::U16 | IntType::S16 => Lane::of::<$op<u16>>(),
            IntType::U32 | IntType::S32 => Lane::of::<$op<u32>>(),
            IntType::U64 | IntType::S64 => Lane::of::<$op<u64>>(),
        }
    };
}
/// Picks by the type, for operations that do.
macro_rules! by_type {
    ($op:ident, $ty:expr) => {
        match $ty {
            IntType::U16 => Lane::of::<$op<u16>>(),
            IntType::S16 => Lane::of::<$op<i16>>(),
            IntType::U32 => Lane::of::<$op<u32>>(),
            IntType::S32 => Lane::of::<$op<i32>>(),
            IntType::U64 => Lane::of::<$op<u64>>(),
            IntType::S64 => Lane::of::<$op<i64>>(),
        }
    };
}
macro_rules! by_long_width {
    ($op:ident, $ty:expr) => {
        match $ty {
            WideInt::U32 | WideInt::S32 => Lane::of::<$op<u32>>(),
            WideInt::U64 | WideInt::S64 => Lane::of::<$op<u64>>(),
        }
    };
}
macro_rules! by_long_type {
    ($op:ident, $ty:expr) => {
        match $ty {
            WideInt::U32 => Lane::of::<$op<u32>>(),
            WideInt::S32 => Lane::of::<$op<i32>>(),
            WideInt::U64 => Lane::of::<$op<u64>>(),
            WideInt::S64 => Lane::of::<$op<i64>>(),
        }
    };
}
macro_rules! by_narrow_type {
    ($op:ident, $ty:expr) => {
        match $ty {
            NarrowInt::U16 => Lane::of::<$op<u16>>(),
            NarrowInt::S16 => Lane::of::<$op<i16>>(),
            NarrowInt::U32 => Lane::of::<$op<u32>>(),
            NarrowInt::S32 => Lane::of::<$op<i32>>(),
        }
    };
}
macro_rules! by_bits {
    ($short:ident, $long:ident, $ty:expr) => {
        match $ty {
            LongBits::B32 => Lane::of::<$short>(),
            LongBits::B64 => Lane::of::<$long>(),
        }
    };
}
macro_rules! by_order {
    ($op:ident, $u16x2:ident, $s16x2:ident, $u8x4:ident, $s8x4:ident, $ty:expr) => {
        match $ty {
            Ordered::U16 => Lane::of::<$op<u16>>(),
            Ordered::S16 => Lane::of::<$op<i16>>(),
            Ordered::U32 => Lane::of::<$op<u32>>(),
            Ordered::S32 => Lane::of::<$op<i32>>(),
            Ordered::U64 => Lane::of::<$op<u64>>(),
            Ordered::S64 => Lane::of::<$op<i64>>(),
            Ordered::U16x2 => Lane::of::<$u16x2>(),
            Ordered::S16x2 => Lane::of::<$s16x2>(),
            Ordered::U8x4 => Lane::of::<$u8x4>(),
            Ordered::S8x4 => Lane::of::<$s8x4>(),
        }
    };
}

impl Op {
    pub fn lane(self) -> Lane {
        match self {
            Op::Add { ty } => by_width!(Add, ty),
            Op::AddSat { ty } => match ty {
                SaturatedSum::S32 => Lane::of::<AddSat<i32>>(),
                SaturatedSum::U32 => Lane::of::<AddSat<u32>>(),
                SaturatedSum::U16x2 => Lane::of::<AddSatU16x2>(),
                SaturatedSum::S16x2 => Lane::of::<AddSatS16x2>(),
                SaturatedSum::U8x4 => Lane::of::<AddSatU8x4>(),
                SaturatedSum::S8x4 => Lane::of::<AddSatS8x4>(),
            },
            Op::AddPacked { ty } => match ty {
                PackedInt::U16x2 | PackedInt::S16x2 => Lane::of::<AddX2>(),
                PackedInt::U8x4 | PackedInt::S8x4 => Lane::of::<AddX4>(),
            },
            Op::AddCc { ty } => by_long_width!(AddCc, ty).carry_out(),
            Op::Addc { ty } => by_width!(Addc, ty).carry_in(),
            Op::AddcCc { ty } => by_long_width!(AddcCc, ty).carry_in().carry_out(),
            Op::Sub { ty } => by_width!(Sub, ty),
            Op::SubSat { ty } => match ty {
                SaturatedDifference::S32 => Lane::of::<SubSat<i32>>(),
                SaturatedDifference::U8x4 => Lane::of::<SubSatU8x4>(),
                SaturatedDifference::S8x4 => Lane::of::<SubSatS8x4>(),
            },
            Op::SubPacked {
                ty: Bytes::U8x4 | Bytes::S8x4,
            } => Lane::of::<SubX4>(),
            Op::SubCc { ty } => by_long_width!(SubCc, ty).carry_out(),
            Op::Subc { ty } => by_width!(Subc, ty).carry_in(),
            Op::SubcCc { ty } => by_long_width!(SubcCc, ty).carry_in().carry_out(),
            Op::Mul { part: Part::Lo, ty } => by_width!(MulLo, ty),
            Op::Mul { part: Part::Hi, ty } => by_type!(MulHi, ty),
            Op::MulWide { ty } => by_narrow_type!(MulWide, ty),
            Op::Mad { part: Part::Lo, ty } => by_width!(MadLo, ty),
            Op::Mad { part: Part::Hi, ty } => by_type!(MadHi, ty),
            Op::MadWide { ty } => by_narrow_type!(MadWide, ty),
            Op::MadHiSat => Lane::of::<MadHiSat>(),
            Op::MadCc { part: Part::Lo, ty } => by_long_width!(MadLoCc, ty).carry_out(),
            Op::MadCc { part: Part::Hi, ty } => by_long_type!(MadHiCc, ty).carry_out(),
            Op::Madc { part: Part::Lo, ty } => by_width!(MadcLo, ty).carry_in(),
            Op::Madc { part: Part::Hi, ty } => by_type!(MadcHi, ty).carry_in(),
            Op::MadcCc { part: Part::Lo, ty } => by_long_width!(MadcLoCc, ty).carry_in().carry_out(),
            Op::MadcCc { part: Part::Hi, ty } => by_long_type!(MadcHiCc, ty).carry_in().carry_out(),
            Op::Mul24 { part, ty } => match (part, ty) {
                (Part::Lo, Word::U32) => Lane::of::<Mul24LoU>(),
                (Part::Lo, Word::S32) => Lane::of::<Mul24LoS>(),
                (Part::Hi, Word::U32) => Lane::of::<Mul24HiU>(),
                (Part::Hi, Word::S32) => Lane::of::<Mul24HiS>(),
            },
            Op::Mad24 { part, ty } => match (part, ty) {
                (Part::Lo, Word::U32) => Lane::of::<Mad24LoU>(),
                (Part::Lo, Word::S32) => Lane::of::<Mad24LoS>(),
                (Part::Hi, Word::U32) => Lane::of::<Mad24HiU>(),
                (Part::Hi, Word::S32) => Lane::of::<Mad24HiS>(),
            },
            Op::Mad24HiSat => Lane::of::<Mad24HiSat>(),
            Op::Sad { ty } => by_type!(Sad, ty),
            Op::Div { ty } => by_type!(Div, ty),
            Op::Rem { ty } => by_type!(Rem, ty),
            Op::Abs { ty } => match ty {
                SignedInt::S16 => Lane::of::<Abs<i16>>(),
                SignedInt::S32 => Lane::of::<Abs<i32>>(),
                SignedInt::S64 => Lane::of::<Abs<i64>>(),
            },
            Op::Neg { ty } => match ty {
                SignedInt::S16 => Lane::of::<Neg<u16>>(),
                SignedInt::S32 => Lane::of::<Neg<u32>>(),
                SignedInt::S64 => Lane::of::<Neg<u64>>(),
            },
            Op::NegPacked => Lane::of::<NegX4>(),
            Op::Min { ty } => by_order!(Min, MinU16x2, MinS16x2, MinU8x4, MinS8x4, ty),
            Op::Max { ty } => by_order!(Max, MaxU16x2, MaxS16x2, MaxU8x4, MaxS8x4, ty),
            Op::MinRelu { ty } => match ty {
                Relu::S32 => Lane::of::<MinRelu<i32>>(),
                Relu::S16x2 => Lane::of::<MinReluS16x2>(),
                Relu::S8x4 => Lane::of::<MinReluS8x4>(),
            },
            Op::MaxRelu { ty } => match ty {
                Relu::S32 => Lane::of::<MaxRelu<i32>>(),
                Relu::S16x2 => Lane::of::<MaxReluS16x2>(),
                Relu::S8x4 => Lane::of::<MaxReluS8x4>(),
            },
            Op::Popc { ty } => by_bits!(Popc32, Popc64, ty),
            Op::Clz { ty } => by_bits!(Clz32, Clz64, ty),
            Op::Brev { ty } => by_bits!(Brev32, Brev64, ty),
            Op::Bfind { shiftamt, ty } => match (ty, shiftamt) {
                (WideInt::U32, false) => Lane::of::<BfindU32<false>>(),
                (WideInt::U32, true) => Lane::of::<BfindU32<true>>(),
                (WideInt::S32, false) => Lane::of::<BfindS32<false>>(),
                (WideInt::S32, true) => Lane::of::<BfindS32<true>>(),
                (WideInt::U64, false) => Lane::of::<BfindU64<false>>(),
                (WideInt::U64, true) => Lane::of::<BfindU64<true>>(),
                (WideInt::S64, false) => Lane::of::<BfindS64<false>>(),
                (WideInt::S64, true) => Lane::of::<BfindS64<true>>(),
            },
            Op::Bfe { ty } => match ty {
                WideInt::U32 => Lane::of::<BfeU32>(),
                WideInt::S32 => Lane::of::<BfeS32>(),
                WideInt::U64 => Lane::of::<BfeU64>(),
                WideInt::S64 => Lane::of::<BfeS64>(),
            },
            Op::Bfi { ty } => by_bits!(Bfi32, Bfi64, ty),
            Op::Bmsk { wrap: false } => Lane::of::<Bmsk<false>>(),
            Op::Bmsk { wrap: true } => Lane::of::<Bmsk<true>>(),
            Op::Szext { wrap, ty } => match (ty, wrap) {
                (Word::U32, false) => Lane::of::<SzextU<false>>(),
                (Word::U32, true) => Lane::of::<SzextU<true>>(),
                (Word::S32, false) => Lane::of::<SzextS<false>>(),
                (Word::S32, true) => Lane::of::<SzextS<true>>(),
            },
            Op::Fns => Lane::of::<Fns>(),
            Op::Dp4a { a, b } => match (a, b) {
                (Word::U32, Word::U32) => Lane::of::<Dp4a<false, false>>(),
                (Word::U32, Word::S32) => Lane::of::<Dp4a<false, true>>(),
                (Word::S32, Word::U32) => Lane::of::<Dp4a<true, false>>(),
                (Word::S32, Word::S32) => Lane::of::<Dp4a<true, true>>(),
            },
            Op::Dp2a { part, a, b } => match (a, b, part) {
                (Word::U32, Word::U32, Part::Lo) => Lane::of::<Dp2a<false, false, false>>(),
                (Word::U32, Word::S32, Part::Lo) => Lane::of::<Dp2a<false, true, false>>(),
                (Word::S32, Word::U32, Part::Lo) => Lane::of::<Dp2a<true, false, false>>(),
                (Word::S32, Word::S32, Part::Lo) => Lane::of::<Dp2a<true, true, false>>(),
                (Word::U32, Word::U32, Part::Hi) => Lane::of::<Dp2a<false, false, true>>(),
                (Word::U32, Word::S32, Part::Hi) => Lane::of::<Dp2a<false, true, true>>(),
                (Word::S32, Word::U32, Part::Hi) => Lane::of::<Dp2a<true, false, true>>(),
                (Word::S32, Word::S32, Part::Hi) => Lane::of::<Dp2a<true, true, true>>(),
            },
        }
    }
}

impl Op {
    pub(super) fn linear(self) -> Option<Linear> {
        let long = |ty: IntType, linear| (ty.bits() >= 32).then_some(linear);
        let wide = |ty| match ty {
            NarrowInt::U32 => Some(false),
            NarrowInt::S32 => Some(true),
            NarrowInt::U16 | NarrowInt::S16 => None,
        };
        match self {
            Op::Add { ty } => long(ty, Linear::Add),
            Op::Sub { ty } => long(ty, Linear::Sub),
            Op::Mul { part: Part::Lo, ty } => long(ty, Linear::Mul),
            Op::Mad { part: Part::Lo, ty } => long(ty, Linear::Mad),
            Op::MulWide { ty } => wide(ty).map(|signed| Linear::MulWide { signed }),
            Op::MadWide { ty } => wide(ty).map(|signed| Linear::MadWide { signed }),
            Op::Mul { part: Part::Hi, .. }
            | Op::Mad { part: Part::Hi, .. }
            | Op::AddSat { .. }
            | Op::AddPacked { .. }
            | Op::AddCc { .. }
            | Op::Addc { .. }
            | Op::AddcCc { .. }
            | Op::SubSat { .. }
            | Op::SubPacked { .. }
            | Op::SubCc { .. }
            | Op::Subc { .. }
            | Op::SubcCc { .. }
            | Op::MadHiSat
            | Op::MadCc { .. }
            | Op::Madc { .. }
            | Op::MadcCc { .. }
            | Op::Mul24 { .. }
            | Op::Mad24 { .. }
            | Op::Mad24HiSat
            | Op::Sad { .. }
            | Op::Div { .. }
            | Op::Rem { .. }
            | Op::Abs { .. }
            | Op::Neg { .. }
            | Op::NegPacked
            | Op::Min { .. }
            | Op::Max { .. }
            | Op::MinRelu { .. }
            | Op::MaxRelu { .. }
            | Op::Popc { .. }
            | Op::Clz { .. }
            | Op::Brev { .. }
            | Op::Bfind { .. }
            | Op::Bfe { .. }
            | Op::Bfi { .. }
            | Op::Bmsk { .. }
            | Op::Szext { .. }
            | Op::Fns
            | Op::Dp4a { .. }
            | Op::Dp2a { .. } => None,
        }
    }

    /// Divisions of 64 bits.
    pub(super) fn is_routine(self) -> bool {
        matches!(
            self,
            Op::Div {
                ty: IntType::U64 | IntType::S64
            } | Op::Rem {
                ty: IntType::U64 | IntType::S64
            }
        )
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = |wrap| if wrap { "wrap" } else { "clamp" };
        match *self {
            Op::Add { ty } => opcode!(f, "add", ty),
            Op::AddSat { ty } => opcode!(f, "add", "sat", ty),
            Op::AddPacked { ty } => opcode!(f, "add", ty),
            Op::AddCc { ty } => opcode!(f, "add", "cc", ty),
            Op::Addc { ty } => opcode!(f, "addc", ty),
            Op::AddcCc { ty } => opcode!(f, "addc", "cc", ty),
            Op::Sub { ty } => opcode!(f, "sub", ty),
            Op::SubSat { ty } => opcode!(f, "sub", "sat", ty),
            Op::SubPacked { ty } => opcode!(f, "sub", ty),
            Op::SubCc { ty } => opcode!(f, "sub", "cc", ty),
            Op::Subc { ty } => opcode!(f, "subc", ty),
            Op::SubcCc { ty } => opcode!(f, "subc", "cc", ty),
            Op::Mul { part, ty } => opcode!(f, "mul", part, ty),
            Op::MulWide { ty } => opcode!(f, "mul", "wide", ty),
            Op::Mad { part, ty } => opcode!(f, "mad", part, ty),
            Op::MadWide { ty } => opcode!(f, "mad", "wide", ty),
            Op::MadHiSat => opcode!(f, "mad.hi.sat.s32"),
            Op::MadCc { part, ty } => opcode!(f, "mad", part, "cc", ty),
            Op::Madc { part, ty } => opcode!(f, "madc", part, ty),
            Op::MadcCc { part, ty } => opcode!(f, "madc", part, "cc", ty),
            Op::Mul24 { part, ty } => opcode!(f, "mul24", part, ty),
            Op::Mad24 { part, ty } => opcode!(f, "mad24", part, ty),
            Op::Mad24HiSat => opcode!(f, "mad24.hi.sat.s32"),
            Op::Sad { ty } => opcode!(f, "sad", ty),
            Op::Div { ty } => opcode!(f, "div", ty),
            Op::Rem { ty } => opcode!(f, "rem", ty),
            Op::Abs { ty } => opcode!(f, "abs", ty),
            Op::Neg { ty } => opcode!(f, "neg", ty),
            Op::NegPacked => opcode!(f, "neg.s8x4"),
            Op::Min { ty } => opcode!(f, "min", ty),
            Op::Max { ty } => opcode!(f, "max", ty),
            Op::MinRelu { ty } => opcode!(f, "min", "relu", ty),
            Op::MaxRelu { ty } => opcode!(f, "max", "relu", ty),
            Op::Popc { ty } => opcode!(f, "popc", ty),
            Op::Clz { ty } => opcode!(f, "clz", ty),
            Op::Brev { ty } => opcode!(f, "brev", ty),
            Op::Bfind { shiftamt, ty } => opcode!(f, "bfind", (shiftamt, "shiftamt"), ty),
            Op::Bfe { ty } => opcode!(f, "bfe", ty),
            Op::Bfi { ty } => opcode!(f, "bfi", ty),
            Op::Bmsk { wrap } => opcode!(f, "bmsk", mode(wrap), "b32"),
            Op::Szext { wrap, ty } => opcode!(f, "szext", mode(wrap), ty),
            Op::Fns => opcode!(f, "fns.b32"),
            Op::Dp4a { a, b } => opcode!(f, "dp4a", a, b),
            Op::Dp2a { part, a, b } => opcode!(f, "dp2a", part, a, b),
        }
    }
}
