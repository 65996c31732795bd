//! The compiler's library: `libmargay-jit.so`, beside this library, opened when there is first something to compile.
//!
//! LLVM lives in a library of its own, because a process that never compiles should not load it (it is large, and its
//! constructors take milliseconds), and because Margay is whole without it: where it is missing, the interpreter serves.
//!
//! LLVM cannot be trusted to come back: where it gives up, it stops the thread it runs on for ever (`jit/src/lib.rs` has the
//! details). Each compilation therefore has a thread of its own, which is left behind when that happens; from then on
//! everything is refused at once.

use std::error::Error;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};

use crate::config;

const FILE: &str = "libmargay-jit.so";
const ABSENT: &str = "libmargay-jit.so does not lie beside this library";

/// What the version of a library with the declarations below ends with.
const REVISION: &str = " / margay-jit 5";

/// LLVM recurses, and an overflow would end the process. Only what is used of it takes memory.
const STACK: usize = 64 << 20;

/// How often to look whether the compiler is still there.
const LOOK: Duration = Duration::from_millis(50);

/// What to make of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Emit {
    /// An ELF object, for `object::Code`.
    Object = 0,
    /// Assembly text, to read.
    Assembly = 1,
    /// IR text after the passes, to read.
    #[cfg(test)]
    Ir = 2,
}

/// `Request` and `Answer` of `jit/src/lib.rs`.
#[repr(C)]
struct Request {
    ir: *const u8,
    ir_len: usize,
    cpu: *const c_char,
    features: *const c_char,
    passes: *const c_char,
    level: u32,
    emit: u32,
    flags: u32,
}

#[repr(C)]
struct Answer {
    data: *mut u8,
    len: usize,
    message: *mut u8,
    message_len: usize,
}

const VERIFY: u32 = 1;

type Text = unsafe extern "C" fn() -> *const c_char;
type Compile = unsafe extern "C" fn(*const Request, *mut Answer) -> c_int;
type Free = unsafe extern "C" fn(*mut Answer);

/// The library, open for good.
pub struct Library {
    version: String,
    broken: Text,
    compile: Compile,
    free: Free,
}

