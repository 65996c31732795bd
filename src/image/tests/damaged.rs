//! Truncated, corrupted and hostile images: an error with words, never a crash, never memory without end.

use super::write::{self, Entry, Store};
use super::*;
use proptest::prelude::*;

/// Memory whose end is followed by pages that nobody may touch.
struct Guarded {
    start: *mut u8,
    mapped: usize,
    offset: usize,
}

impl Guarded {
    fn new(bytes: &[u8]) -> Guarded {
        const PAGE: usize = 4096;
        let room = bytes.len().next_multiple_of(PAGE).max(PAGE);
        let mapped = room + PAGE;
        // SAFETY: a fresh anonymous mapping.
        let start = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        let start = start.cast::<u8>();
        let offset = room - bytes.len();
        // SAFETY: the bytes fit between `offset` and `room`; the last page is ours to close.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.add(offset), bytes.len());
            assert_eq!(libc::mprotect(start.add(room).cast(), PAGE, libc::PROT_NONE), 0);
        }
        Guarded { start, mapped, offset }
    }

    fn load(&self) -> Result<Image, ImageError> {
        // SAFETY: reading is checked, which is what these tests are about.
        unsafe { from_pointer(self.start.add(self.offset).cast()) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.start.cast(), self.mapped) };
    }
}

/// Everything a user of an image can call, whatever it returns.
fn exercise(image: &Image) {
    let _ = (image.summary(), image.no_ptx_message(|| None));
    for unit in &image.units {
        let _ = (unit.choose((12, 0)), unit.choose((7, 5)), unit.is_device_runtime());
        for entry in &unit.entries {
            let _ = entry.text();
        }
    }
}

fn error_of(bytes: &[u8]) -> ImageError {
    let error = from_bytes(bytes).map(|image| image.units[0].entries[0].text());
    match error {
        Err(error) | Ok(Err(error)) => error,
        Ok(Ok(text)) => panic!("accepted: {} bytes", text.len()),
    }
}

#[test]
fn every_truncation_of_every_sample_is_noticed() {
    for bytes in SAMPLES.iter().filter(|bytes| bytes.starts_with(&fatbin::FATBIN_MAGIC)) {
        for length in 4..bytes.len() {
            let error = from_bytes(&bytes[..length]).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Corrupt, "{length}: {error}");
            assert!(
                error.offset.is_some_and(|offset| offset <= bytes.len() as u64),
                "{length}: {error}"
            );
        }
    }
}

#[test]
fn truncation_behind_a_pointer_is_noticed() {
    for bytes in SAMPLES.iter().filter(|bytes| bytes.starts_with(&fatbin::FATBIN_MAGIC)) {
        assert!(Guarded::new(bytes).load().is_ok());
        for length in (0..bytes.len()).step_by(41) {
            // Machine code is skipped unread, and so is padding: an end within them is not seen, nor does it matter.
            if let Ok(image) = Guarded::new(&bytes[..length]).load() {
                let texts = |image: &Image| {
                    let entries = image.units.iter().flat_map(|unit| &unit.entries);
                    entries.map(|entry| entry.text().unwrap()).collect::<Vec<_>>()
                };
                assert_eq!(texts(&image), texts(&from_bytes(bytes).unwrap()));
            }
        }
    }
}

#[test]
fn text_at_the_end_of_memory() {
    let text = b".version 8.0\n.target sm_80\n";
    assert!(Guarded::new(&[text.as_slice(), b"\0"].concat()).load().is_ok());
    let error = Guarded::new(text).load().unwrap_err();
    assert_eq!(
        (error.kind, error.offset),
        (ErrorKind::Corrupt, Some(text.len() as u64))
    );
    assert!(error.message.contains("without a terminating NUL"), "{error}");
    assert!(Guarded::new(b".\0").load().is_ok());
    assert!(Guarded::new(b"").load().is_err());
}

