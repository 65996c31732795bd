//! What lanes of a warp find out together: votes, sums over lanes, who is there, who has the same value. Here where none of the members
//! is missing that lanes name, but those that have ended, and all members name the same ones (the interpreter's `warp::gathered`): one group,
//! or several, as tiles of a warp are. Everything else is the interpreter's.

use std::mem::offset_of;

use crate::isa::lanes::Width;
use crate::program::{Op, ReduxOp, Reg, Value, VoteMode};

use super::super::Pc;
use super::super::compute::bits_of;
use super::super::context::{Context, Warp};
use super::super::plan::Kind;
use super::super::text::Form;
use super::{Emit, LANES};

/// Lanes that meet.
pub(super) struct Met {
    /// A word with their bits: all that are named, and run.
    group: String,
    /// Whether somebody is missing, if that may be.
    missing: Option<String>,
    /// Where lanes may name others: whether they do, and what each names, by part.
    apart: Option<(String, Vec<String>)>,
}

/// With whom lanes meet.
pub(super) enum Group<'a> {
    /// All with the same: a word.
    One(&'a str),
    /// Each with those whose bits its own word has, by part. The words lie in scratch memory, too.
    Each(&'a [String]),
}

impl Emit<'_> {
    /// An operation of lanes together; `false`: for the interpreter.
    pub(super) fn collective(&mut self, op: &Op, pc: Pc) -> bool {
        let members = match op {
            // For any lanes: nobody is waited for.
            Op::Activemask { dst } => {
                let here = self.mask_bits();
                self.write_same(*dst, &[here]);
                return true;
            }
            Op::Vote { members, .. } => *members,
            Op::Redux { op: what, .. } if folds(*what).is_none() => return false,
            Op::Match { a, .. } if bits_of(a.width).is_none_or(|bits| bits < 32) => return false,
            Op::WarpBarrier { members }
            | Op::Redux { members, .. }
            | Op::Elect { members, .. }
            | Op::Match { members, .. } => Some(*members),
            _ => return false,
        };
        let Some(met) = self.members(members) else {
            return false;
        };
        self.where_met(met, (op, pc), |this, group| match op {
            // Accesses stay on their side of it.
            Op::WarpBarrier { .. } => this.text.line("fence syncscope(\"singlethread\") seq_cst"),
            Op::Vote {
                mode,
                dst,
                pred: (pred, negated),
                ..
            } => {
                let set = this.set_of(*pred, *negated);
                match group {
                    Group::One(group) => {
                        let result = this.vote(Form::One, *mode, &set, group);
                        this.write_same(*dst, &[result]);
                    }
                    Group::Each(groups) => {
                        let set = this.splat("i32", &set);
                        let groups = groups.iter();
                        let results = groups.map(|group| this.vote(this.form(), *mode, &set, group));
                        let results: Vec<String> = results.collect();
                        this.write_lanes(*dst, &results);
                    }
                }
            }
            Op::Redux { op: what, dst, a, .. } => {
                let Some(fold) = folds(*what) else { return };
                match group {
                    Group::One(group) => {
                        let total = this.redux(*a, group, fold);
                        this.write_same(*dst, &[total]);
                    }
                    Group::Each(_) => this.redux_each(*dst, *a, fold),
                }
            }
            Op::Elect { dst, dst_pred, .. } => {
                // The lowest, as the interpreter does.
                let ty = this.form().int(32);
                let leaders: Vec<String> = match group {
                    Group::One(group) => {
                        let leader = this
                            .text
                            .value(format!("call i32 @llvm.cttz.i32(i32 {group}, i1 false)"));
                        if let Some(dst) = dst {
                            this.write_same(*dst, std::slice::from_ref(&leader));
                        }
                        vec![this.splat("i32", &leader); this.parts]
                    }
                    Group::Each(groups) => {
                        let lanes = this.lanes;
                        let groups = groups.iter();
                        let leaders = groups.map(|group| {
                            this.text
                                .value(format!("call {ty} @llvm.cttz.v{lanes}i32({ty} {group}, i1 false)"))
                        });
                        let leaders: Vec<String> = leaders.collect();
                        if let Some(dst) = dst {
                            this.write_lanes(*dst, &leaders);
                        }
                        leaders
                    }
                };
                let leads = leaders.iter().enumerate().map(|(part, leader)| {
                    let lanes = this.lane_numbers(part);
                    this.text.value(format!("icmp eq {ty} {leader}, {lanes}"))
                });
                let leads: Vec<String> = leads.collect();
                this.write_lanes(*dst_pred, &leads);
            }
            Op::Match {
                all, dst, dst_pred, a, ..
            } => this.match_lanes(*all, (*dst, *dst_pred), *a, group),
            _ => unreachable!("asked for above"),
        });
        true
    }

    /// Carries an operation out where nobody is missing; elsewhere the interpreter does.
    pub(super) fn where_met(
        &mut self,
        met: Met,
        (op, pc): (&Op, Pc),
        mut carry_out: impl FnMut(&mut Self, &Group<'_>),
    ) {
        if met.missing.is_none() && met.apart.is_none() {
            carry_out(self, &Group::One(&met.group));
            return;
        }
        let [alike, fast, slow, done] = ["alike", "fast", "slow", "done"].map(|what| self.text.name(what));
        if let Some((differ, named)) = &met.apart {
            let [apart, each] = ["apart", "each"].map(|what| self.text.name(what));
            self.branch(differ, &apart, &alike);
            self.text.label(&apart);
            let named = self.living(named);
            let agree = self.agree(&named);
            self.branch(&agree, &each, &slow);
            self.text.label(&each);
            match matters(op) {
                true => {
                    carry_out(self, &Group::Each(&named));
                    self.jump(&done);
                }
                false => self.jump(&fast),
            }
        } else {
            self.jump(&alike);
        }
        self.text.label(&alike);
        match &met.missing {
            Some(missing) => self.branch(missing, &slow, &fast),
            None => self.jump(&fast),
        }
        self.text.label(&slow);
        self.step(op, pc, None);
        self.jump(&done);
        self.text.label(&fast);
        carry_out(self, &Group::One(&met.group));
        self.jump(&done);
        self.text.label(&done);
    }

    /// Of the lanes that others name, those that have not ended.
    fn living(&mut self, named: &[String]) -> Vec<String> {
        if self.mask.is_none() {
            return named.to_vec();
        }
        let live = self.live();
        let live = self.splat("i32", &live);
        let ty = self.form().int(32);
        let named = named.iter();
        named.map(|named| self.text.binary("and", &ty, named, &live)).collect()
    }

    /// The lanes of the warp that have not ended.
    fn live(&mut self) -> String {
        let warp = self.field(offset_of!(Context, warp), "ptr", false);
        let at = self.place(&warp, offset_of!(Warp, live));
        self.text.value(format!("load i32, ptr {at}"))
    }

    /// Whether lanes that run fall into groups, each of which all of its lanes name, and nobody else.
    fn agree(&mut self, named: &[String]) -> String {
        let running = self.mask_bits();
        self.store_lanes("%scratch", 0, Width::B32, named);
        let [before, turn, next] = ["before", "turn", "next"].map(|what| self.text.name(what));
        let [left, still] = [0; 2].map(|_| self.text.name("%v"));
        self.jump(&before);
        self.text.label(&before);
        self.jump(&turn);
        self.text.label(&turn);
        self.text.line(format!(
            "{left} = phi i32 [ {running}, %{before} ], [ {still}, %{turn} ]"
        ));
        let (group, same) = self.next_group(&left, named);
        let same = self.text.binary("and", "i32", &same, &running);
        let agree = self.text.value(format!("icmp eq i32 {same}, {group}"));
        let others = self.text.value(format!("xor i32 {same}, -1"));
        self.text.line(format!("{still} = and i32 {left}, {others}"));
        let more = self.text.value(format!("icmp ne i32 {still}, 0"));
        let more = self.text.binary("and", "i1", &more, &agree);
        self.branch(&more, &turn, &next);
        self.text.label(&next);
        agree
    }

    /// What the first of the lanes that are left names, as it lies in scratch memory, and who names the same.
    fn next_group(&mut self, left: &str, named: &[String]) -> (String, String) {
        let lane = self
            .text
            .value(format!("call i32 @llvm.cttz.i32(i32 {left}, i1 false)"));
        let group = self.lane_there(32, &lane);
        let (ty, all) = (self.form().int(32), self.splat("i32", &group));
        let named = named.iter();
        let same = named.map(|named| self.text.value(format!("icmp eq {ty} {named}, {all}")));
        let same: Vec<String> = same.collect();
        (group, self.bits(&same))
    }

    /// The members that all lanes name; without `.sync`, those that run. `None`: not here.
    pub(super) fn members(&mut self, members: Option<Value<Reg>>) -> Option<Met> {
        let whole = self.mask.is_none();
        let mut apart = None;
        let named = match members {
            None => None,
            Some(Value::Immediate(members)) => Some(Form::One.constant(32, members.into())),
            Some(Value::Register(reg)) if reg.width != Width::B32 => return None,
            Some(Value::Register(reg)) if self.kind(reg.number).is_same() => {
                Some(self.line_of(reg, false).0.swap_remove(0))
            }
            Some(Value::Register(reg)) => {
                let values = self.lanes_of(reg, false);
                let running = self.mask_bits();
                let first = self.first_of_lanes(32, &values, &running);
                let all = self.splat("i32", &first);
                let ty = self.form().int(32);
                let mut others: Vec<String> = values
                    .iter()
                    .map(|value| self.text.value(format!("icmp ne {ty} {value}, {all}")))
                    .collect();
                if let Some(mask) = self.mask.clone() {
                    others = self.each(&others, &mask, "and");
                }
                apart = Some((self.any(&others), values));
                Some(first)
            }
        };
        if whole {
            return Some(Met {
                group: named.unwrap_or_else(|| "-1".to_owned()),
                missing: None,
                apart,
            });
        }
        let running = self.mask_bits();
        let Some(named) = named else {
            return Some(Met {
                group: running,
                missing: None,
                apart,
            });
        };
        let live = self.live();
        let group = self.text.binary("and", "i32", &named, &running);
        let wanted = self.text.binary("and", "i32", &named, &live);
        let missing = Some(self.text.value(format!("icmp ne i32 {wanted}, {group}")));
        Some(Met { group, missing, apart })
    }

    /// What the first of the lanes that run has, or any one if none does; vectors of 32 bits or more.
    fn first_of_lanes(&mut self, bits: u32, values: &[String], running: &str) -> String {
        let ty = self.form().int(bits);
        if self.mask.is_none() {
            return self.text.value(format!("extractelement {ty} {}, i64 0", values[0]));
        }
        let first = self
            .text
            .value(format!("call i32 @llvm.cttz.i32(i32 {running}, i1 false)"));
        self.lane_in_memory(bits, values, &first)
    }

    /// What the lane of this number has, counted modulo as many as there are.
    pub(super) fn lane_in_memory(&mut self, bits: u32, values: &[String], lane: &str) -> String {
        let width = if bits == 64 { Width::B64 } else { Width::B32 };
        self.store_lanes("%scratch", 0, width, values);
        self.lane_there(bits, lane)
    }

    /// The same where they are in scratch memory already.
    fn lane_there(&mut self, bits: u32, lane: &str) -> String {
        let lane = self.text.value(format!("and i32 {lane}, {}", LANES - 1));
        let lane = self.text.value(format!("zext i32 {lane} to i64"));
        let at = self
            .text
            .value(format!("getelementptr i{bits}, ptr %scratch, i64 {lane}"));
        self.text.value(format!("load i{bits}, ptr {at}"))
    }

    /// `match.sync`: of the lanes that have the same value, those in the group.
    fn match_lanes(&mut self, all: bool, (dst, dst_pred): (Reg, Option<Reg>), a: Reg, group: &Group<'_>) {
        let (form, bits) = (self.form(), bits_of(a.width).unwrap_or(32));
        let (ty, words) = (form.int(bits), form.int(32));
        let values = self.lanes_of(a, false);
        let running = self.mask_bits();
        let same_as = |this: &mut Self, value: &str| -> Vec<String> {
            let value = this.splat(&format!("i{bits}"), value);
            let values = values.iter();
            values
                .map(|one| this.text.value(format!("icmp eq {ty} {one}, {value}")))
                .collect()
        };
        if all && let &Group::One(group) = group {
            let first = self.first_of_lanes(bits, &values, group);
            let same = same_as(self, &first);
            let same = self.bits(&same);
            let same = self.text.binary("and", "i32", &same, group);
            let met = self.text.value(format!("icmp eq i32 {same}, {group}"));
            let result = self.text.value(format!("select i1 {met}, i32 {group}, i32 0"));
            self.write_same(dst, std::slice::from_ref(&result));
            if let Some(predicate) = dst_pred {
                let result = self.splat("i32", &result);
                let zero = form.constant(32, 0);
                let is_told = self.text.value(format!("icmp ne {words} {result}, {zero}"));
                self.write_lanes(predicate, &vec![is_told; self.parts]);
            }
            return;
        }
        // One value after the other: often there are few, or one.
        self.store_lanes("%scratch", 0, a.width, &values);
        let mut found = self.told_by_turns(&running, |this, lane| {
            let value = this.lane_there(bits, lane);
            let same = same_as(this, &value);
            let word = this.bits(&same);
            let told: Vec<String> = match group {
                Group::One(group) => {
                    let told = this.text.binary("and", "i32", &word, group);
                    vec![this.splat("i32", &told); this.parts]
                }
                Group::Each(groups) => {
                    let word = this.splat("i32", &word);
                    let groups = groups.iter();
                    groups
                        .map(|group| this.text.binary("and", &words, &word, group))
                        .collect()
                }
            };
            (word, same, told)
        });
        if let Group::Each(groups) = group
            && all
        {
            let zero = form.constant(32, 0);
            let told = found.iter().zip(*groups).map(|(found, group)| {
                let met = self.text.value(format!("icmp eq {words} {found}, {group}"));
                self.text.select(form, &words, &met, group, &zero)
            });
            found = told.collect();
            if let Some(predicate) = dst_pred {
                let told = found.iter();
                let told = told.map(|found| self.text.value(format!("icmp ne {words} {found}, {zero}")));
                let told: Vec<String> = told.collect();
                self.write_lanes(predicate, &told);
            }
        }
        self.write_lanes(dst, &found);
    }

    /// The numbers of a part's lanes.
    pub(super) fn lane_numbers(&self, part: usize) -> String {
        let first = part as u32 * self.lanes;
        let numbers: Vec<String> = (first..first + self.lanes).map(|lane| format!("i32 {lane}")).collect();
        format!("<{}>", numbers.join(", "))
    }

    /// The lanes in which a predicate holds: a word.
    fn set_of(&mut self, pred: Reg, negated: bool) -> String {
        let set = match self.kind(pred.number) {
            Kind::Line { .. } => {
                let one = self.line_of(pred, false).0.swap_remove(0);
                self.text.value(format!("sext i1 {one} to i32"))
            }
            _ => {
                let lanes = self.lanes_of(pred, false);
                self.bits(&lanes)
            }
        };
        match negated {
            true => self.text.binary("xor", "i32", &set, "-1"),
            false => set,
        }
    }

    /// What the vote of a group says, of which these hold it true: a bit, or one a lane; for one group or a vector of them.
    fn vote(&mut self, form: Form, mode: VoteMode, set: &str, group: &str) -> String {
        let ty = form.int(32);
        let set = self.text.binary("and", &ty, set, group);
        let all = |this: &mut Self| this.text.value(format!("icmp eq {ty} {set}, {group}"));
        let zero = form.constant(32, 0);
        match mode {
            VoteMode::Ballot => set,
            VoteMode::All => all(self),
            VoteMode::Any => self.text.value(format!("icmp ne {ty} {set}, {zero}")),
            VoteMode::Uni => {
                let all = all(self);
                let none = self.text.value(format!("icmp eq {ty} {set}, {zero}"));
                self.text.binary("or", &form.int(1), &all, &none)
            }
        }
    }

    /// Reductions over groups, one after the other, whose words lie in scratch memory.
    fn redux_each(&mut self, dst: Reg, a: Reg, fold: Fold) {
        let running = self.mask_bits();
        let totals = self.told_by_turns(&running, |this, lane| {
            let group = this.lane_there(32, lane);
            let total = this.redux(a, &group, fold);
            let total = this.splat("i32", &total);
            let members = this.spread(&group);
            (group, members, vec![total; this.parts])
        });
        self.write_lanes(dst, &totals);
    }

    /// Words that lanes are told one turn after the other, by part. Each turn is for the first lane that is left, whose number it is given, and gives
    /// a word of all lanes whose turn it was, the same by part, and what they are told.
    fn told_by_turns(
        &mut self,
        running: &str,
        turn_of: impl FnOnce(&mut Self, &str) -> (String, Vec<String>, Vec<String>),
    ) -> Vec<String> {
        let (bit, ty) = (self.form().int(1), self.form().int(32));
        let [before, turn, next] = ["before", "turn", "next"].map(|what| self.text.name(what));
        let [left, still] = [0; 2].map(|_| self.text.name("%v"));
        let words: Vec<[String; 2]> = (0..self.parts)
            .map(|_| [self.text.name("%v"), self.text.name("%v")])
            .collect();
        self.jump(&before);
        self.text.label(&before);
        self.jump(&turn);
        self.text.label(&turn);
        self.text.line(format!(
            "{left} = phi i32 [ {running}, %{before} ], [ {still}, %{turn} ]"
        ));
        for [old, new] in &words {
            self.text.line(format!(
                "{old} = phi {ty} [ zeroinitializer, %{before} ], [ {new}, %{turn} ]"
            ));
        }
        // Under a guard perhaps nobody runs.
        let lane = self
            .text
            .value(format!("call i32 @llvm.cttz.i32(i32 {left}, i1 false)"));
        let (done, lanes, told) = turn_of(self, &lane);
        for ((lanes, told), [old, new]) in lanes.iter().zip(&told).zip(&words) {
            self.text
                .line(format!("{new} = select {bit} {lanes}, {ty} {told}, {ty} {old}"));
        }
        let others = self.text.value(format!("xor i32 {done}, -1"));
        self.text.line(format!("{still} = and i32 {left}, {others}"));
        let more = self.text.value(format!("icmp ne i32 {still}, 0"));
        self.branch(&more, &turn, &next);
        self.text.label(&next);
        words.into_iter().map(|[_, new]| new).collect()
    }

    /// A reduction over a group.
    fn redux(&mut self, a: Reg, group: &str, fold: Fold) -> String {
        let mut values = self.lanes_of(a, false);
        // Mostly it is the whole warp's.
        if group != "-1" {
            let (form, ty) = (self.form(), self.form().int(32));
            let neutral = form.constant(32, fold.neutral(32));
            let members = self.spread(group);
            values = values
                .iter()
                .zip(&members)
                .map(|(value, member)| self.text.select(form, &ty, member, value, &neutral))
                .collect();
        }
        self.folded(fold, 32, &values)
    }

    /// All lanes of all parts in one number.
    pub(super) fn folded(&mut self, fold: Fold, bits: u32, values: &[String]) -> String {
        let (ty, lanes) = (self.form().int(bits), self.lanes);
        let mut all = values[0].clone();
        for more in &values[1..] {
            all = match fold.is_instruction() {
                true => self.text.binary(fold.name(), &ty, &all, more),
                false => {
                    let element = format!("i{bits}");
                    self.text.intrinsic(fold.name(), self.form(), &element, &[&all, more])
                }
            };
        }
        self.text.value(format!(
            "call i{bits} @llvm.vector.reduce.{}.v{lanes}i{bits}({ty} {all})",
            fold.name()
        ))
    }
}

/// Whether what lanes are told depends on who meets them: what a shuffle moves does not.
fn matters(op: &Op) -> bool {
    !matches!(op, Op::Shuffle { .. } | Op::WarpBarrier { .. })
}

/// Operations that give the same in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    Add,
    And,
    Or,
    Xor,
    MinU,
    MaxU,
    MinS,
    MaxS,
}

