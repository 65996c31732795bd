//! Error Handling, Driver Entry Point Access, export tables.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use crate::c::*;

functions! {
    cuGetProcAddress(name: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64);
    cuGetProcAddress_v2(name: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64, status: *mut c_int);
    cuGetExportTable(table: *mut *const c_void, id: *const [u8; 16]);
}

fn text(of: fn(CUresult, *mut *const c_char) -> CUresult, error: CUresult) -> Option<String> {
    let mut text = number::<c_char>(1).cast_const();
    match of(error, &mut text) {
        // SAFETY: the driver's own, for ever.
        CUDA_SUCCESS => Some(unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()),
        result => {
            assert_eq!((result, text), (CUDA_ERROR_INVALID_VALUE, null()));
            None
        }
    }
}

/// The manual's list, "CUresult".
#[test]
fn every_error_has_a_name_and_a_text() {
    for (number, name, description) in [
        (0, "CUDA_SUCCESS", "no error"),
        (1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"),
        (2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
        (
            209,
            "CUDA_ERROR_NO_BINARY_FOR_GPU",
            "no kernel image is available for execution on the device",
        ),
        (
            700,
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "an illegal memory access was encountered",
        ),
        (719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"),
        (801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"),
        (999, "CUDA_ERROR_UNKNOWN", "unknown error"),
    ] {
        assert_eq!(text(cuGetErrorName, number).as_deref(), Some(name));
        assert_eq!(text(cuGetErrorString, number).as_deref(), Some(description));
    }
    let known = (0..2000).filter(|number| text(cuGetErrorName, *number).is_some());
    let named = (0..2000).filter(|number| text(cuGetErrorString, *number).is_some());
    assert!(known.eq(named));
    for unknown in [-1, 9, 10_000, c_int::MAX] {
        assert_eq!(text(cuGetErrorName, unknown), None);
        assert_eq!(text(cuGetErrorString, unknown), None);
    }
    assert_eq!(cuGetErrorName(1, null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuGetErrorString(1, null_mut()), CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn addresses_are_those_of_a_version_and_of_a_default_stream() {
    let symbol = |name: &str| {
        // SAFETY: only its address is taken.
        let found = unsafe { library().get::<unsafe extern "C" fn()>(name) };
        found
            .map(|function| *function as usize)
            .unwrap_or_else(|_| panic!("{name}"))
    };
    let find = |name: &str, version, flags| {
        let (name, mut function, mut status) = (CString::new(name).unwrap(), number(1), -1);
        ok(cuGetProcAddress_v2(
            name.as_ptr(),
            &mut function,
            version,
            flags,
            &mut status,
        ));
        (function as usize, status)
    };
    // Versions: the newest that is not newer than asked for.
    assert_eq!(find("cuMemAlloc", 13050, 0), (symbol("cuMemAlloc_v2"), 0));
    assert_eq!(find("cuMemAlloc", 2000, 0), (symbol("cuMemAlloc"), 0));
    assert_eq!(find("cuCtxCreate", 3020, 0), (symbol("cuCtxCreate_v2"), 0));
    assert_eq!(find("cuCtxCreate", 11040, 0), (symbol("cuCtxCreate_v3"), 0));
    assert_eq!(find("cuCtxCreate", 99_000, 0), (symbol("cuCtxCreate_v4"), 0));
    // Default streams: 1 is the legacy one, 2 the thread's.
    assert_eq!(
        find("cuStreamSynchronize", 13050, 1),
        (symbol("cuStreamSynchronize"), 0)
    );
    assert_eq!(
        find("cuStreamSynchronize", 13050, 2),
        (symbol("cuStreamSynchronize_ptsz"), 0)
    );
    assert_eq!(find("cuMemcpyHtoD", 13050, 2), (symbol("cuMemcpyHtoD_v2_ptds"), 0));
    assert_eq!(find("cuMemAlloc", 13050, 2), (symbol("cuMemAlloc_v2"), 0));
    // Not known, and not yet there.
    for unknown in ["cuNonsense", "", "cuMemAlloc_v2", "cuLaunchKernel_ptsz"] {
        assert_eq!(find(unknown, 13050, 0), (0, 1), "{unknown}");
    }
    assert_eq!(find("cuLibraryLoadData", 11000, 0), (0, 2));
    let mut function = number(1);
    // The first version of the call says 500, and leaves the place alone.
    let first = cuGetProcAddress(c"cuNonsense".as_ptr(), &mut function, 13050, 0);
    assert_eq!((first, function as usize), (CUDA_ERROR_NOT_FOUND, 1));
    ok(cuGetProcAddress(c"cuInit".as_ptr(), &mut function, 2000, 0));
    assert_eq!(function as usize, symbol("cuInit"));
    for flags in [4, 1 << 40] {
        assert_eq!(
            cuGetProcAddress(c"cuInit".as_ptr(), &mut function, 2000, flags),
            CUDA_ERROR_INVALID_VALUE
        );
    }
    assert_eq!(
        cuGetProcAddress(null(), &mut function, 2000, 0),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuGetProcAddress(c"cuInit".as_ptr(), null_mut(), 2000, 0),
        CUDA_ERROR_INVALID_VALUE
    );
    // The status need not be asked for.
    ok(cuGetProcAddress_v2(
        c"cuInit".as_ptr(),
        &mut function,
        2000,
        0,
        null_mut(),
    ));
}

#[test]
fn export_tables_are_found_by_their_number() {
    let mut table = number::<c_void>(1).cast_const();
    // The runtime's own: its first word is its size.
    let cudart = [
        0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9,
    ];
    ok(cuGetExportTable(&mut table, &cudart));
    // SAFETY: the table, as the runtime reads it.
    assert!(unsafe { *table.cast::<usize>() } >= 80);
    let again = table;
    ok(cuGetExportTable(&mut table, &cudart));
    assert_eq!(table, again);
    assert_eq!(cuGetExportTable(&mut table, &[7; 16]), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuGetExportTable(null_mut(), &cudart), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuGetExportTable(&mut table, null()), CUDA_ERROR_INVALID_VALUE);
}
