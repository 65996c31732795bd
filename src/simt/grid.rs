//! A grid: its blocks in index order over the calling thread and the workers that help.
//!
//! Blocks start in the order of their numbers, of short ones several at a time on each worker, and each runs to its end as a
//! rule. One that spins, or runs for long, is set aside while others have their turns and further ones start ([`Line`]):
//! whatever a device could hold at a time makes progress together, so that a block may wait for a later one. Those of a
//! cooperative grid all take turns. Under a seed one thread runs them all, in turns that are drawn (`schedule.rs`).
//!
//! A panic of a thread that works on a grid ends the grid with a fault, like any other; nobody waits for that thread.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::config::{self, Jit};
use crate::defect::{self, Defect};
use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::memory::{self, AddressSpace, Region, View};
use crate::program::{Function, executed};

use super::account::{self, Tier};
use super::block::{BlockEnv, Turn, Way};
use super::children::Children;
use super::cluster::Team;
use super::interp::Located;
use super::interp::affine::Runs;
use super::interp::code::{Executable, GENERATIONS, NativeForm, held_up};
use super::jit::{self, Rows};
use super::line::{Line, Others};
use super::machine::observe::{GridEvent, Watch};
use super::machine::{TileBlock, peers};
use super::schedule::{self, IN_LINE, Schedule, Whom};
use super::seed::Drawn;
use super::{Cause, Fault, Launch, pool};

/// Where parameters lie: as far apart as any of them asks for, of which tensor maps ask for most.
const PARAMETER_ALIGNMENT: usize = 128;
#[derive(Clone, Copy)]
#[repr(align(128))]
struct ParameterLine(#[expect(dead_code, reason = "kernels read it by address")] [u8; PARAMETER_ALIGNMENT]);

/// Register windows of a bundle should stay in the second-level cache: what choosing an instruction costs, which a wider
/// bundle spreads over more lanes, is as much as computing four warps, and what comes from that cache comes ahead of its use.
const WINDOW_BUDGET: u32 = 160 << 10;
/// How long the caller works alone before it asks for help: waking a thread costs more than a small grid.
const ALONE: Duration = Duration::from_micros(8);
/// Frames that a chain of calls may have.
const MAX_DEPTH: u64 = 1 << 14;
/// Bytes before a block's shared window, and between it and its local one, that are neither's: what runs over the one does not land in
/// the other.
const GUARD: u64 = 4096;
const _: () = assert!(GUARD >= jit::AROUND);
/// A worker takes as many short blocks at a time as fill this time, and so many at most: those that follow each other in one worker
/// share what they touch, and the workers do not fight over the number of the next one.
const BATCH: Duration = Duration::from_micros(20);
const MOST_AT_ONCE: u64 = 64;
/// Blocks that one worker keeps open when they wait for each other.
const MAX_OPEN: usize = 4096;
/// What no multiprocessor exceeds: threads, blocks, bytes of shared memory (CUDA programming guide, Technical
/// Specifications per Compute Capability).
const MOST_THREADS: u32 = 2048;
const MOST_BLOCKS: u32 = 32;
const MOST_SHARED: u32 = 228 << 10;

/// What a grid has from whoever launched it: children end when their parent's time is over, and draw from its seed.
#[derive(Clone, Copy, Default)]
pub struct Origin {
    pub deadline: Option<Instant>,
    /// What [`held_up`] was when it began.
    pub held_up: Duration,
    pub seed: Option<Drawn>,
}

impl Origin {
    /// Of what the host launches, from now on.
    pub fn of(launch: &Launch) -> Origin {
        Origin {
            deadline: launch.timeout.map(|limit| Instant::now() + limit),
            held_up: held_up(),
            seed: launch.seed.as_ref().map(schedule::Seed::next_run),
        }
    }

    /// Of the `n`-th thing that its kernels launch.
    pub fn of_child(&self, n: u64) -> Origin {
        Origin {
            deadline: self.deadline,
            held_up: self.held_up,
            seed: self.seed.map(|seed| seed.of_child(n)),
        }
    }

    /// The cause of a launch's end, once its time is over.
    pub fn overdue(&self, launch: &Launch) -> Option<Cause> {
        let held_up = held_up().saturating_sub(self.held_up);
        self.deadline.filter(|&deadline| Instant::now() > deadline + held_up)?;
        Some(Cause::Timeout {
            milliseconds: launch.timeout.unwrap_or_default().as_millis() as u64,
        })
    }
}

/// A launch under way, shared by those who work on it.
pub struct Grid {
    pub launch: Arc<Launch>,
    /// How blocks run that start now.
    form: Form,
    /// How they run as soon as their kernel has been compiled.
    natives: [OnceLock<Form>; GENERATIONS],
    /// The kernel's compiled form, there or to come; none where nothing compiled may run.
    compiled: Option<(Arc<NativeForm>, Rows)>,
    pub schedule: Option<Schedule>,
    pub threads: u32,
    pub shared_bytes: u32,
    pub max_depth: u64,
    /// Who looks on.
    pub watch: Watch,
    local_stride: u32,
    params: Vec<ParameterLine>,
    view: View,
    /// How many blocks there are, or clusters if it has some: those start together.
    starts: u64,
    next: AtomicU64,
    /// Some have been seen to spin, perhaps for each other.
    some_spin: AtomicBool,
    /// Counts what blocks do that is more than to spin.
    worked: AtomicU64,
    /// Blocks begin in the interpreter, for so many instructions of each bundle; 0: in whatever is there.
    interpreted_first: i64,
    stop: AtomicBool,
    began: Instant,
    /// The caller works alone, and others might help.
    alone: AtomicBool,
    this: Weak<Grid>,
    origin: Origin,
    fault: Mutex<Option<Box<Fault>>>,
    /// The address at which registered host memory turned out to be gone; 0: none.
    gone: AtomicU64,
    helpers: Mutex<usize>,
    all_left: Condvar,
    children: OnceLock<Arc<Children>>,
    /// Of a kernel over tiles, blocks that have had a turn and are not through.
    pub tile_blocks: Mutex<HashMap<u64, TileBlock>>,
}

/// A kernel in the form in which blocks run it.
pub struct Form {
    pub kernel: Arc<Executable>,
    /// Bundles of a block.
    pub bundles: u32,
    /// How values follow the lane's number, where they do.
    pub runs: Option<Runs>,
}

impl Form {
    fn of(kernel: Arc<Executable>, block: [u32; 3]) -> Form {
        let warps = block.iter().product::<u32>().div_ceil(WARP as u32);
        Form {
            bundles: warps.div_ceil(kernel.width),
            runs: kernel
                .longest_run()
                .and_then(|most| Runs::of(block, kernel.width, most)),
            kernel,
        }
    }
}

/// Where one block at a time runs, or the blocks of a cluster: their state and their windows.
struct Seat<'l> {
    team: Team<'l>,
    scratch: Scratch,
    form: &'l Form,
}

