//! Whether an access stays in the object from whose address its own was made, where accesses are checked to the variable
//! (`program/passes/provenance.rs`). What misses the object and lies in nothing else is for the funnel to find.

use std::cell::Cell;

use crate::isa::Level;
use crate::isa::lanes::{WARP, Width};
use crate::memory::tensor_map::TensorMap;
use crate::memory::{AddressSpace, READ, WRITE};
use crate::program::{MadeFrom, Reached, Space, Within};
use crate::simt::cause::{Cause, Made};

use super::access::{allowed, must_be_there, warp};
use super::context::{Cx, Env, Line, NONE, RawFault};
use super::observe::Direction;
use super::peers;
use super::slots::{Slot, first_lane, lanes, read};

/// A fault, if an access of a lane is in another object than the one that its address was made from. `affine`: the register's value, if
/// it follows the lane's number, or [`NONE`].
///
/// # Safety
/// Slots of `op` lie in the running window, and the bundle has computed the value.
pub unsafe fn check(op: &Within<Slot>, affine: u32, cx: &Cx<'_>) -> Option<RawFault> {
    let block = cx.block;
    if !block.view.exact {
        return None;
    }
    let first = first_lane(&cx.mask.lanes);
    // SAFETY: the slots lie in the running window, as the caller promises, and the lane is one of the mask's.
    let base = |slot: Slot, lane: usize| unsafe { read(cx.regs, slot, lane) };
    let (start, end, made) = match op.from {
        MadeFrom::Pointer { base: slot, parameter } => {
            let pointer = base(slot, first);
            let (start, end) = holder(pointer)?;
            (start, end, Made::Pointer { parameter, pointer })
        }
        MadeFrom::Shared { base: slot, bytes } => shared(
            (base(slot, first) as u32).wrapping_sub(block.shared_start()),
            bytes,
            block,
        ),
        MadeFrom::Frame { offset, bytes } => {
            let start = u64::from(cx.frame) + u64::from(offset);
            let bytes = u64::from(bytes);
            (start, start + bytes, Made::Local { start, bytes })
        }
        MadeFrom::Parameter { offset, bytes } => {
            let (start, bytes) = (u64::from(offset), u64::from(bytes));
            (start, start + bytes, Made::Parameter { offset, bytes })
        }
        MadeFrom::Unknown => {
            let end = u64::from(cx.frame) + u64::from(cx.function.local);
            (0, end, Made::Frames)
        }
        MadeFrom::Block { base: slot, size } => {
            return first_of(cx, &|lane| {
                let (start, bytes) = (u64::from(base(slot, lane) as u32), base(size, lane));
                let made = Made::Local { start, bytes };
                // SAFETY: the slots lie in the running window, as the caller promises, and the lane is one of the mask's.
                unsafe { of_lane((op, affine), cx, lane, (start, start + bytes, made)) }
            });
        }
    };
    // SAFETY: the slots lie in the running window, and the value is there, as the caller promises; the CPU has the level.
    let all_stay = unsafe {
        match Level::current() {
            Level::Avx512 | Level::Avx2 => all_stay_avx2((op, affine), cx, start, end),
            Level::Baseline => all_stay((op, affine), cx, start, end),
        }
    };
    if all_stay {
        return None;
    }
    first_of(cx, &|lane| {
        // SAFETY: the slots lie in the running window, as the caller promises, and the lane is one of the mask's.
        unsafe { of_lane((op, affine), cx, lane, (start, end, made)) }
    })
}

/// A shared variable at this place of its block's window: start, end, and what is said of it. `None`: dynamic shared memory.
pub(super) fn shared(start: u32, bytes: Option<u32>, block: &Env<'_>) -> (u64, u64, Made) {
    let first = u64::from(start);
    let end = bytes.map_or(u64::from(block.shared_bytes), |bytes| first + u64::from(bytes));
    let made = Made::Shared {
        offset: start,
        bytes: end.saturating_sub(first),
        is_dynamic: bytes.is_none(),
    };
    (first, end, made)
}

/// The pointer from which an access's address was made, where it was made from one, and the allocation into which that points, if it
/// does: its start and end.
///
/// # Safety
/// Slots of `op` lie in the running window.
pub unsafe fn pointed(op: &Within<Slot>, cx: &Cx<'_>) -> Option<(u64, Option<(u64, u64)>)> {
    let MadeFrom::Pointer { base, .. } = op.from else {
        return None;
    };
    // SAFETY: the slot lies in the running window, as the caller promises, and the lane is one of the mask's.
    let pointer = unsafe { read(cx.regs, base, first_lane(&cx.mask.lanes)) };
    Some((pointer, holder(pointer)))
}

