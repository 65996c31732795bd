//! Transfers between registers and tensor memory, which has a shadow of its own: they take the shadows of registers along themselves, as
//! further operands behind their own. What else an instruction names decides where it goes.

use super::Pass;
use crate::isa::joint::tcgen05::Op;
use crate::isa::lanes::Width;
use crate::program::ir::{Decision, JointOp, Reg};

/// Whether an operation brings registers what nobody may have written.
pub fn brings(op: Op) -> bool {
    matches!(op, Op::Load(_) | Op::LoadReduce(..))
}

/// The operation with shadows, behind checks of what it depends on.
pub fn followed(pass: &mut Pass<'_>, op: Op, joint: &JointOp) -> JointOp {
    let mut joint = joint.clone();
    let data = match op {
        Op::Store(transfer) => transfer.registers(),
        _ => 0,
    };
    let named = joint.src.len() - data;
    for reg in &joint.src[..named] {
        let decision = match reg.width {
            Width::Pred => Decision::Guard,
            Width::B16 | Width::B32 | Width::B64 | Width::B128 => Decision::Address,
        };
        pass.check(*reg, decision);
    }
    if data != 0 {
        let shadows: Vec<Reg> = joint.src[named..]
            .iter()
            .map(|reg| pass.shadow(*reg).unwrap_or_else(|| pass.zero(reg.width)))
            .collect();
        joint.src = joint.src.iter().copied().chain(shadows).collect();
    }
    if brings(op) {
        let shadows: Vec<_> = joint
            .dst
            .iter()
            .map(|reg| reg.and_then(|reg| pass.shadow(reg)))
            .collect();
        joint.dst = joint.dst.iter().copied().chain(shadows).collect();
    }
    joint
}
