//! Initialization and version management.

use super::call::{Answer, Out};
use super::types::*;
use crate::{companions, driver};

pub fn init(flags: c_uint) -> Answer {
    driver::init(flags)?;
    companions::at_init();
    Ok(())
}

/// Answers before `cuInit`.
pub fn driver_get_version(version: Out<c_int>) -> Answer {
    version.set(driver::VERSION)
}
