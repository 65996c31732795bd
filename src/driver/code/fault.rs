//! What a kernel's fault means for its context, and the report of it: what happened, next to which memory, who did it, and
//! where in the source. The words are part of the product: `tests/ptx/fault` holds them to the letter.

use std::fmt::{self, Display, Write};

use crate::config;
use crate::driver::Error;
use crate::memory::{AddressSpace, Kind, MAPPED, Nearest, Relation};
use crate::program::{Named, Space, demangle};
use crate::simt::{Cause, Fault, Made, MadeOf, Place, Site, Whose, heap_log};

/// The sticky error that a fault becomes.
pub fn code(cause: &Cause) -> Error {
    match cause {
        Cause::IllegalAddress { .. } | Cause::Stray { .. } | Cause::HostMemoryGone { .. } => Error::IllegalAddress,
        Cause::Misaligned { .. } => Error::MisalignedAddress,
        Cause::IllegalInstruction { .. } => Error::IllegalInstruction,
        Cause::WrongFree { .. } => Error::IllegalInstruction,
        Cause::InvalidPc { .. } => Error::InvalidPc,
        Cause::StackOverflow { .. } => Error::HardwareStackError,
        Cause::Trap | Cause::Texture { .. } | Cause::Misuse { .. } | Cause::Deadlock { .. } | Cause::Defect { .. } => {
            Error::LaunchFailed
        }
        Cause::TensorMemoryLeak { .. } => Error::TensorMemoryLeak,
        Cause::Assert => Error::Assert,
        Cause::Timeout { .. } => Error::LaunchTimeout,
        Cause::OutOfMemory { .. } => Error::OutOfMemory,
        Cause::Invalid { .. } => Error::InvalidPtx,
    }
}

/// The report of a fault, for people; several lines, the first of which says what happened.
/// `context` is the number of the kernel's.
pub fn report(fault: &Fault, context: u64) -> String {
    report_and_memory(fault, context).0
}

/// The same, and the allocations that it names.
pub fn report_and_memory(fault: &Fault, context: u64) -> (String, Vec<Nearest>) {
    let (mut text, mut named) = (String::new(), Vec::new());
    // Writing to a String cannot fail.
    let _ = write(fault, context, &mut text, &mut named);
    (text, named)
}

fn write(fault: &Fault, context: u64, text: &mut String, named: &mut Vec<Nearest>) -> fmt::Result {
    write!(text, "{}", fault.cause)?;
    if let Some(note) = fault.note {
        write!(text, ", {note}")?;
    }
    made(fault, text, named)?;
    memory(fault, context, text, named)?;
    write!(text, "\n  kernel {}", Named(&fault.kernel))?;
    if !fault.stack.is_empty() {
        let ([bx, by, bz], [x, y, z]) = (fault.block, fault.thread);
        write!(text, ", block ({bx},{by},{bz}), thread ({x},{y},{z})")?;
    }
    others(&fault.others, text)?;
    stack(&fault.stack, text)
}

/// Threads that were wrong by the same instruction, which their warp carried out for all of them.
fn others(threads: &[[u32; 3]], text: &mut String) -> fmt::Result {
    let ([x, y, z], [u, v, w]) = match threads {
        [] => return Ok(()),
        [[x, y, z]] => return write!(text, "\n  1 more thread of the warp did the same: ({x},{y},{z})"),
        [first, .., last] => (first, last),
    };
    let count = threads.len();
    // Without a gap only where they follow each other in a row.
    let among = match (y, z) == (v, w) && (u - x) as usize == count - 1 {
        true => "",
        false => "among ",
    };
    write!(
        text,
        "\n  {count} more threads of the warp did the same: {among}({x},{y},{z}) to ({u},{v},{w})"
    )
}

/// Device functions of the toolkit's headers that only pass a failure on: what matters is who called them.
const MESSENGERS: [&str; 6] = [
    "__trap",
    "__brkpt",
    "__assert_fail",
    "__assertfail",
    "_wassert",
    "__assert_rtn",
];

