//! A block's warps in turn: code begins with one of them, and where that waits at a barrier of the block, pauses or has ended, it
//! may go on with the next. When all have come to one place, the round is over, and the next one begins there.
//!
//! One by one they would have to leave the code and enter it again, which costs more than what a warp does between two barriers of
//! most kernels. Code that runs them *abreast* ([`Context::abreast`]) leaves only when one of them does something else, or
//! when it is time for others; [`Context`] says then where each of them stands.

use std::fmt::Write;
use std::mem::offset_of;

use super::super::Pc;
use super::super::context::{Context, NOWHERE, Warp, outcome};
use super::super::plan::Node;
use super::{Emit, For};

/// What a warp's turn costs of the budget besides loops: that of barriers in an endless loop is used up, too. A round is paid for when the
/// first warp has come to its end.
const TURN: u32 = 16;

/// No unit.
const NO_UNIT: i32 = -1;

impl Emit<'_> {
    /// From the function's beginning to a warp's entry.
    pub(super) fn start(&mut self, entries: &[(Pc, u32)]) {
        self.head
            .push_str("  %warp.at = alloca ptr\n  %link.at = alloca ptr\n  %outcome = alloca i32\n");
        for name in ["begin", "came", "came.pc", "met", "met.pc", "since.pc", "gone"] {
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
            .any(|&next| next == unit)
    }

    /// The number under which they do.
    fn going_on(&self, unit: Node) -> u32 {
        self.plan.units.len() as u32 + unit
    }

    /// The whole warp waits at a unit, its registers kept, and goes on at the next one.
    pub(super) fn waits(&mut self, unit: Node, next: Node) {
        self.set("came.pc", self.plan.units[unit as usize].pc);
        let next = self.going_on(next);
        self.text.line(format!("store i32 {next}, ptr %came"));
        self.jump("waits");
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
