//! Occupancy. The expectations are computed here by hand, by the rules of the CUDA programming guide; the program
//! `clients/cuda/occupancy.cu` compares with NVIDIA's calculator on many more shapes and all profiles.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::null_mut;

use crate::alone::alone;
use crate::c::*;
use crate::code::*;
use crate::launch::LaunchConfig;
use crate::test_name;

functions! {
    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: CUfunction, threads: c_int, shared: usize);
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int,
        function: CUfunction,
        threads: c_int,
        shared: usize,
        flags: c_uint,
    );
    cuOccupancyMaxPotentialBlockSize(
        grid: *mut c_int,
        block: *mut c_int,
        function: CUfunction,
        shared_of: Option<extern "C" fn(c_int) -> usize>,
        shared: usize,
        limit: c_int,
    );
    cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: *mut c_int,
        block: *mut c_int,
        function: CUfunction,
        shared_of: Option<extern "C" fn(c_int) -> usize>,
        shared: usize,
        limit: c_int,
        flags: c_uint,
    );
    cuOccupancyAvailableDynamicSMemPerBlock(bytes: *mut usize, function: CUfunction, blocks: c_int, threads: c_int);
    cuOccupancyMaxPotentialClusterSize(size: *mut c_int, function: CUfunction, config: *const LaunchConfig);
    cuOccupancyMaxActiveClusters(count: *mut c_int, function: CUfunction, config: *const LaunchConfig);
}

const INVALID_CLUSTER_SIZE: CUresult = 912;
const NOT_SUPPORTED: CUresult = 801;

extern "C" fn forty_a_thread(threads: c_int) -> usize {
    40 * threads as usize
}

fn plain() -> CUfunction {
    function(module(".visible .entry k() { ret; }"), "k")
}

#[test]
fn blocks_of_a_multiprocessor_are_limited_by_warps_blocks_and_shared_memory() {
    // Compute capability 8.0: 2048 threads, 32 blocks, 164 KiB of shared memory, of which each block takes one more KiB.
    alone(test_name!(), &[("MARGAY_DEVICE", "sm_80")], || {
        context();
        let function = plain();
        let blocks = |threads, shared| {
            let mut blocks = -1;
            ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                function,
                threads,
                shared,
            ));
            let mut same = -1;
            for flags in [0, 1] {
                ok(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                    &mut same, function, threads, shared, flags,
                ));
                assert_eq!(same, blocks);
            }
            blocks
        };
        assert_eq!(
            [32, 64, 96, 256, 1000, 1024].map(|threads| blocks(threads, 0)),
            [32, 32, 21, 8, 2, 2]
        );
        // (164 KiB) / (s + 1 KiB, in steps of 128 bytes)
        assert_eq!([1024, 40_000, 49_152].map(|shared| blocks(32, shared)), [32, 4, 3]);
        assert_eq!([1025, 2048].map(|threads| blocks(threads, 0)), [0, 0]);
        assert_eq!(blocks(32, 49_153), 0);

        let (mut value, mut same) = (0, 0);
        for threads in [0, -1] {
            let result = cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut value, function, threads, 0);
            assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
        }
        let flags = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&mut same, function, 32, 0, 2);
        assert_eq!(flags, CUDA_ERROR_INVALID_VALUE);
        let nowhere = cuOccupancyMaxActiveBlocksPerMultiprocessor(null_mut(), function, 32, 0);
        assert_eq!(nowhere, CUDA_ERROR_INVALID_VALUE);
        let stray = cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut value, null_mut(), 32, 0);
        assert_eq!(stray, CUDA_ERROR_INVALID_HANDLE);

        let available = |blocks, threads| {
            let mut bytes = 0;
            let result = cuOccupancyAvailableDynamicSMemPerBlock(&mut bytes, function, blocks, threads);
            (result, bytes)
        };
        // 48 KiB at most, and the 164th part of it all, in steps of 128 bytes, without the driver's KiB.
        assert_eq!(available(1, 128), (0, 49_152));
        assert_eq!(available(4, 128), (0, 164 * 1024 / 4 - 1024));
        assert_eq!(available(16, 128), (0, 164 * 1024 / 16 - 1024));
        for (blocks, threads) in [(0, 128), (17, 128), (1, 0), (-1, 128), (1, 1025)] {
            assert_eq!(available(blocks, threads).0, CUDA_ERROR_INVALID_VALUE);
        }
        assert_eq!(
            cuOccupancyAvailableDynamicSMemPerBlock(null_mut(), function, 1, 32),
            CUDA_ERROR_INVALID_VALUE
        );

        // The largest block of those with the most threads.
        let potential = |shared_of, shared, limit| {
            let (mut grid, mut block) = (0, 0);
            ok(cuOccupancyMaxPotentialBlockSize(
                &mut grid, &mut block, function, shared_of, shared, limit,
            ));
            (grid, block)
        };
        let mut multiprocessors = 0;
        ok(cuDeviceGetAttribute(&mut multiprocessors, 16, 0));
        assert_eq!(potential(None, 0, 0), (2 * multiprocessors, 1024));
        assert_eq!(potential(None, 0, 512), (4 * multiprocessors, 512));
        // 32 blocks of 64 are 2048 threads, 20 of 100 are less.
        assert_eq!(potential(None, 0, 100), (32 * multiprocessors, 64));
        // 40 bytes a thread: 1024 threads have 41 KiB with the driver's, of which 164 KiB hold 4; two are enough.
        assert_eq!(potential(Some(forty_a_thread), 0, 0), (2 * multiprocessors, 1024));
        assert_eq!(potential(None, 41 * 1024, 0), (2 * multiprocessors, 1024));
        let (mut grid, mut block) = (0, 0);
        let negative = cuOccupancyMaxPotentialBlockSize(&mut grid, &mut block, function, None, 0, -1);
        assert_eq!(negative, CUDA_ERROR_INVALID_VALUE);
        let flags = cuOccupancyMaxPotentialBlockSizeWithFlags(&mut grid, &mut block, function, None, 0, 0, 4);
        assert_eq!(flags, CUDA_ERROR_INVALID_VALUE);
        ok(cuOccupancyMaxPotentialBlockSizeWithFlags(
            &mut grid, &mut block, function, None, 0, 0, 1,
        ));
        assert_eq!((grid, block), (2 * multiprocessors, 1024));
        let nowhere = cuOccupancyMaxPotentialBlockSize(null_mut(), &mut block, function, None, 0, 0);
        assert_eq!(nowhere, CUDA_ERROR_INVALID_VALUE);

        // No clusters before 9.0.
        let config = config([1; 3]);
        let mut count = 0;
        assert_eq!(
            cuOccupancyMaxActiveClusters(&mut count, function, &config),
            NOT_SUPPORTED
        );
        assert_eq!(
            cuOccupancyMaxPotentialClusterSize(&mut count, function, &config),
            NOT_SUPPORTED
        );
    });
}

