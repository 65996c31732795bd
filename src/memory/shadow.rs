//! Which bits of memory somebody has written, where values that nobody has written are looked for (`MARGAY_CHECK=init`).
//!
//! A second region beside the arena has a byte for each byte of it, at a constant distance: a bit that is set stands for one
//! that has been written. Pages of it that nobody has touched read as zeros, so memory that is allocated costs nothing until
//! it is used. What the host writes by itself (managed, pinned and registered memory) or by another address (files in memory)
//! is not seen: such memory always counts as written, and a second map has a byte for each page that says so. The map also
//! says of which pages all has been written, as it has of most that kernels read: nobody has to look at their shadow.
//!
//! Kernels and copies touch the same shadow at the same time, as they do what it stands for; a program that races has shadows
//! that may be either's.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use once_cell::sync::OnceCell;

use super::space::{Allocation, Backing, reserve};
use super::{Kind, PAGE, PAGE_BITS, View, WRITE};

/// Larger ranges are given back to the system rather than filled with zeros.
const LARGE: u64 = 256 << 10;

/// The shadow of the arena.
#[derive(Debug)]
pub struct Shadow {
    arena: u64,
    len: u64,
    bytes: u64,
    /// One byte per page: its [`KIND`], and how often it was found that not all of it has been written.
    pages: *const AtomicU8,
}

/// What a page is. Of what kind it is depends on who looks last; so whoever makes it [`WHOLE`] compares the count.
const KIND: u8 = 3;
/// The shadow says what has been written.
const TRACKED: u8 = 0;
/// All counts as written.
const KNOWN: u8 = 1;
/// All has been written, and the shadow says so.
const WHOLE: u8 = 2;
/// One more in the count.
const ONCE: u8 = 4;

// SAFETY: both regions are never unmapped, and their bytes are reached by atomics or, as memory of kernels is, by raw pointers.
unsafe impl Send for Shadow {}
// SAFETY: what threads share through `&` is a number and a pointer to atomics, in regions that stay mapped.
unsafe impl Sync for Shadow {}

static SHADOW: OnceCell<Shadow> = OnceCell::new();

/// The shadow, if values that nobody has written are looked for.
#[inline(always)]
pub fn get() -> Option<&'static Shadow> {
    SHADOW.get()
}

/// These bytes have been written by the driver, which is of interest to whoever looks for values that nobody has written.
pub fn defined(address: u64, bytes: u64) {
    if let Some(shadow) = get() {
        shadow.define(address, bytes);
    }
}

/// Reserves the shadow of an arena that is about to be used.
pub(super) fn prepare(view: &View) {
    let shadow = || {
        let bytes = reserve(view.len, libc::PROT_READ | libc::PROT_WRITE)?;
        let pages = reserve((view.len >> PAGE_BITS) + PAGE, libc::PROT_READ | libc::PROT_WRITE)?;
        Some(Shadow {
            arena: view.base,
            len: view.len,
            bytes,
            pages: pages as *const AtomicU8,
        })
    };
    match shadow() {
        Some(shadow) => {
            let _ = SHADOW.set(shadow);
        }
        None => {
            tracing::error!("MARGAY_CHECK=init: no address space for it; values that nobody has written are not found")
        }
    }
}

impl Shadow {
    /// Whether it is known which bits of the byte at an address have been written.
    #[inline(always)]
    pub fn tracks(&self, address: u64) -> bool {
        self.kind(address) != KNOWN
    }

    /// What is known of the page of an address.
    #[inline(always)]
    fn page(&self, address: u64) -> Option<&AtomicU8> {
        let offset = address.wrapping_sub(self.arena);
        // SAFETY: the page lies in the arena, and the map has a byte for each of its pages.
        (offset < self.len).then(|| unsafe { &*self.pages.add((offset >> PAGE_BITS) as usize) })
    }

    #[inline(always)]
    fn kind(&self, address: u64) -> u8 {
        self.page(address)
            .map_or(KNOWN, |page| page.load(Ordering::Relaxed) & KIND)
    }

    /// Whether all of a range, which has a byte and is no longer than a page, lies in pages of which all has been written.
    #[inline(always)]
    pub fn is_whole(&self, address: u64, bytes: u64) -> bool {
        let last = address + bytes - 1;
        self.kind(address) == WHOLE && (address ^ last < PAGE || self.kind(last) == WHOLE)
    }

