//! Memory of graphs: allocated and freed by nodes, at an address that is known from the beginning.
//!
//! The address is taken when the node is made. Kernels may touch it, and it counts as used, from the launch that allocates
//! it until it has been freed; that is counted, because a launch may be queued while an earlier free still is. What calls
//! may do is decided in the order of the calls: `is_owed` says that a launch has allocated it and nobody has freed it yet.
//!
//! Addresses of graphs stay addresses of graphs: a program that frees one after its graph is gone is told so, and does not
//! free what somebody else has got there meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::super::context;
use super::super::stream::Command;
use crate::driver::memory::place::place;
use crate::driver::{Context, Device, Error, Result, Stream};
use crate::memory::{AddressSpace, Allocation, Kind, MAX_DEVICES, Request};
use crate::sanitizer::between;

pub struct GraphMemory {
    address: u64,
    /// As asked for.
    bytes: u64,
    device: u32,
    /// The context's number.
    owner: u64,
    /// The allocation's number: a context's end may have freed it, and somebody else may be there.
    allocation: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Launches and frees that are under way.
    users: u32,
    is_owed: bool,
    /// A node of some graph frees it.
    has_free_node: bool,
    /// It may hold pages of the system.
    is_reserved: bool,
}

/// By address.
static ALL: Mutex<BTreeMap<u64, Weak<GraphMemory>>> = Mutex::new(BTreeMap::new());
/// What the program has to free yet: it outlives its graph.
static OWED: Mutex<BTreeMap<u64, Arc<GraphMemory>>> = Mutex::new(BTreeMap::new());

/// The place of a node that is gone, for the next one.
struct Place {
    start: u64,
    bytes: u64,
    device: u32,
    owner: u64,
    /// The last allocation's number there.
    id: u64,
}

static PLACES: Mutex<Vec<Place>> = Mutex::new(Vec::new());

/// The place that fits best, used again; `None`: there is none.
fn reuse(request: &Request) -> Option<Allocation> {
    let mut places = PLACES.lock();
    let fits =
        |place: &Place| (place.device, place.owner) == (request.device, request.owner) && place.bytes >= request.bytes;
    let candidates = places.iter().enumerate().filter(|(_, place)| fits(place));
    let (best, place) = candidates.min_by_key(|(_, place)| place.bytes)?;
    // The device's limit may forbid it now; the place stays for later.
    let allocation = AddressSpace::get().revive(place.start, place.id, request).ok()?;
    places.swap_remove(best);
    Some(allocation)
}

/// `CUgraphMem_attribute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAttribute {
    UsedCurrent = 0,
    UsedHigh = 1,
    ReservedCurrent = 2,
    ReservedHigh = 3,
}

/// The four attributes of each device.
static COUNTERS: [[AtomicU64; 4]; MAX_DEVICES] = [const { [const { AtomicU64::new(0) }; 4] }; MAX_DEVICES];

fn count(device: u32, which: MemoryAttribute, more: i64) {
    let counters = &COUNTERS[device as usize];
    let now = counters[which as usize].fetch_add(more as u64, Ordering::Relaxed) as i64 + more;
    counters[which as usize + 1].fetch_max(now as u64, Ordering::Relaxed);
}

/// `cuDeviceGetGraphMemAttribute`, in bytes.
pub fn attribute(device: &Device, which: MemoryAttribute) -> u64 {
    COUNTERS[device.ordinal() as usize][which as usize].load(Ordering::Relaxed)
}

/// `cuDeviceSetGraphMemAttribute`: high-water marks go back to what is now (1 for other attributes).
pub fn reset_attribute(device: &Device, which: MemoryAttribute) -> Result<()> {
    let now = match which {
        MemoryAttribute::UsedHigh => MemoryAttribute::UsedCurrent,
        MemoryAttribute::ReservedHigh => MemoryAttribute::ReservedCurrent,
        MemoryAttribute::UsedCurrent | MemoryAttribute::ReservedCurrent => return Err(Error::InvalidValue),
    };
    let counters = &COUNTERS[device.ordinal() as usize];
    let now = counters[now as usize].load(Ordering::Relaxed);
    counters[which as usize].store(now, Ordering::Relaxed);
    Ok(())
}

fn all() -> Vec<Arc<GraphMemory>> {
    ALL.lock().values().filter_map(Weak::upgrade).collect()
}

fn find(address: u64) -> Option<Arc<GraphMemory>> {
    ALL.lock().get(&address)?.upgrade()
}

/// `cuDeviceGraphMemTrim`: gives the system back what no launch uses.
pub fn trim(device: &Device) {
    for memory in all() {
        let mut state = memory.state.lock();
        if memory.device == device.ordinal() as u32 && state.users == 0 && state.is_reserved {
            state.is_reserved = false;
            count(memory.device, MemoryAttribute::ReservedCurrent, -(memory.bytes as i64));
            if memory.is_there() {
                AddressSpace::get().forget(memory.address);
            }
        }
    }
}

