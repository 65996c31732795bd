//! Branches that compare where a lane stands in a row with a bound, as `if (i >= n) return` does. If the comparison comes to the same in the
//! first and in the last lane of a warp, it does in all between, unless the row wraps around: two comparisons of single numbers, where one of
//! vectors, whose bits have to be gathered, would say no more.
//!
//! Many kernels compare the thread's number with a constant, and branch by it behind barriers later on. Where neither can have changed, code compares
//! again: that takes less than to bring back the bits that were kept ([`super::super::compared`]).

use crate::isa::lanes::WARP;
use crate::program::{Guard, Op, Reg, Role};

use super::super::compared::{Comparison, compared_by};
use super::super::compute::bits_of;
use super::super::plan::{Kind, Parts};
use super::{Emit, Node};

impl Emit<'_> {
    /// What a guard says, if it is such a comparison: one that can be made again anywhere, or was computed in this unit, and nobody asks for the
    /// guard where lanes go.
    pub(super) fn row_of(&self, guard: Guard, to: [Node; 2]) -> Option<Comparison> {
        let anywhere = self.comparisons.get(&guard.reg.number).cloned();
        let row = anywhere.or_else(|| self.compared_here(guard, to))?;
        // Rows of 16 bits are rare, and that both ends are equal to the bound or not says nothing of those between.
        if row.bits == 16 || matches!(row.relation, "eq" | "ne") {
            return None;
        }
        let [x, y] = row.sides.map(|reg| self.step_of(reg, row.bits));
        // Of two that grow it would have to be asked whether their difference wraps around.
        ((x? == 0) != (y? == 0)).then_some(row)
    }

    fn compared_here(&self, guard: Guard, to: [Node; 2]) -> Option<Comparison> {
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
        let comparison = compared_by(&insts[at])?;
        let later = |reg| insts[at + 1..].iter().any(|inst| writes(&inst.op, reg));
        (!comparison.sides.into_iter().any(later)).then_some(comparison)
    }

    /// Lanes in which the guard of a branch holds.
    pub(super) fn branching(&mut self, guard: Guard) -> Vec<String> {
        let Some(comparison) = self.comparisons.get(&guard.reg.number).cloned() else {
            return self.holding(guard);
        };
        let lanes = self.holding_of(&comparison);
        if guard.negated { self.not(&lanes) } else { lanes }
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
    pub(super) fn is_alike(&mut self, row: &Comparison) -> (String, String) {
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
    pub(super) fn holding_of(&mut self, row: &Comparison) -> Vec<String> {
        let [a, b] = row.sides.map(|reg| self.lanes_of(reg, false));
        let ty = self.form().int(row.bits);
        a.iter()
            .zip(&b)
            .map(|(a, b)| self.text.value(format!("icmp {} {ty} {a}, {b}", row.relation)))
            .collect()
    }
}
