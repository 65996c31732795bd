//! How far this process has come: what every call asks first.

use std::sync::atomic::{AtomicU8, Ordering};

use super::checkpoint;
use crate::driver::{Error, Result};

/// The state of this process.
#[repr(u8)]
pub(in crate::driver) enum Stage {
    Fresh,
    Ready,
    /// Ready, but calls wait ([`super::checkpoint`]).
    Locked,
    /// A child of a process that was ready: threads and locks did not come along.
    Orphan,
}

pub(in crate::driver) static STAGE: AtomicU8 = AtomicU8::new(Stage::Fresh as u8);

/// Every call but the few that answer before `cuInit` begins with this: cheap.
///
/// # Errors
/// `NotInitialized` before a successful [`init`](crate::driver::init), and in a child of a process that had initialised.
#[inline]
pub fn ready() -> Result<()> {
    if STAGE.load(Ordering::Acquire) == Stage::Ready as u8 {
        Ok(())
    } else {
        not_ready()
    }
}

#[cold]
fn not_ready() -> Result<()> {
    if STAGE.load(Ordering::Acquire) != Stage::Locked as u8 {
        return Err(Error::NotInitialized);
    }
    checkpoint::wait()?;
    ready()
}

/// Whether [`init`](crate::driver::init) has succeeded in this process.
pub fn is_initialised() -> bool {
    let stage = STAGE.load(Ordering::Acquire);
    stage == Stage::Ready as u8 || stage == Stage::Locked as u8
}
