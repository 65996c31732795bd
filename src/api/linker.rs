//! Linking (`cuLink*`): several images become one.
//!
//! What is linked becomes an image again (`image/linked.rs`), for the load calls.

use super::call::{Answer, In, Out, require};
use super::jit::JitOptions;
use super::types::*;
use crate::driver::Linker;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// The log buffers that `cuLinkCreate` was given: in the C caller's hands until the link is destroyed, so kept here.
static OPTIONS: LazyLock<Mutex<HashMap<usize, JitOptions>>> = LazyLock::new(Default::default);

fn options() -> MutexGuard<'static, HashMap<usize, JitOptions>> {
    OPTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Logs go to the buffers given when the link was created.
fn report<T>(
    state: CUlinkState,
    outcome: Result<T, crate::driver::LoadError>,
    remarks: impl FnOnce(&T) -> String,
) -> Answer<T> {
    let created_with = options().get(&(state as usize)).cloned();
    match created_with {
        Some(created_with) => created_with.report(outcome, remarks),
        None => Ok(outcome?),
    }
}

pub fn link_create(
    num_options: c_uint,
    jit_options: Out<CUjit_option>,
    option_values: Out<*mut c_void>,
    state_out: Out<CUlinkState>,
) -> Answer {
    state_out.required()?;
    let read = JitOptions::read(num_options, jit_options, option_values)?;
    let linker = Linker::create(read.symbols().clone())?;
    options().insert(linker.handle(), read);
    state_out.set(linker.handle() as CUlinkState)
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn link_add_data(
    state: CUlinkState,
    kind: CUjitInputType,
    data: *mut c_void,
    size: usize,
    name: In<c_char>,
    num_options: c_uint,
    jit_options: Out<CUjit_option>,
    option_values: Out<*mut c_void>,
) -> Answer {
    let linker = Linker::from_handle(state as usize)?;
    require(!data.is_null() && (1..=isize::MAX as usize).contains(&size))?;
    JitOptions::read(num_options, jit_options, option_values)?;
    let name = if name.is_null() { "" } else { name.text()? };
    // SAFETY: the caller's data and its size, which is that of an object in memory.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) };
    report(state, linker.add_data(kind.0, bytes, name), ToString::to_string).map(drop)
}

pub fn link_add_file(
    state: CUlinkState,
    kind: CUjitInputType,
    path: In<c_char>,
    num_options: c_uint,
    jit_options: Out<CUjit_option>,
    option_values: Out<*mut c_void>,
) -> Answer {
    let linker = Linker::from_handle(state as usize)?;
    JitOptions::read(num_options, jit_options, option_values)?;
    report(state, linker.add_file(kind.0, path.path()?), ToString::to_string).map(drop)
}

/// The image belongs to the link. The size may be NULL.
pub fn link_complete(state: CUlinkState, cubin_out: Out<*mut c_void>, size_out: Out<usize>) -> Answer {
    let linker = Linker::from_handle(state as usize)?;
    cubin_out.required()?;
    let image = report(state, linker.complete(), |_| String::new())?;
    size_out.set_if_any(image.len());
    cubin_out.set(image.as_ptr().cast_mut().cast())
}

pub fn link_destroy(state: CUlinkState) -> Answer {
    Linker::from_handle(state as usize)?.destroy()?;
    options().remove(&(state as usize));
    Ok(())
}
