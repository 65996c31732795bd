//! Fat binaries → the PTX entries they hold, and a list of everything else in them.
//!
//! Layout of an entry (offsets in bytes, little endian; the format is NVIDIA's and documented nowhere officially):
//!
//! ```text
//! 00 u16 kind          04 u32 header size    08 u64 payload size      10 u32 compressed size  14 u32 options record
//! 18 u16 minor, major  1C u32 architecture   20 u32 name  24 u32 its length   28 u64 flags    38 u64 raw size
//! ```
//!
//! The next entry follows header and payload. A *container* (kind 0x100) holds one compressed payload for several
//! architectures; a table in its header has one sub-entry each, whose field 04 is the offset within the payload.

use super::error::{ErrorKind, ImageError};
use super::packed::{Encoding, Packed};
use super::source::Source;
use super::{Found, Kind, PtxEntry, Stored, Suffix, Target, Unit};
use std::sync::Arc;

pub(super) const WRAPPER_MAGIC: [u8; 4] = 0x4662_43B1_u32.to_le_bytes();
pub(super) const FATBIN_MAGIC: [u8; 4] = 0xBA55_ED50_u32.to_le_bytes();
/// Of the years before CUDA 4; nothing today reads or writes it.
pub(super) const ANCIENT_MAGIC: [u8; 4] = 0x1EE5_5A01_u32.to_le_bytes();

pub(super) const FATBIN_HEADER: usize = 16;
const ENTRY_HEADER: usize = 64;
/// Headers grow with their name, options and container table. Nothing near this was ever seen.
const ENTRY_HEADER_LIMIT: u32 = 1 << 20;
/// Translation units of one program; a bound for a list whose end is only marked.
const UNIT_LIMIT: usize = 1 << 16;

const KIND_PTX: u16 = 1;
const KIND_CUBIN: u16 = 2;
const KIND_LTO_IR: u16 = 8;
const KIND_TILE_IR: u16 = 0x80;
const KIND_CONTAINER: u16 = 0x100;

const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const FLAG_SCRAMBLED: u64 = 0x1_0000;
const FLAG_ARCHITECTURE_SPECIFIC: u64 = 0x10_0000;
const FLAG_FAMILY_SPECIFIC: u64 = 0x20_0000;

/// Little-endian fields of a header that has been read whole.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.0[at..at + N]);
        field
    }
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }
    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }
}

/// What a wrapper (`__fatBinC_Wrapper_t` of fatbinary_section.h) leads to.
pub(super) fn parse_wrapper(wrapper: Source<'_>) -> Result<(Vec<Unit>, Vec<Found>), ImageError> {
    let header = wrapper.read(0, 24, "the fatbin wrapper")?;
    let fields = Fields(&header);
    let (version, fatbin, units) = (fields.u32(4), fields.u64(8) as usize, fields.u64(16) as usize);
    if version != 1 && version != 2 {
        let message = format!("fatbin wrapper of version {version}; 1 and 2 are known");
        return Err(ImageError::at(ErrorKind::Unsupported, 4, message));
    }
    let follow = |address: usize| {
        // SAFETY: the wrapper's contract covers what its pointers lead to.
        let source = unsafe { Source::address(address) };
        match source.read(0, 4, "the fatbin header")? {
            magic if *magic == FATBIN_MAGIC => parse_fatbin(source, 0).map(|(unit, found, _)| (unit, found)),
            magic => Err(bad_magic(&magic)),
        }
    };
    let mut found = Vec::new();
    let mut linked = Vec::new();
    // Version 2: the fatbin holds the device-linked machine code alone, the translation units stand behind the second
    // pointer. A linked program can in principle have lost them; then the fatbin is all there is.
    if version == 2 && units != 0 {
        // SAFETY: the pointer stands in a wrapper of the program's; every read through it is checked.
        let list = unsafe { Source::address(units) };
        for index in 0.. {
            let pointer = list.read(index as u64 * 8, 8, "the wrapper's list of translation units")?;
            match Fields(&pointer).u64(0) as usize {
                0 => break,
                _ if index >= UNIT_LIMIT => {
                    let message = format!("the wrapper's list of translation units has no end within {UNIT_LIMIT}");
                    return Err(ImageError::new(ErrorKind::TooLarge, message));
                }
                address => {
                    let (unit, more) =
                        follow(address).map_err(|e| e.within(&format!("translation unit {index}"), 0))?;
                    // nvcc also emits fatbins with nothing in them: no unit at all.
                    if !more.is_empty() {
                        linked.push(unit);
                    }
                    found.extend(more);
                }
            }
        }
    }
    if fatbin != 0 {
        let (unit, more) = follow(fatbin)?;
        let empty = more.is_empty();
        found.splice(0..0, more);
        if linked.is_empty() && !empty {
            linked.push(unit);
        }
    }
    Ok((linked, found))
}

