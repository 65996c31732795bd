//! Accesses of one unit at different offsets from one register: whether all of them may go where they go is asked once, before
//! the first. Code then runs without a look, up to the last of them; where the answer is no, the interpreter carries out the whole
//! stretch, whose accesses know what is wrong, or learn where memory is.
//!
//! All members are carried out by the same lanes, for they have no guards and a unit has no branches: so the answer is no where
//! one of them faults, and hardly ever elsewhere.

use std::ops::{Range, RangeInclusive};

use crate::isa::lanes::Width;
use crate::program::{Address, Inst, Op, Ordering, Reg, Role, Space};

use super::super::Pc;
use super::Emit;
use super::place::{Located, Member, Moved, Place, Spread};

/// Bytes between the first and the last place of a group's offsets; where nothing but the offsets says that they belong together.
const SPAN: i64 = 1 << 16;
const SPAN_ABSOLUTE: i64 = 1 << 12;

/// Accesses by one register, in one direction where that matters.
struct Group {
    register: Option<Reg>,
    space: Space,
    stores: bool,
    /// Addresses follow each other from lane to lane by so much.
    line: Option<u64>,
    /// Offsets from the least to the end of the last, for one lane.
    offsets: Range<i64>,
    /// The longest of the accesses and its offset: what is a multiple for it is one for all.
    longest: (u64, i64),
    members: Vec<usize>,
    /// Where the question can be asked: the register is not written from there to the last member.
    opens: usize,
}

/// An access that may be a member.
struct Access<'a> {
    address: &'a Address,
    moved: Moved,
}

