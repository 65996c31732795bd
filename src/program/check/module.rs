//! Declarations of a module against each other: what is defined twice, prototypes that differ, aliases, initialisers
//! (PTX ISA, Variables: Initializers; Linking Directives; Kernel and Function Directives).

use std::collections::HashMap;

use super::body::Outcome;
use super::names::Declared;
use super::{Findings, Surroundings};
use crate::isa::table::Target;
use crate::program::initialiser;
use crate::program::layout;
use crate::ptx::ast::{Expr, Function, Init, Item, Linkage, Name, Space, Type, Variable};
use crate::ptx::diagnostic::Diagnostic;

pub(super) fn check(around: &Surroundings<'_>) -> Vec<Diagnostic> {
    let tree = around.tree;
    let modern = super::is_strict(tree);
    let mut findings = Findings::default();
    let mut note = |outcome: Outcome| {
        if let Err(finding) = outcome {
            findings.push(finding);
        }
    };
    target(around, &mut note);
    let mut first: HashMap<&str, &Item> = HashMap::new();
    let names = |name: &Name| around.names.find(tree, &name.text);
    let mut constants = 0u64;
    for item in &tree.items {
        let name = match item {
            Item::Function(function) => &function.name,
            Item::Variable(variable) => &variable.name,
            Item::Alias { name, target } => {
                note(alias(name, target, &names));
                continue;
            }
            Item::File { .. } | Item::Section(_) | Item::Pragma(_) | Item::Debug(_) => continue,
        };
        if modern {
            if let Item::Variable(variable) = item {
                if variable.space == Space::Const && variable.linkage != Linkage::Extern {
                    let before = constants;
                    let bytes = layout::bytes_of(variable).unwrap_or(0);
                    let start = before
                        .checked_next_multiple_of(layout::align_of(variable))
                        .unwrap_or(u64::MAX);
                    constants = start.saturating_add(bytes);
                    if before <= layout::CONST_BYTES && constants > layout::CONST_BYTES {
                        note(Err(Diagnostic::error(
                            name.span,
                            format!("the constants up to `{}` take {constants} bytes", name.text),
                        )
                        .label(format!("a module may have {}", layout::CONST_BYTES))));
                    }
                }
                if let Some(finding) = super::needs::of_type(variable, &super::needs::Needs::of(tree)) {
                    note(Err(finding));
                }
                if name.text.is_empty() {
                    note(Err(super::body::nameless(variable)));
                    continue;
                }
                if variable.init.is_some() {
                    note(initialiser(variable, &names));
                }
            }
            if let Item::Function(function) = item {
                directives(around, function, &mut note);
                note(parameters(function, tree.version));
            }
        }
        match first.get(&*name.text) {
            None => drop(first.insert(&name.text, item)),
            Some(before) => {
                // Counting lines is for those who have to be told.
                note(again(before, item).map_err(|found| {
                    let line = tree.source.line_column(span_of(before)).0;
                    found.note(format!("first declared in line {line}"))
                }));
                if defines(item) && !defines(before) {
                    first.insert(&name.text, item);
                }
            }
        }
    }
    findings.list
}

/// A kernel's parameters fit the memory that there is for them.
fn parameters(function: &Function, version: (u16, u16)) -> Outcome {
    if !function.entry {
        return Ok(());
    }
    let name = &function.name;
    let (_, bytes, _) = layout::places(&function.params, 0);
    let message = format!("`{}` has {bytes} bytes of parameters", name.text);
    if bytes > layout::KERNEL_PARAM_BYTES {
        let most = layout::KERNEL_PARAM_BYTES;
        return Err(Diagnostic::error(name.span, message).label(format!("a kernel may have {most}")));
    }
    if bytes > layout::OLD_KERNEL_PARAM_BYTES && version < (8, 1) {
        let (most, (major, minor)) = (layout::OLD_KERNEL_PARAM_BYTES, version);
        return Err(
            Diagnostic::requirement(name.span, format!("{message}; more than {most} need PTX 8.1"))
                .label(format!("this module has `.version {major}.{minor}`")),
        );
    }
    Ok(())
}

