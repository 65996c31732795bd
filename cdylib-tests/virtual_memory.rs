//! Virtual Memory Management: addresses and memory apart, access, sharing.

use crate::alone::alone;
use crate::basics::context;
use crate::c::*;
use crate::graph_types::zeroed;
use crate::test_name;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;

const CUDA_ERROR_NOT_SUPPORTED: CUresult = 801;
const DEVICE: c_uint = 1;
const PINNED: c_uint = 1;
const DESCRIPTOR: c_uint = 1;
const READ: c_uint = 1;
const READ_WRITE: c_uint = 3;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Prop {
    kind: c_uint,
    handle_types: c_uint,
    location_type: c_uint,
    location_id: c_int,
    win32: *mut c_void,
    flags: [u8; 8],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Access {
    location_type: c_uint,
    location_id: c_int,
    flags: c_uint,
}

functions! {
    cuMemAddressReserve(
        pointer: *mut CUdeviceptr,
        bytes: usize,
        alignment: usize,
        hint: CUdeviceptr,
        flags: c_ulonglong,
    );
    cuMemAddressFree(pointer: CUdeviceptr, bytes: usize);
    cuMemCreate(handle: *mut u64, bytes: usize, prop: *const Prop, flags: c_ulonglong);
    cuMemRelease(handle: u64);
    cuMemMap(pointer: CUdeviceptr, bytes: usize, offset: usize, handle: u64, flags: c_ulonglong);
    cuMemUnmap(pointer: CUdeviceptr, bytes: usize);
    cuMemSetAccess(pointer: CUdeviceptr, bytes: usize, access: *const Access, count: usize);
    cuMemGetAccess(flags: *mut u64, location: *const Access, pointer: CUdeviceptr);
    cuMemExportToShareableHandle(shared: *mut c_void, handle: u64, kind: c_uint, flags: c_ulonglong);
    cuMemImportFromShareableHandle(handle: *mut u64, shared: *mut c_void, kind: c_uint);
    cuMemGetAllocationGranularity(granularity: *mut usize, prop: *const Prop, option: c_uint);
    cuMemGetAllocationPropertiesFromHandle(prop: *mut Prop, handle: u64);
    cuMemRetainAllocationHandle(handle: *mut u64, address: *mut c_void);
}

const PROP: Prop = Prop {
    kind: PINNED,
    handle_types: 0,
    location_type: DEVICE,
    location_id: 0,
    win32: null_mut(),
    flags: [0; 8],
};

const ALLOW: Access = Access {
    location_type: DEVICE,
    location_id: 0,
    flags: READ_WRITE,
};

fn granularity() -> usize {
    let mut granularity = 0;
    ok(cuMemGetAllocationGranularity(&mut granularity, &PROP, 0));
    assert!(granularity.is_power_of_two());
    granularity
}

fn create(bytes: usize) -> u64 {
    let mut handle = 0;
    ok(cuMemCreate(&mut handle, bytes, &PROP, 0));
    handle
}

fn reserve(bytes: usize) -> CUdeviceptr {
    let mut pointer = 0;
    ok(cuMemAddressReserve(&mut pointer, bytes, 0, 0, 0));
    pointer
}

#[test]
fn memory_grows_piece_by_piece_at_one_address() {
    // What is freed twice could be another test's the second time.
    alone(test_name!(), &[], || {
        let context = context();
        let step = granularity();
        let start = reserve(4 * step);
        for piece in 0..3 {
            let handle = create(step);
            let at = start + (piece * step) as u64;
            ok(cuMemMap(at, step, 0, handle, 0));
            ok(cuMemSetAccess(at, step, &ALLOW, 1));
            // The mapping keeps the memory.
            ok(cuMemRelease(handle));
        }
        // One set and one copy over all pieces.
        ok(cuMemsetD32(start, 7, 3 * step / 4));
        let mut words = vec![0_u32; 3 * step / 4];
        ok(cuMemcpyDtoH(words.as_mut_ptr().cast(), start, 3 * step));
        assert!(words.iter().all(|word| *word == 7));
        // Not beyond them.
        assert_eq!(cuMemsetD8(start, 1, 3 * step + 1), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            cuMemcpyDtoH(words.as_mut_ptr().cast(), start + 3 * step as u64, 1),
            CUDA_ERROR_INVALID_VALUE
        );
        // It is not memory that is freed by its address.
        assert_eq!(cuMemFree(start), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemAddressFree(start, 4 * step), CUDA_ERROR_INVALID_VALUE);
        ok(cuMemUnmap(start, 3 * step));
        assert_eq!(
            cuMemcpyDtoH(words.as_mut_ptr().cast(), start, 1),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(cuMemAddressFree(start, step), CUDA_ERROR_INVALID_VALUE);
        ok(cuMemAddressFree(start, 4 * step));
        assert_eq!(cuMemAddressFree(start, 4 * step), CUDA_ERROR_INVALID_VALUE);
        ok(cuCtxDestroy(context));
    });
}

#[test]
fn the_same_memory_shows_at_several_addresses() {
    let context = context();
    let step = granularity();
    let handle = create(step);
    let (a, b) = (reserve(step), reserve(2 * step));
    for at in [a, b + step as u64] {
        ok(cuMemMap(at, step, 0, handle, 0));
        ok(cuMemSetAccess(at, step, &ALLOW, 1));
    }
    ok(cuMemsetD32(a + 64, 0x1234, 1));
    let mut word = 0_u32;
    ok(cuMemcpyDtoH((&raw mut word).cast(), b + step as u64 + 64, 4));
    assert_eq!(word, 0x1234);
    // By its address the memory is found again, and counted once more.
    let mut again = 0;
    ok(cuMemRetainAllocationHandle(&mut again, (a + 99) as *mut c_void));
    assert_eq!(again, handle);
    ok(cuMemRelease(handle));
    ok(cuMemRelease(handle));
    assert_eq!(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuMemRetainAllocationHandle(&mut again, null_mut()),
        CUDA_ERROR_INVALID_VALUE
    );
    // What was written outlives one of the mappings.
    ok(cuMemUnmap(a, step));
    ok(cuMemcpyDtoH((&raw mut word).cast(), b + step as u64 + 64, 4));
    assert_eq!(word, 0x1234);
    ok(cuMemUnmap(b + step as u64, step));
    ok(cuMemAddressFree(a, step));
    ok(cuMemAddressFree(b, 2 * step));
    ok(cuCtxDestroy(context));
}

#[test]
fn properties_come_back_and_wrong_ones_are_refused() {
    ok(cuInit(0));
    let step = granularity();
    let (mut handle, mut found) = (0, zeroed::<Prop>());
    let shared = Prop {
        handle_types: DESCRIPTOR,
        ..PROP
    };
    ok(cuMemCreate(&mut handle, step, &shared, 0));
    ok(cuMemGetAllocationPropertiesFromHandle(&mut found, handle));
    assert_eq!(
        (found.kind, found.handle_types, found.location_type, found.location_id),
        (PINNED, DESCRIPTOR, DEVICE, 0)
    );
    ok(cuMemRelease(handle));
    for (prop, bytes, flags, expected) in [
        (PROP, step - 1, 0, CUDA_ERROR_INVALID_VALUE),
        (PROP, 0, 0, CUDA_ERROR_INVALID_VALUE),
        (PROP, step, 1, CUDA_ERROR_INVALID_VALUE),
        (PROP, 1 << 50, 0, CUDA_ERROR_OUT_OF_MEMORY),
        (Prop { kind: 0, ..PROP }, step, 0, CUDA_ERROR_INVALID_VALUE),
        (
            Prop {
                location_type: 0,
                ..PROP
            },
            step,
            0,
            CUDA_ERROR_INVALID_VALUE,
        ),
        (
            Prop {
                location_id: 99,
                ..PROP
            },
            step,
            0,
            CUDA_ERROR_INVALID_DEVICE,
        ),
        (
            Prop {
                handle_types: 8,
                ..PROP
            },
            step,
            0,
            CUDA_ERROR_NOT_SUPPORTED,
        ),
        (
            Prop {
                handle_types: 99,
                ..PROP
            },
            step,
            0,
            CUDA_ERROR_INVALID_VALUE,
        ),
    ] {
        assert_eq!(
            cuMemCreate(&mut handle, bytes, &prop, flags),
            expected,
            "{prop:?} {bytes} {flags}"
        );
    }
    let mut pointer = 0;
    for (bytes, alignment, flags) in [(0, 0, 0), (step + 1, 0, 0), (step, 3, 0), (step, 0, 1)] {
        let result = cuMemAddressReserve(&mut pointer, bytes, alignment, 0, flags);
        assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
    }
    ok(cuMemAddressReserve(&mut pointer, step, 64 << 20, 0, 0));
    assert_eq!(pointer % (64 << 20), 0);
    ok(cuMemAddressFree(pointer, step));
    let mut granularity = 0;
    assert_eq!(
        cuMemGetAllocationGranularity(&mut granularity, &PROP, 2),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuMemGetAllocationGranularity(null_mut(), &PROP, 0),
        CUDA_ERROR_INVALID_VALUE
    );
}

#[test]
fn mappings_are_whole_and_do_not_overlap() {
    let context = context();
    let step = granularity();
    let (start, handle) = (reserve(4 * step), create(2 * step));
    let at = |step_number: usize| start + (step_number * step) as u64;
    let map = |pointer, bytes| cuMemMap(pointer, bytes, 0, handle, 0);
    ok(map(at(1), 2 * step));
    for (pointer, bytes) in [
        // There already, beyond the range, before it, more than the memory, odd, nothing, all there is.
        (at(1), step),
        (at(0), 2 * step),
        (at(2), step),
        (at(3), 2 * step),
        (start - step as u64, step),
        (at(3), 4 * step),
        (at(3) + 4096, step),
        (at(3), 4096),
        (at(3), 0),
        (u64::MAX - step as u64 + 1, 2 * step),
    ] {
        assert_eq!(map(pointer, bytes), CUDA_ERROR_INVALID_VALUE, "{pointer:#x} {bytes:#x}");
    }
    assert_eq!(cuMemMap(at(3), step, step, handle, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuMemMap(at(3), step, 0, 0x77, 0), CUDA_ERROR_INVALID_VALUE);
    ok(map(at(3), step));
    // Part of a mapping, or more than is mapped.
    for (pointer, bytes) in [
        (at(1), step),
        (at(2), step),
        (at(0), 3 * step),
        (at(1), 4 * step),
        (at(1), 0),
    ] {
        assert_eq!(cuMemUnmap(pointer, bytes), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemSetAccess(pointer, bytes, &ALLOW, 1), CUDA_ERROR_INVALID_VALUE);
    }
    let mut flags = 9;
    ok(cuMemGetAccess(&mut flags, &ALLOW, at(2)));
    assert_eq!(flags, 0);
    ok(cuMemSetAccess(at(1), 3 * step, &Access { flags: READ, ..ALLOW }, 1));
    ok(cuMemGetAccess(&mut flags, &ALLOW, at(2) + 5));
    assert_eq!(flags, READ.into());
    assert_eq!(cuMemGetAccess(&mut flags, &ALLOW, at(0)), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuMemSetAccess(at(1), 3 * step, &Access { flags: 2, ..ALLOW }, 1),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuMemSetAccess(at(1), 3 * step, &ALLOW, 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemUnmap(at(1), 3 * step));
    ok(cuMemRelease(handle));
    ok(cuMemAddressFree(start, 4 * step));
    ok(cuCtxDestroy(context));
}

/// Memory counts from its creation to its last holder's end, wherever it is shown.
#[test]
fn memory_is_counted_once() {
    alone(test_name!(), &[], || {
        let context = context();
        let step = granularity();
        let free = || {
            let (mut free, mut total) = (0, 0);
            ok(cuMemGetInfo(&mut free, &mut total));
            free
        };
        let before = free();
        let start = reserve(8 * step);
        assert_eq!(free(), before);
        let handle = create(4 * step);
        assert_eq!(free(), before - 4 * step);
        ok(cuMemMap(start, 4 * step, 0, handle, 0));
        ok(cuMemMap(start + 4 * step as u64, 4 * step, 0, handle, 0));
        assert_eq!(free(), before - 4 * step);
        ok(cuMemRelease(handle));
        assert_eq!(free(), before - 4 * step);
        ok(cuMemUnmap(start, 8 * step));
        assert_eq!(free(), before);
        ok(cuMemAddressFree(start, 8 * step));
        ok(cuCtxDestroy(context));
    });
}

#[test]
fn memory_is_shared_by_descriptor() {
    let context = context();
    let step = granularity();
    let (mut handle, mut descriptor, mut other) = (0, -1, 0);
    let shared = Prop {
        handle_types: DESCRIPTOR,
        ..PROP
    };
    ok(cuMemCreate(&mut handle, step, &shared, 0));
    let export = |of: u64, kind: c_uint, into: *mut c_int| cuMemExportToShareableHandle(into.cast(), of, kind, 0);
    ok(export(handle, DESCRIPTOR, &mut descriptor));
    assert!(descriptor >= 0);
    ok(cuMemImportFromShareableHandle(
        &mut other,
        descriptor as usize as *mut c_void,
        DESCRIPTOR,
    ));
    assert_ne!(handle, other);
    let (a, b) = (reserve(step), reserve(step));
    for (at, handle) in [(a, handle), (b, other)] {
        ok(cuMemMap(at, step, 0, handle, 0));
        ok(cuMemSetAccess(at, step, &ALLOW, 1));
        ok(cuMemRelease(handle));
    }
    ok(cuMemsetD32(a, 99, 1));
    let mut word = 0_u32;
    ok(cuMemcpyDtoH((&raw mut word).cast(), b, 4));
    assert_eq!(word, 99);
    // Not made to be shared; another kind of handle; what is no descriptor, or not of memory.
    let private = create(step);
    assert_eq!(export(private, DESCRIPTOR, &mut descriptor), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(export(private, 8, &mut descriptor), CUDA_ERROR_NOT_SUPPORTED);
    assert_eq!(export(private, DESCRIPTOR, null_mut()), CUDA_ERROR_INVALID_VALUE);
    for wrong in [usize::MAX, 1 << 20, 1 << 40] {
        let result = cuMemImportFromShareableHandle(&mut other, wrong as *mut c_void, DESCRIPTOR);
        assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
    }
    ok(cuMemRelease(private));
    for at in [a, b] {
        ok(cuMemUnmap(at, step));
        ok(cuMemAddressFree(at, step));
    }
    ok(cuCtxDestroy(context));
}

const PTX: &std::ffi::CStr = c".version 7.0
.target sm_70
.address_size 64
.visible .entry copy(.param .u64 to, .param .u64 from)
{
    .reg .b64 %a;
    .reg .b32 %v;
    ld.param.u64 %a, [from];
    ld.global.u32 %v, [%a];
    ld.param.u64 %a, [to];
    st.global.u32 [%a], %v;
    ret;
}
";

/// Access for reading, for writing; what a copy by a kernel comes to.
const CASES: [(c_uint, c_uint, CUresult); 4] = [
    (READ_WRITE, READ_WRITE, CUDA_SUCCESS),
    (READ, READ_WRITE, CUDA_SUCCESS),
    (READ_WRITE, READ, CUDA_ERROR_ILLEGAL_ADDRESS),
    (0, READ_WRITE, CUDA_ERROR_ILLEGAL_ADDRESS),
];

/// What kernels may do is what was said; each fault needs a process of its own.
#[test]
fn kernels_keep_to_what_they_may_do() {
    for which in 0..CASES.len() {
        let run = alone(test_name!(), &[("CDYLIB_TEST_CASE", &which.to_string())], || {
            let which: usize = std::env::var("CDYLIB_TEST_CASE").unwrap().parse().unwrap();
            let (from, to, expected) = CASES[which];
            let _context = context();
            let step = granularity();
            let (start, handle) = (reserve(2 * step), create(step));
            let (mut module, mut function) = (null_mut(), null_mut());
            let (mut a, mut b) = (start, start + step as u64);
            for at in [a, b] {
                ok(cuMemMap(at, step, 0, handle, 0));
            }
            ok(cuMemSetAccess(a, step, &Access { flags: from, ..ALLOW }, 1));
            ok(cuMemSetAccess(b, step, &Access { flags: to, ..ALLOW }, 1));
            ok(cuModuleLoadData(&mut module, PTX.as_ptr().cast()));
            ok(cuModuleGetFunction(&mut function, module, c"copy".as_ptr()));
            let mut params = [(&raw mut b).cast::<c_void>(), (&raw mut a).cast()];
            let params = params.as_mut_ptr();
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
                params,
                null_mut(),
            ));
            assert_eq!(cuCtxSynchronize(), expected);
            println!("case {which}");
        });
        assert!(run.stdout.contains(&format!("case {which}")));
    }
}
