//! Barriers of the block at which each thread says yes or no, and hears what all have said: `bar.red`, of which `__syncthreads_and`,
//! `__syncthreads_or` and `__syncthreads_count` are made.
//!
//! Warps that go abreast say what they have to say as they come ([`Emit::say`]). When all have, each is told the sum, and stands behind the
//! barrier ([`Emit::tell_all`]). If the round is not ended, because one of them does something else, nobody has come there: all stand
//! before the barrier, with their registers kept, and say it again, to the interpreter or in another round. One who goes without the others
//! says nothing here: it leaves.

use std::mem::offset_of;

use crate::isa::lanes::Width;
use crate::program::{BarrierOp, Guard, Op, Reg};

use super::super::compute::bits_of;
use super::super::context::Context;
use super::super::plan::Unit;
use super::pack::line_bits;
use super::rounds::NO_UNIT;
use super::{Emit, Node};

/// What is asked, of which predicate, and who is told.
#[derive(Clone, Copy)]
pub(super) struct Red {
    op: BarrierOp,
    pred: Guard,
    dst: Option<Reg>,
}

impl Red {
    /// What is heard if nobody says anything.
    fn silence(&self) -> &'static str {
        match self.op {
            BarrierOp::And => "1",
            BarrierOp::Or | BarrierOp::Popc | BarrierOp::Sync | BarrierOp::Arrive => "0",
        }
    }
}

impl Emit<'_> {
    /// An unguarded barrier of the whole block that sums up what threads say, if a unit is one.
    pub(super) fn red(&self, unit: &Unit) -> Option<Red> {
        let inst = self.input.body.blocks[unit.block as usize]
            .insts
            .get(unit.insts.start)?;
        if inst.guard.is_some() || unit.insts.is_empty() {
            return None;
        }
        let Op::Barrier {
            dst,
            pred: Some((reg, negated)),
            ..
        } = inst.op
        else {
            return None;
        };
        let pred = Guard { reg, negated };
        Some(Red {
            op: inst.op.reduction_of_all()?,
            pred,
            dst,
        })
    }

    /// The whole warp comes to such a barrier, says what it has to say, and waits.
    pub(super) fn say(&mut self, unit: Node) {
        (self.unit, self.full, self.mask, self.guarded) = (unit, true, None, false);
        let Some(red) = self.red(&self.plan.units[unit as usize]) else {
            return;
        };
        self.text.label(&format!("B{unit}"));
        // Who is stopped at each barrier meets others than these.
        let [abreast, stops] = [offset_of!(Context, abreast), offset_of!(Context, stops)].map(|at| {
            let value = self.field(at, "i64", true);
            self.text.value(format!("icmp ne i64 {value}, 0"))
        });
        let goes = self.text.value(format!("xor i1 {stops}, true"));
        let goes = self.text.value(format!("and i1 {abreast}, {goes}"));
        let [says, leaves] = ["says", "leaves"].map(|what| self.text.name(what));
        self.branch(&goes, &says, &leaves);
        self.text.label(&leaves);
        self.stick();
        self.text.label(&says);
        let own = self.said(&red, None);
        let met = self.text.value("load i32, ptr %met");
        let first = self.text.value(format!("icmp eq i32 {met}, {NO_UNIT}"));
        let before = self.text.value("load i32, ptr %said");
        let silence = red.silence();
        let before = self
            .text
            .value(format!("select i1 {first}, i32 {silence}, i32 {before}"));
        let sum = match red.op {
            BarrierOp::And => "and",
            BarrierOp::Or => "or",
            BarrierOp::Popc | BarrierOp::Sync | BarrierOp::Arrive => "add",
        };
        let sum = self.text.value(format!("{sum} i32 {before}, {own}"));
        self.text.line(format!("store i32 {sum}, ptr %said"));
        let changed = self.changed_at(unit);
        self.keep(&changed);
        self.waits(unit, self.saying(unit));
    }

    /// All that are left have come to one place: if it is one where they have said something, they are told, and stand behind it.
    pub(super) fn tell_all(&mut self) {
        if self.reds.is_empty() {
            return;
        }
        let reds = self.reds.clone();
        let met = self.text.value("load i32, ptr %met");
        let cases: String = (reds.keys())
            .map(|&unit| format!(" i32 {}, label %H{unit}", self.saying(unit)))
            .collect();
        self.text.line(format!("switch i32 {met}, label %told [{cases} ]"));
        for (unit, next) in reds {
            (self.unit, self.full, self.mask, self.guarded) = (unit, true, None, false);
            self.text.label(&format!("H{unit}"));
            let red = self.red(&self.plan.units[unit as usize]);
            if let Some(Red { dst: Some(dst), .. }) = red
                && let Some(&at) = self.kept.get(&dst.number)
            {
                let said = self.text.value("load i32, ptr %said");
                let value = self.heard(dst, &said);
                let first = self.field(offset_of!(Context, first), "ptr", false);
                self.for_each_warp(&first, |this, _, saved| match this.kind(dst.number).is_line() {
                    true => {
                        let to = this.place(saved, at);
                        let bits = line_bits(dst);
                        this.text.line(format!("store i{bits} {value}, ptr {to}"));
                    }
                    false => {
                        let values = this.along(bits_of(dst.width).unwrap_or(1), &[value], 0);
                        this.store_lanes(saved, at, dst.width, &values);
                    }
                });
            }
            let next_pc = self.plan.units[next as usize].pc;
            self.text.line(format!("store i32 {}, ptr %met", self.going_on(next)));
            self.text.line(format!("store i32 {}, ptr %met.pc", next_pc as i32));
            self.jump("told");
        }
        self.text.label("told");
    }

    /// What the lanes of a warp say together: all of them, or those of a mask.
    pub(super) fn said(&mut self, red: &Red, mask: Option<&[String]>) -> String {
        let mut says = match self.kind(red.pred.reg.number).is_line() {
            true => {
                let holds = self.holds(red.pred);
                self.text.value(format!("sext i1 {holds} to i32"))
            }
            false => {
                let holding = self.holding(red.pred);
                self.bits(&holding)
            }
        };
        let mut all = "-1".to_owned();
        if let Some(mask) = mask {
            all = self.bits(mask);
            says = self.text.value(format!("and i32 {says}, {all}"));
        }
        let bit = match red.op {
            BarrierOp::And => self.text.value(format!("icmp eq i32 {says}, {all}")),
            BarrierOp::Or => self.text.value(format!("icmp ne i32 {says}, 0")),
            BarrierOp::Popc | BarrierOp::Sync | BarrierOp::Arrive => {
                return self.text.value(format!("call i32 @llvm.ctpop.i32(i32 {says})"));
            }
        };
        self.text.value(format!("zext i1 {bit} to i32"))
    }

    /// The lanes that run are told.
    pub(super) fn write_said(&mut self, red: &Red, said: &str) {
        if let Some(dst) = red.dst {
            let value = self.heard(dst, said);
            self.write_same(dst, &[value]);
        }
    }

    /// What was said, as a register has it.
    fn heard(&mut self, dst: Reg, said: &str) -> String {
        match dst.width {
            Width::Pred => self.text.value(format!("icmp ne i32 {said}, 0")),
            _ => said.to_owned(),
        }
    }
}
