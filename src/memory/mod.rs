//! The address space of all devices: one reserved region (the arena), its allocations, host ranges that kernels may
//! touch, and the check that every access of a kernel passes.
//!
//! An address means the same on the host and in kernels. [`View`] is what the executor checks an access with. Owners are
//! plain numbers here; the driver knows that they are contexts.
//!
//! ```text
//! space.rs   the arena: allocate, free, look up        blocks.rs  which pages are free
//! hosts.rs   host ranges that a program registered     nearest.rs what to say of an address that is none of these
//! exact.rs   what one look at the map does not say: to which byte an allocation goes
//! isolation.rs  what kernels of each context may touch, where there are several
//! guard.rs   what happens when the program takes one away while it is used
//! host_access.rs  pages whose next access by the host itself somebody wants to know of
//! caller.rs  which driver call allocates or frees
//! ranges.rs  reserved ranges, and files shown in them
//! texture/   arrays as textures and surfaces see them
//! multicast.rs  addresses that stand for one of each member of a team
//! endpoint.rs   numbers that stand for memory of devices
//! published.rs  lists that the driver changes and kernels read
//! life.rs    who is told of allocations and frees
//! shadow.rs   which bits somebody has written, where that is asked
//! tensor_map/  how bulk copies go through tensors   swizzle.rs  how they, and matrix products, lay out shared memory
//! ```

mod blocks;
pub mod caller;
pub mod endpoint;
mod exact;
mod guard;
pub mod host_access;
mod hosts;
mod isolation;
pub mod life;
pub mod multicast;
mod nearest;
mod published;
mod ranges;
pub mod shadow;
mod space;
pub mod swizzle;
pub mod tensor_map;
pub mod texture;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU8, Ordering};

pub use exact::exact;
pub use guard::{Guarded, guard, listen_to_host, unguarded, was_gone};
pub use hosts::HostRange;
pub use nearest::{Nearest, Relation};
pub use ranges::{MAPPED, Range};
pub use space::{AddressSpace, Allocation, Kind, MAX_DEVICES, OutOfMemory, Region, Request};
pub(crate) use space::{has_room, physical_memory};

/// Pages of the access map.
pub const PAGE_BITS: u32 = 12;
pub const PAGE: u64 = 1 << PAGE_BITS;
/// Map bits.
pub const READ: u8 = 1;
pub const WRITE: u8 = 2;
/// By so much these are shifted for a page of which only the beginning belongs to an allocation, where accesses are checked to the
/// byte ([`exact()`]): one look at the map does not allow them, and [`AddressSpace::allows_exactly`] looks closer.
const EDGE: u32 = 4;

/// What a kernel's access check needs, by value: a range test and one byte per page. The map outlives the process's
/// last kernel (it is never unmapped).
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub base: u64,
    /// Bytes of the arena.
    pub len: u64,
    /// One byte per page, indexed by `(address - base) >> PAGE_BITS`; a page more than the arena has.
    pub map: *const AtomicU8,
    /// Accesses count to the byte ([`exact`]). Without it, pages of which only the beginning belongs to an allocation count whole.
    pub exact: bool,
}

// SAFETY: the map is immutable in place, never unmapped, and its bytes are atomics.
unsafe impl Send for View {}
// SAFETY: threads that share a view read the same atomics; nothing else is behind the pointer.
unsafe impl Sync for View {}

/// How many pages are looked at in either direction from an address: eight gigabytes of them.
const FAR: u64 = 1 << 21;

impl View {
    /// Whether all of `bytes` (at least 1) bytes from `address` are in pages that have all of `bits`.
    #[inline(always)]
    pub fn check(&self, address: u64, bytes: u64, bits: u8) -> bool {
        let offset = address.wrapping_sub(self.base);
        // 0 bytes wrap around, and take the long way.
        if offset >= self.len || bytes.wrapping_sub(1) >= PAGE {
            return self.check_long(address, bytes, bits);
        }
        // At most one page boundary lies in the range, and the map has a byte for the page after the last.
        let first = offset >> PAGE_BITS;
        let last = (offset + bytes - 1) >> PAGE_BITS;
        // SAFETY: `first` and `last` are at most the number of pages of the arena, and the map has one more.
        let both = unsafe {
            (*self.map.add(first as usize)).load(Ordering::Relaxed)
                & (*self.map.add(last as usize)).load(Ordering::Relaxed)
        };
        both & bits == bits
    }

