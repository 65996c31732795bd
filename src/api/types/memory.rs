//! Memory: pointers, copies, pointer attributes, advice, allocation properties, IPC.
//!
//! Numbers and layouts are those of CUDA 13.5; names are the ones C programs write. No behaviour here.

use super::*;

pub type cuuint32_t = u32;
pub type cuuint64_t = u64;
pub type CUdeviceptr_v2 = c_ulonglong;
pub type CUdeviceptr = CUdeviceptr_v2;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemFabricHandle_st {
    pub data: [c_uchar; 64],
}

pub type CUmemFabricHandle_v1 = CUmemFabricHandle_st;
pub type CUmemFabricHandle = CUmemFabricHandle_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUipcEventHandle_st {
    pub reserved: [c_char; 64],
}

pub type CUipcEventHandle_v1 = CUipcEventHandle_st;
pub type CUipcEventHandle = CUipcEventHandle_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUipcMemHandle_st {
    pub reserved: [c_char; 64],
}

pub type CUipcMemHandle_v1 = CUipcMemHandle_st;
pub type CUipcMemHandle = CUipcMemHandle_v1;

c_enum! {
    pub enum CUipcMem_flags_enum: u32 {
        CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 0x1,
    }
}

pub type CUipcMem_flags = CUipcMem_flags_enum;

c_enum! {
    pub enum CUmemAttach_flags_enum: u32 {
        CU_MEM_ATTACH_GLOBAL = 0x1,
        CU_MEM_ATTACH_HOST = 0x2,
        CU_MEM_ATTACH_SINGLE = 0x4,
    }
}

pub type CUmemAttach_flags = CUmemAttach_flags_enum;

c_enum! {
    pub enum CUpointer_attribute_enum: u32 {
        CU_POINTER_ATTRIBUTE_CONTEXT = 1,
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
        CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
        CU_POINTER_ATTRIBUTE_P2P_TOKENS = 5,
        CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
        CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
        CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
        CU_POINTER_ATTRIBUTE_MAPPED = 13,
        CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
        CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
        CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
        CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,
        CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,
        CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20,
        CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE = 21,
        CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL = 22,
    }
}

pub type CUpointer_attribute = CUpointer_attribute_enum;

c_enum! {
    pub enum CUmemorytype_enum: u32 {
        CU_MEMORYTYPE_HOST = 0x01,
        CU_MEMORYTYPE_DEVICE = 0x02,
        CU_MEMORYTYPE_ARRAY = 0x03,
        CU_MEMORYTYPE_UNIFIED = 0x04,
    }
}

pub type CUmemorytype = CUmemorytype_enum;

c_enum! {
    pub enum CUmem_advise_enum: u32 {
        CU_MEM_ADVISE_SET_READ_MOSTLY = 1,
        CU_MEM_ADVISE_UNSET_READ_MOSTLY = 2,
        CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
        CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 4,
        CU_MEM_ADVISE_SET_ACCESSED_BY = 5,
        CU_MEM_ADVISE_UNSET_ACCESSED_BY = 6,
    }
}

pub type CUmem_advise = CUmem_advise_enum;

c_enum! {
    pub enum CUmem_range_attribute_enum: u32 {
        CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY = 1,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION = 2,
        CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY = 3,
        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION = 4,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE = 5,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID = 6,
        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE = 7,
        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID = 8,
    }
}

pub type CUmem_range_attribute = CUmem_range_attribute_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMCPY2D_st {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub srcPitch: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub dstPitch: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
}

pub type CUDA_MEMCPY2D_v2 = CUDA_MEMCPY2D_st;
pub type CUDA_MEMCPY2D = CUDA_MEMCPY2D_v2;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMCPY3D_st {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub reserved0: *mut c_void,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub reserved1: *mut c_void,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}

pub type CUDA_MEMCPY3D_v2 = CUDA_MEMCPY3D_st;
pub type CUDA_MEMCPY3D = CUDA_MEMCPY3D_v2;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMCPY3D_PEER_st {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub srcContext: CUcontext,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub dstContext: CUcontext,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}

