//! Managed memory: advice, prefetching, discarding, attaching.
//!
//! Host and devices have one memory: nothing moves, and all of this is kept to be read back, but for a discard, which
//! gives the system its pages.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::driver::stream::Command;
use crate::driver::{Context, Device, Error, Result, Stream};
use crate::memory::{AddressSpace, Allocation, Kind, PAGE};

/// `CU_DEVICE_CPU`, `CU_DEVICE_INVALID`.
const CPU: i32 = -1;
const NOWHERE: i32 = -2;

/// `CUmemLocation`, as calls give it: type and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    pub kind: u32,
    pub id: i32,
}

impl Location {
    pub const NONE: Location = Location { kind: 0, id: 0 };
    const DEVICE: u32 = 1;
    const HOST: u32 = 2;
    const NUMA: u32 = 3;
    const NUMA_CURRENT: u32 = 4;

    /// The location that a `CUdevice` stands for: `CU_DEVICE_CPU` is the host.
    pub fn of_device(device: i32) -> Location {
        match device {
            CPU => Location {
                kind: Location::HOST,
                id: 0,
            },
            id => Location {
                kind: Location::DEVICE,
                id,
            },
        }
    }

    /// As it is kept: a device, the host, or the one node that all of its memory is.
    ///
    /// # Errors
    /// 101 for a device that is none, 1 for a location that memory cannot have.
    fn check(self) -> Result<Location> {
        match self.kind {
            Location::DEVICE => Device::get(self.id).map(|_| self),
            Location::HOST => Ok(Location { id: 0, ..self }),
            Location::NUMA if self.id == 0 => Ok(self),
            Location::NUMA_CURRENT => Ok(Location {
                kind: Location::NUMA,
                id: 0,
            }),
            _ => Err(Error::InvalidValue),
        }
    }

    /// `CUdevice`.
    fn device(self) -> i32 {
        match self.kind {
            Location::DEVICE => self.id,
            0 => NOWHERE,
            _ => CPU,
        }
    }
}

/// What the program has said of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Advice {
    read_mostly: bool,
    preferred: Location,
    /// Ordinals; [`CPU`].
    accessed_by: Vec<i32>,
    prefetched: Location,
}

impl Default for Advice {
    fn default() -> Advice {
        Advice {
            read_mostly: false,
            preferred: Location::NONE,
            accessed_by: Vec::new(),
            prefetched: Location::NONE,
        }
    }
}

/// What was said of an allocation: from each of these addresses to the next one, the same.
struct Said {
    id: u64,
    end: u64,
    from: BTreeMap<u64, Advice>,
}

/// By the start of the allocation.
static SAID: Mutex<BTreeMap<u64, Said>> = Mutex::new(BTreeMap::new());

impl Said {
    fn of<'a>(all: &'a mut BTreeMap<u64, Said>, allocation: &Allocation) -> &'a mut Said {
        let said = all.entry(allocation.start).or_insert_with(|| Said::new(allocation));
        if said.id != allocation.id {
            *said = Said::new(allocation);
        }
        said
    }

    fn new(allocation: &Allocation) -> Said {
        Said {
            id: allocation.id,
            end: allocation.start + allocation.block_bytes(),
            from: BTreeMap::from([(allocation.start, Advice::default())]),
        }
    }

    fn split(&mut self, at: u64) {
        if at < self.end
            && let Some((_, advice)) = self.from.range(..=at).next_back()
        {
            let advice = advice.clone();
            self.from.entry(at).or_insert(advice);
        }
    }

    /// Says something of the pages of a range.
    fn say(&mut self, first: u64, bytes: u64, mut what: impl FnMut(&mut Advice)) {
        let (first, last) = (first / PAGE * PAGE, (first + bytes).next_multiple_of(PAGE));
        self.split(first);
        self.split(last);
        self.from.range_mut(first..last).for_each(|(_, advice)| what(advice));
    }

    /// What was said of the pages of a range, in order.
    fn of_range(&self, first: u64, bytes: u64) -> impl Iterator<Item = &Advice> {
        let before = self.from.range(..=first).next_back().map_or(first, |(start, _)| *start);
        self.from.range(before..first + bytes).map(|(_, advice)| advice)
    }
}

