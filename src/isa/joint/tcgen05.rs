//! Tensor memory, and the products that are kept in it (PTX ISA, TensorCore 5th Generation Family Instructions).

use std::fmt;

use crate::isa::types::Type;
use crate::isa::words::Words;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `tcgen05.alloc`
    Allocate(Group),
    /// `tcgen05.dealloc`
    Free(Group),
    /// `tcgen05.relinquish_alloc_permit`
    Relinquish(Group),
    /// `tcgen05.ld`
    Load(Transfer),
    /// `tcgen05.ld.red`
    LoadReduce(Transfer, Reduction),
    /// `tcgen05.st`
    Store(Transfer),
    /// `tcgen05.wait::ld`, `tcgen05.wait::st`
    Wait,
    /// `tcgen05.fence`
    Fence,
    /// `tcgen05.commit`
    Commit(Commit),
    /// `tcgen05.cp`
    Copy(Copy),
    /// `tcgen05.shift`
    Shift(Group),
    /// `tcgen05.mma`
    Mma(Mma),
}

/// `.cta_group`: one block, or the pair of blocks of a cluster whose ranks differ in the last bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    One,
    Two,
}

/// Between tensor memory and the registers of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    pub shape: Shape,
    /// `.num`
    pub repeat: u8,
    /// `.pack::16b`, `.unpack::16b`: a register holds the low halves of two columns.
    pub packed: bool,
}

/// Lanes and bits of each that a transfer moves, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// `.32x32b`
    Lane32,
    /// `.16x64b`
    Lane16Bits64,
    /// `.16x128b`
    Lane16Bits128,
    /// `.16x256b`
    Lane16Bits256,
    /// `.16x32bx2`: a second half, so many columns on.
    Lane16Twice,
}

/// What `tcgen05.ld.red` finds among the values that a thread loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reduction {
    pub extreme: Extreme,
    pub ty: Reduced,
    /// `.spcompress`: of each four values the two that come first by the same order are loaded, with metadata that says
    /// which.
    pub compress: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extreme {
    Min,
    Max,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduced {
    U32,
    S32,
    /// `.abs`, `.NaN`
    F32 {
        abs: bool,
        nan: bool,
    },
}

/// An arrival at a barrier in shared memory when all that went before is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Commit {
    pub group: Group,
    /// At the barriers at the same place of several blocks of the cluster, a bit for each in a mask.
    pub multicast: bool,
}

/// From shared to tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Copy {
    pub group: Group,
    pub shape: CopyShape,
    pub format: Option<Decompression>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyShape {
    /// `.128x256b`
    Lanes128Bits256,
    /// `.128x128b`
    Lanes128Bits128,
    /// `.4x256b`: one lane of each warp's.
    Lanes4,
    /// `.64x128b.warpx2::02_13`: warps 0 and 1 have the halves, 2 and 3 the same.
    Lanes64Apart,
    /// `.64x128b.warpx2::01_23`: warps 0 and 2 have the halves, 1 and 3 the same.
    Lanes64Paired,
    /// `.32x128b.warpx4`: each warp's lanes have the same.
    Lanes32,
}

/// Small floats, sixteen in 16 bytes with a gap behind them, become a byte each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decompression {
    /// `.b8x16.b6x16_p32`
    Bits6,
    /// `.b8x16.b4x16_p64`
    Bits4,
}

/// `D = A·B + D` in tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mma {
    pub group: Group,
    pub kind: Kind,
    /// `.ws`: one that keeps B for several.
    pub weight_stationary: bool,
    pub sparse: bool,
    /// `.block_scale`: how many elements along k share a factor.
    pub block: Option<Block>,
    /// `.ashift`: A's rows come from one lane further on.
    pub shifted: bool,
    pub collector: Option<Collector>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Kind { F16, Tf32, F8f6f4, I8, Mxf8f6f4, Mxf4, Mxf4nvf4 }

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Block {
    Of16,
    Of32,
}

/// Where an operand is kept for the next product: it says what the hardware need not read again, and changes no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collector {
    pub buffer: Buffer,
    pub usage: Usage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Buffer { A, B0, B1, B2, B3 }

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Usage { Fill, Use, LastUse, Discard }

impl Op {
    pub(super) fn takes_whole_warps(self) -> bool {
        match self {
            Op::Allocate(_) | Op::Free(_) | Op::Relinquish(_) => true,
            Op::Load(_) | Op::LoadReduce(..) | Op::Store(_) | Op::Wait => true,
            // One thread is enough.
            Op::Fence | Op::Commit(_) | Op::Copy(_) | Op::Shift(_) | Op::Mma(_) => false,
        }
    }
}

