//! Reads whose value need not be right: what a compare-and-swap is going to compare with. If somebody has written in between,
//! that one finds it, and the loop around it goes on with what it has found.

use std::collections::HashSet;

use crate::isa::Compute;
use crate::program::{AtomicOp, Function, Op, Register};
use crate::ptx::ast::Span;

/// Whether what the load at this place of a function's text reads is compared by a compare-and-swap of the function.
pub fn is_guess(function: &Function, span: Span) -> bool {
    let all = || function.body.blocks.iter().flat_map(|block| &block.insts);
    let mut guesses: HashSet<Register> = HashSet::new();
    for inst in all().filter(|inst| inst.span == span) {
        if let Op::Load { dst, .. } = &inst.op {
            guesses.extend(dst.iter().flatten().map(|reg| reg.number));
        }
    }
    // Moves from one register to another; each round finds one more at least.
    loop {
        let before = guesses.len();
        for inst in all() {
            if let Op::Compute {
                op: Compute::Move(_),
                dst,
                src,
            } = &inst.op
                && src.iter().any(|reg| guesses.contains(&reg.number))
            {
                guesses.extend(dst.iter().map(|reg| reg.number));
            }
        }
        if guesses.len() == before {
            break;
        }
    }
    all().any(|inst| match &inst.op {
        Op::Atomic {
            op: AtomicOp::Cas, b, ..
        } => b.iter().any(|reg| guesses.contains(&reg.number)),
        _ => false,
    })
}
