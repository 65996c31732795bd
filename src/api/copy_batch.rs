//! Memory management: copies with attributes, one or many in one call, and decompression.
//!
//! The copies are made by `driver/memory/batch.rs` and `decompress.rs`, as one command of a stream.

use super::call::{Answer, DefaultStream, Out, require};
use super::types::*;
use super::unified::{Spread, stream_of_batch};
use crate::driver::array::Array;
use crate::driver::batch::{self, Failed};
use crate::driver::copy::{Access, Copy, End, Place, Shape};
use crate::driver::decompress::{self, Algorithm, Piece};
use crate::driver::{Context, Stream, format_bytes};
use std::sync::Arc;

/// The flag is a hint: copies and kernels share the processors.
fn check_flags(flags: c_uint) -> Answer {
    require(CUmemcpyFlags::from_raw(flags).name().is_some())
}

fn access(order: CUmemcpySrcAccessOrder) -> Answer<Access> {
    use CUmemcpySrcAccessOrder as Order;
    match order {
        Order::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM => Ok(Access::Stream),
        Order::CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL => Ok(Access::DuringCall),
        Order::CU_MEMCPY_SRC_ACCESS_ORDER_ANY => Ok(Access::Any),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

fn order(access: Access) -> CUmemcpySrcAccessOrder {
    use CUmemcpySrcAccessOrder as Order;
    match access {
        Access::Stream => Order::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
        Access::DuringCall => Order::CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
        Access::Any => Order::CU_MEMCPY_SRC_ACCESS_ORDER_ANY,
    }
}

/// Hints of locations are for memory that moves: there is one memory.
fn linear(dst: CUdeviceptr, src: CUdeviceptr, bytes: usize, attributes: &CUmemcpyAttributes) -> Answer<Copy> {
    check_flags(attributes.flags)?;
    let line = |address| End {
        place: Place::Unified(address),
        pitch: 0,
        rows: 0,
    };
    Ok(Copy {
        dst: line(dst),
        src: line(src),
        shape: Shape {
            width: bytes as u64,
            height: 1,
            depth: 1,
        },
        access: access(attributes.srcAccessOrder)?,
    })
}

/// The arrays of a batch of linear copies, of a call or of a graph's node.
pub struct Lists {
    pub dsts: Out<CUdeviceptr>,
    pub srcs: Out<CUdeviceptr>,
    pub sizes: Out<usize>,
    pub count: usize,
    pub attributes: Out<CUmemcpyAttributes>,
    pub indices: Out<usize>,
    pub parts: usize,
}

impl Lists {
    pub fn copies(&self) -> Result<Vec<Copy>, (Option<usize>, CUresult)> {
        let general = |error| (None, error);
        let given = !self.dsts.is_null() && !self.srcs.is_null() && !self.sizes.is_null() && !self.attributes.is_null();
        require(self.count > 0 && given).map_err(general)?;
        let spread = Spread::read(self.indices, self.parts, self.count).map_err(general)?;
        (0..self.count)
            .map(|index| {
                let copy = || {
                    linear(
                        self.dsts.get_at(index)?,
                        self.srcs.get_at(index)?,
                        self.sizes.get_at(index)?,
                        &self.attributes.get_at(spread.of(index))?,
                    )
                };
                copy().map_err(|error| (Some(index), error))
            })
            .collect()
    }
}

/// What a node's record holds: destinations, sources, sizes, attributes, and one index for each.
pub type Records = (
    Vec<CUdeviceptr>,
    Vec<CUdeviceptr>,
    Vec<usize>,
    Vec<CUmemcpyAttributes>,
    Vec<usize>,
);

/// The arrays of copies, as a graph's node gives them back: attributes for each.
pub fn records(copies: &[Copy]) -> Records {
    let nowhere = CUmemLocation {
        r#type: CUmemLocationType::CU_MEM_LOCATION_TYPE_NONE,
        anonymous: CUmemLocation_st_anonymous { id: 0 },
    };
    let attributes = |copy: &Copy| CUmemcpyAttributes {
        srcAccessOrder: order(copy.access),
        srcLocHint: nowhere,
        dstLocHint: nowhere,
        flags: 0,
    };
    (
        copies.iter().map(|copy| copy.dst.place.address()).collect(),
        copies.iter().map(|copy| copy.src.place.address()).collect(),
        copies.iter().map(|copy| copy.shape.width as usize).collect(),
        copies.iter().map(attributes).collect(),
        (0..copies.len()).collect(),
    )
}

/// The first versions say which copy it was; `SIZE_MAX` is none of them.
fn tell(fail_index: Out<usize>, failed: Option<usize>) {
    fail_index.set_if_any(failed.unwrap_or(usize::MAX));
}

fn submit(copies: &[Copy], stream: &Arc<Stream>) -> Result<(), (Option<usize>, CUresult)> {
    batch::copy(copies, stream).map_err(|(index, error): Failed| (index, error.into()))
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn memcpy_batch_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dsts: Out<CUdeviceptr>,
    srcs: Out<CUdeviceptr>,
    sizes: Out<usize>,
    count: usize,
    attributes: Out<CUmemcpyAttributes>,
    indices: Out<usize>,
    parts: usize,
    fail_index: Out<usize>,
    stream: CUstream,
) -> Answer {
    let lists = Lists {
        dsts,
        srcs,
        sizes,
        count,
        attributes,
        indices,
        parts,
    };
    let run = || {
        let copies = lists.copies()?;
        let stream = stream_of_batch(default, stream).map_err(|error| (None, error))?;
        submit(&copies, &stream)
    };
    run().map_err(|(index, error)| {
        tell(fail_index, index);
        error
    })
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn memcpy_batch_async_v2(
    context: &Arc<Context>,
    default: DefaultStream,
    dsts: Out<CUdeviceptr>,
    srcs: Out<CUdeviceptr>,
    sizes: Out<usize>,
    count: usize,
    attributes: Out<CUmemcpyAttributes>,
    indices: Out<usize>,
    parts: usize,
    stream: CUstream,
) -> Answer {
    // SAFETY: a null pointer.
    let nobody = unsafe { Out::from_c(std::ptr::null_mut()) };
    memcpy_batch_async(
        context, default, dsts, srcs, sizes, count, attributes, indices, parts, nobody, stream,
    )
}

pub fn memcpy_with_attributes_async(
    _: &Arc<Context>,
    default: DefaultStream,
    dst: CUdeviceptr,
    src: CUdeviceptr,
    size: usize,
    attributes: Out<CUmemcpyAttributes>,
    stream: CUstream,
) -> Answer {
    let copy = linear(dst, src, size, &attributes.get_at(0)?)?;
    submit(&[copy], &default.resolve(stream)?).map_err(|(_, error)| error)
}

/// An array and where in it, or an address: one end of a box.
enum Operand {
    Array(Arc<Array>, [u64; 3]),
    Pointer(CUmemcpy3DOperand_st_op_ptr),
}

fn operand(of: &CUmemcpy3DOperand) -> Answer<Operand> {
    match of.r#type {
        CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER => {
            // SAFETY: the member that goes with the type; all bit patterns are numbers.
            Ok(Operand::Pointer(unsafe { of.op.ptr }))
        }
        CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_ARRAY => {
            // SAFETY: the member that goes with the type; a handle and numbers may have any bits.
            let member = unsafe { of.op.array };
            let array = Array::from_handle(member.array as usize).map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
            let at = [member.offset.x, member.offset.y, member.offset.z];
            Ok(Operand::Array(array, at.map(|at| at as u64)))
        }
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

impl Operand {
    /// Bytes of an element; `None`: as the other end has it.
    fn element(&self) -> Answer<Option<u64>> {
        match self {
            Operand::Array(array, _) => {
                let descriptor = array.descriptor();
                Ok(Some(format_bytes(descriptor.format, descriptor.channels)?))
            }
            Operand::Pointer(_) => Ok(None),
        }
    }

    /// Rows and layers are as long as the box, or longer.
    fn end(&self, element: u64, extent: &CUextent3D, shape: &Shape) -> Answer<End> {
        match self {
            Operand::Array(array, [x, y, z]) => {
                let x = x.checked_mul(element).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
                Ok(End::of_array(array, [x, *y, *z], shape)?)
            }
            Operand::Pointer(pointer) => {
                require(pointer.rowLength == 0 || pointer.rowLength >= extent.width)?;
                require(pointer.layerHeight == 0 || pointer.layerHeight >= extent.height)?;
                let pitch = (pointer.rowLength as u64).checked_mul(element);
                Ok(End {
                    place: Place::Unified(pointer.ptr),
                    pitch: pitch.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?,
                    rows: pointer.layerHeight as u64,
                })
            }
        }
    }
}

fn boxed(of: &CUDA_MEMCPY3D_BATCH_OP) -> Answer<Copy> {
    check_flags(of.flags)?;
    let access = access(of.srcAccessOrder)?;
    let (src, dst) = (operand(&of.src)?, operand(&of.dst)?);
    let element = match (src.element()?, dst.element()?) {
        (Some(a), Some(b)) if a != b => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        (a, b) => a.or(b).unwrap_or(1),
    };
    let extent = of.extent;
    require(extent.width > 0 && extent.height > 0 && extent.depth > 0)?;
    let width = (extent.width as u64).checked_mul(element);
    let shape = Shape {
        width: width.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?,
        height: extent.height as u64,
        depth: extent.depth as u64,
    };
    Ok(Copy {
        dst: dst.end(element, &extent, &shape)?,
        src: src.end(element, &extent, &shape)?,
        shape,
        access,
    })
}

pub fn memcpy_3d_batch_async(
    _: &Arc<Context>,
    default: DefaultStream,
    count: usize,
    list: Out<CUDA_MEMCPY3D_BATCH_OP>,
    fail_index: Out<usize>,
    flags: c_ulonglong,
    stream: CUstream,
) -> Answer {
    let run = || {
        let general = |error| (None, error);
        require(count > 0 && !list.is_null() && flags == 0).map_err(general)?;
        let copies = (0..count)
            .map(|index| {
                let copy = list.get_at(index).and_then(|of| boxed(&of));
                copy.map_err(|error| (Some(index), error))
            })
            .collect::<Result<Vec<Copy>, _>>()?;
        submit(&copies, &stream_of_batch(default, stream).map_err(general)?)
    };
    run().map_err(|(index, error)| {
        tell(fail_index, index);
        error
    })
}

pub fn memcpy_3d_batch_async_v2(
    context: &Arc<Context>,
    default: DefaultStream,
    count: usize,
    list: Out<CUDA_MEMCPY3D_BATCH_OP>,
    flags: c_ulonglong,
    stream: CUstream,
) -> Answer {
    // SAFETY: a null pointer.
    let nobody = unsafe { Out::from_c(std::ptr::null_mut()) };
    memcpy_3d_batch_async(context, default, count, list, nobody, flags, stream)
}

pub fn memcpy_3d_with_attributes_async(
    _: &Arc<Context>,
    default: DefaultStream,
    op: Out<CUDA_MEMCPY3D_BATCH_OP>,
    flags: c_ulonglong,
    stream: CUstream,
) -> Answer {
    require(flags == 0)?;
    let copy = boxed(&op.get_at(0)?)?;
    submit(&[copy], &default.resolve(stream)?).map_err(|(_, error)| error)
}

fn piece(of: &CUmemDecompressParams) -> Answer<Piece> {
    use CUmemDecompressAlgorithm as A;
    require(of.padding == [0; 20])?;
    Ok(Piece {
        src: of.src as u64,
        src_bytes: of.srcNumBytes as u64,
        dst: of.dst as u64,
        dst_bytes: of.dstNumBytes as u64,
        actual: of.dstActBytes as u64,
        algorithm: match of.algo {
            A::CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE => Algorithm::Deflate,
            A::CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY => Algorithm::Snappy,
            A::CU_MEM_DECOMPRESS_ALGORITHM_LZ4 => Algorithm::Lz4,
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        },
    })
}

pub fn mem_batch_decompress_async(
    _: &Arc<Context>,
    default: DefaultStream,
    params: Out<CUmemDecompressParams>,
    count: usize,
    flags: c_uint,
    error_index: Out<usize>,
    stream: CUstream,
) -> Answer {
    let run = || {
        let general = |error| (None, error);
        require(count > 0 && flags == 0 && !params.is_null()).map_err(general)?;
        let pieces = (0..count)
            .map(|index| {
                let piece = params.get_at(index).and_then(|of| piece(&of));
                piece.map_err(|error| (Some(index), error))
            })
            .collect::<Result<Vec<Piece>, _>>()?;
        let stream = default.resolve(stream).map_err(general)?;
        decompress::decompress(&pieces, &stream).map_err(|(index, error)| (index, error.into()))
    };
    run().map_err(|(index, error)| {
        tell(error_index, index);
        error
    })
}

/// What the record of a graph's node holds.
pub fn of_node(record: &CUDA_MEMCPY_BATCH_NODE_PARAMS) -> Answer<Vec<Copy>> {
    // SAFETY: the caller's arrays (manual, CUDA_MEMCPY_BATCH_NODE_PARAMS).
    let lists = unsafe {
        Lists {
            dsts: Out::from_c(record.dsts),
            srcs: Out::from_c(record.srcs),
            sizes: Out::from_c(record.sizes),
            count: record.count,
            attributes: Out::from_c(record.attrs),
            indices: Out::from_c(record.attrsIdxs),
            parts: record.numAttrs,
        }
    };
    lists.copies().map_err(|(_, error)| error)
}
