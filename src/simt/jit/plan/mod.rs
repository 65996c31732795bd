//! What is decided of a body before any code is made of it: where code is cut, which registers are one number for a warp,
//! where lanes may be elsewhere meanwhile.
//!
//! **Units.** Blocks are cut into *units* before and after every instruction at which lanes may have to leave the code for
//! the interpreter. A unit where they leave *sticks*: always (barriers, calls, exits), or perhaps (an operation whose
//! partners may be missing, a sum that must not wrap around). Where it turns out that none does, units become one.
//!
//! **Who is elsewhere.** Code runs the lanes that stand in the lowest unit first, as the interpreter does; the others are
//! *pending* at units further down. [`Plan::others`] says for each unit where that may be while it runs. It
//! follows from branches that divide lanes, and from nothing else: lanes that enter the code stand at one place, and where some stick, all
//! leave, for those are the lowest.
//!
//! **Registers.** A register whose value is the same in all lanes of the warp, or grows by a constant from lane to lane, is
//! kept as one number, that of lane 0: a *line*. Where a block's rows are shorter than a warp, but whole parts of it as
//! long as the CPU's vectors, it is one number a part. Such a number is right for the lanes that are at the same place. So
//! a register is no line if it is written while lanes that are elsewhere still want what it held.

mod kinds;
mod set;
mod units;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use crate::isa::Compute;
use crate::isa::lanes::Width;
use crate::program::facts::Shape;
use crate::program::{Body, End, Initial, Inst, Op, Reg, Register, Role, Space, Special};

use super::seen::Seen;
pub use kinds::{Begins, Kind, Parts, Rows};
use kinds::{given, initial_kind, widened};
pub use set::Set;
pub use units::{Exit, Node, Pc, Refusal, Stick, Unit, warm_instructions};
use units::{units, warm};

/// A body, ready to have code made of it.
pub struct Plan {
    pub units: Vec<Unit>,
    pub kinds: Vec<Kind>,
    /// Registers that a unit needs, those apart that have their value before the code runs or live in the window.
    pub live: Vec<Set>,
    /// The units where lanes may wait while a unit runs: others, further down.
    pub others: Vec<BTreeSet<Node>>,
    /// Units that whole warps come to with lanes missing, for those have ended elsewhere: few enough to be there for them as well.
    pub lacks: Vec<bool>,
    /// Units to which nobody was seen to come, of which no code is made.
    pub cold: Vec<bool>,
    /// Floats that arithmetic alone gives: which NaN they are is decided where somebody looks.
    pub lazy: Vec<bool>,
    /// Jumps back to a unit: the number of instructions that a turn of the loop has, and whether it may look at what others
    /// change.
    pub loops: HashMap<(Node, Node), (u32, bool)>,
    /// Units to which loops jump back that go through memory, all lanes side by side.
    pub streams: BTreeSet<Node>,
    /// Units inside of those.
    pub streaming: BTreeSet<Node>,
}

/// Pairs of places at which lanes may be at the same time are followed for so many units; a body that needs more is left to the interpreter.
const PATIENCE: usize = 1 << 20;
/// Instructions that are there a second time for warps of which lanes have ended, where half of the kernel is fewer.
const MOST_LACKING: usize = 128;

impl Plan {
    /// `starts` says where each block begins in the interpreter's code; parts have so many `lanes`. Of what nobody was `seen` to do no code is
    /// made.
    ///
    /// # Errors
    /// The body is too large, or too tangled.
    pub fn of(body: &Body, starts: &[Pc], (rows, lanes): (Rows, u32), seen: Option<&Seen>) -> Result<Plan, Refusal> {
        let warm = warm(body, seen);
        let units = units(body, starts, (seen, &warm))?;
        let registers = body.registers.len();
        let mut plan = Plan {
            live: Vec::new(),
            kinds: vec![Kind::Unknown; registers],
            others: vec![BTreeSet::new(); units.len()],
            lacks: vec![false; units.len()],
            cold: Vec::new(),
            lazy: vec![false; registers],
            loops: HashMap::new(),
            streams: BTreeSet::new(),
            streaming: BTreeSet::new(),
            units,
        };
        plan.liveness(body);
        plan.classify(body, (rows, lanes), &warm)?;
        plan.cold = plan.units.iter().map(|unit| !warm[unit.block as usize]).collect();
        plan.find_joins();
        plan.find_lacks();
        plan.find_lazy(body);
        plan.find_loops(body);
        plan.pass_entries_on();
        Ok(plan)
    }

