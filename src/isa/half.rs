//! `f16` and `bf16` arithmetic, alone and in pairs (PTX ISA, Half Precision Floating Point Instructions): scalar
//! functions, and from a form the kernel. Knows nothing of registers or lanes.
//!
//! Operands become `f32` or `f64`, where the operation is exact or rounded so finely that rounding again to eleven or
//! eight bits gives the right result.

use super::{Form, Lane};

pub fn add_form(_: &Form) -> Option<Lane> {
    None
}
