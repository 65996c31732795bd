//! Copies and sets.

use super::*;

fn record<T>() -> T {
    // SAFETY: the tests ask for records of C's, which consist of numbers and raw pointers: all-zero is one of them.
    unsafe { std::mem::zeroed() }
}

#[test]
fn lines() {
    let _own = Own::new();
    let (a, b) = (allocate(64), allocate(64));
    let numbers: Vec<u32> = (0..16).collect();
    ok!(cuMemcpyHtoD_v2(a, numbers.as_ptr().cast(), 64));
    ok!(cuMemcpyDtoD_v2(b, a, 64));
    assert_eq!(read_u32(b, 16), numbers);
    ok!(cuMemsetD8_v2(a, 0xff, 64));
    ok!(cuMemcpy_ptds(b + 4, a, 8));
    assert_eq!(read_u32(b, 4), [0, u32::MAX, u32::MAX, 3]);
    ok!(cuMemsetD16_v2(a, 0x1234, 3));
    assert_eq!(read_u32(a, 2), [0x1234_1234, 0xffff_1234]);
    ok!(cuMemcpyAsync(b, a, 8, null_mut()));
    ok!(cuMemsetD32Async_ptsz(b + 8, 5, 1, null_mut()));
    ok!(cuCtxSynchronize());
    assert_eq!(read_u32(b, 3), [0x1234_1234, 0xffff_1234, 5]);
    // Nothing to do is done, wherever it is.
    ok!(cuMemcpyHtoD_v2(0, null(), 0));
    ok!(cuMemsetD8_v2(a, 0, 0));
    // What is no memory of the device.
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(0, numbers.as_ptr().cast(), 4));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemcpyDtoH_v2(numbers.as_ptr().cast_mut().cast(), 0x1000, 4)
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a, null(), 4));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemcpyHtoD_v2(a + 32, numbers.as_ptr().cast(), 4096)
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(a, 0, 1 << 40));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuMemcpyDtoDAsync_v2(b, a, 4, stray()));
    // Elements must be aligned (manual, cuMemsetD32).
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(a + 1, 0, 1));
    ok!(cuMemFree_v2(a));
    ok!(cuMemFree_v2(b));
}

#[test]
fn rectangles() {
    let _own = Own::new();
    let device = allocate(16 * 8);
    ok!(cuMemsetD32_v2(device, 0, 32));
    ok!(cuMemsetD2D32_v2(device + 4, 16, 9, 2, 3));
    let rows = read_u32(device, 32);
    assert_eq!(rows[..16], [0, 9, 9, 0, 0, 9, 9, 0, 0, 9, 9, 0, 0, 0, 0, 0]);

    let host: Vec<u32> = (1..=12).collect();
    let mut copy: CUDA_MEMCPY2D = record();
    copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
    copy.srcHost = host.as_ptr().cast();
    copy.srcPitch = 12;
    copy.srcXInBytes = 4;
    copy.srcY = 1;
    copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = device;
    copy.dstPitch = 16;
    copy.dstXInBytes = 8;
    copy.dstY = 2;
    copy.WidthInBytes = 8;
    copy.Height = 2;
    // Rows 1 and 2 of the source, from its second number on, to rows 2 and 3.
    ok!(cuMemcpy2D_v2(&copy));
    assert_eq!(read_u32(device, 16)[8..], [0, 9, 5, 6, 0, 0, 8, 9]);
    copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_UNIFIED;
    copy.dstY = 0;
    ok!(cuMemcpy2DAsync_v2(&copy, null_mut()));
    ok!(cuStreamSynchronize(null_mut()));
    assert_eq!(read_u32(device, 8), [0, 9, 5, 6, 0, 9, 8, 9]);

    // A row must fit its pitch.
    copy.dstPitch = 12;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&copy));
    copy.dstPitch = 16;
    copy.srcMemoryType = CUmemorytype::from_raw(9);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DUnaligned_v2(&copy));
    copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DUnaligned_v2(&copy));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(null()));

    // cudaMemcpy from host to host arrives as one row between host pointers.
    let mut to = [0u32; 4];
    let mut copy: CUDA_MEMCPY2D = record();
    copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
    copy.srcHost = host.as_ptr().cast();
    copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
    copy.dstHost = to.as_mut_ptr().cast();
    copy.WidthInBytes = 16;
    copy.Height = 1;
    ok!(cuMemcpy2DUnaligned_v2(&copy));
    assert_eq!(to, [1, 2, 3, 4]);
    ok!(cuMemFree_v2(device));
}

#[test]
fn boxes() {
    let own = Own::new();
    // 3 slices of 4 rows of 4 numbers.
    let device = allocate(3 * 4 * 16);
    ok!(cuMemsetD32_v2(device, 0, 48));
    let host: Vec<u32> = (1..=8).collect();
    let mut copy: CUDA_MEMCPY3D = record();
    copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
    copy.srcHost = host.as_ptr().cast();
    copy.srcPitch = 8;
    copy.srcHeight = 2;
    copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = device;
    copy.dstPitch = 16;
    copy.dstHeight = 4;
    copy.dstXInBytes = 4;
    copy.dstY = 1;
    copy.dstZ = 1;
    copy.WidthInBytes = 8;
    copy.Height = 2;
    copy.Depth = 2;
    ok!(cuMemcpy3D_v2(&copy));
    let mut expected = vec![0; 48];
    for (index, value) in host.iter().enumerate() {
        let (x, y, z) = (index % 2, index / 2 % 2, index / 4);
        expected[(z + 1) * 16 + (y + 1) * 4 + x + 1] = *value;
    }
    assert_eq!(read_u32(device, 48), expected);

    // Slices must not overlap.
    copy.dstHeight = 2;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&copy));
    copy.dstHeight = 4;
    copy.dstLOD = 1;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DAsync_v2(&copy, null_mut()));

    let mut peer: CUDA_MEMCPY3D_PEER = record();
    peer.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
    peer.srcDevice = device + 16 * 4;
    peer.srcContext = own.0;
    peer.srcPitch = 16;
    peer.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
    peer.dstDevice = device;
    peer.dstContext = own.0;
    peer.dstPitch = 16;
    peer.WidthInBytes = 16;
    peer.Height = 4;
    peer.Depth = 1;
    ok!(cuMemcpy3DPeer(&peer));
    assert_eq!(read_u32(device, 16), expected[16..32]);
    peer.dstContext = stray();
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuMemcpy3DPeer(&peer));
    ok!(cuMemcpyPeer(device, own.0, device + 64, own.0, 4));
    fails!(
        CUDA_ERROR_INVALID_CONTEXT,
        cuMemcpyPeer(device, own.0, device + 64, stray(), 4)
    );
    ok!(cuMemFree_v2(device));
}
