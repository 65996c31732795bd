//! Execution control and occupancy.

use super::*;

const COUNT: u32 = 100;

/// Checks that `fill` has run with this value, and clears its traces.
fn filled(buffer: CUdeviceptr, value: u32) {
    ok!(cuCtxSynchronize());
    let expected: Vec<u32> = (0..COUNT).map(|index| value + index).collect();
    assert_eq!(read_u32(buffer, COUNT as usize), expected);
    ok!(cuMemsetD32_v2(buffer, 0, COUNT as usize));
}

#[test]
#[allow(
    unused_assignments,
    reason = "values are read through the pointers of the parameters"
)]
fn arguments_in_every_form() {
    let _own = Own::new();
    let fill = function(module(), c"fill");
    let mut buffer = allocate(COUNT as usize * 4);
    let (mut value, mut count) = (1000u32, COUNT);
    let mut parameters: [*mut c_void; 3] = [
        (&raw mut buffer).cast(),
        (&raw mut value).cast(),
        (&raw mut count).cast(),
    ];
    let pointers = parameters.as_mut_ptr();
    ok!(cuLaunchKernel(
        fill,
        4,
        1,
        1,
        32,
        1,
        1,
        0,
        null_mut(),
        pointers,
        null_mut()
    ));
    filled(buffer, 1000);
    value = 2000;
    ok!(cuLaunchKernel_ptsz(
        fill,
        4,
        1,
        1,
        32,
        1,
        1,
        0,
        null_mut(),
        pointers,
        null_mut()
    ));
    filled(buffer, 2000);
    value = 3000;
    ok!(cuLaunchCooperativeKernel(
        fill,
        4,
        1,
        1,
        32,
        1,
        1,
        0,
        null_mut(),
        pointers
    ));
    filled(buffer, 3000);

    let mut packed = [0u8; 16];
    packed[..8].copy_from_slice(&buffer.to_le_bytes());
    packed[8..12].copy_from_slice(&4000u32.to_le_bytes());
    packed[12..].copy_from_slice(&COUNT.to_le_bytes());
    let mut size = packed.len();
    let name = std::ptr::without_provenance_mut::<c_void>;
    let mut extra = [
        name(1),
        packed.as_mut_ptr().cast(),
        name(2),
        (&raw mut size).cast(),
        null_mut(),
    ];
    ok!(cuLaunchKernel(
        fill,
        4,
        1,
        1,
        32,
        1,
        1,
        0,
        null_mut(),
        null_mut(),
        extra.as_mut_ptr()
    ));
    filled(buffer, 4000);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLaunchKernel(fill, 4, 1, 1, 32, 1, 1, 0, null_mut(), pointers, extra.as_mut_ptr())
    );
    extra[2] = name(3);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLaunchKernel(fill, 4, 1, 1, 32, 1, 1, 0, null_mut(), null_mut(), extra.as_mut_ptr())
    );

    // The old way.
    ok!(cuFuncSetBlockShape(fill, 32, 1, 1));
    ok!(cuParamSetSize(fill, 16));
    ok!(cuParamSetv(fill, 0, (&raw mut buffer).cast(), 8));
    ok!(cuParamSeti(fill, 8, 5000));
    ok!(cuParamSeti(fill, 12, COUNT));
    ok!(cuLaunchGrid(fill, 4, 1));
    filled(buffer, 5000);
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(fill, 0, 1, 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuParamSeti(fill, -4, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuParamSeti(fill, i32::MAX - 1, 0));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuLaunch(stray()));
    ok!(cuMemFree_v2(buffer));
}

#[test]
fn attributes_of_launches() {
    let _own = Own::new();
    let fill = function(module(), c"fill");
    let mut buffer = allocate(COUNT as usize * 4);
    let (mut value, mut count, mut event) = (7u32, COUNT, null_mut());
    // Such events have no times (manual, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT).
    ok!(cuEventCreate(&mut event, 2));
    let mut parameters: [*mut c_void; 3] = [
        (&raw mut buffer).cast(),
        (&raw mut value).cast(),
        (&raw mut count).cast(),
    ];
    // SAFETY: numbers and null pointers.
    let mut attributes: [CUlaunchAttribute; 3] = unsafe { std::mem::zeroed() };
    attributes[0].id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[0].value.cooperative = 1;
    attributes[1].id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    attributes[1].value.launchCompletionEvent = CUlaunchAttributeValue_union_launchCompletionEvent { event, flags: 0 };
    attributes[2].id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
    let mut config = CUlaunchConfig {
        gridDimX: 4,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 32,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: null_mut(),
        attrs: attributes.as_mut_ptr(),
        numAttrs: 3,
    };
    ok!(cuLaunchKernelEx(&config, fill, parameters.as_mut_ptr(), null_mut()));
    ok!(cuEventSynchronize(event));
    filled(buffer, 7);
    attributes[2].id = CUlaunchAttributeID::from_raw(4711);
    config.attrs = attributes.as_mut_ptr();
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLaunchKernelEx(&config, fill, parameters.as_mut_ptr(), null_mut())
    );
    config.attrs = null_mut();
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLaunchKernelEx(&config, fill, parameters.as_mut_ptr(), null_mut())
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLaunchKernelEx(null(), fill, parameters.as_mut_ptr(), null_mut())
    );
    ok!(cuEventDestroy_v2(event));
    ok!(cuMemFree_v2(buffer));
}

