//! Green Contexts; events of whole contexts; what devices say of atomics.

use crate::alone::alone;
use crate::c::*;
use crate::graph_types::zeroed;
use crate::test_name;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

const CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: CUresult = 900;
const CUDA_ERROR_INVALID_RESOURCE_TYPE: CUresult = 914;
const CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION: CUresult = 915;
const CUDA_ERROR_STREAM_DETACHED: CUresult = 917;

const SM: c_uint = 1;
const WORKQUEUE_CONFIG: c_uint = 1000;

/// `CUdevResource`: its multiprocessors are at 96.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Resource {
    kind: c_uint,
    own: [u8; 92],
    count: c_uint,
    least: c_uint,
    alignment: c_uint,
    flags: c_uint,
    domain: c_uint,
    rest: [u8; 20],
    next: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    count: c_uint,
    together: c_uint,
    preferred: c_uint,
    flags: c_uint,
    domain: c_uint,
    reserved: [c_uint; 11],
}

pub type CUgreenCtx = *mut c_void;
pub type CUdevResourceDesc = *mut c_void;

functions! {
    cuDeviceGetDevResource(device: CUdevice, resource: *mut Resource, kind: c_uint);
    cuCtxGetDevResource(context: CUcontext, resource: *mut Resource, kind: c_uint);
    cuGreenCtxGetDevResource(green: CUgreenCtx, resource: *mut Resource, kind: c_uint);
    cuStreamGetDevResource(stream: CUstream, resource: *mut Resource, kind: c_uint);
    cuDevSmResourceSplitByCount(
        result: *mut Resource,
        groups: *mut c_uint,
        input: *const Resource,
        remainder: *mut Resource,
        flags: c_uint,
        least: c_uint,
    );
    cuDevSmResourceSplit(
        result: *mut Resource,
        groups: c_uint,
        input: *const Resource,
        remainder: *mut Resource,
        flags: c_uint,
        params: *mut Group,
    );
    cuDevResourceGenerateDesc(desc: *mut CUdevResourceDesc, resources: *mut Resource, count: c_uint);
    cuGreenCtxCreate(green: *mut CUgreenCtx, desc: CUdevResourceDesc, device: CUdevice, flags: c_uint);
    cuGreenCtxDestroy(green: CUgreenCtx);
    cuGreenCtxGetId(green: CUgreenCtx, id: *mut u64);
    cuCtxFromGreenCtx(context: *mut CUcontext, green: CUgreenCtx);
    cuGreenCtxStreamCreate(stream: *mut CUstream, green: CUgreenCtx, flags: c_uint, priority: c_int);
    cuGreenCtxRecordEvent(green: CUgreenCtx, event: CUevent);
    cuGreenCtxWaitEvent(green: CUgreenCtx, event: CUevent);
    cuStreamGetGreenCtx(stream: CUstream, green: *mut CUgreenCtx);
    cuStreamGetCtx = "cuStreamGetCtx_v2" (stream: CUstream, context: *mut CUcontext, green: *mut CUgreenCtx);
    cuStreamGetCtx_v1 = "cuStreamGetCtx" (stream: CUstream, context: *mut CUcontext);
    cuCtxRecordEvent(context: CUcontext, event: CUevent);
    cuCtxWaitEvent(context: CUcontext, event: CUevent);
    cuDeviceGetHostAtomicCapabilities(
        capabilities: *mut c_uint,
        operations: *const c_uint,
        count: c_uint,
        device: CUdevice,
    );
    cuDeviceGetP2PAtomicCapabilities(
        capabilities: *mut c_uint,
        operations: *const c_uint,
        count: c_uint,
        from: CUdevice,
        to: CUdevice,
    );
}

fn whole() -> Resource {
    let mut resource: Resource = zeroed();
    ok(cuInit(0));
    ok(cuDeviceGetDevResource(0, &mut resource, SM));
    resource
}

