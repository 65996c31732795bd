//! Where in the program a call to the driver was made: its host backtrace.
//!
//! Calls that launch, allocate or free remember theirs, if somebody wants it, for a report that may come much later. Most come from few
//! places, so that a backtrace is a number: what it stands for is kept once. To take one is to walk the stack; which functions
//! and lines these addresses are is looked up when a report names them.
//!
//! ```text
//! object.rs   which file an address lies in       symbols.rs  addresses → functions and lines
//! python.rs   lines of a Python program           frames.rs   what of all that is the program's own
//! ```

mod frames;
mod object;
mod python;
mod symbols;

use std::backtrace::Backtrace as Captured;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::config;

pub use frames::{Frame, Place};
pub use object::{addresses, object_of};

/// Where a call came from, as a number; equal ones came from the same place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Backtrace(u32);

/// Frames that tell two backtraces apart, and lines of Python that are kept.
const MOST: usize = 64;
/// Backtraces that are kept. A program that calls from more places makes new code again and again, and must not eat up memory so.
const KEPT: usize = 1 << 16;

struct Taken {
    /// Return addresses outside of this library, innermost first.
    addresses: Box<[usize]>,
    /// The same and the rest, which the standard library can look up.
    captured: Captured,
    python: Box<str>,
    frames: OnceLock<Arc<[Frame]>>,
}

struct Table {
    /// By a hash of what tells them apart.
    numbers: BTreeMap<u64, u32>,
    all: Vec<Arc<Taken>>,
}

static TABLE: Mutex<Table> = Mutex::new(Table {
    numbers: BTreeMap::new(),
    all: Vec::new(),
});

/// Whether anybody wants to know.
#[inline]
pub fn wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| config::get().host_backtraces())
}

impl Backtrace {
    /// Nobody has asked, or nothing is known.
    pub const NONE: Backtrace = Backtrace(0);

    /// Of the calling thread, which carries out a call to the driver.
    #[cold]
    pub fn take() -> Backtrace {
        let mut room = [0; MOST + object::OWN];
        Backtrace::of(object::outside(addresses(&mut room)))
    }

    /// Of the calling thread, which a signal has stopped at an instruction.
    pub fn take_at(code: usize) -> Backtrace {
        let mut room = [0; MOST + object::OWN];
        let all = addresses(&mut room);
        let here = all.iter().position(|address| *address == code);
        Backtrace::of(&all[here.unwrap_or(all.len())..])
    }

    fn of(addresses: &[usize]) -> Backtrace {
        let addresses = &addresses[..addresses.len().min(MOST)];
        if addresses.is_empty() {
            return Backtrace::NONE;
        }
        let python = python::lines(MOST).unwrap_or_default();
        let key = hash(addresses, &python);
        let mut table = TABLE.lock();
        let number = table.numbers.get(&key).copied();
        let known = number.and_then(|number| table.all.get(number as usize - 1));
        if let (Some(number), Some(known)) = (number, known)
            && *known.addresses == *addresses
            && *known.python == *python
        {
            return Backtrace(number);
        }
        if table.all.len() >= KEPT {
            return Backtrace::NONE;
        }
        table.all.push(Arc::new(Taken {
            addresses: addresses.into(),
            captured: Captured::force_capture(),
            python: python.into(),
            frames: OnceLock::new(),
        }));
        let number = table.all.len() as u32;
        table.numbers.insert(key, number);
        Backtrace(number)
    }

    /// What it stands for, as far as it is the program's own: the innermost frame first.
    pub fn frames(self) -> Arc<[Frame]> {
        let index = (self.0 as usize).wrapping_sub(1);
        // Not under the lock: files are read.
        let taken = TABLE.lock().all.get(index).cloned();
        let Some(taken) = taken else { return Arc::default() };
        let look_up = || frames::of_program(&symbols::of(&taken.captured, &taken.addresses), &taken.python).into();
        Arc::clone(taken.frames.get_or_init(look_up))
    }
}

/// FNV-1a.
fn hash(addresses: &[usize], python: &str) -> u64 {
    let step = |hash: u64, byte: u64| (hash ^ byte).wrapping_mul(0x100_0000_01b3);
    let hash = addresses
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, address| step(hash, *address as u64));
    python.bytes().fold(hash, |hash, byte| step(hash, byte.into()))
}
