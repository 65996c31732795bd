//! nvJitLink that is in the process before this library is, because somebody is linked with it (`-lnvJitLink`): a program, or a library
//! of NVIDIA's. No companion can take its place then; but those who are linked with it call it through addresses that the loader wrote for
//! them, and these can become addresses of the companion's functions. Who has asked the loader for an address by itself keeps NVIDIA's.
//!
//! What is read here is laid out by the System V ABI ("Dynamic Linking") and its supplement for x86-64 ("Relocation Types").

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use libloading::os::unix::{Library, RTLD_NOW};
use object::NativeEndian;
use object::elf::{self, Dyn64, DynamicTag, Rela64, Sym64};

/// What the names of nvJitLink's functions begin with.
const PREFIXES: [&[u8]; 2] = [b"nvJitLink", b"__nvJitLink"];

/// Makes all objects that are linked with nvJitLink, which is loaded by this name, call the companion at this path, for good.
///
/// # Errors
/// Says what stands against it. Then nothing has changed, or only for those whose addresses could be written.
pub fn call_companion(name: &str, companion: &Path) -> Result<(), String> {
    // SAFETY: the loader only looks for a library that is there.
    let library = unsafe { Library::open(Some(name), RTLD_NOW | libc::RTLD_NOLOAD) }.map_err(super::in_words)?;
    if address(&library, c"margay_companion_for").is_some() {
        return Err("it is a companion already, of another libcuda.so.1".into());
    }
    let mut functions = BTreeSet::new();
    each_slot(name, &mut |slot| {
        functions.insert(slot.function.to_owned());
        Ok(())
    })?;
    if functions.is_empty() {
        return Err("nobody is linked with it, and whoever opened it has its functions' addresses".into());
    }
    let (library, path) = path_of(library);
    let companion = super::introduce(companion, &path.ok_or("the loader does not say where it lies")?)?;
    // Of each function its address, and the one to be called in its place.
    let mut targets = BTreeMap::new();
    for function in functions {
        let Some(own) = address(&companion, &function) else {
            return Err(format!("the companion has no {}", function.to_string_lossy()));
        };
        let theirs = address(&library, &function);
        targets.insert(function, (theirs, own));
    }
    // Others have addresses in it from now on.
    let _ = companion.into_raw();
    each_slot(name, &mut |slot| match targets.get(slot.function) {
        Some(&(theirs, own)) if slot.is_unbound() || theirs == Some(slot.value()) => slot.write(own),
        // It leads elsewhere, or is the companion's by now, or its object was loaded a moment ago.
        _ => Ok(()),
    })
}

/// Where a function of the library begins.
fn address(library: &Library, name: &CStr) -> Option<usize> {
    // SAFETY: the address alone is used.
    let symbol = unsafe { library.get::<*const c_void>(name.to_bytes_with_nul()) }.ok()?;
    Some(symbol.as_raw_ptr() as usize)
}

/// The library, and the file that it was loaded from.
fn path_of(library: Library) -> (Library, Option<PathBuf>) {
    /// The beginning of what the loader keeps of an object (`link_map` of link.h).
    #[repr(C)]
    struct LinkMap {
        base: usize,
        name: *const c_char,
    }
    let handle = library.into_raw();
    let mut map: *const LinkMap = std::ptr::null();
    // SAFETY: the handle is an open library's, and the answer to this request is one pointer.
    let answer = unsafe { libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) };
    // SAFETY: what the loader has answered with lives as long as the library, and so does the name, which is copied.
    let name = (answer == 0 && !map.is_null()).then(|| unsafe { CStr::from_ptr((*map).name) });
    let path = name.map(|name| PathBuf::from(OsStr::from_bytes(name.to_bytes())));
    // SAFETY: the handle is the one that was just taken from a library.
    (unsafe { Library::from_raw(handle) }, path)
}

/// An address that the loader writes for an object: where a function of another object is.
struct Slot<'a> {
    function: &'a CStr,
    place: &'a AtomicUsize,
    /// What of the object can be written only after asking for it (PT_GNU_RELRO), in whole pages.
    protected: Range<usize>,
    /// Where the object lies.
    object: Range<usize>,
}

