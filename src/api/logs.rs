//! Error log management: what went wrong lately.
//!
//! The log is `trace/error_log.rs`. A line is in it at once; callbacks hear of it when the call in which it was written
//! ends, for until then the driver may hold locks that the callback would wait for. What threads of the driver's have to
//! say is told at once, as by a host function: calls that could wait for that thread answer 800.

use super::call::{Answer, In, Out, require};
use super::types::*;
use crate::driver::stream::as_host_function;
use crate::memory::caller;
use crate::trace::error_log::{self, Severity};
use std::cell::RefCell;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A program's function with the pointer that it wants back, on whichever thread something fails.
#[derive(Clone, Copy)]
struct Listener {
    function: unsafe extern "C" fn(*mut c_void, CUlogLevel, *mut c_char, usize),
    data: *mut c_void,
}

// SAFETY: the pointer is handed back as it came; what may be done with it on which thread is between the program and itself.
unsafe impl Send for Listener {}
// SAFETY: nothing here looks at what the pointer points to.
unsafe impl Sync for Listener {}

impl Listener {
    fn tell(self, severity: Severity, line: &str) {
        let mut text: Vec<u8> = line.as_bytes().to_vec();
        text.push(0);
        // SAFETY: the program's function, called as the manual says: its data, level, text that ends with NUL, length.
        unsafe {
            (self.function)(
                self.data,
                CUlogLevel::from_raw(severity as u32),
                text.as_mut_ptr().cast(),
                line.len(),
            );
        }
    }
}

thread_local! {
    /// What is to be told when this thread's call ends.
    static LATER: RefCell<Vec<(Listener, Severity, String)>> = const { RefCell::new(Vec::new()) };
}

/// Lines in all threads' [`LATER`]: zero, nearly always, and quick to read.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// A call of this thread is over, and holds no lock any more: tells what was written in it.
#[inline]
pub fn tell() {
    if WAITING.load(Ordering::Relaxed) > 0 {
        tell_now();
    }
}

#[cold]
fn tell_now() {
    let lines = LATER.try_with(RefCell::take).unwrap_or_default();
    WAITING.fetch_sub(lines.len(), Ordering::Relaxed);
    error_log::unheard(|| {
        for (listener, severity, line) in lines {
            listener.tell(severity, &line);
        }
    });
}

pub fn logs_register_callback(
    callback: CUlogsCallback,
    user_data: *mut c_void,
    callback_out: Out<CUlogsCallbackHandle>,
) -> Answer {
    let listener = Listener {
        function: callback.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?,
        data: user_data,
    };
    let number = error_log::listen(Box::new(move |severity, line| {
        if caller::name().is_empty() {
            return as_host_function(|| listener.tell(severity, line));
        }
        // A thread that ends has no place to keep it; nor will it come back from this call to much.
        let kept = LATER.try_with(|later| later.borrow_mut().push((listener, severity, line.to_owned())));
        if kept.is_ok() {
            WAITING.fetch_add(1, Ordering::Relaxed);
        }
    }));
    callback_out.set_if_any(number as CUlogsCallbackHandle);
    Ok(())
}

pub fn logs_unregister_callback(callback: CUlogsCallbackHandle) -> Answer {
    require(error_log::forget(callback as usize))
}

pub fn logs_current(iterator_out: Out<CUlogIterator>, flags: c_uint) -> Answer {
    require(flags == 0)?;
    iterator_out.required()?;
    iterator_out.set(error_log::tail())
}

/// What stands first when older lines are gone, or do not fit.
const LOST: &str = "[CUDA] older messages were lost";
const NO_ROOM: &str = "[CUDA] older messages do not fit in the buffer";

fn from(iterator: Out<CUlogIterator>) -> Answer<(Vec<String>, u32)> {
    let place = if iterator.is_null() {
        None
    } else {
        Some(iterator.get_at(0)?)
    };
    let (mut lines, lost, next) = error_log::since(place);
    if lost {
        lines.insert(0, LOST.into());
    }
    Ok((lines, next))
}

/// The file is written anew.
pub fn logs_dump_to_file(iterator: Out<CUlogIterator>, path_to_file: In<c_char>, flags: c_uint) -> Answer {
    require(flags == 0)?;
    let path = path_to_file.path()?;
    let (lines, next) = from(iterator)?;
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    crate::trace::signals::quietly(|| fs::write(path, text)).map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
    iterator.set_if_any(next);
    Ok(())
}

/// The latest lines that fit; the size is that of the text, without its NUL.
pub fn logs_dump_to_memory(
    iterator: Out<CUlogIterator>,
    buffer: Out<c_char>,
    size: Out<usize>,
    flags: c_uint,
) -> Answer {
    require(flags == 0 && !buffer.is_null() && !size.is_null())?;
    let room = size.get_at(0)?;
    let (lines, next) = from(iterator)?;
    let whole: usize = lines.iter().map(|line| line.len() + 1).sum();
    let mut chosen: Vec<&str> = lines.iter().map(String::as_str).collect();
    if whole + 1 > room && !chosen.is_empty() {
        let mut left = room.saturating_sub(NO_ROOM.len() + 2);
        let fitting = lines.iter().rev().take_while(|line| {
            let fits = line.len() < left;
            left = left.saturating_sub(line.len() + 1);
            fits
        });
        let count = fitting.count();
        chosen = lines[lines.len() - count..].iter().map(String::as_str).collect();
        if chosen.is_empty() {
            size.set(0)?;
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        chosen.insert(0, NO_ROOM);
    }
    let text: String = chosen.iter().map(|line| format!("{line}\n")).collect();
    if room > 0 {
        buffer.set_text(&text, room)?;
    }
    size.set(text.len())?;
    iterator.set_if_any(next);
    Ok(())
}
