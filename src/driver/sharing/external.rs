//! Memory that others have made: files in memory, by descriptor (`cuImportExternalMemory`).
//!
//! A file must not shrink while it is mapped: touching what it has lost would end the process. So it is sealed, or a
//! dma-buf, whose size is fixed. A mipmapped array lies in a file as this driver lays one out: level after level, each at a
//! multiple of 512 bytes, rows and slices one after the other.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::driver::array::{Descriptor, Mipmapped};
use crate::driver::handle::{self, Registry};
use crate::driver::{Context, Error, Handle, Result, context};
use crate::memory::{AddressSpace, Kind, PAGE, READ, Range, Request, WRITE};

pub struct ExternalMemory {
    handle: Handle,
    file: OwnedFd,
    bytes: u64,
    owner: u64,
    is_dma_buf: bool,
}

/// A part of a file that is shown.
pub(in crate::driver) struct Window {
    range: Range,
    owner: u64,
    /// It lives as long as it is shown.
    _memory: Arc<ExternalMemory>,
}

static MEMORIES: Registry<ExternalMemory> = Registry::new();
/// Buffers, by the address that programs have.
static BUFFERS: Mutex<BTreeMap<u64, Window>> = Mutex::new(BTreeMap::new());

/// What a descriptor is, as the system names it: `anon_inode:[eventfd]`, `/memfd:… (deleted)`.
pub(in crate::driver) fn name_of(descriptor: RawFd) -> Result<String> {
    let link = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).map_err(|_| Error::InvalidHandle)?;
    Ok(link.to_string_lossy().into_owned())
}

/// Seals a file against shrinking; `false`: it cannot be.
pub(in crate::driver) fn seal(descriptor: RawFd) -> bool {
    // SAFETY: concerns the descriptor alone, which is open; files without seals answer an error.
    unsafe {
        libc::fcntl(descriptor, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK);
        let seals = libc::fcntl(descriptor, libc::F_GET_SEALS);
        seals >= 0 && seals & libc::F_SEAL_SHRINK != 0
    }
}

impl ExternalMemory {
    /// Takes over a descriptor (not if it fails).
    ///
    /// # Errors
    /// 400 for what is not open, 1 for sizes that are not the file's, 801 for files that may shrink.
    pub fn import(descriptor: RawFd, bytes: u64, dma_buf: bool) -> Result<Arc<ExternalMemory>> {
        let context = Context::usable()?;
        if bytes == 0 {
            return Err(Error::InvalidValue);
        }
        let name = name_of(descriptor)?;
        // SAFETY: the descriptor is open; only asks where its end is.
        let size = unsafe { libc::lseek(descriptor, 0, libc::SEEK_END) };
        let is_dma_buf = name.starts_with("/dmabuf:") || name.starts_with("anon_inode:dmabuf");
        if dma_buf != is_dma_buf || !(is_dma_buf || name.starts_with("/memfd:") && seal(descriptor)) {
            tracing::warn!("cuImportExternalMemory: {name}: not a file in memory whose size is fixed");
            return Err(Error::NotSupported);
        }
        if u64::try_from(size).map_err(|_| Error::InvalidHandle)? < bytes {
            return Err(Error::InvalidValue);
        }
        // SAFETY: it is open, and the program gives it away.
        let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let memory = Arc::new(ExternalMemory {
            handle: handle::fresh(),
            file,
            bytes,
            owner: context.id(),
            is_dma_buf,
        });
        MEMORIES.insert(memory.handle, &memory);
        Ok(memory)
    }

    /// 400 for what is no external memory.
    pub fn from_handle(handle: Handle) -> Result<Arc<ExternalMemory>> {
        MEMORIES.get(handle).ok_or(Error::InvalidHandle)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// `cuDestroyExternalMemory`: what shows it keeps it.
    pub fn destroy(&self) -> Result<()> {
        MEMORIES.remove(self.handle).map(drop).ok_or(Error::InvalidHandle)
    }

    /// Shows a part: the window, and where in it the part begins.
    fn show(self: &Arc<ExternalMemory>, offset: u64, bytes: u64, kind: Kind) -> Result<(Window, u64)> {
        let context = Context::usable()?;
        let end = offset.checked_add(bytes).ok_or(Error::InvalidValue)?;
        if bytes == 0 || end > self.bytes {
            return Err(Error::InvalidValue);
        }
        let first = offset / PAGE * PAGE;
        let space = AddressSpace::get();
        let range = space
            .reserve_range((end - first).next_multiple_of(PAGE), PAGE)
            .map_err(|_| Error::OutOfMemory)?;
        let request = Request {
            device: context.shared().device,
            owner: context.id(),
            ..Request::new(kind, end - first)
        };
        if space.map_file(range.start, self.file.as_fd(), first, &request).is_err() {
            space.release_range(range);
            return Err(Error::MapFailed);
        }
        if kind == Kind::Device {
            space.set_access(range.start, READ | WRITE);
        }
        let window = Window {
            range,
            owner: context.id(),
            _memory: Arc::clone(self),
        };
        Ok((window, range.start + (offset - first)))
    }

    /// `cuExternalMemoryGetMappedBuffer`: freed by `cuMemFree`.
    ///
    /// # Errors
    /// 1 unless it lies in the memory.
    pub fn buffer(self: &Arc<ExternalMemory>, offset: u64, bytes: u64) -> Result<u64> {
        let (window, address) = self.show(offset, bytes, Kind::Device)?;
        BUFFERS.lock().insert(address, window);
        Ok(address)
    }

    /// `cuExternalMemoryGetMappedMipmappedArray`: freed by `cuMipmappedArrayDestroy`.
    ///
    /// # Errors
    /// As [`Mipmapped::create`]; 1 unless it fits, 801 on a dma-buf (manual).
    pub fn mipmap(
        self: &Arc<ExternalMemory>,
        offset: u64,
        descriptor: Descriptor,
        levels: u32,
    ) -> Result<Arc<Mipmapped>> {
        if self.is_dma_buf {
            return Err(Error::NotSupported);
        }
        Mipmapped::create_at(descriptor, levels, |bytes| {
            let (window, address) = self.show(offset, bytes, Kind::Array)?;
            Ok((address, window))
        })
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let space = AddressSpace::get();
        space.unmap_file(self.range.start);
        space.release_range(self.range);
    }
}

/// `cuMemFree` of a buffer; `None`: it is none.
pub(in crate::driver) fn free_buffer(address: u64) -> Option<()> {
    if !BUFFERS.lock().contains_key(&address) {
        return None;
    }
    context::drain_all();
    let gone = BUFFERS.lock().remove(&address);
    gone.map(drop)
}

/// A context ends, and what it has imported.
pub(in crate::driver) fn forget_all_of(owner: u64) {
    MEMORIES.take(|memory| memory.owner == owner);
    let gone: Vec<Window> = {
        let mut buffers = BUFFERS.lock();
        let of_it = buffers.iter().filter(|(_, window)| window.owner == owner);
        let starts: Vec<u64> = of_it.map(|(start, _)| *start).collect();
        starts.iter().filter_map(|start| buffers.remove(start)).collect()
    };
    drop(gone);
}
