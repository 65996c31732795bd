//! Arithmetic on `f16` and `bf16`, alone and in pairs, by way of `f32`, and of `f64` where a product of `bf16` asks for it: with the bits of the interpreter's kernels
//! ([`crate::isa::half`]), which say why they are right.
//!
//! A pair is two halves side by side: a vector of pairs is one of twice as many halves.

use crate::isa::Level;
use crate::isa::half::{Format, Limit, Op, Plain};
use crate::isa::types::Rounding;

use super::compute::Emitter;
use super::directed::{single_to_odd, sum_to_odd};
use super::text::{Form, Text};

/// NaN, as results have it.
const NAN: u64 = 0x7fff;

/// Which halves, and how they are treated.
#[derive(Clone, Copy)]
struct Halves {
    form: Form,
    pairs: bool,
    bf16: bool,
    ftz: bool,
}

impl Halves {
    fn infinity(self) -> u64 {
        if self.bf16 { 0x7f80 } else { 0x7c00 }
    }
    fn least_normal(self) -> u64 {
        if self.bf16 { 0x80 } else { 0x400 }
    }
    fn one(self) -> u64 {
        if self.bf16 { 0x3f80 } else { 0x3c00 }
    }
}

/// `f16`, or `bf16`, as floats of 32 bits; halves are given as integers.
pub(super) fn widen(text: &mut Text, form: Form, bf16: bool, value: &str) -> String {
    if bf16 {
        let wide = text.resize(form, 16, value, 32, false);
        let wide = text.binary("shl", &form.int(32), &wide, &form.constant(32, 16));
        return text.float(form, 32, &wide);
    }
    let half = text.float(form, 16, value);
    text.convert("fpext", &form.float(16), &half, &form.float(32))
}

/// Floats of 32 bits rounded to `f16`, as integers. NaN stays NaN.
pub(super) fn narrow(text: &mut Text, form: Form, value: &str) -> String {
    let half = text.convert("fptrunc", &form.float(32), value, &form.float(16));
    text.bits(form, 16, &half)
}

/// What `.relu` does to a result.
fn limit(relu: bool) -> Limit {
    if relu { Limit::Relu } else { Limit::None }
}

