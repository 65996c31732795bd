//! A compiled function → the form in which the interpreter runs it: offsets multiplied for one bundle width, memory
//! accesses bound to the function that carries them out. Made once per function and width, kept with the function.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use crate::config::{self, Jit};
use crate::isa::lanes::{LaneKernel, MAX_WARPS, Operands, Width};
use crate::program::{
    Callee, Copy3, Function, Initial, Op as Operation, Ordering as Strength, Role, Scope, Shadow, ShadowOp, Space,
    Special, Syscall, Within,
};
use crate::ptx::ast::Span;
use crate::simt::executables::Executables;
use crate::simt::jit::{self, Effort, For, Input, Native, Rows, Seen};
use crate::simt::machine::observe::Watch;
use crate::simt::machine::shadow;
use crate::simt::machine::special;
use crate::simt::machine::{AccessFn, AtomOp, AtomicFn, MemOp, NONE, Operations, RECENT};

use super::compile::values::Affine;
use super::compile::{Compiled, Instr, Pc, Slot, What};
use super::contest::{Contest, Size};
use super::inspect::Inspected;

/// A guard on an instruction: offset of the predicate, and whether lanes run where it is clear.
#[derive(Clone, Copy)]
pub struct OpGuard {
    pub offset: u32,
    pub negated: bool,
}

/// One instruction as the loop sees it.
pub struct Op {
    pub guard: OpGuard,
    /// From this one on, so many instructions compute lane by lane and have no guard: the loop need not look at each.
    pub plain: u16,
    pub code: Code,
}

/// What to do; hot operations in place, rare ones as the program has them (with offsets multiplied).
pub enum Code {
    Lane {
        kernel: LaneKernel,
        operands: Operands,
    },
    /// Somebody looks at what comes out.
    Inspected(Box<Inspected>),
    Load {
        run: AccessFn,
        mem: Box<MemOp>,
    },
    Store {
        run: AccessFn,
        mem: Box<MemOp>,
    },
    Atomic {
        run: AtomicFn,
        atom: Box<AtomOp>,
    },
    Branch {
        target: Pc,
        /// Back to the head of a loop that may go on until other threads do something.
        waits: bool,
        /// The block of the function that ends with it.
        block: u32,
        /// What it jumps over is short, and nothing but computing and weak accesses: where lanes part here, some do that while the
        /// others wait, and they go on together.
        skips: bool,
    },
    BranchIndexed {
        index: Slot,
        targets: Box<[Pc]>,
    },
    /// A barrier over the whole block without operands worth a look: `bar.sync n`.
    BarrierAll {
        id: u32,
    },
    Call(Box<CallOp>),
    /// What follows values that nobody has written, where that is asked for.
    Shadow {
        op: Box<ShadowOp<Slot>>,
        span: Span,
    },
    /// A check of accesses before they are made; the register's value, if it follows the lane's number, or [`NONE`].
    Within {
        op: Box<Within<Slot>>,
        affine: u32,
    },
    Return,
    Exit,
    Rare(Box<Operation<Slot>>),
}

pub struct CallOp {
    /// Index into the module's functions, or [`NONE`] for an indirect call.
    pub function: u32,
    /// Slot offset of the address of an indirect call.
    pub address: u32,
    pub params: u32,
    pub returns: u32,
    pub args: Box<[Copy3]>,
    pub results: Box<[Copy3]>,
    /// The instruction, for observers.
    pub span: Span,
    /// The callee in executable form, once it has been called. The module keeps it; functions that call each other
    /// must not.
    pub resolved: OnceLock<Weak<Executable>>,
}

/// A function for one bundle width.
pub struct Executable {
    pub compiled: Arc<Compiled>,
    pub function: Arc<Function>,
    /// Warps of the bundles that it is for.
    pub width: u32,
    /// The operations that it calls.
    pub machine: &'static Operations,
    pub code: Vec<Op>,
    pub prologue: Vec<Op>,
    pub initial: Vec<(Slot, Initial)>,
    /// Special registers among the initial values that change from block to block.
    pub per_block: Vec<(Slot, Special)>,
    /// Bytes of a register window.
    pub window: u32,
    /// The same kernel where values that follow the lane's number are at hand: for the same windows.
    pub lean: Option<Arc<Executable>>,
    /// Those values (of [`Executable::lean`] itself).
    pub affine: Option<Affine>,
    /// Of a lean form: where its instructions stand in the function's code.
    pcs: Option<Vec<Pc>>,
    /// Compiled code, for one warp.
    pub native: Option<Compilation>,
}

