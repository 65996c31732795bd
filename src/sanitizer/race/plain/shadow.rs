//! What plain kernels have done to memory: who wrote each word last, and two who have read it since.
//!
//! Mostly threads that follow each other touch what lies side by side. A row of memory is therefore one record as long as that is
//! true of all who have touched it, and becomes a record for each word when it is not.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use crate::isa::lanes::WARP;
use crate::sanitizer::spread::Spread;

/// Bytes of a row: what half a warp touches by words.
pub const ROW: usize = 64;
const WORD: usize = 4;
const WORDS: usize = ROW / WORD;
const PAGE: u64 = 4096;
const SHARDS: usize = 64;

/// A shift by which all bytes are one thread's.
pub const ONE_THREAD: u8 = 31;

/// Who else a cell stands for, besides the thread that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Others {
    None,
    /// More lanes of its warp, in the entry's step or before.
    Warp,
    /// More warps of its block, since the same barrier.
    Block,
    /// More blocks.
    Blocks,
}

/// Nothing, or an entry, a thread of its block, and who else there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell(u32);

impl Cell {
    pub const EMPTY: Cell = Cell(0);

    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// How many bits of a cell say which thread of the block it is, those of a lane at least: large blocks are few.
#[derive(Clone, Copy)]
pub struct Layout(u32);

impl Layout {
    pub fn of(threads: u32) -> Layout {
        Layout(threads.next_power_of_two().trailing_zeros().max(5))
    }

    /// Entries of which cells can tell.
    pub fn most_entries(self) -> usize {
        (1 << (30 - self.0)) - 1
    }

    #[inline(always)]
    pub fn one(self, entry: u32, thread: u32, others: Others) -> Cell {
        Cell((entry + 1) << (self.0 + 2) | (others as u32) << self.0 | thread)
    }

    /// Entry, thread, and who else; `None`: nobody.
    #[inline(always)]
    pub fn parts(self, cell: Cell) -> Option<(u32, u32, Others)> {
        if cell.0 == 0 {
            return None;
        }
        let others = match cell.0 >> self.0 & 3 {
            0 => Others::None,
            1 => Others::Warp,
            2 => Others::Block,
            _ => Others::Blocks,
        };
        Some(((cell.0 >> (self.0 + 2)) - 1, cell.0 & ((1 << self.0) - 1), others))
    }

    #[inline(always)]
    pub fn with(self, cell: Cell, others: Others) -> Cell {
        Cell(cell.0 & !(3 << self.0) | (others as u32) << self.0)
    }

    /// The cell of the same thread with another number of its entry.
    fn renumbered(self, cell: Cell, entry: u32) -> Cell {
        let low = (1 << (self.0 + 2)) - 1;
        Cell((entry + 1) << (self.0 + 2) | cell.0 & low)
    }
}

/// Who touched a word, a byte, or a row.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Touched {
    /// Whoever wrote it, and may be in no order with somebody yet to come.
    pub writes: Cell,
    /// Likewise: two threads that have read it, the second with others.
    pub reads: [Cell; 2],
}

impl Touched {
    /// What a word says whose threads are each so many (0 or 1) behind those of this one.
    #[inline(always)]
    pub fn behind(self, by: u32) -> Touched {
        let next = |cell: Cell| Cell(cell.0 + if cell.is_empty() { 0 } else { by });
        Touched {
            writes: next(self.writes),
            reads: [next(self.reads[0]), next(self.reads[1])],
        }
    }

    /// Whether a thread is the first of its warp.
    #[inline(always)]
    pub fn begins_warps(self) -> bool {
        let is_first = |cell: Cell| !cell.is_empty() && cell.0.is_multiple_of(WARP as u32);
        is_first(self.writes) | is_first(self.reads[0]) | is_first(self.reads[1])
    }

    fn each(&mut self, act: &mut dyn FnMut(&mut Cell)) {
        act(&mut self.writes);
        self.reads.iter_mut().for_each(act);
    }
}

#[derive(Clone, Copy)]
pub struct Row {
    /// What all of it says as long as it is whole. The threads are those of its first byte.
    pub touched: Touched,
    /// Of each of those cells: the thread of byte `b` is `b >> shift` behind the first.
    pub shifts: [u8; 3],
    pub is_whole: bool,
    /// Words whose bytes have been touched one by one.
    split: u16,
    /// What a row says counts if this is the table's.
    stamp: u32,
}

