//! Finds races: accesses of two threads to the same bytes, at least one a write, in no order by PTX's memory model (PTX ISA,
//! Memory Consistency Model) and not both strong for each other.
//!
//! Each thread has a vector clock ([`clock`]), each word of memory that the grid has touched knows who wrote it last and who has
//! read it since ([`shadow`], [`ledger`]). Threads learn of each other at barriers ([`block`]) and by flags and mbarriers
//! ([`flags`]). Whether two accesses are in order follows from that alone: what the schedule was does not matter, but for the
//! values that a program happened to read.

mod block;
mod clock;
mod flags;
mod guess;
mod ledger;
mod plain;
mod report;
mod shadow;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Relaxed};

use parking_lot::{Mutex, RwLock};

use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::program::{CopyGroup, Ordering, Proxy, Scope, Space};
use crate::ptx::ast::Span;
use crate::simt::Launch;
use crate::simt::observe::{
    Access, Completes, Direction, GridEvent, HeapEvent, MbarrierEvent, Observer, SyncEvent, Who,
};

use block::{ASYNC, Block, CHANNELS, Gathering, Met, Warp};
use clock::{Clock, Knowledge, Step, Writers};
use flags::{Flags, For, Mbarriers, Message};
use ledger::{Cell, Entry, Keep, Kind, Ledger, Others, Reach, View};
use plain::Looker;
pub use report::{Missing, Party, Place, Race};
use shadow::{Shadow, Touched};

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
    /// Threads meet as whole blocks and whole warps alone.
    is_plain: bool,
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

/// Lanes of a warp that do something, as an access finds them.
struct Actor<'a> {
    block: &'a Block,
    warp: usize,
    entry: u32,
    kind: Kind,
    operation: Option<u32>,
    /// The channel by which fences of the asynchronous proxy tell of this kind of memory.
    proxy: usize,
}

