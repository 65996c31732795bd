//! Unified addressing: what a pointer is; advice and prefetching.
//!
//! What is known of an address is in `driver/memory/pointer.rs`, advice in `managed.rs`.

use super::call::{Answer, DefaultStream, In, Out, require};
use super::types::*;
use crate::driver::managed::{self, Location, Part};
use crate::driver::pointer::{self, Pointer};
use crate::driver::{Context, Stream};
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
        A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER => {
            let found = known(|p| if p.mapped { p.device_pointer } else { 0 })?;
            Context::current()?;
            word.set(address(found)?)
        }
        A::CU_POINTER_ATTRIBUTE_HOST_POINTER => word.set(address(known(|p| p.host_pointer)?)?),
        A::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS => number.set(known(|p| p.sync_memops.into())? as c_int),
        A::CU_POINTER_ATTRIBUTE_BUFFER_ID => wide.set(known(|p| p.buffer_id)?),
        A::CU_POINTER_ATTRIBUTE_IS_MANAGED => number.set(known(|p| p.managed.into())? as c_int),
        A::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => number.set(known(|p| p.ordinal as u64)? as c_int),
        A::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR => word.set(known(|p| p.start)? as usize),
        A::CU_POINTER_ATTRIBUTE_RANGE_SIZE => word.set(known(|p| p.bytes)? as usize),
        A::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR => word.set(address(known(|p| p.mapping_start)?)?),
        A::CU_POINTER_ATTRIBUTE_MAPPING_SIZE => word.set(address(known(|p| p.mapping_bytes)?)?),
        A::CU_POINTER_ATTRIBUTE_MAPPED => number.set(known(|p| p.mapped.into()).unwrap_or(0) as c_int),
        A::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => word.set(known(|p| p.pool as u64)? as usize),
        A::CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID => wide.set(known(|p| p.buffer_id)?),
        A::CU_POINTER_ATTRIBUTE_ACCESS_FLAGS => number.set(known(|p| p.access.into())? as c_int),
        A::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE => number.set(known(|p| p.ipc.into())? as c_int),
        A::CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE => number.set(known(|p| p.decompress.into())? as c_int),
        A::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES => wide.set(known(|p| p.handle_types)?),
        // No peripheral reads this memory.
        A::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE => {
            known(|_| 0)?;
            number.set(0)
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
    // SAFETY: the caller gives room for each attribute's type (manual, cuPointerGetAttributes).
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
    write(data, attribute, pointer::pointer(ptr).as_ref())
}

/// Never fails for a pointer the driver does not know: all its attributes are the defaults.
pub fn pointer_get_attributes(
    num_attributes: c_uint,
    attributes: Out<CUpointer_attribute>,
    data: Out<*mut c_void>,
    ptr: CUdeviceptr,
) -> Answer {
    require(num_attributes > 0 && !attributes.is_null() && !data.is_null())?;
    let pointer = pointer::pointer(ptr);
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
    Ok(pointer::set_sync_memops(ptr, on != 0)?)
}

fn place(location: CUmemLocation) -> Location {
    Location {
        kind: location.r#type.0,
        // SAFETY: every bit pattern is a number.
        id: unsafe { location.anonymous.id },
    }
}

pub fn mem_advise(
    _: &Arc<Context>,
    dev_ptr: CUdeviceptr,
    count: usize,
    advice: CUmem_advise,
    device: CUdevice,
) -> Answer {
    Ok(managed::advise(
        dev_ptr,
        count as u64,
        advice.0,
        Location::of_device(device),
    )?)
}

pub fn mem_advise_v2(
    _: &Arc<Context>,
    dev_ptr: CUdeviceptr,
    count: usize,
    advice: CUmem_advise,
    location: CUmemLocation,
) -> Answer {
    Ok(managed::advise(dev_ptr, count as u64, advice.0, place(location))?)
}

pub fn mem_prefetch_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dev_ptr: CUdeviceptr,
    count: usize,
    dst_device: CUdevice,
    stream: CUstream,
) -> Answer {
    prefetch(default, dev_ptr, count, Location::of_device(dst_device), stream)
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
    prefetch(default, dev_ptr, count, place(location), stream)
}

fn prefetch(
    default: DefaultStream,
    dev_ptr: CUdeviceptr,
    count: usize,
    location: Location,
    stream: CUstream,
) -> Answer {
    let part = Part {
        address: dev_ptr,
        bytes: count as u64,
        location: Some(location),
    };
    Ok(managed::move_parts(&[part], false, &default.resolve(stream)?)?)
}

/// The ranges of a batch.
struct Ranges {
    dptrs: Out<CUdeviceptr>,
    sizes: Out<usize>,
    count: usize,
}

