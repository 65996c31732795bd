//! Memory Management: sets, and stream memory operations.

use crate::basics::context;
use crate::c::*;
use std::ffi::c_uint;
use std::ptr::null_mut;

functions! {
    cuMemsetD16 = "cuMemsetD16_v2" (to: CUdeviceptr, value: u16, count: usize);
    cuMemsetD2D8 = "cuMemsetD2D8_v2" (to: CUdeviceptr, pitch: usize, value: u8, width: usize, height: usize);
    cuMemsetD2D16 = "cuMemsetD2D16_v2" (to: CUdeviceptr, pitch: usize, value: u16, width: usize, height: usize);
    cuMemsetD2D32 = "cuMemsetD2D32_v2" (
        to: CUdeviceptr,
        pitch: usize,
        value: c_uint,
        width: usize,
        height: usize,
    );
    cuMemsetD16Async(to: CUdeviceptr, value: u16, count: usize, stream: CUstream);
    cuMemsetD32Async(to: CUdeviceptr, value: c_uint, count: usize, stream: CUstream);
    cuMemsetD2D8Async(
        to: CUdeviceptr,
        pitch: usize,
        value: u8,
        width: usize,
        height: usize,
        stream: CUstream,
    );
    cuMemsetD2D16Async(
        to: CUdeviceptr,
        pitch: usize,
        value: u16,
        width: usize,
        height: usize,
        stream: CUstream,
    );
    cuMemsetD2D32Async(
        to: CUdeviceptr,
        pitch: usize,
        value: c_uint,
        width: usize,
        height: usize,
        stream: CUstream,
    );
    cuStreamWriteValue32 = "cuStreamWriteValue32_v2" (stream: CUstream, at: CUdeviceptr, value: u32, flags: c_uint);
    cuStreamWriteValue64 = "cuStreamWriteValue64_v2" (stream: CUstream, at: CUdeviceptr, value: u64, flags: c_uint);
    cuStreamWaitValue32 = "cuStreamWaitValue32_v2" (stream: CUstream, at: CUdeviceptr, value: u32, flags: c_uint);
    cuStreamWaitValue64 = "cuStreamWaitValue64_v2" (stream: CUstream, at: CUdeviceptr, value: u64, flags: c_uint);
    cuStreamWriteValue64_v1 = "cuStreamWriteValue64" (
        stream: CUstream,
        at: CUdeviceptr,
        value: u64,
        flags: c_uint,
    );
    cuStreamWaitValue64_v1 = "cuStreamWaitValue64" (stream: CUstream, at: CUdeviceptr, value: u64, flags: c_uint);
    cuStreamBatchMemOp = "cuStreamBatchMemOp_v2" (
        stream: CUstream,
        count: c_uint,
        list: *mut Operation,
        flags: c_uint,
    );
    cuStreamBatchMemOp_v1 = "cuStreamBatchMemOp" (
        stream: CUstream,
        count: c_uint,
        list: *mut Operation,
        flags: c_uint,
    );
}

/// `CUstreamBatchMemOpParams`: type, address, value, flags.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    kind: c_uint,
    address: CUdeviceptr,
    value: u64,
    flags: c_uint,
    rest: [u64; 2],
}

const BYTES: usize = 4096;

fn alloc() -> CUdeviceptr {
    let mut pointer = 0;
    ok(cuMemAlloc(&mut pointer, BYTES));
    pointer
}

fn download(pointer: CUdeviceptr) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    ok(cuMemcpyDtoH(bytes.as_mut_ptr().cast(), pointer, BYTES));
    bytes
}

/// What a set is: address, pitch, width and height in elements.
type Set = fn(CUdeviceptr, usize, usize, usize) -> CUresult;

