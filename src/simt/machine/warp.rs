//! Operations in which lanes of a warp look at each other (PTX ISA: shfl, vote, match, redux, activemask, elect), and
//! those that order what lanes do (barriers, fences).
//!
//! A bundle is several warps: everything here works on one warp's 32 lanes at a time. Lanes that run together may name
//! different member masks (tiles of a warp): a lane's partners are those in its own mask that run with it. Who waits for
//! absent members is the tier's business; [`gathered`] says for whom nobody is missing.

use std::sync::atomic;

use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::program::{Ordering, Proxy, ReduxOp, Scope, ShuffleMode, Value, VoteMode};

use super::context::Cx;
use super::observe::SyncEvent;
use super::slots::{Slot, bits, predicate, read, value, write};

/// The lanes whose members that still live are all running with them.
///
/// # Safety
/// A slot operand lies in the running window.
pub unsafe fn gathered(cx: &Cx<'_>, members: Value<Slot>, live: &[u32; MAX_WARPS]) -> [u32; MAX_WARPS] {
    let mut ready = [0; MAX_WARPS];
    for (w, ready) in ready.iter_mut().enumerate().take(cx.mask.warps as usize) {
        let active = cx.mask.lanes[w];
        for i in bits(active) {
            // SAFETY: `members` is a number or a slot of the running window, and lane `i` of warp `w` is one of the
            // mask's.
            let named = unsafe { value(cx.regs, members, w * WARP + i) };
            *ready |= u32::from(named & live[w] & !active == 0) << i;
        }
    }
    ready
}

/// One warp of the bundle, with the lanes of it that are active.
struct Warp {
    regs: *mut u8,
    first: usize,
    active: u32,
}

impl Warp {
    /// # Safety
    /// The slot lies in the running window, here and below.
    unsafe fn get(&self, slot: Slot, lane: usize) -> u64 {
        // SAFETY: the slot lies in the window `regs`, which has this warp's 32 lanes.
        unsafe { read(self.regs, slot, self.first + lane) }
    }

    unsafe fn put(&self, slot: Slot, lane: usize, value: u64) {
        // SAFETY: the slot lies in the window `regs`, which has this warp's 32 lanes.
        unsafe { write(self.regs, slot, self.first + lane, value) };
    }

    /// Who takes part with a lane; without member masks, all that are active.
    unsafe fn partners(&self, members: Option<Value<Slot>>, lane: usize) -> u32 {
        let named = |members| {
            // SAFETY: `members` is a number or a slot of the window `regs`, which has this warp's 32 lanes.
            unsafe { value(self.regs, members, self.first + lane) }
        };
        members.map_or(self.active, |members| named(members) & self.active)
    }
}

/// The warps of a bundle that have active lanes.
fn warps(cx: &Cx<'_>) -> impl Iterator<Item = (usize, Warp)> {
    let (regs, mask) = (cx.regs, cx.mask);
    (0..mask.warps as usize).filter_map(move |w| {
        let active = mask.lanes[w];
        let first = w * WARP;
        (active != 0).then_some((w, Warp { regs, first, active }))
    })
}

/// `shfl`, `shfl.sync`
///
/// # Safety
/// Slots lie in the running window, here and below.
pub unsafe fn shuffle(cx: &Cx<'_>, mode: ShuffleMode, dst: Slot, dst_pred: Option<Slot>, [a, b, c]: [Slot; 3]) {
    for (_, warp) in warps(cx) {
        // SAFETY: `a`, `b` and `c` are slots of the running window; all 32 lanes of a warp have a value in each.
        let get = |slot: Slot, i: usize| unsafe { warp.get(slot, i) as u32 };
        let source: [u32; WARP] = std::array::from_fn(|i| get(a, i));
        let mut moved = [(0u32, false); WARP];
        for i in bits(warp.active) {
            moved[i] = shuffled(mode, &source, i as u32, get(b, i), get(c, i));
        }
        for i in bits(warp.active) {
            // SAFETY: `dst` and `dst_pred` are slots of the running window.
            unsafe {
                warp.put(dst, i, u64::from(moved[i].0));
                if let Some(p) = dst_pred {
                    warp.put(p, i, u64::from(moved[i].1));
                }
            }
        }
    }
}

