//! Memory management: copies.
//!
//! A call here says where both ends are and in which stream; whether the memory is there, and whose it is, is found out
//! in `driver/memory/copy.rs`.

use super::call::{Answer, DefaultStream, In, require};
use super::types::*;
use crate::driver::Context;
use crate::driver::array::Array;
use crate::driver::copies::{boxed, boxed_async, linear, linear_async};
use crate::driver::copy::{End, Place, Shape};
use std::sync::Arc;

// Linear copies. What they move when the size is 0 is nothing, wherever it is.

fn at_once(default: DefaultStream, dst: Place, src: Place, bytes: usize) -> Answer {
    if bytes == 0 {
        return Ok(());
    }
    Ok(linear(dst, src, bytes as u64, default.is_per_thread())?)
}

fn in_stream(default: DefaultStream, dst: Place, src: Place, bytes: usize, stream: CUstream) -> Answer {
    let stream = default.resolve(stream)?;
    if bytes == 0 {
        return Ok(());
    }
    Ok(linear_async(dst, src, bytes as u64, &stream)?)
}

fn host(address: *const c_void) -> Place {
    Place::Host(address as u64)
}

pub fn memcpy(_: &Arc<Context>, default: DefaultStream, dst: CUdeviceptr, src: CUdeviceptr, bytes: usize) -> Answer {
    at_once(default, Place::Unified(dst), Place::Unified(src), bytes)
}

pub fn memcpy_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dst: CUdeviceptr,
    src: CUdeviceptr,
    bytes: usize,
    stream: CUstream,
) -> Answer {
    in_stream(default, Place::Unified(dst), Place::Unified(src), bytes, stream)
}

pub fn memcpy_h_to_d(
    _: &Arc<Context>,
    default: DefaultStream,
    dst: CUdeviceptr,
    src: *const c_void,
    bytes: usize,
) -> Answer {
    at_once(default, Place::Device(dst), host(src), bytes)
}

pub fn memcpy_d_to_h(
    _: &Arc<Context>,
    default: DefaultStream,
    dst: *mut c_void,
    src: CUdeviceptr,
    bytes: usize,
) -> Answer {
    at_once(default, host(dst), Place::Device(src), bytes)
}

pub fn memcpy_d_to_d(
    _: &Arc<Context>,
    default: DefaultStream,
    dst: CUdeviceptr,
    src: CUdeviceptr,
    bytes: usize,
) -> Answer {
    at_once(default, Place::Device(dst), Place::Device(src), bytes)
}

pub fn memcpy_h_to_d_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dst: CUdeviceptr,
    src: *const c_void,
    bytes: usize,
    stream: CUstream,
) -> Answer {
    in_stream(default, Place::Device(dst), host(src), bytes, stream)
}

pub fn memcpy_d_to_h_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dst: *mut c_void,
    src: CUdeviceptr,
    bytes: usize,
    stream: CUstream,
) -> Answer {
    in_stream(default, host(dst), Place::Device(src), bytes, stream)
}

pub fn memcpy_d_to_d_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dst: CUdeviceptr,
    src: CUdeviceptr,
    bytes: usize,
    stream: CUstream,
) -> Answer {
    in_stream(default, Place::Device(dst), Place::Device(src), bytes, stream)
}

/// The contexts name the devices; addresses are unique among them, so that they are only validated.
fn peers(dst: CUcontext, src: CUcontext) -> Answer {
    Context::from_handle(dst as usize)?;
    Context::from_handle(src as usize)?;
    Ok(())
}

pub fn memcpy_peer(
    _: &Arc<Context>,
    default: DefaultStream,
    dst: CUdeviceptr,
    dst_context: CUcontext,
    src: CUdeviceptr,
    src_context: CUcontext,
    bytes: usize,
) -> Answer {
    peers(dst_context, src_context)?;
    at_once(default, Place::Device(dst), Place::Device(src), bytes)
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn memcpy_peer_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dst: CUdeviceptr,
    dst_context: CUcontext,
    src: CUdeviceptr,
    src_context: CUcontext,
    bytes: usize,
    stream: CUstream,
) -> Answer {
    peers(dst_context, src_context)?;
    in_stream(default, Place::Device(dst), Place::Device(src), bytes, stream)
}

// Copies of boxes.

/// One end of a box, as the records of C describe it.
struct Corner {
    kind: CUmemorytype,
    host: u64,
    device: u64,
    array: CUarray,
    x: usize,
    y: usize,
    z: usize,
    pitch: usize,
    /// Rows from slice to slice; not used when there is one slice.
    rows: usize,
}

