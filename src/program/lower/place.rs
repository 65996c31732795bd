//! Where registers and variables of a body are.

use crate::program::ir::{Register, Space};
use crate::program::layout::Place;

/// Where a register of the tree is.
#[derive(Clone, Copy)]
pub enum Binding {
    /// The first of a vector's elements, which follow each other.
    Registers(Register),
    /// Of file scope, shared by functions (PTX 1.x): bytes at the start of the lane's window.
    Persistent(Place),
}

/// Where something is that has an address.
#[derive(Clone, Copy, Debug)]
pub enum Located {
    /// A generic address that is the same for everybody.
    Absolute { address: u64, space: Space },
    /// A shared variable, by index in the module.
    Shared(u32),
    /// In the running frame.
    Frame(Place),
    /// In the launch's parameter block.
    Param(Place),
    /// A function's address.
    Function(u64),
}
