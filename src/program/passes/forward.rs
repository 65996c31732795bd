//! Values that go by way of the frame: what a block stores at a place there and loads again stays in a register, and stores that nobody reads
//! go. So arguments and results of inlined calls move, and variables of programs that were not optimised.

use super::dead;
use crate::isa::Compute;
use crate::isa::lanes::Width;
use crate::program::ir::{BlockId, Body, Inst, Op, Ordering, Reach, Register, Role, Space};
use crate::program::layout::Place;

/// What lies in a function's frame.
pub struct Places {
    /// Variables, arguments and results, which may share bytes.
    pub all: Vec<Place>,
    /// Bytes at the start that the caller reads.
    pub results: u32,
}

/// True if there may be new copies, and instructions may stand elsewhere.
pub fn run(body: &mut Body, order: &[BlockId], places: &Places) -> bool {
    let stores = |inst: &Inst| matches!(inst.op, Op::Store { .. }) && inst.op.direct_access().is_some();
    if !order
        .iter()
        .any(|&block| body.blocks[block as usize].insts.iter().any(stores))
    {
        return false;
    }
    // An address of a variable that nobody uses is none.
    dead::run(body, order);
    let taken: Vec<u32> = order
        .iter()
        .flat_map(|&block| &body.blocks[block as usize].insts)
        .filter_map(|inst| {
            let Op::FrameAddress { offset, .. } = inst.op else {
                return None;
            };
            Some(offset)
        })
        .collect();
    for &block in order {
        let insts = std::mem::take(&mut body.blocks[block as usize].insts);
        let insts = forward(body, insts, !taken.is_empty());
        body.blocks[block as usize].insts = insts;
    }
    if let Some(read) = read(body, order, places, &taken) {
        // What lies behind the frame is somebody else's, or nobody's, and the store faults.
        let end = places
            .all
            .iter()
            .map(|place| place.offset.saturating_add(place.bytes))
            .max();
        let end = end.unwrap_or(0);
        for &block in order {
            body.blocks[block as usize].insts.retain(|inst| {
                let is_weak = matches!(
                    inst.op,
                    Op::Store {
                        ordering: Ordering::Weak,
                        ..
                    }
                );
                let is_wanted = |(at, bytes): (u32, u32)| at.saturating_add(bytes) > end || read.meet(at, bytes);
                !is_weak || inst.op.direct_access().is_none_or(is_wanted)
            });
        }
    }
    true
}

/// Places that are known at a time.
const MOST_HELD: usize = 256;

/// Addresses of variables, times the variables, beyond which nobody looks which is whose.
const MOST_LOOKS: usize = 10_000_000;

/// What a register and bytes of the frame both hold.
struct Held {
    place: Place,
    register: Register,
}

fn forward(body: &Body, insts: Vec<Inst>, escapes: bool) -> Vec<Inst> {
    let mut held: Vec<Held> = Vec::new();
    let mut out = Vec::with_capacity(insts.len());
    for inst in insts {
        if let Some(moved) = loaded(body, &inst, &held) {
            for &(to, from) in &moved {
                out.push(Inst {
                    op: Op::compute(body, Compute::copy(body.registers[to as usize].width), &[to], &[from]),
                    ..inst
                });
            }
            held.retain(|held| moved.iter().all(|&(to, _)| held.register != to));
            continue;
        }
        inst.regs(|reg, role| {
            if role == Role::Def {
                held.retain(|held| held.register != reg.number);
            }
        });
        let effects = inst.op.effects();
        match (effects.writes, inst.op.direct_access()) {
            (None, _) => {}
            (Some(_), Some((offset, bytes))) => held.retain(|held| !held.place.meets(Place { offset, bytes })),
            (Some(Reach::Space(Space::Global | Space::Const | Space::Shared | Space::Param) | Reach::Texels), None) => {
            }
            (Some(Reach::Space(Space::Generic | Space::Local) | Reach::Anything), None) if escapes => held.clear(),
            (Some(Reach::Space(Space::Generic | Space::Local) | Reach::Anything), None) => {}
        }
        if let Op::Call { results, .. } | Op::Syscall { results, .. } = &inst.op {
            for result in results {
                let (offset, bytes) = (result.to, result.bytes);
                held.retain(|held| !held.place.meets(Place { offset, bytes }));
            }
        }
        if let (
            None,
            Op::Store {
                address,
                element,
                ordering: Ordering::Weak,
                src,
                ..
            },
        ) = (inst.guard, &inst.op)
            && let Some(at) = address.in_frame()
        {
            let bytes = u32::from(element.bytes);
            let whole = (0..).zip(src).filter(|(_, reg)| bytes_of(reg.width) == Some(bytes));
            held.extend(whole.map(|(index, reg)| Held {
                place: Place {
                    offset: at.saturating_add(index * bytes),
                    bytes,
                },
                register: reg.number,
            }));
            // What has been stored long ago is seldom loaded.
            held.drain(..held.len().saturating_sub(MOST_HELD));
        }
        out.push(inst);
    }
    out
}

