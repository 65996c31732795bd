//! Registers → slots: offsets in the register window, for a bundle of one warp.
//!
//! The window: predicates (4 bytes each, the area rounded up to 64), then what is set before the function runs and
//! never moves, then everything else, packed by a linear scan over live intervals. Slots wider than a predicate are
//! 64-byte aligned. A destination takes over the slot of a source that dies in the same lane operation when the widths
//! agree, and overlaps nothing otherwise.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ir::{Body, Register};
use super::liveness::Interval;
use crate::isa::lanes::Width;
use crate::program::instr::{Instr, Kind};
use crate::program::visit::Role;

pub struct Allocation {
    /// Byte offset of each register; `None` where it is never named.
    pub offsets: Vec<Option<u32>>,
    /// Bytes of the window.
    pub window: u32,
}

/// `pinned`: set before the code runs and kept to its end.
pub fn allocate(body: &Body, code: &[Instr], intervals: &[Option<Interval>], pinned: &[bool]) -> Allocation {
    let mut offsets: Vec<Option<u32>> = vec![None; body.registers.len()];
    let is_pred = |register: usize| body.registers[register].width == Width::Pred;

    let mut predicates = Units::default();
    let mut others = Units::default();
    for (register, _) in pinned.iter().enumerate().filter(|(_, pinned)| **pinned) {
        let units = if is_pred(register) {
            &mut predicates
        } else {
            &mut others
        };
        offsets[register] = Some(units.take(units_of(body.registers[register].width)));
    }

    let mut starts: Vec<Register> = (0..body.registers.len() as u32)
        .filter(|&r| intervals[r as usize].is_some() && !pinned[r as usize])
        .collect();
    starts.sort_by_key(|&r| (intervals[r as usize].map(|i| i.start), r));
    let mut ends: BinaryHeap<Reverse<(u32, Register)>> = BinaryHeap::new();
    // Registers whose slot somebody took over: not theirs to free.
    let mut given_away = vec![false; body.registers.len()];
    for &register in &starts {
        let Some(interval) = intervals[register as usize] else {
            continue;
        };
        while let Some(&Reverse((end, other))) = ends.peek() {
            if end >= interval.start {
                break;
            }
            ends.pop();
            if given_away[other as usize] {
                continue;
            }
            let units = if is_pred(other as usize) {
                &mut predicates
            } else {
                &mut others
            };
            if let Some(offset) = offsets[other as usize] {
                units.free(offset, units_of(body.registers[other as usize].width));
            }
        }
        let heir = inherit(body, code, intervals, pinned, &given_away, register, interval);
        let units = if is_pred(register as usize) {
            &mut predicates
        } else {
            &mut others
        };
        offsets[register as usize] = match heir {
            Some(source) => {
                given_away[source as usize] = true;
                offsets[source as usize]
            }
            None => Some(units.take(units_of(body.registers[register as usize].width))),
        };
        ends.push(Reverse((interval.end, register)));
    }

    // Units → bytes.
    let predicate_bytes = (predicates.taken.len() as u32 * 4).next_multiple_of(64);
    for (register, offset) in offsets.iter_mut().enumerate() {
        if let Some(offset) = offset {
            *offset = if is_pred(register) {
                *offset * 4
            } else {
                predicate_bytes + *offset * 64
            };
        }
    }
    Allocation {
        offsets,
        window: (predicate_bytes + others.taken.len() as u32 * 64).max(64),
    }
}

/// A source of the lane operation that first writes `register`, if it dies there and has the same width.
fn inherit(
    body: &Body,
    code: &[Instr],
    intervals: &[Option<Interval>],
    pinned: &[bool],
    given_away: &[bool],
    register: Register,
    interval: Interval,
) -> Option<Register> {
    let instr = &code[interval.start as usize];
    if !matches!(instr.kind, Kind::Lane { .. }) {
        return None;
    }
    let width = body.registers[register as usize].width;
    let mut writes = false;
    let mut found = None;
    instr.slots(|slot, role| {
        let source = slot.offset;
        writes |= role == Role::Def && source == register;
        if role == Role::Use
            && found.is_none()
            && source != register
            && body.registers[source as usize].width == width
            && !pinned[source as usize]
            && !given_away[source as usize]
            // The guard is read apart from the operands, perhaps after lanes were written.
            && instr.guard.is_none_or(|g| g.slot.offset != source)
            && intervals[source as usize].is_some_and(|i| i.end == interval.start && i.start < interval.start)
        {
            found = Some(source);
        }
    });
    found.filter(|_| writes)
}

/// Slots are counted in units of 64 bytes, predicates in units of one.
fn units_of(width: Width) -> u32 {
    match width {
        Width::Pred => 1,
        other => other.warp_bytes() / 64,
    }
}

/// First-fit over equal units.
#[derive(Default)]
struct Units {
    taken: Vec<bool>,
    /// Nothing below is free.
    first_free: usize,
}

impl Units {
    fn take(&mut self, count: u32) -> u32 {
        let count = count as usize;
        let mut start = self.first_free;
        let mut run = 0;
        while run < count {
            if self.taken.get(start + run).copied().unwrap_or(false) {
                start += run + 1;
                run = 0;
            } else {
                run += 1;
            }
        }
        if self.taken.len() < start + count {
            self.taken.resize(start + count, false);
        }
        self.taken[start..start + count].fill(true);
        while self.taken.get(self.first_free).copied().unwrap_or(false) {
            self.first_free += 1;
        }
        start as u32
    }

    fn free(&mut self, start: u32, count: u32) {
        let start = start as usize;
        self.taken[start..start + count as usize].fill(false);
        self.first_free = self.first_free.min(start);
    }
}