/// A context's end has freed everything: nobody owes anything any more.
pub(in crate::driver) fn forget_all_of(owner: u64) {
    let mut gone: Vec<Arc<GraphMemory>> = Vec::new();
    OWED.lock().retain(|_, memory| {
        let stays = memory.owner != owner;
        if !stays {
            gone.push(Arc::clone(memory));
        }
        stays
    });
    for memory in &gone {
        memory.state.lock().is_owed = false;
    }
    PLACES.lock().retain(|place| place.owner != owner);
}

/// `cuMemFree` of a graph's memory: waits for what may use it; `None`: the address is none.
pub(in crate::driver) fn release(address: u64) -> Option<Result<()>> {
    let memory = find(address)?;
    Some(memory.owe_no_more().map(|()| {
        context::drain_all();
        memory.leave();
    }))
}

/// `cuMemFreeAsync` of a graph's memory; `None`: the address is none.
pub(in crate::driver) fn free(address: u64, stream: &Arc<Stream>) -> Option<Result<()>> {
    let memory = find(address)?;
    Some(memory.owe_no_more().map(|()| {
        stream.enqueue(Command::Always(Box::new(move |_| memory.leave())));
    }))
}

impl GraphMemory {
    /// # Errors
    /// 1 for no bytes, 2 when there is no room.
    pub fn create(context: &Context, device: &Device, bytes: u64) -> Result<Arc<GraphMemory>> {
        if bytes == 0 {
            return Err(Error::InvalidValue);
        }
        let shared = context.shared();
        let request = Request {
            device: device.ordinal() as u32,
            owner: shared.id,
            ..Request::new(Kind::Device, bytes)
        };
        let allocation = match reuse(&request) {
            Some(allocation) => allocation,
            None => place(&request, shared)?,
        };
        AddressSpace::get().withdraw(allocation.start);
        let memory = Arc::new(GraphMemory {
            address: allocation.start,
            bytes,
            device: request.device,
            owner: shared.id,
            allocation: allocation.id,
            state: Mutex::default(),
        });
        ALL.lock().insert(memory.address, Arc::downgrade(&memory));
        Ok(memory)
    }

    /// What an allocation node has given; 1 if none has.
    pub fn at(address: u64) -> Result<Arc<GraphMemory>> {
        find(address).ok_or(Error::InvalidValue)
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The device's ordinal.
    pub fn device(&self) -> u32 {
        self.device
    }

    fn is_there(&self) -> bool {
        let found = AddressSpace::get().find(self.address);
        found.is_some_and(|found| found.id == self.allocation)
    }

    /// A node frees it from now on; 1 if one does already.
    pub(super) fn take_free(&self) -> Result<()> {
        let mut state = self.state.lock();
        if state.has_free_node {
            return Err(Error::InvalidValue);
        }
        state.has_free_node = true;
        Ok(())
    }

    pub(super) fn is_owed(&self) -> bool {
        self.state.lock().is_owed
    }

    /// A launch allocates it; the program has to free it if `owed`.
    pub(super) fn enter(self: &Arc<GraphMemory>, owed: bool) -> Result<()> {
        let mut state = self.state.lock();
        if !self.is_there() {
            return Err(Error::InvalidValue);
        }
        if state.users == 0 {
            AddressSpace::get()
                .offer(self.address)
                .map_err(|_| Error::OutOfMemory)?;
            count(self.device, MemoryAttribute::UsedCurrent, self.bytes as i64);
        }
        if !state.is_reserved {
            state.is_reserved = true;
            count(self.device, MemoryAttribute::ReservedCurrent, self.bytes as i64);
        }
        between::forget(self.address, self.bytes);
        state.users += 1;
        state.is_owed = owed;
        if owed {
            OWED.lock().insert(self.address, Arc::clone(self));
        }
        Ok(())
    }

    /// Somebody promises to free it; 1 if it is not allocated, or somebody has.
    pub(super) fn owe_no_more(&self) -> Result<()> {
        let mut state = self.state.lock();
        if !state.is_owed {
            return Err(Error::InvalidValue);
        }
        state.is_owed = false;
        // The caller has it, so that this is not the last.
        OWED.lock().remove(&self.address);
        Ok(())
    }

    /// The free has its turn.
    pub(super) fn leave(&self) {
        let mut state = self.state.lock();
        state.users = state.users.saturating_sub(1);
        if state.users == 0 {
            count(self.device, MemoryAttribute::UsedCurrent, -(self.bytes as i64));
            if self.is_there() {
                AddressSpace::get().withdraw(self.address);
            }
        }
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if state.users > 0 {
            count(self.device, MemoryAttribute::UsedCurrent, -(self.bytes as i64));
        }
        if state.is_reserved {
            count(self.device, MemoryAttribute::ReservedCurrent, -(self.bytes as i64));
        }
        let is_reserved = state.is_reserved;
        let mut all = ALL.lock();
        if all.get(&self.address).is_some_and(|known| known.strong_count() == 0) {
            all.remove(&self.address);
        }
        drop(all);
        let space = AddressSpace::get();
        if !self.is_there() {
            return;
        }
        space.withdraw(self.address);
        if is_reserved {
            space.forget(self.address);
        }
        if let Some(retired) = space.retire(self.address) {
            PLACES.lock().push(Place {
                start: retired.start,
                bytes: retired.block_bytes(),
                device: self.device,
                owner: self.owner,
                id: retired.id,
            });
        }
    }
}
