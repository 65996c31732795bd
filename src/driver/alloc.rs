//! Memory: what `cuMemAlloc*`, `cuMemHost*`, `cuMemAdvise` and `cuPointerGetAttribute` do.
//!
//! Flows in: sizes, addresses. Flows out: addresses, and what is known of them. It must never know how the address space
//! finds room.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::context::{self, Shared};
use super::{Context, Device, Error, Handle, Result, Stream, graph, ipc, pool};
use crate::memory::{AddressSpace, Allocation, Kind, MAPPED, PAGE, READ, Request, WRITE};

/// Marks a module's variable: not to be freed by address. Above all flags of the API.
pub(super) const VARIABLE: u32 = 1 << 31;
/// Rows of a pitched allocation start at multiples of this.
const PITCH: u64 = 512;
/// `CU_MEM_ATTACH_GLOBAL`, `…_HOST`, `…_SINGLE`.
const ATTACH: u32 = 1 | 2 | 4;

fn request(kind: Kind, bytes: u64, shared: &Shared) -> Request {
    Request {
        device: shared.device,
        owner: shared.id,
        ..Request::new(kind, bytes)
    }
}

/// Room for a request; memory that queued commands are about to free counts.
pub(super) fn place(request: &Request, shared: &Shared) -> Result<Allocation> {
    let space = AddressSpace::get();
    space.allocate(request).or_else(|_| {
        if !pool::any_pending() {
            return Err(Error::OutOfMemory);
        }
        shared.drain();
        space.allocate(request).map_err(|_| Error::OutOfMemory)
    })
}

/// `cuMemAlloc`.
pub fn device(bytes: u64) -> Result<u64> {
    let context = Context::usable()?;
    graph::check_unsafe()?;
    if bytes == 0 {
        return Err(Error::InvalidValue);
    }
    let shared = context.shared();
    Ok(place(&request(Kind::Device, bytes, shared), shared)?.start)
}

/// `cuMemAllocPitch`: (address, pitch). `element` is 4, 8 or 16.
pub fn pitched(width: u64, height: u64, element: u32) -> Result<(u64, u64)> {
    if width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
        return Err(Error::InvalidValue);
    }
    let pitch = width.checked_next_multiple_of(PITCH).ok_or(Error::InvalidValue)?;
    let bytes = pitch.checked_mul(height).ok_or(Error::OutOfMemory)?;
    Ok((device(bytes)?, pitch))
}

/// `cuMemAllocManaged`: flags 1 global, 2 host.
pub fn managed(bytes: u64, flags: u32) -> Result<u64> {
    let context = Context::usable()?;
    graph::check_unsafe()?;
    if bytes == 0 || !matches!(flags, 1 | 2) {
        return Err(Error::InvalidValue);
    }
    let shared = context.shared();
    let request = Request {
        flags: flags & ATTACH,
        ..request(Kind::Managed, bytes, shared)
    };
    Ok(place(&request, shared)?.start)
}

/// `cuMemFree`: waits for what may use the memory; 0 is nothing to free.
pub fn free(address: u64) -> Result<()> {
    Context::usable()?;
    if address == 0 {
        return Ok(());
    }
    graph::check_unsafe()?;
    if let Some(freed) = graph::release_memory(address) {
        return freed;
    }
    let allocation = start_of(address, |kind| matches!(kind, Kind::Device | Kind::Managed))?;
    if pool::is_pending(address) {
        return Err(Error::InvalidValue);
    }
    context::drain_all();
    pool::forget(&allocation);
    ipc::forget(&allocation);
    ADVICE.lock().remove(&address);
    AddressSpace::get().free(address).map(drop).ok_or(Error::InvalidValue)
}

/// The allocation that starts there, if it is the program's own of such a kind.
pub(super) fn start_of(address: u64, kind: impl Fn(Kind) -> bool) -> Result<Allocation> {
    let found = AddressSpace::get().find(address);
    found
        .filter(|allocation| {
            allocation.start == address && kind(allocation.kind) && allocation.flags & (VARIABLE | MAPPED) == 0
        })
        .ok_or(Error::InvalidValue)
}

/// `cuMemHostAlloc` (flags 0: `cuMemAllocHost`): 1 portable, 2 mapped, 4 write-combined. All host memory is all of these.
pub fn host(bytes: u64, flags: u32) -> Result<u64> {
    let context = Context::usable()?;
    graph::check_unsafe()?;
    if bytes == 0 || flags & !7 != 0 {
        return Err(Error::InvalidValue);
    }
    let shared = context.shared();
    let request = Request {
        flags,
        ..request(Kind::Host, bytes, shared)
    };
    Ok(place(&request, shared)?.start)
}

/// `cuMemFreeHost`.
pub fn free_host(address: u64) -> Result<()> {
    Context::usable()?;
    graph::check_unsafe()?;
    start_of(address, |kind| kind == Kind::Host)?;
    context::drain_all();
    AddressSpace::get().free(address).map(drop).ok_or(Error::InvalidValue)
}