/// How long nobody has done more than to spin, as far as a worker has seen.
#[derive(Default)]
struct Lull {
    worked: u64,
    began: Option<Instant>,
}

/// After so long without work of others blocks that spin wait for one that has not started, as it seems. Who works says so a few times
/// as often ([`SLICE`](super::interp::SLICE)).
const LULL: Duration = Duration::from_millis(2);

impl Lull {
    /// Whether blocks that spin have nobody to wait for who works.
    fn now(&mut self, grid: &Grid) -> Others {
        if grid.alone.load(Ordering::Relaxed) {
            return Others::None;
        }
        let worked = grid.worked.load(Ordering::Relaxed);
        let now = Instant::now();
        if worked != self.worked {
            (self.worked, self.began) = (worked, None);
        }
        match now - *self.began.get_or_insert(now) > LULL {
            true => Others::Wait,
            false => Others::Work,
        }
    }
}

/// Blocks, or clusters, that a worker has taken and not started.
#[derive(Default)]
struct Batch {
    left: Range<u64>,
    /// Of how many the last one was, and when it was taken.
    size: u64,
    taken: Option<Instant>,
}

impl Batch {
    /// Of how many the next one may be, by how long the last one took.
    fn next_size(&mut self) -> u64 {
        let now = Instant::now();
        let took = self.taken.replace(now).map(|taken| now - taken);
        self.size = match took {
            Some(took) if took < BATCH => (2 * self.size).clamp(1, MOST_AT_ONCE),
            Some(took) if took > 4 * BATCH => 1,
            _ => self.size.max(1),
        };
        self.size
    }
}

/// Someone works on a grid; its end waits until this is dropped, by a panic or otherwise.
pub struct Helper(Arc<Grid>);

impl Helper {
    /// A worker's part.
    pub fn work(self, number: u32) {
        self.0.take_part(number, false);
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        *self.0.helpers.lock() -= 1;
        self.0.all_left.notify_all();
    }
}

