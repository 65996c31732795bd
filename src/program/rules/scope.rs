//! Names inside a body, for checking: scopes nest as braces do, the innermost declaration wins.

use std::collections::HashMap;

use crate::ptx::ast::{CallPrototype, Name, Type, Variable};

/// Where a variable is declared, and what that allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Module,
    Body,
    EntryParameter,
    FunctionParameter,
    FunctionResult,
}

/// What a name inside a body stands for.
#[derive(Clone, Copy)]
pub enum Entity<'a> {
    Register { ty: Type, vector: u8 },
    Variable(&'a Variable, Role),
    Label,
    Prototype(&'a CallPrototype),
    CallTargets(&'a [Name]),
    BranchTargets,
}

#[derive(Default)]
struct Scope<'a> {
    names: HashMap<&'a str, Entity<'a>>,
    /// `%r<100>`: prefix → declaration.
    ranges: HashMap<&'a str, &'a Variable>,
}

/// The entity that a declaration makes of its names.
pub fn entity(variable: &Variable, role: Role) -> Entity<'_> {
    match variable.space {
        crate::ptx::ast::Space::Reg => Entity::Register {
            ty: variable.ty,
            vector: variable.vector.unwrap_or(1),
        },
        _ => Entity::Variable(variable, role),
    }
}

impl<'a> Scope<'a> {
    /// `%p1<4>` may declare `%p10`: every split into prefix and number without leading zeros counts.
    fn in_range(&self, name: &str) -> Option<&'a Variable> {
        if self.ranges.is_empty() {
            return None;
        }
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        (1..=digits.min(9)).find_map(|length| {
            let (prefix, number) = name.split_at(name.len() - length);
            if number.len() > 1 && number.starts_with('0') {
                return None;
            }
            let variable = *self.ranges.get(prefix)?;
            let within = number.parse::<u32>().is_ok_and(|n| Some(n) < variable.count);
            within.then_some(variable)
        })
    }
}

/// The open scopes, innermost last.
#[derive(Default)]
pub struct Scopes<'a> {
    stack: Vec<Scope<'a>>,
}

impl<'a> Scopes<'a> {
    pub fn enter(&mut self) {
        self.stack.push(Scope::default());
    }

    pub fn leave(&mut self) {
        self.stack.pop();
    }

    /// Binds a name in the innermost scope; false if the scope has it already.
    pub fn bind(&mut self, name: &'a str, entity: Entity<'a>) -> bool {
        let Some(scope) = self.stack.last_mut() else {
            return false;
        };
        let in_range = !matches!(entity, Entity::Label) && scope.in_range(name).is_some();
        scope.names.insert(name, entity).is_none() && !in_range
    }

    /// Declares `prefix0` … `prefix(count-1)`; false if the scope has that prefix already.
    pub fn bind_range(&mut self, variable: &'a Variable) -> bool {
        let Some(scope) = self.stack.last_mut() else {
            return false;
        };
        scope.ranges.insert(&variable.name.text, variable).is_none()
    }

    pub fn find(&self, name: &str) -> Option<Entity<'a>> {
        self.stack.iter().rev().find_map(|scope| match scope.names.get(name) {
            Some(entity) => Some(*entity),
            None => scope.in_range(name).map(|variable| entity(variable, Role::Body)),
        })
    }

    /// All names in sight that were declared one by one, and the prefixes of ranges.
    pub fn all(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.stack
            .iter()
            .flat_map(|scope| scope.names.keys().chain(scope.ranges.keys()).copied())
    }

    /// The declaration of `prefix<count>` that a name would belong to if its number were smaller.
    pub fn beyond(&self, name: &str) -> Option<&'a Variable> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        self.stack
            .iter()
            .rev()
            .find_map(|scope| scope.ranges.get(prefix).copied())
    }
}
