//! Multicast object management.
//!
//! The objects are in `driver/memory/multicast.rs`.

use super::call::{Answer, In, Out, require};
use super::types::*;
use crate::driver::virtual_memory::{GRANULARITY, Physical};
use crate::driver::{Device, Multicast, multicast};
use std::sync::Arc;

/// Objects are not shared with other processes, which would not see what is bound.
fn check(prop: &CUmulticastObjectProp) -> Answer {
    let known = CUmemAllocationHandleType::ENUMERATORS
        .iter()
        .filter(|(name, _)| !name.ends_with("_MAX"))
        .fold(0, |all, (_, kind)| all | u64::from(*kind));
    require(prop.flags == 0 && prop.handleTypes & !known == 0)?;
    multicast::check(prop.numDevices, prop.size as u64)?;
    match prop.handleTypes {
        0 => Ok(()),
        _ => Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
    }
}

fn find(handle: CUmemGenericAllocationHandle) -> Answer<Arc<Multicast>> {
    Ok(Multicast::from_handle(handle)?)
}

pub fn multicast_create(handle: Out<CUmemGenericAllocationHandle>, prop: In<CUmulticastObjectProp>) -> Answer {
    handle.required()?;
    let prop = prop.get()?;
    check(&prop)?;
    handle.set(Multicast::create(prop.numDevices, prop.size as u64)?.handle())
}

pub fn multicast_add_device(handle: CUmemGenericAllocationHandle, dev: CUdevice) -> Answer {
    let multicast = find(handle)?;
    Ok(multicast.add_device(Device::get(dev)?)?)
}

pub fn multicast_bind_mem(
    handle: CUmemGenericAllocationHandle,
    offset: usize,
    memory: CUmemGenericAllocationHandle,
    from: usize,
    size: usize,
    flags: c_ulonglong,
) -> Answer {
    bind_mem(handle, None, offset, memory, from, size, flags)
}

pub fn multicast_bind_mem_v2(
    handle: CUmemGenericAllocationHandle,
    dev: CUdevice,
    offset: usize,
    memory: CUmemGenericAllocationHandle,
    from: usize,
    size: usize,
    flags: c_ulonglong,
) -> Answer {
    bind_mem(handle, Some(Device::get(dev)?), offset, memory, from, size, flags)
}

fn bind_mem(
    handle: CUmemGenericAllocationHandle,
    device: Option<&Device>,
    offset: usize,
    memory: CUmemGenericAllocationHandle,
    from: usize,
    size: usize,
    flags: c_ulonglong,
) -> Answer {
    require(flags == 0)?;
    let multicast = find(handle)?;
    let physical = Physical::from_handle(memory)?;
    Ok(multicast.bind(device, offset as u64, &physical, from as u64, size as u64)?)
}

pub fn multicast_bind_addr(
    handle: CUmemGenericAllocationHandle,
    offset: usize,
    address: CUdeviceptr,
    size: usize,
    flags: c_ulonglong,
) -> Answer {
    require(flags == 0)?;
    Ok(find(handle)?.bind_address(None, offset as u64, address, size as u64)?)
}

pub fn multicast_bind_addr_v2(
    handle: CUmemGenericAllocationHandle,
    dev: CUdevice,
    offset: usize,
    address: CUdeviceptr,
    size: usize,
    flags: c_ulonglong,
) -> Answer {
    require(flags == 0)?;
    let multicast = find(handle)?;
    Ok(multicast.bind_address(Some(Device::get(dev)?), offset as u64, address, size as u64)?)
}

pub fn multicast_unbind(handle: CUmemGenericAllocationHandle, dev: CUdevice, offset: usize, size: usize) -> Answer {
    let multicast = find(handle)?;
    Ok(multicast.unbind(Device::get(dev)?, offset as u64, size as u64)?)
}

/// The least and the recommended one are the same; what the size is rounded to need not be known yet.
pub fn multicast_get_granularity(
    granularity: Out<usize>,
    prop: In<CUmulticastObjectProp>,
    option: CUmulticastGranularity_flags,
) -> Answer {
    require(!granularity.is_null() && option.name().is_some())?;
    check(&prop.get()?)?;
    granularity.set(GRANULARITY as usize)
}
