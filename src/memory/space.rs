//! The arena: one region of address space, reserved once, in which every allocation of every device lies.
//!
//! Pages become readable and writable for the *process* in large steps as the arena fills up, and stay so: a mapping per
//! allocation would run into the system's limit of mappings (65530) long before a program runs out of memory. What a
//! *kernel* may touch is the access map's business, page by page; a page after every allocation is never in it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use once_cell::sync::OnceCell;
use parking_lot::RwLock;

use super::blocks::{LargeBlocks, SMALL, SmallBlocks};
use super::caller::{self, Caller};
use super::hosts::{HostRange, HostRanges};
use super::isolation::Viewers;
use super::life::{self, Life};
use super::nearest::{Nearest, Relation};
use super::{EDGE, PAGE, PAGE_BITS, READ, View, WRITE, shadow};

pub const MAX_DEVICES: usize = 64;

/// The arena's size; halved as often as the system refuses.
const LARGEST: u64 = 1 << 40;
const SMALLEST: u64 = 1 << 28;
/// Where it is if nothing else is there. Addresses of a module's variables are numbers in its code: where they are the same in each
/// process, what was compiled for one is kept for the next.
const USUAL: u64 = 1 << 45;
/// Pages become accessible in steps of this many bytes.
const STEP: u64 = 64 << 20;
/// Transparent huge pages.
pub(super) const HUGE: u64 = 2 << 20;
/// Freed memory is kept for reuse up to so many bytes, and a single block up to so many.
const KEEP: u64 = 256 << 20;
const KEEP_ONE: u64 = 64 << 20;
/// How many freed allocations are remembered for messages.
const HISTORY: usize = 1024;
/// And as many where accesses are checked to the byte.
const HISTORY_CHECKED: usize = 1 << 16;
/// Pages that nobody gets for a while after they were freed: who uses what was freed then finds nothing there.
const QUARANTINE: Most = Most {
    pages: (16 << 20) >> PAGE_BITS,
    // More would push what is in use out of the processor's caches.
    blocks: 1024,
};
/// And where accesses are checked to the byte. It is addresses that they take, not memory.
const QUARANTINE_CHECKED: Most = Most {
    pages: (4 << 30) >> PAGE_BITS,
    blocks: usize::MAX,
};

/// What stays behind at most.
#[derive(Clone, Copy)]
struct Most {
    pages: u64,
    blocks: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Device,
    Managed,
    /// Pinned host memory, which kernels reach at the same address.
    Host,
    Array,
    /// Read-only for kernels.
    Constant,
    /// `malloc` of kernels.
    Heap,
    /// Not for kernels at all: windows of shared and local memory, staging.
    Internal,
}

impl Kind {
    /// The program's own code reads and writes it, too.
    pub fn is_shared_with_host(self) -> bool {
        matches!(self, Kind::Managed | Kind::Host)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub bytes: u64,
    /// A power of two; at least [`Request::MIN_ALIGN`] is given.
    pub align: u64,
    pub kind: Kind,
    pub device: u32,
    /// The context that owns it; 0 = none.
    pub owner: u64,
    /// For whoever asks later: flags of the call that allocated, the pool it came from.
    pub flags: u32,
    pub pool: u64,
    /// The driver call that asks, or what a kernel did.
    pub by: Caller,
}

impl Request {
    /// Allocations are aligned to at least 256 bytes by the manual; pages are given anyway.
    pub const MIN_ALIGN: u64 = 512;

    pub fn new(kind: Kind, bytes: u64) -> Request {
        Request {
            bytes,
            align: Request::MIN_ALIGN,
            kind,
            device: 0,
            owner: 0,
            flags: 0,
            pool: 0,
            by: caller::here(),
        }
    }
}

/// A live allocation (or, in messages, one that was).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    pub start: u64,
    /// As asked for.
    pub bytes: u64,
    pub kind: Kind,
    pub device: u32,
    pub owner: u64,
    pub flags: u32,
    pub pool: u64,
    /// Never used twice (`CU_POINTER_ATTRIBUTE_BUFFER_ID`).
    pub id: u64,
    /// Who asked for it, and who freed it (nobody as long as nobody has): for messages.
    pub allocated_by: Caller,
    pub freed_by: Caller,
    /// Kernels may not touch it, and it does not count as used.
    pub(super) withdrawn: bool,
    pub(super) backing: Backing,
    /// Pages taken.
    pub(super) pages: u64,
}

