//! The library as C sees it: where it is, its types, its functions.
//!
//! The functions here can be called without `unsafe`: whether they crash is what the tests find out.

// A table of names, some of them declared ahead of their first test.
#![allow(dead_code, reason = "several tests share it, each uses a part")]

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
pub type CUarray = *mut c_void;
pub type CUmipmappedArray = *mut c_void;
pub type CUtexref = *mut c_void;
pub type CUsurfref = *mut c_void;

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
pub const CUDA_ERROR_HARDWARE_STACK_ERROR: CUresult = 714;
pub const CUDA_ERROR_ILLEGAL_INSTRUCTION: CUresult = 715;
pub const CUDA_ERROR_MISALIGNED_ADDRESS: CUresult = 716;
pub const CUDA_ERROR_LAUNCH_FAILED: CUresult = 719;

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayDescriptor {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub format: c_uint,
    pub channels: c_uint,
    pub flags: c_uint,
}

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayDescriptor2 {
    pub width: usize,
    pub height: usize,
    pub format: c_uint,
    pub channels: c_uint,
}

/// `CUDA_RESOURCE_DESC`; the union as words: a handle, or address, format and channels, sizes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceDescriptor {
    pub kind: c_uint,
    pub res: [u64; 16],
    pub flags: c_uint,
}

/// `CUDA_TEXTURE_DESC`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TextureDescriptor {
    pub address: [c_uint; 3],
    pub filter: c_uint,
    pub flags: c_uint,
    pub anisotropy: c_uint,
    pub level_filter: c_uint,
    pub level_bias: f32,
    pub level_clamp: [f32; 2],
    pub border: [f32; 4],
    pub reserved: [c_int; 12],
}