#[test]
fn pointers_to_nowhere() {
    for address in [0usize, 1, 8, 4095, usize::MAX, usize::MAX - 7, 1 << 63] {
        // SAFETY: what is there is asked of the system, which says that it cannot be read.
        let loaded = unsafe { from_pointer(address as *const c_void) };
        assert!(loaded.is_err(), "{address:#x}");
    }
    for (fatbin, units) in [(8usize, 0usize), (0, 8), (usize::MAX, 0), (0, usize::MAX - 3)] {
        for version in [1, 2, 3] {
            let wrapper = write::wrapper(version, fatbin as *const u8, units as *const *const u8);
            // SAFETY: reading is checked.
            let loaded = unsafe { from_pointer(wrapper.as_ptr().cast()) };
            // Version 1 has no second pointer: whatever stands there is not followed.
            assert_eq!(
                loaded.is_err(),
                fatbin != 0 || version != 1,
                "{fatbin:#x} {units:#x} {version}"
            );
        }
    }
}

#[test]
fn other_things_are_refused_by_name() {
    for (bytes, kind, words) in [
        (
            b"MZ\x90\0".as_slice(),
            ErrorKind::NotAnImage,
            "neither PTX text nor a fat binary nor ELF",
        ),
        (b"hello", ErrorKind::NotAnImage, "neither"),
        (&[0xB1, 0x43, 0x62, 0x46, 1, 0, 0, 0], ErrorKind::Unsupported, "wrapper"),
        (&[0x01, 0x5A, 0xE5, 0x1E, 1, 0, 0, 0], ErrorKind::Unsupported, "CUDA 3"),
        (b"\x7FELF", ErrorKind::Corrupt, "truncated"),
        (
            &[b"\x7FELF".as_slice(), &[7; 80]].concat(),
            ErrorKind::Corrupt,
            "ELF file that cannot be read",
        ),
        (b"!<arch>\nrubbish", ErrorKind::Corrupt, "archive that cannot be read"),
    ] {
        let error = from_bytes(bytes).unwrap_err();
        assert!(
            error.kind == kind && error.message.contains(words),
            "{bytes:02x?}: {error}"
        );
    }
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    // SAFETY: a whole ELF file in memory.
    let error = unsafe { from_pointer(own.as_ptr().cast()) }.unwrap_err();
    assert!(
        error.kind == ErrorKind::Unsupported && error.message.starts_with("host code"),
        "{error}"
    );
    assert_eq!(
        from_bytes(&own).unwrap().no_ptx_message(|| None).unwrap(),
        "this image holds no GPU code at all"
    );
    let bitcode = from_bytes(b"BC\xC0\xDE").unwrap().no_ptx_message(|| None).unwrap();
    assert!(bitcode.contains("holds NVVM bitcode"), "{bitcode}");
    let lto = from_bytes(&[0xED, 0x43, 0x4E, 0x7F, 1, 2, 3]).unwrap();
    assert!(
        lto.no_ptx_message(|| None)
            .unwrap()
            .contains("LTO-IR (-dlto, code=lto_XX) does not do")
    );
}

#[test]
fn declared_sizes_must_be_true() {
    for store in [Store::Lz4, Store::Zstd] {
        let good = write::fatbin(&[write::entry(&Entry {
            store,
            ..write::ptx(80, &"// text\n".repeat(100))
        })]);
        assert_eq!(only_text(&good).len(), 800);
        for declared in [0u64, 1, 800, 802, 5000] {
            let mut bad = good.clone();
            bad[16 + 0x38..][..8].copy_from_slice(&declared.to_le_bytes());
            let error = error_of(&bad);
            assert_eq!(error.kind, ErrorKind::Corrupt, "{store:?} {declared}: {error}");
            assert!(error.message.starts_with("PTX for sm_80: "), "{error}");
        }
        // Sizes that only an attacker writes are refused before anything is done.
        for declared in [1u64 << 40, u64::MAX, 65 << 20] {
            let mut bad = good.clone();
            bad[16 + 0x38..][..8].copy_from_slice(&declared.to_le_bytes());
            assert_eq!(error_of(&bad).kind, ErrorKind::TooLarge, "{store:?} {declared}");
        }
        // More compressed bytes than payload.
        let mut bad = good.clone();
        bad[16 + 0x10..][..4].copy_from_slice(&10_000u32.to_le_bytes());
        assert_eq!(error_of(&bad).offset, Some(16 + 0x10));
        // A payload that is none.
        let mut bad = good;
        let start = bad.len() - 16;
        bad[start..].fill(0xFF);
        assert_eq!(error_of(&bad).kind, ErrorKind::Corrupt);
    }
}

