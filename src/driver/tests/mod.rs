//! The driver's objects by their rules; kernels are stand-ins.

mod contexts;
mod copies;
mod launches;
mod memory;
mod modules;
mod streams;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::*;

/// A context of the test's own, current on this thread, destroyed at the end.
struct Own(Arc<Context>);

impl Own {
    fn new() -> Own {
        init(0).unwrap();
        Own(Context::create(Device::get(0).unwrap(), 0).unwrap())
    }
    /// Makes it current on another thread, too.
    fn enter(&self) {
        Context::set_current(Some(Arc::clone(&self.0)));
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.0.destroy().unwrap();
    }
}

/// What host functions of a test leave behind: each is `log(&entry)` with an [`Entry`] of its own.
#[derive(Default)]
struct Log {
    text: parking_lot::Mutex<Vec<u32>>,
}

struct Entry {
    log: Arc<Log>,
    number: u32,
    delay: Duration,
    gate: Option<Arc<Gate>>,
}

/// A door that a host function stands at until the test opens it.
#[derive(Default)]
struct Gate {
    open: AtomicBool,
    arrived: AtomicU32,
}

impl Gate {
    fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }
    fn pass(&self) {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        let began = Instant::now();
        while !self.open.load(Ordering::SeqCst) {
            assert!(began.elapsed() < Duration::from_secs(60), "nobody opens the gate");
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    fn wait_arrived(&self, count: u32) {
        let began = Instant::now();
        while self.arrived.load(Ordering::SeqCst) < count {
            assert!(began.elapsed() < Duration::from_secs(60), "nobody comes to the gate");
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

extern "C" fn note(entry: usize) {
    // SAFETY: `Log::queue` leaks one box for each call of this function.
    let entry = unsafe { Box::from_raw(entry as *mut Entry) };
    if let Some(gate) = &entry.gate {
        gate.pass();
    }
    if !entry.delay.is_zero() {
        std::thread::sleep(entry.delay);
    }
    entry.log.text.lock().push(entry.number);
}

impl Log {
    fn queue(self: &Arc<Log>, stream: &Arc<Stream>, number: u32, delay: u64, gate: Option<&Arc<Gate>>) {
        let entry = Box::new(Entry {
            log: Arc::clone(self),
            number,
            delay: Duration::from_micros(delay),
            gate: gate.cloned(),
        });
        stream.host_function(note, Box::into_raw(entry) as usize, 0).unwrap();
    }
    fn read(&self) -> Vec<u32> {
        self.text.lock().clone()
    }
}

/// An allocation that a test watches: its address may be given to another test once it is freed.
struct Watched {
    address: u64,
    id: u64,
}

impl Watched {
    fn new(address: u64) -> Watched {
        let id = pointer::pointer(address).unwrap().buffer_id;
        Watched { address, id }
    }
    fn is_gone(&self) -> bool {
        pointer::pointer(self.address).is_none_or(|now| now.buffer_id != self.id)
    }
}
