//! Later chapters: green contexts, device resources, logs, core dumps, checkpoints, fabric.
//!
//! Numbers and layouts are those of CUDA 13.5; names are the ones C programs write. No behaviour here.

use super::*;

opaque! {
    CUlogsCallbackEntry_st,
    CUgreenCtx_st,
    CUdevResourceDesc_st,
    CUcoredumpCallbackEntry_st,
    CUIcheckpointOperation_st,
}

pub type CUgreenCtx = *mut CUgreenCtx_st;
pub type CUDA_FABRIC_COPY_BATCH_OP_v1 = CUDA_FABRIC_COPY_BATCH_OP_st;
pub type CUDA_FABRIC_COPY_BATCH_OP = CUDA_FABRIC_COPY_BATCH_OP_v1;

c_enum! {
    pub enum CUprocessState_enum: u32 {
        CU_PROCESS_STATE_RUNNING = 0,
        CU_PROCESS_STATE_LOCKED = 1,
        CU_PROCESS_STATE_CHECKPOINTED = 2,
        CU_PROCESS_STATE_FAILED = 3,
        CU_PROCESS_STATE_CHECKPOINTING = 4,
        CU_PROCESS_STATE_RESTORING = 5,
    }
}

pub type CUprocessState = CUprocessState_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUcheckpointCustomStoragePerDeviceData_st {
    pub devPtr: CUdeviceptr,
    pub size: usize,
    pub stream: CUstream,
}

pub type CUcheckpointCustomStoragePerDeviceData = CUcheckpointCustomStoragePerDeviceData_st;
pub type CUcheckpointOperationHandle = *mut CUIcheckpointOperation_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUcheckpointCustomStorageInfo_st {
    pub handle: CUcheckpointOperationHandle,
    pub perDeviceData: *mut CUcheckpointCustomStoragePerDeviceData,
    pub deviceCount: c_uint,
}

pub type CUcheckpointCustomStorageInfo = CUcheckpointCustomStorageInfo_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUcheckpointLockArgs_st {
    pub timeoutMs: c_uint,
    pub reserved0: c_uint,
    pub reserved1: [cuuint64_t; 7],
}

pub type CUcheckpointLockArgs = CUcheckpointLockArgs_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUcheckpointCheckpointArgs_st {
    pub customStorageInfo_out: *mut *mut CUcheckpointCustomStorageInfo,
    pub reserved: [c_char; 56],
}

pub type CUcheckpointCheckpointArgs = CUcheckpointCheckpointArgs_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUcheckpointGpuPair_st {
    pub oldUuid: CUuuid,
    pub newUuid: CUuuid,
}

pub type CUcheckpointGpuPair = CUcheckpointGpuPair_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUcheckpointRestoreArgs_st {
    pub gpuPairs: *mut CUcheckpointGpuPair,
    pub gpuPairsCount: c_uint,
    pub padding0: c_uint,
    pub customStorageInfo_out: *mut *mut CUcheckpointCustomStorageInfo,
    pub reserved: [c_char; 40],
}

pub type CUcheckpointRestoreArgs = CUcheckpointRestoreArgs_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUcheckpointUnlockArgs_st {
    pub reserved: [cuuint64_t; 8],
}

pub type CUcheckpointUnlockArgs = CUcheckpointUnlockArgs_st;

c_enum! {
    pub enum CUcliqueType_enum: u32 {
        CU_CLIQUE_TYPE_UNICAST_POINTER = 0,
        CU_CLIQUE_TYPE_MULTICAST_POINTER = 1,
        CU_CLIQUE_TYPE_UNICAST_LOGICAL_ENDPOINT = 2,
        CU_CLIQUE_TYPE_MULTICAST_LOGICAL_ENDPOINT = 3,
    }
}

pub type CUcliqueType = CUcliqueType_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUcliqueInfo_st {
    pub r#type: CUcliqueType,
    pub id: c_uint,
}

pub type CUcliqueInfo = CUcliqueInfo_st;
pub type CUlogicalEndpointId = cuuint32_t;

c_enum! {
    pub enum CUlogicalEndpointIpcHandleType_enum: u32 {
        CU_LOGICAL_ENDPOINT_IPC_HANDLE_TYPE_NONE = 0,
        CU_LOGICAL_ENDPOINT_IPC_HANDLE_TYPE_FABRIC = 1,
    }
}

