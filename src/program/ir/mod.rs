//! The representation of programs: basic blocks of typed operations on virtual registers. `docs/ir.md` is its contract.
//!
//! Lowering makes it, the passes improve it, tiers compile it. It does not know where a tier keeps a register, how many
//! lanes run at once, or what computes an operation. `body` has blocks and registers, `op` the operations, `visit` the
//! registers that an operation names, `effects` what it does besides, `facts` what is known of a value, `verify` the
//! rules that hold after every pass, `show` the printed form, `shadow` what follows values that nobody has written.

pub mod body;
mod effects;
pub mod facts;
pub mod joint;
pub mod op;
pub mod shadow;
mod show;
pub mod texture;
mod verify;
mod visit;

pub use crate::isa::{Bitwise, Compute, Contractible, Linear};
pub use body::{Block, BlockId, Body, End, Inlined, RegisterInfo};
pub use effects::{Effects, Reach};
pub use op::*;
pub use shadow::{Decision, Shadow, ShadowOp};
pub use visit::Role;
