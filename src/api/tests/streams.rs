//! Streams, events, host functions, stream memory operations, capture queries.

use super::*;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn streams_and_their_properties() {
    let own = Own::new();
    let mut stream = null_mut();
    ok!(cuStreamCreateWithPriority(&mut stream, 1, 0));
    let (mut flags, mut priority, mut id, mut device, mut context) = (9, 9, 0, 9, null_mut());
    ok!(cuStreamGetFlags(stream, &mut flags));
    ok!(cuStreamGetPriority(stream, &mut priority));
    ok!(cuStreamGetId(stream, &mut id));
    ok!(cuStreamGetDevice(stream, &mut device));
    ok!(cuStreamGetCtx(stream, &mut context));
    assert_eq!((flags, priority, device, context), (1, 0, 0, own.0));
    let mut green = stray();
    ok!(cuStreamGetCtx_v2(stream, &mut context, &mut green));
    assert!(green.is_null());
    let (mut legacy, mut per_thread) = (0, 0);
    ok!(cuStreamGetId(null_mut(), &mut legacy));
    ok!(cuStreamGetId_ptsz(null_mut(), &mut per_thread));
    assert!(legacy != per_thread && legacy != id && per_thread != id);
    let named = std::ptr::without_provenance_mut(2);
    ok!(cuStreamGetId(named, &mut id));
    assert_eq!(id, per_thread);
    ok!(cuStreamQuery(stream));
    ok!(cuStreamSynchronize(stream));
    ok!(cuStreamDestroy_v2(stream));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(stream));
    for stream in [null_mut(), std::ptr::without_provenance_mut(1), named] {
        fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(stream));
    }
    fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stray()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&mut stream, 2));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(null_mut(), 0));
}

#[test]
fn events_keep_time_and_order() {
    let _own = Own::new();
    let (mut start, mut end, mut silent) = (null_mut(), null_mut(), null_mut());
    ok!(cuEventCreate(&mut start, 0));
    ok!(cuEventCreate(&mut end, 1));
    ok!(cuEventCreate(&mut silent, 2));
    // Never recorded: complete.
    ok!(cuEventQuery(start));
    let mut milliseconds = -1.0f32;
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuEventElapsedTime_v2(&mut milliseconds, start, end)
    );
    ok!(cuEventRecord(start, null_mut()));
    ok!(cuEventRecord_ptsz(end, null_mut()));
    ok!(cuEventSynchronize(start));
    ok!(cuEventSynchronize(end));
    ok!(cuEventElapsedTime(&mut milliseconds, start, end));
    assert!(milliseconds.is_finite() && milliseconds >= 0.0, "{milliseconds}");
    ok!(cuEventRecord(silent, null_mut()));
    ok!(cuEventSynchronize(silent));
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuEventElapsedTime_v2(&mut milliseconds, start, silent)
    );
    ok!(cuStreamWaitEvent(null_mut(), end, 0));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(null_mut(), stray(), 0));
    ok!(cuEventDestroy_v2(start));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(start, null_mut()));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy_v2(start));
    ok!(cuEventDestroy_v2(end));
    ok!(cuEventDestroy_v2(silent));
    fails!(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&mut start, 8));
    // For other processes, without having given up timing (manual).
    fails!(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&mut start, 4));
}

unsafe extern "C" fn add_one(data: *mut c_void) {
    // SAFETY: what the test passes.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn add_ten(_: CUstream, status: CUresult, data: *mut c_void) {
    assert_eq!(status, CUresult::CUDA_SUCCESS);
    // SAFETY: what the test passes.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(10, Ordering::SeqCst);
}

#[test]
fn the_host_takes_its_turn() {
    let _own = Own::new();
    let (mut stream, count) = (null_mut(), AtomicU32::new(0));
    ok!(cuStreamCreate(&mut stream, 0));
    let data = (&raw const count).cast_mut().cast::<c_void>();
    ok!(cuLaunchHostFunc(stream, Some(add_one), data));
    ok!(cuLaunchHostFunc_v2(stream, Some(add_one), data, 1));
    ok!(cuStreamAddCallback(stream, Some(add_ten), data, 0));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(count.load(Ordering::SeqCst), 12);
    fails!(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(stream, None, data));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuStreamAddCallback(stream, Some(add_ten), data, 1)
    );
    ok!(cuStreamDestroy_v2(stream));
}

#[test]
fn values_are_written_and_waited_for() {
    let _own = Own::new();
    let (mut writer, mut waiter) = (null_mut(), null_mut());
    ok!(cuStreamCreate(&mut writer, 1));
    ok!(cuStreamCreate(&mut waiter, 1));
    let flag = allocate(16);
    ok!(cuMemsetD32_v2(flag, 0, 4));
    ok!(cuStreamWaitValue32_v2(
        waiter,
        flag,
        3,
        CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_EQ.0
    ));
    ok!(cuStreamWriteValue32_v2(waiter, flag + 4, 1, 0));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(waiter));
    ok!(cuStreamWriteValue32_v2(writer, flag, 3, 0));
    ok!(cuStreamSynchronize(waiter));
    assert_eq!(read_u32(flag, 2), [3, 1]);
    ok!(cuStreamWriteValue64_v2(writer, flag + 8, 7, 0));
    ok!(cuStreamSynchronize(writer));
    assert_eq!(read_u32(flag, 4), [3, 1, 7, 0]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32_v2(writer, flag, 3, 8));
    assert_ne!(
        call!(cuStreamWriteValue32_v2(writer, 0x40, 3, 0)),
        CUresult::CUDA_SUCCESS
    );
    ok!(cuStreamDestroy_v2(writer));
    ok!(cuStreamDestroy_v2(waiter));
    ok!(cuMemFree_v2(flag));
}

#[test]
fn nothing_is_being_captured() {
    let _own = Own::new();
    let mut status = CUstreamCaptureStatus::from_raw(9);
    ok!(cuStreamIsCapturing(null_mut(), &mut status));
    assert_eq!(status, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE);
    ok!(cuStreamGetCaptureInfo_v3(
        null_mut(),
        &mut status,
        null_mut(),
        null_mut(),
        null_mut(),
        null_mut(),
        null_mut()
    ));
    let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    ok!(cuThreadExchangeStreamCaptureMode(&mut mode));
    assert_eq!(mode, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL);
    ok!(cuThreadExchangeStreamCaptureMode(&mut mode));
    assert_eq!(mode, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
    mode = CUstreamCaptureMode::from_raw(9);
    fails!(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(&mut mode));
}
