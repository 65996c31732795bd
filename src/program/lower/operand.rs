//! Operands → registers: immediates, special registers, addresses of what the check has resolved. PTX 1.x has no rules
//! of types here: an operand that does not fit is refused.

use super::place::Binding;
use super::{Lower, Outcome};
use crate::isa::Compute;
use crate::isa::lanes::Width;
use crate::isa::logic::Logical;
use crate::isa::types::IntType;
use crate::program::check::tree::{self, Instruction, Operand};
use crate::program::initialiser::literal;
use crate::program::ir::{Guard, Initial, Op, Register, Special, Value};
use crate::ptx::ast::{Expr, Span, Type};
use crate::ptx::diagnostic::Diagnostic;

/// How wide a register may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// As wide as the instruction's type.
    Exact,
    /// At least that (`ld`, `st`, `cvt`).
    Wider,
}

/// The bit type of a reg's width: what literals are read as when only the width is known.
pub fn bits_type(width: Width) -> Type {
    match width {
        Width::Pred => Type::Pred,
        Width::B16 => Type::B16,
        Width::B32 => Type::B32,
        Width::B64 => Type::B64,
        Width::B128 => Type::B128,
    }
}

pub fn name_of(width: Width) -> &'static str {
    match width {
        Width::Pred => "a predicate",
        Width::B16 => "16 bits wide",
        Width::B32 => "32 bits wide",
        Width::B64 => "64 bits wide",
        Width::B128 => "128 bits wide",
    }
}

/// An operand of another kind than the instruction takes.
pub fn unexpected<T>(operand: &Operand) -> Outcome<T> {
    Err(Diagnostic::error(operand.span(), "this operand cannot stand here"))
}

