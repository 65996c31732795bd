//! Copies that need not be made: readers of the copy read what was copied. Safe on any program, in single-assignment form
//! or not: a register written more than once is left alone.
//!
//! Leaves the copies themselves, without readers, to the removal of dead code.

use super::definitions::Definition;
use super::dominators::Dominators;
use crate::program::ir::{BlockId, Body, Register, Role};

/// Reads of `d` become reads of `s` where `d` is written by one unguarded `mov d, s` only and `s` is constant, or is
/// itself written once, before the copy on every path, and the copy comes before every read of `d`.
pub fn run(body: &mut Body, order: &[BlockId], definitions: &[Definition]) {
    let mut source: Vec<Option<Register>> = vec![None; body.registers.len()];
    let mut unsure = Vec::new();
    for &block in order {
        for (index, inst) in body.blocks[block as usize].insts.iter().enumerate() {
            let Some((d, s)) = inst.copied() else { continue };
            if definitions[d as usize] != Definition::One(block, index as u32) {
                continue;
            }
            if body.registers[s as usize].initial.is_some() {
                source[d as usize] = Some(s);
            } else if let Definition::One(..) = definitions[s as usize] {
                source[d as usize] = Some(s);
                unsure.push(d);
            }
        }
    }
    if !unsure.is_empty() {
        let dominators = Dominators::of(body);
        let before = |definition: Definition, block: BlockId, index: u32| match definition {
            Definition::One(b, i) => (b == block && i < index) || (b != block && dominators.dominates(b, block)),
            Definition::None | Definition::Many => false,
        };
        let mut checked = vec![false; body.registers.len()];
        for &d in &unsure {
            checked[d as usize] = true;
            let (Definition::One(block, index), Some(s)) = (definitions[d as usize], source[d as usize]) else {
                continue;
            };
            if !before(definitions[s as usize], block, index) {
                source[d as usize] = None;
            }
        }
        for &block in order {
            let b = &body.blocks[block as usize];
            for (index, inst) in b.insts.iter().enumerate() {
                inst.regs(|reg, role| {
                    let d = reg.number as usize;
                    if role == Role::Use && checked[d] && !before(definitions[d], block, index as u32) {
                        source[d] = None;
                    }
                });
            }
            if let Some(d) = b.end.register().map(|r| r as usize)
                && checked[d]
                && !before(definitions[d], block, u32::MAX)
            {
                source[d] = None;
            }
        }
    }
    // Chains: a copy of a copy. Each register on a chain learns its end, so that no chain is walked twice; none is a
    // circle, for a source is written before its copy.
    let mut chain = Vec::new();
    for register in 0..source.len() {
        let mut last = register;
        while let Some(next) = source[last] {
            chain.push(last);
            last = next as usize;
            if chain.len() > source.len() {
                break;
            }
        }
        for on in chain.drain(..).filter(|&on| on != last) {
            source[on] = Some(last as u32);
        }
    }
    for &block in order {
        let b = &mut body.blocks[block as usize];
        for inst in &mut b.insts {
            inst.regs_mut(|reg, role| {
                if role == Role::Use
                    && let Some(s) = source[reg.number as usize]
                {
                    reg.number = s;
                }
            });
        }
        if let Some(register) = b.end.register_mut()
            && let Some(s) = source[*register as usize]
        {
            *register = s;
        }
    }
}
