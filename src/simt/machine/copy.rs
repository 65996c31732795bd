//! `cp.async` (PTX ISA, cp.async) and its groups: what a copy reads and writes is checked when it begins, and done when
//! somebody waits for it (`asynchronous/`).

use crate::isa::lanes::WARP;
use crate::program::{Address, CopyGroup, Ordering, Proxy};

use super::access::{self, Lanes, MemOp};
use super::asynchronous::copies::Record;
use super::context::{Cx, Outcome, RawFault};
use super::observe::{Completes, Direction, SyncEvent};
use super::slots::{Slot, bits, first_lane, read};
use super::state::State;

/// A copy as the instruction gives it.
pub struct Copy<'a> {
    pub dst: &'a Address<Slot>,
    pub src: &'a Address<Slot>,
    /// 4, 8 or 16.
    pub bytes: u8,
    /// So many of them are read, if that is given; the rest is zero.
    pub src_size: Option<Slot>,
    /// Nothing is read where this predicate holds (negated: where it does not).
    pub ignore: Option<(Slot, bool)>,
}

/// # Safety
/// Slots lie in the running window.
pub unsafe fn copy_async<const WATCHED: bool>(cx: &mut Cx<'_>, copy: &Copy<'_>, state: &mut State) -> Outcome {
    let weak = (Ordering::Weak, None);
    let to = MemOp::new(copy.dst, weak, Box::new([]), cx.span);
    let from = MemOp::new(copy.src, weak, Box::new([]), cx.span);
    let size = u64::from(copy.bytes);
    let first_warp = cx.first_thread as usize / WARP;
    for w in 0..cx.mask.warps as usize {
        let active = cx.mask.lanes[w];
        if active == 0 {
            continue;
        }
        let mut record = Record {
            to: [0; WARP],
            from: [0; WARP],
            count: [copy.bytes; WARP],
            bytes: copy.bytes,
        };
        let mut reads = active;
        if copy.ignore.is_some() || copy.src_size.is_some() {
            reads = 0;
            for i in bits(active) {
                let lane = w * WARP + i;
                // SAFETY: the predicate and the size are slots of the running window, `lane` is of the mask.
                let (skip, n) = unsafe {
                    let holds = |(slot, negated): (Slot, bool)| (read(cx.regs, slot, lane) != 0) != negated;
                    let n = copy.src_size.map_or(size, |slot| read(cx.regs, slot, lane));
                    (copy.ignore.is_some_and(holds), n.min(size))
                };
                record.count[i] = if skip { 0 } else { n as u8 };
                reads |= u32::from(record.count[i] != 0) << i;
            }
        }
        let operation = state.asynchronous.number();
        if WATCHED {
            cx.operation = Some(operation);
            cx.synchronised::<WATCHED>(|| SyncEvent::Begin {
                operation,
                warp: w,
                lanes: active,
                completes: Completes::Group,
            });
        }
        // SAFETY: the registers of both addresses are slots of the running window.
        let good = unsafe {
            access::addresses(cx, &to, w, active, size, Direction::Write, &mut record.to)
                && access::check_lanes(cx, to.space, w, active, &record.to, size, Direction::Write)
                && (reads == 0 || source::<WATCHED>(cx, &from, w, (reads, &record.count), size, &mut record.from))
        };
        if !good {
            return cx.fault.take();
        }
        if WATCHED {
            access::tell::<WATCHED>(cx, &to, w, active, &record.to, size, Direction::Write, Proxy::Generic);
            cx.operation = None;
            for i in bits(reads) {
                cx.copied::<WATCHED>(w * WARP + i, record.from[i], record.to[i], record.count[i].into());
            }
        }
        let warp = first_warp + w;
        state.asynchronous.copies.begin(warp, active, operation, record);
        if state.asynchronous.copies.is_full(warp)
            && let Err(cause) = state.wait_copies(cx.block, (warp, u32::MAX), None)
        {
            return Some(RawFault {
                cause,
                lane: first_lane(&cx.mask.lanes),
                others: 0,
            });
        }
    }
    state.draw_behind(cx).err()
}

/// `cp.async.commit_group`, `cp.async.wait_group`, `cp.async.wait_all`
pub fn group<const WATCHED: bool>(cx: &Cx<'_>, group: CopyGroup, state: &mut State) -> Outcome {
    let first_warp = cx.first_thread as usize / WARP;
    for (w, &lanes) in cx.mask.lanes.iter().enumerate().take(cx.mask.warps as usize) {
        if lanes == 0 {
            continue;
        }
        let but = match group {
            CopyGroup::Commit => {
                state.asynchronous.copies.commit(first_warp + w, lanes);
                continue;
            }
            CopyGroup::Wait(but) => Some(but),
            CopyGroup::WaitAll => None,
        };
        if let Err(cause) = state.wait_copies(cx.block, (first_warp + w, lanes), but) {
            let lane = w * WARP + lanes.trailing_zeros() as usize;
            return Some(RawFault::new(cause, lane));
        }
    }
    cx.synchronised::<WATCHED>(|| SyncEvent::Copies {
        lanes: cx.mask.lanes,
        group,
    });
    state.draw_behind(cx).err()
}

/// Addresses of sources, of which lanes read different numbers of bytes.
///
/// # Safety
/// Slots lie in the running window.
unsafe fn source<const WATCHED: bool>(
    cx: &mut Cx<'_>,
    from: &MemOp,
    w: usize,
    (reads, count): (u32, &[u8; WARP]),
    size: u64,
    s: &mut Lanes,
) -> bool {
    // SAFETY: the register of the address is a slot of the running window.
    if !unsafe { access::addresses(cx, from, w, reads, 1, Direction::Read, s) } {
        return false;
    }
    if !WATCHED && bits(reads).all(|i| u64::from(count[i]) == size) {
        return access::check_lanes(cx, from.space, w, reads, s, size, Direction::Read);
    }
    for i in bits(reads) {
        // What is read must be the kernel's; where it starts is a multiple of the copy's size (PTX ISA, cp.async).
        if !access::check_range(
            cx,
            from.space,
            w * WARP + i,
            s[i],
            (count[i].into(), size),
            Direction::Read,
        ) {
            return false;
        }
        if WATCHED {
            access::tell::<WATCHED>(cx, from, w, 1 << i, s, count[i].into(), Direction::Read, Proxy::Generic);
        }
    }
    true
}
