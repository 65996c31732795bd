//! Loops that lanes leave at different turns and in which each loads from places of its own: rows of a sparse matrix, neighbours in a graph.
//! There a vector gains nothing, for each lane's words are loaded by themselves anyhow, and all lanes wait for the last one.
//! Lanes go through such a loop one after the other, in scalar code, where a CPU is good at it.
//!
//! They do so before the loop's own code, which sees to whoever is left: a lane whose turn comes to what scalar code does not do (memory that
//! was not looked up yet, an address that is wrong, a NaN that a CPU gives other bits) stands before that turn, as if it had not begun.
//! Nobody can tell in which order lanes went round, for such a loop stores nothing and all that it loads is weak.
//!
//! Here is which loops these are; `turns.rs` has a lane's turns, `pays.rs` whether warps take that way and where lanes go on.

use std::collections::{BTreeMap, BTreeSet};

use crate::isa::lanes::Width;
use crate::program::{Address, Inst, Linear, Op, Ordering, Reg, Register, Role, Space};

use super::super::compute::bits_of;
use super::super::plan::{Exit, Kind, Stick};
use super::place::Moved;
use super::{Emit, LANES, Node};

/// Longer loops would take long to compile once more.
const MOST_INSTRUCTIONS: usize = 64;
/// Units of a loop.
const MOST_UNITS: usize = 16;
/// Bytes between the first and the last of offsets that are looked at together.
const SPAN: u64 = 1 << 12;

/// A loop that lanes may go through one by one.
pub(super) struct Loop {
    pub(super) head: Node,
    /// Those that a turn goes through, the head first; none is the head of another loop.
    pub(super) units: Vec<Node>,
    /// Where lanes go that are done.
    pub(super) exits: Vec<Node>,
    /// Registers that a turn reads as they were before, and those of lanes that it writes and somebody wants at the head or behind.
    pub(super) carried: Vec<Reg>,
    pub(super) written: Vec<Reg>,
    /// Registers that it writes, all of them.
    pub(super) own: Vec<Reg>,
    /// Where in memory the numbers of a register's lanes are meanwhile.
    pub(super) places: BTreeMap<Register, usize>,
    pub(super) loads: Vec<Look>,
}

/// Loads of a unit by one register that are looked at together, before the first.
pub(super) struct Look {
    pub(super) unit: Node,
    /// As places in their block.
    pub(super) first: usize,
    pub(super) members: Vec<usize>,
    pub(super) register: Option<Reg>,
    pub(super) space: Space,
    /// The least offset, how far all of them reach from there, and how many bytes each loads.
    pub(super) least: i64,
    pub(super) reach: u64,
    pub(super) bytes: u64,
    /// A number for all lanes and one of the lane's, whose sum the register is.
    pub(super) sum: Option<(Reg, Reg)>,
    pub(super) multiple: Multiple,
}

/// When it is found out that loads are at multiples of their length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Multiple {
    Certain,
    /// Once for all lanes; once for each; in each turn.
    OfAll,
    OfLane,
    OfTurn,
}

impl Loop {
    pub(super) fn place_of(&self, register: Register) -> Option<usize> {
        self.places.get(&register).copied()
    }
    pub(super) fn is_own(&self, register: Register) -> bool {
        self.own.iter().any(|reg| reg.number == register)
    }
}

