//! Logical endpoint management.
//!
//! The endpoints are in `driver/memory/endpoint.rs`. They are of this process alone: what other processes or machines would
//! reach them by is a fabric's handle, and no device here is connected to another machine's.

use super::call::{Answer, In, Out, require};
use super::types::*;
use crate::driver::Device;
use crate::driver::endpoint::{self, Owner, Wishes};
use crate::driver::virtual_memory::Physical;

fn wishes(prop: &CUlogicalEndpointProp) -> Answer<Wishes> {
    use CUlogicalEndpointFlag as Flag;
    use CUlogicalEndpointType as Type;
    // SAFETY: all members of the union are one 32-bit number.
    let (device, devices) = unsafe { (prop.anonymous.unicast.device, prop.anonymous.multicast.numDevices) };
    let owner = match prop.r#type {
        Type::CU_LOGICAL_ENDPOINT_TYPE_UNICAST => Owner::Device(Device::get(device)?),
        Type::CU_LOGICAL_ENDPOINT_TYPE_MULTICAST => Owner::Team(devices),
        _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    };
    let counted = Flag::CU_LOGICAL_ENDPOINT_FLAG_COUNTED_OPS.0;
    require(prop.flags & !counted == 0)?;
    check_handle_types(prop.ipcHandleTypes)?;
    Ok(Wishes {
        owner,
        bytes: prop.size,
        counts: prop.flags & counted != 0,
    })
}

/// `CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES` says none.
fn check_handle_types(types: c_uint) -> Answer {
    let fabric = CUlogicalEndpointIpcHandleType::CU_LOGICAL_ENDPOINT_IPC_HANDLE_TYPE_FABRIC.0;
    require(types & !fabric == 0)?;
    match types {
        0 => Ok(()),
        _ => Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
    }
}

pub fn logical_endpoint_id_reserve(base: Out<CUlogicalEndpointId>, count: cuuint32_t) -> Answer {
    base.required()?.set(endpoint::reserve(count)?)
}

pub fn logical_endpoint_id_release(base: CUlogicalEndpointId, count: cuuint32_t) -> Answer {
    Ok(endpoint::release(base, count)?)
}

pub fn logical_endpoint_create(id: CUlogicalEndpointId, prop: In<CUlogicalEndpointProp>) -> Answer {
    Ok(endpoint::create(id, wishes(&prop.get()?)?)?)
}

pub fn logical_endpoint_add_device(id: CUlogicalEndpointId, dev: CUdevice) -> Answer {
    Ok(endpoint::add_device(id, Device::get(dev)?)?)
}

pub fn logical_endpoint_destroy(id: CUlogicalEndpointId) -> Answer {
    Ok(endpoint::destroy(id)?)
}

pub fn logical_endpoint_bind_addr(
    id: CUlogicalEndpointId,
    dev: CUdevice,
    offset: cuuint64_t,
    ptr: *mut c_void,
    size: cuuint64_t,
    flags: c_ulonglong,
) -> Answer {
    require(flags == 0)?;
    Ok(endpoint::bind_address(id, Device::get(dev)?, offset, ptr as u64, size)?)
}

pub fn logical_endpoint_bind_mem(
    id: CUlogicalEndpointId,
    dev: CUdevice,
    offset: cuuint64_t,
    memory: CUmemGenericAllocationHandle,
    from: cuuint64_t,
    size: cuuint64_t,
    flags: c_ulonglong,
) -> Answer {
    require(flags == 0)?;
    let device = Device::get(dev)?;
    let physical = Physical::from_handle(memory)?;
    Ok(endpoint::bind(id, device, offset, (physical, from), size)?)
}

pub fn logical_endpoint_unbind(id: CUlogicalEndpointId, dev: CUdevice, offset: cuuint64_t, size: cuuint64_t) -> Answer {
    Ok(endpoint::unbind(id, Device::get(dev)?, offset, size)?)
}

pub fn logical_endpoint_get_limits(
    alignment: Out<cuuint64_t>,
    most: Out<cuuint64_t>,
    prop: In<CUlogicalEndpointProp>,
) -> Answer {
    alignment.required()?;
    most.required()?;
    let limits = endpoint::limits(&wishes(&prop.get()?)?)?;
    alignment.set(limits.0)?;
    most.set(limits.1)
}

pub fn logical_endpoint_query(id: CUlogicalEndpointId, count: cuuint32_t, status: Out<c_int>) -> Answer {
    status.required()?.set(endpoint::is_ready(id, count)?.into())
}
