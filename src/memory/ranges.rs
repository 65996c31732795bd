//! Ranges of the arena that the program manages itself: reserved without memory, mapped to files of memory, shared.
//!
//! Flows in: sizes, files. Flows out: addresses that show what is in the files. It must never know who else has mapped them.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering;

use super::space::{AddressSpace, Allocation, Kind, OutOfMemory};
use super::{PAGE, PAGE_BITS};

/// Marks a mapped part of a reserved range among allocations: not to be freed by address. Above all flags of the API.
pub const MAPPED: u32 = 1 << 30;

/// Addresses without memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    pub bytes: u64,
    /// Pages that were taken for it, of the arena.
    block: u64,
    pages: u64,
}

impl AddressSpace {
    /// # Errors
    /// When there is no address space.
    pub fn reserve_range(&self, bytes: u64, align: u64) -> Result<Range, OutOfMemory> {
        let base = self.view().base;
        let align = align.max(PAGE).next_power_of_two();
        // Blocks are aligned within the arena, which is aligned to huge pages itself: beyond those, room to move.
        let slack = if base.is_multiple_of(align) { 0 } else { align };
        let pages = bytes.checked_add(slack).ok_or(OutOfMemory)?.div_ceil(PAGE);
        let mut state = self.state.write();
        let block = state.large.allocate(pages, align >> PAGE_BITS).ok_or(OutOfMemory)?;
        let end = state.large.used_end();
        if end > state.large_open {
            state.large_open = self
                .open(state.large_open, end)
                .inspect_err(|_| state.large.free(block, pages))?;
        }
        Ok(Range {
            start: (base + (block << PAGE_BITS)).next_multiple_of(align),
            bytes,
            block,
            pages,
        })
    }

    /// Gives back a range in which nothing is mapped.
    pub fn release_range(&self, range: Range) {
        self.state.write().large.free(range.block, range.pages);
    }

    /// Shows a file, from its beginning, in part of a reserved range; kernels may not touch it yet.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn map_file(&self, start: u64, bytes: u64, file: BorrowedFd<'_>, device: u32) -> Result<(), OutOfMemory> {
        // SAFETY: the range is one that `reserve_range` has given, and nothing is mapped there (the caller's promise).
        let mapped = unsafe {
            libc::mmap(
                start as *mut _,
                bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED,
                file.as_raw_fd(),
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(OutOfMemory);
        }
        let allocation = Allocation {
            start,
            bytes,
            kind: Kind::Device,
            device,
            owner: 0,
            flags: MAPPED,
            pool: 0,
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            // The file counts, not the places where it is shown.
            withdrawn: true,
            pages: bytes >> PAGE_BITS,
        };
        self.state.write().live.insert(start, allocation);
        Ok(())
    }

    /// Undoes [`AddressSpace::map_file`]: the addresses are reserved, and empty.
    pub fn unmap_file(&self, start: u64) {
        let mut state = self.state.write();
        let Some(allocation) = state.live.remove(&start) else {
            return;
        };
        self.mark(&allocation, 0);
        // SAFETY: the range belongs to this mapping alone. If the system refuses, the file stays visible to the process;
        // kernels cannot reach it.
        unsafe {
            libc::mmap(
                start as *mut _,
                allocation.bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
                -1,
                0,
            )
        };
    }

    /// What kernels may do in a mapped part: map bits.
    pub fn set_file_access(&self, start: u64, bits: u8) {
        let state = self.state.write();
        if let Some(allocation) = state.live.get(&start) {
            self.mark(allocation, bits);
        }
    }

    /// Memory of a device that is not in the arena.
    ///
    /// # Errors
    /// When the device's limit would be passed.
    pub fn charge_device(&self, device: u32, bytes: u64) -> Result<(), OutOfMemory> {
        self.charge(Kind::Device, device, bytes)
    }

    pub fn discharge_device(&self, device: u32, bytes: u64) {
        self.discharge(Kind::Device, device, bytes);
    }
}
