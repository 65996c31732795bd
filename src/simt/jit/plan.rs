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

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Range;

use crate::isa::lanes::Width;
use crate::isa::{Compute, logic};
use crate::program::facts::Shape;
use crate::program::{
    Body, End, Guard, Initial, Inst, Linear, Op, Ordering, Reg, Register, Role, ShuffleMode, Space, Special, Value,
};

use super::Pc;
use super::moves::Begins;
use super::seen::Seen;

/// A unit's number; the place where lanes stick before unit `u` has the number of all units more.
pub type Node = u32;

/// Whether lanes leave the code before a unit's first instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stick {
    Never,
    Perhaps,
    Always,
    /// For good: the thread ends.
    Ends,
}

/// How a unit ends.
#[derive(Clone, Debug)]
pub enum Exit {
    /// Nothing runs after it.
    None,
    To(Node),
    Branch {
        guard: Guard,
        /// Where code was not made of one of them, the unit at the branch.
        taken: Node,
        fall: Node,
        /// Before the branch itself: whoever goes where nobody was seen to go leaves there, and has it from the interpreter.
        at: Option<Node>,
        /// Lanes of a warp may go on in code in both ways.
        divides: bool,
    },
}

/// A stretch of a block.
#[derive(Clone, Debug)]
pub struct Unit {
    pub block: u32,
    pub insts: Range<usize>,
    /// Where the interpreter's code has its first instruction.
    pub pc: Pc,
    pub stick: Stick,
    pub exit: Exit,
    /// Lanes may come here from the interpreter.
    pub entry: bool,
}

impl Unit {
    /// Where code goes on for a part of a warp.
    fn runs_on(&self, mut f: impl FnMut(Node)) {
        match &self.exit {
            Exit::Branch { at: Some(at), .. } => self.successors(|to| {
                if to != *at {
                    f(to);
                }
            }),
            _ => self.successors(f),
        }
    }

    pub fn successors(&self, mut f: impl FnMut(Node)) {
        match &self.exit {
            Exit::None => {}
            Exit::To(to) => f(*to),
            Exit::Branch { taken, fall, at, .. } => {
                f(*fall);
                f(*taken);
                if let Some(at) = at {
                    f(*at);
                }
            }
        }
    }
}

/// How a register's value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing was written to it, as far as anybody has looked.
    Unknown,
    /// One number, or one a part, from which it grows by `step` with each lane. The number, or each of them, is a multiple of
    /// two to the power of `align`.
    Line { step: u64, parts: Parts, align: u8 },
    /// A number a lane.
    Vector,
    /// In the interpreter's window only.
    Window,
}

/// How the parts of a warp lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// The line goes on from each to the next.
    One,
    /// They begin so far from the first one.
    Rows(Begins),
    /// Nothing is known.
    Each,
}

impl Parts {
    /// How far a part of so many lanes begins from the first one, on a line that grows by `step`.
    fn far(self, part: usize, step: u64, lanes: u32) -> Option<u64> {
        match self {
            Parts::One => Some(step.wrapping_mul(part as u64 * u64::from(lanes))),
            Parts::Rows(begins) => Some(i64::from(begins[part]) as u64),
            Parts::Each => None,
        }
    }

    /// Parts of so many lanes that begin so far from the first one; in numbers of so many bits.
    fn of(width: Width, step: u64, lanes: u32, far: impl Fn(usize) -> Option<u64>) -> Parts {
        let mut begins = Begins::default();
        let mut goes_on = true;
        let parts = (32 / lanes) as usize;
        for (part, begin) in begins.iter_mut().enumerate().take(parts).skip(1) {
            let Some(far) = far(part) else { return Parts::Each };
            let one = step.wrapping_mul(part as u64 * u64::from(lanes));
            let (far, one) = match width {
                Width::B32 => (i64::from(far as u32 as i32), i64::from(one as u32 as i32)),
                Width::B64 => (far as i64, one as i64),
                Width::Pred | Width::B16 | Width::B128 => return Parts::Each,
            };
            goes_on &= far == one;
            let Ok(far) = i32::try_from(far) else {
                return Parts::Each;
            };
            *begin = far;
        }
        if goes_on { Parts::One } else { Parts::Rows(begins) }
    }

    fn meet(self, other: Parts) -> Parts {
        if self == other { self } else { Parts::Each }
    }
}

impl Kind {
    pub const SAME: Kind = Kind::line(0, Parts::One);

