//! Module Management: loading, functions, variables; and Execution Control as far as it is about functions.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use crate::alone::alone;
use crate::c::*;
use crate::code::*;
use crate::test_name;

functions! {
    cuGetExportTable(table: *mut *const c_void, id: *const [u8; 16]);
    cuModuleLoadFatBinary(module: *mut CUmodule, image: *const c_void);
    cuModuleGetFunctionCount(count: *mut c_uint, module: CUmodule);
    cuModuleEnumerateFunctions(functions: *mut CUfunction, count: c_uint, module: CUmodule);
    cuModuleGetLoadingMode(mode: *mut c_int);
    cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        count: c_uint,
        options: *mut c_int,
        values: *mut *mut c_void,
    );
    cuFuncGetModule(module: *mut CUmodule, function: CUfunction);
    cuFuncGetName(name: *mut *const c_char, function: CUfunction);
    cuFuncGetParamCount(function: CUfunction, count: *mut usize);
    cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize, size: *mut usize);
    cuFuncIsLoaded(state: *mut c_int, function: CUfunction);
    cuFuncLoad(function: CUfunction);
    cuFuncSetCacheConfig(function: CUfunction, config: c_int);
    cuFuncSetSharedMemConfig(function: CUfunction, config: c_int);
}

const NOT_PERMITTED: CUresult = 800;
const UNLOADED: c_int = 0;
const LOADED: c_int = 1;
const EAGER: c_int = 1;
const LAZY: c_int = 2;

const THREE: &str = "
    .visible .global .align 16 .b8 table[48];
    .visible .const .u32 constant = 17;
    .visible .entry first(.param .u32 a, .param .u64 b, .param .align 16 .b8 c[20], .param .u8 d) { ret; }
    .visible .entry second() .maxntid 64 { ret; }
    .visible .func helper() { ret; }
    .entry third() .reqntid 4, 2, 1 {
        .shared .align 4 .b8 window[1000];
        .reg .b32 %r;
        mov.u32 %r, window;
        st.shared.u32 [%r], %r;
        ret;
    }";

fn name(function: CUfunction) -> String {
    let mut name = null();
    ok(cuFuncGetName(&mut name, function));
    // SAFETY: the driver gave it, for as long as the module lives.
    unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned()
}

fn attribute(function: CUfunction, which: c_int) -> c_int {
    let mut value = -99;
    ok(cuFuncGetAttribute(&mut value, which, function));
    value
}

