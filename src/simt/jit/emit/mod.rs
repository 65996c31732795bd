//! A planned body as LLVM's text.
//!
//! A unit is emitted for a warp all of whose lanes are there, and, where lanes may be elsewhere meanwhile, under a mask as
//! well. Branches on which a whole warp agrees stay in the first version; where lanes part, the second goes on until they are
//! together again. Under a mask, lanes that go to a unit are added to the unit's flags; what follows a unit is the lowest
//! one that anybody waits at ([`Emit::dispatch`]).
//!
//! Warps that lack lanes for good (at the end of a block, or when some have left the kernel) have code of their own, which
//! is masked throughout ([`For::Some`]).
//!
//! Registers and flags are memory of the function's frame, which LLVM's first pass makes values of. A register of lanes is
//! as many values as the CPU's vectors ask for (*parts*).
//!
//! ```text
//! flow.rs          units, who goes where      ways.rs       into the code, and out of it
//! masks.rs         which lanes run            registers.rs  registers while code runs
//! window.rs        registers in memory        pack.rs       and while a warp waits at a barrier
//! access.rs        loads and stores           group.rs      several of them at once
//! locate.rs        where they go              ends.rs       lines of which some lanes run
//! atomic.rs        atomics                    lanes.rs      operations on registers
//! instructions.rs  one instruction            vote.rs       what lanes find together
//! shuffle.rs       what they give each other  within.rs     accesses checked to the object
//! rounds.rs        a block's warps in turn    order.rs       one part of a warp after the other
//! ahead.rs         what loops touch next      exact.rs       NaN of `f64`
//! matrix.rs        products, small matrices      tile.rs         tiles in memory
//! words.rs         words that lie side by side      alone.rs       loops that lanes go through one by one
//! turns.rs         a lane's turns of those          pays.rs        whether warps take that way
//! ```

mod access;
mod ahead;
mod alike;
mod alone;
mod apart;
mod atomic;
mod copy;
mod ends;
mod exact;
mod flow;
mod group;
mod indexed;
mod instructions;
mod lanes;
mod locate;
mod masks;
mod matrix;
mod near;
mod order;
mod pack;
mod pays;
mod place;
mod red;
mod registers;
mod rounds;
mod shuffle;
mod texel;
mod tile;
mod turns;
mod vote;
mod ways;
mod window;
mod within;
mod words;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::OnceLock;

use crate::isa::joint::matrix::Multiply;
use crate::isa::{Compute, Level, approx, simd};
use crate::program::{Body, Register, Role, ShuffleMode};

use super::Pc;
use super::compared::{self, Comparison};
use super::context::{Context, LaneCall, Stretch};
use super::moves::Stand;
use super::plan::{Exit, Node, Plan, Stick, Unit};
use super::seen::Seen;
use super::text::{Form, Text};
use super::unit;
use order::NEVER;

/// What is compiled: a body, and where the interpreter has its blocks and registers.
pub struct Input<'a> {
    pub body: &'a Body,
    /// Where each block begins in the interpreter's code.
    pub starts: &'a [Pc],
    /// Each register's place in the window, for a bundle of one warp.
    pub slots: &'a [Option<u32>],
    /// Bytes of the window.
    pub window: u32,
    /// Bytes of the function's frame.
    pub local: u32,
    /// Of what nobody was seen to do no code is made.
    pub seen: Option<&'a Seen>,
}

/// What a kernel of the interpreter is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Called {
    /// With so many results.
    Compute(Compute, usize),
    /// With a predicate as second result, or without.
    Shuffle(ShuffleMode, bool),
}

/// Where results and operands of a call lie in memory.
type Places = ([u32; 2], [u32; 4]);

/// What was made.
pub struct Made {
    pub ir: String,
    pub calls: Vec<LaneCall>,
    /// Places of the interpreter's code where lanes may enter, with the number of the entry.
    pub entries: Vec<(Pc, u32)>,
    /// Where loops begin, and where the last of what goes back there stands.
    pub loops: Vec<(Pc, Pc)>,
    /// Those of [`For::All`] where a part of the lanes may enter.
    pub masked: Vec<u32>,
    /// Bytes that an access reaches from its address, or all of those that are checked together, by site.
    pub sites: Vec<u64>,
    pub stretches: Vec<Stretch>,
    pub products: Vec<Multiply>,
    /// What moves when lanes come in or leave, by unit.
    pub stands: Vec<Stand>,
    /// Bytes that a warp's registers take in [`super::context::Warp::saved`], at most.
    pub saved: usize,
    /// Values that are the same in the block may be looked for in each warp's window.
    pub looks_at_block: bool,
}

