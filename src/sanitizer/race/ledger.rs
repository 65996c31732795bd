//! Who touched memory: entries for accesses that are alike, and the sets of them that words of the shadow refer to.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::program::{self, Proxy, Scope};
use crate::sanitizer::spread::Spread;
use crate::simt::observe::{Access, Direction};

use super::clock::{Clock, Step, Writer};

/// How far an order reaches, or how near two threads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    Block,
    Cluster,
    Device,
}

impl Reach {
    pub const ALL: [Reach; 3] = [Reach::Block, Reach::Cluster, Reach::Device];

    /// The number of the block or cluster whose threads it reaches, for one of this block and cluster.
    pub fn number(self, (block, cluster): (u32, u32)) -> u32 {
        match self {
            Reach::Block => block,
            Reach::Cluster => cluster,
            Reach::Device => 0,
        }
    }

    /// Of an instruction; without a scope it is the device (PTX ISA, membar; atom).
    pub fn of(scope: Option<Scope>) -> Reach {
        match scope {
            Some(Scope::Cta) => Reach::Block,
            Some(Scope::Cluster) => Reach::Cluster,
            Some(Scope::Gpu | Scope::Sys) | None => Reach::Device,
        }
    }
}

/// What kind of access it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    pub direction: Direction,
    /// How far it is strong (PTX ISA, Memory Consistency Model: Operation types); `None`: a weak one.
    pub strong: Option<Reach>,
    pub asynchronous: bool,
    /// Bytes of an element; of a weak one where that is kept.
    pub element: u8,
    pub swap: Swap,
}

/// Whether an access is a compare-and-swap of which it is not known that it has written something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Swap {
    #[default]
    No,
    /// It may have.
    Open,
    /// It has not, and only read. In another run it might, so it races as if it had.
    Failed,
}

impl Kind {
    pub fn of(access: &Access<'_>) -> Kind {
        let strong = match access.ordering {
            program::Ordering::Weak => (access.direction == Direction::Atomic).then_some(Reach::Device),
            // A volatile operation is a relaxed one of system scope (PTX ISA, Volatile Operations).
            program::Ordering::Volatile => Some(Reach::Device),
            program::Ordering::Relaxed
            | program::Ordering::Acquire
            | program::Ordering::Release
            | program::Ordering::AcqRel
            | program::Ordering::Sc => Some(Reach::of(access.scope)),
        };
        Kind {
            direction: access.direction,
            strong,
            asynchronous: access.proxy == Proxy::Async,
            element: if strong.is_some() { access.element as u8 } else { 0 },
            swap: match access.atomic {
                Some(atomic) if atomic.is_swap => Swap::Open,
                Some(_) | None => Swap::No,
            },
        }
    }

    pub fn writes(self) -> bool {
        self.direction != Direction::Read
    }
}

/// An asynchronous operation.
#[derive(Default)]
pub struct Operation {
    /// Lanes that have seen its end, and the step of their warp then (upper and lower half).
    ended: AtomicU64,
    /// Likewise, that it has read its sources.
    has_read: AtomicU64,
    /// Phases of mbarriers, after each of which it has ended.
    phases: RwLock<Vec<(u64, Step)>>,
}

impl Operation {
    /// It has ended when this phase of an mbarrier is over.
    pub fn ends_with(&self, phase: (u64, Step)) {
        self.phases.write().push(phase);
    }

    /// Whether somebody knows that it has ended by one of those phases.
    fn is_over(&self, clock: &Clock) -> bool {
        let phases = self.phases.read();
        phases.iter().any(|(barrier, phase)| clock.phase(*barrier) >= *phase)
    }

    /// Lanes see its end.
    pub fn end(&self, lanes: u32, step: Step, only_reads: bool) {
        let word = if only_reads { &self.has_read } else { &self.ended };
        // One block's lanes come one after the other. Of several steps the first stands for all.
        let old = word.load(Ordering::Relaxed);
        let step = if old == 0 { step } else { step.min(old as u32) };
        word.store(
            (old >> 32 | u64::from(lanes)) << 32 | u64::from(step),
            Ordering::Relaxed,
        );
    }

    /// Step in which a lane saw the end of what an access of this kind needs; `None`: it has not.
    pub fn seen_by(&self, lane: usize, direction: Direction) -> Option<Step> {
        let seen = |word: &AtomicU64| {
            let word = word.load(Ordering::Relaxed);
            (word >> 32 >> lane & 1 == 1).then_some(word as u32)
        };
        match direction {
            Direction::Read => seen(&self.has_read).or_else(|| seen(&self.ended)),
            Direction::Write | Direction::Atomic => seen(&self.ended),
        }
    }
}

