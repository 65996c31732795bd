//! Options of the calls that compile: `CUjit_option` arrays, and the log buffers among them.
//!
//! The options that change nothing here are accepted, as the manual allows: there is no machine code to optimise.

use super::call::{Answer, In, Out, require};
use super::types::*;
use crate::driver::LoadError;
use crate::driver::module::Symbols;
use std::ffi::CStr;
use std::time::Instant;

/// A log buffer of the caller, and where its size is to be replaced by what was written.
#[derive(Clone, Copy, Default)]
struct LogBuffer {
    text: usize,
    size: usize,
    size_slot: Option<usize>,
}

/// What we use of the options. Addresses are kept as numbers: a linker's options outlive the call that gives them.
#[derive(Clone)]
pub struct JitOptions {
    info: LogBuffer,
    error: LogBuffer,
    wall_time_slot: Option<usize>,
    values: usize,
    start: Instant,
    symbols: Symbols,
}

impl JitOptions {
    /// Reads the arrays. Optimisation level, target, debug information and the like change nothing here and are accepted;
    /// numbers that are no option are errors.
    pub fn read(count: c_uint, options: Out<CUjit_option>, values: Out<*mut c_void>) -> Answer<JitOptions> {
        require(count == 0 || !options.is_null() && !values.is_null())?;
        let mut read = JitOptions {
            info: LogBuffer::default(),
            error: LogBuffer::default(),
            wall_time_slot: None,
            values: values.as_ptr() as usize,
            start: Instant::now(),
            symbols: Symbols::new(),
        };
        let (mut names, mut addresses, mut symbols) = (0, 0, 0);
        for index in 0..count as usize {
            let option = options.get_at(index)?;
            let value = || values.get_at(index).map(|value| value as usize);
            match option {
                CUjit_option::CU_JIT_INFO_LOG_BUFFER => read.info.text = value()?,
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER => read.error.text = value()?,
                CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES => {
                    read.info.size = value()? as u32 as usize;
                    read.info.size_slot = Some(index);
                }
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES => {
                    read.error.size = value()? as u32 as usize;
                    read.error.size_slot = Some(index);
                }
                CUjit_option::CU_JIT_WALL_TIME => read.wall_time_slot = Some(index),
                CUjit_option::CU_JIT_GLOBAL_SYMBOL_NAMES => names = value()?,
                CUjit_option::CU_JIT_GLOBAL_SYMBOL_ADDRESSES => addresses = value()?,
                CUjit_option::CU_JIT_GLOBAL_SYMBOL_COUNT => symbols = value()? as u32 as usize,
                other => require(other < CUjit_option::CU_JIT_NUM_OPTIONS)?,
            }
        }
        require(symbols == 0 || names != 0 && addresses != 0)?;
        for index in 0..symbols {
            // SAFETY: the caller's arrays of as many names and addresses.
            let (name, address) = unsafe {
                (
                    In::from_c(names as *const *const c_char).at(index)?,
                    In::from_c(addresses as *const *const c_void).at(index)?,
                )
            };
            // SAFETY: a C string of the caller's.
            let name = unsafe { In::from_c(name) }.symbol()?.to_string();
            let before = read.symbols.insert(name, address as u64);
            // Not at two places.
            require(before.is_none_or(|before| before == address as u64))?;
        }
        Ok(read)
    }

    /// Where variables are that the code does not define.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Gives the caller the logs of an outcome, and the time it took.
    ///
    /// `remarks` says what goes into the log for information; it is asked if there is room for that.
    pub fn report<T>(&self, outcome: Result<T, LoadError>, remarks: impl FnOnce(&T) -> String) -> Answer<T> {
        let log = match &outcome {
            Ok(_) => "",
            Err(error) => error.log.as_str(),
        };
        let info = match &outcome {
            Ok(loaded) if self.info.size > 1 => remarks(loaded),
            _ => String::new(),
        };
        self.write(&self.info, &info);
        self.write(&self.error, log);
        if let Some(slot) = self.wall_time_slot {
            let milliseconds = self.start.elapsed().as_secs_f32() * 1e3;
            self.set_value(slot, milliseconds.to_bits() as usize);
        }
        Ok(outcome?)
    }

    fn write(&self, log: &LogBuffer, text: &str) {
        let Some(room) = log.size.checked_sub(1) else { return };
        let mut written = 0;
        if log.text != 0 {
            // SAFETY: the caller's buffer of `size` bytes, good until the work it was given for is done.
            let buffer = unsafe { Out::from_c(log.text as *mut c_char) };
            written = text.len().min(room);
            let _ = buffer.set_text(text, log.size);
        }
        if let Some(slot) = log.size_slot {
            self.set_value(slot, written);
        }
    }

    fn set_value(&self, index: usize, value: usize) {
        // SAFETY: the array that `read` was given, within its length.
        unsafe { Out::from_c(self.values as *mut *mut c_void) }.set_at(index, value as *mut c_void);
    }
}

/// A C string for the life of the process, one for each distinct text: what calls such as `cuFuncGetName` hand out.
pub fn interned(text: &str) -> *const c_char {
    use std::collections::HashMap;
    use std::sync::{LazyLock, Mutex, PoisonError};
    static TEXTS: LazyLock<Mutex<HashMap<String, &'static CStr>>> = LazyLock::new(Default::default);
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = texts.get(text) {
        return found.as_ptr();
    }
    let owned = std::ffi::CString::new(text).unwrap_or_default();
    let leaked: &'static CStr = Box::leak(owned.into_boxed_c_str());
    texts.insert(text.into(), leaked);
    leaked.as_ptr()
}
