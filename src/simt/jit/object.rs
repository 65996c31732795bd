//! Loads the compiler's objects: relocatable ELF files for x86-64, from the compiler or from the cache on disk.
//!
//! Everything that code needs comes to lie in one mapping: functions first, then what they read, then what they write, each
//! part with the rights of its kind. Nothing is ever writable and executable at once. What lies outside is found through
//! the caller's closure; a function too far away for a call is called through a stub.
//!
//! A file from a cache may hold anything: all that is read from it is checked, and what is not known here is refused.

use std::collections::HashMap;
use std::ops::Range;
use std::ptr;

use object::elf::{self, FileHeader64, Rela64, SectionHeader64, Sym64};
use object::read::elf::{FileHeader, Rela, SectionHeader, SectionTable, Sym, SymbolTable};
use object::{LittleEndian, SectionIndex, SymbolIndex};

type Header = FileHeader64<LittleEndian>;
type Section = SectionHeader64<LittleEndian>;
type Symbols<'a> = SymbolTable<'a, Header>;
type Sections<'a> = SectionTable<'a, Header>;

/// Those of a section, by its number.
type Relocations<'a> = (usize, &'a [Rela64<LittleEndian>]);

const LE: LittleEndian = LittleEndian;
const PAGE: usize = 4096;
/// The most that an object may occupy in memory: sizes in damaged files are anything.
const MOST: usize = 1 << 28;

/// `jmp *offset(%rip)`, and two bytes to make a stub 8 long.
const STUB: [u8; 8] = [0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc];

/// Loaded code. It is unmapped when this is dropped, so whoever runs it or holds an address in it keeps this.
pub struct Code {
    mapping: Mapping,
    /// Offsets in the mapping.
    symbols: HashMap<String, usize>,
}

impl Code {
    /// Loads an object, whose undefined symbols `resolve` knows: functions anywhere, data anywhere if the code takes its address
    /// from the table of addresses, as it does for what is not `dso_local`.
    pub fn load(bytes: &[u8], resolve: impl Fn(&str) -> Option<*const u8>) -> Result<Code, String> {
        Loader::new(bytes)?.load(resolve)
    }

    /// The address of a function or variable that the object defines and does not keep to itself.
    pub fn symbol(&self, name: &str) -> Option<*const u8> {
        let offset = *self.symbols.get(name)?;
        Some(self.mapping.start.cast_const().wrapping_add(offset))
    }

    /// How much memory the code occupies.
    pub fn bytes(&self) -> usize {
        self.mapping.len
    }
}

/// The kinds of memory, in the order in which they lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// Constants, also those that contain addresses, and the table of addresses.
    Constants,
    Data,
}

/// A section that is loaded: where it will lie, from the start of the mapping.
#[derive(Clone, Copy)]
struct Place {
    offset: usize,
    len: usize,
}

/// What is known of an object before there is memory for it.
struct Loader<'a> {
    bytes: &'a [u8],
    sections: Sections<'a>,
    symbols: Symbols<'a>,
    /// By section; `None` = not loaded.
    places: Vec<Option<Place>>,
    stubs: usize,
    slots: usize,
    /// Where stubs and slots lie, and how many there is room for.
    most_stubs: usize,
    most_slots: usize,
    constants: Range<usize>,
    text: Range<usize>,
    len: usize,
}