/// `cuMemHostGetFlags`.
pub fn host_flags(address: u64) -> Result<u32> {
    let found = AddressSpace::get().find(address);
    found
        .filter(|allocation| allocation.kind == Kind::Host)
        .map(|allocation| allocation.flags)
        .ok_or(Error::InvalidValue)
}

/// `cuMemHostGetDevicePointer`: the same address.
pub fn host_device_pointer(address: u64) -> Result<u64> {
    match host_flags(address) {
        Ok(_) => Ok(address),
        Err(error) => AddressSpace::get().find_host(address).map(|_| address).ok_or(error),
    }
}

/// `cuMemHostRegister`: 1 portable, 2 mapped, 4 I/O memory, 8 read-only.
pub fn register(address: u64, bytes: u64, flags: u32) -> Result<()> {
    let context = Context::usable()?;
    graph::check_unsafe()?;
    if address == 0 || bytes == 0 || flags & !0xF != 0 || !is_mapped(address, bytes) {
        return Err(Error::InvalidValue);
    }
    let bits = if flags & 8 != 0 { READ } else { READ | WRITE };
    let shared = context.shared();
    match AddressSpace::get().register_host(address, bytes, bits, shared.id, shared.device, flags) {
        true => Ok(()),
        false => Err(Error::HostMemoryAlreadyRegistered),
    }
}

/// Whether the process has memory there: kernels must not be sent where there is none.
fn is_mapped(address: u64, bytes: u64) -> bool {
    let Some(end) = address.checked_add(bytes) else {
        return false;
    };
    let mut resident = [0_u8; 4096];
    let mut page = address / PAGE * PAGE;
    while page < end {
        let step = (end - page).min(PAGE * resident.len() as u64);
        // SAFETY: mincore only answers, one byte for each page asked about, and the buffer has as many.
        if unsafe { libc::mincore(page as *mut _, step as usize, resident.as_mut_ptr()) } != 0 {
            return false;
        }
        page += step;
    }
    true
}

/// `cuMemHostUnregister`: waits for what may use the memory.
pub fn unregister(address: u64) -> Result<()> {
    Context::usable()?;
    graph::check_unsafe()?;
    let range = AddressSpace::get().find_host(address);
    if range.is_none_or(|range| range.start != address) {
        return Err(Error::HostMemoryNotRegistered);
    }
    context::drain_all();
    AddressSpace::get()
        .unregister_host(address)
        .map(drop)
        .ok_or(Error::HostMemoryNotRegistered)
}

/// `cuMemGetAddressRange`: (start, bytes).
pub fn range(address: u64) -> Result<(u64, u64)> {
    let space = AddressSpace::get();
    if let Some(allocation) = space.find(address) {
        return Ok((allocation.start, allocation.bytes));
    }
    let range = space.find_host(address).ok_or(Error::NotFound)?;
    Ok((range.start, range.bytes))
}

/// What is known of a pointer (`cuPointerGetAttribute`).
#[derive(Clone, Copy, Debug)]
pub struct Pointer {
    /// 0 when no context owns it.
    pub context: Handle,
    /// `CUmemorytype`: 1 host, 2 device, 3 array, 4 unified.
    pub memory_type: u32,
    pub device_pointer: u64,
    /// 0: the host cannot reach it (device memory).
    pub host_pointer: u64,
    pub buffer_id: u64,
    pub managed: bool,
    pub ordinal: i32,
    pub start: u64,
    pub bytes: u64,
    /// The pool it came from.
    pub pool: Handle,
    pub sync_memops: bool,
}

/// `None`: memory that the driver does not know (an ordinary host pointer).
pub fn pointer(address: u64) -> Option<Pointer> {
    let space = AddressSpace::get();
    if let Some(allocation) = space.find(address) {
        let managed = allocation.kind == Kind::Managed;
        let host = allocation.kind == Kind::Host;
        return Some(Pointer {
            context: context::handle_of(allocation.owner),
            memory_type: if host { 1 } else { 2 },
            device_pointer: address,
            host_pointer: if host || managed { address } else { 0 },
            buffer_id: allocation.id,
            managed,
            ordinal: allocation.device as i32,
            start: allocation.start,
            bytes: allocation.bytes,
            pool: allocation.pool as Handle,
            sync_memops: SYNC_MEMOPS.lock().contains_key(&allocation.id),
        });
    }
    let range = space.find_host(address)?;
    Some(Pointer {
        context: context::handle_of(range.owner),
        memory_type: 1,
        device_pointer: address,
        host_pointer: address,
        buffer_id: range.id,
        managed: false,
        ordinal: range.device as i32,
        start: range.start,
        bytes: range.bytes,
        pool: 0,
        sync_memops: false,
    })
}

/// Allocations for which the program asked for synchronous copies, by number. (They are in order anyway.)
static SYNC_MEMOPS: Mutex<BTreeMap<u64, ()>> = Mutex::new(BTreeMap::new());

