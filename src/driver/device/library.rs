//! NVIDIA's math libraries choose among kernels by the device's compute capability, and for one that they know they take
//! machine code without PTX beside it. To cuBLAS, cuRAND and cuFFT, and to nobody else, devices are of a capability that these
//! do not know yet: then they take what has PTX. (Others would be misled: CuPy and Numba compile for what a device says it is.)

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backtrace::{addresses, object_of};

/// What such a library is told.
pub(super) const UNKNOWN: (u32, u32) = (13, 0);

/// Frames of the stack that are looked at: cudart's lie between a library and us.
const FRAMES: usize = 24;

/// Whether the call that the thread is in comes from such a library, by way of whichever cudart.
pub(super) fn asks() -> bool {
    if !is_loaded() {
        return false;
    }
    let mut room = [0; FRAMES];
    let ours = object_of(asks as *const c_void as usize).map(|(base, _)| base);
    let objects = addresses(&mut room).iter().filter_map(|&address| object_of(address));
    let others = objects.filter(|(base, _)| Some(*base) != ours);
    comes_from_one(others.map(|(_, name)| name))
}

/// By the files that the calls come from, innermost first: cudart asks in somebody's name.
fn comes_from_one<'a>(files: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut files = files.map(|path| path.rsplit(|&byte| byte == b'/').next().unwrap_or(path));
    files.find(|name| !name.starts_with(b"libcudart")).is_some_and(is_one)
}

fn is_one(name: &[u8]) -> bool {
    [&b"libcublas"[..], b"libcurand", b"libcufft"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// Whether one of the libraries is loaded. Looks through all objects only when others have been loaded since.
fn is_loaded() -> bool {
    /// Twice the number of objects ever loaded, and 1 more if one of the libraries was among them.
    static KNOWN: AtomicU64 = AtomicU64::new(u64::MAX);

    struct Search {
        known: u64,
        found: u64,
    }

    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: what the loader passes, and what was passed to it.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        if search.found == u64::MAX {
            search.found = info.dlpi_adds << 1;
            if search.known >> 1 == info.dlpi_adds {
                search.found = search.known;
                return 1;
            }
        }
        if info.dlpi_name.is_null() {
            return 0;
        }
        // SAFETY: names end with NUL; the loader keeps them while it calls.
        let path = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        search.found |= u64::from(is_one(name));
        0
    }

    let mut search = Search {
        known: KNOWN.load(Ordering::Relaxed),
        found: u64::MAX,
    };
    // SAFETY: the function takes what is passed here, and does not outlive the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    KNOWN.store(search.found, Ordering::Relaxed);
    search.found != u64::MAX && search.found & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_that_asks_counts_and_not_those_around_it() {
        let from = |files: &[&str]| comes_from_one(files.iter().map(|file| file.as_bytes()));
        assert!(from(&[
            "/wheels/nvidia/cu13/lib/libcublas.so.13",
            "/wheels/cupy/_core/core.so"
        ]));
        assert!(from(&["/lib/libcublasLt.so.13", "/lib/libcublas.so.13", "program"]));
        // By way of the shared cudart.
        assert!(from(&[
            "/lib/libcudart.so.13",
            "/lib/libcudart.so.13",
            "/lib/libcurand.so.10"
        ]));
        assert!(from(&["/lib/libcufft.so.12", "/wheels/cupy/cuda/cufft.so"]));
        assert!(!from(&["/wheels/cupy/_core/core.so", "/lib/libcublas.so.13"]));
        assert!(!from(&["/lib/libcudart.so.13", "program"]));
        assert!(!from(&["/lib/libcusolver.so.12", "program"]));
        assert!(!from(&[]));
    }

    #[test]
    fn this_program_is_none() {
        assert!(!asks());
        assert!(!is_loaded());
        let (base, name) = object_of(asks as *const c_void as usize).unwrap();
        assert!(base > 0 && !name.is_empty());
    }
}
