//! Graph Management: structure, nodes of every type, executable graphs and changes to them.

use crate::alone::alone;
use crate::c::*;
use crate::graph_types::*;
use crate::test_name;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// `mix` is not commutative, so that its result tells the order of the calls: v = 3 v + n. `count` counts a word down and
/// hands what is left to a conditional node.
const KERNELS: &str = r#"
.version 7.0
.target sm_70
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);

.visible .entry mix(.param .u64 to, .param .u32 n)
{
    .reg .b64 %to;
    .reg .b32 %n, %v;
    ld.param.u64 %to, [to];
    ld.param.u32 %n, [n];
    ld.global.u32 %v, [%to];
    mad.lo.u32 %v, %v, 3, %n;
    st.global.u32 [%to], %v;
    ret;
}

.visible .entry count(.param .u64 to, .param .u64 handle)
{
    .reg .b64 %to, %handle;
    .reg .b32 %v;
    ld.param.u64 %to, [to];
    ld.param.u64 %handle, [handle];
    ld.global.u32 %v, [%to];
    sub.u32 %v, %v, 1;
    st.global.u32 [%to], %v;
    {
        .param .b64 a;
        .param .b32 b;
        st.param.b64 [a], %handle;
        st.param.b32 [b], %v;
        call cudaGraphSetConditional, (a, b);
    }
    ret;
}

.visible .entry nothing()
{
    ret;
}
"#;

/// A context of the test's own with the kernels, a stream, and a few words of memory.
pub struct World {
    pub context: CUcontext,
    pub mix: CUfunction,
    pub count: CUfunction,
    pub nothing: CUfunction,
    pub stream: CUstream,
    pub words: CUdeviceptr,
}

impl World {
    pub fn new() -> World {
        let mut world = World {
            context: null_mut(),
            mix: null_mut(),
            count: null_mut(),
            nothing: null_mut(),
            stream: null_mut(),
            words: 0,
        };
        let mut module = null_mut();
        ok(cuInit(0));
        ok(cuCtxCreate(&mut world.context, 0, 0));
        let text = CString::new(KERNELS).unwrap();
        ok(cuModuleLoadData(&mut module, text.as_ptr().cast()));
        ok(cuModuleGetFunction(&mut world.mix, module, c"mix".as_ptr()));
        ok(cuModuleGetFunction(&mut world.count, module, c"count".as_ptr()));
        ok(cuModuleGetFunction(&mut world.nothing, module, c"nothing".as_ptr()));
        ok(cuStreamCreate(&mut world.stream, 1));
        ok(cuMemAlloc(&mut world.words, 256));
        ok(cuMemsetD32(world.words, 0, 64));
        world
    }

    pub fn word(&self, index: usize) -> u32 {
        let mut word = 0_u32;
        ok(cuCtxSynchronize());
        ok(cuMemcpyDtoH((&raw mut word).cast(), self.words + 4 * index as u64, 4));
        word
    }

    pub fn set(&self, index: usize, value: u32) {
        ok(cuMemsetD32(self.words + 4 * index as u64, value, 1));
        ok(cuCtxSynchronize());
    }

    /// `mix(words + index, n)`.
    pub fn launch(&self, index: usize, n: u32, stream: CUstream) -> CUresult {
        let (mut to, mut n) = (self.words + 4 * index as u64, n);
        let mut params = [(&raw mut to).cast::<c_void>(), (&raw mut n).cast()];
        let params = params.as_mut_ptr();
        cuLaunchKernel(self.mix, 1, 1, 1, 1, 1, 1, 0, stream, params, null_mut())
    }

    fn with_mix<T>(&self, index: usize, n: u32, use_it: impl FnOnce(&KernelParams) -> T) -> T {
        let (mut to, mut n) = (self.words + 4 * index as u64, n);
        let mut params = [(&raw mut to).cast::<c_void>(), (&raw mut n).cast()];
        use_it(&KernelParams {
            func: self.mix,
            grid: [1; 3],
            block: [1; 3],
            params: params.as_mut_ptr(),
            ..zeroed()
        })
    }

    /// A node that does `mix(words + index, n)`.
    pub fn mix(&self, graph: CUgraph, index: usize, n: u32, before: &[CUgraphNode]) -> CUgraphNode {
        let mut node = null_mut();
        self.with_mix(index, n, |params| {
            ok(cuGraphAddKernelNode(
                &mut node,
                graph,
                before.as_ptr(),
                before.len(),
                params,
            ));
        });
        node
    }

    fn memset(&self, index: usize, value: u32, count: usize) -> MemsetParams {
        MemsetParams {
            dst: self.words + 4 * index as u64,
            pitch: 0,
            value,
            element: 4,
            width: count,
            height: 1,
        }
    }

