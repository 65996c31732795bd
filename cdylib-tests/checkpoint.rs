//! CUDA Checkpointing.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use crate::alone::alone;
use crate::c::*;
use crate::code::*;
use crate::test_name;

functions! {
    cuCheckpointProcessGetRestoreThreadId(process: c_int, thread: *mut c_int);
    cuCheckpointProcessGetState(process: c_int, state: *mut c_uint);
    cuCheckpointProcessLock(process: c_int, arguments: *mut [u64; 8]);
    cuCheckpointProcessCheckpoint(process: c_int, arguments: *mut [u64; 8]);
    cuCheckpointProcessRestore(process: c_int, arguments: *mut [u64; 8]);
    cuCheckpointProcessUnlock(process: c_int, arguments: *mut [u64; 8]);
    cuCheckpointOperationComplete(handle: *mut c_void);
    cuLaunchHostFunc(stream: CUstream, function: extern "C" fn(*mut c_void), data: *mut c_void);
}

const RUNNING: c_uint = 0;
const LOCKED: c_uint = 1;
const CHECKPOINTED: c_uint = 2;

const ILLEGAL_STATE: CUresult = 401;
const NOT_SUPPORTED: CUresult = 801;

static RELEASED: AtomicBool = AtomicBool::new(false);

extern "C" fn until_released(_: *mut c_void) {
    while !RELEASED.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_locked_process_waits_and_goes_on() {
    alone(test_name!(), &[], || {
        let me = std::process::id() as c_int;
        let none = null_mut();
        let mut state = 99;
        assert_eq!(cuCheckpointProcessGetState(me, &mut state), CUDA_ERROR_NOT_INITIALIZED);
        assert_eq!(cuCheckpointProcessLock(me, none), CUDA_ERROR_NOT_INITIALIZED);
        let context = context() as usize;
        let state_is = |expected| {
            let mut state = 99;
            ok(cuCheckpointProcessGetState(me, &mut state));
            assert_eq!(state, expected);
        };
        state_is(RUNNING);
        for wrong in [
            cuCheckpointProcessUnlock,
            cuCheckpointProcessCheckpoint,
            cuCheckpointProcessRestore,
        ] {
            assert_eq!(wrong(me, none), ILLEGAL_STATE);
        }
        let memory = words(4);
        write(memory, &[1, 2, 3, 4]);

        // Work that does not end in time keeps it running.
        let mut stream = null_mut();
        ok(cuStreamCreate(&mut stream, 1));
        ok(cuLaunchHostFunc(stream, until_released, null_mut()));
        let mut arguments = [0; 8];
        arguments[0] = 50; // timeoutMs
        let began = Instant::now();
        assert_eq!(cuCheckpointProcessLock(me, &mut arguments), CUDA_ERROR_NOT_READY);
        assert!(began.elapsed() >= Duration::from_millis(50));
        state_is(RUNNING);
        assert_eq!(read(memory, 4), [1, 2, 3, 4]);
        RELEASED.store(true, Ordering::Release);

        // Locked, and all that was under way is done.
        ok(cuCheckpointProcessLock(me, none));
        state_is(LOCKED);
        assert_eq!(cuCheckpointProcessLock(me, none), ILLEGAL_STATE);
        assert_eq!(cuCheckpointProcessRestore(me, none), ILLEGAL_STATE);
        // Calls wait.
        static ARRIVED: AtomicBool = AtomicBool::new(false);
        let caller = std::thread::spawn(move || {
            ok(cuCtxSetCurrent(context as CUcontext));
            let values = read(memory, 4);
            ARRIVED.store(true, Ordering::Release);
            values
        });
        std::thread::sleep(Duration::from_millis(100));
        assert!(!ARRIVED.load(Ordering::Acquire));
        ok(cuCheckpointProcessCheckpoint(me, none));
        state_is(CHECKPOINTED);
        assert_eq!(cuCheckpointProcessCheckpoint(me, none), ILLEGAL_STATE);
        assert_eq!(cuCheckpointProcessUnlock(me, none), ILLEGAL_STATE);
        ok(cuCheckpointProcessRestore(me, none));
        state_is(LOCKED);
        assert!(!ARRIVED.load(Ordering::Acquire));
        ok(cuCheckpointProcessUnlock(me, none));
        state_is(RUNNING);
        assert_eq!(caller.join().unwrap(), [1, 2, 3, 4]);
        ok(cuStreamQuery(stream));

        // Devices can be named: each onto itself.
        let mut uuid = [0_u8; 16];
        ok(cuDeviceGetUuid(&mut uuid, 0));
        let mut other = uuid;
        other[15] ^= 1;
        let restore = |old: [u8; 16], new: [u8; 16]| {
            let pairs = [old, new];
            let mut arguments = [0_u64; 8];
            arguments[0] = pairs.as_ptr() as u64;
            arguments[1] = 1;
            cuCheckpointProcessRestore(me, &mut arguments)
        };
        ok(cuCheckpointProcessLock(me, none));
        ok(cuCheckpointProcessCheckpoint(me, none));
        assert_eq!(restore(other, uuid), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(restore(uuid, other), NOT_SUPPORTED);
        ok(restore(uuid, uuid));
        ok(cuCheckpointProcessUnlock(me, none));
    });
}

static HOST_ANSWER: AtomicI32 = AtomicI32::new(-1);

extern "C" fn calls_the_driver(_: *mut c_void) {
    std::thread::sleep(Duration::from_millis(100));
    let (mut free, mut total) = (0, 0);
    HOST_ANSWER.store(cuMemGetInfo(&mut free, &mut total), Ordering::Release);
}

/// Locking waits for a host function, which therefore must not wait for the process to be unlocked.
#[test]
fn a_host_function_is_not_held_up_by_the_lock_that_waits_for_it() {
    alone(test_name!(), &[], || {
        let me = std::process::id() as c_int;
        context();
        let mut stream = null_mut();
        ok(cuStreamCreate(&mut stream, 1));
        ok(cuLaunchHostFunc(stream, calls_the_driver, null_mut()));
        ok(cuCheckpointProcessLock(me, null_mut()));
        // CUDA_ERROR_NOT_PERMITTED
        assert_eq!(HOST_ANSWER.load(Ordering::Acquire), 800);
        ok(cuCheckpointProcessUnlock(me, null_mut()));
    });
}

#[test]
fn bad_calls_of_checkpoints_are_refused() {
    alone(test_name!(), &[], || {
        context();
        let me = std::process::id() as c_int;
        let (mut state, mut thread, none) = (0, 0, null_mut());
        assert_eq!(cuCheckpointProcessGetState(me, null_mut()), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            cuCheckpointProcessGetRestoreThreadId(me, null_mut()),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(cuCheckpointProcessGetRestoreThreadId(me, &mut thread), NOT_SUPPORTED);
        // Nobody of that number; somebody who is not us.
        for nobody in [0, -1, c_int::MAX] {
            assert_eq!(
                cuCheckpointProcessGetState(nobody, &mut state),
                CUDA_ERROR_INVALID_VALUE
            );
            assert_eq!(cuCheckpointProcessLock(nobody, none), CUDA_ERROR_INVALID_VALUE);
        }
        let parent = std::os::unix::process::parent_id() as c_int;
        assert_eq!(cuCheckpointProcessGetState(parent, &mut state), NOT_SUPPORTED);
        assert_eq!(cuCheckpointProcessUnlock(parent, none), NOT_SUPPORTED);
        // What is reserved is 0.
        let mut reserved = [0; 8];
        reserved[7] = 1;
        assert_eq!(cuCheckpointProcessLock(me, &mut reserved), CUDA_ERROR_INVALID_VALUE);
        ok(cuCheckpointProcessLock(me, &mut [0; 8]));
        assert_eq!(
            cuCheckpointProcessCheckpoint(me, &mut reserved),
            CUDA_ERROR_INVALID_VALUE
        );
        // The calling process's memory cannot go to storage of its own choice.
        let mut info = null_mut::<c_void>();
        let mut custom = [0; 8];
        custom[0] = &raw mut info as u64;
        assert_eq!(cuCheckpointProcessCheckpoint(me, &mut custom), NOT_SUPPORTED);
        ok(cuCheckpointProcessCheckpoint(me, &mut [0; 8]));
        ok(cuCheckpointProcessRestore(me, &mut [0; 8]));
        assert_eq!(cuCheckpointProcessUnlock(me, &mut reserved), CUDA_ERROR_INVALID_VALUE);
        ok(cuCheckpointProcessUnlock(me, &mut [0; 8]));
        assert_eq!(cuCheckpointOperationComplete(null_mut()), CUDA_ERROR_INVALID_VALUE);
    });
}
