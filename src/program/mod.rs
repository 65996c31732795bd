//! Syntax tree → [`Function`]s ready to be compiled: names resolved, types checked, operations typed, control-flow graph
//! laid out, calling convention decided. Knows nothing of threads or of the C ABI.
//!
//! It is handed linked PTX modules ([`crate::ptx`]), the instruction table ([`crate::isa`]) and addresses for variables, and
//! gives bodies in a representation ([`ir`]) that each tier compiles for itself. Blocks stand in an order such that the
//! fragment of a warp in the lowest block is always the right one to run next.
//!
//! `check/` reads a body against the rules of the language, and makes a tree of it in which names and opcodes are
//! resolved; `link` joins units by name and places variables (`initialiser`, `layout`), reading no body; `references`
//! says what of the linked module a body names; `lower/` turns a tree into the representation when something first
//! reaches it, `passes/` improve that; `module` and `function` are what others hold, `frames` what a chain of calls
//! takes of local memory.
//!
//! **Calling convention.** `.param` variables of device functions, and those that a caller declares for a call, live in
//! the lane's local memory frame, as the PTX ABI guide lets them: `st.param`/`ld.param` are local accesses at static
//! offsets. A call copies the argument bytes from the caller's frame to the start of the callee's, a return copies
//! results back. Kernel parameters are constants of the launch.
//!
//! **Frame of a function** in local memory: `[return params][params][.local variables][call areas]`, sizes known.

pub mod check;
mod demangle;
pub mod executed;
mod frames;
mod function;
mod initialiser;
pub mod ir;
mod layout;
mod lines;
mod link;
mod lower;
mod module;
pub(crate) mod passes;
mod references;
mod runtime;

#[cfg(test)]
mod tests;

pub use demangle::{Named, demangle};
pub use frames::Stack;
pub use function::Function;
pub use ir::*;
pub use layout::{RESERVED_SHARED, size_of as value_bytes};
pub use lines::{Origin, SharedName, SourceLine};
pub use module::*;
pub use runtime::{Generation, RuntimeCall};
