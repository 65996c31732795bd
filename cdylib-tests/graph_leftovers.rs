//! Graph Management: numbers of graphs and nodes, events and memory operations that are exchanged, attributes of launches
//! that a graph keeps.

use std::ffi::{c_uint, c_void};
use std::ptr::{null, null_mut};

use crate::c::*;
use crate::graph_types::*;
use crate::graph_world::*;
use crate::launch::{Attribute, LaunchConfig, attribute, cuLaunchKernelEx};

functions! {
    cuGraphExecGetId(exec: CUgraphExec, id: *mut c_uint);
    cuGraphNodeGetToolsId(node: CUgraphNode, id: *mut u64);
    cuGraphEventWaitNodeSetEvent(node: CUgraphNode, event: CUevent);
    cuGraphEventWaitNodeGetEvent(node: CUgraphNode, event: *mut CUevent);
    cuGraphExecEventRecordNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, event: CUevent);
    cuGraphExecEventWaitNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, event: CUevent);
    cuGraphBatchMemOpNodeSetParams(node: CUgraphNode, record: *const BatchParams);
    cuGraphExecBatchMemOpNodeSetParams(exec: CUgraphExec, node: CUgraphNode, record: *const BatchParams);
    cuGraphKernelNodeGetAttribute(node: CUgraphNode, attribute: c_uint, value: *mut [u64; 8]);
    cuGraphKernelNodeSetAttribute(node: CUgraphNode, attribute: c_uint, value: *const [u64; 8]);
    cuStreamBeginCapture = "cuStreamBeginCapture_v2" (stream: CUstream, mode: c_uint);
    cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
}

fn event() -> CUevent {
    let mut event = null_mut();
    ok(cuEventCreate(&mut event, 2));
    event
}

