//! Results that nobody reads: operations of which nothing else is seen go.

use crate::program::ir::{BlockId, Body, Inst, Role};

/// Removes in place, from the prologue too.
pub fn run(body: &mut Body, order: &[BlockId]) {
    let mut prologue = std::mem::take(&mut body.prologue);
    let mut uses = vec![0u32; body.registers.len()];
    for &block in order {
        let b = &body.blocks[block as usize];
        for inst in &b.insts {
            count_uses(inst, &mut uses, true);
        }
        if let Some(register) = b.end.register() {
            uses[register as usize] += 1;
        }
    }
    for inst in prologue.iter() {
        count_uses(inst, &mut uses, true);
    }
    // A few rounds, each from the end: chains of dead code mostly die in one.
    for _ in 0..8 {
        let mut removed = false;
        for &block in order.iter().rev() {
            removed |= sweep(&mut body.blocks[block as usize].insts, &mut uses);
        }
        removed |= sweep(&mut prologue, &mut uses);
        if !removed {
            break;
        }
    }
    body.prologue = prologue;
}

fn count_uses(inst: &Inst, uses: &mut [u32], up: bool) {
    inst.regs(|reg, role| {
        if role == Role::Use {
            let count = &mut uses[reg.number as usize];
            *count = if up { *count + 1 } else { count.saturating_sub(1) };
        }
    });
}

fn sweep(insts: &mut Vec<Inst>, uses: &mut [u32]) -> bool {
    let before = insts.len();
    let mut keep = vec![true; before];
    for (index, inst) in insts.iter().enumerate().rev() {
        if !inst.op.effects().is_removable() {
            continue;
        }
        let mut dead = true;
        // A copy onto itself does nothing whoever reads it.
        let idle = inst.copied().is_some_and(|(d, s)| d == s);
        inst.regs(|reg, role| dead &= role != Role::Def || uses[reg.number as usize] == 0);
        if dead || idle {
            keep[index] = false;
            count_uses(inst, uses, false);
        }
    }
    let mut index = 0;
    insts.retain(|_| {
        index += 1;
        keep[index - 1]
    });
    insts.len() != before
}
