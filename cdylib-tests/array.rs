//! Arrays and mipmapped arrays: what is made, what is refused, what copies move.

use std::ptr::{null, null_mut};

use crate::c::*;

const FLOAT: u32 = 0x20;
const UINT8: u32 = 0x01;
const NV12: u32 = 0xb0;
const LAYERED: u32 = 1;
const SURFACE: u32 = 2;
const CUBEMAP: u32 = 4;
const GATHER: u32 = 8;
const HOST: u32 = 1;
const ARRAY: u32 = 3;

fn in_context() {
    ok(cuInit(0));
    let mut context = null_mut();
    ok(cuDevicePrimaryCtxRetain(&mut context, 0));
    ok(cuCtxSetCurrent(context));
}

fn descriptor(width: usize, height: usize, depth: usize, flags: u32) -> ArrayDescriptor {
    ArrayDescriptor {
        width,
        height,
        depth,
        format: FLOAT,
        channels: 1,
        flags,
    }
}

fn created(descriptor: &ArrayDescriptor) -> CUarray {
    let mut array = null_mut();
    ok(cuArray3DCreate(&mut array, descriptor));
    array
}

#[test]
fn descriptors_come_back() {
    in_context();
    for (width, height, depth, flags) in [
        (7, 0, 0, 0),
        (7, 5, 0, GATHER),
        (7, 5, 3, SURFACE),
        (7, 0, 3, LAYERED),
        (7, 5, 3, LAYERED | SURFACE | GATHER),
        (8, 8, 6, CUBEMAP),
        (8, 8, 12, CUBEMAP | LAYERED | SURFACE),
    ] {
        let asked = descriptor(width, height, depth, flags);
        let array = created(&asked);
        let mut found = ArrayDescriptor::default();
        ok(cuArray3DGetDescriptor(&mut found, array));
        assert_eq!(found, asked);
        let mut flat = ArrayDescriptor2::default();
        let expected = if depth == 0 {
            CUDA_SUCCESS
        } else {
            CUDA_ERROR_INVALID_VALUE
        };
        assert_eq!(cuArrayGetDescriptor(&mut flat, array), expected);
        ok(cuArrayDestroy(array));
        assert_eq!(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuArray3DGetDescriptor(&mut found, array), CUDA_ERROR_INVALID_HANDLE);
    }
}

#[test]
fn what_is_no_array_is_refused() {
    in_context();
    let mut array = null_mut();
    let good = descriptor(8, 8, 6, CUBEMAP);
    let bad = |change: fn(&mut ArrayDescriptor)| {
        let mut descriptor = good;
        change(&mut descriptor);
        let mut array = null_mut();
        assert_eq!(
            cuArray3DCreate(&mut array, &descriptor),
            CUDA_ERROR_INVALID_VALUE,
            "{descriptor:?}"
        );
    };
    bad(|d| d.width = 0);
    bad(|d| d.height = 7);
    bad(|d| d.depth = 5);
    bad(|d| (d.depth, d.flags) = (7, CUBEMAP | LAYERED));
    bad(|d| d.channels = 3);
    bad(|d| d.channels = 0);
    bad(|d| d.format = 0);
    bad(|d| d.format = 0x7fff_ffff);
    bad(|d| d.flags = 1 << 20);
    bad(|d| (d.flags, d.height) = (0, 0));
    bad(|d| (d.flags, d.depth) = (LAYERED, 0));
    bad(|d| (d.flags, d.width) = (0, 1 << 40));
    bad(|d| (d.flags, d.height, d.depth) = (GATHER, 0, 0));
    // UNORM_INT8X2 has two channels.
    bad(|d| (d.format, d.channels) = (0xc1, 4));
    assert_eq!(cuArray3DCreate(null_mut(), &good), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuArray3DCreate(&mut array, null()), CUDA_ERROR_INVALID_VALUE);
    for wild in [0usize, 1, usize::MAX, 0x1234_5678] {
        assert_eq!(cuArrayDestroy(wild as CUarray), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuMipmappedArrayDestroy(wild as CUarray), CUDA_ERROR_INVALID_HANDLE);
    }
}

