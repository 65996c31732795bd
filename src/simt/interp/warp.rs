//! Operations in which lanes of a warp look at each other (PTX ISA: shfl, vote, match, redux, activemask, elect), and
//! the rare ones that need to know which lanes, frame or block they run in.
//!
//! A bundle is several warps: everything here works on one warp's 32 lanes at a time. Lanes of one fragment may name
//! different member masks (tiles of a warp): a lane's partners are those in its own mask that run with it.

use std::sync::atomic;

use crate::isa::lanes::{MAX_WARPS, Mask, WARP};
use crate::memory::{READ, WRITE};
use crate::program::{Address, BarrierOp, Op, Ordering, ReduxOp, ShuffleMode, Space, Value, VoteMode};
use crate::simt::interp::compile::Slot;

use super::access::{self, Lanes};
use super::calls::{lanes, read, write};
use super::code::mem_op;
use super::{Cx, RawFault};
use crate::simt::block::Tally;
use crate::simt::special::{self, Place};

/// An operand in one lane.
///
/// # Safety
/// A slot operand lies in the window at `regs`.
pub unsafe fn value(regs: *mut u8, v: Value<Slot>, lane: usize) -> u32 {
    match v {
        Value::Immediate(x) => x,
        // SAFETY: the caller's word.
        Value::Register(slot) => unsafe { read(regs, slot, lane) as u32 },
    }
}

/// A predicate of all warps, perhaps negated.
///
/// # Safety
/// `slot` is a predicate slot of the window at `regs`.
pub unsafe fn predicate(regs: *mut u8, slot: Slot, negated: bool) -> [u32; MAX_WARPS] {
    let flip = if negated { u32::MAX } else { 0 };
    // SAFETY: the caller's word; reading past the bundle's last warp stays in the window (windows are padded).
    std::array::from_fn(|w| unsafe { *(regs.add(slot.offset as usize) as *const u32).add(w) } ^ flip)
}

/// The member mask that an instruction waits for; `None`: it does not wait.
pub fn members(op: &Op<Slot>) -> Option<Value<Slot>> {
    match op {
        Op::WarpBarrier { members }
        | Op::Match { members, .. }
        | Op::Redux { members, .. }
        | Op::Elect { members, .. } => Some(*members),
        Op::Shuffle { members, .. } | Op::Vote { members, .. } => *members,
        _ => None,
    }
}

/// The lanes whose members that still live are all running with them.
///
/// # Safety
/// A slot operand lies in the running window.
pub unsafe fn gathered(cx: &Cx<'_, '_>, members: Value<Slot>, live: &[u32; MAX_WARPS]) -> [u32; MAX_WARPS] {
    let mut ready = [0; MAX_WARPS];
    for (w, ready) in ready.iter_mut().enumerate().take(cx.mask.warps as usize) {
        let active = cx.mask.lanes[w];
        for i in bits(active) {
            // SAFETY: the caller's word.
            let named = unsafe { value(cx.regs, members, w * WARP + i) };
            *ready |= u32::from(named & live[w] & !active == 0) << i;
        }
    }
    ready
}

/// Set bits, ascending.
fn bits(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let i = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            i
        })
    })
}

