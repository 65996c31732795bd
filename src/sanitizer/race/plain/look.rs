//! How an access of a plain kernel lies to those that memory knows, and what memory knows then.
//!
//! Bands, rows and words are looked at by the same functions: `SPAN` says which. Of a band or a row each word is touched by another
//! thread, so its answer may differ from word to word; it is then `None`, nothing has changed, and its parts are looked at.
//!
//! [`order`] says how an entry's accesses lie to those of who looks, [`readers`] keeps who has read.

mod order;
mod readers;

use crate::isa::lanes::WARP;
use crate::simt::observe::{Access, Direction, RowAccess};

use super::super::Detector;
use super::super::clock::Step;
use super::super::judge::Pair;
use super::super::ledger;
use super::block::{Entry, Operations, Warp};
use super::cell::{Cell, Layout, ONE_THREAD, Others, Touched};
use super::runs::Run;
use super::table::{BAND, ROW, Table, Whole};
use super::words::{Numbers, WORDS};
use order::Memory;

use order::Class;
pub use order::Memories;
use readers::Readers;

/// The span of a word, or of a byte of one.
const WORD: usize = 0;

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
    /// Of reads that were put off: nobody had written there before, so they race with nothing yet.
    Past,
}

/// Who touches a band, a row, or a word.
#[derive(Clone, Copy)]
struct Me {
    thread: u32,
    shift: u8,
    /// Of a word: lanes of the thread's warp.
    lanes: u32,
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
    /// Barriers of the block until now, and the last step in which all lanes of a warp have met.
    pub epoch: u32,
    pub met: Step,
    pub told: Told<'a>,
    /// Start of the block's shared memory, if it is that which they touch.
    pub shared: Option<u64>,
    memory: &'a mut Memory,
    /// What has come of looking at a word was not by the order of its entries alone.
    is_particular: bool,
    /// All that the last run has read says so much of its readers already that no thread of the block has to add to it.
    pub is_told: bool,
    /// Nor has a thread of any other block, and nobody has written it.
    pub is_settled: bool,
}

