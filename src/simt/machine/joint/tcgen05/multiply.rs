//! `tcgen05.mma` (PTX ISA, tcgen05, Matrix and Data movement; Data Path Layout Organization; Block Scaling; Sparse Matrices;
//! Zero-Column Mask Descriptor): which elements are multiplied, and where in tensor memory sums, rows, factors and metadata
//! are.
//!
//! Each block of a pair has half of the rows of A and of D, and half of the columns of B in its shared memory, of which both
//! use all. Layouts that fold D (B, E, G of the manual) want A's rows once in each fold; the first is read here.

use arrayvec::ArrayVec;

use super::instruction::Instruction;
use super::{Job, Part};
use crate::isa::joint::tcgen05::{Block, Group, Kind, Mma};
use crate::isa::mma::{self, Accumulator, Architecture, Element, Metadata, Product, Scaling, Tiles, Unit};
use crate::simt::machine::joint::descriptor::{self, Major, Matrix, Packing, UNIT};
use crate::simt::machine::tensor_memory::Room;
use crate::simt::machine::tensor_memory::{Asked, LANES, Memory, Misuse, Place};

/// How D's rows and columns lie in lanes and columns (PTX ISA, Data Path Layout Organization).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// A, D: a row a lane.
    Whole,
    /// C, F: 16 rows in each warp's lanes, the upper or lower ones.
    Half,
    /// B, E: a second half of the columns behind 64 lanes.
    Halves,
    /// G: a quarter of the columns in each warp's lanes.
    Quarters,
}

impl Layout {
    fn of(op: Mma, m: usize) -> Layout {
        match (op.group, op.weight_stationary, m) {
            (Group::One, true, 32) => Layout::Quarters,
            (Group::One, true, 64) => Layout::Halves,
            (Group::One, false, 64) => Layout::Half,
            (Group::Two, _, 128) if op.sparse => Layout::Half,
            (Group::Two, _, 128) => Layout::Halves,
            (Group::One | Group::Two, ..) => Layout::Whole,
        }
    }

    /// Folds of D's columns.
    fn folds(self) -> usize {
        match self {
            Layout::Whole | Layout::Half => 1,
            Layout::Halves => 2,
            Layout::Quarters => 4,
        }
    }

    /// The lane, from the first on, of a row in a fold.
    fn lane(self, row: usize, fold: usize) -> usize {
        match self {
            Layout::Whole => row,
            Layout::Half => row / 16 * 32 + row % 16,
            Layout::Halves => row + 64 * fold,
            Layout::Quarters => row + 32 * fold,
        }
    }

    /// # Errors
    /// No matrix begins in that lane.
    fn check(self, lane: usize) -> Result<(), Misuse> {
        match (lane, self) {
            (0, _) | (16, Layout::Half) => Ok(()),
            (_, Layout::Half) => Err(format!(
                "tcgen05.mma with a matrix from lane {lane} on, and not 0 or 16"
            )),
            (_, _) => Err(format!("tcgen05.mma with a matrix from lane {lane} on, and not 0")),
        }
    }
}

/// A.
#[derive(Clone, Copy)]
pub(super) enum First {
    Tensor(Place),
    Shared(Matrix),
}

/// Which columns of B count as zero, and where it begins.
#[derive(Clone, Copy, Default)]
struct ZeroColumns(u64);

impl ZeroColumns {
    /// The first column of B.
    fn shift(self) -> usize {
        (self.0 >> 56 & 0x3f) as usize
    }

    /// Whether column `n` of `count`, in as many parts as D has folds, is left out: columns are used and skipped in turn.
    /// (The manual's examples have the two spans the other way round than its table.)
    fn skips(self, n: usize, count: usize, parts: usize) -> bool {
        let field = |at: usize, bits: usize| (self.0 >> at) as usize & ((1 << bits) - 1);
        if field(39, 1) == 0 {
            return false;
        }
        let each = count / parts;
        let (part, n) = (n / each, n % each);
        let (skip, used) = (field(40, 8) + 1, field(48, 8) + 1);
        let begins_with_skip = field(32 + part, 1) == 1;
        let at = (n + field(8 * part, 8)) % (skip + used);
        match begins_with_skip {
            true => at < skip,
            false => at >= used,
        }
    }
}

/// Operands of one product, as registers give them.
pub struct Operands {
    pub d: u32,
    pub a: AOperand,
    pub b: u64,
    pub descriptor: u32,
    pub enable_d: bool,
    pub scale_d: u32,
    pub metadata: u32,
    pub scale_a: u32,
    pub scale_b: u32,
    pub zero_columns: u64,
    pub disabled: [u32; 8],
    /// From which allocations D, A, metadata, and factors of A and B are.
    pub asked: [Asked; 5],
}

