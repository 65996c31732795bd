//! Operations on registers as LLVM's instructions, where those give the same bits. What is not here is done by the
//! interpreter's kernel of the operation, called with the lanes of a warp in memory.
//!
//! No instruction carries a fast-math flag, nothing is contracted. Which NaN arithmetic gives is left open by LLVM: results
//! of `f32` are made canonical by whoever looks ([`super::plan::Plan::lazy`]), those of `f64` are computed again by the
//! kernel when there is a NaN among them ([`carries_nan`]).

use crate::isa::compare::{Compare, Operands};
use crate::isa::convert::{Kind, Round};
use crate::isa::float::{Extremum, FloatType, Format, Scalar};
use crate::isa::int::{Ordered, Part};
use crate::isa::lanes::Width;
use crate::isa::moves::{Extract, Pack, Resize, Words};
use crate::isa::types::{Bits, IntType, LongBits, NarrowInt, Rounding, SignedInt, Type, WideInt, Word};
use crate::isa::{Compute, Level, compare, convert, float, int, logic, moves};

use super::text::{Form, Text};
use super::unit;

/// Bits of an integer type, and whether it has a sign.
pub(super) fn integer(ty: IntType) -> (u32, bool) {
    match ty {
        IntType::U16 => (16, false),
        IntType::S16 => (16, true),
        IntType::U32 => (32, false),
        IntType::S32 => (32, true),
        IntType::U64 => (64, false),
        IntType::S64 => (64, true),
    }
}

fn narrow(ty: NarrowInt) -> (u32, bool) {
    match ty {
        NarrowInt::U16 => (16, false),
        NarrowInt::S16 => (16, true),
        NarrowInt::U32 => (32, false),
        NarrowInt::S32 => (32, true),
    }
}

fn ordered(ty: Ordered) -> Option<(u32, bool)> {
    Some(match ty {
        Ordered::U16 => (16, false),
        Ordered::S16 => (16, true),
        Ordered::U32 => (32, false),
        Ordered::S32 => (32, true),
        Ordered::U64 => (64, false),
        Ordered::S64 => (64, true),
        Ordered::U16x2 | Ordered::S16x2 | Ordered::U8x4 | Ordered::S8x4 => return None,
    })
}

pub(super) fn plain(ty: Bits) -> u32 {
    match ty {
        Bits::B16 => 16,
        Bits::B32 => 32,
        Bits::B64 => 64,
    }
}

fn long(ty: LongBits) -> u32 {
    match ty {
        LongBits::B32 => 32,
        LongBits::B64 => 64,
    }
}

pub(super) fn wide(ty: WideInt) -> (u32, bool) {
    match ty {
        WideInt::U32 => (32, false),
        WideInt::S32 => (32, true),
        WideInt::U64 => (64, false),
        WideInt::S64 => (64, true),
    }
}

fn words(words: Words) -> u32 {
    match words {
        Words::B16 => 16,
        Words::B32 => 32,
        Words::B64 => 64,
    }
}

/// Bits of a register of this width; none for 128.
pub fn bits_of(width: Width) -> Option<u32> {
    match width {
        Width::Pred => Some(1),
        Width::B16 => Some(16),
        Width::B32 => Some(32),
        Width::B64 => Some(64),
        Width::B128 => None,
    }
}

fn nearest(rounding: Option<Rounding>) -> bool {
    matches!(rounding, None | Some(Rounding::Rn))
}

/// Arithmetic on `f32` whose result may be any NaN as [`emit`] leaves it, and is to be the canonical one.
pub fn gives_any_nan(op: Compute) -> bool {
    let Compute::Float(op) = op else {
        return matches!(
            op,
            Compute::Convert(
                convert::Op::Cvt {
                    to: Kind::F32,
                    from: Kind::F16,
                    ..
                } | convert::Op::Cvt {
                    to: Kind::F32,
                    from: Kind::F32,
                    round: Round::Integral(_),
                    flags: convert::Flags { sat: false, .. },
                }
            )
        );
    };
    use float::Op::*;
    match op {
        Add { format, .. } | Sub { format, .. } | Mul { format, .. } | Fma { format, .. } => {
            matches!(format, Format::F32 { .. })
        }
        Div { rounding, format } | Rcp { rounding, format } | Sqrt { rounding, format } => {
            nearest(Some(rounding)) && matches!(format, Scalar::F32 { .. })
        }
        Abs { format } | Neg { format } => matches!(format, Scalar::F32 { .. }),
        Min { of } | Max { of } => matches!(
            of,
            Extremum::F32 {
                nan: false,
                xorsign_abs: false,
                ..
            }
        ),
        MinAbs { .. } | MaxAbs { .. } | Copysign { .. } | Testp { .. } => false,
    }
}

/// Takes any NaN for any other: its operands need not be canonical.
pub fn takes_any_nan(op: Compute) -> bool {
    gives_any_nan(op)
        || unit::of(op).is_some()
        || matches!(
            op,
            Compute::Compare(
                compare::Op::Setp {
                    of: Operands::F32 { .. },
                    ..
                } | compare::Op::Set {
                    of: Operands::F32 { .. },
                    ..
                }
            )
        )
}

