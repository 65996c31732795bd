//! Contexts: flags, limits, creation parameters.
//!
//! Numbers and layouts are those of CUDA 13.5; names are the ones C programs write. No behaviour here.

use super::*;

opaque! {
    CUctx_st,
}

pub type CUcontext = *mut CUctx_st;

c_enum! {
    pub enum CUctx_flags_enum: u32 {
        CU_CTX_SCHED_AUTO = 0x00,
        CU_CTX_SCHED_SPIN = 0x01,
        CU_CTX_SCHED_YIELD = 0x02,
        CU_CTX_SCHED_BLOCKING_SYNC = 0x04,
        CU_CTX_BLOCKING_SYNC = 0x04,
        CU_CTX_SCHED_MASK = 0x07,
        CU_CTX_MAP_HOST = 0x08,
        CU_CTX_LMEM_RESIZE_TO_MAX = 0x10,
        CU_CTX_COREDUMP_ENABLE = 0x20,
        CU_CTX_USER_COREDUMP_ENABLE = 0x40,
        CU_CTX_SYNC_MEMOPS = 0x80,
        CU_CTX_FLAGS_MASK = 0xff,
    }
}

pub type CUctx_flags = CUctx_flags_enum;

c_enum! {
    pub enum CUlimit_enum: u32 {
        CU_LIMIT_STACK_SIZE = 0x00,
        CU_LIMIT_PRINTF_FIFO_SIZE = 0x01,
        CU_LIMIT_MALLOC_HEAP_SIZE = 0x02,
        CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 0x03,
        CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 0x04,
        CU_LIMIT_MAX_L2_FETCH_GRANULARITY = 0x05,
        CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 0x06,
        CU_LIMIT_SHMEM_SIZE = 0x07,
        CU_LIMIT_CIG_ENABLED = 0x08,
        CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED = 0x09,
        CU_LIMIT_PER_BLOCK_MEMORY_SIZE = 0x0a,
        CU_LIMIT_MAX = 11,
    }
}

pub type CUlimit = CUlimit_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUctxCigParam_st {
    pub sharedDataType: CUcigDataType,
    pub sharedData: *mut c_void,
}

pub type CUctxCigParam = CUctxCigParam_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUctxCreateParams_st {
    pub execAffinityParams: *mut CUexecAffinityParam,
    pub numExecAffinityParams: c_int,
    pub cigParams: *mut CUctxCigParam,
}

pub type CUctxCreateParams = CUctxCreateParams_st;

c_enum! {
    pub enum CUoutput_mode_enum: u32 {
        CU_OUT_KEY_VALUE_PAIR = 0x00,
        CU_OUT_CSV = 0x01,
    }
}

pub type CUoutput_mode = CUoutput_mode_enum;
