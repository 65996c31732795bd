//! Defects of the library's own, injected where panics are caught: the context has an error from then on, nobody waits for
//! ever, and other contexts do not notice. `cdylib-tests/panics.rs` does the same in processes of their own.

use super::*;
use crate::defect::arm;
use std::ffi::CString;
use std::time::Duration;

/// A kernel of this name that takes a while in every block.
fn kernel(name: &str) -> CUfunction {
    let text = format!(
        ".version 7.0
        .target sm_70
        .address_size 64
        .visible .entry {name}()
        {{
            .reg .pred %p;
            .reg .b32 %r;
            mov.u32 %r, 0;
        again:
            add.u32 %r, %r, 1;
            setp.lt.u32 %p, %r, 2000;
            @%p bra again;
            ret;
        }}"
    );
    let (text, name) = (CString::new(text).unwrap(), CString::new(name).unwrap());
    let mut module = null_mut();
    ok!(cuModuleLoadData(&mut module, text.as_ptr().cast()));
    function(module, &name)
}

fn launch(kernel: CUfunction, blocks: u32) -> CUresult {
    let (no_parameters, no_extra) = (null_mut(), null_mut());
    call!(cuLaunchKernel(
        kernel,
        blocks,
        1,
        1,
        32,
        1,
        1,
        0,
        null_mut(),
        no_parameters,
        no_extra
    ))
}

/// Fails if `body` hangs.
fn in_time(body: impl FnOnce() + Send + 'static) {
    let (done, wait) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    let end = wait.recv_timeout(Duration::from_secs(60));
    if end == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
        panic!("somebody waits for ever");
    }
    thread.join().unwrap();
}

/// `act` meets a panic, in a context whose number it is given: from then on that has the error `expected`, and only that.
fn sticky(expected: CUresult, act: fn(u64)) {
    in_time(move || {
        let other = Own::new();
        let own = Own::new();
        let mut id = 0;
        ok!(cuCtxGetId(own.0, &mut id));
        act(id);
        assert_eq!(call!(cuCtxSynchronize()), expected);
        let mut pointer = 0;
        assert_eq!(call!(cuMemAlloc_v2(&mut pointer, 4)), expected);
        assert_eq!(call!(cuStreamSynchronize(null_mut())), expected);
        ok!(cuCtxSetCurrent(other.0));
        ok!(cuCtxSynchronize());
        let buffer = allocate(4);
        ok!(cuMemsetD32_v2(buffer, 11, 1));
        assert_eq!(launch(kernel("after_it"), 50), CUresult::CUDA_SUCCESS);
        ok!(cuCtxSynchronize());
        assert_eq!(read_u32(buffer, 1), [11]);
        ok!(cuCtxSetCurrent(own.0));
    });
}

#[test]
fn on_the_thread_that_runs_a_grid() {
    sticky(CUresult::CUDA_ERROR_LAUNCH_FAILED, |_| {
        arm("launcher", "on_launcher");
        assert_eq!(launch(kernel("on_launcher"), 100), CUresult::CUDA_SUCCESS);
    });
}

#[test]
fn on_a_worker() {
    if crate::config::get().threads == 1 {
        eprintln!("one thread runs all kernels here: nothing to test");
        return;
    }
    sticky(CUresult::CUDA_ERROR_LAUNCH_FAILED, |_| {
        arm("worker", "on_worker");
        // So many that another thread comes before the one that begins has run all of them, whatever else the machine does.
        assert_eq!(launch(kernel("on_worker"), 300_000), CUresult::CUDA_SUCCESS);
    });
}

#[test]
fn while_a_kernel_is_prepared() {
    sticky(CUresult::CUDA_ERROR_LAUNCH_FAILED, |_| {
        arm("prepare", "on_preparation");
        assert_eq!(launch(kernel("on_preparation"), 1), CUresult::CUDA_SUCCESS);
    });
}

#[test]
fn while_a_kernel_is_lowered() {
    sticky(CUresult::CUDA_ERROR_UNKNOWN, |_| {
        arm("lowering", "on_lowering");
        // Done by the call.
        assert_eq!(launch(kernel("on_lowering"), 1), CUresult::CUDA_ERROR_UNKNOWN);
    });
}

#[test]
fn in_a_call() {
    sticky(CUresult::CUDA_ERROR_UNKNOWN, |_| {
        arm("call", "cuCtxResetPersistingL2Cache");
        fails!(CUDA_ERROR_UNKNOWN, cuCtxResetPersistingL2Cache());
    });
}

#[test]
fn in_a_command_of_a_stream() {
    sticky(CUresult::CUDA_ERROR_UNKNOWN, |id| {
        let kernel = kernel("in_command");
        arm("command", id);
        assert_eq!(launch(kernel, 1), CUresult::CUDA_SUCCESS);
    });
}

#[test]
fn in_what_a_stream_has_the_caller_do() {
    sticky(CUresult::CUDA_ERROR_UNKNOWN, |id| {
        let (buffer, mut word) = (allocate(4), 0_u32);
        ok!(cuCtxSynchronize());
        arm("now", id);
        fails!(CUDA_ERROR_UNKNOWN, cuMemcpyDtoH_v2((&raw mut word).cast(), buffer, 4));
    });
}

#[test]
fn between_the_commands_of_a_stream() {
    sticky(CUresult::CUDA_ERROR_UNKNOWN, |id| {
        let kernel = kernel("in_queue");
        arm("queue", id);
        assert_eq!(launch(kernel, 1), CUresult::CUDA_SUCCESS);
        // It comes when the command is done and may have been waited for.
        while call!(cuCtxSynchronize()) == CUresult::CUDA_SUCCESS {
            std::thread::yield_now();
        }
    });
}

#[test]
fn while_a_fault_is_reported() {
    sticky(CUresult::CUDA_ERROR_LAUNCH_FAILED, |id| {
        arm("report", id);
        let mut module = null_mut();
        let text = c".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry stop() { trap; }";
        ok!(cuModuleLoadData(&mut module, text.as_ptr().cast()));
        assert_eq!(launch(function(module, c"stop"), 1), CUresult::CUDA_SUCCESS);
    });
}
