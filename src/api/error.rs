//! Error handling: names and descriptions of error codes.
//!
//! The texts stand in `driver/error.rs`, once.

use super::call::{Answer, Out};
use super::types::*;
use crate::driver::Error;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::LazyLock;

/// Name and description of every code, as C strings.
static TEXTS: LazyLock<HashMap<u32, (CString, CString)>> = LazyLock::new(|| {
    let c_string = |text: &str| CString::new(text).unwrap_or_default();
    let mut texts = HashMap::from([(0, (c_string("CUDA_SUCCESS"), c_string("no error")))]);
    for error in Error::ALL {
        texts.insert(error.code(), (c_string(error.name()), c_string(error.text())));
    }
    texts
});

/// An unknown code stores NULL and is `CUDA_ERROR_INVALID_VALUE`.
fn answer(text: Out<*const c_char>, found: Option<&CString>) -> Answer {
    text.set(found.map_or(std::ptr::null(), |found| found.as_ptr()))?;
    found.map(drop).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
}

pub fn get_error_name(error: CUresult, text: Out<*const c_char>) -> Answer {
    answer(text, TEXTS.get(&error.0).map(|(name, _)| name))
}

pub fn get_error_string(error: CUresult, text: Out<*const c_char>) -> Answer {
    answer(text, TEXTS.get(&error.0).map(|(_, description)| description))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The driver room's list and the C enumeration are the same list.
    #[test]
    fn every_code_has_its_c_name() {
        for (name, code) in CUresult::ENUMERATORS {
            let (found, description) = &TEXTS[code];
            assert_eq!(found.to_str().unwrap(), *name);
            assert!(!description.is_empty(), "{name}");
        }
        assert_eq!(TEXTS.len(), CUresult::ENUMERATORS.len());
    }

    /// `cudaGetErrorString` of NVIDIA's runtime says the same of every code that both interfaces have.
    #[test]
    fn descriptions_are_those_of_the_runtime() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(".env/cuda-13/lib/libcudart.so");
        if !path.exists() {
            eprintln!("skipped: {} is not there; scripts/setup installs it", path.display());
            return;
        }
        type Describe = unsafe extern "C" fn(c_int) -> *const c_char;
        // SAFETY: NVIDIA's runtime does nothing when loaded, and this function has this type.
        let library = unsafe { libloading::Library::new(path) }.unwrap();
        // SAFETY: the function has this type in every version of the runtime.
        let describe = unsafe { library.get::<Describe>("cudaGetErrorString") }.unwrap();
        let mut compared = 0;
        for (code, (name, description)) in &*TEXTS {
            // SAFETY: any number may be asked for; it returns static text.
            let theirs = unsafe { std::ffi::CStr::from_ptr(describe(*code as c_int)) };
            if theirs != c"unrecognized error code" {
                assert_eq!(description.as_c_str(), theirs, "{name:?}");
                compared += 1;
            }
        }
        assert!(compared > 90, "{compared}");
    }
}
