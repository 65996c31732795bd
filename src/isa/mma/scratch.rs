//! Room that products need while they are computed.

use super::decode::Operand;

/// Room for decoded operands, to be used again.
#[derive(Default)]
pub struct Scratch {
    pub(super) a: Operand,
    pub(super) b: Operand,
}
