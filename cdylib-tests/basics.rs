//! What tests of many chapters begin with: a context, a stream, memory with something in it. Each call must succeed.
//!
//! Whoever asks for a handle or an address here gives it back to the library.

use crate::c::*;
use std::ptr::null_mut;

/// A context of the first device, current in this thread.
pub fn context() -> CUcontext {
    let mut context = null_mut();
    ok(cuInit(0));
    ok(cuCtxCreate(&mut context, 0, 0));
    context
}

/// A stream that does not wait for the default one.
pub fn stream() -> CUstream {
    let mut stream = null_mut();
    ok(cuStreamCreate(&mut stream, 1));
    stream
}

pub fn alloc(bytes: usize) -> CUdeviceptr {
    let mut pointer = 0;
    ok(cuMemAlloc(&mut pointer, bytes));
    pointer
}

pub fn upload(bytes: &[u8]) -> CUdeviceptr {
    let pointer = alloc(bytes.len());
    ok(cuMemcpyHtoD(pointer, bytes.as_ptr().cast(), bytes.len()));
    pointer
}

pub fn download(pointer: CUdeviceptr, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    ok(cuMemcpyDtoH(data.as_mut_ptr().cast(), pointer, bytes));
    data
}