fn config(block: [c_uint; 3]) -> LaunchConfig {
    LaunchConfig::plain([64, 1, 1], block)
}

#[test]
fn clusters_are_counted_on_the_whole_device() {
    alone(test_name!(), &[("MARGAY_DEVICE", "sm_90")], || {
        context();
        let code = CString::new(
            ".version 8.0 .target sm_90 .address_size 64
             .visible .entry free() { ret; }
             .visible .entry fixed() .explicitcluster .reqnctapercluster 4, 1, 1 { ret; }",
        )
        .unwrap();
        let (mut module, mut multiprocessors) = (null_mut(), 0);
        ok(cuModuleLoadData(&mut module, code.as_ptr().cast()));
        ok(cuDeviceGetAttribute(&mut multiprocessors, 16, 0));
        let (free, fixed) = (function(module, "free"), function(module, "fixed"));
        let potential = |function| {
            let mut size = 0;
            ok(cuOccupancyMaxPotentialClusterSize(
                &mut size,
                function,
                &config([128, 1, 1]),
            ));
            size
        };
        assert_eq!((potential(free), potential(fixed)), (8, 4));
        ok(cuFuncSetAttribute(free, 14, 1));
        assert_eq!(potential(free), 16);
        // 2048 threads of a multiprocessor are 16 blocks of 128.
        let mut count = 0;
        ok(cuOccupancyMaxActiveClusters(&mut count, fixed, &config([128, 1, 1])));
        assert_eq!(count, 16 * multiprocessors / 4);
        let mut attributes = LaunchConfig::cluster([2, 1, 1]);
        let with = LaunchConfig::with([64, 1, 1], [128, 1, 1], &mut attributes);
        ok(cuOccupancyMaxActiveClusters(&mut count, free, &with));
        assert_eq!(count, 16 * multiprocessors / 2);
        // The size must be told, and be that of the function if it has one.
        assert_eq!(
            cuOccupancyMaxActiveClusters(&mut count, free, &config([128, 1, 1])),
            INVALID_CLUSTER_SIZE
        );
        assert_eq!(
            cuOccupancyMaxActiveClusters(&mut count, fixed, &with),
            INVALID_CLUSTER_SIZE
        );
        let mut attributes = LaunchConfig::cluster([32, 1, 1]);
        let with = LaunchConfig::with([64, 1, 1], [128, 1, 1], &mut attributes);
        assert_eq!(
            cuOccupancyMaxActiveClusters(&mut count, free, &with),
            INVALID_CLUSTER_SIZE
        );
        assert_eq!(
            cuOccupancyMaxActiveClusters(null_mut(), free, &with),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(
            cuOccupancyMaxActiveClusters(&mut count, free, std::ptr::null()),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(
            cuOccupancyMaxPotentialClusterSize(null_mut(), free, &with),
            CUDA_ERROR_INVALID_VALUE
        );
        let stray = null_mut::<c_void>();
        assert_eq!(
            cuOccupancyMaxPotentialClusterSize(&mut count, stray, &with),
            CUDA_ERROR_INVALID_HANDLE
        );
    });
}
