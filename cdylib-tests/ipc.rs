//! Memory Management and Event Management, the calls for sharing between processes: `cuIpc*`.

use crate::basics::{alloc, context};
use crate::c::*;
use crate::peer::{from_hex, peer, to_hex};
use crate::test_name;
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// A handle of 64 bytes, passed by value.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle([u8; 64]);

functions! {
    cuIpcGetMemHandle(handle: *mut Handle, pointer: CUdeviceptr);
    cuIpcOpenMemHandle = "cuIpcOpenMemHandle_v2" (pointer: *mut CUdeviceptr, handle: Handle, flags: c_uint);
    cuIpcOpenMemHandle_v1 = "cuIpcOpenMemHandle" (pointer: *mut CUdeviceptr, handle: Handle, flags: c_uint);
    cuIpcCloseMemHandle(pointer: CUdeviceptr);
    cuIpcGetEventHandle(handle: *mut Handle, event: CUevent);
    cuIpcOpenEventHandle(event: *mut CUevent, handle: Handle);
    cuMemGetAddressRange = "cuMemGetAddressRange_v2" (base: *mut CUdeviceptr, bytes: *mut usize, pointer: CUdeviceptr);
    cuStreamWaitValue32 = "cuStreamWaitValue32_v2" (stream: CUstream, word: CUdeviceptr, value: c_uint, flags: c_uint);
    cuMemAllocAsync(pointer: *mut CUdeviceptr, bytes: usize, stream: CUstream);
}

