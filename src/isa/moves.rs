//! Lane kernels that move bits: copies, changes of width, packing and unpacking, predicates. Lowering composes `mov`,
//! operand widths that differ from an instruction's type, and calling sequences from them.

use super::Lane;
use super::lanes::Width;
use super::logic::{self, Selp};
use super::simd::op;

macro_rules! copies {
    ($($name:ident $f:ident $from:ty => $to:ty, |$a:ident| $body:expr;)*) => {$(
        #[inline(always)]
        fn $f($a: $from) -> $to { $body }
        op!($name = $f(a: $from) -> $to);
    )*};
}
copies! {
    Copy16 copy16 u16 => u16, |a| a;
    Copy32 copy32 u32 => u32, |a| a;
    Copy64 copy64 u64 => u64, |a| a;
    Copy128 copy128 u128 => u128, |a| a;
    Zero16To32 zero16_to32 u16 => u32, |a| a.into();
    Zero16To64 zero16_to64 u16 => u64, |a| a.into();
    Zero16To128 zero16_to128 u16 => u128, |a| a.into();
    Zero32To64 zero32_to64 u32 => u64, |a| a.into();
    Zero32To128 zero32_to128 u32 => u128, |a| a.into();
    Zero64To128 zero64_to128 u64 => u128, |a| a.into();
    Sign16To32 sign16_to32 i16 => i32, |a| a.into();
    Sign16To64 sign16_to64 i16 => i64, |a| a.into();
    Sign32To64 sign32_to64 i32 => i64, |a| a.into();
    Low32To16 low32_to16 u32 => u16, |a| a as u16;
    Low64To16 low64_to16 u64 => u16, |a| a as u16;
    Low64To32 low64_to32 u64 => u32, |a| a as u32;
    Low128To16 low128_to16 u128 => u16, |a| a as u16;
    Low128To32 low128_to32 u128 => u32, |a| a as u32;
    Low128To64 low128_to64 u128 => u64, |a| a as u64;
    Zero8 zero8 u16 => u16, |a| a & 0xff;
    Sign8 sign8 u16 => i16, |a| i16::from(a as i8);
    Any16 any16 u16 => bool, |a| a != 0;
    Any32 any32 u32 => bool, |a| a != 0;
    Any64 any64 u64 => bool, |a| a != 0;
}

/// Copies a slot of one width to a slot of the same width.
pub fn copy(width: Width) -> Lane {
    match width {
        Width::Pred => logic::predicate_lane::<logic::PredMov>(),
        Width::B16 => Lane::of::<Copy16>(),
        Width::B32 => Lane::of::<Copy32>(),
        Width::B64 => Lane::of::<Copy64>(),
        Width::B128 => Lane::of::<Copy128>(),
    }
}

/// Copies between slots of different widths: truncates, or extends by zeros or by the sign. Predicates take no part.
pub fn resize(from: Width, to: Width, signed: bool) -> Option<Lane> {
    use Width::*;
    Some(match (from, to) {
        (B16, B32) if signed => Lane::of::<Sign16To32>(),
        (B16, B64) if signed => Lane::of::<Sign16To64>(),
        (B32, B64) if signed => Lane::of::<Sign32To64>(),
        (B16, B32) => Lane::of::<Zero16To32>(),
        (B16, B64) => Lane::of::<Zero16To64>(),
        (B16, B128) => Lane::of::<Zero16To128>(),
        (B32, B64) => Lane::of::<Zero32To64>(),
        (B32, B128) => Lane::of::<Zero32To128>(),
        (B64, B128) => Lane::of::<Zero64To128>(),
        (B32, B16) => Lane::of::<Low32To16>(),
        (B64, B16) => Lane::of::<Low64To16>(),
        (B64, B32) => Lane::of::<Low64To32>(),
        (B128, B16) => Lane::of::<Low128To16>(),
        (B128, B32) => Lane::of::<Low128To32>(),
        (B128, B64) => Lane::of::<Low128To64>(),
        (Pred, _) | (_, Pred) => return None,
        (B16, B16) | (B32, B32) | (B64, B64) | (B128, B128) => copy(from),
    })
}

/// The low byte of a `B16` slot extended to the whole slot.
pub fn extend_byte(signed: bool) -> Lane {
    if signed {
        Lane::of::<Sign8>()
    } else {
        Lane::of::<Zero8>()
    }
}

/// `dst = (src != 0)`: what a number is as a predicate.
pub fn is_nonzero(width: Width) -> Option<Lane> {
    Some(match width {
        Width::B16 => Lane::of::<Any16>(),
        Width::B32 => Lane::of::<Any32>(),
        Width::B64 => Lane::of::<Any64>(),
        Width::Pred | Width::B128 => return None,
    })
}

