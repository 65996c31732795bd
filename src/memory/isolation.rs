//! Who may touch what: each context has an address space of its own, and sees of another's memory what was shared with it.
//!
//! As long as there is one context, all look at one map. From the second on each has a map of its own, which its launches
//! take with them ([`AddressSpace::view_of`]), so that an access costs the same. What a context sees (CUDA Driver API,
//! Unified Addressing; Peer Context Memory Access; Virtual Memory Management; Stream Ordered Memory Allocator):
//!
//! - its own memory, managed memory and pinned memory of whoever it is;
//! - the memory of contexts to which it has enabled access, but for that of pools;
//! - memory of pools of its device, and of those that give its device access;
//! - mapped memory to which its device was given access.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};

use super::space::{AddressSpace, Allocation, Kind, reserve};
use super::{EDGE, PAGE, PAGE_BITS, READ, View, WRITE};

/// A map of a context's own.
struct Viewer {
    owner: u64,
    device: u32,
    /// Owners whose memory it may touch.
    peers: Vec<u64>,
    map: Option<&'static [AtomicU8]>,
}

/// All contexts that there are.
#[derive(Default)]
pub(super) struct Viewers {
    all: Vec<Viewer>,
    /// Maps of contexts that have gone, all zeros.
    spare: Vec<&'static [AtomicU8]>,
    /// By pool, what devices may do with its memory, but for the pool's own.
    pools: BTreeMap<u64, BTreeMap<u32, u8>>,
    /// By the start of mapped memory, what devices may do with it.
    mapped: BTreeMap<u64, BTreeMap<u32, u8>>,
}

impl Viewers {
    /// What a context may do at most with an allocation.
    fn limit(&self, viewer: &Viewer, allocation: &Allocation) -> u8 {
        let all = READ | WRITE;
        let given = |known: &BTreeMap<u32, u8>| known.get(&viewer.device).copied().unwrap_or(0);
        if matches!(allocation.kind, Kind::Managed | Kind::Host) {
            return all;
        }
        if let Some(known) = self.mapped.get(&allocation.start) {
            return given(known);
        }
        if allocation.owner == 0 || allocation.owner == viewer.owner {
            return all;
        }
        if allocation.pool != 0 {
            return match allocation.device == viewer.device {
                true => all,
                false => self.pools.get(&allocation.pool).map_or(0, given),
            };
        }
        match viewer.peers.contains(&allocation.owner) {
            true => all,
            false => 0,
        }
    }

    /// Pages of an allocation have changed in the map of all: what the maps of the contexts make of it.
    pub fn changed(&self, allocation: &Allocation, first: u64, all: &View) {
        for viewer in &self.all {
            if let Some(map) = viewer.map {
                let limit = self.limit(viewer, allocation);
                copy(map, all, first, allocation.pages, limit);
            }
        }
    }

    fn find(&mut self, owner: u64) -> Option<&mut Viewer> {
        self.all.iter_mut().find(|viewer| viewer.owner == owner)
    }
}

/// Copies what is known of some pages from the map of all, as far as `limit` goes.
fn copy(map: &[AtomicU8], all: &View, first: u64, pages: u64, limit: u8) {
    let limit = limit | limit << EDGE;
    for page in first..first + pages {
        // SAFETY: the pages of an allocation lie in the arena, of which both maps have every page.
        let bits = unsafe { (*all.map.add(page as usize)).load(Ordering::Relaxed) };
        map[page as usize].store(bits & limit, Ordering::Relaxed);
    }
}

impl AddressSpace {
    /// What kernels of a context may touch.
    pub fn view_of(&self, owner: u64) -> View {
        let viewers = self.viewers.read();
        let own = viewers.all.iter().find(|viewer| viewer.owner == owner);
        let all = self.view();
        own.and_then(|viewer| viewer.map).map_or(all, |map| View {
            map: map.as_ptr(),
            ..all
        })
    }

