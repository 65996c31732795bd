//! Calls after `main`: from exit handlers and static destructors, when the thread-local storage of the thread is gone.

use crate::alone::{alone, in_another_process};
use crate::basics::{alloc, download, upload};
use crate::c::*;
use crate::test_name;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

functions! {
    cuLaunchHostFunc(stream: CUstream, function: extern "C" fn(*mut c_void), data: *mut c_void);
    cuMemsetD32_ptds = "cuMemsetD32_v2_ptds" (to: CUdeviceptr, value: c_uint, count: usize);
    cuDevicePrimaryCtxReset = "cuDevicePrimaryCtxReset_v2" (device: CUdevice);
}

static MEMORY: AtomicU64 = AtomicU64::new(0);
static FUNCTION: AtomicUsize = AtomicUsize::new(0);
static CONTEXT: AtomicUsize = AtomicUsize::new(0);

/// Ends the process with a code that says which step went wrong: nobody catches a panic in an exit handler.
fn step(number: c_int, good: bool) {
    if !good {
        eprintln!("step {number} failed");
        // SAFETY: ends the process.
        unsafe { libc::_exit(number) };
    }
}

extern "C" fn slow(_: *mut c_void) {
    std::thread::sleep(Duration::from_millis(60));
}

const WORDS: usize = 256;

extern "C" fn after_main() {
    let memory = MEMORY.load(Ordering::SeqCst);
    let mut current = null_mut();
    step(
        10,
        cuCtxGetCurrent(&mut current) == 0 && current as usize == CONTEXT.load(Ordering::SeqCst),
    );
    step(11, download(memory, 4) == [7, 7, 7, 7]);
    // The thread's own default stream.
    step(12, cuMemsetD32_ptds(memory, 5, WORDS) == 0);
    // Kernels, by the calling thread and by others.
    let mut address = memory;
    let mut parameters = [(&raw mut address).cast()];
    let function = FUNCTION.load(Ordering::SeqCst) as CUfunction;
    let launched = cuLaunchKernel(
        function,
        1,
        1,
        1,
        64,
        1,
        1,
        0,
        null_mut(),
        parameters.as_mut_ptr(),
        null_mut(),
    );
    step(13, launched == 0 && cuCtxSynchronize() == 0);
    step(14, download(memory, 4) == 69_u32.to_le_bytes());
    // Waiting for somebody else.
    let mut stream = null_mut();
    step(15, cuStreamCreate(&mut stream, 1) == 0);
    step(16, cuLaunchHostFunc(stream, slow, null_mut()) == 0);
    step(17, cuStreamSynchronize(stream) == 0);
    step(18, cuMemFree(memory) == 0);
    // A failing call writes to the log, whose buffers are gone.
    step(19, cuMemFree(memory) == CUDA_ERROR_INVALID_VALUE);
    println!("after main: done");
}

extern "C" fn reset() {
    let mut address = 0;
    step(20, cuMemAlloc(&mut address, 64) == 0);
    step(21, cuDevicePrimaryCtxReset(0) == 0);
    step(22, cuMemAlloc(&mut address, 64) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    println!("reset: done");
}

const PTX: &std::ffi::CStr = c"
.version 7.0
.target sm_70
.address_size 64
.visible .entry count(.param .u64 to)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [to];
    atom.global.add.u32 %r0, [%rd0], 1;
    ret;
}
";

fn prepare() {
    ok(cuInit(0));
    let (mut context, mut module, mut function) = (null_mut(), null_mut(), null_mut());
    ok(cuDevicePrimaryCtxRetain(&mut context, 0));
    ok(cuCtxSetCurrent(context));
    ok(cuModuleLoadData(&mut module, PTX.as_ptr().cast()));
    ok(cuModuleGetFunction(&mut function, module, c"count".as_ptr()));
    MEMORY.store(upload(&[7; WORDS * 4]), Ordering::SeqCst);
    FUNCTION.store(function as usize, Ordering::SeqCst);
    CONTEXT.store(context as usize, Ordering::SeqCst);
}

#[test]
fn exit_handlers_have_the_current_context() {
    let run = alone(test_name!(), &[("MARGAY_LOG", "warn")], || {
        prepare();
        // The last one registered runs first.
        for handler in [reset, after_main] {
            // SAFETY: the handlers live as long as the process.
            assert_eq!(unsafe { libc::atexit(handler) }, 0);
        }
    });
    assert!(
        run.stdout.contains("after main: done") && run.stdout.contains("reset: done"),
        "{run:?}"
    );
}

/// Another thread than the first one calls `exit`, and runs the handlers.
#[test]
fn exit_handlers_have_the_current_context_of_whoever_calls_exit() {
    let run = in_another_process(test_name!(), &[], || {
        let thread = std::thread::spawn(|| {
            prepare();
            // SAFETY: the handler lives as long as the process.
            assert_eq!(unsafe { libc::atexit(after_main) }, 0);
            std::process::exit(0);
        });
        let _ = thread.join();
    });
    assert!(
        run.status.success() && run.stdout.contains("after main: done"),
        "{run:?}"
    );
}

/// A thread that ends takes nothing with it that others use, and a program that makes many of them does not grow.
#[test]
fn threads_that_end_let_go_of_their_contexts() {
    let context = crate::basics::context();
    let address = alloc(64);
    for _ in 0..4 {
        let (context, address) = (context as usize, address);
        std::thread::spawn(move || {
            ok(cuCtxSetCurrent(context as CUcontext));
            ok(cuMemsetD32_ptds(address, 3, 16));
        })
        .join()
        .unwrap();
    }
    assert_eq!(download(address, 4), [3, 0, 0, 0]);
    ok(cuCtxDestroy(context));
}