impl Fold {
    /// As LLVM calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Fold::Add => "add",
            Fold::And => "and",
            Fold::Or => "or",
            Fold::Xor => "xor",
            Fold::MinU => "umin",
            Fold::MaxU => "umax",
            Fold::MinS => "smin",
            Fold::MaxS => "smax",
        }
    }

    /// What `atomicrmw` calls it.
    pub(super) fn atomic(self) -> &'static str {
        match self {
            Fold::MinS => "min",
            Fold::MaxS => "max",
            Fold::Add | Fold::And | Fold::Or | Fold::Xor | Fold::MinU | Fold::MaxU => self.name(),
        }
    }

    /// Others are calls of intrinsics.
    pub(super) fn is_instruction(self) -> bool {
        matches!(self, Fold::Add | Fold::And | Fold::Or | Fold::Xor)
    }

    /// What changes nothing.
    pub(super) fn neutral(self, bits: u32) -> u64 {
        let ones = u64::MAX >> (64 - bits);
        match self {
            Fold::Add | Fold::Or | Fold::Xor | Fold::MaxU => 0,
            Fold::And | Fold::MinU => ones,
            Fold::MinS => ones >> 1,
            Fold::MaxS => (ones >> 1) + 1,
        }
    }
}

fn folds(op: ReduxOp) -> Option<Fold> {
    Some(match op {
        ReduxOp::Add => Fold::Add,
        ReduxOp::MinU => Fold::MinU,
        ReduxOp::MaxU => Fold::MaxU,
        ReduxOp::MinS => Fold::MinS,
        ReduxOp::MaxS => Fold::MaxS,
        ReduxOp::And => Fold::And,
        ReduxOp::Or => Fold::Or,
        ReduxOp::Xor => Fold::Xor,
        ReduxOp::MinF { .. } | ReduxOp::MaxF { .. } => return None,
    })
}
