//! What a branch asks is computed right before it: comparisons of integers, and what joins them, move behind the rest of their block. Compilers write
//! loads in between, so as not to wait for them. Who asks for a whole warp at once ([`crate::simt`]) needs the numbers that are compared, and they are
//! all it needs then: the lanes' answers are never computed.

use std::collections::HashSet;

use crate::isa::lanes::Width;
use crate::isa::{Compute, compare};
use crate::program::ir::{BlockId, Body, Inst, Op, Register, Role};

/// Moves them, in their order.
pub fn run(body: &mut Body, order: &[BlockId]) {
    for &block in order {
        let block = &mut body.blocks[block as usize];
        let Some(guard) = block.end.register() else { continue };
        let mut wanted = HashSet::from([guard]);
        // Registers of what stays behind a place: those read, and those written.
        let (mut read, mut written): (HashSet<Register>, HashSet<Register>) = Default::default();
        let mut moves = vec![false; block.insts.len()];
        for (inst, moves) in block.insts.iter().zip(&mut moves).rev() {
            let mut may = is_condition(inst);
            let mut asked = false;
            inst.regs(|reg, role| match role {
                Role::Def => {
                    asked |= wanted.contains(&reg.number);
                    may &= !read.contains(&reg.number) && !written.contains(&reg.number);
                }
                Role::Use => may &= !written.contains(&reg.number),
            });
            *moves = may && asked;
            inst.regs(|reg, role| {
                match (*moves, role) {
                    (true, Role::Def) => false,
                    (true, Role::Use) => wanted.insert(reg.number),
                    (false, Role::Def) => written.insert(reg.number),
                    (false, Role::Use) => read.insert(reg.number),
                };
            });
        }
        let insts = std::mem::take(&mut block.insts).into_iter().zip(moves);
        let (last, first): (Vec<_>, Vec<_>) = insts.partition(|(_, moves)| *moves);
        block.insts = first.into_iter().chain(last).map(|(inst, _)| inst).collect();
    }
}

/// Gives a predicate, of integers or of others.
fn is_condition(inst: &Inst) -> bool {
    let (None, Op::Compute { op, dst, src }) = (inst.guard, &inst.op) else {
        return false;
    };
    let [dst] = &dst[..] else { return false };
    let of_predicates = src.iter().all(|reg| reg.width == Width::Pred);
    dst.width == Width::Pred
        && match op {
            Compute::Compare(compare::Op::Setp { of, .. }) => of.is_integer(),
            Compute::Logic(_) => of_predicates,
            _ => false,
        }
}
