//! Textures and surfaces (PTX ISA, Texture Instructions; Surface Instructions).

use super::access::CacheOperator;
use crate::isa::types::{Type, Vector};
use crate::isa::words::Words;

/// What an access takes an image for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Geometry { D1, D2, D3, A1, A2, Cube, ACube, Ms2, AMs2 }

impl Geometry {
    fn from_word(word: &str) -> Option<Geometry> {
        Some(match word {
            "1d" => Geometry::D1,
            "2d" => Geometry::D2,
            "3d" => Geometry::D3,
            "a1d" => Geometry::A1,
            "a2d" => Geometry::A2,
            "cube" => Geometry::Cube,
            "acube" => Geometry::ACube,
            "2dms" => Geometry::Ms2,
            "a2dms" => Geometry::AMs2,
            _ => return None,
        })
    }

    /// Coordinates in one layer.
    pub fn dimensions(self) -> usize {
        match self {
            Geometry::D1 | Geometry::A1 => 1,
            Geometry::D2 | Geometry::A2 | Geometry::Ms2 | Geometry::AMs2 => 2,
            Geometry::D3 | Geometry::Cube | Geometry::ACube => 3,
        }
    }

    /// Elements of a coordinate vector: a layer or sample before it, and what pads it to 1, 2 or 4.
    pub fn elements(self) -> usize {
        match self {
            Geometry::D1 => 1,
            Geometry::D2 | Geometry::A1 => 2,
            Geometry::D3 | Geometry::A2 | Geometry::Cube | Geometry::ACube | Geometry::Ms2 | Geometry::AMs2 => 4,
        }
    }

    /// Elements of an offset or a gradient: the coordinates of one layer, padded.
    pub fn within_layer(self) -> usize {
        match self {
            Geometry::D1 | Geometry::A1 => 1,
            Geometry::D2 | Geometry::A2 | Geometry::Ms2 | Geometry::AMs2 => 2,
            Geometry::D3 | Geometry::Cube | Geometry::ACube => 4,
        }
    }

    /// How many of the first elements are whole numbers, whatever the others are: the layer of arrays.
    pub fn layers(self) -> usize {
        match self {
            Geometry::A1 | Geometry::A2 | Geometry::ACube => 1,
            // Of multisample images all are.
            Geometry::D1 | Geometry::D2 | Geometry::D3 | Geometry::Cube | Geometry::Ms2 | Geometry::AMs2 => 0,
        }
    }
}

/// Which level of a texture is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Detail { Base, Level, Gradient }

/// What places in a texture are said in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Coordinates { S32, F32 }

impl Coordinates {
    pub const fn ty(self) -> Type {
        match self {
            Coordinates::S32 => Type::S32,
            Coordinates::F32 => Type::F32,
        }
    }
}

/// `tex`, `tld4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Texture {
    pub geometry: Geometry,
    pub detail: Detail,
    /// `tld4`: which component of four texels.
    pub gather: Option<u8>,
    pub vector: Vector,
    /// Of a component.
    pub ty: Type,
    pub coordinates: Coordinates,
}

impl Texture {
    pub(super) fn read(w: Words) -> Option<Texture> {
        let component = |word: &str| ["r", "g", "b", "a"].iter().position(|one| *one == word);
        Some(Texture {
            geometry: w.find(Geometry::from_word)?,
            detail: match () {
                () if w.has("level") => Detail::Level,
                () if w.has("grad") => Detail::Gradient,
                () => Detail::Base,
            },
            gather: match w.mnemonic {
                "tld4" => Some(w.find(component)? as u8),
                _ => None,
            },
            vector: w.vector(),
            ty: w.ty(0),
            coordinates: match w.ty(1) {
                Type::F32 => Coordinates::F32,
                Type::S32 => Coordinates::S32,
                _ => return None,
            },
        })
    }
}

/// What `txq` and `suq` ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Attribute {
    Width, Height, Depth, ChannelDataType, ChannelOrder, NormalizedCoords, ArraySize, NumMipmapLevels, NumSamples,
    MemoryLayout, ForceUnnormalizedCoords, FilterMode, AddressMode(u8),
}

impl Attribute {
    const WORDS: [(&'static str, Attribute); 15] = [
        ("width", Attribute::Width),
        ("height", Attribute::Height),
        ("depth", Attribute::Depth),
        ("channel_data_type", Attribute::ChannelDataType),
        ("channel_order", Attribute::ChannelOrder),
        ("normalized_coords", Attribute::NormalizedCoords),
        ("array_size", Attribute::ArraySize),
        ("num_mipmap_levels", Attribute::NumMipmapLevels),
        ("num_samples", Attribute::NumSamples),
        ("memory_layout", Attribute::MemoryLayout),
        ("force_unnormalized_coords", Attribute::ForceUnnormalizedCoords),
        ("filter_mode", Attribute::FilterMode),
        ("addr_mode_0", Attribute::AddressMode(0)),
        ("addr_mode_1", Attribute::AddressMode(1)),
        ("addr_mode_2", Attribute::AddressMode(2)),
    ];

    pub fn from_word(word: &str) -> Option<Attribute> {
        Attribute::WORDS
            .iter()
            .find(|(text, _)| *text == word)
            .map(|(_, attribute)| *attribute)
    }

    /// The field's name in an initialiser.
    pub fn word(self) -> &'static str {
        Attribute::WORDS
            .iter()
            .find(|(_, one)| *one == self)
            .map_or("", |(text, _)| text)
    }
}

/// What becomes of accesses outside of a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Outside { Trap, Clamp, Zero }

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum SurfaceReduction { Add, Min, Max, And, Or }

impl SurfaceReduction {
    pub(super) fn from_word(word: &str) -> Option<SurfaceReduction> {
        Some(match word {
            "add" => SurfaceReduction::Add,
            "min" => SurfaceReduction::Min,
            "max" => SurfaceReduction::Max,
            "and" => SurfaceReduction::And,
            "or" => SurfaceReduction::Or,
            _ => return None,
        })
    }
}

/// `suld`, `sust`, `sured`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Surface {
    pub geometry: Geometry,
    /// `.p`: x counts texels, and values are converted to the surface's format; otherwise x counts bytes.
    pub formatted: bool,
    pub outside: Outside,
    pub operator: Option<CacheOperator>,
    pub vector: Vector,
    pub ty: Type,
}

impl Surface {
    pub(super) fn read(w: Words) -> Option<Surface> {
        Some(Surface {
            geometry: w.find(Geometry::from_word)?,
            formatted: w.has("p"),
            outside: match (w.has("trap"), w.has("clamp")) {
                (true, _) => Outside::Trap,
                (false, true) => Outside::Clamp,
                (false, false) => Outside::Zero,
            },
            operator: w.find(CacheOperator::from_word),
            vector: w.vector(),
            ty: w.ty(0),
        })
    }
}

/// Whether a handle is a texture's, sampler's or surface's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Opaque { Texture, Sampler, Surface }

impl Opaque {
    pub(super) fn of(ty: Type) -> Option<Opaque> {
        Some(match ty {
            Type::TexRef => Opaque::Texture,
            Type::SamplerRef => Opaque::Sampler,
            Type::SurfRef => Opaque::Surface,
            _ => return None,
        })
    }
}
