//! Stream-ordered memory: pools, their properties and attributes.
//!
//! Numbers and layouts are those of CUDA 13.5; names are the ones C programs write. No behaviour here.

use super::*;

opaque! {
    CUmemPoolHandle_st,
}

pub type CUmemoryPool = *mut CUmemPoolHandle_st;

c_enum! {
    pub enum CUmemPool_attribute_enum: u32 {
        CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
        CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
        CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
        CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
        CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
        CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
        CU_MEMPOOL_ATTR_ALLOCATION_TYPE = 9,
        CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES = 10,
        CU_MEMPOOL_ATTR_LOCATION_ID = 11,
        CU_MEMPOOL_ATTR_LOCATION_TYPE = 12,
        CU_MEMPOOL_ATTR_MAX_POOL_SIZE = 13,
        CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED = 14,
        CU_MEMPOOL_ATTR_LOCALITY_DOMAIN_ID = 15,
    }
}

pub type CUmemPool_attribute = CUmemPool_attribute_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemPoolProps_st {
    pub allocType: CUmemAllocationType,
    pub handleTypes: CUmemAllocationHandleType,
    pub location: CUmemLocation,
    pub win32SecurityAttributes: *mut c_void,
    pub maxSize: usize,
    pub usage: c_ushort,
    pub gpuDirectRDMACapable: c_uchar,
    pub reserved: [c_uchar; 53],
}

pub type CUmemPoolProps_v1 = CUmemPoolProps_st;
pub type CUmemPoolProps = CUmemPoolProps_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemPoolPtrExportData_st {
    pub reserved: [c_uchar; 64],
}

pub type CUmemPoolPtrExportData_v1 = CUmemPoolPtrExportData_st;
pub type CUmemPoolPtrExportData = CUmemPoolPtrExportData_v1;