fn span_of(item: &Item) -> u32 {
    match item {
        Item::Function(function) => function.name.span.start,
        Item::Variable(variable) => variable.name.span.start,
        _ => 0,
    }
}

fn defines(item: &Item) -> bool {
    match item {
        Item::Function(function) => function.body.is_some(),
        Item::Variable(variable) => variable.linkage != Linkage::Extern,
        _ => false,
    }
}

/// A name is declared once more: as the same, and defined once at most.
fn again(before: &Item, item: &Item) -> Outcome {
    match (before, item) {
        (Item::Function(first), Item::Function(second)) => {
            if first.body.is_some() && second.body.is_some() {
                return Err(Diagnostic::error(
                    second.name.span,
                    format!("`{}` is defined twice", second.name.text),
                ));
            }
            prototypes(first, second)
        }
        (Item::Variable(first), Item::Variable(second)) => {
            let name = &second.name;
            let same = first.space == second.space
                && first.ty == second.ty
                && first.vector == second.vector
                && first.dims.len() == second.dims.len()
                && first
                    .dims
                    .iter()
                    .zip(&second.dims)
                    .all(|(a, b)| a == b || a.is_none() || b.is_none());
            if !same {
                return Err(Diagnostic::error(
                    name.span,
                    format!("`{}` is declared again, and differently", name.text),
                ));
            }
            let defined =
                |variable: &Variable| !matches!(variable.linkage, Linkage::Extern | Linkage::Weak | Linkage::Common);
            match defined(first) && defined(second) {
                true => Err(Diagnostic::error(
                    name.span,
                    format!("`{}` is defined twice", name.text),
                )),
                false => Ok(()),
            }
        }
        (_, Item::Function(function)) => Err(both(&function.name)),
        (_, Item::Variable(variable)) => Err(both(&variable.name)),
        _ => Ok(()),
    }
}

fn both(name: &Name) -> Diagnostic {
    Diagnostic::error(name.span, format!("`{}` is a function and a variable", name.text))
}

/// Two declarations of a function have the same parameters and results.
fn prototypes(first: &Function, second: &Function) -> Outcome {
    let name = &second.name;
    let wrong = |message: String| Err(Diagnostic::error(name.span, message));
    if first.entry != second.entry {
        return wrong(format!("`{}` is a kernel and a function", name.text));
    }
    for (what, a, b) in [
        ("parameter", &first.params, &second.params),
        ("result", &first.returns, &second.returns),
    ] {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        if a.len() != b.len() {
            return wrong(format!(
                "`{}` has {} {what}{} here",
                name.text,
                b.len(),
                plural(b.len())
            ))
            .map_err(|found| found.label(format!("it had {}", a.len())));
        }
        for (a, b) in a.iter().zip(b) {
            if a.ty != b.ty || a.dims != b.dims || a.vector != b.vector || layout::align_of(a) != layout::align_of(b) {
                return Err(Diagnostic::error(
                    b.name.span,
                    format!("this {what} of `{}` is declared differently", name.text),
                )
                .label(format!("it was a `.{}`", a.ty.word())));
            }
        }
    }
    Ok(())
}

fn alias<'a>(name: &Name, target: &Name, names: &dyn Fn(&Name) -> Option<Declared<'a>>) -> Outcome {
    match names(target) {
        Some(Declared::Function(function)) if function.entry => {
            Err(Diagnostic::error(target.span, format!("`{}` is a kernel", target.text))
                .label("a function is expected"))
        }
        Some(Declared::Function(function)) if function.body.is_none() => Err(Diagnostic::error(
            target.span,
            format!("`{}` is not defined here", target.text),
        )
        .label("an alias stands for a function of this module")),
        Some(Declared::Function(_)) => match names(name) {
            Some(Declared::Variable(_)) => Err(both(name)),
            _ => Ok(()),
        },
        Some(_) => Err(Diagnostic::error(
            target.span,
            format!("`{}` is not a function", target.text),
        )),
        None => Err(
            Diagnostic::error(target.span, format!("`{}` is not declared", target.text))
                .label("an alias stands for a function of this module"),
        ),
    }
}

