//! What `cuModuleLoad*`, `cuLibraryLoad*` and `cuLinkAdd*` are handed → PTX text.
//!
//! What is handed over is a pointer of unknown extent, bytes, or a file: fat binaries bare or behind a wrapper, PTX
//! text, cubins, host objects, programs, archives. It becomes an [`Image`]: the units to link, each with its PTX in the
//! variants its builder chose, and a list of everything found.
//!
//! ```text
//! mod.rs      what an image is; which reader takes it
//! source.rs   reading from a slice, or from an address without crashing
//! fatbin.rs   wrappers, headers, entries        elf.rs   objects, programs, archives, cubins
//! packed.rs   LZ4, zstd                         text.rs  byte order marks, NULs, `.version` and `.target`
//! linked.rs   what our own linker makes
//! message.rs  what to say when there is no PTX  error.rs
//! ```
//!
//! An image without PTX is accepted: programs load hundreds of such and use none. Whoever needs its code then finds no
//! units, and [`Image::no_ptx_message`] has the words. Nothing is decompressed before [`PtxEntry::text`] is called.

mod elf;
mod error;
mod fatbin;
pub mod linked;
mod message;
mod packed;
mod source;
mod text;

#[cfg(test)]
mod tests;

pub use error::{ErrorKind, ImageError};
pub use packed::Encoding;

use packed::Packed;
use source::Source;
use std::ffi::{CStr, c_void};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::tile;

/// What follows the number in `sm_90a`, `sm_100f` (nvcc manual, "GPU Feature List").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suffix {
    /// `a`: for exactly this architecture.
    Architecture,
    /// `f`: for this architecture's family (same major number, from this one on).
    Family,
}

/// An architecture: `sm_75` is number 75.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Ten times the major plus the minor compute capability; 0 where an image does not say.
    pub number: u32,
    pub suffix: Option<Suffix>,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.suffix {
            None => "",
            Some(Suffix::Architecture) => "a",
            Some(Suffix::Family) => "f",
        };
        write!(f, "sm_{}{suffix}", self.number)
    }
}

/// What an entry of an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Ptx,
    /// Machine code of a GPU.
    Cubin,
    /// NVIDIA's private intermediate language for link-time optimisation.
    LtoIr,
    /// LLVM's, as NVIDIA's compilers exchange it (NVVM).
    Bitcode,
    /// Kernels over tiles (CUDA Tile IR Reference, Binary Format): what cuTile compiles, and cuBLAS brings for halves.
    TileIr,
    /// A number nobody has explained to us.
    Other(u16),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Ptx => f.write_str("PTX"),
            Kind::Cubin => f.write_str("machine code"),
            Kind::LtoIr => f.write_str("LTO-IR"),
            Kind::Bitcode => f.write_str("NVVM bitcode"),
            Kind::TileIr => f.write_str("Tile IR"),
            Kind::Other(number) => write!(f, "entries of unknown kind {number:#x}"),
        }
    }
}

/// One thing found in an image, whether of use or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub kind: Kind,
    pub target: Option<Target>,
    pub name: Option<String>,
    pub options: Option<String>,
    pub encoding: Encoding,
    /// Bytes as stored.
    pub stored: u64,
}

/// One PTX text of an image with what its container says of it; or kernels over tiles, which have a text that calls them.
#[derive(Debug)]
pub struct PtxEntry {
    pub target: Target,
    pub is_tile_ir: bool,
    /// `.version` as (major, minor).
    pub isa: Option<(u16, u16)>,
    /// The source file, or the identifier its maker gave.
    pub name: Option<String>,
    /// Options for ptxas, such as `--compile-only`.
    pub options: Option<String>,
    text: Stored,
}

#[derive(Debug)]
enum Stored {
    Text(Arc<str>),
    Whole(Arc<Packed>),
    /// A part of what several entries have been compressed to together.
    Slice {
        container: Arc<Packed>,
        range: Range<usize>,
    },
}

impl PtxEntry {
    /// The text, decompressed now; nothing is kept, so call it once. Ends before its first NUL.
    pub fn text(&self) -> Result<Arc<str>, ImageError> {
        self.code().map(|(text, _)| text)
    }

