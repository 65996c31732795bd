//! External Resource Interoperability: memory by file descriptor.

use crate::alone::alone;
use crate::basics::context;
use crate::c::*;
use crate::graph_types::zeroed;
use crate::test_name;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;

const CUDA_ERROR_NOT_SUPPORTED: CUresult = 801;

/// `CUDA_EXTERNAL_MEMORY_HANDLE_DESC`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryDescription {
    kind: c_uint,
    padding: c_uint,
    descriptor: c_int,
    rest: [u32; 3],
    bytes: c_ulonglong,
    flags: c_uint,
    reserved: [c_uint; 16],
}

/// `CUDA_EXTERNAL_MEMORY_BUFFER_DESC`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BufferDescription {
    offset: c_ulonglong,
    bytes: c_ulonglong,
    flags: c_uint,
    reserved: [c_uint; 16],
}

/// `CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MipmapDescription {
    offset: c_ulonglong,
    array: ArrayDescriptor,
    levels: c_uint,
    reserved: [c_uint; 16],
}

functions! {
    cuImportExternalMemory(memory: *mut *mut c_void, description: *const MemoryDescription);
    cuDestroyExternalMemory(memory: *mut c_void);
    cuExternalMemoryGetMappedBuffer(
        pointer: *mut CUdeviceptr,
        memory: *mut c_void,
        description: *const BufferDescription,
    );
    cuExternalMemoryGetMappedMipmappedArray(
        mipmap: *mut CUmipmappedArray,
        memory: *mut c_void,
        description: *const MipmapDescription,
    );
}

pub const OPAQUE: c_uint = 1;
const DMA_BUF: c_uint = 9;

/// A file in memory, as other libraries make them to be shared: twice open, and mapped here.
pub fn file(bytes: usize) -> (c_int, &'static mut [u8]) {
    // SAFETY: calls of the system, with what they ask for; the mapping is never undone.
    unsafe {
        let descriptor = libc::memfd_create(c"somebody's".as_ptr(), libc::MFD_ALLOW_SEALING);
        assert!(descriptor >= 0 && libc::ftruncate(descriptor, bytes as i64) == 0);
        let mapped = libc::mmap(
            null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            descriptor,
            0,
        );
        assert_ne!(mapped, libc::MAP_FAILED);
        (descriptor, std::slice::from_raw_parts_mut(mapped.cast(), bytes))
    }
}

pub fn event(value: c_uint) -> c_int {
    // SAFETY: only makes a descriptor.
    unsafe { libc::eventfd(value, libc::EFD_NONBLOCK) }
}

pub fn is_open(descriptor: c_int) -> bool {
    // SAFETY: only asks.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) != -1 }
}

fn memory(descriptor: c_int, bytes: usize) -> MemoryDescription {
    MemoryDescription {
        kind: OPAQUE,
        descriptor,
        bytes: bytes as u64,
        ..zeroed()
    }
}

fn import(description: MemoryDescription) -> *mut c_void {
    let mut memory = null_mut();
    ok(cuImportExternalMemory(&mut memory, &description));
    memory
}

fn buffer(offset: u64, bytes: u64) -> BufferDescription {
    BufferDescription {
        offset,
        bytes,
        ..zeroed()
    }
}

