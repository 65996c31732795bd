//! What other processes see of this one: for each device, whether it has contexts there, the bytes that it uses, and how long
//! its kernels have run. Tools ask for it by way of NVML (`companions/nvml`).
//!
//! It is a page of memory in a file that has no place in the file system; others find it as a descriptor in
//! `/proc/<process>/fd`, by its name. So it goes with the process, however that ends, and only those see it who may look at the
//! process. A child by `fork` has the descriptor, too, but is not the process that the page names.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use crate::driver::shared_file::{Purpose, SharedFile};
use crate::driver::{Error, Result};
use crate::memory::{AddressSpace, MAX_DEVICES};

/// Grows with every change of [`Page`]: processes may have libraries of different builds.
const FORMAT: u64 = u64::from_le_bytes(*b"Margay\x01\0");

#[repr(C)]
struct Page {
    format: AtomicU64,
    process: AtomicU32,
    _unused: AtomicU32,
    devices: [Line; MAX_DEVICES],
}

/// A device, by its number among all there are.
#[repr(C)]
struct Line {
    contexts: AtomicU32,
    kernels: AtomicU32,
    used: AtomicU64,
    /// Nanoseconds in which kernels ran; while some do, less the time at which they began. All that is done to it is adding,
    /// so that nobody has to wait for anybody.
    clock: AtomicI64,
}

struct Record {
    page: &'static Page,
    /// Keeps the file's name where others look.
    _file: SharedFile,
    /// Devices' numbers by ordinals.
    numbers: Vec<u32>,
}

static RECORD: OnceLock<Record> = OnceLock::new();

/// What a process does on a device, at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub process: u32,
    /// The device's number.
    pub device: u32,
    pub used: u64,
    /// Nanoseconds in which kernels ran.
    pub busy: u64,
}

/// Shows this process to others; `devices` are ordinals with numbers. Where the system does not let it, nobody sees it.
pub fn publish(devices: impl Iterator<Item = (u32, u32)>) {
    match Record::make(devices) {
        Ok(record) => {
            let record = RECORD.get_or_init(|| record);
            for (ordinal, number) in (0..).zip(&record.numbers) {
                AddressSpace::get().show_used(ordinal, &record.page.devices[*number as usize].used);
            }
        }
        Err(error) => tracing::debug!("other processes do not see this one's use of devices: {error:?}"),
    }
}

impl Record {
    fn make(devices: impl Iterator<Item = (u32, u32)>) -> Result<Record> {
        let file = SharedFile::create(size_of::<Page>() as u64, Purpose::Process)?;
        // SAFETY: a mapping of its own, of a file whose size is fixed.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Page>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_fd().as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(Error::OutOfMemory);
        }
        // SAFETY: zeros, which are a page; it stays mapped for the life of the process.
        let page = unsafe { &*address.cast::<Page>() };
        page.process.store(std::process::id(), Ordering::Relaxed);
        page.format.store(FORMAT, Ordering::Release);
        Ok(Record {
            page,
            _file: file,
            numbers: devices.map(|(_, number)| number).collect(),
        })
    }
}

/// In a child of this process: what it does is not its parent's.
pub fn leave() {
    let Some(record) = RECORD.get() else { return };
    let page: *const Page = record.page;
    // SAFETY: the page is ours; it becomes one of this process alone, at the same place, of the same kind.
    unsafe {
        libc::mmap(
            page.cast_mut().cast(),
            size_of::<Page>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
}

fn line(ordinal: u32) -> Option<&'static Line> {
    let record = RECORD.get()?;
    let number = record.numbers.get(ordinal as usize)?;
    record.page.devices.get(*number as usize)
}

pub fn context_begins(ordinal: u32) {
    if let Some(line) = line(ordinal) {
        line.contexts.fetch_add(1, Ordering::Relaxed);
    }
}

pub fn context_ends(ordinal: u32) {
    if let Some(line) = line(ordinal) {
        line.contexts.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A kernel runs on a device, as long as this lives.
pub struct Runs(Option<&'static Line>);

pub fn kernel_runs(ordinal: u32) -> Runs {
    let line = line(ordinal);
    if let Some(line) = line
        && line.kernels.fetch_add(1, Ordering::Relaxed) == 0
    {
        line.clock.fetch_sub(now(), Ordering::Relaxed);
    }
    Runs(line)
}

impl Drop for Runs {
    fn drop(&mut self) {
        if let Some(line) = self.0
            && line.kernels.fetch_sub(1, Ordering::Relaxed) == 1
        {
            line.clock.fetch_add(now(), Ordering::Relaxed);
        }
    }
}

/// Nanoseconds, by the clock that all processes share.
pub fn now() -> i64 {
    // SAFETY: an all-zero record is fit to be filled.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
        time
    };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The processes that have contexts, this one among them, by rising number, with each device on which they have some.
pub fn processes() -> Vec<Seen> {
    let mut all = Vec::new();
    for (process, file) in SharedFile::of_processes(Purpose::Process) {
        let mut page = vec![0; size_of::<Page>()];
        if file.read_exact_at(&mut page, 0).is_ok() {
            all.extend((0..MAX_DEVICES as u32).filter_map(|device| seen(&page, process, device)));
        }
    }
    all.sort_by_key(|seen| (seen.process, seen.device));
    all
}

/// What a page says of a device, if it is that process's own and there are contexts.
fn seen(page: &[u8], process: u32, device: u32) -> Option<Seen> {
    let word = |at: usize| Some(u64::from_le_bytes(page.get(at..at + 8)?.try_into().ok()?));
    let is_its_own = word(0)? == FORMAT && word(8)? == u64::from(process);
    let line = std::mem::offset_of!(Page, devices) + device as usize * size_of::<Line>();
    let contexts = word(line)? as u32;
    let clock = word(line + std::mem::offset_of!(Line, clock))? as i64;
    let busy = if clock < 0 { clock.saturating_add(now()) } else { clock };
    (is_its_own && contexts > 0).then_some(Seen {
        process,
        device,
        used: word(line + std::mem::offset_of!(Line, used))?,
        busy: busy.max(0) as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_others_are_believed_if_they_are_their_own() {
        let mut page = vec![0; size_of::<Page>()];
        assert_eq!(seen(&page, 0, 0), None);
        page[..8].copy_from_slice(&FORMAT.to_le_bytes());
        page[8..12].copy_from_slice(&77_u32.to_le_bytes());
        let line = 16 + 24 * 3;
        page[line..line + 4].copy_from_slice(&1_u32.to_le_bytes());
        page[line + 8..line + 16].copy_from_slice(&4096_u64.to_le_bytes());
        page[line + 16..line + 24].copy_from_slice(&500_i64.to_le_bytes());
        let here = Seen {
            process: 77,
            device: 3,
            used: 4096,
            busy: 500,
        };
        assert_eq!(seen(&page, 77, 3), Some(here));
        assert_eq!((seen(&page, 77, 2), seen(&page, 78, 3)), (None, None));
        assert_eq!((seen(&page, 77, u32::MAX), seen(&page[..90], 77, 3)), (None, None));
        // A kernel that began a second ago.
        page[line + 16..line + 24].copy_from_slice(&(500 - (now() - 1_000_000_000)).to_le_bytes());
        let busy = seen(&page, 77, 3).map_or(0, |seen| seen.busy);
        assert!((1_000_000_500..2_000_000_000).contains(&busy), "{busy}");
    }
}
