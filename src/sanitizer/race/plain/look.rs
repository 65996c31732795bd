//! How an access of a plain kernel lies to those that memory knows, and what memory knows then.
//!
//! Rows and words are looked at by the same functions: `ROW` says which. Of a row each word is touched by another thread, so its
//! answer may differ from word to word; it is then `None`, nothing has changed, and the row is looked at word by word.

use crate::isa::lanes::WARP;
use crate::simt::observe::{Access, Direction, RowAccess};

use super::super::Detector;
use super::super::judge::Pair;
use super::super::ledger::{self, Kind, Reach};
use super::block::{Entry, Operations, Warp};
use super::shadow::{self, Cell, Layout, ONE_THREAD, Others, Table, Touched};

/// Entries by number.
pub trait Entries {
    fn entry(&self, number: u32) -> &Entry;
}

impl Entries for [Entry] {
    #[inline(always)]
    fn entry(&self, number: u32) -> &Entry {
        &self[number as usize]
    }
}

impl Entries for boxcar::Vec<Entry> {
    #[inline(always)]
    fn entry(&self, number: u32) -> &Entry {
        &self[number as usize]
    }
}

/// What an observer was told.
#[derive(Clone, Copy)]
pub enum Told<'a> {
    Lanes(&'a Access<'a>),
    /// With the first warp's number in the block.
    Rows(&'a RowAccess<'a>, usize),
}

/// Threads that touch memory: each the `1 << shift` bytes behind those of the one before, or, by `lanes` of one warp, all the same.
#[derive(Clone, Copy)]
pub struct Run {
    /// The first of them.
    pub thread: u32,
    pub lanes: Option<u32>,
    pub address: u64,
    pub shift: u8,
    pub bytes: u64,
}

/// Who touches a row, or a word.
#[derive(Clone, Copy)]
struct Me {
    thread: u32,
    shift: u8,
    /// Of a word: lanes of the thread's warp.
    lanes: u32,
}

/// How an entry's accesses lie to somebody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// All of them before.
    Before,
    /// Of his warp, whose lanes have not met since.
    Warp,
    /// Of other warps of his block, since its last barrier.
    Block,
    /// Of another block.
    Elsewhere,
    /// Made by an asynchronous operation.
    Operation,
}

/// What came of looking at one word. Neighbours are mostly of neighbours.
struct Last {
    thread: u32,
    before: Touched,
    after: Touched,
    is_new: bool,
}

impl Last {
    /// Looks at the next word, if what comes of that is the same, but for the numbers of threads.
    #[inline(always)]
    fn repeats(&mut self, thread: u32, known: &mut Touched) -> bool {
        let by = thread - self.thread;
        let crosses = by != 0 && (thread.is_multiple_of(WARP as u32) || known.begins_warps());
        if by > 1 || *known != self.before.behind(by) || crosses {
            return false;
        }
        (self.thread, self.before, self.after) = (thread, *known, self.after.behind(by));
        *known = self.after;
        true
    }
}

/// What is found out of an entry alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Before,
    /// Of this block since its last barrier, in this step of their warp.
    Here(u32),
    Elsewhere,
    Operation,
}

#[derive(Clone, Copy)]
pub struct Seen {
    number: u32,
    class: Class,
    /// Its accesses and those of who looks are morally strong.
    is_strong: bool,
    is_weaker: bool,
}

/// Entries of which it is remembered what was found out, by number.
const MEMORY: usize = 8;

pub type Memory = [Seen; MEMORY];

const NOTHING: Memory = [Seen {
    number: u32::MAX,
    class: Class::Before,
    is_strong: false,
    is_weaker: false,
}; MEMORY];

/// What a block remembers, for reads and writes of memory of its own and of all.
pub struct Memories([(Option<(Kind, Since)>, Memory); 4]);

/// A block, the number of its barriers, and since when entries have the numbers that they have: what is found out counts for these.
pub type Since = (u32, u32, u32);

