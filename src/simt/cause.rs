//! Why a launch ends early, in words; where is `fault.rs`'s business.

use std::fmt;

use crate::defect::Defect;
use crate::program::Space;
use crate::ptx::ast::Span;

/// Each cause has one `CUresult` in the driver API manual (named in the comment).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// 700 `CUDA_ERROR_ILLEGAL_ADDRESS`. Addresses of the shared, local and param spaces count from their window's
    /// start.
    IllegalAddress {
        address: u64,
        bytes: u32,
        write: bool,
        space: Space,
    },
    /// 700, where accesses are checked to the variable: an access whose address was made from one object's, and that lies in
    /// another.
    Stray {
        address: u64,
        bytes: u32,
        write: bool,
        space: Space,
        made: Made,
        /// The instruction, where it is another one than that which looked.
        span: Option<Span>,
    },
    /// 715: a kernel frees what is no block of the heap, or no longer.
    WrongFree { address: u64 },
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
    /// 719: what an instruction was handed is not what it takes: a barrier in memory that nobody has initialised, a size
    /// that is no multiple of 16. PTX leaves open what hardware does then.
    Misuse { why: String },
    /// 721 `CUDA_ERROR_TENSOR_MEMORY_LEAK`: a block has ended with so many columns allocated.
    TensorMemoryLeak { columns: usize },
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

/// What an address was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// A shared variable, by its place in the window.
    Shared { offset: u32, bytes: u64, is_dynamic: bool },
    /// A variable in a lane's local window.
    Local { start: u64, bytes: u64 },
    /// A parameter, by its place among them.
    Parameter { offset: u32, bytes: u64 },
    /// What a pointer points to: a parameter of the kernel, or a variable of the module.
    Pointer { parameter: Option<u32>, pointer: u64 },
    /// Not known; it lies above all frames of the thread.
    Frames,
    /// A tensor map's tensor, which starts at `pointer` and goes so many bytes beyond the allocation there, by this dimension.
    Tensor {
        pointer: u64,
        dimension: usize,
        beyond: u64,
    },
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
            }
            | Cause::Stray {
                address,
                bytes,
                write,
                space,
                made: _,
                span: _,
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
            Cause::WrongFree { address } => {
                write!(
                    f,
                    "illegal instruction: free({address:#x}): not an allocation of the device heap, or freed before"
                )
            }
            Cause::InvalidPc { address } => write!(f, "call of {address:#x}, which is no function"),
            Cause::StackOverflow { needed, limit } => {
                write!(
                    f,
                    "call stack overflow: {needed} bytes of local memory needed, {limit} there (CU_LIMIT_STACK_SIZE)"
                )
            }
            Cause::Trap => f.write_str("trap"),
            Cause::Texture { why } | Cause::Misuse { why } => f.write_str(why),
            Cause::TensorMemoryLeak { columns } => {
                write!(
                    f,
                    "a block has ended with {columns} columns of tensor memory that it has not freed"
                )
            }
            Cause::Assert => f.write_str("assertion failed"),
            Cause::Timeout { milliseconds } => write!(f, "still running after {milliseconds} ms (MARGAY_TIMEOUT)"),
            Cause::Deadlock { why } => write!(f, "deadlock: {why}"),
            Cause::OutOfMemory { bytes } => write!(f, "no room for {bytes} bytes of shared and local memory"),
            Cause::Invalid { report } => f.write_str(report),
            Cause::Defect { defect } => defect.fmt(f),
        }
    }
}
