//! What every call does before and after its body: log, check, catch a panic, turn the answer into a `CUresult`.

use super::logs;
use super::types::*;
use crate::defect::{self, Defect};
use crate::driver::{self, Context, Error, LoadError, tally};
use crate::memory::caller;
use crate::trace::error_log::{self, Severity};
use std::ffi::CStr;
use std::fmt::{self, Debug, Write};
use std::sync::Arc;

/// What a body answers: `Ok` is `CUDA_SUCCESS`.
pub type Answer<T = ()> = Result<T, CUresult>;

impl From<Error> for CUresult {
    fn from(error: Error) -> CUresult {
        CUresult::from_raw(error.code())
    }
}

impl From<LoadError> for CUresult {
    fn from(error: LoadError) -> CUresult {
        error.error.into()
    }
}

/// What stream 0 means: `_ptsz` and `_ptds` functions take it for the calling thread's own default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultStream {
    Legacy,
    PerThread,
}

impl DefaultStream {
    pub fn is_per_thread(self) -> bool {
        self == DefaultStream::PerThread
    }

    /// A `CUstream` argument.
    pub fn resolve(self, stream: CUstream) -> Answer<Arc<driver::Stream>> {
        Ok(driver::Stream::resolve(stream as usize, self.is_per_thread())?)
    }

    /// The same for calls that are made often, whose context has been looked up by the time.
    pub fn resolve_in(self, context: &Arc<Context>, stream: CUstream) -> Answer<Arc<driver::Stream>> {
        Ok(driver::Stream::resolve_in(
            context,
            stream as usize,
            self.is_per_thread(),
        )?)
    }
}

/// Runs the body of one call.
///
/// With `MARGAY_LOG=margay::api=debug` (target `cuda::api`, after the library) the call is a span, so that whatever the
/// other rooms log during the call names it, and an event with arguments, result and time. Otherwise the cost is one
/// comparison.
#[inline]
pub fn enter(
    name: &'static str,
    arguments: impl Fn(&mut String) -> fmt::Result,
    body: impl FnOnce() -> Answer,
) -> CUresult {
    once(body, |body| entered(name, &arguments, body))
}

fn entered(
    name: &'static str,
    arguments: &dyn Fn(&mut String) -> fmt::Result,
    body: &mut dyn FnMut() -> Answer,
) -> CUresult {
    if tracing::enabled!(target: "cuda::api", tracing::Level::DEBUG) {
        answer(name, &mut || traced(name, arguments, body))
    } else {
        answer(name, body)
    }
}

/// No panic may cross the C ABI: a defect of ours is a report and, from now on, the error of the current context. What the
/// body allocates and frees is its call's, in reports.
#[inline]
pub fn guarded(name: &'static str, body: impl FnOnce() -> Answer) -> CUresult {
    once(body, |body| answer(name, body))
}

/// The body behind a reference, so that what surrounds it is compiled once and not for each of hundreds of calls.
#[inline]
fn once(body: impl FnOnce() -> Answer, surround: impl FnOnce(&mut dyn FnMut() -> Answer) -> CUresult) -> CUresult {
    let mut body = Some(body);
    surround(&mut || body.take().map_or(Err(CUresult::CUDA_ERROR_UNKNOWN), |body| body()))
}

#[cold]
fn traced(
    name: &'static str,
    arguments: &dyn Fn(&mut String) -> fmt::Result,
    body: &mut dyn FnMut() -> Answer,
) -> Answer {
    let span = tracing::debug_span!(target: "cuda::api", "call", name);
    let _entered = span.enter();
    let start = std::time::Instant::now();
    let answer = body();
    let elapsed = start.elapsed();
    let mut text = String::new();
    // Writing to a String fails for no reason of its own.
    let _ = arguments(&mut text);
    let result = answer.err().unwrap_or(CUresult::CUDA_SUCCESS);
    tracing::debug!(target: "cuda::api", "{name}({text}) = {result:?} in {elapsed:?}");
    answer
}

fn answer(name: &'static str, body: &mut dyn FnMut() -> Answer) -> CUresult {
    let whole = || {
        defect::may_fail("call", name);
        body()
    };
    let outer = caller::replace(name);
    let began = if outer.is_outermost() {
        tally::call_begins()
    } else {
        None
    };
    let answer = match defect::catch(whole) {
        Ok(Ok(())) => CUresult::CUDA_SUCCESS,
        Ok(Err(result)) => failed(name, result),
        Err(defect) => broken(name, &defect),
    };
    tally::call_ends(name, began);
    caller::restore(outer);
    if outer.is_outermost() {
        driver::settle();
        logs::tell();
    }
    answer
}

#[cold]
fn broken(name: &'static str, defect: &Defect) -> CUresult {
    // The report is our code as well.
    let _ = defect::catch(|| Context::fail_current(defect, name));
    CUresult::CUDA_ERROR_UNKNOWN
}

/// Notes it for programs that ask for the error log; that something is not finished is no error.
#[cold]
fn failed(name: &'static str, result: CUresult) -> CUresult {
    if result != CUresult::CUDA_ERROR_NOT_READY {
        tally::call_failed(name, result.0);
        let text = Error::from_code(result.0).map_or("unknown error", Error::text);
        error_log::note(Severity::Error, name, &format!("{result:?} ({}): {text}", result.0));
    }
    result
}

