//! Whose memory kernels reach: each context has an address space of its own (CUDA Driver API, Unified Addressing; Peer Context
//! Memory Access; Virtual Memory Management; Stream Ordered Memory Allocator).

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;

use crate::alone::{Run, alone};
use crate::basics::{alloc, stream};
use crate::c::*;
use crate::code::{function, module, read, try_launch};
use crate::test_name;

const PINNED: c_uint = 1;
const DEVICE: c_uint = 1;
const READ_WRITE: c_uint = 3;

/// `CUmemAccessDesc`.
#[repr(C)]
pub struct Access {
    kind: c_uint,
    id: c_int,
    flags: c_uint,
}

/// `CUmemAllocationProp`.
#[repr(C)]
pub struct Prop {
    kind: c_uint,
    handle_types: c_uint,
    location_type: c_uint,
    location_id: c_int,
    win32: *mut c_void,
    flags: [u8; 8],
}

functions! {
    cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);
    cuCtxDisablePeerAccess(peer: CUcontext);
    cuMemAllocManaged(pointer: *mut CUdeviceptr, bytes: usize, flags: u32);
    cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: u32);
    cuMemAllocAsync(pointer: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    cuDeviceGetDefaultMemPool(pool: *mut *mut c_void, device: CUdevice);
    cuMemPoolSetAccess(pool: *mut c_void, access: *const Access, count: usize);
    cuMemAddressReserve(pointer: *mut CUdeviceptr, bytes: usize, alignment: usize, hint: CUdeviceptr, flags: c_ulonglong);
    cuMemCreate(handle: *mut u64, bytes: usize, prop: *const Prop, flags: c_ulonglong);
    cuMemMap(pointer: CUdeviceptr, bytes: usize, offset: usize, handle: u64, flags: c_ulonglong);
    cuMemSetAccess(pointer: CUdeviceptr, bytes: usize, access: *const Access, count: usize);
}

const TOUCH: &str = "
    .visible .entry touch(.param .u64 at)
    {
        .reg .b64 %p;
        ld.param.u64 %p, [at];
        st.global.u32 [%p], 7;
        ret;
    }";

/// A new context of a device, and the kernel in it.
fn with_kernel(device: CUdevice) -> (CUcontext, CUfunction) {
    let mut context = null_mut();
    ok(cuInit(0));
    ok(cuCtxCreate(&mut context, 0, device));
    (context, function(module(TOUCH), "touch"))
}

/// What a kernel of the current context comes to that writes there.
fn touch(kernel: CUfunction, at: CUdeviceptr) -> CUresult {
    try_launch(kernel, 1, 1, &[at])
}

fn says(run: &Run, words: &str) {
    assert!(run.stderr.contains(words), "{}", run.stderr);
}

#[test]
fn a_context_does_not_see_the_memory_of_another_of_its_device() {
    let run = alone(test_name!(), &[("MARGAY_LOG", "error")], || {
        let (first, own) = with_kernel(0);
        let before = alloc(64);
        assert_eq!(touch(own, before), 0);
        let (_, other) = with_kernel(0);
        let after = alloc(64);
        assert_eq!(touch(other, after), 0);
        // Nor does the first that of one that came later.
        ok(cuCtxSetCurrent(first));
        assert_eq!(touch(own, before), 0);
        assert_eq!(read(before, 1), [7]);
        assert_eq!(touch(own, after), 700);
    });
    says(&run, "an allocation of 64 bytes");
    says(&run, "it is another context's, which the kernel's cannot see");
}

#[test]
fn a_later_context_does_not_see_what_was_there_before() {
    let run = alone(test_name!(), &[("MARGAY_LOG", "error")], || {
        with_kernel(0);
        let before = alloc(64);
        let (_, other) = with_kernel(0);
        assert_eq!(touch(other, before), 700);
    });
    says(&run, "it is another context's, which the kernel's cannot see");
}

#[test]
fn a_context_that_is_alone_again_sees_what_it_has() {
    alone(test_name!(), &[], || {
        let (first, own) = with_kernel(0);
        let (second, _) = with_kernel(0);
        ok(cuCtxDestroy(second));
        ok(cuCtxSetCurrent(first));
        assert_eq!(touch(own, alloc(64)), 0);
        // And so does another one with the map of that which has gone.
        let (_, third) = with_kernel(0);
        assert_eq!(touch(third, alloc(64)), 0);
        ok(cuCtxSetCurrent(first));
        assert_eq!(touch(own, alloc(64)), 0);
    });
}

