//! Stream Ordered Memory Allocator: pools, their attributes, access.

use crate::alone::alone;
use crate::basics::{context, stream};
use crate::c::*;
use crate::graph_types::zeroed;
use crate::test_name;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

const CUDA_ERROR_NOT_SUPPORTED: CUresult = 801;

pub type CUmemoryPool = *mut c_void;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    pub kind: c_uint,
    pub id: c_int,
}

/// `CUmemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Props {
    pub kind: c_uint,
    pub handles: c_uint,
    pub location: Location,
    pub win32: *mut c_void,
    pub most: usize,
    pub usage: u16,
    pub rdma: u8,
    pub reserved: [u8; 53],
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Access {
    location: Location,
    flags: c_uint,
}

functions! {
    cuDeviceGetDefaultMemPool(pool: *mut CUmemoryPool, device: CUdevice);
    cuDeviceGetMemPool(pool: *mut CUmemoryPool, device: CUdevice);
    cuDeviceSetMemPool(device: CUdevice, pool: CUmemoryPool);
    cuMemGetDefaultMemPool(pool: *mut CUmemoryPool, location: *mut Location, kind: c_uint);
    cuMemGetMemPool(pool: *mut CUmemoryPool, location: *mut Location, kind: c_uint);
    cuMemSetMemPool(location: *mut Location, kind: c_uint, pool: CUmemoryPool);
    cuMemPoolCreate(pool: *mut CUmemoryPool, props: *const Props);
    cuMemPoolDestroy(pool: CUmemoryPool);
    cuMemPoolTrimTo(pool: CUmemoryPool, keep: usize);
    cuMemPoolSetAttribute(pool: CUmemoryPool, attribute: c_uint, value: *mut c_void);
    cuMemPoolGetAttribute(pool: CUmemoryPool, attribute: c_uint, value: *mut c_void);
    cuMemPoolSetAccess(pool: CUmemoryPool, access: *const Access, count: usize);
    cuMemPoolGetAccess(flags: *mut c_uint, pool: CUmemoryPool, location: *mut Location);
    cuMemAllocAsync(pointer: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemAllocFromPoolAsync(pointer: *mut CUdeviceptr, bytes: usize, pool: CUmemoryPool, stream: CUstream);
    cuMemFreeAsync(pointer: CUdeviceptr, stream: CUstream);
    cuStreamWaitValue32 = "cuStreamWaitValue32_v2" (stream: CUstream, word: CUdeviceptr, value: c_uint, flags: c_uint);
    cuPointerGetAttribute(data: *mut c_void, attribute: c_uint, pointer: CUdeviceptr);
}

pub const DEVICE: Location = Location { kind: 1, id: 0 };
const HOST: Location = Location { kind: 2, id: 0 };
const NOWHERE: Location = Location { kind: 0, id: 0 };
pub const PINNED: c_uint = 1;
const MANAGED: c_uint = 2;
pub const DESCRIPTOR: c_uint = 1;
const READ_WRITE: c_uint = 3;
// CUmemPool_attribute
const FOLLOW: c_uint = 1;
const OPPORTUNISTIC: c_uint = 2;
const INTERNAL: c_uint = 3;
const THRESHOLD: c_uint = 4;
pub const RESERVED: c_uint = 5;
const RESERVED_HIGH: c_uint = 6;
pub const USED: c_uint = 7;
const USED_HIGH: c_uint = 8;

pub const MIB: usize = 1 << 20;
/// What a pool takes from its device at a time.
const PIECE: u64 = 32 << 20;

pub fn props(location: Location, kind: c_uint) -> Props {
    Props {
        kind,
        location,
        ..zeroed()
    }
}

pub fn pool_of(props: Props) -> CUmemoryPool {
    let mut pool = null_mut();
    ok(cuMemPoolCreate(&mut pool, &props));
    pool
}

pub fn size(pool: CUmemoryPool, attribute: c_uint) -> u64 {
    let mut value = u64::MAX;
    ok(cuMemPoolGetAttribute(pool, attribute, (&raw mut value).cast()));
    value
}

pub fn number(pool: CUmemoryPool, attribute: c_uint) -> c_int {
    // One number, and what follows it is left alone.
    let mut value = [0x5555_5555_i32; 2];
    ok(cuMemPoolGetAttribute(pool, attribute, value.as_mut_ptr().cast()));
    assert_eq!(value[1], 0x5555_5555);
    value[0]
}

fn set(pool: CUmemoryPool, attribute: c_uint, mut value: u64) -> CUresult {
    cuMemPoolSetAttribute(pool, attribute, (&raw mut value).cast())
}

pub fn alloc(pool: CUmemoryPool, bytes: usize, stream: CUstream) -> CUdeviceptr {
    let mut pointer = 0;
    ok(cuMemAllocFromPoolAsync(&mut pointer, bytes, pool, stream));
    pointer
}

fn free_memory() -> usize {
    let (mut free, mut total) = (0, 0);
    ok(cuMemGetInfo(&mut free, &mut total));
    free
}

/// A stream that stands still until the word is 1.
fn held_stream() -> (CUstream, *mut u32) {
    let mut word = null_mut();
    ok(cuMemHostAlloc(&mut word, 4, 0));
    let word = word.cast::<u32>();
    // SAFETY: four bytes of ours.
    unsafe { word.write_volatile(0) };
    let stream = stream();
    ok(cuStreamWaitValue32(stream, word as u64, 1, 0));
    (stream, word)
}

/// `cudaMallocAsync(&p, 0)` and `cudaFreeAsync(nullptr)` pass it on.
#[test]
fn nothing_is_allocated_and_freed_with_success() {
    context();
    let stream = stream();
    let mut address = 7;
    ok(cuMemAllocAsync(&mut address, 0, stream));
    assert_eq!(address, 0);
    ok(cuMemFreeAsync(0, stream));
    ok(cuStreamSynchronize(stream));
}

#[test]
fn pools_have_the_attributes_of_the_manual() {
    let context = context();
    let pool = pool_of(Props {
        most: 10 * MIB + 1,
        usage: 2,
        ..props(DEVICE, PINNED)
    });
    for reuse in [FOLLOW, OPPORTUNISTIC, INTERNAL] {
        assert_eq!(number(pool, reuse), 1, "enabled by default");
        ok(set(pool, reuse, 0));
        assert_eq!(number(pool, reuse), 0);
    }
    assert_eq!(size(pool, THRESHOLD), 0);
    ok(set(pool, THRESHOLD, u64::MAX));
    assert_eq!(size(pool, THRESHOLD), u64::MAX);
    // Type, handle types, location, the most it may have, decompression, part of a device.
    assert_eq!(number(pool, 9), PINNED as c_int);
    assert_eq!(number(pool, 10), 0);
    assert_eq!((number(pool, 12), number(pool, 11)), (1, 0));
    assert!((10 * MIB as u64 + 1..11 * MIB as u64).contains(&size(pool, 13)));
    assert_eq!(number(pool, 14), 1);
    assert_eq!(number(pool, 15), -1);
    // What is measured cannot be set, and marks only set back.
    for attribute in [RESERVED, USED, 9, 10, 11, 12, 13, 14, 15] {
        assert_eq!(set(pool, attribute, 0), CUDA_ERROR_INVALID_VALUE, "{attribute}");
    }
    for attribute in [RESERVED_HIGH, USED_HIGH] {
        assert_eq!(set(pool, attribute, 1), CUDA_ERROR_INVALID_VALUE);
        ok(set(pool, attribute, 0));
    }
    for wrong in [0, 16, 99] {
        assert_eq!(set(pool, wrong, 0), CUDA_ERROR_INVALID_VALUE);
        let mut value = 0_u64;
        assert_eq!(
            cuMemPoolGetAttribute(pool, wrong, (&raw mut value).cast()),
            CUDA_ERROR_INVALID_VALUE
        );
    }
    assert_eq!(cuMemPoolGetAttribute(pool, USED, null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuMemPoolSetAttribute(pool, THRESHOLD, null_mut()),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(set(null_mut(), THRESHOLD, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuMemPoolTrimTo(null_mut(), 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemPoolDestroy(pool));
    assert_eq!(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxDestroy(context));
}

#[test]
fn a_pool_counts_and_keeps_what_it_has() {
    // Another test that runs out of memory is given what pools keep.
    alone(test_name!(), &[], || {
        let context = context();
        let (pool, stream) = (pool_of(props(DEVICE, PINNED)), stream());
        let a = alloc(pool, 40 * MIB, stream);
        let b = alloc(pool, MIB, stream);
        assert_eq!(size(pool, USED), 41 * MIB as u64);
        assert_eq!(size(pool, RESERVED), 2 * PIECE);
        ok(cuMemsetD8Async(a, 7, 3 * MIB, stream));
        ok(cuMemFreeAsync(a, stream));
        assert_eq!(size(pool, USED), MIB as u64);
        assert_eq!(size(pool, USED_HIGH), 41 * MIB as u64);
        // Threshold 0: all that is not used goes with the next call that waits.
        ok(cuStreamSynchronize(stream));
        assert_eq!(size(pool, RESERVED), PIECE);
        assert_eq!(size(pool, RESERVED_HIGH), 2 * PIECE);
        ok(set(pool, RESERVED_HIGH, 0));
        ok(set(pool, USED_HIGH, 0));
        assert_eq!(size(pool, RESERVED_HIGH), size(pool, RESERVED));
        assert_eq!(size(pool, USED_HIGH), MIB as u64);
        // With a threshold it stays, is had again, and counts as the device's all the while.
        ok(set(pool, THRESHOLD, u64::MAX));
        let c = alloc(pool, 40 * MIB, stream);
        let before = free_memory();
        ok(cuMemFreeAsync(c, stream));
        ok(cuCtxSynchronize());
        assert_eq!(size(pool, RESERVED), 2 * PIECE);
        assert_eq!(free_memory(), before);
        let d = alloc(pool, 40 * MIB, stream);
        assert_eq!(d, c);
        assert_eq!(size(pool, RESERVED), 2 * PIECE);
        ok(cuMemFreeAsync(d, stream));
        ok(cuStreamSynchronize(stream));
        // A trim leaves at least what it is told, and what is used.
        ok(cuMemPoolTrimTo(pool, 64 * MIB));
        assert_eq!(size(pool, RESERVED), 2 * PIECE);
        ok(cuMemPoolTrimTo(pool, 0));
        assert_eq!(size(pool, RESERVED), PIECE);
        // Memory of a pool is freed by the other call, too, once.
        ok(cuMemFree(b));
        assert_eq!(cuMemFree(b), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemFreeAsync(b, stream), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(size(pool, USED), 0);
        ok(cuMemPoolTrimTo(pool, 0));
        assert_eq!(size(pool, RESERVED), 0);
        // And memory of cuMemAlloc by the stream's.
        let mut plain = 0;
        ok(cuMemAlloc(&mut plain, 100));
        ok(cuMemFreeAsync(plain, stream));
        ok(cuStreamSynchronize(stream));
        assert_eq!(cuMemFree(plain), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            cuMemFreeAsync(&raw const plain as u64, stream),
            CUDA_ERROR_INVALID_VALUE
        );
        ok(cuMemPoolDestroy(pool));
        ok(cuCtxDestroy(context));
    });
}

/// CuPy's tests expect that the first small allocation reserves much more, and the next ones nothing.
#[test]
fn a_pool_takes_memory_in_pieces() {
    alone(test_name!(), &[("MARGAY_MEMORY", "80M")], || {
        context();
        let (pool, stream) = (pool_of(props(DEVICE, PINNED)), stream());
        let before = free_memory();
        let a = alloc(pool, 1024, stream);
        assert_eq!(size(pool, RESERVED), PIECE);
        // To within what an allocation's size is rounded by.
        let taken = before - free_memory();
        assert!((31 * MIB..=32 * MIB).contains(&taken), "{taken}");
        let b = alloc(pool, 31 * MIB, stream);
        assert_eq!(
            (size(pool, RESERVED), size(pool, USED)),
            (PIECE, 31 * MIB as u64 + 1024)
        );
        // The next one takes a second piece; a third is not there, so that the blocks take what they need.
        let c = alloc(pool, 2 * MIB, stream);
        assert_eq!(size(pool, RESERVED), 2 * PIECE);
        let d = alloc(pool, 40 * MIB, stream);
        let reserved = size(pool, RESERVED);
        assert!((73 * MIB as u64..80 * MIB as u64).contains(&reserved), "{reserved}");
        let mut pointer = 0;
        assert_eq!(
            cuMemAllocFromPoolAsync(&mut pointer, 8 * MIB, pool, stream),
            CUDA_ERROR_OUT_OF_MEMORY
        );
        ok(cuMemsetD8Async(d, 1, 40 * MIB, stream));
        for address in [a, b, c, d] {
            ok(cuMemFreeAsync(address, stream));
        }
        ok(cuStreamSynchronize(stream));
        assert_eq!((size(pool, RESERVED), free_memory()), (0, before));
        // A pool that is destroyed has no room beside what is used of it.
        let last = alloc(pool, MIB, stream);
        ok(cuMemPoolDestroy(pool));
        assert_eq!(free_memory(), before - MIB);
        ok(cuMemFreeAsync(last, stream));
        ok(cuStreamSynchronize(stream));
        assert_eq!(free_memory(), before);
    });
}

/// Warp's tests free memory of a device's pool when the context is gone that they allocated it in.
#[test]
fn a_pools_memory_outlives_a_context() {
    alone(test_name!(), &[], || {
        let first = context();
        let mut pool = null_mut();
        ok(cuDeviceGetDefaultMemPool(&mut pool, 0));
        ok(set(pool, THRESHOLD, u64::MAX));
        let second = context();
        let made = stream();
        let (kept, used) = (alloc(pool, 3 * MIB, made), alloc(pool, MIB, made));
        let mut plain = 0;
        ok(cuMemAlloc(&mut plain, 100));
        ok(cuMemsetD8Async(used, 7, MIB, made));
        ok(cuMemFreeAsync(kept, made));
        ok(cuCtxDestroy(second));
        ok(cuCtxSetCurrent(first));
        assert_eq!(
            cuMemFree(plain),
            CUDA_ERROR_INVALID_VALUE,
            "the context's own memory is gone"
        );
        let mut byte = 0_u8;
        ok(cuMemcpyDtoH((&raw mut byte).cast(), used, 1));
        assert_eq!((byte, size(pool, USED)), (7, MIB as u64));
        let mut owner = null_mut::<c_void>();
        ok(cuPointerGetAttribute((&raw mut owner).cast(), 1, used));
        assert_eq!(owner, first, "a context of the device");
        // What the pool kept is used again, and what is out is freed, in another context's stream.
        let stream = stream();
        assert_eq!(alloc(pool, 3 * MIB, stream), kept);
        ok(cuMemFreeAsync(used, stream));
        ok(cuMemFreeAsync(kept, stream));
        ok(cuStreamSynchronize(stream));
        assert_eq!(size(pool, USED), 0);
        assert_eq!(cuMemFreeAsync(used, stream), CUDA_ERROR_INVALID_VALUE);
        // The device's last context takes everything with it.
        let last = alloc(pool, MIB, stream);
        ok(cuCtxDestroy(first));
        context();
        assert_eq!(cuMemFree(last), CUDA_ERROR_INVALID_VALUE);
        assert_eq!((size(pool, USED), size(pool, RESERVED)), (0, 0));
    });
}

#[test]
fn memory_is_used_again_by_the_rules() {
    // Another test that runs out of memory is given what pools keep.
    alone(test_name!(), &[], || {
        let context = context();
        let pool = pool_of(props(DEVICE, PINNED));
        ok(set(pool, THRESHOLD, u64::MAX));
        let (held, release) = held_stream();
        let other = stream();
        let first = alloc(pool, MIB, held);
        ok(cuMemsetD8Async(first, 1, MIB, held));
        ok(cuMemFreeAsync(first, held));
        // The stream's own order makes it free for the stream itself, though nothing has run yet.
        let again = alloc(pool, MIB, held);
        assert_eq!(again, first);
        ok(cuMemsetD8Async(again, 2, MIB, held));
        ok(cuMemFreeAsync(again, held));
        // Another stream does not get it before the free is done.
        let elsewhere = alloc(pool, MIB, other);
        assert_ne!(elsewhere, first);
        // SAFETY: held_stream's word.
        unsafe { release.write_volatile(1) };
        ok(cuStreamSynchronize(held));
        let after = alloc(pool, MIB, other);
        assert_eq!(after, first, "opportunistic reuse");
        // What the stream wrote before the free is done with.
        let mut byte = 0_u8;
        ok(cuMemsetD8(after, 3, MIB));
        ok(cuMemcpyDtoH((&raw mut byte).cast(), after, 1));
        assert_eq!(byte, 3);
        ok(cuMemFreeAsync(after, held));
        ok(cuMemFreeAsync(elsewhere, other));
        ok(cuCtxSynchronize());
        ok(cuMemPoolTrimTo(pool, 0));
        // Not where the program forbids it.
        ok(set(pool, OPPORTUNISTIC, 0));
        let own = alloc(pool, MIB, held);
        ok(cuMemFreeAsync(own, held));
        ok(cuStreamSynchronize(held));
        assert_ne!(alloc(pool, MIB, other), own);
        assert_eq!(alloc(pool, MIB, held), own);
        ok(cuMemPoolDestroy(pool));
        ok(cuCtxDestroy(context));
    });
}

#[test]
fn a_pool_has_no_more_than_its_most() {
    let context = context();
    let pool = pool_of(Props {
        most: 4 * MIB,
        ..props(DEVICE, PINNED)
    });
    ok(set(pool, THRESHOLD, u64::MAX));
    let stream = stream();
    let a = alloc(pool, 3 * MIB, stream);
    let mut pointer = 0;
    assert_eq!(
        cuMemAllocFromPoolAsync(&mut pointer, 2 * MIB, pool, stream),
        CUDA_ERROR_OUT_OF_MEMORY
    );
    // What it keeps makes room.
    ok(cuMemFreeAsync(a, stream));
    ok(cuStreamSynchronize(stream));
    let b = alloc(pool, MIB, stream);
    let c = alloc(pool, 3 * MIB, stream);
    assert!(size(pool, RESERVED) <= 4 * MIB as u64);
    // A pool that is destroyed lives on in what it has given.
    ok(cuMemPoolDestroy(pool));
    assert_eq!(
        cuMemAllocFromPoolAsync(&mut pointer, 1, pool, stream),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuMemsetD8(c, 1, 3 * MIB));
    ok(cuMemFreeAsync(b, stream));
    ok(cuMemFree(c));
    let (mut free, mut total) = (0, 0);
    ok(cuMemGetInfo(&mut free, &mut total));
    assert_eq!(
        cuMemAllocAsync(&mut pointer, total + 1, stream),
        CUDA_ERROR_OUT_OF_MEMORY
    );
    assert_eq!(cuMemAllocAsync(null_mut(), 1, stream), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuMemAllocAsync(&mut pointer, 1, (&raw mut pointer).cast()),
        CUDA_ERROR_INVALID_HANDLE
    );
    ok(cuCtxDestroy(context));
}

/// Programs for a GPU count on the difference: CuPy's tests wait for `cuMemAlloc` to fail.
#[test]
fn what_a_pool_keeps_is_for_pools_until_it_is_trimmed() {
    alone(test_name!(), &[("MARGAY_MEMORY", "64M")], || {
        context();
        let stream = stream();
        let mut pool = null_mut();
        ok(cuDeviceGetMemPool(&mut pool, 0));
        ok(set(pool, THRESHOLD, u64::MAX));
        let a = alloc(pool, 48 * MIB, stream);
        ok(cuMemFreeAsync(a, stream));
        ok(cuStreamSynchronize(stream));
        assert!(size(pool, RESERVED) >= 48 * MIB as u64);
        let (mut free, mut total) = (0, 0);
        ok(cuMemGetInfo(&mut free, &mut total));
        assert!(free <= 16 * MIB && total == 64 * MIB, "{free} of {total}");
        let mut plain = 0;
        assert_eq!(cuMemAlloc(&mut plain, 40 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
        assert!(size(pool, RESERVED) >= 48 * MIB as u64);
        ok(cuMemPoolTrimTo(pool, 0));
        ok(cuMemAlloc(&mut plain, 40 * MIB));
        ok(cuMemFree(plain));
        // Another pool has it when nothing else is left.
        let a = alloc(pool, 48 * MIB, stream);
        ok(cuMemFreeAsync(a, stream));
        ok(cuStreamSynchronize(stream));
        let b = alloc(pool_of(props(DEVICE, PINNED)), 40 * MIB, stream);
        assert_eq!(size(pool, RESERVED), 0);
        // And what is queued to be freed with a threshold of 0 is there for all after a call that waits.
        ok(set(pool, THRESHOLD, 0));
        ok(cuMemFreeAsync(b, stream));
        assert_eq!(cuMemAlloc(&mut plain, 40 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
        ok(cuStreamSynchronize(stream));
        ok(cuMemAlloc(&mut plain, 40 * MIB));
    });
}

#[test]
fn devices_and_places_have_pools() {
    let context = context();
    let (mut default, mut current) = (null_mut(), null_mut());
    ok(cuDeviceGetDefaultMemPool(&mut default, 0));
    ok(cuDeviceGetMemPool(&mut current, 0));
    assert_eq!(current, default);
    let (mut device, mut other) = (DEVICE, null_mut());
    ok(cuMemGetDefaultMemPool(&mut other, &mut device, PINNED));
    assert_eq!(other, default);
    let pool = pool_of(props(DEVICE, PINNED));
    ok(cuMemSetMemPool(&mut device, PINNED, pool));
    ok(cuDeviceGetMemPool(&mut current, 0));
    assert_eq!(current, pool);
    ok(cuMemGetMemPool(&mut other, &mut device, PINNED));
    assert_eq!(other, pool);
    // Memory that is asked for without a pool comes from the current one.
    let mut pointer = 0;
    ok(cuMemAllocAsync(&mut pointer, 100, null_mut()));
    let mut found = null_mut::<c_void>();
    ok(cuPointerGetAttribute((&raw mut found).cast(), 17, pointer));
    assert_eq!(found, pool);
    ok(cuMemFreeAsync(pointer, null_mut()));
    // The default one is back when another one goes, and stays.
    ok(cuDeviceSetMemPool(0, pool));
    ok(cuMemPoolDestroy(pool));
    ok(cuDeviceGetMemPool(&mut current, 0));
    assert_eq!(current, default);
    assert_eq!(cuMemPoolDestroy(default), CUDA_ERROR_INVALID_VALUE);

    // The host, and managed memory with and without a place.
    let mut seen = vec![default];
    for (mut location, kind) in [(HOST, PINNED), (NOWHERE, MANAGED), (HOST, MANAGED), (DEVICE, MANAGED)] {
        let (mut first, mut second) = (null_mut(), null_mut());
        ok(cuMemGetDefaultMemPool(&mut first, &mut location, kind));
        ok(cuMemGetMemPool(&mut second, &mut location, kind));
        assert_eq!(first, second);
        assert!(!seen.contains(&first));
        seen.push(first);
        assert_eq!(number(first, 9), kind as c_int);
        assert_eq!(number(first, 12), location.kind as c_int);
        let own = pool_of(props(location, kind));
        ok(cuMemSetMemPool(&mut location, kind, own));
        ok(cuMemGetMemPool(&mut second, &mut location, kind));
        assert_eq!(second, own);
        ok(cuMemPoolDestroy(own));
        ok(cuMemGetMemPool(&mut second, &mut location, kind));
        assert_eq!(second, first);
    }
    // The type and the place must be the pool's.
    let managed = pool_of(props(DEVICE, MANAGED));
    assert_eq!(cuMemSetMemPool(&mut device, PINNED, managed), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuDeviceSetMemPool(0, managed), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuDeviceSetMemPool(99, default), CUDA_ERROR_INVALID_DEVICE);
    assert_eq!(cuDeviceSetMemPool(0, null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuDeviceGetMemPool(&mut other, 99), CUDA_ERROR_INVALID_DEVICE);
    assert_eq!(cuDeviceGetMemPool(null_mut(), 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuDeviceGetDefaultMemPool(&mut other, -1), CUDA_ERROR_INVALID_DEVICE);
    let wrong = [
        (NOWHERE, PINNED, CUDA_ERROR_INVALID_VALUE),
        (Location { kind: 1, id: 99 }, PINNED, CUDA_ERROR_INVALID_DEVICE),
        (Location { kind: 3, id: 0 }, PINNED, CUDA_ERROR_NOT_SUPPORTED),
        (Location { kind: 4, id: 0 }, PINNED, CUDA_ERROR_INVALID_VALUE),
        (Location { kind: 77, id: 0 }, PINNED, CUDA_ERROR_INVALID_VALUE),
        (DEVICE, 0, CUDA_ERROR_INVALID_VALUE),
        (DEVICE, 3, CUDA_ERROR_INVALID_VALUE),
        // A part of a device: not of managed memory, nor one that does not exist.
        (Location { kind: 6, id: 0 }, MANAGED, CUDA_ERROR_INVALID_VALUE),
        (Location { kind: 6, id: 1 << 8 }, PINNED, CUDA_ERROR_INVALID_VALUE),
    ];
    for (mut location, kind, error) in wrong {
        assert_eq!(
            cuMemGetDefaultMemPool(&mut other, &mut location, kind),
            error,
            "{location:?}"
        );
        assert_eq!(cuMemGetMemPool(&mut other, &mut location, kind), error);
        assert_eq!(cuMemPoolCreate(&mut other, &props(location, kind)), error);
    }
    // A device with one part is that part (manual).
    let whole = pool_of(props(Location { kind: 6, id: 0 }, PINNED));
    assert_eq!((number(whole, 12), number(whole, 15)), (1, -1));
    ok(cuCtxDestroy(context));
}

#[test]
fn properties_of_pools_are_checked() {
    let context = context();
    let mut pool: CUmemoryPool = null_mut();
    let good = props(DEVICE, PINNED);
    let mut reserved = good;
    reserved.reserved[52] = 1;
    let wrong = [
        (reserved, CUDA_ERROR_INVALID_VALUE),
        (
            Props {
                win32: (&raw mut pool).cast(),
                ..good
            },
            CUDA_ERROR_INVALID_VALUE,
        ),
        (Props { usage: 1, ..good }, CUDA_ERROR_INVALID_VALUE),
        (Props { handles: 2, ..good }, CUDA_ERROR_NOT_SUPPORTED),
        (Props { handles: 8, ..good }, CUDA_ERROR_NOT_SUPPORTED),
        (Props { handles: 64, ..good }, CUDA_ERROR_INVALID_VALUE),
        // Pools of host memory and of managed memory are not shared, and managed ones have no most (manual).
        (
            Props {
                handles: DESCRIPTOR,
                ..props(HOST, PINNED)
            },
            CUDA_ERROR_INVALID_VALUE,
        ),
        (
            Props {
                handles: DESCRIPTOR,
                ..props(DEVICE, MANAGED)
            },
            CUDA_ERROR_INVALID_VALUE,
        ),
        (
            Props {
                most: MIB,
                ..props(DEVICE, MANAGED)
            },
            CUDA_ERROR_INVALID_VALUE,
        ),
        (
            Props {
                usage: 2,
                ..props(DEVICE, MANAGED)
            },
            CUDA_ERROR_INVALID_VALUE,
        ),
    ];
    for (props, error) in wrong {
        assert_eq!(cuMemPoolCreate(&mut pool, &props), error, "{props:?}");
    }
    assert_eq!(cuMemPoolCreate(null_mut(), &good), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuMemPoolCreate(&mut pool, std::ptr::null()), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxDestroy(context));
}

#[test]
fn host_and_managed_pools_give_memory_of_their_kind() {
    let context = context();
    let stream = stream();
    let attribute = |pointer, which| {
        let mut value = -1_i32;
        ok(cuPointerGetAttribute((&raw mut value).cast(), which, pointer));
        value
    };
    // Memory type, managed, what kernels may do.
    const MEMORY_TYPE: c_uint = 2;
    const IS_MANAGED: c_uint = 8;
    const ACCESS: c_uint = 16;
    let host = pool_of(props(HOST, PINNED));
    let pointer = alloc(host, 5000, stream);
    assert_eq!(attribute(pointer, MEMORY_TYPE), 1);
    assert_eq!(attribute(pointer, IS_MANAGED), 0);
    // By default the host's alone (manual); devices are let in one by one.
    assert_eq!(attribute(pointer, ACCESS), 0);
    let mut flags = 99;
    let (mut device, mut here) = (DEVICE, HOST);
    ok(cuMemPoolGetAccess(&mut flags, host, &mut device));
    assert_eq!(flags, 0);
    ok(cuMemPoolGetAccess(&mut flags, host, &mut here));
    assert_eq!(flags, READ_WRITE);
    let allow = Access {
        location: DEVICE,
        flags: READ_WRITE,
    };
    ok(cuMemPoolSetAccess(host, &allow, 1));
    ok(cuMemPoolGetAccess(&mut flags, host, &mut device));
    assert_eq!(flags, READ_WRITE);
    assert_eq!(attribute(pointer, ACCESS), READ_WRITE as c_int);
    ok(cuMemsetD8Async(pointer, 9, 5000, stream));
    ok(cuStreamSynchronize(stream));
    // SAFETY: pinned memory, of 5000 bytes.
    assert_eq!(unsafe { *((pointer + 4999) as *const u8) }, 9);
    // Not pinned memory to be freed by that call.
    assert_eq!(cuMemFreeHost(pointer as *mut c_void), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemFreeAsync(pointer, stream));
    ok(cuMemPoolDestroy(host));

    let managed = pool_of(props(NOWHERE, MANAGED));
    let pointer = alloc(managed, 5000, stream);
    assert_eq!(attribute(pointer, IS_MANAGED), 1);
    ok(cuMemPoolGetAccess(&mut flags, managed, &mut device));
    assert_eq!(flags, READ_WRITE);
    ok(cuMemPoolGetAccess(&mut flags, managed, &mut here));
    assert_eq!(flags, READ_WRITE);
    // SAFETY: managed memory, of 5000 bytes.
    unsafe { *(pointer as *mut u8) = 5 };
    let mut byte = 0_u8;
    ok(cuMemcpyDtoH((&raw mut byte).cast(), pointer, 1));
    assert_eq!(byte, 5);
    ok(cuMemFree(pointer));
    ok(cuMemPoolDestroy(managed));
    ok(cuCtxDestroy(context));
}

#[test]
fn access_to_pools_is_checked() {
    let context = context();
    let pool = pool_of(props(DEVICE, PINNED));
    let mut flags = 0;
    let mut device = DEVICE;
    ok(cuMemPoolGetAccess(&mut flags, pool, &mut device));
    assert_eq!(flags, READ_WRITE);
    let allow = |location, flags| Access { location, flags };
    ok(cuMemPoolSetAccess(pool, &allow(DEVICE, READ_WRITE), 1));
    // A pool's own device keeps it.
    assert_eq!(
        cuMemPoolSetAccess(pool, &allow(DEVICE, 0), 1),
        CUDA_ERROR_INVALID_DEVICE
    );
    assert_eq!(cuMemPoolSetAccess(pool, &allow(DEVICE, 2), 1), CUDA_ERROR_INVALID_VALUE);
    let absent = Location { kind: 1, id: 99 };
    assert_eq!(
        cuMemPoolSetAccess(pool, &allow(absent, 3), 1),
        CUDA_ERROR_INVALID_DEVICE
    );
    assert_eq!(cuMemPoolSetAccess(pool, &allow(HOST, 3), 1), CUDA_ERROR_NOT_SUPPORTED);
    assert_eq!(cuMemPoolSetAccess(pool, std::ptr::null(), 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuMemPoolSetAccess(null_mut(), &allow(DEVICE, 3), 1),
        CUDA_ERROR_INVALID_VALUE
    );
    let mut nowhere = NOWHERE;
    assert_eq!(
        cuMemPoolGetAccess(&mut flags, pool, &mut nowhere),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuMemPoolGetAccess(null_mut(), pool, &mut device),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuMemPoolGetAccess(&mut flags, pool, null_mut()),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuMemPoolDestroy(pool));
    ok(cuCtxDestroy(context));
}

#[test]
fn a_second_device_is_let_into_a_pool() {
    alone(test_name!(), &[("MARGAY_DEVICES", "2")], || {
        context();
        let pool = pool_of(props(DEVICE, PINNED));
        let mut second = Location { kind: 1, id: 1 };
        let mut flags = 9;
        ok(cuMemPoolGetAccess(&mut flags, pool, &mut second));
        assert_eq!(flags, 0);
        for wish in [1, READ_WRITE, 0] {
            let access = Access {
                location: second,
                flags: wish,
            };
            ok(cuMemPoolSetAccess(pool, &access, 1));
            ok(cuMemPoolGetAccess(&mut flags, pool, &mut second));
            assert_eq!(flags, wish);
        }
        // A pool is of one device, and current for that one.
        assert_eq!(cuDeviceSetMemPool(1, pool), CUDA_ERROR_INVALID_VALUE);
        let (mut a, mut b) = (null_mut(), null_mut());
        ok(cuDeviceGetDefaultMemPool(&mut a, 0));
        ok(cuDeviceGetDefaultMemPool(&mut b, 1));
        assert_ne!(a, b);
        // From another device's pool: memory of that device.
        let other = pool_of(props(second, PINNED));
        let pointer = alloc(other, 64, null_mut());
        let mut ordinal = -1;
        ok(cuPointerGetAttribute((&raw mut ordinal).cast(), 9, pointer));
        assert_eq!(ordinal, 1);
        ok(cuMemFreeAsync(pointer, null_mut()));
        ok(cuMemPoolDestroy(other));
    });
}
