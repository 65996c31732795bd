//! Defects of the library's own, injected at each kind of place where one may happen: the context has an error that stays,
//! with a report; nobody waits for ever; other contexts go on; a reset helps; and the process ends as it should.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

use crate::alone::alone;
use crate::c::*;
use crate::code::*;
use crate::test_name;

functions! {
    cuLaunchHostFunc(stream: CUstream, function: extern "C" fn(*mut c_void), data: *mut c_void);
    cuMemsetD32Async(to: CUdeviceptr, value: c_uint, count: usize, stream: CUstream);
    cuUserObjectCreate(object: *mut *mut c_void, data: *mut c_void, destroy: extern "C" fn(*mut c_void), count: c_uint, flags: c_uint);
    cuUserObjectRelease(object: *mut c_void, count: c_uint);
    cuCtxResetPersistingL2Cache();
}

/// `CUDA_ERROR_UNKNOWN`
const UNKNOWN: CUresult = 999;

/// Kernels: one that works for a while in every block, one that prints, one that launches another, one that stores.
const KERNELS: &str = r#"
.global .align 1 .b8 text[4] = {104, 105, 10, 0};
.extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 arguments);
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12],
    .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 s);
.visible .entry busy()
{
    .reg .pred %p;
    .reg .b32 %r;
    mov.u32 %r, 0;
again:
    add.u32 %r, %r, 1;
    setp.lt.u32 %p, %r, 3000;
    @%p bra again;
    ret;
}
.visible .entry printing()
{
    .reg .b64 %a;
    mov.u64 %a, text;
    cvta.global.u64 %a, %a;
    {
        .param .b64 f; .param .b64 v; .param .b32 r;
        st.param.b64 [f], %a;
        st.param.b64 [v], 0;
        call.uni (r), vprintf, (f, v);
    }
    ret;
}
.visible .entry parent()
{
    .param .b64 f; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s; .param .b64 r;
    .param .b64 p; .param .b64 q; .param .b32 e;
    .reg .b64 %k, %buffer;
    mov.u64 %k, busy;
    st.param.b64 [f], %k;
    st.param.b32 [g], 1; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;
    st.param.b32 [b], 1; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1;
    st.param.b32 [s], 0;
    call.uni (r), __cudaCDP2GetParameterBufferV2, (f, g, b, s);
    ld.param.b64 %buffer, [r];
    st.param.b64 [p], %buffer; st.param.b64 [q], 0;
    call.uni (e), __cudaCDP2LaunchDeviceV2, (p, q);
    ret;
}
.visible .entry store(.param .u64 to)
{
    .reg .b64 %to;
    ld.param.u64 %to, [to];
    st.global.u32 [%to], 77;
    ret;
}
"#;

extern "C" fn nothing(_: *mut c_void) {}

/// It works: memory, a kernel, a copy, in the current context.
fn works() {
    let to = words(1);
    launch(function(module(KERNELS), "store"), 1, 1, &[to]);
    assert_eq!(read(to, 1), [77]);
}

/// In a process of its own, whose library panics at `place`: `act` runs into it in the primary context. All that is
/// answered then is `expected`; its report holds `words`.
fn broken(test: &str, place: &str, expected: CUresult, words: &[&str], act: fn()) {
    if !cfg!(debug_assertions) {
        eprintln!("built without debug assertions: the library has no places where tests make it panic");
        return;
    }
    let environment = [("CDYLIB_TEST_PANIC", place), ("MARGAY_THREADS", "3")];
    let run = alone(test, &environment, || {
        let (mut other, mut primary, mut pointer) = (null_mut(), null_mut(), 0);
        ok(cuInit(0));
        ok(cuCtxCreate(&mut other, 0, 0));
        ok(cuDevicePrimaryCtxRetain(&mut primary, 0));
        ok(cuCtxSetCurrent(primary));
        act();
        // The first answer may come before the defect.
        let _ = cuCtxSynchronize();
        for _ in 0..2 {
            assert_eq!(cuCtxSynchronize(), expected);
            assert_eq!(cuMemAlloc(&mut pointer, 4), expected);
            assert_eq!(cuStreamQuery(null_mut()), expected);
        }
        ok(cuCtxSetCurrent(other));
        works();
        ok(cuDevicePrimaryCtxReset(0));
        ok(cuDevicePrimaryCtxRetain(&mut primary, 0));
        ok(cuCtxSetCurrent(primary));
        works();
        ok(cuDevicePrimaryCtxRelease(0));
    });
    let report = &run.stderr;
    for words in ["a defect of Margay", "please report it: injected at", "at src/"]
        .iter()
        .chain(words)
    {
        assert!(report.contains(words), "no {words:?} in {report}");
    }
    // One report; the panic itself is not told again.
    assert_eq!(report.matches("injected at").count(), 1, "{report}");
    assert_eq!(report.matches("panicked").count(), 0, "{report}");
}

fn start(kernel: &str, blocks: u32) {
    let function = function(module(KERNELS), kernel);
    let result = try_launch(function, blocks, 32, &[]);
    assert_eq!(result, CUDA_ERROR_LAUNCH_FAILED);
}

#[test]
fn on_the_thread_that_runs_a_grid() {
    let words = ["kernel busy"];
    broken(test_name!(), "launcher:busy", CUDA_ERROR_LAUNCH_FAILED, &words, || {
        start("busy", 1)
    });
}

#[test]
fn on_a_worker() {
    let words = ["kernel busy"];
    broken(test_name!(), "worker:busy", CUDA_ERROR_LAUNCH_FAILED, &words, || {
        start("busy", 5000)
    });
}

