//! What the checker does with what it is told of a plain kernel.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::{Mutex, RwLock};

use crate::isa::lanes::WARP;
use crate::program::{CopyGroup, Space};
use crate::ptx::ast::Span;
use crate::sanitizer::spread::Spread;
use crate::simt::observe::{Access, RowAccess, SyncEvent, Who};

use super::super::ledger::{Kind, Swap};
use super::super::{Detector, MANY};
use super::block::{Block, Entry};
use super::cell::Layout;
use super::look::{Looker, Told};
use super::reads::Reads;
use super::runs::{OfRows, OfWarp, Runs};
use super::shadow::{Settled, Shadow};

/// A block that runs, or that has run and makes room for another.
type Shared = Arc<Mutex<Block>>;

/// What is kept of a plain grid.
pub struct Plain {
    layout: Layout,
    threads: u32,
    /// Those that run, by their place in the grid.
    blocks: RwLock<HashMap<u64, Shared, BuildHasherDefault<Spread>>>,
    spare: Mutex<Vec<Shared>>,
    /// Shared with all who look something up; alone with who drops what nobody needs.
    book: RwLock<Book>,
}

/// Accesses to memory that blocks have in common.
struct Book {
    entries: boxcar::Vec<Entry>,
    shadow: Shadow,
    /// What was left of the entries when they were last gone through.
    kept: usize,
    /// How often that was: entries are numbered anew.
    generation: u32,
}

impl Book {
    /// It is time to drop what nobody needs. Where nearly all are needed, it is not worth it.
    fn is_full(&self, layout: Layout) -> bool {
        let most = layout.most_entries();
        self.entries.count()
            >= (2 * self.kept)
                .max(MANY)
                .min(most - most / 16)
                .max(self.kept + most / 16)
    }
}

impl Plain {
    pub fn new(threads: u32) -> Plain {
        Plain {
            layout: Layout::of(threads),
            threads,
            blocks: RwLock::default(),
            spare: Mutex::default(),
            book: RwLock::new(Book {
                entries: boxcar::Vec::new(),
                shadow: Shadow::new(),
                kept: 0,
                generation: 0,
            }),
        }
    }

    /// A block begins.
    pub fn begin(&self, at: u64, number: u32, shared: (u64, u64), local: (u64, u64)) {
        let spare = self.spare.lock().pop();
        let block = spare.unwrap_or_else(|| Arc::new(Mutex::new(Block::new())));
        block.lock().begin(number, self.threads, shared, local);
        self.blocks.write().insert(at, block);
    }

    pub fn end(&self, at: u64) {
        let block = self.blocks.write().remove(&at);
        self.spare.lock().extend(block);
    }

    /// Nothing is known of a range any more.
    pub fn forget(&self, address: u64, bytes: u64) {
        self.book.read().shadow.forget(address, bytes);
    }

    /// Drops entries that no word refers to.
    #[cold]
    fn tidy(&self) {
        let mut book = self.book.write();
        let book = &mut *book;
        if !book.is_full(self.layout) {
            return;
        }
        book.generation += 1;
        let old = std::mem::take(&mut book.entries);
        let mut moved: Vec<Option<u32>> = vec![None; old.count()];
        let new = &book.entries;
        book.shadow.renumber(self.layout, |entry| {
            *moved[entry as usize].get_or_insert_with(|| new.push(old[entry as usize]) as u32)
        });
        book.kept = new.count();
    }
}

impl Detector {
    /// Does something with a block that runs; mostly it is the one that the thread had last.
    pub fn with_plain(&self, plain: &Plain, at: [u32; 3], act: impl FnOnce(&mut Block)) {
        /// A block of a detector, by that one's number and its own place.
        type Last = (u64, u64, Shared);
        thread_local! {
            static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
        }
        let at = self.place(at);
        LAST.with_borrow_mut(|last| {
            if last
                .as_ref()
                .is_none_or(|(number, block, _)| (*number, *block) != (self.number, at))
            {
                let found = plain.blocks.read().get(&at).cloned();
                *last = found.map(|block| (self.number, at, block));
            }
            if let Some((.., block)) = last {
                act(&mut block.lock());
            }
        });
    }