    pub fn stuck(&self, unit: Node) -> Node {
        self.units.len() as Node + unit
    }

    /// Whoever comes to this unit ends, and need not wait for his turn.
    pub fn is_end(&self, node: Node) -> bool {
        self.units
            .get(node as usize)
            .is_some_and(|unit| unit.stick == Stick::Ends && matches!(unit.exit, Exit::None))
    }

    /// The unit at or before which a node stands.
    pub fn unit_of(&self, node: Node) -> Node {
        node % self.units.len() as Node
    }

    pub fn is_stuck(&self, node: Node) -> bool {
        node as usize >= self.units.len()
    }

    fn liveness(&mut self, body: &Body) {
        let registers = body.registers.len();
        let mut uses = vec![Set::new(registers); self.units.len()];
        let mut kills = vec![Set::new(registers); self.units.len()];
        let counts =
            |register: Register| !body.is_fixed(register) && body.registers[register as usize].width != Width::B128;
        for (number, unit) in self.units.iter().enumerate() {
            let (used, killed) = (&mut uses[number], &mut kills[number]);
            let mut touch = |register: Register, role: Role, guarded: bool| {
                if !counts(register) {
                    return;
                }
                match role {
                    Role::Use if !killed.has(register) => used.insert(register),
                    // Lanes that a guard leaves out keep what was there.
                    Role::Def if guarded && !killed.has(register) => used.insert(register),
                    Role::Def => killed.insert(register),
                    Role::Use => {}
                }
            };
            for inst in &body.blocks[unit.block as usize].insts[unit.insts.clone()] {
                if let Some(guard) = &inst.guard {
                    touch(guard.reg.number, Role::Use, false);
                }
                inst.op.regs(|reg, role| touch(reg.number, role, inst.guard.is_some()));
            }
            match &unit.exit {
                Exit::Branch { guard, .. } => touch(guard.reg.number, Role::Use, false),
                // What the interpreter reads at the end of a block that it ends itself.
                Exit::None => {
                    let block = &body.blocks[unit.block as usize];
                    if unit.insts.end == block.insts.len()
                        && let Some(register) = block.end.register()
                    {
                        touch(register, Role::Use, false);
                    }
                }
                Exit::To(_) => {}
            }
        }
        // What the interpreter goes on to after lanes have left the code.
        let beyond: Vec<Vec<Node>> = (0..self.units.len() as Node)
            .map(|unit| self.beyond(body, unit))
            .collect();
        let mut live = uses.clone();
        let mut before: Vec<Vec<Node>> = vec![Vec::new(); self.units.len()];
        for (unit, next) in beyond.iter().enumerate() {
            for &to in next {
                before[to as usize].push(unit as Node);
            }
        }
        let mut work: VecDeque<Node> = (0..self.units.len() as Node).rev().collect();
        let mut queued = vec![true; self.units.len()];
        while let Some(unit) = work.pop_front() {
            let at = unit as usize;
            queued[at] = false;
            let mut after = Set::new(registers);
            for &to in &beyond[at] {
                after.add(&live[to as usize]);
            }
            for register in kills[at].iter() {
                after.remove(register);
            }
            after.add(&uses[at]);
            if after != live[at] {
                live[at] = after;
                for &from in &before[at] {
                    if !std::mem::replace(&mut queued[from as usize], true) {
                        work.push_back(from);
                    }
                }
            }
        }
        self.live = live;
    }

