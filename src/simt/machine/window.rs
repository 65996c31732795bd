//! What lanes know of the windows they live in (PTX ISA, cvta, isspacep), and special registers that are read where they
//! stand.

use crate::isa::lanes::WARP;
use crate::memory::READ;
use crate::program::{Space, Special};

use super::context::{Cx, Env, LANES};
use super::peers;
use super::slots::{Slot, lanes, read, write};
use super::special::{self, Place};

#[repr(align(64))]
struct Scratch([u8; LANES * 16]);

/// A special register that changes from one reading to the next: read once for all lanes.
///
/// # Safety
/// Slots lie in the running window, here and below.
pub unsafe fn read_special(cx: &Cx<'_>, which: Special, dst: Slot) {
    // Into scratch memory laid out as the slot, then blended in by lane.
    let mut scratch = Scratch([0; LANES * 16]);
    let place = Place {
        block: cx.block,
        first_thread: cx.first_thread,
        warps: cx.mask.warps,
    };
    let at = Slot {
        offset: 0,
        width: dst.width,
    };
    debug_assert!(cx.mask.warps as usize * WARP <= LANES);
    // SAFETY: the scratch memory has room for the widest slot of a whole bundle; `dst` is a slot of the running window.
    unsafe {
        special::set_special(scratch.0.as_mut_ptr(), at, which, &place);
        for lane in lanes(&cx.mask.lanes) {
            write(cx.regs, dst, lane, read(scratch.0.as_mut_ptr(), at, lane));
        }
    }
}

/// The address of byte `offset` of the running frame, in the lane's local window.
///
/// # Safety
/// As for [`read_special`].
pub unsafe fn frame_address(cx: &Cx<'_>, dst: Slot, offset: u32) {
    let address = u64::from(cx.frame + offset);
    // SAFETY: `dst` is a slot of the running window, `lane` one of the mask's.
    lanes(&cx.mask.lanes).for_each(|lane| unsafe { write(cx.regs, dst, lane, address) });
}

/// `cvta` between windows and generic addresses.
///
/// # Safety
/// As for [`read_special`].
pub unsafe fn convert_address(cx: &Cx<'_>, space: Space, to_generic: bool, dst: Slot, src: Slot) {
    for lane in lanes(&cx.mask.lanes) {
        let base = match space {
            Space::Shared => cx.block.cluster_shared(),
            Space::Local => cx.local(lane),
            Space::Param => cx.block.param,
            Space::Generic | Space::Global | Space::Const => 0,
        };
        // SAFETY: `src` and `dst` are slots of the running window, `lane` is one of the mask's.
        unsafe {
            let x = read(cx.regs, src, lane);
            let y = if to_generic {
                base.wrapping_add(x)
            } else {
                x.wrapping_sub(base)
            };
            write(cx.regs, dst, lane, y);
        }
    }
}

/// `isspacep`
///
/// # Safety
/// As for [`read_special`].
pub unsafe fn is_space(cx: &Cx<'_>, space: Space, dst: Slot, src: Slot) {
    for lane in lanes(&cx.mask.lanes) {
        // SAFETY: `src` and `dst` are slots of the running window, `lane` is one of the mask's.
        unsafe {
            let x = read(cx.regs, src, lane);
            write(cx.regs, dst, lane, u64::from(in_space(cx, space, x)));
        }
    }
}

/// Whether a range lies in shared memory of the running block, or of another one of its cluster that has not ended.
pub fn is_shared(block: &Env<'_>, address: u64, bytes: u64) -> bool {
    let shared = u32::try_from(address.wrapping_sub(block.cluster_shared()));
    shared.is_ok_and(|shared| block.in_cluster(shared, bytes).is_ok())
}

/// What lies at `address` in its block's shared window, in the block of this rank of the cluster; `None`: there is none, or
/// it has ended.
pub fn in_block(block: &Env<'_>, address: u64, rank: u32) -> Option<u64> {
    let there = peers::address_in(block.shared_address(address)?, rank);
    block.in_cluster(there, 0).ok()
}

fn in_space(cx: &Cx<'_>, space: Space, x: u64) -> bool {
    let b = cx.block;
    let within = |base: u64, len: u64| x.wrapping_sub(base) < len;
    let shared = within(b.shared, u64::from(b.shared_window));
    let local = within(b.local, b.local_bytes);
    let param = within(b.param, u64::from(b.param_bytes));
    let constant = || b.view.rights(x) == READ;
    match space {
        Space::Shared => shared,
        Space::Local => local,
        Space::Param => param,
        Space::Const => constant(),
        Space::Global => b.shared_address(x).is_none() && !local && !param && !constant(),
        Space::Generic => true,
    }
}