/// Accesses by one instruction of lanes of one warp, in one step of it.
#[derive(Clone, Copy)]
pub struct Entry {
    pub block: u32,
    pub cluster: u32,
    pub warp: u32,
    pub step: Step,
    pub site: u32,
    pub kind: Kind,
    /// Number of the operation that makes them.
    pub operation: Option<u32>,
}

impl Entry {
    /// As those know it who have read what it wrote.
    pub fn writer(&self, lanes: u32) -> Writer {
        Writer {
            block: self.block,
            warp: self.warp,
            step: self.step,
            site: self.site,
            lanes,
        }
    }
}

/// What a cell of the shadow says: nothing, one lane of an entry, or a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cell(u32);

/// A cell has 26 bits for an entry and 5 for a lane.
const MOST_ENTRIES: usize = (1 << 26) - 1;
const SET: u32 = 1 << 31;

impl Cell {
    pub const EMPTY: Cell = Cell(0);

    pub fn one(entry: u32, lane: usize) -> Cell {
        Cell((entry + 1) << 5 | lane as u32)
    }

    pub fn is_empty(self) -> bool {
        self == Cell::EMPTY
    }

    /// Entry and lane; `None`: nobody, or a set.
    #[inline]
    pub fn parts(self) -> Option<(u32, usize)> {
        if self.0 == 0 || self.0 & SET != 0 {
            return None;
        }
        Some(((self.0 >> 5) - 1, (self.0 & 31) as usize))
    }
}

/// Lanes of an entry.
pub type Member = (u32, u32);

/// Why a set keeps a member when another comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    No,
    /// It lies before, but the other is strong, and forgiven what this one is not.
    Weaker,
    Unordered,
}

/// Members at most that are kept though they lie before; those of the last to come stay.
const MOST_WEAKER: usize = 4;

/// Compare-and-swaps that have failed and are kept: who waits for a lock makes many.
const MOST_FAILED: usize = 4;

/// Members of a set at most. Where more threads than these touch a word in no order, as all blocks do that read a common
/// value, the set keeps these.
const MOST_MEMBERS: usize = 64;

#[derive(Default)]
pub struct Ledger {
    entries: boxcar::Vec<Entry>,
    operations: boxcar::Vec<Operation>,
    sets: boxcar::Vec<Box<[Member]>>,
    known: Mutex<HashMap<Box<[Member]>, u32, BuildHasherDefault<Spread>>>,
}

impl Ledger {
    /// A new entry; `None`: there is no room for more.
    pub fn enter(&self, entry: Entry) -> Option<u32> {
        (self.entries.count() < MOST_ENTRIES).then(|| self.entries.push(entry) as u32)
    }

    pub fn entry(&self, number: u32) -> &Entry {
        &self.entries[number as usize]
    }

    /// How many entries and sets there are.
    pub fn len(&self) -> usize {
        self.entries.count() + self.sets.count()
    }

    pub fn begin(&self) -> u32 {
        self.operations.push(Operation::default()) as u32
    }

    pub fn operation(&self, number: u32) -> &Operation {
        &self.operations[number as usize]
    }

    /// The cell of lanes of one entry.
    pub fn cell(&self, (entry, lanes): Member) -> Cell {
        match lanes.count_ones() {
            1 => Cell::one(entry, lanes.trailing_zeros() as usize),
            _ => self.set(&[(entry, lanes)]),
        }
    }

    pub fn each(&self, cell: Cell, mut act: impl FnMut(Member)) {
        match cell.0 {
            0 => {}
            word if word & SET == 0 => act(((word >> 5) - 1, 1 << (word & 31))),
            word => self.sets[(word & !SET) as usize].iter().for_each(|member| act(*member)),
        }
    }

    /// The members of a cell that are to be kept, and one more.
    pub fn with(&self, cell: Cell, more: Member, keep: impl Fn(Member) -> Keep) -> Cell {
        let mut members = self.and(cell, more, keep);
        // Sets that are alike are one.
        members.sort_unstable();
        self.cell_of(&members)
    }

    /// Likewise, in the order in which they came.
    pub fn behind(&self, cell: Cell, more: Member, keep: impl Fn(Member) -> Keep) -> Cell {
        self.cell_of(&self.and(cell, more, keep))
    }

    fn and(&self, cell: Cell, more: Member, keep: impl Fn(Member) -> Keep) -> Vec<Member> {
        let mut lanes = more.1;
        let mut members = self.kept(cell, |member| match member.0 == more.0 {
            true => {
                lanes |= member.1;
                Keep::No
            }
            false => keep(member),
        });
        members.truncate(MOST_MEMBERS - 1);
        members.push((more.0, lanes));
        members
    }