    /// Copies words to the host.
    fn to_host(&self, index: usize, to: *mut u32, count: usize) -> Memcpy3D {
        Memcpy3D {
            src_type: DEVICE,
            src_device: self.words + 4 * index as u64,
            dst_type: HOST,
            dst_host: to.cast(),
            width: 4 * count,
            height: 1,
            depth: 1,
            ..zeroed()
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            ok(cuCtxDestroy(self.context));
        }
    }
}

pub fn create() -> CUgraph {
    let mut graph = null_mut();
    ok(cuGraphCreate(&mut graph, 0));
    graph
}

pub fn instantiate(graph: CUgraph) -> CUgraphExec {
    let mut exec = null_mut();
    ok(cuGraphInstantiate(&mut exec, graph, 0));
    exec
}

fn empty(graph: CUgraph, before: &[CUgraphNode]) -> CUgraphNode {
    let mut node = null_mut();
    ok(cuGraphAddEmptyNode(&mut node, graph, before.as_ptr(), before.len()));
    node
}

pub fn nodes(graph: CUgraph) -> Vec<CUgraphNode> {
    let mut count = 0;
    ok(cuGraphGetNodes(graph, null_mut(), &mut count));
    let mut nodes = vec![null_mut(); count];
    ok(cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count));
    nodes
}

pub fn dependencies(node: CUgraphNode) -> Vec<CUgraphNode> {
    let mut count = 0;
    ok(cuGraphNodeGetDependencies(node, null_mut(), null_mut(), &mut count));
    let mut nodes = vec![null_mut(); count];
    ok(cuGraphNodeGetDependencies(
        node,
        nodes.as_mut_ptr(),
        null_mut(),
        &mut count,
    ));
    nodes
}

pub fn kind(node: CUgraphNode) -> c_int {
    let mut kind = -1;
    ok(cuGraphNodeGetType(node, &mut kind));
    kind
}

/// v = 3 v + n, n by n.
fn mixed(start: u32, numbers: &[u32]) -> u32 {
    let mix = |v: u32, n: &u32| v.wrapping_mul(3).wrapping_add(*n);
    numbers.iter().fold(start, mix)
}

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

