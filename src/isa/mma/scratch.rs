//! Room that products need while they are computed.

use super::LANES;
use super::decode::Operand;

/// Room for decoded operands, to be used again.
#[derive(Default)]
pub struct Scratch {
    pub(super) a: Operand,
    pub(super) b: Operand,
    /// Of those that have no exponents: their values, in the order of their codes.
    pub(super) numbers: [Vec<f32>; 2],
    /// Bytes of B as pairs of numbers of 16 bits, by vector.
    pub(super) pairs: Vec<[[u32; LANES]; 2]>,
}
