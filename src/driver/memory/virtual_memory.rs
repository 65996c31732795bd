//! Virtual memory management: addresses and memory apart.
//!
//! Memory is a file that exists in memory only (`memfd_create`), so that it can be shown at several addresses, and in
//! several processes. It lives as long as a handle or a mapping of it.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::driver::handle::{self, Registry};
use crate::driver::process::check;
use crate::driver::shared_file::{Purpose, SharedFile};
use crate::driver::{Device, Error, Handle, Multicast, Result, context};
use crate::memory::caller::{self, Caller};
use crate::memory::{AddressSpace, Kind, READ, Range, Request, WRITE};

/// Sizes and addresses are multiples of this.
pub const GRANULARITY: u64 = 2 << 20;

/// `CUmemAccess_flags`.
const ACCESS_READ: u32 = 1;
const ACCESS_READ_WRITE: u32 = 3;

/// `CU_MEM_CREATE_USAGE_HW_DECOMPRESS`.
const DECOMPRESS: u16 = 2;

/// Memory without an address.
pub struct Physical {
    handle: Handle,
    file: SharedFile,
    bytes: u64,
    device: &'static Device,
    /// Whether other processes may have it.
    is_shareable: bool,
    /// `CUmemAllocationProp::allocFlags::usage`.
    usage: u16,
    /// It is another's: this process does not count it.
    is_imported: bool,
    by: Caller,
    /// How often the program holds its handle.
    held: Mutex<u32>,
}

/// What a mapping shows.
#[derive(Clone)]
pub enum Memory {
    Physical(Arc<Physical>),
    Multicast(Arc<Multicast>),
}

impl Memory {
    /// 1 for what is neither, or was released.
    pub fn from_handle(handle: u64) -> Result<Memory> {
        match Physical::from_handle(handle) {
            Ok(physical) => Ok(Memory::Physical(physical)),
            Err(_) => Multicast::from_handle(handle).map(Memory::Multicast),
        }
    }

    /// `cuMemRelease`: mappings keep it.
    pub fn release(&self) -> Result<()> {
        match self {
            Memory::Physical(physical) => physical.release(),
            Memory::Multicast(multicast) => multicast.release(),
        }
    }

    fn physical(&self) -> Option<&Arc<Physical>> {
        match self {
            Memory::Physical(physical) => Some(physical),
            Memory::Multicast(_) => None,
        }
    }
}

struct Mapping {
    bytes: u64,
    memory: Memory,
    /// `CUmemAccess_flags` by ordinal.
    access: BTreeMap<i32, u32>,
}

#[derive(Default)]
struct State {
    /// By address.
    reserved: BTreeMap<u64, Range>,
    mappings: BTreeMap<u64, Mapping>,
}

static PHYSICAL: Registry<Physical> = Registry::new();
static STATE: Mutex<State> = Mutex::new(State {
    reserved: BTreeMap::new(),
    mappings: BTreeMap::new(),
});

fn is_granular(value: u64) -> bool {
    value.is_multiple_of(GRANULARITY)
}

/// `cuMemAddressReserve`: the address that is wished for is a hint, and nothing is there.
pub fn reserve(bytes: u64, align: u64) -> Result<u64> {
    if bytes == 0 || !is_granular(bytes) || !(align == 0 || align.is_power_of_two()) {
        return Err(Error::InvalidValue);
    }
    let range = AddressSpace::get()
        .reserve_range(bytes, align.max(GRANULARITY))
        .map_err(|_| Error::OutOfMemory)?;
    STATE.lock().reserved.insert(range.start, range);
    Ok(range.start)
}

/// `cuMemAddressFree`: a whole reserved range, in which nothing is mapped.
pub fn unreserve(start: u64, bytes: u64) -> Result<()> {
    let what = "whole range of cuMemAddressReserve without mappings";
    unreserve_all(start, bytes).inspect_err(|_| check::no_handle(start, what))
}

