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
//! atomic.rs      atom, red                                  copy.rs        cp.async
//! texture.rs     tex, tld4, txq, istypep                    surface.rs     suld, sust, sured
//! warp.rs        shfl, vote, match, redux, elect, fences    barrier.rs     bar, barrier: who has come
//! window.rs      cvta, isspacep, frame addresses            special.rs     special registers, initial values
//! frame.rs       arguments and results of calls             slots.rs       one lane of a register
//! syscall.rs     vprintf, malloc, free, __assertfail        format.rs      formatted output
//! device_runtime.rs  what kernels call that launch kernels  queue.rs       what they have put in line
//! ```

pub mod access;
mod atomic;
pub mod barrier;
mod context;
mod copy;
mod device_runtime;
mod format;
pub mod frame;
pub mod observe;
mod operations;
pub mod queue;
mod raw;
pub mod slots;
pub mod special;
mod surface;
mod syscall;
mod texture;
mod transfer;
pub mod warp;
pub mod window;

pub use access::{AccessFn, MemOp};
pub use atomic::{AtomOp, AtomicFn};
pub use context::{BlockEnv, Cx, Env, Line, NONE, RawFault, Surroundings};
pub use copy::Copy;
pub use operations::Operations;
