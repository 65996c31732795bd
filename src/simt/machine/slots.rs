//! One lane of a register, and lanes of a mask.
//!
//! **Windows.** Registers are slots of a window: memory that nobody else reaches while its bundle runs, with room in
//! each slot for one value a lane (predicates: a bit), aligned to the value's width, and padded so that predicates of
//! a whole bundle can always be read. That operands are slots of the running window is what a tier promises of all that it
//! passes beside [`Cx::regs`](super::Cx): its compiler checks it of the code that it makes (`interp/compile/check.rs`),
//! and a frame keeps code and window together. `Cx::mask` has no lanes but the bundle's. `SAFETY` comments in this room
//! count on these two.

use crate::isa::lanes::{MAX_WARPS, WARP, Width};
use crate::program::Value;

/// A place in the window of registers: byte offset, and width. What a compiler gives is for a bundle of one warp; offsets
/// scale with the bundle's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    pub offset: u32,
    pub width: Width,
}

/// Set bits, ascending.
pub fn bits(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let i = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            i
        })
    })
}

/// Active lanes of a bundle, ascending.
pub fn lanes(mask: &[u32; MAX_WARPS]) -> impl Iterator<Item = usize> + use<> {
    let mask = *mask;
    (0..MAX_WARPS * WARP).filter(move |l| mask[l / WARP] >> (l % WARP) & 1 == 1)
}

/// The first active lane of a bundle.
pub fn first_lane(mask: &[u32; MAX_WARPS]) -> usize {
    mask.iter()
        .enumerate()
        .find(|(_, m)| **m != 0)
        .map_or(0, |(w, m)| w * 32 + m.trailing_zeros() as usize)
}

/// One lane of an integer slot, zero-extended.
///
/// # Safety
/// The slot lies in the window at `regs`.
pub unsafe fn read(regs: *mut u8, slot: Slot, lane: usize) -> u64 {
    // SAFETY: the slot has a value for each lane of the window at `regs`, as the caller promises, and `lane` is one of
    // them.
    unsafe {
        let at = regs.add(slot.offset as usize);
        match slot.width {
            Width::Pred => u64::from(*(at as *const u32).add(lane / WARP) >> (lane % WARP) & 1),
            Width::B16 => u64::from(*(at as *const u16).add(lane)),
            Width::B32 => u64::from(*(at as *const u32).add(lane)),
            Width::B64 => *(at as *const u64).add(lane),
            Width::B128 => *(at as *const u128).add(lane) as u64,
        }
    }
}

/// One lane of a slot of 128 bits.
///
/// # Safety
/// As for [`read`]; the slot is of that width.
pub unsafe fn read_wide(regs: *mut u8, slot: Slot, lane: usize) -> u128 {
    debug_assert_eq!(slot.width, Width::B128);
    // SAFETY: the slot has 16 bytes for each lane of the window at `regs`, aligned to that, as the caller promises.
    unsafe { *(regs.add(slot.offset as usize) as *const u128).add(lane) }
}

/// Writes one lane of an integer slot, truncated to its width.
///
/// # Safety
/// As for [`read`].
pub unsafe fn write(regs: *mut u8, slot: Slot, lane: usize, value: u64) {
    // SAFETY: the slot has a value for each lane of the window at `regs`, as the caller promises, and nobody else holds
    // a reference into the window.
    unsafe {
        let at = regs.add(slot.offset as usize);
        match slot.width {
            Width::Pred => {
                let word = (at as *mut u32).add(lane / WARP);
                *word = *word & !(1 << (lane % WARP)) | ((value & 1) as u32) << (lane % WARP);
            }
            Width::B16 => *(at as *mut u16).add(lane) = value as u16,
            Width::B32 => *(at as *mut u32).add(lane) = value as u32,
            Width::B64 => *(at as *mut u64).add(lane) = value,
            Width::B128 => *(at as *mut u128).add(lane) = u128::from(value),
        }
    }
}

/// One lane of a slot from one window to another.
///
/// # Safety
/// The slot lies in both windows, which are two.
pub unsafe fn copy(to: *mut u8, from: *mut u8, slot: Slot, lane: usize) {
    // SAFETY: both windows have the slot, as the caller promises, with a value for each lane; one of 128 bits is aligned to
    // that.
    unsafe {
        match slot.width {
            Width::B128 => {
                let value = read_wide(from, slot, lane);
                *(to.add(slot.offset as usize) as *mut u128).add(lane) = value;
            }
            Width::Pred | Width::B16 | Width::B32 | Width::B64 => write(to, slot, lane, read(from, slot, lane)),
        }
    }
}

/// An operand in one lane.
///
/// # Safety
/// A slot operand lies in the window at `regs`.
pub unsafe fn value(regs: *mut u8, v: Value<Slot>, lane: usize) -> u32 {
    match v {
        Value::Immediate(x) => x,
        // SAFETY: the operand is a slot of the window at `regs`, as the caller promises of slots.
        Value::Register(slot) => unsafe { read(regs, slot, lane) as u32 },
    }
}

/// A predicate of all warps, perhaps negated.
///
/// # Safety
/// `slot` is a predicate slot of the window at `regs`.
pub unsafe fn predicate(regs: *mut u8, slot: Slot, negated: bool) -> [u32; MAX_WARPS] {
    let flip = if negated { u32::MAX } else { 0 };
    // SAFETY: a predicate has a word for each warp, and windows are padded so that words of a whole bundle can be read
    // whatever the bundle's width.
    std::array::from_fn(|w| unsafe { *(regs.add(slot.offset as usize) as *const u32).add(w) } ^ flip)
}