#[test]
fn graphs_and_nodes_have_numbers() {
    let world = World::new();
    let graph = create();
    let (a, b) = (world.mix(graph, 0, 1, &[]), world.mix(graph, 0, 2, &[]));
    let (mut first, mut second) = (0, 0);
    ok(cuGraphNodeGetToolsId(a, &mut first));
    ok(cuGraphNodeGetToolsId(b, &mut second));
    assert!(first != second && first != 0);
    let (one, two) = (instantiate(graph), instantiate(graph));
    let (mut first, mut second) = (0, 0);
    ok(cuGraphExecGetId(one, &mut first));
    ok(cuGraphExecGetId(two, &mut second));
    assert_ne!(first, second);
    assert_eq!(cuGraphExecGetId(one, null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuGraphExecGetId(null_mut(), &mut first), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuGraphNodeGetToolsId(a, null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuGraphNodeGetToolsId(null_mut(), &mut 0), CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn events_of_nodes_can_be_exchanged() {
    let world = World::new();
    let graph = create();
    let (old, new, other) = (event(), event(), event());
    let (mut wait, mut record, mut found) = (null_mut(), null_mut(), null_mut());
    ok(cuGraphAddEventWaitNode(&mut wait, graph, null(), 0, old));
    let mix = world.mix(graph, 0, 1, &[wait]);
    ok(cuGraphAddEventRecordNode(&mut record, graph, &mix, 1, old));
    ok(cuGraphEventWaitNodeSetEvent(wait, new));
    ok(cuGraphEventWaitNodeGetEvent(wait, &mut found));
    assert_eq!(found, new);
    let exec = instantiate(graph);
    // It waits for what the new event marks, and records the one that it was given last.
    ok(cuGraphExecEventRecordNodeSetEvent(exec, record, other));
    ok(cuGraphExecEventWaitNodeSetEvent(exec, wait, old));
    ok(cuGraphLaunch(exec, world.stream));
    ok(cuStreamSynchronize(world.stream));
    ok(cuEventQuery(other));
    assert_eq!(world.word(0), 1);
    // The graph itself has not changed by that.
    ok(cuGraphEventWaitNodeGetEvent(wait, &mut found));
    assert_eq!(found, new);
    assert_eq!(cuGraphEventWaitNodeSetEvent(record, new), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuGraphExecEventWaitNodeSetEvent(exec, record, new),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuGraphExecEventRecordNodeSetEvent(exec, wait, new),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuGraphExecEventRecordNodeSetEvent(null_mut(), record, new),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_ne!(cuGraphEventWaitNodeSetEvent(wait, null_mut()), CUDA_SUCCESS);
    assert_ne!(cuGraphExecEventWaitNodeSetEvent(exec, wait, null_mut()), CUDA_SUCCESS);
}

#[test]
fn memory_operations_of_nodes_can_be_exchanged() {
    let world = World::new();
    let graph = create();
    // A record of one operation, for one call.
    let with = |operation, address, value, call: &dyn Fn(&BatchParams) -> CUresult| {
        let mut operations = [MemOp {
            operation,
            address,
            value,
            ..zeroed()
        }];
        call(&BatchParams {
            ctx: world.context,
            count: 1,
            operations: operations.as_mut_ptr(),
            flags: 0,
        })
    };
    let (words, added) = (world.words, std::cell::Cell::new(null_mut()));
    ok(with(WRITE_32, words, 7, &|record| {
        let mut node = null_mut();
        let result = cuGraphAddBatchMemOpNode(&mut node, graph, null(), 0, record);
        added.set(node);
        result
    }));
    let node = added.get();
    let set = |record: &BatchParams| cuGraphBatchMemOpNodeSetParams(node, record);
    ok(with(WRITE_32, words, 8, &set));
    let exec = instantiate(graph);
    let run = || {
        ok(cuGraphLaunch(exec, world.stream));
        world.word(0)
    };
    assert_eq!(run(), 8);
    let exchange = |record: &BatchParams| cuGraphExecBatchMemOpNodeSetParams(exec, node, record);
    ok(with(WRITE_32, words, 9, &exchange));
    assert_eq!(run(), 9);
    // Another kind of operation is another node; a bad address is none.
    assert_eq!(with(WRITE_64, words, 9, &exchange), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(with(WAIT_32, words, 9, &exchange), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(with(WRITE_32, 4, 9, &set), CUDA_ERROR_INVALID_VALUE);
    let mix = world.mix(graph, 0, 1, &[]);
    let other = |record: &BatchParams| cuGraphBatchMemOpNodeSetParams(mix, record);
    assert_eq!(with(WRITE_32, words, 9, &other), CUDA_ERROR_INVALID_VALUE);
    let nowhere = |record: &BatchParams| cuGraphExecBatchMemOpNodeSetParams(null_mut(), node, record);
    assert_eq!(with(WRITE_32, words, 9, &nowhere), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuGraphBatchMemOpNodeSetParams(node, null()), CUDA_ERROR_INVALID_VALUE);
}

/// CU_LAUNCH_ATTRIBUTE_…: cooperative, priority, memory domain, updatable, modes of clusters and of shared memory.
#[test]
fn attributes_of_a_launch_that_is_recorded_stay_with_the_node() {
    let world = World::new();
    let mut attributes: [Attribute; 6] = [
        attribute(2, &[1]),
        attribute(8, &[-2_i32 as u32]),
        attribute(10, &[1]),
        attribute(13, &[1]),
        attribute(17, &[1]),
        attribute(18, &[2]),
    ];
    let (mut to, mut n) = (world.words, 5_u32);
    let mut parameters = [(&raw mut to).cast::<c_void>(), (&raw mut n).cast()];
    // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    ok(cuStreamBeginCapture(world.stream, 1));
    let mut config = LaunchConfig::with([1; 3], [1; 3], &mut attributes);
    config.stream = world.stream;
    ok(cuLaunchKernelEx(
        &config,
        world.mix,
        parameters.as_mut_ptr(),
        null_mut(),
    ));
    let mut graph = null_mut();
    ok(cuStreamEndCapture(world.stream, &mut graph));
    let node = nodes(graph)[0];
    let get = |which| {
        let mut value = [9; 8];
        ok(cuGraphKernelNodeGetAttribute(node, which, &mut value));
        value
    };
    assert_eq!([2, 10, 17, 18].map(|which| get(which)[0] as u32), [1, 1, 1, 2]);
    assert_eq!(get(8)[0] as u32, -2_i32 as u32);
    // The handle by which kernels change it is the one that the launch was given.
    assert_eq!((get(13)[0] as u32, get(13)[1]), (1, attributes[3].value[1]));
    assert_ne!(attributes[3].value[1], 0);
    // What has no such node cannot be asked for it; what is settled cannot be undone.
    assert_eq!(
        cuGraphKernelNodeSetAttribute(node, 13, &[0; 8]),
        CUDA_ERROR_INVALID_VALUE
    );
    let exec = instantiate(graph);
    ok(cuGraphLaunch(exec, world.stream));
    assert_eq!(world.word(0), 5);
}
