//! Calls: whom they call, and whether arguments and results are what that takes (PTX ISA, Control Flow: call).

use super::body::{Body, Named, Outcome};
use super::scope::Entity;
use super::types::agrees;
use crate::program::layout;
use crate::ptx::ast::{Instruction, Name, Operand, Space, Type, Variable};
use crate::ptx::diagnostic::Diagnostic;

/// What a call must agree with.
pub(super) struct Signature<'a> {
    name: &'a str,
    pub returns: &'a [Variable],
    pub params: &'a [Variable],
    variadic: bool,
}

/// A call, taken apart.
pub(super) struct Call<'a> {
    pub results: &'a [Operand],
    /// A function, or a register that holds the address of one.
    pub callee: &'a Name,
    pub arguments: &'a [Operand],
    pub signature: Signature<'a>,
}

impl<'a> Body<'a> {
    /// `call{.uni} (ret), f, (args){, prototype};` and its shorter forms.
    pub fn call(&self, instruction: &'a Instruction) -> Outcome<Call<'a>> {
        let mut operands = &instruction.operands[..];
        let mut results: &'a [Operand] = &[];
        if let [Operand::Arguments(list, _), rest @ ..] = operands {
            (results, operands) = (list, rest);
        }
        let [Operand::Name { name, .. }, rest @ ..] = operands else {
            return Err(Diagnostic::error(instruction.span, "this calls nothing")
                .label("expected a function, or a register that holds a function's address"));
        };
        let (arguments, rest): (&'a [Operand], _) = match rest {
            [Operand::Arguments(list, _), rest @ ..] => (list, rest),
            _ => (&[], rest),
        };
        let signature = self.signature(name, rest.first())?;
        self.agree("argument", name, arguments, signature.params, signature.variadic)?;
        self.agree("result", name, results, signature.returns, false)?;
        if self.rules {
            for (operand, formal) in arguments.iter().zip(signature.params) {
                self.passed(operand, formal, signature.name, false)?;
            }
            for (operand, formal) in results.iter().zip(signature.returns) {
                self.passed(operand, formal, signature.name, true)?;
            }
        }
        Ok(Call {
            results,
            callee: name,
            arguments,
            signature,
        })
    }

    fn signature(&self, name: &'a Name, list: Option<&'a Operand>) -> Outcome<Signature<'a>> {
        match self.look_up(&name.text) {
            Some(Named::Function(function)) if function.entry => {
                Err(Diagnostic::error(name.span, format!("`{}` is a kernel", name.text))
                    .label("a function is expected"))
            }
            Some(Named::Function(function)) => {
                self.calls(name);
                Ok(Signature {
                    name: &function.name.text,
                    returns: &function.returns,
                    params: &function.params,
                    variadic: function.variadic,
                })
            }
            Some(Named::Here(Entity::Register { ty, vector: 1, .. }))
                if agrees(Type::U64, false, ty) || agrees(Type::U32, false, ty) =>
            {
                self.calls_indirectly();
                self.prototype(name, list)
            }
            Some(Named::Here(Entity::Register { ty, .. })) => Err(Diagnostic::error(
                name.span,
                format!("`{}` is declared `.{}`", name.text, ty.word()),
            )
            .label("a function's address is a `.u64`")),
            Some(_) => Err(
                Diagnostic::error(name.span, format!("`{}` is not a function", name.text))
                    .label("a function is expected"),
            ),
            None => Err(self.undeclared(name)),
        }
    }

