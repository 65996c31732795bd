//! Logical Endpoint.

use crate::alone::alone;
use crate::basics::context;
use crate::c::*;
use crate::test_name;
use std::ffi::{CStr, c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;

/// `CUlogicalEndpointProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Prop {
    kind: c_uint,
    /// The owner, or how many.
    devices: c_uint,
    bytes: c_ulonglong,
    handles: c_uint,
    flags: c_uint,
}

functions! {
    cuLogicalEndpointIdReserve(base: *mut c_uint, count: c_uint);
    cuLogicalEndpointIdRelease(base: c_uint, count: c_uint);
    cuLogicalEndpointCreate(id: c_uint, prop: *const Prop);
    cuLogicalEndpointAddDevice(id: c_uint, device: CUdevice);
    cuLogicalEndpointDestroy(id: c_uint);
    cuLogicalEndpointBindAddr(
        id: c_uint,
        device: CUdevice,
        offset: u64,
        pointer: CUdeviceptr,
        bytes: u64,
        flags: c_ulonglong,
    );
    cuLogicalEndpointBindMem(
        id: c_uint,
        device: CUdevice,
        offset: u64,
        memory: u64,
        from: u64,
        bytes: u64,
        flags: c_ulonglong,
    );
    cuLogicalEndpointUnbind(id: c_uint, device: CUdevice, offset: u64, bytes: u64);
    cuLogicalEndpointExport(handle: *mut c_void, id: c_uint, kind: c_uint);
    cuLogicalEndpointImport(id: c_uint, handle: *const c_void, kind: c_uint);
    cuLogicalEndpointGetLimits(alignment: *mut u64, most: *mut u64, prop: *const Prop);
    cuLogicalEndpointQuery(id: c_uint, count: c_uint, status: *mut c_int);
    cuMemAddressReserve(
        pointer: *mut CUdeviceptr,
        bytes: usize,
        alignment: usize,
        hint: CUdeviceptr,
        flags: c_ulonglong,
    );
    cuMemCreate(handle: *mut u64, bytes: usize, prop: *const [u32; 8], flags: c_ulonglong);
    cuMemRelease(handle: u64);
    cuMemMap(pointer: CUdeviceptr, bytes: usize, offset: usize, handle: u64, flags: c_ulonglong);
    cuMemUnmap(pointer: CUdeviceptr, bytes: usize);
    cuMemSetAccess(pointer: CUdeviceptr, bytes: usize, access: *const [c_uint; 3], count: usize);
}

const UNICAST: c_uint = 1;
const MULTICAST: c_uint = 2;
const COUNTED: c_uint = 1;
const FABRIC: c_uint = 1;
const NOT_SUPPORTED: CUresult = 801;
const SYSTEM_NOT_READY: CUresult = 802;
const ALLOW: [c_uint; 3] = [1, 0, 3];

fn prop(kind: c_uint, devices: c_uint, bytes: u64) -> Prop {
    Prop {
        kind,
        devices,
        bytes,
        handles: 0,
        flags: COUNTED,
    }
}

fn limits() -> (u64, u64) {
    let (mut alignment, mut most) = (0, 0);
    ok(cuLogicalEndpointGetLimits(
        &mut alignment,
        &mut most,
        &prop(UNICAST, 0, 1),
    ));
    assert!(alignment.is_power_of_two() && most.is_multiple_of(alignment) && most > alignment);
    (alignment, most)
}

fn reserve(count: c_uint) -> c_uint {
    let mut base = 0;
    ok(cuLogicalEndpointIdReserve(&mut base, count));
    base
}

fn create(prop: Prop) -> c_uint {
    let id = reserve(1);
    ok(cuLogicalEndpointCreate(id, &prop));
    id
}

fn is_ready(id: c_uint, count: c_uint) -> bool {
    let mut status = -1;
    ok(cuLogicalEndpointQuery(id, count, &mut status));
    status != 0
}

