//! Unified Addressing: advice, prefetching, discarding, attaching, where memory is.

use crate::basics::context;
use crate::c::*;
use crate::graph_types::zeroed;
use crate::pool::Location;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;

functions! {
    cuMemAdvise_v1 = "cuMemAdvise" (pointer: CUdeviceptr, bytes: usize, advice: c_uint, device: CUdevice);
    cuMemAdvise = "cuMemAdvise_v2" (pointer: CUdeviceptr, bytes: usize, advice: c_uint, location: Location);
    cuMemPrefetchAsync_v1 = "cuMemPrefetchAsync" (
        pointer: CUdeviceptr,
        bytes: usize,
        device: CUdevice,
        stream: CUstream,
    );
    cuMemPrefetchAsync = "cuMemPrefetchAsync_v2" (
        pointer: CUdeviceptr,
        bytes: usize,
        location: Location,
        flags: c_uint,
        stream: CUstream,
    );
    cuMemRangeGetAttribute(
        data: *mut c_void,
        size: usize,
        attribute: c_uint,
        pointer: CUdeviceptr,
        bytes: usize,
    );
    cuMemRangeGetAttributes(
        data: *mut *mut c_void,
        sizes: *mut usize,
        attributes: *mut c_uint,
        count: usize,
        pointer: CUdeviceptr,
        bytes: usize,
    );
    cuMemPrefetchBatchAsync(
        pointers: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        locations: *mut Location,
        indices: *mut usize,
        places: usize,
        flags: c_ulonglong,
        stream: CUstream,
    );
    cuMemPrefetchBatchAsync_ptsz(
        pointers: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        locations: *mut Location,
        indices: *mut usize,
        places: usize,
        flags: c_ulonglong,
        stream: CUstream,
    );
    cuMemDiscardBatchAsync(
        pointers: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        flags: c_ulonglong,
        stream: CUstream,
    );
    cuMemDiscardAndPrefetchBatchAsync(
        pointers: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        locations: *mut Location,
        indices: *mut usize,
        places: usize,
        flags: c_ulonglong,
        stream: CUstream,
    );
    cuMemGetLocationInfo(
        pointer: CUdeviceptr,
        bytes: usize,
        summary: usize,
        sampling: usize,
        locations: *mut Location,
    );
    cuStreamAttachMemAsync(stream: CUstream, pointer: CUdeviceptr, bytes: usize, flags: c_uint);
    cuStreamBeginCapture = "cuStreamBeginCapture_v2" (stream: CUstream, mode: c_uint);
    cuStreamEndCapture(stream: CUstream, graph: *mut *mut c_void);
}

const PAGE: usize = 4096;
const BYTES: usize = 64 * PAGE;
const DEVICE: Location = Location { kind: 1, id: 0 };
const HOST: Location = Location { kind: 2, id: 0 };
const NODE: Location = Location { kind: 3, id: 0 };
const NODE_HERE: Location = Location { kind: 4, id: 55 };
const ABSENT: Location = Location { kind: 1, id: 99 };
const CPU: c_int = -1;
const NO_DEVICE: c_int = -2;
// CUmem_advise
const SET_READ_MOSTLY: c_uint = 1;
const UNSET_READ_MOSTLY: c_uint = 2;
const SET_PREFERRED: c_uint = 3;
const UNSET_PREFERRED: c_uint = 4;
const SET_ACCESSED_BY: c_uint = 5;
const UNSET_ACCESSED_BY: c_uint = 6;
// CUmem_range_attribute
const READ_MOSTLY: c_uint = 1;
const PREFERRED: c_uint = 2;
const ACCESSED_BY: c_uint = 3;
const PREFETCHED: c_uint = 4;

fn managed() -> CUdeviceptr {
    let mut pointer = 0;
    ok(cuMemAllocManaged(&mut pointer, BYTES, 1));
    pointer
}

fn stream() -> CUstream {
    let mut stream = null_mut();
    ok(cuStreamCreate(&mut stream, 0));
    stream
}

#[track_caller]
fn attribute(which: c_uint, pointer: CUdeviceptr, bytes: usize) -> c_int {
    let mut value = 77;
    ok(cuMemRangeGetAttribute(
        (&raw mut value).cast(),
        4,
        which,
        pointer,
        bytes,
    ));
    value
}