/// A's address in tensor memory, or its descriptor.
pub enum AOperand {
    Tensor(u32),
    Shared(u64),
}

/// A product that was checked.
pub struct Multiplication {
    op: Mma,
    of: Instruction,
    layout: Layout,
    d: Place,
    pub(super) a: First,
    pub(super) b: Matrix,
    enable_d: bool,
    scale_d: u32,
    metadata: Place,
    scale_a: Place,
    scale_b: Place,
    zero_columns: ZeroColumns,
    disabled: [u32; 8],
}

/// Rows (columns) of factors in one column of tensor memory.
const FACTOR_LANES: usize = 32;

impl Multiplication {
    /// # Errors
    /// There is no such product, or an operand is not in tensor memory that is allocated in each of `memories`.
    pub fn of(op: Mma, operands: &Operands, memories: &[&Memory]) -> Result<Multiplication, Misuse> {
        let of = Instruction::of(op, operands.descriptor)?;
        if of.d == Accumulator::S32 && operands.scale_d != 0 {
            return Err(format!("{op} with a scale of D, which integers do not have"));
        }
        let layout = Layout::of(op, of.m);
        let multiplication = Multiplication {
            op,
            of,
            layout,
            d: Place::of(operands.d),
            a: match operands.a {
                AOperand::Tensor(address) => First::Tensor(Place::of(address)),
                AOperand::Shared(descriptor) => First::Shared(Matrix::of_tcgen05(descriptor)?),
            },
            b: Matrix::of_tcgen05(operands.b)?,
            enable_d: operands.enable_d,
            scale_d: operands.scale_d,
            metadata: Place::of(operands.metadata),
            scale_a: factors_at(operands.scale_a),
            scale_b: factors_at(operands.scale_b),
            zero_columns: ZeroColumns(operands.zero_columns),
            disabled: operands.disabled,
        };
        for memory in memories {
            multiplication.check(memory, operands.asked)?;
        }
        Ok(multiplication)
    }

    fn check(&self, memory: &Memory, asked: [Asked; 5]) -> Result<(), Misuse> {
        let [of_d, of_a, of_metadata, of_scale_a, of_scale_b] = asked;
        self.layout.check(self.d.lane)?;
        memory.check(self.d.column, self.of.n / self.layout.folds(), of_d)?;
        if let First::Tensor(a) = self.a {
            self.layout.check(a.lane)?;
            memory.check(a.column, self.words(), of_a)?;
        }
        if self.op.sparse {
            self.layout.check(self.metadata.lane)?;
            memory.check(
                self.metadata.column + self.of.selector,
                self.metadata_columns(),
                of_metadata,
            )?;
        }
        if self.op.block.is_some() {
            for place in [self.scale_a, self.scale_b] {
                Layout::Whole.check(place.lane)?;
            }
            for first in [self.of.scale_a, self.of.scale_b] {
                if !first.is_multiple_of(self.factors()) {
                    let op = self.op;
                    return Err(format!(
                        "{op} with {} factors from byte {first} of a word on",
                        self.factors()
                    ));
                }
            }
            memory.check(self.scale_a.column, Self::factor_columns(self.rows()), of_scale_a)?;
            memory.check(
                self.scale_b.column,
                Self::factor_columns(self.of.n / self.scale_folds()),
                of_scale_b,
            )?;
        }
        Ok(())
    }

    /// Rows of one block.
    pub(super) fn rows(&self) -> usize {
        match self.op.group {
            Group::One => self.of.m,
            Group::Two => self.of.m / 2,
        }
    }

    /// Elements of a row of A that are there.
    pub(super) fn kept(&self) -> usize {
        if self.op.sparse { self.of.k / 2 } else { self.of.k }
    }

    /// Elements of four bits have no bytes of their own.
    pub(super) fn nibbles(&self) -> bool {
        matches!(self.op.kind, Kind::Mxf4 | Kind::Mxf4nvf4)
    }

    /// Columns of tensor memory that a row of A takes.
    fn words(&self) -> usize {
        match (self.of.a, self.nibbles()) {
            (Element::Tf32, _) => self.kept(),
            (Element::F16 | Element::Bf16, _) => self.kept() / 2,
            (_, true) => self.kept() / 8,
            (_, false) => self.kept() / 4,
        }
    }

