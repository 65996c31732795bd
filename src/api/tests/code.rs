//! Module, library and link management; properties of functions.

use super::*;
use std::ffi::CStr;

#[test]
fn modules_give_functions_and_variables() {
    let _own = Own::new();
    let module = module();
    let fill = function(module, c"fill");
    let mut found = null_mut();
    fails!(
        CUDA_ERROR_NOT_FOUND,
        cuModuleGetFunction(&mut found, module, c"absent".as_ptr())
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuModuleGetFunction(&mut found, module, null())
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuModuleGetFunction(null_mut(), module, c"fill".as_ptr())
    );
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuModuleGetFunction(&mut found, stray(), c"fill".as_ptr())
    );

    let (mut pointer, mut bytes) = (0, 0);
    ok!(cuModuleGetGlobal_v2(
        &mut pointer,
        &mut bytes,
        module,
        c"counter".as_ptr()
    ));
    assert_eq!(bytes, 16);
    assert_eq!(read_u32(pointer, 4), [1, 2, 3, 4]);
    let mut again = 0;
    ok!(cuModuleGetGlobal_v2(
        &mut again,
        null_mut(),
        module,
        c"counter".as_ptr()
    ));
    assert_eq!(again, pointer);
    ok!(cuModuleGetGlobal_v2(
        null_mut(),
        &mut bytes,
        module,
        c"counter".as_ptr()
    ));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuModuleGetGlobal_v2(null_mut(), null_mut(), module, c"counter".as_ptr())
    );
    fails!(
        CUDA_ERROR_NOT_FOUND,
        cuModuleGetGlobal_v2(&mut pointer, &mut bytes, module, c"absent".as_ptr())
    );

    let mut count = 0;
    ok!(cuModuleGetFunctionCount(&mut count, module));
    assert_eq!(count, 2);
    let mut functions = [null_mut(); 3];
    ok!(cuModuleEnumerateFunctions(functions.as_mut_ptr(), 3, module));
    assert!(functions[..2].contains(&fill) && functions[2].is_null());

    let (mut text, mut back) = (null(), null_mut());
    ok!(cuFuncGetName(&mut text, fill));
    // SAFETY: the call succeeded.
    assert_eq!(unsafe { CStr::from_ptr(text) }, c"fill");
    ok!(cuFuncGetModule(&mut back, fill));
    assert_eq!(back, module);

    ok!(cuModuleUnload(module));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuModuleGetFunction(&mut found, module, c"fill".as_ptr())
    );
    fails!(CUDA_ERROR_INVALID_HANDLE, cuFuncGetModule(&mut back, fill));
}

#[test]
fn parameters_lie_as_the_ptx_declares_them() {
    let _own = Own::new();
    let fill = function(module(), c"fill");
    let (mut count, mut offset, mut size) = (0, 0, 0);
    ok!(cuFuncGetParamCount(fill, &mut count));
    assert_eq!(count, 3);
    for (index, expected) in [(0, 8), (8, 4), (12, 4)].into_iter().enumerate() {
        ok!(cuFuncGetParamInfo(fill, index, &mut offset, &mut size));
        assert_eq!((offset, size), expected);
    }
    ok!(cuFuncGetParamInfo(fill, 1, &mut offset, null_mut()));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuFuncGetParamInfo(fill, 3, &mut offset, &mut size)
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuFuncGetParamInfo(fill, 0, null_mut(), &mut size)
    );
    let mut value = 0;
    ok!(cuFuncGetAttribute(
        &mut value,
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        fill
    ));
    assert_eq!(value, 1024);
    ok!(cuFuncGetAttribute(
        &mut value,
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION,
        fill
    ));
    assert_eq!(value, 70, "the PTX's own target");
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuFuncGetAttribute(&mut value, CUfunction_attribute::from_raw(9999), fill)
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuFuncGetAttribute(null_mut(), CUfunction_attribute::from_raw(0), fill)
    );
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuFuncGetAttribute(&mut value, CUfunction_attribute::from_raw(0), stray())
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuFuncSetCacheConfig(fill, CUfunc_cache::from_raw(4))
    );
    ok!(cuFuncSetCacheConfig(fill, CUfunc_cache::CU_FUNC_CACHE_PREFER_SHARED));
    ok!(cuFuncLoad(fill));
    let mut state = CUfunctionLoadingState::from_raw(9);
    ok!(cuFuncIsLoaded(&mut state, fill));
    assert_eq!(state, CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_LOADED);
}