/// Where they go: each location counts from an index on, up to the next one's.
struct Targets {
    locations: Out<CUmemLocation>,
    indices: Out<usize>,
    count: usize,
}

/// A batch is in a stream, which the legacy default stream is not (manual).
pub fn stream_of_batch(default: DefaultStream, stream: CUstream) -> Answer<Arc<Stream>> {
    let stream = default.resolve(stream)?;
    require(!stream.is_legacy())?;
    Ok(stream)
}

/// Which of several things each element of a list belongs to: the first element of each. It takes memory as the indices
/// are read, and none for the count of elements, which the program may have wrong.
pub struct Spread(Vec<usize>);

impl Spread {
    /// The indices begin with 0, ascend, and stay below `count`.
    pub fn read(indices: Out<usize>, parts: usize, count: usize) -> Answer<Spread> {
        require(parts > 0 && parts <= count && !indices.is_null())?;
        let mut firsts: Vec<usize> = Vec::new();
        for part in 0..parts {
            let first = indices.get_at(part)?;
            require(first < count && firsts.last().map_or(first == 0, |last| first > *last))?;
            firsts.push(first);
        }
        Ok(Spread(firsts))
    }

    /// The thing that an element belongs to.
    pub fn of(&self, element: usize) -> usize {
        self.0.partition_point(|first| *first <= element) - 1
    }
}

fn batch(
    default: DefaultStream,
    ranges: &Ranges,
    targets: Option<&Targets>,
    discard: bool,
    flags: c_ulonglong,
    stream: CUstream,
) -> Answer {
    require(flags == 0 && ranges.count > 0 && !ranges.dptrs.is_null() && !ranges.sizes.is_null())?;
    let to = targets
        .map(|targets| {
            require(!targets.locations.is_null())?;
            Spread::read(targets.indices, targets.count, ranges.count)
        })
        .transpose()?;
    let parts = (0..ranges.count)
        .map(|index| {
            let location = match (targets, &to) {
                (Some(targets), Some(to)) => Some(place(targets.locations.get_at(to.of(index))?)),
                _ => None,
            };
            Ok(Part {
                address: ranges.dptrs.get_at(index)?,
                bytes: ranges.sizes.get_at(index)? as u64,
                location,
            })
        })
        .collect::<Answer<Vec<Part>>>()?;
    Ok(managed::move_parts(
        &parts,
        discard,
        &stream_of_batch(default, stream)?,
    )?)
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn mem_prefetch_batch_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dptrs: Out<CUdeviceptr>,
    sizes: Out<usize>,
    count: usize,
    locations: Out<CUmemLocation>,
    indices: Out<usize>,
    num_locations: usize,
    flags: c_ulonglong,
    stream: CUstream,
) -> Answer {
    let targets = Targets {
        locations,
        indices,
        count: num_locations,
    };
    batch(
        default,
        &Ranges { dptrs, sizes, count },
        Some(&targets),
        false,
        flags,
        stream,
    )
}

pub fn mem_discard_batch_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dptrs: Out<CUdeviceptr>,
    sizes: Out<usize>,
    count: usize,
    flags: c_ulonglong,
    stream: CUstream,
) -> Answer {
    batch(default, &Ranges { dptrs, sizes, count }, None, true, flags, stream)
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn mem_discard_and_prefetch_batch_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dptrs: Out<CUdeviceptr>,
    sizes: Out<usize>,
    count: usize,
    locations: Out<CUmemLocation>,
    indices: Out<usize>,
    num_locations: usize,
    flags: c_ulonglong,
    stream: CUstream,
) -> Answer {
    let targets = Targets {
        locations,
        indices,
        count: num_locations,
    };
    batch(
        default,
        &Ranges { dptrs, sizes, count },
        Some(&targets),
        true,
        flags,
        stream,
    )
}

pub fn mem_get_location_info(
    ptr: CUdeviceptr,
    size: usize,
    summary: usize,
    sampling: usize,
    location_out: Out<CUmemLocation>,
) -> Answer {
    location_out.required()?;
    let found = managed::locations(ptr, size as u64, summary as u64, sampling as u64)?;
    for (index, location) in found.into_iter().enumerate() {
        location_out.set_at(
            index,
            CUmemLocation {
                r#type: CUmemLocationType::from_raw(location.kind),
                anonymous: CUmemLocation_st_anonymous { id: location.id },
            },
        );
    }
    Ok(())
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
        let devices = managed::accessed_by(dev_ptr, count as u64)?;
        for index in 0..data_size / 4 {
            numbers.set_at(index, devices.get(index).copied().unwrap_or(-2));
        }
        return Ok(());
    }
    require(data_size == 4)?;
    numbers.set(managed::range_attribute(dev_ptr, count as u64, attribute.0)?)
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
