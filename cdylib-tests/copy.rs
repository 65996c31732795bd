//! Memory Management: copies of lines and boxes, between devices too; and how fast.

use crate::alone::alone;
use crate::basics::alloc;
use crate::c::*;
use crate::graph_types::zeroed;
use crate::test_name;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

functions! {
    cuMemcpyAsync(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyHtoDAsync = "cuMemcpyHtoDAsync_v2" (
        to: CUdeviceptr,
        from: *const c_void,
        bytes: usize,
        stream: CUstream,
    );
    cuMemcpyDtoHAsync = "cuMemcpyDtoHAsync_v2" (to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyDtoDAsync = "cuMemcpyDtoDAsync_v2" (
        to: CUdeviceptr,
        from: CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    );
    cuMemcpy2DUnaligned = "cuMemcpy2DUnaligned_v2" (copy: *const Copy2D);
    cuMemcpy2DAsync = "cuMemcpy2DAsync_v2" (copy: *const Copy2D, stream: CUstream);
    cuMemcpy3DAsync = "cuMemcpy3DAsync_v2" (copy: *const Copy3D, stream: CUstream);
    cuMemcpy3DPeer(copy: *const Copy3D);
    cuMemcpy3DPeerAsync(copy: *const Copy3D, stream: CUstream);
    cuMemcpyPeer(
        to: CUdeviceptr,
        to_context: CUcontext,
        from: CUdeviceptr,
        from_context: CUcontext,
        bytes: usize,
    );
    cuMemcpyPeerAsync(
        to: CUdeviceptr,
        to_context: CUcontext,
        from: CUdeviceptr,
        from_context: CUcontext,
        bytes: usize,
        stream: CUstream,
    );
    cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
    cuDeviceGetP2PAttribute(value: *mut c_int, attribute: c_uint, from: CUdevice, to: CUdevice);
    cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);
    cuCtxDisablePeerAccess(peer: CUcontext);
}

const HOST: c_uint = 1;
const DEVICE: c_uint = 2;
const UNIFIED: c_uint = 4;

fn context_of(device: CUdevice) -> CUcontext {
    let mut context = null_mut();
    ok(cuInit(0));
    ok(cuCtxCreate(&mut context, 0, device));
    context
}

fn context() -> CUcontext {
    context_of(0)
}

fn numbers(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index * 7 + index / 251) as u8).collect()
}

