//! Logical endpoints: numbers by which fabric operations of kernels reach memory of a device, or of all devices of a team.
//!
//! A program reserves numbers, makes an endpoint of one, binds memory to it, and hands the number to kernels of any device
//! of this machine, which look it up in [`memory::endpoint`](crate::memory::endpoint). There each device has a range as long
//! as the endpoint that shows what it has bound; addresses of that range are nobody's but the fabric operations'.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;

use parking_lot::Mutex;

use super::binding::{self, Binding, Bindings, is_granular};
use crate::driver::shared_file::{Purpose, SharedFile};
use crate::driver::virtual_memory::{self, GRANULARITY, Physical};
use crate::driver::{Device, Error, Result, context};
use crate::memory::{AddressSpace, Kind, READ, Range, Request, WRITE, endpoint};

/// Numbers are small: libraries keep them in 16 bits. 0 is none, for those that keep a number before they have one.
const NUMBERS: std::ops::Range<u32> = 1..1 << 16;

/// What an endpoint is made of.
#[derive(Clone, Copy)]
pub struct Wishes {
    pub owner: Owner,
    pub bytes: u64,
    /// `CU_LOGICAL_ENDPOINT_FLAG_COUNTED_OPS`.
    pub counts: bool,
}

/// Whose memory it stands for.
#[derive(Clone, Copy)]
pub enum Owner {
    Device(&'static Device),
    /// So many devices, which are added one by one.
    Team(u32),
}

struct Endpoint {
    wishes: Wishes,
    /// What is shown where nothing is bound.
    empty: SharedFile,
    /// By device.
    shown: BTreeMap<i32, Range>,
    bound: Bindings,
}

#[derive(Default)]
struct State {
    /// How many numbers, by the first.
    reserved: BTreeMap<u32, u32>,
    endpoints: BTreeMap<u32, Endpoint>,
}

static STATE: Mutex<State> = Mutex::new(State {
    reserved: BTreeMap::new(),
    endpoints: BTreeMap::new(),
});

/// `cuLogicalEndpointGetLimits`: what offsets and sizes are multiples of, and the greatest size.
///
/// # Errors
/// As [`create`].
pub fn limits(wishes: &Wishes) -> Result<(u64, u64)> {
    check(wishes)?;
    Ok((GRANULARITY, most()))
}

/// An eighth of the addresses that there are.
fn most() -> u64 {
    AddressSpace::get().view().len / 8 / GRANULARITY * GRANULARITY
}

fn check(wishes: &Wishes) -> Result<()> {
    match wishes.owner {
        Owner::Device(_) => Ok(()),
        Owner::Team(devices) if (1..=Device::count()).contains(&devices) => Ok(()),
        Owner::Team(_) => Err(Error::InvalidValue),
    }
}

/// `cuLogicalEndpointIdReserve`: the first of so many numbers in a row.
///
/// # Errors
/// 1 for none, 2 when there are no more.
pub fn reserve(count: u32) -> Result<u32> {
    if count == 0 {
        return Err(Error::InvalidValue);
    }
    let mut state = STATE.lock();
    let mut first = NUMBERS.start;
    for (&taken, &others) in &state.reserved {
        if taken - first >= count {
            break;
        }
        first = taken + others;
    }
    if NUMBERS.end - first < count {
        return Err(Error::OutOfMemory);
    }
    state.reserved.insert(first, count);
    Ok(first)
}

/// `cuLogicalEndpointIdRelease`
///
/// # Errors
/// 1 unless these were reserved together, and no endpoint is left with one of them.
pub fn release(first: u32, count: u32) -> Result<()> {
    let mut state = STATE.lock();
    if state.reserved.get(&first) != Some(&count) || state.endpoints.range(first..first + count).next().is_some() {
        return Err(Error::InvalidValue);
    }
    state.reserved.remove(&first);
    Ok(())
}

impl State {
    fn is_reserved(&self, id: u32) -> bool {
        let range = self.reserved.range(..=id).next_back();
        range.is_some_and(|(first, count)| id - first < *count)
    }

