//! RTHOOKS: two buffers in which the runtime looks up which of its calls a tool listens to. Asked for by cudart 11.8 to 13.5.
//!
//! All zeroes: no tool listens.

use super::super::call::Out;
use super::super::types::*;
use super::Table;
use std::cell::UnsafeCell;

pub const ID: u128 = 0xa094798c_2e74_2e74_93f2_0800200c0a66;

pub static TABLE: Table<1> = Table::sized(
    7,
    &[(2, callbacks as *const c_void), (6, more_callbacks as *const c_void)],
);

/// What we report, in units of 4 bytes. cudart refuses to start below what it knows: 1024 (11.8), 567 (13.5) in the first
/// buffer, 14 in the second; the number grows with each release.
const UNITS: usize = 4096;

struct Buffer(UnsafeCell<[u32; UNITS]>);

// SAFETY: we never touch it; cudart reads it as it reads any flag of its own.
unsafe impl Sync for Buffer {}

static CALLBACKS: Buffer = Buffer(UnsafeCell::new([0; UNITS]));
static MORE_CALLBACKS: Buffer = Buffer(UnsafeCell::new([0; UNITS]));

fn answer(buffer: *mut *mut c_void, size: *mut usize, which: &'static Buffer) {
    // SAFETY: null or good for one word each.
    unsafe { (Out::from_c(buffer)).set_if_any(which.0.get().cast()) };
    // SAFETY: the caller passes null, or a pointer that is good for one word.
    unsafe { (Out::from_c(size)).set_if_any(UNITS) };
}

/// Slot 2, at start-up.
unsafe extern "C" fn callbacks(buffer: *mut *mut c_void, size: *mut usize) {
    answer(buffer, size, &CALLBACKS);
}

/// Slot 6, at start-up.
unsafe extern "C" fn more_callbacks(buffer: *mut *mut c_void, size: *mut usize) {
    answer(buffer, size, &MORE_CALLBACKS);
}
