//! Records of the graph chapter, as `cuda.h` (13.5) lays them out, and the functions that take them.

#![allow(dead_code, reason = "the layout is whole, the tests use a part of it")]

use crate::c::*;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

pub type CUgraph = *mut c_void;
pub type CUgraphNode = *mut c_void;
pub type CUgraphExec = *mut c_void;
pub type CUuserObject = *mut c_void;
pub type HostFn = extern "C" fn(*mut c_void);

pub const NODE_KERNEL: c_int = 0;
pub const NODE_MEMCPY: c_int = 1;
pub const NODE_MEMSET: c_int = 2;
pub const NODE_HOST: c_int = 3;
pub const NODE_GRAPH: c_int = 4;
pub const NODE_EMPTY: c_int = 5;
pub const NODE_WAIT_EVENT: c_int = 6;
pub const NODE_EVENT_RECORD: c_int = 7;
pub const NODE_MEM_ALLOC: c_int = 10;
pub const NODE_MEM_FREE: c_int = 11;
pub const NODE_BATCH_MEM_OP: c_int = 12;
pub const NODE_CONDITIONAL: c_int = 13;

pub const CUDA_ERROR_ILLEGAL_STATE: CUresult = 401;
pub const CUDA_ERROR_LOSSY_QUERY: CUresult = 402;
pub const CUDA_ERROR_NOT_SUPPORTED: CUresult = 801;
pub const CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: CUresult = 900;
pub const CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: CUresult = 901;
pub const CUDA_ERROR_STREAM_CAPTURE_MERGE: CUresult = 902;
pub const CUDA_ERROR_STREAM_CAPTURE_UNMATCHED: CUresult = 903;
pub const CUDA_ERROR_STREAM_CAPTURE_UNJOINED: CUresult = 904;
pub const CUDA_ERROR_STREAM_CAPTURE_ISOLATION: CUresult = 905;
pub const CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: CUresult = 906;
pub const CUDA_ERROR_CAPTURED_EVENT: CUresult = 907;
pub const CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: CUresult = 908;
pub const CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: CUresult = 910;

