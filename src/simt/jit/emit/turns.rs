//! A lane's turns of a loop that lanes go through one by one ([`super::alone`]), in scalar code.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::mem::offset_of;

use crate::isa::Compute;
use crate::isa::lanes::Width;
use crate::program::{Element, Op, Reg, Register, Space};

use super::super::Pc;
use super::super::compute::{self, Emitter, bits_of};
use super::super::context::Context;
use super::super::plan::Exit;
use super::super::text::Form;
use super::alone::{Look, Loop, Multiple};
use super::{Emit, LANES, Node};

/// Turns of all lanes before the loop's own code has a turn, and with it whoever wants to stop the kernel.
const MOST_TURNS: u32 = 1 << 16;

/// What registers hold that a unit has written by now, in the lane whose turn it is.
type Values = HashMap<Register, String>;

/// Labels of the code of a loop.
struct Labels {
    /// The units.
    turns: BTreeMap<Node, String>,
    /// Where a lane goes that is done, and one that cannot make its turn.
    exits: BTreeMap<Node, String>,
    stays: String,
}

impl Labels {
    fn of(&self, emit: &Emit<'_>, unit: Node, to: Node) -> String {
        let known = self.turns.get(&to).or_else(|| self.exits.get(&to));
        match known.filter(|_| !emit.is_unseen(unit, to)) {
            Some(label) => label.clone(),
            None => self.stays.clone(),
        }
    }
}