    /// Units that follow, whoever runs them.
    fn beyond(&self, body: &Body, unit: Node) -> Vec<Node> {
        let mut next = Vec::new();
        let this = &self.units[unit as usize];
        this.successors(|to| next.push(to));
        let block = &body.blocks[this.block as usize];
        if matches!(this.exit, Exit::None) {
            if this.insts.end < block.insts.len() {
                next.push(unit + 1);
            } else if !matches!(block.end, End::Stop) {
                block.end.successors(|to| next.push(self.first_of(to)));
            }
        }
        next
    }

    fn first_of(&self, block: u32) -> Node {
        self.units.partition_point(|unit| unit.block < block) as Node
    }

    /// Kinds of registers, and who is elsewhere: each depends on the other.
    fn classify(&mut self, body: &Body, (rows, lanes): (Rows, u32), warm: &[bool]) -> Result<(), Refusal> {
        for (number, info) in body.registers.iter().enumerate() {
            self.kinds[number] = match info.initial {
                _ if info.width == Width::B128 => Kind::Window,
                Some(initial) => {
                    let shape = body.facts.get(number).map_or(Shape::Varying, |facts| facts.shape);
                    initial_kind(initial, info.width, shape, (rows, lanes))
                }
                None => Kind::Unknown,
            };
        }
        let mut divided = vec![false; self.units.len()];
        let mut demoted = HashSet::new();
        loop {
            self.kinds_of_all(body, lanes, (&demoted, warm));
            // Branches that divide lanes.
            let mut changed = false;
            for ((unit, others), divided) in self.units.iter().zip(&self.others).zip(&mut divided) {
                let divides = warm[unit.block as usize]
                    && match &unit.exit {
                        Exit::Branch {
                            guard,
                            taken,
                            fall,
                            at,
                            divides,
                        } => {
                            // Where lanes are apart already, all that they may do there is made.
                            let both = taken != fall && [*taken, *fall].iter().all(|to| Some(*to) != *at);
                            both && (*divides || !others.is_empty()) && !self.kinds[guard.reg.number as usize].is_line()
                        }
                        Exit::To(_) => {
                            matches!(unit.stick, Stick::Always | Stick::Ends)
                                && !unit.insts.is_empty()
                                && body.blocks[unit.block as usize].insts[unit.insts.start]
                                    .guard
                                    .is_some_and(|guard| !self.kinds[guard.reg.number as usize].is_line())
                        }
                        Exit::None => false,
                    };
                changed |= divides && !std::mem::replace(divided, true);
            }
            if changed {
                self.find_others(&divided)?;
            }
            // Lines that are written while others want what they held.
            let before = demoted.len();
            for (number, unit) in self.units.iter().enumerate() {
                if self.others[number].is_empty() {
                    continue;
                }
                for inst in &body.blocks[unit.block as usize].insts[unit.insts.clone()] {
                    inst.op.regs(|reg, role| {
                        if role == Role::Def
                            && self.kinds[reg.number as usize].is_line()
                            && self.is_wanted_elsewhere(number as Node, reg.number)
                        {
                            demoted.insert(reg.number);
                        }
                    });
                }
            }
            // Never written, but by what was never written itself: whatever it holds.
            for kind in &mut self.kinds {
                changed |= *kind == Kind::Unknown;
                if *kind == Kind::Unknown && demoted.len() == before {
                    *kind = Kind::Vector;
                }
            }
            if !changed && demoted.len() == before {
                break;
            }
        }
        // Operations that turned out to have nothing to wrap around, and those that whole warps do not leave for: each entry has its
        // price, and none is needed behind them.
        for number in 0..self.units.len() {
            let unit = &self.units[number];
            if unit.stick != Stick::Perhaps {
                continue;
            }
            let mut enters = false;
            if let Op::Compute { op, src, .. } = &body.blocks[unit.block as usize].insts[unit.insts.start].op {
                enters = self.may_wrap(body, *op, src).is_some();
                if !enters {
                    self.units[number].stick = Stick::Never;
                }
            }
            let block = self.units[number].block;
            if let Some(next) = self.units.get_mut(number + 1)
                && next.block == block
            {
                next.entry &= enters;
            }
        }
        let divided = self.join_units(body, &divided);
        if divided.iter().any(|&divided| divided) {
            self.find_others(&divided)?;
        }
        Ok(())
    }

