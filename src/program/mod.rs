//! Syntax tree → [`Function`]s ready to execute: names resolved, types checked, registers slotted, control-flow graph
//! laid out, calling convention decided. Knows nothing of threads or of the C ABI.
//!
//! In: linked PTX modules ([`crate::ptx`]), the instruction table ([`crate::isa`]), addresses for variables. Out: code
//! in an order such that the fragment of a bundle with the lowest pc is always the right one to run next.
//!
//! `rules/` checks what the language asks of a tree; `link` joins units by name and places variables (`initialiser`, `layout`), reading no body; `references` reads what a
//! body names; `lower/` turns a body into code when something first reaches it; `module` is what others hold; `instr` is
//! the code (`texture` of it what textures and surfaces need, `affine` what follows the lane's number), `visit` names its slots, `check` its rules, `show` prints it.
//!
//! **Calling convention.** `.param` variables of device functions, and those that a caller declares for a call, live in
//! the lane's local memory frame, as the PTX ABI guide lets them: `st.param`/`ld.param` are local accesses at static
//! offsets. A call copies the argument bytes from the caller's frame to the start of the callee's, a return copies
//! results back. Kernel parameters are constants of the launch.
//!
//! **Frame of a function** in local memory: `[return params][params][.local variables][call areas]`, sizes known.

pub mod affine;
mod check;
mod demangle;
mod initialiser;
mod instr;
mod layout;
mod lines;
mod link;
mod lower;
mod module;
mod references;
pub mod rules;
mod runtime;
mod show;
pub mod texture;
mod video;
mod visit;

#[cfg(test)]
mod tests;

pub use demangle::{Named, demangle};
pub use instr::*;
pub use lines::{Origin, SharedName, SourceLine};
pub use module::*;
pub use runtime::{Generation, RuntimeCall};
pub use visit::Role;
