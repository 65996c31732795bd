//! The objects of the driver API and their rules: devices, contexts, modules, functions, streams, events, memory.
//!
//! Flows in: calls that the API has taken out of their C clothing; handles as plain numbers. Flows out: effects, or an
//! [`Error`]. It must never know C structures, nor what an instruction means.
//!
//! ```text
//! device.rs  profile.rs   what is reported          context.rs   life, current stacks, limits, sticky errors
//! code.rs    linker.rs    images to trees           module.rs    libraries, modules, kernels, functions
//! stream.rs  pump.rs      queues and their threads  event.rs     points in them
//! alloc.rs   pool.rs      memory                    copy.rs      copies and sets
//! launch.rs  occupancy.rs kernels                   services.rs  heap.rs  what kernels ask of their context
//! handle.rs  error.rs
//! ```
//!
//! **Handles** are numbers that are looked up, never followed: a stale or foreign one is an error, whatever it points to.

pub mod alloc;
pub mod context;
pub mod copy;
pub mod device;
mod error;
pub mod event;
mod handle;
pub mod launch;
pub mod linker;
pub mod module;
pub mod occupancy;
pub mod pool;
pub mod stream;

pub use context::Context;
pub use device::Device;
pub use error::{Error, Result};
pub use event::Event;
pub use linker::Linker;
pub use module::{Function, Kernel, Library, LoadError, Module};
pub use pool::Pool;
pub use stream::Stream;

/// What programs hold in a `CUcontext`, `CUstream`, `CUfunction`, …: looked up, never followed. 0 is no object.
pub type Handle = usize;

/// `cuInit`.
///
/// # Errors
/// `InvalidValue` for flags other than 0, `NoDevice` when the environment leaves no device.
pub fn init(_flags: u32) -> Result<()> {
    todo!("bodies follow")
}

/// Every call but the few that answer before `cuInit` begins with this: cheap.
///
/// # Errors
/// `NotInitialized` before a successful [`init`], and in a child of a process that had initialised.
pub fn ready() -> Result<()> {
    todo!("bodies follow")
}

/// `cuDriverGetVersion`.
pub const VERSION: i32 = 13050;
