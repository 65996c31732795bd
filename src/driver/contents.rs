//! What ends with a context, in which order. Contexts are given this list, and import none of it.
//!
//! Streams first, whose work is done by then, and which record no more; events, which are points in them; code, before the
//! memory that it may name; textures before the arrays under them, and these before what they are mapped from; pools and what
//! other processes have been given last, for they count memory that the context's own allocations no longer hold.

use super::context::End;
use super::{Event, Stream, array, external, graph, ipc, module, pool, semaphore, texture};

pub(super) const CONTENTS: &[End] = &[
    Stream::forget_all_of,
    Event::forget_all_of,
    module::forget_all_of,
    |shared| graph::forget_memory_of(shared.id),
    |shared| texture::forget_all_of(shared),
    |shared| array::forget_all_of(shared),
    |shared| external::forget_all_of(shared.id),
    |shared| semaphore::forget_all_of(shared.id),
    |shared| pool::forget_all_of(shared.id),
    |shared| ipc::forget_all_of(shared),
];
