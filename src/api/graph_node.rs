//! Graph management: the calls for one type of node each.
//!
//! All are alike: a record in C's types becomes [`Work`] (`graph_params.rs`), which `driver/graph/` checks and keeps.

use super::call::{Answer, In, Out, require};
use super::graph::{dependencies, find, find_node};
use super::graph_params as params;
use super::types::*;
use crate::driver::graph::{Conditional, DeviceNode, Graph, KernelNode, Node, Work};
use std::sync::Arc;

/// Adds a node without data on its edges.
pub fn add(
    node_out: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    work: impl FnOnce(&Arc<Graph>) -> Answer<Work>,
) -> Answer<Arc<Node>> {
    node_out.required()?;
    let graph = find(graph)?;
    // SAFETY: a null pointer.
    let before = dependencies(before, unsafe { In::from_c(std::ptr::null()) }, count)?;
    let node = graph.add(work(&graph)?, &before)?;
    node_out.set(node.handle() as CUgraphNode)?;
    Ok(node)
}

/// The work of a node of the type that the call is for.
fn work_of(node: CUgraphNode, is_right: fn(&Work) -> bool) -> Answer<(Arc<Node>, Arc<Work>)> {
    let node = find_node(node)?;
    let work = node.work();
    require(is_right(&work))?;
    Ok((node, work))
}

// Kernels.

/// The first version has no place for a kernel of a library.
pub fn widened(params: CUDA_KERNEL_NODE_PARAMS_v1) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: params.func,
        gridDimX: params.gridDimX,
        gridDimY: params.gridDimY,
        gridDimZ: params.gridDimZ,
        blockDimX: params.blockDimX,
        blockDimY: params.blockDimY,
        blockDimZ: params.blockDimZ,
        sharedMemBytes: params.sharedMemBytes,
        kernelParams: params.kernelParams,
        extra: params.extra,
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