impl<'a> Loader<'a> {
    /// Reads the tables and lays the sections out.
    fn new(bytes: &'a [u8]) -> Result<Loader<'a>, String> {
        let header = Header::parse(bytes).map_err(in_words)?;
        if !header.is_class_64() || !header.is_little_endian() {
            return Err("the object is not of 64 bits, little-endian".into());
        }
        if header.e_machine(LE) != elf::EM_X86_64 || header.e_type(LE) != elf::ET_REL {
            return Err("the object is no relocatable one for x86-64".into());
        }
        let sections = header.sections(LE, bytes).map_err(in_words)?;
        let symbols = sections.symbols(LE, bytes, elf::SHT_SYMTAB).map_err(in_words)?;

        let mut kinds = Vec::with_capacity(sections.len());
        for section in sections.iter() {
            kinds.push(kind(section, &sections)?);
        }
        let mut loader = Loader {
            bytes,
            sections,
            symbols,
            places: vec![None; kinds.len()],
            stubs: 0,
            slots: 0,
            most_stubs: 0,
            most_slots: 0,
            constants: 0..0,
            text: 0..0,
            len: 0,
        };
        loader.count(&kinds)?;

        let mut end = 0;
        end = loader.lay_out(&kinds, Kind::Text, end)?;
        loader.stubs = align(end, STUB.len());
        loader.text = 0..align(loader.stubs + loader.most_stubs * STUB.len(), PAGE);
        end = loader.lay_out(&kinds, Kind::Constants, loader.text.end)?;
        loader.slots = align(end, 8);
        loader.constants = loader.text.end..align(loader.slots + loader.most_slots * 8, PAGE);
        end = loader.lay_out(&kinds, Kind::Data, loader.constants.end)?;
        loader.len = align(end, PAGE);
        match loader.len {
            0 => Err("the object is empty".into()),
            len if len > MOST => Err("the object is too large".into()),
            _ => Ok(loader),
        }
    }

    /// How many stubs and slots there may be: no more than relocations that may need one, and than symbols.
    fn count(&mut self, kinds: &[Option<Kind>]) -> Result<(), String> {
        for (_, relocations) in self.relocated(kinds)? {
            for relocation in relocations {
                match relocation.r_type(LE, false) {
                    elf::R_X86_64_PLT32 => self.most_stubs += 1,
                    elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => {
                        self.most_slots += 1
                    }
                    _ => {}
                }
            }
        }
        self.most_stubs = self.most_stubs.min(self.symbols.len());
        // A stub has a slot, too.
        self.most_slots = (self.most_slots + self.most_stubs).min(self.symbols.len());
        Ok(())
    }

    /// The relocations of what is loaded, with the section that each list is for.
    fn relocated(&self, kinds: &[Option<Kind>]) -> Result<Vec<Relocations<'a>>, String> {
        let mut lists = Vec::new();
        for section in self.sections.iter() {
            let target = section.sh_info(LE) as usize;
            let loaded = kinds.get(target).is_some_and(|kind| kind.is_some());
            match section.sh_type(LE) {
                elf::SHT_REL if loaded => return Err("relocations without addends are not known".into()),
                elf::SHT_RELA if loaded => {
                    let Some((relocations, link)) = section.rela(LE, self.bytes).map_err(in_words)? else {
                        continue;
                    };
                    if link != self.symbols.section() {
                        return Err("relocations refer to another table of symbols".into());
                    }
                    lists.push((target, relocations));
                }
                _ => {}
            }
        }
        Ok(lists)
    }

    /// Gives the sections of a kind their places from `start`, and says where they end.
    fn lay_out(&mut self, kinds: &[Option<Kind>], wanted: Kind, start: usize) -> Result<usize, String> {
        let mut end = start;
        for (index, section) in self.sections.iter().enumerate() {
            if kinds[index] != Some(wanted) {
                continue;
            }
            let alignment = section.sh_addralign(LE).max(1);
            if !alignment.is_power_of_two() || alignment > PAGE as u64 {
                return Err(format!("a section is aligned to {alignment}"));
            }
            let len = usize::try_from(section.sh_size(LE)).ok().filter(|len| *len <= MOST);
            let len = len.ok_or("a section is too large")?;
            let offset = align(end, alignment as usize);
            self.places[index] = Some(Place { offset, len });
            end = offset + len;
            if end > MOST {
                return Err("the object is too large".into());
            }
        }
        Ok(end)
    }