    /// All of a range, no longer than a page, has been written: if it is the last part of a page, the page may be whole now.
    #[inline(always)]
    pub fn completes(&self, address: u64, bytes: u64) {
        if (address & (PAGE - 1)) + bytes >= PAGE {
            self.look_at_page(address);
        }
    }

    #[inline(never)]
    fn look_at_page(&self, address: u64) {
        let Some(page) = self.page(address) else { return };
        let before = page.load(Ordering::Relaxed);
        if before & KIND != TRACKED {
            return;
        }
        // SAFETY: the page lies in the arena, of which this is the shadow; whatever bytes there are make numbers.
        let shadow =
            unsafe { std::slice::from_raw_parts(self.of(address & !(PAGE - 1)) as *const u64, PAGE as usize / 8) };
        if shadow.iter().all(|word| *word == u64::MAX) {
            // Whoever has found something else since has counted it.
            let _ = page.compare_exchange(before, before | WHOLE, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Not all of a range has been written, as its shadow says by now.
    pub fn has_missing(&self, address: u64, bytes: u64) {
        let mut at = address & !(PAGE - 1);
        while at < address + bytes {
            if let Some(page) = self.page(at) {
                let next = |before: u8| (before & KIND != KNOWN).then(|| (before & !KIND).wrapping_add(ONCE));
                let _ = page.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
            }
            at += PAGE;
        }
    }

    /// Pages that are all of a range have been written.
    fn make_whole(&self, address: u64, bytes: u64) {
        let mut at = address.next_multiple_of(PAGE);
        while at + PAGE <= address + bytes {
            if let Some(page) = self.page(at) {
                let next = |before: u8| (before & KIND != KNOWN).then_some(before & !KIND | WHOLE);
                let _ = page.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
            }
            at += PAGE;
        }
    }

    fn are_whole(&self, address: u64, bytes: u64) -> bool {
        let first = address & !(PAGE - 1);
        (first..address + bytes)
            .step_by(PAGE as usize)
            .all(|at| self.kind(at) == WHOLE)
    }

    /// Likewise of so many bytes, of which no more than the first and the last page are looked at: an access, or a row of accesses
    /// that is shorter than a page.
    #[inline(always)]
    pub fn tracks_both_ends(&self, address: u64, bytes: u64) -> bool {
        self.tracks(address) && self.tracks(address + bytes.saturating_sub(1))
    }

    /// Where the shadow of a byte of the arena is.
    #[inline(always)]
    pub fn of(&self, address: u64) -> *mut u8 {
        (self.bytes.wrapping_add(address.wrapping_sub(self.arena))) as *mut u8
    }

    /// The part of a range that lies in pages of one kind, from its start: its bytes, and whether they are tracked.
    fn piece(&self, address: u64, bytes: u64) -> (u64, bool) {
        let offset = address.wrapping_sub(self.arena);
        if offset >= self.len {
            return (bytes, false);
        }
        let bytes = bytes.min(self.len - offset);
        let is_tracked = self.tracks(address);
        let mut end = (offset | (PAGE - 1)) + 1;
        while end < offset + bytes && self.tracks(self.arena + end) == is_tracked {
            end += PAGE;
        }
        ((end - offset).min(bytes), is_tracked)
    }

    fn each_piece(&self, address: u64, bytes: u64, mut f: impl FnMut(u64, u64, bool)) {
        let (mut at, mut left) = (address, bytes);
        while left > 0 {
            let (piece, is_tracked) = self.piece(at, left);
            f(at, piece, is_tracked);
            (at, left) = (at.wrapping_add(piece), left - piece);
        }
    }

    fn fill(&self, address: u64, bytes: u64, value: u8) {
        self.each_piece(address, bytes, |at, bytes, is_tracked| {
            if is_tracked {
                // SAFETY: the range lies in the arena, whose shadow this is.
                unsafe { std::ptr::write_bytes(self.of(at), value, bytes as usize) };
                match value {
                    u8::MAX => self.make_whole(at, bytes),
                    _ => self.has_missing(at, bytes),
                }
            }
        });
    }

    /// Whether all of these bytes have been written.
    pub fn is_written(&self, address: u64, bytes: u64) -> bool {
        match bytes {
            // SAFETY: both ends lie in the arena, and what is between them.
            4 if self.tracks_both_ends(address, 4) => unsafe {
                (self.of(address) as *const u32).read_unaligned() == u32::MAX
            },
            // SAFETY: the first and the last of the eight bytes lie in the arena, and so does what is between them.
            8 if self.tracks_both_ends(address, 8) => unsafe {
                (self.of(address) as *const u64).read_unaligned() == u64::MAX
            },
            _ => self.first_undefined(address, bytes).is_none(),
        }
    }

    /// These bytes have been written.
    pub fn define(&self, address: u64, bytes: u64) {
        if bytes <= 16 && bytes > 0 && self.tracks_both_ends(address, bytes) {
            // SAFETY: both ends lie in the arena, and what is between them.
            unsafe { std::ptr::write_bytes(self.of(address), u8::MAX, bytes as usize) };
            return;
        }
        self.fill(address, bytes, u8::MAX);
    }

    /// Nobody has written these bytes.
    pub fn undefine(&self, address: u64, bytes: u64) {
        self.fill(address, bytes, 0);
    }

    /// Bytes have been copied; the two ranges may overlap.
    pub fn copied(&self, from: u64, to: u64, bytes: u64) {
        let (source, source_is_tracked) = self.piece(from, bytes);
        let (target, target_is_tracked) = self.piece(to, bytes);
        if source < bytes || target < bytes {
            // Where kinds of pages meet, ranges do not overlap: they are of two allocations.
            let first = source.min(target);
            self.copied(from, to, first);
            return self.copied(from + first, to + first, bytes - first);
        }
        match (source_is_tracked, target_is_tracked) {
            (_, false) => {}
            (false, true) => self.define(to, bytes),
            (true, true) if self.are_whole(from, bytes) => self.define(to, bytes),
            (true, true) => {
                // SAFETY: both ranges lie in the arena, whose shadow this is.
                unsafe { std::ptr::copy(self.of(from), self.of(to), bytes as usize) };
                self.has_missing(to, bytes);
            }
        }
    }

    /// Ranges of bytes, by their distance from `address`, that have a bit which nobody has written.
    pub fn undefined(&self, address: u64, bytes: u64, mut f: impl FnMut(Range<u64>)) {
        let mut open: Option<Range<u64>> = None;
        self.each_piece(address, bytes, |at, bytes, is_tracked| {
            if !is_tracked {
                return;
            }
            let start = at.wrapping_sub(address);
            let mut offset = 0;
            while offset < bytes {
                let place = self.of(at + offset);
                // SAFETY: eight bytes of the shadow are there if so many of the piece are left, and one is in any case.
                let all = bytes - offset >= 8 && unsafe { (place as *const u64).read_unaligned() } == u64::MAX;
                // SAFETY: a byte of the piece is left, and the shadow has one for each.
                let one = all || unsafe { place.read() } == u8::MAX;
                let here = start + offset;
                if !one {
                    match &mut open {
                        Some(range) if range.end == here => range.end += 1,
                        _ => {
                            let before = open.replace(here..here + 1);
                            before.into_iter().for_each(&mut f);
                        }
                    }
                }
                offset += if all { 8 } else { 1 };
            }
        });
        open.into_iter().for_each(f);
    }

    /// The first byte of a range that has a bit which nobody has written, by its distance, and how many such bytes there are.
    pub fn first_undefined(&self, address: u64, bytes: u64) -> Option<(u64, u64)> {
        let (mut first, mut count) = (None, 0);
        self.undefined(address, bytes, |range| {
            first.get_or_insert(range.start);
            count += range.end - range.start;
        });
        first.map(|first| (first, count))
    }

    /// An allocation changes its rights: what kernels may write from now on holds nothing yet.
    pub(super) fn marked(&self, allocation: &Allocation, bits: u8) {
        let (start, bytes) = (allocation.start, allocation.pages << PAGE_BITS);
        let is_tracked = match (allocation.kind, allocation.backing) {
            (_, Backing::Moved | Backing::Shown) => false,
            // What is freed keeps what is known of it: nobody can reach it.
            (Kind::Device | Kind::Heap, Backing::Own | Backing::Retired) if bits & WRITE == 0 => return,
            (Kind::Device | Kind::Heap | Kind::Internal, Backing::Own | Backing::Retired) => true,
            (Kind::Managed | Kind::Host | Kind::Array | Kind::Constant, Backing::Own | Backing::Retired) => false,
        };
        self.know(start, bytes, !is_tracked);
        if is_tracked && bytes >= LARGE {
            // SAFETY: the range lies in the shadow, and its pages read as zeros from now on.
            unsafe { libc::madvise(self.of(start) as *mut _, bytes as usize, libc::MADV_DONTNEED) };
            self.has_missing(start, bytes);
        } else if is_tracked {
            self.undefine(start, bytes);
        }
    }

    /// Whether all of some pages counts as written.
    pub(super) fn know(&self, start: u64, bytes: u64, known: bool) {
        for at in (start..start + bytes).step_by(PAGE as usize) {
            if let Some(page) = self.page(at) {
                let kind = if known { KNOWN } else { TRACKED };
                let next = |before: u8| Some((before & !KIND).wrapping_add(ONCE) | kind);
                let _ = page.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shadow of its own over an arena of a few pages that nobody uses.
    fn shadow(pages: u64) -> Shadow {
        let view = View {
            base: 1 << 40,
            len: pages << PAGE_BITS,
            map: std::ptr::null(),
            exact: false,
        };
        let region = |bytes| reserve(bytes, libc::PROT_READ | libc::PROT_WRITE).expect("there is room");
        Shadow {
            arena: view.base,
            len: view.len,
            bytes: region(view.len),
            pages: region(PAGE) as *const AtomicU8,
        }
    }

    fn undefined(shadow: &Shadow, address: u64, bytes: u64) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        shadow.undefined(address, bytes, |range| ranges.push(range));
        ranges
    }

    #[test]
    fn what_is_written_is_defined_and_nothing_beside_it() {
        let (shadow, start) = (shadow(4), 1 << 40);
        shadow.define(start + 10, 20);
        shadow.define(start + 31, PAGE);
        assert_eq!(
            undefined(&shadow, start, PAGE + 40),
            [0..10, 30..31, PAGE + 31..PAGE + 40]
        );
        assert_eq!(shadow.first_undefined(start + 12, 30), Some((18, 1)));
        assert_eq!(shadow.first_undefined(start + 31, PAGE), None);
    }

    #[test]
    fn copies_take_along_what_is_known_and_pages_of_the_host_are_known() {
        let (shadow, start) = (shadow(8), 1 << 40);
        shadow.know(start + 4 * PAGE, PAGE, true);
        shadow.define(start + 4, 4);
        shadow.copied(start, start + PAGE, 12);
        assert_eq!(undefined(&shadow, start + PAGE, 12), [0..4, 8..12]);
        // From the host's page on, all is known.
        shadow.copied(start + 4 * PAGE - 8, start + 6 * PAGE, 16);
        assert_eq!(undefined(&shadow, start + 6 * PAGE, 16), std::slice::from_ref(&(0..8)));
        // And what goes there leaves it so.
        shadow.copied(start, start + 4 * PAGE, 12);
        assert_eq!(undefined(&shadow, start + 4 * PAGE, 12), []);
        assert!(!shadow.tracks(start - 1) && !shadow.tracks(start + 8 * PAGE));
    }

    #[test]
    fn pages_are_whole_until_something_is_missing() {
        let (shadow, start) = (shadow(8), 1 << 40);
        shadow.define(start + 8, 2 * PAGE);
        assert!(!shadow.is_whole(start + 8, 8) && shadow.is_whole(start + PAGE, PAGE));
        assert!(!shadow.is_whole(start + 2 * PAGE - 8, 16));
        // The last bytes of a page are not all of it; the first ones are what it lacks.
        shadow.completes(start + PAGE - 8, 8);
        assert!(!shadow.is_whole(start, 1));
        shadow.define(start, 8);
        shadow.completes(start + PAGE - 8, 8);
        assert!(shadow.is_whole(start, PAGE));
        // Copies of what is whole are, and others are not; both leave what they say.
        shadow.copied(start, start + 4 * PAGE, PAGE);
        assert!(shadow.is_whole(start + 4 * PAGE, PAGE));
        shadow.copied(start + 3 * PAGE, start + 4 * PAGE + 16, 4);
        assert!(!shadow.is_whole(start + 4 * PAGE, 1));
        shadow.completes(start + 4 * PAGE, PAGE);
        assert!(!shadow.is_whole(start + 4 * PAGE, 1));
        shadow.undefine(start + PAGE + 100, 1);
        assert!(!shadow.is_whole(start + PAGE, 1) && shadow.is_whole(start, 1));
        // Another allocation.
        shadow.know(start, PAGE, false);
        assert!(!shadow.is_whole(start, 1) && shadow.tracks(start));
        shadow.know(start, PAGE, true);
        shadow.has_missing(start, PAGE);
        assert!(!shadow.tracks(start));
    }
}
