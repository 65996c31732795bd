//! Operands of texture and surface instructions: handles, and coordinates as many as the geometry has (PTX ISA, Texture,
//! Sampler and Surface Types; Texture Instructions; Surface Instructions).

use super::body::{Body, Named, Outcome};
use super::scope::Entity;
use super::types::{Class, a_type, class, constant_agrees};
use crate::isa::Form;
use crate::isa::table::signature::Value;
use crate::program::layout;
use crate::ptx::ast::{Address, AddressBase, Expr, Name, Operand, Type};
use crate::ptx::diagnostic::Diagnostic;

impl Body<'_> {
    /// `[a]`, `[a, c]`, `[a, b, c]`.
    pub fn handle(&mut self, form: &Form, want: Type, coordinates: bool, operand: &Operand) -> Outcome {
        // Without separate samplers a texture is asked for its own.
        let want = if want == Type::SamplerRef && !self.has_samplers() {
            Type::TexRef
        } else {
            want
        };
        match (operand, coordinates) {
            (Operand::Address(address), false) => {
                let Address {
                    base,
                    index: None,
                    offset: 0,
                    ..
                } = address
                else {
                    return Err(Diagnostic::error(address.span, "this is an element of an array")
                        .label("move its address to a register first"));
                };
                match base {
                    AddressBase::Name(name) => self.opaque(want, name),
                    AddressBase::Absolute(_) => Err(expected(
                        want,
                        Diagnostic::error(address.span, "a constant is no handle"),
                    )),
                }
            }
            (Operand::Group(list, span), true) => {
                let texture = want == Type::TexRef;
                let (first, sampler, last) = match &list[..] {
                    [first, last] => (first, None, last),
                    [first, sampler, last] if texture => (first, Some(sampler), last),
                    _ => {
                        let message = format!("`{}` takes a handle and coordinates in brackets", form.mnemonic());
                        return Err(Diagnostic::error(*span, message));
                    }
                };
                self.handle_operand(want, first)?;
                match sampler {
                    Some(sampler) => self.handle_operand(Type::SamplerRef, sampler)?,
                    None if texture && self.has_samplers() => {
                        return Err(Diagnostic::error(*span, "a sampler is missing")
                            .label("with `texmode_independent` a `.samplerref` follows the texture"));
                    }
                    None => {}
                }
                let ty = match texture {
                    true => form.types.last().copied().unwrap_or(Type::F32),
                    false => Type::S32,
                };
                let Some(geometry) = form.op.geometry() else {
                    return Ok(());
                };
                self.coordinates(last, geometry.elements(), ty, geometry.layers())
            }
            (other, true) => Err(Diagnostic::error(other.span(), "this names no place in an image")
                .label("a handle and coordinates in brackets are expected: `[a, {x}]`")),
            (other, false) => Err(Diagnostic::error(
                other.span(),
                format!("`{}` is not an address", self.text(other.span())),
            )
            .label("a handle in brackets is expected")),
        }
    }

    fn has_samplers(&self) -> bool {
        self.around
            .tree
            .target
            .iter()
            .any(|name| &*name.text == "texmode_independent")
    }

    fn handle_operand(&mut self, want: Type, operand: &Operand) -> Outcome {
        match operand {
            Operand::Name {
                name,
                select: None,
                offset: 0,
            } => self.opaque(want, name),
            other => Err(expected(
                want,
                Diagnostic::error(other.span(), format!("`{}` is no handle", self.text(other.span()))),
            )),
        }
    }

    /// A variable of the type, or a register that holds the address of one or an object's handle.
    fn opaque(&mut self, want: Type, name: &Name) -> Outcome {
        let found = match self.find(&name.text) {
            None => return Err(self.undeclared(name)),
            Some(found) => found,
        };
        let message = match found {
            Named::Here(Entity::Register { ty, vector: 1, .. }) => {
                if matches!(class(ty), Class::Bits | Class::Integer) && layout::size_of(ty) == 8 {
                    return Ok(());
                }
                format!("`{}` is declared `.{}`", name.text, ty.word())
            }
            Named::Here(Entity::Variable(variable, ..)) => {
                if variable.ty == want && variable.dims.is_empty() {
                    return Ok(());
                }
                match variable.dims.is_empty() {
                    true => format!("`{}` is a `.{}` variable", name.text, variable.ty.word()),
                    false => format!("`{}` is an array", name.text),
                }
            }
            _ => format!("`{}` is no handle", name.text),
        };
        Err(expected(want, Diagnostic::error(name.span, message)))
    }

    /// Offsets are whole numbers; gradients are not, and have exactly as many elements as a layer has coordinates.
    pub fn vector_of_layer(&mut self, form: &Form, floats: bool, operand: &Operand) -> Outcome {
        let Some(geometry) = form.op.geometry() else {
            return Ok(());
        };
        let elements = geometry.within_layer();
        if floats {
            let Operand::Vector(list, span) = operand else {
                return Err(Diagnostic::error(operand.span(), "this is not a gradient")
                    .label(format!("{} elements in braces are expected", elements)));
            };
            self.count(list.len(), elements as u8, *span)?;
            let ty = Type::F32;
            return list.iter().try_for_each(|one| self.value(Some(ty), Value::of(ty), one));
        }
        if !matches!(operand, Operand::Vector(..)) && self.is_float(operand) {
            return Err(Diagnostic::error(operand.span(), "an offset is a whole number"));
        }
        match operand {
            Operand::Immediate(_) if elements == 1 => self.value(Some(Type::S32), Value::of(Type::S32), operand),
            _ => self.coordinates(operand, elements, Type::S32, 0),
        }
    }

    fn is_float(&self, operand: &Operand) -> bool {
        match operand {
            Operand::Immediate(expr) => !matches!(expr, Expr::Int { .. }),
            Operand::Name { name, .. } => matches!(
                self.find(&name.text),
                Some(Named::Here(Entity::Register { ty, .. })) if class(ty) == Class::Float
            ),
            _ => false,
        }
    }

    /// 1, 2 or 4 numbers, `least` or more, the first `whole` of them whole.
    fn coordinates(&mut self, operand: &Operand, least: usize, ty: Type, whole: usize) -> Outcome {
        let list = match operand {
            Operand::Vector(list, span) => {
                let plural = |count: usize| if count == 1 { "" } else { "s" };
                if list.len() < least || !matches!(list.len(), 1 | 2 | 4) {
                    let message = format!("{} coordinate{}", list.len(), plural(list.len()));
                    return Err(
                        Diagnostic::error(*span, message).label(format!("{least} element{} expected", plural(least)))
                    );
                }
                &list[..]
            }
            Operand::Name {
                name,
                select: None,
                offset: 0,
            } if matches!(self.find(&name.text), Some(Named::Here(Entity::Register { vector, .. })) if vector > 1) => {
                let Some(Named::Here(Entity::Register { ty: is, vector, .. })) = self.find(&name.text) else {
                    return Ok(());
                };
                if usize::from(vector) < least {
                    self.count(usize::from(vector), least as u8, name.span)?;
                }
                let ty = if whole > 0 { Type::U32 } else { ty };
                return self.number(ty, is, operand);
            }
            one @ Operand::Name { .. } if least == 1 => std::slice::from_ref(one),
            other => {
                return Err(Diagnostic::error(other.span(), "this is not a vector")
                    .label(format!("{least} elements in braces are expected")));
            }
        };
        for (at, one) in list.iter().enumerate() {
            let ty = if at < whole { Type::U32 } else { ty };
            match one {
                Operand::Immediate(expr) if constant_agrees(ty, expr) => {}
                Operand::Name { name, select, .. } => match self.find(&name.text) {
                    Some(Named::Here(Entity::Register { ty: is, vector, .. })) if (vector > 1) == select.is_some() => {
                        self.number(ty, is, one)?;
                    }
                    _ => self.value(Some(ty), Value::of(ty), one)?,
                },
                other => self.value(Some(ty), Value::of(ty), other)?,
            }
        }
        Ok(())
    }

    /// Whether a register's type will do: any of 32 bits for a float, as the assembler has it.
    fn number(&self, want: Type, is: Type, operand: &Operand) -> Outcome {
        let fits = layout::size_of(is) == 4
            && match class(is) {
                Class::Bits | Class::Integer => true,
                Class::Float => want == Type::F32,
                _ => false,
            };
        if fits {
            return Ok(());
        }
        let text = self.text(operand.span());
        Err(
            Diagnostic::error(operand.span(), format!("`{text}` is declared `.{}`", is.word()))
                .label(a_type(want, false)),
        )
    }
}

fn expected(want: Type, found: Diagnostic) -> Diagnostic {
    found.label(format!(
        "a `.{}` variable or a 64-bit register is expected",
        want.word()
    ))
}
