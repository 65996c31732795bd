//! The library as C sees it: where it is, its types, its functions.
//!
//! The functions here can be called without `unsafe`: whether they crash is what the tests find out.

// A table of names, some of them declared ahead of their first test.
#![allow(dead_code)]

use libloading::Library;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

/// A `CUresult`. Numbers, for a library under test may return any.
pub type CUresult = c_int;
pub type CUdevice = c_int;
pub type CUdeviceptr = u64;
pub type CUcontext = *mut c_void;
pub type CUmodule = *mut c_void;
pub type CUfunction = *mut c_void;
pub type CUlibrary = *mut c_void;
pub type CUkernel = *mut c_void;
pub type CUstream = *mut c_void;
pub type CUevent = *mut c_void;

pub const CUDA_SUCCESS: CUresult = 0;
pub const CUDA_ERROR_INVALID_VALUE: CUresult = 1;
pub const CUDA_ERROR_OUT_OF_MEMORY: CUresult = 2;
pub const CUDA_ERROR_NOT_INITIALIZED: CUresult = 3;
pub const CUDA_ERROR_NO_DEVICE: CUresult = 100;
pub const CUDA_ERROR_INVALID_DEVICE: CUresult = 101;
pub const CUDA_ERROR_INVALID_IMAGE: CUresult = 200;
pub const CUDA_ERROR_INVALID_CONTEXT: CUresult = 201;
pub const CUDA_ERROR_NO_BINARY_FOR_GPU: CUresult = 209;
pub const CUDA_ERROR_INVALID_PTX: CUresult = 218;
pub const CUDA_ERROR_FILE_NOT_FOUND: CUresult = 301;
pub const CUDA_ERROR_INVALID_HANDLE: CUresult = 400;
pub const CUDA_ERROR_NOT_FOUND: CUresult = 500;
pub const CUDA_ERROR_NOT_READY: CUresult = 600;
pub const CUDA_ERROR_ILLEGAL_ADDRESS: CUresult = 700;
pub const CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: CUresult = 701;
pub const CUDA_ERROR_LAUNCH_TIMEOUT: CUresult = 702;
pub const CUDA_ERROR_CONTEXT_IS_DESTROYED: CUresult = 709;
pub const CUDA_ERROR_ASSERT: CUresult = 710;
pub const CUDA_ERROR_ILLEGAL_INSTRUCTION: CUresult = 715;
pub const CUDA_ERROR_MISALIGNED_ADDRESS: CUresult = 716;
pub const CUDA_ERROR_LAUNCH_FAILED: CUresult = 719;

/// The call must succeed.
#[track_caller]
pub fn ok(result: CUresult) {
    assert_eq!(result, CUDA_SUCCESS, "the call failed");
}

/// The library that belongs to this test: cargo builds it for the test and leaves it beside its executable. (The copy one
/// directory up is that of the last `cargo build`, and may be old or absent.)
pub fn library_path() -> PathBuf {
    let path = std::env::current_exe()
        .expect("the test's own path")
        .with_file_name("libcuda.so");
    assert!(
        path.is_file(),
        "{} is not there: has the library's file name changed?",
        path.display()
    );
    path
}

/// The library, loaded once per process and never unloaded, as programs have it.
pub fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        // SAFETY: the library's initialisers are our own.
        unsafe { Library::new(library_path()) }.expect("loading the library")
    })
}

/// Declares the driver's functions: each looks up its symbol and calls it. In C, `cuda.h` maps many names to a later
/// version of the function; here the symbol is written out where it differs.
macro_rules! functions {
    ($($name:ident $(= $symbol:literal)? ($($argument:ident: $type:ty),* $(,)?);)*) => {$(
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub fn $name($($argument: $type),*) -> CUresult {
            type Function = unsafe extern "C" fn($($type),*) -> CUresult;
            let symbol = [$($symbol,)? stringify!($name)][0];
            // SAFETY: the type is the manual's.
            let function = unsafe { library().get::<Function>(symbol) };
            let function = function.unwrap_or_else(|error| panic!("{symbol} is not exported: {error}"));
            // SAFETY: the library promises to survive whatever it is given; that is under test.
            unsafe { function($($argument),*) }
        }
    )*};
}

