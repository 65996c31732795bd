//! `call` and `ret`: arguments and results between frames (PTX ISA, Control Flow: call; PTX Writer's Guide to
//! Interoperability, Function Calling Sequence).
//!
//! A `.param` variable that a caller passes already lies in its frame; a register or literal is stored to the frame
//! first, a result that a register receives is loaded after.

use std::sync::Arc;

use super::scope::Binding;
use super::{Lower, Outcome, width_of};
use crate::program::ir::{Callee, Copy3, Guard, Op, Register, Syscall};
use crate::program::layout::{self, Place, Signature};
use crate::program::module::Symbol;
use crate::ptx::ast::{self, Instruction, Item, Name, Operand, Span, Variable};
use crate::ptx::diagnostic::Diagnostic;

/// Whom a call calls, and how it takes its arguments.
struct Target {
    kind: TargetKind,
    signature: Signature,
    returns: Vec<Variable>,
    params: Vec<Variable>,
}

enum TargetKind {
    Function(u32),
    Syscall(Syscall),
    Indirect(Register),
}

impl Lower<'_> {
    pub fn return_from(&mut self, guard: Option<Guard>, span: Span) {
        if self.is_kernel() {
            self.leave(guard, span, Op::Exit);
            return;
        }
        for (register, place) in self.register_returns.clone() {
            self.store_frame(guard, register, place, span);
        }
        self.leave(guard, span, Op::Return);
    }

    /// `call{.uni} (ret), f, (args){, prototype};` and its shorter forms.
    pub fn call(&mut self, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        let span = instruction.span;
        let mut operands = &instruction.operands[..];
        let mut results: &[Operand] = &[];
        if let [Operand::Arguments(list, _), rest @ ..] = operands {
            results = list;
            operands = rest;
        }
        let [Operand::Name { name, .. }, rest @ ..] = operands else {
            return Err(Diagnostic::error(
                span,
                "a call names a function or a register that holds its address",
            ));
        };
        let (arguments, rest): (&[Operand], _) = match rest {
            [Operand::Arguments(list, _), rest @ ..] => (list, rest),
            _ => (&[], rest),
        };
        let target = self.target(name, rest.first(), span)?;
        let open = layout::is_open(&target.params);
        if arguments.len() != target.params.len() && !(open && arguments.len() + 1 == target.params.len()) {
            return Err(Diagnostic::error(
                span,
                format!(
                    "`{}` takes {} arguments, not {}",
                    name.text,
                    target.params.len(),
                    arguments.len()
                ),
            ));
        }
        if results.len() != target.returns.len() {
            return Err(Diagnostic::error(
                span,
                format!(
                    "`{}` returns {} values, not {}",
                    name.text,
                    target.returns.len(),
                    results.len()
                ),
            ));
        }

        let used = self.frame.used;
        let mut args = Vec::with_capacity(arguments.len());
        for ((operand, variable), to) in arguments.iter().zip(&target.params).zip(&target.signature.params) {
            let from = self.argument(operand, variable, *to, guard)?;
            let last = open && args.len() + 1 == target.params.len();
            if last && from.bytes > to.bytes {
                return Err(Diagnostic::error(
                    operand.span(),
                    format!(
                        "{} bytes are passed for an open parameter, which takes {} at most",
                        from.bytes, to.bytes
                    ),
                ));
            }
            if from.bytes != to.bytes && !last {
                return Err(Diagnostic::error(
                    operand.span(),
                    format!("{} bytes are passed for a parameter of {}", from.bytes, to.bytes),
                ));
            }
            args.push(Copy3 {
                from: from.offset,
                to: to.offset,
                bytes: to.bytes.min(from.bytes),
            });
        }
        let mut copies = Vec::with_capacity(results.len());
        let mut loads = Vec::new();
        for ((operand, variable), from) in results.iter().zip(&target.returns).zip(&target.signature.returns) {
            let to = match operand {
                Operand::Sink(_) => continue,
                Operand::Name { name, select, .. } => match self.find(name) {
                    Some(Binding::Frame { place, .. }) => place,
                    _ => {
                        let register = match self.find(name) {
                            Some(Binding::Persistent { place, ty }) => self.persistent_result(place, ty),
                            _ => self.register(name, select.as_ref())?.0,
                        };
                        if self.width(register) != width_of(variable.ty) {
                            return Err(Diagnostic::error(
                                name.span,
                                format!(
                                    "`{}` does not fit the function's .{} result",
                                    name.text,
                                    variable.ty.word()
                                ),
                            ));
                        }
                        let place = self.frame.take(from.bytes, 16);
                        loads.push((register, place));
                        place
                    }
                },
                other => {
                    return Err(Diagnostic::error(
                        other.span(),
                        "a result goes to a .param variable or a register",
                    ));
                }
            };
            copies.push(Copy3 {
                from: from.offset,
                to: to.offset,
                bytes: from.bytes.min(to.bytes),
            });
        }
        let (args, results) = (args.into_boxed_slice(), copies.into_boxed_slice());
        let kind = match target.kind {
            TargetKind::Function(index) => {
                self.callees.push(index);
                Op::Call {
                    callee: Callee::Direct(index),
                    args,
                    results,
                }
            }
            TargetKind::Syscall(which) => Op::Syscall { which, args, results },
            TargetKind::Indirect(register) => {
                self.calls_indirectly = true;
                Op::Call {
                    callee: Callee::Indirect {
                        address: self.body.reg(register),
                        params: target.signature.param_bytes,
                        returns: target.signature.return_bytes,
                    },
                    args,
                    results,
                }
            }
        };
        self.push(guard, span, kind);
        for (register, place) in loads {
            self.load_result(guard, register, place, span);
        }
        self.frame.used = used;
        Ok(())
    }

    fn load_result(&mut self, guard: Option<Guard>, register: Register, place: Place, span: Span) {
        if guard.is_none() {
            self.load_frame(register, place, span);
            return;
        }
        let fresh = self.body.register(self.width(register));
        self.load_frame(fresh, place, span);
        // Lanes that did not call keep what they had.
        let copied = self.copy(guard, register, fresh, span);
        debug_assert!(copied.is_ok());
    }

    /// Where in the frame an argument lies, after it was put there if it must be.
    fn argument(&mut self, operand: &Operand, variable: &Variable, to: Place, guard: Option<Guard>) -> Outcome<Place> {
        if let Operand::Name {
            name,
            select: None,
            offset: 0,
        } = operand
            && let Some(Binding::Frame { place, .. }) = self.find(name)
        {
            return Ok(place);
        }
        let width = width_of(variable.ty);
        let register = self.source_any(operand, width, layout::is_float(variable.ty))?;
        if self.width(register) != width {
            return Err(Diagnostic::error(
                operand.span(),
                format!("this does not fit the function's .{} parameter", variable.ty.word()),
            ));
        }
        let place = self.frame.take(to.bytes, 16);
        self.store_frame(guard, register, place, operand.span());
        Ok(place)
    }

    fn target(&mut self, name: &Name, prototype: Option<&Operand>, span: Span) -> Outcome<Target> {
        if let Some(Binding::Register { register, .. }) = self.find(name) {
            if !matches!(self.width(register), crate::isa::lanes::Width::B64) {
                return Err(Diagnostic::error(name.span, "a function's address is 64 bits wide"));
            }
            return self.indirect(register, prototype, span);
        }
        let unknown = || Diagnostic::error(name.span, format!("`{}` is not declared", name.text));
        match self.symbol(name).ok_or_else(unknown)? {
            Symbol::Function(index) => {
                let Some((_, definition)) = self.module.definition(index) else {
                    return Err(unknown());
                };
                if definition.entry {
                    return Err(Diagnostic::error(name.span, format!("`{}` is a kernel", name.text)));
                }
                Ok(direct(TargetKind::Function(index), definition))
            }
            Symbol::Syscall(call, item) => match self.unit.tree.items.get(item as usize) {
                Some(Item::Function(declaration)) => Ok(direct(TargetKind::Syscall(call), declaration)),
                _ => Err(unknown()),
            },
            Symbol::Undefined => Err(Diagnostic::error(
                name.span,
                format!("`{}` is called and no unit defines it", name.text),
            )),
            Symbol::Global(_) | Symbol::Shared(_) | Symbol::Unplaced(_) => Err(Diagnostic::error(
                name.span,
                format!("`{}` is not a function", name.text),
            )),
        }
    }

    fn indirect(&mut self, register: Register, prototype: Option<&Operand>, span: Span) -> Outcome<Target> {
        let Some(Operand::Name { name, .. }) = prototype else {
            return Err(Diagnostic::error(
                span,
                "an indirect call needs a prototype or a list of targets",
            ));
        };
        let (returns, params) = match self.find(name) {
            Some(Binding::Prototype(prototype)) => (prototype.returns.clone(), prototype.params.clone()),
            Some(Binding::CallTargets(targets)) => self.common_prototype(&targets, name)?,
            _ => {
                return Err(Diagnostic::error(
                    name.span,
                    format!(
                        "`{}` is not the label of a prototype or of a list of targets",
                        name.text
                    ),
                ));
            }
        };
        Ok(Target {
            kind: TargetKind::Indirect(register),
            signature: layout::signature(&returns, &params),
            returns,
            params,
        })
    }

    /// All functions of a `.calltargets` list have one prototype: the first one's.
    fn common_prototype(&mut self, targets: &[Arc<str>], list: &Name) -> Outcome<(Vec<Variable>, Vec<Variable>)> {
        for target in targets {
            if let Some(Symbol::Function(index)) = self.unit.names.get(target)
                && let Some((_, definition)) = self.module.definition(*index)
            {
                return Ok((definition.returns.clone(), definition.params.clone()));
            }
        }
        Err(Diagnostic::error(list.span, "none of the call's targets is defined"))
    }
}

fn direct(kind: TargetKind, function: &ast::Function) -> Target {
    Target {
        kind,
        signature: layout::signature(&function.returns, &function.params),
        returns: function.returns.clone(),
        params: function.params.clone(),
    }
}
