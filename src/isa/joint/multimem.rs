//! Accesses to the memory of all devices of a team (PTX ISA, Data Movement and Conversion Instructions: multimem), and what
//! becomes of the values that are read from all of them.

use std::fmt;

use half::{bf16, f16};

use crate::isa::narrow::Narrow;
use crate::isa::operation::{AtomicOp, AtomicType, ReadModifyWrite};
use crate::isa::types::{Ordering, Scope, Type};
use crate::isa::words::{Words, opcode};

/// What stands behind an operation is its addresses, and its registers in the representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// From → elements
    LoadReduce { reduction: Reduction, access: Access },
    /// To; elements
    Store { access: Access },
    /// To; elements
    Reduce {
        op: AtomicOp,
        ty: AtomicType,
        access: Access,
    },
    /// `cp.async.bulk`. To, from; bytes (mask of bytes)
    Copy { masked: bool },
    /// `cp.reduce.async.bulk`. To, from; bytes
    CopyReduce {
        op: AtomicOp,
        ty: AtomicType,
        /// Subnormals of `f32` are kept.
        noftz: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Of an element, and how many there are.
    pub ty: Type,
    pub elements: u8,
    pub ordering: Ordering,
    pub scope: Option<Scope>,
}

/// How the values of all devices become one: in the order of the devices' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reduction {
    pub op: AtomicOp,
    pub of: Scalar,
    /// Numbers in an element.
    pub packed: u8,
    /// Sums are rounded to this at each step; if none is named, to their own format.
    pub sums: Option<Precision>,
}

/// A number of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Scalar { U32, S32, U64, S64, F32, F64, F16, Bf16, E4m3, E5m2 }

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Precision { F16, F32 }

impl Reduction {
    pub(super) fn read(w: Words) -> Option<Reduction> {
        let (of, packed) = match w.ty(0) {
            Type::U32 | Type::B32 => (Scalar::U32, 1),
            Type::S32 => (Scalar::S32, 1),
            Type::U64 | Type::B64 => (Scalar::U64, 1),
            Type::S64 => (Scalar::S64, 1),
            Type::F32 => (Scalar::F32, 1),
            Type::F64 => (Scalar::F64, 1),
            Type::F16 => (Scalar::F16, 1),
            Type::F16x2 => (Scalar::F16, 2),
            Type::Bf16 => (Scalar::Bf16, 1),
            Type::Bf16x2 => (Scalar::Bf16, 2),
            Type::E4m3 => (Scalar::E4m3, 1),
            Type::E4m3x2 => (Scalar::E4m3, 2),
            Type::E4m3x4 => (Scalar::E4m3, 4),
            Type::E5m2 => (Scalar::E5m2, 1),
            Type::E5m2x2 => (Scalar::E5m2, 2),
            Type::E5m2x4 => (Scalar::E5m2, 4),
            _ => return None,
        };
        Some(Reduction {
            op: w.find(AtomicOp::from_word)?,
            of,
            packed,
            sums: match () {
                () if w.has("acc::f32") => Some(Precision::F32),
                () if w.has("acc::f16") => Some(Precision::F16),
                () => None,
            },
        })
    }

    /// How sums are rounded, if the opcode says.
    pub(super) fn sums_word(self) -> Option<&'static str> {
        self.sums.map(|sums| match sums {
            Precision::F32 => "acc::f32",
            Precision::F16 => "acc::f16",
        })
    }

    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        self.of.bits() as usize / 8 * usize::from(self.packed)
    }

    /// Of one element, whose bits these are on each device.
    pub fn apply(self, values: &[u64]) -> u64 {
        let bits = self.of.bits();
        let mask = u64::MAX >> (64 - bits);
        (0..u32::from(self.packed)).fold(0, |all, index| {
            let one = values.iter().map(|value| value >> (index * bits) & mask);
            all | (self.scalar(one) & mask) << (index * bits)
        })
    }

    fn scalar(self, values: impl Iterator<Item = u64>) -> u64 {
        match self.of {
            Scalar::U32 | Scalar::U64 => self.integer(values, i128::from),
            Scalar::S32 => self.integer(values, |bits| i128::from(bits as i32)),
            Scalar::S64 => self.integer(values, |bits| i128::from(bits as i64)),
            Scalar::F64 => {
                let sum = values.map(f64::from_bits).reduce(|a, b| a + b);
                sum.map_or(0, f64::to_bits)
            }
            Scalar::F32 | Scalar::F16 | Scalar::Bf16 | Scalar::E4m3 | Scalar::E5m2 => self.floating(values),
        }
    }

    fn integer(self, values: impl Iterator<Item = u64>, number: impl Fn(u64) -> i128) -> u64 {
        let combined = values.reduce(|a, b| match self.op {
            AtomicOp::Add => a.wrapping_add(b),
            AtomicOp::And => a & b,
            AtomicOp::Or => a | b,
            AtomicOp::Xor => a ^ b,
            AtomicOp::Min if number(b) < number(a) => b,
            AtomicOp::Max if number(b) > number(a) => b,
            AtomicOp::Min | AtomicOp::Max => a,
            AtomicOp::Inc | AtomicOp::Dec | AtomicOp::Exch | AtomicOp::Cas => {
                unreachable!("the table has no such reduction")
            }
        });
        combined.unwrap_or(0)
    }

    fn floating(self, values: impl Iterator<Item = u64>) -> u64 {
        let of = self.of;
        let (number, nearest) = (|bits| of.number(bits), |value| of.nearest(value));
        match self.op {
            AtomicOp::Min | AtomicOp::Max => {
                let turned = self.op == AtomicOp::Max;
                let extreme = values.reduce(|a, b| if precedes(number(b), number(a), turned) { b } else { a });
                extreme.map_or(0, |bits| if number(bits).is_nan() { nearest(f32::NAN) } else { bits })
            }
            AtomicOp::Add => {
                let sum = values.map(number).reduce(|a, b| match self.sums {
                    Some(Precision::F32) => a + b,
                    Some(Precision::F16) => f16::from_f32(a + b).to_f32(),
                    // `f32` has more than twice the digits of the others: rounded twice is rounded once.
                    None => number(nearest(a + b)),
                });
                sum.map_or(0, nearest)
            }
            AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor
            | AtomicOp::Inc
            | AtomicOp::Dec
            | AtomicOp::Exch
            | AtomicOp::Cas => unreachable!("the table has no such reduction"),
        }
    }
}

