//! Kernels over tiles: bytecode that cuTile has made (`tests/data/tile/make.py`), loaded, asked about and launched as programs do.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::null_mut;

use crate::alone::alone;
use crate::c::*;
use crate::code::*;
use crate::test_name;

functions! {
    cuFuncGetParamCount(function: CUfunction, count: *mut usize);
    cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize, size: *mut usize);
    cuLibraryLoadData(
        library: *mut CUlibrary,
        code: *const c_void,
        options: *mut c_int,
        values: *mut *mut c_void,
        count: c_uint,
        library_options: *mut c_int,
        library_values: *mut *mut c_void,
        library_count: c_uint,
    );
    cuLibraryGetKernel(kernel: *mut CUkernel, library: CUlibrary, name: *const std::ffi::c_char);
    cuLibraryUnload(library: CUlibrary);
}

fn bytecode(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/tile")
        .join(name);
    std::fs::read(path).expect("the file is there")
}

fn kernel(file: &str, name: &str) -> (CUlibrary, CUkernel) {
    let (mut library, mut kernel, name) = (null_mut(), null_mut(), CString::new(name).unwrap());
    let bytes = bytecode(file);
    let (none, nothing) = (null_mut(), null_mut());
    ok(cuLibraryLoadData(
        &mut library,
        bytes.as_ptr().cast(),
        none,
        nothing,
        0,
        null_mut(),
        null_mut(),
        0,
    ));
    ok(cuLibraryGetKernel(&mut kernel, library, name.as_ptr()));
    (library, kernel)
}

/// An array as cuTile hands it over: address, sizes, strides.
struct Array(u64, Vec<i32>);

fn launch_on(kernel: CUkernel, grid: [c_uint; 2], block: c_uint, arrays: &[Array]) -> CUresult {
    let mut pointers: Vec<*mut c_void> = Vec::new();
    for Array(address, numbers) in arrays {
        pointers.push(std::ptr::from_ref(address) as *mut c_void);
        pointers.extend(numbers.iter().map(|number| std::ptr::from_ref(number) as *mut c_void));
    }
    let launched = cuLaunchKernel(
        kernel,
        grid[0],
        grid[1],
        1,
        block,
        1,
        1,
        0,
        null_mut(),
        pointers.as_mut_ptr(),
        null_mut(),
    );
    match launched {
        CUDA_SUCCESS => cuCtxSynchronize(),
        error => error,
    }
}

/// Halves that are small integers: products and sums of them are exact.
fn half(value: i32) -> u16 {
    let magnitude = value.unsigned_abs();
    let sign = if value < 0 { 0x8000 } else { 0 };
    match magnitude.checked_ilog2() {
        None => sign,
        Some(power) => sign | ((power as u16 + 15) << 10) | ((magnitude << (10 - power)) as u16 & 0x3ff),
    }
}

fn halves(values: &[i32]) -> u64 {
    let packed: Vec<u32> = values
        .chunks(2)
        .map(|two| u32::from(half(two[0])) | two.get(1).map_or(0, |&second| u32::from(half(second)) << 16))
        .collect();
    let memory = words(packed.len());
    write(memory, &packed);
    memory
}

#[test]
fn a_product_of_halves_has_every_element() {
    let _context = context();
    let (m, n, k) = (50_usize, 70_usize, 45_usize);
    let a: Vec<i32> = (0..m * k).map(|i| (i * 7 % 31) as i32 - 15).collect();
    let b: Vec<i32> = (0..k * n).map(|i| (i * 5 % 23) as i32 - 11).collect();
    let size = |x: usize| x as i32;
    for version in ["13.1", "13.4"] {
        let (library, kernel) = kernel(&format!("product-{version}.tileirbc"), "product");
        let (mut count, mut offset, mut bytes) = (0, 0, 0);
        ok(cuFuncGetParamCount(kernel, &mut count));
        ok(cuFuncGetParamInfo(kernel, 5, &mut offset, &mut bytes));
        // An address and four numbers come before.
        assert_eq!((count, offset, bytes), (15, 24, 8));
        let c = words(m * n);
        let arrays = [
            Array(halves(&a), vec![size(m), size(k), size(k), 1]),
            Array(halves(&b), vec![size(k), size(n), size(n), 1]),
            Array(c, vec![size(m), size(n), size(n), 1]),
        ];
        // However many threads the launch has.
        for block in [1, 128] {
            write(c, &vec![u32::MAX; m * n]);
            ok(launch_on(kernel, [2, 2], block, &arrays));
            let got = read(c, m * n);
            for (at, bits) in got.into_iter().enumerate() {
                let (row, column) = (at / n, at % n);
                let want: i32 = (0..k).map(|i| a[row * k + i] * b[i * n + column]).sum();
                assert_eq!(f32::from_bits(bits), want as f32, "{version}: {row}, {column}");
            }
        }
        ok(cuLibraryUnload(library));
    }
}

#[test]
fn blocks_wait_for_later_ones() {
    let _context = context();
    for version in ["13.1", "13.4"] {
        let (library, kernel) = kernel(&format!("turns-{version}.tileirbc"), "turns");
        let (turn, order) = (words(1), words(100));
        ok(launch_on(
            kernel,
            [100, 1],
            1,
            &[Array(turn, vec![1, 1]), Array(order, vec![100, 1])],
        ));
        let want: Vec<u32> = (0..100).rev().collect();
        assert_eq!(read(order, 100), want);
        ok(cuLibraryUnload(library));
    }
}

#[test]
fn a_stray_address_is_found() {
    alone(test_name!(), &[], || {
        let _context = context();
        let (_, kernel) = kernel("product-13.1.tileirbc", "product");
        let c = words(32 * 64);
        let array = |address: u64| Array(address, vec![32, 64, 64, 1]);
        let result = launch_on(kernel, [1, 1], 1, &[array(16), array(c), array(c)]);
        assert_eq!(result, CUDA_ERROR_ILLEGAL_ADDRESS);
    });
}

#[test]
fn bytecode_that_is_wrong_is_refused_when_it_is_used() {
    let _context = context();
    let mut bytes = bytecode("product-13.1.tileirbc");
    // The version.
    bytes[9] = 77;
    let mut module = null_mut();
    assert_eq!(
        cuModuleLoadData(&mut module, bytes.as_ptr().cast()),
        CUDA_ERROR_INVALID_IMAGE
    );
    assert!(module.is_null());
}
