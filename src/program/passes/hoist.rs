//! Work that is the same for a whole launch: pure operations on constants move to the prologue, which is done once.

use super::definitions::Definition;
use crate::program::ir::{BlockId, Body, Op, Role};

/// Takes unguarded lane operations whose operands are constants of the launch, and whose results are written nowhere
/// else, out of the code.
pub fn run(body: &mut Body, order: &[BlockId], definitions: &[Definition]) {
    let mut constant: Vec<bool> = (0..body.registers.len() as u32)
        .map(|r| body.is_launch_constant(r))
        .collect();
    let mut prologue = Vec::new();
    for &block in order {
        let mut insts = std::mem::take(&mut body.blocks[block as usize].insts);
        insts.retain(|inst| {
            if !matches!(inst.op, Op::Compute { .. }) || inst.guard.is_some() {
                return true;
            }
            let mut fixed = true;
            inst.regs(|reg, role| {
                fixed &= match role {
                    Role::Use => constant[reg.number as usize],
                    Role::Def => matches!(definitions[reg.number as usize], Definition::One(..)),
                };
            });
            if fixed {
                inst.regs(|reg, role| {
                    if role == Role::Def {
                        constant[reg.number as usize] = true;
                        body.registers[reg.number as usize].hoisted = true;
                    }
                });
                prologue.push(inst.clone());
            }
            !fixed
        });
        body.blocks[block as usize].insts = insts;
    }
    body.prologue = prologue;
}