/// `CUDA_RESOURCE_VIEW_DESC`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewDescriptor {
    pub format: c_uint,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub first_level: c_uint,
    pub last_level: c_uint,
    pub first_layer: c_uint,
    pub last_layer: c_uint,
    pub reserved: [c_uint; 16],
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy2D {
    pub src_x: usize,
    pub src_y: usize,
    pub src_type: c_uint,
    pub src_host: *const c_void,
    pub src_device: CUdeviceptr,
    pub src_array: CUarray,
    pub src_pitch: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_type: c_uint,
    pub dst_host: *mut c_void,
    pub dst_device: CUdeviceptr,
    pub dst_array: CUarray,
    pub dst_pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy3D {
    pub src: End3D,
    pub dst: End3D,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// One end of a [`Copy3D`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct End3D {
    pub x: usize,
    pub y: usize,
    pub z: usize,
    pub level: usize,
    pub kind: c_uint,
    pub host: *mut c_void,
    pub device: CUdeviceptr,
    pub array: CUarray,
    pub reserved: *mut c_void,
    pub pitch: usize,
    pub height: usize,
}

impl Copy3D {
    /// From host memory of such rows into an array, or back; the box is still to be set.
    pub fn between(array: CUarray, host: *mut c_void, pitch: usize, height: usize, into: bool) -> Copy3D {
        let end = |kind| End3D {
            x: 0,
            y: 0,
            z: 0,
            level: 0,
            kind,
            host,
            device: 0,
            array,
            reserved: std::ptr::null_mut(),
            pitch,
            height,
        };
        // CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_ARRAY
        let (src, dst) = if into { (end(1), end(3)) } else { (end(3), end(1)) };
        Copy3D {
            src,
            dst,
            width: 0,
            height: 0,
            depth: 0,
        }
    }
}

/// A number where C wants a pointer: what programs pass as data, and what is no object.
pub fn number<T>(number: usize) -> *mut T {
    std::ptr::without_provenance_mut(number)
}

/// The call must succeed.
#[track_caller]
pub fn ok(result: CUresult) {
    assert_eq!(result, CUDA_SUCCESS, "the call failed");
}

/// The library that belongs to this test: cargo builds it for the test and leaves it beside its executable. (The copy one
/// directory up is that of the last `cargo build`, and may be old or absent.) `DRIVER_UNDER_TEST` names another, as a GPU's.
pub fn library_path() -> PathBuf {
    if let Some(path) = std::env::var_os("DRIVER_UNDER_TEST") {
        return path.into();
    }
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
        #[allow(non_snake_case, clippy::too_many_arguments, reason = "names and signatures are those of cuda.h")]
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
    cuMemsetD8Async(to: CUdeviceptr, value: u8, count: usize, stream: CUstream);
    cuMemsetD32 = "cuMemsetD32_v2" (to: CUdeviceptr, value: c_uint, count: usize);

    cuArrayCreate = "cuArrayCreate_v2" (array: *mut CUarray, descriptor: *const ArrayDescriptor2);
    cuArrayGetDescriptor = "cuArrayGetDescriptor_v2" (descriptor: *mut ArrayDescriptor2, array: CUarray);
    cuArray3DCreate = "cuArray3DCreate_v2" (array: *mut CUarray, descriptor: *const ArrayDescriptor);
    cuArray3DGetDescriptor = "cuArray3DGetDescriptor_v2" (descriptor: *mut ArrayDescriptor, array: CUarray);
    cuArrayGetPlane(plane: *mut CUarray, array: CUarray, index: c_uint);
    cuArrayGetSparseProperties(properties: *mut c_void, array: CUarray);
    cuArrayGetMemoryRequirements(requirements: *mut c_void, array: CUarray, device: CUdevice);
    cuArrayDestroy(array: CUarray);
    cuMipmappedArrayCreate(mipmap: *mut CUmipmappedArray, descriptor: *const ArrayDescriptor, levels: c_uint);
    cuMipmappedArrayGetLevel(level: *mut CUarray, mipmap: CUmipmappedArray, number: c_uint);
    cuMipmappedArrayDestroy(mipmap: CUmipmappedArray);
    cuMemcpyHtoA = "cuMemcpyHtoA_v2" (to: CUarray, offset: usize, from: *const c_void, bytes: usize);
    cuMemcpyAtoH = "cuMemcpyAtoH_v2" (to: *mut c_void, from: CUarray, offset: usize, bytes: usize);
    cuMemcpyDtoA = "cuMemcpyDtoA_v2" (to: CUarray, offset: usize, from: CUdeviceptr, bytes: usize);
    cuMemcpyAtoD = "cuMemcpyAtoD_v2" (to: CUdeviceptr, from: CUarray, offset: usize, bytes: usize);
    cuMemcpyAtoA = "cuMemcpyAtoA_v2" (to: CUarray, offset: usize, from: CUarray, source: usize, bytes: usize);
    cuMemcpyHtoAAsync = "cuMemcpyHtoAAsync_v2" (
        to: CUarray,
        offset: usize,
        from: *const c_void,
        bytes: usize,
        stream: CUstream,
    );
    cuMemcpyAtoHAsync = "cuMemcpyAtoHAsync_v2" (
        to: *mut c_void,
        from: CUarray,
        offset: usize,
        bytes: usize,
        stream: CUstream,
    );
    cuMemcpy2D = "cuMemcpy2D_v2" (copy: *const Copy2D);
    cuMemcpy3D = "cuMemcpy3D_v2" (copy: *const Copy3D);

    // Texture Object Management, Surface Object Management, Texture Reference Management
    cuTexObjectCreate(
        texture: *mut u64,
        resource: *const ResourceDescriptor,
        description: *const TextureDescriptor,
        view: *const ViewDescriptor,
    );
    cuTexObjectDestroy(texture: u64);
    cuTexObjectGetResourceDesc(resource: *mut ResourceDescriptor, texture: u64);
    cuTexObjectGetTextureDesc(description: *mut TextureDescriptor, texture: u64);
    cuTexObjectGetResourceViewDesc(view: *mut ViewDescriptor, texture: u64);
    cuSurfObjectCreate(surface: *mut u64, resource: *const ResourceDescriptor);
    cuSurfObjectDestroy(surface: u64);
    cuSurfObjectGetResourceDesc(resource: *mut ResourceDescriptor, surface: u64);
    cuModuleGetTexRef(reference: *mut CUtexref, module: CUmodule, name: *const c_char);
    cuModuleGetSurfRef(reference: *mut CUsurfref, module: CUmodule, name: *const c_char);
    cuTexRefCreate(reference: *mut CUtexref);
    cuTexRefDestroy(reference: CUtexref);
    cuTexRefSetArray(reference: CUtexref, array: CUarray, flags: c_uint);
    cuTexRefSetMipmappedArray(reference: CUtexref, mipmap: CUmipmappedArray, flags: c_uint);
    cuTexRefSetMipmapFilterMode(reference: CUtexref, mode: c_uint);
    cuTexRefSetMipmapLevelClamp(reference: CUtexref, least: f32, most: f32);
    cuTexRefGetArray(array: *mut CUarray, reference: CUtexref);
    cuTexRefSetAddress = "cuTexRefSetAddress_v2" (
        offset: *mut usize,
        reference: CUtexref,
        pointer: CUdeviceptr,
        bytes: usize,
    );
    cuTexRefGetAddress = "cuTexRefGetAddress_v2" (pointer: *mut CUdeviceptr, reference: CUtexref);
    cuTexRefSetFormat(reference: CUtexref, format: c_uint, channels: c_int);
    cuTexRefGetFormat(format: *mut c_uint, channels: *mut c_int, reference: CUtexref);
    cuTexRefSetAddressMode(reference: CUtexref, dimension: c_int, mode: c_uint);
    cuTexRefGetAddressMode(mode: *mut c_uint, reference: CUtexref, dimension: c_int);
    cuTexRefSetFilterMode(reference: CUtexref, mode: c_uint);
    cuTexRefGetFilterMode(mode: *mut c_uint, reference: CUtexref);
    cuTexRefSetFlags(reference: CUtexref, flags: c_uint);
    cuTexRefGetFlags(flags: *mut c_uint, reference: CUtexref);
    cuTexRefSetBorderColor(reference: CUtexref, colour: *mut f32);
    cuTexRefGetBorderColor(colour: *mut f32, reference: CUtexref);
    cuSurfRefSetArray(reference: CUsurfref, array: CUarray, flags: c_uint);
    cuSurfRefGetArray(array: *mut CUarray, reference: CUsurfref);

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