#[test]
fn sets_fill_what_they_are_told_to() {
    let context = context();
    let pointer = alloc();

    // Bytes of an element, whether it is a line, the call.
    let sets: [(&[u8], bool, Set); 12] = [
        (&[0x12], true, |to, _, width, _| cuMemsetD8(to, 0x12, width)),
        (&[0x34, 0x12], true, |to, _, width, _| cuMemsetD16(to, 0x1234, width)),
        (&[0x78, 0x56, 0x34, 0x12], true, |to, _, width, _| {
            cuMemsetD32(to, 0x1234_5678, width)
        }),
        (&[0x13], true, |to, _, width, _| {
            cuMemsetD8Async(to, 0x13, width, null_mut())
        }),
        (&[0x35, 0x12], true, |to, _, width, _| {
            cuMemsetD16Async(to, 0x1235, width, null_mut())
        }),
        (&[0x79, 0x56, 0x34, 0x12], true, |to, _, width, _| {
            cuMemsetD32Async(to, 0x1234_5679, width, null_mut())
        }),
        (&[0x14], false, |to, pitch, width, height| {
            cuMemsetD2D8(to, pitch, 0x14, width, height)
        }),
        (&[0x36, 0x12], false, |to, pitch, width, height| {
            cuMemsetD2D16(to, pitch, 0x1236, width, height)
        }),
        (&[0x7a, 0x56, 0x34, 0x12], false, |to, pitch, width, height| {
            cuMemsetD2D32(to, pitch, 0x1234_567a, width, height)
        }),
        (&[0x15], false, |to, pitch, width, height| {
            cuMemsetD2D8Async(to, pitch, 0x15, width, height, null_mut())
        }),
        (&[0x37, 0x12], false, |to, pitch, width, height| {
            cuMemsetD2D16Async(to, pitch, 0x1237, width, height, null_mut())
        }),
        (&[0x7b, 0x56, 0x34, 0x12], false, |to, pitch, width, height| {
            cuMemsetD2D32Async(to, pitch, 0x1234_567b, width, height, null_mut())
        }),
    ];
    for (element, is_line, set) in sets {
        let size = element.len();
        let (width, height, pitch) = (21, if is_line { 1 } else { 5 }, 128);
        ok(cuMemsetD8(pointer, 0xee, BYTES));
        ok(set(pointer + 8, pitch, width, height));
        ok(cuCtxSynchronize());
        let mut expected = vec![0xee_u8; BYTES];
        for y in 0..height {
            for x in 0..width * size {
                expected[8 + y * pitch + x] = element[x % size];
            }
        }
        assert!(download(pointer) == expected, "{element:x?}");
        // Up to the end, and not beyond; aligned to the element; of a device's memory.
        ok(set(pointer, BYTES, BYTES / size, 1));
        assert_eq!(set(pointer, BYTES, BYTES / size + 1, 1), CUDA_ERROR_INVALID_VALUE);
        if size > 1 {
            assert_eq!(set(pointer + 1, pitch, 1, 1), CUDA_ERROR_INVALID_VALUE);
        }
        if !is_line {
            assert_eq!(set(pointer, pitch, width, 33), CUDA_ERROR_INVALID_VALUE);
            assert_eq!(set(pointer, size * (width - 1), width, 2), CUDA_ERROR_INVALID_VALUE);
        }
        let local = [0_u64; 4];
        for wrong in [0, 16, local.as_ptr() as u64, u64::MAX - 7] {
            assert_eq!(set(wrong, pitch, 4, 1), CUDA_ERROR_INVALID_VALUE);
        }
        assert_eq!(set(pointer, pitch, usize::MAX, 1), CUDA_ERROR_INVALID_VALUE);
        ok(set(pointer, pitch, 0, 1));
        assert_eq!(local, [0; 4]);
    }
    let nobody: CUstream = (&raw const pointer).cast_mut().cast();
    assert_eq!(cuMemsetD32Async(pointer, 0, 1, nobody), CUDA_ERROR_INVALID_HANDLE);
    ok(cuCtxDestroy(context));
}