pub(super) fn bad_magic(magic: &[u8]) -> ImageError {
    if magic == ANCIENT_MAGIC {
        let message = "a fat binary in the format of CUDA 3 and earlier, which nothing writes any more";
        return ImageError::at(ErrorKind::Unsupported, 0, message);
    }
    let message = format!("no fatbin here: it would start with {FATBIN_MAGIC:02x?}, this starts with {magic:02x?}");
    ImageError::at(ErrorKind::Corrupt, 0, message)
}

/// The fatbin whose header stands at `start`, and the offset of its end.
pub(super) fn parse_fatbin(source: Source<'_>, start: u64) -> Result<(Unit, Vec<Found>, u64), ImageError> {
    let header = source.read(start, FATBIN_HEADER, "the fatbin header")?;
    let fields = Fields(&header);
    let (version, header_size, size) = (fields.u16(4), fields.u16(6), fields.u64(8));
    if version != 1 {
        let message = format!("fatbin of version {version}; 1 is known");
        return Err(ImageError::at(ErrorKind::Unsupported, start + 4, message));
    }
    if usize::from(header_size) < FATBIN_HEADER {
        return Err(ImageError::corrupt(
            start + 6,
            format!("fatbin header of {header_size} bytes; it has at least 16"),
        ));
    }
    let begin = start + u64::from(header_size);
    let end = begin
        .checked_add(size)
        .filter(|&end| source.len().is_none_or(|len| end <= len));
    let Some(end) = end else {
        let there = source.len().map_or(String::new(), |len| {
            format!(", {} are there", len.saturating_sub(begin))
        });
        return Err(ImageError::corrupt(
            start + 8,
            format!("truncated: the fatbin declares {size} bytes of entries{there}"),
        ));
    };
    let mut unit = Unit::default();
    let mut found = Vec::new();
    let mut at = begin;
    while at < end {
        at = parse_entry(source, at, end, &mut unit, &mut found)?;
    }
    Ok((unit, found, end))
}

/// One entry, whose header stands at `at`. Returns where the next one stands.
fn parse_entry(
    source: Source<'_>,
    at: u64,
    end: u64,
    unit: &mut Unit,
    found: &mut Vec<Found>,
) -> Result<u64, ImageError> {
    let room = end - at;
    if room < ENTRY_HEADER as u64 {
        return Err(ImageError::corrupt(
            at,
            format!("truncated: {room} bytes are left for a fatbin entry's header"),
        ));
    }
    let head = source.read(at, ENTRY_HEADER, "a fatbin entry's header")?;
    let header_size = Fields(&head).u32(4);
    if header_size < ENTRY_HEADER as u32 || header_size > ENTRY_HEADER_LIMIT || u64::from(header_size) > room {
        let message = format!("fatbin entry with a header of {header_size} bytes, in {room} bytes");
        return Err(ImageError::corrupt(at + 4, message));
    }
    let header = source.read(at, header_size as usize, "a fatbin entry's header")?;
    let entry = Header::read(&header, at)?;
    let payload_at = at + u64::from(header_size);
    let next = payload_at
        .checked_add(entry.payload)
        .filter(|&next| next <= end)
        .ok_or_else(|| {
            let left = end - payload_at;
            ImageError::corrupt(
                at + 8,
                format!(
                    "truncated: fatbin entry with a payload of {}, in {left} bytes",
                    entry.payload
                ),
            )
        })?;
    match entry.kind {
        KIND_PTX | KIND_TILE_IR => {
            let packed = Arc::new(entry.pack(source, payload_at, at)?);
            found.push(entry.found(Kind::of(entry.kind), packed.encoding));
            unit.entries.push(entry.ptx(Stored::Whole(packed)));
        }
        KIND_CONTAINER => parse_container(source, &entry, &header, at, payload_at, unit, found)?,
        kind => found.push(entry.found(Kind::of(kind), entry.encoding())),
    }
    Ok(next)
}

