//! Loops that end whatever other threads do: what decides whether they go on is computed from registers alone, as a counter is. Tiers
//! take a loop for one that waits if it looks at memory that others change, and let those others run. A loop that only works on such
//! memory (`volatile` sums over an array, atomics that count) waits for nobody.
//!
//! The answer is on the safe side: a loop that is not found here is taken for one that waits, which costs time and no more.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::dominators::Dominators;
use crate::program::ir::{BlockId, Body, End, Register, Role};

/// Finds them; blocks are in the order of their layout, in which a loop's stand together.
pub fn run(body: &mut Body) {
    let mut loops = Vec::new();
    for (number, block) in body.blocks.iter().enumerate() {
        let number = number as BlockId;
        block.end.successors(|to| {
            if to <= number {
                loops.push(to..=number);
            }
        });
    }
    // Only loops that look at what others change are ever asked for.
    let mut looks = vec![0u32];
    for block in &body.blocks {
        let here = block.insts.iter().any(|inst| inst.op.effects().looks_at_others());
        looks.push(looks[looks.len() - 1] + u32::from(here));
    }
    loops.retain(|all| looks[*all.start() as usize] != looks[*all.end() as usize + 1]);
    if loops.is_empty() {
        return;
    }
    let finder = Finder {
        body,
        dominators: Dominators::of(body),
        written: written(body),
    };
    let bounded: Vec<bool> = loops.iter().map(|all| finder.is_bounded(all)).collect();
    let heads = loops.iter().map(|all| *all.start());
    // A head that several jumps lead back to: all of them have to be such loops.
    let waiting: HashSet<BlockId> = heads
        .clone()
        .zip(&bounded)
        .filter(|(_, bounded)| !**bounded)
        .map(|(head, _)| head)
        .collect();
    body.bounded = heads.filter(|head| !waiting.contains(head)).collect();
}

/// Where each register is written, in order.
fn written(body: &Body) -> Vec<Vec<(BlockId, u32)>> {
    let mut written = vec![Vec::new(); body.registers.len()];
    for (number, block) in body.blocks.iter().enumerate() {
        for (index, inst) in block.insts.iter().enumerate() {
            inst.regs(|reg, role| {
                if role == Role::Def {
                    written[reg.number as usize].push((number as BlockId, index as u32));
                }
            });
        }
    }
    written
}

struct Finder<'a> {
    body: &'a Body,
    dominators: Dominators,
    written: Vec<Vec<(BlockId, u32)>>,
}

impl Finder<'_> {
    /// Whether every way out of a loop, one of which all iterations come by, is decided by what each iteration computes anew from
    /// registers.
    fn is_bounded(&self, all: &RangeInclusive<BlockId>) -> bool {
        let latch = *all.end();
        let is_passed = |block: BlockId| self.dominators.dominates(block, latch);
        let mut decide = Vec::new();
        let mut ends = false;
        for number in all.clone() {
            let block = &self.body.blocks[number as usize];
            let leaving = block.insts.iter().filter(|inst| inst.op.effects().leaves);
            decide.extend(leaving.filter_map(|inst| inst.guard).map(|guard| guard.reg.number));
            let mut goes_out = false;
            block.end.successors(|to| goes_out |= !all.contains(&to));
            if !goes_out {
                continue;
            }
            ends |= is_passed(number) && matches!(block.end, End::Branch { .. } | End::Indexed { .. });
            decide.extend(block.end.register());
        }
        let mut seen: HashSet<Register> = decide.iter().copied().collect();
        while let Some(register) = decide.pop() {
            let written = &self.written[register as usize];
            let first = written.partition_point(|(block, _)| block < all.start());
            for &(block, index) in written[first..].iter().take_while(|(block, _)| all.contains(block)) {
                let inst = &self.body.blocks[block as usize].insts[index as usize];
                // Written in some iterations only: who knows what decides that.
                if !inst.op.effects().is_pure() || !is_passed(block) {
                    return false;
                }
                inst.regs(|reg, role| {
                    if role == Role::Use && seen.insert(reg.number) {
                        decide.push(reg.number);
                    }
                });
            }
        }
        ends
    }
}