    #[cold]
    fn check_long(&self, address: u64, bytes: u64, bits: u8) -> bool {
        let offset = address.wrapping_sub(self.base);
        let Some(end) = offset.checked_add(bytes.max(1)) else {
            return false;
        };
        if offset >= self.len || end > self.len {
            return false;
        }
        (offset >> PAGE_BITS..=(end - 1) >> PAGE_BITS).all(|page| {
            // SAFETY: `page` lies in the arena.
            let entry = unsafe { (*self.map.add(page as usize)).load(Ordering::Relaxed) };
            entry & bits == bits
        })
    }

    /// Whether places at these distances from one, from the lowest to the highest, are in pages that have all of `bits`.
    #[inline(always)]
    pub fn check_pages(&self, from: u64, (low, high): (u32, u32), distances: &[u32], bits: u8) -> bool {
        let offset = from.wrapping_sub(self.base);
        let (first, last) = (offset.wrapping_add(low.into()), offset.wrapping_add(high.into()));
        if first > last || last >= self.len {
            return false;
        }
        let all = distances.iter().fold(bits, |all, &distance| {
            let page = offset.wrapping_add(distance.into()) >> PAGE_BITS;
            // SAFETY: the place is one of those from the first to the last, which are in the arena.
            all & unsafe { (*self.map.add(page as usize)).load(Ordering::Relaxed) }
        });
        all == bits
    }

    /// Whether all of `bytes` bytes (at least 1, at most a page's) from each place are in pages that have all of `bits`. Places
    /// are what these numbers have `by` more.
    #[inline(always)]
    pub fn check_rows(&self, places: &[u64], by: u64, bytes: u64, bits: u8) -> bool {
        if bytes.wrapping_sub(1) >= PAGE {
            return false;
        }
        let mut all = bits;
        for place in places {
            let offset = place.wrapping_add(by).wrapping_sub(self.base);
            if offset >= self.len {
                return false;
            }
            let (first, last) = (offset >> PAGE_BITS, (offset + bytes - 1) >> PAGE_BITS);
            // SAFETY: `first` and `last` are at most the number of pages of the arena, and the map has one more.
            all &= unsafe {
                (*self.map.add(first as usize)).load(Ordering::Relaxed)
                    & (*self.map.add(last as usize)).load(Ordering::Relaxed)
            };
        }
        all == bits
    }

    /// What kernels may do with some byte at least of the page at an address.
    pub fn rights(&self, address: u64) -> u8 {
        let offset = address.wrapping_sub(self.base);
        if offset >= self.len {
            return 0;
        }
        // SAFETY: the page lies in the arena.
        let entry = unsafe { (*self.map.add((offset >> PAGE_BITS) as usize)).load(Ordering::Relaxed) };
        (entry | entry >> EDGE) & (READ | WRITE)
    }

    /// The pages around an address that have all of `bits`, as far as there is no gap and within [`FAR`]: where they
    /// begin, and how many bytes they have; none where the address's own page has not.
    pub fn around(&self, address: u64, bits: u8) -> (u64, u64) {
        let offset = address.wrapping_sub(self.base);
        if offset >= self.len {
            return (0, 0);
        }
        // SAFETY: the page lies in the arena.
        let has = |page: u64| unsafe { (*self.map.add(page as usize)).load(Ordering::Relaxed) } & bits == bits;
        let page = offset >> PAGE_BITS;
        if !has(page) {
            return (0, 0);
        }
        let least = page.saturating_sub(FAR);
        let most = (page + FAR).min((self.len >> PAGE_BITS) - 1);
        let first = (least..page).rev().take_while(|&page| has(page)).last().unwrap_or(page);
        let last = (page + 1..=most).take_while(|&page| has(page)).last().unwrap_or(page);
        (self.base + (first << PAGE_BITS), (last + 1 - first) << PAGE_BITS)
    }

    /// Whether the address lies in the arena at all.
    #[inline(always)]
    pub fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.len
    }
}