    /// Units that nobody enters and nobody leaves at their beginning become part of the one before: what is known of a stretch of
    /// code holds up to its end. Gives the units that divide lanes, by their new numbers.
    fn join_units(&mut self, body: &Body, divided: &[bool]) -> Vec<bool> {
        let old = std::mem::take(&mut self.units);
        let mut numbers = Vec::with_capacity(old.len());
        let mut new_divided: Vec<bool> = Vec::new();
        for (number, unit) in (0..).zip(old) {
            let joins = self.units.last().is_some_and(|before| {
                let goes_on = matches!(before.exit, Exit::To(to) if to == number)
                    && matches!(before.stick, Stick::Never | Stick::Perhaps);
                goes_on && before.block == unit.block && unit.stick == Stick::Never && !unit.entry
            });
            match self.units.last_mut().filter(|_| joins) {
                Some(before) => {
                    before.insts.end = unit.insts.end;
                    before.exit = unit.exit;
                    if let Some(last) = new_divided.last_mut() {
                        *last = divided[number as usize];
                    }
                }
                None => {
                    self.units.push(unit);
                    new_divided.push(divided[number as usize]);
                }
            }
            numbers.push(self.units.len() as Node - 1);
        }
        for unit in &mut self.units {
            unit.exit = match unit.exit {
                Exit::None => Exit::None,
                Exit::To(to) => Exit::To(numbers[to as usize]),
                Exit::Branch {
                    guard, taken, fall, at, ..
                } => Exit::Branch {
                    guard,
                    taken: numbers[taken as usize],
                    fall: numbers[fall as usize],
                    at: at.map(|at| numbers[at as usize]),
                    divides: false,
                },
            };
        }
        for (unit, divided) in self.units.iter_mut().zip(&new_divided) {
            if let Exit::Branch { divides, .. } = &mut unit.exit {
                *divides = *divided;
            }
        }
        self.others = vec![BTreeSet::new(); self.units.len()];
        self.lacks = vec![false; self.units.len()];
        self.liveness(body);
        new_divided
    }

    /// Which operand of an operation that widens has to be looked at, lest it wraps around between lanes, and whether it counts
    /// as signed. Numbers of threads and lanes are too small for that.
    pub fn may_wrap(&self, body: &Body, op: Compute, src: &[Reg]) -> Option<(usize, bool)> {
        let found = widened(op.linear()?, |at| self.kinds[src[at].number as usize])?;
        let initial = body.registers[src[found.0].number as usize].initial;
        let small = matches!(initial, Some(Initial::Special(Special::Tid(_) | Special::Laneid)));
        (!small).then_some(found)
    }

    /// Whether lanes that may be elsewhere while `unit` runs want what a register holds.
    pub fn is_wanted_elsewhere(&self, unit: Node, register: Register) -> bool {
        self.others[unit as usize]
            .iter()
            .any(|&node| self.live[node as usize].has(register))
    }

