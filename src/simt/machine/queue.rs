//! What the kernels of one grid have put in line for later: launches, copies and fills (CUDA programming guide, "CUDA
//! Dynamic Parallelism"), with the tokens, buffers and errors that go with them. Who runs it, and when, is
//! `children.rs`'s business.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::simt::launch::{Launch, Runtime, Shape};

use super::observe::Watch;

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
    pub fn row(&self, y: u64, z: u64) -> u64 {
        let offset = z.wrapping_mul(self.slice).wrapping_add(y.wrapping_mul(self.pitch));
        self.address.wrapping_add(offset)
    }
}

pub enum Work {
    Launch(Arc<Launch>),
    /// `watch`, here and below: who looks on at the grid that asked for it.
    Copy {
        to: Pitched,
        from: Pitched,
        extent: Extent,
        watch: Watch,
    },
    Fill {
        to: Pitched,
        value: u8,
        extent: Extent,
        watch: Watch,
    },
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

/// A parameter buffer that a launch is about to read, and nobody else has.
pub struct Claimed {
    address: u64,
    class: usize,
    /// What it was made for, if that was known.
    pub shape: Option<Shape>,
}

impl Claimed {
    /// Bytes that it has.
    pub fn room(&self) -> u64 {
        Buffers::LEAST << self.class
    }
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

    fn claim(&mut self, address: u64) -> Option<Claimed> {
        let (class, shape) = self.used.remove(&address)?;
        Some(Claimed { address, class, shape })
    }
}

/// When work is done: in its turn, or after all else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line {
    Ready,
    Tail,
}

/// The line, and what belongs to it.
pub struct Queue {
    runtime: Option<Arc<dyn Runtime>>,
    state: Mutex<State>,
    /// Something is ready.
    any: AtomicBool,
}

impl Queue {
    pub fn new(runtime: Option<Arc<dyn Runtime>>) -> Queue {
        Queue {
            runtime,
            state: Mutex::default(),
            any: AtomicBool::new(false),
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

    /// A parameter buffer that was handed out; nobody else gets it before it is given back.
    pub fn claim_buffer(&self, address: u64) -> Option<Claimed> {
        self.state.lock().buffers.claim(address)
    }

    /// It was read, and may be handed out again.
    pub fn give_back(&self, buffer: &Claimed) {
        self.state.lock().buffers.free[buffer.class].push(buffer.address);
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

    /// The next of what is ready.
    pub fn take_ready(&self) -> Option<Work> {
        let mut state = self.state.lock();
        let work = state.ready.pop_front();
        if work.is_none() {
            self.any.store(false, Ordering::Relaxed);
        }
        work
    }

    /// The next of all, and whether nothing is left then.
    pub fn take(&self) -> (Option<Work>, bool) {
        let mut state = self.state.lock();
        let work = state.ready.pop_front().or_else(|| state.tail.pop_front());
        (work, state.ready.is_empty() && state.tail.is_empty())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if let Some(runtime) = &self.runtime {
            for slab in self.state.get_mut().buffers.slabs.drain(..) {
                runtime.release(slab);
            }
        }
    }
}
