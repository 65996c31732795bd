//! Virtual memory management.
//!
//! Ranges, handles and mappings are in `driver/memory/virtual_memory.rs`.

use super::call::{Answer, In, Out, require};
use super::types::*;
use crate::driver::virtual_memory::{self as memory, GRANULARITY, Memory, Physical};
use crate::driver::{Context, Device};
use std::sync::Arc;

const NOT_SUPPORTED: CUresult = CUresult::CUDA_ERROR_NOT_SUPPORTED;

/// A device's memory is the only kind that can be mapped.
fn device(location: CUmemLocation) -> Answer<&'static Device> {
    match location.r#type {
        CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE => {
            // SAFETY: every bit pattern is a number.
            Ok(Device::get(unsafe { location.anonymous.id })?)
        }
        kind if kind.name().is_some() && kind != CUmemLocationType::CU_MEM_LOCATION_TYPE_INVALID => Err(NOT_SUPPORTED),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

/// Pinned memory of a device, for this process or to be shared by descriptor: the device, and whether it is shared.
fn check(prop: &CUmemAllocationProp) -> Answer<(&'static Device, bool)> {
    match prop.r#type {
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED => {}
        kind if kind.name().is_some() && kind != CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_INVALID => {
            return Err(NOT_SUPPORTED);
        }
        _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
    let shared = match prop.requestedHandleTypes {
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE => false,
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => true,
        kind if kind.name().is_some() => return Err(NOT_SUPPORTED),
        _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    };
    require(prop.allocFlags.reserved == [0; 4])?;
    // CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, …_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED: 0, so these are wishes.
    Ok((device(prop.location)?, shared))
}

/// The address that the caller would like is taken for a hint.
pub fn mem_address_reserve(
    ptr: Out<CUdeviceptr>,
    size: usize,
    alignment: usize,
    _addr: CUdeviceptr,
    flags: c_ulonglong,
) -> Answer {
    ptr.required()?;
    require(flags == 0)?;
    ptr.set(memory::reserve(size as u64, alignment as u64)?)
}

pub fn mem_address_free(ptr: CUdeviceptr, size: usize) -> Answer {
    Ok(memory::unreserve(ptr, size as u64)?)
}

pub fn mem_create(
    handle: Out<CUmemGenericAllocationHandle>,
    size: usize,
    prop: In<CUmemAllocationProp>,
    flags: c_ulonglong,
) -> Answer {
    handle.required()?;
    require(flags == 0)?;
    let prop = prop.get()?;
    let (device, shared) = check(&prop)?;
    handle.set(Physical::create(size as u64, device, shared, prop.allocFlags.usage)?.handle())
}

pub fn mem_release(handle: CUmemGenericAllocationHandle) -> Answer {
    Ok(memory::release(handle)?)
}

/// The offset must be 0 (manual).
pub fn mem_map(
    ptr: CUdeviceptr,
    size: usize,
    offset: usize,
    handle: CUmemGenericAllocationHandle,
    flags: c_ulonglong,
) -> Answer {
    require(offset == 0 && flags == 0)?;
    Ok(memory::map(ptr, size as u64, &Memory::from_handle(handle)?)?)
}

pub fn mem_unmap(ptr: CUdeviceptr, size: usize) -> Answer {
    Ok(memory::unmap(ptr, size as u64)?)
}

pub fn mem_set_access(ptr: CUdeviceptr, size: usize, desc: In<CUmemAccessDesc>, count: usize) -> Answer {
    require(count > 0 && !desc.is_null())?;
    let wishes = (0..count)
        .map(|index| {
            let wish = desc.at(index)?;
            Ok((device(wish.location)?, wish.flags.0))
        })
        .collect::<Answer<Vec<_>>>()?;
    Ok(memory::set_access(ptr, size as u64, &wishes)?)
}

pub fn mem_get_access(flags: Out<c_ulonglong>, location: In<CUmemLocation>, ptr: CUdeviceptr) -> Answer {
    flags.required()?;
    let device = device(location.get()?)?;
    flags.set(memory::access(ptr, device)?.into())
}

fn check_handle_type(kind: CUmemAllocationHandleType) -> Answer {
    match kind {
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => Ok(()),
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        kind if kind.name().is_some() => Err(NOT_SUPPORTED),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

/// A file descriptor, an `int`.
pub fn mem_export_to_shareable_handle(
    shareable: *mut c_void,
    handle: CUmemGenericAllocationHandle,
    kind: CUmemAllocationHandleType,
    flags: c_ulonglong,
) -> Answer {
    require(!shareable.is_null() && flags == 0)?;
    check_handle_type(kind)?;
    let descriptor = Physical::from_handle(handle)?.export()?;
    // SAFETY: the handle's type.
    unsafe { Out::from_c(shareable.cast::<c_int>()) }.set(descriptor)
}

/// The descriptor is passed in place of a pointer.
pub fn mem_import_from_shareable_handle(
    handle: Out<CUmemGenericAllocationHandle>,
    shareable: *mut c_void,
    kind: CUmemAllocationHandleType,
) -> Answer {
    handle.required()?;
    check_handle_type(kind)?;
    let descriptor = c_int::try_from(shareable as usize).map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
    handle.set(Physical::import(descriptor)?.handle())
}

/// The least and the recommended one are the same.
pub fn mem_get_allocation_granularity(
    granularity: Out<usize>,
    prop: In<CUmemAllocationProp>,
    option: CUmemAllocationGranularity_flags,
) -> Answer {
    require(!granularity.is_null() && option.name().is_some())?;
    check(&prop.get()?)?;
    granularity.set(GRANULARITY as usize)
}

pub fn mem_get_allocation_properties_from_handle(
    prop: Out<CUmemAllocationProp>,
    handle: CUmemGenericAllocationHandle,
) -> Answer {
    prop.required()?;
    let physical = Physical::from_handle(handle)?;
    prop.set(CUmemAllocationProp {
        r#type: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: match physical.is_shareable() {
            true => CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            false => CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        },
        location: CUmemLocation {
            r#type: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            anonymous: CUmemLocation_st_anonymous {
                id: physical.device().ordinal(),
            },
        },
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: CUmemAllocationProp_st_allocFlags {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: physical.usage(),
            reserved: [0; 4],
        },
    })
}

pub fn mem_retain_allocation_handle(
    _: &Arc<Context>,
    handle: Out<CUmemGenericAllocationHandle>,
    addr: *mut c_void,
) -> Answer {
    handle.required()?;
    handle.set(memory::retain(addr as u64)?)
}
