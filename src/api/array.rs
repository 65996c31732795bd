//! Memory management: arrays, mipmapped arrays, and copies from and to them by offset.
//!
//! Arrays are `driver/textures/array.rs`, copies `driver/memory/copy.rs`.

use super::call::{Answer, DefaultStream, In, Out, require};
use super::types::*;
use crate::driver::array::{Array, Descriptor, Mipmapped};
use crate::driver::copies::{boxed, boxed_async};
use crate::driver::copy::{End, Place, Shape};
use crate::driver::{Context, Device, Error};
use std::sync::Arc;

fn find(array: CUarray) -> Answer<Arc<Array>> {
    Ok(Array::from_handle(array as usize)?)
}

fn create(handle: Out<CUarray>, descriptor: Descriptor) -> Answer {
    handle.required()?;
    handle.set(Array::create(descriptor)?.handle() as CUarray)
}

pub fn array_create(_: &Arc<Context>, p_handle: Out<CUarray>, p_allocate_array: In<CUDA_ARRAY_DESCRIPTOR>) -> Answer {
    let asked = p_allocate_array.get()?;
    let descriptor = Descriptor {
        width: asked.Width as u64,
        height: asked.Height as u64,
        depth: 0,
        format: asked.Format.0,
        channels: asked.NumChannels,
        flags: 0,
    };
    create(p_handle, descriptor)
}