/// The registers that hold what is loaded: all of it, and none of them is overwritten before it is read.
fn loaded(body: &Body, inst: &Inst, held: &[Held]) -> Option<Vec<(Register, Register)>> {
    let Op::Load {
        address,
        element,
        ordering: Ordering::Weak,
        dst,
        ..
    } = &inst.op
    else {
        return None;
    };
    let (at, bytes) = (address.in_frame()?, u32::from(element.bytes));
    let mut moved: Vec<(Register, Register)> = Vec::with_capacity(dst.len());
    for (index, to) in (0..).zip(dst) {
        let Some(to) = to else { continue };
        let offset = at.saturating_add(index * bytes);
        let from = held.iter().find(|held| held.place == Place { offset, bytes })?.register;
        let is_same = body.registers[from as usize].width == to.width;
        if !is_same || moved.iter().any(|&(to, _)| to == from) {
            return None;
        }
        moved.push((to.number, from));
    }
    Some(moved)
}

fn bytes_of(width: Width) -> Option<u32> {
    match width {
        Width::Pred => None,
        Width::B16 => Some(2),
        Width::B32 => Some(4),
        Width::B64 => Some(8),
        Width::B128 => Some(16),
    }
}

/// Bytes of the frame that somebody reads, as ranges that neither meet nor touch, ascending.
struct Read(Vec<(u32, u32)>);

impl Read {
    fn meet(&self, at: u32, bytes: u32) -> bool {
        let end = at.saturating_add(bytes);
        let next = self.0.partition_point(|&(_, read)| read <= at);
        self.0.get(next).is_some_and(|&(from, _)| from < end)
    }
}

/// `None`: it is not known of all that is read.
fn read(body: &Body, order: &[BlockId], places: &Places, taken: &[u32]) -> Option<Read> {
    // So many addresses of so many variables nobody writes.
    if taken.len().saturating_mul(places.all.len()) > MOST_LOOKS {
        return None;
    }
    let mut ranges = vec![(0, places.results)];
    for &offset in taken {
        let before = ranges.len();
        let holds = |place: &&Place| place.meets(Place { offset, bytes: 1 });
        ranges.extend(places.all.iter().filter(holds).map(|place| (place.offset, place.bytes)));
        if ranges.len() == before {
            return None;
        }
    }
    for inst in order.iter().flat_map(|&block| &body.blocks[block as usize].insts) {
        if let Op::Call { args, .. } | Op::Syscall { args, .. } = &inst.op {
            ranges.extend(args.iter().map(|arg| (arg.from, arg.bytes)));
            continue;
        }
        let reads = inst.op.effects().reads;
        match (reads, inst.op.direct_access()) {
            (None, _) => {}
            (Some(_), Some(range)) => ranges.push(range),
            (Some(_), None) => {}
        }
    }
    let mut ranges: Vec<(u32, u32)> = ranges
        .into_iter()
        .map(|(from, bytes)| (from, from.saturating_add(bytes)))
        .filter(|(from, to)| from < to)
        .collect();
    ranges.sort_unstable();
    let mut joined: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    Some(Read(joined))
}
