//! Modules, libraries, kernels and the linker: handles, JIT options, loading modes.
//!
//! Numbers and layouts are those of CUDA 13.5; names are the ones C programs write. No behaviour here.

use super::*;

opaque! {
    CUmod_st,
    CUlinkState_st,
    CUlib_st,
    CUkern_st,
}

pub type CUmodule = *mut CUmod_st;
pub type CUlibrary = *mut CUlib_st;
pub type CUkernel = *mut CUkern_st;

c_enum! {
    pub enum CUjit_option_enum: u32 {
        CU_JIT_MAX_REGISTERS = 0,
        CU_JIT_THREADS_PER_BLOCK = 1,
        CU_JIT_WALL_TIME = 2,
        CU_JIT_INFO_LOG_BUFFER = 3,
        CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
        CU_JIT_ERROR_LOG_BUFFER = 5,
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
        CU_JIT_OPTIMIZATION_LEVEL = 7,
        CU_JIT_TARGET_FROM_CUCONTEXT = 8,
        CU_JIT_TARGET = 9,
        CU_JIT_FALLBACK_STRATEGY = 10,
        CU_JIT_GENERATE_DEBUG_INFO = 11,
        CU_JIT_LOG_VERBOSE = 12,
        CU_JIT_GENERATE_LINE_INFO = 13,
        CU_JIT_CACHE_MODE = 14,
        CU_JIT_NEW_SM3X_OPT = 15,
        CU_JIT_FAST_COMPILE = 16,
        CU_JIT_GLOBAL_SYMBOL_NAMES = 17,
        CU_JIT_GLOBAL_SYMBOL_ADDRESSES = 18,
        CU_JIT_GLOBAL_SYMBOL_COUNT = 19,
        CU_JIT_LTO = 20,
        CU_JIT_FTZ = 21,
        CU_JIT_PREC_DIV = 22,
        CU_JIT_PREC_SQRT = 23,
        CU_JIT_FMA = 24,
        CU_JIT_REFERENCED_KERNEL_NAMES = 25,
        CU_JIT_REFERENCED_KERNEL_COUNT = 26,
        CU_JIT_REFERENCED_VARIABLE_NAMES = 27,
        CU_JIT_REFERENCED_VARIABLE_COUNT = 28,
        CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES = 29,
        CU_JIT_POSITION_INDEPENDENT_CODE = 30,
        CU_JIT_MIN_CTA_PER_SM = 31,
        CU_JIT_MAX_THREADS_PER_BLOCK = 32,
        CU_JIT_OVERRIDE_DIRECTIVE_VALUES = 33,
        CU_JIT_SPLIT_COMPILE = 34,
        CU_JIT_BINARY_LOADER_THREAD_COUNT = 35,
        CU_JIT_NUM_OPTIONS = 36,
    }
}

pub type CUjit_option = CUjit_option_enum;

c_enum! {
    pub enum CUjit_target_enum: u32 {
        CU_TARGET_COMPUTE_30 = 30,
        CU_TARGET_COMPUTE_32 = 32,
        CU_TARGET_COMPUTE_35 = 35,
        CU_TARGET_COMPUTE_37 = 37,
        CU_TARGET_COMPUTE_50 = 50,
        CU_TARGET_COMPUTE_52 = 52,
        CU_TARGET_COMPUTE_53 = 53,
        CU_TARGET_COMPUTE_60 = 60,
        CU_TARGET_COMPUTE_61 = 61,
        CU_TARGET_COMPUTE_62 = 62,
        CU_TARGET_COMPUTE_70 = 70,
        CU_TARGET_COMPUTE_72 = 72,
        CU_TARGET_COMPUTE_75 = 75,
        CU_TARGET_COMPUTE_80 = 80,
        CU_TARGET_COMPUTE_86 = 86,
        CU_TARGET_COMPUTE_87 = 87,
        CU_TARGET_COMPUTE_89 = 89,
        CU_TARGET_COMPUTE_90 = 90,
        CU_TARGET_COMPUTE_100 = 100,
        CU_TARGET_COMPUTE_110 = 110,
        CU_TARGET_COMPUTE_103 = 103,
        CU_TARGET_COMPUTE_107 = 107,
        CU_TARGET_COMPUTE_120 = 120,
        CU_TARGET_COMPUTE_121 = 121,
        CU_TARGET_COMPUTE_90A = 65626,
        CU_TARGET_COMPUTE_100A = 65636,
        CU_TARGET_COMPUTE_110A = 65646,
        CU_TARGET_COMPUTE_103A = 65639,
        CU_TARGET_COMPUTE_107A = 65643,
        CU_TARGET_COMPUTE_120A = 65656,
        CU_TARGET_COMPUTE_121A = 65657,
        CU_TARGET_COMPUTE_100F = 131172,
        CU_TARGET_COMPUTE_110F = 131182,
        CU_TARGET_COMPUTE_103F = 131175,
        CU_TARGET_COMPUTE_107F = 131179,
        CU_TARGET_COMPUTE_120F = 131192,
        CU_TARGET_COMPUTE_121F = 131193,
    }
}

pub type CUjit_target = CUjit_target_enum;

c_enum! {
    pub enum CUjit_fallback_enum: u32 {
        CU_PREFER_PTX = 0,
        CU_PREFER_BINARY = 1,
    }
}

pub type CUjit_fallback = CUjit_fallback_enum;

c_enum! {
    pub enum CUjit_cacheMode_enum: u32 {
        CU_JIT_CACHE_OPTION_NONE = 0,
        CU_JIT_CACHE_OPTION_CG = 1,
        CU_JIT_CACHE_OPTION_CA = 2,
    }
}

pub type CUjit_cacheMode = CUjit_cacheMode_enum;

c_enum! {
    pub enum CUjitInputType_enum: u32 {
        CU_JIT_INPUT_CUBIN = 0,
        CU_JIT_INPUT_PTX = 1,
        CU_JIT_INPUT_FATBINARY = 2,
        CU_JIT_INPUT_OBJECT = 3,
        CU_JIT_INPUT_LIBRARY = 4,
        CU_JIT_INPUT_NVVM = 5,
        CU_JIT_NUM_INPUT_TYPES = 6,
    }
}

pub type CUjitInputType = CUjitInputType_enum;
pub type CUlinkState = *mut CUlinkState_st;

c_enum! {
    pub enum CUlibraryOption_enum: u32 {
        CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE = 0,
        CU_LIBRARY_BINARY_IS_PRESERVED = 1,
        CU_LIBRARY_NUM_OPTIONS = 2,
    }
}

pub type CUlibraryOption = CUlibraryOption_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlibraryHostUniversalFunctionAndDataTable_st {
    pub functionTable: *mut c_void,
    pub functionWindowSize: usize,
    pub dataTable: *mut c_void,
    pub dataWindowSize: usize,
}

pub type CUlibraryHostUniversalFunctionAndDataTable = CUlibraryHostUniversalFunctionAndDataTable_st;

c_enum! {
    pub enum CUmoduleLoadingMode_enum: u32 {
        CU_MODULE_EAGER_LOADING = 0x1,
        CU_MODULE_LAZY_LOADING = 0x2,
    }
}

pub type CUmoduleLoadingMode = CUmoduleLoadingMode_enum;
