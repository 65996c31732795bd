//! Comparison (PTX ISA, Comparison and Selection Instructions: `set`, `setp`): the operations, and which kernel computes
//! each.

mod kernels;
mod operator;
pub mod read;

use std::fmt;

pub use self::kernels::*;
use self::kernels::{WIDTHS, constant};
pub use self::operator::{Boolean, Compare};
use super::algebra::Linear;
use super::lane::Lane;
use super::lanes::{LaneKernel, Width};
use super::simd::{Level, WarpOp, warp_kernel_at};
use super::types::{Type, subtypes};
use super::words::{modifiers, opcode};

/// What is compared. `B…` are equal or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Operands {
    B16, B32, B64, U16, S16, U32, S32, U64, S64,
    F32 { ftz: bool }, F64, F16 { ftz: bool }, Bf16, F16x2 { ftz: bool }, Bf16x2,
}

impl Operands {
    pub const fn of(ty: Type, ftz: bool) -> Option<Operands> {
        Some(match ty {
            Type::B16 => Operands::B16,
            Type::B32 => Operands::B32,
            Type::B64 => Operands::B64,
            Type::U16 => Operands::U16,
            Type::S16 => Operands::S16,
            Type::U32 => Operands::U32,
            Type::S32 => Operands::S32,
            Type::U64 => Operands::U64,
            Type::S64 => Operands::S64,
            Type::F32 => Operands::F32 { ftz },
            Type::F64 => Operands::F64,
            Type::F16 => Operands::F16 { ftz },
            Type::Bf16 => Operands::Bf16,
            Type::F16x2 => Operands::F16x2 { ftz },
            Type::Bf16x2 => Operands::Bf16x2,
            _ => return None,
        })
    }

    pub const fn ty(self) -> Type {
        match self {
            Operands::B16 => Type::B16,
            Operands::B32 => Type::B32,
            Operands::B64 => Type::B64,
            Operands::U16 => Type::U16,
            Operands::S16 => Type::S16,
            Operands::U32 => Type::U32,
            Operands::S32 => Type::S32,
            Operands::U64 => Type::U64,
            Operands::S64 => Type::S64,
            Operands::F32 { .. } => Type::F32,
            Operands::F64 => Type::F64,
            Operands::F16 { .. } => Type::F16,
            Operands::Bf16 => Type::Bf16,
            Operands::F16x2 { .. } => Type::F16x2,
            Operands::Bf16x2 => Type::Bf16x2,
        }
    }

    /// Subnormals count as zero.
    pub const fn ftz(self) -> bool {
        match self {
            Operands::F32 { ftz } | Operands::F16 { ftz } | Operands::F16x2 { ftz } => ftz,
            Operands::B16
            | Operands::B32
            | Operands::B64
            | Operands::U16
            | Operands::S16
            | Operands::U32
            | Operands::S32
            | Operands::U64
            | Operands::S64
            | Operands::F64
            | Operands::Bf16
            | Operands::Bf16x2 => false,
        }
    }

    /// Whole numbers, or bits.
    pub const fn is_integer(self) -> bool {
        match self {
            Operands::B16
            | Operands::B32
            | Operands::B64
            | Operands::U16
            | Operands::S16
            | Operands::U32
            | Operands::S32
            | Operands::U64
            | Operands::S64 => true,
            Operands::F32 { .. }
            | Operands::F64
            | Operands::F16 { .. }
            | Operands::Bf16
            | Operands::F16x2 { .. }
            | Operands::Bf16x2 => false,
        }
    }

    /// Two in a register.
    pub const fn is_pair(self) -> bool {
        match self {
            Operands::F16x2 { .. } | Operands::Bf16x2 => true,
            Operands::B16
            | Operands::B32
            | Operands::B64
            | Operands::U16
            | Operands::S16
            | Operands::U32
            | Operands::S32
            | Operands::U64
            | Operands::S64
            | Operands::F32 { .. }
            | Operands::F64
            | Operands::F16 { .. }
            | Operands::Bf16 => false,
        }
    }

