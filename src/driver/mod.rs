//! The objects of the driver API and their rules: devices, contexts, modules, functions, streams, events, memory.
//!
//! Flows in: calls that the API has taken out of their C clothing; handles as plain numbers. Flows out: effects, or an
//! [`Error`]. It must never know C structures, nor what an instruction means.
//!
//! | room | what is in it |
//! | --- | --- |
//! | `device/` | devices, and the profiles that say what is reported |
//! | `context/` | contexts: life, current stacks, limits, sticky errors; green contexts; what kernels ask of a context |
//! | `streams/` | streams, events, and the threads that run what is queued |
//! | `memory/` | allocations, pools, copies, virtual addresses, what is known of a pointer |
//! | `code/` | images to trees, linking, libraries, modules, functions, launches |
//! | `graph/` | work described once |
//! | `textures/` | arrays, texture and surface objects, references |
//! | `sharing/` | what several processes share, and what others have made |
//! | `process/` | checkpoints, core dumps, what belongs to threads |
//!
//! Beside them `error.rs`, and `handle.rs`:
//!
//! **Handles** are numbers that are looked up, never followed: a stale or foreign one is an error, whatever it points to.

mod code;
pub mod context;
pub mod device;
mod error;
pub mod graph;
mod handle;
mod memory;
mod process;
mod sharing;
mod streams;
mod textures;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;

pub use code::{launch, linker, module, occupancy};
pub use context::green;
pub use memory::{alloc, batch, copy, decompress, managed, multicast, pointer, pool, virtual_memory};
pub use process::{checkpoint, coredump};
pub use sharing::{external, ipc, semaphore};
pub use streams::{event, stream};
pub use textures::{array, reference, texture};

use code::runtime_error;
use device::profile;
use process::per_thread;
use sharing::{interprocess, shared_file};
use streams::{memory_operation, pump};
use textures::format;

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
    checkpoint::wait()?;
    ready()
}

/// Whether [`init`] has succeeded in this process.
pub fn is_initialised() -> bool {
    let stage = STAGE.load(Ordering::Acquire);
    stage == Stage::Ready as u8 || stage == Stage::Locked as u8
}

/// `cuDriverGetVersion`.
pub const VERSION: i32 = 13050;
