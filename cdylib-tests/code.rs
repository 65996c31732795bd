//! What tests of modules, functions and launches share: a context of their own, code from text, launches that wait.

use std::ffi::{CString, c_uint, c_void};
use std::ptr::null_mut;

pub use crate::basics::context;
use crate::c::*;

/// PTX with a prologue that all such texts share.
pub fn text(body: &str) -> CString {
    CString::new(format!(".version 8.0\n.target sm_80\n.address_size 64\n{body}\n")).expect("no NUL in it")
}

pub fn module(body: &str) -> CUmodule {
    let mut module = null_mut();
    ok(cuModuleLoadData(&mut module, text(body).as_ptr().cast()));
    module
}

pub fn function(module: CUmodule, name: &str) -> CUfunction {
    let (mut function, name) = (null_mut(), CString::new(name).expect("no NUL in it"));
    ok(cuModuleGetFunction(&mut function, module, name.as_ptr()));
    function
}

/// Launches with parameters of 8 bytes and waits for the end; the result of either.
pub fn try_launch(function: CUfunction, blocks: c_uint, threads: c_uint, parameters: &[u64]) -> CUresult {
    let mut pointers: Vec<*mut c_void> = parameters
        .iter()
        .map(|p| std::ptr::from_ref(p) as *mut c_void)
        .collect();
    let launched = cuLaunchKernel(
        function,
        blocks,
        1,
        1,
        threads,
        1,
        1,
        0,
        null_mut(),
        pointers.as_mut_ptr(),
        null_mut(),
    );
    match launched {
        CUDA_SUCCESS => cuCtxSynchronize(),
        error => error,
    }
}

pub fn launch(function: CUfunction, blocks: c_uint, threads: c_uint, parameters: &[u64]) {
    ok(try_launch(function, blocks, threads, parameters));
}

/// Zeroed memory.
pub fn words(count: usize) -> CUdeviceptr {
    let mut pointer = 0;
    ok(cuMemAlloc(&mut pointer, count * 4));
    write(pointer, &vec![0; count]);
    pointer
}

pub fn write(to: CUdeviceptr, values: &[u32]) {
    ok(cuMemcpyHtoD(to, values.as_ptr().cast(), values.len() * 4));
}

pub fn read(from: CUdeviceptr, count: usize) -> Vec<u32> {
    let mut values = vec![0_u32; count];
    ok(cuMemcpyDtoH(values.as_mut_ptr().cast(), from, count * 4));
    values
}

/// A variable of a module: address and bytes.
pub fn global(module: CUmodule, name: &str) -> (CUdeviceptr, usize) {
    let (mut address, mut bytes, name) = (0, 0, CString::new(name).expect("no NUL in it"));
    ok(cuModuleGetGlobal(&mut address, &mut bytes, module, name.as_ptr()));
    (address, bytes)
}

/// A file of `tests/data/fatbin`, whose README says what is in it.
pub fn data(name: &str) -> (std::path::PathBuf, Vec<u8>) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/fatbin")
        .join(name);
    let bytes = std::fs::read(&path).expect("the file is there");
    (path, bytes)
}