#[test]
fn rows_move_by_offset() {
    in_context();
    let array = created(&descriptor(8, 0, 0, 0));
    let other = created(&descriptor(8, 0, 0, 0));
    let from: [f32; 8] = std::array::from_fn(|i| i as f32);
    let mut to = [0f32; 8];
    ok(cuMemcpyHtoA(array, 0, from.as_ptr().cast(), 32));
    ok(cuMemcpyAtoA(other, 8, array, 0, 24));
    ok(cuMemcpyHtoA(other, 0, from.as_ptr().cast(), 8));
    ok(cuMemcpyAtoH(to.as_mut_ptr().cast(), other, 0, 32));
    assert_eq!(to, [0.0, 1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let mut device = 0;
    ok(cuMemAlloc(&mut device, 32));
    ok(cuMemcpyAtoD(device, other, 16, 16));
    ok(cuMemcpyDtoA(array, 0, device, 16));
    let mut stream = null_mut();
    ok(cuStreamCreate(&mut stream, 0));
    ok(cuMemcpyAtoHAsync(to.as_mut_ptr().cast(), array, 0, 32, stream));
    ok(cuStreamSynchronize(stream));
    assert_eq!(to, [2.0, 3.0, 4.0, 5.0, 4.0, 5.0, 6.0, 7.0]);
    ok(cuMemcpyHtoAAsync(array, 28, from.as_ptr().cast(), 4, stream));
    ok(cuStreamSynchronize(stream));
    // Beyond the row.
    for (offset, bytes) in [(32, 4), (28, 8), (usize::MAX, 4), (0, 33)] {
        let mut long = [0u8; 64];
        let refused = cuMemcpyAtoH(long.as_mut_ptr().cast(), array, offset, bytes);
        assert_eq!(refused, CUDA_ERROR_INVALID_VALUE);
    }
    ok(cuMemFree(device));
    ok(cuStreamDestroy(stream));
    ok(cuArrayDestroy(array));
    assert_eq!(
        cuMemcpyHtoA(array, 0, from.as_ptr().cast(), 4),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuArrayDestroy(other));
}

#[test]
fn boxes_move_within_the_array() {
    in_context();
    let array = created(&descriptor(4, 3, 0, 0));
    let from: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let mut copy = Copy2D {
        src_x: 0,
        src_y: 0,
        src_type: HOST,
        src_host: from.as_ptr().cast(),
        src_device: 0,
        src_array: null_mut(),
        src_pitch: 16,
        dst_x: 0,
        dst_y: 0,
        dst_type: ARRAY,
        dst_host: null_mut(),
        dst_device: 0,
        dst_array: array,
        dst_pitch: 0,
        width: 16,
        height: 3,
    };
    ok(cuMemcpy2D(&copy));
    let mut to = [0f32; 4];
    let mut back = Copy2D {
        src_type: ARRAY,
        src_array: array,
        src_x: 4,
        src_y: 1,
        dst_type: HOST,
        dst_host: to.as_mut_ptr().cast(),
        dst_pitch: 8,
        width: 8,
        height: 2,
        ..copy
    };
    ok(cuMemcpy2D(&back));
    assert_eq!(to, [5.0, 6.0, 9.0, 10.0]);
    back.src_y = 2;
    assert_eq!(cuMemcpy2D(&back), CUDA_ERROR_INVALID_VALUE);
    (back.src_y, back.src_x) = (0, 12);
    assert_eq!(cuMemcpy2D(&back), CUDA_ERROR_INVALID_VALUE);
    copy.dst_array = 0x1000 as CUarray;
    assert_eq!(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
    ok(cuArrayDestroy(array));
}

#[test]
fn levels_halve() {
    in_context();
    let mut mipmap = null_mut();
    // More levels than there are sizes: as many as there are.
    ok(cuMipmappedArrayCreate(&mut mipmap, &descriptor(12, 5, 3, LAYERED), 100));
    for (number, (width, height)) in [(12, 5), (6, 2), (3, 1), (1, 1)].into_iter().enumerate() {
        let mut level = null_mut();
        ok(cuMipmappedArrayGetLevel(&mut level, mipmap, number as u32));
        let mut found = ArrayDescriptor::default();
        ok(cuArray3DGetDescriptor(&mut found, level));
        assert_eq!((found.width, found.height, found.depth), (width, height, 3));
        assert_eq!(cuArrayDestroy(level), CUDA_ERROR_INVALID_VALUE);
    }
    let mut level = null_mut();
    assert_eq!(
        cuMipmappedArrayGetLevel(&mut level, mipmap, 4),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuMipmappedArrayGetLevel(&mut level, mipmap, 0));
    ok(cuMipmappedArrayDestroy(mipmap));
    let mut found = ArrayDescriptor::default();
    assert_eq!(cuArray3DGetDescriptor(&mut found, level), CUDA_ERROR_INVALID_HANDLE);
}

#[test]
fn planes_have_formats_of_their_own() {
    in_context();
    let nv12 = ArrayDescriptor {
        format: NV12,
        channels: 3,
        ..descriptor(8, 4, 0, 0)
    };
    let array = created(&nv12);
    for (index, expected) in [(0, (8, 4, 1)), (1, (4, 2, 2))] {
        let mut plane = null_mut();
        ok(cuArrayGetPlane(&mut plane, array, index));
        let mut found = ArrayDescriptor::default();
        ok(cuArray3DGetDescriptor(&mut found, plane));
        assert_eq!((found.width, found.height, found.channels), expected);
        assert_eq!(found.format, UINT8);
    }
    let mut plane = null_mut();
    assert_eq!(cuArrayGetPlane(&mut plane, array, 2), CUDA_ERROR_INVALID_VALUE);
    ok(cuArrayDestroy(array));
    let plain = created(&descriptor(8, 4, 0, 0));
    assert_eq!(cuArrayGetPlane(&mut plane, plain, 0), CUDA_ERROR_INVALID_VALUE);
    // Neither sparse nor deferred.
    let mut room = [0u64; 16];
    let room = room.as_mut_ptr().cast();
    assert_eq!(cuArrayGetSparseProperties(room, plain), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuArrayGetMemoryRequirements(room, plain, 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuArrayDestroy(plain));
}

#[test]
fn arrays_take_memory_and_give_it_back() {
    let run = crate::alone::alone(crate::test_name!(), &[], || {
        ok(cuInit(0));
        let mut context = null_mut();
        ok(cuCtxCreate(&mut context, 0, 0));
        let free = || {
            let (mut free, mut total) = (0, 0);
            ok(cuMemGetInfo(&mut free, &mut total));
            free
        };
        let before = free();
        let array = created(&descriptor(1024, 1024, 0, 0));
        assert!(before - free() >= 4 << 20);
        ok(cuArrayDestroy(array));
        assert_eq!(free(), before);
        let layers = ArrayDescriptor {
            channels: 4,
            ..descriptor(16384, 16384, 2048, LAYERED)
        };
        let mut none = null_mut();
        assert_eq!(cuArray3DCreate(&mut none, &layers), CUDA_ERROR_OUT_OF_MEMORY);
        // The context takes what is left with it.
        created(&descriptor(1024, 1024, 0, 0));
        ok(cuCtxDestroy(context));
        ok(cuCtxCreate(&mut context, 0, 0));
        assert_eq!(free(), before);
    });
    drop(run);
}