impl Detector {
    pub fn new(launch: &Arc<Launch>, options: Options, listener: Arc<Listener>) -> Detector {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Detector {
            launch: Arc::clone(launch),
            options,
            listener,
            is_plain: plain::is_plain(launch),
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

    /// Lanes that read flags learn what was left there for them.
    fn acquire(&self, block: &mut Block, warp: usize, access: &Access<'_>, reach: Reach) {
        let flags = self.flags.lock();
        if flags.is_empty() {
            return;
        }
        let acquires = matches!(access.ordering, Ordering::Acquire | Ordering::AcqRel | Ordering::Sc);
        let at_once = acquires || !self.options.benign;
        let own = (block.number, block.cluster);
        let there = block.warps[warp].there;
        for (address, some) in by_address(access) {
            let Some(version) = flags.version(address) else {
                continue;
            };
            // Who waits reads the same again and again.
            let read = (address, version, acquires, reach);
            if lanes(some).all(|lane| block.warps[warp].read[lane] == read) {
                continue;
            }
            lanes(some).for_each(|lane| block.warps[warp].read[lane] = read);
            flags.read(address, reach, own, |whom, message| {
                block.warps[warp].lanes.change(some, there, |state| {
                    // Who is farther away has to be met by a fence that reaches him.
                    if at_once && whom <= reach {
                        state.seen.join(&message.clock);
                    } else {
                        state.unfenced[whom as usize].join(&message.clock);
                    }
                    state.learn_of_proxy(message);
                });
            });
        }
    }

    /// Lanes read words: writes that they find there, as strong as their reads, lie before what they do from now on.
    fn observe(&self, block: &mut Block, book: &Book, warp: usize, access: &Access<'_>) {
        let kind = Kind::of(access);
        let mut cursor = book.shadow.cursor();
        for (address, some) in by_address(access) {
            cursor.each(address, access.bytes.into(), |known, at, _| {
                let mut writers = Writers::default();
                for (number, lanes) in self.found_by(block, kind, &book.ledger, known.writes) {
                    let entry = book.ledger.entry(number);
                    let is_hidden = kind.direction == Direction::Atomic && entry.kind.is_hidden_by(kind);
                    if !is_hidden {
                        writers.join(&Writers(vec![entry.writer(lanes)]));
                    }
                }
                let own = &mut block.warps[warp];
                let is_new = |lane| {
                    let known = own.lanes.get(lane).seen.writes.get(at);
                    !known.is_some_and(|known| known.covers(&writers))
                };
                if !writers.0.is_empty() && lanes(some).any(is_new) {
                    let there = own.there;
                    own.lanes
                        .change(some, there, |state| state.seen.writes.insert(at, writers.clone()));
                }
            });
        }
    }

    /// What an access of this kind finds written: the last write, and if that was an atomic the one before, and so on.
    fn found_by(&self, block: &Block, kind: Kind, ledger: &Ledger, writes: Cell) -> Vec<(u32, u32)> {
        let mut members = Vec::new();
        ledger.each(writes, |member| members.push(member));
        let mut goes_on = true;
        let found = members.into_iter().rev().take_while(|(number, _)| {
            let entry = ledger.entry(*number);
            let is_found = goes_on && entry.operation.is_none() && self.are_strong_for_each_other(block, entry, kind);
            goes_on = entry.kind.direction == Direction::Atomic;
            is_found
        });
        found.collect()
    }

    /// How near a block is to who made an entry.
    fn reach(&self, block: &Block, entry: &Entry) -> Reach {
        match () {
            () if entry.block == block.number => Reach::Block,
            () if entry.cluster == block.cluster && self.launch.cluster.is_some() => Reach::Cluster,
            () => Reach::Device,
        }
    }

    /// Whether an entry and an access of this kind by a block are morally strong (PTX ISA, Memory Consistency Model).
    fn are_strong_for_each_other(&self, block: &Block, entry: &Entry, kind: Kind) -> bool {
        let reach = Some(self.reach(block, entry));
        entry.kind.strong >= reach && kind.strong >= reach && entry.kind.element == kind.element
    }

    /// What a strong write of a lane lets others know.
    fn messages(
        &self,
        block: &Block,
        warp: usize,
        lane: usize,
        ordering: Ordering,
        reach: Reach,
    ) -> Vec<(For, Message)> {
        let at = (block.number, warp);
        let own = &block.warps[warp];
        let releases = matches!(ordering, Ordering::Release | Ordering::AcqRel | Ordering::Sc);
        let mut messages = Vec::new();
        for (channel, whom) in Reach::ALL.into_iter().enumerate() {
            let number = whom.number((block.number, block.cluster));
            let has_fence = !own.lanes.get(lane).channels[channel].is_empty();
            let clock = match () {
                () if releases && whom <= reach => own.known_by(at, lane),
                // The fence may reach farther than the write, and another's write may carry it there.
                () if has_fence => own.fenced_by(at, lane, channel),
                () => continue,
            };
            let asynchronous = own.proxy_fenced_by(at, lane);
            messages.push(((whom, number), Message { clock, asynchronous }));
        }
        messages
    }

    /// Lanes are about to write words by strong accesses, from which others may learn.
    fn release(&self, block: &mut Block, warp: usize, access: &Access<'_>, reach: Reach) {
        let mut any = false;
        let goes_on = access.direction == Direction::Atomic;
        for lane in lanes(access.lanes) {
            let messages = self.messages(block, warp, lane, access.ordering, reach);
            let by = ((block.number, warp, lane), block.cluster);
            let told = (reach, reach.number((block.number, block.cluster)));
            any |= self
                .flags
                .lock()
                .written(access.addresses[lane], by, told, goes_on, messages);
        }
        if any {
            block.warps[warp].next_step();
        }
    }

    /// Looks at lanes that touch one word, or part of one, and notes that they have.
    fn touch(
        &self,
        actor: &Actor<'_>,
        ledger: &Ledger,
        lanes: u32,
        at: (u64, usize),
        known: &mut Touched,
        access: &Access<'_>,
    ) {
        let own = ledger.cell((actor.entry, lanes));
        let writes = actor.kind.writes();
        if match writes {
            // Nobody has come since.
            true => known.writes == own && known.reads[0].is_empty(),
            false => known.reads[0] == own,
        } {
            return;
        }
        self.compare(actor, ledger, lanes, at, known.writes, access);
        if writes {
            self.compare(actor, ledger, lanes, at, known.reads[0], access);
        }
        let keep = |(entry, theirs): (u32, u32)| {
            let entry = ledger.entry(entry);
            match () {
                () if self.unordered(actor, ledger, entry, (theirs, lanes), at.0).is_some() => Keep::Unordered,
                () if entry.kind.strong < actor.kind.strong => Keep::Weaker,
                () => Keep::No,
            }
        };
        let found = match actor.kind.direction {
            Direction::Atomic => self.found_by(actor.block, actor.kind, ledger, known.writes),
            Direction::Read | Direction::Write => Vec::new(),
        };
        // They lie before whatever follows the atomic.
        let is_hidden =
            |member: (u32, u32)| found.contains(&member) && ledger.entry(member.0).kind.is_hidden_by(actor.kind);
        // Who has only read what is written now need not know of what lies before it.
        let keep_write = |member: (u32, u32)| {
            let are_strong = ledger.entry(member.0).kind.strong.is_some() && actor.kind.strong.is_some();
            match keep(member) {
                _ if is_hidden(member) => Keep::No,
                Keep::No if are_strong => Keep::Weaker,
                keep => keep,
            }
        };
        let more = (actor.entry, lanes);
        match writes {
            false => known.reads[0] = ledger.with(known.reads[0], more, keep),
            true => {
                known.writes = match known.writes.is_empty() {
                    true => own,
                    false => ledger.behind(known.writes, more, keep_write),
                };
                known.reads[0] = ledger.only(known.reads[0], keep);
            }
        }
    }

    /// A lane of an entry's and one of the actor's that are in no order.
    fn unordered(
        &self,
        actor: &Actor<'_>,
        ledger: &Ledger,
        entry: &Entry,
        (theirs, mine): (u32, u32),
        address: u64,
    ) -> Option<(usize, usize, bool)> {
        if entry.operation.is_some() && entry.operation == actor.operation {
            return None;
        }
        let own = &actor.block.warps[actor.warp];
        let is_own_warp = (entry.block, entry.warp) == (actor.block.number, actor.warp as u32);
        // An asynchronous operation sees generic writes behind a proxy fence alone (PTX ISA, Proxies).
        let needs_fence = actor.kind.asynchronous && !entry.kind.asynchronous && entry.kind.writes();
        let mut last: Option<&Clock> = None;
        for lane in lanes(mine) {
            let clock = &own.lanes.get(lane).seen;
            // Who knows the same is in order with the same, but for lanes of one warp.
            if !is_own_warp && !needs_fence && last.is_some_and(|last| last.is_same(clock)) {
                continue;
            }
            last = Some(clock);
            let among = |of: usize| own.among.get(lane, of);
            let view = View {
                block: actor.block.number,
                warp: actor.warp as u32,
                lane,
                clock,
                among: &among,
                own: true,
            };
            let has_read =
                |their: usize| entry.kind.strong.is_some() && clock.has_read(address, &entry.writer(1 << their));
            let missing = lanes(theirs).find(|their| !view.is_after(ledger, entry, *their) && !has_read(*their));
            if let Some(their) = missing {
                return Some((their, lane, false));
            }
            if needs_fence {
                let fenced = own.fenced_by((actor.block.number, actor.warp), lane, actor.proxy);
                let view = View {
                    clock: &fenced,
                    among: &|_| 0,
                    own: false,
                    ..view
                };
                if let Some(their) = lanes(theirs).find(|their| !view.is_after(ledger, entry, *their)) {
                    return Some((their, lane, true));
                }
            }
        }
        None
    }

    /// Notes races between what a cell knows and the actor.
    fn compare(
        &self,
        actor: &Actor<'_>,
        ledger: &Ledger,
        mine: u32,
        at: (u64, usize),
        cell: Cell,
        access: &Access<'_>,
    ) {
        ledger.each(cell, |(number, theirs)| {
            let entry = ledger.entry(number);
            if let Some((their, lane, lacks_fence)) = self.unordered(actor, ledger, entry, (theirs, mine), at.0) {
                self.judge(actor, ledger, at, (number, Some(their)), lane, access, lacks_fence);
            }
        });
    }

    /// Two accesses are in no order: notes a race, if they are one. Whether they would be, were it not forgiven.
    #[allow(
        clippy::too_many_arguments,
        reason = "both accesses, and what is known of each: it is at hand here and nowhere together before"
    )]
    fn judge(
        &self,
        actor: &Actor<'_>,
        ledger: &Ledger,
        at: (u64, usize),
        (number, their): (u32, Option<usize>),
        lane: usize,
        access: &Access<'_>,
        lacks_fence: bool,
    ) -> bool {
        let entry = ledger.entry(number);
        if !entry.kind.writes() && !actor.kind.writes() {
            return false;
        }
        if self.are_strong_for_each_other(actor.block, entry, actor.kind) {
            return false;
        }
        let reach = self.reach(actor.block, entry);
        let is_same_warp = reach == Reach::Block && entry.warp == actor.warp as u32;
        let missing = match () {
            () if lacks_fence => Missing::ProxyFence,
            () if self.is_guess(entry.site, entry.kind, actor.kind)
                || self.is_guess(ledger.entry(actor.entry).site, actor.kind, entry.kind) =>
            {
                Missing::Guess
            }
            () if self.is_same_value(number == actor.entry, their, lane, at, entry, access) => Missing::SameValue,
            () if entry.kind.strong.is_some() && actor.kind.strong.is_some() => {
                match entry.kind.element == actor.kind.element {
                    true => Missing::Scope,
                    false => Missing::Size,
                }
            }
            () if entry.operation.is_some() => Missing::Completion,
            () if is_same_warp => Missing::Warp,
            () => match reach {
                Reach::Block => Missing::Barrier,
                Reach::Cluster => Missing::Cluster,
                Reach::Device => Missing::Device,
            },
        };
        if matches!(missing, Missing::SameValue | Missing::Guess) && !self.options.benign {
            return true;
        }
        let other = report::Side {
            site: entry.site,
            kind: entry.kind,
            block: entry.block,
            thread: their.map(|their| entry.warp * WARP as u32 + their as u32),
            operation: entry.operation.is_some(),
        };
        let own = report::Side {
            site: ledger.entry(actor.entry).site,
            kind: actor.kind,
            block: actor.block.number,
            thread: Some((actor.warp * WARP + lane) as u32),
            operation: actor.operation.is_some(),
        };
        self.note(other, own, at, missing);
        false
    }

