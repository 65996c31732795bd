//! What plain kernels have done to a piece of memory: who wrote each word last, and two who have read it since.
//!
//! Mostly threads that follow each other touch what lies side by side. A band of memory is therefore one record as long as that is
//! true of all who have touched it. When it is not, it becomes a record for each row, and a row likewise one for each word.

use super::cell::{Cell, Layout, ONE_THREAD, Touched};
use super::words::{WORD, WORDS, Words};

/// Bytes of a band: what four warps touch by words.
pub const BAND: usize = 512;
/// Bytes of a row: what half a warp touches by words.
pub const ROW: usize = WORDS * WORD;
const ROWS: usize = BAND / ROW;

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
        let at = |cell: Cell, shift: u8| cell.behind((byte >> shift) as u32);
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
    words: Vec<Words>,
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
                self.words.resize(bands * ROWS, Words::EMPTY);
            }
            if !self.bytes.is_empty() {
                self.bytes.resize(bands * BAND, Touched::default());
            }
        }
    }

    pub fn has_words(&self) -> bool {
        !self.words.is_empty()
    }

    /// Nothing that it says of bytes counts any more, nor, if so asked, what it says of words.
    pub fn shrink(&mut self, also_words: bool) {
        self.bytes = Vec::new();
        if also_words {
            self.words = Vec::new();
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

    /// The words of a row that is looked at word by word, if it is one, and none of them is split.
    #[inline(always)]
    pub fn words(&mut self, number: usize, stamp: u32) -> Option<&mut Words> {
        let band = &self.bands[number / ROWS];
        if band.stamp != stamp || band.whole.is_whole {
            return None;
        }
        let row = &self.rows[number];
        match !row.whole.is_whole && row.split == 0 {
            true => Some(&mut self.words[number]),
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
        if whole.touched == Touched::default() {
            self.rows[number * ROWS..][..ROWS].fill(EMPTY_ROW);
            return;
        }
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
            self.words.resize(self.bands.len() * ROWS, Words::EMPTY);
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
        self.words[number] = Words::EMPTY;
        if whole.touched != Touched::default() {
            for word in 0..WORDS {
                self.words[number].put(word, whole.part(word * WORD));
            }
        }
    }

    /// A row of a band that is not whole is to be looked at word by word. Its words, if none of them is split.
    #[inline(always)]
    pub fn apart(&mut self, number: usize) -> Option<&mut Words> {
        if self.rows[number].whole.is_whole {
            self.part_row(number);
        }
        match self.rows[number].split {
            0 => Some(&mut self.words[number]),
            _ => None,
        }
    }

    /// Shows what is known of a part of a row that is looked at word by word, from `from` to `to` in the table: words where
    /// `is_by_words`, or else bytes, and bytes of words that are split.
    #[inline(never)]
    pub fn bytes(
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
                let words = &mut self.words[word / WORDS];
                let mut known = words.get(word % WORDS);
                act(&mut known, at, WORD);
                words.put(word % WORDS, known);
                at += WORD;
                continue;
            }
            if !is_split {
                row.split |= bit;
                self.bytes[word * WORD..][..WORD].fill(self.words[word / WORDS].get(word % WORDS));
            }
            let stop = to.min((word + 1) * WORD);
            for (i, known) in self.bytes[at..stop].iter_mut().enumerate() {
                act(known, at + i, 1);
            }
            at = stop;
        }
    }

    /// Nothing is known of a range any more.
    pub fn forget(&mut self, from: usize, to: usize, stamp: u32) {
        let mut at = from;
        while at < to {
            let stop = to.min((at / ROW + 1) * ROW);
            let row = self.row(at / ROW, stamp);
            if stop - at == ROW {
                *row = Whole::EMPTY;
            } else {
                self.apart(at / ROW);
                self.bytes((at, stop), true, &mut |touched, _, _| *touched = Touched::default());
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
                        false => self.words[number].each(word, act),
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

#[cfg(test)]
mod tests {
    use super::super::cell::Others;
    use super::*;

    #[test]
    fn words_are_split_where_bytes_are_touched() {
        let mut table = Table::new(256);
        let mut seen = |from, to, is_by_words| {
            let mut seen = Vec::new();
            table.row(from / ROW, 1);
            table.apart(from / ROW);
            table.bytes((from, to), is_by_words, &mut |_, at, size| seen.push((at, size)));
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
        assert!(table.apart(0).is_some());
        table.bytes((0, 64), true, &mut |known, _, _| {
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
