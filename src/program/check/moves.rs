//! `mov` copies, packs, unpacks, and takes addresses (PTX ISA, Data Movement and Conversion Instructions: mov).

use super::body::{Body, Named, Outcome};
use super::scope::{Entity, Role};
use super::special::{self, Reading};
use super::types::{Class, a_type, class};
use crate::isa::Form;
use crate::isa::table::signature::{Count, Value};
use crate::program::layout;
use crate::ptx::ast::{Address, AddressBase, Instruction, Name, Operand, Space, Span, Type};
use crate::ptx::diagnostic::Diagnostic;

impl Body<'_> {
    /// `mov` copies, packs, unpacks, and takes addresses (PTX ISA, Data Movement: mov).
    pub fn move_operands(&mut self, form: &Form, instruction: &Instruction) -> Outcome {
        let [to, from] = &instruction.operands[..] else {
            return Err(Diagnostic::error(
                instruction.span,
                format!("`mov` takes 2 operands, not {}", instruction.operands.len()),
            )
            .label("expected `d, a`"));
        };
        let want = form.ty(0);
        let count = form.vector();
        let value = Value {
            count: if count > 1 { Count::Opcode } else { Count::One },
            ..Value::of(want)
        };
        if count > 1 {
            self.destination(form, value, true, to)?;
            return match from {
                Operand::Name { name, .. }
                    if self.find(&name.text).is_none()
                        && matches!(special::read(&name.text, None), Some(Reading::Vector)) =>
                {
                    self.count(4, count, name.span)
                }
                _ => self.source(form, value, false, from),
            };
        }
        match to {
            Operand::Vector(list, span) => {
                self.parts(want, list, *span)?;
                for element in list.iter().filter(|element| !matches!(element, Operand::Sink(_))) {
                    self.any_register(element)?;
                }
            }
            Operand::Name { name, select: None, .. } if self.is_packed(want, name) => {
                if let Operand::Name { name, select: None, .. } = from
                    && self.is_packed(want, name)
                {
                    let message = format!("`{}` is a vector", name.text);
                    return Err(Diagnostic::error(name.span, message)
                        .label("between vectors, `mov` says how many elements they have"));
                }
            }
            _ => self.result(Some(want), value, to, form)?,
        }
        match from {
            Operand::Vector(list, span) => self.parts(want, list, *span),
            Operand::Name { name, select: None, .. } => match self.find(&name.text) {
                Some(Named::Here(Entity::Variable(variable, role, _))) => {
                    if role == Role::Body && matches!(variable.space, Space::Param | Space::ParamFunc) {
                        return Err(Diagnostic::error(
                            name.span,
                            format!("`{}` is an argument of a call and has no address", name.text),
                        ));
                    }
                    self.takes_address(want, name)
                }
                Some(Named::Function(_) | Named::Alias) => self.takes_address(want, name),
                Some(Named::Here(
                    Entity::Label(_) | Entity::BranchTargets(_) | Entity::CallTargets(_) | Entity::Prototype(_),
                )) => Err(Diagnostic::error(
                    name.span,
                    format!("`{}` is a label and has no address", name.text),
                )),
                Some(Named::Here(Entity::Register { vector, .. })) if vector > 1 => {
                    match self.is_packed(want, name) {
                        true => Ok(()),
                        false => Err(Diagnostic::error(name.span, format!("`{}` is a vector", name.text))
                            .label(a_type(want, false))),
                    }
                }
                Some(Named::Here(Entity::Register { .. })) | None => self.value(Some(want), value, from),
            },
            Operand::Address(address) => self.element_address(want, address),
            _ => self.value(Some(want), value, from),
        }
    }

    /// Whether a name is that of a vector whose elements make one value of such a type: `mov` packs and unpacks it.
    fn is_packed(&self, want: Type, name: &Name) -> bool {
        match self.find(&name.text) {
            Some(Named::Here(Entity::Register { ty, vector, .. })) => {
                vector > 1
                    && class(want) == Class::Bits
                    && layout::size_of(ty) * u64::from(vector) == layout::size_of(want)
            }
            _ => false,
        }
    }

    /// `var[2]`: the address of an element.
    pub fn element_address(&mut self, want: Type, address: &Address) -> Outcome {
        match &address.base {
            AddressBase::Name(name)
                if address.subscript && matches!(self.find(&name.text), Some(Named::Here(Entity::Variable(..)))) =>
            {
                self.takes_address(want, name)?;
                match &address.index {
                    Some(index) => self.any_integer(&Operand::Name {
                        name: index.clone(),
                        select: None,
                        offset: 0,
                    }),
                    None => Ok(()),
                }
            }
            _ => Err(Diagnostic::error(address.span, "a value is expected, not an address")),
        }
    }

    pub fn takes_address(&self, want: Type, name: &Name) -> Outcome {
        let integer = matches!(class(want), Class::Bits | Class::Integer);
        if integer && matches!(layout::size_of(want), 4 | 8) {
            return Ok(());
        }
        Err(Diagnostic::error(
            name.span,
            format!("the address of `{}` is no `.{}`", name.text, want.word()),
        )
        .label("an address is an integer of 32 or 64 bits"))
    }

    pub fn any_register(&mut self, operand: &Operand) -> Outcome {
        if let Operand::Name {
            name,
            select,
            offset: 0,
        } = operand
            && let Some(Named::Here(Entity::Register { vector, .. })) = self.find(&name.text)
            && (vector > 1) == select.is_some()
        {
            return Ok(());
        }
        Err(Diagnostic::error(
            operand.span(),
            format!("`{}` is not a register", self.text(operand.span())),
        )
        .label("a register is expected"))
    }

    /// The elements of `{a, b}` that are packed into, or unpacked from, a `.want`.
    pub fn parts(&mut self, want: Type, list: &[Operand], span: Span) -> Outcome {
        if class(want) != Class::Bits {
            return Err(
                Diagnostic::error(span, format!("a `.{}` has no parts", want.word())).label(format!(
                    "packing and unpacking have untyped types: `.b{}`",
                    layout::size_of(want) * 8
                )),
            );
        }
        if !matches!(list.len(), 1 | 2 | 4 | 8 | 16) {
            return Err(
                Diagnostic::error(span, format!("{} elements", list.len())).label("two or four elements are expected")
            );
        }
        let each = layout::size_of(want) / list.len() as u64;
        for element in list {
            let is = match element {
                Operand::Name { name, .. } => match self.find(&name.text) {
                    Some(Named::Here(Entity::Register { ty, .. })) => layout::size_of(ty),
                    Some(_) => {
                        return Err(
                            Diagnostic::error(name.span, format!("`{}` is not a register", name.text))
                                .label("a register is expected"),
                        );
                    }
                    None => continue,
                },
                _ => continue,
            };
            if is != each {
                return Err(Diagnostic::error(
                    element.span(),
                    format!("`{}` has {} bits", self.text(element.span()), is * 8),
                )
                .label(format!(
                    "{} parts of a `.{}` have {} bits each",
                    list.len(),
                    want.word(),
                    each * 8
                )));
            }
        }
        Ok(())
    }
}
