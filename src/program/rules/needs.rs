//! What instructions need of the module's `.version` and `.target`: more than it says is a requirement that is missing.

use super::body::Body;
use crate::isa::{Form, table};
use crate::ptx::ast::{Instruction, Module};
use crate::ptx::diagnostic::Diagnostic;

/// What a module has.
#[derive(Clone, Copy)]
pub struct Needs {
    version: (u16, u16),
    /// `.target sm_90a`: 90 and `a`; nothing if it is not known.
    target: Option<table::Target>,
}

impl Needs {
    pub fn of(tree: &Module) -> Needs {
        Needs {
            version: tree.version,
            target: tree.target.iter().find_map(|name| table::Target::read(&name.text)),
        }
    }
}

impl Body<'_> {
    pub fn require(&mut self, form: &Form, instruction: &Instruction) {
        let version = (self.needs.version.0 as u8, self.needs.version.1 as u8);
        let opcode = &instruction.opcode;
        if let Some(lack) = form.lacks(version, self.needs.target) {
            self.report(
                Diagnostic::requirement(opcode.span, format!("`{}` needs {}", opcode.text, lack.needs))
                    .label(format!("this module has {}", lack.has)),
            );
        }
    }
}
