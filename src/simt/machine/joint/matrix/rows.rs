//! `ldmatrix`, `stmatrix`, `movmatrix` (PTX ISA, the sections of these names): small matrices whose rows lie where lanes
//! say. Where the manual has figures alone, layouts are those that CUTLASS counts on (`copy_traits_sm100.hpp`).

use super::{Word, access, put, word};
use crate::isa::joint::matrix::{Packing, Rows};
use crate::isa::lanes::WARP;
use crate::simt::machine::access::{self, Lanes};
use crate::simt::machine::context::Cx;
use crate::simt::machine::observe::Direction;
use crate::simt::machine::step::Operands;

/// A row, a byte an element of eight bits or fewer.
pub(super) type Row = [u8; 16];

/// # Safety
/// Slots of `operands` lie in the running window, which has warp `w`.
pub unsafe fn load<const WATCHED: bool>(rows: Rows, operands: &Operands, cx: &mut Cx<'_>, w: usize) -> bool {
    let op = access(operands, cx);
    let each = rows.rows(true);
    let mut at: Lanes = [0; WARP];
    // SAFETY: the address's register is a slot of the running window.
    let good = unsafe {
        let named = named(rows, each);
        access::lanes::<WATCHED>(cx, &op, w, named, rows.packing.bytes(), Direction::Read, &mut at)
    };
    if !good {
        return false;
    }
    for matrix in 0..usize::from(rows.count) {
        let mut all = [[0; 16]; 16];
        for (row, at) in all.iter_mut().zip(&at[matrix * each..][..each]) {
            // SAFETY: the range was checked for the bytes of a row.
            *row = unpacked(rows.packing, unsafe { bits(rows.packing, *at) });
        }
        for half in 0..each / 8 {
            let values = std::array::from_fn(|lane| u32::from_le_bytes(gathered(rows, &all, lane, half)));
            // SAFETY: destinations are slots of 32 bits of the running window.
            unsafe { put(cx, operands.dst[matrix * each / 8 + half], w, &values) };
        }
    }
    true
}

/// Lanes whose addresses count.
pub(super) fn named(rows: Rows, each: usize) -> u32 {
    u32::MAX >> (WARP - usize::from(rows.count) * each)
}

/// # Safety
/// As many bytes as a row has can be read at `at`.
unsafe fn bits(packing: Packing, at: u64) -> u128 {
    match packing.bytes() {
        // SAFETY: the row has eight bytes.
        8 => u128::from(unsafe { (at as *const u64).read_unaligned() }),
        // SAFETY: the row has sixteen bytes.
        _ => unsafe { (at as *const u128).read_unaligned() },
    }
}

/// The elements of a row, from its bits in memory.
pub(super) fn unpacked(packing: Packing, row: u128) -> Row {
    match packing {
        Packing::SignedFours => {
            std::array::from_fn(|i| ((row >> (4 * i)) as i8) << 4 >> 4).map(|element| element as u8)
        }
        Packing::Sixes => std::array::from_fn(|i| (row >> (6 * i)) as u8 & 0x3f),
        Packing::Fours => std::array::from_fn(|i| (row >> (4 * i)) as u8 & 0xf),
        Packing::Halves | Packing::Bytes => row.to_le_bytes(),
    }
}

/// What a lane's register holds of a matrix.
pub(super) fn gathered(rows: Rows, all: &[Row; 16], lane: usize, half: usize) -> [u8; 4] {
    std::array::from_fn(|byte| {
        let (row, column) = source(rows, lane, half, byte);
        all[row][column]
    })
}

/// Row and column of a byte of a lane's register that is loaded: four lanes have a row each, or with `.trans` a column.
#[inline(always)]
pub(super) fn source(rows: Rows, lane: usize, half: usize, byte: usize) -> (usize, usize) {
    let (group, of_group) = (lane / 4, lane % 4);
    match (rows.packing, rows.transposed) {
        (Packing::Halves, true) => (2 * of_group + byte / 2, 2 * group + byte % 2),
        // A column of sixteen, of the left or the right half.
        (_, true) => (4 * of_group + byte, 8 * half + group),
        (_, false) => (group, 4 * of_group + byte),
    }
}

/// Row and column of a byte of a lane's register that is stored.
#[inline(always)]
pub(super) fn target(rows: Rows, lane: usize, byte: usize) -> (usize, usize) {
    let (group, of_group) = (lane / 4, lane % 4);
    match (rows.packing, rows.transposed) {
        (Packing::Halves, true) => (2 * of_group + byte / 2, 2 * group + byte % 2),
        // Bytes of an accumulator's fragment: two columns of row `group`, two of the row eight further on.
        (_, true) => (2 * of_group + byte % 2, group + 8 * (byte / 2)),
        (_, false) => (group, 4 * of_group + byte),
    }
}

/// # Safety
/// As for [`load`].
pub unsafe fn store<const WATCHED: bool>(rows: Rows, operands: &Operands, cx: &mut Cx<'_>, w: usize) -> bool {
    let op = access(operands, cx);
    let each = rows.rows(false);
    let mut at: Lanes = [0; WARP];
    // SAFETY: the address's register is a slot of the running window.
    let good = unsafe {
        let named = named(rows, each);
        access::lanes::<WATCHED>(cx, &op, w, named, rows.packing.bytes(), Direction::Write, &mut at)
    };
    if !good {
        return false;
    }
    for matrix in 0..usize::from(rows.count) {
        // SAFETY: the sources are slots of 32 bits of the running window, which nobody writes meanwhile.
        let values = unsafe { word(cx, operands.src[matrix], w) };
        let mut all = [[0; 16]; 8];
        for (lane, value) in values.iter().enumerate() {
            for (byte, value) in value.to_le_bytes().into_iter().enumerate() {
                let (row, column) = target(rows, lane, byte);
                all[row][column] = value;
            }
        }
        for (row, at) in all.iter().zip(&at[matrix * each..][..each]) {
            // SAFETY: the range was checked for the sixteen bytes of a row.
            unsafe { (*at as *mut Row).write_unaligned(*row) };
        }
    }
    true
}

/// `movmatrix`: eight rows of eight halves become columns.
///
/// # Safety
/// As for [`load`].
pub unsafe fn transpose(operands: &Operands, cx: &Cx<'_>, w: usize) {
    // SAFETY: the source is a slot of 32 bits of the running window; it is copied before anything is written.
    let rows: Word = unsafe { *word(cx, operands.src[0], w) };
    let half = |row: usize, column: usize| rows[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff;
    let columns = std::array::from_fn(|lane| {
        let (group, of_group) = (lane / 4, lane % 4);
        half(2 * of_group, group) | half(2 * of_group + 1, group) << 16
    });
    // SAFETY: the destination is a slot of 32 bits of the running window.
    unsafe { put(cx, operands.dst[0], w, &columns) };
}