/// How many widths bundles have.
const WIDTHS: usize = MAX_WARPS.ilog2() as usize + 1;

/// The forms of one function.
#[derive(Default)]
struct Forms {
    compiled: OnceLock<Arc<Compiled>>,
    /// For bundles of 1, 2, 4 and 8 warps.
    executable: [OnceLock<Arc<Executable>>; WIDTHS],
    /// Likewise, for grids at which somebody looks.
    watched: [OnceLock<Arc<Executable>>; WIDTHS],
    /// With compiled code, by how the rows of a block lie; none where the interpreter has to do.
    native: [Arc<NativeForm>; Rows::COUNT],
}

/// A function's form with compiled code, for blocks whose rows lie in one way: there, to come, or never.
#[derive(Default)]
pub struct NativeForm {
    /// Of what had been seen, of what has been seen since, of all.
    made: [OnceLock<Option<Arc<Executable>>>; GENERATIONS],
    /// So many of them have been asked for.
    asked: AtomicUsize,
    /// For how long the function has been interpreted, in nanoseconds.
    interpreted: AtomicU64,
    /// For how long it must have been before it can be worth compiling; 0: nobody has asked as yet.
    worth: AtomicU64,
    contest: Contest,
}

/// How often a function is compiled at most.
pub const GENERATIONS: usize = 3;

/// Of functions of fewer instructions all is compiled at once.
const FEW: usize = 100;

impl NativeForm {
    /// What has been made so far; `Some(None)`: nothing will be.
    #[inline(always)]
    pub fn made(&self) -> Option<Option<&Arc<Executable>>> {
        self.made[0].get().map(|_| self.last_made().map(|(_, made)| made))
    }

    /// What has been made last, and its number.
    #[inline(always)]
    pub fn last_made(&self) -> Option<(usize, &Arc<Executable>)> {
        if self.contest.is_lost() {
            return None;
        }
        self.newest()
    }

    /// The same, though it may have turned out to be slower.
    #[inline(always)]
    fn newest(&self) -> Option<(usize, &Arc<Executable>)> {
        let made = self.made.iter().enumerate().rev();
        made.filter_map(|(number, made)| Some((number, made.get()?.as_ref()?)))
            .next()
    }

    /// A launch took so long, all of it in compiled code or all of it in the interpreter.
    pub fn took(
        self: &Arc<Self>,
        size: Size,
        time: Duration,
        compiled: bool,
        (function, rows): (&Arc<Compiled>, Rows),
    ) {
        if config::get().jit == Jit::Always {
            return;
        }
        if !compiled {
            self.contest.interpreted(size, time);
            return;
        }
        let Some(interpreted) = self.contest.compiled(size, time) else {
            return;
        };
        tracing::debug!(
            kernel = &*function.function.name,
            ?size,
            compiled = ?time,
            ?interpreted,
            "is interpreted again, which takes less time"
        );
        // Perhaps because it is code of something else.
        if let Some((generation, made)) = self.newest()
            && let Some(native) = &made.native
        {
            self.make_again(generation + 1, native, function, rows);
        }
    }

    /// Compiles it, unless that is done.
    fn make(&self, generation: usize, compiled: &Arc<Compiled>, rows: Rows, whole: bool) {
        self.made[generation].get_or_init(|| {
            let seen = match whole {
                true => None,
                false => seen_of(compiled, generation),
            };
            let all = compile(compiled, rows, For::All, seen.as_ref())?;
            if !whole {
                remember(compiled, seen.as_ref());
            }
            // Nobody knows how long that takes.
            self.contest.begin_anew();
            Some(Executable::of_code(compiled, rows, all, seen))
        });
    }

    /// Has it compiled by another thread, once.
    fn ask(self: &Arc<Self>, generation: usize, compiled: &Arc<Compiled>, rows: Rows, whole: bool) {
        if self.asked.fetch_max(generation + 1, Ordering::Relaxed) > generation || !may_compile(compiled) {
            return;
        }
        let size = match whole {
            true => compiled.code.len(),
            false => seen_size(compiled),
        };
        let (form, compiled) = (Arc::clone(self), Arc::clone(compiled));
        jit::later(size, move || form.make(generation, &compiled, rows, whole));
    }

