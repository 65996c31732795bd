//! Conversions between formats, as LLVM's text.

use crate::isa::Level;
use crate::isa::convert::{self, Halves, Kind, Round};
use crate::isa::types::Rounding;

use super::compute::Emitter;
use super::directed::sum_to_odd;
use super::half;
use super::text::Form;

impl Emitter<'_> {
    pub(super) fn cvt(&mut self, op: convert::Op, sources: &[String]) -> Option<String> {
        let (to, from, round, flags) = match op {
            convert::Op::Cvt { to, from, round, flags } => (to, from, round, flags),
            convert::Op::Halves {
                to,
                rounding: Rounding::Rn,
                relu,
                satfinite: false,
            } => return self.pair(to == Halves::Bf16x2, relu, sources),
            convert::Op::Halves { .. } | convert::Op::Pack { .. } => return None,
        };
        let source = &sources[0];
        if (to, from, round) == (Kind::Bf16, Kind::F32, Round::To(Rounding::Rn))
            && !(flags.sat || flags.satfinite || flags.ftz)
        {
            return (self.level != Level::Baseline).then(|| self.half_of(true, flags.relu, source));
        }
        if flags.sat && !flags.relu && !flags.satfinite && (to, from, round) == (Kind::F32, Kind::F32, Round::Unsaid) {
            let value = self.text.float(self.form, 32, source);
            let value = self.saturate(&value);
            // A positive number below the least normal one, which is all that is left of subnormals, becomes +0.
            let value = if flags.ftz { self.flush(&value) } else { value };
            return Some(self.text.bits(self.form, 32, &value));
        }
        if flags.relu || flags.satfinite {
            return None;
        }
        let integer = |kind: Kind| {
            Some(match kind {
                Kind::U8 => (8, false),
                Kind::S8 => (8, true),
                Kind::U16 => (16, false),
                Kind::S16 => (16, true),
                Kind::U32 => (32, false),
                Kind::S32 => (32, true),
                Kind::U64 => (64, false),
                Kind::S64 => (64, true),
                Kind::F16 | Kind::Bf16 | Kind::Tf32 | Kind::F32 | Kind::F64 => return None,
            })
        };
        let register = |bits: u32| if bits == 8 { 16 } else { bits };
        let near = matches!(round, Round::Unsaid | Round::To(Rounding::Rn));
        match (integer(from), integer(to)) {
            (None, _) | (_, None) if flags.sat => None,
            (Some((from, from_signed)), Some((to, to_signed))) if !flags.ftz => {
                let mut value = self.resize(register(from), source, from, false);
                if flags.sat {
                    value = self.between(&value, (from, from_signed), (to, to_signed));
                }
                let value = self.resize(from, &value, to, from_signed);
                Some(self.resize(to, &value, register(to), to_signed))
            }
            (Some((from, signed)), None) if near && matches!(to, Kind::F32 | Kind::F64) => {
                let bits = if to == Kind::F32 { 32 } else { 64 };
                // As vectors, CPUs have nothing for them before AVX-512.
                if from == 64 && self.form != Form::One && self.level != Level::Avx512 {
                    return Some(self.float_of_long(source, signed, bits));
                }
                let value = self.resize(register(from), source, from, false);
                let value = self.resize(from, &value, from.max(32), signed);
                let op = if signed { "sitofp" } else { "uitofp" };
                let (ty, float) = (self.form.int(from.max(32)), self.form.float(bits));
                let value = self.text.convert(op, &ty, &value, &float);
                Some(self.text.bits(self.form, bits, &value))
            }
            // What `f32` would round is too large for a half in any case.
            (Some((from, signed)), None)
                if near && to == Kind::F16 && self.level != Level::Baseline && self.form != Form::One =>
            {
                if from == 64 && self.level != Level::Avx512 {
                    return None;
                }
                let value = self.resize(register(from), source, from, false);
                let value = self.resize(from, &value, from.max(32), signed);
                let op = if signed { "sitofp" } else { "uitofp" };
                let (ty, single) = (self.form.int(from.max(32)), self.form.float(32));
                let value = self.text.convert(op, &ty, &value, &single);
                Some(half::narrow(self.text, self.form, &value))
            }
            (None, Some(to)) => {
                let Round::Integral(mode) = round else { return None };
                self.clamped((from, source), to, mode, flags.ftz)
            }
            (None, None) if to == from => {
                let Round::Integral(mode) = round else { return None };
                self.integral(from, mode, flags.ftz, source)
            }
            (None, None) => match (to, from) {
                (Kind::F64, Kind::F32) if !flags.ftz && round == Round::Unsaid => {
                    let value = self.text.float(self.form, 32, source);
                    let (narrow, wide) = (self.form.float(32), self.form.float(64));
                    let value = self.text.convert("fpext", &narrow, &value, &wide);
                    Some(self.text.bits(self.form, 64, &value))
                }
                (Kind::F32, Kind::F64) if !flags.ftz && near => {
                    let value = self.text.float(self.form, 64, source);
                    let (narrow, wide) = (self.form.float(32), self.form.float(64));
                    let value = self.text.convert("fptrunc", &wide, &value, &narrow);
                    Some(self.text.bits(self.form, 32, &value))
                }
                (Kind::F32, Kind::F16) if self.level != Level::Baseline && self.form != Form::One => {
                    let value = half::widen(self.text, self.form, false, source);
                    Some(self.text.bits(self.form, 32, &value))
                }
                (Kind::F16, Kind::F32) if near && self.level != Level::Baseline && self.form != Form::One => {
                    let value = self.text.float(self.form, 32, source);
                    let nan = self.fcmp("uno", 32, &value, &value);
                    let half = half::narrow(self.text, self.form, &value);
                    let canonical = self.constant(16, 0x7fff);
                    Some(self.select(16, &nan, &canonical, &half))
                }
                (Kind::Tf32, Kind::F32) if !flags.ftz => self.tf32(round, source),
                (Kind::F32, Kind::Bf16) if !flags.ftz && round == Round::Unsaid => {
                    let value = half::widen(self.text, self.form, true, source);
                    Some(self.text.bits(self.form, 32, &value))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// An integer no less and no more than another type holds.
    fn between(&mut self, value: &str, (from, from_signed): (u32, bool), (to, to_signed): (u32, bool)) -> String {
        let places = |bits: u32, signed: bool| if signed { bits - 1 } else { bits };
        let (element, mut value) = (format!("i{from}"), value.to_owned());
        if from_signed && !(to_signed && to >= from) {
            let least = if to_signed { u64::MAX << (to - 1) } else { 0 };
            let least = self.constant(from, least);
            value = self.text.intrinsic("smax", self.form, &element, &[&value, &least]);
        }
        if places(from, from_signed) > places(to, to_signed) {
            let most = self.constant(from, u64::MAX >> (64 - places(to, to_signed)));
            let least = if from_signed { "smin" } else { "umin" };
            value = self.text.intrinsic(least, self.form, &element, &[&value, &most]);
        }
        value
    }

    /// The upper 19 bits of an `f32`, rounded. Too large ones become infinite by the carry.
    fn tf32(&mut self, round: Round, source: &str) -> Option<String> {
        let [cut, half, below, last, one] = [0xffff_e000, 0x1000, 0xfff, 13, 1].map(|value| self.constant(32, value));
        let rounded = match round {
            Round::To(Rounding::Rna) => self.binary("add", 32, source, &half),
            Round::To(Rounding::Rz) => source.to_owned(),
            Round::To(Rounding::Rn) => {
                let odd = self.binary("lshr", 32, source, &last);
                let odd = self.binary("and", 32, &odd, &one);
                let up = self.binary("add", 32, &odd, &below);
                self.binary("add", 32, source, &up)
            }
            _ => return None,
        };
        // `.rna` leaves NaN their upper bits, and others make them canonical.
        let nan = match round {
            Round::To(Rounding::Rna) => source.to_owned(),
            _ => self.constant(32, 0x7fff_e000),
        };
        let value = self.text.float(self.form, 32, source);
        let is_nan = self.fcmp("uno", 32, &value, &value);
        let result = self.select(32, &is_nan, &nan, &rounded);
        Some(self.binary("and", 32, &result, &cut))
    }

    /// Integers of 64 bits as floats, rounded to nearest, for CPUs without an instruction. Their halves are made the lowest bits of large
    /// numbers, which is exact; one addition brings both together, and rounds.
    fn float_of_long(&mut self, source: &str, signed: bool, bits: u32) -> String {
        const TWO_52: u64 = 0x4330_0000_0000_0000;
        const TWO_84: u64 = 0x4530_0000_0000_0000;
        const SIGN: u64 = 1 << 31;
        let [low, by, near, far] = [0xffff_ffff, 32, TWO_52, TWO_84].map(|value| self.constant(64, value));
        let low = self.binary("and", 64, source, &low);
        let low = self.binary("or", 64, &low, &near);
        let mut high = self.binary("lshr", 64, source, &by);
        // What the halves have too much: 2^52 and 2^84, and 2^63 where the sign is turned to make the upper one a number without.
        let mut over = f64::from_bits(TWO_84) + f64::from_bits(TWO_52);
        if signed {
            let sign = self.constant(64, SIGN);
            high = self.binary("xor", 64, &high, &sign);
            over += (1u64 << 63) as f64;
        }
        let high = self.binary("or", 64, &high, &far);
        let [low, high] = [low, high].map(|half| self.text.float(self.form, 64, &half));
        let over = self.form.float_constant(64, over);
        let ty = self.form.float(64);
        let high = self.text.binary("fsub", &ty, &high, &over);
        if bits == 64 {
            let sum = self.text.binary("fadd", &ty, &high, &low);
            return self.text.bits(self.form, 64, &sum);
        }
        let sum = sum_to_odd(self.text, (self.form, 64), &high, &low);
        let single = self.text.convert("fptrunc", &ty, &sum, &self.form.float(32));
        self.text.bits(self.form, 32, &single)
    }

    /// The way back, from an integral `f64`, clamped: its halves are the lowest bits of large numbers, too. NaN becomes the lone top bit.
    fn long_of_double(&mut self, value: &str, signed: bool) -> String {
        const TWO_52: f64 = (1u64 << 52) as f64;
        const TWO_32: f64 = (1u64 << 32) as f64;
        let (form, ty) = (self.form, self.form.float(64));
        // A negative upper half borrows from the half of 2^52 that is added to it.
        let upper = if signed { 1.5 * TWO_52 } else { TWO_52 };
        let [down, up, upper, lower] = [1.0 / TWO_32, TWO_32, upper, TWO_52].map(|of| form.float_constant(64, of));
        let high = self.text.binary("fmul", &ty, value, &down);
        let high = self.text.intrinsic("floor", form, "f64", &[&high]);
        let above = self.text.binary("fmul", &ty, &high, &up);
        let low = self.text.binary("fsub", &ty, value, &above);
        let high = self.text.binary("fadd", &ty, &high, &upper);
        let low = self.text.binary("fadd", &ty, &low, &lower);
        let [high, low] = [high, low].map(|half| self.text.bits(form, 64, &half));
        let (by, rest) = (self.constant(64, 32), self.constant(64, 0xffff_ffff));
        let high = self.binary("shl", 64, &high, &by);
        let low = self.binary("and", 64, &low, &rest);
        let whole = self.binary("or", 64, &high, &low);
        let (least, most) = match signed {
            true => (1 << 63, i64::MAX as u64),
            false => (0, u64::MAX),
        };
        let [bottom, top] = match signed {
            true => [-(TWO_32 * TWO_32) / 2.0, TWO_32 * TWO_32 / 2.0],
            false => [0.0, TWO_32 * TWO_32],
        };
        let [bottom, top] = [bottom, top].map(|of| form.float_constant(64, of));
        let below = self.fcmp("olt", 64, value, &bottom);
        let above = self.fcmp("oge", 64, value, &top);
        let nan = self.fcmp("uno", 64, value, value);
        let [least, most, lone] = [least, most, 1 << 63].map(|of| self.constant(64, of));
        let whole = self.select(64, &below, &least, &whole);
        let whole = self.select(64, &above, &most, &whole);
        self.select(64, &nan, &lone, &whole)
    }

    /// The intrinsic that rounds like this; `None`: there is none, or it would be a call.
    fn rounds(&self, mode: Rounding) -> Option<&'static str> {
        if self.level == Level::Baseline {
            return None;
        }
        Some(match mode {
            Rounding::Rz => "trunc",
            Rounding::Rn => "roundeven",
            Rounding::Rm => "floor",
            Rounding::Rp => "ceil",
            Rounding::Rna | Rounding::Rs => return None,
        })
    }

    /// A float's integral value as an integer: clamped. NaN becomes zero, or the lone top bit of `f64` and of 64 bits.
    fn clamped(
        &mut self,
        (from, source): (Kind, &str),
        (to, signed): (u32, bool),
        mode: Rounding,
        ftz: bool,
    ) -> Option<String> {
        let (mut value, bits) = match from {
            Kind::F32 => (self.text.float(self.form, 32, source), 32),
            Kind::F64 => (self.text.float(self.form, 64, source), 64),
            Kind::F16 if self.level != Level::Baseline && self.form != Form::One => {
                (half::widen(self.text, self.form, false, source), 32)
            }
            Kind::Bf16 => (half::widen(self.text, self.form, true, source), 32),
            // Others do not become integers, or by the kernel.
            _ => return None,
        };
        // As vectors, CPUs have nothing for 64 bits before AVX-512, and nothing that rounds before AVX.
        let in_halves = to == 64 && self.form != Form::One && self.level != Level::Avx512;
        if in_halves && self.level == Level::Baseline {
            return None;
        }
        // What is rounded down or up may show that it was not flushed.
        if ftz && matches!(mode, Rounding::Rm | Rounding::Rp) {
            return None;
        }
        let element = if bits == 32 { "f32" } else { "f64" };
        if mode != Rounding::Rz {
            let name = self.rounds(mode)?;
            value = self.text.intrinsic(name, self.form, element, &[&value]);
        }
        if in_halves {
            if mode == Rounding::Rz {
                value = self.text.intrinsic("trunc", self.form, element, &[&value]);
            }
            if bits == 32 {
                value = self
                    .text
                    .convert("fpext", &self.form.float(32), &value, &self.form.float(64));
            }
            return Some(self.long_of_double(&value, signed));
        }
        // LLVM makes its saturating conversion of vectors one lane at a time, so the number is clamped before.
        let (by, places) = (to.max(32), if signed { to - 1 } else { to });
        let precision = if bits == 32 { 24 } else { 53 };
        let above = 2f64.powi(places as i32);
        let most = above - 2f64.powi((places as i32 - precision).max(0));
        let least = if signed { -above } else { 0.0 };
        let (ty, float) = (self.form.int(by), self.form.float(bits));
        let mut clamped = value.clone();
        for (relation, bound) in [("olt", most), ("ogt", least)] {
            let bound = self.form.float_constant(bits, bound);
            let within = self.fcmp(relation, bits, &clamped, &bound);
            clamped = self.text.select(self.form, &float, &within, &clamped, &bound);
        }
        let op = if signed { "fptosi" } else { "fptoui" };
        let mut result = self.text.convert(op, &float, &clamped, &ty);
        if places as i32 > precision {
            let above = self.form.float_constant(bits, above);
            let above = self.fcmp("oge", bits, &value, &above);
            let most = self.constant(by, u64::MAX >> (64 - places));
            result = self.select(by, &above, &most, &result);
        }
        let nan = self.fcmp("uno", bits, &value, &value);
        let of_nan = match from == Kind::F64 || to == 64 {
            false => 0,
            // Narrow ones are extended by their sign.
            true if signed && to < 32 => u64::MAX << (to - 1),
            true => 1 << (to - 1),
        };
        let of_nan = self.constant(by, of_nan);
        result = self.select(by, &nan, &of_nan, &result);
        Some(match to {
            8 => self.resize(32, &result, 16, signed),
            _ => self.resize(by, &result, to, signed),
        })
    }

    /// A float's integral value as such a float. NaN of `f64` are made quiet, of `f32` they are left to whoever looks.
    fn integral(&mut self, of: Kind, mode: Rounding, ftz: bool, source: &str) -> Option<String> {
        let name = self.rounds(mode)?;
        let (bits, element) = match of {
            Kind::F32 => (32, "f32"),
            Kind::F64 => (64, "f64"),
            _ => return None,
        };
        let mut value = self.text.float(self.form, bits, source);
        if ftz && of == Kind::F32 {
            value = self.flush(&value);
        }
        let rounded = self.text.intrinsic(name, self.form, element, &[&value]);
        let rounded = self.text.bits(self.form, bits, &rounded);
        if of == Kind::F32 {
            return Some(rounded);
        }
        let nan = self.fcmp("uno", 64, &value, &value);
        let quiet = self.constant(64, 1 << 51);
        let quiet = self.binary("or", 64, source, &quiet);
        Some(self.select(64, &nan, &quiet, &rounded))
    }
}
