//! Stream Management, capture: streams that record into graphs, and what they refuse.
//!
//! Captures here are thread-local or relaxed unless the test has a process of its own: global ones forbid calls to other
//! tests.

use crate::alone::alone;
use crate::c::*;
use crate::graph_types::*;
use crate::graph_world::{World, create, dependencies, instantiate, kind, nodes};
use crate::test_name;
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

const GLOBAL: c_int = 0;
const THREAD_LOCAL: c_int = 1;
const RELAXED: c_int = 2;

const PER_THREAD: CUstream = 2 as CUstream;

const NONE: c_int = 0;
const ACTIVE: c_int = 1;
const INVALIDATED: c_int = 2;

fn status(stream: CUstream) -> c_int {
    let mut status = -1;
    ok(cuStreamIsCapturing(stream, &mut status));
    status
}

fn begin(stream: CUstream) {
    ok(cuStreamBeginCapture(stream, THREAD_LOCAL));
    assert_eq!(status(stream), ACTIVE);
}

fn end(stream: CUstream) -> CUgraph {
    let mut graph = null_mut();
    ok(cuStreamEndCapture(stream, &mut graph));
    assert_eq!(status(stream), NONE);
    graph
}

/// The capture ends with this error, without a graph.
#[track_caller]
fn end_with(stream: CUstream, error: CUresult) {
    let mut graph = 1 as CUgraph;
    assert_eq!(cuStreamEndCapture(stream, &mut graph), error);
    assert!(graph.is_null());
    assert_eq!(status(stream), NONE);
}

fn stream(flags: u32) -> CUstream {
    let mut stream = null_mut();
    ok(cuStreamCreate(&mut stream, flags));
    stream
}

fn event() -> CUevent {
    let mut event = null_mut();
    ok(cuEventCreate(&mut event, 2));
    event
}

/// v = 3 v + n, n by n.
fn mixed(start: u32, numbers: &[u32]) -> u32 {
    let mix = |v: u32, n: &u32| v.wrapping_mul(3).wrapping_add(*n);
    numbers.iter().fold(start, mix)
}

extern "C" fn add_one(data: *mut c_void) {
    // SAFETY: the tests give counters that live longer than their graphs run.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn a_stream_that_records_does_nothing_until_the_graph_runs() {
    let world = World::new();
    for (recorder, mode) in [
        (world.stream, THREAD_LOCAL),
        (stream(0), RELAXED),
        (PER_THREAD, RELAXED),
    ] {
        world.set(0, 1);
        let calls = AtomicU32::new(0);
        let mut found = Box::new(0_u32);
        ok(cuStreamBeginCapture(recorder, mode));
        ok(cuMemsetD32Async(world.words, 5, 1, recorder));
        ok(world.launch(0, 2, recorder));
        ok(world.launch(0, 3, recorder));
        ok(cuMemcpyDtoHAsync((&raw mut *found).cast(), world.words, 4, recorder));
        ok(cuLaunchHostFunc(
            recorder,
            Some(add_one),
            (&raw const calls).cast_mut().cast(),
        ));
        ok(cuStreamWriteValue32(recorder, world.words + 4, 9, 0));
        let graph = end(recorder);
        assert_eq!((world.word(0), *found, calls.load(Ordering::SeqCst)), (1, 0, 0));
        let list = nodes(graph);
        let kinds: Vec<_> = list.iter().map(|node| kind(*node)).collect();
        let expected = [
            NODE_MEMSET,
            NODE_KERNEL,
            NODE_KERNEL,
            NODE_MEMCPY,
            NODE_HOST,
            NODE_BATCH_MEM_OP,
        ];
        assert_eq!(kinds, expected);
        assert_eq!(dependencies(list[0]), []);
        for pair in list.windows(2) {
            assert_eq!(dependencies(pair[1]), [pair[0]]);
        }
        let exec = instantiate(graph);
        ok(cuGraphDestroy(graph));
        for round in 1..3 {
            *found = 0;
            ok(cuGraphLaunch(exec, world.stream));
            assert_eq!(world.word(1), 9);
            assert_eq!((*found, calls.load(Ordering::SeqCst)), (mixed(5, &[2, 3]), round));
        }
        ok(cuGraphExecDestroy(exec));
    }
}

