//! Loops that end whatever other threads do: what decides whether they go on is computed from registers alone, as a counter is, and nothing
//! but plain memory may end them before. Tiers
//! take a loop for one that waits if it looks at memory that others change, and let those others run. A loop that only works on such
//! memory (`volatile` sums over an array, atomics that count) waits for nobody.
//!
//! The answer is on the safe side: a loop that is not found here is taken for one that waits, which costs time and no more.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::dominators::Dominators;
use crate::program::ir::{BlockId, Body, End, Op, Register, Role};

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
    /// Whether a loop has an end that is decided by what each iteration computes anew from registers, and that all iterations come by,
    /// and no other end is decided by what others change. A list that is read without `volatile` may end it before: who waits reads
    /// what he waits for otherwise.
    fn is_bounded(&self, all: &RangeInclusive<BlockId>) -> bool {
        let latch = *all.end();
        let mut ends = false;
        for number in all.clone() {
            let block = &self.body.blocks[number as usize];
            let leaving = block.insts.iter().filter(|inst| inst.op.effects().leaves);
            let guards = leaving.filter_map(|inst| inst.guard).map(|guard| guard.reg.number);
            let mut goes_out = false;
            block.end.successors(|to| goes_out |= !all.contains(&to));
            let decides = goes_out.then(|| block.end.register()).flatten();
            if guards
                .chain(decides)
                .any(|register| self.decided(register, all) == Decided::ByOthers)
            {
                return false;
            }
            ends |= goes_out
                && self.dominators.dominates(number, latch)
                && matches!(block.end, End::Branch { .. } | End::Indexed { .. })
                && decides.is_none_or(|register| self.decided(register, all) == Decided::Anew);
        }
        ends
    }

    /// What decides on a register's value in an iteration.
    fn decided(&self, register: Register, all: &RangeInclusive<BlockId>) -> Decided {
        let mut by = Decided::Anew;
        let mut seen = HashSet::from([register]);
        let mut decide = vec![register];
        while let Some(register) = decide.pop() {
            let written = &self.written[register as usize];
            let first = written.partition_point(|(block, _)| block < all.start());
            for &(block, index) in written[first..].iter().take_while(|(block, _)| all.contains(block)) {
                let inst = &self.body.blocks[block as usize].insts[index as usize];
                let effects = inst.op.effects();
                let reads = matches!(inst.op, Op::Load { .. }) && !effects.looks_at_others();
                // Written in some iterations only: who knows what decides that.
                if !(effects.is_pure() || reads) || !self.dominators.dominates(block, *all.end()) {
                    return Decided::ByOthers;
                }
                if reads {
                    by = Decided::ByMemory;
                }
                inst.regs(|reg, role| {
                    if role == Role::Use && seen.insert(reg.number) {
                        decide.push(reg.number);
                    }
                });
            }
        }
        by
    }
}

/// By what a value is decided in a loop's iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decided {
    /// By registers: it is another one each time, or the same for good.
    Anew,
    /// By memory, read as if nobody else wrote there.
    ByMemory,
    /// By what others change, or by nobody knows what.
    ByOthers,
}