    pub const fn line(step: u64, parts: Parts) -> Kind {
        Kind::Line { step, parts, align: 0 }
    }

    /// Of which a multiple is known.
    fn aligned(self, to: u32) -> Kind {
        match self {
            Kind::Line { step, parts, .. } => Kind::Line {
                step,
                parts,
                align: to.min(63) as u8,
            },
            other => other,
        }
    }

    /// Of which nothing is known between the parts, if it is not one line.
    fn scattered(self) -> Kind {
        match self {
            Kind::Line {
                step,
                parts: Parts::Rows(_),
                align,
            } => Kind::Line {
                step,
                parts: Parts::Each,
                align,
            },
            other => other,
        }
    }

    fn meet(self, other: Kind) -> Kind {
        match (self, other) {
            (Kind::Unknown, kind) | (kind, Kind::Unknown) => kind,
            (
                Kind::Line {
                    step: a,
                    parts: p,
                    align: n,
                },
                Kind::Line {
                    step: b,
                    parts: q,
                    align: m,
                },
            ) if a == b => Kind::Line {
                step: a,
                parts: p.meet(q),
                align: n.min(m),
            },
            (Kind::Window, _) | (_, Kind::Window) => Kind::Window,
            (Kind::Line { .. } | Kind::Vector, Kind::Line { .. } | Kind::Vector) => Kind::Vector,
        }
    }

    pub fn is_line(self) -> bool {
        matches!(self, Kind::Line { .. } | Kind::Unknown)
    }

    /// One number, the same in all lanes.
    pub fn is_same(self) -> bool {
        matches!(
            self,
            Kind::Line {
                step: 0,
                parts: Parts::One,
                ..
            }
        )
    }

    /// Of what is the same in all lanes if this is.
    fn alike(self) -> Kind {
        match self {
            Kind::Unknown => Kind::Unknown,
            same if same.is_same() => Kind::SAME,
            _ => Kind::Vector,
        }
    }
}

/// How the threads of a block lie along its x axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rows {
    /// `%tid.x` counts up through each warp.
    Warp,
    /// Rows of so many threads are whole parts of it, as long as the CPU's vectors of 32 bits, and each warp is as many whole rows of
    /// one plane.
    Short(u32),
    /// Through parts of it.
    Part,
    /// Rows end anywhere.
    Any,
}

impl Rows {
    /// How many ways there are.
    pub const COUNT: usize = 6;

    /// A number for each, less than [`Rows::COUNT`].
    pub fn number(self) -> usize {
        match self {
            Rows::Warp => 0,
            Rows::Part => 1,
            Rows::Any => 2,
            // Of 4, 8, or 16 threads: no part is shorter, and no row that shares a warp is longer.
            Rows::Short(length) => 1 + length.clamp(4, 16).ilog2() as usize,
        }
    }

    /// For a block of this shape and parts of so many lanes.
    pub fn of([x, y, z]: [u32; 3], part: u32) -> Rows {
        if y * z == 1 || x.is_multiple_of(32) {
            Rows::Warp
        } else if x.is_multiple_of(part) {
            let many = 32 / x;
            let whole = 32 % x == 0 && (z == 1 || y.is_multiple_of(many));
            if whole { Rows::Short(x) } else { Rows::Part }
        } else {
            Rows::Any
        }
    }
}

/// A set of registers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Set(Vec<u64>);

impl Set {
    fn new(registers: usize) -> Set {
        Set(vec![0; registers.div_ceil(64)])
    }
    pub fn has(&self, register: Register) -> bool {
        self.0[register as usize / 64] >> (register % 64) & 1 != 0
    }
    fn insert(&mut self, register: Register) {
        self.0[register as usize / 64] |= 1 << (register % 64);
    }
    fn remove(&mut self, register: Register) {
        self.0[register as usize / 64] &= !(1 << (register % 64));
    }
    fn add(&mut self, other: &Set) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }
    pub fn iter(&self) -> impl Iterator<Item = Register> + '_ {
        self.0.iter().enumerate().flat_map(|(word, &bits)| {
            let mut rest = bits;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    word as u32 * 64 + bit
                })
            })
        })
    }
}

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

/// Bodies with more units, or more places at which lanes may be at the same time, are left to the interpreter.
const MOST_UNITS: usize = 6000;
const PATIENCE: usize = 1 << 20;
/// Instructions that are there a second time for warps of which lanes have ended.
const MOST_LACKING: usize = 96;

