//! Operands → registers: names, immediates, special registers, elements of vectors; with the checks of the ISA's
//! operand rules (PTX ISA, Operand Type Information; Operand Size Exceeding Instruction-Type Size).

use super::legacy;
use super::scope::Binding;
use super::special::{self, Reading};
use super::{Lower, Outcome};
use crate::isa::Compute;
use crate::isa::lanes::Width;
use crate::isa::logic::Logical;
use crate::program::initialiser::literal;
use crate::program::ir::{Guard, Initial, Op, Register, Special, Value};
use crate::ptx::ast::{self, Expr, Name, Operand, Span, Type};
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

impl Lower<'_> {
    pub fn width(&self, register: Register) -> Width {
        self.body.registers[register as usize].width
    }

    pub fn constant(&mut self, width: Width, bits: u128) -> Register {
        self.body.initial(width, Initial::Constant(bits))
    }

    pub fn guard(&mut self, guard: &ast::Guard) -> Outcome<Guard> {
        let register = self.predicate(&guard.predicate)?;
        Ok(Guard {
            reg: self.body.reg(register),
            negated: guard.negated,
        })
    }

    pub fn predicate(&mut self, name: &Name) -> Outcome<Register> {
        let (register, _) = self.register(name, None)?;
        if self.width(register) != Width::Pred {
            return Err(Diagnostic::error(
                name.span,
                format!("`{}` is not a predicate", name.text),
            ));
        }
        Ok(register)
    }

    /// A register by name, or an element of a vector register.
    pub fn register(&mut self, name: &Name, select: Option<&Name>) -> Outcome<(Register, Type)> {
        match self.find(name) {
            Some(Binding::Register { register, ty }) if select.is_none() => Ok((register, ty)),
            Some(Binding::Persistent { place, ty }) if select.is_none() => {
                Ok((self.load_persistent(place, ty, name.span)?, ty))
            }
            Some(Binding::Vector { elements, ty }) => {
                let Some(select) = select else {
                    return Err(Diagnostic::error(
                        name.span,
                        format!("`{}` is a vector; one element is expected", name.text),
                    ));
                };
                let index = match &*select.text {
                    "x" | "r" | "0" => 0,
                    "y" | "g" | "1" => 1,
                    "z" | "b" | "2" => 2,
                    "w" | "a" | "3" => 3,
                    _ => usize::MAX,
                };
                match elements.get(index) {
                    Some(&register) => Ok((register, ty)),
                    None => Err(Diagnostic::error(
                        select.span,
                        format!("`{}` has no element `{}`", name.text, select.text),
                    )),
                }
            }
            Some(_) => Err(Diagnostic::error(
                name.span,
                format!("`{}` is not a register", name.text),
            )),
            None if self.symbol(name).is_some() => Err(Diagnostic::error(
                name.span,
                format!("`{}` is not a register", name.text),
            )
            .note("load its value with ld, or take its address with mov")),
            None => Err(Diagnostic::error(name.span, format!("`{}` is not declared", name.text))),
        }
    }

    /// Whether an operand is a vector in braces or a vector register: its elements.
    pub fn elements(&mut self, operand: &Operand) -> Option<Vec<Operand>> {
        match operand {
            Operand::Vector(list, _) => Some(list.clone()),
            Operand::Name {
                name,
                select: Some(select),
                offset: 0,
            } if self.legacy() => {
                let order = legacy::swizzle(&select.text)?;
                if !matches!(self.find(name), Some(Binding::Vector { .. })) {
                    return None;
                }
                let element = |at: usize| Operand::Name {
                    name: name.clone(),
                    select: Some(Name {
                        text: ["x", "y", "z", "w"][at].into(),
                        span: select.span,
                    }),
                    offset: 0,
                };
                Some(order.into_iter().map(element).collect())
            }
            Operand::Name {
                name,
                select: None,
                offset: 0,
            } => {
                let count = match self.find(name) {
                    Some(Binding::Vector { elements, .. }) => elements.len(),
                    Some(_) => return None,
                    None => match special::read(&name.text, None) {
                        Some(Reading::Vector) => 4,
                        _ => return None,
                    },
                };
                let element = |select: &str| Operand::Name {
                    name: name.clone(),
                    select: Some(Name {
                        text: select.into(),
                        span: name.span,
                    }),
                    offset: 0,
                };
                let names = ["x", "y", "z", "w"];
                if count > 4 {
                    // `.v8` registers have no element names; only whole accesses use them.
                    return None;
                }
                Some(names[..count].iter().map(|n| element(n)).collect())
            }
            _ => None,
        }
    }

    /// The value of a source operand in a register of its own width, or of `width` for literals.
    pub fn source_any(&mut self, operand: &Operand, width: Width, float: bool) -> Outcome<Register> {
        match operand {
            Operand::Name { name, select, offset } => {
                if &*name.text == "WARP_SZ" {
                    return Ok(self.constant(width, 32));
                }
                if *offset == 0 && self.find(name).is_none() && name.text.starts_with('%') {
                    let select = select.as_ref().map(|s| &*s.text);
                    if let Some(reading) = special::read(&name.text, select) {
                        return self.special(name, reading, Some(width));
                    }
                }
                if *offset != 0 {
                    return Err(Diagnostic::error(
                        name.span,
                        format!("an offset from `{}` is not a value here", name.text),
                    ));
                }
                self.register(name, select.as_ref()).map(|(register, _)| register)
            }
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
                        _ => ty,
                    };
                }
                let bits = if width == Width::Pred {
                    match expr {
                        Expr::Int { bits, .. } => u128::from(*bits),
                        other => {
                            return Err(Diagnostic::error(other.span(), "this is not a predicate"));
                        }
                    }
                } else {
                    literal(expr, ty)?
                };
                Ok(self.constant(width, bits))
            }
            Operand::Not(name) => {
                let register = self.predicate(name)?;
                let inverse = self.body.register(Width::Pred);
                self.compute(Compute::not(Logical::Pred), &[inverse], &[register], None, name.span);
                Ok(inverse)
            }
            // PTX 1.x may declare a register of that name (PTX ISA 1.1, 4.4).
            Operand::Sink(span) => match self.underscore(*span) {
                Some(register) => Ok(register),
                None => Err(Diagnostic::error(*span, "`_` has no value")),
            },
            Operand::Negated(inner) => Err(Diagnostic::error(inner.span(), "a sign is not expected here")),
            Operand::Address(address) => Err(Diagnostic::error(address.span, "a value is expected, not an address")),
            other => Err(Diagnostic::error(other.span(), "one value is expected here")),
        }
    }

    /// The value of a source operand at `width`.
    pub fn source(&mut self, operand: &Operand, width: Width, fit: Fit, float: bool) -> Outcome<Register> {
        if self.legacy()
            && fit == Fit::Exact
            && let Some(register) = self.legacy_source(operand, width)?
        {
            return Ok(register);
        }
        let register = self.source_any(operand, width, float)?;
        self.fit(operand, register, width, fit)?;
        Ok(register)
    }

    fn fit(&self, operand: &Operand, register: Register, width: Width, fit: Fit) -> Outcome<()> {
        let is = self.width(register);
        let good = is == width || (fit == Fit::Wider && is > width && width != Width::Pred);
        if good {
            return Ok(());
        }
        let text = &self.unit.tree.source.text[span_range(operand.span())];
        let wanted = match fit {
            Fit::Wider if width != Width::Pred => format!("at least {} is expected here", name_of(width)),
            _ => format!("{} is expected here", name_of(width)),
        };
        Err(Diagnostic::error(
            operand.span(),
            format!("`{text}` is {}; {wanted}", name_of(is)),
        ))
    }

    /// Whether a register's declared type agrees with the instruction's: bits with anything, integers with integers,
    /// floating-point with floating-point (PTX ISA, Operand Type Information). Special registers are operands of `mov`
    /// and `cvt` alone.
    pub fn check_kind(&mut self, operand: &Operand, ty: Option<Type>, fit: Fit) -> Outcome<()> {
        if let (Operand::Immediate(Expr::F32 { .. } | Expr::F64 { .. }), Some(ty)) = (operand, ty)
            && kind(ty) == Kinds::Integer
        {
            return Err(Diagnostic::error(
                operand.span(),
                format!("a floating-point literal stands where a .{} is expected", ty.word()),
            ));
        }
        let Operand::Name { name, select, .. } = operand else {
            return Ok(());
        };
        match self.find(name) {
            Some(
                Binding::Register { ty: declared, .. }
                | Binding::Vector { ty: declared, .. }
                | Binding::Persistent { ty: declared, .. },
            ) => {
                let Some(ty) = ty else { return Ok(()) };
                if kind(ty) == Kinds::Bits || kind(declared) == Kinds::Bits || kind(ty) == kind(declared) {
                    return Ok(());
                }
                Err(Diagnostic::error(
                    operand.span(),
                    format!(
                        "`{}` is declared .{}; a .{} is expected here",
                        name.text,
                        declared.word(),
                        ty.word()
                    ),
                ))
            }
            None if fit == Fit::Exact
                && !self.legacy()
                && special::read(&name.text, select.as_ref().map(|s| &*s.text)).is_some() =>
            {
                Err(Diagnostic::error(
                    operand.span(),
                    "a special register is an operand of mov and cvt alone",
                ))
            }
            _ => Ok(()),
        }
    }

    /// A destination: a register, or a scratch one for `_`.
    pub fn destination(&mut self, operand: &Operand, width: Width, fit: Fit) -> Outcome<Register> {
        match operand {
            Operand::Name {
                name,
                select,
                offset: 0,
            } => {
                let register = match self.find(name) {
                    Some(Binding::Persistent { place, ty }) => self.persistent_result(place, ty),
                    _ => self.register(name, select.as_ref())?.0,
                };
                self.fit(operand, register, width, fit)?;
                Ok(register)
            }
            Operand::Sink(span) => match self.underscore(*span) {
                Some(register) => {
                    self.fit(operand, register, width, fit)?;
                    Ok(register)
                }
                None => Ok(self.body.register(width)),
            },
            other => Err(Diagnostic::error(other.span(), "a destination must be a register")),
        }
    }

    /// A register that is called `_`.
    fn underscore(&mut self, span: Span) -> Option<Register> {
        if !self.legacy() {
            return None;
        }
        let name = Name { text: "_".into(), span };
        match self.find(&name) {
            Some(Binding::Register { register, .. }) => Some(register),
            _ => None,
        }
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
        if let Operand::Not(name) = operand {
            return Ok((self.predicate(name)?, true));
        }
        Ok((self.source(operand, Width::Pred, Fit::Exact, false)?, false))
    }

    /// An integer that must be known now.
    pub fn immediate(&self, operand: &Operand) -> Outcome<u64> {
        match operand {
            Operand::Immediate(expr) => Ok(literal(expr, Type::B64)? as u64),
            Operand::Name { name, .. } if &*name.text == "WARP_SZ" => Ok(32),
            other => Err(Diagnostic::error(other.span(), "a constant is expected here")),
        }
    }

    /// A register with the special register's value, at its own width (`%gridid` has two).
    pub fn special(&mut self, name: &Name, reading: Reading, want: Option<Width>) -> Outcome<Register> {
        match reading {
            Reading::Constant(bits, width) => Ok(self.constant(want.unwrap_or(width), u128::from(bits))),
            Reading::Special(special, width) => {
                let width = if special == Special::Gridid && want == Some(Width::B32) {
                    Width::B32
                } else {
                    width
                };
                Ok(self.special_register(special, width, name.span))
            }
            Reading::Vector => Err(Diagnostic::error(
                name.span,
                format!("`{}` is a vector; one element is expected", name.text),
            )),
        }
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

    pub fn operand_count(&self, instruction: &ast::Instruction, least: usize, most: usize) -> Outcome<()> {
        let count = instruction.operands.len();
        if (least..=most).contains(&count) {
            return Ok(());
        }
        let expected = if least == most {
            format!("{least}")
        } else {
            format!("{least} to {most}")
        };
        Err(Diagnostic::error(
            instruction.span,
            format!("`{}` takes {expected} operands, not {count}", instruction.opcode.text),
        ))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kinds {
    Bits,
    Integer,
    Float,
    Pred,
}

fn kind(ty: Type) -> Kinds {
    match ty {
        Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::S8 | Type::S16 | Type::S32 | Type::S64 => Kinds::Integer,
        Type::F16 | Type::F16x2 | Type::F32 | Type::F64 => Kinds::Float,
        Type::Pred => Kinds::Pred,
        _ => Kinds::Bits,
    }
}

pub fn span_range(span: Span) -> std::ops::Range<usize> {
    span.start as usize..span.end as usize
}
