//! ELF files → the fat binaries within them.
//!
//! The bytes are those of a cubin, a host object, program or shared library, or an archive of objects. Relocation and
//! symbols do not matter: fat binaries stand whole in their sections.

use super::error::{ErrorKind, ImageError};
use super::fatbin;
use super::packed::Encoding;
use super::source::Source;
use super::{Found, Kind, Suffix, Target, Unit};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection};

pub(super) const ELF_MAGIC: [u8; 4] = *b"\x7FELF";
pub(super) const ARCHIVE_MAGIC: [u8; 4] = *b"!<ar";

/// `e_machine` of NVIDIA's GPUs.
const EM_CUDA: u16 = 190;
pub(super) const ELF_HEADER: usize = 64;

/// Where nvcc's host objects keep fat binaries: separate compilation first, for those units want linking.
const SECTIONS: [&str; 2] = ["__nv_relfatbin", ".nv_fatbin"];

/// What an ELF header alone says: `Some` for machine code of a GPU, `None` for the host's.
pub(super) fn cubin(header: &[u8], stored: u64) -> Option<Found> {
    let u32_at = |at: usize| {
        header
            .get(at..at + 4)
            .map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    };
    if (u32_at(18) & 0xFFFF) as u16 != EM_CUDA {
        return None;
    }
    // The flags word moved with the file format's second version, which byte EI_OSABI tells (LLVM's BinaryFormat/ELF.h
    // lists both layouts). The second version does not tell `sm_90a` from `sm_90`.
    let flags = u32_at(48);
    let (number, specific) = match header[7] {
        0x41 => (flags >> 8 & 0xFFFF, false),
        _ => (flags & 0xFF, flags & 0x800 != 0),
    };
    let target = Target {
        number,
        suffix: specific.then_some(Suffix::Architecture),
    };
    Some(Found {
        kind: Kind::Cubin,
        target: (number != 0).then_some(target),
        name: None,
        options: None,
        encoding: Encoding::Plain,
        stored,
    })
}

/// Everything in an ELF file of known size.
pub(super) fn parse(bytes: &[u8]) -> Result<(Vec<Unit>, Vec<Found>), ImageError> {
    if bytes.len() < ELF_HEADER {
        return Err(ImageError::corrupt(
            0,
            format!("truncated: an ELF file of {} bytes", bytes.len()),
        ));
    }
    if let Some(found) = cubin(bytes, bytes.len() as u64) {
        return Ok((Vec::new(), vec![found]));
    }
    let file = object::File::parse(bytes)
        .map_err(|error| ImageError::new(ErrorKind::Corrupt, format!("ELF file that cannot be read: {error}")))?;
    let (mut units, mut found) = (Vec::new(), Vec::new());
    for name in SECTIONS {
        // A relocatable file may have one such section per group: take them all.
        for section in file.sections().filter(|section| section.name() == Ok(name)) {
            let at = section.file_range().map_or(0, |(start, _)| start);
            let data = section
                .data()
                .map_err(|error| ImageError::corrupt(at, format!("section {name} that cannot be read: {error}")))?;
            parse_section(data, &mut units, &mut found)
                .map_err(|error| error.within(&format!("section {name}"), at))?;
        }
    }
    // Beside the code of its own, nvcc puts a device-linked image into every program, even when nothing was to link. It is
    // no unit that misses its PTX.
    if units.iter().any(|unit| !unit.entries.is_empty()) {
        units.retain(|unit| !unit.entries.is_empty());
    }
    Ok((units, found))
}

/// Fat binaries one after the other, padded to 8 bytes.
fn parse_section(data: &[u8], units: &mut Vec<Unit>, found: &mut Vec<Found>) -> Result<(), ImageError> {
    let mut at = 0;
    while let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(&fatbin::FATBIN_MAGIC) {
            let (unit, more, end) = fatbin::parse_fatbin(Source::Bytes(data), at as u64)?;
            units.push(unit);
            found.extend(more);
            at = end as usize;
        } else if rest[0] == 0 {
            at += 1;
        } else {
            return Err(fatbin::bad_magic(&rest[..rest.len().min(4)]).within("fat binaries", at as u64));
        }
    }
    Ok(())
}

/// The members of an archive (a static library) that hold fat binaries.
pub(super) fn parse_archive(bytes: &[u8]) -> Result<(Vec<Unit>, Vec<Found>), ImageError> {
    let broken =
        |error: object::Error| ImageError::new(ErrorKind::Corrupt, format!("archive that cannot be read: {error}"));
    let archive = ArchiveFile::parse(bytes).map_err(broken)?;
    let (mut units, mut found) = (Vec::new(), Vec::new());
    for member in archive.members() {
        let member = member.map_err(broken)?;
        let data = member.data(bytes).map_err(broken)?;
        let name = String::from_utf8_lossy(member.name()).into_owned();
        let at = member.file_range().0;
        let inside = |error: ImageError| error.within(&format!("archive member {name}"), at);
        let (more_units, more_found) = if data.starts_with(&ELF_MAGIC) {
            parse(data).map_err(inside)?
        } else if data.starts_with(&fatbin::FATBIN_MAGIC) {
            let (unit, more, _) = fatbin::parse_fatbin(Source::Bytes(data), 0).map_err(inside)?;
            (vec![unit], more)
        } else {
            continue;
        };
        units.extend(more_units);
        found.extend(more_found);
    }
    Ok((units, found))
}
