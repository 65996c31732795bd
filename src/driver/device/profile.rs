//! Device profiles: what a device of a compute capability reports. Data, and nothing else.
//!
//! Limits of a capability are those of the CUDA programming guide, table "Technical Specifications per Compute
//! Capability"; where a real product decides (clocks, caches, how many multiprocessors), the numbers are our own and
//! modest.

use crate::config;

/// `CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK`: all three.
pub(in crate::driver) const COMPRESSIONS: u32 = 7;
/// `CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH`, in bytes.
pub(in crate::driver) const LONGEST_COMPRESSED: u64 = 1 << 30;

/// What differs from one compute capability to the next.
#[derive(Debug)]
pub(in crate::driver) struct Profile {
    pub name: &'static str,
    pub capability: (u32, u32),
    pub threads_per_multiprocessor: u32,
    pub blocks_per_multiprocessor: u32,
    pub shared_per_multiprocessor: u32,
    /// A block's limit when the function asked for it.
    pub shared_per_block_optin: u32,
    pub shared_reserved_per_block: u32,
    /// What of a multiprocessor's memory can be set aside for shared memory, in KiB (CUDA programming guide, "Shared
    /// Memory" of each capability).
    pub carveouts: &'static [u32],
    pub double_ratio: u32,
    /// Thread block clusters, tensor maps (compute capability 9.0).
    pub clusters: bool,
    pub memory: u64,
}

pub(in crate::driver) const SHARED_PER_BLOCK: u32 = 48 << 10;
pub(in crate::driver) const REGISTERS: u32 = 65536;
pub(in crate::driver) const MAX_THREADS_PER_BLOCK: u32 = 1024;
pub(in crate::driver) const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
pub(in crate::driver) const MAX_GRID: [u32; 3] = [0x7FFF_FFFF, 65535, 65535];
pub(in crate::driver) const WARP: u32 = 32;
/// Whatever the machine has: programs that size their grids by it compute the same everywhere.
pub(in crate::driver) fn multiprocessors() -> u32 {
    config::get().multiprocessors
}
/// Portable maximum of blocks in a cluster, and what a function may opt in to.
pub(in crate::driver) const CLUSTER_PORTABLE: u32 = 8;
pub(in crate::driver) const CLUSTER_OPTIN: u32 = 16;

const GIB: u64 = 1 << 30;

#[rustfmt::skip]
pub(in crate::driver) const PROFILES: &[Profile] = &[
    Profile { name: "sm_75", capability: (7, 5), threads_per_multiprocessor: 1024, blocks_per_multiprocessor: 16,
        shared_per_multiprocessor: 65536, shared_per_block_optin: 65536, shared_reserved_per_block: 0,
        carveouts: &[32, 64],
        double_ratio: 32, clusters: false, memory: 16 * GIB },
    Profile { name: "sm_80", capability: (8, 0), threads_per_multiprocessor: 2048, blocks_per_multiprocessor: 32,
        shared_per_multiprocessor: 167936, shared_per_block_optin: 166912, shared_reserved_per_block: 1024,
        carveouts: &[0, 8, 16, 32, 64, 100, 132, 164],
        double_ratio: 2, clusters: false, memory: 16 * GIB },
    Profile { name: "sm_86", capability: (8, 6), threads_per_multiprocessor: 1536, blocks_per_multiprocessor: 16,
        shared_per_multiprocessor: 102400, shared_per_block_optin: 101376, shared_reserved_per_block: 1024,
        carveouts: &[0, 8, 16, 32, 64, 100],
        double_ratio: 64, clusters: false, memory: 16 * GIB },
    Profile { name: "sm_89", capability: (8, 9), threads_per_multiprocessor: 1536, blocks_per_multiprocessor: 24,
        shared_per_multiprocessor: 102400, shared_per_block_optin: 101376, shared_reserved_per_block: 1024,
        carveouts: &[0, 8, 16, 32, 64, 100],
        double_ratio: 64, clusters: false, memory: 16 * GIB },
    Profile { name: "sm_90", capability: (9, 0), threads_per_multiprocessor: 2048, blocks_per_multiprocessor: 32,
        shared_per_multiprocessor: 233472, shared_per_block_optin: 232448, shared_reserved_per_block: 1024,
        carveouts: &[0, 8, 16, 32, 64, 100, 132, 164, 196, 228],
        double_ratio: 2, clusters: true, memory: 16 * GIB },
    Profile { name: "sm_100", capability: (10, 0), threads_per_multiprocessor: 2048, blocks_per_multiprocessor: 32,
        shared_per_multiprocessor: 233472, shared_per_block_optin: 232448, shared_reserved_per_block: 1024,
        carveouts: &[0, 8, 16, 32, 64, 100, 132, 164, 196, 228],
        double_ratio: 2, clusters: true, memory: 16 * GIB },
    Profile { name: "sm_120", capability: (12, 0), threads_per_multiprocessor: 1536, blocks_per_multiprocessor: 24,
        shared_per_multiprocessor: 102400, shared_per_block_optin: 101376, shared_reserved_per_block: 1024,
        carveouts: &[0, 8, 16, 32, 64, 100],
        double_ratio: 64, clusters: true, memory: 16 * GIB },
];

pub(in crate::driver) fn by_name(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

/// The one that is reported when nothing else is asked for.
pub(in crate::driver) fn default() -> &'static Profile {
    &PROFILES[PROFILES.len() - 1]
}