impl Seat<'_> {
    /// Its windows stay with the thread.
    fn leave(self) {
        let Seat { team, scratch, form: _ } = self;
        drop(team);
        scratch.keep();
    }
}

/// Runs the blocks of a grid to their end, on the calling thread and the process's workers. Gives what its kernels have
/// launched and nobody has run yet.
///
/// # Errors
/// The first fault, if any; blocks that had not started then never do.
pub fn run(launch: Arc<Launch>, origin: Origin) -> Result<Option<Arc<Children>>, Box<Fault>> {
    let grid = match defect::within(|| Grid::new(&launch, origin)) {
        Ok(grid) => grid?,
        Err(defect) => return Err(refusal(&launch, Cause::Defect { defect })),
    };
    grid.watch.grid(grid.launch.grid_id, &GridEvent::Launch);
    let number = account::begin(&grid);
    grid.take_part(0, true);
    pool::withdraw(&grid);
    let mut helpers = grid.helpers.lock();
    while *helpers > 0 {
        grid.all_left.wait(&mut helpers);
    }
    drop(helpers);
    account::end(&grid, number);
    grid.ended();
    grid.watch.grid(grid.launch.grid_id, &GridEvent::End);
    match grid.fault.lock().take() {
        Some(fault) => Err(fault),
        None => Ok(grid.children.get().cloned()),
    }
}

/// A fault of a launch as a whole.
pub fn refusal(launch: &Launch, cause: Cause) -> Box<Fault> {
    let kernel = &launch.code.module.functions[launch.kernel as usize].name;
    Box::new(Fault::of_launch(cause, kernel))
}

impl Grid {
    fn new(launch: &Arc<Launch>, origin: Origin) -> Result<Arc<Grid>, Box<Fault>> {
        if let Some(cause) = origin.overdue(launch) {
            return Err(refusal(launch, cause));
        }
        defect::may_fail("prepare", &launch.code.module.functions[launch.kernel as usize].name);
        let function = launch
            .code
            .module
            .prepare(launch.kernel)
            .map_err(|d| refusal(launch, Cause::Invalid { report: d.to_string() }))?;
        executed::note(&launch.code.module, launch.kernel);
        let schedule = origin.seed.map(|seed| Schedule::new(seed, launch));
        let threads: u32 = launch.block.iter().product();
        let warps = threads.div_ceil(WARP as u32);
        let mut width = match warps {
            0..=1 => 1,
            2 => 2,
            3..=4 => 4,
            _ => MAX_WARPS as u32,
        };
        width = width.min(schedule.as_ref().map_or(width, |schedule| schedule.width));
        let window = launch.code.compiled(launch.kernel, &function).window;
        while width > 1 && window * width > WINDOW_BUDGET {
            width /= 2;
        }
        let watch = launch.services.watch(launch);
        // Whoever looks on, or draws what runs next, has the interpreter.
        let rows = jit::rows(launch.block);
        let compiles = config::get().jit != Jit::Off && schedule.is_none() && watch.observer().is_none();
        let compiling = origin.deadline.map(|_| Instant::now());
        let compiled = compiles.then(|| (Arc::clone(launch.code.native(launch.kernel, &function, rows)), rows));
        // What is compiled before the first launch takes none of its time.
        let origin = Origin {
            deadline: origin
                .deadline
                .zip(compiling)
                .map(|(deadline, began)| deadline + began.elapsed()),
            ..origin
        };
        let interpreted_first = config::get().jit_after.into();
        let made = compiled.as_ref().and_then(|(form, _)| form.made().flatten());
        let kernel = match made.filter(|_| interpreted_first == 0) {
            Some(made) => Arc::clone(made),
            None => launch.code.executable(launch.kernel, &function, width, &watch),
        };
        let stride = local_stride(launch, &function);
        let mut params =
            vec![ParameterLine([0; PARAMETER_ALIGNMENT]); launch.params.len().div_ceil(PARAMETER_ALIGNMENT)];
        // SAFETY: the destination has at least as many bytes; any bytes make a line.
        unsafe {
            std::ptr::copy_nonoverlapping(
                launch.params.as_ptr(),
                params.as_mut_ptr().cast::<u8>(),
                launch.params.len(),
            );
        }
        let starts: u64 = launch.starts().iter().map(|&x| u64::from(x)).product();
        Ok(Arc::new_cyclic(|this| Grid {
            threads,
            form: Form::of(kernel, launch.block),
            natives: Default::default(),
            compiled,
            shared_bytes: match launch.dynamic_shared {
                0 => function.shared_bytes,
                dynamic => function.dynamic_shared.max(function.shared_bytes) + dynamic,
            },
            max_depth: MAX_DEPTH,
            watch,
            local_stride: stride,
            params,
            view: launch.view(),
            starts,
            next: AtomicU64::new(0),
            some_spin: AtomicBool::new(false),
            worked: AtomicU64::new(0),
            interpreted_first,
            stop: AtomicBool::new(false),
            began: Instant::now(),
            alone: AtomicBool::new(starts > 1 && schedule.is_none() && pool::threads() > 1),
            this: Weak::clone(this),
            origin,
            schedule,
            fault: Mutex::new(None),
            gone: AtomicU64::new(0),
            helpers: Mutex::new(0),
            all_left: Condvar::new(),
            children: OnceLock::new(),
            tile_blocks: Mutex::default(),
            launch: Arc::clone(launch),
        }))
    }

