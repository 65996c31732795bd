//! What several processes share, and what others than CUDA have made.
//!
//! ```text
//! ipc.rs          memory and events by handle      interprocess.rs  an event's state that processes share
//! shared_file.rs  the files in memory behind that  external.rs, semaphore.rs  memory and semaphores by descriptor
//! ```

pub mod external;
pub(super) mod interprocess;
pub mod ipc;
pub mod semaphore;
pub(super) mod shared_file;
