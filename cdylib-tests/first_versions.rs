//! The first versions of calls about arrays, with sizes of 32 bits, and what is left of texture references.

use crate::basics::context;
use crate::c::*;
use crate::graph_types::zeroed;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

/// `CUDA_ARRAY_DESCRIPTOR_v1`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flat {
    width: c_uint,
    height: c_uint,
    format: c_uint,
    channels: c_uint,
}

/// `CUDA_ARRAY3D_DESCRIPTOR_v1`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deep {
    width: c_uint,
    height: c_uint,
    depth: c_uint,
    format: c_uint,
    channels: c_uint,
    flags: c_uint,
}

functions! {
    cuArrayCreate_v1 = "cuArrayCreate" (array: *mut CUarray, descriptor: *const Flat);
    cuArrayGetDescriptor_v1 = "cuArrayGetDescriptor" (descriptor: *mut Flat, array: CUarray);
    cuArray3DCreate_v1 = "cuArray3DCreate" (array: *mut CUarray, descriptor: *const Deep);
    cuArray3DGetDescriptor_v1 = "cuArray3DGetDescriptor" (descriptor: *mut Deep, array: CUarray);
    cuMemcpyHtoA_v1 = "cuMemcpyHtoA" (to: CUarray, offset: c_uint, from: *const c_void, bytes: c_uint);
    cuMemcpyAtoH_v1 = "cuMemcpyAtoH" (to: *mut c_void, from: CUarray, offset: c_uint, bytes: c_uint);
    cuMemcpyAtoA_v1 = "cuMemcpyAtoA" (to: CUarray, offset: c_uint, from: CUarray, source: c_uint, bytes: c_uint);
    cuMemcpyHtoAAsync_v1 = "cuMemcpyHtoAAsync" (
        to: CUarray,
        offset: c_uint,
        from: *const c_void,
        bytes: c_uint,
        stream: CUstream,
    );
    cuMemcpyAtoHAsync_v1 = "cuMemcpyAtoHAsync" (
        to: *mut c_void,
        from: CUarray,
        offset: c_uint,
        bytes: c_uint,
        stream: CUstream,
    );
    cuTexRefSetAddress_v1 = "cuTexRefSetAddress" (
        offset: *mut c_uint,
        reference: CUtexref,
        pointer: c_uint,
        bytes: c_uint,
    );
    cuTexRefGetAddress_v1 = "cuTexRefGetAddress" (pointer: *mut c_uint, reference: CUtexref);
    cuTexRefSetAddress2D_v1 = "cuTexRefSetAddress2D" (
        reference: CUtexref,
        descriptor: *const Flat,
        pointer: c_uint,
        pitch: c_uint,
    );
    cuTexRefSetAddress2D_v2(
        reference: CUtexref,
        descriptor: *const ArrayDescriptor2,
        pointer: CUdeviceptr,
        pitch: usize,
    );
    cuTexRefSetAddress2D = "cuTexRefSetAddress2D_v3" (
        reference: CUtexref,
        descriptor: *const ArrayDescriptor2,
        pointer: CUdeviceptr,
        pitch: usize,
    );
    cuTexRefGetMipmappedArray(mipmap: *mut CUmipmappedArray, reference: CUtexref);
    cuTexRefGetMipmapFilterMode(mode: *mut c_uint, reference: CUtexref);
    cuTexRefSetMipmapLevelBias(reference: CUtexref, bias: f32);
    cuTexRefGetMipmapLevelBias(bias: *mut f32, reference: CUtexref);
    cuTexRefGetMipmapLevelClamp(least: *mut f32, most: *mut f32, reference: CUtexref);
    cuTexRefSetMaxAnisotropy(reference: CUtexref, most: c_uint);
    cuTexRefGetMaxAnisotropy(most: *mut c_int, reference: CUtexref);
    cuMipmappedArrayGetSparseProperties(properties: *mut c_void, mipmap: CUmipmappedArray);
    cuMipmappedArrayGetMemoryRequirements(
        requirements: *mut c_void,
        mipmap: CUmipmappedArray,
        device: CUdevice,
    );
}

const UINT8: c_uint = 1;