impl Slot<'_> {
    fn value(&self) -> usize {
        self.place.load(Ordering::Relaxed)
    }

    /// Whether the loader will write it when the function is called for the first time: until then it leads back into the object.
    fn is_unbound(&self) -> bool {
        self.object.contains(&self.value())
    }

    fn write(&self, target: usize) -> Result<(), String> {
        let at = self.place.as_ptr() as usize;
        let protect = |rights: c_int| {
            if !self.protected.contains(&at) {
                return Ok(());
            }
            let page = page()?;
            // SAFETY: a page of addresses and constants of the object, which can be read all the while.
            match unsafe { libc::mprotect((at / page * page) as *mut c_void, page, rights) } {
                0 => Ok(()),
                _ => Err(format!("an address: {}", std::io::Error::last_os_error())),
            }
        };
        protect(libc::PROT_READ | libc::PROT_WRITE)?;
        self.place.store(target, Ordering::SeqCst);
        protect(libc::PROT_READ)
    }
}

/// The size of a page in bytes.
fn page() -> Result<usize, String> {
    // SAFETY: sysconf only answers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_err(|error| error.to_string())
}

/// Hands out all addresses of nvJitLink's functions in objects that are linked with the library of this name, until one says no. Meanwhile
/// the loader loads and unloads nothing, so that whoever looks must not ask it for anything.
fn each_slot(name: &str, look: &mut dyn FnMut(&Slot) -> Result<(), String>) -> Result<(), String> {
    struct Search<'a> {
        name: &'a str,
        page: usize,
        look: &'a mut dyn FnMut(&Slot) -> Result<(), String>,
        result: Result<(), String>,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: the search is the one below, which nobody else uses meanwhile.
        let search = unsafe { &mut *search.cast::<Search>() };
        // SAFETY: the loader describes an object that stays loaded during the call.
        let object = unsafe { Object::read(&*info, search.page) };
        // A panic must not reach the loader.
        let visited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match object {
            Some(object) => object.each_slot(search.name, search.look),
            None => Ok(()),
        }));
        search.result = visited.unwrap_or_else(|_| Err("an internal error".into()));
        c_int::from(search.result.is_err())
    }
    let mut search = Search {
        name,
        page: page()?,
        look,
        result: Ok(()),
    };
    // SAFETY: `visit` has the type that is asked for, and gets a search that outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.result
}

/// A loaded object's tables for the loader.
struct Object<'a> {
    base: usize,
    lies: Range<usize>,
    protected: Range<usize>,
    dynamic: &'a [Dyn64<NativeEndian>],
    names: *const c_char,
    symbols: *const Sym64<NativeEndian>,
}