/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`
const LAZY: c_uint = 1;
const NO_HANDLE: Handle = Handle([0; 64]);
/// `CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING`
const INTERPROCESS: c_uint = 4 | 2;

fn handle_of(pointer: CUdeviceptr) -> Handle {
    let mut handle = NO_HANDLE;
    ok(cuIpcGetMemHandle(&mut handle, pointer));
    handle
}

fn open(handle: Handle) -> CUdeviceptr {
    let mut pointer = 0;
    ok(cuIpcOpenMemHandle(&mut pointer, handle, LAZY));
    pointer
}

fn word_at(pointer: CUdeviceptr) -> u32 {
    let mut word = 0_u32;
    ok(cuMemcpyDtoH((&raw mut word).cast(), pointer, 4));
    word
}

#[test]
fn memory_is_one_in_two_processes() {
    const BYTES: usize = (3 << 20) + 100;
    let mut peer = peer(test_name!(), &[], |other| {
        context();
        let handle = Handle(from_hex(&other.receive()));
        let pointer = open(handle);
        // All of it, and not a byte more.
        let (mut base, mut bytes) = (0, 0);
        ok(cuMemGetAddressRange(&mut base, &mut bytes, pointer + 5));
        assert_eq!((base, bytes), (pointer, BYTES));
        assert_eq!((word_at(pointer), word_at(pointer + 4000)), (0x0101_0101, 0x0202_0202));
        assert_eq!(cuMemsetD8(pointer, 0, BYTES + 4096), CUDA_ERROR_INVALID_VALUE);
        // The same again is the same address, and is closed as often.
        assert_eq!(open(handle), pointer);
        let mut again = 0;
        ok(cuIpcOpenMemHandle_v1(&mut again, handle, LAZY));
        assert_eq!(again, pointer);
        ok(cuIpcCloseMemHandle(pointer));
        ok(cuIpcCloseMemHandle(pointer));
        // It is not this process's to free, nor to hand on.
        assert_eq!(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
        let mut handed_on = NO_HANDLE;
        assert_eq!(cuIpcGetMemHandle(&mut handed_on, pointer), CUDA_ERROR_INVALID_VALUE);
        // Nor a second context's of the same device (manual).
        let first = {
            let mut current = null_mut();
            ok(cuCtxGetCurrent(&mut current));
            current
        };
        let second = context();
        assert_eq!(cuIpcOpenMemHandle(&mut again, handle, LAZY), CUDA_ERROR_INVALID_CONTEXT);
        ok(cuCtxDestroy(second));
        ok(cuCtxSetCurrent(first));
        ok(cuMemsetD8(pointer + 4000, 3, 8));
        ok(cuCtxSynchronize());
        other.send("written");
        assert_eq!(other.receive(), "more");
        assert_eq!(word_at(pointer + (BYTES - 4) as u64), 0x0404_0404);
        ok(cuIpcCloseMemHandle(pointer));
        assert_eq!(cuIpcCloseMemHandle(pointer), CUDA_ERROR_INVALID_VALUE);
        let mut byte = 0_u8;
        assert_eq!(
            cuMemcpyDtoH((&raw mut byte).cast(), pointer, 1),
            CUDA_ERROR_INVALID_VALUE
        );
    });
    let context = context();
    let pointer = alloc(BYTES);
    ok(cuMemsetD8(pointer, 1, 4000));
    ok(cuMemsetD8(pointer + 4000, 2, BYTES - 4000));
    let handle = handle_of(pointer);
    // An address within it stands for all of it; more handles are the same.
    assert_eq!(handle_of(pointer + 77), handle);
    peer.send(&to_hex(&handle.0));
    assert_eq!(peer.receive(), "written");
    assert_eq!(word_at(pointer + 4000), 0x0303_0303);
    assert_eq!(word_at(pointer + 4008), 0x0202_0202);
    ok(cuMemsetD8(pointer, 4, BYTES));
    ok(cuCtxSynchronize());
    peer.send("more");
    peer.finish();
    // What is freed and allocated again is other memory, under another handle.
    ok(cuMemFree(pointer));
    let next = alloc(BYTES);
    assert_ne!(handle_of(next), handle);
    ok(cuCtxDestroy(context));
}

/// Adds 1 to each of 1024 words, `rounds` times.
const ADD: &[u8] = b".version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 words, .param .u32 rounds)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [words];
    ld.param.u32 %r0, [rounds];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r1, %r2, 256, %r1;
    mul.wide.u32 %d1, %r1, 4;
    add.u64 %d0, %d0, %d1;
loop:
    ld.volatile.global.u32 %r3, [%d0];
    add.u32 %r3, %r3, 1;
    st.volatile.global.u32 [%d0], %r3;
    sub.u32 %r0, %r0, 1;
    setp.ne.u32 %p, %r0, 0;
    @%p bra loop;
    ret;
}
\0";

#[test]
fn a_handle_of_memory_in_use_loses_no_write() {
    const ROUNDS: u32 = 20_000;
    let context = context();
    let (mut module, mut function) = (null_mut(), null_mut());
    ok(cuModuleLoadData(&mut module, ADD.as_ptr().cast()));
    ok(cuModuleGetFunction(&mut function, module, c"add".as_ptr()));
    let mut streams = [null_mut(); 3];
    let pointers = [0; 3].map(|_| alloc(4096));
    for (stream, pointer) in streams.iter_mut().zip(pointers) {
        ok(cuMemsetD32(pointer, 0, 1024));
        ok(cuStreamCreate(stream, 1));
    }
    ok(cuCtxSynchronize());
    for _ in 0..4 {
        for (stream, pointer) in streams.iter().zip(&pointers) {
            let (mut pointer, mut rounds) = (*pointer, ROUNDS);
            let mut parameters: [*mut c_void; 2] = [(&raw mut pointer).cast(), (&raw mut rounds).cast()];
            ok(cuLaunchKernel(
                function,
                4,
                1,
                1,
                256,
                1,
                1,
                0,
                *stream,
                parameters.as_mut_ptr(),
                null_mut(),
            ));
        }
    }
    for pointer in pointers {
        handle_of(pointer);
    }
    ok(cuCtxSynchronize());
    for pointer in pointers {
        let mut words = [0_u32; 1024];
        ok(cuMemcpyDtoH(words.as_mut_ptr().cast(), pointer, 4096));
        assert!(words.iter().all(|word| *word == 4 * ROUNDS), "{words:?}");
    }
    ok(cuCtxDestroy(context));
}

#[test]
fn what_is_no_handle_of_living_memory_is_refused() {
    let mut peer = peer(test_name!(), &[], |other| {
        context();
        let handle = Handle(from_hex(&other.receive()));
        let mut pointer = 0;
        let mut refused = |handle, expected| {
            assert_eq!(cuIpcOpenMemHandle(&mut pointer, handle, LAZY), expected);
        };
        refused(NO_HANDLE, CUDA_ERROR_INVALID_HANDLE);
        refused(Handle([0xff; 64]), CUDA_ERROR_INVALID_HANDLE);
        // Any byte of it that is not as it was: it leads nowhere, or it is not a handle.
        for byte in 0..40 {
            let mut forged = handle;
            forged.0[byte] ^= 0x40;
            let result = cuIpcOpenMemHandle(&mut pointer, forged, LAZY);
            match byte {
                // Its size: less than there is does not harm.
                32..40 if result == CUDA_SUCCESS => ok(cuIpcCloseMemHandle(pointer)),
                _ => assert_eq!(result, CUDA_ERROR_INVALID_HANDLE, "byte {byte}"),
            }
        }
        // It is not an event's.
        let mut event = null_mut();
        assert_eq!(cuIpcOpenEventHandle(&mut event, handle), CUDA_ERROR_INVALID_HANDLE);
        // Flags must be given (manual), and a place for the answer.
        assert_eq!(cuIpcOpenMemHandle(&mut pointer, handle, 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuIpcOpenMemHandle(&mut pointer, handle, 2), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuIpcOpenMemHandle(null_mut(), handle, LAZY), CUDA_ERROR_INVALID_VALUE);
        // It opens as it is, and stays open when its origin frees it.
        let pointer = open(handle);
        other.send("open");
        assert_eq!(other.receive(), "freed");
        assert_eq!(word_at(pointer), 0x0505_0505);
        ok(cuIpcCloseMemHandle(pointer));
        let mut again = 0;
        assert_eq!(cuIpcOpenMemHandle(&mut again, handle, LAZY), CUDA_ERROR_INVALID_HANDLE);
        // Without a context nothing opens.
        ok(cuCtxSetCurrent(null_mut()));
        assert_eq!(cuIpcOpenMemHandle(&mut again, handle, LAZY), CUDA_ERROR_INVALID_CONTEXT);
        assert_eq!(cuIpcCloseMemHandle(pointer), CUDA_ERROR_INVALID_CONTEXT);
    });
    let context = context();
    let pointer = alloc(8192);
    ok(cuMemsetD8(pointer, 5, 8192));
    ok(cuCtxSynchronize());
    let handle = handle_of(pointer);
    peer.send(&to_hex(&handle.0));
    assert_eq!(peer.receive(), "open");
    // In its own process it is not opened.
    let mut own = 0;
    assert_eq!(cuIpcOpenMemHandle(&mut own, handle, LAZY), CUDA_ERROR_INVALID_CONTEXT);
    ok(cuMemFree(pointer));
    peer.send("freed");
    peer.finish();

    // Only memory of cuMemAlloc has handles.
    let mut none = NO_HANDLE;
    let mut managed = 0;
    ok(cuMemAllocManaged(&mut managed, 4096, 1));
    let mut host = null_mut();
    ok(cuMemHostAlloc(&mut host, 4096, 0));
    let mut pooled = 0;
    ok(cuMemAllocAsync(&mut pooled, 4096, null_mut()));
    for pointer in [managed, host as u64, pooled, &raw const none as u64, 0, pointer] {
        assert_eq!(cuIpcGetMemHandle(&mut none, pointer), CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(cuIpcGetMemHandle(null_mut(), pointer), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemFree(pooled));
    ok(cuMemFree(managed));
    ok(cuMemFreeHost(host));
    ok(cuCtxDestroy(context));
}

#[test]
fn a_handle_ends_with_its_process() {
    let mut peer = peer(test_name!(), &[], |other| {
        context();
        other.send(&to_hex(&handle_of(alloc(4096)).0));
        let mut event = null_mut();
        ok(cuEventCreate(&mut event, INTERPROCESS));
        let mut handle = NO_HANDLE;
        ok(cuIpcGetEventHandle(&mut handle, event));
        other.send(&to_hex(&handle.0));
        other.receive();
    });
    let context = context();
    let memory = Handle(from_hex(&peer.receive()));
    let event = Handle(from_hex(&peer.receive()));
    peer.kill();
    let (mut pointer, mut opened) = (0, null_mut());
    assert_eq!(
        cuIpcOpenMemHandle(&mut pointer, memory, LAZY),
        CUDA_ERROR_INVALID_HANDLE
    );
    assert_eq!(cuIpcOpenEventHandle(&mut opened, event), CUDA_ERROR_INVALID_HANDLE);
    ok(cuCtxDestroy(context));
}

/// An event, and a stream that stands still until a word of host memory is 1.
fn held_stream() -> (CUstream, *mut u32) {
    let (mut stream, mut word) = (null_mut(), null_mut());
    ok(cuStreamCreate(&mut stream, 1));
    ok(cuMemHostAlloc(&mut word, 4, 0));
    let word = word.cast::<u32>();
    // SAFETY: four bytes of ours.
    unsafe { word.write_volatile(0) };
    ok(cuStreamWaitValue32(stream, word as u64, 1, 0));
    (stream, word)
}

#[test]
fn an_event_of_one_process_holds_up_another() {
    let mut peer = peer(test_name!(), &[], |other| {
        context();
        let mut event = null_mut();
        ok(cuIpcOpenEventHandle(&mut event, Handle(from_hex(&other.receive()))));
        let pointer = open(Handle(from_hex(&other.receive())));
        // Not recorded yet: nothing to wait for.
        ok(cuEventQuery(event));
        ok(cuEventSynchronize(event));
        other.send("opened");
        assert_eq!(other.receive(), "recorded");
        assert_eq!(cuEventQuery(event), CUDA_ERROR_NOT_READY);
        // It takes no times.
        let mut time = 0.0;
        assert_eq!(cuEventElapsedTime(&mut time, event, event), CUDA_ERROR_INVALID_HANDLE);
        let mut stream = null_mut();
        ok(cuStreamCreate(&mut stream, 1));
        ok(cuStreamWaitEvent(stream, event, 0));
        let copy = alloc(4);
        let mut word = 0_u32;
        assert_eq!(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
        other.send("waiting");
        ok(cuStreamSynchronize(stream));
        ok(cuEventQuery(event));
        ok(cuMemcpyDtoD(copy, pointer, 4));
        ok(cuMemcpyDtoH((&raw mut word).cast(), copy, 4));
        assert_eq!(word, 0x0707_0707);
        // And the other way round.
        let (held, release) = held_stream();
        ok(cuEventRecord(event, held));
        assert_eq!(cuEventQuery(event), CUDA_ERROR_NOT_READY);
        other.send("recorded");
        assert_eq!(other.receive(), "seen");
        // SAFETY: held_stream's word.
        unsafe { release.write_volatile(1) };
        ok(cuEventSynchronize(event));
        assert_eq!(other.receive(), "done");
        ok(cuEventDestroy(event));
    });
    let context = context();
    let (mut event, mut handle) = (null_mut(), NO_HANDLE);
    ok(cuEventCreate(&mut event, INTERPROCESS));
    ok(cuIpcGetEventHandle(&mut handle, event));
    let pointer = alloc(4);
    ok(cuMemsetD8(pointer, 6, 4));
    peer.send(&to_hex(&handle.0));
    peer.send(&to_hex(&handle_of(pointer).0));
    assert_eq!(peer.receive(), "opened");
    let (stream, release) = held_stream();
    ok(cuMemsetD8Async(pointer, 7, 4, stream));
    ok(cuEventRecord(event, stream));
    peer.send("recorded");
    assert_eq!(peer.receive(), "waiting");
    assert_eq!(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    // SAFETY: held_stream's word.
    unsafe { release.write_volatile(1) };
    ok(cuEventSynchronize(event));
    assert_eq!(peer.receive(), "recorded");
    assert_eq!(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    peer.send("seen");
    ok(cuEventSynchronize(event));
    ok(cuEventQuery(event));
    peer.send("done");
    peer.finish();
    ok(cuEventDestroy(event));

    // Only interprocess events have handles, and only other processes open them.
    ok(cuEventCreate(&mut event, 2));
    assert_eq!(cuIpcGetEventHandle(&mut handle, event), CUDA_ERROR_INVALID_HANDLE);
    // Warp tells by the handle that there is none.
    assert_eq!(handle.0, NO_HANDLE.0);
    assert_eq!(cuIpcGetEventHandle(&mut handle, null_mut()), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuIpcGetEventHandle(null_mut(), event), CUDA_ERROR_INVALID_VALUE);
    ok(cuEventDestroy(event));
    assert_eq!(cuEventCreate(&mut event, 4), CUDA_ERROR_INVALID_VALUE);
    ok(cuEventCreate(&mut event, INTERPROCESS));
    ok(cuIpcGetEventHandle(&mut handle, event));
    let mut own = null_mut();
    assert_eq!(cuIpcOpenEventHandle(&mut own, handle), CUDA_ERROR_INVALID_CONTEXT);
    assert_eq!(cuIpcOpenEventHandle(&mut own, NO_HANDLE), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuIpcOpenEventHandle(null_mut(), handle), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxDestroy(context));
}

#[test]
fn an_event_whose_process_dies_holds_up_nobody() {
    let mut peer = peer(test_name!(), &[], |other| {
        context();
        let mut event = null_mut();
        ok(cuIpcOpenEventHandle(&mut event, Handle(from_hex(&other.receive()))));
        let (held, _) = held_stream();
        ok(cuEventRecord(event, held));
        other.send("recorded");
        other.receive();
    });
    let context = context();
    let (mut event, mut handle) = (null_mut(), NO_HANDLE);
    ok(cuEventCreate(&mut event, INTERPROCESS));
    ok(cuIpcGetEventHandle(&mut handle, event));
    peer.send(&to_hex(&handle.0));
    assert_eq!(peer.receive(), "recorded");
    let mut stream = null_mut();
    ok(cuStreamCreate(&mut stream, 1));
    ok(cuStreamWaitEvent(stream, event, 0));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    peer.kill();
    let began = Instant::now();
    ok(cuStreamSynchronize(stream));
    ok(cuEventSynchronize(event));
    ok(cuEventQuery(event));
    assert!(began.elapsed() < Duration::from_secs(5));
    ok(cuCtxDestroy(context));
}