extern "C" fn add_one(data: *mut c_void) {
    // SAFETY: the tests give counters that live longer than their graphs run.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
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
            grid: [1, 1, 0],
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
    // SAFETY: the member of that type.
    assert_eq!(
        (params.kind, unsafe { params.members.child }),
        (NODE_GRAPH, (graph, -1))
    );
    ok(cuGraphDestroy(parent));
    assert_eq!(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
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
    for n in 1..20 {
        // other: n, then signal → graph: 2, then event → other: 3.
        ok(world.launch(0, n, other));
        ok(cuEventRecord(signal, other));
        ok(cuGraphLaunch(exec, world.stream));
        ok(cuStreamWaitEvent(other, event, 0));
        ok(world.launch(0, 3, other));
    }
    let expected: Vec<u32> = (1..20).flat_map(|n| [n, 2, 3]).collect();
    assert_eq!(world.word(0), mixed(0, &expected));
    ok(cuEventSynchronize(event));
    ok(cuGraphDestroy(graph));
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

fn allocation(bytes: usize) -> AllocParams {
    AllocParams {
        alloc_type: 1,
        location_type: 1,
        bytes,
        ..zeroed()
    }
}

fn memory_attribute(which: c_int) -> u64 {
    let mut value = 1;
    ok(cuDeviceGetGraphMemAttribute(0, which, &mut value));
    value
}

/// In a process of its own: the attributes are the device's.
#[test]
fn memory_of_graphs_comes_and_goes_with_launches() {
    const BYTES: usize = 1 << 20;
    alone(test_name!(), &[], || {
        let world = World::new();
        let graph = create();
        let (mut alloc, mut set, mut free) = (null_mut(), null_mut(), null_mut());
        let mut record = allocation(BYTES);
        ok(cuGraphAddMemAllocNode(&mut alloc, graph, null(), 0, &mut record));
        let pointer = record.pointer;
        let mut found: AllocParams = zeroed();
        ok(cuGraphMemAllocNodeGetParams(alloc, &mut found));
        assert_eq!((found.pointer, found.bytes), (pointer, BYTES));
        let fill = MemsetParams {
            dst: pointer,
            pitch: 0,
            value: 3,
            element: 4,
            width: BYTES / 4,
            height: 1,
        };
        ok(cuGraphAddMemsetNode(&mut set, graph, &alloc, 1, &fill, world.context));
        let mut word = Box::new(0_u32);
        let mut copy = null_mut();
        let record = Memcpy3D {
            src_type: DEVICE,
            src_device: pointer,
            src_x: BYTES - 4,
            src_pitch: BYTES,
            dst_type: HOST,
            dst_host: (&raw mut *word).cast(),
            width: 4,
            height: 1,
            depth: 1,
            ..zeroed()
        };
        ok(cuGraphAddMemcpyNode(&mut copy, graph, &set, 1, &record, world.context));
        // Nothing is in use before the first launch.
        assert_eq!(memory_attribute(0), 0);
        let exec = instantiate(graph);
        // One executable graph at a time; nodes and edges stay; no copies.
        let mut second = null_mut();
        assert_eq!(cuGraphInstantiate(&mut second, graph, 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuGraphDestroyNode(set), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            cuGraphRemoveDependencies(graph, &alloc, &set, null(), 1),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(cuGraphClone(&mut second, graph), CUDA_ERROR_INVALID_VALUE);
        ok(cuGraphLaunch(exec, world.stream));
        ok(cuStreamSynchronize(world.stream));
        assert_eq!(
            (*word, memory_attribute(0), memory_attribute(2)),
            (3, BYTES as u64, BYTES as u64)
        );
        // It has not been freed.
        assert_eq!(cuGraphLaunch(exec, world.stream), CUDA_ERROR_INVALID_VALUE);
        // The program may use it, and frees it, in a stream or at once.
        let mut last = 0_u32;
        ok(cuMemcpyDtoH((&raw mut last).cast(), pointer + BYTES as u64 - 4, 4));
        assert_eq!(last, 3);
        ok(cuMemFreeAsync(pointer, world.stream));
        assert_eq!(cuMemFreeAsync(pointer, world.stream), CUDA_ERROR_INVALID_VALUE);
        ok(cuGraphLaunch(exec, world.stream));
        ok(cuMemFree(pointer));
        assert_eq!(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
        assert_eq!((memory_attribute(0), memory_attribute(1)), (0, BYTES as u64));
        ok(cuDeviceGraphMemTrim(0));
        assert_eq!((memory_attribute(2), memory_attribute(3)), (0, BYTES as u64));
        let (mut zero, mut one) = (0, 1);
        ok(cuDeviceSetGraphMemAttribute(0, 1, &mut zero));
        assert_eq!(memory_attribute(1), 0);
        assert_eq!(cuDeviceSetGraphMemAttribute(0, 1, &mut one), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuDeviceSetGraphMemAttribute(0, 0, &mut zero), CUDA_ERROR_INVALID_VALUE);
        ok(cuGraphExecDestroy(exec));
        // Freed by itself before each launch.
        ok(cuGraphInstantiate(&mut second, graph, 1));
        for _ in 0..3 {
            *word = 0;
            ok(cuGraphLaunch(second, world.stream));
            ok(cuStreamSynchronize(world.stream));
            assert_eq!((*word, memory_attribute(0)), (3, BYTES as u64));
        }
        ok(cuMemFree(pointer));
        ok(cuGraphExecDestroy(second));
        // Freed by the graph.
        ok(cuGraphAddMemFreeNode(&mut free, graph, &copy, 1, pointer));
        let twice = cuGraphAddMemFreeNode(&mut second, graph, &copy, 1, pointer);
        assert_eq!(twice, CUDA_ERROR_INVALID_VALUE);
        let foreign = cuGraphAddMemFreeNode(&mut second, graph, &copy, 1, world.words);
        assert_eq!(foreign, CUDA_ERROR_INVALID_VALUE);
        let exec = instantiate(graph);
        for _ in 0..3 {
            *word = 0;
            ok(cuGraphLaunch(exec, world.stream));
        }
        ok(cuStreamSynchronize(world.stream));
        assert_eq!((*word, memory_attribute(0)), (3, 0));
        assert_eq!(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
        ok(cuGraphExecDestroy(exec));
        ok(cuGraphDestroy(graph));
        assert_eq!(memory_attribute(2), 0);
        // A kernel that touches it now is caught.
        let (mut to, mut n) = (pointer, 1_u32);
        let mut params = [(&raw mut to).cast::<c_void>(), (&raw mut n).cast()];
        let params = params.as_mut_ptr();
        ok(cuLaunchKernel(
            world.mix,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            world.stream,
            params,
            null_mut(),
        ));
        assert_eq!(cuStreamSynchronize(world.stream), CUDA_ERROR_ILLEGAL_ADDRESS);
        std::mem::forget(world);
    });
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
        let best = |run: &dyn Fn()| {
            let time = |_| {
                let began = Instant::now();
                run();
                ok(cuStreamSynchronize(world.stream));
                began.elapsed()
            };
            (0..15).map(time).min().unwrap()
        };
        let by_graph = best(&|| ok(cuGraphLaunch(exec, world.stream)));
        let one_by_one = best(&|| {
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
        });
        println!("1000 kernels: {by_graph:?} as a graph, {one_by_one:?} one by one");
        assert!(by_graph < one_by_one, "{by_graph:?} and {one_by_one:?}");
        ok(cuGraphExecDestroy(exec));
        ok(cuGraphDestroy(graph));
    });
}