    fn load(self, resolve: impl Fn(&str) -> Option<*const u8>) -> Result<Code, String> {
        let mut mapping = Mapping::new(self.len)?;
        for (section, place) in self.sections.iter().zip(&self.places) {
            let Some(place) = place else { continue };
            // What takes no room in the file is zero, as the mapping is.
            let data = section.data(LE, self.bytes).map_err(in_words)?;
            if !data.is_empty() {
                mapping
                    .contents()
                    .get_mut(place.offset..place.offset + place.len)
                    .filter(|contents| contents.len() == data.len())
                    .ok_or("a section is longer than the file")?
                    .copy_from_slice(data);
            }
        }

        let kinds: Vec<_> = self.places.iter().map(|place| place.map(|_| Kind::Text)).collect();
        let lists = self.relocated(&kinds)?;
        let mut linker = Linker {
            base: mapping.start as u64,
            contents: mapping.contents(),
            resolve,
            addresses: HashMap::new(),
            stubs: HashMap::new(),
            slots: HashMap::new(),
            loader: &self,
        };
        for (target, relocations) in lists {
            let place = self.places[target].ok_or("relocations of a section that is not loaded")?;
            for relocation in relocations {
                linker.relocate(place, relocation)?;
            }
        }

        let symbols = self.exports()?;
        mapping.protect(self.text, libc::PROT_READ | libc::PROT_EXEC)?;
        mapping.protect(self.constants, libc::PROT_READ)?;
        Ok(Code { mapping, symbols })
    }

    /// What the object offers.
    fn exports(&self) -> Result<HashMap<String, usize>, String> {
        let mut exports = HashMap::new();
        for (index, symbol) in self.symbols.enumerate() {
            let bound = matches!(symbol.st_bind(), elf::STB_GLOBAL | elf::STB_WEAK);
            if !bound || !matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_OBJECT | elf::STT_NOTYPE) {
                continue;
            }
            if let Some(offset) = self.defined(index, symbol)? {
                exports.insert(self.name(symbol)?.into(), offset);
            }
        }
        Ok(exports)
    }

    /// Where a symbol that the object defines will lie; `None` if it does not define it, or not in what is loaded.
    fn defined(&self, index: SymbolIndex, symbol: &Sym64<LittleEndian>) -> Result<Option<usize>, String> {
        let section = self.symbols.symbol_section(LE, symbol, index).map_err(in_words)?;
        let Some(SectionIndex(section)) = section else {
            return Ok(None);
        };
        let Some(place) = self.places.get(section).copied().flatten() else {
            return Ok(None);
        };
        // The end of a section is a place, too.
        match usize::try_from(symbol.st_value(LE)) {
            Ok(value) if value <= place.len => Ok(Some(place.offset + value)),
            _ => Err("a symbol lies outside its section".into()),
        }
    }

    fn name(&self, symbol: &Sym64<LittleEndian>) -> Result<&'a str, String> {
        let name = self.symbols.symbol_name(LE, symbol).map_err(in_words)?;
        std::str::from_utf8(name).map_err(in_words)
    }
}

/// What to do with a section: load it as what, or leave it out.
fn kind(section: &Section, sections: &Sections) -> Result<Option<Kind>, String> {
    let flags = section.sh_flags(LE);
    let has = |flag: elf::SectionFlags| flags.contains(flag);
    if !has(elf::SHF_ALLOC) {
        return Ok(None);
    }
    let name = sections.section_name(LE, section).map_err(in_words)?;
    let refuse = |why: &str| Err(format!("section {} {why}", String::from_utf8_lossy(name)));
    if has(elf::SHF_TLS) {
        return refuse("is for variables of threads");
    }
    // Nobody unwinds through compiled kernels.
    if section.sh_type(LE) == elf::SHT_X86_64_UNWIND || name == b".eh_frame" {
        return Ok(None);
    }
    if !matches!(section.sh_type(LE), elf::SHT_PROGBITS | elf::SHT_NOBITS) {
        return refuse("is of a kind that is not known");
    }
    match (has(elf::SHF_EXECINSTR), has(elf::SHF_WRITE)) {
        (true, true) => refuse("is writable and executable"),
        (true, false) => Ok(Some(Kind::Text)),
        // Constants that contain addresses are written to while they are relocated, and not later.
        (false, true) if name.starts_with(b".data.rel.ro") => Ok(Some(Kind::Constants)),
        (false, true) => Ok(Some(Kind::Data)),
        (false, false) => Ok(Some(Kind::Constants)),
    }
}

