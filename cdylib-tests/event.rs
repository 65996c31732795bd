//! Event Management.

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use crate::c::*;
use crate::code::*;

functions! {
    cuEventRecordWithFlags(event: CUevent, stream: CUstream, flags: c_uint);
    cuEventElapsedTime_v2(milliseconds: *mut f32, start: CUevent, end: CUevent);
    cuLaunchHostFunc(stream: CUstream, function: extern "C" fn(*mut c_void), data: *mut c_void);
}

const DISABLE_TIMING: c_uint = 2;

fn event(flags: c_uint) -> CUevent {
    let mut event = null_mut();
    ok(cuEventCreate(&mut event, flags));
    event
}

extern "C" fn fifty_milliseconds(_: *mut c_void) {
    std::thread::sleep(Duration::from_millis(50));
}

#[test]
fn times_are_those_that_passed_in_the_stream() {
    context();
    let mut stream = null_mut();
    ok(cuStreamCreate(&mut stream, 1));
    let (start, middle, end) = (event(0), event(1), event(0));
    let began = Instant::now();
    ok(cuEventRecord(start, stream));
    ok(cuLaunchHostFunc(stream, fifty_milliseconds, null_mut()));
    ok(cuEventRecord(middle, stream));
    ok(cuLaunchHostFunc(stream, fifty_milliseconds, null_mut()));
    ok(cuEventRecord(end, stream));
    let mut time = -1.0;
    assert_eq!(cuEventElapsedTime(&mut time, start, end), CUDA_ERROR_NOT_READY);
    assert_eq!(cuEventQuery(end), CUDA_ERROR_NOT_READY);
    ok(cuEventSynchronize(end));
    let passed = began.elapsed().as_secs_f32() * 1e3;
    let between = |from, to| {
        let (mut first, mut second) = (-1.0, -1.0);
        ok(cuEventElapsedTime(&mut first, from, to));
        ok(cuEventElapsedTime_v2(&mut second, from, to));
        assert_eq!(first, second);
        first
    };
    let (whole, half) = (between(start, end), between(start, middle));
    assert!(whole >= 100.0 && whole <= passed + 1.0, "{whole} of {passed}");
    assert!(half >= 50.0 && half <= whole - 50.0, "{half} of {whole}");
    assert_eq!(between(start, start), 0.0);
    assert!(between(end, start) <= -100.0);
    // Recorded again, it is that time which counts.
    ok(cuEventRecord(start, stream));
    ok(cuEventSynchronize(start));
    assert!(between(end, start) >= 0.0);
}

#[test]
fn bad_calls_of_events_are_refused() {
    let first = context();
    let (timed, untimed, never, mut time) = (event(0), event(DISABLE_TIMING), event(0), 0.0);
    ok(cuEventRecord(timed, null_mut()));
    ok(cuEventRecord(untimed, null_mut()));
    ok(cuEventSynchronize(timed));
    for (start, end) in [(timed, untimed), (untimed, timed), (never, timed), (timed, never)] {
        assert_eq!(cuEventElapsedTime(&mut time, start, end), CUDA_ERROR_INVALID_HANDLE);
    }
    assert_eq!(cuEventElapsedTime(null_mut(), timed, timed), CUDA_ERROR_INVALID_VALUE);
    // One that was never recorded is done.
    ok(cuEventQuery(never));
    ok(cuEventSynchronize(never));
    // An event for other processes has no times; unknown flags.
    assert_eq!(cuEventCreate(&mut null_mut(), 4), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuEventCreate(&mut null_mut(), 8), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuEventCreate(null_mut(), 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuEventRecordWithFlags(timed, null_mut(), 0));
    // External records are for graphs.
    assert_eq!(cuEventRecordWithFlags(timed, null_mut(), 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuEventRecordWithFlags(timed, null_mut(), 2), CUDA_ERROR_INVALID_VALUE);
    ok(cuEventDestroy(never));
    for stray in [null_mut(), 0x1234 as CUevent, never] {
        assert_eq!(cuEventRecord(stray, null_mut()), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuEventQuery(stray), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuEventSynchronize(stray), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuEventElapsedTime(&mut time, stray, timed), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuEventDestroy(stray), CUDA_ERROR_INVALID_HANDLE);
    }
    // Event and stream are of one context.
    let mut stream = null_mut();
    let second = context();
    ok(cuStreamCreate(&mut stream, 0));
    assert_eq!(cuEventRecord(timed, stream), CUDA_ERROR_INVALID_HANDLE);
    // A wait may cross contexts.
    ok(cuStreamWaitEvent(stream, timed, 0));
    ok(cuCtxDestroy(second));
    ok(cuCtxDestroy(first));
}
