//! The words of a row, which mostly say the same of threads that follow each other.

use crate::isa::lanes::WARP;

use super::cell::{Cell, Layout, Touched};

pub const WORD: usize = 4;
/// Words of a row.
pub const WORDS: usize = 16;

/// Numbers for the words of a row.
pub type Numbers = [u32; WORDS];

/// Who touched the words of a row: by word, who wrote it, and two who have read it since.
#[derive(Clone, Copy)]
pub struct Words([[Cell; WORDS]; 3]);

impl Words {
    pub const EMPTY: Words = Words([[Cell::EMPTY; WORDS]; 3]);

    #[inline(always)]
    pub fn get(&self, word: usize) -> Touched {
        let [writes, one, two] = &self.0;
        Touched {
            writes: writes[word],
            reads: [one[word], two[word]],
        }
    }

    #[inline(always)]
    pub fn put(&mut self, word: usize, touched: Touched) {
        let [writes, one, two] = &mut self.0;
        writes[word] = touched.writes;
        [one[word], two[word]] = touched.reads;
    }

    pub fn each(&mut self, word: usize, act: &mut dyn FnMut(&mut Cell)) {
        self.0.iter_mut().for_each(|cells| act(&mut cells[word]));
    }

    /// Up to which word, `to` at most, each says what word `from` does, of threads that are so many behind those as `by` says. None
    /// of these is of another warp.
    #[inline(always)]
    pub fn follow(&self, from: usize, to: usize, by: &Numbers) -> usize {
        let mut differ: Numbers = [0; WORDS];
        let mut most = WARP as u32 - 1;
        for cells in &self.0 {
            let first = cells[from];
            let step = u32::from(!first.is_empty());
            for i in 0..WORDS {
                differ[i] |= cells[i].bits() ^ first.bits().wrapping_add(step * by[i]);
            }
            most = most.min(match first.lane() {
                Some(lane) => WARP as u32 - 1 - lane,
                None => most,
            });
        }
        let is_other: [bool; WORDS] = std::array::from_fn(|i| differ[i] != 0 || by[i] > most);
        first(is_other, from, to)
    }

    /// Up to which word, `to` at most, each names the same entry of who wrote it as word `from`, and likewise of the second who has read
    /// it a thread of the same warp, with the same others.
    #[inline(always)]
    pub fn alike(&self, from: usize, to: usize, layout: Layout) -> usize {
        let [writes, _, two] = &self.0;
        let mut differ: Numbers = [0; WORDS];
        for i in 0..WORDS {
            let entry = layout.but_thread(writes[i].bits() ^ writes[from].bits());
            let warp = (two[i].bits() ^ two[from].bits()) / WARP as u32;
            differ[i] = entry | warp;
        }
        first(differ.map(|differ| differ != 0), from, to)
    }

    /// Words from `from` to `to` say what `touched` does of threads that are so many behind those as `by` says.
    #[inline(always)]
    pub fn fill(&mut self, from: usize, to: usize, touched: Touched, by: &Numbers) {
        let all = [touched.writes, touched.reads[0], touched.reads[1]];
        for (cells, first) in self.0.iter_mut().zip(all) {
            for (cell, by) in cells[from..to].iter_mut().zip(&by[from..to]) {
                *cell = first.behind(*by);
            }
        }
    }
}

/// The first of the words from `from` on that is marked, or `to`.
#[inline(always)]
fn first(is_marked: [bool; WORDS], from: usize, to: usize) -> usize {
    let mut marks = 0;
    for (i, &is) in is_marked.iter().enumerate() {
        marks |= if is { 1u32 << i } else { 0 };
    }
    to.min(from + (marks >> from).trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::super::cell::Others;
    use super::*;

    #[test]
    fn words_follow_each_other_as_their_threads_do() {
        let layout = Layout::of(64);
        let one = |thread| Touched {
            writes: layout.one(3, thread, Others::None),
            reads: [Cell::EMPTY; 2],
        };
        let by: Numbers = std::array::from_fn(|i| i as u32);
        let mut words = Words::EMPTY;
        assert_eq!(words.follow(0, WORDS, &by), WORDS);
        words.fill(0, WORDS, one(8), &by);
        assert_eq!(words.get(15), one(23));
        assert_eq!(words.follow(0, WORDS, &by), WORDS);
        assert_eq!(words.follow(0, 9, &by), 9);
        // Another reader, or another thread.
        words.put(
            6,
            Touched {
                reads: [layout.one(4, 0, Others::Warp), Cell::EMPTY],
                ..one(14)
            },
        );
        assert_eq!(words.follow(0, WORDS, &by), 6);
        words.put(5, one(14));
        assert_eq!(words.follow(0, WORDS, &by), 5);
        // Of the next warp.
        words.fill(0, WORDS, one(24), &by);
        assert_eq!(words.follow(0, WORDS, &by), 8);
        // Two words of each thread.
        let by: Numbers = std::array::from_fn(|i| i as u32 / 2);
        assert_eq!(words.follow(0, WORDS, &by), 1);
        words.fill(0, WORDS, one(24), &by);
        assert_eq!(words.follow(0, WORDS, &by), WORDS);
    }
}
