//! Unified addressing: what a pointer is; advice and prefetching.
//!
//! Flows in: addresses. Flows out: attributes. It must never know how memory is kept.

use super::call::{Answer, DefaultStream, In, Out, require};
use super::types::*;
use crate::driver::Context;
use crate::driver::alloc::{self, Pointer};
use std::sync::Arc;

/// Writes one attribute of a pointer; `None` is a pointer the driver does not know.
///
/// `CUDA_ERROR_INVALID_VALUE` when the attribute does not apply, and for numbers that are no attribute: the runtime hands
/// any other error on to the program.
fn write(data: *mut c_void, attribute: CUpointer_attribute, pointer: Option<&Pointer>) -> Answer {
    use CUpointer_attribute as A;
    require(!data.is_null())?;
    // SAFETY: the caller gives room for the attribute's type (manual, cuPointerGetAttribute).
    let (word, number, wide) = unsafe {
        (
            Out::from_c(data.cast::<usize>()),
            Out::from_c(data.cast::<c_int>()),
            Out::from_c(data.cast::<c_ulonglong>()),
        )
    };
    let known = |value: fn(&Pointer) -> u64| pointer.map(value).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE);
    let address = |found: u64| match found {
        0 => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        found => Ok(found as usize),
    };
    match attribute {
        A::CU_POINTER_ATTRIBUTE_CONTEXT => word.set(known(|p| p.context as u64)? as usize),
        A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE => number.set(known(|p| p.memory_type.into())? as c_int),
        A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER => word.set(address(known(|p| p.device_pointer)?)?),
        A::CU_POINTER_ATTRIBUTE_HOST_POINTER => word.set(address(known(|p| p.host_pointer)?)?),
        A::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS => number.set(known(|p| p.sync_memops.into())? as c_int),
        A::CU_POINTER_ATTRIBUTE_BUFFER_ID => wide.set(known(|p| p.buffer_id)?),
        A::CU_POINTER_ATTRIBUTE_IS_MANAGED => number.set(known(|p| p.managed.into())? as c_int),
        A::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => number.set(known(|p| p.ordinal as u64)? as c_int),
        A::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR | A::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR => {
            word.set(known(|p| p.start)? as usize)
        }
        A::CU_POINTER_ATTRIBUTE_RANGE_SIZE | A::CU_POINTER_ATTRIBUTE_MAPPING_SIZE => {
            word.set(known(|p| p.bytes)? as usize)
        }
        // Whatever the driver knows is backed by memory.
        A::CU_POINTER_ATTRIBUTE_MAPPED => number.set(pointer.is_some().into()),
        A::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => word.set(known(|p| p.pool as u64)? as usize),
        A::CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID => wide.set(known(|p| p.buffer_id)?),
        A::CU_POINTER_ATTRIBUTE_ACCESS_FLAGS => {
            known(|_| 0)?;
            number.set(CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS::CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE.0 as c_int)
        }
        // No sharing between processes, no peripheral reads this memory, no decompression engine.
        A::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
        | A::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE
        | A::CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE => {
            known(|_| 0)?;
            number.set(0)
        }
        A::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES => {
            known(|_| 0)?;
            wide.set(0)
        }
        // Not bound to a part of the device.
        A::CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL => {
            known(|_| 0)?;
            number.set(-1)
        }
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

/// What `cuPointerGetAttributes` stores for attributes that do not apply: nulls, and no device.
fn write_default(data: *mut c_void, attribute: CUpointer_attribute) {
    use CUpointer_attribute as A;
    // SAFETY: as in `write`.
    let (word, number) = unsafe { (Out::from_c(data.cast::<usize>()), Out::from_c(data.cast::<c_int>())) };
    match attribute {
        A::CU_POINTER_ATTRIBUTE_CONTEXT
        | A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER
        | A::CU_POINTER_ATTRIBUTE_HOST_POINTER
        | A::CU_POINTER_ATTRIBUTE_BUFFER_ID
        | A::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
        | A::CU_POINTER_ATTRIBUTE_RANGE_SIZE
        | A::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR
        | A::CU_POINTER_ATTRIBUTE_MAPPING_SIZE
        | A::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
        | A::CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID
        | A::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES => word.set_if_any(0),
        A::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => number.set_if_any(-2),
        A::CU_POINTER_ATTRIBUTE_P2P_TOKENS => {}
        _ => number.set_if_any(0),
    }
}

pub fn pointer_get_attribute(data: *mut c_void, attribute: CUpointer_attribute, ptr: CUdeviceptr) -> Answer {
    write(data, attribute, alloc::pointer(ptr).as_ref())
}

/// Never fails for a pointer the driver does not know: all its attributes are the defaults.
pub fn pointer_get_attributes(
    num_attributes: c_uint,
    attributes: Out<CUpointer_attribute>,
    data: Out<*mut c_void>,
    ptr: CUdeviceptr,
) -> Answer {
    require(num_attributes > 0 && !attributes.is_null() && !data.is_null())?;
    let pointer = alloc::pointer(ptr);
    for index in 0..num_attributes as usize {
        let (attribute, slot) = (attributes.get_at(index)?, data.get_at(index)?);
        require(attribute.name().is_some() && !slot.is_null())?;
        if write(slot, attribute, pointer.as_ref()).is_err() {
            write_default(slot, attribute);
        }
    }
    Ok(())
}

/// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS` is the one attribute that can be set.
pub fn pointer_set_attribute(value: *const c_void, attribute: CUpointer_attribute, ptr: CUdeviceptr) -> Answer {
    require(attribute == CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)?;
    // SAFETY: the attribute's type.
    let on = unsafe { In::from_c(value.cast::<c_uint>()) }.get()?;
    Ok(alloc::set_sync_memops(ptr, on != 0)?)
}

/// Type and number of a location, as the driver takes them.
fn place(location: CUmemLocation) -> (u32, i32) {
    // SAFETY: every bit pattern is a number.
    (location.r#type.0, unsafe { location.anonymous.id })
}

/// The location that a `CUdevice` stands for: `CU_DEVICE_CPU` is the host.
fn place_of_device(device: CUdevice) -> (u32, i32) {
    match device {
        -1 => (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST.0, 0),
        device => (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE.0, device),
    }
}

pub fn mem_advise(
    _: &Arc<Context>,
    dev_ptr: CUdeviceptr,
    count: usize,
    advice: CUmem_advise,
    device: CUdevice,
) -> Answer {
    let (kind, id) = place_of_device(device);
    Ok(alloc::advise(dev_ptr, count as u64, advice.0, kind, id)?)
}

pub fn mem_advise_v2(
    _: &Arc<Context>,
    dev_ptr: CUdeviceptr,
    count: usize,
    advice: CUmem_advise,
    location: CUmemLocation,
) -> Answer {
    let (kind, id) = place(location);
    Ok(alloc::advise(dev_ptr, count as u64, advice.0, kind, id)?)
}

pub fn mem_prefetch_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dev_ptr: CUdeviceptr,
    count: usize,
    dst_device: CUdevice,
    stream: CUstream,
) -> Answer {
    let (kind, id) = place_of_device(dst_device);
    Ok(alloc::prefetch(
        dev_ptr,
        count as u64,
        kind,
        id,
        &default.resolve(stream)?,
    )?)
}

pub fn mem_prefetch_async_v2(
    _: &Arc<Context>,
    default: DefaultStream,
    dev_ptr: CUdeviceptr,
    count: usize,
    location: CUmemLocation,
    flags: c_uint,
    stream: CUstream,
) -> Answer {
    require(flags == 0)?;
    let (kind, id) = place(location);
    Ok(alloc::prefetch(
        dev_ptr,
        count as u64,
        kind,
        id,
        &default.resolve(stream)?,
    )?)
}

/// Writes one attribute of a range: a 32-bit number, or the list of devices that access it, filled up with
/// `CU_DEVICE_INVALID`.
fn write_range(
    data: *mut c_void,
    data_size: usize,
    attribute: CUmem_range_attribute,
    dev_ptr: CUdeviceptr,
    count: usize,
) -> Answer {
    require(!data.is_null() && data_size >= 4 && data_size.is_multiple_of(4))?;
    // SAFETY: the caller gives `data_size` bytes.
    let numbers = unsafe { Out::from_c(data.cast::<c_int>()) };
    if attribute == CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY {
        let devices = alloc::accessed_by(dev_ptr, count as u64)?;
        for index in 0..data_size / 4 {
            numbers.set_at(index, devices.get(index).copied().unwrap_or(-2));
        }
        return Ok(());
    }
    require(data_size == 4)?;
    numbers.set(alloc::range_attribute(dev_ptr, count as u64, attribute.0)? as c_int)
}

pub fn mem_range_get_attribute(
    _: &Arc<Context>,
    data: *mut c_void,
    data_size: usize,
    attribute: CUmem_range_attribute,
    dev_ptr: CUdeviceptr,
    count: usize,
) -> Answer {
    write_range(data, data_size, attribute, dev_ptr, count)
}

pub fn mem_range_get_attributes(
    _: &Arc<Context>,
    data: Out<*mut c_void>,
    data_sizes: Out<usize>,
    attributes: Out<CUmem_range_attribute>,
    num_attributes: usize,
    dev_ptr: CUdeviceptr,
    count: usize,
) -> Answer {
    require(num_attributes > 0)?;
    for index in 0..num_attributes {
        write_range(
            data.get_at(index)?,
            data_sizes.get_at(index)?,
            attributes.get_at(index)?,
            dev_ptr,
            count,
        )?;
    }
    Ok(())
}
