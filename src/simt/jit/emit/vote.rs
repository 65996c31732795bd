//! What lanes of a warp find out together: votes, sums over lanes, who is there. Here where the whole warp is at the
//! instruction, and all lanes name the same members: then nobody is missing, whoever they are (the interpreter's
//! `warp::gathered`). Everything else is the interpreter's.

use crate::program::{Op, ReduxOp, Reg, Value, VoteMode};

use super::super::Pc;
use super::super::plan::Kind;
use super::super::text::Form;
use super::Emit;

impl Emit<'_> {
    /// An operation of lanes together; `false`: for the interpreter.
    pub(super) fn collective(&mut self, op: &Op, pc: Pc) -> bool {
        match op {
            // For any lanes: nobody is waited for.
            Op::Activemask { dst } => {
                let here = self.mask_bits();
                self.write_same(*dst, &[here]);
                true
            }
            Op::WarpBarrier { members } => {
                let met = self.members(Some(*members)).is_some();
                if met {
                    // Accesses stay on their side of it.
                    self.text.line("fence syncscope(\"singlethread\") seq_cst");
                }
                met
            }
            Op::Vote {
                mode,
                dst,
                pred: (pred, negated),
                members,
            } => match self.members(*members) {
                Some(group) => {
                    let result = self.vote(*mode, (*pred, *negated), &group);
                    self.write_same(*dst, &[result]);
                    true
                }
                None => false,
            },
            Op::Redux {
                op: what,
                dst,
                a,
                members,
            } => match (self.members(Some(*members)), folds(*what)) {
                (Some(group), Some(fold)) => {
                    self.redux(op, pc, (*dst, *a), &group, fold);
                    true
                }
                _ => false,
            },
            Op::Elect { dst, dst_pred, members } => match self.members(Some(*members)) {
                Some(group) => {
                    // The lowest, as the interpreter does.
                    let leader = self
                        .text
                        .value(format!("call i32 @llvm.cttz.i32(i32 {group}, i1 false)"));
                    if let Some(dst) = dst {
                        self.write_same(*dst, std::slice::from_ref(&leader));
                    }
                    let all = self.splat("i32", &leader);
                    let ty = self.form().int(32);
                    let leads: Vec<String> = (0..self.parts)
                        .map(|part| {
                            let lanes = self.lane_numbers(part);
                            self.text.value(format!("icmp eq {ty} {all}, {lanes}"))
                        })
                        .collect();
                    self.write_lanes(*dst_pred, &leads);
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    /// The members that all lanes name, where the whole warp is here; without `.sync`, everybody.
    pub(super) fn members(&mut self, members: Option<Value<Reg>>) -> Option<String> {
        if self.mask.is_some() {
            return None;
        }
        match members {
            None => Some("-1".to_owned()),
            Some(Value::Immediate(members)) => Some(Form::One.constant(32, members.into())),
            Some(Value::Register(reg)) if self.kind(reg.number).is_same() => {
                Some(self.line_of(reg, false).0.swap_remove(0))
            }
            Some(Value::Register(_)) => None,
        }
    }

    /// The numbers of a part's lanes.
    pub(super) fn lane_numbers(&self, part: usize) -> String {
        let first = part as u32 * self.lanes;
        let numbers: Vec<String> = (first..first + self.lanes).map(|lane| format!("i32 {lane}")).collect();
        format!("<{}>", numbers.join(", "))
    }

    /// What a vote of the whole warp says of a group: a bit, or one a lane.
    fn vote(&mut self, mode: VoteMode, (pred, negated): (Reg, bool), group: &str) -> String {
        let mut set = match self.kind(pred.number) {
            Kind::Line { .. } => {
                let one = self.line_of(pred, false).0.swap_remove(0);
                self.text.value(format!("sext i1 {one} to i32"))
            }
            _ => {
                let lanes = self.lanes_of(pred, false);
                self.bits(&lanes)
            }
        };
        if negated {
            set = self.text.binary("xor", "i32", &set, "-1");
        }
        let set = self.text.binary("and", "i32", &set, group);
        let all = |this: &mut Self| this.text.value(format!("icmp eq i32 {set}, {group}"));
        match mode {
            VoteMode::Ballot => set,
            VoteMode::All => all(self),
            VoteMode::Any => self.text.value(format!("icmp ne i32 {set}, 0")),
            VoteMode::Uni => {
                let all = all(self);
                let none = self.text.value(format!("icmp eq i32 {set}, 0"));
                self.text.binary("or", "i1", &all, &none)
            }
        }
    }

    /// A reduction over the whole warp; of a part of it, the interpreter's.
    fn redux(&mut self, op: &Op, pc: Pc, (dst, a): (Reg, Reg), group: &str, fold: Fold) {
        let whole = self.text.value(format!("icmp eq i32 {group}, -1"));
        let [fast, slow, done] = ["fast", "slow", "done"].map(|what| self.text.name(what));
        self.branch(&whole, &fast, &slow);
        self.text.label(&slow);
        self.step(op, pc, None);
        self.jump(&done);
        self.text.label(&fast);
        let values = self.lanes_of(a, false);
        let total = self.folded(fold, 32, &values);
        self.write_same(dst, &[total]);
        self.jump(&done);
        self.text.label(&done);
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
