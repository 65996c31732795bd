//! Copies of boxes of tensors that a tensor map describes (PTX ISA, Data Movement and Conversion Instructions: Tensor
//! copy, tensormap.replace, tensormap.cp_fenceproxy).

use std::fmt;
use std::ops::Range;

use super::bulk::Pattern;
use crate::isa::operation::AtomicOp;
use crate::isa::types::{Scope, Space};
use crate::isa::words::{Words, opcode};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `cp.async.bulk.tensor` from global to shared memory.
    Load(Load),
    /// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor` from shared to global memory.
    Store(Store),
    /// `tensormap.replace`.
    Replace { field: Field, space: Space },
    /// `tensormap.cp_fenceproxy`, a copy of a map from shared to global memory and a release.
    CopyMap { scope: Scope },
}

/// Cache policies are hints, and left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Load {
    pub tensor: Tensor,
    /// `.shared::cluster`: the destination may be another block's.
    pub cluster: bool,
    pub multicast: Option<Multicast>,
    /// `.cta_group::2`: the barrier may be that of the other block of a pair.
    pub pair: bool,
    pub report: Option<Pattern>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    pub tensor: Tensor,
    pub reduction: Option<AtomicOp>,
}

/// Which part of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tensor {
    /// 1 to 5.
    pub dims: u8,
    pub mode: Mode,
    pub over: Override,
}

/// `.load_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    Tile,
    Gather4,
    Scatter4,
    Im2col,
    Im2colW,
    Im2colW128,
    Im2colNoOffs,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Mode::Tile => "tile",
            Mode::Gather4 => "tile::gather4",
            Mode::Scatter4 => "tile::scatter4",
            Mode::Im2col => "im2col",
            Mode::Im2colW => "im2col::w",
            Mode::Im2colW128 => "im2col::w::128",
            Mode::Im2colNoOffs => "im2col_no_offs",
        }
    }

    fn from_word(word: &str) -> Option<Mode> {
        use Mode::*;
        let all = [Tile, Gather4, Scatter4, Im2col, Im2colW, Im2colW128, Im2colNoOffs];
        all.into_iter().find(|mode| mode.word() == word)
    }
}

/// What the instruction says in the map's stead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Override {
    None,
    Address,
    /// Sizes, and strides where there are any.
    Sizes,
}

/// How wide the mask of destinations is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Multicast {
    Mask16,
    Mask32,
}

/// What `tensormap.replace` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    GlobalAddress,
    Rank,
    BoxDim,
    GlobalDim,
    GlobalStride,
    ElementStride,
    Elemtype,
    InterleaveLayout,
    SwizzleMode,
    SwizzleAtomicity,
    FillMode,
}

impl Field {
    fn word(self) -> &'static str {
        match self {
            Field::GlobalAddress => "global_address",
            Field::Rank => "rank",
            Field::BoxDim => "box_dim",
            Field::GlobalDim => "global_dim",
            Field::GlobalStride => "global_stride",
            Field::ElementStride => "element_stride",
            Field::Elemtype => "elemtype",
            Field::InterleaveLayout => "interleave_layout",
            Field::SwizzleMode => "swizzle_mode",
            Field::SwizzleAtomicity => "swizzle_atomicity",
            Field::FillMode => "fill_mode",
        }
    }

    fn from_word(word: &str) -> Option<Field> {
        use Field::*;
        let all = [
            GlobalAddress,
            Rank,
            BoxDim,
            GlobalDim,
            GlobalStride,
            ElementStride,
            Elemtype,
            InterleaveLayout,
            SwizzleMode,
            SwizzleAtomicity,
            FillMode,
        ];
        all.into_iter().find(|field| field.word() == word)
    }

    /// It is one of several, by an ordinal.
    pub fn has_ordinal(self) -> bool {
        match self {
            Field::BoxDim | Field::GlobalDim | Field::GlobalStride | Field::ElementStride => true,
            Field::GlobalAddress
            | Field::Rank
            | Field::Elemtype
            | Field::InterleaveLayout
            | Field::SwizzleMode
            | Field::SwizzleAtomicity
            | Field::FillMode => false,
        }
    }

    /// Its new value has 64 bits.
    pub fn is_long(self) -> bool {
        matches!(self, Field::GlobalAddress | Field::GlobalStride)
    }
}

/// Where the registers of a copy stand among its sources: address, sizes, strides and the strides' upper bits, where
/// the opcode names them; coordinates; offsets, or halo and offset, of im2col; the mask of destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    pub address: Option<usize>,
    pub sizes: Range<usize>,
    pub strides: Range<usize>,
    pub upper: Option<usize>,
    pub coordinates: Range<usize>,
    pub info: Range<usize>,
    pub mask: Option<usize>,
}

impl Tensor {
    pub(super) fn read(w: Words) -> Option<Tensor> {
        let dims = w.find(|word| word.strip_suffix('d')?.parse().ok())?;
        let over = match () {
            () if w.has("override::global_dim") || w.has("override::global_dim_stride") => Override::Sizes,
            () if w.has("override::global_address") => Override::Address,
            () => Override::None,
        };
        let mode = w.find(Mode::from_word).unwrap_or(Mode::Tile);
        Some(Tensor { dims, mode, over })
    }