/// A call stack, innermost function first.
pub(super) fn stack(sites: &[Site], text: &mut String) -> fmt::Result {
    let is_messenger = |site: &&Site| MESSENGERS.contains(&&*site.function);
    let messengers = sites.iter().take_while(is_messenger).count();
    // The kernel itself is never a messenger, but for one of that name.
    let sites = &sites[messengers.min(sites.len().saturating_sub(1))..];
    let sites = match config::get().device_backtraces() {
        true => sites,
        false => &sites[..sites.len().min(1)],
    };
    for (index, site) in sites.iter().enumerate() {
        let mut word = if index == 0 { "at" } else { "from" };
        for line in &site.origin.lines {
            let function = line.inlined.as_deref().unwrap_or(&site.function);
            write!(text, "\n  {word} {}:{}", line.shown(), line.line)?;
            if line.column != 0 {
                write!(text, ":{}", line.column)?;
            }
            let inlined = if line.inlined.is_some() { " (inlined)" } else { "" };
            write!(text, " in {}{inlined}", demangle(function))?;
            word = "from";
        }
        let operation = site.origin.label.as_deref().and_then(crate::tile::operation_at);
        let operation = operation.filter(|_| site.instruction.contains(crate::tile::SYSTEM_CALL));
        if let Some(operation) = operation {
            // Its PTX is ours: people wrote operations over tiles.
            match site.origin.lines.is_empty() {
                true => write!(text, "\n  {word} {operation} of {}", demangle(&site.function))?,
                false => write!(text, "\n  by {operation} of Tile IR")?,
            }
        }
        // The instruction at fault, and what stands for a source line where there is none.
        else if site.ptx_line != 0 && (index == 0 || site.origin.lines.is_empty()) {
            match site.origin.lines.is_empty() {
                true => write!(
                    text,
                    "\n  {word} PTX line {} of {}",
                    site.ptx_line,
                    demangle(&site.function)
                )?,
                false => write!(text, "\n  by PTX line {}", site.ptx_line)?,
            }
            if let Some(label) = &site.origin.label {
                write!(text, ", below {label}")?;
            }
            write!(text, ": {}", site.instruction)?;
        }
        if site.times > 1 {
            write!(text, "\n  and {} more calls from there", site.times - 1)?;
        }
        if site.left_out > 0 {
            write!(text, "\n  ({} calls are left out)", site.left_out)?;
        }
    }
    Ok(())
}

/// From what the address of a stray access was made, and how far from it the access is.
fn made(fault: &Fault, text: &mut String, named: &mut Vec<Nearest>) -> fmt::Result {
    let Cause::Stray { made, .. } = &fault.cause else {
        return Ok(());
    };
    if *made == Made::Frames {
        return text.write_str(
            "\n  no function that runs has this part of the thread's local memory: one has returned that had it",
        );
    }
    text.write_str("\n  the address was made from ")?;
    match (*made, &fault.made) {
        (Made::Shared { bytes, is_dynamic, .. }, name) => {
            let what = if is_dynamic {
                "dynamic shared memory"
            } else {
                "that of the shared variable"
            };
            text.write_str(what)?;
            if let Some(MadeOf::Variable(name)) = name {
                write!(text, " {}", Named(name))?;
            }
            write!(text, " of {}, in which it does not lie", Bytes(bytes))
        }
        (Made::Local { bytes, .. }, _) => {
            write!(
                text,
                "that of a local variable of {}, in which it does not lie",
                Bytes(bytes)
            )
        }
        (Made::Parameter { bytes, .. }, Some(MadeOf::Parameter(number))) => {
            write!(
                text,
                "that of parameter {number} of {}, in which it does not lie",
                Bytes(bytes)
            )
        }
        (Made::Parameter { bytes, .. }, _) => {
            write!(
                text,
                "that of a parameter of {}, in which it does not lie",
                Bytes(bytes)
            )
        }
        (Made::Frames, _) => Ok(()),
        (Made::Pointer { pointer, .. }, of) => {
            match of {
                Some(MadeOf::Parameter(number)) => write!(text, "parameter {number}")?,
                Some(MadeOf::Variable(name)) => write!(text, "that of the variable {}", Named(name))?,
                None => write!(text, "{pointer:#x}")?,
            }
            match AddressSpace::get().nearest(pointer) {
                Some(near) => {
                    named.push(near);
                    write!(text, ", which is {near}")
                }
                None => Ok(()),
            }
        }
        (
            Made::Tensor {
                pointer,
                dimension,
                beyond,
            },
            _,
        ) => {
            write!(text, "a tensor map")?;
            if let Some(near) = AddressSpace::get().nearest(pointer) {
                named.push(near);
                write!(text, ", whose tensor begins at {near}")?;
            }
            match beyond {
                0 => Ok(()),
                beyond => write!(
                    text,
                    "\n  the tensor goes {} past its end, by dimension {dimension}",
                    Bytes(beyond)
                ),
            }
        }
    }
}

