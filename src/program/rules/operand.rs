//! Operands against the instruction table: how many, registers or constants, of which types, in which state space (PTX
//! ISA, Operands; Operand Type Information; Operand Size Exceeding Instruction-Type Size).

use super::body::{Body, Named, Outcome};
use super::scope::{Entity, Role};
use crate::isa::table::signature::{self, Kind, Limits, Pair, Ty, Value};
use crate::isa::{self, Form, Semantics};
use crate::program::layout;
use crate::program::lower::special::{self, Reading};
use crate::ptx::ast::{Address, AddressBase, Expr, Instruction, Name, Opcode, Operand, Space, Span, Type};
use crate::ptx::diagnostic::Diagnostic;

/// An opcode that no line of the table describes: the word that is wrong, what could stand there, the nearest legal one.
pub(super) fn unknown_opcode(opcode: &Opcode) -> Diagnostic {
    let Err(error) = isa::decode(&opcode.text) else {
        return Diagnostic::error(opcode.span, "this instruction is not understood");
    };
    let name = opcode.words().next().unwrap_or_default();
    let near = error
        .nearest
        .as_ref()
        .map(|nearest| format!("did you mean `{nearest}`?"));
    let mut found = match error.found.as_deref() {
        Some(word) if word == name => {
            let start = opcode.span.start;
            let end = start + name.len() as u32;
            let found = Diagnostic::error(Span { start, end }, format!("unknown instruction `{name}`"));
            return match near {
                Some(near) => found.label(near),
                None => found,
            };
        }
        Some(word) => Diagnostic::error(
            place_of(opcode, word),
            format!("`.{word}` is not understood in `{}`", opcode.text),
        ),
        None => Diagnostic::error(opcode.span, format!("`{}` is incomplete", opcode.text)),
    };
    if !error.expected.is_empty() {
        const SHOWN: usize = 12;
        let some: Vec<String> = error
            .expected
            .iter()
            .take(SHOWN)
            .map(|word| format!("`.{word}`"))
            .collect();
        let more = if error.expected.len() > SHOWN { ", …" } else { "" };
        found = found.label(format!("expected {}{more}", some.join(", ")));
    }
    match near {
        Some(near) => found.note(near),
        None => found,
    }
}

/// Where in an opcode a word stands, with its dot.
fn place_of(opcode: &Opcode, word: &str) -> Span {
    let mut start = opcode.span.start;
    for (index, one) in opcode.words().enumerate() {
        let end = start + one.len() as u32;
        if index > 0 && one == word {
            return Span { start: start - 1, end };
        }
        start = end + 1;
    }
    opcode.span
}

// ---- types ----------------------------------------------------------------------------------------------------------

/// What values of a type may stand in for each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Pred,
    Bits,
    Integer,
    Float,
    Half,
    HalfPair,
    /// Other packed and narrow formats: they live in untyped registers.
    Packed,
    Handle,
}

fn class(ty: Type) -> Class {
    use Type::*;
    match ty {
        Pred => Class::Pred,
        B8 | B16 | B32 | B64 | B128 => Class::Bits,
        U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64 => Class::Integer,
        F32 | F64 => Class::Float,
        F16 => Class::Half,
        F16x2 => Class::HalfPair,
        TexRef | SamplerRef | SurfRef => Class::Handle,
        _ => Class::Packed,
    }
}

/// `.u32` and the like.
pub(super) fn is_integer(ty: Type) -> bool {
    class(ty) == Class::Integer
}

/// Whether a register declared `.is` may stand where an instruction wants a `.want`.
pub(super) fn agrees(want: Type, wider: bool, is: Type) -> bool {
    let (wanted, declared) = (class(want), class(is));
    if wanted == Class::Pred || declared == Class::Pred {
        return wanted == declared;
    }
    let (least, bytes) = (layout::size_of(want), layout::size_of(is));
    if bytes < least || bytes > least && !wider {
        return false;
    }
    match wanted {
        Class::Bits => true,
        Class::Integer => matches!(declared, Class::Bits | Class::Integer | Class::HalfPair),
        // Floating-point registers are as wide as their values; untyped ones may be wider.
        Class::Float => declared == Class::Bits || declared == Class::Float && bytes == least,
        Class::Half | Class::HalfPair => declared == Class::Bits || declared == wanted,
        Class::Packed if matches!(want, Type::U16x2 | Type::S16x2 | Type::U8x4 | Type::S8x4) => {
            matches!(declared, Class::Bits | Class::HalfPair)
        }
        Class::Packed if want == Type::S2f6x2 => matches!(declared, Class::Bits | Class::Integer),
        Class::Packed | Class::Handle => declared == Class::Bits,
        Class::Pred => false,
    }
}

