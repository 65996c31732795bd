//! Graph management: graphs, their nodes and edges, memory attributes. What nodes do is in `graph_node.rs` and
//! `graph_params.rs`, executable graphs in `graph_exec.rs`.
//!
//! The objects are in `driver/graph/`.

use super::call::{Answer, In, Out, require};
use super::types::*;
use crate::driver::Device;
use crate::driver::graph::{Dependency, DotDetails, Edge, EdgeData, Graph, MemoryAttribute, Node};
use crate::driver::graph::{memory_attribute, reset_attribute, trim_memory};
use std::sync::Arc;

pub fn find(graph: CUgraph) -> Answer<Arc<Graph>> {
    Ok(Graph::from_handle(graph as usize)?)
}

pub fn find_node(node: CUgraphNode) -> Answer<Arc<Node>> {
    Ok(Node::from_handle(node as usize)?)
}

fn bytes(data: CUgraphEdgeData) -> EdgeData {
    let [a, b, c, d, e] = data.reserved;
    [data.from_port, data.to_port, data.r#type, a, b, c, d, e]
}

fn record([from_port, to_port, kind, reserved @ ..]: EdgeData) -> CUgraphEdgeData {
    CUgraphEdgeData {
        from_port,
        to_port,
        r#type: kind,
        reserved,
    }
}

/// Nodes that something depends on, with the data of the edges (zeros without).
pub fn dependencies(nodes: In<CUgraphNode>, data: In<CUgraphEdgeData>, count: usize) -> Answer<Vec<Dependency>> {
    require(count == 0 || !nodes.is_null())?;
    (0..count)
        .map(|index| {
            let data = if data.is_null() { [0; 8] } else { bytes(data.at(index)?) };
            Ok((find_node(nodes.at(index)?)?, data))
        })
        .collect()
}

fn edges(from: In<CUgraphNode>, to: In<CUgraphNode>, data: In<CUgraphEdgeData>, count: usize) -> Answer<Vec<Edge>> {
    require(count == 0 || !from.is_null() && !to.is_null())?;
    (0..count)
        .map(|index| {
            let data = if data.is_null() { [0; 8] } else { bytes(data.at(index)?) };
            Ok((find_node(from.at(index)?)?, find_node(to.at(index)?)?, data))
        })
        .collect()
}

/// No data.
fn none<T: Copy>() -> In<T> {
    // SAFETY: a null pointer.
    unsafe { In::from_c(std::ptr::null()) }
}

fn nowhere<T>() -> Out<T> {
    // SAFETY: a null pointer.
    unsafe { Out::from_c(std::ptr::null_mut()) }
}

/// Answers a list as the calls on graphs do: with `wants` false only its length; otherwise as many entries as the caller has
/// room for, the rest of the room filled up with nulls.
fn answer<T>(list: &[T], wants: bool, room: Out<usize>, put: impl Fn(usize, Option<&T>)) -> Answer {
    let asked = room.get_at(0)?;
    if !wants {
        return room.set(list.len());
    }
    for index in 0..asked {
        put(index, list.get(index));
    }
    room.set(asked.min(list.len()))
}

fn answer_nodes(list: &[Arc<Node>], nodes: Out<CUgraphNode>, count: Out<usize>) -> Answer {
    answer(list, !nodes.is_null(), count, |index, node| {
        nodes.set_at(index, node.map_or(0, |node| node.handle()) as CUgraphNode);
    })
}

fn answer_edges(list: &[Dependency], nodes: Out<CUgraphNode>, data: Out<CUgraphEdgeData>, count: Out<usize>) -> Answer {
    require(data.is_null() || !nodes.is_null())?;
    if !nodes.is_null() && data.is_null() && list.iter().any(|(_, data)| *data != [0; 8]) {
        return Err(CUresult::CUDA_ERROR_LOSSY_QUERY);
    }
    answer(list, !nodes.is_null(), count, |index, edge| {
        nodes.set_at(index, edge.map_or(0, |(node, _)| node.handle()) as CUgraphNode);
        if !data.is_null() {
            data.set_at(index, record(edge.map_or([0; 8], |(_, data)| *data)));
        }
    })
}

pub fn graph_create(graph: Out<CUgraph>, flags: c_uint) -> Answer {
    require(!graph.is_null() && flags == 0)?;
    graph.set(Graph::create().handle() as CUgraph)
}

pub fn graph_destroy(graph: CUgraph) -> Answer {
    Ok(find(graph)?.destroy()?)
}

pub fn graph_clone(clone: Out<CUgraph>, original: CUgraph) -> Answer {
    clone.required()?;
    clone.set(find(original)?.duplicate()?.handle() as CUgraph)
}

pub fn graph_node_find_in_clone(node: Out<CUgraphNode>, original: CUgraphNode, clone: CUgraph) -> Answer {
    node.required()?;
    let clone = find(clone)?;
    node.set(clone.find_in_clone(&*find_node(original)?)?.handle() as CUgraphNode)
}

pub fn graph_node_get_type(node: CUgraphNode, kind: Out<CUgraphNodeType>) -> Answer {
    kind.required()?;
    kind.set(CUgraphNodeType::from_raw(find_node(node)?.work().node_type() as u32))
}

pub fn graph_node_get_containing_graph(node: CUgraphNode, graph: Out<CUgraph>) -> Answer {
    graph.required()?;
    graph.set(find_node(node)?.graph()?.handle() as CUgraph)
}

pub fn graph_node_get_local_id(node: CUgraphNode, id: Out<c_uint>) -> Answer {
    id.required()?;
    id.set(find_node(node)?.id())
}

pub fn graph_node_get_tools_id(node: CUgraphNode, id: Out<c_ulonglong>) -> Answer {
    id.required()?;
    id.set(find_node(node)?.tools_id())
}

pub fn graph_get_id(graph: CUgraph, id: Out<c_uint>) -> Answer {
    id.required()?;
    id.set(find(graph)?.id())
}

pub fn graph_get_nodes(graph: CUgraph, nodes: Out<CUgraphNode>, count: Out<usize>) -> Answer {
    answer_nodes(&find(graph)?.nodes(), nodes, count)
}

pub fn graph_get_root_nodes(graph: CUgraph, nodes: Out<CUgraphNode>, count: Out<usize>) -> Answer {
    answer_nodes(&find(graph)?.roots(), nodes, count)
}

pub fn graph_get_edges(graph: CUgraph, from: Out<CUgraphNode>, to: Out<CUgraphNode>, count: Out<usize>) -> Answer {
    graph_get_edges_v2(graph, from, to, nowhere(), count)
}

pub fn graph_get_edges_v2(
    graph: CUgraph,
    from: Out<CUgraphNode>,
    to: Out<CUgraphNode>,
    data: Out<CUgraphEdgeData>,
    count: Out<usize>,
) -> Answer {
    let edges = find(graph)?.edges();
    require(from.is_null() == to.is_null() && (data.is_null() || !from.is_null()))?;
    if !from.is_null() && data.is_null() && edges.iter().any(|(_, _, data)| *data != [0; 8]) {
        return Err(CUresult::CUDA_ERROR_LOSSY_QUERY);
    }
    answer(&edges, !from.is_null(), count, |index, edge| {
        let ends = edge.map_or((0, 0), |(from, to, _)| (from.handle(), to.handle()));
        from.set_at(index, ends.0 as CUgraphNode);
        to.set_at(index, ends.1 as CUgraphNode);
        if !data.is_null() {
            data.set_at(index, record(edge.map_or([0; 8], |(_, _, data)| *data)));
        }
    })
}

pub fn graph_node_get_dependencies(node: CUgraphNode, nodes: Out<CUgraphNode>, count: Out<usize>) -> Answer {
    graph_node_get_dependencies_v2(node, nodes, nowhere(), count)
}

pub fn graph_node_get_dependencies_v2(
    node: CUgraphNode,
    nodes: Out<CUgraphNode>,
    data: Out<CUgraphEdgeData>,
    count: Out<usize>,
) -> Answer {
    let node = find_node(node)?;
    answer_edges(&node.graph()?.dependencies(&node), nodes, data, count)
}

pub fn graph_node_get_dependent_nodes(node: CUgraphNode, nodes: Out<CUgraphNode>, count: Out<usize>) -> Answer {
    graph_node_get_dependent_nodes_v2(node, nodes, nowhere(), count)
}

pub fn graph_node_get_dependent_nodes_v2(
    node: CUgraphNode,
    nodes: Out<CUgraphNode>,
    data: Out<CUgraphEdgeData>,
    count: Out<usize>,
) -> Answer {
    let node = find_node(node)?;
    answer_edges(&node.graph()?.dependents(&node), nodes, data, count)
}

pub fn graph_add_dependencies(graph: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, count: usize) -> Answer {
    graph_add_dependencies_v2(graph, from, to, none(), count)
}

pub fn graph_add_dependencies_v2(
    graph: CUgraph,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    data: In<CUgraphEdgeData>,
    count: usize,
) -> Answer {
    Ok(find(graph)?.add_edges(&edges(from, to, data, count)?)?)
}

pub fn graph_remove_dependencies(graph: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, count: usize) -> Answer {
    graph_remove_dependencies_v2(graph, from, to, none(), count)
}

pub fn graph_remove_dependencies_v2(
    graph: CUgraph,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    data: In<CUgraphEdgeData>,
    count: usize,
) -> Answer {
    Ok(find(graph)?.remove_edges(&edges(from, to, data, count)?)?)
}

pub fn graph_destroy_node(node: CUgraphNode) -> Answer {
    let node = find_node(node)?;
    Ok(node.graph()?.remove(&node)?)
}

/// Flags of what to show; with the first one everything.
pub fn graph_debug_dot_print(graph: CUgraph, path: In<c_char>, flags: c_uint) -> Answer {
    use CUgraphDebugDot_flags as Flag;
    let known = Flag::ENUMERATORS.iter().fold(0, |all, (_, flag)| all | flag);
    require(flags & !known == 0)?;
    let has = |flag: Flag| flags & (flag.0 | Flag::CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE.0) != 0;
    let wanted = DotDetails {
        handles: has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES),
        kernels: has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS),
        attributes: has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES),
        copies: has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS),
        sets: has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS),
        hosts: has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS),
        events: has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS),
        memory: has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS)
            || has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS),
        batches: has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS),
        signals: has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_SIGNAL_NODE_PARAMS),
        awaits: has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_WAIT_NODE_PARAMS),
        copy_batches: has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_BATCH_NODE_PARAMS),
        conditionals: has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS),
        edges: has(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO),
    };
    let picture = find(graph)?.picture(wanted);
    let path = path.path()?;
    crate::trace::signals::quietly(|| std::fs::write(path, picture)).map_err(|_| CUresult::CUDA_ERROR_OPERATING_SYSTEM)
}