impl Row {
    fn empty(stamp: u32) -> Row {
        Row {
            touched: Touched::default(),
            shifts: [ONE_THREAD; 3],
            is_whole: true,
            split: 0,
            stamp,
        }
    }
}

/// What is known of a piece of memory.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
    /// Of rows that are not whole; empty if there never was one.
    words: Vec<Touched>,
    /// Of words that are split, likewise.
    bytes: Vec<Touched>,
}

impl Table {
    pub fn new(bytes: usize) -> Table {
        let mut table = Table::default();
        table.reach(bytes);
        table
    }

    /// It is to have room for so many bytes.
    pub fn reach(&mut self, bytes: usize) {
        let rows = bytes.div_ceil(ROW);
        if self.rows.len() < rows {
            // No table has this stamp.
            self.rows.resize(rows, Row::empty(0));
            if !self.words.is_empty() {
                self.words.resize(rows * WORDS, Touched::default());
            }
            if !self.bytes.is_empty() {
                self.bytes.resize(rows * ROW, Touched::default());
            }
        }
    }

    /// No row says anything.
    pub fn clear(&mut self) {
        self.rows.fill(Row::empty(0));
    }

    #[inline(always)]
    pub fn row(&mut self, number: usize, stamp: u32) -> &mut Row {
        let row = &mut self.rows[number];
        if row.stamp != stamp {
            *row = Row::empty(stamp);
        }
        row
    }

    /// A word of a row that is looked at word by word, if it is one, and not split.
    #[inline(always)]
    pub fn word(&mut self, at: usize, stamp: u32) -> Option<&mut Touched> {
        let row = &self.rows[at / ROW];
        let is_one = row.stamp == stamp && !row.is_whole && row.split == 0 && at.is_multiple_of(WORD);
        match is_one {
            true => Some(&mut self.words[at / WORD]),
            false => None,
        }
    }

    /// A row that is to be looked at word by word.
    fn take_apart(&mut self, number: usize) {
        if self.words.is_empty() {
            self.words.resize(self.rows.len() * WORDS, Touched::default());
        }
        let row = &mut self.rows[number];
        row.is_whole = false;
        let (touched, shifts) = (row.touched, row.shifts);
        if touched == Touched::default() {
            row.split = 0;
            self.words[number * WORDS..][..WORDS].fill(touched);
            return;
        }
        let of = |byte: usize| {
            let at = |cell: Cell, shift: u8| match cell.is_empty() {
                true => cell,
                // The thread is the lowest part of it, and has room for all that a row has.
                false => Cell(cell.0 + (byte >> shift) as u32),
            };
            Touched {
                writes: at(touched.writes, shifts[0]),
                reads: [at(touched.reads[0], shifts[1]), at(touched.reads[1], shifts[2])],
            }
        };
        let cells = [touched.writes, touched.reads[0], touched.reads[1]];
        let is_fine = cells
            .iter()
            .zip(shifts)
            .any(|(cell, shift)| !cell.is_empty() && shift < 2);
        if is_fine {
            row.split = u16::MAX;
            if self.bytes.is_empty() {
                self.bytes.resize(self.rows.len() * ROW, Touched::default());
            }
            for (byte, known) in self.bytes[number * ROW..][..ROW].iter_mut().enumerate() {
                *known = of(byte);
            }
            return;
        }
        row.split = 0;
        for (word, known) in self.words[number * WORDS..][..WORDS].iter_mut().enumerate() {
            *known = of(word * WORD);
        }
    }

    /// Shows what is known of a part of a row, from `from` to `to` in the table: words where `is_by_words`, or else bytes, and
    /// bytes of words that are split.
    #[inline(always)]
    pub fn parts(
        &mut self,
        (from, to): (usize, usize),
        is_by_words: bool,
        mut act: impl FnMut(&mut Touched, usize, usize),
    ) {
        let number = from / ROW;
        if self.rows[number].is_whole {
            self.take_apart(number);
        }
        if is_by_words && self.rows[number].split == 0 && (from | to).is_multiple_of(WORD) {
            let (mut at, words) = (from, &mut self.words[from / WORD..to / WORD]);
            for known in words {
                act(known, at, WORD);
                at += WORD;
            }
        } else {
            self.bytes((from, to), is_by_words, &mut act);
        }
    }

