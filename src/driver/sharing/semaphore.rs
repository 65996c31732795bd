//! Semaphores that others have made, by descriptor (`cuImportExternalSemaphore`).
//!
//! What stands behind one is an object of the system. A binary semaphore (an opaque descriptor) is an eventfd: a signal
//! adds 1 to it, a wait takes what it holds. A timeline is a file in memory whose first eight bytes are the value.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::driver::context::Shared;
use crate::driver::external::{name_of, seal};
use crate::driver::handle::{self, Registry};
use crate::driver::{Context, Error, Handle, Result};
use crate::memory::PAGE;

pub struct Semaphore {
    handle: Handle,
    owner: u64,
    object: Object,
}

enum Object {
    Binary(OwnedFd),
    Timeline(Page),
}

/// A mapped page, whose first word is the value.
struct Page(*const AtomicU64);

// SAFETY: an atomic, mapped as long as the page lives.
unsafe impl Send for Page {}
// SAFETY: threads that share the page load and store one atomic, and do nothing else with the pointer.
unsafe impl Sync for Page {}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: mapped in `import`, and nobody has it any more.
        unsafe { libc::munmap(self.0 as *mut _, PAGE as usize) };
    }
}

static SEMAPHORES: Registry<Semaphore> = Registry::new();

/// What is done to a semaphore, in a stream.
#[derive(Clone)]
pub struct SemaphoreStep {
    pub semaphore: Arc<Semaphore>,
    /// Of a timeline.
    pub value: u64,
}

impl Semaphore {
    /// Takes over a descriptor (not if it fails).
    ///
    /// # Errors
    /// 400 for what is not open, 801 for what is not an object of this kind.
    pub fn import(descriptor: RawFd, timeline: bool) -> Result<Arc<Semaphore>> {
        let context = Context::usable()?;
        let name = name_of(descriptor)?;
        let fits = match timeline {
            false => name.contains("[eventfd]"),
            true => name.starts_with("/memfd:") && seal(descriptor),
        };
        // SAFETY: the descriptor is open; only asks where its end is.
        if !fits || timeline && unsafe { libc::lseek(descriptor, 0, libc::SEEK_END) } < 8 {
            let wanted = if timeline {
                "a file in memory whose size is fixed"
            } else {
                "an eventfd"
            };
            tracing::warn!("cuImportExternalSemaphore: {name}: not {wanted}");
            return Err(Error::NotSupported);
        }
        // Before the descriptor is ours, for it stays the caller's if this fails.
        let page = match timeline {
            false => None,
            // SAFETY: a fresh mapping of a file that cannot shrink.
            true => Some(unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    PAGE as usize,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED,
                    descriptor,
                    0,
                )
            }),
        };
        if page == Some(libc::MAP_FAILED) {
            return Err(Error::OperatingSystem);
        }
        // SAFETY: it is open, and the program gives it away.
        let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let semaphore = Arc::new(Semaphore {
            handle: handle::fresh(),
            owner: context.id(),
            object: match page {
                None => Object::Binary(file),
                Some(page) => Object::Timeline(Page(page as *const AtomicU64)),
            },
        });
        SEMAPHORES.insert(semaphore.handle, &semaphore);
        Ok(semaphore)
    }

    /// 400 for what is no semaphore.
    pub fn from_handle(handle: Handle) -> Result<Arc<Semaphore>> {
        SEMAPHORES.get(handle).ok_or(Error::InvalidHandle)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// `cuDestroyExternalSemaphore`: what was queued with it is done.
    pub fn destroy(&self) -> Result<()> {
        SEMAPHORES.remove(self.handle).map(drop).ok_or(Error::InvalidHandle)
    }

    fn signal(&self, value: u64) {
        match &self.object {
            Object::Binary(file) => {
                let one = 1_u64.to_ne_bytes();
                // SAFETY: eight bytes, as an eventfd wants them. It is full only after 2^64 signals.
                unsafe { libc::write(file.as_raw_fd(), one.as_ptr().cast(), one.len()) };
            }
            // SAFETY: mapped as long as the page lives.
            Object::Timeline(page) => unsafe { (*page.0).store(value, Ordering::SeqCst) },
        }
    }

    /// Whether it is there; a binary one is taken.
    fn take(&self, value: u64) -> bool {
        match &self.object {
            Object::Binary(file) => take_event(file.as_raw_fd()),
            // SAFETY: `self` has the page, and it is mapped until that is dropped.
            Object::Timeline(page) => unsafe { (*page.0).load(Ordering::SeqCst) >= value },
        }
    }

    fn wait(&self, value: u64, shared: &Shared) {
        let mut rounds = 0_u32;
        while !self.take(value) && !shared.has_failed() {
            rounds = rounds.saturating_add(1);
            match (&self.object, rounds) {
                (Object::Binary(file), _) => _ = look(file.as_raw_fd(), 20),
                (Object::Timeline(_), 0..200) => std::hint::spin_loop(),
                (Object::Timeline(_), _) => std::thread::sleep(Duration::from_micros(50)),
            }
        }
    }
}

/// Returns when there is something to read, or after so many milliseconds.
fn look(descriptor: RawFd, milliseconds: i32) -> bool {
    let mut poll = libc::pollfd {
        fd: descriptor,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one record, which lives through the call.
    unsafe { libc::poll(&mut poll, 1, milliseconds) > 0 }
}

/// Reads an eventfd, without waiting.
fn take_event(descriptor: RawFd) -> bool {
    let mut value = [0_u8; 8];
    let part = libc::iovec {
        iov_base: value.as_mut_ptr().cast(),
        iov_len: value.len(),
    };
    // SAFETY: eight bytes, as an eventfd has them.
    if unsafe { libc::preadv2(descriptor, &part, 1, -1, libc::RWF_NOWAIT) } == 8 {
        return true;
    }
    // Kernels before 5.8 do not know that flag for eventfds: somebody else may be quicker, and this waits for the next.
    let unknown = matches!(
        std::io::Error::last_os_error().raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ESPIPE | libc::ENOSYS)
    );
    // SAFETY: `value` has room for the eight bytes that a read of an eventfd gives.
    unknown && look(descriptor, 0) && unsafe { libc::read(descriptor, value.as_mut_ptr().cast(), 8) } == 8
}

/// Signals, or waits, one after the other.
pub(in crate::driver) fn run(steps: &[SemaphoreStep], signal: bool, shared: &Shared) {
    for step in steps {
        if signal {
            step.semaphore.signal(step.value);
        } else {
            step.semaphore.wait(step.value, shared);
        }
    }
}

/// A context ends, and what it has imported.
pub(in crate::driver) fn forget_all_of(owner: u64) {
    SEMAPHORES.take(|semaphore| semaphore.owner == owner);
}