    /// What its kernels have launched.
    pub fn children(&self) -> &Arc<Children> {
        self.children
            .get_or_init(|| Arc::new(Children::new(&self.launch, self.origin)))
    }

    /// What came of running children early: a fault ends this grid, too; then `false`.
    pub fn accept(&self, outcome: Result<(), Box<Fault>>) -> bool {
        outcome.map_err(|fault| self.report(fault)).is_ok()
    }

    /// The number of a block, in the order in which they start.
    pub fn block_number(&self, ctaid: [u32; 3]) -> u64 {
        let [x, y, _] = self.launch.grid.map(u64::from);
        let [bx, by, bz] = ctaid.map(u64::from);
        (bz * y + by) * x + bx
    }

    /// One more worker has taken the invitation.
    pub fn join(self: &Arc<Grid>) -> Helper {
        *self.helpers.lock() += 1;
        Helper(Arc::clone(self))
    }

    /// Somebody's fault has ended it.
    pub fn has_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Nobody's fault has ended it, and no memory of the host has gone away.
    pub fn is_undisturbed(&self) -> bool {
        !self.has_stopped() && self.gone.load(Ordering::Relaxed) == 0
    }

    /// The cause of its end, once its time is over.
    pub fn overdue(&self) -> Option<Cause> {
        self.origin.overdue(&self.launch).or_else(|| {
            let why = self.watch.observer()?.gives_up()?;
            Some(Cause::Deadlock { why })
        })
    }

    /// A thread's part in it; a panic becomes the grid's fault.
    fn take_part(self: &Arc<Grid>, number: u32, caller: bool) {
        let at = Cell::new([0; 3]);
        let worked = defect::within(|| {
            let _guarded = memory::guard(&self.gone);
            match &self.schedule {
                None => self.work(number, caller, &at),
                Some(schedule) => self.work_in_turns(schedule, &at),
            }
        });
        if let Err(defect) = worked {
            self.report_defect(defect, at.get());
        }
    }

    #[cold]
    fn report_defect(&self, defect: Defect, block: [u32; 3]) {
        self.report(Box::new(self.fault_of(Cause::Defect { defect }, block)));
    }