    /// What an earlier process has made is soon there, by another thread, however little the function has been interpreted.
    fn recall(self: &Arc<Self>, compiled: &Arc<Compiled>, rows: Rows) {
        if !jit::has_cache() || !may_compile(compiled) || known_by(compiled).is_none() {
            return;
        }
        let (form, compiled) = (Arc::clone(self), Arc::clone(compiled));
        jit::later(RECALLED, move || {
            let Some(before) = remembered(&compiled) else { return };
            let seen = (before != Seen::all(compiled.function.body.blocks.len())).then_some(before);
            let input = input_of(&compiled, seen.as_ref());
            let Ok(all) = jit::make(&compiled.function.name, &input, rows, For::All, Effort::Recall) else {
                return;
            };
            form.asked.fetch_max(1, Ordering::Relaxed);
            form.made[0].get_or_init(|| Some(Executable::of_code(&compiled, rows, all, seen)));
        });
    }

    /// Where compiled code goes ways that nobody had been seen to go, and the interpreter has had much to do for that, it is compiled again.
    #[inline(always)]
    pub fn look_again(self: &Arc<Self>, compiled: &Arc<Compiled>, rows: Rows) {
        if let Some((generation, made)) = self.last_made()
            && let Some(native) = &made.native
            && native.strayed.load(Ordering::Relaxed) > worth(compiled.code.len()) / STRAYED
        {
            self.make_again(generation + 1, native, compiled, rows);
        }
    }

    #[cold]
    fn make_again(self: &Arc<Self>, generation: usize, native: &Compilation, compiled: &Arc<Compiled>, rows: Rows) {
        native.strayed.store(0, Ordering::Relaxed);
        let Some(seen) = &native.seen else { return };
        let mut now = compiled.ways.seen();
        now.add(seen);
        if now != *seen && generation < GENERATIONS {
            tracing::debug!(
                kernel = &*compiled.function.name,
                branches = ?now.beyond(seen),
                "does what it was not seen to do"
            );
            self.ask(generation, compiled, rows, false);
        }
    }

    /// The function is being interpreted, for so long now: once that promises to be worth it, it is compiled, and compiled code is used again that
    /// took less.
    pub fn running(self: &Arc<Self>, time: Duration, compiled: &Arc<Compiled>, rows: Rows) {
        self.contest.is_interpreted(time);
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let time = self.interpreted.load(Ordering::Relaxed).saturating_add(time);
        if time > self.worth.load(Ordering::Relaxed) {
            self.weigh(time, compiled, rows);
        }
    }

    /// Whether it is worth compiling: what has been seen of it by now is at least what there is to compile.
    #[cold]
    fn weigh(self: &Arc<Self>, time: u64, compiled: &Arc<Compiled>, rows: Rows) {
        let worth = worth(seen_size(compiled));
        if self.worth.swap(worth, Ordering::Relaxed) == 0 {
            self.recall(compiled, rows);
        }
        if time > worth {
            self.ask(0, compiled, rows, false);
        }
    }

    /// It was interpreted for so long.
    pub fn interpreted(self: &Arc<Self>, time: Duration, compiled: &Arc<Compiled>, rows: Rows) {
        self.running(time, compiled, rows);
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.interpreted.fetch_add(time, Ordering::Relaxed);
    }
}

/// Compiled code of a function.
pub struct Compilation {
    pub rows: Rows,
    /// For warps all of whose lanes are there.
    pub all: Native,
    /// Of which code was made; all of it, if none.
    seen: Option<Seen>,
    /// Instructions that the interpreter has done for lanes that had left code of a part.
    strayed: AtomicU64,
    /// For others, once there are such warps; none where the interpreter has to do.
    some: OnceLock<Option<Native>>,
    /// How often it was missed, and whether it has been asked for.
    missed: AtomicU32,
    asked: AtomicBool,
}

/// How large it is to look for what earlier processes have made: it comes before what is to be compiled.
const RECALLED: usize = 0;

/// After how many warps that lack lanes code is made for them: the last one of a launch is not worth it.
const MISSED: u32 = 64;

/// So many times as often if they are whole, and have parted where code was not made for that: other code is to come first.
const PARTED: u32 = 64;

/// So many times as large as it is counts code that is to come after other code.
const SECOND: usize = 9;

/// What the interpreter takes for an instruction of a warp, in nanoseconds, about.
const STRAYED: u64 = 50;

