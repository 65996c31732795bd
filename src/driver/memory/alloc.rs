//! Memory: what `cuMemAlloc*` and `cuMemHost*` do.
//!
//! Who finds room for them is `memory/space.rs`.

use super::place::{place, protection, start_of};
use crate::driver::context::{self, Shared};
use crate::driver::process::check;
use crate::driver::{Context, Error, Result, external, graph, ipc, managed, pointer, pool};
use crate::memory::{AddressSpace, Kind, READ, Request, WRITE};
use crate::sanitizer::between::{self, Act, Class};

/// Rows of a pitched allocation start at multiples of this.
const PITCH: u64 = 512;

fn request(kind: Kind, bytes: u64, shared: &Shared) -> Request {
    Request {
        device: shared.device,
        owner: shared.id,
        ..Request::new(kind, bytes)
    }
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
        flags,
        ..request(Kind::Managed, bytes, shared)
    };
    Ok(place(&request, shared)?.start)
}

/// Memory goes whose users the program is to have waited for by itself.
fn ends(address: u64, bytes: u64) {
    let order = between::by_host(Act::Frees);
    between::touches(order.as_ref(), Class::Write, address, bytes);
}

/// `cuMemFree`: waits for what may use the memory; 0 is nothing to free.
pub fn free(address: u64) -> Result<()> {
    release(address).inspect_err(|error| check::free_failed(address, *error))
}

fn release(address: u64) -> Result<()> {
    Context::usable()?;
    if address == 0 {
        return Ok(());
    }
    graph::check_unsafe()?;
    if let Some(freed) = graph::release_memory(address) {
        return freed;
    }
    if external::free_buffer(address).is_some() {
        return Ok(());
    }
    let allocation = start_of(address, |kind| {
        matches!(kind, Kind::Device | Kind::Managed | Kind::Host)
    })?;
    if allocation.kind == Kind::Host && allocation.pool == 0 {
        return Err(Error::InvalidValue);
    }
    if pool::is_pending(address) {
        return Err(Error::InvalidValue);
    }
    // Such memory is freed without waiting (manual, `cudaFree`).
    if allocation.pool != 0 {
        ends(address, allocation.bytes);
    }
    context::drain_all();
    if allocation.pool == 0 {
        between::all_done();
    }
    managed::forget(address);
    pointer::forget(allocation.id);
    if allocation.pool != 0 {
        pool::free_now(&allocation);
        return Ok(());
    }
    ipc::forget(&allocation);
    AddressSpace::get().free(address).map(drop).ok_or(Error::InvalidValue)
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
    release_host(address).inspect_err(|error| check::free_failed(address, *error))
}

fn release_host(address: u64) -> Result<()> {
    Context::usable()?;
    graph::check_unsafe()?;
    let allocation = start_of(address, |kind| kind == Kind::Host)?;
    if allocation.pool != 0 {
        return Err(Error::InvalidValue);
    }
    ends(address, allocation.bytes);
    context::drain_all();
    between::all_done();
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

/// `CU_MEMHOSTREGISTER_IOMEMORY`, `…_READ_ONLY`.
const IO_MEMORY: u32 = 4;
const READ_ONLY: u32 = 8;

/// `cuMemHostRegister`: 1 portable, 2 mapped, 4 I/O memory, 8 read-only.
///
/// # Errors
/// 1 for memory that the process does not have, or may not write to (unless it is said to be read-only), 712 for memory
/// that is known already, 801 for I/O memory.
pub fn register(address: u64, bytes: u64, flags: u32) -> Result<()> {
    let context = Context::usable()?;
    graph::check_unsafe()?;
    if address == 0 || bytes == 0 || flags & !0xF != 0 || address.checked_add(bytes).is_none() {
        return Err(Error::InvalidValue);
    }
    if flags & IO_MEMORY != 0 {
        tracing::warn!("cuMemHostRegister: no device here reaches the memory of another");
        return Err(Error::NotSupported);
    }
    let bits = if flags & READ_ONLY != 0 { READ } else { READ | WRITE };
    let shared = context.shared();
    if AddressSpace::get().view().contains(address) {
        return Err(Error::HostMemoryAlreadyRegistered);
    }
    if protection(address, bytes).is_none_or(|allowed| allowed & bits != bits) {
        return Err(Error::InvalidValue);
    }
    match AddressSpace::get().register_host(address, bytes, bits, shared.id, shared.device, flags) {
        true => Ok(()),
        false => Err(Error::HostMemoryAlreadyRegistered),
    }
}

/// `cuMemHostUnregister`: waits for what may use the memory.
pub fn unregister(address: u64) -> Result<()> {
    Context::usable()?;
    graph::check_unsafe()?;
    let range = AddressSpace::get().find_host(address);
    if range.is_none_or(|range| range.start != address) {
        check::no_handle(address, "start of a range of cuMemHostRegister");
        return Err(Error::HostMemoryNotRegistered);
    }
    if let Some(range) = range {
        ends(address, range.bytes);
    }
    context::drain_all();
    between::all_done();
    AddressSpace::get()
        .unregister_host(address)
        .map(drop)
        .ok_or(Error::HostMemoryNotRegistered)
}
