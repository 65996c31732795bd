//! Matrices whose elements the threads of a warp hold (PTX ISA, Warp Level Matrix Instructions): `ldmatrix`, `stmatrix`,
//! `movmatrix`, `wmma`, `mma`. What a product computes is [`crate::isa::mma`]'s business.

use std::fmt;

use crate::isa::Rounding;
use crate::isa::mma::{Accumulator, BitOp, Element, Product, ScaleType, Scaling};
use crate::isa::types::{Space, Type};
use crate::isa::words::Words;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `ldmatrix`
    LoadRows(Rows),
    /// `stmatrix`
    StoreRows(Rows),
    /// `movmatrix`
    Transpose,
    /// `wmma.load`
    LoadTile(Tile),
    /// `wmma.store`
    StoreTile(Tile),
    /// `wmma.mma`, `mma`
    Multiply(Multiply),
}

/// Small matrices whose rows lie where the lanes' addresses say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rows {
    /// Matrices.
    pub count: u8,
    pub transposed: bool,
    pub packing: Packing,
    pub space: Space,
}

/// What a row holds, and what becomes of it in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Eight rows of eight elements of 16 bits.
    Halves,
    /// Bytes: sixteen rows of sixteen that are loaded, eight of sixteen that are stored.
    Bytes,
    /// Sixteen elements of six bits and 32 bits of padding; a byte each in registers, its high bits zero.
    Sixes,
    /// Sixteen elements of four bits and 64 bits of padding; a byte each in registers, its high bits zero.
    Fours,
    /// Sixteen signed elements of four bits; a byte each in registers, extended by sign.
    SignedFours,
}

impl Packing {
    /// Bytes of a row, from an address that is a multiple of that.
    pub const fn bytes(self) -> u64 {
        match self {
            Packing::Halves | Packing::Bytes | Packing::Sixes | Packing::Fours => 16,
            Packing::SignedFours => 8,
        }
    }
}

impl Rows {
    /// Rows of a matrix: addresses that lanes supply for it.
    pub const fn rows(self, loads: bool) -> usize {
        match self.packing {
            Packing::Halves => 8,
            // `ldmatrix` transposes sixteen rows, and leaves eight as they are.
            Packing::Bytes | Packing::Sixes | Packing::Fours | Packing::SignedFours => {
                if self.transposed && loads {
                    16
                } else {
                    8
                }
            }
        }
    }

    /// Registers of a lane.
    pub const fn registers(self, loads: bool) -> usize {
        self.count as usize * self.rows(loads) / 8
    }
}

/// The shape of a product: `.m16n8k16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub m: u8,
    pub n: u8,
    pub k: u16,
}

impl Shape {
    /// m, n, k.
    pub const fn sizes(self) -> (usize, usize, usize) {
        (self.m as usize, self.n as usize, self.k as usize)
    }
}

/// Which of a product's matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    A,
    B,
    /// C or D.
    C,
}

/// A matrix of `wmma` in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    pub role: Role,
    pub shape: Shape,
    /// Bits of an element.
    pub bits: u8,
    /// Its rows lie in memory one after the other, else its columns.
    pub row_major: bool,
    pub space: Space,
}

impl Tile {
    pub const fn rows(self) -> usize {
        match self.role {
            Role::A | Role::C => self.shape.m as usize,
            Role::B => self.shape.k as usize,
        }
    }
    pub const fn columns(self) -> usize {
        match self.role {
            Role::A => self.shape.k as usize,
            Role::B | Role::C => self.shape.n as usize,
        }
    }
    /// Rows, or columns, that lie in memory one by one.
    pub const fn lines(self) -> usize {
        if self.row_major { self.rows() } else { self.columns() }
    }
    /// Elements of a line: how far apart lines lie if nothing else is said.
    pub const fn length(self) -> usize {
        if self.row_major { self.columns() } else { self.rows() }
    }
    /// Registers that a lane needs. Fragments of halves have eight in any case, and repeat themselves.
    pub const fn needed(self) -> usize {
        let bits = self.rows() * self.columns() * self.bits as usize / 32;
        bits.div_ceil(if self.bits == 64 { 64 } else { 32 })
    }
}