impl Compilation {
    /// The interpreter has done so many instructions for lanes that were not in code.
    #[inline(always)]
    pub fn strays(&self, instructions: u64) {
        if self.seen.is_some() {
            self.strayed.fetch_add(instructions, Ordering::Relaxed);
        }
    }

    fn compile_for_some(&self, compiled: &Compiled) -> Option<Native> {
        let seen = self.seen.as_ref().map(Seen::parting);
        compile(compiled, self.rows, For::Some, seen.as_ref())
    }
}

/// For how long launches of this process have waited for code in their middle, in nanoseconds.
static HELD_UP: AtomicU64 = AtomicU64::new(0);

/// For how long launches of this process have waited for code in their middle, all of them together: that is no time of theirs.
pub fn held_up() -> Duration {
    Duration::from_nanos(HELD_UP.load(Ordering::Relaxed))
}

/// A kernel over tiles spends its time in the call, whoever makes it.
fn may_compile(compiled: &Compiled) -> bool {
    let mut ops = compiled.function.body.insts().map(|inst| &inst.op);
    !ops.any(|op| matches!(op, Operation::Syscall { which, .. } if *which == Syscall::TileBlock))
}

/// How many instructions of a function are compiled, if that happens now.
fn seen_size(compiled: &Compiled) -> usize {
    match compiled.code.len() {
        few if few < FEW => few,
        _ => jit::warm_instructions(&compiled.function.body, &compiled.ways.seen()),
    }
}

/// What tells a function from others: its name, the text of its instructions, and that of what was inlined. `None`: it has none, being
/// made by hand.
fn known_by(compiled: &Compiled) -> Option<Vec<&[u8]>> {
    let function = &compiled.function;
    let inlined = &function.body.inlined;
    let mut ranges = vec![(u32::MAX, 0); inlined.len() + 1];
    for instr in &compiled.code {
        let (start, end) = &mut ranges[instr.inlined as usize];
        *start = instr.span.start.min(*start);
        *end = instr.span.end.max(*end);
    }
    let sources = std::iter::once(&function.source).chain(inlined.iter().map(|inlined| &inlined.source));
    let texts = sources.zip(ranges).map(|(source, (start, end))| {
        let text = source.text.as_bytes().get(start as usize..end as usize);
        text.unwrap_or_default()
    });
    let known: Vec<&[u8]> = std::iter::once(function.name.as_bytes()).chain(texts).collect();
    (!known[1].is_empty()).then_some(known)
}

/// Of what of a function an earlier process has made code.
fn remembered(compiled: &Compiled) -> Option<Seen> {
    jit::remembered(&known_by(compiled)?, compiled.function.body.blocks.len())
}

/// Code has been made of what was seen, or of all: processes to come may take it from the cache.
fn remember(compiled: &Compiled, seen: Option<&Seen>) {
    let config = config::get();
    if config.jit == Jit::Always || config.jit_unseen.is_some() {
        return;
    }
    let all = Seen::all(compiled.function.body.blocks.len());
    let seen = seen.unwrap_or(&all);
    if let Some(function) = known_by(compiled)
        && remembered(compiled).as_ref() != Some(seen)
    {
        jit::remember(&function, seen);
    }
}

/// Of what code is made: of all, if none. What earlier processes have made code of counts as seen.
fn seen_of(compiled: &Compiled, generation: usize) -> Option<Seen> {
    let config = config::get();
    let blocks = compiled.function.body.blocks.len();
    if let Some(seed) = config.jit_unseen {
        return (generation + 1 < GENERATIONS).then(|| {
            let mut seen = Seen::drawn(blocks, seed);
            if generation > 0 {
                seen.add(&compiled.ways.seen());
            }
            seen
        });
    }
    if config.jit == Jit::Always {
        return None;
    }
    let all = Seen::all(blocks);
    let mut seen = match compiled.code.len() < FEW || generation + 1 == GENERATIONS {
        true => all.clone(),
        false => compiled.ways.seen(),
    };
    if let Some(before) = remembered(compiled) {
        seen.add(&before);
    }
    (seen != all).then_some(seen)
}

fn input_of<'a>(compiled: &'a Compiled, seen: Option<&'a Seen>) -> Input<'a> {
    Input {
        body: &compiled.function.body,
        starts: &compiled.starts,
        slots: &compiled.slots,
        window: compiled.window,
        local: compiled.function.local,
        seen,
    }
}

