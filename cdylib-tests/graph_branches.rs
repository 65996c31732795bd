//! Graph Management: what does not depend on each other runs at the same time.

use crate::alone::alone;
use crate::c::*;
use crate::graph_types::*;
use crate::graph_world::*;
use crate::test_name;
use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

/// `meet` sets a flag and waits for another one; `stray` writes where nothing is.
const KERNELS: &str = r#"
.version 7.0
.target sm_70
.address_size 64

.visible .entry meet(.param .u64 mine, .param .u64 other)
{
    .reg .b64 %mine, %other;
    .reg .b32 %v;
    .reg .pred %p;
    ld.param.u64 %mine, [mine];
    ld.param.u64 %other, [other];
    st.release.gpu.global.u32 [%mine], 1;
again:
    ld.acquire.gpu.global.u32 %v, [%other];
    setp.eq.u32 %p, %v, 0;
    @%p bra again;
    ret;
}

.visible .entry stray(.param .u64 mine, .param .u64 other)
{
    .reg .b64 %a;
    mov.u64 %a, 16;
    st.global.u32 [%a], 1;
    ret;
}
"#;

fn kernel(name: &str) -> CUfunction {
    let (mut module, mut function) = (null_mut(), null_mut());
    let (text, name) = (CString::new(KERNELS).unwrap(), CString::new(name).unwrap());
    ok(cuModuleLoadData(&mut module, text.as_ptr().cast()));
    ok(cuModuleGetFunction(&mut function, module, name.as_ptr()));
    function
}

/// A node that calls a kernel with the addresses of two words.
fn with_words(
    world: &World,
    func: CUfunction,
    graph: CUgraph,
    words: [usize; 2],
    before: &[CUgraphNode],
) -> CUgraphNode {
    let mut addresses = words.map(|word| world.words + 4 * word as u64);
    let mut params = addresses
        .each_mut()
        .map(|address| std::ptr::from_mut(address).cast::<c_void>());
    let record = KernelParams {
        func,
        grid: [1; 3],
        block: [1; 3],
        params: params.as_mut_ptr(),
        ..zeroed()
    };
    let mut node = null_mut();
    ok(cuGraphAddKernelNode(
        &mut node,
        graph,
        before.as_ptr(),
        before.len(),
        &record,
    ));
    node
}

fn host<T>(graph: CUgraph, function: HostFn, data: &T, before: &[CUgraphNode]) -> CUgraphNode {
    let call = HostParams {
        function: Some(function),
        data: std::ptr::from_ref(data).cast_mut().cast(),
    };
    let mut node = null_mut();
    ok(cuGraphAddHostNode(
        &mut node,
        graph,
        before.as_ptr(),
        before.len(),
        &call,
    ));
    node
}

/// CUDA programming guide, "CUDA Graphs": an operation can be scheduled at any time once those it depends on are complete.
#[test]
fn kernels_in_branches_can_wait_for_each_other() {
    let run = alone(test_name!(), &[], || {
        let world = World::new();
        let meet = kernel("meet");
        let graph = create();
        let first = empty(graph, &[]);
        let left = with_words(&world, meet, graph, [0, 1], &[first]);
        // The other one is in a graph within the graph, behind a node of its own.
        let child = create();
        let before = world.mix(child, 4, 9, &[]);
        with_words(&world, meet, child, [1, 0], &[before]);
        let mut right = null_mut();
        ok(cuGraphAddChildGraphNode(&mut right, graph, &first, 1, child));
        world.mix(graph, 5, 7, &[left, right]);
        let exec = instantiate(graph);
        for round in 1..=20 {
            world.set(0, 0);
            world.set(1, 0);
            ok(cuGraphLaunch(exec, world.stream));
            ok(cuStreamSynchronize(world.stream));
            let expected = [(4, 9), (5, 7)].map(|(index, number)| (index, mixed(0, &vec![number; round])));
            for (index, value) in expected {
                assert_eq!(world.word(index), value);
            }
        }
        ok(cuGraphExecDestroy(exec));
        ok(cuGraphDestroy(graph));
        ok(cuGraphDestroy(child));
    });
    assert!(run.status.success(), "{}", run.stderr);
}

const PARTIES: u32 = 24;

extern "C" fn wait_for_all(here: *mut c_void) {
    // SAFETY: the test's counter, which outlives the launch.
    let here = unsafe { &*here.cast::<AtomicU32>() };
    here.fetch_add(1, Ordering::AcqRel);
    while here.load(Ordering::Acquire) < PARTIES {
        std::thread::yield_now();
    }
}

#[test]
fn host_functions_in_many_branches_can_wait_for_each_other() {
    let run = alone(test_name!(), &[], || {
        let world = World::new();
        let (graph, here) = (create(), AtomicU32::new(0));
        for _ in 0..PARTIES {
            host(graph, wait_for_all, &here, &[]);
        }
        let exec = instantiate(graph);
        for _ in 0..5 {
            here.store(0, Ordering::Release);
            ok(cuGraphLaunch(exec, world.stream));
            ok(cuStreamSynchronize(world.stream));
            assert_eq!(here.load(Ordering::Acquire), PARTIES);
        }
    });
    assert!(run.status.success(), "{}", run.stderr);
}

/// What a node that notes its turn has.
struct Turn {
    clock: *const AtomicU32,
    begin: AtomicU32,
    end: AtomicU32,
}

