//! Statements of a body: what they declare and name.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::names::Declared;
use super::needs::{self, Needs};
use super::scope::{self, Entity, Role, Scopes};
use super::{Findings, Surroundings};
use crate::isa::table::Lack;
use crate::isa::{self, Form, Operation};
use crate::program::layout;
use crate::program::lower::special::{self, Reading};
use crate::ptx::ast::{Function, Instruction, Name, Operand, Space, Span, Statement, Type, Variable};
use crate::ptx::diagnostic::Diagnostic;
use crate::spelling::nearest;

/// What is wrong, if something is.
pub(super) type Outcome<T = ()> = Result<T, Diagnostic>;

/// A line of the table that an opcode follows, and what the module lacks for it.
struct Known {
    form: Form,
    lack: Option<Lack>,
}

/// A body while it is read.
pub(super) struct Body<'a> {
    pub around: &'a Surroundings<'a>,
    pub scopes: Scopes<'a>,
    pub needs: Needs,
    findings: Findings,
    /// Opcodes seen before: bodies repeat themselves.
    forms: HashMap<&'a str, Rc<[Known]>>,
    unknown_files: HashSet<u64>,
    /// Bytes of shared variables: those declared here, and those of the module that are named here.
    shared: u64,
    named: HashSet<&'a str>,
}

pub(super) fn check<'a>(
    around: &'a Surroundings<'a>,
    function: &'a Function,
    statements: &'a [Statement],
) -> Vec<Diagnostic> {
    let mut body = Body {
        around,
        scopes: Scopes::default(),
        needs: Needs::of(around.tree),
        findings: Findings::default(),
        forms: HashMap::new(),
        unknown_files: HashSet::new(),
        shared: 0,
        named: HashSet::new(),
    };
    body.scopes.enter();
    let role = match function.entry {
        true => Role::EntryParameter,
        false => Role::FunctionParameter,
    };
    for variable in &function.params {
        body.scopes.bind(&variable.name.text, scope::entity(variable, role));
    }
    for variable in &function.returns {
        let entity = scope::entity(variable, Role::FunctionResult);
        body.scopes.bind(&variable.name.text, entity);
    }
    body.scope(statements);
    if function.entry && body.shared > SHARED_BYTES {
        body.report(
            Diagnostic::error(
                function.name.span,
                format!(
                    "`{}` has {} bytes of static shared memory",
                    function.name.text, body.shared
                ),
            )
            .label(format!("a kernel may have {SHARED_BYTES}"))
            .note("what goes beyond must be dynamic: an `.extern .shared` array without a size"),
        );
    }
    body.findings.list
}

/// Static shared memory of a block on every target (CUDA C++ Programming Guide, Compute Capabilities).
const SHARED_BYTES: u64 = 48 * 1024;

fn is_shared(space: Space) -> bool {
    matches!(space, Space::Shared | Space::SharedCta | Space::SharedCluster)
}

impl<'a> Body<'a> {
    pub fn report(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    fn note(&mut self, outcome: Outcome) {
        if let Err(finding) = outcome {
            self.report(finding);
        }
    }

    pub fn text(&self, span: Span) -> &'a str {
        &self.around.tree.source.text[span.start as usize..span.end as usize]
    }

    fn line(&self, span: Span) -> usize {
        self.around.tree.source.line_column(span.start).0
    }

    fn scope(&mut self, statements: &'a [Statement]) {
        self.scopes.enter();
        for statement in statements {
            if let Statement::Label(name) = statement
                && !self.scopes.bind(&name.text, Entity::Label)
            {
                self.report(Diagnostic::error(
                    name.span,
                    format!("label `{}` is defined twice in this scope", name.text),
                ));
            }
        }
        for statement in statements {
            if self.findings.enough() {
                break;
            }
            self.statement(statement);
        }
        self.scopes.leave();
    }

    fn statement(&mut self, statement: &'a Statement) {
        match statement {
            Statement::Label(_) | Statement::Pragma(_) | Statement::Directive(_) => {}
            Statement::Variable(variable) => self.declare(variable),
            Statement::Instruction(instruction) => {
                let outcome = self.instruction(instruction);
                self.note(outcome);
            }
            Statement::Block(statements) => self.scope(statements),
            Statement::Loc { file, place, .. } => {
                if !self.around.names.has_file(*file) {
                    self.unknown_file(*file, place.0);
                }
            }
            Statement::CallPrototype(prototype) => {
                self.scopes.bind(&prototype.label.text, Entity::Prototype(prototype));
            }
            Statement::CallTargets { label, targets } => {
                for target in targets {
                    let outcome = self.call_target(target);
                    self.note(outcome);
                }
                self.scopes.bind(&label.text, Entity::CallTargets(targets));
            }
            Statement::BranchTargets { label, targets } => {
                for target in targets {
                    let outcome = self.label(target);
                    self.note(outcome);
                }
                self.scopes.bind(&label.text, Entity::BranchTargets);
            }
        }
    }

