//! What the language asks of a module beyond the shape of its statements (PTX ISA, State Spaces, Types, and Variables;
//! Instruction Operands; Instruction Set; Directives): names are declared once and before use, operands agree with what
//! the instruction table says of them, declarations with each other.
//!
//! Errors keep a module from loading; what `.version` or `.target` lack is a [`Severity::Requirement`], which harms
//! nobody here. For lowering the same reading of a body yields a [`tree`] in which names and opcodes are resolved.
//! Bodies of PTX 1.x are resolved, too, but hardly checked: their first specification allows what later ones do not.
//!
//! `body` reads statements; `scope` and `names` know what is declared in the body and around it, `special` the special
//! registers; `opcode` finds lines of the instruction table; `operand`, `address`, `moves`, `texture`, `call` and
//! `types` have the rules of operands, `needs` those of versions and targets, `module` those of declarations; `video`
//! takes selectors and signs off operands; `resolve` makes the tree's instructions.

mod address;
mod body;
mod call;
mod module;
mod moves;
mod names;
mod needs;
mod opcode;
mod operand;
mod resolve;
mod scope;
mod special;
mod texture;
pub(super) mod tree;
mod types;
mod video;

use self::body::Purpose;
pub use self::names::Names;
use self::tree::Tree;
use crate::ptx::ast::{Body, Checked, Function, Item, Mentions, Module, Statement};
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
pub fn all(tree: &Module) -> Diagnostics {
    let names = Names::of(tree);
    let around = Surroundings { tree, names: &names };
    let mut list = module::check(&around);
    for item in &tree.items {
        if list.len() >= MANY {
            break;
        }
        if let Item::Function(function) = item
            && let Some(checked) = of_body(&around, function)
        {
            list.extend_from_slice(&checked.findings);
        }
    }
    list.truncate(MANY);
    list.sort_by_key(|finding| finding.span.start);
    Diagnostics {
        source: tree.source.clone(),
        list,
    }
}

/// What there is to say of a body, if the function has one; it is found once, however often it is asked for.
pub fn of_body<'a>(around: &Surroundings<'a>, function: &'a Function) -> Option<&'a Checked> {
    let body = function.body.as_ref()?;
    Some(body.checked(|| {
        let checked = |statements| {
            let read = body::read(around, function, statements, Purpose::Findings);
            Checked {
                findings: read.findings,
                mentions: read.mentions,
            }
        };
        match body.statements() {
            Ok(statements) => checked(statements),
            Err(found) => {
                let mut findings = found.list.clone();
                if is_strict(around.tree) && findings.len() < MANY {
                    findings.extend(checked(body.readable()).findings);
                }
                Checked {
                    findings,
                    mentions: Mentions::default(),
                }
            }
        }
    }))
}

/// Statements of a body, in which there are no mistakes of shape, as a tree. It is made when the body is lowered and
/// not kept; of a body that was checked before, the rules need no second look.
///
/// # Errors
/// What is wrong with them.
pub(super) fn tree<'a>(
    around: &'a Surroundings<'a>,
    function: &'a Function,
    body: &'a Body,
    statements: &'a [Statement],
) -> Result<Tree<'a>, Vec<Diagnostic>> {
    let purpose = match body.known() {
        Some(checked) => {
            let wrong = errors(&checked.findings);
            if !wrong.is_empty() {
                return Err(wrong);
            }
            Purpose::TreeOfChecked
        }
        None => Purpose::Tree,
    };
    let read = body::read(around, function, statements, purpose);
    let wrong = errors(&read.findings);
    // Nobody need read it again to know what it names.
    body.checked(|| Checked {
        findings: read.findings,
        mentions: read.mentions,
    });
    match wrong.is_empty() {
        true => Ok(read.tree),
        false => Err(wrong),
    }
}

fn errors(findings: &[Diagnostic]) -> Vec<Diagnostic> {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.cloned().collect()
}

/// Whether a module of this version keeps to the rules of PTX 2.0 and later.
fn is_strict(tree: &Module) -> bool {
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
