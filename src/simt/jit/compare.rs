//! Comparisons and what is chosen by a sign, as LLVM's text.

use crate::isa::Level;
use crate::isa::compare::{Boolean, Compare, Op, Operands, Truth};
use crate::isa::half::Plain;
use crate::isa::logic::Sign;
use crate::isa::types::Movable;

use super::compute::{Emitter, of_integers, plain};

impl Emitter<'_> {
    pub(super) fn compare(&mut self, op: Op, s: &[String], destinations: usize) -> Option<Vec<String>> {
        match op {
            Op::Setp { compare, boolean, of } => {
                let mut holds = self.comparisons(compare, of, s)?;
                if destinations == 2 && holds.len() == 1 {
                    let ones = self.constant(1, 1);
                    holds.push(self.binary("xor", 1, &holds[0], &ones));
                }
                let holds = holds.into_iter().take(destinations);
                Some(holds.map(|holds| self.combined(boolean, holds, s)).collect())
            }
            Op::Set {
                compare,
                boolean,
                to,
                of,
            } => {
                let holds = self.comparisons(compare, of, s)?;
                let holds = holds.into_iter().map(|holds| self.combined(boolean, holds, s));
                let holds: Vec<String> = holds.collect();
                Some(vec![self.truth(to, &holds)])
            }
        }
    }

    /// Whether a comparison holds, for each of the two halves of pairs.
    fn comparisons(&mut self, compare: Compare, of: Operands, s: &[String]) -> Option<Vec<String>> {
        Some(match of {
            Operands::B16
            | Operands::U16
            | Operands::S16
            | Operands::B32
            | Operands::U32
            | Operands::S32
            | Operands::B64
            | Operands::U64
            | Operands::S64 => {
                let (bits, _, relation) = of_integers(compare, of)?;
                vec![self.icmp(relation, bits, &s[0], &s[1])]
            }
            Operands::F32 { ftz } => {
                let [mut a, mut b] = [&s[0], &s[1]].map(|value| self.text.float(self.form, 32, value));
                if ftz {
                    (a, b) = (self.flush(&a), self.flush(&b));
                }
                vec![self.fcmp(of_floats(compare), 32, &a, &b)]
            }
            Operands::F64 => {
                let [a, b] = [&s[0], &s[1]].map(|value| self.text.float(self.form, 64, value));
                vec![self.fcmp(of_floats(compare), 64, &a, &b)]
            }
            // Without instructions that widen halves LLVM would call functions.
            Operands::F16 { .. } | Operands::F16x2 { .. } if self.level == Level::Baseline => return None,
            Operands::F16 { ftz } => self.of_halves(compare, Plain::F16 { x2: false, ftz }, s),
            Operands::Bf16 => self.of_halves(compare, Plain::Bf16 { x2: false }, s),
            Operands::F16x2 { ftz } => self.of_pairs(compare, Plain::F16 { x2: false, ftz }, s),
            Operands::Bf16x2 => self.of_pairs(compare, Plain::Bf16 { x2: false }, s),
        })
    }

    fn of_halves(&mut self, compare: Compare, format: Plain, s: &[String]) -> Vec<String> {
        let [a, b] = [&s[0], &s[1]].map(|value| self.single(format, value));
        vec![self.fcmp(of_floats(compare), 32, &a, &b)]
    }

    /// The lower halves first.
    fn of_pairs(&mut self, compare: Compare, format: Plain, s: &[String]) -> Vec<String> {
        let by = self.constant(32, 16);
        let lower: Vec<String> = s[..2].iter().map(|pair| self.resize(32, pair, 16, false)).collect();
        let upper: Vec<String> = (s[..2].iter())
            .map(|pair| {
                let upper = self.binary("lshr", 32, pair, &by);
                self.resize(32, &upper, 16, false)
            })
            .collect();
        let mut holds = self.of_halves(compare, format, &lower);
        holds.extend(self.of_halves(compare, format, &upper));
        holds
    }

    /// With the predicate that is the last source.
    fn combined(&mut self, boolean: Option<Boolean>, holds: String, s: &[String]) -> String {
        match boolean {
            None => holds,
            Some(Boolean::And) => self.binary("and", 1, &holds, &s[2]),
            Some(Boolean::Or) => self.binary("or", 1, &holds, &s[2]),
            Some(Boolean::Xor) => self.binary("xor", 1, &holds, &s[2]),
        }
    }

    /// What `set` makes of whether comparisons hold.
    fn truth(&mut self, to: Truth, holds: &[String]) -> String {
        let bits = if to.is_narrow() { 16 } else { 32 };
        let (yes, zero) = (u64::from(to.bits()), self.constant(bits, 0));
        let [lower, upper] = holds else {
            let yes = self.constant(bits, yes);
            return self.select(bits, &holds[0], &yes, &zero);
        };
        let [low, high] = [yes & 0xffff, yes & 0xffff_0000].map(|half| self.constant(bits, half));
        let lower = self.select(bits, lower, &low, &zero);
        let upper = self.select(bits, upper, &high, &zero);
        self.binary("or", bits, &lower, &upper)
    }

    /// `slct`.
    pub(super) fn select_by_sign(&mut self, ty: Movable, by: Sign, s: &[String]) -> String {
        let holds = match by {
            Sign::S32 => {
                let zero = self.constant(32, 0);
                self.icmp("sge", 32, &s[2], &zero)
            }
            Sign::F32 { ftz } => {
                let value = self.text.float(self.form, 32, &s[2]);
                let (relation, least) = match ftz {
                    false => ("oge", 0.0),
                    true => ("ogt", -f64::from(f32::MIN_POSITIVE)),
                };
                let least = self.form.float_constant(32, least);
                self.fcmp(relation, 32, &value, &least)
            }
        };
        self.select(plain(ty.bits()), &holds, &s[0], &s[1])
    }
}

/// LLVM's word for a comparison of floats.
fn of_floats(compare: Compare) -> &'static str {
    match compare {
        Compare::Eq => "oeq",
        Compare::Ne => "one",
        Compare::Lt => "olt",
        Compare::Le => "ole",
        Compare::Gt => "ogt",
        Compare::Ge => "oge",
        Compare::Equ => "ueq",
        Compare::Neu => "une",
        Compare::Ltu => "ult",
        Compare::Leu => "ule",
        Compare::Gtu => "ugt",
        Compare::Geu => "uge",
        Compare::Num => "ord",
        Compare::Nan => "uno",
    }
}
