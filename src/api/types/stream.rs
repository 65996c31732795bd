//! Streams and events: flags, callbacks, capture, memory operations.
//!
//! Numbers and layouts are those of CUDA 13.5; names are the ones C programs write. No behaviour here.

use super::*;

opaque! {
    CUstream_st,
    CUevent_st,
}

pub type CUevent = *mut CUevent_st;
pub type CUstream = *mut CUstream_st;

c_enum! {
    pub enum CUevent_sched_flags_enum: u32 {
        CU_EVENT_SCHED_AUTO = 0x00,
        CU_EVENT_SCHED_SPIN = 0x01,
        CU_EVENT_SCHED_YIELD = 0x02,
        CU_EVENT_SCHED_BLOCKING_SYNC = 0x04,
    }
}

pub type CUevent_sched_flags = CUevent_sched_flags_enum;

c_enum! {
    pub enum CUhostTaskSyncMode_enum: u32 {
        CU_HOST_TASK_BLOCKING = 0x0,
        CU_HOST_TASK_SPINWAIT = 0x1,
    }
}

pub type CUhostTaskSyncMode = CUhostTaskSyncMode_enum;

c_enum! {
    pub enum CUstream_flags_enum: u32 {
        CU_STREAM_DEFAULT = 0x0,
        CU_STREAM_NON_BLOCKING = 0x1,
    }
}

pub type CUstream_flags = CUstream_flags_enum;

c_enum! {
    pub enum CUevent_flags_enum: u32 {
        CU_EVENT_DEFAULT = 0x0,
        CU_EVENT_BLOCKING_SYNC = 0x1,
        CU_EVENT_DISABLE_TIMING = 0x2,
        CU_EVENT_INTERPROCESS = 0x4,
    }
}

pub type CUevent_flags = CUevent_flags_enum;

c_enum! {
    pub enum CUevent_record_flags_enum: u32 {
        CU_EVENT_RECORD_DEFAULT = 0x0,
        CU_EVENT_RECORD_EXTERNAL = 0x1,
    }
}

pub type CUevent_record_flags = CUevent_record_flags_enum;

c_enum! {
    pub enum CUevent_wait_flags_enum: u32 {
        CU_EVENT_WAIT_DEFAULT = 0x0,
        CU_EVENT_WAIT_EXTERNAL = 0x1,
    }
}

pub type CUevent_wait_flags = CUevent_wait_flags_enum;

c_enum! {
    pub enum CUstreamWaitValue_flags_enum: u32 {
        CU_STREAM_WAIT_VALUE_GEQ = 0x0,
        CU_STREAM_WAIT_VALUE_EQ = 0x1,
        CU_STREAM_WAIT_VALUE_AND = 0x2,
        CU_STREAM_WAIT_VALUE_NOR = 0x3,
        CU_STREAM_WAIT_VALUE_FLUSH = 1073741824,
    }
}

pub type CUstreamWaitValue_flags = CUstreamWaitValue_flags_enum;

c_enum! {
    pub enum CUstreamWriteValue_flags_enum: u32 {
        CU_STREAM_WRITE_VALUE_DEFAULT = 0x0,
        CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER = 0x1,
    }
}

pub type CUstreamWriteValue_flags = CUstreamWriteValue_flags_enum;

c_enum! {
    pub enum CUstreamBatchMemOpType_enum: u32 {
        CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
        CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
        CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
        CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
        CU_STREAM_MEM_OP_BARRIER = 6,
        CU_STREAM_MEM_OP_ATOMIC_REDUCTION = 8,
        CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
    }
}

pub type CUstreamBatchMemOpType = CUstreamBatchMemOpType_enum;

c_enum! {
    pub enum CUstreamMemoryBarrier_flags_enum: u32 {
        CU_STREAM_MEMORY_BARRIER_TYPE_SYS = 0x0,
        CU_STREAM_MEMORY_BARRIER_TYPE_GPU = 0x1,
    }
}

pub type CUstreamMemoryBarrier_flags = CUstreamMemoryBarrier_flags_enum;

c_enum! {
    pub enum CUstreamAtomicReductionOpType_enum: u32 {
        CU_STREAM_ATOMIC_REDUCTION_OP_OR = 6,
        CU_STREAM_ATOMIC_REDUCTION_OP_AND = 5,
        CU_STREAM_ATOMIC_REDUCTION_OP_ADD = 0,
    }
}

pub type CUstreamAtomicReductionOpType = CUstreamAtomicReductionOpType_enum;

c_enum! {
    pub enum CUstreamAtomicReductionDataType_enum: u32 {
        CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_32 = 14,
        CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_64 = 22,
    }
}

