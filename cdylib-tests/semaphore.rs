//! External Resource Interoperability: semaphores by file descriptor, in streams and in graphs.

use crate::basics::{context, stream};
use crate::c::*;
use crate::external::{OPAQUE, event, file, is_open};
use crate::graph_types::zeroed;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;

const CUDA_ERROR_NOT_SUPPORTED: CUresult = 801;

/// `CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SemaphoreDescription {
    kind: c_uint,
    padding: c_uint,
    descriptor: c_int,
    rest: [u32; 3],
    flags: c_uint,
    reserved: [c_uint; 16],
}

/// `CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS` and `…_WAIT_PARAMS`: the value is the first word of both.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Step {
    value: c_ulonglong,
    rest: [c_uint; 16],
    flags: c_uint,
    reserved: [c_uint; 17],
}

/// `CUDA_EXT_SEM_SIGNAL_NODE_PARAMS`, `CUDA_EXT_SEM_WAIT_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    semaphores: *mut *mut c_void,
    steps: *const Step,
    count: c_uint,
}

/// `CUgraphNodeParams` of such a node.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AnyNode {
    kind: c_uint,
    reserved: [c_uint; 3],
    steps: Steps,
    context: CUcontext,
    rest: [u64; 26],
}

functions! {
    cuImportExternalSemaphore(semaphore: *mut *mut c_void, description: *const SemaphoreDescription);
    cuDestroyExternalSemaphore(semaphore: *mut c_void);
    cuSignalExternalSemaphoresAsync(
        semaphores: *const *mut c_void,
        steps: *const Step,
        count: c_uint,
        stream: CUstream,
    );
    cuWaitExternalSemaphoresAsync(
        semaphores: *const *mut c_void,
        steps: *const Step,
        count: c_uint,
        stream: CUstream,
    );
    cuGraphAddExternalSemaphoresSignalNode(
        node: *mut *mut c_void,
        graph: *mut c_void,
        before: *const *mut c_void,
        count: usize,
        params: *const Steps,
    );
    cuGraphAddExternalSemaphoresWaitNode(
        node: *mut *mut c_void,
        graph: *mut c_void,
        before: *const *mut c_void,
        count: usize,
        params: *const Steps,
    );
    cuGraphExternalSemaphoresSignalNodeGetParams(node: *mut c_void, params: *mut Steps);
    cuGraphExternalSemaphoresSignalNodeSetParams(node: *mut c_void, params: *const Steps);
    cuGraphExternalSemaphoresWaitNodeGetParams(node: *mut c_void, params: *mut Steps);
    cuGraphExternalSemaphoresWaitNodeSetParams(node: *mut c_void, params: *const Steps);
    cuGraphExecExternalSemaphoresSignalNodeSetParams(
        exec: *mut c_void,
        node: *mut c_void,
        params: *const Steps,
    );
    cuGraphExecExternalSemaphoresWaitNodeSetParams(exec: *mut c_void, node: *mut c_void, params: *const Steps);
    cuGraphAddNode = "cuGraphAddNode_v2" (
        node: *mut *mut c_void,
        graph: *mut c_void,
        before: *const *mut c_void,
        data: *const c_void,
        count: usize,
        params: *mut AnyNode,
    );
    cuGraphNodeGetParams(node: *mut c_void, params: *mut AnyNode);
    cuGraphNodeSetParams(node: *mut c_void, params: *mut AnyNode);
    cuGraphNodeGetType(node: *mut c_void, kind: *mut c_uint);
    cuGraphGetNodes(graph: *mut c_void, nodes: *mut *mut c_void, count: *mut usize);
    cuGraphCreate(graph: *mut *mut c_void, flags: c_uint);
    cuGraphInstantiate = "cuGraphInstantiateWithFlags" (
        exec: *mut *mut c_void,
        graph: *mut c_void,
        flags: c_ulonglong,
    );
    cuGraphLaunch(exec: *mut c_void, stream: CUstream);
    cuStreamBeginCapture = "cuStreamBeginCapture_v2" (stream: CUstream, mode: c_uint);
    cuStreamEndCapture(stream: CUstream, graph: *mut *mut c_void);
}

const TIMELINE: c_uint = 9;
const SIGNAL_NODE: c_uint = 8;
const WAIT_NODE: c_uint = 9;

fn twin(descriptor: c_int) -> c_int {
    // SAFETY: only makes a descriptor.
    unsafe { libc::dup(descriptor) }
}

