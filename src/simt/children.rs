//! What kernels launch: grids, copies and fills, in the order in which they were asked for (CUDA programming guide, "CUDA
//! Dynamic Parallelism").
//!
//! Flows in: work, in the order of the calls. Flows out: its effects, or the first fault. It must never know what the calls
//! look like.
//!
//! A grid is complete when all that it launched is. Children need not run before their parent has ended — nobody may wait
//! for them earlier, but for the first generation of the device runtime — so they are put in line and run one after the
//! other when its blocks are done; the order of streams and events follows by itself. They run earlier when their parent
//! asks for it, seems to wait for them (it spins), or has filled the line.

use std::cell::Cell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::grid::{self, Origin};
use super::machine::access::anybody;
use super::{Cause, Fault, Launch};
use crate::defect;
use crate::memory::{AddressSpace, READ, WRITE};
use crate::program::Space;

/// Where a launch comes from.
#[derive(Clone, Default)]
pub struct Family {
    /// `None`: its kernels launch nothing.
    pub runtime: Option<Arc<dyn Runtime>>,
    /// Grids above it: 0 for what the host launched.
    pub depth: u32,
    /// The executable graph of which it is a node, as the host knows it; 0 if none.
    pub graph: u64,
}

/// A launch's shape as kernels give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Index among the module's functions.
    pub kernel: u32,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
}

/// A change of a kernel node of a graph that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphUpdate {
    Parameter { offset: u64, bytes: Box<[u8]> },
    Enabled(bool),
    Grid([u32; 3]),
}

/// What the device runtime asks of its surroundings. Errors are numbers of `cudaError`.
pub trait Runtime: Send + Sync {
    /// A launch of a kernel of the parent's module.
    ///
    /// # Errors
    /// What is wrong with the shape.
    fn child(&self, parent: &Launch, shape: &Shape, params: Box<[u8]>) -> Result<Launch, u32>;
    /// Bytes of a kernel's parameters.
    fn parameters(&self, kernel: u32) -> Result<u32, u32>;
    /// A `CU_FUNC_ATTRIBUTE`.
    fn function_attribute(&self, kernel: u32, which: u32) -> Result<i32, u32>;
    /// Blocks that a multiprocessor would hold.
    fn occupancy(&self, kernel: u32, threads: u32, dynamic_shared: u64) -> Result<u32, u32>;
    /// A `CU_DEVICE_ATTRIBUTE`.
    fn device_attribute(&self, which: i32, device: i32) -> Result<i32, u32>;
    fn device_count(&self) -> u32;
    fn device(&self) -> u32;
    /// A `CUlimit`.
    fn limit(&self, which: u32) -> Result<u64, u32>;
    /// `cudaFuncCache` and `cudaSharedMemConfig` of the context.
    fn preferences(&self) -> (u32, u32);
    /// As `cudaRuntimeGetVersion` gives it.
    fn version(&self) -> u32;
    /// Name and description of an error.
    fn words(&self, error: u32) -> (&'static str, &'static str);
    /// Memory that kernels reach and do not see as a part of their heap; 0: none left.
    fn reserve(&self, bytes: u64) -> u64;
    fn release(&self, start: u64);
    /// `cudaGraphLaunch` by a node of the graph `from`.
    ///
    /// # Errors
    /// What is wrong with it.
    fn launch_graph(&self, from: u64, graph: u64, stream: u64) -> Result<(), u32>;
    /// Changes a node that was made to be changed by kernels.
    ///
    /// # Errors
    /// What is wrong with it.
    fn update_node(&self, node: u64, update: GraphUpdate) -> Result<(), u32>;
}

/// Rows of a copy or a fill: bytes of each, and how many in each slice.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub width: u64,
    pub height: u64,
    pub depth: u64,
}

/// An address, and bytes from one row and one slice to the next.
#[derive(Clone, Copy, Debug)]
pub struct Pitched {
    pub address: u64,
    pub pitch: u64,
    pub slice: u64,
}

impl Pitched {
    fn row(&self, y: u64, z: u64) -> u64 {
        let offset = z.wrapping_mul(self.slice).wrapping_add(y.wrapping_mul(self.pitch));
        self.address.wrapping_add(offset)
    }
}

pub enum Work {
    Launch(Arc<Launch>),
    Copy { to: Pitched, from: Pitched, extent: Extent },
    Fill { to: Pitched, value: u8, extent: Extent },
}

#[derive(Default)]
struct State {
    ready: VecDeque<Work>,
    /// What comes when all else is done.
    tail: VecDeque<Work>,
    handles: HashSet<u64>,
    next_handle: u64,
    buffers: Buffers,
    /// The last error of each thread that has one: (number of the block, thread).
    errors: HashMap<(u64, u32), u32>,
}

