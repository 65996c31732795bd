//! What plain kernels have done to memory: who wrote each word last, and two who have read it since.
//!
//! Mostly threads that follow each other touch what lies side by side. A band of memory is therefore one record as long as that is
//! true of all who have touched it. When it is not, it becomes a record for each row, and a row likewise one for each word.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::{Mutex, MutexGuard};

use crate::isa::lanes::WARP;
use crate::sanitizer::directory::{Directory, Remembered};

/// Bytes of a band: what four warps touch by words.
pub const BAND: usize = 512;
/// Bytes of a row: what half a warp touches by words.
pub const ROW: usize = 64;
const ROWS: usize = BAND / ROW;
const WORD: usize = 4;
const WORDS: usize = ROW / WORD;
const PAGE: u64 = 4096;

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

/// What all of a row says, or of a band, as long as it is whole.
#[derive(Clone, Copy)]
pub struct Whole {
    /// The threads are those of its first byte.
    pub touched: Touched,
    /// Of each of those cells: the thread of byte `b` is `b >> shift` behind the first.
    pub shifts: [u8; 3],
    pub is_whole: bool,
}

impl Whole {
    const EMPTY: Whole = Whole {
        touched: Touched {
            writes: Cell::EMPTY,
            reads: [Cell::EMPTY; 2],
        },
        shifts: [ONE_THREAD; 3],
        is_whole: true,
    };

    /// Threads that follow each other have written it, and nobody has read it since.
    #[inline(always)]
    pub fn renew(&mut self, writes: Cell, shift: u8) {
        *self = Whole {
            touched: Touched {
                writes,
                reads: [Cell::EMPTY; 2],
            },
            shifts: [shift; 3],
            is_whole: true,
        };
    }

    /// What a part of it says that begins with this byte.
    #[inline(always)]
    fn part(&self, byte: usize) -> Touched {
        let at = |cell: Cell, shift: u8| match cell.is_empty() {
            true => cell,
            // The thread is the lowest part of it, and has room for all that there are.
            false => Cell(cell.0 + (byte >> shift) as u32),
        };
        let [writes, one, two] = self.shifts;
        Touched {
            writes: at(self.touched.writes, writes),
            reads: [at(self.touched.reads[0], one), at(self.touched.reads[1], two)],
        }
    }

    /// Some thread has less than a word of it.
    fn is_fine(&self) -> bool {
        let Touched {
            writes,
            reads: [one, two],
        } = self.touched;
        [writes, one, two]
            .iter()
            .zip(self.shifts)
            .any(|(cell, shift)| !cell.is_empty() && shift < 2)
    }
}

#[derive(Clone, Copy)]
struct Band {
    whole: Whole,
    /// What a band says, and what its rows do, counts if this is the table's.
    stamp: u32,
}

impl Band {
    fn empty(stamp: u32) -> Band {
        Band {
            whole: Whole::EMPTY,
            stamp,
        }
    }
}

#[derive(Clone, Copy)]
struct Row {
    whole: Whole,
    /// Words whose bytes have been touched one by one.
    split: u16,
}

const EMPTY_ROW: Row = Row {
    whole: Whole::EMPTY,
    split: 0,
};

