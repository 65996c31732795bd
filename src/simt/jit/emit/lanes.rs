//! Operations on registers: on the numbers of lines, on vectors, or by the interpreter's kernel on a copy of the operands.

use std::mem::offset_of;

use crate::isa::lanes::{LaneKernel, Mask, Operands, Width};
use crate::isa::{Compute, approx, shuffle};
use crate::program::{Op, Reg};

use super::super::Pc;
use super::super::compute::{self, Emitter, bits_of};
use super::super::context::{Context, LaneCall, ROOM};
use super::super::plan::Kind;
use super::super::text::Form;
use super::super::unit;
use super::{Called, Emit, LANES};

impl Called {
    /// The kernel, and its constant.
    fn kernel(self) -> (LaneKernel, u64) {
        match self {
            Called::Compute(what, results) => {
                let lane = what.lane().named(results);
                (lane.kernel, lane.constant)
            }
            Called::Shuffle(mode, with_predicate) => (shuffle::kernel(mode, with_predicate), 0),
        }
    }
}

impl Emit<'_> {
    pub(super) fn compute(&mut self, what: Compute, dst: &[Reg], src: &[Reg], op: &Op, pc: Pc) {
        if dst.iter().chain(src).any(|reg| reg.width == Width::B128) {
            self.step(op, pc, None);
            return;
        }
        let (raw, constants) = (self.takes_any_nan(what, dst), self.constants(src));
        let line = dst.iter().all(|reg| self.kind(reg.number).is_line());
        if line {
            self.must_not_wrap(what, src);
            let count = dst.iter().map(|reg| self.kept_bases_of(reg.number)).max().unwrap_or(1);
            let sources: Vec<Vec<String>> = src.iter().map(|&reg| self.bases(reg, raw, count)).collect();
            let mut results: Vec<Vec<String>> = vec![Vec::new(); dst.len()];
            for number in 0..count {
                let these: Vec<String> = sources.iter().map(|values| values[number].clone()).collect();
                let mut emitter = Emitter {
                    text: &mut self.text,
                    form: Form::One,
                    level: self.level,
                    same: None,
                };
                match emitter.emit(what, &these, &constants, dst.len()) {
                    Some(values) => {
                        for ((value, results), reg) in values.into_iter().zip(&mut results).zip(dst) {
                            let value = match compute::gives_any_nan(what) && !self.is_lazy(*reg) {
                                true => self.canonical(Form::One, &value),
                                false => value,
                            };
                            results.push(value);
                        }
                    }
                    None => {
                        results = self.kernel_on_lines(what, dst, src, &sources, count);
                        break;
                    }
                }
            }
            for (reg, values) in dst.iter().zip(&results) {
                self.write_line(*reg, values);
            }
            if compute::carries_nan(what) {
                let mut nan: Option<String> = None;
                for value in &results[0] {
                    let float = self.text.float(Form::One, 64, value);
                    let this = self.text.value(format!("fcmp uno double {float}, {float}"));
                    nan = Some(match nan {
                        None => this,
                        Some(nan) => self.text.binary("or", "i1", &nan, &this),
                    });
                }
                let (again, go) = (self.text.name("again"), self.text.name("go"));
                self.rarely(&nan.unwrap_or_default(), &again, &go);
                self.text.label(&again);
                let values = self.kernel_on_lines(what, dst, src, &sources, count);
                self.write_line(dst[0], &values[0]);
                self.jump(&go);
                self.text.label(&go);
            }
            return;
        }
        let sources: Vec<Vec<String>> = src.iter().map(|&reg| self.lanes_of(reg, raw)).collect();
        let same = match src.get(1) {
            Some(&by) if compute::divides(what) && matches!(self.kind(by.number), Kind::Line { step: 0, .. }) => {
                self.bases(by, raw, self.parts)
            }
            Some(_) | None => Vec::new(),
        };
        let mut results: Vec<Vec<String>> = vec![Vec::new(); dst.len()];
        let mut by_kernel = false;
        for part in 0..self.parts {
            let these: Vec<String> = sources.iter().map(|values| values[part].clone()).collect();
            let form = self.form();
            let mut emitter = Emitter {
                text: &mut self.text,
                form,
                level: self.level,
                same: same.get(part).cloned(),
            };
            let Some(values) = emitter.emit(what, &these, &constants, dst.len()) else {
                by_kernel = true;
                break;
            };
            for ((value, results), reg) in values.into_iter().zip(&mut results).zip(dst) {
                let value = match compute::gives_any_nan(what) && !self.is_lazy(*reg) {
                    true => self.canonical(form, &value),
                    false => value,
                };
                results.push(value);
            }
        }
        if by_kernel {
            // What it reads has to be what a GPU has there.
            let sources = match self.done.is_empty() {
                true => sources,
                false => {
                    self.settle();
                    src.iter().map(|&reg| self.lanes_of(reg, raw)).collect()
                }
            };
            results = self.kernel(what, dst, src, &sources);
        } else if compute::carries_nan(what) {
            let result = results[0].clone();
            self.write_lanes(dst[0], &result);
            self.done(what, (dst[0], src), sources, result);
            if !self.may_wait {
                self.settle();
            }
            return;
        }
        for (reg, values) in dst.iter().zip(&results) {
            if self.kind(reg.number).is_line() {
                // One of two results is a line; the first lane's is everybody's.
                let ty = self.form().int(bits_of(reg.width).unwrap_or(32));
                let first: Vec<String> = values
                    .iter()
                    .map(|value| self.text.value(format!("extractelement {ty} {value}, i64 0")))
                    .collect();
                self.write_line(*reg, &first);
            } else {
                self.write_lanes(*reg, values);
            }
        }
    }

    /// Whether an operation gives what it should whichever NaN its operands are.
    pub(super) fn takes_any_nan(&self, what: Compute, dst: &[Reg]) -> bool {
        let moves = compute::moved(what).is_some() && dst.iter().all(|reg| self.is_lazy(*reg));
        compute::takes_any_nan(what) || moves
    }

    /// The values of operands that are constants.
    pub(super) fn constants(&self, src: &[Reg]) -> Vec<Option<u64>> {
        let each = src.iter().map(|reg| self.input.body.constant(reg.number));
        each.map(|bits| bits.map(|bits| bits as u64)).collect()
    }

    /// So many numbers of a line, for as many lanes each.
    pub(super) fn bases(&mut self, reg: Reg, raw: bool, count: usize) -> Vec<String> {
        let (values, step) = self.line_of(reg, raw);
        let bits = bits_of(reg.width).unwrap_or(32);
        (0..count)
            .map(|number| {
                let (value, further) = self.first_of(&values, number * self.parts / count, step);
                match Form::One.constant(bits, further) {
                    _ if further == 0 => value,
                    further => self.text.binary("add", &format!("i{bits}"), &value, &further),
                }
            })
            .collect()
    }

    /// A line that is widened must not wrap around between its lanes: else they leave the code before the instruction.
    pub(super) fn must_not_wrap(&mut self, what: Compute, src: &[Reg]) {
        let Some((at, signed)) = self.plan.may_wrap(self.input.body, what, src) else {
            return;
        };
        let (bases, step) = self.line_of(src[at], false);
        let last = i64::from(LANES) / bases.len() as i64 - 1;
        let far = i64::from(step as u32 as i32) * last;
        let extend = if signed { "sext" } else { "zext" };
        let mut bad: Option<String> = None;
        let begins = self.begins_of(src[at].number);
        let mut first: Option<String> = None;
        for (number, base) in bases.into_iter().enumerate() {
            let wide = self.text.value(format!("{extend} i32 {base} to i64"));
            // Nor between its parts.
            let begin = match (&first, &begins) {
                (Some(first), Some(begins)) => Some(self.text.value(format!("add i64 {first}, {}", begins[number]))),
                _ => None,
            };
            if let Some(begin) = begin {
                let differs = self.text.value(format!("icmp ne i64 {begin}, {wide}"));
                bad = bad.map(|bad| self.text.binary("or", "i1", &bad, &differs));
            }
            first.get_or_insert_with(|| wide.clone());
            let end = self.text.value(format!("add i64 {wide}, {far}"));
            let low = self.text.value(format!("trunc i64 {end} to i32"));
            let back = self.text.value(format!("{extend} i32 {low} to i64"));
            let wraps = self.text.value(format!("icmp ne i64 {back}, {end}"));
            bad = Some(match bad {
                None => wraps,
                Some(bad) => self.text.binary("or", "i1", &bad, &wraps),
            });
        }
        let (wraps, go) = (self.text.name("wraps"), self.text.name("go"));
        self.rarely(&bad.unwrap_or_default(), &wraps, &go);
        self.text.label(&wraps);
        self.stick();
        self.text.label(&go);
    }

    /// The interpreter's kernel of an operation, on lines: the numbers of the results.
    pub(super) fn kernel_on_lines(
        &mut self,
        what: Compute,
        dst: &[Reg],
        src: &[Reg],
        sources: &[Vec<String>],
        count: usize,
    ) -> Vec<Vec<String>> {
        let lanes: Vec<Vec<String>> = src
            .iter()
            .zip(sources)
            .map(|(reg, values)| {
                let step = match self.kind(reg.number) {
                    Kind::Line { step, .. } => step,
                    _ => 0,
                };
                self.along(bits_of(reg.width).unwrap_or(32), values, step)
            })
            .collect();
        let results = self.kernel(what, dst, src, &lanes);
        dst.iter()
            .zip(results)
            .map(|(reg, values)| {
                let ty = self.form().int(bits_of(reg.width).unwrap_or(32));
                values
                    .iter()
                    .step_by(self.parts / count)
                    .map(|value| self.text.value(format!("extractelement {ty} {value}, i64 0")))
                    .collect()
            })
            .collect()
    }

    /// The interpreter's kernel of an operation, on a copy of the operands.
    pub(super) fn kernel(
        &mut self,
        what: Compute,
        dst: &[Reg],
        src: &[Reg],
        sources: &[Vec<String>],
    ) -> Vec<Vec<String>> {
        match unit::of(what) {
            Some(op) if unit::has(self.level) => vec![self.on_unit(op, sources)],
            _ => self.called(Called::Compute(what, dst.len()), dst, src, sources),
        }
    }

    /// An approximation by its function of the module.
    fn on_unit(&mut self, op: approx::Op, sources: &[Vec<String>]) -> Vec<String> {
        let name = unit::name(op);
        self.functions.insert(name.clone(), op);
        let (form, wide) = (self.form(), unit::is_of_upper_words(op));
        let (words, longs, by) = (form.int(32), form.int(64), form.constant(64, 32));
        let mut arguments = Vec::new();
        for value in sources.iter().flatten() {
            let value = match wide {
                true => {
                    let upper = self.text.binary("lshr", &longs, value, &by);
                    self.text.resize(form, 64, &upper, 32, false)
                }
                false => value.clone(),
            };
            arguments.push(format!("{words} {value}"));
        }
        let ty = unit::result(self.level);
        let result = self.text.value(format!(
            "call intel_ocl_bicc {ty} @\"{name}\"({})",
            arguments.join(", ")
        ));
        let mut values = Vec::new();
        for part in 0..sources[0].len() {
            let mut value = self.text.value(format!("extractvalue {ty} {result}, {part}"));
            if wide {
                let upper = self.text.resize(form, 32, &value, 64, false);
                value = self.text.binary("shl", &longs, &upper, &by);
            }
            values.push(value);
        }
        values
    }

    /// The same for whatever has a kernel.
    pub(super) fn called(
        &mut self,
        what: Called,
        dst: &[Reg],
        src: &[Reg],
        sources: &[Vec<String>],
    ) -> Vec<Vec<String>> {
        let to: Vec<u32> = (0..dst.len() as u32).map(|number| number * ROOM).collect();
        let from: Vec<u32> = (2..2 + src.len() as u32).map(|number| number * ROOM).collect();
        for ((at, reg), values) in from.iter().zip(src).zip(sources) {
            self.store_lanes("%scratch", *at as usize, reg.width, values);
        }
        self.call_there("%scratch", what, &to, &from);
        dst.iter()
            .zip(to)
            .map(|(reg, at)| self.load_lanes("%scratch", at as usize, reg.width))
            .collect()
    }

    /// The interpreter's kernel of an operation on numbers that lie at these places of a piece of memory, as many bytes from its beginning.
    pub(super) fn call_there(&mut self, memory: &str, what: Called, to: &[u32], from: &[u32]) {
        let (kernel, imm) = what.kernel();
        let mut operands = Operands {
            imm,
            ..Operands::default()
        };
        operands.dst[..to.len()].copy_from_slice(to);
        operands.src[..from.len()].copy_from_slice(from);
        let places = (operands.dst, operands.src);
        let calls = &mut self.calls;
        let call = *self.call_of.entry((what, places)).or_insert_with(|| {
            calls.push(LaneCall {
                run: kernel.full,
                operands,
                mask: Mask {
                    warps: 1,
                    lanes: [u32::MAX; crate::isa::lanes::MAX_WARPS],
                },
            });
            calls.len() - 1
        });
        let helper = self.field(offset_of!(Context, lane), "ptr", true);
        let calls = self.field(offset_of!(Context, calls), "ptr", true);
        let this = self.place(&calls, call * size_of::<LaneCall>());
        self.text.line(format!("call void {helper}(ptr {this}, ptr {memory})"));
    }
}