#[test]
fn streams_write_and_wait_for_words() {
    let context = context();
    let (mut first, mut second) = (null_mut(), null_mut());
    ok(cuStreamCreate(&mut first, 1));
    ok(cuStreamCreate(&mut second, 1));
    let words = alloc();
    let at = |index: u64| words + index * 8;
    let word = |index: usize| {
        let bytes = download(words);
        u64::from_le_bytes(bytes[index * 8..index * 8 + 8].try_into().unwrap())
    };
    ok(cuMemsetD8(words, 0, BYTES));
    ok(cuCtxSynchronize());
    ok(cuStreamWriteValue64(first, at(0), 0x1122_3344_5566_7788, 0));
    ok(cuStreamWriteValue64_v1(first, at(1), u64::MAX, 0));
    ok(cuStreamWriteValue32(first, at(2) + 4, 5, 1));
    ok(cuStreamSynchronize(first));
    assert_eq!((word(0), word(1), word(2)), (0x1122_3344_5566_7788, u64::MAX, 5 << 32));
    // Waits: at least (0, cyclically), equal (1), a bit in common (2), a bit clear in both (3).
    let waits: [(u64, u64, c_uint, u64); 5] = [
        (10, 9, 0, 10),
        // A little beyond the end of numbers is ahead of the end.
        (u64::MAX - 3, u64::MAX - 4, 0, 2),
        (7, 8, 1, 7),
        (0xf0, 0x0f, 2, 0x10),
        (!1, 1, 3, 0),
    ];
    for (value, not_yet, how, then) in waits {
        ok(cuStreamWriteValue64(second, at(3), not_yet, 0));
        ok(cuStreamSynchronize(second));
        let wait = if how == 1 {
            cuStreamWaitValue64_v1
        } else {
            cuStreamWaitValue64
        };
        ok(wait(first, at(3), value, how));
        ok(cuStreamWriteValue64(first, at(4), value, 0));
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(cuStreamQuery(first), CUDA_ERROR_NOT_READY, "{how}");
        ok(cuStreamWriteValue64(second, at(3), then, 0));
        ok(cuStreamSynchronize(first));
        assert_eq!(word(4), value);
    }
    // A batch is done in its order: write, wait for it, write.
    let operation = |kind, index, value, flags| Operation {
        kind,
        address: at(index),
        value,
        flags,
        rest: [0; 2],
    };
    // CU_STREAM_MEM_OP_WAIT_VALUE_32 …_WRITE_VALUE_32, …_WAIT_VALUE_64, …_WRITE_VALUE_64, …_BARRIER, …_FLUSH_REMOTE_WRITES
    let list = [
        operation(5, 5, 77, 0),
        operation(4, 5, 77, 1),
        operation(2, 6, 0x1_0000_0001, 0),
        operation(1, 6, 1, 1),
        operation(6, 0, 0, 0),
        operation(3, 0, 0, 0),
        operation(5, 7, 78, 0),
    ];
    for call in [cuStreamBatchMemOp, cuStreamBatchMemOp_v1] {
        ok(cuMemsetD8(words, 0, BYTES));
        ok(cuCtxSynchronize());
        let mut batch = list;
        ok(call(first, 7, batch.as_mut_ptr(), 0));
        ok(cuStreamSynchronize(first));
        assert_eq!((word(5), word(6), word(7)), (77, 1, 78));
        // All or nothing; at most 256.
        let mut wrong = list;
        wrong[6].address = 8;
        assert_eq!(call(first, 7, wrong.as_mut_ptr(), 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(call(first, 7, batch.as_mut_ptr(), 1), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(call(first, 1, null_mut(), 0), CUDA_ERROR_INVALID_VALUE);
        let mut many = [operation(5, 0, 1, 0); 257];
        assert_eq!(call(first, 257, many.as_mut_ptr(), 0), CUDA_ERROR_INVALID_VALUE);
        ok(call(first, 256, many.as_mut_ptr(), 0));
        ok(cuStreamSynchronize(first));
    }
    let nobody: CUstream = (&raw const list).cast_mut().cast();
    for (stream, at, flags, error) in [
        (first, at(0) + 4, 0, CUDA_ERROR_INVALID_VALUE),
        (first, 0, 0, CUDA_ERROR_INVALID_VALUE),
        (first, words + BYTES as u64, 0, CUDA_ERROR_INVALID_VALUE),
        (first, at(0), 4, CUDA_ERROR_INVALID_VALUE),
        (nobody, at(0), 0, CUDA_ERROR_INVALID_HANDLE),
    ] {
        assert_eq!(cuStreamWriteValue64(stream, at, 0, flags), error);
        assert_eq!(cuStreamWaitValue64(stream, at, 0, flags), error);
    }
    assert_eq!(cuStreamWriteValue32(first, words + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuStreamWaitValue32(first, words + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxDestroy(context));
}
