//! `call` and `ret`: arguments and results between frames (PTX ISA, Control Flow: call; PTX Writer's Guide to
//! Interoperability, Function Calling Sequence).
//!
//! A `.param` variable that a caller passes already lies in its frame; a register or literal is stored to the frame
//! first, a result that a register receives is loaded after.

use super::operand::{Fit, unexpected};
use super::place::Located;
use super::{Lower, Outcome, width_of};
use crate::isa::lanes::Width;
use crate::program::check::tree::{self, Object, Operand};
use crate::program::ir::{Callee, Copy3, Guard, Op, Register, Syscall};
use crate::program::layout::{self, Place};
use crate::program::module::Symbol;
use crate::ptx::ast::{self, Item, Span, Variable};
use crate::ptx::diagnostic::Diagnostic;

/// Whom a call calls, and how it takes its arguments.
struct Target<'a> {
    kind: TargetKind,
    returns: &'a [Variable],
    params: &'a [Variable],
}

enum TargetKind {
    Function(u32),
    Syscall(Syscall),
    Indirect(Register),
}

impl<'a> Lower<'a> {
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

    /// The definition of what is called may stand in another unit than the declaration that the check has seen.
    pub fn call(&mut self, call: &tree::Call<'_>, guard: Option<Guard>) -> Outcome<()> {
        let span = call.span;
        let target = self.target(&call.callee)?;
        let signature = layout::signature(target.returns, target.params);
        let open = layout::is_open(target.params);
        let (arguments, results) = (&call.arguments[..], &call.results[..]);
        if arguments.len() != target.params.len() && !(open && arguments.len() + 1 == target.params.len()) {
            return Err(Diagnostic::error(
                span,
                format!(
                    "the function takes {} arguments, not {}",
                    target.params.len(),
                    arguments.len()
                ),
            ));
        }
        if results.len() != target.returns.len() {
            return Err(Diagnostic::error(
                span,
                format!(
                    "the function returns {} values, not {}",
                    target.returns.len(),
                    results.len()
                ),
            ));
        }

        let used = self.frame.used;
        let mut args = Vec::with_capacity(arguments.len());
        for ((operand, variable), to) in arguments.iter().zip(target.params).zip(&signature.params) {
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
        for ((operand, variable), from) in results.iter().zip(target.returns).zip(&signature.returns) {
            let to = match operand {
                Operand::Sink(_) => continue,
                Operand::AddressOf(object, 0, at) => match self.locate(*object, *at)? {
                    Located::Frame(place) => place,
                    Located::Absolute { .. } | Located::Shared(_) | Located::Param(_) | Located::Function(_) => {
                        return unexpected(operand);
                    }
                },
                other => {
                    let place = self.frame.take(from.bytes, 16);
                    let width = width_of(variable.ty);
                    for (element, place) in parts(other, place) {
                        loads.push((self.destination(element, width, Fit::Exact)?, place));
                    }
                    place
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
                        params: signature.param_bytes,
                        returns: signature.return_bytes,
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
        if let Operand::AddressOf(object @ Object::Own { .. }, 0, at) = operand
            && let Located::Frame(place) = self.locate(*object, *at)?
        {
            return Ok(place);
        }
        let place = self.frame.take(to.bytes, 16);
        let width = width_of(variable.ty);
        for (element, part) in parts(operand, place) {
            let register = self.source(element, width, Fit::Exact, layout::is_float(variable.ty))?;
            self.store_frame(guard, register, part, element.span());
        }
        Ok(place)
    }

    fn target<'t>(&mut self, callee: &tree::Callee<'t>) -> Outcome<Target<'t>>
    where
        'a: 't,
    {
        let (item, span) = match *callee {
            tree::Callee::Function(item, span) => (item, span),
            tree::Callee::Indirect {
                address,
                returns,
                params,
            } => {
                let register = self.register(address);
                if self.width(register) != Width::B64 {
                    return Err(Diagnostic::error(address.span, "a function's address is 64 bits wide"));
                }
                return Ok(Target {
                    kind: TargetKind::Indirect(register),
                    returns,
                    params,
                });
            }
        };
        let refuse = |why: &str| Err(Diagnostic::error(span, format!("`{}` {why}", self.text(span))));
        match self.symbol(item) {
            Some(Symbol::Function(index)) => match self.module.definition(index) {
                Some((_, definition)) if definition.entry => refuse("is a kernel"),
                Some((_, definition)) => Ok(direct(TargetKind::Function(index), definition)),
                None => refuse("is called and no unit defines it"),
            },
            Some(Symbol::Syscall(call, item)) => match self.unit.tree.items.get(item as usize) {
                Some(Item::Function(declaration)) => Ok(direct(TargetKind::Syscall(call), declaration)),
                _ => refuse("is not a function"),
            },
            Some(Symbol::Undefined) | None => refuse("is called and no unit defines it"),
            Some(Symbol::Global(_) | Symbol::Shared(_) | Symbol::Unplaced(_)) => refuse("is not a function"),
        }
    }
}

fn direct(kind: TargetKind, function: &ast::Function) -> Target<'_> {
    Target {
        kind,
        returns: &function.returns,
        params: &function.params,
    }
}

/// The elements of an argument or result, and where in the parameter's place each lies.
fn parts(operand: &Operand, place: Place) -> impl Iterator<Item = (&Operand, Place)> {
    let elements = operand.list();
    let bytes = place.bytes / elements.len().max(1) as u32;
    (0..).zip(elements).map(move |(index, element)| {
        let offset = place.offset + index * bytes;
        (element, Place { offset, bytes })
    })
}
