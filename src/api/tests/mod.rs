//! The API's own tests: the exported functions, called as C calls them, on good input and on bad.
//!
//! Every test works in a context of its own, so that an error that stays in one does not meet the others. Expectations are
//! those of the driver API manual, by chapter; faults of kernels and the loading of the built file are tested elsewhere.

use super::exports::*;
use super::types::*;
use std::ptr::{null, null_mut};

mod code;
mod contexts;
mod copies;
mod devices;
mod launches;
mod logs;
mod memory;
mod panics;
mod streams;
mod tables;

/// Calls an exported function.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: pointers are null or good; whether the function survives the rest is what is tested.
        unsafe { $function($($argument),*) }
    };
}

/// Calls an exported function that must succeed.
macro_rules! ok {
    ($function:ident($($argument:expr),* $(,)?)) => {
        assert_eq!(call!($function($($argument),*)), CUresult::CUDA_SUCCESS, stringify!($function))
    };
}

/// Calls an exported function that must fail with this code.
macro_rules! fails {
    ($code:ident, $function:ident($($argument:expr),* $(,)?)) => {
        assert_eq!(call!($function($($argument),*)), CUresult::$code, stringify!($function($($argument),*)))
    };
}

use {call, fails, ok};

/// What no call has ever handed out.
fn stray<T>() -> *mut T {
    std::ptr::without_provenance_mut(0x1234_5678)
}

/// A context of the test's own, current until it is dropped.
struct Own(CUcontext);

impl Own {
    fn new() -> Own {
        ok!(cuInit(0));
        let mut context = null_mut();
        ok!(cuCtxCreate_v2(&mut context, 0, 0));
        Own(context)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let destroyed = call!(cuCtxDestroy_v2(self.0));
        if !std::thread::panicking() {
            assert_eq!(destroyed, CUresult::CUDA_SUCCESS);
        }
    }
}

/// Two kernels and a variable.
const PTX: &std::ffi::CStr = c"
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 counter[4] = {1, 2, 3, 4};
.visible .entry fill(.param .u64 where, .param .u32 value, .param .u32 count)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [where];
    ld.param.u32 %r0, [value];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    setp.ge.u32 %p, %r2, %r1;
    @%p bra done;
    cvta.to.global.u64 %rd1, %rd0;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd1, %rd1, %rd2;
    add.u32 %r5, %r0, %r2;
    st.global.u32 [%rd1], %r5;
done:
    ret;
}
.visible .entry nothing()
{
    ret;
}
";

/// The module of [`PTX`].
fn module() -> CUmodule {
    let mut module = null_mut();
    ok!(cuModuleLoadData(&mut module, PTX.as_ptr().cast()));
    module
}

fn function(module: CUmodule, name: &std::ffi::CStr) -> CUfunction {
    let mut function = null_mut();
    ok!(cuModuleGetFunction(&mut function, module, name.as_ptr()));
    function
}

fn allocate(bytes: usize) -> CUdeviceptr {
    let mut pointer = 0;
    ok!(cuMemAlloc_v2(&mut pointer, bytes));
    assert_ne!(pointer, 0);
    pointer
}

fn read_u32(from: CUdeviceptr, count: usize) -> Vec<u32> {
    let mut numbers = vec![0u32; count];
    ok!(cuMemcpyDtoH_v2(numbers.as_mut_ptr().cast(), from, count * 4));
    numbers
}