fn semaphore(kind: c_uint, descriptor: c_int) -> *mut c_void {
    let description = SemaphoreDescription {
        kind,
        descriptor,
        ..zeroed()
    };
    let mut semaphore = null_mut();
    ok(cuImportExternalSemaphore(&mut semaphore, &description));
    semaphore
}

fn step(value: u64) -> Step {
    Step { value, ..zeroed() }
}

fn signal(semaphore: *mut c_void, value: u64, stream: CUstream) {
    ok(cuSignalExternalSemaphoresAsync(&semaphore, &step(value), 1, stream));
}

fn wait(semaphore: *mut c_void, value: u64, stream: CUstream) {
    ok(cuWaitExternalSemaphoresAsync(&semaphore, &step(value), 1, stream));
}

/// What an event holds; `None`: nothing.
fn take(descriptor: c_int) -> Option<u64> {
    let mut value = 0_u64;
    // SAFETY: eight bytes.
    let read = unsafe { libc::read(descriptor, (&raw mut value).cast(), 8) };
    (read == 8).then_some(value)
}

fn give(descriptor: c_int) {
    let one = 1_u64;
    // SAFETY: eight bytes.
    assert_eq!(unsafe { libc::write(descriptor, (&raw const one).cast(), 8) }, 8);
}

#[test]
fn a_binary_semaphore_is_an_event_of_the_system() {
    let context = context();
    let (stream, outside) = (stream(), event(0));
    let handle = semaphore(OPAQUE, twin(outside));
    // Others see a signal when the stream has come to it.
    signal(handle, 0, stream);
    ok(cuStreamSynchronize(stream));
    assert_eq!(take(outside), Some(1));
    assert_eq!(take(outside), None);
    // A stream waits until others signal, and takes the signal.
    wait(handle, 0, stream);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    give(outside);
    ok(cuStreamSynchronize(stream));
    assert_eq!(take(outside), None);
    // Two streams, one behind the other; a signal that was there counts.
    let other = self::stream();
    wait(handle, 0, other);
    signal(handle, 0, stream);
    ok(cuStreamSynchronize(other));
    // What is queued goes on when the handle is gone.
    wait(handle, 0, stream);
    ok(cuDestroyExternalSemaphore(handle));
    give(outside);
    ok(cuStreamSynchronize(stream));
    assert_eq!(
        cuSignalExternalSemaphoresAsync(&handle, &step(0), 1, stream),
        CUDA_ERROR_INVALID_HANDLE
    );
    assert_eq!(cuDestroyExternalSemaphore(handle), CUDA_ERROR_INVALID_HANDLE);
    ok(cuCtxDestroy(context));
}

#[test]
fn a_timeline_is_a_word_of_shared_memory() {
    let context = context();
    let (stream, (descriptor, shared)) = (stream(), file(4096));
    // SAFETY: eight bytes of the file, aligned.
    let value = unsafe { &*(shared.as_ptr() as *const std::sync::atomic::AtomicU64) };
    let order = std::sync::atomic::Ordering::SeqCst;
    let handle = semaphore(TIMELINE, descriptor);
    signal(handle, 5, stream);
    ok(cuStreamSynchronize(stream));
    assert_eq!(value.load(order), 5);
    // Reached already, then not yet.
    wait(handle, 5, stream);
    wait(handle, 3, stream);
    ok(cuStreamSynchronize(stream));
    wait(handle, 1 << 40, stream);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    value.store((1 << 40) - 1, order);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    value.store((1 << 40) + 1, order);
    ok(cuStreamSynchronize(stream));
    // Several in one call, in their order.
    let second = semaphore(TIMELINE, file(4096).0);
    let both = [handle, second];
    let steps = [step(u64::MAX - 1), step(7)];
    ok(cuSignalExternalSemaphoresAsync(
        both.as_ptr(),
        steps.as_ptr(),
        2,
        stream,
    ));
    ok(cuWaitExternalSemaphoresAsync(
        both.as_ptr(),
        steps.as_ptr(),
        2,
        null_mut(),
    ));
    ok(cuCtxSynchronize());
    assert_eq!(value.load(order), u64::MAX - 1);
    ok(cuCtxDestroy(context));
}

