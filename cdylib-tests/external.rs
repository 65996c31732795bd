//! External Resource Interoperability: memory and semaphores by file descriptor, in streams and in graphs.

use crate::c::*;
use crate::graph_types::zeroed;
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

const OPAQUE: c_uint = 1;
const DMA_BUF: c_uint = 9;
const TIMELINE: c_uint = 9;
const SIGNAL_NODE: c_uint = 8;
const WAIT_NODE: c_uint = 9;

fn context() -> CUcontext {
    let mut context = null_mut();
    ok(cuInit(0));
    ok(cuCtxCreate(&mut context, 0, 0));
    context
}

fn stream() -> CUstream {
    let mut stream = null_mut();
    ok(cuStreamCreate(&mut stream, 1));
    stream
}

/// A file in memory, as other libraries make them to be shared: twice open, and mapped here.
fn file(bytes: usize) -> (c_int, &'static mut [u8]) {
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

fn event(value: c_uint) -> c_int {
    // SAFETY: only makes a descriptor.
    unsafe { libc::eventfd(value, libc::EFD_NONBLOCK) }
}

fn twin(descriptor: c_int) -> c_int {
    // SAFETY: only makes a descriptor.
    unsafe { libc::dup(descriptor) }
}

fn is_open(descriptor: c_int) -> bool {
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
    let mut map =
        |handle, description: &BufferDescription| cuExternalMemoryGetMappedBuffer(&mut pointer, handle, description);
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
    // SAFETY: as above.
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