/// What the address is in or next to.
fn memory(fault: &Fault, context: u64, text: &mut String, named: &mut Vec<Nearest>) -> fmt::Result {
    let address = match &fault.cause {
        Cause::IllegalAddress {
            address,
            space: Space::Generic | Space::Global | Space::Const,
            ..
        }
        | Cause::Stray {
            address,
            space: Space::Generic | Space::Global | Space::Const,
            ..
        }
        | Cause::Misaligned { address, .. } => *address,
        Cause::IllegalAddress {
            space: Space::Shared | Space::Local | Space::Param,
            ..
        }
        | Cause::Stray {
            space: Space::Shared | Space::Local | Space::Param,
            ..
        } => {
            return match &fault.place {
                Some(place) => write!(text, "\n  the address is {}", Window(place)),
                None => Ok(()),
            };
        }
        Cause::WrongFree { address } => return heap(*address, text),
        Cause::IllegalInstruction { .. }
        | Cause::InvalidPc { .. }
        | Cause::StackOverflow { .. }
        | Cause::Trap
        | Cause::Texture { .. }
        | Cause::Misuse { .. }
        | Cause::TensorMemoryLeak { .. }
        | Cause::Assert
        | Cause::Timeout { .. }
        | Cause::Deadlock { .. }
        | Cause::OutOfMemory { .. }
        | Cause::HostMemoryGone { .. }
        | Cause::Invalid { .. }
        | Cause::Defect { .. } => return Ok(()),
    };
    let space = AddressSpace::get();
    let near = space.nearest(address).filter(Nearest::is_near);
    // A window and an allocation may both be near: the nearer one is meant. What holds the address by now may be somebody
    // who came after the block.
    let window = fault.place.as_ref();
    let is_newer = |near: &Nearest, place: &Place| place.was_ours && matches!(near.relation, Relation::Inside(_));
    let window =
        window.filter(|place| near.is_none_or(|near| place.distance() <= near.distance() || is_newer(&near, place)));
    if let Some(place) = window {
        return write!(text, "\n  the address is {}", Window(place));
    }
    if near.is_none() && space.host_range_is_gone(address) {
        return write!(text, "\n  {}", crate::simt::HOST_MEMORY_GONE);
    }
    if address < 1 << 16 {
        return write!(
            text,
            "\n  the address is {}",
            if address == 0 { "NULL" } else { "next to NULL" }
        );
    }
    if space.is_internal(address) {
        return text.write_str(
            "\n  the address is in memory of the driver's own, such as another block's shared or local memory",
        );
    }
    let Some(near) = near else {
        return text.write_str(match space.view().contains(address) {
            true => "\n  no allocation is near the address",
            false => {
                "\n  the address is not in device memory; if it is the host's, cuMemHostRegister lets kernels use it"
            }
        });
    };
    named.push(near);
    write!(text, "\n  the address is {near}")?;
    if let (Relation::Inside(at), Cause::IllegalAddress { bytes, .. }) = (near.relation, &fault.cause)
        && let Some(beyond @ 1..) = (at + u64::from(*bytes)).checked_sub(near.allocation.bytes)
        && !near.freed
    {
        write!(text, "\n  the access goes {} past its end", Bytes(beyond))?;
    }
    if near.allocation.kind == Kind::Heap {
        heap(near.allocation.start, text)?;
    }
    if let Some(allocation) = space.is_of_another(context, address) {
        write!(text, "\n  it is ")?;
        match space.device_of(context) {
            Some(device) if device == allocation.device => {
                write!(text, "another context's, which the kernel's cannot see")?
            }
            Some(_) | None => {
                let how = match (allocation.pool, allocation.flags & MAPPED) {
                    (0, 0) => "cuCtxEnablePeerAccess",
                    (0, _) => "cuMemSetAccess",
                    (_, _) => "cuMemPoolSetAccess",
                };
                write!(
                    text,
                    "device {}'s, to which the kernel's context has no access ({how})",
                    allocation.device
                )?;
            }
        }
    }
    match &fault.variable {
        Some((name, start, bytes)) if (near.allocation.start..near.allocation.end()).contains(start) => {
            write!(text, "\n  it holds the variable {} of {}", Named(name), Bytes(*bytes))
        }
        Some(_) | None => Ok(()),
    }
}

