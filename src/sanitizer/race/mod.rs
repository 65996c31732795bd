//! Finds races: accesses of two threads to the same bytes, at least one a write, in no order by PTX's memory model (PTX ISA,
//! Memory Consistency Model) and not both strong for each other.
//!
//! Each thread has a vector clock ([`clock`]), each word of memory that the grid has touched knows who wrote it last and who has
//! read it since ([`shadow`], [`ledger`]). Threads learn of each other at barriers ([`block`]) and by flags and mbarriers
//! ([`flags`]). Whether two accesses are in order follows from that alone: what the schedule was does not matter, but for the
//! values that a program happened to read.

mod access;
mod block;
mod clock;
mod events;
mod flags;
mod guess;
mod judge;
mod ledger;
mod plain;
mod report;
mod shadow;
mod strong;
mod swap;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Relaxed};

use parking_lot::{Mutex, RwLock};

use crate::isa::lanes::WARP;
use crate::program::Space;
use crate::ptx::ast::Span;
use crate::simt::Launch;
use crate::simt::observe::{Access, Direction, GridEvent, HeapEvent, Observer, RowAccess, SyncEvent, Who};

use block::{ASYNC, Block, Gathering, Met};
use flags::{Flags, Mbarriers};
use ledger::{Kind, Ledger};
use plain::Plain;
pub use report::{Missing, Party, Place, Race};
use shadow::Shadow;

/// Entries and sets of the ledger after which those are dropped that no word refers to.
const MANY: usize = 1 << 20;

/// What is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Also what the memory model calls a race and what programs get away with: two stores of one value; a plain read of what a
    /// compare-and-swap then compares; a relaxed read that is taken for an acquire; fences of threads that meet at a barrier behind
    /// them; collectives of a warp taken for barriers.
    pub benign: bool,
}

/// Whoever wants to know of races, at the end of a grid.
pub type Listener = dyn Fn(Race) + Send + Sync;

/// Looks at one grid.
pub struct Detector {
    launch: Arc<Launch>,
    options: Options,
    listener: Arc<Listener>,
    /// Threads meet as whole blocks and whole warps alone: what is kept then, and nothing else is.
    plain: Option<Plain>,
    /// No strong access reaches less far than the device.
    is_wide: bool,
    /// Tells detectors apart.
    number: u64,
    /// By its coordinates, a block that runs.
    blocks: RwLock<HashMap<[u32; 3], Arc<Mutex<Block>>>>,
    /// Coordinates of blocks, by number, in the order in which they began.
    begun: Mutex<Vec<[u32; 3]>>,
    /// Windows of shared memory of blocks that run, by number.
    windows: Mutex<HashMap<u32, (u64, u64)>>,
    /// Shared with all who look something up; alone with who drops what nobody needs.
    book: RwLock<Book>,
    flags: Mutex<Flags>,
    mbarriers: Mutex<Mbarriers>,
    /// By number, where clusters meet.
    clusters: Mutex<HashMap<u32, (Gathering, Met)>>,
    sites: Mutex<Sites>,
    found: Mutex<HashMap<report::Key, report::Found>>,
    /// Accesses that could not be kept.
    lost: AtomicU64,
}

#[derive(Default)]
struct Book {
    ledger: Ledger,
    shadow: Shadow,
    /// What is left of the ledger when it was last gone through.
    kept: usize,
    /// How often that was: entries are numbered anew.
    generation: u32,
}

impl Book {
    /// It is time to drop what nobody needs.
    fn is_full(&self) -> bool {
        self.ledger.len() >= (2 * self.kept).max(MANY)
    }
}

/// Instructions, by function and place in its text.
#[derive(Default)]
struct Sites {
    numbers: HashMap<(usize, u32), u32>,
    all: Vec<(usize, Span)>,
    /// Whether what is read there is a guess, where somebody has asked.
    guesses: HashMap<u32, bool>,
}