/// Parameter buffers: handed out, filled by kernels, given back by launches.
#[derive(Default)]
struct Buffers {
    slabs: Vec<u64>,
    /// Free ones of 64, 128, 256 … bytes.
    free: [Vec<u64>; 10],
    /// Those in use: the class, and what is to be launched, if that is known already.
    used: HashMap<u64, (usize, Option<Shape>)>,
}

impl Buffers {
    const LEAST: u64 = 64;
    const SLAB: u64 = 64 << 10;

    fn take(&mut self, runtime: &dyn Runtime, bytes: u64, shape: Option<Shape>) -> Option<u64> {
        let size = bytes.max(Buffers::LEAST).checked_next_power_of_two()?;
        let class = (size / Buffers::LEAST).trailing_zeros() as usize;
        let free = self.free.get_mut(class)?;
        if free.is_empty() {
            let slab = runtime.reserve(Buffers::SLAB);
            if slab == 0 {
                return None;
            }
            self.slabs.push(slab);
            free.extend((0..Buffers::SLAB / size).rev().map(|index| slab + index * size));
        }
        let address = free.pop()?;
        self.used.insert(address, (class, shape));
        Some(address)
    }

    fn give_back(&mut self, address: u64) -> Option<(u64, Option<Shape>)> {
        let (class, shape) = self.used.remove(&address)?;
        self.free[class].push(address);
        Some((Buffers::LEAST << class, shape))
    }
}

/// What the kernels of one grid have launched.
pub struct Children {
    runtime: Option<Arc<dyn Runtime>>,
    parent: Arc<Launch>,
    kernel: Arc<str>,
    /// The parent's.
    origin: Origin,
    /// Grids that have been launched so far.
    launched: AtomicU64,
    state: Mutex<State>,
    /// Something is ready.
    any: AtomicBool,
    /// Held by who runs it.
    running: Mutex<()>,
}

thread_local! {
    /// Grids that run on this thread because others wait for them.
    static NESTED: Cell<u32> = const { Cell::new(0) };
}

/// One of them, until it is dropped.
struct Nested;

impl Nested {
    fn new() -> Nested {
        NESTED.with(|nested| nested.set(nested.get() + 1));
        Nested
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        NESTED.with(|nested| nested.set(nested.get() - 1));
    }
}

/// How many of them fit a thread's stack.
const MOST_NESTED: u32 = 24;

/// Where a launch is put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line {
    Ready,
    Tail,
}

impl Children {
    pub fn new(launch: &Arc<Launch>, origin: Origin) -> Children {
        Children {
            parent: Arc::clone(launch),
            origin,
            launched: AtomicU64::new(0),
            runtime: launch.family.runtime.clone(),
            kernel: Arc::clone(&launch.code.module.functions[launch.kernel as usize].name),
            state: Mutex::default(),
            any: AtomicBool::new(false),
            running: Mutex::default(),
        }
    }

    pub fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// What is in line and has not begun.
    pub fn pending(&self) -> u64 {
        let state = self.state.lock();
        (state.ready.len() + state.tail.len()) as u64
    }

    pub fn push(&self, line: Line, work: Work) {
        let mut state = self.state.lock();
        match line {
            Line::Ready => {
                state.ready.push_back(work);
                self.any.store(true, Ordering::Relaxed);
            }
            Line::Tail => state.tail.push_back(work),
        }
    }

    /// A stream or an event: a number that means something in this grid alone.
    pub fn create(&self) -> u64 {
        let mut state = self.state.lock();
        state.next_handle += 1;
        // None of the streams that have names of their own.
        let handle = 0x1000 + state.next_handle * 16;
        state.handles.insert(handle);
        handle
    }

    pub fn knows(&self, handle: u64) -> bool {
        self.state.lock().handles.contains(&handle)
    }

    /// `false`: there is none.
    pub fn destroy(&self, handle: u64) -> bool {
        self.state.lock().handles.remove(&handle)
    }

    pub fn take_buffer(&self, bytes: u64, shape: Option<Shape>) -> Option<u64> {
        let runtime = self.runtime.as_deref()?;
        self.state.lock().buffers.take(runtime, bytes, shape)
    }

    /// Bytes of a parameter buffer and what it was made for; it may be handed out again after its contents were read.
    pub fn give_back(&self, address: u64) -> Option<(u64, Option<Shape>)> {
        self.state.lock().buffers.give_back(address)
    }

    pub fn set_error(&self, thread: (u64, u32), error: u32) {
        self.state.lock().errors.insert(thread, error);
    }

    pub fn error(&self, thread: (u64, u32), take: bool) -> u32 {
        let mut state = self.state.lock();
        let found = match take {
            true => state.errors.remove(&thread),
            false => state.errors.get(&thread).copied(),
        };
        found.unwrap_or(0)
    }

