//! Stream-ordered memory allocation: pools, and the current pool of a device.
//!
//! The pools are in `driver/memory/pool.rs`; how memory is used again, in `pool/reserve.rs`.

use super::call::{Answer, DefaultStream, In, Out, require};
use super::types::*;
use crate::driver::pool::{self, Source, Wishes};
use crate::driver::{Context, Device, Pool};
use std::sync::Arc;

fn find(pool: CUmemoryPool) -> Answer<Arc<Pool>> {
    Ok(Pool::from_handle(pool as usize)?)
}

/// A device, or its only locality domain, which is all of it.
pub fn device(location: CUmemLocation) -> Answer<&'static Device> {
    use CUmemLocationType as T;
    // SAFETY: every bit pattern is a number.
    let (id, part) = unsafe { (location.anonymous.id, location.anonymous.localized) };
    match location.r#type {
        T::CU_MEM_LOCATION_TYPE_DEVICE => Ok(Device::get(id)?),
        T::CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN if part.localityDomainId == 0 => {
            Ok(Device::get(part.deviceId.into())?)
        }
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

/// `HOST_NUMA_ID` says that there are no nodes, so those locations are none.
fn source(location: CUmemLocation, kind: CUmemAllocationType) -> Answer<Source> {
    use CUmemAllocationType as K;
    use CUmemLocationType as T;
    match (kind, location.r#type) {
        (K::CU_MEM_ALLOCATION_TYPE_PINNED | K::CU_MEM_ALLOCATION_TYPE_MANAGED, T::CU_MEM_LOCATION_TYPE_HOST_NUMA) => {
            Err(CUresult::CUDA_ERROR_NOT_SUPPORTED)
        }
        (K::CU_MEM_ALLOCATION_TYPE_PINNED, T::CU_MEM_LOCATION_TYPE_HOST) => Ok(Source::Host),
        (K::CU_MEM_ALLOCATION_TYPE_PINNED, _) => Ok(Source::Device(device(location)?.ordinal())),
        (K::CU_MEM_ALLOCATION_TYPE_MANAGED, T::CU_MEM_LOCATION_TYPE_NONE) => Ok(Source::Managed(0, 0)),
        (K::CU_MEM_ALLOCATION_TYPE_MANAGED, T::CU_MEM_LOCATION_TYPE_HOST) => {
            Ok(Source::Managed(T::CU_MEM_LOCATION_TYPE_HOST.0, 0))
        }
        (K::CU_MEM_ALLOCATION_TYPE_MANAGED, T::CU_MEM_LOCATION_TYPE_DEVICE) => Ok(Source::Managed(
            T::CU_MEM_LOCATION_TYPE_DEVICE.0,
            device(location)?.ordinal(),
        )),
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

pub fn mem_get_default_mem_pool(
    pool_out: Out<CUmemoryPool>,
    location: Out<CUmemLocation>,
    kind: CUmemAllocationType,
) -> Answer {
    pool_out.required()?;
    let source = source(location.get_at(0)?, kind)?;
    pool_out.set(Pool::at(source, true)?.handle() as CUmemoryPool)
}

pub fn mem_get_mem_pool(pool: Out<CUmemoryPool>, location: Out<CUmemLocation>, kind: CUmemAllocationType) -> Answer {
    pool.required()?;
    let source = source(location.get_at(0)?, kind)?;
    pool.set(Pool::at(source, false)?.handle() as CUmemoryPool)
}

pub fn mem_set_mem_pool(location: Out<CUmemLocation>, kind: CUmemAllocationType, pool: CUmemoryPool) -> Answer {
    let source = source(location.get_at(0)?, kind)?;
    Ok(find(pool)?.set_current(source)?)
}

pub fn mem_pool_create(pool: Out<CUmemoryPool>, pool_props: In<CUmemPoolProps>) -> Answer {
    use CUmemAllocationHandleType as H;
    pool.required()?;
    let props = pool_props.get()?;
    let source = source(props.location, props.allocType)?;
    require(props.reserved == [0; 53] && props.win32SecurityAttributes.is_null())?;
    let decompress = CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS;
    require(u32::from(props.usage) & !decompress == 0)?;
    let of_device = matches!(source, Source::Device(_));
    let is_shareable = match props.handleTypes {
        H::CU_MEM_HANDLE_TYPE_NONE => false,
        // Neither host memory nor managed memory is shared (manual).
        _ if !of_device => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        H::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => true,
        H::CU_MEM_HANDLE_TYPE_WIN32 | H::CU_MEM_HANDLE_TYPE_WIN32_KMT | H::CU_MEM_HANDLE_TYPE_FABRIC => {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    };
    let is_managed = matches!(source, Source::Managed(..));
    require(!is_managed || props.maxSize == 0 && props.usage == 0)?;
    let wishes = Wishes {
        source,
        is_shareable,
        most: props.maxSize as u64,
        decompress: props.usage != 0,
    };
    pool.set(Pool::create(wishes)?.handle() as CUmemoryPool)
}

pub fn mem_pool_destroy(pool: CUmemoryPool) -> Answer {
    Ok(find(pool)?.destroy()?)
}

pub fn mem_pool_trim_to(pool: CUmemoryPool, min_bytes_to_keep: usize) -> Answer {
    find(pool)?.trim(min_bytes_to_keep as u64);
    Ok(())
}

/// Sizes are `cuuint64_t`, all others `int` (manual, cuMemPoolGetAttribute).
fn is_wide(attribute: CUmemPool_attribute) -> Answer<bool> {
    use CUmemPool_attribute as A;
    require(attribute.name().is_some())?;
    Ok(matches!(
        attribute,
        A::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
            | A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
            | A::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH
            | A::CU_MEMPOOL_ATTR_USED_MEM_CURRENT
            | A::CU_MEMPOOL_ATTR_USED_MEM_HIGH
            | A::CU_MEMPOOL_ATTR_MAX_POOL_SIZE
    ))
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

/// A device, or (`None`) the host.
fn accessor(location: CUmemLocation) -> Answer<Option<&'static Device>> {
    match location.r#type {
        CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST => Ok(None),
        CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA => Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
        _ => device(location).map(Some),
    }
}

/// Each says what a device may do (manual): the host keeps what it has.
pub fn mem_pool_set_access(pool: CUmemoryPool, map: In<CUmemAccessDesc>, count: usize) -> Answer {
    let pool = find(pool)?;
    require(count > 0 && !map.is_null())?;
    let wishes = (0..count)
        .map(|index| {
            let wish = map.at(index)?;
            let device = accessor(wish.location)?.ok_or(CUresult::CUDA_ERROR_NOT_SUPPORTED)?;
            Ok((device, wish.flags.0))
        })
        .collect::<Answer<Vec<_>>>()?;
    for (device, flags) in wishes {
        pool.set_access(device, flags)?;
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
    let found = pool.access(accessor(location.get_at(0)?)?);
    flags.set(CUmemAccess_flags::from_raw(found))
}

fn check_handle_type(kind: CUmemAllocationHandleType, flags: c_ulonglong) -> Answer {
    match kind {
        _ if flags != 0 => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => Ok(()),
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        kind if kind.name().is_some() => Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

/// A file descriptor, an `int`.
pub fn mem_pool_export_to_shareable_handle(
    handle_out: *mut c_void,
    pool: CUmemoryPool,
    kind: CUmemAllocationHandleType,
    flags: c_ulonglong,
) -> Answer {
    require(!handle_out.is_null())?;
    let pool = find(pool)?;
    check_handle_type(kind, flags)?;
    // SAFETY: the handle's type.
    unsafe { Out::from_c(handle_out.cast::<c_int>()) }.set(pool.export()?)
}

/// The descriptor is passed in place of a pointer.
pub fn mem_pool_import_from_shareable_handle(
    pool_out: Out<CUmemoryPool>,
    handle: *mut c_void,
    kind: CUmemAllocationHandleType,
    flags: c_ulonglong,
) -> Answer {
    pool_out.required()?;
    check_handle_type(kind, flags)?;
    let descriptor = c_int::try_from(handle as usize).map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
    pool_out.set(Pool::import(descriptor)?.handle() as CUmemoryPool)
}

pub fn mem_pool_export_pointer(share_data: Out<CUmemPoolPtrExportData>, ptr: CUdeviceptr) -> Answer {
    share_data.required()?;
    let reserved = pool::export_pointer(ptr)?;
    share_data.set(CUmemPoolPtrExportData { reserved })
}

pub fn mem_pool_import_pointer(
    ptr: Out<CUdeviceptr>,
    pool: CUmemoryPool,
    share_data: Out<CUmemPoolPtrExportData>,
) -> Answer {
    ptr.required()?;
    let pool = find(pool)?;
    ptr.set(pool.import_pointer(&share_data.get_at(0)?.reserved)?)
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
    dptr.set(pool.allocate(bytes as u64, stream)?)
}

pub fn mem_free_async(_: &Arc<Context>, default: DefaultStream, dptr: CUdeviceptr, stream: CUstream) -> Answer {
    Ok(pool::free(dptr, &default.resolve(stream)?)?)
}
