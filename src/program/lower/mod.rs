//! One function's checked tree ([`check::tree`]) → [`Function`]: statements are selected into blocks of instructions
//! over virtual registers ([`ir`](super::ir)), which the passes improve.
//!
//! Names and opcodes are resolved when a tree comes here. What is still refused is what is legal and not supported,
//! what only linking shows, and in PTX 1.x, for which the check has no rules of types, operands that make no sense.
//!
//! `place` says where registers and variables are, `operand` turns operands into registers, `select` dispatches on what
//! an instruction does, and `moves`, `memory`, `texture`, `call`, `sync`, `several` each know one family; `legacy` is
//! what PTX 1.x alone has.

mod call;
mod inline;
mod joint;
mod legacy;
mod memory;
mod moves;
mod operand;
mod place;
mod select;
mod several;
mod sync;
mod texture;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use self::place::{Binding, Located};
use super::check::tree::{Object, Parameter, Statement, Tree};
use super::check::{self, Names, Surroundings};
use super::function::Function;
use super::ir::{Block, BlockId, Body, End, Guard, Inst, Op, Register};
use super::layout::{self, Place, SHARED_BYTES, SharedLayout, Signature};
use super::module::{Module, Symbol, Unit};
use super::passes::{self, provenance::Objects};
use crate::config;
use crate::isa::fidelity::Fidelity;
use crate::isa::lanes::Width;
use crate::ptx::Source;
use crate::ptx::ast::{self, Item, Space, Span, Type, Variable};
use crate::ptx::diagnostic::{Diagnostic, Diagnostics};

/// Something that is not supported.
type Outcome<T> = Result<T, Diagnostic>;

/// More findings than anybody reads.
const MANY: usize = 20;

/// A function's text as blocks of instructions, after the passes that look at it alone.
struct Part {
    name: Arc<str>,
    source: Arc<Source>,
    is_kernel: bool,
    /// PTX 1.x.
    is_old: bool,
    signature: Signature,
    body: Body,
    /// In which its blocks are laid out.
    order: Vec<BlockId>,
    frame: Frame,
    /// Kernels only: where its shared variables are.
    shared: SharedLayout,
    callees: Vec<u32>,
    calls_indirectly: bool,
    /// For [`Function::instructions`].
    instructions: BTreeSet<(Fidelity, Box<str>)>,
    /// What addresses are made from, where accesses are checked to the variable.
    objects: Option<Objects>,
}

impl Part {
    fn insts(&self) -> impl Iterator<Item = &Inst> {
        let blocks = self.order.iter().map(|&block| &self.body.blocks[block as usize]);
        blocks.flat_map(|block| &block.insts)
    }

    fn size(&self) -> usize {
        self.insts().count()
    }

    /// What the text of another function brings with it, whose frame begins at a place in this one's.
    fn absorb(&mut self, other: &Part, frame: u32) {
        self.frame.size = self.frame.size.max(frame.saturating_add(other.frame.size));
        self.frame.align = self.frame.align.max(other.frame.align);
        self.frame.places.extend(other.frame.places.iter().map(|place| Place {
            offset: place.offset + frame,
            ..*place
        }));
        self.calls_indirectly |= other.calls_indirectly;
        self.instructions.extend(other.instructions.iter().cloned());
    }
}

/// Lowers one function of a linked module.
///
/// # Errors
/// Everything that is wrong with its body.
pub fn lower(module: &Module, function: u32) -> Result<Function, Diagnostics> {
    let mut part = part(module, function)?;
    // Who looks for mistakes wants to see each function as it is.
    let check = &config::get().check;
    let is_checked = check.memory || check.leaks || check.race || check.init || check.sync || check.fp;
    let as_written = is_checked || check.seeds > 0 || part.is_old || module.linked.as_written;
    if !as_written {
        inline::run(module, function, &mut part);
    }
    let local = layout::round_up(part.frame.size, part.frame.align);
    let (return_bytes, param_bytes) = match part.is_kernel {
        true => (0, 0),
        false => (part.signature.return_bytes, part.signature.param_bytes),
    };
    let places = passes::Places {
        all: std::mem::take(&mut part.frame.places),
        results: return_bytes,
    };
    let what = passes::What {
        // What is computed once for a launch is nobody's mistake; who looks for where numbers go wrong wants to see whose.
        kernel: part.is_kernel && !check.fp,
        // Of a sum, undefined bits below make those above undefined; of an `or` they do not.
        sums: !check.init,
        objects: part.objects.as_ref(),
        frame: (!as_written).then_some(&places),
    };
    let mut body = part.body;
    passes::run(&mut body, part.order, &what);
    if check.init {
        let frame = passes::Frame {
            bytes: local,
            results: return_bytes,
            parameters: param_bytes,
        };
        passes::add_shadows(&mut body, &frame);
    }
    part.callees.sort_unstable();
    part.callees.dedup();
    Ok(Function {
        name: part.name,
        body,
        local,
        local_align: part.frame.align,
        return_bytes,
        param_bytes,
        shared: part.shared.offsets,
        shared_bytes: part.shared.bytes,
        dynamic_shared: part.shared.dynamic,
        own_shared: part.shared.own,
        reserved_shared: part.shared.reserved,
        callees: part.callees,
        calls_indirectly: part.calls_indirectly,
        instructions: part.instructions.into_iter().collect(),
        source: part.source,
    })
}