/// Carries out an instruction for the lanes of `cx.mask`, all of whose partners are there.
///
/// # Safety
/// Slots of `op` lie in the running window.
pub unsafe fn execute(op: &Op<Slot>, cx: &mut Cx<'_, '_>) -> Option<RawFault> {
    for w in 0..cx.mask.warps as usize {
        let active = cx.mask.lanes[w];
        if active == 0 {
            continue;
        }
        // SAFETY: the caller's word, here and below.
        let partners = |m: Option<Value<Slot>>, i: usize| unsafe {
            m.map_or(active, |m| value(cx.regs, m, w * WARP + i) & active)
        };
        let get = |slot: Slot, i: usize| unsafe { read(cx.regs, slot, w * WARP + i) };
        let put = |slot: Slot, i: usize, v: u64| unsafe { write(cx.regs, slot, w * WARP + i, v) };
        match op {
            Op::WarpBarrier { .. } => {}
            Op::Fence => atomic::fence(atomic::Ordering::SeqCst),
            Op::Shuffle {
                mode,
                dst,
                dst_pred,
                a,
                b,
                c,
                members: _,
            } => {
                let mut source = [0u32; WARP];
                (0..WARP).for_each(|i| source[i] = get(*a, i) as u32);
                let mut moved = [(0u32, false); WARP];
                for i in bits(active) {
                    moved[i] = shuffle(*mode, &source, i as u32, get(*b, i) as u32, get(*c, i) as u32);
                }
                for i in bits(active) {
                    put(*dst, i, u64::from(moved[i].0));
                    if let Some(p) = dst_pred {
                        put(*p, i, u64::from(moved[i].1));
                    }
                }
            }
            Op::Vote {
                mode,
                dst,
                pred,
                members,
            } => {
                let set = unsafe { predicate(cx.regs, pred.0, pred.1) }[w];
                let mut result = [0u32; WARP];
                for i in bits(active) {
                    let group = partners(*members, i);
                    result[i] = match mode {
                        VoteMode::All => u32::from(set & group == group),
                        VoteMode::Any => u32::from(set & group != 0),
                        VoteMode::Uni => u32::from(set & group == group || set & group == 0),
                        VoteMode::Ballot => set & group,
                    };
                }
                bits(active).for_each(|i| put(*dst, i, u64::from(result[i])));
            }
            Op::Match {
                all,
                dst,
                dst_pred,
                a,
                members,
            } => {
                let mut result = [0u32; WARP];
                for i in bits(active) {
                    let group = partners(Some(*members), i);
                    let mine = get(*a, i);
                    result[i] = bits(group).fold(0, |m, j| m | u32::from(get(*a, j) == mine) << j);
                    if *all && result[i] != group {
                        result[i] = 0;
                    }
                }
                for i in bits(active) {
                    put(*dst, i, u64::from(result[i]));
                    if let Some(p) = dst_pred {
                        put(*p, i, u64::from(result[i] != 0));
                    }
                }
            }
            Op::Redux { op, dst, a, members } => {
                let mut result = [0u32; WARP];
                for i in bits(active) {
                    let group = partners(Some(*members), i);
                    let mut values = bits(group).map(|j| get(*a, j) as u32);
                    let first = values.next().unwrap_or(0);
                    result[i] = finish_redux(*op, values.fold(first, |x, y| redux(*op, x, y)));
                }
                bits(active).for_each(|i| put(*dst, i, u64::from(result[i])));
            }
            Op::Activemask { dst } => bits(active).for_each(|i| put(*dst, i, u64::from(active))),
            Op::Elect { dst, dst_pred, members } => {
                for i in bits(active) {
                    // Which member is elected is up to the machine: the lowest, as hardware does.
                    let leader = partners(Some(*members), i).trailing_zeros();
                    if let Some(d) = dst {
                        put(*d, i, u64::from(leader));
                    }
                    put(*dst_pred, i, u64::from(leader == i as u32));
                }
            }
            Op::ReadSpecial { .. }
            | Op::FrameAddress { .. }
            | Op::ConvertAddress { .. }
            | Op::IsSpace { .. }
            | Op::CopyAsync { .. } => return unsafe { whole_bundle(op, cx) },
            Op::Compute { .. }
            | Op::Load { .. }
            | Op::Store { .. }
            | Op::Atomic { .. }
            | Op::Call { .. }
            | Op::Return
            | Op::Exit
            | Op::Trap
            | Op::Breakpoint
            | Op::Barrier { .. }
            | Op::Nanosleep
            | Op::Alloca { .. }
            | Op::StackSave { .. }
            | Op::StackRestore { .. }
            | Op::Texture(_)
            | Op::Surface(_)
            | Op::HandleQuery { .. }
            | Op::IsHandle { .. }
            | Op::Syscall { .. } => unreachable!("handled by the loop"),
        }
    }
    None
}

/// Instructions for which warps do not matter.
///
/// # Safety
/// As for [`execute`].
unsafe fn whole_bundle(op: &Op<Slot>, cx: &mut Cx<'_, '_>) -> Option<RawFault> {
    let active = cx.mask.lanes;
    let block = cx.block;
    let local = |lane: usize| block.local + (u64::from(cx.first_thread) + lane as u64) * u64::from(block.local_stride);
    // SAFETY: the caller's word on slots, throughout.
    unsafe {
        match op {
            Op::ReadSpecial { which, dst } => {
                // Read once for all lanes into scratch memory laid out as the slot, then blended in by lane.
                let mut scratch = Scratch([0; MAX_WARPS * WARP * 16]);
                let place = Place {
                    block,
                    first_thread: cx.first_thread,
                    warps: cx.mask.warps,
                };
                let at = Slot {
                    offset: 0,
                    width: dst.width,
                };
                special::set_special(scratch.0.as_mut_ptr(), at, *which, &place);
                for lane in lanes(&active) {
                    write(cx.regs, *dst, lane, read(scratch.0.as_mut_ptr(), at, lane));
                }
            }
            Op::FrameAddress { dst, offset } => {
                let address = u64::from(cx.frame + offset);
                lanes(&active).for_each(|lane| write(cx.regs, *dst, lane, address));
            }
            Op::ConvertAddress {
                space,
                to_generic,
                dst,
                src,
            } => {
                for lane in lanes(&active) {
                    let x = read(cx.regs, *src, lane);
                    let base = match space {
                        Space::Shared => block.shared,
                        Space::Local => local(lane),
                        Space::Param => block.param,
                        Space::Generic | Space::Global | Space::Const => 0,
                    };
                    let y = if *to_generic {
                        base.wrapping_add(x)
                    } else {
                        x.wrapping_sub(base)
                    };
                    write(cx.regs, *dst, lane, y);
                }
            }
            Op::IsSpace { space, dst, src } => {
                for lane in lanes(&active) {
                    let x = read(cx.regs, *src, lane);
                    write(cx.regs, *dst, lane, u64::from(in_space(cx, *space, x)));
                }
            }
            Op::CopyAsync {
                dst,
                src,
                bytes,
                src_size,
                ignore,
            } => {
                return copy_async(cx, dst, src, *bytes, *src_size, *ignore);
            }
            _ => unreachable!("only called for the kinds above"),
        }
    }
    None
}

