//! Arrays, textures, surfaces and tensor maps: formats, descriptors, handles.
//!
//! Numbers and layouts are those of CUDA 13.5; names are the ones C programs write. No behaviour here.

use super::*;

opaque! {
    CUtexref_st,
    CUsurfref_st,
    CUmipmappedArray_st,
    CUarray_st,
}

pub type CUarray = *mut CUarray_st;
pub type CUmipmappedArray = *mut CUmipmappedArray_st;
pub type CUtexref = *mut CUtexref_st;
pub type CUsurfref = *mut CUsurfref_st;
pub type CUtexObject_v1 = c_ulonglong;
pub type CUtexObject = CUtexObject_v1;
pub type CUsurfObject_v1 = c_ulonglong;
pub type CUsurfObject = CUsurfObject_v1;

c_enum! {
    pub enum CUarray_format_enum: u32 {
        CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
        CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
        CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
        CU_AD_FORMAT_SIGNED_INT8 = 0x08,
        CU_AD_FORMAT_SIGNED_INT16 = 0x09,
        CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
        CU_AD_FORMAT_HALF = 0x10,
        CU_AD_FORMAT_FLOAT = 0x20,
        CU_AD_FORMAT_NV12 = 0xb0,
        CU_AD_FORMAT_UNORM_INT8X1 = 0xc0,
        CU_AD_FORMAT_UNORM_INT8X2 = 0xc1,
        CU_AD_FORMAT_UNORM_INT8X4 = 0xc2,
        CU_AD_FORMAT_UNORM_INT16X1 = 0xc3,
        CU_AD_FORMAT_UNORM_INT16X2 = 0xc4,
        CU_AD_FORMAT_UNORM_INT16X4 = 0xc5,
        CU_AD_FORMAT_SNORM_INT8X1 = 0xc6,
        CU_AD_FORMAT_SNORM_INT8X2 = 0xc7,
        CU_AD_FORMAT_SNORM_INT8X4 = 0xc8,
        CU_AD_FORMAT_SNORM_INT16X1 = 0xc9,
        CU_AD_FORMAT_SNORM_INT16X2 = 0xca,
        CU_AD_FORMAT_SNORM_INT16X4 = 0xcb,
        CU_AD_FORMAT_BC1_UNORM = 0x91,
        CU_AD_FORMAT_BC1_UNORM_SRGB = 0x92,
        CU_AD_FORMAT_BC2_UNORM = 0x93,
        CU_AD_FORMAT_BC2_UNORM_SRGB = 0x94,
        CU_AD_FORMAT_BC3_UNORM = 0x95,
        CU_AD_FORMAT_BC3_UNORM_SRGB = 0x96,
        CU_AD_FORMAT_BC4_UNORM = 0x97,
        CU_AD_FORMAT_BC4_SNORM = 0x98,
        CU_AD_FORMAT_BC5_UNORM = 0x99,
        CU_AD_FORMAT_BC5_SNORM = 0x9a,
        CU_AD_FORMAT_BC6H_UF16 = 0x9b,
        CU_AD_FORMAT_BC6H_SF16 = 0x9c,
        CU_AD_FORMAT_BC7_UNORM = 0x9d,
        CU_AD_FORMAT_BC7_UNORM_SRGB = 0x9e,
        CU_AD_FORMAT_P010 = 0x9f,
        CU_AD_FORMAT_P016 = 0xa1,
        CU_AD_FORMAT_NV16 = 0xa2,
        CU_AD_FORMAT_P210 = 0xa3,
        CU_AD_FORMAT_P216 = 0xa4,
        CU_AD_FORMAT_YUY2 = 0xa5,
        CU_AD_FORMAT_Y210 = 0xa6,
        CU_AD_FORMAT_Y216 = 0xa7,
        CU_AD_FORMAT_AYUV = 0xa8,
        CU_AD_FORMAT_Y410 = 0xa9,
        CU_AD_FORMAT_Y416 = 0xb1,
        CU_AD_FORMAT_Y444_PLANAR8 = 0xb2,
        CU_AD_FORMAT_Y444_PLANAR10 = 0xb3,
        CU_AD_FORMAT_YUV444_8bit_SemiPlanar = 0xb4,
        CU_AD_FORMAT_YUV444_16bit_SemiPlanar = 0xb5,
        CU_AD_FORMAT_UNORM_INT_101010_2 = 0x50,
        CU_AD_FORMAT_UINT8_PACKED_422 = 0x51,
        CU_AD_FORMAT_UINT8_PACKED_444 = 0x52,
        CU_AD_FORMAT_UINT8_SEMIPLANAR_420 = 0x53,
        CU_AD_FORMAT_UINT16_SEMIPLANAR_420 = 0x54,
        CU_AD_FORMAT_UINT8_SEMIPLANAR_422 = 0x55,
        CU_AD_FORMAT_UINT16_SEMIPLANAR_422 = 0x56,
        CU_AD_FORMAT_UINT8_SEMIPLANAR_444 = 0x57,
        CU_AD_FORMAT_UINT16_SEMIPLANAR_444 = 0x58,
        CU_AD_FORMAT_UINT8_PLANAR_420 = 0x59,
        CU_AD_FORMAT_UINT16_PLANAR_420 = 0x5a,
        CU_AD_FORMAT_UINT8_PLANAR_422 = 0x5b,
        CU_AD_FORMAT_UINT16_PLANAR_422 = 0x5c,
        CU_AD_FORMAT_UINT8_PLANAR_444 = 0x5d,
        CU_AD_FORMAT_UINT16_PLANAR_444 = 0x5e,
        CU_AD_FORMAT_MAX = 0x7fffffff,
    }
}

