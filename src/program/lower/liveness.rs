//! From where to where in the laid-out code each register holds a value that somebody may still read.
//!
//! Liveness flows over the control-flow graph; an interval is the stretch of code that covers all places where the
//! register is live. Lanes that have diverged need no more than that: each lane follows some path of the graph, and
//! what another fragment writes is masked to its own lanes.

use std::ops::Range;

use super::ir::{BlockId, Body, Register};
use crate::program::instr::Instr;
use crate::program::visit::Role;

/// First and last pc (inclusive) at which a register's slot is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub start: u32,
    pub end: u32,
}

/// Code of each block in `order`, by pc.
pub struct Laid<'a> {
    pub code: &'a [Instr],
    /// Parallel to `order`.
    pub ranges: &'a [Range<u32>],
    pub order: &'a [BlockId],
}

/// Intervals by register; `None` for registers that code never names.
pub fn intervals(body: &Body, laid: &Laid<'_>) -> Vec<Option<Interval>> {
    let mut intervals: Vec<Option<Interval>> = vec![None; body.registers.len()];
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

    // Registers live across block borders: those read in a block before being written there.
    const LOCAL: u32 = u32::MAX;
    let mut global = vec![LOCAL; body.registers.len()];
    let mut globals: Vec<Register> = Vec::new();
    let mut written_in = vec![u32::MAX; body.registers.len()];
    for (index, range) in laid.ranges.iter().enumerate() {
        for pc in range.clone() {
            let instr = &laid.code[pc as usize];
            let guarded = instr.guard.is_some();
            instr.slots(|slot, role| {
                let register = slot.offset as usize;
                extend(slot.offset, pc);
                let reads = role == Role::Use || guarded;
                if reads && written_in[register] != index as u32 && global[register] == LOCAL {
                    global[register] = globals.len() as u32;
                    globals.push(slot.offset);
                }
                if role == Role::Def && !guarded {
                    written_in[register] = index as u32;
                }
            });
        }
    }

    let words = globals.len().div_ceil(64);
    let blocks = laid.order.len();
    let mut place = vec![u32::MAX; body.blocks.len()];
    for (index, &block) in laid.order.iter().enumerate() {
        place[block as usize] = index as u32;
    }
    let mut reads = vec![0u64; words * blocks];
    let mut writes = vec![0u64; words * blocks];
    for (index, range) in laid.ranges.iter().enumerate() {
        let base = index * words;
        for pc in range.clone() {
            let instr = &laid.code[pc as usize];
            let guarded = instr.guard.is_some();
            instr.slots(|slot, role| {
                let number = global[slot.offset as usize];
                if number == LOCAL {
                    return;
                }
                let (word, bit) = (base + number as usize / 64, 1u64 << (number % 64));
                if (role == Role::Use || guarded) && writes[word] & bit == 0 {
                    reads[word] |= bit;
                }
                if role == Role::Def && !guarded {
                    writes[word] |= bit;
                }
            });
        }
    }
    let mut live_in = reads.clone();
    let mut live_out = vec![0u64; words * blocks];
    let mut predecessors: Vec<Vec<u32>> = vec![Vec::new(); blocks];
    for (index, &block) in laid.order.iter().enumerate() {
        body.blocks[block as usize]
            .end
            .successors(|to| predecessors[place[to as usize] as usize].push(index as u32));
    }
    let mut work: Vec<u32> = (0..blocks as u32).collect();
    let mut queued = vec![true; blocks];
    while let Some(index) = work.pop() {
        queued[index as usize] = false;
        let index = index as usize;
        let block = laid.order[index];
        body.blocks[block as usize].end.successors(|to| {
            let to = place[to as usize] as usize;
            for word in 0..words {
                live_out[index * words + word] |= live_in[to * words + word];
            }
        });
        let mut changed = false;
        for word in index * words..(index + 1) * words {
            let new = reads[word] | (live_out[word] & !writes[word]);
            changed |= new != live_in[word];
            live_in[word] = new;
        }
        if changed {
            for &p in &predecessors[index] {
                if !std::mem::replace(&mut queued[p as usize], true) {
                    work.push(p);
                }
            }
        }
    }
    for (index, range) in laid.ranges.iter().enumerate() {
        if range.is_empty() {
            continue;
        }
        for word in 0..words {
            let mut bits = live_in[index * words + word];
            while bits != 0 {
                extend(globals[word * 64 + bits.trailing_zeros() as usize], range.start);
                bits &= bits - 1;
            }
            let mut bits = live_out[index * words + word];
            while bits != 0 {
                extend(globals[word * 64 + bits.trailing_zeros() as usize], range.end - 1);
                bits &= bits - 1;
            }
        }
    }
    intervals
}
