//! Accesses to the memory of all devices of a team (PTX ISA, Data Movement and Conversion Instructions: multimem).
//!
//! Each member's memory is reached, one after the other in the order of the devices' numbers, where `memory/multicast` says
//! that it is shown. What reads and reduces does not keep others from writing in between, nor do stores and reductions
//! reach all members at once: each element is atomic on each device, as the ISA says. Sums of `f32` flush subnormals in
//! memory, as `red` does, and keep them in registers, of which nothing is said.

use super::bulk;
use crate::isa::joint::multimem::{Access, Op, Reduction};
use crate::isa::lanes::WARP;
use crate::memory::multicast;
use crate::program::{AtomicOp, AtomicType, value_bytes};
use crate::simt::machine::access::{self, Lanes, MemOp};
use crate::simt::machine::atomic::{self, Element};
use crate::simt::machine::context::{Cx, RawFault};
use crate::simt::machine::observe::Direction;
use crate::simt::machine::raw::{load_whole, store_whole};
use crate::simt::machine::slots::{Slot, bits, read, write};
use crate::simt::machine::state::State;
use crate::simt::machine::step::{Operands, Step};

use std::sync::atomic::Ordering::SeqCst;

/// # Safety
/// Slots of `operands` lie in the running window.
pub(super) unsafe fn execute<const WATCHED: bool>(
    op: Op,
    operands: &Operands,
    cx: &mut Cx<'_>,
    state: &mut State,
) -> Step {
    let done = match op {
        Op::LoadReduce { reduction, access } => {
            let dst = &*operands.dst;
            each::<WATCHED>(operands, access, Direction::Read, cx, |cx, lane, members| {
                // SAFETY: the members' memory was checked, and the slots lie in the running window.
                unsafe { load_reduce(cx, (reduction, access), dst, lane, members) };
            })
        }
        Op::Store { access } => each::<WATCHED>(operands, access, Direction::Write, cx, |cx, lane, members| {
            // SAFETY: the slots lie in the running window, and `lane` is of the mask.
            let values = unsafe { gather(cx, access, &operands.src, lane) };
            for &at in members {
                // SAFETY: so many bytes at the member's address were checked, and their alignment.
                unsafe { store_whole(at, size(access), [values, 0], SeqCst) };
            }
        }),
        Op::Reduce { op, ty, access } => {
            let element = atomic::element(op, ty);
            let flushes = flushes(op, ty);
            each::<WATCHED>(operands, access, Direction::Atomic, cx, |cx, lane, members| {
                // SAFETY: the slots lie in the running window, and `lane` is of the mask.
                let values = unsafe { gather(cx, access, &operands.src, lane) }.to_le_bytes();
                for &at in members {
                    for offset in (0..size(access) as usize).step_by(element.bytes) {
                        // SAFETY: the member's memory was checked, and that it is aligned; the values are there.
                        unsafe { (element.apply)(at + offset as u64, values[offset..].as_ptr() as u64, flushes) };
                    }
                }
            })
        }
        // SAFETY: it asks for nothing else.
        Op::Copy { masked } => unsafe { bulk::to_team::<WATCHED>(masked, None, operands, cx, state) },
        Op::CopyReduce { op, ty, noftz } => {
            let reduction: (Element, bool) = (atomic::element(op, ty), flushes(op, ty) && !noftz);
            // SAFETY: it asks for nothing else.
            unsafe { bulk::to_team::<WATCHED>(false, Some(reduction), operands, cx, state) }
        }
    };
    match done {
        Ok(()) => Step::Done,
        Err(fault) => Step::Fault(fault),
    }
}

fn flushes(op: AtomicOp, ty: AtomicType) -> bool {
    op == AtomicOp::Add && ty == AtomicType::F32
}

/// Bytes of all elements: 4, 8 or 16.
fn size(access: Access) -> u64 {
    value_bytes(access.ty) * u64::from(access.elements)
}

/// Calls `f` with each lane and the addresses of its element with all members, once they are checked.
fn each<const WATCHED: bool>(
    operands: &Operands,
    access: Access,
    direction: Direction,
    cx: &mut Cx<'_>,
    mut f: impl FnMut(&Cx<'_>, usize, &[u64]),
) -> Result<(), RawFault> {
    let effects = operands.effects();
    let order = (effects.ordering, effects.scope);
    let mem = MemOp::new(&operands.addresses[0], order, Box::new([]), cx.span);
    let teams = multicast::teams();
    let bytes = size(access);
    let mut members = Vec::new();
    for w in 0..cx.mask.warps as usize {
        let active = cx.mask.lanes[w];
        if active == 0 {
            continue;
        }
        let mut at: Lanes = [0; WARP];
        // SAFETY: the register of the address is a slot of the running window: the operands' are.
        if !unsafe { access::addresses(cx, &mem, w, active, 1, direction, &mut at) } {
            return Err(cx.fault.take().expect("what is refused has a reason"));
        }
        for i in bits(active) {
            let lane = w * WARP + i;
            if !at[i].is_multiple_of(bytes) {
                return Err(RawFault::misaligned(at[i], bytes, lane));
            }
            let team = multicast::find(&teams, at[i], bytes).ok_or_else(|| RawFault::no_team(at[i], bytes, lane))?;
            members.clear();
            members.extend(team.members.iter().map(|start| start + (at[i] - team.start)));
            for &member in &members {
                access::one_of::<WATCHED>(cx, &mem, lane, (member, bytes), direction)
                    .map_err(|_| RawFault::illegal(at[i], bytes, direction != Direction::Read, lane, mem.space))?;
            }
            f(cx, lane, &members);
        }
    }
    Ok(())
}

/// The values of a lane's elements, the first lowest.
///
/// # Safety
/// The slots lie in the running window, and `lane` is one of its lanes.
unsafe fn gather(cx: &Cx<'_>, access: Access, src: &[Slot], lane: usize) -> u128 {
    let bits = 8 * value_bytes(access.ty);
    let mask = u128::MAX >> (128 - bits);
    (0..).zip(src).fold(0, |all, (index, &slot)| {
        // SAFETY: the caller promises it.
        let value = u128::from(unsafe { read(cx.regs, slot, lane) });
        all | (value & mask) << (index * bits)
    })
}

/// # Safety
/// The members' memory was checked; the slots lie in the running window, and `lane` is one of its lanes.
unsafe fn load_reduce(
    cx: &Cx<'_>,
    (reduction, access): (Reduction, Access),
    dst: &[Option<Slot>],
    lane: usize,
    members: &[u64],
) {
    let bits = 8 * value_bytes(access.ty);
    let mask = u128::MAX >> (128 - bits);
    // SAFETY: so many bytes at each member's address were checked, and their alignment.
    let read: Vec<u128> = members
        .iter()
        .map(|&at| unsafe { load_whole(at, size(access), SeqCst) }[0])
        .collect();
    let mut values = vec![0; read.len()];
    for (index, &slot) in (0..).zip(dst) {
        for (value, whole) in values.iter_mut().zip(&read) {
            *value = (whole >> (index * bits) & mask) as u64;
        }
        if let Some(slot) = slot {
            // SAFETY: the caller promises it.
            unsafe { write(cx.regs, slot, lane, reduction.apply(&values)) };
        }
    }
}