/// Type and number: those of the preferred location (5), or of the last prefetch (7).
fn location(which: c_uint, pointer: CUdeviceptr, bytes: usize) -> (c_int, c_int) {
    (attribute(which, pointer, bytes), attribute(which + 1, pointer, bytes))
}

#[test]
fn advice_holds_for_whole_pages() {
    let context = context();
    let memory = managed();
    let page = |index: usize| memory + (index * PAGE) as u64;
    assert_eq!(attribute(READ_MOSTLY, memory, BYTES), 0);
    assert_eq!(attribute(PREFERRED, memory, BYTES), NO_DEVICE);
    // Rounded down and up to pages (manual): the last byte of one page and the first of the next are two pages.
    ok(cuMemAdvise(page(2) - 1, 2, SET_READ_MOSTLY, zeroed()));
    assert_eq!(attribute(READ_MOSTLY, page(1), 2 * PAGE), 1);
    assert_eq!(attribute(READ_MOSTLY, page(1), 2 * PAGE + 1), 0);
    assert_eq!(attribute(READ_MOSTLY, page(0), 2 * PAGE), 0);
    ok(cuMemAdvise_v1(page(1), PAGE, UNSET_READ_MOSTLY, 0));
    assert_eq!(attribute(READ_MOSTLY, page(1), PAGE), 0);
    assert_eq!(attribute(READ_MOSTLY, page(2), PAGE), 1);

    // A preferred location, in all its forms.
    ok(cuMemAdvise(memory, BYTES, SET_PREFERRED, DEVICE));
    assert_eq!(attribute(PREFERRED, memory, BYTES), 0);
    assert_eq!(location(5, memory, BYTES), (1, 0));
    ok(cuMemAdvise(page(4), PAGE, SET_PREFERRED, HOST));
    assert_eq!(attribute(PREFERRED, page(4), PAGE), CPU);
    assert_eq!(location(5, page(4), PAGE).0, 2);
    // Not the same for all pages: none.
    assert_eq!(attribute(PREFERRED, page(3), 2 * PAGE), NO_DEVICE);
    assert_eq!(location(5, page(3), 2 * PAGE).0, 0);
    for node in [NODE, NODE_HERE] {
        ok(cuMemAdvise(page(5), PAGE, SET_PREFERRED, node));
        assert_eq!(location(5, page(5), PAGE), (3, 0));
        assert_eq!(attribute(PREFERRED, page(5), PAGE), CPU);
    }
    ok(cuMemAdvise(page(6), PAGE, UNSET_PREFERRED, zeroed()));
    assert_eq!(attribute(PREFERRED, page(6), PAGE), NO_DEVICE);
    ok(cuMemAdvise_v1(memory, BYTES, SET_PREFERRED, CPU));
    assert_eq!(attribute(PREFERRED, memory, BYTES), CPU);
    ok(cuMemAdvise_v1(memory, BYTES, SET_PREFERRED, 0));
    assert_eq!(attribute(PREFERRED, memory, BYTES), 0);

    // Who accesses it: a list, filled up.
    let mut list = [7_i32; 4];
    let mut accessed = |bytes| {
        let size = size_of_val(&list);
        ok(cuMemRangeGetAttribute(
            list.as_mut_ptr().cast(),
            size,
            ACCESSED_BY,
            memory,
            bytes,
        ));
        list
    };
    assert_eq!(accessed(BYTES), [NO_DEVICE; 4]);
    ok(cuMemAdvise(memory, 2 * PAGE, SET_ACCESSED_BY, DEVICE));
    ok(cuMemAdvise_v1(memory, BYTES, SET_ACCESSED_BY, CPU));
    let mut both = accessed(2 * PAGE)[..2].to_vec();
    both.sort_unstable();
    assert_eq!(both, [CPU, 0]);
    assert_eq!(accessed(3 * PAGE), [CPU, NO_DEVICE, NO_DEVICE, NO_DEVICE]);
    ok(cuMemAdvise(memory, BYTES, UNSET_ACCESSED_BY, HOST));
    assert_eq!(accessed(PAGE), [0, NO_DEVICE, NO_DEVICE, NO_DEVICE]);

    // What cannot be advised.
    let wrong = [
        (memory, BYTES + 1, SET_READ_MOSTLY, DEVICE, CUDA_ERROR_INVALID_VALUE),
        (memory, 0, SET_READ_MOSTLY, DEVICE, CUDA_ERROR_INVALID_VALUE),
        (0, PAGE, SET_READ_MOSTLY, DEVICE, CUDA_ERROR_INVALID_VALUE),
        (memory, PAGE, 0, DEVICE, CUDA_ERROR_INVALID_VALUE),
        (memory, PAGE, 7, DEVICE, CUDA_ERROR_INVALID_VALUE),
        (memory, PAGE, SET_PREFERRED, ABSENT, CUDA_ERROR_INVALID_DEVICE),
        (
            memory,
            PAGE,
            SET_PREFERRED,
            Location { kind: 6, id: 0 },
            CUDA_ERROR_INVALID_VALUE,
        ),
        (
            memory,
            PAGE,
            SET_PREFERRED,
            Location { kind: 3, id: 4000 },
            CUDA_ERROR_INVALID_VALUE,
        ),
        // The host or a device, nothing else (manual).
        (memory, PAGE, SET_ACCESSED_BY, NODE, CUDA_ERROR_INVALID_VALUE),
        (memory, PAGE, SET_ACCESSED_BY, ABSENT, CUDA_ERROR_INVALID_DEVICE),
        (memory, PAGE, UNSET_ACCESSED_BY, NODE_HERE, CUDA_ERROR_INVALID_VALUE),
    ];
    for (pointer, bytes, advice, location, error) in wrong {
        let result = cuMemAdvise(pointer, bytes, advice, location);
        assert_eq!(result, error, "{advice} for {location:?}");
    }
    assert_eq!(
        cuMemAdvise_v1(memory, PAGE, SET_PREFERRED, 99),
        CUDA_ERROR_INVALID_DEVICE
    );
    let mut plain = 0;
    ok(cuMemAlloc(&mut plain, PAGE));
    assert_eq!(
        cuMemAdvise(plain, PAGE, SET_READ_MOSTLY, DEVICE),
        CUDA_ERROR_INVALID_VALUE
    );
    // It ends with the memory.
    ok(cuMemFree(memory));
    let next = managed();
    assert_eq!(attribute(PREFERRED, next, BYTES), NO_DEVICE);
    ok(cuCtxDestroy(context));
}