    /// Warns, once for each file, that a `.loc` names one that no `.file` declares.
    fn unknown_file(&mut self, file: u64, span: Span) {
        if self.unknown_files.insert(file) {
            let message = format!("no `.file` directive declares file {file}");
            self.report(Diagnostic::warning(span, message));
        }
    }

    fn declare(&mut self, variable: &'a Variable) {
        let name = &variable.name;
        if name.text.is_empty() {
            self.report(nameless(variable));
            return;
        }
        let fresh = match variable.count {
            Some(_) => self.scopes.bind_range(variable),
            None => self.scopes.bind(&name.text, scope::entity(variable, Role::Body)),
        };
        if !fresh {
            self.report(Diagnostic::error(
                name.span,
                format!("`{}` is declared twice in this scope", name.text),
            ));
        }
        if let Some(finding) = needs::of_type(variable, &self.needs) {
            self.report(finding);
        }
        if is_shared(variable.space) {
            self.shared = self.shared.saturating_add(layout::bytes_of(variable).unwrap_or(0));
        }
        if variable.init.is_some() {
            let names = |name: &Name| match self.around.names.find(self.around.tree, &name.text) {
                Some(found) => Some(found),
                None => match self.scopes.find(&name.text) {
                    Some(Entity::Variable(variable, _)) => Some(Declared::Variable(variable)),
                    _ => None,
                },
            };
            let outcome = super::module::initialiser(variable, &names);
            self.note(outcome);
        }
    }

    // ---- names ------------------------------------------------------------------------------------------------------