/// Applies relocations to a mapping that is still writable.
struct Linker<'l, 'a, R> {
    /// The address of the mapping.
    base: u64,
    contents: &'l mut [u8],
    resolve: R,
    /// Of symbols that were asked for.
    addresses: HashMap<usize, u64>,
    /// Addresses of the stubs and slots there are so far, by what they lead to.
    stubs: HashMap<u64, u64>,
    slots: HashMap<u64, u64>,
    loader: &'l Loader<'a>,
}

impl<R: Fn(&str) -> Option<*const u8>> Linker<'_, '_, R> {
    fn relocate(&mut self, section: Place, relocation: &Rela64<LittleEndian>) -> Result<(), String> {
        let kind = relocation.r_type(LE, false);
        let width = match kind {
            elf::R_X86_64_NONE => return Ok(()),
            elf::R_X86_64_64 | elf::R_X86_64_PC64 => 8,
            elf::R_X86_64_32
            | elf::R_X86_64_32S
            | elf::R_X86_64_PC32
            | elf::R_X86_64_PLT32
            | elf::R_X86_64_GOTPCREL
            | elf::R_X86_64_GOTPCRELX
            | elf::R_X86_64_REX_GOTPCRELX => 4,
            kind => return Err(format!("relocations of type {kind} are not known")),
        };
        let offset = usize::try_from(relocation.r_offset(LE)).ok();
        let offset = offset
            .filter(|offset| offset.checked_add(width).is_some_and(|end| end <= section.len))
            .ok_or("a relocation lies outside its section")?
            + section.offset;
        let place = self.base + offset as u64;
        let addend = relocation.r_addend(LE) as u64;
        let index = SymbolIndex(relocation.r_sym(LE, false) as usize);
        let target = self.address(index)?;

        let absolute = target.wrapping_add(addend);
        let relative = absolute.wrapping_sub(place);
        let value = match kind {
            elf::R_X86_64_64 => absolute,
            elf::R_X86_64_PC64 => relative,
            elf::R_X86_64_32 => match u32::try_from(absolute) {
                Ok(_) => absolute,
                Err(_) => return Err(self.too_far(index)),
            },
            elf::R_X86_64_32S => match i32::try_from(absolute as i64) {
                Ok(_) => absolute,
                Err(_) => return Err(self.too_far(index)),
            },
            // A call: a stub calls on, if need be.
            elf::R_X86_64_PLT32 if !is_near(relative) => self.stub(target)?.wrapping_add(addend).wrapping_sub(place),
            elf::R_X86_64_PLT32 | elf::R_X86_64_PC32 => relative,
            _ => self.slot(target)?.wrapping_add(addend).wrapping_sub(place),
        };
        if width == 8 {
            self.write(offset, &value.to_le_bytes())
        } else if is_near(value) || kind == elf::R_X86_64_32 {
            self.write(offset, &(value as u32).to_le_bytes())
        } else {
            Err(self.too_far(index))
        }
    }

    /// Where a symbol lies, here or elsewhere.
    fn address(&mut self, index: SymbolIndex) -> Result<u64, String> {
        if let Some(address) = self.addresses.get(&index.0) {
            return Ok(*address);
        }
        let symbols = &self.loader.symbols;
        let symbol = symbols.symbol(index).map_err(in_words)?;
        let address = match symbol.st_shndx(LE) {
            _ if symbol.st_type() == elf::STT_TLS || symbol.st_type() == elf::STT_GNU_IFUNC => {
                return Err(format!("{} is of a kind that is not known", self.loader.name(symbol)?));
            }
            // No symbol: the addend is all.
            elf::SHN_UNDEF if index.0 == 0 => 0,
            elf::SHN_UNDEF => {
                let name = self.loader.name(symbol)?;
                (self.resolve)(name).ok_or_else(|| format!("{name} is not defined"))? as u64
            }
            elf::SHN_ABS => symbol.st_value(LE),
            _ => match self.loader.defined(index, symbol)? {
                Some(offset) => self.base + offset as u64,
                None => return Err("a symbol lies in nothing that is loaded".into()),
            },
        };
        self.addresses.insert(index.0, address);
        Ok(address)
    }

