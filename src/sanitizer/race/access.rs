//! An access as the checker sees it: it is compared with those that its words know, and the words learn of it.

use std::sync::atomic::Ordering::Relaxed;

use crate::isa::lanes::WARP;
use crate::program::Space;
use crate::simt::observe::{Access, Direction, Who};

use super::block::{ASYNC, Block};
use super::clock::Clock;
use super::ledger::{Cell, Entry, Keep, Kind, Ledger, Others, View};
use super::plain::Looker;
use super::shadow::Touched;
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
            self.lost.fetch_add(1, Relaxed);
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
                self.judge(actor, ledger, at, (number, Some(their)), lane, access, lacks_fence);
            }
        });
    }

    /// As [`Self::touch`], where threads meet as whole blocks and warps alone.
    #[inline]
    pub(super) fn touch_plain(
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
    pub(super) fn has_read_plain(&self, actor: &Actor<'_>, ledger: &Ledger, cell: Cell) -> bool {
        actor.kind.direction == Direction::Atomic
            && cell.parts().is_some_and(|(number, _, others)| {
                let entry = ledger.entry(number);
                others == Others::None && self.are_strong_for_each_other(actor.block, entry, actor.kind)
            })
    }

    /// A cell and the actor are in no order: notes a race, if it is one. Whether it was forgiven.
    #[cold]
    pub(super) fn compare_plain(
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
}