/// Whether a constant may stand where an instruction wants a `.want`.
fn constant_agrees(want: Type, expr: &Expr) -> bool {
    match (expr, class(want)) {
        (Expr::Int { .. }, Class::Pred | Class::Bits | Class::Integer) => true,
        (Expr::F32 { .. } | Expr::F64 { .. }, Class::Float) => true,
        // Bits of the constant's own width.
        (Expr::F32 { .. }, Class::Bits) => want == Type::B32,
        (Expr::F64 { .. }, Class::Bits) => want == Type::B64,
        _ => false,
    }
}

/// What a message calls a type.
fn a_type(want: Type, wider: bool) -> String {
    match (want, wider) {
        (Type::Pred, _) => "a predicate is expected".to_owned(),
        (ty, false) => format!("a `.{}` is expected", ty.word()),
        (ty, true) => format!("a `.{}`, or something wider, is expected", ty.word()),
    }
}

fn resolve(ty: Ty, form: &Form, first: bool) -> Option<Type> {
    match ty {
        Ty::Of(n) => form.types.get(usize::from(n)).copied(),
        Ty::Usual if first => form.types.first().copied(),
        Ty::Usual => form.types.last().copied(),
        Ty::Wide => Some(match form.types.first()? {
            Type::U16 => Type::U32,
            Type::S16 => Type::S32,
            Type::U32 => Type::U64,
            Type::S32 => Type::S64,
            _ => return None,
        }),
        Ty::Fixed(ty) => Some(ty),
        Ty::Integer => None,
    }
}

// ---- operand lists --------------------------------------------------------------------------------------------------

impl<'a> Body<'a> {
    /// Checks the operands of an instruction that follows `form`.
    pub fn operands(&mut self, form: &Form, instruction: &Instruction) -> Outcome {
        let signature = form.signature;
        if let Some((word, expected)) = form.disagreement() {
            let opcode = &instruction.opcode;
            let message = format!("`{}` is no instruction", opcode.text);
            return Err(Diagnostic::error(place_of(opcode, word), message).label(expected));
        }
        if matches!(form.line.semantics, Semantics::Call | Semantics::Move) {
            return Ok(());
        }
        if !signature.exact {
            return instruction
                .operands
                .iter()
                .try_for_each(|operand| self.loosely(operand));
        }
        let given = &instruction.operands;
        let has = |words: &str| {
            words
                .split('/')
                .any(|word| form.has(word) || Type::from_word(word).is_some_and(|ty| form.types.contains(&ty)))
        };
        let due = |way: &&Vec<signature::Operand>| {
            let conditional = signature.ways.iter().flatten().filter_map(|operand| operand.when);
            conditional
                .into_iter()
                .all(|when| has(when) == way.iter().any(|operand| operand.when == Some(when)))
        };
        let ways: Vec<&Vec<signature::Operand>> = signature.ways.iter().filter(due).collect();
        let mut refused = None;
        for way in ways.iter().filter(|way| way.len() == given.len()) {
            match self.way(form, way, instruction) {
                Ok(()) => return Ok(()),
                Err(found) => refused = refused.or(Some(found)),
            }
        }
        Err(refused.unwrap_or_else(|| wrong_count(&ways, instruction)))
    }

