//! A register that a block writes several times is several registers: each value that does not outlive the block gets
//! one of its own. People and simple compilers reuse names; the passes behind this one look at registers written once.

use crate::program::ir::{BlockId, Body, Register, Role};

/// Renames in place.
pub fn run(body: &mut Body, order: &[BlockId]) {
    let mut total = vec![0u32; body.registers.len()];
    for &block in order {
        for inst in &body.blocks[block as usize].insts {
            inst.regs(|reg, role| {
                if role == Role::Def {
                    total[reg.number as usize] += 1;
                }
            });
        }
    }
    // Unguarded writes in the block at hand that are still to come, by register.
    let mut ahead = vec![0u32; total.len()];
    // What a register is called now, if not by its own name.
    let mut name: Vec<Option<Register>> = vec![None; total.len()];
    for &block in order {
        let mut insts = std::mem::take(&mut body.blocks[block as usize].insts);
        let mut several = false;
        for inst in insts.iter().filter(|inst| inst.guard.is_none()) {
            inst.regs(|reg, role| {
                if role == Role::Def && total[reg.number as usize] > 1 {
                    ahead[reg.number as usize] += 1;
                    several |= ahead[reg.number as usize] > 1;
                }
            });
        }
        if several {
            for inst in &mut insts {
                let guarded = inst.guard.is_some();
                inst.regs_mut(|reg, role| {
                    let register = reg.number as usize;
                    if role == Role::Def && !guarded && total[register] > 1 {
                        ahead[register] -= 1;
                        // The last value may be read in other blocks.
                        name[register] = (ahead[register] > 0).then(|| body.register(reg.width));
                    }
                    reg.number = name[register].unwrap_or(reg.number);
                });
            }
        } else {
            for inst in insts.iter().filter(|inst| inst.guard.is_none()) {
                inst.regs(|reg, _| ahead[reg.number as usize] = 0);
            }
        }
        body.blocks[block as usize].insts = insts;
    }
}
