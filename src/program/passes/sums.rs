//! An `or` of two numbers that have no bit in common is their sum, and of sums more is known: whether they follow the thread's
//! number, for one. Compilers write `2 * i + 1` that way.

use super::definitions::definitions;
use super::facts;
use crate::isa::Compute;
use crate::program::ir::facts::Facts;
use crate::program::ir::{Bitwise, BlockId, Body, Inst, Op};

/// Rounds until nothing changes: what one finds may show that others have no bit in common.
const ROUNDS: usize = 4;

/// Changes those of which alignment and range say so.
pub fn run(body: &mut Body, order: &[BlockId]) {
    let is_or = |inst: &Inst| matches!(&inst.op, Op::Compute { op, .. } if op.bitwise() == Some(Bitwise::Or));
    for _ in 0..ROUNDS {
        if !body.insts().any(is_or) {
            return;
        }
        let facts = facts::sizes(body, &definitions(body, order));
        let mut changed = false;
        for inst in body.blocks.iter_mut().flat_map(|block| &mut block.insts) {
            if let Op::Compute { op, dst, src } = &mut inst.op
                && op.bitwise() == Some(Bitwise::Or)
                && let ([dst], [a, b]) = (&dst[..], &src[..])
                && let Some(sum) = Compute::sum(dst.width)
                && are_apart(&facts[a.number as usize], &facts[b.number as usize])
            {
                *op = sum;
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

/// One is less than what the other is a multiple of.
fn are_apart(a: &Facts, b: &Facts) -> bool {
    let below = |small: &Facts, large: &Facts| {
        let bits = u32::from(large.align);
        small.range.is_some_and(|(_, high)| bits >= 64 || high >> bits == 0)
    };
    below(a, b) || below(b, a)
}
