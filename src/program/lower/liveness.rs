//! Which registers hold a value that somebody may still read, and from where to where in the laid-out code.
//!
//! Liveness flows over the control-flow graph. Lanes that have diverged need no more than that: each lane follows some
//! path of the graph, and what another fragment writes is masked to its own lanes.

use std::ops::Range;

use super::ir::{BlockId, Body, Register};
use crate::program::instr::Instr;
use crate::program::visit::Role;

/// Registers live at the borders of blocks. Only those that are read in some block before being written there take part;
/// all others live and die inside one block.
pub struct Flow {
    /// Number of each register that takes part.
    number: Vec<u32>,
    registers: Vec<Register>,
    words: usize,
    /// By position in the order.
    live_in: Vec<u64>,
    live_out: Vec<u64>,
}

const LOCAL: u32 = u32::MAX;

impl Flow {
    pub fn of(body: &Body, order: &[BlockId]) -> Flow {
        let mut number = vec![LOCAL; body.registers.len()];
        let mut registers: Vec<Register> = Vec::new();
        let mut written_in = vec![u32::MAX; body.registers.len()];
        for (index, &block) in order.iter().enumerate() {
            let index = index as u32;
            let mut read = |register: Register, written: bool| {
                let number = &mut number[register as usize];
                if !written && *number == LOCAL {
                    *number = registers.len() as u32;
                    registers.push(register);
                }
            };
            let b = &body.blocks[block as usize];
            for node in &b.nodes {
                let guarded = node.instr.guard.is_some();
                node.instr.slots(|slot, role| {
                    let written = &mut written_in[slot.offset as usize];
                    if role == Role::Use || guarded {
                        read(slot.offset, *written == index);
                    }
                    if role == Role::Def && !guarded {
                        *written = index;
                    }
                });
            }
            if let Some(register) = b.end.register() {
                read(register, written_in[register as usize] == index);
            }
        }
        let words = registers.len().div_ceil(64);
        let mut flow = Flow {
            number,
            registers,
            words,
            live_in: vec![0; words * order.len()],
            live_out: vec![0; words * order.len()],
        };
        flow.solve(body, order);
        flow
    }

    fn solve(&mut self, body: &Body, order: &[BlockId]) {
        let (words, blocks) = (self.words, order.len());
        let mut place = vec![u32::MAX; body.blocks.len()];
        for (index, &block) in order.iter().enumerate() {
            place[block as usize] = index as u32;
        }
        let mut reads = vec![0u64; words * blocks];
        let mut writes = vec![0u64; words * blocks];
        let mut predecessors: Vec<Vec<u32>> = vec![Vec::new(); blocks];
        for (index, &block) in order.iter().enumerate() {
            let base = index * words;
            let number = &self.number;
            let at = |register: Register| match number[register as usize] {
                LOCAL => None,
                n => Some((base + n as usize / 64, 1u64 << (n % 64))),
            };
            let b = &body.blocks[block as usize];
            for node in &b.nodes {
                let guarded = node.instr.guard.is_some();
                node.instr.slots(|slot, role| {
                    let Some((word, bit)) = at(slot.offset) else { return };
                    if (role == Role::Use || guarded) && writes[word] & bit == 0 {
                        reads[word] |= bit;
                    }
                    if role == Role::Def && !guarded {
                        writes[word] |= bit;
                    }
                });
            }
            if let Some((word, bit)) = b.end.register().and_then(at)
                && writes[word] & bit == 0
            {
                reads[word] |= bit;
            }
            b.end
                .successors(|to| predecessors[place[to as usize] as usize].push(index as u32));
        }
        self.live_in.copy_from_slice(&reads);
        let mut work: Vec<u32> = (0..blocks as u32).collect();
        let mut queued = vec![true; blocks];
        while let Some(index) = work.pop() {
            queued[index as usize] = false;
            let index = index as usize;
            body.blocks[order[index] as usize].end.successors(|to| {
                let to = place[to as usize] as usize;
                for word in 0..words {
                    self.live_out[index * words + word] |= self.live_in[to * words + word];
                }
            });
            let mut changed = false;
            for word in index * words..(index + 1) * words {
                let new = reads[word] | (self.live_out[word] & !writes[word]);
                changed |= new != self.live_in[word];
                self.live_in[word] = new;
            }
            if changed {
                for &p in &predecessors[index] {
                    if !std::mem::replace(&mut queued[p as usize], true) {
                        work.push(p);
                    }
                }
            }
        }
    }

    fn members(&self, set: &[u64], index: usize, mut f: impl FnMut(Register)) {
        for word in 0..self.words {
            let mut bits = set[index * self.words + word];
            while bits != 0 {
                f(self.registers[word * 64 + bits.trailing_zeros() as usize]);
                bits &= bits - 1;
            }
        }
    }

    /// Registers live on entry to the block at this position of the order.
    pub fn live_in(&self, index: usize, f: impl FnMut(Register)) {
        self.members(&self.live_in, index, f);
    }

    /// Registers live behind its end.
    pub fn live_out(&self, index: usize, f: impl FnMut(Register)) {
        self.members(&self.live_out, index, f);
    }
}

/// First and last pc (inclusive) at which a register's slot is taken: the stretch of code that covers all places where
/// the register is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub start: u32,
    pub end: u32,
}

/// Intervals by register; `None` for registers that code never names. `ranges` is where the blocks of the order lie.
pub fn intervals(flow: &Flow, registers: usize, code: &[Instr], ranges: &[Range<u32>]) -> Vec<Option<Interval>> {
    let mut intervals: Vec<Option<Interval>> = vec![None; registers];
    let mut extend = |register: Register, pc: u32| {
        let interval = &mut intervals[register as usize];
        *interval = Some(match *interval {
            None => Interval { start: pc, end: pc },
            Some(i) => Interval {
                start: i.start.min(pc),
                end: i.end.max(pc),
            },
        });
    };
    for (index, range) in ranges.iter().enumerate() {
        if range.is_empty() {
            continue;
        }
        for pc in range.clone() {
            code[pc as usize].slots(|slot, _| extend(slot.offset, pc));
        }
        flow.live_in(index, |register| extend(register, range.start));
        flow.live_out(index, |register| extend(register, range.end - 1));
    }
    intervals
}
