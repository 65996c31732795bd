//! Stream-ordered memory allocation: pools, and the current pool of a device.
//!
//! Flows in: pool handles, attributes, sizes. Flows out: pools and addresses. It must never reuse memory itself.

use super::call::{Answer, DefaultStream, In, Out, require};
use super::types::*;
use crate::driver::{Context, Device, Pool, pool};
use std::sync::Arc;

fn find(pool: CUmemoryPool) -> Answer<Arc<Pool>> {
    Ok(Pool::from_handle(pool as usize)?)
}

/// Pools are made of the memory of devices.
fn device(location: CUmemLocation) -> Answer<&'static Device> {
    match location.r#type {
        CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE => {
            // SAFETY: every bit pattern is a number.
            Ok(Device::get(unsafe { location.anonymous.id })?)
        }
        kind if kind.name().is_some() => Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn device_get_default_mem_pool(pool_out: Out<CUmemoryPool>, dev: CUdevice) -> Answer {
    pool_out.required()?;
    pool_out.set(Device::get(dev)?.default_pool().handle() as CUmemoryPool)
}

pub fn device_get_mem_pool(pool: Out<CUmemoryPool>, dev: CUdevice) -> Answer {
    pool.required()?;
    pool.set(Device::get(dev)?.pool().handle() as CUmemoryPool)
}

pub fn device_set_mem_pool(dev: CUdevice, pool: CUmemoryPool) -> Answer {
    Ok(Device::get(dev)?.set_pool(&find(pool)?)?)
}

/// Ordinary memory only: managed and migratable pools are another kind of allocation.
fn check_kind(kind: CUmemAllocationType) -> Answer {
    match kind {
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED => Ok(()),
        kind if kind.name().is_some() => Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn mem_get_default_mem_pool(
    pool_out: Out<CUmemoryPool>,
    location: Out<CUmemLocation>,
    kind: CUmemAllocationType,
) -> Answer {
    pool_out.required()?;
    check_kind(kind)?;
    pool_out.set(device(location.get_at(0)?)?.default_pool().handle() as CUmemoryPool)
}

pub fn mem_get_mem_pool(pool: Out<CUmemoryPool>, location: Out<CUmemLocation>, kind: CUmemAllocationType) -> Answer {
    pool.required()?;
    check_kind(kind)?;
    pool.set(device(location.get_at(0)?)?.pool().handle() as CUmemoryPool)
}

pub fn mem_set_mem_pool(location: Out<CUmemLocation>, kind: CUmemAllocationType, pool: CUmemoryPool) -> Answer {
    check_kind(kind)?;
    Ok(device(location.get_at(0)?)?.set_pool(&find(pool)?)?)
}

pub fn mem_pool_create(pool: Out<CUmemoryPool>, pool_props: In<CUmemPoolProps>) -> Answer {
    pool.required()?;
    let props = pool_props.get()?;
    check_kind(props.allocType)?;
    if props.handleTypes != CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE {
        return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
    }
    pool.set(Pool::create(device(props.location)?)?.handle() as CUmemoryPool)
}

pub fn mem_pool_destroy(pool: CUmemoryPool) -> Answer {
    Ok(find(pool)?.destroy()?)
}

pub fn mem_pool_trim_to(pool: CUmemoryPool, min_bytes_to_keep: usize) -> Answer {
    Ok(find(pool)?.trim(min_bytes_to_keep as u64)?)
}

/// The reuse attributes are `int`, the sizes `cuuint64_t` (manual, cuMemPoolSetAttribute).
fn is_wide(attribute: CUmemPool_attribute) -> Answer<bool> {
    use CUmemPool_attribute as A;
    match attribute {
        A::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES
        | A::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC
        | A::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => Ok(false),
        A::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        | A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
        | A::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH
        | A::CU_MEMPOOL_ATTR_USED_MEM_CURRENT
        | A::CU_MEMPOOL_ATTR_USED_MEM_HIGH => Ok(true),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn mem_pool_set_attribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void) -> Answer {
    let pool = find(pool)?;
    let value = if is_wide(attr)? {
        // SAFETY: the attribute's type.
        unsafe { In::from_c(value.cast::<cuuint64_t>()) }.get()?
    } else {
        // SAFETY: the attribute's type.
        unsafe { In::from_c(value.cast::<c_int>()) }.get()? as u64
    };
    Ok(pool.set_attribute(attr.0, value)?)
}

pub fn mem_pool_get_attribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void) -> Answer {
    let pool = find(pool)?;
    require(!value.is_null())?;
    if is_wide(attr)? {
        // SAFETY: the attribute's type.
        unsafe { Out::from_c(value.cast::<cuuint64_t>()) }.set(pool.attribute(attr.0)?)
    } else {
        // SAFETY: the attribute's type.
        unsafe { Out::from_c(value.cast::<c_int>()) }.set(pool.attribute(attr.0)? as c_int)
    }
}

pub fn mem_pool_set_access(pool: CUmemoryPool, map: In<CUmemAccessDesc>, count: usize) -> Answer {
    let pool = find(pool)?;
    require(count == 0 || !map.is_null())?;
    for index in 0..count {
        let access = map.at(index)?;
        pool.set_access(device(access.location)?, access.flags.0)?;
    }
    Ok(())
}

pub fn mem_pool_get_access(
    flags: Out<CUmemAccess_flags>,
    mem_pool: CUmemoryPool,
    location: Out<CUmemLocation>,
) -> Answer {
    flags.required()?;
    let pool = find(mem_pool)?;
    flags.set(CUmemAccess_flags::from_raw(pool.access(device(location.get_at(0)?)?)?))
}

/// From the current pool of the stream's device.
pub fn mem_alloc_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dptr: Out<CUdeviceptr>,
    bytesize: usize,
    stream: CUstream,
) -> Answer {
    dptr.required()?;
    let stream = default.resolve(stream)?;
    let pool = stream.context()?.device().pool();
    allocate(&pool, dptr, bytesize, &stream)
}

pub fn mem_alloc_from_pool_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dptr: Out<CUdeviceptr>,
    bytesize: usize,
    pool: CUmemoryPool,
    stream: CUstream,
) -> Answer {
    dptr.required()?;
    allocate(&find(pool)?, dptr, bytesize, &default.resolve(stream)?)
}

fn allocate(pool: &Arc<Pool>, dptr: Out<CUdeviceptr>, bytes: usize, stream: &Arc<crate::driver::Stream>) -> Answer {
    require(bytes > 0)?;
    dptr.set(pool.allocate(bytes as u64, stream)?)
}

pub fn mem_free_async(_: &Arc<Context>, default: DefaultStream, dptr: CUdeviceptr, stream: CUstream) -> Answer {
    Ok(pool::free(dptr, &default.resolve(stream)?)?)
}
