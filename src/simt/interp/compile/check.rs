//! What all compiled code keeps to, stated once: slots inside the window and aligned, destinations that overlap
//! nothing but an equal source, constants that nobody writes, jumps inside the code, no end to fall off.

use super::{Compiled, Pc, Slot, What};
use crate::isa::lanes::Width;
use crate::program::{Op, Role};

impl Compiled {
    /// Checks what the loop relies on; says what is wrong. Debug builds run it over everything that they compile.
    ///
    /// # Errors
    /// The first thing that does not hold, with its pc.
    pub fn check(&self) -> Result<(), String> {
        let function = self;
        let code = &function.code;
        let end = |slot: Slot| slot.offset + slot.width.warp_bytes();
        let overlap = |a: Slot, b: Slot| a.offset < end(b) && b.offset < end(a);
        if !function.window.is_multiple_of(64) {
            return Err(format!("window of {} bytes", function.window));
        }
        let mut fixed: Vec<Slot> = function.initial.iter().map(|(slot, _)| *slot).collect();
        for instr in &function.prologue {
            instr.regs(|&slot, role| {
                if role == Role::Def {
                    fixed.push(slot);
                }
            });
        }
        fixed.sort_by_key(|s| s.offset);
        for pair in fixed.windows(2) {
            if overlap(pair[0], pair[1]) {
                return Err(format!("initial slots overlap: {:?} {:?}", pair[0], pair[1]));
            }
        }
        for (pc, instr) in code.iter().enumerate() {
            let mut sources = Vec::new();
            let mut targets = Vec::new();
            instr.regs(|&slot, role| {
                if role == Role::Use {
                    sources.push(slot)
                } else {
                    targets.push(slot)
                }
            });
            for &slot in sources.iter().chain(&targets) {
                let aligned = if slot.width == Width::Pred { 4 } else { 64 };
                if !slot.offset.is_multiple_of(aligned) || end(slot) > function.window {
                    return Err(format!("{pc}: slot {slot:?} in a window of {}", function.window));
                }
            }
            for (i, &target) in targets.iter().enumerate() {
                if let Some(s) = sources.iter().find(|&&s| overlap(s, target) && s != target) {
                    return Err(format!("{pc}: destination {target:?} overlaps source {s:?}"));
                }
                if targets[i + 1..].iter().any(|&t| overlap(t, target)) {
                    return Err(format!("{pc}: two destinations overlap at {target:?}"));
                }
                if fixed.iter().any(|&f| overlap(f, target)) {
                    return Err(format!("{pc}: writes what was set before the start: {target:?}"));
                }
            }
            let last = pc + 1 == code.len();
            let target_in = |t: Pc| (t as usize) < code.len();
            match &instr.what {
                What::Branch { target, .. } if !target_in(*target) => {
                    return Err(format!("{pc}: jump out of the code"));
                }
                What::BranchIndexed { targets, .. } if !targets.iter().all(|&t| target_in(t)) => {
                    return Err(format!("{pc}: jump out of the code"));
                }
                What::Branch { .. } | What::BranchIndexed { .. } | What::Op(Op::Return | Op::Exit | Op::Trap)
                    if instr.guard.is_none() => {}
                _ if last => return Err(format!("{pc}: control falls off the end")),
                _ => {}
            }
        }
        Ok(())
    }
}
