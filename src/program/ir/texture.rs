//! Texture and surface accesses of lowered code (PTX ISA, Texture Instructions; Surface Instructions).

use super::Reg;

/// What an access takes an image for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Geometry { D1, D2, D3, A1, A2, Cube, ACube, Ms2, AMs2 }

/// How a texture's components go into registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Components {
    /// Four 32-bit registers.
    Words,
    /// Four registers of f16, rounded to nearest; integers lose their upper half.
    Halves,
    /// Two registers of two.
    HalfPairs,
}

#[derive(Clone, Debug)]
pub enum Detail<R = Reg> {
    Base,
    Level(R),
    /// By x and by y, as many as a layer has coordinates.
    Gradient(Box<[R]>, Box<[R]>),
}

/// `tex`, `tld4`.
#[derive(Clone, Debug)]
pub struct TextureOp<R = Reg> {
    /// 64-bit handles.
    pub texture: R,
    pub sampler: Option<R>,
    pub geometry: Geometry,
    /// Coordinates and level are floating-point; otherwise integers.
    pub floats: bool,
    /// Layer of arrays, sample of multisample images.
    pub layer: Option<R>,
    pub at: Box<[R]>,
    pub detail: Detail<R>,
    pub offset: Box<[R]>,
    pub compare: Option<R>,
    pub gather: Option<u8>,
    pub components: Components,
    pub dst: Box<[Option<R>]>,
    /// Whether the texels were resident.
    pub dst_pred: Option<R>,
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
pub enum Outside {
    Trap,
    Clamp,
    Zero,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum SurfaceReduction { Add, Min, Max, And, Or }

#[derive(Clone, Debug)]
pub enum SurfaceAction<R = Reg> {
    /// `None`: `_`.
    Load(Box<[Option<R>]>),
    Store(Box<[R]>),
    /// `signed`: `None` says that the surface's format decides.
    Reduce {
        op: SurfaceReduction,
        signed: Option<bool>,
        value: R,
    },
}

/// `suld`, `sust`, `sured`.
#[derive(Clone, Debug)]
pub struct SurfaceOp<R = Reg> {
    pub surface: R,
    pub geometry: Geometry,
    pub layer: Option<R>,
    pub at: Box<[R]>,
    pub outside: Outside,
    /// x counts texels, and stores convert to the surface's format; otherwise x counts bytes.
    pub formatted: bool,
    /// Bytes of an element of an unformatted access: 1, 2, 4 or 8.
    pub bytes: u8,
    pub action: SurfaceAction<R>,
}

/// Whether a handle is a texture's, sampler's or surface's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opaque {
    Texture,
    Sampler,
    Surface,
}
