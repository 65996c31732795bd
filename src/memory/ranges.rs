//! Ranges of the arena that the program manages itself: reserved without memory, mapped to files of memory, shared. Other
//! processes may have mapped the same files.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering;

use super::caller::Caller;
use super::space::{AddressSpace, Allocation, Backing, HUGE, Kind, OutOfMemory, Request, bits_of};
use super::{PAGE, PAGE_BITS, shadow};
use crate::trace::signals::quietly;

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
        let (block, _) = state.large.allocate(pages, align >> PAGE_BITS).ok_or(OutOfMemory)?;
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

    /// Shows part of a file at `start`, instead of what is there; `bytes` and `offset` are multiples of a page.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn show_file(
        &self,
        start: u64,
        bytes: u64,
        file: BorrowedFd<'_>,
        offset: u64,
    ) -> Result<(), OutOfMemory> {
        // SAFETY: the addresses are the arena's, and the caller's to fill.
        let mapped = unsafe {
            libc::mmap(
                start as *mut _,
                bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if mapped == libc::MAP_FAILED {
            Err(OutOfMemory)
        } else {
            Ok(())
        }
    }

    /// Undoes [`AddressSpace::show_file`]: pages of the arena's own, which read as zero.
    pub(super) fn hide_file(&self, start: u64, bytes: u64) {
        // SAFETY: the addresses are the arena's, and the caller's. If the system refuses, the file stays visible to the
        // process; kernels cannot reach it.
        unsafe {
            libc::mmap(
                start as *mut _,
                bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if bytes >= HUGE {
            // SAFETY: the range was mapped just now; this only advises how to back it.
            unsafe { libc::madvise(start as *mut _, bytes as usize, libc::MADV_HUGEPAGE) };
        }
    }

    /// Shows a file in part of a reserved range where nothing is yet; kernels may not touch it yet. It counts for nobody:
    /// the file does, not the places where it is shown.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn map_file(
        &self,
        start: u64,
        file: BorrowedFd<'_>,
        offset: u64,
        request: &Request,
    ) -> Result<Allocation, OutOfMemory> {
        let pages = request.bytes.div_ceil(PAGE);
        self.show_file(start, pages << PAGE_BITS, file, offset)?;
        let request = Request {
            flags: request.flags | MAPPED,
            ..*request
        };
        let allocation = self.describe(start, &request, true);
        self.state.write().live.insert(start, allocation);
        Ok(allocation)
    }

    fn describe(&self, start: u64, request: &Request, withdrawn: bool) -> Allocation {
        Allocation {
            start,
            bytes: request.bytes,
            kind: request.kind,
            device: request.device,
            owner: request.owner,
            flags: request.flags,
            pool: request.pool,
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            allocated_by: request.by,
            freed_by: Caller::NOBODY,
            withdrawn,
            backing: Backing::Shown,
            pages: request.bytes.div_ceil(PAGE),
        }
    }

    /// Undoes [`AddressSpace::map_file`]: the addresses are reserved, and empty.
    pub fn unmap_file(&self, start: u64) {
        let mut state = self.state.write();
        let Some(allocation) = state.live.remove(&start) else {
            return;
        };
        self.mark(&allocation, 0);
        self.hide_file(start, allocation.block_bytes());
    }

    /// Shows a file, from its beginning, in a whole reserved range: [`AddressSpace::adopt`] makes allocations of parts.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn fill_range(&self, range: &Range, file: BorrowedFd<'_>) -> Result<(), OutOfMemory> {
        self.show_file(range.start, range.bytes, file, 0)
    }

    /// Gives a range back that [`AddressSpace::fill_range`] has filled.
    pub fn empty_range(&self, range: Range) {
        self.hide_file(range.start, range.bytes);
        self.release_range(range);
    }

    /// Makes an allocation of part of a filled range; [`AddressSpace::free`] ends it, and leaves the file as it is. One
    /// that does not count is another process's.
    ///
    /// # Errors
    /// When the device's limit would be passed.
    pub fn adopt(&self, start: u64, request: &Request, counts: bool) -> Result<Allocation, OutOfMemory> {
        if counts {
            self.charge(request.kind, request.device, request.bytes)?;
        }
        let allocation = self.describe(start, request, !counts);
        let mut state = self.state.write();
        state.live.insert(start, allocation);
        self.mark(&allocation, bits_of(request.kind));
        Ok(allocation)
    }

    /// Moves an allocation's bytes into a file that is as large as its block, so that other processes can map it; the
    /// address stays. Nobody may write to it meanwhile (the caller's promise).
    ///
    /// # Errors
    /// When the system refuses: nothing has changed then.
    pub fn move_to_file(&self, start: u64, file: BorrowedFd<'_>) -> Result<(), OutOfMemory> {
        let mut state = self.state.write();
        let allocation = state.live.get_mut(&start).ok_or(OutOfMemory)?;
        if allocation.backing != Backing::Own {
            return Err(OutOfMemory);
        }
        copy_to_file(start, allocation.block_bytes(), file)?;
        self.show_file(start, allocation.block_bytes(), file, 0)?;
        allocation.backing = Backing::Moved;
        if let Some(shadow) = shadow::get() {
            // What other processes write is not seen.
            shadow.know(start, allocation.block_bytes(), true);
        }
        Ok(())
    }

    /// Takes an allocation from everybody, but keeps its block, which goes on counting unless it was withdrawn: to be revived
    /// or freed. `None`: there is none, or its memory is not the arena's own.
    pub fn retire(&self, start: u64) -> Option<Allocation> {
        let mut state = self.state.write();
        let allocation = state.live.get_mut(&start)?;
        if allocation.backing != Backing::Own {
            return None;
        }
        allocation.backing = Backing::Retired;
        let allocation = *allocation;
        self.mark(&allocation, 0);
        state.remember(Allocation {
            backing: Backing::Own,
            ..allocation
        });
        Some(allocation)
    }

    /// Uses the retired block of allocation `id` again, or one that is still in use but free for whoever asks (stream order
    /// has it so), for a request that fits into it; what it held is what it holds.
    ///
    /// # Errors
    /// When there is no such block, or the device's limit would be passed.
    pub fn revive(&self, start: u64, id: u64, request: &Request) -> Result<Allocation, OutOfMemory> {
        let mut state = self.state.write();
        let found = state.live.get_mut(&start).filter(|found| found.id == id);
        let allocation = found.ok_or(OutOfMemory)?;
        let fits = request.bytes.div_ceil(PAGE) <= allocation.pages;
        let is_free = match allocation.backing {
            Backing::Own => !allocation.withdrawn,
            Backing::Retired => true,
            Backing::Moved | Backing::Shown => false,
        };
        if !is_free || !fits {
            return Err(OutOfMemory);
        }
        if !allocation.withdrawn {
            self.discharge(allocation.kind, allocation.device, allocation.bytes);
        }
        if self.charge(request.kind, request.device, request.bytes).is_err() {
            if !allocation.withdrawn {
                // There was room for it a moment ago.
                let _ = self.charge(allocation.kind, allocation.device, allocation.bytes);
            }
            return Err(OutOfMemory);
        }
        *allocation = Allocation {
            pages: allocation.pages,
            backing: Backing::Own,
            ..self.describe(start, request, false)
        };
        let allocation = *allocation;
        // What was written there is so until the one who asks has his turn in the order of his stream.
        self.change_rights(&allocation, bits_of(request.kind));
        Ok(allocation)
    }
}

impl AddressSpace {
    /// Gives the system back what whole pages of a part of an allocation hold: they read as zero.
    pub fn discard(&self, address: u64, bytes: u64) {
        let state = self.state.write();
        let found = state
            .live
            .range(..=address)
            .next_back()
            .map(|(_, allocation)| allocation);
        let owns = |allocation: &&Allocation| allocation.backing == Backing::Own && allocation.contains(address, bytes);
        let (first, last) = (address.next_multiple_of(PAGE), (address + bytes) / PAGE * PAGE);
        if found.filter(owns).is_some() && first < last {
            // SAFETY: the pages belong to this allocation, whose contents the caller does not want.
            unsafe { libc::madvise(first as *mut _, (last - first) as usize, libc::MADV_DONTNEED) };
        }
    }
}

/// The pages of a range that are not zero, into a file at the same offsets.
fn copy_to_file(start: u64, bytes: u64, file: BorrowedFd<'_>) -> Result<(), OutOfMemory> {
    let mut page = 0;
    while page < bytes {
        let address = start + page;
        // SAFETY: the range is an allocation's, and accessible.
        let words = unsafe { std::slice::from_raw_parts(address as *const u64, PAGE as usize / 8) };
        if words.iter().any(|word| *word != 0) {
            // SAFETY: the page is the allocation's, all of it readable; the file is open.
            let written = quietly(|| unsafe {
                libc::pwrite(
                    file.as_raw_fd(),
                    address as *const _,
                    PAGE as usize,
                    page as libc::off_t,
                )
            });
            if written != PAGE as isize {
                return Err(OutOfMemory);
            }
        }
        page += PAGE;
    }
    Ok(())
}

impl AddressSpace {
    /// What kernels may do with an allocation: map bits.
    pub fn set_access(&self, start: u64, bits: u8) {
        let state = self.state.write();
        if let Some(allocation) = state.live.get(&start) {
            self.change_rights(allocation, bits);
        }
    }

    /// As [`AddressSpace::set_access`], of some of its pages.
    pub fn set_access_of_part(&self, start: u64, first: u64, bytes: u64, bits: u8) {
        let state = self.state.write();
        if let Some(allocation) = state.live.get(&start).filter(|whole| whole.contains(first, bytes)) {
            let part = Allocation {
                start: first,
                pages: bytes >> PAGE_BITS,
                ..*allocation
            };
            self.change_rights(&part, bits);
        }
    }

    /// Shows another part of a file, or another file, in some pages of a mapped part.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn replace_file(&self, start: u64, bytes: u64, file: BorrowedFd<'_>, offset: u64) -> Result<(), OutOfMemory> {
        self.show_file(start, bytes, file, offset)
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
