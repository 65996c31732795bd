//! Names inside a body: scopes nest as braces do, the innermost declaration wins (PTX ISA, Identifiers; Parameterized
//! Variable Names). What a name declares gets a number here, by which everybody behind the check knows it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::tree::{Declared, Object};
use crate::ptx::ast::{CallPrototype, Name, Space, Type, Variable};

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
    Register {
        ty: Type,
        vector: u8,
        number: u32,
    },
    Variable(&'a Variable, Role, Object),
    Label(u32),
    Prototype(&'a CallPrototype),
    CallTargets(&'a [Name]),
    /// By number in [`Tree::targets`](super::tree::Tree::targets).
    BranchTargets(u32),
}

/// `%r<100>`
struct Range<'a> {
    variable: &'a Variable,
    count: u32,
    role: Role,
    /// The number of a variable in memory.
    number: u32,
}

#[derive(Default)]
struct Scope<'a> {
    names: HashMap<&'a str, Entity<'a>>,
    /// By prefix.
    ranges: HashMap<&'a str, Range<'a>>,
    /// Members of ranges that were named: looking for a prefix takes long, and registers get a number when they are
    /// named first.
    named: RefCell<HashMap<Arc<str>, Entity<'a>>>,
}

impl<'a> Scope<'a> {
    /// `%p1<4>` may declare `%p10`: every split into prefix and number without leading zeros counts.
    fn in_range(&self, name: &str) -> Option<(&Range<'a>, u32)> {
        if self.ranges.is_empty() {
            return None;
        }
        splits(name).find_map(|(prefix, member)| {
            let range = self.ranges.get(prefix)?;
            (member < range.count).then_some((range, member))
        })
    }
}

/// The ways in which a name may be one of a range: prefix and number.
pub fn splits(name: &str) -> impl Iterator<Item = (&str, u32)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    (1..=digits.min(9)).filter_map(move |length| {
        let (prefix, number) = name.split_at(name.len() - length);
        let leading = number.len() > 1 && number.starts_with('0');
        Some((prefix, number.parse().ok().filter(|_| !leading)?))
    })
}

/// The open scopes, innermost last, and what was numbered so far.
#[derive(Default)]
pub struct Scopes<'a> {
    stack: Vec<Scope<'a>>,
    /// Those that were declared one by one, and those of ranges that were named.
    pub registers: RefCell<Vec<Declared>>,
    /// Numbers of registers of file scope that were named, by item and which of its range.
    outside: RefCell<HashMap<(u32, u32), u32>>,
    pub variables: Vec<&'a Variable>,
    pub labels: u32,
}

/// What a declaration came to.
pub struct Bound {
    /// The scope did not have the name before.
    pub fresh: bool,
    /// The number of the register, unless it is a range of them, or of the variable.
    pub number: u32,
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
        let in_range = !matches!(entity, Entity::Label(_)) && scope.in_range(name).is_some();
        scope.names.insert(name, entity).is_none() && !in_range
    }

    /// Binds a label; false if the scope has the name already.
    pub fn bind_label(&mut self, name: &'a str) -> bool {
        let number = self.labels;
        self.labels += 1;
        self.bind(name, Entity::Label(number))
    }

    /// Binds what a declaration declares: a name, or `prefix0` … `prefix(count-1)`.
    pub fn declare(&mut self, variable: &'a Variable, role: Role) -> Bound {
        let number = match (is_register(variable), variable.count) {
            (true, Some(_)) => 0,
            (true, None) => register(&self.registers, variable, None),
            (false, _) => {
                self.variables.push(variable);
                self.variables.len() as u32 - 1
            }
        };
        let name = &*variable.name.text;
        let fresh = match variable.count {
            Some(count) => self.stack.last_mut().is_some_and(|scope| {
                let range = Range {
                    variable,
                    count,
                    role,
                    number,
                };
                scope.ranges.insert(name, range).is_none()
            }),
            None => self.bind(name, entity(variable, role, number, 0)),
        };
        Bound { fresh, number }
    }

    pub fn find(&self, name: &Arc<str>) -> Option<Entity<'a>> {
        self.stack.iter().rev().find_map(|scope| {
            if let Some(entity) = scope.named.borrow().get(name) {
                return Some(*entity);
            }
            if let Some(entity) = scope.names.get(&**name) {
                return Some(*entity);
            }
            let (range, member) = scope.in_range(name)?;
            let number = match is_register(range.variable) {
                true => register(&self.registers, range.variable, None),
                false => range.number,
            };
            let entity = entity(range.variable, range.role, number, member);
            scope.named.borrow_mut().insert(name.clone(), entity);
            Some(entity)
        })
    }

    /// A register that is called `_` (PTX 1.x).
    pub fn sink(&self) -> Option<u32> {
        self.stack.iter().rev().find_map(|scope| match scope.names.get("_") {
            Some(Entity::Register { number, .. }) => Some(*number),
            _ => None,
        })
    }

    /// A register of file scope: the item that declares it, and which of its range.
    pub fn outside(&self, item: u32, variable: &'a Variable, member: u32) -> Entity<'a> {
        let number = *self
            .outside
            .borrow_mut()
            .entry((item, member))
            .or_insert_with(|| register(&self.registers, variable, Some((item, member))));
        entity(variable, Role::Module, number, member)
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
            .find_map(|scope| scope.ranges.get(prefix).map(|range| range.variable))
    }
}

/// Whether a declaration is one of registers, not of variables in memory.
pub fn is_register(variable: &Variable) -> bool {
    variable.space == Space::Reg
}

/// The entity that a declaration makes of one of its names.
fn entity(variable: &Variable, role: Role, number: u32, member: u32) -> Entity<'_> {
    match is_register(variable) {
        true => Entity::Register {
            ty: variable.ty,
            vector: variable.vector.unwrap_or(1),
            number,
        },
        false => Entity::Variable(variable, role, Object::Own { number, member }),
    }
}

fn register(registers: &RefCell<Vec<Declared>>, variable: &Variable, file: Option<(u32, u32)>) -> u32 {
    let mut registers = registers.borrow_mut();
    registers.push(Declared {
        ty: variable.ty,
        vector: variable.vector.unwrap_or(1),
        file,
    });
    registers.len() as u32 - 1
}