/// What the register holds in a lane.
///
/// # Safety
/// Slots of `op` lie in the running window, or the bundle has computed the value; the lane is one of the mask's.
unsafe fn value((op, affine): (&Within<Slot>, u32), cx: &Cx<'_>, lane: usize) -> u64 {
    if affine == NONE {
        // SAFETY: the caller promises it.
        return unsafe { read(cx.regs, op.register, lane) };
    }
    // SAFETY: `affine` points to the bundle's values, of which this is one.
    let line = unsafe { &*cx.affine.add(affine as usize) };
    let (run, lane) = (lane / cx.run, lane % cx.run);
    let value = line.base[run].wrapping_add(line.step.wrapping_mul(lane as u64));
    match op.register.width {
        Width::B32 => u64::from(value as u32),
        Width::Pred | Width::B16 | Width::B64 | Width::B128 => value,
    }
}

/// The fault of the first lane that has one, with those of its warp that have the same.
fn first_of(cx: &Cx<'_>, of_lane: &dyn Fn(usize) -> Option<RawFault>) -> Option<RawFault> {
    let instruction = |fault: &RawFault| match fault.cause {
        Cause::Stray { span, .. } => span,
        _ => None,
    };
    let mut faults = lanes(&cx.mask.lanes).filter_map(of_lane);
    let first = faults.next()?;
    let same = faults.take_while(|other| other.lane / WARP == first.lane / WARP);
    let same = same.filter(|other| instruction(other) == instruction(&first));
    let others = same.fold(0, |mask, other| mask | 1 << (other.lane % WARP));
    Some(RawFault { others, ..first })
}

/// [`all_stay`] with vectors that have 64-bit comparisons.
///
/// # Safety
/// As for that one; the CPU has AVX2.
#[target_feature(enable = "avx2")]
unsafe fn all_stay_avx2(op: (&Within<Slot>, u32), cx: &Cx<'_>, start: u64, end: u64) -> bool {
    // SAFETY: the caller promises it.
    unsafe { all_stay(op, cx, start, end) }
}

/// Whether all accesses of all lanes stay in an object, as far as that is seen quickly.
///
/// # Safety
/// Slots of `op` lie in the running window, or the bundle has computed the value.
#[inline(always)]
unsafe fn all_stay((op, affine): (&Within<Slot>, u32), cx: &Cx<'_>, start: u64, end: u64) -> bool {
    let Some((low, high)) = op.span() else { return false };
    let extent = high.wrapping_sub(low) as u64;
    let Some(room) = end.checked_sub(start).and_then(|bytes| bytes.checked_sub(extent)) else {
        return false;
    };
    // Where the register's value is the first that may be, and how much further that is for each lane.
    let (window, by_lane, short) = match (op.space, op.from) {
        (Space::Shared, _) => (u64::from(cx.block.shared_start()), 0, true),
        (Space::Local, _) => (0, 0, true),
        (Space::Param, _) | (_, MadeFrom::Pointer { .. }) => (0, 0, false),
        (_, MadeFrom::Shared { .. }) => (cx.block.shared, 0, false),
        (_, MadeFrom::Parameter { .. }) => (cx.block.param, 0, false),
        (_, MadeFrom::Frame { .. } | MadeFrom::Block { .. }) => (cx.local(0), u64::from(cx.block.local_stride), false),
        // SAFETY: the slots lie in the running window, as the caller promises.
        (_, MadeFrom::Unknown) => return unsafe { none_is_local(op, cx, low, extent) },
    };
    let least = window.wrapping_add(start).wrapping_sub(low as u64);
    if affine != NONE {
        // SAFETY: `affine` points to the bundle's values, of which this is one.
        let line = unsafe { &*cx.affine.add(affine as usize) };
        return by_lane == 0 && line_stays((op.register.width, short), cx, line, (least, room));
    }
    let mut good = true;
    for w in 0..cx.mask.warps as usize {
        let active = cx.mask.lanes[w];
        // SAFETY: the register is a slot of the running window, so its start lies in it.
        let at = unsafe { cx.regs.add(op.register.offset as usize) };
        good &= match (op.register.width, short) {
            (Width::B32, true) => {
                // SAFETY: a B32 slot holds `warps × [u32; 32]`.
                let values = unsafe { &*at.cast::<[u32; WARP]>().add(w) };
                let mut most = 0;
                for (i, value) in values[..warp()].iter().enumerate() {
                    let on = (active >> i & 1).wrapping_neg();
                    most = most.max(value.wrapping_sub(least as u32) & on);
                }
                u64::from(most) <= room
            }
            (Width::B64, _) => {
                // SAFETY: a B64 slot holds `warps × [u64; 32]`.
                let values = unsafe { &*at.cast::<[u64; WARP]>().add(w) };
                let cut = if short { u64::from(u32::MAX) } else { u64::MAX };
                let mut beyond = 0;
                for (i, value) in values[..warp()].iter().enumerate() {
                    let lane = (w * WARP + i) as u64;
                    let on = u64::from(active >> i & 1);
                    let far = value.wrapping_sub(least.wrapping_add(by_lane * lane)) & cut;
                    beyond |= u64::from(far > room) & on;
                }
                beyond == 0
            }
            (Width::Pred | Width::B16 | Width::B32 | Width::B128, _) => false,
        };
    }
    good
}

