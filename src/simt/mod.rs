//! Runs launches: a grid, its blocks (CTAs), their bundles of warps, barriers, system calls.
//!
//! ```text
//! launch.rs       what to run, and whom it asks outside    cause.rs, fault.rs   why a launch ended early, and where
//! machine/        what operations do to memory and lanes   executables.rs       a module, with what tiers made of it
//! interp/         the interpreter: runs one bundle         jit/                  code made by LLVM, for one warp
//! grid.rs         blocks over threads                      block.rs             one block: bundles, whose turn it is
//! cluster.rs      blocks of a cluster, which run together
//! line.rs         blocks that have begun, in turns         pool.rs              the process's workers
//! children.rs     what kernels have launched               deadlock.rs          who waits for whom, in words
//! schedule.rs     the order that is drawn from a seed      seed.rs              random numbers
//! listing.rs     compiled code, for people             account.rs           what has run, and how long
//! ```
//!
//! Knowledge goes down: grid, block and children know the interpreter, which knows the machine, which knows none of
//! them. What operations ask of the grid around them goes through the trait `machine::Surroundings`.

pub mod account;
mod block;
mod cause;
mod children;
mod cluster;
mod deadlock;
mod executables;
mod fault;
mod grid;
mod interp;
mod jit;
mod launch;
mod line;
mod listing;
mod machine;
mod pool;
mod schedule;
mod seed;
#[cfg(test)]
mod tests;

pub use cause::{Cause, HOST_MEMORY_GONE, Made};
pub use children::run;
pub use deadlock::Named as NamedThreads;
pub use executables::Executables;
pub use fault::{Fault, MadeOf, Place, Site, Whose};
pub use jit::{compiler, compiler_defect};
pub use launch::{Family, GraphUpdate, Launch, Runtime, Services, Shape};
pub use listing::{Listing, listing};
pub use machine::{heap_log, observe};
pub use seed::{Order, Orders, Seed, Strategy};
