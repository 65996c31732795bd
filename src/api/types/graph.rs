//! Graphs: node kinds, node parameters, instantiation, user objects.
//!
//! Numbers and layouts are those of CUDA 13.5; names are the ones C programs write. No behaviour here.

use super::*;

opaque! {
    CUuserObject_st,
    CUgraph_st,
    CUgraphNode_st,
    CUgraphExec_st,
    CUgraphDeviceUpdatableNode_st,
}

pub type CUgraph = *mut CUgraph_st;
pub type CUgraphNode = *mut CUgraphNode_st;
pub type CUgraphExec = *mut CUgraphExec_st;
pub type CUuserObject = *mut CUuserObject_st;
pub type CUgraphConditionalHandle = cuuint64_t;
pub type CUgraphDeviceNode = *mut CUgraphDeviceUpdatableNode_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st {
    pub ctx: CUcontext,
    pub count: c_uint,
    pub paramArray: *mut CUstreamBatchMemOpParams,
    pub flags: c_uint,
}

pub type CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 = CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st;
pub type CUDA_BATCH_MEM_OP_NODE_PARAMS = CUDA_BATCH_MEM_OP_NODE_PARAMS_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_BATCH_MEM_OP_NODE_PARAMS_v2_st {
    pub ctx: CUcontext,
    pub count: c_uint,
    pub paramArray: *mut CUstreamBatchMemOpParams,
    pub flags: c_uint,
}

