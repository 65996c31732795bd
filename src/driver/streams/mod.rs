//! Streams and events: the order in which work is done.
//!
//! ```text
//! stream.rs            queues with CUDA's order       pump.rs    the threads that run them
//! event.rs             points in them                 stream/standstill.rs  a moment in which none of them runs
//! memory_operation.rs  words that they write or wait for   calls.rs  what programs ask of streams
//! recording.rs         a point, and when it was reached
//! ```

mod calls;
pub mod event;
pub(super) mod memory_operation;
pub(super) mod pump;
pub(super) mod recording;
pub mod stream;
