//! A block's warps in turn: code begins with one of them, and where that waits at a barrier of the block, pauses or has ended, it
//! may go on with the next. When all have come to one place, the round is over, and the next one begins there.
//!
//! One by one they would have to leave the code and enter it again, which costs more than what a warp does between two barriers of
//! most kernels. Code that runs them *abreast* ([`Context::abreast`]) leaves only when one of them does something else, or
//! when it is time for others; [`Context`] says then where each of them stands.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::mem::offset_of;

use crate::program::facts::Shape;
use crate::program::{Guard, Op, Reg};

use super::super::Pc;
use super::super::compute::bits_of;
use super::super::context::{Context, NOWHERE, Warp, outcome};
use super::super::plan::{Exit, Kind, Node, Parts};
use super::super::text::Form;
use super::alike::Question;
use super::pack::line_bits;
use super::{Emit, For};

/// What a warp's turn costs of the budget besides loops: that of barriers in an endless loop is used up, too. A round is paid for when the
/// first warp has come to its end.
pub(super) const TURN: u32 = 16;

/// Barriers from which warps may come to a branch that passes over those behind them.
const MOST_BEGINS: usize = 3;

/// No unit.
pub(super) const NO_UNIT: i32 = -1;

impl Emit<'_> {
    /// From the function's beginning to a warp's entry.
    pub(super) fn start(&mut self, entries: &[(Pc, u32)]) {
        self.head
            .push_str("  %warp.at = alloca ptr\n  %link.at = alloca ptr\n  %outcome = alloca i32\n");
        for name in ["begin", "came", "came.pc", "met", "met.pc", "since.pc", "gone", "said"] {
            let _ = writeln!(self.head, "  %{name} = alloca i32");
        }
        self.text.label("start");
        let budget = self.field(offset_of!(Context, budget), "i64", false);
        self.text.line(format!("store i64 {budget}, ptr %budget"));
        let warp = self.field(offset_of!(Context, warp), "ptr", false);
        self.text.line(format!("store ptr {warp}, ptr %warp.at"));
        let link = self.place("%n", offset_of!(Context, first));
        self.text.line(format!("store ptr {link}, ptr %link.at"));
        self.text.line("store i32 %entry, ptr %begin");
        self.text.line(format!("store i32 {NO_UNIT}, ptr %met"));
        self.set("met.pc", NOWHERE);
        self.set("since.pc", NOWHERE);
        let at = self.place("%n", offset_of!(Context, same));
        self.text.line(format!(
            "%same = load ptr, ptr {at}, !invariant.load !0, !align !2, !dereferenceable !3"
        ));
        self.jump("go");

        self.text.label("go");
        self.text.line("%warp = load ptr, ptr %warp.at");
        let at = self.place("%n", offset_of!(Context, warp));
        self.text.line(format!("store ptr %warp, ptr {at}"));
        for (name, offset, ty) in [
            ("regs", offset_of!(Warp, regs), "ptr"),
            ("saved", offset_of!(Warp, saved), "ptr"),
            ("local", offset_of!(Warp, local), "i64"),
        ] {
            let at = self.place("%warp", offset);
            let knows = if name == "regs" {
                ", !align !2, !dereferenceable !3"
            } else {
                ""
            };
            self.text
                .line(format!("%{name} = load {ty}, ptr {at}, !invariant.load !0{knows}"));
        }
        self.enter_homes();
        let turns = self.field(offset_of!(Context, turns), "i64", false);
        self.text.line(format!("store i64 {turns}, ptr %turns"));
        self.set("came.pc", NOWHERE);
        self.set("gone", 0);
        let begin = self.text.value("load i32, ptr %begin");
        let mut cases = String::new();
        for &(_, unit) in entries {
            let _ = write!(cases, " i32 {unit}, label %E{unit}");
            if self.goes_on(unit) {
                let _ = write!(cases, " i32 {}, label %K{unit}", self.going_on(unit));
            }
        }
        self.text.line(format!("switch i32 {begin}, label %nowhere [{cases} ]"));
    }

    fn set(&mut self, name: &str, pc: Pc) {
        self.text.line(format!("store i32 {}, ptr %{name}", pc as i32));
    }

    /// Whether warps that have waited go on at a unit.
    pub(super) fn goes_on(&self, unit: Node) -> bool {
        self.packs
            .values()
            .chain(self.pauses.values())
            .chain(self.reds.keys())
            .chain(self.reds.values())
            .any(|&next| next == unit)
    }

    /// The number under which they do.
    pub(super) fn going_on(&self, unit: Node) -> u32 {
        self.plan.units.len() as u32 + unit
    }

    /// The number of a round in which warps come to a unit to say something.
    pub(super) fn saying(&self, unit: Node) -> u32 {
        2 * self.plan.units.len() as u32 + unit
    }

    /// The whole warp waits at a unit, its registers kept, and goes on under this number.
    pub(super) fn waits(&mut self, unit: Node, next: u32) {
        self.set("came.pc", self.plan.units[unit as usize].pc);
        self.text.line(format!("store i32 {next}, ptr %came"));
        self.jump("waits");
    }

    /// The warp has nothing to do from one barrier of the block to the next, `to`, since a question has the answer `yes`: if none of those
    /// behind it has either, as in a tree of sums where fewer threads go on in each round, the round is over. One that has come to the barrier
    /// before them has said where they will be.
    pub(super) fn skip_rest(&mut self, guard: Guard, question: Option<&Question>, to: Node, yes: bool) {
        let unit = self.unit;
        let Some(question) = question.filter(|question| self.whom == For::All && self.goes_beyond(question)) else {
            return;
        };
        let Some(&next) = self.packs.get(&to) else { return };
        if self.settled.contains_key(&to) || self.plan.loops.contains_key(&(unit, to)) {
            return;
        }
        // Before a loop and in it are barriers from which warps come here.
        let begins: BTreeSet<Node> = self.packs.values().copied().collect();
        let found = begins.into_iter().filter_map(|begin| {
            let written = self.written_for_all((begin, unit), next, guard.reg)?;
            Some((begin, written))
        });
        let found: Vec<(Node, Vec<Reg>)> = found.take(MOST_BEGINS).collect();
        if found.is_empty() {
            return;
        }
        let [all, none] = self.answer_beyond(question);
        let straight = self.field(offset_of!(Context, straight), "i64", true);
        let straight = self.text.value(format!("icmp ne i64 {straight}, 0"));
        let met = self.text.value("load i32, ptr %met");
        let met = self.text.value(format!("icmp eq i32 {met}, {}", self.going_on(next)));
        let mut over = if yes { all } else { none };
        for bit in [straight, met] {
            over = self.text.binary("and", "i1", &over, &bit);
        }
        let [idle, busy] = ["idle", "busy"].map(|what| self.text.name(what));
        self.branch(&over, &idle, &busy);
        self.text.label(&idle);
        let holds = yes != guard.negated;
        for (begin, written) in found {
            let began = self.text.value("load i32, ptr %begin");
            let began = self
                .text
                .value(format!("icmp eq i32 {began}, {}", self.going_on(begin)));
            let [here, elsewhere] = ["here", "elsewhere"].map(|what| self.text.name(what));
            self.branch(&began, &here, &elsewhere);
            self.text.label(&here);
            if !written.is_empty() {
                self.keep_for_all(&written, (guard.reg, holds));
            }
            self.jump("round");
            self.text.label(&elsewhere);
        }
        self.jump(&busy);
        self.text.label(&busy);
    }

    /// Registers that warps write from one unit to the end of another, all of them on the same way, and want behind the barrier that follows.
    /// `None`: they may go different ways, or do more than to compute what grows evenly through the block, but for the guard of the
    /// branch there.
    fn written_for_all(&self, (from, to): (Node, Node), next: Node, guard: Reg) -> Option<Vec<Reg>> {
        let is_of_block = |reg: Reg| self.stride_of(reg) == Some(0);
        let mut written: Vec<Reg> = Vec::new();
        let mut node = from;
        // Whoever goes on there must not come to the end again before the barrier.
        let mut others: Vec<Node> = Vec::new();
        // Ways of more than a few units are none that loops have.
        for _ in 0..4 {
            let unit = &self.plan.units[node as usize];
            for inst in &self.input.body.blocks[unit.block as usize].insts[unit.insts.clone()] {
                let Op::Compute { dst, .. } = &inst.op else {
                    return None;
                };
                for &reg in dst.iter().filter(|reg| self.plan.live[next as usize].has(reg.number)) {
                    if reg.number != guard.number {
                        self.stride_of(reg)?;
                    }
                    if !written.contains(&reg) {
                        written.push(reg);
                    }
                }
            }
            if node == to {
                unit.successors(|next| others.push(next));
                return (!self.may_come_to(to, others)).then_some(written);
            }
            node = match unit.exit {
                Exit::To(next) => next,
                // The block goes one way as a whole: this one, or another one.
                Exit::Branch { guard, taken, fall, .. } if is_of_block(guard.reg) => {
                    unit.successors(|next| others.extend((next != to).then_some(next)));
                    *[taken, fall].iter().find(|&&way| way == to)?
                }
                Exit::Branch { .. } | Exit::None => return None,
            };
            if self.plan.is_stuck(node) || self.packs.contains_key(&node) {
                return None;
            }
        }
        None
    }

    /// What a register's one number grows by from thread to thread of a block whose threads lie in a line, from warp to warp as in each.
    pub(super) fn stride_of(&self, reg: Reg) -> Option<u64> {
        let facts = self.input.body.facts.get(reg.number as usize)?;
        let Kind::Line {
            step,
            parts: Parts::One,
            ..
        } = self.kind(reg.number)
        else {
            return None;
        };
        let bits = bits_of(reg.width)?;
        match facts.shape {
            Shape::Uniform => (step == 0).then_some(0),
            Shape::Affine { stride } => ((step ^ stride) << (64 - bits) == 0).then_some(step),
            Shape::Varying => None,
        }
    }

    /// Whether who stands at one of these nodes may come to a unit without a barrier of the block between.
    fn may_come_to(&self, unit: Node, mut from: Vec<Node>) -> bool {
        let mut been = BTreeSet::new();
        while let Some(node) = from.pop() {
            let node = self.plan.unit_of(node);
            if node == unit {
                return true;
            }
            if !self.packs.contains_key(&node) && been.insert(node) {
                self.plan.units[node as usize].successors(|next| from.push(next));
            }
        }
        false
    }

    /// Numbers that grow evenly through the block go to their places, of this warp and all behind it; a guard is the same there for all
    /// lanes.
    fn keep_for_all(&mut self, registers: &[Reg], (guard, holds): (Reg, bool)) {
        let mut values = Vec::new();
        for &reg in registers {
            if reg.number == guard.number
                && let Some(&at) = self.kept.get(&reg.number)
            {
                values.push(((if holds { "-1" } else { "0" }).to_owned(), 32, 0, at));
                continue;
            }
            if let (Some(&at), Some(stride)) = (self.kept.get(&reg.number), self.stride_of(reg)) {
                values.push((self.line_of(reg, true).0.swap_remove(0), line_bits(reg), stride, at));
            }
        }
        let first = self.place("%warp", offset_of!(Warp, first_thread));
        let first = self.text.value(format!("load i32, ptr {first}, !invariant.load !0"));
        self.for_each_warp("%warp", |this, warp, saved| {
            let at = this.place(warp, offset_of!(Warp, first_thread));
            let thread = this.text.value(format!("load i32, ptr {at}, !invariant.load !0"));
            let far = this.text.value(format!("sub i32 {thread}, {first}"));
            for &(ref value, bits, stride, at) in &values {
                let mut value = value.clone();
                if stride != 0 {
                    let far = this.text.resize(Form::One, 32, &far, bits, false);
                    let by = Form::One.constant(bits, stride);
                    let more = this.text.value(format!("mul i{bits} {far}, {by}"));
                    value = this.text.value(format!("add i{bits} {value}, {more}"));
                }
                let to = this.place(saved, at);
                this.text.line(format!("store i{bits} {value}, ptr {to}"));
            }
        });
    }

    /// Does something for each warp of the round from one on, given it and where its registers are kept.
    pub(super) fn for_each_warp(&mut self, from: &str, each: impl FnOnce(&mut Self, &str, &str)) {
        let [again, turn, last] = ["again", "turn", "last"].map(|what| self.text.name(what));
        self.text.line(format!("store ptr {from}, ptr %warp.at"));
        self.jump(&again);
        self.text.label(&again);
        let warp = self.text.value("load ptr, ptr %warp.at");
        let is_none = self.text.value(format!("icmp eq ptr {warp}, null"));
        self.branch(&is_none, &last, &turn);
        self.text.label(&turn);
        let at = self.place(&warp, offset_of!(Warp, saved));
        let saved = self.text.value(format!("load ptr, ptr {at}, !invariant.load !0"));
        each(self, &warp, &saved);
        let at = self.place(&warp, offset_of!(Warp, next));
        let next = self.text.value(format!("load ptr, ptr {at}"));
        self.text.line(format!("store ptr {next}, ptr %warp.at"));
        self.jump(&again);
        self.text.label(&last);
    }

    /// All lanes of the warp end at a unit.
    pub(super) fn all_end(&mut self, unit: Node) {
        if self.whom == For::Some {
            self.cut(unit, "-1", true);
            self.jump("left");
            return;
        }
        let (alone, abreast) = (self.text.name("alone"), self.text.name("abreast"));
        self.branch_abreast(&abreast, &alone);
        self.text.label(&alone);
        self.cut(unit, "-1", true);
        self.jump("left");
        self.text.label(&abreast);
        self.jump("ended");
    }

    fn branch_abreast(&mut self, yes: &str, no: &str) {
        let abreast = self.field(offset_of!(Context, abreast), "i64", true);
        let abreast = self.text.value(format!("icmp ne i64 {abreast}, 0"));
        self.branch(&abreast, yes, no);
    }

    /// The next warp has its turn, if there is one in this round; it takes the place of the one that ran in the link before that.
    fn pass_on(&mut self, link: &str, before: Option<&str>) {
        let next = self.text.value(format!("load ptr, ptr {link}"));
        for at in before.into_iter().chain(["%warp.at"]) {
            self.text.line(format!("store ptr {next}, ptr {at}"));
        }
        let last = self.text.value(format!("icmp eq ptr {next}, null"));
        self.branch(&last, "round", "next");
    }

    /// The ways from one warp to the next, and those out of the function.
    pub(super) fn rounds(&mut self) {
        if self.whom == For::All {
            self.text.label("waits");
            // Who goes alone has not met anybody.
            let met = self.text.value("load i32, ptr %met");
            let came = self.text.value("load i32, ptr %came");
            let same = self.text.value(format!("icmp eq i32 {met}, {came}"));
            self.branch(&same, "met.already", "met.first");
            self.text.label("met.first");
            self.branch_abreast("abreast", "alone");
            self.text.label("alone");
            let packed = self.place("%n", offset_of!(Context, packed));
            self.text.line(format!("store i32 1, ptr {packed}"));
            let pc = self.text.value("load i32, ptr %came.pc");
            self.cut_at(&pc, "-1");
            self.jump("out.left");

            self.text.label("abreast");
            let first = self.text.value(format!("icmp eq i32 {met}, {NO_UNIT}"));
            self.branch(&first, "met.new", "out.left");
            self.text.label("met.new");
            let warps = self.field(offset_of!(Context, abreast), "i64", true);
            let cost = self.text.value(format!("mul i64 {warps}, {TURN}"));
            let budget = self.text.value("load i64, ptr %budget");
            let budget = self.text.value(format!("sub i64 {budget}, {cost}"));
            self.text.line(format!("store i64 {budget}, ptr %budget"));
            let over = self.text.value(format!("icmp slt i64 {budget}, 0"));
            self.rarely(&over, "out.left", "met.now");
            self.text.label("met.now");
            self.text.line(format!("store i32 {came}, ptr %met"));
            let pc = self.text.value("load i32, ptr %came.pc");
            self.text.line(format!("store i32 {pc}, ptr %met.pc"));
            self.jump("met.already");
            self.text.label("met.already");
            let link = self.place("%warp", offset_of!(Warp, next));
            self.text.line(format!("store ptr {link}, ptr %link.at"));
            self.pass_on(&link, None);

            // It is no longer among those that run.
            self.text.label("ended");
            let at = self.place("%warp", offset_of!(Warp, bit));
            let bit = self.text.value(format!("load i32, ptr {at}, !invariant.load !0"));
            let at = self.place("%n", offset_of!(Context, ended));
            let ended = self.text.value(format!("load i32, ptr {at}"));
            let ended = self.text.value(format!("or i32 {ended}, {bit}"));
            self.text.line(format!("store i32 {ended}, ptr {at}"));
            let met = self.text.value("load i32, ptr %met");
            let somebody = self.text.value(format!("icmp ne i32 {met}, {NO_UNIT}"));
            let somebody = self.text.value(format!("zext i1 {somebody} to i32"));
            let at = self.place("%n", offset_of!(Context, gaps));
            let gaps = self.text.value(format!("load i32, ptr {at}"));
            let gaps = self.text.value(format!("or i32 {gaps}, {somebody}"));
            self.text.line(format!("store i32 {gaps}, ptr {at}"));
            let link = self.place("%warp", offset_of!(Warp, next));
            let before = self.text.value("load ptr, ptr %link.at");
            self.pass_on(&link, Some(&before));

            self.text.label("round");
            self.tell_all();
            let at = self.place("%n", offset_of!(Context, first));
            let first = self.text.value(format!("load ptr, ptr {at}"));
            self.text.line(format!("store ptr {first}, ptr %warp.at"));
            self.text.line(format!("store ptr {at}, ptr %link.at"));
            let next = self.text.value("load i32, ptr %met");
            self.text.line(format!("store i32 {next}, ptr %begin"));
            self.text.line(format!("store i32 {NO_UNIT}, ptr %met"));
            let pc = self.text.value("load i32, ptr %met.pc");
            self.text.line(format!("store i32 {pc}, ptr %since.pc"));
            self.set("met.pc", NOWHERE);
            let nobody = self.text.value(format!("icmp eq ptr {first}, null"));
            let budget = self.text.value("load i64, ptr %budget");
            let late = self.text.value(format!("icmp slt i64 {budget}, 0"));
            let stops = self.field(offset_of!(Context, stops), "i64", true);
            let stops = self.text.value(format!("icmp ne i64 {stops}, 0"));
            let over = self.text.value(format!("or i1 {nobody}, {late}"));
            let over = self.text.value(format!("or i1 {over}, {stops}"));
            self.branch(&over, "out.round", "next");
            // One way back, and nothing of what warps do is done before it: all that any of them might want, LLVM would compute for
            // each.
            self.text.label("next");
            self.text.line("br label %go, !llvm.loop !4");
            self.text.label("out.round");
            let at = self.place("%n", offset_of!(Context, warp));
            self.text.line(format!("store ptr null, ptr {at}"));
            self.set("came.pc", NOWHERE);
            self.jump("out.left");
        }

        self.text.label("left");
        if self.whom == For::All {
            // Lanes may have ended in several places, and none be left.
            let gone = self.text.value("load i32, ptr %gone");
            let gone = self.text.value(format!("icmp eq i32 {gone}, -1"));
            self.rarely(&gone, "perhaps", "out.left");
            self.text.label("perhaps");
            self.branch_abreast("all.ended", "out.left");
            self.text.label("all.ended");
            let count = self.place("%n", offset_of!(Context, cut_count));
            self.text.line(format!("store i64 0, ptr {count}"));
            self.jump("ended");
        } else {
            self.jump("out.left");
        }
        for (label, code) in [
            ("out.left", outcome::LEFT),
            ("fault", outcome::FAULT),
            ("nowhere", outcome::NOT_ENTERED),
        ] {
            self.text.label(label);
            self.text.line(format!("store i32 {code}, ptr %outcome"));
            self.jump("out");
        }
        self.text.label("out");
        let budget = self.text.value("load i64, ptr %budget");
        let at = self.place("%n", offset_of!(Context, budget));
        self.text.line(format!("store i64 {budget}, ptr {at}"));
        for (name, offset) in [
            ("met.pc", offset_of!(Context, met)),
            ("since.pc", offset_of!(Context, since)),
            ("came.pc", offset_of!(Context, came)),
        ] {
            let pc = self.text.value(format!("load i32, ptr %{name}"));
            let at = self.place("%n", offset);
            self.text.line(format!("store i32 {pc}, ptr {at}"));
        }
        let outcome = self.text.value("load i32, ptr %outcome");
        self.text.line(format!("ret i32 {outcome}"));
    }
}
