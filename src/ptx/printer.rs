//! Syntax tree → PTX text that NVIDIA's assembler accepts and that reads back as an equal tree: a module or any part of one,
//! one statement a line. Constants come out folded, one declaration for each name, comments and preprocessor lines are gone.

use std::fmt::{self, Display, Formatter, Write};

use super::ast::{
    Address, AddressBase, Body, CallPrototype, Directive, Expr, Function, Init, Instruction, Item, Linkage, Module,
    Name, Operand, Space, Statement, Variable,
};

/// Writes `list` with `separator` between its elements.
fn join<T: Display>(f: &mut Formatter<'_>, list: impl IntoIterator<Item = T>, separator: &str) -> fmt::Result {
    for (index, one) in list.into_iter().enumerate() {
        if index > 0 {
            f.write_str(separator)?;
        }
        one.fmt(f)?;
    }
    Ok(())
}

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, ".version {}.{}", self.version.0, self.version.1)?;
        f.write_str(".target ")?;
        join(f, &self.target, ", ")?;
        // `.address_size` came with PTX 2.3; before, addresses have 32 bits unless the target says otherwise.
        if self.version >= (2, 3) {
            write!(f, "\n.address_size {}", self.address_size)?;
        }
        f.write_str("\n\n")?;
        for item in &self.items {
            writeln!(f, "{item}")?;
        }
        Ok(())
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Item::Variable(variable) => write!(f, "{variable};"),
            Item::Function(function) => write!(f, "{function}"),
            Item::Alias { name, target } => write!(f, ".alias {name}, {target};"),
            Item::File { index, name, timestamp } => {
                write!(f, ".file {index} \"{name}\"")?;
                match timestamp {
                    Some((time, size)) => write!(f, ", {time}, {size}"),
                    None => Ok(()),
                }
            }
            Item::Section(section) => write!(f, ".section {} {}", section.name, section.text()),
            Item::Pragma(texts) => pragma(f, texts),
            Item::Debug(text) => f.write_str(text),
        }
    }
}

fn dimensions(f: &mut Formatter<'_>, dims: &[Option<u64>]) -> fmt::Result {
    dims.iter().try_for_each(|dim| match dim {
        Some(dim) => write!(f, "[{dim}]"),
        None => f.write_str("[]"),
    })
}

fn pragma(f: &mut Formatter<'_>, texts: &[String]) -> fmt::Result {
    f.write_str(".pragma ")?;
    join(f, texts.iter().map(|text| format!("\"{text}\"")), ", ")?;
    f.write_char(';')
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Linkage {
    /// As written, with a blank behind it.
    fn prefix(self) -> &'static str {
        match self {
            Linkage::Internal => "",
            Linkage::Extern => ".extern ",
            Linkage::Visible => ".visible ",
            Linkage::Weak => ".weak ",
            Linkage::Common => ".common ",
        }
    }
}

fn attributes(f: &mut Formatter<'_>, list: &[(Name, Vec<u64>)]) -> fmt::Result {
    if list.is_empty() {
        return Ok(());
    }
    f.write_str(".attribute(")?;
    for (index, (name, arguments)) in list.iter().enumerate() {
        write!(f, "{}.{name}", if index > 0 { ", " } else { "" })?;
        if !arguments.is_empty() {
            f.write_char('(')?;
            join(f, arguments, ", ")?;
            f.write_char(')')?;
        }
    }
    f.write_str(") ")
}

impl Display for Variable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.linkage.prefix())?;
        if self.space != Space::Generic {
            write!(f, ".{}", self.space.word())?;
            if let Some(bank) = self.bank {
                write!(f, "[{bank}]")?;
            }
            f.write_char(' ')?;
        }
        attributes(f, &self.attributes)?;
        if let Some(align) = self.align {
            write!(f, ".align {align} ")?;
        }
        if let Some(vector) = self.vector {
            write!(f, ".v{vector} ")?;
        }
        write!(f, ".{} ", self.ty.word())?;
        if let Some((space, align)) = self.ptr {
            f.write_str(".ptr ")?;
            if space != Space::Generic {
                write!(f, ".{} ", space.word())?;
            }
            if let Some(align) = align {
                write!(f, ".align {align} ")?;
            }
        }
        write!(f, "{}", self.name)?;
        if let Some(count) = self.count {
            write!(f, "<{count}>")?;
        }
        dimensions(f, &self.dims)?;
        match &self.init {
            Some(init) => write!(f, " = {init}"),
            None => Ok(()),
        }
    }
}

impl Display for Init {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Init::Value(value) => value.fmt(f),
            Init::List(list) => {
                f.write_char('{')?;
                join(f, list, ", ")?;
                f.write_char('}')
            }
            Init::Fields(list) => {
                f.write_char('{')?;
                join(f, list.iter().map(|(name, value)| format!("{name} = {value}")), ", ")?;
                f.write_char('}')
            }
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Int {
                bits, unsigned: true, ..
            } => write!(f, "{bits}U"),
            Expr::Int { bits, .. } => write!(f, "{}", *bits as i64),
            Expr::F32 { bits, .. } => write!(f, "0f{bits:08X}"),
            Expr::F64 { bits, .. } => write!(f, "0d{bits:016X}"),
            Expr::Symbol {
                name,
                offset,
                generic,
                mask,
                ..
            } => {
                if let Some(mask) = mask {
                    write!(f, "0x{mask:X}(")?;
                }
                if *generic {
                    write!(f, "generic({name})")?;
                } else {
                    write!(f, "{name}")?;
                }
                plus(f, *offset)?;
                f.write_str(if mask.is_some() { ")" } else { "" })
            }
        }
    }
}