#[test]
fn in_a_system_call() {
    let words = ["kernel printing"];
    broken(
        test_name!(),
        "system call:printing",
        CUDA_ERROR_LAUNCH_FAILED,
        &words,
        || start("printing", 100),
    );
}

#[test]
fn in_the_device_runtime() {
    let words = ["kernel parent"];
    broken(
        test_name!(),
        "system call:parent",
        CUDA_ERROR_LAUNCH_FAILED,
        &words,
        || start("parent", 1),
    );
}

#[test]
fn before_a_child_runs() {
    let words = ["kernel parent"];
    broken(test_name!(), "child:parent", CUDA_ERROR_LAUNCH_FAILED, &words, || {
        start("parent", 1)
    });
}

#[test]
fn in_a_child() {
    let words = ["kernel busy"];
    broken(test_name!(), "launcher:busy", CUDA_ERROR_LAUNCH_FAILED, &words, || {
        start("parent", 1)
    });
}

#[test]
fn while_a_kernel_is_prepared() {
    let words = ["kernel busy"];
    broken(test_name!(), "prepare:busy", CUDA_ERROR_LAUNCH_FAILED, &words, || {
        start("busy", 1)
    });
}

#[test]
fn while_a_kernel_is_lowered() {
    broken(test_name!(), "lowering:busy", UNKNOWN, &["in cuLaunchKernel"], || {
        assert_eq!(try_launch(function(module(KERNELS), "busy"), 1, 1, &[]), UNKNOWN);
    });
}

#[test]
fn in_a_call() {
    let words = ["in cuCtxResetPersistingL2Cache"];
    broken(
        test_name!(),
        "call:cuCtxResetPersistingL2Cache",
        UNKNOWN,
        &words,
        || {
            assert_eq!(cuCtxResetPersistingL2Cache(), UNKNOWN);
        },
    );
}

#[test]
fn in_a_command_of_a_stream() {
    broken(test_name!(), "command:*", UNKNOWN, &["a command of a stream"], || {
        let (kernel, to) = (function(module(KERNELS), "store"), words(1));
        assert_eq!(try_launch(kernel, 1, 1, &[to]), UNKNOWN);
    });
}

#[test]
fn in_what_a_stream_has_the_caller_do() {
    broken(test_name!(), "now:*", UNKNOWN, &["the calling thread"], || {
        let (mut to, mut word) = (0, 0_u32);
        ok(cuMemAlloc(&mut to, 4));
        assert_eq!(cuMemcpyDtoH((&raw mut word).cast(), to, 4), UNKNOWN);
    });
}

#[test]
fn between_the_commands_of_a_stream() {
    broken(test_name!(), "queue:*", UNKNOWN, &["the queue of a stream"], || {
        let (kernel, to) = (function(module(KERNELS), "store"), words(1));
        let mut result = try_launch(kernel, 1, 1, &[to]);
        // It comes when the command is done and may have been waited for.
        while result == CUDA_SUCCESS {
            std::thread::yield_now();
            result = cuCtxSynchronize();
        }
        assert_eq!(result, UNKNOWN);
    });
}

#[test]
fn around_a_host_function() {
    broken(
        test_name!(),
        "host function:*",
        UNKNOWN,
        &["a command of a stream"],
        || {
            ok(cuLaunchHostFunc(null_mut(), nothing, null_mut()));
        },
    );
}

#[test]
fn while_others_wait_for_the_stream() {
    broken(test_name!(), "command:*", UNKNOWN, &["a command of a stream"], || {
        let (mut one, mut two, mut event, to) = (null_mut(), null_mut(), null_mut(), words(1));
        ok(cuStreamCreate(&mut one, 1));
        ok(cuStreamCreate(&mut two, 1));
        ok(cuEventCreate(&mut event, 0));
        // What has the defect; an event behind it; another stream that waits for that.
        ok(cuLaunchHostFunc(one, nothing, null_mut()));
        let _ = (cuEventRecord(event, one), cuStreamWaitEvent(two, event, 0));
        let _ = cuMemsetD32Async(to, 2, 1, two);
        assert_eq!(cuStreamSynchronize(two), UNKNOWN);
    });
}

/// The destructor of a user object belongs to no context: it is reported, and those that come later are called.
#[test]
fn in_the_thread_of_user_objects() {
    extern "C" fn count(data: *mut c_void) {
        // SAFETY: an atomic that lives as long as the process.
        unsafe { &*data.cast::<std::sync::atomic::AtomicU32>() }.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
    if !cfg!(debug_assertions) {
        eprintln!("built without debug assertions: the library has no places where tests make it panic");
        return;
    }
    let run = alone(test_name!(), &[("CDYLIB_TEST_PANIC", "host function:*")], || {
        use std::sync::atomic::{AtomicU32, Ordering};
        static CALLED: AtomicU32 = AtomicU32::new(0);
        let no_sync: c_int = 1;
        context();
        for _ in 0..3 {
            let mut object = null_mut();
            let data = (&raw const CALLED).cast_mut().cast();
            ok(cuUserObjectCreate(&mut object, data, count, 1, no_sync as c_uint));
            ok(cuUserObjectRelease(object, 1));
        }
        let began = std::time::Instant::now();
        while CALLED.load(Ordering::SeqCst) < 2 {
            assert!(began.elapsed().as_secs() < 60, "nobody calls the other destructors");
            std::thread::yield_now();
        }
        works();
    });
    assert!(run.stderr.contains("in the destructor of a user object"), "{run:?}");
}
