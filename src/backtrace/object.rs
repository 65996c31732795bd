//! Addresses of the process's code, and the files that they lie in.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::sync::OnceLock;

/// Frames of this library's own that may lie between a call and whoever asks where it came from.
pub(super) const OWN: usize = 64;

unsafe extern "C" {
    /// execinfo.h: return addresses of the calls that the thread is in, innermost first.
    fn backtrace(addresses: *mut *mut c_void, size: c_int) -> c_int;
}

/// Return addresses of the calls that the thread is in, innermost first, as far as there is room.
pub fn addresses(room: &mut [usize]) -> &[usize] {
    let size = c_int::try_from(room.len()).unwrap_or(c_int::MAX);
    // SAFETY: there is room for that many addresses, which are as wide as `usize`.
    let found = unsafe { backtrace(room.as_mut_ptr().cast(), size) };
    &room[..(found.max(0) as usize).min(room.len())]
}

/// Without those of this library, through which the call goes.
pub(super) fn outside(addresses: &[usize]) -> &[usize] {
    let own = own();
    let inside = addresses.iter().take_while(|address| own.contains(address)).count();
    &addresses[inside..]
}

/// The object that an address lies in: where it begins, and its file's name.
pub fn object_of(address: usize) -> Option<(usize, &'static [u8])> {
    let info = look_up(address)?;
    // SAFETY: names end with NUL and live as long as their object, which a call in progress keeps loaded: longer than the
    // look at them.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some((info.dli_fbase as usize, name.to_bytes()))
}

/// The function that an address lies in, if its object exports it.
pub(super) fn exported(address: usize) -> Option<String> {
    let info = look_up(address)?;
    if info.dli_sname.is_null() {
        return None;
    }
    // SAFETY: the name ends with NUL and lives as long as its object, which is loaded while its code is on the stack.
    let name = unsafe { CStr::from_ptr(info.dli_sname) };
    Some(name.to_string_lossy().into_owned())
}

fn look_up(address: usize) -> Option<libc::Dl_info> {
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr takes any address and writes to `info` alone.
    let found = unsafe { libc::dladdr(address as *const c_void, &mut info) };
    (found != 0 && !info.dli_fname.is_null()).then_some(info)
}

/// Where this library lies.
fn own() -> &'static Range<usize> {
    static OWN: OnceLock<Range<usize>> = OnceLock::new();
    OWN.get_or_init(|| {
        let mut search = (own as *const c_void as usize, 0..0);
        // SAFETY: the function takes what is passed here, and does not outlive the call.
        unsafe { libc::dl_iterate_phdr(Some(holds), (&raw mut search).cast()) };
        search.1
    })
}

/// Looks whether an object holds an address, and notes where it lies.
unsafe extern "C" fn holds(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: what the loader passes, and what was passed to it.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<(usize, Range<usize>)>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader says how many headers there are.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let ranges = loaded.map(|header| {
        let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        start..start.wrapping_add(header.p_memsz as usize)
    });
    let whole = ranges.reduce(|all, next| all.start.min(next.start)..all.end.max(next.end));
    let Some(whole) = whole.filter(|whole| whole.contains(&search.0)) else {
        return 0;
    };
    search.1 = whole;
    1
}