#[test]
fn other_streams_join_by_events_and_come_back() {
    let world = World::new();
    let (a, b) = (world.stream, stream(1));
    let (fork, join) = (event(), event());
    begin(a);
    ok(world.launch(0, 1, a));
    ok(cuEventRecord(fork, a));
    ok(cuStreamWaitEvent(b, fork, 0));
    assert_eq!(status(b), ACTIVE);
    ok(world.launch(1, 2, b));
    ok(world.launch(2, 3, a));
    ok(cuEventRecord(join, b));
    ok(cuStreamWaitEvent(a, join, 0));
    ok(world.launch(0, 4, a));
    let graph = end(a);
    assert_eq!(status(b), NONE);
    let list = nodes(graph);
    assert_eq!(dependencies(list[1]), [list[0]]);
    assert_eq!(dependencies(list[2]), [list[0]]);
    assert_eq!(dependencies(list[3]), [list[2], list[1]]);
    let exec = instantiate(graph);
    ok(cuGraphLaunch(exec, b));
    assert_eq!([0, 1, 2].map(|index| world.word(index)), [mixed(0, &[1, 4]), 2, 3]);
    ok(cuGraphDestroy(graph));
    ok(cuGraphExecDestroy(exec));
}

#[test]
fn captures_end_where_they_began_with_all_streams_back() {
    let world = World::new();
    let (a, b) = (world.stream, stream(1));
    let fork = event();
    let forked = || {
        begin(a);
        ok(world.launch(0, 1, a));
        ok(cuEventRecord(fork, a));
        ok(cuStreamWaitEvent(b, fork, 0));
    };
    // Without work of its own there is nothing to come back with.
    forked();
    ok(cuGraphDestroy(end(a)));
    forked();
    ok(world.launch(1, 1, b));
    end_with(a, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    assert_eq!(status(b), NONE);
    // In the other stream.
    forked();
    let mut graph = null_mut();
    assert_eq!(cuStreamEndCapture(b, &mut graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    end_with(a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // Where nothing was begun, twice, in a mode that is none, in the legacy stream.
    assert_eq!(cuStreamEndCapture(a, &mut graph), CUDA_ERROR_ILLEGAL_STATE);
    assert_eq!(cuStreamBeginCapture(a, 3), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuStreamBeginCapture(null_mut(), RELAXED),
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    );
    begin(a);
    assert_eq!(cuStreamBeginCapture(a, RELAXED), CUDA_ERROR_ILLEGAL_STATE);
    assert_eq!(cuStreamEndCapture(a, null_mut()), CUDA_ERROR_INVALID_VALUE);
    ok(cuGraphDestroy(end(a)));
}

#[test]
fn only_relaxed_captures_end_in_another_thread() {
    let world = World::new();
    for (mode, expected) in [
        (THREAD_LOCAL, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD),
        (RELAXED, CUDA_SUCCESS),
    ] {
        ok(cuStreamBeginCapture(world.stream, mode));
        let (context, recorder) = (world.context as usize, world.stream as usize);
        let result = std::thread::spawn(move || {
            ok(cuCtxSetCurrent(context as CUcontext));
            let mut graph = null_mut();
            let result = cuStreamEndCapture(recorder as CUstream, &mut graph);
            (result, graph as usize)
        });
        let (result, graph) = result.join().unwrap();
        assert_eq!(result, expected);
        let graph = if expected == CUDA_SUCCESS {
            graph as CUgraph
        } else {
            end(world.stream)
        };
        ok(cuGraphDestroy(graph));
    }
}

/// What cannot be recorded makes the capture invalid; the stream answers 901 until it is ended.
#[test]
fn what_cannot_be_recorded_invalidates() {
    extern "C" fn callback(_: CUstream, _: CUresult, _: *mut c_void) {}
    let world = World::new();
    let recorder = world.stream;
    let unsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    let uncaptured = event();
    ok(cuEventRecord(uncaptured, stream(1)));
    let cases: [(&str, CUresult, &dyn Fn() -> CUresult); 8] = [
        ("synchronize", unsupported, &|| cuStreamSynchronize(recorder)),
        ("query", unsupported, &|| cuStreamQuery(recorder)),
        ("callback", unsupported, &|| {
            cuStreamAddCallback(recorder, callback, null_mut(), 0)
        }),
        ("context", unsupported, &|| cuCtxSynchronize()),
        ("isolation", CUDA_ERROR_STREAM_CAPTURE_ISOLATION, &|| {
            cuStreamWaitEvent(recorder, uncaptured, 0)
        }),
        ("alloc", unsupported, &|| cuMemAlloc(&mut 0, 4)),
        ("free", unsupported, &|| cuMemFree(world.words)),
        ("bad range", CUDA_ERROR_INVALID_VALUE, &|| {
            cuMemsetD32Async(64, 0, 1, recorder)
        }),
    ];
    for (name, error, call) in cases {
        begin(recorder);
        ok(world.launch(0, 1, recorder));
        assert_eq!(call(), error, "{name}");
        assert_eq!(status(recorder), INVALIDATED, "{name}");
        assert_eq!(
            world.launch(0, 1, recorder),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
            "{name}"
        );
        end_with(recorder, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    ok(cuMemFree(world.words));
}

#[test]
fn the_legacy_stream_must_not_wait_for_a_recording_one() {
    let world = World::new();
    let (blocking, mut word, mut found) = (stream(0), 0_u32, 0);
    let implicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    let cases: [&dyn Fn() -> CUresult; 3] = [
        &|| world.launch(0, 1, null_mut()),
        &|| cuMemsetD32Async(world.words, 0, 1, null_mut()),
        &|| cuStreamSynchronize(1 as CUstream),
    ];
    for call in cases {
        begin(blocking);
        // To ask is no harm.
        assert_eq!(cuStreamIsCapturing(null_mut(), &mut found), implicit);
        assert_eq!(status(blocking), ACTIVE);
        assert_eq!(call(), implicit);
        end_with(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    begin(blocking);
    assert_eq!(cuMemcpyDtoH((&raw mut word).cast(), world.words, 4), implicit);
    end_with(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // A non-blocking stream is nothing to it.
    begin(world.stream);
    ok(world.launch(0, 1, null_mut()));
    ok(cuStreamIsCapturing(null_mut(), &mut found));
    assert_eq!(found, NONE);
    ok(cuGraphDestroy(end(world.stream)));
}

#[test]
fn events_of_a_capture_are_for_its_streams() {
    let world = World::new();
    let (a, b) = (world.stream, stream(1));
    let captured = event();
    for call in [cuEventQuery as fn(CUevent) -> CUresult, cuEventSynchronize] {
        begin(a);
        ok(cuEventRecord(captured, a));
        assert_eq!(call(captured), CUDA_ERROR_CAPTURED_EVENT);
        end_with(a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    // A merge of two captures.
    begin(a);
    ok(cuStreamBeginCapture(b, THREAD_LOCAL));
    ok(cuEventRecord(captured, a));
    assert_eq!(cuStreamWaitEvent(b, captured, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    end_with(a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    end_with(b, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // After the end, nobody can wait for it; recorded anew it is like any other.
    begin(a);
    ok(cuEventRecord(captured, a));
    ok(cuGraphDestroy(end(a)));
    assert_eq!(cuStreamWaitEvent(b, captured, 0), CUDA_ERROR_CAPTURED_EVENT);
    ok(cuEventRecord(captured, a));
    ok(cuStreamWaitEvent(b, captured, 0));
    ok(cuEventSynchronize(captured));
    // An event that was never recorded is nothing to wait for.
    begin(a);
    ok(cuStreamWaitEvent(a, event(), 0));
    ok(cuGraphDestroy(end(a)));
}

#[test]
fn external_events_become_nodes() {
    let world = World::new();
    let (a, b) = (world.stream, stream(1));
    let (before, after) = (event(), event());
    ok(cuEventRecord(before, b));
    // Outside of captures the flags mean nothing.
    assert_eq!(cuEventRecordWithFlags(after, a, 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuStreamWaitEvent(a, before, 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuStreamWaitEvent(a, before, 2), CUDA_ERROR_INVALID_VALUE);
    begin(a);
    ok(cuStreamWaitEvent(a, before, 1));
    ok(world.launch(0, 2, a));
    ok(cuEventRecordWithFlags(after, a, 1));
    let graph = end(a);
    let kinds: Vec<_> = nodes(graph).into_iter().map(kind).collect();
    assert_eq!(kinds, [NODE_WAIT_EVENT, NODE_KERNEL, NODE_EVENT_RECORD]);
    let exec = instantiate(graph);
    ok(world.launch(0, 1, b));
    ok(cuEventRecord(before, b));
    ok(cuGraphLaunch(exec, a));
    ok(cuStreamWaitEvent(b, after, 0));
    ok(world.launch(0, 3, b));
    assert_eq!(world.word(0), mixed(0, &[1, 2, 3]));
    ok(cuGraphDestroy(graph));
    ok(cuGraphExecDestroy(exec));
}

#[test]
fn a_capture_says_what_it_records_into_and_after_what() {
    let world = World::new();
    let recorder = world.stream;
    let (mut found, mut id, mut graph, mut list, mut data, mut count) = (9, 0, null_mut(), null(), null(), 9);
    let mut ask = || {
        ok(cuStreamGetCaptureInfo(
            recorder, &mut found, &mut id, &mut graph, &mut list, &mut data, &mut count,
        ));
        // SAFETY: valid until the next call on the stream (manual).
        let now = if list.is_null() {
            &[][..]
        } else {
            // SAFETY: the call has written as many nodes as it has counted.
            unsafe { std::slice::from_raw_parts(list, count) }
        };
        (found, id, graph, now.to_vec())
    };
    assert_eq!(ask(), (NONE, 0, null_mut(), vec![]));
    begin(recorder);
    let (_, id, graph, now) = ask();
    assert_eq!(now, []);
    ok(world.launch(0, 1, recorder));
    ok(world.launch(0, 2, recorder));
    let all = nodes(graph);
    assert_eq!(ask(), (ACTIVE, id, graph, vec![all[1]]));
    // A graph that is being recorded into is neither instantiated nor destroyed.
    let mut exec = null_mut();
    assert_eq!(cuGraphInstantiate(&mut exec, graph, 0), CUDA_ERROR_ILLEGAL_STATE);
    assert_eq!(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuGraphDestroyNode(all[0]), CUDA_ERROR_INVALID_VALUE);
    // Nodes can be added by hand, and what comes next can depend on them.
    let mut by_hand = null_mut();
    ok(cuGraphAddEmptyNode(&mut by_hand, graph, null(), 0));
    ok(cuStreamUpdateCaptureDependencies(recorder, &mut by_hand, null(), 1, 0));
    assert_eq!(ask().3, [all[1], by_hand]);
    let mut first = all[0];
    ok(cuStreamUpdateCaptureDependencies(recorder, &mut first, null(), 1, 1));
    assert_eq!(ask().3, [all[0]]);
    ok(world.launch(0, 3, recorder));
    assert_eq!(
        cuStreamUpdateCaptureDependencies(recorder, &mut first, null(), 1, 2),
        CUDA_ERROR_INVALID_VALUE
    );
    // What was taken out of the list does not have to come back.
    assert_eq!(end(recorder), graph);
    assert_eq!(dependencies(nodes(graph)[3]), [all[0]]);
    ok(cuGraphDestroy(graph));
    assert_eq!(
        cuStreamUpdateCaptureDependencies(recorder, &mut first, null(), 0, 0),
        CUDA_ERROR_ILLEGAL_STATE
    );
}

/// NCCL leaves its second stream behind so, and ends the capture in the first.
#[test]
fn a_stream_need_not_come_back_with_nodes_that_it_was_given() {
    let world = World::new();
    let (a, b) = (world.stream, stream(1));
    let fork = event();
    for given in [false, true] {
        begin(a);
        ok(cuEventRecord(fork, a));
        ok(cuStreamWaitEvent(b, fork, 0));
        ok(world.launch(0, 1, a));
        let (mut found, mut id, mut graph, mut now, mut count) = (-1, 0, null_mut(), null(), 0);
        ok(cuStreamGetCaptureInfo(
            a,
            &mut found,
            &mut id,
            &mut graph,
            &mut now,
            null_mut(),
            &mut count,
        ));
        let mut kernel = nodes(graph)[0];
        let mut by_hand = null_mut();
        ok(cuGraphAddEmptyNode(&mut by_hand, graph, &kernel, 1));
        ok(cuStreamUpdateCaptureDependencies(b, &mut kernel, null(), 1, 1));
        ok(cuStreamUpdateCaptureDependencies(b, &mut by_hand, null(), 1, 1));
        if given {
            let graph = end(a);
            assert_eq!((nodes(graph).len(), status(b)), (2, NONE));
            ok(cuGraphDestroy(graph));
        } else {
            // What it records itself has to be joined as ever.
            ok(world.launch(1, 1, b));
            end_with(a, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
        }
    }
}

#[test]
fn a_stream_records_into_a_graph_that_is_there() {
    let world = World::new();
    let graph = create();
    let first = world.mix(graph, 0, 1, &[]);
    let record = |before: &[CUgraphNode]| {
        let (list, count) = (before.as_ptr(), before.len());
        cuStreamBeginCaptureToGraph(world.stream, graph, list, null(), count, THREAD_LOCAL)
    };
    ok(record(&[first]));
    ok(world.launch(0, 2, world.stream));
    assert_eq!(end(world.stream), graph);
    assert_eq!(dependencies(nodes(graph)[1]), [first]);
    let other = create();
    let stranger = world.mix(other, 0, 1, &[]);
    assert_eq!(record(&[stranger]), CUDA_ERROR_INVALID_VALUE);
    // It stays when the capture fails.
    ok(record(&[]));
    assert_eq!(cuStreamQuery(world.stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_with(world.stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    let exec = instantiate(graph);
    ok(cuGraphLaunch(exec, world.stream));
    assert_eq!(world.word(0), mixed(0, &[1, 2]));
    for graph in [graph, other] {
        ok(cuGraphDestroy(graph));
    }
    ok(cuGraphExecDestroy(exec));
}

#[test]
fn allocations_and_launches_of_graphs_are_recorded() {
    let world = World::new();
    let recorder = world.stream;
    let inner = create();
    world.mix(inner, 0, 4, &[]);
    let exec = instantiate(inner);
    let (mut pointer, mut found) = (0, Box::new([0_u32; 4]));
    begin(recorder);
    ok(cuMemAllocAsync(&mut pointer, 16, recorder));
    ok(cuMemsetD32Async(pointer, 6, 4, recorder));
    ok(cuMemcpyDtoHAsync(found.as_mut_ptr().cast(), pointer, 16, recorder));
    ok(cuMemFreeAsync(pointer, recorder));
    ok(world.launch(0, 3, recorder));
    ok(cuGraphLaunch(exec, recorder));
    ok(world.launch(0, 5, recorder));
    let graph = end(recorder);
    let kinds: Vec<_> = nodes(graph).into_iter().map(kind).collect();
    let expected = [
        NODE_MEM_ALLOC,
        NODE_MEMSET,
        NODE_MEMCPY,
        NODE_MEM_FREE,
        NODE_KERNEL,
        NODE_GRAPH,
        NODE_KERNEL,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(world.word(0), 0);
    let mut freed = 0;
    ok(cuGraphMemFreeNodeGetParams(nodes(graph)[3], &mut freed));
    assert_eq!(freed, pointer);
    let outer = instantiate(graph);
    for _ in 0..2 {
        ok(cuGraphLaunch(outer, recorder));
    }
    assert_eq!(world.word(0), mixed(0, &[3, 4, 5, 3, 4, 5]));
    assert_eq!(*found, [6; 4]);
    // Memory that no allocation node has given.
    begin(recorder);
    assert_eq!(cuMemFreeAsync(world.words, recorder), CUDA_ERROR_INVALID_VALUE);
    end_with(recorder, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    for exec in [exec, outer] {
        ok(cuGraphExecDestroy(exec));
    }
    for graph in [inner, graph] {
        ok(cuGraphDestroy(graph));
    }
}

#[test]
fn a_stream_that_is_destroyed_takes_its_capture_along() {
    let world = World::new();
    let (a, b) = (stream(1), stream(1));
    let fork = event();
    begin(a);
    ok(cuEventRecord(fork, a));
    ok(cuStreamWaitEvent(b, fork, 0));
    ok(cuStreamDestroy(a));
    assert_eq!(status(b), NONE);
    begin(b);
    ok(world.launch(0, 1, b));
    ok(cuGraphDestroy(end(b)));
}

/// The table of cuThreadExchangeStreamCaptureMode: which captures of whom forbid a thread of which mode what a capture
/// does not see.
#[test]
fn modes_say_whose_calls_are_forbidden() {
    alone(test_name!(), &[], || {
        let world = World::new();
        let forbidden = |capture: c_int, thread: c_int, elsewhere: bool| {
            ok(cuStreamBeginCapture(world.stream, capture));
            let context = world.context as usize;
            let call = move || {
                ok(cuCtxSetCurrent(context as CUcontext));
                let mut mode = thread;
                ok(cuThreadExchangeStreamCaptureMode(&mut mode));
                let mut pointer = 0;
                let result = cuMemAlloc(&mut pointer, 4);
                ok(cuThreadExchangeStreamCaptureMode(&mut mode));
                assert_eq!(mode, thread);
                result
            };
            let result = if elsewhere {
                std::thread::spawn(call).join().unwrap()
            } else {
                call()
            };
            let mut graph = null_mut();
            let ended = cuStreamEndCapture(world.stream, &mut graph);
            match result {
                CUDA_SUCCESS => ok(ended),
                _ => assert_eq!(ended, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED),
            }
            assert!([CUDA_SUCCESS, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED].contains(&result));
            result != CUDA_SUCCESS
        };
        for capture in [GLOBAL, THREAD_LOCAL, RELAXED] {
            for thread in [GLOBAL, THREAD_LOCAL, RELAXED] {
                let own = capture != RELAXED && thread != RELAXED;
                let others = capture == GLOBAL && thread == GLOBAL;
                assert_eq!(forbidden(capture, thread, false), own, "{capture} {thread}");
                assert_eq!(
                    forbidden(capture, thread, true),
                    others,
                    "{capture} {thread}, elsewhere"
                );
            }
        }
        let mut mode = 3;
        assert_eq!(cuThreadExchangeStreamCaptureMode(&mut mode), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuThreadExchangeStreamCaptureMode(null_mut()), CUDA_ERROR_INVALID_VALUE);
    });
}
