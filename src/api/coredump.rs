//! Coredump attributes.
//!
//! Settings are kept, and dumps written, in `driver/process/coredump.rs`.

use super::call::{Answer, Out, require};
use super::types::*;
use crate::driver::Context;
use crate::driver::coredump::{self, Moment, Setting, Value};
use std::ffi::CStr;
use std::sync::Arc;

/// Without a place for the value, how many bytes it has.
fn get(attrib: CUcoredumpSettings, value: *mut c_void, size: Out<usize>, of: impl Fn(Setting) -> Value) -> Answer {
    let setting = Setting::from_number(attrib.0)?;
    size.required()?;
    if value.is_null() {
        return size.set(setting.bytes());
    }
    let room = size.get_at(0)?;
    let bytes = match of(setting) {
        Value::Flag(flag) => vec![u8::from(flag)],
        Value::Bits(bits) => bits.to_ne_bytes().to_vec(),
        Value::Text(text) => {
            let mut bytes = text.into_bytes();
            bytes.push(0);
            bytes
        }
    };
    require(bytes.len() <= room)?;
    // SAFETY: the caller's memory, of the size that it says.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.cast(), bytes.len()) };
    Ok(())
}

/// Reads the value; `None`: only its size was asked for.
fn read(attrib: CUcoredumpSettings, value: *mut c_void, size: Out<usize>) -> Answer<Option<(Setting, Value)>> {
    let setting = Setting::from_number(attrib.0)?;
    size.required()?;
    if value.is_null() {
        size.set(setting.bytes())?;
        return Ok(None);
    }
    let size = size.get_at(0)?;
    require(size > 0 && size <= setting.bytes())?;
    // SAFETY: the caller's memory, of the size that it says.
    let bytes = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), size) };
    let value = match setting {
        Setting::File | Setting::Pipe => {
            let text = CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes);
            require(text.len() < setting.bytes())?;
            Value::Text(String::from_utf8_lossy(text).into_owned())
        }
        Setting::GenerationFlags => {
            let bits = bytes.try_into().map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
            Value::Bits(u32::from_ne_bytes(bits))
        }
        _ => Value::Flag(bytes[0] != 0),
    };
    Ok(Some((setting, value)))
}

pub fn coredump_get_attribute(
    context: &Arc<Context>,
    attrib: CUcoredumpSettings,
    value: *mut c_void,
    size: Out<usize>,
) -> Answer {
    get(attrib, value, size, |setting| context.coredump(setting))
}

pub fn coredump_get_attribute_global(attrib: CUcoredumpSettings, value: *mut c_void, size: Out<usize>) -> Answer {
    get(attrib, value, size, coredump::global)
}

pub fn coredump_set_attribute(
    context: &Arc<Context>,
    attrib: CUcoredumpSettings,
    value: *mut c_void,
    size: Out<usize>,
) -> Answer {
    match read(attrib, value, size)? {
        Some((setting, value)) => Ok(context.set_coredump(setting, value)?),
        None => Ok(()),
    }
}

pub fn coredump_set_attribute_global(attrib: CUcoredumpSettings, value: *mut c_void, size: Out<usize>) -> Answer {
    match read(attrib, value, size)? {
        Some((setting, value)) => Ok(coredump::set_global(setting, value)?),
        None => Ok(()),
    }
}

/// A pointer of the program's that goes back to the program, on whichever thread a dump is written.
struct UserData(*mut c_void);

// SAFETY: it is handed back as it came; what may be done with it on which thread is between the program and itself.
unsafe impl Send for UserData {}
// SAFETY: nothing here looks at what it points to.
unsafe impl Sync for UserData {}

fn register(
    moment: Moment,
    callback: CUcoredumpStatusCallback,
    user_data: *mut c_void,
    callback_out: Out<CUcoredumpCallbackHandle>,
) -> Answer {
    let callback = callback.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
    let user_data = UserData(user_data);
    let tell = move |process, device| {
        let user_data = &user_data;
        // SAFETY: the program's function, called as the manual says.
        unsafe { callback(user_data.0, process, device) };
    };
    let number = coredump::register(moment, Box::new(tell))?;
    callback_out.set_if_any(number as CUcoredumpCallbackHandle);
    Ok(())
}

pub fn coredump_register_start_callback(
    callback: CUcoredumpStatusCallback,
    user_data: *mut c_void,
    callback_out: Out<CUcoredumpCallbackHandle>,
) -> Answer {
    register(Moment::Start, callback, user_data, callback_out)
}

pub fn coredump_register_complete_callback(
    callback: CUcoredumpStatusCallback,
    user_data: *mut c_void,
    callback_out: Out<CUcoredumpCallbackHandle>,
) -> Answer {
    register(Moment::Complete, callback, user_data, callback_out)
}

pub fn coredump_deregister_start_callback(callback: CUcoredumpCallbackHandle) -> Answer {
    Ok(coredump::deregister(Moment::Start, callback as usize)?)
}

pub fn coredump_deregister_complete_callback(callback: CUcoredumpCallbackHandle) -> Answer {
    Ok(coredump::deregister(Moment::Complete, callback as usize)?)
}
