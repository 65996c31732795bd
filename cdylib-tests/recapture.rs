//! Stream Management: recording over a graph that is there; and what capture leaves to the program.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;

use crate::c::*;
use crate::graph_world::World;

type Callback = Option<extern "C" fn(*mut c_void, *mut c_void, *const [u64; 32], *const [u64; 32], c_uint) -> CUresult>;

functions! {
    cuStreamBeginRecaptureToGraph(
        stream: CUstream,
        mode: c_int,
        graph: *mut c_void,
        callback: Callback,
        data: *mut c_void,
    );
    cuStreamBeginCaptureToGraph(
        stream: CUstream,
        graph: *mut c_void,
        nodes: *const *mut c_void,
        data: *const c_void,
        count: usize,
        mode: c_int,
    );
    cuStreamBeginCapture = "cuStreamBeginCapture_v2" (stream: CUstream, mode: c_int);
    cuStreamEndCapture(stream: CUstream, graph: *mut *mut c_void);
    cuGraphCreate(graph: *mut *mut c_void, flags: c_uint);
    cuGraphDestroy(graph: *mut c_void);
    cuGraphGetNodes(graph: *mut c_void, nodes: *mut *mut c_void, count: *mut usize);
    cuGraphInstantiateWithFlags(exec: *mut *mut c_void, graph: *mut c_void, flags: u64);
    cuGraphLaunch(exec: *mut c_void, stream: CUstream);
    cuGraphExecDestroy(exec: *mut c_void);
}

/// Thread-local: what a global one forbids, other tests of the process may be doing.
const MODE: c_int = 1;
const INVALIDATED: CUresult = 901;
const UNJOINED: CUresult = 904;
const ILLEGAL_STATE: CUresult = 401;

/// What the callback was told: data, node, type of the node before and now, status.
type Told = (usize, usize, u32, u32, c_uint);

static TOLD: Mutex<Vec<Told>> = Mutex::new(Vec::new());

extern "C" fn accept(
    data: *mut c_void,
    node: *mut c_void,
    old: *const [u64; 32],
    new: *const [u64; 32],
    status: c_uint,
) -> CUresult {
    // Of another test, which runs at the same time.
    if data as usize == 99 {
        return 1;
    }
    // SAFETY: records of 256 bytes, which begin with the type.
    let (old, new) = unsafe { ((*old)[0] as u32, (*new)[0] as u32) };
    TOLD.lock()
        .unwrap()
        .push((data as usize, node as usize, old, new, status));
    CUDA_SUCCESS
}

fn end(stream: CUstream) -> Result<*mut c_void, CUresult> {
    let mut graph = null_mut();
    match cuStreamEndCapture(stream, &mut graph) {
        CUDA_SUCCESS => Ok(graph),
        error => Err(error),
    }
}

#[test]
fn a_graph_takes_over_what_is_recorded_once_more() {
    let world = World::new();
    let record = |numbers: &[u32]| numbers.iter().for_each(|n| ok(world.launch(0, *n, world.stream)));
    ok(cuStreamBeginCapture(world.stream, MODE));
    record(&[1, 2, 3]);
    let graph = end(world.stream).unwrap();
    let mut nodes = [null_mut(); 3];
    ok(cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut 3));

    // The same again: nothing is told, and it is the same graph with the same nodes.
    let again = |callback, data: usize, numbers: &[u32]| {
        ok(cuStreamBeginRecaptureToGraph(
            world.stream,
            MODE,
            graph,
            callback,
            data as *mut c_void,
        ));
        record(numbers);
        end(world.stream)
    };
    assert_eq!(again(Some(accept), 1, &[1, 2, 3]), Ok(graph));
    assert!(TOLD.lock().unwrap().is_empty());
    // Another parameter: told with the node, and taken over.
    assert_eq!(again(Some(accept), 7, &[1, 5, 3]), Ok(graph));
    let told = std::mem::take(&mut *TOLD.lock().unwrap());
    let mut now = [null_mut(); 3];
    ok(cuGraphGetNodes(graph, now.as_mut_ptr(), &mut 3));
    assert_eq!((told, now), (vec![(7, nodes[1] as usize, 0, 0, 0)], nodes));
    let mut exec = null_mut();
    ok(cuGraphInstantiateWithFlags(&mut exec, graph, 0));
    world.set(0, 0);
    ok(cuGraphLaunch(exec, world.stream));
    ok(cuStreamSynchronize(world.stream));
    // v = 3 v + n, for 1, 5, 3.
    assert_eq!(world.word(0), 27);
    ok(cuGraphExecDestroy(exec));
    // Nobody need be told.
    assert_eq!(again(None, 0, &[4, 5, 6]), Ok(graph));
}