    /// Whether what is in line can run here and now.
    pub fn has_room() -> bool {
        NESTED.with(Cell::get) < MOST_NESTED
    }

    /// Runs all that is ready and returns when it is complete, whoever runs it.
    ///
    /// # Errors
    /// The first fault.
    pub fn drain(&self) -> Result<(), Box<Fault>> {
        let _turn = self.running.lock();
        self.run_ready()
    }

    /// Runs what is ready unless somebody does.
    ///
    /// # Errors
    /// The first fault.
    pub fn help(&self) -> Result<(), Box<Fault>> {
        match self.running.try_lock() {
            Some(_turn) if self.any() && Children::has_room() => self.run_ready(),
            _ => Ok(()),
        }
    }

    fn run_ready(&self) -> Result<(), Box<Fault>> {
        let _nested = Nested::new();
        loop {
            let work = {
                let mut state = self.state.lock();
                let work = state.ready.pop_front();
                if work.is_none() {
                    self.any.store(false, Ordering::Relaxed);
                }
                work
            };
            let Some(work) = work else { return Ok(()) };
            if let Some(below) = self.perform(work)? {
                finish(below)?;
            }
        }
    }

    fn perform(&self, work: Work) -> Result<Option<Arc<Children>>, Box<Fault>> {
        defect::may_fail("child", &self.kernel);
        if let Some(cause) = self.origin.overdue(&self.parent) {
            return Err(grid::refusal(&self.parent, cause));
        }
        match work {
            Work::Launch(launch) => {
                let number = self.launched.fetch_add(1, Ordering::Relaxed);
                return grid::run(launch, self.origin.of_child(number));
            }
            Work::Copy { to, from, extent } => {
                for (y, z) in rows(&extent) {
                    let (to, from) = (to.row(y, z), from.row(y, z));
                    self.check(from, extent.width, READ)?;
                    self.check(to, extent.width, WRITE)?;
                    // SAFETY: both were checked just now, as for an access of a kernel; `copy` takes overlaps.
                    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, extent.width as usize) };
                }
            }
            Work::Fill { to, value, extent } => {
                for (y, z) in rows(&extent) {
                    let to = to.row(y, z);
                    self.check(to, extent.width, WRITE)?;
                    // SAFETY: checked just now, as for an access of a kernel.
                    unsafe { std::ptr::write_bytes(to as *mut u8, value, extent.width as usize) };
                }
            }
        }
        Ok(None)
    }

    fn check(&self, address: u64, bytes: u64, bits: u8) -> Result<(), Box<Fault>> {
        if anybody(AddressSpace::get().view(), address, bytes, bits) {
            return Ok(());
        }
        let cause = Cause::IllegalAddress {
            address,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            write: bits == WRITE,
            space: Space::Global,
        };
        Err(Box::new(Fault {
            note: Some("in a copy or fill that the kernel asked the device runtime for"),
            ..Fault::of_launch(cause, &self.kernel)
        }))
    }
}

fn rows(extent: &Extent) -> impl Iterator<Item = (u64, u64)> + use<> {
    let Extent { width, height, depth } = *extent;
    let slices = if width == 0 { 0 } else { depth };
    (0..slices).flat_map(move |z| (0..height).map(move |y| (y, z)))
}

impl Drop for Children {
    fn drop(&mut self) {
        if let Some(runtime) = &self.runtime {
            for slab in self.state.get_mut().buffers.slabs.drain(..) {
                runtime.release(slab);
            }
        }
    }
}

/// Runs a grid and all that it launches, to their end.
///
/// # Errors
/// The first fault, if any; what had not started then never does.
pub fn run(launch: Arc<Launch>) -> Result<(), Box<Fault>> {
    let whole = defect::within(|| {
        let origin = Origin::of(&launch);
        match grid::run(Arc::clone(&launch), origin)? {
            None => Ok(()),
            Some(children) => finish(children),
        }
    });
    whole.unwrap_or_else(|defect| Err(grid::refusal(&launch, Cause::Defect { defect })))
}

/// What is left when a grid's blocks have ended: its children and, after them, what it wants to come last. Each is complete
/// before the next one starts; however deep, on a stack of our own.
fn finish(children: Arc<Children>) -> Result<(), Box<Fault>> {
    let mut stack = vec![children];
    while let Some(top) = stack.last() {
        let (work, last) = {
            let mut state = top.state.lock();
            let work = state.ready.pop_front().or_else(|| state.tail.pop_front());
            (work, state.ready.is_empty() && state.tail.is_empty())
        };
        let below = match work {
            None => None,
            Some(work) => top.perform(work)?,
        };
        // What launches itself over and over leaves nothing behind.
        if last {
            stack.pop();
        }
        stack.extend(below);
    }
    Ok(())
}
