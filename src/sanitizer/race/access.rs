//! An access as the checker sees it: it is compared with those that its words know, and the words learn of it.

use std::sync::atomic::Ordering::Relaxed;

use crate::isa::lanes::WARP;
use crate::program::Space;
use crate::simt::observe::{Access, Direction, Who};

use super::block::{ASYNC, Block};
use super::clock::Clock;
use super::judge::Pair;
use super::ledger::{Cell, Entry, Keep, Kind, Ledger, Member, Swap, View};
use super::shadow::Touched;
use super::strong::learn_of_writes;
use super::swap::UnderWay;
use super::{Book, Detector, lanes};

/// Lanes of a warp that do something, as an access finds them.
pub(super) struct Actor<'a> {
    pub block: &'a Block,
    pub warp: usize,
    pub entry: u32,
    pub kind: Kind,
    pub operation: Option<u32>,
    /// The channel by which fences of the asynchronous proxy tell of this kind of memory.
    pub proxy: usize,
}

impl Detector {
    pub(super) fn accessed(&self, block: &mut Block, book: &Book, by: &Who<'_>, access: &Access<'_>) {
        let ledger = &book.ledger;
        let warp = by.first_thread as usize / WARP + access.warp;
        // A thread's own atomic finds a weak write of this size.
        let kind = Kind {
            element: access.element as u8,
            ..Kind::of(access)
        };
        let reach = kind.strong.filter(|_| access.operation.is_none());
        if let Some(reach) = reach
            && access.direction != Direction::Write
        {
            // What it is going to read lies before it.
            self.acquire(block, warp, access, reach);
        }
        let operation = access.operation.and_then(|number| block.warps[warp].operation(number));
        let site = self.site(block, by);
        let (number, cluster) = (block.number, block.cluster);
        let entry = block.warps[warp].entry((site, kind, operation, book.generation), |step| {
            ledger.enter(Entry {
                block: number,
                cluster,
                warp: warp as u32,
                step,
                site,
                kind,
                operation,
            })
        });
        let Some(entry) = entry else {
            self.lost.fetch_add(1, Relaxed);
            return;
        };
        if !self.swaps_again(block, book, (warp, entry), access) {
            self.touched(block, book, (warp, entry, kind, operation), access);
        }
        if let Some(reach) = reach.filter(|_| kind.writes()) {
            self.release(block, warp, access, reach);
        }
    }

    /// Lanes touch words, as an entry says.
    fn touched(
        &self,
        block: &mut Block,
        book: &Book,
        (warp, entry, kind, operation): (usize, u32, Kind, Option<u32>),
        access: &Access<'_>,
    ) {
        let ledger = &book.ledger;
        let is_strong = kind.strong.is_some() && access.operation.is_none();
        let observed = match access.direction {
            Direction::Atomic if is_strong => self.observe(block, book, warp, access),
            Direction::Read | Direction::Write | Direction::Atomic => Vec::new(),
        };
        let changes = block.warps[warp].changes;
        let actor = Actor {
            block,
            warp,
            entry,
            kind,
            operation,
            proxy: ASYNC[usize::from(access.space == Space::Shared)],
        };
        let of = || UnderWay::new((entry, book.generation, changes), access);
        let mut under_way = (kind.swap == Swap::Open).then(|| Box::new(of()));
        let mut cursor = book.shadow.cursor();
        let bytes = u64::from(access.bytes);
        let first = access.addresses[access.lanes.trailing_zeros() as usize % WARP];
        let is_common = lanes(access.lanes).all(|lane| access.addresses[lane] == first);
        let mut each = |address: u64, some: u32| {
            if actor.block.local.contains(&address) {
                return;
            }
            cursor.each(address, bytes, |known, at, size| {
                let before = *known;
                self.touch(&actor, ledger, some, (at, size), known, access);
                if let Some(swap) = &mut under_way {
                    swap.touched(some, (at, size), before, *known);
                }
            });
        };
        // Stores of one place may be of different values: lane by lane.
        if is_common && !kind.writes() {
            each(first, access.lanes);
        } else {
            lanes(access.lanes).for_each(|lane| each(access.addresses[lane], 1 << lane));
        }
        drop(cursor);
        learn_of_writes(block, warp, observed);
        block.warps[warp].swap = under_way;
    }

    /// Looks at lanes that touch one word, or part of one, and notes that they have.
    pub(super) fn touch(
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
            true => known.writes == own && known.reads.is_empty(),
            false => known.reads == own,
        } {
            return;
        }
        self.compare(actor, ledger, lanes, at, known.writes, access);
        if writes {
            self.compare(actor, ledger, lanes, at, known.reads, access);
        }
        self.note_access(actor, ledger, lanes, at.0, known);
    }

    /// Notes that lanes have touched one word, or part of one.
    pub(super) fn note_access(
        &self,
        actor: &Actor<'_>,
        ledger: &Ledger,
        lanes: u32,
        address: u64,
        known: &mut Touched,
    ) {
        let own = ledger.cell((actor.entry, lanes));
        let writes = actor.kind.writes();
        let keep = |(entry, theirs): (u32, u32)| {
            let entry = ledger.entry(entry);
            match () {
                () if self.unordered(actor, ledger, entry, (theirs, lanes), address).is_some() => Keep::Unordered,
                () if entry.kind.strong < actor.kind.strong => Keep::Weaker,
                () => Keep::No,
            }
        };
        let found = match actor.kind.direction {
            Direction::Atomic => {
                let at = (actor.block.number, actor.block.cluster);
                self.found_by(at, actor.kind, ledger, known.writes)
            }
            Direction::Read | Direction::Write => Vec::new(),
        };
        // They lie before whatever follows the atomic.
        let is_hidden = |(number, lanes): Member| {
            let mut found = found.iter();
            found.any(|found| (found.number, found.lanes) == (number, lanes) && found.is_hidden)
        };
        // Who has only read what is written now need not know of what lies before it.
        let keep_strong = |member: Member| {
            let are_strong = ledger.entry(member.0).kind.strong.is_some() && actor.kind.strong.is_some();
            match keep(member) {
                Keep::No if are_strong => Keep::Weaker,
                keep => keep,
            }
        };
        let keep_write = |member: Member| match is_hidden(member) {
            true => Keep::No,
            false => keep_strong(member),
        };
        let more = (actor.entry, lanes);
        match writes {
            false => known.reads = ledger.with(known.reads, more, keep),
            true => {
                known.writes = match known.writes.is_empty() {
                    true => own,
                    false => ledger.behind(known.writes, more, keep_write),
                };
                known.reads = ledger.only(known.reads, keep_strong);
            }
        }
    }

    /// A lane of an entry's and one of the actor's that are in no order.
    pub(super) fn unordered(
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
            let clock = &own.lane(lane).seen;
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
            let has_read = |their: usize| clock.has_read(address, &entry.writer(1 << their));
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
    pub(super) fn compare(
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
                let pair = Pair {
                    other: entry,
                    own: ledger.entry(actor.entry),
                    is_one: number == actor.entry,
                    lanes: (Some(their), lane),
                    lacks_fence,
                    shared: None,
                };
                self.judge(&pair, at, access);
            }
        });
    }
}
