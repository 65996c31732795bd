//! Graph management: executable graphs, changes to them, launches.
//!
//! The work is in `driver/graph/exec.rs` (launches) and `update.rs` (changes).

use super::call::{Answer, DefaultStream, In, Out, require};
use super::graph::{find, find_node};
use super::graph_node as node;
use super::graph_params as params;
use super::types::*;
use crate::driver::graph::{Exec, InstantiateError, UpdateError, Work};
use std::sync::Arc;

fn find_exec(exec: CUgraphExec) -> Answer<Arc<Exec>> {
    Ok(Exec::from_handle(exec as usize)?)
}

fn instantiate(exec: Out<CUgraphExec>, graph: CUgraph, flags: u64) -> Result<(), InstantiateError> {
    let graph = crate::driver::graph::Graph::from_handle(graph as usize).map_err(InstantiateError::of)?;
    let made = Exec::new(&graph, flags)?;
    exec.set_if_any(made.handle() as CUgraphExec);
    Ok(())
}

/// The first two versions: a node that is to blame, and words about it.
pub fn graph_instantiate(
    exec: Out<CUgraphExec>,
    graph: CUgraph,
    error_node: Out<CUgraphNode>,
    log: Out<c_char>,
    log_bytes: usize,
) -> Answer {
    exec.required()?;
    instantiate(exec, graph, 0).map_err(|error| {
        error_node.set_if_any(error.node as CUgraphNode);
        if !log.is_null() && log_bytes > 0 {
            // There is room for at least the end of the text.
            let _ = log.set_text(&error.to_string(), log_bytes);
        }
        error.error.into()
    })
}

pub fn graph_instantiate_with_flags(exec: Out<CUgraphExec>, graph: CUgraph, flags: c_ulonglong) -> Answer {
    exec.required()?;
    instantiate(exec, graph, flags).map_err(|error| error.error.into())
}

pub fn graph_instantiate_with_params(
    default: DefaultStream,
    exec: Out<CUgraphExec>,
    graph: CUgraph,
    record: Out<CUDA_GRAPH_INSTANTIATE_PARAMS>,
) -> Answer {
    exec.required()?;
    let mut given = record.get_at(0)?;
    let uploads = given.flags & u64::from(CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD.0) != 0;
    // Nothing has to be uploaded; the stream must be one all the same.
    if uploads {
        default.resolve(given.hUploadStream)?;
    }
    let result = instantiate(exec, graph, given.flags);
    let (node, outcome) = match &result {
        Ok(()) => (0, 0),
        Err(error) => (error.node, error.result),
    };
    given.hErrNode_out = node as CUgraphNode;
    given.result_out = CUgraphInstantiateResult::from_raw(outcome);
    record.set(given)?;
    result.map_err(|error| CUresult::from(error.error))?;
    Ok(())
}

pub fn graph_exec_get_flags(exec: CUgraphExec, flags: Out<cuuint64_t>) -> Answer {
    flags.required()?;
    flags.set(find_exec(exec)?.flags())
}

pub fn graph_exec_get_id(exec: CUgraphExec, id: Out<c_uint>) -> Answer {
    id.required()?;
    id.set(find_exec(exec)?.id())
}

pub fn graph_exec_destroy(exec: CUgraphExec) -> Answer {
    Ok(find_exec(exec)?.destroy()?)
}

pub fn graph_upload(default: DefaultStream, exec: CUgraphExec, stream: CUstream) -> Answer {
    let exec = find_exec(exec)?;
    Ok(exec.upload(&default.resolve(stream)?)?)
}

pub fn graph_launch(default: DefaultStream, exec: CUgraphExec, stream: CUstream) -> Answer {
    let exec = find_exec(exec)?;
    Ok(exec.launch(&default.resolve(stream)?)?)
}

// Changes.

pub fn change(exec: CUgraphExec, node: CUgraphNode, work: impl FnOnce() -> Answer<Work>) -> Answer {
    let exec = find_exec(exec)?;
    let node = find_node(node)?;
    Ok(exec.set_work(node.handle(), work()?)?)
}