/// The initialiser of a variable: its shape, its constants, and the addresses in it.
pub(super) fn initialiser<'a>(variable: &Variable, names: &dyn Fn(&Name) -> Option<Declared<'a>>) -> Outcome {
    let Some(init) = &variable.init else { return Ok(()) };
    if matches!(init, Init::Fields(_)) {
        return Ok(());
    }
    if matches!(variable.ty, Type::F16 | Type::F16x2) {
        return Err(Diagnostic::error(
            variable.name.span,
            format!("`.{}` variables take no initialiser", variable.ty.word()),
        )
        .label("declare it `.b16` or `.b32`, with the bits as an integer"));
    }
    if let (Init::List(_), true, None) = (init, variable.dims.is_empty(), variable.vector) {
        return Err(Diagnostic::error(
            variable.name.span,
            format!("`{}` is a scalar and is initialised by a list", variable.name.text),
        ));
    }
    rows(variable, init, variable.dims.len())?;
    if let Some(count) = variable.vector {
        vectors(variable, init, variable.dims.len(), usize::from(count))?;
    }
    values(init, &mut |expr| value(variable.ty, expr, names))?;
    let mut nowhere = |_: &Name| Ok(0);
    initialiser::contents(variable, init, &mut nowhere).map(drop)
}

/// Each row of an array stands in braces of its own.
fn rows(variable: &Variable, init: &Init, depth: usize) -> Outcome {
    match init {
        Init::List(list) if depth > 0 => list.iter().try_for_each(|one| rows(variable, one, depth - 1)),
        Init::Value(expr) if depth > 0 => Err(Diagnostic::error(
            expr.span(),
            format!("one value stands where `{}` has a row", variable.name.text),
        )
        .label("a list in braces is expected")),
        _ => Ok(()),
    }
}

fn values(init: &Init, check: &mut dyn FnMut(&Expr) -> Outcome) -> Outcome {
    match init {
        Init::List(list) => list.iter().try_for_each(|one| values(one, check)),
        Init::Value(expr) => check(expr),
        Init::Fields(_) => Ok(()),
    }
}

/// Vectors are given whole.
fn vectors(variable: &Variable, init: &Init, depth: usize, count: usize) -> Outcome {
    match init {
        Init::List(list) if depth > 0 => list.iter().try_for_each(|one| vectors(variable, one, depth - 1, count)),
        Init::List(list) if list.len() != count => Err(Diagnostic::error(
            variable.name.span,
            format!("{} elements for a vector of {count}", list.len()),
        )),
        _ => Ok(()),
    }
}

fn value<'a>(ty: Type, expr: &Expr, names: &dyn Fn(&Name) -> Option<Declared<'a>>) -> Outcome {
    use Type::*;
    let Expr::Symbol { name, mask, span, .. } = expr else {
        return initialiser::literal(expr, ty).map(drop).and_then(|()| match expr {
            Expr::F32 { span, .. } | Expr::F64 { span, .. } if !matches!(ty, F32 | F64 | B32 | B64) => {
                Err(Diagnostic::error(
                    *span,
                    format!("a floating-point constant stands where a `.{}` is expected", ty.word()),
                ))
            }
            _ => Ok(()),
        });
    };
    match names(name) {
        None => {
            return Err(Diagnostic::error(name.span, format!("`{}` is not declared", name.text)));
        }
        Some(Declared::Variable(variable)) if !matches!(variable.space, Space::Global | Space::Const) => {
            return Err(Diagnostic::error(
                name.span,
                format!("`{}` is a `.{}` variable", name.text, variable.space.word()),
            )
            .label("only `.global` and `.const` variables have an address when the module is loaded"));
        }
        Some(_) => {}
    }
    match mask {
        Some(_) if !matches!(ty, U8 | U16 | U32 | U64) => Err(Diagnostic::error(
            *span,
            format!("a byte of an address is no `.{}`", ty.word()),
        )
        .label("declare the variable `.u8`")),
        None if !matches!(ty, U32 | U64) => {
            Err(Diagnostic::error(*span, format!("an address is no `.{}`", ty.word()))
                .label("declare the variable `.u64`"))
        }
        _ => Ok(()),
    }
}

