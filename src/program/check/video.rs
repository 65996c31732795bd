//! The operands of video instructions: which bytes and halves they choose, and with which sign (PTX ISA, Video
//! Instructions).

use crate::isa::Compute;
use crate::isa::video::{Opcode, Selectors};
use crate::ptx::ast::{Instruction, Name, Operand};
use crate::ptx::diagnostic::Diagnostic;

/// A video instruction with what its operands say taken off them.
pub struct Video {
    /// Registers and constants, the result first.
    pub operands: Vec<Operand>,
    pub compute: Compute,
}

/// An operand without what a video instruction reads of it.
struct Bare<'a> {
    operand: Operand,
    selector: Option<&'a str>,
    negated: bool,
}

/// Reads the operands; `is_register` tells registers from other names.
pub fn read(
    opcode: Opcode,
    instruction: &Instruction,
    mut is_register: impl FnMut(&Name) -> bool,
) -> Result<Video, Diagnostic> {
    let given = &instruction.operands;
    let refuse = |at: &Operand, message: &str| Err(Diagnostic::error(at.span(), message));
    // A third operand is there for a second operation or for what is merged into it.
    let bare: Vec<Bare> = given.iter().map(|operand| bare(operand, &mut is_register)).collect();
    let parted = bare.first().is_some_and(|d| d.selector.is_some());
    let merges = opcode.needs_third() || parted;
    // A whole result leaves nothing of what it would be merged into.
    let expected = if merges { 4..=4 } else { 3..=4 };
    if !expected.contains(&bare.len()) {
        let text = &instruction.opcode.text;
        let message = format!("`{text}` takes {} operands here, not {}", expected.start(), bare.len());
        return Err(Diagnostic::error(instruction.span, message));
    }
    if let Some(at) = bare.iter().position(|operand| operand.negated)
        && !opcode.takes_signs()
    {
        return refuse(&given[at], "a sign is not expected here");
    }
    let selectors = Selectors {
        d: bare[0].selector,
        a: bare[1].selector,
        b: bare[2].selector,
        negate_product: bare[1].negated != bare[2].negated,
        negate_c: bare.get(3).is_some_and(|c| c.negated),
    };
    match &bare[0].operand {
        Operand::Sink(_) => {
            return refuse(
                &given[0],
                &format!("the result of `{}` cannot be thrown away", opcode.mnemonic()),
            );
        }
        _ if bare[0].negated => return refuse(&given[0], "a result has no sign"),
        _ => {}
    }
    if let Some(c) = bare.get(3) {
        if c.selector.is_some() {
            return refuse(&given[3], "the last operand has no selector");
        }
        if selectors.negate_product && selectors.negate_c {
            return refuse(&given[3], "either the product or the last operand is negated, not both");
        }
    }
    let compute = opcode.with(&selectors, merges).map_err(|misfit| {
        Diagnostic::error(
            given[misfit.operand].span(),
            format!("{} is expected on this operand", misfit.expected),
        )
    })?;
    if opcode.is_packed()
        && let Some(at) = bare.iter().position(|one| matches!(one.operand, Operand::Immediate(_)))
    {
        return refuse(&given[at], "a register is expected here, not a constant");
    }
    Ok(Video {
        operands: bare
            .into_iter()
            .take(if merges { 4 } else { 3 })
            .map(|bare| bare.operand)
            .collect(),
        compute: Compute::Video(compute),
    })
}

/// Takes selector and sign off. A special register's selector names an element: that one stays.
fn bare<'a>(operand: &'a Operand, is_register: &mut impl FnMut(&Name) -> bool) -> Bare<'a> {
    match operand {
        Operand::Negated(inner) => Bare {
            negated: true,
            ..bare(inner, is_register)
        },
        Operand::Name {
            name,
            select: Some(select),
            offset: 0,
        } if is_register(name) => Bare {
            operand: Operand::Name {
                name: name.clone(),
                select: None,
                offset: 0,
            },
            selector: Some(&select.text),
            negated: false,
        },
        _ => Bare {
            operand: operand.clone(),
            selector: None,
            negated: false,
        },
    }
}