/// Why no code is made of a body.
pub type Refusal = &'static str;

/// What an instruction does to the flow of code.
fn stick_of(inst: &Inst) -> Stick {
    match &inst.op {
        Op::Call { .. }
        | Op::Syscall { .. }
        | Op::Return
        | Op::Trap
        | Op::Breakpoint
        | Op::Barrier { .. }
        | Op::Nanosleep
        | Op::Alloca { .. }
        | Op::StackSave { .. }
        | Op::StackRestore { .. }
        | Op::Joint(_) => Stick::Always,
        Op::Exit => Stick::Ends,
        Op::WarpBarrier { .. }
        | Op::Match { .. }
        | Op::Redux { .. }
        | Op::Elect { .. }
        | Op::Shuffle { .. }
        | Op::Vote { .. } => Stick::Perhaps,
        Op::Compute { op, .. } => match op.linear() {
            Some(Linear::Widen { .. } | Linear::MulWide { .. } | Linear::MadWide { .. }) => Stick::Perhaps,
            Some(
                Linear::Copy
                | Linear::Add
                | Linear::Sub
                | Linear::Mul
                | Linear::Mad
                | Linear::Shl
                | Linear::Narrow
                | Linear::Compare { .. },
            )
            | None => Stick::Never,
        },
        Op::Load { .. }
        | Op::Store { .. }
        | Op::Atomic { .. }
        | Op::Fence { .. }
        | Op::Activemask { .. }
        | Op::ReadSpecial { .. }
        | Op::FrameAddress { .. }
        | Op::ConvertAddress { .. }
        | Op::IsSpace { .. }
        | Op::Within(_)
        | Op::CopyAsync { .. }
        | Op::CopyGroup(_)
        | Op::Texture(_)
        | Op::Surface(_)
        | Op::Shadow(_)
        | Op::HandleQuery { .. }
        | Op::IsHandle { .. } => Stick::Never,
    }
}

