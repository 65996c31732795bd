//! `arc4random`, which LLVM's names of temporary files ask for where the C library has it: glibc since 2.36. With one of its own the
//! library runs on older ones, too.

use std::ffi::{c_uint, c_void};

/// A random number; 0 if the system has none to give, as on a Linux before 3.17.
extern "C" fn random() -> u32 {
    let mut number = [0; 4];
    // SAFETY: writes to the array, and no more than it holds. So few bytes come whole.
    unsafe { getrandom(number.as_mut_ptr().cast(), number.len(), 0) };
    u32::from_ne_bytes(number)
}

// Not as a function of Rust's, which would be exported.
core::arch::global_asm!(
    ".globl arc4random",
    ".hidden arc4random",
    "arc4random: jmp {random}",
    random = sym random,
);

unsafe extern "C" {
    fn getrandom(buffer: *mut c_void, len: usize, flags: c_uint) -> isize;
}