impl Transfer {
    /// 32-bit columns of a lane that it moves at a time, with what is packed counted once.
    pub fn columns(self) -> usize {
        match self.shape {
            Shape::Lane32 | Shape::Lane16Twice => 1,
            Shape::Lane16Bits64 => 2,
            Shape::Lane16Bits128 => 4,
            Shape::Lane16Bits256 => 8,
        }
    }

    /// Registers that each thread has.
    pub fn registers(self) -> usize {
        let each = match self.shape {
            Shape::Lane32 | Shape::Lane16Twice | Shape::Lane16Bits64 => 1,
            Shape::Lane16Bits128 => 2,
            Shape::Lane16Bits256 => 4,
        };
        each * usize::from(self.repeat)
    }
}

fn group(w: Words) -> Group {
    if w.has("cta_group::2") { Group::Two } else { Group::One }
}

fn transfer(w: Words) -> Option<Transfer> {
    let shape = w.find(|word| {
        Some(match word {
            "32x32b" => Shape::Lane32,
            "16x64b" => Shape::Lane16Bits64,
            "16x128b" => Shape::Lane16Bits128,
            "16x256b" => Shape::Lane16Bits256,
            "16x32bx2" => Shape::Lane16Twice,
            _ => return None,
        })
    })?;
    Some(Transfer {
        shape,
        repeat: w.find(|word| word.strip_prefix('x')?.parse().ok())?,
        packed: w.has("pack::16b") || w.has("unpack::16b"),
    })
}

macro_rules! readers {
    ($($(#[$doc:meta])* $name:ident |$w:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name($w: Words) -> Option<Op> {
            Some($body)
        }
    )*};
}
readers! {
    allocate |w| Op::Allocate(group(w));
    free |w| Op::Free(group(w));
    relinquish |w| Op::Relinquish(group(w));
    load |w| Op::Load(transfer(w)?);
    load_reduce |w| Op::LoadReduce(transfer(w)?, Reduction {
        extreme: if w.has("max") { Extreme::Max } else { Extreme::Min },
        ty: match w.ty(0) {
            Type::U32 => Reduced::U32,
            Type::S32 => Reduced::S32,
            Type::F32 => Reduced::F32 { abs: w.has("abs"), nan: w.has("NaN") },
            _ => return None,
        },
        compress: w.has("spcompress"),
    });
    store |w| Op::Store(transfer(w)?);
    wait |_w| Op::Wait;
    fence |_w| Op::Fence;
    commit |w| Op::Commit(Commit {
        group: group(w),
        multicast: w.has("multicast::cluster") || w.has("multicast::cluster::32b"),
    });
    copy |w| Op::Copy(Copy {
        group: group(w),
        shape: w.find(|word| Some(match word {
            "128x256b" => CopyShape::Lanes128Bits256,
            "128x128b" => CopyShape::Lanes128Bits128,
            "4x256b" => CopyShape::Lanes4,
            "warpx2::02_13" => CopyShape::Lanes64Apart,
            "warpx2::01_23" => CopyShape::Lanes64Paired,
            "warpx4" => CopyShape::Lanes32,
            _ => return None,
        }))?,
        format: w.find(|word| Some(match word {
            "b6x16_p32" => Decompression::Bits6,
            "b4x16_p64" => Decompression::Bits4,
            _ => return None,
        })),
    });
    shift |w| Op::Shift(group(w));
    mma |w| Op::Mma(multiply(w)?);
}

fn multiply(w: Words) -> Option<Mma> {
    let kind = w.find(|word| {
        Some(match word {
            "kind::f16" => Kind::F16,
            "kind::tf32" => Kind::Tf32,
            "kind::f8f6f4" => Kind::F8f6f4,
            "kind::i8" => Kind::I8,
            "kind::mxf8f6f4" => Kind::Mxf8f6f4,
            "kind::mxf4" => Kind::Mxf4,
            "kind::mxf4nvf4" => Kind::Mxf4nvf4,
            _ => return None,
        })
    })?;
    // Both of `.mxf8f6f4` and `.mxf4` have blocks of 32 (PTX ISA, tcgen05.mma, Block Scaling, Table 55).
    let of_16 = w.has("scale_vec::4X") || w.has("block16");
    let block = w
        .has("block_scale")
        .then_some(if of_16 { Block::Of16 } else { Block::Of32 });
    let collector = w.find(|word| {
        let (buffer, usage) = word.strip_prefix("collector::")?.split_once("::")?;
        let buffer = match buffer {
            "a" => Buffer::A,
            "b0" => Buffer::B0,
            "b1" => Buffer::B1,
            "b2" => Buffer::B2,
            "b3" => Buffer::B3,
            _ => return None,
        };
        let usage = match usage {
            "fill" => Usage::Fill,
            "use" => Usage::Use,
            "lastuse" => Usage::LastUse,
            "discard" => Usage::Discard,
            _ => return None,
        };
        Some(Collector { buffer, usage })
    });
    Some(Mma {
        group: group(w),
        kind,
        weight_stationary: w.has("ws"),
        sparse: w.has("sp"),
        block,
        shifted: w.has("ashift"),
        collector,
    })
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Group::One => ".cta_group::1",
            Group::Two => ".cta_group::2",
        })
    }
}

