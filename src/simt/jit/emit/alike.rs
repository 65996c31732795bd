//! Branches that compare where a lane stands in a row with a bound, as `if (i >= n) return` does. If the comparison comes to the same in the
//! first and in the last lane of a warp, it does in all between, unless the row wraps around: two comparisons of single numbers, where one of
//! vectors, whose bits have to be gathered, would say no more.

use crate::isa::compare;
use crate::isa::{Compute, lanes::WARP};
use crate::program::{Guard, Op, Reg, Role};

use super::super::compute::{bits_of, of_integers};
use super::super::plan::{Kind, Parts};
use super::{Emit, Node};

/// A comparison of a register that grows from lane to lane with one that is the same in all.
pub(super) struct Row {
    relation: &'static str,
    signed: bool,
    bits: u32,
    sides: [Reg; 2],
}

impl Emit<'_> {
    /// What a guard says, if it was computed in this unit by such a comparison and nobody asks for it where lanes go.
    pub(super) fn row_of(&self, guard: Guard, to: [Node; 2]) -> Option<Row> {
        let wanted = |node: Node| self.plan.live[self.plan.unit_of(node) as usize].has(guard.reg.number);
        if to.into_iter().any(|node| !self.plan.is_end(node) && wanted(node)) {
            return None;
        }
        let unit = &self.plan.units[self.unit as usize];
        let insts = &self.input.body.blocks[unit.block as usize].insts[unit.insts.clone()];
        let writes = |op: &Op, reg: Reg| {
            let mut found = false;
            op.regs(|one, role| found |= role == Role::Def && one.number == reg.number);
            found
        };
        let at = insts.iter().rposition(|inst| writes(&inst.op, guard.reg))?;
        let (
            None,
            Op::Compute {
                op:
                    Compute::Compare(compare::Op::Setp {
                        compare,
                        boolean: None,
                        of,
                    }),
                dst,
                src,
            },
        ) = (insts[at].guard, &insts[at].op)
        else {
            return None;
        };
        let [a, b] = src[..] else { return None };
        let later = |reg| insts[at + 1..].iter().any(|inst| writes(&inst.op, reg));
        if dst.len() != 1 || later(a) || later(b) {
            return None;
        }
        let (bits, signed, relation) = of_integers(*compare, *of)?;
        // Rows of 16 bits are rare, and that both ends are equal to the bound or not says nothing of those between.
        if bits == 16 || matches!(relation, "eq" | "ne") {
            return None;
        }
        let [x, y] = [a, b].map(|reg| self.step_of(reg, bits));
        // Of two that grow it would have to be asked whether their difference wraps around.
        ((x? == 0) != (y? == 0)).then_some(Row {
            relation,
            signed,
            bits,
            sides: [a, b],
        })
    }

    /// How much a register of so many bits grows from each lane to the next, if the warp is not too long for that to count.
    fn step_of(&self, reg: Reg, bits: u32) -> Option<i64> {
        match self.kind(reg.number) {
            Kind::Line {
                step,
                parts: Parts::One,
                ..
            } if bits_of(reg.width) == Some(bits) => {
                let step = (step << (64 - bits)) as i64 >> (64 - bits);
                (step.unsigned_abs() < 1 << (bits - 7)).then_some(step)
            }
            _ => None,
        }
    }

    /// Whether the comparison comes to the same in all lanes of a whole warp, as far as the ends tell, and what it comes to in the first.
    pub(super) fn is_alike(&mut self, row: &Row) -> (String, String) {
        let ty = format!("i{}", row.bits);
        let (mut first, mut last, mut rises) = (Vec::new(), Vec::new(), String::new());
        for reg in row.sides {
            let step = self.step_of(reg, row.bits).unwrap_or_default();
            let value = self.line_of(reg, false).0[0].clone();
            let mut end = value.clone();
            if step != 0 {
                let far = step * (WARP as i64 - 1);
                end = self.text.value(format!("add {ty} {value}, {far}"));
                // A row that wraps around between them says nothing.
                let order = match (row.signed, step > 0) {
                    (true, true) => "sge",
                    (true, false) => "sle",
                    (false, true) => "uge",
                    (false, false) => "ule",
                };
                rises = self.text.value(format!("icmp {order} {ty} {end}, {value}"));
            }
            first.push(value);
            last.push(end);
        }
        let holds = [first, last].map(|ends| {
            let [a, b] = &ends[..] else { unreachable!("two sides") };
            self.text.value(format!("icmp {} {ty} {a}, {b}", row.relation))
        });
        let same = self.text.value(format!("icmp eq i1 {}, {}", holds[0], holds[1]));
        let [first, _] = holds;
        (self.text.value(format!("and i1 {same}, {rises}")), first)
    }

    /// The lanes in which the comparison holds.
    pub(super) fn holding_of(&mut self, row: &Row) -> Vec<String> {
        let [a, b] = row.sides.map(|reg| self.lanes_of(reg, false));
        let ty = self.form().int(row.bits);
        a.iter()
            .zip(&b)
            .map(|(a, b)| self.text.value(format!("icmp {} {ty} {a}, {b}", row.relation)))
            .collect()
    }
}
