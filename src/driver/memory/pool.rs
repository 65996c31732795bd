//! Stream-ordered allocation.
//!
//! Memory is had at once, whatever the stream is doing; it is given back at its place in the stream. What is given back
//! stays with the pool (`reserve.rs`) until somebody asks for as much again, or a call that waits finds more of it than the
//! pool's release threshold. `share.rs` has the pools that several processes know.

mod reserve;
mod share;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use self::reserve::Reserve;
use self::share::Region;
pub use self::share::export_pointer;
use crate::driver::graph::{self, GraphMemory, Work};
use crate::driver::handle::{self, Registry};
use crate::driver::memory::place::start_of;
use crate::driver::process::check;
use crate::driver::stream::Command;
use crate::driver::{Device, Error, Handle, Result, Stream, context};
use crate::memory::{self, AddressSpace, Allocation, Kind, MAX_DEVICES, READ, Request, WRITE, caller, shadow};
use crate::sanitizer::between::{self, Act, Class};

/// What a pool's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Of the device with this ordinal.
    Device(i32),
    /// Pinned host memory.
    Host,
    /// Managed memory, with a preferred location: `(CUmemLocationType, id)`.
    Managed(u32, i32),
    /// Another process's, of a device that this one does not see.
    Invisible,
}

/// What `cuMemPoolCreate` is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wishes {
    pub source: Source,
    /// Other processes may have it.
    pub is_shareable: bool,
    /// 0: no limit of its own.
    pub most: u64,
    /// `CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS`.
    pub decompress: bool,
}

pub struct Pool {
    handle: Handle,
    wishes: Wishes,
    is_default: bool,
    /// `…_REUSE_FOLLOW_EVENT_DEPENDENCIES`, `…_ALLOW_OPPORTUNISTIC`, `…_ALLOW_INTERNAL_DEPENDENCIES`, then
    /// `…_RELEASE_THRESHOLD`.
    settings: [AtomicU64; 4],
    reserve: Mutex<Reserve>,
    /// The file that its memory is in, if processes share it.
    region: Option<Region>,
    /// `CUmemAccess_flags` by ordinal.
    access: Mutex<HashMap<i32, u32>>,
}

const READ_WRITE: u32 = 3;
const LOCATION_DEVICE: u32 = 1;
const LOCATION_HOST: u32 = 2;
const LOCATION_INVISIBLE: u32 = 5;
/// `CU_DEVICE_INVALID`.
const NO_DEVICE: i32 = -2;

/// Those that programs have handles of.
static POOLS: Registry<Pool> = Registry::new();
/// Those that have memory out: a destroyed one lives until that is freed.
static OWNERS: Registry<Pool> = Registry::new();
/// The default and the current pools of what is not a device's own memory.
static ELSEWHERE: Mutex<BTreeMap<(u32, i32, bool), Arc<Pool>>> = Mutex::new(BTreeMap::new());
/// Addresses whose freeing is queued.
static PENDING: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
static PENDING_COUNT: AtomicUsize = AtomicUsize::new(0);

pub(in crate::driver) fn is_pending(address: u64) -> bool {
    PENDING_COUNT.load(Ordering::Acquire) > 0 && PENDING.lock().contains(&address)
}

fn set_pending(address: u64, pending: bool) -> bool {
    let mut all = PENDING.lock();
    let changed = if pending {
        all.insert(address)
    } else {
        all.remove(&address)
    };
    PENDING_COUNT.store(all.len(), Ordering::Release);
    changed
}

/// Whether frees are queued.
pub(in crate::driver) fn any_pending() -> bool {
    PENDING_COUNT.load(Ordering::Acquire) > 0
}

/// Whether waiting for streams, or taking from pools what they keep, could make room for another pool.
fn could_give() -> bool {
    any_pending() || reserve::any_kept()
}

/// Gives back what pools keep: another pool needs it. `cuMemAlloc` is not given it, which a GPU's driver does not do either:
/// there the program has to wait, or to trim the pool.
fn give() {
    for pool in POOLS.collect() {
        pool.reserve.lock().release(&pool, 0);
    }
}