impl Emit<'_> {
    fn access<'b>(&self, inst: &'b Inst) -> Option<Access<'b>> {
        let (address, moved) = match &inst.op {
            Op::Load {
                address,
                element,
                ordering: Ordering::Weak,
                dst,
                ..
            } => (address, Moved::of(*element, dst.len(), false)?),
            Op::Store {
                address,
                element,
                ordering: Ordering::Weak,
                src,
                ..
            } => (address, Moved::of(*element, src.len(), true)?),
            _ => return None,
        };
        let mut wide = false;
        inst.op.regs(|reg, _| wide |= reg.width == Width::B128);
        let known = matches!(
            address.space,
            Space::Generic | Space::Global | Space::Const | Space::Shared
        );
        (known && !wide && inst.guard.is_none()).then_some(Access { address, moved })
    }

    /// Groups of a unit's accesses, by the stretches of it that they need.
    fn groups(&self, block: usize, insts: Range<usize>) -> Vec<(RangeInclusive<usize>, Vec<Group>)> {
        let mut open: Vec<Group> = Vec::new();
        let mut closed: Vec<Group> = Vec::new();
        for at in insts.clone() {
            let inst = &self.input.body.blocks[block].insts[at];
            if let Some(access) = self.access(inst)
                && let Some(line) = self.line(access.address, access.moved)
                && !open.iter_mut().any(|group| group.takes(at, &access, line))
            {
                open.push(Group::of(at, &access, line));
            }
            inst.op.regs(|reg, role| {
                if role == Role::Def {
                    closed.extend(
                        open.extract_if(.., |group| group.register.is_some_and(|its| its.number == reg.number)),
                    );
                }
            });
        }
        closed.append(&mut open);
        closed.retain(|group| group.members.len() > 1);
        closed.sort_by_key(|group| group.opens);
        let mut stretches: Vec<(RangeInclusive<usize>, Vec<Group>)> = Vec::new();
        for group in closed {
            let last = group.members.last().copied().unwrap_or(group.opens);
            match stretches.last_mut() {
                Some((stretch, groups)) if group.opens <= *stretch.end() => {
                    *stretch = *stretch.start()..=last.max(*stretch.end());
                    groups.push(group);
                }
                _ => stretches.push((group.opens..=last, vec![group])),
            }
        }
        // What is known when a stretch begins is asked there.
        for (stretch, groups) in &mut stretches {
            for group in groups.iter_mut() {
                let before = &self.input.body.blocks[block].insts[*stretch.start()..group.opens];
                let written = |number| {
                    let mut any = false;
                    for inst in before {
                        inst.op
                            .regs(|reg, role| any |= role == Role::Def && reg.number == number);
                    }
                    any
                };
                if !group.register.is_some_and(|reg| written(reg.number)) {
                    group.opens = *stretch.start();
                }
            }
        }
        stretches
    }

    /// A unit's instructions.
    pub(super) fn insts(&mut self, block: usize, insts: Range<usize>) {
        self.forget_indexed(0);
        let mut at = insts.start;
        for (stretch, groups) in self.groups(block, insts.clone()) {
            for before in at..*stretch.start() {
                self.inst_at(block, before);
            }
            at = *stretch.end() + 1;
            self.stretch(block, stretch, &groups);
        }
        for rest in at..insts.end {
            self.inst_at(block, rest);
        }
        self.settle();
    }

    fn inst_at(&mut self, block: usize, at: usize) {
        let inst = &self.input.body.blocks[block].insts[at];
        let here = self.mask.clone();
        self.may_wait = self.settle_before(inst);
        let indexed = self.indexed_of(inst);
        self.inst(inst, self.input.starts[block] + at as Pc);
        self.leaves_indexed(inst, indexed);
        (self.guarded, self.mask) = (false, here);
    }

    fn stretch(&mut self, block: usize, stretch: RangeInclusive<usize>, groups: &[Group]) {
        let mut doubts: Vec<(usize, String)> = Vec::new();
        let mut sites: Vec<Option<usize>> = vec![None; groups.len()];
        let start = self.input.starts[block];
        let indexed = self.indexed_found;
        for at in stretch.clone() {
            let mut bad = None;
            // The interpreter may go on from here.
            if groups.iter().any(|group| group.opens == at) {
                self.settle();
            }
            for (group, site) in groups.iter().zip(&mut sites).filter(|(group, _)| group.opens == at) {
                let Some(located) = self.ask(group) else {
                    continue;
                };
                *site = located.site;
                bad = self.or(bad, located.bad);
                for &member in &group.members {
                    let inst = &self.input.body.blocks[block].insts[member];
                    let Some(access) = self.access(inst) else { continue };
                    let sure = Member {
                        start: located.place.clone(),
                        delta: access.address.offset - group.offsets.start,
                        safe: located.safe.clone(),
                    };
                    self.members.insert(start + member as Pc, sure);
                }
                if matches!(located.place, Place::Lanes(_)) {
                    self.together.extend(self.side_by_side(block, &group.members));
                }
            }
            if let Some(bad) = bad {
                let (doubt, go) = (self.text.name("doubt"), self.text.name("go"));
                self.rarely(&bad, &doubt, &go);
                self.text.label(&go);
                doubts.push((at, doubt));
            }
            self.inst_at(block, at);
        }
        self.settle();
        let sure = self.text.name("sure");
        self.jump(&sure);
        for (at, label) in doubts {
            self.text.label(&label);
            let learn = groups.iter().zip(&sites).flat_map(|(group, &site)| {
                let members = group.members.iter().filter(move |&&member| member >= at);
                members.filter_map(move |&member| Some(((member - at) as u32, site? as u32)))
            });
            let mut learn: Vec<(u32, u32)> = learn.collect();
            for later in at..=*stretch.end() {
                let site = self.alone_sites.get(&(start + later as Pc));
                learn.extend(site.map(|&site| ((later - at) as u32, site as u32)));
            }
            learn.sort_unstable();
            self.steps(block, at..=*stretch.end(), learn);
            self.jump(&sure);
        }
        self.text.label(&sure);
        self.forget_indexed(indexed);
        self.members.clear();
        self.together.clear();
        self.loaded.clear();
    }

    /// Addresses of a group's least offset, and whether any access of the group goes where it may not, in any lane that runs.
    fn ask(&mut self, group: &Group) -> Option<Located> {
        let reach = (group.offsets.end - group.offsets.start) as u64;
        let address = Address {
            space: group.space,
            register: group.register,
            offset: group.offsets.start,
        };
        let multiple = self.multiple(&address, group.longest);
        let mut located = match group.line {
            Some(step) => {
                let reach = reach + step * (self.lanes_of_line(&address) - 1);
                self.locate_line(&address, (reach, multiple), step)?
            }
            None => self.locate_each(&address, (reach, multiple))?,
        };
        if let Place::Lines { around, .. } = &mut located.place {
            *around = (0, reach);
        }
        Some(located)
    }

    /// Where a member goes, an access of so many bytes, so far behind where its group begins.
    pub(super) fn member(&mut self, start: &Place, delta: i64, bytes: u64) -> Place {
        match start {
            Place::Lines { at, step, around } => {
                let at = at.iter();
                Place::Lines {
                    at: at.map(|at| self.text.value(format!("add i64 {at}, {delta}"))).collect(),
                    step: *step,
                    around: (delta as u64, around.1 - delta as u64 - bytes),
                }
            }
            Place::Lanes(spread) => Place::Lanes(Spread {
                base: self.text.value(format!("add i64 {}, {delta}", spread.base)),
                end: spread
                    .end
                    .as_ref()
                    .map(|end| self.text.value(format!("sub i64 {end}, {delta}"))),
                ..spread.clone()
            }),
            Place::Rows { .. } | Place::Near { .. } | Place::Butterflies { .. } => {
                unreachable!("groups ask no such thing")
            }
        }
    }
}

impl Group {
    fn of(at: usize, access: &Access<'_>, line: Option<u64>) -> Group {
        let (offset, bytes) = (access.address.offset, access.moved.bytes());
        Group {
            register: access.address.register,
            space: access.address.space,
            stores: access.moved.stores,
            line,
            offsets: offset..offset.saturating_add(bytes as i64),
            longest: (bytes, offset),
            members: vec![at],
            opens: at,
        }
    }

    /// Takes an access in, if it belongs here.
    fn takes(&mut self, at: usize, access: &Access<'_>, line: Option<u64>) -> bool {
        let (address, its) = (access.address, access.moved.bytes());
        let same = self.register.map(|reg| reg.number) == address.register.map(|reg| reg.number)
            && self.space == address.space
            && self.line == line
            && (self.stores == access.moved.stores || self.space == Space::Shared);
        let (bytes, offset) = self.longest;
        let apart = address.offset.wrapping_sub(offset) as u64;
        let in_step = apart & (its.min(bytes) - 1) == 0;
        let start = self.offsets.start.min(address.offset);
        let end = self.offsets.end.max(address.offset.saturating_add(its as i64));
        let span = if self.register.is_some() { SPAN } else { SPAN_ABSOLUTE };
        if !same || !in_step || end.checked_sub(start).is_none_or(|bytes| bytes > span) {
            return false;
        }
        self.offsets = start..end;
        if its > bytes {
            self.longest = (its, address.offset);
        }
        self.members.push(at);
        true
    }
}
