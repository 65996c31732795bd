//! One function's tree → [`Function`]: statements are selected into blocks of instructions over virtual registers
//! ([`ir`]), which are laid out, simplified and given slots ([`emit`]).
//!
//! `scope` knows names, `operand` turns operands into registers, `select` dispatches on what the instruction table says,
//! and `moves`, `video`, `memory`, `texture`, `call`, `sync` each know one family.

mod call;
mod legacy;
mod memory;
mod moves;
mod operand;
mod scope;
mod select;
pub(super) mod special;
mod sync;
mod texture;
mod video;

use std::sync::Arc;

use self::scope::{Binding, Found, Scopes};
use super::function::Function;
use super::ir::{Block, BlockId, Body, End, Guard, Inst, Op, Register};
use super::layout::{self, Place, SharedLayout, Signature};
use super::module::{Module, Symbol, Unit};
use super::passes;
use super::rules::{self, Names, Surroundings};
use crate::config;
use crate::isa::lanes::Width;
use crate::ptx::ast::{self, Name, Space, Span, Statement, Type, Variable};
use crate::ptx::diagnostic::{Diagnostic, Diagnostics, Severity};

/// A mistake in the text, or something that is not supported.
type Outcome<T> = Result<T, Diagnostic>;

/// Static shared memory of a block on every target (CUDA C++ Programming Guide, Compute Capabilities); what goes beyond
/// must be dynamic.
const SHARED_BYTES: u32 = 48 * 1024;

/// More findings than anybody reads.
const MANY: usize = 20;

/// Lowers one function of a linked module.
///
/// # Errors
/// Everything that is wrong with its body.
pub fn lower(module: &Module, function: u32) -> Result<Function, Diagnostics> {
    let Some((unit, definition)) = module.definition(function) else {
        unreachable!("a function built by hand is lowered already");
    };
    let source = unit.tree.source.clone();
    let fail = |list: Vec<Diagnostic>| Diagnostics {
        source: source.clone(),
        list,
    };
    let Some(tree) = &definition.body else {
        let name = &definition.name;
        return Err(fail(vec![Diagnostic::error(
            name.span,
            format!("`{}` has no body", name.text),
        )]));
    };
    let statements = tree.statements().map_err(Clone::clone)?;
    let around = Surroundings {
        tree: &unit.tree,
        names: unit.declared.get_or_init(|| Names::of(&unit.tree)),
    };
    let wrong = rules::of_body(&around, definition);
    if wrong.iter().any(|finding| finding.severity == Severity::Error) {
        let errors = wrong.iter().filter(|finding| finding.severity == Severity::Error);
        return Err(fail(errors.cloned().collect()));
    }
    let mut lower = Lower::new(module, unit, function, definition);
    lower.parameters();
    lower.file_registers();
    if definition.entry
        && lower.legacy()
        && let Err(found) = lower.initial_shared()
    {
        lower.error(found);
    }
    if definition.entry && lower.shared.bytes > SHARED_BYTES {
        lower.error(Diagnostic::error(
            definition.name.span,
            format!(
                "{} bytes of static shared memory; a kernel has {SHARED_BYTES}",
                lower.shared.bytes
            ),
        ));
    }
    lower.scope(statements);
    lower.finish(tree.span);
    if !lower.errors.is_empty() {
        return Err(fail(lower.errors));
    }
    let kernel = definition.entry;
    let mut body = lower.body;
    passes::run(&mut body, kernel, config::get().fmad);
    lower.callees.sort_unstable();
    lower.callees.dedup();
    Ok(Function {
        name: definition.name.text.clone(),
        body,
        local: layout::round_up(lower.frame.size, lower.frame.align),
        local_align: lower.frame.align,
        return_bytes: if kernel { 0 } else { lower.signature.return_bytes },
        param_bytes: if kernel { 0 } else { lower.signature.param_bytes },
        shared: lower.shared.offsets,
        shared_bytes: lower.shared.bytes,
        dynamic_shared: lower.shared.dynamic,
        callees: lower.callees,
        calls_indirectly: lower.calls_indirectly,
        source: source.clone(),
    })
}

/// The frame in local memory as it grows.
#[derive(Default)]
struct Frame {
    /// Taken by open scopes.
    used: u32,
    /// The most that was ever taken.
    size: u32,
    align: u32,
}

impl Frame {
    fn take(&mut self, bytes: u32, align: u32) -> Place {
        let offset = layout::round_up(self.used, align);
        self.used = offset.saturating_add(bytes);
        self.size = self.size.max(self.used);
        self.align = self.align.max(align);
        Place { offset, bytes }
    }
}

