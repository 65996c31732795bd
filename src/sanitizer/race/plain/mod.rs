//! Kernels whose threads meet only as whole blocks, by barriers, and as whole warps. Most are of this kind, and for them order is a
//! matter of numbers: what a block did before its last barrier lies before all that its threads do now, what other blocks did
//! never does. So words need no sets of who touched them, and threads no clocks.
//!
//! What memory knows is kept in tables ([`table`], [`words`], [`cell`]): that of shared memory with its block ([`block`]), where it is
//! forgotten at each barrier, that of other memory by pages ([`shadow`]). [`look`] compares who comes to it, in [`runs`] of threads ([`reads`] may wait for that),
//! and [`watch`] is what the detector does with what it is told.

mod block;
mod cell;
mod look;
mod reads;
mod runs;
mod shadow;
mod table;
mod watch;
mod words;

use std::collections::HashSet;

use crate::isa::joint::Joint;
use crate::program::{BarrierOp, Body, Op, Ordering, Syscall, Value};
use crate::simt::Launch;

use super::ledger::Reach;

pub use block::Block;
pub use watch::Plain;

/// Whether the threads of a launch meet in no other way.
pub fn is_plain(launch: &Launch) -> bool {
    launch.cluster.is_none() && !launch.cooperative && of_all(launch, 0, op_is_plain)
}

/// Whether all strong accesses of a launch reach the whole device.
pub fn is_wide(launch: &Launch) -> bool {
    of_all(launch, 1, |_, op| match op {
        Op::Load { ordering, scope, .. } | Op::Store { ordering, scope, .. } => {
            *ordering == Ordering::Weak || Reach::of(*scope) == Reach::Device
        }
        Op::Atomic { scope, .. } => Reach::of(Some(*scope)) == Reach::Device,
        // Some of these have scopes of their own, as a tile's accesses have.
        Op::Joint(joint) => matches!(joint.what, Joint::Matrix(_)),
        Op::Syscall { which, .. } => *which != Syscall::TileBlock,
        Op::Barrier { .. }
        | Op::WarpBarrier { .. }
        | Op::Match { .. }
        | Op::Redux { .. }
        | Op::Elect { .. }
        | Op::Shuffle { .. }
        | Op::Vote { .. }
        | Op::Fence { .. }
        | Op::Compute { .. }
        | Op::Shadow(_)
        | Op::CopyAsync { .. }
        | Op::CopyGroup(_)
        | Op::Texture(_)
        | Op::Surface(_)
        | Op::HandleQuery { .. }
        | Op::IsHandle { .. }
        | Op::Activemask { .. }
        | Op::Call { .. }
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
    })
}

/// Whether all operations that a launch may come to are of a kind; the answer to this question is kept with the module.
fn of_all(launch: &Launch, question: usize, is: impl Fn(&Body, &Op) -> bool) -> bool {
    let (module, kernel) = (&launch.code.module, launch.kernel);
    launch.code.answer(kernel, question, || {
        let mut known = HashSet::new();
        let mut open = vec![kernel];
        while let Some(number) = open.pop() {
            if !known.insert(number) {
                continue;
            }
            let entry = module.functions.get(number as usize);
            let Some(Ok(function)) = entry.and_then(|entry| entry.lowered.get()) else {
                return false;
            };
            let body = &function.body;
            if function.calls_indirectly || !body.insts().all(|inst| is(body, &inst.op)) {
                return false;
            }
            open.extend(&function.callees);
        }
        true
    })
}

fn op_is_plain(body: &Body, op: &Op) -> bool {
    let constant = |value: &Value| match value {
        Value::Immediate(value) => Some(u128::from(*value)),
        Value::Register(register) => body.constant(register.number),
    };
    let is_whole = |members: &Value| constant(members) == Some(u32::MAX.into());
    let is_unordered = |ordering: &Ordering| match ordering {
        Ordering::Weak | Ordering::Volatile | Ordering::Relaxed => true,
        Ordering::Acquire | Ordering::Release | Ordering::AcqRel | Ordering::Sc => false,
    };
    match op {
        Op::Barrier { op, id, threads, .. } => *op != BarrierOp::Arrive && threads.is_none() && constant(id).is_some(),
        Op::WarpBarrier { members }
        | Op::Match { members, .. }
        | Op::Redux { members, .. }
        | Op::Elect { members, .. } => is_whole(members),
        Op::Shuffle { members, .. } | Op::Vote { members, .. } => members.as_ref().is_none_or(is_whole),
        Op::Fence { .. } => false,
        // What a strong read finds lies before whatever follows it, which a word without a set cannot tell.
        Op::Load { ordering, .. } => *ordering == Ordering::Weak,
        Op::Store { ordering, .. } | Op::Atomic { ordering, .. } => is_unordered(ordering),
        // A tile's accesses may be of any strength.
        Op::Syscall { which, .. } => *which != Syscall::TileBlock,
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