impl Lower<'_> {
    pub fn width(&self, register: Register) -> Width {
        self.body.registers[register as usize].width
    }

    pub fn constant(&mut self, width: Width, bits: u128) -> Register {
        self.body.initial(width, Initial::Constant(bits))
    }

    pub fn guard(&mut self, guard: Option<&tree::Guard>) -> Outcome<Option<Guard>> {
        let Some(guard) = guard else { return Ok(None) };
        let register = self.source(&guard.predicate, Width::Pred, Fit::Exact, false)?;
        Ok(Some(Guard {
            reg: self.body.reg(register),
            negated: guard.negated,
        }))
    }

    /// A register that is read.
    pub fn register(&mut self, register: tree::Register) -> Register {
        match self.binding(register.number) {
            Binding::Registers(first) => first + u32::from(register.element.unwrap_or(0)),
            Binding::Persistent(place) => {
                let ty = self.tree.registers[register.number as usize].ty;
                self.load_persistent(place, ty, register.span)
            }
        }
    }

    /// The value of a source operand in a register of its own width, or of `width` for literals.
    pub fn source_any(&mut self, operand: &Operand, width: Width, float: bool) -> Outcome<Register> {
        match operand {
            Operand::Register(register) => Ok(self.register(*register)),
            Operand::Special(special, is, span) => Ok(self.special(*special, *is, width, *span)),
            Operand::Immediate(expr) => {
                let mut ty = bits_type(width);
                // PTX 1.x compares with 0 and adds 1, whatever the type (PTX ISA 1.1, Tables 46 and 10).
                let whole = match (expr, self.legacy() && float && width != Width::Pred) {
                    (&Expr::Int { bits, unsigned, span }, true) => {
                        let value = if unsigned { bits as f64 } else { bits as i64 as f64 };
                        Some(Expr::F64 {
                            bits: value.to_bits(),
                            span,
                        })
                    }
                    _ => None,
                };
                let expr = whole.as_ref().unwrap_or(expr);
                if float && matches!(expr, Expr::Int { .. }) {
                    ty = match width {
                        Width::B64 => Type::F64,
                        Width::B32 => Type::F32,
                        Width::Pred | Width::B16 | Width::B128 => ty,
                    };
                }
                let bits = match (width, expr) {
                    (Width::Pred, Expr::Int { bits, .. }) => u128::from(*bits),
                    (Width::Pred, _) => return unexpected(operand),
                    (_, expr) => literal(expr, ty)?,
                };
                Ok(self.constant(width, bits))
            }
            Operand::Not(inner) => {
                let register = self.source(inner, Width::Pred, Fit::Exact, false)?;
                let inverse = self.body.register(Width::Pred);
                self.compute(
                    Compute::not(Logical::Pred),
                    &[inverse],
                    &[register],
                    None,
                    operand.span(),
                );
                Ok(inverse)
            }
            // Where a scalar stands, a vector means its first element (PTX ISA 1.1, Table 10).
            Operand::Whole(list, _) if self.legacy() => match list.first() {
                Some(first) => self.source_any(first, width, float),
                None => unexpected(operand),
            },
            // `%r1+8`, `var+8`: no manual has them, and the assembler takes them.
            Operand::Sum(base, offset) => self.sum(*base, *offset),
            Operand::AddressOf(_, offset, _) if *offset != 0 => match self.address_operand(operand, width)? {
                Some(register) => Ok(register),
                None => unexpected(operand),
            },
            Operand::AddressOf(..)
            | Operand::Address(_)
            | Operand::Vector(..)
            | Operand::Whole(..)
            | Operand::Group(..)
            | Operand::Pair(..)
            | Operand::Sink(_) => unexpected(operand),
        }
    }

    /// A register's value and a number.
    fn sum(&mut self, base: tree::Register, offset: i64) -> Outcome<Register> {
        let span = base.span;
        let ty = match self.tree.registers[base.number as usize].ty {
            Type::B16 | Type::U16 | Type::S16 => IntType::U16,
            Type::B32 | Type::U32 | Type::S32 => IntType::U32,
            Type::B64 | Type::U64 | Type::S64 => IntType::U64,
            ty => {
                let message = format!("a number cannot be added to a `.{}` here", ty.word());
                return Err(Diagnostic::error(span, message));
            }
        };
        let register = self.register(base);
        let width = self.width(register);
        let distance = self.constant(width, offset as u128);
        let sum = self.body.register(width);
        self.compute(Compute::add(ty), &[sum], &[register, distance], None, span);
        Ok(sum)
    }

    /// The value of a source operand at `width`.
    pub fn source(&mut self, operand: &Operand, width: Width, fit: Fit, float: bool) -> Outcome<Register> {
        let register = self.source_any(operand, width, float)?;
        if self.legacy() && fit == Fit::Exact && is_special(operand) {
            return self.resize(register, width, false, operand.span());
        }
        self.fit(operand, register, width, fit)?;
        Ok(register)
    }

    fn fit(&self, operand: &Operand, register: Register, width: Width, fit: Fit) -> Outcome<()> {
        let is = self.width(register);
        let good = is == width || (fit == Fit::Wider && is > width && width != Width::Pred);
        if good {
            return Ok(());
        }
        let text = self.text(operand.span());
        let wanted = match fit {
            Fit::Wider if width != Width::Pred => format!("at least {} is expected here", name_of(width)),
            Fit::Wider | Fit::Exact => format!("{} is expected here", name_of(width)),
        };
        Err(Diagnostic::error(
            operand.span(),
            format!("`{text}` is {}; {wanted}", name_of(is)),
        ))
    }

    /// A destination: a register, or a scratch one for `_`.
    pub fn destination(&mut self, operand: &Operand, width: Width, fit: Fit) -> Outcome<Register> {
        let register = match operand {
            Operand::Register(register) => match self.binding(register.number) {
                Binding::Persistent(place) => {
                    let ty = self.tree.registers[register.number as usize].ty;
                    self.persistent_result(place, ty)
                }
                Binding::Registers(_) => self.register(*register),
            },
            Operand::Sink(_) => return Ok(self.body.register(width)),
            Operand::Sum(..)
            | Operand::Special(..)
            | Operand::Immediate(_)
            | Operand::AddressOf(..)
            | Operand::Address(_)
            | Operand::Not(_)
            | Operand::Vector(..)
            | Operand::Whole(..)
            | Operand::Group(..)
            | Operand::Pair(..) => return unexpected(operand),
        };
        self.fit(operand, register, width, fit)?;
        Ok(register)
    }

    /// The registers of a vector that is written; nothing for `_`, and for a register to which a later element goes,
    /// too.
    pub fn destinations(
        &mut self,
        operand: &Operand,
        count: usize,
        width: Width,
        fit: Fit,
    ) -> Outcome<Vec<Option<Register>>> {
        let elements = operand.list();
        if elements.len() != count {
            return unexpected(operand);
        }
        let mut registers = Vec::with_capacity(count);
        for element in elements {
            let register = match element {
                Operand::Sink(_) => None,
                other => Some(self.destination(other, width, fit)?),
            };
            for earlier in &mut registers {
                if *earlier == register {
                    *earlier = None;
                }
            }
            registers.push(register);
        }
        Ok(registers)
    }

    /// An operand that is the same for the warp: an immediate or a 32-bit register.
    pub fn value(&mut self, operand: &Operand) -> Outcome<Value> {
        if let Operand::Immediate(expr) = operand {
            return Ok(Value::Immediate(literal(expr, Type::B32)? as u32));
        }
        let register = self.source(operand, Width::B32, Fit::Exact, false)?;
        Ok(Value::Register(self.body.reg(register)))
    }

    /// A predicate source with its sign.
    pub fn signed_predicate(&mut self, operand: &Operand) -> Outcome<(Register, bool)> {
        let (operand, negated) = match operand {
            Operand::Not(inner) => (&**inner, true),
            other => (other, false),
        };
        Ok((self.source(operand, Width::Pred, Fit::Exact, false)?, negated))
    }

    /// An integer that must be known now.
    pub fn immediate(&self, operand: &Operand) -> Outcome<u64> {
        match operand {
            Operand::Immediate(expr) => Ok(literal(expr, Type::B64)? as u64),
            other => unexpected(other),
        }
    }

    /// A register with the special register's value, at its own width (`%gridid` has two).
    pub fn special(&mut self, special: Special, width: Width, want: Width, span: Span) -> Register {
        let width = match (special, want) {
            (Special::Gridid, Width::B32) => Width::B32,
            _ => width,
        };
        self.special_register(special, width, span)
    }

    /// In a kernel what does not change while a block runs is read once; in a function, where it stands: functions are
    /// called more often than they need it.
    pub fn special_register(&mut self, special: Special, width: Width, span: Span) -> Register {
        let shared = matches!(special, Special::SharedBase(_));
        if shared || (self.is_kernel() && !special.is_volatile()) {
            return self.body.initial(width, Initial::Special(special));
        }
        let dst = self.body.register(width);
        let reg = self.body.reg(dst);
        self.push(
            None,
            span,
            Op::ReadSpecial {
                which: special,
                dst: reg,
            },
        );
        dst
    }

    /// The same bits at another width: low bits, or extended.
    pub fn resize(&mut self, register: Register, to: Width, signed: bool, span: Span) -> Outcome<Register> {
        let from = self.width(register);
        if from == to {
            return Ok(register);
        }
        let out = self.body.register(to);
        self.resize_into(None, out, register, signed, span)?;
        Ok(out)
    }

    /// The operands, if there are as many as that: the check counts where the table says what they are.
    pub fn operands<'i, const N: usize>(&self, instruction: &'i Instruction<'_>) -> Outcome<&'i [Operand; N]> {
        <&[Operand; N]>::try_from(&instruction.operands[..]).map_err(|_| miscounted(instruction))
    }
}

/// A special register, or a vector of them, of which the first element is meant.
pub fn is_special(operand: &Operand) -> bool {
    match operand {
        Operand::Special(..) => true,
        Operand::Whole(list, _) => list.first().is_some_and(is_special),
        Operand::Register(_)
        | Operand::Sum(..)
        | Operand::Immediate(_)
        | Operand::AddressOf(..)
        | Operand::Address(_)
        | Operand::Not(_)
        | Operand::Vector(..)
        | Operand::Group(..)
        | Operand::Pair(..)
        | Operand::Sink(_) => false,
    }
}

pub fn miscounted(instruction: &Instruction<'_>) -> Diagnostic {
    Diagnostic::error(
        instruction.span,
        format!(
            "`{}` does not take {} operands",
            instruction.opcode.text,
            instruction.operands.len()
        ),
    )
}
