//! Primary context management.
//!
//! References are counted in `driver/context/primary.rs`.
//!
//! `_v2` of these calls change nothing for callers but the symbol: one body each.

use super::call::{Answer, Out, require};
use super::types::*;
use crate::driver::{Context, Device};

pub fn device_primary_ctx_retain(pctx: Out<CUcontext>, dev: CUdevice) -> Answer {
    pctx.required()?;
    pctx.set(Context::primary_retain(Device::get(dev)?)?.handle() as CUcontext)
}

pub fn device_primary_ctx_release(dev: CUdevice) -> Answer {
    Ok(Context::primary_release(Device::get(dev)?)?)
}

pub fn device_primary_ctx_reset(dev: CUdevice) -> Answer {
    Ok(Context::primary_reset(Device::get(dev)?)?)
}

pub fn device_primary_ctx_set_flags(dev: CUdevice, flags: c_uint) -> Answer {
    Ok(Context::primary_set_flags(Device::get(dev)?, flags)?)
}

pub fn device_primary_ctx_get_state(dev: CUdevice, flags: Out<c_uint>, active: Out<c_int>) -> Answer {
    require(!flags.is_null() && !active.is_null())?;
    let (found_flags, is_active) = Context::primary_state(Device::get(dev)?);
    flags.set(found_flags)?;
    active.set(is_active.into())
}
