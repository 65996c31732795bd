//! Multicast objects: one range of memory of each device of a team, under common addresses.
//!
//! What reaches all devices at once are the `multimem` instructions of kernels: they look the address up in
//! [`memory::multicast`](crate::memory::multicast), and find there for each device of the team a range in which this
//! object shows what the device has bound. Ordinary accesses by multicast addresses are defined for nobody, but in a team
//! of one device they can only mean its memory, and that is what a mapping shows. In a larger team they would miss all
//! devices but one: kernels may not make them.

use std::os::fd::AsFd;
use std::sync::Arc;

use parking_lot::Mutex;

use super::binding::{self, Binding, Bindings, is_granular};
use crate::driver::handle::{self, Registry};
use crate::driver::shared_file::{Purpose, SharedFile};
use crate::driver::virtual_memory::{self, GRANULARITY, Physical};
use crate::driver::{Device, Error, Handle, Result, context};
use crate::memory::{AddressSpace, Kind, Range, Request, multicast};

pub struct Multicast {
    handle: Handle,
    bytes: u64,
    /// How many devices the team will have.
    team: usize,
    /// What is shown where nothing is bound.
    empty: SharedFile,
    /// How often the program holds its handle.
    held: Mutex<u32>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    devices: Vec<i32>,
    bound: Bindings,
    mappings: Vec<Mapping>,
}

#[derive(Clone)]
struct Mapping {
    start: u64,
    bytes: u64,
    /// Map bits, of bound parts.
    bits: u8,
    /// In a larger team: where each device's memory is shown, in the order of their numbers.
    members: Arc<[Range]>,
}

impl Mapping {
    /// Where a device's memory is shown.
    fn of(&self, devices: &[i32], device: i32) -> u64 {
        let member = devices.iter().filter(|&&other| other < device).count();
        self.members.get(member).map_or(self.start, |range| range.start)
    }
}

static MULTICASTS: Registry<Multicast> = Registry::new();

/// What `cuMulticastCreate` and `cuMulticastGetGranularity` take: at most as many devices as there are.
pub fn check(team: u32, bytes: u64) -> Result<()> {
    if team == 0 || team > Device::count() || bytes == 0 {
        return Err(Error::InvalidValue);
    }
    Ok(())
}

impl Multicast {
    /// `cuMulticastCreate`.
    pub fn create(team: u32, bytes: u64) -> Result<Arc<Multicast>> {
        check(team, bytes)?;
        if !is_granular(&[bytes]) {
            return Err(Error::InvalidValue);
        }
        let multicast = Arc::new(Multicast {
            handle: handle::fresh(),
            bytes,
            team: team as usize,
            empty: SharedFile::create(bytes, Purpose::Physical)?,
            held: Mutex::new(1),
            state: Mutex::default(),
        });
        MULTICASTS.insert(multicast.handle, &multicast);
        Ok(multicast)
    }

    /// 1 for what is no multicast object, or was released.
    pub fn from_handle(handle: u64) -> Result<Arc<Multicast>> {
        MULTICASTS.get(handle as Handle).ok_or(Error::InvalidValue)
    }

    pub fn handle(&self) -> u64 {
        self.handle as u64
    }

    /// `cuMemRelease`: mappings keep it.
    pub fn release(&self) -> Result<()> {
        let mut held = self.held.lock();
        *held = held.checked_sub(1).ok_or(Error::InvalidValue)?;
        if *held == 0 {
            MULTICASTS.remove(self.handle);
        }
        Ok(())
    }

    pub(in crate::driver) fn retain(self: &Arc<Multicast>) {
        *self.held.lock() += 1;
        MULTICASTS.insert(self.handle, self);
    }

    /// `cuMulticastAddDevice`: each device once, and no more than the team has.
    pub fn add_device(&self, device: &Device) -> Result<()> {
        let mut state = self.state.lock();
        if state.devices.contains(&device.ordinal()) || state.devices.len() == self.team {
            return Err(Error::InvalidValue);
        }
        state.devices.push(device.ordinal());
        Ok(())
    }

    /// `cuMulticastBindMem`: a part of memory at an offset of the object, for a device of the team (`None`: the one whose
    /// memory it is).
    ///
    /// # Errors
    /// 1 for what is not granular, does not fit, or is taken; 101 for devices outside of the team, 802 before all devices
    /// have been added. (The manual says that the call blocks until then. Nobody could add one if it did in the only thread.)
    pub fn bind(
        &self,
        device: Option<&Device>,
        offset: u64,
        physical: &Arc<Physical>,
        from: u64,
        bytes: u64,
    ) -> Result<()> {
        let device = device.unwrap_or(physical.device()).ordinal();
        let binding = Binding {
            device,
            offset,
            bytes,
            physical: Arc::clone(physical),
            from,
        };
        binding.check(self.bytes)?;
        let mut state = self.state.lock();
        self.check_complete(&state)?;
        if !state.devices.contains(&device) {
            return Err(Error::InvalidDevice);
        }
        state.bound.add(binding)?;
        for mapping in &state.mappings {
            self.show(&state, mapping)?;
        }
        Ok(())
    }

