//! What instructions need of the module's `.version` and `.target`: more than it says is a requirement that is missing.

use crate::isa::Form;
use crate::isa::table::{Lack, Target};
use crate::ptx::ast::{Instruction, Module, Type, Variable};
use crate::ptx::diagnostic::Diagnostic;

/// What a module has.
#[derive(Clone, Copy)]
pub struct Needs {
    version: (u16, u16),
    /// `.target sm_90a`: 90 and `a`; nothing if it is not known.
    target: Option<Target>,
}

impl Needs {
    pub fn of(tree: &Module) -> Needs {
        Needs {
            version: tree.version,
            target: tree.target.iter().find_map(|name| Target::read(&name.text)),
        }
    }
}

impl Needs {
    /// Whether the target is one of the first generation.
    pub fn before_sm_20(&self) -> bool {
        self.target.is_some_and(|target| target.number < 20)
    }

    /// What a module lacks for an opcode, if something.
    pub fn missing(&self, form: &Form) -> Option<Lack> {
        let version = (self.version.0 as u8, self.version.1 as u8);
        form.lacks(version, self.target)
    }
}

/// What a declaration lacks: 128-bit types came late.
pub fn of_type(variable: &Variable, has: &Needs) -> Option<Diagnostic> {
    if variable.ty != Type::B128 {
        return None;
    }
    let target = has.target.map_or(u16::MAX, |target| target.number);
    let (needs, has) = match has.version < (8, 3) {
        true => ("PTX 8.3", format!("`.version {}.{}`", has.version.0, has.version.1)),
        false if target < 70 => ("`.target` sm_70 or later", format!("`.target sm_{target}`")),
        false => return None,
    };
    Some(
        Diagnostic::requirement(variable.name.span, format!("`.b128` needs {needs}"))
            .label(format!("this module has {has}")),
    )
}

/// What there is to say of an instruction that lacks something.
pub fn finding(lack: &Lack, instruction: &Instruction) -> Diagnostic {
    let opcode = &instruction.opcode;
    let message = format!("`{}` needs {}", opcode.text, lack.needs);
    match lack.missing {
        true => Diagnostic::error(opcode.span, message),
        false => Diagnostic::requirement(opcode.span, message),
    }
    .label(format!("this module has {}", lack.has))
}
