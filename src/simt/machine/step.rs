//! An instruction of [`Joint`](crate::isa::Joint) as a tier hands it over, and what became of it.

use crate::isa::lanes::MAX_WARPS;
use crate::program::JointOp;

use super::context::RawFault;
use super::slots::Slot;

pub type Operands = JointOp<Slot>;

/// What an instruction came to.
pub enum Step {
    Done,
    /// Done; others go first, for what these lanes wait for may need them.
    Pass,
    /// Done for these lanes; the others stay where they are and try again when the state of the block has changed
    /// ([`super::state::State::changed`]), or when nobody else gets on.
    Wait {
        done: [u32; MAX_WARPS],
    },
    Fault(RawFault),
}
