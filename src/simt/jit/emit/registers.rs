//! Registers while code runs: lines as their numbers, others a vector a part, read and written under masks.

use std::fmt::Write;

use crate::isa::lanes::Width;
use crate::program::facts::Shape;
use crate::program::{Initial, Reg, Register, Special};

use super::super::compute::bits_of;
use super::super::plan::{Kind, Parts};
use super::super::text::Form;
use super::Emit;

impl Emit<'_> {
    pub(super) fn info(&self, register: Register) -> Reg {
        self.input.body.reg(register)
    }

    pub(super) fn kind(&self, register: Register) -> Kind {
        self.plan.kinds[register as usize]
    }

    pub(super) fn slot(&self, register: Register) -> usize {
        self.input.slots[register as usize].unwrap_or(0) as usize
    }

    /// Whether a register has one value for the whole block, from before the code runs.
    pub(super) fn is_of_block(&self, register: Register) -> bool {
        let of = |special| !matches!(special, Special::Warpid | Special::Laneid | Special::Tid(_));
        let facts = self.input.body.facts.get(register as usize);
        let is_same = self.kind(register).is_same() && facts.is_some_and(|facts| facts.shape == Shape::Uniform);
        match self.input.body.registers[register as usize].initial {
            Some(Initial::Special(special)) => is_same && of(special),
            Some(Initial::Param { .. }) => is_same,
            Some(Initial::Constant(_)) | None => false,
        }
    }

    /// The window in which a register has its value before the code runs.
    fn window_of(&self, register: Register) -> &'static str {
        match self.is_of_block(register) {
            true => "%same",
            false => "%regs",
        }
    }

    /// How many numbers a line is: each stands for as many parts.
    pub(super) fn bases_of(&self, register: Register) -> usize {
        match self.kind(register) {
            Kind::Line {
                parts: parts @ (Parts::Rows { .. } | Parts::Each { .. }),
                ..
            } => self.parts / usize::from(parts.run()),
            _ => 1,
        }
    }

    /// How many of them are kept: the others follow from the first where it is known how.
    pub(super) fn kept_bases_of(&self, register: Register) -> usize {
        match self.kind(register) {
            Kind::Line {
                parts: Parts::Each { run },
                ..
            } => self.parts / usize::from(run),
            _ => 1,
        }
    }

    /// The numbers of a line, from those that are kept.
    fn all_bases(&mut self, reg: Reg, kept: Vec<String>) -> Vec<String> {
        let Some(begins) = self.begins_of(reg.number) else {
            return kept;
        };
        let bits = bits_of(reg.width).unwrap_or(32);
        let first = &kept[0];
        begins
            .into_iter()
            .map(|far| match far {
                0 => first.clone(),
                far => self.text.binary("add", &format!("i{bits}"), first, &far.to_string()),
            })
            .collect()
    }

    /// How far a line's numbers are from the first one, where that is known.
    pub(super) fn begins_of(&self, register: Register) -> Option<Vec<i64>> {
        match self.kind(register) {
            Kind::Line {
                parts: Parts::Rows { begins, run },
                ..
            } => {
                let numbers = begins[..self.parts].iter().step_by(run.into());
                Some(numbers.map(|&far| far.into()).collect())
            }
            _ => None,
        }
    }

    /// Memory of the frame for a register.
    pub(super) fn declare(&mut self, register: Register) {
        if self.homes.contains(&register) || self.declared.insert(register, ()).is_some() {
            return;
        }
        let width = self.info(register).width;
        let (ty, count) = match self.kind(register) {
            Kind::Vector if width == Width::Pred => (self.flag_type(), self.parts),
            Kind::Vector => (self.form().int(bits_of(width).unwrap_or(32)), self.parts),
            _ => (
                Form::One.int(bits_of(width).unwrap_or(32)),
                self.kept_bases_of(register),
            ),
        };
        for part in 0..count {
            let _ = writeln!(self.head, "  %r{register}.{part} = alloca {ty}");
        }
    }

    /// What loads and stores of a register's parts say of where they lie: LLVM knows that of its frame.
    pub(super) fn align_of(&self, reg: Reg) -> String {
        match self.homes.contains(&reg.number) {
            true => format!(", align {}", (self.size(reg) / self.parts).min(64)),
            false => String::new(),
        }
    }

    /// Values of a register that is set before the code runs: numbers of a line, or parts.
    pub(super) fn fixed_values(&mut self, reg: Reg) -> Vec<String> {
        if let Some(values) = self.fixed.get(&(self.text.labels, reg.number)) {
            return values.clone();
        }
        let bits = bits_of(reg.width).unwrap_or(32);
        let kind = self.kind(reg.number);
        let slot = self.slot(reg.number);
        let constant = self.input.body.constant(reg.number);
        let values = match (constant, kind, reg.width) {
            (Some(value), ..) => vec![Form::One.constant(bits, value as u64)],
            (None, Kind::Line { .. }, Width::Pred) => {
                let at = self.place(self.window_of(reg.number), slot);
                let word = self.text.value(format!("load i32, ptr {at}, !invariant.load !0"));
                vec![self.text.value(format!("trunc i32 {word} to i1"))]
            }
            (None, Kind::Line { .. }, _) => {
                let kept = self.bases_in_slot(reg, self.window_of(reg.number), ", !invariant.load !0");
                self.all_bases(reg, kept)
            }
            _ => self.load_slot(reg),
        };
        self.fixed.insert((self.text.labels, reg.number), values.clone());
        values
    }

    /// The one NaN.
    pub(super) fn canonical(&mut self, form: Form, value: &str) -> String {
        let float = self.text.float(form, 32, value);
        let nan = self.text.value(format!("fcmp uno {} {float}, {float}", form.float(32)));
        let canonical = form.constant(32, 0x7fff_ffff);
        self.text.select(form, &form.int(32), &nan, &canonical, value)
    }

    pub(super) fn is_lazy(&self, reg: Reg) -> bool {
        self.plan.lazy[reg.number as usize]
    }

    /// The numbers of a line, and what it grows by. `raw`: any NaN will do.
    pub(super) fn line_of(&mut self, reg: Reg, raw: bool) -> (Vec<String>, u64) {
        let Kind::Line { step, .. } = self.kind(reg.number) else {
            unreachable!("only lines are asked for")
        };
        if self.input.body.is_fixed(reg.number) {
            return (self.fixed_values(reg), step);
        }
        self.declare(reg.number);
        let bits = bits_of(reg.width).unwrap_or(32);
        let mut values: Vec<String> = (0..self.kept_bases_of(reg.number))
            .map(|part| self.text.value(format!("load i{bits}, ptr %r{}.{part}", reg.number)))
            .collect();
        if self.is_lazy(reg) && !raw {
            values = values.iter().map(|value| self.canonical(Form::One, value)).collect();
        }
        (self.all_bases(reg, values), step)
    }

    /// Parts of a register, a number a lane.
    pub(super) fn lanes_of(&mut self, reg: Reg, raw: bool) -> Vec<String> {
        let bits = bits_of(reg.width).unwrap_or(32);
        match self.kind(reg.number) {
            Kind::Line { .. } => {
                let (bases, step) = self.line_of(reg, raw);
                self.along(bits, &bases, step)
            }
            _ if self.input.body.is_fixed(reg.number) => self.fixed_values(reg),
            _ => {
                self.declare(reg.number);
                if reg.width == Width::Pred {
                    let ty = self.flag_type();
                    return (0..self.parts)
                        .map(|part| {
                            let flag = self.text.value(format!("load {ty}, ptr %r{}.{part}", reg.number));
                            self.of_flag(&flag)
                        })
                        .collect();
                }
                let ty = self.form().int(bits);
                let align = self.align_of(reg);
                let values: Vec<String> = (0..self.parts)
                    .map(|part| {
                        self.text
                            .value(format!("load {ty}, ptr %r{}.{part}{align}", reg.number))
                    })
                    .collect();
                match self.is_lazy(reg) && !raw {
                    true => values.iter().map(|value| self.canonical(self.form(), value)).collect(),
                    false => values,
                }
            }
        }
    }

    /// All lanes of a line.
    pub(super) fn along(&mut self, bits: u32, bases: &[String], step: u64) -> Vec<String> {
        let element = format!("i{bits}");
        let run = self.parts / bases.len();
        let mut all = String::new();
        (0..self.parts)
            .map(|part| {
                if part % run == 0 {
                    all = self.splat(&element, &bases[part / run]);
                }
                self.grown(bits, all.clone(), step, (part % run) as u64 * u64::from(self.lanes))
            })
            .collect()
    }

    /// Where a part of a line begins, which is one number or more that grow by so much with each lane: one of them, and how far behind it.
    pub(super) fn first_of(&self, bases: &[String], part: usize, step: u64) -> (String, u64) {
        let run = self.parts / bases.len();
        let lanes = (part % run) as u64 * u64::from(self.lanes);
        (bases[part / run].clone(), step.wrapping_mul(lanes))
    }

    /// A part's numbers that grow from a first one.
    pub(super) fn row(&mut self, bits: u32, first: &str, step: u64) -> String {
        let all = self.splat(&format!("i{bits}"), first);
        self.grown(bits, all, step, 0)
    }

    /// A vector of one number, and more of it in each lane from the `start`-th on.
    fn grown(&mut self, bits: u32, all: String, step: u64, start: u64) -> String {
        if step == 0 {
            return all;
        }
        let each: Vec<String> = (start..start + u64::from(self.lanes))
            .map(|lane| format!("i{bits} {}", Form::One.constant(bits, step.wrapping_mul(lane))))
            .collect();
        self.text
            .binary("add", &self.form().int(bits), &all, &format!("<{}>", each.join(", ")))
    }

    /// Writes parts to a register of lanes, in the lanes of the mask where others matter.
    pub(super) fn write_lanes(&mut self, reg: Reg, values: &[String]) {
        debug_assert!(matches!(self.kind(reg.number), Kind::Vector));
        self.declare(reg.number);
        let blend = self.guarded || (!self.full && self.plan.is_wanted_elsewhere(self.unit, reg.number));
        let mask = self.mask.clone().filter(|_| blend);
        let old = mask.as_ref().map(|_| self.lanes_of(reg, true));
        let bits = bits_of(reg.width).unwrap_or(32);
        for (part, value) in values.iter().enumerate() {
            let mut value = value.clone();
            if let (Some(mask), Some(old)) = (&mask, &old) {
                let ty = self.form().int(bits);
                value = self.text.select(self.form(), &ty, &mask[part], &value, &old[part]);
            }
            let ty = match reg.width {
                Width::Pred => {
                    value = self.flag_of(&value);
                    self.flag_type()
                }
                _ => self.form().int(bits),
            };
            let align = self.align_of(reg);
            self.text
                .line(format!("store {ty} {value}, ptr %r{}.{part}{align}", reg.number));
        }
    }

    /// Writes the numbers of a line: one for all, or one for as many lanes each.
    pub(super) fn write_line(&mut self, reg: Reg, values: &[String]) {
        self.declare(reg.number);
        let bits = bits_of(reg.width).unwrap_or(32);
        let kept = self.kept_bases_of(reg.number);
        for number in 0..kept {
            let value = &values[number * values.len() / kept];
            self.text
                .line(format!("store i{bits} {value}, ptr %r{}.{number}", reg.number));
        }
    }

    /// Writes one number for all lanes, or one for as many each, whatever the register's kind.
    pub(super) fn write_same(&mut self, reg: Reg, values: &[String]) {
        if self.kind(reg.number).is_line() {
            self.write_line(reg, values);
        } else {
            let bits = bits_of(reg.width).unwrap_or(32);
            let lanes = self.along(bits, values, 0);
            self.write_lanes(reg, &lanes);
        }
    }
}
