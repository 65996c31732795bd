//! A register that a block writes several times is several registers: each value that does not outlive the block gets
//! one of its own. People and simple compilers reuse names; the passes behind this one look at registers written once.

use super::ir::{BlockId, Body, Register};
use crate::program::visit::Role;

/// Renames in place.
pub fn run(body: &mut Body, order: &[BlockId]) {
    let mut total = vec![0u32; body.registers.len()];
    for &block in order {
        for node in &body.blocks[block as usize].nodes {
            node.instr.slots(|slot, role| {
                if role == Role::Def {
                    total[slot.offset as usize] += 1;
                }
            });
        }
    }
    // Unguarded writes in the block at hand that are still to come, by register.
    let mut ahead = vec![0u32; total.len()];
    // What a register is called now, if not by its own name.
    let mut name: Vec<Option<Register>> = vec![None; total.len()];
    for &block in order {
        let mut nodes = std::mem::take(&mut body.blocks[block as usize].nodes);
        let mut several = false;
        for node in nodes.iter().filter(|node| node.instr.guard.is_none()) {
            node.instr.slots(|slot, role| {
                if role == Role::Def && total[slot.offset as usize] > 1 {
                    ahead[slot.offset as usize] += 1;
                    several |= ahead[slot.offset as usize] > 1;
                }
            });
        }
        if several {
            for node in &mut nodes {
                let guarded = node.instr.guard.is_some();
                node.instr.slots_mut(&mut |offset, width, role| {
                    let register = *offset as usize;
                    if role == Role::Def && !guarded && total[register] > 1 {
                        ahead[register] -= 1;
                        // The last value may be read in other blocks.
                        name[register] = (ahead[register] > 0).then(|| body.register(width));
                    }
                    *offset = name[register].unwrap_or(*offset);
                });
                if node.copy.is_some() {
                    let mut named = [0; 2];
                    node.instr
                        .slots(|slot, role| named[usize::from(role == Role::Use)] = slot.offset);
                    node.copy = Some((named[0], named[1]));
                }
            }
        } else {
            for node in nodes.iter().filter(|node| node.instr.guard.is_none()) {
                node.instr.slots(|slot, _| ahead[slot.offset as usize] = 0);
            }
        }
        body.blocks[block as usize].nodes = nodes;
    }
}
