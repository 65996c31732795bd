//! What is known of each word that a grid has touched: who wrote it last, and who has read it since.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use super::ledger::Cell;
use crate::sanitizer::spread::Spread;

const PAGE: u64 = 4096;
const WORD: u64 = 4;
const WORDS: usize = (PAGE / WORD) as usize;
const SHARDS: usize = 64;

/// Who touched a word, or a byte.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Touched {
    /// Whoever wrote it, and may be in no order with somebody yet to come.
    pub writes: Cell,
    /// Likewise: all who have read it.
    pub reads: Cell,
}

pub struct Page {
    words: [Touched; WORDS],
    /// Words whose bytes have been touched one by one.
    split: [u64; WORDS / 64],
    /// Of those words.
    bytes: Option<Box<[Touched; PAGE as usize]>>,
}

impl Page {
    fn new() -> Box<Page> {
        Box::new(Page {
            words: [Touched::default(); WORDS],
            split: [0; WORDS / 64],
            bytes: None,
        })
    }

    /// What is known of `bytes` bytes from `offset` on, word by word as far as possible: `act` gets each with its offset and size.
    pub fn each(&mut self, offset: usize, bytes: usize, mut act: impl FnMut(&mut Touched, usize, usize)) {
        let (word, end) = (WORD as usize, offset + bytes);
        let mut at = offset;
        while at < end {
            let number = at / word;
            let is_whole = at.is_multiple_of(word) && at + word <= end;
            let is_split = self.split[number / 64] >> (number % 64) & 1 == 1;
            if is_whole && !is_split {
                act(&mut self.words[number], at, word);
                at += word;
                continue;
            }
            let each = self
                .bytes
                .get_or_insert_with(|| Box::new([Touched::default(); PAGE as usize]));
            if !is_split {
                self.split[number / 64] |= 1 << (number % 64);
                each[number * word..][..word].fill(self.words[number]);
            }
            let stop = end.min((number + 1) * word);
            for (byte, touched) in (at..stop).zip(&mut each[at..stop]) {
                act(touched, byte, 1);
            }
            at = stop;
        }
    }

    fn reset(&mut self) {
        self.words.fill(Touched::default());
        self.split.fill(0);
        self.bytes = None;
    }

    fn clear(&mut self, from: usize, to: usize) {
        self.each(from, to - from, |touched, _, _| *touched = Touched::default());
    }
}

pub type Pages = HashMap<u64, Box<Page>, BuildHasherDefault<Spread>>;

pub struct Shadow {
    shards: [Mutex<Pages>; SHARDS],
}

impl Default for Shadow {
    fn default() -> Shadow {
        Shadow {
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

/// A page at a time, which nobody else touches meanwhile.
pub struct Cursor<'a> {
    shadow: &'a Shadow,
    held: Option<(u64, MappedMutexGuard<'a, Page>)>,
}

impl Cursor<'_> {
    #[inline]
    fn page(&mut self, number: u64) -> &mut Page {
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

    /// What is known of a range, with the address and size of each part.
    pub fn each(&mut self, address: u64, bytes: u64, mut act: impl FnMut(&mut Touched, u64, usize)) {
        let mut at = address;
        let end = address.saturating_add(bytes);
        while at < end {
            let number = at / PAGE;
            let stop = end.min((number + 1) * PAGE);
            self.page(number)
                .each((at % PAGE) as usize, (stop - at) as usize, |touched, offset, size| {
                    act(touched, number * PAGE + offset as u64, size);
                });
            at = stop;
        }
    }
}

/// Pages that grids have left: the next ones need not ask the system for them.
mod pool {
    use parking_lot::Mutex;

    use super::Page;

    /// Pages that are kept.
    const MOST: usize = 1 << 14;

    static FREE: Mutex<Vec<Box<Page>>> = Mutex::new(Vec::new());

    pub fn page() -> Box<Page> {
        match FREE.lock().pop() {
            Some(mut page) => {
                page.reset();
                page
            }
            None => Page::new(),
        }
    }

    pub fn leave(pages: impl Iterator<Item = Box<Page>>) {
        let mut free = FREE.lock();
        let room = MOST.saturating_sub(free.len());
        free.extend(pages.take(room));
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
            if stop - at == PAGE {
                pool::leave(pages.remove(&number).into_iter());
            } else if let Some(page) = pages.get_mut(&number) {
                page.clear((at % PAGE) as usize, (at % PAGE + (stop - at)) as usize);
            }
            at = stop;
        }
    }

    /// Shows each cell.
    pub fn cells(&mut self, act: &mut dyn FnMut(&mut Cell)) {
        let mut both = |touched: &mut Touched| {
            act(&mut touched.writes);
            act(&mut touched.reads);
        };
        for page in self.shards.iter_mut().flat_map(|pages| pages.get_mut().values_mut()) {
            page.words.iter_mut().for_each(&mut both);
            if let Some(bytes) = &mut page.bytes {
                bytes.iter_mut().for_each(&mut both);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_where_bytes_are_touched() {
        let shadow = Shadow::default();
        let seen = |address, bytes| {
            let mut seen = Vec::new();
            shadow
                .cursor()
                .each(address, bytes, |_, at, size| seen.push((at, size)));
            seen
        };
        assert_eq!(seen(8, 8), [(8, 4), (12, 4)]);
        assert_eq!(seen(PAGE - 4, 8), [(PAGE - 4, 4), (PAGE, 4)]);
        assert_eq!(seen(5, 2), [(5, 1), (6, 1)]);
        assert_eq!(seen(0, 8), [(0, 4), (4, 1), (5, 1), (6, 1), (7, 1)]);
        assert_eq!(seen(10, 4), [(10, 1), (11, 1), (12, 1), (13, 1)]);
    }
}