pub fn graph_add_kernel_node(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    record: In<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> Answer {
    add(node, graph, before, count, |_| params::kernel(&widened(record.get()?))).map(drop)
}

pub fn graph_add_kernel_node_v2(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    record: In<CUDA_KERNEL_NODE_PARAMS>,
) -> Answer {
    add(node, graph, before, count, |_| params::kernel(&record.get()?)).map(drop)
}

pub fn graph_kernel_node_get_params(node: CUgraphNode, record: Out<CUDA_KERNEL_NODE_PARAMS_v1>) -> Answer {
    record.required()?;
    let found = params::kernel_record(&*find_node(node)?)?;
    record.set(CUDA_KERNEL_NODE_PARAMS_v1 {
        func: match found.func.is_null() {
            true => found.kern.cast(),
            false => found.func,
        },
        gridDimX: found.gridDimX,
        gridDimY: found.gridDimY,
        gridDimZ: found.gridDimZ,
        blockDimX: found.blockDimX,
        blockDimY: found.blockDimY,
        blockDimZ: found.blockDimZ,
        sharedMemBytes: found.sharedMemBytes,
        kernelParams: found.kernelParams,
        extra: found.extra,
    })
}

pub fn graph_kernel_node_get_params_v2(node: CUgraphNode, record: Out<CUDA_KERNEL_NODE_PARAMS>) -> Answer {
    record.required()?;
    record.set(params::kernel_record(&*find_node(node)?)?)
}

pub fn graph_kernel_node_set_params(node: CUgraphNode, record: In<CUDA_KERNEL_NODE_PARAMS_v1>) -> Answer {
    set_kernel(&*find_node(node)?, &widened(record.get()?))
}

pub fn graph_kernel_node_set_params_v2(node: CUgraphNode, record: In<CUDA_KERNEL_NODE_PARAMS>) -> Answer {
    set_kernel(&*find_node(node)?, &record.get()?)
}

/// Attributes are not in the record: they stay.
pub fn set_kernel(node: &Node, record: &CUDA_KERNEL_NODE_PARAMS) -> Answer {
    let work = node.work();
    let (Work::Kernel(before), Work::Kernel(mut after)) = (&*work, params::kernel(record)?) else {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    };
    after.inherit(before);
    require(!(after.packed && after.config.cooperative))?;
    Ok(node.set_work(Work::Kernel(after))?)
}

fn kernel_of(node: CUgraphNode) -> Answer<(Arc<Node>, KernelNode)> {
    let node = find_node(node)?;
    match &*node.work() {
        Work::Kernel(kernel) => Ok((Arc::clone(&node), kernel.clone())),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn graph_kernel_node_copy_attributes(dst: CUgraphNode, src: CUgraphNode) -> Answer {
    let ((node, mut dst), (_, src)) = (kernel_of(dst)?, kernel_of(src)?);
    require(dst.updatable.is_none() && src.updatable.is_none())?;
    dst.inherit(&src);
    Ok(node.set_work(Work::Kernel(dst))?)
}

/// What kernels call a node by that they may change.
pub fn updatable(node: Option<&DeviceNode>) -> CUlaunchAttributeValue_union_deviceUpdatableKernelNode {
    CUlaunchAttributeValue_union_deviceUpdatableKernelNode {
        deviceUpdatable: node.is_some().into(),
        devNode: node.map_or(0, DeviceNode::handle) as CUgraphDeviceNode,
    }
}

/// Attributes that a kernel node has (`CUlaunchAttributeID`: the manual says of each where it applies).
fn check_attribute(attr: CUkernelNodeAttrID) -> Answer {
    use CUlaunchAttributeID as Id;
    require(matches!(
        attr,
        Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
            | Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE
            | Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            | Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
            | Id::CU_LAUNCH_ATTRIBUTE_PRIORITY
            | Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
            | Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN
            | Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION
            | Id::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
            | Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            | Id::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING
            | Id::CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE
            | Id::CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE
    ))
}

/// Attributes that were never set are 0, but for the map of domains (0 and 1) and the carve-out (-1, no preference).
pub fn graph_kernel_node_get_attribute(
    node: CUgraphNode,
    attr: CUkernelNodeAttrID,
    value_out: Out<CUkernelNodeAttrValue>,
) -> Answer {
    use CUlaunchAttributeID as Id;
    value_out.required()?;
    let (_, kernel) = kernel_of(node)?;
    check_attribute(attr)?;
    let mut value = CUkernelNodeAttrValue { pad: [0; 64] };
    match attr {
        Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE => value.cooperative = kernel.config.cooperative.into(),
        Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => {
            let [x, y, z] = kernel.config.cluster;
            value.clusterDim = CUlaunchAttributeValue_union_clusterDim { x, y, z };
        }
        Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION => {
            let [x, y, z] = kernel.config.preferred_cluster;
            value.preferredClusterDim = CUlaunchAttributeValue_union_preferredClusterDim { x, y, z };
        }
        Id::CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE => {
            value.portableClusterSizeMode =
                CUlaunchAttributePortableClusterMode::from_raw(kernel.config.portable_cluster);
        }
        Id::CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE => {
            value.sharedMemoryMode = CUsharedMemoryMode::from_raw(kernel.config.shared_mode);
        }
        Id::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE => {
            value.deviceUpdatableKernelNode = updatable(kernel.updatable.as_deref());
        }
        _ => match kernel.attributes.get(&attr.0) {
            // SAFETY: both are 64 bytes of numbers.
            Some(words) => value = unsafe { std::mem::transmute::<[u64; 8], CUkernelNodeAttrValue>(*words) },
            None if attr == Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => {
                value.memSyncDomainMap = CUlaunchMemSyncDomainMap { default_: 0, remote: 1 };
            }
            None if attr == Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => {
                value.sharedMemCarveout = c_uint::MAX;
            }
            None => {}
        },
    }
    value_out.set(value)
}

/// What concerns caches, scheduling and memory domains is kept and changes nothing.
pub fn graph_kernel_node_set_attribute(
    node: CUgraphNode,
    attr: CUkernelNodeAttrID,
    value: In<CUkernelNodeAttrValue>,
) -> Answer {
    use CUlaunchAttributeID as Id;
    let value = value.get()?;
    let (node, mut kernel) = kernel_of(node)?;
    check_attribute(attr)?;
    match attr {
        Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE => {
            // SAFETY: the members of the union are numbers: any bits will do.
            kernel.config.cooperative = unsafe { value.cooperative } != 0;
        }
        Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => {
            // SAFETY: the members of the union are numbers: any bits will do.
            let cluster = unsafe { value.clusterDim };
            kernel.config.cluster = [cluster.x, cluster.y, cluster.z];
        }
        Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION => {
            // SAFETY: the members of the union are numbers: any bits will do.
            let cluster = unsafe { value.preferredClusterDim };
            kernel.config.preferred_cluster = [cluster.x, cluster.y, cluster.z];
        }
        Id::CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE => {
            // SAFETY: the members of the union are numbers: any bits will do.
            let mode = unsafe { value.portableClusterSizeMode };
            require(mode.name().is_some())?;
            kernel.config.portable_cluster = mode.0;
        }
        Id::CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE => {
            // SAFETY: the members of the union are numbers: any bits will do.
            let mode = unsafe { value.sharedMemoryMode };
            require(mode.name().is_some())?;
            kernel.config.shared_mode = mode.0;
        }
        Id::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE => {
            // SAFETY: the members of the union are numbers: any bits will do.
            let wanted = unsafe { value.deviceUpdatableKernelNode }.deviceUpdatable != 0;
            // There is no way back.
            require(wanted || kernel.updatable.is_none())?;
            if wanted {
                kernel.updatable.get_or_insert_with(DeviceNode::create);
            }
        }
        _ => {
            // SAFETY: both are 64 bytes; what the caller left unset is whatever it was.
            let words = unsafe { std::mem::transmute::<CUkernelNodeAttrValue, [u64; 8]>(value) };
            kernel.attributes.insert(attr.0, words);
        }
    }
    Ok(node.set_work(Work::Kernel(kernel))?)
}

// Copies, sets, host functions.

pub fn graph_add_memcpy_node(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    record: In<CUDA_MEMCPY3D>,
    ctx: CUcontext,
) -> Answer {
    let (work, kept) = params::copy(&record.get()?, ctx)?;
    add(node, graph, before, count, |_| Ok(work))?.keep(kept);
    Ok(())
}

pub fn graph_memcpy_node_get_params(node: CUgraphNode, record: Out<CUDA_MEMCPY3D>) -> Answer {
    record.required()?;
    record.set(params::copy_record(&*find_node(node)?)?)
}

/// The context stays.
pub fn graph_memcpy_node_set_params(node: CUgraphNode, record: In<CUDA_MEMCPY3D>) -> Answer {
    let (node, work) = work_of(node, |work| matches!(work, Work::Copy(_)))?;
    let Work::Copy(before) = &*work else {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    };
    let (work, kept) = params::copy(&record.get()?, before.context as CUcontext)?;
    node.set_work(work)?;
    node.keep(kept);
    Ok(())
}

pub fn graph_add_memset_node(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    record: In<CUDA_MEMSET_NODE_PARAMS>,
    ctx: CUcontext,
) -> Answer {
    add(node, graph, before, count, |_| params::set(&record.get()?, ctx)).map(drop)
}

pub fn graph_memset_node_get_params(node: CUgraphNode, record: Out<CUDA_MEMSET_NODE_PARAMS>) -> Answer {
    record.required()?;
    record.set(params::set_record(&*find_node(node)?)?.0)
}

/// The context stays.
pub fn graph_memset_node_set_params(node: CUgraphNode, record: In<CUDA_MEMSET_NODE_PARAMS>) -> Answer {
    let node = find_node(node)?;
    let (_, ctx) = params::set_record(&node)?;
    Ok(node.set_work(params::set(&record.get()?, ctx)?)?)
}

pub fn graph_add_host_node(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    record: In<CUDA_HOST_NODE_PARAMS>,
) -> Answer {
    let nowhere = std::ptr::null_mut();
    add(node, graph, before, count, |_| params::host(&record.get()?, 0, nowhere)).map(drop)
}

pub fn graph_host_node_get_params(node: CUgraphNode, record: Out<CUDA_HOST_NODE_PARAMS>) -> Answer {
    record.required()?;
    let found = params::host_record(&*find_node(node)?)?;
    record.set(CUDA_HOST_NODE_PARAMS {
        r#fn: found.r#fn,
        userData: found.userData,
    })
}

pub fn graph_host_node_set_params(node: CUgraphNode, record: In<CUDA_HOST_NODE_PARAMS>) -> Answer {
    let node = find_node(node)?;
    Ok(node.set_work(params::host(&record.get()?, 0, std::ptr::null_mut())?)?)
}

// Graphs, nothing, events.

/// The graph is copied.
pub fn graph_add_child_graph_node(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    child: CUgraph,
) -> Answer {
    let child = find(child)?;
    let work = |graph: &Arc<Graph>| Ok(Work::Child(child.into_child(graph, false)?));
    add(node, graph, before, count, work).map(drop)
}

/// The graph belongs to the node: changes to it are changes to the node.
pub fn graph_child_graph_node_get_graph(node: CUgraphNode, graph: Out<CUgraph>) -> Answer {
    graph.required()?;
    match &*find_node(node)?.work() {
        Work::Child(child) => graph.set(child.handle() as CUgraph),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn graph_add_empty_node(node: Out<CUgraphNode>, graph: CUgraph, before: In<CUgraphNode>, count: usize) -> Answer {
    add(node, graph, before, count, |_| Ok(Work::Empty)).map(drop)
}

pub fn graph_add_event_record_node(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    event: CUevent,
) -> Answer {
    add(node, graph, before, count, |_| {
        Ok(Work::RecordEvent(params::event(event)?))
    })
    .map(drop)
}

pub fn graph_event_record_node_get_event(node: CUgraphNode, event: Out<CUevent>) -> Answer {
    event.required()?;
    match &*find_node(node)?.work() {
        Work::RecordEvent(found) => event.set(found.handle() as CUevent),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn graph_event_record_node_set_event(node: CUgraphNode, event: CUevent) -> Answer {
    Ok(find_node(node)?.set_work(Work::RecordEvent(params::event(event)?))?)
}

pub fn graph_add_event_wait_node(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    event: CUevent,
) -> Answer {
    add(node, graph, before, count, |_| {
        Ok(Work::WaitEvent(params::event(event)?))
    })
    .map(drop)
}

pub fn graph_event_wait_node_get_event(node: CUgraphNode, event: Out<CUevent>) -> Answer {
    event.required()?;
    match &*find_node(node)?.work() {
        Work::WaitEvent(found) => event.set(found.handle() as CUevent),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn graph_event_wait_node_set_event(node: CUgraphNode, event: CUevent) -> Answer {
    Ok(find_node(node)?.set_work(Work::WaitEvent(params::event(event)?))?)
}

// Memory.

/// Writes the address into the record.
pub fn graph_add_mem_alloc_node(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    record: Out<CUDA_MEM_ALLOC_NODE_PARAMS>,
) -> Answer {
    let mut given = record.get_at(0)?;
    let (work, memory) = params::allocation(&given)?;
    let node = add(node, graph, before, count, |_| Ok(work))?;
    given.dptr = memory.address();
    params::keep_allocation(&node, &given)?;
    record.set(given)
}

pub fn graph_mem_alloc_node_get_params(node: CUgraphNode, record: Out<CUDA_MEM_ALLOC_NODE_PARAMS>) -> Answer {
    record.required()?;
    record.set(params::allocation_record(&*find_node(node)?)?)
}

pub fn graph_add_mem_free_node(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    dptr: CUdeviceptr,
) -> Answer {
    add(node, graph, before, count, |_| params::free(dptr)).map(drop)
}

pub fn graph_mem_free_node_get_params(node: CUgraphNode, dptr: Out<CUdeviceptr>) -> Answer {
    dptr.required()?;
    match &*find_node(node)?.work() {
        Work::Free(memory) => dptr.set(memory.address()),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn graph_add_batch_mem_op_node(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    record: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> Answer {
    add(node, graph, before, count, |_| params::batch(&record.get()?)).map(drop)
}

pub fn graph_batch_mem_op_node_get_params(node: CUgraphNode, record: Out<CUDA_BATCH_MEM_OP_NODE_PARAMS>) -> Answer {
    record.required()?;
    record.set(params::batch_record(&*find_node(node)?)?)
}

pub fn graph_batch_mem_op_node_set_params(node: CUgraphNode, record: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>) -> Answer {
    Ok(find_node(node)?.set_work(params::batch(&record.get()?)?)?)
}

/// A value for a conditional node of this graph, or of one inside it.
pub fn graph_conditional_handle_create(
    handle: Out<CUgraphConditionalHandle>,
    graph: CUgraph,
    ctx: CUcontext,
    default: c_uint,
    flags: c_uint,
) -> Answer {
    handle.required()?;
    require(flags & !CU_GRAPH_COND_ASSIGN_DEFAULT == 0)?;
    params::context(ctx)?;
    let default = (flags != 0).then_some(default);
    let conditional: Arc<Conditional> = find(graph)?.add_conditional(default)?;
    handle.set(conditional.handle())
}
