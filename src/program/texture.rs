//! Texture and surface accesses of lowered code (PTX ISA, Texture Instructions; Surface Instructions).

use super::instr::Slot;
use super::visit::Role;
use crate::isa::lanes::Width;
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
pub enum Detail {
    Base,
    Level(Slot),
    /// By x and by y, as many as a layer has coordinates.
    Gradient(Box<[Slot]>, Box<[Slot]>),
}

/// `tex`, `tld4`.
#[derive(Clone, Debug)]
pub struct TextureOp {
    /// 64-bit handles.
    pub texture: Slot,
    pub sampler: Option<Slot>,
    pub geometry: Geometry,
    /// Coordinates and level are floating-point; otherwise integers.
    pub floats: bool,
    /// Layer of arrays, sample of multisample images.
    pub layer: Option<Slot>,
    pub at: Box<[Slot]>,
    pub detail: Detail,
    pub offset: Box<[Slot]>,
    pub compare: Option<Slot>,
    pub gather: Option<u8>,
    pub components: Components,
    pub dst: Box<[Option<Slot>]>,
    /// Whether the texels were resident.
    pub dst_pred: Option<Slot>,
}

#[derive(Clone, Debug)]
pub enum SurfaceAction {
    /// `None`: `_`.
    Load(Box<[Option<Slot>]>),
    Store(Box<[Slot]>),
    /// `signed`: `None` says that the surface's format decides.
    Reduce {
        op: SurfaceReduction,
        signed: Option<bool>,
        value: Slot,
    },
}

/// `suld`, `sust`, `sured`.
#[derive(Clone, Debug)]
pub struct SurfaceOp {
    pub surface: Slot,
    pub geometry: Geometry,
    pub layer: Option<Slot>,
    pub at: Box<[Slot]>,
    pub outside: Outside,
    /// x counts texels, and stores convert to the surface's format; otherwise x counts bytes.
    pub formatted: bool,
    /// Bytes of an element of an unformatted access: 1, 2, 4 or 8.
    pub bytes: u8,
    pub action: SurfaceAction,
}

type Visit<'a> = &'a mut dyn FnMut(&mut u32, Width, Role);

fn visit<'s>(slots: impl IntoIterator<Item = &'s mut Slot>, role: Role, f: Visit<'_>) {
    for slot in slots {
        f(&mut slot.offset, slot.width, role);
    }
}

impl TextureOp {
    /// As [`super::Instr::slots_mut`].
    pub(super) fn slots_mut(&mut self, f: Visit<'_>) {
        let inputs = [&mut self.texture]
            .into_iter()
            .chain(&mut self.sampler)
            .chain(&mut self.layer);
        visit(
            inputs
                .chain(&mut self.at)
                .chain(&mut self.offset)
                .chain(&mut self.compare),
            Role::Use,
            f,
        );
        match &mut self.detail {
            Detail::Base => {}
            Detail::Level(level) => visit([level], Role::Use, f),
            Detail::Gradient(x, y) => visit(x.iter_mut().chain(y), Role::Use, f),
        }
        visit(self.dst.iter_mut().flatten().chain(&mut self.dst_pred), Role::Def, f);
    }
}

impl SurfaceOp {
    /// As [`super::Instr::slots_mut`].
    pub(super) fn slots_mut(&mut self, f: Visit<'_>) {
        let inputs = [&mut self.surface].into_iter().chain(&mut self.layer);
        visit(inputs.chain(&mut self.at), Role::Use, f);
        match &mut self.action {
            SurfaceAction::Load(dst) => visit(dst.iter_mut().flatten(), Role::Def, f),
            SurfaceAction::Store(src) => visit(src, Role::Use, f),
            SurfaceAction::Reduce { value, .. } => visit([value], Role::Use, f),
        }
    }
}