impl Memories {
    pub fn new() -> Memories {
        Memories([(None, NOTHING); 4])
    }

    /// For accesses of a kind that no operation makes.
    #[inline(always)]
    pub fn of(&mut self, (kind, is_global): (Kind, bool), operation: Option<u32>, since: Since) -> &mut Memory {
        let (last, memory) = &mut self.0[usize::from(kind.writes()) * 2 + usize::from(is_global)];
        if operation.is_some() || *last != Some((kind, since)) {
            *memory = NOTHING;
            // What one operation finds is not what others do.
            *last = operation.is_none().then_some((kind, since));
        }
        memory
    }
}

/// Threads of a block, and what they do.
pub struct Looker<'a, E: Entries + ?Sized> {
    pub detector: &'a Detector,
    pub layout: Layout,
    pub entries: &'a E,
    pub warps: &'a [Warp],
    pub operations: &'a Operations,
    /// What they do, with its number.
    pub number: u32,
    pub own: Entry,
    /// Barriers of the block until now.
    pub epoch: u32,
    pub told: Told<'a>,
    /// Start of the block's shared memory, if it is that which they touch.
    pub shared: Option<u64>,
    memory: &'a mut Memory,
    /// What has come of looking at a word was not by the order of its entries alone.
    is_particular: bool,
}

/// A cell, and the shift by which its threads follow each other in a row.
type Span = (Cell, u8);