pub type CUlogicalEndpointIpcHandleType = CUlogicalEndpointIpcHandleType_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlogicalEndpointFabricHandle_st {
    pub data: [c_uchar; 64],
}

pub type CUlogicalEndpointFabricHandle = CUlogicalEndpointFabricHandle_st;

c_enum! {
    pub enum CUlogicalEndpointType_enum: u32 {
        CU_LOGICAL_ENDPOINT_TYPE_INVALID = 0,
        CU_LOGICAL_ENDPOINT_TYPE_UNICAST = 1,
        CU_LOGICAL_ENDPOINT_TYPE_MULTICAST = 2,
    }
}

pub type CUlogicalEndpointType = CUlogicalEndpointType_enum;

c_enum! {
    pub enum CUlogicalEndpointFlag_enum: u32 {
        CU_LOGICAL_ENDPOINT_FLAG_NONE = 0x0,
        CU_LOGICAL_ENDPOINT_FLAG_COUNTED_OPS = 0x1,
    }
}

pub type CUlogicalEndpointFlag = CUlogicalEndpointFlag_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlogicalEndpointProp_struct_anonymous_unicast {
    pub device: CUdevice,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlogicalEndpointProp_struct_anonymous_multicast {
    pub numDevices: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUlogicalEndpointProp_struct_anonymous {
    pub unicast: CUlogicalEndpointProp_struct_anonymous_unicast,
    pub multicast: CUlogicalEndpointProp_struct_anonymous_multicast,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlogicalEndpointProp_struct {
    pub r#type: CUlogicalEndpointType,
    pub anonymous: CUlogicalEndpointProp_struct_anonymous,
    pub size: c_ulonglong,
    pub ipcHandleTypes: c_uint,
    pub flags: c_uint,
}

pub type CUlogicalEndpointProp = CUlogicalEndpointProp_struct;

c_enum! {
    pub enum CUfabricCpyOperandType_enum: u32 {
        CU_FABRIC_COPY_OPERAND_TYPE_POINTER = 0x1,
        CU_FABRIC_COPY_OPERAND_TYPE_LOGICAL_ENDPOINT = 0x2,
        CU_FABRIC_COPY_OPERAND_TYPE_MAX = 0x7fffffff,
    }
}

pub type CUfabricCpyOperandType = CUfabricCpyOperandType_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUfabricCpyOperand_st_op_ptr {
    pub ptr: CUdeviceptr,
    pub locHint: CUmemLocation,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUfabricCpyOperand_st_op_le {
    pub id: CUlogicalEndpointId,
    pub offset: cuuint64_t,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUfabricCpyOperand_st_op {
    pub ptr: CUfabricCpyOperand_st_op_ptr,
    pub le: CUfabricCpyOperand_st_op_le,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUfabricCpyOperand_st {
    pub r#type: CUfabricCpyOperandType,
    pub op: CUfabricCpyOperand_st_op,
}

pub type CUfabricCpyOperand = CUfabricCpyOperand_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_FABRIC_COPY_BATCH_OP_st {
    pub src: CUfabricCpyOperand,
    pub dst: CUfabricCpyOperand,
    pub size: usize,
    pub flags: c_uint,
}

c_enum! {
    pub enum CUcoredumpSettings_enum: u32 {
        CU_COREDUMP_ENABLE_ON_EXCEPTION = 1,
        CU_COREDUMP_TRIGGER_HOST = 2,
        CU_COREDUMP_LIGHTWEIGHT = 3,
        CU_COREDUMP_ENABLE_USER_TRIGGER = 4,
        CU_COREDUMP_FILE = 5,
        CU_COREDUMP_PIPE = 6,
        CU_COREDUMP_GENERATION_FLAGS = 7,
        CU_COREDUMP_MAX = 8,
    }
}

pub type CUcoredumpSettings = CUcoredumpSettings_enum;

c_enum! {
    pub enum CUCoredumpGenerationFlags: u32 {
        CU_COREDUMP_DEFAULT_FLAGS = 0,
        CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES = 1,
        CU_COREDUMP_SKIP_GLOBAL_MEMORY = 2,
        CU_COREDUMP_SKIP_SHARED_MEMORY = 4,
        CU_COREDUMP_SKIP_LOCAL_MEMORY = 8,
        CU_COREDUMP_SKIP_ABORT = 16,
        CU_COREDUMP_SKIP_CONSTBANK_MEMORY = 32,
        CU_COREDUMP_GZIP_COMPRESS = 64,
        CU_COREDUMP_FAULTED_CONTEXTS_ONLY = 128,
        CU_COREDUMP_SKIP_TENSOR_MEMORY = 256,
        CU_COREDUMP_NO_ERRBAR_AT_EXIT = 1073741824,
        CU_COREDUMP_LOG_ONLY = 2147483648,
        CU_COREDUMP_LIGHTWEIGHT_FLAGS = 303,
    }
}

pub type CUcoredumpCallbackHandle = *mut CUcoredumpCallbackEntry_st;
pub type CUcoredumpStatusCallback = Option<unsafe extern "C" fn(userData: *mut c_void, pid: c_int, dev: CUdevice)>;
pub type CUdevResourceDesc = *mut CUdevResourceDesc_st;

c_enum! {
    pub enum CUgreenCtxCreate_flags: u32 {
        CU_GREEN_CTX_NONE = 0x0,
        CU_GREEN_CTX_DEFAULT_STREAM = 0x1,
    }
}

c_enum! {
    pub enum CUdevSmResourceGroup_flags: u32 {
        CU_DEV_SM_RESOURCE_GROUP_DEFAULT = 0,
        CU_DEV_SM_RESOURCE_GROUP_BACKFILL = 0x1,
        CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID = 2,
        CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS = 4,
    }
}

c_enum! {
    pub enum CUdevSmResourceSplitByCount_flags: u32 {
        CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING = 0x1,
        CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE = 0x2,
    }
}

c_enum! {
    pub enum CUdevResourceType: u32 {
        CU_DEV_RESOURCE_TYPE_INVALID = 0,
        CU_DEV_RESOURCE_TYPE_SM = 1,
        CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG = 1000,
        CU_DEV_RESOURCE_TYPE_WORKQUEUE = 10000,
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUdevSmResource_st {
    pub smCount: c_uint,
    pub minSmPartitionSize: c_uint,
    pub smCoscheduledAlignment: c_uint,
    pub flags: c_uint,
    pub localityDomainId: c_uint,
}

pub type CUdevSmResource = CUdevSmResource_st;

c_enum! {
    pub enum CUdevWorkqueueConfigScope: u32 {
        CU_WORKQUEUE_SCOPE_DEVICE_CTX = 0,
        CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED = 1,
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUdevWorkqueueConfigResource_st {
    pub device: CUdevice,
    pub wqConcurrencyLimit: c_uint,
    pub sharingScope: CUdevWorkqueueConfigScope,
}

pub type CUdevWorkqueueConfigResource = CUdevWorkqueueConfigResource_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUdevWorkqueueResource_st {
    pub reserved: [c_uchar; 40],
}

pub type CUdevWorkqueueResource = CUdevWorkqueueResource_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CU_DEV_SM_RESOURCE_GROUP_PARAMS_st {
    pub smCount: c_uint,
    pub coscheduledSmCount: c_uint,
    pub preferredCoscheduledSmCount: c_uint,
    pub flags: c_uint,
    pub localityDomainId: c_uint,
    pub reserved: [c_uint; 11],
}

pub type CU_DEV_SM_RESOURCE_GROUP_PARAMS = CU_DEV_SM_RESOURCE_GROUP_PARAMS_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUdevResource_st_anonymous {
    pub sm: CUdevSmResource,
    pub wqConfig: CUdevWorkqueueConfigResource,
    pub wq: CUdevWorkqueueResource,
    pub _oversize: [c_uchar; 40],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUdevResource_st {
    pub r#type: CUdevResourceType,
    pub _internal_padding: [c_uchar; 92],
    pub anonymous: CUdevResource_st_anonymous,
    pub nextResource: *mut CUdevResource_st,
}

pub type CUdevResource_v1 = CUdevResource_st;
pub type CUdevResource = CUdevResource_v1;

c_enum! {
    pub enum CUlogLevel_enum: u32 {
        CU_LOG_LEVEL_ERROR = 0,
        CU_LOG_LEVEL_WARNING = 1,
    }
}

pub type CUlogLevel = CUlogLevel_enum;
pub type CUlogsCallbackHandle = *mut CUlogsCallbackEntry_st;
pub type CUlogsCallback =
    Option<unsafe extern "C" fn(data: *mut c_void, logLevel: CUlogLevel, message: *mut c_char, length: usize)>;
pub type CUlogIterator = c_uint;