    /// As [`PtxEntry::text`], with the kernels over tiles that it calls, if it does.
    pub fn code(&self) -> Result<(Arc<str>, Option<Arc<tile::Module>>), ImageError> {
        let kind = if self.is_tile_ir { Kind::TileIr } else { Kind::Ptx };
        let name = || match &self.name {
            Some(name) => format!("{kind} for {} of {name}", self.target),
            None => format!("{kind} for {}", self.target),
        };
        let unpack = |packed: &Packed| packed.unpack().map_err(|error| error.within(&name(), 0));
        let read = |bytes: &[u8]| match self.is_tile_ir {
            false => Ok((text::to_text(bytes), None)),
            true => {
                let wrong = |error: tile::Error| {
                    let kind = match &error {
                        tile::Error::Malformed { .. } => ErrorKind::Corrupt,
                        tile::Error::Unsupported { .. } => ErrorKind::Unsupported,
                    };
                    ImageError::new(kind, error.to_string())
                };
                let module = tile::read(bytes).map_err(wrong)?;
                let text = tile::ptx(&module).map_err(wrong)?;
                Ok((text.into(), Some(Arc::new(module))))
            }
        };
        match &self.text {
            Stored::Text(text) => Ok((Arc::clone(text), None)),
            Stored::Whole(packed) => read(&unpack(packed)?),
            Stored::Slice { container, range } => match unpack(container)?.get(range.clone()) {
                Some(slice) => read(slice),
                None => Err(ImageError::corrupt(
                    range.start as u64,
                    format!("{}: outside of its container", name()),
                )),
            },
        }
    }
}

/// The code of one translation unit, in one or more variants of which one is to be used.
#[derive(Debug, Default)]
pub struct Unit {
    pub entries: Vec<PtxEntry>,
    device_runtime: OnceLock<bool>,
}

impl Unit {
    /// The variant for a device of this compute capability (major, minor), or the next best: every instruction of every
    /// target executes here, so that anything is better than nothing. `None` only for a unit without PTX.
    ///
    /// First what NVIDIA's driver would take (CUDA programming guide, "Binary Compatibility" and "PTX Compatibility"):
    /// the highest architecture up to the device's, `a` only on exactly its own, `f` only within its family. Of two with
    /// the same number the plain one; PTX before kernels over tiles. Failing that the highest `a` or `f` up to the device's, then the lowest above.
    pub fn choose(&self, capability: (u32, u32)) -> Option<&PtxEntry> {
        let device = capability.0 * 10 + capability.1;
        self.entries.iter().max_by_key(|entry| {
            let Target { number, suffix } = entry.target;
            let by_the_book = match suffix {
                None => number <= device,
                Some(Suffix::Architecture) => number == device,
                Some(Suffix::Family) => number <= device && number / 10 == capability.0,
            };
            let distance = std::cmp::Reverse(number.abs_diff(device));
            (
                !entry.is_tile_ir,
                by_the_book,
                number <= device,
                distance,
                suffix.is_none(),
            )
        })
    }

    /// Whether this is the device runtime library (libcudadevrt), which comes along with programs that use dynamic
    /// parallelism or grid-wide synchronisation. Its PTX calls private functions of NVIDIA's driver: whoever links should
    /// leave the unit out and provide what it defines.
    pub fn is_device_runtime(&self) -> bool {
        *self.device_runtime.get_or_init(|| {
            let Some(entry) = self.entries.first() else {
                return false;
            };
            entry.text().is_ok_and(|text| defines_device_runtime(&text))
        })
    }
}

/// Functions that libcudadevrt alone defines; programs declare them `.extern`.
const DEVICE_RUNTIME_FUNCTIONS: [&str; 3] = [
    "cudaCGGetIntrinsicHandle",
    "__cudaCDP2LaunchDeviceV2",
    "__cudaCDP2GetParameterBufferV2",
];

fn defines_device_runtime(text: &str) -> bool {
    DEVICE_RUNTIME_FUNCTIONS.iter().any(|name| {
        text.match_indices(name).any(|(at, _)| {
            // `.visible .func (.param .b32 result) name(`: the directive stands on the line, or shortly before.
            let head = &text[..at];
            let start = head.rfind(['}', ';']).map_or(0, |end| end + 1);
            let statement = &head[start..];
            statement.contains(".func") && statement.contains(".visible") && !statement.contains(".extern")
        })
    })
}