/// A call has waited for work: pools keep no more than their thresholds.
pub(in crate::driver) fn settle() {
    if reserve::any_kept() {
        for pool in POOLS.collect() {
            let threshold = match memory::exact() {
                true => 0,
                false => pool.settings[3].load(Ordering::Relaxed),
            };
            pool.reserve.lock().release(&pool, threshold);
        }
    }
}

/// `cuMemFree` of memory that came from a pool.
pub(in crate::driver) fn free_now(allocation: &Allocation) {
    match OWNERS.get(allocation.pool as Handle) {
        Some(pool) => {
            pool.take_back(allocation, None);
            settle();
        }
        None => {
            AddressSpace::get().free(allocation.start);
        }
    }
}

/// A context ends. Memory that was allocated in its streams is the pool's, and stays as long as the pool's device has a context;
/// the last one takes it with it.
pub(in crate::driver) fn forget_all_of(owner: u64) {
    for pool in OWNERS.collect() {
        let device = match pool.source() {
            Source::Device(ordinal) => Some(ordinal as u32),
            _ => None,
        };
        match context::another(owner, device) {
            Some(heir) => pool.reserve.lock().hand_over(owner, heir),
            None => pool.reserve.lock().forget(&pool, owner),
        }
        pool.end_if_ended();
    }
}

impl Wishes {
    pub fn new(source: Source) -> Wishes {
        Wishes {
            source,
            is_shareable: false,
            most: 0,
            decompress: false,
        }
    }
}

/// The pools of a device: its own, and the one that allocations without a pool come from.
struct OfDevice {
    default: OnceLock<Arc<Pool>>,
    current: Mutex<Option<Arc<Pool>>>,
}

static OF_DEVICES: [OfDevice; MAX_DEVICES] = [const {
    OfDevice {
        default: OnceLock::new(),
        current: Mutex::new(None),
    }
}; MAX_DEVICES];

impl Device {
    fn pools(&self) -> &'static OfDevice {
        &OF_DEVICES[self.ordinal() as usize]
    }

    /// `cuDeviceGetDefaultMemPool`.
    pub fn default_pool(&'static self) -> Arc<Pool> {
        Arc::clone(self.pools().default.get_or_init(|| Pool::of_device(self)))
    }

    /// `cuDeviceGetMemPool`.
    pub fn pool(&'static self) -> Arc<Pool> {
        let pool = self.pools().current.lock().clone();
        pool.unwrap_or_else(|| self.default_pool())
    }

    /// `cuDeviceSetMemPool`: a pool of this device's.
    pub fn set_pool(&self, pool: &Arc<Pool>) -> Result<()> {
        if pool.source() != Source::Device(self.ordinal()) || pool.is_imported() {
            return Err(Error::InvalidValue);
        }
        *self.pools().current.lock() = Some(Arc::clone(pool));
        Ok(())
    }
}

impl Pool {
    fn build(wishes: Wishes, is_default: bool, region: Option<Region>) -> Arc<Pool> {
        let pool = Arc::new(Pool {
            handle: handle::fresh(),
            wishes,
            is_default,
            settings: [1, 1, 1, 0].map(AtomicU64::new),
            reserve: Mutex::default(),
            region,
            access: Mutex::default(),
        });
        POOLS.insert(pool.handle, &pool);
        OWNERS.insert(pool.handle, &pool);
        pool
    }

    pub(in crate::driver) fn of_device(device: &'static Device) -> Arc<Pool> {
        Pool::build(Wishes::new(Source::Device(device.ordinal())), true, None)
    }

    /// `cuMemPoolCreate`.
    ///
    /// # Errors
    /// 2 when the system refuses a file for memory that is shared.
    pub fn create(wishes: Wishes) -> Result<Arc<Pool>> {
        let region = match wishes.is_shareable {
            true => Some(Region::create(&wishes)?),
            false => None,
        };
        Ok(Pool::build(wishes, false, region))
    }

    pub fn from_handle(handle: Handle) -> Result<Arc<Pool>> {
        POOLS.get(handle).ok_or(Error::InvalidValue)
    }

