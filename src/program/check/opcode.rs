//! Opcodes: which lines of the instruction table they follow, and what is wrong with those that follow none.

use std::rc::Rc;

use super::body::Outcome;
use super::needs::Needs;
use crate::isa::table::Lack;
use crate::isa::{self, Form};
use crate::ptx::ast::{Opcode, Span};
use crate::ptx::diagnostic::Diagnostic;

/// A line of the table that an opcode follows, and what the module lacks for it.
pub(super) struct Known {
    pub form: Rc<Form>,
    /// What the module's target makes of it: those before sm_20 flush subnormal numbers.
    pub meant: Rc<Form>,
    /// See [`Instruction::lanes`](super::tree::Instruction::lanes).
    pub lanes: Option<u8>,
    pub lack: Option<Lack>,
}

/// The lines that an opcode of PTX 2.0 and later follows; never none.
pub(super) fn lines(opcode: &Opcode, version: (u16, u16), needs: &Needs) -> Outcome<Rc<[Known]>> {
    // The bank of `ld.const[2].b32` says nothing that the address does not.
    let unbanked = isa::without_bank(&opcode.text).filter(|_| version < (2, 2));
    let text = unbanked.as_deref().unwrap_or(&opcode.text);
    let flushing = match needs.before_sm_20() {
        true => isa::decode_flushing(text).map(Rc::new),
        false => None,
    };
    let known = |form: Form| {
        let lack = needs.missing(&form);
        let form = Rc::new(form);
        Known {
            meant: flushing.clone().unwrap_or_else(|| form.clone()),
            form,
            lanes: None,
            lack,
        }
    };
    let lines: Rc<[Known]> = isa::decode_all(text).into_iter().map(known).collect();
    match lines.is_empty() {
        false => Ok(lines),
        true => Err(unknown_opcode(opcode)),
    }
}

/// The line that an opcode of PTX 1.x follows.
pub(super) fn old_line(opcode: &Opcode) -> Outcome<Known> {
    let (form, lanes) =
        isa::decode_elements(&opcode.text).map_err(|error| Diagnostic::error(opcode.span, error.to_string()))?;
    let form = Rc::new(form);
    Ok(Known {
        meant: form.clone(),
        form,
        lanes,
        lack: None,
    })
}

/// An opcode that no line of the table describes: the word that is wrong, what could stand there, the nearest legal
/// one.
fn unknown_opcode(opcode: &Opcode) -> Diagnostic {
    let Err(error) = isa::decode(&opcode.text) else {
        return Diagnostic::error(opcode.span, "this instruction is not understood");
    };
    let name = opcode.words().next().unwrap_or_default();
    let near = error
        .nearest
        .as_ref()
        .map(|nearest| format!("did you mean `{nearest}`?"));
    let mut found = match error.found.as_deref() {
        Some(word) if word == name => {
            let start = opcode.span.start;
            let end = start + name.len() as u32;
            let found = Diagnostic::error(Span { start, end }, format!("unknown instruction `{name}`"));
            return match near {
                Some(near) => found.label(near),
                None => found,
            };
        }
        Some(word) => Diagnostic::error(
            place_of(opcode, word),
            format!("`.{word}` is not understood in `{}`", opcode.text),
        ),
        None => Diagnostic::error(opcode.span, format!("`{}` is incomplete", opcode.text)),
    };
    if !error.expected.is_empty() {
        const SHOWN: usize = 12;
        let some: Vec<String> = error
            .expected
            .iter()
            .take(SHOWN)
            .map(|word| format!("`.{word}`"))
            .collect();
        let more = if error.expected.len() > SHOWN { ", …" } else { "" };
        found = found.label(format!("expected {}{more}", some.join(", ")));
    }
    match near {
        Some(near) => found.note(near),
        None => found,
    }
}

/// Where in an opcode a word stands, with its dot.
pub(super) fn place_of(opcode: &Opcode, word: &str) -> Span {
    let mut start = opcode.span.start;
    for (index, one) in opcode.words().enumerate() {
        let end = start + one.len() as u32;
        if index > 0 && one == word {
            return Span { start: start - 1, end };
        }
        start = end + 1;
    }
    opcode.span
}