    fn way(&mut self, form: &Form, way: &[signature::Operand], instruction: &Instruction) -> Outcome {
        let mut spaces = form.spaces();
        for (index, (expected, operand)) in way.iter().zip(&instruction.operands).enumerate() {
            let first = index == 0;
            match expected.kind {
                Kind::Destination(value) => self.destination(form, value, first, operand)?,
                Kind::Source(value) => self.source(form, value, first, operand)?,
                Kind::Address => {
                    // Fences order accesses to what need not be memory.
                    let fence = matches!(form.line.semantics, Semantics::Fence);
                    let space = spaces.next().unwrap_or(Space::Generic);
                    self.address(operand, Some(space).filter(|_| !fence))?;
                    if matches!(
                        form.line.semantics,
                        Semantics::Store | Semantics::Atomic | Semantics::Reduction
                    ) {
                        self.writable(operand)?;
                    }
                }
                Kind::AddressOf(ty) => self.address_of(form, resolve(ty, form, first), operand)?,
                Kind::Constant(limits, lenient) => self.constant(limits, lenient, expected.name, operand)?,
                Kind::Label => self.branch_target(operand)?,
                Kind::Targets => self.branch_targets(operand)?,
                Kind::Any => {}
            }
        }
        Ok(())
    }

    fn destination(&mut self, form: &Form, value: Value, first: bool, operand: &Operand) -> Outcome {
        let want = resolve(value.ty, form, first);
        match operand {
            Operand::Pair(result, predicate) => {
                if value.pair == Pair::Never {
                    return Err(Diagnostic::error(
                        operand.span(),
                        format!("`{}` has one result", form.mnemonic()),
                    ));
                }
                self.result(want, value, result, form)?;
                match &**predicate {
                    Operand::Sink(_) => Ok(()),
                    other => self.register(other, Type::Pred, false),
                }
            }
            _ if value.pair == Pair::Always => Err(Diagnostic::error(
                operand.span(),
                format!("`{}` has two results", form.mnemonic()),
            )
            .label("a register and a predicate are expected: `d|p`")),
            Operand::Vector(list, span) if value.vector || list.len() == 1 => {
                let count = if value.vector { form.vector() } else { 1 };
                self.count(list.len(), count, *span)?;
                for element in list {
                    let sinks = Value { sink: true, ..value };
                    self.result(want, sinks, element, form)?;
                }
                self.mixed(list);
                Ok(())
            }
            _ if value.vector && form.vector() > 1 => self.whole_vector(want, value, form, operand),
            _ => self.result(want, value, operand, form),
        }
    }

    /// One register that is written.
    fn result(&mut self, want: Option<Type>, value: Value, operand: &Operand, form: &Form) -> Outcome {
        match operand {
            Operand::Sink(_) if value.sink => Ok(()),
            Operand::Sink(span) => Err(Diagnostic::error(
                *span,
                format!("the result of `{}` cannot be thrown away", form.mnemonic()),
            )
            .label("a register is expected")),
            _ => match want {
                Some(want) => self.register(operand, want, value.wider),
                None => Ok(()),
            },
        }
    }

    /// A register, written or read.
    fn register(&mut self, operand: &Operand, want: Type, wider: bool) -> Outcome {
        let not_a_register =
            |message: String| Err(Diagnostic::error(operand.span(), message).label("a register is expected"));
        match operand {
            Operand::Name {
                name,
                select,
                offset: 0,
            } => match self.find(&name.text) {
                Some(Named::Here(Entity::Register { ty, vector })) => {
                    if vector > 1 && select.is_none() {
                        return Err(Diagnostic::error(name.span, format!("`{}` is a vector", name.text))
                            .label("one element is expected"));
                    }
                    if vector == 1
                        && let Some(select) = select
                    {
                        return Err(Diagnostic::error(
                            select.span,
                            format!("`{}` is one value and has no element `{}`", name.text, select.text),
                        ));
                    }
                    if agrees(want, wider, ty) {
                        return Ok(());
                    }
                    Err(
                        Diagnostic::error(operand.span(), format!("`{}` is declared `.{}`", name.text, ty.word()))
                            .label(a_type(want, wider)),
                    )
                }
                Some(_) => not_a_register(format!("`{}` is not a register", name.text)),
                None if special::read(&name.text, select.as_ref().map(|select| &*select.text)).is_some() => {
                    not_a_register(format!("the special register `{}` cannot be written", name.text))
                }
                None => Err(self.undeclared(name)),
            },
            Operand::Immediate(_) => not_a_register("a constant cannot be written".to_owned()),
            _ => not_a_register(format!("`{}` is not a register", self.text(operand.span()))),
        }
    }