/// `+8`, `+-8`, or nothing.
fn plus(f: &mut Formatter<'_>, offset: i64) -> fmt::Result {
    if offset == 0 { Ok(()) } else { write!(f, "+{offset}") }
}

fn parameters(f: &mut Formatter<'_>, list: &[Variable]) -> fmt::Result {
    f.write_char('(')?;
    join(f, list, ", ")?;
    f.write_char(')')
}

impl Display for Directive {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.text.is_empty() {
            return pragma(f, &self.text);
        }
        write!(f, ".{}", self.name)?;
        if !self.args.is_empty() {
            f.write_char(' ')?;
        }
        join(f, &self.args, ", ")
    }
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.linkage.prefix())?;
        f.write_str(if self.entry { ".entry " } else { ".func " })?;
        attributes(f, &self.attributes)?;
        if !self.returns.is_empty() {
            parameters(f, &self.returns)?;
            f.write_char(' ')?;
        }
        write!(f, "{}", self.name)?;
        dimensions(f, &self.dims)?;
        parameters(f, &self.params)?;
        for directive in &self.directives {
            write!(f, " {directive}")?;
        }
        match &self.body {
            Some(body) => write!(f, "\n{body}"),
            None => f.write_char(';'),
        }
    }
}

impl Display for Body {
    /// As written if it does not parse.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.statements() {
            Ok(statements) => block(f, statements, 0),
            Err(_) => f.write_str(self.text()),
        }
    }
}

fn block(f: &mut Formatter<'_>, statements: &[Statement], depth: usize) -> fmt::Result {
    f.write_str("{\n")?;
    for statement in statements {
        let labels = matches!(
            statement,
            Statement::Label(_)
                | Statement::CallPrototype(_)
                | Statement::CallTargets { .. }
                | Statement::BranchTargets { .. }
        );
        for _ in 0..if labels { depth } else { depth + 1 } {
            f.write_char('\t')?;
        }
        match statement {
            Statement::Block(inner) => block(f, inner, depth + 1)?,
            other => write!(f, "{other}")?,
        }
        f.write_char('\n')?;
    }
    for _ in 0..depth {
        f.write_char('\t')?;
    }
    f.write_char('}')
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Statement::Label(name) => write!(f, "{name}:"),
            Statement::Variable(variable) => write!(f, "{variable};"),
            Statement::Instruction(instruction) => write!(f, "{instruction}"),
            Statement::Block(inner) => block(f, inner, 0),
            Statement::Loc {
                file,
                line,
                column,
                function,
                offset,
                inlined_at,
                place: _,
            } => {
                write!(f, ".loc {file} {line} {column}")?;
                if let Some(function) = function {
                    write!(f, ", function_name {function}")?;
                    plus(f, *offset as i64)?;
                }
                match inlined_at {
                    Some((file, line, column)) => write!(f, ", inlined_at {file} {line} {column}"),
                    None => Ok(()),
                }
            }
            Statement::Pragma(texts) => pragma(f, texts),
            Statement::CallPrototype(prototype) => write!(f, "{prototype}"),
            Statement::CallTargets { label, targets } => {
                write!(f, "{label}: .calltargets ")?;
                join(f, targets, ", ")?;
                f.write_char(';')
            }
            Statement::BranchTargets { label, targets } => {
                write!(f, "{label}: .branchtargets ")?;
                join(f, targets, ", ")?;
                f.write_char(';')
            }
            Statement::Directive(directive) => write!(f, "{directive};"),
        }
    }
}

impl Display for CallPrototype {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: .callprototype ", self.label)?;
        if !self.returns.is_empty() {
            parameters(f, &self.returns)?;
            f.write_char(' ')?;
        }
        f.write_str("_ ")?;
        parameters(f, &self.params)?;
        for directive in &self.directives {
            write!(f, " {directive}")?;
        }
        f.write_char(';')
    }
}

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(guard) = &self.guard {
            write!(f, "@{}{} ", if guard.negated { "!" } else { "" }, guard.predicate)?;
        }
        f.write_str(&self.opcode.text)?;
        if !self.operands.is_empty() {
            f.write_char(' ')?;
        }
        join(f, &self.operands, ", ")?;
        f.write_char(';')
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let list = |f: &mut Formatter<'_>, open: char, list: &[Operand], close: char| {
            f.write_char(open)?;
            join(f, list, ", ")?;
            f.write_char(close)
        };
        match self {
            Operand::Name { name, select, offset } => {
                write!(f, "{name}")?;
                if let Some(select) = select {
                    write!(f, ".{select}")?;
                }
                plus(f, *offset)
            }
            Operand::Not(name) => write!(f, "!{name}"),
            Operand::Negated(operand) => write!(f, "-{operand}"),
            Operand::Immediate(value) => value.fmt(f),
            Operand::Address(address) => address.fmt(f),
            Operand::Vector(elements, _) => list(f, '{', elements, '}'),
            Operand::Pair(first, second) => write!(f, "{first}|{second}"),
            Operand::Sink(_) => f.write_char('_'),
            Operand::Group(elements, _) => list(f, '[', elements, ']'),
            Operand::Arguments(elements, _) => list(f, '(', elements, ')'),
        }
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (&self.base, &self.index) {
            (AddressBase::Name(name), Some(index)) => {
                write!(f, "{name}[{index}")?;
                plus(f, self.offset)?;
                f.write_char(']')?;
            }
            (AddressBase::Name(name), None) if self.subscript => write!(f, "{name}[{}]", self.offset)?,
            (AddressBase::Name(name), None) => {
                write!(f, "[{name}")?;
                plus(f, self.offset)?;
                f.write_char(']')?;
            }
            (AddressBase::Absolute(address), _) => write!(f, "[{address}]")?,
        }
        f.write_str(if self.unified { ".unified" } else { "" })
    }
}
