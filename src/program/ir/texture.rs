//! Texture and surface accesses of lowered code (PTX ISA, Texture Instructions; Surface Instructions).

use super::Reg;
pub use crate::isa::operation::{Attribute, Geometry, Opaque, Outside, SurfaceReduction};

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
