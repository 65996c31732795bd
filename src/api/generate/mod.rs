//! The generators, for the tests: the build script is what runs them.
#![allow(dead_code)]

pub mod header;
pub mod table;
pub mod wrappers;

mod tests;
