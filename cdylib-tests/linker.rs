//! Module Management: cuLink*.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use crate::alone::alone;
use crate::c::*;
use crate::code::*;
use crate::test_name;

functions! {
    cuLinkCreate = "cuLinkCreate_v2" (
        count: c_uint,
        options: *mut c_int,
        values: *mut *mut c_void,
        state: *mut CUlinkState,
    );
    cuLinkAddData = "cuLinkAddData_v2" (
        state: CUlinkState,
        kind: c_int,
        data: *const c_void,
        size: usize,
        name: *const c_char,
        count: c_uint,
        options: *mut c_int,
        values: *mut *mut c_void,
    );
    cuLinkAddFile = "cuLinkAddFile_v2" (
        state: CUlinkState,
        kind: c_int,
        path: *const c_char,
        count: c_uint,
        options: *mut c_int,
        values: *mut *mut c_void,
    );
    cuLinkComplete(state: CUlinkState, image: *mut *mut c_void, size: *mut usize);
    cuLinkDestroy(state: CUlinkState);
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
    cuLibraryGetGlobal(address: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char);
    cuLibraryUnload(library: CUlibrary);
    cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        count: c_uint,
        options: *mut c_int,
        values: *mut *mut c_void,
    );
}

type CUlinkState = *mut c_void;

const CUBIN: c_int = 0;
const PTX: c_int = 1;
const FATBINARY: c_int = 2;
const OBJECT: c_int = 3;
const LIBRARY: c_int = 4;
const NVVM: c_int = 5;

const INFO_LOG: c_int = 3;
const INFO_LOG_SIZE: c_int = 4;
const ERROR_LOG: c_int = 5;
const ERROR_LOG_SIZE: c_int = 6;
const SYMBOL_NAMES: c_int = 17;
const SYMBOL_ADDRESSES: c_int = 18;
const SYMBOL_COUNT: c_int = 19;

const UNKNOWN: CUresult = 999;

fn create() -> CUlinkState {
    let mut state = null_mut();
    ok(cuLinkCreate(0, null_mut(), null_mut(), &mut state));
    state
}

fn add(state: CUlinkState, kind: c_int, bytes: &[u8], name: &CStr) -> CUresult {
    let (none, no_values) = (null_mut(), null_mut());
    cuLinkAddData(
        state,
        kind,
        bytes.as_ptr().cast(),
        bytes.len(),
        name.as_ptr(),
        0,
        none,
        no_values,
    )
}

fn add_text(state: CUlinkState, body: &str) -> CUresult {
    add(state, PTX, text(body).as_bytes_with_nul(), c"text")
}

fn add_file(state: CUlinkState, kind: c_int, path: &std::path::Path) -> CUresult {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    cuLinkAddFile(state, kind, path.as_ptr(), 0, null_mut(), null_mut())
}

/// Completes, and loads what came of it.
fn load(state: CUlinkState) -> CUmodule {
    let (mut image, mut size, mut module) = (null_mut(), 0, null_mut());
    ok(cuLinkComplete(state, &mut image, &mut size));
    assert!(!image.is_null() && size > 0);
    // Completing again gives the same.
    let mut again = null_mut();
    ok(cuLinkComplete(state, &mut again, null_mut()));
    assert_eq!(image, again);
    ok(cuModuleLoadData(&mut module, image));
    module
}

/// Runs `kernel` of unit1.cu, which asks unit2.cu for the double of 21.
fn check_units(module: CUmodule) {
    launch(function(module, "_Z6kernelv"), 1, 1, &[]);
    assert_eq!(read(global(module, "shared_counter").0, 1), [42]);
}

/// A static library, as `ar` writes it.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, data) in members {
        let head = format!(
            "{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            format!("{name}/"),
            0,
            0,
            0,
            644,
            data.len()
        );
        bytes.extend(head.as_bytes());
        bytes.extend(*data);
        if data.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

