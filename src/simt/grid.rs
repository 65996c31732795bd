//! A grid: its blocks in index order over the calling thread and the workers that help.
//!
//! Ordinary blocks run to completion, lowest index first, so that a block which waits for an earlier one always sees it
//! progress. A block that spins for long is set aside while a later one runs (a hand-written grid barrier); blocks of a
//! cooperative grid all take turns.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::isa::lanes::WARP;
use crate::memory::{AddressSpace, Region, View};
use crate::program::{Function, Module, Op};

use super::block::{Block, BlockEnv, Turn};
use super::children::Children;
use super::interp::Located;
use super::interp::affine::Runs;
use super::interp::code::Executable;
use super::machine::observe::{GridEvent, Watch};
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

/// A launch under way, shared by those who work on it.
pub struct Grid {
    pub launch: Arc<Launch>,
    pub kernel: Arc<Executable>,
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
    deadline: Option<Instant>,
    fault: Mutex<Option<Box<Fault>>>,
    helpers: Mutex<usize>,
    alone: Condvar,
    children: OnceLock<Arc<Children>>,
}

/// Where one block at a time runs: its state and its windows.
struct Seat<'l> {
    block: Block<'l>,
    scratch: Scratch,
}

/// Runs the blocks of a grid to their end, on the calling thread and the process's workers. Gives what its kernels have
/// launched and nobody has run yet.
///
/// # Errors
/// The first fault, if any; blocks that had not started then never do.
pub fn run(launch: Arc<Launch>) -> Result<Option<Arc<Children>>, Box<Fault>> {
    let grid = Arc::new(Grid::new(launch)?);
    grid.watch.grid(grid.launch.grid_id, &GridEvent::Launch);
    grid.work(0, true, &grid);
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

impl Grid {
    fn new(launch: Arc<Launch>) -> Result<Grid, Box<Fault>> {
        let refuse = |cause: Cause| {
            let kernel = Arc::clone(&launch.code.module.functions[launch.kernel as usize].name);
            Box::new(Fault {
                cause,
                function: Arc::clone(&kernel),
                kernel,
                block: [0; 3],
                thread: [0; 3],
                instruction: String::new(),
                ptx_line: 0,
                source_line: None,
            })
        };
        let function = launch
            .code
            .module
            .prepare(launch.kernel)
            .map_err(|d| refuse(Cause::Invalid { report: d.to_string() }))?;
        let threads: u32 = launch.block.iter().product();
        let warps = threads.div_ceil(WARP as u32);
        let mut width = match warps {
            0..=1 => 1,
            2 => 2,
            _ => 4,
        };
        let window = launch.code.compiled(launch.kernel, &function).window;
        while width > 1 && window * width > WINDOW_BUDGET {
            width /= 2;
        }
        let watch = launch.services.watch();
        let kernel = launch.code.executable(launch.kernel, &function, width, &watch);
        let stride = local_stride(&launch, &function);
        let mut params = vec![0u128; launch.params.len().div_ceil(16)];
        // SAFETY: the destination has at least as many bytes; any bytes make a u128.
        unsafe {
            std::ptr::copy_nonoverlapping(
                launch.params.as_ptr(),
                params.as_mut_ptr().cast::<u8>(),
                launch.params.len(),
            );
        }
        Ok(Grid {
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
            deadline: launch.timeout.map(|t| Instant::now() + t),
            fault: Mutex::new(None),
            helpers: Mutex::new(0),
            alone: Condvar::new(),
            children: OnceLock::new(),
            kernel,
            launch,
        })
    }

    /// What its kernels have launched.
    pub fn children(&self) -> &Arc<Children> {
        self.children.get_or_init(|| Arc::new(Children::new(&self.launch)))
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
    pub fn join(&self) {
        *self.helpers.lock() += 1;
    }

    /// A worker's part.
    pub fn help(self: &Arc<Grid>, number: u32) {
        self.work(number, false, self);
        *self.helpers.lock() -= 1;
        self.alone.notify_all();
    }

    fn take(&self) -> Option<u64> {
        if self.stop.load(Ordering::Relaxed) || self.next.load(Ordering::Relaxed) >= self.blocks {
            return None;
        }
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < self.blocks)
    }

    fn ctaid(&self, index: u64) -> [u32; 3] {
        let [x, y, _] = self.launch.grid.map(u64::from);
        [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
    }

    fn work(&self, number: u32, caller: bool, me: &Arc<Grid>) {
        let start = Instant::now();
        let mut invited = !caller || self.blocks < 2 || pool::threads() == 1;
        let mut open: VecDeque<Box<Seat<'_>>> = VecDeque::new();
        let mut idle: Vec<Box<Seat<'_>>> = Vec::new();
        // Blocks that had a turn since one of them last finished: when all have, there is room for another one.
        let mut spinning = 0;
        loop {
            let more = self.launch.cooperative || spinning >= open.len();
            if more
                && open.len() < MAX_OPEN
                && let Some(index) = self.take()
            {
                if !invited && (start.elapsed() > ALONE || self.launch.cooperative) {
                    invited = true;
                    let rest = self.blocks - self.next.load(Ordering::Relaxed).min(self.blocks);
                    pool::invite(me, (rest as usize).min(pool::threads() - 1));
                }
                let mut seat = match idle.pop() {
                    Some(seat) => seat,
                    None => match self.place(number) {
                        Ok(seat) => Box::new(seat),
                        Err(bytes) => {
                            self.report(Box::new(self.fault_of(Cause::OutOfMemory { bytes }, self.ctaid(index))));
                            return;
                        }
                    },
                };
                seat.block.start(self.ctaid(index));
                spinning = 0;
                open.push_front(seat);
            }
            let Some(mut seat) = open.pop_front() else {
                break;
            };
            match seat.block.turn() {
                Ok(Turn::Done) => {
                    spinning = 0;
                    idle.push(seat);
                }
                Ok(Turn::Yield) => {
                    if self.stop.load(Ordering::Relaxed) {
                        break;
                    }
                    if self.deadline.is_some_and(|d| Instant::now() > d) {
                        let limit = self.launch.timeout.unwrap_or_default();
                        let cause = Cause::Timeout {
                            milliseconds: limit.as_millis() as u64,
                        };
                        self.report(Box::new(self.fault_of(cause, seat.block.env.ctaid)));
                        break;
                    }
                    // Perhaps somebody waits for what he has launched.
                    if let Some(children) = self.children.get()
                        && !self.accept(children.help())
                    {
                        break;
                    }
                    spinning += 1;
                    open.push_back(seat);
                }
                Err(located) => {
                    self.report(Box::new(self.locate(&located, seat.block.env.ctaid)));
                    break;
                }
            }
        }
        for seat in open.into_iter().chain(idle) {
            let Seat { block, scratch } = *seat;
            drop(block);
            scratch.keep();
        }
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
        let kernel = Arc::clone(&self.kernel.function.name);
        Fault {
            cause,
            function: Arc::clone(&kernel),
            kernel,
            block,
            thread: [0; 3],
            instruction: String::new(),
            ptx_line: 0,
            source_line: None,
        }
    }

    fn locate(&self, located: &Located, block: [u32; 3]) -> Fault {
        let function = &located.exec.function;
        let [x, y, _] = self.launch.block;
        let t = located.first_thread + located.fault.lane as u32;
        let text = &function.source.text;
        let pc = located.exec.pc_in_function(located.pc);
        let compiled = &located.exec.compiled;
        let span = compiled.code.get(pc as usize).map(|i| i.span).unwrap_or_default();
        let (start, end) = (span.start as usize, span.end as usize);
        let last = compiled.lines.partition_point(|(at, _, _)| *at <= pc);
        Fault {
            thread: [t % x, t / x % y, t / x / y],
            function: Arc::clone(&function.name),
            instruction: text
                .get(start..end)
                .unwrap_or_default()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            ptx_line: text.get(..start).map_or(0, |t| t.matches('\n').count() as u32 + 1),
            source_line: last.checked_sub(1).map(|i| (compiled.lines[i].1, compiled.lines[i].2)),
            ..self.fault_of(located.fault.cause.clone(), block)
        }
    }
}

/// Bytes of local memory for each lane: what the kernel's call graph needs where that is known, the stack limit where
/// recursion or indirect calls leave it open.
fn local_stride(launch: &Launch, kernel: &Arc<Function>) -> u32 {
    let stack = launch.stack_limit.max(1024);
    let need = match frames(&launch.code.module, kernel, 0) {
        Some(bytes) => bytes + if allocates(kernel) { stack } else { 0 },
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

fn allocates(function: &Function) -> bool {
    function.body.insts().any(|inst| matches!(inst.op, Op::Alloca { .. }))
}

/// Bytes of the deepest chain of frames from `function` on; `None`: recursion or an indirect call.
fn frames(module: &Module, function: &Arc<Function>, depth: u32) -> Option<u64> {
    if function.calls_indirectly || depth > 64 {
        return None;
    }
    let mut deepest = 0;
    for &callee in &function.callees {
        let callee = module.functions.get(callee as usize)?.lowered.get()?.as_ref().ok()?;
        if Arc::ptr_eq(callee, function) || allocates(callee) {
            return None;
        }
        let below = frames(module, callee, depth + 1)?;
        deepest = deepest.max(below + u64::from(callee.local_align.max(16)));
    }
    Some(u64::from(function.local) + deepest)
}

thread_local! {
    /// A worker's last windows, for the next grid.
    static KEPT: RefCell<Option<Region>> = const { RefCell::new(None) };
}

/// Shared and local windows of one block at a time.
struct Scratch(Region);

impl Scratch {
    fn of(bytes: u64) -> Result<Scratch, u64> {
        if let Some(kept) = KEPT.with(|k| k.borrow_mut().take())
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
