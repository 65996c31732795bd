//! `libmargay-jit.so`: LLVM in a library of its own, which compiles IR text to an object file in memory.
//!
//! `libcuda.so.1` opens it when it first has a kernel to compile; `src/simt/jit/library.rs` is its only caller, and has the same
//! declarations. All that is exported is below, and nothing of LLVM's.
//!
//! **When LLVM gives up.** A fatal error inside LLVM, an `abort` or a shortage of memory there never ends the process: the thread
//! on which it happened stops for ever inside [`margay_jit_compile`], and from then on [`margay_jit_broken`] returns the
//! message, at once and on any thread, and every later `margay_jit_compile` returns nonzero with it. A compilation that is under
//! way on another thread may still end well, or wait for a lock that the stopped thread holds. A caller therefore compiles on
//! a thread of its own, which it can do without, and while it waits for it looks now and then whether `margay_jit_broken` has
//! something to say; then it gives up both the thread and the library. What is not caught is a wrong access to memory inside
//! LLVM, a SIGSEGV: IR that passes the verifier should cause none, if the thread's stack is large (tens of megabytes: LLVM
//! recurses).
//!
//! Any number of threads may compile at once. The library is never unloaded, and has no destructors that run at exit.

mod choices;
mod compile;
mod fatal;
mod llvm;
mod random;

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice, str};

use compile::{Emit, Job};

/// `request.emit`
const EMIT_OBJECT: u32 = 0;
const EMIT_ASSEMBLY: u32 = 1;
const EMIT_IR: u32 = 2;

/// `request.flags`: check the module after parsing. Without it, IR that is well-formed but makes no sense may crash LLVM.
const VERIFY: u32 = 1;

/// What to compile, and how.
#[repr(C)]
pub struct Request {
    /// The module as IR text, in UTF-8, without a NUL at its end.
    ir: *const u8,
    ir_len: usize,
    /// Names of LLVM's, NUL-terminated: a processor (`x86-64`), and features to add to it (`+avx2,+fma`). A function's own
    /// attributes come before them.
    cpu: *const c_char,
    features: *const c_char,
    /// A pipeline as `opt -passes` takes it, in the place of the level's; null = the level's.
    passes: *const c_char,
    /// 0 = registers for local variables, and the fast code generator; 1 to 3 = `default<O1>` to `default<O3>`.
    level: u32,
    emit: u32,
    flags: u32,
}

/// What came of it. Both texts are [`margay_jit_free`]'s to free; either may be null.
#[repr(C)]
pub struct Answer {
    data: *mut u8,
    len: usize,
    /// Why it failed, or warnings; in UTF-8, without a NUL at its end.
    message: *mut u8,
    message_len: usize,
}

/// LLVM's version and this library's revision, for the keys of caches: with the same text, the same IR gives the same code. The
/// number after the slash is raised with every change of what is declared or done here.
#[unsafe(no_mangle)]
pub extern "C" fn margay_jit_version() -> *const c_char {
    const VERSION: &str = concat!("LLVM ", env!("MARGAY_LLVM_VERSION"), " / margay-jit 5\0");
    VERSION.as_ptr().cast()
}

/// Null, or why this library will compile nothing any more.
#[unsafe(no_mangle)]
pub extern "C" fn margay_jit_broken() -> *const c_char {
    fatal::broken()
}

/// Compiles a module; 0 = done. The answer is overwritten, and set in any case.
///
/// # Safety
///
/// Both pointers are valid, the request's texts are as [`Request`] says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn margay_jit_compile(request: *const Request, answer: *mut Answer) -> c_int {
    // SAFETY: valid, by the caller's word.
    let request = unsafe { &*request };
    let (data, message) = match catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the request's texts are as its type says, by the caller's word, and live until this returns.
        unsafe { run(request) }
    })) {
        Ok(Ok((data, warnings))) => (Some(data), warnings),
        Ok(Err(message)) => (None, message),
        Err(_) => (None, "a panic in libmargay-jit.so".into()),
    };
    let failed = data.is_none();
    let (data, len) = into_raw(data.unwrap_or_default());
    let (message, message_len) = into_raw(message.into_bytes());
    // SAFETY: valid to write, by the caller's word.
    unsafe {
        answer.write(Answer {
            data,
            len,
            message,
            message_len,
        })
    };
    failed.into()
}

/// Frees what an answer holds, and empties it.
///
/// # Safety
///
/// The answer is one of [`margay_jit_compile`]'s, or all zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn margay_jit_free(answer: *mut Answer) {
    // SAFETY: valid, and its pointers and lengths are those of boxes that `into_raw` gave away.
    unsafe {
        let answer = &mut *answer;
        for (data, len) in [
            (&mut answer.data, &mut answer.len),
            (&mut answer.message, &mut answer.message_len),
        ] {
            if !data.is_null() {
                drop(Box::from_raw(ptr::slice_from_raw_parts_mut(*data, *len)));
            }
            (*data, *len) = (ptr::null_mut(), 0);
        }
    }
}

fn into_raw(bytes: Vec<u8>) -> (*mut u8, usize) {
    if bytes.is_empty() {
        return (ptr::null_mut(), 0);
    }
    let len = bytes.len();
    (Box::into_raw(bytes.into_boxed_slice()).cast(), len)
}

/// The object and the warnings, or why there is none.
///
/// # Safety
///
/// The request's texts are as [`Request`] says.
unsafe fn run(request: &Request) -> Result<(Vec<u8>, String), String> {
    let broken = fatal::broken();
    if !broken.is_null() {
        // SAFETY: the text is NUL-terminated and lives for ever.
        let why = unsafe { CStr::from_ptr(broken) };
        return Err(format!("the compiler is broken: {}", why.to_string_lossy()));
    }
    if request.ir.is_null() || request.cpu.is_null() || request.features.is_null() {
        return Err("a text is missing in the request".into());
    }
    // SAFETY: as many bytes as the caller says.
    let ir = unsafe { slice::from_raw_parts(request.ir, request.ir_len) };
    let job = Job {
        ir: str::from_utf8(ir).map_err(|error| format!("the IR is not UTF-8: {error}"))?,
        // SAFETY: NUL-terminated, by the caller's word.
        cpu: unsafe { CStr::from_ptr(request.cpu) },
        // SAFETY: NUL-terminated, by the caller's word.
        features: unsafe { CStr::from_ptr(request.features) },
        passes: match request.passes.is_null() {
            true => None,
            // SAFETY: NUL-terminated, by the caller's word, for it is not null.
            false => Some(unsafe { CStr::from_ptr(request.passes) }),
        },
        level: match request.level {
            level @ 0..=3 => level as usize,
            level => return Err(format!("no level {level}")),
        },
        emit: match request.emit {
            EMIT_OBJECT => Emit::Object,
            EMIT_ASSEMBLY => Emit::Assembly,
            EMIT_IR => Emit::Ir,
            emit => return Err(format!("no output {emit}")),
        },
        verify: request.flags & VERIFY != 0,
    };
    job.run()
}
