//! Multicast Object Management.

use crate::alone::alone;
use crate::basics::context;
use crate::c::*;
use crate::test_name;
use std::ffi::{c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;

/// `CUmulticastObjectProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Prop {
    devices: c_uint,
    bytes: usize,
    handles: c_ulonglong,
    flags: c_ulonglong,
}

functions! {
    cuMulticastCreate(handle: *mut u64, prop: *const Prop);
    cuMulticastAddDevice(handle: u64, device: CUdevice);
    cuMulticastBindMem(
        handle: u64,
        offset: usize,
        memory: u64,
        from: usize,
        bytes: usize,
        flags: c_ulonglong,
    );
    cuMulticastBindMem_v2(
        handle: u64,
        device: CUdevice,
        offset: usize,
        memory: u64,
        from: usize,
        bytes: usize,
        flags: c_ulonglong,
    );
    cuMulticastBindAddr(handle: u64, offset: usize, pointer: CUdeviceptr, bytes: usize, flags: c_ulonglong);
    cuMulticastBindAddr_v2(
        handle: u64,
        device: CUdevice,
        offset: usize,
        pointer: CUdeviceptr,
        bytes: usize,
        flags: c_ulonglong,
    );
    cuMulticastUnbind(handle: u64, device: CUdevice, offset: usize, bytes: usize);
    cuMulticastGetGranularity(granularity: *mut usize, prop: *const Prop, option: c_uint);
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
    cuMemRetainAllocationHandle(handle: *mut u64, address: *mut c_void);
    cuDeviceGetFabricClusterUuid(uuid: *mut [u8; 16], device: CUdevice);
    cuDeviceGetCliqueCount(count: *mut usize, device: CUdevice);
    cuDeviceGetCliqueInfo(info: *mut c_void, count: *mut usize, device: CUdevice);
}

const ALLOW: [c_uint; 3] = [1, 0, 3];

fn prop(devices: c_uint, bytes: usize) -> Prop {
    Prop {
        devices,
        bytes,
        handles: 0,
        flags: 0,
    }
}

fn granularity() -> usize {
    let mut step = 0;
    ok(cuMulticastGetGranularity(&mut step, &prop(1, 1), 0));
    assert!(step.is_power_of_two());
    step
}

fn create(devices: c_uint, bytes: usize) -> u64 {
    let mut handle = 0;
    ok(cuMulticastCreate(&mut handle, &prop(devices, bytes)));
    handle
}

/// Pinned memory of a device.
fn memory(device: c_uint, bytes: usize) -> u64 {
    let mut handle = 0;
    ok(cuMemCreate(&mut handle, bytes, &[1, 0, 1, device, 0, 0, 0, 0], 0));
    handle
}

fn map(handle: u64, bytes: usize) -> CUdeviceptr {
    let mut pointer = 0;
    ok(cuMemAddressReserve(&mut pointer, bytes, 0, 0, 0));
    ok(cuMemMap(pointer, bytes, 0, handle, 0));
    pointer
}

fn byte(pointer: CUdeviceptr) -> u8 {
    let mut byte = 0_u8;
    ok(cuMemcpyDtoH((&raw mut byte).cast(), pointer, 1));
    byte
}