fn unreserve_all(start: u64, bytes: u64) -> Result<()> {
    let mut state = STATE.lock();
    let range = *state.reserved.get(&start).ok_or(Error::InvalidValue)?;
    if range.bytes != bytes || state.mappings.range(start..start + bytes).next().is_some() {
        return Err(Error::InvalidValue);
    }
    state.reserved.remove(&start);
    AddressSpace::get().release_range(range);
    Ok(())
}

/// `cuMemMap`: the first `bytes` of the memory, in a reserved range where nothing is yet.
pub fn map(start: u64, bytes: u64, memory: &Memory) -> Result<()> {
    let end = start.checked_add(bytes).ok_or(Error::InvalidValue)?;
    let is_too_large = memory.physical().is_some_and(|physical| bytes > physical.bytes);
    if bytes == 0 || !is_granular(start) || !is_granular(bytes) || is_too_large {
        return Err(Error::InvalidValue);
    }
    let mut state = STATE.lock();
    let range = state.reserved.range(..=start).next_back();
    let before = state.mappings.range(..end).next_back();
    let inside = range.is_some_and(|(_, range)| end <= range.start + range.bytes);
    if !inside || before.is_some_and(|(first, mapping)| first + mapping.bytes > start) {
        return Err(Error::InvalidValue);
    }
    match memory {
        Memory::Multicast(multicast) => multicast.map(start, bytes)?,
        Memory::Physical(physical) => {
            let request = Request {
                device: physical.device.ordinal() as u32,
                ..Request::new(Kind::Device, bytes)
            };
            AddressSpace::get()
                .map_file(start, physical.file.as_fd(), 0, &request)
                .map_err(|_| Error::OutOfMemory)?;
        }
    }
    let mapping = Mapping {
        bytes,
        memory: memory.clone(),
        access: BTreeMap::new(),
    };
    state.mappings.insert(start, mapping);
    Ok(())
}

impl State {
    /// The mappings that make up a range, whole and without gaps (1 otherwise).
    fn covering(&self, start: u64, bytes: u64) -> Result<Vec<u64>> {
        let end = start.checked_add(bytes).ok_or(Error::InvalidValue)?;
        let (mut next, mut found) = (start, Vec::new());
        for (first, mapping) in self.mappings.range(start..end) {
            if *first != next {
                break;
            }
            next += mapping.bytes;
            found.push(*first);
        }
        if bytes > 0 && next == end {
            Ok(found)
        } else {
            Err(Error::InvalidValue)
        }
    }
}

/// What `cuMemCreate` has made and programs still hold, or have mapped: bytes, and by which call.
pub(in crate::driver) fn held() -> Vec<(u64, Caller)> {
    let mut all = PHYSICAL.collect();
    for mapping in STATE.lock().mappings.values() {
        if let Some(physical) = mapping.memory.physical()
            && !all.iter().any(|known| Arc::ptr_eq(known, physical))
        {
            all.push(Arc::clone(physical));
        }
    }
    let own = all.iter().filter(|physical| !physical.is_imported);
    own.map(|physical| (physical.bytes, physical.by)).collect()
}

/// `cuMemRelease`.
pub fn release(handle: u64) -> Result<()> {
    let memory = Memory::from_handle(handle).inspect_err(|_| check::no_handle(handle, "memory of cuMemCreate"))?;
    memory.release()
}

/// `cuMemUnmap`: whole mappings; waits for what may use them.
pub fn unmap(start: u64, bytes: u64) -> Result<()> {
    unmap_all(start, bytes).inspect_err(|_| check::no_handle(start, "whole mapping of cuMemMap"))
}

fn unmap_all(start: u64, bytes: u64) -> Result<()> {
    STATE.lock().covering(start, bytes)?;
    context::drain_all();
    let mut state = STATE.lock();
    let gone: Vec<Mapping> = {
        let starts = state.covering(start, bytes)?;
        starts
            .into_iter()
            .filter_map(|first| {
                AddressSpace::get().unmap_file(first);
                AddressSpace::get().forget_mapped(first);
                let gone = state.mappings.remove(&first);
                if let Some(Memory::Multicast(multicast)) = gone.as_ref().map(|gone| &gone.memory) {
                    multicast.forget(first);
                }
                gone
            })
            .collect()
    };
    // Memory may end with its last mapping.
    drop(state);
    drop(gone);
    Ok(())
}

