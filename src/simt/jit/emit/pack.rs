//! Registers of a warp that waits at a barrier of the block, or pauses: side by side, lines as their numbers. The windows of a
//! block's warps do not fit into the CPU's first cache, and these do.
//!
//! Each has a place of its own, the same at all barriers. So what a warp neither wants nor changes between two barriers stays where
//! it is: code that comes to a barrier writes what has been written since it was entered ([`Emit::changed_before`]), and no more.

use std::collections::{BTreeMap, BTreeSet};

use crate::isa::lanes::Width;
use crate::program::{Reg, Register, Role};

use super::super::compute::bits_of;
use super::super::plan::Kind;
use super::super::text::Form;
use super::{Emit, Node};

impl Emit<'_> {
    /// Gives registers their places, in bytes: all that a warp may want behind a barrier or a pause.
    pub(super) fn lay_out(&mut self) {
        let wanted: BTreeSet<Register> = self
            .packs
            .values()
            .chain(&self.pauses)
            .flat_map(|&next| self.plan.live[next as usize].iter())
            .collect();
        // Whole vectors first, so that all of them begin at multiples of their size.
        let size = |register: Register| match (self.kind(register), bits_of(self.info(register).width)) {
            (Kind::Line { .. }, _) => 8 * self.bases_of(register),
            (_, Some(bits @ 2..)) => bits as usize * 4,
            _ => 8,
        };
        let (vectors, others): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|&register| size(register) % 64 == 0);
        let mut at = 0;
        let mut kept = BTreeMap::new();
        for register in vectors.into_iter().chain(others) {
            kept.insert(register, at);
            at += size(register);
        }
        self.saved = at.next_multiple_of(64);
        self.kept = kept;
    }

    /// Registers that may have been written since the code was entered, when a unit begins.
    pub(super) fn changed_before(&self) -> Vec<BTreeSet<Register>> {
        let units = &self.plan.units;
        let mut changed = vec![BTreeSet::new(); units.len()];
        let mut work: Vec<Node> = (0..units.len() as Node).rev().collect();
        while let Some(number) = work.pop() {
            let unit = &units[number as usize];
            let mut after = changed[number as usize].clone();
            for inst in &self.input.body.blocks[unit.block as usize].insts[unit.insts.clone()] {
                inst.op.regs(|reg, role| {
                    if role == Role::Def && self.kept.contains_key(&reg.number) {
                        after.insert(reg.number);
                    }
                });
            }
            unit.successors(|to| {
                let there = &mut changed[to as usize];
                if !after.is_subset(there) {
                    there.extend(&after);
                    work.push(to);
                }
            });
        }
        changed
    }

    /// All lanes of the warp wait at a unit, a barrier or one before which it pauses, and will go on at the next one.
    pub(super) fn pack(&mut self, (label, unit): (char, Node), next: Node) {
        (self.unit, self.full, self.mask, self.guarded) = (unit, true, None, false);
        self.text.label(&format!("{label}{unit}"));
        let live = &self.plan.live[next as usize];
        let changed = self.changed[unit as usize].iter().copied();
        let changed: Vec<Register> = changed.filter(|&register| live.has(register)).collect();
        self.keep(&changed);
        self.waits(unit, next);
    }

    /// Writes registers of all lanes to their places, those that have one.
    pub(super) fn keep(&mut self, registers: &[Register]) {
        let kept = registers
            .iter()
            .filter_map(|&register| Some((register, *self.kept.get(&register)?)));
        let kept: Vec<(Register, usize)> = kept.collect();
        if kept.is_empty() {
            return;
        }
        for (register, at) in kept {
            let reg = self.info(register);
            match self.kind(register) {
                Kind::Line { .. } => {
                    let bits = line_bits(reg);
                    for (number, value) in self.line_of(reg, true).0.iter().enumerate() {
                        let to = self.place("%saved", at + 8 * number);
                        self.text.line(format!("store i{bits} {value}, ptr {to}"));
                    }
                }
                _ => {
                    let values = self.lanes_of(reg, true);
                    self.store_lanes("%saved", at, reg.width, &values);
                }
            }
        }
    }

    /// The warp goes on at a unit behind a barrier; or its registers go to the window and it leaves.
    pub(super) fn unpack(&mut self, unit: Node) {
        self.leaves.insert(unit);
        for (label, to) in [('K', 'F'), ('U', 'X')] {
            self.text.label(&format!("{label}{unit}"));
            self.fetch(unit);
            self.jump(&format!("{to}{unit}"));
        }
    }

    /// Registers that a unit wants come from their places.
    fn fetch(&mut self, unit: Node) {
        let live: Vec<Register> = self.plan.live[unit as usize].iter().collect();
        for register in live {
            let Some(&at) = self.kept.get(&register) else { continue };
            let reg = self.info(register);
            self.declare(register);
            let values = self.kept_at(reg, at);
            match self.kind(register) {
                Kind::Line { .. } => self.write_line(reg, &values),
                _ => self.take_lanes(reg, &values),
            }
        }
    }

    /// The numbers of a line, or all lanes, from the place of a register.
    fn kept_at(&mut self, reg: Reg, at: usize) -> Vec<String> {
        if !self.kind(reg.number).is_line() {
            return self.load_lanes("%saved", at, reg.width);
        }
        let bits = line_bits(reg);
        (0..self.bases_of(reg.number))
            .map(|number| {
                let from = self.place("%saved", at + 8 * number);
                self.text.value(format!("load i{bits}, ptr {from}"))
            })
            .collect()
    }

    /// A register of lanes that leave before a unit: the numbers of a line, or all lanes. What has not been written since code was
    /// entered is in its place still: it comes from there, so that code does not carry along what it has no use for.
    pub(super) fn leaving(&mut self, reg: Reg, unit: Node) -> Vec<String> {
        let changed = self.changed.get(unit as usize);
        let is_kept = changed.is_some_and(|changed| !changed.contains(&reg.number));
        match self.kept.get(&reg.number).copied().filter(|_| is_kept) {
            Some(at) => {
                let values = self.kept_at(reg, at);
                let form = match self.kind(reg.number).is_line() {
                    true => Form::One,
                    false => self.form(),
                };
                match self.is_lazy(reg) {
                    true => values.iter().map(|value| self.canonical(form, value)).collect(),
                    false => values,
                }
            }
            None => self.numbers_of(reg),
        }
    }
}

/// A line of predicates is one bit.
fn line_bits(reg: Reg) -> u32 {
    match reg.width {
        Width::Pred => 1,
        width => bits_of(width).unwrap_or(32),
    }
}
