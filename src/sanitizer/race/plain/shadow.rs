//! What plain kernels have done to memory that blocks have in common, by its pages.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::{Mutex, MutexGuard};

use crate::sanitizer::directory::{Directory, Remembered};

use super::cell::Layout;
use super::table::Table;
use super::words::WORD;

const PAGE: u64 = 4096;

/// What is known of a page of memory that blocks have in common.
pub struct Page {
    table: Mutex<Table>,
    /// Words that nobody has written and that two blocks have read: another reader adds nothing to what they say. A word is taken
    /// out before it is written. Who holds the table may change this, which others read meanwhile.
    settled: OnceLock<Box<[AtomicU64; PAGE as usize / WORD / 64]>>,
}

impl Page {
    fn new() -> Page {
        Page {
            table: Mutex::new(pool::page()),
            settled: OnceLock::new(),
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
        let Some(settled) = self.settled.get() else {
            return false;
        };
        Page::words(part).all(|(number, bits)| !settled[number].load(Relaxed) & bits == 0)
    }

    #[inline(always)]
    fn settle(&self, part: (u64, u64)) {
        let settled = self.settled.get_or_init(|| Box::new([const { AtomicU64::new(0) }; _]));
        for (number, bits) in Page::words(part) {
            settled[number].store(settled[number].load(Relaxed) | bits, Relaxed);
        }
    }

    #[inline(always)]
    fn unsettle(&self, part: (u64, u64)) {
        let Some(settled) = self.settled.get() else { return };
        for (number, bits) in Page::words(part) {
            let before = settled[number].load(Relaxed);
            if before & bits != 0 {
                settled[number].store(before & !bits, Relaxed);
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
    held: Option<(u64, MutexGuard<'a, Table>)>,
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
    static FREE: Mutex<(Vec<Table>, usize)> = Mutex::new((Vec::new(), 0));
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

    pub fn page() -> Table {
        let mut free = FREE.lock();
        match free.0.pop() {
            Some(page) => {
                free.1 -= usize::from(page.has_words());
                page
            }
            None => {
                drop(free);
                Table::new(PAGE as usize)
            }
        }
    }

    pub fn leave(pages: impl Iterator<Item = Table>) {
        let mut free = FREE.lock();
        for mut page in pages {
            if free.0.len() == MOST {
                return;
            }
            page.shrink(free.1 == MOST_WORDS);
            free.1 += usize::from(page.has_words());
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

    /// Whether all of a range is settled; `false` also where somebody does not remember its page.
    #[inline(always)]
    pub fn is_settled(&self, remembered: &Remembered, address: u64, bytes: u64) -> bool {
        let end = address.saturating_add(bytes);
        let (mut at, mut all) = (address, true);
        while all && at < end {
            let number = at / PAGE;
            let stop = end.min((number + 1) * PAGE);
            let page = self.pages.remembered(remembered, number);
            all = page.is_some_and(|page| page.is_settled((at, stop)));
            at = stop;
        }
        all
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
        for (_, page) in self.pages.all() {
            page.table.lock().renumber((layout, self.stamp), &mut keep);
        }
    }
}