    /// What is written where no code is made is proved when lanes come back.
    fn kinds_of_all(&mut self, body: &Body, lanes: u32, (demoted, warm): (&HashSet<Register>, &[bool])) {
        // Each register is what all its writes agree on; from the optimistic side, until nothing changes.
        let fixed = |register: Register| body.registers[register as usize].initial.is_some();
        for register in 0..self.kinds.len() as Register {
            if demoted.contains(&register) && !fixed(register) && self.kinds[register as usize] != Kind::Window {
                self.kinds[register as usize] = Kind::Vector;
            }
        }
        loop {
            let mut changed = false;
            let mut inst = |kinds: &mut Vec<Kind>, inst: &Inst| {
                let given = given(body, kinds, inst, lanes);
                let apart = inst
                    .guard
                    .is_some_and(|guard| !kinds[guard.reg.number as usize].is_line());
                inst.op.regs(|reg, role| {
                    if role != Role::Def {
                        return;
                    }
                    let at = reg.number as usize;
                    let mut new = if apart { Kind::Vector } else { given };
                    // A predicate is one for the warp, or one a lane.
                    let same = matches!(
                        new,
                        Kind::Line {
                            step: 0,
                            parts: Parts::One,
                            ..
                        } | Kind::Unknown
                    );
                    if reg.width == Width::Pred && !same {
                        new = Kind::Vector;
                    }
                    let new = kinds[at].meet(new);
                    changed |= new != kinds[at];
                    kinds[at] = new;
                });
            };
            for one in &body.prologue {
                inst(&mut self.kinds, one);
            }
            for (block, _) in body.blocks.iter().zip(warm).filter(|(_, warm)| **warm) {
                for one in &block.insts {
                    inst(&mut self.kinds, one);
                }
            }
            // Lines are proved when lanes come back from where no code is made, but not of what they are multiples.
            for (block, _) in body.blocks.iter().zip(warm).filter(|(_, warm)| !**warm) {
                for one in &block.insts {
                    let given = given(body, &self.kinds, one, lanes);
                    one.op.regs(|reg, role| {
                        let kind = &mut self.kinds[reg.number as usize];
                        if role == Role::Def && given != Kind::Unknown {
                            changed |= kind.limit(given);
                        }
                    });
                }
            }
            if !changed {
                break;
            }
        }
    }

    fn find_others(&mut self, divided: &[bool]) -> Result<(), Refusal> {
        let mut others = vec![BTreeSet::new(); self.units.len()];
        let mut seen: HashSet<(Node, Node)> = HashSet::new();
        let mut work: Vec<(Node, Node)> = Vec::new();
        let pair = |a: Node, b: Node, work: &mut Vec<(Node, Node)>, seen: &mut HashSet<(Node, Node)>| {
            let (low, high) = (a.min(b), a.max(b));
            let ends = self.is_end(low) || self.is_end(high);
            if low != high && !ends && seen.insert((low, high)) {
                work.push((low, high));
            }
        };
        for (number, unit) in self.units.iter().enumerate() {
            if !divided[number] {
                continue;
            }
            match unit.exit {
                Exit::Branch { taken, fall, .. } => pair(taken, fall, &mut work, &mut seen),
                // Whoever ends wants nothing more, and with those that stick all leave.
                Exit::To(_) | Exit::None => {}
            }
        }
        let mut patience = PATIENCE;
        while let Some((start, pending)) = work.pop() {
            let mut reached: HashSet<Node> = HashSet::new();
            let mut stack = vec![start];
            while let Some(unit) = stack.pop() {
                if !reached.insert(unit) {
                    continue;
                }
                patience = patience.checked_sub(1).ok_or("its flow is too tangled")?;
                let this = &self.units[unit as usize];
                others[unit as usize].insert(pending);
                if let Exit::Branch { at: Some(at), .. } = this.exit {
                    others[at as usize].insert(pending);
                }
                // Those that stick, or leave at a branch, are the lowest: all leave with them.
                this.runs_on(|to| {
                    if to > pending {
                        pair(to, pending, &mut work, &mut seen);
                    } else if to < pending {
                        stack.push(to);
                    }
                });
            }
        }
        self.others = others;
        Ok(())
    }

