//! Accesses that are checked to the byte, and not to the page (`MARGAY_CHECK=memory`): the map has of a page of which only the
//! beginning belongs to an allocation that somebody has to look closer ([`EDGE`](super::EDGE)), and here that is done.

use std::cell::Cell;

use super::space::{AddressSpace, Allocation, Kind};
use super::{FAR, PAGE, PAGE_BITS, View};

/// Whether accesses are checked to the byte, and not to the page (`MARGAY_CHECK=memory`).
pub fn exact() -> bool {
    crate::config::get().check.memory
}

/// Bytes that kernels were found to be allowed to touch, for as long as the address space does not change.
#[derive(Clone, Copy)]
struct Known {
    version: u64,
    map: usize,
    start: u64,
    end: u64,
    bits: u8,
}

/// As many as a kernel has arrays, or nearly.
const KNOWN: usize = 8;

impl Known {
    const NOTHING: Known = Known {
        version: 0,
        map: 0,
        start: 0,
        end: 0,
        bits: 0,
    };
}

thread_local! {
    /// Bytes of allocations, by their addresses.
    static LAST: [Cell<Known>; KNOWN] = const { [const { Cell::new(Known::NOTHING) }; KNOWN] };
    /// Stretches of pages, the newest first.
    static AROUND: [Cell<Known>; KNOWN] = const { [const { Cell::new(Known::NOTHING) }; KNOWN] };
}

impl AddressSpace {
    /// Whether kernels may touch `bytes` bytes from `address` that one allocation has, where a look at the map does not say so
    /// ([`exact()`]). By a view that is not exact it is enough that the pages are theirs. A slow path of an access check.
    pub fn allows_exactly(&self, view: View, address: u64, bytes: u64, bits: u8) -> bool {
        if !self.exact || !view.contains(address) {
            return false;
        }
        let bytes = bytes.max(1);
        if !view.exact {
            let Some(last) = address.checked_add(bytes - 1) else {
                return false;
            };
            let mut pages = (address >> PAGE_BITS..=last >> PAGE_BITS).map(|page| page << PAGE_BITS);
            return pages.all(|page| view.rights(page) & bits == bits);
        }
        let version = self.version();
        LAST.with(|last| {
            let last = &last[(address >> PAGE_BITS) as usize % KNOWN];
            let known = last.get();
            let is_known = (known.version, known.map) == (version, view.map as usize)
                && known.bits & bits == bits
                && address >= known.start
                && address < known.end
                && bytes <= known.end - address;
            if is_known {
                return true;
            }
            let Some(found) = self.holds(address).filter(|found| found.contains(address, bytes)) else {
                return false;
            };
            let (first, end) = (address & !(PAGE - 1), (address + bytes).next_multiple_of(PAGE));
            let rights = (first..end)
                .step_by(PAGE as usize)
                .fold(u8::MAX, |all, page| all & view.rights(page));
            last.set(Known {
                version,
                map: view.map as usize,
                start: first.max(found.start),
                end: end.min(found.end()),
                bits: rights,
            });
            rights & bits == bits
        })
    }

    /// Addresses around one of which kernels may touch each byte, with all of `bits`, as far as that is known without going far:
    /// the first of them, and how many there are.
    pub fn around(&self, view: View, address: u64, bits: u8) -> (u64, u64) {
        if !view.contains(address) {
            return self.hosts.around(address, bits);
        }
        let there = self.pages_around(view, address, bits);
        if !self.exact {
            return there;
        }
        let Some(found) = self.holds(address) else {
            return there;
        };
        let has = |page: &u64| view.rights(*page << PAGE_BITS) & bits == bits;
        let page = address >> PAGE_BITS;
        if !has(&page) {
            return there;
        }
        let (least, most) = (found.start >> PAGE_BITS, (found.end() - 1) >> PAGE_BITS);
        let (found_start, found_end) = match view.exact {
            true => (found.start, found.end()),
            false => (least << PAGE_BITS, (most + 1) << PAGE_BITS),
        };
        let first = (least.max(page.saturating_sub(FAR))..page).rev().take_while(has).last();
        let last = (page + 1..=most.min(page + FAR)).take_while(has).last();
        let start = found_start.max(first.unwrap_or(page) << PAGE_BITS);
        let end = found_end.min((last.unwrap_or(page) + 1) << PAGE_BITS);
        (start, end - start)
    }

    /// [`View::around`], which goes from page to page, as often as the address space changes and not as often as somebody asks.
    fn pages_around(&self, view: View, address: u64, bits: u8) -> (u64, u64) {
        // Before the map is looked at: what is found while it changes is void when the change counts.
        let (version, map) = (self.version(), view.map as usize);
        let is_in = |known: &Known| {
            (known.version, known.map, known.bits) == (version, map, bits)
                && (known.start..known.end).contains(&address)
        };
        AROUND.with(|all| {
            if let Some(known) = all.iter().map(Cell::get).find(is_in) {
                return (known.start, known.end - known.start);
            }
            let (start, bytes) = view.around(address, bits);
            let found = Known {
                version,
                map,
                start,
                end: start + bytes,
                bits,
            };
            // The oldest one goes, unless nothing was found.
            if bytes > 0 {
                all.iter().fold(found, |newer, known| known.replace(newer));
            }
            (start, bytes)
        })
    }

    /// The allocation that has an address, and is not the driver's own.
    fn holds(&self, address: u64) -> Option<Allocation> {
        let state = self.state.read();
        let (_, found) = state.live.range(..=address).next_back()?;
        (found.kind != Kind::Internal && found.contains(address, 1)).then_some(*found)
    }
}
