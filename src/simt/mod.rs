//! Runs launches: a grid, its blocks (CTAs), their bundles of warps, barriers, system calls. A [`Launch`] says what to run;
//! what kernels ask of the rest of the driver goes through [`Services`] and [`Runtime`]; a [`Fault`] says why one ended early.

mod block;
mod children;
mod fault;
mod grid;
mod interp;
mod machine;
mod pool;
mod schedule;
mod special;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::defect::Defect;
use crate::memory::texture::References;
use crate::program::Space;

pub use children::{Family, GraphUpdate, Runtime, Shape, run};
pub use fault::{Fault, Place, Site, Whose};
pub use interp::code::Executables;
pub use machine::observe;
use machine::observe::Watch;
pub use schedule::Seed;

/// A grid to run.
pub struct Launch {
    pub code: Arc<Executables>,
    /// Index of the kernel among the module's functions.
    pub kernel: u32,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// `[1, 1, 1]` without clusters.
    pub cluster: [u32; 3],
    pub dynamic_shared: u32,
    /// The parameter block, laid out as [`crate::program::KernelInfo::params`] says.
    pub params: Box<[u8]>,
    /// All blocks resident and taking turns.
    pub cooperative: bool,
    /// What `%envreg1` (high half) and `%envreg2` (low half) read: a zeroed workspace of 8 bytes or more for
    /// `grid.sync()`, an ordinary device allocation; 0 unless the launch is cooperative.
    pub workspace: u64,
    pub grid_id: u64,
    /// What `%nsmid` reads.
    pub multiprocessors: u32,
    /// Bytes of local memory a lane may use for its call stack (`CU_LIMIT_STACK_SIZE`).
    pub stack_limit: u64,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// What its schedule is drawn from; `None`: it runs as fast as it can.
    pub seed: Option<Seed>,
    pub services: Arc<dyn Services>,
    /// What the module's texture and surface references are bound to.
    pub references: References,
    /// Who launched it, and what it may launch.
    pub family: Family,
}

impl Launch {
    fn envreg(&self, i: u8) -> u32 {
        match i {
            1 => (self.workspace >> 32) as u32,
            2 => self.workspace as u32,
            _ => 0,
        }
    }
}

/// What a kernel asks of its context through system calls.
pub trait Services: Send + Sync {
    /// Device `malloc`: 0 when the heap is spent.
    fn malloc(&self, bytes: u64) -> u64;
    /// Device `free`; `false`: not a live block of this heap.
    fn free(&self, address: u64) -> bool;
    /// Finished `printf` text, whole calls at a time, in an order in which they happened.
    fn print(&self, bytes: &[u8]);
    /// The line of a failed assertion.
    fn assert_failed(&self, line: &str);
    /// `cudaGraphSetConditional`; `false`: no such handle.
    fn set_conditional(&self, handle: u64, value: u32) -> bool;
    /// Who looks on while kernels run; asked once a grid.
    fn watch(&self) -> Watch {
        Watch::default()
    }
}

/// Each cause has one `CUresult` in the driver API manual (named in the comment).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// 700 `CUDA_ERROR_ILLEGAL_ADDRESS`. Addresses of the shared, local and param spaces count from their window's start.
    IllegalAddress {
        address: u64,
        bytes: u32,
        write: bool,
        space: Space,
    },
    /// 700: registered host memory that the program has unmapped, protected, or cut off with its file.
    HostMemoryGone { address: u64 },
    /// 716 `CUDA_ERROR_MISALIGNED_ADDRESS`
    Misaligned { address: u64, bytes: u32 },
    /// 715 `CUDA_ERROR_ILLEGAL_INSTRUCTION`: undefined behaviour such as a wild `brx.idx` index.
    IllegalInstruction { why: String },
    /// 718 `CUDA_ERROR_INVALID_PC`
    InvalidPc { address: u64 },
    /// 714 `CUDA_ERROR_HARDWARE_STACK_ERROR`
    StackOverflow { needed: u64, limit: u64 },
    /// 719 `CUDA_ERROR_LAUNCH_FAILED`
    Trap,
    /// 719: a handle that is no texture's or surface's, or a place outside of a surface (PTX ISA: an execution trap).
    Texture { why: String },
    /// 710 `CUDA_ERROR_ASSERT`
    Assert,
    /// 702 `CUDA_ERROR_LAUNCH_TIMEOUT`
    Timeout { milliseconds: u64 },
    /// No thread of the grid can go on: 719, with a message that names who waits for what.
    Deadlock { why: String },
    /// 2 `CUDA_ERROR_OUT_OF_MEMORY`: no room for shared or local memory of a block.
    OutOfMemory { bytes: u64 },
    /// 218 `CUDA_ERROR_INVALID_PTX`: the kernel does not lower.
    Invalid { report: String },
    /// 719 `CUDA_ERROR_LAUNCH_FAILED`: Margay's own fault.
    Defect { defect: Defect },
}

/// Why an access of registered host memory failed that was allowed.
pub const HOST_MEMORY_GONE: &str = "the program has registered this host memory, and then unmapped or protected it, or \
    shortened the file behind it";

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::IllegalAddress {
                address,
                bytes,
                write,
                space,
            } => {
                let what = if *write { "write" } else { "read" };
                let space = match space {
                    Space::Generic | Space::Global => "",
                    Space::Const => " in .const",
                    Space::Shared => " in .shared",
                    Space::Local => " in .local",
                    Space::Param => " in .param",
                };
                let s = if *bytes == 1 { "" } else { "s" };
                write!(f, "illegal {what} of {bytes} byte{s} at {address:#x}{space}")
            }
            Cause::HostMemoryGone { address } => write!(f, "access at {address:#x}: {HOST_MEMORY_GONE}"),
            Cause::Misaligned { address, bytes } => {
                write!(
                    f,
                    "misaligned access of {bytes} bytes at {address:#x}, which is not a multiple of {bytes}"
                )
            }
            Cause::IllegalInstruction { why } => write!(f, "illegal instruction: {why}"),
            Cause::InvalidPc { address } => write!(f, "call of {address:#x}, which is no function"),
            Cause::StackOverflow { needed, limit } => {
                write!(
                    f,
                    "call stack overflow: {needed} bytes of local memory needed, {limit} there (CU_LIMIT_STACK_SIZE)"
                )
            }
            Cause::Trap => f.write_str("trap"),
            Cause::Texture { why } => f.write_str(why),
            Cause::Assert => f.write_str("assertion failed"),
            Cause::Timeout { milliseconds } => write!(f, "still running after {milliseconds} ms (MARGAY_TIMEOUT)"),
            Cause::Deadlock { why } => write!(f, "deadlock: {why}"),
            Cause::OutOfMemory { bytes } => write!(f, "no room for {bytes} bytes of shared and local memory"),
            Cause::Invalid { report } => f.write_str(report),
            Cause::Defect { defect } => defect.fmt(f),
        }
    }
}