extern "C" fn note(turn: *mut c_void) {
    // SAFETY: the test's, which outlives the launch; all of it is atomic.
    let (turn, clock) = unsafe { (&*turn.cast::<Turn>(), &*(*turn.cast::<Turn>()).clock) };
    turn.begin
        .store(clock.fetch_add(1, Ordering::AcqRel), Ordering::Release);
    std::thread::yield_now();
    turn.end.store(clock.fetch_add(1, Ordering::AcqRel), Ordering::Release);
}

#[test]
fn nodes_come_after_what_they_depend_on_in_graphs_of_any_shape() {
    const NODES: usize = 40;
    let world = World::new();
    let clock = AtomicU32::new(0);
    let mut random = 12345_u32;
    for shape in 0..40 {
        let graph = create();
        let turns: Vec<Turn> = (0..NODES)
            .map(|_| Turn {
                clock: &raw const clock,
                begin: AtomicU32::new(0),
                end: AtomicU32::new(0),
            })
            .collect();
        let (mut nodes, mut edges): (Vec<CUgraphNode>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
        for (at, turn) in turns.iter().enumerate() {
            let mut before = Vec::new();
            for (earlier, node) in nodes.iter().enumerate() {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if (random >> 16) % 40 < shape {
                    edges.push((earlier, at));
                    before.push(*node);
                }
            }
            nodes.push(host(graph, note, turn, &before));
        }
        let exec = instantiate(graph);
        for _ in 0..3 {
            let start = clock.load(Ordering::Acquire);
            ok(cuGraphLaunch(exec, world.stream));
            ok(cuStreamSynchronize(world.stream));
            assert_eq!(clock.load(Ordering::Acquire) - start, 2 * NODES as u32);
            for (earlier, later) in &edges {
                let (end, begin) = (&turns[*earlier].end, &turns[*later].begin);
                assert!(end.load(Ordering::Acquire) < begin.load(Ordering::Acquire));
            }
        }
        ok(cuGraphExecDestroy(exec));
        ok(cuGraphDestroy(graph));
    }
}

/// An event that one branch records says nothing to a wait in another one, which is for the last record before the launch.
#[test]
fn a_wait_in_another_branch_is_for_an_earlier_record() {
    let world = World::new();
    let mut event = null_mut();
    ok(cuEventCreate(&mut event, 2));
    let graph = create();
    let (mut record, mut wait) = (null_mut(), null_mut());
    ok(cuGraphAddEventRecordNode(&mut record, graph, null(), 0, event));
    ok(cuGraphAddEventWaitNode(&mut wait, graph, null(), 0, event));
    world.mix(graph, 0, 5, &[wait]);
    let exec = instantiate(graph);
    // Held back in another stream, by a host function that waits.
    static RELEASED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn hold(_: *mut c_void) {
        while RELEASED.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
    }
    let mut other = null_mut();
    ok(cuStreamCreate(&mut other, 1));
    ok(cuLaunchHostFunc(other, Some(hold), null_mut()));
    ok(cuEventRecord(event, other));
    ok(cuGraphLaunch(exec, world.stream));
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(cuStreamQuery(world.stream), CUDA_ERROR_NOT_READY);
    RELEASED.store(1, Ordering::Release);
    ok(cuStreamSynchronize(world.stream));
    assert_eq!(world.word(0), 5);
}

#[test]
fn a_fault_in_one_branch_ends_the_launch() {
    let run = alone(test_name!(), &[], || {
        let world = World::new();
        let graph = create();
        for branch in 0..6 {
            let before = world.mix(graph, 8 + branch, 1, &[]);
            let next = match branch {
                3 => with_words(&world, kernel("stray"), graph, [0, 1], &[before]),
                _ => world.mix(graph, 8 + branch, 2, &[before]),
            };
            world.mix(graph, 8 + branch, 3, &[next]);
        }
        let exec = instantiate(graph);
        ok(cuGraphLaunch(exec, world.stream));
        assert_eq!(cuStreamSynchronize(world.stream), CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_eq!(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    });
    assert!(run.status.success(), "{}", run.stderr);
    assert!(run.stderr.contains("stray"), "{}", run.stderr);
}

/// tinygrad makes the nodes of symbolic shapes so, and sets the sizes before it launches.
#[test]
fn a_node_without_blocks_gets_them_before_the_launch() {
    let world = World::new();
    let graph = create();
    let (mut node, mut exec) = (null_mut(), null_mut());
    world.with_mix(0, 5, |params| {
        let none = KernelParams {
            grid: [1, 0, 1],
            ..*params
        };
        ok(cuGraphAddKernelNode(&mut node, graph, null(), 0, &none));
        ok(cuGraphInstantiate(&mut exec, graph, 0));
        assert_eq!(cuGraphLaunch(exec, world.stream), CUDA_ERROR_INVALID_VALUE);
        ok(cuGraphExecKernelNodeSetParams(exec, node, params));
        ok(cuGraphLaunch(exec, world.stream));
        assert_eq!(world.word(0), 5);
        ok(cuGraphExecKernelNodeSetParams(exec, node, &none));
        assert_eq!(cuGraphLaunch(exec, world.stream), CUDA_ERROR_INVALID_VALUE);
        // One that is left out is in nobody's way.
        ok(cuGraphNodeSetEnabled(exec, node, 0));
        ok(cuGraphLaunch(exec, world.stream));
        assert_eq!(world.word(0), 5);
        // What no number of blocks can mend is refused as before.
        let too_many = KernelParams {
            block: [2048, 1, 1],
            ..none
        };
        assert_eq!(
            cuGraphExecKernelNodeSetParams(exec, node, &too_many),
            CUDA_ERROR_INVALID_VALUE
        );
    });
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
}
