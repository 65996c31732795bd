//! A function or kernel, lowered and improved: what every tier compiles.

use std::sync::Arc;

use super::ir::Body;
use crate::isa::fidelity::Fidelity;

#[derive(Clone, Debug)]
pub struct Function {
    pub name: Arc<str>,
    /// Blocks in the order in which they are laid out; the first is the entry.
    pub body: Body,
    /// Bytes of this function's frame in a lane's local memory, multiple of `local_align`.
    pub local: u32,
    pub local_align: u32,
    /// Bytes of return parameters and of parameters at the start of the frame (device functions).
    pub return_bytes: u32,
    pub param_bytes: u32,
    /// Kernels: the shared variables that it can reach (index as in [`super::ir::Special::SharedBase`]) and their offsets, ascending
    /// by index. A device function reads its own from the kernel that is running, since kernels differ in layout.
    pub shared: Vec<(u32, u32)>,
    /// Kernels: bytes of static shared memory, with what is reserved.
    pub shared_bytes: u32,
    /// Kernels: bytes of static shared memory that the program has declared.
    pub own_shared: u32,
    /// Kernels: where dynamic shared memory starts, the aligned end of the static.
    pub dynamic_shared: u32,
    /// Kernels: where in static shared memory what is reserved lies, behind all else.
    pub reserved_shared: Option<u32>,
    /// Functions called directly (module indices).
    pub callees: Vec<u32>,
    pub calls_indirectly: bool,
    /// The instructions of its text, each once: by name where results are exact, else by opcode.
    pub instructions: Vec<(Fidelity, Box<str>)>,
    /// The text this came from.
    pub source: Arc<crate::ptx::Source>,
}