/// What a load call was handed.
#[derive(Debug, Default)]
pub struct Image {
    /// The units to link. An ordinary image has one, one of separate compilation (`-rdc=true`) one per translation unit.
    /// Units without PTX are not here.
    pub units: Vec<Unit>,
    /// How many units had to be left out because they hold no PTX.
    pub units_without_ptx: usize,
    /// Everything in the image, for messages.
    pub found: Vec<Found>,
    /// Where variables are that no unit defines, in an image that our linker made.
    pub symbols: Vec<(String, u64)>,
    /// The file it came from, as far as that can be told.
    pub origin: Option<String>,
}

impl Image {
    fn new((mut units, found): (Vec<Unit>, Vec<Found>)) -> Image {
        let all = units.len();
        units.retain(|unit| !unit.entries.is_empty());
        Image {
            units_without_ptx: all - units.len(),
            units,
            found,
            symbols: Vec::new(),
            origin: None,
        }
    }

    fn of_fatbin(unit: Unit, found: Vec<Found>) -> Image {
        let units = if found.is_empty() { vec![] } else { vec![unit] };
        Image::new((units, found))
    }

    fn of_text(bytes: &[u8]) -> Image {
        let text = text::to_text(bytes);
        let (isa, target) = text::prologue(&text);
        let found = Found {
            kind: Kind::Ptx,
            target,
            name: None,
            options: None,
            encoding: Encoding::Plain,
            stored: text.len() as u64,
        };
        let target = target.unwrap_or(Target {
            number: 0,
            suffix: None,
        });
        let entry = PtxEntry {
            target,
            is_tile_ir: false,
            isa,
            name: None,
            options: None,
            text: Stored::Text(text),
        };
        let unit = Unit {
            entries: vec![entry],
            ..Unit::default()
        };
        Image::new((vec![unit], vec![found]))
    }

    /// Why this image, or a part of it, cannot be run and what to do about it: `advice`, for an image that its program made
    /// while it ran, else how nvcc makes PTX. `None` when every unit has PTX.
    pub fn no_ptx_message(&self, advice: impl FnOnce() -> Option<String>) -> Option<String> {
        let units = self.units.len() + self.units_without_ptx;
        let complete = self.units_without_ptx == 0 && !self.units.is_empty();
        (!complete).then(|| {
            let advice = if self.origin.is_none() { advice() } else { None };
            message::no_ptx(
                self.origin.as_deref(),
                &self.found,
                self.units_without_ptx,
                units,
                advice,
            )
        })
    }

    /// What the image holds in a few words, for log lines: `PTX for sm_75; machine code for sm_75 and sm_90`.
    pub fn summary(&self) -> String {
        message::listing(&self.found).unwrap_or("nothing".into())
    }
}

/// Reads the image at an address, its extent unknown, as `cuModuleLoadData` and `cuLibraryLoadData` are given it: a
/// wrapper, a fatbin, a cubin or NUL-terminated PTX text. What is needed of it is copied.
///
/// # Safety
/// `image` points to one of these formats, readable to the end that its own headers or its NUL give it, and so does every
/// pointer in a wrapper; nobody writes to them meanwhile. (Where the system lets a process check its own memory, and
/// nearly all do, an image that breaks this promise gives an error.)
pub unsafe fn from_pointer(image: *const c_void) -> Result<Image, ImageError> {
    if image.is_null() {
        return Err(ImageError::new(ErrorKind::NotAnImage, "the image is a NULL pointer"));
    }
    // SAFETY: the caller of this function promises that what the pointer leads to is an image; reads are checked.
    let source = unsafe { Source::address(image as usize) };
    let magic = source.read(0, 4, "an image").or_else(|error| {
        // A text may be shorter than a magic number.
        source.text().map_err(|_| error)
    })?;
    let mut image = match Format::of(&magic) {
        Format::Wrapper => fatbin::parse_wrapper(source).map(Image::new)?,
        Format::Elf => {
            let header = source.read(0, elf::ELF_HEADER, "an ELF header")?;
            match elf::cubin(&header, 0) {
                Some(found) => Image::new((Vec::new(), vec![found])),
                None => return Err(host_code_in_memory()),
            }
        }
        Format::Fatbin => fatbin::parse_fatbin(source, 0).map(|(unit, found, _)| Image::of_fatbin(unit, found))?,
        Format::Linked => linked::parse(source)?,
        Format::Archive => return Err(host_code_in_memory()),
        Format::Ancient => return Err(fatbin::bad_magic(&magic)),
        Format::Intermediate(Kind::TileIr) => tile_ir(tile_bytes(source)?),
        Format::Intermediate(kind) => intermediate(kind, 0),
        // Blanks may stand before the first directive: as many as one likes. But binary rubbish is not searched for a NUL.
        Format::Unknown => {
            text_or_error(&magic)?;
            Image::of_text(&text_or_error(source.text()?)?)
        }
    };
    image.origin = origin(source);
    Ok(image)
}

