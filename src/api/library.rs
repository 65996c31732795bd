//! Library management: code that belongs to no context, and its kernels.
//!
//! Libraries and kernels are in `driver/code/`; images are read in `image/`.

use super::call::{Answer, In, Out, require};
use super::jit::{JitOptions, interned};
use super::types::*;
use crate::driver::{Context, Device, Kernel, Library};
use std::sync::Arc;

/// The binary is copied when loaded, so that it does not matter whether it is preserved; a table of unified functions
/// could only be filled by a device that calls host functions.
fn check_options(options: Out<CUlibraryOption>, count: c_uint) -> Answer {
    require(count == 0 || !options.is_null())?;
    for index in 0..count as usize {
        require(options.get_at(index)? < CUlibraryOption::CU_LIBRARY_NUM_OPTIONS)?;
    }
    Ok(())
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn library_load_data(
    library: Out<CUlibrary>,
    code: *const c_void,
    jit_options: Out<CUjit_option>,
    jit_options_values: Out<*mut c_void>,
    num_jit_options: c_uint,
    library_options: Out<CUlibraryOption>,
    _library_option_values: Out<*mut c_void>,
    num_library_options: c_uint,
) -> Answer {
    require(!library.is_null() && !code.is_null())?;
    check_options(library_options, num_library_options)?;
    let options = JitOptions::read(num_jit_options, jit_options, jit_options_values)?;
    // SAFETY: the caller's image: a fat binary, an ELF file, or text that ends with NUL.
    let loaded = unsafe { Library::load_data(code) };
    library.set(options.report(loaded, |_| String::new())?.handle() as CUlibrary)
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn library_load_from_file(
    library: Out<CUlibrary>,
    file_name: In<c_char>,
    jit_options: Out<CUjit_option>,
    jit_options_values: Out<*mut c_void>,
    num_jit_options: c_uint,
    library_options: Out<CUlibraryOption>,
    _library_option_values: Out<*mut c_void>,
    num_library_options: c_uint,
) -> Answer {
    library.required()?;
    check_options(library_options, num_library_options)?;
    let options = JitOptions::read(num_jit_options, jit_options, jit_options_values)?;
    let loaded = Library::load_file(file_name.path()?);
    library.set(options.report(loaded, |_| String::new())?.handle() as CUlibrary)
}

pub fn library_unload(library: CUlibrary) -> Answer {
    Ok(Library::from_handle(library as usize)?.unload()?)
}

pub fn library_get_kernel(kernel: Out<CUkernel>, library: CUlibrary, name: In<c_char>) -> Answer {
    kernel.required()?;
    kernel.set(Library::from_handle(library as usize)?.kernel(name.symbol()?)?.handle() as CUkernel)
}

pub fn library_get_kernel_count(count: Out<c_uint>, library: CUlibrary) -> Answer {
    count.required()?;
    count.set(Library::from_handle(library as usize)?.kernels()?.len() as c_uint)
}

/// Writes as many as there is room for.
pub fn library_enumerate_kernels(kernels: Out<CUkernel>, num_kernels: c_uint, library: CUlibrary) -> Answer {
    kernels.required()?;
    let found = Library::from_handle(library as usize)?.kernels()?;
    for (index, kernel) in found.iter().take(num_kernels as usize).enumerate() {
        kernels.set_at(index, kernel.handle() as CUkernel);
    }
    Ok(())
}

pub fn library_get_module(_: &Arc<Context>, module: Out<CUmodule>, library: CUlibrary) -> Answer {
    module.required()?;
    module.set(Library::from_handle(library as usize)?.module()?.handle() as CUmodule)
}

fn variable(found: (u64, u64), dptr: Out<CUdeviceptr>, bytes: Out<usize>) -> Answer {
    dptr.set_if_any(found.0);
    bytes.set_if_any(found.1 as usize);
    Ok(())
}

/// Either output may be NULL, not both.
pub fn library_get_global(
    _: &Arc<Context>,
    dptr: Out<CUdeviceptr>,
    bytes: Out<usize>,
    library: CUlibrary,
    name: In<c_char>,
) -> Answer {
    require(!dptr.is_null() || !bytes.is_null())?;
    variable(
        Library::from_handle(library as usize)?.global(name.symbol()?)?,
        dptr,
        bytes,
    )
}

/// Needs no context: managed variables are the same everywhere. Either output may be NULL, not both.
pub fn library_get_managed(dptr: Out<CUdeviceptr>, bytes: Out<usize>, library: CUlibrary, name: In<c_char>) -> Answer {
    require(!dptr.is_null() || !bytes.is_null())?;
    variable(
        Library::from_handle(library as usize)?.managed(name.symbol()?)?,
        dptr,
        bytes,
    )
}

/// No device here has unified function pointers (`CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS` is 0).
pub fn library_get_unified_function(fptr: Out<*mut c_void>, library: CUlibrary, symbol: In<c_char>) -> Answer {
    fptr.required()?;
    Library::from_handle(library as usize)?;
    symbol.symbol()?;
    Err(CUresult::CUDA_ERROR_NOT_FOUND)
}

pub fn kernel_get_function(_: &Arc<Context>, function: Out<CUfunction>, kernel: CUkernel) -> Answer {
    function.required()?;
    function.set(Kernel::from_handle(kernel as usize)?.function()?.handle() as CUfunction)
}

pub fn kernel_get_library(library: Out<CUlibrary>, kernel: CUkernel) -> Answer {
    library.required()?;
    library.set(Kernel::from_handle(kernel as usize)?.library()?.handle() as CUlibrary)
}

pub fn kernel_get_attribute(pi: Out<c_int>, attrib: CUfunction_attribute, kernel: CUkernel, dev: CUdevice) -> Answer {
    pi.required()?;
    pi.set(Kernel::from_handle(kernel as usize)?.attribute(Device::get(dev)?, attrib.0)?)
}

pub fn kernel_set_attribute(attrib: CUfunction_attribute, val: c_int, kernel: CUkernel, dev: CUdevice) -> Answer {
    Ok(Kernel::from_handle(kernel as usize)?.set_attribute(Device::get(dev)?, attrib.0, val)?)
}

/// A preference for hardware that divides one memory between cache and shared memory: nothing to do but to check it.
pub fn kernel_set_cache_config(kernel: CUkernel, config: CUfunc_cache, dev: CUdevice) -> Answer {
    Kernel::from_handle(kernel as usize)?;
    Device::get(dev)?;
    require(config <= CUfunc_cache::CU_FUNC_CACHE_PREFER_EQUAL)
}

pub fn kernel_get_name(name: Out<*const c_char>, kernel: CUkernel) -> Answer {
    name.required()?;
    name.set(interned(Kernel::from_handle(kernel as usize)?.name()))
}

/// The size may be NULL.
pub fn kernel_get_param_info(
    kernel: CUkernel,
    param_index: usize,
    param_offset: Out<usize>,
    param_size: Out<usize>,
) -> Answer {
    param_offset.required()?;
    let (offset, size) = Kernel::from_handle(kernel as usize)?.parameter(param_index)?;
    param_size.set_if_any(size as usize);
    param_offset.set(offset as usize)
}

pub fn kernel_get_param_count(kernel: CUkernel, param_count: Out<usize>) -> Answer {
    param_count.required()?;
    param_count.set(Kernel::from_handle(kernel as usize)?.parameter_count()?)
}