pub type CUDA_MEMCPY3D_PEER_v1 = CUDA_MEMCPY3D_PEER_st;
pub type CUDA_MEMCPY3D_PEER = CUDA_MEMCPY3D_PEER_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_POINTER_ATTRIBUTE_P2P_TOKENS_st {
    pub p2pToken: c_ulonglong,
    pub vaSpaceToken: c_uint,
}

pub type CUDA_POINTER_ATTRIBUTE_P2P_TOKENS_v1 = CUDA_POINTER_ATTRIBUTE_P2P_TOKENS_st;
pub type CUDA_POINTER_ATTRIBUTE_P2P_TOKENS = CUDA_POINTER_ATTRIBUTE_P2P_TOKENS_v1;

c_enum! {
    pub enum CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS_enum: u32 {
        CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE = 0x0,
        CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ = 0x1,
        CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE = 0x3,
    }
}

pub type CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS = CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS_enum;
pub type CUmemGenericAllocationHandle_v1 = c_ulonglong;
pub type CUmemGenericAllocationHandle = CUmemGenericAllocationHandle_v1;

c_enum! {
    pub enum CUmemAllocationHandleType_enum: u32 {
        CU_MEM_HANDLE_TYPE_NONE = 0x0,
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 0x1,
        CU_MEM_HANDLE_TYPE_WIN32 = 0x2,
        CU_MEM_HANDLE_TYPE_WIN32_KMT = 0x4,
        CU_MEM_HANDLE_TYPE_FABRIC = 0x8,
        CU_MEM_HANDLE_TYPE_MAX = 0x7fffffff,
    }
}

pub type CUmemAllocationHandleType = CUmemAllocationHandleType_enum;

c_enum! {
    pub enum CUmemAccess_flags_enum: u32 {
        CU_MEM_ACCESS_FLAGS_PROT_NONE = 0x0,
        CU_MEM_ACCESS_FLAGS_PROT_READ = 0x1,
        CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 0x3,
        CU_MEM_ACCESS_FLAGS_PROT_MAX = 0x7fffffff,
    }
}

pub type CUmemAccess_flags = CUmemAccess_flags_enum;

c_enum! {
    pub enum CUmemLocationType_enum: u32 {
        CU_MEM_LOCATION_TYPE_INVALID = 0x0,
        CU_MEM_LOCATION_TYPE_NONE = 0x0,
        CU_MEM_LOCATION_TYPE_DEVICE = 0x1,
        CU_MEM_LOCATION_TYPE_HOST = 0x2,
        CU_MEM_LOCATION_TYPE_HOST_NUMA = 0x3,
        CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 0x4,
        CU_MEM_LOCATION_TYPE_INVISIBLE = 0x5,
        CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN = 0x6,
        CU_MEM_LOCATION_TYPE_MAX = 0x7fffffff,
    }
}

pub type CUmemLocationType = CUmemLocationType_enum;

c_enum! {
    pub enum CUmemAllocationType_enum: u32 {
        CU_MEM_ALLOCATION_TYPE_INVALID = 0x0,
        CU_MEM_ALLOCATION_TYPE_PINNED = 0x1,
        CU_MEM_ALLOCATION_TYPE_MANAGED = 0x2,
        CU_MEM_ALLOCATION_TYPE_MAX = 0x7fffffff,
    }
}

pub type CUmemAllocationType = CUmemAllocationType_enum;

c_enum! {
    pub enum CUmemAllocationGranularity_flags_enum: u32 {
        CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0x0,
        CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 0x1,
    }
}

pub type CUmemAllocationGranularity_flags = CUmemAllocationGranularity_flags_enum;

c_enum! {
    pub enum CUmemRangeHandleType_enum: u32 {
        CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 0x1,
        CU_MEM_RANGE_HANDLE_TYPE_MAX = 0x7fffffff,
    }
}

pub type CUmemRangeHandleType = CUmemRangeHandleType_enum;

c_enum! {
    pub enum CUmemRangeFlags_enum: u32 {
        CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE = 0x1,
    }
}

pub type CUmemRangeFlags = CUmemRangeFlags_enum;

c_enum! {
    pub enum CUmemOperationType_enum: u32 {
        CU_MEM_OPERATION_TYPE_MAP = 1,
        CU_MEM_OPERATION_TYPE_UNMAP = 2,
    }
}

