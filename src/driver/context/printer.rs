//! What kernels print, until the host may see it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

unsafe extern "C" {
    // C's own stream: output keeps its order with that of the program only if it goes the same way.
    static stdout: *mut libc::FILE;
}

pub(in crate::driver) const DEFAULT_FIFO: u64 = 1 << 20;

/// Output of `printf` in kernels, kept until one of the points at which the CUDA programming guide ("Formatted Output")
/// lets the host see it: launches, synchronisation, blocking copies, loading and unloading, the context's end.
pub(in crate::driver) struct Printer {
    text: Mutex<Vec<u8>>,
    any: AtomicBool,
    /// `CU_LIMIT_PRINTF_FIFO_SIZE`. When it is full, text goes out early instead of getting lost.
    pub capacity: AtomicU64,
}

impl Printer {
    pub fn new() -> Printer {
        Printer {
            text: Mutex::new(Vec::new()),
            any: AtomicBool::new(false),
            capacity: AtomicU64::new(DEFAULT_FIFO),
        }
    }

    pub fn print(&self, bytes: &[u8]) {
        let mut text = self.text.lock();
        text.extend_from_slice(bytes);
        if text.len() as u64 > self.capacity.load(Ordering::Relaxed) {
            write(&mut text);
        } else {
            self.any.store(true, Ordering::Release);
        }
    }

    /// Lets the host see what has been printed so far.
    pub fn flush(&self) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut text = self.text.lock();
        self.any.store(false, Ordering::Relaxed);
        write(&mut text);
    }
}

fn write(text: &mut Vec<u8>) {
    if text.is_empty() {
        return;
    }
    crate::trace::status_line::clear();
    // SAFETY: `stdout` is C's, initialised before any code of ours runs; the bytes live through the call.
    unsafe {
        let stream = stdout;
        libc::fwrite(text.as_ptr().cast(), 1, text.len(), stream);
        libc::fflush(stream);
    }
    text.clear();
}