/// A product of fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Multiply {
    pub shape: Shape,
    pub a: Element,
    pub b: Element,
    pub c: Accumulator,
    pub d: Accumulator,
    /// Bits that an element of A or B takes in registers.
    pub container: u8,
    pub saturate: bool,
    pub bit_op: BitOp,
    /// Of `f64`.
    pub rounding: Rounding,
    /// A has elements for half of its columns, and metadata say which.
    pub sparse: bool,
    pub scaling: Option<Scaling>,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Mma,
    Wmma,
    /// `mma.m8n8k4` of halves: four products, each of eight lanes. Whether A and B lie row by row.
    QuadPairs {
        a_rows: bool,
        b_rows: bool,
    },
}

impl Multiply {
    /// What is computed.
    pub fn product(self) -> Product {
        let Shape { m, n, k } = self.shape;
        Product {
            sparse: self.sparse,
            scaling: self.scaling,
            saturate: self.saturate,
            bits: self.bit_op,
            quad_pair: matches!(self.kind, Kind::QuadPairs { .. }),
            most: (self.kind == Kind::Wmma && self.a == Element::Tf32).then_some(4),
            ..Product::new([self.a, self.b], [self.c, self.d], (m.into(), n.into(), k.into()))
        }
    }

    /// Operands and result are registers of 32 bits that all lanes have their parts of the matrices in, and nothing else.
    pub fn is_plain(self) -> bool {
        let has_tiles = matches!(self.kind, Kind::Mma | Kind::Wmma);
        has_tiles && self.container != 64 && !self.sparse && self.scaling.is_none()
    }

    /// Registers in which a lane holds A: those that its elements take.
    pub fn a_registers(self) -> usize {
        let columns = usize::from(self.shape.k) >> u32::from(self.sparse);
        self.packed(usize::from(self.shape.m) * columns)
    }
    pub fn b_registers(self) -> usize {
        self.packed(usize::from(self.shape.n) * usize::from(self.shape.k))
    }
    fn packed(self, elements: usize) -> usize {
        match self.kind {
            Kind::QuadPairs { .. } => 2,
            Kind::Mma | Kind::Wmma if self.container == 64 => elements / 32,
            Kind::Mma | Kind::Wmma => elements * usize::from(self.container) / 1024,
        }
    }
    /// Registers of A, B and C, behind which metadata and factors stand.
    pub fn elements(self) -> usize {
        self.a_registers() + self.b_registers() + self.registers(self.c)
    }
    /// Registers of an accumulator: halves come in pairs.
    pub fn registers(self, of: Accumulator) -> usize {
        let elements = match self.kind {
            Kind::QuadPairs { .. } => 8,
            Kind::Mma | Kind::Wmma => usize::from(self.shape.m) * usize::from(self.shape.n) / 32,
        };
        match of {
            Accumulator::F16 => elements / 2,
            Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => elements,
        }
    }
}

impl Op {
    pub(super) fn takes_whole_warps(self) -> bool {
        match self {
            Op::LoadRows(_)
            | Op::StoreRows(_)
            | Op::Transpose
            | Op::LoadTile(_)
            | Op::StoreTile(_)
            | Op::Multiply(_) => true,
        }
    }
}

fn shape(w: Words) -> Option<Shape> {
    w.find(|word| {
        let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some(Shape {
            m: m.parse().ok()?,
            n: n.parse().ok()?,
            k: k.parse().ok()?,
        })
    })
}