impl Detector {
    pub fn new(launch: &Arc<Launch>, options: Options, listener: Arc<Listener>) -> Detector {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Detector {
            launch: Arc::clone(launch),
            options,
            listener,
            plain: plain::is_plain(launch).then(|| Plain::new(launch.block.iter().product())),
            is_wide: plain::is_wide(launch),
            number: NEXT.fetch_add(1, Relaxed::Relaxed),
            blocks: RwLock::default(),
            begun: Mutex::default(),
            windows: Mutex::default(),
            book: RwLock::default(),
            flags: Mutex::default(),
            mbarriers: Mutex::default(),
            clusters: Mutex::default(),
            sites: Mutex::default(),
            found: Mutex::default(),
            lost: AtomicU64::new(0),
        }
    }

    /// Does something with a block that runs; mostly it is the one that the thread had last.
    fn with_block(&self, at: [u32; 3], act: impl FnOnce(&mut Block)) {
        /// A block of a detector, by that one's number and its own coordinates.
        type Last = (u64, [u32; 3], Arc<Mutex<Block>>);
        thread_local! {
            static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
        }
        LAST.with_borrow_mut(|last| {
            if last
                .as_ref()
                .is_none_or(|(number, block, _)| (*number, *block) != (self.number, at))
            {
                let found = self.blocks.read().get(&at).cloned();
                *last = found.map(|block| (self.number, at, block));
            }
            if let Some((.., block)) = last {
                act(&mut block.lock());
            }
        });
    }

    /// The channels that go with those who meet.
    fn channels(&self) -> &'static [usize] {
        match self.options.benign {
            true => &ASYNC,
            false => &[0, 1, 2, ASYNC[0], ASYNC[1]],
        }
    }

    fn site(&self, block: &mut Block, by: &Who<'_>) -> u32 {
        let key = (std::ptr::from_ref(by.function) as usize, by.span.start);
        *block.sites.entry(key).or_insert_with(|| {
            let mut sites = self.sites.lock();
            let next = sites.all.len() as u32;
            let number = *sites.numbers.entry(key).or_insert(next);
            if number == next {
                sites.all.push((key.0, by.span));
            }
            number
        })
    }

    fn cluster_of(&self, at: [u32; 3]) -> u32 {
        let shape = self.launch.cluster.unwrap_or([1; 3]);
        let all: [u32; 3] = std::array::from_fn(|axis| self.launch.grid[axis].div_ceil(shape[axis]));
        let own: [u32; 3] = std::array::from_fn(|axis| at[axis] / shape[axis]);
        (own[2] * all[1] + own[1]) * all[0] + own[0]
    }

    /// Drops what no word of the shadow refers to.
    fn tidy(&self) {
        let mut book = self.book.write();
        let book = &mut *book;
        if !book.is_full() {
            return;
        }
        book.generation += 1;
        let shadow = &mut book.shadow;
        book.ledger.compact(|change| shadow.cells(change));
        book.kept = book.ledger.len();
    }

    fn ended(&self) {
        let found = std::mem::take(&mut *self.found.lock());
        let begun = self.begun.lock();
        let sites = self.sites.lock();
        let lost = self.lost.load(Relaxed::Relaxed);
        if lost > 0 {
            tracing::warn!(
                "the race checker had no room for {lost} accesses of a kernel: races with those are not found"
            );
        }
        for race in report::races(found, &self.launch, &begun, &sites.all) {
            (self.listener)(race);
        }
    }
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros() as usize;
        rest &= rest.wrapping_sub(1);
        (lane < WARP).then_some(lane)
    })
}

impl Observer for Detector {
    fn access(&self, by: &Who<'_>, access: &Access<'_>) {
        if matches!(access.space, Space::Local | Space::Param | Space::Const) {
            return;
        }
        if let Some(plain) = &self.plain {
            return self.accessed_plain(plain, by, access);
        }
        let mut is_full = false;
        self.with_block(by.block, |block| {
            let book = self.book.read();
            self.accessed(block, &book, by, access);
            is_full = book.is_full();
        });
        if is_full {
            self.tidy();
        }
    }

