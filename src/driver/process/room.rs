//! Room for the driver's own data.
//!
//! An allocation of Rust's own that fails ends the process. Calls that are about to make many of them ask first, so that a
//! program whose memory is limited (RLIMIT_DATA, RLIMIT_AS) gets an error where one can be had.

use crate::driver::{Error, Result};
use crate::memory;

/// What reading a text, lowering a kernel or making a context may need.
const WORKING: u64 = 16 << 20;

/// # Errors
/// 2 where the system leaves the process no room for such work.
pub(in crate::driver) fn room_to_work() -> Result<()> {
    match memory::has_room(WORKING) {
        true => Ok(()),
        false => Err(Error::OutOfMemory),
    }
}
