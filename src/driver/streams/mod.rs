//! Streams and events: the order in which work is done.
//!
//! ```text
//! stream.rs            queues with CUDA's order       pump.rs    the threads that run them
//! event.rs             points in them                 stream/standstill.rs  a moment in which none of them runs
//! memory_operation.rs  words that they write or wait for
//! ```

pub mod event;
pub(super) mod memory_operation;
pub(super) mod pump;
pub mod stream;
