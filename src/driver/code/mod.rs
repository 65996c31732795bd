//! Images to syntax trees: read when loaded, parsed when first needed, shared by every context.
//!
//! Code knows no contexts: linking it in one is a module's business (`module.rs`).

pub mod calls;
mod device_runtime;
pub mod fault;
pub mod launch;
pub mod linker;
pub(super) mod misuses;
pub mod module;
pub(super) mod number_report;
pub mod occupancy;
pub(super) mod order_report;
pub(super) mod races;
pub(super) mod runtime_error;
pub mod settle;
pub(super) mod uninitialised;
pub mod unordered;

use std::collections::{BTreeSet, HashMap};
use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::process::room::room_to_work;
use super::{Device, Error, Result};
use crate::companions;
use crate::image::{self, ErrorKind, Image, ImageError};
use crate::program::{LinkError, check};
use crate::ptx::{self, Source, ast, diagnostic::Diagnostics};

/// Messages about images that are remembered, so as not to be told again.
const MOST_TOLD: usize = 256;

/// Why code was not loaded: the code, and words for the JIT log buffers (`CU_JIT_ERROR_LOG_BUFFER`).
#[derive(Clone, Debug)]
pub struct LoadError {
    pub error: Error,
    pub log: String,
}

impl LoadError {
    pub(super) fn new(error: Error, log: impl Into<String>) -> LoadError {
        let log = log.into();
        LoadError { error, log }
    }

    /// Says it in the log, for programs that do not ask for it. That an image has no PTX is said once for each image: NCCL
    /// asks for dozens of kernels of one, and does without them.
    pub(super) fn logged(self) -> LoadError {
        static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        let is_repeated = self.error == Error::NoBinaryForGpu && {
            let mut told = TOLD.lock();
            let is_known = told.contains(&self.log);
            if !is_known && told.len() < MOST_TOLD {
                told.insert(self.log.clone());
            }
            is_known
        };
        match is_repeated {
            true => tracing::debug!("{}: {}", self.error, self.log),
            false => tracing::error!("{}: {}", self.error, self.log),
        }
        self
    }
}

impl From<Error> for LoadError {
    fn from(error: Error) -> LoadError {
        LoadError::new(error, error.text())
    }
}

impl From<ImageError> for LoadError {
    fn from(error: ImageError) -> LoadError {
        let code = match error.kind {
            ErrorKind::NotAnImage | ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::TooLarge => {
                Error::InvalidImage
            }
            ErrorKind::FileNotFound => Error::FileNotFound,
            ErrorKind::FileUnreadable => Error::OperatingSystem,
        };
        LoadError::new(code, error.to_string())
    }
}

impl From<Diagnostics> for LoadError {
    fn from(diagnostics: Diagnostics) -> LoadError {
        let newer = diagnostics.list.iter().any(|finding| finding.newer);
        let error = if newer {
            Error::UnsupportedPtxVersion
        } else {
            Error::InvalidPtx
        };
        LoadError::new(error, diagnostics.render_plain())
    }
}

impl From<LinkError> for LoadError {
    fn from(error: LinkError) -> LoadError {
        match error {
            LinkError::Invalid(diagnostics) => diagnostics.into(),
            LinkError::Undefined(names) => LoadError::new(
                Error::InvalidPtx,
                format!("nobody defines {}, which this PTX uses", names.join(", ")),
            ),
            LinkError::Duplicate(names) => LoadError::new(
                Error::InvalidPtx,
                format!("defined more than once: {}", names.join(", ")),
            ),
            LinkError::OutOfMemory => LoadError::new(Error::OutOfMemory, "no memory for the module's variables"),
        }
    }
}

/// What there is to say of code that was loaded, for `CU_JIT_INFO_LOG_BUFFER`: one list for each text.
#[derive(Clone, Debug, Default)]
pub struct Remarks(Vec<Diagnostics>);

impl std::fmt::Display for Remarks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|found| f.write_str(&found.render_plain()))
    }
}

/// Texts up to this size are read whole when a module is loaded from them.
const CHECKED: usize = 256 << 10;

type Trees = Arc<[Arc<ast::Module>]>;

/// Addresses that a program has for variables that no unit defines (`CU_JIT_GLOBAL_SYMBOL_NAMES`).
pub type Symbols = HashMap<String, u64>;

/// A loaded image.
pub(super) struct Code {
    image: Image,
    trees: OnceLock<Result<Trees, LoadError>>,
    complained: AtomicBool,
}

impl Code {
    fn new(image: Image) -> Arc<Code> {
        Arc::new(Code {
            image,
            trees: OnceLock::new(),
            complained: AtomicBool::new(false),
        })
    }