/// `ldmatrix`, `stmatrix`, `movmatrix`.
pub fn rows(w: Words) -> Option<Op> {
    let packing = match () {
        () if w.ty(0) == Type::B16 => Packing::Halves,
        () if w.has("b8x16.b6x16_p32") || w.has("b6x16_p32") => Packing::Sixes,
        () if w.has("b8x16.b4x16_p64") || w.has("b4x16_p64") => Packing::Fours,
        () if w.has("s4") => Packing::SignedFours,
        () => Packing::Bytes,
    };
    let rows = |count| Rows {
        count,
        transposed: w.has("trans"),
        packing,
        space: w.space(),
    };
    let count = w.find(|word| word.strip_prefix('x')?.parse().ok());
    Some(match w.mnemonic {
        "ldmatrix" => Op::LoadRows(rows(count?)),
        "stmatrix" => Op::StoreRows(rows(count?)),
        _ => Op::Transpose,
    })
}

/// `wmma.load`, `wmma.store`.
pub fn tile(w: Words) -> Option<Op> {
    let role = match () {
        () if w.has("a") => Role::A,
        () if w.has("b") => Role::B,
        () => Role::C,
    };
    let bits = match () {
        () if w.has("b1") => 1,
        () if w.has("s4") || w.has("u4") => 4,
        () => match w.ty(0) {
            Type::S8 | Type::U8 => 8,
            Type::F16 | Type::Bf16 => 16,
            Type::F64 => 64,
            Type::F32 | Type::S32 | Type::Tf32 => 32,
            _ => return None,
        },
    };
    let tile = Tile {
        role,
        shape: shape(w)?,
        bits,
        row_major: w.has("row"),
        space: w.space(),
    };
    Some(if w.has("store") {
        Op::StoreTile(tile)
    } else {
        Op::LoadTile(tile)
    })
}

fn element(ty: Type) -> Option<Element> {
    Some(match ty {
        Type::F16 => Element::F16,
        Type::Bf16 => Element::Bf16,
        Type::Tf32 => Element::Tf32,
        Type::E4m3 => Element::E4m3,
        Type::E5m2 => Element::E5m2,
        Type::E3m2 => Element::E3m2,
        Type::E2m3 => Element::E2m3,
        Type::E2m1 => Element::E2m1,
        Type::S8 => Element::S8,
        Type::U8 => Element::U8,
        Type::F64 => Element::F64,
        _ => return None,
    })
}

/// A, B, C and D of an opcode: its types name D, A, B, C, in `wmma` of halves D and C alone.
fn types(w: Words) -> Option<([Element; 2], [Accumulator; 2])> {
    let accumulator = |ty| match ty {
        Type::F16 => Some(Accumulator::F16),
        Type::F32 => Some(Accumulator::F32),
        Type::F64 => Some(Accumulator::F64),
        Type::S32 => Some(Accumulator::S32),
        _ => None,
    };
    // Types of four bits and fewer have no registers, and so are words.
    let small = |word: &str| match word {
        "s4" => Some(Element::S4),
        "u4" => Some(Element::U4),
        "b1" => Some(Element::B1),
        _ => None,
    };
    let mut small = w.words.iter().filter_map(|word| small(word));
    let multiplicands = match (small.next(), small.next(), w.types) {
        (Some(a), b, _) => [a, b.unwrap_or(a)],
        (None, _, [_, _]) => [Element::F16; 2],
        (None, _, [_, a, b, ..]) => [element(*a)?, element(*b)?],
        (None, _, _) => return None,
    };
    Some((multiplicands, [accumulator(*w.types.last()?)?, accumulator(w.ty(0))?]))
}