    /// # Errors
    /// 1: there is no such endpoint.
    fn get(&mut self, id: u32) -> Result<&mut Endpoint> {
        self.endpoints.get_mut(&id).ok_or(Error::InvalidValue)
    }
}

/// `cuLogicalEndpointCreate`
///
/// # Errors
/// 1 for a number that is not reserved or has an endpoint, a size that is not granular or too large, a team of more devices
/// than there are; 2 when there is no room.
pub fn create(id: u32, wishes: Wishes) -> Result<()> {
    check(&wishes)?;
    if wishes.bytes == 0 || !is_granular(&[wishes.bytes]) || wishes.bytes > most() {
        return Err(Error::InvalidValue);
    }
    let mut state = STATE.lock();
    if !state.is_reserved(id) || state.endpoints.contains_key(&id) {
        return Err(Error::InvalidValue);
    }
    let mut endpoint = Endpoint {
        wishes,
        empty: SharedFile::create(wishes.bytes, Purpose::Physical)?,
        shown: BTreeMap::new(),
        bound: Bindings::default(),
    };
    if let Owner::Device(device) = wishes.owner {
        endpoint.show(device.ordinal())?;
    }
    endpoint.publish(id);
    state.endpoints.insert(id, endpoint);
    Ok(())
}

/// `cuLogicalEndpointAddDevice`
///
/// # Errors
/// 1 for an endpoint of one device, a device that is there already, and one more than the team has.
pub fn add_device(id: u32, device: &Device) -> Result<()> {
    let mut state = STATE.lock();
    let endpoint = state.get(id)?;
    let is_there = endpoint.shown.contains_key(&device.ordinal());
    if matches!(endpoint.wishes.owner, Owner::Device(_)) || is_there || endpoint.missing() == 0 {
        return Err(Error::InvalidValue);
    }
    endpoint.show(device.ordinal())?;
    endpoint.publish(id);
    Ok(())
}

/// `cuLogicalEndpointDestroy`: waits for what may use it; its number stays reserved.
///
/// # Errors
/// 1 for what is no endpoint.
pub fn destroy(id: u32) -> Result<()> {
    STATE.lock().get(id)?;
    context::drain_all();
    let gone = STATE.lock().endpoints.remove(&id).ok_or(Error::InvalidValue)?;
    endpoint::withdraw(id);
    // What is bound to it is let go behind the lock.
    drop(gone);
    Ok(())
}

/// `cuLogicalEndpointQuery`: whether all of so many endpoints are ready.
///
/// # Errors
/// 1 for numbers that are not reserved.
pub fn is_ready(first: u32, count: u32) -> Result<bool> {
    let state = STATE.lock();
    let end = first.checked_add(count).ok_or(Error::InvalidValue)?;
    if count == 0 || !(first..end).all(|id| state.is_reserved(id)) {
        return Err(Error::InvalidValue);
    }
    let is_ready = |id| state.endpoints.get(&id).is_some_and(|endpoint| endpoint.missing() == 0);
    Ok((first..end).all(is_ready))
}

/// `cuLogicalEndpointBindMem`: a part of memory at an offset, for a device of the endpoint.
///
/// # Errors
/// 1 for what is not granular, does not fit, or is taken; 101 for devices that it is not of, and memory of another device;
/// 802 before all devices have been added.
pub fn bind(id: u32, device: &Device, offset: u64, (physical, from): (Arc<Physical>, u64), bytes: u64) -> Result<()> {
    let mut state = STATE.lock();
    let endpoint = state.get(id)?;
    let memory = physical.device().ordinal();
    let binding = Binding {
        device: device.ordinal(),
        offset,
        bytes,
        physical,
        from,
    };
    binding.check(endpoint.wishes.bytes)?;
    if endpoint.missing() > 0 {
        tracing::warn!(
            "memory is bound to logical endpoint {id} before all of its devices have been added: {} are missing",
            endpoint.missing()
        );
        return Err(Error::SystemNotReady);
    }
    let range = endpoint.range(device)?;
    if memory != device.ordinal() {
        return Err(Error::InvalidDevice);
    }
    let (file, space) = (Arc::clone(&binding.physical), AddressSpace::get());
    endpoint.bound.add(binding)?;
    let first = range.start + offset;
    if space.replace_file(first, bytes, file.file(), from).is_err() {
        endpoint
            .bound
            .remove(device.ordinal(), (offset, bytes), endpoint.wishes.bytes)?;
        return Err(Error::OutOfMemory);
    }
    space.set_access_of_part(range.start, first, bytes, READ | WRITE);
    Ok(())
}

/// `cuLogicalEndpointBindAddr`: memory of `cuMemCreate`, by where it is mapped.
///
/// # Errors
/// As [`bind`]; 1 for other memory.
pub fn bind_address(id: u32, device: &Device, offset: u64, address: u64, bytes: u64) -> Result<()> {
    let memory = virtual_memory::physical_at(address, bytes)?;
    bind(id, device, offset, memory, bytes)
}

/// `cuLogicalEndpointUnbind`: all that a device has bound in a range; waits for what may use it.
///
/// # Errors
/// 1 unless it is one or more whole bindings, 101 for a device that the endpoint is not of.
pub fn unbind(id: u32, device: &Device, offset: u64, bytes: u64) -> Result<()> {
    {
        let mut state = STATE.lock();
        let endpoint = state.get(id)?;
        binding::check_range(offset, bytes, endpoint.wishes.bytes)?;
        endpoint.range(device)?;
    }
    context::drain_all();
    let mut state = STATE.lock();
    let endpoint = state.get(id)?;
    let range = endpoint.range(device)?;
    let whole = endpoint.wishes.bytes;
    let gone = endpoint.bound.remove(device.ordinal(), (offset, bytes), whole)?;
    let space = AddressSpace::get();
    for one in &gone {
        let first = range.start + one.offset;
        space.set_access_of_part(range.start, first, one.bytes, 0);
        space
            .replace_file(first, one.bytes, endpoint.empty.as_fd(), one.offset)
            .map_err(|_| Error::OutOfMemory)?;
    }
    // Memory may end with its last binding.
    drop(state);
    drop(gone);
    Ok(())
}

impl Endpoint {
    /// How many devices have yet to be added.
    fn missing(&self) -> u32 {
        match self.wishes.owner {
            Owner::Device(_) => 0,
            Owner::Team(devices) => devices - self.shown.len() as u32,
        }
    }