/// Whether `a` is the lesser number of the two, or the greater one if it is `turned`: -0 is less than +0, and any number
/// comes before none (PTX ISA, min).
fn precedes(a: f32, b: f32, turned: bool) -> bool {
    match () {
        () if a.is_nan() => false,
        () if b.is_nan() => true,
        () if a == b => a.is_sign_negative() != turned && b.is_sign_negative() == turned,
        () => (a < b) != turned,
    }
}

impl Scalar {
    fn bits(self) -> u32 {
        match self {
            Scalar::E4m3 | Scalar::E5m2 => 8,
            Scalar::F16 | Scalar::Bf16 => 16,
            Scalar::U32 | Scalar::S32 | Scalar::F32 => 32,
            Scalar::U64 | Scalar::S64 | Scalar::F64 => 64,
        }
    }

    /// The number of a floating-point format that `f32` holds.
    fn number(self, bits: u64) -> f32 {
        match self {
            Scalar::F32 => f32::from_bits(bits as u32),
            Scalar::F16 => f16::from_bits(bits as u16).to_f32(),
            Scalar::Bf16 => bf16::from_bits(bits as u16).to_f32(),
            Scalar::E4m3 => Narrow::E4m3.number(bits as u32),
            Scalar::E5m2 => Narrow::E5m2.number(bits as u32),
            Scalar::U32 | Scalar::S32 | Scalar::U64 | Scalar::S64 | Scalar::F64 => {
                unreachable!("no format within `f32`")
            }
        }
    }

    /// The nearest number's bits, as `cvt.rn` gives them, of formats of 8 bits with `.satfinite`; NaN is canonical.
    fn nearest(self, value: f32) -> u64 {
        match self {
            Scalar::F32 if value.is_nan() => 0x7fff_ffff,
            Scalar::F16 | Scalar::Bf16 if value.is_nan() => 0x7fff,
            Scalar::F32 => value.to_bits().into(),
            Scalar::F16 => f16::from_f32(value).to_bits().into(),
            Scalar::Bf16 => bf16::from_f32(value).to_bits().into(),
            Scalar::E4m3 => Narrow::E4m3.nearest(value).into(),
            Scalar::E5m2 => Narrow::E5m2.nearest(value).into(),
            Scalar::U32 | Scalar::S32 | Scalar::U64 | Scalar::S64 | Scalar::F64 => {
                unreachable!("no format within `f32`")
            }
        }
    }
}

/// Reads the lines of `multimem`.
pub fn read(w: Words) -> Option<Op> {
    let access = |unsaid| Access {
        ty: w.ty(0),
        elements: w.vector().count(),
        ordering: w.ordering().unwrap_or(unsaid),
        scope: w.scope(),
    };
    let bulk = w.has("bulk");
    Some(match () {
        () if w.has("ld_reduce") => Op::LoadReduce {
            reduction: Reduction::read(w)?,
            access: access(Ordering::Weak),
        },
        () if w.has("st") => Op::Store {
            access: access(Ordering::Weak),
        },
        () if w.has("red") => {
            let ReadModifyWrite { op, ty, .. } = ReadModifyWrite::read(w)?;
            let access = access(Ordering::Relaxed);
            Op::Reduce { op, ty, access }
        }
        () if bulk && w.has("reduce") => {
            let ReadModifyWrite { op, ty, .. } = ReadModifyWrite::read(w)?;
            let noftz = w.has("noftz");
            Op::CopyReduce { op, ty, noftz }
        }
        () if bulk => Op::Copy {
            masked: w.has("cp_mask"),
        },
        () => return None,
    })
}

impl Op {
    pub(super) fn takes_whole_warps(self) -> bool {
        false
    }
}

impl Access {
    fn vector(self) -> Option<&'static str> {
        match self.elements {
            2 => Some("v2"),
            4 => Some("v4"),
            8 => Some("v8"),
            _ => None,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Op::LoadReduce { reduction, access } => {
                let (op, sums) = (reduction.op.word(), reduction.sums_word());
                opcode!(f, "multimem.ld_reduce", op, sums, access.vector(), access.ty)
            }
            Op::Store { access } => opcode!(f, "multimem.st", access.vector(), access.ty),
            Op::Reduce { op, access, .. } => opcode!(f, "multimem.red", op.word(), access.vector(), access.ty),
            Op::Copy { masked } => opcode!(
                f,
                "multimem.cp.async.bulk.global.shared::cta.bulk_group",
                (masked, "cp_mask")
            ),
            Op::CopyReduce { op, ty, noftz } => opcode!(
                f,
                "multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group",
                op.word(),
                (noftz, "noftz"),
                ty.ty()
            ),
        }
    }
}