#[test]
fn fat_binaries_objects_and_archives_are_linked_by_data_and_by_file() {
    context();
    let (one, unit1) = data("unit1.fatbin");
    let (two, unit2) = data("unit2.fatbin");
    let (object_path, object) = data("unit2.o");
    let library = archive(&[("note.txt", b"no code in here"), ("unit2.o", &object)]);

    let ways: [&dyn Fn(CUlinkState); 4] = [
        &|state| {
            ok(add(state, FATBINARY, &unit1, c"one"));
            ok(add(state, FATBINARY, &unit2, c"two"));
        },
        &|state| {
            ok(add(state, OBJECT, &object, c"two.o"));
            ok(add_file(state, FATBINARY, &one));
        },
        &|state| {
            ok(add_file(state, FATBINARY, &one));
            ok(add(state, LIBRARY, &library, c"two.a"));
        },
        &|state| {
            ok(add_file(state, OBJECT, &object_path));
            ok(add(state, FATBINARY, &unit1, c"one"));
        },
    ];
    for way in ways {
        let state = create();
        way(state);
        let module = load(state);
        check_units(module);
        ok(cuLinkDestroy(state));
        // What was loaded does not need the link any more.
        check_units(module);
        ok(cuModuleUnload(module));
    }
    assert!(two.exists());
}

#[test]
fn any_number_of_texts_is_linked_by_the_rules_of_the_language() {
    context();
    let state = create();
    ok(add_text(
        state,
        ".extern .func (.param .u32 r) next(.param .u32 x);
         .extern .global .u32 total;
         .visible .entry start(.param .u64 unused) {
            .reg .b32 %r<3>;
            { .param .u32 a; .param .u32 r;
              st.param.u32 [a], 1; call (r), next, (a); ld.param.u32 %r0, [r]; }
            st.global.u32 [total], %r0;
            ret;
         }",
    ));
    // Twenty functions, each in a unit of its own, each with a static variable of the same name.
    for unit in 0..20 {
        let (name, after) = match unit {
            0 => ("next".to_string(), "step1".to_string()),
            unit => (format!("step{unit}"), format!("step{}", unit + 1)),
        };
        ok(add_text(
            state,
            &format!(
                ".extern .func (.param .u32 r) {after}(.param .u32 x);
                 .global .u32 own = {unit};
                 .weak .func (.param .u32 r) shared_one(.param .u32 x) {{
                    .reg .b32 %r; ld.param.u32 %r, [x]; add.u32 %r, %r, 1; st.param.u32 [r], %r; ret;
                 }}
                 .visible .func (.param .u32 r) {name}(.param .u32 x) {{
                    .reg .b32 %r<3>;
                    ld.param.u32 %r0, [x];
                    ld.global.u32 %r1, [own];
                    add.u32 %r0, %r0, %r1;
                    {{ .param .u32 a; .param .u32 b;
                       st.param.u32 [a], %r0; call (b), shared_one, (a); ld.param.u32 %r0, [b]; }}
                    {{ .param .u32 a; .param .u32 b;
                       st.param.u32 [a], %r0; call (b), {after}, (a); ld.param.u32 %r0, [b]; }}
                    st.param.u32 [r], %r0;
                    ret;
                 }}"
            ),
        ));
    }
    ok(add_text(
        state,
        ".visible .global .u32 total;
         .visible .func (.param .u32 r) step20(.param .u32 x) {
            .reg .b32 %r; ld.param.u32 %r, [x]; st.param.u32 [r], %r; ret;
         }",
    ));
    let module = load(state);
    launch(function(module, "start"), 1, 1, &[0]);
    // 1, each unit's number, and 1 for each of 20 calls.
    assert_eq!(read(global(module, "total").0, 1), [1 + 190 + 20]);
    ok(cuLinkDestroy(state));
}

#[test]
fn a_linked_image_can_be_a_library_too() {
    context();
    let state = create();
    ok(add(state, FATBINARY, &data("unit1.fatbin").1, c"one"));
    ok(add(state, FATBINARY, &data("unit2.fatbin").1, c"two"));
    let (mut image, mut size, mut library) = (null_mut(), 0, null_mut());
    ok(cuLinkComplete(state, &mut image, &mut size));
    let none = null_mut::<*mut c_void>();
    ok(cuLibraryLoadData(
        &mut library,
        image,
        null_mut(),
        none,
        0,
        null_mut(),
        none,
        0,
    ));
    ok(cuLinkDestroy(state));
    let (mut address, mut bytes) = (0, 0);
    ok(cuLibraryGetGlobal(
        &mut address,
        &mut bytes,
        library,
        c"shared_counter".as_ptr(),
    ));
    assert!(address != 0 && bytes == 4);
    ok(cuLibraryUnload(library));
}