/// What is known of a piece of memory.
#[derive(Default)]
pub struct Table {
    bands: Vec<Band>,
    /// Of bands that are not whole; empty if there never was one.
    rows: Vec<Row>,
    /// Of rows that are not whole, likewise.
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
        let bands = bytes.div_ceil(BAND);
        if self.bands.len() < bands {
            // No table has this stamp.
            self.bands.resize(bands, Band::empty(0));
            if !self.rows.is_empty() {
                self.rows.resize(bands * ROWS, EMPTY_ROW);
            }
            if !self.words.is_empty() {
                self.words.resize(bands * ROWS * WORDS, Touched::default());
            }
            if !self.bytes.is_empty() {
                self.bytes.resize(bands * BAND, Touched::default());
            }
        }
    }

    /// Nothing that it says counts.
    pub fn clear(&mut self) {
        self.bands.fill(Band::empty(0));
    }

    #[inline(always)]
    pub fn band(&mut self, number: usize, stamp: u32) -> &mut Whole {
        let band = &mut self.bands[number];
        if band.stamp != stamp {
            *band = Band::empty(stamp);
        }
        &mut band.whole
    }

    /// A row of a band that is not whole any more.
    #[inline(always)]
    pub fn row(&mut self, number: usize, stamp: u32) -> &mut Whole {
        if self.band(number / ROWS, stamp).is_whole {
            self.part_band(number / ROWS);
        }
        &mut self.rows[number].whole
    }

    /// A word of a row that is looked at word by word, if it is one, and not split.
    #[inline(always)]
    pub fn word(&mut self, at: usize, stamp: u32) -> Option<&mut Touched> {
        let band = &self.bands[at / BAND];
        if band.stamp != stamp || band.whole.is_whole || !at.is_multiple_of(WORD) {
            return None;
        }
        let row = &self.rows[at / ROW];
        match !row.whole.is_whole && row.split == 0 {
            true => Some(&mut self.words[at / WORD]),
            false => None,
        }
    }

    /// A band that is to be looked at row by row.
    #[inline(never)]
    fn part_band(&mut self, number: usize) {
        if self.rows.is_empty() {
            self.rows.resize(self.bands.len() * ROWS, EMPTY_ROW);
        }
        let whole = &mut self.bands[number].whole;
        whole.is_whole = false;
        for (i, row) in self.rows[number * ROWS..][..ROWS].iter_mut().enumerate() {
            *row = Row {
                whole: Whole {
                    touched: whole.part(i * ROW),
                    is_whole: true,
                    ..*whole
                },
                split: 0,
            };
        }
    }

    /// A row that is to be looked at word by word.
    #[inline(never)]
    fn part_row(&mut self, number: usize) {
        if self.words.is_empty() {
            self.words.resize(self.bands.len() * ROWS * WORDS, Touched::default());
        }
        let row = &mut self.rows[number];
        row.whole.is_whole = false;
        row.split = 0;
        let whole = row.whole;
        if whole.is_fine() {
            row.split = u16::MAX;
            if self.bytes.is_empty() {
                self.bytes.resize(self.bands.len() * BAND, Touched::default());
            }
            for (byte, known) in self.bytes[number * ROW..][..ROW].iter_mut().enumerate() {
                *known = whole.part(byte);
            }
            return;
        }
        let words = &mut self.words[number * WORDS..][..WORDS];
        if whole.touched == Touched::default() {
            words.fill(whole.touched);
            return;
        }
        for (word, known) in words.iter_mut().enumerate() {
            *known = whole.part(word * WORD);
        }
    }

    /// Shows what is known of a part of a row of a band that is not whole, from `from` to `to` in the table: words where `is_by_words`, or else bytes, and
    /// bytes of words that are split.
    #[inline(always)]
    pub fn parts(
        &mut self,
        (from, to): (usize, usize),
        is_by_words: bool,
        mut act: impl FnMut(&mut Touched, usize, usize),
    ) {
        let number = from / ROW;
        if self.rows[number].whole.is_whole {
            self.part_row(number);
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
            self.bytes.resize(self.bands.len() * BAND, Touched::default());
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
                *row = Whole::EMPTY;
            } else {
                self.parts((at, stop), true, |touched, _, _| *touched = Touched::default());
            }
            at = stop;
        }
    }

    /// Shows each cell that counts.
    fn cells(&mut self, stamp: u32, act: &mut dyn FnMut(&mut Cell)) {
        for (number, band) in self
            .bands
            .iter_mut()
            .enumerate()
            .filter(|(_, band)| band.stamp == stamp)
        {
            if band.whole.is_whole {
                band.whole.touched.each(act);
                continue;
            }
            for number in number * ROWS..(number + 1) * ROWS {
                let row = &mut self.rows[number];
                if row.whole.is_whole {
                    row.whole.touched.each(act);
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

/// What is known of a page of memory that blocks have in common.
pub struct Page {
    table: Mutex<Box<Table>>,
    /// Words that nobody has written and that two blocks have read: another reader adds nothing to what they say. A word is taken
    /// out before it is written.
    settled: [AtomicU64; PAGE as usize / WORD / 64],
}

impl Page {
    fn new() -> Page {
        Page {
            table: Mutex::new(pool::page()),
            settled: [const { AtomicU64::new(0) }; PAGE as usize / WORD / 64],
        }
    }

    /// The words of a part of the page, those that it has less than all of among them: by which of `settled` they are kept, and bits
    /// of that.
    #[inline(always)]
    fn words((from, to): (u64, u64)) -> impl Iterator<Item = (usize, u64)> {
        let word = |byte: u64| (byte % PAGE) as usize / WORD;
        let (first, last) = (word(from), word(to - 1));
        (first / 64..=last / 64).map(move |number| {
            let (low, high) = (first.max(number * 64) % 64, last.min(number * 64 + 63) % 64);
            (number, u64::MAX >> (63 - (high - low)) << low)
        })
    }

    #[inline(always)]
    fn is_settled(&self, part: (u64, u64)) -> bool {
        Page::words(part).all(|(number, bits)| !self.settled[number].load(Relaxed) & bits == 0)
    }

    #[inline(always)]
    fn settle(&self, part: (u64, u64)) {
        for (number, bits) in Page::words(part) {
            self.settled[number].fetch_or(bits, Relaxed);
        }
    }

    #[inline(always)]
    fn unsettle(&self, part: (u64, u64)) {
        for (number, bits) in Page::words(part) {
            if self.settled[number].load(Relaxed) & bits != 0 {
                self.settled[number].fetch_and(!bits, Relaxed);
            }
        }
    }
}

/// What is known of memory that blocks have in common.
pub struct Shadow {
    pages: Directory<Page>,
    stamp: u32,
}

/// Looks at one page after the other.
pub struct Cursor<'a> {
    shadow: &'a Shadow,
    remembered: &'a mut Remembered,
    /// The page's number, and what nobody else touches meanwhile.
    held: Option<(u64, MutexGuard<'a, Box<Table>>)>,
}

/// What came of looking at a part of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Two other blocks have read all of it, and nobody has written it.
    Yes,
    No,
}

impl Cursor<'_> {
    /// The pages of a range, one after the other: each with the stamp and the address at which it begins, and the part of the range.
    /// Whether all of it was settled before.
    #[inline(always)]
    pub fn pages(
        &mut self,
        (address, bytes): (u64, u64),
        writes: bool,
        mut act: impl FnMut(&mut Table, u32, u64, (u64, u64)) -> Settled,
    ) -> bool {
        let end = address.saturating_add(bytes);
        let (mut at, mut were_settled) = (address, true);
        while at < end {
            let number = at / PAGE;
            let part = (at, end.min((number + 1) * PAGE));
            at = part.1;
            let shadow = self.shadow;
            let page = shadow.pages.page(self.remembered, number, Page::new);
            if !writes && page.is_settled(part) {
                continue;
            }
            were_settled = false;
            if self.held.as_ref().is_none_or(|(held, _)| *held != number) {
                // One page at a time: two cursors can never wait for each other.
                self.held = None;
                self.held = Some((number, page.table.lock()));
            }
            let Some((_, table)) = &mut self.held else {
                unreachable!("it was put there")
            };
            if writes {
                page.unsettle(part);
            }
            let is_of_words = (part.0 | part.1).is_multiple_of(WORD as u64);
            if act(table, shadow.stamp, number * PAGE, part) == Settled::Yes && is_of_words {
                page.settle(part);
            }
        }
        were_settled
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
        pool::leave(self.pages.take().map(|page| page.table.into_inner()));
    }
}

impl Shadow {
    pub fn new() -> Shadow {
        Shadow {
            pages: Directory::new(),
            stamp: pool::stamp(),
        }
    }

    pub fn cursor<'a>(&'a self, remembered: &'a mut Remembered) -> Cursor<'a> {
        Cursor {
            shadow: self,
            remembered,
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
            if let Some(page) = self.pages.get(number) {
                let (mut table, base) = (page.table.lock(), number * PAGE);
                page.unsettle((at, stop));
                table.forget((at - base) as usize, (stop - base) as usize, self.stamp);
            }
            at = stop;
        }
    }

    /// Entries are numbered anew, as [`Table::renumber`] says.
    pub fn renumber(&mut self, layout: Layout, mut keep: impl FnMut(u32) -> u32) {
        for (_, page) in self.pages.iter() {
            page.table.lock().renumber((layout, self.stamp), &mut keep);
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
