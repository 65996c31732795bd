//! Operations that move bits: copies, changes of width, packing and unpacking. Lowering composes `mov`, operand widths
//! that differ from an instruction's type, and calling sequences from them; no opcode means one of them by itself.

use std::fmt;

use super::algebra::Linear;
use super::lane::Lane;
use super::lanes::Width;
use super::logic::{self, Selp};
use super::simd::op;

/// A move of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Op {
    /// Between slots of one width.
    Copy { width: Width },
    Resize(Resize),
    /// The low byte of a `B16` slot extended to the whole slot.
    ExtendByte { signed: bool },
    /// `dst = (src != 0)`: what a number is as a predicate.
    IsNonzero(Words),
    /// Elements side by side, the first lowest: `mov.b64 d, {a, b}`.
    Pack(Pack),
    /// Element `index` of a slot: one of the destinations of `mov.b64 {a, b}, d`.
    Extract { of: Extract, index: u8 },
    /// A constant in all lanes. The one source is not looked at: give it the destination's slot.
    Constant { of: Words, value: u64 },
    /// `dst = p ? a : b` of 128 bits; narrower ones are `selp`.
    Select128,
}

/// Slots whose bits are one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Words { B16, B32, B64 }

impl Words {
    pub(super) const fn of(width: Width) -> Option<Words> {
        match width {
            Width::B16 => Some(Words::B16),
            Width::B32 => Some(Words::B32),
            Width::B64 => Some(Words::B64),
            Width::Pred | Width::B128 => None,
        }
    }
    const fn name(self) -> &'static str {
        match self {
            Words::B16 => "b16",
            Words::B32 => "b32",
            Words::B64 => "b64",
        }
    }
}

/// From one width to another: by zeros, by the sign, or the low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Resize {
    Zero16To32, Zero16To64, Zero16To128, Zero32To64, Zero32To128, Zero64To128, Sign16To32, Sign16To64, Sign32To64,
    Low32To16, Low64To16, Low64To32, Low128To16, Low128To32, Low128To64,
}

/// Bits of an element, and how many there are. Bytes are in `B16` slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Pack { B8x2, B8x4, B16x2, B16x4, B32x2, B32x4, B64x2 }

/// Bits of an element, and of what it is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Extract { B8From16, B8From32, B16From32, B16From64, B32From64, B32From128, B64From128 }

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

impl Op {
    pub fn lane(self) -> Lane {
        macro_rules! by_name {
            ($enum:ident $value:expr; $($name:ident $kernel:ident)*) => {
                match $value { $($enum::$name => Lane::of::<$kernel>(),)* }
            };
        }
        match self {
            Op::Copy { width } => match width {
                Width::Pred => logic::predicate_lane::<logic::PredMov>(),
                Width::B16 => Lane::of::<Copy16>(),
                Width::B32 => Lane::of::<Copy32>(),
                Width::B64 => Lane::of::<Copy64>(),
                Width::B128 => Lane::of::<Copy128>(),
            },
            Op::Resize(resize) => by_name!(
                Resize resize;
                Zero16To32 Zero16To32 Zero16To64 Zero16To64 Zero16To128 Zero16To128 Zero32To64 Zero32To64
                Zero32To128 Zero32To128 Zero64To128 Zero64To128 Sign16To32 Sign16To32 Sign16To64 Sign16To64
                Sign32To64 Sign32To64 Low32To16 Low32To16 Low64To16 Low64To16 Low64To32 Low64To32
                Low128To16 Low128To16 Low128To32 Low128To32 Low128To64 Low128To64
            ),
            Op::ExtendByte { signed: true } => Lane::of::<Sign8>(),
            Op::ExtendByte { signed: false } => Lane::of::<Zero8>(),
            Op::IsNonzero(of) => by_name!(Words of; B16 Any16 B32 Any32 B64 Any64),
            Op::Pack(pack) => by_name!(
                Pack pack;
                B8x2 Pack8x2 B8x4 Pack8x4 B16x2 Pack16x2 B16x4 Pack16x4 B32x2 Pack32x2 B32x4 Pack32x4 B64x2 Pack64x2
            ),
            Op::Extract { of, index } => {
                let lane = by_name!(
                    Extract of;
                    B8From16 Extract8From16 B8From32 Extract8From32 B16From32 Extract16From32 B16From64 Extract16From64
                    B32From64 Extract32From64 B32From128 Extract32From128 B64From128 Extract64From128
                );
                lane.with(u64::from(index) * of.bits())
            }
            Op::Constant { of, value } => by_name!(Words of; B16 Constant16 B32 Constant32 B64 Constant64).with(value),
            Op::Select128 => Lane::of::<Selp<u128>>(),
        }
    }
}