#[repr(align(64))]
struct Scratch([u8; MAX_WARPS * WARP * 16]);

fn in_space(cx: &Cx<'_, '_>, space: Space, x: u64) -> bool {
    let b = cx.block;
    let within = |base: u64, len: u64| x.wrapping_sub(base) < len;
    let shared = within(b.shared, u64::from(b.shared_window));
    let local = within(b.local, b.local_bytes);
    let param = within(b.param, u64::from(b.param_bytes));
    let constant = || b.view.check(x, 1, READ) && !b.view.check(x, 1, WRITE);
    match space {
        Space::Shared => shared,
        Space::Local => local,
        Space::Param => param,
        Space::Const => constant(),
        Space::Global => !shared && !local && !param && !constant(),
        Space::Generic => true,
    }
}

/// `cp.async`: done at once, so that waiting for its group finds it finished (PTX ISA, cp.async).
///
/// # Safety
/// Slots lie in the running window.
unsafe fn copy_async(
    cx: &mut Cx<'_, '_>,
    dst: &Address<Slot>,
    src: &Address<Slot>,
    bytes: u8,
    src_size: Option<Slot>,
    ignore: Option<(Slot, bool)>,
) -> Option<RawFault> {
    let op = |address: &Address<Slot>| mem_op(address, Ordering::Weak, Box::new([]));
    let (to, from) = (op(dst), op(src));
    let size = u64::from(bytes);
    for w in 0..cx.mask.warps as usize {
        let active = cx.mask.lanes[w];
        if active == 0 {
            continue;
        }
        let (mut d, mut s): (Lanes, Lanes) = ([0; WARP], [0; WARP]);
        // SAFETY: the caller's word.
        let ok = unsafe {
            access::addresses(cx, &to, w, active, size, true, &mut d)
                && access::check_lanes(cx, to.space, w, active, &d, size, WRITE)
                && access::addresses(cx, &from, w, active, size, false, &mut s)
        };
        if !ok {
            return cx.fault.take();
        }
        for i in bits(active) {
            let lane = w * WARP + i;
            // SAFETY: the caller's word.
            let (skip, n) = unsafe {
                let skip = ignore.is_some_and(|(slot, negated)| (read(cx.regs, slot, lane) != 0) != negated);
                (skip, src_size.map_or(size, |slot| read(cx.regs, slot, lane)).min(size))
            };
            let n = if skip { 0 } else { n };
            if n > 0 && !access::check_lanes(cx, from.space, w, 1 << i, &s, n.next_power_of_two(), READ) {
                return cx.fault.take();
            }
            // SAFETY: both ranges were checked.
            unsafe {
                std::ptr::copy(s[i] as *const u8, d[i] as *mut u8, n as usize);
                std::ptr::write_bytes((d[i] as *mut u8).add(n as usize), 0, (size - n) as usize);
            }
        }
    }
    None
}

/// What lane `lane` receives, and whether its source was in range (PTX ISA, shfl.sync: the formula as it stands there).
fn shuffle(mode: ShuffleMode, source: &[u32; WARP], lane: u32, b: u32, c: u32) -> (u32, bool) {
    let b = b & 0x1f;
    let clamp = c & 0x1f;
    let segment = c >> 8 & 0x1f;
    let max = (lane & segment) | (clamp & !segment);
    let min = lane & segment;
    let (from, in_range) = match mode {
        ShuffleMode::Up => (lane.wrapping_sub(b), lane as i32 - b as i32 >= max as i32),
        ShuffleMode::Down => (lane + b, lane + b <= max),
        ShuffleMode::Bfly => (lane ^ b, lane ^ b <= max),
        ShuffleMode::Idx => {
            let from = min | (b & !segment);
            (from, from <= max)
        }
    };
    let from = if in_range { from } else { lane };
    (source[from as usize & 31], in_range)
}

