//! The objects of the driver API and their rules: devices, contexts, modules, functions, streams, events, memory.
//!
//! The API calls in here with plain Rust types; handles are numbers. What fails answers an [`Error`].
//!
//! | room | what is in it |
//! | --- | --- |
//! | `device/` | devices, and the profiles that say what is reported |
//! | `context/` | contexts: life, current stacks, limits, sticky errors; green contexts; what kernels ask of a context |
//! | `streams/` | streams, events, and the threads that run what is queued |
//! | `memory/` | allocations, pools, copies, virtual addresses, what is known of a pointer |
//! | `code/` | images to trees, linking, libraries, modules, functions, launches, reports of their faults |
//! | `graph/` | work described once |
//! | `textures/` | arrays, texture and surface objects, references |
//! | `sharing/` | what several processes share, and what others have made |
//! | `process/` | checkpoints, core dumps, what belongs to threads |
//!
//! Beside them `error.rs`, `contents.rs` (what ends with a context, in which order), and `handle.rs`:
//!
//! **Handles** are numbers that are looked up, never followed: a stale or foreign one is an error, whatever it points to.

mod code;
mod contents;
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

/// There is one primary context: tests that look at its life take turns.
#[cfg(test)]
pub static PRIMARY: Mutex<()> = Mutex::new(());

use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use crate::memory::AddressSpace;

pub use code::settle::settle;
pub use code::{calls, fault, launch, linker, module, occupancy};
pub use context::green;
pub use memory::{alloc, batch, copies, copy, decompress, endpoint, managed, multicast, pointer, pool, virtual_memory};
pub use process::check::suppressions;
pub use process::{checkpoint, coredump, record, tally};
pub use sharing::{external, ipc, semaphore};
pub use streams::{event, stream};
pub use textures::{array, reference, texture};

use code::runtime_error;
use device::profile;
use process::per_thread;
use process::stage::{STAGE, Stage};
use sharing::{interprocess, shared_file};
use streams::{memory_operation, pump};
use textures::format;

pub use context::Context;
pub use device::{Board, Device, RELEASE, VERSION};
pub use error::{Error, Result};
pub use event::Event;
pub use format::bytes as format_bytes;
pub use green::Green;
pub use handle::Handle;
pub use linker::Linker;
pub use memory_operation::MemoryOperation;
pub use module::{Function, Kernel, Library, LoadError, Module};
pub use multicast::Multicast;
pub use pool::Pool;
pub use process::stage::{is_initialised, ready};
pub use stream::Stream;

/// `cuInit`.
///
/// # Errors
/// `InvalidValue` for flags other than 0, `NoDevice` when the environment leaves no device, `OutOfMemory` when the system
/// leaves no address space, `NotInitialized` in a child of a process that had initialised, as NVIDIA's driver has it.
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
    AddressSpace::prepare().map_err(|_| Error::OutOfMemory)?;
    if Device::count() == 0 {
        return Err(Error::NoDevice);
    }
    extern "C" fn in_child() {
        STAGE.store(Stage::Orphan as u8, Ordering::Release);
        record::leave();
    }
    // SAFETY: the handler only stores to an atomic and asks the system for a page, and the library is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    record::publish(
        Device::all()
            .iter()
            .map(|device| (device.ordinal() as u32, device.number())),
    );
    context::set_contents(contents::CONTENTS);
    memory::place::set_any_pending(pool::any_pending);
    process::check::set_held(virtual_memory::held);
    STAGE.store(Stage::Ready as u8, Ordering::Release);
    coredump::start();
    process::fidelity::start();
    process::summary::start();
    process::check::start();
    process::progress::start();
    process::watchdog::start();
    code::unordered::start();
    Ok(())
}
