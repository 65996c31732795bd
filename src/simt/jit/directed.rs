//! Arithmetic that is not rounded to nearest: with the bits of the interpreter's kernels ([`crate::isa::float`]).

use crate::isa::float::{self, Format};
use crate::isa::types::Rounding;

use super::compute::Emitter;
use super::text::{Form, Text};

impl Emitter<'_> {
    /// Arithmetic that is not rounded to nearest: on `f64` by AVX-512's instructions alone.
    pub(super) fn directed(
        &mut self,
        op: float::Op,
        rounding: Rounding,
        format: Format,
        s: &[String],
    ) -> Option<String> {
        let (ftz, sat) = match (format, self.form) {
            (Format::F32 { ftz, sat }, _) => (ftz, sat),
            (Format::F64, Form::Lanes(16)) => {
                let result = self.rounded_by_instruction(op, rounding, 64, s)?;
                return Some(self.text.bits(self.form, 64, &result));
            }
            (Format::F64 | Format::F32x2 { .. }, _) => return None,
        };
        let result = match self.form {
            Form::Lanes(16) if !ftz => self.rounded_by_instruction(op, rounding, 32, s)?,
            _ => self.rounded_by_doubles(op, rounding, ftz, s)?,
        };
        let result = if sat { self.saturate(&result) } else { result };
        Some(self.text.bits(self.form, 32, &result))
    }

    /// By AVX-512's instructions that say how they round, on 16 lanes.
    fn rounded_by_instruction(&mut self, op: float::Op, rounding: Rounding, bits: u32, s: &[String]) -> Option<String> {
        use float::Op::*;
        // Intel's manual, volume 1, 15.6.4: the mode, and no exceptions.
        let mode = match rounding {
            Rounding::Rm => 9,
            Rounding::Rp => 10,
            Rounding::Rz => 11,
            Rounding::Rn | Rounding::Rna | Rounding::Rs => return None,
        };
        let ty = self.form.float(bits);
        let mut of: Vec<String> = s
            .iter()
            .map(|source| self.text.float(self.form, bits, source))
            .collect();
        let name = match op {
            Add { .. } => "add",
            Sub { .. } => "sub",
            Mul { .. } => "mul",
            Fma { .. } => "vfmadd",
            Div { .. } => "div",
            Rcp { .. } => {
                of.insert(0, self.form.float_constant(bits, 1.0));
                "div"
            }
            Sqrt { .. } => "sqrt",
            Abs { .. } | Neg { .. } | Min { .. } | Max { .. } => return None,
            MinAbs { .. } | MaxAbs { .. } | Copysign { .. } | Testp { .. } => return None,
        };
        if bits == 32 {
            let arguments: String = of.iter().map(|value| format!("{ty} {value}, ")).collect();
            return Some(self.text.value(format!(
                "call {ty} @llvm.x86.avx512.{name}.ps.512({arguments}i32 {mode})"
            )));
        }
        // Two vectors of eight.
        let order = |from: usize, count: usize| {
            let order: Vec<String> = (from..from + count).map(|at| format!("i32 {at}")).collect();
            format!("<{count} x i32> <{}>", order.join(", "))
        };
        let halves = [0, 8].map(|from| {
            let mut arguments = String::new();
            for value in &of {
                let by = order(from, 8);
                let half = self
                    .text
                    .value(format!("shufflevector {ty} {value}, {ty} poison, {by}"));
                arguments.push_str(&format!("<8 x double> {half}, "));
            }
            self.text.value(format!(
                "call <8 x double> @llvm.x86.avx512.{name}.pd.512({arguments}i32 {mode})"
            ))
        });
        let [low, high] = halves;
        let by = order(0, 16);
        Some(
            self.text
                .value(format!("shufflevector <8 x double> {low}, <8 x double> {high}, {by}")),
        )
    }

    /// From the exact result, or one as a double that is on the same side of all that an `f32` may become.
    fn rounded_by_doubles(&mut self, op: float::Op, rounding: Rounding, ftz: bool, s: &[String]) -> Option<String> {
        use float::Op::*;
        let (float, double) = (self.form.float(32), self.form.float(64));
        let mut of = Vec::new();
        for source in s {
            let value = self.text.float(self.form, 32, source);
            let value = if ftz { self.flush(&value) } else { value };
            of.push(self.text.convert("fpext", &float, &value, &double));
        }
        // The product of two significands of 24 bits is exact.
        let exact = match op {
            Mul { .. } => self.text.binary("fmul", &double, &of[0], &of[1]),
            Add { .. } => self.exact_sum(rounding, &of[0], &of[1]),
            Sub { .. } => {
                let minus = self.text.value(format!("fneg {double} {}", of[1]));
                self.exact_sum(rounding, &of[0], &minus)
            }
            Fma { .. } => {
                let product = self.text.binary("fmul", &double, &of[0], &of[1]);
                self.exact_sum(rounding, &product, &of[2])
            }
            Div { .. } | Rcp { .. } | Sqrt { .. } | Abs { .. } | Neg { .. } | Min { .. } | Max { .. } => return None,
            MinAbs { .. } | MaxAbs { .. } | Copysign { .. } | Testp { .. } => return None,
        };
        // One step back from the nearest, where that lies beyond. Comparisons are false for NaN.
        let nearest = self.text.convert("fptrunc", &double, &exact, &float);
        let back = self.text.convert("fpext", &float, &nearest, &double);
        let bits = self.text.bits(self.form, 32, &nearest);
        let (none, one) = (self.constant(32, 0), self.constant(32, 1));
        let away = |this: &mut Self| {
            let by = this.constant(32, 31);
            let sign = this.binary("ashr", 32, &bits, &by);
            this.binary("or", 32, &sign, &one)
        };
        let (beyond, back_by, step) = match rounding {
            Rounding::Rm => (self.fcmp("ogt", 64, &back, &exact), away(self), "sub"),
            Rounding::Rp => (self.fcmp("olt", 64, &back, &exact), away(self), "add"),
            Rounding::Rz => {
                let [back, exact] = [&back, &exact].map(|of| self.text.intrinsic("fabs", self.form, "f64", &[of]));
                (self.fcmp("ogt", 64, &back, &exact), one, "sub")
            }
            Rounding::Rn | Rounding::Rna | Rounding::Rs => return None,
        };
        let back_by = self.select(32, &beyond, &back_by, &none);
        let mut result = self.binary(step, 32, &bits, &back_by);
        if ftz {
            // What is rounded up to the least normal number from further away than a last place of normal numbers is tiny, too.
            let most = f64::from(f32::MIN_POSITIVE) * (1.0 - f64::from(f32::EPSILON) / 2.0);
            let most = self.form.float_constant(64, most);
            let magnitude = self.text.intrinsic("fabs", self.form, "f64", &[&exact]);
            let tiny = self.fcmp("ole", 64, &magnitude, &most);
            let sign = self.constant(32, 0x8000_0000);
            let zero = self.binary("and", 32, &result, &sign);
            result = self.select(32, &tiny, &zero, &result);
        }
        let result = self.text.float(self.form, 32, &result);
        Some(if ftz { self.flush(&result) } else { result })
    }

    /// A sum rounded to odd, where an exact zero has the sign that the mode gives it.
    fn exact_sum(&mut self, rounding: Rounding, a: &str, b: &str) -> String {
        let sum = sum_to_odd(self.text, (self.form, 64), a, b);
        if rounding != Rounding::Rm {
            return sum;
        }
        // Negative, unless both are +0.
        let none = self.form.float_constant(64, 0.0);
        let zero = self.fcmp("oeq", 64, &sum, &none);
        let [a, b, sum] = [a, b, &sum].map(|of| self.text.bits(self.form, 64, of));
        let either = self.binary("or", 64, &a, &b);
        let sign = self.constant(64, 1 << 63);
        let signed = self.binary("and", 64, &either, &sign);
        let result = self.select(64, &zero, &signed, &sum);
        self.text.float(self.form, 64, &result)
    }
}