impl Allocation {
    pub fn contains(&self, address: u64, bytes: u64) -> bool {
        address
            .checked_sub(self.start)
            .and_then(|offset| offset.checked_add(bytes))
            .is_some_and(|end| end <= self.bytes)
    }
    pub fn end(&self) -> u64 {
        self.start + self.bytes
    }
    /// No other process can have it.
    pub fn is_private(&self) -> bool {
        matches!(self.backing, Backing::Own | Backing::Retired)
    }
    /// The same, in a block that is larger than it has to be.
    pub fn with_block(self, bytes: u64) -> Allocation {
        Allocation {
            pages: bytes >> PAGE_BITS,
            ..self
        }
    }
    /// Bytes of the block that holds it.
    pub fn block_bytes(&self) -> u64 {
        self.pages << PAGE_BITS
    }
    /// Nobody keeps it to use it again, and kernels may touch it.
    pub fn is_in_use(&self) -> bool {
        self.is_visible() && !self.withdrawn
    }
    /// All of it lies in one piece of memory that is its own, and what follows it is nobody's.
    pub fn is_whole(&self) -> bool {
        self.is_in_use() && self.backing != Backing::Shown
    }
    /// It is not the driver's own, nor waiting to be used again.
    fn is_visible(&self) -> bool {
        self.kind != Kind::Internal && self.backing != Backing::Retired
    }
}

/// Where an allocation's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backing {
    /// In the arena's own pages.
    Own,
    /// At the arena's address, in a file that other processes may have mapped.
    Moved,
    /// In a file that is shown in a reserved range.
    Shown,
    /// In the arena's own pages, and in nobody's use: somebody keeps the block to use it again.
    Retired,
}

/// The device's limit, the arena or the system has no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

struct Usage {
    limit: AtomicU64,
    used: AtomicU64,
    /// The most there has been at a time.
    peak: AtomicU64,
    /// Where others look for what is used, if anywhere.
    shown: OnceCell<&'static AtomicU64>,
}

impl Usage {
    fn new(limit: u64) -> Usage {
        Usage {
            limit: AtomicU64::new(limit),
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            shown: OnceCell::new(),
        }
    }
}

pub(super) struct State {
    small: SmallBlocks,
    pub(super) large: LargeBlocks,
    /// Up to where pages are accessible to the process, in each half.
    small_open: u64,
    pub(super) large_open: u64,
    /// Bytes of freed blocks that may still hold pages of the system, about.
    kept: u64,
    pub(super) live: BTreeMap<u64, Allocation>,
    freed: VecDeque<Allocation>,
    /// Blocks that nobody gets for a while, with their pages, the oldest first: who uses what was freed shall not find what
    /// came after it.
    quarantine: VecDeque<(u64, u64)>,
    quarantined: u64,
}

impl State {
    fn give_back(&mut self, block: u64, pages: u64, middle: u64) {
        if block < middle {
            self.small.free(block, pages);
        } else {
            self.large.free(block, pages);
        }
    }

    /// `middle` says how large the arena is, too: a quarter of it is below. At most `most` stays behind.
    fn quarantine(&mut self, (block, pages): (u64, u64), middle: u64, most: Most) {
        self.quarantine.push_back((block, pages));
        self.quarantined += pages;
        while (self.quarantined > most.pages.min(middle / 2) || self.quarantine.len() > most.blocks)
            && let Some((block, pages)) = self.quarantine.pop_front()
        {
            self.quarantined -= pages;
            self.give_back(block, pages, middle);
        }
    }

