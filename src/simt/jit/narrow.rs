//! Formats of eight and fewer bits that have a sign and an exponent, from and to wider floats: the quick way of
//! [`crate::isa::narrow`], step by step.

use crate::isa::Level;
use crate::isa::half::Plain;
use crate::isa::narrow::{Halves, Layout, Limits, Narrow, Op, Source};
use crate::isa::types::Rounding;

use super::compute::Emitter;

/// Bits of an `f32`: all but the sign, the sign, infinity.
const MAGNITUDE: u64 = 0x7fff_ffff;
const SIGN: u64 = 0x8000_0000;
const INFINITY: u64 = 0x7f80_0000;

impl Emitter<'_> {
    pub(super) fn narrow(&mut self, op: Op, s: &[String]) -> Option<String> {
        // Without instructions that widen and narrow halves LLVM would call functions.
        if self.level == Level::Baseline {
            return None;
        }
        match op {
            Op::Down {
                to,
                from,
                rounding: Rounding::Rn,
                limits: Limits { relu, satfinite: true },
                scaled: false,
            } if to.is_signed() && to.is_floating() => {
                // The first source, or the upper half, becomes the upper element.
                let [upper, lower] = match from {
                    Source::F32 => [0, 1].map(|at| self.text.float(self.form, 32, &s[at])),
                    Source::F16x2 => self.both_halves(Plain::F16 { x2: false, ftz: false }, &s[0]),
                    Source::Bf16x2 => self.both_halves(Plain::Bf16 { x2: false }, &s[0]),
                };
                let [upper, lower] = [upper, lower].map(|value| self.narrowed_to(to, relu, &value));
                let by = self.constant(32, to.bits().into());
                let upper = self.binary("shl", 32, &upper, &by);
                let both = self.binary("or", 32, &upper, &lower);
                Some(self.resize(32, &both, 16, false))
            }
            Op::Up {
                to,
                from,
                limits:
                    Limits {
                        relu: false,
                        satfinite: false,
                    },
                scaled: false,
            } if from.is_signed() && from.is_floating() => {
                let both = self.resize(16, &s[0], 32, false);
                let by = self.constant(32, from.bits().into());
                let upper = self.binary("lshr", 32, &both, &by);
                let bf16 = to == Halves::Bf16x2;
                let [upper, lower] = [upper, both].map(|bits| {
                    let value = self.widened_from(from, &bits);
                    let bits = self.text.bits(self.form, 32, &value);
                    let half = self.half_of(bf16, false, &bits);
                    self.resize(16, &half, 32, false)
                });
                let by = self.constant(32, 16);
                let upper = self.binary("shl", 32, &upper, &by);
                Some(self.binary("or", 32, &upper, &lower))
            }
            Op::Down { .. } | Op::Up { .. } | Op::RandomHalves { .. } | Op::RandomFour { .. } => None,
        }
    }

    /// A pair's halves as floats of 32 bits, the upper one first.
    fn both_halves(&mut self, format: Plain, pair: &str) -> [String; 2] {
        let by = self.constant(32, 16);
        let upper = self.binary("lshr", 32, pair, &by);
        [&upper, pair].map(|word| {
            let half = self.resize(32, word, 16, false);
            self.single(format, &half)
        })
    }

    /// To nearest even, as an integer of 32 bits; the greatest number's bits beyond it.
    fn narrowed_to(&mut self, format: Narrow, relu: bool, value: &str) -> String {
        let Layout {
            fraction,
            bias,
            most,
            nan,
            sign,
        } = format.layout();
        let drop = 23 - fraction;
        let rebias = u64::from((127 - bias) as u32) << 23;
        let bits = self.text.bits(self.form, 32, value);
        let magnitude = self.constant(32, MAGNITUDE);
        let magnitude = self.binary("and", 32, &bits, &magnitude);
        let most = self.constant(32, (u64::from(most) << drop) + rebias);
        let bounded = self.text.intrinsic("umin", self.form, "i32", &[&magnitude, &most]);
        // Normal results are rounded by adding half a step, subnormal ones by adding a number whose last place is theirs.
        let [by, one] = [drop.into(), 1].map(|number| self.constant(32, number));
        let odd = self.binary("lshr", 32, &bounded, &by);
        let odd = self.binary("and", 32, &odd, &one);
        let half = ((1 << (drop - 1)) - 1u64).wrapping_sub(rebias);
        let half = self.constant(32, half & u64::from(u32::MAX));
        let normal = self.binary("add", 32, &bounded, &half);
        let normal = self.binary("add", 32, &normal, &odd);
        let normal = self.binary("lshr", 32, &normal, &by);
        let step = ((127 + 24 - bias - fraction as i32) as u32) << 23;
        let float = self.text.float(self.form, 32, &bounded);
        let step_float = self.form.float_constant(32, f64::from(f32::from_bits(step)));
        let sum = self.text.binary("fadd", &self.form.float(32), &float, &step_float);
        let sum = self.text.bits(self.form, 32, &sum);
        let step = self.constant(32, step.into());
        let subnormal = self.binary("sub", 32, &sum, &step);
        let least = self.constant(32, u64::from((128 - bias) as u32) << 23);
        let small = self.icmp("ult", 32, &bounded, &least);
        let finite = self.select(32, &small, &subnormal, &normal);
        let [zero, sign, nan] = [0, sign.into(), nan.into()].map(|number| self.constant(32, number));
        let negative = self.icmp("slt", 32, &bits, &zero);
        let signed = match relu {
            true => self.select(32, &negative, &zero, &finite),
            false => {
                let sign = self.select(32, &negative, &sign, &zero);
                self.binary("or", 32, &finite, &sign)
            }
        };
        let infinity = self.constant(32, INFINITY);
        let is_nan = self.icmp("ugt", 32, &magnitude, &infinity);
        self.select(32, &is_nan, &nan, &signed)
    }

    /// The float of 32 bits that the low bits of an integer are, exactly: a multiplication mends the exponent.
    fn widened_from(&mut self, format: Narrow, bits: &str) -> String {
        let Layout {
            fraction, bias, sign, ..
        } = format.layout();
        let low = self.constant(32, u64::from(sign) - 1);
        let magnitude = self.binary("and", 32, bits, &low);
        let up = self.constant(32, u64::from(23 - fraction));
        let value = self.binary("shl", 32, &magnitude, &up);
        let value = self.text.float(self.form, 32, &value);
        let factor = f32::from_bits(((254 - bias) as u32) << 23);
        let factor = self.form.float_constant(32, factor.into());
        let value = self.text.binary("fmul", &self.form.float(32), &value, &factor);
        let mut value = self.text.bits(self.form, 32, &value);
        let (nan, infinity) = match format {
            Narrow::E4m3 => (Some(0x7f), None),
            Narrow::E5m2 => (Some(0x7d), Some(0x7c)),
            // The others have neither, or are not of those that come here.
            Narrow::E2m3 | Narrow::E3m2 | Narrow::E2m1 | Narrow::Ue5m3 | Narrow::Ue8m0 | Narrow::S2f6 => (None, None),
        };
        for (least, relation, becomes) in [(nan, "uge", 0x7fc0_0000), (infinity, "eq", INFINITY)] {
            let Some(least) = least else { continue };
            let [least, becomes] = [least, becomes].map(|number| self.constant(32, number));
            let is_it = self.icmp(relation, 32, &magnitude, &least);
            value = self.select(32, &is_it, &becomes, &value);
        }
        let [zero, sign, negative] = [0, sign.into(), SIGN].map(|number| self.constant(32, number));
        let signed = self.binary("and", 32, bits, &sign);
        let is_negative = self.icmp("ne", 32, &signed, &zero);
        let sign = self.select(32, &is_negative, &negative, &zero);
        let value = self.binary("or", 32, &value, &sign);
        self.text.float(self.form, 32, &value)
    }
}
