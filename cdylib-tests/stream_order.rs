//! Stream Management: what follows what. A driver that ran everything at once, or in another order, would fail here.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::alone::alone;
use crate::c::*;
use crate::code::*;
use crate::test_name;

type HostFunction = extern "C" fn(*mut c_void);
type StreamCallback = extern "C" fn(CUstream, CUresult, *mut c_void);

functions! {
    cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    cuStreamGetPriority(stream: CUstream, priority: *mut c_int);
    cuStreamGetFlags(stream: CUstream, flags: *mut c_uint);
    cuStreamGetId(stream: CUstream, id: *mut u64);
    cuStreamGetDevice(stream: CUstream, device: *mut CUdevice);
    cuStreamGetCtx(stream: CUstream, context: *mut CUcontext);
    cuLaunchHostFunc(stream: CUstream, function: HostFunction, data: *mut c_void);
    cuStreamAddCallback(stream: CUstream, callback: StreamCallback, data: *mut c_void, flags: c_uint);
    cuMemcpyHtoDAsync = "cuMemcpyHtoDAsync_v2" (to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuMemcpyDtoHAsync = "cuMemcpyDtoHAsync_v2" (to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyDtoDAsync = "cuMemcpyDtoDAsync_v2" (to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
}

const LEGACY: CUstream = 1 as CUstream;
const PER_THREAD: CUstream = 2 as CUstream;
const NON_BLOCKING: c_uint = 1;

const MIX: &str = "
    .visible .entry mix(.param .u64 to, .param .u64 n) {
        .reg .b64 %to, %n, %v;
        ld.param.u64 %to, [to]; ld.param.u64 %n, [n];
        ld.global.u64 %v, [%to];
        mad.lo.u64 %v, %v, 31, %n;
        st.global.u64 [%to], %v;
        ret;
    }";

fn stream(flags: c_uint) -> CUstream {
    let mut stream = null_mut();
    ok(cuStreamCreate(&mut stream, flags));
    stream
}

/// Pinned memory: copies with any other return when they are done.
fn pinned<T>(count: usize) -> &'static mut [T] {
    let mut pointer = null_mut();
    ok(cuMemHostAlloc(&mut pointer, count * size_of::<T>(), 0));
    // SAFETY: as much as was asked for, zeroed, never freed; numbers are what is asked for here.
    unsafe { std::slice::from_raw_parts_mut(pointer.cast(), count) }
}

/// Holds a stream up until it is let go.
#[derive(Clone, Default)]
struct Gate(Arc<AtomicBool>);

impl Gate {
    fn close(stream: CUstream) -> Gate {
        extern "C" fn wait(gate: *mut c_void) {
            // SAFETY: given below, for this call alone.
            let gate = unsafe { Arc::from_raw(gate as *const AtomicBool) };
            while !gate.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        let gate = Gate::default();
        ok(cuLaunchHostFunc(
            stream,
            wait,
            Arc::into_raw(Arc::clone(&gate.0)).cast_mut().cast(),
        ));
        gate
    }

    fn open(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Notes in which order host functions ran.
#[derive(Clone, Default)]
struct Order(Arc<Mutex<Vec<usize>>>);

impl Order {
    fn note(&self, stream: CUstream, what: usize) {
        extern "C" fn note(data: *mut c_void) {
            // SAFETY: given below, for this call alone.
            let (order, what) = *unsafe { Box::from_raw(data.cast::<(Order, usize)>()) };
            order.0.lock().unwrap().push(what);
        }
        let data = Box::into_raw(Box::new((self.clone(), what)));
        ok(cuLaunchHostFunc(stream, note, data.cast()));
    }

    fn seen(&self) -> Vec<usize> {
        self.0.lock().unwrap().clone()
    }
}

/// Long enough for whatever would run out of order.
fn pause() {
    std::thread::sleep(Duration::from_millis(30));
}

#[test]
fn a_stream_runs_one_thing_after_the_other() {
    context();
    let mix = function(module(MIX), "mix");
    let to = words(2);
    let (stream, order) = (stream(NON_BLOCKING), Order::default());
    let gate = Gate::close(stream);
    let mut expected = 0_u64;
    for n in 0..300_u64 {
        let arguments = [to, n];
        let mut pointers = [
            (&raw const arguments[0]).cast_mut().cast(),
            (&raw const arguments[1]).cast_mut().cast(),
        ];
        ok(cuLaunchKernel(
            mix,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            stream,
            pointers.as_mut_ptr(),
            null_mut(),
        ));
        order.note(stream, n as usize);
        expected = expected.wrapping_mul(31).wrapping_add(n);
    }
    let host = pinned::<u64>(1);
    host[0] = 99;
    ok(cuMemcpyDtoHAsync(host.as_mut_ptr().cast(), to, 8, stream));
    pause();
    assert_eq!(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    assert!(order.seen().is_empty());
    gate.open();
    ok(cuStreamSynchronize(stream));
    ok(cuStreamQuery(stream));
    assert_eq!(order.seen(), (0..300).collect::<Vec<_>>());
    assert_eq!(host, [expected]);
    ok(cuStreamDestroy(stream));
}

#[test]
fn streams_do_not_wait_for_each_other_unless_they_are_told_to() {
    context();
    let (a, b, c) = (stream(NON_BLOCKING), stream(NON_BLOCKING), stream(0));
    let (order, gate) = (Order::default(), Gate::close(a));
    order.note(a, 1);
    // Nothing of b and c is in the way of a, nor the other way round.
    for other in [b, c] {
        order.note(other, 2);
        ok(cuStreamSynchronize(other));
    }
    assert_eq!(order.seen(), [2, 2]);
    // Told: by an event, as it was recorded then.
    let mut event = null_mut();
    ok(cuEventCreate(&mut event, 2));
    ok(cuEventRecord(event, a));
    ok(cuStreamWaitEvent(b, event, 0));
    order.note(b, 3);
    let second = Gate::close(a);
    order.note(a, 4);
    pause();
    assert_eq!(order.seen(), [2, 2]);
    assert_eq!(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    gate.open();
    ok(cuStreamSynchronize(b));
    assert_eq!(order.seen(), [2, 2, 1, 3]);
    ok(cuEventQuery(event));
    second.open();
    ok(cuStreamSynchronize(a));
    assert_eq!(order.seen(), [2, 2, 1, 3, 4]);
    // An event that was never recorded holds nobody up; nor does a stream's own.
    let mut never = null_mut();
    ok(cuEventCreate(&mut never, 0));
    ok(cuStreamWaitEvent(a, never, 0));
    ok(cuEventRecord(never, a));
    ok(cuStreamWaitEvent(a, never, 0));
    ok(cuStreamSynchronize(a));
    assert_eq!(cuStreamWaitEvent(a, null_mut(), 0), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuStreamWaitEvent(a, event, 2), CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn the_legacy_stream_and_blocking_ones_wait_for_each_other() {
    context();
    let (blocking, other, free, order) = (stream(0), stream(0), stream(NON_BLOCKING), Order::default());
    // The legacy stream waits for what is in blocking streams.
    let gate = Gate::close(blocking);
    order.note(null_mut(), 1);
    order.note(free, 2);
    ok(cuStreamSynchronize(free));
    pause();
    assert_eq!(order.seen(), [2]);
    // What comes into a blocking stream now waits for the legacy one.
    order.note(other, 3);
    pause();
    assert_eq!(order.seen(), [2]);
    gate.open();
    ok(cuStreamSynchronize(other));
    assert_eq!(order.seen(), [2, 1, 3]);
    // By name, and the thread's own: it is a blocking one, too.
    let gate = Gate::close(LEGACY);
    order.note(PER_THREAD, 4);
    order.note(free, 5);
    ok(cuStreamSynchronize(free));
    pause();
    assert_eq!(order.seen(), [2, 1, 3, 5]);
    gate.open();
    ok(cuCtxSynchronize());
    assert_eq!(order.seen(), [2, 1, 3, 5, 4]);
    // Threads have streams of their own: one is not held up by another.
    let gate = Gate::close(PER_THREAD);
    let context = {
        let mut context = null_mut();
        ok(cuCtxGetCurrent(&mut context));
        context as usize
    };
    let theirs = order.clone();
    std::thread::spawn(move || {
        ok(cuCtxSetCurrent(context as CUcontext));
        theirs.note(PER_THREAD, 6);
        ok(cuStreamSynchronize(PER_THREAD));
    })
    .join()
    .unwrap();
    assert_eq!(order.seen(), [2, 1, 3, 5, 4, 6]);
    gate.open();
    ok(cuStreamSynchronize(PER_THREAD));
}

#[test]
fn copies_are_at_their_place_in_the_stream() {
    context();
    let (a, b) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
    let (first, second) = (pinned::<u32>(10_000), pinned::<u32>(10_000));
    let memory = words(10_000);
    let mut event = null_mut();
    ok(cuEventCreate(&mut event, 2));
    for round in 1..40 {
        first.fill(round);
        let gate = Gate::close(a);
        ok(cuMemcpyHtoDAsync(memory, first.as_ptr().cast(), 40_000, a));
        ok(cuEventRecord(event, a));
        ok(cuStreamWaitEvent(b, event, 0));
        ok(cuMemcpyDtoHAsync(second.as_mut_ptr().cast(), memory, 40_000, b));
        gate.open();
        ok(cuStreamSynchronize(b));
        assert_eq!(second, first);
    }
}

/// Streams of a higher priority come first where not all can run. Which runs at a moment is not promised: only that all run.
#[test]
fn streams_tell_what_they_are() {
    let context = context();
    let mut stream = null_mut();
    for (asked, given) in [(0, 0), (-3, -3), (7, 0), (-100, -5)] {
        ok(cuStreamCreateWithPriority(&mut stream, NON_BLOCKING, asked));
        let (mut priority, mut flags, mut device, mut of) = (9, 9, 9, null_mut());
        ok(cuStreamGetPriority(stream, &mut priority));
        ok(cuStreamGetFlags(stream, &mut flags));
        ok(cuStreamGetDevice(stream, &mut device));
        ok(cuStreamGetCtx(stream, &mut of));
        assert_eq!((priority, flags, device, of), (given, NON_BLOCKING, 0, context));
        ok(cuStreamDestroy(stream));
    }
    let id = |stream| {
        let mut id = 0;
        ok(cuStreamGetId(stream, &mut id));
        id
    };
    let (a, b) = (self::stream(0), self::stream(0));
    assert!(id(a) != id(b) && id(a) != id(LEGACY) && id(null_mut()) == id(LEGACY) && id(PER_THREAD) != id(LEGACY));
    for stray in [0x1234 as CUstream, stream] {
        assert_eq!(cuStreamGetPriority(stray, &mut 0), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuStreamGetFlags(stray, &mut 0), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuStreamGetId(stray, &mut 0), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuStreamGetDevice(stray, &mut 0), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuStreamGetCtx(stray, &mut null_mut()), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuStreamSynchronize(stray), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuStreamQuery(stray), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuStreamDestroy(stray), CUDA_ERROR_INVALID_HANDLE);
    }
    assert_eq!(cuStreamGetPriority(a, null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuStreamGetFlags(a, null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuStreamGetId(a, null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuStreamGetDevice(a, null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuStreamGetCtx(a, null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuStreamCreate(null_mut(), 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuStreamCreate(&mut stream, 2), CUDA_ERROR_INVALID_VALUE);
    for default in [null_mut(), LEGACY, PER_THREAD] {
        assert_eq!(cuStreamDestroy(default), CUDA_ERROR_INVALID_HANDLE);
    }
}

static CALLED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn called(stream: CUstream, status: CUresult, data: *mut c_void) {
    assert_eq!((status, stream as usize), (CUDA_SUCCESS, data as usize));
    // Not from within: this would wait for itself.
    assert_eq!(cuStreamSynchronize(stream), 800);
    CALLED.fetch_add(1, Ordering::AcqRel);
}

#[test]
fn callbacks_come_in_their_turn_and_a_stream_can_go_before_its_work() {
    context();
    let stream = stream(0);
    let gate = Gate::close(stream);
    ok(cuStreamAddCallback(stream, called, stream, 0));
    assert_eq!(cuStreamAddCallback(stream, called, stream, 1), CUDA_ERROR_INVALID_VALUE);
    let order = Order::default();
    order.note(stream, 1);
    pause();
    assert_eq!(CALLED.load(Ordering::Acquire), 0);
    // What is in it still runs.
    ok(cuStreamDestroy(stream));
    gate.open();
    ok(cuCtxSynchronize());
    assert_eq!((CALLED.load(Ordering::Acquire), order.seen()), (1, vec![1]));
}

#[test]
fn a_copy_between_two_devices_in_the_default_stream_is_in_order_with_both() {
    const BYTES: usize = 1 << 20;
    alone(test_name!(), &[("MARGAY_DEVICES", "2")], || {
        ok(cuInit(0));
        let (mut first, mut second) = (null_mut(), null_mut());
        ok(cuDevicePrimaryCtxRetain(&mut first, 0));
        ok(cuDevicePrimaryCtxRetain(&mut second, 1));
        let memory = |context| {
            let mut memory = 0;
            ok(cuCtxSetCurrent(context));
            ok(cuMemAlloc(&mut memory, BYTES));
            ok(cuMemsetD8Async(memory, 1, BYTES, null_mut()));
            ok(cuCtxSynchronize());
            memory
        };
        let (from, to) = (memory(first), memory(second));
        let ends = |memory| {
            let mut bytes = vec![0_u8; BYTES];
            ok(cuMemcpyDtoH(bytes.as_mut_ptr().cast(), memory, BYTES));
            [bytes[0], bytes[BYTES - 1]]
        };
        // The source's device has something to do first, also in a blocking stream of its own.
        for others in [(|| LEGACY) as fn() -> CUstream, || stream(0)] {
            ok(cuCtxSetCurrent(first));
            ok(cuMemsetD8Async(from, 1, BYTES, null_mut()));
            ok(cuCtxSynchronize());
            let busy = others();
            let gate = Gate::close(busy);
            ok(cuMemsetD8Async(from, 2, BYTES, busy));
            ok(cuCtxSetCurrent(second));
            ok(cuMemcpyDtoDAsync(to, from, BYTES, null_mut()));
            pause();
            gate.open();
            assert_eq!(ends(to), [2, 2]);
        }
        // What comes after the copy on the source's device finds it done.
        let gate = Gate::close(LEGACY);
        ok(cuMemcpyDtoDAsync(to, from, BYTES, null_mut()));
        ok(cuCtxSetCurrent(first));
        ok(cuMemsetD8Async(from, 3, BYTES, null_mut()));
        pause();
        gate.open();
        assert_eq!(ends(from), [3, 3]);
        ok(cuCtxSetCurrent(second));
        assert_eq!(ends(to), [2, 2]);
        // In a stream of the program's nothing waits.
        ok(cuCtxSetCurrent(first));
        let gate = Gate::close(LEGACY);
        ok(cuMemsetD8Async(from, 4, BYTES, null_mut()));
        ok(cuCtxSetCurrent(second));
        let own = stream(0);
        ok(cuMemcpyDtoDAsync(to, from, BYTES, own));
        ok(cuStreamSynchronize(own));
        gate.open();
        assert_eq!(ends(to), [3, 3]);
        ok(cuCtxSetCurrent(first));
        ok(cuCtxSynchronize());
    });
}