pub type CUarray_format = CUarray_format_enum;

c_enum! {
    pub enum CUaddress_mode_enum: u32 {
        CU_TR_ADDRESS_MODE_WRAP = 0,
        CU_TR_ADDRESS_MODE_CLAMP = 1,
        CU_TR_ADDRESS_MODE_MIRROR = 2,
        CU_TR_ADDRESS_MODE_BORDER = 3,
    }
}

pub type CUaddress_mode = CUaddress_mode_enum;

c_enum! {
    pub enum CUfilter_mode_enum: u32 {
        CU_TR_FILTER_MODE_POINT = 0,
        CU_TR_FILTER_MODE_LINEAR = 1,
    }
}

pub type CUfilter_mode = CUfilter_mode_enum;

c_enum! {
    pub enum CUarray_cubemap_face_enum: u32 {
        CU_CUBEMAP_FACE_POSITIVE_X = 0x00,
        CU_CUBEMAP_FACE_NEGATIVE_X = 0x01,
        CU_CUBEMAP_FACE_POSITIVE_Y = 0x02,
        CU_CUBEMAP_FACE_NEGATIVE_Y = 0x03,
        CU_CUBEMAP_FACE_POSITIVE_Z = 0x04,
        CU_CUBEMAP_FACE_NEGATIVE_Z = 0x05,
    }
}

pub type CUarray_cubemap_face = CUarray_cubemap_face_enum;

c_enum! {
    pub enum CUresourcetype_enum: u32 {
        CU_RESOURCE_TYPE_ARRAY = 0x00,
        CU_RESOURCE_TYPE_MIPMAPPED_ARRAY = 0x01,
        CU_RESOURCE_TYPE_LINEAR = 0x02,
        CU_RESOURCE_TYPE_PITCH2D = 0x03,
    }
}

pub type CUresourcetype = CUresourcetype_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_ARRAY_DESCRIPTOR_st {
    pub Width: usize,
    pub Height: usize,
    pub Format: CUarray_format,
    pub NumChannels: c_uint,
}

pub type CUDA_ARRAY_DESCRIPTOR_v2 = CUDA_ARRAY_DESCRIPTOR_st;
pub type CUDA_ARRAY_DESCRIPTOR = CUDA_ARRAY_DESCRIPTOR_v2;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_ARRAY3D_DESCRIPTOR_st {
    pub Width: usize,
    pub Height: usize,
    pub Depth: usize,
    pub Format: CUarray_format,
    pub NumChannels: c_uint,
    pub Flags: c_uint,
}

