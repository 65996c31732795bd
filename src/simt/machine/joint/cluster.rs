//! What blocks of a cluster do together (PTX ISA, mapa, getctarank, barrier.cluster, clusterlaunchcontrol).

use crate::isa::joint::cluster::{Axis, Kind, Op};
use crate::isa::lanes::WARP;
use crate::program::{Proxy, Space};
use crate::simt::cause::Cause;
use crate::simt::machine::asynchronous::{Completion, Operation, Owner, Work};
use crate::simt::machine::context::{Cx, Env, RawFault};
use crate::simt::machine::mbarrier::Report;
use crate::simt::machine::observe::Direction;
use crate::simt::machine::slots::{Slot, bits, lanes, read, read_wide, write};
use crate::simt::machine::state::State;
use crate::simt::machine::{access, peers, window};

use super::bulk;
use crate::simt::machine::step::{Operands, Step};

/// # Safety
/// Slots of `operands` lie in the running window.
pub(super) unsafe fn execute<const WATCHED: bool>(
    op: Op,
    operands: &Operands,
    cx: &mut Cx<'_>,
    state: &mut State,
) -> Step {
    match op {
        Op::Arrive { relaxed, aligned: _ } => match state.cluster.arrive::<WATCHED>(cx, relaxed) {
            Ok(()) => Step::Done,
            Err(fault) => Step::Fault(fault),
        },
        Op::Wait { aligned: _ } => {
            let done = state.cluster.wait::<WATCHED>(cx);
            match done == cx.mask.lanes {
                true => Step::Done,
                false => Step::Wait { done },
            }
        }
        // SAFETY: the slots are those of the operands, which the caller vouches for.
        Op::Map(kind) => unsafe {
            let (address, rank, dst) = (operands.src[0], operands.src[1], operands.dst[0]);
            each(cx, dst, |lane| {
                map(
                    cx.block,
                    kind,
                    read(cx.regs, address, lane),
                    read(cx.regs, rank, lane) as u32,
                )
            })
        },
        // SAFETY: the slots are those of the operands, which the caller vouches for.
        Op::Rank(kind) => unsafe {
            each(cx, operands.dst[0], |lane| {
                let address = shared_address(cx.block, kind, read(cx.regs, operands.src[0], lane));
                peers::rank_of(address).into()
            })
        },
        // SAFETY: the slots are those of the operands, which the caller vouches for.
        Op::IsShared => unsafe {
            each(cx, operands.dst[0], |lane| {
                let generic = read(cx.regs, operands.src[0], lane);
                cx.block.shared_address(generic).is_some().into()
            })
        },
        // SAFETY: the registers of the addresses are the operands'.
        Op::TryCancel { multicast } => match unsafe { try_cancel::<WATCHED>(multicast, operands, cx, state) } {
            Ok(()) => Step::Done,
            Err(fault) => Step::Fault(fault),
        },
        // SAFETY: the slots are those of the operands, which the caller vouches for.
        Op::IsCanceled => unsafe {
            each(cx, operands.dst[0], |lane| {
                (read_wide(cx.regs, operands.src[0], lane) >> CANCELED & 1) as u64
            })
        },
        Op::FirstCtaid(axis) => {
            let first = match axis {
                Axis::X | Axis::All => 0,
                Axis::Y => 1,
                Axis::Z => 2,
            };
            for (i, &dst) in operands.dst.iter().enumerate() {
                // SAFETY: the slots are those of the operands, which the caller vouches for.
                let coordinate = |lane| unsafe { read_wide(cx.regs, operands.src[0], lane) >> (32 * (first + i)) };
                // SAFETY: the slots are those of the operands, which the caller vouches for.
                unsafe { each(cx, dst, |lane| u64::from(coordinate(lane) as u32 & !(1 << 31))) };
            }
            Step::Done
        }
    }
}

/// A response to `try_cancel`, whose layout is ours to choose: the first block's coordinates in words of 32 bits, the
/// last of which is 0, and in the last bit whether a cluster was taken. The bits of coordinates go to 2^31.
const CANCELED: u32 = 127;
const BYTES: u64 = 16;

/// A response on its way to shared memory.
struct Response {
    to: u64,
    value: u128,
}

