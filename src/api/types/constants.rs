//! Constants that are preprocessor macros in C. The few of pointer type (`CU_STREAM_LEGACY`, `CU_LAUNCH_PARAM_END`) are
//! written by hand in `header/prologue.h`; their numbers are here.

use super::*;

/// The CUDA version this interface describes: 1000 · major + 10 · minor.
pub const CUDA_VERSION: c_int = 13050;

pub const CUDA_ARRAY3D_2DARRAY: c_uint = 0x01;
pub const CUDA_ARRAY3D_COLOR_ATTACHMENT: c_uint = 0x20;
pub const CUDA_ARRAY3D_CUBEMAP: c_uint = 0x04;
pub const CUDA_ARRAY3D_DEFERRED_MAPPING: c_uint = 0x80;
pub const CUDA_ARRAY3D_DEPTH_TEXTURE: c_uint = 0x10;
pub const CUDA_ARRAY3D_LAYERED: c_uint = 0x01;
pub const CUDA_ARRAY3D_SPARSE: c_uint = 0x40;
pub const CUDA_ARRAY3D_SURFACE_LDST: c_uint = 0x02;
pub const CUDA_ARRAY3D_TEXTURE_GATHER: c_uint = 0x08;
pub const CUDA_ARRAY3D_VIDEO_ENCODE_DECODE: c_uint = 0x100;
pub const CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC: c_uint = 0x02;
pub const CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC: c_uint = 0x01;
pub const CUDA_EXTERNAL_MEMORY_DEDICATED: c_uint = 0x1;
pub const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_SKIP_NVSCIBUF_MEMSYNC: c_uint = 0x01;
pub const CUDA_EXTERNAL_SEMAPHORE_WAIT_SKIP_NVSCIBUF_MEMSYNC: c_uint = 0x02;
pub const CUDA_NVSCISYNC_ATTR_SIGNAL: c_uint = 0x1;
pub const CUDA_NVSCISYNC_ATTR_WAIT: c_uint = 0x2;
pub const CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL: c_uint = 0x1;
pub const CU_COMPUTE_ACCELERATED_TARGET_BASE: c_uint = 0x10000;
pub const CU_COMPUTE_FAMILY_TARGET_BASE: c_uint = 0x20000;
pub const CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID_ANY: c_uint = !0;
pub const CU_GRAPH_COND_ASSIGN_DEFAULT: c_uint = 0x1;
pub const CU_GRAPH_KERNEL_NODE_PORT_DEFAULT: c_uint = 0;
pub const CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER: c_uint = 2;
pub const CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC: c_uint = 1;
pub const CU_IPC_HANDLE_SIZE: c_uint = 64;
pub const CU_LAUNCH_KERNEL_REQUIRED_BLOCK_DIM: c_uint = 1;
pub const CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT: c_uint = 0x01;
pub const CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT: c_uint = 0x02;
pub const CU_LAUNCH_PARAM_END_AS_INT: c_uint = 0x00;
pub const CU_MEMHOSTALLOC_DEVICEMAP: c_uint = 0x02;
pub const CU_MEMHOSTALLOC_PORTABLE: c_uint = 0x01;
pub const CU_MEMHOSTALLOC_WRITECOMBINED: c_uint = 0x04;
pub const CU_MEMHOSTREGISTER_DEVICEMAP: c_uint = 0x02;
pub const CU_MEMHOSTREGISTER_IOMEMORY: c_uint = 0x04;
pub const CU_MEMHOSTREGISTER_PORTABLE: c_uint = 0x01;
pub const CU_MEMHOSTREGISTER_READ_ONLY: c_uint = 0x08;
pub const CU_MEM_CREATE_USAGE_GPU_DIRECT_RDMA_OVER_PCIE: c_uint = 0x4;
pub const CU_MEM_CREATE_USAGE_HW_DECOMPRESS: c_uint = 0x2;
pub const CU_MEM_CREATE_USAGE_TILE_POOL: c_uint = 0x1;
pub const CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS: c_uint = 0x2;
pub const CU_PARAM_TR_DEFAULT: c_int = -1;
pub const CU_TENSOR_MAP_NUM_QWORDS: c_uint = 16;
pub const CU_TRSA_OVERRIDE_FORMAT: c_uint = 0x01;
pub const CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION: c_uint = 0x20;
pub const CU_TRSF_NORMALIZED_COORDINATES: c_uint = 0x02;
pub const CU_TRSF_READ_AS_INTEGER: c_uint = 0x01;
pub const CU_TRSF_SEAMLESS_CUBEMAP: c_uint = 0x40;
pub const CU_TRSF_SRGB: c_uint = 0x10;
