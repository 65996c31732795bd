//! The ways into the code and out of it.

use std::collections::BTreeSet;
use std::mem::offset_of;

use crate::isa::lanes::Width;
use crate::program::{Reg, Register};

use super::super::compute::bits_of;
use super::super::context::{Context, Cut, ENDED, together};
use super::super::plan::Kind;
use super::super::text::Form;
use super::{Emit, For, Node};

impl Emit<'_> {
    /// Lanes come from the interpreter, with their registers in the window.
    pub(super) fn entry(&mut self, unit: Node) {
        self.unit = unit;
        self.text.label(&format!("E{unit}"));
        let live: Vec<Register> = self.plan.live[unit as usize].iter().collect();
        if self.whom == For::All {
            let together = self.field(offset_of!(Context, together), "i64", false);
            let goes_on = self.goes_on(unit);
            let packed = match goes_on {
                true => format!(
                    " i64 {}, label %K{unit} i64 {}, label %U{unit}",
                    together::PACKED,
                    together::UNPACK
                ),
                false => String::new(),
            };
            self.text.line(format!(
                "switch i64 {together}, label %C{unit} [ i64 {}, label %T{unit}{packed} ]",
                together::UNTOUCHED
            ));
            if goes_on {
                self.unpack(unit);
            }
            self.text.label(&format!("T{unit}"));
            for &register in &live {
                let reg = self.info(register);
                self.declare(register);
                match self.kind(register) {
                    Kind::Line { .. } if reg.width == Width::Pred => {
                        let slot = self.slot(register);
                        let at = self.place("%regs", slot);
                        let word = self.text.value(format!("load i32, ptr {at}"));
                        let bit = self.text.value(format!("trunc i32 {word} to i1"));
                        self.write_line(reg, &[bit]);
                    }
                    Kind::Line { parts, .. } => {
                        let bases = self.bases_in_slot(reg, ("%regs", parts), "");
                        self.write_line(reg, &bases);
                    }
                    _ => self.enter_lanes(reg),
                }
            }
            self.jump(&format!("D{unit}"));
            self.text.label(&format!("C{unit}"));
        }
        let mask = self.spread("%lanes");
        let mut bad: Option<String> = None;
        for &register in &live {
            let reg = self.info(register);
            let bits = bits_of(reg.width).unwrap_or(32);
            self.declare(register);
            let Kind::Line { step, parts, .. } = self.kind(register) else {
                self.enter_lanes(reg);
                continue;
            };
            let slot = self.slot(register);
            let differ = if reg.width == Width::Pred {
                let (some, differs) = self.same_in_slot(reg, "%lanes");
                self.write_line(reg, &[some]);
                differs
            } else {
                let bases: Vec<String> = (0..if parts { self.parts } else { 1 })
                    .map(|part| self.first_in_slot(reg, parts.then_some(part), "%lanes", step))
                    .collect();
                for (part, base) in bases.iter().enumerate() {
                    self.text.line(format!("store i{bits} {base}, ptr %r{register}.{part}"));
                }
                if let [base] = &bases[..] {
                    let at = self.place("%regs", slot);
                    let step = Form::One.constant(bits, step);
                    self.text.value(format!(
                        "call i1 @differs{bits}(ptr {at}, i{bits} {base}, i{bits} {step}, i32 %lanes)"
                    ))
                } else {
                    let there = self.load_slot(reg);
                    let expected = self.along(bits, &bases, step);
                    let ty = self.form().int(bits);
                    let wrong: Vec<String> = there
                        .iter()
                        .zip(&expected)
                        .map(|(a, b)| self.text.value(format!("icmp ne {ty} {a}, {b}")))
                        .collect();
                    let wrong = self.each(&wrong, &mask, "and");
                    self.any(&wrong)
                }
            };
            bad = Some(match bad {
                None => differ,
                Some(bad) => self.text.value(format!("or i1 {bad}, {differ}")),
            });
        }
        if let Some(bad) = bad {
            let go = self.text.name("go");
            self.rarely(&bad, "nowhere", &go);
            self.text.label(&go);
        }
        if self.whom == For::All {
            let all = self.text.value("icmp eq i32 %lanes, -1");
            let some = self.text.name("some");
            self.branch(&all, &format!("D{unit}"), &some);
            // All of a warp are there: what they will not change until they come to a barrier is kept from here on.
            self.text.label(&format!("D{unit}"));
            self.keep(&live);
            self.jump(&format!("F{unit}"));
            self.text.label(&some);
            if !self.is_masked(unit) {
                self.jump("nowhere");
                return;
            }
        }
        self.keep(&live);
        self.store_flags(unit, &mask);
        self.jump(&format!("M{unit}"));
    }

    /// A register of lanes comes from the window.
    pub(super) fn enter_lanes(&mut self, reg: Reg) {
        let values = self.load_slot(reg);
        self.take_lanes(reg, &values);
    }

    /// All lanes of a register of lanes, from elsewhere.
    pub(super) fn take_lanes(&mut self, reg: Reg, values: &[String]) {
        let bits = bits_of(reg.width).unwrap_or(32);
        for (part, value) in values.iter().enumerate() {
            let (value, ty) = match reg.width {
                Width::Pred => (self.flag_of(value), self.flag_type()),
                _ => (value.clone(), self.form().int(bits)),
            };
            self.text
                .line(format!("store {ty} {value}, ptr %r{}.{part}", reg.number));
        }
    }

    /// The number of a line in the window, from its first lane that takes part; of a part's lanes, or of all.
    pub(super) fn first_in_slot(&mut self, reg: Reg, part: Option<usize>, lanes: &str, step: u64) -> String {
        let bits = bits_of(reg.width).unwrap_or(32);
        let slot = self.slot(reg.number);
        let Some(part) = part else {
            let at = self.place("%regs", slot);
            let step = Form::One.constant(bits, step);
            return self.text.value(format!(
                "call i{bits} @first{bits}(ptr {at}, i{bits} {step}, i32 {lanes})"
            ));
        };
        let (count, skip) = (self.lanes, part as u32 * self.lanes);
        let word = self.text.value(format!("lshr i32 {lanes}, {skip}"));
        let first = self
            .text
            .value(format!("call i32 @llvm.cttz.i32(i32 {word}, i1 false)"));
        // Where none takes part, any will do.
        let first = self.text.value(format!("and i32 {first}, {}", count - 1));
        let wide = self.text.value(format!("zext i32 {first} to i64"));
        let at = self.place("%regs", slot + (skip * bits / 8) as usize);
        let at = self.text.value(format!("getelementptr i{bits}, ptr {at}, i64 {wide}"));
        let value = self.text.value(format!("load i{bits}, ptr {at}"));
        if step == 0 {
            return value;
        }
        let lane = self.text.resize(Form::One, 64, &wide, bits, false);
        let step = Form::One.constant(bits, step);
        let grown = self.text.value(format!("mul i{bits} {lane}, {step}"));
        self.text.value(format!("sub i{bits} {value}, {grown}"))
    }

    /// Takes down that lanes stand before a unit, or have ended there.
    pub(super) fn cut(&mut self, unit: Node, lanes: &str, ended: bool) {
        let pc = self.plan.units[unit as usize].pc | if ended { ENDED } else { 0 };
        if ended {
            let gone = self.text.value("load i32, ptr %gone");
            let gone = self.text.value(format!("or i32 {gone}, {lanes}"));
            self.text.line(format!("store i32 {gone}, ptr %gone"));
        }
        self.cut_at(&(pc as i32).to_string(), lanes);
    }

    /// The same by a place's number.
    pub(super) fn cut_at(&mut self, pc: &str, lanes: &str) {
        let counter = self.place("%n", offset_of!(Context, cut_count));
        let number = self.text.value(format!("load i64, ptr {counter}"));
        let next = self.text.value(format!("add i64 {number}, 1"));
        self.text.line(format!("store i64 {next}, ptr {counter}"));
        let cuts = self.place("%n", offset_of!(Context, cuts));
        let at = self.text.value(format!(
            "getelementptr [{} x i8], ptr {cuts}, i64 {number}",
            size_of::<Cut>()
        ));
        self.text.line(format!("store i32 {pc}, ptr {at}"));
        let at = self.place(&at, offset_of!(Cut, lanes));
        self.text.line(format!("store i32 {lanes}, ptr {at}"));
    }

    /// All lanes of the warp stand before a unit, and leave.
    pub(super) fn leave_all(&mut self, unit: Node) {
        (self.unit, self.full, self.mask, self.guarded) = (unit, true, None, false);
        self.text.label(&format!("X{unit}"));
        let live: Vec<Register> = self.plan.live[unit as usize].iter().collect();
        for register in live {
            let reg = self.info(register);
            let values = self.leaving(reg, unit);
            self.store_slot_whole(reg, &values);
        }
        self.cut(unit, "-1", false);
        self.jump("left");
    }

    /// Lanes leave from wherever they are.
    pub(super) fn leave_some(&mut self, nodes: &BTreeSet<Node>, label: &str) {
        (self.full, self.mask, self.guarded) = (false, None, false);
        self.text.label(label);
        for &node in nodes {
            let unit = self.plan.unit_of(node);
            let mask = self.load_flags(node);
            let any = self.any(&mask);
            let (some, none) = (self.text.name("some"), self.text.name("none"));
            self.branch(&any, &some, &none);
            self.text.label(&some);
            let bits = self.bits(&mask);
            let live: Vec<Register> = self.plan.live[unit as usize].iter().collect();
            for register in live {
                let reg = self.info(register);
                let values = self.leaving(reg, unit);
                self.store_slot(reg, &values, &bits);
            }
            self.cut(unit, &bits, false);
            self.jump(&none);
            self.text.label(&none);
        }
        self.jump("left");
    }
}