/// A cell, and the shift by which its threads follow each other in a row or a band.
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
        (epoch, met): (u32, Step),
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
            met,
            told,
            shared,
            memory,
            is_particular: false,
            is_told: false,
            is_settled: false,
        }
    }

    /// Looks at what they touch of a table that begins at `base`: `run` lies within it but for what `from` and `to` cut off.
    #[inline(always)]
    pub fn run(&mut self, table: &mut Table, stamp: u32, base: u64, run: &Run, (from, to): (u64, u64)) {
        let first = run.address.wrapping_sub(base) as usize;
        let (at, to) = ((from - base) as usize, (to - base) as usize);
        if run.bytes == 4
            && at.is_multiple_of(4)
            && let Some(words) = table.words(at / ROW, stamp)
        {
            let (lanes, at) = (run.lanes.unwrap_or(1 << (run.thread % WARP as u32)), at % ROW / 4);
            let mut known = words.get(at);
            self.word(&mut known, (run.thread, lanes), (run.address, 4));
            words.put(at, known);
            return;
        }
        // Strong accesses are told from weak ones word by word.
        if run.lanes.is_none() && self.own.kind.strong.is_none() && to - at >= ROW {
            return self.bands(table, stamp, (base, first), run, (at, to));
        }
        self.rows(table, stamp, (base, first), run, (at, to));
    }

    /// Who touches a whole band or row that begins with a byte.
    #[inline(always)]
    fn follows(run: &Run, first: usize, at: usize) -> Me {
        Me {
            thread: run.thread + (at.wrapping_sub(first) >> run.shift) as u32,
            shift: run.shift,
            lanes: 0,
        }
    }

    /// A run of which each thread has bytes of its own.
    #[inline(always)]
    fn bands(
        &mut self,
        table: &mut Table,
        stamp: u32,
        (base, first): (u64, usize),
        run: &Run,
        (mut at, to): (usize, usize),
    ) {
        while at < to {
            let number = at / BAND;
            let stop = to.min((number + 1) * BAND);
            let is_all = stop - at == BAND;
            let me = Self::follows(run, first, at);
            if is_all && self.whole::<BAND>(table.band(number, stamp), me).is_some() {
                at = stop;
                continue;
            }
            if self.rows(table, stamp, (base, first), run, (at, stop)) && is_all {
                // Nobody else is left in it.
                table.band(number, stamp).renew(self.cell(me.thread), run.shift);
            }
            at = stop;
        }
    }

    /// Whether nobody else is left in any of their rows.
    #[inline(always)]
    fn rows(
        &mut self,
        table: &mut Table,
        stamp: u32,
        (base, first): (u64, usize),
        run: &Run,
        (mut at, to): (usize, usize),
    ) -> bool {
        let is_by_rows = run.lanes.is_none() && self.own.kind.strong.is_none();
        let mut are_new = true;
        while at < to {
            let stop = to.min((at / ROW + 1) * ROW);
            let row = table.row(at / ROW, stamp);
            let is_all = is_by_rows && stop - at == ROW;
            let me = Self::follows(run, first, at);
            if is_all && let Some(is_new) = self.whole::<ROW>(row, me) {
                are_new &= is_new;
                at = stop;
                continue;
            }
            let is_new = self.words(table, (base, first), run, (at, stop)) && is_all;
            if is_new {
                table.row(at / ROW, stamp).renew(self.cell(me.thread), run.shift);
            }
            are_new &= is_new;
            at = stop;
        }
        are_new
    }

    /// A band or a row, all of which is touched, as long as it is whole: what [`Self::touch`] says.
    #[inline(always)]
    fn whole<const SPAN: usize>(&mut self, known: &mut Whole, me: Me) -> Option<bool> {
        match known.is_whole {
            true => self.touch::<SPAN>(&mut known.touched, &mut known.shifts, me, (0, 0)),
            false => None,
        }
    }

    /// Likewise of words of a row.
    #[inline(always)]
    fn words(&mut self, table: &mut Table, (base, first): (u64, usize), run: &Run, (from, to): (usize, usize)) -> bool {
        let thread = |at: usize| run.thread + (at.wrapping_sub(first) >> run.shift) as u32;
        let lanes = |thread: u32| run.lanes.unwrap_or(1 << (thread % WARP as u32));
        let is_by_words = run.shift >= 2 && (from | to).is_multiple_of(4);
        let mut are_new = true;
        if let Some(words) = table.apart(from / ROW).filter(|_| is_by_words) {
            let row = from / ROW * ROW;
            let (mut word, end) = (from % ROW / 4, (to - 1) % ROW / 4 + 1);
            while word < end {
                let own = thread(row + word * 4);
                let mut by: Numbers = [0; WORDS];
                for (i, by) in by.iter_mut().enumerate() {
                    *by = thread(row + i * 4).wrapping_sub(own);
                }
                // Up to where the threads are of one warp.
                let warp = match run.shift {
                    ONE_THREAD => end,
                    shift => {
                        let after = ((own / WARP as u32 + 1) * WARP as u32 - run.thread) as usize;
                        end.min(first.wrapping_add(after << shift).wrapping_sub(row) / 4)
                    }
                };
                if !self.own.kind.writes() && end - word > 1 {
                    let alike = words.alike(word, warp, self.layout);
                    if alike - word > 1 && self.tells(words.get(word), own) {
                        are_new = false;
                        word = alike;
                        continue;
                    }
                }
                let before = words.get(word);
                let mut known = before;
                self.is_particular = false;
                let place = (base + (row + word * 4) as u64, 4);
                are_new &= self.word(&mut known, (own, lanes(own)), place) == Some(true);
                let mut next = word + 1;
                // Neighbours are mostly of neighbours: what comes of looking at them is the same, but for the numbers of threads.
                if next < warp && !self.is_particular {
                    next = words.follow(word, warp, &by);
                    if known != before {
                        words.fill(word, next, known, &by);
                    }
                } else {
                    words.put(word, known);
                }
                word = next;
            }
            return are_new;
        }
        table.bytes((from, to), run.shift >= 2, &mut |known, at, size| {
            let own = thread(at);
            are_new &= self.word(known, (own, lanes(own)), (base + at as u64, size)) == Some(true);
        });
        are_new
    }

    /// Whether a word says so much of its readers that this reader, and those of his warp, add nothing, and is read after it was
    /// written; likewise any that names the same entries and warps.
    #[inline(always)]
    fn tells(&mut self, known: Touched, thread: u32) -> bool {
        let me = Me {
            thread,
            shift: ONE_THREAD,
            lanes: 1 << (thread % WARP as u32),
        };
        if let Some((number, ..)) = self.layout.parts(known.writes)
            && self.seen(number).class != Class::Before
        {
            return false;
        }
        match self.is_told::<WORD>((known.reads[1], ONE_THREAD), me) {
            Some(Some(readers)) => {
                self.is_told &= readers != Readers::More;
                self.is_settled = false;
                true
            }
            Some(None) | None => false,
        }
    }

    /// A word, or a byte of one, that lanes of a thread's warp touch.
    #[inline(always)]
    fn word(&mut self, known: &mut Touched, (thread, lanes): (u32, u32), at: (u64, usize)) -> Option<bool> {
        let me = Me {
            thread,
            shift: ONE_THREAD,
            lanes,
        };
        self.touch::<WORD>(known, &mut [ONE_THREAD; 3], me, at)
    }

    #[inline(always)]
    fn cell(&self, thread: u32) -> Cell {
        self.layout.one(self.number, thread, Others::None)
    }

    /// Notes that a band, a row or a word is touched, and races that are found. `Some(true)`: nobody but `me` is left there.
    #[inline(always)]
    fn touch<const SPAN: usize>(
        &mut self,
        known: &mut Touched,
        shifts: &mut [u8; 3],
        me: Me,
        at: (u64, usize),
    ) -> Option<bool> {
        let kind = self.own.kind;
        if SPAN == WORD && kind.direction == Direction::Atomic && self.follows_atomic(known) {
            known.writes = self.cell(me.thread);
            return Some(false);
        }
        let mut is_forgiven = false;
        if !self.is_after::<SPAN>((known.writes, shifts[0]), me)? {
            if SPAN != WORD {
                return None;
            }
            is_forgiven = self.compare(known.writes, me, at);
        }
        if !kind.writes() {
            if kind.strong.is_some() {
                // A weak write may be kept where reads are.
                for cell in known.reads {
                    if !self.is_after::<SPAN>((cell, ONE_THREAD), me)? {
                        self.compare(cell, me, at);
                    }
                }
            }
            let readers = self.read::<SPAN>(known, shifts, me)?;
            self.is_told &= readers != Readers::More;
            self.is_settled &= readers == Readers::Blocks && known.writes.is_empty();
            return Some(false);
        }
        let mut after_reads = true;
        for (cell, shift) in known.reads.into_iter().zip([shifts[1], shifts[2]]) {
            if !self.is_after::<SPAN>((cell, shift), me)? {
                if SPAN != WORD {
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
                let _ = self.add_read::<WORD>(&mut reads, (before, ONE_THREAD), me);
                known.reads = reads.map(|(cell, _)| cell);
                own
            }
            () if self.has_read(before) || self.is_after::<WORD>((before, ONE_THREAD), me)? => own,
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

    /// Whether a cell names the thread that looks.
    fn is_own(&self, cell: Cell, me: Me) -> bool {
        self.layout.parts(cell).is_some_and(|(number, thread, _)| {
            self.entries.entry(number).block == self.own.block
                && Self::is_mine::<WORD>(thread, ONE_THREAD, me) == Some(true)
        })
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
        // Others that do the same may be in a race as well.
        self.is_told = false;
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
            Told::Past => false,
        }
    }
}