/// A function on its way from statements to blocks.
struct Lower<'a> {
    module: &'a Module,
    unit: &'a Unit,
    /// Of the unit: the number of `sm_20`; 20 where it names none.
    target: u32,
    function: u32,
    definition: &'a ast::Function,
    signature: Signature,
    /// Kernels only: bytes of the parameter block.
    param_end: u32,
    /// Kernels only: where its shared variables are.
    shared: SharedLayout,
    body: Body,
    current: BlockId,
    /// Counts blocks in the order of the text.
    places: u64,
    scopes: Scopes,
    frame: Frame,
    line: Option<(u32, u32)>,
    /// The carry flag of `add.cc` and its like.
    carry: Option<Register>,
    /// Bytes of registers of file scope that functions share (PTX 1.x), at the start of the window.
    file_bytes: u32,
    /// Bytes that the code writes as initial values so far.
    initial_bytes: usize,
    /// Results of the current instruction that go to such registers.
    results: Vec<(Register, Place)>,
    /// Registers of old-style parameters and results, with their places in the frame.
    register_returns: Vec<(Register, Place)>,
    callees: Vec<u32>,
    calls_indirectly: bool,
    errors: Vec<Diagnostic>,
}

impl<'a> Lower<'a> {
    fn new(module: &'a Module, unit: &'a Unit, function: u32, definition: &'a ast::Function) -> Lower<'a> {
        let mut lower = Lower {
            module,
            unit,
            target: super::link::target(&unit.tree).unwrap_or(20),
            function,
            definition,
            signature: layout::signature(&definition.returns, &definition.params),
            param_end: layout::places(&definition.params, 0).1,
            shared: if definition.entry {
                module.shared_layout(function)
            } else {
                SharedLayout::default()
            },
            body: Body::default(),
            current: 0,
            places: 0,
            scopes: Scopes::default(),
            frame: Frame {
                align: 16,
                ..Frame::default()
            },
            line: None,
            carry: None,
            file_bytes: 0,
            initial_bytes: 0,
            results: Vec::new(),
            register_returns: Vec::new(),
            callees: Vec::new(),
            calls_indirectly: false,
            errors: Vec::new(),
        };
        lower.current = lower.block();
        lower.start(lower.current);
        lower.scopes.enter(0);
        lower
    }

    fn is_kernel(&self) -> bool {
        self.definition.entry
    }

    // ---- blocks -----------------------------------------------------------------------------------------------------

    /// A new block, not yet at a place in the text.
    fn block(&mut self) -> BlockId {
        self.body.blocks.push(Block {
            insts: Vec::new(),
            end: End::Stop,
            place: u64::MAX,
        });
        self.body.blocks.len() as BlockId - 1
    }

    /// Code that follows goes into `block`.
    fn start(&mut self, block: BlockId) {
        // Room between neighbours for made-up blocks.
        self.places += 16;
        self.body.blocks[block as usize].place = self.places;
        self.current = block;
    }

    fn end(&mut self, end: End) {
        self.body.blocks[self.current as usize].end = end;
    }

    fn push(&mut self, guard: Option<Guard>, span: Span, op: Op) {
        let line = self.line;
        let inst = Inst { guard, op, span, line };
        self.body.blocks[self.current as usize].insts.push(inst);
    }

    /// An operation after which nothing runs, unless its guard spares some lanes.
    fn leave(&mut self, guard: Option<Guard>, span: Span, op: Op) {
        self.push(guard, span, op);
        if guard.is_none() {
            self.end(End::Stop);
            let next = self.block();
            self.start(next);
        }
    }

    // ---- statements -------------------------------------------------------------------------------------------------

    /// Parameters stand in the outermost scope.
    fn parameters(&mut self) {
        let definition = self.definition;
        if self.is_kernel() {
            for (variable, place) in definition.params.iter().zip(layout::places(&definition.params, 0).0) {
                let ty = variable.ty;
                self.scopes
                    .bind(variable.name.text.clone(), Binding::KernelParam { place, ty });
            }
            return;
        }
        let signature = self.signature.clone();
        self.frame
            .take(signature.return_bytes + signature.param_bytes, signature.align);
        for (variable, &place) in definition.returns.iter().zip(&signature.returns) {
            if let Some(register) = self.parameter(variable, place) {
                self.register_returns.push((register, place));
            }
        }
        for (variable, &place) in definition.params.iter().zip(&signature.params) {
            if let Some(register) = self.parameter(variable, place) {
                self.load_frame(register, place, definition.span);
            }
        }
    }

    /// Binds a parameter or result; its register if it is of the old style (`.func (.reg .u32 r) f (.reg .u32 a)`).
    fn parameter(&mut self, variable: &Variable, place: Place) -> Option<Register> {
        let ty = variable.ty;
        let (binding, register) = if variable.space == Space::Reg {
            let register = self.body.register(width_of(ty));
            (Binding::Register { register, ty }, Some(register))
        } else {
            (Binding::Frame { place, ty }, None)
        };
        self.scopes.bind(variable.name.text.clone(), binding);
        register
    }

    fn scope(&mut self, statements: &[Statement]) {
        self.scopes.enter(self.frame.used);
        self.labels(statements);
        for statement in statements {
            if let Err(diagnostic) = self.statement(statement) {
                self.error(diagnostic);
            }
        }
        self.frame.used = self.scopes.leave();
    }

    /// Labels are known in their whole scope.
    fn labels(&mut self, statements: &[Statement]) {
        for statement in statements {
            if let Statement::Label(name) = statement {
                let block = self.block();
                if !self.scopes.bind(name.text.clone(), Binding::Label(block)) {
                    self.error(Diagnostic::error(
                        name.span,
                        format!("label `{}` is defined twice in this scope", name.text),
                    ));
                }
            }
        }
        for statement in statements {
            if let Statement::BranchTargets { label, targets } = statement {
                let blocks: Vec<BlockId> = targets.iter().filter_map(|t| self.label(t).ok()).collect();
                if blocks.len() == targets.len() {
                    self.scopes
                        .bind(label.text.clone(), Binding::BranchTargets(blocks.into()));
                }
            }
        }
    }

    fn label(&mut self, name: &Name) -> Outcome<BlockId> {
        match self.scopes.find(&name.text) {
            Found::Bound(&Binding::Label(block)) => Ok(block),
            Found::Bound(_) => Err(Diagnostic::error(name.span, format!("`{}` is not a label", name.text))),
            _ => Err(
                Diagnostic::error(name.span, format!("label `{}` is not defined", name.text))
                    .note("a label inside braces is not visible outside of them"),
            ),
        }
    }

    fn statement(&mut self, statement: &Statement) -> Outcome<()> {
        match statement {
            Statement::Label(name) => {
                let block = self.label(name)?;
                self.end(End::Jump {
                    to: block,
                    span: Span::default(),
                });
                self.start(block);
                Ok(())
            }
            Statement::Variable(variable) => self.declare(variable),
            Statement::Instruction(instruction) => self.instruction(instruction),
            Statement::Block(statements) => {
                self.scope(statements);
                Ok(())
            }
            Statement::Loc { file, line, .. } => {
                self.line = Some((u32::try_from(*file).unwrap_or(0), *line));
                Ok(())
            }
            Statement::CallPrototype(prototype) => {
                let binding = Binding::Prototype(Arc::new((**prototype).clone()));
                self.scopes.bind(prototype.label.text.clone(), binding);
                Ok(())
            }
            Statement::CallTargets { label, targets } => {
                let names = targets.iter().map(|t| t.text.clone()).collect();
                self.scopes.bind(label.text.clone(), Binding::CallTargets(names));
                Ok(())
            }
            Statement::BranchTargets { targets, .. } => {
                // Bound with the labels; here only for its mistakes.
                for target in targets {
                    self.label(target)?;
                }
                Ok(())
            }
            // Hints to an optimiser, and directives that say what a kernel's info already holds.
            Statement::Pragma(_) | Statement::Directive(_) => Ok(()),
        }
    }

    fn declare(&mut self, variable: &Variable) -> Outcome<()> {
        let ty = variable.ty;
        let name = &variable.name;
        if name.text.is_empty() {
            return Ok(());
        }
        let twice = || Diagnostic::error(name.span, format!("`{}` is declared twice in this scope", name.text));
        match variable.space {
            Space::Reg => {
                let vector = variable.vector.unwrap_or(1);
                let width = width_of(ty);
                if let Some(count) = variable.count {
                    self.scopes.range(name.text.clone(), count, ty, vector, width);
                    return Ok(());
                }
                let binding = self.registers(ty, vector, width);
                self.scopes
                    .bind(name.text.clone(), binding.clone())
                    .then_some(())
                    .ok_or_else(twice)?;
                match &variable.init {
                    Some(init) => self.initial_registers(variable, init, &binding),
                    None => Ok(()),
                }
            }
            Space::Local | Space::Param | Space::ParamEntry | Space::ParamFunc => {
                let bytes = layout::bytes_of(variable)
                    .and_then(|b| u32::try_from(b).ok())
                    .ok_or_else(|| Diagnostic::error(name.span, format!("`{}` has no size", name.text)))?;
                let align = u32::try_from(layout::align_of(variable)).unwrap_or(16);
                let binding = match variable.count {
                    None => {
                        let place = self.frame.take(bytes, align);
                        if let Some(init) = &variable.init {
                            self.initial_frame(variable, init, place)?;
                        }
                        Binding::Frame { place, ty }
                    }
                    Some(count) => {
                        // `.local .b32 x<4>` is four variables.
                        if u64::from(count) * u64::from(bytes) > 1 << 24 {
                            return Err(Diagnostic::error(variable.span, "too many variables"));
                        }
                        for i in 0..count {
                            let place = self.frame.take(bytes, align);
                            let numbered: Arc<str> = format!("{}{i}", name.text).into();
                            self.scopes.bind(numbered, Binding::Frame { place, ty });
                        }
                        return Ok(());
                    }
                };
                self.scopes
                    .bind(name.text.clone(), binding)
                    .then_some(())
                    .ok_or_else(twice)
            }
            Space::Shared | Space::SharedCta | Space::SharedCluster => {
                let index = self
                    .module
                    .references(self.function)
                    .own_shared
                    .get(&variable.span.start);
                let Some(&index) = index else {
                    return Err(Diagnostic::error(
                        variable.span,
                        "this declaration was not found in the body",
                    ));
                };
                self.scopes
                    .bind(name.text.clone(), Binding::Shared { index, ty })
                    .then_some(())
                    .ok_or_else(twice)
            }
            Space::Global | Space::Const => {
                let key = (self.function, variable.span.start);
                let Some(&index) = self.module.linked.inner.get(&key) else {
                    return Err(Diagnostic::error(
                        variable.span,
                        "this declaration was not found in the body",
                    ));
                };
                self.scopes
                    .bind(name.text.clone(), Binding::Global { index, ty })
                    .then_some(())
                    .ok_or_else(twice)
            }
            space => Err(Diagnostic::error(
                variable.span,
                format!("a variable in .{} cannot be declared inside a function", space.word()),
            )),
        }
    }

    fn registers(&mut self, ty: Type, vector: u8, width: Width) -> Binding {
        if vector == 1 {
            let register = self.body.register(width);
            return Binding::Register { register, ty };
        }
        let elements = (0..vector).map(|_| self.body.register(width)).collect();
        Binding::Vector { elements, ty }
    }

    /// What a name stands for inside the body, if anything.
    fn find(&mut self, name: &Name) -> Option<Binding> {
        let (depth, fresh) = match self.scopes.find(&name.text) {
            Found::Bound(binding) => return Some(binding.clone()),
            Found::Fresh(depth, fresh) => (depth, fresh),
            Found::Nothing => return None,
        };
        let binding = self.registers(fresh.ty, fresh.vector, fresh.width);
        self.scopes.bind_at(depth, name.text.clone(), binding.clone());
        Some(binding)
    }

    fn symbol(&self, name: &Name) -> Option<Symbol> {
        self.unit.names.get(&name.text).copied()
    }

    fn finish(&mut self, span: Span) {
        // Falling off the closing brace returns.
        let end = Span {
            start: span.end.saturating_sub(1),
            end: span.end,
        };
        self.return_from(None, end);
        self.scopes.leave();
        // A label that some branch names but that was never placed cannot exist: labels come from statements.
        for block in &mut self.body.blocks {
            if block.place == u64::MAX {
                block.place = self.places + 1;
            }
        }
    }

    fn error(&mut self, diagnostic: Diagnostic) {
        if self.errors.len() < MANY {
            self.errors.push(diagnostic);
        }
    }
}

/// How wide a register of this type is.
fn width_of(ty: Type) -> Width {
    if ty == Type::Pred {
        return Width::Pred;
    }
    match layout::size_of(ty) {
        1 | 2 => Width::B16,
        4 => Width::B32,
        8 => Width::B64,
        _ => Width::B128,
    }
}

/// Bytes that a register of this width holds.
fn bytes_of(width: Width) -> u32 {
    match width {
        Width::Pred => 1,
        Width::B16 => 2,
        Width::B32 => 4,
        Width::B64 => 8,
        Width::B128 => 16,
    }
}