impl Library {
    /// The library, or why there is none: one sentence for the log, the same for the life of the process.
    pub fn get() -> Result<&'static Library, &'static str> {
        static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| Library::open(&find()?));
        library.as_ref().map_err(String::as_str)
    }

    fn open(path: &Path) -> Result<Library, String> {
        let in_words = |error: libloading::Error| match error.source() {
            Some(loader) => format!("{}: {loader}", path.display()),
            None => format!("{}: {error}", path.display()),
        };
        // SAFETY: a library of ours, whose constructors are LLVM's: they fill its own tables.
        let handle = unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(in_words)?;
        // SAFETY: functions of these names have these types, in a library whose version is checked before any other is called.
        let library = unsafe {
            let version: Text = *handle.get(c"margay_jit_version").map_err(in_words)?;
            let version = CStr::from_ptr(version()).to_string_lossy().into_owned();
            if !version.ends_with(REVISION) {
                return Err(format!("{} is of another version: {version}", path.display()));
            }
            Library {
                version,
                broken: *handle.get(c"margay_jit_broken").map_err(in_words)?,
                compile: *handle.get(c"margay_jit_compile").map_err(in_words)?,
                free: *handle.get(c"margay_jit_free").map_err(in_words)?,
            }
        };
        // It stays: threads may be inside when the process ends.
        std::mem::forget(handle);
        Ok(library)
    }

    /// LLVM's version and the library's: a part of the key under which code is kept.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Compiles a module of IR text for x86-64 with these features (`+avx2,+fma`), and waits for it. Levels are those of
    /// `jit/src/lib.rs`: 0 for speed of compilation, 1 and 2 as LLVM's O1 and O2. The text has a data layout, or gets x86-64's.
    #[cfg(test)]
    pub fn compile(&'static self, ir: &str, features: &str, level: u32, emit: Emit) -> Result<Vec<u8>, String> {
        self.run(ir, features, None, level, emit)
    }

    /// The same with a pipeline of passes as `opt` takes it, in the place of the level's.
    pub fn compile_with(
        &'static self,
        ir: &str,
        features: &str,
        passes: &str,
        level: u32,
        emit: Emit,
    ) -> Result<Vec<u8>, String> {
        self.run(ir, features, Some(passes), level, emit)
    }

    fn run(
        &'static self,
        ir: &str,
        features: &str,
        passes: Option<&str>,
        level: u32,
        emit: Emit,
    ) -> Result<Vec<u8>, String> {
        self.check()?;
        let c_string = |text: &str| CString::new(text).map_err(|error| error.to_string());
        let features = c_string(features)?;
        let passes = passes.map(c_string).transpose()?;
        // The thread may outlive this call, so it has texts of its own.
        let ir: Arc<str> = ir.into();
        let (sender, receiver) = mpsc::sync_channel(1);
        let work = move || {
            block_signals();
            let request = Request {
                ir: ir.as_ptr(),
                ir_len: ir.len(),
                cpu: c"x86-64".as_ptr(),
                features: features.as_ptr(),
                passes: passes.as_ref().map_or(std::ptr::null(), |passes| passes.as_ptr()),
                level,
                emit: emit as u32,
                flags: VERIFY,
            };
            let _ = sender.send(self.call(&request));
        };
        std::thread::Builder::new()
            .name("margay-jit".into())
            .stack_size(STACK)
            .spawn(work)
            .map_err(|error| format!("no thread to compile on: {error}"))?;
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) => self.check()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("the compiler's thread ended without an answer".into());
                }
            }
        }
    }

    fn call(&self, request: &Request) -> Result<Vec<u8>, String> {
        let mut answer = Answer {
            data: std::ptr::null_mut(),
            len: 0,
            message: std::ptr::null_mut(),
            message_len: 0,
        };
        // SAFETY: the request's texts outlive the call. The answer is then the library's, which frees it after it is copied.
        unsafe {
            let failed = (self.compile)(request, &mut answer) != 0;
            let data = bytes(answer.data, answer.len);
            let message = String::from_utf8_lossy(&bytes(answer.message, answer.message_len)).into_owned();
            (self.free)(&mut answer);
            if failed { Err(message) } else { Ok(data) }
        }
    }

    /// Fails if LLVM has given up.
    fn check(&self) -> Result<(), String> {
        // SAFETY: the function may be called at any time; its text, if any, is NUL-terminated and lives for ever.
        unsafe {
            let broken = (self.broken)();
            match broken.is_null() {
                true => Ok(()),
                false => Err(format!(
                    "LLVM has given up, and will not be called again: {}",
                    CStr::from_ptr(broken).to_string_lossy()
                )),
            }
        }
    }
}

/// # Safety
///
/// Null, or that many bytes.
unsafe fn bytes(data: *const u8, len: usize) -> Vec<u8> {
    match data.is_null() {
        true => Vec::new(),
        // SAFETY: by the caller's word.
        false => unsafe { std::slice::from_raw_parts(data, len) }.to_vec(),
    }
}

/// Where the library is: where `MARGAY_JIT_LIBRARY` says, or beside this one, as it was found or where it really lies. Of the
/// command `margay`, which has this code, too, also where `libcuda.so.1` is as it is installed.
fn find() -> Result<PathBuf, String> {
    if let Some(path) = &config::get().jit_library {
        return Ok(path.clone());
    }
    let here = own_path().ok_or("where this library lies is unknown")?;
    let resolved = here.canonicalize().ok();
    let folders = [Some(&here), resolved.as_ref()].into_iter().flatten();
    // Cargo's tests lie one folder deeper than what they test.
    let folders = folders.filter_map(|library| match library.parent()? {
        deps if deps.ends_with("deps") => deps.parent(),
        folder => Some(folder),
    });
    let mut paths = folders.flat_map(|folder| ["", "../lib/margay", "../lib"].map(|way| folder.join(way).join(FILE)));
    paths.find(|path| path.is_file()).ok_or_else(|| ABSENT.into())
}