/// Memory of a device, and where the host reaches it.
fn memory(device: c_uint, bytes: u64) -> (u64, CUdeviceptr) {
    let bytes = bytes as usize;
    let (mut handle, mut pointer) = (0, 0);
    ok(cuMemCreate(&mut handle, bytes, &[1, 0, 1, device, 0, 0, 0, 0], 0));
    ok(cuMemAddressReserve(&mut pointer, bytes, 0, 0, 0));
    ok(cuMemMap(pointer, bytes, 0, handle, 0));
    ok(cuMemSetAccess(pointer, bytes, &ALLOW, 1));
    ok(cuMemsetD8(pointer, 0, bytes));
    ok(cuCtxSynchronize());
    (handle, pointer)
}

fn word(pointer: CUdeviceptr) -> u32 {
    let mut word = 0_u32;
    ok(cuMemcpyDtoH((&raw mut word).cast(), pointer, 4));
    word
}

#[test]
fn devices_have_logical_endpoints_of_their_process() {
    let context = context();
    // Unicast, multicast, counters, access by the owner; handles for other processes: none.
    for (attribute, expected) in [(153, 1), (154, 1), (155, 1), (156, 1), (158, 0), (128, 0)] {
        let mut value = -1;
        ok(cuDeviceGetAttribute(&mut value, attribute, 0));
        assert_eq!(value, expected, "{attribute}");
    }
    let id = create(prop(UNICAST, 0, limits().0));
    let mut handle = [0_u8; 64];
    assert_eq!(
        cuLogicalEndpointExport(handle.as_mut_ptr().cast(), id, FABRIC),
        NOT_SUPPORTED
    );
    assert_eq!(
        cuLogicalEndpointImport(id, handle.as_ptr().cast(), FABRIC),
        NOT_SUPPORTED
    );
    ok(cuLogicalEndpointDestroy(id));
    ok(cuLogicalEndpointIdRelease(id, 1));
    ok(cuCtxDestroy(context));
}