#[test]
fn a_decompression_bomb_is_refused() {
    let zeros = vec![b' '; 80 << 20];
    let bomb = write::fatbin(&[write::entry(&Entry {
        store: Store::Zstd,
        payload: zeros,
        ..write::ptx(80, "")
    })]);
    assert!(bomb.len() < 16 << 10);
    let error = error_of(&bomb);
    assert_eq!(error.kind, ErrorKind::TooLarge);
    assert!(error.message.contains("refused to decompress"), "{error}");
}

#[test]
fn containers_must_keep_to_their_payload() {
    let good = write::fatbin(&[write::container(
        &[write::ptx(80, "// a\n"), write::ptx(90, "// b\n")],
        Store::Zstd,
    )]);
    let sub = 16 + 64 + 8;
    for (at, value) in [
        (16 + 0x14, 1u32 << 31), // the table outside of the header
        (16 + 64, 3),            // more entries than there are
        (16 + 64, u32::MAX),
        (16 + 68, 7), // a table of less than itself
        (16 + 68, 1 << 30),
        (sub + 4, 12), // data beyond the payload
        (sub + 4, u32::MAX),
        (sub + 0x20, 5000), // a name outside of the table
    ] {
        let mut bad = good.clone();
        bad[at..at + 4].copy_from_slice(&value.to_le_bytes());
        if at == sub + 0x20 {
            bad[at + 4] = 4;
        }
        let error = error_of(&bad);
        assert_eq!(error.kind, ErrorKind::Corrupt, "{at:#x}: {error}");
    }
    assert_eq!(from_bytes(&good).unwrap().units[0].entries.len(), 2);
}

fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8);
    let archive = write::archive(&[("a.o", sample!("unit2.o")), ("b", sample!("unit1.fatbin"))]);
    let mut images: Vec<Vec<u8>> = SAMPLES.iter().map(|bytes| bytes.to_vec()).collect();
    images.extend([sample!("add.cubin").to_vec(), sample!("add.ptx").to_vec(), archive]);
    (
        prop::sample::select(images),
        damage,
        any::<prop::sample::Index>(),
        any::<bool>(),
    )
        .prop_map(|(mut bytes, damage, cut, truncate)| {
            for (at, value) in damage {
                // Half of the damage strikes headers, where it hurts.
                let range = if value & 1 == 0 {
                    bytes.len()
                } else {
                    bytes.len().min(160)
                };
                bytes[at.index(range)] = value;
            }
            if truncate {
                bytes.truncate(cut.index(bytes.len()));
            }
            bytes
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_images_never_crash(bytes in damaged()) {
        if let Ok(image) = from_bytes(&bytes) {
            exercise(&image);
        }
    }

    #[test]
    fn damaged_images_behind_pointers_never_crash(bytes in damaged()) {
        // A wrapper's pointers would lead anywhere; reading is checked all the same.
        if let Ok(image) = Guarded::new(&bytes).load() {
            exercise(&image);
        }
    }

    #[test]
    fn rubbish_never_crashes(bytes in prop::collection::vec(any::<u8>(), 0..300), magic in 0..6usize) {
        let magics = [fatbin::FATBIN_MAGIC, fatbin::WRAPPER_MAGIC, elf::ELF_MAGIC, elf::ARCHIVE_MAGIC, *b".ver", *b"//  "];
        let bytes = [magics[magic].to_vec(), bytes].concat();
        if let Ok(image) = from_bytes(&bytes) {
            exercise(&image);
        }
        if let Ok(image) = Guarded::new(&bytes).load() {
            exercise(&image);
        }
    }
}