    fn source(&mut self, form: &Form, value: Value, first: bool, operand: &Operand) -> Outcome {
        let want = resolve(value.ty, form, first);
        match operand {
            Operand::Vector(list, span) if value.vector || list.len() == 1 => {
                let count = if value.vector { form.vector() } else { 1 };
                self.count(list.len(), count, *span)?;
                for element in list {
                    self.value(want, value, element)?;
                }
                self.mixed(list);
                Ok(())
            }
            _ if value.vector && form.vector() > 1 => self.whole_vector(want, value, form, operand),
            _ => self.value(want, value, operand),
        }
    }

    /// One value that is read.
    fn value(&mut self, want: Option<Type>, value: Value, operand: &Operand) -> Outcome {
        let Some(want) = want else {
            return self.any_integer(operand);
        };
        match operand {
            Operand::Immediate(expr) => {
                if !constant_agrees(want, expr) {
                    let what = match expr {
                        Expr::Int { .. } => "an integer",
                        Expr::F32 { .. } | Expr::F64 { .. } => "a floating-point constant",
                        Expr::Symbol { .. } => "an address",
                    };
                    let found = Diagnostic::error(
                        expr.span(),
                        format!("{what} stands where a `.{}` is expected", want.word()),
                    );
                    return Err(match (expr, class(want)) {
                        (Expr::Int { bits, .. }, Class::Float) => {
                            found.label(format!("did you mean `{}.0`?", *bits as i64))
                        }
                        (_, Class::Half | Class::HalfPair | Class::Packed) => found.label("a register is expected"),
                        _ => found,
                    });
                }
                if let Expr::Int { bits, span, .. } = expr
                    && !value.limits.admit(*bits)
                {
                    return Err(out_of_range(*span, *bits, value.limits));
                }
                Ok(())
            }
            Operand::Not(name) if want == Type::Pred => self.predicate(name),
            Operand::Not(name) => Err(
                Diagnostic::error(name.span, format!("`!{}` is not a value here", name.text))
                    .label(a_type(want, value.wider)),
            ),
            Operand::Negated(inner) => Err(Diagnostic::error(inner.span(), "a sign is not expected here")),
            Operand::Sink(span) => Err(Diagnostic::error(*span, "`_` has no value")),
            Operand::Name { name, select, .. } => {
                let entity = self.find(&name.text);
                if entity.is_none() {
                    return self.special(name, select.as_ref(), want, value.wider);
                }
                if matches!(entity, Some(Named::Here(Entity::Variable(..)) | Named::Function(_))) {
                    return Err(
                        Diagnostic::error(operand.span(), format!("`{}` is not a register", name.text))
                            .label(a_type(want, value.wider))
                            .note("load its value with ld, or take its address with mov"),
                    );
                }
                self.register(operand, want, value.wider)
            }
            Operand::Address(address) => Err(Diagnostic::error(address.span, "a value is expected, not an address")),
            other => Err(Diagnostic::error(other.span(), "one value is expected here")),
        }
    }

    /// An integer register of 32 or 64 bits, or a constant.
    fn any_integer(&mut self, operand: &Operand) -> Outcome {
        if let Operand::Name { name, .. } = operand {
            return match self.find(&name.text) {
                Some(Named::Here(Entity::Register { ty, .. }))
                    if !matches!(class(ty), Class::Bits | Class::Integer) || !matches!(layout::size_of(ty), 4 | 8) =>
                {
                    Err(
                        Diagnostic::error(name.span, format!("`{}` is declared `.{}`", name.text, ty.word()))
                            .label("an integer is expected"),
                    )
                }
                Some(Named::Here(Entity::Register { .. })) => Ok(()),
                Some(_) => Err(
                    Diagnostic::error(name.span, format!("`{}` is not a register", name.text))
                        .label("an integer is expected"),
                ),
                None => Err(self.undeclared(name)),
            };
        }
        match operand {
            Operand::Immediate(Expr::Int { .. }) => Ok(()),
            other => Err(Diagnostic::error(other.span(), "an integer is expected here")),
        }
    }

