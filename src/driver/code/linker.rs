//! `cuLink*`: several images become one that the loader takes.
//!
//! PTX, fat binaries, objects and libraries go in. What comes out is the PTX itself, or, of several texts or with symbols, an
//! image of our own (`image/linked.rs`): programs may store it and load it later.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::driver::code::{Code, LoadError, Remarks, Symbols};
use crate::driver::handle::{self, Registry};
use crate::driver::{Error, Handle, Result};
use crate::image::linked;
use crate::program::{self, Allocate, AllocateError, LinkError};
use crate::ptx::ast;

pub struct Linker {
    handle: Handle,
    units: Mutex<Vec<Arc<ast::Module>>>,
    symbols: Symbols,
    image: OnceLock<Result<Box<[u8]>, LoadError>>,
}

static LINKERS: Registry<Linker> = Registry::new();

/// `CUjitInputType`: cubin, PTX, fat binary, object, library; NVVM is the last.
const INPUT_TYPES: u32 = 5;
/// `CU_JIT_INPUT_LIBRARY`.
const LIBRARY: u32 = 4;
/// What `ar` makes of nothing.
const EMPTY_LIBRARY: &[u8] = b"!<arch>\n";

impl Linker {
    /// `cuLinkCreate`: `symbols` are where variables are that no input defines.
    pub fn create(symbols: Symbols) -> Result<Arc<Linker>> {
        let linker = Arc::new(Linker {
            handle: handle::fresh(),
            units: Mutex::default(),
            symbols,
            image: OnceLock::new(),
        });
        LINKERS.insert(linker.handle, &linker);
        Ok(linker)
    }

    pub fn from_handle(handle: Handle) -> Result<Arc<Linker>> {
        LINKERS.get(handle).ok_or(Error::InvalidHandle)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// A library without members: linkers take it.
    fn add_nothing(&self) -> Result<Remarks, LoadError> {
        match self.image.get() {
            Some(_) => Err(Error::InvalidValue.into()),
            None => Ok(Remarks::default()),
        }
    }

    fn add(&self, kind: u32, code: impl FnOnce() -> Result<Arc<Code>, LoadError>) -> Result<Remarks, LoadError> {
        if kind > INPUT_TYPES || self.image.get().is_some() {
            return Err(Error::InvalidValue.into());
        }
        let code = code()?;
        // The executor provides what it defines.
        if code.is_device_runtime() {
            return Ok(Remarks::default());
        }
        let trees = code.trees()?;
        if trees.iter().any(|tree| tree.source.tiles.is_some()) {
            return Err(LoadError::new(
                Error::NotSupported,
                "Tile IR is not linked with other code",
            ));
        }
        let remarks = code.check()?;
        self.units.lock().extend(trees.iter().cloned());
        Ok(remarks)
    }

    /// `cuLinkAddData`: `kind` is a `CUjitInputType`, which the bytes say better themselves; `name` for messages.
    ///
    /// # Errors
    /// What the image room, the parser or the rules of the language have against it; 209 without PTX.
    pub fn add_data(&self, kind: u32, bytes: &[u8], name: &str) -> Result<Remarks, LoadError> {
        if kind == LIBRARY && bytes == EMPTY_LIBRARY {
            return self.add_nothing();
        }
        self.add(kind, || Code::from_bytes_named(bytes, name))
    }

    /// `cuLinkAddFile`.
    ///
    /// # Errors
    /// As [`Linker::add_data`].
    pub fn add_file(&self, kind: u32, path: &Path) -> Result<Remarks, LoadError> {
        let is_as_long = || std::fs::metadata(path).is_ok_and(|file| file.len() == EMPTY_LIBRARY.len() as u64);
        if kind == LIBRARY && is_as_long() && std::fs::read(path).is_ok_and(|bytes| bytes == EMPTY_LIBRARY) {
            return self.add_nothing();
        }
        self.add(kind, || Code::from_file(path))
    }

    /// `cuLinkComplete`: the image stays where it is until [`Linker::destroy`].
    ///
    /// # Errors
    /// What does not resolve.
    pub fn complete(&self) -> Result<&[u8], LoadError> {
        let image = self.image.get_or_init(|| {
            let units = self.units.lock();
            if units.is_empty() {
                return Err(LoadError::new(Error::InvalidValue, "nothing to link"));
            }
            let linked = program::Module::link_with(&units, &self.symbols, &mut Nowhere::default());
            let linked = linked.map_err(unresolved)?;
            let undefined = linked.undefined();
            if !undefined.is_empty() {
                let names = undefined.iter().map(ToString::to_string).collect();
                return Err(unresolved(LinkError::Undefined(names)));
            }
            let texts: Vec<&str> = units.iter().map(|unit| &*unit.source.text).collect();
            if let ([text], true) = (&*texts, self.symbols.is_empty()) {
                // The PTX itself, as a C string.
                return Ok([text.as_bytes(), b"\n\0"].concat().into());
            }
            let symbols = self.symbols.iter().map(|(name, address)| (name.as_str(), *address));
            Ok(linked::write(symbols, &texts).into())
        });
        image.as_deref().map_err(LoadError::clone)
    }

    /// `cuLinkDestroy`.
    pub fn destroy(self: &Arc<Linker>) -> Result<()> {
        LINKERS.remove(self.handle).map(drop).ok_or(Error::InvalidHandle)
    }
}

/// What does not fit together is 999, as from NVIDIA's driver.
fn unresolved(error: LinkError) -> LoadError {
    let code = match &error {
        LinkError::Undefined(_) | LinkError::Duplicate(_) => Some(Error::Unknown),
        LinkError::Invalid(_) | LinkError::OutOfMemory => None,
    };
    let mut found = LoadError::from(error);
    found.error = code.unwrap_or(found.error);
    found.logged()
}

/// Addresses for a link whose result nobody runs.
#[derive(Default)]
struct Nowhere {
    used: u64,
}

impl Allocate for Nowhere {
    fn allocate(&mut self, bytes: u64, align: u64, _: bool, _: bool) -> Result<u64, AllocateError> {
        let start = self.used.checked_next_multiple_of(align.max(1)).ok_or(AllocateError)?;
        self.used = start.checked_add(bytes).ok_or(AllocateError)?;
        Ok(start)
    }

    fn write(&mut self, _: u64, _: &[u8]) {}
}
