//! A grid: its blocks in index order over the calling thread and the workers that help.
//!
//! Ordinary blocks run to completion, lowest index first, so that a block which waits for an earlier one always sees it
//! progress. A block that spins for long is set aside while a later one runs (a hand-written grid barrier); blocks of a
//! cooperative grid all take turns. Under a seed one thread runs them all, in turns that are drawn (`schedule.rs`).
//!
//! A panic of a thread that works on a grid ends the grid with a fault, like any other; nobody waits for that thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::defect::{self, Defect};
use crate::isa::lanes::WARP;
use crate::memory::{self, AddressSpace, Region, View};
use crate::program::Function;

use super::block::{Block, BlockEnv, Turn};
use super::children::Children;
use super::interp::Located;
use super::interp::affine::Runs;
use super::interp::code::Executable;
use super::machine::observe::{GridEvent, Watch};
use super::schedule::{self, IN_LINE, Schedule};
use super::{Cause, Fault, Launch, pool};

/// Register windows of a bundle should stay in the first-level cache; wider bundles of fat kernels run narrower.
const WINDOW_BUDGET: u32 = 40 << 10;
/// How long the caller works alone before it asks for help: waking a thread costs more than a small grid.
const ALONE: Duration = Duration::from_micros(8);
/// Frames that a chain of calls may have.
const MAX_DEPTH: u64 = 1 << 14;
/// Bytes between a block's shared and local windows that are neither's: what runs over the one does not land in the other.
const GUARD: u64 = 4096;
/// Blocks that one worker keeps open when they spin.
const MAX_OPEN: usize = 4096;

/// What a grid has from whoever launched it: children end when their parent's time is over, and draw from its seed.
#[derive(Clone, Copy, Default)]
pub struct Origin {
    pub deadline: Option<Instant>,
    pub seed: Option<u64>,
}

impl Origin {
    /// Of what the host launches, from now on.
    pub fn of(launch: &Launch) -> Origin {
        Origin {
            deadline: launch.timeout.map(|limit| Instant::now() + limit),
            seed: launch.seed.as_ref().map(schedule::Seed::next_run),
        }
    }

    /// Of the `n`-th thing that its kernels launch.
    pub fn of_child(&self, n: u64) -> Origin {
        Origin {
            deadline: self.deadline,
            seed: self.seed.map(|seed| schedule::below(seed, n)),
        }
    }

    /// The cause of a launch's end, once its time is over.
    pub fn overdue(&self, launch: &Launch) -> Option<Cause> {
        self.deadline.filter(|&deadline| Instant::now() > deadline)?;
        Some(Cause::Timeout {
            milliseconds: launch.timeout.unwrap_or_default().as_millis() as u64,
        })
    }
}

/// A launch under way, shared by those who work on it.
pub struct Grid {
    pub launch: Arc<Launch>,
    pub kernel: Arc<Executable>,
    pub schedule: Option<Schedule>,
    pub threads: u32,
    /// Bundles of a block.
    pub bundles: u32,
    pub shared_bytes: u32,
    /// How values follow the lane's number, where they do.
    pub runs: Option<Runs>,
    pub max_depth: u64,
    /// Who looks on.
    pub watch: Watch,
    local_stride: u32,
    params: Vec<u128>,
    view: View,
    blocks: u64,
    next: AtomicU64,
    stop: AtomicBool,
    origin: Origin,
    fault: Mutex<Option<Box<Fault>>>,
    /// The address at which registered host memory turned out to be gone; 0: none.
    gone: AtomicU64,
    helpers: Mutex<usize>,
    alone: Condvar,
    children: OnceLock<Arc<Children>>,
}

/// Where one block at a time runs: its state and its windows.
struct Seat<'l> {
    block: Block<'l>,
    scratch: Scratch,
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
        self.0.alone.notify_all();
    }
}