    /// # Errors
    /// 101: it is not of this device.
    fn range(&self, device: &Device) -> Result<Range> {
        self.shown.get(&device.ordinal()).copied().ok_or(Error::InvalidDevice)
    }

    /// A range for the memory of a device, where nothing is bound.
    fn show(&mut self, device: i32) -> Result<()> {
        let (space, bytes) = (AddressSpace::get(), self.wishes.bytes);
        let request = Request {
            device: device as u32,
            ..Request::new(Kind::Device, bytes)
        };
        let range = space
            .reserve_range(bytes, GRANULARITY)
            .map_err(|_| Error::OutOfMemory)?;
        if space.map_file(range.start, self.empty.as_fd(), 0, &request).is_err() {
            space.release_range(range);
            return Err(Error::OutOfMemory);
        }
        self.shown.insert(device, range);
        Ok(())
    }

    fn publish(&self, id: u32) {
        let member = |(&device, range): (&i32, &Range)| endpoint::Member {
            device: device as u32,
            start: range.start,
        };
        endpoint::publish(endpoint::Endpoint {
            id,
            is_team: matches!(self.wishes.owner, Owner::Team(_)),
            bytes: self.wishes.bytes,
            counts: self.wishes.counts,
            missing: self.missing(),
            members: self.shown.iter().map(member).collect(),
        });
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let space = AddressSpace::get();
        for &range in self.shown.values() {
            space.unmap_file(range.start);
            space.release_range(range);
        }
    }
}
