//! Operations that are rare, or that wait for lanes of their warp: from the code's form to the machine's, whoever asks for
//! them, the interpreter's loop or compiled code.

use super::compile::Slot;
use crate::program::{Op, Shadow, Value};
use crate::simt::machine::state::State as BlockState;
use crate::simt::machine::{Copy, Cx, NONE, Operations, RawFault, shadow_match, warp, window, within};

/// The member mask that an instruction waits for; `None`: it does not wait.
pub fn members(op: &Op<Slot>) -> Option<Value<Slot>> {
    match op {
        Op::WarpBarrier { members }
        | Op::Match { members, .. }
        | Op::Redux { members, .. }
        | Op::Elect { members, .. } => Some(*members),
        Op::Shuffle { members, .. } | Op::Vote { members, .. } => *members,
        // Lanes that have exited are no members.
        Op::Shadow(op) => op.members().map(Value::Register),
        Op::Joint(joint) => joint.what.takes_whole_warps().then_some(Value::Immediate(u32::MAX)),
        Op::Compute { .. }
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::Atomic { .. }
        | Op::CopyAsync { .. }
        | Op::CopyGroup(_)
        | Op::Texture(_)
        | Op::Surface(_)
        | Op::HandleQuery { .. }
        | Op::IsHandle { .. }
        | Op::Barrier { .. }
        | Op::Fence { .. }
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
        | Op::StackRestore { .. } => None,
    }
}

/// Carries out an instruction for the lanes of `cx.mask`, all of whose partners are there.
///
/// # Safety
/// Slots of `op` lie in the running window.
pub unsafe fn execute(
    op: &Op<Slot>,
    cx: &mut Cx<'_>,
    machine: &Operations,
    state: &mut BlockState,
) -> Option<RawFault> {
    // SAFETY: all operands are slots of `op`, which lie in the running window; the operations ask for nothing else.
    unsafe {
        match op {
            Op::WarpBarrier { members } => (machine.warp_barrier)(cx, *members),
            Op::CopyAsync {
                dst,
                src,
                bytes,
                src_size,
                ignore,
            } => {
                let copy = Copy {
                    dst,
                    src,
                    bytes: *bytes,
                    src_size: *src_size,
                    ignore: *ignore,
                };
                return (machine.copy_async)(cx, &copy, state);
            }
            Op::CopyGroup(group) => return (machine.copy_group)(cx, *group, state),
            Op::Fence { ordering, scope, proxy } => (machine.fence)(cx, *ordering, *scope, *proxy),
            Op::Shuffle {
                mode,
                dst,
                dst_pred,
                a,
                b,
                c,
                members: _,
            } => warp::shuffle(cx, *mode, *dst, *dst_pred, [*a, *b, *c]),
            Op::Vote {
                mode,
                dst,
                pred,
                members,
            } => warp::vote(cx, *mode, *dst, *pred, *members),
            Op::Match {
                all,
                dst,
                dst_pred,
                a,
                members,
            } => warp::match_lanes(cx, *all, *dst, *dst_pred, *a, *members),
            Op::Redux {
                op: which,
                dst,
                a,
                members,
            } => warp::redux(cx, *which, *dst, *a, *members),
            Op::Activemask { dst } => warp::activemask(cx, *dst),
            Op::Elect { dst, dst_pred, members } => warp::elect(cx, *dst, *dst_pred, *members),
            Op::ReadSpecial { which, dst } => window::read_special(cx, *which, *dst),
            Op::FrameAddress { dst, offset } => window::frame_address(cx, *dst, *offset),
            Op::ConvertAddress {
                space,
                to_generic,
                dst,
                src,
            } => window::convert_address(cx, *space, *to_generic, *dst, *src),
            Op::IsSpace { space, dst, src } => window::is_space(cx, *space, *dst, *src),
            Op::Shadow(op) => match op.what {
                Shadow::Match { all } => shadow_match::execute(all, op, cx),
                Shadow::Load(_)
                | Shadow::Store(_)
                | Shadow::Follow(_)
                | Shadow::Also
                | Shadow::Matrix(_)
                | Shadow::Warpgroup(_)
                | Shadow::Undefine
                | Shadow::Frame(..)
                | Shadow::Check { .. } => unreachable!("handled by the loop"),
            },
            Op::Within(op) => return within::check(op, NONE, cx),
            Op::Texture(op) => return (machine.texture)(op, cx),
            Op::Surface(op) => return (machine.surface)(op, cx),
            Op::HandleQuery {
                handle,
                attribute,
                level,
                dst,
            } => return (machine.query)(cx, *handle, *attribute, *level, *dst),
            Op::IsHandle { opaque, dst, src } => return (machine.is_handle)(cx, *opaque, *dst, *src),
            Op::Compute { .. }
            | Op::Load { .. }
            | Op::Store { .. }
            | Op::Atomic { .. }
            | Op::Call { .. }
            | Op::Return
            | Op::Exit
            | Op::Trap
            | Op::Breakpoint
            | Op::Barrier { .. }
            | Op::Nanosleep
            | Op::Joint(_)
            | Op::Alloca { .. }
            | Op::StackSave { .. }
            | Op::StackRestore { .. }
            | Op::Syscall { .. } => unreachable!("handled by the loop"),
        }
    }
    None
}
