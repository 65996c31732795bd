//! Registers → slots: offsets in the register window, for a bundle of one warp.
//!
//! The window has an area for each width: predicates (4 bytes each, the area rounded up to 64), then slots of 16, 32,
//! 64 and 128 bits. Within an area a linear scan over live intervals packs what is not set before the function runs and
//! kept. A destination takes over the slot of a source that dies in the same lane operation when the widths agree.
//!
//! Areas never mix: lanes that have left a loop keep their values in slots that lanes still in it may use for something
//! else. Masked writes keep those apart as long as a lane's bytes are the same in both uses, that is, at equal width.

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
    let area = |register: Register| body.registers[register as usize].width as usize;

    let mut areas: [Slots; WIDTHS.len()] = Default::default();
    for (register, _) in pinned.iter().enumerate().filter(|(_, pinned)| **pinned) {
        offsets[register] = Some(areas[area(register as Register)].take());
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
            if let Some(slot) = offsets[other as usize]
                && !given_away[other as usize]
            {
                areas[area(other)].free(slot);
            }
        }
        let heir = inherit(body, code, intervals, pinned, &given_away, register, interval);
        offsets[register as usize] = match heir {
            Some(source) => {
                given_away[source as usize] = true;
                offsets[source as usize]
            }
            None => Some(areas[area(register)].take()),
        };
        ends.push(Reverse((interval.end, register)));
    }

    // Slots → bytes: one area after the other.
    let mut window = 0;
    let bases = WIDTHS.map(|width| {
        let base = window;
        let bytes = areas[width as usize].count * width.warp_bytes();
        window = (window + bytes).next_multiple_of(64);
        base
    });
    for (register, offset) in offsets.iter_mut().enumerate() {
        if let Some(offset) = offset {
            let width = body.registers[register].width;
            *offset = bases[width as usize] + *offset * width.warp_bytes();
        }
    }
    let window = window.max(64);
    Allocation { offsets, window }
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

/// Widths in the order of their areas.
const WIDTHS: [Width; 5] = [Width::Pred, Width::B16, Width::B32, Width::B64, Width::B128];

/// The slots of one width; the lowest free one is taken first.
#[derive(Default)]
struct Slots {
    count: u32,
    free: BinaryHeap<Reverse<u32>>,
}

impl Slots {
    fn take(&mut self) -> u32 {
        if let Some(Reverse(slot)) = self.free.pop() {
            return slot;
        }
        self.count += 1;
        self.count - 1
    }

    fn free(&mut self, slot: u32) {
        self.free.push(Reverse(slot));
    }
}
