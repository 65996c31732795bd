//! Kernels, buffers, launches.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use crate::c::*;

pub fn start() {
    let mut context = null_mut();
    ok(cuInit(0));
    ok(cuDevicePrimaryCtxRetain(&mut context, 0));
    ok(cuCtxSetCurrent(context));
}

/// A buffer on the device, freed at its end.
pub struct Buffer {
    pub address: CUdeviceptr,
    bytes: usize,
}

impl Buffer {
    pub fn of<T: Copy>(values: &[T]) -> Buffer {
        let bytes = size_of_val(values).max(16);
        let mut address = 0;
        ok(cuMemAlloc(&mut address, bytes));
        ok(cuMemcpyHtoD(address, values.as_ptr().cast(), size_of_val(values)));
        Buffer { address, bytes }
    }

    pub fn words(&self) -> Vec<u32> {
        let mut words = vec![0u32; self.bytes / 4];
        ok(cuMemcpyDtoH(words.as_mut_ptr().cast(), self.address, self.bytes));
        words
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        ok(cuMemFree(self.address));
    }
}

/// A kernel `k` with blocks of 128 threads.
pub struct Kernel {
    module: CUmodule,
    function: CUfunction,
    shared: u32,
}

impl Kernel {
    pub fn load(text: &str, shared: u32) -> Result<Kernel, String> {
        let bytes = CString::new(text).expect("text");
        let (mut module, mut function) = (null_mut(), null_mut());
        match cuModuleLoadData(&mut module, bytes.as_ptr().cast()) {
            CUDA_SUCCESS => {}
            error => return Err(format!("load: error {error}\n{text}")),
        }
        ok(cuModuleGetFunction(&mut function, module, c"k".as_ptr()));
        // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        ok(cuFuncSetAttribute(function, 8, shared as i32));
        Ok(Kernel {
            module,
            function,
            shared,
        })
    }

    pub fn launch(&self, blocks: usize, parameters: &[u64]) -> Result<(), String> {
        let mut pointers: Vec<*mut c_void> = parameters.iter().map(|p| (&raw const *p).cast_mut().cast()).collect();
        let mut ended = cuLaunchKernel(
            self.function,
            blocks as u32,
            1,
            1,
            128,
            1,
            1,
            self.shared,
            null_mut(),
            pointers.as_mut_ptr(),
            null_mut(),
        );
        if ended == CUDA_SUCCESS {
            ended = cuCtxSynchronize();
        }
        match ended {
            CUDA_SUCCESS => Ok(()),
            error => Err(format!("error {error}")),
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // After an error of a launch the context does nothing any more.
        cuModuleUnload(self.module);
    }
}

/// Runs `text`'s kernel once, with so many blocks.
pub fn launch(text: &str, blocks: usize, shared: u32, parameters: &[u64]) -> Result<(), String> {
    Kernel::load(text, shared)?.launch(blocks, parameters)
}
