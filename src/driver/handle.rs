//! Handles: numbers given to programs, and the tables that say what they stand for.
//!
//! A handle looks like a pointer (programs print them, sort them, tag their low bits) and is an address in a region that
//! is reserved for handles and never accessible: it collides with nothing, and following it is a clean crash of the
//! program that does so. Numbers are not used twice, so a stale handle is found out as long as the process lives.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;

/// What programs hold in a `CUcontext`, `CUstream`, `CUfunction`, …: looked up, never followed. 0 is no object.
pub type Handle = usize;

/// Bytes from one handle to the next: programs may expect the low bits of a pointer to be free.
const STRIDE: usize = 16;
const SPACE: usize = 64 << 30;

/// A handle that was never given before.
pub(super) fn fresh() -> Handle {
    static BASE: OnceLock<usize> = OnceLock::new();
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let base = *BASE.get_or_init(|| {
        // SAFETY: a fresh private mapping at an address of the system's choice.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SPACE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            // No address space to spare: numbers that no user-space address has will do as well.
            0x4d00_0000_0000_0000
        } else {
            address as usize
        }
    });
    base + NEXT.fetch_add(1, Ordering::Relaxed) * STRIDE
}

/// Handles differ in few bits; one multiplication spreads them over a word.
#[derive(Default)]
pub(super) struct HandleHasher(u64);

impl Hasher for HandleHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

/// The live objects of one kind.
pub(super) struct Registry<T> {
    map: OnceLock<DashMap<Handle, Arc<T>, BuildHasherDefault<HandleHasher>>>,
}

impl<T> Registry<T> {
    pub const fn new() -> Registry<T> {
        Registry { map: OnceLock::new() }
    }

    fn map(&self) -> &DashMap<Handle, Arc<T>, BuildHasherDefault<HandleHasher>> {
        self.map.get_or_init(DashMap::default)
    }

    pub fn insert(&self, handle: Handle, object: &Arc<T>) {
        self.map().insert(handle, Arc::clone(object));
    }

    pub fn get(&self, handle: Handle) -> Option<Arc<T>> {
        self.map().get(&handle).map(|entry| Arc::clone(&entry))
    }

    pub fn remove(&self, handle: Handle) -> Option<Arc<T>> {
        self.map().remove(&handle).map(|entry| entry.1)
    }

    pub fn each(&self, mut f: impl FnMut(&T)) {
        self.map().iter().for_each(|entry| f(entry.value()));
    }

    pub fn collect(&self) -> Vec<Arc<T>> {
        self.map().iter().map(|entry| Arc::clone(entry.value())).collect()
    }

    pub fn find(&self, which: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let found = self.map().iter().find(|entry| which(entry.value()));
        found.map(|entry| Arc::clone(entry.value()))
    }

    /// Takes out what `which` says.
    pub fn take(&self, which: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let handles: Vec<Handle> = {
            let matching = self.map().iter().filter(|entry| which(entry.value()));
            matching.map(|entry| *entry.key()).collect()
        };
        handles.into_iter().filter_map(|handle| self.remove(handle)).collect()
    }
}