    /// Whether an access only guesses what an atomic by others, the second, has left there.
    fn is_guess(&self, site: u32, kind: Kind, other: Kind) -> bool {
        if kind.writes() || kind.strong.is_some() || other.direction != Direction::Atomic {
            return false;
        }
        let mut sites = self.sites.lock();
        let (at, span) = sites.all[site as usize];
        *sites.guesses.entry(site).or_insert_with(|| {
            let lowered = self.launch.code.module.functions.iter();
            let lowered = lowered.filter_map(|entry| entry.lowered.get()?.as_ref().ok());
            let mut own = lowered.filter(|function| Arc::as_ptr(function) as usize == at);
            own.next().is_some_and(|function| guess::is_guess(function, span))
        })
    }

    /// Whether two stores that race store the same.
    fn is_same_value(
        &self,
        is_one_entry: bool,
        their: Option<usize>,
        lane: usize,
        (address, bytes): (u64, usize),
        entry: &Entry,
        access: &Access<'_>,
    ) -> bool {
        // What an asynchronous operation writes may not be there yet.
        let is_store = entry.kind.direction == Direction::Write && entry.operation.is_none();
        let Some(stored) = access.stored.filter(|_| is_store) else {
            return false;
        };
        let size = access.bytes as usize;
        let value = |of: usize| {
            let mut all = [0u8; 64];
            stored(of, &mut all[..size]);
            let offset = address.wrapping_sub(access.addresses[of]) as usize;
            all.get(offset..offset + bytes).map(<[u8]>::to_vec)
        };
        let Some(own) = value(lane) else { return false };
        let touches = |of: usize| address.wrapping_sub(access.addresses[of]) < u64::from(access.bytes);
        let is_now = |their: &usize| is_one_entry && access.lanes >> their & 1 == 1 && touches(*their);
        if let Some(their) = their.filter(is_now) {
            // Both store in this instruction.
            return value(their) == Some(own);
        }
        // What the other has stored is still there, unless a third has come, who then has a race of his own.
        // SAFETY: the access was checked, so the bytes are the kernel's, and it runs.
        let there = unsafe { std::slice::from_raw_parts(address as *const u8, bytes) };
        there == own
    }

