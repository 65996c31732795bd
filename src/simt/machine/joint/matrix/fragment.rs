//! From registers of fragments to matrices, and back; and who holds metadata and factors (PTX ISA, Sparse matrix storage; Block
//! scaling). Which lane holds which element: [`crate::isa::joint::fragment`].

use super::{Double, Word};
pub use crate::isa::joint::fragment::{Corner, GROUP, corner, first_corner, steps};
use crate::isa::joint::fragment::{accumulator, multiplicand};
use crate::isa::joint::matrix::Multiply;
use crate::isa::lanes::WARP;
use crate::isa::mma::{Accumulator, Element, Kernel, Metadata, Vector, stride};

/// Codes of elements in a register, as `Multiply::container` bits hold them.
#[derive(Clone, Copy)]
struct Codes {
    each: usize,
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

/// Row of A, or column of B, of which a lane has codes in a register, and which these are along k.
pub fn codes_of(op: &Multiply, is_b: bool, register: usize, lane: usize) -> (usize, std::ops::Range<usize>) {
    let each = codes(op, if is_b { op.b } else { op.a }).each;
    let (rows, depth) = match is_b {
        true if op.b == Element::B1 => (8, usize::from(op.shape.k) / 32),
        true => (8, op.shape.k.into()),
        false => (op.shape.m.into(), depth(op)),
    };
    let (line, word) = multiplicand(rows, depth / each, register);
    let first = (word + lane % GROUP) * each;
    (line + lane / GROUP, first..first + each)
}

/// Where the codes of an operand's registers go.
pub struct Gather<'a> {
    pub op: &'a Multiply,
    pub registers: &'a [&'a Word],
    pub to: &'a mut Vec<u32>,
    /// Words stay as they are where a product takes them so ([`crate::isa::mma::Product::packs`]).
    pub packed: bool,
}

impl Gather<'_> {
    /// Codes of so many along k, whose registers are those of `rows` lines: from one along k to the next `stride`.
    ///
    /// # Safety
    /// The caller is compiled with the features of `C`.
    #[inline(always)]
    unsafe fn run<C: Vector>(self, element: Element, (rows, stride, depth): (usize, usize, usize)) {
        let codes = codes(self.op, element);
        let each = if self.packed { self.op.product().packs() } else { 1 };
        let of = (self.registers, self.to);
        // SAFETY: the caller's.
        unsafe {
            match codes.each {
                in_word if each == in_word && each > 1 => {
                    gather::<C, 1, true>(of, codes, (rows, stride, depth / each));
                }
                1 => gather::<C, 1, false>(of, codes, (rows, stride, depth)),
                2 => gather::<C, 2, false>(of, codes, (rows, stride, depth)),
                4 => gather::<C, 4, false>(of, codes, (rows, stride, depth)),
                _ => gather::<C, 8, false>(of, codes, (rows, stride, depth)),
            }
        }
    }
}

/// The codes of A, column by column, from its registers.
pub struct GatherA;

impl Kernel for GatherA {
    type Arguments<'a> = Gather<'a>;
    #[inline(always)]
    unsafe fn run<C: Vector>(work: Gather<'_>) {
        let rows = usize::from(work.op.shape.m);
        let (element, shape) = (work.op.a, (rows, stride(rows), depth(work.op)));
        // SAFETY: the caller's.
        unsafe { work.run::<C>(element, shape) }
    }
}

/// The codes of B, row by row, from its registers.
pub struct GatherB;

impl Kernel for GatherB {
    type Arguments<'a> = Gather<'a>;
    #[inline(always)]
    unsafe fn run<C: Vector>(work: Gather<'_>) {
        let depth = match work.op.b {
            Element::B1 => usize::from(work.op.shape.k) / 32,
            _ => work.op.shape.k.into(),
        };
        let (element, shape) = (work.op.b, (HALF, work.op.shape.n.into(), depth));
        // SAFETY: the caller's.
        unsafe { work.run::<C>(element, shape) }
    }
}

/// Where word `at` of four columns of eight rows comes from: lane `4 · row + column`.
const BY_COLUMN: [u32; WARP] = {
    let mut lanes = [0; WARP];
    let mut at = 0;
    while at < WARP {
        lanes[at] = (at % 8 * GROUP + at / 8) as u32;
        at += 1;
    }
    lanes
};

/// Where the word of lane `at` comes from in four columns of eight rows.
const BY_LANE: [u32; WARP] = {
    let mut words = [0; WARP];
    let mut at = 0;
    while at < WARP {
        words[at] = (at % GROUP * 8 + at / GROUP) as u32;
        at += 1;
    }
    words
};

/// Rows of half a tile of sixteen.
const HALF: usize = 8;

