//! Events that processes share: `cuIpc*EventHandle`.
//!
//! The state is a page that all processes map: how many recordings there were, and for each of the last ones whether it is
//! reached and which process is to reach it. A process that has ended reaches nothing any more: its recordings count as
//! reached, for all that it did is over.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::driver::shared_file::{Purpose, SharedFile, Ticket};
use crate::driver::{Error, Result};

/// Recordings that are told from each other; one that comes so much later waits for the earlier one.
const SLOTS: usize = 250;
const BYTES: usize = 4096;

#[repr(C)]
struct Slot {
    /// The number of the last recording here that is reached.
    reached: AtomicU64,
    /// Who is to reach the one under way: a [`process_mark`].
    by: AtomicU64,
}

#[repr(C)]
struct Page {
    /// Recordings so far; they are numbered from 1.
    recorded: AtomicU64,
    slots: [Slot; SLOTS],
}

/// The shared part of an event.
pub(in crate::driver) struct Interprocess {
    file: SharedFile,
    page: *const Page,
}

// SAFETY: the page consists of atomics, and is mapped as long as the event lives.
unsafe impl Send for Interprocess {}
// SAFETY: threads and processes that share the page load and store its atomics, and do nothing else with it.
unsafe impl Sync for Interprocess {}

impl Interprocess {
    pub fn create() -> Result<Interprocess> {
        Interprocess::map(SharedFile::create(BYTES as u64, Purpose::Event)?)
    }

    fn map(file: SharedFile) -> Result<Interprocess> {
        const { assert!(size_of::<Page>() <= BYTES) };
        if file.bytes() < BYTES as u64 {
            return Err(Error::InvalidHandle);
        }
        // SAFETY: a fresh mapping of a file that cannot shrink, at an address of the system's choice.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_fd().as_raw_fd(),
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(Error::MapFailed);
        }
        let page = page as *const Page;
        Ok(Interprocess { file, page })
    }

    /// `cuIpcGetEventHandle`.
    pub fn handle(&self) -> [u8; 64] {
        self.file.ticket([0; 3]).to_bytes(Purpose::Event)
    }

    /// `cuIpcOpenEventHandle`: 400 for what is no handle, or leads to nothing any more; 201 in the process that it comes
    /// from.
    pub fn open(handle: &[u8; 64]) -> Result<Interprocess> {
        let ticket = Ticket::from_bytes(handle, Purpose::Event).ok_or(Error::InvalidHandle)?;
        if ticket.is_own() {
            return Err(Error::InvalidContext);
        }
        Interprocess::map(ticket.open(Purpose::Event)?)
    }

    fn page(&self) -> &Page {
        // SAFETY: mapped as long as `self` lives; all its fields are atomics, for which every bit pattern is valid.
        unsafe { &*self.page }
    }

    fn slot(&self, number: u64) -> &Slot {
        &self.page().slots[(number % SLOTS as u64) as usize]
    }

    /// The last recording; 0 before the first one.
    pub fn last(&self) -> u64 {
        self.page().recorded.load(Ordering::Acquire)
    }

    /// A new recording, which this process promises to reach.
    pub fn record(&self) -> u64 {
        let number = self.page().recorded.fetch_add(1, Ordering::AcqRel) + 1;
        // Whoever still waits for the one that was here before: its turn ends first.
        if let Some(before) = number.checked_sub(SLOTS as u64).filter(|before| *before > 0) {
            self.wait(before, || false);
        }
        self.slot(number).by.store(own_mark(), Ordering::Release);
        number
    }

    pub fn reach(&self, number: u64) {
        self.slot(number).reached.fetch_max(number, Ordering::Release);
    }

    pub fn is_reached(&self, number: u64) -> bool {
        number == 0 || self.slot(number).reached.load(Ordering::Acquire) >= number
    }

    /// Returns when the recording is reached, the process that should reach it has ended, or `stop` says so.
    pub fn wait(&self, number: u64, stop: impl Fn() -> bool) {
        let mut rounds = 0_u32;
        while !self.is_reached(number) && !stop() {
            rounds = rounds.saturating_add(1);
            match rounds {
                0..200 => std::hint::spin_loop(),
                200..2000 => std::thread::sleep(Duration::from_micros(20)),
                _ => std::thread::sleep(Duration::from_micros(200)),
            }
            if rounds.is_multiple_of(512) && !self.is_under_way(number) {
                self.reach(number);
            }
        }
    }

    /// Whether somebody is left to reach it; what is not is reached.
    pub fn settle(&self, number: u64) -> bool {
        if !self.is_reached(number) && !self.is_under_way(number) {
            self.reach(number);
        }
        self.is_reached(number)
    }

    fn is_under_way(&self, number: u64) -> bool {
        let by = self.slot(number).by.load(Ordering::Acquire);
        // Nobody has signed yet: the moment between two steps of `record`.
        let process = (by >> START_BITS) as u32;
        by == 0 || process == std::process::id() || process_mark(process) == Some(by)
    }
}

impl Drop for Interprocess {
    fn drop(&mut self) {
        // SAFETY: mapped in `map`, and nobody has it any more.
        unsafe { libc::munmap(self.page as *mut _, BYTES) };
    }
}

const START_BITS: u32 = 40;

/// A living process: its number, and when it began, for numbers are used again.
fn process_mark(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Its name, in parentheses, may hold anything. Field 3 is the state, 22 the start, in ticks.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    if matches!(fields.next(), Some("Z" | "X")) {
        return None;
    }
    let start: u64 = fields.nth(18)?.parse().ok()?;
    Some(u64::from(process) << START_BITS | start & ((1 << START_BITS) - 1))
}

fn own_mark() -> u64 {
    static MARK: OnceLock<u64> = OnceLock::new();
    let process = std::process::id();
    *MARK.get_or_init(|| process_mark(process).unwrap_or(u64::from(process) << START_BITS))
}
