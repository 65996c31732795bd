//! Pools that processes share: their memory lies in one file, of which every process shows all.
//!
//! The file's first page says whose memory it is; allocations follow, a page apart.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{OWNERS, Pool, Source, Wishes};
use crate::driver::shared_file::{Purpose, SharedFile, Ticket};
use crate::driver::{Context, Device, Error, Result};
use crate::memory::{AddressSpace, Allocation, Kind, OutOfMemory, PAGE, Range, Request};
use crate::trace::signals::quietly;

pub(super) struct Region {
    file: SharedFile,
    range: Range,
    is_imported: bool,
    device: u32,
    /// Free parts: bytes by offset.
    free: Mutex<BTreeMap<u64, u64>>,
}

fn open(file: SharedFile, is_imported: bool, device: u32) -> Result<Region> {
    let space = AddressSpace::get();
    let range = space
        .reserve_range(file.bytes(), PAGE)
        .map_err(|_| Error::OutOfMemory)?;
    if space.fill_range(&range, file.as_fd()).is_err() {
        space.release_range(range);
        return Err(Error::OutOfMemory);
    }
    let free = BTreeMap::from([(PAGE, file.bytes() - PAGE)]);
    Ok(Region {
        file,
        range,
        is_imported,
        device,
        free: Mutex::new(free),
    })
}

impl Region {
    pub fn create(wishes: &Wishes) -> Result<Region> {
        let Source::Device(ordinal) = wishes.source else {
            return Err(Error::InvalidValue);
        };
        let device = Device::get(ordinal)?;
        let most = match wishes.most {
            0 => device.total_memory(),
            most => most,
        };
        // Holes cost nothing: room for what the pages between allocations take.
        let bytes = most
            .checked_mul(2)
            .and_then(|bytes| bytes.checked_next_multiple_of(PAGE));
        let bytes = bytes.and_then(|bytes| bytes.checked_add(2 * PAGE));
        let file = SharedFile::create(bytes.ok_or(Error::OutOfMemory)?, Purpose::Pool)?;
        let descriptor = File::from(file.as_fd().try_clone_to_owned().map_err(|_| Error::OperatingSystem)?);
        let words = [device.number() + 1, u32::from(wishes.decompress)];
        let header: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        quietly(|| descriptor.write_all_at(&header, 0)).map_err(|_| Error::OutOfMemory)?;
        open(file, false, ordinal as u32)
    }

    pub fn is_imported(&self) -> bool {
        self.is_imported
    }

    pub fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    pub fn allocate(&self, request: &Request) -> std::result::Result<Allocation, OutOfMemory> {
        // A page that nobody has follows each.
        let bytes = request.bytes.next_multiple_of(PAGE) + PAGE;
        let mut free = self.free.lock();
        let found = free
            .iter()
            .find(|(_, room)| **room >= bytes)
            .map(|part| (*part.0, *part.1));
        let (offset, room) = found.ok_or(OutOfMemory)?;
        let allocation = AddressSpace::get().adopt(self.range.start + offset, request, true)?;
        free.remove(&offset);
        if room > bytes {
            free.insert(offset + bytes, room - bytes);
        }
        Ok(allocation)
    }

    /// The allocation ends, its block stays with the pool and goes on counting.
    pub fn retire(&self, start: u64) {
        let space = AddressSpace::get();
        if let Some(allocation) = space.free(start)
            && !self.is_imported
        {
            // It counted until a moment ago: there is room.
            let _ = space.charge_device(self.device, allocation.block_bytes());
        }
    }

    /// A kept block is used again: `in_use` when its free has not had its turn.
    pub fn revive(
        &self,
        start: u64,
        block: u64,
        in_use: bool,
        request: &Request,
    ) -> std::result::Result<Allocation, OutOfMemory> {
        let space = AddressSpace::get();
        if !in_use || space.free(start).is_none() {
            space.discharge_device(self.device, block);
        }
        let adopted = space.adopt(start, request, true).inspect_err(|_| {
            // As it was: kept, and counting.
            let _ = space.charge_device(self.device, block);
        });
        Ok(adopted?.with_block(block))
    }

