//! `tex`, `tld4`, `txq`, `istypep`, `suld`, `sust`, `sured`, `suq`: handles and coordinates into regs (PTX ISA, Texture
//! Instructions; Surface Instructions).

use super::moves::Located;
use super::operand::Fit;
use super::{Lower, Outcome, width_of};
use crate::isa::lanes::Width;
use crate::isa::operation as isa;
use crate::program::ir::texture::{
    Attribute, Components, Detail, Geometry, Opaque, SurfaceAction, SurfaceOp, SurfaceReduction, TextureOp,
};
use crate::program::ir::{Address, Element, Guard, Initial, Op, Ordering, Reg, Register, Space};
use crate::program::layout::{is_signed, size_of};
use crate::ptx::ast::{self, AddressBase, Expr, Instruction, Name, Operand, Span, Type};
use crate::ptx::diagnostic::Diagnostic;

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
    pub fn texture(&mut self, texture: isa::Texture, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        let operands = self.in_brackets(&instruction.operands);
        let [first, access, rest @ ..] = &operands[..] else {
            return Err(Diagnostic::error(instruction.span, "operands are missing"));
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
        let (handle, sampler, coordinates) = self.accessed(access)?;
        let texture = self.handle(&handle)?;
        let sampler = sampler.map(|sampler| self.handle(&sampler)).transpose()?;
        let (layer, at) = self.place(geometry, &coordinates, floats, instruction.span)?;
        let mut rest = rest.iter();
        let missing = || Diagnostic::error(instruction.span, "operands are missing");
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

    /// PTX 1.x leaves brackets out: `tex.1d… d, a, c` (PTX ISA 1.1, Table 44).
    fn in_brackets(&self, operands: &[Operand]) -> Vec<Operand> {
        match operands {
            [d, a, c] if self.legacy() && matches!(a, Operand::Name { .. }) => {
                let span = a.span().to(c.span());
                vec![d.clone(), Operand::Group(vec![a.clone(), c.clone()], span)]
            }
            _ => operands.to_vec(),
        }
    }

    /// Handle, sampler, coordinates.
    fn accessed(&self, operand: &Operand) -> Outcome<(Name, Option<Name>, Operand)> {
        let name = |operand: &Operand| match operand {
            Operand::Name {
                name,
                select: None,
                offset: 0,
            } => Ok(name.clone()),
            other => Err(Diagnostic::error(
                other.span(),
                "the name of a variable or register is expected",
            )),
        };
        match operand {
            Operand::Group(list, span) => match &list[..] {
                [handle, coordinates] => Ok((name(handle)?, None, coordinates.clone())),
                [handle, sampler, coordinates] => Ok((name(handle)?, Some(name(sampler)?), coordinates.clone())),
                _ => Err(Diagnostic::error(*span, "a handle and coordinates are expected")),
            },
            other => Err(Diagnostic::error(
                other.span(),
                "a handle and coordinates in brackets are expected",
            )),
        }
    }

    /// The 64-bit value of a handle: a variable's address, a parameter's or a register's content.
    fn handle(&mut self, name: &Name) -> Outcome<Reg> {
        let register = match self.locate(name)? {
            Some(Located::Absolute { address, .. }) => self.constant(Width::B64, address.into()),
            Some(Located::Param(place)) => {
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
            Some(Located::Frame(place)) => {
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
                self.push(None, name.span, load);
                register
            }
            Some(_) => return Err(Diagnostic::error(name.span, format!("`{}` is no handle", name.text))),
            None => {
                let (register, _) = self.register(name, None)?;
                self.resize(register, Width::B64, false, name.span)?
            }
        };
        Ok(self.body.reg(register))
    }

    /// Layer and coordinates; what pads the vector is dropped.
    fn place(
        &mut self,
        geometry: Geometry,
        operand: &Operand,
        floats: bool,
        span: Span,
    ) -> Outcome<(Option<Reg>, Box<[Reg]>)> {
        let list = self.elements(operand).unwrap_or_else(|| vec![operand.clone()]);
        let (skip, layer) = before(geometry);
        let wanted = geometry.dimensions();
        if list.len() < skip + wanted {
            return Err(Diagnostic::error(
                span,
                format!("{} coordinates are expected, not {}", skip + wanted, list.len()),
            ));
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
        let list = self.elements(operand).unwrap_or_else(|| vec![operand.clone()]);
        if list.len() < count {
            return Err(Diagnostic::error(
                operand.span(),
                format!("{count} elements are expected, not {}", list.len()),
            ));
        }
        list[..count].iter().map(|one| self.number(one, float)).collect()
    }

    /// Offsets are vectors, or integers where the geometry has one coordinate; references are floats.
    fn is_offset(&mut self, operand: &Operand, dimensions: usize) -> bool {
        match operand {
            Operand::Vector(..) => true,
            Operand::Name { .. } if self.elements(operand).is_some() => true,
            Operand::Immediate(expr) => dimensions == 1 && matches!(expr, Expr::Int { .. }),
            Operand::Name { name, select, .. } if dimensions == 1 => {
                let register = self.register(name, select.as_ref());
                register.is_ok_and(|(_, ty)| ty != Type::F32)
            }
            _ => false,
        }
    }

    fn results(&mut self, operand: &Operand, count: usize, ty: Type, fit: Fit) -> Outcome<Box<[Option<Reg>]>> {
        let list = self.elements(operand).unwrap_or_else(|| vec![operand.clone()]);
        if list.len() != count {
            return Err(Diagnostic::error(
                operand.span(),
                format!("{count} destinations are expected, not {}", list.len()),
            ));
        }
        list.iter()
            .map(|one| match one {
                Operand::Sink(_) => Ok(None),
                other => {
                    let register = self.destination(other, width_of(ty), fit)?;
                    Ok(Some(self.body.reg(register)))
                }
            })
            .collect()
    }

    pub fn texture_query(
        &mut self,
        attribute: Attribute,
        instruction: &Instruction,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        self.operand_count(instruction, 2, 3)?;
        let operands = &instruction.operands;
        let Operand::Address(ast::Address {
            base: AddressBase::Name(name),
            ..
        }) = &operands[1]
        else {
            return Err(Diagnostic::error(
                operands[1].span(),
                "a handle in brackets is expected",
            ));
        };
        let handle = self.handle(name)?;
        let level = operands.get(2).map(|level| self.number(level, false)).transpose()?;
        let dst = self.destination(&operands[0], Width::B32, Fit::Exact)?;
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

    pub fn is_handle(&mut self, opaque: Opaque, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        self.operand_count(instruction, 2, 2)?;
        let src = self.source(&instruction.operands[1], Width::B64, Fit::Exact, false)?;
        let dst = self.destination(&instruction.operands[0], Width::Pred, Fit::Exact)?;
        let (dst, src) = (self.body.reg(dst), self.body.reg(src));
        self.push(guard, instruction.span, Op::IsHandle { opaque, dst, src });
        Ok(())
    }

    pub fn surface(
        &mut self,
        surface: isa::Surface,
        access: Access,
        instruction: &Instruction,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        self.operand_count(instruction, 2, 2)?;
        let span = instruction.span;
        let (place, data) = match access {
            Access::Load => (&instruction.operands[1], &instruction.operands[0]),
            Access::Store | Access::Reduce(_) => (&instruction.operands[0], &instruction.operands[1]),
        };
        let isa::Surface {
            geometry,
            formatted,
            outside,
            vector,
            ty,
            ..
        } = surface;
        let (handle, _, coordinates) = self.accessed(place)?;
        let surface = self.handle(&handle)?;
        let (layer, at) = self.place(geometry, &coordinates, false, span)?;
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
        let list = self.elements(operand).unwrap_or_else(|| vec![operand.clone()]);
        if list.len() != count {
            return Err(Diagnostic::error(
                operand.span(),
                format!("{count} values are expected, not {}", list.len()),
            ));
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