macro_rules! packs {
    ($($name:ident $f:ident ($($a:ident: $t:ty),*) -> $r:ty = $body:expr;)*) => {$(
        #[inline(always)]
        fn $f($($a: $t),*) -> $r { $body }
        op!($name = $f($($a: $t),*) -> $r);
    )*};
}
packs! {
    Pack8x2 pack8x2(a: u16, b: u16) -> u16 = b << 8 | a & 0xff;
    Pack8x4 pack8x4(a: u16, b: u16, c: u16, d: u16) -> u32 =
        u32::from(d & 0xff) << 24 | u32::from(c & 0xff) << 16 | u32::from(b & 0xff) << 8 | u32::from(a & 0xff);
    Pack16x2 pack16x2(a: u16, b: u16) -> u32 = u32::from(b) << 16 | u32::from(a);
    Pack16x4 pack16x4(a: u16, b: u16, c: u16, d: u16) -> u64 =
        u64::from(d) << 48 | u64::from(c) << 32 | u64::from(b) << 16 | u64::from(a);
    Pack32x2 pack32x2(a: u32, b: u32) -> u64 = u64::from(b) << 32 | u64::from(a);
    Pack32x4 pack32x4(a: u32, b: u32, c: u32, d: u32) -> u128 =
        u128::from(d) << 96 | u128::from(c) << 64 | u128::from(b) << 32 | u128::from(a);
    Pack64x2 pack64x2(a: u64, b: u64) -> u128 = u128::from(b) << 64 | u128::from(a);
}

/// Packs `count` elements, the first lowest: `mov.b64 d, {a, b}`. Elements are bytes where `bytes` is 1 (in `B16`
/// slots), otherwise slots of 2, 4 or 8 bytes.
pub fn pack(bytes: u32, count: usize) -> Option<Lane> {
    Some(match (bytes, count) {
        (1, 2) => Lane::of::<Pack8x2>(),
        (1, 4) => Lane::of::<Pack8x4>(),
        (2, 2) => Lane::of::<Pack16x2>(),
        (2, 4) => Lane::of::<Pack16x4>(),
        (4, 2) => Lane::of::<Pack32x2>(),
        (4, 4) => Lane::of::<Pack32x4>(),
        (8, 2) => Lane::of::<Pack64x2>(),
        _ => return None,
    })
}

macro_rules! extracts {
    ($($name:ident $f:ident $from:ty => $to:ty;)*) => {$(
        #[inline(always)]
        fn $f(a: $from, shift: u64) -> $to { (a >> shift) as $to }
        op!($name = $f(a: $from; imm) -> $to);
    )*};
}
extracts! {
    Extract16From32 extract16_from32 u32 => u16;
    Extract16From64 extract16_from64 u64 => u16;
    Extract32From64 extract32_from64 u64 => u32;
    Extract32From128 extract32_from128 u128 => u32;
    Extract64From128 extract64_from128 u128 => u64;
}
#[inline(always)]
fn extract8_from16(a: u16, shift: u64) -> u16 {
    a >> shift & 0xff
}
#[inline(always)]
fn extract8_from32(a: u32, shift: u64) -> u16 {
    (a >> shift & 0xff) as u16
}
op!(Extract8From16 = extract8_from16(a: u16; imm) -> u16);
op!(Extract8From32 = extract8_from32(a: u32; imm) -> u16);

/// Element `index` (of `bytes` bytes each, 1 meaning bytes in `B16` slots) of a slot of width `from`: one of the
/// destinations of `mov.b64 {a, b}, d`. The caller sees to it that no destination is the source before its last use.
pub fn extract(from: Width, bytes: u32, index: u32) -> Option<Lane> {
    let lane = match (from, bytes) {
        (Width::B16, 1) => Lane::of::<Extract8From16>(),
        (Width::B32, 1) => Lane::of::<Extract8From32>(),
        (Width::B32, 2) => Lane::of::<Extract16From32>(),
        (Width::B64, 2) => Lane::of::<Extract16From64>(),
        (Width::B64, 4) => Lane::of::<Extract32From64>(),
        (Width::B128, 4) => Lane::of::<Extract32From128>(),
        (Width::B128, 8) => Lane::of::<Extract64From128>(),
        _ => return None,
    };
    Some(lane.with(u64::from(8 * bytes * index)))
}

macro_rules! constants {
    ($($name:ident $f:ident $ty:ty;)*) => {$(
        #[inline(always)]
        fn $f(_: $ty, imm: u64) -> $ty { imm as $ty }
        op!($name = $f(a: $ty; imm) -> $ty);
    )*};
}
constants! {
    Constant16 constant16 u16;
    Constant32 constant32 u32;
    Constant64 constant64 u64;
}

/// Writes a constant to all lanes. Its one source is not looked at: give it the destination's slot.
pub fn constant(width: Width, value: u64) -> Option<Lane> {
    Some(match width {
        Width::B16 => Lane::of::<Constant16>().with(value),
        Width::B32 => Lane::of::<Constant32>().with(value),
        Width::B64 => Lane::of::<Constant64>().with(value),
        Width::Pred | Width::B128 => return None,
    })
}

/// `dst = p ? a : b`.
pub fn select(width: Width) -> Option<Lane> {
    Some(match width {
        Width::B16 => Lane::of::<Selp<u16>>(),
        Width::B32 => Lane::of::<Selp<u32>>(),
        Width::B64 => Lane::of::<Selp<u64>>(),
        Width::B128 => Lane::of::<Selp<u128>>(),
        Width::Pred => return None,
    })
}

/// `dst = !p`
pub fn predicate_not() -> Lane {
    logic::predicate_lane::<logic::PredNot>()
}
/// `dst = p & q`
pub fn predicate_and() -> Lane {
    logic::predicate_lane::<logic::PredAnd>()
}
/// `dst = p | q`
pub fn predicate_or() -> Lane {
    logic::predicate_lane::<logic::PredOr>()
}
/// `dst = p ^ q`
pub fn predicate_xor() -> Lane {
    logic::predicate_lane::<logic::PredXor>()
}