#[test]
fn semaphores_are_checked() {
    let context = context();
    let (stream, descriptor) = (stream(), event(0));
    let good = SemaphoreDescription {
        kind: OPAQUE,
        descriptor,
        ..zeroed()
    };
    let mut reserved = good;
    reserved.reserved[3] = 1;
    let (plain, _) = file(4096);
    let mut handle = null_mut();
    for (description, error) in [
        (SemaphoreDescription { kind: 0, ..good }, CUDA_ERROR_INVALID_VALUE),
        (SemaphoreDescription { kind: 11, ..good }, CUDA_ERROR_INVALID_VALUE),
        (SemaphoreDescription { flags: 1, ..good }, CUDA_ERROR_INVALID_VALUE),
        (reserved, CUDA_ERROR_INVALID_VALUE),
        (
            SemaphoreDescription { descriptor: -1, ..good },
            CUDA_ERROR_INVALID_HANDLE,
        ),
        (
            SemaphoreDescription {
                descriptor: plain,
                ..good
            },
            CUDA_ERROR_NOT_SUPPORTED,
        ),
        (
            SemaphoreDescription { kind: TIMELINE, ..good },
            CUDA_ERROR_NOT_SUPPORTED,
        ),
    ] {
        let result = cuImportExternalSemaphore(&mut handle, &description);
        assert_eq!(result, error, "{description:?}");
    }
    for kind in [2, 3, 4, 5, 6, 7, 8, 10] {
        assert_eq!(
            cuImportExternalSemaphore(&mut handle, &SemaphoreDescription { kind, ..good }),
            CUDA_ERROR_NOT_SUPPORTED
        );
    }
    assert!(is_open(descriptor) && is_open(plain));
    assert_eq!(cuImportExternalSemaphore(null_mut(), &good), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuImportExternalSemaphore(&mut handle, std::ptr::null()),
        CUDA_ERROR_INVALID_VALUE
    );
    let handle = semaphore(OPAQUE, descriptor);
    let one = step(0);
    let skip = Step { flags: 1, ..one };
    let nobody: CUstream = (&raw const one).cast_mut().cast();
    type Call = fn(*const *mut c_void, *const Step, c_uint, CUstream) -> CUresult;
    let calls: [Call; 2] = [cuSignalExternalSemaphoresAsync, cuWaitExternalSemaphoresAsync];
    for call in calls {
        assert_eq!(call(&handle, &one, 0, stream), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(call(std::ptr::null(), &one, 1, stream), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(call(&handle, std::ptr::null(), 1, stream), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(call(&null_mut(), &one, 1, stream), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(call(&handle, &one, 1, nobody), CUDA_ERROR_INVALID_HANDLE);
        // The flags are for NvSciSync.
        assert_eq!(call(&handle, &skip, 1, stream), CUDA_ERROR_INVALID_VALUE);
    }
    ok(cuCtxDestroy(context));
}

#[test]
fn graphs_signal_and_wait() {
    let context = context();
    let (stream, (descriptor, shared)) = (stream(), file(4096));
    // SAFETY: eight bytes of the file, aligned.
    let value = unsafe { &*(shared.as_ptr() as *const std::sync::atomic::AtomicU64) };
    let order = std::sync::atomic::Ordering::SeqCst;
    let mut handles = [semaphore(TIMELINE, descriptor)];
    let steps = |of: &[Step], handles: &mut [*mut c_void]| Steps {
        semaphores: handles.as_mut_ptr(),
        steps: of.as_ptr(),
        count: of.len() as c_uint,
    };
    let (three, four, nine) = ([step(3)], [step(4)], [step(9)]);
    // Recorded: a wait for 3, then a signal of 4.
    let (mut graph, mut exec) = (null_mut(), null_mut());
    ok(cuStreamBeginCapture(stream, 2));
    wait(handles[0], 3, stream);
    signal(handles[0], 4, stream);
    ok(cuStreamEndCapture(stream, &mut graph));
    let mut nodes = [null_mut(); 2];
    let mut count = 2;
    ok(cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count));
    assert_eq!(count, 2);
    nodes.sort_by_key(|node| {
        let mut kind = 0;
        ok(cuGraphNodeGetType(*node, &mut kind));
        kind
    });
    let [signal_node, wait_node] = nodes;
    let (mut signals, mut waits): (Steps, Steps) = (zeroed(), zeroed());
    ok(cuGraphExternalSemaphoresSignalNodeGetParams(signal_node, &mut signals));
    ok(cuGraphExternalSemaphoresWaitNodeGetParams(wait_node, &mut waits));
    // SAFETY: one of each, as they say.
    unsafe {
        assert_eq!(
            (signals.count, *signals.semaphores, (*signals.steps).value),
            (1, handles[0], 4)
        );
        assert_eq!(
            (waits.count, *waits.semaphores, (*waits.steps).value),
            (1, handles[0], 3)
        );
    }
    assert_eq!(
        cuGraphExternalSemaphoresWaitNodeGetParams(signal_node, &mut waits),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuGraphInstantiate(&mut exec, graph, 0));
    let run = |exec, from: u64| {
        value.store(from, order);
        ok(cuGraphLaunch(exec, stream));
        ok(cuStreamSynchronize(stream));
        value.load(order)
    };
    assert_eq!(run(exec, 3), 4);
    value.store(0, order);
    ok(cuGraphLaunch(exec, stream));
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    value.store(3, order);
    ok(cuStreamSynchronize(stream));
    assert_eq!(value.load(order), 4);
    // Changed in the graph that runs, and in the one that was recorded.
    let change = steps(&nine, &mut handles);
    ok(cuGraphExecExternalSemaphoresSignalNodeSetParams(
        exec,
        signal_node,
        &change,
    ));
    assert_eq!(run(exec, 3), 9);
    ok(cuGraphExecExternalSemaphoresWaitNodeSetParams(
        exec,
        wait_node,
        &steps(&four, &mut handles),
    ));
    assert_eq!(run(exec, 4), 9);
    ok(cuGraphExternalSemaphoresSignalNodeSetParams(signal_node, &change));
    ok(cuGraphExternalSemaphoresWaitNodeSetParams(
        wait_node,
        &steps(&three, &mut handles),
    ));
    ok(cuGraphExternalSemaphoresSignalNodeGetParams(signal_node, &mut signals));
    // SAFETY: the call has set `steps` to what the node keeps, until the node is changed or ends.
    assert_eq!(unsafe { (*signals.steps).value }, 9);
    let two = [step(1), step(2)];
    let mut twice = [handles[0]; 2];
    for (result, error) in [
        (
            cuGraphExecExternalSemaphoresSignalNodeSetParams(exec, signal_node, &steps(&two, &mut twice)),
            CUDA_ERROR_INVALID_VALUE,
        ),
        (
            cuGraphExecExternalSemaphoresSignalNodeSetParams(exec, wait_node, &change),
            CUDA_ERROR_INVALID_VALUE,
        ),
        (
            cuGraphExternalSemaphoresSignalNodeSetParams(wait_node, &change),
            CUDA_ERROR_INVALID_VALUE,
        ),
        (
            cuGraphExternalSemaphoresSignalNodeSetParams(signal_node, &steps(&[], &mut handles)),
            CUDA_ERROR_INVALID_VALUE,
        ),
        (
            cuGraphExternalSemaphoresWaitNodeSetParams(wait_node, &steps(&three, &mut [null_mut()])),
            CUDA_ERROR_INVALID_HANDLE,
        ),
    ] {
        assert_eq!(result, error);
    }

    // Made node by node, and by the call for all types.
    let mut made = null_mut();
    ok(cuGraphCreate(&mut graph, 0));
    ok(cuGraphAddExternalSemaphoresWaitNode(
        &mut made,
        graph,
        std::ptr::null(),
        0,
        &steps(&three, &mut handles),
    ));
    let mut last = null_mut();
    ok(cuGraphAddExternalSemaphoresSignalNode(
        &mut last,
        graph,
        &made,
        1,
        &steps(&four, &mut handles),
    ));
    let mut any = AnyNode {
        kind: SIGNAL_NODE,
        steps: steps(&nine, &mut handles),
        ..zeroed()
    };
    ok(cuGraphAddNode(&mut made, graph, &last, std::ptr::null(), 1, &mut any));
    any.kind = WAIT_NODE;
    ok(cuGraphAddNode(&mut last, graph, &made, std::ptr::null(), 1, &mut any));
    ok(cuGraphInstantiate(&mut exec, graph, 0));
    assert_eq!(run(exec, 3), 9);
    let mut found: AnyNode = zeroed();
    ok(cuGraphNodeGetParams(made, &mut found));
    assert_eq!(
        (found.kind, found.steps.count, found.context),
        (SIGNAL_NODE, 1, context)
    );
    ok(cuGraphNodeGetParams(last, &mut found));
    assert_eq!((found.kind, found.steps.count), (WAIT_NODE, 1));
    any.steps = steps(&four, &mut handles);
    ok(cuGraphNodeSetParams(last, &mut any));
    any.rest[0] = 1;
    assert_eq!(cuGraphNodeSetParams(last, &mut any), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxDestroy(context));
}
