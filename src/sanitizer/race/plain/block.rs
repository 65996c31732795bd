//! What is kept of a block of a plain kernel while it runs. Blocks are many and short, so whoever comes next takes over what the
//! one before has left.

use std::collections::VecDeque;
use std::ops::Range;

use crate::isa::lanes::WARP;
use crate::program::Function;
use crate::ptx::ast::Span;

use super::super::block::Copies;
use super::super::clock::Step;
use super::super::ledger::Kind;
use crate::sanitizer::directory::Remembered;

use super::cell::Layout;
use super::look::Memories;
use super::reads::Reads;
use super::table::Table;

/// Accesses by one instruction, of warps of a block that are in the same step, between two barriers of it.
#[derive(Clone, Copy)]
pub struct Entry {
    pub block: u32,
    /// Barriers of the block before.
    pub epoch: u32,
    pub step: Step,
    pub site: u32,
    pub kind: Kind,
    /// The block's number of the operation that makes them.
    pub operation: Option<u32>,
}

#[derive(Clone, Copy)]
pub struct Warp {
    pub step: Step,
    /// Up to which step its lanes know all of each other.
    pub met: Step,
}

/// An asynchronous copy of lanes of a warp.
#[derive(Clone, Copy)]
pub struct Operation {
    /// As the machine numbers them.
    number: u64,
    pub warp: usize,
    lanes: u32,
    /// Lanes that have seen its end, and step and epoch in which the first of them did.
    ended: u32,
    step: Step,
    epoch: u32,
}

impl Operation {
    pub fn end(&mut self, lanes: u32, (step, epoch): (Step, u32)) {
        if self.ended == 0 {
            (self.step, self.epoch) = (step, epoch);
        }
        self.ended |= lanes;
        self.step = self.step.min(step);
    }

    /// Whether all whose it is had seen its end before the last barrier.
    pub fn is_over(&self, epoch: u32) -> bool {
        self.ended == self.lanes && self.epoch < epoch
    }

    /// Step and epoch in which a lane has seen its end.
    pub fn seen_by(&self, lane: u32) -> Option<(Step, u32)> {
        (self.ended >> lane & 1 == 1).then_some((self.step, self.epoch))
    }
}

/// Those of a block, by its own numbers. Of the first ones that are over nothing is kept.
#[derive(Default)]
pub struct Operations {
    gone: u32,
    under_way: VecDeque<Operation>,
}

impl Operations {
    fn begin(&mut self, operation: Operation) -> u32 {
        self.under_way.push_back(operation);
        self.gone + self.under_way.len() as u32 - 1
    }

    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// `None`: it is over, and all its lanes' block has met since.
    #[inline]
    pub fn get(&self, operation: u32) -> Option<&Operation> {
        let index = operation.checked_sub(self.gone)?;
        self.under_way.get(index as usize)
    }

    fn get_mut(&mut self, operation: u32) -> Option<&mut Operation> {
        let index = operation.checked_sub(self.gone)?;
        self.under_way.get_mut(index as usize)
    }

    /// By the machine's number.
    pub fn find(&self, number: u64) -> Option<u32> {
        let mut all = self.under_way.iter();
        let index = all.rposition(|operation| operation.number == number)?;
        Some(self.gone + index as u32)
    }

    fn drop_over(&mut self, epoch: u32) {
        while self.under_way.front().is_some_and(|first| first.is_over(epoch)) {
            self.under_way.pop_front();
            self.gone += 1;
        }
    }
}

/// Instructions of which a block remembers the entries: a loop has few that touch memory.
const SLOTS: usize = 128;

/// The last entry of an instruction, and what it is for.
#[derive(Clone, Copy)]
struct Slot {
    at: (usize, u32),
    kind: Kind,
    site: u32,
    entries: [Option<(Fits, u32)>; 2],
}

/// What an entry fits, besides instruction and kind.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Fits {
    block: u32,
    epoch: u32,
    step: Step,
    operation: Option<u32>,
    generation: u32,
}

/// Entries for shared memory after which those are dropped that no word refers to.
const MANY: usize = 1 << 16;

pub struct Block {
    pub number: u32,
    pub epoch: u32,
    pub local: Range<u64>,
    pub shared: Range<u64>,
    pub warps: Vec<Warp>,
    /// The last step in which all lanes of a warp have met.
    pub met: Step,
    pub operations: Operations,
    copies: Vec<Copies>,
    /// Accesses to shared memory, which nobody else knows.
    pub entries: Vec<Entry>,
    kept: usize,
    /// How often those were numbered anew.
    pub generation: u32,
    pub window: Table,
    /// Nobody has touched shared memory since nothing was known of it, but by `reads`.
    pub is_quiet: bool,
    pub reads: Reads,
    /// Barriers for which reads are looked at at once, for it has been of no use to put them off.
    pub impatient: u8,
    pub stamp: u32,
    slots: Box<[Option<Slot>; SLOTS]>,
    pub memories: Memories,
    /// Where the grid's shadow has the last pages.
    pub remembered: Box<Remembered>,
}

impl Block {
    pub fn new() -> Block {
        Block {
            number: 0,
            epoch: 0,
            local: 0..0,
            shared: 0..0,
            warps: Vec::new(),
            met: 0,
            operations: Operations::default(),
            copies: Vec::new(),
            entries: Vec::new(),
            kept: 0,
            generation: 0,
            window: Table::default(),
            is_quiet: true,
            reads: Reads::default(),
            impatient: 0,
            stamp: 0,
            slots: Box::new([None; SLOTS]),
            memories: Memories::new(),
            remembered: Box::new(Remembered::NOTHING),
        }
    }