#[test]
fn a_device_has_multiprocessors_and_queues() {
    let resource = whole();
    let mut count = 0;
    // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    ok(cuDeviceGetAttribute(&mut count, 16, 0));
    assert_eq!((resource.kind, resource.count), (SM, count as c_uint));
    assert!(resource.least > 0 && resource.alignment > 0 && resource.least <= resource.count);
    let mut other: Resource = zeroed();
    ok(cuDeviceGetDevResource(0, &mut other, WORKQUEUE_CONFIG));
    assert_eq!(other.kind, WORKQUEUE_CONFIG);
    assert_eq!(
        cuDeviceGetDevResource(0, &mut other, 7),
        CUDA_ERROR_INVALID_RESOURCE_TYPE
    );
    assert_eq!(
        cuDeviceGetDevResource(0, &mut other, 0),
        CUDA_ERROR_INVALID_RESOURCE_TYPE
    );
    assert_eq!(cuDeviceGetDevResource(99, &mut other, SM), CUDA_ERROR_INVALID_DEVICE);
    assert_eq!(cuDeviceGetDevResource(0, null_mut(), SM), CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn multiprocessors_are_split_into_equal_groups_and_a_rest() {
    let all = whole();
    for least in 1..=all.count {
        let mut groups = 9;
        ok(cuDevSmResourceSplitByCount(
            null_mut(),
            &mut groups,
            &all,
            null_mut(),
            0,
            least,
        ));
        let size = least.max(all.least).div_ceil(all.alignment) * all.alignment;
        assert_eq!(groups, all.count / size);
        if groups == 0 {
            continue;
        }
        let (mut parts, mut rest) = ([zeroed::<Resource>(); 16], zeroed::<Resource>());
        let mut made = 16;
        ok(cuDevSmResourceSplitByCount(
            parts.as_mut_ptr(),
            &mut made,
            &all,
            &mut rest,
            0,
            least,
        ));
        assert_eq!(made, groups);
        assert!(
            parts[..made as usize]
                .iter()
                .all(|part| (part.kind, part.count) == (SM, size))
        );
        assert_eq!(rest.count, all.count - made * size);
        assert_eq!(rest.kind, if rest.count > 0 { SM } else { 0 });
        // Fewer than possible, if fewer are wanted.
        made = 1;
        ok(cuDevSmResourceSplitByCount(
            parts.as_mut_ptr(),
            &mut made,
            &all,
            &mut rest,
            0,
            least,
        ));
        assert_eq!((made, rest.count), (1, all.count - size));
        // A group is not split again.
        let again = cuDevSmResourceSplitByCount(null_mut(), &mut made, &parts[0], null_mut(), 0, 1);
        assert_eq!(again, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    }
    let mut groups = 1;
    let mut split = |input: &Resource, flags, least| {
        cuDevSmResourceSplitByCount(null_mut(), &mut groups, input, null_mut(), flags, least)
    };
    assert_eq!(split(&all, 4, 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(split(&all, 0, all.count + 1), CUDA_ERROR_INVALID_VALUE);
    // Made up by the program.
    assert_eq!(split(&Resource { own: [0; 92], ..all }, 0, 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        split(&Resource { count: 1 << 20, ..all }, 0, 1),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        split(
            &Resource {
                kind: WORKQUEUE_CONFIG,
                ..all
            },
            0,
            1
        ),
        CUDA_ERROR_INVALID_RESOURCE_TYPE
    );
    // Without regard for what belongs together, in twos.
    ok(split(&all, 1, 2));
    assert_eq!(groups, all.count / 2);
}

#[test]
fn groups_of_a_structured_split_are_as_asked_for() {
    let all = whole();
    let group = |count, together, flags| Group {
        count,
        together,
        preferred: 0,
        flags,
        domain: 0,
        reserved: [0; 11],
    };
    let (mut parts, mut rest) = ([zeroed::<Resource>(); 2], zeroed::<Resource>());
    // One of so many in twos, one of what is left.
    let mut params = [group(10, 2, 0), group(0, 2, 1)];
    ok(cuDevSmResourceSplit(
        parts.as_mut_ptr(),
        2,
        &all,
        &mut rest,
        0,
        params.as_mut_ptr(),
    ));
    assert_eq!((parts[0].count, parts[1].count), (10, all.count - 10));
    assert_eq!((params[1].count, rest.kind), (all.count - 10, 0));
    // To ask only.
    let mut params = [group(0, 2, 0)];
    ok(cuDevSmResourceSplit(
        null_mut(),
        1,
        &all,
        null_mut(),
        0,
        params.as_mut_ptr(),
    ));
    assert_eq!(params[0].count, all.count);
    let mut split =
        |mut params: Group, flags| cuDevSmResourceSplit(parts.as_mut_ptr(), 1, &all, null_mut(), flags, &mut params);
    for wrong in [
        group(3, 2, 0),
        group(all.count + 2, 2, 0),
        group(4, 3, 0),
        group(4, 64, 0),
        group(4, 2, 8),
    ] {
        assert_eq!(split(wrong, 0), CUDA_ERROR_INVALID_VALUE, "{wrong:?}");
    }
    assert_eq!(split(group(4, 2, 0), 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(split(group(4, 2, 2), 0), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    // More than there are, together.
    let mut params = [group(all.count, 2, 0), group(2, 2, 0)];
    let result = cuDevSmResourceSplit(parts.as_mut_ptr(), 2, &all, null_mut(), 0, params.as_mut_ptr());
    assert_eq!(result, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

const PTX: &std::ffi::CStr = c".version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 to)
{
    .reg .b64 %to;
    .reg .b32 %v;
    ld.param.u64 %to, [to];
    ld.global.u32 %v, [%to];
    add.u32 %v, %v, 1;
    st.global.u32 [%to], %v;
    ret;
}
";

/// In a process of its own: the primary context is everybody's.
#[test]
fn a_green_context_is_a_part_of_the_primary_one() {
    alone(test_name!(), &[], || {
        let all = whole();
        let (mut part, mut groups, mut desc) = (zeroed::<Resource>(), 1, null_mut());
        ok(cuDevSmResourceSplitByCount(
            &mut part,
            &mut groups,
            &all,
            null_mut(),
            0,
            1,
        ));
        ok(cuDevResourceGenerateDesc(&mut desc, &mut part, 1));
        assert_eq!(
            cuDevResourceGenerateDesc(&mut desc, &mut part, 0),
            CUDA_ERROR_INVALID_VALUE
        );
        let (mut green, mut context, mut primary) = (null_mut(), null_mut(), null_mut());
        assert_eq!(
            cuGreenCtxCreate(&mut green, 0x10 as CUdevResourceDesc, 0, 0),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(cuGreenCtxCreate(&mut green, desc, 0, 2), CUDA_ERROR_INVALID_VALUE);
        ok(cuGreenCtxCreate(&mut green, desc, 0, 1));
        let (mut flags, mut active) = (0, 0);
        ok(cuDevicePrimaryCtxGetState(0, &mut flags, &mut active));
        assert_eq!(active, 1);
        ok(cuCtxFromGreenCtx(&mut context, green));
        ok(cuDevicePrimaryCtxRetain(&mut primary, 0));
        assert!(context != primary && context != green);
        // It is no context by itself.
        assert_eq!(cuCtxSetCurrent(green), CUDA_ERROR_INVALID_CONTEXT);
        assert_eq!(cuCtxDestroy(context), CUDA_ERROR_INVALID_CONTEXT);
        ok(cuCtxSetCurrent(context));
        let mut current = null_mut();
        ok(cuCtxGetCurrent(&mut current));
        assert_eq!(current, context);
        let mut found: Resource = zeroed();
        ok(cuCtxGetDevResource(context, &mut found, SM));
        assert_eq!(found.count, part.count);
        ok(cuCtxGetDevResource(primary, &mut found, SM));
        assert_eq!(found.count, all.count);
        ok(cuGreenCtxGetDevResource(green, &mut found, SM));
        assert_eq!(found.count, part.count);
        let (mut id, mut other) = (0, 0);
        ok(cuGreenCtxGetId(green, &mut id));
        ok(cuGreenCtxGetId(green, &mut other));
        assert!(id != 0 && id == other);
        // Streams: one made for it, one made while it is current.
        let (mut a, mut b) = (null_mut(), null_mut());
        assert_eq!(cuGreenCtxStreamCreate(&mut a, green, 0, 0), CUDA_ERROR_INVALID_VALUE);
        ok(cuGreenCtxStreamCreate(&mut a, green, 1, 0));
        ok(cuStreamCreate(&mut b, 1));
        for stream in [a, b, null_mut()] {
            let (mut of, mut beneath, mut old) = (null_mut(), null_mut(), null_mut());
            ok(cuStreamGetGreenCtx(stream, &mut of));
            assert_eq!(of, green);
            ok(cuStreamGetCtx(stream, &mut beneath, &mut of));
            assert_eq!((beneath, of), (primary, green));
            ok(cuStreamGetCtx_v1(stream, &mut old));
            assert_eq!(old, context);
            ok(cuStreamGetDevResource(stream, &mut found, SM));
            assert_eq!(found.count, part.count);
        }
        assert_eq!(
            cuStreamGetDevResource(a, &mut found, WORKQUEUE_CONFIG),
            CUDA_ERROR_INVALID_RESOURCE_TYPE
        );
        // Code and memory are the primary context's.
        let (mut module, mut function, mut pointer) = (null_mut(), null_mut(), 0);
        ok(cuModuleLoadData(&mut module, PTX.as_ptr().cast()));
        ok(cuModuleGetFunction(&mut function, module, c"add".as_ptr()));
        ok(cuMemAlloc(&mut pointer, 4));
        ok(cuMemsetD32(pointer, 0, 1));
        ok(cuCtxSetCurrent(primary));
        let launch = |stream: CUstream| {
            let mut to = pointer;
            let mut params = [(&raw mut to).cast::<c_void>()];
            cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params.as_mut_ptr(), null_mut())
        };
        let mut event = null_mut();
        ok(cuEventCreate(&mut event, 2));
        for _ in 0..20 {
            ok(launch(a));
            ok(cuGreenCtxRecordEvent(green, event));
            ok(cuStreamWaitEvent(b, event, 0));
            ok(launch(b));
            ok(cuCtxRecordEvent(primary, event));
            ok(cuGreenCtxWaitEvent(green, event));
        }
        ok(cuEventSynchronize(event));
        let mut count = 0_u32;
        ok(cuMemcpyDtoH((&raw mut count).cast(), pointer, 4));
        assert_eq!(count, 40);
        // The end: streams are detached, but can be destroyed.
        ok(cuGreenCtxDestroy(green));
        assert_eq!(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_CONTEXT);
        assert_eq!(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
        for stream in [a, b] {
            assert_eq!(launch(stream), CUDA_ERROR_STREAM_DETACHED);
            ok(cuStreamDestroy(stream));
        }
        ok(cuDevicePrimaryCtxRelease(0));
        ok(cuDevicePrimaryCtxGetState(0, &mut flags, &mut active));
        assert_eq!(active, 0);
    });
}

#[test]
fn events_stand_for_all_that_a_context_has_to_do() {
    let (mut context, mut event, mut streams) = (null_mut(), null_mut(), [null_mut(); 3]);
    ok(cuInit(0));
    ok(cuCtxCreate(&mut context, 0, 0));
    ok(cuEventCreate(&mut event, 2));
    for stream in &mut streams {
        ok(cuStreamCreate(stream, 1));
    }
    let mut pointer = 0;
    ok(cuMemAlloc(&mut pointer, 1 << 20));
    for _ in 0..20 {
        for stream in streams {
            ok(crate::graph_types::cuMemsetD32Async(pointer, 1, 1 << 18, stream));
        }
        ok(cuCtxRecordEvent(context, event));
        ok(cuEventSynchronize(event));
        for stream in streams {
            ok(cuStreamQuery(stream));
        }
        ok(cuCtxWaitEvent(context, event));
    }
    // A stream that is made later waits, too; a recording one is in the way.
    ok(crate::graph_types::cuStreamBeginCapture(streams[0], 1));
    assert_eq!(cuCtxRecordEvent(context, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    let mut graph = null_mut();
    assert_eq!(crate::graph_types::cuStreamEndCapture(streams[0], &mut graph), 901);
    ok(crate::graph_types::cuStreamBeginCapture(streams[0], 1));
    assert_eq!(cuCtxWaitEvent(context, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_eq!(crate::graph_types::cuStreamEndCapture(streams[0], &mut graph), 901);
    assert_eq!(cuCtxRecordEvent(null_mut(), event), CUDA_ERROR_INVALID_CONTEXT);
    assert_eq!(cuCtxWaitEvent(context, null_mut()), CUDA_ERROR_INVALID_HANDLE);
    let mut other = null_mut();
    ok(cuCtxCreate(&mut other, 0, 0));
    assert_eq!(cuCtxRecordEvent(other, event), CUDA_ERROR_INVALID_HANDLE);
    ok(cuCtxDestroy(other));
    ok(cuCtxDestroy(context));
}

#[test]
fn atomics_are_listed_with_what_they_can_do() {
    let operations = [0, 3, 9, 10, 11];
    let mut found = [99; 5];
    ok(cuInit(0));
    ok(cuDeviceGetHostAtomicCapabilities(
        found.as_mut_ptr(),
        operations.as_ptr(),
        5,
        0,
    ));
    // atom.add is signed or not, a reduction too, of 32 or 64 bits; atom.inc of .u32; atom.cas of up to .b128;
    // atom.add of .f32, .f64 and vectors of four .f32; there is no atom.min of .f32.
    assert_eq!(
        found,
        [
            1 | 2 | 4 | 8 | 16,
            2 | 4 | 8,
            1 | 2 | 8 | 16 | 32,
            1 | 4 | 8 | 16 | 64,
            0
        ]
    );
    let wrong = [77];
    let result = cuDeviceGetHostAtomicCapabilities(found.as_mut_ptr(), wrong.as_ptr(), 1, 0);
    assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
    let result = cuDeviceGetHostAtomicCapabilities(null_mut(), wrong.as_ptr(), 1, 0);
    assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
    let result = cuDeviceGetP2PAtomicCapabilities(found.as_mut_ptr(), operations.as_ptr(), 1, 0, 0);
    assert_eq!(result, CUDA_ERROR_INVALID_DEVICE);
    alone(test_name!(), &[("MARGAY_DEVICES", "2")], || {
        let (operations, mut found) = ([5], [99]);
        ok(cuInit(0));
        ok(cuDeviceGetP2PAtomicCapabilities(
            found.as_mut_ptr(),
            operations.as_ptr(),
            1,
            0,
            1,
        ));
        assert_eq!(found, [1 | 2 | 4 | 8 | 16]);
    });
}