    /// A special register where a value of type `want` is read.
    fn special(&self, name: &Name, select: Option<&Name>, want: Type, wider: bool) -> Outcome {
        let mismatch =
            |is: &str| Err(Diagnostic::error(name.span, format!("`{}` is {is}", name.text)).label(a_type(want, wider)));
        let width = match special::read(&name.text, select.map(|select| &*select.text)) {
            Some(Reading::Special(_, width) | Reading::Constant(_, width)) => width,
            Some(Reading::Vector) => return mismatch("a vector of four"),
            None => return Err(self.undeclared(name)),
        };
        let is = match width {
            isa::lanes::Width::Pred => Type::Pred,
            isa::lanes::Width::B64 => Type::U64,
            _ => Type::U32,
        };
        // Positions and sizes were 16 bits wide in PTX 1.x, and `%gridid` 16 and 32 before PTX 3.0; all are still allowed
        // (PTX ISA, Special Registers).
        let old =
            select.is_some() && layout::size_of(want) == 2 || &*name.text == "%gridid" && layout::size_of(want) < 8;
        match class(want) {
            Class::Pred if is == Type::Pred => Ok(()),
            Class::Bits | Class::Integer
                if is != Type::Pred && (old || wider || layout::size_of(want) == layout::size_of(is)) =>
            {
                Ok(())
            }
            _ => mismatch(&format!("a `.{}`", is.word())),
        }
    }

    /// A register declared as a vector, where an instruction takes one.
    fn whole_vector(&mut self, want: Option<Type>, value: Value, form: &Form, operand: &Operand) -> Outcome {
        if let Operand::Sink(_) = operand
            && value.sink
        {
            return Ok(());
        }
        let count = form.vector();
        let expected = format!("{count} elements in braces are expected");
        let Operand::Name { name, select: None, .. } = operand else {
            return Err(Diagnostic::error(operand.span(), "this is not a vector").label(expected));
        };
        match self.find(&name.text) {
            Some(Named::Here(Entity::Register { ty, vector })) if vector > 1 => {
                self.count(usize::from(vector), count, name.span)?;
                match want {
                    Some(want) if !agrees(want, value.wider, ty) => Err(Diagnostic::error(
                        name.span,
                        format!("`{}` is declared `.{}`", name.text, ty.word()),
                    )
                    .label(a_type(want, value.wider))),
                    _ => Ok(()),
                }
            }
            None if special::read(&name.text, None).is_none() => Err(self.undeclared(name)),
            _ => Err(Diagnostic::error(name.span, format!("`{}` is not a vector", name.text)).label(expected)),
        }
    }

    fn count(&self, is: usize, expected: u8, span: Span) -> Outcome {
        if is == usize::from(expected) {
            return Ok(());
        }
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        Err(
            Diagnostic::error(span, format!("{is} element{}", plural(is))).label(format!(
                "{expected} element{} expected",
                if expected == 1 { " is" } else { "s are" }
            )),
        )
    }

    /// Warns of registers of different kinds in one vector, which the assembler does not notice.
    fn mixed(&mut self, list: &[Operand]) {
        let mut kinds = list.iter().filter_map(|operand| match operand {
            Operand::Name { name, select: None, .. } => match self.find(&name.text) {
                Some(Named::Here(Entity::Register { ty, .. })) => Some((name, ty)),
                _ => None,
            },
            _ => None,
        });
        let Some((first, ty)) = kinds.next() else { return };
        let odd = kinds.find(|(_, other)| (class(*other) == Class::Float) != (class(ty) == Class::Float));
        if let Some((odd, other)) = odd {
            let message = format!(
                "`{}` is declared `.{}` and `{}` `.{}`",
                first.text,
                ty.word(),
                odd.text,
                other.word()
            );
            let finding = Diagnostic::warning(odd.span, message).label("elements of one vector have one type");
            self.report(finding);
        }
    }

    fn constant(&mut self, limits: Limits, lenient: bool, name: &str, operand: &Operand) -> Outcome {
        let Operand::Immediate(expr) = operand else {
            let text = self.text(operand.span());
            return Err(Diagnostic::error(operand.span(), format!("`{text}` is not a constant"))
                .label(format!("`{name}` must be known when the module is loaded")));
        };
        match expr {
            Expr::Int { bits, span, .. } if !limits.admit(*bits) => {
                let found = out_of_range(*span, *bits, limits);
                if lenient {
                    let severity = crate::ptx::diagnostic::Severity::Warning;
                    self.report(Diagnostic { severity, ..found });
                    return Ok(());
                }
                Err(found)
            }
            Expr::Int { .. } => Ok(()),
            other => Err(Diagnostic::error(other.span(), "this is not an integer").label("an integer is expected")),
        }
    }

