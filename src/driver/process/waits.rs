//! Who waits for what, and who may still do something: books for [`super::watchdog`], kept only where synchronisation is checked,
//! but for how many host functions run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::config;
use crate::sanitizer::sync::Checker;

static GRIDS: Mutex<Vec<Weak<Checker>>> = Mutex::new(Vec::new());
/// By thread of the system, the number of the stream that it waits for.
static HOST: Mutex<BTreeMap<i64, u64>> = Mutex::new(BTreeMap::new());
static STREAMS: Mutex<BTreeMap<u64, Word>> = Mutex::new(BTreeMap::new());
static HOST_FUNCTIONS: AtomicUsize = AtomicUsize::new(0);

/// What a stream waits for (`cuStreamWaitValue`).
#[derive(Clone)]
pub struct Word {
    pub address: u64,
    pub value: u64,
    pub how: u32,
    given_up: Arc<AtomicBool>,
}

impl Word {
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}

fn are_kept() -> bool {
    config::get().check.sync
}

pub fn grid_begins(checker: &Arc<Checker>) {
    let mut grids = GRIDS.lock();
    grids.retain(|grid| grid.strong_count() > 0);
    grids.push(Arc::downgrade(checker));
}

/// Grids that run.
pub fn grids() -> Vec<Arc<Checker>> {
    GRIDS.lock().iter().filter_map(Weak::upgrade).collect()
}

/// Threads of the host that wait, with the number of the stream for which each does.
pub fn host() -> BTreeMap<i64, u64> {
    HOST.lock().clone()
}

/// Words for which streams wait.
pub fn words() -> Vec<Word> {
    STREAMS.lock().values().cloned().collect()
}

pub fn host_functions() -> usize {
    HOST_FUNCTIONS.load(Ordering::Relaxed)
}

/// The calling thread waits until this is dropped, and then perhaps goes on with another wait.
pub struct HostWaits(i64, Option<u64>);

pub fn host_waits(stream: u64) -> Option<HostWaits> {
    are_kept().then(|| {
        // SAFETY: the call has no arguments, and cannot fail.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        HostWaits(thread, HOST.lock().insert(thread, stream))
    })
}

impl Drop for HostWaits {
    fn drop(&mut self) {
        let mut host = HOST.lock();
        match self.1 {
            Some(stream) => host.insert(self.0, stream),
            None => host.remove(&self.0),
        };
    }
}

/// A function of the program's runs on a stream's thread until this is dropped.
pub struct HostFunction;

pub fn host_function_runs() -> HostFunction {
    HOST_FUNCTIONS.fetch_add(1, Ordering::Relaxed);
    HostFunction
}

impl Drop for HostFunction {
    fn drop(&mut self) {
        HOST_FUNCTIONS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream waits for a word until this is dropped.
pub struct Wait {
    number: u64,
    given_up: Arc<AtomicBool>,
}

pub fn stream_waits(address: u64, value: u64, how: u32) -> Option<Wait> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    are_kept().then(|| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let given_up = Arc::new(AtomicBool::new(false));
        let word = Word {
            address,
            value,
            how,
            given_up: Arc::clone(&given_up),
        };
        STREAMS.lock().insert(number, word);
        Wait { number, given_up }
    })
}

impl Wait {
    /// Nobody is left who could write the word.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        STREAMS.lock().remove(&self.number);
    }
}
