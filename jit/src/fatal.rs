//! What happens when LLVM gives up: the thread stops for ever, and the process lives on.
//!
//! LLVM has no way back from a fatal error: it calls a handler, which must not return, and ends the process if there is none.
//! The handler here keeps the message, marks the whole library as broken and parks the thread that it was called on, with
//! whatever it holds. A lock may be among that, so nothing else is compiled from then on.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::llvm;

static BROKEN: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

/// What LLVM said when it gave up; null while all is well. The text lives for ever.
pub fn broken() -> *const c_char {
    BROKEN.load(Ordering::Acquire)
}

/// Before LLVM is called for the first time.
pub fn install() {
    // SAFETY: the handlers have the types that LLVM asks for, and live as long as the library, which is never unloaded.
    unsafe {
        llvm::LLVMInstallFatalErrorHandler(fatal);
        llvm::install_bad_alloc_error_handler(bad_alloc, ptr::null_mut());
        llvm::install_out_of_memory_new_handler();
    }
}

extern "C" fn fatal(reason: *const c_char) {
    stop(reason);
}

extern "C" fn bad_alloc(_data: *mut c_void, reason: *const c_char, _dump: bool) {
    stop(reason);
}

/// In the place of `abort`, for LLVM, the C++ library and Rust's.
extern "C" fn aborted() -> ! {
    stop(c"abort was called".as_ptr())
}

/// In the place of `__cxa_atexit`. Destructors of static variables would run while other threads still compile, and the
/// process is about to end: nobody misses them.
extern "C" fn at_exit(_destructor: extern "C" fn(*mut c_void), _argument: *mut c_void, _library: *mut c_void) -> c_int {
    0
}

// The linker sends calls of `abort` to `__wrap_abort`. Not as functions of Rust's, which would be exported.
core::arch::global_asm!(
    ".globl __wrap_abort",
    ".hidden __wrap_abort",
    "__wrap_abort: jmp {aborted}",
    ".globl __wrap___cxa_atexit",
    ".hidden __wrap___cxa_atexit",
    "__wrap___cxa_atexit: jmp {at_exit}",
    aborted = sym aborted,
    at_exit = sym at_exit,
);

fn stop(reason: *const c_char) -> ! {
    // Memory may be what is short: the message as it is, if it cannot be copied.
    // SAFETY: LLVM's messages are NUL-terminated.
    let text = unsafe { strdup(reason) };
    let text = if text.is_null() {
        c"out of memory".as_ptr().cast_mut()
    } else {
        text
    };
    // The first reason is the cause of the others.
    let _ = BROKEN.compare_exchange(ptr::null_mut(), text, Ordering::AcqRel, Ordering::Acquire);
    loop {
        // SAFETY: waits for a signal, and again.
        unsafe { pause() };
    }
}

unsafe extern "C" {
    fn pause() -> c_int;
    fn strdup(text: *const c_char) -> *mut c_char;
}
