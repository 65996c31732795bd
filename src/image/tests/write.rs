//! A writer of fat binaries, made from the format's description and knowing nothing of the reader.

/// How a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Store {
    Plain,
    Lz4,
    Zstd,
}

/// One entry to write. Fields at their defaults are absent.
#[derive(Clone, Debug)]
pub struct Entry {
    pub kind: u16,
    pub arch: u32,
    pub flags: u64,
    pub isa: (u16, u16),
    pub name: &'static str,
    pub options: &'static str,
    pub store: Store,
    pub payload: Vec<u8>,
}

pub fn ptx(arch: u32, text: &str) -> Entry {
    let payload = [text.as_bytes(), b"\0"].concat();
    Entry {
        kind: 1,
        arch,
        flags: 0x11,
        isa: (9, 5),
        name: "",
        options: "",
        store: Store::Plain,
        payload,
    }
}

pub fn cubin(arch: u32) -> Entry {
    Entry {
        kind: 2,
        isa: (1, 8),
        payload: vec![0xC5; 40],
        ..ptx(arch, "")
    }
}

fn pad8(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

/// The 64 bytes, then name and options.
fn header(entry: &Entry) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    put(&mut bytes, 0x00, &entry.kind.to_le_bytes());
    put(&mut bytes, 0x02, &0x0101u16.to_le_bytes());
    put(&mut bytes, 0x18, &entry.isa.1.to_le_bytes());
    put(&mut bytes, 0x1A, &entry.isa.0.to_le_bytes());
    put(&mut bytes, 0x1C, &entry.arch.to_le_bytes());
    let stored = match entry.store {
        Store::Plain => 0,
        Store::Lz4 => 0x2000,
        Store::Zstd => 0x8000,
    };
    put(&mut bytes, 0x28, &(entry.flags | stored).to_le_bytes());
    if !entry.name.is_empty() {
        let at = bytes.len() as u32;
        put(&mut bytes, 0x20, &at.to_le_bytes());
        put(&mut bytes, 0x24, &(entry.name.len() as u32).to_le_bytes());
        bytes.extend_from_slice(entry.name.as_bytes());
        bytes.push(0);
        pad8(&mut bytes);
    }
    if !entry.options.is_empty() {
        let at = bytes.len() as u32;
        put(&mut bytes, 0x14, &at.to_le_bytes());
        bytes.extend_from_slice(&(at + 8).to_le_bytes());
        bytes.extend_from_slice(&(entry.options.len() as u32).to_le_bytes());
        bytes.extend_from_slice(entry.options.as_bytes());
        bytes.push(0);
        pad8(&mut bytes);
    }
    bytes
}

/// Puts sizes into a header and appends the payload.
fn finish(mut header: Vec<u8>, store: Store, payload: &[u8]) -> Vec<u8> {
    let size = header.len() as u32;
    put(&mut header, 0x04, &size.to_le_bytes());
    let mut stored = match store {
        Store::Plain => payload.to_vec(),
        Store::Lz4 => lz4_flex::block::compress(payload),
        Store::Zstd => zstd::bulk::compress(payload, 3).unwrap(),
    };
    if store != Store::Plain {
        put(&mut header, 0x10, &(stored.len() as u32).to_le_bytes());
        put(&mut header, 0x38, &(payload.len() as u64).to_le_bytes());
    }
    pad8(&mut stored);
    put(&mut header, 0x08, &(stored.len() as u64).to_le_bytes());
    header.extend(stored);
    header
}

pub fn entry(entry: &Entry) -> Vec<u8> {
    finish(header(entry), entry.store, &entry.payload)
}

/// A container of entries, compressed together.
pub fn container(entries: &[Entry], store: Store) -> Vec<u8> {
    let whole = Entry {
        kind: 0x100,
        isa: (0, 1),
        store,
        ..ptx(0, "")
    };
    let mut bytes = header(&whole);
    let (mut table, mut payload) = (Vec::new(), Vec::new());
    for entry in entries {
        let mut sub = header(&Entry {
            store: Store::Plain,
            ..entry.clone()
        });
        put(&mut sub, 0x04, &(payload.len() as u32).to_le_bytes());
        put(&mut sub, 0x08, &(entry.payload.len() as u64).to_le_bytes());
        table.extend(sub);
        payload.extend_from_slice(&entry.payload);
    }
    let at = bytes.len() as u32;
    put(&mut bytes, 0x14, &at.to_le_bytes());
    bytes.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(table.len() as u32 + 8).to_le_bytes());
    bytes.extend(table);
    finish(bytes, store, &payload)
}

/// Entries as [`entry`] or [`container`] made them, behind a header.
pub fn fatbin(entries: &[Vec<u8>]) -> Vec<u8> {
    let body = entries.concat();
    let mut bytes = 0xBA55_ED50_u32.to_le_bytes().to_vec();
    bytes.extend_from_slice(&1u16.to_le_bytes());
    bytes.extend_from_slice(&16u16.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// The wrapper that a host object holds: pointers to a fatbin, and to a NULL-terminated list of them (or NULL).
pub fn wrapper(version: u32, fatbin: *const u8, units: *const *const u8) -> [u64; 3] {
    [0x4662_43B1 | u64::from(version) << 32, fatbin as u64, units as u64]
}

/// A static library: `ar`'s format with short names.
pub fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, data) in members {
        let name = format!("{name}/");
        bytes.extend(format!("{name:16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, data.len()).bytes());
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    bytes
}