    /// The address of a slot that holds an address.
    fn slot(&mut self, target: u64) -> Result<u64, String> {
        if let Some(slot) = self.slots.get(&target) {
            return Ok(*slot);
        }
        if self.slots.len() == self.loader.most_slots {
            return Err("the table of addresses is full".into());
        }
        let offset = self.loader.slots + self.slots.len() * 8;
        self.write(offset, &target.to_le_bytes())?;
        self.slots.insert(target, self.base + offset as u64);
        Ok(self.base + offset as u64)
    }

    /// The address of a stub that leads to an address.
    fn stub(&mut self, target: u64) -> Result<u64, String> {
        if let Some(stub) = self.stubs.get(&target) {
            return Ok(*stub);
        }
        if self.stubs.len() == self.loader.most_stubs {
            return Err("there is no room for another stub".into());
        }
        let slot = self.slot(target)?;
        let offset = self.loader.stubs + self.stubs.len() * STUB.len();
        let stub = self.base + offset as u64;
        let mut bytes = STUB;
        // From the end of the instruction, within a mapping far smaller than 2 GiB.
        bytes[2..6].copy_from_slice(&(slot.wrapping_sub(stub + 6) as u32).to_le_bytes());
        self.write(offset, &bytes)?;
        self.stubs.insert(target, stub);
        Ok(stub)
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), String> {
        let place = offset
            .checked_add(bytes.len())
            .and_then(|end| self.contents.get_mut(offset..end));
        place
            .ok_or("a relocation lies outside the code")?
            .copy_from_slice(bytes);
        Ok(())
    }

    fn too_far(&self, index: SymbolIndex) -> String {
        let symbol = self.loader.symbols.symbol(index).ok();
        let name = symbol.and_then(|symbol| self.loader.name(symbol).ok()).unwrap_or("?");
        format!("{name} is too far away for the code that refers to it")
    }
}

/// Memory of ours, writable until it is protected.
struct Mapping {
    start: *mut u8,
    len: usize,
}