#[test]
fn several_attributes_are_had_at_once() {
    let context = context();
    let memory = managed();
    ok(cuMemAdvise(memory, BYTES, SET_READ_MOSTLY, zeroed()));
    ok(cuMemAdvise(memory, BYTES, SET_ACCESSED_BY, DEVICE));
    let (mut mostly, mut list, mut preferred) = (9_i32, [9_i32; 2], 9_i32);
    let mut data: [*mut c_void; 3] = [
        (&raw mut mostly).cast(),
        (&raw mut list).cast(),
        (&raw mut preferred).cast(),
    ];
    let mut sizes = [4, 8, 4];
    let mut which = [READ_MOSTLY, ACCESSED_BY, PREFERRED];
    let mut get = |sizes: &mut [usize; 3], which: &mut [c_uint; 3], count, bytes| {
        cuMemRangeGetAttributes(
            data.as_mut_ptr(),
            sizes.as_mut_ptr(),
            which.as_mut_ptr(),
            count,
            memory,
            bytes,
        )
    };
    ok(get(&mut sizes, &mut which, 3, BYTES));
    assert_eq!((mostly, list, preferred), (1, [0, NO_DEVICE], NO_DEVICE));
    assert_eq!(get(&mut sizes, &mut which, 0, BYTES), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(get(&mut sizes, &mut which, 3, BYTES + 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(get(&mut [4, 7, 4], &mut which, 3, BYTES), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(get(&mut [8, 8, 4], &mut which, 3, BYTES), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(get(&mut sizes, &mut [1, 3, 99], 3, BYTES), CUDA_ERROR_INVALID_VALUE);
    let mut value = 0;
    let one = |data: *mut c_void, size, which| cuMemRangeGetAttribute(data, size, which, memory, BYTES);
    let here: *mut c_void = (&raw mut value).cast();
    assert_eq!(one(null_mut(), 4, READ_MOSTLY), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(one(here, 0, ACCESSED_BY), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(one(here, 3, READ_MOSTLY), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(one(here, 4, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(one(here, 4, 9), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuMemRangeGetAttributes(null_mut(), null_mut(), null_mut(), 1, memory, BYTES),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuCtxDestroy(context));
}

#[test]
fn prefetches_are_remembered() {
    let context = context();
    let (memory, stream) = (managed(), stream());
    let page = |index: usize| memory + (index * PAGE) as u64;
    assert_eq!(attribute(PREFETCHED, memory, BYTES), NO_DEVICE);
    ok(cuMemPrefetchAsync(memory, BYTES, DEVICE, 0, stream));
    assert_eq!(attribute(PREFETCHED, memory, BYTES), 0);
    assert_eq!(location(7, memory, BYTES), (1, 0));
    ok(cuMemPrefetchAsync(page(1), PAGE, HOST, 0, null_mut()));
    assert_eq!(attribute(PREFETCHED, page(1), PAGE), CPU);
    assert_eq!(attribute(PREFETCHED, memory, BYTES), NO_DEVICE);
    ok(cuMemPrefetchAsync(page(2), PAGE, NODE_HERE, 0, stream));
    assert_eq!(location(7, page(2), PAGE), (3, 0));
    ok(cuMemPrefetchAsync_v1(memory, BYTES, CPU, stream));
    assert_eq!(location(7, memory, BYTES).0, 2);
    ok(cuMemPrefetchAsync_v1(memory, BYTES, 0, stream));
    assert_eq!(attribute(PREFETCHED, memory, BYTES), 0);
    let prefetch = |pointer, bytes, location, flags| cuMemPrefetchAsync(pointer, bytes, location, flags, stream);
    assert_eq!(prefetch(memory, BYTES + 1, DEVICE, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(prefetch(memory, 0, DEVICE, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(prefetch(memory, BYTES, DEVICE, 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(prefetch(memory, BYTES, ABSENT, 0), CUDA_ERROR_INVALID_DEVICE);
    assert_eq!(prefetch(memory, BYTES, zeroed(), 0), CUDA_ERROR_INVALID_VALUE);
    let part = Location { kind: 6, id: 0 };
    assert_eq!(prefetch(memory, BYTES, part, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(prefetch(&raw const page as u64, 8, DEVICE, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuMemPrefetchAsync_v1(memory, BYTES, 99, stream),
        CUDA_ERROR_INVALID_DEVICE
    );
    let nobody: CUstream = (&raw const page).cast_mut().cast();
    assert_eq!(
        cuMemPrefetchAsync(memory, BYTES, DEVICE, 0, nobody),
        CUDA_ERROR_INVALID_HANDLE
    );
    ok(cuCtxDestroy(context));
}

#[test]
fn batches_prefetch_and_discard() {
    let context = context();
    let (a, b, stream) = (managed(), managed(), stream());
    ok(cuMemsetD8(a, 1, BYTES));
    ok(cuMemsetD8(b, 2, BYTES));
    ok(cuCtxSynchronize());
    let mut pointers = [a, a + 4 * PAGE as u64, b];
    let mut sizes = [PAGE, PAGE, BYTES];
    let mut places = [DEVICE, HOST];
    // The first two go to the device, the last one to the host.
    let mut indices = [0, 2];
    let mut prefetch = |indices: &mut [usize; 2], count, places_count, flags, stream| {
        cuMemPrefetchBatchAsync(
            pointers.as_mut_ptr(),
            sizes.as_mut_ptr(),
            count,
            places.as_mut_ptr(),
            indices.as_mut_ptr(),
            places_count,
            flags,
            stream,
        )
    };
    ok(prefetch(&mut indices, 3, 2, 0, stream));
    assert_eq!(attribute(PREFETCHED, a, PAGE), 0);
    assert_eq!(attribute(PREFETCHED, a + 4 * PAGE as u64, PAGE), 0);
    assert_eq!(attribute(PREFETCHED, a + PAGE as u64, PAGE), NO_DEVICE);
    assert_eq!(attribute(PREFETCHED, b, BYTES), CPU);
    // Indices begin with 0, ascend, and stay below the count; there are no more places than parts.
    for wrong in [[1, 2], [0, 0], [0, 3]] {
        assert_eq!(prefetch(&mut { wrong }, 3, 2, 0, stream), CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(prefetch(&mut indices, 1, 2, 0, stream), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(prefetch(&mut indices, 3, 0, 0, stream), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(prefetch(&mut indices, 0, 0, 0, stream), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(prefetch(&mut indices, 3, 2, 1, stream), CUDA_ERROR_INVALID_VALUE);
    // Not in the legacy default stream, but in a thread's own.
    assert_eq!(prefetch(&mut indices, 3, 2, 0, null_mut()), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemPrefetchBatchAsync_ptsz(
        pointers.as_mut_ptr(),
        sizes.as_mut_ptr(),
        3,
        places.as_mut_ptr(),
        indices.as_mut_ptr(),
        2,
        0,
        null_mut(),
    ));

    // What is discarded may hold anything; what is beside it stays, and what is written next is there.
    let discard = |pointers: &mut [CUdeviceptr], sizes: &mut [usize], flags, stream| {
        cuMemDiscardBatchAsync(pointers.as_mut_ptr(), sizes.as_mut_ptr(), pointers.len(), flags, stream)
    };
    ok(discard(&mut [a + PAGE as u64], &mut [2 * PAGE], 0, stream));
    ok(cuStreamSynchronize(stream));
    let mut bytes = vec![0_u8; BYTES];
    ok(cuMemcpyDtoH(bytes.as_mut_ptr().cast(), a, BYTES));
    assert!(bytes[..PAGE].iter().chain(&bytes[3 * PAGE..]).all(|byte| *byte == 1));
    ok(cuMemsetD8(a + PAGE as u64, 3, PAGE));
    ok(cuMemcpyDtoH(bytes.as_mut_ptr().cast(), a, BYTES));
    assert!(bytes[PAGE..2 * PAGE].iter().all(|byte| *byte == 3));
    assert_eq!(discard(&mut [a], &mut [BYTES + 1], 0, stream), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(discard(&mut [a], &mut [PAGE], 1, stream), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(discard(&mut [], &mut [], 0, stream), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(discard(&mut [a], &mut [PAGE], 0, null_mut()), CUDA_ERROR_INVALID_VALUE);
    // All or nothing.
    ok(cuMemsetD8(b, 4, BYTES));
    ok(cuCtxSynchronize());
    assert_eq!(
        discard(&mut [b, 8], &mut [BYTES, 8], 0, stream),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuCtxSynchronize());
    ok(cuMemcpyDtoH(bytes.as_mut_ptr().cast(), b, BYTES));
    assert!(bytes.iter().all(|byte| *byte == 4));

    let both = |places: &mut [Location], flags| {
        cuMemDiscardAndPrefetchBatchAsync(
            [a, b].as_mut_ptr(),
            [BYTES, BYTES].as_mut_ptr(),
            2,
            places.as_mut_ptr(),
            [0_usize].as_mut_ptr(),
            1,
            flags,
            stream,
        )
    };
    ok(both(&mut [DEVICE], 0));
    assert_eq!(attribute(PREFETCHED, a, BYTES), 0);
    assert_eq!(attribute(PREFETCHED, b, BYTES), 0);
    assert_eq!(both(&mut [ABSENT], 0), CUDA_ERROR_INVALID_DEVICE);
    assert_eq!(both(&mut [DEVICE], 1), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxDestroy(context));
}

#[test]
fn where_memory_is_can_be_asked() {
    let context = context();
    let (memory, stream) = (managed(), stream());
    let half = BYTES / 2;
    let mut found = [zeroed::<Location>(); 4];
    let mut ask = |pointer, bytes, summary, sampling| {
        found = [Location { kind: 99, id: 99 }; 4];
        (
            cuMemGetLocationInfo(pointer, bytes, summary, sampling, found.as_mut_ptr()),
            found.map(|location| location.kind),
        )
    };
    // Nobody has touched it: it is nowhere. Then its second half is somewhere, its first quarter with the device.
    assert_eq!(ask(memory, BYTES, half, PAGE), (0, [0, 0, 99, 99]));
    // SAFETY: managed memory.
    unsafe { std::ptr::write_bytes((memory + half as u64) as *mut u8, 1, half) };
    assert_eq!(ask(memory, BYTES, half, PAGE), (0, [0, 2, 99, 99]));
    ok(cuMemPrefetchAsync(memory, BYTES / 4, DEVICE, 0, stream));
    assert_eq!(ask(memory, BYTES, BYTES / 4, 0), (0, [1, 0, 2, 2]));
    // As many answers as pieces, the last one may be short; the most common place wins.
    assert_eq!(ask(memory, BYTES, BYTES - PAGE, PAGE), (0, [2, 2, 99, 99]));
    // Ordinary memory of the process can be asked about, registered memory cannot.
    let vector = vec![1_u8; 4 * PAGE];
    let own = vector.as_ptr() as u64;
    assert_eq!(ask(own, 2 * PAGE, 2 * PAGE, PAGE), (0, [2, 99, 99, 99]));
    let mut plain = 0;
    ok(cuMemAlloc(&mut plain, BYTES));
    for (pointer, bytes, summary, sampling) in [
        (memory, BYTES, 0, 0),
        (memory, BYTES, BYTES + 1, PAGE),
        (memory, BYTES, PAGE, 2 * PAGE),
        (memory, BYTES + PAGE, PAGE, PAGE),
        (plain, PAGE, PAGE, PAGE),
        (8, PAGE, PAGE, PAGE),
    ] {
        assert_eq!(ask(pointer, bytes, summary, sampling).0, CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(
        cuMemGetLocationInfo(memory, BYTES, PAGE, 0, null_mut()),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuCtxDestroy(context));
}

#[test]
fn managed_memory_is_attached_whole() {
    let context = context();
    let (memory, stream) = (managed(), stream());
    // CU_MEM_ATTACH_GLOBAL, _HOST, _SINGLE
    for flags in [1, 2, 4] {
        ok(cuStreamAttachMemAsync(stream, memory, 0, flags));
        ok(cuStreamAttachMemAsync(stream, memory, BYTES, flags));
    }
    ok(cuStreamSynchronize(stream));
    let attach = |stream, pointer, bytes, flags| cuStreamAttachMemAsync(stream, pointer, bytes, flags);
    assert_eq!(attach(stream, memory, PAGE, 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(attach(stream, memory + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(attach(stream, memory, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(attach(stream, memory, 0, 3), CUDA_ERROR_INVALID_VALUE);
    // The default stream is no stream of its own.
    assert_eq!(attach(null_mut(), memory, 0, 4), CUDA_ERROR_INVALID_VALUE);
    ok(attach(null_mut(), memory, 0, 1));
    let mut plain = 0;
    ok(cuMemAlloc(&mut plain, PAGE));
    assert_eq!(attach(stream, plain, 0, 1), CUDA_ERROR_INVALID_VALUE);
    // Pageable memory is not reached by devices (CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS).
    let vector = [0_u8; 64];
    assert_eq!(attach(stream, vector.as_ptr() as u64, 64, 1), CUDA_ERROR_INVALID_VALUE);
    let nobody: CUstream = vector.as_ptr().cast_mut().cast();
    assert_eq!(attach(nobody, memory, 0, 1), CUDA_ERROR_INVALID_HANDLE);
    // In a capture there is no node for any of these.
    let mut graph = null_mut();
    ok(cuStreamBeginCapture(stream, 2));
    assert_eq!(attach(stream, memory, 0, 1), 900);
    assert_eq!(cuStreamEndCapture(stream, &mut graph), 901);
    ok(cuStreamBeginCapture(stream, 2));
    assert_eq!(cuMemPrefetchAsync(memory, PAGE, DEVICE, 0, stream), 900);
    assert_eq!(cuStreamEndCapture(stream, &mut graph), 901);
    ok(cuCtxDestroy(context));
}
