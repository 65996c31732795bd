//! Stream Ordered Memory Allocator: pools that processes share.

use crate::basics::{context, stream};
use crate::c::*;
use crate::peer::{from_hex, inherit, peer, to_hex};
use crate::pool::{
    CUmemoryPool, DESCRIPTOR, DEVICE, MIB, PINNED, Props, RESERVED, USED, alloc, cuDeviceSetMemPool,
    cuMemAllocFromPoolAsync, cuMemFreeAsync, cuMemPoolDestroy, number, pool_of, props, size,
};
use crate::test_name;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;

const CUDA_ERROR_NOT_SUPPORTED: CUresult = 801;

functions! {
    cuMemPoolExportToShareableHandle(handle: *mut c_void, pool: CUmemoryPool, kind: c_uint, flags: c_ulonglong);
    cuMemPoolImportFromShareableHandle(
        pool: *mut CUmemoryPool,
        handle: *mut c_void,
        kind: c_uint,
        flags: c_ulonglong,
    );
    cuMemPoolExportPointer(data: *mut [u8; 64], pointer: CUdeviceptr);
    cuMemPoolImportPointer(pointer: *mut CUdeviceptr, pool: CUmemoryPool, data: *mut [u8; 64]);
}

#[test]
fn a_pool_is_shared_between_processes() {
    const BYTES: usize = 3 * MIB + 5;
    // The descriptor must be there before the other process is.
    let inside = std::env::var("CDYLIB_TEST_PEER").is_ok();
    let (mut pool, mut descriptor) = (null_mut(), -1);
    let mut own = null_mut();
    if !inside {
        own = context();
        pool = pool_of(Props {
            handles: DESCRIPTOR,
            ..props(DEVICE, PINNED)
        });
        ok(cuMemPoolExportToShareableHandle(
            (&raw mut descriptor).cast(),
            pool,
            DESCRIPTOR,
            0,
        ));
        inherit(descriptor);
    }
    let mut peer = peer(test_name!(), &[], |other| {
        context();
        let stream = stream();
        let descriptor: usize = other.receive().parse().unwrap();
        let mut pool = null_mut();
        let import = |pool: *mut CUmemoryPool, descriptor: usize| {
            cuMemPoolImportFromShareableHandle(pool, descriptor as *mut c_void, DESCRIPTOR, 0)
        };
        ok(import(&mut pool, descriptor));
        assert_eq!((number(pool, 9), number(pool, 10)), (PINNED as c_int, 0));
        assert_eq!((number(pool, 12), number(pool, 11)), (1, 0));
        let mut data = from_hex::<64>(&other.receive());
        let mut pointer = 0;
        ok(cuMemPoolImportPointer(&mut pointer, pool, &mut data));
        assert_eq!(size(pool, USED), BYTES as u64);
        let mut bytes = vec![0_u8; BYTES];
        ok(cuMemcpyDtoH(bytes.as_mut_ptr().cast(), pointer, BYTES));
        assert!(bytes.iter().all(|byte| *byte == 0x11));
        assert_eq!(cuMemsetD8(pointer, 0, BYTES + 4096), CUDA_ERROR_INVALID_VALUE);
        ok(cuMemsetD8(pointer, 0x22, BYTES));
        ok(cuCtxSynchronize());
        // Nothing new comes from such a pool, and it is not handed on.
        let mut none = 0;
        assert_eq!(
            cuMemAllocFromPoolAsync(&mut none, 1, pool, stream),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
        let mut again = -1_i32;
        assert_eq!(
            cuMemPoolExportToShareableHandle((&raw mut again).cast(), pool, DESCRIPTOR, 0),
            CUDA_ERROR_INVALID_VALUE
        );
        let mut copy = [0; 64];
        assert_eq!(cuMemPoolExportPointer(&mut copy, pointer), CUDA_ERROR_INVALID_VALUE);
        // The same memory twice, or what is not this pool's.
        assert_eq!(
            cuMemPoolImportPointer(&mut none, pool, &mut data),
            CUDA_ERROR_INVALID_VALUE
        );
        for byte in [0, 7, 16, 31, 32, 38, 40, 47, 63] {
            let mut forged = data;
            forged[byte] ^= 0x81;
            let result = cuMemPoolImportPointer(&mut none, pool, &mut forged);
            assert_eq!(result, CUDA_ERROR_INVALID_VALUE, "byte {byte}");
        }
        ok(cuMemFreeAsync(pointer, stream));
        ok(cuStreamSynchronize(stream));
        assert_eq!(size(pool, USED), 0);
        // It can come back, and be freed by the other call.
        ok(cuMemPoolImportPointer(&mut pointer, pool, &mut data));
        ok(cuMemFree(pointer));
        // Only a pool's descriptor is a pool.
        assert_eq!(import(&mut pool, 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(import(&mut pool, 9999), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(import(null_mut(), descriptor), CUDA_ERROR_INVALID_VALUE);
        ok(cuMemPoolDestroy(pool));
        other.send("done");
    });
    let stream = stream();
    let pointer = alloc(pool, BYTES, stream);
    let neighbour = alloc(pool, 100, stream);
    ok(cuMemsetD8(neighbour, 0x33, 100));
    ok(cuMemsetD8(pointer, 0x11, BYTES));
    ok(cuStreamSynchronize(stream));
    ok(cuCtxSynchronize());
    peer.send(&descriptor.to_string());
    let mut data = [0; 64];
    ok(cuMemPoolExportPointer(&mut data, pointer));
    peer.send(&to_hex(&data));
    assert_eq!(peer.receive(), "done");
    peer.finish();
    let mut bytes = vec![0_u8; BYTES];
    ok(cuMemcpyDtoH(bytes.as_mut_ptr().cast(), pointer, BYTES));
    assert!(bytes.iter().all(|byte| *byte == 0x22));
    let mut near = [0_u8; 100];
    ok(cuMemcpyDtoH(near.as_mut_ptr().cast(), neighbour, 100));
    assert_eq!(near, [0x33; 100]);
    // Blocks of a shared pool come and go like others.
    ok(cuMemFreeAsync(pointer, stream));
    assert_eq!(alloc(pool, BYTES, stream), pointer);
    ok(cuMemFreeAsync(pointer, stream));
    ok(cuStreamSynchronize(stream));
    assert!(size(pool, RESERVED) < MIB as u64);
    let fresh = alloc(pool, BYTES, stream);
    ok(cuMemcpyDtoH(bytes.as_mut_ptr().cast(), fresh, BYTES));
    assert!(bytes.iter().all(|byte| *byte == 0), "what was given back holds nothing");
    ok(cuMemPoolDestroy(pool));
    ok(cuMemFree(fresh));
    ok(cuMemFree(neighbour));

    // Pools that were not made for it, and the arguments.
    let plain = pool_of(props(DEVICE, PINNED));
    let export = |pool, kind, flags| {
        let mut descriptor = -1_i32;
        cuMemPoolExportToShareableHandle((&raw mut descriptor).cast(), pool, kind, flags)
    };
    assert_eq!(export(plain, DESCRIPTOR, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(export(plain, DESCRIPTOR, 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(export(plain, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(export(plain, 8, 0), CUDA_ERROR_NOT_SUPPORTED);
    assert_eq!(export(pool, DESCRIPTOR, 0), CUDA_ERROR_INVALID_VALUE);
    let private = alloc(plain, 64, stream);
    assert_eq!(cuMemPoolExportPointer(&mut data, private), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuMemPoolExportPointer(&mut data, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuMemPoolExportPointer(null_mut(), private), CUDA_ERROR_INVALID_VALUE);
    let mut none = 0;
    assert_eq!(
        cuMemPoolImportPointer(&mut none, plain, &mut data),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuCtxDestroy(own));
}