#[test]
fn arrays_are_made_with_old_records() {
    let context = context();
    let (mut array, mut other) = (null_mut(), null_mut());
    let flat = Flat {
        width: 32,
        height: 4,
        format: UINT8,
        channels: 2,
    };
    ok(cuArrayCreate_v1(&mut array, &flat));
    let mut found = zeroed();
    ok(cuArrayGetDescriptor_v1(&mut found, array));
    assert_eq!(found, flat);
    let deep = Deep {
        width: 32,
        height: 4,
        depth: 2,
        format: UINT8,
        channels: 2,
        flags: 0,
    };
    ok(cuArray3DCreate_v1(&mut other, &deep));
    let mut found = zeroed();
    ok(cuArray3DGetDescriptor_v1(&mut found, other));
    assert_eq!(found, deep);
    // The same arrays as those of the later versions.
    let mut wide = ArrayDescriptor::default();
    ok(cuArray3DGetDescriptor(&mut wide, other));
    assert_eq!((wide.width, wide.height, wide.depth), (32, 4, 2));

    // Copies by offset are for one-dimensional arrays.
    let (mut line, mut second) = (null_mut(), null_mut());
    let row = Flat {
        width: 128,
        height: 0,
        format: UINT8,
        channels: 1,
    };
    ok(cuArrayCreate_v1(&mut line, &row));
    ok(cuArrayCreate_v1(&mut second, &row));
    let texels: Vec<u8> = (0..64).collect();
    let mut back = [0_u8; 64];
    let (from, to): (*const c_void, *mut c_void) = (texels.as_ptr().cast(), back.as_mut_ptr().cast());
    ok(cuMemcpyHtoA_v1(line, 64, from, 64));
    ok(cuMemcpyAtoA_v1(second, 0, line, 64, 32));
    ok(cuMemcpyHtoAAsync_v1(second, 32, from, 32, null_mut()));
    ok(cuMemcpyAtoHAsync_v1(to, second, 0, 32, null_mut()));
    ok(cuMemcpyAtoH_v1(to.wrapping_byte_add(32), second, 32, 32));
    ok(cuCtxSynchronize());
    assert_eq!((&back[..32], &back[32..]), (&texels[..32], &texels[..32]));

    assert_eq!(cuArrayCreate_v1(&mut array, null()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuArrayCreate_v1(null_mut(), &flat), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuArrayCreate_v1(&mut array, &Flat { width: 0, ..flat }),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuArray3DCreate_v1(&mut array, null()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuArray3DCreate_v1(&mut array, &Deep { channels: 3, ..deep }),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuArrayGetDescriptor_v1(null_mut(), array), CUDA_ERROR_INVALID_VALUE);
    // It has slices, which that record cannot say.
    assert_eq!(cuArrayGetDescriptor_v1(&mut zeroed(), other), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuArrayGetDescriptor_v1(&mut zeroed(), null_mut()),
        CUDA_ERROR_INVALID_HANDLE
    );
    assert_eq!(
        cuArray3DGetDescriptor_v1(&mut zeroed(), null_mut()),
        CUDA_ERROR_INVALID_HANDLE
    );
    assert_ne!(cuMemcpyHtoA_v1(null_mut(), 0, from, 8), CUDA_SUCCESS);
    assert_ne!(cuMemcpyAtoH_v1(to, line, 100, 64), CUDA_SUCCESS);
    assert_ne!(cuMemcpyAtoA_v1(line, 0, null_mut(), 0, 8), CUDA_SUCCESS);
    assert_ne!(cuMemcpyHtoAAsync_v1(line, 0, null(), 8, null_mut()), CUDA_SUCCESS);
    assert_eq!(
        cuMemcpyAtoHAsync_v1(to, line, 0, 8, from.cast_mut()),
        CUDA_ERROR_INVALID_HANDLE
    );
    // Arrays here are neither sparse nor without memory: so the manual answers for those that are not.
    let mut mipmap = null_mut();
    ok(cuMipmappedArrayCreate(&mut mipmap, &wide, 2));
    let mut properties = [0_u64; 16];
    let place: *mut c_void = properties.as_mut_ptr().cast();
    assert_eq!(
        cuMipmappedArrayGetSparseProperties(place, mipmap),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuMipmappedArrayGetMemoryRequirements(place, mipmap, 0),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuMipmappedArrayGetSparseProperties(place, null_mut()),
        CUDA_ERROR_INVALID_HANDLE
    );
    assert_eq!(
        cuMipmappedArrayGetMemoryRequirements(place, null_mut(), 0),
        CUDA_ERROR_INVALID_HANDLE
    );
    assert_eq!(
        cuMipmappedArrayGetMemoryRequirements(place, mipmap, 99),
        CUDA_ERROR_INVALID_DEVICE
    );
    assert_eq!(
        cuMipmappedArrayGetSparseProperties(null_mut(), mipmap),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuCtxDestroy(context));
}

#[test]
fn references_keep_what_they_are_told() {
    let context = context();
    let (mut reference, mut mipmap) = (null_mut(), null_mut());
    ok(cuTexRefCreate(&mut reference));
    let levels = ArrayDescriptor {
        width: 16,
        height: 16,
        format: UINT8,
        channels: 1,
        ..ArrayDescriptor::default()
    };
    ok(cuMipmappedArrayCreate(&mut mipmap, &levels, 3));
    ok(cuTexRefSetMipmappedArray(reference, mipmap, 1));
    let mut found = null_mut();
    ok(cuTexRefGetMipmappedArray(&mut found, reference));
    assert_eq!(found, mipmap);
    for mode in [0, 1] {
        let mut is = 9;
        ok(cuTexRefSetMipmapFilterMode(reference, mode));
        ok(cuTexRefGetMipmapFilterMode(&mut is, reference));
        assert_eq!(is, mode);
    }
    let (mut bias, mut least, mut most, mut anisotropy) = (9.0, 9.0, 9.0, 9);
    ok(cuTexRefSetMipmapLevelBias(reference, -1.5));
    ok(cuTexRefGetMipmapLevelBias(&mut bias, reference));
    assert_eq!(bias, -1.5);
    ok(cuTexRefSetMipmapLevelClamp(reference, 0.25, 2.5));
    ok(cuTexRefGetMipmapLevelClamp(&mut least, &mut most, reference));
    assert_eq!((least, most), (0.25, 2.5));
    ok(cuTexRefSetMaxAnisotropy(reference, 8));
    ok(cuTexRefGetMaxAnisotropy(&mut anisotropy, reference));
    assert_eq!(anisotropy, 8);
    // Pitched memory, by both versions that know of 64 bits.
    let flat = ArrayDescriptor2 {
        width: 64,
        height: 8,
        format: UINT8,
        channels: 1,
    };
    let mut pointer = 0;
    ok(cuMemAlloc(&mut pointer, 512 * 8));
    for call in [cuTexRefSetAddress2D_v2, cuTexRefSetAddress2D] {
        ok(call(reference, &flat, pointer, 512));
        let mut bound = 0;
        ok(cuTexRefGetAddress(&mut bound, reference));
        assert_eq!(bound, pointer);
        assert_eq!(call(reference, null(), pointer, 512), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(call(reference, &flat, pointer, 32), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(call(reference, &flat, pointer + 1, 512), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(call(reference, &flat, 16, 512), CUDA_ERROR_INVALID_VALUE);
        assert_ne!(call(null_mut(), &flat, pointer, 512), CUDA_SUCCESS);
    }
    // No longer an array.
    assert_ne!(cuTexRefGetMipmappedArray(&mut found, reference), CUDA_SUCCESS);
    // Addresses of 32 bits are none here.
    let (mut offset, mut narrow) = (0, 0);
    assert_eq!(cuTexRefSetAddress_v1(&mut offset, reference, 0x1000, 64), 801);
    assert_eq!(cuTexRefGetAddress_v1(&mut narrow, reference), 801);
    assert_eq!(cuTexRefSetAddress2D_v1(reference, null(), 0x1000, 64), 801);
    ok(cuTexRefDestroy(reference));
    assert_ne!(cuTexRefGetMipmapLevelBias(&mut bias, reference), CUDA_SUCCESS);
    assert_ne!(cuTexRefGetMipmapFilterMode(&mut offset, reference), CUDA_SUCCESS);
    assert_ne!(cuTexRefGetMaxAnisotropy(&mut anisotropy, reference), CUDA_SUCCESS);
    assert_ne!(
        cuTexRefGetMipmapLevelClamp(&mut least, &mut most, reference),
        CUDA_SUCCESS
    );
    ok(cuCtxDestroy(context));
}
