//! What a body names at module scope, without lowering it: whom it calls, whose address it takes, which shared variables
//! it uses. A kernel's shared memory and the targets of indirect calls follow from it.

use std::collections::HashMap;

use super::layout::{self, SharedVariable};
use super::module::{Module, Old, Symbol, Unit};
use crate::ptx::ast::{AddressBase, Expr, Init, Item, Name, Operand, Space, Statement, Variable};

#[derive(Debug, Default)]
pub struct References {
    /// Functions called directly (module indices), each once.
    pub callees: Vec<u32>,
    /// Functions named otherwise.
    pub addresses: Vec<u32>,
    /// Shared variables, the body's own among them.
    pub shared: Vec<u32>,
    /// The body's own shared variables, by where their declaration starts in the text.
    pub own_shared: HashMap<u32, u32>,
    pub calls_indirectly: bool,
    /// Functions that no unit defines.
    pub undefined: Vec<std::sync::Arc<str>>,
}

/// Reads the body; one that does not parse names nothing (lowering reports it).
pub fn of(module: &Module, function: u32) -> References {
    let mut references = References::default();
    let Some((unit, definition)) = module.definition(function) else {
        return references;
    };
    if let Some(Ok(statements)) = definition.body.as_ref().map(|b| b.statements()) {
        let mut reader = Reader {
            module,
            unit,
            function,
            references: &mut references,
        };
        reader.statements(statements);
    }
    for list in [
        &mut references.callees,
        &mut references.addresses,
        &mut references.shared,
    ] {
        list.sort_unstable();
        list.dedup();
    }
    references
}

/// Functions that variables point to from the start.
pub fn in_initialisers(module: &Module) -> Vec<u32> {
    fn walk(init: &Init, unit: &Unit, out: &mut Vec<u32>) {
        match init {
            Init::List(list) => list.iter().for_each(|i| walk(i, unit, out)),
            Init::Value(Expr::Symbol { name, .. }) => {
                if let Some(Symbol::Function(index)) = unit.names.get(&name.text) {
                    out.push(*index);
                }
            }
            Init::Value(_) | Init::Fields(_) => {}
        }
    }
    let mut out = Vec::new();
    for unit in &module.linked.units {
        for item in &unit.tree.items {
            if let Item::Variable(variable) = item
                && let Some(init) = &variable.init
            {
                walk(init, unit, &mut out);
            }
        }
    }
    out
}

/// Registers of file scope and initialised shared variables of the module's units of PTX 1.x.
pub fn old(module: &Module) -> Old {
    let mut old = Old::default();
    let legacy = |unit: &Unit| unit.tree.version < (2, 0);
    for (number, unit) in module.linked.units.iter().enumerate().filter(|(_, unit)| legacy(unit)) {
        for (item, i) in unit.tree.items.iter().enumerate() {
            let Item::Variable(variable) = i else { continue };
            if variable.space == Space::Reg {
                old.registers.push((number, item));
            }
            if variable.init.is_some()
                && let Some(Symbol::Shared(index)) = unit.names.get(&variable.name.text)
            {
                old.shared.insert(*index, (number, (**variable).clone()));
            }
        }
    }
    for function in 0..module.functions.len() as u32 {
        let Some((unit, definition)) = module.definition(function) else {
            continue;
        };
        let Some(body) = definition
            .body
            .as_ref()
            .filter(|body| legacy(unit) && body.text().contains(".shared"))
        else {
            continue;
        };
        let (Ok(statements), Some(origin)) = (body.statements(), module.functions[function as usize].origin) else {
            continue;
        };
        let own = &module.references(function).own_shared;
        let mut found = Vec::new();
        initialised(statements, &mut found);
        for variable in found {
            if let Some(&index) = own.get(&variable.span.start) {
                old.shared.insert(index, (origin.unit, variable.clone()));
            }
        }
    }
    old
}

/// Shared variables with initialisers.
fn initialised<'t>(statements: &'t [Statement], found: &mut Vec<&'t Variable>) {
    for statement in statements {
        match statement {
            Statement::Block(inner) => initialised(inner, found),
            Statement::Variable(variable) if variable.init.is_some() && variable.space == Space::Shared => {
                found.push(variable);
            }
            _ => {}
        }
    }
}

struct Reader<'a> {
    module: &'a Module,
    unit: &'a Unit,
    function: u32,
    references: &'a mut References,
}

impl Reader<'_> {
    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            match statement {
                Statement::Block(inner) => self.statements(inner),
                Statement::Variable(variable) => {
                    if matches!(variable.space, Space::Shared | Space::SharedCta | Space::SharedCluster) {
                        let mut all = self.module.linked.shared.lock().unwrap_or_else(|p| p.into_inner());
                        let index = all.len() as u32;
                        all.push(SharedVariable {
                            bytes: layout::bytes_of(variable).map(|b| u32::try_from(b).unwrap_or(u32::MAX)),
                            align: layout::align_of(variable) as u32,
                            order: (u32::MAX / 2 + self.function, variable.span.start),
                        });
                        self.references.shared.push(index);
                        self.references.own_shared.insert(variable.span.start, index);
                    }
                }
                Statement::Instruction(instruction) => {
                    let call = instruction.opcode.words().next() == Some("call");
                    let mut callee = call;
                    for operand in &instruction.operands {
                        match operand {
                            Operand::Name { name, .. } if std::mem::take(&mut callee) => {
                                match self.unit.names.get(&name.text) {
                                    Some(Symbol::Function(index)) => self.references.callees.push(*index),
                                    Some(Symbol::Undefined) => self.references.undefined.push(name.text.clone()),
                                    Some(_) => {}
                                    None => self.references.calls_indirectly = true,
                                }
                            }
                            other => self.operand(other),
                        }
                    }
                }
                Statement::CallTargets { targets, .. } => targets.iter().for_each(|t| self.name(t)),
                Statement::Label(_)
                | Statement::Loc { .. }
                | Statement::Pragma(_)
                | Statement::CallPrototype(_)
                | Statement::BranchTargets { .. }
                | Statement::Directive(_) => {}
            }
        }
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Name { name, .. } => self.name(name),
            Operand::Immediate(Expr::Symbol { name, .. }) => self.name(name),
            Operand::Address(address) => {
                if let AddressBase::Name(name) = &address.base {
                    self.name(name);
                }
            }
            Operand::Vector(list, _) | Operand::Group(list, _) | Operand::Arguments(list, _) => {
                list.iter().for_each(|o| self.operand(o));
            }
            Operand::Pair(a, b) => {
                self.operand(a);
                self.operand(b);
            }
            Operand::Negated(inner) => self.operand(inner),
            Operand::Immediate(_) | Operand::Not(_) | Operand::Sink(_) => {}
        }
    }

    fn name(&mut self, name: &Name) {
        match self.unit.names.get(&name.text) {
            Some(Symbol::Function(index)) => self.references.addresses.push(*index),
            Some(Symbol::Shared(index)) => self.references.shared.push(*index),
            Some(Symbol::Undefined) => self.references.undefined.push(name.text.clone()),
            _ => {}
        }
    }
}
