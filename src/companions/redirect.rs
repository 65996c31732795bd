//! NVRTC that is in the process before this library is: a program that is linked with it (`-lnvrtc`), or that opened it first. No
//! companion can take its place then; but its two functions that hand out machine code can become jumps to those two beside them that hand
//! out PTX. They take the same arguments, NVRTC keeps the PTX from which it assembles a cubin in any case, and the driver's load calls
//! take either. So this is what the companion does (`companions/nvrtc.c`), for whoever has the functions' addresses already.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use libloading::os::unix::{Library, RTLD_NOW};

/// Functions, and those that are called in their place.
const PAIRS: [(&CStr, &CStr); 2] = [
    (c"nvrtcGetCUBINSize", c"nvrtcGetPTXSize"),
    (c"nvrtcGetCUBIN", c"nvrtcGetPTX"),
];

/// The opcode of a jump by a distance of four bytes, counted from its end.
const JUMP: u8 = 0xe9;
const LENGTH: usize = 5;

/// A function's first bytes, which become a jump.
struct Jump {
    at: usize,
    bytes: [u8; LENGTH],
}

/// Makes NVRTC, which is loaded by this name, hand out PTX for machine code, for good.
///
/// # Errors
/// Says what stands against it. Then nothing has changed, or only that the size of a cubin is that of its PTX.
pub fn keep_ptx(name: &str) -> Result<(), String> {
    // SAFETY: the loader only looks for a library that is there.
    let library = unsafe { Library::open(Some(name), RTLD_NOW | libc::RTLD_NOLOAD) }.map_err(super::in_words)?;
    let jumps = PAIRS.map(|(from, to)| Jump::between(address(&library, from)?, address(&library, to)?));
    let jumps = jumps.into_iter().collect::<Result<Vec<Jump>, String>>()?;
    jumps.iter().try_for_each(Jump::write)
    // The library is closed as often as it was opened: who unloads it unloads the jumps.
}

/// Where a function of the library begins.
fn address(library: &Library, name: &CStr) -> Result<usize, String> {
    // SAFETY: the address alone is used.
    let symbol = unsafe { library.get::<*const c_void>(name.to_bytes_with_nul()) }.map_err(super::in_words)?;
    Ok(symbol.as_raw_ptr() as usize)
}

/// The object in which an address lies.
fn object(address: usize) -> Option<usize> {
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr takes any address and writes to `info` alone.
    let found = unsafe { libc::dladdr(address as *const c_void, &mut info) } != 0;
    found.then_some(info.dli_fbase as usize)
}

impl Jump {
    fn between(from: usize, to: usize) -> Result<Jump, String> {
        if object(from).is_none() || object(from) != object(to) {
            return Err("its functions are not its own".into());
        }
        let distance = to.wrapping_sub(from.wrapping_add(LENGTH)) as isize;
        let distance = i32::try_from(distance).map_err(|_| "its functions lie far apart")?;
        // One write of a word, which others see whole or not at all: they may be about to call.
        if !from.is_multiple_of(align_of::<AtomicU64>()) {
            return Err("its functions are not aligned".into());
        }
        let mut bytes = [JUMP; LENGTH];
        bytes[1..].copy_from_slice(&distance.to_le_bytes());
        Ok(Jump { at: from, bytes })
    }

    /// Puts it in the place of the function's first instructions.
    fn write(&self) -> Result<(), String> {
        // SAFETY: sysconf only answers.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_err(|error| error.to_string())?;
        let start = self.at / page * page;
        let protect = |rights: i32| {
            // SAFETY: the page has code of the library alone, which stays executable all the while.
            match unsafe { libc::mprotect(start as *mut c_void, page, rights) } {
                0 => Ok(()),
                _ => Err(format!("its code: {}", std::io::Error::last_os_error())),
            }
        };
        protect(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC)?;
        // SAFETY: the word is aligned and lies in a page that may be written now. It is this function's: compilers align functions,
        // so that what the jump would cover beyond a very short one is padding. The word's other bytes stay as they are.
        let word = unsafe { &*(self.at as *const AtomicU64) };
        let mut bytes = word.load(Ordering::Relaxed).to_le_bytes();
        bytes[..LENGTH].copy_from_slice(&self.bytes);
        word.store(u64::from_le_bytes(bytes), Ordering::SeqCst);
        protect(libc::PROT_READ | libc::PROT_EXEC)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_is_relative_to_its_end() {
        let code = a_jump_is_relative_to_its_end as fn() as usize;
        let start = code / 16 * 16;
        let jump = Jump::between(start, start + 0x1000).unwrap();
        assert_eq!(jump.bytes, [0xe9, 0xfb, 0x0f, 0, 0]);
        let jump = Jump::between(start, start - 0x20).unwrap();
        assert_eq!(jump.bytes, [0xe9, 0xdb, 0xff, 0xff, 0xff]);
        assert!(Jump::between(start + 1, start).is_err());
        assert!(Jump::between(start, &raw const start as usize).is_err());
    }

    #[test]
    fn what_is_no_nvrtc_is_left_alone() {
        assert!(keep_ptx("libc.so.6").is_err());
        assert!(keep_ptx("libnvrtc.so.13").is_err());
    }
}