    /// As [`Self::parts`], where there are bytes among them.
    #[inline(never)]
    fn bytes(
        &mut self,
        (from, to): (usize, usize),
        is_by_words: bool,
        act: &mut dyn FnMut(&mut Touched, usize, usize),
    ) {
        if self.bytes.is_empty() {
            self.bytes.resize(self.rows.len() * ROW, Touched::default());
        }
        let row = &mut self.rows[from / ROW];
        let mut at = from;
        while at < to {
            let word = at / WORD;
            let bit = 1 << (word % WORDS);
            let is_split = row.split & bit != 0;
            if is_by_words && !is_split && at.is_multiple_of(WORD) && at + WORD <= to {
                act(&mut self.words[word], at, WORD);
                at += WORD;
                continue;
            }
            if !is_split {
                row.split |= bit;
                self.bytes[word * WORD..][..WORD].fill(self.words[word]);
            }
            let stop = to.min((word + 1) * WORD);
            for (i, known) in self.bytes[at..stop].iter_mut().enumerate() {
                act(known, at + i, 1);
            }
            at = stop;
        }
    }

    /// Nothing is known of a range any more.
    fn forget(&mut self, from: usize, to: usize, stamp: u32) {
        let mut at = from;
        while at < to {
            let stop = to.min((at / ROW + 1) * ROW);
            let row = self.row(at / ROW, stamp);
            if stop - at == ROW {
                *row = Row::empty(stamp);
            } else {
                self.parts((at, stop), true, |touched, _, _| *touched = Touched::default());
            }
            at = stop;
        }
    }

    /// Shows each cell that counts.
    fn cells(&mut self, stamp: u32, act: &mut dyn FnMut(&mut Cell)) {
        for (number, row) in self.rows.iter_mut().enumerate().filter(|(_, row)| row.stamp == stamp) {
            if row.is_whole {
                row.touched.each(act);
                continue;
            }
            for word in 0..WORDS {
                let word_at = number * WORDS + word;
                match row.split >> word & 1 == 1 {
                    true => {
                        let bytes = &mut self.bytes[word_at * WORD..][..WORD];
                        bytes.iter_mut().for_each(|touched| touched.each(act));
                    }
                    false => self.words[word_at].each(act),
                }
            }
        }
    }

    /// Entries that cells still name, by their old numbers in `moved`: `keep` gives a new one to each that has none.
    pub fn renumber(&mut self, (layout, stamp): (Layout, u32), mut keep: impl FnMut(u32) -> u32) {
        self.cells(stamp, &mut |cell| {
            if let Some((entry, ..)) = layout.parts(*cell) {
                *cell = layout.renumbered(*cell, keep(entry));
            }
        });
    }
}

type Pages = HashMap<u64, Box<Table>, BuildHasherDefault<Spread>>;

/// What is known of memory that blocks have in common.
pub struct Shadow {
    shards: [Mutex<Pages>; SHARDS],
    stamp: u32,
}

/// A page at a time, which nobody else touches meanwhile.
pub struct Cursor<'a> {
    shadow: &'a Shadow,
    held: Option<(u64, MappedMutexGuard<'a, Table>)>,
}

impl Cursor<'_> {
    /// The pages of a range, one after the other: each with the stamp and the address at which it begins, and the part of the range.
    #[inline(always)]
    pub fn pages(&mut self, address: u64, bytes: u64, mut act: impl FnMut(&mut Table, u32, u64, (u64, u64))) {
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end {
            let number = at / PAGE;
            let stop = end.min((number + 1) * PAGE);
            let stamp = self.shadow.stamp;
            act(self.page(number), stamp, number * PAGE, (at, stop));
            at = stop;
        }
    }

    #[inline(always)]
    fn page(&mut self, number: u64) -> &mut Table {
        if self.held.as_ref().is_none_or(|(held, _)| *held != number) {
            // One shard at a time: two cursors can never wait for each other.
            self.held = None;
            let pages = self.shadow.shards[number as usize % SHARDS].lock();
            let page = MutexGuard::map(pages, |pages| &mut **pages.entry(number).or_insert_with(pool::page));
            self.held = Some((number, page));
        }
        match &mut self.held {
            Some((_, page)) => page,
            None => unreachable!("it was put there"),
        }
    }
}

/// Pages that grids have left: the next ones need not ask the system for them.
mod pool {
    use std::sync::atomic::{AtomicU32, Ordering};

