//! Margay: a `libcuda.so.1` that runs CUDA programs on the CPU.
//!
//! The journey of one launch, room by room; knowledge points one way, from the API towards memory and never back:
//!
//! 1. `api`: a C call arrives through one table of entry points, is traced, and becomes a call on
//! 2. [`driver`]: devices, contexts, modules, functions, streams, events: their life and their rules; a module's
//! 3. [`image`]: bytes (fat binary, ELF, file) become PTX text;
//! 4. [`ptx`]: text becomes a syntax tree with spans;
//! 5. [`isa`]: the instruction table says what each instruction is and what it computes;
//! 6. [`program`]: the tree becomes a `Program`: names resolved, types checked, registers slotted, control flow known;
//! 7. [`simt`]: a program and a launch become effects: grid, CTA, warp, lane; upon
//! 8. [`memory`]: one address space in which every access is checked.
//!
//! [`trace`] stands aside and watches; `backtrace` knows where in the program a call was made; [`config`] knows every environment variable; what [`defect`] catches is
//! Margay's own fault; `companions` loads what makes NVIDIA's compilers keep PTX. `docs/architecture.md` is the whole map.

pub mod api;
mod backtrace;
mod companions;
pub mod config;
pub mod defect;
pub mod driver;
pub mod image;
pub mod isa;
pub mod memory;
pub mod program;
pub mod ptx;
pub mod sanitizer;
pub mod simt;
mod spelling;
pub mod tile;
pub mod trace;

/// The version as in `Cargo.toml`, such as `0.2.0`; a C string. NVIDIA's library has no such function: this is how programs
/// tell the two apart. It may be called before `cuInit`.
#[unsafe(no_mangle)]
pub extern "C" fn margay_version() -> *const std::ffi::c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
