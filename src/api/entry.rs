//! Driver entry point access: `cuGetProcAddress`, and the private tables of `cuGetExportTable`.
//!
//! Both answer before `cuInit`.

use super::call::{Answer, In, Out, require};
use super::exports::{Address, ENTRY_POINTS};
use super::private_tables;
use super::types::*;

enum Lookup {
    Found(Address),
    /// No such name, or no implementation of that version yet.
    Unknown,
    /// The name exists in later versions only.
    TooOld,
}

/// The newest variant that is not newer than `version`. A variant that is known but not implemented hides older ones:
/// their arguments differ.
fn look_up(name: &str, version: c_int, per_thread: bool) -> Lookup {
    let first = ENTRY_POINTS.partition_point(|entry| entry.name < name);
    let variants = &ENTRY_POINTS[first..];
    let variants = &variants[..variants.partition_point(|entry| entry.name == name)];
    if variants.iter().all(|entry| entry.plain.is_none()) {
        return Lookup::Unknown;
    }
    match variants
        .iter()
        .rev()
        .find(|entry| i64::from(entry.since) <= i64::from(version))
    {
        None => Lookup::TooOld,
        Some(entry) => match entry.per_thread.filter(|_| per_thread).or(entry.plain) {
            Some(address) => Lookup::Found(address),
            None => Lookup::Unknown,
        },
    }
}

/// 0 and 1 mean the legacy default stream, 2 and 3 the per-thread one.
fn wants_per_thread(flags: cuuint64_t) -> Answer<bool> {
    require(flags <= 3)?;
    Ok(flags & u64::from(CUdriverProcAddress_flags::CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM.0) != 0)
}

/// Version 11.3 of the call: what is not found is an error, and the pointer stays as it was.
pub fn get_proc_address(symbol: In<c_char>, pfn: Out<*mut c_void>, version: c_int, flags: cuuint64_t) -> Answer {
    let per_thread = wants_per_thread(flags)?;
    pfn.required()?;
    match look_up(symbol.text()?, version, per_thread) {
        Lookup::Found(address) => pfn.set(address.0.cast_mut()),
        Lookup::Unknown | Lookup::TooOld => Err(CUresult::CUDA_ERROR_NOT_FOUND),
    }
}

