//! Files that exist in memory only, and how another process gets at one.
//!
//! A ticket names a descriptor of a living process, and the file's name, which holds a random number: what is behind
//! `/proc/<process>/fd/<number>` is taken only if it bears that name. So nothing has to be given back, a descriptor that
//! is closed or whose process has ended leads nowhere, and numbers that are used again are found out.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::driver::{Error, Result};
use crate::trace::signals::quietly;

/// The size stays, and so do these: touching a page that a file has lost would end the process.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// What a file is for: an importer takes only what it has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) enum Purpose {
    /// `cuMemCreate`.
    Physical,
    /// `cuIpcGetMemHandle`.
    Memory,
    /// `cuIpcGetEventHandle`.
    Event,
    /// `cuMemPoolExportToShareableHandle`.
    Pool,
    /// What a process shows of itself.
    Process,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Purpose::Physical => "memory",
            Purpose::Memory => "ipc",
            Purpose::Event => "event",
            Purpose::Pool => "pool",
            Purpose::Process => "process",
        }
    }
}

/// A file in memory, of a size that never changes.
#[derive(Debug)]
pub(in crate::driver) struct SharedFile {
    file: OwnedFd,
    bytes: u64,
    number: [u8; 16],
}

/// What another process needs to open a [`SharedFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) struct Ticket {
    pub process: u32,
    descriptor: u32,
    pub number: [u8; 16],
    /// For whoever made it.
    pub words: [u64; 3],
}

const MAGIC: &[u8; 8] = b"Margay\x01\0";

impl Ticket {
    /// As `cuIpc*Handle` and `CUmemPoolPtrExportData` have room for.
    pub fn to_bytes(self, purpose: Purpose) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[7] = purpose as u8;
        bytes[8..12].copy_from_slice(&self.process.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.descriptor.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.number);
        for (index, word) in self.words.iter().enumerate() {
            bytes[32 + index * 8..40 + index * 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// `None`: not a ticket, or one for something else.
    pub fn from_bytes(bytes: &[u8; 64], purpose: Purpose) -> Option<Ticket> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        let is_ours = bytes[..7] == MAGIC[..7] && bytes[7] == purpose as u8 && word(56) == 0;
        is_ours.then(|| Ticket {
            process: word(8) as u32,
            descriptor: (word(8) >> 32) as u32,
            number: bytes[16..32].try_into().unwrap_or_default(),
            words: [word(32), word(40), word(48)],
        })
    }

    pub fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// Opens the file in this process.
    ///
    /// # Errors
    /// `InvalidHandle`: there is no such file any more, or never was; `MapFailed`: the system does not let this process
    /// have it (with a line in the log).
    pub fn open(&self, purpose: Purpose) -> Result<SharedFile> {
        let link = format!("/proc/{}/fd/{}", self.process, self.descriptor);
        let wanted = format!("/memfd:{} (deleted)", name(purpose, &self.number));
        let is_it = |link: &Path| match std::fs::read_link(link) {
            Ok(found) => Ok(found.as_os_str() == wanted.as_str()),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                tracing::error!("the memory of process {} cannot be had: {error}", self.process);
                Err(Error::MapFailed)
            }
            Err(_) => Ok(false),
        };
        // First of all by name: opening what it is not (a pipe, a device) could have effects.
        if !is_it(Path::new(&link))? {
            return Err(Error::InvalidHandle);
        }
        let file = File::options().read(true).write(true).open(&link).map_err(|error| {
            tracing::error!("the memory of process {} cannot be had: {error}", self.process);
            Error::MapFailed
        })?;
        let file = OwnedFd::from(file);
        // It may have been another one by then.
        if !is_it(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))? {
            return Err(Error::InvalidHandle);
        }
        SharedFile::adopt(file, self.number).ok_or(Error::InvalidHandle)
    }
}

fn name(purpose: Purpose, number: &[u8; 16]) -> String {
    format!("margay-{}-{:032x}", purpose.name(), u128::from_be_bytes(*number))
}