/// The sum of two floats of so many bits rounded to odd, so that rounding it once more is right in any mode. It does not overflow,
/// and what is lost of it is a float of as many bits (Knuth's TwoSum).
pub(super) fn sum_to_odd(text: &mut Text, (form, bits): (Form, u32), a: &str, b: &str) -> String {
    let float = form.float(bits);
    let sum = text.binary("fadd", &float, a, b);
    let of_b = text.binary("fsub", &float, &sum, a);
    let of_a = text.binary("fsub", &float, &sum, &of_b);
    let lost_a = text.binary("fsub", &float, a, &of_a);
    let lost_b = text.binary("fsub", &float, b, &of_b);
    let lost = text.binary("fadd", &float, &lost_a, &lost_b);
    let none = form.float_constant(bits, 0.0);
    let inexact = text.value(format!("fcmp one {float} {lost}, {none}"));
    odd(text, (form, bits), (&sum, &lost), &inexact)
}

/// An `f64` as an `f32`, rounded to odd, so that rounding it once more is right.
pub(super) fn single_to_odd(text: &mut Text, form: Form, value: &str) -> String {
    let (single, double) = (form.float(32), form.float(64));
    let nearest = text.convert("fptrunc", &double, value, &single);
    let back = text.convert("fpext", &single, &nearest, &double);
    // Exact, but for an infinite `nearest`: then the sign is right.
    let lost = text.binary("fsub", &double, value, &back);
    let none = form.float_constant(64, 0.0);
    let inexact = text.value(format!("fcmp one {double} {lost}, {none}"));
    let lost = text.convert("fptrunc", &double, &lost, &single);
    odd(text, (form, 32), (&nearest, &lost), &inexact)
}

/// What has been rounded to nearest, and has lost something, with an odd last bit.
fn odd(text: &mut Text, (form, bits): (Form, u32), (nearest, lost): (&str, &str), inexact: &str) -> String {
    let int = form.int(bits);
    let [whole, lost] = [nearest, lost].map(|of| text.bits(form, bits, of));
    // Where what is lost has the other sign, it is cut off one place lower.
    let signs = text.binary("xor", &int, &whole, &lost);
    let inwards = text.binary("ashr", &int, &signs, &form.constant(bits, u64::from(bits) - 1));
    let cut = text.binary("add", &int, &whole, &inwards);
    let odd = text.binary("or", &int, &cut, &form.constant(bits, 1));
    let result = text.select(form, &int, inexact, &odd, &whole);
    text.float(form, bits, &result)
}
