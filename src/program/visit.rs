//! Every slot that an instruction names, in one place: what liveness, renaming, checking and printing walk over. A new
//! [`Kind`] is a compile error here and nowhere needs a second list.

use super::instr::*;
use crate::isa::lanes::Width;

/// How an instruction touches a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Use,
    Def,
}

impl Instr {
    /// Calls `f` with the offset, width and role of every slot, uses first; `f` may replace the offset.
    pub fn slots_mut(&mut self, f: &mut dyn FnMut(&mut u32, Width, Role)) {
        if let Some(guard) = &mut self.guard {
            f(&mut guard.slot.offset, Width::Pred, Role::Use);
        }
        self.kind.slots_mut(f);
    }

    /// Calls `f` with every slot and its role, uses first.
    pub fn slots(&self, mut f: impl FnMut(Slot, Role)) {
        let mut copy = self.clone();
        copy.slots_mut(&mut |offset, width, role| f(Slot { offset: *offset, width }, role));
    }
}

impl Kind {
    fn slots_mut(&mut self, f: &mut dyn FnMut(&mut u32, Width, Role)) {
        use Role::{Def, Use};
        let one = |slot: &mut Slot, role: Role, f: &mut dyn FnMut(&mut u32, Width, Role)| {
            f(&mut slot.offset, slot.width, role);
        };
        let value = |value: &mut Value, f: &mut dyn FnMut(&mut u32, Width, Role)| {
            if let Value::Slot(slot) = value {
                f(&mut slot.offset, slot.width, Use);
            }
        };
        let address = |address: &mut Address, f: &mut dyn FnMut(&mut u32, Width, Role)| {
            if let Some(slot) = &mut address.register {
                f(&mut slot.offset, slot.width, Use);
            }
        };
        match self {
            Kind::Lane { operands, dst, src, .. } => {
                for (offset, width) in operands.src.iter_mut().zip(src.iter()) {
                    f(offset, *width, Use);
                }
                for (offset, width) in operands.dst.iter_mut().zip(dst.iter()) {
                    f(offset, *width, Def);
                }
            }
            Kind::Load { address: a, dst, .. } => {
                address(a, f);
                for slot in dst.iter_mut().flatten() {
                    one(slot, Def, f);
                }
            }
            Kind::Store { address: a, src, .. } => {
                address(a, f);
                for slot in src.iter_mut() {
                    one(slot, Use, f);
                }
            }
            Kind::Atomic {
                address: a, dst, b, c, ..
            } => {
                address(a, f);
                for slot in b.iter_mut().chain(c) {
                    one(slot, Use, f);
                }
                for slot in dst.iter_mut().flatten() {
                    one(slot, Def, f);
                }
            }
            Kind::BranchIndexed { index, .. } => one(index, Use, f),
            Kind::Call { callee, .. } => match callee {
                Callee::Direct(_) => {}
                Callee::Indirect { address, .. } => one(address, Use, f),
            },
            Kind::Barrier {
                id, threads, dst, pred, ..
            } => {
                value(id, f);
                if let Some(threads) = threads {
                    value(threads, f);
                }
                if let Some((slot, _)) = pred {
                    one(slot, Use, f);
                }
                if let Some(slot) = dst {
                    one(slot, Def, f);
                }
            }
            Kind::WarpBarrier { members } => value(members, f),
            Kind::Shuffle {
                dst,
                dst_pred,
                a,
                b,
                c,
                members,
                ..
            } => {
                one(a, Use, f);
                one(b, Use, f);
                one(c, Use, f);
                if let Some(members) = members {
                    value(members, f);
                }
                one(dst, Def, f);
                if let Some(slot) = dst_pred {
                    one(slot, Def, f);
                }
            }
            Kind::Vote { dst, pred, members, .. } => {
                one(&mut pred.0, Use, f);
                if let Some(members) = members {
                    value(members, f);
                }
                one(dst, Def, f);
            }
            Kind::Match {
                dst,
                dst_pred,
                a,
                members,
                ..
            } => {
                one(a, Use, f);
                value(members, f);
                one(dst, Def, f);
                if let Some(slot) = dst_pred {
                    one(slot, Def, f);
                }
            }
            Kind::Redux { dst, a, members, .. } => {
                one(a, Use, f);
                value(members, f);
                one(dst, Def, f);
            }
            Kind::Elect { dst, dst_pred, members } => {
                value(members, f);
                if let Some(slot) = dst {
                    one(slot, Def, f);
                }
                one(dst_pred, Def, f);
            }
            Kind::Activemask { dst }
            | Kind::ReadSpecial { dst, .. }
            | Kind::FrameAddress { dst, .. }
            | Kind::StackSave { dst } => one(dst, Def, f),
            Kind::ConvertAddress { dst, src, .. } | Kind::IsSpace { dst, src, .. } => {
                one(src, Use, f);
                one(dst, Def, f);
            }
            Kind::Alloca { dst, size, .. } => {
                one(size, Use, f);
                one(dst, Def, f);
            }
            Kind::StackRestore { src } => one(src, Use, f),
            Kind::CopyAsync {
                dst,
                src,
                src_size,
                ignore,
                ..
            } => {
                address(dst, f);
                address(src, f);
                if let Some(slot) = src_size {
                    one(slot, Use, f);
                }
                if let Some((slot, _)) = ignore {
                    one(slot, Use, f);
                }
            }
            Kind::Texture(op) => op.slots_mut(f),
            Kind::Surface(op) => op.slots_mut(f),
            Kind::HandleQuery { handle, level, dst, .. } => {
                one(handle, Use, f);
                if let Some(slot) = level {
                    one(slot, Use, f);
                }
                one(dst, Def, f);
            }
            Kind::IsHandle { dst, src, .. } => {
                one(src, Use, f);
                one(dst, Def, f);
            }
            Kind::Branch { .. }
            | Kind::Return
            | Kind::Exit
            | Kind::Trap
            | Kind::Breakpoint
            | Kind::Fence { .. }
            | Kind::Nanosleep
            | Kind::Syscall { .. } => {}
        }
    }

    /// No effect but its destinations, and the same result whenever its operands are the same.
    pub fn is_pure(&self) -> bool {
        matches!(
            self,
            Kind::Lane { .. } | Kind::FrameAddress { .. } | Kind::ConvertAddress { .. } | Kind::IsSpace { .. }
        )
    }

    /// Nothing runs after it on this path (when it has no guard).
    pub fn ends_path(&self) -> bool {
        matches!(self, Kind::Return | Kind::Exit | Kind::Trap)
    }
}