    /// An operand of a line whose operands are not described: addresses are addresses, functions no values.
    fn loosely(&mut self, operand: &Operand) -> Outcome {
        match operand {
            Operand::Address(_) => self.address(operand, None),
            Operand::Vector(list, _) => list.iter().try_for_each(|one| self.loosely(one)),
            Operand::Name { name, .. } if matches!(self.find(&name.text), Some(Named::Function(_))) => Err(
                Diagnostic::error(name.span, format!("`{}` is not a register", name.text)).label("a value is expected"),
            ),
            _ => Ok(()),
        }
    }

    // ---- addresses --------------------------------------------------------------------------------------------------

    /// `[a]`. `space`: the one that the instruction names; nothing where any will do.
    fn address(&mut self, operand: &Operand, space: Option<Space>) -> Outcome {
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

    fn base(&mut self, name: &Name, address: &Address, space: Option<Space>) -> Outcome {
        let refuse = |message: String, label: &str| Err(Diagnostic::error(name.span, message).label(label));
        match self.find(&name.text) {
            Some(Named::Here(Entity::Register { ty, vector: 1 })) => {
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
            Some(Named::Here(Entity::Variable(variable, role))) => match space {
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
    fn writable(&self, operand: &Operand) -> Outcome {
        if let Operand::Address(Address {
            base: AddressBase::Name(name),
            ..
        }) = operand
            && let Some(Named::Here(Entity::Variable(variable, Role::EntryParameter | Role::FunctionParameter))) =
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
    fn address_of(&mut self, form: &Form, want: Option<Type>, operand: &Operand) -> Outcome {
        let want = want.unwrap_or(Type::B64);
        if let Operand::Name { name, .. } = operand
            && let Some(Named::Here(Entity::Variable(variable, role))) = self.find(&name.text)
        {
            let space = form.space();
            if form.has("to") {
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
        let value = Value {
            ty: Ty::Fixed(want),
            wider: false,
            vector: false,
            sink: false,
            pair: Pair::Never,
            limits: Limits::default(),
        };
        self.value(Some(want), value, operand)
    }

    // ---- branches ---------------------------------------------------------------------------------------------------

    fn branch_target(&mut self, operand: &Operand) -> Outcome {
        match operand {
            Operand::Name {
                name,
                select: None,
                offset: 0,
            } => self.label(name),
            other => Err(Diagnostic::error(other.span(), "this is not a label").label("a label is expected")),
        }
    }

    fn branch_targets(&mut self, operand: &Operand) -> Outcome {
        let expected = "the label of a `.branchtargets` list is expected";
        match operand {
            Operand::Name {
                name,
                select: None,
                offset: 0,
            } => match self.find(&name.text) {
                Some(Named::Here(Entity::BranchTargets)) => Ok(()),
                Some(_) => Err(
                    Diagnostic::error(name.span, format!("`{}` is not a list of labels", name.text)).label(expected),
                ),
                None => Err(self.undeclared(name).note(expected)),
            },
            other => Err(Diagnostic::error(other.span(), "this is not a label").label(expected)),
        }
    }

    /// Special registers are operands of `mov` and `cvt` alone.
    pub fn no_special_registers(&self, instruction: &Instruction) -> Outcome {
        fn special_in<'o>(body: &Body<'_>, operand: &'o Operand) -> Option<&'o Name> {
            match operand {
                Operand::Name { name, .. } => {
                    (name.text.starts_with('%') && body.find(&name.text).is_none()).then_some(name)
                }
                Operand::Vector(list, _) => list.iter().find_map(|one| special_in(body, one)),
                Operand::Pair(a, b) => special_in(body, a).or_else(|| special_in(body, b)),
                _ => None,
            }
        }
        let (first, rest) = match &instruction.operands[..] {
            [first, rest @ ..] => (first, rest),
            [] => return Ok(()),
        };
        // What is written is complained of elsewhere.
        let stores = matches!(first, Operand::Address(_) | Operand::Group(..));
        let mut sources = rest.iter().chain(if stores { None } else { Some(first) });
        match sources.find_map(|operand| special_in(self, operand)) {
            Some(name) => Err(Diagnostic::error(
                name.span,
                format!(
                    "the special register `{}` is an operand of `mov` and `cvt` alone",
                    name.text
                ),
            )
            .label("mov it to a register first")),
            None => Ok(()),
        }
    }

    // ---- mov --------------------------------------------------------------------------------------------------------

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
            ty: Ty::Fixed(want),
            wider: false,
            vector: count > 1,
            sink: false,
            pair: Pair::Never,
            limits: Limits::default(),
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
            _ => self.result(Some(want), value, to, form)?,
        }
        match from {
            Operand::Vector(list, span) => self.parts(want, list, *span),
            Operand::Name { name, select: None, .. } => match self.find(&name.text) {
                Some(Named::Here(Entity::Variable(variable, role))) => {
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
                    Entity::Label | Entity::BranchTargets | Entity::CallTargets(_) | Entity::Prototype(_),
                )) => Err(Diagnostic::error(
                    name.span,
                    format!("`{}` is a label and has no address", name.text),
                )),
                Some(Named::Here(Entity::Register { ty, vector })) if vector > 1 => {
                    // A vector register packs its elements.
                    match class(want) == Class::Bits && layout::size_of(ty) * u64::from(vector) == layout::size_of(want)
                    {
                        true => Ok(()),
                        false => Err(Diagnostic::error(name.span, format!("`{}` is a vector", name.text))
                            .label(a_type(want, false))),
                    }
                }
                Some(Named::Here(Entity::Register { .. })) => {
                    let plain = Operand::Name {
                        name: name.clone(),
                        select: None,
                        offset: 0,
                    };
                    self.value(Some(want), value, &plain)
                }
                None => self.value(Some(want), value, from),
            },
            _ => self.value(Some(want), value, from),
        }
    }

    fn takes_address(&self, want: Type, name: &Name) -> Outcome {
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

    fn any_register(&mut self, operand: &Operand) -> Outcome {
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
    fn parts(&mut self, want: Type, list: &[Operand], span: Span) -> Outcome {
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

/// Whether an access in the space that an instruction names may reach a variable of the other.
fn reaches(named: Space, is: Space, role: Role) -> bool {
    use Space::*;
    match named {
        Generic => matches!(is, Global | Shared | SharedCta | SharedCluster | Local),
        Param => matches!(is, Param | ParamEntry | ParamFunc),
        ParamEntry => is == Param && role == Role::EntryParameter || is == ParamEntry,
        ParamFunc => matches!(is, Param | ParamFunc) && role != Role::EntryParameter,
        Shared | SharedCta | SharedCluster => matches!(is, Shared | SharedCta | SharedCluster),
        other => other == is,
    }
}

fn out_of_range(span: Span, value: u64, limits: Limits) -> Diagnostic {
    Diagnostic::error(span, format!("{} is out of range", value as i64)).label(format!("expected {limits}"))
}

fn wrong_count(ways: &[&Vec<signature::Operand>], instruction: &Instruction) -> Diagnostic {
    let given = instruction.operands.len();
    let counts: Vec<usize> = ways.iter().map(|way| way.len()).collect();
    let (least, most) = (counts.iter().min().copied(), counts.iter().max().copied());
    let takes = match (least, most) {
        (Some(0), Some(0)) | (None, _) | (_, None) => "no operands".to_owned(),
        (Some(1), Some(1)) => "1 operand".to_owned(),
        (Some(least), Some(most)) if least == most => format!("{least} operands"),
        (Some(least), Some(most)) => format!("{least} to {most} operands"),
    };
    let message = format!("`{}` takes {takes}, not {given}", instruction.opcode.text);
    let place = match instruction.operands.get(most.unwrap_or(0)) {
        Some(extra) => extra.span(),
        None => instruction.opcode.span,
    };
    let found = Diagnostic::error(place, message);
    match ways.last().filter(|way| !way.is_empty()) {
        Some(way) => {
            let names: Vec<&str> = way.iter().map(|operand| operand.name).collect();
            found.label(format!("expected `{}`", names.join(", ")))
        }
        None => found,
    }
}
