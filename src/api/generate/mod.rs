//! The generators, for the tests: the build script is what runs them.
#![allow(dead_code, reason = "the build script and the tests each use a part of it")]

pub mod header;
pub mod table;
pub mod wrappers;

mod tests;