#[test]
fn managed_and_pinned_memory_are_everybodys() {
    alone(test_name!(), &[], || {
        with_kernel(0);
        let (mut managed, mut pinned) = (0, null_mut());
        ok(cuMemAllocManaged(&mut managed, 64, 1));
        // Without CU_MEMHOSTALLOC_PORTABLE: unified addressing makes no difference.
        ok(cuMemHostAlloc(&mut pinned, 64, 0));
        let (_, other) = with_kernel(0);
        assert_eq!(touch(other, managed), 0);
        assert_eq!(touch(other, pinned as CUdeviceptr), 0);
    });
}

#[test]
fn peers_see_each_others_memory_as_long_as_they_may() {
    let run = alone(
        test_name!(),
        &[("MARGAY_DEVICES", "2"), ("MARGAY_LOG", "error")],
        || {
            let (first, _) = with_kernel(0);
            let before = alloc(64);
            let (_, other) = with_kernel(1);
            ok(cuCtxEnablePeerAccess(first, 0));
            assert_eq!(touch(other, before), 0);
            // What comes later is seen as well.
            ok(cuCtxPushCurrent(first));
            let after = alloc(64);
            ok(cuCtxPopCurrent(&mut null_mut()));
            assert_eq!(touch(other, after), 0);
            ok(cuCtxDisablePeerAccess(first));
            assert_eq!(touch(other, after), 700);
        },
    );
    says(
        &run,
        "it is device 0's, to which the kernel's context has no access (cuCtxEnablePeerAccess)",
    );
}

#[test]
fn access_goes_one_way() {
    alone(test_name!(), &[("MARGAY_DEVICES", "2")], || {
        let (first, own) = with_kernel(0);
        with_kernel(1);
        let theirs = alloc(64);
        ok(cuCtxEnablePeerAccess(first, 0));
        ok(cuCtxSetCurrent(first));
        assert_eq!(touch(own, theirs), 700);
    });
}

#[test]
fn memory_of_pools_is_the_devices_and_those_that_may() {
    let run = alone(
        test_name!(),
        &[("MARGAY_DEVICES", "2"), ("MARGAY_LOG", "error")],
        || {
            let (first, _) = with_kernel(0);
            let (mut memory, mut pool) = (0, null_mut());
            ok(cuMemAllocAsync(&mut memory, 64, stream()));
            ok(cuCtxSynchronize());
            let (_, same) = with_kernel(0);
            assert_eq!(touch(same, memory), 0);
            let (_, other) = with_kernel(1);
            ok(cuDeviceGetDefaultMemPool(&mut pool, 0));
            let access = |flags| Access {
                kind: DEVICE,
                id: 1,
                flags,
            };
            ok(cuMemPoolSetAccess(pool, &access(READ_WRITE), 1));
            assert_eq!(touch(other, memory), 0);
            ok(cuMemPoolSetAccess(pool, &access(0), 1));
            // That of contexts is another matter.
            ok(cuCtxEnablePeerAccess(first, 0));
            assert_eq!(touch(other, memory), 700);
        },
    );
    says(&run, "(cuMemPoolSetAccess)");
}

#[test]
fn mapped_memory_is_for_devices_that_were_given_access() {
    let run = alone(
        test_name!(),
        &[("MARGAY_DEVICES", "2"), ("MARGAY_LOG", "error")],
        || {
            const BYTES: usize = 2 << 20;
            let (_, first) = with_kernel(0);
            let (mut memory, mut place) = (0, 0);
            let prop = Prop {
                kind: PINNED,
                handle_types: 0,
                location_type: DEVICE,
                location_id: 0,
                win32: null_mut(),
                flags: [0; 8],
            };
            ok(cuMemCreate(&mut memory, BYTES, &prop, 0));
            ok(cuMemAddressReserve(&mut place, BYTES, 0, 0, 0));
            ok(cuMemMap(place, BYTES, 0, memory, 0));
            let access = |id| Access {
                kind: DEVICE,
                id,
                flags: READ_WRITE,
            };
            ok(cuMemSetAccess(place, BYTES, &access(0), 1));
            assert_eq!(touch(first, place), 0);
            // Of all contexts of the device.
            let (_, same) = with_kernel(0);
            assert_eq!(touch(same, place), 0);
            let (_, other) = with_kernel(1);
            ok(cuMemSetAccess(place, BYTES, &access(1), 1));
            assert_eq!(touch(other, place), 0);
            let none = Access { flags: 0, ..access(1) };
            ok(cuMemSetAccess(place, BYTES, &none, 1));
            assert_eq!(touch(other, place), 700);
        },
    );
    says(&run, "(cuMemSetAccess)");
}

#[test]
fn what_was_freed_is_nobodys_for_a_while() {
    alone(test_name!(), &[], || {
        let (_, own) = with_kernel(0);
        let freed = alloc(64);
        ok(cuMemFree(freed));
        for _ in 0..100 {
            assert_ne!(alloc(64), freed);
        }
        assert_eq!(touch(own, freed), 700);
    });
}