fn compile(compiled: &Compiled, rows: Rows, whom: For, seen: Option<&Seen>) -> Option<Native> {
    let (function, input) = (&compiled.function, input_of(compiled, seen));
    jit::make(&function.name, &input, rows, whom, Effort::Compile)
        .inspect_err(|why| tracing::debug!(kernel = &*function.name, why, "left to the interpreter"))
        .ok()
}

impl Executable {
    /// Code for warps that lack lanes. `None`: it is not there yet, and is compiled now, or never will be.
    /// Warps that are `whole`, and have only parted, have to ask more often for it as long as not all is known of how they part.
    pub fn native_for_some(self: &Arc<Self>, whole: bool) -> Option<&Native> {
        let native = self.native.as_ref()?;
        if let Some(some) = native.some.get() {
            return some.as_ref();
        }
        if config::get().jit == Jit::Always {
            let some = native.some.get_or_init(|| {
                let began = Instant::now();
                let some = native.compile_for_some(&self.compiled);
                let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                HELD_UP.fetch_add(took, Ordering::Relaxed);
                some
            });
            return some.as_ref();
        }
        let most = match &native.seen {
            Some(_) if whole => MISSED * PARTED,
            _ => MISSED,
        };
        if native.missed.fetch_add(1, Ordering::Relaxed) >= most && !native.asked.swap(true, Ordering::Relaxed) {
            let this = Arc::clone(self);
            // Code for whole warps comes first, if that of the same function is made again, too.
            jit::later(SECOND * self.code.len(), move || {
                if let Some(native) = &this.native {
                    native.some.get_or_init(|| native.compile_for_some(&this.compiled));
                }
            });
        }
        None
    }
}

/// After how many nanoseconds in the interpreter so many instructions are compiled: what has run for so long will run for as long
/// again, more often than not. Compiling takes a few times as long, on a thread beside.
fn worth(instructions: usize) -> u64 {
    5_000_000 + 200_000 * instructions as u64
}

impl Executables {
    /// Functions that are compiled already: programs built by hand.
    #[cfg(test)]
    pub fn of(compiled: Vec<Compiled>) -> Executables {
        let module = crate::program::Module::of(compiled.iter().map(|c| Arc::clone(&c.function)).collect());
        let forms = |compiled: Compiled| Forms {
            compiled: OnceLock::from(Arc::new(compiled)),
            executable: Default::default(),
            watched: Default::default(),
            native: Default::default(),
        };
        Executables::with(module, compiled.into_iter().map(forms).collect())
    }

    /// `function`, which is number `index` of the module, laid out and with slots.
    pub fn compiled(&self, index: u32, function: &Arc<Function>) -> &Arc<Compiled> {
        let kernel = self.module.functions[index as usize].entry;
        self.forms::<Forms>(index)
            .compiled
            .get_or_init(|| Arc::new(Compiled::of(&self.own(function), kernel)))
    }

    /// The executable form of `function`, which is number `index` of the module, for bundles of `width` warps (1, 2, 4 or 8).
    /// A grid that is watched has forms of its own.
    pub fn executable(&self, index: u32, function: &Arc<Function>, width: u32, watch: &Watch) -> Arc<Executable> {
        let forms = self.forms::<Forms>(index);
        let forms = match watch.observer() {
            Some(_) => &forms.watched,
            None => &forms.executable,
        };
        let build = || {
            Arc::new(Executable::build(
                self.compiled(index, function),
                width,
                Operations::of(watch),
            ))
        };
        Arc::clone(forms[width.trailing_zeros() as usize].get_or_init(build))
    }
}

impl Executables {
    /// The form of `function` with compiled code, for blocks whose rows lie like this; with `MARGAY_JIT=always` it is there.
    pub fn native(&self, index: u32, function: &Arc<Function>, rows: Rows) -> &Arc<NativeForm> {
        let form = &self.forms::<Forms>(index).native[rows.number()];
        if config::get().jit == Jit::Always && form.made().is_none() {
            form.make(0, self.compiled(index, function), rows, false);
        }
        form
    }

    /// The same of a function that compiled code calls: it is compiled soon. `None`: it is not there yet, or never will be, which
    /// the second value says.
    pub fn native_callee(&self, index: u32, function: &Arc<Function>, rows: Rows) -> (Option<Arc<Executable>>, bool) {
        let form = self.native(index, function, rows);
        match form.made() {
            Some(made) => (made.cloned(), true),
            None => {
                // Nothing has been seen of it.
                form.ask(0, self.compiled(index, function), rows, true);
                (None, false)
            }
        }
    }
}