impl<'a, E: Entries + ?Sized> Looker<'a, E> {
    #[allow(
        clippy::too_many_arguments,
        reason = "parts of the block and of the detector, which are borrowed one by one"
    )]
    #[inline(always)]
    pub fn new(
        (detector, layout): (&'a Detector, Layout),
        entries: &'a E,
        warps: &'a [Warp],
        operations: &'a Operations,
        (number, own): (u32, Entry),
        epoch: u32,
        told: Told<'a>,
        shared: Option<u64>,
        memory: &'a mut Memory,
    ) -> Looker<'a, E> {
        Looker {
            detector,
            layout,
            entries,
            warps,
            operations,
            number,
            own,
            epoch,
            told,
            shared,
            memory,
            is_particular: false,
        }
    }

    /// Looks at what they touch of a table that begins at `base`: `run` lies within it but for what `from` and `to` cut off.
    #[inline(always)]
    pub fn run(&mut self, table: &mut Table, stamp: u32, base: u64, run: &Run, (from, to): (u64, u64)) {
        // Strong accesses are told from weak ones word by word.
        let is_by_rows = run.lanes.is_none() && self.own.kind.strong.is_none();
        let first = run.address.wrapping_sub(base) as usize;
        let (mut at, to) = ((from - base) as usize, (to - base) as usize);
        if run.bytes == 4
            && run.lanes.is_none()
            && let Some(known) = table.word(at, stamp)
        {
            let me = Me {
                thread: run.thread,
                shift: ONE_THREAD,
                lanes: 1 << (run.thread % WARP as u32),
            };
            let _ = self.touch::<false>(known, &mut [ONE_THREAD; 3], me, (run.address, 4));
            return;
        }
        while at < to {
            let stop = to.min((at / shadow::ROW + 1) * shadow::ROW);
            let row = table.row(at / shadow::ROW, stamp);
            let is_all = is_by_rows && stop - at == shadow::ROW;
            let thread = run.thread + (at.wrapping_sub(first) >> run.shift) as u32;
            if is_all {
                let me = Me {
                    thread,
                    shift: run.shift,
                    lanes: 0,
                };
                let last = thread + ((shadow::ROW - 1) >> run.shift) as u32;
                if row.is_whole
                    && thread / WARP as u32 == last / WARP as u32
                    && self
                        .touch::<true>(&mut row.touched, &mut row.shifts, me, (0, 0))
                        .is_some()
                {
                    at = stop;
                    continue;
                }
            }
            let mut is_new = is_all;
            let mut last: Option<Last> = None;
            table.parts((at, stop), run.shift >= 2, |known, at, size| {
                let thread = run.thread + (at.wrapping_sub(first) >> run.shift) as u32;
                if let Some(last) = &mut last
                    && last.repeats(thread, known)
                {
                    is_new &= last.is_new;
                    return;
                }
                let me = Me {
                    thread,
                    shift: ONE_THREAD,
                    lanes: run.lanes.unwrap_or(1 << (thread % WARP as u32)),
                };
                let (before, place) = (*known, (base + at as u64, size));
                self.is_particular = false;
                let now = self.touch::<false>(known, &mut [ONE_THREAD; 3], me, place) == Some(true);
                is_new &= now;
                last = (!self.is_particular).then_some(Last {
                    thread,
                    before,
                    after: *known,
                    is_new: now,
                });
            });
            if is_new {
                // Nobody else is left in it.
                let row = table.row(at / shadow::ROW, stamp);
                row.is_whole = true;
                row.touched = Touched {
                    writes: self.cell(thread),
                    reads: [Cell::EMPTY; 2],
                };
                row.shifts = [run.shift; 3];
            }
            at = stop;
        }
    }

    #[inline(always)]
    fn cell(&self, thread: u32) -> Cell {
        self.layout.one(self.number, thread, Others::None)
    }

    /// Notes that a row or a word is touched, and races that are found. `Some(true)`: nobody but `me` is left there.
    #[inline(always)]
    fn touch<const ROW: bool>(
        &mut self,
        known: &mut Touched,
        shifts: &mut [u8; 3],
        me: Me,
        at: (u64, usize),
    ) -> Option<bool> {
        let kind = self.own.kind;
        if !ROW && kind.direction == Direction::Atomic && self.follows_atomic(known) {
            known.writes = self.cell(me.thread);
            return Some(false);
        }
        let mut is_forgiven = false;
        if !self.is_after::<ROW>((known.writes, shifts[0]), me)? {
            if ROW {
                return None;
            }
            is_forgiven = self.compare(known.writes, me, at);
        }
        if !kind.writes() {
            if kind.strong.is_some() {
                // A weak write may be kept where reads are.
                for cell in known.reads {
                    if !self.is_after::<ROW>((cell, ONE_THREAD), me)? {
                        self.compare(cell, me, at);
                    }
                }
            }
            self.read::<ROW>(known, shifts, me)?;
            return Some(false);
        }
        let mut after_reads = true;
        for (cell, shift) in known.reads.into_iter().zip([shifts[1], shifts[2]]) {
            if !self.is_after::<ROW>((cell, shift), me)? {
                if ROW {
                    return None;
                }
                // One that can be named is enough.
                if after_reads || !self.is_own(cell, me) {
                    self.compare(cell, me, at);
                }
                after_reads = false;
            }
        }
        let own = self.cell(me.thread);
        if kind.strong.is_none() {
            *known = Touched {
                // Whoever reads it is not forgiven for those who wrote it.
                writes: match is_forgiven {
                    true => self.layout.with(own, self.others(known.writes, me)),
                    false => own,
                },
                reads: [Cell::EMPTY; 2],
            };
            *shifts = [me.shift; 3];
            return Some(!is_forgiven);
        }
        // What was weaker is not forgiven where this is.
        if after_reads {
            let left = known.reads.into_iter().filter(|cell| self.is_weaker(*cell));
            let mut left = left.chain([Cell::EMPTY; 2]);
            known.reads = std::array::from_fn(|_| left.next().unwrap_or_default());
        }
        let before = known.writes;
        known.writes = match () {
            () if self.is_weaker(before) => {
                let mut reads = known.reads.map(|cell| (cell, ONE_THREAD));
                let _ = self.add_read::<false>(&mut reads, (before, ONE_THREAD), me);
                known.reads = reads.map(|(cell, _)| cell);
                own
            }
            () if self.has_read(before) || self.is_after::<false>((before, ONE_THREAD), me)? => own,
            () => self.layout.with(own, self.others(before, me)),
        };
        Some(false)
    }

    /// Whether all that a word knows of is a strong write that this atomic finds.
    #[inline(always)]
    fn follows_atomic(&mut self, known: &Touched) -> bool {
        let has_reads = known.reads.iter().any(|cell| !cell.is_empty());
        match self.layout.parts(known.writes) {
            Some((number, _, Others::None)) if !has_reads => {
                let seen = self.seen(number);
                seen.is_strong && !seen.is_weaker
            }
            Some(_) | None => false,
        }
    }

    #[inline(always)]
    fn seen(&mut self, number: u32) -> Seen {
        let seen = self.memory[number as usize % MEMORY];
        if seen.number == number {
            return seen;
        }
        self.find(number)
    }

    #[inline(never)]
    fn find(&mut self, number: u32) -> Seen {
        let entry = self.entries.entry(number);
        let is_here = entry.block == self.own.block;
        let class = match entry.operation {
            Some(operation) if is_here => match self.operations.get(operation) {
                _ if entry.operation == self.own.operation => Class::Before,
                None => Class::Before,
                Some(operation) if operation.is_over(self.epoch) => Class::Before,
                Some(_) => Class::Operation,
            },
            Some(_) => Class::Operation,
            None if !is_here => Class::Elsewhere,
            None if entry.epoch < self.epoch => Class::Before,
            None => Class::Here(entry.step),
        };
        let reach = Some(if is_here { Reach::Block } else { Reach::Device });
        let (kind, own) = (entry.kind, self.own.kind);
        let seen = Seen {
            number,
            class,
            is_strong: kind.strong >= reach && own.strong >= reach && kind.element == own.element,
            is_weaker: kind.strong < own.strong,
        };
        self.memory[number as usize % MEMORY] = seen;
        seen
    }

    /// First and last thread of a cell, in a row or a word.
    #[inline(always)]
    fn threads<const ROW: bool>(thread: u32, shift: u8) -> (u32, u32) {
        match ROW {
            true => (thread, thread + ((shadow::ROW - 1) >> shift) as u32),
            false => (thread, thread),
        }
    }

    #[inline(always)]
    fn verdict<const ROW: bool>(&mut self, (number, thread): (u32, u32), shift: u8, me: Me) -> Option<Verdict> {
        Some(match self.seen(number).class {
            Class::Before => Verdict::Before,
            Class::Elsewhere => Verdict::Elsewhere,
            Class::Operation => Verdict::Operation,
            Class::Here(step) => {
                let own = me.thread / WARP as u32;
                let (first, last) = Self::threads::<ROW>(thread, shift);
                match (first / WARP as u32, last / WARP as u32) {
                    (first, last) if (first, last) == (own, own) => match self.warps[own as usize].met >= step {
                        true => Verdict::Before,
                        false => Verdict::Warp,
                    },
                    (first, last) if last < own || own < first => Verdict::Block,
                    _ => return None,
                }
            }
        })
    }

    /// Whether a cell of this block names the thread that looks, and no other.
    #[inline(always)]
    fn is_mine<const ROW: bool>(thread: u32, shift: u8, me: Me) -> Option<bool> {
        match ROW {
            true => Self::are_same((thread, shift), (me.thread, me.shift)),
            false => Some(thread == me.thread && me.lanes & (me.lanes - 1) == 0),
        }
    }

    /// Whether the threads of two cells of a row are the same everywhere, or nowhere.
    #[inline(always)]
    fn are_same((one, shift): (u32, u8), (other, same): (u32, u8)) -> Option<bool> {
        if shift == same {
            return Some(one == other);
        }
        let ((first, last), (from, to)) = (Self::threads::<true>(one, shift), Self::threads::<true>(other, same));
        (last < from || to < first).then_some(false)
    }

    /// Whether all that a cell stands for lies before what these threads do.
    #[inline(always)]
    fn is_after<const ROW: bool>(&mut self, (cell, shift): Span, me: Me) -> Option<bool> {
        let Some((number, thread, others)) = self.layout.parts(cell) else {
            return Some(true);
        };
        let verdict = self.verdict::<ROW>((number, thread), shift, me)?;
        Some(match (others, verdict) {
            (Others::Blocks, _) | (_, Verdict::Elsewhere | Verdict::Block) => false,
            (_, Verdict::Before) => true,
            (Others::Block | Others::Warp, Verdict::Warp) => false,
            // What all lanes know of each other was looked at for the verdict.
            (Others::None, Verdict::Warp) => Self::is_mine::<ROW>(thread, shift, me)?,
            (_, Verdict::Operation) if ROW => return None,
            (_, Verdict::Operation) => {
                self.is_particular = true;
                self.is_after_operation(number, thread, me)
            }
        })
    }

    #[inline(never)]
    fn is_after_operation(&self, number: u32, thread: u32, me: Me) -> bool {
        let entry = self.entries.entry(number);
        if entry.block != self.own.block {
            return false;
        }
        let operation = entry.operation.and_then(|operation| self.operations.get(operation));
        let (lane, warp) = (thread % WARP as u32, (me.thread / WARP as u32) as usize);
        let Some((operation, (step, epoch))) =
            operation.and_then(|operation| Some((operation, operation.seen_by(lane)?)))
        else {
            return false;
        };
        epoch < self.epoch || operation.warp == warp && (me.lanes == 1 << lane || self.warps[warp].met >= step)
    }

    /// Who else there is when those who look, who have not seen the end of `cell`, come to a word.
    fn others(&mut self, cell: Cell, me: Me) -> Others {
        let Some((number, thread, others)) = self.layout.parts(cell) else {
            return Others::None;
        };
        let entry = self.entries.entry(number);
        others.max(match () {
            () if entry.block != self.own.block => Others::Blocks,
            () if thread / WARP as u32 != me.thread / WARP as u32 || entry.epoch != self.own.epoch => Others::Block,
            () => Others::Warp,
        })
    }

    /// Notes that threads have read a row or a word.
    #[inline(always)]
    fn read<const ROW: bool>(&mut self, known: &mut Touched, shifts: &mut [u8; 3], me: Me) -> Option<()> {
        let (one, two) = ((known.reads[0], shifts[1]), (known.reads[1], shifts[2]));
        let own = (self.cell(me.thread), me.shift);
        let rest = if ROW { 0 } else { me.lanes & (me.lanes - 1) };
        if rest == 0 && one == own && two.0.is_empty() {
            return Some(());
        }
        let is_after_one = self.is_after::<ROW>(one, me)?;
        if !is_after_one && self.is_told::<ROW>(two, me)? {
            return Some(());
        }
        let second = match rest {
            0 => Cell::EMPTY,
            _ => {
                let lane = rest.trailing_zeros();
                let others = if rest & (rest - 1) == 0 {
                    Others::None
                } else {
                    Others::Warp
                };
                let thread = me.thread / WARP as u32 * WARP as u32 + lane;
                self.layout.one(self.number, thread, others)
            }
        };
        if is_after_one && self.is_after::<ROW>(two, me)? {
            known.reads = [own.0, second];
            (shifts[1], shifts[2]) = (me.shift, me.shift);
            return Some(());
        }
        if self.are_of_other_blocks(one.0, two.0) {
            // Whoever writes is in no order with one of them.
            return Some(());
        }
        let mut reads = [one, two];
        self.add_read::<ROW>(&mut reads, own, me)?;
        if !second.is_empty() {
            self.add_read::<ROW>(&mut reads, (second, me.shift), me)?;
        }
        known.reads = reads.map(|(cell, _)| cell);
        (shifts[1], shifts[2]) = (reads[0].1, reads[1].1);
        Some(())
    }

    /// Whether a cell stands for more threads of all this block, or of all this warp, that have read as late as this one.
    #[inline(always)]
    fn is_told<const ROW: bool>(&mut self, (cell, shift): Span, me: Me) -> Option<bool> {
        Some(match self.layout.parts(cell) {
            Some((number, thread, Others::Block)) => {
                let verdict = self.verdict::<ROW>((number, thread), shift, me)?;
                matches!(verdict, Verdict::Block | Verdict::Warp)
            }
            Some((number, thread, Others::Warp)) => self.verdict::<ROW>((number, thread), shift, me)? == Verdict::Warp,
            Some((.., Others::None | Others::Blocks)) | None => false,
        })
    }

    /// Whether two blocks have read, neither of which is this one.
    #[inline(always)]
    fn are_of_other_blocks(&mut self, one: Cell, two: Cell) -> bool {
        let (Some((one, ..)), Some((two, ..))) = (self.layout.parts(one), self.layout.parts(two)) else {
            return false;
        };
        self.seen(one).class == Class::Elsewhere
            && self.seen(two).class == Class::Elsewhere
            && self.entries.entry(one).block != self.entries.entry(two).block
    }

    /// One more who comes to what has readers. Where two blocks have read, one of each is named; else two threads.
    fn add_read<const ROW: bool>(&mut self, reads: &mut [Span; 2], own: Span, me: Me) -> Option<()> {
        let Some((number, thread, others)) = self.layout.parts(own.0) else {
            return Some(());
        };
        if let Some(free) = reads.iter().position(|(cell, _)| cell.is_empty()) {
            if free == 1 && self.are_one_thread::<ROW>(reads[0], own)? {
                reads[0] = self.joined::<ROW>(reads[0], own)?;
            } else {
                reads[free] = own;
            }
            return Some(());
        }
        // Whoever comes after this one comes after those, too.
        if others == Others::None {
            let one = Me {
                thread,
                lanes: 1 << (thread % WARP as u32),
                ..me
            };
            for before in &mut *reads {
                if self.is_after::<ROW>(*before, one)? {
                    *before = own;
                    return Some(());
                }
            }
        }
        for read in &mut *reads {
            if self.are_one_thread::<ROW>(*read, own)? {
                *read = self.joined::<ROW>(*read, own)?;
                return Some(());
            }
        }
        let here = self.entries.entry(number).block;
        let block = |(cell, _): Span| {
            self.layout
                .parts(cell)
                .map(|(number, ..)| self.entries.entry(number).block)
        };
        let [one, two] = *reads;
        match (block(one), block(two)) {
            (first, second) if first == second && Some(here) == first => reads[1] = self.joined::<ROW>(two, own)?,
            (first, second) if first == second => *reads = [self.joined::<ROW>(one, two)?, own],
            (first, _) if Some(here) == first => reads[0] = self.joined::<ROW>(one, own)?,
            (_, second) if Some(here) == second => reads[1] = self.joined::<ROW>(two, own)?,
            _ => {}
        }
        Some(())
    }

    /// The later of two cells of one block, which then stands for the other as well.
    fn joined<const ROW: bool>(&self, old: Span, new: Span) -> Option<Span> {
        let (Some((first, one, before)), Some((second, other, now))) =
            (self.layout.parts(old.0), self.layout.parts(new.0))
        else {
            return Some(new);
        };
        let (first, second) = (self.entries.entry(first), self.entries.entry(second));
        let between = match () {
            () if first.block != second.block => Others::Blocks,
            () if first.epoch != second.epoch => Others::Block,
            () => {
                let warp = |(thread, shift): (u32, u8)| {
                    let (first, last) = Self::threads::<ROW>(thread, shift);
                    (first / WARP as u32 == last / WARP as u32).then_some(first / WARP as u32)
                };
                match (warp((one, old.1))?, warp((other, new.1))?) {
                    (one, other) if one != other => Others::Block,
                    _ if !ROW && one == other => Others::None,
                    _ if ROW && Self::are_same((one, old.1), (other, new.1))? => Others::None,
                    _ => Others::Warp,
                }
            }
        };
        Some((self.layout.with(new.0, before.max(now).max(between)), new.1))
    }

    /// Whether a cell names the thread that looks.
    fn is_own(&self, cell: Cell, me: Me) -> bool {
        self.layout.parts(cell).is_some_and(|(number, thread, _)| {
            self.entries.entry(number).block == self.own.block
                && Self::is_mine::<false>(thread, ONE_THREAD, me) == Some(true)
        })
    }

    /// Whether two cells name one thread.
    fn are_one_thread<const ROW: bool>(&self, one: Span, other: Span) -> Option<bool> {
        let (Some((first, thread, _)), Some((second, same, _))) =
            (self.layout.parts(one.0), self.layout.parts(other.0))
        else {
            return Some(false);
        };
        let are_same = match ROW {
            true => Self::are_same((thread, one.1), (same, other.1))?,
            false => thread == same,
        };
        if !are_same || first == second {
            return Some(are_same);
        }
        let (one, other) = (self.entries.entry(first), self.entries.entry(second));
        Some((one.block, one.operation) == (other.block, other.operation))
    }

    fn is_weaker(&self, cell: Cell) -> bool {
        let entry = self.layout.parts(cell).map(|(number, ..)| self.entries.entry(number));
        entry.is_some_and(|entry| entry.kind.strong < self.own.kind.strong)
    }

    /// Whether these threads, by an atomic, have read what a cell says was written, and all that it stands for.
    #[inline(always)]
    fn has_read(&mut self, cell: Cell) -> bool {
        self.own.kind.direction == Direction::Atomic
            && self
                .layout
                .parts(cell)
                .is_some_and(|(number, _, others)| others == Others::None && self.seen(number).is_strong)
    }

    /// A cell and these threads are in no order: notes a race, if it is one. Whether it was forgiven.
    #[inline(always)]
    fn compare(&mut self, cell: Cell, me: Me, at: (u64, usize)) -> bool {
        let Some((number, thread, others)) = self.layout.parts(cell) else {
            return false;
        };
        self.is_particular = true;
        !self.seen(number).is_strong && self.judge((number, thread, others), me, at)
    }

    #[cold]
    #[inline(never)]
    fn judge(&self, (number, thread, others): (u32, u32, Others), me: Me, at: (u64, usize)) -> bool {
        let other = self.entries.entry(number);
        let (warp, lane) = (thread / WARP as u32, (thread % WARP as u32) as usize);
        let own_warp = me.thread / WARP as u32;
        let is_here = other.block == self.own.block && warp == own_warp && other.operation.is_none();
        let own = (0..WARP).find(|own| me.lanes >> own & 1 == 1 && (!is_here || *own != lane));
        let (their, own) = match own {
            Some(own) => (Some(lane), own),
            // The cell names the one who looks, who is not alone there.
            None if others != Others::None => (None, me.lanes.trailing_zeros() as usize),
            None => return false,
        };
        let party = |entry: &Entry, warp: u32| ledger::Entry {
            block: entry.block,
            cluster: entry.block,
            warp,
            step: entry.step,
            site: entry.site,
            kind: entry.kind,
            operation: entry.operation,
        };
        let judged = |access: &Access<'_>| {
            let pair = Pair {
                other: &party(other, warp),
                own: &party(&self.own, own_warp),
                is_one: number == self.number && warp == own_warp,
                lanes: (their, own),
                lacks_fence: false,
                shared: self.shared.map(|start| (self.own.block, at.0.wrapping_sub(start))),
            };
            self.detector.judge(&pair, at, access)
        };
        match self.told {
            Told::Lanes(access) => judged(access),
            Told::Rows(rows, first) => rows.of_warp(own_warp as usize - first, judged),
        }
    }
}