    fn metadata_columns(&self) -> usize {
        match self.op.kind {
            Kind::F16 | Kind::Tf32 => 1,
            Kind::F8f6f4 | Kind::I8 | Kind::Mxf8f6f4 | Kind::Mxf4 | Kind::Mxf4nvf4 => 2,
        }
    }

    /// Factors of a row.
    fn factors(&self) -> usize {
        match (self.op.kind, self.op.block) {
            (Kind::Mxf4 | Kind::Mxf4nvf4, Some(Block::Of16)) => 4,
            (Kind::Mxf4 | Kind::Mxf4nvf4, Some(Block::Of32)) => 2,
            (Kind::Mxf8f6f4 | Kind::F16 | Kind::Tf32 | Kind::F8f6f4 | Kind::I8, _) | (_, None) => 1,
        }
    }

    /// Columns of factors of so many rows: a row has one word.
    fn factor_columns(rows: usize) -> usize {
        rows.div_ceil(FACTOR_LANES)
    }

    /// Where D is folded, each half has the factors of its columns of B.
    fn scale_folds(&self) -> usize {
        self.layout.folds()
    }

    /// The four bytes in which the factors of row `row` are, in the lanes from `lane` on: 32 rows a column.
    fn scales(memory: &Memory, place: Place, row: usize, lane: usize) -> [u8; 4] {
        let column = place.column + row / FACTOR_LANES;
        memory.cell(lane + row % FACTOR_LANES, column).to_le_bytes()
    }

    /// Where it reads 16 bytes each of each block's shared memory, by the descriptor of A (0) or of B (1).
    pub fn addresses<E>(&self, mut each: impl FnMut(usize, u32) -> Result<(), E>) -> Result<(), E> {
        let mut note = |address| each(0, address).map(|()| [0; UNIT]);
        if let First::Shared(matrix) = &self.a {
            descriptor::gather(
                matrix,
                self.first_form(),
                0..self.rows(),
                self.kept(),
                &mut note,
                |_, _, _| {},
            )?;
        }
        let (columns, _) = self.columns();
        let note = |address| each(1, address).map(|()| [0; UNIT]);
        descriptor::gather(&self.b, self.second_form(), columns, self.of.k, note, |_, _, _| {})
    }

    pub(super) fn first_form(&self) -> (Packing, Major) {
        (Packing::of(self.of.a, self.nibbles()), major(self.of.transpose_a))
    }

    pub(super) fn second_form(&self) -> (Packing, Major) {
        (Packing::of(self.of.b, self.nibbles()), major(self.of.transpose_b))
    }

    /// Columns of B in each block's shared memory, and how many there are.
    pub(super) fn columns(&self) -> (std::ops::Range<usize>, usize) {
        let count = match self.op.group {
            Group::One => self.of.n,
            Group::Two => self.of.n / 2,
        };
        let first = self.zero_columns.shift();
        (first..first + count, count)
    }

    /// The factors of a row of A.
    pub(super) fn factors_of_row(&self, memory: &Memory, row: usize) -> ArrayVec<u8, 4> {
        let of = Self::scales(memory, self.scale_a, row, 0);
        of[self.of.scale_a..][..self.factors()].iter().copied().collect()
    }

    /// The factors of a column of B.
    pub(super) fn factors_of_column(&self, memory: &Memory, column: usize) -> ArrayVec<u8, 4> {
        let folds = self.scale_folds();
        let each = self.of.n / folds;
        let lane = column / each * (LANES / folds) % LANES;
        let of = Self::scales(memory, self.scale_b, column % each, lane);
        of[self.of.scale_b..][..self.factors()].iter().copied().collect()
    }

    pub(super) fn n(&self) -> usize {
        self.of.n
    }

    pub(super) fn k(&self) -> usize {
        self.of.k
    }

    pub(super) fn is_sparse(&self) -> bool {
        self.op.sparse
    }

    pub(super) fn has_factors(&self) -> bool {
        self.op.block.is_some()
    }

    pub(super) fn element_of_a(&self) -> Element {
        self.of.a
    }

    pub(super) fn sum(&self) -> Accumulator {
        self.of.d
    }

    /// D counts.
    pub(super) fn adds(&self) -> bool {
        self.enable_d
    }

    /// A column of B counts as zero.
    pub(super) fn skips(&self, column: usize) -> bool {
        self.zero_columns.skips(column, self.of.n, self.layout.folds())
    }

