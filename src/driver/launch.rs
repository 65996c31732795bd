//! Launches: validation, parameters, the queue.

use std::sync::Arc;

use super::{Function, Result, Stream};

/// A launch as a call describes it.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// All 0: none asked for (the kernel's own `.reqnctapercluster`, if any).
    pub cluster: [u32; 3],
    pub dynamic_shared: u32,
    pub cooperative: bool,
}

/// Where the arguments are.
#[derive(Clone, Copy)]
pub enum Arguments<'a> {
    None,
    /// `kernelParams`: one pointer for each parameter.
    Pointers(*const *const std::ffi::c_void),
    /// `extra`, already taken apart.
    Buffer(&'a [u8]),
}

/// `cuLaunchKernel`, `cuLaunchKernelEx`, `cuLaunchCooperativeKernel`.
///
/// # Safety
/// `Arguments::Pointers` has a valid pointer for each parameter of the function.
pub unsafe fn launch(
    _function: &Arc<Function>,
    _config: &Config,
    _arguments: Arguments<'_>,
    _stream: &Arc<Stream>,
) -> Result<()> {
    todo!()
}