impl SharedFile {
    /// Zeros; a hole until it is written to.
    ///
    /// # Errors
    /// When the system has no memory, or no descriptors.
    pub fn create(bytes: u64, purpose: Purpose) -> Result<SharedFile> {
        let length = libc::off_t::try_from(bytes).map_err(|_| Error::OutOfMemory)?;
        let mut number = [0; 16];
        File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut number))
            .map_err(|_| Error::OperatingSystem)?;
        let name = std::ffi::CString::new(name(purpose, &number)).map_err(|_| Error::OperatingSystem)?;
        // SAFETY: a C string; a descriptor that is fresh is ours.
        let file = unsafe {
            let descriptor = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
            if descriptor < 0 {
                return Err(Error::OperatingSystem);
            }
            OwnedFd::from_raw_fd(descriptor)
        };
        // The process may have a limit on the size of files.
        // SAFETY: the descriptor is open.
        let sized = quietly(|| unsafe { libc::ftruncate(file.as_raw_fd(), length) }) == 0;
        // SAFETY: the descriptor is open.
        let sealed = sized && unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) } == 0;
        if !sealed {
            return Err(Error::OutOfMemory);
        }
        Ok(SharedFile { file, bytes, number })
    }

    /// Takes a file if it is one whose size is fixed: somebody's own could shrink while it is mapped.
    fn adopt(file: OwnedFd, number: [u8; 16]) -> Option<SharedFile> {
        // SAFETY: all-zero is fit to be filled; the descriptor is open.
        let (status, known) = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            let known = libc::fstat(file.as_raw_fd(), &mut status) == 0;
            (status, known)
        };
        // SAFETY: the descriptor is open; files without seals answer an error.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        let is_fixed = seals >= 0 && seals & SEALS == SEALS;
        (known && is_fixed && status.st_size > 0).then_some(SharedFile {
            file,
            bytes: status.st_size as u64,
            number,
        })
    }

    /// The files for a purpose that processes keep, this one among them, as far as it may look at them; to be read.
    pub fn of_processes(purpose: Purpose) -> impl Iterator<Item = (u32, File)> {
        let prefix = format!("/memfd:margay-{}-", purpose.name());
        let is_one = move |link: &Path| {
            let found = std::fs::read_link(link);
            found.is_ok_and(|found| found.as_os_str().as_bytes().starts_with(prefix.as_bytes()))
        };
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        numbers.filter_map(move |process| {
            let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?;
            // First of all by name: opening what it is not (a pipe, a device) could have effects.
            let mut links = descriptors.flatten().map(|entry| entry.path());
            let file = File::open(links.find(|link| is_one(link))?).ok()?;
            // It may have been another one by then.
            is_one(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd()))).then_some((process, file))
        })
    }

    /// A descriptor that another process has sent: it stays the caller's.
    ///
    /// # Errors
    /// 1 unless it is a file of this driver's, for this purpose.
    pub fn from_descriptor(descriptor: RawFd, purpose: Purpose) -> Result<SharedFile> {
        if descriptor < 0 {
            return Err(Error::InvalidValue);
        }
        // SAFETY: only a number, as far as the system is concerned: one that is not open is an error.
        let file = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let file = file.try_clone_to_owned().map_err(|_| Error::InvalidValue)?;
        let link =
            std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(|_| Error::InvalidValue)?;
        let number = link
            .to_str()
            .and_then(|link| link.strip_prefix("/memfd:margay-"))
            .and_then(|rest| rest.strip_prefix(purpose.name())?.strip_prefix('-'))
            .and_then(|rest| u128::from_str_radix(rest.strip_suffix(" (deleted)")?, 16).ok());
        let number = number.ok_or(Error::InvalidValue)?;
        SharedFile::adopt(file, number.to_be_bytes()).ok_or(Error::InvalidValue)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What tells it from all others.
    pub fn number(&self) -> [u8; 16] {
        self.number
    }

    /// What another process opens it with, as long as this process keeps it.
    pub fn ticket(&self, words: [u64; 3]) -> Ticket {
        Ticket {
            process: std::process::id(),
            descriptor: self.file.as_raw_fd() as u32,
            number: self.number,
            words,
        }
    }

    /// A descriptor that the caller closes.
    pub fn export(&self) -> Result<RawFd> {
        let copy = self.file.try_clone().map_err(|_| Error::OperatingSystem)?;
        Ok(copy.into_raw_fd())
    }

    /// Gives the system back what a part holds, which reads as zero from now on.
    pub fn punch(&self, offset: u64, bytes: u64) {
        // SAFETY: the descriptor is open. Where it cannot be done the part stays as it is.
        unsafe {
            libc::fallocate(
                self.file.as_raw_fd(),
                libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                offset as libc::off_t,
                bytes as libc::off_t,
            )
        };
    }
}

impl AsFd for SharedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