impl Executable {
    /// With compiled code.
    fn of_code(compiled: &Arc<Compiled>, rows: Rows, all: Native, seen: Option<Seen>) -> Arc<Executable> {
        let mut exec = Executable::build(compiled, 1, Operations::of(&Watch::default()));
        exec.lean = None;
        exec.native = Some(Compilation {
            rows,
            all,
            seen,
            strayed: AtomicU64::new(0),
            some: OnceLock::new(),
            missed: AtomicU32::new(0),
            asked: AtomicBool::new(false),
        });
        Arc::new(exec)
    }

    fn build(compiled: &Arc<Compiled>, width: u32, machine: &'static Operations) -> Executable {
        let op = |i: &Instr| build_op(i, width, machine);
        let initial: Vec<(Slot, Initial)> = compiled
            .initial
            .iter()
            .map(|(slot, init)| (scaled(*slot, width), *init))
            .collect();
        let per_block = initial
            .iter()
            .filter_map(|(slot, initial)| match initial {
                Initial::Special(which) if !special::outlives_block(*which) => Some((*slot, *which)),
                _ => None,
            })
            .collect();
        let mut code: Vec<Op> = compiled.code.iter().map(op).collect();
        count_plain(&mut code);
        find_skips(&mut code);
        let window = compiled.window * width;
        let kept = keep_recent(&mut code, window);
        let mut exec = Executable {
            width,
            machine,
            code,
            prologue: compiled.prologue.iter().map(op).collect(),
            initial,
            per_block,
            window: window + kept,
            function: Arc::clone(&compiled.function),
            compiled: Arc::clone(compiled),
            lean: None,
            affine: None,
            pcs: None,
            native: None,
        };
        exec.lean = compiled
            .affine
            .as_ref()
            .map(|affine| Arc::new(exec.without_spared(affine)));
        exec
    }

    /// The form without what `affine` spares.
    fn without_spared(&self, affine: &Affine) -> Executable {
        let (compiled, width) = (&self.compiled, self.width);
        let mut spared = affine.spared.iter().copied().peekable();
        let mut moved = Vec::with_capacity(compiled.code.len() + 1);
        let mut pcs: Vec<Pc> = Vec::new();
        for pc in 0..compiled.code.len() as Pc {
            moved.push(pcs.len() as Pc);
            if spared.next_if_eq(&pc).is_none() {
                pcs.push(pc);
            }
        }
        let mut values = affine.addresses.iter().copied().peekable();
        let mut read = HashSet::new();
        let mut code: Vec<Op> = pcs
            .iter()
            .map(|&pc| {
                let mut instr = compiled.code[pc as usize].clone();
                match &mut instr.what {
                    What::Branch { target, .. } => *target = moved[*target as usize],
                    What::BranchIndexed { targets, .. } => targets.iter_mut().for_each(|t| *t = moved[*t as usize]),
                    What::Op(_) => {}
                }
                let value = values.next_if(|(at, _)| *at == pc).map(|(_, value)| value);
                let mut address = match &instr.what {
                    What::Op(Operation::Load { address, .. } | Operation::Store { address, .. }) if value.is_some() => {
                        address.register
                    }
                    What::Op(Operation::Within(op)) if value.is_some() => Some(op.register),
                    What::Op(Operation::Shadow(op)) if value.is_some() => {
                        op.address.and_then(|address| address.register)
                    }
                    _ => None,
                };
                instr.regs(|&slot, role| {
                    if role == Role::Use && address.take_if(|address| *address == slot).is_none() {
                        read.insert(slot.offset * width);
                    }
                });
                let mut op = build_op(&instr, width, self.machine);
                if let Some(value) = value {
                    match &mut op.code {
                        Code::Load { mem, .. } | Code::Store { mem, .. } => mem.affine = value.into(),
                        Code::Within { affine, .. } => *affine = value.into(),
                        _ => {}
                    }
                }
                op
            })
            .collect();
        count_plain(&mut code);
        find_skips(&mut code);
        // No more than the form itself has: of the same windows.
        keep_recent(&mut code, compiled.window * width);
        let mut affine = affine.clone();
        affine.slots_mut(|slot| slot.offset *= width);
        let per_block = self.per_block.iter().copied();
        Executable {
            width,
            machine: self.machine,
            code,
            prologue: Vec::new(),
            initial: Vec::new(),
            per_block: per_block.filter(|(slot, _)| read.contains(&slot.offset)).collect(),
            window: self.window,
            function: Arc::clone(&self.function),
            compiled: Arc::clone(compiled),
            lean: None,
            affine: Some(affine),
            pcs: Some(pcs),
            native: None,
        }
    }