    /// Its [`Order::INDEX`], the low half's for packed types.
    fn row(self) -> u64 {
        match self {
            Operands::U16 | Operands::B16 => U16::INDEX,
            Operands::S16 => S16::INDEX,
            Operands::U32 | Operands::B32 => U32::INDEX,
            Operands::S32 => S32::INDEX,
            Operands::U64 | Operands::B64 => U64::INDEX,
            Operands::S64 => S64::INDEX,
            Operands::F32 { ftz: true } => F32Ftz::INDEX,
            Operands::F32 { ftz: false } => F32::INDEX,
            Operands::F64 => F64::INDEX,
            Operands::F16 { ftz: true } => F16Ftz::INDEX,
            Operands::F16 { ftz: false } => F16::INDEX,
            Operands::Bf16 => Bf16::INDEX,
            Operands::F16x2 { ftz: true } => F16LowFtz::INDEX,
            Operands::F16x2 { ftz: false } => F16Low::INDEX,
            Operands::Bf16x2 => Bf16Low::INDEX,
        }
    }
}

subtypes! {
    /// What `set` makes of true: all ones, or one.
    Truth { U16, S16, U32, S32, F32, F16, Bf16, F16x2, Bf16x2 }
}
modifiers! { Truth }

impl Truth {
    /// As bits of a register.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Truth::F32 => 1f32.to_bits(),
            Truth::F16 => 0x3c00,
            Truth::Bf16 => 0x3f80,
            Truth::F16x2 => 0x3c00_3c00,
            Truth::Bf16x2 => 0x3f80_3f80,
            Truth::U16 | Truth::S16 | Truth::U32 | Truth::S32 => !0,
        }
    }
    /// In a register of 16 bits.
    pub(crate) fn is_narrow(self) -> bool {
        match self {
            Truth::U16 | Truth::S16 | Truth::F16 | Truth::Bf16 => true,
            Truth::U32 | Truth::S32 | Truth::F32 | Truth::F16x2 | Truth::Bf16x2 => false,
        }
    }
}

/// A comparison; with a Boolean operator a predicate is its last source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Op {
    Setp { compare: Compare, boolean: Option<Boolean>, of: Operands },
    Set { compare: Compare, boolean: Option<Boolean>, to: Truth, of: Operands },
}

fn general<W: WarpOp>(dst: &'static [Width], of: Operands, boolean: bool, constant: u64) -> Lane {
    Lane::of_warps::<W>(dst, &WIDTHS[of.row() as usize][..if boolean { 3 } else { 2 }]).with(constant)
}

impl Op {
    pub fn lane(self) -> Lane {
        match self {
            Op::Setp { compare, boolean, of } => setp(compare, boolean, of),
            Op::Set {
                compare,
                boolean,
                to,
                of,
            } => set(compare, boolean, to, of),
        }
    }
}

impl Op {
    pub(super) fn linear(self) -> Option<Linear> {
        let Op::Setp {
            compare,
            boolean: None,
            of,
        } = self
        else {
            return None;
        };
        let signed = match of {
            Operands::B32 | Operands::B64 | Operands::U32 | Operands::U64 => false,
            Operands::S32 | Operands::S64 => true,
            Operands::B16
            | Operands::U16
            | Operands::S16
            | Operands::F32 { .. }
            | Operands::F64
            | Operands::F16 { .. }
            | Operands::Bf16
            | Operands::F16x2 { .. }
            | Operands::Bf16x2 => return None,
        };
        Some(Linear::Compare {
            relation: compare,
            signed,
        })
    }
}