    /// A block's place in the grid.
    pub fn place(&self, [x, y, z]: [u32; 3]) -> u64 {
        let [width, height, _] = self.launch.grid.map(u64::from);
        (u64::from(z) * height + u64::from(y)) * width + u64::from(x)
    }

    pub fn accessed_plain(&self, plain: &Plain, by: &Who<'_>, access: &Access<'_>) {
        let warp = by.first_thread as usize / WARP + access.warp;
        let kind = Kind::of(access);
        let is_full = self.on_plain(plain, by, (kind, access.space), |on| {
            let operation = access.operation.and_then(|number| on.block.operations.find(number));
            let first = (warp * WARP) as u32;
            let is_plain = access.operation.is_none() && !kind.asynchronous;
            if is_plain && on.puts_off(warp, |reads, entry| reads.lanes((entry, first), access)) {
                return;
            }
            let runs = OfWarp {
                access,
                first,
                is_read: !kind.writes(),
                rest: access.lanes,
            };
            on.touch(Told::Lanes(access), (warp, operation), runs);
        });
        if is_full {
            plain.tidy();
        }
    }

    pub fn rows_plain(&self, plain: &Plain, by: &Who<'_>, rows: &RowAccess<'_>) {
        let first = by.first_thread as usize / WARP + rows.warp;
        let kind = Kind {
            direction: rows.direction,
            strong: None,
            asynchronous: false,
            element: 0,
            swap: Swap::No,
        };
        let is_full = self.on_plain(plain, by, (kind, rows.space), |on| {
            if !kind.writes() && !on.is_shared && on.are_settled(rows) {
                return;
            }
            let told = Told::Rows(rows, first);
            let steps = |warp: &usize| on.block.warps[*warp].step;
            let are_one = (first..first + rows.warps).all(|warp| steps(&warp) == steps(&first));
            if are_one && on.puts_off(first, |reads, entry| reads.rows((entry, (first * WARP) as u32), rows)) {
                return;
            }
            // Entries are of warps that are in the same step.
            let warps = if are_one { rows.warps } else { 1 };
            for warp in (0..rows.warps).step_by(warps) {
                let lanes = warp * WARP..(warp + warps) * WARP;
                let runs = OfRows {
                    rows,
                    first: (first * WARP) as u32,
                    lanes,
                };
                on.touch(told, (first + warp, None), runs);
            }
        });
        if is_full {
            plain.tidy();
        }
    }

    /// Whether there are so many entries that it is time to drop some.
    #[inline(always)]
    fn on_plain(
        &self,
        plain: &Plain,
        by: &Who<'_>,
        (kind, space): (Kind, Space),
        act: impl FnOnce(&mut On<'_>),
    ) -> bool {
        let mut is_full = false;
        self.with_plain(plain, by.block, |block| {
            let mut on = On {
                detector: self,
                plain,
                block,
                by,
                kind,
                is_shared: space == Space::Shared,
                is_full: false,
            };
            act(&mut on);
            is_full = on.is_full;
        });
        is_full
    }

    pub fn synchronised_plain(&self, block: &mut Block, by: &Who<'_>, event: &SyncEvent) {
        let first = by.first_thread as usize / WARP;
        match event {
            SyncEvent::Arrive { lanes, .. } => {
                for (i, _) in lanes.iter().enumerate().filter(|(_, mask)| **mask != 0) {
                    block.warps[first + i].step += 1;
                }
            }
            SyncEvent::Warp { warp, .. } => block.meet(first + warp),
            SyncEvent::Collective { warp, .. } => {
                if !self.options.benign {
                    block.meet(first + warp);
                }
            }
            SyncEvent::Together { lanes, is_barrier } => {
                if *is_barrier || !self.options.benign {
                    for (i, _) in lanes.iter().enumerate().filter(|(_, mask)| **mask != 0) {
                        block.meet(first + i);
                    }
                }
            }
            SyncEvent::Copies { lanes, group } => {
                for (i, mask) in lanes.iter().enumerate().filter(|(_, mask)| **mask != 0) {
                    match group {
                        CopyGroup::Commit => block.commit(first + i, *mask),
                        CopyGroup::Wait(but) => block.wait(first + i, *mask, Some(*but)),
                        CopyGroup::WaitAll => block.wait(first + i, *mask, None),
                    }
                }
            }
            SyncEvent::Begin {
                operation, warp, lanes, ..
            } => block.begin_copy(*operation, first + warp, *lanes),
            // No plain kernel has these but calls of the host, which order nothing.
            SyncEvent::Fence { .. }
            | SyncEvent::BulkCopies { .. }
            | SyncEvent::ClusterArrive { .. }
            | SyncEvent::ClusterWait { .. }
            | SyncEvent::Mbarrier { .. }
            | SyncEvent::Fabric { .. }
            | SyncEvent::HostCall { .. }
            | SyncEvent::Use(_) => {}
        }
    }

    fn number_site(&self, function: usize, span: Span) -> u32 {
        let key = (function, span.start);
        let mut sites = self.sites.lock();
        let next = sites.all.len() as u32;
        let number = *sites.numbers.entry(key).or_insert(next);
        if number == next {
            sites.all.push((key.0, span));
        }
        number
    }
}

/// An instruction that a block carries out.
struct On<'a> {
    detector: &'a Detector,
    plain: &'a Plain,
    block: &'a mut Block,
    by: &'a Who<'a>,
    kind: Kind,
    /// It names shared memory.
    is_shared: bool,
    is_full: bool,
}