pub type CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 = CUDA_BATCH_MEM_OP_NODE_PARAMS_v2_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_KERNEL_NODE_PARAMS_st {
    pub func: CUfunction,
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub kernelParams: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

pub type CUDA_KERNEL_NODE_PARAMS_v1 = CUDA_KERNEL_NODE_PARAMS_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_KERNEL_NODE_PARAMS_v2_st {
    pub func: CUfunction,
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub kernelParams: *mut *mut c_void,
    pub extra: *mut *mut c_void,
    pub kern: CUkernel,
    pub ctx: CUcontext,
}

pub type CUDA_KERNEL_NODE_PARAMS_v2 = CUDA_KERNEL_NODE_PARAMS_v2_st;
pub type CUDA_KERNEL_NODE_PARAMS = CUDA_KERNEL_NODE_PARAMS_v2;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_KERNEL_NODE_PARAMS_v3_st {
    pub func: CUfunction,
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub kernelParams: *mut *mut c_void,
    pub extra: *mut *mut c_void,
    pub kern: CUkernel,
    pub ctx: CUcontext,
}

pub type CUDA_KERNEL_NODE_PARAMS_v3 = CUDA_KERNEL_NODE_PARAMS_v3_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMSET_NODE_PARAMS_st {
    pub dst: CUdeviceptr,
    pub pitch: usize,
    pub value: c_uint,
    pub elementSize: c_uint,
    pub width: usize,
    pub height: usize,
}

pub type CUDA_MEMSET_NODE_PARAMS_v1 = CUDA_MEMSET_NODE_PARAMS_st;
pub type CUDA_MEMSET_NODE_PARAMS = CUDA_MEMSET_NODE_PARAMS_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMSET_NODE_PARAMS_v2_st {
    pub dst: CUdeviceptr,
    pub pitch: usize,
    pub value: c_uint,
    pub elementSize: c_uint,
    pub width: usize,
    pub height: usize,
    pub ctx: CUcontext,
}

pub type CUDA_MEMSET_NODE_PARAMS_v2 = CUDA_MEMSET_NODE_PARAMS_v2_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_HOST_NODE_PARAMS_st {
    pub r#fn: CUhostFn,
    pub userData: *mut c_void,
}

pub type CUDA_HOST_NODE_PARAMS_v1 = CUDA_HOST_NODE_PARAMS_st;
pub type CUDA_HOST_NODE_PARAMS = CUDA_HOST_NODE_PARAMS_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUDA_HOST_NODE_PARAMS_v2_st_anonymous {
    pub ctx: CUcontext,
    pub gCtx: CUgreenCtx,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_HOST_NODE_PARAMS_v2_st {
    pub r#fn: CUhostFn,
    pub userData: *mut c_void,
    pub syncMode: c_uint,
    pub anonymous: CUDA_HOST_NODE_PARAMS_v2_st_anonymous,
}

pub type CUDA_HOST_NODE_PARAMS_v2 = CUDA_HOST_NODE_PARAMS_v2_st;

c_enum! {
    pub enum CUgraphConditionalNodeType_enum: u32 {
        CU_GRAPH_COND_TYPE_IF = 0,
        CU_GRAPH_COND_TYPE_WHILE = 1,
        CU_GRAPH_COND_TYPE_SWITCH = 2,
    }
}

pub type CUgraphConditionalNodeType = CUgraphConditionalNodeType_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_CONDITIONAL_NODE_PARAMS {
    pub handle: CUgraphConditionalHandle,
    pub r#type: CUgraphConditionalNodeType,
    pub size: c_uint,
    pub phGraph_out: *mut CUgraph,
    pub ctx: CUcontext,
}

c_enum! {
    pub enum CUgraphNodeType_enum: u32 {
        CU_GRAPH_NODE_TYPE_KERNEL = 0,
        CU_GRAPH_NODE_TYPE_MEMCPY = 1,
        CU_GRAPH_NODE_TYPE_MEMSET = 2,
        CU_GRAPH_NODE_TYPE_HOST = 3,
        CU_GRAPH_NODE_TYPE_GRAPH = 4,
        CU_GRAPH_NODE_TYPE_EMPTY = 5,
        CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
        CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
        CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL = 8,
        CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT = 9,
        CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
        CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
        CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
        CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
        CU_GRAPH_NODE_TYPE_MEMCPY_BATCH = 14,
        CU_GRAPH_NODE_TYPE_RESERVED_16 = 16,
        CU_GRAPH_NODE_TYPE_EXTERNAL_ENGINE = 17,
        CU_GRAPH_NODE_TYPE_FABRIC_CPY_BATCH = 18,
    }
}

pub type CUgraphNodeType = CUgraphNodeType_enum;

c_enum! {
    pub enum CUgraphDependencyType_enum: u32 {
        CU_GRAPH_DEPENDENCY_TYPE_DEFAULT = 0,
        CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC = 1,
    }
}

pub type CUgraphDependencyType = CUgraphDependencyType_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUgraphEdgeData_st {
    pub from_port: c_uchar,
    pub to_port: c_uchar,
    pub r#type: c_uchar,
    pub reserved: [c_uchar; 5],
}

pub type CUgraphEdgeData = CUgraphEdgeData_st;

c_enum! {
    pub enum CUgraphInstantiateResult_enum: u32 {
        CUDA_GRAPH_INSTANTIATE_SUCCESS = 0,
        CUDA_GRAPH_INSTANTIATE_ERROR = 1,
        CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE = 2,
        CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED = 3,
        CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED = 4,
        CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED = 5,
    }
}

pub type CUgraphInstantiateResult = CUgraphInstantiateResult_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_GRAPH_INSTANTIATE_PARAMS_st {
    pub flags: cuuint64_t,
    pub hUploadStream: CUstream,
    pub hErrNode_out: CUgraphNode,
    pub result_out: CUgraphInstantiateResult,
}

pub type CUDA_GRAPH_INSTANTIATE_PARAMS = CUDA_GRAPH_INSTANTIATE_PARAMS_st;
pub type CUkernelNodeAttrID = CUlaunchAttributeID;
pub type CUkernelNodeAttrValue_v1 = CUlaunchAttributeValue;
pub type CUkernelNodeAttrValue = CUkernelNodeAttrValue_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMCPY_NODE_PARAMS_st {
    pub flags: c_int,
    pub reserved: c_int,
    pub copyCtx: CUcontext,
    pub copyParams: CUDA_MEMCPY3D,
}

pub type CUDA_MEMCPY_NODE_PARAMS = CUDA_MEMCPY_NODE_PARAMS_st;

c_enum! {
    pub enum CUgraphExecUpdateResult_enum: u32 {
        CU_GRAPH_EXEC_UPDATE_SUCCESS = 0x0,
        CU_GRAPH_EXEC_UPDATE_ERROR = 0x1,
        CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED = 0x2,
        CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED = 0x3,
        CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED = 0x4,
        CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED = 0x5,
        CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED = 0x6,
        CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE = 0x7,
        CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED = 0x8,
    }
}

pub type CUgraphExecUpdateResult = CUgraphExecUpdateResult_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUgraphExecUpdateResultInfo_st {
    pub result: CUgraphExecUpdateResult,
    pub errorNode: CUgraphNode,
    pub errorFromNode: CUgraphNode,
}

pub type CUgraphExecUpdateResultInfo_v1 = CUgraphExecUpdateResultInfo_st;
pub type CUgraphExecUpdateResultInfo = CUgraphExecUpdateResultInfo_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEM_ALLOC_NODE_PARAMS_v1_st {
    pub poolProps: CUmemPoolProps,
    pub accessDescs: *const CUmemAccessDesc,
    pub accessDescCount: usize,
    pub bytesize: usize,
    pub dptr: CUdeviceptr,
}

pub type CUDA_MEM_ALLOC_NODE_PARAMS_v1 = CUDA_MEM_ALLOC_NODE_PARAMS_v1_st;
pub type CUDA_MEM_ALLOC_NODE_PARAMS = CUDA_MEM_ALLOC_NODE_PARAMS_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEM_ALLOC_NODE_PARAMS_v2_st {
    pub poolProps: CUmemPoolProps,
    pub accessDescs: *const CUmemAccessDesc,
    pub accessDescCount: usize,
    pub bytesize: usize,
    pub dptr: CUdeviceptr,
}

pub type CUDA_MEM_ALLOC_NODE_PARAMS_v2 = CUDA_MEM_ALLOC_NODE_PARAMS_v2_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEM_FREE_NODE_PARAMS_st {
    pub dptr: CUdeviceptr,
}

pub type CUDA_MEM_FREE_NODE_PARAMS = CUDA_MEM_FREE_NODE_PARAMS_st;

c_enum! {
    pub enum CUgraphMem_attribute_enum: u32 {
        CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT = 0,
        CU_GRAPH_MEM_ATTR_USED_MEM_HIGH = 1,
        CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2,
        CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH = 3,
    }
}

pub type CUgraphMem_attribute = CUgraphMem_attribute_enum;

c_enum! {
    pub enum CUgraphChildGraphNodeOwnership_enum: i32 {
        CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE = 0,
        CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE = 1,
        CU_GRAPH_CHILD_GRAPH_OWNERSHIP_INVALID = -1,
    }
}

pub type CUgraphChildGraphNodeOwnership = CUgraphChildGraphNodeOwnership_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_CHILD_GRAPH_NODE_PARAMS_st {
    pub graph: CUgraph,
    pub ownership: CUgraphChildGraphNodeOwnership,
}

pub type CUDA_CHILD_GRAPH_NODE_PARAMS = CUDA_CHILD_GRAPH_NODE_PARAMS_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUDA_EVENT_RECORD_NODE_PARAMS_st_anonymous {
    pub ctx: CUcontext,
    pub gCtx: CUgreenCtx,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_EVENT_RECORD_NODE_PARAMS_st {
    pub event: CUevent,
    pub anonymous: CUDA_EVENT_RECORD_NODE_PARAMS_st_anonymous,
}

pub type CUDA_EVENT_RECORD_NODE_PARAMS = CUDA_EVENT_RECORD_NODE_PARAMS_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_EVENT_WAIT_NODE_PARAMS_st {
    pub event: CUevent,
}

pub type CUDA_EVENT_WAIT_NODE_PARAMS = CUDA_EVENT_WAIT_NODE_PARAMS_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUDA_MEMCPY_BATCH_NODE_PARAMS_V1_st_anonymous {
    pub ctx: CUcontext,
    pub gCtx: CUgreenCtx,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMCPY_BATCH_NODE_PARAMS_V1_st {
    pub count: usize,
    pub dsts: *mut CUdeviceptr,
    pub srcs: *mut CUdeviceptr,
    pub sizes: *mut usize,
    pub attrs: *mut CUmemcpyAttributes,
    pub attrsIdxs: *mut usize,
    pub numAttrs: usize,
    pub anonymous: CUDA_MEMCPY_BATCH_NODE_PARAMS_V1_st_anonymous,
}

pub type CUDA_MEMCPY_BATCH_NODE_PARAMS_V1 = CUDA_MEMCPY_BATCH_NODE_PARAMS_V1_st;
pub type CUDA_MEMCPY_BATCH_NODE_PARAMS = CUDA_MEMCPY_BATCH_NODE_PARAMS_V1;

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1_st_anonymous {
    pub ctx: CUcontext,
    pub gCtx: CUgreenCtx,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1_st {
    pub numOps: usize,
    pub opList: *mut CUDA_FABRIC_COPY_BATCH_OP,
    pub flags: c_ulonglong,
    pub anonymous: CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1_st_anonymous,
}

pub type CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1 = CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1_st;
pub type CUDA_FABRIC_CPY_BATCH_NODE_PARAMS = CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1;

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUgraphNodeParams_st_anonymous {
    pub reserved1: [c_longlong; 29],
    pub kernel: CUDA_KERNEL_NODE_PARAMS_v3,
    pub memcpy: CUDA_MEMCPY_NODE_PARAMS,
    pub memset: CUDA_MEMSET_NODE_PARAMS_v2,
    pub host: CUDA_HOST_NODE_PARAMS_v2,
    pub graph: CUDA_CHILD_GRAPH_NODE_PARAMS,
    pub eventWait: CUDA_EVENT_WAIT_NODE_PARAMS,
    pub eventRecord: CUDA_EVENT_RECORD_NODE_PARAMS,
    pub extSemSignal: CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2,
    pub extSemWait: CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2,
    pub alloc: CUDA_MEM_ALLOC_NODE_PARAMS_v2,
    pub free: CUDA_MEM_FREE_NODE_PARAMS,
    pub memOp: CUDA_BATCH_MEM_OP_NODE_PARAMS_v2,
    pub conditional: CUDA_CONDITIONAL_NODE_PARAMS,
    pub memcpyBatch: CUDA_MEMCPY_BATCH_NODE_PARAMS_V1,
    pub fabricCpyBatch: CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1,
    pub asBytes: [c_char; 232],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUgraphNodeParams_st {
    pub r#type: CUgraphNodeType,
    pub reserved0: [c_int; 3],
    pub anonymous: CUgraphNodeParams_st_anonymous,
    pub reserved2: c_longlong,
}

pub type CUgraphNodeParams = CUgraphNodeParams_st;

c_enum! {
    pub enum CUgraphDebugDot_flags_enum: u32 {
        CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE = 1,
        CU_GRAPH_DEBUG_DOT_FLAGS_RUNTIME_TYPES = 2,
        CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS = 4,
        CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS = 8,
        CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS = 16,
        CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS = 32,
        CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS = 64,
        CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_SIGNAL_NODE_PARAMS = 128,
        CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_WAIT_NODE_PARAMS = 256,
        CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES = 512,
        CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES = 1024,
        CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS = 2048,
        CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS = 4096,
        CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS = 8192,
        CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO = 16384,
        CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS = 32768,
        CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_BATCH_NODE_PARAMS = 65536,
        CU_GRAPH_DEBUG_DOT_FLAGS_FABRIC_CPY_BATCH_NODE_PARAMS = 131072,
    }
}

pub type CUgraphDebugDot_flags = CUgraphDebugDot_flags_enum;

c_enum! {
    pub enum CUuserObject_flags_enum: u32 {
        CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1,
    }
}

pub type CUuserObject_flags = CUuserObject_flags_enum;

c_enum! {
    pub enum CUuserObjectRetain_flags_enum: u32 {
        CU_GRAPH_USER_OBJECT_MOVE = 1,
    }
}

pub type CUuserObjectRetain_flags = CUuserObjectRetain_flags_enum;

c_enum! {
    pub enum CUgraphInstantiate_flags_enum: u32 {
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1,
        CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 2,
        CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH = 4,
        CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8,
    }
}

pub type CUgraphInstantiate_flags = CUgraphInstantiate_flags_enum;

c_enum! {
    pub enum CUgraphRecaptureStatus_enum: u32 {
        CU_GRAPH_RECAPTURE_ELIGIBLE_FOR_UPDATE = 0,
        CU_GRAPH_RECAPTURE_INELIGIBLE_FOR_UPDATE = 1,
        CU_GRAPH_RECAPTURE_ERROR = 2,
    }
}

pub type CUgraphRecaptureStatus = CUgraphRecaptureStatus_enum;
pub type CUgraphRecaptureCallback = Option<
    unsafe extern "C" fn(
        data: *mut c_void,
        node: CUgraphNode,
        originalParams: *const CUgraphNodeParams,
        recaptureParams: *const CUgraphNodeParams,
        status: CUgraphRecaptureStatus,
    ) -> CUresult,
>;