    /// Lanes of the longest runs through which the kernel's values may follow the lane's number; `None`: it has none that do.
    pub fn longest_run(&self) -> Option<usize> {
        let affine = self.lean.as_ref()?.affine.as_ref()?;
        Some(affine.longest)
    }

    /// Where the function's text has an instruction.
    pub fn span(&self, pc: Pc) -> Span {
        let pc = self.pc_in_function(pc) as usize;
        self.compiled
            .code
            .get(pc)
            .map_or_else(Span::default, |instr| instr.span)
    }

    /// Where an instruction stands in the function's code.
    pub fn pc_in_function(&self, pc: Pc) -> Pc {
        self.pcs
            .as_ref()
            .map_or(pc, |pcs| pcs.get(pc as usize).copied().unwrap_or(pc))
    }
}

fn scaled(slot: Slot, width: u32) -> Slot {
    Slot {
        offset: slot.offset * width,
        ..slot
    }
}

/// How strong an access to shadows is.
const WEAK: (Strength, Option<Scope>) = (Strength::Weak, None);

/// The width of all slots of a list that are there.
fn width_of(list: &[Option<Slot>]) -> Option<Width> {
    list.iter().flatten().next().map(|slot| slot.width)
}

fn places(list: &[Option<Slot>]) -> Box<[u32]> {
    list.iter().map(|slot| slot.map_or(NONE, |slot| slot.offset)).collect()
}

fn build_op(instr: &Instr, width: u32, machine: &Operations) -> Op {
    let span = instr.span;
    let instr = instr.clone().map(&mut |slot| scaled(slot, width));
    let guard = match instr.guard {
        None => OpGuard {
            offset: NONE,
            negated: false,
        },
        Some(g) => OpGuard {
            offset: g.reg.offset,
            negated: g.negated,
        },
    };
    let offsets = |slots: &[Slot]| slots.iter().map(|s| s.offset).collect::<Box<[u32]>>();
    let op = match instr.what {
        What::Op(op) => op,
        What::Branch { target, waits, block } => {
            return Op {
                guard,
                plain: 0,
                code: Code::Branch {
                    target,
                    waits,
                    block,
                    // Found once the code is there.
                    skips: false,
                },
            };
        }
        What::BranchIndexed { index, targets } => {
            return Op {
                guard,
                plain: 0,
                code: Code::BranchIndexed { index, targets },
            };
        }
    };
    // Observers want to be told of each arrival.
    if let Some(id) = op.barrier_of_all().filter(|_| !machine.watched) {
        return Op {
            guard,
            plain: 0,
            code: Code::BarrierAll { id },
        };
    }
    let code = match op {
        Operation::Compute { op, dst, src } => {
            let lane = op.lane().named(dst.len());
            let mut operands = Operands {
                imm: lane.constant,
                ..Operands::default()
            };
            for (to, slot) in operands.dst.iter_mut().zip(&dst) {
                *to = slot.offset;
            }
            for (to, slot) in operands.src.iter_mut().zip(&src) {
                *to = slot.offset;
            }
            let kernel = lane.kernel;
            let inspects = machine.watched && config::get().check.fp;
            let inspected = inspects
                .then(|| Inspected::new(op, (kernel, operands), (&dst[..], &src[..]), (span, width)))
                .flatten();
            match inspected {
                Some(inspected) => Code::Inspected(Box::new(inspected)),
                None => Code::Lane { kernel, operands },
            }
        }
        Operation::Load {
            address,
            element,
            ordering,
            scope,
            dst,
        } => {
            let wide = dst.iter().flatten().next().map(|s| s.width);
            let data = dst.iter().map(|s| s.map_or(NONE, |s| s.offset)).collect();
            Code::Load {
                run: (machine.load)(element, wide, ordering),
                mem: Box::new(MemOp::new(&address, (ordering, scope), data, span)),
            }
        }
        Operation::Store {
            address,
            element,
            ordering,
            scope,
            src,
        } => Code::Store {
            run: (machine.store)(element, src[0].width, ordering),
            mem: Box::new(MemOp::new(&address, (ordering, scope), offsets(&src), span)),
        },
        Operation::Atomic {
            op,
            ty,
            in_memory,
            ordering,
            scope,
            address,
            dst,
            b,
            c,
        } => Code::Atomic {
            run: (machine.atomic)(op, ty),
            atom: Box::new(AtomOp {
                mem: MemOp::new(&address, (ordering, Some(scope)), offsets(&b), span),
                dst: dst.map_or_else(|| Box::from([]), |d| offsets(&d)),
                c: c.map_or(NONE, |s| s.offset),
                in_memory,
            }),
        },
        Operation::Call { callee, args, results } => {
            let (function, address, params, returns) = match callee {
                Callee::Direct(index) => (index, NONE, 0, 0),
                Callee::Indirect {
                    address,
                    params,
                    returns,
                } => (NONE, address.offset, params, returns),
            };
            let resolved = OnceLock::new();
            Code::Call(Box::new(CallOp {
                function,
                address,
                params,
                returns,
                args,
                results,
                span,
                resolved,
            }))
        }
        Operation::Shadow(op) => match (op.what, op.address) {
            (Shadow::Load(element), Some(address)) => Code::Load {
                run: shadow::load_fn(element, width_of(&op.dst)),
                mem: Box::new(MemOp::new(&address, WEAK, places(&op.dst), span)),
            },
            (Shadow::Store(element), Some(address)) => Code::Store {
                run: shadow::store_fn(element, width_of(&op.src)),
                mem: Box::new(MemOp::new(&address, WEAK, places(&op.src), span)),
            },
            // It waits for members of its warp.
            (Shadow::Match { .. }, _) => Code::Rare(Box::new(Operation::Shadow(op))),
            _ => Code::Shadow { op, span },
        },
        Operation::Within(op) => Code::Within { op, affine: NONE },
        Operation::Return => Code::Return,
        Operation::Exit => Code::Exit,
        other => Code::Rare(Box::new(other)),
    };
    Op { guard, plain: 0, code }
}