/// Of a warp.
const LANES: u32 = crate::isa::lanes::WARP as u32;

/// Bytes of the frame by way of which registers go to functions that are called, and come back.
const SCRATCH: usize = 4096;

/// The name of the function that is made.
pub const NAME: &str = "margay_kernel";

/// What every CPU of the highest level has.
const AVX512: &str = "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512cd";

/// CPU features that code for a level may count on, as LLVM writes them.
pub fn features(level: Level) -> &'static str {
    match level {
        Level::Baseline => "",
        // Gathers as one instruction: LLVM makes three for each lane otherwise, which take no less time, and a while to compile.
        Level::Avx2 => "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt,+fast-gather",
        Level::Avx512 => {
            static WITH_MORE: OnceLock<String> = OnceLock::new();
            WITH_MORE.get_or_init(|| {
                let more = simd::more_of_avx512();
                more.iter()
                    .fold(AVX512.to_owned(), |all, name| format!("{all},+{name}"))
            })
        }
    }
}
/// Lanes of a part.
pub fn part_lanes(level: Level) -> u32 {
    match level {
        Level::Baseline => 4,
        Level::Avx2 => 8,
        Level::Avx512 => 16,
    }
}

/// For whom code is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// Warps all of whose lanes are there. Where some are, and nobody is elsewhere, they leave.
    All,
    /// Any lanes.
    Some,
}

struct Emit<'a> {
    input: &'a Input<'a>,
    plan: &'a Plan,
    level: Level,
    whom: For,
    /// Lanes of a part, and parts of a warp.
    lanes: u32,
    parts: usize,
    text: Text,
    /// What stands before everything else: memory of the frame.
    head: String,
    /// Values that do not change, as they were loaded behind a label.
    fields: HashMap<(u32, usize), String>,
    fixed: HashMap<(u32, Register), Vec<String>>,
    declared: HashMap<Register, ()>,
    /// Predicates for which a comparison may stand.
    comparisons: HashMap<Register, Comparison>,
    calls: Vec<LaneCall>,
    /// By what is called, and where results and operands lie.
    call_of: HashMap<(Called, Places), usize>,
    /// Functions of the module that are called, by name.
    functions: BTreeMap<String, approx::Op>,
    sites: Vec<u64>,
    stretches: Vec<Stretch>,
    products: Vec<Multiply>,
    /// Registers that somebody reads, somewhere.
    read: Vec<bool>,
    /// Accesses that are looked at with others, by their places in the interpreter's code.
    members: HashMap<Pc, place::Member>,
    /// Of those, loads that are done together, by the first one; and the values of the others until they come.
    together: HashMap<Pc, place::Words>,
    loaded: HashMap<Pc, Vec<String>>,
    /// Loops that lanes may go through one by one, with the site where it is kept whether they should and the last unit; and sites of their loads, by the places
    /// of those in the interpreter's code.
    alone: BTreeMap<Node, (usize, Node)>,
    alone_sites: HashMap<Pc, usize>,
    /// Registers that are known to hold addresses of elements, and how many were found.
    indexed: HashMap<Register, place::Indexed>,
    indexed_found: usize,
    /// Which unit is emitted, in which version, for which lanes of its parts (`None`: all).
    unit: Node,
    full: bool,
    mask: Option<Vec<String>>,
    /// The lanes that run the unit, where [`Emit::mask`] may be narrower.
    here: Option<Vec<String>>,
    /// The mask is narrower than the lanes that run: what they hold stays.
    guarded: bool,
    /// Ends of rows are asked for as those of the warp and all behind it.
    beyond: bool,
    /// Operations on `f64` whose results nobody has looked at, and whether the next one may be among them.
    done: Vec<exact::Done>,
    may_wait: bool,
    /// Memory that they need to be done again.
    again_bytes: u32,
    /// Ways out that are still to be emitted.
    chains: BTreeMap<BTreeSet<Node>, String>,
    leaves: BTreeSet<Node>,
    /// Barriers of the block, at which registers may stay packed, and the units behind them.
    packs: BTreeMap<Node, Node>,
    /// Barriers of the block that tell all threads what those said who came ([`red`]), and the units behind them.
    reds: BTreeMap<Node, Node>,
    /// Barriers of both kinds, for a warp that lacks lanes: it goes on at once if its block has no other.
    passes: BTreeMap<Node, Node>,
    /// Heads of loops before which a warp may pause, and the entries where it goes on.
    pauses: BTreeMap<Node, Node>,
    /// The unit whose strides have last been looked at.
    measured: Option<Node>,
    /// Where registers are kept meanwhile, and how much room that takes.
    kept: BTreeMap<Register, usize>,
    /// Registers that are there all the time, and not in LLVM's frame.
    homes: BTreeSet<Register>,
    saved: usize,
    /// Of those, the ones that may have been written since the code was entered, when a unit begins.
    changed: Vec<BTreeSet<Register>>,
    /// Those that go to their places where lanes come to the head of a loop.
    settled: BTreeMap<Node, BTreeSet<Register>>,
    /// The interpreter may be asked to do something with a value of the block, for which it looks into the warp's window.
    looks_at_block: bool,
    /// Of that, what is kept; behind it, what passes through.
    kept_bytes: usize,
    /// Where in it the addresses are that a warp has accessed in the block before, and how many there are.
    lasts_at: usize,
    lasts: usize,
    /// The registers of those, with their units.
    fetched: BTreeSet<(Node, Option<Register>)>,
    /// Units where lanes come in or leave with registers.
    stands: BTreeSet<Node>,
    /// Nodes whose flags are memory that must start as nobody.
    flags: BTreeSet<Node>,
    used: BTreeSet<Node>,
}

