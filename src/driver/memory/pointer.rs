//! What a pointer is: `cuPointerGetAttribute`, `cuPointerSetAttribute`, `cuMemGetAddressRange`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::driver::memory::place::VARIABLE;
use crate::driver::{Context, Error, Handle, Pool, Result, context, ipc, virtual_memory};
use crate::memory::{AddressSpace, Allocation, Kind, MAPPED, READ, WRITE};

/// What is known of a pointer.
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
    /// The range of addresses, and the part of it that shows the memory.
    pub start: u64,
    pub bytes: u64,
    pub mapping_start: u64,
    pub mapping_bytes: u64,
    /// There is memory.
    pub mapped: bool,
    /// The pool it came from.
    pub pool: Handle,
    pub sync_memops: bool,
    /// `CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS`.
    pub access: u32,
    /// `cuIpcGetMemHandle` has handles of it.
    pub ipc: bool,
    /// `CUmemAllocationHandleType`, as bits.
    pub handle_types: u64,
    /// `cuMemBatchDecompressAsync` reads and writes it.
    pub decompress: bool,
}

/// `None`: memory that the driver does not know (an ordinary host pointer).
pub fn pointer(address: u64) -> Option<Pointer> {
    let space = AddressSpace::get();
    if let Some(allocation) = space.find(address) {
        return Some(of_allocation(address, &allocation));
    }
    if let Some((start, bytes)) = virtual_memory::reserved_range(address) {
        // Addresses without memory.
        return Some(Pointer {
            context: 0,
            memory_type: 2,
            device_pointer: address,
            host_pointer: 0,
            buffer_id: 0,
            managed: false,
            ordinal: 0,
            start,
            bytes,
            mapping_start: 0,
            mapping_bytes: 0,
            mapped: false,
            pool: 0,
            sync_memops: false,
            access: 0,
            ipc: false,
            handle_types: 0,
            decompress: false,
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
        mapping_start: range.start,
        mapping_bytes: range.bytes,
        mapped: true,
        pool: 0,
        sync_memops: SYNC_MEMOPS.lock().contains(&range.id),
        access: flags_of(range.bits),
        ipc: false,
        handle_types: 0,
        decompress: false,
    })
}

fn of_allocation(address: u64, allocation: &Allocation) -> Pointer {
    let managed = allocation.kind == Kind::Managed;
    let host = allocation.kind == Kind::Host;
    let range = virtual_memory::reserved_range(address);
    let (start, bytes) = range.unwrap_or((allocation.start, allocation.bytes));
    let view = AddressSpace::get().view();
    let rights = view.rights(address);
    let bits = [READ, WRITE].into_iter().filter(|bit| rights & bit != 0);
    let shares = Pool::is_shareable(allocation.pool) || virtual_memory::is_shareable(address);
    Pointer {
        context: context::handle_of(allocation.owner),
        memory_type: if host { 1 } else { 2 },
        device_pointer: address,
        host_pointer: if host || managed { address } else { 0 },
        buffer_id: allocation.id,
        managed,
        ordinal: allocation.device as i32,
        start,
        bytes,
        mapping_start: allocation.start,
        mapping_bytes: allocation.bytes,
        mapped: true,
        pool: allocation.pool as Handle,
        sync_memops: SYNC_MEMOPS.lock().contains(&allocation.id),
        access: flags_of(bits.fold(0, |all, bit| all | bit)),
        ipc: ipc::is_shareable(allocation),
        handle_types: shares.into(),
        decompress: decompresses(address, allocation),
    }
}

/// `CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS`: none, read, read and write.
fn flags_of(bits: u8) -> u32 {
    match (bits & READ != 0, bits & WRITE != 0) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 3,
    }
}

/// Memory of `cuMemAlloc`, and of pools and `cuMemCreate` that were asked for it (manual, `cuMemBatchDecompressAsync`).
pub(in crate::driver) fn decompresses(address: u64, allocation: &Allocation) -> bool {
    match allocation.pool {
        _ if allocation.kind != Kind::Device || allocation.flags & VARIABLE != 0 => false,
        0 if allocation.flags & MAPPED != 0 => virtual_memory::decompresses(address),
        0 => true,
        pool => Pool::decompresses(pool),
    }
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

/// Allocations whose synchronous copies and sets are to be done when the call returns, by number.
static SYNC_MEMOPS: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
static SYNC_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether calls wait for what they do to the memory there.
pub(in crate::driver) fn synchronizes(address: u64) -> bool {
    SYNC_COUNT.load(Ordering::Relaxed) > 0 && pointer(address).is_some_and(|pointer| pointer.sync_memops)
}

/// `cuPointerSetAttribute` of `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`: waits for what is under way.
///
/// # Errors
/// 1 for what no call has allocated or registered.
pub fn set_sync_memops(address: u64, on: bool) -> Result<()> {
    Context::usable()?;
    let known = pointer(address)
        .filter(|known| known.mapped)
        .ok_or(Error::InvalidValue)?;
    if on {
        context::drain_all();
    }
    let mut ids = SYNC_MEMOPS.lock();
    if on {
        ids.insert(known.buffer_id);
    } else {
        ids.remove(&known.buffer_id);
    }
    SYNC_COUNT.store(ids.len(), Ordering::Relaxed);
    Ok(())
}

/// The allocation goes.
pub(in crate::driver) fn forget(id: u64) {
    if SYNC_COUNT.load(Ordering::Relaxed) > 0 {
        let mut ids = SYNC_MEMOPS.lock();
        ids.remove(&id);
        SYNC_COUNT.store(ids.len(), Ordering::Relaxed);
    }
}