    fn note(&self, first: report::Side, second: report::Side, at: (u64, usize), missing: Missing) {
        let shared = self.windows.lock().iter().find_map(|(block, (start, bytes))| {
            let offset = at.0.wrapping_sub(*start);
            (offset < *bytes).then_some((*block, offset))
        });
        let key = report::Key::of(&first, &second, missing);
        let mut found = self.found.lock();
        let times = &mut found
            .entry(key)
            .or_insert_with(|| report::Found {
                first,
                second,
                address: at.0,
                bytes: at.1 as u32,
                shared,
                times: 0,
            })
            .times;
        *times += 1;
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

    fn cluster_arrives(&self, block: &mut Block, first: usize, masks: &[u32; MAX_WARPS], relaxed: bool) {
        let mut clusters = self.clusters.lock();
        let (gathering, _) = clusters.entry(block.cluster).or_default();
        for (warp, mask) in warps(first, masks, block) {
            let at = (block.number, warp);
            match relaxed {
                true => gathering.come_relaxed(at, &block.warps[warp], mask, Reach::Cluster as usize),
                false => gathering.come(at, &block.warps[warp], mask, self.channels()),
            }
            block.warps[warp].next_step();
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

/// The addresses of an access, with the lanes of each.
fn by_address(access: &Access<'_>) -> Vec<(u64, u32)> {
    let mut all: Vec<(u64, u32)> = Vec::new();
    for lane in lanes(access.lanes) {
        let address = access.addresses[lane];
        match all.iter_mut().find(|(other, _)| *other == address) {
            Some((_, lanes)) => *lanes |= 1 << lane,
            None => all.push((address, 1 << lane)),
        }
    }
    all
}

/// Warps of the block that have lanes in a bundle's masks.
fn warps(first: usize, masks: &[u32; MAX_WARPS], block: &Block) -> Vec<(usize, u32)> {
    let all = masks.iter().enumerate().map(|(i, mask)| (first + i, *mask));
    all.filter(|(warp, mask)| *mask != 0 && *warp < block.warps.len())
        .collect()
}

impl Observer for Detector {
    fn access(&self, by: &Who<'_>, access: &Access<'_>) {
        if matches!(access.space, Space::Local | Space::Param | Space::Const) {
            return;
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

    fn has_read(&self, by: &Who<'_>, access: &Access<'_>) {
        let is_private = matches!(access.space, Space::Local | Space::Param | Space::Const);
        let Some(reach) = Kind::of(access).strong.filter(|_| !is_private && !self.is_plain) else {
            return;
        };
        self.with_block(by.block, |block| {
            let warp = by.first_thread as usize / WARP + access.warp;
            self.acquire(block, warp, access, reach);
            // Atomics are known to have read what was there.
            if access.direction == Direction::Read {
                self.observe(block, &self.book.read(), warp, access);
            }
        });
    }

    fn synchronise(&self, by: &Who<'_>, event: &SyncEvent) {
        self.with_block(by.block, |block| self.synchronised(block, by, event));
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
                self.with_block(*block, |block| {
                    block.epoch += 1;
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
                if let Some(block) = self.blocks.write().remove(block) {
                    self.windows.lock().remove(&block.lock().number);
                }
            }
            GridEvent::End => self.ended(),
            GridEvent::Launch | GridEvent::Complete { .. } | GridEvent::Transfer { .. } => {}
        }
    }

    fn heap(&self, _: &Who<'_>, event: &HeapEvent) {
        match event {
            // The heap itself orders who had it before and who has it now.
            HeapEvent::Allocate { address, bytes, .. } => self.book.read().shadow.forget(*address, *bytes),
            HeapEvent::Free { .. } => {}
        }
    }
}

impl Detector {
    fn accessed(&self, block: &mut Block, book: &Book, by: &Who<'_>, access: &Access<'_>) {
        let ledger = &book.ledger;
        let warp = by.first_thread as usize / WARP + access.warp;
        let kind = Kind::of(access);
        let reach = kind.strong.filter(|_| access.operation.is_none() && !self.is_plain);
        if let Some(reach) = reach
            && access.direction != Direction::Write
        {
            // What it is going to read lies before it.
            self.acquire(block, warp, access, reach);
            if access.direction == Direction::Atomic {
                self.observe(block, book, warp, access);
            }
        }
        let operation = access.operation.and_then(|number| block.warps[warp].operation(number));
        let site = self.site(block, by);
        let (number, cluster, epoch) = (block.number, block.cluster, block.epoch);
        let entry = block.warps[warp].entry((site, kind, operation, book.generation), |step| {
            ledger.enter(Entry {
                block: number,
                cluster,
                warp: warp as u32,
                step,
                epoch,
                site,
                kind,
                operation,
            })
        });
        let Some(entry) = entry else {
            self.lost.fetch_add(1, Relaxed::Relaxed);
            return;
        };
        let actor = Actor {
            block,
            warp,
            entry,
            kind,
            operation,
            proxy: ASYNC[usize::from(access.space == Space::Shared)],
        };
        let mut looker = Looker::new(ledger, block, warp, entry, operation);
        let mut cursor = book.shadow.cursor();
        let bytes = u64::from(access.bytes);
        let first = access.addresses[access.lanes.trailing_zeros() as usize % WARP];
        let is_common = lanes(access.lanes).all(|lane| access.addresses[lane] == first);
        let mut each = |address: u64, some: u32| {
            if actor.block.local.contains(&address) {
                return;
            }
            if self.is_plain
                && let Some(words) = cursor.words(address, bytes)
            {
                for (number, known) in words.iter_mut().enumerate() {
                    self.touch_plain(
                        &actor,
                        &mut looker,
                        some,
                        (address + 4 * number as u64, 4),
                        known,
                        access,
                    );
                }
                return;
            }
            cursor.each(address, bytes, |known, at, size| match self.is_plain {
                true => self.touch_plain(&actor, &mut looker, some, (at, size), known, access),
                false => self.touch(&actor, ledger, some, (at, size), known, access),
            });
        };
        // Stores of one place may be of different values: lane by lane.
        if is_common && !kind.writes() {
            each(first, access.lanes);
        } else {
            lanes(access.lanes).for_each(|lane| each(access.addresses[lane], 1 << lane));
        }
        drop(cursor);
        if let Some(reach) = reach.filter(|_| kind.writes()) {
            self.release(block, warp, access, reach);
        }
    }

    /// As [`Self::touch`], where threads meet as whole blocks and warps alone.
    #[inline]
    fn touch_plain(
        &self,
        actor: &Actor<'_>,
        looker: &mut Looker<'_>,
        lanes: u32,
        at: (u64, usize),
        known: &mut Touched,
        access: &Access<'_>,
    ) {
        let kind = actor.kind;
        let mut is_forgiven = false;
        if !known.writes.is_empty() && !looker.is_after(known.writes, lanes) {
            is_forgiven = self.compare_plain(actor, looker.ledger, lanes, at, known.writes, access);
        }
        if !kind.writes() {
            if kind.strong.is_some() {
                // A weak write may be kept where reads are.
                for cell in known.reads {
                    if !looker.is_after(cell, lanes) {
                        self.compare_plain(actor, looker.ledger, lanes, at, cell, access);
                    }
                }
            }
            return looker.read(known, lanes);
        }
        let mut after_reads = true;
        for cell in known.reads.into_iter().filter(|cell| !cell.is_empty()) {
            if !looker.is_after(cell, lanes) {
                // One that can be named is enough.
                if after_reads || !looker.is_own(cell, lanes) {
                    self.compare_plain(actor, looker.ledger, lanes, at, cell, access);
                }
                after_reads = false;
            }
        }
        let own = Cell::one(actor.entry, lanes.trailing_zeros() as usize, Others::None);
        if kind.strong.is_none() {
            *known = Touched {
                // Whoever reads it is not forgiven for those who wrote it.
                writes: match is_forgiven {
                    true => own.with(looker.others(known.writes, actor.entry)),
                    false => own,
                },
                reads: [Cell::EMPTY; 2],
            };
            return;
        }
        // What was weaker is not forgiven where this is.
        let ledger = looker.ledger;
        let is_weaker = |cell: Cell| {
            let entry = cell.parts().map(|(number, ..)| ledger.entry(number));
            entry.is_some_and(|entry| entry.kind.strong < kind.strong)
        };
        if after_reads {
            let left = known.reads.into_iter().filter(|cell| is_weaker(*cell));
            let mut left = left.chain([Cell::EMPTY; 2]);
            known.reads = std::array::from_fn(|_| left.next().unwrap_or_default());
        }
        let before = known.writes;
        known.writes = match () {
            () if is_weaker(before) => {
                looker.add_read(known, before);
                own
            }
            () if looker.is_after(before, lanes) || self.has_read_plain(actor, ledger, before) => own,
            () => own.with(looker.others(before, actor.entry)),
        };
    }

    /// Whether the actor, by an atomic, has read what a cell says was written, and all that it stands for.
    fn has_read_plain(&self, actor: &Actor<'_>, ledger: &Ledger, cell: Cell) -> bool {
        actor.kind.direction == Direction::Atomic
            && cell.parts().is_some_and(|(number, _, others)| {
                let entry = ledger.entry(number);
                others == Others::None && self.are_strong_for_each_other(actor.block, entry, actor.kind)
            })
    }

    /// A cell and the actor are in no order: notes a race, if it is one. Whether it was forgiven.
    #[cold]
    fn compare_plain(
        &self,
        actor: &Actor<'_>,
        ledger: &Ledger,
        mine: u32,
        at: (u64, usize),
        cell: Cell,
        access: &Access<'_>,
    ) -> bool {
        let Some((number, lane, others)) = cell.parts() else {
            return false;
        };
        let entry = ledger.entry(number);
        let is_here = (entry.block, entry.warp) == (actor.block.number, actor.warp as u32) && entry.operation.is_none();
        let own = lanes(mine).find(|own| !is_here || *own != lane);
        let (their, own) = match own {
            Some(own) => (Some(lane), own),
            // The cell names the actor, who is not alone there.
            None if others != Others::None => (None, mine.trailing_zeros() as usize),
            None => return false,
        };
        self.judge(actor, ledger, at, (number, their), own, access, false)
    }

    fn synchronised(&self, block: &mut Block, by: &Who<'_>, event: &SyncEvent) {
        let book = self.book.read();
        let ledger = &book.ledger;
        let first = by.first_thread as usize / WARP;
        let (number, epoch) = (block.number, block.epoch);
        match event {
            SyncEvent::Arrive { lanes, .. } if self.is_plain => {
                for (warp, _) in warps(first, lanes, block) {
                    block.warps[warp].next_step();
                }
            }
            SyncEvent::Warp { warp, .. } if self.is_plain => block.warps[first + warp].meet(),
            SyncEvent::Collective { warp, .. } if self.is_plain => {
                if !self.options.benign {
                    block.warps[first + warp].meet();
                }
            }
            SyncEvent::Arrive { barrier, lanes, waits } => {
                for (warp, mask) in warps(first, lanes, block) {
                    let gathering = block.barriers.entry(*barrier).or_default();
                    gathering.come((number, warp), &block.warps[warp], mask, self.channels());
                    if *waits {
                        gathering.waits(warp, mask);
                    }
                    block.warps[warp].next_step();
                }
            }
            SyncEvent::Warp { warp, members } => block.meet(first + warp, members, self.channels()),
            SyncEvent::Collective { warp, members } => {
                if !self.options.benign {
                    block.meet(first + warp, members, self.channels());
                }
            }
            SyncEvent::Fence {
                lanes,
                ordering,
                scope,
                proxy,
            } => {
                let reach = Reach::of(*scope);
                let channels = match proxy {
                    Proxy::Generic => 0..reach as usize + 1,
                    Proxy::Async => ASYNC[0]..CHANNELS,
                    Proxy::AsyncGlobal => ASYNC[0]..ASYNC[1],
                    Proxy::AsyncShared => ASYNC[1]..CHANNELS,
                    // Other proxies are not told apart from the generic one.
                    Proxy::Alias | Proxy::Tensormap | Proxy::Texture | Proxy::Surface | Proxy::Fabric => return,
                };
                let is_generic = *proxy == Proxy::Generic;
                for (warp, mask) in warps(first, lanes, block) {
                    let warp = &mut block.warps[warp];
                    if is_generic && *ordering != Ordering::Release {
                        warp.catch_up(mask, reach);
                    }
                    if !is_generic || *ordering != Ordering::Acquire {
                        warp.fence(mask, channels.clone());
                    }
                }
            }
            SyncEvent::Copies { lanes, group } => {
                for (warp, mask) in warps(first, lanes, block) {
                    let warp = &mut block.warps[warp];
                    let now = (warp.step, epoch);
                    match group {
                        CopyGroup::Commit => warp.copies.commit(mask),
                        CopyGroup::Wait(but) => warp.copies.wait(ledger, mask, Some(*but), now, false),
                        CopyGroup::WaitAll => warp.copies.wait(ledger, mask, None, now, false),
                    }
                }
            }
            SyncEvent::BulkCopies { lanes, group, read } => {
                for (warp, mask) in warps(first, lanes, block) {
                    let warp = &mut block.warps[warp];
                    let now = (warp.step, epoch);
                    match group {
                        CopyGroup::Commit => warp.bulk.commit(mask),
                        CopyGroup::Wait(but) => warp.bulk.wait(ledger, mask, Some(*but), now, *read),
                        CopyGroup::WaitAll => warp.bulk.wait(ledger, mask, None, now, *read),
                    }
                }
            }
            SyncEvent::ClusterArrive { lanes, relaxed } => self.cluster_arrives(block, first, lanes, *relaxed),
            SyncEvent::ClusterWait { lanes } => {
                let met = self.clusters.lock().get(&block.cluster).map(|(_, met)| met.clone());
                if let Some(met) = met {
                    for (warp, mask) in warps(first, lanes, block) {
                        let warp = &mut block.warps[warp];
                        let there = warp.there;
                        warp.lanes.change(mask, there, |state| {
                            state.seen.join(&met.clock);
                            for &channel in self.channels() {
                                state.channels[channel].others.join(&met.channels[channel]);
                            }
                        });
                    }
                }
            }
            SyncEvent::Begin {
                operation,
                warp,
                lanes,
                completes,
            } => {
                let own = &mut block.warps[first + warp];
                let begun = ledger.begin();
                own.begin(*operation, begun);
                match completes {
                    Completes::Group => own.copies.begin(begun, *lanes),
                    Completes::BulkGroup => own.bulk.begin(begun, *lanes),
                    Completes::Bytes { barrier, .. } => {
                        let phase = self.counts_on(*barrier, own, *lanes);
                        ledger.operation(begun).ends_with(phase);
                    }
                    Completes::Arrival { barrier } => {
                        let phase = self.counts_on(*barrier, own, *lanes);
                        for begun in own.commit(*operation, *lanes) {
                            ledger.operation(*begun).ends_with(phase);
                        }
                    }
                    Completes::Nothing => own.uncommitted.push((begun, *lanes)),
                }
            }
            SyncEvent::Mbarrier {
                warp,
                lanes: mask,
                addresses,
                parities,
                ordering,
                scope,
                what,
            } => self.mbarrier(
                block,
                ledger,
                first + warp,
                (*mask, addresses, *parities),
                (*ordering, *scope),
                *what,
            ),
            SyncEvent::Fabric { .. } | SyncEvent::HostCall { .. } => {}
        }
    }

    /// The phase of an mbarrier by which lanes have an operation end. Whoever finds it over comes after all that they had waited for
    /// before they began the operation.
    fn counts_on(&self, barrier: u64, own: &Warp, by: u32) -> (u64, Step) {
        let mut mbarriers = self.mbarriers.lock();
        for lane in lanes(by) {
            let message = Message {
                clock: own.lanes.get(lane).seen.clone(),
                ..Message::default()
            };
            mbarriers.arrive(barrier, &message);
        }
        (barrier, mbarriers.phase(barrier))
    }

    fn mbarrier(
        &self,
        block: &mut Block,
        ledger: &Ledger,
        warp: usize,
        (mask, addresses, parities): (u32, &[u64; WARP], u32),
        (ordering, _): (Ordering, Option<Scope>),
        what: MbarrierEvent,
    ) {
        let mut mbarriers = self.mbarriers.lock();
        let at = (block.number, warp);
        match what {
            MbarrierEvent::Init => lanes(mask).for_each(|lane| mbarriers.begin(addresses[lane])),
            MbarrierEvent::Arriving => {
                let own = &mut block.warps[warp];
                for lane in lanes(mask) {
                    let message = match ordering {
                        Ordering::Release | Ordering::AcqRel | Ordering::Sc => Message {
                            clock: own.known_by(at, lane),
                            asynchronous: own.proxy_fenced_by(at, lane),
                        },
                        Ordering::Weak | Ordering::Volatile | Ordering::Relaxed | Ordering::Acquire => Message {
                            clock: own.fenced_by(at, lane, Reach::Block as usize),
                            asynchronous: own.proxy_fenced_by(at, lane),
                        },
                    };
                    mbarriers.arrive(addresses[lane], &message);
                }
                own.next_step();
            }
            MbarrierEvent::Look { over } => {
                let own = &mut block.warps[warp];
                let there = own.there;
                for lane in lanes(mask) {
                    let message = mbarriers.look(addresses[lane], parities >> lane & 1 == 1);
                    if over >> lane & 1 == 1 {
                        own.lanes.change(1 << lane, there, |state| {
                            state.learn(message);
                        });
                    }
                }
            }
            MbarrierEvent::CopiesArrive => {
                for lane in lanes(mask) {
                    mbarriers.look(addresses[lane], parities >> lane & 1 == 1);
                    let phase: Step = mbarriers.phase(addresses[lane]);
                    block.warps[warp]
                        .copies
                        .ends_with(ledger, 1 << lane, (addresses[lane], phase));
                }
            }
            MbarrierEvent::Arrive | MbarrierEvent::Expect | MbarrierEvent::Complete => {
                for lane in lanes(mask) {
                    mbarriers.look(addresses[lane], parities >> lane & 1 == 1);
                }
            }
            MbarrierEvent::Invalidate => {}
        }
    }
}
