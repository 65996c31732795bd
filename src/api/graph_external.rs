//! Graph management: nodes that signal and await external semaphores, nodes that make batches of copies.

use super::call::{Answer, In, Out};
use super::copy_batch;
use super::external::{signal_of, steps, wait_of};
use super::graph::find_node;
use super::graph_exec::change;
use super::graph_node::add;
use super::graph_params::{Kept, context};
use super::types::*;
use crate::driver::graph::{CopyBatchNode, Node, SemaphoreNode, Work};
use crate::driver::semaphore::SemaphoreStep;
use std::sync::Arc;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

/// In the order of [`steps`]: handles, and a record for each.
type Records<P> = Arc<Kept<(Vec<CUexternalSemaphore>, Vec<P>)>>;

/// The arrays that a record points to: made when they are first asked for, and kept with the node.
fn arrays<P: 'static>(node: &Node, steps: &[SemaphoreStep], record: fn(u64) -> P) -> Records<P> {
    if let Some(kept) = node.kept() {
        return kept;
    }
    let handles = steps.iter().map(|step| step.semaphore.handle() as CUexternalSemaphore);
    let params = steps.iter().map(|step| record(step.value));
    let records = Arc::new(Kept((handles.collect(), params.collect())));
    node.keep(Arc::clone(&records) as _);
    records
}

/// A signal node, of the array and its size in either version of the record.
pub fn signal(params: &CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, ctx: CUcontext) -> Answer<Work> {
    // SAFETY: the caller's arrays.
    let (semaphores, values) = unsafe {
        (
            In::from_c(params.extSemArray.cast_const()),
            In::from_c(params.paramsArray),
        )
    };
    Ok(Work::Signal(SemaphoreNode {
        steps: steps(semaphores, values, params.numExtSems, signal_of)?.into(),
        context: context(ctx)?,
    }))
}

pub fn wait(params: &CUDA_EXT_SEM_WAIT_NODE_PARAMS, ctx: CUcontext) -> Answer<Work> {
    // SAFETY: the caller's arrays.
    let (semaphores, values) = unsafe {
        (
            In::from_c(params.extSemArray.cast_const()),
            In::from_c(params.paramsArray),
        )
    };
    Ok(Work::Await(SemaphoreNode {
        steps: steps(semaphores, values, params.numExtSems, wait_of)?.into(),
        context: context(ctx)?,
    }))
}

pub fn signal_record(node: &Node) -> Answer<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS> {
    let work = node.work();
    let Work::Signal(signal) = &*work else {
        return Err(INVALID);
    };
    let kept = arrays(node, &signal.steps, |value| {
        use CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st_params as Params;
        CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS {
            params: Params {
                fence: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st_params_fence { value },
                nvSciSync: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st_params_nvSciSync { reserved: 0 },
                keyedMutex: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st_params_keyedMutex { key: 0 },
                reserved: [0; 12],
            },
            flags: 0,
            reserved: [0; 16],
        }
    });
    Ok(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
        extSemArray: kept.0.0.as_ptr().cast_mut(),
        paramsArray: kept.0.1.as_ptr(),
        numExtSems: kept.0.0.len() as c_uint,
    })
}

pub fn wait_record(node: &Node) -> Answer<CUDA_EXT_SEM_WAIT_NODE_PARAMS> {
    let work = node.work();
    let Work::Await(wait) = &*work else {
        return Err(INVALID);
    };
    let kept = arrays(node, &wait.steps, |value| {
        use CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st_params as Params;
        CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS {
            params: Params {
                fence: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st_params_fence { value },
                nvSciSync: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st_params_nvSciSync { reserved: 0 },
                keyedMutex: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st_params_keyedMutex { key: 0, timeoutMs: 0 },
                reserved: [0; 10],
            },
            flags: 0,
            reserved: [0; 16],
        }
    });
    Ok(CUDA_EXT_SEM_WAIT_NODE_PARAMS {
        extSemArray: kept.0.0.as_ptr().cast_mut(),
        paramsArray: kept.0.1.as_ptr(),
        numExtSems: kept.0.0.len() as c_uint,
    })
}

