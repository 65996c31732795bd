//! The device heap: `malloc` and `free` of kernels.
//!
//! Blocks of a page or more are allocations of the address space in their own right: a stray access beyond one faults.
//! Smaller ones share slabs, a size class each. Every live block is known, so that `free` can tell a block from a pointer
//! that is none (CUDA programming guide, "Dynamic Global Memory Allocation and Operations").

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::memory::caller::Caller;
use crate::memory::{self, AddressSpace, Kind, PAGE, Request};

pub(in crate::driver) const DEFAULT_HEAP: u64 = 8 << 20;

/// The smallest block; `malloc` aligns to 16 bytes.
const GRAIN: u64 = 16;
const SLAB: u64 = 64 << 10;

#[derive(Default)]
struct State {
    /// Start → bytes taken from the limit.
    live: HashMap<u64, u64>,
    /// Free blocks of the classes 16, 32, 64 … 2048.
    free: [Vec<u64>; 8],
    slabs: Vec<u64>,
}

pub(in crate::driver) struct Heap {
    device: u32,
    owner: u64,
    /// `CU_LIMIT_MALLOC_HEAP_SIZE`.
    pub limit: AtomicU64,
    used: AtomicU64,
    state: Mutex<State>,
}

impl Heap {
    pub fn new(device: u32, owner: u64) -> Heap {
        Heap {
            device,
            owner,
            limit: AtomicU64::new(DEFAULT_HEAP),
            used: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// Some kernel has allocated: the limit is settled.
    pub fn is_used(&self) -> bool {
        let state = self.state.lock();
        !state.live.is_empty() || !state.slabs.is_empty()
    }

    /// 0 when the heap is spent, or nothing was asked for.
    pub fn allocate(&self, bytes: u64) -> u64 {
        if bytes == 0 {
            return 0;
        }
        // What shares a page with others is not checked to the byte.
        let is_small = bytes <= PAGE / 2 && !memory::exact();
        let taken = if is_small {
            bytes.next_power_of_two().max(GRAIN)
        } else {
            match bytes.checked_next_multiple_of(GRAIN) {
                Some(bytes) => bytes,
                None => return 0,
            }
        };
        let limit = self.limit.load(Ordering::Relaxed);
        let room = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(taken).filter(|sum| *sum <= limit)
        });
        if room.is_err() {
            return 0;
        }
        let address = if is_small {
            self.take_from_slab(taken)
        } else {
            self.take_from_space(bytes)
        };
        match address {
            Some(address) => {
                self.state.lock().live.insert(address, taken);
                address
            }
            None => {
                self.used.fetch_sub(taken, Ordering::Relaxed);
                0
            }
        }
    }

    fn take_from_slab(&self, bytes: u64) -> Option<u64> {
        let class = (bytes / GRAIN).trailing_zeros() as usize;
        let mut state = self.state.lock();
        if let Some(address) = state.free[class].pop() {
            return Some(address);
        }
        let slab = self.take_from_space(SLAB)?;
        state.slabs.push(slab);
        // The lowest address goes out first.
        state.free[class].extend((0..SLAB / bytes).rev().map(|index| slab + index * bytes));
        state.free[class].pop()
    }

    fn take_from_space(&self, bytes: u64) -> Option<u64> {
        let request = Request {
            device: self.device,
            owner: self.owner,
            by: Caller::named("malloc in a kernel"),
            ..Request::new(Kind::Heap, bytes)
        };
        AddressSpace::get().allocate(&request).ok().map(|block| block.start)
    }

    /// `false`: not a live block. A null pointer is nothing to free.
    pub fn free(&self, address: u64) -> bool {
        if address == 0 {
            return true;
        }
        let mut state = self.state.lock();
        let Some(taken) = state.live.remove(&address) else {
            return false;
        };
        if taken <= PAGE / 2 && !memory::exact() {
            state.free[(taken / GRAIN).trailing_zeros() as usize].push(address);
        } else {
            Caller::named("free in a kernel").during(|| AddressSpace::get().free(address));
        }
        self.used.fetch_sub(taken, Ordering::Relaxed);
        true
    }

    /// The context is reset: everything is gone (the address space has freed it already).
    pub fn forget(&self) {
        *self.state.lock() = State::default();
        self.used.store(0, Ordering::Relaxed);
        self.limit.store(DEFAULT_HEAP, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_apart_and_come_back() {
        let heap = Heap::new(40, 0xFFFF_0001);
        let mut blocks: Vec<(u64, u64)> = Vec::new();
        for bytes in (1..3000).step_by(7).chain([5000, 70_000]) {
            let address = heap.allocate(bytes);
            assert!(address != 0 && address.is_multiple_of(16), "{bytes}");
            blocks.push((address, bytes));
        }
        blocks.sort_unstable();
        for pair in blocks.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0);
        }
        for (address, _) in &blocks {
            assert!(!heap.free(address + 8));
            assert!(heap.free(*address));
            assert!(!heap.free(*address), "twice");
        }
        assert_eq!(heap.used.load(Ordering::Relaxed), 0);
        AddressSpace::get().free_all_of(0xFFFF_0001);
    }

    #[test]
    fn the_limit_holds() {
        let heap = Heap::new(41, 0xFFFF_0002);
        assert_eq!(heap.allocate(DEFAULT_HEAP + 1), 0);
        assert_eq!(heap.allocate(u64::MAX), 0);
        assert_eq!(heap.allocate(0), 0);
        let all = heap.allocate(DEFAULT_HEAP);
        assert_ne!(all, 0);
        assert_eq!(heap.allocate(1), 0);
        assert!(heap.free(all));
        assert_ne!(heap.allocate(1), 0);
        AddressSpace::get().free_all_of(0xFFFF_0002);
    }
}
