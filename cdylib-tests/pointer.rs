//! Unified Addressing: what a pointer is.

use crate::basics::context;
use crate::c::*;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;

functions! {
    cuPointerGetAttribute(data: *mut c_void, attribute: c_uint, pointer: CUdeviceptr);
    cuPointerGetAttributes(
        count: c_uint,
        attributes: *mut c_uint,
        data: *mut *mut c_void,
        pointer: CUdeviceptr,
    );
    cuPointerSetAttribute(value: *const c_void, attribute: c_uint, pointer: CUdeviceptr);
    cuMemGetAddressRange = "cuMemGetAddressRange_v2" (
        base: *mut CUdeviceptr,
        bytes: *mut usize,
        pointer: CUdeviceptr,
    );
    cuMemGetHandleForAddressRange(
        handle: *mut c_void,
        pointer: CUdeviceptr,
        bytes: usize,
        kind: c_uint,
        flags: c_ulonglong,
    );
    cuMemHostRegister = "cuMemHostRegister_v2" (pointer: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostUnregister(pointer: *mut c_void);
    cuMemAllocAsync(pointer: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemAddressReserve(
        pointer: *mut CUdeviceptr,
        bytes: usize,
        alignment: usize,
        hint: CUdeviceptr,
        flags: c_ulonglong,
    );
    cuMemCreate(handle: *mut u64, bytes: usize, prop: *const [u32; 8], flags: c_ulonglong);
    cuMemMap(pointer: CUdeviceptr, bytes: usize, offset: usize, handle: u64, flags: c_ulonglong);
    cuMemSetAccess(pointer: CUdeviceptr, bytes: usize, access: *const [c_uint; 3], count: usize);
    cuMemUnmap(pointer: CUdeviceptr, bytes: usize);
    cuMemAddressFree(pointer: CUdeviceptr, bytes: usize);
    cuMemRelease(handle: u64);
    cuStreamWaitValue32 = "cuStreamWaitValue32_v2" (stream: CUstream, word: CUdeviceptr, value: c_uint, flags: c_uint);
}

// CUpointer_attribute
const CONTEXT: c_uint = 1;
const MEMORY_TYPE: c_uint = 2;
const DEVICE_POINTER: c_uint = 3;
const HOST_POINTER: c_uint = 4;
const P2P_TOKENS: c_uint = 5;
const SYNC_MEMOPS: c_uint = 6;
const BUFFER_ID: c_uint = 7;
const IS_MANAGED: c_uint = 8;
const DEVICE_ORDINAL: c_uint = 9;
const IS_IPC_CAPABLE: c_uint = 10;
const RANGE_START: c_uint = 11;
const RANGE_SIZE: c_uint = 12;
const MAPPED: c_uint = 13;
const HANDLE_TYPES: c_uint = 14;
const IS_RDMA_CAPABLE: c_uint = 15;
const ACCESS: c_uint = 16;
const POOL: c_uint = 17;
const MAPPING_SIZE: c_uint = 18;
const MAPPING_BASE: c_uint = 19;
const BLOCK_ID: c_uint = 20;
const IS_DECOMPRESS_CAPABLE: c_uint = 21;
const LOCALITY: c_uint = 22;

/// A number of 32 bits.
#[track_caller]
fn number(which: c_uint, pointer: CUdeviceptr) -> c_int {
    let mut value = [0x6666_6666_i32; 2];
    ok(cuPointerGetAttribute(value.as_mut_ptr().cast(), which, pointer));
    assert_eq!(value[1], 0x6666_6666, "it is a number of 32 bits");
    value[0]
}

/// A word: an address, a size, a handle.
#[track_caller]
fn word(which: c_uint, pointer: CUdeviceptr) -> u64 {
    let mut value = u64::MAX;
    ok(cuPointerGetAttribute((&raw mut value).cast(), which, pointer));
    value
}

#[track_caller]
fn refused(which: c_uint, pointer: CUdeviceptr) {
    let mut value = [0_u64; 2];
    let result = cuPointerGetAttribute(value.as_mut_ptr().cast(), which, pointer);
    assert_eq!(result, CUDA_ERROR_INVALID_VALUE, "attribute {which}");
}

#[test]
fn each_kind_of_memory_has_its_attributes() {
    let context = context();
    const BYTES: usize = 10_000;
    let (mut device, mut managed, mut host, mut pooled) = (0, 0, null_mut(), 0);
    ok(cuMemAlloc(&mut device, BYTES));
    ok(cuMemAllocManaged(&mut managed, BYTES, 1));
    ok(cuMemHostAlloc(&mut host, BYTES, 0));
    ok(cuMemAllocAsync(&mut pooled, BYTES, null_mut()));
    let mut vector = vec![0_u8; BYTES];
    let registered = vector.as_mut_ptr();
    ok(cuMemHostRegister(registered.cast(), BYTES, 0));
    struct Expected {
        start: CUdeviceptr,
        host: bool,
        managed: bool,
        on_host: bool,
        ipc: c_int,
        decompress: c_int,
    }
    let kind = |start, host, managed, on_host, ipc, decompress| Expected {
        start,
        host,
        managed,
        on_host,
        ipc,
        decompress,
    };
    let mut ids = Vec::new();
    for expected in [
        kind(device, false, false, false, 1, 1),
        kind(managed, false, true, true, 0, 0),
        kind(host as u64, true, false, true, 0, 0),
        kind(pooled, false, false, false, 0, 0),
        kind(registered as u64, true, false, true, 0, 0),
    ] {
        let start = expected.start;
        let inside = start + 1234;
        assert_eq!(word(CONTEXT, inside), context as u64);
        // CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE
        assert_eq!(number(MEMORY_TYPE, inside), if expected.host { 1 } else { 2 });
        assert_eq!(word(DEVICE_POINTER, inside), inside);
        match expected.on_host {
            true => assert_eq!(word(HOST_POINTER, inside), inside),
            false => refused(HOST_POINTER, inside),
        }
        assert_eq!(number(IS_MANAGED, inside), expected.managed.into());
        assert_eq!(number(DEVICE_ORDINAL, inside), 0);
        assert_eq!(number(IS_IPC_CAPABLE, inside), expected.ipc);
        assert_eq!(
            (word(RANGE_START, inside), word(RANGE_SIZE, inside)),
            (start, BYTES as u64)
        );
        assert_eq!(
            (word(MAPPING_BASE, inside), word(MAPPING_SIZE, inside)),
            (start, BYTES as u64)
        );
        assert_eq!(number(MAPPED, inside), 1);
        assert_eq!(word(HANDLE_TYPES, inside), 0);
        assert_eq!(number(IS_RDMA_CAPABLE, inside), 0);
        assert_eq!(number(ACCESS, inside), 3);
        assert_eq!(word(POOL, inside) != 0, start == pooled);
        assert_eq!(number(IS_DECOMPRESS_CAPABLE, inside), expected.decompress);
        assert_eq!(number(LOCALITY, inside), -1);
        assert_eq!(number(SYNC_MEMOPS, inside), 0);
        assert_eq!(word(BUFFER_ID, inside), word(BUFFER_ID, start));
        assert_eq!(word(BLOCK_ID, inside), word(BLOCK_ID, start));
        ids.push(word(BUFFER_ID, start));
        // The kernel module of NVIDIA's for which the tokens are is not here.
        refused(P2P_TOKENS, inside);
        for wrong in [0, 23, 1000] {
            refused(wrong, inside);
        }
        let (mut base, mut bytes) = (0, 0);
        ok(cuMemGetAddressRange(&mut base, &mut bytes, inside));
        assert_eq!((base, bytes), (start, BYTES));
        ok(cuMemGetAddressRange(null_mut(), null_mut(), inside));
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 5, "buffers have numbers of their own");
    ok(cuMemFree(device));
    let mut next = 0;
    ok(cuMemAlloc(&mut next, BYTES));
    assert!(!ids.contains(&word(BUFFER_ID, next)), "which are not used again");
    // A device pointer is one of the current context.
    ok(cuCtxSetCurrent(null_mut()));
    let mut value = 0_u64;
    assert_eq!(
        cuPointerGetAttribute((&raw mut value).cast(), DEVICE_POINTER, next),
        CUDA_ERROR_INVALID_CONTEXT
    );
    assert_eq!(number(MEMORY_TYPE, next), 2);
    ok(cuCtxSetCurrent(context));
    assert_eq!(
        cuPointerGetAttribute(null_mut(), MEMORY_TYPE, next),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuMemHostUnregister(registered.cast()));
    refused(MEMORY_TYPE, registered as u64);
    ok(cuCtxDestroy(context));
}

#[test]
fn what_the_driver_does_not_know_has_none() {
    let context = context();
    let local = [0_u8; 64];
    let pointer = local.as_ptr() as u64;
    for which in [
        CONTEXT,
        MEMORY_TYPE,
        DEVICE_POINTER,
        HOST_POINTER,
        BUFFER_ID,
        IS_MANAGED,
        POOL,
    ] {
        refused(which, pointer);
    }
    let mut base = 0;
    assert_eq!(
        cuMemGetAddressRange(&mut base, null_mut(), pointer),
        CUDA_ERROR_NOT_FOUND
    );
    // Several at once are never an error, but nulls, and no device.
    let mut which = [CONTEXT, MEMORY_TYPE, DEVICE_ORDINAL, IS_MANAGED, RANGE_SIZE, BUFFER_ID];
    let mut values = [u64::MAX; 6];
    let mut get = |which: &mut [c_uint], pointer| {
        values = [u64::MAX; 6];
        let mut data = values
            .each_mut()
            .map(|value| std::ptr::from_mut(value).cast::<c_void>());
        let result = cuPointerGetAttributes(which.len() as c_uint, which.as_mut_ptr(), data.as_mut_ptr(), pointer);
        (result, values)
    };
    let (result, found) = get(&mut which, pointer);
    assert_eq!(result, CUDA_SUCCESS);
    let low = |value: u64| value as u32 as i32;
    assert_eq!((found[0], low(found[1]), low(found[2]), low(found[3])), (0, 0, -2, 0));
    assert_eq!((found[4], found[5]), (0, 0));
    let mut managed = 0;
    ok(cuMemAllocManaged(&mut managed, 100, 1));
    let (result, found) = get(&mut which, managed + 5);
    assert_eq!(result, CUDA_SUCCESS);
    assert_eq!(
        (found[0], low(found[1]), low(found[2]), low(found[3])),
        (context as u64, 2, 0, 1)
    );
    assert_eq!(found[4], 100);
    assert_eq!(get(&mut [CONTEXT, 99], managed).0, CUDA_ERROR_INVALID_VALUE);
    assert_eq!(get(&mut [], managed).0, CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuPointerGetAttributes(1, null_mut(), null_mut(), managed),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuCtxDestroy(context));
}

#[test]
fn addresses_without_memory_are_known_as_such() {
    let context = context();
    const STEP: usize = 2 << 20;
    let (mut start, mut handle) = (0, 0);
    ok(cuMemAddressReserve(&mut start, 4 * STEP, 0, 0, 0));
    // Pinned, for a descriptor, of device 0, and to be decompressed to.
    let prop = [1, 1, 1, 0, 0, 0, 2 << 16, 0];
    ok(cuMemCreate(&mut handle, STEP, &prop, 0));
    let mapped = start + STEP as u64;
    ok(cuMemMap(mapped, STEP, 0, handle, 0));
    // The range is all that was reserved, the mapping a part of it.
    for pointer in [start + 5, mapped + 5] {
        assert_eq!(
            (word(RANGE_START, pointer), word(RANGE_SIZE, pointer)),
            (start, 4 * STEP as u64)
        );
    }
    assert_eq!(number(MAPPED, start), 0);
    refused(MAPPING_BASE, start);
    refused(DEVICE_POINTER, start);
    assert_eq!(number(MAPPED, mapped), 1);
    assert_eq!(
        (word(MAPPING_BASE, mapped + 9), word(MAPPING_SIZE, mapped + 9)),
        (mapped, STEP as u64)
    );
    assert_eq!(word(HANDLE_TYPES, mapped), 1);
    assert_eq!(number(IS_DECOMPRESS_CAPABLE, mapped), 1);
    assert_eq!(number(IS_IPC_CAPABLE, mapped), 0);
    // What may be done with it: nothing, read, write.
    for (flags, expected) in [(0, 0), (1, 1), (3, 3)] {
        ok(cuMemSetAccess(mapped, STEP, &[1, 0, flags], 1));
        assert_eq!(number(ACCESS, mapped + 77), expected);
    }
    let (mut base, mut bytes) = (0, 0);
    ok(cuMemGetAddressRange(&mut base, &mut bytes, mapped + 9));
    assert_eq!((base, bytes), (mapped, STEP));
    ok(cuMemUnmap(mapped, STEP));
    assert_eq!(number(MAPPED, mapped), 0);
    ok(cuMemAddressFree(start, 4 * STEP));
    refused(RANGE_START, start);
    ok(cuMemRelease(handle));
    ok(cuCtxDestroy(context));
}

#[test]
fn operations_on_memory_are_made_to_wait() {
    let context = context();
    let (mut a, mut b, mut word) = (0, 0, null_mut());
    ok(cuMemAlloc(&mut a, 1 << 20));
    ok(cuMemAlloc(&mut b, 1 << 20));
    ok(cuMemHostAlloc(&mut word, 4, 0));
    let word = word.cast::<u32>();
    let on = 1_u32;
    ok(cuPointerSetAttribute((&raw const on).cast(), SYNC_MEMOPS, a + 10));
    assert_eq!(number(SYNC_MEMOPS, a), 1);
    assert_eq!(number(SYNC_MEMOPS, b), 0);
    // A copy between devices returns before it is done, unless the memory says otherwise: behind a stream that stands
    // still it takes as long as that.
    // SAFETY: four bytes of ours.
    unsafe { word.write_volatile(0) };
    ok(cuStreamWaitValue32(null_mut(), word as u64, 1, 0));
    let address = word as usize;
    let release = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        // SAFETY: four bytes of pinned memory, freed after this thread has been joined.
        unsafe { (address as *mut u32).write_volatile(1) };
    });
    let began = std::time::Instant::now();
    ok(cuMemcpyDtoD(b, a, 1 << 20));
    assert!(began.elapsed() >= std::time::Duration::from_millis(90));
    release.join().unwrap();
    let off = 0_u32;
    ok(cuPointerSetAttribute((&raw const off).cast(), SYNC_MEMOPS, a));
    assert_eq!(number(SYNC_MEMOPS, a), 0);
    // It is the one attribute that can be set, of memory that is known.
    let set = |which, pointer| cuPointerSetAttribute((&raw const on).cast(), which, pointer);
    for which in [0, CONTEXT, MEMORY_TYPE, IS_MANAGED, LOCALITY, 99] {
        assert_eq!(set(which, a), CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(set(SYNC_MEMOPS, &raw const on as u64), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuPointerSetAttribute(std::ptr::null(), SYNC_MEMOPS, a),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuCtxSetCurrent(null_mut()));
    assert_eq!(set(SYNC_MEMOPS, a), CUDA_ERROR_INVALID_CONTEXT);
    ok(cuCtxSetCurrent(context));
    ok(cuCtxDestroy(context));
}

#[test]
fn ranges_have_no_handles() {
    let context = context();
    let (mut pointer, mut handle) = (0, -1_i32);
    ok(cuMemAlloc(&mut pointer, 8192));
    let (mut supported, mut host_supported) = (9, 9);
    // CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, …_HOST_ALLOC_DMA_BUF_SUPPORTED
    ok(cuDeviceGetAttribute(&mut supported, 124, 0));
    ok(cuDeviceGetAttribute(&mut host_supported, 146, 0));
    assert_eq!((supported, host_supported), (0, 0));
    let mut get = |pointer, bytes, kind, flags| {
        cuMemGetHandleForAddressRange((&raw mut handle).cast(), pointer, bytes, kind, flags)
    };
    for flags in [0, 1] {
        assert_eq!(get(pointer, 4096, 1, flags), 801);
    }
    for (pointer, bytes, kind, flags) in [
        (pointer, 4096, 0, 0),
        (pointer, 4096, 2, 0),
        (pointer, 4096, 1, 2),
        (pointer, 4095, 1, 0),
        (pointer, 0, 1, 0),
        (pointer + 1, 4096, 1, 0),
        (pointer, 12288, 1, 0),
        (0, 4096, 1, 0),
    ] {
        assert_eq!(get(pointer, bytes, kind, flags), CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(handle, -1);
    assert_eq!(
        cuMemGetHandleForAddressRange(null_mut(), pointer, 4096, 1, 0),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuCtxDestroy(context));
}
