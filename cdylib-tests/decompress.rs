//! Memory Management: decompression in a stream.

use crate::basics::{alloc, context, download, stream, upload};
use crate::c::*;
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

/// `CUmemDecompressParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Decompress {
    src_bytes: usize,
    dst_bytes: usize,
    actual: CUdeviceptr,
    src: CUdeviceptr,
    dst: CUdeviceptr,
    algorithm: c_uint,
    padding: [u8; 20],
}

functions! {
    cuMemBatchDecompressAsync(
        list: *mut c_void,
        count: usize,
        flags: c_uint,
        error_index: *mut usize,
        stream: CUstream,
    );
}

/// What was compressed below: a thousand times "abc", and "end".
fn plain() -> Vec<u8> {
    let mut text = b"abc".repeat(1000);
    text.extend(b"end");
    text
}

/// Raw DEFLATE, by zlib.
const DEFLATED: &[u8] = &[
    0xed, 0xc2, 0xa9, 0x11, 0x00, 0x00, 0x08, 0x00, 0xa0, 0x59, 0xfd, 0xaa, 0xfb, 0x47, 0xd7, 0x30, 0xc0, 0x11, 0x59,
    0xa1, 0xaa, 0xaa, 0xfe, 0x3e, 0xdb, 0x07,
];

/// An LZ4 block, by its description: literals "abc", 2997 bytes from 3 back, literals "end" after the least that must be.
fn lz4() -> Vec<u8> {
    let mut block = vec![0x3f, b'a', b'b', b'c', 3, 0];
    // A match of 4 + 15 + 11 * 255 + 173 bytes, and the last literals: the format wants at least five.
    let rest = 2994 - 4 - 15;
    block.extend(std::iter::repeat_n(255, rest / 255));
    block.push((rest % 255) as u8);
    block.push(0x60);
    block.extend(b"abcend");
    block
}

/// A Snappy block: the length, a literal "abc", copies of up to 64 bytes from 3 back, a literal "end".
fn snappy() -> Vec<u8> {
    let mut block = vec![0xbb, 0x17, 2 << 2, b'a', b'b', b'c'];
    let mut left = 2997;
    while left > 0 {
        let length = left.min(64);
        block.extend([((length - 1) << 2) as u8 | 2, 3, 0]);
        left -= length;
    }
    block.extend([2 << 2, b'e', b'n', b'd']);
    block
}

#[test]
fn batches_are_decompressed() {
    let context = context();
    let stream = stream();
    let (mut algorithms, mut longest) = (0, 0);
    // CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, …_MAXIMUM_LENGTH
    ok(cuDeviceGetAttribute(&mut algorithms, 136, 0));
    ok(cuDeviceGetAttribute(&mut longest, 137, 0));
    assert_eq!(algorithms, 7);
    assert!(longest >= 4 << 20);
    let text = plain();
    let (results, actual) = (alloc(3 * 4096), alloc(12));
    ok(cuMemsetD8(results, 0, 3 * 4096));
    let piece = |index: u64, data: &[u8], algorithm, expected| Decompress {
        src_bytes: data.len(),
        dst_bytes: expected,
        actual: actual + index * 4,
        src: upload(data),
        dst: results + index * 4096,
        algorithm,
        padding: [0; 20],
    };
    let mut list = [
        piece(0, DEFLATED, 1, text.len()),
        piece(1, &snappy(), 2, 4096),
        // How long it will be need not be said.
        piece(2, &lz4(), 4, 0),
    ];
    let run = |list: &mut [Decompress], flags| {
        let mut index = 99;
        let result = cuMemBatchDecompressAsync(list.as_mut_ptr().cast(), list.len(), flags, &mut index, stream);
        (result, index)
    };
    assert_eq!(run(&mut list, 0), (CUDA_SUCCESS, 99));
    ok(cuStreamSynchronize(stream));
    for index in 0..3 {
        let length = download(actual + index * 4, 4);
        assert_eq!(u32::from_le_bytes(length.try_into().unwrap()), 3003, "piece {index}");
        let found = download(results + index * 4096, 4096);
        assert_eq!(found[..3003], text, "piece {index}");
        assert!(found[3003..].iter().all(|byte| *byte == 0));
    }
    let good = list[0];
    let mut managed = 0;
    ok(cuMemAllocManaged(&mut managed, 8192, 1));
    let mut padded = good;
    padded.padding[19] = 1;
    for wrong in [
        padded,
        Decompress { algorithm: 0, ..good },
        Decompress { algorithm: 3, ..good },
        Decompress { src: 0, ..good },
        Decompress { src_bytes: 0, ..good },
        Decompress {
            src_bytes: 1 << 20,
            ..good
        },
        Decompress {
            dst: results + 3 * 4096,
            ..good
        },
        Decompress {
            dst_bytes: 3 * 4096 + 1,
            ..good
        },
        Decompress {
            actual: actual + 1,
            ..good
        },
        Decompress { actual: 0, ..good },
        // Memory that is not meant for it (CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE).
        Decompress { src: managed, ..good },
        Decompress { dst: managed, ..good },
    ] {
        assert_eq!(run(&mut [good, wrong], 0), (CUDA_ERROR_INVALID_VALUE, 1), "{wrong:?}");
    }
    assert_eq!(run(&mut [good], 1), (CUDA_ERROR_INVALID_VALUE, usize::MAX));
    assert_eq!(run(&mut [], 0), (CUDA_ERROR_INVALID_VALUE, usize::MAX));
    assert_eq!(
        cuMemBatchDecompressAsync(null_mut(), 1, 0, null_mut(), stream),
        CUDA_ERROR_INVALID_VALUE
    );
    let nobody: CUstream = (&raw mut list).cast();
    assert_eq!(
        cuMemBatchDecompressAsync((&raw mut list).cast(), 1, 0, null_mut(), nobody),
        CUDA_ERROR_INVALID_HANDLE
    );
    // What is no such data, or more than there is room for, is found out when its turn comes.
    for bad in [
        Decompress { algorithm: 4, ..good },
        Decompress {
            dst_bytes: 3002,
            ..good
        },
        Decompress {
            src_bytes: good.src_bytes - 3,
            ..good
        },
    ] {
        let own = self::context();
        let mut stream = null_mut();
        ok(cuStreamCreate(&mut stream, 1));
        let mut one = [bad];
        ok(cuMemBatchDecompressAsync(
            one.as_mut_ptr().cast(),
            1,
            0,
            null_mut(),
            stream,
        ));
        assert_eq!(cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED, "{bad:?}");
        ok(cuCtxDestroy(own));
        ok(cuCtxSetCurrent(context));
    }
    ok(cuCtxDestroy(context));
}