    /// Whoever asks may have all of it; `false`: there was nothing.
    fn end_quarantine(&mut self, middle: u64) -> bool {
        self.quarantined = 0;
        let any = !self.quarantine.is_empty();
        while let Some((block, pages)) = self.quarantine.pop_front() {
            self.give_back(block, pages, middle);
        }
        any
    }

    /// Keeps a freed allocation for messages, with the call that freed it.
    pub(super) fn remember(&mut self, allocation: Allocation) {
        let most = if super::exact() { HISTORY_CHECKED } else { HISTORY };
        if self.freed.len() >= most {
            self.freed.pop_front();
        }
        self.freed.push_back(Allocation {
            freed_by: caller::here(),
            ..allocation
        });
    }
}

pub struct AddressSpace {
    view: View,
    pub(super) state: RwLock<State>,
    pub(super) hosts: HostRanges,
    usage: [Usage; MAX_DEVICES],
    /// Accesses are checked to the byte ([`super::exact()`]).
    pub(super) exact: bool,
    /// Pinned and managed memory of all devices, bounded by what the machine has.
    host_usage: Usage,
    pub(super) next_id: AtomicU64,
    /// To be locked after `state`.
    pub(super) viewers: RwLock<Viewers>,
}

/// Memory of the driver's own, freed with it.
#[derive(Debug)]
pub struct Region {
    start: u64,
    bytes: u64,
}

impl Region {
    pub fn start(&self) -> u64 {
        self.start
    }
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        AddressSpace::get().free(self.start);
    }
}

static SPACE: OnceCell<AddressSpace> = OnceCell::new();

/// [`AddressSpace::version`]
static VERSION: AtomicU64 = AtomicU64::new(0);

/// After a change of what kernels may touch: whoever sees the new number sees the map as it is now.
pub(super) fn count_change() {
    VERSION.fetch_add(1, Ordering::Release);
}

