//! Statements of a body: what they declare and name, and which line of the instruction table an opcode follows.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use super::names::Declared;
use super::needs::{self, Needs};
use super::opcode::{self, Known};
use super::resolve::Shape;
use super::scope::{Entity, Role, Scopes, is_register, splits};
use super::special::{self, Reading};
use super::tree::{self, Object, Parameter, Tree};
use super::{Findings, Surroundings, is_strict};
use crate::program::layout::{self, SHARED_BYTES};
use crate::ptx::ast::{Function, Instruction, Mentions, Name, Opcode, Operand, Space, Span, Statement, Type, Variable};
use crate::ptx::diagnostic::Diagnostic;
use crate::spelling::nearest;

/// What is wrong, if something is.
pub(super) type Outcome<T = ()> = Result<T, Diagnostic>;

/// A body while it is read.
pub(super) struct Body<'a> {
    pub around: &'a Surroundings<'a>,
    pub function: &'a Function,
    /// The module is of PTX 2.0 or later; the first specification allows what those do not.
    pub strict: bool,
    /// The rules of operands and declarations are to be looked at.
    pub rules: bool,
    /// The tree is wanted, not only what is wrong.
    wanted: bool,
    pub scopes: Scopes<'a>,
    pub needs: Needs,
    findings: Findings,
    /// Opcodes seen before: bodies repeat themselves.
    forms: HashMap<&'a str, Rc<[Known]>>,
    unknown_files: HashSet<u64>,
    /// Labels of each list of them.
    targets: Vec<Vec<u32>>,
    mentions: RefCell<Mentions>,
    /// Bytes of shared variables: those declared here, and those of the module that are named here.
    shared: u64,
    named: HashSet<&'a str>,
}

/// What a body is read for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Findings,
    Tree,
    /// Of a body whose findings are known, and none of them an error.
    TreeOfChecked,
}

/// What reading a body came to. Without errors, the tree is there if it is the purpose.
pub(super) struct Read<'a> {
    pub findings: Vec<Diagnostic>,
    pub mentions: Mentions,
    pub tree: Tree<'a>,
}