    /// Another block begins in its place.
    pub fn begin(&mut self, number: u32, threads: u32, shared: (u64, u64), local: (u64, u64)) {
        (self.number, self.epoch, self.met) = (number, 0, 0);
        self.local = local.0..local.0 + local.1;
        self.shared = shared.0..shared.0 + shared.1;
        self.warps.clear();
        self.warps
            .resize(threads.div_ceil(WARP as u32) as usize, Warp { step: 1, met: 0 });
        self.operations = Operations::default();
        self.copies.clear();
        self.window.reach(shared.1 as usize);
        self.forget();
    }

    /// Nothing is known of shared memory any more.
    fn forget(&mut self) {
        self.is_quiet = true;
        self.reads.clear();
        self.impatient = self.impatient.saturating_sub(1);
        self.entries.clear();
        (self.kept, self.generation) = (0, self.generation.wrapping_add(1));
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.window.clear();
            self.stamp = 1;
        }
    }

    /// All threads have met.
    pub fn released(&mut self) {
        self.epoch += 1;
        self.operations.drop_over(self.epoch);
        // What they did to shared memory lies before all that anybody will do to it, but for copies that nobody has waited for.
        if self.operations.under_way.is_empty() {
            self.forget();
        }
    }

    /// Lanes of a warp begin a copy.
    pub fn begin_copy(&mut self, number: u64, warp: usize, lanes: u32) {
        if self.copies.is_empty() {
            self.copies.resize_with(self.warps.len(), Copies::default);
        }
        let operation = self.operations.begin(Operation {
            number,
            warp,
            lanes,
            ended: 0,
            step: 0,
            epoch: 0,
        });
        self.copies[warp].begin(operation, lanes);
    }

    pub fn commit(&mut self, warp: usize, lanes: u32) {
        if let Some(copies) = self.copies.get_mut(warp) {
            copies.commit(lanes);
        }
    }

    /// Lanes have seen the end of all groups of copies but the last `but`; `None`: of all copies.
    pub fn wait(&mut self, warp: usize, lanes: u32, but: Option<u32>) {
        let now = (self.warps[warp].step, self.epoch);
        if let Some(copies) = self.copies.get_mut(warp) {
            let operations = &mut self.operations;
            copies.wait(lanes, but, false, |operation, over| {
                if let Some(operation) = operations.get_mut(operation) {
                    operation.end(over, now);
                }
            });
        }
    }

    /// The entry for an access by a warp. `is_shared`: to shared memory, where the block has entries of its own; `generation`: how
    /// often those of the grid were numbered anew. `site` numbers an instruction, `enter` adds to the entries of the grid.
    #[inline(always)]
    pub fn entry(
        &mut self,
        (function, span, kind): (&Function, Span, Kind),
        (warp, operation): (usize, Option<u32>),
        (is_shared, generation): (bool, u32),
        site: impl FnOnce() -> u32,
        enter: impl FnOnce(Entry) -> Option<u32>,
    ) -> Option<(u32, Entry)> {
        let at = (std::ptr::from_ref(function) as usize, span.start);
        let place = (at.0 >> 6 ^ at.1 as usize ^ at.1 as usize >> 7) % SLOTS;
        let slot = match &mut self.slots[place] {
            Some(slot) if slot.at == at && slot.kind == kind => slot,
            other => other.insert(Slot {
                at,
                kind,
                site: site(),
                entries: [None; 2],
            }),
        };
        let fits = Fits {
            block: self.number,
            epoch: self.epoch,
            step: self.warps[warp].step,
            operation,
            generation: if is_shared { self.generation } else { generation },
        };
        let entry = Entry {
            block: self.number,
            epoch: self.epoch,
            step: fits.step,
            site: slot.site,
            kind,
            operation,
        };
        let last = &mut slot.entries[usize::from(is_shared)];
        if let Some((same, number)) = last
            && *same == fits
        {
            return Some((*number, entry));
        }
        let number = match is_shared {
            true => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
            false => enter(entry)?,
        };
        *last = Some((fits, number));
        Some((number, entry))
    }

    /// Reads of shared memory need not be looked at yet.
    #[inline(always)]
    pub fn may_put_off_reads(&self) -> bool {
        self.is_quiet
            && self.impatient == 0
            && self.operations.is_empty()
            && self.entries.len() < MANY
            && self.reads.has_room()
    }

    /// Drops entries for shared memory that no word refers to, if there are many; `false`: there is no room for more.
    #[inline(always)]
    pub fn tidy(&mut self, layout: Layout) -> bool {
        self.entries.len() < (2 * self.kept).max(MANY).min(layout.most_entries()) || self.drop_unused(layout)
    }

    #[cold]
    #[inline(never)]
    fn drop_unused(&mut self, layout: Layout) -> bool {
        let old = std::mem::take(&mut self.entries);
        let mut moved: Vec<Option<u32>> = vec![None; old.len()];
        let new = &mut self.entries;
        self.window.renumber((layout, self.stamp), |entry| {
            *moved[entry as usize].get_or_insert_with(|| {
                new.push(old[entry as usize]);
                new.len() as u32 - 1
            })
        });
        self.kept = self.entries.len();
        self.generation = self.generation.wrapping_add(1);
        self.kept < layout.most_entries()
    }
}
