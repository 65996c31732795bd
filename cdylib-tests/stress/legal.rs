//! Legal sequences. Each thread has buffers of its own and a model of each: what its words will be once everything asked
//! for so far has happened in the order in which it was asked for. The calls go to streams that all threads share, and
//! are ordered no more than a correct program must: by the stream itself, by events, by values in memory, by the host's
//! waiting, or by the rules of the default stream. Operations do not commute, and kernels take times of their own, so
//! that a lost copy, one too early or one too late shows in the words that are read back.

use crate::alone::alone;
use crate::c::*;
use crate::random::Random;
use std::collections::HashMap;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, RwLock};

functions! {
    cuMemsetD32Async(to: CUdeviceptr, value: c_uint, count: usize, stream: CUstream);
    cuMemcpyHtoDAsync = "cuMemcpyHtoDAsync_v2" (to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuMemcpyDtoHAsync = "cuMemcpyDtoHAsync_v2" (to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyDtoDAsync = "cuMemcpyDtoDAsync_v2" (to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemAllocAsync(pointer: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemFreeAsync(pointer: CUdeviceptr, stream: CUstream);
    cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    cuStreamWriteValue32 = "cuStreamWriteValue32_v2" (stream: CUstream, at: CUdeviceptr, value: u32, flags: c_uint);
    cuStreamWaitValue32 = "cuStreamWaitValue32_v2" (stream: CUstream, at: CUdeviceptr, value: u32, flags: c_uint);
    cuLaunchHostFunc(stream: CUstream, function: Option<extern "C" fn(*mut c_void)>, data: *mut c_void);
    cuStreamBeginCapture = "cuStreamBeginCapture_v2" (stream: CUstream, mode: c_uint);
    cuStreamEndCapture(stream: CUstream, graph: *mut *mut c_void);
    cuGraphInstantiate = "cuGraphInstantiateWithFlags" (exec: *mut *mut c_void, graph: *mut c_void, flags: u64);
    cuGraphLaunch(exec: *mut c_void, stream: CUstream);
    cuGraphExecDestroy(exec: *mut c_void);
    cuGraphDestroy(graph: *mut c_void);
    cuDeviceGetDefaultMemPool(pool: *mut *mut c_void, device: CUdevice);
    cuMemPoolTrimTo(pool: *mut c_void, bytes: usize);
}

const THREADS: usize = 4;
const WORDS: usize = 768;
const BYTES: usize = 4 * WORDS;
const BUFFERS: usize = 5;
/// Pieces of pinned memory of a thread.
const SLOTS: usize = 12;
/// Words that a thread's streams wait for, each once.
const FLAGS: u64 = 1 << 16;

const KERNELS: &str = "
.version 7.0
.target sm_70
.address_size 64

// x = x*a + b + place, after a loop of so many rounds
.visible .entry affine(.param .u64 x, .param .u32 a, .param .u32 b, .param .u32 rounds)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<3>;
    .reg .pred %p;
    ld.param.u64 %rd0, [x];
    ld.param.u32 %r0, [a];
    ld.param.u32 %r1, [b];
    ld.param.u32 %r2, [rounds];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.u32 %r3, %r3, %r4, %r5;
    mad.wide.u32 %rd1, %r3, 4, %rd0;
WAIT:
    ld.volatile.global.u32 %r6, [%rd1];
    sub.u32 %r2, %r2, 1;
    setp.ne.u32 %p, %r2, 0;
    @%p bra WAIT;
    mad.lo.u32 %r6, %r6, %r0, %r1;
    add.u32 %r6, %r6, %r3;
    st.global.u32 [%rd1], %r6;
    ret;
}

// x = x*3 + y of another place
.visible .entry mix(.param .u64 x, .param .u64 y, .param .u32 words)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd0, [x];
    ld.param.u64 %rd1, [y];
    ld.param.u32 %r0, [words];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.u32 %r3, %r3, %r4, %r5;
    mul.lo.u32 %r1, %r3, 7;
    rem.u32 %r1, %r1, %r0;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    ld.global.u32 %r6, [%rd2];
    mad.wide.u32 %rd3, %r3, 4, %rd0;
    ld.global.u32 %r7, [%rd3];
    mad.lo.u32 %r7, %r7, 3, %r6;
    st.global.u32 [%rd3], %r7;
    ret;
}
";

/// The sequential model of the kernels.
fn affine(words: &mut [u32], a: u32, b: u32) {
    for (place, word) in words.iter_mut().enumerate() {
        *word = word.wrapping_mul(a).wrapping_add(b).wrapping_add(place as u32);
    }
}
fn mix(x: &mut [u32], y: &[u32]) {
    for (place, word) in x.iter_mut().enumerate() {
        *word = word.wrapping_mul(3).wrapping_add(y[place * 7 % WORDS]);
    }
}

/// A handle that goes from thread to thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Handle(usize);
impl Handle {
    fn stream(self) -> CUstream {
        self.0 as CUstream
    }
}

/// A stream, and whether it and the legacy default stream wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stream {
    handle: Handle,
    blocking: bool,
}
const LEGACY: Handle = Handle(1);
const PER_THREAD: Handle = Handle(2);

/// An operation that others must wait for: where it was queued, and the event behind it.
#[derive(Clone, Copy)]
struct Done {
    stream: Stream,
    event: Handle,
}

struct Buffer {
    device: CUdeviceptr,
    words: Vec<u32>,
    written: Option<Done>,
    read: Vec<Done>,
}

/// What each host function writes down: who came.
type Diary = Arc<Mutex<HashMap<(usize, Handle), Vec<u64>>>>;
struct Note {
    diary: Diary,
    thread: usize,
    stream: Handle,
    number: u64,
}
extern "C" fn note(data: *mut c_void) {
    // SAFETY: made by `Box::into_raw` for this call.
    let note = unsafe { Box::from_raw(data.cast::<Note>()) };
    let mut diary = note.diary.lock().unwrap();
    diary.entry((note.thread, note.stream)).or_default().push(note.number);
}

/// Nobody may wait for the whole context while a stream of it records: who records holds it for writing.
static RECORDING: RwLock<()> = RwLock::new(());

fn wait_for_all() {
    let _nobody = RECORDING.read().unwrap();
    ok(cuCtxSynchronize());
}

struct Worker {
    random: Random,
    thread: usize,
    context: Handle,
    streams: Vec<Stream>,
    affine: Handle,
    mix: Handle,
    buffers: Vec<Buffer>,
    /// Pinned memory, in pieces; what a busy one must hold once the thread has waited.
    slots: Vec<*mut u32>,
    expected: Vec<Option<Vec<u32>>>,
    free: Vec<usize>,
    uploads: Vec<usize>,
    events: Vec<Handle>,
    flags: CUdeviceptr,
    /// How many are used.
    flag: u64,
    diary: Diary,
    notes: u64,
}

impl Worker {
    fn new(shared: &Shared, thread: usize, seed: u64) -> Worker {
        ok(cuCtxSetCurrent(shared.context.stream()));
        let mut streams = shared.streams.clone();
        // Another stream for each thread, under one name.
        streams.push(Stream {
            handle: PER_THREAD,
            blocking: true,
        });
        let (mut pinned, mut flags) = (null_mut(), 0);
        ok(cuMemHostAlloc(&mut pinned, SLOTS * BYTES, 0));
        ok(cuMemAlloc(&mut flags, 4 * FLAGS as usize));
        ok(cuMemsetD32(flags, 0, FLAGS as usize));
        let buffers = (0..BUFFERS)
            .map(|number| {
                let mut device = 0;
                match number {
                    0 => ok(cuMemAllocManaged(&mut device, BYTES, 1)),
                    _ => ok(cuMemAlloc(&mut device, BYTES)),
                }
                ok(cuMemsetD32(device, number as u32, WORDS));
                Buffer {
                    device,
                    words: vec![number as u32; WORDS],
                    written: None,
                    read: Vec::new(),
                }
            })
            .collect();
        wait_for_all();
        Worker {
            random: Random(seed),
            thread,
            context: shared.context,
            streams,
            affine: shared.affine,
            mix: shared.mix,
            buffers,
            slots: (0..SLOTS)
                .map(|slot| pinned.cast::<u32>().wrapping_add(slot * WORDS))
                .collect(),
            expected: vec![None; SLOTS],
            free: (0..SLOTS).collect(),
            uploads: Vec::new(),
            events: Vec::new(),
            flags,
            flag: 0,
            diary: Arc::clone(&shared.diary),
            notes: 0,
        }
    }

    fn event(&mut self) -> Handle {
        let mut event = null_mut();
        // CU_EVENT_DISABLE_TIMING, or not.
        ok(cuEventCreate(&mut event, self.random.pick(&[0, 2])));
        self.events.push(Handle(event as usize));
        Handle(event as usize)
    }

    /// Makes what comes next in `stream` come after `done`, in one of the ways there are.
    fn after(&mut self, stream: Stream, done: Done) {
        if done.stream == stream {
            return;
        }
        let pair = [stream, done.stream];
        let default = pair.iter().any(|s| s.handle == LEGACY) && pair.iter().all(|s| s.blocking);
        match self.random.below(8) {
            // The default stream's own rule.
            0..=4 if default => {}
            0 => ok(cuEventSynchronize(done.event.stream())),
            1 => ok(cuStreamSynchronize(done.stream.handle.stream())),
            // A value that the one stream writes and the other waits for.
            2 if self.flag < FLAGS => {
                let flag = self.flags + 4 * self.flag;
                self.flag += 1;
                ok(cuStreamWriteValue32(done.stream.handle.stream(), flag, 1, 0));
                // CU_STREAM_WAIT_VALUE_EQ
                ok(cuStreamWaitValue32(stream.handle.stream(), flag, 1, 1));
            }
            _ => ok(cuStreamWaitEvent(stream.handle.stream(), done.event.stream(), 0)),
        }
    }

    /// An operation in `stream` that reads and writes these buffers.
    fn queue(&mut self, stream: Stream, reads: &[usize], writes: &[usize], operation: impl FnOnce(&mut Worker)) {
        for &read in reads {
            if let Some(done) = self.buffers[read].written {
                self.after(stream, done);
            }
        }
        for &write in writes {
            if let Some(done) = self.buffers[write].written {
                self.after(stream, done);
            }
            for done in std::mem::take(&mut self.buffers[write].read) {
                self.after(stream, done);
            }
        }
        operation(self);
        let event = self.event();
        ok(cuEventRecord(event.stream(), stream.handle.stream()));
        let done = Done { stream, event };
        for &read in reads {
            self.buffers[read].read.push(done);
        }
        for &write in writes {
            self.buffers[write].written = Some(done);
        }
    }

    fn launch(&self, function: Handle, stream: CUstream, parameters: &mut [*mut c_void]) {
        let block = 128;
        ok(cuLaunchKernel(
            function.stream(),
            (WORDS / block) as c_uint,
            1,
            1,
            block as c_uint,
            1,
            1,
            0,
            stream,
            parameters.as_mut_ptr(),
            null_mut(),
        ));
    }
    fn launch_affine(&self, stream: CUstream, device: CUdeviceptr, a: u32, b: u32, rounds: u32) {
        let (mut device, mut a, mut b, mut rounds) = (device, a, b, rounds);
        self.launch(
            self.affine,
            stream,
            &mut [
                (&raw mut device).cast(),
                (&raw mut a).cast(),
                (&raw mut b).cast(),
                (&raw mut rounds).cast(),
            ],
        );
    }
    fn launch_mix(&self, stream: CUstream, x: CUdeviceptr, y: CUdeviceptr) {
        let (mut x, mut y, mut words) = (x, y, WORDS as u32);
        self.launch(
            self.mix,
            stream,
            &mut [(&raw mut x).cast(), (&raw mut y).cast(), (&raw mut words).cast()],
        );
    }

    /// A piece of pinned memory that nobody uses; the thread waits if there is none.
    fn slot(&mut self) -> usize {
        if self.free.is_empty() {
            self.wait();
        }
        self.free.pop().expect("nothing is busy after waiting")
    }

    /// Waits for everything, and compares what was read.
    fn wait(&mut self) {
        wait_for_all();
        for slot in 0..SLOTS {
            let Some(expected) = self.expected[slot].take() else {
                continue;
            };
            // SAFETY: pinned memory of so many words, which no stream uses any more.
            let found = unsafe { std::slice::from_raw_parts(self.slots[slot], WORDS) };
            compare(found, &expected);
            self.free.push(slot);
        }
        self.free.append(&mut self.uploads);
        for buffer in &mut self.buffers {
            buffer.written = None;
            buffer.read.clear();
        }
        for event in self.events.drain(..) {
            ok(cuEventDestroy(event.stream()));
        }
    }

    /// The host waits until buffer `at` may be written.
    fn settle(&mut self, at: usize) {
        let done: Vec<Done> = self.buffers[at]
            .written
            .into_iter()
            .chain(self.buffers[at].read.clone())
            .collect();
        for done in done {
            ok(cuEventSynchronize(done.event.stream()));
            assert_eq!(cuEventQuery(done.event.stream()), CUDA_SUCCESS);
        }
    }

    fn step(&mut self) {
        let streams = self.streams.len();
        let stream = self.streams[self.random.below(streams)];
        let queue = stream.handle.stream();
        let x = self.random.below(BUFFERS);
        let y = (x + 1 + self.random.below(BUFFERS - 1)) % BUFFERS;
        let (a, b) = (self.random.next() as u32 | 1, self.random.next() as u32);
        let device = |worker: &Worker, at: usize| worker.buffers[at].device;
        match self.random.below(32) {
            0..=6 => {
                let rounds = 1 << self.random.below(9);
                self.queue(stream, &[], &[x], |w| {
                    w.launch_affine(queue, device(w, x), a, b, rounds)
                });
                affine(&mut self.buffers[x].words, a, b);
            }
            7..=10 => {
                self.queue(stream, &[y], &[x], |w| w.launch_mix(queue, device(w, x), device(w, y)));
                let from = self.buffers[y].words.clone();
                mix(&mut self.buffers[x].words, &from);
            }
            11..=12 => {
                let from = self.random.below(WORDS);
                let count = 1 + self.random.below(WORDS - from);
                self.queue(stream, &[], &[x], |w| {
                    ok(cuMemsetD32Async(device(w, x) + 4 * from as u64, b, count, queue));
                });
                self.buffers[x].words[from..from + count].fill(b);
            }
            13..=14 => {
                let from = self.random.below(WORDS);
                let to = self.random.below(WORDS);
                let count = 1 + self.random.below(WORDS - from.max(to));
                self.queue(stream, &[y], &[x], |w| {
                    ok(cuMemcpyDtoDAsync(
                        device(w, x) + 4 * to as u64,
                        device(w, y) + 4 * from as u64,
                        4 * count,
                        queue,
                    ));
                });
                let copied = self.buffers[y].words[from..from + count].to_vec();
                self.buffers[x].words[to..to + count].copy_from_slice(&copied);
            }
            // Pinned memory belongs to the copy until it is done.
            15..=16 => {
                let slot = self.slot();
                let words: Vec<u32> = (0..WORDS as u32).map(|i| i.wrapping_mul(a) ^ b).collect();
                // SAFETY: pinned memory of so many words that no stream uses.
                unsafe { std::slice::from_raw_parts_mut(self.slots[slot], WORDS) }.copy_from_slice(&words);
                self.queue(stream, &[], &[x], |w| {
                    ok(cuMemcpyHtoDAsync(device(w, x), w.slots[slot].cast(), BYTES, queue));
                });
                self.uploads.push(slot);
                self.buffers[x].words = words;
            }
            // Ordinary memory is the program's again when the call returns.
            17..=18 => {
                let mut words: Vec<u32> = (0..WORDS as u32).map(|i| i.wrapping_add(b)).collect();
                self.buffers[x].words.clone_from(&words);
                self.queue(stream, &[], &[x], |w| {
                    ok(cuMemcpyHtoDAsync(device(w, x), words.as_ptr().cast(), BYTES, queue));
                    words.fill(0xdead_beef);
                });
            }
            19..=22 => {
                let slot = self.slot();
                self.queue(stream, &[x], &[], |w| {
                    ok(cuMemcpyDtoHAsync(w.slots[slot].cast(), device(w, x), BYTES, queue));
                });
                self.expected[slot] = Some(self.buffers[x].words.clone());
            }
            23 => {
                self.settle(x);
                let mut found = vec![0; WORDS];
                ok(cuMemcpyDtoH(found.as_mut_ptr().cast(), device(self, x), BYTES));
                compare(&found, &self.buffers[x].words);
            }
            24 => {
                self.settle(x);
                let words: Vec<u32> = (0..WORDS as u32).map(|i| i ^ a).collect();
                ok(cuMemcpyHtoD(device(self, x), words.as_ptr().cast(), BYTES));
                self.buffers[x].words = words;
            }
            25 => {
                self.notes += 1;
                let note_of = Box::new(Note {
                    diary: Arc::clone(&self.diary),
                    thread: self.thread,
                    stream: stream.handle,
                    number: self.notes,
                });
                ok(cuLaunchHostFunc(queue, Some(note), Box::into_raw(note_of).cast()));
            }
            // The buffer moves: freed and taken anew in the order of a stream.
            26 if x != 0 => {
                let old = device(self, x);
                let mut new = 0;
                self.queue(stream, &[], &[x], |_| {
                    ok(cuMemFreeAsync(old, queue));
                    ok(cuMemAllocAsync(&mut new, BYTES, queue));
                    ok(cuMemsetD32Async(new, b, WORDS, queue));
                });
                self.buffers[x].device = new;
                self.buffers[x].words.fill(b);
            }
            27 => self.graph(stream, x, y, a, b),
            // A stream that goes as soon as it has its work.
            28 => {
                let mut short = null_mut();
                ok(cuStreamCreate(&mut short, self.random.pick(&[0, 1])));
                let short = Stream {
                    handle: Handle(short as usize),
                    blocking: false,
                };
                let queue = short.handle.stream();
                self.queue(short, &[], &[x], |w| w.launch_affine(queue, device(w, x), a, b, 64));
                affine(&mut self.buffers[x].words, a, b);
                ok(cuStreamDestroy(queue));
                // Its name may come again: the event alone tells when it is done.
                let done = self.buffers[x].written.take().expect("just queued");
                ok(cuEventSynchronize(done.event.stream()));
            }
            29 => {
                let mut module = null_mut();
                let text = CString::new(KERNELS).unwrap();
                ok(cuModuleLoadData(&mut module, text.as_ptr().cast()));
                ok(cuModuleUnload(module));
            }
            30 => {
                let query = cuStreamQuery(queue);
                assert!(matches!(query, CUDA_SUCCESS | CUDA_ERROR_NOT_READY), "{query}");
            }
            _ => self.wait(),
        }
    }

    /// A few operations captured and launched, more than once.
    fn graph(&mut self, stream: Stream, x: usize, y: usize, a: u32, b: u32) {
        let times = 1 + self.random.below(3);
        let (mut recorder, mut graph, mut exec) = (null_mut(), null_mut(), null_mut());
        ok(cuStreamCreate(&mut recorder, 1));
        let (to, from) = (self.buffers[x].device, self.buffers[y].device);
        let recording = RECORDING.write().unwrap();
        // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        ok(cuStreamBeginCapture(recorder, 1));
        self.launch_affine(recorder, to, a, b, 16);
        ok(cuMemcpyDtoDAsync(to, from, BYTES / 2, recorder));
        self.launch_mix(recorder, to, from);
        ok(cuMemsetD32Async(to, a, 3, recorder));
        ok(cuStreamEndCapture(recorder, &mut graph));
        drop(recording);
        ok(cuGraphInstantiate(&mut exec, graph, 0));
        self.queue(stream, &[y], &[x], |_| {
            for _ in 0..times {
                ok(cuGraphLaunch(exec, stream.handle.stream()));
            }
        });
        let from = self.buffers[y].words.clone();
        let words = &mut self.buffers[x].words;
        for _ in 0..times {
            affine(words, a, b);
            words[..WORDS / 2].copy_from_slice(&from[..WORDS / 2]);
            mix(words, &from);
            words[..3].fill(a);
        }
        ok(cuGraphExecDestroy(exec));
        ok(cuGraphDestroy(graph));
        ok(cuStreamDestroy(recorder));
    }

    fn finish(mut self) {
        for at in 0..BUFFERS {
            let slot = self.slot();
            let stream = self.streams[0];
            self.queue(stream, &[at], &[], |w| {
                let from = w.buffers[at].device;
                ok(cuMemcpyDtoHAsync(
                    w.slots[slot].cast(),
                    from,
                    BYTES,
                    stream.handle.stream(),
                ));
            });
            self.expected[slot] = Some(self.buffers[at].words.clone());
        }
        self.wait();
        for buffer in &self.buffers {
            ok(cuMemFree(buffer.device));
        }
        ok(cuMemFree(self.flags));
        ok(cuMemFreeHost(self.slots[0].cast()));
        let mut current = null_mut();
        ok(cuCtxGetCurrent(&mut current));
        assert_eq!(current, self.context.stream());
    }
}

#[track_caller]
fn compare(found: &[u32], expected: &[u32]) {
    if let Some(at) = (0..WORDS).find(|&at| found[at] != expected[at]) {
        panic!("word {at} is {:#x}, expected {:#x}", found[at], expected[at]);
    }
}

struct Shared {
    context: Handle,
    streams: Vec<Stream>,
    affine: Handle,
    mix: Handle,
    diary: Diary,
}

/// All threads, for so many steps each.
fn round(shared: &Arc<Shared>, seed: u64, steps: u64) {
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let shared = Arc::clone(shared);
            std::thread::spawn(move || {
                let mut worker = Worker::new(&shared, thread, seed.wrapping_add(thread as u64 * 0x1234_5678_9abc));
                for _ in 0..steps {
                    worker.step();
                }
                worker.finish();
            })
        })
        .collect();
    for thread in threads {
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
    let mut diary = shared.diary.lock().unwrap();
    for ((thread, stream), numbers) in diary.drain() {
        assert!(
            numbers.is_sorted(),
            "host functions of thread {thread} in {stream:?} came out of order"
        );
    }
}

