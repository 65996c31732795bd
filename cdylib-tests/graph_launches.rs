//! Graph Management: instantiation and launches, of nodes of every type.

use crate::alone::alone;
use crate::c::*;
use crate::graph_types::*;
use crate::graph_world::*;
use crate::test_name;
use std::ffi::{c_char, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[test]
fn cycles_are_found_when_a_graph_is_instantiated() {
    ok(cuInit(0));
    let graph = create();
    let a = empty(graph, &[]);
    let b = empty(graph, &[a]);
    let c = empty(graph, &[b]);
    ok(cuGraphAddDependencies(graph, &c, &b, null(), 1));
    let mut exec = null_mut();
    assert_eq!(cuGraphInstantiate(&mut exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
    let mut params = InstantiateParams {
        flags: 0,
        upload: null_mut(),
        error_node: null_mut(),
        result: -1,
    };
    let result = cuGraphInstantiateWithParams(&mut exec, graph, &mut params);
    assert_eq!((result, params.result), (CUDA_ERROR_INVALID_VALUE, 2));
    assert!([b, c].contains(&params.error_node));
    let (mut node, mut log) = (null_mut(), [1 as c_char; 64]);
    let result = cuGraphInstantiate_v2(&mut exec, graph, &mut node, log.as_mut_ptr(), 64);
    assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
    assert!([b, c].contains(&node));
    assert!(log.contains(&0) && log[0] != 0);
    ok(cuGraphRemoveDependencies(graph, &c, &b, null(), 1));
    ok(cuGraphInstantiateWithParams(&mut exec, graph, &mut params));
    assert_eq!((params.result, params.error_node), (0, null_mut()));
    ok(cuGraphExecDestroy(exec));
    assert_eq!(cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
    // Flags that mean nothing, or do not go together.
    for flags in [16, 1 | 4] {
        assert_eq!(cuGraphInstantiate(&mut exec, graph, flags), CUDA_ERROR_INVALID_VALUE);
    }
    ok(cuGraphInstantiate(&mut exec, graph, 8 | 1));
    let mut flags = 0;
    ok(cuGraphExecGetFlags(exec, &mut flags));
    assert_eq!(flags, 9);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
}

/// As a copy to such memory is that is not part of a graph.
#[test]
fn a_graph_that_copies_to_pageable_memory_is_done_when_the_launch_returns() {
    const WORDS: usize = 8 << 20;
    let world = World::new();
    let graph = create();
    let mut device = 0;
    ok(cuMemAlloc(&mut device, WORDS * 4));
    let fill = MemsetParams {
        dst: device,
        pitch: 0,
        value: 0,
        element: 4,
        width: WORDS,
        height: 1,
    };
    let mut last = null_mut();
    let mut before: Vec<CUgraphNode> = Vec::new();
    // Long enough that nobody is done by chance.
    for value in 1..=8 {
        let fill = MemsetParams { value, ..fill };
        ok(cuGraphAddMemsetNode(
            &mut last,
            graph,
            before.as_ptr(),
            before.len(),
            &fill,
            world.context,
        ));
        before = vec![last];
    }
    let mut words = vec![0_u32; WORDS];
    let record = Memcpy3D {
        src_type: DEVICE,
        src_device: device,
        src_pitch: WORDS * 4,
        dst_type: HOST,
        dst_host: words.as_mut_ptr().cast(),
        dst_pitch: WORDS * 4,
        width: WORDS * 4,
        height: 1,
        depth: 1,
        ..zeroed()
    };
    let mut copy = null_mut();
    ok(cuGraphAddMemcpyNode(&mut copy, graph, &last, 1, &record, world.context));
    let exec = instantiate(graph);
    let launch = |words: &[u32]| {
        ok(cuGraphLaunch(exec, world.stream));
        // SAFETY: what the copy has written, of which the compiler knows nothing.
        [0, WORDS - 1].map(|at| unsafe { words.as_ptr().add(at).read_volatile() })
    };
    assert_eq!(launch(&words), [8, 8]);
    // A launch without the copy is waited for by nobody.
    ok(cuGraphNodeSetEnabled(exec, copy, 0));
    ok(cuGraphLaunch(exec, world.stream));
    assert_eq!(cuStreamQuery(world.stream), CUDA_ERROR_NOT_READY);
    ok(cuStreamSynchronize(world.stream));
    // Of another place, and enabled again.
    let mut others = vec![0_u32; WORDS];
    let elsewhere = Memcpy3D {
        dst_host: others.as_mut_ptr().cast(),
        ..record
    };
    ok(cuGraphExecMemcpyNodeSetParams(exec, copy, &elsewhere, world.context));
    ok(cuGraphNodeSetEnabled(exec, copy, 1));
    assert_eq!(launch(&others), [8, 8]);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(device));
}

#[test]
fn nodes_run_after_what_they_depend_on_each_time() {
    let world = World::new();
    let graph = create();
    let mut set = null_mut();
    ok(cuGraphAddMemsetNode(
        &mut set,
        graph,
        null(),
        0,
        &world.memset(0, 5, 2),
        world.context,
    ));
    // Made in an order that is not the one in which they have to run.
    let last = world.mix(graph, 0, 4, &[]);
    let middle = world.mix(graph, 0, 3, &[]);
    let first = world.mix(graph, 0, 2, &[set]);
    ok(cuGraphAddDependencies(
        graph,
        [first, middle].as_ptr(),
        [middle, last].as_ptr(),
        null(),
        2,
    ));
    let mut found = Box::new([0_u32; 2]);
    let (mut copy, mut host) = (null_mut(), null_mut());
    let record = world.to_host(0, found.as_mut_ptr(), 2);
    ok(cuGraphAddMemcpyNode(&mut copy, graph, &last, 1, &record, world.context));
    let calls = AtomicU32::new(0);
    let call = HostParams {
        function: Some(add_one),
        data: (&raw const calls).cast_mut().cast(),
    };
    ok(cuGraphAddHostNode(&mut host, graph, &copy, 1, &call));
    let kinds: Vec<_> = nodes(graph).into_iter().map(kind).collect();
    assert_eq!(
        kinds,
        [
            NODE_MEMSET,
            NODE_KERNEL,
            NODE_KERNEL,
            NODE_KERNEL,
            NODE_MEMCPY,
            NODE_HOST
        ]
    );
    let exec = instantiate(graph);
    // The graph may go.
    ok(cuGraphDestroy(graph));
    for round in 1..4 {
        found.fill(0);
        ok(cuGraphUpload(exec, world.stream));
        ok(cuGraphLaunch(exec, world.stream));
        ok(cuStreamSynchronize(world.stream));
        assert_eq!(*found, [mixed(5, &[2, 3, 4]), 5]);
        assert_eq!(calls.load(Ordering::SeqCst), round);
    }
    ok(cuGraphExecDestroy(exec));
}

/// Launches are ordered like any other work of the stream, and one after the other wherever they are.
#[test]
fn launches_keep_the_order_of_streams_and_never_overlap() {
    let world = World::new();
    let graph = create();
    let first = world.mix(graph, 0, 1, &[]);
    world.mix(graph, 0, 2, &[first]);
    let exec = instantiate(graph);
    let mut expected = Vec::new();
    for n in 10..20 {
        ok(world.launch(0, n, world.stream));
        ok(cuGraphLaunch(exec, world.stream));
        expected.extend([n, 1, 2]);
    }
    assert_eq!(world.word(0), mixed(0, &expected));
    // A body of two steps that is not atomic: overlapping launches would be seen.
    let mut other = null_mut();
    ok(cuStreamCreate(&mut other, 1));
    world.set(0, 0);
    for _ in 0..50 {
        ok(cuGraphLaunch(exec, world.stream));
        ok(cuGraphLaunch(exec, other));
    }
    assert_eq!(world.word(0), mixed(0, &[1, 2].repeat(100)));
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
}

#[test]
fn events_are_recorded_and_waited_for_by_nodes() {
    let world = World::new();
    let (mut event, mut signal, mut other) = (null_mut(), null_mut(), null_mut());
    ok(cuEventCreate(&mut event, 0));
    ok(cuEventCreate(&mut signal, 2));
    ok(cuStreamCreate(&mut other, 1));
    let graph = create();
    let (mut wait, mut record, mut found) = (null_mut(), null_mut(), null_mut());
    ok(cuGraphAddEventWaitNode(&mut wait, graph, null(), 0, signal));
    let kernel = world.mix(graph, 0, 2, &[wait]);
    ok(cuGraphAddEventRecordNode(&mut record, graph, &kernel, 1, signal));
    ok(cuGraphEventWaitNodeGetEvent(wait, &mut found));
    assert_eq!(found, signal);
    assert_eq!(
        cuGraphEventRecordNodeGetEvent(wait, &mut found),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuGraphEventRecordNodeSetEvent(record, event));
    ok(cuGraphEventRecordNodeGetEvent(record, &mut found));
    assert_eq!(found, event);
    assert_eq!(
        cuGraphEventRecordNodeSetEvent(record, null_mut()),
        CUDA_ERROR_INVALID_VALUE
    );
    let exec = instantiate(graph);
    // Often: a wait that looks at `other` a moment too late sees it wait for this very launch.
    for n in 1..4000 {
        // other: n, then signal → graph: 2, then event → other: 3.
        ok(world.launch(0, n, other));
        ok(cuEventRecord(signal, other));
        ok(cuGraphLaunch(exec, world.stream));
        ok(cuStreamWaitEvent(other, event, 0));
        ok(world.launch(0, 3, other));
    }
    let expected: Vec<u32> = (1..4000).flat_map(|n| [n, 2, 3]).collect();
    assert_eq!(world.word(0), mixed(0, &expected));
    ok(cuEventSynchronize(event));
    ok(cuGraphDestroy(graph));
    ok(cuGraphExecDestroy(exec));
}

/// A wait that a record of the same graph comes before is for that record, after an update as well.
#[test]
fn what_a_graph_records_itself_it_waits_for_from_nobody_else() {
    let world = World::new();
    let (mut event, mut other, mut third) = (null_mut(), null_mut(), null_mut());
    ok(cuEventCreate(&mut event, 2));
    ok(cuStreamCreate(&mut other, 1));
    ok(cuStreamCreate(&mut third, 1));
    let build = || {
        let (graph, mut record, mut wait) = (create(), null_mut(), null_mut());
        ok(cuGraphAddEventRecordNode(&mut record, graph, null(), 0, event));
        ok(cuGraphAddEventWaitNode(&mut wait, graph, &record, 1, event));
        world.mix(graph, 0, 2, &[wait]);
        graph
    };
    let (graph, same) = (build(), build());
    let exec = instantiate(graph);
    let mut info = UpdateInfo {
        result: -1,
        node: null_mut(),
        from: null_mut(),
    };
    ok(cuGraphExecUpdate(exec, same, &mut info));
    // Another stream stands still, and its record of the event with it.
    ok(cuStreamWaitValue32(other, world.words + 4, 1, 1));
    ok(cuEventRecord(event, other));
    ok(cuGraphLaunch(exec, world.stream));
    let started = Instant::now();
    let mut is_done = false;
    while !is_done && started.elapsed().as_secs() < 5 {
        is_done = cuStreamQuery(world.stream) == 0;
        std::thread::yield_now();
    }
    ok(cuStreamWriteValue32(third, world.words + 4, 1, 0));
    assert!(is_done, "the launch waits for another stream's record");
    assert_eq!(world.word(0), mixed(0, &[2]));
    for graph in [graph, same] {
        ok(cuGraphDestroy(graph));
    }
    ok(cuGraphExecDestroy(exec));
}

#[test]
fn memory_operations_are_nodes_too() {
    let world = World::new();
    let graph = create();
    let operation = |operation, index: u64, value| MemOp {
        operation,
        address: world.words + 4 * index,
        value,
        ..zeroed()
    };
    let mut operations = [
        operation(WRITE_32, 0, 7),
        operation(WAIT_32, 0, 7),
        operation(WRITE_64, 2, 1 << 33),
    ];
    let record = BatchParams {
        ctx: world.context,
        count: 3,
        operations: operations.as_mut_ptr(),
        flags: 0,
    };
    let mut node = null_mut();
    ok(cuGraphAddBatchMemOpNode(&mut node, graph, null(), 0, &record));
    let mut found = BatchParams { count: 0, ..record };
    ok(cuGraphBatchMemOpNodeGetParams(node, &mut found));
    // SAFETY: the node keeps them.
    let kept = unsafe { std::slice::from_raw_parts(found.operations, found.count as usize) };
    assert_eq!(kept, operations);
    world.mix(graph, 0, 1, &[node]);
    let exec = instantiate(graph);
    ok(cuGraphLaunch(exec, world.stream));
    assert_eq!((world.word(0), world.word(2), world.word(3)), (mixed(7, &[1]), 0, 2));
    operations[1].address = 4;
    let record = BatchParams {
        operations: operations.as_mut_ptr(),
        ..record
    };
    assert_eq!(
        cuGraphAddBatchMemOpNode(&mut node, graph, null(), 0, &record),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuGraphDestroy(graph));
    ok(cuGraphExecDestroy(exec));
}

/// The numbers of bodies that ran are written down by `mix`.
#[test]
fn conditional_nodes_run_the_body_that_their_value_says() {
    let world = World::new();
    let graph = create();
    let conditional = |kind: c_uint, size: c_uint, flags: c_uint, default: c_uint, before: &[CUgraphNode]| {
        let (mut handle, mut node) = (0, null_mut());
        ok(cuGraphConditionalHandleCreate(
            &mut handle,
            graph,
            world.context,
            default,
            flags,
        ));
        let mut params = NodeParams::new(NODE_CONDITIONAL);
        params.members.conditional = ConditionalParams {
            handle,
            kind,
            size,
            graphs: null_mut(),
            ctx: world.context,
        };
        ok(cuGraphAddNode(
            &mut node,
            graph,
            before.as_ptr(),
            null(),
            before.len(),
            &mut params,
        ));
        // SAFETY: the member of that type; the array is the node's (manual).
        let bodies = unsafe { std::slice::from_raw_parts(params.members.conditional.graphs, size as usize) };
        (handle, node, bodies.to_vec())
    };
    let count = |graph: CUgraph, index: usize, handle: u64, before: &[CUgraphNode]| {
        let (mut to, mut handle, mut node) = (world.words + 4 * index as u64, handle, null_mut());
        let mut params = [(&raw mut to).cast::<c_void>(), (&raw mut handle).cast()];
        let record = KernelParams {
            func: world.count,
            grid: [1; 3],
            block: [1; 3],
            params: params.as_mut_ptr(),
            ..zeroed()
        };
        ok(cuGraphAddKernelNode(
            &mut node,
            graph,
            before.as_ptr(),
            before.len(),
            &record,
        ));
        node
    };
    // While: the body counts word 1 down to 0. It begins with 1 at each launch.
    let (handle, first, bodies) = conditional(WHILE, 1, 1, 1, &[]);
    let inner = world.mix(bodies[0], 0, 1, &[]);
    count(bodies[0], 1, handle, &[inner]);
    // If, with an else: word 2 decides.
    let (mut handle_if, kernel);
    {
        let (handle, node, bodies) = conditional(IF, 2, 0, 0, &[first]);
        handle_if = handle;
        kernel = count(graph, 2, handle, &[first]);
        ok(cuGraphAddDependencies(graph, &kernel, &node, null(), 1));
        world.mix(bodies[0], 0, 2, &[]);
        world.mix(bodies[1], 0, 3, &[]);
        // Switch on word 3: three bodies.
        let (handle, node_switch, bodies) = conditional(SWITCH, 3, 1, 9, &[node]);
        let decide = count(graph, 3, handle, &[node]);
        ok(cuGraphAddDependencies(graph, &decide, &node_switch, null(), 1));
        for (body, n) in bodies.iter().zip(4..) {
            world.mix(*body, 0, n, &[]);
        }
        world.mix(graph, 0, 7, &[node_switch]);
    }
    let exec = instantiate(graph);
    // (loops, if, switch) as the words before they are counted down → what ran.
    for (words, expected) in [
        ([3, 2, 1], vec![1, 1, 1, 2, 4, 7]),
        ([1, 1, 3], vec![1, 3, 6, 7]),
        ([2, 5, 2], vec![1, 1, 2, 5, 7]),
        ([1, 1, 8], vec![1, 3, 7]),
    ] {
        world.set(0, 0);
        for (index, word) in words.into_iter().enumerate() {
            world.set(index + 1, word);
        }
        ok(cuGraphLaunch(exec, world.stream));
        assert_eq!(world.word(0), mixed(0, &expected), "{words:?}");
    }
    // A handle is for one node; such graphs cannot be copied, nor changed by a record.
    let mut params = NodeParams::new(NODE_CONDITIONAL);
    params.members.conditional = ConditionalParams {
        handle,
        kind: IF,
        size: 1,
        graphs: null_mut(),
        ctx: world.context,
    };
    let mut node = null_mut();
    let twice = cuGraphAddNode(&mut node, graph, null(), null(), 0, &mut params);
    assert_eq!(twice, CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuGraphClone(&mut node, graph), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuGraphNodeSetParams(first, &mut params), CUDA_ERROR_NOT_SUPPORTED);
    // A handle that no node uses.
    ok(cuGraphConditionalHandleCreate(&mut handle_if, graph, null_mut(), 0, 0));
    let mut record = InstantiateParams {
        flags: 0,
        upload: null_mut(),
        error_node: null_mut(),
        result: 0,
    };
    let result = cuGraphInstantiateWithParams(&mut node, graph, &mut record);
    assert_eq!((result, record.result), (CUDA_ERROR_INVALID_VALUE, 5));
    let odd = cuGraphConditionalHandleCreate(&mut handle_if, graph, null_mut(), 0, 2);
    assert_eq!(odd, CUDA_ERROR_INVALID_VALUE);
    ok(cuGraphDestroy(graph));
    ok(cuGraphExecDestroy(exec));
}

/// An executable graph puts one command into the stream; single launches put one each.
#[test]
fn a_graph_of_a_thousand_kernels_is_launched_faster_than_its_kernels() {
    alone(test_name!(), &[("MARGAY_THREADS", "1")], || {
        let world = World::new();
        let graph = create();
        let (mut node, mut before) = (null_mut(), Vec::new());
        let record = KernelParams {
            func: world.nothing,
            grid: [1; 3],
            block: [1; 3],
            ..zeroed()
        };
        for _ in 0..1000 {
            ok(cuGraphAddKernelNode(
                &mut node,
                graph,
                before.as_ptr(),
                before.len(),
                &record,
            ));
            before = vec![node];
        }
        let exec = instantiate(graph);
        let time = |run: &dyn Fn()| {
            let began = Instant::now();
            run();
            ok(cuStreamSynchronize(world.stream));
            began.elapsed()
        };
        let graph_of_them = || ok(cuGraphLaunch(exec, world.stream));
        let each = || {
            for _ in 0..1000 {
                let none = null_mut();
                ok(cuLaunchKernel(
                    world.nothing,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    0,
                    world.stream,
                    none,
                    null_mut(),
                ));
            }
        };
        // The best of many, by turns: others may be at work on the machine, and for a while on one of the two only.
        let (mut by_graph, mut one_by_one) = (Duration::MAX, Duration::MAX);
        for turn in 0..120 {
            by_graph = by_graph.min(time(&graph_of_them));
            one_by_one = one_by_one.min(time(&each));
            if turn >= 15 && by_graph < one_by_one {
                break;
            }
        }
        println!("1000 kernels: {by_graph:?} as a graph, {one_by_one:?} one by one");
        assert!(by_graph < one_by_one, "{by_graph:?} and {one_by_one:?}");
        ok(cuGraphExecDestroy(exec));
        ok(cuGraphDestroy(graph));
    });
}
