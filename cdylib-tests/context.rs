//! Context Management, Primary Context Management.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use crate::alone::alone;
use crate::c::*;
use crate::code::*;
use crate::test_name;

functions! {
    cuCtxCreate_v3(context: *mut CUcontext, affinity: *const [u32; 2], count: c_int, flags: c_uint, device: CUdevice);
    cuCtxCreate_v4(context: *mut CUcontext, parameters: *const CreateParameters, flags: c_uint, device: CUdevice);
    cuCtxPushCurrent = "cuCtxPushCurrent_v2" (context: CUcontext);
    cuCtxPopCurrent = "cuCtxPopCurrent_v2" (context: *mut CUcontext);
    cuCtxGetDevice(device: *mut CUdevice);
    cuCtxGetDevice_v2(device: *mut CUdevice, context: CUcontext);
    cuCtxGetFlags(flags: *mut c_uint);
    cuCtxSetFlags(flags: c_uint);
    cuCtxGetId(context: CUcontext, id: *mut u64);
    cuCtxGetApiVersion(context: CUcontext, version: *mut c_uint);
    cuCtxSynchronize_v2(context: CUcontext);
    cuCtxGetLimit(value: *mut usize, limit: c_int);
    cuCtxSetLimit(limit: c_int, value: usize);
    cuCtxGetCacheConfig(config: *mut c_int);
    cuCtxSetCacheConfig(config: c_int);
    cuCtxGetSharedMemConfig(config: *mut c_int);
    cuCtxSetSharedMemConfig(config: c_int);
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
    cuCtxResetPersistingL2Cache();
    cuCtxGetExecAffinity(affinity: *mut [u32; 2], kind: c_int);
    cuDeviceGetExecAffinitySupport(value: *mut c_int, kind: c_int, device: CUdevice);
    cuDevicePrimaryCtxSetFlags = "cuDevicePrimaryCtxSetFlags_v2" (device: CUdevice, flags: c_uint);
    cuProfilerInitialize(configuration: *const i8, output: *const i8, mode: c_int);
    cuProfilerStart();
    cuProfilerStop();
    cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);
    cuCtxDisablePeerAccess(peer: CUcontext);
    cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
}

/// `CUctxCreateParams`.
#[repr(C)]
pub struct CreateParameters {
    affinity: *const [u32; 2],
    count: c_int,
    graphics: *const c_void,
}

const NOT_SUPPORTED: CUresult = 801;
const UNSUPPORTED_LIMIT: CUresult = 215;
const UNSUPPORTED_EXEC_AFFINITY: CUresult = 224;
const PEER_ALREADY_ENABLED: CUresult = 704;
const PEER_NOT_ENABLED: CUresult = 705;

fn current() -> CUcontext {
    let mut context = 1 as CUcontext;
    ok(cuCtxGetCurrent(&mut context));
    context
}

