//! Lines of a Python program, whose functions are no frames of the processor's stack.
//!
//! Mostly a thread does not hold the interpreter's lock when it calls the driver: ctypes, CuPy and PyTorch release it before. To wait
//! for it could be for ever. What a thread's own frames are does not change meanwhile, and Python's function for crashes
//! (`faulthandler`) writes them without the lock, letter by letter; not all versions export it. Threads that hold the lock ask the
//! functions of the manual, which are quicker.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::Write;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use libloading::os::unix::Library;

use super::object::object_of;

/// What is used of Python's C API.
struct Python {
    is_initialized: unsafe extern "C" fn() -> c_int,
    thread: unsafe extern "C" fn() -> *mut c_void,
    holds_lock: unsafe extern "C" fn() -> c_int,
    dump: Option<unsafe extern "C" fn(c_int, *mut c_void)>,
    frames: Option<Frames>,
}

/// Functions on frames, since Python 3.9.
struct Frames {
    innermost: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    outer: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    code: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    line: unsafe extern "C" fn(*mut c_void) -> c_int,
    attribute: unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void,
    text: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    has_failed: unsafe extern "C" fn() -> *mut c_void,
    clear: unsafe extern "C" fn(),
    forget: unsafe extern "C" fn(*mut c_void),
}

/// A line of a Python program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub file: &'a str,
    pub number: u32,
    pub function: &'a str,
}

impl Python {
    /// That of this process, if it has one.
    fn get() -> Option<&'static Python> {
        static PYTHON: OnceLock<Option<Python>> = OnceLock::new();
        PYTHON.get_or_init(Python::find).as_ref()
    }

    fn find() -> Option<Python> {
        let process = Library::this();
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the type is the one that Python's manual, or its header, gives for this name.
                unsafe { process.get($name) }.ok().map(|found| *found)
            };
        }
        let frames = || {
            Some(Frames {
                innermost: function!(b"PyThreadState_GetFrame\0")?,
                outer: function!(b"PyFrame_GetBack\0")?,
                code: function!(b"PyFrame_GetCode\0")?,
                line: function!(b"PyFrame_GetLineNumber\0")?,
                attribute: function!(b"PyObject_GetAttrString\0")?,
                text: function!(b"PyUnicode_AsUTF8\0")?,
                has_failed: function!(b"PyErr_Occurred\0")?,
                clear: function!(b"PyErr_Clear\0")?,
                forget: function!(b"Py_DecRef\0")?,
            })
        };
        Some(Python {
            is_initialized: function!(b"Py_IsInitialized\0")?,
            thread: function!(b"PyGILState_GetThisThreadState\0")?,
            holds_lock: function!(b"PyGILState_Check\0")?,
            dump: function!(b"_Py_DumpTraceback\0"),
            frames: frames(),
        })
    }

    fn lines(&self, most: usize) -> Option<String> {
        // SAFETY: both may be called at any time, by any thread, and this one once Python is initialised.
        let (thread, holds_lock) = unsafe {
            if (self.is_initialized)() == 0 {
                return None;
            }
            ((self.thread)(), (self.holds_lock)() == 1)
        };
        // Not a thread of Python's.
        if thread.is_null() {
            return None;
        }
        match (&self.frames, self.dump) {
            (Some(frames), _) if holds_lock => frames.lines(thread, most),
            (_, dump) => dumped(dump?, thread),
        }
    }
}

/// What Python writes of the calling thread, whose state `thread` is.
fn dumped(dump: unsafe extern "C" fn(c_int, *mut c_void), thread: *mut c_void) -> Option<String> {
    // SAFETY: the name ends with NUL.
    let number = unsafe { libc::memfd_create(c"margay-python".as_ptr(), libc::MFD_CLOEXEC) };
    if number < 0 {
        return None;
    }
    // SAFETY: the descriptor is new, and nobody else's.
    let file = unsafe { File::from_raw_fd(number) };
    // SAFETY: the state is the calling thread's own, which does nothing else meanwhile. The function is made for moments in
    // which nothing of the interpreter may be locked or allocated.
    unsafe { dump(file.as_raw_fd(), thread) };
    let bytes = file.metadata().ok()?.len().min(1 << 16) as usize;
    let mut text = vec![0; bytes];
    file.read_exact_at(&mut text, 0).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

impl Frames {
    /// The same text, of a thread that holds the interpreter's lock.
    fn lines(&self, thread: *mut c_void, most: usize) -> Option<String> {
        let mut text = String::new();
        // SAFETY: the lock is held; the thread's state is its own; frames, codes and attributes are references that we own, each
        // given back once; nothing is called while an exception is on its way, which calls might lose.
        unsafe {
            if !(self.has_failed)().is_null() {
                return None;
            }
            let mut frame = (self.innermost)(thread);
            for _ in 0..most {
                if frame.is_null() {
                    break;
                }
                let code = (self.code)(frame);
                let line = (self.line)(frame);
                let file = self.attribute(code, c"co_filename");
                let name = self.attribute(code, c"co_name");
                (self.forget)(code);
                // Writing to a String cannot fail.
                let _ = writeln!(text, "  File \"{file}\", line {line} in {name}");
                let outer = (self.outer)(frame);
                (self.forget)(frame);
                frame = outer;
            }
            if !frame.is_null() {
                (self.forget)(frame);
            }
        }
        Some(text)
    }

    /// # Safety
    /// The lock is held, and the object is one.
    unsafe fn attribute(&self, object: *mut c_void, name: &CStr) -> String {
        // SAFETY: as the caller promises; the text lives as long as its object, which is held until it is copied.
        unsafe {
            let value = (self.attribute)(object, name.as_ptr());
            let text = match value.is_null() {
                true => std::ptr::null(),
                false => (self.text)(value),
            };
            let copy = match text.is_null() {
                true => "?".to_owned(),
                false => CStr::from_ptr(text).to_string_lossy().into_owned(),
            };
            if !value.is_null() {
                (self.forget)(value);
            }
            (self.clear)();
            copy
        }
    }
}

/// The lines of the calling thread, innermost first, if it runs a Python program: as `faulthandler` writes them.
pub(super) fn lines(most: usize) -> Option<String> {
    Python::get()?.lines(most)
}

/// Where the object begins that Python's interpreter is in.
pub(super) fn interpreter() -> Option<usize> {
    let python = Python::get()?;
    object_of(python.is_initialized as *const c_void as usize).map(|(base, _)| base)
}

/// Lines such as `  File "run.py", line 7 in step`.
pub(super) fn parsed(text: &str) -> Vec<Line<'_>> {
    fn parsed(line: &str) -> Option<Line<'_>> {
        let rest = line.trim_start().strip_prefix("File \"")?;
        let (file, rest) = rest.rsplit_once("\", line ")?;
        let (number, function) = rest.split_once(" in ")?;
        Some(Line {
            file,
            number: number.parse().ok()?,
            function,
        })
    }
    text.lines().filter_map(parsed).collect()
}