/// Which operand of an operation that widens is the one that must not wrap around, and whether it counts as signed.
fn widened(linear: Linear, kind: impl Fn(usize) -> Kind) -> Option<(usize, bool)> {
    let steps = |at: usize| matches!(kind(at), Kind::Line { step, .. } if step != 0);
    match linear {
        Linear::Widen { signed } => steps(0).then_some((0, signed)),
        Linear::MulWide { signed } | Linear::MadWide { signed } => match (steps(0), steps(1)) {
            (true, _) => Some((0, signed)),
            (false, true) => Some((1, signed)),
            (false, false) => None,
        },
        Linear::Copy
        | Linear::Add
        | Linear::Sub
        | Linear::Mul
        | Linear::Mad
        | Linear::Shl
        | Linear::Narrow
        | Linear::Compare { .. } => None,
    }
}

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
    /// more of it, as behind the rim of a plane that is treated apart.
    fn find_lacks(&mut self) {
        let mut lacks = vec![false; self.units.len()];
        let mut work: Vec<Node> = Vec::new();
        for (number, unit) in self.units.iter().enumerate() {
            match &unit.exit {
                Exit::Branch {
                    taken,
                    fall,
                    divides: true,
                    ..
                } => {
                    if self.is_end(*taken) {
                        work.push(*fall);
                    }
                    if self.is_end(*fall) {
                        work.push(*taken);
                    }
                }
                Exit::To(next) if unit.stick == Stick::Ends => work.push(*next),
                Exit::None | Exit::To(_) | Exit::Branch { .. } => {}
            }
            let mut ends = unit.stick == Stick::Ends;
            unit.successors(|to| ends |= self.is_end(to));
            if ends {
                let waiting = self.others[number].iter().copied();
                work.extend(waiting);
            }
        }
        let mut more = 0;
        while let Some(number) = work.pop() {
            if self.is_end(number) || std::mem::replace(&mut lacks[number as usize], true) {
                continue;
            }
            let unit = &self.units[number as usize];
            if self.others[number as usize].is_empty() {
                more += unit.insts.len() + 1;
            }
            unit.successors(|to| work.push(to));
        }
        // Lanes that go apart there go on together, for all others are gone.
        let parts_unseen = |exit: &Exit| match exit {
            Exit::Branch { guard, at, divides, .. } => {
                at.is_some() && !divides && !self.kinds[guard.reg.number as usize].is_line()
            }
            Exit::None | Exit::To(_) => false,
        };
        let mut lacking = self.units.iter().zip(&lacks).filter(|(_, lacks)| **lacks);
        if more <= MOST_LACKING && !lacking.any(|(unit, _)| parts_unseen(&unit.exit)) {
            self.lacks = lacks;
        }
    }

    fn find_lazy(&mut self, body: &Body) {
        let mut lazy: Vec<Option<bool>> = vec![None; body.registers.len()];
        for inst in body.blocks.iter().flat_map(|block| &block.insts) {
            let mut gives = false;
            if let Op::Compute { op, src, .. } = &inst.op {
                let copies = |bits: u128| op.is_copy() && !is_nan(bits as u32);
                gives = super::compute::gives_any_nan(*op) || body.constant(src[0].number).is_some_and(copies);
            }
            inst.op.regs(|reg, role| {
                if role == Role::Def {
                    let at = &mut lazy[reg.number as usize];
                    *at = Some(at.unwrap_or(true) && gives && reg.width == Width::B32);
                }
            });
        }
        self.lazy = lazy
            .into_iter()
            .zip(&body.registers)
            .map(|(lazy, info)| lazy == Some(true) && info.initial.is_none() && !info.hoisted)
            .collect();
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
                        .any(|inst| inst.op.effects().looks_at_others());
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

/// Blocks to which somebody was seen to come.
fn warm(body: &Body, seen: Option<&Seen>) -> Vec<bool> {
    let Some(seen) = seen else {
        return vec![true; body.blocks.len()];
    };
    let mut warm = vec![false; body.blocks.len()];
    let mut work: Vec<u32> = vec![0];
    while let Some(number) = work.pop() {
        let Some(is_warm) = warm.get_mut(number as usize) else {
            continue;
        };
        if std::mem::replace(is_warm, true) {
            continue;
        }
        let block = &body.blocks[number as usize];
        match &block.end {
            End::Branch { taken, fall, .. } if taken != fall => {
                let [by_taken, by_fall, _] = seen.at(number, &block.end);
                work.extend(by_taken.then_some(*taken));
                work.extend(by_fall.then_some(*fall));
            }
            end => end.successors(|to| work.push(to)),
        }
    }
    warm
}

fn units(body: &Body, starts: &[Pc], (seen, warm): (Option<&Seen>, &[bool])) -> Result<Vec<Unit>, Refusal> {
    let mut units: Vec<Unit> = Vec::new();
    let mut first = Vec::with_capacity(body.blocks.len());
    let mut entry = true;
    for (number, block) in body.blocks.iter().enumerate() {
        first.push(units.len() as Node);
        let unit = |insts: Range<usize>, stick, entry| Unit {
            block: number as u32,
            pc: starts[number] + insts.start as Pc,
            insts,
            stick,
            exit: Exit::None,
            entry,
        };
        let mut from = 0;
        for (at, inst) in block.insts.iter().enumerate() {
            let stick = stick_of(inst);
            if stick == Stick::Never {
                continue;
            }
            if at > from || (at == 0 && number == 0) {
                units.push(unit(from..at, Stick::Never, std::mem::take(&mut entry)));
            }
            // A kernel that begins with one is entered there if it turns out to be like others.
            let begins = std::mem::take(&mut entry) || (at == 0 && number == 0);
            units.push(unit(at..at + 1, stick, begins));
            entry = true;
            from = at + 1;
        }
        let (rest, last) = (from..block.insts.len(), block.insts.len());
        match block.end {
            // The interpreter sorts lanes by where they go.
            End::Indexed { .. } => {
                if !rest.is_empty() {
                    units.push(unit(rest, Stick::Never, std::mem::take(&mut entry)));
                }
                units.push(unit(last..last, Stick::Always, false));
            }
            End::Stop if rest.is_empty() && from > 0 => {}
            End::Stop | End::Jump { .. } | End::Branch { .. } => {
                units.push(unit(rest, Stick::Never, std::mem::take(&mut entry)));
                if let Some(seen) = seen
                    && seen.misses(number as u32, &block.end)
                    && warm[number]
                {
                    units.push(unit(last..last, Stick::Always, false));
                }
            }
        }
        entry = matches!(block.end, End::Indexed { .. });
        if units.len() > MOST_UNITS {
            return Err("it is too large");
        }
    }
    let mut indexed = Vec::new();
    for at in 0..units.len() {
        let number = units[at].block;
        let block = &body.blocks[number as usize];
        // The unit at a branch is one more.
        let misses = warm[number as usize] && seen.is_some_and(|seen| seen.misses(number, &block.end));
        let ends = |at: usize| units.get(at).is_none_or(|next| next.block != number);
        let last = ends(at + 1 + usize::from(misses));
        if misses && ends(at + 1) {
            continue;
        }
        let guarded = units[at].insts.len() == 1 && block.insts[units[at].insts.start].guard.is_some();
        let exit = if matches!(units[at].stick, Stick::Always | Stick::Ends) && !guarded {
            Exit::None
        } else if !last {
            Exit::To(at as Node + 1)
        } else {
            match &block.end {
                End::Jump { to, .. } => Exit::To(first[*to as usize]),
                End::Branch { guard, taken, fall, .. } => {
                    let (taken, fall) = (first[*taken as usize], first[*fall as usize]);
                    match taken == fall {
                        true => Exit::To(fall),
                        false => {
                            let [by_taken, by_fall, parted] =
                                seen.map_or([true; 3], |seen| seen.at(number, &block.end));
                            let own = misses.then_some(at as Node + 1);
                            Exit::Branch {
                                guard: *guard,
                                taken: own.filter(|_| !by_taken).unwrap_or(taken),
                                fall: own.filter(|_| !by_fall).unwrap_or(fall),
                                at: own,
                                divides: parted || own.is_none(),
                            }
                        }
                    }
                }
                End::Indexed { targets, .. } => {
                    indexed.extend(targets.iter().map(|&to| first[to as usize]));
                    Exit::None
                }
                End::Stop => Exit::None,
            }
        };
        units[at].exit = exit;
    }
    for to in indexed {
        units[to as usize].entry = true;
    }
    // Lanes come back from where no code is made.
    for (block, _) in body.blocks.iter().zip(warm).filter(|(_, warm)| !**warm) {
        block
            .end
            .successors(|to| units[first[to as usize] as usize].entry = true);
    }
    Ok(units)
}

/// What is in a register before the code runs.
fn initial_kind(initial: Initial, width: Width, shape: Shape, (rows, lanes): (Rows, u32)) -> Kind {
    let special = match initial {
        Initial::Constant(bits) => return Kind::SAME.aligned((bits as u64).trailing_zeros()),
        Initial::Param { .. } => return Kind::SAME,
        Initial::Special(special) => special,
    };
    // How far parts begin from the first one along an axis of the block.
    let begins = |step: u64, far: &dyn Fn(u32) -> u32| {
        Parts::of(Width::B32, step, lanes, |part| Some(far(part as u32 * lanes).into()))
    };
    let kind = match special {
        // Warps start at multiples of 32 of a row, or parts at multiples of their length.
        Special::Tid(0) => match rows {
            Rows::Warp => Kind::line(1, Parts::One).aligned(5),
            Rows::Short(x) => Kind::line(1, begins(1, &|lane| lane % x)).aligned(lanes.trailing_zeros()),
            Rows::Part => Kind::line(1, Parts::Each).aligned(lanes.trailing_zeros()),
            Rows::Any => Kind::Vector,
        },
        Special::Tid(axis) => match rows {
            Rows::Warp => Kind::SAME,
            Rows::Short(x) if axis == 1 => Kind::line(0, begins(0, &|lane| lane / x)),
            Rows::Short(_) => Kind::SAME,
            Rows::Part => Kind::line(0, Parts::Each),
            Rows::Any => Kind::Vector,
        },
        Special::Laneid => Kind::line(1, Parts::One).aligned(63),
        Special::Warpid => Kind::SAME,
        // What is the same in a block is the same in its warps.
        _ if shape == Shape::Uniform => Kind::SAME,
        _ => Kind::Vector,
    };
    match (width, kind) {
        (Width::B32 | Width::B64, kind)
        | (
            _,
            kind @ Kind::Line {
                step: 0,
                parts: Parts::One,
                ..
            },
        ) => kind,
        (Width::Pred | Width::B16 | Width::B128, _) => Kind::Vector,
    }
}

/// The low or the high bits of a number that grows by one, from where those begin: `%tid.x % 16`, `%tid.x / 32`, the multiple of 16
/// before `%tid.x`. They are one line where it does not leave them within the warp, and one a part where it does not within the parts.
fn masked(
    body: &Body,
    op: Compute,
    src: &[Reg],
    (steps, aligns, parts): ([u64; 4], [u32; 4], [Parts; 4]),
    lanes: u32,
) -> Option<Kind> {
    let constant = |at: usize| body.constant(src[at].number).map(|bits| bits as u64);
    let Compute::Logic(op) = op else { return None };
    let (line, bits, low) = if let logic::Op::And { .. } = op {
        let (line, mask) = match (constant(0), constant(1)) {
            (_, Some(mask)) => (0, mask),
            (Some(mask), _) => (1, mask),
            (None, None) => return None,
        };
        let all = match src[line].width {
            Width::B32 => u64::from(u32::MAX),
            _ => u64::MAX,
        };
        match (mask.trailing_ones(), mask.trailing_zeros()) {
            (bits @ 1.., _) if mask == u64::MAX >> (64 - bits) => (line, bits, true),
            (_, bits @ 1..64) if mask == all >> bits << bits => (line, bits, false),
            _ => return None,
        }
    } else if let logic::Op::Shr { .. } = op {
        (0, u32::try_from(constant(1)?).ok()?, false)
    } else {
        return None;
    };
    if steps[line] != 1 || steps.iter().sum::<u64>() != 1 || bits >= 31 {
        return None;
    }
    let step = u64::from(low);
    let within = |bits: u32| aligns[line] >= bits;
    if parts[line] == Parts::One && bits >= 5 && within(5) {
        Some(Kind::line(step, Parts::One).aligned(if low { aligns[line] } else { 0 }))
    } else if bits >= lanes.trailing_zeros() && within(lanes.trailing_zeros()) {
        // Where the warp begins at a multiple of its lanes, all of these bits are those of the lane's number.
        let far = |part: usize| {
            let lane = part as u64 * u64::from(lanes);
            let (upper, lower) = (lane >> bits, lane & !(u64::MAX << bits));
            let known = parts[line] == Parts::One && within(5);
            known.then_some(match (low, op) {
                (true, _) => lower,
                (false, logic::Op::Shr { .. }) => upper,
                (false, _) => upper << bits,
            })
        };
        let parts = Parts::of(src[line].width, step, lanes, far);
        Some(Kind::line(step, parts).aligned(if low {
            aligns[line].min(lanes.trailing_zeros())
        } else {
            0
        }))
    } else {
        None
    }
}

/// The kind of what lanes learn of these members.
fn told(members: Option<Value<Reg>>, of: impl Fn(Register) -> Kind) -> Kind {
    match members {
        None | Some(Value::Immediate(_)) => Kind::SAME,
        Some(Value::Register(reg)) => of(reg.number).alike(),
    }
}

/// The kind of what an operation gives, without its guard.
fn given(body: &Body, kinds: &[Kind], inst: &Inst, lanes: u32) -> Kind {
    let of = |register: Register| kinds[register as usize];
    match &inst.op {
        Op::Compute { op, src, dst } => {
            if dst.iter().chain(src).any(|reg| reg.width == Width::B128) {
                return Kind::Vector;
            }
            if src.iter().any(|reg| of(reg.number) == Kind::Unknown) {
                return Kind::Unknown;
            }
            if src.iter().any(|reg| !of(reg.number).is_line()) {
                return Kind::Vector;
            }
            let mut parts = [Parts::One; 4];
            let mut steps = [0; 4];
            let mut aligns = [0; 4];
            for (((step, align), parts), reg) in steps.iter_mut().zip(&mut aligns).zip(&mut parts).zip(src) {
                if let Kind::Line {
                    step: s,
                    parts: p,
                    align: a,
                } = of(reg.number)
                {
                    (*step, *align, *parts) = (s, u32::from(a), p);
                }
            }
            // As the sign of a number that has none.
            let facts = dst.first().and_then(|reg| body.facts.get(reg.number as usize));
            if dst.len() == 1
                && parts == [Parts::One; 4]
                && dst[0].width != Width::Pred
                && facts.is_some_and(|facts| facts.range == Some((0, 0)))
            {
                return Kind::SAME.aligned(63);
            }
            if dst.len() == 1
                && let Some(kind) = masked(body, *op, src, (steps, aligns, parts), lanes)
            {
                return kind;
            }
            let align = match op.linear() {
                Some(Linear::Copy | Linear::Narrow | Linear::Widen { .. }) => aligns[0],
                Some(Linear::Add | Linear::Sub) => aligns[0].min(aligns[1]),
                Some(Linear::Mul | Linear::MulWide { .. }) => aligns[0] + aligns[1],
                Some(Linear::Mad | Linear::MadWide { .. }) => (aligns[0] + aligns[1]).min(aligns[2]),
                Some(Linear::Shl) => {
                    let by = body.constant(src[1].number).filter(|&by| by < 64);
                    by.map_or(0, |by| aligns[0] + by as u32)
                }
                Some(Linear::Compare { .. }) | None => 0,
            };
            let linear = op.linear().filter(|_| dst.len() == 1);
            let constant = |at: usize| body.constant(src[at].number).map(|bits| bits as u64);
            // What parts begin with grows from one to the next as a line does, if numbers that are widened are looked at.
            let parts_of = |width: Width, step: u64| {
                let Some(linear) = linear.filter(|_| parts != [Parts::One; 4]) else {
                    return if parts == [Parts::One; 4] {
                        Parts::One
                    } else {
                        Parts::Each
                    };
                };
                let looked_at = widened(linear, |at| of(src[at].number)).is_some();
                if linear.widens() && !looked_at && parts[..2] != [Parts::One; 2] {
                    return Parts::Each;
                }
                let far = |part: usize| linear.stride(|at| parts[at].far(part, steps[at], lanes), constant);
                Parts::of(width, step, lanes, far)
            };
            if steps == [0; 4] {
                let width = dst.first().map_or(Width::Pred, |reg| reg.width);
                return Kind::line(0, parts_of(width, 0)).aligned(align);
            }
            let Some(linear) = linear else {
                return Kind::Vector;
            };
            let step = linear.stride(|at| Some(steps[at]), constant);
            match (step, dst[0].width) {
                (Some(step), width @ Width::B32) => {
                    Kind::line(u64::from(step as u32), parts_of(width, step)).aligned(align)
                }
                (Some(step), width @ Width::B64) => Kind::line(step, parts_of(width, step)).aligned(align),
                (_, Width::Pred | Width::B16 | Width::B32 | Width::B64 | Width::B128) => Kind::Vector,
            }
        }
        Op::Load {
            address,
            element,
            ordering: Ordering::Weak,
            dst,
            ..
        } if element.bytes <= 8
            && dst.iter().flatten().all(|reg| reg.width != Width::B128)
            && address.space != Space::Local =>
        {
            match address.register.map_or(Kind::SAME, |reg| of(reg.number)) {
                kind @ (Kind::Unknown | Kind::Line { step: 0, .. }) => kind.aligned(0).scattered(),
                Kind::Line { .. } | Kind::Vector | Kind::Window => Kind::Vector,
            }
        }
        Op::ConvertAddress { space, src, .. } if *space != Space::Local => of(src.number).aligned(0).scattered(),
        // Whoever names the same members is told the same.
        Op::Vote { members, .. } => told(*members, of),
        Op::Redux { members, .. } => told(Some(*members), of),
        Op::Activemask { .. } => Kind::SAME,
        // All lanes ask for the same one, which is there.
        Op::Shuffle {
            mode: ShuffleMode::Idx,
            b,
            c,
            ..
        } if body.constant(c.number).is_some_and(|c| c & 0x1f1f == 0x1f) => of(b.number).alike(),
        Op::Load { .. }
        | Op::ConvertAddress { .. }
        | Op::Store { .. }
        | Op::Atomic { .. }
        | Op::Call { .. }
        | Op::Return
        | Op::Exit
        | Op::Trap
        | Op::Breakpoint
        | Op::Barrier { .. }
        | Op::WarpBarrier { .. }
        | Op::Fence { .. }
        | Op::Shuffle { .. }
        | Op::Match { .. }
        | Op::Elect { .. }
        | Op::ReadSpecial { .. }
        | Op::FrameAddress { .. }
        | Op::IsSpace { .. }
        | Op::Within(_)
        | Op::Nanosleep
        | Op::Alloca { .. }
        | Op::StackSave { .. }
        | Op::StackRestore { .. }
        | Op::CopyAsync { .. }
        | Op::CopyGroup(_)
        | Op::Joint(_)
        | Op::Texture(_)
        | Op::Surface(_)
        | Op::Shadow(_)
        | Op::HandleQuery { .. }
        | Op::IsHandle { .. }
        | Op::Syscall { .. } => Kind::Vector,
    }
}