// SAFETY: the memory belongs to no thread; it is written to through `&mut` alone. What compiled code writes is the code's matter.
unsafe impl Send for Mapping {}
// SAFETY: through `&` it only gives addresses.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// So many bytes, in whole pages.
    fn new(len: usize) -> Result<Mapping, String> {
        // SAFETY: new memory, where the system likes.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(format!("no memory for code: {}", std::io::Error::last_os_error()));
        }
        Ok(Mapping {
            start: start.cast(),
            len,
        })
    }

    /// Only before it is protected.
    fn contents(&mut self) -> &mut [u8] {
        // SAFETY: ours, mapped, initialised with zeros, and borrowed as this is. `protect` comes after the last of these.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }

    fn protect(&mut self, pages: Range<usize>, rights: i32) -> Result<(), String> {
        if pages.is_empty() {
            return Ok(());
        }
        // SAFETY: whole pages of this mapping, to which nobody has a reference.
        match unsafe { libc::mprotect(self.start.add(pages.start).cast(), pages.len(), rights) } {
            0 => Ok(()),
            _ => Err(format!("code cannot be protected: {}", std::io::Error::last_os_error())),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: ours alone, and nobody uses it any more, as `Code` asks.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}

/// A distance that 32 bits hold.
fn is_near(distance: u64) -> bool {
    i32::try_from(distance as i64).is_ok()
}

fn align(offset: usize, to: usize) -> usize {
    offset.next_multiple_of(to)
}

fn in_words(error: impl std::fmt::Display) -> String {
    format!("the object is damaged: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simt::jit::library::{Emit, for_tests};

    /// Calls outside, at both ends of memory, by call and by address; a jump table; constants; a variable; and one that contains
    /// an address.
    const EVERYTHING: &str = r#"
        target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
        declare i32 @outside(i32)
        declare i32 @far(i32)
        @elsewhere = external global i32
        @counter = global i32 5
        @zeros = global [1000 x i32] zeroinitializer
        @table = constant [2 x ptr] [ptr @twice, ptr @outside]
        define internal i32 @twice(i32 %x) {
            %y = shl i32 %x, 1
            ret i32 %y
        }
        define i32 @calls(i32 %x) {
            %a = call i32 @outside(i32 %x)
            %b = call i32 @far(i32 %a)
            %c = call i32 @far(i32 %b)
            ret i32 %c
        }
        define i32 @indirectly(i32 %i, i32 %x) {
            %p = getelementptr ptr, ptr @table, i32 %i
            %f = load ptr, ptr %p
            %r = call i32 %f(i32 %x)
            ret i32 %r
        }
        define i32 @count() {
            %old = load i32, ptr @counter
            %e = load i32, ptr @elsewhere
            %new = add i32 %old, %e
            store i32 %new, ptr @counter
            %z = load i32, ptr getelementptr (i32, ptr @zeros, i32 999)
            %r = add i32 %new, %z
            ret i32 %r
        }
        define ptr @where() {
            ret ptr @far
        }
        define double @choose(i32 %x) {
            switch i32 %x, label %z [
                i32 0, label %a
                i32 1, label %b
                i32 2, label %c
                i32 3, label %d
                i32 4, label %e
            ]
        a:  ret double 1.25
        b:  call i32 @outside(i32 0)
            ret double 2.5
        c:  call i32 @far(i32 0)
            ret double 3.75
        d:  call i32 @outside(i32 1)
            ret double 4.125
        e:  call i32 @far(i32 1)
            ret double 5.5
        z:  ret double 0.0
        }
        define <16 x i32> @lanes(<16 x i32> %x) {
            %y = mul <16 x i32> %x, <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 17>
            ret <16 x i32> %y
        }
    "#;

    extern "C" fn outside(x: i32) -> i32 {
        x + 1
    }

    /// Code at an address that no call reaches from where mappings lie: `lea eax, [rdi + rdi * 2]; ret`.
    fn far() -> *const u8 {
        static FAR: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        let map = |hint: usize| {
            let rights = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
            // SAFETY: new memory, where nothing is; it is written to once.
            unsafe {
                let page = libc::mmap(hint as _, PAGE, rights, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
                assert_ne!(page, libc::MAP_FAILED);
                page.cast::<[u8; 4]>().write([0x8d, 0x04, 0x7f, 0xc3]);
                page as usize
            }
        };
        // The system puts it elsewhere if something is there.
        let find = || (32..46).map(|bit| 1 << bit).find(|hint| map(*hint) == *hint).unwrap();
        *FAR.get_or_init(find) as *const u8
    }

    static ELSEWHERE: i32 = 100;

    fn resolve(name: &str) -> Option<*const u8> {
        match name {
            "outside" => Some(outside as *const u8),
            "far" => Some(far()),
            "elsewhere" => Some((&raw const ELSEWHERE).cast()),
            _ => None,
        }
    }

    fn compiled(ir: &str, level: u32) -> Option<Vec<u8>> {
        Some(for_tests()?.compile(ir, "", level, Emit::Object).unwrap())
    }

    /// What a function of the code is, as Rust calls it.
    macro_rules! function {
        ($code:expr, $name:literal, $type:ty) => {
            // SAFETY: the tests know the types of their functions.
            unsafe { std::mem::transmute::<*const u8, $type>($code.symbol($name).unwrap()) }
        };
    }

    #[test]
    fn code_runs() {
        for level in 0..=3 {
            let Some(object) = compiled(EVERYTHING, level) else {
                return;
            };
            let code = Code::load(&object, resolve).unwrap();
            assert!(code.bytes() >= 3 * PAGE && code.bytes().is_multiple_of(PAGE));
            assert_eq!(function!(code, "calls", extern "C" fn(i32) -> i32)(4), 45);
            let indirectly = function!(code, "indirectly", extern "C" fn(i32, i32) -> i32);
            assert_eq!((indirectly(0, 21), indirectly(1, 21)), (42, 22));
            let count = function!(code, "count", extern "C" fn() -> i32);
            assert_eq!((count(), count()), (105, 205));
            assert_eq!(function!(code, "where", extern "C" fn() -> *const u8)(), far());
            let choose = function!(code, "choose", extern "C" fn(i32) -> f64);
            assert_eq!(
                [0, 1, 2, 3, 4, 5].map(|x| choose(x)),
                [1.25, 2.5, 3.75, 4.125, 5.5, 0.0]
            );
            assert_eq!(code.symbol("twice"), None);
            assert_eq!(code.symbol("outside"), None);
        }
    }

    #[test]
    fn no_memory_is_writable_and_executable() {
        let Some(object) = compiled(EVERYTHING, 1) else { return };
        let code = Code::load(&object, resolve).unwrap();
        let rights = |address: usize| {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let line = maps.lines().find(|line| {
                let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
                let number = |digits| usize::from_str_radix(digits, 16).unwrap();
                (number(start)..number(end)).contains(&address)
            });
            line.unwrap().split(' ').nth(1).unwrap().to_string()
        };
        assert_eq!(rights(code.symbol("calls").unwrap() as usize), "r-xp");
        assert_eq!(rights(code.symbol("table").unwrap() as usize), "r--p");
        assert_eq!(rights(code.symbol("counter").unwrap() as usize), "rw-p");
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let refused = |ir: &str| compiled(ir, 1).map(|object| Code::load(&object, resolve).err().unwrap());
        for (ir, expected) in [
            (
                "declare void @nobody() define void @f() { call void @nobody() ret void }",
                "nobody is not defined",
            ),
            (
                "@t = thread_local global i32 0 define i32 @f() { %v = load i32, ptr @t ret i32 %v }",
                "variables of threads",
            ),
            (
                "@far = external dso_local global i32 define ptr @f() { ret ptr @far }",
                "far is too far away",
            ),
            (
                "@c = common global i32 0 define ptr @f() { ret ptr @c }",
                "in nothing that is loaded",
            ),
        ] {
            let Some(message) = refused(ir) else { return };
            assert!(message.contains(expected), "{message}");
        }
        assert!(Code::load(b"", resolve).is_err());
        assert!(Code::load(b"\x7fELF", resolve).is_err());
        let executable = std::fs::read("/proc/self/exe").unwrap();
        assert!(Code::load(&executable, resolve).is_err());
    }

    /// A process may have some 65,000 mappings, and each piece of code is several.
    #[test]
    fn memory_is_returned() {
        let Some(object) = compiled(EVERYTHING, 1) else { return };
        for _ in 0..40_000 {
            Code::load(&object, resolve).unwrap();
        }
    }

    /// Damaged files are loaded or refused, and nothing else happens. What is loaded is not run.
    #[test]
    fn damage_does_no_harm() {
        let Some(object) = compiled(EVERYTHING, 1) else { return };
        for len in 0..object.len() {
            let _ = Code::load(&object[..len], resolve);
        }
        // xorshift64
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        let (mut loaded, mut refused) = (0, 0);
        for _ in 0..30_000 {
            let mut damaged = object.clone();
            for _ in 0..1 + random() % 4 {
                // The tables at the end and the header at the start are where it matters.
                let at = match random() % 4 {
                    0 => random() % 64,
                    1 => random() % object.len(),
                    _ => object.len() - 1 - random() % (object.len() * 3 / 4),
                };
                damaged[at] = match random() % 4 {
                    0 => 0xff,
                    1 => damaged[at] ^ (1 << (random() % 8)),
                    2 => random() as u8 % 64,
                    _ => random() as u8,
                };
            }
            match Code::load(&damaged, resolve) {
                Ok(_) => loaded += 1,
                Err(_) => refused += 1,
            }
        }
        assert!(loaded > 100 && refused > 100, "{loaded} loaded, {refused} refused");
    }
}