    /// Lanes that come together again where nobody is elsewhere may be fewer than the warp: other code serves those.
    fn find_joins(&mut self) {
        let mut joins = Vec::new();
        for (number, unit) in self.units.iter().enumerate() {
            let divided = !self.others[number].is_empty() || unit.stick == Stick::Ends;
            let parts = matches!(&unit.exit, Exit::Branch { divides: true, .. });
            if divided || parts {
                unit.successors(|to| {
                    if self.others[to as usize].is_empty() {
                        joins.push(to);
                    }
                });
            }
            // Who waits elsewhere when lanes come to what the interpreter does, as a call, leaves with them.
            if unit.stick == Stick::Always {
                let waiting = self.others[number].iter().copied();
                joins.extend(waiting.filter(|&node| !self.is_end(node)));
            }
        }
        for to in joins {
            self.units[to as usize].entry = true;
        }
    }

    /// Lanes that would come from the interpreter to an instruction that they may have to leave for come behind it.
    fn pass_entries_on(&mut self) {
        for number in 1..self.units.len() {
            let before = &self.units[number - 1];
            let passes = before.entry && before.stick == Stick::Perhaps && before.block == self.units[number].block;
            self.units[number].entry |= passes;
        }
    }

    /// Units that lanes come to of whose warp some have ended: code for whole warps goes on there without those if that takes little
    /// more of it, as behind the rim of a plane that is treated apart, or where a few lanes sum up what the block has left.
    fn find_lacks(&mut self) {
        let length = |unit: Node| self.units[unit as usize].insts.len() + 1;
        let most = (0..self.units.len() as Node).map(length).sum::<usize>() / 2;
        let most = most.max(MOST_LACKING);
        // What those reach that are left behind each end, and how much of it is not there for parts of warps anyhow: the shortest first.
        let mut rests: Vec<(usize, Vec<Node>)> = Vec::new();
        let mut patience = PATIENCE;
        for from in self.left_behind() {
            let (mut more, mut reached, mut work) = (0, BTreeSet::new(), from);
            while let Some(number) = work.pop()
                && more <= most
                && patience > 0
            {
                patience -= 1;
                if self.is_end(number) || !reached.insert(number) {
                    continue;
                }
                let unit = &self.units[number as usize];
                if self.others[number as usize].is_empty() {
                    more += length(number);
                }
                unit.successors(|to| work.push(to));
            }
            if more <= most && patience > 0 {
                rests.push((more, reached.into_iter().collect()));
            }
        }
        rests.sort_unstable();
        rests.dedup();
        let (mut lacks, mut all) = (vec![false; self.units.len()], 0);
        for (_, reached) in rests {
            let added = reached
                .iter()
                .filter(|&&unit| !lacks[unit as usize] && self.others[unit as usize].is_empty());
            let more: usize = added.map(|&unit| length(unit)).sum();
            if all + more <= most {
                all += more;
                reached.into_iter().for_each(|unit| lacks[unit as usize] = true);
            }
        }
        self.lacks = lacks;
    }

    /// Where lanes are, or go on, when others of their warp end, for each unit at which some do.
    fn left_behind(&self) -> BTreeSet<Vec<Node>> {
        let mut all = BTreeSet::new();
        for (number, unit) in self.units.iter().enumerate() {
            let mut ends = unit.stick == Stick::Ends;
            unit.successors(|to| ends |= self.is_end(to));
            if !ends {
                continue;
            }
            let mut left: Vec<Node> = self.others[number].iter().copied().collect();
            match &unit.exit {
                Exit::Branch {
                    taken,
                    fall,
                    divides: true,
                    ..
                } => left.extend([*taken, *fall].into_iter().filter(|&node| !self.is_end(node))),
                Exit::To(next) if unit.stick == Stick::Ends => left.push(*next),
                Exit::None | Exit::To(_) | Exit::Branch { .. } => {}
            }
            all.insert(left);
        }
        all
    }

