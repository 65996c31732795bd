//! The ways into the code and out of it.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

use crate::isa::lanes::Width;
use crate::program::{Reg, Register};

use super::super::compute::bits_of;
use super::super::context::{Context, Cut, ENDED, together};
use super::{Emit, For, Node};

impl Emit<'_> {
    /// Lanes come from the interpreter, with their registers in the window, or go on behind a barrier or a pause. Registers are
    /// brought to their places first, and fetched from there.
    pub(super) fn entry(&mut self, unit: Node) {
        self.unit = unit;
        self.text.label(&format!("E{unit}"));
        if self.goes_on(unit) {
            let together = self.field(offset_of!(Context, together), "i64", false);
            self.text.line(format!(
                "switch i64 {together}, label %C{unit} [ i64 {}, label %K{unit} i64 {}, label %U{unit} ]",
                together::PACKED,
                together::UNPACK
            ));
            self.text.label(&format!("U{unit}"));
            self.put_down(unit, "-1");
            self.jump("left");
            self.text.label(&format!("C{unit}"));
        }
        if self.plan.live[unit as usize].iter().next().is_some() {
            self.stands.insert(unit);
            let helper = self.field(offset_of!(Context, enter), "ptr", true);
            let right = self
                .text
                .value(format!("call i32 {helper}(ptr %n, ptr %regs, i32 {unit}, i32 %lanes)"));
            let wrong = self.text.value(format!("icmp eq i32 {right}, 0"));
            self.rarely(&wrong, "nowhere", &format!("K{unit}"));
        } else {
            self.jump(&format!("K{unit}"));
        }
        self.text.label(&format!("K{unit}"));
        self.fetch(unit);
        if self.whom == For::All {
            let all = self.text.value("icmp eq i32 %lanes, -1");
            if !self.is_masked(unit) {
                self.branch(&all, &format!("F{unit}"), "nowhere");
                return;
            }
            let some = self.text.name("some");
            self.branch(&all, &format!("F{unit}"), &some);
            self.text.label(&some);
        }
        let mask = self.spread("%lanes");
        self.store_flags(unit, &mask);
        self.jump(&format!("M{unit}"));
    }

    /// All lanes of a register of lanes, from elsewhere.
    pub(super) fn take_lanes(&mut self, reg: Reg, values: &[String]) {
        let bits = bits_of(reg.width).unwrap_or(32);
        for (part, value) in values.iter().enumerate() {
            let (value, ty) = match reg.width {
                Width::Pred => (self.flag_of(value), self.flag_type()),
                _ => (value.clone(), self.form().int(bits)),
            };
            let align = self.align_of(reg);
            self.text
                .line(format!("store {ty} {value}, ptr %r{}.{part}{align}", reg.number));
        }
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

    /// Lanes stand before a unit, and leave, with their registers from the places where they are kept.
    fn put_down(&mut self, unit: Node, lanes: &str) {
        self.stands.insert(unit);
        let helper = self.field(offset_of!(Context, leave), "ptr", true);
        self.text.line(format!(
            "call void {helper}(ptr %n, ptr %regs, i32 {unit}, i32 {lanes})"
        ));
    }

    /// All lanes of the warp stand before a unit, and leave.
    pub(super) fn leave_all(&mut self, unit: Node) {
        (self.unit, self.full, self.mask, self.guarded) = (unit, true, None, false);
        self.text.label(&format!("X{unit}"));
        let live = self.changed_at(unit);
        self.keep(&live);
        self.put_down(unit, "-1");
        self.jump("left");
    }

    /// The ways out for lanes that are at some nodes. Each sees to one of them and goes on as the way for the others, those last at
    /// which lanes are in most ways: so the text grows with the ends that ways have in common, and not with all that lie on them.
    pub(super) fn leave_from_nodes(&mut self) {
        let sets = std::mem::take(&mut self.chains);
        if sets.is_empty() {
            return;
        }
        let mut often: BTreeMap<Node, usize> = BTreeMap::new();
        for node in sets.keys().flatten() {
            *often.entry(*node).or_default() += 1;
        }
        let mut ways: BTreeMap<Vec<Node>, String> = BTreeMap::new();
        for (nodes, label) in sets {
            let mut nodes = Vec::from_iter(nodes);
            nodes.sort_by_key(|node| (often[node], *node));
            ways.insert(nodes, label);
        }
        let mut work: Vec<Vec<Node>> = ways.keys().cloned().collect();
        while let Some(nodes) = work.pop() {
            let label = ways[&nodes].clone();
            let others = nodes.get(1..).unwrap_or_default();
            let known = ways.len();
            let end = match others {
                [] => "leaving.all".to_owned(),
                _ => ways
                    .entry(others.to_vec())
                    .or_insert_with(|| {
                        work.push(others.to_vec());
                        format!("chain{known}")
                    })
                    .clone(),
            };
            self.leave_one(&nodes, &label, &end);
        }
        self.head.push_str(
            "  %leaving = alloca [33 x i64]\n  %leaving.count = alloca i64\n  store i64 0, ptr %leaving.count\n",
        );
        self.text.label("leaving.all");
        self.jump("leaving.next");
        self.text.label("leaving.next");
        let count = self.text.value("load i64, ptr %leaving.count");
        let none = self.text.value(format!("icmp eq i64 {count}, 0"));
        self.branch(&none, "left", "leaving.one");
        self.text.label("leaving.one");
        let number = self.text.value(format!("sub i64 {count}, 1"));
        self.text.line(format!("store i64 {number}, ptr %leaving.count"));
        let at = self
            .text
            .value(format!("getelementptr [8 x i8], ptr %leaving, i64 {number}"));
        let both = self.text.value(format!("load i64, ptr {at}"));
        let unit = self.text.value(format!("trunc i64 {both} to i32"));
        let lanes = self.text.value(format!("lshr i64 {both}, 32"));
        let lanes = self.text.value(format!("trunc i64 {lanes} to i32"));
        let helper = self.field(offset_of!(Context, leave), "ptr", true);
        self.text.line(format!(
            "call void {helper}(ptr %n, ptr %regs, i32 {unit}, i32 {lanes})"
        ));
        self.jump("leaving.next");
    }

    /// Lanes leave from the first of some nodes, and then from the others. All registers are at their places before any is moved from there.
    fn leave_one(&mut self, nodes: &[Node], label: &str, end: &str) {
        (self.full, self.mask, self.guarded) = (false, None, false);
        self.text.label(label);
        let Some((&node, others)) = nodes.split_first() else {
            self.jump(end);
            return;
        };
        let unit = self.plan.unit_of(node);
        let elsewhere = others.iter().map(|&node| self.plan.unit_of(node));
        let elsewhere: BTreeSet<Register> = elsewhere.flat_map(|unit| self.changed_at(unit)).collect();
        let mut own = self.changed_at(unit);
        own.retain(|register| !elsewhere.contains(register));
        self.keep(&own);
        self.stands.insert(unit);
        let mask = self.load_flags(node);
        let bits = self.bits(&mask);
        // Where there are none, the next one takes the place.
        let count = self.text.value("load i64, ptr %leaving.count");
        let at = self
            .text
            .value(format!("getelementptr [8 x i8], ptr %leaving, i64 {count}"));
        let lanes = self.text.value(format!("zext i32 {bits} to i64"));
        let both = self.text.value(format!("shl i64 {lanes}, 32"));
        let both = self.text.value(format!("or i64 {both}, {unit}"));
        self.text.line(format!("store i64 {both}, ptr {at}"));
        let any = self.text.value(format!("icmp ne i32 {bits}, 0"));
        let any = self.text.value(format!("zext i1 {any} to i64"));
        let count = self.text.value(format!("add i64 {count}, {any}"));
        self.text.line(format!("store i64 {count}, ptr %leaving.count"));
        self.jump(end);
    }
}