    fn rows(&self, by: &Who<'_>, rows: &RowAccess<'_>) {
        match &self.plain {
            _ if matches!(rows.space, Space::Local | Space::Param | Space::Const) => {}
            Some(plain) => self.rows_plain(plain, by, rows),
            None => (0..rows.warps).for_each(|warp| rows.of_warp(warp, |access| self.access(by, access))),
        }
    }

    fn has_read(&self, by: &Who<'_>, access: &Access<'_>) {
        let is_private = matches!(access.space, Space::Local | Space::Param | Space::Const);
        if is_private || self.plain.is_some() {
            return;
        }
        let Some(reach) = Kind::of(access).strong else { return };
        self.with_block(by.block, |block| {
            let warp = by.first_thread as usize / WARP + access.warp;
            if let Some(atomic) = access.atomic.filter(|atomic| atomic.is_swap) {
                self.swapped(block, &self.book.read(), warp, access, atomic);
            }
            self.acquire(block, warp, access, reach);
            // Atomics are known to have read what was there.
            if access.direction == Direction::Read {
                let observed = self.observe(block, &self.book.read(), warp, access);
                strong::learn_of_writes(block, warp, observed);
            }
        });
    }

    fn synchronise(&self, by: &Who<'_>, event: &SyncEvent) {
        match &self.plain {
            Some(plain) => self.with_plain(plain, by.block, |block| self.synchronised_plain(block, by, event)),
            None => self.with_block(by.block, |block| self.synchronised(block, by, event)),
        }
    }

    fn grid(&self, _: u64, event: &GridEvent) {
        match event {
            GridEvent::Block {
                block,
                shared,
                local,
                local_stride: _,
            } => {
                let number = {
                    let mut begun = self.begun.lock();
                    begun.push(*block);
                    begun.len() as u32 - 1
                };
                if let Some(plain) = &self.plain {
                    return plain.begin(self.place(*block), number, *shared, *local);
                }
                let (start, bytes) = *shared;
                self.book.read().shadow.forget(start, bytes);
                if bytes > 0 {
                    self.flags.lock().forget(start, start + bytes);
                    self.mbarriers.lock().forget(start, start + bytes);
                }
                self.windows.lock().insert(number, *shared);
                let threads = self.launch.block.iter().product();
                let new = Block::new(number, self.cluster_of(*block), threads, *local);
                self.blocks.write().insert(*block, Arc::new(Mutex::new(new)));
            }
            GridEvent::Release { block, barrier } => {
                if let Some(plain) = &self.plain {
                    return self.with_plain(plain, *block, plain::Block::released);
                }
                self.with_block(*block, |block| {
                    let Some(gathering) = block.barriers.remove(barrier) else {
                        return;
                    };
                    let (met, waiting) = gathering.meet();
                    for (warp, lanes) in waiting {
                        block.learn(warp, lanes, &met, self.channels());
                    }
                });
            }
            GridEvent::ClusterRelease { first, .. } => {
                let mut clusters = self.clusters.lock();
                let (gathering, known) = clusters.entry(self.cluster_of(*first)).or_default();
                (*known, _) = std::mem::take(gathering).meet();
            }
            GridEvent::BlockEnd { block } => {
                if let Some(plain) = &self.plain {
                    return plain.end(self.place(*block));
                }
                if let Some(block) = self.blocks.write().remove(block) {
                    self.windows.lock().remove(&block.lock().number);
                }
            }
            GridEvent::End => self.ended(),
            GridEvent::Launch | GridEvent::Complete { .. } | GridEvent::Left { .. } | GridEvent::Transfer { .. } => {}
        }
    }

    fn heap(&self, _: &Who<'_>, event: &HeapEvent) {
        match event {
            // The heap itself orders who had it before and who has it now.
            HeapEvent::Allocate { address, bytes, .. } => match &self.plain {
                Some(plain) => plain.forget(*address, *bytes),
                None => self.book.read().shadow.forget(*address, *bytes),
            },
            HeapEvent::Free { .. } => {}
        }
    }
}
