//! Stream memory operations: a stream writes a word, or waits for one.
//!
//! Anybody may write the word that a stream waits for: a kernel, the program, another process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::driver::context::Shared;
use crate::driver::process::waits;
use crate::driver::{Error, Result};
use crate::memory::shadow;
use crate::memory::{self, AddressSpace};
use crate::sanitizer::between::{self, Class, Operation};

/// One operation; `bytes` is 4 or 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOperation {
    /// `cuStreamWriteValue32`, `…64`.
    Write { address: u64, bytes: u32, value: u64 },
    /// `cuStreamWaitValue32`, `…64`: until the value in memory is ≥ (0, cyclically), equal (1), has a bit in common (2) or a
    /// bit that is clear in both (3, nor). The highest flag asks for a flush of remote writes: there are none.
    Wait {
        address: u64,
        bytes: u32,
        value: u64,
        flags: u32,
    },
    /// Writes of operations in a stream are seen by whatever follows: barriers and flushes have nothing to do.
    Barrier,
}

/// An operation on memory that was found.
#[derive(Clone, Copy)]
pub(in crate::driver) enum Checked {
    Write { word: Word, value: u64 },
    Wait { word: Word, value: u64, how: u32 },
    Barrier,
}

impl MemoryOperation {
    /// What of it an executable graph cannot change: the operation and how many bytes it has.
    pub(in crate::driver) fn kind(&self) -> (u32, u32) {
        match self {
            MemoryOperation::Write { bytes, .. } => (0, *bytes),
            MemoryOperation::Wait { bytes, .. } => (1, *bytes),
            MemoryOperation::Barrier => (2, 0),
        }
    }

    /// # Errors
    /// 1 for memory that is not the driver's, or not aligned, and for flags that mean nothing.
    pub(in crate::driver) fn check(self) -> Result<Checked> {
        Ok(match self {
            MemoryOperation::Write { address, bytes, value } => Checked::Write {
                word: Word::new(address, bytes)?,
                value,
            },
            MemoryOperation::Wait {
                address,
                bytes,
                value,
                flags,
            } => {
                let how = flags & !(1 << 30);
                if how > 3 {
                    return Err(Error::InvalidValue);
                }
                let word = Word::new(address, bytes)?;
                Checked::Wait { word, value, how }
            }
            MemoryOperation::Barrier => Checked::Barrier,
        })
    }
}

impl Checked {
    pub fn waits(self) -> bool {
        matches!(self, Checked::Wait { .. })
    }

    /// Waits end when the context has failed.
    pub fn run(self, shared: &Shared, order: Option<&Arc<Operation>>) {
        match self {
            Checked::Barrier => {}
            Checked::Write { word, value } => {
                let bytes = if word.wide { 8 } else { 4 };
                word.store(value);
                between::touches(order, Class::StrongWrite, word.address, bytes);
            }
            Checked::Wait { word, value, how } => {
                let mut rounds = 0_u32;
                let mut told = None;
                while !word.meets(value, how) && !shared.has_failed() && !memory::was_gone() {
                    rounds = rounds.saturating_add(1);
                    match rounds {
                        0..200 => std::hint::spin_loop(),
                        _ => {
                            // Who looks for deadlocks knows of it, and may end it.
                            told = told.or_else(|| waits::stream_waits(word.address, value, how));
                            if told.as_ref().is_some_and(waits::Wait::is_given_up) {
                                shared.fail(
                                    Error::LaunchFailed,
                                    "cuStreamWaitValue: nobody is left to write the word",
                                );
                                return;
                            }
                            std::thread::sleep(Duration::from_micros(20));
                        }
                    }
                }
            }
        }
    }
}

/// A word of memory that streams write to or wait for.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Word {
    address: u64,
    wide: bool,
}

impl Word {
    fn new(address: u64, bytes: u32) -> Result<Word> {
        let space = AddressSpace::get();
        let known = match space.find(address) {
            Some(allocation) => allocation.contains(address, bytes.into()),
            None => space.host_range_contains(address, bytes.into(), 0),
        };
        if !known || !matches!(bytes, 4 | 8) || !address.is_multiple_of(bytes.into()) {
            return Err(Error::InvalidValue);
        }
        Ok(Word {
            address,
            wide: bytes == 8,
        })
    }

    fn store(self, value: u64) {
        shadow::defined(self.address, if self.wide { 8 } else { 4 });
        // SAFETY: the word was found in memory of ours, aligned; memory is freed only after what is queued has been done.
        unsafe {
            match self.wide {
                true => (*(self.address as *const AtomicU64)).store(value, Ordering::SeqCst),
                false => (*(self.address as *const AtomicU32)).store(value as u32, Ordering::SeqCst),
            }
        }
    }

    fn meets(self, value: u64, how: u32) -> bool {
        // SAFETY: the word was found in memory of ours, aligned; memory is freed only after what is queued has been
        // done.
        let (now, value, ahead) = unsafe {
            match self.wide {
                true => {
                    let now = (*(self.address as *const AtomicU64)).load(Ordering::SeqCst);
                    (now, value, now.wrapping_sub(value) as i64 >= 0)
                }
                false => {
                    let now = (*(self.address as *const AtomicU32)).load(Ordering::SeqCst);
                    let value = value as u32;
                    (now.into(), value.into(), now.wrapping_sub(value) as i32 >= 0)
                }
            }
        };
        let mask = if self.wide { u64::MAX } else { u32::MAX.into() };
        match how {
            0 => ahead,
            1 => now == value,
            2 => now & value != 0,
            _ => !(now | value) & mask != 0,
        }
    }
}
