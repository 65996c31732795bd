//! Units one after the other: who goes where, who waits, who goes on.

use std::collections::BTreeSet;
use std::mem::offset_of;

use crate::isa::Level;
use crate::program::{Guard, Op};

use super::super::context::{Context, Warp};
use super::super::plan::{Exit, Stick};
use super::super::{SPIN, WORK};
use super::rounds::TURN;
use super::{Emit, For, Node, order};

impl Emit<'_> {
    pub(super) fn unit(&mut self, unit: Node, full: bool) {
        (self.unit, self.full, self.guarded, self.mask) = (unit, full, false, None);
        let this = &self.plan.units[unit as usize];
        let (insts, block, stick) = (this.insts.clone(), this.block as usize, this.stick);
        self.text.label(&format!("{}{unit}", if full { 'F' } else { 'M' }));
        if full {
            self.come_alone(unit);
        } else {
            self.come_alone_under(unit);
            let mask = self.load_flags(unit);
            if self.flags.contains(&unit) {
                self.nobody_waits(unit);
            }
            // Who is elsewhere may have come: to an operation of lanes together and to a barrier as a rule.
            let nobody_else = self.plan.others[unit as usize].is_empty();
            if self.whom == For::All && (nobody_else || self.gathers(unit) || self.meets(unit)) {
                let (all, some) = (self.all(&mask), self.text.name("some"));
                self.branch(&all, &self.again(unit, unit), &some);
                self.text.label(&some);
            }
            self.mask = Some(mask);
        }
        self.here = self.mask.clone();
        let body = self.input.body;
        if matches!(stick, Stick::Always | Stick::Ends) {
            let inst = body.blocks[block].insts.get(insts.start).filter(|_| !insts.is_empty());
            let guard = inst.and_then(|inst| inst.guard);
            match stick {
                Stick::Ends => self.ends(guard),
                _ => self.always_sticks(guard),
            }
            return;
        }
        let start = self.text.lines.len();
        self.insts(block, insts);
        self.in_parts(start);
        self.exit();
    }

    /// Code from here on goes by parts of the warp if the CPU has too few registers for all of them.
    fn in_parts(&mut self, start: usize) {
        // Some are taken by what is on its way. Where there are many registers, jumps between parts made one product of tiles a fifth quicker, and
        // another one a seventh slower.
        let (registers, apart) = match self.level {
            Level::Avx512 => (26, false),
            Level::Avx2 | Level::Baseline => (12, true),
        };
        order::by_parts(&mut self.text, start, registers, apart);
    }

    /// Whether a unit is an operation at which lanes of the warp meet.
    fn gathers(&self, unit: Node) -> bool {
        let this = &self.plan.units[unit as usize];
        let insts = &self.input.body.blocks[this.block as usize].insts;
        this.stick == Stick::Perhaps && !matches!(insts[this.insts.start].op, Op::Compute { .. })
    }

    pub(super) fn is_masked(&self, unit: Node) -> bool {
        let unit = unit as usize;
        self.whom == For::Some || !self.plan.others[unit].is_empty() || self.plan.lacks[unit]
    }

    /// Lanes come together at a unit while nobody is elsewhere: all of the warp, or they leave.
    pub(super) fn joined(&mut self, unit: Node) {
        (self.unit, self.full, self.guarded, self.mask) = (unit, false, false, None);
        self.text.label(&format!("M{unit}"));
        let mask = self.load_flags(unit);
        let (all, met, some) = (self.all(&mask), self.text.name("met"), self.text.name("some"));
        self.branch(&all, &met, &some);
        self.text.label(&met);
        // Else the next warp of the block, which runs in the same call, would count this one's lanes as waiting here.
        if self.flags.contains(&unit) {
            self.nobody_waits(unit);
        }
        self.jump(&format!("F{unit}"));
        self.text.label(&some);
        let chain = self.chain(BTreeSet::from([unit]));
        self.jump(&chain);
    }

    /// Threads end: they leave at once, for they want nothing more.
    pub(super) fn ends(&mut self, guard: Option<Guard>) {
        let unit = self.unit;
        let next = match (&self.plan.units[unit as usize].exit, guard) {
            (Exit::To(next), Some(guard)) => Some((*next, guard)),
            _ => None,
        };
        let Some((next, guard)) = next else {
            self.end_here(unit);
            return;
        };
        let here = self.mask.clone();
        let line = self.kind(guard.reg.number).is_line();
        let (leave, stay) = (self.text.name("leave"), self.text.name("stay"));
        if line {
            let holds = self.holds(guard);
            self.branch(&holds, &leave, &stay);
            self.text.label(&leave);
            self.end_here(unit);
            self.text.label(&stay);
            self.go(next);
            return;
        }
        let mut gone = self.holding(guard);
        let mut rest = self.not(&gone);
        if let Some(here) = &here {
            gone = self.each(here, &gone, "and");
            rest = self.each(here, &rest, "and");
        }
        let bits = self.bits(&gone);
        let any = self.text.value(format!("icmp ne i32 {bits}, 0"));
        self.branch(&any, &leave, &stay);
        self.text.label(&leave);
        self.cut(unit, &bits, true);
        self.settles(next);
        self.store_or_add(next, &rest);
        self.dispatch(&[next], self.full, true);
        self.text.label(&stay);
        self.go(next);
    }

    /// The lanes of the current mask end.
    fn end_here(&mut self, unit: Node) {
        if self.full {
            self.all_end(unit);
            return;
        }
        let bits = self.mask_bits();
        self.cut(unit, &bits, true);
        self.dispatch(&[], false, true);
    }

    pub(super) fn store_or_add(&mut self, node: Node, mask: &[String]) {
        match self.full {
            true => self.store_flags(node, mask),
            false => self.add_flags(node, mask),
        }
    }

    pub(super) fn always_sticks(&mut self, guard: Option<Guard>) {
        let unit = self.unit;
        let Exit::To(next) = self.plan.units[unit as usize].exit else {
            if self.full && self.meets(unit) {
                self.jump(&format!("B{unit}"));
                return;
            }
            if let Some(&next) = self.passes.get(&unit) {
                self.pass_barrier(next);
            }
            self.stick();
            return;
        };
        let Some(guard) = guard else {
            self.stick();
            return;
        };
        if self.kind(guard.reg.number).is_line() {
            let holds = self.holds(guard);
            let (leave, stay) = (self.text.name("leave"), self.text.name("stay"));
            self.branch(&holds, &leave, &stay);
            self.text.label(&leave);
            self.stick();
            self.text.label(&stay);
            self.go(next);
            return;
        }
        self.part_ways(guard, (self.plan.stuck(unit), next), None);
    }

    /// A block's only warp goes past a barrier if all of its lanes have come that have not ended.
    fn pass_barrier(&mut self, next: Node) {
        let Some(mask) = self.mask.clone() else { return };
        let only = self.field(offset_of!(Context, only), "i64", true);
        let only = self.text.value(format!("icmp ne i64 {only}, 0"));
        let warp = self.field(offset_of!(Context, warp), "ptr", false);
        let live = self.place(&warp, offset_of!(Warp, live));
        let live = self.text.value(format!("load i32, ptr {live}"));
        let gone = self.text.value("load i32, ptr %gone");
        let here = self.bits(&mask);
        let all = self.text.value(format!("or i32 {here}, {gone}"));
        let all = self.text.value(format!("icmp eq i32 {all}, {live}"));
        // Barriers in an endless loop use the budget up. Who stays has spent nothing, by which the interpreter knows that it is its turn.
        let budget = self.text.value("load i64, ptr %budget");
        let budget = self.text.value(format!("sub i64 {budget}, {TURN}"));
        let left = self.text.value(format!("icmp sge i64 {budget}, 0"));
        let mut passes = only;
        for more in [all, left] {
            passes = self.text.binary("and", "i1", &passes, &more);
        }
        let [pass, stay] = ["pass", "stay"].map(|what| self.text.name(what));
        self.branch(&passes, &pass, &stay);
        self.text.label(&pass);
        self.text.line(format!("store i64 {budget}, ptr %budget"));
        if let Some(red) = self.red(&self.plan.units[self.unit as usize]) {
            let said = self.said(&red, Some(&mask));
            self.write_said(&red, &said);
        }
        self.store_flags(next, &mask);
        self.jump(&format!("M{next}"));
        self.text.label(&stay);
    }

    /// Whether all warps of a block meet at a unit, and go on behind it in code.
    fn meets(&self, unit: Node) -> bool {
        self.packs.contains_key(&unit) || self.reds.contains_key(&unit)
    }

    /// A guard that is the same for all lanes.
    pub(super) fn holds(&mut self, guard: Guard) -> String {
        let (values, _) = self.line_of(guard.reg, false);
        match guard.negated {
            true => self.text.value(format!("xor i1 {}, true", values[0])),
            false => values[0].clone(),
        }
    }

    /// Lanes in which a guard holds.
    pub(super) fn holding(&mut self, guard: Guard) -> Vec<String> {
        let lanes = self.lanes_of(guard.reg, false);
        match guard.negated {
            true => self.not(&lanes),
            false => lanes,
        }
    }

    /// All lanes go on at a unit.
    pub(super) fn go(&mut self, to: Node) {
        let unit = self.unit;
        if !self.full {
            let mask = self.mask.clone().unwrap_or_default();
            let next = self.send(&[(to, mask)]);
            self.dispatch(&next, false, next.is_empty());
            return;
        }
        match self.plan.loops.get(&(unit, to)).copied() {
            Some((count, looks)) => {
                self.settles(to);
                let over = self.spend(count, looks);
                self.leaves.insert(to);
                if !self.pauses.contains_key(&to) {
                    self.rarely(&over, &format!("X{to}"), &self.again(unit, to));
                    return;
                }
                let rest = self.text.name("rest");
                self.rarely(&over, &format!("X{to}"), &rest);
                self.text.label(&rest);
                let pauses = self.is_turn_over(to);
                self.rarely(&pauses, &format!("P{to}"), &format!("F{to}"));
            }
            None => {
                self.settles(to);
                self.jump(&format!("F{to}"));
            }
        }
    }

    /// Lanes go to nodes; those that come to an end there end at once. Gives the nodes where somebody may be now.
    pub(super) fn send(&mut self, to: &[(Node, Vec<String>)]) -> Vec<Node> {
        let mut next = Vec::new();
        for (node, mask) in to {
            if !self.plan.is_end(*node) {
                self.settles(*node);
                self.store_or_add(*node, mask);
                next.push(*node);
                continue;
            }
            let bits = self.bits(mask);
            let any = self.text.value(format!("icmp ne i32 {bits}, 0"));
            let (end, go) = (self.text.name("end"), self.text.name("go"));
            self.branch(&any, &end, &go);
            self.text.label(&end);
            self.cut(*node, &bits, true);
            self.jump(&go);
            self.text.label(&go);
        }
        next
    }

    /// Lanes in which the guard holds go to `taken`, where they may be stuck, the others to `fall`; all go to `together` instead if some would go
    /// each way.
    pub(super) fn part_ways(&mut self, guard: Guard, (taken, fall): (Node, Node), together: Option<Node>) {
        if self.full {
            let [yes, not_all, no, mixed] = ["yes", "part", "no", "mixed"].map(|what| self.text.name(what));
            let question = self.question_of(guard, [taken, fall]);
            let holding = match &question {
                Some(question) => {
                    let [in_all, in_none] = self.answer(question);
                    let [others, apart] = ["others", "apart"].map(|what| self.text.name(what));
                    self.branch(&in_all, &yes, &others);
                    self.text.label(&others);
                    self.branch(&in_none, &no, &apart);
                    self.text.label(&apart);
                    self.lanes_that_say_yes(question)
                }
                None => self.branching(guard),
            };
            let bits = self.bits(&holding);
            let all = self.text.value(format!("icmp eq i32 {bits}, -1"));
            let none = self.text.value(format!("icmp eq i32 {bits}, 0"));
            self.branch(&all, &yes, &not_all);
            self.text.label(&yes);
            self.skip_rest(guard, question.as_ref(), taken, true);
            match self.plan.is_stuck(taken) {
                true => self.stick(),
                false => self.go(taken),
            }
            self.text.label(&not_all);
            self.branch(&none, &no, &mixed);
            self.text.label(&no);
            self.skip_rest(guard, question.as_ref(), fall, false);
            self.go(fall);
            self.text.label(&mixed);
            if let Some(at) = together {
                self.go(at);
                return;
            }
            let rest = self.not(&holding);
            let next = self.send(&[(taken, holding), (fall, rest)]);
            self.dispatch(&next, true, false);
            return;
        }
        let holding = self.branching(guard);
        let mask = self.mask.clone().unwrap_or_default();
        let there = self.each(&mask, &holding, "and");
        let not = self.not(&holding);
        let rest = self.each(&mask, &not, "and");
        if let Some(at) = together {
            // Where others wait lanes may part wherever both ways are made: here one is not, or nobody waits and lanes were not seen to part.
            for (way, stray) in [(taken, rest), (fall, there)] {
                if way == at {
                    continue;
                }
                let any = self.any(&stray);
                let [other, made] = ["other", "made"].map(|what| self.text.name(what));
                self.branch(&any, &other, &made);
                self.text.label(&made);
                let next = self.send(&[(way, mask.clone())]);
                self.dispatch(&next, false, next.is_empty());
                self.text.label(&other);
            }
            self.settles(at);
            self.add_flags(at, &mask);
            // No place where somebody waits is lower.
            let mut nodes = self.plan.others[self.unit as usize].clone();
            nodes.insert(at);
            let chain = self.chain(nodes);
            self.jump(&chain);
            return;
        }
        let next = self.send(&[(taken, there), (fall, rest)]);
        self.dispatch(&next, false, next.len() < 2);
    }

    pub(super) fn exit(&mut self) {
        let unit = self.unit;
        match self.plan.units[unit as usize].exit.clone() {
            // Nothing is there: whoever comes here leaves.
            Exit::None => self.stick(),
            Exit::To(to) => self.go(to),
            Exit::Branch { guard, taken, fall, .. } if self.kind(guard.reg.number).is_line() => {
                let holds = self.holds(guard);
                let (yes, no) = (self.text.name("yes"), self.text.name("no"));
                self.branch(&holds, &yes, &no);
                self.text.label(&yes);
                self.go(taken);
                self.text.label(&no);
                self.go(fall);
            }
            Exit::Branch {
                guard,
                taken,
                fall,
                at,
                divides,
            } => self.part_ways(guard, (taken, fall), at.filter(|_| !divides)),
        }
    }

    /// The way out for lanes at any of these nodes.
    pub(super) fn chain(&mut self, nodes: BTreeSet<Node>) -> String {
        let next = self.chains.len();
        self.chains
            .entry(nodes)
            .or_insert_with(|| format!("chain{next}"))
            .clone()
    }

    /// Goes on behind the current unit, under masks: at the lowest unit where somebody waits. Lanes of the unit were added
    /// to `next`, unless there are none (`perhaps_nobody`); others may be elsewhere.
    pub(super) fn dispatch(&mut self, next: &[Node], from_full: bool, perhaps_nobody: bool) {
        let mut nodes: BTreeSet<Node> = next.iter().copied().collect();
        if !from_full {
            nodes.extend(self.plan.others[self.unit as usize].iter().copied());
        }
        // Lanes that are stuck are to go on first where they are lowest: all leave with them.
        let mut order: Vec<Node> = nodes.iter().copied().collect();
        order.sort_by_key(|&node| (self.plan.unit_of(node), self.plan.is_stuck(node)));
        let unit = self.unit;
        let sure = self.plan.stuck(unit);
        for (at, &to) in order.iter().enumerate() {
            let is_stuck = self.plan.is_stuck(to);
            if is_stuck && (to == sure && next.contains(&to) || at + 1 == order.len()) {
                break;
            }
            let last = at + 1 == order.len() && !perhaps_nobody;
            let (run, skip) = (self.text.name("run"), self.text.name("skip"));
            if !last {
                let mask = self.load_flags(to);
                let any = self.any(&mask);
                self.branch(&any, &run, &skip);
                self.text.label(&run);
            }
            if is_stuck {
                let chain = self.chain(nodes.clone());
                self.jump(&chain);
                self.text.label(&skip);
                continue;
            }
            if self.whom == For::Some {
                let outside = self.is_outside(to);
                let inside = self.text.name("inside");
                let chain = self.chain(nodes.clone());
                self.branch(&outside, &chain, &inside);
                self.text.label(&inside);
            }
            match self.plan.loops.get(&(unit, to)).copied() {
                Some((count, looks)) if to <= unit => {
                    let over = self.spend(count, looks);
                    let chain = self.chain(nodes.clone());
                    self.rarely(&over, &chain, &self.again_under(unit, to));
                }
                _ if to <= unit => {
                    // Others of the loop go round first: they pay.
                    let over = self.spend(1, false);
                    let chain = self.chain(nodes.clone());
                    self.rarely(&over, &chain, &self.again_under(unit, to));
                }
                _ => self.jump(&self.again_under(unit, to)),
            }
            if last {
                return;
            }
            self.text.label(&skip);
        }
        match nodes.is_empty() {
            true => self.jump("left"),
            false => {
                let chain = self.chain(nodes);
                self.jump(&chain);
            }
        }
    }

    /// Whether lanes come to where others of their warp are, which the code was not told of ([`Context::limit`]).
    fn is_outside(&mut self, to: Node) -> String {
        let pc = self.plan.units[to as usize].pc;
        let limit = self.field(offset_of!(Context, limit), "i32", true);
        let behind = self.text.value(format!("icmp ule i32 {limit}, {pc}"));
        let floor = self.field(offset_of!(Context, floor), "i32", true);
        let before = self.text.value(format!("icmp ugt i32 {floor}, {pc}"));
        self.text.value(format!("or i1 {behind}, {before}"))
    }

    /// A turn of a loop is paid for; gives whether there is nothing left.
    pub(super) fn spend(&mut self, count: u32, looks: bool) -> String {
        let budget = self.text.value("load i64, ptr %budget");
        let mut rest = self.text.value(format!("sub i64 {budget}, {count}"));
        if looks {
            let at = self.place("%n", offset_of!(Context, looked));
            let looked = self.text.value(format!("load i64, ptr {at}"));
            self.text.line(format!("store i64 0, ptr {at}"));
            let looked = self.text.value(format!("icmp ne i64 {looked}, 0"));
            let at = self.place("%n", offset_of!(Context, paid));
            let paid = self.text.value(format!("load i64, ptr {at}"));
            let done = self.text.value(format!("sub i64 {paid}, {rest}"));
            let little = self.text.value(format!("icmp slt i64 {done}, {WORK}"));
            let spins = self.text.value(format!("and i1 {looked}, {little}"));
            let more = self.text.value(format!("select i1 {spins}, i64 {SPIN}, i64 0"));
            rest = self.text.value(format!("sub i64 {rest}, {more}"));
            let paid = self.text.value(format!("select i1 {looked}, i64 {rest}, i64 {paid}"));
            self.text.line(format!("store i64 {paid}, ptr {at}"));
            let at = self.place("%n", offset_of!(Context, spun));
            let spun = self.text.value(format!("load i64, ptr {at}"));
            let spun = self.text.value(format!("add i64 {spun}, {more}"));
            self.text.line(format!("store i64 {spun}, ptr {at}"));
        }
        self.text.line(format!("store i64 {rest}, ptr %budget"));
        self.text.value(format!("icmp slt i64 {rest}, 0"))
    }

    /// The lanes of the current mask leave before the current unit.
    pub(super) fn stick(&mut self) {
        let unit = self.unit;
        if self.full {
            self.leaves.insert(unit);
            self.jump(&format!("X{unit}"));
            return;
        }
        let stuck = self.plan.stuck(unit);
        if let Some(mask) = self.here.clone() {
            self.add_flags(stuck, &mask);
        }
        self.dispatch(&[stuck], false, false);
    }
}
