//! The machine under all tiers: what an operation does to memory and to other lanes, whoever runs the code.
//!
//! A tier decides what runs next, and for which lanes; here stands what then happens. Operations take a context ([`Cx`]:
//! the register window, the mask, the block) and register slots as plain offsets; they know neither how a tier represents
//! code nor how it schedules, and of the grid only what [`Surroundings`] says. Every access to memory passes one funnel
//! (`access.rs`), which checks bounds, alignment and rights and tells the observer (`observe.rs`), if there is one. A
//! tier calls operations through [`Operations`], a table of which there are two: for grids that are watched, and for
//! others.
//!
//! ```text
//! context.rs     lanes, block, grid: what operations see    operations.rs  the table
//! access.rs      the funnel: addresses of lanes, checks     observe.rs     who looks on, and what he is told
//! transfer.rs    ld, st                                     raw.rs         elements of 1 to 16 bytes, strong and weak
//! lines.rs       ld, st of addresses that are base and step pieces.rs      elements to lanes and back, several at a time
//! atomic.rs      atom, red                                  copy.rs        cp.async
//! texture.rs     tex, tld4, txq, istypep                    surface.rs     suld, sust, sured
//! warp.rs        shfl, vote, match, redux, elect, fences    barrier.rs     bar, barrier: who has come
//! cluster.rs     barrier.cluster: who has come
//! heap_log.rs    who has allocated and freed what in the kernels' heap
//! within.rs      whether an access stays in its variable, held.rs of operations that know themselves how far they reach
//! shadow.rs      what follows values that nobody has written, shadow_lanes.rs of lanes of registers, shadow_match.rs of match
//! window.rs      cvta, isspacep, frame addresses            special.rs     special registers, initial values
//! peers.rs       shared memory of the other blocks of a cluster
//! frame.rs       arguments and results of calls             slots.rs       one lane of a register
//! tensor.rs      what tensor copies do to memory           tensor_memory.rs  tcgen05's memory, and who has which columns
//! joint/         barriers in memory, asynchronous copies, clusters, matrices: a family a file
//! asynchronous/  what goes on without its threads           mbarrier.rs    the object behind a barrier in memory
//! state.rs       what a block keeps beside its windows      step.rs        how an operation for several threads ends
//! syscall.rs     vprintf, malloc, free, __assertfail        format.rs      formatted output
//! device_runtime.rs  what kernels call that launch kernels  queue.rs       what they have put in line
//! observe.rs     who looks on                               uses.rs        what those hear who look for misuse
//! ```

pub mod access;
pub mod asynchronous;
mod atomic;
pub mod barrier;
pub mod cluster;
mod context;
mod copy;
mod device_runtime;
mod format;
pub mod frame;
pub mod heap_log;
mod held;
pub mod joint;
mod lines;
pub mod mbarrier;
pub mod observe;
mod operations;
pub mod peers;
mod pieces;
pub mod queue;
mod raw;
pub mod shadow;
mod shadow_lanes;
pub mod shadow_match;
pub mod slots;
pub mod special;
pub mod state;
mod step;
mod surface;
mod syscall;
mod tensor;
mod tensor_memory;
pub mod texture;
mod tile_block;
mod transfer;
pub mod uses;
pub mod warp;
pub mod window;
pub mod within;

pub use access::{AccessFn, MemOp, RECENT};
pub use atomic::{AtomOp, AtomicFn};
pub use context::{BlockEnv, Cx, Env, LANES, Line, MAX_RUNS, NONE, RawFault, SHORTEST_RUN, Surroundings, TileBlock};
pub use copy::Copy;
pub use operations::Operations;