/// The file that this code is in.
fn own_path() -> Option<PathBuf> {
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr takes any address and writes to `info` alone.
    if unsafe { libc::dladdr(own_path as *const c_void, &mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr's names are NUL-terminated and live as long as the object, which is this one; it is copied at once.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    // Of a program it is the name by which it was started, which need not be a path.
    match name.to_bytes().contains(&b'/') {
        true => std::path::absolute(OsStr::from_bytes(name.to_bytes())).ok(),
        false => std::env::current_exe().ok(),
    }
}

/// The program's signals are for the program's threads.
fn block_signals() {
    // SAFETY: an all-zero sigset_t is valid to fill, and the mask concerns this thread alone.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        for synchronous in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP] {
            libc::sigdelset(&mut all, synchronous);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
}

/// The library, if it has been built: what needs it is skipped without it. One that does not open is a failure.
#[cfg(test)]
pub fn for_tests() -> Option<&'static Library> {
    match Library::get() {
        Ok(library) => Some(library),
        Err(ABSENT) => {
            eprintln!("skipped: {ABSENT}");
            None
        }
        Err(why) => panic!("{why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADD: &str = "define i32 @add(i32 %a, i32 %b) nounwind {\n  %c = add i32 %a, %b\n  ret i32 %c\n}\n";

    #[test]
    fn a_module_becomes_an_object_assembly_or_ir() {
        let Some(library) = for_tests() else { return };
        assert!(library.version().starts_with("LLVM "), "{}", library.version());
        let object = library.compile(ADD, "+avx2", 1, Emit::Object).unwrap();
        assert_eq!(&object[..4], b"\x7fELF");
        let text = |emit| String::from_utf8(library.compile(ADD, "", 2, emit).unwrap()).unwrap();
        assert!(text(Emit::Assembly).contains("add:"));
        assert!(text(Emit::Ir).contains("define"));
        let removed = library
            .compile_with(
                "define void @f() { %p = alloca i32\n ret void }",
                "",
                "function(dce)",
                0,
                Emit::Ir,
            )
            .unwrap();
        assert!(!String::from_utf8(removed).unwrap().contains("alloca"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let Some(library) = for_tests() else { return };
        for (ir, expected) in [
            ("define void @f() { nonsense }", "expected instruction opcode"),
            // Well-formed, but the definition comes after its use.
            (
                "define i32 @f() {\n  %a = add i32 %b, 1\n  %b = add i32 %a, 1\n  ret i32 %b\n}",
                "does not dominate",
            ),
        ] {
            let message = library.compile(ir, "", 1, Emit::Object).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
        assert!(library.compile(ADD, "", 9, Emit::Object).is_err());
        assert!(library.compile(ADD, "+avx\0", 1, Emit::Object).is_err());
        assert!(library.compile(ADD, "", 1, Emit::Object).is_ok());
    }

    #[test]
    fn what_is_no_library_of_ours_is_refused() {
        assert!(Library::open(Path::new("/nowhere/libmargay-jit.so")).is_err());
        let message = Library::open(Path::new("libc.so.6")).err().unwrap();
        assert!(message.contains("margay_jit_version"), "{message}");
    }

    #[test]
    fn a_compiler_that_gives_up_is_an_error_to_the_caller() {
        if for_tests().is_none() {
            return;
        }
        // In a process of its own: the library is of no use after that.
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture"])
            .arg(
                concat!(module_path!(), "::in_a_child_llvm_gives_up")
                    .split_once("::")
                    .unwrap()
                    .1,
            )
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    #[test]
    #[ignore = "breaks the library: runs in a process of its own"]
    fn in_a_child_llvm_gives_up() {
        let library = Library::get().unwrap();
        // Another target's: it passes all checks, and no instruction can be selected for it.
        let ir = "declare void @llvm.nvvm.barrier0() define void @f() { call void @llvm.nvvm.barrier0() ret void }";
        for _ in 0..2 {
            let message = library.compile(ir, "", 1, Emit::Object).unwrap_err();
            assert!(
                message.contains("given up") && message.contains("Cannot select"),
                "{message}"
            );
        }
        assert!(library.compile(ADD, "", 1, Emit::Object).is_err());
    }
}