/// Makes text of a plan.
pub fn emit(input: &Input<'_>, plan: &Plan, level: Level, whom: For) -> Made {
    let lanes = part_lanes(level);
    let mut emit = Emit {
        input,
        plan,
        level,
        whom,
        lanes,
        parts: (32 / lanes) as usize,
        text: Text::default(),
        head: String::new(),
        fields: HashMap::new(),
        fixed: HashMap::new(),
        declared: HashMap::new(),
        comparisons: compared::comparisons(input.body, |register| {
            plan.live.first().is_none_or(|live| live.has(register))
        }),
        calls: Vec::new(),
        call_of: HashMap::new(),
        functions: BTreeMap::new(),
        sites: Vec::new(),
        stretches: Vec::new(),
        products: Vec::new(),
        read: read(input.body),
        members: HashMap::new(),
        together: HashMap::new(),
        loaded: HashMap::new(),
        alone: BTreeMap::new(),
        alone_sites: HashMap::new(),
        indexed: HashMap::new(),
        indexed_found: 0,
        unit: 0,
        full: true,
        mask: None,
        here: None,
        guarded: false,
        beyond: false,
        done: Vec::new(),
        may_wait: false,
        again_bytes: 0,
        used: BTreeSet::new(),
        chains: BTreeMap::new(),
        leaves: BTreeSet::new(),
        packs: BTreeMap::new(),
        reds: BTreeMap::new(),
        passes: BTreeMap::new(),
        pauses: BTreeMap::new(),
        measured: None,
        kept: BTreeMap::new(),
        homes: BTreeSet::new(),
        saved: 0,
        changed: Vec::new(),
        settled: BTreeMap::new(),
        looks_at_block: false,
        kept_bytes: 0,
        lasts_at: 0,
        lasts: 0,
        fetched: BTreeSet::new(),
        stands: BTreeSet::new(),
        flags: BTreeSet::new(),
    };
    let entries = emit.function();
    let ir = emit.module();
    Made {
        stands: emit.stands(),
        ir,
        calls: emit.calls,
        loops: (plan.loops.keys())
            .map(|&(from, to)| (plan.units[to as usize].pc, plan.units[from as usize].pc))
            .collect(),
        masked: entries
            .iter()
            .map(|&(_, unit)| unit)
            .filter(|&unit| whom == For::Some || !plan.others[unit as usize].is_empty())
            .collect(),
        entries,
        sites: emit.sites,
        stretches: emit.stretches,
        products: emit.products,
        saved: emit.saved,
        looks_at_block: emit.looks_at_block,
    }
}

