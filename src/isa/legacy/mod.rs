//! What PTX 1.x computes and later versions do not (PTX ISA 1.1, Tables 22 to 24): sums of absolute differences in
//! floating point, division of a wide number by a narrow one.

pub mod read;

use std::fmt;

use super::float::{FloatType, add_f32, add_f64, flush, sub_f64};
use super::lane::Lane;
use super::simd::op;
use super::types::NarrowInt;
use super::words::opcode;

/// `c + |a − b|`; targets of that time flush subnormals.
#[inline(always)]
pub fn sad_f32(a: f32, b: f32, c: f32) -> f32 {
    let (a, b) = (flush(a), flush(b));
    add_f32::<true, false>(c, if a < b { b - a } else { a - b })
}
#[inline(always)]
pub fn sad_f64(a: f64, b: f64, c: f64) -> f64 {
    add_f64(c, if a < b { sub_f64(b, a) } else { sub_f64(a, b) })
}
op!(SadF32 = sad_f32(a: f32, b: f32, c: f32) -> f32);
op!(SadF64 = sad_f64(a: f64, b: f64, c: f64) -> f64);

/// A quotient that does not fit keeps its low bits; by zero, everything is as in divisions of one width: all ones.
macro_rules! wide {
    ($($div:ident $rem:ident $div_op:ident $rem_op:ident: $wide:ty, $narrow:ty;)*) => { $(
        #[inline(always)]
        pub fn $div(a: $wide, b: $narrow) -> $narrow {
            let b = <$wide>::from(b);
            if b == 0 { !0 } else { a.wrapping_div(b) as $narrow }
        }
        #[inline(always)]
        pub fn $rem(a: $wide, b: $narrow) -> $narrow {
            let b = <$wide>::from(b);
            if b == 0 { !0 } else { a.wrapping_rem(b) as $narrow }
        }
        op!($div_op = $div(a: $wide, b: $narrow) -> $narrow);
        op!($rem_op = $rem(a: $wide, b: $narrow) -> $narrow);
    )* };
}
wide! {
    div_wide_u16 rem_wide_u16 DivWideU16 RemWideU16: u32, u16;
    div_wide_s16 rem_wide_s16 DivWideS16 RemWideS16: i32, i16;
    div_wide_u32 rem_wide_u32 DivWideU32 RemWideU32: u64, u32;
    div_wide_s32 rem_wide_s32 DivWideS32 RemWideS32: i64, i32;
}

/// An instruction of PTX 1.x alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Op {
    Sad { ty: FloatType },
    DivWide { ty: NarrowInt },
    RemWide { ty: NarrowInt },
}

impl Op {
    pub fn lane(self) -> Lane {
        match self {
            Op::Sad { ty: FloatType::F32 } => Lane::of::<SadF32>(),
            Op::Sad { ty: FloatType::F64 } => Lane::of::<SadF64>(),
            Op::DivWide { ty: NarrowInt::U16 } => Lane::of::<DivWideU16>(),
            Op::DivWide { ty: NarrowInt::S16 } => Lane::of::<DivWideS16>(),
            Op::DivWide { ty: NarrowInt::U32 } => Lane::of::<DivWideU32>(),
            Op::DivWide { ty: NarrowInt::S32 } => Lane::of::<DivWideS32>(),
            Op::RemWide { ty: NarrowInt::U16 } => Lane::of::<RemWideU16>(),
            Op::RemWide { ty: NarrowInt::S16 } => Lane::of::<RemWideS16>(),
            Op::RemWide { ty: NarrowInt::U32 } => Lane::of::<RemWideU32>(),
            Op::RemWide { ty: NarrowInt::S32 } => Lane::of::<RemWideS32>(),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Op::Sad { ty } => opcode!(f, "sad", ty),
            Op::DivWide { ty } => opcode!(f, "div.wide", ty),
            Op::RemWide { ty } => opcode!(f, "rem.wide", ty),
        }
    }
}
