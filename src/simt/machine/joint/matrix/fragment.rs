//! Which lane holds which element (PTX ISA, Matrix Fragments for mma.*; Sparse matrix storage).
//!
//! One pattern makes all fragments. Four lanes with the same `lane / 4`, the *group*, share a row of A, C or D, or a
//! column of B. Along k a register is a word of neighbouring elements, of which the four lanes have one after the
//! other; A has registers by turns for rows `group` and `group + 8`. Accumulators are pairs of neighbours in a row.
//! Larger tiles are made of these, sixteen rows or eight columns at a time.

use super::Word;
use crate::isa::joint::matrix::{Multiply, Role, Tile};
use crate::isa::lanes::WARP;
use crate::isa::mma::{Accumulator, Element, Metadata, stride};

/// A place in a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corner {
    pub row: usize,
    pub column: usize,
}

/// Lanes that share a row of A, or a column of B.
const GROUP: usize = 4;

/// Row of A, or column of B, and word along k of a register in lane 0: lane `l` has them `l / 4` and `l % 4` further on.
/// `words`: of a row.
#[inline(always)]
fn multiplicand(rows: usize, words: usize, register: usize) -> (usize, usize) {
    // Registers for eight rows side by side, in a tile of sixteen.
    let side = if rows >= 16 { 2 } else { 1 };
    let each = side * words / GROUP;
    let (tile, within) = (register / each, register % each);
    (tile * 8 * side + within % side * 8, within / side * GROUP)
}

/// Row and column of an element of an accumulator in lane 0: lane `l` has them `l / 4` and `2 · (l % 4)` further on.
#[inline(always)]
fn accumulator(rows: usize, element: usize) -> Corner {
    let side = if rows >= 16 { 2 } else { 1 };
    let tile = element / (2 * side);
    let (row, column) = if rows > 16 { (16 * tile, 0) } else { (0, 8 * tile) };
    Corner {
        row: row + element / 2 % side * 8,
        column: column + element % 2,
    }
}

/// The element `part` of a register of a tile's fragment, or the first one of a word of small ones.
pub fn corner(tile: Tile, register: usize, part: usize, lane: usize) -> Corner {
    let bits = usize::from(tile.bits);
    let each = (32 / bits).max(1);
    let (group, of_group) = (lane / GROUP, lane % GROUP);
    match tile.role {
        Role::A => {
            let (row, word) = multiplicand(tile.rows(), tile.columns() / each, register);
            Corner {
                row: row + group,
                column: (word + of_group) * each + part,
            }
        }
        Role::B => {
            // Tiles of eight columns, whatever their number.
            let (column, word) = multiplicand(8, tile.rows() / each, register);
            Corner {
                row: (word + of_group) * each + part,
                column: column + group,
            }
        }
        Role::C => {
            let each = if bits == 16 { 2 } else { 1 };
            let first = accumulator(tile.rows(), register * each + part);
            Corner {
                row: first.row + group,
                column: first.column + 2 * of_group,
            }
        }
    }
}

/// Codes of elements in a register, as `Multiply::container` bits hold them.
#[derive(Clone, Copy)]
struct Codes {
    each: usize,
    bits: usize,
    shift: u32,
    mask: u32,
}

fn codes(op: &Multiply, element: Element) -> Codes {
    let bits = match usize::from(op.container) {
        // Bits stay together, a word a code.
        1 => 32,
        bits => bits,
    };
    let own = element.bits();
    Codes {
        each: (32 / bits).max(1),
        bits,
        // Four bits in a byte lie in its middle (PTX ISA, mma, .kind::f8f6f4).
        shift: if bits == 8 && element == Element::E2m1 { 2 } else { 0 },
        mask: if own >= 32 { u32::MAX } else { (1 << own) - 1 },
    }
}

/// Columns of A that have elements, in codes.
pub fn depth(op: &Multiply) -> usize {
    let k = usize::from(op.shape.k) >> u32::from(op.sparse);
    if op.a == Element::B1 { k / 32 } else { k }
}

/// The codes of A, column by column, from its registers.
pub fn gather_a(op: &Multiply, registers: &[&Word], to: &mut Vec<u32>) {
    let codes = codes(op, op.a);
    let rows = usize::from(op.shape.m);
    let (stride, words) = (stride(rows), depth(op) / codes.each);
    to.resize(depth(op) * stride, 0);
    for (register, lanes) in registers.iter().enumerate() {
        let (row, word) = multiplicand(rows, words, register);
        for of_group in 0..GROUP {
            for part in 0..codes.each {
                let column = &mut to[((word + of_group) * codes.each + part) * stride + row..][..8];
                let down = (part * codes.bits) as u32 + codes.shift;
                for (group, to) in column.iter_mut().enumerate() {
                    *to = lanes[GROUP * group + of_group] >> down & codes.mask;
                }
            }
        }
    }
}