    /// What starts next.
    pub fn take(&self) -> Option<u64> {
        if self.stop.load(Ordering::Relaxed) || self.next.load(Ordering::Relaxed) >= self.starts {
            return None;
        }
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < self.starts)
    }

    /// What starts next on a worker that has taken a `batch`. `short`: the last block ran to its end in one turn, and the next
    /// batch may be of several.
    #[inline(always)]
    fn take_from(&self, batch: &mut Batch, short: bool) -> Option<u64> {
        match batch.left.next() {
            Some(index) => Some(index).filter(|_| !self.has_stopped()),
            None if short => self.take_batch(batch),
            None => self.take(),
        }
    }

    fn take_batch(&self, batch: &mut Batch) -> Option<u64> {
        let begun = self.next.load(Ordering::Relaxed);
        if self.has_stopped() || begun >= self.starts {
            return None;
        }
        // Towards the end each worker takes little, so that none is left alone with much.
        let share = (self.starts - begun) / (8 * pool::threads() as u64);
        let most = match self.launch.cooperative || self.some_spin.load(Ordering::Relaxed) {
            true => 1,
            false => share.clamp(1, MOST_AT_ONCE),
        };
        let size = batch.next_size().min(most);
        let first = self.next.fetch_add(size, Ordering::Relaxed);
        batch.left = first..(first + size).min(self.starts);
        batch.left.next()
    }

    /// The place in the grid of what starts: of a block, or of a cluster's first. Blocks may be short: no division where it can
    /// be spared, and none of 64 bits.
    #[inline(always)]
    pub fn ctaid(&self, index: u64) -> [u32; 3] {
        let [along, across, _] = self.launch.starts();
        let (x, y, z) = match u32::try_from(index) {
            Ok(index) if index < along => (index, 0, 0),
            Ok(index) => (index % along, index / along % across, index / along / across),
            Err(_) => {
                let [along, across] = [along, across].map(u64::from);
                let rest = index / along;
                ((index % along) as u32, (rest % across) as u32, (rest / across) as u32)
            }
        };
        match self.launch.cluster {
            None => [x, y, z],
            Some([width, height, depth]) => [x * width, y * height, z * depth],
        }
    }

    /// The kernel as blocks run it that start now.
    #[inline(always)]
    fn form_now(&self) -> &Form {
        let Some((compiled, rows)) = &self.compiled else {
            return &self.form;
        };
        compiled.look_again(&self.form.kernel.compiled, *rows);
        match compiled.last_made() {
            Some((number, made)) if !Arc::ptr_eq(made, &self.form.kernel) => {
                self.natives[number].get_or_init(|| Form::of(Arc::clone(made), self.launch.block))
            }
            _ => &self.form,
        }
    }

    /// Blocks have begun in code that was not there when the first one did.
    fn has_changed(&self) -> bool {
        self.natives.iter().any(|native| native.get().is_some())
    }

    /// What blocks that start would rather run, as long as all of them are interpreted.
    #[inline(always)]
    fn awaited(&self) -> Option<&(Arc<NativeForm>, Rows)> {
        let waits = self.form.kernel.native.is_none() && !self.has_changed();
        self.compiled.as_ref().filter(|_| waits)
    }

    /// It is over: how long it took says what later ones are to run.
    fn ended(&self) {
        let Some((compiled, rows)) = &self.compiled else { return };
        // Some blocks in one way and some in the other say nothing.
        if !self.has_changed() {
            let (time, native) = (self.began.elapsed(), self.form.kernel.native.is_some());
            if !native {
                compiled.interpreted(time, &self.form.kernel.compiled, *rows);
            }
            let function = (&self.form.kernel.compiled, *rows);
            compiled.took([self.launch.grid, self.launch.block], time, native, function);
        }
    }

    /// How many blocks or clusters there are.
    pub fn starts(&self) -> u64 {
        self.starts
    }

    /// How many of them have begun.
    pub fn begun(&self) -> u64 {
        // Those who look for more count on.
        self.next.load(Ordering::Relaxed).min(self.starts)
    }

    /// What runs its blocks.
    pub fn tier(&self) -> Tier {
        match (self.form.kernel.native.is_some(), self.has_changed()) {
            (true, _) => Tier::Compiled,
            (false, true) => Tier::Mixed,
            (false, false) => Tier::Interpreted,
        }
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.form.kernel.function.name
    }

    /// Invites workers, if the grid has lasted and has blocks for them.
    pub fn ask_for_help(&self) {
        let lasts = || self.began.elapsed() > ALONE || self.launch.cooperative;
        if self.alone.load(Ordering::Relaxed) && lasts() && self.alone.swap(false, Ordering::Relaxed) {
            let rest = self.starts - self.next.load(Ordering::Relaxed).min(self.starts);
            if let Some(this) = self.this.upgrade() {
                pool::invite(&this, (rest as usize).min(pool::threads() - 1));
            }
        }
    }

    /// A block has run for some while: others may help, and the kernel may be worth compiling.
    pub fn lasts(&self) {
        self.ask_for_help();
        if let Some((compiled, rows)) = self.awaited() {
            compiled.running(self.began.elapsed(), &self.form.kernel.compiled, *rows);
        }
    }

    /// A block has done more than to spin.
    pub fn works(&self) {
        self.worked.fetch_add(1, Ordering::Relaxed);
    }

    /// Blocks or clusters that one worker keeps open: no more than the device holds, generously counted.
    fn most_open(&self) -> usize {
        if self.launch.cooperative {
            return MAX_OPEN;
        }
        let by_threads = MOST_THREADS / self.threads.next_multiple_of(WARP as u32);
        let by_shared = MOST_SHARED.checked_div(self.shared_bytes).unwrap_or(MOST_BLOCKS);
        let each = by_threads.min(by_shared).clamp(1, MOST_BLOCKS);
        let blocks = each as usize * self.launch.multiprocessors as usize;
        (blocks / self.launch.peers() as usize).clamp(2, MAX_OPEN)
    }

    /// `at` is told which block runs.
    fn work(self: &Arc<Grid>, number: u32, caller: bool, at: &Cell<[u32; 3]>) {
        let mut line: Line<Box<Seat<'_>>> = Line::new(self.most_open(), self.launch.cooperative);
        let mut lull = Lull::default();
        let mut batch = Batch::default();
        // Seats of blocks that have ended: the last one, and as many as were open at a time.
        let mut spare: Option<Box<Seat<'_>>> = None;
        let mut idle: Vec<Box<Seat<'_>>> = Vec::new();
        loop {
            let started = match line.has_room(|| lull.now(self)) {
                true => self.take_from(&mut batch, false),
                false => None,
            };
            let alone = started.is_some() && line.is_empty();
            let mut seat = match started {
                Some(index) => {
                    if index > 0 || self.launch.cooperative {
                        self.ask_for_help();
                    }
                    let left = spare.take().or_else(|| idle.pop());
                    let Some(seat) = self.enter(index, at, left, number) else {
                        return;
                    };
                    defect::may_fail(if caller { "launcher" } else { "worker" }, self.name());
                    line.started();
                    seat
                }
                None => match line.next() {
                    Some(mut seat) => {
                        self.change(&mut seat);
                        seat
                    }
                    None => break,
                },
            };
            at.set(seat.team.env().ctaid);
            let turn = loop {
                let mut turn = seat.team.turn();
                // As long as blocks run to their end in one turn, and nobody waits for another, there is no line to look at.
                let alone = alone && self.starts > 1;
                if alone && self.interpreted_first == 0 && matches!(turn, Ok(Turn::Done)) {
                    turn = seat.team.march_on(&mut batch.left, at);
                }
                if let Ok(Turn::Done) = turn
                    && alone
                    && self.gone.load(Ordering::Relaxed) == 0
                    && let Some(index) = self.take_from(&mut batch, true)
                {
                    self.ask_for_help();
                    let Some(next) = self.enter(index, at, Some(seat), number) else {
                        return;
                    };
                    seat = next;
                    continue;
                }
                break turn;
            };
            match self.checked(turn, seat.team.env()) {
                Ok(Turn::Done) => {
                    line.ended();
                    if let Some(other) = spare.replace(seat) {
                        idle.push(other);
                    }
                }
                Ok(turn @ (Turn::Spins | Turn::Worked | Turn::Long | Turn::Drawn | Turn::Waits)) => {
                    let spins = matches!(turn, Turn::Spins | Turn::Worked);
                    let worked = !matches!(turn, Turn::Spins);
                    if spins {
                        self.some_spin.store(true, Ordering::Relaxed);
                    }
                    if worked {
                        self.works();
                    }
                    line.set_aside(seat, (spins, worked));
                    // Another worker may have what they wait for, and wait for this very core.
                    if line.is_in_vain() {
                        std::thread::yield_now();
                    }
                    if !self.may_go_on() {
                        break;
                    }
                }
                Err(fault) => {
                    self.report(fault);
                    break;
                }
            }
        }
        spare
            .into_iter()
            .chain(idle)
            .chain(line.into_blocks())
            .for_each(|seat| seat.leave());
    }

    /// All blocks on this thread, as they are drawn.
    fn work_in_turns(&self, schedule: &Schedule, at: &Cell<[u32; 3]>) {
        // Each with whether it spins: it had its share since a block last ended or started.
        let mut open: Vec<(Box<Seat<'_>>, bool)> = Vec::new();
        let mut idle: Vec<Box<Seat<'_>>> = Vec::new();
        let mut in_line: Vec<u64> = Vec::new();
        let mut places = 0;
        loop {
            // All must be there if they wait for each other; of others, more come when nobody gets on.
            let room =
                open.len() < schedule.resident || self.launch.cooperative || open.iter().all(|(_, spins)| *spins);
            while in_line.len() < IN_LINE
                && let Some(index) = self.take()
            {
                in_line.push(schedule.start(index, self.starts));
            }
            if room && open.len() < MAX_OPEN && !in_line.is_empty() && !self.has_stopped() {
                // Now and then the first in line, so that nobody is passed over for long.
                let next = match schedule.one_in(IN_LINE as u64) {
                    true => 0,
                    false => schedule.below(in_line.len() as u64) as usize,
                };
                let index = in_line.remove(next);
                let place = idle.last().map_or(places, |seat| seat.team.env().seat);
                let Some(seat) = self.enter(index, at, idle.pop(), place) else {
                    return;
                };
                defect::may_fail("launcher", self.name());
                places = places.max(place + 1);
                open.iter_mut().for_each(|(_, spins)| *spins = false);
                open.push((seat, false));
                continue;
            }
            if open.is_empty() {
                break;
            }
            let key = |i: usize| self.block_number(open[i].0.team.env().ctaid);
            let Some(turn) = schedule.choose(Whom::Blocks, open.len(), key, |_| true) else {
                break;
            };
            let (seat, spins) = &mut open[turn];
            at.set(seat.team.env().ctaid);
            let drawn = seat.team.drawn_turn(schedule);
            if let Ok(Turn::Spins | Turn::Worked | Turn::Waits) = drawn {
                schedule.turn_over();
            }
            match self.checked(drawn, seat.team.env()) {
                Ok(Turn::Done) => {
                    idle.push(open.swap_remove(turn).0);
                    open.iter_mut().for_each(|(_, spins)| *spins = false);
                }
                Ok(turn @ (Turn::Spins | Turn::Worked | Turn::Long | Turn::Drawn | Turn::Waits)) => {
                    *spins |= !matches!(turn, Turn::Drawn | Turn::Waits);
                    if !self.may_go_on() {
                        break;
                    }
                }
                Err(fault) => {
                    self.report(fault);
                    break;
                }
            }
        }
        let open = open.into_iter().map(|(seat, _)| seat);
        idle.into_iter().chain(open).for_each(|seat| seat.leave());
    }

    /// Block `index` starts, as `at` is told, in the seat that another one has left or in a new one. `None`: there is
    /// no memory, or no time left, which ends the grid.
    #[inline(always)]
    fn enter<'l>(
        &'l self,
        index: u64,
        at: &Cell<[u32; 3]>,
        left: Option<Box<Seat<'l>>>,
        number: u32,
    ) -> Option<Box<Seat<'l>>> {
        let ctaid = self.ctaid(index);
        at.set(ctaid);
        // Blocks may be short: nobody else would look at the clock.
        if let Some(cause) = self.overdue() {
            self.report(Box::new(self.fault_of(cause, ctaid)));
            return None;
        }
        let form = match self.interpreted_first {
            0 => self.form_now(),
            _ => &self.form,
        };
        let left = left.and_then(|seat| match std::ptr::eq(seat.form, form) {
            true => Some(seat),
            false => {
                seat.leave();
                None
            }
        });
        let mut seat = match left {
            Some(seat) => seat,
            None => match self.place(number, form) {
                Ok(seat) => Box::new(seat),
                Err(bytes) => {
                    self.report(Box::new(self.fault_of(Cause::OutOfMemory { bytes }, ctaid)));
                    return None;
                }
            },
        };
        if self.schedule.is_some() {
            seat.scratch.clear_shared(self.launch.peers(), self.shared_bytes);
        }
        seat.team.start(ctaid);
        if self.interpreted_first != 0 {
            seat.team.tire(self.interpreted_first);
        }
        Some(seat)
    }

    /// Blocks that have had a turn go on in compiled code if there is some by now: there may be none to start after them, and a
    /// single one may run for as long as it likes.
    fn change<'l>(&'l self, seat: &mut Seat<'l>) {
        let form = self.form_now();
        if !std::ptr::eq(seat.form, form) && seat.team.change(form) {
            seat.form = form;
        }
    }

    /// What comes between the turns of blocks.
    fn may_go_on(&self) -> bool {
        // Perhaps somebody waits for what he has launched.
        !self.has_stopped() && self.children.get().is_none_or(|children| self.accept(children.help()))
    }

    /// Memory and state for a block, or a cluster; the error is the number of bytes that could not be had.
    fn place<'l>(&'l self, number: u32, form: &'l Form) -> Result<Seat<'l>, u64> {
        let peers = self.launch.peers();
        let shared = u64::from(self.shared_bytes).next_multiple_of(256);
        let local_bytes = u64::from(self.local_stride) * u64::from(form.bundles * form.kernel.width * WARP as u32);
        // Shared windows first, each where its rank says, then the local ones.
        let first_local = GUARD + u64::from(peers - 1) * peers::STRIDE + shared + GUARD;
        let local_window = local_bytes.next_multiple_of(256) + 256;
        let used = u64::from(peers) * (shared + local_window);
        let scratch = Scratch::of(first_local + u64::from(peers) * local_window, used)?;
        let base = scratch.region.start();
        let first_shared = base + GUARD;
        let team = Team::new((0..peers).map(|rank| BlockEnv {
            env: Way { grid: self, form },
            view: self.view,
            ctaid: [0; 3],
            seat: number * peers + rank,
            shared: first_shared + u64::from(rank) * peers::STRIDE,
            shared_bytes: self.shared_bytes,
            shared_window: shared.max(1) as u32,
            rank,
            peers,
            gone: 0,
            local: base + first_local + u64::from(rank) * local_window,
            local_stride: self.local_stride,
            local_bytes,
            param: self.params.as_ptr() as u64,
            param_bytes: self.launch.params.len() as u32,
        }));
        Ok(Seat { team, scratch, form })
    }

    fn report(&self, fault: Box<Fault>) {
        self.stop.store(true, Ordering::Relaxed);
        self.fault.lock().get_or_insert(fault);
    }

    fn fault_of(&self, cause: Cause, block: [u32; 3]) -> Fault {
        Fault {
            block,
            ..Fault::of_launch(cause, self.name())
        }
    }

    /// What a turn came to; memory of the host that went away meanwhile is a fault, too.
    fn checked(&self, turn: Result<Turn, Box<Located>>, env: &BlockEnv<'_>) -> Result<Turn, Box<Fault>> {
        match self.gone.load(Ordering::Relaxed) {
            0 => turn.map_err(|located| Box::new(Fault::locate(&located, env))),
            address => Err(Box::new(self.host_memory_gone(turn.err(), address, env))),
        }
    }

    /// The first access went through, to memory that was put there for it; what came of later ones says where, if it is the
    /// same memory that they were refused.
    fn host_memory_gone(&self, refused: Option<Box<Located>>, address: u64, env: &BlockEnv<'_>) -> Fault {
        match refused {
            Some(located) => match located.fault.cause {
                Cause::IllegalAddress { address, .. } if AddressSpace::get().host_range_is_gone(address) => Fault {
                    cause: Cause::HostMemoryGone { address },
                    ..Fault::locate(&located, env)
                },
                _ => Fault::locate(&located, env),
            },
            None => self.fault_of(Cause::HostMemoryGone { address }, env.ctaid),
        }
    }
}

