//! Kernels whose threads meet only as whole blocks, by barriers, and as whole warps. Most are of this kind, and for them order is a
//! matter of numbers: what a block did before its last barrier lies before all that its threads do now, what other blocks did
//! never does. So words need no sets of who touched them, and threads no clocks.
//!
//! What memory knows is kept by rows of it ([`shadow`]), that of shared memory with its block ([`block`]), where it is forgotten at each
//! barrier; [`look`] compares, and [`watch`] is what the detector does with what it is told.

mod block;
mod look;
mod shadow;
mod watch;

use std::collections::HashSet;

use crate::isa::joint::Joint;
use crate::program::{BarrierOp, Function, Op, Ordering, Value};
use crate::simt::Launch;

pub use block::Block;
pub use watch::Plain;

/// Whether the threads of a launch meet in no other way.
pub fn is_plain(launch: &Launch) -> bool {
    if launch.cluster.is_some() || launch.cooperative {
        return false;
    }
    let module = &launch.code.module;
    let mut known = HashSet::new();
    let mut open = vec![launch.kernel];
    while let Some(number) = open.pop() {
        if !known.insert(number) {
            continue;
        }
        let Some(Ok(function)) = module
            .functions
            .get(number as usize)
            .and_then(|entry| entry.lowered.get())
        else {
            return false;
        };
        if function.calls_indirectly || !function_is_plain(function) {
            return false;
        }
        open.extend(&function.callees);
    }
    true
}

fn function_is_plain(function: &Function) -> bool {
    let body = &function.body;
    body.blocks
        .iter()
        .flat_map(|block| &block.insts)
        .all(|inst| op_is_plain(&inst.op))
}

fn op_is_plain<R>(op: &Op<R>) -> bool {
    let is_whole = |members: &Value<R>| matches!(members, Value::Immediate(u32::MAX));
    let is_unordered = |ordering: &Ordering| match ordering {
        Ordering::Weak | Ordering::Volatile | Ordering::Relaxed => true,
        Ordering::Acquire | Ordering::Release | Ordering::AcqRel | Ordering::Sc => false,
    };
    match op {
        Op::Barrier { op, id, threads, .. } => {
            *op != BarrierOp::Arrive && threads.is_none() && matches!(id, Value::Immediate(_))
        }
        Op::WarpBarrier { members }
        | Op::Match { members, .. }
        | Op::Redux { members, .. }
        | Op::Elect { members, .. } => is_whole(members),
        Op::Shuffle { members, .. } | Op::Vote { members, .. } => members.as_ref().is_none_or(is_whole),
        Op::Fence { .. } => false,
        // What a strong read finds lies before whatever follows it, which a word without a set cannot tell.
        Op::Load { ordering, .. } => *ordering == Ordering::Weak,
        Op::Store { ordering, .. } | Op::Atomic { ordering, .. } => is_unordered(ordering),
        Op::Joint(joint) => matches!(joint.what, Joint::Matrix(_)),
        Op::Compute { .. }
        | Op::Shadow(_)
        | Op::CopyAsync { .. }
        | Op::CopyGroup(_)
        | Op::Texture(_)
        | Op::Surface(_)
        | Op::HandleQuery { .. }
        | Op::IsHandle { .. }
        | Op::Activemask { .. }
        | Op::Call { .. }
        | Op::Syscall { .. }
        | Op::Return
        | Op::Exit
        | Op::Trap
        | Op::Breakpoint
        | Op::Nanosleep
        | Op::ReadSpecial { .. }
        | Op::FrameAddress { .. }
        | Op::ConvertAddress { .. }
        | Op::IsSpace { .. }
        | Op::Within(_)
        | Op::Alloca { .. }
        | Op::StackSave { .. }
        | Op::StackRestore { .. } => true,
    }
}