pub fn copy_batch(params: &CUDA_MEMCPY_BATCH_NODE_PARAMS) -> Answer<Work> {
    // SAFETY: both members are handles.
    let ctx = unsafe { params.anonymous.ctx };
    Ok(Work::CopyBatch(CopyBatchNode {
        copies: copy_batch::of_node(params)?.into(),
        context: context(ctx)?,
    }))
}

pub fn copy_batch_record(node: &Node) -> Answer<CUDA_MEMCPY_BATCH_NODE_PARAMS> {
    let work = node.work();
    let Work::CopyBatch(batch) = &*work else {
        return Err(INVALID);
    };
    let kept: Arc<Kept<copy_batch::Records>> = node.kept().unwrap_or_else(|| {
        let records = Arc::new(Kept(copy_batch::records(&batch.copies)));
        node.keep(Arc::clone(&records) as _);
        records
    });
    let (dsts, srcs, sizes, attributes, indices) = &kept.0;
    Ok(CUDA_MEMCPY_BATCH_NODE_PARAMS {
        count: dsts.len(),
        dsts: dsts.as_ptr().cast_mut(),
        srcs: srcs.as_ptr().cast_mut(),
        sizes: sizes.as_ptr().cast_mut(),
        attrs: attributes.as_ptr().cast_mut(),
        attrsIdxs: indices.as_ptr().cast_mut(),
        numAttrs: indices.len(),
        anonymous: CUDA_MEMCPY_BATCH_NODE_PARAMS_V1_st_anonymous {
            ctx: batch.context as CUcontext,
        },
    })
}

const CURRENT: CUcontext = std::ptr::null_mut();

pub fn graph_add_external_semaphores_signal_node(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    record: In<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS>,
) -> Answer {
    add(node, graph, before, count, |_| signal(&record.get()?, CURRENT)).map(drop)
}

pub fn graph_external_semaphores_signal_node_get_params(
    node: CUgraphNode,
    record: Out<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS>,
) -> Answer {
    record.required()?;
    record.set(signal_record(&*find_node(node)?)?)
}

pub fn graph_external_semaphores_signal_node_set_params(
    node: CUgraphNode,
    record: In<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS>,
) -> Answer {
    Ok(find_node(node)?.set_work(signal(&record.get()?, CURRENT)?)?)
}

pub fn graph_exec_external_semaphores_signal_node_set_params(
    exec: CUgraphExec,
    node: CUgraphNode,
    record: In<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS>,
) -> Answer {
    change(exec, node, || signal(&record.get()?, CURRENT))
}

pub fn graph_add_external_semaphores_wait_node(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    record: In<CUDA_EXT_SEM_WAIT_NODE_PARAMS>,
) -> Answer {
    add(node, graph, before, count, |_| wait(&record.get()?, CURRENT)).map(drop)
}

pub fn graph_external_semaphores_wait_node_get_params(
    node: CUgraphNode,
    record: Out<CUDA_EXT_SEM_WAIT_NODE_PARAMS>,
) -> Answer {
    record.required()?;
    record.set(wait_record(&*find_node(node)?)?)
}

pub fn graph_external_semaphores_wait_node_set_params(
    node: CUgraphNode,
    record: In<CUDA_EXT_SEM_WAIT_NODE_PARAMS>,
) -> Answer {
    Ok(find_node(node)?.set_work(wait(&record.get()?, CURRENT)?)?)
}

pub fn graph_exec_external_semaphores_wait_node_set_params(
    exec: CUgraphExec,
    node: CUgraphNode,
    record: In<CUDA_EXT_SEM_WAIT_NODE_PARAMS>,
) -> Answer {
    change(exec, node, || wait(&record.get()?, CURRENT))
}