#[test]
fn what_does_not_fit_together_is_told_in_the_error_log() {
    context();
    let mut log = vec![0x55_u8; 1000];
    let mut state = null_mut();
    let mut options = [ERROR_LOG, ERROR_LOG_SIZE];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), number(1000)];
    ok(cuLinkCreate(2, options.as_mut_ptr(), values.as_mut_ptr(), &mut state));
    ok(add(state, FATBINARY, &data("unit1.fatbin").1, c"one"));
    let (mut image, mut size) = (null_mut(), 0);
    assert_eq!(cuLinkComplete(state, &mut image, &mut size), UNKNOWN);
    let said = CStr::from_bytes_until_nul(&log).unwrap().to_str().unwrap().to_owned();
    assert!(said.contains("shared_counter"), "{said}");
    assert_eq!(values[1] as usize, said.len());
    ok(cuLinkDestroy(state));

    // A function alone that nobody defines.
    let state = create();
    ok(add_text(
        state,
        ".extern .func missing(); .visible .entry k() { call missing, (); ret; }",
    ));
    assert_eq!(cuLinkComplete(state, &mut image, &mut size), UNKNOWN);
    ok(cuLinkDestroy(state));

    // One that nobody calls is no matter.
    let state = create();
    ok(add_text(state, ".extern .func missing(); .visible .entry k() { ret; }"));
    launch(function(load(state), "k"), 1, 1, &[]);
    ok(cuLinkDestroy(state));

    // Two that are defined.
    let state = create();
    for _ in 0..2 {
        ok(add_text(state, ".visible .func twice() { ret; }"));
    }
    assert_eq!(cuLinkComplete(state, &mut image, &mut size), UNKNOWN);
    ok(cuLinkDestroy(state));
}

#[test]
fn logs_of_inputs_name_them() {
    context();
    let (mut log, mut info) = (vec![0x55_u8; 2000], vec![0x55_u8; 2000]);
    let mut state = null_mut();
    let mut options = [ERROR_LOG, ERROR_LOG_SIZE, INFO_LOG, INFO_LOG_SIZE];
    let mut values = [
        log.as_mut_ptr().cast::<c_void>(),
        number(2000),
        info.as_mut_ptr().cast::<c_void>(),
        number(2000),
    ];
    ok(cuLinkCreate(4, options.as_mut_ptr(), values.as_mut_ptr(), &mut state));
    let bad = text(".visible .entry k() { addd.s32 %r1, 1, 2; ret; }");
    assert_eq!(
        add(state, PTX, bad.as_bytes_with_nul(), c"the name I gave"),
        CUDA_ERROR_INVALID_PTX
    );
    let said = CStr::from_bytes_until_nul(&log).unwrap().to_str().unwrap();
    assert!(said.contains("the name I gave") && said.contains("addd"), "{said}");
    // The link goes on without it.
    ok(add_text(state, ".visible .entry k() { ret; }"));
    launch(function(load(state), "k"), 1, 1, &[]);
    ok(cuLinkDestroy(state));
}

