//! Which lane holds which element of a matrix (PTX ISA, Matrix Fragments for mma.*; Matrix Fragments for WMMA: there it is the
//! implementation's to say).
//!
//! One pattern makes all fragments. Four lanes with the same `lane / 4`, the *group*, share a row of A, C or D, or a
//! column of B. Along k a register is a word of neighbouring elements, of which the four lanes have one after the
//! other; A has registers by turns for rows `group` and `group + 8`. Accumulators are pairs of neighbours in a row.
//! Larger tiles are made of these, sixteen rows or eight columns at a time.

use super::matrix::{Role, Tile};

/// A place in a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corner {
    pub row: usize,
    pub column: usize,
}

/// Lanes that share a row of A, or a column of B.
pub const GROUP: usize = 4;

/// Row of A, or column of B, and word along k of a register in lane 0: lane `l` has them `l / 4` and `l % 4` further on.
/// `words`: of a row.
#[inline(always)]
pub fn multiplicand(rows: usize, words: usize, register: usize) -> (usize, usize) {
    // Registers for eight rows side by side, in a tile of sixteen.
    let side = if rows >= 16 { 2 } else { 1 };
    let each = side * words / GROUP;
    // All of these are powers of two, by which dividing is cheap; how many they are is known when the program runs.
    debug_assert!(each.is_power_of_two());
    let (tile, within) = (register >> each.trailing_zeros(), register & (each - 1));
    (tile * 8 * side + within % side * 8, (within >> (side - 1)) * GROUP)
}

/// Row and column of an element of an accumulator in lane 0: lane `l` has them `l / 4` and `2 · (l % 4)` further on.
#[inline(always)]
pub fn accumulator(rows: usize, element: usize) -> Corner {
    let side = if rows >= 16 { 2 } else { 1 };
    let tile = element >> side;
    let (row, column) = if rows > 16 { (16 * tile, 0) } else { (0, 8 * tile) };
    Corner {
        row: row + ((element / 2) & (side - 1)) * 8,
        column: column + element % 2,
    }
}

/// The element `part` of a register of a tile's fragment, or the first one of a word of small ones.
pub fn corner(tile: Tile, register: usize, part: usize, lane: usize) -> Corner {
    let first = first_corner(tile, register, part);
    let (by_group, by_member) = steps(tile);
    let (group, member) = (lane / GROUP, lane % GROUP);
    Corner {
        row: first.row + group * by_group.row + member * by_member.row,
        column: first.column + group * by_group.column + member * by_member.column,
    }
}

/// Elements of a register of 32 bits; of wider ones one.
#[inline(always)]
pub fn elements(tile: Tile) -> usize {
    (32 >> tile.bits.trailing_zeros()).max(1)
}

/// What lane 0 has in a register.
#[inline(always)]
pub fn first_corner(tile: Tile, register: usize, part: usize) -> Corner {
    let each = elements(tile);
    let words = |columns: usize| columns >> each.trailing_zeros();
    match tile.role {
        Role::A => {
            let (row, word) = multiplicand(tile.rows(), words(tile.columns()), register);
            Corner {
                row,
                column: word * each + part,
            }
        }
        Role::B => {
            // Tiles of eight columns, whatever their number.
            let (column, word) = multiplicand(8, words(tile.rows()), register);
            Corner {
                row: word * each + part,
                column,
            }
        }
        Role::C => {
            let each = if tile.bits == 16 { 2 } else { 1 };
            accumulator(tile.rows(), register * each + part)
        }
    }
}

/// How much further on the next group of lanes is, and the next lane of a group.
#[inline(always)]
pub fn steps(tile: Tile) -> (Corner, Corner) {
    let each = elements(tile);
    let at = |row, column| Corner { row, column };
    match tile.role {
        Role::A => (at(1, 0), at(0, each)),
        Role::B => (at(0, 1), at(each, 0)),
        Role::C => (at(1, 0), at(0, 2)),
    }
}
