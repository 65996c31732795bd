//! A context with kernels whose results tell the order in which they ran, and calls that the tests of graphs share.

use crate::c::*;
use crate::graph_types::*;
use std::ffi::{CString, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

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

    pub fn with_mix<T>(&self, index: usize, n: u32, use_it: impl FnOnce(&KernelParams) -> T) -> T {
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

    pub fn memset(&self, index: usize, value: u32, count: usize) -> MemsetParams {
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
    pub fn to_host(&self, index: usize, to: *mut u32, count: usize) -> Memcpy3D {
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

pub fn empty(graph: CUgraph, before: &[CUgraphNode]) -> CUgraphNode {
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
pub fn mixed(start: u32, numbers: &[u32]) -> u32 {
    let mix = |v: u32, n: &u32| v.wrapping_mul(3).wrapping_add(*n);
    numbers.iter().fold(start, mix)
}

pub extern "C" fn add_one(data: *mut c_void) {
    // SAFETY: the tests give counters that live longer than their graphs run.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}
