//! What concerns the process as a whole, and its threads.
//!
//! ```text
//! checkpoint.rs  calls that wait while the process is locked     coredump.rs  dumps after faults
//! per_thread.rs  what outlives a thread's storage                stage.rs     whether calls may go ahead
//! fidelity.rs    how exact what ran was, as a table at the end
//! summary.rs     what ran and what it took, likewise           tally.rs       what the summary counts
//! check.rs       what is found wrong, where it is looked for
//! progress.rs    how far a long kernel is, as a line on the terminal
//! record.rs      what other processes see of this one
//! room.rs        whether there is memory to work with
//! waits.rs       who waits for what, where deadlocks are looked for    watchdog.rs  that nobody gets on
//! ```

pub(super) mod check;
pub mod checkpoint;
pub mod coredump;
pub(super) mod fidelity;
pub(super) mod per_thread;
pub(super) mod progress;
pub mod record;
pub(super) mod room;
pub(super) mod stage;
pub(super) mod summary;
pub mod tally;
pub(super) mod waits;
pub(super) mod watchdog;
