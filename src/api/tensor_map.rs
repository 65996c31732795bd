//! Tensor maps: how bulk copies of kernels go through a tensor in global memory.
//!
//! The 128 bytes are written in `memory/tensor_map/`; here are the manual's rules for what may be encoded.

use super::call::{Answer, In, Out, require};
use super::types::*;
use crate::driver::Context;
use crate::memory::tensor_map::{Element, Interleave, MOST, Mode, TensorMap, swizzle_from_number};
use std::sync::Arc;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
/// `CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED`.
const SUPPORTED: i32 = 127;

/// The place of a map, on a device that has them. The manual asks for a multiple of 64, which matters where a kernel's copies
/// find the map, not here: cuda.core keeps maps in Python's objects, which are aligned to 16.
fn place(context: &Arc<Context>, map: Out<CUtensorMap>) -> Answer<Out<CUtensorMap>> {
    map.required()?;
    match context.device().attribute(SUPPORTED) {
        0 => Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
        _ => Ok(map),
    }
}

/// As many numbers as there are dimensions, the rest 0.
fn numbers<T: Copy, const N: usize>(of: In<T>, count: usize) -> Answer<[T; N]>
where
    [T; N]: Default,
{
    let mut numbers = <[T; N]>::default();
    for (index, number) in numbers.iter_mut().enumerate().take(count) {
        *number = of.at(index)?;
    }
    Ok(numbers)
}

/// What all maps have in common, as the calls take it.
struct Common {
    element: CUtensorMapDataType,
    rank: cuuint32_t,
    address: *mut c_void,
    dims: In<cuuint64_t>,
    strides: In<cuuint64_t>,
    steps: In<cuuint32_t>,
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    promotion: CUtensorMapL2promotion,
    fill: CUtensorMapFloatOOBfill,
}

impl Common {
    fn map(&self) -> Answer<TensorMap> {
        let rank = self.rank as usize;
        require((1..=MOST).contains(&rank))?;
        require(self.promotion.name().is_some() && self.fill.name().is_some())?;
        Ok(TensorMap {
            element: Element::from_number(self.element.0).ok_or(INVALID)?,
            rank: rank as u8,
            address: self.address as u64,
            dims: numbers(self.dims, rank)?,
            strides: numbers(self.strides, rank - 1)?,
            steps: numbers(self.steps, rank)?,
            interleave: Interleave::from_number(self.interleave.0).ok_or(INVALID)?,
            swizzle: swizzle_from_number(self.swizzle.0).ok_or(INVALID)?,
            promotion: self.promotion.0 as u8,
            fills_nan: self.fill.0 != 0,
            ..TensorMap::EMPTY
        })
    }
}

fn write(place: Out<CUtensorMap>, map: &TensorMap) -> Answer {
    require(map.wrong().is_none())?;
    put(place, &map.encode())
}

fn put(place: Out<CUtensorMap>, bytes: &[u8; 128]) -> Answer {
    let word = |index: usize| u64::from_le_bytes(bytes[index * 8..index * 8 + 8].try_into().unwrap_or_default());
    place.set(CUtensorMap {
        opaque: std::array::from_fn(word),
    })
}

