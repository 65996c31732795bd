//! Stream-ordered allocation.
//!
//! Flows in: sizes, streams. Flows out: addresses. It must never know how the address space finds room.
//!
//! Memory is had at once, whatever the stream is doing; it is given back at its place in the stream. What a pool would
//! keep in reserve the address space keeps for all of them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::alloc::{place, start_of};
use super::graph::{self, GraphMemory, Work};
use super::handle::{self, Registry};
use super::stream::Command;
use super::{Device, Error, Handle, Result, Stream};
use crate::memory::{AddressSpace, Allocation, Kind, Request};

pub struct Pool {
    handle: Handle,
    device: &'static Device,
    is_default: bool,
    /// `…_REUSE_FOLLOW_EVENT_DEPENDENCIES`, `…_ALLOW_OPPORTUNISTIC`, `…_ALLOW_INTERNAL_DEPENDENCIES`, then
    /// `…_RELEASE_THRESHOLD`.
    settings: [AtomicU64; 4],
    used: AtomicU64,
    used_high: AtomicU64,
    /// `CUmemAccess_flags` by ordinal.
    access: Mutex<HashMap<i32, u32>>,
}

const READ_WRITE: u32 = 3;

static POOLS: Registry<Pool> = Registry::new();
/// Addresses whose freeing is queued.
static PENDING: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
static PENDING_COUNT: AtomicUsize = AtomicUsize::new(0);

pub(super) fn any_pending() -> bool {
    PENDING_COUNT.load(Ordering::Acquire) > 0
}

pub(super) fn is_pending(address: u64) -> bool {
    any_pending() && PENDING.lock().contains(&address)
}

/// The allocation goes: its pool has that much less in use.
pub(super) fn forget(allocation: &Allocation) {
    if let Some(pool) = POOLS.get(allocation.pool as Handle) {
        pool.used.fetch_sub(allocation.bytes, Ordering::Relaxed);
    }
}

impl Pool {
    fn build(device: &'static Device, is_default: bool) -> Arc<Pool> {
        let pool = Arc::new(Pool {
            handle: handle::fresh(),
            device,
            is_default,
            settings: [1, 1, 1, 0].map(AtomicU64::new),
            used: AtomicU64::new(0),
            used_high: AtomicU64::new(0),
            access: Mutex::default(),
        });
        POOLS.insert(pool.handle, &pool);
        pool
    }

    pub(super) fn of_device(device: &'static Device) -> Arc<Pool> {
        Pool::build(device, true)
    }

    /// `cuMemPoolCreate`.
    pub fn create(device: &'static Device) -> Result<Arc<Pool>> {
        Ok(Pool::build(device, false))
    }

