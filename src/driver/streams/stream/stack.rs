//! How much stack a thread has left.

use std::cell::Cell;

use crate::driver::pump;

/// Stack that running a kernel may take.
const ROOM: usize = 512 << 10;

/// Whether this thread is to run kernels: it has stack enough (programs make threads with very little), or nobody else will.
pub(super) fn has_room() -> bool {
    thread_local! {
        /// The lowest address of this thread's stack; 0 = not known yet.
        static LOWEST: Cell<usize> = const { Cell::new(0) };
    }
    let here = 0_u8;
    let lowest = LOWEST.try_with(|lowest| {
        if lowest.get() == 0 {
            lowest.set(lowest_of_stack().unwrap_or(usize::MAX));
        }
        lowest.get()
    });
    (&raw const here as usize).checked_sub(lowest.unwrap_or(usize::MAX)) >= Some(ROOM) || pump::nobody()
}

fn lowest_of_stack() -> Option<usize> {
    // SAFETY: all-zero is fit to be filled; the attributes are destroyed if they were made.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return None;
        }
        let (mut start, mut bytes) = (std::ptr::null_mut(), 0);
        let known = libc::pthread_attr_getstack(&attributes, &mut start, &mut bytes) == 0;
        libc::pthread_attr_destroy(&mut attributes);
        known.then_some(start as usize)
    }
}
