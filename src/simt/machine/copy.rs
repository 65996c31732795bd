//! `cp.async` (PTX ISA, cp.async) and its groups: copies are made at once, so that waiting for a group finds it
//! finished.

use crate::isa::lanes::WARP;
use crate::program::{Address, CopyGroup, Ordering, Proxy};

use super::access::{self, Lanes, MemOp};
use super::context::{Cx, Outcome};
use super::observe::{Direction, SyncEvent};
use super::slots::{Slot, bits, read};

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
pub unsafe fn copy_async<const WATCHED: bool>(cx: &mut Cx<'_>, copy: &Copy<'_>) -> Outcome {
    let weak = (Ordering::Weak, None);
    let to = MemOp::new(copy.dst, weak, Box::new([]), cx.span);
    let from = MemOp::new(copy.src, weak, Box::new([]), cx.span);
    let size = u64::from(copy.bytes);
    for w in 0..cx.mask.warps as usize {
        let active = cx.mask.lanes[w];
        if active == 0 {
            continue;
        }
        let mut count = [0; WARP];
        let mut reads = 0;
        for i in bits(active) {
            let lane = w * WARP + i;
            // SAFETY: the predicate and the size are slots of the running window, `lane` is of the mask.
            let (skip, n) = unsafe {
                let holds = |(slot, negated): (Slot, bool)| (read(cx.regs, slot, lane) != 0) != negated;
                let n = copy.src_size.map_or(size, |slot| read(cx.regs, slot, lane));
                (copy.ignore.is_some_and(holds), n.min(size))
            };
            count[i] = if skip { 0 } else { n };
            reads |= u32::from(count[i] != 0) << i;
        }
        let (mut d, mut s): (Lanes, Lanes) = ([0; WARP], [0; WARP]);
        // SAFETY: the registers of both addresses are slots of the running window.
        let good = unsafe {
            access::addresses(cx, &to, w, active, size, Direction::Write, &mut d)
                && access::check_lanes(cx, to.space, w, active, &d, size, Direction::Write)
                && (reads == 0 || source::<WATCHED>(cx, &from, w, (reads, &count), size, &mut s))
        };
        if !good {
            return cx.fault.take();
        }
        if WATCHED {
            access::tell::<WATCHED>(cx, &to, w, active, &d, size, Direction::Write, Proxy::Generic);
        }
        for i in bits(active) {
            let n = count[i] as usize;
            // SAFETY: the destination was checked for the whole size, the source for as many bytes as are read.
            unsafe {
                if n > 0 {
                    std::ptr::copy(s[i] as *const u8, d[i] as *mut u8, n);
                }
                std::ptr::write_bytes((d[i] as *mut u8).add(n), 0, size as usize - n);
            }
        }
    }
    None
}

/// `cp.async.commit_group`, `cp.async.wait_group`, `cp.async.wait_all`: only observers can tell.
pub fn group<const WATCHED: bool>(cx: &Cx<'_>, group: CopyGroup) {
    cx.synchronised::<WATCHED>(|| SyncEvent::Copies {
        lanes: cx.mask.lanes,
        group,
    });
}

/// Addresses of sources, of which lanes read different numbers of bytes.
///
/// # Safety
/// Slots lie in the running window.
unsafe fn source<const WATCHED: bool>(
    cx: &mut Cx<'_>,
    from: &MemOp,
    w: usize,
    (reads, count): (u32, &[u64; WARP]),
    size: u64,
    s: &mut Lanes,
) -> bool {
    // SAFETY: the register of the address is a slot of the running window.
    if !unsafe { access::addresses(cx, from, w, reads, 1, Direction::Read, s) } {
        return false;
    }
    for i in bits(reads) {
        // What is read must be the kernel's; where it starts is a multiple of the copy's size (PTX ISA, cp.async).
        if !access::check_range(cx, from.space, w * WARP + i, s[i], (count[i], size), Direction::Read) {
            return false;
        }
        if WATCHED {
            access::tell::<WATCHED>(cx, from, w, 1 << i, s, count[i], Direction::Read, Proxy::Generic);
        }
    }
    true
}