/// Moves one of so many operands of 32 bits, the first ones, as it is.
pub fn moved(op: Compute) -> Option<usize> {
    match op {
        Compute::Logic(logic::Op::Selp { ty }) => (ty.bits() == Bits::B32).then_some(2),
        op => op.is_copy().then_some(1),
    }
}

/// A comparison of integers: how many bits they have, whether they are signed, and LLVM's word for it.
pub fn of_integers(compare: Compare, of: Operands) -> Option<(u32, bool, &'static str)> {
    let (bits, signed) = match of {
        Operands::B16 | Operands::U16 => (16, false),
        Operands::S16 => (16, true),
        Operands::B32 | Operands::U32 => (32, false),
        Operands::S32 => (32, true),
        Operands::B64 | Operands::U64 => (64, false),
        Operands::S64 => (64, true),
        Operands::F32 { .. }
        | Operands::F64
        | Operands::F16 { .. }
        | Operands::Bf16
        | Operands::F16x2 { .. }
        | Operands::Bf16x2 => return None,
    };
    let relation = match (compare, signed) {
        (Compare::Eq | Compare::Equ, _) => "eq",
        (Compare::Ne | Compare::Neu, _) => "ne",
        (Compare::Lt, true) => "slt",
        (Compare::Le, true) => "sle",
        (Compare::Gt, true) => "sgt",
        (Compare::Ge, true) => "sge",
        (Compare::Lt, false) => "ult",
        (Compare::Le, false) => "ule",
        (Compare::Gt, false) => "ugt",
        (Compare::Ge, false) => "uge",
        (Compare::Ltu | Compare::Leu | Compare::Gtu | Compare::Geu | Compare::Num | Compare::Nan, _) => return None,
    };
    Some((bits, signed, relation))
}

/// Whether it is a division of integers, for which it matters that the divisor is the same in all lanes.
pub fn divides(op: Compute) -> bool {
    matches!(op, Compute::Int(int::Op::Div { .. } | int::Op::Rem { .. }))
}

/// Arithmetic on `f64`: where a result is NaN, which one it is says the kernel.
pub fn carries_nan(op: Compute) -> bool {
    use float::Op::*;
    matches!(
        op,
        Compute::Float(
            Add {
                format: Format::F64,
                ..
            } | Sub {
                format: Format::F64,
                ..
            } | Mul {
                format: Format::F64,
                ..
            } | Fma {
                format: Format::F64,
                ..
            } | Div {
                format: Scalar::F64,
                ..
            } | Rcp {
                format: Scalar::F64,
                ..
            } | Sqrt {
                format: Scalar::F64,
                ..
            } | Min { of: Extremum::F64 }
                | Max { of: Extremum::F64 },
        )
    )
}

/// An operation in one form: what it is done on, and the CPU.
pub struct Emitter<'a> {
    pub text: &'a mut Text,
    pub form: Form,
    pub level: Level,
    /// The second source as one number, where it is the same in all lanes.
    pub same: Option<String>,
}

/// A part of a register of 32 bits: so many bits, which of them, with a sign or without.
struct Field {
    bits: u32,
    at: u32,
    signed: bool,
}

impl Field {
    fn of(bits: u32, at: u32, ty: Word) -> Field {
        let signed = ty == Word::S32;
        Field { bits, at, signed }
    }
}

