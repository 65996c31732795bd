//! What names stand for at module scope.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::ptx::ast::{Function, Item, Module, Name, Space, Variable};

/// Names of a module's items; of several declarations of a name the one that defines it.
#[derive(Debug, Default)]
pub struct Names {
    items: HashMap<Arc<str>, u32>,
    /// Numbers that `.file` directives declare.
    files: HashSet<u64>,
    /// Items that are registers (PTX 1.x).
    registers: Vec<u32>,
}

/// What a name at module scope stands for.
#[derive(Clone, Copy)]
pub enum Declared<'a> {
    Function(&'a Function),
    Variable(&'a Variable),
    /// `.alias name, target;`
    Alias(&'a Name),
}

impl Names {
    pub fn of(tree: &Module) -> Names {
        let mut names = Names::default();
        for (index, item) in tree.items.iter().enumerate() {
            let (name, declares) = match item {
                Item::Function(function) => (&function.name, function.body.is_none()),
                Item::Variable(variable) => {
                    if variable.space == Space::Reg {
                        names.registers.push(index as u32);
                    }
                    (&variable.name, false)
                }
                // A function stands for its name also where an alias defines it: it has the signature.
                Item::Alias { name, .. } => (name, true),
                Item::File { index, .. } => {
                    names.files.insert(*index);
                    continue;
                }
                Item::Section(_) | Item::Pragma(_) | Item::Debug(_) => continue,
            };
            match names.items.get_mut(&name.text) {
                Some(_) if declares => {}
                Some(known) => *known = index as u32,
                None => drop(names.items.insert(name.text.clone(), index as u32)),
            }
        }
        names
    }

    pub fn find<'a>(&self, tree: &'a Module, name: &str) -> Option<Declared<'a>> {
        self.declared(tree, self.number(name)?)
    }

    /// Which item a name stands for.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.items.get(name).copied()
    }

    pub fn declared<'a>(&self, tree: &'a Module, item: u32) -> Option<Declared<'a>> {
        match tree.items.get(item as usize)? {
            Item::Function(function) => Some(Declared::Function(function)),
            Item::Variable(variable) => Some(Declared::Variable(variable)),
            Item::Alias { target, .. } => Some(Declared::Alias(target)),
            Item::File { .. } | Item::Section(_) | Item::Pragma(_) | Item::Debug(_) => None,
        }
    }

    /// Items that are registers of file scope (PTX 1.x).
    pub fn registers(&self) -> &[u32] {
        &self.registers
    }

    pub fn has_file(&self, number: u64) -> bool {
        self.files.contains(&number)
    }

    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.items.keys().map(|name| &**name)
    }
}
