//! The objects of the driver API and their rules: devices, contexts, modules, functions, streams, events, memory.
//!
//! Flows in: calls that the API has taken out of their C clothing; handles as plain numbers. Flows out: effects, or an
//! [`Error`]. It must never know C structures, nor what an instruction means.
//!
//! ```text
//! device.rs  profile.rs   what is reported          context.rs   life, current stacks, limits, sticky errors
//! code.rs    linker.rs    images to trees           module.rs    libraries, modules, kernels, functions
//! stream.rs  pump.rs      queues and their threads  event.rs     points in them
//! green.rs                parts of devices
//! virtual_memory.rs       addresses and memory apart   multicast.rs  of several devices
//! ipc.rs  interprocess.rs memory and events that processes share, by way of shared_file.rs
//! alloc.rs   pool.rs      memory                    copy.rs      copies and sets
//! managed.rs pointer.rs   what is said and known of it  batch.rs decompress.rs  many copies at once
//! launch.rs  occupancy.rs kernels                   services.rs  heap.rs  what kernels ask of their context
//! device_runtime.rs       what kernels launch       runtime_error.rs
//! graph/                  work described once      memory_operation.rs  words that streams write or wait for
//! external.rs semaphore.rs  what others have made, by descriptor
//! array.rs   format.rs    arrays, their formats      texture.rs  reference.rs  objects and references over them
//! fault.rs  coredump.rs   reports and dumps of faults         checkpoint.rs  calls that wait
//! handle.rs  error.rs
//! ```
//!
//! **Handles** are numbers that are looked up, never followed: a stale or foreign one is an error, whatever it points to.

pub mod alloc;
pub mod array;
pub mod batch;
pub mod checkpoint;
mod code;
pub mod context;
pub mod copy;
pub mod coredump;
pub mod decompress;
pub mod device;
mod device_runtime;
mod error;
pub mod event;
pub mod external;
pub mod fault;
mod format;
pub mod graph;
pub mod green;
mod handle;
mod heap;
mod interprocess;
pub mod ipc;
pub mod launch;
pub mod linker;
pub mod managed;
mod memory_operation;
pub mod module;
pub mod multicast;
pub mod occupancy;
pub mod pointer;
pub mod pool;
mod profile;
mod pump;
pub mod reference;
mod runtime_error;
pub mod semaphore;
mod services;
mod shared_file;
pub mod stream;
pub mod texture;
pub mod virtual_memory;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;

pub use context::Context;
pub use device::Device;
pub use error::{Error, Result};
pub use event::Event;
pub use format::bytes as format_bytes;
pub use green::Green;
pub use linker::Linker;
pub use memory_operation::MemoryOperation;
pub use module::{Function, Kernel, Library, LoadError, Module};
pub use multicast::Multicast;
pub use pool::Pool;
pub use stream::Stream;

/// What programs hold in a `CUcontext`, `CUstream`, `CUfunction`, …: looked up, never followed. 0 is no object.
pub type Handle = usize;

/// The state of this process.
#[repr(u8)]
enum Stage {
    Fresh,
    Ready,
    /// Ready, but calls wait ([`checkpoint`]).
    Locked,
    /// A child of a process that was ready: threads and locks did not come along.
    Orphan,
}

static STAGE: AtomicU8 = AtomicU8::new(Stage::Fresh as u8);

/// `cuInit`.
///
/// # Errors
/// `InvalidValue` for flags other than 0, `NoDevice` when the environment leaves no device, `NotInitialized` in a child of
/// a process that had initialised, as NVIDIA's driver has it.
pub fn init(flags: u32) -> Result<()> {
    if flags != 0 {
        return Err(Error::InvalidValue);
    }
    crate::trace::init();
    static ONCE: Mutex<()> = Mutex::new(());
    let _once = ONCE.lock();
    match STAGE.load(Ordering::Acquire) {
        stage if stage == Stage::Fresh as u8 => {}
        _ => return ready(),
    }
    if Device::count() == 0 {
        return Err(Error::NoDevice);
    }
    extern "C" fn in_child() {
        STAGE.store(Stage::Orphan as u8, Ordering::Release);
    }
    // SAFETY: the handler only stores to an atomic, and the library is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    STAGE.store(Stage::Ready as u8, Ordering::Release);
    coredump::start();
    Ok(())
}

/// Every call but the few that answer before `cuInit` begins with this: cheap.
///
/// # Errors
/// `NotInitialized` before a successful [`init`], and in a child of a process that had initialised.
#[inline]
pub fn ready() -> Result<()> {
    if STAGE.load(Ordering::Acquire) == Stage::Ready as u8 {
        Ok(())
    } else {
        not_ready()
    }
}

#[cold]
fn not_ready() -> Result<()> {
    if STAGE.load(Ordering::Acquire) != Stage::Locked as u8 {
        return Err(Error::NotInitialized);
    }
    checkpoint::wait();
    ready()
}

/// Whether [`init`] has succeeded in this process.
pub fn is_initialised() -> bool {
    let stage = STAGE.load(Ordering::Acquire);
    stage == Stage::Ready as u8 || stage == Stage::Locked as u8
}

/// `cuDriverGetVersion`.
pub const VERSION: i32 = 13050;
