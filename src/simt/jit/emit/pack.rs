//! Registers of a warp that waits at a barrier of the block, or pauses: side by side, lines as their numbers. The windows of a
//! block's warps do not fit into the CPU's first cache, and these do.
//!
//! Each has a place of its own, the same at all barriers. So what a warp neither wants nor changes between two barriers stays where
//! it is: code that comes to a barrier writes what has been written since it was entered ([`Emit::changed_before`]), and no more.

use std::collections::{BTreeMap, BTreeSet};

use crate::isa::lanes::Width;
use crate::program::{Reg, Register, Role};

use super::super::compute::bits_of;
use super::super::moves::{Kept, Move, Stand};
use super::super::plan::{Kind, Parts};
use super::ahead::LASTS;
use super::{Emit, LANES, Node};

/// So many registers of lanes, counted once for each unit through which they live, are many.
const MANY_LIVE: usize = 400;

impl Emit<'_> {
    /// Gives registers their places, in bytes: first those that a warp may want behind a barrier or a pause, then what else it may
    /// come in or leave with.
    pub(super) fn lay_out(&mut self) {
        let often: BTreeSet<Register> = self
            .packs
            .values()
            .chain(self.pauses.values())
            .chain(self.reds.keys())
            .chain(self.reds.values())
            .flat_map(|&next| self.plan.live[next as usize].iter())
            .collect();
        let mut seldom: BTreeSet<Register> = self.plan.live.iter().flat_map(|live| live.iter()).collect();
        seldom.retain(|register| !often.contains(register));
        let size = |register: Register| self.size(self.info(register));
        let mut at = 0usize;
        let mut kept = BTreeMap::new();
        for registers in [often, seldom] {
            // Whole vectors first, so that all of them begin at multiples of their size.
            let (vectors, others): (Vec<_>, Vec<_>) =
                registers.into_iter().partition(|&register| size(register) % 64 == 0);
            at = at.next_multiple_of(64);
            for register in vectors.into_iter().chain(others) {
                kept.insert(register, at);
                at += size(register);
            }
        }
        self.kept = kept;
        self.lasts_at = at.next_multiple_of(8);
        let lasts = if self.keeps_lasts() { LASTS } else { 0 };
        self.kept_bytes = (self.lasts_at + 8 * lasts).next_multiple_of(64);
        self.saved = self.kept_bytes;
    }

    /// Where many registers live through many units, all that LLVM could do is to bring each of them into its frame and back, at the
    /// head of each unit and at each way out: it would take seconds. There registers of lanes stay at their places all the time.
    pub(super) fn choose_homes(&mut self) {
        let places = |register: Register| {
            let reg = self.info(register);
            let whole = !self.kind(register).is_line() && self.size(reg).is_multiple_of(64);
            whole && reg.width != Width::Pred && self.kept.contains_key(&register)
        };
        let made = self.plan.live.iter().zip(&self.plan.cold);
        let count: usize = (made.filter(|(_, cold)| !**cold))
            .map(|(live, _)| live.iter().filter(|&register| places(register)).count())
            .sum();
        if count >= MANY_LIVE {
            self.homes = self.kept.keys().copied().filter(|&register| places(register)).collect();
        }
    }

    /// They are found there, for the warp that runs.
    pub(super) fn enter_homes(&mut self) {
        for register in self.homes.clone() {
            let (at, reg) = (self.kept[&register], self.info(register));
            let bytes = self.size(reg) / self.parts;
            for part in 0..self.parts {
                let from = at + part * bytes;
                self.text.line(format!(
                    "%r{register}.{part} = getelementptr inbounds i8, ptr %saved, i64 {from}"
                ));
            }
        }
    }

    /// What moves at each unit where lanes come in or leave.
    pub(super) fn stands(&self) -> Vec<Stand> {
        let mut stands = vec![Stand::default(); self.plan.units.len()];
        for &unit in &self.stands {
            let live = self.plan.live[unit as usize].iter();
            let moves = live.filter_map(|register| Some(self.moved(self.info(register), *self.kept.get(&register)?)));
            stands[unit as usize] = Stand {
                pc: self.plan.units[unit as usize].pc,
                moves: moves.collect(),
            };
        }
        stands
    }

    /// Finds the registers that may have been written since the code was entered, by unit. Those that are written before a loop with a barrier and
    /// not in it go to their places where lanes come into the loop: they would at the barrier, in every turn.
    pub(super) fn find_changed(&mut self) {
        let waits = |from: Node, to: Node| self.packs.range(to..=from).next().is_some();
        let loops = self.plan.loops.keys();
        let heads: BTreeSet<Node> = (loops.filter(|&&(from, to)| to <= from && waits(from, to)))
            .map(|&(_, to)| to)
            .collect();
        let all = self.changed_before(|_, _| {});
        let inside = self.changed_before(|to, changed| {
            if heads.contains(&to) {
                changed.clear();
            }
        });
        let settled = heads.into_iter().map(|head| {
            let (all, inside) = (&all[head as usize], &inside[head as usize]);
            let live = &self.plan.live[head as usize];
            let these = all.difference(inside).copied();
            (head, these.filter(|&register| live.has(register)).collect())
        });
        let settled: BTreeMap<Node, BTreeSet<Register>> = settled.collect();
        self.changed = self.changed_before(|to, changed| {
            if let Some(these) = settled.get(&to) {
                changed.retain(|register| !these.contains(register));
            }
        });
        self.settled = settled;
    }

    /// Registers that may have been written since the code was entered, when a unit begins; `comes`: what of them counts where lanes come to a unit
    /// from one before it.
    fn changed_before(&self, comes: impl Fn(Node, &mut BTreeSet<Register>)) -> Vec<BTreeSet<Register>> {
        let units = &self.plan.units;
        let mut changed = vec![BTreeSet::new(); units.len()];
        let mut work: Vec<Node> = (0..units.len() as Node).rev().collect();
        while let Some(number) = work.pop() {
            let unit = &units[number as usize];
            // Behind a barrier all registers are at their places.
            if self.packs.contains_key(&number) || self.reds.contains_key(&number) {
                continue;
            }
            let mut after = changed[number as usize].clone();
            for inst in &self.input.body.blocks[unit.block as usize].insts[unit.insts.clone()] {
                inst.op.regs(|reg, role| {
                    if role == Role::Def && self.kept.contains_key(&reg.number) {
                        after.insert(reg.number);
                    }
                });
            }
            let mut come = |to: Node| {
                let to = self.plan.unit_of(to);
                let mut after = after.clone();
                if number < to {
                    comes(to, &mut after);
                }
                let there = &mut changed[to as usize];
                if !after.is_subset(there) {
                    there.extend(&after);
                    work.push(to);
                }
            };
            unit.successors(&mut come);
            self.passes.get(&number).copied().map(come);
        }
        changed
    }

    /// Lanes go from the current unit to a later one.
    pub(super) fn settles(&mut self, to: Node) {
        let to = self.plan.unit_of(to);
        let Some(these) = self.settled.get(&to).filter(|_| self.unit < to) else {
            return;
        };
        let these: Vec<Register> = these.iter().copied().collect();
        self.keep(&these);
    }

    /// All lanes of the warp wait at a unit, a barrier or one before which it pauses, and will go on at the next one.
    pub(super) fn pack(&mut self, (label, unit): (char, Node), next: Node) {
        (self.unit, self.full, self.mask, self.guarded) = (unit, true, None, false);
        self.text.label(&format!("{label}{unit}"));
        let live = &self.plan.live[next as usize];
        let changed = self.changed[unit as usize].iter().copied();
        let changed: Vec<Register> = changed.filter(|&register| live.has(register)).collect();
        self.keep(&changed);
        self.waits(unit, self.going_on(next));
    }

    /// Registers that lanes want before a unit, and that may have been written since the code was entered: others are at their places
    /// still, so that code does not carry along what it has no use for.
    pub(super) fn changed_at(&self, unit: Node) -> Vec<Register> {
        let live = &self.plan.live[unit as usize];
        let changed = self.changed[unit as usize].iter().copied();
        changed.filter(|&register| live.has(register)).collect()
    }

    /// Writes registers of all lanes to their places, those that have one and are not there.
    pub(super) fn keep(&mut self, registers: &[Register]) {
        let kept = registers
            .iter()
            .filter(|register| !self.homes.contains(register))
            .filter_map(|&register| Some((register, *self.kept.get(&register)?)));
        let kept: Vec<(Register, usize)> = kept.collect();
        if kept.is_empty() {
            return;
        }
        for (register, at) in kept {
            self.keep_at(self.info(register), at);
        }
    }

    /// All lanes of a register to a place; with any NaN.
    pub(super) fn keep_at(&mut self, reg: Reg, at: usize) {
        if self.kind(reg.number).is_line() {
            let bits = line_bits(reg);
            let kept = self.kept_bases_of(reg.number);
            for (number, value) in self.line_of(reg, true).0.iter().take(kept).enumerate() {
                let to = self.place("%saved", at + 8 * number);
                self.text.line(format!("store i{bits} {value}, ptr {to}"));
            }
            return;
        }
        let values = self.lanes_of(reg, true);
        self.store_lanes("%saved", at, reg.width, &values);
    }

    /// What is there: the numbers that are kept of a line, or parts.
    pub(super) fn kept_at(&mut self, reg: Reg, at: usize) -> Vec<String> {
        if !self.kind(reg.number).is_line() {
            return self.load_lanes("%saved", at, reg.width);
        }
        let bits = line_bits(reg);
        (0..self.kept_bases_of(reg.number))
            .map(|number| {
                let from = self.place("%saved", at + 8 * number);
                self.text.value(format!("load i{bits}, ptr {from}"))
            })
            .collect()
    }

    /// Registers that a unit wants come from their places.
    pub(super) fn fetch(&mut self, unit: Node) {
        let live: Vec<Register> = self.plan.live[unit as usize].iter().collect();
        for register in live {
            if self.homes.contains(&register) {
                continue;
            }
            let Some(&at) = self.kept.get(&register) else { continue };
            let reg = self.info(register);
            self.declare(register);
            let values = self.kept_at(reg, at);
            match self.kind(register).is_line() {
                true => self.write_line(reg, &values),
                false => self.take_lanes(reg, &values),
            }
        }
    }

    /// How a register moves between its slot and a place.
    pub(super) fn moved(&self, reg: Reg, at: usize) -> Move {
        let bytes = bits_of(reg.width).unwrap_or(32) / 8;
        let kept = match (self.kind(reg.number), reg.width) {
            (Kind::Line { .. }, Width::Pred) => Kept::Bit,
            (Kind::Line { step, parts, .. }, _) => match parts {
                Parts::One => Kept::Line {
                    bytes,
                    step,
                    lanes: LANES,
                },
                Parts::Rows { begins, .. } => Kept::Rows {
                    bytes,
                    step,
                    lanes: self.lanes,
                    begins,
                },
                Parts::Each { run } => Kept::Line {
                    bytes,
                    step,
                    lanes: self.lanes * u32::from(run),
                },
            },
            (_, Width::Pred) => Kept::Bits,
            _ => Kept::Lanes(bytes),
        };
        Move {
            slot: self.slot(reg.number) as u32,
            place: at as u32,
            kept,
            lazy: self.is_lazy(reg),
        }
    }

    /// Bytes that a register takes at its place.
    pub(super) fn size(&self, reg: Reg) -> usize {
        match (self.kind(reg.number), bits_of(reg.width)) {
            (Kind::Line { .. }, _) => 8 * self.kept_bases_of(reg.number),
            (_, Some(bits @ 2..)) => bits as usize * 4,
            _ => 8,
        }
    }
}

/// A line of predicates is one bit.
pub(super) fn line_bits(reg: Reg) -> u32 {
    match reg.width {
        Width::Pred => 1,
        width => bits_of(width).unwrap_or(32),
    }
}
