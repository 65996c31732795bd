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

use std::ops::Range;

use super::{Instr, What};
use crate::isa::lanes::Width;
use crate::program::passes::liveness::{Flow, each};
use crate::program::{Body, Op, Reg, Register, Role};

/// First and last pc (inclusive) at which a register's reg is taken: the stretch of code that covers all places where
/// the register is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub start: u32,
    pub end: u32,
}

/// Intervals by register; `None` for registers that code never names. `ranges` is where the blocks of the order lie.
pub fn intervals(flow: &Flow, registers: usize, code: &[Instr<Reg>], ranges: &[Range<u32>]) -> Vec<Option<Interval>> {
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
    for range in ranges {
        for pc in range.clone() {
            code[pc as usize].regs(|reg, _| extend(reg.number, pc));
        }
    }
    let numbers: Vec<u32> = (0..flow.count()).collect();
    flow.solve(&numbers, |group| {
        // Of each register, only the first and the last block at whose border it is live matter.
        let all = group.blocks.iter().filter(|&&block| !ranges[block as usize].is_empty());
        let mut register = |bit: u32, pc: u32| extend(flow.register(group.members[bit as usize]), pc);
        let mut borders = |block: u32, (seen_in, seen_out): &mut (u64, u64)| {
            let range = &ranges[block as usize];
            let (live_in, live_out) = (group.live_in[block as usize], group.live_out[block as usize]);
            each(live_in & !*seen_in, |bit| register(bit, range.start));
            each(live_out & !*seen_out, |bit| register(bit, range.end - 1));
            *seen_in |= live_in;
            *seen_out |= live_out;
        };
        let mut seen = (0, 0);
        all.clone().for_each(|&block| borders(block, &mut seen));
        let mut seen = (0, 0);
        all.rev().for_each(|&block| borders(block, &mut seen));
    });
    intervals
}

pub struct Allocation {
    /// Byte offset of each register; `None` where it is never named.
    pub offsets: Vec<Option<u32>>,
    /// Bytes of the window.
    pub window: u32,
}

/// `pinned`: set before the code runs and kept to its end.
pub fn allocate(body: &Body, code: &[Instr<Reg>], intervals: &[Option<Interval>], pinned: &[bool]) -> Allocation {
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
    code: &[Instr<Reg>],
    intervals: &[Option<Interval>],
    pinned: &[bool],
    given_away: &[bool],
    register: Register,
    interval: Interval,
) -> Option<Register> {
    let instr = &code[interval.start as usize];
    if !matches!(instr.what, What::Op(Op::Compute { .. })) {
        return None;
    }
    let width = body.registers[register as usize].width;
    let mut writes = false;
    let mut found = None;
    instr.regs(|slot, role| {
        let source = slot.number;
        writes |= role == Role::Def && source == register;
        if role == Role::Use
            && found.is_none()
            && source != register
            && body.registers[source as usize].width == width
            && !pinned[source as usize]
            && !given_away[source as usize]
            // The guard is read apart from the operands, perhaps after lanes were written.
            && instr.guard.is_none_or(|g| g.reg.number != source)
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

/// Liveness once more, instruction by instruction and without intervals: no two registers that are live at the same
/// place may share bytes.
#[cfg(debug_assertions)]
pub fn verify(body: &Body, code: &[Instr<Reg>], ranges: &[Range<u32>], pinned: &[bool], offsets: &[Option<u32>]) {
    use std::collections::BTreeSet;
    let starts: Vec<u32> = ranges.iter().map(|range| range.start).collect();
    let count = code.len();
    let mut successors: Vec<Vec<u32>> = Vec::with_capacity(count);
    for (pc, instr) in code.iter().enumerate() {
        let mut next: Vec<u32> = match &instr.what {
            What::Branch { target, .. } => vec![starts[*target as usize]],
            What::BranchIndexed { targets, .. } => targets.iter().map(|&t| starts[t as usize]).collect(),
            What::Op(_) => Vec::new(),
        };
        let leaves = matches!(instr.what, What::Branch { .. } | What::BranchIndexed { .. }) || instr.what.ends_path();
        if !leaves || instr.guard.is_some() {
            next.push(pc as u32 + 1);
        }
        successors.push(next);
    }
    let mut live_in: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); count];
    loop {
        let mut changed = false;
        for pc in (0..count).rev() {
            let mut live: BTreeSet<u32> = BTreeSet::new();
            for &next in &successors[pc] {
                live.extend(&live_in[next as usize]);
            }
            let instr = &code[pc];
            instr.regs(|slot, role| {
                if role == Role::Def && instr.guard.is_none() {
                    live.remove(&slot.number);
                }
            });
            instr.regs(|slot, role| {
                if role == Role::Use || instr.guard.is_some() {
                    live.insert(slot.number);
                }
            });
            changed |= live != live_in[pc];
            live_in[pc] = live;
        }
        if !changed {
            break;
        }
    }
    let always: BTreeSet<u32> = (0..pinned.len() as u32).filter(|&r| pinned[r as usize]).collect();
    for pc in 0..count {
        let mut after = always.clone();
        for &next in &successors[pc] {
            after.extend(&live_in[next as usize]);
        }
        code[pc].regs(|slot, role| {
            if role == Role::Def {
                after.insert(slot.number);
            }
        });
        for set in [&after, &live_in[pc]] {
            let mut places: Vec<(u32, u32, u32)> = set
                .iter()
                .map(|&r| {
                    let start = offsets[r as usize].expect("a live register has a slot");
                    (start, start + body.registers[r as usize].width.warp_bytes(), r)
                })
                .collect();
            places.sort_unstable();
            for pair in places.windows(2) {
                assert!(
                    pair[0].1 <= pair[1].0,
                    "{pc}: registers {} and {} share a slot",
                    pair[0].2,
                    pair[1].2
                );
            }
        }
    }
}
