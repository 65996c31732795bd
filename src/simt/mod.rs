//! `Program` + launch → effects: grid, CTAs, bundles of warps, barriers, system calls. Knows nothing of PTX text or of
//! CUDA handles.

use std::sync::Arc;

use crate::program::Module;

/// A grid to run.
pub struct Launch {
    pub module: Arc<Module>,
    /// Index of the kernel among the module's functions.
    pub kernel: u32,
    pub grid: [u32; 3],
    pub block: [u32; 3],
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
    pub services: Arc<dyn Services>,
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
}

/// Why a launch ended early, and where.
#[derive(Debug, Clone)]
pub struct Fault {
    pub cause: Cause,
    pub kernel: Arc<str>,
    pub block: [u32; 3],
    pub thread: [u32; 3],
    /// `file:line` of the source by `.loc`, when known, and the line and text of the PTX instruction.
    pub place: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// 700 `CUDA_ERROR_ILLEGAL_ADDRESS`
    IllegalAddress { address: u64, bytes: u32, write: bool },
    /// 716 `CUDA_ERROR_MISALIGNED_ADDRESS`
    Misaligned { address: u64, bytes: u32 },
    /// 717 `CUDA_ERROR_INVALID_ADDRESS_SPACE`
    InvalidSpace { address: u64 },
    /// 715 `CUDA_ERROR_ILLEGAL_INSTRUCTION`: `trap`-less undefined behaviour such as a wild `brx` index.
    IllegalInstruction { why: String },
    /// 718 `CUDA_ERROR_INVALID_PC`
    InvalidPc { address: u64 },
    /// 714 `CUDA_ERROR_HARDWARE_STACK_ERROR`
    StackOverflow { needed: u64, limit: u64 },
    /// 719 `CUDA_ERROR_LAUNCH_FAILED`
    Trap,
    /// 710 `CUDA_ERROR_ASSERT`
    Assert,
    /// 702 `CUDA_ERROR_LAUNCH_TIMEOUT`
    Timeout { milliseconds: u64 },
    /// No thread of the grid can go on: 719, with a message that names who waits for what.
    Deadlock { why: String },
}

/// Runs a grid to its end, on the calling thread and the process's workers.
///
/// # Errors
/// The first fault, if any; blocks that had not started then never do.
pub fn run(_launch: &Launch) -> Result<(), Box<Fault>> {
    todo!("the executor lands next")
}