#[test]
fn a_team_of_one_has_its_memory_under_the_objects_addresses() {
    let context = context();
    let step = granularity();
    let object = create(1, 3 * step);
    let own = memory(0, 2 * step);
    // Before the team is complete nothing can be bound or mapped.
    let mut pointer = 0;
    ok(cuMemAddressReserve(&mut pointer, 3 * step, 0, 0, 0));
    assert_eq!(cuMulticastBindMem(object, 0, own, 0, step, 0), 802);
    assert_eq!(cuMemMap(pointer, 3 * step, 0, object, 0), 802);
    ok(cuMulticastAddDevice(object, 0));
    // The first half of the memory at the end of the object, its second half at the beginning.
    ok(cuMulticastBindMem(object, 2 * step, own, 0, step, 0));
    ok(cuMemMap(pointer, 3 * step, 0, object, 0));
    ok(cuMemSetAccess(pointer, 3 * step, &ALLOW, 1));
    ok(cuMulticastBindMem_v2(object, 0, 0, own, step, step, 0));
    let plain = map(own, 2 * step);
    ok(cuMemSetAccess(plain, 2 * step, &ALLOW, 1));
    ok(cuMemsetD8(plain, 1, step));
    ok(cuMemsetD8(plain + step as u64, 2, step));
    ok(cuCtxSynchronize());
    assert_eq!((byte(pointer), byte(pointer + 3 * step as u64 - 1)), (2, 1));
    ok(cuMemsetD8(pointer + 5, 7, 1));
    ok(cuCtxSynchronize());
    assert_eq!(byte(plain + step as u64 + 5), 7);
    // Between them nothing is bound, and nothing to be touched.
    let hole = pointer + step as u64;
    assert_eq!(cuMemsetD8(hole, 1, 1), CUDA_ERROR_INVALID_VALUE);
    // By address, to the hole.
    let third = memory(0, step);
    let there = map(third, step);
    ok(cuMemSetAccess(there, step, &ALLOW, 1));
    ok(cuMulticastBindAddr(object, step, there, step, 0));
    ok(cuMemsetD8(hole, 9, step));
    ok(cuCtxSynchronize());
    assert_eq!(byte(there), 9);
    // Unbound, it is the memory's own again.
    ok(cuMulticastUnbind(object, 0, step, step));
    assert_eq!(cuMemsetD8(hole, 1, 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuMulticastUnbind(object, 0, step, step), CUDA_ERROR_INVALID_VALUE);
    ok(cuMulticastBindAddr_v2(object, 0, step, there, step, 0));
    assert_eq!(byte(hole), 9);
    // The handle counts; mappings keep the object.
    let mut same = 0;
    ok(cuMemRetainAllocationHandle(&mut same, pointer as *mut c_void));
    assert_eq!(same, object);
    ok(cuMemRelease(object));
    ok(cuMemRelease(object));
    assert_eq!(cuMemRelease(object), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(byte(hole), 9);
    ok(cuMemUnmap(pointer, 3 * step));
    assert_eq!(byte(there), 9);
    ok(cuCtxDestroy(context));
}

#[test]
fn objects_are_checked() {
    let context = context();
    let step = granularity();
    let (mut handle, mut size) = (0, 0);
    for option in [0, 1] {
        ok(cuMulticastGetGranularity(&mut size, &prop(1, step), option));
        assert_eq!(size, step);
    }
    let good = prop(1, step);
    for (wrong, error) in [
        (prop(0, step), CUDA_ERROR_INVALID_VALUE),
        (prop(1000, step), CUDA_ERROR_INVALID_VALUE),
        (prop(1, 0), CUDA_ERROR_INVALID_VALUE),
        (Prop { flags: 1, ..good }, CUDA_ERROR_INVALID_VALUE),
        (
            Prop {
                handles: 1 << 20,
                ..good
            },
            CUDA_ERROR_INVALID_VALUE,
        ),
        (Prop { handles: 1, ..good }, 801),
        (Prop { handles: 8, ..good }, 801),
    ] {
        assert_eq!(cuMulticastCreate(&mut handle, &wrong), error, "{wrong:?}");
        assert_eq!(cuMulticastGetGranularity(&mut size, &wrong, 0), error, "{wrong:?}");
    }
    assert_eq!(
        cuMulticastCreate(&mut handle, &prop(1, step + 4096)),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuMulticastCreate(null_mut(), &good), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuMulticastCreate(&mut handle, std::ptr::null()),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuMulticastGetGranularity(null_mut(), &good, 0),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuMulticastGetGranularity(&mut size, &good, 2), CUDA_ERROR_INVALID_VALUE);
    let (object, own) = (create(1, 4 * step), memory(0, 2 * step));
    assert_eq!(cuMulticastAddDevice(own, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuMulticastAddDevice(object, 99), CUDA_ERROR_INVALID_DEVICE);
    ok(cuMulticastAddDevice(object, 0));
    assert_eq!(cuMulticastAddDevice(object, 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuMulticastBindMem(object, 0, own, 0, step, 0));
    let bind =
        |object, offset, memory, from, bytes, flags| cuMulticastBindMem(object, offset, memory, from, bytes, flags);
    for (offset, from, bytes, flags) in [
        (0, 0, step, 0),
        (step, 0, 0, 0),
        (step, 0, step, 1),
        (step + 4096, 0, step, 0),
        (step, 4096, step, 0),
        (step, 0, step / 2, 0),
        (step, step, 2 * step, 0),
        (3 * step, 0, 2 * step, 0),
        (usize::MAX - step + 1, 0, step, 0),
    ] {
        assert_eq!(bind(object, offset, own, from, bytes, flags), CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(bind(own, step, own, 0, step, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(bind(object, step, object, 0, step, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuMulticastBindMem_v2(object, 99, step, own, 0, step, 0),
        CUDA_ERROR_INVALID_DEVICE
    );
    // By address: memory of cuMemCreate.
    let mut plain = 0;
    ok(cuMemAlloc(&mut plain, 2 * step));
    assert_eq!(
        cuMulticastBindAddr(object, step, plain, step, 0),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuMulticastBindAddr(object, step, 0, step, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuMulticastBindAddr(object, step, plain, step, 1),
        CUDA_ERROR_INVALID_VALUE
    );
    for (device, offset, bytes, error) in [
        (0, step, step, CUDA_ERROR_INVALID_VALUE),
        (0, 0, 0, CUDA_ERROR_INVALID_VALUE),
        (0, 0, 5 * step, CUDA_ERROR_INVALID_VALUE),
        (0, 0, 4096, CUDA_ERROR_INVALID_VALUE),
        (99, 0, step, CUDA_ERROR_INVALID_DEVICE),
    ] {
        assert_eq!(cuMulticastUnbind(object, device, offset, bytes), error);
    }
    ok(cuMulticastUnbind(object, 0, 0, step));
    // There is no fabric.
    let (mut uuid, mut count, mut supported) = ([0; 16], 0, 9);
    assert_eq!(cuDeviceGetFabricClusterUuid(&mut uuid, 0), 801);
    assert_eq!(cuDeviceGetCliqueCount(&mut count, 0), 801);
    assert_eq!(cuDeviceGetCliqueInfo(null_mut(), &mut count, 0), 801);
    ok(cuDeviceGetAttribute(&mut supported, 132, 0));
    assert_eq!(supported, 1);
    ok(cuCtxDestroy(context));
}

#[test]
fn a_team_of_two_binds_memory_of_each() {
    alone(test_name!(), &[("MARGAY_DEVICES", "2")], || {
        context();
        let step = granularity();
        let object = create(2, step);
        let (first, second) = (memory(0, step), memory(1, step));
        ok(cuMulticastAddDevice(object, 0));
        assert_eq!(cuMulticastBindMem(object, 0, first, 0, step, 0), 802);
        ok(cuMulticastAddDevice(object, 1));
        ok(cuMulticastBindMem(object, 0, first, 0, step, 0));
        // The same offset, for the other device.
        ok(cuMulticastBindMem(object, 0, second, 0, step, 0));
        assert_eq!(
            cuMulticastBindMem(object, 0, second, 0, step, 0),
            CUDA_ERROR_INVALID_VALUE
        );
        // An ordinary access would reach one of them: there is none, and none is promised.
        let pointer = map(object, step);
        ok(cuMemSetAccess(pointer, step, &ALLOW, 1));
        assert_eq!(cuMemsetD8(pointer, 1, 1), CUDA_ERROR_INVALID_VALUE);
        ok(cuMulticastUnbind(object, 1, 0, step));
        ok(cuMulticastUnbind(object, 0, 0, step));
        // A team of one device has no memory of another one.
        let alone = create(1, step);
        ok(cuMulticastAddDevice(alone, 0));
        assert_eq!(
            cuMulticastBindMem(alone, 0, second, 0, step, 0),
            CUDA_ERROR_INVALID_DEVICE
        );
        assert_eq!(cuMulticastUnbind(alone, 1, 0, step), CUDA_ERROR_INVALID_DEVICE);
    });
}

/// Kernels that reach all devices by the address that they are handed.
const KERNELS: &std::ffi::CStr = c".version 8.1
.target sm_90
.address_size 64
.visible .entry sum(.param .u64 team, .param .u64 to)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    ld.param.u64 %rd1, [team];
    ld.param.u64 %rd2, [to];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd1, %r1, 4, %rd1;
    mad.wide.u32 %rd2, %r1, 4, %rd2;
    multimem.ld_reduce.relaxed.sys.global.add.u32 %r2, [%rd1];
    st.global.u32 [%rd2], %r2;
    ret;
}
.visible .entry spread(.param .u64 team, .param .u32 value)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    ld.param.u64 %rd1, [team];
    ld.param.u32 %r1, [value];
    multimem.st.release.sys.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry add(.param .u64 team, .param .u32 value)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    ld.param.u64 %rd1, [team];
    ld.param.u32 %r1, [value];
    multimem.red.relaxed.sys.global.add.u32 [%rd1], %r1;
    ret;
}
.visible .entry plain(.param .u64 team, .param .u32 value)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    ld.param.u64 %rd1, [team];
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd1], %r1;
    ret;
}
";

/// Launches a kernel with an address and a second parameter.
fn launch(name: &std::ffi::CStr, threads: u32, mut team: u64, mut other: u64) -> CUresult {
    let (mut module, mut function) = (null_mut(), null_mut());
    ok(cuModuleLoadData(&mut module, KERNELS.as_ptr().cast()));
    ok(cuModuleGetFunction(&mut function, module, name.as_ptr()));
    let mut parameters = [(&raw mut team).cast(), (&raw mut other).cast()];
    ok(cuLaunchKernel(
        function,
        1,
        1,
        1,
        threads,
        1,
        1,
        0,
        null_mut(),
        parameters.as_mut_ptr(),
        null_mut(),
    ));
    cuCtxSynchronize()
}

/// A team of two devices, of whose object the first half is bound: its address, and each device's own.
fn bound(step: usize) -> (CUdeviceptr, [CUdeviceptr; 2], u64) {
    let object = create(2, 2 * step);
    // The order in which devices come makes no difference.
    ok(cuMulticastAddDevice(object, 1));
    ok(cuMulticastAddDevice(object, 0));
    let own = [0, 1].map(|device| {
        let memory = memory(device, step);
        ok(cuMulticastBindMem(object, 0, memory, 0, step, 0));
        let pointer = map(memory, step);
        ok(cuMemSetAccess(pointer, step, &ALLOW, 1));
        ok(cuMemsetD8(pointer, 0, step));
        pointer
    });
    let team = map(object, 2 * step);
    ok(cuMemSetAccess(team, 2 * step, &ALLOW, 1));
    (team, own, object)
}

fn word(pointer: CUdeviceptr) -> u32 {
    let mut word = 0_u32;
    ok(cuMemcpyDtoH((&raw mut word).cast(), pointer, 4));
    word
}

#[test]
fn multimem_reaches_the_memory_of_both_devices() {
    alone(test_name!(), &[("MARGAY_DEVICES", "2")], || {
        context();
        let step = granularity();
        let (team, own, object) = bound(step);
        ok(launch(c"spread", 1, team + 8, 7));
        assert_eq!(own.map(|own| word(own + 8)), [7, 7]);
        // Each device has its own; what adds, adds to both, once for each thread.
        ok(cuMemcpyHtoD(own[1] + 8, std::ptr::from_ref(&100_u32).cast(), 4));
        ok(launch(c"add", 64, team + 8, 2));
        assert_eq!(own.map(|own| word(own + 8)), [7 + 128, 100 + 128]);
        let mut to = 0;
        ok(cuMemAlloc(&mut to, 128));
        ok(launch(c"sum", 4, team, to));
        assert_eq!([0, 4, 8, 12].map(|at| word(to + at)), [0, 0, 363, 0]);
        // Other memory for one of them, while the mapping stays.
        ok(cuMulticastUnbind(object, 1, 0, step));
        let third = memory(1, step);
        ok(cuMulticastBindMem(object, 0, third, 0, step, 0));
        ok(launch(c"sum", 4, team, to));
        assert_eq!(word(to + 8), 135);
        assert_eq!(word(own[1] + 8), 228);
    });
}

#[test]
fn multimem_keeps_to_what_is_bound() {
    for (wrong, result) in [
        // Mapped, and bound by nobody.
        ("unbound", 700),
        ("no multicast address", 719),
        ("misaligned", 716),
        ("freed", 719),
        // What one device alone could carry out is out of bounds.
        ("plain", 700),
    ] {
        let run = alone(test_name!(), &[("MARGAY_DEVICES", "2"), ("WRONG", wrong)], || {
            let wrong = std::env::var("WRONG").expect("set for this process");
            context();
            let step = granularity();
            let (team, own, _) = bound(step);
            let found = match &*wrong {
                "unbound" => launch(c"add", 1, team + step as u64, 1),
                "no multicast address" => launch(c"add", 1, own[0], 1),
                "misaligned" => launch(c"add", 1, team + 2, 1),
                "plain" => launch(c"plain", 1, team, 1),
                _ => {
                    ok(cuMemUnmap(team, 2 * step));
                    launch(c"add", 1, team, 1)
                }
            };
            println!("result {found}");
        });
        assert!(
            run.stdout.contains(&format!("result {result}")),
            "{wrong}: {}",
            run.stdout
        );
    }
}