/// Whether a register that follows the lane's number holds in all lanes at least `least`, and at most `room` more. `short`: 32 bits count.
fn line_stays((width, short): (Width, bool), cx: &Cx<'_>, line: &Line, (least, room): (u64, u64)) -> bool {
    let (step, cut) = match (width, short) {
        (Width::B32, true) => (i64::from(line.step as u32 as i32), u64::from(u32::MAX)),
        (Width::B64, true) => (line.step as i64, u64::from(u32::MAX)),
        (Width::B64, false) => (line.step as i64, u64::MAX),
        (Width::Pred | Width::B16 | Width::B32 | Width::B128, _) => return false,
    };
    let stays = |first: u64, lanes: usize| {
        step.checked_mul(lanes as i64 - 1).is_some_and(|far| {
            let from = first.wrapping_add(far.min(0) as u64).wrapping_sub(least) & cut;
            from <= room && far.unsigned_abs() <= room - from
        })
    };
    let lanes = cx.mask.warps as usize * WARP;
    if cx.run > WARP {
        return stays(line.base[0], lanes);
    }
    (0..lanes / cx.run).all(|run| cx.mask.lanes[run * cx.run / WARP] == 0 || stays(line.base[run], cx.run))
}

/// Whether no lane's accesses, so many bytes from `low` behind the register's generic address on, touch the block's local memory.
///
/// # Safety
/// Slots of `op` lie in the running window.
unsafe fn none_is_local(op: &Within<Slot>, cx: &Cx<'_>, low: i64, extent: u64) -> bool {
    if op.register.width != Width::B64 {
        return false;
    }
    let first = cx.block.local.wrapping_sub(low as u64).wrapping_sub(extent);
    let bytes = cx.block.local_bytes + extent;
    let mut touches = 0;
    for w in 0..cx.mask.warps as usize {
        let active = cx.mask.lanes[w];
        // SAFETY: the register is a slot of the running window, and a B64 slot holds `warps × [u64; 32]`.
        let values = unsafe {
            let at = cx.regs.add(op.register.offset as usize);
            &*at.cast::<[u64; WARP]>().add(w)
        };
        for (i, value) in values[..warp()].iter().enumerate() {
            touches |= u64::from(value.wrapping_sub(first) < bytes) & u64::from(active >> i & 1);
        }
    }
    touches == 0
}