    /// The block goes back.
    pub fn free(&self, start: u64, block: u64) {
        if self.is_imported {
            return;
        }
        AddressSpace::get().discharge_device(self.device, block);
        let offset = start - self.range.start;
        self.file.punch(offset, block);
        let mut free = self.free.lock();
        let (mut first, mut bytes) = (offset, block + PAGE);
        if let Some((before, room)) = free.range(..offset).next_back().map(|part| (*part.0, *part.1))
            && before + room == offset
        {
            free.remove(&before);
            (first, bytes) = (before, room + bytes);
        }
        if let Some(room) = free.remove(&(offset + block + PAGE)) {
            bytes += room;
        }
        free.insert(first, bytes);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        AddressSpace::get().empty_range(self.range);
    }
}

impl Pool {
    /// `cuMemPoolExportToShareableHandle`: a descriptor that the caller closes. 1 unless it was made to be shared, and here.
    pub fn export(&self) -> Result<RawFd> {
        let region = self.region.as_ref().filter(|region| !region.is_imported);
        region.ok_or(Error::InvalidValue)?.file.export()
    }

    /// `cuMemPoolImportFromShareableHandle`: the descriptor stays the caller's. 1 for what is not a pool's.
    pub fn import(descriptor: RawFd) -> Result<Arc<Pool>> {
        let file = SharedFile::from_descriptor(descriptor, Purpose::Pool)?;
        let mut header = [0; 8];
        File::from(file.as_fd().try_clone_to_owned().map_err(|_| Error::OperatingSystem)?)
            .read_exact_at(&mut header, 0)
            .map_err(|_| Error::InvalidValue)?;
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap_or_default());
        let device = word(0).checked_sub(1).ok_or(Error::InvalidValue)?;
        let device = Device::all().iter().find(|known| known.number() == device);
        let source = device.map_or(Source::Invisible, |device| Source::Device(device.ordinal()));
        let wishes = Wishes {
            source,
            is_shareable: true,
            most: 0,
            decompress: word(4) != 0,
        };
        let ordinal = device.map_or(0, |device| device.ordinal() as u32);
        Ok(Pool::build(wishes, false, Some(open(file, true, ordinal)?)))
    }

    /// `cuMemPoolImportPointer`: 1 for what is not this pool's, and for what is here already.
    pub fn import_pointer(self: &Arc<Pool>, record: &[u8; 64]) -> Result<u64> {
        let region = self.region.as_ref().filter(|region| region.is_imported);
        let region = region.ok_or(Error::InvalidValue)?;
        let ticket = Ticket::from_bytes(record, Purpose::Pool).ok_or(Error::InvalidValue)?;
        let [offset, bytes, _] = ticket.words;
        let end = offset.checked_add(bytes).ok_or(Error::InvalidValue)?;
        let inside = offset >= PAGE && offset.is_multiple_of(PAGE) && bytes > 0 && end <= region.bytes();
        if ticket.number != region.file.number() || !inside {
            return Err(Error::InvalidValue);
        }
        let space = AddressSpace::get();
        let start = region.range.start + offset;
        let mut reserve = self.reserve.lock();
        let last = start + bytes - 1;
        if reserve.overlaps(start, last) {
            return Err(Error::InvalidValue);
        }
        let owner = Context::current_or_none().map_or(0, |context| context.id());
        let request = Request {
            device: region.device,
            owner,
            pool: self.handle as u64,
            ..Request::new(Kind::Device, bytes)
        };
        let allocation = space.adopt(start, &request, false).map_err(|_| Error::OutOfMemory)?;
        reserve.add_foreign(allocation);
        Ok(start)
    }
}

/// `cuMemPoolExportPointer`: 1 unless an allocation of a pool that is shared begins there.
pub fn export_pointer(address: u64) -> Result<[u8; 64]> {
    let allocation = super::start_of(address, |_| true)?;
    let pool = OWNERS.get(allocation.pool as usize).ok_or(Error::InvalidValue)?;
    let region = pool.region.as_ref().filter(|region| !region.is_imported);
    let region = region.ok_or(Error::InvalidValue)?;
    let words = [address - region.range.start, allocation.bytes, 0];
    Ok(region.file.ticket(words).to_bytes(Purpose::Pool))
}
