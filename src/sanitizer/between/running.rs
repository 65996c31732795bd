//! What runs, and what a thread has just asked for: who looks at what the host does by itself has calls wait for it, so that it is found
//! whoever is faster.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static ON: AtomicBool = AtomicBool::new(false);
/// Kernels that run, and those of them that have come to memory in a way in which they may wait for others.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
static MAY_WAIT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The stream in which this thread has asked for an operation; 0: none.
    static BEGUN: Cell<u64> = const { Cell::new(0) };
}

/// Somebody looks from now on.
pub(super) fn start() {
    ON.store(true, Ordering::Release);
}

#[inline]
pub(super) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

pub(super) fn begun(stream: u64) {
    if is_on() {
        BEGUN.set(stream);
    }
}

/// The stream in which this thread has asked for something since it was asked this.
#[inline]
pub fn has_begun() -> Option<u64> {
    match is_on() {
        true => Some(BEGUN.replace(0)).filter(|stream| *stream != 0),
        false => None,
    }
}

/// How many kernels run, and how many of them may wait for somebody.
pub fn running() -> (usize, usize) {
    (RUNNING.load(Ordering::Relaxed), MAY_WAIT.load(Ordering::Relaxed))
}

/// A kernel runs as long as it has one.
pub(super) struct Running {
    may_wait: AtomicBool,
}

impl Running {
    pub fn begin() -> Running {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Running {
            may_wait: AtomicBool::new(false),
        }
    }

    /// It has a strong access.
    pub fn may_wait(&self) {
        if !self.may_wait.load(Ordering::Relaxed) && !self.may_wait.swap(true, Ordering::Relaxed) {
            MAY_WAIT.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
        if self.may_wait.load(Ordering::Relaxed) {
            MAY_WAIT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