/// The least version that has each target (PTX ISA, Release History).
#[rustfmt::skip]
const INTRODUCED: &[(u16, (u16, u16))] = &[
    (10, (1, 0)), (11, (1, 0)), (12, (1, 2)), (13, (1, 2)), (20, (2, 0)), (21, (2, 0)), (30, (3, 0)), (32, (4, 0)), (35, (3, 1)),
    (37, (4, 1)), (50, (4, 0)), (52, (4, 1)), (53, (4, 2)), (60, (5, 0)), (61, (5, 0)), (62, (5, 0)), (70, (6, 0)), (72, (6, 1)),
    (75, (6, 3)), (80, (7, 0)), (86, (7, 1)), (87, (7, 4)), (88, (9, 0)), (89, (7, 8)), (90, (7, 8)), (100, (8, 6)), (101, (8, 6)),
    (103, (8, 8)), (107, (9, 3)), (110, (9, 0)), (120, (8, 7)), (121, (8, 8)),
];

/// Whether the module's version has its target.
fn target(around: &Surroundings<'_>, note: &mut dyn FnMut(Outcome)) {
    let tree = around.tree;
    for name in &tree.target {
        let Some(target) = Target::read(&name.text) else {
            continue;
        };
        let Some(&(_, least)) = INTRODUCED.iter().find(|(number, _)| *number == target.number) else {
            continue;
        };
        if tree.version < least {
            note(Err(Diagnostic::requirement(
                name.span,
                format!("`{}` needs PTX {}.{}", name.text, least.0, least.1),
            )
            .label(format!(
                "this module has `.version {}.{}`",
                tree.version.0, tree.version.1
            ))));
        }
    }
    let texturing = tree.target.iter().any(|name| &*name.text == "texmode_independent");
    let number = tree
        .target
        .iter()
        .find_map(|name| Target::read(&name.text))
        .map_or(0, |target| target.number);
    for name in &tree.target {
        if &*name.text == "map_f64_to_f32" && number >= 13 && super::is_strict(tree) {
            note(Err(Diagnostic::requirement(
                name.span,
                "`map_f64_to_f32` is for targets before sm_13",
            )));
        }
    }
    for item in &tree.items {
        if let Item::Variable(variable) = item
            && variable.ty == Type::SamplerRef
            && !texturing
            && super::is_strict(tree)
        {
            note(Err(Diagnostic::error(
                variable.name.span,
                "separate samplers need `.target texmode_independent`",
            )));
        }
    }
}

/// Directives of a kernel that need a target of their own.
fn directives(around: &Surroundings<'_>, function: &Function, note: &mut dyn FnMut(Outcome)) {
    let target = around.tree.target.iter().find_map(|name| Target::read(&name.text));
    let Some(target) = target else { return };
    for directive in &function.directives {
        let clusters = [
            "reqnctapercluster",
            "explicitcluster",
            "maxclusterrank",
            "blocksareclusters",
        ];
        if clusters.contains(&&*directive.name.text) && target.number < 90 {
            note(Err(Diagnostic::requirement(
                directive.name.span,
                format!("`.{}` needs `.target` sm_90 or later", directive.name.text),
            )
            .label(format!("this module has `.target {target}`"))));
        }
    }
}