impl Op {
    pub(super) fn is_copy(self) -> bool {
        match self {
            Op::Copy { .. } => true,
            Op::Resize(_)
            | Op::ExtendByte { .. }
            | Op::IsNonzero(_)
            | Op::Pack(_)
            | Op::Extract { .. }
            | Op::Constant { .. }
            | Op::Select128 => false,
        }
    }

    pub(super) fn linear(self) -> Option<Linear> {
        match self {
            Op::Copy {
                width: Width::B32 | Width::B64,
            } => Some(Linear::Copy),
            Op::Resize(resize) => match resize {
                Resize::Zero32To64 => Some(Linear::Widen { signed: false }),
                Resize::Sign32To64 => Some(Linear::Widen { signed: true }),
                Resize::Low64To32 => Some(Linear::Narrow),
                Resize::Zero16To32
                | Resize::Zero16To64
                | Resize::Zero16To128
                | Resize::Zero32To128
                | Resize::Zero64To128
                | Resize::Sign16To32
                | Resize::Sign16To64
                | Resize::Low32To16
                | Resize::Low64To16
                | Resize::Low128To16
                | Resize::Low128To32
                | Resize::Low128To64 => None,
            },
            Op::Copy {
                width: Width::Pred | Width::B16 | Width::B128,
            }
            | Op::ExtendByte { .. }
            | Op::IsNonzero(_)
            | Op::Pack(_)
            | Op::Extract { .. }
            | Op::Constant { .. }
            | Op::Select128 => None,
        }
    }
}

impl Resize {
    fn name(self) -> &'static str {
        match self {
            Resize::Zero16To32 => "cvt.u32.u16",
            Resize::Zero16To64 => "cvt.u64.u16",
            Resize::Zero16To128 => "cvt.u128.u16",
            Resize::Zero32To64 => "cvt.u64.u32",
            Resize::Zero32To128 => "cvt.u128.u32",
            Resize::Zero64To128 => "cvt.u128.u64",
            Resize::Sign16To32 => "cvt.s32.s16",
            Resize::Sign16To64 => "cvt.s64.s16",
            Resize::Sign32To64 => "cvt.s64.s32",
            Resize::Low32To16 => "cvt.u16.u32",
            Resize::Low64To16 => "cvt.u16.u64",
            Resize::Low64To32 => "cvt.u32.u64",
            Resize::Low128To16 => "cvt.u16.u128",
            Resize::Low128To32 => "cvt.u32.u128",
            Resize::Low128To64 => "cvt.u64.u128",
        }
    }
}

impl Pack {
    fn name(self) -> &'static str {
        match self {
            Pack::B8x2 => "b8x2",
            Pack::B8x4 => "b8x4",
            Pack::B16x2 => "b16x2",
            Pack::B16x4 => "b16x4",
            Pack::B32x2 => "b32x2",
            Pack::B32x4 => "b32x4",
            Pack::B64x2 => "b64x2",
        }
    }
}

impl Extract {
    /// Of an element.
    fn bits(self) -> u64 {
        match self {
            Extract::B8From16 | Extract::B8From32 => 8,
            Extract::B16From32 | Extract::B16From64 => 16,
            Extract::B32From64 | Extract::B32From128 => 32,
            Extract::B64From128 => 64,
        }
    }
    fn name(self) -> &'static str {
        match self {
            Extract::B8From16 => "b8.b16",
            Extract::B8From32 => "b8.b32",
            Extract::B16From32 => "b16.b32",
            Extract::B16From64 => "b16.b64",
            Extract::B32From64 => "b32.b64",
            Extract::B32From128 => "b32.b128",
            Extract::B64From128 => "b64.b128",
        }
    }
}

/// Opcodes as PTX would have them. What it says by its operands has words of its own here: `pack.b16x2`,
/// `extract.b16.b32.1`.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Op::Copy { width } => f.write_str(match width {
                Width::Pred => "mov.pred",
                Width::B16 => "mov.b16",
                Width::B32 => "mov.b32",
                Width::B64 => "mov.b64",
                Width::B128 => "mov.b128",
            }),
            Op::Resize(resize) => f.write_str(resize.name()),
            Op::ExtendByte { signed: true } => f.write_str("cvt.s16.s8"),
            Op::ExtendByte { signed: false } => f.write_str("cvt.u16.u8"),
            Op::IsNonzero(of) => write!(f, "nonzero.{}", of.name()),
            Op::Pack(pack) => write!(f, "pack.{}", pack.name()),
            Op::Extract { of, index } => write!(f, "extract.{}.{index}", of.name()),
            Op::Constant { of, value } => write!(f, "constant.{}.{value:#x}", of.name()),
            Op::Select128 => f.write_str("selp.b128"),
        }
    }
}
