//! `wmma.load`, `wmma.store`: a tile in memory and its fragment. Which lane holds which element is the implementation's to
//! say (PTX ISA, Matrix Fragments for WMMA): here as `mma` has it, tile by tile, as sm_80 and later do.

use super::fragment::{self, Corner};
use super::{access, put, put_double};
use crate::isa::joint::matrix::Tile;
use crate::isa::lanes::WARP;
use crate::simt::machine::access::{self, Lanes, MemOp};
use crate::simt::machine::context::Cx;
use crate::simt::machine::observe::Direction;
use crate::simt::machine::slots::{Slot, read};
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
        bits => ((32 >> bits.trailing_zeros()).max(1), u32::from(bits)),
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
    let needed = tile.needed();
    for (register, dst) in operands.dst.iter().enumerate() {
        if dst.is_none() {
            continue;
        }
        let mut values = [0u64; WARP];
        for walk in walks(tile, register % needed) {
            // SAFETY: all elements lie in their lines, which were checked.
            unsafe {
                match (walk.bits, walk.is_whole_group()) {
                    (8, _) => walk.over(&at, |lane, from| {
                        values[lane] |= u64::from((from as *const u8).read()) << walk.shift
                    }),
                    (16, _) => walk.over(&at, |lane, from| {
                        values[lane] |= u64::from((from as *const u16).read_unaligned()) << walk.shift;
                    }),
                    (32, true) => walk.over_groups(&at, |group, from| {
                        let words = (from as *const [u32; fragment::GROUP]).read_unaligned();
                        values.as_chunks_mut().0[group] = words.map(u64::from);
                    }),
                    (32, false) => walk.over(&at, |lane, from| {
                        values[lane] = (from as *const u32).read_unaligned().into()
                    }),
                    (_, true) => walk.over_groups(&at, |group, from| {
                        values.as_chunks_mut().0[group] = (from as *const [u64; fragment::GROUP]).read_unaligned();
                    }),
                    (_, false) => walk.over(&at, |lane, from| values[lane] = (from as *const u64).read_unaligned()),
                }
            }
        }
        if parts(tile).1 == 64 {
            // SAFETY: the destination is a slot of 64 bits of the running window.
            unsafe { put_double(cx, *dst, w, &values) };
        } else {
            // SAFETY: the destination is a slot of 32 bits of the running window.
            unsafe { put(cx, *dst, w, &values.map(|value| value as u32)) };
        }
    }
    true
}

/// Where all lanes have one element of a register, or several that lie side by side.
struct Walk {
    /// Lane 0's: the line, and the byte in it.
    first: (usize, usize),
    /// How much further on the next group of lanes is, and the next lane of a group.
    by_group: (usize, usize),
    by_member: (usize, usize),
    /// How many bits lie there, and where they are in the register.
    bits: u32,
    shift: u32,
}

impl Walk {
    /// Each lane, and where it has what it has.
    #[inline(always)]
    fn over(&self, at: &Lanes, mut each: impl FnMut(usize, u64)) {
        for group in 0..WARP / fragment::GROUP {
            for member in 0..fragment::GROUP {
                let line = self.first.0 + group * self.by_group.0 + member * self.by_member.0;
                let along = self.first.1 + group * self.by_group.1 + member * self.by_member.1;
                each(group * fragment::GROUP + member, at[line] + along as u64);
            }
        }
    }

    /// Whether what the lanes of a group have follows one another in memory.
    fn is_whole_group(&self) -> bool {
        self.by_member == (0, self.bits as usize / 8)
    }

    /// Each group of lanes, and where its first one has what it has.
    #[inline(always)]
    fn over_groups(&self, at: &Lanes, mut each: impl FnMut(usize, u64)) {
        for group in 0..WARP / fragment::GROUP {
            let along = self.first.1 + group * self.by_group.1;
            each(group, at[self.first.0 + group * self.by_group.0] + along as u64);
        }
    }
}

/// The elements of a register: one after the other, or all at once where they follow each other in memory.
#[inline(always)]
fn walks(tile: Tile, register: usize) -> impl Iterator<Item = Walk> {
    let (count, width) = parts(tile);
    // The line, and the byte in it.
    let in_line = move |Corner { row, column }: Corner| {
        let (line, along) = if tile.row_major { (row, column) } else { (column, row) };
        (line, along * usize::from(tile.bits) / 8)
    };
    let place = move |part| in_line(fragment::first_corner(tile, register, part));
    let (line, along) = place(0);
    let is_whole = (1..count).all(|part| place(part) == (line, along + part * width as usize / 8));
    let (by_group, by_member) = fragment::steps(tile);
    let count = if is_whole { 1 } else { count };
    (0..count).map(move |part| Walk {
        first: place(part),
        by_group: in_line(by_group),
        by_member: in_line(by_member),
        bits: if is_whole && width < 32 { 32 } else { width },
        shift: width * part as u32 % 64,
    })
}

/// # Safety
/// As for [`load`].
pub unsafe fn store<const WATCHED: bool>(tile: Tile, operands: &Operands, cx: &mut Cx<'_>, w: usize) -> bool {
    let op = access(operands, cx);
    // SAFETY: the operands are slots of the running window.
    let Some(at) = (unsafe { lines::<WATCHED>(tile, (&op, operands.src[0]), cx, w, Direction::Write) }) else {
        return false;
    };
    for (register, &slot) in operands.src[1..].iter().take(tile.needed()).enumerate() {
        // SAFETY: the source is a slot of the running window.
        let values: [u64; WARP] = std::array::from_fn(|lane| unsafe { read(cx.regs, slot, w * WARP + lane) });
        for walk in walks(tile, register) {
            // SAFETY: all elements lie in their lines, which were checked.
            unsafe {
                match walk.bits {
                    8 => walk.over(&at, |lane, to| {
                        (to as *mut u8).write((values[lane] >> walk.shift) as u8)
                    }),
                    16 => walk.over(&at, |lane, to| {
                        (to as *mut u16).write_unaligned((values[lane] >> walk.shift) as u16);
                    }),
                    32 => walk.over(&at, |lane, to| (to as *mut u32).write_unaligned(values[lane] as u32)),
                    _ => walk.over(&at, |lane, to| (to as *mut u64).write_unaligned(values[lane])),
                }
            }
        }
    }
    true
}
