//! `tex`, `tld4`, `txq`, `istypep`, `suld`, `sust`, `sured`, `suq`: handles and coordinates into regs (PTX ISA, Texture
//! Instructions; Surface Instructions).

use super::operand::{Fit, miscounted, unexpected};
use super::place::Located;
use super::{Lower, Outcome, width_of};
use crate::isa::lanes::Width;
use crate::isa::operation as isa;
use crate::program::check::tree::{Base, Instruction, Operand};
use crate::program::ir::texture::{
    Attribute, Components, Detail, Geometry, Opaque, SurfaceAction, SurfaceOp, SurfaceReduction, TextureOp,
};
use crate::program::ir::{Address, Element, Guard, Initial, Op, Ordering, Reg, Register, Space};
use crate::program::layout::{is_signed, size_of};
use crate::ptx::ast::{Expr, Span, Type};

/// What is done to a surface.
pub enum Access {
    Load,
    Store,
    Reduce(SurfaceReduction),
}

/// Elements of a coordinate vector before the coordinates proper; which of them is the layer.
fn before(geometry: Geometry) -> (usize, Option<usize>) {
    match geometry {
        Geometry::D1 | Geometry::D2 | Geometry::D3 | Geometry::Cube => (0, None),
        Geometry::A1 | Geometry::A2 | Geometry::ACube => (1, Some(0)),
        // A sample's number: images have one sample each.
        Geometry::Ms2 => (1, None),
        Geometry::AMs2 => (2, Some(0)),
    }
}