/// Who allocated the block of the kernels' heap that starts at an address, and who freed it.
fn heap(start: u64, text: &mut String) -> fmt::Result {
    let (allocated, freed) = heap_log::of(start);
    for (word, told) in [("allocated", allocated), ("freed", freed)] {
        if let Some(deed) = told {
            let ([bx, by, bz], [x, y, z]) = (deed.block, deed.thread);
            write!(text, "\n  {word} by block ({bx},{by},{bz}), thread ({x},{y},{z})")?;
            if let Some(code) = deed.code.upgrade() {
                stack(&[Site::of_instruction(&code.module, deed.function, deed.span)], text)?;
            }
        }
    }
    Ok(())
}

/// A place in a block's own memory, in words.
struct Window<'a>(&'a Place);

impl Display for Window<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place {
            space,
            offset,
            bytes,
            variable,
            whose,
            was_ours: _,
        } = self.0;
        // A variable says more than the window that it is in.
        if let Some(variable) = variable {
            let name = Named(&variable.name);
            let size = variable
                .bytes
                .map_or_else(|| bytes.saturating_sub(variable.offset.into()), u64::from);
            relation(f, offset - i64::from(variable.offset), size)?;
            write!(f, "the variable {name} of {}", Bytes(size))?;
            f.write_str(", in ")?;
            return shared(f, *whose, *bytes);
        }
        relation(f, *offset, *bytes)?;
        match (space, whose) {
            (Space::Shared, whose) => shared(f, *whose, *bytes),
            (Space::Local, Whose::Own | Whose::Peer { .. } | Whose::Nobody { .. }) => {
                write!(f, "the thread's {} of local memory", Bytes(*bytes))
            }
            (Space::Local, Whose::Thread([x, y, z])) => {
                write!(f, "the {} of local memory of thread ({x},{y},{z})", Bytes(*bytes))
            }
            (Space::Param | Space::Generic | Space::Global | Space::Const, _) => {
                write!(f, "the kernel's {} of parameters, which are read-only", Bytes(*bytes))
            }
        }
    }
}

/// Whose shared memory it is.
fn shared(f: &mut fmt::Formatter<'_>, whose: Whose, bytes: u64) -> fmt::Result {
    let bytes = Bytes(bytes);
    match whose {
        Whose::Own | Whose::Thread(_) => write!(f, "the block's {bytes} of shared memory"),
        Whose::Nobody { rank, blocks } => {
            write!(
                f,
                "the shared memory of a block of rank {rank}; the cluster has {blocks} blocks"
            )
        }
        Whose::Peer { rank, gone } => {
            write!(
                f,
                "the {bytes} of shared memory of the block of rank {rank} in the cluster"
            )?;
            f.write_str(if gone { ", which has ended" } else { "" })
        }
    }
}

/// Where an offset lies by something of a size.
fn relation(f: &mut fmt::Formatter<'_>, offset: i64, bytes: u64) -> fmt::Result {
    match u64::try_from(offset) {
        Err(_) => write!(f, "{} before ", Bytes(offset.unsigned_abs())),
        Ok(0) if bytes > 0 => f.write_str("the start of "),
        Ok(inside) if inside < bytes => write!(f, "{} inside ", Bytes(inside)),
        Ok(past) if past == bytes => f.write_str("just past the end of "),
        Ok(past) => write!(f, "{} past the end of ", Bytes(past - bytes)),
    }
}

pub(super) struct Bytes(pub u64);

impl Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 byte"),
            count => write!(f, "{count} bytes"),
        }
    }
}
