//! Library Management: code of no context, and its kernels.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use crate::alone::alone;
use crate::c::*;
use crate::code::*;
use crate::test_name;

functions! {
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
    cuLibraryLoadFromFile(
        library: *mut CUlibrary,
        path: *const c_char,
        options: *mut c_int,
        values: *mut *mut c_void,
        count: c_uint,
        library_options: *mut c_int,
        library_values: *mut *mut c_void,
        library_count: c_uint,
    );
    cuLibraryUnload(library: CUlibrary);
    cuLibraryGetKernel(kernel: *mut CUkernel, library: CUlibrary, name: *const c_char);
    cuLibraryGetKernelCount(count: *mut c_uint, library: CUlibrary);
    cuLibraryEnumerateKernels(kernels: *mut CUkernel, count: c_uint, library: CUlibrary);
    cuLibraryGetModule(module: *mut CUmodule, library: CUlibrary);
    cuLibraryGetGlobal(address: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char);
    cuLibraryGetManaged(address: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char);
    cuLibraryGetUnifiedFunction(function: *mut *mut c_void, library: CUlibrary, name: *const c_char);
    cuKernelGetFunction(function: *mut CUfunction, kernel: CUkernel);
    cuKernelGetLibrary(library: *mut CUlibrary, kernel: CUkernel);
    cuKernelGetName(name: *mut *const c_char, kernel: CUkernel);
    cuKernelGetAttribute(value: *mut c_int, attribute: c_int, kernel: CUkernel, device: CUdevice);
    cuKernelSetAttribute(attribute: c_int, value: c_int, kernel: CUkernel, device: CUdevice);
    cuKernelSetCacheConfig(kernel: CUkernel, config: c_int, device: CUdevice);
    cuKernelGetParamCount(kernel: CUkernel, count: *mut usize);
    cuKernelGetParamInfo(kernel: CUkernel, index: usize, offset: *mut usize, size: *mut usize);
    cuFuncGetName(name: *mut *const c_char, function: CUfunction);
}

const NOT_PERMITTED: CUresult = 800;
const MAX_DYNAMIC: c_int = 8;

const BODY: &str = "
    .visible .global .u32 counter = 5;
    .visible .global .attribute(.managed) .u64 shared_word = 7;
    .visible .entry add(.param .u64 to, .param .u32 n) {
        .reg .b64 %to; .reg .b32 %r<3>;
        ld.param.u64 %to, [to];
        ld.param.u32 %r0, [n];
        ld.global.u32 %r1, [counter];
        add.u32 %r2, %r0, %r1;
        st.global.u32 [%to], %r2;
        st.global.u32 [counter], %r2;
        ret;
    }
    .visible .entry touch() {
        .reg .b64 %r;
        ld.global.u64 %r, [shared_word];
        add.u64 %r, %r, 1;
        st.global.u64 [shared_word], %r;
        ret;
    }";

fn load(body: &str) -> CUlibrary {
    let (mut library, none) = (null_mut(), null_mut::<*mut c_void>());
    let code = text(body);
    ok(cuLibraryLoadData(
        &mut library,
        code.as_ptr().cast(),
        null_mut(),
        none,
        0,
        null_mut(),
        none,
        0,
    ));
    library
}

fn kernel(library: CUlibrary, name: &str) -> CUkernel {
    let (mut kernel, name) = (null_mut(), CString::new(name).unwrap());
    ok(cuLibraryGetKernel(&mut kernel, library, name.as_ptr()));
    kernel
}