/// Bytes of local memory for each lane: what the kernel's call graph needs where that is known, the stack limit where
/// recursion or indirect calls leave it open.
fn local_stride(launch: &Launch, kernel: &Arc<Function>) -> u32 {
    let stack = launch.stack_limit.max(1024);
    let known = launch.code.module.stack(launch.kernel);
    let need = match known.frames {
        Some(bytes) => bytes + if known.allocates { stack } else { 0 },
        // Frames here hold what hardware keeps in registers: parameters and results.
        None => u64::from(kernel.local) + 4 * stack,
    };
    let stride = need.next_multiple_of(64).clamp(64, 1 << 30) as u32;
    // Lanes a power of two apart would fight over the same cache sets.
    if stride > 64 && stride.is_multiple_of(128) {
        stride + 64
    } else {
        stride
    }
}

thread_local! {
    /// A worker's last windows, for the next grid.
    static KEPT: RefCell<Option<Region>> = const { RefCell::new(None) };
}

/// Shared and local windows of what runs in one seat.
struct Scratch {
    region: Region,
    /// Bytes of it in which windows lie; between those of a cluster there is nothing.
    used: u64,
}

impl Scratch {
    fn of(bytes: u64, used: u64) -> Result<Scratch, u64> {
        // A thread that is about to end has kept nothing.
        if let Ok(Some(kept)) = KEPT.try_with(|k| k.borrow_mut().take())
            && kept.bytes() >= bytes
        {
            return Ok(Scratch { region: kept, used });
        }
        AddressSpace::get()
            .allocate_internal(bytes, 4096)
            .map(|region| Scratch { region, used })
            .map_err(|_| bytes)
    }

    /// What a block finds in its shared memory is to depend on the seed alone, not on who was there before.
    fn clear_shared(&mut self, peers: u32, bytes: u32) {
        for rank in 0..u64::from(peers) {
            let start = self.region.start() + GUARD + rank * peers::STRIDE;
            // SAFETY: shared windows of the blocks that run here lie there (`Grid::place`), and none of them runs yet.
            unsafe { std::ptr::write_bytes(start as *mut u8, 0, bytes as usize) };
        }
    }

    fn keep(self) {
        // A few MB at most stay with a thread.
        if self.used <= 8 << 20 {
            // The thread may be ending: then the region just goes.
            let _ = KEPT.try_with(|k| k.borrow_mut().replace(self.region));
        }
    }
}