/// `vote`, `vote.sync`
///
/// # Safety
/// As for [`shuffle`].
pub unsafe fn vote(cx: &Cx<'_>, mode: VoteMode, dst: Slot, pred: (Slot, bool), members: Option<Value<Slot>>) {
    for (w, warp) in warps(cx) {
        // SAFETY: the predicate is a slot of the running window.
        let set = unsafe { predicate(cx.regs, pred.0, pred.1) }[w];
        let mut result = [0u32; WARP];
        for i in bits(warp.active) {
            // SAFETY: `members` is a number or a slot of the running window.
            let group = unsafe { warp.partners(members, i) };
            result[i] = match mode {
                VoteMode::All => u32::from(set & group == group),
                VoteMode::Any => u32::from(set & group != 0),
                VoteMode::Uni => u32::from(set & group == group || set & group == 0),
                VoteMode::Ballot => set & group,
            };
        }
        // SAFETY: `dst` is a slot of the running window.
        bits(warp.active).for_each(|i| unsafe { warp.put(dst, i, u64::from(result[i])) });
    }
}

/// `match.any.sync`, `match.all.sync`
///
/// # Safety
/// As for [`shuffle`].
pub unsafe fn match_lanes(cx: &Cx<'_>, all: bool, dst: Slot, dst_pred: Option<Slot>, a: Slot, members: Value<Slot>) {
    for (_, warp) in warps(cx) {
        let mut result = [0u32; WARP];
        for i in bits(warp.active) {
            // SAFETY: `members` and `a` are slots of the running window, or a number; partners are lanes of this warp.
            unsafe {
                let group = warp.partners(Some(members), i);
                let mine = warp.get(a, i);
                result[i] = bits(group).fold(0, |m, j| m | u32::from(warp.get(a, j) == mine) << j);
                if all && result[i] != group {
                    result[i] = 0;
                }
            }
        }
        for i in bits(warp.active) {
            // SAFETY: `dst` and `dst_pred` are slots of the running window.
            unsafe {
                warp.put(dst, i, u64::from(result[i]));
                if let Some(p) = dst_pred {
                    warp.put(p, i, u64::from(result[i] != 0));
                }
            }
        }
    }
}

/// `redux.sync`
///
/// # Safety
/// As for [`shuffle`].
pub unsafe fn redux(cx: &Cx<'_>, op: ReduxOp, dst: Slot, a: Slot, members: Value<Slot>) {
    for (_, warp) in warps(cx) {
        let mut result = [0u32; WARP];
        for i in bits(warp.active) {
            // SAFETY: `members` is a number or a slot of the running window.
            let group = unsafe { warp.partners(Some(members), i) };
            // SAFETY: `a` is a slot of the running window, lane `j` one of this warp's.
            let mut values = bits(group).map(|j| unsafe { warp.get(a, j) as u32 });
            let first = values.next().unwrap_or(0);
            result[i] = finish_redux(op, values.fold(first, |x, y| reduced(op, x, y)));
        }
        // SAFETY: `dst` is a slot of the running window.
        bits(warp.active).for_each(|i| unsafe { warp.put(dst, i, u64::from(result[i])) });
    }
}

/// `activemask`
///
/// # Safety
/// As for [`shuffle`].
pub unsafe fn activemask(cx: &Cx<'_>, dst: Slot) {
    for (_, warp) in warps(cx) {
        // SAFETY: `dst` is a slot of the running window.
        bits(warp.active).for_each(|i| unsafe { warp.put(dst, i, u64::from(warp.active)) });
    }
}

/// `elect.sync`
///
/// # Safety
/// As for [`shuffle`].
pub unsafe fn elect(cx: &Cx<'_>, dst: Option<Slot>, dst_pred: Slot, members: Value<Slot>) {
    for (_, warp) in warps(cx) {
        for i in bits(warp.active) {
            // SAFETY: `members`, `dst` and `dst_pred` are slots of the running window, or numbers.
            unsafe {
                // Which member is elected is up to the machine: the lowest, as hardware does.
                let leader = warp.partners(Some(members), i).trailing_zeros();
                if let Some(d) = dst {
                    warp.put(d, i, u64::from(leader));
                }
                warp.put(dst_pred, i, u64::from(leader == i as u32));
            }
        }
    }
}