/// The sub-entries of a container. Its payload is kept only when there is PTX in it.
fn parse_container(
    source: Source<'_>,
    container: &Header,
    header: &[u8],
    at: u64,
    payload_at: u64,
    unit: &mut Unit,
    found: &mut Vec<Found>,
) -> Result<(), ImageError> {
    let table_at = container.options_at;
    let table = table_at
        .checked_add(8)
        .and_then(|after| header.get(table_at..after))
        .map(Fields)
        .ok_or_else(|| {
            ImageError::corrupt(
                at + 0x14,
                format!("container whose table at {table_at:#x} is outside of its header"),
            )
        })?;
    let (count, table_size) = (table.u32(0), table.u32(4) as usize);
    let table_end = table_at + table_size;
    if table_size < 8 || table_end > header.len() {
        let message = format!(
            "container with a table of {table_size} bytes in a header of {}",
            header.len()
        );
        return Err(ImageError::corrupt(at + table_at as u64 + 4, message));
    }
    let raw_size = if container.encoding() == Encoding::Plain {
        container.payload
    } else {
        container.raw_size
    };
    let mut packed = None;
    let mut sub_at = table_at + 8;
    for index in 0..count {
        let offset = at + sub_at as u64;
        let bytes = &header[sub_at.min(table_end)..table_end];
        if bytes.len() < ENTRY_HEADER {
            let message =
                format!("truncated: container declares {count} entries, its table ends within number {index}");
            return Err(ImageError::corrupt(offset, message));
        }
        let sub = Header::read(bytes, offset)?;
        let from = u64::from(Fields(bytes).u32(4));
        let to = from
            .checked_add(sub.payload)
            .filter(|&to| to <= raw_size)
            .ok_or_else(|| {
                let message = format!(
                    "container entry of {} bytes at {from:#x} in a payload of {raw_size}",
                    sub.payload
                );
                ImageError::corrupt(offset + 4, message)
            })?;
        found.push(sub.found(Kind::of(sub.kind), container.encoding()));
        sub_at += sub.length;
        if let KIND_PTX | KIND_TILE_IR = sub.kind {
            let packed = match &packed {
                Some(packed) => Arc::clone(packed),
                None => Arc::clone(packed.insert(Arc::new(container.pack(source, payload_at, at)?))),
            };
            unit.entries.push(sub.ptx(Stored::Slice {
                container: packed,
                range: from as usize..to as usize,
            }));
        }
    }
    Ok(())
}

/// An entry's header, or a container's sub-entry, with its records resolved.
struct Header {
    kind: u16,
    payload: u64,
    compressed: u32,
    options_at: usize,
    isa: (u16, u16),
    target: Target,
    flags: u64,
    raw_size: u64,
    name: Option<String>,
    options: Option<String>,
    /// Bytes up to the end of the last record, rounded up to 8: the length of a sub-entry.
    length: usize,
}

