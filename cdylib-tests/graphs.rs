//! Graph Management: nodes and edges, clones, child graphs, pictures, what graphs keep alive.

use crate::c::*;
use crate::graph_types::*;
use crate::graph_world::*;
use std::ffi::{CString, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[test]
fn lists_have_the_length_that_fits_and_nulls_after_it() {
    let graph = create();
    let a = empty(graph, &[]);
    let b = empty(graph, &[a]);
    let c = empty(graph, &[a, b]);
    assert_eq!(nodes(graph), [a, b, c]);
    let mut room = [1 as CUgraphNode; 4];
    let mut count = 4;
    ok(cuGraphGetRootNodes(graph, room.as_mut_ptr(), &mut count));
    assert_eq!((count, room), (1, [a, null_mut(), null_mut(), null_mut()]));
    count = 2;
    ok(cuGraphGetNodes(graph, room.as_mut_ptr(), &mut count));
    assert_eq!((count, &room[..2]), (2, &[a, b][..]));
    let (mut from, mut to) = ([null_mut(); 3], [null_mut(); 3]);
    count = 3;
    ok(cuGraphGetEdges(
        graph,
        from.as_mut_ptr(),
        to.as_mut_ptr(),
        null_mut(),
        &mut count,
    ));
    assert_eq!((count, from, to), (3, [a, a, b], [b, c, c]));
    count = 9;
    ok(cuGraphNodeGetDependentNodes(a, null_mut(), null_mut(), &mut count));
    assert_eq!(count, 2);
    assert_eq!(dependencies(c), [a, b]);
    assert_eq!(cuGraphGetNodes(graph, null_mut(), null_mut()), CUDA_ERROR_INVALID_VALUE);
    // One of the two arrays alone.
    let lopsided = cuGraphGetEdges(graph, from.as_mut_ptr(), null_mut(), null_mut(), &mut count);
    assert_eq!(lopsided, CUDA_ERROR_INVALID_VALUE);
    let (mut id, mut inside) = (9, null_mut());
    ok(cuGraphNodeGetLocalId(b, &mut id));
    ok(cuGraphNodeGetContainingGraph(b, &mut inside));
    assert_eq!((id, inside), (1, graph));
    // A node that goes takes its edges along.
    ok(cuGraphDestroyNode(b));
    assert_eq!(dependencies(c), [a]);
    assert_eq!(cuGraphDestroyNode(b), CUDA_ERROR_INVALID_VALUE);
    ok(cuGraphDestroy(graph));
    assert_eq!(cuGraphGetNodes(graph, null_mut(), &mut count), CUDA_ERROR_INVALID_VALUE);
    let mut what = 0;
    assert_eq!(cuGraphNodeGetType(a, &mut what), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn edges_are_added_and_removed_all_or_none() {
    let (graph, other) = (create(), create());
    let [a, b, c] = [empty(graph, &[]), empty(graph, &[]), empty(graph, &[])];
    let stranger = empty(other, &[]);
    let add = |from: &[CUgraphNode], to: &[CUgraphNode]| {
        cuGraphAddDependencies(graph, from.as_ptr(), to.as_ptr(), null(), from.len())
    };
    let remove = |from: &[CUgraphNode], to: &[CUgraphNode]| {
        cuGraphRemoveDependencies(graph, from.as_ptr(), to.as_ptr(), null(), from.len())
    };
    ok(add(&[a, b], &[b, c]));
    // There already, to itself, from another graph: none of them, nor the good one before.
    for (from, to) in [(a, b), (a, a), (stranger, b), (b, stranger), (null_mut(), a)] {
        assert_eq!(add(&[a, from], &[c, to]), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(dependencies(c), [b]);
    }
    assert_eq!(remove(&[b, a], &[c, c]), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(dependencies(c), [b]);
    ok(remove(&[b], &[c]));
    assert_eq!(dependencies(c), []);
    ok(remove(&[], &[]));
    // Twice among the dependencies of a new node.
    let mut node = null_mut();
    let twice = [a, a];
    assert_eq!(
        cuGraphAddEmptyNode(&mut node, graph, twice.as_ptr(), 2),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuGraphAddEmptyNode(&mut node, graph, null(), 1),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuGraphAddEmptyNode(null_mut(), graph, null(), 0),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(other));
}

#[test]
fn edges_carry_ports_and_say_so() {
    let world = World::new();
    let graph = create();
    let a = world.mix(graph, 0, 1, &[]);
    let (mut b, mut record) = (null_mut(), NodeParams::new(NODE_KERNEL));
    let programmatic = EdgeData {
        from_port: 1,
        to_port: 0,
        kind: 1,
        reserved: [0; 5],
    };
    world.with_mix(0, 2, |params| {
        record.members.kernel = *params;
        ok(cuGraphAddNode(&mut b, graph, &a, &programmatic, 1, &mut record));
    });
    let (mut node, mut data, mut count) = (
        null_mut(),
        EdgeData {
            kind: 9,
            ..programmatic
        },
        1,
    );
    let lossy = cuGraphNodeGetDependencies(b, &mut node, null_mut(), &mut count);
    assert_eq!(lossy, CUDA_ERROR_LOSSY_QUERY);
    ok(cuGraphNodeGetDependencies(b, &mut node, &mut data, &mut count));
    assert_eq!((node, data), (a, programmatic));
    ok(cuGraphNodeGetDependentNodes(a, &mut node, &mut data, &mut count));
    assert_eq!((node, data), (b, programmatic));
    // Removed only by its data.
    assert_eq!(
        cuGraphRemoveDependencies(graph, &a, &b, null(), 1),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuGraphRemoveDependencies(graph, &a, &b, &programmatic, 1));
    // Ports that nodes do not have.
    let host = empty(graph, &[]);
    for (from, to, data) in [
        (
            a,
            b,
            EdgeData {
                from_port: 3,
                ..programmatic
            },
        ),
        (
            a,
            b,
            EdgeData {
                to_port: 1,
                ..programmatic
            },
        ),
        (
            a,
            b,
            EdgeData {
                kind: 2,
                ..programmatic
            },
        ),
        (
            a,
            b,
            EdgeData {
                reserved: [0, 0, 1, 0, 0],
                ..programmatic
            },
        ),
        (host, b, programmatic),
        (a, host, programmatic),
    ] {
        let result = cuGraphAddDependencies(graph, &from, &to, &data, 1);
        assert_eq!(result, CUDA_ERROR_INVALID_VALUE, "{data:?}");
    }
    ok(cuGraphDestroy(graph));
}

#[test]
fn child_graphs_and_clones_are_copies() {
    let world = World::new();
    let (graph, parent) = (create(), create());
    let inner = world.mix(graph, 0, 1, &[]);
    let (mut child, mut embedded) = (null_mut(), null_mut());
    let before = world.mix(parent, 0, 8, &[]);
    ok(cuGraphAddChildGraphNode(&mut child, parent, &before, 1, graph));
    world.mix(parent, 0, 9, &[child]);
    // The original changes; the copy in the node does not.
    world.with_mix(0, 5, |params| ok(cuGraphKernelNodeSetParams(inner, params)));
    ok(cuGraphChildGraphNodeGetGraph(child, &mut embedded));
    assert_ne!(embedded, graph);
    assert_eq!(cuGraphDestroy(embedded), CUDA_ERROR_INVALID_VALUE);
    let exec = instantiate(parent);
    ok(cuGraphLaunch(exec, world.stream));
    assert_eq!(world.word(0), mixed(0, &[8, 1, 9]));
    // A node inside it, by its own handle; then the whole inside.
    let copy = nodes(embedded)[0];
    world.with_mix(0, 2, |params| ok(cuGraphExecKernelNodeSetParams(exec, copy, params)));
    world.set(0, 0);
    ok(cuGraphLaunch(exec, world.stream));
    assert_eq!(world.word(0), mixed(0, &[8, 2, 9]));
    ok(cuGraphExecChildGraphNodeSetParams(exec, child, graph));
    world.set(0, 0);
    ok(cuGraphLaunch(exec, world.stream));
    assert_eq!(world.word(0), mixed(0, &[8, 5, 9]));
    world.mix(graph, 0, 1, &[inner]);
    assert_eq!(
        cuGraphExecChildGraphNodeSetParams(exec, child, graph),
        CUDA_ERROR_INVALID_VALUE
    );

    let (mut clone, mut found) = (null_mut(), null_mut());
    ok(cuGraphClone(&mut clone, graph));
    ok(cuGraphNodeFindInClone(&mut found, inner, clone));
    assert_ne!(found, inner);
    assert_eq!(nodes(clone)[0], found);
    assert_eq!(
        cuGraphNodeFindInClone(&mut found, child, clone),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuGraphDestroy(graph));
    assert_eq!(nodes(clone).len(), 2);
    ok(cuGraphDestroy(clone));
    // The embedded graph goes with its node.
    ok(cuGraphDestroyNode(child));
    assert_eq!(cuGraphGetNodes(embedded, null_mut(), &mut 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuGraphDestroy(parent));
    ok(cuGraphExecDestroy(exec));
}

#[test]
fn a_graph_can_move_into_a_node() {
    let world = World::new();
    let (graph, parent) = (create(), create());
    world.mix(graph, 0, 1, &[]);
    let add = |to: CUgraph, child: CUgraph, ownership: c_int| {
        let mut params = NodeParams::new(NODE_GRAPH);
        params.members.child = (child, ownership);
        let mut node = null_mut();
        (cuGraphAddNode(&mut node, to, null(), null(), 0, &mut params), node)
    };
    // Into itself, with an ownership that is none.
    assert_eq!(add(graph, graph, 1).0, CUDA_ERROR_INVALID_VALUE);
    assert_eq!(add(parent, graph, -1).0, CUDA_ERROR_INVALID_VALUE);
    let (result, node) = add(parent, graph, 1);
    ok(result);
    let mut embedded = null_mut();
    ok(cuGraphChildGraphNodeGetGraph(node, &mut embedded));
    assert_eq!(embedded, graph);
    assert_eq!(add(parent, graph, 1).0, CUDA_ERROR_INVALID_VALUE);
    let mut params = NodeParams::new(0);
    ok(cuGraphNodeGetParams(node, &mut params));
    // SAFETY: the member that the kind names, if the call is right; all members consist of numbers and raw pointers.
    let child = unsafe { params.members.child };
    assert_eq!((params.kind, child), (NODE_GRAPH, (graph, -1)));
    ok(cuGraphDestroy(parent));
    assert_eq!(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn the_picture_of_a_graph_is_dot() {
    let world = World::new();
    let (graph, inner) = (create(), create());
    let a = world.mix(graph, 0, 1, &[]);
    world.mix(inner, 0, 2, &[]);
    let mut child = null_mut();
    ok(cuGraphAddChildGraphNode(&mut child, graph, &a, 1, inner));
    empty(graph, &[child]);
    let path = std::env::temp_dir().join(format!("margay-dot-{}", std::process::id()));
    let name = CString::new(path.to_str().unwrap()).unwrap();
    for flags in [0, 1, 4 | 1024] {
        ok(cuGraphDebugDotPrint(graph, name.as_ptr(), flags));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("digraph dot {\n") && text.trim_end().ends_with('}'));
        assert_eq!(text.matches('{').count(), text.matches('}').count());
        // Every end of an edge is a node that has been declared.
        let declared: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| line.contains("[shape="))
            .filter_map(|line| line.split('[').next())
            .collect();
        assert_eq!(declared.len(), 4);
        let edges: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| line.contains(" -> "))
            .collect();
        assert_eq!(edges.len(), 3);
        for end in edges
            .iter()
            .flat_map(|edge| edge.split(['[', ';']).next().unwrap().split(" -> "))
        {
            assert!(declared.contains(&end), "{end} in\n{text}");
        }
        assert!(text.contains("mix"));
        assert_eq!(text.contains("<<<"), flags != 0);
    }
    assert_eq!(
        cuGraphDebugDotPrint(graph, name.as_ptr(), 1 << 30),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuGraphDebugDotPrint(graph, c"/no/such/place".as_ptr(), 0), 304);
    std::fs::remove_file(path).unwrap();
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(inner));
}

static ENDED: AtomicU32 = AtomicU32::new(0);

extern "C" fn ended(data: *mut c_void) {
    ENDED.fetch_add(u32::from(data as usize == NUMBER), Ordering::SeqCst);
}

/// What the destructor is given.
const NUMBER: usize = 77;

fn wait_until(what: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !what() && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(1));
    }
    what()
}

#[test]
fn user_objects_end_with_the_last_graph_that_needs_them() {
    let world = World::new();
    let mut object = null_mut();
    let create_object = |object: *mut CUuserObject, count, flags| {
        cuUserObjectCreate(object, NUMBER as *mut c_void, Some(ended), count, flags)
    };
    for (count, flags) in [(0, 1), (1, 0), (1 << 31, 1), (1, 3)] {
        assert_eq!(create_object(&mut object, count, flags), CUDA_ERROR_INVALID_VALUE);
    }
    ok(create_object(&mut object, 2, 1));
    let (graph, mut clone) = (create(), null_mut());
    ok(cuGraphRetainUserObject(graph, object, 1, 1));
    ok(cuGraphRetainUserObject(graph, object, 2, 0));
    assert_eq!(cuGraphReleaseUserObject(graph, object, 4), CUDA_ERROR_INVALID_VALUE);
    ok(cuGraphReleaseUserObject(graph, object, 2));
    // The caller has one left.
    assert_eq!(cuUserObjectRelease(object, 2), CUDA_ERROR_INVALID_VALUE);
    ok(cuUserObjectRetain(object, 3));
    ok(cuUserObjectRelease(object, 4));
    world.mix(graph, 0, 1, &[]);
    ok(cuGraphClone(&mut clone, graph));
    let exec = instantiate(graph);
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(clone));
    ok(cuGraphLaunch(exec, world.stream));
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(ENDED.load(Ordering::SeqCst), 0);
    ok(cuGraphExecDestroy(exec));
    ok(cuStreamSynchronize(world.stream));
    assert!(wait_until(|| ENDED.load(Ordering::SeqCst) == 1));
    assert_eq!(cuUserObjectRetain(object, 1), CUDA_ERROR_INVALID_VALUE);
}
