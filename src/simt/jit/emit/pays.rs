//! Whether warps go through a loop lane by lane ([`super::alone`]): turns are counted. Those of all lanes and those of the longest one say which
//! way would have been less work, and after a loss the next warps go through the loop together. So do those whose lanes load what
//! lies side by side.

use std::mem::offset_of;

use crate::program::{Op, Reg, Space};

use super::super::compute::{Emitter, bits_of};
use super::super::context::{Context, Extent};
use super::alone::Loop;
use super::{Emit, For, Node};

/// Warps that go through the loop together, at most, where that was found to be less work, or scalar code could not make all turns: one the first
/// time, for somebody has to make the turn and may learn where memory is, and each time twice as many.
const TOGETHER: u32 = 127;
/// Those that do so where lanes load what lies side by side.
const SIDE_BY_SIDE: u32 = 255;
/// What things take, in halves of a cycle of an AMD Zen 5: a turn of a warp for each of its loads, of what the block shares and of others;
/// a turn of a lane for each of its loads; to begin with a lane, and to guess wrongly when it is done.
const SHARED_LOADS: u32 = 100;
const LOADS: u32 = 240;
const LOAD: u32 = 4;
const LANE: u32 = 24;

impl Emit<'_> {
    // ---- where warps come to the loop ---------------------------------------------------------------------------------------

    /// All lanes come to a unit: they go through it one by one, or together from `FV` on.
    pub(super) fn come_alone(&mut self, unit: Node) {
        let Some(&(site, _)) = self.alone.get(&unit) else {
            return;
        };
        let (own, alone) = (format!("FV{unit}"), self.text.name("alone"));
        self.passes_by(site, (&alone, &own));
        self.text.label(&alone);
        self.text.line(format!("store i32 -1, ptr %alone.bits{unit}"));
        self.text.line(format!("store i1 true, ptr %alone.all{unit}"));
        self.jump(&format!("S{unit}"));
        self.text.label(&own);
    }

    /// The same for lanes that have come under a mask; those that go on together do so from `MV` on, where their flags are read again.
    pub(super) fn come_alone_under(&mut self, unit: Node) {
        let Some(&(site, _)) = self.alone.get(&unit) else {
            return;
        };
        let (own, alone) = (format!("MV{unit}"), self.text.name("alone"));
        self.passes_by(site, (&alone, &own));
        self.text.label(&alone);
        let mask = self.load_flags(unit);
        let bits = self.bits(&mask);
        self.text.line(format!("store i32 {bits}, ptr %alone.bits{unit}"));
        self.text.line(format!("store i1 false, ptr %alone.all{unit}"));
        self.jump(&format!("S{unit}"));
        self.text.label(&own);
    }

    /// Where all lanes go on that come to a unit from another one: those that are in a loop together stay so. (LLVM would have to keep all that
    /// either way needs in each turn, if lanes could change from one to the other there.)
    pub(super) fn again(&self, from: Node, to: Node) -> String {
        match self.is_in_loop(from, to) {
            true => format!("FV{to}"),
            false => format!("F{to}"),
        }
    }

    /// The same for lanes under a mask.
    pub(super) fn again_under(&self, from: Node, to: Node) -> String {
        match self.is_in_loop(from, to) {
            true => format!("MV{to}"),
            false => format!("M{to}"),
        }
    }

    /// Whether a unit is one of those of a loop that lanes may go through one by one, and another one its head.
    fn is_in_loop(&self, unit: Node, head: Node) -> bool {
        let known = self.alone.get(&head);
        known.is_some_and(|(_, last)| (head..=*last).contains(&unit))
    }

    /// Whether it was found lately that lanes had better go together.
    fn passes_by(&mut self, site: usize, (alone, own): (&str, &str)) {
        let at = self.waits_of(site);
        let count = self.text.value(format!("load i64, ptr {at}"));
        let now = self.text.value(format!("icmp eq i64 {count}, 0"));
        let not = self.text.name("not");
        self.branch(&now, alone, &not);
        self.text.label(&not);
        let count = self.text.value(format!("sub i64 {count}, 1"));
        self.text.line(format!("store i64 {count}, ptr {at}"));
        self.jump(own);
    }

    /// Where it is kept how many more times lanes go together, and how many did so the last time: in the place of
    /// an address, and of the room there, that no access asks for.
    fn waits_of(&mut self, site: usize) -> String {
        let extents = self.field(offset_of!(Context, extents), "ptr", true);
        self.place(&extents, site * size_of::<Extent>() + offset_of!(Extent, low))
    }

    /// Lanes whose first addresses lie side by side, or are the same, go on together, and those of the next warps.
    pub(super) fn not_side_by_side(&mut self, this: &Loop, site: usize) -> Option<()> {
        let mut rows: Option<String> = None;
        let looks = this.loads.iter();
        for look in looks.filter(|look| look.space != Space::Const) {
            let Some(reg) = look.register.filter(|reg| !self.is_one_number(*reg)) else {
                continue;
            };
            let Some(values) = self.in_first_turn(this, (reg, look.unit), look.first) else {
                continue;
            };
            let (form, bits) = (self.form(), bits_of(reg.width)?);
            let ty = form.int(bits);
            let next: Vec<String> = (0..self.lanes)
                .map(|lane| format!("i32 {}", (lane + 1) % self.lanes))
                .collect();
            let mut in_row = Vec::new();
            for value in &values {
                let behind = self.text.value(format!(
                    "shufflevector {ty} {value}, {ty} poison, <{} x i32> <{}>",
                    self.lanes,
                    next.join(", ")
                ));
                let step = self.text.binary("sub", &ty, &behind, value);
                let step = self.text.binary("add", &ty, &step, &form.constant(bits, look.bytes));
                let close = form.constant(bits, 2 * look.bytes);
                in_row.push(self.text.value(format!("icmp ule {ty} {step}, {close}")));
            }
            let word = self.bits(&in_row);
            let here = self.text.value(format!("load i32, ptr %alone.bits{}", this.head));
            let word = self.text.value(format!("and i32 {word}, {here}"));
            let count = self.text.value(format!("call i32 @llvm.ctpop.i32(i32 {word})"));
            let twice = self.text.value(format!("shl i32 {count}, 1"));
            let all = self.text.value(format!("call i32 @llvm.ctpop.i32(i32 {here})"));
            let is_row = self.text.value(format!("icmp uge i32 {twice}, {all}"));
            rows = self.or(rows, is_row);
        }
        let Some(rows) = rows else { return Some(()) };
        let [beside, apart] = ["beside", "apart"].map(|what| self.text.name(what));
        self.branch(&rows, &beside, &apart);
        self.text.label(&beside);
        let at = self.waits_of(site);
        self.text.line(format!("store i64 {SIDE_BY_SIDE}, ptr {at}"));
        self.together_from_here(this);
        self.text.label(&apart);
        Some(())
    }

    /// What a register holds in the first turn before an instruction of a unit, in all lanes, where that depends on nothing that the turn
    /// loads. (Or about that, if it goes through several units.)
    fn in_first_turn(&mut self, this: &Loop, (reg, unit): (Reg, Node), before: usize) -> Option<Vec<String>> {
        let block = self.plan.units[unit as usize].block as usize;
        let Some(at) = self.writer_of(unit, reg.number, before) else {
            let known = !this.is_own(reg.number) || self.plan.live[this.head as usize].has(reg.number);
            return known.then(|| self.lanes_of(reg, false));
        };
        let Op::Compute { op, dst, src } = &self.input.body.blocks[block].insts[at].op else {
            return None;
        };
        op.linear()?;
        let [_] = dst[..] else { return None };
        let sources: Option<Vec<Vec<String>>> = src
            .iter()
            .map(|&reg| self.in_first_turn(this, (reg, unit), at))
            .collect();
        let sources = sources?;
        let constants = self.constants(src);
        let mut results = Vec::new();
        for part in 0..self.parts {
            let these: Vec<String> = sources.iter().map(|values| values[part].clone()).collect();
            let form = self.form();
            let mut emitter = Emitter {
                text: &mut self.text,
                form,
                level: self.level,
                same: None,
            };
            results.extend(emitter.emit(*op, &these, &constants, 1)?);
        }
        Some(results)
    }

    // ---- where they leave it --------------------------------------------------------------------------------------------------

    /// Turns are paid for, and compared with what a warp would have made.
    pub(super) fn settle_up(&mut self, this: &Loop, site: usize) {
        let unit = this.head;
        let counts = this.units.iter().map(|&unit| self.insts_of(unit).len() as u32 + 1);
        let count: u32 = counts.sum();
        let turns = self.text.value(format!("load i32, ptr %alone.turns{unit}"));
        let turns = self.text.value(format!("zext i32 {turns} to i64"));
        let cost = self.text.value(format!("mul i64 {turns}, {count}"));
        let cost = self.text.value(format!("lshr i64 {cost}, 3"));
        let budget = self.text.value("load i64, ptr %budget");
        let budget = self.text.value(format!("sub i64 {budget}, {cost}"));
        self.text.line(format!("store i64 {budget}, ptr %budget"));

        let (mut by_warp, mut by_lane) = (2 * count, count);
        for look in &this.loads {
            let loads = look.members.len() as u32;
            by_warp += loads
                * if look.space == Space::Shared {
                    SHARED_LOADS
                } else {
                    LOADS
                };
            by_lane += loads * LOAD;
        }
        let most = self.text.value(format!("load i32, ptr %alone.most{unit}"));
        let most = self.text.value(format!("zext i32 {most} to i64"));
        let by_warp = self.text.value(format!("mul i64 {most}, {by_warp}"));
        let by_lane = self.text.value(format!("mul i64 {turns}, {by_lane}"));
        let bits = self.text.value(format!("load i32, ptr %alone.bits{unit}"));
        let lanes = self.text.value(format!("call i32 @llvm.ctpop.i32(i32 {bits})"));
        let lanes = self.text.value(format!("zext i32 {lanes} to i64"));
        let lanes = self.text.value(format!("mul i64 {lanes}, {LANE}"));
        let by_lane = self.text.value(format!("add i64 {by_lane}, {lanes}"));
        let lost = self.text.value(format!("icmp ugt i64 {by_lane}, {by_warp}"));
        let stay = self.text.value(format!("load i32, ptr %alone.stay{unit}"));
        let stays = self.text.value(format!("icmp ne i32 {stay}, 0"));
        let lost = self.text.value(format!("or i1 {lost}, {stays}"));
        let at = self.waits_of(site);
        let of = self.place(&at, offset_of!(Extent, room) - offset_of!(Extent, low));
        let before = self.text.value(format!("load i64, ptr {of}"));
        let more = self.text.value(format!("shl i64 {before}, 1"));
        let more = self.text.value(format!("or i64 {more}, 1"));
        let more = self.text.value(format!("and i64 {more}, {TOGETHER}"));
        let wait = self.text.value(format!("select i1 {lost}, i64 {more}, i64 0"));
        self.text.line(format!("store i64 {wait}, ptr {of}"));
        self.text.line(format!("store i64 {wait}, ptr {at}"));
    }

    /// Lanes that came to the loop go through it together, all of them.
    pub(super) fn together_from_here(&mut self, this: &Loop) {
        let unit = this.head;
        if self.whom == For::Some {
            self.jump(&format!("MV{unit}"));
            return;
        }
        let all = self.text.value(format!("load i1, ptr %alone.all{unit}"));
        self.branch(&all, &format!("FV{unit}"), &format!("MV{unit}"));
    }

    /// Those that are done go on, and the others together.
    pub(super) fn go_on(&mut self, this: &Loop) {
        let head = this.head;
        let stay = self.text.value(format!("load i32, ptr %alone.stay{head}"));
        let nobody = self.text.value(format!("icmp eq i32 {stay}, 0"));
        if self.whom == For::All {
            let [whole, part] = ["whole", "part"].map(|what| self.text.name(what));
            let all = self.text.value(format!("load i1, ptr %alone.all{head}"));
            self.branch(&all, &whole, &part);
            self.text.label(&whole);
            (self.full, self.mask, self.here, self.guarded) = (true, None, None, false);
            let everybody = self.text.value(format!("icmp eq i32 {stay}, -1"));
            let some = self.text.name("some");
            self.branch(&everybody, &format!("FV{head}"), &some);
            self.text.label(&some);
            for &exit in &this.exits {
                let [out, not] = ["out", "not"].map(|what| self.text.name(what));
                let gone = self.text.value(format!("load i32, ptr %alone.x{head}.{exit}"));
                let gone = self.text.value(format!("icmp eq i32 {gone}, -1"));
                self.branch(&gone, &out, &not);
                self.text.label(&out);
                self.go(exit);
                self.text.label(&not);
            }
            self.part_here(this, &stay, &nobody);
            self.text.label(&part);
        }
        (self.full, self.mask, self.here, self.guarded) = (false, None, None, false);
        if self.flags.contains(&head) {
            self.nobody_waits(head);
        }
        self.part_here(this, &stay, &nobody);
    }

    fn part_here(&mut self, this: &Loop, stay: &str, nobody: &str) {
        let mut ways = Vec::new();
        for &exit in &this.exits {
            let gone = self.text.value(format!("load i32, ptr %alone.x{}.{exit}", this.head));
            ways.push((exit, self.spread(&gone)));
        }
        let next = self.send(&ways);
        let [out, some] = ["out", "some"].map(|what| self.text.name(what));
        self.branch(nobody, &out, &some);
        self.text.label(&out);
        self.dispatch(&next, self.full, true);
        self.text.label(&some);
        let rest = self.spread(stay);
        self.store_flags(this.head, &rest);
        self.jump(&format!("MV{}", this.head));
    }
}