    /// What a name stands for: in the body, else at module scope.
    pub fn find(&self, name: &str) -> Option<Named<'a>> {
        if let Some(entity) = self.scopes.find(name) {
            return Some(Named::Here(entity));
        }
        match self.around.names.find(self.around.tree, name)? {
            Declared::Variable(variable) => Some(Named::Here(scope::entity(variable, Role::Module))),
            Declared::Function(function) => Some(Named::Function(function)),
            Declared::Alias(_) => Some(Named::Alias),
        }
    }

    pub fn undeclared(&self, name: &Name) -> Diagnostic {
        let found = Diagnostic::error(name.span, format!("`{}` is not declared", name.text));
        if let Some(range) = self.scopes.beyond(&name.text) {
            let last = range.count.unwrap_or(1).saturating_sub(1);
            return found.note(format!(
                "`{0}<{1}>` in line {2} declares `{0}0` to `{0}{last}`",
                range.name.text,
                range.count.unwrap_or(0),
                self.line(range.name.span)
            ));
        }
        let near = [
            nearest(&name.text, self.scopes.all()),
            nearest(&name.text, self.around.names.all()),
            nearest(&name.text, special::names()),
        ];
        match nearest(&name.text, near.into_iter().flatten()) {
            Some(near) => found.label(format!("did you mean `{near}`?")),
            None => found,
        }
    }

    pub fn label(&self, name: &Name) -> Outcome {
        match self.find(&name.text) {
            Some(Named::Here(Entity::Label)) => Ok(()),
            Some(_) => Err(Diagnostic::error(name.span, format!("`{}` is not a label", name.text))
                .label("the label of a statement is expected")),
            None => {
                let found = Diagnostic::error(name.span, format!("label `{}` is not defined", name.text));
                Err(match nearest(&name.text, self.scopes.all()) {
                    Some(near) => found.label(format!("did you mean `{near}`?")),
                    None => found,
                }
                .note("a label inside braces is not visible outside of them"))
            }
        }
    }

    // ---- instructions -----------------------------------------------------------------------------------------------

    /// The table's lines for an opcode; never none.
    fn forms(&mut self, instruction: &'a Instruction) -> Outcome<Rc<[Known]>> {
        let opcode = &instruction.opcode;
        if let Some(forms) = self.forms.get(&*opcode.text) {
            return Ok(forms.clone());
        }
        // The bank of `ld.const[2].b32` (before PTX 2.2) says nothing that the address does not.
        let unbanked = match opcode.text.split_once('[') {
            Some((head, tail)) if self.around.tree.version < (2, 2) => {
                let tail = tail.split_once(']').map_or("", |(_, tail)| tail);
                Some(format!("{head}{tail}"))
            }
            _ => None,
        };
        let text = unbanked.as_deref().unwrap_or(&opcode.text);
        let forms = isa::decode_all(text).into_iter().map(|form| Known {
            lack: self.needs.missing(&form),
            form,
        });
        let forms: Rc<[Known]> = forms.collect();
        if forms.is_empty() {
            return Err(super::operand::unknown_opcode(opcode));
        }
        self.forms.insert(&opcode.text, forms.clone());
        Ok(forms)
    }

    fn instruction(&mut self, instruction: &'a Instruction) -> Outcome {
        let forms = self.forms(instruction)?;
        if let Some(guard) = &instruction.guard {
            self.predicate(&guard.predicate)?;
        }
        let first = &forms[0].form;
        match first.op {
            Operation::Call { .. } => self.call(instruction)?,
            // Labels are names of another kind.
            Operation::Branch { .. } | Operation::BranchIndexed { .. } => {}
            Operation::Move { .. } => {
                self.names(instruction)?;
                self.move_operands(first, instruction)?;
            }
            op => {
                self.names(instruction)?;
                if !op.takes_special_registers() {
                    self.no_special_registers(instruction)?;
                }
            }
        }
        // Of several lines the one counts whose operands these are.
        let mut refused = None;
        for form in forms.iter() {
            match self.operands(&form.form, instruction) {
                Ok(()) => {
                    let lack = form.lack.as_ref().map(|lack| needs::finding(lack, instruction));
                    return lack.map_or(Ok(()), Err);
                }
                Err(found) => refused = refused.or(Some(found)),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    pub fn predicate(&self, name: &Name) -> Outcome {
        match self.find(&name.text) {
            Some(Named::Here(Entity::Register {
                ty: Type::Pred,
                vector: 1,
            })) => Ok(()),
            Some(_) => Err(
                Diagnostic::error(name.span, format!("`{}` is not a predicate", name.text))
                    .label("a `.pred` register is expected"),
            ),
            None if special::ty(&name.text) == Some(Type::Pred) => Ok(()),
            None => Err(self.undeclared(name)),
        }
    }

    /// Every name of the operands stands for something.
    fn names(&mut self, instruction: &Instruction) -> Outcome {
        instruction.operands.iter().try_for_each(|operand| self.known(operand))
    }

    fn known(&mut self, operand: &Operand) -> Outcome {
        match operand {
            Operand::Name { name, select, .. } => self.known_name(name, select.as_ref()),
            Operand::Not(name) => self.known_name(name, None),
            Operand::Negated(inner) => self.known(inner),
            Operand::Address(address) => {
                if let crate::ptx::ast::AddressBase::Name(name) = &address.base {
                    self.known_name(name, None)?;
                }
                address
                    .index
                    .as_ref()
                    .map_or(Ok(()), |index| self.known_name(index, None))
            }
            Operand::Vector(list, _) | Operand::Group(list, _) | Operand::Arguments(list, _) => {
                list.iter().try_for_each(|operand| self.known(operand))
            }
            Operand::Pair(a, b) => {
                self.known(a)?;
                self.known(b)
            }
            Operand::Immediate(_) | Operand::Sink(_) => Ok(()),
        }
    }

    fn known_name(&mut self, name: &Name, select: Option<&Name>) -> Outcome {
        match self.find(&name.text) {
            Some(Named::Here(Entity::Variable(variable, Role::Module))) if is_shared(variable.space) => {
                if self.named.insert(&variable.name.text) {
                    self.shared = self.shared.saturating_add(layout::bytes_of(variable).unwrap_or(0));
                }
                Ok(())
            }
            Some(Named::Here(Entity::Register { vector, .. })) if vector > 1 => match select {
                Some(select) => element(name, select, vector),
                None => Ok(()),
            },
            Some(_) => Ok(()),
            None => match special::read(&name.text, select.map(|select| &*select.text)) {
                Some(_) => Ok(()),
                None => match (special::read(&name.text, None), select) {
                    (Some(Reading::Vector), Some(select)) => element(name, select, 4),
                    (Some(_), Some(select)) => Err(Diagnostic::error(
                        select.span,
                        format!("`{}` is one value and has no element `{}`", name.text, select.text),
                    )),
                    _ => Err(self.undeclared(name)),
                },
            },
        }
    }
}

/// NVIDIA's assembler does not notice that a declaration has no name.
pub(super) fn nameless(variable: &Variable) -> Diagnostic {
    Diagnostic::warning(variable.span, "this declares nothing").label("a name is missing")
}

/// What a name of a body stands for.
#[derive(Clone, Copy)]
pub(super) enum Named<'a> {
    Here(Entity<'a>),
    Function(&'a Function),
    Alias,
}

fn element(name: &Name, select: &Name, count: u8) -> Outcome {
    let index = match &*select.text {
        "x" | "r" => 0,
        "y" | "g" => 1,
        "z" | "b" => 2,
        "w" | "a" => 3,
        _ => u8::MAX,
    };
    if index < count {
        return Ok(());
    }
    let names = ["`.x`", "`.y`", "`.z`", "`.w`"];
    let list = names[..usize::from(count.min(4))].join(", ");
    Err(
        Diagnostic::error(select.span, format!("`{}` has no element `{}`", name.text, select.text))
            .label(format!("expected one of {list}")),
    )
}
