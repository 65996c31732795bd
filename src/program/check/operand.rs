//! Operands against the instruction table: how many, registers or constants, of which types, in which state space (PTX
//! ISA, Operands; Operand Type Information; Operand Size Exceeding Instruction-Type Size).

use super::body::{Body, Named, Outcome};
use super::opcode::place_of;
use super::scope::Entity;
use super::special::{self, Reading};
use super::types::{Class, a_type, agrees, class, constant_agrees};
use crate::isa::table::fragment;
use crate::isa::table::signature::{self, Count, Kind, Limits, Pair, Place, Ty, Value};
use crate::isa::{self, Form, Operation};
use crate::program::ir::Special;
use crate::program::layout;
use crate::ptx::ast::{AddressBase, Expr, Instruction, Name, Operand, Space, Span, Type};
use crate::ptx::diagnostic::Diagnostic;

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

/// A value with the type and the number of registers that the opcode gives a fragment.
fn settled(form: &Form, name: &str, value: Value) -> Value {
    match fragment::of(form, name) {
        Some((ty, count)) if value.count == Count::Fragment => Value {
            ty: Ty::Fixed(ty),
            count: Count::Exactly(count),
            ..value
        },
        Some(_) | None => value,
    }
}

/// How many registers a value takes.
fn elements(form: &Form, value: Value) -> u8 {
    match value.count {
        Count::One | Count::Fragment => 1,
        Count::Opcode => form.vector(),
        Count::Exactly(count) => count,
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
        if matches!(form.op, Operation::Call { .. } | Operation::Move { .. }) {
            return Ok(());
        }
        if let Operation::Video(opcode) = form.op {
            return self.video(opcode, form, instruction);
        }
        let given = &instruction.operands;
        let due = |way: &&Vec<signature::Operand>| {
            let conditional = signature.ways.iter().flatten().filter_map(|operand| operand.when);
            conditional
                .into_iter()
                .all(|when| form.has_one_of(when) == way.iter().any(|operand| operand.when == Some(when)))
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

    pub fn way(&mut self, form: &Form, way: &[signature::Operand], instruction: &Instruction) -> Outcome {
        let mut spaces = form.spaces();
        for (index, (expected, operand)) in way.iter().zip(&instruction.operands).enumerate() {
            let first = index == 0;
            match &expected.kind {
                Kind::Destination(value) => {
                    self.destination(form, settled(form, expected.name, *value), first, operand)?
                }
                Kind::Source(value) => self.source(form, settled(form, expected.name, *value), first, operand)?,
                Kind::Group(list) => self.group(form, list, operand)?,
                Kind::Address(Place::TensorMemory) => self.tensor_memory(operand)?,
                Kind::Address(Place::Space(space)) => self.address(operand, Some(*space))?,
                Kind::Address(Place::Opcode) => {
                    // Fences order accesses to what need not be memory.
                    let fence = matches!(form.op, Operation::Fence(_));
                    let space = spaces.next().unwrap_or(Space::Generic);
                    self.address(operand, Some(space).filter(|_| !fence))?;
                    if matches!(
                        form.op,
                        Operation::Store(_) | Operation::Atomic(_) | Operation::Reduction(_)
                    ) {
                        self.writable(operand)?;
                    }
                }
                Kind::Handle(ty, coordinates) => self.handle(form, *ty, *coordinates, operand)?,
                Kind::Coordinates(floats) => self.vector_of_layer(form, *floats, operand)?,
                Kind::AddressOf(ty) => self.address_of(form, resolve(*ty, form, first), operand)?,
                Kind::Constant(limits, lenient) => self.constant(*limits, *lenient, expected.name, operand)?,
                Kind::Label => {
                    self.branch_target(operand)?;
                }
                Kind::Targets => {
                    self.branch_targets(operand)?;
                }
                Kind::Sink => match operand {
                    Operand::Sink(_) => {}
                    other => {
                        let message = format!("`{}` has no result here", form.mnemonic());
                        return Err(Diagnostic::error(other.span(), message).label("`_` is expected"));
                    }
                },
                Kind::Any => self.four_numbers(operand)?,
                Kind::Video | Kind::Pointer => {}
            }
        }
        Ok(())
    }

    fn video(&mut self, opcode: isa::video::Opcode, form: &Form, instruction: &Instruction) -> Outcome {
        let read = self.read_video(opcode, instruction)?;
        let value = Value::of(Type::U32);
        for (index, operand) in read.operands.iter().enumerate() {
            match index {
                0 => self.result(Some(Type::U32), value, operand, form)?,
                _ => self.value(Some(Type::U32), value, operand)?,
            }
        }
        Ok(())
    }

    /// `[a, {b, c}]`
    fn group(&mut self, form: &Form, list: &[signature::Operand], operand: &Operand) -> Outcome {
        let due: Vec<&signature::Operand> = list
            .iter()
            .filter(|one| one.when.is_none_or(|when| form.has_one_of(when)))
            .collect();
        let names: Vec<&str> = due.iter().map(|one| one.name).collect();
        let expected = format!("expected `[{}]`", names.join(", "));
        let Operand::Group(given, span) = operand else {
            let message = format!("`{}` is not a list in brackets", self.text(operand.span()));
            return Err(Diagnostic::error(operand.span(), message).label(expected));
        };
        if given.len() != due.len() {
            return Err(Diagnostic::error(*span, format!("{} operands in brackets", given.len())).label(expected));
        }
        for (expected, operand) in due.into_iter().zip(given) {
            match &expected.kind {
                Kind::Pointer => self.pointer(operand)?,
                Kind::Source(_) if matches!(operand, Operand::Immediate(_)) => {
                    return Err(Diagnostic::error(operand.span(), "a constant cannot stand here")
                        .label("a register is expected"));
                }
                Kind::Source(value) => self.source(form, settled(form, expected.name, *value), false, operand)?,
                Kind::Destination(_)
                | Kind::Group(_)
                | Kind::Address(_)
                | Kind::Handle(..)
                | Kind::Coordinates(_)
                | Kind::AddressOf(_)
                | Kind::Constant(..)
                | Kind::Label
                | Kind::Targets
                | Kind::Sink
                | Kind::Video
                | Kind::Any => self.loosely(operand)?,
            }
        }
        Ok(())
    }

    /// `{a, b, e, f}` of a conversion of four numbers at once.
    fn four_numbers(&self, operand: &Operand) -> Outcome {
        let expected = || Diagnostic::error(operand.span(), "four numbers in braces are expected here");
        let list = match operand {
            Operand::Vector(list, _) if list.len() == 4 => list,
            Operand::Name { name, select: None, .. } => {
                return match self.find(&name.text) {
                    Some(Named::Here(Entity::Register { vector: 4, ty, .. })) if class(ty) != Class::Integer => Ok(()),
                    _ => Err(expected()),
                };
            }
            _ => return Err(expected()),
        };
        for one in list {
            if let Operand::Name { name, .. } = one
                && let Some(Named::Here(Entity::Register { ty, .. })) = self.find(&name.text)
                && class(ty) == Class::Integer
            {
                let message = format!("`{}` is declared .{}; a .f32 is expected here", name.text, ty.word());
                return Err(Diagnostic::error(one.span(), message));
            }
        }
        Ok(())
    }

    /// A register with a generic address, or the name of a variable.
    fn pointer(&mut self, operand: &Operand) -> Outcome {
        match operand {
            Operand::Name { name, select: None, .. } => match self.find(&name.text) {
                Some(Named::Here(Entity::Variable(..))) => Ok(()),
                _ => self.register(operand, Type::U64, false),
            },
            other => {
                Err(Diagnostic::error(other.span(), "this is not an address")
                    .label("a register or a variable is expected"))
            }
        }
    }

    /// `[taddr]`, which a register of 32 bits holds.
    fn tensor_memory(&mut self, operand: &Operand) -> Outcome {
        let Operand::Address(address) = operand else {
            let message = format!("`{}` is not an address", self.text(operand.span()));
            return Err(Diagnostic::error(operand.span(), message).label("an address in brackets is expected"));
        };
        let AddressBase::Name(name) = &address.base else {
            return Err(
                Diagnostic::error(address.span, "a constant is no address here").label("a register is expected")
            );
        };
        let register = Operand::Name {
            name: name.clone(),
            select: None,
            offset: 0,
        };
        self.register(&register, Type::U32, false)
    }

    pub fn destination(&mut self, form: &Form, value: Value, first: bool, operand: &Operand) -> Outcome {
        let want = resolve(value.ty, form, first).map(|want| value.loosened(want));
        match operand {
            Operand::Pair(result, predicate) => {
                if value.pair == Pair::Never {
                    return Err(Diagnostic::error(
                        operand.span(),
                        format!("`{}` has one result", form.mnemonic()),
                    ));
                }
                let alone = Value {
                    pair: Pair::Never,
                    ..value
                };
                self.destination(form, alone, first, result)?;
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
            Operand::Vector(list, span) if value.count != Count::One => {
                self.count(list.len(), elements(form, value), *span)?;
                let image = matches!(form.op, Operation::Texture(_) | Operation::SurfaceLoad(_));
                if image && list.iter().all(|element| matches!(element, Operand::Sink(_))) {
                    return Err(
                        Diagnostic::error(*span, "all of the result is thrown away").label("a register is expected")
                    );
                }
                for element in list {
                    let sinks = Value { sink: true, ..value };
                    self.result(want, sinks, element, form)?;
                }
                self.mixed(list);
                Ok(())
            }
            _ if elements(form, value) > 1 || matches!(value.count, Count::Exactly(_)) => {
                self.whole_vector(want, value, form, operand)
            }
            _ => self.result(want, value, operand, form),
        }
    }

    /// One register that is written.
    pub fn result(&mut self, want: Option<Type>, value: Value, operand: &Operand, form: &Form) -> Outcome {
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
    pub fn register(&mut self, operand: &Operand, want: Type, wider: bool) -> Outcome {
        let not_a_register =
            |message: String| Err(Diagnostic::error(operand.span(), message).label("a register is expected"));
        match operand {
            Operand::Name {
                name,
                select,
                offset: 0,
            } => match self.find(&name.text) {
                Some(Named::Here(Entity::Register { ty, vector, .. })) => {
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

    pub fn source(&mut self, form: &Form, value: Value, first: bool, operand: &Operand) -> Outcome {
        let want = resolve(value.ty, form, first).map(|want| match operand {
            Operand::Name { .. } => value.loosened(want),
            _ => want,
        });
        match operand {
            Operand::Vector(list, span) if value.count != Count::One => {
                self.count(list.len(), elements(form, value), *span)?;
                for element in list {
                    self.value(want, value, element)?;
                }
                self.mixed(list);
                Ok(())
            }
            _ if elements(form, value) > 1 || matches!(value.count, Count::Exactly(_)) => {
                self.whole_vector(want, value, form, operand)
            }
            // Scales and the numbers of sparse elements, one register in braces as NVIDIA's headers write them.
            Operand::Vector(list, _) if value.register && list.len() == 1 => self.value(want, value, &list[0]),
            _ => self.value(want, value, operand),
        }
    }

    /// One value that is read.
    pub fn value(&mut self, want: Option<Type>, value: Value, operand: &Operand) -> Outcome {
        let Some(want) = want else {
            return self.any_integer(operand);
        };
        match operand {
            Operand::Immediate(expr) if value.register => {
                Err(Diagnostic::error(expr.span(), "a constant cannot stand here").label("a register is expected"))
            }
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
            Operand::Name { name, select, offset } => {
                let entity = self.find(&name.text);
                if entity.is_none() {
                    return self.special(name, select.as_ref(), want, value.wider);
                }
                if *offset != 0 {
                    return self.sum(operand, want, value);
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

    /// `%r1+8` is a value wherever one is read, and `var+8` an address: no manual has either, and the assembler takes both
    /// where integers are expected.
    fn sum(&mut self, operand: &Operand, want: Type, value: Value) -> Outcome {
        let Operand::Name { name, select, .. } = operand else {
            return Ok(());
        };
        let integer =
            |ty| matches!(class(ty), Class::Bits | Class::Integer) && matches!(layout::size_of(ty), 2 | 4 | 8);
        match self.find(&name.text) {
            Some(Named::Here(Entity::Variable(..)) | Named::Function(_)) => self.takes_address(want, name),
            Some(Named::Here(Entity::Register { ty, vector: 1, .. })) if integer(ty) => {
                let plain = Operand::Name {
                    name: name.clone(),
                    select: select.clone(),
                    offset: 0,
                };
                self.register(&plain, want, value.wider)
            }
            _ => Err(
                Diagnostic::error(name.span, format!("a number is added to `{}`", name.text))
                    .label("an integer register of 16, 32 or 64 bits is expected"),
            ),
        }
    }

    /// An integer register of 32 or 64 bits, or a constant.
    pub fn any_integer(&mut self, operand: &Operand) -> Outcome {
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
    pub fn special(&self, name: &Name, select: Option<&Name>, want: Type, wider: bool) -> Outcome {
        let mismatch =
            |is: &str| Err(Diagnostic::error(name.span, format!("`{}` is {is}", name.text)).label(a_type(want, wider)));
        let (width, grid) = match special::read(&name.text, select.map(|select| &*select.text)) {
            Some(Reading::Special(special, width)) => (width, special == Special::Gridid),
            Some(Reading::Constant(_)) => (isa::lanes::Width::B32, false),
            Some(Reading::Vector) => return mismatch("a vector of four"),
            None => return Err(self.undeclared(name)),
        };
        let is = match width {
            isa::lanes::Width::Pred => Type::Pred,
            isa::lanes::Width::B64 | isa::lanes::Width::B128 => Type::U64,
            isa::lanes::Width::B16 | isa::lanes::Width::B32 => Type::U32,
        };
        // Positions and sizes were 16 bits wide in PTX 1.x, and `%gridid` 16 and 32 before PTX 3.0; all are still allowed
        // (PTX ISA, Special Registers).
        let old = select.is_some() && layout::size_of(want) == 2 || grid && layout::size_of(want) < 8;
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
    pub fn whole_vector(&mut self, want: Option<Type>, value: Value, form: &Form, operand: &Operand) -> Outcome {
        if let Operand::Sink(_) = operand
            && value.sink
        {
            return Ok(());
        }
        let count = elements(form, value);
        let expected = match count {
            1 => "1 element in braces is expected".to_owned(),
            count => format!("{count} elements in braces are expected"),
        };
        let Operand::Name { name, select: None, .. } = operand else {
            return Err(Diagnostic::error(operand.span(), "this is not a vector").label(expected));
        };
        match self.find(&name.text) {
            Some(Named::Here(Entity::Register { ty, vector, .. })) if vector > 1 => {
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

    pub fn count(&self, is: usize, expected: u8, span: Span) -> Outcome {
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
    pub fn mixed(&mut self, list: &[Operand]) {
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

    pub fn constant(&mut self, limits: Limits, lenient: bool, name: &str, operand: &Operand) -> Outcome {
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

    /// An operand of a list in brackets of which the line says no more: addresses are addresses, functions no values.
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
}

fn out_of_range(span: Span, value: u64, limits: Limits) -> Diagnostic {
    Diagnostic::error(span, format!("{} is out of range", value as i64)).label(format!("expected {limits}"))
}

/// Whether an instruction has as many operands as its line.
pub(super) fn count(form: &Form, given: usize, instruction: &Instruction) -> Outcome {
    let ways: Vec<&Vec<signature::Operand>> = form.signature.ways.iter().collect();
    match ways.iter().any(|way| way.len() == given) {
        true => Ok(()),
        false => Err(wrong_count(&ways, instruction)),
    }
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