impl On<'_> {
    /// Runs of threads, of a warp and such as are in the same step, touch memory.
    #[inline(always)]
    fn touch(&mut self, told: Told<'_>, by: (usize, Option<u32>), mut runs: impl Runs) {
        while let Some(address) = runs.address() {
            if self.is_shared || self.block.shared.contains(&address) {
                self.touch_shared(told, by, &mut runs);
            } else if self.block.local.contains(&address) {
                runs.next();
            } else {
                self.touch_global(told, by, &mut runs);
            }
        }
    }

    /// Whether all that these lanes read was read by others so that they add nothing. Of pages that the block remembers alone.
    #[inline(always)]
    fn are_settled(&self, rows: &RowAccess<'_>) -> bool {
        let bytes = u64::from(rows.bytes);
        let length = match rows.step {
            0 => bytes,
            step if step == bytes => bytes * rows.lanes as u64,
            _ => return false,
        };
        let book = self.plain.book.read();
        let mut last = None;
        rows.firsts.iter().all(|&first| {
            last.replace(first) == Some(first) || book.shadow.is_settled(&self.block.remembered, first, length)
        })
    }

    /// Keeps a read of shared memory by a warp, and such as are in the same step, if nobody has to look at it yet.
    #[inline(always)]
    fn puts_off(&mut self, warp: usize, keep: impl FnOnce(&mut Reads, u32)) -> bool {
        if !self.is_shared || self.kind.writes() || !self.block.may_put_off_reads() {
            return false;
        }
        let (detector, what) = (self.detector, (self.by.function, self.by.span, self.kind));
        let site = || detector.number_site(std::ptr::from_ref(self.by.function) as usize, self.by.span);
        let own = self.block.entry(what, (warp, None), (true, 0), site, |_| None);
        let Some((entry, _)) = own else { return false };
        keep(&mut self.block.reads, entry);
        true
    }

    /// Looks at reads that were put off.
    #[cold]
    #[inline(never)]
    fn look_at_reads(&mut self) {
        let (detector, block, layout) = (self.detector, &mut *self.block, self.plain.layout);
        let mut reads = std::mem::take(&mut block.reads);
        block.impatient = 16;
        let shared = block.shared.clone();
        reads.each(&mut |number, runs| {
            let own = block.entries[number as usize];
            let since = (block.number, block.epoch, block.generation);
            let mut looker = Looker::new(
                (detector, layout),
                &block.entries[..],
                &block.warps,
                &block.operations,
                (number, own),
                (block.epoch, block.met),
                Told::Past,
                Some(shared.start),
                block.memories.of((own.kind, false), None, since),
            );
            while let Some(run) = runs.next() {
                looker.is_told = true;
                let end = (run.address + run.bytes).min(shared.end);
                looker.run(&mut block.window, block.stamp, shared.start, &run, (run.address, end));
                if looker.is_told {
                    runs.skip(&run);
                }
            }
        });
        reads.clear();
        block.reads = reads;
    }

    #[inline(always)]
    fn touch_shared(&mut self, told: Told<'_>, (warp, operation): (usize, Option<u32>), runs: &mut impl Runs) {
        if !self.block.reads.is_empty() {
            self.look_at_reads();
        }
        let (detector, block, layout, kind) = (self.detector, &mut *self.block, self.plain.layout, self.kind);
        block.is_quiet = false;
        let site = || detector.number_site(std::ptr::from_ref(self.by.function) as usize, self.by.span);
        let what = (self.by.function, self.by.span, self.kind);
        let own = match block.tidy(layout) {
            true => block.entry(what, (warp, operation), (true, 0), site, |_| None),
            false => None,
        };
        let shared = block.shared.clone();
        let is_shared = self.is_shared;
        let is_here = |address: u64| is_shared || shared.contains(&address);
        let Some(own) = own else {
            while runs.next_if(is_here).is_some() {
                detector.lost.fetch_add(1, Relaxed);
            }
            return;
        };
        let mut looker = Looker::new(
            (detector, layout),
            &block.entries[..],
            &block.warps,
            &block.operations,
            own,
            (block.epoch, block.met),
            told,
            Some(shared.start),
            block
                .memories
                .of((kind, false), operation, (block.number, block.epoch, block.generation)),
        );
        while let Some(run) = runs.next_if(is_here) {
            // A vector may reach beyond what the block has (a load whose last part is not needed).
            let end = (run.address + run.bytes).min(shared.end);
            looker.is_told = !kind.writes();
            looker.run(&mut block.window, block.stamp, shared.start, &run, (run.address, end));
            if looker.is_told {
                runs.skip(&run);
            }
        }
    }

    #[inline(always)]
    fn touch_global(&mut self, told: Told<'_>, (warp, operation): (usize, Option<u32>), runs: &mut impl Runs) {
        let (detector, block, layout, kind) = (self.detector, &mut *self.block, self.plain.layout, self.kind);
        let book = self.plain.book.read();
        let site = || detector.number_site(std::ptr::from_ref(self.by.function) as usize, self.by.span);
        let what = (self.by.function, self.by.span, self.kind);
        let mut is_full = false;
        let own = block.entry(what, (warp, operation), (false, book.generation), site, |entry| {
            is_full = book.is_full(layout);
            // Others may be adding at the same time.
            let has_room = book.entries.count() + 1024 < layout.most_entries();
            has_room.then(|| book.entries.push(entry) as u32)
        });
        self.is_full |= is_full;
        let (shared, local) = (block.shared.clone(), block.local.clone());
        let is_here = |address: u64| !shared.contains(&address) && !local.contains(&address);
        let Some(own) = own else {
            while runs.next_if(is_here).is_some() {
                detector.lost.fetch_add(1, Relaxed);
            }
            return;
        };
        let mut looker = Looker::new(
            (detector, layout),
            &book.entries,
            &block.warps,
            &block.operations,
            own,
            (block.epoch, block.met),
            told,
            None,
            block
                .memories
                .of((kind, true), operation, (block.number, block.epoch, book.generation)),
        );
        let mut cursor = book.shadow.cursor(&mut block.remembered);
        while let Some(run) = runs.next_if(is_here) {
            let mut are_told = true;
            let were_settled = cursor.pages((run.address, run.bytes), kind.writes(), |table, stamp, base, part| {
                (looker.is_told, looker.is_settled) = (!kind.writes(), !kind.writes());
                looker.run(table, stamp, base, &run, part);
                are_told &= looker.is_told;
                match looker.is_settled {
                    true => Settled::Yes,
                    false => Settled::No,
                }
            });
            looker.is_told = are_told | were_settled;
            if looker.is_told {
                runs.skip(&run);
            }
        }
    }
}

impl Block {
    /// All lanes of a warp meet.
    fn meet(&mut self, warp: usize) {
        let warp = &mut self.warps[warp];
        warp.met = warp.step;
        warp.step += 1;
        self.met = self.met.max(warp.met);
    }
}