    fn find_lazy(&mut self, body: &Body) {
        let mut written = vec![false; body.registers.len()];
        for inst in body.blocks.iter().flat_map(|block| &block.insts) {
            inst.op
                .regs(|reg, role| written[reg.number as usize] |= role == Role::Def);
        }
        let registers = body.registers.iter().zip(written);
        self.lazy = registers
            .map(|(info, written)| written && info.initial.is_none() && !info.hoisted)
            .collect();
        // What is moved is so where all that is moved is.
        loop {
            let mut changed = false;
            for inst in body.blocks.iter().flat_map(|block| &block.insts) {
                let gives = match &inst.op {
                    Op::Compute { op, .. } if super::compute::gives_any_nan(*op) => true,
                    Op::Compute { op, src, .. } => super::compute::moved(*op).is_some_and(|moved| {
                        src[..moved].iter().all(|reg| match body.constant(reg.number) {
                            Some(bits) => !is_nan(bits as u32),
                            None => self.lazy[reg.number as usize],
                        })
                    }),
                    _ => false,
                };
                inst.op.regs(|reg, role| {
                    if role == Role::Def && !(gives && reg.width == Width::B32) {
                        changed |= std::mem::take(&mut self.lazy[reg.number as usize]);
                    }
                });
            }
            if !changed {
                break;
            }
        }
        // Constants alone are what they are.
        let mut computed = vec![false; body.registers.len()];
        loop {
            let mut changed = false;
            for inst in body.blocks.iter().flat_map(|block| &block.insts) {
                let Op::Compute { op, src, dst } = &inst.op else {
                    continue;
                };
                let moved = super::compute::moved(*op).map_or(&src[..0], |moved| &src[..moved]);
                let gives = super::compute::gives_any_nan(*op) || moved.iter().any(|reg| computed[reg.number as usize]);
                if gives {
                    changed |= dst
                        .iter()
                        .any(|reg| !std::mem::replace(&mut computed[reg.number as usize], true));
                }
            }
            if !changed {
                break;
            }
        }
        self.lazy
            .iter_mut()
            .zip(computed)
            .for_each(|(lazy, computed)| *lazy &= computed);
    }

    fn find_loops(&mut self, body: &Body) {
        let mut loops = HashMap::new();
        let mut streams = BTreeSet::new();
        for (number, unit) in self.units.iter().enumerate() {
            let number = number as Node;
            unit.successors(|to| {
                if to > number {
                    return;
                }
                let mut count = 0;
                let mut looks = false;
                let mut streams_by = false;
                for between in &self.units[to as usize..=number as usize] {
                    count += between.insts.len() as u32 + 1;
                    looks |= body.blocks[between.block as usize].insts[between.insts.clone()]
                        .iter()
                        .any(|inst| inst.op.effects().looks_at_others() || matches!(inst.op, Op::Nanosleep));
                    streams_by |= body.blocks[between.block as usize].insts[between.insts.clone()]
                        .iter()
                        .any(|inst| self.streams_by(&inst.op));
                }
                loops.insert((number, to), (count, looks && self.may_wait(body, to)));
                if streams_by {
                    streams.insert(to);
                }
            });
        }
        for &(_, to) in loops.keys() {
            self.units[to as usize].entry = true;
        }
        let through = loops.keys().filter(|(_, to)| streams.contains(to));
        self.streaming = through.flat_map(|&(from, to)| to..=from).collect();
        (self.loops, self.streams) = (loops, streams);
    }

    /// Whether a loop that begins with a unit may go on until other threads do something.
    fn may_wait(&self, body: &Body, head: Node) -> bool {
        let unit = &self.units[head as usize];
        !(unit.insts.start == 0 && body.bounded.contains(&unit.block))
    }

    /// Whether an operation accesses memory that lies side by side for the lanes of a warp, outside of the block's own.
    fn streams_by(&self, op: &Op) -> bool {
        let (Op::Load { address, .. } | Op::Store { address, .. }) = op else {
            return false;
        };
        let steps = |reg: Reg| matches!(self.kinds[reg.number as usize], Kind::Line { step: 1..=16, .. });
        matches!(address.space, Space::Global | Space::Generic) && address.register.is_some_and(steps)
    }
}

fn is_nan(bits: u32) -> bool {
    bits & 0x7fff_ffff > 0x7f80_0000
}