pub fn graph_exec_kernel_node_set_params(
    exec: CUgraphExec,
    node: CUgraphNode,
    record: In<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> Answer {
    change(exec, node, || params::kernel(&node::widened(record.get()?)))
}

pub fn graph_exec_kernel_node_set_params_v2(
    exec: CUgraphExec,
    node: CUgraphNode,
    record: In<CUDA_KERNEL_NODE_PARAMS>,
) -> Answer {
    change(exec, node, || params::kernel(&record.get()?))
}

pub fn graph_exec_memcpy_node_set_params(
    exec: CUgraphExec,
    node: CUgraphNode,
    record: In<CUDA_MEMCPY3D>,
    ctx: CUcontext,
) -> Answer {
    change(exec, node, || Ok(params::copy(&record.get()?, ctx)?.0))
}

pub fn graph_exec_memset_node_set_params(
    exec: CUgraphExec,
    node: CUgraphNode,
    record: In<CUDA_MEMSET_NODE_PARAMS>,
    ctx: CUcontext,
) -> Answer {
    change(exec, node, || params::set(&record.get()?, ctx))
}

pub fn graph_exec_host_node_set_params(
    exec: CUgraphExec,
    node: CUgraphNode,
    record: In<CUDA_HOST_NODE_PARAMS>,
) -> Answer {
    change(exec, node, || params::host(&record.get()?, 0, std::ptr::null_mut()))
}

pub fn graph_exec_event_record_node_set_event(exec: CUgraphExec, node: CUgraphNode, event: CUevent) -> Answer {
    change(exec, node, || Ok(Work::RecordEvent(params::event(event)?)))
}

pub fn graph_exec_event_wait_node_set_event(exec: CUgraphExec, node: CUgraphNode, event: CUevent) -> Answer {
    change(exec, node, || Ok(Work::WaitEvent(params::event(event)?)))
}

pub fn graph_exec_batch_mem_op_node_set_params(
    exec: CUgraphExec,
    node: CUgraphNode,
    record: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> Answer {
    change(exec, node, || params::batch(&record.get()?))
}

pub fn graph_exec_child_graph_node_set_params(exec: CUgraphExec, node: CUgraphNode, child: CUgraph) -> Answer {
    let exec = find_exec(exec)?;
    let node = find_node(node)?;
    Ok(exec.set_child(node.handle(), &find(child)?)?)
}

pub fn graph_node_set_enabled(exec: CUgraphExec, node: CUgraphNode, is_enabled: c_uint) -> Answer {
    let exec = find_exec(exec)?;
    Ok(exec.set_enabled(find_node(node)?.handle(), is_enabled != 0)?)
}

pub fn graph_node_get_enabled(exec: CUgraphExec, node: CUgraphNode, is_enabled: Out<c_uint>) -> Answer {
    is_enabled.required()?;
    let exec = find_exec(exec)?;
    is_enabled.set(exec.is_enabled(find_node(node)?.handle())?.into())
}

/// What a change to all nodes came to: result, node, what the node depends on.
fn update(exec: CUgraphExec, graph: CUgraph) -> (Answer, CUgraphExecUpdateResultInfo) {
    let info = |result: u32, node: usize, from: usize| CUgraphExecUpdateResultInfo {
        result: CUgraphExecUpdateResult::from_raw(result),
        errorNode: node as CUgraphNode,
        errorFromNode: from as CUgraphNode,
    };
    let (exec, graph) = match (find_exec(exec), find(graph)) {
        (Ok(exec), Ok(graph)) => (exec, graph),
        _ => return (Err(CUresult::CUDA_ERROR_INVALID_VALUE), info(1, 0, 0)),
    };
    match exec.update(&graph) {
        Ok(()) => (Ok(()), info(0, 0, 0)),
        Err(UpdateError { mismatch, node, from }) => {
            let error = CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
            (Err(error), info(mismatch as u32, node, from))
        }
    }
}

pub fn graph_exec_update(
    exec: CUgraphExec,
    graph: CUgraph,
    error_node: Out<CUgraphNode>,
    result: Out<CUgraphExecUpdateResult>,
) -> Answer {
    let (answer, info) = update(exec, graph);
    error_node.set_if_any(info.errorNode);
    result.set_if_any(info.result);
    answer
}

pub fn graph_exec_update_v2(exec: CUgraphExec, graph: CUgraph, info: Out<CUgraphExecUpdateResultInfo>) -> Answer {
    require(!info.is_null())?;
    let (answer, found) = update(exec, graph);
    info.set(found)?;
    answer
}