    fn coordinates(self) -> usize {
        match self.mode {
            // One column, four rows.
            Mode::Gather4 | Mode::Scatter4 => 5,
            Mode::Tile | Mode::Im2col | Mode::Im2colW | Mode::Im2colW128 | Mode::Im2colNoOffs => self.dims.into(),
        }
    }

    /// Registers of `im2colInfo`.
    fn info(self) -> usize {
        match self.mode {
            Mode::Im2col => usize::from(self.dims).saturating_sub(2),
            Mode::Im2colW | Mode::Im2colW128 => 2,
            Mode::Tile | Mode::Gather4 | Mode::Scatter4 | Mode::Im2colNoOffs => 0,
        }
    }

    pub fn places(self, multicast: bool) -> Places {
        let mut next = 0;
        let mut take = |count: usize| {
            next += count;
            next - count..next
        };
        let dims = usize::from(self.dims);
        let sizes = if self.over == Override::Sizes { dims } else { 0 };
        let one = |range: Range<usize>| (!range.is_empty()).then_some(range.start);
        Places {
            address: one(take((self.over != Override::None).into())),
            sizes: take(sizes),
            strides: take(sizes.saturating_sub(1)),
            upper: one(take((sizes > 1).into())),
            coordinates: take(self.coordinates()),
            info: take(self.info()),
            mask: one(take(multicast.into())),
        }
    }

    pub(super) fn over(self) -> (&'static str, &'static str) {
        match (self.over, self.dims) {
            (Override::None, _) => ("", ""),
            (Override::Address, _) => (".override::global_address", ""),
            (Override::Sizes, 1) => (".override::global_address", ".override::global_dim"),
            (Override::Sizes, _) => (".override::global_address", ".override::global_dim_stride"),
        }
    }
}

impl Op {
    pub(super) fn takes_whole_warps(self) -> bool {
        match self {
            Op::Load(_) | Op::Store(_) | Op::Replace { .. } => false,
            Op::CopyMap { .. } => true,
        }
    }
}

/// The reader of all copies.
pub fn copy(w: Words) -> Option<Op> {
    let tensor = Tensor::read(w)?;
    let to_global = w.find(Space::from_word) == Some(Space::Global);
    Some(match to_global {
        true => Op::Store(Store {
            tensor,
            reduction: w.find(AtomicOp::from_word),
        }),
        false => Op::Load(Load {
            tensor,
            cluster: w.has("shared::cluster"),
            multicast: w.find(|word| match word {
                "multicast::cluster" => Some(Multicast::Mask16),
                "multicast::cluster::32b" => Some(Multicast::Mask32),
                _ => None,
            }),
            pair: w.has("cta_group::2"),
            report: Pattern::read(w),
        }),
    })
}

/// `tensormap.replace`.
pub fn replace(w: Words) -> Option<Op> {
    Some(Op::Replace {
        field: w.find(Field::from_word)?,
        space: w.space(),
    })
}

/// `tensormap.cp_fenceproxy`.
pub fn copy_map(w: Words) -> Option<Op> {
    Some(Op::CopyMap { scope: w.scope()? })
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Op::Load(load) => {
                let Tensor { dims, mode, .. } = load.tensor;
                let to = if load.cluster { "cluster" } else { "cta" };
                write!(f, "cp.async.bulk.tensor.{dims}d.shared::{to}.global.{}", mode.word())?;
                f.write_str(".mbarrier::complete_tx::bytes")?;
                f.write_str(match load.multicast {
                    None => "",
                    Some(Multicast::Mask16) => ".multicast::cluster",
                    Some(Multicast::Mask32) => ".multicast::cluster::32b",
                })?;
                f.write_str(if load.pair { ".cta_group::2" } else { "" })?;
                if let Some(report) = load.report {
                    write!(f, ".{}", report.word())?;
                }
                let (address, sizes) = load.tensor.over();
                write!(f, "{address}{sizes}")
            }
            Op::Store(store) => {
                let Tensor { dims, mode, .. } = store.tensor;
                let (address, sizes) = store.tensor.over();
                match store.reduction {
                    None => write!(f, "cp.async.bulk.tensor.{dims}d.global.shared::cta.{}", mode.word())?,
                    Some(op) => {
                        let op = op.word();
                        write!(
                            f,
                            "cp.reduce.async.bulk.tensor.{dims}d.global.shared::cta.{op}.{}",
                            mode.word()
                        )?;
                    }
                }
                write!(f, "{address}{sizes}.bulk_group")
            }
            Op::Replace { field, space } => {
                let space = (space != Space::Generic).then_some(space.word());
                let bits = if field.is_long() { "b64" } else { "b32" };
                opcode!(f, "tensormap.replace.tile", field.word(), space, "b1024", bits)
            }
            Op::CopyMap { scope } => {
                f.write_str("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release")?;
                opcode!(f, "", scope, "sync", "aligned")
            }
        }
    }
}
