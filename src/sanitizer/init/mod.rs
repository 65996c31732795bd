//! Finds values that nobody has written where something depends on them: a branch, an address, an atomic operation, an argument
//! of `printf`. What is only moved about is nobody's business.
//!
//! Registers' shadows are operations of the program (`program/passes/shadows.rs`), which tell here of what they find; loads and
//! stores take along the shadow of memory ([`crate::memory::shadow`]). What else the machine does to memory is seen here as an
//! observer of the grid: it defines what it writes. Where a value comes from is remembered only when a load brings undefined bits
//! ([`origin`]), which programs without mistakes hardly do.

mod origin;
mod report;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::isa::lanes::WARP;
use crate::memory::shadow::{self, Shadow as Memory};
use crate::program::{AtomicOp, Decision, Function, Op, RESERVED_SHARED, Register, Space, Syscall};
use crate::ptx::ast::Span;
use crate::simt::Launch;
use crate::simt::observe::{self, Access, CELLS, Direction, GridEvent, HeapEvent, Observer, RowAccess, Undefined, Who};

use origin::{Loaded, Loads, Passed};
use report::{Found, Key};
pub use report::{Origin, Place, Uninitialised};

/// Whoever wants to know of what is found, at the end of a grid.
pub type Listener = dyn Fn(Uninitialised) + Send + Sync;

/// Looks at one grid.
pub struct Detector {
    launch: Arc<Launch>,
    listener: Arc<Listener>,
    loads: Mutex<Loads>,
    /// Values that have gone on to memory.
    passed: Mutex<Passed>,
    has_passed: AtomicBool,
    found: Mutex<HashMap<Key, Found>>,
    /// Windows of shared memory of blocks that run: start and bytes.
    windows: Mutex<HashMap<[u32; 3], (u64, u64)>>,
    /// Where in shared memory what is reserved lies.
    reserved: Option<u32>,
}

impl Detector {
    /// `None` if it is not known what has been written.
    pub fn new(launch: &Arc<Launch>, listener: Arc<Listener>) -> Option<Detector> {
        shadow::get()?;
        let kernel = launch.code.module.functions[launch.kernel as usize].lowered.get();
        Some(Detector {
            reserved: kernel.and_then(|kernel| kernel.as_ref().ok()?.reserved_shared),
            launch: Arc::clone(launch),
            listener,
            loads: Mutex::default(),
            passed: Mutex::default(),
            has_passed: AtomicBool::new(false),
            found: Mutex::default(),
            windows: Mutex::default(),
        })
    }

    /// Something depends on undefined bits in lanes of a warp.
    fn decides(
        &self,
        by: &Who<'_>,
        (warp, lanes): (usize, u32),
        decision: Decision,
        origin: impl Fn(&Loads, u32) -> Option<Loaded>,
    ) {
        let key = Key::of(by, decision);
        let first = by.first_thread + (warp * WARP) as u32 + lanes.trailing_zeros();
        let mut found = self.found.lock();
        let times = u64::from(lanes.count_ones());
        if let Some(known) = found.get_mut(&key) {
            known.times += times;
            if known.is_before(by.block, first) {
                return;
            }
        }
        let loaded = origin(&self.loads.lock(), first).map(|last| self.passed.lock().first(last));
        let shared = loaded.as_ref().and_then(|loaded| self.in_shared(loaded));
        let times = found.get(&key).map_or(times, |known| known.times);
        found.insert(
            key,
            Found {
                block: by.block,
                thread: first,
                loaded,
                shared,
                times,
            },
        );
    }

    /// The offset in its block's shared memory of what was loaded, if it is there.
    fn in_shared(&self, loaded: &Loaded) -> Option<u64> {
        let windows = self.windows.lock();
        let (start, bytes) = *windows.get(&loaded.block)?;
        let offset = loaded.address.wrapping_sub(start);
        (offset < bytes).then_some(offset)
    }

    /// Memory in which nothing has been written is found where it is read.
    fn reads(&self, by: &Who<'_>, access: &Access<'_>, memory: &Memory) {
        let mut lanes = 0;
        for lane in lanes_of(access.lanes) {
            let is_written = memory.is_written(access.addresses[lane], access.bytes.into());
            lanes |= u32::from(!is_written) << lane;
        }
        if lanes == 0 {
            return;
        }
        let Some(decision) = decision_of(by) else { return };
        let space = access.space;
        let addresses = access.addresses;
        self.decides(by, (access.warp, lanes), decision, |_, thread| {
            let lane = lanes.trailing_zeros() as usize;
            Loaded::of(by, thread, (addresses[lane], access.bytes), space, memory)
        });
    }
}

/// Whether what this instruction reads by itself is an operand of an atomic operation or printed.
fn decision_of(by: &Who<'_>) -> Option<Decision> {
    let mut insts = by.function.body.insts().filter(|inst| inst.span == by.span);
    insts.find_map(|inst| match &inst.op {
        // What it exchanges does not depend on what was there.
        Op::Atomic { op, .. } => (*op != AtomicOp::Exch).then_some(Decision::AtomicMemory),
        Op::Syscall {
            which: Syscall::Vprintf,
            ..
        } => Some(Decision::Print),
        _ => None,
    })
}

fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..WARP).filter(move |lane| mask >> lane & 1 == 1)
}

impl Observer for Detector {
    fn follows_accesses(&self) -> bool {
        false
    }

    fn access(&self, by: &Who<'_>, access: &Access<'_>) {
        let Some(memory) = shadow::get() else { return };
        // Stores have shadows of their own, and are told of where somebody else wants to know of them.
        if access.stored.is_some() {
            return;
        }
        // What several lanes read at once is a load, which has a shadow of its own; system calls read lane by lane.
        let is_load = access.direction == Direction::Read && !access.lanes.is_power_of_two();
        if access.direction != Direction::Write && !is_load {
            self.reads(by, access, memory);
        }
        if access.direction != Direction::Read {
            for lane in lanes_of(access.lanes) {
                memory.define(access.addresses[lane], access.bytes.into());
            }
        }
    }

    // Ordinary loads and stores alone are told so, and they have shadows of their own.
    fn rows(&self, _by: &Who<'_>, _rows: &RowAccess<'_>) {}

    fn copied(&self, by: &Who<'_>, lane: usize, from: u64, to: u64, bytes: u64) {
        let Some(memory) = shadow::get() else { return };
        memory.copied(from, to, bytes);
        if memory.is_written(from, bytes) && !self.has_passed.load(Relaxed) {
            return;
        }
        self.has_passed.store(true, Relaxed);
        let thread = by.first_thread + lane as u32;
        let size = u32::try_from(bytes).unwrap_or(u32::MAX);
        let found = Loaded::of(by, thread, (from, size), Space::Generic, memory);
        self.passed.lock().copied((from, to), bytes, found.as_ref());
    }

    fn heap(&self, _by: &Who<'_>, event: &HeapEvent) {
        if let (Some(memory), HeapEvent::Allocate { address, bytes, .. }) = (shadow::get(), event) {
            memory.undefine(*address, *bytes);
        }
    }

    fn undefined(&self, by: &Who<'_>, event: &Undefined<'_>) {
        let Some(memory) = shadow::get() else { return };
        match *event {
            Undefined::Loaded {
                warp,
                lanes,
                addresses,
                bytes,
                space,
            } => {
                let mut loads = self.loads.lock();
                for lane in lanes_of(lanes) {
                    let thread = by.first_thread + (warp * WARP + lane) as u32;
                    if let Some(loaded) = Loaded::of(by, thread, (addresses[lane], bytes), space, memory) {
                        loads.add(loaded);
                    }
                }
            }
            Undefined::Stored {
                warp,
                lanes,
                addresses,
                bytes,
            } => {
                let (loads, mut passed) = (self.loads.lock(), self.passed.lock());
                self.has_passed.store(true, Relaxed);
                for lane in lanes_of(lanes) {
                    let thread = by.first_thread + (warp * WARP + lane) as u32;
                    let loaded = loads.last_of_store(by, thread);
                    passed.put(addresses[lane], bytes, loaded.as_ref());
                }
            }
            Undefined::Multiplied { warp, lanes, sources } => {
                self.loads.lock().multiplied(by, (warp, lanes), sources);
            }
            Undefined::Decides {
                warp,
                lanes,
                decision,
                register,
            } => {
                self.decides(by, (warp, lanes), decision, |loads, thread| {
                    loads.last_into(by.function, register, by.block, thread)
                });
            }
        }
    }

    fn grid(&self, _grid: u64, event: &GridEvent) {
        let Some(memory) = shadow::get() else { return };
        match event {
            GridEvent::Block { block, shared, .. } => {
                memory.undefine(shared.0, shared.1);
                if self.has_passed.load(Relaxed) {
                    let mut passed = self.passed.lock();
                    passed.forget(shared.0, shared.1);
                    passed.forget(observe::cell(shared.0, 0, 0), CELLS);
                }
                // What is reserved for the toolkit's headers is not the program's to write.
                if let Some(reserved) = self.reserved {
                    memory.define(shared.0 + u64::from(reserved), RESERVED_SHARED.into());
                }
                self.windows.lock().insert(*block, *shared);
            }
            GridEvent::BlockEnd { block } => {
                self.windows.lock().remove(block);
            }
            GridEvent::Transfer {
                address,
                bytes,
                direction: Direction::Write | Direction::Atomic,
            } => memory.define(*address, *bytes),
            GridEvent::End => {
                let found = std::mem::take(&mut *self.found.lock());
                for one in report::all(found, &self.launch) {
                    (self.listener)(one);
                }
            }
            GridEvent::Transfer { .. }
            | GridEvent::Complete { .. }
            | GridEvent::Launch
            | GridEvent::Left { .. }
            | GridEvent::Release { .. }
            | GridEvent::ClusterRelease { .. } => {}
        }
    }
}

/// A function, told from others by where it is: it lives as long as its module, and that as long as the launch.
fn identity(function: &Function) -> usize {
    std::ptr::from_ref(function) as usize
}

/// An instruction: its function and place in the text.
type Instruction = (usize, u32);

/// What an origin is asked for by.
type Slice = (usize, Register);

/// Where an instruction stands.
type Line = (usize, Span);

/// In which space something is, for people.
fn is_local(space: Space) -> bool {
    space == Space::Local
}