impl Emitter<'_> {
    /// The values of the destinations; `None`: the kernel has to do it. `constants` are the sources that are known.
    pub fn emit(
        &mut self,
        op: Compute,
        sources: &[String],
        constants: &[Option<u64>],
        destinations: usize,
    ) -> Option<Vec<String>> {
        match op {
            Compute::Int(op) => match self.with_carry(op, sources) {
                Some(results) => Some(results),
                None => self.int(op, sources, constants).map(|v| vec![v]),
            },
            Compute::Float(op) => self.float(op, sources).map(|v| vec![v]),
            Compute::Compare(op) => self.compare(op, sources, destinations),
            Compute::Logic(op) => self.logic(op, sources, constants).map(|v| vec![v]),
            Compute::Convert(op) => self.cvt(op, sources).map(|v| vec![v]),
            Compute::Move(op) => self.moved(op, sources).map(|v| vec![v]),
            Compute::Half(op) => self.half(op, sources).map(|v| vec![v]),
            Compute::Narrow(op) => self.narrow(op, sources).map(|v| vec![v]),
            Compute::Approx(_) | Compute::Video(_) | Compute::Legacy(_) => None,
        }
    }

    pub(super) fn constant(&self, bits: u32, value: u64) -> String {
        self.form.constant(bits, value)
    }
    pub(super) fn binary(&mut self, op: &str, bits: u32, a: &str, b: &str) -> String {
        match bits {
            1 => self.text.logic(op, self.form, a, b),
            _ => self.text.binary(op, &self.form.int(bits), a, b),
        }
    }
    pub(super) fn icmp(&mut self, relation: &str, bits: u32, a: &str, b: &str) -> String {
        let ty = self.form.int(bits);
        self.text.value(format!("icmp {relation} {ty} {a}, {b}"))
    }
    pub(super) fn select(&mut self, bits: u32, by: &str, a: &str, b: &str) -> String {
        let ty = self.form.int(bits);
        self.text.select(self.form, &ty, by, a, b)
    }
    pub(super) fn resize(&mut self, from: u32, value: &str, to: u32, signed: bool) -> String {
        self.text.resize(self.form, from, value, to, signed)
    }

    fn int(&mut self, op: int::Op, s: &[String], constants: &[Option<u64>]) -> Option<String> {
        use int::Op::*;
        let of = |at: usize| s[at].as_str();
        Some(match op {
            Add { ty } => self.binary("add", integer(ty).0, of(0), of(1)),
            Sub { ty } => self.binary("sub", integer(ty).0, of(0), of(1)),
            Mul { part: Part::Lo, ty } => self.binary("mul", integer(ty).0, of(0), of(1)),
            Mul { part: Part::Hi, ty } => self.high(integer(ty), of(0), of(1)),
            Mad { part: Part::Lo, ty } => {
                let bits = integer(ty).0;
                let product = self.binary("mul", bits, of(0), of(1));
                self.binary("add", bits, &product, of(2))
            }
            Mad { part: Part::Hi, ty } => {
                let high = self.high(integer(ty), of(0), of(1));
                self.binary("add", integer(ty).0, &high, of(2))
            }
            MulWide { ty } => self.wide(narrow(ty), of(0), of(1)),
            MadWide { ty } => {
                let product = self.wide(narrow(ty), of(0), of(1));
                self.binary("add", 2 * narrow(ty).0, &product, of(2))
            }
            Sad { ty } => {
                let (bits, signed) = integer(ty);
                let less = self.icmp(if signed { "slt" } else { "ult" }, bits, of(0), of(1));
                let up = self.binary("sub", bits, of(1), of(0));
                let down = self.binary("sub", bits, of(0), of(1));
                let distance = self.select(bits, &less, &up, &down);
                self.binary("add", bits, of(2), &distance)
            }
            Div { ty } => self.quotient("div", integer(ty), of(0), of(1), constants[1])?,
            Rem { ty } => self.quotient("rem", integer(ty), of(0), of(1), constants[1])?,
            Neg { ty } => {
                let bits = signed(ty);
                let zero = self.constant(bits, 0);
                self.binary("sub", bits, &zero, of(0))
            }
            Abs { ty } => {
                let bits = signed(ty);
                let zero = self.constant(bits, 0);
                let less = self.icmp("slt", bits, of(0), &zero);
                let negated = self.binary("sub", bits, &zero, of(0));
                self.select(bits, &less, &negated, of(0))
            }
            Min { ty } | Max { ty } => {
                let Some((bits, signed)) = ordered(ty) else {
                    let op = if matches!(op, Min { .. }) { "min" } else { "max" };
                    return self.parted(ty.ty(), op, s);
                };
                let relation = match (matches!(op, Min { .. }), signed) {
                    (true, true) => "slt",
                    (true, false) => "ult",
                    (false, true) => "sgt",
                    (false, false) => "ugt",
                };
                let first = self.icmp(relation, bits, of(0), of(1));
                self.select(bits, &first, of(0), of(1))
            }
            Popc { ty } => {
                let bits = long(ty);
                let count = self.text.intrinsic("ctpop", self.form, &format!("i{bits}"), &[of(0)]);
                self.resize(bits, &count, 32, false)
            }
            Clz { ty } => self.leading_zeros(long(ty), of(0)),
            Brev { ty } => self
                .text
                .intrinsic("bitreverse", self.form, &format!("i{}", long(ty)), &[of(0)]),
            Bfe { ty } => self.field(wide(ty), s, constants),
            Bfi { ty } => self.insert(long(ty), s, constants),
            Dp4a { a, b } => {
                let field = |at, ty| Field::of(8, at, ty);
                self.dot(s, (0..4).map(|at| [field(at, a), field(at, b)]))
            }
            Dp2a { part, a, b } => {
                let first = if part == Part::Hi { 2 } else { 0 };
                let pairs = (0..2).map(|at| [Field::of(16, at, a), Field::of(8, first + at, b)]);
                self.dot(s, pairs)
            }
            AddSat { ty } => self.parted(ty.ty(), "add.sat", s)?,
            SubSat { ty } => self.parted(ty.ty(), "sub.sat", s)?,
            AddPacked { ty } => self.parted(ty.ty(), "add", s)?,
            SubPacked { .. } => self.parted(Type::U8x4, "sub", s)?,
            NegPacked => {
                let zero = self.constant(32, 0);
                self.parted(Type::U8x4, "sub", &[zero, s[0].clone()])?
            }
            MinRelu { ty } => self.raised(ty.ty(), "min", s)?,
            MaxRelu { ty } => self.raised(ty.ty(), "max", s)?,
            MadHiSat => {
                let high = self.high((32, true), of(0), of(1));
                self.parted(Type::S32, "add.sat", &[high, s[2].clone()])?
            }
            Mul24 { part, ty } => self.product_of_24(part, ty, of(0), of(1)),
            Mad24 { part, ty } => {
                let product = self.product_of_24(part, ty, of(0), of(1));
                self.binary("add", 32, &product, of(2))
            }
            Mad24HiSat => {
                let product = self.product_of_24(Part::Hi, Word::S32, of(0), of(1));
                self.parted(Type::S32, "add.sat", &[product, s[2].clone()])?
            }
            Bfind { shiftamt, ty } => self.highest(wide(ty), shiftamt, of(0)),
            Bmsk { wrap } => self.mask_from(wrap, of(0), of(1)),
            Szext { wrap, ty } => self.extended(wrap, ty == Word::S32, of(0), of(1)),
            // With a carry, and what looks for one bit after the other.
            AddCc { .. }
            | Addc { .. }
            | AddcCc { .. }
            | SubCc { .. }
            | Subc { .. }
            | SubcCc { .. }
            | MadCc { .. }
            | Madc { .. }
            | MadcCc { .. }
            | Fns => return None,
        })
    }

    /// The upper half of a product.
    pub(super) fn high(&mut self, (bits, signed): (u32, bool), a: &str, b: &str) -> String {
        if bits == 64 && self.form != Form::One {
            return self.high_of_longs(signed, a, b);
        }
        let a = self.resize(bits, a, 2 * bits, signed);
        let b = self.resize(bits, b, 2 * bits, signed);
        let product = self.binary("mul", 2 * bits, &a, &b);
        let by = self.constant(2 * bits, bits.into());
        let high = self.binary("lshr", 2 * bits, &product, &by);
        self.resize(2 * bits, &high, bits, false)
    }

    fn wide(&mut self, (bits, signed): (u32, bool), a: &str, b: &str) -> String {
        let a = self.resize(bits, a, 2 * bits, signed);
        let b = self.resize(bits, b, 2 * bits, signed);
        self.binary("mul", 2 * bits, &a, &b)
    }

    /// By zero gives all ones for both; the least number by −1 is itself, with the remainder 0.
    fn quotient(&mut self, op: &str, (bits, signed): (u32, bool), a: &str, b: &str, by: Option<u64>) -> Option<String> {
        let op = format!("{}{op}", if signed { "s" } else { "u" });
        let all = self.constant(bits, u64::MAX);
        match by {
            Some(by) => {
                let spare = 64 - bits;
                let by = by << spare >> spare;
                if by == 0 {
                    return Some(all);
                }
                // As long as LLVM makes a product of it.
                if signed && by == u64::MAX >> spare || (bits == 64 && self.form != Form::One && !by.is_power_of_two())
                {
                    return None;
                }
                Some(self.binary(&op, bits, a, b))
            }
            None if self.form == Form::One => {
                let zero = self.constant(bits, 0);
                let one = self.constant(bits, 1);
                let none = self.icmp("eq", bits, b, &zero);
                let mut unsafe_ = none.clone();
                if signed {
                    let minus = self.icmp("eq", bits, b, &all);
                    let least = self.constant(bits, 1 << (bits - 1));
                    let lowest = self.icmp("eq", bits, a, &least);
                    let wraps = self.binary("and", 1, &minus, &lowest);
                    unsafe_ = self.binary("or", 1, &unsafe_, &wraps);
                }
                let by = self.select(bits, &unsafe_, &one, b);
                let result = self.binary(&op, bits, a, &by);
                Some(self.select(bits, &none, &all, &result))
            }
            None if bits <= 32 && self.level != Level::Baseline => {
                let none = {
                    let zero = self.constant(bits, 0);
                    self.icmp("eq", bits, b, &zero)
                };
                let (wide_a, wide_b) = (self.resize(bits, a, 32, signed), self.resize(bits, b, 32, signed));
                let quotient = self.by_doubles(signed, &wide_a, &wide_b, bits);
                let quotient = self.resize(32, &quotient, bits, signed);
                let result = if op.ends_with("rem") {
                    let product = self.binary("mul", bits, &quotient, b);
                    self.binary("sub", bits, a, &product)
                } else {
                    quotient
                };
                Some(self.select(bits, &none, &all, &result))
            }
            None => None,
        }
    }

    /// The third source, and products of fields of the first two.
    fn dot(&mut self, s: &[String], pairs: impl Iterator<Item = [Field; 2]>) -> String {
        let mut sum = s[2].clone();
        for [a, b] in pairs {
            let [a, b] = [(&s[0], a), (&s[1], b)].map(|(value, field)| {
                let up = self.constant(32, (32 - field.bits * (field.at + 1)).into());
                let down = self.constant(32, (32 - field.bits).into());
                let high = self.binary("shl", 32, value, &up);
                self.binary(if field.signed { "ashr" } else { "lshr" }, 32, &high, &down)
            });
            let product = self.binary("mul", 32, &a, &b);
            sum = self.binary("add", 32, &sum, &product);
        }
        sum
    }

    /// The quotient of integers of 32 bits, exactly: one that is not integral differs from the nearest integer by more than `f64`
    /// rounds away. By zero it is anything. `bits`: of [`Emitter::same`].
    fn by_doubles(&mut self, signed: bool, a: &str, b: &str, bits: u32) -> String {
        let op = if signed { "sitofp" } else { "uitofp" };
        let divisor = |this: &mut Self, b: &str| {
            let [zero, one, minus] = [0, 1, u64::MAX].map(|value| this.constant(32, value));
            let none = this.icmp("eq", 32, b, &zero);
            let by = this.select(32, &none, &one, b);
            if !signed {
                return (by, None);
            }
            // The least number by -1 has no place in 32 bits.
            let turns = this.icmp("eq", 32, b, &minus);
            (this.select(32, &turns, &one, &by), Some(turns))
        };
        let (narrow, wide) = (self.form.int(32), self.form.float(64));
        let dividend = self.text.convert(op, &narrow, a, &wide);
        let (quotient, turns) = match self.same.clone() {
            None => {
                let (by, turns) = divisor(self, b);
                let by = self.text.convert(op, &narrow, &by, &wide);
                (self.text.binary("fdiv", &wide, &dividend, &by), turns)
            }
            // With half of one more it lies so far from every integer that a product with the reciprocal will do.
            Some(same) => {
                let form = std::mem::replace(&mut self.form, Form::One);
                let same = self.resize(bits, &same, 32, signed);
                let (by, _) = divisor(self, &same);
                let by = self.text.convert(op, "i32", &by, "double");
                let one = self.form.float_constant(64, 1.0);
                let reciprocal = self.text.binary("fdiv", "double", &one, &by);
                self.form = form;
                let reciprocal = self.text.splat(form, "double", &reciprocal);
                let half = self.form.float_constant(64, 0.5);
                let half = match signed {
                    true => self.text.intrinsic("copysign", form, "f64", &[&half, &dividend]),
                    false => half,
                };
                let dividend = self.text.binary("fadd", &wide, &dividend, &half);
                let turns = signed.then(|| {
                    let minus = self.constant(32, u64::MAX);
                    self.icmp("eq", 32, b, &minus)
                });
                (self.text.binary("fmul", &wide, &dividend, &reciprocal), turns)
            }
        };
        let op = if signed { "fptosi" } else { "fptoui" };
        let quotient = self.text.convert(op, &wide, &quotient, &narrow);
        match turns {
            None => quotient,
            Some(turns) => {
                let zero = self.constant(32, 0);
                let turned = self.binary("sub", 32, &zero, a);
                self.select(32, &turns, &turned, &quotient)
            }
        }
    }

    // ---- floats ------------------------------------------------------------------------------------------------------

    /// Subnormals become zero of their sign.
    pub(super) fn flush(&mut self, value: &str) -> String {
        let (mask, least) = (self.constant(32, 0x7fff_ffff), self.constant(32, 0x0080_0000));
        let sign = self.constant(32, 0x8000_0000);
        let bits = self.text.bits(self.form, 32, value);
        let magnitude = self.binary("and", 32, &bits, &mask);
        let small = self.icmp("ult", 32, &magnitude, &least);
        let zero = self.binary("and", 32, &bits, &sign);
        let chosen = self.select(32, &small, &zero, &bits);
        self.text.float(self.form, 32, &chosen)
    }

    /// `.ftz` on a result of `f32`: as the functions of `isa::float` decide what is too small.
    fn flush_result(&mut self, op: float::Op, of: &[String], result: &str) -> String {
        use float::Op::*;
        let ty = self.form.float(32);
        let least = f64::from(f32::MIN_POSITIVE);
        let small = match op {
            Mul { .. } | Fma { .. } => {
                let scale = self.form.float_constant(32, f64::from(float::SCALE));
                let a = self.text.binary("fmul", &ty, &of[0], &scale);
                let scaled = match op {
                    Fma { .. } => {
                        let c = self.text.binary("fmul", &ty, &of[2], &scale);
                        self.text.intrinsic("fma", self.form, "f32", &[&a, &of[1], &c])
                    }
                    _ => self.text.binary("fmul", &ty, &a, &of[1]),
                };
                let magnitude = self.text.intrinsic("fabs", self.form, "f32", &[&scaled]);
                let least = self.form.float_constant(32, least * f64::from(float::SCALE));
                self.fcmp("olt", 32, &magnitude, &least)
            }
            Div { .. } => {
                let least = self.form.float_constant(32, least);
                let a = self.text.intrinsic("fabs", self.form, "f32", &[&of[0]]);
                let b = self.text.intrinsic("fabs", self.form, "f32", &[&of[1]]);
                let b = self.text.binary("fmul", &ty, &b, &least);
                self.fcmp("olt", 32, &a, &b)
            }
            _ => return self.flush(result),
        };
        let (bits, sign) = (self.text.bits(self.form, 32, result), self.constant(32, 0x8000_0000));
        let zero = self.binary("and", 32, &bits, &sign);
        let chosen = self.select(32, &small, &zero, &bits);
        let result = self.text.float(self.form, 32, &chosen);
        match op {
            Div { .. } => self.flush(&result),
            _ => result,
        }
    }

    pub(super) fn fcmp(&mut self, relation: &str, bits: u32, a: &str, b: &str) -> String {
        let ty = self.form.float(bits);
        self.text.value(format!("fcmp {relation} {ty} {a}, {b}"))
    }

    fn float(&mut self, op: float::Op, s: &[String]) -> Option<String> {
        use float::Op::*;
        if let Copysign { ty } = op {
            let (bits, sign) = match ty {
                FloatType::F32 => (32, 1 << 31),
                FloatType::F64 => (64, 1 << 63),
            };
            let (sign, magnitude) = (self.constant(bits, sign), self.constant(bits, sign - 1));
            let sign = self.binary("and", bits, &s[0], &sign);
            let magnitude = self.binary("and", bits, &s[1], &magnitude);
            return Some(self.binary("or", bits, &sign, &magnitude));
        }
        let (bits, ftz, sat) = match op {
            Add { rounding, format } | Sub { rounding, format } | Mul { rounding, format } => {
                if !nearest(rounding) {
                    return self.directed(op, rounding?, format, s);
                }
                self.format(format)?
            }
            Fma { rounding, format } => {
                if !nearest(Some(rounding)) {
                    return self.directed(op, rounding, format, s);
                }
                // The CPU must have it.
                if self.level == Level::Baseline {
                    return None;
                }
                self.format(format)?
            }
            Div { rounding, format } | Rcp { rounding, format } | Sqrt { rounding, format } => {
                if !nearest(Some(rounding)) {
                    return match format {
                        Scalar::F64 => self.directed(op, rounding, Format::F64, s),
                        Scalar::F32 { .. } => None,
                    };
                }
                self.scalar(format)
            }
            Abs { format } | Neg { format } => self.scalar(format),
            Min { of } | Max { of } => match of {
                Extremum::F32 {
                    ftz,
                    nan: false,
                    xorsign_abs: false,
                } => (32, ftz, false),
                Extremum::F64 => (64, false, false),
                Extremum::F32 { .. } => return None,
            },
            MinAbs { .. } | MaxAbs { .. } | Copysign { .. } | Testp { .. } => return None,
        };
        let ty = self.form.float(bits);
        let element = if bits == 32 { "f32" } else { "f64" };
        let mut of = Vec::new();
        for source in s {
            let value = self.text.float(self.form, bits, source);
            of.push(if ftz { self.flush(&value) } else { value });
        }
        let result = match op {
            Add { .. } => self.text.binary("fadd", &ty, &of[0], &of[1]),
            Sub { .. } => self.text.binary("fsub", &ty, &of[0], &of[1]),
            Mul { .. } => self.text.binary("fmul", &ty, &of[0], &of[1]),
            Fma { .. } => self
                .text
                .intrinsic("fma", self.form, element, &[&of[0], &of[1], &of[2]]),
            Div { .. } => self.text.binary("fdiv", &ty, &of[0], &of[1]),
            Rcp { .. } => {
                let one = self.form.float_constant(bits, 1.0);
                self.text.binary("fdiv", &ty, &one, &of[0])
            }
            Sqrt { .. } => self.text.intrinsic("sqrt", self.form, element, &[&of[0]]),
            Abs { .. } | Neg { .. } => {
                let changed = match op {
                    Abs { .. } => self.text.intrinsic("fabs", self.form, element, &[&of[0]]),
                    _ => self.text.value(format!("fneg {ty} {}", of[0])),
                };
                if bits == 32 {
                    changed
                } else {
                    // NaN operands are passed on, made quiet.
                    let nan = self.fcmp("uno", 64, &of[0], &of[0]);
                    let quiet = self.constant(64, 1 << 51);
                    let operand = self.text.bits(self.form, 64, &of[0]);
                    let quiet = self.binary("or", 64, &operand, &quiet);
                    let changed = self.text.bits(self.form, 64, &changed);
                    let chosen = self.select(64, &nan, &quiet, &changed);
                    self.text.float(self.form, 64, &chosen)
                }
            }
            Min { .. } | Max { .. } => {
                let least = matches!(op, Min { .. });
                let first = self.fcmp(if least { "olt" } else { "ogt" }, bits, &of[0], &of[1]);
                let equal = self.fcmp("oeq", bits, &of[0], &of[1]);
                let unordered = self.fcmp("uno", bits, &of[1], &of[1]);
                let first = self.binary("or", 1, &first, &unordered);
                let (a, b) = (
                    self.text.bits(self.form, bits, &of[0]),
                    self.text.bits(self.form, bits, &of[1]),
                );
                let chosen = self.select(bits, &first, &a, &b);
                // Zeros order by sign.
                let zero = self.binary(if least { "or" } else { "and" }, bits, &a, &b);
                let chosen = self.select(bits, &equal, &zero, &chosen);
                self.text.float(self.form, bits, &chosen)
            }
            MinAbs { .. } | MaxAbs { .. } | Copysign { .. } | Testp { .. } => return None,
        };
        let result = if ftz {
            self.flush_result(op, &of, &result)
        } else {
            result
        };
        let result = if sat { self.saturate(&result) } else { result };
        Some(self.text.bits(self.form, bits, &result))
    }

    /// `.sat`: into [0, 1]; NaN and −0 become +0.
    pub(super) fn saturate(&mut self, value: &str) -> String {
        let ty = self.form.float(32);
        let (zero, one) = (self.form.float_constant(32, 0.0), self.form.float_constant(32, 1.0));
        let above = self.fcmp("ogt", 32, value, &zero);
        let value = self.text.select(self.form, &ty, &above, value, &zero);
        let below = self.fcmp("olt", 32, &value, &one);
        self.text.select(self.form, &ty, &below, &value, &one)
    }

    fn format(&self, format: Format) -> Option<(u32, bool, bool)> {
        match format {
            Format::F32 { ftz, sat } => Some((32, ftz, sat)),
            Format::F32x2 { .. } => None,
            Format::F64 => Some((64, false, false)),
        }
    }

    fn scalar(&self, format: Scalar) -> (u32, bool, bool) {
        match format {
            Scalar::F32 { ftz } => (32, ftz, false),
            Scalar::F64 => (64, false, false),
        }
    }

    // ---- comparison --------------------------------------------------------------------------------------------------

    // ---- logic -------------------------------------------------------------------------------------------------------

    fn logic(&mut self, op: logic::Op, s: &[String], constants: &[Option<u64>]) -> Option<String> {
        use logic::Op::*;
        let of = |at: usize| s[at].as_str();
        let logical = |ty: logic::Logical| match ty {
            logic::Logical::Pred => 1,
            logic::Logical::B16 => 16,
            logic::Logical::B32 => 32,
            logic::Logical::B64 => 64,
        };
        Some(match op {
            And { ty } => self.binary("and", logical(ty), of(0), of(1)),
            Or { ty } => self.binary("or", logical(ty), of(0), of(1)),
            Xor { ty } => self.binary("xor", logical(ty), of(0), of(1)),
            Not { ty } => {
                let ones = self.constant(logical(ty), u64::MAX);
                self.binary("xor", logical(ty), of(0), &ones)
            }
            Cnot { ty } => {
                let bits = plain(ty);
                let (zero, one) = (self.constant(bits, 0), self.constant(bits, 1));
                let none = self.icmp("eq", bits, of(0), &zero);
                self.select(bits, &none, &one, &zero)
            }
            Lop3 { predicate: None, table } => self.lop3(of(0), of(1), of(2), table),
            Lop3 { predicate: Some(_), .. } => return None,
            Shl { ty } => self.shift("shl", plain(ty), of(0), of(1), constants[1]),
            Shr { ty } => {
                use logic::Shifted::*;
                let (bits, signed) = match ty {
                    B16 | U16 => (16, false),
                    S16 => (16, true),
                    B32 | U32 => (32, false),
                    S32 => (32, true),
                    B64 | U64 => (64, false),
                    S64 => (64, true),
                };
                self.shift(if signed { "ashr" } else { "lshr" }, bits, of(0), of(1), constants[1])
            }
            ShfL { wrap } | ShfR { wrap } => {
                let left = matches!(op, ShfL { .. });
                let name = if left { "fshl" } else { "fshr" };
                let shifted = self.text.intrinsic(name, self.form, "i32", &[of(1), of(0), of(2)]);
                if wrap {
                    shifted
                } else {
                    let most = self.constant(32, 31);
                    let beyond = self.icmp("ugt", 32, of(2), &most);
                    self.select(32, &beyond, if left { of(0) } else { of(1) }, &shifted)
                }
            }
            Prmt { mode: None } => match constants[2].and_then(|by| self.permute(of(0), of(1), by)) {
                Some(bytes) => bytes,
                None => self.bytes(of(0), of(1), of(2)),
            },
            Prmt { mode: Some(mode) } => {
                let selectors = self.selectors(mode, of(2));
                self.bytes(of(0), of(1), &selectors)
            }
            Selp { ty } => {
                let bits = plain(ty.bits());
                self.select(bits, of(2), of(0), of(1))
            }
            Slct { ty, by } => self.select_by_sign(ty, by, s),
        })
    }

    /// Amounts beyond the width shift everything out.
    pub(super) fn shift(&mut self, op: &str, bits: u32, a: &str, by: &str, known: Option<u64>) -> String {
        let most = u64::from(bits) - 1;
        if let Some(known) = known {
            let known = known & 0xffff_ffff;
            if known > most && op != "ashr" {
                return self.constant(bits, 0);
            }
            let by = self.constant(bits, known.min(most));
            return self.binary(op, bits, a, &by);
        }
        let limit = self.constant(32, most);
        let beyond = self.icmp("ugt", 32, by, &limit);
        if op == "ashr" {
            let by = self.select(32, &beyond, &limit, by);
            let by = self.resize(32, &by, bits, false);
            return self.binary(op, bits, a, &by);
        }
        let within = self.binary("and", 32, by, &limit);
        let within = self.resize(32, &within, bits, false);
        let shifted = self.binary(op, bits, a, &within);
        let zero = self.constant(bits, 0);
        self.select(bits, &beyond, &zero, &shifted)
    }

    fn lop3(&mut self, a: &str, b: &str, c: &str, table: u8) -> String {
        // Half a table: what two operands give, by the other's bit.
        let ones = self.constant(32, u64::MAX);
        let zero = self.constant(32, 0);
        let one = |this: &mut Self, x: &str, low: bool, high: bool| match (low, high) {
            (false, false) => zero.clone(),
            (true, true) => ones.clone(),
            (false, true) => x.to_owned(),
            (true, false) => this.binary("xor", 32, x, &ones),
        };
        let choose = |this: &mut Self, by: &str, high: &str, low: &str| {
            if high == low {
                return low.to_owned();
            }
            if low == zero {
                return this.binary("and", 32, by, high);
            }
            if high == ones {
                return this.binary("or", 32, by, low);
            }
            // low ^ (by & (high ^ low))
            let differ = this.binary("xor", 32, high, low);
            let taken = this.binary("and", 32, by, &differ);
            this.binary("xor", 32, low, &taken)
        };
        let bit = |at: u32| table >> at & 1 != 0;
        let mut on_b = Vec::new();
        for high in [0, 4] {
            let low_c = one(self, c, bit(high), bit(high + 1));
            let high_c = one(self, c, bit(high + 2), bit(high + 3));
            on_b.push(choose(self, b, &high_c, &low_c));
        }
        choose(self, a, &on_b[1], &on_b[0])
    }

    /// Bytes of two registers by constant selectors.
    fn permute(&mut self, a: &str, b: &str, selectors: u64) -> Option<String> {
        let mut result: Option<String> = None;
        for at in 0..4u32 {
            let select = (selectors >> (4 * at)) as u32 & 0xf;
            if select & 8 != 0 {
                return None;
            }
            let (word, byte) = (if select & 4 != 0 { b } else { a }, select & 3);
            let mask = self.constant(32, 0xff << (8 * at));
            let moved = match at.cmp(&byte) {
                std::cmp::Ordering::Equal => word.to_owned(),
                std::cmp::Ordering::Less => {
                    let by = self.constant(32, u64::from(8 * (byte - at)));
                    self.binary("lshr", 32, word, &by)
                }
                std::cmp::Ordering::Greater => {
                    let by = self.constant(32, u64::from(8 * (at - byte)));
                    self.binary("shl", 32, word, &by)
                }
            };
            let moved = self.binary("and", 32, &moved, &mask);
            result = Some(match result {
                None => moved,
                Some(so_far) => self.binary("or", 32, &so_far, &moved),
            });
        }
        result
    }

    // ---- moves and conversions -----------------------------------------------------------------------------------------

    fn moved(&mut self, op: moves::Op, s: &[String]) -> Option<String> {
        use moves::Op::*;
        let of = |at: usize| s[at].as_str();
        Some(match op {
            Copy { width: Width::B128 } | Select128 => return None,
            Copy { .. } => of(0).to_owned(),
            Resize(resize) => {
                use self::Resize::*;
                let (from, to, signed) = match resize {
                    Zero16To32 => (16, 32, false),
                    Zero16To64 => (16, 64, false),
                    Zero32To64 => (32, 64, false),
                    Sign16To32 => (16, 32, true),
                    Sign16To64 => (16, 64, true),
                    Sign32To64 => (32, 64, true),
                    Low32To16 => (32, 16, false),
                    Low64To16 => (64, 16, false),
                    Low64To32 => (64, 32, false),
                    Zero16To128 | Zero32To128 | Zero64To128 | Low128To16 | Low128To32 | Low128To64 => return None,
                };
                self.resize(from, of(0), to, signed)
            }
            ExtendByte { signed } => {
                let byte = self.resize(16, of(0), 8, false);
                self.resize(8, &byte, 16, signed)
            }
            IsNonzero(of_words) => {
                let bits = words(of_words);
                let zero = self.constant(bits, 0);
                self.icmp("ne", bits, of(0), &zero)
            }
            Pack(pack) => {
                let (from, to, register) = match pack {
                    self::Pack::B8x2 => (8, 16, 16),
                    self::Pack::B8x4 => (8, 32, 16),
                    self::Pack::B16x2 => (16, 32, 16),
                    self::Pack::B16x4 => (16, 64, 16),
                    self::Pack::B32x2 => (32, 64, 32),
                    self::Pack::B32x4 | self::Pack::B64x2 => return None,
                };
                let mut result: Option<String> = None;
                for (at, source) in s.iter().enumerate() {
                    let element = self.resize(register, source, from, false);
                    let element = self.resize(from, &element, to, false);
                    let by = self.constant(to, u64::from(from) * at as u64);
                    let element = self.binary("shl", to, &element, &by);
                    result = Some(match result {
                        None => element,
                        Some(so_far) => self.binary("or", to, &so_far, &element),
                    });
                }
                result?
            }
            Extract { of: extract, index } => {
                use self::Extract::*;
                let (bits, from, register) = match extract {
                    B8From16 => (8, 16, 16),
                    B8From32 => (8, 32, 16),
                    B16From32 => (16, 32, 16),
                    B16From64 => (16, 64, 16),
                    B32From64 => (32, 64, 32),
                    B32From128 | B64From128 => return None,
                };
                let by = self.constant(from, u64::from(bits) * u64::from(index));
                let down = self.binary("lshr", from, of(0), &by);
                let element = self.resize(from, &down, bits, false);
                self.resize(bits, &element, register, false)
            }
            Constant { of, value } => self.constant(words(of), value),
        })
    }
}

fn signed(ty: SignedInt) -> u32 {
    match ty {
        SignedInt::S16 => 16,
        SignedInt::S32 => 32,
        SignedInt::S64 => 64,
    }
}