/// `membar`, `fence`: always a full one.
pub fn fence<const WATCHED: bool>(cx: &Cx<'_>, ordering: Ordering, scope: Option<Scope>, proxy: Proxy) {
    atomic::fence(atomic::Ordering::SeqCst);
    cx.synchronised::<WATCHED>(|| SyncEvent::Fence {
        lanes: cx.mask.lanes,
        ordering,
        scope,
        proxy,
    });
}

/// `bar.warp.sync`, when all members are there.
///
/// # Safety
/// As for [`shuffle`].
pub unsafe fn warp_barrier<const WATCHED: bool>(cx: &Cx<'_>, members: Value<Slot>) {
    if !WATCHED {
        return;
    }
    for (warp, own) in warps(cx) {
        let mut named = [0; WARP];
        for i in bits(own.active) {
            // SAFETY: `members` is a number or a slot of the running window.
            named[i] = unsafe { own.partners(Some(members), i) };
        }
        cx.synchronised::<WATCHED>(|| SyncEvent::Warp { warp, members: named });
    }
}

/// What lane `lane` receives, and whether its source was in range (PTX ISA, shfl.sync: the formula as it stands there).
fn shuffled(mode: ShuffleMode, source: &[u32; WARP], lane: u32, b: u32, c: u32) -> (u32, bool) {
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

fn reduced(op: ReduxOp, x: u32, y: u32) -> u32 {
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
        ReduxOp::MinF { .. } | ReduxOp::MaxF { .. } => reduced(op, x, x),
        ReduxOp::Add
        | ReduxOp::MinU
        | ReduxOp::MaxU
        | ReduxOp::MinS
        | ReduxOp::MaxS
        | ReduxOp::And
        | ReduxOp::Or
        | ReduxOp::Xor => x,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Expectations worked out by hand from the formulas of PTX ISA, shfl.sync.
    #[test]
    fn shuffles_follow_the_manual() {
        let lanes: [u32; WARP] = std::array::from_fn(|i| i as u32 + 100);
        // up by 3, whole warp (c = 0): lanes 0 to 2 keep their own.
        assert_eq!(shuffled(ShuffleMode::Up, &lanes, 2, 3, 0), (102, false));
        assert_eq!(shuffled(ShuffleMode::Up, &lanes, 3, 3, 0), (100, true));
        // down by 1, whole warp (c = 31): lane 31 keeps its own.
        assert_eq!(shuffled(ShuffleMode::Down, &lanes, 31, 1, 31), (131, false));
        assert_eq!(shuffled(ShuffleMode::Down, &lanes, 30, 1, 31), (131, true));
        // width 8: segment mask 0b11000, clamp 31 (down) or 0 (up).
        let c = (0b11000 << 8) | 31;
        assert_eq!(shuffled(ShuffleMode::Down, &lanes, 7, 1, c), (107, false));
        assert_eq!(shuffled(ShuffleMode::Idx, &lanes, 13, 2, c), (110, true));
        assert_eq!(shuffled(ShuffleMode::Bfly, &lanes, 5, 2, c), (107, true));
        assert_eq!(shuffled(ShuffleMode::Up, &lanes, 8, 1, 0b11000 << 8), (108, false));
    }

    #[test]
    fn float_reductions_prefer_numbers() {
        let nan = f32::NAN.to_bits();
        let one = 1f32.to_bits();
        assert_eq!(reduced(ReduxOp::MinF { abs: false, nan: false }, nan, one), one);
        assert_eq!(reduced(ReduxOp::MinF { abs: false, nan: true }, nan, one), 0x7fff_ffff);
        assert_eq!(reduced(ReduxOp::MaxF { abs: false, nan: false }, 0x8000_0000, 0), 0);
        assert_eq!(
            reduced(ReduxOp::MinF { abs: false, nan: false }, 0, 0x8000_0000),
            0x8000_0000
        );
        assert_eq!(
            reduced(ReduxOp::MaxF { abs: true, nan: false }, (-3f32).to_bits(), one),
            3f32.to_bits()
        );
    }
}