pub type CUmemOperationType = CUmemOperationType_enum;

c_enum! {
    pub enum CUmemHandleType_enum: u32 {
        CU_MEM_HANDLE_TYPE_GENERIC = 0,
    }
}

pub type CUmemHandleType = CUmemHandleType_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemLocation_st_anonymous_localized {
    pub deviceId: c_uchar,
    pub localityDomainId: c_uchar,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUmemLocation_st_anonymous {
    pub id: c_int,
    pub localized: CUmemLocation_st_anonymous_localized,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemLocation_st {
    pub r#type: CUmemLocationType,
    pub anonymous: CUmemLocation_st_anonymous,
}

pub type CUmemLocation_v1 = CUmemLocation_st;
pub type CUmemLocation = CUmemLocation_v1;

c_enum! {
    pub enum CUmemAllocationCompType_enum: u32 {
        CU_MEM_ALLOCATION_COMP_NONE = 0x0,
        CU_MEM_ALLOCATION_COMP_GENERIC = 0x1,
    }
}

pub type CUmemAllocationCompType = CUmemAllocationCompType_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemAllocationProp_st_allocFlags {
    pub compressionType: c_uchar,
    pub gpuDirectRDMACapable: c_uchar,
    pub usage: c_ushort,
    pub reserved: [c_uchar; 4],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemAllocationProp_st {
    pub r#type: CUmemAllocationType,
    pub requestedHandleTypes: CUmemAllocationHandleType,
    pub location: CUmemLocation,
    pub win32HandleMetaData: *mut c_void,
    pub allocFlags: CUmemAllocationProp_st_allocFlags,
}

pub type CUmemAllocationProp_v1 = CUmemAllocationProp_st;
pub type CUmemAllocationProp = CUmemAllocationProp_v1;

c_enum! {
    pub enum CUmulticastGranularity_flags_enum: u32 {
        CU_MULTICAST_GRANULARITY_MINIMUM = 0x0,
        CU_MULTICAST_GRANULARITY_RECOMMENDED = 0x1,
    }
}

pub type CUmulticastGranularity_flags = CUmulticastGranularity_flags_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmulticastObjectProp_st {
    pub numDevices: c_uint,
    pub size: usize,
    pub handleTypes: c_ulonglong,
    pub flags: c_ulonglong,
}

pub type CUmulticastObjectProp_v1 = CUmulticastObjectProp_st;
pub type CUmulticastObjectProp = CUmulticastObjectProp_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemAccessDesc_st {
    pub location: CUmemLocation,
    pub flags: CUmemAccess_flags,
}

pub type CUmemAccessDesc_v1 = CUmemAccessDesc_st;
pub type CUmemAccessDesc = CUmemAccessDesc_v1;

c_enum! {
    pub enum CUmemcpyFlags_enum: u32 {
        CU_MEMCPY_FLAG_DEFAULT = 0x0,
        CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE = 0x1,
    }
}

pub type CUmemcpyFlags = CUmemcpyFlags_enum;

c_enum! {
    pub enum CUmemcpySrcAccessOrder_enum: u32 {
        CU_MEMCPY_SRC_ACCESS_ORDER_INVALID = 0x0,
        CU_MEMCPY_SRC_ACCESS_ORDER_STREAM = 0x1,
        CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL = 0x2,
        CU_MEMCPY_SRC_ACCESS_ORDER_ANY = 0x3,
        CU_MEMCPY_SRC_ACCESS_ORDER_MAX = 0x7fffffff,
    }
}

pub type CUmemcpySrcAccessOrder = CUmemcpySrcAccessOrder_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemcpyAttributes_st {
    pub srcAccessOrder: CUmemcpySrcAccessOrder,
    pub srcLocHint: CUmemLocation,
    pub dstLocHint: CUmemLocation,
    pub flags: c_uint,
}

pub type CUmemcpyAttributes_v1 = CUmemcpyAttributes_st;
pub type CUmemcpyAttributes = CUmemcpyAttributes_v1;

c_enum! {
    pub enum CUmemcpy3DOperandType_enum: u32 {
        CU_MEMCPY_OPERAND_TYPE_POINTER = 0x1,
        CU_MEMCPY_OPERAND_TYPE_ARRAY = 0x2,
        CU_MEMCPY_OPERAND_TYPE_MAX = 0x7fffffff,
    }
}

pub type CUmemcpy3DOperandType = CUmemcpy3DOperandType_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUoffset3D_st {
    pub x: usize,
    pub y: usize,
    pub z: usize,
}

pub type CUoffset3D_v1 = CUoffset3D_st;
pub type CUoffset3D = CUoffset3D_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUextent3D_st {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

pub type CUextent3D_v1 = CUextent3D_st;
pub type CUextent3D = CUextent3D_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemcpy3DOperand_st_op_ptr {
    pub ptr: CUdeviceptr,
    pub rowLength: usize,
    pub layerHeight: usize,
    pub locHint: CUmemLocation,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemcpy3DOperand_st_op_array {
    pub array: CUarray,
    pub offset: CUoffset3D,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUmemcpy3DOperand_st_op {
    pub ptr: CUmemcpy3DOperand_st_op_ptr,
    pub array: CUmemcpy3DOperand_st_op_array,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemcpy3DOperand_st {
    pub r#type: CUmemcpy3DOperandType,
    pub op: CUmemcpy3DOperand_st_op,
}

pub type CUmemcpy3DOperand_v1 = CUmemcpy3DOperand_st;
pub type CUmemcpy3DOperand = CUmemcpy3DOperand_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMCPY3D_BATCH_OP_st {
    pub src: CUmemcpy3DOperand,
    pub dst: CUmemcpy3DOperand,
    pub extent: CUextent3D,
    pub srcAccessOrder: CUmemcpySrcAccessOrder,
    pub flags: c_uint,
}

pub type CUDA_MEMCPY3D_BATCH_OP_v1 = CUDA_MEMCPY3D_BATCH_OP_st;
pub type CUDA_MEMCPY3D_BATCH_OP = CUDA_MEMCPY3D_BATCH_OP_v1;

c_enum! {
    pub enum CUmemDecompressAlgorithm_enum: u32 {
        CU_MEM_DECOMPRESS_UNSUPPORTED = 0,
        CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE = 1,
        CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY = 2,
        CU_MEM_DECOMPRESS_ALGORITHM_LZ4 = 4,
    }
}

pub type CUmemDecompressAlgorithm = CUmemDecompressAlgorithm_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemDecompressParams_st {
    pub srcNumBytes: usize,
    pub dstNumBytes: usize,
    pub dstActBytes: *mut cuuint32_t,
    pub src: *const c_void,
    pub dst: *mut c_void,
    pub algo: CUmemDecompressAlgorithm,
    pub padding: [c_uchar; 20],
}

pub type CUmemDecompressParams = CUmemDecompressParams_st;
pub type CUdeviceptr_v1 = c_uint;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMCPY2D_v1_st {
    pub srcXInBytes: c_uint,
    pub srcY: c_uint,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr_v1,
    pub srcArray: CUarray,
    pub srcPitch: c_uint,
    pub dstXInBytes: c_uint,
    pub dstY: c_uint,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr_v1,
    pub dstArray: CUarray,
    pub dstPitch: c_uint,
    pub WidthInBytes: c_uint,
    pub Height: c_uint,
}

pub type CUDA_MEMCPY2D_v1 = CUDA_MEMCPY2D_v1_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMCPY3D_v1_st {
    pub srcXInBytes: c_uint,
    pub srcY: c_uint,
    pub srcZ: c_uint,
    pub srcLOD: c_uint,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr_v1,
    pub srcArray: CUarray,
    pub reserved0: *mut c_void,
    pub srcPitch: c_uint,
    pub srcHeight: c_uint,
    pub dstXInBytes: c_uint,
    pub dstY: c_uint,
    pub dstZ: c_uint,
    pub dstLOD: c_uint,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr_v1,
    pub dstArray: CUarray,
    pub reserved1: *mut c_void,
    pub dstPitch: c_uint,
    pub dstHeight: c_uint,
    pub WidthInBytes: c_uint,
    pub Height: c_uint,
    pub Depth: c_uint,
}

pub type CUDA_MEMCPY3D_v1 = CUDA_MEMCPY3D_v1_st;