#[test]
fn threads_have_stacks_of_contexts() {
    std::thread::spawn(|| {
        ok(cuInit(0));
        assert!(current().is_null());
        let mut none = null_mut();
        assert_eq!(cuCtxPopCurrent(&mut none), CUDA_ERROR_INVALID_CONTEXT);
        let (a, b) = (context(), context());
        assert_eq!(current(), b);
        ok(cuCtxPopCurrent(&mut none));
        assert_eq!((none, current()), (b, a));
        ok(cuCtxPushCurrent(b));
        ok(cuCtxPushCurrent(a));
        ok(cuCtxPopCurrent(null_mut()));
        // Replaces the top, or takes it off.
        ok(cuCtxSetCurrent(a));
        ok(cuCtxPopCurrent(&mut none));
        assert_eq!((none, current()), (a, a));
        ok(cuCtxSetCurrent(null_mut()));
        assert!(current().is_null());
        ok(cuCtxSetCurrent(b));
        // A context that is destroyed goes from the top, and is of no use elsewhere.
        ok(cuCtxPushCurrent(a));
        ok(cuCtxDestroy(b));
        assert_eq!(current(), a);
        ok(cuCtxPopCurrent(&mut none));
        let mut memory = 0;
        assert_eq!(cuMemAlloc(&mut memory, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
        ok(cuCtxSetCurrent(a));
        ok(cuCtxDestroy(a));
        assert!(current().is_null());
        for gone in [a, b, 0x1234 as CUcontext] {
            assert_eq!(cuCtxPushCurrent(gone), CUDA_ERROR_INVALID_CONTEXT);
            assert_eq!(cuCtxSetCurrent(gone), CUDA_ERROR_INVALID_CONTEXT);
            assert_eq!(cuCtxDestroy(gone), CUDA_ERROR_INVALID_CONTEXT);
            assert_eq!(cuCtxSynchronize_v2(gone), CUDA_ERROR_INVALID_CONTEXT);
        }
        assert_eq!(cuMemAlloc(&mut memory, 4), CUDA_ERROR_INVALID_CONTEXT);
    })
    .join()
    .unwrap();
}

#[test]
fn contexts_are_created_with_flags_and_parameters() {
    ok(cuInit(0));
    let mut context = null_mut();
    // One way to wait, mapping, and what came later; not two ways, nor unknown bits.
    for flags in [0, 1, 2, 4, 8, 0x10, 0x18] {
        ok(cuCtxCreate(&mut context, flags, 0));
        let mut found = 99;
        ok(cuCtxGetFlags(&mut found));
        assert_eq!(found, flags);
        ok(cuCtxDestroy(context));
    }
    for flags in [3, 5, 7, 0x100] {
        assert_eq!(cuCtxCreate(&mut context, flags, 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuCtxCreate_v4(&mut context, null(), flags, 0), CUDA_ERROR_INVALID_VALUE);
    }
    for device in [-1, 99] {
        assert_eq!(cuCtxCreate(&mut context, 0, device), CUDA_ERROR_INVALID_DEVICE);
        assert_eq!(
            cuCtxCreate_v3(&mut context, null(), 0, 0, device),
            CUDA_ERROR_INVALID_DEVICE
        );
    }
    assert_eq!(cuCtxCreate(null_mut(), 0, 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxCreate_v3(&mut context, null(), 0, 0, 0));
    ok(cuCtxDestroy(context));
    let affinity = [0_u32, 4];
    assert_eq!(
        cuCtxCreate_v3(&mut context, &affinity, 1, 0, 0),
        UNSUPPORTED_EXEC_AFFINITY
    );
    assert_eq!(cuCtxCreate_v3(&mut context, null(), 1, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuCtxCreate_v3(&mut context, null(), -1, 0, 0), CUDA_ERROR_INVALID_VALUE);
    let with = |affinity: *const [u32; 2], count, graphics| {
        let parameters = CreateParameters {
            affinity,
            count,
            graphics,
        };
        cuCtxCreate_v4(&mut null_mut(), &parameters, 0, 0)
    };
    ok(with(null(), 0, null()));
    ok(cuCtxDestroy(current()));
    assert_eq!(with(&affinity, 1, null()), UNSUPPORTED_EXEC_AFFINITY);
    assert_eq!(with(null(), 0, affinity.as_ptr().cast()), NOT_SUPPORTED);
    let (mut support, mut found) = (9, [0; 2]);
    ok(cuDeviceGetExecAffinitySupport(&mut support, 0, 0));
    assert_eq!(support, 0);
    assert_eq!(
        cuDeviceGetExecAffinitySupport(&mut support, 7, 0),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuDeviceGetExecAffinitySupport(&mut support, 0, 99),
        CUDA_ERROR_INVALID_DEVICE
    );
    ok(cuCtxCreate(&mut context, 0, 0));
    assert_eq!(cuCtxGetExecAffinity(&mut found, 0), UNSUPPORTED_EXEC_AFFINITY);
    assert_eq!(cuCtxGetExecAffinity(null_mut(), 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuCtxGetExecAffinity(&mut found, 7), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxDestroy(context));
}

#[test]
fn a_context_tells_about_itself() {
    let (a, b) = (context(), context());
    let (mut id_a, mut id_b, mut version, mut device) = (0, 0, 0, 9);
    ok(cuCtxGetId(a, &mut id_a));
    ok(cuCtxGetId(null_mut(), &mut id_b));
    assert!(id_a != id_b && id_a != 0);
    ok(cuCtxGetApiVersion(a, &mut version));
    // The last change of the context API was in CUDA 3.2.
    assert!(version >= 3020);
    ok(cuCtxGetApiVersion(null_mut(), &mut version));
    ok(cuCtxGetDevice(&mut device));
    assert_eq!(device, 0);
    ok(cuCtxGetDevice_v2(&mut device, a));
    ok(cuCtxGetDevice_v2(&mut device, null_mut()));
    let stray = 0x1234 as CUcontext;
    assert_eq!(cuCtxGetId(stray, &mut id_a), CUDA_ERROR_INVALID_CONTEXT);
    assert_eq!(cuCtxGetApiVersion(stray, &mut version), CUDA_ERROR_INVALID_CONTEXT);
    assert_eq!(cuCtxGetDevice_v2(&mut device, stray), CUDA_ERROR_INVALID_CONTEXT);
    assert_eq!(cuCtxGetId(a, null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuCtxGetApiVersion(a, null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuCtxGetDevice(null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuCtxGetFlags(null_mut()), CUDA_ERROR_INVALID_VALUE);
    let mut flags = 0;
    ok(cuCtxSetFlags(4));
    ok(cuCtxGetFlags(&mut flags));
    assert_eq!(flags, 4);
    assert_eq!(cuCtxSetFlags(6), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxSynchronize_v2(a));
    ok(cuCtxSynchronize_v2(null_mut()));

    let mut config = 9;
    for value in [0, 1, 2, 3] {
        ok(cuCtxSetCacheConfig(value));
        ok(cuCtxGetCacheConfig(&mut config));
        assert_eq!(config, value);
    }
    assert_eq!(cuCtxSetCacheConfig(4), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuCtxGetCacheConfig(null_mut()), CUDA_ERROR_INVALID_VALUE);
    for value in [1, 2, 0] {
        ok(cuCtxSetSharedMemConfig(value));
        ok(cuCtxGetSharedMemConfig(&mut config));
        assert_eq!(config, value);
    }
    assert_eq!(cuCtxSetSharedMemConfig(3), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuCtxGetSharedMemConfig(null_mut()), CUDA_ERROR_INVALID_VALUE);
    let (mut least, mut greatest) = (9, 9);
    ok(cuCtxGetStreamPriorityRange(&mut least, &mut greatest));
    assert!(least == 0 && greatest < 0);
    ok(cuCtxGetStreamPriorityRange(null_mut(), null_mut()));
    ok(cuCtxResetPersistingL2Cache());
    ok(cuProfilerStart());
    ok(cuProfilerStop());
    assert_eq!(cuProfilerInitialize(c"a".as_ptr(), c"b".as_ptr(), 0), NOT_SUPPORTED);
    for context in [a, b] {
        ok(cuCtxDestroy(context));
    }
}

#[test]
fn limits_are_brought_into_the_range_that_can_be_had() {
    let context = context();
    let limit = |which| {
        let mut value = 0;
        ok(cuCtxGetLimit(&mut value, which));
        value
    };
    // STACK_SIZE, PRINTF_FIFO_SIZE, MALLOC_HEAP_SIZE, DEV_RUNTIME_SYNC_DEPTH, DEV_RUNTIME_PENDING_LAUNCH_COUNT,
    // MAX_L2_FETCH_GRANULARITY: the defaults of the manual.
    assert_eq!([0, 1, 2, 3, 4, 5].map(limit), [1024, 1 << 20, 8 << 20, 2, 2048, 128]);
    for (which, value) in [(0, 4096), (1, 2 << 20), (2, 64 << 20), (3, 5), (4, 100), (5, 64)] {
        ok(cuCtxSetLimit(which, value));
        assert!(limit(which) >= value, "{which}");
    }
    // Nothing can be set aside in a cache that is not there.
    ok(cuCtxSetLimit(6, 1 << 20));
    assert_eq!(limit(6), 0);
    let mut value = 0;
    assert_eq!(cuCtxSetLimit(7, 1), UNSUPPORTED_LIMIT);
    assert_eq!(cuCtxGetLimit(&mut value, 7), UNSUPPORTED_LIMIT);
    // CUDA in graphics is off: cuBLAS asks, and counts on an answer.
    for which in [8, 9] {
        assert_eq!(limit(which), 0);
        assert_eq!(cuCtxSetLimit(which, 1), UNSUPPORTED_LIMIT);
    }
    for which in [-1, 50] {
        assert_eq!(cuCtxSetLimit(which, 1), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuCtxGetLimit(&mut value, which), CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(cuCtxGetLimit(null_mut(), 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuCtxSetLimit(0, 1 << 40), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuCtxSetLimit(5, 129), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxDestroy(context));
}

#[test]
fn the_primary_context_is_there_while_it_is_retained() {
    alone(test_name!(), &[], || {
        ok(cuInit(0));
        let state = || {
            let (mut flags, mut active) = (9, 9);
            ok(cuDevicePrimaryCtxGetState(0, &mut flags, &mut active));
            (flags, active)
        };
        assert_eq!(state(), (0, 0));
        ok(cuDevicePrimaryCtxSetFlags(0, 4));
        assert_eq!(state(), (4, 0));
        assert_eq!(cuDevicePrimaryCtxSetFlags(0, 6), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuDevicePrimaryCtxSetFlags(9, 0), CUDA_ERROR_INVALID_DEVICE);
        assert_eq!(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
        let (mut a, mut b) = (null_mut(), null_mut());
        ok(cuDevicePrimaryCtxRetain(&mut a, 0));
        ok(cuDevicePrimaryCtxRetain(&mut b, 0));
        assert_eq!((a, state()), (b, (4, 1)));
        ok(cuCtxSetCurrent(a));
        let memory = words(4);
        // It is not to be destroyed.
        assert_eq!(cuCtxDestroy(a), CUDA_ERROR_INVALID_CONTEXT);
        ok(cuDevicePrimaryCtxRelease(0));
        assert_eq!(read(memory, 1), [0]);
        ok(cuDevicePrimaryCtxRelease(0));
        assert_eq!(state(), (4, 0));
        let mut value = 0;
        assert_eq!(cuMemAlloc(&mut value, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
        // Again, and all that was in it is gone.
        ok(cuDevicePrimaryCtxRetain(&mut b, 0));
        assert_eq!(a, b);
        assert_eq!(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
        // Reset ends what is in it, however often it is retained; a sticky error, too.
        let bad = module(".visible .entry k() { trap; }");
        assert_eq!(try_launch(function(bad, "k"), 1, 1, &[]), CUDA_ERROR_LAUNCH_FAILED);
        assert_eq!(cuMemAlloc(&mut value, 4), CUDA_ERROR_LAUNCH_FAILED);
        ok(cuDevicePrimaryCtxReset(0));
        assert_eq!(state().1, 0);
        ok(cuDevicePrimaryCtxRetain(&mut b, 0));
        words(4);
        assert_eq!(cuDevicePrimaryCtxRetain(null_mut(), 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuDevicePrimaryCtxRetain(&mut b, -1), CUDA_ERROR_INVALID_DEVICE);
        assert_eq!(cuDevicePrimaryCtxReset(7), CUDA_ERROR_INVALID_DEVICE);
        let (mut flags, mut active) = (0, 0);
        assert_eq!(
            cuDevicePrimaryCtxGetState(7, &mut flags, &mut active),
            CUDA_ERROR_INVALID_DEVICE
        );
        assert_eq!(
            cuDevicePrimaryCtxGetState(0, null_mut(), &mut active),
            CUDA_ERROR_INVALID_VALUE
        );
    });
}

#[test]
fn several_devices_are_told_apart_and_reach_each_other() {
    alone(test_name!(), &[("MARGAY_DEVICES", "2")], || {
        ok(cuInit(0));
        let (mut a, mut b, mut device) = (null_mut(), null_mut(), 9);
        ok(cuDevicePrimaryCtxRetain(&mut a, 0));
        ok(cuDevicePrimaryCtxRetain(&mut b, 1));
        assert_ne!(a, b);
        ok(cuCtxSetCurrent(b));
        ok(cuCtxGetDevice(&mut device));
        assert_eq!(device, 1);
        ok(cuCtxGetDevice_v2(&mut device, a));
        assert_eq!(device, 0);
        let mut can = 0;
        ok(cuDeviceCanAccessPeer(&mut can, 0, 1));
        assert_eq!(can, 1);
        ok(cuDeviceCanAccessPeer(&mut can, 0, 0));
        assert_eq!(can, 0);
        ok(cuCtxEnablePeerAccess(a, 0));
        assert_eq!(cuCtxEnablePeerAccess(a, 0), PEER_ALREADY_ENABLED);
        assert_eq!(cuCtxEnablePeerAccess(a, 1), CUDA_ERROR_INVALID_VALUE);
        ok(cuCtxDisablePeerAccess(a));
        assert_eq!(cuCtxDisablePeerAccess(a), PEER_NOT_ENABLED);
        assert_eq!(cuCtxEnablePeerAccess(null_mut(), 0), CUDA_ERROR_INVALID_CONTEXT);
    });
}