/// Registers that are read somewhere.
fn read(body: &Body) -> Vec<bool> {
    let mut read = vec![false; body.registers.len()];
    for block in &body.blocks {
        for inst in &block.insts {
            inst.regs(|reg, role| read[reg.number as usize] |= role == Role::Use);
        }
        if let Some(register) = block.end.register() {
            read[register as usize] = true;
        }
    }
    read
}

impl Emit<'_> {
    fn is_read(&self, register: Register) -> bool {
        self.read[register as usize]
    }

    fn form(&self) -> Form {
        Form::Lanes(self.lanes)
    }

    fn module(&mut self) -> String {
        let mut ir = String::from("target triple = \"x86_64-unknown-linux-gnu\"\n\n");
        let _ = writeln!(
            ir,
            "define i32 @{NAME}(ptr noalias align 16 dereferenceable({}) %n, i32 %entry, i32 %lanes) #0 {{\nhead:",
            size_of::<Context>()
        );
        ir.push_str(&self.head);
        let _ = writeln!(
            ir,
            "  {NEVER} = alloca i8\n  store volatile i8 0, ptr {NEVER}\n  br label %start"
        );
        ir.push_str(&self.text.lines);
        ir.push_str("}\n\n");
        for &op in self.functions.values() {
            ir.push_str(&unit::function(op, self.level));
        }
        // What LLVM spills are whole vectors: the frame is aligned for them.
        ir.push_str("attributes #0 = { nounwind \"stackrealign\" }\n!0 = !{}\n!1 = !{!\"branch_weights\", i32 1, i32 1048575}\n");
        let _ = writeln!(
            ir,
            "!2 = !{{i64 64}}\n!3 = !{{i64 {}}}\n!4 = distinct !{{!4, !5}}\n!5 = !{{!\"llvm.licm.disable\"}}",
            self.input.window
        );
        ir
    }

    // ---- the whole function --------------------------------------------------------------------------------------------

    fn function(&mut self) -> Vec<(Pc, u32)> {
        let count = self.plan.units.len() as Node;
        for others in &self.plan.others {
            self.flags.extend(others.iter().copied());
        }
        let _ = writeln!(
            self.head,
            "  %budget = alloca i64\n  %turns = alloca i64\n  %scratch = alloca [{SCRATCH} x i8], align 64"
        );
        let mut entries = Vec::new();
        for (number, unit) in self.plan.units.iter().enumerate() {
            let makes = !unit.insts.is_empty() || !matches!(unit.exit, Exit::None);
            // Warps that have paused go on at the head of their loop, though it may be a place where they leave.
            let pauses = self.plan.streams.contains(&(number as Node)) && unit.stick == Stick::Perhaps;
            // So do those that come from a barrier, to the next one as well.
            let before = number.checked_sub(1).map(|before| &self.plan.units[before]);
            let waits = (self.is_barrier(unit) || unit.stick == Stick::Perhaps)
                && before.is_some_and(|before| self.is_barrier(before));
            // Warps that have said something at one come there again, if not all of them have.
            let says = self.whom == For::All && self.red(unit).is_some();
            let goes_on = unit.stick == Stick::Never || pauses || waits || says;
            if unit.entry && !self.plan.cold[number] && goes_on && makes {
                entries.push((unit.pc, number as u32));
            }
        }
        match self.whom {
            For::All => {
                self.packs = self.barriers(&entries, Self::is_barrier);
                // Those who have not heard yet must come there again, and who has stands nowhere that is a barrier as well.
                let reds = self.barriers(&entries, |this, unit| this.red(unit).is_some());
                let again = |&(unit, next): &(Node, Node)| {
                    let [before, behind] = [unit, next].map(|unit| self.plan.units[unit as usize].pc);
                    let entered = entries.iter().find(|(at, _)| *at == before);
                    let waits = |unit: &Unit| unit.pc == behind && self.is_barrier(unit);
                    entered.is_some_and(|&(_, entered)| entered == unit) && !self.plan.units.iter().any(waits)
                };
                self.reds = reds.into_iter().filter(again).collect();
                self.pauses = self.pauses(&entries);
            }
            For::Some => {
                self.passes = self.barriers(&entries, |this, unit| this.is_barrier(unit) || this.red(unit).is_some());
            }
        }
        self.lay_out();
        self.choose_homes();
        self.find_changed();
        self.start(&entries);
        for &(_, unit) in &entries {
            self.entry(unit);
        }
        for unit in (0..count).filter(|&unit| !self.plan.cold[unit as usize]) {
            self.one_by_one(unit);
            if self.whom == For::All {
                self.unit(unit, true);
            }
            if self.is_masked(unit) {
                self.unit(unit, false);
            } else {
                self.joined(unit);
            }
        }
        for (barrier, next) in self.packs.clone() {
            self.pack(('B', barrier), next);
        }
        for (head, entry) in self.pauses.clone() {
            self.pack(('P', head), entry);
        }
        for unit in self.reds.clone().into_keys() {
            self.say(unit);
        }
        // Leaving adds chains for loops that run out of their budget, and no others.
        while let Some(unit) = self.leaves.pop_first() {
            self.leave_all(unit);
        }
        self.leave_from_nodes();
        self.rounds();
        self.place_flags(count);
        if self.again_bytes > 0 {
            let bytes = self.again_bytes;
            let _ = writeln!(self.head, "  %again = alloca [{bytes} x i8], align 64");
        }
        entries
    }

    /// Heads of loops before which warps pause, and the entry where each goes on: of units at one place the first one is entered,
    /// which has to be the head, or to lead there and do nothing.
    fn pauses(&self, entries: &[(Pc, u32)]) -> BTreeMap<Node, Node> {
        let leads = |mut unit: Node, head: Node| {
            while unit < head {
                match &self.plan.units[unit as usize] {
                    passed if !passed.insts.is_empty() => return false,
                    Unit { exit: Exit::To(to), .. } if *to > unit => unit = *to,
                    _ => return false,
                }
            }
            unit == head
        };
        let heads = entries.iter().filter(|(_, unit)| self.plan.streams.contains(unit));
        let both = heads.filter_map(|&(pc, head)| {
            let entered = entries.iter().find(|(at, _)| *at == pc)?.1;
            leads(entered, head).then_some((head, entered))
        });
        both.collect()
    }

    /// Such barriers of the whole block, and the entry behind each.
    fn barriers(&self, entries: &[(Pc, u32)], counts: impl Fn(&Self, &Unit) -> bool) -> BTreeMap<Node, Node> {
        let numbered = self.plan.units.iter().enumerate();
        numbered
            .filter(|(_, unit)| counts(self, unit))
            .filter_map(|(number, unit)| {
                let (_, next) = entries.iter().find(|(pc, _)| *pc == unit.pc + 1)?;
                Some((number as Node, *next))
            })
            .collect()
    }

    /// Whether a unit is an unguarded barrier of the whole block.
    fn is_barrier(&self, unit: &Unit) -> bool {
        let inst = self.input.body.blocks[unit.block as usize].insts.get(unit.insts.start);
        let inst = inst.filter(|inst| inst.guard.is_none() && !unit.insts.is_empty());
        inst.is_some_and(|inst| inst.op.barrier_of_all().is_some())
    }

    /// A place so many bytes behind another.
    fn place(&mut self, base: &str, offset: usize) -> String {
        self.text
            .value(format!("getelementptr inbounds i8, ptr {base}, i64 {offset}"))
    }

    /// A field of the context; `same`: it does not change while the code runs.
    fn field(&mut self, offset: usize, ty: &str, same: bool) -> String {
        if !same {
            let at = self.place("%n", offset);
            return self.text.value(format!("load {ty}, ptr {at}"));
        }
        if let Some(value) = self.fields.get(&(self.text.labels, offset)) {
            return value.clone();
        }
        let at = self.place("%n", offset);
        let value = self.text.value(format!("load {ty}, ptr {at}, !invariant.load !0"));
        self.fields.insert((self.text.labels, offset), value.clone());
        value
    }
}
