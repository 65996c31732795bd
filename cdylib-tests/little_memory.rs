//! Programs whose memory the system limits below what they use already (`setrlimit`, RLIMIT_DATA): calls that need more say
//! so, none hangs, and what was there goes on.

use std::ffi::c_uint;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use crate::alone::alone;
use crate::basics::context;
use crate::c::*;
use crate::code::{function, module, read, text, try_launch, words};
use crate::test_name;

functions! {
    cuFuncLoad(function: CUfunction);
}

/// Less than any process uses.
const NOTHING: libc::rlim_t = 4096;

/// Runs `work` while the process may have no more memory than it has, but for a little that small things take.
pub fn without_memory<R>(work: impl FnOnce() -> R) -> R {
    others_sleep();
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let used = status.lines().find_map(|line| line.strip_prefix("VmData:"));
    let used = used.and_then(|used| used.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    limited(used.expect("a line of the status") * 1024 + (4 << 20), work)
}

/// Waits until no other thread of this process runs. A thread that has just begun has its thread-local data still to come, and
/// the C library ends the process where there is no memory for those.
fn others_sleep() {
    let caller = std::fs::read_link("/proc/thread-self").expect("Linux has it");
    let caller = caller.file_name().expect("PID/task/TID").to_owned();
    let all_sleep = || {
        let threads = std::fs::read_dir("/proc/self/task").expect("Linux has it");
        let others = threads.flatten().filter(|thread| thread.file_name() != caller);
        // A thread that has ended meanwhile has no file.
        let states = others.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
        // The name before the state is in parentheses, and may hold some.
        states.into_iter().all(|line| {
            line.rsplit(") ")
                .next()
                .is_some_and(|rest| rest.starts_with(['S', 'D', 'Z']))
        })
    };
    // One that was woken a moment ago may not be seen as running yet: they sleep several times in a row.
    let (begin, mut calm) = (Instant::now(), 0);
    while calm < 5 {
        assert!(begin.elapsed() < Duration::from_secs(60), "a thread goes on and on");
        calm = if all_sleep() { calm + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn limited<R>(bytes: libc::rlim_t, work: impl FnOnce() -> R) -> R {
    let mut before = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the record is good for writing; limits of this process, which is the test's own.
    unsafe { assert_eq!(libc::getrlimit(libc::RLIMIT_DATA, &mut before), 0) };
    let less = libc::rlimit {
        rlim_cur: bytes,
        ..before
    };
    // SAFETY: the limits of this process, which is the test's own.
    unsafe { assert_eq!(libc::setrlimit(libc::RLIMIT_DATA, &less), 0) };
    let result = work();
    // SAFETY: the limits of this process, which is the test's own.
    unsafe { assert_eq!(libc::setrlimit(libc::RLIMIT_DATA, &before), 0) };
    result
}

const STORE: &str = ".visible .entry store(.param .u64 to) {
    .reg .b64 %to;
    ld.param.u64 %to, [to];
    st.global.u32 [%to], 42;
    ret;
}";

/// With backtraces, too, which need memory of their own.
#[test]
fn the_driver_cannot_begin() {
    for backtraces in ["0", "1"] {
        alone(test_name!(), &[("RUST_BACKTRACE", backtraces)], || {
            let mut version = 0;
            ok(cuDriverGetVersion(&mut version));
            assert_eq!(limited(NOTHING, || cuInit(0)), CUDA_ERROR_OUT_OF_MEMORY);
            ok(cuInit(0));
        });
    }
}

#[test]
fn calls_say_that_there_is_none() {
    alone(test_name!(), &[("RUST_BACKTRACE", "1")], || {
        let own = context();
        let to = words(1);
        let code = text(STORE);
        let (mut second, mut more, mut large) = (null_mut(), null_mut(), 0);
        let mut calls = || {
            [
                cuCtxCreate(&mut second, 0, 0),
                cuModuleLoadData(&mut more, code.as_ptr().cast()),
                cuMemAlloc(&mut large, 1 << 30),
            ]
        };
        assert_eq!(without_memory(&mut calls), [CUDA_ERROR_OUT_OF_MEMORY; 3]);
        assert_eq!(limited(NOTHING, &mut calls), [CUDA_ERROR_OUT_OF_MEMORY; 3]);
        // No error that stays.
        ok(cuCtxSynchronize());
        let module = module(STORE);
        assert_eq!(try_launch(function(module, "store"), 1, 1, &[to]), CUDA_SUCCESS);
        assert_eq!(read(to, 1), [42]);
        let (unloaded, freed) = without_memory(|| (cuModuleUnload(module), cuMemFree(to)));
        ok(unloaded);
        ok(freed);
        ok(without_memory(|| cuCtxDestroy(own)));
    });
}

/// What is compiled when it is first used, of a text so large that loading it does not.
#[test]
fn a_kernel_is_not_compiled() {
    alone(test_name!(), &[], || {
        context();
        let to = words(1);
        let padding = "nothing ".repeat(40_000);
        let module = module(&format!("// {padding}\n{STORE}"));
        let store = function(module, "store");
        let launch = |blocks: c_uint| try_launch(store, blocks, 1, &[to]);
        assert_eq!(without_memory(|| launch(1)), CUDA_ERROR_OUT_OF_MEMORY);
        assert_eq!(launch(1), CUDA_SUCCESS);
        assert_eq!(read(to, 1), [42]);
    });
}

/// The driver leaves kernels to threads of its own where the waiting thread has little stack; if none can be started, the
/// waiting thread runs them all the same.
#[test]
fn a_thread_with_little_stack_is_all_there_is() {
    alone(test_name!(), &[], || {
        let own = context() as usize;
        let to = words(1);
        let store = function(module(STORE), "store");
        ok(cuFuncLoad(store));
        let store = store as usize;
        let small = std::thread::Builder::new().stack_size(256 << 10);
        let waiting = small.spawn(move || {
            ok(cuCtxSetCurrent(number(own)));
            without_memory(|| try_launch(number(store), 1, 1, &[to]))
        });
        assert_eq!(waiting.unwrap().join().unwrap(), CUDA_SUCCESS);
        assert_eq!(read(to, 1), [42]);
    });
}
