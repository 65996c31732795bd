//! Memory management: allocation, pinned and mapped host memory, address ranges. Copies are in `copy.rs`.
//!
//! The work is in `driver/memory/alloc.rs`.

use super::call::{Answer, Out, require};
use super::types::*;
use crate::driver::{Context, alloc, pointer};
use std::sync::Arc;

pub fn mem_get_info(context: &Arc<Context>, free: Out<usize>, total: Out<usize>) -> Answer {
    let info = context.memory_info();
    free.set_if_any(info.0 as usize);
    total.set_if_any(info.1 as usize);
    Ok(())
}

/// The first version has 32 bits for each answer: what is more is as much as they can say.
pub fn mem_get_info_v1(context: &Arc<Context>, free: Out<c_uint>, total: Out<c_uint>) -> Answer {
    let info = context.memory_info();
    free.set_if_any(info.0.min(c_uint::MAX.into()) as c_uint);
    total.set_if_any(info.1.min(c_uint::MAX.into()) as c_uint);
    Ok(())
}

pub fn mem_alloc(_: &Arc<Context>, dptr: Out<CUdeviceptr>, bytesize: usize) -> Answer {
    require(!dptr.is_null() && bytesize > 0)?;
    dptr.set(alloc::device(bytesize as u64)?)
}

pub fn mem_alloc_pitch(
    _: &Arc<Context>,
    dptr: Out<CUdeviceptr>,
    pitch: Out<usize>,
    width_in_bytes: usize,
    height: usize,
    element_size_bytes: c_uint,
) -> Answer {
    require(!dptr.is_null() && !pitch.is_null() && width_in_bytes > 0 && height > 0)?;
    require(matches!(element_size_bytes, 4 | 8 | 16))?;
    let (address, row) = alloc::pitched(width_in_bytes as u64, height as u64, element_size_bytes)?;
    pitch.set(row as usize)?;
    dptr.set(address)
}

/// 0 is nothing to free.
pub fn mem_free(_: &Arc<Context>, dptr: CUdeviceptr) -> Answer {
    Ok(alloc::free(dptr)?)
}

/// Either output may be NULL.
pub fn mem_get_address_range(_: &Arc<Context>, base: Out<CUdeviceptr>, size: Out<usize>, dptr: CUdeviceptr) -> Answer {
    let (start, bytes) = pointer::range(dptr)?;
    base.set_if_any(start);
    size.set_if_any(bytes as usize);
    Ok(())
}

pub fn mem_alloc_host(context: &Arc<Context>, pp: Out<*mut c_void>, bytesize: usize) -> Answer {
    mem_host_alloc(context, pp, bytesize, 0)
}

pub fn mem_alloc_host_v1(context: &Arc<Context>, pp: Out<*mut c_void>, bytesize: c_uint) -> Answer {
    mem_host_alloc(context, pp, bytesize as usize, 0)
}

pub fn mem_host_alloc(_: &Arc<Context>, pp: Out<*mut c_void>, bytesize: usize, flags: c_uint) -> Answer {
    let known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    require(!pp.is_null() && bytesize > 0 && flags & !known == 0)?;
    pp.set(alloc::host(bytesize as u64, flags)? as *mut c_void)
}

/// NULL is nothing to free, as NVIDIA's driver (590) has it; `cudaFreeHost(NULL)` arrives as this.
pub fn mem_free_host(_: &Arc<Context>, p: *mut c_void) -> Answer {
    if p.is_null() {
        return Ok(());
    }
    Ok(alloc::free_host(p as u64)?)
}

pub fn mem_host_get_device_pointer(_: &Arc<Context>, dptr: Out<CUdeviceptr>, p: *mut c_void, flags: c_uint) -> Answer {
    require(!dptr.is_null() && flags == 0)?;
    dptr.set(alloc::host_device_pointer(p as u64)?)
}

pub fn mem_host_get_flags(_: &Arc<Context>, flags: Out<c_uint>, p: *mut c_void) -> Answer {
    flags.required()?;
    flags.set(alloc::host_flags(p as u64)?)
}

pub fn mem_alloc_managed(_: &Arc<Context>, dptr: Out<CUdeviceptr>, bytesize: usize, flags: c_uint) -> Answer {
    require(!dptr.is_null() && bytesize > 0)?;
    let attach = CUmemAttach_flags::from_raw(flags);
    require(matches!(
        attach,
        CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL | CUmemAttach_flags::CU_MEM_ATTACH_HOST
    ))?;
    dptr.set(alloc::managed(bytesize as u64, flags)?)
}

/// Both versions: the second only let go of restrictions.
pub fn mem_host_register(_: &Arc<Context>, p: *mut c_void, bytesize: usize, flags: c_uint) -> Answer {
    let known = CU_MEMHOSTREGISTER_PORTABLE
        | CU_MEMHOSTREGISTER_DEVICEMAP
        | CU_MEMHOSTREGISTER_IOMEMORY
        | CU_MEMHOSTREGISTER_READ_ONLY;
    require(!p.is_null() && bytesize > 0 && flags & !known == 0)?;
    Ok(alloc::register(p as u64, bytesize as u64, flags)?)
}

pub fn mem_host_unregister(_: &Arc<Context>, p: *mut c_void) -> Answer {
    require(!p.is_null())?;
    Ok(alloc::unregister(p as u64)?)
}

/// `CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED` and its like say 0: ranges that could have a handle have none.
pub fn mem_get_handle_for_address_range(
    _: &Arc<Context>,
    handle: *mut c_void,
    dptr: CUdeviceptr,
    size: usize,
    kind: CUmemRangeHandleType,
    flags: c_ulonglong,
) -> Answer {
    const PAGE: u64 = 4096;
    require(!handle.is_null() && kind == CUmemRangeHandleType::CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)?;
    require(flags & !u64::from(CUmemRangeFlags::CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE.0) == 0)?;
    require(size > 0 && dptr.is_multiple_of(PAGE) && (size as u64).is_multiple_of(PAGE))?;
    let (start, bytes) = pointer::range(dptr).map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
    let end = dptr.checked_add(size as u64);
    require(end.is_some_and(|end| end <= start + bytes.next_multiple_of(PAGE)))?;
    tracing::warn!("cuMemGetHandleForAddressRange: memory here is not had by way of a dma-buf");
    Err(CUresult::CUDA_ERROR_NOT_SUPPORTED)
}
