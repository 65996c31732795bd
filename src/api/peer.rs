//! Peer access between devices.
//!
//! Flows in: devices, contexts. Flows out: what they allow each other. It must never know how memory is reached.

use super::call::{Answer, Out, require};
use super::types::*;
use crate::driver::{Context, Device};
use std::sync::Arc;

pub fn device_can_access_peer(can_access_peer: Out<c_int>, dev: CUdevice, peer_dev: CUdevice) -> Answer {
    can_access_peer.required()?;
    can_access_peer.set(Device::get(dev)?.can_access_peer(Device::get(peer_dev)?).into())
}

pub fn device_get_p2p_attribute(
    value: Out<c_int>,
    attrib: CUdevice_P2PAttribute,
    src_device: CUdevice,
    dst_device: CUdevice,
) -> Answer {
    value.required()?;
    value.set(Device::get(src_device)?.p2p_attribute(attrib.0, Device::get(dst_device)?)?)
}

pub fn ctx_enable_peer_access(context: &Arc<Context>, peer_context: CUcontext, flags: c_uint) -> Answer {
    require(flags == 0)?;
    Ok(context.enable_peer(&Context::from_handle(peer_context as usize)?, flags)?)
}

pub fn ctx_disable_peer_access(context: &Arc<Context>, peer_context: CUcontext) -> Answer {
    Ok(context.disable_peer(&Context::from_handle(peer_context as usize)?)?)
}
