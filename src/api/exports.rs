//! The exported functions and the table of their addresses, generated from `entry_points/*.txt` by `build.rs`.
//!
//! Nothing here is written by hand: `generate/wrappers.rs` writes it.

#![allow(
    non_snake_case,
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    reason = "names and signatures are those of cuda.h"
)]

use super::call::{self, DefaultStream, In, Out};
use super::types::*;
use super::*;

/// One line of the table at run time.
pub(super) struct EntryPoint {
    pub name: &'static str,
    /// The name with its version.
    pub symbol: &'static str,
    /// The chapter of the manual: the file of the table.
    pub chapter: &'static str,
    /// Answers `CUDA_ERROR_NOT_SUPPORTED`.
    pub refused: bool,
    pub since: u32,
    /// `None`: not implemented.
    pub plain: Option<Address>,
    /// The variant in which stream 0 is the per-thread default stream, for functions that have one.
    pub per_thread: Option<Address>,
}

/// The address of an exported function.
#[derive(Clone, Copy)]
pub(super) struct Address(pub *const c_void);

// SAFETY: the address of code is the same for all threads.
unsafe impl Sync for Address {}

include!(concat!(env!("OUT_DIR"), "/entry_points.rs"));
