//! First versions of calls, legacy calls, and calls that this machine cannot serve: `Context Management [DEPRECATED]` and
//! the chapters on graphics of the manual.

use crate::c::*;
use std::ffi::c_uint;
use std::ptr::null_mut;

const CUDA_ERROR_NOT_SUPPORTED: CUresult = 801;

#[test]
fn graphics_are_not_supported() {
    ok(cuInit(0));
    assert_eq!(cuGLInit(), CUDA_ERROR_NOT_SUPPORTED);
    assert_eq!(
        cuEGLStreamConsumerConnect(null_mut(), null_mut()),
        CUDA_ERROR_NOT_SUPPORTED
    );
    assert_eq!(cuVDPAUGetDevice(null_mut(), 0, null_mut()), CUDA_ERROR_NOT_SUPPORTED);
    assert_eq!(
        cuGraphicsMapResources(0, null_mut(), null_mut()),
        CUDA_ERROR_NOT_SUPPORTED
    );
}

#[test]
fn the_first_versions_answer_what_32_bits_can_say() {
    let mut context = null_mut();
    ok(cuInit(0));
    ok(cuCtxCreate(&mut context, 0, 0));
    let (mut free, mut total): (c_uint, c_uint) = (1, 1);
    ok(cuMemGetInfo_v1(&mut free, &mut total));
    let (mut wide_free, mut wide_total) = (0, 0);
    ok(cuMemGetInfo(&mut wide_free, &mut wide_total));
    assert_eq!(total as usize, wide_total.min(u32::MAX as usize));
    assert!(free <= total && free > 0);
    ok(cuDeviceTotalMem_v1(&mut free, 0));
    assert_eq!(free, total);
    let mut host = null_mut();
    ok(cuMemAllocHost_v1(&mut host, 16));
    ok(cuMemFreeHost(host));
    assert_eq!(cuMemAllocHost_v1(&mut host, 0), CUDA_ERROR_INVALID_VALUE);
    // A pointer of 32 bits cannot hold an address.
    let mut pointer: c_uint = 7;
    assert_eq!(cuMemAlloc_v1(&mut pointer, 16), CUDA_ERROR_NOT_SUPPORTED);
    assert_eq!(pointer, 7);
    ok(cuCtxDestroy(context));
}

#[test]
fn the_last_user_who_leaves_a_context_destroys_it() {
    let (mut context, mut again) = (null_mut(), null_mut());
    ok(cuInit(0));
    ok(cuCtxCreate(&mut context, 0, 0));
    assert_eq!(cuCtxAttach(&mut again, 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuCtxAttach(null_mut(), 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxAttach(&mut again, 0));
    assert_eq!(again, context);
    ok(cuCtxDetach(context));
    ok(cuCtxSynchronize());
    // Not current, hence not to be left.
    ok(cuCtxPopCurrent(&mut again));
    assert_eq!(cuCtxDetach(context), CUDA_ERROR_INVALID_CONTEXT);
    ok(cuCtxPushCurrent(context));
    ok(cuCtxDetach(context));
    assert_eq!(cuCtxDetach(context), CUDA_ERROR_INVALID_CONTEXT);
    assert_eq!(cuCtxPushCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
}

#[test]
fn primary_contexts_are_retained_instead() {
    let mut context = null_mut();
    ok(cuInit(0));
    ok(cuDevicePrimaryCtxRetain(&mut context, 0));
    ok(cuCtxPushCurrent(context));
    assert_eq!(cuCtxAttach(&mut context, 0), CUDA_ERROR_INVALID_CONTEXT);
    assert_eq!(cuCtxDetach(context), CUDA_ERROR_INVALID_CONTEXT);
    ok(cuCtxPopCurrent(&mut context));
    ok(cuDevicePrimaryCtxRelease(0));
}