/// The managed allocation that a range lies in (1 otherwise).
fn find(address: u64, bytes: u64) -> Result<Allocation> {
    let found = AddressSpace::get()
        .find(address)
        .filter(|allocation| allocation.kind == Kind::Managed && bytes > 0 && allocation.contains(address, bytes));
    found.ok_or(Error::InvalidValue)
}

/// The allocation is gone.
pub(in crate::driver) fn forget(start: u64) {
    SAID.lock().remove(&start);
}

/// `cuMemAdvise`.
///
/// # Errors
/// 1 for what is not managed memory, an advice that is none, or a location that cannot be advised; 101 for a device that is
/// none.
pub fn advise(address: u64, bytes: u64, advice: u32, location: Location) -> Result<()> {
    Context::usable()?;
    let allocation = find(address, bytes)?;
    let by = |location: Location| match location.kind {
        Location::DEVICE | Location::HOST => location.check().map(Location::device),
        _ => Err(Error::InvalidValue),
    };
    let change: Box<dyn Fn(&mut Advice)> = match advice {
        1 | 2 => Box::new(move |said| said.read_mostly = advice == 1),
        3 => {
            let location = location.check()?;
            Box::new(move |said| said.preferred = location)
        }
        4 => Box::new(|said| said.preferred = Location::NONE),
        5 | 6 => {
            let device = by(location)?;
            Box::new(move |said| {
                said.accessed_by.retain(|known| *known != device);
                if advice == 5 {
                    said.accessed_by.push(device);
                }
            })
        }
        _ => return Err(Error::InvalidValue),
    };
    Said::of(&mut SAID.lock(), &allocation).say(address, bytes, change);
    Ok(())
}

/// A range of a batch, and where it is to go.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub address: u64,
    pub bytes: u64,
    pub location: Option<Location>,
}

/// `cuMemPrefetchAsync`, `cuMemPrefetchBatchAsync`, `cuMemDiscardBatchAsync`, `cuMemDiscardAndPrefetchBatchAsync`: all parts
/// or none. What is discarded reads as zero where whole pages are.
///
/// # Errors
/// As [`advise`]; 900 in a stream that records.
pub fn move_parts(parts: &[Part], discard: bool, stream: &Arc<Stream>) -> Result<()> {
    stream.shared.check()?;
    stream.refuse_capture()?;
    let checked = parts
        .iter()
        .map(|part| {
            let location = part.location.map(Location::check).transpose()?;
            Ok((find(part.address, part.bytes)?, *part, location))
        })
        .collect::<Result<Vec<_>>>()?;
    let mut all = SAID.lock();
    for (allocation, part, location) in &checked {
        let said = Said::of(&mut all, allocation);
        // What has been discarded is nowhere.
        let to = location.unwrap_or(Location::NONE);
        said.say(part.address, part.bytes, |said| said.prefetched = to);
    }
    drop(all);
    if discard {
        let parts: Vec<(u64, u64)> = checked.iter().map(|(_, part, _)| (part.address, part.bytes)).collect();
        stream.enqueue(Command::Work(Box::new(move |_| {
            for (address, bytes) in parts {
                AddressSpace::get().discard(address, bytes);
            }
        })));
    }
    Ok(())
}

/// `cuMemRangeGetAttribute` but for the list of [`accessed_by`]: 1 read mostly, 2 preferred location, 4 last prefetch, 5
/// and 6 type and id of the preferred location, 7 and 8 of the last prefetch. What does not hold for all pages does not
/// hold.
pub fn range_attribute(address: u64, bytes: u64, which: u32) -> Result<i32> {
    let allocation = find(address, bytes)?;
    let mut all = SAID.lock();
    let said = Said::of(&mut all, &allocation);
    let common = |of: fn(&Advice) -> Location| {
        let mut found = said.of_range(address, bytes).map(of);
        let first = found.next().unwrap_or(Location::NONE);
        if found.all(|other| other == first) {
            first
        } else {
            Location::NONE
        }
    };
    Ok(match which {
        1 => said.of_range(address, bytes).all(|advice| advice.read_mostly).into(),
        2 => common(|advice| advice.preferred).device(),
        4 => common(|advice| advice.prefetched).device(),
        5 => common(|advice| advice.preferred).kind as i32,
        6 => common(|advice| advice.preferred).id,
        7 => common(|advice| advice.prefetched).kind as i32,
        8 => common(|advice| advice.prefetched).id,
        _ => return Err(Error::InvalidValue),
    })
}