#[test]
fn lines_go_every_way() {
    const BYTES: usize = 300_001;
    let context = context();
    let mut stream = null_mut();
    ok(cuStreamCreate(&mut stream, 1));
    let source = numbers(BYTES);
    let (a, b) = (alloc(BYTES), alloc(BYTES));
    let mut back = vec![0_u8; BYTES];
    let from: *const c_void = source.as_ptr().cast();
    let to: *mut c_void = back.as_mut_ptr().cast();
    let check = |what: &str| {
        ok(cuStreamSynchronize(stream));
        ok(cuCtxSynchronize());
        // SAFETY: the vector's own memory, which nobody writes to any more.
        let found = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), BYTES) };
        assert!(found == source, "{what}");
        found.fill(0);
        ok(cuMemsetD8(a, 0, BYTES));
        ok(cuMemsetD8(b, 0, BYTES));
        ok(cuCtxSynchronize());
    };
    ok(cuMemcpyHtoD(a, from, BYTES));
    ok(cuMemcpyDtoD(b, a, BYTES));
    ok(cuMemcpyDtoH(to, b, BYTES));
    check("at once");
    ok(cuMemcpyHtoDAsync(a, from, BYTES, stream));
    ok(cuMemcpyDtoDAsync(b, a, BYTES, stream));
    ok(cuMemcpyDtoHAsync(to, b, BYTES, stream));
    check("in a stream");
    ok(cuMemcpy(a, from as u64, BYTES));
    ok(cuMemcpy(b, a, BYTES));
    ok(cuMemcpy(to as u64, b, BYTES));
    check("unified");
    ok(cuMemcpyAsync(a, from as u64, BYTES, stream));
    ok(cuMemcpyAsync(b, a, BYTES, stream));
    ok(cuMemcpyAsync(to as u64, b, BYTES, stream));
    check("unified, in a stream");
    ok(cuMemcpyPeer(a, context, from as u64, context, 0));
    ok(cuMemcpyHtoD(a, from, BYTES));
    ok(cuMemcpyPeer(b, context, a, context, BYTES));
    ok(cuCtxSynchronize());
    ok(cuMemcpyPeerAsync(a, context, b, context, BYTES, stream));
    ok(cuMemcpyDtoHAsync(to, a, BYTES, stream));
    check("between contexts");

    // Nothing moves if the memory is not there, one byte too short, or not a device's.
    let host = from as u64;
    for (pointer, bytes) in [
        (a, BYTES + 1),
        (a + BYTES as u64, 1),
        (host, 16),
        (0, 16),
        (8, 16),
        (u64::MAX, 16),
    ] {
        assert_eq!(cuMemcpyHtoD(pointer, from, bytes), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemcpyDtoH(to, pointer, bytes), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemcpyDtoD(pointer, b, bytes), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemcpyDtoD(b, pointer, bytes), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            cuMemcpyHtoDAsync(pointer, from, bytes, stream),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(cuMemcpyDtoHAsync(to, pointer, bytes, stream), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemcpyDtoDAsync(pointer, b, bytes, stream), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            cuMemcpyPeer(pointer, context, b, context, bytes),
            CUDA_ERROR_INVALID_VALUE
        );
    }
    assert_eq!(cuMemcpyHtoD(a, std::ptr::null(), 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuMemcpyDtoH(null_mut(), a, 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuMemcpy(0, a, 1), CUDA_ERROR_INVALID_VALUE);
    let nobody: CUstream = to.cast();
    assert_eq!(cuMemcpyAsync(a, b, 1, nobody), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuMemcpyPeer(a, null_mut(), b, context, 1), CUDA_ERROR_INVALID_CONTEXT);
    assert_eq!(
        cuMemcpyPeerAsync(a, context, b, to.cast(), 1, stream),
        CUDA_ERROR_INVALID_CONTEXT
    );
    ok(cuMemcpyHtoD(0, std::ptr::null(), 0));
    ok(cuCtxDestroy(context));
}

/// A box of `width` bytes and `height` rows, from (3, 2) in rows of 64 to (5, 1) in rows of 48.
fn flat(from: (c_uint, u64), to: (c_uint, u64)) -> Copy2D {
    let mut copy: Copy2D = zeroed();
    (copy.src_type, copy.src_device, copy.src_host) = (from.0, from.1, from.1 as *const c_void);
    (copy.dst_type, copy.dst_device, copy.dst_host) = (to.0, to.1, to.1 as *mut c_void);
    (copy.src_x, copy.src_y, copy.src_pitch) = (3, 2, 64);
    (copy.dst_x, copy.dst_y, copy.dst_pitch) = (5, 1, 48);
    (copy.width, copy.height) = (37, 6);
    copy
}

#[test]
fn flat_boxes_go_every_way() {
    let context = context();
    let source = numbers(64 * 8);
    let (a, b) = (alloc(64 * 8), alloc(48 * 7));
    ok(cuMemcpyHtoD(a, source.as_ptr().cast(), source.len()));
    let mut expected = vec![0xaa_u8; 48 * 7];
    for y in 0..6 {
        for x in 0..37 {
            expected[(y + 1) * 48 + 5 + x] = source[(y + 2) * 64 + 3 + x];
        }
    }
    type Call = fn(*const Copy2D) -> CUresult;
    let calls: [Call; 3] = [cuMemcpy2D, cuMemcpy2DUnaligned, |copy| {
        cuMemcpy2DAsync(copy, null_mut())
    }];
    let host = source.as_ptr() as u64;
    for call in calls {
        for from in [(HOST, host), (DEVICE, a), (UNIFIED, a), (UNIFIED, host)] {
            for to in [HOST, DEVICE, UNIFIED] {
                let mut back = vec![0xaa_u8; 48 * 7];
                ok(cuMemsetD8(b, 0xaa, 48 * 7));
                let target = if to == HOST { back.as_mut_ptr() as u64 } else { b };
                ok(call(&flat(from, (to, target))));
                ok(cuCtxSynchronize());
                if to != HOST {
                    ok(cuMemcpyDtoH(back.as_mut_ptr().cast(), b, back.len()));
                }
                assert!(back == expected, "from {from:?} to {to}");
            }
        }
        let good = flat((DEVICE, a), (DEVICE, b));
        for wrong in [
            Copy2D { src_type: 0, ..good },
            Copy2D { dst_type: 5, ..good },
            Copy2D { src_pitch: 39, ..good },
            Copy2D { dst_pitch: 41, ..good },
            Copy2D { width: 62, ..good },
            Copy2D { height: 7, ..good },
            Copy2D {
                src_y: usize::MAX,
                ..good
            },
            Copy2D { src_device: 0, ..good },
            Copy2D {
                dst_device: host,
                ..good
            },
            Copy2D { src_type: 3, ..good },
        ] {
            assert_eq!(call(&wrong), CUDA_ERROR_INVALID_VALUE, "{wrong:?}");
        }
        assert_eq!(call(std::ptr::null()), CUDA_ERROR_INVALID_VALUE);
        ok(call(&Copy2D { width: 0, ..good }));
    }
    let nobody: CUstream = source.as_ptr().cast_mut().cast();
    let copy = flat((DEVICE, a), (DEVICE, b));
    assert_eq!(cuMemcpy2DAsync(&copy, nobody), CUDA_ERROR_INVALID_HANDLE);
    ok(cuCtxDestroy(context));
}

#[test]
fn deep_boxes_go_every_way() {
    let context = context();
    let source = numbers(32 * 6 * 5);
    let a = alloc(source.len());
    let b = alloc(24 * 5 * 4);
    ok(cuMemcpyHtoD(a, source.as_ptr().cast(), source.len()));
    let end = |kind, at: u64, pitch, height, [x, y, z]: [usize; 3]| End3D {
        x,
        y,
        z,
        kind,
        host: at as *mut c_void,
        device: at,
        pitch,
        height,
        // The place of the context, in copies between contexts.
        reserved: context,
        ..zeroed()
    };
    let make = |from: (c_uint, u64), to: (c_uint, u64)| Copy3D {
        src: end(from.0, from.1, 32, 6, [4, 1, 2]),
        dst: end(to.0, to.1, 24, 5, [1, 2, 0]),
        width: 20,
        height: 3,
        depth: 3,
    };
    let mut expected = vec![0x55_u8; 24 * 5 * 4];
    for z in 0..3 {
        for y in 0..3 {
            for x in 0..20 {
                expected[(z * 5 + y + 2) * 24 + 1 + x] = source[((z + 2) * 6 + y + 1) * 32 + 4 + x];
            }
        }
    }
    type Call = fn(*const Copy3D) -> CUresult;
    let calls: [Call; 4] = [
        cuMemcpy3D,
        |copy| cuMemcpy3DAsync(copy, null_mut()),
        cuMemcpy3DPeer,
        |copy| cuMemcpy3DPeerAsync(copy, null_mut()),
    ];
    let host = source.as_ptr() as u64;
    for (index, call) in calls.into_iter().enumerate() {
        for from in [(HOST, host), (DEVICE, a), (UNIFIED, host)] {
            ok(cuMemsetD8(b, 0x55, expected.len()));
            ok(call(&make(from, (DEVICE, b))));
            let mut back = vec![0_u8; expected.len()];
            ok(cuMemcpyDtoH(back.as_mut_ptr().cast(), b, back.len()));
            assert!(back == expected, "call {index} from {from:?}");
        }
        let good = make((DEVICE, a), (DEVICE, b));
        let change = |what: fn(&mut Copy3D)| {
            let mut copy = good;
            what(&mut copy);
            copy
        };
        for wrong in [
            change(|copy| copy.src.kind = 0),
            change(|copy| copy.src.level = 1),
            change(|copy| copy.src.pitch = 23),
            change(|copy| copy.dst.height = 4),
            change(|copy| copy.depth = 5),
            change(|copy| copy.depth = usize::MAX),
            change(|copy| copy.dst.z = usize::MAX),
            change(|copy| copy.dst.device = 16),
        ] {
            assert_eq!(call(&wrong), CUDA_ERROR_INVALID_VALUE, "call {index}: {wrong:?}");
        }
        assert_eq!(call(std::ptr::null()), CUDA_ERROR_INVALID_VALUE);
        if index >= 2 {
            let nowhere = change(|copy| copy.src.reserved = null_mut());
            assert_eq!(call(&nowhere), CUDA_ERROR_INVALID_CONTEXT);
        }
    }
    ok(cuCtxDestroy(context));
}

#[test]
fn devices_reach_each_other() {
    alone(test_name!(), &[("MARGAY_DEVICES", "2")], || {
        let first = context_of(0);
        let a = alloc(4096);
        ok(cuMemsetD8(a, 5, 4096));
        ok(cuCtxSynchronize());
        let second = context_of(1);
        let b = alloc(4096);
        let mut can = 9;
        ok(cuDeviceCanAccessPeer(&mut can, 0, 1));
        assert_eq!(can, 1);
        ok(cuDeviceCanAccessPeer(&mut can, 0, 0));
        assert_eq!(can, 0, "a device is no peer of its own");
        // CUdevice_P2PAttribute: performance rank, access, native atomics, arrays.
        for (attribute, expected) in [(1, 0), (2, 1), (3, 1), (4, 1)] {
            ok(cuDeviceGetP2PAttribute(&mut can, attribute, 0, 1));
            assert_eq!(can, expected);
        }
        assert_eq!(cuDeviceGetP2PAttribute(&mut can, 2, 0, 0), CUDA_ERROR_INVALID_DEVICE);
        assert_eq!(cuDeviceGetP2PAttribute(&mut can, 2, 0, 2), CUDA_ERROR_INVALID_DEVICE);
        assert_eq!(cuDeviceGetP2PAttribute(&mut can, 99, 0, 1), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuDeviceGetP2PAttribute(null_mut(), 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuDeviceCanAccessPeer(&mut can, 0, 2), CUDA_ERROR_INVALID_DEVICE);
        assert_eq!(cuDeviceCanAccessPeer(null_mut(), 0, 1), CUDA_ERROR_INVALID_VALUE);

        // The second is current.
        ok(cuCtxEnablePeerAccess(first, 0));
        assert_eq!(cuCtxEnablePeerAccess(first, 0), 704);
        assert_eq!(cuCtxEnablePeerAccess(first, 1), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_INVALID_DEVICE);
        assert_eq!(cuCtxEnablePeerAccess(null_mut(), 0), CUDA_ERROR_INVALID_CONTEXT);
        ok(cuMemcpyPeer(b, second, a, first, 4096));
        let mut word = 0_u32;
        ok(cuMemcpyDtoH((&raw mut word).cast(), b, 4));
        assert_eq!(word, 0x0505_0505);
        ok(cuMemcpyPeerAsync(a, first, b + 8, second, 16, null_mut()));
        ok(cuCtxSynchronize());
        ok(cuCtxDisablePeerAccess(first));
        assert_eq!(cuCtxDisablePeerAccess(first), 705);
        assert_eq!(cuCtxDisablePeerAccess(null_mut()), CUDA_ERROR_INVALID_CONTEXT);
    });
}