    pub fn run(&self, job: &Job, memories: &mut [Memory], room: &mut Room) {
        self.follow(job, memories);
        let n = self.of.n;
        let k = self.of.k;
        room.b.clear();
        room.b.resize(k * n, 0);
        let turn = if self.of.negate_b { sign(self.of.b) } else { 0 };
        let (columns, count) = self.columns();
        for (i, part) in job.parts().iter().enumerate() {
            let put = |column, at, code| room.b[at * n + i * count + column] = code ^ turn;
            let read = |address| Ok::<_, std::convert::Infallible>(part.unit(address));
            let Ok(()) = descriptor::gather(&self.b, self.second_form(), columns.clone(), k, read, put);
        }
        for column in 0..n {
            if self.skips(column) {
                for row in room.b.chunks_exact_mut(n) {
                    row[column] = 0;
                }
            }
        }
        for (i, part) in job.parts().iter().enumerate() {
            self.run_block(part, i, &mut memories[part.rank], room);
        }
    }

    /// The rows of one block.
    fn run_block(&self, part: &Part, number: usize, memory: &mut Memory, room: &mut Room) {
        let (rows, n, k, kept) = (self.rows(), self.of.n, self.of.k, self.kept());
        let stride = mma::stride(rows);
        let turn = if self.of.negate_a { sign(self.of.a) } else { 0 };
        self.gather_a(part, memory, turn, &mut room.a);
        room.kept.clear();
        room.kept.resize(rows, 0);
        if self.op.sparse {
            let metadata: Vec<u128> = (0..rows).map(|row| self.row_metadata(memory, row)).collect();
            let of = Metadata::of(self.of.a, self.nibbles());
            room.dense.resize(k * stride, 0);
            mma::expand(
                of,
                (rows, stride, k),
                &room.a[..kept * stride],
                &metadata,
                &mut room.dense,
                &mut room.kept,
            );
            std::mem::swap(&mut room.a, &mut room.dense);
        }
        let factors = self.factors();
        let (mut scale_a, mut scale_b) = (Vec::new(), Vec::new());
        if self.op.block.is_some() {
            scale_a.extend((0..rows).flat_map(|row| self.factors_of_row(memory, row)));
            scale_b.extend((0..n).flat_map(|column| self.factors_of_column(memory, column)));
        }
        self.take(memory, (rows, stride), &mut room.d);
        let scaling = self.op.block.map(|_| Scaling {
            ty: self.of.scale,
            factors,
            grouped: self.nibbles(),
        });
        let product = Product {
            sparse: self.op.sparse,
            saturate: self.of.saturate,
            scaling,
            ..Product::new([self.of.a, self.of.b], [self.of.d; 2], (rows, n, k))
        };
        let Room {
            a, b, kept, d, scratch, ..
        } = room;
        let tiles = Tiles {
            a,
            b,
            packed: false,
            kept,
            scale_a: &scale_a,
            scale_b: &scale_b,
            d,
        };
        let architecture = Architecture::BlackwellDatacenter;
        mma::multiply(&product, architecture, Unit::Tcgen05, tiles, scratch);
        self.each_cell(rows, stride, number, |lane, column, at| {
            memory.set(lane, column, room.d[at])
        });
    }