pub type CUDA_ARRAY3D_DESCRIPTOR_v2 = CUDA_ARRAY3D_DESCRIPTOR_st;
pub type CUDA_ARRAY3D_DESCRIPTOR = CUDA_ARRAY3D_DESCRIPTOR_v2;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_ARRAY_SPARSE_PROPERTIES_st_tileExtent {
    pub width: c_uint,
    pub height: c_uint,
    pub depth: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_ARRAY_SPARSE_PROPERTIES_st {
    pub tileExtent: CUDA_ARRAY_SPARSE_PROPERTIES_st_tileExtent,
    pub miptailFirstLevel: c_uint,
    pub miptailSize: c_ulonglong,
    pub flags: c_uint,
    pub reserved: [c_uint; 4],
}

pub type CUDA_ARRAY_SPARSE_PROPERTIES_v1 = CUDA_ARRAY_SPARSE_PROPERTIES_st;
pub type CUDA_ARRAY_SPARSE_PROPERTIES = CUDA_ARRAY_SPARSE_PROPERTIES_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_ARRAY_MEMORY_REQUIREMENTS_st {
    pub size: usize,
    pub alignment: usize,
    pub reserved: [c_uint; 4],
}

pub type CUDA_ARRAY_MEMORY_REQUIREMENTS_v1 = CUDA_ARRAY_MEMORY_REQUIREMENTS_st;
pub type CUDA_ARRAY_MEMORY_REQUIREMENTS = CUDA_ARRAY_MEMORY_REQUIREMENTS_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_RESOURCE_DESC_st_res_array {
    pub hArray: CUarray,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_RESOURCE_DESC_st_res_mipmap {
    pub hMipmappedArray: CUmipmappedArray,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_RESOURCE_DESC_st_res_linear {
    pub devPtr: CUdeviceptr,
    pub format: CUarray_format,
    pub numChannels: c_uint,
    pub sizeInBytes: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_RESOURCE_DESC_st_res_pitch2D {
    pub devPtr: CUdeviceptr,
    pub format: CUarray_format,
    pub numChannels: c_uint,
    pub width: usize,
    pub height: usize,
    pub pitchInBytes: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_RESOURCE_DESC_st_res_reserved {
    pub reserved: [c_int; 32],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUDA_RESOURCE_DESC_st_res {
    pub array: CUDA_RESOURCE_DESC_st_res_array,
    pub mipmap: CUDA_RESOURCE_DESC_st_res_mipmap,
    pub linear: CUDA_RESOURCE_DESC_st_res_linear,
    pub pitch2D: CUDA_RESOURCE_DESC_st_res_pitch2D,
    pub reserved: CUDA_RESOURCE_DESC_st_res_reserved,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_RESOURCE_DESC_st {
    pub resType: CUresourcetype,
    pub res: CUDA_RESOURCE_DESC_st_res,
    pub flags: c_uint,
}

pub type CUDA_RESOURCE_DESC_v1 = CUDA_RESOURCE_DESC_st;
pub type CUDA_RESOURCE_DESC = CUDA_RESOURCE_DESC_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_TEXTURE_DESC_st {
    pub addressMode: [CUaddress_mode; 3],
    pub filterMode: CUfilter_mode,
    pub flags: c_uint,
    pub maxAnisotropy: c_uint,
    pub mipmapFilterMode: CUfilter_mode,
    pub mipmapLevelBias: f32,
    pub minMipmapLevelClamp: f32,
    pub maxMipmapLevelClamp: f32,
    pub borderColor: [f32; 4],
    pub reserved: [c_int; 12],
}

pub type CUDA_TEXTURE_DESC_v1 = CUDA_TEXTURE_DESC_st;
pub type CUDA_TEXTURE_DESC = CUDA_TEXTURE_DESC_v1;

c_enum! {
    pub enum CUresourceViewFormat_enum: u32 {
        CU_RES_VIEW_FORMAT_NONE = 0x00,
        CU_RES_VIEW_FORMAT_UINT_1X8 = 0x01,
        CU_RES_VIEW_FORMAT_UINT_2X8 = 0x02,
        CU_RES_VIEW_FORMAT_UINT_4X8 = 0x03,
        CU_RES_VIEW_FORMAT_SINT_1X8 = 0x04,
        CU_RES_VIEW_FORMAT_SINT_2X8 = 0x05,
        CU_RES_VIEW_FORMAT_SINT_4X8 = 0x06,
        CU_RES_VIEW_FORMAT_UINT_1X16 = 0x07,
        CU_RES_VIEW_FORMAT_UINT_2X16 = 0x08,
        CU_RES_VIEW_FORMAT_UINT_4X16 = 0x09,
        CU_RES_VIEW_FORMAT_SINT_1X16 = 0x0a,
        CU_RES_VIEW_FORMAT_SINT_2X16 = 0x0b,
        CU_RES_VIEW_FORMAT_SINT_4X16 = 0x0c,
        CU_RES_VIEW_FORMAT_UINT_1X32 = 0x0d,
        CU_RES_VIEW_FORMAT_UINT_2X32 = 0x0e,
        CU_RES_VIEW_FORMAT_UINT_4X32 = 0x0f,
        CU_RES_VIEW_FORMAT_SINT_1X32 = 0x10,
        CU_RES_VIEW_FORMAT_SINT_2X32 = 0x11,
        CU_RES_VIEW_FORMAT_SINT_4X32 = 0x12,
        CU_RES_VIEW_FORMAT_FLOAT_1X16 = 0x13,
        CU_RES_VIEW_FORMAT_FLOAT_2X16 = 0x14,
        CU_RES_VIEW_FORMAT_FLOAT_4X16 = 0x15,
        CU_RES_VIEW_FORMAT_FLOAT_1X32 = 0x16,
        CU_RES_VIEW_FORMAT_FLOAT_2X32 = 0x17,
        CU_RES_VIEW_FORMAT_FLOAT_4X32 = 0x18,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC1 = 0x19,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC2 = 0x1a,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC3 = 0x1b,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC4 = 0x1c,
        CU_RES_VIEW_FORMAT_SIGNED_BC4 = 0x1d,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC5 = 0x1e,
        CU_RES_VIEW_FORMAT_SIGNED_BC5 = 0x1f,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC6H = 0x20,
        CU_RES_VIEW_FORMAT_SIGNED_BC6H = 0x21,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC7 = 0x22,
    }
}

pub type CUresourceViewFormat = CUresourceViewFormat_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_RESOURCE_VIEW_DESC_st {
    pub format: CUresourceViewFormat,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub firstMipmapLevel: c_uint,
    pub lastMipmapLevel: c_uint,
    pub firstLayer: c_uint,
    pub lastLayer: c_uint,
    pub reserved: [c_uint; 16],
}

pub type CUDA_RESOURCE_VIEW_DESC_v1 = CUDA_RESOURCE_VIEW_DESC_st;
pub type CUDA_RESOURCE_VIEW_DESC = CUDA_RESOURCE_VIEW_DESC_v1;

#[repr(C, align(128))]
#[derive(Clone, Copy)]
pub struct CUtensorMap_st {
    pub opaque: [cuuint64_t; 16],
}

pub type CUtensorMap = CUtensorMap_st;

c_enum! {
    pub enum CUtensorMapDataType_enum: u32 {
        CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
        CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
        CU_TENSOR_MAP_DATA_TYPE_UINT32 = 2,
        CU_TENSOR_MAP_DATA_TYPE_INT32 = 3,
        CU_TENSOR_MAP_DATA_TYPE_UINT64 = 4,
        CU_TENSOR_MAP_DATA_TYPE_INT64 = 5,
        CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6,
        CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7,
        CU_TENSOR_MAP_DATA_TYPE_FLOAT64 = 8,
        CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9,
        CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ = 10,
        CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 = 11,
        CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ = 12,
        CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B = 13,
        CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B = 14,
        CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B = 15,
    }
}

pub type CUtensorMapDataType = CUtensorMapDataType_enum;

c_enum! {
    pub enum CUtensorMapInterleave_enum: u32 {
        CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
        CU_TENSOR_MAP_INTERLEAVE_16B = 1,
        CU_TENSOR_MAP_INTERLEAVE_32B = 2,
    }
}

pub type CUtensorMapInterleave = CUtensorMapInterleave_enum;

c_enum! {
    pub enum CUtensorMapSwizzle_enum: u32 {
        CU_TENSOR_MAP_SWIZZLE_NONE = 0,
        CU_TENSOR_MAP_SWIZZLE_32B = 1,
        CU_TENSOR_MAP_SWIZZLE_64B = 2,
        CU_TENSOR_MAP_SWIZZLE_128B = 3,
        CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B = 4,
        CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B = 5,
        CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B = 6,
    }
}

pub type CUtensorMapSwizzle = CUtensorMapSwizzle_enum;

c_enum! {
    pub enum CUtensorMapL2promotion_enum: u32 {
        CU_TENSOR_MAP_L2_PROMOTION_NONE = 0,
        CU_TENSOR_MAP_L2_PROMOTION_L2_64B = 1,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3,
    }
}

pub type CUtensorMapL2promotion = CUtensorMapL2promotion_enum;

c_enum! {
    pub enum CUtensorMapFloatOOBfill_enum: u32 {
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA = 1,
    }
}

pub type CUtensorMapFloatOOBfill = CUtensorMapFloatOOBfill_enum;

c_enum! {
    pub enum CUtensorMapIm2ColWideMode_enum: u32 {
        CU_TENSOR_MAP_IM2COL_WIDE_MODE_W = 0,
        CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 = 1,
    }
}

pub type CUtensorMapIm2ColWideMode = CUtensorMapIm2ColWideMode_enum;

c_enum! {
    pub enum CUtensorMapAllocClass_enum: u32 {
        CU_TENSOR_MAP_ALLOC_CLASS_AUTO = 0,
        CU_TENSOR_MAP_ALLOC_CLASS_SMALL = 1,
        CU_TENSOR_MAP_ALLOC_CLASS_LARGE = 2,
    }
}

pub type CUtensorMapAllocClass = CUtensorMapAllocClass_enum;

c_enum! {
    pub enum CUarraySparseSubresourceType_enum: u32 {
        CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL = 0,
        CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL = 1,
    }
}

pub type CUarraySparseSubresourceType = CUarraySparseSubresourceType_enum;

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUarrayMapInfo_st_resource {
    pub mipmap: CUmipmappedArray,
    pub array: CUarray,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUarrayMapInfo_st_subresource_sparseLevel {
    pub level: c_uint,
    pub layer: c_uint,
    pub offsetX: c_uint,
    pub offsetY: c_uint,
    pub offsetZ: c_uint,
    pub extentWidth: c_uint,
    pub extentHeight: c_uint,
    pub extentDepth: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUarrayMapInfo_st_subresource_miptail {
    pub layer: c_uint,
    pub offset: c_ulonglong,
    pub size: c_ulonglong,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUarrayMapInfo_st_subresource {
    pub sparseLevel: CUarrayMapInfo_st_subresource_sparseLevel,
    pub miptail: CUarrayMapInfo_st_subresource_miptail,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union CUarrayMapInfo_st_memHandle {
    pub memHandle: CUmemGenericAllocationHandle,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUarrayMapInfo_st {
    pub resourceType: CUresourcetype,
    pub resource: CUarrayMapInfo_st_resource,
    pub subresourceType: CUarraySparseSubresourceType,
    pub subresource: CUarrayMapInfo_st_subresource,
    pub memOperationType: CUmemOperationType,
    pub memHandleType: CUmemHandleType,
    pub memHandle: CUarrayMapInfo_st_memHandle,
    pub offset: c_ulonglong,
    pub deviceBitMask: c_uint,
    pub flags: c_uint,
    pub reserved: [c_uint; 2],
}

pub type CUarrayMapInfo_v1 = CUarrayMapInfo_st;
pub type CUarrayMapInfo = CUarrayMapInfo_v1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_ARRAY_DESCRIPTOR_v1_st {
    pub Width: c_uint,
    pub Height: c_uint,
    pub Format: CUarray_format,
    pub NumChannels: c_uint,
}

pub type CUDA_ARRAY_DESCRIPTOR_v1 = CUDA_ARRAY_DESCRIPTOR_v1_st;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_ARRAY3D_DESCRIPTOR_v1_st {
    pub Width: c_uint,
    pub Height: c_uint,
    pub Depth: c_uint,
    pub Format: CUarray_format,
    pub NumChannels: c_uint,
    pub Flags: c_uint,
}

pub type CUDA_ARRAY3D_DESCRIPTOR_v1 = CUDA_ARRAY3D_DESCRIPTOR_v1_st;
