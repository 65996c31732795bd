//! Writing without the signals that end a process: a pipe that nobody reads (SIGPIPE), a file that may not grow further
//! (SIGXFSZ). The program that is being served has not written anything itself; for it, an error that we see is enough.

use std::ptr;

/// Signals of this thread are blocked until this is dropped.
pub struct Blocked {
    before: libc::sigset_t,
    /// Of those that writing raises, the ones that were not waiting before: they go with the write that raised them.
    ours: Option<libc::sigset_t>,
}

impl Blocked {
    /// All signals that can be blocked; what comes meanwhile comes afterwards.
    pub fn all() -> Blocked {
        // SAFETY: all-zero sets are fit to be filled, and the mask concerns this thread alone.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            Blocked {
                before: block(&all),
                ours: None,
            }
        }
    }

    fn of_writing() -> Blocked {
        // SAFETY: all-zero sets are fit to be filled.
        unsafe {
            let (mut set, mut pending): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&mut set);
            libc::sigpending(&mut pending);
            for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
                if libc::sigismember(&pending, signal) == 0 {
                    libc::sigaddset(&mut set, signal);
                }
            }
            Blocked {
                before: block(&set),
                ours: Some(set),
            }
        }
    }
}

fn block(set: &libc::sigset_t) -> libc::sigset_t {
    // SAFETY: all-zero is fit to be filled; the mask concerns this thread alone.
    unsafe {
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, set, &mut before);
        before
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: both sets are whole; both signals are raised on the thread that writes, so that what waits here is its own.
        unsafe {
            if let Some(ours) = &self.ours {
                let now: libc::timespec = std::mem::zeroed();
                while libc::sigtimedwait(ours, ptr::null_mut(), &now) > 0 {}
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut());
        }
    }
}

/// Runs `work`, in which writes fail rather than end the process.
pub fn quietly<R>(work: impl FnOnce() -> R) -> R {
    let _blocked = Blocked::of_writing();
    work()
}
