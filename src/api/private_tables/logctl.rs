//! LOGCTL: cudart 12.9 and later explain here why a call of theirs fails. Optional, and good for the user's log.
//!
//! What it says becomes lines of target `cuda::cudart` (`MARGAY_LOG=margay::cudart=info`), and changes no answer.

use super::super::types::*;
use super::Table;
use crate::trace::error_log::{self, Severity};
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

pub const ID: u128 = 0xf8cff951_2146_8b4e_b9e2_fb469e7c0dd9;

pub static TABLE: Table<7> = Table::sized(3, &[(1, say as *const c_void), (2, listen as *const c_void)]);

/// cudart 13 mutes the log around calls that it expects may fail.
static MUTED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    /// C's; a `va_list` argument is a pointer to the record on the ABIs we run on.
    fn vsnprintf(buffer: *mut c_char, size: usize, format: *const c_char, arguments: *mut c_void) -> c_int;
}

/// Slot 1: the component ("CUDA"), a level (0), a `printf` format and a pointer to its `va_list`.
unsafe extern "C" fn say(
    component: *const c_char,
    _level: c_int,
    format: *const c_char,
    arguments: *mut c_void,
) -> CUresult {
    if !MUTED.load(Ordering::Relaxed) && !component.is_null() && !format.is_null() && !arguments.is_null() {
        let mut buffer = [0 as c_char; 1024];
        // SAFETY: the caller's format fits its arguments; the buffer is as long as said, and ends with NUL afterwards.
        let (component, text) = unsafe {
            vsnprintf(buffer.as_mut_ptr(), buffer.len(), format, arguments);
            (CStr::from_ptr(component), CStr::from_ptr(buffer.as_ptr()))
        };
        tracing::info!(target: "cuda::cudart", "{}: {}", component.to_string_lossy(), text.to_string_lossy());
        error_log::note(Severity::Error, "", &text.to_string_lossy());
    }
    CUresult::CUDA_SUCCESS
}

/// Slot 2: 0 mutes, 1 speaks again. Called by cudart 13.
unsafe extern "C" fn listen(on: c_int) -> CUresult {
    MUTED.store(on == 0, Ordering::Relaxed);
    error_log::mute(on == 0);
    CUresult::CUDA_SUCCESS
}