/// `cuMemSetAccess`: of whole mappings. For the host there is one memory: what one device may do, all may.
pub fn set_access(start: u64, bytes: u64, wishes: &[(&'static Device, u32)]) -> Result<()> {
    if wishes.is_empty()
        || wishes
            .iter()
            .any(|(_, flags)| !matches!(*flags, 0 | ACCESS_READ | ACCESS_READ_WRITE))
    {
        return Err(Error::InvalidValue);
    }
    let mut state = STATE.lock();
    for first in state.covering(start, bytes)? {
        let Some(mapping) = state.mappings.get_mut(&first) else {
            continue;
        };
        for (device, flags) in wishes {
            mapping.access.insert(device.ordinal(), *flags);
        }
        let all = mapping.access.values().fold(0, |all, flags| all | flags);
        let map_bits = |flags| match flags {
            0 => 0,
            ACCESS_READ => READ,
            _ => READ | WRITE,
        };
        let bits = map_bits(all);
        match &mapping.memory {
            Memory::Physical(_) => {
                let each = mapping.access.iter();
                let each = each.map(|(&device, &flags)| (device as u32, map_bits(flags)));
                AddressSpace::get().set_mapped_access(first, each.collect());
                AddressSpace::get().set_access(first, bits);
            }
            Memory::Multicast(multicast) => multicast.set_access(first, bits)?,
        }
    }
    Ok(())
}

/// The mapping that holds an address, and the memory that it shows.
fn at<T>(address: u64, answer: impl FnOnce(&Mapping) -> T) -> Result<T> {
    let state = STATE.lock();
    let found = state.mappings.range(..=address).next_back();
    let (_, mapping) = found
        .filter(|(first, mapping)| address - **first < mapping.bytes)
        .ok_or(Error::InvalidValue)?;
    Ok(answer(mapping))
}

/// `cuMemGetAccess`: `CUmemAccess_flags`.
pub fn access(address: u64, device: &Device) -> Result<u32> {
    at(address, |mapping| {
        mapping.access.get(&device.ordinal()).copied().unwrap_or(0)
    })
}

/// Whether the driver knows what is at an address: memory of its own, addresses that are reserved, registered memory.
pub(in crate::driver) fn is_known(address: u64) -> bool {
    let space = AddressSpace::get();
    space.find(address).is_some() || reserved_range(address).is_some() || space.find_host(address).is_some()
}

/// The reserved range that holds an address: (start, bytes).
pub(in crate::driver) fn reserved_range(address: u64) -> Option<(u64, u64)> {
    let state = STATE.lock();
    let (_, range) = state.reserved.range(..=address).next_back()?;
    (address - range.start < range.bytes).then_some((range.start, range.bytes))
}

/// Whether what is mapped there may go to other processes.
pub(in crate::driver) fn is_shareable(address: u64) -> bool {
    let of = |mapping: &Mapping| mapping.memory.physical().is_some_and(|physical| physical.is_shareable);
    at(address, of).unwrap_or(false)
}

/// Whether what is mapped there was made to be decompressed from or to.
pub(in crate::driver) fn decompresses(address: u64) -> bool {
    let of = |mapping: &Mapping| {
        let physical = mapping.memory.physical();
        physical.is_some_and(|physical| physical.usage & DECOMPRESS != 0)
    };
    at(address, of).unwrap_or(false)
}

/// The memory that is mapped in a range, and where in it the range begins. 1 unless it is all of one mapping's.
pub(in crate::driver) fn physical_at(address: u64, bytes: u64) -> Result<(Arc<Physical>, u64)> {
    let state = STATE.lock();
    let found = state.mappings.range(..=address).next_back();
    let (first, mapping) = found.ok_or(Error::InvalidValue)?;
    let offset = address - first;
    let inside = offset.checked_add(bytes).is_some_and(|end| end <= mapping.bytes);
    let physical = mapping
        .memory
        .physical()
        .filter(|_| inside)
        .ok_or(Error::InvalidValue)?;
    Ok((Arc::clone(physical), offset))
}

/// `cuMemRetainAllocationHandle`: the handle.
pub fn retain(address: u64) -> Result<u64> {
    match at(address, |mapping| mapping.memory.clone())? {
        Memory::Physical(physical) => {
            let mut held = physical.held.lock();
            *held += 1;
            PHYSICAL.insert(physical.handle, &physical);
            Ok(physical.handle as u64)
        }
        Memory::Multicast(multicast) => {
            multicast.retain();
            Ok(multicast.handle())
        }
    }
}

impl Physical {
    /// `cuMemCreate`.
    pub fn create(bytes: u64, device: &'static Device, is_shareable: bool, usage: u16) -> Result<Arc<Physical>> {
        if bytes == 0 || !is_granular(bytes) || i64::try_from(bytes).is_err() {
            return Err(Error::InvalidValue);
        }
        let ordinal = device.ordinal() as u32;
        let space = AddressSpace::get();
        space.charge_device(ordinal, bytes).map_err(|_| Error::OutOfMemory)?;
        let file =
            SharedFile::create(bytes, Purpose::Physical).inspect_err(|_| space.discharge_device(ordinal, bytes))?;
        Ok(Physical::register(file, bytes, device, is_shareable, usage, false))
    }

    fn register(
        file: SharedFile,
        bytes: u64,
        device: &'static Device,
        is_shareable: bool,
        usage: u16,
        is_imported: bool,
    ) -> Arc<Physical> {
        let physical = Arc::new(Physical {
            handle: handle::fresh(),
            file,
            bytes,
            device,
            is_shareable,
            usage,
            is_imported,
            by: caller::here(),
            held: Mutex::new(1),
        });
        PHYSICAL.insert(physical.handle, &physical);
        physical
    }

    /// `cuMemImportFromShareableHandle`: the descriptor stays the caller's. What other processes know of the memory but its
    /// size does not come along: it is taken for the first device's.
    pub fn import(descriptor: RawFd) -> Result<Arc<Physical>> {
        let file = SharedFile::from_descriptor(descriptor, Purpose::Physical)?;
        let bytes = file.bytes();
        if !is_granular(bytes) {
            return Err(Error::InvalidValue);
        }
        Ok(Physical::register(file, bytes, Device::get(0)?, true, 0, true))
    }

    /// 1 for what is not memory, or was released.
    pub fn from_handle(handle: u64) -> Result<Arc<Physical>> {
        PHYSICAL.get(handle as Handle).ok_or(Error::InvalidValue)
    }

    pub fn handle(&self) -> u64 {
        self.handle as u64
    }

    pub fn device(&self) -> &'static Device {
        self.device
    }

    pub(in crate::driver) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(in crate::driver) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub fn is_shareable(&self) -> bool {
        self.is_shareable
    }

    /// `CUmemAllocationProp::allocFlags::usage`.
    pub fn usage(&self) -> u16 {
        self.usage
    }

    /// `cuMemRelease`: mappings keep it.
    pub fn release(&self) -> Result<()> {
        let mut held = self.held.lock();
        *held = held.checked_sub(1).ok_or(Error::InvalidValue)?;
        if *held == 0 {
            PHYSICAL.remove(self.handle);
        }
        Ok(())
    }

    /// `cuMemExportToShareableHandle`: a descriptor that the caller closes. 1 unless it was made to be shared.
    pub fn export(&self) -> Result<RawFd> {
        if !self.is_shareable {
            return Err(Error::InvalidValue);
        }
        self.file.export()
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        if !self.is_imported {
            AddressSpace::get().discharge_device(self.device.ordinal() as u32, self.bytes);
        }
    }
}