impl Corner {
    /// Rows and slices must not overlap: a pitch covers the row that is copied from where it begins, a height the slice.
    fn end(&self, shape: &Shape) -> Answer<End> {
        if self.kind == CUmemorytype::CU_MEMORYTYPE_ARRAY {
            let array = Array::from_handle(self.array as usize).map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
            return Ok(End::of_array(
                &array,
                [self.x, self.y, self.z].map(|at| at as u64),
                shape,
            )?);
        }
        let one_row = shape.height <= 1 && shape.depth <= 1;
        let row_end = (self.x as u64).checked_add(shape.width);
        let slice_end = (self.y as u64).checked_add(shape.height);
        require(row_end.is_some_and(|end| self.pitch as u64 >= end || one_row && self.y == 0 && self.z == 0))?;
        require(slice_end.is_some_and(|end| self.rows as u64 >= end || shape.depth <= 1 && self.z == 0))?;
        let base = match self.kind {
            CUmemorytype::CU_MEMORYTYPE_HOST => self.host,
            CUmemorytype::CU_MEMORYTYPE_DEVICE | CUmemorytype::CU_MEMORYTYPE_UNIFIED => self.device,
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        let rows_before = (self.z as u128) * (self.rows as u128) + self.y as u128;
        let first = u128::from(base) + rows_before * (self.pitch as u128) + self.x as u128;
        let first = u64::try_from(first).map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let place = match self.kind {
            CUmemorytype::CU_MEMORYTYPE_HOST => Place::Host(first),
            CUmemorytype::CU_MEMORYTYPE_DEVICE => Place::Device(first),
            _ => Place::Unified(first),
        };
        // With one row or slice the distances mean nothing, and may be 0 in the record.
        let pitch = (self.pitch as u64).max(shape.width);
        Ok(End {
            place,
            pitch,
            rows: (self.rows as u64).max(shape.height),
        })
    }
}

/// Destination, source and size of a 2D copy.
fn box_2d(copy: &CUDA_MEMCPY2D) -> Answer<(End, End, Shape)> {
    let shape = Shape {
        width: copy.WidthInBytes as u64,
        height: copy.Height as u64,
        depth: 1,
    };
    let src = Corner {
        kind: copy.srcMemoryType,
        host: copy.srcHost as u64,
        device: copy.srcDevice,
        array: copy.srcArray,
        x: copy.srcXInBytes,
        y: copy.srcY,
        z: 0,
        pitch: copy.srcPitch,
        rows: 0,
    };
    let dst = Corner {
        kind: copy.dstMemoryType,
        host: copy.dstHost as u64,
        device: copy.dstDevice,
        array: copy.dstArray,
        x: copy.dstXInBytes,
        y: copy.dstY,
        z: 0,
        pitch: copy.dstPitch,
        rows: 0,
    };
    Ok((dst.end(&shape)?, src.end(&shape)?, shape))
}

/// The records of 3D copies within and between contexts have the same fields.
macro_rules! box_3d {
    ($copy:expr) => {{
        let copy = $copy;
        require(copy.srcLOD == 0 && copy.dstLOD == 0)?;
        let shape = Shape {
            width: copy.WidthInBytes as u64,
            height: copy.Height as u64,
            depth: copy.Depth as u64,
        };
        let src = Corner {
            kind: copy.srcMemoryType,
            host: copy.srcHost as u64,
            device: copy.srcDevice,
            array: copy.srcArray,
            x: copy.srcXInBytes,
            y: copy.srcY,
            z: copy.srcZ,
            pitch: copy.srcPitch,
            rows: copy.srcHeight,
        };
        let dst = Corner {
            kind: copy.dstMemoryType,
            host: copy.dstHost as u64,
            device: copy.dstDevice,
            array: copy.dstArray,
            x: copy.dstXInBytes,
            y: copy.dstY,
            z: copy.dstZ,
            pitch: copy.dstPitch,
            rows: copy.dstHeight,
        };
        (dst.end(&shape)?, src.end(&shape)?, shape)
    }};
}

/// Destination, source and size of the copy that a graph's node makes.
pub fn of_node(copy: &CUDA_MEMCPY3D) -> Answer<(End, End, Shape)> {
    Ok(box_3d!(copy))
}

fn is_empty(shape: &Shape) -> bool {
    shape.width == 0 || shape.height == 0 || shape.depth == 0
}

fn box_at_once(default: DefaultStream, (dst, src, shape): (End, End, Shape)) -> Answer {
    if is_empty(&shape) {
        return Ok(());
    }
    Ok(boxed(dst, src, shape, default.is_per_thread())?)
}

fn box_in_stream(default: DefaultStream, (dst, src, shape): (End, End, Shape), stream: CUstream) -> Answer {
    let stream = default.resolve(stream)?;
    if is_empty(&shape) {
        return Ok(());
    }
    Ok(boxed_async(dst, src, shape, &stream)?)
}

pub fn memcpy_2d(_: &Arc<Context>, default: DefaultStream, copy: In<CUDA_MEMCPY2D>) -> Answer {
    box_at_once(default, box_2d(&copy.get()?)?)
}

/// Any pitch is as good as another here.
pub fn memcpy_2d_unaligned(context: &Arc<Context>, default: DefaultStream, copy: In<CUDA_MEMCPY2D>) -> Answer {
    memcpy_2d(context, default, copy)
}

pub fn memcpy_2d_async(_: &Arc<Context>, default: DefaultStream, copy: In<CUDA_MEMCPY2D>, stream: CUstream) -> Answer {
    box_in_stream(default, box_2d(&copy.get()?)?, stream)
}

pub fn memcpy_3d(_: &Arc<Context>, default: DefaultStream, copy: In<CUDA_MEMCPY3D>) -> Answer {
    box_at_once(default, box_3d!(copy.get()?))
}

pub fn memcpy_3d_async(_: &Arc<Context>, default: DefaultStream, copy: In<CUDA_MEMCPY3D>, stream: CUstream) -> Answer {
    box_in_stream(default, box_3d!(copy.get()?), stream)
}

pub fn memcpy_3d_peer(_: &Arc<Context>, default: DefaultStream, copy: In<CUDA_MEMCPY3D_PEER>) -> Answer {
    let copy = copy.get()?;
    peers(copy.dstContext, copy.srcContext)?;
    box_at_once(default, box_3d!(copy))
}

pub fn memcpy_3d_peer_async(
    _: &Arc<Context>,
    default: DefaultStream,
    copy: In<CUDA_MEMCPY3D_PEER>,
    stream: CUstream,
) -> Answer {
    let copy = copy.get()?;
    peers(copy.dstContext, copy.srcContext)?;
    box_in_stream(default, box_3d!(copy), stream)
}
