//! Where each register is written: what the passes that look at values written once ask first.

use crate::program::ir::{BlockId, Body, Role};

/// Where a register is written, if in one place only.
#[derive(Clone, Copy, PartialEq)]
pub enum Definition {
    None,
    One(BlockId, u32),
    Many,
}

/// By register.
pub fn definitions(body: &Body, order: &[BlockId]) -> Vec<Definition> {
    let mut definitions = vec![Definition::None; body.registers.len()];
    for &block in order {
        for (index, inst) in body.blocks[block as usize].insts.iter().enumerate() {
            inst.regs(|reg, role| {
                if role == Role::Def {
                    let entry = &mut definitions[reg.number as usize];
                    *entry = match *entry {
                        // A guarded write may leave the old value: not *the* value of the register.
                        Definition::None if inst.guard.is_none() => Definition::One(block, index as u32),
                        Definition::None | Definition::One(..) | Definition::Many => Definition::Many,
                    };
                }
            });
        }
    }
    definitions
}