/// Codes of A, column by column of `rows`, or of B, row by row, whose registers are those of eight rows: from one to the next `stride`.
///
/// # Safety
/// The caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn gather<C: Vector, const EACH: usize, const WHOLE: bool>(
    (registers, to): (&[&Word], &mut Vec<u32>),
    codes: Codes,
    (rows, stride, depth): (usize, usize, usize),
) {
    to.resize(depth * stride, 0);
    let side = rows.div_ceil(HALF).min(2);
    // With rows that follow those of the one before, a register makes whole columns of a tile.
    for (number, registers) in registers.chunks_exact(side).enumerate() {
        let (row, word) = multiplicand(rows, depth / EACH, number * side);
        let mut halves = [[0; WARP]; 2];
        for (half, lanes) in halves.iter_mut().zip(registers) {
            // SAFETY: the caller's.
            *half = unsafe { C::permute(lanes, &BY_COLUMN) };
        }
        for of_group in 0..GROUP {
            let column = column_of(&halves, of_group);
            for part in 0..EACH {
                let down = (part * 32 / EACH) as u32 + codes.shift;
                let place = ((word + of_group) * EACH + part) * stride + row;
                let to = &mut to[place..][..side * HALF];
                for (to, word) in to.iter_mut().zip(column) {
                    *to = if WHOLE { word } else { word >> down & codes.mask };
                }
            }
        }
    }
}

/// Sixteen rows of a column, from two registers that have eight each.
#[inline(always)]
fn column_of(halves: &[Word; 2], column: usize) -> [u32; 2 * HALF] {
    let mut rows = [0; 2 * HALF];
    rows[..HALF].copy_from_slice(&halves[0][column * HALF..][..HALF]);
    rows[HALF..].copy_from_slice(&halves[1][column * HALF..][..HALF]);
    rows
}

/// The codes of C, column by column, from its registers.
pub struct GatherC;

impl Kernel for GatherC {
    type Arguments<'a> = Gather<'a>;
    #[inline(always)]
    unsafe fn run<C: Vector>(Gather { op, registers, to, .. }: Gather<'_>) {
        let rows = usize::from(op.shape.m);
        let stride = stride(rows);
        to.resize(stride * usize::from(op.shape.n), 0);
        let side = rows.div_ceil(HALF).min(2);
        // Of a pair of columns, and of tiles of sixteen rows the lower half.
        let of_pair = if op.c == Accumulator::F16 { 1 } else { 2 };
        for (number, registers) in registers.chunks_exact(side * of_pair).enumerate() {
            let mut columns = [[0; WARP]; 4];
            for (columns, lanes) in columns.iter_mut().zip(registers) {
                // SAFETY: the caller's.
                *columns = unsafe { C::permute(lanes, &BY_COLUMN) };
            }
            let first = accumulator(rows, 2 * number * side);
            for second in 0..2 {
                let register = if of_pair == 1 { 0 } else { second };
                let halves = [columns[register], columns[register + of_pair * (side - 1)]];
                for of_group in 0..GROUP {
                    let column = column_of(&halves, of_group);
                    let place = (first.column + second + 2 * of_group) * stride + first.row;
                    let to: &mut [u32; 2 * HALF] = to[place..].first_chunk_mut().expect("columns are whole");
                    for (to, word) in to.iter_mut().zip(column) {
                        *to = match op.c {
                            Accumulator::F16 => word >> (16 * second) & 0xffff,
                            Accumulator::F32 | Accumulator::S32 | Accumulator::F64 => word,
                        };
                    }
                }
            }
        }
    }
}

/// An element of the accumulator's registers: of every other column from `first` on, eight rows, into bits from `UP` on that are zero.
#[inline(always)]
fn add_columns<const UP: u32>(words: &mut Word, first: Corner, stride: usize, from: &[u32]) {
    for (of_group, words) in words.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let column = &from[(first.column + 2 * of_group) * stride + first.row..][..8];
        for (word, value) in words.iter_mut().zip(column) {
            *word |= value << UP;
        }
    }
}

/// The registers of D, from its codes: one after the other into `to`.
pub struct ScatterD;

impl Kernel for ScatterD {
    type Arguments<'a> = (&'a Multiply, &'a [u32], &'a mut [Word]);
    #[inline(always)]
    unsafe fn run<C: Vector>((op, from, to): Self::Arguments<'_>) {
        let rows = usize::from(op.shape.m);
        let stride = stride(rows);
        for (register, to) in to.iter_mut().enumerate() {
            let mut words = [0; WARP];
            match op.d {
                Accumulator::F16 => {
                    add_columns::<0>(&mut words, accumulator(rows, 2 * register), stride, from);
                    add_columns::<16>(&mut words, accumulator(rows, 2 * register + 1), stride, from);
                }
                Accumulator::F32 | Accumulator::S32 | Accumulator::F64 => {
                    add_columns::<0>(&mut words, accumulator(rows, register), stride, from);
                }
            }
            // SAFETY: the caller's.
            *to = unsafe { C::permute(&words, &BY_LANE) };
        }
    }
}

/// The elements of A, column by column, of B likewise, and of C, from their registers, in this order.
pub struct GatherDoubles;