    /// What an indirect call agrees with: a prototype, or what all its possible targets share.
    fn prototype(&self, register: &'a Name, list: Option<&'a Operand>) -> Outcome<Signature<'a>> {
        let expected = "the label of a `.callprototype` or of a `.calltargets` list is expected";
        let Some(Operand::Name { name, .. }) = list else {
            return Err(Diagnostic::error(
                register.span,
                format!("the call through `{}` says nothing of its arguments", register.text),
            )
            .label("a prototype or a list of targets is expected behind the arguments"));
        };
        match self.find(&name.text) {
            Some(Named::Here(Entity::Prototype(prototype))) => Ok(Signature {
                name: &register.text,
                returns: &prototype.returns,
                params: &prototype.params,
                variadic: prototype
                    .params
                    .last()
                    .is_some_and(|last| last.dims.first() == Some(&None)),
            }),
            Some(Named::Here(Entity::CallTargets(targets))) => {
                let first = targets.iter().find_map(|target| match self.find(&target.text) {
                    Some(Named::Function(function)) => Some(function),
                    _ => None,
                });
                match first {
                    Some(function) => Ok(Signature {
                        name: &register.text,
                        returns: &function.returns,
                        params: &function.params,
                        variadic: function.variadic,
                    }),
                    None => Err(Diagnostic::error(
                        name.span,
                        format!("no target of `{}` is a function", name.text),
                    )),
                }
            }
            Some(_) => Err(
                Diagnostic::error(name.span, format!("`{}` is neither a prototype nor a list", name.text))
                    .label(expected),
            ),
            None => Err(self.undeclared(name).note(expected)),
        }
    }

    /// One of a `.calltargets` list.
    pub fn call_target(&self, name: &Name) -> Outcome {
        match self.find(&name.text) {
            Some(Named::Function(function)) if !function.entry => Ok(()),
            Some(_) => Err(
                Diagnostic::error(name.span, format!("`{}` is not a function", name.text))
                    .label("a function is expected"),
            ),
            None => Err(self.undeclared(name)),
        }
    }

    fn agree(&self, what: &str, name: &Name, given: &[Operand], formal: &[Variable], variadic: bool) -> Outcome {
        let (is, least) = (given.len(), formal.len());
        if is == least || variadic && is + 1 >= least {
            return Ok(());
        }
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let place = given.get(least).map_or(name.span, Operand::span);
        Err(
            Diagnostic::error(place, format!("{is} {what}{}", plural(is))).label(format!(
                "`{}` has {least} {what}{}",
                name.text,
                plural(least)
            )),
        )
    }

    /// An argument or a result.
    fn passed(&self, operand: &Operand, formal: &Variable, callee: &str, result: bool) -> Outcome {
        let what = |is: String| {
            let wanted = describe(formal);
            let place = match (result, &*formal.name.text) {
                (true, _) => format!("`{callee}` returns {wanted}"),
                (false, "_") => format!("`{callee}` takes {wanted}"),
                (false, name) => format!("`{callee}` takes {wanted} as `{name}`"),
            };
            Err(Diagnostic::error(operand.span(), is).label(place))
        };
        match operand {
            Operand::Sink(_) if result => Ok(()),
            Operand::Name { name, select, .. } => match self.find(&name.text) {
                Some(Named::Here(Entity::Register { ty, vector, .. })) if vector == 1 || select.is_some() => {
                    let scalar = formal.dims.is_empty() && formal.vector.is_none();
                    match scalar && agrees(untyped(formal.ty), false, ty) {
                        true => Ok(()),
                        false => what(format!("`{}` is declared `.{}`", name.text, ty.word())),
                    }
                }
                // A vector by its name, for one of as many elements.
                Some(Named::Here(Entity::Register { ty, vector, .. })) => {
                    let alike = formal.vector == Some(vector) && agrees(untyped(formal.ty), false, ty);
                    match formal.space == Space::Reg && alike {
                        true => Ok(()),
                        false => what(format!("`{}` is a vector of {vector} `.{}`", name.text, ty.word())),
                    }
                }
                Some(Named::Here(Entity::Variable(variable, ..))) => {
                    let parameter = matches!(variable.space, Space::Param | Space::ParamEntry | Space::ParamFunc);
                    if !parameter {
                        return what(format!("`{}` is a `.{}` variable", name.text, variable.space.word()));
                    }
                    // A structure may be passed for a scalar of its size and alignment, which is how aggregates travel.
                    match layout::bytes_of(variable) == layout::bytes_of(formal) || layout::bytes_of(formal).is_none() {
                        true => Ok(()),
                        false => what(format!("`{}` is {}", name.text, describe(variable))),
                    }
                }
                Some(_) => what(format!("`{}` is not a value", name.text)),
                None => Err(self.undeclared(name)),
            },
            Operand::Immediate(_) if !result => Ok(()),
            other => what(format!("`{}` cannot be passed", self.text(other.span()))),
        }
    }
}

/// Arguments are passed as bits: any register of the parameter's size will do.
fn untyped(ty: Type) -> Type {
    match layout::size_of(ty) {
        _ if ty == Type::Pred => Type::Pred,
        1 => Type::B8,
        2 => Type::B16,
        4 => Type::B32,
        8 => Type::B64,
        _ => Type::B128,
    }
}

fn describe(variable: &Variable) -> String {
    match layout::bytes_of(variable) {
        Some(bytes) if !variable.dims.is_empty() => format!("an array of {bytes} bytes"),
        _ if variable.vector.is_some() => format!("a vector of {} `.{}`", layout::lanes(variable), variable.ty.word()),
        _ => format!("a `.{}`", variable.ty.word()),
    }
}
