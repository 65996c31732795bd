//! Module management.
//!
//! Modules and functions are in `driver/code/`; images are read in `image/`.

use super::call::{Answer, In, Out, require};
use super::jit::JitOptions;
use super::types::*;
use crate::driver::module::eager;
use crate::driver::{Context, Module};
use std::sync::Arc;

fn load(module: Out<CUmodule>, image: *const c_void, options: &JitOptions) -> Answer {
    require(!module.is_null() && !image.is_null())?;
    // SAFETY: the caller's image: a fat binary, an ELF file, or text that ends with NUL.
    let loaded = unsafe { Module::load_data_with(image, options.symbols(), false) };
    module.set(options.report(loaded, |module| module.remarks().to_string())?.handle() as CUmodule)
}

fn no_options() -> Answer<JitOptions> {
    // SAFETY: null pointers.
    unsafe { JitOptions::read(0, Out::from_c(std::ptr::null_mut()), Out::from_c(std::ptr::null_mut())) }
}

pub fn module_load(_: &Arc<Context>, module: Out<CUmodule>, fname: In<c_char>) -> Answer {
    module.required()?;
    module.set(Module::load_file(fname.path()?)?.handle() as CUmodule)
}

pub fn module_load_data(_: &Arc<Context>, module: Out<CUmodule>, image: *const c_void) -> Answer {
    load(module, image, &no_options()?)
}

pub fn module_load_data_ex(
    _: &Arc<Context>,
    module: Out<CUmodule>,
    image: *const c_void,
    num_options: c_uint,
    options: Out<CUjit_option>,
    option_values: Out<*mut c_void>,
) -> Answer {
    load(module, image, &JitOptions::read(num_options, options, option_values)?)
}

pub fn module_load_fat_binary(_: &Arc<Context>, module: Out<CUmodule>, fat_cubin: *const c_void) -> Answer {
    load(module, fat_cubin, &no_options()?)
}

pub fn module_unload(hmod: CUmodule) -> Answer {
    Ok(Module::from_handle(hmod as usize)?.unload()?)
}

/// What `CUDA_MODULE_LOADING` asks for: functions are lowered when first used, or with their module.
pub fn module_get_loading_mode(mode: Out<CUmoduleLoadingMode>) -> Answer {
    mode.set(if eager() {
        CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING
    } else {
        CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING
    })
}

pub fn module_get_function(_: &Arc<Context>, hfunc: Out<CUfunction>, hmod: CUmodule, name: In<c_char>) -> Answer {
    hfunc.required()?;
    let module = Module::from_handle(hmod as usize)?;
    hfunc.set(module.function(name.symbol()?)?.handle() as CUfunction)
}

/// Either output may be NULL, not both.
pub fn module_get_global(
    _: &Arc<Context>,
    dptr: Out<CUdeviceptr>,
    bytes: Out<usize>,
    hmod: CUmodule,
    name: In<c_char>,
) -> Answer {
    require(!dptr.is_null() || !bytes.is_null())?;
    let (address, size) = Module::from_handle(hmod as usize)?.global(name.symbol()?)?;
    dptr.set_if_any(address);
    bytes.set_if_any(size as usize);
    Ok(())
}

pub fn module_get_function_count(_: &Arc<Context>, count: Out<c_uint>, hmod: CUmodule) -> Answer {
    count.required()?;
    count.set(Module::from_handle(hmod as usize)?.functions()?.len() as c_uint)
}

/// Writes as many as there is room for.
pub fn module_enumerate_functions(
    _: &Arc<Context>,
    functions: Out<CUfunction>,
    num_functions: c_uint,
    hmod: CUmodule,
) -> Answer {
    functions.required()?;
    let found = Module::from_handle(hmod as usize)?.functions()?;
    for (index, function) in found.iter().take(num_functions as usize).enumerate() {
        functions.set_at(index, function.handle() as CUfunction);
    }
    Ok(())
}
