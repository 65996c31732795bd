//! Operations on integers for which LLVM has no instruction: fields of bits, sums with a carry, integers side by side in a register, and the
//! upper halves of long products. What they mean stands at the interpreter's functions ([`crate::isa::int`], [`crate::isa::logic`]).

use crate::isa::int::{Op, Part};
use crate::isa::logic::PrmtMode;
use crate::isa::types::{IntType, Type, WideInt, Word};

use super::compute::{Emitter, integer, wide};
use super::text::Form;

impl Emitter<'_> {
    // ---- fields ------------------------------------------------------------------------------------------------------

    /// A place or a length as fields of this many bits have it: of one with 32, eight bits count.
    fn low_byte(&mut self, bits: u32, number: &str) -> String {
        if bits != 32 {
            return number.to_owned();
        }
        let byte = self.constant(32, 0xff);
        self.binary("and", 32, number, &byte)
    }

    /// So many ones from the bottom on: all, from the width on.
    fn ones(&mut self, bits: u32, length: &str) -> String {
        let one = self.constant(bits, 1);
        let behind = self.shift("shl", bits, &one, length, None);
        self.binary("sub", bits, &behind, &one)
    }

    /// `bfe`.
    pub(super) fn field(&mut self, (bits, signed): (u32, bool), s: &[String], constants: &[Option<u64>]) -> String {
        let known = |at: usize| known(bits, constants[at]);
        if let (Some(from), Some(length)) = (known(1), known(2))
            && length > 0
            && from + length <= bits.into()
        {
            let up = self.constant(bits, u64::from(bits) - from - length);
            let down = self.constant(bits, u64::from(bits) - length);
            let high = self.binary("shl", bits, &s[0], &up);
            return self.binary(if signed { "ashr" } else { "lshr" }, bits, &high, &down);
        }
        let [from, length] = [&s[1], &s[2]].map(|number| self.low_byte(bits, number));
        if !signed {
            let down = self.shift("lshr", bits, &s[0], &from, None);
            let ones = self.ones(bits, &length);
            return self.binary("and", bits, &down, &ones);
        }
        let down = self.shift("ashr", bits, &s[0], &from, None);
        self.lowest(bits, true, &down, &length)
    }

    /// A number's lowest bits, extended: no more than there are, and 0 of none.
    fn lowest(&mut self, bits: u32, signed: bool, value: &str, length: &str) -> String {
        let [all, within, none] = [bits.into(), u64::from(bits) - 1, 0].map(|number| self.constant(32, number));
        let beyond = self.icmp("ugt", 32, length, &all);
        let bounded = self.select(32, &beyond, &all, length);
        let spare = self.binary("sub", 32, &all, &bounded);
        let spare = self.binary("and", 32, &spare, &within);
        let spare = self.resize(32, &spare, bits, false);
        let up = self.binary("shl", bits, value, &spare);
        let result = self.binary(if signed { "ashr" } else { "lshr" }, bits, &up, &spare);
        let is_none = self.icmp("eq", 32, length, &none);
        let zero = self.constant(bits, 0);
        self.select(bits, &is_none, &zero, &result)
    }

    /// `bfi`: the lowest bits of the first source, in the second one.
    pub(super) fn insert(&mut self, bits: u32, s: &[String], constants: &[Option<u64>]) -> String {
        let known = |at: usize| known(bits, constants[at]);
        let (there, moved) = match (known(2), known(3)) {
            (Some(from), Some(length)) if length > 0 && from + length <= bits.into() => {
                let by = self.constant(bits, from);
                let moved = self.binary("shl", bits, &s[0], &by);
                (self.constant(bits, (u64::MAX >> (64 - length)) << from), moved)
            }
            _ => {
                let [from, length] = [&s[2], &s[3]].map(|number| self.low_byte(bits, number));
                let ones = self.ones(bits, &length);
                let there = self.shift("shl", bits, &ones, &from, None);
                (there, self.shift("shl", bits, &s[0], &from, None))
            }
        };
        // b ^ ((moved ^ b) & there)
        let differ = self.binary("xor", bits, &moved, &s[1]);
        let taken = self.binary("and", bits, &differ, &there);
        self.binary("xor", bits, &s[1], &taken)
    }

    /// `bfind`: the highest bit that is set, or that differs from the sign.
    pub(super) fn highest(&mut self, (bits, signed): (u32, bool), distance: bool, value: &str) -> String {
        let value = match signed {
            true => {
                let last = self.constant(bits, u64::from(bits) - 1);
                let sign = self.binary("ashr", bits, value, &last);
                self.binary("xor", bits, value, &sign)
            }
            false => value.to_owned(),
        };
        let zeros = self.leading_zeros(bits, &value);
        let [last, all, none] = [u64::from(bits) - 1, bits.into(), u64::MAX].map(|number| self.constant(32, number));
        match distance {
            // Of no bit it is the one before the lowest.
            false => self.binary("sub", 32, &last, &zeros),
            true => {
                let is_none = self.icmp("eq", 32, &zeros, &all);
                self.select(32, &is_none, &none, &zeros)
            }
        }
    }

    /// `clz`.
    pub(super) fn leading_zeros(&mut self, bits: u32, value: &str) -> String {
        let (name, ty) = (self.form.suffix(&format!("i{bits}")), self.form.int(bits));
        let zeros = self
            .text
            .value(format!("call {ty} @llvm.ctlz.{name}({ty} {value}, i1 false)"));
        self.resize(bits, &zeros, 32, false)
    }

    /// `bmsk`.
    pub(super) fn mask_from(&mut self, wrap: bool, from: &str, length: &str) -> String {
        let [from, length] = [from, length].map(|number| self.wrapped(wrap, number));
        let ones = self.ones(32, &length);
        self.shift("shl", 32, &ones, &from, None)
    }

    /// `szext`.
    pub(super) fn extended(&mut self, wrap: bool, signed: bool, value: &str, length: &str) -> String {
        let length = self.wrapped(wrap, length);
        self.lowest(32, signed, value, &length)
    }

    fn wrapped(&mut self, wrap: bool, number: &str) -> String {
        if !wrap {
            return number.to_owned();
        }
        let low = self.constant(32, 31);
        self.binary("and", 32, number, &low)
    }

    // ---- bytes -------------------------------------------------------------------------------------------------------

    /// `prmt`: four bytes of two registers, each by four bits of a third.
    pub(super) fn bytes(&mut self, a: &str, b: &str, selectors: &str) -> String {
        let [upper, byte, place, sign] = [32, 0xff, 7 << 3, 1 << 3].map(|value| self.constant(64, value));
        let seven = self.constant(64, 7);
        let [a, b, selectors] = [a, b, selectors].map(|word| self.resize(32, word, 64, false));
        let b = self.binary("shl", 64, &b, &upper);
        let both = self.binary("or", 64, &a, &b);
        let mut result: Option<String> = None;
        for at in 0..4u64 {
            // Its place among the eight bytes, in bits.
            let by = self.constant(64, (4 * at).abs_diff(3));
            let bits = self.binary(if at == 0 { "shl" } else { "lshr" }, 64, &selectors, &by);
            let bits = self.binary("and", 64, &bits, &place);
            let down = self.binary("lshr", 64, &both, &bits);
            let taken = self.binary("and", 64, &down, &byte);
            // Or its sign, eight times.
            let by = self.constant(64, 4 * at);
            let select = self.binary("lshr", 64, &selectors, &by);
            let select = self.binary("and", 64, &select, &sign);
            let zero = self.constant(64, 0);
            let replicates = self.icmp("ne", 64, &select, &zero);
            let top = self.binary("lshr", 64, &taken, &seven);
            let signs = self.binary("sub", 64, &zero, &top);
            let signs = self.binary("and", 64, &signs, &byte);
            let taken = self.select(64, &replicates, &signs, &taken);
            let by = self.constant(64, 8 * at);
            let taken = self.binary("shl", 64, &taken, &by);
            result = Some(match result {
                None => taken,
                Some(so_far) => self.binary("or", 64, &so_far, &taken),
            });
        }
        self.resize(64, &result.unwrap_or_default(), 32, false)
    }

    /// The selectors that a mode of `prmt` stands for.
    pub(super) fn selectors(&mut self, mode: PrmtMode, by: &str) -> String {
        let all = self.constant(64, mode.selectors());
        let [three, four, low] = [3, 4, 0xffff].map(|value| self.constant(64, value));
        let by = self.resize(32, by, 64, false);
        let by = self.binary("and", 64, &by, &three);
        let by = self.binary("shl", 64, &by, &four);
        let down = self.binary("lshr", 64, &all, &by);
        let selectors = self.binary("and", 64, &down, &low);
        self.resize(64, &selectors, 32, false)
    }

    // ---- integers side by side -----------------------------------------------------------------------------------------

    /// An operation on two registers, or on the integers of which they are made. `None`: they are of another type.
    pub(super) fn parted(&mut self, ty: Type, op: &str, s: &[String]) -> Option<String> {
        let parts = Parts::of(ty, self.form)?;
        let [a, b] = [&s[0], &s[1]].map(|value| self.taken_apart(&parts, value));
        let result = self.of_parts(&parts, op, &a, &b);
        Some(self.put_together(&parts, &result))
    }

    /// The same, and what is negative becomes zero.
    pub(super) fn raised(&mut self, ty: Type, op: &str, s: &[String]) -> Option<String> {
        let result = self.parted(ty, op, s)?;
        let zero = self.constant(32, 0);
        self.parted(ty, "max", &[result, zero])
    }

    fn of_parts(&mut self, parts: &Parts, op: &str, a: &str, b: &str) -> String {
        let sign = if parts.signed { "s" } else { "u" };
        let element = format!("i{}", parts.bits);
        match op {
            "add" | "sub" => self.text.binary(op, &parts.form.int(parts.bits), a, b),
            _ => self
                .text
                .intrinsic(&format!("{sign}{op}"), parts.form, &element, &[a, b]),
        }
    }

    fn taken_apart(&mut self, parts: &Parts, value: &str) -> String {
        let (register, vector) = (self.form.int(32), parts.form.int(parts.bits));
        self.text.convert("bitcast", &register, value, &vector)
    }

    fn put_together(&mut self, parts: &Parts, value: &str) -> String {
        let (register, vector) = (self.form.int(32), parts.form.int(parts.bits));
        self.text.convert("bitcast", &vector, value, &register)
    }

    // ---- products ------------------------------------------------------------------------------------------------------

    /// The upper half of a product of 64 bits, of products of halves.
    pub(super) fn high_of_longs(&mut self, signed: bool, a: &str, b: &str) -> String {
        let (by, low) = (self.constant(64, 32), self.constant(64, 0xffff_ffff));
        let [[a_low, a_high], [b_low, b_high]] = [a, b].map(|value| {
            let lower = self.binary("and", 64, value, &low);
            [lower, self.binary("lshr", 64, value, &by)]
        });
        let lowest = self.binary("mul", 64, &a_low, &b_low);
        let inner = self.binary("mul", 64, &a_high, &b_low);
        let outer = self.binary("mul", 64, &a_low, &b_high);
        let highest = self.binary("mul", 64, &a_high, &b_high);
        // None of these sums is longer than 64 bits.
        let carried = self.binary("lshr", 64, &lowest, &by);
        let middle = self.binary("add", 64, &inner, &carried);
        let middle_low = self.binary("and", 64, &middle, &low);
        let middle_high = self.binary("lshr", 64, &middle, &by);
        let rest = self.binary("add", 64, &outer, &middle_low);
        let rest = self.binary("lshr", 64, &rest, &by);
        let sum = self.binary("add", 64, &highest, &middle_high);
        let mut sum = self.binary("add", 64, &sum, &rest);
        if signed {
            // A negative factor counts as 2^64 more.
            let last = self.constant(64, 63);
            for (one, other) in [(a, b), (b, a)] {
                let negative = self.binary("ashr", 64, one, &last);
                let over = self.binary("and", 64, &negative, other);
                sum = self.binary("sub", 64, &sum, &over);
            }
        }
        sum
    }

    /// `mul24`.
    pub(super) fn product_of_24(&mut self, part: Part, ty: Word, a: &str, b: &str) -> String {
        let signed = ty == Word::S32;
        let by = self.constant(32, 8);
        let [a, b] = [a, b].map(|value| {
            let up = self.binary("shl", 32, value, &by);
            self.binary(if signed { "ashr" } else { "lshr" }, 32, &up, &by)
        });
        if part == Part::Lo {
            return self.binary("mul", 32, &a, &b);
        }
        let [a, b] = [a, b].map(|value| self.resize(32, &value, 64, signed));
        let product = self.binary("mul", 64, &a, &b);
        let by = self.constant(64, 16);
        let high = self.binary("lshr", 64, &product, &by);
        self.resize(64, &high, 32, false)
    }

    // ---- carries ---------------------------------------------------------------------------------------------------------

    /// Sums and differences that take a carry, give one, or both.
    pub(super) fn with_carry(&mut self, op: Op, s: &[String]) -> Option<Vec<String>> {
        let long = |ty: WideInt| wide(ty).0;
        let width = |ty: IntType| integer(ty).0;
        Some(match op {
            Op::AddCc { ty } => self.sum_and_carry(long(ty), &s[0], &s[1]).to_vec(),
            Op::Addc { ty } => vec![self.sum_of_three(width(ty), &s[0], &s[1], &s[2])],
            Op::AddcCc { ty } => self.sum_of_three_and_carry(long(ty), &s[0], &s[1], &s[2]).to_vec(),
            Op::SubCc { ty } => {
                let bits = long(ty);
                let difference = self.binary("sub", bits, &s[0], &s[1]);
                vec![difference, self.icmp("uge", bits, &s[0], &s[1])]
            }
            Op::Subc { ty } => {
                let not = self.complement(width(ty), &s[1]);
                vec![self.sum_of_three(width(ty), &s[0], &not, &s[2])]
            }
            Op::SubcCc { ty } => {
                let not = self.complement(long(ty), &s[1]);
                self.sum_of_three_and_carry(long(ty), &s[0], &not, &s[2]).to_vec()
            }
            Op::MadCc { part, ty } => {
                let product = self.part_of_product(part, wide(ty), s);
                self.sum_and_carry(long(ty), &product, &s[2]).to_vec()
            }
            Op::Madc { part, ty } => {
                let product = self.part_of_product(part, integer(ty), s);
                vec![self.sum_of_three(width(ty), &product, &s[2], &s[3])]
            }
            Op::MadcCc { part, ty } => {
                let product = self.part_of_product(part, wide(ty), s);
                self.sum_of_three_and_carry(long(ty), &product, &s[2], &s[3]).to_vec()
            }
            _ => return None,
        })
    }

    fn part_of_product(&mut self, part: Part, (bits, signed): (u32, bool), s: &[String]) -> String {
        match part {
            Part::Lo => self.binary("mul", bits, &s[0], &s[1]),
            Part::Hi => self.high((bits, signed), &s[0], &s[1]),
        }
    }

    fn complement(&mut self, bits: u32, value: &str) -> String {
        let ones = self.constant(bits, u64::MAX);
        self.binary("xor", bits, value, &ones)
    }

    fn sum_and_carry(&mut self, bits: u32, a: &str, b: &str) -> [String; 2] {
        let sum = self.binary("add", bits, a, b);
        let carry = self.icmp("ult", bits, &sum, a);
        [sum, carry]
    }

    fn carried(&mut self, bits: u32, carry: &str) -> String {
        let (zero, one) = (self.constant(bits, 0), self.constant(bits, 1));
        self.select(bits, carry, &one, &zero)
    }

    fn sum_of_three(&mut self, bits: u32, a: &str, b: &str, carry: &str) -> String {
        let sum = self.binary("add", bits, a, b);
        let carry = self.carried(bits, carry);
        self.binary("add", bits, &sum, &carry)
    }

    fn sum_of_three_and_carry(&mut self, bits: u32, a: &str, b: &str, carry: &str) -> [String; 2] {
        let [partial, first] = self.sum_and_carry(bits, a, b);
        let carry = self.carried(bits, carry);
        let [sum, second] = self.sum_and_carry(bits, &partial, &carry);
        [sum, self.binary("or", 1, &first, &second)]
    }
}

/// A constant place or length of a field, as fields of this many bits have it.
fn known(bits: u32, constant: Option<u64>) -> Option<u64> {
    Some(constant? & if bits == 32 { 0xff } else { 0xffff_ffff })
}

/// What a register of 32 bits is made of.
struct Parts {
    form: Form,
    bits: u32,
    signed: bool,
}

impl Parts {
    fn of(ty: Type, form: Form) -> Option<Parts> {
        let (bits, signed) = match ty {
            Type::U16x2 => (16, false),
            Type::S16x2 => (16, true),
            Type::U8x4 => (8, false),
            Type::S8x4 => (8, true),
            Type::U32 => (32, false),
            Type::S32 => (32, true),
            _ => return None,
        };
        let lanes = match (form, 32 / bits) {
            (Form::One, 1) => Form::One,
            (Form::One, count) => Form::Lanes(count),
            (Form::Lanes(lanes), count) => Form::Lanes(lanes * count),
        };
        Some(Parts {
            form: lanes,
            bits,
            signed,
        })
    }
}
