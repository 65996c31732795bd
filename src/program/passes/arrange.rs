//! Blocks take the places that layout gave them: block `n` is the n-th, and unreachable ones go.

use crate::program::ir::{BlockId, Body};

/// Renumbers in place.
pub fn run(body: &mut Body, order: &[BlockId]) {
    let mut number = vec![BlockId::MAX; body.blocks.len()];
    for (place, &block) in order.iter().enumerate() {
        number[block as usize] = place as BlockId;
    }
    let mut old: Vec<_> = std::mem::take(&mut body.blocks).into_iter().map(Some).collect();
    body.blocks = order.iter().filter_map(|&block| old[block as usize].take()).collect();
    for block in &mut body.blocks {
        // What a reachable block jumps to is reachable.
        block.end.successors_mut(|to| *to = number[*to as usize]);
    }
}