impl Emit<'_> {
    /// Makes the code in which lanes go through a loop one by one, if one begins with this unit for which that may pay.
    pub(super) fn one_by_one(&mut self, head: Node) {
        self.unit = head;
        let Some(this) = self.loop_of(head) else { return };
        let (lines, sites) = (std::mem::take(&mut self.text.lines), self.sites.len());
        let made = self.through(&this);
        let lines = std::mem::replace(&mut self.text.lines, lines);
        match made {
            Some(()) => self.text.lines.push_str(&lines),
            None => {
                self.sites.truncate(sites);
                self.alone.remove(&head);
                self.alone_sites.retain(|_, site| *site < sites);
            }
        }
    }

    pub(super) fn insts_of(&self, unit: Node) -> &[Inst] {
        let this = &self.plan.units[unit as usize];
        &self.input.body.blocks[this.block as usize].insts[this.insts.clone()]
    }

    fn loop_of(&self, head: Node) -> Option<Loop> {
        let units = self.units_of(head)?;
        let mut exits = BTreeSet::new();
        let mut parts = false;
        for &unit in &units {
            let exit = &self.plan.units[unit as usize].exit;
            let mut leaves = false;
            for to in self.ways_on(unit) {
                if !units.contains(&to) {
                    // Others than those that come here may wait before the loop.
                    leaves = true;
                    if to < head {
                        return None;
                    }
                    exits.insert(to);
                }
            }
            parts |= leaves
                && matches!(exit, Exit::Branch { guard, divides: true, .. } if !self.kind(guard.reg.number).is_line());
        }
        let is_made = |unit: &Node| {
            let this = &self.plan.units[*unit as usize];
            this.stick == Stick::Never && !self.plan.streams.contains(unit) && !self.pauses.contains_key(unit)
        };
        if !parts || !units.iter().all(is_made) || !self.is_masked(head) {
            return None;
        }
        let insts = || units.iter().flat_map(|&unit| self.insts_of(unit));
        if insts().count() > MOST_INSTRUCTIONS || !insts().all(|inst| self.goes_alone(inst)) {
            return None;
        }
        if self.is_entered_inside(&units) {
            return None;
        }
        let mut own: Vec<Reg> = Vec::new();
        let mut read: Vec<Reg> = Vec::new();
        for inst in insts() {
            inst.op.regs(|&reg, role| {
                let list = if role == Role::Def { &mut own } else { &mut read };
                if !list.iter().any(|its| its.number == reg.number) {
                    list.push(reg);
                }
            });
        }
        for &unit in &units {
            if let Exit::Branch { guard, .. } = &self.plan.units[unit as usize].exit
                && !read.iter().any(|its| its.number == guard.reg.number)
            {
                read.push(guard.reg);
            }
        }
        let is_vector = |reg: &Reg| matches!(self.kind(reg.number), Kind::Vector);
        let known = |reg: &Reg| reg.width != Width::B128 && (is_vector(reg) || self.kind(reg.number).is_line());
        let at_head = |reg: &Reg| self.plan.live[head as usize].has(reg.number);
        let behind = |reg: &Reg| exits.iter().any(|&to| self.plan.live[to as usize].has(reg.number));
        let is_own = |reg: &Reg| own.iter().any(|its| its.number == reg.number);
        let mut carried: Vec<Reg> = read
            .iter()
            .copied()
            .filter(|reg| at_head(reg) || !is_own(reg))
            .collect();
        for reg in own.iter().filter(|reg| at_head(reg)) {
            if !carried.iter().any(|its| its.number == reg.number) {
                carried.push(*reg);
            }
        }
        let written: Vec<Reg> = own.iter().copied().filter(|reg| at_head(reg) || behind(reg)).collect();
        // What is one number for the warp is so where lanes make their turns together.
        let right = own.iter().chain(&read).all(known)
            && written.iter().all(is_vector)
            && written.iter().all(|reg| reg.width != Width::Pred)
            && carried
                .iter()
                .all(|reg| reg.width != Width::Pred || self.is_one_number(*reg));
        if !right || self.follows_what_it_loads(&units, &own) {
            return None;
        }
        let mut loads: Vec<Look> = units.iter().flat_map(|&unit| self.looks_of(unit)).collect();
        if !loads.iter().any(|look| look.register.as_ref().is_some_and(is_vector)) {
            return None;
        }
        let mut places = BTreeMap::new();
        let mut end = 0;
        for reg in carried.iter().chain(&written) {
            if (is_own(reg) || !self.is_one_number(*reg)) && !places.contains_key(&reg.number) {
                places.insert(reg.number, end);
                end += bits_of(reg.width)? as usize / 8 * LANES as usize;
            }
        }
        for look in &mut loads {
            look.sum = look.register.and_then(|reg| self.sum_of(look, reg, &own));
            look.multiple = self.multiple_of(look, &units);
        }
        Some(Loop {
            head,
            units,
            exits: exits.into_iter().collect(),
            carried,
            written,
            own,
            places,
            loads,
        })
    }

    /// Where lanes go on from a unit in code that is made.
    pub(super) fn ways_on(&self, unit: Node) -> Vec<Node> {
        let mut ways = Vec::new();
        self.plan.units[unit as usize].successors(|to| {
            if !self.is_unseen(unit, to) && !ways.contains(&to) {
                ways.push(to);
            }
        });
        ways
    }

    /// Whether a way from a unit leads where no code is made.
    pub(super) fn is_unseen(&self, unit: Node, to: Node) -> bool {
        let at = match &self.plan.units[unit as usize].exit {
            Exit::Branch { at, .. } => *at,
            Exit::None | Exit::To(_) => None,
        };
        Some(to) == at || self.plan.is_stuck(to) || self.plan.cold[to as usize]
    }

    /// The units of a loop that begins with this one, if it has no loop inside.
    fn units_of(&self, head: Node) -> Option<Vec<Node>> {
        let units = &self.plan.units;
        let mut last = None;
        for unit in (head..units.len() as Node).take(MOST_UNITS) {
            if self.ways_on(unit).contains(&head) {
                last = Some(unit);
            }
        }
        // Those from which the way leads back to the head, and to which it has led from there.
        let last = last?;
        let mut back = BTreeSet::from([head]);
        let mut there = BTreeSet::from([head]);
        for _ in head..=last {
            for unit in head..=last {
                let ways = self.ways_on(unit);
                if ways.iter().any(|to| back.contains(to)) {
                    back.insert(unit);
                }
                if there.contains(&unit) {
                    there.extend(ways.into_iter().filter(|to| (head..=last).contains(to)));
                }
            }
        }
        let inside: Vec<Node> = (head..=last)
            .filter(|unit| back.contains(unit) && there.contains(unit))
            .collect();
        let goes_back = |&unit: &Node| {
            let ways = self.ways_on(unit);
            ways.iter().any(|to| *to != head && *to <= unit && inside.contains(to))
        };
        let ends = |&unit: &Node| matches!(units[unit as usize].exit, Exit::None);
        (!inside.iter().any(|unit| goes_back(unit) || ends(unit))).then_some(inside)
    }

    /// Whether a loop is entered elsewhere than at its head.
    fn is_entered_inside(&self, inside: &[Node]) -> bool {
        let outside = (0..self.plan.units.len() as Node).filter(|unit| !inside.contains(unit));
        let mut ways = outside.flat_map(|unit| self.ways_on(unit));
        ways.any(|to| inside[1..].contains(&to))
    }

    /// Whether scalar code may carry out an instruction; [`Emit::through`] finds out of operations.
    fn goes_alone(&self, inst: &Inst) -> bool {
        let known = match &inst.op {
            Op::Compute { .. } => true,
            Op::Load {
                address,
                element,
                ordering: Ordering::Weak,
                dst,
                ..
            } => {
                let narrow = address.register.is_some_and(|reg| reg.width == Width::B32);
                let known = match address.space {
                    Space::Generic | Space::Global | Space::Const => !narrow,
                    Space::Shared => true,
                    Space::Local | Space::Param => false,
                };
                known && Moved::of(*element, dst.len(), false).is_some()
            }
            _ => false,
        };
        known && inst.guard.is_none()
    }

    /// A register that is one number for all lanes.
    pub(super) fn is_one_number(&self, reg: Reg) -> bool {
        let kind = self.kind(reg.number);
        matches!(kind, Kind::Line { step: 0, .. }) && self.bases_of(reg.number) == 1
    }

    /// The loads of a unit, those together that find memory by one register at the same multiples of their length.
    fn looks_of(&self, unit: Node) -> Vec<Look> {
        let this = &self.plan.units[unit as usize];
        let mut looks: Vec<Look> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for at in this.insts.clone() {
            let inst = &self.input.body.blocks[this.block as usize].insts[at];
            if let Op::Load {
                address, element, dst, ..
            } = &inst.op
                && let Some(moved) = Moved::of(*element, dst.len(), false)
            {
                let bytes = moved.bytes();
                let of = open.iter().copied().find(|&number| {
                    let look: &Look = &looks[number];
                    let same = look.register.map(|reg| reg.number) == address.register.map(|reg| reg.number);
                    let apart = address.offset.abs_diff(look.least);
                    same && look.space == address.space
                        && look.bytes == bytes
                        && apart.is_multiple_of(bytes)
                        && apart < SPAN
                });
                match of {
                    Some(number) => {
                        let look = &mut looks[number];
                        let ends = [
                            look.least.saturating_add(look.reach as i64),
                            address.offset.saturating_add(bytes as i64),
                        ];
                        let end = ends[0].max(ends[1]);
                        look.least = look.least.min(address.offset);
                        look.reach = (end - look.least) as u64;
                        look.members.push(at);
                    }
                    None => {
                        open.push(looks.len());
                        looks.push(Look {
                            unit,
                            first: at,
                            members: vec![at],
                            register: address.register,
                            space: address.space,
                            least: address.offset,
                            reach: bytes,
                            bytes,
                            sum: None,
                            multiple: Multiple::OfTurn,
                        });
                    }
                }
            }
            inst.op.regs(|reg, role| {
                if role == Role::Def {
                    open.retain(|&number| looks[number].register.is_none_or(|its| its.number != reg.number));
                }
            });
        }
        looks
    }

    /// The last instruction of a unit before one that writes a register, as its place in the block.
    pub(super) fn writer_of(&self, unit: Node, register: Register, before: usize) -> Option<usize> {
        let this = &self.plan.units[unit as usize];
        let insts = &self.input.body.blocks[this.block as usize].insts;
        (this.insts.start..before)
            .rev()
            .find(|&at| writes(&insts[at], register))
    }

    /// The number for all lanes and the one of a lane whose sum an address is, as for `array[i]`.
    fn sum_of(&self, look: &Look, reg: Reg, own: &[Reg]) -> Option<(Reg, Reg)> {
        let at = self.writer_of(look.unit, reg.number, look.first)?;
        let block = self.plan.units[look.unit as usize].block as usize;
        let Op::Compute { op, src, .. } = &self.input.body.blocks[block].insts[at].op else {
            return None;
        };
        let (Linear::Add, &[a, b]) = (op.linear()?, &src[..]) else {
            return None;
        };
        let same = |reg: Reg| self.is_one_number(reg) && !own.iter().any(|its| its.number == reg.number);
        // It is asked for when the load is about to be carried out.
        let stays = |reg: Reg| {
            let last = self.writer_of(look.unit, reg.number, look.first);
            last.is_none_or(|last| last < at)
        };
        match (same(a), same(b)) {
            (true, false) if stays(b) => Some((a, b)),
            (false, true) if stays(a) => Some((b, a)),
            _ => None,
        }
    }

    fn multiple_of(&self, look: &Look, units: &[Node]) -> Multiple {
        let address = Address {
            space: look.space,
            register: look.register,
            offset: look.least,
        };
        if self.multiple(&address, (look.bytes, look.least)).is_none() {
            return Multiple::Certain;
        }
        let Some(reg) = look.register else {
            return Multiple::OfTurn;
        };
        let known = |reg: Reg| {
            let facts = self.input.body.facts.get(reg.number as usize);
            facts.is_some_and(|facts| u32::from(facts.align) >= look.bytes.trailing_zeros())
        };
        if let Some((_, own)) = look.sum {
            return if known(own) { Multiple::OfAll } else { Multiple::OfTurn };
        }
        // It grows by multiples, if at all.
        let grows = |inst: &Inst| match &inst.op {
            Op::Compute { op, src, .. } => {
                let adds = matches!(op.linear(), Some(Linear::Add)) && src.iter().any(|its| its.number == reg.number);
                adds && src.iter().all(|&its| its.number == reg.number || known(its))
            }
            _ => false,
        };
        let mut insts = units.iter().flat_map(|&unit| self.insts_of(unit));
        match insts.all(|inst| !writes(inst, reg.number) || grows(inst)) {
            true => Multiple::OfLane,
            false => Multiple::OfTurn,
        }
    }

    /// Whether a turn loads from where an earlier turn's load has sent it, as in chains and searches: there a lane does nothing but wait for
    /// memory, and a warp waits for all its lanes at once.
    fn follows_what_it_loads(&self, units: &[Node], own: &[Reg]) -> bool {
        let insts = || units.iter().flat_map(|&unit| self.insts_of(unit));
        let spread = |registers: &mut BTreeSet<Register>, from_loads: bool| loop {
            let before = registers.len();
            for inst in insts() {
                let mut depends = from_loads && matches!(inst.op, Op::Load { .. });
                inst.op
                    .regs(|reg, role| depends |= role == Role::Use && registers.contains(&reg.number));
                if depends {
                    inst.op.regs(|reg, role| {
                        if role == Role::Def {
                            registers.insert(reg.number);
                        }
                    });
                }
            }
            if registers.len() == before {
                return;
            }
        };
        let at_head = |reg: Register| self.plan.live[units[0] as usize].has(reg);
        let mut loaded = BTreeSet::new();
        spread(&mut loaded, true);
        // What not every turn writes, where what was loaded decides.
        let decides = |unit: &Node| match &self.plan.units[*unit as usize].exit {
            Exit::Branch { guard, .. } => {
                let stay = self.ways_on(*unit).iter().filter(|to| units.contains(to)).count();
                stay > 1 && loaded.contains(&guard.reg.number)
            }
            Exit::None | Exit::To(_) => false,
        };
        if units.iter().any(decides) {
            for &unit in units.iter().filter(|unit| self.is_passed_by(**unit, units)) {
                let insts = self.insts_of(unit);
                let written = own
                    .iter()
                    .filter(|reg| insts.iter().any(|inst| writes(inst, reg.number)));
                loaded.extend(written.map(|reg| reg.number));
            }
            spread(&mut loaded, true);
        }
        let carried = own
            .iter()
            .filter(|reg| at_head(reg.number) && loaded.contains(&reg.number));
        let mut follows: BTreeSet<Register> = carried.map(|reg| reg.number).collect();
        spread(&mut follows, false);
        let mut any = insts().filter_map(|inst| match &inst.op {
            Op::Load { address, .. } => address.register,
            _ => None,
        });
        any.any(|reg| follows.contains(&reg.number))
    }

    /// Whether turns of a loop may go past a unit.
    fn is_passed_by(&self, unit: Node, units: &[Node]) -> bool {
        let (head, mut reached, mut work) = (units[0], BTreeSet::new(), vec![units[0]]);
        while let Some(at) = work.pop().filter(|_| unit != head) {
            for to in self.ways_on(at) {
                if to == head {
                    return true;
                }
                if to != unit && units.contains(&to) && reached.insert(to) {
                    work.push(to);
                }
            }
        }
        false
    }
}

fn writes(inst: &Inst, register: Register) -> bool {
    let mut any = false;
    inst.op
        .regs(|reg, role| any |= role == Role::Def && reg.number == register);
    any
}
