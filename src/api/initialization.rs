//! Initialization and version management.

use super::call::{Answer, Out};
use super::types::*;
use crate::driver;

pub fn init(flags: c_uint) -> Answer {
    Ok(driver::init(flags)?)
}

/// Answers before `cuInit`.
pub fn driver_get_version(version: Out<c_int>) -> Answer {
    version.set(driver::VERSION)
}