    use parking_lot::Mutex;

    use super::{PAGE, Table};

    /// Pages that are kept, and those of them with records for words.
    const MOST: usize = 1 << 16;
    const MOST_WORDS: usize = 1 << 13;

    /// With how many of them have records for words.
    #[allow(
        clippy::vec_box,
        reason = "pages are handed on in the boxes in which shadows have them"
    )]
    static FREE: Mutex<(Vec<Box<Table>>, usize)> = Mutex::new((Vec::new(), 0));
    static STAMP: AtomicU32 = AtomicU32::new(1);

    /// Whatever pages say of other grids does not count.
    pub fn stamp() -> u32 {
        loop {
            let stamp = STAMP.fetch_add(1, Ordering::Relaxed);
            if stamp == 0 {
                // It begins anew: no page may be left that has seen the same.
                *FREE.lock() = (Vec::new(), 0);
            } else {
                return stamp;
            }
        }
    }

    pub fn page() -> Box<Table> {
        let mut free = FREE.lock();
        match free.0.pop() {
            Some(page) => {
                free.1 -= usize::from(!page.words.is_empty());
                page
            }
            None => {
                drop(free);
                Box::new(Table::new(PAGE as usize))
            }
        }
    }

    pub fn leave(pages: impl Iterator<Item = Box<Table>>) {
        let mut free = FREE.lock();
        for mut page in pages {
            if free.0.len() == MOST {
                return;
            }
            page.bytes = Vec::new();
            if free.1 == MOST_WORDS {
                page.words = Vec::new();
            }
            free.1 += usize::from(!page.words.is_empty());
            free.0.push(page);
        }
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        for pages in &mut self.shards {
            pool::leave(std::mem::take(pages.get_mut()).into_values());
        }
    }
}

impl Shadow {
    pub fn new() -> Shadow {
        Shadow {
            shards: std::array::from_fn(|_| Mutex::default()),
            stamp: pool::stamp(),
        }
    }

    pub fn cursor(&self) -> Cursor<'_> {
        Cursor {
            shadow: self,
            held: None,
        }
    }

    /// Nothing is known of a range any more.
    pub fn forget(&self, address: u64, bytes: u64) {
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end {
            let number = at / PAGE;
            let stop = end.min((number + 1) * PAGE);
            let mut pages = self.shards[number as usize % SHARDS].lock();
            if let Some(page) = pages.get_mut(&number) {
                let base = number * PAGE;
                page.forget((at - base) as usize, (stop - base) as usize, self.stamp);
            }
            at = stop;
        }
    }

    /// Entries are numbered anew, as [`Table::renumber`] says.
    pub fn renumber(&mut self, layout: Layout, mut keep: impl FnMut(u32) -> u32) {
        let stamp = self.stamp;
        for page in self.shards.iter_mut().flat_map(|pages| pages.get_mut().values_mut()) {
            page.renumber((layout, stamp), &mut keep);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_where_bytes_are_touched() {
        let mut table = Table::new(256);
        let mut seen = |from, to, is_by_words| {
            let mut seen = Vec::new();
            table.row(from / ROW, 1);
            table.parts((from, to), is_by_words, |_, at, size| seen.push((at, size)));
            seen
        };
        assert_eq!(seen(8, 16, true), [(8, 4), (12, 4)]);
        assert_eq!(seen(5, 7, true), [(5, 1), (6, 1)]);
        assert_eq!(seen(0, 8, true), [(0, 4), (4, 1), (5, 1), (6, 1), (7, 1)]);
        assert_eq!(seen(12, 16, false), [(12, 1), (13, 1), (14, 1), (15, 1)]);
    }

    #[test]
    fn a_row_taken_apart_names_the_thread_of_each_word() {
        let layout = Layout::of(256);
        let mut table = Table::new(64);
        let row = table.row(0, 1);
        row.touched.writes = layout.one(9, 32, Others::None);
        row.shifts[0] = 3;
        let mut threads = Vec::new();
        table.parts((0, 64), true, |known, _, _| {
            let (entry, thread, _) = layout.parts(known.writes).unwrap();
            assert!(entry == 9 && known.reads[0].is_empty());
            threads.push(thread);
        });
        assert_eq!(
            threads,
            [32, 32, 33, 33, 34, 34, 35, 35, 36, 36, 37, 37, 38, 38, 39, 39]
        );
    }
}