/// Threads that serve streams, and what a program has besides: they stay for the next time.
const MOST_THREADS: usize = 120;

/// Memory of the device that is free, and open files.
fn holdings() -> (usize, usize) {
    let (mut free, mut total, mut pool) = (0, 0, null_mut());
    ok(cuDeviceGetDefaultMemPool(&mut pool, 0));
    ok(cuMemPoolTrimTo(pool, 0));
    ok(cuMemGetInfo(&mut free, &mut total));
    let count = |folder: &str| std::fs::read_dir(folder).map_or(0, Iterator::count);
    assert!(count("/proc/self/task") < MOST_THREADS);
    (free, count("/proc/self/fd"))
}

#[test]
fn legal_calls_in_any_order_do_what_one_after_the_other_does() {
    alone(test_name!(), &[], || {
        let seed = crate::number("STRESS_SEED", 0x5eed);
        let steps = crate::number("STRESS_STEPS", 5000);
        let (mut context, mut module) = (null_mut(), null_mut());
        ok(cuInit(0));
        ok(cuDevicePrimaryCtxRetain(&mut context, 0));
        ok(cuCtxSetCurrent(context));
        let text = CString::new(KERNELS).unwrap();
        ok(cuModuleLoadData(&mut module, text.as_ptr().cast()));
        let function = |name: &str| {
            let (mut function, name) = (null_mut(), CString::new(name).unwrap());
            ok(cuModuleGetFunction(&mut function, module, name.as_ptr()));
            Handle(function as usize)
        };
        let mut streams = vec![Stream {
            handle: LEGACY,
            blocking: true,
        }];
        // CU_STREAM_NON_BLOCKING is 1.
        for (flags, priority) in [(0, 0), (0, -1), (1, 0), (1, -2)] {
            let mut stream = null_mut();
            ok(cuStreamCreateWithPriority(&mut stream, flags, priority));
            streams.push(Stream {
                handle: Handle(stream as usize),
                blocking: flags == 0,
            });
        }
        let shared = Arc::new(Shared {
            context: Handle(context as usize),
            streams: streams.clone(),
            affine: function("affine"),
            mix: function("mix"),
            diary: Diary::default(),
        });
        // The first round brings what stays: workers, pools.
        round(&shared, seed, steps / 4);
        let before = holdings();
        round(&shared, seed + 1, steps);
        round(&shared, seed + 2, steps);
        let after = holdings();
        assert_eq!(after, before, "free memory, open files");
        for stream in &streams[1..] {
            ok(cuStreamDestroy(stream.handle.stream()));
        }
        ok(cuModuleUnload(module));
        ok(cuDevicePrimaryCtxRelease(0));
    });
}