impl<'a> Object<'a> {
    /// `None` if it has none.
    ///
    /// # Safety
    /// The loader describes the object, and it stays loaded as long as the answer is used.
    unsafe fn read(info: &'a libc::dl_phdr_info, page: usize) -> Option<Object<'a>> {
        let base = usize::try_from(info.dlpi_addr).ok()?;
        if info.dlpi_phdr.is_null() {
            return None;
        }
        // SAFETY: the loader says how many headers lie there.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let range = |header: &libc::Elf64_Phdr| {
            let start = base.wrapping_add(header.p_vaddr as usize);
            start..start.saturating_add(header.p_memsz as usize)
        };
        let of_kind = |kind: u32| headers.iter().filter(move |header| header.p_type == kind);
        let loaded = of_kind(libc::PT_LOAD).map(range);
        let lies = loaded.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end))?;
        let relro = of_kind(libc::PT_GNU_RELRO).map(range).next().unwrap_or(0..0);
        let table = of_kind(libc::PT_DYNAMIC).map(range).next()?;
        let entries = table.len() / size_of::<Dyn64<NativeEndian>>();
        // SAFETY: the object's dynamic section, which is loaded and aligned; the loader has written to it before the object was used.
        let dynamic = unsafe { std::slice::from_raw_parts(table.start as *const Dyn64<NativeEndian>, entries) };
        let mut object = Object {
            base,
            lies,
            protected: relro.start / page * page..relro.end / page * page,
            dynamic,
            names: std::ptr::null(),
            symbols: std::ptr::null(),
        };
        object.names = object.place(elf::DT_STRTAB)? as *const c_char;
        object.symbols = object.place(elf::DT_SYMTAB)? as *const Sym64<NativeEndian>;
        Some(object)
    }

    /// What entries of the dynamic section say, up to its end.
    fn values(&self, tag: DynamicTag) -> impl Iterator<Item = usize> {
        let entries = self.dynamic.iter();
        let entries = entries.take_while(|entry| entry.d_tag.get(NativeEndian) != elf::DT_NULL);
        let of_tag = entries.filter(move |entry| entry.d_tag.get(NativeEndian) == tag);
        of_tag.map(|entry| entry.d_val.get(NativeEndian) as usize)
    }

    /// Where a table lies. glibc has put addresses in the place of what the file says; it does not where the section cannot be written.
    fn place(&self, tag: DynamicTag) -> Option<usize> {
        let value = self.values(tag).next()?;
        let moved = self.base.wrapping_add(value);
        [value, moved].into_iter().find(|place| self.lies.contains(place))
    }

    fn name(&self, offset: usize) -> &'a CStr {
        // SAFETY: offsets are the object's own, into its table of names that end with NUL.
        unsafe { CStr::from_ptr(self.names.add(offset)) }
    }

    fn relocations(&self, table: DynamicTag, bytes: DynamicTag) -> &'a [Rela64<NativeEndian>] {
        let (Some(place), Some(bytes)) = (self.place(table), self.values(bytes).next()) else {
            return &[];
        };
        // SAFETY: the object says so of its own table, which is aligned; the loader has applied it.
        unsafe {
            std::slice::from_raw_parts(
                place as *const Rela64<NativeEndian>,
                bytes / size_of::<Rela64<NativeEndian>>(),
            )
        }
    }

    fn each_slot(&self, name: &str, look: &mut dyn FnMut(&Slot) -> Result<(), String>) -> Result<(), String> {
        let mut needed = self.values(elf::DT_NEEDED);
        if !needed.any(|offset| self.name(offset).to_bytes() == name.as_bytes()) {
            return Ok(());
        }
        let for_calls = self.relocations(elf::DT_JMPREL, elf::DT_PLTRELSZ);
        let others = self.relocations(elf::DT_RELA, elf::DT_RELASZ);
        for relocation in for_calls.iter().chain(others) {
            let kind = relocation.r_type(NativeEndian, false);
            if ![elf::R_X86_64_JUMP_SLOT, elf::R_X86_64_GLOB_DAT, elf::R_X86_64_64].contains(&kind) {
                continue;
            }
            // SAFETY: a relocation names a symbol of its object's own table.
            let symbol = unsafe { &*self.symbols.add(relocation.r_sym(NativeEndian, false) as usize) };
            if symbol.st_shndx.get(NativeEndian) != elf::SHN_UNDEF {
                continue;
            }
            let function = self.name(symbol.st_name.get(NativeEndian) as usize);
            if !PREFIXES.iter().any(|prefix| function.to_bytes().starts_with(prefix)) {
                continue;
            }
            let at = self.base.wrapping_add(relocation.r_offset.get(NativeEndian) as usize);
            if !at.is_multiple_of(align_of::<AtomicUsize>()) {
                continue;
            }
            look(&Slot {
                function,
                // SAFETY: the loader has written an address here, in a segment of the object's, and it is aligned.
                place: unsafe { AtomicUsize::from_ptr(at as *mut usize) },
                protected: self.protected.clone(),
                object: self.lies.clone(),
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_linked_with_it_has_no_slots() {
        let mut slots = 0;
        let mut count = |_: &Slot| {
            slots += 1;
            Ok(())
        };
        each_slot("libnvJitLink.so.13", &mut count).unwrap();
        assert_eq!(slots, 0);
        assert!(call_companion("libnvJitLink.so.13", Path::new("/nowhere")).is_err());
        assert!(
            call_companion("libc.so.6", Path::new("/nowhere"))
                .unwrap_err()
                .contains("nobody is linked")
        );
    }

    #[test]
    fn this_program_is_read_as_the_loader_reads_it() {
        unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
            // SAFETY: the loader's description, used during the call alone.
            let object = unsafe { Object::read(&*info, 4096) };
            // SAFETY: the pointer is to the number below.
            let found = unsafe { &mut *found.cast::<usize>() };
            let Some(object) = object else { return 0 };
            let needs_libc = object
                .values(elf::DT_NEEDED)
                .any(|offset| object.name(offset) == c"libc.so.6");
            for relocation in object.relocations(elf::DT_RELA, elf::DT_RELASZ) {
                // SAFETY: a relocation names a symbol of its object's own table.
                let symbol = unsafe { &*object.symbols.add(relocation.r_sym(NativeEndian, false) as usize) };
                let name = object.name(symbol.st_name.get(NativeEndian) as usize);
                let at = object.base + relocation.r_offset.get(NativeEndian) as usize;
                if needs_libc && name == c"dl_iterate_phdr" {
                    // SAFETY: an address that the loader has written.
                    let value = unsafe { *(at as *const usize) };
                    assert_eq!(value, libc::dl_iterate_phdr as *const () as usize);
                    *found += 1;
                }
            }
            0
        }
        let mut found = 0_usize;
        // SAFETY: `visit` has the type that is asked for, and gets a number that outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
        assert!(found > 0);
    }
}