fn text_of(text: *const c_char) -> String {
    // SAFETY: the driver gave it.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

#[test]
fn a_library_needs_no_context_and_has_its_kernels() {
    ok(cuInit(0));
    ok(cuCtxSetCurrent(null_mut()));
    let library = load(BODY);
    let (mut count, mut kernels) = (0, [null_mut(); 4]);
    ok(cuLibraryGetKernelCount(&mut count, library));
    assert_eq!(count, 2);
    ok(cuLibraryEnumerateKernels(kernels.as_mut_ptr(), 4, library));
    assert!(kernels[2].is_null());
    let names: BTreeSet<String> = kernels[..2]
        .iter()
        .map(|kernel| {
            let mut name = null();
            ok(cuKernelGetName(&mut name, *kernel));
            text_of(name)
        })
        .collect();
    assert_eq!(names, BTreeSet::from(["add".to_string(), "touch".to_string()]));
    // A kernel is the same one however it is found.
    assert!(kernels.contains(&kernel(library, "add")));
    let mut of = null_mut();
    ok(cuKernelGetLibrary(&mut of, kernels[0]));
    assert_eq!(of, library);
    let mut few = [null_mut(); 2];
    ok(cuLibraryEnumerateKernels(few.as_mut_ptr(), 1, library));
    assert!(!few[0].is_null() && few[1].is_null());
    let mut found = null_mut();
    assert_eq!(
        cuLibraryGetKernel(&mut found, library, c"counter".as_ptr()),
        CUDA_ERROR_NOT_FOUND
    );
    // What belongs to a context asks for one.
    let (mut module, mut address, mut bytes) = (null_mut(), 0, 0);
    assert_eq!(cuLibraryGetModule(&mut module, library), CUDA_ERROR_INVALID_CONTEXT);
    assert_eq!(cuKernelGetFunction(&mut found, kernels[0]), CUDA_ERROR_INVALID_CONTEXT);
    let refused = cuLibraryGetGlobal(&mut address, &mut bytes, library, c"counter".as_ptr());
    assert_eq!(refused, CUDA_ERROR_INVALID_CONTEXT);
    // Managed variables do not.
    ok(cuLibraryGetManaged(
        &mut address,
        &mut bytes,
        library,
        c"shared_word".as_ptr(),
    ));
    assert_eq!(bytes, 8);
    // SAFETY: a managed variable of 8 bytes.
    assert_eq!(unsafe { *(address as *const u64) }, 7);
    ok(cuLibraryUnload(library));
    assert_eq!(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuKernelGetName(&mut null(), kernels[0]), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuKernelGetLibrary(&mut of, kernels[0]), CUDA_ERROR_INVALID_HANDLE);
}

#[test]
fn each_context_has_its_own_variables_and_all_share_managed_ones() {
    let first = context();
    let library = load(BODY);
    let add = kernel(library, "add");
    let run = |n| {
        let to = words(1);
        // A kernel launches in place of a function.
        launch(add, 1, 1, &[to, n]);
        read(to, 1)[0]
    };
    assert_eq!((run(1), run(10)), (6, 16));
    let counter = || {
        let (mut address, mut bytes) = (0, 0);
        ok(cuLibraryGetGlobal(
            &mut address,
            &mut bytes,
            library,
            c"counter".as_ptr(),
        ));
        assert_eq!(bytes, 4);
        address
    };
    let managed = || {
        let mut address = 0;
        ok(cuLibraryGetManaged(
            &mut address,
            null_mut(),
            library,
            c"shared_word".as_ptr(),
        ));
        address
    };
    let (counter_here, managed_here) = (counter(), managed());
    launch(kernel(library, "touch"), 1, 1, &[]);
    let mut second = null_mut();
    ok(cuCtxCreate(&mut second, 0, 0));
    assert_eq!(run(100), 105);
    assert_ne!(counter(), counter_here);
    assert_eq!(managed(), managed_here);
    // The second context has linked the library: its managed variable has kept what the first one made of it.
    // SAFETY: a managed variable of 8 bytes.
    let word = || unsafe { *(managed_here as *const u64) };
    assert_eq!(word(), 8);
    launch(kernel(library, "touch"), 1, 1, &[]);
    assert_eq!(word(), 9);
    ok(cuCtxSetCurrent(first));
    assert_eq!(run(0), 16);
    assert_eq!(counter(), counter_here);
    launch(kernel(library, "touch"), 1, 1, &[]);
    assert_eq!(word(), 10);

    // Modules and functions of a library are those of the context, and end with it or with the library only.
    let (mut module, mut function, mut name) = (null_mut(), null_mut(), null());
    ok(cuLibraryGetModule(&mut module, library));
    assert_eq!(cuModuleUnload(module), NOT_PERMITTED);
    ok(cuKernelGetFunction(&mut function, add));
    assert_ne!(function, add);
    ok(cuFuncGetName(&mut name, function));
    assert_eq!(text_of(name), "add");
    ok(cuCtxDestroy(second));
    ok(cuLibraryUnload(library));
    assert_eq!(try_launch(function, 1, 1, &[0, 0]), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(try_launch(add, 1, 1, &[0, 0]), CUDA_ERROR_INVALID_HANDLE);
}

#[test]
fn attributes_of_kernels_are_those_of_a_device() {
    context();
    let library = load(BODY);
    let add = kernel(library, "add");
    let get = |which| {
        let mut value = -99;
        ok(cuKernelGetAttribute(&mut value, which, add, 0));
        value
    };
    assert_eq!((get(0), get(1), get(5), get(MAX_DYNAMIC)), (1024, 0, 80, 49152));
    ok(cuKernelSetAttribute(MAX_DYNAMIC, 60_000, add, 0));
    assert_eq!(get(MAX_DYNAMIC), 60_000);
    let (mut function, mut value) = (null_mut(), 0);
    ok(cuKernelGetFunction(&mut function, add));
    ok(cuFuncGetAttribute(&mut value, MAX_DYNAMIC, function));
    assert_eq!(value, 60_000);
    // What is set on the function goes before, whichever came first; the kernel says what was set on it (manual,
    // cuKernelSetAttribute).
    ok(cuFuncSetAttribute(function, MAX_DYNAMIC, 1000));
    ok(cuKernelSetAttribute(MAX_DYNAMIC, 70_000, add, 0));
    ok(cuFuncGetAttribute(&mut value, MAX_DYNAMIC, function));
    assert_eq!((value, get(MAX_DYNAMIC)), (1000, 70_000));

    let mut value = 0;
    for which in [-1, 18] {
        assert_eq!(
            cuKernelGetAttribute(&mut value, which, add, 0),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(cuKernelSetAttribute(which, 0, add, 0), CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(cuKernelSetAttribute(0, 1, add, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuKernelSetAttribute(MAX_DYNAMIC, 1 << 20, add, 0),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuKernelGetAttribute(null_mut(), 0, add, 0), CUDA_ERROR_INVALID_VALUE);
    for device in [-1, 64] {
        assert_eq!(
            cuKernelGetAttribute(&mut value, 0, add, device),
            CUDA_ERROR_INVALID_DEVICE
        );
        assert_eq!(
            cuKernelSetAttribute(MAX_DYNAMIC, 0, add, device),
            CUDA_ERROR_INVALID_DEVICE
        );
        assert_eq!(cuKernelSetCacheConfig(add, 0, device), CUDA_ERROR_INVALID_DEVICE);
    }
    // A function is no kernel.
    assert_eq!(
        cuKernelGetAttribute(&mut value, 0, function, 0),
        CUDA_ERROR_INVALID_HANDLE
    );
    assert_eq!(
        cuKernelSetAttribute(MAX_DYNAMIC, 0, null_mut(), 0),
        CUDA_ERROR_INVALID_HANDLE
    );
    for config in 0..4 {
        ok(cuKernelSetCacheConfig(add, config, 0));
    }
    assert_eq!(cuKernelSetCacheConfig(add, 4, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuKernelSetCacheConfig(null_mut(), 0, 0), CUDA_ERROR_INVALID_HANDLE);

    let (mut count, mut offset, mut size) = (0, 0, 0);
    ok(cuKernelGetParamCount(add, &mut count));
    assert_eq!(count, 2);
    ok(cuKernelGetParamInfo(add, 1, &mut offset, &mut size));
    assert_eq!((offset, size), (8, 4));
    ok(cuKernelGetParamInfo(add, 0, &mut offset, null_mut()));
    assert_eq!(offset, 0);
    assert_eq!(
        cuKernelGetParamInfo(add, 2, &mut offset, &mut size),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuKernelGetParamInfo(add, 0, null_mut(), &mut size),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuKernelGetParamInfo(null_mut(), 0, &mut offset, &mut size),
        CUDA_ERROR_INVALID_HANDLE
    );
    assert_eq!(cuKernelGetParamCount(null_mut(), &mut count), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuKernelGetParamCount(add, null_mut()), CUDA_ERROR_INVALID_VALUE);
    ok(cuLibraryUnload(library));
}

/// On several devices a kernel has attributes for each.
#[test]
fn attributes_of_kernels_differ_from_device_to_device() {
    alone(test_name!(), &[("MARGAY_DEVICES", "2")], || {
        ok(cuInit(0));
        let library = load(BODY);
        let add = kernel(library, "add");
        ok(cuKernelSetAttribute(MAX_DYNAMIC, 50_000, add, 1));
        let mut values = [0; 2];
        for (device, value) in values.iter_mut().enumerate() {
            ok(cuKernelGetAttribute(value, MAX_DYNAMIC, add, device as c_int));
        }
        assert_eq!(values, [49_152, 50_000]);
    });
}

#[test]
fn bad_calls_of_libraries_are_refused() {
    context();
    let (mut library, none) = (null_mut(), null_mut::<*mut c_void>());
    let code = text(BODY);
    let image = code.as_ptr().cast::<c_void>();
    let load_data = |library: *mut CUlibrary, image, options: &mut [c_int], count: c_uint| {
        cuLibraryLoadData(library, image, null_mut(), none, 0, options.as_mut_ptr(), none, count)
    };
    assert_eq!(load_data(null_mut(), image, &mut [0], 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(load_data(&mut library, null(), &mut [0], 0), CUDA_ERROR_INVALID_VALUE);
    // CU_LIBRARY_BINARY_IS_PRESERVED is 1; there are two options.
    ok(load_data(&mut library, image, &mut [1], 1));
    ok(cuLibraryUnload(library));
    assert_eq!(load_data(&mut library, image, &mut [2], 1), CUDA_ERROR_INVALID_VALUE);
    let bad = text(".visible .entry k() { nonsense; }");
    let rubbish = text("rubbish");
    assert_eq!(
        load_data(&mut library, rubbish.as_ptr().cast(), &mut [0], 0),
        CUDA_ERROR_INVALID_PTX
    );
    // Of a library's kernels a mistake may show when they are used.
    let loaded = load_data(&mut library, bad.as_ptr().cast(), &mut [0], 0);
    assert!(loaded == CUDA_SUCCESS || loaded == CUDA_ERROR_INVALID_PTX);

    let file =
        |path: *const c_char| cuLibraryLoadFromFile(&mut null_mut(), path, null_mut(), none, 0, null_mut(), none, 0);
    let (path, _) = data("several.fatbin");
    let path = CString::new(path.to_str().unwrap()).unwrap();
    ok(cuLibraryLoadFromFile(
        &mut library,
        path.as_ptr(),
        null_mut(),
        none,
        0,
        null_mut(),
        none,
        0,
    ));
    kernel(library, "add");
    assert_eq!(file(c"/nowhere".as_ptr()), CUDA_ERROR_FILE_NOT_FOUND);
    assert_eq!(file(null()), CUDA_ERROR_INVALID_VALUE);

    let (mut found, mut count, mut address, mut bytes) = (null_mut(), 0, 0, 0);
    for stray in [null_mut(), 0x1234 as CUlibrary] {
        assert_eq!(
            cuLibraryGetKernel(&mut found, stray, c"add".as_ptr()),
            CUDA_ERROR_INVALID_HANDLE
        );
        assert_eq!(cuLibraryGetKernelCount(&mut count, stray), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(
            cuLibraryEnumerateKernels(&mut found, 1, stray),
            CUDA_ERROR_INVALID_HANDLE
        );
        assert_eq!(cuLibraryGetModule(&mut found, stray), CUDA_ERROR_INVALID_HANDLE);
        let global = cuLibraryGetGlobal(&mut address, &mut bytes, stray, c"x".as_ptr());
        assert_eq!(global, CUDA_ERROR_INVALID_HANDLE);
        let managed = cuLibraryGetManaged(&mut address, &mut bytes, stray, c"x".as_ptr());
        assert_eq!(managed, CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(
            cuLibraryGetUnifiedFunction(&mut found, stray, c"x".as_ptr()),
            CUDA_ERROR_INVALID_HANDLE
        );
        assert_eq!(cuLibraryUnload(stray), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuKernelGetFunction(&mut found, stray), CUDA_ERROR_INVALID_HANDLE);
    }
    let library = load(BODY);
    assert_eq!(
        cuLibraryGetKernel(null_mut(), library, c"add".as_ptr()),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuLibraryGetKernel(&mut found, library, null()),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuLibraryGetKernelCount(null_mut(), library), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuLibraryEnumerateKernels(null_mut(), 1, library),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuLibraryGetModule(null_mut(), library), CUDA_ERROR_INVALID_VALUE);
    let neither = cuLibraryGetGlobal(null_mut(), null_mut(), library, c"counter".as_ptr());
    assert_eq!(neither, CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuLibraryGetGlobal(&mut address, &mut bytes, library, c"x".as_ptr()),
        CUDA_ERROR_NOT_FOUND
    );
    // A variable that is not managed, and one that is.
    assert_eq!(
        cuLibraryGetManaged(&mut address, &mut bytes, library, c"counter".as_ptr()),
        CUDA_ERROR_NOT_FOUND
    );
    ok(cuLibraryGetManaged(
        &mut address,
        &mut bytes,
        library,
        c"shared_word".as_ptr(),
    ));
    // No device here calls functions of the host.
    assert_eq!(
        cuLibraryGetUnifiedFunction(&mut found, library, c"add".as_ptr()),
        CUDA_ERROR_NOT_FOUND
    );
    assert_eq!(
        cuLibraryGetUnifiedFunction(null_mut(), library, c"add".as_ptr()),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuKernelGetFunction(null_mut(), kernel(library, "add")),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuKernelGetLibrary(null_mut(), kernel(library, "add")),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuKernelGetName(null_mut(), kernel(library, "add")),
        CUDA_ERROR_INVALID_VALUE
    );
}