impl Lower<'_> {
    pub fn texture(
        &mut self,
        texture: isa::Texture,
        instruction: &Instruction<'_>,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        let [first, access, rest @ ..] = &instruction.operands[..] else {
            return Err(miscounted(instruction));
        };
        let isa::Texture {
            geometry,
            gather,
            ty,
            vector,
            ..
        } = texture;
        let floats = texture.coordinates == isa::Coordinates::F32;
        let wanted = texture.detail;
        let (handle, sampler, coordinates) = accessed(access)?;
        let texture = self.handle(handle)?;
        let sampler = sampler.map(|sampler| self.handle(sampler)).transpose()?;
        let (layer, at) = self.place(geometry, coordinates, floats)?;
        let mut rest = rest.iter();
        let missing = || miscounted(instruction);
        let detail = match wanted {
            isa::Detail::Base => Detail::Base,
            isa::Detail::Level => Detail::Level(self.number(rest.next().ok_or_else(missing)?, floats)?),
            isa::Detail::Gradient => {
                let mut gradient = || -> Outcome<Box<[Reg]>> {
                    let vector = rest.next().ok_or_else(missing)?;
                    self.numbers(vector, geometry.dimensions(), true)
                };
                Detail::Gradient(gradient()?, gradient()?)
            }
        };
        let rest: Vec<&Operand> = rest.collect();
        let (offset, compare) = match rest[..] {
            [] => (None, None),
            [one] if self.is_offset(one, geometry.dimensions()) => (Some(one), None),
            [one] => (None, Some(one)),
            [offset, compare, ..] => (Some(offset), Some(compare)),
        };
        let offset = match offset {
            Some(offset) => self.numbers(offset, geometry.dimensions(), false)?,
            None => Box::default(),
        };
        let compare = compare.map(|compare| self.number(compare, true)).transpose()?;
        let (values, predicate) = match first {
            Operand::Pair(values, predicate) => (&**values, Some(&**predicate)),
            values => (values, None),
        };
        let components = match ty {
            Type::F16 => Components::Halves,
            Type::F16x2 => Components::HalfPairs,
            _ => Components::Words,
        };
        let dst = self.results(values, usize::from(vector.count()), ty, Fit::Exact)?;
        let dst_pred = match predicate {
            None | Some(Operand::Sink(_)) => None,
            Some(predicate) => {
                let register = self.destination(predicate, Width::Pred, Fit::Exact)?;
                Some(self.body.reg(register))
            }
        };
        let op = TextureOp {
            texture,
            sampler,
            geometry,
            floats,
            layer,
            at,
            detail,
            offset,
            compare,
            gather,
            components,
            dst,
            dst_pred,
        };
        self.push(guard, instruction.span, Op::Texture(Box::new(op)));
        Ok(())
    }

    /// The 64-bit value of a handle: a variable's address, a parameter's or a register's content.
    fn handle(&mut self, operand: &Operand) -> Outcome<Reg> {
        let (object, span) = match operand {
            Operand::AddressOf(object, 0, span) => (*object, *span),
            other => {
                let register = self.source_any(other, Width::B64, false)?;
                let register = self.resize(register, Width::B64, false, other.span())?;
                return Ok(self.body.reg(register));
            }
        };
        let register = match self.locate(object, span)? {
            Located::Absolute { address, .. } => self.constant(Width::B64, address.into()),
            Located::Param(place) => {
                let element = Element {
                    bytes: 8,
                    signed: false,
                };
                self.body.initial(
                    Width::B64,
                    Initial::Param {
                        offset: place.offset,
                        element,
                    },
                )
            }
            Located::Frame(place) => {
                let register = self.body.register(Width::B64);
                let reg = self.body.reg(register);
                let load = Op::Load {
                    address: Address {
                        space: Space::Local,
                        register: None,
                        offset: place.offset.into(),
                    },
                    element: Element {
                        bytes: 8,
                        signed: false,
                    },
                    ordering: Ordering::Weak,
                    scope: None,
                    dst: Box::new([Some(reg)]),
                };
                self.push(None, span, load);
                register
            }
            Located::Shared(_) | Located::Function(_) => return unexpected(operand),
        };
        Ok(self.body.reg(register))
    }

    /// Layer and coordinates; what pads the vector is dropped.
    fn place(&mut self, geometry: Geometry, operand: &Operand, floats: bool) -> Outcome<(Option<Reg>, Box<[Reg]>)> {
        let list = operand.list();
        let (skip, layer) = before(geometry);
        let wanted = geometry.dimensions();
        if list.len() < skip + wanted {
            return unexpected(operand);
        }
        let layer = layer.map(|at| self.number(&list[at], false)).transpose()?;
        let at = list[skip..skip + wanted]
            .iter()
            .map(|one| self.number(one, floats))
            .collect::<Outcome<_>>()?;
        Ok((layer, at))
    }

    /// A 32-bit value, perhaps in braces.
    fn number(&mut self, operand: &Operand, float: bool) -> Outcome<Reg> {
        let operand = match operand {
            Operand::Vector(list, _) if list.len() == 1 => &list[0],
            one => one,
        };
        let register = self.source(operand, Width::B32, Fit::Exact, float)?;
        Ok(self.body.reg(register))
    }

    /// The first `count` of a vector.
    fn numbers(&mut self, operand: &Operand, count: usize, float: bool) -> Outcome<Box<[Reg]>> {
        let list = operand.list();
        if list.len() < count {
            return unexpected(operand);
        }
        list[..count].iter().map(|one| self.number(one, float)).collect()
    }

    /// Offsets are vectors, or integers where the geometry has one coordinate; references are floats.
    fn is_offset(&self, operand: &Operand, dimensions: usize) -> bool {
        match operand {
            Operand::Vector(..) | Operand::Whole(..) => true,
            Operand::Immediate(expr) => dimensions == 1 && matches!(expr, Expr::Int { .. }),
            Operand::Register(register) => {
                dimensions == 1 && self.tree.registers[register.number as usize].ty != Type::F32
            }
            Operand::Sum(..)
            | Operand::Special(..)
            | Operand::AddressOf(..)
            | Operand::Address(_)
            | Operand::Not(_)
            | Operand::Group(..)
            | Operand::Pair(..)
            | Operand::Sink(_) => false,
        }
    }

    fn results(&mut self, operand: &Operand, count: usize, ty: Type, fit: Fit) -> Outcome<Box<[Option<Reg>]>> {
        let registers = self.destinations(operand, count, width_of(ty), fit)?.into_iter();
        Ok(registers
            .map(|register| register.map(|register| self.body.reg(register)))
            .collect())
    }

    pub fn texture_query(
        &mut self,
        attribute: Attribute,
        instruction: &Instruction<'_>,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        let [dst, handle, level @ ..] = &instruction.operands[..] else {
            return Err(miscounted(instruction));
        };
        let Operand::Address(address) = handle else {
            return unexpected(handle);
        };
        let handle = match address.base {
            Base::Register(register) => self.handle(&Operand::Register(register))?,
            Base::Object(object, span) => self.handle(&Operand::AddressOf(object, 0, span))?,
            Base::Absolute(_) => return unexpected(handle),
        };
        let level = level.first().map(|level| self.number(level, false)).transpose()?;
        let dst = self.destination(dst, Width::B32, Fit::Exact)?;
        let dst = self.body.reg(dst);
        let kind = Op::HandleQuery {
            handle,
            attribute,
            level,
            dst,
        };
        self.push(guard, instruction.span, kind);
        Ok(())
    }

    pub fn is_handle(&mut self, opaque: Opaque, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let [dst, src] = self.operands(instruction)?;
        let src = self.source(src, Width::B64, Fit::Exact, false)?;
        let dst = self.destination(dst, Width::Pred, Fit::Exact)?;
        let (dst, src) = (self.body.reg(dst), self.body.reg(src));
        self.push(guard, instruction.span, Op::IsHandle { opaque, dst, src });
        Ok(())
    }

    pub fn surface(
        &mut self,
        surface: isa::Surface,
        access: Access,
        instruction: &Instruction<'_>,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        let [first, second] = self.operands(instruction)?;
        let span = instruction.span;
        let (place, data) = match access {
            Access::Load => (second, first),
            Access::Store | Access::Reduce(_) => (first, second),
        };
        let isa::Surface {
            geometry,
            formatted,
            outside,
            vector,
            ty,
            ..
        } = surface;
        let (handle, _, coordinates) = accessed(place)?;
        let surface = self.handle(handle)?;
        let (layer, at) = self.place(geometry, coordinates, false)?;
        let count = usize::from(vector.count());
        let mut narrow = Vec::new();
        let action = match access {
            Access::Load => SurfaceAction::Load(self.loaded(data, count, ty, &mut narrow)?),
            Access::Store => SurfaceAction::Store(self.stored(data, count, ty, span)?),
            Access::Reduce(op) => {
                let value = self.source(data, width_of(ty), Fit::Wider, false)?;
                let value = self.resize(value, width_of(ty), false, span)?;
                SurfaceAction::Reduce {
                    op,
                    signed: (!formatted).then(|| is_signed(ty)),
                    value: self.body.reg(value),
                }
            }
        };
        let op = SurfaceOp {
            surface,
            geometry,
            layer,
            at,
            outside,
            formatted,
            bytes: size_of(ty) as u8,
            action,
        };
        self.push(guard, span, Op::Surface(Box::new(op)));
        for (wide, narrow) in narrow {
            self.resize_into(guard, wide, narrow, false, span)?;
        }
        Ok(())
    }

    /// Registers may be wider than the elements: those get narrow ones first, and are extended behind the access.
    fn loaded(
        &mut self,
        operand: &Operand,
        count: usize,
        ty: Type,
        narrow: &mut Vec<(Register, Register)>,
    ) -> Outcome<Box<[Option<Reg>]>> {
        let regs = self.results(operand, count, ty, Fit::Wider)?;
        let width = width_of(ty);
        Ok(regs
            .iter()
            .map(|reg| {
                let reg = (*reg)?;
                if reg.width == width {
                    return Some(reg);
                }
                let register = self.body.register(width);
                narrow.push((reg.number, register));
                Some(self.body.reg(register))
            })
            .collect())
    }

    fn stored(&mut self, operand: &Operand, count: usize, ty: Type, span: Span) -> Outcome<Box<[Reg]>> {
        let list = operand.list();
        if list.len() != count {
            return unexpected(operand);
        }
        list.iter()
            .map(|one| {
                let register = self.source(one, width_of(ty), Fit::Wider, false)?;
                let register = self.resize(register, width_of(ty), false, span)?;
                Ok(self.body.reg(register))
            })
            .collect()
    }
}

/// Handle, sampler, coordinates.
fn accessed(operand: &Operand) -> Outcome<(&Operand, Option<&Operand>, &Operand)> {
    match operand {
        Operand::Group(list, _) => match &list[..] {
            [handle, coordinates] => Ok((handle, None, coordinates)),
            [handle, sampler, coordinates] => Ok((handle, Some(sampler), coordinates)),
            _ => unexpected(operand),
        },
        other => unexpected(other),
    }
}