/// A record whose zeros mean nothing in particular.
pub fn zeroed<T: Copy>() -> T {
    // SAFETY: numbers and pointers, for which all bits 0 stand.
    unsafe { std::mem::zeroed() }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelParams {
    pub func: CUfunction,
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared: c_uint,
    pub params: *mut *mut c_void,
    pub extra: *mut *mut c_void,
    pub kern: CUkernel,
    pub ctx: CUcontext,
}

pub const HOST: c_uint = 1;
pub const DEVICE: c_uint = 2;
pub const UNIFIED: c_uint = 4;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memcpy3D {
    pub src_x: usize,
    pub src_y: usize,
    pub src_z: usize,
    pub src_lod: usize,
    pub src_type: c_uint,
    pub src_host: *const c_void,
    pub src_device: CUdeviceptr,
    pub src_array: *mut c_void,
    pub reserved0: *mut c_void,
    pub src_pitch: usize,
    pub src_height: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_z: usize,
    pub dst_lod: usize,
    pub dst_type: c_uint,
    pub dst_host: *mut c_void,
    pub dst_device: CUdeviceptr,
    pub dst_array: *mut c_void,
    pub reserved1: *mut c_void,
    pub dst_pitch: usize,
    pub dst_height: usize,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemsetParams {
    pub dst: CUdeviceptr,
    pub pitch: usize,
    pub value: c_uint,
    pub element: c_uint,
    pub width: usize,
    pub height: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostParams {
    pub function: Option<HostFn>,
    pub data: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BatchParams {
    pub ctx: CUcontext,
    pub count: c_uint,
    pub operations: *mut MemOp,
    pub flags: c_uint,
}

pub const WAIT_32: c_uint = 1;
pub const WRITE_32: c_uint = 2;
pub const WRITE_64: c_uint = 5;

/// `CUstreamBatchMemOpParams` of a wait or a write.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemOp {
    pub operation: c_uint,
    pub address: CUdeviceptr,
    pub value: u64,
    pub flags: c_uint,
    pub alias: u64,
    pub rest: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AllocParams {
    pub alloc_type: c_uint,
    pub handle_types: c_uint,
    pub location_type: c_uint,
    pub location_id: c_int,
    pub win32: *mut c_void,
    pub max_size: usize,
    pub rest: [u8; 56],
    pub access: *const c_void,
    pub access_count: usize,
    pub bytes: usize,
    pub pointer: CUdeviceptr,
}

pub const IF: c_uint = 0;
pub const WHILE: c_uint = 1;
pub const SWITCH: c_uint = 2;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConditionalParams {
    pub handle: u64,
    pub kind: c_uint,
    pub size: c_uint,
    pub graphs: *mut CUgraph,
    pub ctx: CUcontext,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union Members {
    pub bytes: [u8; 232],
    pub kernel: KernelParams,
    pub memset: (MemsetParams, CUcontext),
    pub child: (CUgraph, c_int),
    pub event: (CUevent, CUcontext),
    pub alloc: AllocParams,
    pub free: CUdeviceptr,
    pub conditional: ConditionalParams,
    pub batch: BatchParams,
}

/// `CUgraphNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NodeParams {
    pub kind: c_int,
    pub reserved0: [c_int; 3],
    pub members: Members,
    pub reserved2: i64,
}

impl NodeParams {
    pub fn new(kind: c_int) -> NodeParams {
        NodeParams { kind, ..zeroed() }
    }
}

/// `CUgraphEdgeData`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeData {
    pub from_port: u8,
    pub to_port: u8,
    pub kind: u8,
    pub reserved: [u8; 5],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct InstantiateParams {
    pub flags: u64,
    pub upload: CUstream,
    pub error_node: CUgraphNode,
    pub result: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct UpdateInfo {
    pub result: c_int,
    pub node: CUgraphNode,
    pub from: CUgraphNode,
}

functions! {
    cuGraphCreate(graph: *mut CUgraph, flags: c_uint);
    cuGraphDestroy(graph: CUgraph);
    cuGraphClone(clone: *mut CUgraph, graph: CUgraph);
    cuGraphNodeFindInClone(node: *mut CUgraphNode, original: CUgraphNode, clone: CUgraph);
    cuGraphNodeGetType(node: CUgraphNode, kind: *mut c_int);
    cuGraphNodeGetContainingGraph(node: CUgraphNode, graph: *mut CUgraph);
    cuGraphNodeGetLocalId(node: CUgraphNode, id: *mut c_uint);
    cuGraphGetId(graph: CUgraph, id: *mut c_uint);
    cuGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize);
    cuGraphGetRootNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize);
    cuGraphGetEdges = "cuGraphGetEdges_v2" (
        graph: CUgraph,
        from: *mut CUgraphNode,
        to: *mut CUgraphNode,
        data: *mut EdgeData,
        count: *mut usize,
    );
    cuGraphNodeGetDependencies = "cuGraphNodeGetDependencies_v2" (
        node: CUgraphNode,
        nodes: *mut CUgraphNode,
        data: *mut EdgeData,
        count: *mut usize,
    );
    cuGraphNodeGetDependentNodes = "cuGraphNodeGetDependentNodes_v2" (
        node: CUgraphNode,
        nodes: *mut CUgraphNode,
        data: *mut EdgeData,
        count: *mut usize,
    );
    cuGraphAddDependencies = "cuGraphAddDependencies_v2" (
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        data: *const EdgeData,
        count: usize,
    );
    cuGraphRemoveDependencies = "cuGraphRemoveDependencies_v2" (
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        data: *const EdgeData,
        count: usize,
    );
    cuGraphDestroyNode(node: CUgraphNode);
    cuGraphDebugDotPrint(graph: CUgraph, path: *const c_char, flags: c_uint);

    cuGraphAddNode = "cuGraphAddNode_v2" (
        node: *mut CUgraphNode,
        graph: CUgraph,
        before: *const CUgraphNode,
        data: *const EdgeData,
        count: usize,
        params: *mut NodeParams,
    );
    cuGraphNodeSetParams(node: CUgraphNode, params: *mut NodeParams);
    cuGraphNodeGetParams(node: CUgraphNode, params: *mut NodeParams);
    cuGraphAddKernelNode = "cuGraphAddKernelNode_v2" (
        node: *mut CUgraphNode,
        graph: CUgraph,
        before: *const CUgraphNode,
        count: usize,
        params: *const KernelParams,
    );
    cuGraphKernelNodeGetParams = "cuGraphKernelNodeGetParams_v2" (node: CUgraphNode, params: *mut KernelParams);
    cuGraphKernelNodeSetParams = "cuGraphKernelNodeSetParams_v2" (node: CUgraphNode, params: *const KernelParams);
    cuGraphKernelNodeSetAttribute(node: CUgraphNode, attribute: c_int, value: *const [u64; 8]);
    cuGraphKernelNodeGetAttribute(node: CUgraphNode, attribute: c_int, value: *mut [u64; 8]);
    cuGraphKernelNodeCopyAttributes(dst: CUgraphNode, src: CUgraphNode);
    cuGraphAddMemcpyNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        before: *const CUgraphNode,
        count: usize,
        params: *const Memcpy3D,
        ctx: CUcontext,
    );
    cuGraphMemcpyNodeGetParams(node: CUgraphNode, params: *mut Memcpy3D);
    cuGraphMemcpyNodeSetParams(node: CUgraphNode, params: *const Memcpy3D);
    cuGraphAddMemsetNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        before: *const CUgraphNode,
        count: usize,
        params: *const MemsetParams,
        ctx: CUcontext,
    );
    cuGraphMemsetNodeGetParams(node: CUgraphNode, params: *mut MemsetParams);
    cuGraphMemsetNodeSetParams(node: CUgraphNode, params: *const MemsetParams);
    cuGraphAddHostNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        before: *const CUgraphNode,
        count: usize,
        params: *const HostParams,
    );
    cuGraphHostNodeGetParams(node: CUgraphNode, params: *mut HostParams);
    cuGraphHostNodeSetParams(node: CUgraphNode, params: *const HostParams);
    cuGraphAddChildGraphNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        before: *const CUgraphNode,
        count: usize,
        child: CUgraph,
    );
    cuGraphChildGraphNodeGetGraph(node: CUgraphNode, graph: *mut CUgraph);
    cuGraphAddEmptyNode(node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize);
    cuGraphAddEventRecordNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        before: *const CUgraphNode,
        count: usize,
        event: CUevent,
    );
    cuGraphEventRecordNodeGetEvent(node: CUgraphNode, event: *mut CUevent);
    cuGraphEventRecordNodeSetEvent(node: CUgraphNode, event: CUevent);
    cuGraphAddEventWaitNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        before: *const CUgraphNode,
        count: usize,
        event: CUevent,
    );
    cuGraphEventWaitNodeGetEvent(node: CUgraphNode, event: *mut CUevent);
    cuGraphAddMemAllocNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        before: *const CUgraphNode,
        count: usize,
        params: *mut AllocParams,
    );
    cuGraphMemAllocNodeGetParams(node: CUgraphNode, params: *mut AllocParams);
    cuGraphAddMemFreeNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        before: *const CUgraphNode,
        count: usize,
        pointer: CUdeviceptr,
    );
    cuGraphMemFreeNodeGetParams(node: CUgraphNode, pointer: *mut CUdeviceptr);
    cuGraphAddBatchMemOpNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        before: *const CUgraphNode,
        count: usize,
        params: *const BatchParams,
    );
    cuGraphBatchMemOpNodeGetParams(node: CUgraphNode, params: *mut BatchParams);
    cuGraphConditionalHandleCreate(
        handle: *mut u64,
        graph: CUgraph,
        ctx: CUcontext,
        default: c_uint,
        flags: c_uint,
    );
    cuDeviceGraphMemTrim(device: CUdevice);
    cuDeviceGetGraphMemAttribute(device: CUdevice, attribute: c_int, value: *mut u64);
    cuDeviceSetGraphMemAttribute(device: CUdevice, attribute: c_int, value: *mut u64);

    cuGraphInstantiate = "cuGraphInstantiateWithFlags" (exec: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
    cuGraphInstantiate_v2(
        exec: *mut CUgraphExec,
        graph: CUgraph,
        node: *mut CUgraphNode,
        log: *mut c_char,
        bytes: usize,
    );
    cuGraphInstantiateWithParams(exec: *mut CUgraphExec, graph: CUgraph, params: *mut InstantiateParams);
    cuGraphExecDestroy(exec: CUgraphExec);
    cuGraphExecGetFlags(exec: CUgraphExec, flags: *mut u64);
    cuGraphUpload(exec: CUgraphExec, stream: CUstream);
    cuGraphLaunch(exec: CUgraphExec, stream: CUstream);
    cuGraphExecUpdate = "cuGraphExecUpdate_v2" (exec: CUgraphExec, graph: CUgraph, info: *mut UpdateInfo);
    cuGraphExecKernelNodeSetParams = "cuGraphExecKernelNodeSetParams_v2" (
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const KernelParams,
    );
    cuGraphExecMemcpyNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *const Memcpy3D, ctx: CUcontext);
    cuGraphExecMemsetNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *const MemsetParams, ctx: CUcontext);
    cuGraphExecHostNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *const HostParams);
    cuGraphExecChildGraphNodeSetParams(exec: CUgraphExec, node: CUgraphNode, child: CUgraph);
    cuGraphExecNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *mut NodeParams);
    cuGraphNodeSetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: c_uint);
    cuGraphNodeGetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: *mut c_uint);

    cuUserObjectCreate(object: *mut CUuserObject, data: *mut c_void, destroy: Option<HostFn>, count: c_uint, flags: c_uint);
    cuUserObjectRetain(object: CUuserObject, count: c_uint);
    cuUserObjectRelease(object: CUuserObject, count: c_uint);
    cuGraphRetainUserObject(graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint);
    cuGraphReleaseUserObject(graph: CUgraph, object: CUuserObject, count: c_uint);

    cuStreamBeginCapture = "cuStreamBeginCapture_v2" (stream: CUstream, mode: c_int);
    cuStreamBeginCaptureToGraph(
        stream: CUstream,
        graph: CUgraph,
        before: *const CUgraphNode,
        data: *const EdgeData,
        count: usize,
        mode: c_int,
    );
    cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
    cuStreamIsCapturing(stream: CUstream, status: *mut c_int);
    cuStreamGetCaptureInfo = "cuStreamGetCaptureInfo_v3" (
        stream: CUstream,
        status: *mut c_int,
        id: *mut u64,
        graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode,
        data: *mut *const EdgeData,
        count: *mut usize,
    );
    cuStreamUpdateCaptureDependencies = "cuStreamUpdateCaptureDependencies_v2" (
        stream: CUstream,
        nodes: *mut CUgraphNode,
        data: *const EdgeData,
        count: usize,
        flags: c_uint,
    );
    cuThreadExchangeStreamCaptureMode(mode: *mut c_int);
    cuMemcpyDtoHAsync = "cuMemcpyDtoHAsync_v2" (to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyHtoDAsync = "cuMemcpyHtoDAsync_v2" (to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuMemsetD32Async(to: CUdeviceptr, value: c_uint, count: usize, stream: CUstream);
    cuMemAllocAsync(pointer: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemFreeAsync(pointer: CUdeviceptr, stream: CUstream);
    cuLaunchHostFunc(stream: CUstream, function: Option<HostFn>, data: *mut c_void);
    cuStreamAddCallback(
        stream: CUstream,
        function: extern "C" fn(CUstream, CUresult, *mut c_void),
        data: *mut c_void,
        flags: c_uint,
    );
    cuEventRecordWithFlags(event: CUevent, stream: CUstream, flags: c_uint);
    cuStreamWriteValue32 = "cuStreamWriteValue32_v2" (stream: CUstream, address: CUdeviceptr, value: c_uint, flags: c_uint);
    cuStreamWaitValue32 = "cuStreamWaitValue32_v2" (stream: CUstream, address: CUdeviceptr, value: c_uint, flags: c_uint);
}