    /// There is one more context.
    pub fn begin_context(&self, owner: u64, device: u32) {
        // Nothing changes meanwhile, and launches find the maps filled in.
        let state = self.state.read();
        let mut viewers = self.viewers.write();
        if viewers.find(owner).is_some() {
            return;
        }
        viewers.all.push(Viewer {
            owner,
            device,
            peers: Vec::new(),
            map: None,
        });
        if viewers.all.len() < 2 {
            return;
        }
        for at in 0..viewers.all.len() {
            if viewers.all[at].map.is_none() {
                // Without room for a map the context sees everything, as if it were alone.
                viewers.all[at].map = viewers.spare.pop().or_else(|| self.new_map());
            }
        }
        for allocation in state.live.values() {
            viewers.changed(allocation, self.page_of(allocation), &self.view());
        }
        self.count_change();
    }

    /// A context has gone, with all that it had.
    pub fn end_context(&self, owner: u64) {
        let _state = self.state.read();
        let mut viewers = self.viewers.write();
        let Some(at) = viewers.all.iter().position(|viewer| viewer.owner == owner) else {
            return;
        };
        let gone = viewers.all.swap_remove(at);
        for viewer in &mut viewers.all {
            viewer.peers.retain(|peer| *peer != owner);
        }
        if let Some(map) = gone.map {
            // SAFETY: the map is a mapping of its own, of which nobody's kernels run any more; it reads as zeros from now on.
            unsafe { libc::madvise(map.as_ptr() as *mut _, map.len(), libc::MADV_DONTNEED) };
            viewers.spare.push(map);
        }
    }

    /// Whether kernels of a context may touch the memory of another.
    pub fn set_peer(&self, owner: u64, peer: u64, may: bool) {
        {
            let mut viewers = self.viewers.write();
            let Some(viewer) = viewers.find(owner) else { return };
            viewer.peers.retain(|known| *known != peer);
            if may {
                viewer.peers.push(peer);
            }
        }
        self.look_again(|allocation| allocation.owner == peer);
    }

    /// What a device may do with a pool's memory: map bits.
    pub fn set_pool_access(&self, pool: u64, device: u32, bits: u8) {
        self.viewers.write().pools.entry(pool).or_default().insert(device, bits);
        self.look_again(|allocation| allocation.pool == pool);
    }

    /// A pool has gone.
    pub fn forget_pool(&self, pool: u64) {
        self.viewers.write().pools.remove(&pool);
    }

    /// What devices may do with mapped memory: map bits. Others may do nothing.
    pub fn set_mapped_access(&self, start: u64, by_device: BTreeMap<u32, u8>) {
        self.viewers.write().mapped.insert(start, by_device);
        self.look_again(|allocation| allocation.start == start);
    }

    pub fn forget_mapped(&self, start: u64) {
        self.viewers.write().mapped.remove(&start);
    }

    /// Whether an address lies in memory that kernels of a context may not touch, though others may: whose it is.
    pub fn is_of_another(&self, owner: u64, address: u64) -> Option<Allocation> {
        let found = self.find(address)?;
        let hidden = self.view().rights(address) != 0 && self.view_of(owner).rights(address) == 0;
        (hidden && found.contains(address, 1)).then_some(found)
    }

    /// The device of a context, where there are several contexts.
    pub fn device_of(&self, owner: u64) -> Option<u32> {
        self.viewers.write().find(owner).map(|viewer| viewer.device)
    }

    /// Fills in the maps of all contexts anew, for some allocations.
    fn look_again(&self, which: impl Fn(&Allocation) -> bool) {
        let state = self.state.read();
        let viewers = self.viewers.read();
        if viewers.all.iter().any(|viewer| viewer.map.is_some()) {
            for allocation in state.live.values().filter(|allocation| which(allocation)) {
                viewers.changed(allocation, self.page_of(allocation), &self.view());
            }
        }
        drop(viewers);
        drop(state);
        self.count_change();
    }

    fn page_of(&self, allocation: &Allocation) -> u64 {
        (allocation.start - self.view().base) >> PAGE_BITS
    }

    fn new_map(&self) -> Option<&'static [AtomicU8]> {
        let bytes = (self.view().len >> PAGE_BITS) + PAGE;
        let start = reserve(bytes, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: a fresh mapping of so many bytes, all zeros, which is never unmapped; atomics of bytes may be any.
        Some(unsafe { std::slice::from_raw_parts(start as *const AtomicU8, bytes as usize) })
    }
}
