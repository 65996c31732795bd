//! Graph Management: what nodes do, given and given back, and changed in executable graphs.

use crate::c::*;
use crate::graph_types::*;
use crate::graph_world::*;
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicU32;

/// `CU_LAUNCH_PARAM_BUFFER_POINTER` and `…_SIZE`.
const BUFFER_POINTER: usize = 1;

const BUFFER_SIZE: usize = 2;

#[test]
fn parameters_come_back_and_can_be_changed() {
    let world = World::new();
    let graph = create();
    let node = world.mix(graph, 3, 7, &[]);
    let mut record: KernelParams = zeroed();
    ok(cuGraphKernelNodeGetParams(node, &mut record));
    assert_eq!(
        (record.func, record.grid, record.extra),
        (world.mix, [1; 3], null_mut())
    );
    // SAFETY: the node keeps the values as long as it is not changed (manual).
    unsafe {
        assert_eq!(*(*record.params).cast::<u64>(), world.words + 12);
        assert_eq!(*(*record.params.add(1)).cast::<u32>(), 7);
    }
    // The same in a buffer; it is copied.
    let mut buffer = [world.words + 16, 9];
    let mut bytes = 12_usize;
    let mut extra: [*mut c_void; 5] = [
        BUFFER_POINTER as *mut c_void,
        buffer.as_mut_ptr().cast(),
        BUFFER_SIZE as *mut c_void,
        (&raw mut bytes).cast(),
        null_mut(),
    ];
    let packed = KernelParams {
        params: null_mut(),
        extra: extra.as_mut_ptr(),
        ..record
    };
    ok(cuGraphKernelNodeSetParams(node, &packed));
    buffer = [0; 2];
    let exec = instantiate(graph);
    ok(cuGraphLaunch(exec, world.stream));
    assert_eq!((world.word(3), world.word(4), buffer), (0, 9, [0; 2]));
    ok(cuGraphKernelNodeGetParams(node, &mut record));
    assert!(record.params.is_null() && !record.extra.is_null());
    // Both, neither, a function that is none, a block of nothing.
    let mut pointers = [null_mut(); 2];
    for wrong in [
        KernelParams {
            params: pointers.as_mut_ptr(),
            ..packed
        },
        KernelParams {
            extra: null_mut(),
            ..packed
        },
        KernelParams {
            func: null_mut(),
            ..packed
        },
        KernelParams {
            block: [0, 1, 1],
            ..packed
        },
        KernelParams {
            grid: [1, 1, 1 << 16],
            ..packed
        },
    ] {
        assert_eq!(cuGraphKernelNodeSetParams(node, &wrong), CUDA_ERROR_INVALID_VALUE);
    }
    let stale = KernelParams {
        func: 0x1234 as CUfunction,
        ..packed
    };
    assert_eq!(cuGraphKernelNodeSetParams(node, &stale), CUDA_ERROR_INVALID_HANDLE);

    let (mut set, mut copy, mut host) = (null_mut(), null_mut(), null_mut());
    let record = world.memset(0, 1, 4);
    ok(cuGraphAddMemsetNode(&mut set, graph, null(), 0, &record, world.context));
    let mut found: MemsetParams = zeroed();
    ok(cuGraphMemsetNodeGetParams(set, &mut found));
    assert_eq!(found, record);
    let changed = MemsetParams {
        value: 6,
        width: 3,
        ..record
    };
    ok(cuGraphMemsetNodeSetParams(set, &changed));
    ok(cuGraphMemsetNodeGetParams(set, &mut found));
    assert_eq!(found, changed);
    for wrong in [
        MemsetParams { element: 3, ..record },
        MemsetParams {
            dst: world.words + 1,
            ..record
        },
        MemsetParams { dst: 64, ..record },
        MemsetParams { width: 65, ..record },
    ] {
        assert_eq!(cuGraphMemsetNodeSetParams(set, &wrong), CUDA_ERROR_INVALID_VALUE);
    }
    let nobody = cuGraphAddMemsetNode(&mut set, graph, null(), 0, &record, 0x40 as CUcontext);
    assert_eq!(nobody, CUDA_ERROR_INVALID_CONTEXT);

    let mut room = [0_u32; 4];
    let record = world.to_host(0, room.as_mut_ptr(), 4);
    ok(cuGraphAddMemcpyNode(
        &mut copy,
        graph,
        null(),
        0,
        &record,
        world.context,
    ));
    let mut found: Memcpy3D = zeroed();
    ok(cuGraphMemcpyNodeGetParams(copy, &mut found));
    assert_eq!(found, record);
    let changed = Memcpy3D {
        src_x: 4,
        width: 8,
        src_pitch: 64,
        ..record
    };
    ok(cuGraphMemcpyNodeSetParams(copy, &changed));
    ok(cuGraphMemcpyNodeGetParams(copy, &mut found));
    assert_eq!(found, changed);
    let outside = Memcpy3D { width: 1024, ..record };
    assert_eq!(cuGraphMemcpyNodeSetParams(copy, &outside), CUDA_ERROR_INVALID_VALUE);

    let calls = AtomicU32::new(0);
    let record = HostParams {
        function: Some(add_one),
        data: (&raw const calls).cast_mut().cast(),
    };
    ok(cuGraphAddHostNode(&mut host, graph, null(), 0, &record));
    let mut found = HostParams {
        function: None,
        data: null_mut(),
    };
    ok(cuGraphHostNodeGetParams(host, &mut found));
    assert_eq!(found.data, record.data);
    assert_eq!(found.function.map(|f| f as usize), Some(add_one as *const () as usize));
    let none = HostParams {
        function: None,
        ..record
    };
    assert_eq!(cuGraphHostNodeSetParams(host, &none), CUDA_ERROR_INVALID_VALUE);
    // Every call is for its own type of node.
    assert_eq!(
        cuGraphKernelNodeGetParams(host, &mut zeroed()),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuGraphMemcpyNodeGetParams(set, &mut zeroed()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuGraphMemsetNodeGetParams(copy, &mut zeroed()),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuGraphHostNodeSetParams(copy, &record), CUDA_ERROR_INVALID_VALUE);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
}

#[test]
fn kernel_attributes_are_kept_and_copied() {
    let world = World::new();
    let graph = create();
    let (a, b) = (world.mix(graph, 0, 1, &[]), world.mix(graph, 0, 2, &[]));
    let value = |first: u64| {
        let mut value = [0_u64; 8];
        value[0] = first;
        value
    };
    const COOPERATIVE: c_int = 2;
    const PRIORITY: c_int = 8;
    let mut found = value(9);
    ok(cuGraphKernelNodeGetAttribute(a, COOPERATIVE, &mut found));
    assert_eq!(found, value(0));
    ok(cuGraphKernelNodeSetAttribute(a, COOPERATIVE, &value(1)));
    ok(cuGraphKernelNodeSetAttribute(a, PRIORITY, &value(0xffff_fffe)));
    ok(cuGraphKernelNodeCopyAttributes(b, a));
    for (attribute, expected) in [(COOPERATIVE, 1), (PRIORITY, 0xffff_fffe)] {
        ok(cuGraphKernelNodeGetAttribute(b, attribute, &mut found));
        assert_eq!(found, value(expected));
    }
    // New parameters leave attributes alone.
    world.with_mix(0, 3, |params| ok(cuGraphKernelNodeSetParams(b, params)));
    ok(cuGraphKernelNodeGetAttribute(b, COOPERATIVE, &mut found));
    assert_eq!(found, value(1));
    for attribute in [3, 99, -1] {
        assert_eq!(
            cuGraphKernelNodeGetAttribute(b, attribute, &mut found),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(
            cuGraphKernelNodeSetAttribute(b, attribute, &found),
            CUDA_ERROR_INVALID_VALUE
        );
    }
    let exec = instantiate(graph);
    ok(cuGraphLaunch(exec, world.stream));
    ok(cuStreamSynchronize(world.stream));
    ok(cuGraphDestroy(graph));
    ok(cuGraphExecDestroy(exec));
}

#[test]
fn executable_graphs_change_node_by_node() {
    let world = World::new();
    let graph = create();
    let mut set = null_mut();
    let zero = world.memset(0, 1, 1);
    ok(cuGraphAddMemsetNode(&mut set, graph, null(), 0, &zero, world.context));
    let kernel = world.mix(graph, 0, 5, &[set]);
    let mut room = Box::new([0_u32; 2]);
    let mut copy = null_mut();
    let record = world.to_host(0, room.as_mut_ptr(), 1);
    ok(cuGraphAddMemcpyNode(
        &mut copy,
        graph,
        &kernel,
        1,
        &record,
        world.context,
    ));
    let exec = instantiate(graph);
    let mut run = || {
        room.fill(0);
        ok(cuGraphLaunch(exec, world.stream));
        ok(cuStreamSynchronize(world.stream));
        room[0]
    };
    assert_eq!(run(), mixed(1, &[5]));
    world.with_mix(0, 6, |params| ok(cuGraphExecKernelNodeSetParams(exec, kernel, params)));
    assert_eq!(run(), mixed(1, &[6]));
    ok(cuGraphExecMemsetNodeSetParams(
        exec,
        set,
        &world.memset(0, 2, 1),
        world.context,
    ));
    assert_eq!(run(), mixed(2, &[6]));
    // The node itself is as it was.
    let mut found: MemsetParams = zeroed();
    ok(cuGraphMemsetNodeGetParams(set, &mut found));
    assert_eq!(found, zero);
    ok(cuGraphExecMemcpyNodeSetParams(
        exec,
        copy,
        &Memcpy3D {
            src_x: 4,
            src_pitch: 64,
            ..record
        },
        world.context,
    ));
    world.set(1, 77);
    assert_eq!(run(), 77);
    ok(cuGraphExecMemcpyNodeSetParams(exec, copy, &record, world.context));
    // Disabled nodes are as if they were empty.
    let mut enabled = 9;
    ok(cuGraphNodeGetEnabled(exec, kernel, &mut enabled));
    assert_eq!(enabled, 1);
    ok(cuGraphNodeSetEnabled(exec, kernel, 0));
    ok(cuGraphNodeGetEnabled(exec, kernel, &mut enabled));
    assert_eq!((enabled, run()), (0, 2));
    ok(cuGraphNodeSetEnabled(exec, kernel, 1));
    assert_eq!(run(), mixed(2, &[6]));
    // What cannot change: size 0, another kind of memory, more dimensions; another type of node; a node of another graph.
    for wrong in [
        Memcpy3D { width: 0, ..record },
        Memcpy3D {
            src_type: UNIFIED,
            ..record
        },
        Memcpy3D {
            height: 2,
            src_pitch: 4,
            dst_pitch: 4,
            ..record
        },
    ] {
        let result = cuGraphExecMemcpyNodeSetParams(exec, copy, &wrong, world.context);
        assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
    }
    let two_rows = MemsetParams {
        height: 2,
        pitch: 64,
        ..zero
    };
    let result = cuGraphExecMemsetNodeSetParams(exec, set, &two_rows, world.context);
    assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
    let result = cuGraphExecMemsetNodeSetParams(exec, copy, &zero, world.context);
    assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
    let other = create();
    let stranger = world.mix(other, 0, 1, &[]);
    world.with_mix(0, 1, |params| {
        let result = cuGraphExecKernelNodeSetParams(exec, stranger, params);
        assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
    });
    assert_eq!(cuGraphNodeSetEnabled(exec, stranger, 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuGraphDestroyNode(copy));
    assert_eq!(
        cuGraphExecMemcpyNodeSetParams(exec, copy, &record, world.context),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(run(), mixed(2, &[6]));
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(other));
    ok(cuGraphExecDestroy(exec));
}

#[test]
fn a_graph_of_the_same_shape_replaces_all_nodes_or_none() {
    let world = World::new();
    let build = |numbers: [u32; 3]| {
        let graph = create();
        let a = world.mix(graph, 0, numbers[0], &[]);
        let b = world.mix(graph, 0, numbers[1], &[a]);
        let c = world.mix(graph, 0, numbers[2], &[b]);
        (graph, [a, b, c])
    };
    let (graph, _) = build([1, 2, 3]);
    let exec = instantiate(graph);
    let run = || {
        world.set(0, 0);
        ok(cuGraphLaunch(exec, world.stream));
        world.word(0)
    };
    let mut info = UpdateInfo {
        result: -1,
        node: 1 as CUgraphNode,
        from: null_mut(),
    };
    let (second, nodes) = build([4, 5, 6]);
    ok(cuGraphExecUpdate(exec, second, &mut info));
    assert_eq!((info.result, info.node, run()), (0, null_mut(), mixed(0, &[4, 5, 6])));
    // One node more: nobody is to blame.
    let extra = world.mix(second, 0, 9, &[nodes[2]]);
    let refused = cuGraphExecUpdate(exec, second, &mut info);
    assert_eq!(
        (refused, info.result, info.node),
        (CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 2, null_mut())
    );
    ok(cuGraphDestroyNode(extra));
    // An edge more.
    ok(cuGraphAddDependencies(second, &nodes[0], &nodes[2], null(), 1));
    let refused = cuGraphExecUpdate(exec, second, &mut info);
    assert_eq!(
        (refused, info.result, info.node),
        (CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 2, nodes[2])
    );
    ok(cuGraphRemoveDependencies(second, &nodes[0], &nodes[2], null(), 1));
    // A node of another type.
    ok(cuGraphDestroyNode(nodes[2]));
    let last = empty(second, &[nodes[1]]);
    let refused = cuGraphExecUpdate(exec, second, &mut info);
    assert_eq!(
        (refused, info.result, info.node),
        (CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 3, last)
    );
    // A kernel that was not cooperative and now is.
    let (third, nodes) = build([7, 8, 9]);
    let mut one = [0; 8];
    one[0] = 1;
    ok(cuGraphKernelNodeSetAttribute(nodes[1], 2, &one));
    let refused = cuGraphExecUpdate(exec, third, &mut info);
    assert_eq!(
        (refused, info.result, info.node),
        (CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 8, nodes[1])
    );
    // Nothing has changed by all that.
    assert_eq!(run(), mixed(0, &[4, 5, 6]));
    assert_eq!(cuGraphExecUpdate(exec, null_mut(), &mut info), CUDA_ERROR_INVALID_VALUE);
    for graph in [graph, second, third] {
        ok(cuGraphDestroy(graph));
    }
    ok(cuGraphExecDestroy(exec));
}

#[test]
fn what_a_record_does_not_use_must_be_zero() {
    let graph = create();
    let mut node = null_mut();
    let mut record = NodeParams::new(NODE_EMPTY);
    ok(cuGraphAddNode(&mut node, graph, null(), null(), 0, &mut record));
    let spoil: [fn(&mut NodeParams); 3] = [
        |record| record.reserved0[1] = 1,
        |record| record.reserved2 = 1,
        // SAFETY: bytes.
        |record| unsafe { record.members.bytes[0] = 1 },
    ];
    for spoil in spoil {
        let mut record = NodeParams::new(NODE_EMPTY);
        spoil(&mut record);
        let result = cuGraphAddNode(&mut node, graph, null(), null(), 0, &mut record);
        assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
    }
    for kind in [-1, 15, 99] {
        let result = cuGraphAddNode(&mut node, graph, null(), null(), 0, &mut NodeParams::new(kind));
        assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
    }
    ok(cuGraphDestroy(graph));
}