/// `cuPointerSetAttribute` of `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
pub fn set_sync_memops(address: u64, on: bool) -> Result<()> {
    let allocation = AddressSpace::get().find(address).ok_or(Error::InvalidValue)?;
    let mut ids = SYNC_MEMOPS.lock();
    if on {
        ids.insert(allocation.id, ());
    } else {
        ids.remove(&allocation.id);
    }
    Ok(())
}

/// What the program has said about a managed allocation. There is one memory, so it is kept to be read back.
#[derive(Clone, Debug, Default)]
struct Advice {
    read_mostly: bool,
    /// `(CUmemLocationType, id)`.
    preferred: Option<(u32, i32)>,
    accessed_by: Vec<i32>,
    prefetched: Option<(u32, i32)>,
}

static ADVICE: Mutex<BTreeMap<u64, Advice>> = Mutex::new(BTreeMap::new());

/// `CU_DEVICE_CPU`, `CU_DEVICE_INVALID`.
const CPU: i32 = -1;
const NOWHERE: i32 = -2;
/// `CU_MEM_LOCATION_TYPE_DEVICE`; 2, 3 and 4 are the host and its NUMA nodes.
const LOCATION_DEVICE: u32 = 1;

/// `cuMemAdvise`, `cuMemPrefetchAsync`, `cuMemRangeGetAttribute`: the range must be managed memory.
pub fn check_managed(address: u64, bytes: u64) -> Result<()> {
    managed_at(address, bytes).map(drop)
}

fn managed_at(address: u64, bytes: u64) -> Result<Allocation> {
    let found = AddressSpace::get()
        .find(address)
        .filter(|allocation| allocation.kind == Kind::Managed && bytes > 0 && allocation.contains(address, bytes));
    found.ok_or(Error::InvalidValue)
}

fn location(kind: u32, id: i32) -> Result<i32> {
    match kind {
        LOCATION_DEVICE => Device::get(id).map(Device::ordinal),
        2..=4 => Ok(CPU),
        _ => Err(Error::InvalidValue),
    }
}

/// `cuMemAdvise`: the advice counts for the whole allocation.
pub fn advise(address: u64, bytes: u64, advice: u32, location_type: u32, location_id: i32) -> Result<()> {
    Context::usable()?;
    let allocation = managed_at(address, bytes)?;
    let mut all = ADVICE.lock();
    let kept = all.entry(allocation.start).or_default();
    match advice {
        1 => kept.read_mostly = true,
        2 => kept.read_mostly = false,
        3 => {
            location(location_type, location_id)?;
            kept.preferred = Some((location_type, location_id));
        }
        4 => kept.preferred = None,
        5 | 6 => {
            let location = location(location_type, location_id)?;
            kept.accessed_by.retain(|known| *known != location);
            if advice == 5 {
                kept.accessed_by.push(location);
            }
        }
        _ => return Err(Error::InvalidValue),
    }
    Ok(())
}

/// `cuMemPrefetchAsync`.
pub fn prefetch(address: u64, bytes: u64, location_type: u32, location_id: i32, stream: &Arc<Stream>) -> Result<()> {
    stream.shared.check()?;
    stream.refuse_capture()?;
    let allocation = managed_at(address, bytes)?;
    location(location_type, location_id)?;
    ADVICE.lock().entry(allocation.start).or_default().prefetched = Some((location_type, location_id));
    Ok(())
}

/// `cuMemRangeGetAttribute` but for the list of [`accessed_by`]: 1 read mostly, 2 preferred location, 4 last prefetch, 5
/// and 6 type and id of the preferred location, 7 and 8 of the last prefetch.
pub fn range_attribute(address: u64, bytes: u64, which: u32) -> Result<i64> {
    let allocation = managed_at(address, bytes)?;
    let advice = ADVICE.lock().get(&allocation.start).cloned().unwrap_or_default();
    let place = |location: Option<(u32, i32)>| match location {
        None => NOWHERE,
        Some((LOCATION_DEVICE, id)) => id,
        Some(_) => CPU,
    };
    Ok(match which {
        1 => i64::from(advice.read_mostly),
        2 => place(advice.preferred).into(),
        4 => place(advice.prefetched).into(),
        5 => advice.preferred.map_or(0, |location| location.0).into(),
        6 => advice.preferred.map_or(0, |location| location.1).into(),
        7 => advice.prefetched.map_or(0, |location| location.0).into(),
        8 => advice.prefetched.map_or(0, |location| location.1).into(),
        _ => return Err(Error::InvalidValue),
    })
}

/// `CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY`: devices, -1 for the host.
pub fn accessed_by(address: u64, bytes: u64) -> Result<Vec<i32>> {
    let allocation = managed_at(address, bytes)?;
    let advice = ADVICE.lock().get(&allocation.start).cloned();
    Ok(advice.unwrap_or_default().accessed_by)
}