pub(super) fn read<'a>(
    around: &'a Surroundings<'a>,
    function: &'a Function,
    statements: &'a [Statement],
    purpose: Purpose,
) -> Read<'a> {
    let strict = is_strict(around.tree);
    let mut body = Body {
        around,
        function,
        strict,
        rules: strict && purpose != Purpose::TreeOfChecked,
        wanted: purpose != Purpose::Findings,
        scopes: Scopes::default(),
        needs: Needs::of(around.tree),
        findings: Findings::default(),
        forms: HashMap::new(),
        unknown_files: HashSet::new(),
        targets: Vec::new(),
        mentions: RefCell::default(),
        shared: 0,
        named: HashSet::new(),
    };
    let mut tree = Tree {
        file_registers: around.names.registers(),
        ..Tree::default()
    };
    body.scopes.enter();
    let role = match function.entry {
        true => Role::EntryParameter,
        false => Role::FunctionParameter,
    };
    tree.params = function
        .params
        .iter()
        .map(|variable| body.parameter(variable, role))
        .collect();
    let results = function.returns.iter();
    tree.returns = results
        .map(|variable| body.parameter(variable, Role::FunctionResult))
        .collect();
    tree.statements = body.scope(statements);
    if function.entry && body.rules && body.shared > u64::from(SHARED_BYTES) {
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
    tree.registers = body.scopes.registers.take();
    tree.variables = std::mem::take(&mut body.scopes.variables);
    tree.labels = body.scopes.labels;
    tree.targets = body.targets;
    let mut mentions = body.mentions.into_inner();
    for list in [&mut mentions.called, &mut mentions.named] {
        list.sort_unstable();
        list.dedup();
    }
    Read {
        findings: body.findings.list,
        mentions,
        tree,
    }
}

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

    fn parameter(&mut self, variable: &'a Variable, role: Role) -> Parameter {
        let number = self.scopes.declare(variable, role).number;
        match is_register(variable) {
            true => Parameter::Register(number),
            false => Parameter::Variable(number),
        }
    }

    fn scope(&mut self, statements: &'a [Statement]) -> Vec<tree::Statement<'a>> {
        self.scopes.enter();
        // Labels are known in their whole scope.
        for statement in statements {
            if let Statement::Label(name) = statement
                && !self.scopes.bind_label(&name.text)
            {
                self.report(Diagnostic::error(
                    name.span,
                    format!("label `{}` is defined twice in this scope", name.text),
                ));
            }
        }
        let mut read = Vec::with_capacity(if self.wanted { statements.len() } else { 0 });
        for statement in statements {
            if self.findings.enough() {
                break;
            }
            match self.statement(statement) {
                Ok(Some(statement)) if self.wanted => read.push(statement),
                Ok(_) => {}
                Err(finding) => self.report(finding),
            }
        }
        self.scopes.leave();
        read
    }

    fn statement(&mut self, statement: &'a Statement) -> Outcome<Option<tree::Statement<'a>>> {
        match statement {
            Statement::Label(name) => {
                return Ok(match self.scopes.find(&name.text) {
                    Some(Entity::Label(number)) => Some(tree::Statement::Label(number)),
                    // Something else has its name, of which the declaration complains.
                    _ => None,
                });
            }
            Statement::Variable(variable) => return Ok(self.declare(variable)),
            Statement::Instruction(instruction) => return self.instruction(instruction),
            Statement::Block(statements) => return Ok(Some(tree::Statement::Block(self.scope(statements)))),
            Statement::Loc { file, line, place, .. } => {
                if self.rules && !self.around.names.has_file(*file) {
                    self.unknown_file(*file, place.0);
                }
                return Ok(Some(tree::Statement::Line(*file, *line)));
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
                let mut labels = Vec::with_capacity(targets.len());
                for target in targets {
                    match self.label(target) {
                        Ok(label) => labels.push(label),
                        Err(finding) => self.report(finding),
                    }
                }
                let number = self.targets.len() as u32;
                self.targets.push(labels);
                self.scopes.bind(&label.text, Entity::BranchTargets(number));
            }
            // Hints to an optimiser, and directives that say what a kernel's info already holds.
            Statement::Pragma(_) | Statement::Directive(_) => {}
        }
        Ok(None)
    }

    /// Warns, once for each file, that a `.loc` names one that no `.file` declares.
    fn unknown_file(&mut self, file: u64, span: Span) {
        if self.unknown_files.insert(file) {
            let message = format!("no `.file` directive declares file {file}");
            self.report(Diagnostic::warning(span, message));
        }
    }

    fn declare(&mut self, variable: &'a Variable) -> Option<tree::Statement<'a>> {
        let name = &variable.name;
        if name.text.is_empty() {
            if self.rules {
                self.report(nameless(variable));
            }
            return None;
        }
        let bound = self.scopes.declare(variable, Role::Body);
        if !bound.fresh {
            self.report(Diagnostic::error(
                name.span,
                format!("`{}` is declared twice in this scope", name.text),
            ));
        }
        if self.rules {
            self.declared(variable);
        }
        match (is_register(variable), variable.count) {
            (true, Some(_)) => None,
            (true, None) => Some(tree::Statement::Register(bound.number, variable)),
            (false, _) => Some(tree::Statement::Variable(bound.number, variable)),
        }
    }

    /// What the rules ask of a declaration.
    fn declared(&mut self, variable: &'a Variable) {
        if let Some(finding) = needs::of_type(variable, &self.needs) {
            self.report(finding);
        }
        if is_shared(variable.space) {
            self.shared = self.shared.saturating_add(layout::bytes_of(variable).unwrap_or(0));
        }
        if variable.init.is_some() {
            let names = |name: &Name| match self.around.names.find(self.around.tree, &name.text) {
                Some(found) => {
                    self.mention(&name.text);
                    Some(found)
                }
                None => match self.scopes.find(&name.text) {
                    Some(Entity::Variable(variable, ..)) => Some(Declared::Variable(variable)),
                    _ => None,
                },
            };
            let outcome = super::module::initialiser(variable, &names);
            self.note(outcome);
        }
    }

    // ---- names ------------------------------------------------------------------------------------------------------

    /// What a name stands for: in the body, else at module scope.
    pub fn find(&self, name: &Arc<str>) -> Option<Named<'a>> {
        let found = self.look_up(name);
        if let Some(Named::Function(_) | Named::Alias | Named::Here(Entity::Variable(_, Role::Module, _))) = found {
            self.mention(name);
        }
        found
    }

    /// Notes that the body names something of the module otherwise than to call it.
    fn mention(&self, name: &str) {
        let named = &mut self.mentions.borrow_mut().named;
        if let Some(item) = self.around.names.number(name)
            && named.last() != Some(&item)
        {
            named.push(item);
        }
    }

    /// As [`find`](Body::find), without noting that the body names it.
    pub fn look_up(&self, name: &Arc<str>) -> Option<Named<'a>> {
        if let Some(entity) = self.scopes.find(name) {
            return Some(Named::Here(entity));
        }
        let (names, tree) = (self.around.names, self.around.tree);
        if !names.registers().is_empty()
            && let Some(found) = self.file_register(name)
        {
            return Some(Named::Here(found));
        }
        let item = names.number(name)?;
        match names.declared(tree, item)? {
            // It stands for its members.
            Declared::Variable(variable) if is_register(variable) => None,
            Declared::Variable(variable) => {
                let entity = Entity::Variable(variable, Role::Module, Object::Item(item));
                Some(Named::Here(entity))
            }
            Declared::Function(function) => Some(Named::Function(function)),
            Declared::Alias(_) => Some(Named::Alias),
        }
    }

    /// A register of file scope, or one of a range of them.
    fn file_register(&self, name: &str) -> Option<Entity<'a>> {
        let (names, tree) = (self.around.names, self.around.tree);
        let declared = |name: &str| {
            let item = names.number(name)?;
            match names.declared(tree, item)? {
                Declared::Variable(variable) if is_register(variable) => Some((item, variable)),
                Declared::Variable(_) | Declared::Function(_) | Declared::Alias(_) => None,
            }
        };
        if let Some((item, variable)) = declared(name).filter(|(_, variable)| variable.count.is_none()) {
            return Some(self.scopes.outside(item, variable, 0));
        }
        splits(name).find_map(|(prefix, member)| {
            let (item, variable) = declared(prefix).filter(|(_, variable)| Some(member) < variable.count)?;
            Some(self.scopes.outside(item, variable, member))
        })
    }

    /// Notes that a function is called by its name.
    pub fn calls(&self, name: &Name) {
        if let Some(item) = self.around.names.number(&name.text) {
            self.mentions.borrow_mut().called.push(item);
        }
    }

    /// Notes a call of whatever a register holds the address of.
    pub fn calls_indirectly(&self) {
        self.mentions.borrow_mut().calls_indirectly = true;
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

    pub fn label(&self, name: &Name) -> Outcome<u32> {
        match self.look_up(&name.text) {
            Some(Named::Here(Entity::Label(number))) => Ok(number),
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
    fn forms(&mut self, opcode: &'a Opcode) -> Outcome<Rc<[Known]>> {
        if let Some(forms) = self.forms.get(&*opcode.text) {
            return Ok(forms.clone());
        }
        let forms: Rc<[Known]> = match self.strict {
            true => opcode::lines(opcode, self.around.tree.version, &self.needs)?,
            false => Rc::new([opcode::old_line(opcode)?]),
        };
        self.forms.insert(&opcode.text, forms.clone());
        Ok(forms)
    }

    fn instruction(&mut self, instruction: &'a Instruction) -> Outcome<Option<tree::Statement<'a>>> {
        let forms = self.forms(&instruction.opcode)?;
        let chosen = match self.rules || forms.len() > 1 {
            true => self.choose(&forms, instruction)?,
            false => 0,
        };
        let Known { meant, lanes, lack, .. } = &forms[chosen];
        if let Some(lack) = lack {
            self.report(needs::finding(lack, instruction));
        }
        if !self.wanted && self.strict {
            return Ok(None);
        }
        self.resolved(instruction, meant.clone(), *lanes).map(Some)
    }

    /// Of several lines the one counts whose operands these are.
    fn choose(&mut self, forms: &[Known], instruction: &'a Instruction) -> Outcome<usize> {
        if let Some(guard) = &instruction.guard {
            self.predicate(&guard.predicate)?;
        }
        let first = &forms[0].form;
        match Shape::of(first.op) {
            Shape::Call => {
                self.call(instruction)?;
            }
            // Labels are names of another kind.
            Shape::Branch | Shape::BranchIndexed => {}
            Shape::Move => {
                self.names(instruction)?;
                self.move_operands(first, instruction)?;
            }
            Shape::Video(_) | Shape::Texture | Shape::Values | Shape::Ignored => {
                self.names(instruction)?;
                if !first.op.takes_special_registers() {
                    self.no_special_registers(instruction)?;
                }
            }
        }
        let mut refused = None;
        for (at, known) in forms.iter().enumerate() {
            match self.operands(&known.form, instruction) {
                Ok(()) => return Ok(at),
                Err(found) => refused = refused.or(Some(found)),
            }
        }
        refused.map_or(Ok(0), Err)
    }

    pub fn predicate(&self, name: &Name) -> Outcome {
        match self.find(&name.text) {
            Some(Named::Here(Entity::Register {
                ty: Type::Pred,
                vector: 1,
                ..
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
            Some(Named::Here(Entity::Variable(variable, Role::Module, _))) if is_shared(variable.space) => {
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