    /// `cuMulticastBindAddr`: memory of `cuMemCreate`, by where it is mapped.
    ///
    /// # Errors
    /// As [`Multicast::bind`]; 1 for other memory.
    pub fn bind_address(&self, device: Option<&Device>, offset: u64, address: u64, bytes: u64) -> Result<()> {
        let (physical, from) = virtual_memory::physical_at(address, bytes)?;
        self.bind(device, offset, &physical, from, bytes)
    }

    /// `cuMulticastUnbind`: all that a device has bound in a range; waits for what may use it.
    ///
    /// # Errors
    /// 1 unless it is one or more whole bindings, 101 for a device outside of the team.
    pub fn unbind(&self, device: &Device, offset: u64, bytes: u64) -> Result<()> {
        binding::check_range(offset, bytes, self.bytes)?;
        if !self.state.lock().devices.contains(&device.ordinal()) {
            return Err(Error::InvalidDevice);
        }
        context::drain_all();
        let mut state = self.state.lock();
        state.bound.remove(device.ordinal(), (offset, bytes), self.bytes)?;
        for mapping in &state.mappings {
            self.show(&state, mapping)?;
        }
        Ok(())
    }

    fn check_complete(&self, state: &State) -> Result<()> {
        if state.devices.len() < self.team {
            tracing::warn!(
                "a multicast object is used before all {} devices have been added",
                self.team
            );
            return Err(Error::SystemNotReady);
        }
        Ok(())
    }

    /// `cuMemMap`: the first `bytes`, in a reserved range where nothing is yet.
    pub(in crate::driver) fn map(&self, start: u64, bytes: u64) -> Result<()> {
        let mut state = self.state.lock();
        if bytes > self.bytes {
            return Err(Error::InvalidValue);
        }
        self.check_complete(&state)?;
        let request = Request {
            device: state.devices[0] as u32,
            ..Request::new(Kind::Device, bytes)
        };
        AddressSpace::get()
            .map_file(start, self.empty.as_fd(), 0, &request)
            .map_err(|_| Error::OutOfMemory)?;
        let members = match self.members(&state.devices, bytes) {
            Ok(members) => members,
            Err(error) => {
                AddressSpace::get().unmap_file(start);
                return Err(error);
            }
        };
        let mapping = Mapping {
            start,
            bytes,
            bits: 0,
            members,
        };
        multicast::publish(multicast::Team {
            start,
            bytes,
            members: match self.team {
                1 => Box::new([start]),
                _ => mapping.members.iter().map(|range| range.start).collect(),
            },
        });
        state.mappings.push(mapping.clone());
        self.show(&state, &mapping)
    }

    /// Ranges that show nothing yet, one for each device of a larger team.
    fn members(&self, devices: &[i32], bytes: u64) -> Result<Arc<[Range]>> {
        let space = AddressSpace::get();
        let mut devices = devices.to_vec();
        devices.sort_unstable();
        let mut members: Vec<Range> = Vec::new();
        for device in devices.into_iter().filter(|_| self.team > 1) {
            let request = Request {
                device: device as u32,
                ..Request::new(Kind::Device, bytes)
            };
            let mapped = space.reserve_range(bytes, GRANULARITY).and_then(|range| {
                let shown = space.map_file(range.start, self.empty.as_fd(), 0, &request);
                shown.map(|_| range).inspect_err(|_| space.release_range(range))
            });
            match mapped {
                Ok(range) => members.push(range),
                Err(_) => {
                    hide(&members);
                    return Err(Error::OutOfMemory);
                }
            }
        }
        Ok(members.into())
    }

    /// `cuMemUnmap`, after the addresses have been emptied.
    pub(in crate::driver) fn forget(&self, start: u64) {
        multicast::withdraw(start);
        self.state.lock().mappings.retain(|mapping| {
            if mapping.start == start {
                hide(&mapping.members);
            }
            mapping.start != start
        });
    }

    /// `cuMemSetAccess`
    pub(in crate::driver) fn set_access(&self, start: u64, bits: u8) -> Result<()> {
        let mut state = self.state.lock();
        let Some(mapping) = state.mappings.iter_mut().find(|mapping| mapping.start == start) else {
            return Err(Error::InvalidValue);
        };
        mapping.bits = bits;
        let mapping = mapping.clone();
        self.show(&state, &mapping)
    }

    /// Shows what is bound now; kernels reach that and nothing else.
    fn show(&self, state: &State, mapping: &Mapping) -> Result<()> {
        let space = AddressSpace::get();
        let empty = |start| {
            space.set_access(start, 0);
            space
                .replace_file(start, mapping.bytes, self.empty.as_fd(), 0)
                .map_err(|_| Error::OutOfMemory)
        };
        empty(mapping.start)?;
        for member in &*mapping.members {
            empty(member.start)?;
        }
        for one in state.bound.iter().filter(|one| one.offset < mapping.bytes) {
            let bytes = one.bytes.min(mapping.bytes - one.offset);
            let start = mapping.of(&state.devices, one.device);
            let first = start + one.offset;
            space
                .replace_file(first, bytes, one.physical.file(), one.from)
                .map_err(|_| Error::OutOfMemory)?;
            space.set_access_of_part(start, first, bytes, mapping.bits);
        }
        Ok(())
    }
}

/// Gives back ranges of members.
fn hide(members: &[Range]) {
    let space = AddressSpace::get();
    for &range in members {
        space.unmap_file(range.start);
        space.release_range(range);
    }
}
