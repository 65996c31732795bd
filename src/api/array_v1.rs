//! Arrays in the first version of the API (before CUDA 3.2): sizes of 32 bits.
//!
//! They name no device address, so that they can be served. The first versions that do, do not know of 64 bits:
//! `unsupported::narrow`.

use super::array;
use super::call::{Answer, DefaultStream, In, Out};
use super::types::*;
use crate::driver::Context;
use std::sync::Arc;

/// A record of the second version, for as long as a call takes.
fn lend<T: Copy>(record: &T) -> In<T> {
    // SAFETY: good for reading as long as the borrow, which the caller keeps up during the call.
    unsafe { In::from_c(std::ptr::from_ref(record)) }
}

fn fill<T>(record: &mut T) -> Out<T> {
    // SAFETY: the borrow is exclusive: good for reading and writing as long as the caller keeps it up, during the call.
    unsafe { Out::from_c(std::ptr::from_mut(record)) }
}

/// What has become larger than the old record can say is not told.
fn narrow(size: usize) -> Answer<c_uint> {
    c_uint::try_from(size).map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)
}

pub fn array_create(context: &Arc<Context>, handle: Out<CUarray>, asked: In<CUDA_ARRAY_DESCRIPTOR_v1>) -> Answer {
    let asked = asked.get()?;
    let wide = CUDA_ARRAY_DESCRIPTOR {
        Width: asked.Width as usize,
        Height: asked.Height as usize,
        Format: asked.Format,
        NumChannels: asked.NumChannels,
    };
    array::array_create(context, handle, lend(&wide))
}

pub fn array_get_descriptor(
    context: &Arc<Context>,
    descriptor: Out<CUDA_ARRAY_DESCRIPTOR_v1>,
    array: CUarray,
) -> Answer {
    descriptor.required()?;
    let mut wide = CUDA_ARRAY_DESCRIPTOR {
        Width: 0,
        Height: 0,
        Format: CUarray_format::from_raw(0),
        NumChannels: 0,
    };
    array::array_get_descriptor(context, fill(&mut wide), array)?;
    descriptor.set(CUDA_ARRAY_DESCRIPTOR_v1 {
        Width: narrow(wide.Width)?,
        Height: narrow(wide.Height)?,
        Format: wide.Format,
        NumChannels: wide.NumChannels,
    })
}

pub fn array_3d_create(context: &Arc<Context>, handle: Out<CUarray>, asked: In<CUDA_ARRAY3D_DESCRIPTOR_v1>) -> Answer {
    let asked = asked.get()?;
    let wide = CUDA_ARRAY3D_DESCRIPTOR {
        Width: asked.Width as usize,
        Height: asked.Height as usize,
        Depth: asked.Depth as usize,
        Format: asked.Format,
        NumChannels: asked.NumChannels,
        Flags: asked.Flags,
    };
    array::array_3d_create(context, handle, lend(&wide))
}

pub fn array_3d_get_descriptor(
    context: &Arc<Context>,
    descriptor: Out<CUDA_ARRAY3D_DESCRIPTOR_v1>,
    array: CUarray,
) -> Answer {
    descriptor.required()?;
    let mut wide = CUDA_ARRAY3D_DESCRIPTOR {
        Width: 0,
        Height: 0,
        Depth: 0,
        Format: CUarray_format::from_raw(0),
        NumChannels: 0,
        Flags: 0,
    };
    array::array_3d_get_descriptor(context, fill(&mut wide), array)?;
    descriptor.set(CUDA_ARRAY3D_DESCRIPTOR_v1 {
        Width: narrow(wide.Width)?,
        Height: narrow(wide.Height)?,
        Depth: narrow(wide.Depth)?,
        Format: wide.Format,
        NumChannels: wide.NumChannels,
        Flags: wide.Flags,
    })
}

pub fn memcpy_h_to_a(
    context: &Arc<Context>,
    array: CUarray,
    offset: c_uint,
    host: *const c_void,
    bytes: c_uint,
) -> Answer {
    array::memcpy_h_to_a(
        context,
        DefaultStream::Legacy,
        array,
        offset as usize,
        host,
        bytes as usize,
    )
}

pub fn memcpy_a_to_h(
    context: &Arc<Context>,
    host: *mut c_void,
    array: CUarray,
    offset: c_uint,
    bytes: c_uint,
) -> Answer {
    array::memcpy_a_to_h(
        context,
        DefaultStream::Legacy,
        host,
        array,
        offset as usize,
        bytes as usize,
    )
}

pub fn memcpy_a_to_a(
    context: &Arc<Context>,
    dst: CUarray,
    dst_offset: c_uint,
    src: CUarray,
    src_offset: c_uint,
    bytes: c_uint,
) -> Answer {
    array::memcpy_a_to_a(
        context,
        DefaultStream::Legacy,
        dst,
        dst_offset as usize,
        src,
        src_offset as usize,
        bytes as usize,
    )
}

pub fn memcpy_h_to_a_async(
    context: &Arc<Context>,
    array: CUarray,
    offset: c_uint,
    host: *const c_void,
    bytes: c_uint,
    stream: CUstream,
) -> Answer {
    array::memcpy_h_to_a_async(
        context,
        DefaultStream::Legacy,
        array,
        offset as usize,
        host,
        bytes as usize,
        stream,
    )
}

pub fn memcpy_a_to_h_async(
    context: &Arc<Context>,
    host: *mut c_void,
    array: CUarray,
    offset: c_uint,
    bytes: c_uint,
    stream: CUstream,
) -> Answer {
    array::memcpy_a_to_h_async(
        context,
        DefaultStream::Legacy,
        host,
        array,
        offset as usize,
        bytes as usize,
        stream,
    )
}