/// The codes of B, column by column, from its registers.
pub fn gather_b(op: &Multiply, registers: &[&Word], to: &mut Vec<u32>) {
    let codes = codes(op, op.b);
    let k = if op.b == Element::B1 {
        op.shape.k / 32
    } else {
        op.shape.k
    };
    let k = usize::from(k);
    to.resize(k * usize::from(op.shape.n), 0);
    for (register, lanes) in registers.iter().enumerate() {
        let (column, word) = multiplicand(8, k / codes.each, register);
        // Four lanes have neighbouring words.
        let run = GROUP * codes.each;
        for (group, words) in lanes.as_chunks::<GROUP>().0.iter().enumerate() {
            let row = &mut to[(column + group) * k + word * codes.each..][..run];
            for (word, to) in words.iter().zip(row.chunks_exact_mut(codes.each)) {
                let mut rest = *word >> codes.shift;
                for to in to {
                    *to = rest & codes.mask;
                    rest = rest.wrapping_shr(codes.bits as u32);
                }
            }
        }
    }
}

/// The codes of C, column by column, from its registers.
pub fn gather_c(op: &Multiply, registers: &[&Word], to: &mut Vec<u32>) {
    let rows = usize::from(op.shape.m);
    let stride = stride(rows);
    to.resize(stride * usize::from(op.shape.n), 0);
    let mut put = |element: usize, lanes: &Word, down: u32, mask: u32| {
        let first = accumulator(rows, element);
        for of_group in 0..GROUP {
            let column = &mut to[(first.column + 2 * of_group) * stride + first.row..][..8];
            for (group, to) in column.iter_mut().enumerate() {
                *to = lanes[GROUP * group + of_group] >> down & mask;
            }
        }
    };
    for (register, lanes) in registers.iter().enumerate() {
        match op.c {
            Accumulator::F16 => {
                put(2 * register, lanes, 0, 0xffff);
                put(2 * register + 1, lanes, 16, 0xffff);
            }
            Accumulator::F32 | Accumulator::S32 | Accumulator::F64 => put(register, lanes, 0, u32::MAX),
        }
    }
}

/// A register of D.
pub fn scatter_d(op: &Multiply, from: &[u32], register: usize) -> Word {
    let rows = usize::from(op.shape.m);
    let stride = stride(rows);
    let mut word = [0; WARP];
    let mut add = |element: usize, up: u32| {
        let first = accumulator(rows, element);
        for of_group in 0..GROUP {
            let column = &from[(first.column + 2 * of_group) * stride + first.row..][..8];
            for (group, value) in column.iter().enumerate() {
                word[GROUP * group + of_group] |= value << up;
            }
        }
    };
    match op.d {
        Accumulator::F16 => {
            add(2 * register, 0);
            add(2 * register + 1, 16);
        }
        Accumulator::F32 | Accumulator::S32 | Accumulator::F64 => add(register, 0),
    }
    word
}

/// Row and column of a register of A, and column and row of one of B, of `f64`.
pub fn double(rows: usize, depth: usize, register: usize, lane: usize) -> (usize, usize) {
    let (row, word) = multiplicand(rows, depth, register);
    (row + lane / GROUP, word + lane % GROUP)
}

/// Where an element of an accumulator of `f64` lies.
pub fn double_accumulator(rows: usize, register: usize, lane: usize) -> Corner {
    let first = accumulator(rows, register);
    Corner {
        row: first.row + lane / GROUP,
        column: first.column + 2 * (lane % GROUP),
    }
}

/// Metadata of each row, from the register that some lanes of each group of four have, as `selector` says (PTX ISA,
/// Sparse matrix storage; CUTLASS, `reorder_meta`).
pub fn metadata(op: &Multiply, of: Metadata, lanes: &Word, selector: u32) -> [u128; 16] {
    let bits = of.row(op.shape.k.into());
    let selector = selector as usize;
    // Elements of 16 bits and more: a lane has 16 bits for each of two rows; of fewer: 32 bits for one.
    let wide = matches!(op.a, Element::F16 | Element::Bf16 | Element::Tf32);
    std::array::from_fn(|row| {
        let (group, second) = (row % 8, row / 8);
        let of_lane = |lane: usize| u128::from(lanes[(4 * group + lane) % WARP]);
        let half = |lane| of_lane(lane) >> (16 * second) & 0xffff;
        match (wide, bits) {
            (true, 16) => half(selector % 4),
            (true, _) => half(2 * (selector % 2)) | half(2 * (selector % 2) + 1) << 16,
            (false, 32) => of_lane(2 * (selector % 2) + second),
            (false, _) => of_lane(second) | of_lane(second + 2) << 32,
        }
    })
}

/// The factors of rows of A: of each, `factors` bytes of a register, from byte `byte` on, of the lane that the row has in
/// the pair `pair` of its group (PTX ISA, mma, Block scaling).
pub fn row_scales(lanes: &Word, (byte, pair): (u32, u32), factors: usize, to: &mut Vec<u8>) {
    to.clear();
    for row in 0..16 {
        let lane = 4 * (row % 8) + 2 * (pair as usize % 2) + row / 8;
        to.extend((0..factors).map(|factor| lanes[lane].to_le_bytes()[(byte as usize + factor) % 4]));
    }
}

/// The factors of columns of B, likewise, of lane `lane` of each group.
pub fn column_scales(lanes: &Word, (byte, lane): (u32, u32), factors: usize, to: &mut Vec<u8>) {
    to.clear();
    for column in 0..8 {
        let lane = 4 * column + lane as usize % 4;
        to.extend((0..factors).map(|factor| lanes[lane].to_le_bytes()[(byte as usize + factor) % 4]));
    }
}
