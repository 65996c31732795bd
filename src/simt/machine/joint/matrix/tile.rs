//! `wmma.load`, `wmma.store`: a tile in memory and its fragment. Which lane holds which element is the implementation's to
//! say (PTX ISA, Matrix Fragments for WMMA): here as `mma` has it, tile by tile, as sm_80 and later do.

use super::fragment::{self, Corner};
use super::{access, put};
use crate::isa::joint::matrix::Tile;
use crate::isa::lanes::WARP;
use crate::simt::machine::access::{self, Lanes, MemOp};
use crate::simt::machine::context::Cx;
use crate::simt::machine::observe::Direction;
use crate::simt::machine::slots::{Slot, bits, read, write};
use crate::simt::machine::step::Operands;

/// Where the lines lie, by the access to the first and how many elements apart they are; `None`: a fault is left.
///
/// # Safety
/// The address's register and `stride` are slots of the running window.
pub(super) unsafe fn lines<const WATCHED: bool>(
    tile: Tile,
    (op, stride): (&MemOp, Slot),
    cx: &mut Cx<'_>,
    w: usize,
    direction: Direction,
) -> Option<Lanes> {
    let first = cx.mask.lanes[w].trailing_zeros() as usize % WARP;
    // SAFETY: the stride is a slot of the running window.
    let stride = unsafe { read(cx.regs, stride, w * WARP + first) };
    let width = u64::from(tile.bits);
    let mut offsets = [0; WARP];
    for (i, offset) in offsets.iter_mut().enumerate() {
        *offset = stride.wrapping_mul(i as u64 * width) / 8;
    }
    let bytes = tile.length() as u64 * width / 8;
    let all = u32::MAX >> (WARP - tile.lines());
    // Elements of less than a byte come in words.
    let align = if width < 8 { 4 } else { width / 8 };
    let mut at = [0; WARP];
    // SAFETY: the address's register is a slot of the running window.
    let good = unsafe { access::tile::<WATCHED>(cx, op, w, (all, &offsets), (bytes, align), direction, &mut at) };
    good.then_some(at)
}

/// The byte at which an element, or a word of small ones, begins.
pub(super) fn place(tile: Tile, at: &Lanes, Corner { row, column }: Corner) -> u64 {
    let (line, along) = if tile.row_major { (row, column) } else { (column, row) };
    at[line] + (along * usize::from(tile.bits) / 8) as u64
}

/// Elements in a register, each with bits of its own; of less than a byte: all of them, as one.
pub(super) fn parts(tile: Tile) -> (usize, u32) {
    match tile.bits {
        1 | 4 => (1, 32),
        bits => ((32 / usize::from(bits)).max(1), u32::from(bits)),
    }
}

/// # Safety
/// Slots of `operands` lie in the running window, which has warp `w`.
pub unsafe fn load<const WATCHED: bool>(tile: Tile, operands: &Operands, cx: &mut Cx<'_>, w: usize) -> bool {
    let op = access(operands, cx);
    // SAFETY: the operands are slots of the running window.
    let Some(at) = (unsafe { lines::<WATCHED>(tile, (&op, operands.src[0]), cx, w, Direction::Read) }) else {
        return false;
    };
    let (count, width) = parts(tile);
    let needed = tile.needed();
    for (register, dst) in operands.dst.iter().enumerate() {
        let mut values = [0u64; WARP];
        for (lane, value) in values.iter_mut().enumerate() {
            for part in 0..count {
                let corner = fragment::corner(tile, register % needed, part, lane);
                let from = place(tile, &at, corner);
                // SAFETY: the element lies in its line, which was checked.
                let element = unsafe {
                    match width {
                        8 => u64::from((from as *const u8).read()),
                        16 => u64::from((from as *const u16).read_unaligned()),
                        32 => u64::from((from as *const u32).read_unaligned()),
                        _ => (from as *const u64).read_unaligned(),
                    }
                };
                *value |= element << (width * part as u32);
            }
        }
        let Some(slot) = *dst else { continue };
        if width == 64 {
            // SAFETY: the destination is a slot of the running window.
            bits(cx.mask.lanes[w]).for_each(|lane| unsafe { write(cx.regs, slot, w * WARP + lane, values[lane]) });
        } else {
            // SAFETY: the destination is a slot of 32 bits of the running window.
            unsafe { put(cx, Some(slot), w, &values.map(|value| value as u32)) };
        }
    }
    true
}

/// # Safety
/// As for [`load`].
pub unsafe fn store<const WATCHED: bool>(tile: Tile, operands: &Operands, cx: &mut Cx<'_>, w: usize) -> bool {
    let op = access(operands, cx);
    // SAFETY: the operands are slots of the running window.
    let Some(at) = (unsafe { lines::<WATCHED>(tile, (&op, operands.src[0]), cx, w, Direction::Write) }) else {
        return false;
    };
    let (count, width) = parts(tile);
    for (register, &slot) in operands.src[1..].iter().take(tile.needed()).enumerate() {
        for lane in 0..WARP {
            // SAFETY: the source is a slot of the running window.
            let value = unsafe { read(cx.regs, slot, w * WARP + lane) };
            for part in 0..count {
                let corner = fragment::corner(tile, register, part, lane);
                let to = place(tile, &at, corner);
                let element = value >> (width * part as u32);
                // SAFETY: the element lies in its line, which was checked.
                unsafe {
                    match width {
                        8 => (to as *mut u8).write(element as u8),
                        16 => (to as *mut u16).write_unaligned(element as u16),
                        32 => (to as *mut u32).write_unaligned(element as u32),
                        _ => (to as *mut u64).write_unaligned(element),
                    }
                }
            }
        }
    }
    true
}
