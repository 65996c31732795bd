//! Functions and launches: function attributes, launch attributes, launch configuration.
//!
//! Numbers and layouts are those of CUDA 13.5; names are the ones C programs write. No behaviour here.

use super::*;

opaque! {
    CUfunc_st,
}

pub type CUfunction = *mut CUfunc_st;

c_enum! {
    pub enum CUoccupancy_flags_enum: u32 {
        CU_OCCUPANCY_DEFAULT = 0x0,
        CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE = 0x1,
    }
}

pub type CUoccupancy_flags = CUoccupancy_flags_enum;

c_enum! {
    pub enum CUfunction_attribute_enum: u32 {
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
        CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
        CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
        CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
        CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
        CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
        CU_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
        CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
        CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET = 10,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH = 11,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT = 12,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH = 13,
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
        CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
        CU_FUNC_ATTRIBUTE_DEVICE_NODE_UPDATE_SUPPORTED = 16,
        CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE = 17,
        CU_FUNC_ATTRIBUTE_MAX = 18,
    }
}

pub type CUfunction_attribute = CUfunction_attribute_enum;

c_enum! {
    pub enum CUfunc_cache_enum: u32 {
        CU_FUNC_CACHE_PREFER_NONE = 0x00,
        CU_FUNC_CACHE_PREFER_SHARED = 0x01,
        CU_FUNC_CACHE_PREFER_L1 = 0x02,
        CU_FUNC_CACHE_PREFER_EQUAL = 0x03,
    }
}

pub type CUfunc_cache = CUfunc_cache_enum;

c_enum! {
    pub enum CUsharedconfig_enum: u32 {
        CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE = 0x00,
        CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE = 0x01,
        CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE = 0x02,
    }
}

pub type CUsharedconfig = CUsharedconfig_enum;

c_enum! {
    pub enum CUshared_carveout_enum: i32 {
        CU_SHAREDMEM_CARVEOUT_DEFAULT = -1,
        CU_SHAREDMEM_CARVEOUT_MAX_SHARED = 100,
        CU_SHAREDMEM_CARVEOUT_MAX_L1 = 0,
    }
}

pub type CUshared_carveout = CUshared_carveout_enum;

c_enum! {
    pub enum CUaccessProperty_enum: u32 {
        CU_ACCESS_PROPERTY_NORMAL = 0,
        CU_ACCESS_PROPERTY_STREAMING = 1,
        CU_ACCESS_PROPERTY_PERSISTING = 2,
    }
}

pub type CUaccessProperty = CUaccessProperty_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUaccessPolicyWindow_st {
    pub base_ptr: *mut c_void,
    pub num_bytes: usize,
    pub hitRatio: f32,
    pub hitProp: CUaccessProperty,
    pub missProp: CUaccessProperty,
}

pub type CUaccessPolicyWindow_v1 = CUaccessPolicyWindow_st;
pub type CUaccessPolicyWindow = CUaccessPolicyWindow_v1;

c_enum! {
    pub enum CUclusterSchedulingPolicy_enum: u32 {
        CU_CLUSTER_SCHEDULING_POLICY_DEFAULT = 0,
        CU_CLUSTER_SCHEDULING_POLICY_SPREAD = 1,
        CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING = 2,
        CU_CLUSTER_SCHEDULING_POLICY_RUBIN_DSMEM_LOCALITY = 3,
    }
}

pub type CUclusterSchedulingPolicy = CUclusterSchedulingPolicy_enum;

c_enum! {
    pub enum CUlaunchMemSyncDomain_enum: u32 {
        CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT = 0,
        CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE = 1,
    }
}

pub type CUlaunchMemSyncDomain = CUlaunchMemSyncDomain_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlaunchMemSyncDomainMap_st {
    pub default_: c_uchar,
    pub remote: c_uchar,
}

pub type CUlaunchMemSyncDomainMap = CUlaunchMemSyncDomainMap_st;

c_enum! {
    pub enum CUlaunchAttributePortableClusterMode_enum: u32 {
        CU_LAUNCH_PORTABLE_CLUSTER_MODE_DEFAULT = 0,
        CU_LAUNCH_PORTABLE_CLUSTER_MODE_REQUIRE_PORTABLE = 1,
        CU_LAUNCH_PORTABLE_CLUSTER_MODE_ALLOW_NON_PORTABLE = 2,
    }
}

pub type CUlaunchAttributePortableClusterMode = CUlaunchAttributePortableClusterMode_enum;

