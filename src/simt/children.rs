//! What kernels launch: grids, copies and fills, in the order in which they were asked for (CUDA programming guide, "CUDA
//! Dynamic Parallelism").
//!
//! A grid is complete when all that it launched is. Children need not run before their parent has ended — nobody may wait
//! for them earlier, but for the first generation of the device runtime — so they are put in line and run one after the
//! other when its blocks are done; the order of streams and events follows by itself. They run earlier when their parent
//! asks for it, seems to wait for them (it spins), or has filled the line.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::cause::Cause;
use super::fault::Fault;
use super::grid::{self, Origin};
use super::launch::Launch;
use super::machine::access::anybody;
use super::machine::observe::{Direction, GridEvent, Watch};
use super::machine::queue::{Extent, Queue, Work};
use crate::defect;
use crate::program::Space;

/// What the kernels of one grid have launched.
pub struct Children {
    pub queue: Queue,
    parent: Arc<Launch>,
    kernel: Arc<str>,
    /// The parent's.
    origin: Origin,
    /// Grids that have been launched so far.
    launched: AtomicU64,
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

/// Bytes that are copied or filled between two looks at the clock.
const PIECE: u64 = 16 << 20;

/// How many of them fit a thread's stack.
const MOST_NESTED: u32 = 24;

impl Children {
    pub fn new(launch: &Arc<Launch>, origin: Origin) -> Children {
        Children {
            parent: Arc::clone(launch),
            origin,
            launched: AtomicU64::new(0),
            queue: Queue::new(launch.family.runtime.clone()),
            kernel: Arc::clone(&launch.code.module.functions[launch.kernel as usize].name),
            running: Mutex::default(),
        }
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
            Some(_turn) if self.queue.any() && Children::has_room() => self.run_ready(),
            _ => Ok(()),
        }
    }

    fn run_ready(&self) -> Result<(), Box<Fault>> {
        let _nested = Nested::new();
        while let Some(work) = self.queue.take_ready() {
            if let Some(below) = self.perform(work)? {
                finish(below)?;
            }
        }
        Ok(())
    }

    fn perform(&self, work: Work) -> Result<Option<Arc<Children>>, Box<Fault>> {
        defect::may_fail("child", &self.kernel);
        self.in_time()?;
        match work {
            Work::Launch(launch) => {
                let number = self.launched.fetch_add(1, Ordering::Relaxed);
                return grid::run(launch, self.origin.of_child(number));
            }
            Work::Copy {
                to,
                from,
                extent,
                watch,
            } => {
                let mut moved = 0;
                for (y, z) in rows(&extent) {
                    let (to, from) = (to.row(y, z), from.row(y, z));
                    self.admit(from, extent.width, Direction::Read, &watch)?;
                    self.admit(to, extent.width, Direction::Write, &watch)?;
                    for (at, bytes) in pieces(extent.width, to > from) {
                        let (to, from) = (to + at, from + at);
                        // SAFETY: both rows lie in memory of the device or of the host's that kernels may use so
                        // (`admit`), and `copy` takes rows that overlap; pieces come in the order that such rows need.
                        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes as usize) };
                        self.look_at_clock(&mut moved, bytes)?;
                    }
                }
            }
            Work::Fill {
                to,
                value,
                extent,
                watch,
            } => {
                let mut moved = 0;
                for (y, z) in rows(&extent) {
                    let to = to.row(y, z);
                    self.admit(to, extent.width, Direction::Write, &watch)?;
                    for (at, bytes) in pieces(extent.width, false) {
                        // SAFETY: the row lies in memory that kernels may write (`admit`).
                        unsafe { std::ptr::write_bytes((to + at) as *mut u8, value, bytes as usize) };
                        self.look_at_clock(&mut moved, bytes)?;
                    }
                }
            }
        }
        Ok(None)
    }

    fn in_time(&self) -> Result<(), Box<Fault>> {
        match self.origin.overdue(&self.parent) {
            Some(cause) => Err(grid::refusal(&self.parent, cause)),
            None => Ok(()),
        }
    }

    /// After a piece of a copy or fill: now and then, whether there is time for the rest.
    fn look_at_clock(&self, moved: &mut u64, bytes: u64) -> Result<(), Box<Fault>> {
        // Short rows take their time, too.
        *moved += bytes + 64;
        if *moved > PIECE {
            *moved = 0;
            self.in_time()?;
        }
        Ok(())
    }

    /// Checks a row as an access of a kernel is checked, and tells who watches of it.
    fn admit(&self, address: u64, bytes: u64, direction: Direction, watch: &Watch) -> Result<(), Box<Fault>> {
        if anybody(self.parent.view(), address, bytes, direction.bits()) {
            let event = GridEvent::Transfer {
                address,
                bytes,
                direction,
            };
            watch.grid(self.parent.grid_id, &event);
            return Ok(());
        }
        let cause = Cause::IllegalAddress {
            address,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            write: direction == Direction::Write,
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

/// The pieces of a row of `width` bytes: where each begins, and its length.
fn pieces(width: u64, backwards: bool) -> impl Iterator<Item = (u64, u64)> {
    let count = width.div_ceil(PIECE);
    (0..count).map(move |i| {
        let at = PIECE * if backwards { count - 1 - i } else { i };
        (at, PIECE.min(width - at))
    })
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
        let (work, last) = top.queue.take();
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
