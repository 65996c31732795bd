//! What the language asks of a module beyond the shape of its statements (PTX ISA, State Spaces, Types, and Variables;
//! Instruction Operands; Instruction Set; Directives): names are declared once and before use, operands agree with what
//! the instruction table says of them, declarations with each other.
//!
//! Errors keep a module from loading; what `.version` or `.target` lack is a [`Severity::Requirement`], which harms
//! nobody here. Bodies of PTX 1.x are left to the lowering: their first specification allows what later ones do not.

mod address;
mod body;
mod call;
mod module;
mod moves;
mod names;
mod needs;
mod operand;
mod scope;
mod texture;
mod types;

pub use self::names::Names;
use crate::ptx::ast::{Function, Item, Module};
use crate::ptx::diagnostic::{Diagnostic, Diagnostics, Severity};

/// Findings beyond this many help nobody.
const MANY: usize = 50;

/// What stands around a body.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    pub tree: &'a Module,
    pub names: &'a Names,
}

/// Checks a whole module, reading every body.
pub fn check(tree: &Module) -> Diagnostics {
    let names = Names::of(tree);
    let around = Surroundings { tree, names: &names };
    let mut list = module::check(&around);
    for item in &tree.items {
        if list.len() >= MANY {
            break;
        }
        if let Item::Function(function) = item {
            list.extend_from_slice(of_body(&around, function));
        }
    }
    list.truncate(MANY);
    list.sort_by_key(|finding| finding.span.start);
    Diagnostics {
        source: tree.source.clone(),
        list,
    }
}

/// Checks one body; does so once, however often it is asked.
pub fn of_body<'a>(around: &Surroundings<'a>, function: &'a Function) -> &'a [Diagnostic] {
    let Some(body) = &function.body else {
        return &[];
    };
    body.findings(|| match body.statements() {
        Ok(_) if !modern(around.tree) => Vec::new(),
        Ok(statements) => body::check(around, function, statements),
        Err(found) => {
            let mut list = found.list.clone();
            if modern(around.tree) && list.len() < MANY {
                list.extend(body::check(around, function, body.readable()));
            }
            list
        }
    })
}

/// Whether a module of this version keeps to the rules of PTX 2.0 and later.
fn modern(tree: &Module) -> bool {
    tree.version >= (2, 0)
}

/// Findings: at most [`MANY`] errors, and as many others.
#[derive(Default)]
struct Findings {
    list: Vec<Diagnostic>,
    errors: usize,
    others: usize,
}

impl Findings {
    fn push(&mut self, finding: Diagnostic) {
        // Warnings leave room for errors.
        let kept = match finding.severity == Severity::Error {
            true => &mut self.errors,
            false => &mut self.others,
        };
        if *kept < MANY {
            *kept += 1;
            self.list.push(finding);
        }
    }

    /// Whether there is no use in looking further: every mistake costs a search for what was meant.
    fn enough(&self) -> bool {
        self.errors >= MANY
    }
}