#[test]
fn numbers_are_reserved_in_a_row() {
    let context = context();
    let (mut base, mut status) = (0, 0);
    assert_eq!(cuLogicalEndpointIdReserve(null_mut(), 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuLogicalEndpointIdReserve(&mut base, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuLogicalEndpointIdReserve(&mut base, u32::MAX),
        CUDA_ERROR_OUT_OF_MEMORY
    );
    let ids = reserve(5);
    assert_ne!(ids, 0);
    assert!(!is_ready(ids, 5));
    // They are given back as they were taken, and not before their endpoints are gone.
    assert_eq!(cuLogicalEndpointIdRelease(ids, 4), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuLogicalEndpointIdRelease(ids + 1, 4), CUDA_ERROR_INVALID_VALUE);
    let one = prop(UNICAST, 0, limits().0);
    ok(cuLogicalEndpointCreate(ids + 4, &one));
    assert_eq!(cuLogicalEndpointIdRelease(ids, 5), CUDA_ERROR_INVALID_VALUE);
    assert!(is_ready(ids + 4, 1) && !is_ready(ids + 3, 2));
    assert_eq!(cuLogicalEndpointCreate(ids + 4, &one), CUDA_ERROR_INVALID_VALUE);
    ok(cuLogicalEndpointDestroy(ids + 4));
    assert_eq!(cuLogicalEndpointDestroy(ids + 4), CUDA_ERROR_INVALID_VALUE);
    ok(cuLogicalEndpointIdRelease(ids, 5));
    assert_eq!(cuLogicalEndpointQuery(ids, 0, &mut status), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuLogicalEndpointQuery(0, 1, &mut status), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuLogicalEndpointQuery(u32::MAX, 2, &mut status),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuLogicalEndpointCreate(0, &one), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxDestroy(context));
}

#[test]
fn endpoints_are_what_the_limits_allow() {
    let context = context();
    let (step, most) = limits();
    let id = reserve(1);
    let good = prop(UNICAST, 0, step);
    for (bad, error) in [
        (Prop { kind: 0, ..good }, CUDA_ERROR_INVALID_VALUE),
        (Prop { kind: 3, ..good }, CUDA_ERROR_INVALID_VALUE),
        (Prop { devices: 99, ..good }, CUDA_ERROR_INVALID_DEVICE),
        (Prop { bytes: 0, ..good }, CUDA_ERROR_INVALID_VALUE),
        (Prop { bytes: 4096, ..good }, CUDA_ERROR_INVALID_VALUE),
        (
            Prop {
                bytes: most + step,
                ..good
            },
            CUDA_ERROR_INVALID_VALUE,
        ),
        (Prop { flags: 2, ..good }, CUDA_ERROR_INVALID_VALUE),
        (Prop { handles: 2, ..good }, CUDA_ERROR_INVALID_VALUE),
        (
            Prop {
                handles: FABRIC,
                ..good
            },
            NOT_SUPPORTED,
        ),
        (prop(MULTICAST, 0, step), CUDA_ERROR_INVALID_VALUE),
        (prop(MULTICAST, 99, step), CUDA_ERROR_INVALID_VALUE),
    ] {
        assert_eq!(cuLogicalEndpointCreate(id, &bad), error, "{bad:?}");
    }
    assert_eq!(cuLogicalEndpointCreate(id, std::ptr::null()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuLogicalEndpointGetLimits(null_mut(), &mut 0, &good),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuLogicalEndpointGetLimits(&mut 0, null_mut(), &good),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuLogicalEndpointCreate(id, &prop(UNICAST, 0, 4 * step)));
    assert_eq!(cuLogicalEndpointAddDevice(id, 0), CUDA_ERROR_INVALID_VALUE);
    let (handle, pointer) = memory(0, 2 * step);
    for (device, offset, from, bytes, flags, error) in [
        (99, 0, 0, step, 0, CUDA_ERROR_INVALID_DEVICE),
        (0, 4096, 0, step, 0, CUDA_ERROR_INVALID_VALUE),
        (0, 0, 4096, step, 0, CUDA_ERROR_INVALID_VALUE),
        (0, 0, 0, 0, 0, CUDA_ERROR_INVALID_VALUE),
        (0, 4 * step, 0, step, 0, CUDA_ERROR_INVALID_VALUE),
        (0, 0, step, 2 * step, 0, CUDA_ERROR_INVALID_VALUE),
        (0, u64::MAX - step + 1, 0, step, 0, CUDA_ERROR_INVALID_VALUE),
        (0, 0, 0, step, 1, CUDA_ERROR_INVALID_VALUE),
    ] {
        let bound = cuLogicalEndpointBindMem(id, device, offset, handle, from, bytes, flags);
        assert_eq!(bound, error, "{device} {offset:#x} {from:#x} {bytes:#x} {flags}");
    }
    assert_eq!(
        cuLogicalEndpointBindMem(id, 0, 0, 7, 0, step, 0),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuLogicalEndpointBindMem(id, 0, step, handle, 0, 2 * step, 0));
    // What is taken is taken, by handle or by address, and let go whole.
    assert_eq!(
        cuLogicalEndpointBindAddr(id, 0, 2 * step, pointer, step, 0),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuLogicalEndpointBindAddr(id, 0, 0, pointer, step, 0));
    assert_eq!(
        cuLogicalEndpointBindAddr(id, 0, 3 * step, 8, step, 0),
        CUDA_ERROR_INVALID_VALUE
    );
    for (device, offset, bytes, error) in [
        (99, 0, step, CUDA_ERROR_INVALID_DEVICE),
        (0, step, step, CUDA_ERROR_INVALID_VALUE),
        (0, 3 * step, step, CUDA_ERROR_INVALID_VALUE),
        (0, 0, 5 * step, CUDA_ERROR_INVALID_VALUE),
        (0, 0, 0, CUDA_ERROR_INVALID_VALUE),
    ] {
        assert_eq!(cuLogicalEndpointUnbind(id, device, offset, bytes), error);
    }
    ok(cuLogicalEndpointUnbind(id, 0, 0, 3 * step));
    // What is bound lives on without its handle and its mapping.
    ok(cuLogicalEndpointBindMem(id, 0, 0, handle, 0, step, 0));
    ok(cuMemUnmap(pointer, 2 * step as usize));
    ok(cuMemRelease(handle));
    ok(cuLogicalEndpointDestroy(id));
    ok(cuLogicalEndpointIdRelease(id, 1));
    ok(cuCtxDestroy(context));
}

/// One thread brings a word four times to an endpoint, or from there; the second adds them to the memory of all members.
const KERNELS: &CStr = c".version 9.3
.target sm_100
.address_size 64
.visible .entry put(.param .u32 id, .param .u64 offset, .param .u32 value)
{
    .reg .b64 %off; .reg .b32 %id, %at, %bar, %n, %v; .reg .pred %p;
    .shared .align 16 .b32 box[4];
    .shared .align 8 .b64 bar;
    ld.param.u32 %id, [id]; ld.param.u64 %off, [offset]; ld.param.u32 %v, [value];
    mov.u32 %at, box; mov.u32 %bar, bar; mov.u32 %n, 16;
    st.shared.v4.u32 [box], {%v, %v, %v, %v};
    mbarrier.init.layout::v1.shared::cta.b64 [bar], 1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1;
    fabric.try_put.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.relaxed.sys.b128 [%id, %off], [%at], %n, [%bar];
    fabric.submit;
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra wait;
    ret;
}
.visible .entry add(.param .u32 id, .param .u64 offset, .param .u32 value)
{
    .reg .b64 %off; .reg .b32 %id, %at, %bar, %n, %v; .reg .pred %p;
    .shared .align 16 .b32 box[4];
    .shared .align 8 .b64 bar;
    ld.param.u32 %id, [id]; ld.param.u64 %off, [offset]; ld.param.u32 %v, [value];
    mov.u32 %at, box; mov.u32 %bar, bar; mov.u32 %n, 16;
    st.shared.v4.u32 [box], {%v, %v, %v, %v};
    mbarrier.init.layout::v1.shared::cta.b64 [bar], 1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1;
    fabric.try_red.async.multimem.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.relaxed.sys.add.u32 [%id, %off], [%at], %n, [%bar];
    fabric.submit;
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra wait;
    ret;
}
";

fn launch(name: &CStr, mut id: c_uint, mut offset: u64, mut value: u32) -> CUresult {
    let (mut module, mut function) = (null_mut(), null_mut());
    ok(cuModuleLoadData(&mut module, KERNELS.as_ptr().cast()));
    ok(cuModuleGetFunction(&mut function, module, name.as_ptr()));
    let mut parameters = [(&raw mut id).cast(), (&raw mut offset).cast(), (&raw mut value).cast()];
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
fn a_kernel_reaches_memory_of_another_device() {
    alone(test_name!(), &[("MARGAY_DEVICES", "2")], || {
        context();
        let (step, _) = limits();
        let id = create(prop(UNICAST, 1, 2 * step));
        assert!(is_ready(id, 1));
        let (first, _) = memory(0, step);
        let (second, pointer) = memory(1, step);
        // Memory of the owner alone, and bound by the owner.
        assert_eq!(
            cuLogicalEndpointBindMem(id, 1, 0, first, 0, step, 0),
            CUDA_ERROR_INVALID_DEVICE
        );
        assert_eq!(
            cuLogicalEndpointBindMem(id, 0, 0, second, 0, step, 0),
            CUDA_ERROR_INVALID_DEVICE
        );
        ok(cuLogicalEndpointBindMem(id, 1, step, second, 0, step, 0));
        ok(launch(c"put", id, step + 32, 7));
        assert_eq!([28, 32, 44, 48].map(|at| word(pointer + at)), [0, 7, 7, 0]);
        // Other memory at the same place, while the endpoint stays.
        ok(cuLogicalEndpointUnbind(id, 1, step, step));
        let (other, there) = memory(1, step);
        ok(cuLogicalEndpointBindMem(id, 1, step, other, 0, step, 0));
        ok(launch(c"put", id, step + 32, 9));
        assert_eq!((word(pointer + 32), word(there + 32)), (7, 9));
    });
}

#[test]
fn a_kernel_reaches_memory_of_all_members() {
    alone(test_name!(), &[("MARGAY_DEVICES", "3")], || {
        context();
        let (step, _) = limits();
        let id = create(prop(MULTICAST, 2, step));
        let memories = [memory(0, step), memory(2, step)];
        ok(cuLogicalEndpointAddDevice(id, 2));
        assert_eq!(cuLogicalEndpointAddDevice(id, 2), CUDA_ERROR_INVALID_VALUE);
        assert!(!is_ready(id, 1));
        assert_eq!(
            cuLogicalEndpointBindMem(id, 2, 0, memories[1].0, 0, step, 0),
            SYSTEM_NOT_READY
        );
        ok(cuLogicalEndpointAddDevice(id, 0));
        assert_eq!(cuLogicalEndpointAddDevice(id, 1), CUDA_ERROR_INVALID_VALUE);
        assert!(is_ready(id, 1));
        assert_eq!(
            cuLogicalEndpointBindMem(id, 1, 0, memories[0].0, 0, step, 0),
            CUDA_ERROR_INVALID_DEVICE
        );
        for (device, (handle, _)) in [0, 2].into_iter().zip(memories) {
            ok(cuLogicalEndpointBindMem(id, device, 0, handle, 0, step, 0));
        }
        ok(launch(c"add", id, 16, 5));
        ok(launch(c"add", id, 16, 6));
        assert_eq!(memories.map(|(_, pointer)| word(pointer + 28)), [11, 11]);
    });
}

/// What the log says of a kernel that fails.
fn failure(test: &str, run: fn()) -> String {
    let run = alone(test, &[("MARGAY_DEVICES", "2"), ("MARGAY_LOG", "error")], run);
    run.stderr
}

#[test]
fn where_nothing_is_bound_is_a_fault() {
    let log = failure(test_name!(), || {
        context();
        let (step, _) = limits();
        let id = create(prop(UNICAST, 0, 2 * step));
        let (handle, _) = memory(0, step);
        ok(cuLogicalEndpointBindMem(id, 0, 0, handle, 0, step, 0));
        assert_eq!(launch(c"put", id, step - 16, 1), CUDA_SUCCESS);
        assert_eq!(launch(c"put", id, step, 1), CUDA_ERROR_LAUNCH_FAILED);
    });
    assert!(
        log.contains("no memory of device 0 is bound to the 16 bytes at offset"),
        "{log}"
    );
}

#[test]
fn an_endpoint_that_is_gone_is_a_fault() {
    let log = failure(test_name!(), || {
        context();
        let (step, _) = limits();
        let id = create(prop(UNICAST, 0, step));
        ok(cuLogicalEndpointDestroy(id));
        assert_eq!(launch(c"put", id, 0, 1), CUDA_ERROR_LAUNCH_FAILED);
    });
    assert!(log.contains("there is no logical endpoint"), "{log}");
}

#[test]
fn a_device_outside_of_the_team_is_a_fault() {
    let log = failure(test_name!(), || {
        context();
        let (step, _) = limits();
        let id = create(prop(MULTICAST, 1, step));
        ok(cuLogicalEndpointAddDevice(id, 1));
        let (handle, _) = memory(1, step);
        ok(cuLogicalEndpointBindMem(id, 1, 0, handle, 0, step, 0));
        assert_eq!(launch(c"add", id, 0, 1), CUDA_ERROR_LAUNCH_FAILED);
    });
    assert!(log.contains("device 0 is no member of logical endpoint"), "{log}");
}

#[test]
fn a_team_that_is_not_complete_is_a_fault() {
    let log = failure(test_name!(), || {
        context();
        let id = create(prop(MULTICAST, 2, limits().0));
        ok(cuLogicalEndpointAddDevice(id, 0));
        assert_eq!(launch(c"add", id, 0, 1), CUDA_ERROR_LAUNCH_FAILED);
    });
    assert!(
        log.contains("is not complete: one device is still to be added"),
        "{log}"
    );
}