impl Emitter<'_> {
    pub(super) fn half(&mut self, op: Op, s: &[String]) -> Option<String> {
        // Without instructions that widen and narrow halves LLVM would call functions.
        if self.level == Level::Baseline {
            return None;
        }
        let (operation, format) = match op {
            Op::Add { format, .. } => ("fadd", format),
            Op::Sub { format, .. } => ("fsub", format),
            Op::Mul { format, .. } => ("fmul", format),
            Op::FmaF16 { x2, ftz, limit } => {
                let halves = self.halves(Plain::F16 { x2, ftz });
                let [a, b, c] = [&s[0], &s[1], &s[2]].map(|value| self.widened(halves, value));
                // The product of two halves is exact in `f32`.
                let product = self.text.binary("fmul", &halves.form.float(32), &a, &b);
                let sum = sum_to_odd(self.text, (halves.form, 32), &product, &c);
                return Some(self.narrowed(halves, &sum, limit));
            }
            Op::FmaBf16 {
                x2,
                rounding: Rounding::Rn,
                relu,
            } => {
                let halves = self.halves(Plain::Bf16 { x2 });
                let (single, double) = (halves.form.float(32), halves.form.float(64));
                let [a, b, c] = [&s[0], &s[1], &s[2]].map(|value| {
                    let value = self.widened(halves, value);
                    self.text.convert("fpext", &single, &value, &double)
                });
                // A product may lie beyond what an `f32` holds, and is exact in `f64`.
                let product = self.text.binary("fmul", &double, &a, &b);
                let sum = sum_to_odd(self.text, (halves.form, 64), &product, &c);
                let sum = single_to_odd(self.text, halves.form, &sum);
                return Some(self.narrowed(halves, &sum, limit(relu)));
            }
            Op::Neg { format } => return Some(self.of_sign(self.halves(format), "xor", 0x8000, &s[0])),
            Op::Abs { format } => return Some(self.of_sign(self.halves(format), "and", 0x7fff, &s[0])),
            Op::Min {
                format,
                nan,
                xorsign_abs: false,
            } => return Some(self.extremum(self.halves(format), "slt", nan, s)),
            Op::Max {
                format,
                nan,
                xorsign_abs: false,
            } => return Some(self.extremum(self.halves(format), "sgt", nan, s)),
            Op::Min { .. }
            | Op::Max { .. }
            | Op::FmaBf16 { .. }
            | Op::FmaOobF16 { .. }
            | Op::FmaOobBf16 { .. }
            | Op::Ex2 { .. }
            | Op::Tanh { .. }
            | Op::MixedAdd { .. }
            | Op::MixedSub { .. }
            | Op::MixedFma { .. } => return None,
        };
        let (halves, sat) = match format {
            Format::F16 { x2, ftz, sat } => (self.halves(Plain::F16 { x2, ftz }), sat),
            Format::Bf16 { x2 } => (self.halves(Plain::Bf16 { x2 }), false),
        };
        let [a, b] = [&s[0], &s[1]].map(|value| self.widened(halves, value));
        let result = self.text.binary(operation, &halves.form.float(32), &a, &b);
        let limit = if sat { Limit::Sat } else { Limit::None };
        Some(self.narrowed(halves, &result, limit))
    }

    /// Two `f32` rounded to nearest as the halves of a pair, the first one as the upper half.
    pub(super) fn pair(&mut self, bf16: bool, relu: bool, s: &[String]) -> Option<String> {
        if self.level == Level::Baseline {
            return None;
        }
        let [upper, lower] = [&s[0], &s[1]].map(|source| {
            let half = self.half_of(bf16, relu, source);
            self.resize(16, &half, 32, false)
        });
        let by = self.constant(32, 16);
        let upper = self.binary("shl", 32, &upper, &by);
        Some(self.binary("or", 32, &upper, &lower))
    }

    /// An `f32` rounded to the nearest half.
    pub(super) fn half_of(&mut self, bf16: bool, relu: bool, source: &str) -> String {
        let halves = Halves {
            form: self.form,
            pairs: false,
            bf16,
            ftz: false,
        };
        let value = self.text.float(self.form, 32, source);
        self.narrowed(halves, &value, limit(relu))
    }

    fn halves(&self, format: Plain) -> Halves {
        let (x2, bf16, ftz) = match format {
            Plain::F16 { x2, ftz } => (x2, false, ftz),
            Plain::Bf16 { x2 } => (x2, true, false),
        };
        let form = match (self.form, x2) {
            (form, false) => form,
            (Form::One, true) => Form::Lanes(2),
            (Form::Lanes(lanes), true) => Form::Lanes(2 * lanes),
        };
        Halves {
            form,
            pairs: x2,
            bf16,
            ftz,
        }
    }

    /// A half as a float of 32 bits.
    pub(super) fn single(&mut self, format: Plain, value: &str) -> String {
        let halves = self.halves(format);
        self.widened(halves, value)
    }

    /// What a register of halves is.
    fn register(&self, halves: Halves) -> String {
        match halves.pairs {
            true => self.form.int(32),
            false => self.form.int(16),
        }
    }
    /// A register's halves, as integers.
    fn taken(&mut self, halves: Halves, value: &str) -> String {
        let register = self.register(halves);
        self.text.convert("bitcast", &register, value, &halves.form.int(16))
    }
    fn given(&mut self, halves: Halves, value: &str) -> String {
        let register = self.register(halves);
        self.text.convert("bitcast", &halves.form.int(16), value, &register)
    }

    fn on_halves(&mut self, halves: Halves, op: &str, value: &str, by: u64) -> String {
        let by = halves.form.constant(16, by);
        self.text.binary(op, &halves.form.int(16), value, &by)
    }
    fn compared(&mut self, halves: Halves, relation: &str, value: &str, with: u64) -> String {
        let with = halves.form.constant(16, with);
        self.text
            .value(format!("icmp {relation} {} {value}, {with}", halves.form.int(16)))
    }
    fn chosen(&mut self, halves: Halves, by: &str, a: &str, b: &str) -> String {
        self.text.select(halves.form, &halves.form.int(16), by, a, b)
    }
    fn is_nan(&mut self, halves: Halves, value: &str) -> String {
        let magnitude = self.on_halves(halves, "and", value, 0x7fff);
        self.compared(halves, "ugt", &magnitude, halves.infinity())
    }
    /// With `.ftz` subnormals become zero of their sign.
    fn flushed(&mut self, halves: Halves, value: String) -> String {
        if !halves.ftz {
            return value;
        }
        let magnitude = self.on_halves(halves, "and", &value, 0x7fff);
        let small = self.compared(halves, "ult", &magnitude, halves.least_normal());
        let zero = self.on_halves(halves, "and", &value, 0x8000);
        self.chosen(halves, &small, &zero, &value)
    }

    /// A register's halves as `f32`.
    fn widened(&mut self, halves: Halves, value: &str) -> String {
        let value = self.taken(halves, value);
        let value = self.flushed(halves, value);
        widen(self.text, halves.form, halves.bf16, &value)
    }

    /// `f32` rounded to a register's halves.
    fn narrowed(&mut self, halves: Halves, value: &str, limit: Limit) -> String {
        let form = halves.form;
        let half = if halves.bf16 {
            let (ty, by) = (form.int(32), form.constant(32, 16));
            let bits = self.text.bits(form, 32, value);
            let odd = self.text.binary("lshr", &ty, &bits, &by);
            let odd = self.text.binary("and", &ty, &odd, &form.constant(32, 1));
            let up = self.text.binary("add", &ty, &bits, &form.constant(32, 0x7fff));
            let up = self.text.binary("add", &ty, &up, &odd);
            let up = self.text.binary("lshr", &ty, &up, &by);
            let half = self.text.resize(form, 32, &up, 16, false);
            let float = form.float(32);
            let nan = self.text.value(format!("fcmp uno {float} {value}, {value}"));
            self.chosen(halves, &nan, &form.constant(16, NAN), &half)
        } else {
            let half = narrow(self.text, form, value);
            let nan = self.is_nan(halves, &half);
            self.chosen(halves, &nan, &form.constant(16, NAN), &half)
        };
        let half = self.flushed(halves, half);
        let zero = form.constant(16, 0);
        let half = match limit {
            Limit::None => half,
            Limit::Relu => {
                let below = self.compared(halves, "slt", &half, 0);
                self.chosen(halves, &below, &zero, &half)
            }
            Limit::Sat => {
                let above = self.compared(halves, "ugt", &half, halves.one());
                let clamped = self.chosen(halves, &above, &form.constant(16, halves.one()), &half);
                // Whatever is negative, and NaN.
                let below = self.compared(halves, "ugt", &half, halves.infinity());
                self.chosen(halves, &below, &zero, &clamped)
            }
        };
        self.given(halves, &half)
    }

    /// `neg` and `abs`.
    fn of_sign(&mut self, halves: Halves, op: &str, by: u64, value: &str) -> String {
        let value = self.taken(halves, value);
        let nan = self.is_nan(halves, &value);
        let result = self.on_halves(halves, op, &value, by);
        let result = self.flushed(halves, result);
        let result = self.chosen(halves, &nan, &halves.form.constant(16, NAN), &result);
        self.given(halves, &result)
    }

    /// `min` and `max`: `relation` says which is taken first; `nan`: NaN where there is one.
    fn extremum(&mut self, halves: Halves, relation: &str, nan: bool, s: &[String]) -> String {
        let (form, one) = (halves.form, halves.form.int(1));
        let [a, b] = [&s[0], &s[1]].map(|value| {
            let value = self.taken(halves, value);
            self.flushed(halves, value)
        });
        // As integers of sign and magnitude, zeros order by sign.
        let [x, y] = [&a, &b].map(|value| {
            let sign = self.on_halves(halves, "ashr", value, 15);
            let sign = self.on_halves(halves, "and", &sign, 0x7fff);
            self.text.binary("xor", &form.int(16), value, &sign)
        });
        let first = self.text.value(format!("icmp {relation} {} {x}, {y}", form.int(16)));
        let [none_a, none_b] = [&a, &b].map(|value| self.is_nan(halves, value));
        let chosen = self.chosen(halves, &first, &a, &b);
        let chosen = self.chosen(halves, &none_a, &b, &chosen);
        let chosen = self.chosen(halves, &none_b, &a, &chosen);
        let op = if nan { "or" } else { "and" };
        let none = self.text.binary(op, &one, &none_a, &none_b);
        let result = self.chosen(halves, &none, &form.constant(16, NAN), &chosen);
        self.given(halves, &result)
    }
}