/// `CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY`: devices for which it was said of all pages, -1 for the host.
pub fn accessed_by(address: u64, bytes: u64) -> Result<Vec<i32>> {
    let allocation = find(address, bytes)?;
    let mut all = SAID.lock();
    let said = Said::of(&mut all, &allocation);
    let mut found = said.of_range(address, bytes).map(|advice| &advice.accessed_by);
    let mut devices = found.next().cloned().unwrap_or_default();
    for others in found {
        devices.retain(|device| others.contains(device));
    }
    Ok(devices)
}

/// `cuMemGetLocationInfo`: for each piece of `summary` bytes of the range, where most of it is, by looks `sampling` bytes
/// apart (0: a page). Memory is where it was prefetched to, or else with the host; what nobody has touched is nowhere.
///
/// # Errors
/// 1 for sizes that do not fit, and for what is neither managed nor pageable memory.
pub fn locations(address: u64, bytes: u64, summary: u64, sampling: u64) -> Result<Vec<Location>> {
    if summary == 0 || summary > bytes || sampling > summary {
        return Err(Error::InvalidValue);
    }
    let space = AddressSpace::get();
    let step = if sampling == 0 { PAGE } else { sampling };
    let end = address.checked_add(bytes).ok_or(Error::InvalidValue)?;
    let allocation = match find(address, bytes) {
        Ok(allocation) => Some(allocation),
        Err(error) => {
            let known = space.view().contains(address) || space.find_host(address).is_some();
            let pageable = !known && crate::driver::memory::place::protection(address, bytes).is_some();
            if !pageable {
                return Err(error);
            }
            None
        }
    };
    let mut all = SAID.lock();
    let said = allocation.as_ref().map(|allocation| &*Said::of(&mut all, allocation));
    let look = |at: u64| {
        let prefetched = said
            .and_then(|said| said.of_range(at, 1).next())
            .map_or(Location::NONE, |advice| advice.prefetched);
        match prefetched {
            Location::NONE if is_resident(at) => Location {
                kind: Location::HOST,
                id: 0,
            },
            place => place,
        }
    };
    let mut pieces = Vec::new();
    let mut first = address;
    while first < end {
        let last = first.saturating_add(summary).min(end);
        let mut counts: Vec<(Location, u64)> = Vec::new();
        let mut at = first;
        while at < last {
            let place = look(at);
            match counts.iter_mut().find(|(known, _)| *known == place) {
                Some((_, count)) => *count += 1,
                None => counts.push((place, 1)),
            }
            at = at.saturating_add(step);
        }
        let most = counts.iter().map(|(_, count)| *count).max();
        let winner = counts.iter().find(|(_, count)| Some(*count) == most);
        pieces.push(winner.map_or(Location::NONE, |(place, _)| *place));
        first = last;
    }
    Ok(pieces)
}

/// Whether a page has memory behind it.
fn is_resident(address: u64) -> bool {
    let mut resident = 0_u8;
    // SAFETY: mincore only answers, one byte for the page.
    let known = unsafe { libc::mincore((address / PAGE * PAGE) as *mut _, 1, &mut resident) } == 0;
    known && resident & 1 == 1
}

/// `CU_MEM_ATTACH_SINGLE`.
const SINGLE: u32 = 4;

/// `cuStreamAttachMemAsync`: of a whole allocation (`bytes` 0, or its size). Managed memory is visible to every stream and
/// to the host at all times, whatever it is attached to.
///
/// # Errors
/// 1 for what is not one, and for an attachment to the default stream alone, which is no stream (manual).
pub fn attach(address: u64, bytes: u64, flags: u32, stream: &Arc<Stream>) -> Result<()> {
    stream.shared.check()?;
    stream.refuse_capture()?;
    let allocation = find(address, 1)?;
    let is_whole = allocation.start == address && (bytes == 0 || bytes == allocation.bytes);
    if !is_whole || !matches!(flags, 1 | 2 | SINGLE) || flags == SINGLE && stream.is_legacy() {
        return Err(Error::InvalidValue);
    }
    Ok(())
}