    /// The elements of A, with the bits of `turn` turned.
    pub(super) fn gather_a(&self, part: &Part, memory: &Memory, turn: u32, a: &mut Vec<u32>) {
        let (rows, kept) = (self.rows(), self.kept());
        let stride = mma::stride(rows);
        a.clear();
        a.resize(kept.max(self.of.k) * stride, 0);
        let place = match &self.a {
            First::Shared(matrix) => {
                let read = |address| Ok::<_, std::convert::Infallible>(part.unit(address));
                let put = |row, at, code| a[at * stride + row] = code ^ turn;
                let Ok(()) = descriptor::gather(matrix, self.first_form(), 0..rows, kept, read, put);
                return;
            }
            First::Tensor(place) => place,
        };
        // Elements of six and four bits have a byte each, those of four from bit 2 on (PTX ISA, Packing format used for
        // matrix A by `.kind::mxf8f6f4` in Tensor Memory).
        let (packing, low) = match (Packing::of(self.of.a, self.nibbles()), self.of.a) {
            (Packing::Six, _) => (Packing::Bytes, 0),
            (Packing::Four, _) => (Packing::Bytes, 2),
            (other, _) => (other, 0),
        };
        let mask = match self.of.a.bits() {
            bits @ ..=31 => (1 << bits) - 1,
            _ => u32::MAX,
        };
        for row in 0..rows {
            let from = if self.op.shifted && row + 1 < rows {
                row + 1
            } else {
                row
            };
            let lane = place.lane + self.layout.lane(from, 0);
            let words = memory.cells(lane, place.column, self.words());
            for (unit, words) in words.as_chunks::<4>().0.iter().enumerate() {
                let mut bytes = [0; UNIT];
                for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
                    *bytes = word.to_le_bytes();
                }
                let each = packing.codes();
                for (j, code) in packing.unpack(bytes).into_iter().take(each).enumerate() {
                    a[(unit * each + j) * stride + row] = (code >> low & mask) ^ turn;
                }
            }
        }
    }

    /// A row's metadata, first elements lowest. Of halves and words eight lanes have those of sixteen rows: the first half of
    /// the columns, the lanes behind them the second one, in each word two rows.
    pub(super) fn row_metadata(&self, memory: &Memory, row: usize) -> u128 {
        let Place { lane, column } = self.metadata;
        match self.op.kind {
            Kind::F16 | Kind::Tf32 => (0..2)
                .map(|half| {
                    let lane = lane + self.layout.lane(row / 16 * 16 + row % 8 + 8 * half, 0);
                    let word = memory.cell(lane, column + self.of.selector);
                    u128::from(word >> (row / 8 % 2 * 16) & 0xffff) << (16 * half)
                })
                .fold(0, |all, part| all | part),
            Kind::F8f6f4 | Kind::I8 | Kind::Mxf8f6f4 | Kind::Mxf4 | Kind::Mxf4nvf4 => {
                let words = memory.cells(lane + self.layout.lane(row, 0), column, 2);
                u128::from(words[0]) | u128::from(words[1]) << 32
            }
        }
    }

    /// D before.
    fn take(&self, memory: &Memory, (rows, stride): (usize, usize), d: &mut Vec<u32>) {
        d.clear();
        d.resize(self.of.n * stride, 0);
        if !self.enable_d {
            return;
        }
        let folds = self.layout.folds();
        let each = self.of.n / folds;
        for fold in 0..folds {
            for row in 0..rows {
                let lane = self.d.lane + self.layout.lane(row, fold);
                for (i, &cell) in memory.cells(lane, self.d.column, each).iter().enumerate() {
                    d[(fold * each + i) * stride + row] = self.scaled(cell);
                }
            }
        }
    }

    /// An element of D, divided by a power of two.
    fn scaled(&self, cell: u32) -> u32 {
        let factor = (-(self.scale_d as f32)).exp2();
        match (self.of.d, self.scale_d) {
            (Accumulator::F16, 0) => cell & 0xffff,
            (_, 0) | (Accumulator::S32 | Accumulator::F64, _) => cell,
            (Accumulator::F32, _) => (f32::from_bits(cell) * factor).to_bits(),
            (Accumulator::F16, _) => half::f16::from_f32(half::f16::from_bits(cell as u16).to_f32() * factor)
                .to_bits()
                .into(),
        }
    }

    /// Each element of D in a block, by its number, but in the lanes that stay as they are: lane, column, and where it is in a tile.
    pub(super) fn each_cell(&self, rows: usize, stride: usize, number: usize, mut f: impl FnMut(usize, usize, usize)) {
        let disabled = &self.disabled[4 * number..][..4];
        let folds = self.layout.folds();
        let each = self.of.n / folds;
        for fold in 0..folds {
            for row in 0..rows {
                let lane = self.d.lane + self.layout.lane(row, fold);
                if disabled[lane / 32] >> (lane % 32) & 1 == 1 {
                    continue;
                }
                for i in 0..each {
                    f(lane, self.d.column + i, (fold * each + i) * stride + row);
                }
            }
        }
    }
}

/// Where factors are. Programs keep the byte of the first in the address's two high bits, too (CuTe, `tmem_sf_frg`): the
/// instruction descriptor has it.
fn factors_at(address: u32) -> Place {
    Place::of(address & 0x3fff_ffff)
}

fn major(transposed: bool) -> Major {
    if transposed { Major::Mn } else { Major::K }
}

/// The sign bit of a code.
fn sign(element: Element) -> u32 {
    match element {
        Element::Tf32 => 1 << 31,
        Element::F16 | Element::Bf16 => 1 << 15,
        Element::E4m3 | Element::E5m2 => 1 << 7,
        Element::E3m2 | Element::E2m3 => 1 << 5,
        Element::E2m1 => 1 << 3,
        Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::B1 | Element::F64 => 0,
    }
}