impl Profile {
    /// A `CUdevice_attribute` that does not depend on which of several devices it is; 0 for what is absent, unsupported or
    /// unknown. The names are those of the manual, without `CU_DEVICE_ATTRIBUTE_`.
    pub fn attribute(&self, number: i32) -> i32 {
        let clusters = i32::from(self.clusters);
        let value: u32 = match number {
            1 => MAX_THREADS_PER_BLOCK,
            2 => MAX_BLOCK[0],
            3 => MAX_BLOCK[1],
            4 => MAX_BLOCK[2],
            5 => MAX_GRID[0],
            6 => MAX_GRID[1],
            7 => MAX_GRID[2],
            // MAX_SHARED_MEMORY_PER_BLOCK, TOTAL_CONSTANT_MEMORY, WARP_SIZE, MAX_PITCH, MAX_REGISTERS_PER_BLOCK
            8 => SHARED_PER_BLOCK,
            9 => 65536,
            10 => WARP,
            11 => 0x7FFF_FFFF,
            12 => REGISTERS,
            // CLOCK_RATE in kHz, TEXTURE_ALIGNMENT, GPU_OVERLAP, MULTIPROCESSOR_COUNT
            13 => 1_500_000,
            14 => 512,
            15 => 1,
            16 => multiprocessors(),
            // CAN_MAP_HOST_MEMORY
            19 => 1,
            // textures: 1D, 2D, 3D, 2D layered
            21 => 131_072,
            22 => 131_072,
            23 => 65536,
            24..=26 => 16384,
            27 | 28 => 32768,
            29 => 2048,
            // SURFACE_ALIGNMENT, CONCURRENT_KERNELS
            30 => 512,
            31 => 1,
            // MEMORY_CLOCK_RATE in kHz, GLOBAL_MEMORY_BUS_WIDTH in bits, L2_CACHE_SIZE
            36 => 5_000_000,
            37 => 256,
            38 => 32 << 20,
            39 => self.threads_per_multiprocessor,
            // ASYNC_ENGINE_COUNT, UNIFIED_ADDRESSING
            40 => 2,
            41 => 1,
            42 => 32768,
            43 => 2048,
            44 => 1,
            45 | 46 => 32768,
            47 | 48 => 8192,
            49 => 32768,
            51 => 32,
            52 | 53 => 32768,
            54 => 2046,
            55 | 56 => 32768 * 4,
            57 => 65536,
            58..=60 => 16384,
            61 => 32768,
            62 => 2048,
            63 | 64 => 32768,
            65 => 2048,
            66 | 67 => 32768,
            68 => 2046,
            69 => 1 << 28,
            70 => 131_072,
            71 => 65000,
            72 => 2_097_120,
            73 | 74 => 32768,
            75 => self.capability.0,
            76 => self.capability.1,
            77 => 32768,
            // STREAM_PRIORITIES, GLOBAL_L1, LOCAL_L1
            78..=80 => 1,
            81 => self.shared_per_multiprocessor,
            82 => REGISTERS,
            // MANAGED_MEMORY
            83 => 1,
            // HOST_NATIVE_ATOMIC_SUPPORTED: host and device are one machine
            86 => 1,
            87 => self.double_ratio,
            // CONCURRENT_MANAGED_ACCESS, COMPUTE_PREEMPTION, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
            89..=91 => 1,
            // COOPERATIVE_LAUNCH
            95 => 1,
            97 => self.shared_per_block_optin,
            // HOST_REGISTER_SUPPORTED, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST
            99 => 1,
            101 => 1,
            // VIRTUAL_MEMORY_MANAGEMENT, HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
            102 | 103 => 1,
            106 => self.blocks_per_multiprocessor,
            111 => self.shared_reserved_per_block,
            // READ_ONLY_HOST_REGISTER, MEMORY_POOLS
            113 => 1,
            115 => 1,
            // MEMPOOL_SUPPORTED_HANDLE_TYPES: POSIX_FILE_DESCRIPTOR
            119 => 1,
            120 => return clusters,
            // 64_BIT_STREAM_MEM_OPS, STREAM_WAIT_VALUE_NOR
            122 | 123 => 1,
            // IPC_EVENT_SUPPORTED, MEM_SYNC_DOMAIN_COUNT
            125 | 126 => 1,
            127 => return clusters,
            // NUMA_ID and HOST_NUMA_ID: none
            131 | 134 => return -1,
            // MULTICAST_SUPPORTED
            132 => 1,
            // MEM_DECOMPRESS_ALGORITHM_MASK, MEM_DECOMPRESS_MAXIMUM_LENGTH
            136 => COMPRESSIONS,
            137 => LONGEST_COMPRESSED as u32,
            // HOST_MEMORY_POOLS_SUPPORTED, LOCALITY_DOMAIN_COUNT, LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT
            144 | 149 => 1,
            // LOGICAL_ENDPOINT_UNICAST, _MULTICAST, _COUNTED_OPS, _UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED
            153..=156 => 1,
            157 => multiprocessors(),
            // TENSOR_MAP_LARGE_TENSOR_MIN_SIZE: the class of an allocation has no effect
            160 => i32::MAX as u32,
            _ => 0,
        };
        value as i32
    }
}
