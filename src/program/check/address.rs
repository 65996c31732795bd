//! Addresses in brackets, the variables in them, and the labels of branches (PTX ISA, Addresses as Operands; State Spaces).

use super::body::{Body, Named, Outcome};
use super::scope::{Entity, Role};
use super::special;
use super::types::{Class, class};
use crate::isa::table::signature::Value;
use crate::isa::{Form, Operation};
use crate::program::layout;
use crate::ptx::ast::{Address, AddressBase, Name, Operand, Space, Type};
use crate::ptx::diagnostic::Diagnostic;

impl Body<'_> {
    /// `[a]`. `space`: the one that the instruction names; nothing where any will do.
    pub fn address(&mut self, operand: &Operand, space: Option<Space>) -> Outcome {
        let Operand::Address(address) = operand else {
            return Err(Diagnostic::error(
                operand.span(),
                format!("`{}` is not an address", self.text(operand.span())),
            )
            .label("an address in brackets is expected"));
        };
        match &address.base {
            AddressBase::Name(name) => self.base(name, address, space)?,
            AddressBase::Absolute(_) if matches!(space, Some(Space::Local) | None) => {}
            AddressBase::Absolute(_) => {
                return Err(Diagnostic::error(address.span, "a constant is no address here")
                    .label("a register or a variable is expected")
                    .note("only `.local` memory has addresses that are known beforehand"));
            }
        }
        match &address.index {
            Some(index) => self.any_integer(&Operand::Name {
                name: index.clone(),
                select: None,
                offset: 0,
            }),
            None => Ok(()),
        }
    }

    pub fn base(&mut self, name: &Name, address: &Address, space: Option<Space>) -> Outcome {
        let refuse = |message: String, label: &str| Err(Diagnostic::error(name.span, message).label(label));
        match self.find(&name.text) {
            Some(Named::Here(Entity::Register { ty, vector: 1, .. })) => {
                if !matches!(class(ty), Class::Bits | Class::Integer) || ty == Type::B128 {
                    return refuse(
                        format!("`{}` is declared `.{}`", name.text, ty.word()),
                        "an address is an integer",
                    );
                }
                let bytes = layout::size_of(ty);
                let windowed = !matches!(space, None | Some(Space::Generic | Space::Global | Space::Const));
                let size = u64::from(self.around.tree.address_size / 8);
                if bytes < 4 || bytes < size && !windowed {
                    let message = format!("the address in `{}` has {} bits", name.text, bytes * 8);
                    let finding = Diagnostic::warning(address.span, message)
                        .label(format!("addresses of this module have {} bits", size * 8));
                    self.report(finding);
                }
                Ok(())
            }
            Some(Named::Here(Entity::Variable(variable, role, _))) => match space {
                Some(space) if !reaches(space, variable.space, role) => {
                    let dot = match space {
                        Space::Generic => "no state space".to_owned(),
                        other => format!("`.{}`", other.word()),
                    };
                    refuse(
                        format!("`{}` is a `.{}` variable", name.text, variable.space.word()),
                        &format!("the instruction says {dot}"),
                    )
                }
                _ => Ok(()),
            },
            Some(Named::Here(Entity::Register { .. })) => {
                refuse(format!("`{}` is a vector", name.text), "an address is an integer")
            }
            Some(_) => refuse(
                format!("`{}` is not in memory", name.text),
                "a register or a variable is expected",
            ),
            None => match special::read(&name.text, None) {
                Some(_) => refuse(
                    format!("the special register `{}` is no address", name.text),
                    "mov it to a register first",
                ),
                None => Err(self.undeclared(name)),
            },
        }
    }

    /// Parameters are there to be read.
    pub fn writable(&self, operand: &Operand) -> Outcome {
        if let Operand::Address(Address {
            base: AddressBase::Name(name),
            ..
        }) = operand
            && let Some(Named::Here(Entity::Variable(variable, Role::EntryParameter | Role::FunctionParameter, _))) =
                self.find(&name.text)
            && matches!(variable.space, Space::Param | Space::ParamEntry | Space::ParamFunc)
        {
            return Err(Diagnostic::error(
                name.span,
                format!("the parameter `{}` cannot be written", name.text),
            ));
        }
        Ok(())
    }

    /// A register, or a variable whose address is meant.
    pub fn address_of(&mut self, form: &Form, want: Option<Type>, operand: &Operand) -> Outcome {
        let want = want.unwrap_or(Type::B64);
        if let Operand::Name { name, .. } = operand
            && let Some(Named::Here(Entity::Variable(variable, role, _))) = self.find(&name.text)
        {
            let space = form.space();
            if let Operation::ConvertAddress { to_generic: false, .. } = form.op {
                return Err(
                    Diagnostic::error(name.span, format!("`{}` is not a register", name.text))
                        .label("a generic address in a register is expected"),
                );
            }
            if space != Space::Generic && !reaches(space, variable.space, role) {
                return Err(Diagnostic::error(
                    name.span,
                    format!("`{}` is a `.{}` variable", name.text, variable.space.word()),
                )
                .label(format!("the instruction says `.{}`", space.word())));
            }
            return Ok(());
        }
        if let Operand::Address(address) = operand
            && let Operation::ConvertAddress { to_generic: true, .. } = form.op
        {
            return self.element_address(want, address);
        }
        let value = Value::of(want);
        self.value(Some(want), value, operand)
    }

    // ---- branches ---------------------------------------------------------------------------------------------------

    pub fn branch_target(&self, operand: &Operand) -> Outcome<u32> {
        match operand {
            Operand::Name {
                name,
                select: None,
                offset: 0,
            } => self.label(name),
            other => Err(Diagnostic::error(other.span(), "this is not a label").label("a label is expected")),
        }
    }

    pub fn branch_targets(&self, operand: &Operand) -> Outcome<u32> {
        let expected = "the label of a `.branchtargets` list is expected";
        match operand {
            Operand::Name {
                name,
                select: None,
                offset: 0,
            } => match self.find(&name.text) {
                Some(Named::Here(Entity::BranchTargets(number))) => Ok(number),
                Some(_) => Err(
                    Diagnostic::error(name.span, format!("`{}` is not a list of labels", name.text)).label(expected),
                ),
                None => Err(self.undeclared(name).note(expected)),
            },
            other => Err(Diagnostic::error(other.span(), "this is not a label").label(expected)),
        }
    }
}

/// Whether an access in the space that an instruction names may reach a variable of the other.
pub fn reaches(named: Space, is: Space, role: Role) -> bool {
    use Space::*;
    match named {
        Generic => matches!(is, Global | Shared | SharedCta | SharedCluster | Local),
        Param => matches!(is, Param | ParamEntry | ParamFunc),
        ParamEntry => is == Param && role == Role::EntryParameter || is == ParamEntry,
        ParamFunc => matches!(is, Param | ParamFunc) && role != Role::EntryParameter,
        Shared | SharedCta | SharedCluster => matches!(is, Shared | SharedCta | SharedCluster),
        Reg | Sreg | Const | Global | Local | Tex | Surf => named == is,
    }
}