fn setp(operator: Compare, boolean: Option<Boolean>, of: Operands) -> Lane {
    use Compare::*;
    const PREDICATES: &[Width] = &[Width::Pred, Width::Pred];
    let constant = constant(of.row(), operator, boolean, 0);
    if of.is_pair() {
        return match boolean {
            Some(_) => general::<SetpGeneral<true, true, true>>(PREDICATES, of, true, constant),
            None => general::<SetpGeneral<true, false, true>>(PREDICATES, of, false, constant),
        };
    }
    let one = &PREDICATES[..1];
    let lane = match boolean {
        Some(_) => general::<SetpGeneral<false, true, false>>(one, of, true, constant),
        None => general::<SetpGeneral<false, false, false>>(one, of, false, constant),
    };
    let pair_at: fn(Level) -> LaneKernel = match boolean {
        Some(_) => warp_kernel_at::<SetpGeneral<true, true, false>>,
        None => warp_kernel_at::<SetpGeneral<true, false, false>>,
    };
    // Operators that a type does not have are left to the general kernel, whose table has something for each.
    macro_rules! six {
        ($order:ident) => {
            match operator {
                Lt => Lane::of::<Setp<$order, 2>>(),
                Le => Lane::of::<Setp<$order, 3>>(),
                Gt => Lane::of::<Setp<$order, 4>>(),
                Ge => Lane::of::<Setp<$order, 5>>(),
                Eq | Ne | Equ | Neu | Ltu | Leu | Gtu | Geu | Num | Nan => lane,
            }
        };
    }
    macro_rules! fourteen {
        ($order:ident) => {
            match operator {
                Eq => Lane::of::<Setp<$order, 0>>(),
                Ne => Lane::of::<Setp<$order, 1>>(),
                Neu => Lane::of::<Setp<$order, 7>>(),
                Equ => Lane::of::<Setp<$order, 6>>(),
                Ltu => Lane::of::<Setp<$order, 8>>(),
                Leu => Lane::of::<Setp<$order, 9>>(),
                Gtu => Lane::of::<Setp<$order, 10>>(),
                Geu => Lane::of::<Setp<$order, 11>>(),
                Num => Lane::of::<Setp<$order, 12>>(),
                Nan => Lane::of::<Setp<$order, 13>>(),
                Lt | Le | Gt | Ge => six!($order),
            }
        };
    }
    /// Equality does not see signs.
    macro_rules! integers {
        ($order:ident, $unsigned:ident) => {
            match operator {
                Eq => Lane::of::<Setp<$unsigned, 0>>(),
                Ne => Lane::of::<Setp<$unsigned, 7>>(),
                Lt | Le | Gt | Ge | Equ | Neu | Ltu | Leu | Gtu | Geu | Num | Nan => six!($order),
            }
        };
    }
    macro_rules! bits {
        ($unsigned:ident) => {
            match operator {
                Eq => Lane::of::<Setp<$unsigned, 0>>(),
                Ne => Lane::of::<Setp<$unsigned, 7>>(),
                Lt | Le | Gt | Ge | Equ | Neu | Ltu | Leu | Gtu | Geu | Num | Nan => lane,
            }
        };
    }
    let quick = match (boolean, of) {
        (Some(_), _) => lane,
        (None, Operands::B16) => bits!(U16),
        (None, Operands::B32) => bits!(U32),
        (None, Operands::B64) => bits!(U64),
        (None, Operands::U16) => integers!(U16, U16),
        (None, Operands::S16) => integers!(S16, U16),
        (None, Operands::U32) => integers!(U32, U32),
        (None, Operands::S32) => integers!(S32, U32),
        (None, Operands::U64) => integers!(U64, U64),
        (None, Operands::S64) => integers!(S64, U64),
        (None, Operands::F32 { ftz: false }) => fourteen!(F32),
        (None, Operands::F64) => fourteen!(F64),
        (
            None,
            Operands::F32 { ftz: true }
            | Operands::F16 { .. }
            | Operands::Bf16
            | Operands::F16x2 { .. }
            | Operands::Bf16x2,
        ) => lane,
    };
    quick.with(constant).with_pair(pair_at)
}

fn set(operator: Compare, boolean: Option<Boolean>, to: Truth, of: Operands) -> Lane {
    let constant = constant(of.row(), operator, boolean, to.bits());
    match (to.is_narrow(), boolean.is_some(), of.is_pair()) {
        (true, false, _) => general::<Set<u16, false, false>>(&[Width::B16], of, false, constant),
        (true, true, _) => general::<Set<u16, true, false>>(&[Width::B16], of, true, constant),
        (false, false, false) => general::<Set<u32, false, false>>(&[Width::B32], of, false, constant),
        (false, true, false) => general::<Set<u32, true, false>>(&[Width::B32], of, true, constant),
        (false, false, true) => general::<Set<u32, false, true>>(&[Width::B32], of, false, constant),
        (false, true, true) => general::<Set<u32, true, true>>(&[Width::B32], of, true, constant),
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Op::Setp { compare, boolean, of } => {
                opcode!(f, "setp", compare, boolean, (of.ftz(), "ftz"), of.ty())
            }
            Op::Set {
                compare,
                boolean,
                to,
                of,
            } => opcode!(f, "set", compare, boolean, (of.ftz(), "ftz"), to, of.ty()),
        }
    }
}
