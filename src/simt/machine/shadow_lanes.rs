//! Lanes of shadows in registers, and a few bytes of that of memory, for whoever makes shadows of others: most are zero, which is
//! looked for first.

use crate::isa::lanes::{WARP, Width};
use crate::memory::shadow::Shadow as Memory;
use crate::ptx::ast::Span;

use super::context::Cx;
use super::observe::Undefined;
use super::slots::{Slot, bits};

/// Tells whoever looks on of undefined bits.
#[cold]
pub fn tell(cx: &Cx<'_>, span: Span, event: &Undefined<'_>) {
    if let Some(observer) = cx.block.env.watch().observer() {
        observer.undefined(&cx.who(span), event);
    }
}

/// The values of one warp's lanes, of which 128 bits count as two halves or'ed.
pub type Values = [u64; WARP];

/// # Safety
/// The slot lies in the running window.
#[inline(always)]
pub unsafe fn gather(cx: &Cx<'_>, slot: Slot, w: usize) -> Values {
    // SAFETY: as the caller promises; a slot has 32 values a warp, a predicate a word.
    unsafe {
        let at = cx.regs.add(slot.offset as usize);
        match slot.width {
            Width::Pred => {
                let word = *(at as *const u32).add(w);
                std::array::from_fn(|i| u64::from(word >> i & 1))
            }
            Width::B16 => (*(at as *const [u16; WARP]).add(w)).map(u64::from),
            Width::B32 => (*(at as *const [u32; WARP]).add(w)).map(u64::from),
            Width::B64 => *(at as *const [u64; WARP]).add(w),
            Width::B128 => (*(at as *const [u128; WARP]).add(w)).map(|value| value as u64 | (value >> 64) as u64),
        }
    }
}

/// Writes lanes of one warp, truncated to the slot's width; of 128 bits both halves become the same.
///
/// # Safety
/// The slot lies in the running window.
#[inline(always)]
pub unsafe fn scatter(cx: &Cx<'_>, slot: Slot, w: usize, active: u32, values: &Values) {
    // SAFETY: as the caller promises; a slot has 32 values a warp, a predicate a word.
    unsafe {
        let at = cx.regs.add(slot.offset as usize);
        match slot.width {
            Width::Pred => {
                let word = (at as *mut u32).add(w);
                let mut set = 0;
                for (i, value) in values.iter().enumerate() {
                    set |= ((value & 1) as u32) << i;
                }
                *word = *word & !active | set & active;
            }
            Width::B16 => {
                let to = &mut *(at as *mut [u16; WARP]).add(w);
                bits(active).for_each(|i| to[i] = values[i] as u16);
            }
            Width::B32 => {
                let to = &mut *(at as *mut [u32; WARP]).add(w);
                bits(active).for_each(|i| to[i] = values[i] as u32);
            }
            Width::B64 => {
                let to = &mut *(at as *mut [u64; WARP]).add(w);
                bits(active).for_each(|i| to[i] = values[i]);
            }
            Width::B128 => {
                let to = &mut *(at as *mut [u128; WARP]).add(w);
                bits(active).for_each(|i| to[i] = u128::from(values[i]) << 64 | u128::from(values[i]));
            }
        }
    }
}

/// Lanes of `active` in which the slot is not zero.
///
/// # Safety
/// The slot lies in the running window.
#[inline(always)]
pub unsafe fn nonzero(cx: &Cx<'_>, slot: Slot, w: usize, active: u32) -> u32 {
    // SAFETY: as the caller promises; a slot has 32 values a warp, a predicate a word. Most often none is set, which is seen
    // soonest of all together.
    unsafe {
        let at = cx.regs.add(slot.offset as usize);
        if slot.width == Width::Pred {
            return *(at as *const u32).add(w) & active;
        }
        let bytes = slot.width.warp_bytes() as usize;
        let words = std::slice::from_raw_parts((at as *const u64).add(w * bytes / 8), bytes / 8);
        if words.iter().fold(0, |all, word| all | word) == 0 {
            return 0;
        }
        let values = gather(cx, slot, w);
        let mut set = 0;
        for (i, value) in values.iter().enumerate() {
            set |= u32::from(*value != 0) << i;
        }
        set & active
    }
}

/// Sets lanes to zero.
///
/// # Safety
/// The slot lies in the running window.
#[inline(always)]
pub unsafe fn clear(cx: &Cx<'_>, slot: Slot, w: usize, active: u32) {
    // SAFETY: as the caller promises.
    unsafe {
        if active == u32::MAX {
            let bytes = slot.width.warp_bytes() as usize;
            std::ptr::write_bytes(cx.regs.add(slot.offset as usize + w * bytes), 0, bytes);
        } else {
            scatter(cx, slot, w, active, &[0; WARP]);
        }
    }
}

/// Bits that a slot of a width has.
pub fn ones(width: Width) -> u64 {
    match width {
        Width::Pred => 1,
        Width::B16 => 0xffff,
        Width::B32 => 0xffff_ffff,
        Width::B64 | Width::B128 => u64::MAX,
    }
}

/// Bits of up to sixteen bytes that nobody has written. Rows and elements are aligned, so that they lie in one page.
pub fn missing(memory: &Memory, at: u64, bytes: usize) -> u128 {
    if !memory.tracks_both_ends(at, bytes as u64) {
        return 0;
    }
    let mut written = [u8::MAX; 16];
    // SAFETY: the bytes lie in the arena, of each byte of which there is a shadow, and there are sixteen at most.
    unsafe { std::ptr::copy_nonoverlapping(memory.of(at), written.as_mut_ptr(), bytes) };
    !u128::from_le_bytes(written)
}

/// Likewise: these bits are missing from now on, and no others.
pub fn leave(memory: &Memory, at: u64, bytes: usize, missing: u128) {
    if memory.tracks_both_ends(at, bytes as u64) {
        let written = (!missing).to_le_bytes();
        // SAFETY: the bytes lie in the arena, of each byte of which there is a shadow, and there are sixteen at most.
        unsafe { std::ptr::copy_nonoverlapping(written.as_ptr(), memory.of(at), bytes) };
        if missing != 0 {
            memory.has_missing(at, bytes as u64);
        }
    }
}