pub fn device_graph_mem_trim(device: CUdevice) -> Answer {
    trim_memory(Device::get(device)?);
    Ok(())
}

fn memory_attribute_of(attr: CUgraphMem_attribute) -> Answer<MemoryAttribute> {
    use CUgraphMem_attribute as A;
    match attr {
        A::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT => Ok(MemoryAttribute::UsedCurrent),
        A::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => Ok(MemoryAttribute::UsedHigh),
        A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT => Ok(MemoryAttribute::ReservedCurrent),
        A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => Ok(MemoryAttribute::ReservedHigh),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

/// All attributes are `cuuint64_t`.
pub fn device_get_graph_mem_attribute(device: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void) -> Answer {
    let device = Device::get(device)?;
    let attribute = memory_attribute_of(attr)?;
    // SAFETY: the attribute's type; null is refused.
    unsafe { Out::from_c(value.cast::<cuuint64_t>()) }.set(memory_attribute(device, attribute))
}

/// High-water marks can be set, to 0 only, and start again from what is in use.
pub fn device_set_graph_mem_attribute(device: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void) -> Answer {
    let device = Device::get(device)?;
    let attribute = memory_attribute_of(attr)?;
    // SAFETY: the attribute's type; null is refused.
    require(unsafe { In::from_c(value.cast::<cuuint64_t>()) }.get()? == 0)?;
    Ok(reset_attribute(device, attribute)?)
}
