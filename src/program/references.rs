//! What a body names of the linked module, without lowering it: whom it calls, whose address it takes, which shared
//! variables it uses. A kernel's shared memory and the targets of indirect calls follow from it.

use std::collections::HashMap;

use super::check::{self, Names, Surroundings};
use super::layout::{self, SharedVariable};
use super::module::{Module, Old, Symbol, Unit};
use crate::ptx::ast::{Expr, Init, Item, Space, Statement, Variable};

#[derive(Debug, Default)]
pub struct References {
    /// Functions called directly (module indices), each once.
    pub callees: Vec<u32>,
    /// Functions named otherwise.
    pub addresses: Vec<u32>,
    /// Shared variables, the body's own among them.
    pub shared: Vec<u32>,
    /// The body's own shared variables, by where their name stands in the text.
    pub own_shared: HashMap<u32, u32>,
    pub calls_indirectly: bool,
    /// Functions that no unit defines.
    pub undefined: Vec<std::sync::Arc<str>>,
}

/// Asks the check of the body; one that does not parse names nothing (lowering reports it).
pub fn of(module: &Module, function: u32) -> References {
    let mut references = References::default();
    let Some((unit, definition)) = module.definition(function) else {
        return references;
    };
    let around = Surroundings {
        tree: &unit.tree,
        names: unit.declared.get_or_init(|| Names::of(&unit.tree)),
    };
    let Some(checked) = check::of_body(&around, definition) else {
        return references;
    };
    let mentions = &checked.mentions;
    references.calls_indirectly = mentions.calls_indirectly;
    let named = mentions.named.iter().map(|item| (item, false));
    for (&item, call) in mentions.called.iter().map(|item| (item, true)).chain(named) {
        match unit.symbols.get(item as usize).copied().flatten() {
            Some(Symbol::Function(index)) if call => references.callees.push(index),
            Some(Symbol::Function(index)) => references.addresses.push(index),
            Some(Symbol::Shared(index)) => references.shared.push(index),
            Some(Symbol::Undefined) => {
                let name = unit.tree.items[item as usize].name();
                references.undefined.extend(name.map(|name| name.text.clone()));
            }
            Some(Symbol::Global(_) | Symbol::Syscall(..) | Symbol::Unplaced(_)) | None => {}
        }
    }
    let reserves = |text: &str| text.contains("%reserved_smem_offset");
    if definition.body.as_ref().is_some_and(|body| reserves(body.text())) {
        references.shared.push(module.reserved_shared());
    }
    let statements = definition.body.as_ref().and_then(|body| body.statements().ok());
    let mut own = Vec::new();
    declared(statements.unwrap_or_default(), &is_shared, &mut own);
    let mut all = module.linked.shared.lock().unwrap_or_else(|p| p.into_inner());
    for variable in own {
        let index = all.len() as u32;
        all.push(SharedVariable {
            bytes: layout::bytes_of(variable).map(|b| u32::try_from(b).unwrap_or(u32::MAX)),
            align: layout::align_of(variable) as u32,
            order: (u32::MAX / 2 + function, variable.name.span.start),
        });
        references.shared.push(index);
        references.own_shared.insert(variable.name.span.start, index);
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

/// The variables of a body that are `wanted`.
fn declared<'t>(statements: &'t [Statement], wanted: &dyn Fn(&Variable) -> bool, found: &mut Vec<&'t Variable>) {
    for statement in statements {
        match statement {
            Statement::Block(inner) => declared(inner, wanted, found),
            Statement::Variable(variable) if wanted(variable) => found.push(variable),
            Statement::Variable(_)
            | Statement::Instruction(_)
            | Statement::Label(_)
            | Statement::Loc { .. }
            | Statement::Pragma(_)
            | Statement::CallPrototype(_)
            | Statement::CallTargets { .. }
            | Statement::BranchTargets { .. }
            | Statement::Directive(_) => {}
        }
    }
}

fn is_shared(variable: &Variable) -> bool {
    matches!(variable.space, Space::Shared | Space::SharedCta | Space::SharedCluster)
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

/// Initialised shared variables of the module's units of PTX 1.x.
pub fn old(module: &Module) -> Old {
    let mut old = Old::default();
    let legacy = |unit: &Unit| unit.tree.version < (2, 0);
    for (number, unit) in module.linked.units.iter().enumerate().filter(|(_, unit)| legacy(unit)) {
        for item in &unit.tree.items {
            let Item::Variable(variable) = item else { continue };
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
        let initialised = |variable: &Variable| variable.init.is_some() && variable.space == Space::Shared;
        declared(statements, &initialised, &mut found);
        for variable in found {
            if let Some(&index) = own.get(&variable.name.span.start) {
                old.shared.insert(index, (origin.unit, variable.clone()));
            }
        }
    }
    old
}