fn redux(op: ReduxOp, x: u32, y: u32) -> u32 {
    match op {
        ReduxOp::Add => x.wrapping_add(y),
        ReduxOp::MinU => x.min(y),
        ReduxOp::MaxU => x.max(y),
        ReduxOp::MinS => (x as i32).min(y as i32) as u32,
        ReduxOp::MaxS => (x as i32).max(y as i32) as u32,
        ReduxOp::And => x & y,
        ReduxOp::Or => x | y,
        ReduxOp::Xor => x ^ y,
        ReduxOp::MinF { abs, nan } => float_extreme(x, y, abs, nan, false),
        ReduxOp::MaxF { abs, nan } => float_extreme(x, y, abs, nan, true),
    }
}

/// A reduction over one lane still takes the absolute value and canonicalises a NaN.
fn finish_redux(op: ReduxOp, x: u32) -> u32 {
    match op {
        ReduxOp::MinF { .. } | ReduxOp::MaxF { .. } => redux(op, x, x),
        _ => x,
    }
}

fn float_extreme(x: u32, y: u32, abs: bool, nan: bool, max: bool) -> u32 {
    let (x, y) = (f32::from_bits(x), f32::from_bits(y));
    let (x, y) = if abs { (x.abs(), y.abs()) } else { (x, y) };
    if (nan && (x.is_nan() || y.is_nan())) || (x.is_nan() && y.is_nan()) {
        return 0x7fff_ffff;
    }
    let x_first = if x.is_nan() {
        false
    } else if y.is_nan() {
        true
    } else if x == y {
        x.is_sign_negative() != max
    } else {
        (x < y) != max
    };
    if x_first { x.to_bits() } else { y.to_bits() }
}

/// Gives the result of a barrier reduction to the lanes of `mask`.
///
/// # Safety
/// `dst` lies in the window at `regs`.
pub unsafe fn write_reduction(regs: *mut u8, dst: Slot, op: BarrierOp, tally: &Tally, mask: &Mask) {
    let value = match op {
        BarrierOp::Popc => tally.set,
        BarrierOp::And => u32::from(tally.set == tally.voters),
        BarrierOp::Or => u32::from(tally.set != 0),
        BarrierOp::Sync | BarrierOp::Arrive => return,
    };
    for lane in lanes(&mask.lanes) {
        // SAFETY: the caller's word.
        unsafe { write(regs, dst, lane, u64::from(value)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expectations worked out by hand from the formulas of PTX ISA, shfl.sync.
    #[test]
    fn shuffles_follow_the_manual() {
        let lanes: [u32; WARP] = std::array::from_fn(|i| i as u32 + 100);
        // up by 3, whole warp (c = 0): lanes 0 to 2 keep their own.
        assert_eq!(shuffle(ShuffleMode::Up, &lanes, 2, 3, 0), (102, false));
        assert_eq!(shuffle(ShuffleMode::Up, &lanes, 3, 3, 0), (100, true));
        // down by 1, whole warp (c = 31): lane 31 keeps its own.
        assert_eq!(shuffle(ShuffleMode::Down, &lanes, 31, 1, 31), (131, false));
        assert_eq!(shuffle(ShuffleMode::Down, &lanes, 30, 1, 31), (131, true));
        // width 8: segment mask 0b11000, clamp 31 (down) or 0 (up).
        let c = (0b11000 << 8) | 31;
        assert_eq!(shuffle(ShuffleMode::Down, &lanes, 7, 1, c), (107, false));
        assert_eq!(shuffle(ShuffleMode::Idx, &lanes, 13, 2, c), (110, true));
        assert_eq!(shuffle(ShuffleMode::Bfly, &lanes, 5, 2, c), (107, true));
        assert_eq!(shuffle(ShuffleMode::Up, &lanes, 8, 1, 0b11000 << 8), (108, false));
    }

    #[test]
    fn float_reductions_prefer_numbers() {
        let nan = f32::NAN.to_bits();
        let one = 1f32.to_bits();
        assert_eq!(redux(ReduxOp::MinF { abs: false, nan: false }, nan, one), one);
        assert_eq!(redux(ReduxOp::MinF { abs: false, nan: true }, nan, one), 0x7fff_ffff);
        assert_eq!(redux(ReduxOp::MaxF { abs: false, nan: false }, 0x8000_0000, 0), 0);
        assert_eq!(
            redux(ReduxOp::MinF { abs: false, nan: false }, 0, 0x8000_0000),
            0x8000_0000
        );
        assert_eq!(
            redux(ReduxOp::MaxF { abs: true, nan: false }, (-3f32).to_bits(), one),
            3f32.to_bits()
        );
    }
}
