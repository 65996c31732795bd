//! The file itself: its name for the loader, and what it lets others see.

use crate::c;
use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSymbol};

fn file() -> Vec<u8> {
    std::fs::read(c::library_path()).expect("reading the library")
}

#[test]
fn the_loader_knows_it_as_libcuda_so_1() {
    let bytes = file();
    let elf = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
    let endian = elf.endian();
    let sections = elf.elf_header().sections(endian, &*bytes).unwrap();
    let (entries, strings) = sections.dynamic(endian, &*bytes).unwrap().expect("a dynamic section");
    let strings = sections.strings(endian, &*bytes, strings).unwrap();
    let name = entries
        .iter()
        .find(|entry| entry.d_tag.get(endian) == object::elf::DT_SONAME);
    let name = name.expect("DT_SONAME").d_val.get(endian) as u32;
    assert_eq!(strings.get(name).unwrap(), b"libcuda.so.1");
}

#[test]
fn nothing_but_the_driver_api_is_exported() {
    let bytes = file();
    let elf = object::File::parse(&*bytes).unwrap();
    let exported = elf.dynamic_symbols().filter(|symbol| symbol.is_definition());
    let strange: Vec<_> = exported
        .filter_map(|symbol| symbol.name().ok())
        .filter(|name| !name.starts_with("cu") && *name != "margay_version")
        .collect();
    // A compressor's or an allocator's symbols would take the place of the host program's own.
    assert!(strange.is_empty(), "{strange:?}");
}

#[test]
fn it_says_that_it_is_margay() {
    let library = c::library();
    // SAFETY: the function's type; the library stays loaded.
    let version = unsafe {
        let function = library.get::<unsafe extern "C" fn() -> *const std::ffi::c_char>(b"margay_version\0");
        std::ffi::CStr::from_ptr(function.expect("margay_version")())
    };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}

#[test]
fn it_loads() {
    c::library();
}
