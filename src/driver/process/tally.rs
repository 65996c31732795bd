//! What the program asked of the driver: calls with their times, failures, copies. Kept only if somebody asks, for the summary
//! of `margay run --summary`.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::memory::caller;

/// Where bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    ToDevice,
    FromDevice,
    OnDevice,
    OnHost,
    /// `cuMemset*`.
    Set,
}

/// How often something happened, with the time or the bytes that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub times: u64,
    pub bytes: u64,
    pub time: Duration,
}

#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By the names of the manual; of nested calls the outermost.
    pub calls: HashMap<&'static str, Count>,
    /// Calls that failed, with what they answered.
    pub failed: BTreeMap<(&'static str, u32), u64>,
    pub copies: BTreeMap<Way, Count>,
}

static WANTED: AtomicBool = AtomicBool::new(false);
static TALLY: Mutex<Option<Tally>> = Mutex::new(None);

/// From now on everything is noted.
pub fn keep() {
    WANTED.store(true, Ordering::Relaxed);
}

fn with(note: impl FnOnce(&mut Tally)) {
    note(TALLY.lock().get_or_insert_default());
}

/// When a call begins, for [`call_ends`]; nothing if nobody wants to know.
#[inline]
pub fn call_begins() -> Option<Instant> {
    WANTED.load(Ordering::Relaxed).then(Instant::now)
}

#[inline]
pub fn call_ends(name: &'static str, began: Option<Instant>) {
    if let Some(began) = began {
        note_call(name, began.elapsed());
    }
}

#[cold]
fn note_call(name: &'static str, time: Duration) {
    with(|tally| {
        let count = tally.calls.entry(caller::plain(name)).or_default();
        count.times += 1;
        count.time += time;
    });
}

/// A call has failed with a `CUresult`.
pub fn call_failed(name: &'static str, result: u32) {
    if WANTED.load(Ordering::Relaxed) {
        with(|tally| *tally.failed.entry((caller::plain(name), result)).or_default() += 1);
    }
}

/// Bytes have been copied or set.
#[inline]
pub fn copied(way: Way, bytes: u64) {
    if WANTED.load(Ordering::Relaxed) {
        note_copy(way, bytes);
    }
}

#[cold]
fn note_copy(way: Way, bytes: u64) {
    with(|tally| {
        let count = tally.copies.entry(way).or_default();
        count.times += 1;
        count.bytes += bytes;
    });
}

/// What has been noted so far.
pub fn noted() -> Tally {
    let mut tally = TALLY.lock().clone().unwrap_or_default();
    // What the runtime asks by way of private tables is nobody's business: it expects some of that to fail.
    tally.calls.retain(|name, _| name.starts_with("cu"));
    tally.failed.retain(|(name, _), _| name.starts_with("cu"));
    tally
}