/// A graph whose recording failed is of no more use.
#[test]
fn another_shape_or_a_change_that_is_not_wanted_ends_the_recording() {
    let world = World::new();
    let fresh = || {
        ok(cuStreamBeginCapture(world.stream, MODE));
        ok(world.launch(0, 1, world.stream));
        ok(world.launch(0, 2, world.stream));
        end(world.stream).unwrap()
    };
    let graph = fresh();
    ok(cuStreamBeginRecaptureToGraph(
        world.stream,
        MODE,
        graph,
        None,
        null_mut(),
    ));
    // Not twice at once, and neither stream nor graph can be used otherwise meanwhile.
    assert_eq!(
        cuStreamBeginRecaptureToGraph(world.stream, MODE, graph, None, null_mut()),
        ILLEGAL_STATE
    );
    // A node fewer.
    ok(world.launch(0, 1, world.stream));
    assert_eq!(end(world.stream), Err(INVALIDATED));
    // A node of another type.
    let graph = fresh();
    ok(cuStreamBeginRecaptureToGraph(
        world.stream,
        MODE,
        graph,
        None,
        null_mut(),
    ));
    let value = 7_u32;
    let copied = crate::stream_order::cuMemcpyHtoDAsync(world.words, (&raw const value).cast(), 4, world.stream);
    assert_eq!(copied, INVALIDATED);
    assert_eq!(end(world.stream), Err(INVALIDATED));
    // A change that the program does not want.
    let graph = fresh();
    ok(cuStreamBeginRecaptureToGraph(
        world.stream,
        MODE,
        graph,
        Some(accept),
        number(99),
    ));
    assert_eq!(world.launch(0, 3, world.stream), INVALIDATED);
    assert_eq!(end(world.stream), Err(INVALIDATED));
    // Bad calls.
    let graph = fresh();
    for (stream, mode, graph) in [(world.stream, 3, graph), (world.stream, MODE, number(0x1234))] {
        assert_eq!(
            cuStreamBeginRecaptureToGraph(stream, mode, graph, None, null_mut()),
            CUDA_ERROR_INVALID_VALUE
        );
    }
    // The graph is as it was.
    ok(cuStreamBeginRecaptureToGraph(
        world.stream,
        MODE,
        graph,
        None,
        null_mut(),
    ));
    ok(world.launch(0, 1, world.stream));
    ok(world.launch(0, 2, world.stream));
    assert_eq!(end(world.stream), Ok(graph));
}

/// As NVIDIA's samples do: a side stream goes when it has been joined, and who gave the graph need not be told which it is.
#[test]
fn side_streams_may_go_and_a_given_graph_need_not_be_named() {
    let world = World::new();
    let (mut side, mut fork, mut join) = (null_mut(), null_mut(), null_mut());
    let mut forked = |joined: bool| {
        ok(cuStreamCreate(&mut side, 1));
        ok(cuEventCreate(&mut fork, 2));
        ok(cuEventCreate(&mut join, 2));
        ok(cuStreamBeginCapture(world.stream, MODE));
        ok(world.launch(0, 1, world.stream));
        ok(cuEventRecord(fork, world.stream));
        ok(cuStreamWaitEvent(side, fork, 0));
        ok(world.launch(0, 2, side));
        ok(cuEventRecord(join, side));
        if joined {
            ok(cuStreamWaitEvent(world.stream, join, 0));
        }
        ok(cuStreamDestroy(side));
        end(world.stream)
    };
    let graph = forked(true).unwrap();
    let mut count = 0;
    ok(cuGraphGetNodes(graph, null_mut(), &mut count));
    assert_eq!(count, 2);
    // What it recorded has to be joined all the same.
    assert_eq!(forked(false), Err(UNJOINED));

    let mut given = null_mut();
    ok(cuGraphCreate(&mut given, 0));
    ok(cuStreamBeginCaptureToGraph(
        world.stream,
        given,
        std::ptr::null(),
        std::ptr::null(),
        0,
        MODE,
    ));
    ok(world.launch(0, 1, world.stream));
    ok(cuStreamEndCapture(world.stream, null_mut()));
    ok(cuGraphGetNodes(given, null_mut(), &mut count));
    assert_eq!(count, 1);
    ok(cuStreamBeginCapture(world.stream, MODE));
    assert_eq!(cuStreamEndCapture(world.stream, null_mut()), CUDA_ERROR_INVALID_VALUE);
    ok(cuGraphDestroy(end(world.stream).unwrap()));
}