impl Header {
    /// `bytes` starts with the 64 fixed bytes; names and options lie within it. `at` is for messages.
    fn read(bytes: &[u8], at: u64) -> Result<Header, ImageError> {
        let fields = Fields(bytes);
        let kind = fields.u16(0);
        let flags = fields.u64(0x28);
        let suffix = if flags & FLAG_ARCHITECTURE_SPECIFIC != 0 {
            Some(Suffix::Architecture)
        } else if flags & FLAG_FAMILY_SPECIFIC != 0 {
            Some(Suffix::Family)
        } else {
            None
        };
        let mut length = ENTRY_HEADER;
        let mut string =
            |start: usize, len: usize, what: &str, field: u64| match bytes.get(start..).and_then(|b| b.get(..len)) {
                Some(string) => {
                    length = length.max((start + len + 1).next_multiple_of(8));
                    Ok((len != 0).then(|| String::from_utf8_lossy(string).into_owned()))
                }
                None => {
                    let message =
                        format!("fatbin entry whose {what} ({len} bytes at {start:#x}) is outside of its header");
                    Err(ImageError::corrupt(at + field, message))
                }
            };
        let name = match (fields.u32(0x20) as usize, fields.u32(0x24) as usize) {
            (0, _) => Ok(None),
            (start, len) => string(start, len, "name", 0x20),
        };
        let options_at = fields.u32(0x14) as usize;
        let options = match options_at {
            0 => Ok(None),
            _ if kind == KIND_CONTAINER => Ok(None),
            record => match bytes.get(record..).filter(|bytes| bytes.len() >= 8).map(Fields) {
                Some(record) => string(record.u32(0) as usize, record.u32(4) as usize, "options", 0x14),
                None => {
                    let message = format!("fatbin entry whose options record at {record:#x} is outside of its header");
                    Err(ImageError::corrupt(at + 0x14, message))
                }
            },
        };
        // Machine code keeps bytes of another meaning where PTX has its options, and what other kinds keep is nobody's
        // business: only PTX is held to the format.
        let (name, options) = match kind {
            KIND_PTX => (name?, options?),
            _ => (
                name.ok().flatten(),
                options.ok().flatten().filter(|text| !text.contains(char::is_control)),
            ),
        };
        Ok(Header {
            kind,
            payload: fields.u64(8),
            compressed: fields.u32(0x10),
            options_at,
            isa: (fields.u16(0x1A), fields.u16(0x18)),
            target: Target {
                number: fields.u32(0x1C),
                suffix,
            },
            flags,
            raw_size: fields.u64(0x38),
            name,
            options,
            length,
        })
    }

    fn encoding(&self) -> Encoding {
        if self.flags & FLAG_SCRAMBLED != 0 {
            Encoding::Scrambled
        } else if self.flags & FLAG_ZSTD != 0 {
            Encoding::Zstd
        } else if self.flags & FLAG_LZ4 != 0 {
            Encoding::Lz4
        } else {
            Encoding::Plain
        }
    }

    /// Copies the payload: the image may be gone by the time somebody wants the text.
    fn pack(&self, source: Source<'_>, payload_at: u64, at: u64) -> Result<Packed, ImageError> {
        let encoding = self.encoding();
        let size = match encoding {
            Encoding::Plain => self.payload,
            _ if u64::from(self.compressed) > self.payload => {
                let message = format!(
                    "fatbin entry with {} compressed bytes in a payload of {}",
                    self.compressed, self.payload
                );
                return Err(ImageError::corrupt(at + 0x10, message));
            }
            _ => u64::from(self.compressed),
        };
        let size = usize::try_from(size).map_err(|_| ImageError::corrupt(at + 8, "fatbin entry larger than memory"))?;
        let stored = source.read(payload_at, size, "a fatbin entry's payload")?;
        Ok(Packed {
            encoding,
            stored: stored.into_owned().into_boxed_slice(),
            unpacked: self.raw_size,
        })
    }

    fn found(&self, kind: Kind, encoding: Encoding) -> Found {
        Found {
            kind,
            target: (self.target.number != 0).then_some(self.target),
            name: self.name.clone(),
            options: self.options.clone(),
            encoding,
            stored: if self.compressed != 0 {
                u64::from(self.compressed)
            } else {
                self.payload
            },
        }
    }

    fn ptx(self, text: Stored) -> PtxEntry {
        PtxEntry {
            target: self.target,
            is_tile_ir: self.kind == KIND_TILE_IR,
            isa: (self.isa != (0, 0)).then_some(self.isa),
            name: self.name,
            options: self.options,
            text,
        }
    }
}

impl Kind {
    fn of(kind: u16) -> Kind {
        match kind {
            KIND_PTX => Kind::Ptx,
            KIND_CUBIN => Kind::Cubin,
            KIND_LTO_IR => Kind::LtoIr,
            KIND_TILE_IR => Kind::TileIr,
            other => Kind::Other(other),
        }
    }
}
