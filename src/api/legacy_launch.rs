//! Deprecated execution control: launches whose shape and arguments are set on the function beforehand.
//!
//! The function is only the name under which these values are kept, so they are kept here.

use super::call::{Answer, DefaultStream, require};
use super::execution::{LARGEST_PARAMETERS, find};
use super::types::*;
use crate::driver::Context;
use crate::driver::calls::launch as run;
use crate::driver::launch::{Arguments, Config};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

#[derive(Clone, Default)]
struct Setup {
    block: [u32; 3],
    shared: u32,
    parameters: Vec<u8>,
}

static SETUPS: LazyLock<Mutex<HashMap<usize, Setup>>> = LazyLock::new(Default::default);

fn setup<T>(hfunc: CUfunction, change: impl FnOnce(&mut Setup) -> Answer<T>) -> Answer<T> {
    let handle = find(hfunc)?.handle();
    change(
        SETUPS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(handle)
            .or_default(),
    )
}

pub fn func_set_block_shape(_: &Arc<Context>, hfunc: CUfunction, x: c_int, y: c_int, z: c_int) -> Answer {
    require(x > 0 && y > 0 && z > 0)?;
    setup(hfunc, |setup| {
        setup.block = [x, y, z].map(c_int::unsigned_abs);
        Ok(())
    })
}

pub fn func_set_shared_size(_: &Arc<Context>, hfunc: CUfunction, bytes: c_uint) -> Answer {
    setup(hfunc, |setup| {
        setup.shared = bytes;
        Ok(())
    })
}

pub fn param_set_size(_: &Arc<Context>, hfunc: CUfunction, numbytes: c_uint) -> Answer {
    require(numbytes as usize <= LARGEST_PARAMETERS)?;
    setup(hfunc, |setup| {
        setup.parameters.resize(numbytes as usize, 0);
        Ok(())
    })
}

fn put(hfunc: CUfunction, offset: c_int, bytes: &[u8]) -> Answer {
    let start = usize::try_from(offset).map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
    let end = start + bytes.len();
    require(end <= LARGEST_PARAMETERS)?;
    setup(hfunc, |setup| {
        if setup.parameters.len() < end {
            setup.parameters.resize(end, 0);
        }
        setup.parameters[start..end].copy_from_slice(bytes);
        Ok(())
    })
}

pub fn param_set_i(_: &Arc<Context>, hfunc: CUfunction, offset: c_int, value: c_uint) -> Answer {
    put(hfunc, offset, &value.to_le_bytes())
}

pub fn param_set_f(_: &Arc<Context>, hfunc: CUfunction, offset: c_int, value: f32) -> Answer {
    put(hfunc, offset, &value.to_le_bytes())
}

pub fn param_set_v(_: &Arc<Context>, hfunc: CUfunction, offset: c_int, ptr: *mut c_void, numbytes: c_uint) -> Answer {
    require(!ptr.is_null() && numbytes as usize <= LARGEST_PARAMETERS)?;
    // SAFETY: the caller's data and its size.
    let bytes = unsafe { std::slice::from_raw_parts(ptr.cast::<u8>(), numbytes as usize) };
    put(hfunc, offset, bytes)
}

pub fn launch(context: &Arc<Context>, function: CUfunction) -> Answer {
    launch_grid(context, function, 1, 1)
}

pub fn launch_grid(context: &Arc<Context>, function: CUfunction, width: c_int, height: c_int) -> Answer {
    launch_grid_async(context, function, width, height, std::ptr::null_mut())
}

pub fn launch_grid_async(
    _: &Arc<Context>,
    function: CUfunction,
    width: c_int,
    height: c_int,
    stream: CUstream,
) -> Answer {
    require(width > 0 && height > 0)?;
    let stream = DefaultStream::Legacy.resolve(stream)?;
    let setup = setup(function, |setup| Ok(setup.clone()))?;
    let config = Config {
        grid: [width.unsigned_abs(), height.unsigned_abs(), 1],
        block: setup.block,
        dynamic_shared: setup.shared,
        cooperative: false,
        ..Config::default()
    };
    // SAFETY: the arguments are in a buffer.
    Ok(unsafe { run(&find(function)?, &config, Arguments::Buffer(&setup.parameters), &stream) }?)
}
