//! The C ABI: calls from programs become calls on [`driver`](crate::driver) objects, errors become `CUresult`.
//!
//! Nothing is kept here: objects live in `driver`, and what a call is to write and answer is the manual's.
//!
//! ```text
//! entry_points/*.txt   the table: every function of cuda.h, one line each
//! generate/            what build.rs makes of it: exported functions, addresses, header
//! exports.rs call.rs   the generated functions, and what they all do before and after the body
//! types/               the words of the C ABI
//! entry.rs …           the bodies, one file per chapter of the manual, named after the chapter's file in the table
//! private_tables/      the tables that NVIDIA's runtime asks for by UUID
//! ```
//!
//! To add a function: write its body, and put the body's path and what it needs into the function's line. The exported
//! symbols, `cuGetProcAddress`, the log and the header follow; `make header` copies the header.
//!
//! Bodies get checked pointers ([`call::In`], [`call::Out`]), so they hold next to no `unsafe` code.

mod array;
mod array_v1;
mod call;
mod capture;
mod checkpoint;
mod context;
mod copy;
mod copy_batch;
mod coredump;
mod device;
mod entry;
mod error;
mod event;
mod execution;
mod exports;
mod external;
#[cfg(test)]
mod generate;
mod graph;
mod graph_any_node;
mod graph_exec;
mod graph_external;
mod graph_node;
mod graph_params;
mod green_context;
mod initialization;
mod ipc;
mod jit;
mod legacy_launch;
mod library;
mod linker;
mod logical_endpoint;
mod logs;
mod memory;
mod memset;
mod module;
mod multicast;
mod occupancy;
mod peer;
mod pool;
mod primary_context;
mod private_tables;
mod profiler;
mod stream;
mod stream_memory;
mod tensor_map;
#[cfg(test)]
mod tests;
mod texture_object;
mod texture_reference;
#[allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    reason = "names are those of cuda.h"
)]
pub mod types;
mod unified;
mod unsupported;
mod user_object;
mod virtual_memory;

/// What a function of `cuda.h` does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Implemented,
    /// Answers `CUDA_ERROR_NOT_SUPPORTED`.
    Refused,
    /// Neither exported nor found by `cuGetProcAddress`.
    Missing,
}

/// A function of `cuda.h`.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// The exported symbol, with its version.
    pub symbol: &'static str,
    /// The CUDA version that introduced it: 12030 is 12.3.
    pub since: u32,
    /// The chapter of the manual.
    pub chapter: &'static str,
    pub state: State,
    /// It has a twin in which stream 0 is the calling thread's default stream.
    pub has_twin: bool,
}

/// Every function, in the order of names and versions.
pub fn entry_points() -> impl Iterator<Item = Listed> {
    exports::ENTRY_POINTS.iter().map(|entry| Listed {
        symbol: entry.symbol,
        since: entry.since,
        chapter: entry.chapter,
        state: match entry.plain {
            None => State::Missing,
            Some(_) if entry.refused => State::Refused,
            Some(_) => State::Implemented,
        },
        has_twin: entry.per_thread.is_some(),
    })
}
