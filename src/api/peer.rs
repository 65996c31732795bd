//! Peer access between devices.

use super::call::{Answer, In, Out, require};
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

/// One memory and one set of atomic instructions serve all devices and the host.
pub fn device_get_p2p_atomic_capabilities(
    capabilities: Out<c_uint>,
    operations: In<CUatomicOperation>,
    count: c_uint,
    src_device: CUdevice,
    dst_device: CUdevice,
) -> Answer {
    let (src, dst) = (Device::get(src_device)?, Device::get(dst_device)?);
    if src.ordinal() == dst.ordinal() {
        return Err(CUresult::CUDA_ERROR_INVALID_DEVICE);
    }
    atomic_capabilities(capabilities, operations, count)
}

pub fn device_get_host_atomic_capabilities(
    capabilities: Out<c_uint>,
    operations: In<CUatomicOperation>,
    count: c_uint,
    dev: CUdevice,
) -> Answer {
    Device::get(dev)?;
    atomic_capabilities(capabilities, operations, count)
}

/// What each operation can do natively (`CUatomicOperationCapability`), by the forms that PTX has of it (`atom`, `red`).
fn atomic_capabilities(capabilities: Out<c_uint>, operations: In<CUatomicOperation>, count: c_uint) -> Answer {
    use CUatomicOperation as Op;
    use CUatomicOperationCapability as Can;
    require(count == 0 || !capabilities.is_null() && !operations.is_null())?;
    let signs = Can::CU_ATOMIC_CAPABILITY_SIGNED.0 | Can::CU_ATOMIC_CAPABILITY_UNSIGNED.0;
    let unsigned = Can::CU_ATOMIC_CAPABILITY_UNSIGNED.0;
    let signed = Can::CU_ATOMIC_CAPABILITY_SIGNED.0;
    let reduction = Can::CU_ATOMIC_CAPABILITY_REDUCTION.0;
    let word = Can::CU_ATOMIC_CAPABILITY_SCALAR_32.0;
    let words = word | Can::CU_ATOMIC_CAPABILITY_SCALAR_64.0;
    let wide = words | Can::CU_ATOMIC_CAPABILITY_SCALAR_128.0;
    let mut found = Vec::new();
    for index in 0..count as usize {
        found.push(match operations.at(index)? {
            Op::CU_ATOMIC_OPERATION_INTEGER_ADD
            | Op::CU_ATOMIC_OPERATION_INTEGER_MIN
            | Op::CU_ATOMIC_OPERATION_INTEGER_MAX => signs | reduction | words,
            Op::CU_ATOMIC_OPERATION_INTEGER_INCREMENT | Op::CU_ATOMIC_OPERATION_INTEGER_DECREMENT => {
                unsigned | reduction | word
            }
            Op::CU_ATOMIC_OPERATION_AND | Op::CU_ATOMIC_OPERATION_OR | Op::CU_ATOMIC_OPERATION_XOR => {
                signs | reduction | words
            }
            Op::CU_ATOMIC_OPERATION_EXCHANGE | Op::CU_ATOMIC_OPERATION_CAS => signs | wide,
            Op::CU_ATOMIC_OPERATION_FLOAT_ADD => signed | reduction | words | Can::CU_ATOMIC_CAPABILITY_VECTOR_32x4.0,
            // Of half precision and narrower only.
            Op::CU_ATOMIC_OPERATION_FLOAT_MIN | Op::CU_ATOMIC_OPERATION_FLOAT_MAX => 0,
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        });
    }
    for (index, value) in found.into_iter().enumerate() {
        capabilities.set_at(index, value);
    }
    Ok(())
}