/// Reads an image of known size, as `cuLinkAddData` is given it: everything [`from_pointer`] takes but wrappers (they are
/// pointers), and host objects, programs, shared libraries and archives of objects besides.
pub fn from_bytes(bytes: &[u8]) -> Result<Image, ImageError> {
    match Format::of(bytes) {
        Format::Wrapper => {
            let message = "a fatbin wrapper consists of pointers and means nothing outside of its program";
            Err(ImageError::new(ErrorKind::Unsupported, message))
        }
        Format::Fatbin => {
            let (unit, found, _) = fatbin::parse_fatbin(Source::Bytes(bytes), 0)?;
            Ok(Image::of_fatbin(unit, found))
        }
        Format::Linked => linked::parse(Source::Bytes(bytes)),
        Format::Elf => elf::parse(bytes).map(Image::new),
        Format::Archive => elf::parse_archive(bytes).map(Image::new),
        Format::Ancient => Err(fatbin::bad_magic(&bytes[..4])),
        Format::Intermediate(Kind::TileIr) => Ok(tile_ir(bytes.to_vec())),
        Format::Intermediate(kind) => Ok(intermediate(kind, bytes.len() as u64)),
        Format::Unknown => Ok(Image::of_text(&text_or_error(Source::Bytes(bytes).text()?)?)),
    }
}

/// Reads a file that holds anything [`from_bytes`] takes.
pub fn from_file(path: impl AsRef<Path>) -> Result<Image, ImageError> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::FileNotFound,
            _ => ErrorKind::FileUnreadable,
        };
        ImageError::new(kind, format!("{}: {error}", path.display()))
    })?;
    let mut image = from_bytes(&bytes).map_err(|error| error.within(&path.display().to_string(), 0))?;
    image.origin = Some(path.display().to_string());
    Ok(image)
}

/// The formats that the first bytes tell apart.
enum Format {
    Wrapper,
    Fatbin,
    Ancient,
    Elf,
    Archive,
    /// What our own linker makes.
    Linked,
    /// What only NVIDIA's compilers go on from.
    Intermediate(Kind),
    /// Text, if anything.
    Unknown,
}

impl Format {
    fn of(head: &[u8]) -> Format {
        /// What NVRTC and nvcc put before LTO-IR outside of fat binaries.
        const LTO_IR_MAGIC: [u8; 4] = 0x7F4E_43ED_u32.to_le_bytes();
        /// LLVM language reference, "Bitcode File Format".
        const BITCODE_MAGIC: [u8; 4] = *b"BC\xC0\xDE";
        /// The first half of `\x7fTileIR\0` (CUDA Tile IR Reference, Binary Format).
        const TILE_IR_MAGIC: [u8; 4] = *b"\x7fTil";
        match head.get(..4).and_then(|magic| <[u8; 4]>::try_from(magic).ok()) {
            Some(fatbin::WRAPPER_MAGIC) => Format::Wrapper,
            Some(fatbin::FATBIN_MAGIC) => Format::Fatbin,
            Some(fatbin::ANCIENT_MAGIC) => Format::Ancient,
            Some(elf::ELF_MAGIC) => Format::Elf,
            Some(elf::ARCHIVE_MAGIC) => Format::Archive,
            Some(linked::MAGIC) => Format::Linked,
            Some(LTO_IR_MAGIC) => Format::Intermediate(Kind::LtoIr),
            Some(BITCODE_MAGIC) => Format::Intermediate(Kind::Bitcode),
            Some(TILE_IR_MAGIC) => Format::Intermediate(Kind::TileIr),
            _ => Format::Unknown,
        }
    }
}