c_enum! {
    pub enum CUsharedMemoryMode_enum: u32 {
        CU_SHARED_MEMORY_MODE_DEFAULT = 0,
        CU_SHARED_MEMORY_MODE_REQUIRE_PORTABLE = 1,
        CU_SHARED_MEMORY_MODE_ALLOW_NON_PORTABLE = 2,
        CU_SHARED_MEMORY_MODE_ALLOW_OVERSIZED_SHARED_MEMORY = 3,
        CU_SHARED_MEMORY_MODE_PREFER_OVERSIZED_SHARED_MEMORY = 4,
    }
}

pub type CUsharedMemoryMode = CUsharedMemoryMode_enum;

c_enum! {
    pub enum CUlaunchAttributeID_enum: u32 {
        CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW = 1,
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
        CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY = 3,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5,
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
        CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = 9,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN = 10,
        CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11,
        CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,
        CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE = 13,
        CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 14,
        CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING = 16,
        CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE = 17,
        CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE = 18,
        CU_LAUNCH_ATTRIBUTE_MAX = 19,
    }
}

pub type CUlaunchAttributeID = CUlaunchAttributeID_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlaunchAttributeValue_union_clusterDim {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlaunchAttributeValue_union_programmaticEvent {
    pub event: CUevent,
    pub flags: c_int,
    pub triggerAtBlockStart: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlaunchAttributeValue_union_launchCompletionEvent {
    pub event: CUevent,
    pub flags: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlaunchAttributeValue_union_preferredClusterDim {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlaunchAttributeValue_union_deviceUpdatableKernelNode {
    pub deviceUpdatable: c_int,
    pub devNode: CUgraphDeviceNode,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUlaunchAttributeValue_union {
    pub pad: [c_char; 64],
    pub accessPolicyWindow: CUaccessPolicyWindow,
    pub cooperative: c_int,
    pub syncPolicy: CUsynchronizationPolicy,
    pub clusterDim: CUlaunchAttributeValue_union_clusterDim,
    pub clusterSchedulingPolicyPreference: CUclusterSchedulingPolicy,
    pub programmaticStreamSerializationAllowed: c_int,
    pub programmaticEvent: CUlaunchAttributeValue_union_programmaticEvent,
    pub launchCompletionEvent: CUlaunchAttributeValue_union_launchCompletionEvent,
    pub priority: c_int,
    pub memSyncDomainMap: CUlaunchMemSyncDomainMap,
    pub memSyncDomain: CUlaunchMemSyncDomain,
    pub preferredClusterDim: CUlaunchAttributeValue_union_preferredClusterDim,
    pub deviceUpdatableKernelNode: CUlaunchAttributeValue_union_deviceUpdatableKernelNode,
    pub sharedMemCarveout: c_uint,
    pub nvlinkUtilCentricScheduling: c_uint,
    pub portableClusterSizeMode: CUlaunchAttributePortableClusterMode,
    pub sharedMemoryMode: CUsharedMemoryMode,
}

pub type CUlaunchAttributeValue = CUlaunchAttributeValue_union;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlaunchAttribute_st {
    pub id: CUlaunchAttributeID,
    pub pad: [c_char; 4],
    pub value: CUlaunchAttributeValue,
}

pub type CUlaunchAttribute = CUlaunchAttribute_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlaunchConfig_st {
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub hStream: CUstream,
    pub attrs: *mut CUlaunchAttribute,
    pub numAttrs: c_uint,
}

pub type CUlaunchConfig = CUlaunchConfig_st;
pub type CUoccupancyB2DSize = Option<unsafe extern "C" fn(blockSize: c_int) -> usize>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_LAUNCH_PARAMS_st {
    pub function: CUfunction,
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub hStream: CUstream,
    pub kernelParams: *mut *mut c_void,
}

pub type CUDA_LAUNCH_PARAMS_v1 = CUDA_LAUNCH_PARAMS_st;
pub type CUDA_LAUNCH_PARAMS = CUDA_LAUNCH_PARAMS_v1;

c_enum! {
    pub enum CUfunctionLoadingState_enum: u32 {
        CU_FUNCTION_LOADING_STATE_UNLOADED = 0,
        CU_FUNCTION_LOADING_STATE_LOADED = 1,
        CU_FUNCTION_LOADING_STATE_MAX = 2,
    }
}

pub type CUfunctionLoadingState = CUfunctionLoadingState_enum;