    /// # Safety
    /// As [`image::from_pointer`].
    pub unsafe fn from_pointer(pointer: *const c_void) -> Result<Arc<Code>, LoadError> {
        if pointer.is_null() {
            return Err(Error::InvalidValue.into());
        }
        room_to_work()?;
        // SAFETY: not null, and our caller promises an image there, which ends where its own headers or its NUL say.
        let image = unsafe { image::from_pointer(pointer) };
        Ok(Code::new(image.map_err(|error| LoadError::from(error).logged())?))
    }

    /// `name` goes into messages.
    pub fn from_bytes_named(bytes: &[u8], name: &str) -> Result<Arc<Code>, LoadError> {
        room_to_work()?;
        let mut image = image::from_bytes(bytes).map_err(|error| LoadError::from(error).logged())?;
        if !name.is_empty() {
            image.origin = Some(name.to_string());
        }
        Ok(Code::new(image))
    }

    pub fn from_file(path: &Path) -> Result<Arc<Code>, LoadError> {
        room_to_work()?;
        let image = image::from_file(path);
        Ok(Code::new(image.map_err(|error| LoadError::from(error).logged())?))
    }

    pub fn has_ptx(&self) -> bool {
        !self.image.units.is_empty()
    }

    /// The image's name for messages.
    fn name(&self, unit: usize) -> String {
        let origin = self.image.origin.as_deref().unwrap_or("PTX");
        let entry = self.image.units.get(unit).and_then(|unit| unit.entries.first());
        match entry.and_then(|entry| entry.name.as_deref()) {
            Some(name) if self.image.origin.is_some() => format!("{origin}({name})"),
            Some(name) => name.to_string(),
            None if self.image.units.len() > 1 => format!("{origin}#{unit}"),
            None => origin.to_string(),
        }
    }

    /// 209 with its message, which is printed once for an image.
    fn no_ptx(&self) -> LoadError {
        let message = self.image.no_ptx_message(companions::advice).unwrap_or_default();
        let error = LoadError::new(Error::NoBinaryForGpu, message);
        if self.complained.swap(true, Ordering::Relaxed) {
            error
        } else {
            error.logged()
        }
    }

    /// The syntax trees of the units; parsed now if nobody has needed them before.
    pub fn trees(&self) -> Result<Trees, LoadError> {
        if !self.has_ptx() {
            return Err(self.no_ptx());
        }
        if self.trees.get().is_none() {
            room_to_work()?;
        }
        self.trees.get_or_init(|| self.parse()).clone()
    }

    /// There is nothing in it but the device runtime library.
    pub fn is_device_runtime(&self) -> bool {
        self.has_ptx() && self.image.units.iter().all(image::Unit::is_device_runtime)
    }

    /// What the image says where variables are.
    pub fn symbols(&self) -> Symbols {
        self.image.symbols.iter().cloned().collect()
    }

    /// Reads the bodies of functions now, too, and checks them, unless that would take long: who loads a text that was
    /// just made wants to know what is wrong with it. Gives what is merely odd.
    pub fn check(&self) -> Result<Remarks, LoadError> {
        let trees = match self.trees() {
            Err(error) if error.error != Error::NoBinaryForGpu => return Err(error),
            Err(_) => return Ok(Remarks::default()),
            Ok(trees) => trees,
        };
        let bytes: usize = trees.iter().map(|tree| tree.source.text.len()).sum();
        let mut remarks = Remarks::default();
        if bytes <= CHECKED {
            for tree in trees.iter() {
                let found = check::all(tree);
                if found.has_errors() {
                    return Err(LoadError::from(found.only(true)).logged());
                }
                if !found.list.is_empty() {
                    remarks.0.push(found);
                }
            }
        }
        Ok(remarks)
    }

    /// As [`Code::check`] if it is a text and nothing else, which somebody may have made just now.
    pub fn check_text(&self) -> Result<(), LoadError> {
        let plain =
            |found: &image::Found| found.kind == image::Kind::Ptx && found.name.is_none() && found.options.is_none();
        match self.image.found.as_slice() {
            [one] if plain(one) => self.check().map(drop),
            _ => Ok(()),
        }
    }

    fn parse(&self) -> Result<Trees, LoadError> {
        if self.image.units_without_ptx > 0
            && let Some(message) = self.image.no_ptx_message(companions::advice)
        {
            tracing::warn!("{message}");
        }
        let capability = Device::all().first().map_or((12, 0), Device::capability);
        let units = &self.image.units;
        let mut trees = Vec::new();
        for (index, unit) in units.iter().enumerate() {
            // The executor provides what the device runtime library defines.
            if units.len() > 1 && unit.is_device_runtime() {
                continue;
            }
            let Some(entry) = unit.choose(capability) else {
                continue;
            };
            let code = entry.code().map_err(|error| LoadError::from(error).logged());
            let (text, tiles) = code?;
            let name = self.name(index);
            let tree = ptx::parse(Source::with_tiles(name, text, tiles));
            trees.push(Arc::new(tree.map_err(|found| LoadError::from(found).logged())?));
        }
        Ok(trees.into())
    }
}