impl AddressSpace {
    /// The process's, which [`AddressSpace::prepare`] has found room for, or finds now.
    pub fn get() -> &'static AddressSpace {
        SPACE.get_or_init(|| AddressSpace::reserve().expect("address space for the arena"))
    }

    /// Reserves the arena: whoever begins to use the driver learns here that it cannot be had.
    ///
    /// # Errors
    /// The system's limits (RLIMIT_AS, RLIMIT_DATA) leave too little.
    pub fn prepare() -> Result<(), OutOfMemory> {
        SPACE.get_or_try_init(AddressSpace::reserve).map(drop)
    }

    fn reserve() -> Result<AddressSpace, OutOfMemory> {
        let mut len = LARGEST;
        let (base, map) = loop {
            let map_bytes = (len >> PAGE_BITS) + PAGE;
            if let Some(base) = reserve_near(USUAL, len + HUGE, libc::PROT_NONE) {
                if let Some(map) = reserve(map_bytes, libc::PROT_READ | libc::PROT_WRITE) {
                    break (base.next_multiple_of(HUGE), map);
                }
                // SAFETY: the region was mapped just above and nobody knows of it.
                unsafe { libc::munmap(base as *mut _, (len + HUGE) as usize) };
            }
            len /= 2;
            if len < SMALLEST {
                return Err(OutOfMemory);
            }
        };
        let pages = len >> PAGE_BITS;
        let middle = pages / 4;
        let view = View {
            base,
            len,
            map: map as *const AtomicU8,
            exact: super::exact(),
        };
        if crate::config::get().check.init {
            shadow::prepare(&view);
        }
        Ok(AddressSpace {
            view,
            state: RwLock::new(State {
                // Page 0 stays free of allocations: an address just before the first is nobody's.
                small: SmallBlocks::new(1, middle),
                large: LargeBlocks::new(middle, pages),
                small_open: 0,
                large_open: middle,
                kept: 0,
                live: BTreeMap::new(),
                freed: VecDeque::new(),
                quarantine: VecDeque::new(),
                quarantined: 0,
            }),
            hosts: HostRanges::new(),
            exact: super::exact(),
            usage: std::array::from_fn(|_| Usage::new(u64::MAX)),
            host_usage: Usage::new(physical_memory()),
            next_id: AtomicU64::new(1),
            viewers: RwLock::default(),
        })
    }

    /// What the executor checks accesses with.
    pub fn view(&self) -> View {
        self.view
    }

    /// How much a device may have at most.
    pub fn set_limit(&self, device: u32, bytes: u64) {
        self.usage[device as usize].limit.store(bytes, Ordering::Relaxed);
    }

    /// From now on `place` says how many bytes a device has in use, too. To be called before any are.
    pub fn show_used(&self, device: u32, place: &'static AtomicU64) {
        let _ = self.usage[device as usize].shown.set(place);
    }

    /// Bytes in use on a device.
    pub fn used(&self, device: u32) -> u64 {
        self.usage[device as usize].used.load(Ordering::Relaxed)
    }

    /// The most bytes that have been in use on a device at a time.
    pub fn peak(&self, device: u32) -> u64 {
        self.usage[device as usize].peak.load(Ordering::Relaxed)
    }

    /// Memory that holds zeros, but for the heap of kernels and what is the driver's own.
    ///
    /// # Errors
    /// When the device's limit would be passed, or there is no memory or address space.
    pub fn allocate(&self, request: &Request) -> Result<Allocation, OutOfMemory> {
        let bytes = request.bytes.max(1);
        if bytes > self.view.len {
            return Err(OutOfMemory);
        }
        self.charge(request.kind, request.device, bytes)?;
        let pages = bytes.div_ceil(PAGE);
        // Rather than none, what was freed a moment ago.
        let placed = self.place(pages, request).or_else(|none| {
            let middle = self.middle();
            match self.state.write().end_quarantine(middle) {
                true => self.place(pages, request),
                false => Err(none),
            }
        });
        if placed.is_err() {
            self.discharge(request.kind, request.device, bytes);
        }
        placed
    }

    fn place(&self, pages: u64, request: &Request) -> Result<Allocation, OutOfMemory> {
        let align = (request.align.max(PAGE) >> PAGE_BITS).next_power_of_two();
        let mut state = self.state.write();
        let small = if pages <= SMALL && align == 1 {
            state.small.allocate(pages)
        } else {
            None
        };
        let (block, used) = match small {
            Some((block, used)) => {
                let end = state.small.used_end();
                if end > state.small_open {
                    state.small_open = self.open(state.small_open, end).inspect_err(|_| {
                        state.small.free(block, pages);
                    })?;
                }
                (block, used)
            }
            None => {
                // Memory of some size is aligned so that the system may back it with huge pages.
                let huge = if pages << PAGE_BITS >= HUGE {
                    HUGE >> PAGE_BITS
                } else {
                    1
                };
                let (block, used) = state.large.allocate(pages, align.max(huge)).ok_or(OutOfMemory)?;
                let end = state.large.used_end();
                if end > state.large_open {
                    state.large_open = self.open(state.large_open, end).inspect_err(|_| {
                        state.large.free(block, pages);
                    })?;
                }
                (block, used)
            }
        };
        state.kept = state.kept.saturating_sub(pages << PAGE_BITS);
        let (start, bytes) = (self.view.base + (block << PAGE_BITS), pages << PAGE_BITS);
        // Programs count on zeros, as they find them on a device that has just been started. Managed memory, moreover, is
        // nowhere until somebody touches it, which can be asked.
        let clear = match request.kind {
            Kind::Managed => true,
            Kind::Device | Kind::Host | Kind::Array | Kind::Constant => used,
            Kind::Heap | Kind::Internal => false,
        };
        if clear && (bytes >= HUGE || request.kind == Kind::Managed) {
            // SAFETY: the block is nobody's yet; its pages read as zero from now on.
            unsafe { libc::madvise(start as *mut _, bytes as usize, libc::MADV_DONTNEED) };
        } else if clear {
            // It takes its time, and nobody needs to wait for that.
            drop(state);
            // SAFETY: the block is nobody's yet, and its pages are accessible.
            unsafe { std::ptr::write_bytes(start as *mut u8, 0, bytes as usize) };
            state = self.state.write();
        }
        let allocation = Allocation {
            start,
            bytes: request.bytes.max(1),
            kind: request.kind,
            device: request.device,
            owner: request.owner,
            flags: request.flags,
            pool: request.pool,
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            allocated_by: request.by,
            freed_by: Caller::NOBODY,
            withdrawn: false,
            backing: Backing::Own,
            pages,
        };
        state.live.insert(allocation.start, allocation);
        // Before the lock is released: nobody else can free what is not returned yet.
        self.mark(&allocation, bits_of(request.kind));
        Ok(allocation)
    }

    /// Frees the allocation that starts at `start`: kernels lose it first, then its memory goes.
    pub fn free(&self, start: u64) -> Option<Allocation> {
        // Whoever wants to know where the call was made finds out here, and not under the lock.
        caller::here();
        let mut state = self.state.write();
        let allocation = state.live.remove(&start)?;
        self.mark(&allocation, 0);
        let pages = allocation.pages;
        let bytes = pages << PAGE_BITS;
        // What is the driver's own nobody uses any more.
        let waits = allocation.is_visible();
        match allocation.backing {
            // The range, and what it shows, are their owner's.
            Backing::Shown => {}
            // Who else has mapped the file keeps it; the next allocation here begins with zeros.
            Backing::Moved => self.hide_file(start, bytes),
            Backing::Own | Backing::Retired if self.exact || bytes > KEEP_ONE || state.kept + bytes > KEEP => {
                // SAFETY: the pages belong to this allocation alone, which is gone; they read as zero when used again.
                unsafe { libc::madvise(start as *mut _, bytes as usize, libc::MADV_DONTNEED) };
            }
            Backing::Own | Backing::Retired => state.kept += bytes,
        }
        if allocation.backing != Backing::Shown {
            let block = (start - self.view.base) >> PAGE_BITS;
            match (self.exact, waits) {
                (true, _) => state.quarantine((block, pages), self.middle(), QUARANTINE_CHECKED),
                (false, true) => state.quarantine((block, pages), self.middle(), QUARANTINE),
                (false, false) => state.give_back(block, pages, self.middle()),
            }
        }
        if allocation.is_visible() {
            state.remember(allocation);
        }
        drop(state);
        if !allocation.withdrawn {
            self.discharge(allocation.kind, allocation.device, allocation.bytes);
        }
        Some(allocation)
    }

    /// Takes an allocation from kernels, and from what counts as used; its place and, until [`AddressSpace::forget`], its
    /// contents stay. For memory that comes and goes at an address that does not change. `false`: nothing to take.
    pub fn withdraw(&self, start: u64) -> bool {
        let mut state = self.state.write();
        let Some(allocation) = state.live.get_mut(&start).filter(|allocation| !allocation.withdrawn) else {
            return false;
        };
        allocation.withdrawn = true;
        let allocation = *allocation;
        self.mark(&allocation, 0);
        drop(state);
        self.discharge(allocation.kind, allocation.device, allocation.bytes);
        true
    }

    /// Undoes [`AddressSpace::withdraw`].
    ///
    /// # Errors
    /// When the device's limit would be passed.
    pub fn offer(&self, start: u64) -> Result<(), OutOfMemory> {
        let mut state = self.state.write();
        let Some(allocation) = state.live.get_mut(&start).filter(|allocation| allocation.withdrawn) else {
            return Ok(());
        };
        self.charge(allocation.kind, allocation.device, allocation.bytes)?;
        allocation.withdrawn = false;
        let allocation = *allocation;
        self.mark(&allocation, bits_of(allocation.kind));
        Ok(())
    }

    /// Gives the system back what a withdrawn allocation holds; it reads as zero when it is offered again.
    pub fn forget(&self, start: u64) {
        let state = self.state.write();
        if let Some(allocation) = state.live.get(&start).filter(|allocation| allocation.withdrawn) {
            let bytes = (allocation.pages << PAGE_BITS) as usize;
            // SAFETY: the pages belong to this allocation alone, and nobody has it.
            unsafe { libc::madvise(start as *mut _, bytes, libc::MADV_DONTNEED) };
        }
    }

    pub(super) fn charge(&self, kind: Kind, device: u32, bytes: u64) -> Result<(), OutOfMemory> {
        let charge = bytes.next_multiple_of(Request::MIN_ALIGN);
        let Some(usage) = self.charged(kind, device) else {
            return Ok(());
        };
        let taken = usage.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(charge)
                .filter(|sum| *sum <= usage.limit.load(Ordering::Relaxed))
        });
        let before = taken.map_err(|_| OutOfMemory)?;
        usage.peak.fetch_max(before + charge, Ordering::Relaxed);
        if let Some(shown) = usage.shown.get() {
            shown.fetch_add(charge, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(super) fn discharge(&self, kind: Kind, device: u32, bytes: u64) {
        if let Some(usage) = self.charged(kind, device) {
            let charge = bytes.next_multiple_of(Request::MIN_ALIGN);
            usage.used.fetch_sub(charge, Ordering::Relaxed);
            if let Some(shown) = usage.shown.get() {
                shown.fetch_sub(charge, Ordering::Relaxed);
            }
        }
    }

    /// Another owner has an allocation from now on, whose map shows it already: one that may touch memory of its pool.
    pub fn hand_over(&self, start: u64, id: u64, owner: u64) {
        let mut state = self.state.write();
        let allocation = state.live.get_mut(&start).filter(|allocation| allocation.id == id);
        if let Some(allocation) = allocation {
            allocation.owner = owner;
        }
    }

    /// Frees everything that an owner has left.
    pub fn free_all_of(&self, owner: u64) {
        let starts: Vec<u64> = {
            let state = self.state.read();
            let owned = state.live.values().filter(|allocation| allocation.owner == owner);
            owned.map(|allocation| allocation.start).collect()
        };
        for start in starts {
            self.free(start);
        }
        self.hosts.remove_of(owner);
    }

    /// The live allocation that holds an address. The driver's own memory is not found.
    pub fn find(&self, address: u64) -> Option<Allocation> {
        if !self.view.contains(address) {
            return None;
        }
        let state = self.state.read();
        let (_, allocation) = state.live.range(..=address).next_back()?;
        let found = address < allocation.end() && allocation.is_visible();
        found.then_some(*allocation)
    }

    /// Whether the driver's own memory is at an address: what blocks have as shared and local memory, among others.
    pub fn is_internal(&self, address: u64) -> bool {
        let state = self.state.read();
        let before = state.live.range(..=address).next_back();
        before.is_some_and(|(_, allocation)| allocation.kind == Kind::Internal && address < allocation.end())
    }

    /// All allocations of a device that programs know, ascending.
    pub fn live(&self, device: u32) -> Vec<Allocation> {
        let state = self.state.read();
        let live = state.live.values();
        let live = live.filter(|allocation| allocation.device == device && allocation.kind != Kind::Internal);
        let mut live: Vec<Allocation> = live.copied().collect();
        live.sort_by_key(|allocation| allocation.start);
        live
    }

    /// What an address that a kernel must not touch is next to: what holds it, held it, or is nearest to it.
    pub fn nearest(&self, address: u64) -> Option<Nearest> {
        let state = self.state.read();
        let visible = |allocation: &&Allocation| allocation.is_visible();
        let before = state
            .live
            .range(..=address)
            .rev()
            .map(|entry| entry.1)
            .find(visible)
            .copied();
        let after = state.live.range(address..).map(|entry| entry.1).find(visible).copied();
        let describe = |allocation: Allocation, freed: bool| Nearest {
            allocation,
            relation: if address < allocation.start {
                Relation::Before(allocation.start - address)
            } else if address < allocation.end() {
                Relation::Inside(address - allocation.start)
            } else {
                Relation::After(address - allocation.end())
            },
            freed,
        };
        if let Some(allocation) = before.filter(|allocation| allocation.contains(address, 1)) {
            return Some(describe(allocation, false));
        }
        // What the driver keeps there now says more than who had the place before.
        let before_any = state.live.range(..=address).next_back();
        // What is kept to be used again is nobody's meanwhile.
        let in_use = before_any
            .is_some_and(|(_, allocation)| allocation.contains(address, 1) && allocation.backing != Backing::Retired);
        let freed = state.freed.iter().rev().find(|freed| freed.contains(address, 1));
        if let Some(allocation) = freed.filter(|_| !in_use) {
            return Some(describe(*allocation, true));
        }
        let candidates = before.into_iter().chain(after).map(|live| describe(live, false));
        candidates.min_by_key(Nearest::distance)
    }

    /// Memory of the driver's own: accessible to the process, not to kernels by the map.
    ///
    /// # Errors
    /// When there is no memory or address space.
    pub fn allocate_internal(&self, bytes: u64, align: u64) -> Result<Region, OutOfMemory> {
        let request = Request {
            align,
            ..Request::new(Kind::Internal, bytes)
        };
        let allocation = self.allocate(&request)?;
        Ok(Region {
            start: allocation.start,
            bytes: allocation.bytes,
        })
    }

    /// Lets kernels touch a range of the host's. `false`: it overlaps one that they may touch already.
    pub fn register_host(&self, start: u64, bytes: u64, bits: u8, owner: u64, device: u32, flags: u32) -> bool {
        let arena = self.view.base..self.view.base + self.view.len;
        let Some(end) = start.checked_add(bytes) else {
            return false;
        };
        if start < arena.end && end > arena.start {
            return false;
        }
        super::guard::install();
        let inserted = self.hosts.insert(HostRange {
            start,
            bytes,
            bits,
            owner,
            device,
            flags,
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
        });
        if inserted {
            life::tell(|| Life {
                start,
                bytes,
                kind: None,
                bits,
            });
        }
        inserted
    }

    /// Takes a registered range away; `start` is where it was registered.
    pub fn unregister_host(&self, start: u64) -> Option<HostRange> {
        let range = self.hosts.remove(start)?;
        life::tell(|| Life {
            start,
            bytes: range.bytes,
            kind: None,
            bits: 0,
        });
        Some(range)
    }

    /// The registered range that holds an address.
    pub fn find_host(&self, address: u64) -> Option<HostRange> {
        self.hosts.find(address)
    }

    /// Whether an address lies in a registered range whose memory the program has taken away, as an access found out.
    pub fn host_range_is_gone(&self, address: u64) -> bool {
        self.hosts.has_lost(address)
    }

    /// Whether kernels may touch `bytes` bytes from `address` because the host registered them: the slow path of an
    /// access check. Takes no lock.
    pub fn host_range_contains(&self, address: u64, bytes: u64, bits: u8) -> bool {
        self.hosts.contains(address, bytes, bits)
    }

    /// The first page of the half for large blocks.
    fn middle(&self) -> u64 {
        (self.view.len >> PAGE_BITS) / 4
    }

    fn charged(&self, kind: Kind, device: u32) -> Option<&Usage> {
        match kind {
            Kind::Device | Kind::Array | Kind::Constant | Kind::Heap => Some(&self.usage[device as usize]),
            Kind::Managed | Kind::Host => Some(&self.host_usage),
            Kind::Internal => None,
        }
    }

    /// Counts changes of what kernels may touch: what was found out about addresses before one is void.
    pub fn version(&self) -> u64 {
        VERSION.load(Ordering::Acquire)
    }

    pub(super) fn count_change(&self) {
        count_change();
    }

    /// What kernels may do with an allocation that is new to them, or is one no longer.
    pub(super) fn mark(&self, allocation: &Allocation, bits: u8) {
        if let Some(shadow) = shadow::get() {
            shadow.marked(allocation, bits);
        }
        self.change_rights(allocation, bits);
    }

    pub(super) fn change_rights(&self, allocation: &Allocation, bits: u8) {
        let first = (allocation.start - self.view.base) >> PAGE_BITS;
        for page in 0..allocation.pages {
            let rest = allocation.bytes.saturating_sub(page << PAGE_BITS);
            let bits = match rest {
                _ if !self.exact => bits,
                0 => 0,
                1..PAGE => bits << EDGE,
                PAGE.. => bits,
            };
            // SAFETY: the pages of an allocation lie in the arena.
            unsafe { (*self.view.map.add((first + page) as usize)).store(bits, Ordering::Relaxed) };
        }
        self.viewers.read().changed(allocation, first, &self.view);
        self.count_change();
        life::tell(|| Life {
            start: allocation.start,
            // Of a part of an allocation, the part's.
            bytes: allocation.bytes.min(allocation.pages << PAGE_BITS),
            kind: Some(allocation.kind),
            bits,
        });
    }

    /// Makes pages from `open` on accessible, at least up to `end`; answers up to where they are now.
    pub(super) fn open(&self, open: u64, end: u64) -> Result<u64, OutOfMemory> {
        let limit = if open < self.middle() {
            self.middle()
        } else {
            self.view.len >> PAGE_BITS
        };
        let start = self.view.base + (open << PAGE_BITS);
        let open_to = |to: u64| {
            let (bytes, rights) = ((to - open) << PAGE_BITS, libc::PROT_READ | libc::PROT_WRITE);
            // SAFETY: the range lies in the arena, which is ours and has not been used there yet.
            (unsafe { libc::mprotect(start as *mut _, bytes as usize, rights) } == 0).then_some(to)
        };
        // Where memory is limited (RLIMIT_DATA) there may be none for a whole step, but for what is asked for.
        let step = end.next_multiple_of(STEP >> PAGE_BITS).min(limit).max(end);
        let to = open_to(step).or_else(|| open_to(end)).ok_or(OutOfMemory)?;
        let bytes = (to - open) << PAGE_BITS;
        if open >= self.middle() {
            // SAFETY: the range was made accessible just now; this only advises how to back it.
            unsafe { libc::madvise(start as *mut _, bytes as usize, libc::MADV_HUGEPAGE) };
        }
        Ok(to)
    }
}

pub(super) fn bits_of(kind: Kind) -> u8 {
    match kind {
        Kind::Device | Kind::Managed | Kind::Host | Kind::Heap => READ | WRITE,
        Kind::Constant => READ,
        // Arrays are reached by way of textures and surfaces.
        Kind::Internal | Kind::Array => 0,
    }
}

pub(super) fn reserve(bytes: u64, protection: libc::c_int) -> Option<u64> {
    reserve_near(0, bytes, protection)
}

/// At `wish` if nothing is there, and anywhere else if something is.
fn reserve_near(wish: u64, bytes: u64, protection: libc::c_int) -> Option<u64> {
    // SAFETY: a fresh private mapping at an address of the system's choice, which is the one that is wished for only if that is free.
    let address = unsafe {
        libc::mmap(
            wish as *mut libc::c_void,
            bytes as usize,
            protection,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (address != libc::MAP_FAILED).then_some(address as u64)
}

/// Whether the process could have so many bytes more. An allocation of Rust's own that fails ends the process, so that who
/// is about to make many asks first.
pub(crate) fn has_room(bytes: u64) -> bool {
    // SAFETY: a fresh private mapping at an address of the system's choice, which nobody else knows, and which goes at once.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let address = libc::mmap(
            std::ptr::null_mut(),
            bytes as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        );
        address != libc::MAP_FAILED && libc::munmap(address, bytes as usize) == 0
    }
}

/// Bytes of memory that the machine has.
pub(crate) fn physical_memory() -> u64 {
    // SAFETY: sysconf only answers.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    match (u64::try_from(pages), u64::try_from(size)) {
        (Ok(pages), Ok(size)) => pages.saturating_mul(size),
        _ => u64::MAX,
    }
}
