//! CUDART: what the runtime needs of devices and modules beyond the public calls. Asked for by cudart 11.8 to 13.5.
//!
//! It hands over device ordinals and fat binary wrappers, and gets contexts and modules.

use super::super::call::{Out, enter, initialised, require, show};
use super::super::types::*;
use super::Table;
use crate::driver::{Context, Device, Module};

pub const ID: u128 = 0x6bd5fb6c_5bf4_e74a_8987_d93912fd9df9;

pub static TABLE: Table<0> = Table::sized(
    13,
    &[
        (1, load_wrapper as *const c_void),
        (2, primary_context as *const c_void),
        (3, graphics_device as *const c_void),
        (6, load_wrapper_11 as *const c_void),
        (7, wrapper_goes as *const c_void),
        (8, load_fat_binary as *const c_void),
        (12, load_compilers as *const c_void),
    ],
);

fn load(module: Out<CUmodule>, image: *const c_void) -> Result<(), CUresult> {
    initialised()?;
    Context::usable()?;
    module.required()?;
    require(!image.is_null())?;
    // SAFETY: cudart hands over a fat binary wrapper, or a fat binary, of a loaded program.
    let loaded = unsafe { Module::load_data(image, true) }?;
    module.set(loaded.handle() as CUmodule)
}

/// Slot 1: loads a module from a wrapper into the current context. Not called by cudart 11.8 to 13.5.
unsafe extern "C" fn load_wrapper(module: *mut CUmodule, wrapper: *const c_void) -> CUresult {
    // SAFETY: null or good for a handle.
    let module = unsafe { Out::from_c(module) };
    enter(
        "CUDART.1",
        |f| show(f, &[("module", &module), ("wrapper", &wrapper)]),
        || load(module, wrapper),
    )
}

/// Slot 2, at start-up, once per device: the handle of the primary context, which is not retained and may be inactive.
unsafe extern "C" fn primary_context(context: *mut CUcontext, device: CUdevice) -> CUresult {
    // SAFETY: null or good for a handle.
    let context = unsafe { Out::from_c(context) };
    enter(
        "CUDART.2",
        |f| show(f, &[("context", &context), ("device", &device)]),
        || {
            initialised()?;
            context.set(Device::get(device)?.primary().handle() as CUcontext)
        },
    )
}

/// Slot 3: `cudaGLSetGLDevice`, `cudaVDPAUSetVDPAUDevice`. There are no graphics here.
unsafe extern "C" fn graphics_device(device: CUdevice) -> CUresult {
    enter(
        "CUDART.3",
        |f| show(f, &[("device", &device)]),
        || Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
    )
}

/// Slot 6: the only way in which cudart 11.8 loads modules, into the current context. The last arguments were always 0.
unsafe extern "C" fn load_wrapper_11(
    module: *mut CUmodule,
    wrapper: *const c_void,
    _: *const c_void,
    _: *const c_void,
    _: c_uint,
) -> CUresult {
    // SAFETY: null or good for a handle.
    let module = unsafe { Out::from_c(module) };
    enter(
        "CUDART.6",
        |f| show(f, &[("module", &module), ("wrapper", &wrapper)]),
        || load(module, wrapper),
    )
}

/// Slot 7: cudart 11.8 says at exit that a wrapper goes away. What was loaded from it has been copied.
unsafe extern "C" fn wrapper_goes(_wrapper: *const c_void) {}

/// Slot 8: as slot 6 for a fat binary without wrapper. Not called by cudart 11.8 to 13.5.
unsafe extern "C" fn load_fat_binary(
    fat_binary: *const c_void,
    module: *mut CUmodule,
    _: *const c_void,
    _: *const c_void,
    _: c_uint,
) -> CUresult {
    // SAFETY: null or good for a handle.
    let module = unsafe { Out::from_c(module) };
    enter(
        "CUDART.8",
        |f| show(f, &[("module", &module), ("fat_binary", &fat_binary)]),
        || load(module, fat_binary),
    )
}

/// Slot 12: the shared cudart 13 wants the driver's compilers loaded at start-up. Ours are part of the library.
unsafe extern "C" fn load_compilers() -> CUresult {
    CUresult::CUDA_SUCCESS
}