/// Accesses of a function of which it is kept what they touched.
const KEPT: usize = 32;

/// Gives accesses that may go far a place behind the slots of a window; bytes of all.
fn keep_recent(code: &mut [Op], slots: u32) -> u32 {
    let mut next = slots;
    let accesses = code.iter_mut().filter_map(|op| match &mut op.code {
        Code::Load { mem, .. } | Code::Store { mem, .. } => Some(mem),
        _ => None,
    });
    let far =
        accesses.filter(|mem| matches!(mem.space, Space::Generic | Space::Global) && mem.ordering == Strength::Weak);
    for mem in far.filter(|mem| mem.register != NONE && mem.affine == NONE).take(KEPT) {
        mem.recent = next;
        next += RECENT;
    }
    (next - slots).next_multiple_of(64)
}

/// Counts instructions that follow each other and compute lane by lane.
fn count_plain(code: &mut [Op]) {
    let mut after = 0u16;
    for op in code.iter_mut().rev() {
        let is_plain = op.guard.offset == NONE && matches!(op.code, Code::Lane { .. });
        after = if is_plain { after.saturating_add(1) } else { 0 };
        op.plain = after;
    }
}

/// Instructions that a branch jumps over at most, for them to be short.
const SHORT: usize = 16;

/// Finds branches that jump over a few instructions after which everybody is together again.
fn find_skips(code: &mut [Op]) {
    let is_simple = |op: &Op| match &op.code {
        Code::Lane { .. } => true,
        Code::Load { mem, .. } | Code::Store { mem, .. } => mem.ordering == Strength::Weak,
        Code::Inspected(_)
        | Code::Atomic { .. }
        | Code::Branch { .. }
        | Code::BranchIndexed { .. }
        | Code::BarrierAll { .. }
        | Code::Call(_)
        | Code::Shadow { .. }
        | Code::Within { .. }
        | Code::Return
        | Code::Exit
        | Code::Rare(_) => false,
    };
    for pc in 0..code.len() {
        let (before, after) = code.split_at_mut(pc + 1);
        if let Code::Branch { target, skips, .. } = &mut before[pc].code
            && let Some(over) = (*target as usize).checked_sub(pc + 1)
        {
            *skips = over <= SHORT && after[..over].iter().all(is_simple);
        }
    }
}