#[test]
fn variables_can_be_given_an_address() {
    context();
    let there = words(4);
    let mut names = [c"outside".as_ptr()];
    let mut addresses = [there as *mut c_void];
    let mut options = [SYMBOL_NAMES, SYMBOL_ADDRESSES, SYMBOL_COUNT];
    let mut values = [
        names.as_mut_ptr().cast::<c_void>(),
        addresses.as_mut_ptr().cast::<c_void>(),
        number(1),
    ];
    let body = ".extern .global .u32 outside;
        .visible .entry k() { .reg .b32 %r; mov.u32 %r, 77; st.global.u32 [outside], %r; ret; }";
    // Linked, the address stays with the image.
    let mut state = null_mut();
    ok(cuLinkCreate(3, options.as_mut_ptr(), values.as_mut_ptr(), &mut state));
    ok(add_text(state, body));
    let module = load(state);
    ok(cuLinkDestroy(state));
    launch(function(module, "k"), 1, 1, &[]);
    assert_eq!(read(there, 2), [77, 0]);
    assert_eq!(global(module, "outside").0, there);
    ok(cuModuleUnload(module));
    // Unloading has not freed what was never the module's.
    assert_eq!(read(there, 2), [77, 0]);

    // And without the linker.
    write(there, &[0]);
    let mut module = null_mut();
    let code = text(body);
    ok(cuModuleLoadDataEx(
        &mut module,
        code.as_ptr().cast(),
        3,
        options.as_mut_ptr(),
        values.as_mut_ptr(),
    ));
    launch(function(module, "k"), 1, 1, &[]);
    assert_eq!(read(there, 1), [77]);
    let refused = cuModuleLoadData(&mut module, code.as_ptr().cast());
    assert_eq!(refused, CUDA_ERROR_INVALID_PTX);

    // Not one name at two places, nor places without names.
    let mut names = [c"outside".as_ptr(), c"outside".as_ptr()];
    let mut addresses = [there as *mut c_void, (there + 4) as *mut c_void];
    values = [names.as_mut_ptr().cast(), addresses.as_mut_ptr().cast(), number(2)];
    let twice = cuLinkCreate(3, options.as_mut_ptr(), values.as_mut_ptr(), &mut state);
    assert_eq!(twice, CUDA_ERROR_INVALID_VALUE);
    let without = cuLinkCreate(1, [SYMBOL_COUNT].as_mut_ptr(), [number(1)].as_mut_ptr(), &mut state);
    assert_eq!(without, CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn machine_code_and_intermediate_code_are_refused_with_words() {
    let run = alone(test_name!(), &[("MARGAY_LOG", "error")], || {
        context();
        let state = create();
        for (name, kind) in [("sass.fatbin", FATBINARY), ("add.cubin", CUBIN)] {
            let (path, bytes) = data(name);
            assert_eq!(
                add(state, kind, &bytes, c"from data"),
                CUDA_ERROR_NO_BINARY_FOR_GPU,
                "{name}"
            );
            assert_eq!(add_file(state, kind, &path), CUDA_ERROR_NO_BINARY_FOR_GPU, "{name}");
        }
        // What NVRTC and nvcc write for link-time optimisation, and what LLVM writes.
        for magic in [0x7F4E_43ED_u32.to_le_bytes(), *b"BC\xC0\xDE"] {
            let bytes = [&magic[..], &[0; 60]].concat();
            assert_eq!(add(state, NVVM, &bytes, c"bitcode"), CUDA_ERROR_NO_BINARY_FOR_GPU);
        }
        // PTX beside LTO-IR does.
        ok(add(state, FATBINARY, &data("lto.fatbin").1, c"both"));
        function(load(state), "add");
        ok(cuLinkDestroy(state));
    });
    for word in [
        "machine code for sm_90",
        "sass.fatbin",
        "machine code for sm_75",
        "LTO-IR",
        "NVVM",
        "bitcode",
    ] {
        assert!(run.stderr.contains(word), "{word}: {}", run.stderr);
    }
}

/// The device runtime library of the toolkit that `scripts/setup` fetches: left out, for the driver has all of it.
#[test]
fn the_device_runtime_library_is_provided_here() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(".env/cuda-13/lib/libcudadevrt.a");
    if !path.exists() {
        println!("skipped: no {}", path.display());
        return;
    }
    context();
    let state = create();
    ok(add_file(state, LIBRARY, &path));
    ok(add_text(
        state,
        ".extern .func (.param .b32 r) __cudaCDP2GetDevice(.param .b64 device);
         .visible .entry k(.param .u64 to) {
            .reg .b64 %to; .reg .b32 %r;
            ld.param.u64 %to, [to];
            { .param .b64 a; .param .b32 r;
              st.param.b64 [a], %to; call (r), __cudaCDP2GetDevice, (a); ld.param.b32 %r, [r]; }
            st.global.u32 [%to+4], %r;
            ret;
         }",
    ));
    let (module, to) = (load(state), words(2));
    write(to, &[9, 9]);
    launch(function(module, "k"), 1, 1, &[to]);
    assert_eq!(read(to, 2), [0, 0]);
    ok(cuLinkDestroy(state));
}

/// PyCUDA finds one beside Margay's stand-in for nvcc.
#[test]
fn a_library_without_members_adds_nothing() {
    context();
    let folder = std::env::temp_dir().join(format!("margay-empty-library-{}", std::process::id()));
    let path = folder.with_extension("a");
    std::fs::write(&path, "!<arch>\n").unwrap();
    let state = create();
    ok(add_file(state, LIBRARY, &path));
    ok(add(state, LIBRARY, b"!<arch>\n", c"nothing"));
    std::fs::write(&path, "!<arch>x").unwrap();
    assert_ne!(add_file(state, LIBRARY, &path), CUDA_SUCCESS);
    std::fs::remove_file(&path).unwrap();
    assert_ne!(add(state, LIBRARY, b"!<arch>\nrubbish", c"rubbish"), CUDA_SUCCESS);
    ok(add_text(state, ".visible .entry k() { ret; }"));
    launch(function(load(state), "k"), 1, 1, &[]);
    ok(cuLinkDestroy(state));
}

#[test]
fn bad_calls_of_the_linker_are_refused() {
    context();
    let (mut state, mut image, mut size) = (null_mut(), null_mut(), 0);
    assert_eq!(
        cuLinkCreate(0, null_mut(), null_mut(), null_mut()),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuLinkCreate(1, null_mut(), null_mut(), &mut state),
        CUDA_ERROR_INVALID_VALUE
    );
    let unknown = cuLinkCreate(1, [9999].as_mut_ptr(), [null_mut()].as_mut_ptr(), &mut state);
    assert_eq!(unknown, CUDA_ERROR_INVALID_VALUE);

    let code = text(".visible .entry k() { ret; }");
    let bytes = code.as_bytes_with_nul();
    for stray in [null_mut(), number(0x1234)] {
        assert_eq!(add(stray, PTX, bytes, c"x"), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(add_file(stray, PTX, &data("add.ptx").0), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuLinkComplete(stray, &mut image, &mut size), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuLinkDestroy(stray), CUDA_ERROR_INVALID_HANDLE);
    }
    state = create();
    let none = null_mut::<*mut c_void>();
    let empty = cuLinkAddData(state, PTX, null(), 4, null(), 0, null_mut(), none);
    assert_eq!(empty, CUDA_ERROR_INVALID_VALUE);
    let nothing = cuLinkAddData(state, PTX, bytes.as_ptr().cast(), 0, null(), 0, null_mut(), none);
    assert_eq!(nothing, CUDA_ERROR_INVALID_VALUE);
    let all = cuLinkAddData(
        state,
        PTX,
        bytes.as_ptr().cast(),
        usize::MAX,
        null(),
        0,
        null_mut(),
        none,
    );
    assert_eq!(all, CUDA_ERROR_INVALID_VALUE);
    for kind in [-1, 6, 100] {
        assert_eq!(add(state, kind, bytes, c"x"), CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(
        add(state, PTX, b"\x01\x02\x03\x04 rubbish\0", c"x"),
        CUDA_ERROR_INVALID_IMAGE
    );
    assert_eq!(
        add_file(state, PTX, std::path::Path::new("/nowhere/at/all")),
        CUDA_ERROR_FILE_NOT_FOUND
    );
    assert_eq!(cuLinkComplete(state, null_mut(), &mut size), CUDA_ERROR_INVALID_VALUE);
    // A name need not be given, nor a size be asked for.
    ok(cuLinkAddData(
        state,
        PTX,
        bytes.as_ptr().cast(),
        bytes.len(),
        null(),
        0,
        null_mut(),
        none,
    ));
    ok(cuLinkComplete(state, &mut image, null_mut()));
    // Complete is complete.
    assert_eq!(add(state, PTX, bytes, c"late"), CUDA_ERROR_INVALID_VALUE);
    ok(cuLinkDestroy(state));
    assert_eq!(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
}
