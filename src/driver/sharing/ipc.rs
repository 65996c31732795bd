//! Memory that processes share by handle: `cuIpc*MemHandle`. Events are in `interprocess.rs`.
//!
//! An allocation is the arena's own memory until the first handle is asked for: then it moves into a file, at the same
//! address, while all streams stand still. What is never shared costs nothing.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use parking_lot::Mutex;

use crate::driver::context::{self, Shared};
use crate::driver::graph::{self, GraphMemory};
use crate::driver::memory::place::VARIABLE;
use crate::driver::shared_file::{Purpose, SharedFile, Ticket};
use crate::driver::stream::standstill;
use crate::driver::{Context, Device, Error, Result};
use crate::memory::{AddressSpace, Allocation, Kind, MAPPED, PAGE, READ, Range, Request, WRITE};

/// What a handle leads to; gone with the allocation.
struct Exported {
    file: SharedFile,
    owner: u64,
}

/// By the allocation's number.
static EXPORTED: Mutex<BTreeMap<u64, Exported>> = Mutex::new(BTreeMap::new());

struct Imported {
    number: [u8; 16],
    range: Range,
    /// The context that has opened it.
    owner: u64,
    device: u32,
    /// How often.
    count: u32,
}

/// By address.
static IMPORTED: Mutex<BTreeMap<u64, Imported>> = Mutex::new(BTreeMap::new());

/// `cuIpcGetMemHandle`: any address within memory of `cuMemAlloc`; the handle stands for all of it.
///
/// # Errors
/// 1 for other memory, that which was opened by handle among it.
pub fn memory_handle(address: u64) -> Result<[u8; 64]> {
    Context::usable()?;
    graph::check_unsafe()?;
    let space = AddressSpace::get();
    let mut exported = EXPORTED.lock();
    let allocation = space.find(address).filter(is_shareable).ok_or(Error::InvalidValue)?;
    let Some(device) = Device::all().get(allocation.device as usize) else {
        return Err(Error::InvalidDevice);
    };
    if !exported.contains_key(&allocation.id) {
        // Streams may be asked to free it while they come to rest.
        drop(exported);
        let file = SharedFile::create(allocation.block_bytes(), Purpose::Memory)?;
        exported = standstill("cuIpcGetMemHandle", || {
            let mut exported = EXPORTED.lock();
            if exported.contains_key(&allocation.id) {
                return Ok(exported);
            }
            if space.find(allocation.start).is_none_or(|now| now.id != allocation.id) {
                return Err(Error::InvalidValue);
            }
            space
                .move_to_file(allocation.start, file.as_fd())
                .map_err(|_| Error::MapFailed)?;
            let owner = allocation.owner;
            exported.insert(allocation.id, Exported { file, owner });
            Ok(exported)
        })?;
    }
    let found = exported.get(&allocation.id).ok_or(Error::InvalidValue)?;
    let words = [allocation.bytes, device.number().into(), 0];
    Ok(found.file.ticket(words).to_bytes(Purpose::Memory))
}

/// Memory of `cuMemAlloc`, and of nothing else.
pub(in crate::driver) fn is_shareable(allocation: &Allocation) -> bool {
    allocation.kind == Kind::Device
        && allocation.flags & (VARIABLE | MAPPED) == 0
        && allocation.pool == 0
        && GraphMemory::at(allocation.start).is_err()
}

/// The allocation goes, and its handles with it.
pub(in crate::driver) fn forget(allocation: &Allocation) {
    EXPORTED.lock().remove(&allocation.id);
}

/// `cuIpcOpenMemHandle`: all of it, at an address of this process; more often is the same address again.
///
/// # Errors
/// 400 for what is no handle, or leads to nothing any more; 201 in the process that it comes from, and for a second
/// context of a device (manual: handles of a device are opened by one context per device).
pub fn open_memory(handle: &[u8; 64]) -> Result<u64> {
    let context = Context::usable()?;
    graph::check_unsafe()?;
    let ticket = Ticket::from_bytes(handle, Purpose::Memory).ok_or(Error::InvalidHandle)?;
    if ticket.is_own() {
        return Err(Error::InvalidContext);
    }
    let shared = context.shared();
    let mut imported = IMPORTED.lock();
    let mut known = imported.iter_mut().filter(|(_, known)| known.number == ticket.number);
    if let Some((start, known)) = known.find(|(_, known)| known.device == shared.device) {
        if known.owner != shared.id {
            return Err(Error::InvalidContext);
        }
        known.count += 1;
        return Ok(*start);
    }
    let file = ticket.open(Purpose::Memory)?;
    let [bytes, number, _] = ticket.words;
    if bytes == 0 || bytes > file.bytes() {
        return Err(Error::InvalidHandle);
    }
    let space = AddressSpace::get();
    let range = space
        .reserve_range(bytes.next_multiple_of(PAGE), PAGE)
        .map_err(|_| Error::MapFailed)?;
    // The device that it belongs to, if this process sees it.
    let device = Device::all().iter().find(|device| u64::from(device.number()) == number);
    let request = Request {
        device: device.map_or(shared.device, |device| device.ordinal() as u32),
        owner: shared.id,
        ..Request::new(Kind::Device, bytes)
    };
    if space.map_file(range.start, file.as_fd(), 0, &request).is_err() {
        space.release_range(range);
        return Err(Error::MapFailed);
    }
    space.set_access(range.start, READ | WRITE);
    let known = Imported {
        number: ticket.number,
        range,
        owner: shared.id,
        device: shared.device,
        count: 1,
    };
    imported.insert(range.start, known);
    Ok(range.start)
}

/// `cuIpcCloseMemHandle`: 1 for what was not opened by handle.
pub fn close_memory(address: u64) -> Result<()> {
    Context::usable()?;
    graph::check_unsafe()?;
    {
        let mut imported = IMPORTED.lock();
        let known = imported.get_mut(&address).ok_or(Error::InvalidValue)?;
        if known.count > 1 {
            known.count -= 1;
            return Ok(());
        }
    }
    context::drain_all();
    let known = IMPORTED.lock().remove(&address).ok_or(Error::InvalidValue)?;
    unmap(&known);
    Ok(())
}

fn unmap(known: &Imported) {
    AddressSpace::get().unmap_file(known.range.start);
    AddressSpace::get().release_range(known.range);
}

/// A context ends: what it has opened closes, handles of its memory lead nowhere.
pub(in crate::driver) fn forget_all_of(shared: &Shared) {
    EXPORTED.lock().retain(|_, exported| exported.owner != shared.id);
    let gone: Vec<Imported> = {
        let mut imported = IMPORTED.lock();
        let of_it = imported.iter().filter(|(_, known)| known.owner == shared.id);
        let starts: Vec<u64> = of_it.map(|(start, _)| *start).collect();
        starts.iter().filter_map(|start| imported.remove(start)).collect()
    };
    gone.iter().for_each(unmap);
}