impl fmt::Display for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = match self.shape {
            Shape::Lane32 => "32x32b",
            Shape::Lane16Bits64 => "16x64b",
            Shape::Lane16Bits128 => "16x128b",
            Shape::Lane16Bits256 => "16x256b",
            Shape::Lane16Twice => "16x32bx2",
        };
        write!(f, ".{shape}.x{}", self.repeat)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packed = |transfer: &Transfer, word| if transfer.packed { word } else { "" };
        match self {
            Op::Allocate(group) => write!(f, "tcgen05.alloc{group}.b32"),
            Op::Free(group) => write!(f, "tcgen05.dealloc{group}.b32"),
            Op::Relinquish(group) => write!(f, "tcgen05.relinquish_alloc_permit{group}"),
            Op::Load(transfer) => write!(f, "tcgen05.ld{transfer}{}.b32", packed(transfer, ".pack::16b")),
            Op::LoadReduce(transfer, reduction) => {
                let compress = if reduction.compress { ".spcompress" } else { "" };
                write!(f, "tcgen05.ld.red{compress}{transfer}{reduction}")
            }
            Op::Store(transfer) => write!(f, "tcgen05.st{transfer}{}.b32", packed(transfer, ".unpack::16b")),
            Op::Wait => f.write_str("tcgen05.wait"),
            Op::Fence => f.write_str("tcgen05.fence"),
            Op::Commit(commit) => {
                let multicast = if commit.multicast { ".multicast::cluster" } else { "" };
                write!(f, "tcgen05.commit{}.mbarrier::arrive::one{multicast}.b64", commit.group)
            }
            Op::Copy(copy) => copy.fmt(f),
            Op::Shift(group) => write!(f, "tcgen05.shift{group}.down"),
            Op::Mma(mma) => mma.fmt(f),
        }
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.extreme {
            Extreme::Min => ".min",
            Extreme::Max => ".max",
        })?;
        match self.ty {
            Reduced::U32 => f.write_str(".u32"),
            Reduced::S32 => f.write_str(".s32"),
            Reduced::F32 { abs, nan } => {
                f.write_str(if abs { ".abs" } else { "" })?;
                f.write_str(if nan { ".NaN" } else { "" })?;
                f.write_str(".f32")
            }
        }
    }
}

impl fmt::Display for Copy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = match self.shape {
            CopyShape::Lanes128Bits256 => "128x256b",
            CopyShape::Lanes128Bits128 => "128x128b",
            CopyShape::Lanes4 => "4x256b",
            CopyShape::Lanes64Apart => "64x128b.warpx2::02_13",
            CopyShape::Lanes64Paired => "64x128b.warpx2::01_23",
            CopyShape::Lanes32 => "32x128b.warpx4",
        };
        let format = match self.format {
            None => "",
            Some(Decompression::Bits6) => ".b8x16.b6x16_p32",
            Some(Decompression::Bits4) => ".b8x16.b4x16_p64",
        };
        write!(f, "tcgen05.cp{}.{shape}{format}", self.group)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::F16 => "f16",
            Kind::Tf32 => "tf32",
            Kind::F8f6f4 => "f8f6f4",
            Kind::I8 => "i8",
            Kind::Mxf8f6f4 => "mxf8f6f4",
            Kind::Mxf4 => "mxf4",
            Kind::Mxf4nvf4 => "mxf4nvf4",
        })
    }
}

impl fmt::Display for Mma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mma {
            group,
            kind,
            weight_stationary,
            sparse,
            block,
            shifted,
            collector,
        } = self;
        f.write_str("tcgen05.mma")?;
        f.write_str(if *weight_stationary { ".ws" } else { "" })?;
        f.write_str(if *sparse { ".sp" } else { "" })?;
        write!(f, "{group}.kind::{kind}")?;
        f.write_str(match block {
            None => "",
            Some(Block::Of16) => ".block_scale.block16",
            Some(Block::Of32) => ".block_scale.block32",
        })?;
        f.write_str(if *shifted { ".ashift" } else { "" })?;
        let Some(Collector { buffer, usage }) = collector else {
            return Ok(());
        };
        let buffer = match buffer {
            Buffer::A => "a",
            Buffer::B0 => "b0",
            Buffer::B1 => "b1",
            Buffer::B2 => "b2",
            Buffer::B3 => "b3",
        };
        let usage = match usage {
            Usage::Fill => "fill",
            Usage::Use => "use",
            Usage::LastUse => "lastuse",
            Usage::Discard => "discard",
        };
        write!(f, ".collector::{buffer}::{usage}")
    }
}
