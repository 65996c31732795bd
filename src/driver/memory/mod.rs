//! Memory of devices and of the host: what `cuMem*` does.
//!
//! ```text
//! alloc.rs            allocations, registered host memory    pool.rs       memory in stream order
//! place.rs            room for them
//! copy.rs, copies.rs  copies and sets, and the calls         batch.rs      many copies at once
//! pointer.rs          what is known of an address            managed.rs    what is said of managed memory
//! virtual_memory.rs   addresses and memory apart             multicast.rs  memory of several devices
//! endpoint.rs         logical endpoints                  binding.rs    what is bound to both
//! decompress.rs       compressed data                    unwritten.rs  what reaches the host that nobody has written
//! ```

pub mod alloc;
pub mod batch;
mod binding;
pub mod copies;
pub mod copy;
pub mod decompress;
pub mod endpoint;
pub mod managed;
pub mod multicast;
pub(super) mod place;
pub mod pointer;
pub mod pool;
mod unwritten;
pub mod virtual_memory;
