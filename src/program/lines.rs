//! Where an instruction comes from: the source line by `.loc`, the functions that were inlined there, the label above it.
//! And the names of a kernel's shared variables. All of it is read again from the syntax tree when a fault is reported;
//! nothing is kept for it while kernels run.

use std::sync::Arc;

use super::function::Function;
use super::module::{Module, Symbol};
use crate::config;
use crate::ptx::ast::{self, Item, Span, Statement};

/// A line of a `.cu` file, or of whatever a compiler made PTX of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    pub file: Arc<str>,
    pub line: u32,
    pub column: u32,
    /// The inlined function that the line is part of, as `.loc` names it; `None`: the function's own code.
    pub inlined: Option<String>,
}

impl SourceLine {
    /// Its file, as reports name it.
    pub fn shown(&self) -> &str {
        match config::get().check_strip_paths {
            true => self.file.rsplit('/').next().unwrap_or(&self.file),
            false => &self.file,
        }
    }
}

/// What the text says of one instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Innermost first: a line of an inlined function, then where it was inlined, and so on. Empty without `.loc`.
    pub lines: Vec<SourceLine>,
    /// The last label before it.
    pub label: Option<Arc<str>>,
}

/// A variable of a kernel's shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedName {
    pub name: Arc<str>,
    /// From the start of the block's shared memory.
    pub offset: u32,
    /// `None`: dynamic, as large as the launch says.
    pub bytes: Option<u32>,
}

/// `.loc`, as far as it says where.
struct Loc<'t> {
    place: (u64, u32, u32),
    /// Label in `.debug_str` and offset from it, and where the function was inlined.
    inlined: Option<(&'t str, u64, (u64, u32, u32))>,
}

/// Inlined functions that one chain may have: a module that says more is damaged.
const DEEPEST: usize = 64;

impl Module {
    /// Where the instruction at `span` of function number `function` comes from.
    pub fn origin_of(&self, function: u32, span: Span) -> Origin {
        let Some((unit, definition)) = self.definition(function) else {
            return Origin::default();
        };
        let Some(Ok(statements)) = definition.body.as_ref().map(|body| body.statements()) else {
            return Origin::default();
        };
        let mut reader = Reader {
            until: span.start,
            locs: Vec::new(),
            label: None,
        };
        reader.read(statements);
        let Reader { locs, label, .. } = reader;
        Origin {
            lines: chain(&unit.tree, &locs),
            label: label.map(|name| Arc::clone(&name.text)),
        }
    }

    /// The variables of a kernel's shared memory, by ascending offset.
    pub fn shared_names(&self, kernel: &Function) -> Vec<SharedName> {
        let sizes: Vec<Option<u32>> = {
            let shared = &self.linked.shared;
            let all = shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            all.iter().map(|variable| variable.bytes).collect()
        };
        let mut found: Vec<SharedName> = kernel
            .shared
            .iter()
            .filter_map(|&(index, offset)| {
                Some(SharedName {
                    name: self.shared_name(index)?,
                    offset,
                    bytes: *sizes.get(index as usize)?,
                })
            })
            .collect();
        found.sort_by_key(|variable| variable.offset);
        found
    }

    fn shared_name(&self, index: u32) -> Option<Arc<str>> {
        for unit in &self.linked.units {
            let named = unit.names.iter().find(|(_, symbol)| **symbol == Symbol::Shared(index));
            if let Some((name, _)) = named {
                return Some(Arc::clone(name));
            }
        }
        for (number, entry) in self.functions.iter().enumerate() {
            let own = entry.references.get().map(|references| &references.own_shared);
            let Some((&start, _)) = own.and_then(|own| own.iter().find(|(_, found)| **found == index)) else {
                continue;
            };
            let (_, definition) = self.definition(number as u32)?;
            return declared_at(definition.body.as_ref()?.statements().ok()?, start);
        }
        None
    }
}

/// The name of the variable whose name stands there.
fn declared_at(statements: &[Statement], start: u32) -> Option<Arc<str>> {
    statements.iter().find_map(|statement| match statement {
        Statement::Block(inner) => declared_at(inner, start),
        Statement::Variable(variable) if variable.name.span.start == start => Some(Arc::clone(&variable.name.text)),
        Statement::Variable(_)
        | Statement::Label(_)
        | Statement::Instruction(_)
        | Statement::Loc { .. }
        | Statement::Pragma(_)
        | Statement::CallPrototype(_)
        | Statement::CallTargets { .. }
        | Statement::BranchTargets { .. }
        | Statement::Directive(_) => None,
    })
}

