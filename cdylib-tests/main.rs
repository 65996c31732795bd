//! Tests that load the built `libcuda.so.1` through its C ABI, as a program does.
//!
//! The tests use what the driver API manual says, in C's types, and nothing of the crate's own.
//!
//! One file per chapter of the manual (`CUDA Driver API`, "Modules"), so that one finds the tests of a function where one
//! finds the function. To call one that nobody has called yet, add its line to the table in `c.rs`. A test that leaves a
//! context unusable, needs its own environment, or looks at what is printed runs in a process of its own: `alone.rs`.

#[macro_use]
mod c;

mod alone;
mod approximations;
mod array;
mod at_exit;
mod bad_input;
mod basics;
mod batch;
mod capture;
mod checkpoint;
mod code;
mod command;
mod compiled;
mod context;
mod contraction;
mod copy;
mod coredump;
mod decompress;
mod device;
mod dynamic_parallelism;
mod error;
mod event;
mod exports;
mod external;
mod fault;
mod fidelity;
mod first_versions;
mod graph_branches;
mod graph_launches;
mod graph_leftovers;
mod graph_memory;
mod graph_params;
mod graph_types;
mod graph_world;
mod graphs;
mod green_contexts;
mod host_ranges;
mod indices;
mod ipc;
mod isolation;
mod launch;
mod library;
mod linker;
mod litmus;
mod little_memory;
mod logical_endpoint;
mod logs;
mod managed;
mod memory;
mod memset;
mod module;
mod multicast;
mod occupancy;
mod panics;
mod peer;
mod pointer;
mod pool;
mod pool_sharing;
mod recapture;
mod seeds;
mod semaphore;
mod start;
mod stream_order;
mod streams;
mod tensor_map;
mod texture_object;
mod texture_reference;
mod tile_ir;
mod time_limits;
mod versions;
mod virtual_memory;