    pub fn from_handle(handle: Handle) -> Result<Arc<Pool>> {
        POOLS.get(handle).ok_or(Error::InvalidValue)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// `cuMemPoolDestroy`: what it has allocated stays until freed. A device's default pool cannot be destroyed.
    pub fn destroy(self: &Arc<Pool>) -> Result<()> {
        if self.is_default {
            return Err(Error::InvalidValue);
        }
        if Arc::ptr_eq(&self.device.pool(), self) {
            self.device.set_pool(&self.device.default_pool())?;
        }
        POOLS.remove(self.handle).map(drop).ok_or(Error::InvalidValue)
    }

    /// `cuMemAllocFromPoolAsync`; `cuMemAllocAsync` with the device's current pool.
    pub fn allocate(self: &Arc<Pool>, bytes: u64, stream: &Arc<Stream>) -> Result<u64> {
        stream.shared.check()?;
        if bytes == 0 {
            return Err(Error::InvalidValue);
        }
        if let Some(capture) = stream.admit()? {
            let memory = GraphMemory::create(&*stream.context()?, self.device, bytes)?;
            let address = memory.address();
            return capture.add(stream, Work::Allocate(memory)).map(|()| address);
        }
        let request = Request {
            device: self.device.ordinal() as u32,
            owner: stream.shared.id,
            pool: self.handle as u64,
            ..Request::new(Kind::Device, bytes)
        };
        let allocation = place(&request, &stream.shared)?;
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.used_high.fetch_max(used, Ordering::Relaxed);
        Ok(allocation.start)
    }

    /// `cuMemPoolTrimTo`: nothing is kept back.
    pub fn trim(&self, _keep: u64) -> Result<()> {
        Ok(())
    }

    /// `CUmemPool_attribute` by number: 1–3 reuse, 4 release threshold, 5 and 6 reserved now and at most, 7 and 8 used.
    pub fn attribute(&self, which: u32) -> Result<u64> {
        match which {
            1..=4 => Ok(self.settings[which as usize - 1].load(Ordering::Relaxed)),
            5 | 7 => Ok(self.used.load(Ordering::Relaxed)),
            6 | 8 => Ok(self.used_high.load(Ordering::Relaxed)),
            _ => Err(Error::InvalidValue),
        }
    }

    /// As [`Pool::attribute`]; the high-water marks can only be set back, to 0.
    pub fn set_attribute(&self, which: u32, value: u64) -> Result<()> {
        match which {
            1..=3 => self.settings[which as usize - 1].store(u64::from(value != 0), Ordering::Relaxed),
            4 => self.settings[3].store(value, Ordering::Relaxed),
            6 | 8 if value == 0 => {
                let used = self.used.load(Ordering::Relaxed);
                self.used_high.store(used, Ordering::Relaxed);
            }
            _ => return Err(Error::InvalidValue),
        }
        Ok(())
    }

    /// `CUmemAccess_flags` of a device.
    pub fn access(&self, device: &Device) -> Result<u32> {
        if device.ordinal() == self.device.ordinal() {
            return Ok(READ_WRITE);
        }
        Ok(self.access.lock().get(&device.ordinal()).copied().unwrap_or(0))
    }

    /// `cuMemPoolSetAccess`: a pool's own device keeps its access.
    pub fn set_access(&self, device: &Device, flags: u32) -> Result<()> {
        if !matches!(flags, 0 | 1 | READ_WRITE) {
            return Err(Error::InvalidValue);
        }
        if device.ordinal() == self.device.ordinal() {
            return if flags == READ_WRITE {
                Ok(())
            } else {
                Err(Error::InvalidDevice)
            };
        }
        self.access.lock().insert(device.ordinal(), flags);
        Ok(())
    }
}

/// `cuMemFreeAsync`: of anything that `cuMemAllocAsync` or `cuMemAlloc` gave.
pub fn free(address: u64, stream: &Arc<Stream>) -> Result<()> {
    stream.shared.check()?;
    if let Some(capture) = stream.admit()? {
        let memory = GraphMemory::at(address).inspect_err(|_| capture.invalidate())?;
        return capture.add(stream, Work::Free(memory));
    }
    if let Some(freed) = graph::free_memory(address, stream) {
        return freed;
    }
    let allocation = start_of(address, |kind| kind == Kind::Device)?;
    {
        let mut pending = PENDING.lock();
        if !pending.insert(address) {
            return Err(Error::InvalidValue);
        }
        PENDING_COUNT.store(pending.len(), Ordering::Release);
    }
    forget(&allocation);
    let release = move || {
        let mut pending = PENDING.lock();
        // By number: a reset of the context may have freed it, and somebody else may be there by now.
        if AddressSpace::get()
            .find(address)
            .is_some_and(|now| now.id == allocation.id)
        {
            AddressSpace::get().free(address);
        }
        pending.remove(&address);
        PENDING_COUNT.store(pending.len(), Ordering::Release);
    };
    if let Err(release) = stream.try_now(release) {
        stream.enqueue(Command::Always(Box::new(move |_| release())));
    }
    Ok(())
}
