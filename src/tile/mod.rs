//! CUDA Tile IR: kernels that say what becomes of whole tiles, in NVIDIA's bytecode (CUDA Tile IR Reference; versions 13.1 to 13.5).
//! cuTile (`cuda.tile`) and nvcc's `__tile__` functions compile to it, and cuBLAS brings its products of halves in it.
//!
//! ```text
//! bytes.rs  numbers and strings of the bytecode      op.rs     the operations, and how each is written: one table
//! types.rs  elements, tiles, views                   read.rs   bytecode → [`Module`]
//! debug.rs  where operations come from               stub.rs   what is PTX of a module: kernels that call us
//! value.rs  tiles as they are while a kernel runs    run/      carrying out an entry, a file for each kind of operation
//! error.rs  why there is no module
//! ```
//!
//! A tile kernel runs as a kernel of one thread a block, whose PTX calls the system: so launches, streams, graphs, faults and
//! checkers are those of every other kernel. The call runs the entry for a while ([`Run::step`]) and is made again until it is
//! through, so that blocks may wait for each other. This room knows neither lanes nor address spaces: [`Host`] stands for them.

mod bytes;
mod debug;
mod error;
mod op;
mod read;
mod run;
mod stub;
mod types;
mod value;

#[cfg(test)]
mod tests;

pub use error::Error;
pub use read::{Module, read};
pub use run::{Host, Order, Run, Stepped, Strength};
pub use stub::{SYSTEM_CALL, operation_at, ptx, to_go_on};

/// What every bytecode begins with (CUDA Tile IR Reference, Binary Format).
pub const MAGIC: [u8; 8] = *b"\x7fTileIR\0";
