//! Instructions of the syntax tree → instructions of the [`tree`](super::tree): names become what they stand for.

use std::rc::Rc;

use super::body::{Body, Named, Outcome};
use super::scope::Entity;
use super::special::{self, Reading};
use super::tree::{self, Address, Base, Callee, Guard, Object, Operand, Register, Statement};
use super::video;
use crate::isa::{self, Form, Operation};
use crate::ptx::ast::{self, AddressBase, Expr, Instruction, Name, Span};
use crate::ptx::diagnostic::Diagnostic;

/// What the operands of an operation are, to those who look for names in them.
pub(super) enum Shape {
    Call,
    Branch,
    BranchIndexed,
    Move,
    /// Registers with selectors and signs.
    Video(isa::video::Opcode),
    Texture,
    Values,
    /// Nobody executes them.
    Ignored,
}

impl Shape {
    pub fn of(op: Operation) -> Shape {
        match op {
            Operation::Call { .. } => Shape::Call,
            Operation::Branch { .. } => Shape::Branch,
            Operation::BranchIndexed { .. } => Shape::BranchIndexed,
            Operation::Move { .. } => Shape::Move,
            Operation::Video(opcode) => Shape::Video(opcode),
            Operation::Texture(_) => Shape::Texture,
            Operation::Hint(_) => Shape::Ignored,
            Operation::Compute(_)
            | Operation::Load(_)
            | Operation::Store(_)
            | Operation::Atomic(_)
            | Operation::Reduction(_)
            | Operation::Return { .. }
            | Operation::Exit
            | Operation::Trap
            | Operation::Breakpoint
            | Operation::Nanosleep
            | Operation::Barrier(_)
            | Operation::WarpBarrier
            | Operation::Fence(_)
            | Operation::Shuffle { .. }
            | Operation::Vote { .. }
            | Operation::Match { .. }
            | Operation::Redux { .. }
            | Operation::Activemask
            | Operation::Elect
            | Operation::ConvertAddress { .. }
            | Operation::IsSpace { .. }
            | Operation::CreatePolicy(_)
            | Operation::Alloca
            | Operation::StackSave
            | Operation::StackRestore
            | Operation::CopyAsync(_)
            | Operation::Joint(_)
            | Operation::TextureQuery { .. }
            | Operation::IsHandle(_)
            | Operation::SurfaceLoad(_)
            | Operation::SurfaceStore(_)
            | Operation::SurfaceReduce { .. }
            | Operation::SurfaceQuery { .. } => Shape::Values,
        }
    }
}

/// The element that a selector names.
fn element(select: &str) -> Option<u8> {
    match select {
        "x" | "r" | "0" => Some(0),
        "y" | "g" | "1" => Some(1),
        "z" | "b" | "2" => Some(2),
        "w" | "a" | "3" => Some(3),
        _ => None,
    }
}

/// The elements that a swizzle names: `xxyy`, `0123`, `bgra` (PTX ISA 1.1, 6.4.3).
fn swizzle(text: &str) -> Option<Vec<u8>> {
    let of = |set: &str| {
        text.chars()
            .map(|c| set.find(c).map(|at| at as u8))
            .collect::<Option<Vec<_>>>()
    };
    (text.len() >= 2).then(|| of("xyzw").or_else(|| of("rgba")).or_else(|| of("0123")))?
}

