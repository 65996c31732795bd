//! The report of a value that nobody has written: what depends on it, and where it comes from.

use std::fmt::{self, Write};

use crate::memory::AddressSpace;
use crate::program::{Decision, Named};
use crate::sanitizer::init::{Origin, Place, Uninitialised};

use super::fault::{self, Bytes};

/// For people; several lines, the first of which says what depends on the value.
pub fn report(found: &Uninitialised) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write(found, &mut text);
    text
}

fn what(decision: Decision) -> &'static str {
    match decision {
        Decision::Branch => "a branch depends on it",
        Decision::Target => "the target of a branch or call depends on it",
        Decision::Guard => "whether an instruction is carried out depends on it",
        Decision::Address => "an address depends on it",
        Decision::Atomic => "an atomic operation takes it",
        Decision::AtomicMemory => "an atomic operation changes it",
        Decision::Print => "it is printed",
    }
}

fn write(found: &Uninitialised, text: &mut String) -> fmt::Result {
    write!(
        text,
        "uninitialised value in {}: {}",
        Named(&found.kernel),
        what(found.decision)
    )?;
    let ([bx, by, bz], [x, y, z]) = (found.block, found.thread);
    write!(text, "\n  block ({bx},{by},{bz}), thread ({x},{y},{z})")?;
    fault::stack(std::slice::from_ref(&found.site), text)?;
    match &found.origin {
        None => text.write_str("\n  it comes from a register that nothing has written on the way here")?,
        Some(origin) => origin_of(origin, found, text)?,
    }
    match found.times - 1 {
        0 => Ok(()),
        1 => text.write_str("\n  once more for other values here"),
        more => write!(text, "\n  {more} times more for other values here"),
    }
}

fn origin_of(origin: &Origin, found: &Uninitialised, text: &mut String) -> fmt::Result {
    let bytes = Bytes(origin.bytes);
    write!(text, "\n  nobody has written ")?;
    match &origin.place {
        Place::Global(address) if AddressSpace::get().is_internal(*address) => {
            write!(text, "{bytes} of the memory of a block or its threads")?;
        }
        Place::Global(address) => {
            write!(text, "{bytes} at {address:#x}")?;
            if let Some(near) = AddressSpace::get().nearest(*address).filter(|near| near.is_near()) {
                write!(text, ", {near}")?;
            }
        }
        Place::Shared {
            offset,
            variable: Some(variable),
        } => {
            let inside = offset - u64::from(variable.offset);
            write!(
                text,
                "{bytes} at {inside:#x} in the shared variable {}",
                Named(&variable.name)
            )?;
        }
        Place::Shared { offset, variable: None } => write!(text, "{bytes} at {offset:#x} in shared memory")?,
        Place::Local => write!(text, "{bytes} of the thread's local memory")?,
        Place::Tensor { lane, column } => write!(text, "{bytes} in lane {lane}, column {column} of tensor memory")?,
    }
    // What reads memory by itself has named it.
    if origin.site != found.site {
        let by = if origin.by_another { " by another thread" } else { "" };
        write!(text, "\n  it was loaded{by}")?;
        fault::stack(std::slice::from_ref(&origin.site), text)?;
    }
    Ok(())
}