impl Emit<'_> {
    /// `None`: there is an operation that scalar code does not do.
    pub(super) fn through(&mut self, this: &Loop) -> Option<()> {
        let head = this.head;
        // Its own extent never has room.
        let site = self.sites.len();
        self.sites.push(u64::MAX);
        let last = this.units.last().copied().unwrap_or(head);
        self.alone.insert(head, (site, last));
        self.reserve(this)?;
        let [next, lane, left, stays, all, aslant] =
            ["next", "lane", "left", "stays", "all", "aslant"].map(|what| self.text.name(what));
        let mut named = |nodes: &[Node], what: &str| -> BTreeMap<Node, String> {
            let each = nodes.iter();
            each.map(|&node| (node, self.text.name(what))).collect()
        };
        let labels = Labels {
            turns: named(&this.units, "turn"),
            exits: named(&this.exits, "done"),
            stays,
        };

        self.text.label(&format!("S{head}"));
        for look in &this.loads {
            if let (Multiple::OfAll, Some((same, _))) = (look.multiple, look.sum) {
                let value = self.line_of(same, false).0[0].clone();
                self.is_aslant(look, (&value, bits_of(same.width)?), &aslant);
            }
        }
        self.not_side_by_side(this, site)?;
        for (&register, &at) in &this.places {
            let reg = self.info(register);
            let values = self.lanes_of(reg, true);
            self.store_lanes(&format!("%alone{head}"), at, reg.width, &values);
        }
        let bits = self.text.value(format!("load i32, ptr %alone.bits{head}"));
        self.text.line(format!("store i32 {bits}, ptr %alone.rest{head}"));
        for what in ["stay", "most", "turns"] {
            self.text.line(format!("store i32 0, ptr %alone.{what}{head}"));
        }
        for exit in &this.exits {
            self.text.line(format!("store i32 0, ptr %alone.x{head}.{exit}"));
        }
        self.jump(&next);

        self.text.label(&next);
        let rest = self.text.value(format!("load i32, ptr %alone.rest{head}"));
        let none = self.text.value(format!("icmp eq i32 {rest}, 0"));
        self.branch(&none, &all, &lane);
        self.text.label(&lane);
        self.begin_lane(this, &rest, &labels)?;
        for &unit in &this.units {
            self.text.label(&labels.turns[&unit]);
            self.turn(this, unit, &labels)?;
        }
        for &exit in &this.exits {
            self.text.label(&labels.exits[&exit]);
            for reg in &this.written {
                if self.plan.live[exit as usize].has(reg.number) {
                    self.put_back(this, *reg, 'r')?;
                }
            }
            self.add_lane(&format!("%alone.x{head}.{exit}"), head);
            self.jump(&left);
        }
        self.text.label(&labels.stays);
        for reg in this.carried.iter().filter(|reg| this.is_own(reg.number)) {
            self.put_back(this, *reg, 'h')?;
        }
        self.add_lane(&format!("%alone.stay{head}"), head);
        self.jump(&left);

        self.text.label(&left);
        let turns = self.text.value(format!("load i32, ptr %alone.turns{head}"));
        let began = self.text.value(format!("load i32, ptr %alone.began{head}"));
        let own = self.text.value(format!("sub i32 {turns}, {began}"));
        let most = self.text.value(format!("load i32, ptr %alone.most{head}"));
        let most = self
            .text
            .value(format!("call i32 @llvm.umax.i32(i32 {most}, i32 {own})"));
        self.text.line(format!("store i32 {most}, ptr %alone.most{head}"));
        self.jump(&next);

        self.text.label(&all);
        for &reg in &this.written {
            if let Some(at) = this.place_of(reg.number) {
                let values = self.load_lanes(&format!("%alone{head}"), at, reg.width);
                self.declare(reg.number);
                self.take_lanes(reg, &values);
            }
        }
        self.settle_up(this, site);
        self.go_on(this);
        self.text.label(&aslant);
        self.together_from_here(this);
        Some(())
    }

    /// Memory of the frame.
    fn reserve(&mut self, this: &Loop) -> Option<()> {
        let head = this.head;
        let numbers = ["bits", "rest", "stay", "turns", "began", "most"].map(|what| (what.to_owned(), "i32"));
        let exits = this.exits.iter().map(|exit| (format!("x{head}.{exit}"), "i32"));
        let mut all: Vec<(String, String)> = vec![
            (format!("all{head}"), "i1".to_owned()),
            (format!("lane{head}"), "i64".to_owned()),
        ];
        all.extend(numbers.map(|(what, ty)| (format!("{what}{head}"), ty.to_owned())));
        all.extend(exits.map(|(what, ty)| (what, ty.to_owned())));
        // Registers in the lane whose turn it is, and as they were when the turn began.
        for reg in this.carried.iter().chain(&this.own) {
            all.push((format!("r{head}.{}", reg.number), Form::One.int(bits_of(reg.width)?)));
            all.push((format!("h{head}.{}", reg.number), Form::One.int(bits_of(reg.width)?)));
        }
        all.sort_unstable();
        all.dedup();
        for (what, ty) in all {
            let _ = writeln!(self.head, "  %alone.{what} = alloca {ty}");
        }
        let bytes = (this.places.len() * 8 * LANES as usize).max(64);
        let _ = writeln!(self.head, "  %alone{head} = alloca [{bytes} x i8], align 64");
        Some(())
    }

    /// The first of the lanes that are left, with its numbers.
    fn begin_lane(&mut self, this: &Loop, rest: &str, labels: &Labels) -> Option<()> {
        let head = this.head;
        let number = self.text.value(format!("call i32 @llvm.cttz.i32(i32 {rest}, i1 true)"));
        let number = self.text.value(format!("zext i32 {number} to i64"));
        self.text.line(format!("store i64 {number}, ptr %alone.lane{head}"));
        let less = self.text.value(format!("sub i32 {rest}, 1"));
        let rest = self.text.value(format!("and i32 {rest}, {less}"));
        self.text.line(format!("store i32 {rest}, ptr %alone.rest{head}"));
        for reg in &this.carried {
            if let Some(at) = this.place_of(reg.number) {
                let ty = Form::One.int(bits_of(reg.width)?);
                let at = self.place_of_lane(head, at, reg.width);
                let value = self.text.value(format!("load {ty}, ptr {at}"));
                for what in ['r', 'h'] {
                    self.text
                        .line(format!("store {ty} {value}, ptr %alone.{what}{head}.{}", reg.number));
                }
            }
        }
        let turns = self.text.value(format!("load i32, ptr %alone.turns{head}"));
        self.text.line(format!("store i32 {turns}, ptr %alone.began{head}"));
        for look in &this.loads {
            if let (Multiple::OfLane, Some(reg)) = (look.multiple, look.register) {
                let value = self.value_of(this, &Values::new(), reg, false);
                self.is_aslant(look, (&value, bits_of(reg.width)?), &labels.stays);
            }
        }
        self.jump(&labels.turns[&head]);
        Some(())
    }

    /// What a turn does in a unit.
    fn turn(&mut self, this: &Loop, unit: Node, labels: &Labels) -> Option<()> {
        if unit == this.head {
            self.begin_turn(this, labels)?;
        }
        let (block, insts) = {
            let unit = &self.plan.units[unit as usize];
            (unit.block as usize, unit.insts.clone())
        };
        let mut values = Values::new();
        let mut found: HashMap<usize, (String, i64)> = HashMap::new();
        for at in insts {
            let inst = &self.input.body.blocks[block].insts[at];
            match &inst.op {
                Op::Compute { op, dst, src } => {
                    let results = self.computed_alone(this, &values, (*op, dst, src), labels)?;
                    values.extend(dst.iter().map(|reg| reg.number).zip(results));
                }
                Op::Load {
                    address, element, dst, ..
                } => {
                    for look in this.loads.iter().filter(|look| (look.unit, look.first) == (unit, at)) {
                        let start = self.look(this, &values, look, labels);
                        let members = look.members.iter();
                        found.extend(members.map(|&member| (member, (start.clone(), look.least))));
                    }
                    let (start, least) = found.get(&at)?.clone();
                    values.extend(self.loaded_alone(&start, address.offset - least, *element, dst));
                }
                _ => return None,
            }
        }
        let leaves = match &self.plan.units[unit as usize].exit {
            Exit::Branch { guard, .. } => {
                let value = self.value_of(this, &values, guard.reg, false);
                Some(match guard.negated {
                    true => self.text.value(format!("xor i1 {value}, true")),
                    false => value,
                })
            }
            Exit::None | Exit::To(_) => None,
        };
        let mut written: Vec<(&Register, &String)> = values.iter().collect();
        written.sort_unstable();
        for (&register, value) in written {
            let ways = self.ways_on(unit);
            if ways.iter().any(|&to| self.plan.live[to as usize].has(register)) {
                let ty = Form::One.int(bits_of(self.info(register).width)?);
                self.text
                    .line(format!("store {ty} {value}, ptr %alone.r{}.{register}", this.head));
            }
        }
        match (&self.plan.units[unit as usize].exit, leaves) {
            (Exit::To(to), _) => self.jump(&labels.of(self, unit, *to)),
            (Exit::Branch { taken, fall, .. }, Some(leaves)) => {
                let [taken, fall] = [*taken, *fall].map(|to| labels.of(self, unit, to));
                self.branch(&leaves, &taken, &fall);
            }
            _ => return None,
        }
        Some(())
    }

    /// What registers hold is remembered, for a lane that turns out to be unable to make this turn.
    fn begin_turn(&mut self, this: &Loop, labels: &Labels) -> Option<()> {
        let head = this.head;
        for reg in this.carried.iter().filter(|reg| this.is_own(reg.number)) {
            let (ty, register) = (Form::One.int(bits_of(reg.width)?), reg.number);
            let value = self.text.value(format!("load {ty}, ptr %alone.r{head}.{register}"));
            self.text
                .line(format!("store {ty} {value}, ptr %alone.h{head}.{register}"));
        }
        let turns = self.text.value(format!("load i32, ptr %alone.turns{head}"));
        let turns = self.text.value(format!("add i32 {turns}, 1"));
        self.text.line(format!("store i32 {turns}, ptr %alone.turns{head}"));
        let long = self.text.value(format!("icmp ugt i32 {turns}, {MOST_TURNS}"));
        self.unless(&long, &labels.stays);
        Some(())
    }

    /// What a register holds in the lane whose turn it is.
    fn value_of(&mut self, this: &Loop, values: &Values, reg: Reg, raw: bool) -> String {
        if self.is_one_number(reg) && !this.is_own(reg.number) {
            return self.line_of(reg, raw).0[0].clone();
        }
        let value = match values.get(&reg.number) {
            Some(value) => value.clone(),
            None => {
                let ty = Form::One.int(bits_of(reg.width).unwrap_or(32));
                self.text
                    .value(format!("load {ty}, ptr %alone.r{}.{}", this.head, reg.number))
            }
        };
        match self.is_lazy(reg) && !raw {
            true => self.canonical(Form::One, &value),
            false => value,
        }
    }

    fn computed_alone(
        &mut self,
        this: &Loop,
        values: &Values,
        (what, dst, src): (Compute, &[Reg], &[Reg]),
        labels: &Labels,
    ) -> Option<Vec<String>> {
        let (raw, constants) = (self.takes_any_nan(what, dst), self.constants(src));
        let sources: Vec<String> = src.iter().map(|&reg| self.value_of(this, values, reg, raw)).collect();
        let mut emitter = Emitter {
            text: &mut self.text,
            form: Form::One,
            level: self.level,
            same: None,
        };
        let results = emitter.emit(what, &sources, &constants, dst.len())?;
        if compute::carries_nan(what) {
            let float = self.text.float(Form::One, 64, &results[0]);
            let nan = self.text.value(format!("fcmp uno double {float}, {float}"));
            self.unless(&nan, &labels.stays);
        }
        let results = results.into_iter().zip(dst).map(|(value, reg)| {
            match compute::gives_any_nan(what) && !self.is_lazy(*reg) {
                true => self.canonical(Form::One, &value),
                false => value,
            }
        });
        Some(results.collect())
    }

    /// Goes elsewhere where this bit says so, which is rare.
    fn unless(&mut self, bit: &str, elsewhere: &str) {
        let go = self.text.name("go");
        self.rarely(bit, elsewhere, &go);
        self.text.label(&go);
    }

    /// Whether the lane may load where it is about to; the address of the least offset.
    fn look(&mut self, this: &Loop, values: &Values, look: &Look, labels: &Labels) -> String {
        let base = match look.register {
            Some(reg) => (
                self.value_of(this, values, reg, false),
                bits_of(reg.width).unwrap_or(64),
            ),
            None => ("0".to_owned(), 64),
        };
        let (start, distance, bad);
        if look.space == Space::Shared {
            let shared = self.field(offset_of!(Context, shared), "i64", true);
            let all = self.field(offset_of!(Context, shared_bytes), "i64", true);
            let room = self.text.value(format!("sub i64 {all}, {}", look.reach - 1));
            let room = self.text.value(format!("call i64 @llvm.smax.i64(i64 {room}, i64 0)"));
            let place = self.text.resize(Form::One, base.1, &base.0, 32, false);
            let mut by = format!("{}", look.least as u32 as i32);
            if look.register.is_some() {
                let start = self.field(offset_of!(Context, shared_start), "i64", true);
                let start = self.text.value(format!("trunc i64 {start} to i32"));
                by = self.text.value(format!("sub i32 {by}, {start}"));
            }
            let place = self.text.value(format!("add i32 {place}, {by}"));
            distance = self.text.value(format!("zext i32 {place} to i64"));
            bad = self.text.value(format!("icmp uge i64 {distance}, {room}"));
            start = self.text.value(format!("add i64 {shared}, {distance}"));
        } else {
            let (low, room) = self.extent_of(this, look);
            match look.sum {
                Some((same, own)) => {
                    let (same, own) = (
                        self.value_of(this, values, same, false),
                        self.value_of(this, values, own, false),
                    );
                    let same = self.text.value(format!("add i64 {same}, {}", look.least));
                    let same = self.text.value(format!("sub i64 {same}, {low}"));
                    distance = self.text.value(format!("add i64 {own}, {same}"));
                    start = self.text.value(format!("add i64 {low}, {distance}"));
                }
                None => {
                    let by = self.text.value(format!("sub i64 {}, {low}", look.least));
                    distance = self.text.value(format!("add i64 {}, {by}", base.0));
                    start = self.text.value(format!("add i64 {}, {}", base.0, look.least));
                }
            }
            bad = self.text.value(format!("icmp uge i64 {distance}, {room}"));
        }
        self.unless(&bad, &labels.stays);
        if look.multiple == Multiple::OfTurn {
            self.is_aslant(look, (&base.0, base.1), &labels.stays);
        }
        start
    }

    /// Goes elsewhere where an address is no multiple of what is loaded there.
    fn is_aslant(&mut self, look: &Look, (base, bits): (&str, u32), elsewhere: &str) {
        let address = self.text.value(format!(
            "add i{bits} {base}, {}",
            Form::One.constant(bits, look.least as u64)
        ));
        let low = self.text.value(format!("and i{bits} {address}, {}", look.bytes - 1));
        let aslant = self.text.value(format!("icmp ne i{bits} {low}, 0"));
        self.unless(&aslant, elsewhere);
    }

    /// Where loads may go: those by sums with one number have a site together.
    fn extent_of(&mut self, this: &Loop, look: &Look) -> (String, String) {
        let is_with = |other: &&Look| {
            let same = |look: &Look| look.sum.map(|(same, _)| same.number);
            same(other).is_some() && same(other) == same(look) && other.space == look.space
        };
        let reach = this.loads.iter().filter(is_with).map(|look| look.reach).max();
        let reach = reach.unwrap_or(look.reach);
        let pc_of = |look: &Look, member: usize| {
            let block = self.plan.units[look.unit as usize].block as usize;
            self.input.starts[block] + member as Pc
        };
        let own: Vec<Pc> = look.members.iter().map(|&member| pc_of(look, member)).collect();
        let with = this.loads.iter().filter(is_with);
        let before = with.flat_map(|look| look.members.iter().map(|&member| pc_of(look, member)));
        let before = before.filter_map(|pc| self.alone_sites.get(&pc));
        let (site, low, room) = match before.copied().next() {
            Some(site) => {
                let (low, room) = self.extent(site);
                (site, low, room)
            }
            None => self.site(reach),
        };
        self.alone_sites.extend(own.into_iter().map(|pc| (pc, site)));
        (low, room)
    }

    fn loaded_alone(
        &mut self,
        start: &str,
        offset: i64,
        element: Element,
        dst: &[Option<Reg>],
    ) -> Vec<(Register, String)> {
        let (size, bits) = (u64::from(element.bytes), u32::from(element.bytes) * 8);
        let mut values = Vec::new();
        for (number, reg) in (0..).zip(dst) {
            let Some(reg) = *reg else { continue };
            let pointer = self.pointer(start, offset as u64 + number * size);
            let value = self.text.value(format!("load i{bits}, ptr {pointer}, align {size}"));
            let to = bits_of(reg.width).unwrap_or(32);
            let value = self.text.resize(Form::One, bits, &value, to, element.signed);
            values.push((reg.number, value));
        }
        values
    }

    /// What a register holds, or held when the turn began, goes to its place in memory.
    fn put_back(&mut self, this: &Loop, reg: Reg, what: char) -> Option<()> {
        let (ty, head) = (Form::One.int(bits_of(reg.width)?), this.head);
        let at = this.place_of(reg.number)?;
        let value = self
            .text
            .value(format!("load {ty}, ptr %alone.{what}{head}.{}", reg.number));
        let at = self.place_of_lane(head, at, reg.width);
        self.text.line(format!("store {ty} {value}, ptr {at}"));
        Some(())
    }

    /// The lane is one of those in a word.
    fn add_lane(&mut self, word: &str, head: Node) {
        let number = self.text.value(format!("load i64, ptr %alone.lane{head}"));
        let number = self.text.value(format!("trunc i64 {number} to i32"));
        let bit = self.text.value(format!("shl i32 1, {number}"));
        let lanes = self.text.value(format!("load i32, ptr {word}"));
        let lanes = self.text.value(format!("or i32 {lanes}, {bit}"));
        self.text.line(format!("store i32 {lanes}, ptr {word}"));
    }

    /// A lane's number among those of a register.
    fn place_of_lane(&mut self, unit: Node, at: usize, width: Width) -> String {
        let number = self.text.value(format!("load i64, ptr %alone.lane{unit}"));
        let all = self.place(&format!("%alone{unit}"), at);
        let bits = bits_of(width).unwrap_or(32);
        self.text
            .value(format!("getelementptr inbounds i{bits}, ptr {all}, i64 {number}"))
    }
}
