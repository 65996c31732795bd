//! Operations in which lanes of a warp look at each other (PTX ISA: shfl, vote, match, redux, activemask, elect), and
//! those that order what lanes do (barriers, fences).
//!
//! A bundle is several warps: everything here works on one warp's 32 lanes at a time. Lanes that run together may name
//! different member masks (tiles of a warp): a lane's partners are those in its own mask that run with it. Who waits for
//! absent members is the tier's business; [`gathered`] says for whom nobody is missing.

use std::sync::atomic;

use crate::isa::lanes::{MAX_WARPS, Operands, WARP, Width};
use crate::isa::shuffle;
use crate::program::{Ordering, Proxy, ReduxOp, Scope, ShuffleMode, Value, VoteMode};

use super::context::Cx;
use super::observe::SyncEvent;
use super::slots::{Slot, bits, predicate, read, value, write};

/// The lanes whose members that still live are all running with them, and name the same ones.
///
/// # Safety
/// A slot operand lies in the running window.
pub unsafe fn gathered(cx: &Cx<'_>, members: Value<Slot>, live: &[u32; MAX_WARPS]) -> [u32; MAX_WARPS] {
    let mut ready = [0; MAX_WARPS];
    for (w, ready) in ready.iter_mut().enumerate().take(cx.mask.warps as usize) {
        let active = cx.mask.lanes[w];
        if let Value::Immediate(named) = members {
            *ready = if named & live[w] & !active == 0 { active } else { 0 };
            continue;
        }
        let mut named = [0; WARP];
        for i in bits(active) {
            // SAFETY: `members` is a number or a slot of the running window, and lane `i` of warp `w` is one of the
            // mask's.
            named[i] = unsafe { value(cx.regs, members, w * WARP + i) } & live[w];
        }
        let first = named[active.trailing_zeros() as usize % WARP];
        if bits(active).all(|i| named[i] == first) {
            *ready = if first & !active == 0 { active } else { 0 };
            continue;
        }
        for i in bits(active) {
            // Members that name others do not meet with this one, whoever came first.
            let agree = named[i] & !active == 0 && bits(named[i]).all(|other| named[other] == named[i]);
            *ready |= u32::from(agree) << i;
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

    /// Writes the same value in all active lanes.
    unsafe fn put_all(&self, slot: Slot, value: u32) {
        // SAFETY: the slot lies in the window `regs`, which has this warp's 32 lanes; runs are aligned to 64 bytes.
        unsafe {
            if self.active == u32::MAX && slot.width == Width::B32 {
                let run = self
                    .regs
                    .add(slot.offset as usize)
                    .cast::<[u32; WARP]>()
                    .add(self.first / WARP);
                *run = [value; WARP];
            } else {
                bits(self.active).for_each(|lane| self.put(slot, lane, value.into()));
            }
        }
    }

    /// Who takes part with each lane, where that is the same for all active ones: without member masks, all of them.
    unsafe fn common_partners(&self, members: Option<Value<Slot>>) -> Option<u32> {
        match members {
            None => Some(self.active),
            Some(Value::Immediate(named)) => Some(named & self.active),
            Some(Value::Register(_)) => {
                // SAFETY: `members` is a slot of the window `regs`, which has this warp's 32 lanes.
                let partners = |lane| unsafe { self.partners(members, lane) };
                let first = partners(self.active.trailing_zeros() as usize);
                bits(self.active).all(|lane| partners(lane) == first).then_some(first)
            }
        }
    }

    /// Writes in each active lane what `result` makes of its partners.
    unsafe fn put_by_partners(&self, members: Option<Value<Slot>>, dst: Slot, result: impl Fn(u32) -> u32) {
        // SAFETY: `members` and `dst` are slots of the window `regs`, or a number.
        unsafe {
            if let Some(partners) = self.common_partners(members) {
                return self.put_all(dst, result(partners));
            }
            let mut results = [0; WARP];
            bits(self.active).for_each(|lane| results[lane] = result(self.partners(members, lane)));
            bits(self.active).for_each(|lane| self.put(dst, lane, results[lane].into()));
        }
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
    let operands = Operands {
        dst: [dst.offset, dst_pred.map_or(0, |predicate| predicate.offset)],
        src: [a.offset, b.offset, c.offset, 0],
        imm: 0,
    };
    let kernel = shuffle::kernel(mode, dst_pred.is_some());
    let all = cx.mask.lanes.iter().take(cx.mask.warps as usize);
    let run = if all.clone().all(|lanes| *lanes == u32::MAX) {
        kernel.full
    } else {
        kernel.masked
    };
    // SAFETY: the operands are slots of the running window, of 32 bits and a predicate, and all 32 lanes of a warp have a
    // value in each; kernels are of the level that the CPU was found to have.
    unsafe { run(cx.regs, &operands, &cx.mask) }
}

/// `vote`, `vote.sync`
///
/// # Safety
/// As for [`shuffle`].
pub unsafe fn vote(cx: &Cx<'_>, mode: VoteMode, dst: Slot, pred: (Slot, bool), members: Option<Value<Slot>>) {
    for (w, warp) in warps(cx) {
        // SAFETY: the predicate is a slot of the running window.
        let set = unsafe { predicate(cx.regs, pred.0, pred.1) }[w];
        let result = |group: u32| match mode {
            VoteMode::All => u32::from(set & group == group),
            VoteMode::Any => u32::from(set & group != 0),
            VoteMode::Uni => u32::from(set & group == group || set & group == 0),
            VoteMode::Ballot => set & group,
        };
        // SAFETY: `members` and `dst` are slots of the running window, or a number.
        unsafe { warp.put_by_partners(members, dst, result) };
    }
}

/// `match.any.sync`, `match.all.sync`
///
/// # Safety
/// As for [`shuffle`].
pub unsafe fn match_lanes(cx: &Cx<'_>, all: bool, dst: Slot, dst_pred: Option<Slot>, a: Slot, members: Value<Slot>) {
    for (_, warp) in warps(cx) {
        // SAFETY: `a` is a slot of the running window, in which all 32 lanes of a warp have a value.
        let values: [u64; WARP] = std::array::from_fn(|lane| unsafe { warp.get(a, lane) });
        let mut result = [0u32; WARP];
        // One value after the other: often there are few, or one.
        let mut left = warp.active;
        while left != 0 {
            let value = values[left.trailing_zeros() as usize];
            let same = (0..WARP).fold(0, |same, j| same | u32::from(values[j] == value) << j);
            for i in bits(left & same) {
                // SAFETY: `members` is a slot of the running window, or a number.
                let group = unsafe { warp.partners(Some(members), i) };
                result[i] = if all && same & group != group { 0 } else { same & group };
            }
            left &= !same;
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
        // SAFETY: `a` is a slot of the running window, in which all 32 lanes of a warp have a value.
        let values: [u32; WARP] = std::array::from_fn(|lane| unsafe { warp.get(a, lane) as u32 });
        let result = |group: u32| {
            let mut values = bits(group).map(|lane| values[lane]);
            let first = values.next().unwrap_or(0);
            finish_redux(op, values.fold(first, |x, y| reduced(op, x, y)))
        };
        // SAFETY: `members` and `dst` are slots of the running window, or a number.
        unsafe { warp.put_by_partners(Some(members), dst, result) };
    }
}

/// `activemask`
///
/// # Safety
/// As for [`shuffle`].
pub unsafe fn activemask(cx: &Cx<'_>, dst: Slot) {
    for (_, warp) in warps(cx) {
        // SAFETY: `dst` is a slot of the running window.
        unsafe { warp.put_all(dst, warp.active) };
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
    if WATCHED {
        // SAFETY: `members` is a number or a slot of the running window.
        unsafe { each_named(cx, members, true) };
    }
}

/// Tells an observer of another `.sync` instruction all of whose members are there.
///
/// # Safety
/// As for [`shuffle`].
pub unsafe fn collective(cx: &Cx<'_>, members: Value<Slot>) {
    // SAFETY: `members` is a number or a slot of the running window.
    unsafe { each_named(cx, members, false) };
}

/// Tells, for each warp, of the members that its lanes name.
///
/// # Safety
/// As for [`shuffle`].
unsafe fn each_named(cx: &Cx<'_>, members: Value<Slot>, is_barrier: bool) {
    let mut lanes = cx.mask.lanes;
    lanes[cx.mask.warps as usize..].fill(0);
    if let Value::Immediate(all) = members
        && lanes.iter().all(|lanes| lanes & !all == 0)
    {
        cx.synchronised::<true>(|| SyncEvent::Together { lanes, is_barrier });
        return;
    }
    for (warp, own) in warps(cx) {
        let mut members_of = [0; WARP];
        for i in bits(own.active) {
            // SAFETY: `members` is a number or a slot of the running window.
            members_of[i] = unsafe { own.partners(Some(members), i) };
        }
        cx.synchronised::<true>(|| match is_barrier {
            true => SyncEvent::Warp {
                warp,
                members: members_of,
            },
            false => SyncEvent::Collective {
                warp,
                members: members_of,
            },
        });
    }
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