/// A fault, if an access of a lane is not in these bytes, and in others that it may touch.
///
/// # Safety
/// Slots of `op` lie in the running window, or the bundle has computed the value.
unsafe fn of_lane(
    (op, affine): (&Within<Slot>, u32),
    cx: &Cx<'_>,
    lane: usize,
    (start, end, made): (u64, u64, Made),
) -> Option<RawFault> {
    // SAFETY: the caller promises it of slot and value; the lane is one of the mask's.
    let register = unsafe { value((op, affine), cx, lane) };
    let block = cx.block;
    let (window, bytes) = match op.from {
        MadeFrom::Shared { .. } => (block.cluster_shared(), block.shared_bytes.into()),
        MadeFrom::Frame { .. } | MadeFrom::Block { .. } | MadeFrom::Unknown => {
            (cx.local(lane), block.local_stride.into())
        }
        MadeFrom::Parameter { .. } => (block.param, block.param_bytes.into()),
        MadeFrom::Pointer { .. } => (0, u64::MAX),
    };
    op.accesses.iter().find_map(|reached| {
        let address = register.wrapping_add(reached.offset as u64);
        let at = match op.space {
            Space::Shared => of_block(u64::from(address as u32), block),
            Space::Generic if matches!(op.from, MadeFrom::Shared { .. }) => {
                of_block(address.wrapping_sub(window), block)
            }
            Space::Local => u64::from(address as u32),
            Space::Param => address,
            Space::Generic | Space::Global | Space::Const => address.wrapping_sub(window),
        };
        let is_pointer = matches!(op.from, MadeFrom::Pointer { .. });
        let asked = match is_pointer {
            true => 1,
            false => must_be_there(address, reached.bytes.into(), reached.write),
        };
        let stays = at >= start && at < end && asked <= end - at;
        // What lies in no window of the thread's, or in no allocation, is for others to judge.
        if stays || at >= bytes || asked > bytes - at {
            return None;
        }
        let bits = if reached.write { WRITE } else { READ };
        if is_pointer && !allowed(cx, lane, address, reached.bytes.into(), bits) {
            return None;
        }
        let address = match op.space {
            Space::Local => at,
            Space::Shared => u64::from(address as u32),
            Space::Param | Space::Generic | Space::Global | Space::Const => address,
        };
        Some(stray(op, reached, (address, lane), made))
    })
}

/// How far an address of the shared space is in the window of its block, which may be another one of the cluster: there the same
/// variables lie at the same places.
fn of_block(address: u64, block: &Env<'_>) -> u64 {
    match address / peers::STRIDE < u64::from(block.peers) {
        true => address % peers::STRIDE,
        false => address,
    }
}

/// A row of a tensor lies in the allocation in which the tensor begins.
///
/// # Errors
/// It does not.
pub fn tensor(
    map: &TensorMap,
    (address, bytes): (u64, u64),
    direction: Direction,
    lane: usize,
) -> Result<(), RawFault> {
    let Some((start, end)) = holder(map.address) else {
        return Ok(());
    };
    if address >= start && address < end && bytes <= end - address {
        return Ok(());
    }
    // The first dimension with which the tensor is too large.
    let room = end - map.address;
    let mut extent = map.dims[0].saturating_mul(map.element.bits()) / 8;
    let (mut dimension, mut beyond) = (0, extent.saturating_sub(room));
    for index in 1..usize::from(map.rank) {
        let more = map.dims[index].saturating_sub(1).saturating_mul(map.strides[index - 1]);
        extent = extent.saturating_add(more);
        if beyond == 0 {
            dimension = index;
        }
        beyond = extent.saturating_sub(room);
    }
    let cause = Cause::Stray {
        address,
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        write: direction != Direction::Read,
        space: Space::Global,
        made: Made::Tensor {
            pointer: map.address,
            dimension,
            beyond,
        },
        span: None,
    };
    Err(RawFault::new(cause, lane))
}

/// The allocation into which a pointer points: its start and end. Those that programs put together of pieces are none.
pub(super) fn holder(pointer: u64) -> Option<(u64, u64)> {
    /// Of the address space's version and a pointer: the range that was found, if any.
    type Known = (u64, u64, Option<(u64, u64)>);
    const COUNT: usize = 8;
    thread_local! {
        static KNOWN: [Cell<Known>; COUNT] = const { [const { Cell::new((0, 0, None)) }; COUNT] };
    }
    let space = AddressSpace::get();
    let version = space.version();
    // Allocations start at multiples of 512 bytes.
    let place = (pointer >> 9 ^ pointer >> 15 ^ pointer >> 21) as usize % COUNT;
    KNOWN.with(|known| {
        let (seen, of, range) = known[place].get();
        if (seen, of) == (version, pointer) {
            return range;
        }
        let found = space.find(pointer).filter(|found| found.is_whole());
        let range = found.map(|found| (found.start, found.end()));
        known[place].set((version, pointer, range));
        range
    })
}

#[cold]
fn stray(op: &Within<Slot>, reached: &Reached, (address, lane): (u64, usize), made: Made) -> RawFault {
    let cause = Cause::Stray {
        address,
        bytes: reached.bytes,
        write: reached.write,
        space: op.space,
        made,
        span: Some(reached.span),
    };
    RawFault::new(cause, lane)
}