/// Reads a body up to an instruction.
struct Reader<'t> {
    until: u32,
    locs: Vec<Loc<'t>>,
    label: Option<&'t ast::Name>,
}

impl<'t> Reader<'t> {
    /// `false`: the instruction is reached.
    fn read(&mut self, statements: &'t [Statement]) -> bool {
        for statement in statements {
            match statement {
                Statement::Block(inner) => {
                    if !self.read(inner) {
                        return false;
                    }
                }
                // Those of the debug information stand everywhere and say nothing to people.
                Statement::Label(name)
                    if ["$L__tmp", "$L__func_"]
                        .iter()
                        .any(|start| name.text.starts_with(start)) => {}
                Statement::Label(name) => self.label = Some(name),
                Statement::Instruction(instruction) if instruction.span.start >= self.until => return false,
                Statement::Loc {
                    file,
                    line,
                    column,
                    function,
                    offset,
                    inlined_at,
                    ..
                } => self.locs.push(Loc {
                    place: (*file, *line, *column),
                    inlined: function
                        .as_ref()
                        .zip(*inlined_at)
                        .map(|(name, at)| (&*name.text, *offset, at)),
                }),
                Statement::Instruction(_)
                | Statement::Variable(_)
                | Statement::Pragma(_)
                | Statement::CallPrototype(_)
                | Statement::CallTargets { .. }
                | Statement::BranchTargets { .. }
                | Statement::Directive(_) => {}
            }
        }
        true
    }
}

/// The last `.loc`, and through `inlined_at` those that it was inlined into: the place there is that of an earlier `.loc`
/// (PTX ISA, Debugging Directives: .loc).
fn chain(tree: &ast::Module, locs: &[Loc<'_>]) -> Vec<SourceLine> {
    let mut lines = Vec::new();
    let mut rest = locs;
    let mut next = locs.last().map(|loc| loc.place);
    while let Some(place) = next.take().filter(|place| place.1 != 0 && lines.len() < DEEPEST) {
        let at = rest.iter().rposition(|loc| loc.place == place);
        let inlined = at.and_then(|at| rest[at].inlined);
        lines.push(SourceLine {
            file: file(tree, place.0),
            line: place.1,
            column: place.2,
            inlined: inlined.map(|(label, offset, _)| {
                debug_string(tree, label, offset).unwrap_or_else(|| "an inlined function".to_owned())
            }),
        });
        if let (Some(at), Some((_, _, into))) = (at, inlined) {
            rest = &rest[..at];
            next = Some(into);
        }
    }
    lines
}

/// The name that `.file` gives to a number.
fn file(tree: &ast::Module, number: u64) -> Arc<str> {
    let name = tree.items.iter().find_map(|item| match item {
        Item::File { index, name, .. } if *index == number => Some(name.as_str()),
        Item::File { .. }
        | Item::Variable(_)
        | Item::Function(_)
        | Item::Alias { .. }
        | Item::Section(_)
        | Item::Pragma(_)
        | Item::Debug(_) => None,
    });
    name.map_or_else(|| format!("file {number}").into(), Arc::from)
}

/// The text that ends with a zero at a label of `.section .debug_str`.
fn debug_string(tree: &ast::Module, label: &str, offset: u64) -> Option<String> {
    let text = tree.items.iter().find_map(|item| match item {
        Item::Section(section) if &*section.name.text == ".debug_str" => Some(section.text()),
        Item::Section(_)
        | Item::File { .. }
        | Item::Variable(_)
        | Item::Function(_)
        | Item::Alias { .. }
        | Item::Pragma(_)
        | Item::Debug(_) => None,
    })?;
    let colon = text.match_indices(label).find_map(|(at, _)| {
        let before = text[..at].chars().next_back();
        let whole = !before.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$'));
        let after = text[at + label.len()..].strip_prefix(':');
        after.filter(|_| whole)
    })?;
    let mut bytes = Vec::new();
    for line in colon.split([';', '\n']) {
        // `.b8 102,111,0`, until a zero; labels of other strings may stand between.
        let Some(values) = line.trim().strip_prefix(".b8") else {
            continue;
        };
        for value in values.split(',') {
            bytes.push(value.trim().parse::<u8>().ok()?);
        }
        if bytes.get(offset as usize..).is_some_and(|rest| rest.contains(&0)) {
            break;
        }
    }
    let rest = bytes.get(usize::try_from(offset).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    String::from_utf8(rest[..end].to_vec()).ok()
}