fn text_or_error<T: AsRef<[u8]>>(bytes: T) -> Result<T, ImageError> {
    if text::looks_like_ptx(bytes.as_ref()) {
        return Ok(bytes);
    }
    let head = &bytes.as_ref()[..bytes.as_ref().len().min(8)];
    let message = format!("neither PTX text nor a fat binary nor ELF: it starts with {head:02x?}");
    Err(ImageError::at(ErrorKind::NotAnImage, 0, message))
}

fn host_code_in_memory() -> ImageError {
    let message = "host code where GPU code was expected; a file of it can be given to cuLinkAddFile";
    ImageError::new(ErrorKind::Unsupported, message)
}

fn intermediate(kind: Kind, stored: u64) -> Image {
    let found = Found {
        kind,
        target: None,
        name: None,
        options: None,
        encoding: Encoding::Scrambled,
        stored,
    };
    Image::new((Vec::new(), vec![found]))
}

/// Bytecode by itself, as cuBLAS makes it while it runs.
fn tile_ir(bytes: Vec<u8>) -> Image {
    let target = Target {
        number: 0,
        suffix: None,
    };
    let found = Found {
        kind: Kind::TileIr,
        target: None,
        name: None,
        options: None,
        encoding: Encoding::Plain,
        stored: bytes.len() as u64,
    };
    let packed = Packed {
        encoding: Encoding::Plain,
        unpacked: bytes.len() as u64,
        stored: bytes.into(),
    };
    let entry = PtxEntry {
        target,
        is_tile_ir: true,
        isa: None,
        name: None,
        options: None,
        text: Stored::Whole(Arc::new(packed)),
    };
    let unit = Unit {
        entries: vec![entry],
        ..Unit::default()
    };
    Image::new((vec![unit], vec![found]))
}

/// The bytes of bytecode of which only its beginning is known: its sections say how long they are.
fn tile_bytes(source: Source<'_>) -> Result<Vec<u8>, ImageError> {
    let mut at = tile::MAGIC.len() as u64 + 4;
    loop {
        let byte = |offset: u64| -> Result<u8, ImageError> { Ok(source.read(offset, 1, "Tile IR")?[0]) };
        let number = |next: &mut u64| -> Result<u64, ImageError> {
            let mut value = 0;
            for shift in (0..63).step_by(7) {
                let part = byte(*next)?;
                *next += 1;
                value |= u64::from(part & 0x7f) << shift;
                if part & 0x80 == 0 {
                    return Ok(value);
                }
            }
            Err(ImageError::corrupt(*next, "Tile IR: a number of more than 64 bits"))
        };
        let mut next = at;
        let id = byte(next)?;
        next += 1;
        if id == 0 {
            let whole = usize::try_from(next).map_err(|_| ImageError::corrupt(at, "Tile IR larger than memory"))?;
            return Ok(source.read(0, whole, "Tile IR")?.into_owned());
        }
        let length = number(&mut next)?;
        if id & 0x80 != 0 {
            let to = number(&mut next)?;
            if !to.is_power_of_two() || to > 1 << 20 {
                return Err(ImageError::corrupt(at, format!("Tile IR: a section aligned to {to}")));
            }
            next = next.next_multiple_of(to);
        }
        at = next
            .checked_add(length)
            .filter(|&end| end <= 1 << 32)
            .ok_or_else(|| ImageError::corrupt(at, format!("Tile IR: a section of {length} bytes")))?;
    }
}

/// The program or library an image is part of, if it is part of one.
fn origin(source: Source<'_>) -> Option<String> {
    let Source::Address(address) = source else { return None };
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr takes any address and writes to `info` alone.
    if unsafe { libc::dladdr(address as *const c_void, &mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr's names are NUL-terminated and live as long as the object is loaded; it is copied at once.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(name.to_string_lossy().into_owned())
}