pub fn described(descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> Descriptor {
    Descriptor {
        width: descriptor.Width as u64,
        height: descriptor.Height as u64,
        depth: descriptor.Depth as u64,
        format: descriptor.Format.0,
        channels: descriptor.NumChannels,
        flags: descriptor.Flags,
    }
}

pub fn array_3d_create(
    _: &Arc<Context>,
    p_handle: Out<CUarray>,
    p_allocate_array: In<CUDA_ARRAY3D_DESCRIPTOR>,
) -> Answer {
    create(p_handle, described(&p_allocate_array.get()?))
}

/// One- and two-dimensional arrays; layers and slices would be lost.
fn plane(array: CUarray) -> Answer<Descriptor> {
    let descriptor = find(array)?.descriptor();
    require(descriptor.depth == 0)?;
    Ok(descriptor)
}

pub fn array_get_descriptor(
    _: &Arc<Context>,
    p_array_descriptor: Out<CUDA_ARRAY_DESCRIPTOR>,
    h_array: CUarray,
) -> Answer {
    let descriptor = plane(h_array)?;
    p_array_descriptor.set(CUDA_ARRAY_DESCRIPTOR {
        Width: descriptor.width as usize,
        Height: descriptor.height as usize,
        Format: CUarray_format_enum(descriptor.format),
        NumChannels: descriptor.channels,
    })
}

pub fn array_3d_get_descriptor(
    _: &Arc<Context>,
    p_array_descriptor: Out<CUDA_ARRAY3D_DESCRIPTOR>,
    h_array: CUarray,
) -> Answer {
    let descriptor = find(h_array)?.descriptor();
    p_array_descriptor.set(CUDA_ARRAY3D_DESCRIPTOR {
        Width: descriptor.width as usize,
        Height: descriptor.height as usize,
        Depth: descriptor.depth as usize,
        Format: CUarray_format_enum(descriptor.format),
        NumChannels: descriptor.channels,
        Flags: descriptor.flags,
    })
}

/// No array is sparse: the manual's answer for those that are not.
pub fn array_get_sparse_properties(
    _: &Arc<Context>,
    sparse_properties: Out<CUDA_ARRAY_SPARSE_PROPERTIES>,
    array: CUarray,
) -> Answer {
    sparse_properties.required()?;
    find(array)?;
    Err(CUresult::CUDA_ERROR_INVALID_VALUE)
}

/// As [`array_get_sparse_properties`].
pub fn mipmapped_array_get_sparse_properties(
    _: &Arc<Context>,
    sparse_properties: Out<CUDA_ARRAY_SPARSE_PROPERTIES>,
    mipmap: CUmipmappedArray,
) -> Answer {
    sparse_properties.required()?;
    Mipmapped::from_handle(mipmap as usize)?;
    Err(CUresult::CUDA_ERROR_INVALID_VALUE)
}

/// No array defers its memory: the manual's answer for those that do not.
pub fn array_get_memory_requirements(
    _: &Arc<Context>,
    memory_requirements: Out<CUDA_ARRAY_MEMORY_REQUIREMENTS>,
    array: CUarray,
    device: CUdevice,
) -> Answer {
    memory_requirements.required()?;
    find(array)?;
    Device::get(device)?;
    Err(CUresult::CUDA_ERROR_INVALID_VALUE)
}

/// As [`array_get_memory_requirements`].
pub fn mipmapped_array_get_memory_requirements(
    _: &Arc<Context>,
    memory_requirements: Out<CUDA_ARRAY_MEMORY_REQUIREMENTS>,
    mipmap: CUmipmappedArray,
    device: CUdevice,
) -> Answer {
    memory_requirements.required()?;
    Mipmapped::from_handle(mipmap as usize)?;
    Device::get(device)?;
    Err(CUresult::CUDA_ERROR_INVALID_VALUE)
}

pub fn array_get_plane(_: &Arc<Context>, p_plane_array: Out<CUarray>, h_array: CUarray, plane_idx: c_uint) -> Answer {
    p_plane_array.required()?;
    p_plane_array.set(find(h_array)?.plane(plane_idx)?.handle() as CUarray)
}

pub fn array_destroy(_: &Arc<Context>, h_array: CUarray) -> Answer {
    Ok(Array::destroy_by(h_array as usize)?)
}

pub fn mipmapped_array_create(
    _: &Arc<Context>,
    p_handle: Out<CUmipmappedArray>,
    p_mipmapped_array_desc: In<CUDA_ARRAY3D_DESCRIPTOR>,
    num_mipmap_levels: c_uint,
) -> Answer {
    p_handle.required()?;
    let descriptor = described(&p_mipmapped_array_desc.get()?);
    p_handle.set(Mipmapped::create(descriptor, num_mipmap_levels)?.handle() as CUmipmappedArray)
}

pub fn mipmapped_array_get_level(
    _: &Arc<Context>,
    p_level_array: Out<CUarray>,
    h_mipmapped_array: CUmipmappedArray,
    level: c_uint,
) -> Answer {
    p_level_array.required()?;
    let mipmap = Mipmapped::from_handle(h_mipmapped_array as usize)?;
    p_level_array.set(mipmap.level(level)?.handle() as CUarray)
}

pub fn mipmapped_array_destroy(_: &Arc<Context>, h_mipmapped_array: CUmipmappedArray) -> Answer {
    Ok(Mipmapped::destroy_by(h_mipmapped_array as usize)?)
}

// Copies from and to a row of an array, by bytes.

/// One end of such a copy.
#[derive(Clone, Copy)]
enum Side {
    Array(CUarray, usize),
    Memory(Place),
}

fn row(bytes: usize) -> Shape {
    Shape {
        width: bytes as u64,
        height: 1,
        depth: 1,
    }
}

impl Side {
    fn end(self, bytes: usize) -> Answer<End> {
        Ok(match self {
            Side::Array(array, offset) => {
                let array = Array::from_handle(array as usize).map_err(|_| Error::InvalidValue)?;
                End::of_array(&array, [offset as u64, 0, 0], &row(bytes))?
            }
            Side::Memory(place) => End {
                place,
                pitch: 0,
                rows: 0,
            },
        })
    }
}

fn at_once(default: DefaultStream, dst: Side, src: Side, bytes: usize) -> Answer {
    if bytes == 0 {
        return Ok(());
    }
    Ok(boxed(
        dst.end(bytes)?,
        src.end(bytes)?,
        row(bytes),
        default.is_per_thread(),
    )?)
}

fn in_stream(default: DefaultStream, dst: Side, src: Side, bytes: usize, stream: CUstream) -> Answer {
    let stream = default.resolve(stream)?;
    if bytes == 0 {
        return Ok(());
    }
    Ok(boxed_async(dst.end(bytes)?, src.end(bytes)?, row(bytes), &stream)?)
}

fn host(address: *const c_void) -> Side {
    Side::Memory(Place::Host(address as u64))
}

fn device(address: CUdeviceptr) -> Side {
    Side::Memory(Place::Device(address))
}

pub fn memcpy_d_to_a(
    _: &Arc<Context>,
    default: DefaultStream,
    dst_array: CUarray,
    dst_offset: usize,
    src_device: CUdeviceptr,
    bytes: usize,
) -> Answer {
    at_once(default, Side::Array(dst_array, dst_offset), device(src_device), bytes)
}

pub fn memcpy_a_to_d(
    _: &Arc<Context>,
    default: DefaultStream,
    dst_device: CUdeviceptr,
    src_array: CUarray,
    src_offset: usize,
    bytes: usize,
) -> Answer {
    at_once(default, device(dst_device), Side::Array(src_array, src_offset), bytes)
}

pub fn memcpy_h_to_a(
    _: &Arc<Context>,
    default: DefaultStream,
    dst_array: CUarray,
    dst_offset: usize,
    src_host: *const c_void,
    bytes: usize,
) -> Answer {
    at_once(default, Side::Array(dst_array, dst_offset), host(src_host), bytes)
}

pub fn memcpy_a_to_h(
    _: &Arc<Context>,
    default: DefaultStream,
    dst_host: *mut c_void,
    src_array: CUarray,
    src_offset: usize,
    bytes: usize,
) -> Answer {
    at_once(default, host(dst_host), Side::Array(src_array, src_offset), bytes)
}

pub fn memcpy_a_to_a(
    _: &Arc<Context>,
    default: DefaultStream,
    dst_array: CUarray,
    dst_offset: usize,
    src_array: CUarray,
    src_offset: usize,
    bytes: usize,
) -> Answer {
    at_once(
        default,
        Side::Array(dst_array, dst_offset),
        Side::Array(src_array, src_offset),
        bytes,
    )
}

pub fn memcpy_h_to_a_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dst_array: CUarray,
    dst_offset: usize,
    src_host: *const c_void,
    bytes: usize,
    stream: CUstream,
) -> Answer {
    in_stream(
        default,
        Side::Array(dst_array, dst_offset),
        host(src_host),
        bytes,
        stream,
    )
}

pub fn memcpy_a_to_h_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dst_host: *mut c_void,
    src_array: CUarray,
    src_offset: usize,
    bytes: usize,
    stream: CUstream,
) -> Answer {
    in_stream(
        default,
        host(dst_host),
        Side::Array(src_array, src_offset),
        bytes,
        stream,
    )
}