impl Seat<'_> {
    /// Its windows stay with the thread.
    fn leave(self: Box<Self>) {
        let Seat { block, scratch } = *self;
        drop(block);
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
    grid.take_part(0, true);
    pool::withdraw(&grid);
    let mut helpers = grid.helpers.lock();
    while *helpers > 0 {
        grid.alone.wait(&mut helpers);
    }
    drop(helpers);
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
        let schedule = origin.seed.map(|seed| Schedule::new(seed, launch));
        let threads: u32 = launch.block.iter().product();
        let warps = threads.div_ceil(WARP as u32);
        let mut width = match warps {
            0..=1 => 1,
            2 => 2,
            _ => 4,
        };
        width = width.min(schedule.as_ref().map_or(width, |schedule| schedule.width));
        let window = launch.code.compiled(launch.kernel, &function).window;
        while width > 1 && window * width > WINDOW_BUDGET {
            width /= 2;
        }
        let watch = launch.services.watch();
        let kernel = launch.code.executable(launch.kernel, &function, width, &watch);
        let stride = local_stride(launch, &function);
        let mut params = vec![0u128; launch.params.len().div_ceil(16)];
        // SAFETY: the destination has at least as many bytes; any bytes make a u128.
        unsafe {
            std::ptr::copy_nonoverlapping(
                launch.params.as_ptr(),
                params.as_mut_ptr().cast::<u8>(),
                launch.params.len(),
            );
        }
        Ok(Arc::new(Grid {
            threads,
            bundles: warps.div_ceil(width),
            shared_bytes: match launch.dynamic_shared {
                0 => function.shared_bytes,
                dynamic => function.dynamic_shared.max(function.shared_bytes) + dynamic,
            },
            runs: Runs::of(launch.block, width),
            max_depth: MAX_DEPTH,
            watch,
            local_stride: stride,
            params,
            view: AddressSpace::get().view(),
            blocks: launch.grid.iter().map(|&x| u64::from(x)).product(),
            next: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            origin,
            schedule,
            fault: Mutex::new(None),
            gone: AtomicU64::new(0),
            helpers: Mutex::new(0),
            alone: Condvar::new(),
            children: OnceLock::new(),
            kernel,
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

    /// The cause of its end, once its time is over.
    pub fn overdue(&self) -> Option<Cause> {
        self.origin.overdue(&self.launch)
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

    fn take(&self) -> Option<u64> {
        if self.stop.load(Ordering::Relaxed) || self.next.load(Ordering::Relaxed) >= self.blocks {
            return None;
        }
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < self.blocks)
    }

    /// The place of a block in the grid. Blocks may be short: no division where it can be spared, and none of 64 bits.
    fn ctaid(&self, index: u64) -> [u32; 3] {
        let [x, y, _] = self.launch.grid;
        if index < u64::from(x) {
            return [index as u32, 0, 0];
        }
        match u32::try_from(index) {
            Ok(index) => [index % x, index / x % y, index / x / y],
            Err(_) => {
                let [x, y] = [x, y].map(u64::from);
                [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
            }
        }
    }

    /// `at` is told which block runs.
    fn work(self: &Arc<Grid>, number: u32, caller: bool, at: &Cell<[u32; 3]>) {
        let start = Instant::now();
        let mut invited = !caller || self.blocks < 2 || pool::threads() == 1;
        // Blocks that have begun and wait for their next turn; as a rule there are none.
        let mut open: VecDeque<Box<Seat<'_>>> = VecDeque::new();
        // Seats of blocks that have ended: the last one, and as many as were open at a time.
        let mut spare: Option<Box<Seat<'_>>> = None;
        let mut idle: Vec<Box<Seat<'_>>> = Vec::new();
        // Blocks that had a turn since one of them last finished: when all have, there is room for another one.
        let mut spinning = 0;
        loop {
            let more = self.launch.cooperative || spinning >= open.len();
            let next = if more && open.len() < MAX_OPEN {
                self.take()
            } else {
                None
            };
            let mut seat = match next {
                Some(index) => {
                    if !invited && (start.elapsed() > ALONE || self.launch.cooperative) {
                        invited = true;
                        let rest = self.blocks - self.next.load(Ordering::Relaxed).min(self.blocks);
                        pool::invite(self, (rest as usize).min(pool::threads() - 1));
                    }
                    let left = spare.take().or_else(|| idle.pop());
                    let Some(seat) = self.enter(index, at, left, number) else {
                        return;
                    };
                    defect::may_fail(if caller { "launcher" } else { "worker" }, &self.kernel.function.name);
                    spinning = 0;
                    seat
                }
                None => match open.pop_front() {
                    Some(seat) => seat,
                    None => break,
                },
            };
            at.set(seat.block.env.ctaid);
            let turn = seat.block.turn();
            match self.checked(turn, &seat.block.env) {
                Ok(Turn::Done) => {
                    spinning = 0;
                    if let Some(other) = spare.replace(seat) {
                        idle.push(other);
                    }
                }
                Ok(Turn::Yield | Turn::Drawn) => {
                    open.push_back(seat);
                    if !self.may_go_on() {
                        break;
                    }
                    spinning += 1;
                }
                Err(fault) => {
                    self.report(fault);
                    break;
                }
            }
        }
        spare.into_iter().chain(idle).chain(open).for_each(Seat::leave);
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
                in_line.push(index);
            }
            if room && open.len() < MAX_OPEN && !in_line.is_empty() && !self.has_stopped() {
                // Now and then the first in line, so that nobody is passed over for long.
                let next = match schedule.one_in(IN_LINE as u64) {
                    true => 0,
                    false => schedule.below(in_line.len() as u64) as usize,
                };
                let index = in_line.remove(next);
                let place = idle.last().map_or(places, |seat| seat.block.env.seat);
                let Some(seat) = self.enter(index, at, idle.pop(), place) else {
                    return;
                };
                defect::may_fail("launcher", &self.kernel.function.name);
                places = places.max(place + 1);
                open.iter_mut().for_each(|(_, spins)| *spins = false);
                open.push((seat, false));
                continue;
            }
            if open.is_empty() {
                break;
            }
            let turn = schedule.below(open.len() as u64) as usize;
            let (seat, spins) = &mut open[turn];
            at.set(seat.block.env.ctaid);
            let drawn = seat.block.drawn_turn(schedule);
            match self.checked(drawn, &seat.block.env) {
                Ok(Turn::Done) => {
                    idle.push(open.swap_remove(turn).0);
                    open.iter_mut().for_each(|(_, spins)| *spins = false);
                }
                Ok(turn @ (Turn::Yield | Turn::Drawn)) => {
                    *spins |= matches!(turn, Turn::Yield);
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
        idle.into_iter().chain(open).for_each(Seat::leave);
    }

    /// Block `index` starts, as `at` is told, in the seat that another one has left or in a new one. `None`: there is
    /// no memory, or no time left, which ends the grid.
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
        let mut seat = match left {
            Some(seat) => seat,
            None => match self.place(number) {
                Ok(seat) => Box::new(seat),
                Err(bytes) => {
                    self.report(Box::new(self.fault_of(Cause::OutOfMemory { bytes }, ctaid)));
                    return None;
                }
            },
        };
        seat.block.start(ctaid);
        Some(seat)
    }

    /// What comes between the turns of blocks.
    fn may_go_on(&self) -> bool {
        // Perhaps somebody waits for what he has launched.
        !self.has_stopped() && self.children.get().is_none_or(|children| self.accept(children.help()))
    }

    /// Memory and state for a block; the error is the number of bytes that could not be had.
    fn place(&self, number: u32) -> Result<Seat<'_>, u64> {
        let shared = u64::from(self.shared_bytes).next_multiple_of(256);
        let local_bytes = u64::from(self.local_stride) * u64::from(self.bundles * self.kernel.width * WARP as u32);
        let scratch = Scratch::of(shared + GUARD + local_bytes + 256)?;
        let base = scratch.0.start();
        let env = BlockEnv {
            env: self,
            view: self.view,
            ctaid: [0; 3],
            seat: number,
            shared: base,
            shared_bytes: self.shared_bytes,
            shared_window: shared.max(1) as u32,
            local: base + shared + GUARD,
            local_stride: self.local_stride,
            local_bytes,
            param: self.params.as_ptr() as u64,
            param_bytes: self.launch.params.len() as u32,
        };
        Ok(Seat {
            block: Block::new(env),
            scratch,
        })
    }

    fn report(&self, fault: Box<Fault>) {
        self.stop.store(true, Ordering::Relaxed);
        self.fault.lock().get_or_insert(fault);
    }

    fn fault_of(&self, cause: Cause, block: [u32; 3]) -> Fault {
        Fault {
            block,
            ..Fault::of_launch(cause, &self.kernel.function.name)
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

/// Shared and local windows of one block at a time.
struct Scratch(Region);

impl Scratch {
    fn of(bytes: u64) -> Result<Scratch, u64> {
        // A thread that is about to end has kept nothing.
        if let Ok(Some(kept)) = KEPT.try_with(|k| k.borrow_mut().take())
            && kept.bytes() >= bytes
        {
            return Ok(Scratch(kept));
        }
        AddressSpace::get()
            .allocate_internal(bytes, 4096)
            .map(Scratch)
            .map_err(|_| bytes)
    }

    fn keep(self) {
        // A few MB at most stay with a thread.
        if self.0.bytes() <= 8 << 20 {
            // The thread may be ending: then the region just goes.
            let _ = KEPT.try_with(|k| k.borrow_mut().replace(self.0));
        }
    }
}