/// Version 12.0: what is not found is success with a null pointer; the status says why. NVIDIA's runtimes rely on it.
pub fn get_proc_address_v2(
    symbol: In<c_char>,
    pfn: Out<*mut c_void>,
    version: c_int,
    flags: cuuint64_t,
    status: Out<CUdriverProcAddressQueryResult>,
) -> Answer {
    use CUdriverProcAddressQueryResult as Status;
    let per_thread = wants_per_thread(flags)?;
    pfn.required()?;
    let (address, found) = match look_up(symbol.text()?, version, per_thread) {
        Lookup::Found(address) => (address.0.cast_mut(), Status::CU_GET_PROC_ADDRESS_SUCCESS),
        Lookup::Unknown => (std::ptr::null_mut(), Status::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
        Lookup::TooOld => (std::ptr::null_mut(), Status::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
    };
    status.set_if_any(found);
    pfn.set(address)
}

/// An unknown UUID is `CUDA_ERROR_INVALID_VALUE`.
pub fn get_export_table(table: Out<*const c_void>, id: In<CUuuid>) -> Answer {
    table.required()?;
    // SAFETY: `c_char` and `u8` differ only in sign.
    let id: [u8; 16] = unsafe { std::mem::transmute(id.get()?.bytes) };
    let found = private_tables::find(&id).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
    table.set(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::ptr;

    /// Asks version 2: (result, address, status).
    fn ask(name: &CStr, version: c_int, flags: u64) -> (Answer, usize, u32) {
        let mut address = 7 as *mut c_void;
        let mut status = CUdriverProcAddressQueryResult::from_raw(99);
        // SAFETY: a C string and places for the outputs.
        let answer = unsafe {
            get_proc_address_v2(
                In::from_c(name.as_ptr()),
                Out::from_c(&mut address),
                version,
                flags,
                Out::from_c(&mut status),
            )
        };
        (answer, address as usize, status.0)
    }

    /// What NVIDIA's drivers 535 and 550 were seen to answer.
    #[test]
    fn answers_by_name_version_and_flags() {
        use super::super::exports as e;
        assert_eq!(
            ask(c"cuMemAlloc", 3020, 0),
            (Ok(()), e::cuMemAlloc_v2 as *const () as usize, 0)
        );
        assert_eq!(
            ask(c"cuMemAlloc", 99000, 1),
            (Ok(()), e::cuMemAlloc_v2 as *const () as usize, 0)
        );
        // Without a per-thread twin the plain function is the answer.
        assert_eq!(
            ask(c"cuMemAlloc", 12000, 2),
            (Ok(()), e::cuMemAlloc_v2 as *const () as usize, 0)
        );
        assert_eq!(
            ask(c"cuMemcpyHtoD", 7000, 2),
            (Ok(()), e::cuMemcpyHtoD_v2_ptds as *const () as usize, 0)
        );
        assert_eq!(
            ask(c"cuLaunchKernel", 7000, 3),
            (Ok(()), e::cuLaunchKernel_ptsz as *const () as usize, 0)
        );
        assert_eq!(
            ask(c"cuLaunchKernel", 4000, 0),
            (Ok(()), e::cuLaunchKernel as *const () as usize, 0)
        );
        // Versions of one name.
        assert_eq!(
            ask(c"cuDevicePrimaryCtxRelease", 7000, 0),
            (Ok(()), e::cuDevicePrimaryCtxRelease as *const () as usize, 0)
        );
        assert_eq!(
            ask(c"cuDevicePrimaryCtxRelease", 11000, 0),
            (Ok(()), e::cuDevicePrimaryCtxRelease_v2 as *const () as usize, 0)
        );
        assert_eq!(
            ask(c"cuCtxCreate", 3020, 0),
            (Ok(()), e::cuCtxCreate_v2 as *const () as usize, 0)
        );
        assert_eq!(
            ask(c"cuCtxCreate", 12040, 0),
            (Ok(()), e::cuCtxCreate_v3 as *const () as usize, 0)
        );
        // Unknown names, among them the names of symbols.
        for name in [
            c"",
            c"cuMemAlloc_v2",
            c"cuLaunchKernel_ptsz",
            c"cuSubgridCreate",
            c"malloc",
        ] {
            assert_eq!(ask(name, 13000, 0), (Ok(()), 0, 1), "{name:?}");
        }
        // Older than the first version.
        assert_eq!(ask(c"cuLaunchKernelEx", 11050, 0), (Ok(()), 0, 2));
        // Flags.
        assert_eq!(
            ask(c"cuMemAlloc", 3020, 4),
            (Err(CUresult::CUDA_ERROR_INVALID_VALUE), 7, 99)
        );
    }

    #[test]
    fn a_newer_variant_that_is_not_implemented_hides_the_older_one() {
        // cuCtxCreate's variants are all there; every name whose newest line has no address must answer "not found".
        for (index, entry) in ENTRY_POINTS.iter().enumerate() {
            let newest = ENTRY_POINTS.get(index + 1).is_none_or(|next| next.name != entry.name);
            if newest && entry.plain.is_none() {
                let name = std::ffi::CString::new(entry.name).unwrap();
                assert_eq!(ask(&name, 13050, 0), (Ok(()), 0, 1), "{name:?}");
            }
        }
    }

    #[test]
    fn version_1_makes_an_error_of_what_is_not_found() {
        for (name, version) in [(c"cuNothing", 12000), (c"cuLaunchKernelEx", 11050)] {
            let mut address = 7 as *mut c_void;
            // SAFETY: a C string and a place for the output.
            let answer = unsafe { get_proc_address(In::from_c(name.as_ptr()), Out::from_c(&mut address), version, 0) };
            assert_eq!((answer, address as usize), (Err(CUresult::CUDA_ERROR_NOT_FOUND), 7));
        }
    }

    #[test]
    fn null_pointers_are_invalid_values() {
        // SAFETY: null pointers.
        unsafe {
            let invalid = Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            let nowhere = Out::from_c(ptr::null_mut());
            let no_status = Out::from_c(ptr::null_mut());
            assert_eq!(
                get_proc_address_v2(In::from_c(c"cuInit".as_ptr()), nowhere, 12000, 0, no_status),
                invalid
            );
            let mut address = ptr::null_mut();
            let somewhere = Out::from_c(&mut address);
            assert_eq!(
                get_proc_address_v2(In::from_c(ptr::null()), somewhere, 12000, 0, no_status),
                invalid
            );
            assert_eq!(
                get_proc_address_v2(In::from_c(c"cuInit".as_ptr()), somewhere, 12000, 0, no_status),
                Ok(())
            );
            assert!(!address.is_null());
            assert_eq!(
                get_export_table(Out::from_c(ptr::null_mut()), In::from_c(ptr::null())),
                invalid
            );
        }
    }
}
