//! Which pages of a range are free: two allocators of page numbers, one for small blocks and one for large ones.
//!
//! Pages are numbers here, without addresses. Each block comes with a page after it that belongs to nobody, so that running
//! off its end is never running into the next.

use std::collections::{BTreeMap, BTreeSet};

/// Blocks of up to this many pages are small.
pub(super) const SMALL: u64 = 64;

/// Free blocks by size, each size for itself: allocating and freeing are a pop and a push.
pub(super) struct SmallBlocks {
    next: u64,
    end: u64,
    free: Vec<Vec<u64>>,
}

impl SmallBlocks {
    pub fn new(start: u64, end: u64) -> SmallBlocks {
        SmallBlocks {
            next: start,
            end,
            free: vec![Vec::new(); SMALL as usize + 1],
        }
    }

    /// A block, and whether somebody may have had it before.
    pub fn allocate(&mut self, pages: u64) -> Option<(u64, bool)> {
        if let Some(block) = self.free[pages as usize].pop() {
            return Some((block, true));
        }
        // The guard page follows.
        if self.end - self.next > pages {
            let block = self.next;
            self.next += pages + 1;
            return Some((block, false));
        }
        None
    }

    pub fn free(&mut self, block: u64, pages: u64) {
        self.free[pages as usize].push(block);
    }

    /// Pages from here on have never been used.
    pub fn used_end(&self) -> u64 {
        self.next
    }
}

/// Best fit with coalescing.
pub(super) struct LargeBlocks {
    next: u64,
    end: u64,
    /// Start → pages, never adjacent to each other.
    by_start: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
}

impl LargeBlocks {
    pub fn new(start: u64, end: u64) -> LargeBlocks {
        LargeBlocks {
            next: start,
            end,
            by_start: BTreeMap::new(),
            by_size: BTreeSet::new(),
        }
    }

    /// A block, and whether somebody may have had it before. `align` in pages, a power of two.
    pub fn allocate(&mut self, pages: u64, align: u64) -> Option<(u64, bool)> {
        let whole = pages.checked_add(1)?;
        let fit = self
            .by_size
            .range((whole, 0)..)
            .find(|(size, start)| start.next_multiple_of(align) + whole <= start + size)
            .copied();
        if let Some((size, start)) = fit {
            self.remove(start, size);
            let block = start.next_multiple_of(align);
            self.insert(start, block - start);
            self.insert(block + whole, start + size - (block + whole));
            return Some((block, true));
        }
        let block = self.next.next_multiple_of(align);
        let end = block.checked_add(whole)?;
        if end > self.end {
            return None;
        }
        let gap = (self.next, block - self.next);
        self.next = end;
        self.give_back(gap.0, gap.1);
        Some((block, false))
    }

    pub fn free(&mut self, block: u64, pages: u64) {
        self.give_back(block, pages + 1);
    }

    pub fn used_end(&self) -> u64 {
        self.next
    }

    fn give_back(&mut self, mut start: u64, mut pages: u64) {
        if pages == 0 {
            return;
        }
        if let Some((&before, &size)) = self.by_start.range(..start).next_back()
            && before + size == start
        {
            self.remove(before, size);
            (start, pages) = (before, pages + size);
        }
        if let Some(&size) = self.by_start.get(&(start + pages)) {
            self.remove(start + pages, size);
            pages += size;
        }
        self.insert(start, pages);
    }

    fn insert(&mut self, start: u64, pages: u64) {
        if pages > 0 {
            self.by_start.insert(start, pages);
            self.by_size.insert((pages, start));
        }
    }

    fn remove(&mut self, start: u64, pages: u64) {
        self.by_start.remove(&start);
        self.by_size.remove(&(pages, start));
    }
}
