//! What is multiplied, by which hardware, and how operands lie.

use std::fmt;

/// A generation of tensor cores, named as their makers name them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Architecture {
    /// sm_70, sm_72.
    Volta,
    /// sm_75.
    Turing,
    /// sm_80, sm_86, sm_87.
    Ampere,
    /// sm_89.
    Ada,
    /// sm_90.
    Hopper,
    /// sm_100, sm_103, sm_110.
    BlackwellDatacenter,
    /// sm_120, sm_121.
    #[default]
    Blackwell,
}

impl Architecture {
    /// The generation of a compute capability. What is older than the first has the first, what is newer than the last
    /// the last.
    pub fn of_capability(major: u32, minor: u32) -> Architecture {
        match (major, minor) {
            (..=6, _) | (7, ..=4) => Architecture::Volta,
            (7, _) => Architecture::Turing,
            (8, ..=8) => Architecture::Ampere,
            (8, _) => Architecture::Ada,
            (9, _) => Architecture::Hopper,
            (10 | 11, _) => Architecture::BlackwellDatacenter,
            (12.., _) => Architecture::Blackwell,
        }
    }

    /// `sm_90`, say, with or without a letter behind it.
    pub fn parse(name: &str) -> Option<Architecture> {
        let digits = name.strip_prefix("sm_")?.trim_end_matches(['a', 'f']);
        let number: u32 = digits.parse().ok()?;
        (70..=199)
            .contains(&number)
            .then(|| Architecture::of_capability(number / 10, number % 10))
    }
}

/// Which of an architecture's instructions multiplies: they differ in how they sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// `mma.sync`, `wmma.mma`.
    Mma,
    /// `wgmma.mma_async`, which Hopper alone has.
    Wgmma,
    /// `tcgen05.mma`, which the data centre's Blackwell alone has.
    Tcgen05,
}

/// The type of a multiplicand's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Element { F16, Bf16, Tf32, E4m3, E5m2, E3m2, E2m3, E2m1, S8, U8, S4, U4, B1, F64 }

impl Element {
    /// Bits of a code. A code of `.b1` is a word of 32 elements; of `.tf32`, the word that holds one.
    pub const fn bits(self) -> u32 {
        match self {
            Element::F64 => 64,
            Element::Tf32 | Element::B1 => 32,
            Element::F16 | Element::Bf16 => 16,
            Element::E4m3 | Element::E5m2 | Element::S8 | Element::U8 => 8,
            Element::E3m2 | Element::E2m3 => 6,
            Element::E2m1 | Element::S4 | Element::U4 => 4,
        }
    }
    pub const fn is_integer(self) -> bool {
        match self {
            Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::B1 => true,
            Element::F16 | Element::Bf16 | Element::Tf32 | Element::F64 => false,
            Element::E4m3 | Element::E5m2 | Element::E3m2 | Element::E2m3 | Element::E2m1 => false,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
            Element::Tf32 => "tf32",
            Element::E4m3 => "e4m3",
            Element::E5m2 => "e5m2",
            Element::E3m2 => "e3m2",
            Element::E2m3 => "e2m3",
            Element::E2m1 => "e2m1",
            Element::S8 => "s8",
            Element::U8 => "u8",
            Element::S4 => "s4",
            Element::U4 => "u4",
            Element::B1 => "b1",
            Element::F64 => "f64",
        })
    }
}

/// The type of C or D. A code of `.f16` is in the low half of its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accumulator {
    F16,
    F32,
    F64,
    S32,
}

impl fmt::Display for Accumulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Accumulator::F16 => "f16",
            Accumulator::F32 => "f32",
            Accumulator::F64 => "f64",
            Accumulator::S32 => "s32",
        })
    }
}

/// How two bits are multiplied: `.xor.popc`, `.and.popc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BitOp {
    Xor,
    And,
}

/// The type of the factors that blocks of elements have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScaleType {
    /// A power of two, 2^(code - 127); 0xff is NaN.
    Ue8m0,
    /// As `e4m3`, without a sign: its bit is ignored.
    Ue4m3,
}

/// A factor for each block of elements along k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scaling {
    pub ty: ScaleType,
    /// Factors along the whole of k: `.scale_vec::1X`, `2X`, `4X`.
    pub factors: usize,
    /// `.kind::mxf4` and `.kind::mxf4nvf4`, which sum groups of 16 products before they scale; `.kind::mxf8f6f4` scales
    /// each product.
    pub grouped: bool,
}

/// What is multiplied: everything that the opcode says. `f64` has [`multiply_f64`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    pub a: Element,
    pub b: Element,
    pub c: Accumulator,
    pub d: Accumulator,
    pub m: usize,
    pub n: usize,
    /// Rows of B, whether or not A has a code for each (`sparse`). Of `.b1` single bits are counted.
    pub k: usize,
    /// A was [`expand`]ed: at most half of its elements, those that [`Tiles::kept`] names, are multiplied.
    pub sparse: bool,
    pub scaling: Option<Scaling>,
    /// `.satfinite` of integers.
    pub saturate: bool,
    pub bits: BitOp,
    /// `mma.m8n8k4` of halves, which newer architectures compute without tensor cores.
    pub quad_pair: bool,
    /// Columns of A that one of the hardware's instructions takes, where these are fewer than it could take: `wmma.mma`
    /// of `.tf32` is two instructions of four columns each on every architecture.
    pub most: Option<usize>,
}

impl Product {
    /// A dense one without scales.
    pub fn new([a, b]: [Element; 2], [c, d]: [Accumulator; 2], (m, n, k): (usize, usize, usize)) -> Product {
        Product {
            a,
            b,
            c,
            d,
            m,
            n,
            k,
            sparse: false,
            scaling: None,
            saturate: false,
            bits: BitOp::And,
            quad_pair: false,
            most: None,
        }
    }

    /// How many codes a word may have, of A and of B.
    pub fn packs(&self) -> usize {
        let are = |elements: &[Element]| elements.contains(&self.a) && elements.contains(&self.b);
        match () {
            () if self.quad_pair || self.sparse => 1,
            () if are(&[Element::F16, Element::Bf16]) => 2,
            () if are(&[Element::S8, Element::U8]) => 4,
            () => 1,
        }
    }

    /// Codes along k.
    pub fn codes(&self) -> usize {
        match self.a {
            Element::B1 => self.k / 32,
            _ => self.k,
        }
    }
}

/// Rows that are worked on at a time.
pub const LANES: usize = 16;

/// The distance, in words, between neighbours along k (of A) or n (of C and D): a column of `m` rows, filled up. What is
/// in the rows beyond `m` does not matter.
pub const fn stride(m: usize) -> usize {
    m.next_multiple_of(LANES)
}

/// The operands and the result of a product.
pub struct Tiles<'a> {
    /// A, column by column: row `m` of column `k` at `k * stride(M) + m`, or of as many columns as a word has.
    pub a: &'a [u32],
    /// B, row by row: column `n` of row `k` at `k * N + n`, or of as many rows.
    pub b: &'a [u32],
    /// Words of A and B have as many codes as [`Product::packs`] says, neighbours along k, the first in the lowest bits; else one.
    pub packed: bool,
    /// Of a sparse A: for each row, a bit for each column that has an element.
    pub kept: &'a [u128],
    /// Codes of factors: of row `m`, the `i`th at `m * factors + i`; empty where there are none.
    pub scale_a: &'a [u8],
    /// The same for the columns of B.
    pub scale_b: &'a [u8],
    /// C before, D after, column by column: row `m` of column `n` at `n * stride(M) + m`.
    pub d: &'a mut [u32],
}