    /// A cell with one more compare-and-swap that has failed, if there are not enough of them; `keep`: which of those that are there.
    pub fn with_failed(&self, cell: Cell, (entry, lanes): Member, keep: impl Fn(Member) -> Keep) -> Cell {
        let (mut members, mut failed) = (Vec::new(), 0);
        let mut is_there = false;
        self.each(cell, |(other, theirs)| {
            let has_failed = self.entry(other).kind.swap == Swap::Failed;
            if other == entry {
                is_there = true;
                members.push((other, theirs | lanes));
            } else if !has_failed || keep((other, theirs)) != Keep::No {
                members.push((other, theirs));
            }
            failed += usize::from(has_failed);
        });
        if !is_there && failed < MOST_FAILED && members.len() < MOST_MEMBERS {
            members.push((entry, lanes));
        }
        self.cell_of(&members)
    }

    /// The members of a cell that are to be kept.
    pub fn only(&self, cell: Cell, keep: impl Fn(Member) -> Keep) -> Cell {
        self.cell_of(&self.kept(cell, keep))
    }

    fn kept(&self, cell: Cell, mut keep: impl FnMut(Member) -> Keep) -> Vec<Member> {
        let mut members: Vec<(Member, Keep)> = Vec::new();
        self.each(cell, |member| members.push((member, keep(member))));
        members.retain(|(_, keep)| *keep != Keep::No);
        if members.len() > MOST_WEAKER {
            // What others may find is not to give way to what nobody does.
            for has_failed in [false, true] {
                let is_weaker = |(member, keep): &&(Member, Keep)| {
                    *keep == Keep::Weaker && (self.entry(member.0).kind.swap == Swap::Failed) == has_failed
                };
                let mut too_many = members.iter().filter(is_weaker).count().saturating_sub(MOST_WEAKER);
                members.retain(|member| {
                    let goes = too_many > 0 && is_weaker(&member);
                    too_many -= usize::from(goes);
                    !goes
                });
            }
        }
        members.into_iter().map(|(member, _)| member).collect()
    }

    fn cell_of(&self, members: &[Member]) -> Cell {
        match members {
            [] => Cell::EMPTY,
            [member] => self.cell(*member),
            _ => self.set(members),
        }
    }

    fn set(&self, members: &[Member]) -> Cell {
        let mut known = self.known.lock();
        if let Some(number) = known.get(members) {
            return Cell(SET | number);
        }
        let number = self.sets.push(members.into()) as u32;
        known.insert(members.into(), number);
        Cell(SET | number)
    }

    /// Those that cells still refer to, in a new ledger; `visit` shows each cell, to be changed.
    pub fn compact(&mut self, visit: impl FnOnce(&mut dyn FnMut(&mut Cell))) {
        let new = Ledger {
            operations: std::mem::take(&mut self.operations),
            ..Ledger::default()
        };
        // By their old numbers: entries and sets that are kept.
        let mut moved: Vec<Option<u32>> = vec![None; self.entries.count()];
        let mut sets: Vec<Option<Cell>> = vec![None; self.sets.count()];
        let old = &*self;
        let mut keep =
            |entry: u32| *moved[entry as usize].get_or_insert_with(|| new.entries.push(*old.entry(entry)) as u32);
        visit(&mut |cell| {
            if let Some((entry, lane)) = cell.parts() {
                *cell = Cell::one(keep(entry), lane);
            } else if !cell.is_empty() {
                let number = (cell.0 & !SET) as usize;
                *cell = *sets[number].get_or_insert_with(|| {
                    let members: Vec<Member> = old.sets[number]
                        .iter()
                        .map(|(entry, lanes)| (keep(*entry), *lanes))
                        .collect();
                    new.set(&members)
                });
            }
        });
        *self = new;
    }
}

/// What one who looks knows of an entry's lanes.
pub struct View<'a> {
    pub block: u32,
    pub warp: u32,
    pub lane: usize,
    pub clock: &'a Clock,
    /// Up to which step it knows of lanes of its own warp by what lanes of a warp do among each other.
    pub among: &'a dyn Fn(usize) -> Step,
    /// Its own accesses count as known.
    pub own: bool,
}

impl View<'_> {
    /// Whether all that a lane did by this entry lies before.
    pub fn is_after(&self, ledger: &Ledger, entry: &Entry, lane: usize) -> bool {
        let step = match entry.operation.map(|number| ledger.operation(number)) {
            None => entry.step,
            Some(operation) => {
                if operation.is_over(self.clock) {
                    return true;
                }
                match operation.seen_by(lane, entry.kind.direction) {
                    Some(step) => step,
                    None => return false,
                }
            }
        };
        if entry.block == self.block && entry.warp == self.warp {
            if self.own && lane == self.lane {
                return true;
            }
            if (self.among)(lane) >= step {
                return true;
            }
        }
        self.clock.step(entry.block, entry.warp as usize, lane) >= step
    }
}