impl Kernel for GatherDoubles {
    type Arguments<'a> = (&'a Multiply, [&'a [&'a Double]; 3], &'a mut [Vec<f64>; 3]);
    #[inline(always)]
    unsafe fn run<C: Vector>((op, [a, b, c], [to_a, to_b, to_c]): Self::Arguments<'_>) {
        let (m, n, k) = op.shape.sizes();
        to_a.resize(m * k, 0.0);
        to_b.resize(n * k, 0.0);
        to_c.resize(n * m, 0.0);
        for (register, lanes) in a.iter().enumerate() {
            let (row, column) = multiplicand(m, k, register);
            put_doubles(lanes, Corner { row, column }, 1, m, to_a);
        }
        for (register, lanes) in b.iter().enumerate() {
            let (column, row) = multiplicand(8, k, register);
            for (group, lanes) in lanes.as_chunks::<GROUP>().0.iter().enumerate() {
                for (to, lane) in to_b[(column + group) * k + row..][..GROUP].iter_mut().zip(lanes) {
                    *to = f64::from_bits(*lane);
                }
            }
        }
        for (register, lanes) in c.iter().enumerate() {
            put_doubles(lanes, accumulator(m, register), 2, m, to_c);
        }
    }
}

/// A register's elements, from `first` on: lanes of a group have columns that are `step` apart, of which eight groups have a row
/// each; a column has `rows`.
#[inline(always)]
fn put_doubles(lanes: &Double, first: Corner, step: usize, rows: usize, to: &mut [f64]) {
    for of_group in 0..GROUP {
        let to = &mut to[(first.column + step * of_group) * rows + first.row..][..8];
        for (to, lanes) in to.iter_mut().zip(lanes.as_chunks::<GROUP>().0) {
            *to = f64::from_bits(lanes[of_group]);
        }
    }
}

/// A register of D of `f64`, from its elements.
pub fn scattered_doubles(op: &Multiply, from: &[f64], register: usize) -> Double {
    let (m, ..) = op.shape.sizes();
    let first = accumulator(m, register);
    let mut lanes = [0; WARP];
    for of_group in 0..GROUP {
        let column = &from[(first.column + 2 * of_group) * m + first.row..][..8];
        for (lanes, value) in lanes.as_chunks_mut::<GROUP>().0.iter_mut().zip(column) {
            lanes[of_group] = value.to_bits();
        }
    }
    lanes
}

/// Row and column of a register of A, and column and row of one of B, of `f64`.
pub fn double(rows: usize, depth: usize, register: usize, lane: usize) -> (usize, usize) {
    let (row, word) = multiplicand(rows, depth, register);
    (row + lane / GROUP, word + lane % GROUP)
}

/// Where an element of an accumulator lies, of `f64` a register.
pub fn double_accumulator(rows: usize, register: usize, lane: usize) -> Corner {
    let first = accumulator(rows, register);
    Corner {
        row: first.row + lane / GROUP,
        column: first.column + 2 * (lane % GROUP),
    }
}

/// The lanes of a quad pair, by the row of A, or the column of B, that they have (PTX ISA, Matrix Fragments for mma.m8n8k4
/// with .f16).
pub fn quad_lane(quad: usize, at: usize) -> usize {
    16 * (at / 4) + 4 * quad + at % 4
}

/// Which of these lanes has an element of row `at` of A, or of column `at` of B, and as which of its four: `along` k a lane has
/// those of a row or column of its own, else of four neighbouring ones.
pub fn quad_multiplicand(along: bool, at: usize, k: usize) -> (usize, usize) {
    if along { (at, k) } else { (at / 4 * 4 + k, at % 4) }
}

/// Row and column of an element of an accumulator of a quad pair.
pub fn quad_accumulator(of: Accumulator, element: usize, at: usize) -> (usize, usize) {
    match of {
        Accumulator::F16 => (at, element),
        // Rows and columns are shared out in pairs.
        Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => {
            ((at & 5) + (element & 2), (element & 4) + (at & 2) + (element & 1))
        }
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
        let lane = row_holder(row, pair);
        to.extend((0..factors).map(|factor| lanes[lane].to_le_bytes()[(byte as usize + factor) % 4]));
    }
}

/// The factors of columns of B, likewise, of lane `lane` of each group.
pub fn column_scales(lanes: &Word, (byte, lane): (u32, u32), factors: usize, to: &mut Vec<u8>) {
    to.clear();
    for column in 0..8 {
        let lane = column_holder(column, lane);
        to.extend((0..factors).map(|factor| lanes[lane].to_le_bytes()[(byte as usize + factor) % 4]));
    }
}

/// The lane that has the factors of a row of A, in the pair that the instruction names.
pub fn row_holder(row: usize, pair: u32) -> usize {
    4 * (row % 8) + 2 * (pair as usize % 2) + row / 8
}

/// The lane that has those of a column of B, by the lane of each group that the instruction names.
pub fn column_holder(column: usize, lane: u32) -> usize {
    4 * column + lane as usize % 4
}
