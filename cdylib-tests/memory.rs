//! Memory Management: allocation of device, pitched and pinned memory, registered memory, what is left.

use crate::alone::alone;
use crate::basics::context;
use crate::c::*;
use crate::test_name;
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

functions! {
    cuMemAllocPitch = "cuMemAllocPitch_v2" (
        pointer: *mut CUdeviceptr,
        pitch: *mut usize,
        width: usize,
        height: usize,
        element: c_uint,
    );
    cuMemAllocHost = "cuMemAllocHost_v2" (pointer: *mut *mut c_void, bytes: usize);
    cuMemHostGetDevicePointer = "cuMemHostGetDevicePointer_v2" (
        pointer: *mut CUdeviceptr,
        host: *mut c_void,
        flags: c_uint,
    );
    cuMemHostGetFlags(flags: *mut c_uint, host: *mut c_void);
    cuMemHostRegister_v1 = "cuMemHostRegister" (host: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostRegister = "cuMemHostRegister_v2" (host: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostUnregister(host: *mut c_void);
}

const ALREADY_REGISTERED: CUresult = 712;
const NOT_REGISTERED: CUresult = 713;
// Flags of host memory.
const PORTABLE: c_uint = 1;
const MAPPED: c_uint = 2;
const WRITE_COMBINED: c_uint = 4;
const IO_MEMORY: c_uint = 4;
const READ_ONLY: c_uint = 8;

/// In a process of its own: what is freed is what the next call gets.
#[test]
fn memory_that_was_used_before_holds_zeros_again() {
    alone(test_name!(), &[], || {
        context();
        for bytes in [4, 5000, 1 << 20, 3 << 20, 80 << 20] {
            // What was freed is not given to anybody for a while.
            let mut addresses = Vec::new();
            let mut again = false;
            while !again && addresses.len() < 20_000 {
                let mut memory = 0;
                ok(cuMemAlloc(&mut memory, bytes));
                let mut found = vec![1_u8; bytes];
                ok(cuMemcpyDtoH(found.as_mut_ptr().cast(), memory, bytes));
                assert!(found.iter().all(|&byte| byte == 0), "{bytes} bytes");
                ok(cuMemsetD8(memory, 0xa5, bytes));
                ok(cuMemFree(memory));
                again = addresses.contains(&memory);
                addresses.push(memory);
            }
            // Otherwise nothing was shown.
            assert!(again, "{bytes} bytes: {} different addresses", addresses.len());
            assert!(addresses.len() > 2 || bytes > 16 << 20, "{bytes} bytes: at once");
            for _ in 0..2 {
                let mut host = null_mut();
                ok(cuMemAllocHost(&mut host, bytes));
                // SAFETY: as many bytes as were asked for, which nobody else has.
                let found = unsafe { std::slice::from_raw_parts_mut(host.cast::<u8>(), bytes) };
                assert!(found.iter().all(|&byte| byte == 0), "{bytes} bytes of the host's");
                found.fill(0x5a);
                ok(cuMemFreeHost(host));
            }
        }
    });
}

/// Adds 1 to a word.
const INCREMENT: &[u8] = b".version 7.0
.target sm_80
.address_size 64
.visible .entry increment(.param .u64 word)
{
    .reg .b32 %r;
    .reg .b64 %d;
    ld.param.u64 %d, [word];
    ld.global.u32 %r, [%d];
    add.u32 %r, %r, 1;
    st.global.u32 [%d], %r;
    ret;
}
\0";

fn increment() -> CUfunction {
    let (mut module, mut function) = (null_mut(), null_mut());
    ok(cuModuleLoadData(&mut module, INCREMENT.as_ptr().cast()));
    ok(cuModuleGetFunction(&mut function, module, c"increment".as_ptr()));
    function
}

/// The result of a kernel that adds 1 to a word.
fn run(function: CUfunction, mut word: CUdeviceptr) -> CUresult {
    let mut parameters: [*mut c_void; 1] = [(&raw mut word).cast()];
    ok(cuLaunchKernel(
        function,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        null_mut(),
        parameters.as_mut_ptr(),
        null_mut(),
    ));
    cuCtxSynchronize()
}

#[test]
fn allocations_count_and_are_given_back() {
    alone(test_name!(), &[("MARGAY_MEMORY", "256M")], || {
        let context = context();
        let (mut free, mut total, mut whole) = (0, 0, 0);
        ok(cuMemGetInfo(&mut free, &mut total));
        ok(cuDeviceTotalMem(&mut whole, 0));
        assert_eq!((total, whole), (256 << 20, 256 << 20));
        let mut pointer = 0;
        ok(cuMemAlloc(&mut pointer, 100 << 20));
        assert!(
            pointer.is_multiple_of(256),
            "aligned to at least 256 bytes (programming guide)"
        );
        let mut less = 0;
        ok(cuMemGetInfo(&mut less, null_mut()));
        assert_eq!(free - less, 100 << 20);
        let mut other = 0;
        assert_eq!(cuMemAlloc(&mut other, 200 << 20), CUDA_ERROR_OUT_OF_MEMORY);
        assert_eq!(cuMemAlloc(&mut other, usize::MAX), CUDA_ERROR_OUT_OF_MEMORY);
        ok(cuMemFree(pointer));
        ok(cuMemAlloc(&mut other, 200 << 20));
        ok(cuMemFree(other));
        ok(cuMemGetInfo(&mut less, &mut total));
        assert_eq!(less, free);
        for wrong in [other, pointer + 256, 1, &raw const total as u64] {
            assert_eq!(cuMemFree(wrong), CUDA_ERROR_INVALID_VALUE);
        }
        ok(cuMemFree(0));
        assert_eq!(cuMemAlloc(&mut pointer, 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemAlloc(null_mut(), 8), CUDA_ERROR_INVALID_VALUE);
        for flags in [0, 3, 4] {
            assert_eq!(cuMemAllocManaged(&mut pointer, 8, flags), CUDA_ERROR_INVALID_VALUE);
        }
        assert_eq!(cuMemAllocManaged(&mut pointer, 0, 1), CUDA_ERROR_INVALID_VALUE);
        ok(cuCtxDestroy(context));
        assert_eq!(cuMemAlloc(&mut pointer, 8), CUDA_ERROR_INVALID_CONTEXT);
    });
}

#[test]
fn rows_of_pitched_memory_are_aligned() {
    let context = context();
    let (mut pointer, mut pitch) = (0, 0);
    for (width, height, element) in [(100, 7, 4), (512, 3, 8), (513, 1, 16), (1, 1, 4)] {
        ok(cuMemAllocPitch(&mut pointer, &mut pitch, width, height, element));
        assert!(pitch >= width && pitch.is_multiple_of(element as usize));
        let mut alignment = 0;
        // CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT
        ok(cuDeviceGetAttribute(&mut alignment, 14, 0));
        assert!(pitch.is_multiple_of(alignment as usize));
        ok(cuMemsetD8(pointer, 1, pitch * height));
        ok(cuMemFree(pointer));
    }
    let mut get = |width, height, element| cuMemAllocPitch(&mut pointer, &mut pitch, width, height, element);
    assert_eq!(get(0, 1, 4), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(get(1, 0, 4), CUDA_ERROR_INVALID_VALUE);
    for element in [0, 1, 2, 5, 32] {
        assert_eq!(get(16, 16, element), CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(get(1 << 40, 1 << 20, 4), CUDA_ERROR_OUT_OF_MEMORY);
    assert_eq!(cuMemAllocPitch(null_mut(), &mut 0, 1, 1, 4), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuMemAllocPitch(&mut 0, null_mut(), 1, 1, 4), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxDestroy(context));
}

#[test]
fn pinned_memory_is_the_hosts_and_the_devices() {
    // What is freed twice could be another test's the second time.
    alone(test_name!(), &[], || {
        let context = context();
        let function = increment();
        for flags in [0, PORTABLE, MAPPED, WRITE_COMBINED, PORTABLE | MAPPED | WRITE_COMBINED] {
            let (mut host, mut device, mut found) = (null_mut(), 0, 99);
            ok(cuMemHostAlloc(&mut host, 64, flags));
            ok(cuMemHostGetFlags(&mut found, host));
            assert_eq!(found, flags);
            ok(cuMemHostGetDevicePointer(&mut device, host, 0));
            // SAFETY: pinned memory, of 64 bytes.
            unsafe { host.cast::<u32>().write_volatile(41) };
            ok(run(function, device));
            // SAFETY: pinned memory of 64 bytes, and the kernel that wrote to it has ended.
            assert_eq!(unsafe { host.cast::<u32>().read_volatile() }, 42);
            ok(cuMemFreeHost(host));
            assert_eq!(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
        }
        let mut host = null_mut();
        ok(cuMemAllocHost(&mut host, 64));
        let mut device = 0;
        assert_eq!(
            cuMemHostGetDevicePointer(&mut device, host, 1),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(cuMemHostGetDevicePointer(null_mut(), host, 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemHostGetFlags(null_mut(), host), CUDA_ERROR_INVALID_VALUE);
        let local: *mut c_void = (&raw mut device).cast();
        assert_eq!(
            cuMemHostGetDevicePointer(&mut device, local, 0),
            CUDA_ERROR_INVALID_VALUE
        );
        let mut flags = 0;
        assert_eq!(cuMemHostGetFlags(&mut flags, local), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemFreeHost(local), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemFree(host as u64), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemHostAlloc(&mut host, 64, 8), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemHostAlloc(&mut host, 0, 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemHostAlloc(null_mut(), 64, 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemAllocHost(&mut host, 0), CUDA_ERROR_INVALID_VALUE);
        ok(cuCtxDestroy(context));
    });
}

#[test]
fn memory_of_the_program_is_registered() {
    let context = context();
    let function = increment();
    let mut words = vec![7_u32; 4096];
    let start: *mut c_void = words.as_mut_ptr().cast();
    ok(cuMemHostRegister(start, 16384, PORTABLE | MAPPED));
    let mut device = 0;
    ok(cuMemHostGetDevicePointer(&mut device, start.wrapping_byte_add(400), 0));
    ok(run(function, device));
    assert_eq!((words[99], words[100], words[101]), (7, 8, 7));
    // What overlaps is registered already.
    for (offset, bytes) in [(0, 16384), (100, 8), (16380, 8)] {
        let at = start.wrapping_byte_add(offset);
        assert_eq!(cuMemHostRegister(at, bytes, 0), ALREADY_REGISTERED);
    }
    assert_eq!(cuMemHostUnregister(start.wrapping_byte_add(8)), NOT_REGISTERED);
    ok(cuMemHostUnregister(start));
    assert_eq!(cuMemHostUnregister(start), NOT_REGISTERED);
    ok(cuMemHostRegister_v1(start, 4096, 0));
    ok(cuMemHostUnregister(start));
    // The driver's own memory is pinned as it is.
    let mut host = null_mut();
    ok(cuMemHostAlloc(&mut host, 4096, 0));
    assert_eq!(cuMemHostRegister(host, 4096, 0), ALREADY_REGISTERED);
    let register = cuMemHostRegister;
    assert_eq!(register(null_mut(), 4096, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(register(start, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(register(start, 4096, 16), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(register(start, usize::MAX, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(register(start, 4096, IO_MEMORY), 801);
    assert_eq!(cuMemHostUnregister(null_mut()), CUDA_ERROR_INVALID_VALUE);
    // Memory that is not there, or only in part.
    // SAFETY: a mapping of our own, of which the second half goes.
    let half = unsafe {
        let start = libc::mmap(
            null_mut(),
            8192,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_eq!(libc::munmap(start.wrapping_byte_add(4096), 4096), 0);
        start
    };
    assert_eq!(register(half, 8192, READ_ONLY), CUDA_ERROR_INVALID_VALUE);
    // What the program may only read has to be registered as such (manual).
    assert_eq!(register(half, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    ok(register(half, 4096, READ_ONLY));
    let mut word = 9_u32;
    ok(cuMemcpyDtoH((&raw mut word).cast(), half as u64, 4));
    assert_eq!(word, 0);
    ok(cuMemHostUnregister(half));
    ok(cuCtxDestroy(context));
}

#[test]
fn kernels_do_not_write_to_what_is_registered_for_reading() {
    alone(test_name!(), &[("MARGAY_LOG", "off")], || {
        context();
        let function = increment();
        let mut words = vec![7_u32; 1024];
        ok(cuMemHostRegister(words.as_mut_ptr().cast(), 4096, READ_ONLY));
        assert_eq!(run(function, words.as_ptr() as u64), CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_eq!(words[0], 7);
    });
}
