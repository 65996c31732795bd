//! Races between kernels and what the host does by itself are to be found whoever is faster: what a call has asked for is over when it
//! returns, as far as it needs nobody else for that ([`between::has_begun`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::driver::context;
use crate::driver::process::waits;
use crate::memory::{Kind, life::Life};
use crate::sanitizer::between;

/// There is, or was, memory that the host has in common with kernels.
static ANY: AtomicBool = AtomicBool::new(false);

/// So long nothing may run: then what is left waits for the host.
const QUIET: Duration = Duration::from_millis(100);
/// As long as kernels may run that perhaps wait for the host, or for kernels that are still to be launched.
const PERHAPS: Duration = Duration::from_secs(1);
/// As long as others may run.
const LONGEST: Duration = Duration::from_secs(60);

pub(super) fn memory(life: &Life) {
    if life.kind.is_some_and(Kind::is_shared_with_host) {
        ANY.store(true, Ordering::Relaxed);
    }
}

/// After a call: waits for what it has asked for. Not for host functions, which may wait for the caller.
#[inline]
pub fn settle() {
    if let Some(stream) = between::has_begun()
        && ANY.load(Ordering::Relaxed)
    {
        wait(stream);
    }
}

#[cold]
fn wait(stream: u64) {
    let Some(stream) = context::all_streams().into_iter().find(|other| other.id() == stream) else {
        return;
    };
    let began = Instant::now();
    let mut ran = began;
    while stream.is_busy() {
        let now = Instant::now();
        let (running, perhaps_wait) = between::running();
        if running > 0 {
            ran = now;
        }
        let limit = if perhaps_wait == 0 { LONGEST } else { PERHAPS };
        if waits::host_functions() > 0 || now - ran > QUIET || now - began > limit {
            return;
        }
        std::thread::sleep(Duration::from_micros(20));
    }
}