/// CUDA 13's runtime leaves all of these to the driver.
#[test]
fn absurd_shapes_are_refused() {
    let _own = Own::new();
    let nothing = function(module(), c"nothing");
    let launch = |grid: [u32; 3], block: [u32; 3], shared: u32| {
        let (none, nowhere) = (null_mut(), null_mut());
        call!(cuLaunchKernel(
            nothing,
            grid[0],
            grid[1],
            grid[2],
            block[0],
            block[1],
            block[2],
            shared,
            null_mut(),
            none,
            nowhere
        ))
    };
    assert_eq!(launch([1; 3], [1024, 1, 1], 0), CUresult::CUDA_SUCCESS);
    for (grid, block) in [
        ([0, 1, 1], [1; 3]),
        ([1; 3], [0, 1, 1]),
        ([1; 3], [1025, 1, 1]),
        ([1; 3], [32, 33, 1]),
        ([1; 3], [1, 1, 65]),
        ([1, 65536, 1], [1; 3]),
        ([u32::MAX, 1, 1], [1; 3]),
    ] {
        assert_eq!(
            launch(grid, block, 0),
            CUresult::CUDA_ERROR_INVALID_VALUE,
            "{grid:?} {block:?}"
        );
    }
    assert_ne!(launch([1; 3], [1; 3], u32::MAX), CUresult::CUDA_SUCCESS);
    fails!(
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        cuLaunchCooperativeKernel(nothing, 1_000_000, 1, 1, 32, 1, 1, 0, null_mut(), null_mut())
    );
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuLaunchKernel(stray(), 1, 1, 1, 1, 1, 1, 0, null_mut(), null_mut(), null_mut())
    );
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, stray(), null_mut(), null_mut())
    );
    ok!(cuCtxSynchronize());
}

#[test]
fn a_kernel_launches_as_a_function() {
    let _own = Own::new();
    let (mut library, mut kernel) = (null_mut(), null_mut());
    ok!(cuLibraryLoadData(
        &mut library,
        PTX.as_ptr().cast(),
        null_mut(),
        null_mut(),
        0,
        null_mut(),
        null_mut(),
        0
    ));
    ok!(cuLibraryGetKernel(&mut kernel, library, c"fill".as_ptr()));
    let mut buffer = allocate(COUNT as usize * 4);
    let (mut value, mut count) = (55u32, COUNT);
    let mut parameters: [*mut c_void; 3] = [
        (&raw mut buffer).cast(),
        (&raw mut value).cast(),
        (&raw mut count).cast(),
    ];
    ok!(cuLaunchKernel(
        kernel.cast(),
        4,
        1,
        1,
        32,
        1,
        1,
        0,
        null_mut(),
        parameters.as_mut_ptr(),
        null_mut()
    ));
    filled(buffer, 55);
    ok!(cuMemFree_v2(buffer));
    ok!(cuLibraryUnload(library));
}

unsafe extern "C" fn four_bytes_a_thread(threads: c_int) -> usize {
    threads as usize * 4
}

#[test]
fn occupancy() {
    let _own = Own::new();
    let fill = function(module(), c"fill");
    let (mut blocks, mut grid, mut block, mut bytes) = (0, 0, 0, 0);
    ok!(cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, fill, 32, 0));
    assert!(blocks >= 1);
    let mut with_flags = 0;
    ok!(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        &mut with_flags,
        fill,
        32,
        0,
        1
    ));
    assert_eq!(with_flags, blocks);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&mut blocks, fill, 32, 0, 9)
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, fill, 0, 0)
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuOccupancyMaxActiveBlocksPerMultiprocessor(null_mut(), fill, 32, 0)
    );
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, stray(), 32, 0)
    );
    ok!(cuOccupancyMaxPotentialBlockSize(
        &mut grid, &mut block, fill, None, 0, 0
    ));
    assert!(
        grid >= 1 && (32..=1024).contains(&block) && block % 32 == 0,
        "{grid} {block}"
    );
    ok!(cuOccupancyMaxPotentialBlockSize(
        &mut grid,
        &mut block,
        fill,
        Some(four_bytes_a_thread),
        0,
        128
    ));
    assert!(block <= 128);
    ok!(cuOccupancyAvailableDynamicSMemPerBlock(&mut bytes, fill, 1, 128));
    assert!(bytes > 0);
}