functions! {
    // Initialization, Version Management, Error Handling
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuGetErrorString(error: CUresult, text: *mut *const c_char);
    cuGetErrorName(error: CUresult, text: *mut *const c_char);

    // Device Management
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice);
    cuDeviceGetUuid = "cuDeviceGetUuid_v2" (uuid: *mut [u8; 16], device: CUdevice);
    cuDeviceTotalMem = "cuDeviceTotalMem_v2" (bytes: *mut usize, device: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: CUdevice);

    // Primary Context Management, Context Management
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxRelease = "cuDevicePrimaryCtxRelease_v2" (device: CUdevice);
    cuDevicePrimaryCtxReset = "cuDevicePrimaryCtxReset_v2" (device: CUdevice);
    cuDevicePrimaryCtxGetState(device: CUdevice, flags: *mut c_uint, active: *mut c_int);
    cuCtxCreate = "cuCtxCreate_v2" (context: *mut CUcontext, flags: c_uint, device: CUdevice);
    cuCtxDestroy = "cuCtxDestroy_v2" (context: CUcontext);
    cuCtxSetCurrent(context: CUcontext);
    cuCtxGetCurrent(context: *mut CUcontext);
    cuCtxPushCurrent = "cuCtxPushCurrent_v2" (context: CUcontext);
    cuCtxPopCurrent = "cuCtxPopCurrent_v2" (context: *mut CUcontext);
    cuCtxGetDevice(device: *mut CUdevice);
    cuCtxSynchronize();
    cuCtxSetLimit(limit: c_int, value: usize);
    cuCtxGetLimit(value: *mut usize, limit: c_int);

    // Module Management, Library Management
    cuModuleLoad(module: *mut CUmodule, path: *const c_char);
    cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
    cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        count: c_uint,
        options: *mut c_int,
        values: *mut *mut c_void,
    );
    cuModuleLoadFatBinary(module: *mut CUmodule, image: *const c_void);
    cuModuleUnload(module: CUmodule);
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    cuModuleGetGlobal = "cuModuleGetGlobal_v2" (
        pointer: *mut CUdeviceptr,
        bytes: *mut usize,
        module: CUmodule,
        name: *const c_char,
    );
    cuLibraryLoadData(
        library: *mut CUlibrary,
        image: *const c_void,
        jit_options: *mut c_int,
        jit_values: *mut *mut c_void,
        jit_count: c_uint,
        options: *mut c_int,
        values: *mut *mut c_void,
        count: c_uint,
    );
    cuLibraryUnload(library: CUlibrary);
    cuLibraryGetKernel(kernel: *mut CUkernel, library: CUlibrary, name: *const c_char);
    cuKernelGetFunction(function: *mut CUfunction, kernel: CUkernel);

    // Memory Management
    cuMemGetInfo = "cuMemGetInfo_v2" (free: *mut usize, total: *mut usize);
    cuMemAlloc = "cuMemAlloc_v2" (pointer: *mut CUdeviceptr, bytes: usize);
    cuMemAllocManaged(pointer: *mut CUdeviceptr, bytes: usize, flags: c_uint);
    cuMemFree = "cuMemFree_v2" (pointer: CUdeviceptr);
    cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemFreeHost(pointer: *mut c_void);
    cuMemcpy(to: CUdeviceptr, from: CUdeviceptr, bytes: usize);
    cuMemcpyHtoD = "cuMemcpyHtoD_v2" (to: CUdeviceptr, from: *const c_void, bytes: usize);
    cuMemcpyDtoH = "cuMemcpyDtoH_v2" (to: *mut c_void, from: CUdeviceptr, bytes: usize);
    cuMemcpyDtoD = "cuMemcpyDtoD_v2" (to: CUdeviceptr, from: CUdeviceptr, bytes: usize);
    cuMemsetD8 = "cuMemsetD8_v2" (to: CUdeviceptr, value: u8, count: usize);
    cuMemsetD32 = "cuMemsetD32_v2" (to: CUdeviceptr, value: c_uint, count: usize);

    // Stream Management, Event Management
    cuStreamCreate(stream: *mut CUstream, flags: c_uint);
    cuStreamDestroy = "cuStreamDestroy_v2" (stream: CUstream);
    cuStreamSynchronize(stream: CUstream);
    cuStreamQuery(stream: CUstream);
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventDestroy = "cuEventDestroy_v2" (event: CUevent);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventSynchronize(event: CUevent);
    cuEventQuery(event: CUevent);
    cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);

    // First versions, deprecated calls, graphics
    cuMemGetInfo_v1 = "cuMemGetInfo" (free: *mut c_uint, total: *mut c_uint);
    cuMemAlloc_v1 = "cuMemAlloc" (pointer: *mut c_uint, bytes: c_uint);
    cuMemAllocHost_v1 = "cuMemAllocHost" (pointer: *mut *mut c_void, bytes: c_uint);
    cuDeviceTotalMem_v1 = "cuDeviceTotalMem" (bytes: *mut c_uint, device: CUdevice);
    cuCtxAttach(context: *mut CUcontext, flags: c_uint);
    cuCtxDetach(context: CUcontext);
    cuGLInit();
    cuEGLStreamConsumerConnect(connection: *mut *mut c_void, stream: *mut c_void);
    cuVDPAUGetDevice(device: *mut CUdevice, vdp_device: c_uint, get_address: *mut c_void);
    cuGraphicsMapResources(count: c_uint, resources: *mut *mut c_void, stream: CUstream);

    // Execution Control
    cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: CUfunction);
    cuFuncSetAttribute(function: CUfunction, attribute: c_int, value: c_int);
    cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: CUstream,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
}