/// `mma`, `wmma.mma`.
pub fn multiply(w: Words) -> Option<Op> {
    let ([a, b], [c, d]) = types(w)?;
    let shape = shape(w)?;
    let grouped = w.has("kind::mxf4") || w.has("kind::mxf4nvf4");
    let bytes = w.has("kind::f8f6f4") || w.has("kind::mxf8f6f4");
    let container = match a.bits() {
        _ if bytes => 8,
        // A code of `.b1` is a word of them.
        32 if a == Element::B1 => 1,
        bits => bits as u8,
    };
    let factors = match () {
        () if w.has("scale_vec::4X") => 4,
        () if grouped => 2,
        () => 1,
    };
    let scaling = w.has("block_scale").then_some(Scaling {
        ty: if w.has("ue4m3") {
            ScaleType::Ue4m3
        } else {
            ScaleType::Ue8m0
        },
        factors,
        grouped,
    });
    let mut layouts = w.words.iter().filter(|word| matches!(**word, "row" | "col"));
    let mut rows = || layouts.next().is_some_and(|word| *word == "row");
    let (a_rows, b_rows) = (rows(), rows());
    let kind = match () {
        () if w.mnemonic == "wmma" => Kind::Wmma,
        () if w.has("m8n8k4") && a == Element::F16 => Kind::QuadPairs { a_rows, b_rows },
        () => Kind::Mma,
    };
    Some(Op::Multiply(Multiply {
        shape,
        a,
        b,
        c,
        d,
        container,
        saturate: w.has("satfinite"),
        bit_op: if w.has("xor") { BitOp::Xor } else { BitOp::And },
        rounding: w.rounding().unwrap_or(Rounding::Rn),
        sparse: w.has("sp") || w.has("sp::ordered_metadata"),
        scaling,
        kind,
    }))
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::LoadRows(rows) => write!(f, "ldmatrix{rows}"),
            Op::StoreRows(rows) => write!(f, "stmatrix{rows}"),
            Op::Transpose => f.write_str("movmatrix"),
            Op::LoadTile(tile) => write!(f, "wmma.load{tile}"),
            Op::StoreTile(tile) => write!(f, "wmma.store{tile}"),
            Op::Multiply(multiply) => multiply.fmt(f),
        }
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packing = match self.packing {
            Packing::Halves => "b16",
            Packing::Bytes => "b8",
            Packing::Sixes => "b6x16_p32",
            Packing::Fours => "b4x16_p64",
            Packing::SignedFours => "s4",
        };
        let transposed = if self.transposed { ".trans" } else { "" };
        write!(f, ".x{}{transposed}.{packing}", self.count)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}n{}k{}", self.m, self.n, self.k)
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            Role::A => "a",
            Role::B => "b",
            Role::C => "c",
        };
        let layout = if self.row_major { "row" } else { "col" };
        write!(f, ".{role}.{layout}.{}.{}", self.shape, self.bits)
    }
}

impl fmt::Display for Multiply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.kind == Kind::Wmma { "wmma" } else { "mma" };
        let sparse = if self.sparse { ".sp" } else { "" };
        write!(f, "{name}{sparse}.{}", self.shape)?;
        if let Kind::QuadPairs { a_rows, b_rows } = self.kind {
            let word = |rows| if rows { "row" } else { "col" };
            write!(f, ".{}.{}", word(a_rows), word(b_rows))?;
        }
        if self.saturate {
            f.write_str(".satfinite")?;
        }
        match self.a {
            Element::B1 if self.bit_op == BitOp::Xor => f.write_str(".xor")?,
            Element::B1 => f.write_str(".and")?,
            Element::F64 => write!(f, ".{}", self.rounding.word())?,
            _ if self.scaling.is_some_and(|scaling| scaling.grouped) => f.write_str(".mxf4")?,
            _ if self.scaling.is_some() => f.write_str(".mxf8f6f4")?,
            _ => {}
        }
        write!(f, ".{}.{}.{}.{}", self.d, self.a, self.b, self.c)?;
        match self.scaling {
            Some(Scaling {
                ty: ScaleType::Ue8m0,
                factors,
                ..
            }) => write!(f, ".ue8m0.{factors}X"),
            Some(Scaling {
                ty: ScaleType::Ue4m3,
                factors,
                ..
            }) => write!(f, ".ue4m3.{factors}X"),
            None => Ok(()),
        }
    }
}