/// The arguments of a call for the log: `name=value, …`.
pub fn show(text: &mut String, arguments: &[(&str, &dyn Debug)]) -> fmt::Result {
    for (index, (name, value)) in arguments.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(text, "{comma}{name}={value:?}")?;
    }
    Ok(())
}

/// The check of calls that need `cuInit`.
pub fn initialised() -> Answer {
    Ok(driver::ready()?)
}

/// The check of calls that work in the current context: `cuInit`, a current context, no sticky error in it.
pub fn context() -> Answer<Arc<Context>> {
    driver::ready()?;
    Ok(Context::usable()?)
}

/// Fails with `CUDA_ERROR_INVALID_VALUE` unless `condition` holds.
pub fn require(condition: bool) -> Answer {
    if condition {
        Ok(())
    } else {
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}

/// A pointer to something the call writes. From C: null, or good for as much as the manual says.
///
/// Its methods are safe because only [`Out::from_c`] makes one, whose caller has promised that.
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// # Safety
    /// `pointer` is null, or good for writing (and reading, if it points to an array of inputs) what the call's manual
    /// page says, until the call ends.
    pub unsafe fn from_c(pointer: *mut T) -> Out<T> {
        Out(pointer)
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub fn as_ptr(self) -> *mut T {
        self.0
    }

    /// Fails for null. For calls that must not act before they know that they can answer.
    pub fn required(self) -> Answer<Out<T>> {
        require(!self.is_null())?;
        Ok(self)
    }

    /// Writes; null is an error.
    pub fn set(self, value: T) -> Answer {
        self.required()?.set_if_any(value);
        Ok(())
    }

    /// Writes unless null.
    pub fn set_if_any(self, value: T) {
        if !self.is_null() {
            // SAFETY: not null, hence good for writing (`from_c`). C does not promise Rust's alignment.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Writes the element `index` of an array.
    ///
    /// The caller stays below the length that the C caller gave.
    pub fn set_at(self, index: usize, value: T) {
        // SAFETY: `from_c`, and the caller keeps within the array.
        unsafe { self.0.add(index).write_unaligned(value) }
    }

    /// Reads: for structures that are both input and output, and for arrays that C declares without `const`.
    pub fn get_at(self, index: usize) -> Answer<T>
    where
        T: Copy,
    {
        In(self.0.cast_const()).at(index)
    }
}

impl Out<c_char> {
    /// Writes a C string into a buffer of `bytes`, cut off to fit.
    pub fn set_text(self, text: &str, bytes: usize) -> Answer {
        self.required()?;
        let Some(room) = bytes.checked_sub(1) else {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        };
        let length = text.len().min(room);
        // SAFETY: the C caller says that `bytes` bytes are good for writing; `length` + 1 is at most that.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), self.0.cast(), length);
            self.0.add(length).write(0);
        }
        Ok(())
    }
}

impl<T> Debug for Out<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.0)
    }
}

/// A pointer to something the call reads. From C: null, or good for as much as the manual says.
pub struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T: Copy> In<T> {
    /// # Safety
    /// `pointer` is null, or good for reading what the call's manual page says, until the call ends.
    pub unsafe fn from_c(pointer: *const T) -> In<T> {
        In(pointer)
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Reads; null is an error.
    pub fn get(self) -> Answer<T> {
        self.at(0)
    }

    /// Reads the element `index` of an array, within the length that the C caller gave; null is an error.
    pub fn at(self, index: usize) -> Answer<T> {
        require(!self.is_null())?;
        // SAFETY: not null, hence good for reading (`from_c`). C does not promise Rust's alignment.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }
}

impl In<c_char> {
    /// A C string; null and what is not UTF-8 are errors (names in PTX are ASCII).
    pub fn text<'a>(self) -> Answer<&'a str> {
        require(!self.is_null())?;
        // SAFETY: `from_c`: a C string that outlives the call.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    /// The name of something in a module: one that PTX cannot spell names nothing.
    pub fn symbol<'a>(self) -> Answer<&'a str> {
        require(!self.is_null())?;
        self.text().map_err(|_| CUresult::CUDA_ERROR_NOT_FOUND)
    }

    /// A path: any bytes.
    pub fn path<'a>(self) -> Answer<&'a std::path::Path> {
        use std::os::unix::ffi::OsStrExt;
        require(!self.is_null())?;
        // SAFETY: `from_c`: a C string that outlives the call.
        let text = unsafe { CStr::from_ptr(self.0) };
        Ok(std::path::Path::new(std::ffi::OsStr::from_bytes(text.to_bytes())))
    }
}

impl<T: 'static> Debug for In<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use std::any::TypeId;
        if TypeId::of::<T>() == TypeId::of::<c_char>() && !self.0.is_null() {
            // SAFETY: the type says `const char *`, which is a C string wherever the driver API reads one.
            write!(f, "{:?}", unsafe { CStr::from_ptr(self.0.cast()) })
        } else {
            write!(f, "{:p}", self.0)
        }
    }
}

/// Structures that calls take by value: this one, and the handles below.
impl Debug for CUmemLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: every bit pattern is a number.
        write!(f, "{:?}({})", self.r#type, unsafe { self.anonymous.id })
    }
}

impl Debug for CUipcMemHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.reserved[..32])
    }
}

impl Debug for CUipcEventHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.reserved[..32])
    }
}