/// One function by itself.
fn part(module: &Module, function: u32) -> Result<Part, Diagnostics> {
    let Some((unit, definition)) = module.definition(function) else {
        unreachable!("a function built by hand is lowered already");
    };
    let source = unit.tree.source.clone();
    let fail = |list: Vec<Diagnostic>| Diagnostics {
        source: source.clone(),
        list,
    };
    let Some(text) = &definition.body else {
        let name = &definition.name;
        return Err(fail(vec![Diagnostic::error(
            name.span,
            format!("`{}` has no body", name.text),
        )]));
    };
    let statements = text.statements().map_err(Clone::clone)?;
    let around = Surroundings {
        tree: &unit.tree,
        names: unit.declared.get_or_init(|| Names::of(&unit.tree)),
    };
    let tree = check::tree(&around, definition, text, statements).map_err(fail)?;
    let mut lower = Lower::new(module, unit, function, definition, &tree);
    lower.parameters();
    lower.file_registers();
    if definition.entry
        && lower.legacy()
        && let Err(found) = lower.initial_shared()
    {
        lower.error(found);
    }
    if definition.entry && lower.shared.own > SHARED_BYTES {
        lower.error(Diagnostic::error(
            definition.name.span,
            format!(
                "{} bytes of static shared memory; a kernel has {SHARED_BYTES}",
                lower.shared.own
            ),
        ));
    }
    lower.scope(&tree.statements);
    lower.finish(text.span);
    if !lower.errors.is_empty() {
        return Err(fail(lower.errors));
    }
    let mut body = lower.body;
    // Programs built for debuggers are assembled without optimisation.
    let debug = unit.tree.target.iter().any(|word| &*word.text == "debug");
    let order = passes::begin(&mut body, config::get().fmad && !debug);
    let instructions = lower.instructions.into_iter();
    Ok(Part {
        name: definition.name.text.clone(),
        source: source.clone(),
        is_kernel: definition.entry,
        is_old: unit.tree.version < (2, 0),
        signature: lower.signature,
        body,
        order,
        frame: lower.frame,
        shared: lower.shared,
        callees: lower.callees,
        calls_indirectly: lower.calls_indirectly,
        instructions: instructions.map(|(fidelity, text)| (fidelity, text.into())).collect(),
        objects: lower.objects,
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
    /// All that was taken.
    places: Vec<Place>,
}

impl Frame {
    fn take(&mut self, bytes: u32, align: u32) -> Place {
        let offset = layout::round_up(self.used, align);
        self.used = offset.saturating_add(bytes);
        self.size = self.size.max(self.used);
        self.align = self.align.max(align);
        let place = Place { offset, bytes };
        self.places.push(place);
        place
    }
}

/// A function on its way from statements to blocks.
struct Lower<'a> {
    module: &'a Module,
    unit: &'a Unit,
    function: u32,
    definition: &'a ast::Function,
    tree: &'a Tree<'a>,
    signature: Signature,
    /// Kernels only: bytes of the parameter block.
    param_end: u32,
    /// Kernels only: where its shared variables are.
    shared: SharedLayout,
    body: Body,
    current: BlockId,
    /// Counts blocks in the order of the text.
    places: u64,
    /// Of each label.
    labels: Vec<BlockId>,
    /// Where the tree's registers are, as far as they were met.
    registers: Vec<Option<Binding>>,
    /// Where the tree's variables are, as far as they were declared.
    variables: Vec<Option<Located>>,
    frame: Frame,
    line: Option<(u32, u32)>,
    /// The carry flag of `add.cc` and its like.
    carry: Option<Register>,
    /// Registers of file scope that functions share (PTX 1.x), at the start of the window: the first of each range.
    file_places: Vec<Place>,
    /// Bytes that the code writes as initial values so far.
    initial_bytes: usize,
    /// Results of the current instruction that go to such registers.
    results: Vec<(Register, Place)>,
    /// Registers of old-style parameters and results, with their places in the frame.
    register_returns: Vec<(Register, Place)>,
    callees: Vec<u32>,
    calls_indirectly: bool,
    /// For [`Function::instructions`].
    instructions: BTreeSet<(Fidelity, &'a str)>,
    errors: Vec<Diagnostic>,
    /// Registers that hold the start of a shared variable.
    starts: HashMap<(u32, Width), Register>,
    /// What addresses are made from, where accesses are checked to the variable.
    objects: Option<Objects>,
}

impl<'a> Lower<'a> {
    fn new(
        module: &'a Module,
        unit: &'a Unit,
        function: u32,
        definition: &'a ast::Function,
        tree: &'a Tree<'a>,
    ) -> Lower<'a> {
        let mut lower = Lower {
            module,
            unit,
            function,
            definition,
            tree,
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
            labels: Vec::new(),
            registers: vec![None; tree.registers.len()],
            variables: vec![None; tree.variables.len()],
            frame: Frame {
                align: 16,
                ..Frame::default()
            },
            line: None,
            carry: None,
            file_places: Vec::new(),
            initial_bytes: 0,
            results: Vec::new(),
            register_returns: Vec::new(),
            callees: Vec::new(),
            calls_indirectly: false,
            instructions: BTreeSet::new(),
            errors: Vec::new(),
            starts: HashMap::new(),
            objects: config::get().check.memory.then(Objects::default),
        };
        lower.current = lower.block();
        lower.start(lower.current);
        lower.labels = (0..tree.labels).map(|_| lower.block()).collect();
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
            inlined: 0,
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

    fn parameters(&mut self) {
        let (definition, tree) = (self.definition, self.tree);
        if self.is_kernel() {
            let places = layout::places(&definition.params, 0).0;
            for (parameter, place) in tree.params.iter().zip(places) {
                if let Parameter::Variable(number) = *parameter {
                    self.variables[number as usize] = Some(Located::Param(place));
                }
            }
            return;
        }
        let signature = self.signature.clone();
        self.frame
            .take(signature.return_bytes + signature.param_bytes, signature.align);
        for (parameter, &place) in tree.returns.iter().zip(&signature.returns) {
            match *parameter {
                Parameter::Register(number) => {
                    let parts = self.parameter_parts(number, place);
                    self.register_returns.extend(parts);
                }
                Parameter::Variable(number) => self.variables[number as usize] = Some(Located::Frame(place)),
            }
        }
        for (parameter, &place) in tree.params.iter().zip(&signature.params) {
            match *parameter {
                Parameter::Register(number) => {
                    for (register, place) in self.parameter_parts(number, place) {
                        self.load_frame(register, place, definition.span);
                    }
                }
                Parameter::Variable(number) => self.variables[number as usize] = Some(Located::Frame(place)),
            }
        }
    }

    fn scope(&mut self, statements: &[Statement<'_>]) {
        let used = self.frame.used;
        for statement in statements {
            if let Err(diagnostic) = self.statement(statement) {
                self.error(diagnostic);
            }
        }
        self.frame.used = used;
    }

    fn statement(&mut self, statement: &Statement<'_>) -> Outcome<()> {
        match statement {
            Statement::Label(label) => {
                let block = self.labels[*label as usize];
                self.end(End::Jump {
                    to: block,
                    span: Span::default(),
                });
                self.start(block);
                Ok(())
            }
            Statement::Block(statements) => {
                self.scope(statements);
                Ok(())
            }
            Statement::Line(file, line) => {
                self.line = Some((u32::try_from(*file).unwrap_or(0), *line));
                Ok(())
            }
            Statement::Register(number, variable) => {
                self.binding(*number);
                self.initial_registers(*number, variable)
            }
            Statement::Variable(number, variable) => {
                let located = self.declare(variable)?;
                self.variables[*number as usize] = Some(located);
                Ok(())
            }
            Statement::Instruction(instruction) => self.instruction(instruction),
            Statement::Branch { guard, label, span } => {
                self.note_exact("bra");
                let guard = self.guard(guard.as_ref())?;
                self.branch(guard, *label, *span);
                Ok(())
            }
            Statement::BranchIndexed {
                guard,
                index,
                targets,
                span,
            } => {
                self.note_exact("brx");
                let guard = self.guard(guard.as_ref())?;
                self.branch_indexed(guard, index, *targets, *span)
            }
            Statement::Call(call) => {
                self.note_exact("call");
                let guard = self.guard(call.guard.as_ref())?;
                self.call(call, guard)?;
                self.store_results(guard, call.span)
            }
        }
    }

    /// Finds a place for a variable in memory.
    fn declare(&mut self, variable: &Variable) -> Outcome<Located> {
        let name = &variable.name;
        let unread = || Diagnostic::error(variable.span, "this declaration was not found in the body");
        match variable.space {
            Space::Local | Space::Param | Space::ParamEntry | Space::ParamFunc => {
                let bytes = layout::bytes_of(variable)
                    .and_then(|b| u32::try_from(b).ok())
                    .ok_or_else(|| Diagnostic::error(name.span, format!("`{}` has no size", name.text)))?;
                let align = u32::try_from(layout::align_of(variable)).unwrap_or(16);
                let Some(count) = variable.count else {
                    let place = self.frame.take(bytes, align);
                    if let Some(init) = &variable.init {
                        self.initial_frame(variable, init, place)?;
                    }
                    return Ok(Located::Frame(place));
                };
                // `.local .b32 x<4>` is four variables.
                let all = u64::from(count) * u64::from(layout::round_up(bytes, align));
                match u32::try_from(all) {
                    Ok(all) if all <= 1 << 24 => {
                        let place = self.frame.take(all, align);
                        Ok(Located::Frame(Place { bytes, ..place }))
                    }
                    _ => Err(Diagnostic::error(variable.span, "too many variables")),
                }
            }
            Space::Shared | Space::SharedCta | Space::SharedCluster | Space::Global | Space::Const
                if variable.count.is_some() =>
            {
                let message = format!("ranges of variables in .{} are not supported", variable.space.word());
                Err(Diagnostic::error(variable.span, message))
            }
            Space::Shared | Space::SharedCta | Space::SharedCluster => {
                let own = &self.module.references(self.function).own_shared;
                let index = own.get(&variable.name.span.start).ok_or_else(unread)?;
                Ok(Located::Shared(*index))
            }
            Space::Global | Space::Const => {
                let key = (self.function, variable.name.span.start);
                let index = self.module.linked.inner.get(&key).ok_or_else(unread)?;
                Ok(self.global(*index))
            }
            space @ (Space::Reg | Space::Sreg | Space::Generic | Space::Tex | Space::Surf) => Err(Diagnostic::error(
                variable.span,
                format!("a variable in .{} cannot be declared inside a function", space.word()),
            )),
        }
    }

    /// Where a register is.
    fn binding(&mut self, number: u32) -> Binding {
        if let Some(known) = self.registers[number as usize] {
            return known;
        }
        let declared = self.tree.registers[number as usize];
        let persistent = declared.file.and_then(|(item, member)| self.file_place(item, member));
        let binding = match persistent {
            Some(place) => Binding::Persistent(place),
            None => {
                let width = width_of(declared.ty);
                let first = self.body.register(width);
                for _ in 1..declared.vector {
                    self.body.register(width);
                }
                Binding::Registers(first)
            }
        };
        self.registers[number as usize] = Some(binding);
        binding
    }

    /// The registers of a parameter of the old style, and where in the frame each lies.
    fn parameter_parts(&mut self, number: u32, place: Place) -> impl Iterator<Item = (Register, Place)> + use<> {
        let first = match self.binding(number) {
            Binding::Registers(first) => first,
            Binding::Persistent(_) => unreachable!("parameters are not of file scope"),
        };
        let declared = self.tree.registers[number as usize];
        let bytes = layout::size_of(declared.ty) as u32;
        (0..u32::from(declared.vector)).map(move |element| {
            let offset = place.offset + element * bytes;
            (first + element, Place { offset, bytes })
        })
    }

    /// What an item of the module came to when it was linked.
    fn symbol(&self, item: u32) -> Option<Symbol> {
        self.unit.symbols.get(item as usize).copied().flatten()
    }

    /// The declaration of an object in memory, if it is a variable.
    fn variable(&self, object: Object) -> Option<&'a Variable> {
        match object {
            Object::Own { number, .. } => Some(self.tree.variables[number as usize]),
            Object::Item(item) => match self.unit.tree.items.get(item as usize)? {
                Item::Variable(variable) => Some(variable),
                Item::Function(_)
                | Item::Alias { .. }
                | Item::File { .. }
                | Item::Section(_)
                | Item::Pragma(_)
                | Item::Debug(_) => None,
            },
        }
    }

    fn text(&self, span: Span) -> &'a str {
        &self.unit.tree.source.text[span.start as usize..span.end as usize]
    }

    fn finish(&mut self, span: Span) {
        // Falling off the closing brace returns.
        let end = Span {
            start: span.end.saturating_sub(1),
            end: span.end,
        };
        self.return_from(None, end);
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