impl<'a> Body<'a> {
    /// The instruction with its names resolved; `lanes`: see [`tree::Instruction::lanes`].
    pub fn resolved(
        &mut self,
        instruction: &'a Instruction,
        form: Rc<Form>,
        lanes: Option<u8>,
    ) -> Outcome<Statement<'a>> {
        let guard = instruction.guard.as_ref().map(|guard| self.guard(guard)).transpose()?;
        let span = instruction.span;
        let mut form = form;
        let operands = match Shape::of(form.op) {
            Shape::Call => return self.resolved_call(instruction, guard),
            Shape::Branch => {
                let [target] = &instruction.operands[..] else {
                    return Err(Diagnostic::error(span, "a branch takes one label"));
                };
                let label = self.branch_target(target)?;
                return Ok(Statement::Branch { guard, label, span });
            }
            Shape::BranchIndexed => {
                let [index, list] = &instruction.operands[..] else {
                    return Err(Diagnostic::error(span, "an indexed branch takes an index and a list"));
                };
                let index = self.operand(index)?;
                let targets = self.branch_targets(list)?;
                return Ok(Statement::BranchIndexed {
                    guard,
                    index,
                    targets,
                    span,
                });
            }
            Shape::Video(opcode) => {
                let read = self.read_video(opcode, instruction)?;
                form = Rc::new(Form {
                    op: Operation::Compute(read.compute),
                    ..(*form).clone()
                });
                self.operands_of(&read.operands)?
            }
            Shape::Texture => match &instruction.operands[..] {
                // PTX 1.x leaves brackets out: `tex.1d… d, a, c` (PTX ISA 1.1, Table 44).
                [d, a @ ast::Operand::Name { .. }, c] if !self.strict => {
                    let access = vec![self.operand(a)?, self.operand(c)?];
                    vec![self.operand(d)?, Operand::Group(access, a.span().to(c.span()))]
                }
                operands => self.operands_of(operands)?,
            },
            Shape::Move | Shape::Values => self.operands_of(&instruction.operands)?,
            Shape::Ignored => Vec::new(),
        };
        if !self.strict && !matches!(Shape::of(form.op), Shape::Ignored) {
            super::operand::count(&form, operands.len(), instruction)?;
        }
        Ok(Statement::Instruction(tree::Instruction {
            guard,
            form,
            lanes,
            operands,
            opcode: &instruction.opcode,
            span,
        }))
    }

    pub fn read_video(&self, opcode: isa::video::Opcode, instruction: &Instruction) -> Outcome<video::Video> {
        let is_register = |name: &Name| matches!(self.find(&name.text), Some(Named::Here(Entity::Register { .. })));
        video::read(opcode, instruction, is_register)
    }

    fn guard(&self, guard: &ast::Guard) -> Outcome<Guard> {
        self.predicate(&guard.predicate)?;
        Ok(Guard {
            predicate: self.name(&guard.predicate, None, 0)?,
            negated: guard.negated,
        })
    }

    fn resolved_call(&mut self, instruction: &'a Instruction, guard: Option<Guard>) -> Outcome<Statement<'a>> {
        let call = self.call(instruction)?;
        let callee = match self.look_up(&call.callee.text) {
            Some(Named::Here(_)) => Callee::Indirect {
                address: self.register_of(call.callee)?,
                returns: call.signature.returns,
                params: call.signature.params,
            },
            _ => Callee::Function(self.item(call.callee)?, call.callee.span),
        };
        Ok(Statement::Call(Box::new(tree::Call {
            guard,
            results: self.operands_of(call.results)?,
            callee,
            arguments: self.operands_of(call.arguments)?,
            span: instruction.span,
        })))
    }

    fn operands_of(&self, list: &[ast::Operand]) -> Outcome<Vec<Operand>> {
        list.iter().map(|operand| self.operand(operand)).collect()
    }

    fn operand(&self, operand: &ast::Operand) -> Outcome<Operand> {
        Ok(match operand {
            ast::Operand::Name { name, select, offset } => self.name(name, select.as_ref(), *offset)?,
            ast::Operand::Not(name) => Operand::Not(Box::new(self.name(name, None, 0)?)),
            ast::Operand::Immediate(Expr::Symbol { name, offset, .. }) => self.name(name, None, *offset)?,
            ast::Operand::Immediate(number) => Operand::Immediate(number.clone()),
            ast::Operand::Address(address) => Operand::Address(self.resolved_address(address)?),
            ast::Operand::Vector(list, span) => Operand::Vector(self.operands_of(list)?, *span),
            ast::Operand::Group(list, span) => Operand::Group(self.operands_of(list)?, *span),
            ast::Operand::Pair(a, b) => Operand::Pair(Box::new(self.operand(a)?), Box::new(self.operand(b)?)),
            ast::Operand::Sink(span) => self.sink(*span),
            ast::Operand::Negated(inner) => {
                return Err(Diagnostic::error(inner.span(), "a sign is not expected here"));
            }
            ast::Operand::Arguments(_, span) => {
                return Err(Diagnostic::error(*span, "one value is expected here"));
            }
        })
    }

    /// PTX 1.x may declare a register that is called `_` (PTX ISA 1.1, 4.4).
    fn sink(&self, span: Span) -> Operand {
        match self.scopes.sink() {
            Some(number) if !self.strict => Operand::Register(Register {
                number,
                element: None,
                span,
            }),
            _ => Operand::Sink(span),
        }
    }

    /// A name with its selector and offset.
    fn name(&self, name: &Name, select: Option<&Name>, offset: i64) -> Outcome<Operand> {
        let span = select.map_or(name.span, |select| name.span.to(select.span));
        let no_element = |select: &Name| {
            Err(Diagnostic::error(
                select.span,
                format!("`{}` has no element `{}`", name.text, select.text),
            ))
        };
        let object = match self.find(&name.text) {
            Some(Named::Here(Entity::Register { vector, number, .. })) => {
                let of = |element| Register { number, element, span };
                let elements = |list: &mut dyn Iterator<Item = u8>| {
                    Operand::Whole(list.map(|at| Operand::Register(of(Some(at)))).collect(), span)
                };
                return match (vector, select) {
                    (1, None) if offset == 0 => Ok(Operand::Register(of(None))),
                    (1, None) => Ok(Operand::Sum(of(None), offset)),
                    (1, Some(select)) => no_element(select),
                    (_, None) => Ok(elements(&mut (0..vector))),
                    (_, Some(select)) => match (element(&select.text), swizzle(&select.text)) {
                        (Some(at), _) if at < vector => Ok(Operand::Register(of(Some(at)))),
                        (_, Some(list)) if !self.strict && list.iter().all(|&at| at < vector) => {
                            Ok(elements(&mut list.into_iter()))
                        }
                        _ => no_element(select),
                    },
                };
            }
            Some(Named::Here(Entity::Variable(_, _, object))) => object,
            Some(Named::Function(_) | Named::Alias) => Object::Item(self.item(name)?),
            Some(Named::Here(
                Entity::Label(_) | Entity::Prototype(_) | Entity::CallTargets(_) | Entity::BranchTargets(_),
            )) => {
                return Err(Diagnostic::error(name.span, format!("`{}` is not a value", name.text)));
            }
            None if offset != 0 => {
                return Err(Diagnostic::error(
                    name.span,
                    format!("an offset from `{}` is not a value here", name.text),
                ));
            }
            None => return self.special_register(name, select, span),
        };
        match select {
            Some(select) => no_element(select),
            None => Ok(Operand::AddressOf(object, offset, span)),
        }
    }

    fn special_register(&self, name: &Name, select: Option<&Name>, span: Span) -> Outcome<Operand> {
        let number = |bits: u64| {
            Operand::Immediate(Expr::Int {
                bits,
                unsigned: true,
                span,
            })
        };
        let value = |reading: Option<Reading>| match reading {
            Some(Reading::Special(special, width)) => Some(Operand::Special(special, width, span)),
            Some(Reading::Constant(bits)) => Some(number(bits)),
            Some(Reading::Vector) | None => None,
        };
        let selector = select.map(|select| &*select.text);
        if let Some(bits) = self.entry_constant(&name.text, selector) {
            return Ok(number(bits));
        }
        match special::read(&name.text, selector) {
            Some(Reading::Vector) => {
                let axes = ["x", "y", "z", "w"].into_iter();
                let list = axes.filter_map(|axis| value(special::read(&name.text, Some(axis))));
                Ok(Operand::Whole(list.collect(), span))
            }
            reading => match value(reading) {
                Some(operand) => Ok(operand),
                None => Err(self.undeclared(name)),
            },
        }
    }

    /// `RANKTID`, `NTID.0` …: the dimensions that the kernel's header says (PTX ISA 1.1, Table 68); 0 where it leaves
    /// one open.
    fn entry_constant(&self, name: &str, select: Option<&str>) -> Option<u64> {
        if self.strict || !self.function.entry {
            return None;
        }
        let dims = &self.function.dims;
        match (name, select) {
            ("RANKTID", None) => Some(dims.len().max(1) as u64),
            ("NTID", Some(axis)) => {
                let axis = match axis {
                    "0" | "x" => 0,
                    "1" | "y" => 1,
                    "2" | "z" => 2,
                    _ => return None,
                };
                let dim = dims.len().checked_sub(axis + 1).map(|at| dims[at]);
                Some(dim.unwrap_or(Some(1)).unwrap_or(0))
            }
            _ => None,
        }
    }

    /// A register that is one value.
    fn register_of(&self, name: &Name) -> Outcome<Register> {
        match self.name(name, None, 0)? {
            Operand::Register(register) => Ok(register),
            _ => Err(
                Diagnostic::error(name.span, format!("`{}` is not a register", name.text))
                    .label("a register is expected"),
            ),
        }
    }

    fn resolved_address(&self, address: &ast::Address) -> Outcome<Address> {
        let base = match &address.base {
            AddressBase::Absolute(place) => Base::Absolute(*place),
            AddressBase::Name(name) => match self.name(name, None, 0)? {
                Operand::Register(register) => Base::Register(register),
                Operand::AddressOf(object, ..) => Base::Object(object, name.span),
                _ => {
                    return Err(Diagnostic::error(name.span, format!("`{}` is no address", name.text))
                        .label("a register or a variable is expected"));
                }
            },
        };
        let index = address
            .index
            .as_ref()
            .map(|index| self.register_of(index))
            .transpose()?;
        Ok(Address {
            base,
            index,
            offset: address.offset,
            subscript: address.subscript,
            span: address.span,
        })
    }

    fn item(&self, name: &Name) -> Outcome<u32> {
        let number = self.around.names.number(&name.text);
        number.ok_or_else(|| self.undeclared(name))
    }
}