#[test]
fn errors_in_ptx_go_to_the_error_log() {
    let _own = Own::new();
    let mut log = [0x7f_u8; 2048];
    let mut options = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        CUjit_option::CU_JIT_WALL_TIME,
    ];
    let mut values: [*mut c_void; 3] = [
        log.as_mut_ptr().cast(),
        std::ptr::without_provenance_mut(log.len()),
        null_mut(),
    ];
    let mut module = null_mut();
    let wrong = c".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { frobnicate ] u32; }\n";
    let load = |module: &mut CUmodule, values: &mut [*mut c_void; 3], options: &mut [CUjit_option; 3]| {
        call!(cuModuleLoadDataEx(
            module,
            wrong.as_ptr().cast(),
            3,
            options.as_mut_ptr(),
            values.as_mut_ptr()
        ))
    };
    assert_eq!(
        load(&mut module, &mut values, &mut options),
        CUresult::CUDA_ERROR_INVALID_PTX
    );
    let written = values[1].addr();
    assert!((1..log.len()).contains(&written), "{written}");
    assert_eq!(log[written], 0);
    let text = String::from_utf8_lossy(&log[..written]);
    assert!(text.contains("frobnicate"), "{text}");

    // A buffer that is too small is not overrun.
    let mut small = [0x7f_u8; 16];
    values = [
        small.as_mut_ptr().cast(),
        std::ptr::without_provenance_mut(8),
        null_mut(),
    ];
    assert_eq!(
        load(&mut module, &mut values, &mut options),
        CUresult::CUDA_ERROR_INVALID_PTX
    );
    assert_eq!(small[7..], [0, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f]);

    options[2] = CUjit_option::from_raw(4711);
    assert_eq!(
        load(&mut module, &mut values, &mut options),
        CUresult::CUDA_ERROR_INVALID_VALUE
    );
    let text = PTX.as_ptr().cast();
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuModuleLoadDataEx(&mut module, text, 1, null_mut(), null_mut())
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&mut module, null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(null_mut(), text));
    fails!(
        CUDA_ERROR_FILE_NOT_FOUND,
        cuModuleLoad(&mut module, c"/nonexistent/file.ptx".as_ptr())
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleLoad(&mut module, null()));
}

#[test]
fn libraries_need_no_context() {
    ok!(cuInit(0));
    let mut library = null_mut();
    let text = PTX.as_ptr().cast();
    let mut options = [CUlibraryOption::CU_LIBRARY_BINARY_IS_PRESERVED];
    let mut values = [std::ptr::without_provenance_mut::<c_void>(1)];
    ok!(cuLibraryLoadData(
        &mut library,
        text,
        null_mut(),
        null_mut(),
        0,
        options.as_mut_ptr(),
        values.as_mut_ptr(),
        1
    ));
    let mut kernel = null_mut();
    ok!(cuLibraryGetKernel(&mut kernel, library, c"fill".as_ptr()));
    fails!(
        CUDA_ERROR_NOT_FOUND,
        cuLibraryGetKernel(&mut kernel, library, c"absent".as_ptr())
    );
    let (mut count, mut name, mut back) = (0, null(), null_mut());
    ok!(cuLibraryGetKernelCount(&mut count, library));
    assert_eq!(count, 2);
    ok!(cuKernelGetName(&mut name, kernel));
    // SAFETY: the call succeeded.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"fill");
    ok!(cuKernelGetLibrary(&mut back, kernel));
    assert_eq!(back, library);
    let mut value = 0;
    let threads = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    ok!(cuKernelGetAttribute(&mut value, threads, kernel, 0));
    assert_eq!(value, 1024);
    fails!(
        CUDA_ERROR_INVALID_DEVICE,
        cuKernelGetAttribute(&mut value, threads, kernel, 55)
    );
    let mut parameters = 0;
    ok!(cuKernelGetParamCount(kernel, &mut parameters));
    assert_eq!(parameters, 3);

    let own = Own::new();
    let (mut function, mut module, mut pointer) = (null_mut(), null_mut(), 0);
    ok!(cuKernelGetFunction(&mut function, kernel));
    ok!(cuLibraryGetModule(&mut module, library));
    ok!(cuLibraryGetGlobal(
        &mut pointer,
        null_mut(),
        library,
        c"counter".as_ptr()
    ));
    assert_eq!(read_u32(pointer, 4), [1, 2, 3, 4]);
    fails!(
        CUDA_ERROR_NOT_FOUND,
        cuLibraryGetGlobal(&mut pointer, null_mut(), library, c"absent".as_ptr())
    );
    fails!(
        CUDA_ERROR_NOT_FOUND,
        cuLibraryGetManaged(&mut pointer, null_mut(), library, c"absent".as_ptr())
    );
    let mut unified = null_mut();
    fails!(
        CUDA_ERROR_NOT_FOUND,
        cuLibraryGetUnifiedFunction(&mut unified, library, c"fill".as_ptr())
    );
    drop(own);

    ok!(cuLibraryUnload(library));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuKernelGetName(&mut name, kernel));
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuLibraryGetKernel(&mut kernel, stray(), c"fill".as_ptr())
    );
    options[0] = CUlibraryOption::from_raw(44);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLibraryLoadData(
            &mut library,
            text,
            null_mut(),
            null_mut(),
            0,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
            1
        )
    );
}

#[test]
fn links_give_an_image_that_loads() {
    let _own = Own::new();
    let (mut link, mut image, mut size) = (null_mut(), null_mut(), 0);
    ok!(cuLinkCreate_v2(0, null_mut(), null_mut(), &mut link));
    let text = PTX.to_bytes_with_nul();
    ok!(cuLinkAddData_v2(
        link,
        CUjitInputType::CU_JIT_INPUT_PTX,
        text.as_ptr().cast_mut().cast(),
        text.len(),
        c"unit".as_ptr(),
        0,
        null_mut(),
        null_mut()
    ));
    ok!(cuLinkComplete(link, &mut image, &mut size));
    let mut module = null_mut();
    ok!(cuModuleLoadData(&mut module, image));
    function(module, c"fill");
    ok!(cuLinkDestroy(link));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(link));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLinkCreate_v2(0, null_mut(), null_mut(), null_mut())
    );
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuLinkComplete(stray(), &mut image, &mut size)
    );
}

#[test]
fn the_loading_mode_is_lazy() {
    ok!(cuInit(0));
    let mut mode = CUmoduleLoadingMode::from_raw(0);
    ok!(cuModuleGetLoadingMode(&mut mode));
    assert_eq!(mode, CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING);
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetLoadingMode(null_mut()));
}