#[test]
fn a_module_says_what_is_in_it() {
    context();
    let module = module(THREE);
    let mut count = 0;
    ok(cuModuleGetFunctionCount(&mut count, module));
    assert_eq!(count, 3);
    let mut functions = [null_mut(); 5];
    ok(cuModuleEnumerateFunctions(functions.as_mut_ptr(), 5, module));
    let mut names: Vec<String> = functions[..3].iter().map(|function| name(*function)).collect();
    names.sort();
    assert_eq!(names, ["first", "second", "third"]);
    assert!(functions[3].is_null());
    // Fewer than there are.
    let mut one = [null_mut(); 2];
    ok(cuModuleEnumerateFunctions(one.as_mut_ptr(), 1, module));
    assert!(!one[0].is_null() && one[1].is_null());
    // The same ones that one gets by name.
    assert!(functions.contains(&function(module, "second")));
    let mut of = null_mut();
    ok(cuFuncGetModule(&mut of, functions[0]));
    assert_eq!(of, module);

    let (mut found, mut address, mut bytes) = (null_mut(), 0, 0);
    for absent in [c"fourth", c"helper", c"table", c""] {
        assert_eq!(
            cuModuleGetFunction(&mut found, module, absent.as_ptr()),
            CUDA_ERROR_NOT_FOUND
        );
    }
    assert_eq!(global(module, "table").1, 48);
    assert_eq!(read(global(module, "constant").0, 1), [17]);
    assert_eq!(
        cuModuleGetGlobal(&mut address, &mut bytes, module, c"first".as_ptr()),
        CUDA_ERROR_NOT_FOUND
    );
    // Either output may be left out.
    ok(cuModuleGetGlobal(null_mut(), &mut bytes, module, c"table".as_ptr()));
    ok(cuModuleGetGlobal(&mut address, null_mut(), module, c"table".as_ptr()));

    ok(cuModuleUnload(module));
    assert_eq!(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(
        cuModuleGetFunction(&mut found, module, c"first".as_ptr()),
        CUDA_ERROR_INVALID_HANDLE
    );
    assert_eq!(cuModuleGetFunctionCount(&mut count, module), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuFuncGetModule(&mut of, functions[0]), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(try_launch(functions[1], 1, 1, &[]), CUDA_ERROR_INVALID_HANDLE);
}

#[test]
fn parameters_are_described() {
    context();
    let module = module(THREE);
    let first = function(module, "first");
    let mut count = 0;
    ok(cuFuncGetParamCount(first, &mut count));
    assert_eq!(count, 4);
    // As a structure of C with these members would lie (PTX ISA, kernel function parameters).
    for (index, expected) in [(4, 0, 0), (8, 8, 1), (20, 16, 2), (1, 36, 3)].map(|(s, o, i)| (i, (o, s))) {
        let (mut offset, mut size) = (99, 99);
        ok(cuFuncGetParamInfo(first, index, &mut offset, &mut size));
        assert_eq!((offset, size), expected);
        ok(cuFuncGetParamInfo(first, index, &mut offset, null_mut()));
    }
    let (mut offset, mut size) = (0, 0);
    assert_eq!(
        cuFuncGetParamInfo(first, 4, &mut offset, &mut size),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuFuncGetParamInfo(first, 0, null_mut(), &mut size),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuFuncGetParamCount(first, null_mut()), CUDA_ERROR_INVALID_VALUE);
    ok(cuFuncGetParamCount(function(module, "second"), &mut count));
    assert_eq!(count, 0);
    let stray = 0x1234 as CUfunction;
    assert_eq!(cuFuncGetParamCount(stray, &mut count), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(
        cuFuncGetParamInfo(null_mut(), 0, &mut offset, &mut size),
        CUDA_ERROR_INVALID_HANDLE
    );
    assert_eq!(cuFuncGetName(&mut null(), stray), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuFuncGetName(null_mut(), first), CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn every_attribute_of_a_function_is_told_and_those_that_can_be_are_set() {
    context();
    let module = module(THREE);
    let (first, second, third) = (
        function(module, "first"),
        function(module, "second"),
        function(module, "third"),
    );
    let (mut optin, mut major, mut minor) = (0, 0, 0);
    ok(cuDeviceGetAttribute(&mut optin, 97, 0));
    ok(cuDeviceGetAttribute(&mut major, 75, 0));
    ok(cuDeviceGetAttribute(&mut minor, 76, 0));
    // MAX_THREADS_PER_BLOCK, SHARED_SIZE_BYTES, CONST_SIZE_BYTES, PTX_VERSION, BINARY_VERSION
    assert_eq!([first, second, third].map(|f| attribute(f, 0)), [1024, 64, 8]);
    assert_eq!([first, second, third].map(|f| attribute(f, 1)), [0, 0, 1000]);
    assert_eq!(attribute(first, 2), 4);
    assert_eq!(attribute(first, 5), 80);
    assert_eq!(attribute(first, 6), major * 10 + minor);
    // LOCAL_SIZE_BYTES, NUM_REGS: a compiler's business, but within what a launch of the largest block allows.
    assert!(attribute(first, 3) >= 0 && (1..=64).contains(&attribute(first, 4)));
    // CACHE_MODE_CA, PREFERRED_SHARED_MEMORY_CARVEOUT, DEVICE_NODE_UPDATE_SUPPORTED, SHARED_MEMORY_MODE
    assert_eq!([7, 9, 16, 17].map(|which| attribute(first, which)), [0, -1, 1, 0]);
    // MAX_DYNAMIC_SHARED_SIZE_BYTES: what is left of 48 KiB, until more is asked for.
    assert_eq!([first, third].map(|f| attribute(f, 8)), [49152, 48152]);
    ok(cuFuncSetAttribute(third, 8, optin - 1000));
    assert_eq!(attribute(third, 8), optin - 1000);
    for refused in [optin - 999, -1] {
        assert_eq!(cuFuncSetAttribute(third, 8, refused), CUDA_ERROR_INVALID_VALUE);
    }
    // The carve-out: percent, or -1.
    for (value, expected) in [
        (0, CUDA_SUCCESS),
        (100, CUDA_SUCCESS),
        (-1, CUDA_SUCCESS),
        (101, 1),
        (-2, 1),
    ] {
        assert_eq!(cuFuncSetAttribute(first, 9, value), expected);
    }
    // Clusters: not asked for; asked for; non-portable ones; policies.
    assert_eq!([10, 11, 12, 13, 14, 15].map(|which| attribute(first, which)), [0; 6]);
    for (which, value) in [(11, 2), (12, 1), (13, 1), (14, 1), (15, 2), (17, 2)] {
        ok(cuFuncSetAttribute(first, which, value));
        assert_eq!(attribute(first, which), value);
    }
    for (which, value) in [(11, -1), (14, 2), (15, 4), (17, 5), (18, 0), (99, 0), (-1, 0)] {
        assert_eq!(
            cuFuncSetAttribute(first, which, value),
            CUDA_ERROR_INVALID_VALUE,
            "{which}"
        );
    }
    // Those that can only be read.
    for which in [0, 1, 2, 3, 4, 5, 6, 7, 10, 16] {
        assert_eq!(cuFuncSetAttribute(first, which, 1), CUDA_ERROR_INVALID_VALUE, "{which}");
    }
    let mut value = 0;
    for which in [-1, 18, 1000] {
        assert_eq!(cuFuncGetAttribute(&mut value, which, first), CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(cuFuncGetAttribute(null_mut(), 0, first), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuFuncGetAttribute(&mut value, 0, module), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuFuncSetAttribute(null_mut(), 8, 0), CUDA_ERROR_INVALID_HANDLE);

    // Settled by the compiler.
    let mut clusters = null_mut();
    let code = CString::new(
        ".version 8.0 .target sm_90 .address_size 64
         .visible .entry fixed() .explicitcluster .reqnctapercluster 2, 1, 1 { ret; }
         .visible .entry ranked() .explicitcluster .maxclusterrank 4 { ret; }",
    )
    .unwrap();
    ok(cuModuleLoadData(&mut clusters, code.as_ptr().cast()));
    let (fixed, ranked) = (function(clusters, "fixed"), function(clusters, "ranked"));
    assert_eq!([10, 11, 12, 13].map(|which| attribute(fixed, which)), [1, 2, 1, 1]);
    assert_eq!(cuFuncSetAttribute(fixed, 11, 4), NOT_PERMITTED);
    assert_eq!([10, 11].map(|which| attribute(ranked, which)), [1, 0]);

    for config in 0..4 {
        ok(cuFuncSetCacheConfig(first, config));
    }
    assert_eq!(cuFuncSetCacheConfig(first, 4), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuFuncSetCacheConfig(null_mut(), 0), CUDA_ERROR_INVALID_HANDLE);
    for config in 0..3 {
        ok(cuFuncSetSharedMemConfig(first, config));
    }
    assert_eq!(cuFuncSetSharedMemConfig(first, 3), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuFuncSetSharedMemConfig(null_mut(), 0), CUDA_ERROR_INVALID_HANDLE);
}

#[test]
fn functions_are_loaded_when_they_are_used() {
    context();
    let module = module(THREE);
    let second = function(module, "second");
    let (mut mode, mut state) = (0, -1);
    ok(cuModuleGetLoadingMode(&mut mode));
    assert_eq!(mode, LAZY);
    ok(cuFuncIsLoaded(&mut state, second));
    assert_eq!(state, UNLOADED);
    ok(cuFuncLoad(second));
    ok(cuFuncIsLoaded(&mut state, second));
    assert_eq!(state, LOADED);
    ok(cuFuncLoad(second));
    let third = function(module, "third");
    launch(function(module, "second"), 1, 1, &[]);
    ok(cuFuncIsLoaded(&mut state, third));
    assert_eq!(state, UNLOADED);
    assert_eq!(cuFuncIsLoaded(null_mut(), second), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuFuncIsLoaded(&mut state, null_mut()), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuFuncLoad(null_mut()), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuModuleGetLoadingMode(null_mut()), CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn eager_loading_loads_functions_with_their_module() {
    alone(test_name!(), &[("CUDA_MODULE_LOADING", "EAGER")], || {
        context();
        let (mut mode, mut state) = (0, -1);
        ok(cuModuleGetLoadingMode(&mut mode));
        assert_eq!(mode, EAGER);
        ok(cuFuncIsLoaded(&mut state, function(module(THREE), "third")));
        assert_eq!(state, LOADED);
    });
}

#[test]
fn images_of_every_kind_are_loaded_or_refused() {
    context();
    let mut module = null_mut();
    for name in [
        "add.ptx",
        "ptx-none.fatbin",
        "ptx-speed.fatbin",
        "several.fatbin",
        "concat.fatbin",
        "lto.fatbin",
    ] {
        let (path, mut bytes) = data(name);
        bytes.push(0);
        ok(cuModuleLoadData(&mut module, bytes.as_ptr().cast()));
        function(module, "add");
        ok(cuModuleLoadFatBinary(&mut module, bytes.as_ptr().cast()));
        let path = CString::new(path.to_str().unwrap()).unwrap();
        ok(cuModuleLoad(&mut module, path.as_ptr()));
        function(module, "add");
        ok(cuModuleUnload(module));
    }
    for name in ["sass.fatbin", "add.cubin"] {
        let (path, bytes) = data(name);
        assert_eq!(
            cuModuleLoadData(&mut module, bytes.as_ptr().cast()),
            CUDA_ERROR_NO_BINARY_FOR_GPU
        );
        let path = CString::new(path.to_str().unwrap()).unwrap();
        assert_eq!(cuModuleLoad(&mut module, path.as_ptr()), CUDA_ERROR_NO_BINARY_FOR_GPU);
    }
    assert_eq!(
        cuModuleLoad(&mut module, c"/nowhere".as_ptr()),
        CUDA_ERROR_FILE_NOT_FOUND
    );
    assert_eq!(
        cuModuleLoadData(&mut module, c"\x01\x02rubbish".as_ptr().cast()),
        CUDA_ERROR_INVALID_IMAGE
    );
    let newer = CString::new(".version 99.0\n.target sm_80\n.address_size 64\n").unwrap();
    // CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    assert_eq!(cuModuleLoadData(&mut module, newer.as_ptr().cast()), 222);
    assert_eq!(
        cuModuleLoadData(&mut module, text("rubbish").as_ptr().cast()),
        CUDA_ERROR_INVALID_PTX
    );
    for (module, image) in [(null_mut(), text("").as_ptr()), (&raw mut module, null())] {
        assert_eq!(cuModuleLoadData(module, image.cast()), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuModuleLoadFatBinary(module, image.cast()), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuModuleLoad(module, image), CUDA_ERROR_INVALID_VALUE);
    }
}

/// NCCL asks for dozens of kernels of one image, and does without them.
#[test]
fn that_an_image_has_no_ptx_is_said_once() {
    let run = alone(test_name!(), &[("MARGAY_LOG", "error")], || {
        context();
        for name in ["sass.fatbin", "add.cubin", "sass.fatbin", "add.cubin"] {
            let (mut module, (_, bytes)) = (null_mut(), data(name));
            let answer = cuModuleLoadData(&mut module, bytes.as_ptr().cast());
            assert_eq!(answer, CUDA_ERROR_NO_BINARY_FOR_GPU);
        }
    });
    let lines = run.stderr.lines().filter(|line| line.contains("holds no PTX"));
    assert_eq!(lines.count(), 2, "{}", run.stderr);
}

#[test]
fn options_of_the_compiler_are_checked_and_answered() {
    context();
    const WALL_TIME: c_int = 2;
    const INFO_LOG: c_int = 3;
    const INFO_LOG_SIZE: c_int = 4;
    const ERROR_LOG: c_int = 5;
    const ERROR_LOG_SIZE: c_int = 6;
    let (mut info, mut error) = ([0x55_u8; 512], [0x55_u8; 64]);
    let mut options = [WALL_TIME, INFO_LOG, INFO_LOG_SIZE, ERROR_LOG, ERROR_LOG_SIZE];
    let mut values = [
        null_mut(),
        info.as_mut_ptr().cast::<c_void>(),
        number(512),
        error.as_mut_ptr().cast::<c_void>(),
        number(64),
    ];
    let mut module = null_mut();
    let (good, bad) = (text(THREE), text(".visible .entry k() { nonsense.u32 %r1; ret; }"));
    ok(cuModuleLoadDataEx(
        &mut module,
        good.as_ptr().cast(),
        5,
        options.as_mut_ptr(),
        values.as_mut_ptr(),
    ));
    let milliseconds = f32::from_bits(values[0] as usize as u32);
    assert!(milliseconds > 0.0 && milliseconds < 10_000.0, "{milliseconds}");
    assert_eq!((values[2] as usize, values[4] as usize), (0, 0));
    (values[2], values[4]) = (number(512), number(64));
    let refused = cuModuleLoadDataEx(
        &mut module,
        bad.as_ptr().cast(),
        5,
        options.as_mut_ptr(),
        values.as_mut_ptr(),
    );
    assert_eq!(refused, CUDA_ERROR_INVALID_PTX);
    // As much as there is room for, with its end.
    assert_eq!(values[4] as usize, 63);
    assert_eq!(error[63], 0);
    assert!(
        CStr::from_bytes_until_nul(&error)
            .unwrap()
            .to_str()
            .unwrap()
            .contains("nonsense")
    );

    let none = null_mut::<*mut c_void>();
    let absent = cuModuleLoadDataEx(&mut module, good.as_ptr().cast(), 1, null_mut(), none);
    assert_eq!(absent, CUDA_ERROR_INVALID_VALUE);
    for unknown in [-1, 100, 1000] {
        let (mut options, mut values) = ([unknown], [null_mut()]);
        let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
        assert_eq!(
            cuModuleLoadDataEx(&mut module, good.as_ptr().cast(), 1, options, values),
            CUDA_ERROR_INVALID_VALUE
        );
    }
}

/// The private table by which cuFFT finds the only kernel of a module.
#[test]
fn a_module_tells_its_functions_one_by_one() {
    type Tell = unsafe extern "C" fn(*mut Vec<(CUfunction, CUmodule)>, CUfunction, CUmodule);
    type EachFunction =
        unsafe extern "C" fn(CUcontext, CUmodule, Option<Tell>, *mut Vec<(CUfunction, CUmodule)>) -> c_uint;
    const ID: [u8; 16] = [
        0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99, 0x1e,
    ];
    unsafe extern "C" fn tell(told: *mut Vec<(CUfunction, CUmodule)>, function: CUfunction, of: CUmodule) {
        // SAFETY: the test's own vector, which it does not touch meanwhile.
        unsafe { (*told).push((function, of)) };
    }

    let context = context();
    let mut table = null();
    ok(cuGetExportTable(&mut table, &ID));
    // SAFETY: word 7 of this table is such a function.
    let each = unsafe { std::mem::transmute::<*const c_void, EachFunction>(*table.cast::<*const c_void>().add(7)) };
    let one = module(".visible .entry only() { ret; }");
    let three = module(THREE);
    let mut told = Vec::new();
    // SAFETY: the function takes handles, whatever they are, and gives `tell` what it is handed for it.
    unsafe {
        assert_eq!(each(context, one, Some(tell), &mut told), 1);
        assert_eq!(told, [(function(one, "only"), one)]);
        told.clear();
        assert_eq!(each(context, three, Some(tell), &mut told), 3);
        assert!(told.contains(&(function(three, "second"), three)));
        assert_eq!(each(context, three, None, null_mut()), 3);
        told.clear();
        assert_eq!(each(context, null_mut(), Some(tell), &mut told), 0);
        assert!(told.is_empty());
    }
}