    /// `cuMemGetDefaultMemPool`, `cuMemGetMemPool`: those of devices' own memory are the devices'.
    pub fn at(source: Source, default: bool) -> Result<Arc<Pool>> {
        if let Source::Device(ordinal) = source {
            let device = Device::get(ordinal)?;
            return Ok(if default { device.default_pool() } else { device.pool() });
        }
        let (kind, id) = source.location();
        let managed = matches!(source, Source::Managed(..));
        let key = (kind, id, managed);
        if !default && let Some(current) = CURRENT.lock().get(&key) {
            return Ok(Arc::clone(current));
        }
        let mut all = ELSEWHERE.lock();
        let pool = all
            .entry(key)
            .or_insert_with(|| Pool::build(Wishes::new(source), true, None));
        Ok(Arc::clone(pool))
    }

    /// `cuMemSetMemPool`: 1 unless it is a pool of that memory, and not another process's.
    pub fn set_current(self: &Arc<Pool>, source: Source) -> Result<()> {
        if self.wishes.source != source || self.is_imported() {
            return Err(Error::InvalidValue);
        }
        if let Source::Device(ordinal) = source {
            return Device::get(ordinal)?.set_pool(self);
        }
        let (kind, id) = source.location();
        let key = (kind, id, matches!(source, Source::Managed(..)));
        CURRENT.lock().insert(key, Arc::clone(self));
        Ok(())
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    pub fn source(&self) -> Source {
        self.wishes.source
    }

    /// Another process allocates from it, this one does not.
    pub fn is_imported(&self) -> bool {
        self.region.as_ref().is_some_and(Region::is_imported)
    }

    /// Its memory can be what `cuMemBatchDecompressAsync` reads and writes.
    pub(in crate::driver) fn decompresses(handle: u64) -> bool {
        OWNERS.get(handle as Handle).is_some_and(|pool| pool.wishes.decompress)
    }

    pub(in crate::driver) fn is_shareable(handle: u64) -> bool {
        OWNERS
            .get(handle as Handle)
            .is_some_and(|pool| pool.wishes.is_shareable && !pool.is_imported())
    }

    /// `cuMemPoolDestroy`: what it has allocated stays until freed. Default pools cannot be destroyed.
    pub fn destroy(self: &Arc<Pool>) -> Result<()> {
        if self.is_default {
            return Err(Error::InvalidValue);
        }
        if let Source::Device(ordinal) = self.wishes.source {
            let device = Device::get(ordinal)?;
            if Arc::ptr_eq(&device.pool(), self) {
                device.set_pool(&device.default_pool())?;
            }
        }
        CURRENT.lock().retain(|_, pool| !Arc::ptr_eq(pool, self));
        POOLS.remove(self.handle).ok_or(Error::InvalidValue)?;
        let mut reserve = self.reserve.lock();
        reserve.release(self, 0);
        reserve.close(self);
        drop(reserve);
        self.end_if_ended();
        Ok(())
    }

    /// `cuMemAllocFromPoolAsync`; `cuMemAllocAsync` with the device's current pool.
    ///
    /// # Errors
    /// 1 for no bytes and for another process's pool, 2 when there is no room, in the pool or at all, 801 in a capture for
    /// memory that is not a device's.
    pub fn allocate(self: &Arc<Pool>, bytes: u64, stream: &Arc<Stream>) -> Result<u64> {
        stream.shared.check()?;
        if self.is_imported() {
            return Err(Error::InvalidValue);
        }
        // `cudaMallocAsync` passes it on, and programs count on success.
        if bytes == 0 {
            return Ok(0);
        }
        if let Some(capture) = stream.admit()? {
            let Source::Device(ordinal) = self.wishes.source else {
                capture.invalidate();
                return Err(Error::NotSupported);
            };
            let memory = GraphMemory::create(&*stream.context()?, Device::get(ordinal)?, bytes)?;
            let address = memory.address();
            return capture.add(stream, Work::Allocate(memory)).map(|()| address);
        }
        let request = Request {
            device: match self.wishes.source {
                Source::Device(ordinal) => ordinal as u32,
                _ => stream.shared.device,
            },
            owner: stream.shared.id,
            flags: u32::from(matches!(self.wishes.source, Source::Managed(..))),
            pool: self.handle as u64,
            ..Request::new(self.kind(), bytes)
        };
        let start = reserve::allocate(self, &request, stream)?.start;
        if let Some(memory) = shadow::get().filter(|_| self.kind() == Kind::Device) {
            // What is queued for those who had the memory before comes first.
            let forget = move || memory.undefine(start, bytes);
            if let Err(forget) = stream.try_now(forget) {
                stream.enqueue(Command::Work(Box::new(move |_| forget())));
            }
        }
        between::forget(start, bytes);
        let order = between::begin(stream, Act::Allocates);
        between::touches(order.as_ref(), Class::Write, start, bytes);
        if self.kind() == Kind::Host {
            AddressSpace::get().set_access(start, self.map_bits());
        }
        Ok(start)
    }

    fn kind(&self) -> Kind {
        match self.wishes.source {
            Source::Device(_) | Source::Invisible => Kind::Device,
            Source::Host => Kind::Host,
            Source::Managed(..) => Kind::Managed,
        }
    }

    /// The memory is free, now or, with a stream, at its end.
    fn take_back(self: &Arc<Pool>, allocation: &Allocation, stream: Option<&Arc<Stream>>) {
        self.reserve.lock().take_back(self, allocation, stream);
        self.end_if_ended();
    }

    /// A destroyed pool ends with its last memory.
    fn end_if_ended(&self) {
        if self.reserve.lock().has_ended() {
            OWNERS.remove(self.handle);
            AddressSpace::get().forget_pool(self.handle as u64);
        }
    }

    /// `cuMemPoolTrimTo`.
    pub fn trim(&self, keep: u64) {
        self.reserve.lock().release(self, keep);
    }

    /// `CUmemPool_attribute` by number.
    pub fn attribute(&self, which: u32) -> Result<u64> {
        let (location, id) = self.wishes.source.location();
        let reserve = self.reserve.lock();
        Ok(match which {
            1..=4 => self.settings[which as usize - 1].load(Ordering::Relaxed),
            5 => reserve.reserved,
            6 => reserve.reserved_high,
            7 => reserve.used,
            8 => reserve.used_high,
            // CU_MEM_ALLOCATION_TYPE_PINNED, …_MANAGED
            9 => match self.wishes.source {
                Source::Managed(..) => 2,
                _ => 1,
            },
            // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR; an imported pool cannot be exported again.
            10 => u64::from(self.wishes.is_shareable && !self.is_imported()),
            11 => id as u32 as u64,
            12 => location.into(),
            13 => match &self.region {
                Some(region) if region.is_imported() => region.bytes(),
                _ => self.wishes.most.next_multiple_of(crate::memory::PAGE),
            },
            14 => self.wishes.decompress.into(),
            // Not a part of a device.
            15 => u64::MAX,
            _ => return Err(Error::InvalidValue),
        })
    }

    /// As [`Pool::attribute`]; the high-water marks can only be set back, to 0.
    pub fn set_attribute(&self, which: u32, value: u64) -> Result<()> {
        let mut reserve = self.reserve.lock();
        match which {
            1..=3 => self.settings[which as usize - 1].store(u64::from(value != 0), Ordering::Relaxed),
            4 => self.settings[3].store(value, Ordering::Relaxed),
            6 if value == 0 => reserve.reserved_high = reserve.reserved,
            8 if value == 0 => reserve.used_high = reserve.used,
            _ => return Err(Error::InvalidValue),
        }
        Ok(())
    }

    /// `CUmemAccess_flags` of a device, or of the host (`None`).
    pub fn access(&self, device: Option<&Device>) -> u32 {
        match (self.wishes.source, device) {
            (Source::Managed(..), _) | (Source::Host, None) => READ_WRITE,
            (_, None) => 0,
            (Source::Device(own), Some(device)) if own == device.ordinal() => READ_WRITE,
            (_, Some(device)) => self.access.lock().get(&device.ordinal()).copied().unwrap_or(0),
        }
    }

    /// `cuMemPoolSetAccess`: a pool's own device keeps its access (101), and everybody that to managed memory (801).
    pub fn set_access(&self, device: &Device, flags: u32) -> Result<()> {
        if !matches!(flags, 0 | 1 | READ_WRITE) {
            return Err(Error::InvalidValue);
        }
        match self.wishes.source {
            Source::Device(own) if own == device.ordinal() && flags != READ_WRITE => return Err(Error::InvalidDevice),
            Source::Managed(..) if flags != READ_WRITE => return Err(Error::NotSupported),
            Source::Device(own) if own == device.ordinal() => return Ok(()),
            _ => {}
        }
        self.access.lock().insert(device.ordinal(), flags);
        if matches!(self.wishes.source, Source::Device(_)) {
            let bits = map_bits(flags);
            AddressSpace::get().set_pool_access(self.handle as u64, device.ordinal() as u32, bits);
        }
        if self.wishes.source == Source::Host {
            let bits = self.map_bits();
            for start in self.reserve.lock().starts() {
                AddressSpace::get().set_access(start, bits);
            }
        }
        Ok(())
    }

    /// What kernels may do with a host pool's memory: there is one memory, so what one device may do, all may.
    fn map_bits(&self) -> u8 {
        map_bits(self.access.lock().values().fold(0, |all, flags| all | flags))
    }
}

/// What `CUmemAccess_flags` allow.
fn map_bits(flags: u32) -> u8 {
    match flags {
        0 => 0,
        1 => READ,
        _ => READ | WRITE,
    }
}

/// The current pools that programs have set, of what is not a device's own memory.
static CURRENT: Mutex<BTreeMap<(u32, i32, bool), Arc<Pool>>> = Mutex::new(BTreeMap::new());

impl Source {
    /// `(CUmemLocationType, id)`
    pub fn location(self) -> (u32, i32) {
        match self {
            Source::Device(ordinal) => (LOCATION_DEVICE, ordinal),
            Source::Host => (LOCATION_HOST, 0),
            Source::Managed(kind, id) => (kind, id),
            Source::Invisible => (LOCATION_INVISIBLE, NO_DEVICE),
        }
    }
}

/// Tells who looks for races that memory ends at a place in a stream. It does not before everything is done that has been asked for:
/// whoever still touches it is to be found, and not to fail.
fn ends(allocation: &Allocation, stream: &Arc<Stream>) {
    let Some(order) = between::begin(stream, Act::Frees) else {
        return;
    };
    for other in context::all_streams() {
        stream.wait_point(other.end());
    }
    let (address, bytes) = (allocation.start, allocation.bytes);
    let tell = move || between::touches(Some(&order), Class::Write, address, bytes);
    if let Err(tell) = stream.try_now(tell) {
        stream.enqueue(Command::Always(Box::new(move |_| tell())));
    }
}

/// `cuMemFreeAsync`: of anything that `cuMemAllocAsync` or `cuMemAlloc` gave.
pub fn free(address: u64, stream: &Arc<Stream>) -> Result<()> {
    release(address, stream).inspect_err(|error| check::free_failed(address, *error))
}

fn release(address: u64, stream: &Arc<Stream>) -> Result<()> {
    stream.shared.check()?;
    // As `cudaFreeAsync` of a null pointer does: nothing.
    if address == 0 {
        return Ok(());
    }
    if let Some(capture) = stream.admit()? {
        let memory = GraphMemory::at(address).inspect_err(|_| capture.invalidate())?;
        return capture.add(stream, Work::Free(memory));
    }
    if let Some(freed) = graph::free_memory(address, stream) {
        return freed;
    }
    let pooled = start_of(address, |_| true)?;
    if pooled.kind != Kind::Device && pooled.pool == 0 {
        return Err(Error::InvalidValue);
    }
    if let Some(pool) = OWNERS.get(pooled.pool as Handle) {
        if !set_pending(address, true) {
            return Err(Error::InvalidValue);
        }
        ends(&pooled, stream);
        pool.take_back(&pooled, Some(stream));
        return Ok(());
    }
    if !set_pending(address, true) {
        return Err(Error::InvalidValue);
    }
    ends(&pooled, stream);
    let by = caller::here();
    let release = move || {
        set_pending(address, false);
        // By number: a reset of the context may have freed it, and somebody else may be there by now.
        if AddressSpace::get().find(address).is_some_and(|now| now.id == pooled.id) {
            crate::driver::ipc::forget(&pooled);
            by.during(|| AddressSpace::get().free(address));
        }
    };
    if let Err(release) = stream.try_now(release) {
        stream.enqueue(Command::Always(Box::new(move |_| release())));
    }
    Ok(())
}