#[test]
fn a_file_in_memory_is_a_buffer() {
    // What is freed twice could be another test's the second time.
    alone(test_name!(), &[], || {
        const BYTES: usize = 3 * 4096 + 1000;
        let context = context();
        let (descriptor, shared) = file(BYTES);
        shared.fill(1);
        let handle = import(memory(descriptor, BYTES));
        let mut pointer = 0;
        // Anywhere in the file; what is written there, others see, and the other way round.
        ok(cuExternalMemoryGetMappedBuffer(
            &mut pointer,
            handle,
            &buffer(100, 8000),
        ));
        ok(cuMemsetD8(pointer, 2, 8000));
        ok(cuCtxSynchronize());
        assert!(shared[..100].iter().chain(&shared[8100..]).all(|byte| *byte == 1));
        assert!(shared[100..8100].iter().all(|byte| *byte == 2));
        shared[150] = 3;
        let mut byte = 0_u8;
        ok(cuMemcpyDtoH((&raw mut byte).cast(), pointer + 50, 1));
        assert_eq!(byte, 3);
        // Mappings may overlap, and outlive the object that they are of.
        let mut whole = 0;
        ok(cuExternalMemoryGetMappedBuffer(
            &mut whole,
            handle,
            &buffer(0, BYTES as u64),
        ));
        ok(cuDestroyExternalMemory(handle));
        assert_eq!(cuDestroyExternalMemory(handle), CUDA_ERROR_INVALID_HANDLE);
        ok(cuMemcpyDtoH((&raw mut byte).cast(), whole + 150, 1));
        assert_eq!(byte, 3);
        assert_eq!(cuMemsetD8(whole, 0, BYTES + 4096), CUDA_ERROR_INVALID_VALUE);
        ok(cuMemFree(pointer));
        assert_eq!(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
        ok(cuMemFree(whole));
        assert!(!is_open(descriptor), "the descriptor was the driver's");
        ok(cuCtxDestroy(context));
    });
}

#[test]
fn a_file_in_memory_is_an_array() {
    let context = context();
    let (descriptor, shared) = file(8192);
    let handle = import(memory(descriptor, 8192));
    // 16 x 8 bytes and the next level, from an offset on.
    let mut description = MipmapDescription {
        offset: 512,
        array: ArrayDescriptor {
            width: 16,
            height: 8,
            format: 1,
            channels: 1,
            ..ArrayDescriptor::default()
        },
        levels: 2,
        ..zeroed()
    };
    let mut mipmap = null_mut();
    ok(cuExternalMemoryGetMappedMipmappedArray(
        &mut mipmap,
        handle,
        &description,
    ));
    let mut level = null_mut();
    ok(cuMipmappedArrayGetLevel(&mut level, mipmap, 0));
    let texels: Vec<u8> = (0..128).collect();
    let mut copy = Copy3D::between(level, texels.as_ptr().cast_mut().cast(), 16, 8, true);
    (copy.width, copy.height, copy.depth) = (16, 8, 1);
    ok(cuMemcpy3D(&copy));
    ok(cuCtxSynchronize());
    assert_eq!(shared[512..640], texels);
    assert!(shared[..512].iter().all(|byte| *byte == 0));
    shared[512] = 99;
    let mut back = vec![0_u8; 128];
    let mut copy = Copy3D::between(level, back.as_mut_ptr().cast(), 16, 8, false);
    (copy.width, copy.height, copy.depth) = (16, 8, 1);
    ok(cuMemcpy3D(&copy));
    assert_eq!((back[0], &back[1..]), (99, &texels[1..]));
    ok(cuMipmappedArrayDestroy(mipmap));
    assert_eq!(cuMipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);
    // Where it does not fit, or is none.
    let mut map = |memory, description: &MipmapDescription| {
        cuExternalMemoryGetMappedMipmappedArray(&mut mipmap, memory, description)
    };
    description.offset = 8192 - 100;
    assert_eq!(map(handle, &description), CUDA_ERROR_INVALID_VALUE);
    description.offset = 0;
    assert_eq!(map(null_mut(), &description), CUDA_ERROR_INVALID_HANDLE);
    description.levels = 0;
    assert_eq!(map(handle, &description), CUDA_ERROR_INVALID_VALUE);
    description.levels = 1;
    description.array.width = 0;
    assert_eq!(map(handle, &description), CUDA_ERROR_INVALID_VALUE);
    ok(cuDestroyExternalMemory(handle));
    ok(cuCtxDestroy(context));
}

#[test]
fn what_nothing_stands_behind_is_refused() {
    // What is freed twice could be another test's the second time.
    alone(test_name!(), &[], || {
        let context = context();
        let (descriptor, _) = file(4096);
        let good = memory(descriptor, 4096);
        let mut handle = null_mut();
        let mut reserved = good;
        reserved.reserved[15] = 1;
        let pipe = event(0);
        // SAFETY: a file that cannot be sealed.
        let plain = unsafe { libc::memfd_create(c"plain".as_ptr(), 0) };
        let wrong = [
            (MemoryDescription { kind: 0, ..good }, CUDA_ERROR_INVALID_VALUE),
            (MemoryDescription { kind: 10, ..good }, CUDA_ERROR_INVALID_VALUE),
            (MemoryDescription { bytes: 0, ..good }, CUDA_ERROR_INVALID_VALUE),
            (MemoryDescription { bytes: 4097, ..good }, CUDA_ERROR_INVALID_VALUE),
            (MemoryDescription { flags: 2, ..good }, CUDA_ERROR_INVALID_VALUE),
            (reserved, CUDA_ERROR_INVALID_VALUE),
            (memory(-1, 4096), CUDA_ERROR_INVALID_HANDLE),
            (memory(9999, 4096), CUDA_ERROR_INVALID_HANDLE),
            // Not memory, or memory that could go away.
            (memory(pipe, 4096), CUDA_ERROR_NOT_SUPPORTED),
            (memory(plain, 4096), CUDA_ERROR_NOT_SUPPORTED),
            (MemoryDescription { kind: DMA_BUF, ..good }, CUDA_ERROR_NOT_SUPPORTED),
        ];
        for (description, error) in wrong {
            assert_eq!(
                cuImportExternalMemory(&mut handle, &description),
                error,
                "{description:?}"
            );
        }
        // Handles of other systems and libraries.
        for kind in 2..9 {
            assert_eq!(
                cuImportExternalMemory(&mut handle, &MemoryDescription { kind, ..good }),
                CUDA_ERROR_NOT_SUPPORTED
            );
        }
        assert!(
            is_open(descriptor),
            "a descriptor that was not taken stays the program's"
        );
        assert_eq!(cuImportExternalMemory(null_mut(), &good), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            cuImportExternalMemory(&mut handle, std::ptr::null()),
            CUDA_ERROR_INVALID_VALUE
        );
        // CUDA_EXTERNAL_MEMORY_DEDICATED
        let handle = import(MemoryDescription { flags: 1, ..good });
        let mut pointer = 0;
        let mut map = |handle, description: &BufferDescription| {
            cuExternalMemoryGetMappedBuffer(&mut pointer, handle, description)
        };
        let mut reserved = buffer(0, 16);
        reserved.reserved[0] = 1;
        for description in [
            buffer(0, 0),
            buffer(0, 4097),
            buffer(4096, 1),
            buffer(u64::MAX, 2),
            BufferDescription {
                flags: 1,
                ..buffer(0, 16)
            },
            reserved,
        ] {
            assert_eq!(map(handle, &description), CUDA_ERROR_INVALID_VALUE, "{description:?}");
        }
        assert_eq!(map(null_mut(), &buffer(0, 16)), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuDestroyExternalMemory(null_mut()), CUDA_ERROR_INVALID_HANDLE);
        // What is left ends with the context.
        ok(map(handle, &buffer(0, 16)));
        ok(cuCtxDestroy(context));
        let context = self::context();
        assert_eq!(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuDestroyExternalMemory(handle), CUDA_ERROR_INVALID_HANDLE);
        ok(cuCtxDestroy(context));
    });
}