impl Work for Response {
    fn finish(&mut self, env: &Env<'_>) -> Result<Report, Cause> {
        access::still(env, self.to, BYTES, Direction::Write)?;
        // SAFETY: the place, a multiple of 16, was checked when this began, and found to be there still.
        unsafe { (self.to as *mut u128).write(self.value) };
        Ok(Report::default())
    }
}

/// `clusterlaunchcontrol.try_cancel`: what has not started is taken now, and the response comes later; with
/// `multicast`, to the same places in all blocks of the cluster that have not ended.
///
/// # Safety
/// Slots of `operands` lie in the running window.
unsafe fn try_cancel<const WATCHED: bool>(
    multicast: bool,
    operands: &Operands,
    cx: &mut Cx<'_>,
    state: &mut State,
) -> Result<(), RawFault> {
    for w in 0..cx.mask.warps as usize {
        // SAFETY: the registers of the addresses are slots of the running window.
        let [to, barriers] = unsafe {
            [
                bulk::places(cx, &operands.addresses[0], w, Direction::Write)?,
                bulk::places(cx, &operands.addresses[1], w, Direction::Atomic)?,
            ]
        };
        for i in bits(cx.mask.lanes[w]) {
            let lane = w * WARP + i;
            if !window::is_shared(cx.block, to[i], BYTES) {
                let why = format!("a response to {:#x}, which is not in shared memory", to[i]);
                return Err(RawFault::misuse(why, lane));
            }
            bulk::check_barrier(cx, state, barriers[i], lane, false)?;
            let value = cx.block.env.cancel().map_or(0, |first| {
                let words = first.iter().rev().fold(0, |all, &word| all << 32 | u128::from(word));
                words | 1 << CANCELED
            });
            let ranks = match multicast {
                true => 0..cx.block.peers,
                false => cx.block.rank..cx.block.rank + 1,
            };
            for rank in ranks {
                let there = |at| window::in_block(cx.block, at, rank);
                if let (Some(to), Some(barrier)) = (there(to[i]), there(barriers[i])) {
                    respond::<WATCHED>(cx, state, lane, barrier, Response { to, value })?;
                }
            }
        }
    }
    Ok(())
}

fn respond<const WATCHED: bool>(
    cx: &mut Cx<'_>,
    state: &mut State,
    lane: usize,
    barrier: u64,
    response: Response,
) -> Result<(), RawFault> {
    bulk::check_barrier(cx, state, barrier, lane, false)?;
    let number = state.asynchronous.number();
    let completion = Completion::Bytes {
        barrier,
        bytes: BYTES as u32,
    };
    bulk::tell_begin::<WATCHED>(cx, number, (lane / WARP, 1 << (lane % WARP)), completion);
    cx.operation = Some(number);
    let range = (response.to, BYTES, BYTES);
    let by = (Direction::Write, Proxy::Async);
    bulk::range::<WATCHED>(cx, Space::Generic, lane, range, by)?;
    cx.operation = None;
    state.begin(Operation {
        owner: Owner::of(cx, lane),
        line: None,
        work: Box::new(response),
        completion,
        number,
    });
    Ok(())
}

/// Writes `f(lane)` for the lanes of the mask.
///
/// # Safety
/// `dst` lies in the running window.
unsafe fn each(cx: &Cx<'_>, dst: Option<Slot>, f: impl Fn(usize) -> u64) -> Step {
    if let Some(dst) = dst {
        for lane in lanes(&cx.mask.lanes) {
            // SAFETY: `dst` is a slot of the running window, and `lane` one of the mask's.
            unsafe { write(cx.regs, dst, lane, f(lane)) };
        }
    }
    Step::Done
}

/// The address of the shared space; of a generic address, however few bits of it there are.
fn shared_address(block: &Env<'_>, kind: Kind, address: u64) -> u32 {
    match kind {
        Kind::Shared => address as u32,
        Kind::Generic => address.wrapping_sub(block.cluster_shared()) as u32,
    }
}

fn map(block: &Env<'_>, kind: Kind, address: u64, rank: u32) -> u64 {
    let there = u64::from(peers::address_in(shared_address(block, kind, address), rank));
    match kind {
        Kind::Shared => there,
        Kind::Generic => block.cluster_shared().wrapping_add(there),
    }
}
