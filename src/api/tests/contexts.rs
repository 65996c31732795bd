//! Context and primary context management.

use super::*;

fn current() -> CUcontext {
    let mut context = stray();
    ok!(cuCtxGetCurrent(&mut context));
    context
}

/// Runs on a thread that has no current context.
fn elsewhere(body: impl FnOnce() + Send) {
    std::thread::scope(|scope| scope.spawn(body).join().unwrap());
}

#[test]
fn the_stack_of_current_contexts() {
    elsewhere(|| {
        ok!(cuInit(0));
        assert!(current().is_null());
        let own = Own::new();
        assert_eq!(current(), own.0);
        let mut popped = null_mut();
        ok!(cuCtxPopCurrent_v2(&mut popped));
        assert_eq!(popped, own.0);
        assert!(current().is_null());
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent_v2(&mut popped));
        ok!(cuCtxPushCurrent_v2(own.0));
        ok!(cuCtxSetCurrent(null_mut()));
        assert!(current().is_null());
        ok!(cuCtxSetCurrent(own.0));
        assert_eq!(current(), own.0);
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(stray()));
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent_v2(stray()));
        fails!(CUDA_ERROR_INVALID_VALUE, cuCtxGetCurrent(null_mut()));
    });
}

#[test]
fn calls_that_need_a_context_say_so() {
    elsewhere(|| {
        ok!(cuInit(0));
        let mut pointer = 0;
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&mut pointer, 4));
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
        let mut device = 0;
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(&mut device));
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuStreamSynchronize(null_mut()));
    });
}

#[test]
fn destroyed_contexts_are_no_contexts() {
    elsewhere(|| {
        ok!(cuInit(0));
        let mut context = null_mut();
        ok!(cuCtxCreate_v2(&mut context, 0, 0));
        ok!(cuCtxDestroy_v2(context));
        assert!(current().is_null());
        let mut version = 0;
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetApiVersion(context, &mut version));
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(context));
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(null_mut()));
    });
}

#[test]
fn creation_in_all_versions() {
    elsewhere(|| {
        ok!(cuInit(0));
        let mut context = null_mut();
        fails!(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v2(null_mut(), 0, 0));
        fails!(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate_v2(&mut context, 0, 77));
        fails!(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v2(&mut context, 0xffff_0000, 0));
        ok!(cuCtxCreate_v3(&mut context, null_mut(), 0, 0, 0));
        ok!(cuCtxDestroy_v2(context));
        ok!(cuCtxCreate_v4(&mut context, null_mut(), 0, 0));
        ok!(cuCtxDestroy_v2(context));
        let mut affinity = std::mem::MaybeUninit::<CUexecAffinityParam>::zeroed();
        let affinity = affinity.as_mut_ptr();
        fails!(
            CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,
            cuCtxCreate_v3(&mut context, affinity, 1, 0, 0)
        );
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuCtxCreate_v3(&mut context, null_mut(), 1, 0, 0)
        );
    });
}

#[test]
fn properties_of_the_current_context() {
    elsewhere(|| {
        let own = Own::new();
        let (mut device, mut version, mut id, mut flags) = (-1, 0, 0, 1);
        ok!(cuCtxGetDevice(&mut device));
        assert_eq!(device, 0);
        for context in [own.0, null_mut()] {
            device = -1;
            ok!(cuCtxGetDevice_v2(&mut device, context));
            assert_eq!(device, 0);
            ok!(cuCtxGetApiVersion(context, &mut version));
            assert!(version >= 3020, "{version}");
            ok!(cuCtxGetId(context, &mut id));
            ok!(cuCtxSynchronize_v2(context));
        }
        ok!(cuCtxGetFlags(&mut flags));
        ok!(cuCtxSynchronize());
        let (mut least, mut greatest) = (9, 9);
        ok!(cuCtxGetStreamPriorityRange(&mut least, &mut greatest));
        assert!(greatest <= least, "lower numbers are greater priorities");
        ok!(cuCtxGetStreamPriorityRange(null_mut(), null_mut()));
        let mut bytes = 0;
        ok!(cuCtxGetLimit(&mut bytes, CUlimit::CU_LIMIT_STACK_SIZE));
        assert!(bytes > 0);
        ok!(cuCtxSetLimit(CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 21));
        ok!(cuCtxGetLimit(&mut bytes, CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE));
        assert_eq!(bytes, 1 << 21);
        assert_ne!(
            call!(cuCtxGetLimit(&mut bytes, CUlimit::from_raw(999))),
            CUresult::CUDA_SUCCESS
        );
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuCtxGetLimit(null_mut(), CUlimit::CU_LIMIT_STACK_SIZE)
        );
        let mut config = CUfunc_cache::from_raw(77);
        ok!(cuCtxSetCacheConfig(CUfunc_cache::CU_FUNC_CACHE_PREFER_L1));
        ok!(cuCtxGetCacheConfig(&mut config));
        assert_eq!(config, CUfunc_cache::CU_FUNC_CACHE_PREFER_L1);
        fails!(CUDA_ERROR_INVALID_VALUE, cuCtxSetCacheConfig(CUfunc_cache::from_raw(4)));
    });
}

/// cudart makes the primary context current before it retains it: its handle is known and stays the same.
#[test]
fn the_primary_context() {
    let _alone = crate::driver::PRIMARY.lock();
    elsewhere(|| {
        ok!(cuInit(0));
        let (mut first, mut second) = (null_mut(), null_mut());
        ok!(cuDevicePrimaryCtxRetain(&mut first, 0));
        ok!(cuDevicePrimaryCtxRetain(&mut second, 0));
        assert_eq!(first, second);
        let (mut flags, mut active) = (9, 9);
        ok!(cuDevicePrimaryCtxGetState(0, &mut flags, &mut active));
        assert_eq!(active, 1);
        ok!(cuCtxSetCurrent(first));
        ok!(cuCtxSynchronize());
        // A primary context is released, not destroyed.
        assert_ne!(call!(cuCtxDestroy_v2(first)), CUresult::CUDA_SUCCESS);
        ok!(cuDevicePrimaryCtxRelease_v2(0));
        ok!(cuDevicePrimaryCtxRelease(0));
        fails!(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&mut first, 12));
        fails!(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxRetain(null_mut(), 0));
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuDevicePrimaryCtxGetState(0, null_mut(), &mut active)
        );
        ok!(cuCtxSetCurrent(null_mut()));
    });
}
