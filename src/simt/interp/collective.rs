//! Operations that are rare, or that wait for lanes: from the code's form to the machine's.

use crate::program::{Kind, Value};
use crate::simt::machine::{Copy, Cx, Operations, RawFault, warp, window};

/// The member mask that an instruction waits for; `None`: it does not wait.
pub fn members(kind: &Kind) -> Option<Value> {
    match kind {
        Kind::WarpBarrier { members }
        | Kind::Match { members, .. }
        | Kind::Redux { members, .. }
        | Kind::Elect { members, .. } => Some(*members),
        Kind::Shuffle { members, .. } | Kind::Vote { members, .. } => *members,
        _ => None,
    }
}

/// Carries out an instruction for the lanes of `cx.mask`, all of whose partners are there.
///
/// # Safety
/// Slots of `kind` lie in the running window.
pub unsafe fn execute(kind: &Kind, cx: &mut Cx<'_, '_>, machine: &Operations) -> Option<RawFault> {
    // SAFETY: the caller's word on slots, throughout.
    unsafe {
        match kind {
            Kind::WarpBarrier { members } => (machine.warp_barrier)(cx, *members),
            Kind::Fence { ordering, scope, proxy } => (machine.fence)(cx, *ordering, *scope, *proxy),
            Kind::Shuffle {
                mode,
                dst,
                dst_pred,
                a,
                b,
                c,
                members: _,
            } => warp::shuffle(cx, *mode, *dst, *dst_pred, [*a, *b, *c]),
            Kind::Vote {
                mode,
                dst,
                pred,
                members,
            } => warp::vote(cx, *mode, *dst, *pred, *members),
            Kind::Match {
                all,
                dst,
                dst_pred,
                a,
                members,
            } => warp::match_lanes(cx, *all, *dst, *dst_pred, *a, *members),
            Kind::Redux { op, dst, a, members } => warp::redux(cx, *op, *dst, *a, *members),
            Kind::Activemask { dst } => warp::activemask(cx, *dst),
            Kind::Elect { dst, dst_pred, members } => warp::elect(cx, *dst, *dst_pred, *members),
            Kind::ReadSpecial { which, dst } => window::read_special(cx, *which, *dst),
            Kind::FrameAddress { dst, offset } => window::frame_address(cx, *dst, *offset),
            Kind::ConvertAddress {
                space,
                to_generic,
                dst,
                src,
            } => window::convert_address(cx, *space, *to_generic, *dst, *src),
            Kind::IsSpace { space, dst, src } => window::is_space(cx, *space, *dst, *src),
            Kind::CopyAsync {
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
                return (machine.copy_async)(cx, &copy);
            }
            Kind::Lane { .. }
            | Kind::Load { .. }
            | Kind::Store { .. }
            | Kind::Atomic { .. }
            | Kind::Branch { .. }
            | Kind::BranchIndexed { .. }
            | Kind::Call { .. }
            | Kind::Return
            | Kind::Exit
            | Kind::Trap
            | Kind::Breakpoint
            | Kind::Barrier { .. }
            | Kind::Nanosleep
            | Kind::Alloca { .. }
            | Kind::StackSave { .. }
            | Kind::StackRestore { .. }
            | Kind::Texture(_)
            | Kind::Surface(_)
            | Kind::HandleQuery { .. }
            | Kind::IsHandle { .. }
            | Kind::Syscall { .. } => unreachable!("handled by the loop"),
        }
    }
    None
}