pub type CUstreamAtomicReductionDataType = CUstreamAtomicReductionDataType_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUstreamMemOpWaitValueParams_st_anonymous {
    pub value: cuuint32_t,
    pub value64: cuuint64_t,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUstreamMemOpWaitValueParams_st {
    pub operation: CUstreamBatchMemOpType,
    pub address: CUdeviceptr,
    pub anonymous: CUstreamMemOpWaitValueParams_st_anonymous,
    pub flags: c_uint,
    pub alias: CUdeviceptr,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUstreamMemOpWriteValueParams_st_anonymous {
    pub value: cuuint32_t,
    pub value64: cuuint64_t,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUstreamMemOpWriteValueParams_st {
    pub operation: CUstreamBatchMemOpType,
    pub address: CUdeviceptr,
    pub anonymous: CUstreamMemOpWriteValueParams_st_anonymous,
    pub flags: c_uint,
    pub alias: CUdeviceptr,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUstreamMemOpFlushRemoteWritesParams_st {
    pub operation: CUstreamBatchMemOpType,
    pub flags: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUstreamMemOpMemoryBarrierParams_st {
    pub operation: CUstreamBatchMemOpType,
    pub flags: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUstreamMemOpAtomicReductionParams_st {
    pub operation: CUstreamBatchMemOpType,
    pub flags: c_uint,
    pub reductionOp: CUstreamAtomicReductionOpType,
    pub dataType: CUstreamAtomicReductionDataType,
    pub address: CUdeviceptr,
    pub value: cuuint64_t,
    pub alias: CUdeviceptr,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUstreamBatchMemOpParams_union {
    pub operation: CUstreamBatchMemOpType,
    pub waitValue: CUstreamMemOpWaitValueParams_st,
    pub writeValue: CUstreamMemOpWriteValueParams_st,
    pub flushRemoteWrites: CUstreamMemOpFlushRemoteWritesParams_st,
    pub memoryBarrier: CUstreamMemOpMemoryBarrierParams_st,
    pub atomicReduction: CUstreamMemOpAtomicReductionParams_st,
    pub pad: [cuuint64_t; 6],
}

pub type CUstreamBatchMemOpParams_v1 = CUstreamBatchMemOpParams_union;
pub type CUstreamBatchMemOpParams = CUstreamBatchMemOpParams_v1;

c_enum! {
    pub enum CUstreamUpdateCaptureDependencies_flags_enum: u32 {
        CU_STREAM_ADD_CAPTURE_DEPENDENCIES = 0x0,
        CU_STREAM_SET_CAPTURE_DEPENDENCIES = 0x1,
    }
}

pub type CUstreamUpdateCaptureDependencies_flags = CUstreamUpdateCaptureDependencies_flags_enum;
pub type CUhostFn = Option<unsafe extern "C" fn(userData: *mut c_void)>;

c_enum! {
    pub enum CUsynchronizationPolicy_enum: u32 {
        CU_SYNC_POLICY_AUTO = 1,
        CU_SYNC_POLICY_SPIN = 2,
        CU_SYNC_POLICY_YIELD = 3,
        CU_SYNC_POLICY_BLOCKING_SYNC = 4,
    }
}

pub type CUsynchronizationPolicy = CUsynchronizationPolicy_enum;

c_enum! {
    pub enum CUstreamCaptureStatus_enum: u32 {
        CU_STREAM_CAPTURE_STATUS_NONE = 0,
        CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
        CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
    }
}

pub type CUstreamCaptureStatus = CUstreamCaptureStatus_enum;

c_enum! {
    pub enum CUstreamCaptureMode_enum: u32 {
        CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
        CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    }
}

pub type CUstreamCaptureMode = CUstreamCaptureMode_enum;
pub type CUstreamAttrID = CUlaunchAttributeID;
pub type CUstreamAttrValue_v1 = CUlaunchAttributeValue;
pub type CUstreamAttrValue = CUstreamAttrValue_v1;

c_enum! {
    pub enum CUcigDataType_enum: u32 {
        CIG_DATA_TYPE_D3D12_COMMAND_QUEUE = 0x1,
        CIG_DATA_TYPE_NV_BLOB = 0x2,
    }
}

pub type CUcigDataType = CUcigDataType_enum;

c_enum! {
    pub enum CUstreamCigDataType_enum: u32 {
        STREAM_CIG_DATA_TYPE_D3D12_COMMAND_LIST = 0x1,
        STREAM_CIG_DATA_TYPE_VULKAN_COMMAND_BUFFER_HANDLE_NV = 0x2,
    }
}

pub type CUstreamCigDataType = CUstreamCigDataType_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUstreamCigParam_st {
    pub streamSharedDataType: CUstreamCigDataType,
    pub streamSharedData: *mut c_void,
}

pub type CUstreamCigParam = CUstreamCigParam_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUstreamCigCaptureParams_st {
    pub streamCigParams: *mut CUstreamCigParam,
}

pub type CUstreamCigCaptureParams = CUstreamCigCaptureParams_st;
pub type CUstreamCallback = Option<unsafe extern "C" fn(hStream: CUstream, status: CUresult, userData: *mut c_void)>;