fn read(place: Out<CUtensorMap>) -> Answer<TensorMap> {
    let words = place.get_at(0)?.opaque;
    let mut bytes = [0; 128];
    for (index, word) in words.iter().enumerate() {
        bytes[index * 8..index * 8 + 8].copy_from_slice(&word.to_le_bytes());
    }
    TensorMap::decode(&bytes).map_err(|_| INVALID)
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn tensor_map_encode_tiled(
    context: &Arc<Context>,
    tensor_map: Out<CUtensorMap>,
    element: CUtensorMapDataType,
    rank: cuuint32_t,
    address: *mut c_void,
    dims: In<cuuint64_t>,
    strides: In<cuuint64_t>,
    tile: In<cuuint32_t>,
    steps: In<cuuint32_t>,
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    promotion: CUtensorMapL2promotion,
    fill: CUtensorMapFloatOOBfill,
) -> Answer {
    let place = place(context, tensor_map)?;
    let common = Common {
        element,
        rank,
        address,
        dims,
        strides,
        steps,
        interleave,
        swizzle,
        promotion,
        fill,
    };
    let map = common.map()?;
    let map = TensorMap {
        tile: numbers(tile, map.rank.into())?,
        ..map
    };
    write(place, &map)
}

/// The corners are in the order of the dimensions that they are of: W, H, D.
#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn tensor_map_encode_im2col(
    context: &Arc<Context>,
    tensor_map: Out<CUtensorMap>,
    element: CUtensorMapDataType,
    rank: cuuint32_t,
    address: *mut c_void,
    dims: In<cuuint64_t>,
    strides: In<cuuint64_t>,
    lower: In<c_int>,
    upper: In<c_int>,
    channels: cuuint32_t,
    pixels: cuuint32_t,
    steps: In<cuuint32_t>,
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    promotion: CUtensorMapL2promotion,
    fill: CUtensorMapFloatOOBfill,
) -> Answer {
    let place = place(context, tensor_map)?;
    let common = Common {
        element,
        rank,
        address,
        dims,
        strides,
        steps,
        interleave,
        swizzle,
        promotion,
        fill,
    };
    let map = common.map()?;
    let spatial = usize::from(map.rank).saturating_sub(2);
    let map = TensorMap {
        mode: Mode::Im2col,
        lower: numbers(lower, spatial)?,
        upper: numbers(upper, spatial)?,
        channels,
        pixels,
        ..map
    };
    write(place, &map)
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn tensor_map_encode_im2col_wide(
    context: &Arc<Context>,
    tensor_map: Out<CUtensorMap>,
    element: CUtensorMapDataType,
    rank: cuuint32_t,
    address: *mut c_void,
    dims: In<cuuint64_t>,
    strides: In<cuuint64_t>,
    lower: c_int,
    upper: c_int,
    channels: cuuint32_t,
    pixels: cuuint32_t,
    steps: In<cuuint32_t>,
    interleave: CUtensorMapInterleave,
    mode: CUtensorMapIm2ColWideMode,
    swizzle: CUtensorMapSwizzle,
    promotion: CUtensorMapL2promotion,
    fill: CUtensorMapFloatOOBfill,
) -> Answer {
    let place = place(context, tensor_map)?;
    let common = Common {
        element,
        rank,
        address,
        dims,
        strides,
        steps,
        interleave,
        swizzle,
        promotion,
        fill,
    };
    let (mode, pixels) = match mode {
        CUtensorMapIm2ColWideMode::CU_TENSOR_MAP_IM2COL_WIDE_MODE_W => (Mode::Im2colW, pixels),
        // It says nothing here (manual).
        CUtensorMapIm2ColWideMode::CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 => (Mode::Im2colW128, 0),
        _ => return Err(INVALID),
    };
    let map = TensorMap {
        mode,
        lower: [lower, 0, 0],
        upper: [upper, 0, 0],
        channels,
        pixels,
        ..common.map()?
    };
    write(place, &map)
}

pub fn tensor_map_replace_address(
    context: &Arc<Context>,
    tensor_map: Out<CUtensorMap>,
    address: *mut c_void,
) -> Answer {
    let place = place(context, tensor_map)?;
    let map = TensorMap {
        address: address as u64,
        ..read(place)?
    };
    write(place, &map)
}

/// What lies outside of a tensor has no address here, so that the class has no effect, and is the small one.
pub fn tensor_map_set_allocation_class(
    context: &Arc<Context>,
    tensor_map: Out<CUtensorMap>,
    class: CUtensorMapAllocClass,
    class_out: Out<CUtensorMapAllocClass>,
) -> Answer {
    class_out.set_if_any(CUtensorMapAllocClass::CU_TENSOR_MAP_ALLOC_CLASS_SMALL);
    let place = place(context, tensor_map)?;
    require(class.name().is_some())?;
    read(place).map(drop)
}
