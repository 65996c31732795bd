//! Graph management: the calls that take any type of node, described by one tagged record.
//!
//! A record's tag says which of the calls in `graph_node.rs` it stands for; the fields are read in `graph_params.rs`.

use super::call::{Answer, In, Out, require};
use super::graph::{dependencies, find, find_node};
use super::graph_external as external;
use super::graph_params as params;
use super::types::*;
use crate::driver::graph::{Exec, Graph, Node, NodeType, Work};
use std::sync::Arc;

/// What must be zero is: bytes that the type does not use.
fn check_rest(record: &CUgraphNodeParams, used: usize) -> Answer {
    // SAFETY: all members are bytes, whatever was written to them.
    let bytes = unsafe { record.anonymous.asBytes };
    require(record.reserved0 == [0; 3] && record.reserved2 == 0 && bytes[used..].iter().all(|byte| *byte == 0))
}

/// What the record describes, and how the node's own memory for it comes to be.
struct Described {
    work: Work,
    keep: Keep,
}

enum Keep {
    Nothing,
    Copy(Arc<params::Kept<CUDA_MEMCPY3D>>),
    Allocation,
    Bodies,
}

fn describe(record: &CUgraphNodeParams, graph: Option<&Arc<Graph>>) -> Answer<Described> {
    use CUgraphNodeType as Type;
    let members = &record.anonymous;
    let mut keep = Keep::Nothing;
    // SAFETY: the member that goes with the type; all of them consist of numbers and pointers.
    let work = unsafe {
        match record.r#type {
            Type::CU_GRAPH_NODE_TYPE_KERNEL => {
                check_rest(record, size_of::<CUDA_KERNEL_NODE_PARAMS_v3>())?;
                params::kernel(&narrowed(members.kernel))?
            }
            Type::CU_GRAPH_NODE_TYPE_MEMCPY => {
                check_rest(record, size_of::<CUDA_MEMCPY_NODE_PARAMS>())?;
                let copy = members.memcpy;
                require(copy.flags == 0)?;
                let (work, kept) = params::copy(&copy.copyParams, copy.copyCtx)?;
                keep = Keep::Copy(kept);
                work
            }
            Type::CU_GRAPH_NODE_TYPE_MEMSET => {
                check_rest(record, size_of::<CUDA_MEMSET_NODE_PARAMS_v2>())?;
                let set = members.memset;
                let plain = CUDA_MEMSET_NODE_PARAMS {
                    dst: set.dst,
                    pitch: set.pitch,
                    value: set.value,
                    elementSize: set.elementSize,
                    width: set.width,
                    height: set.height,
                };
                params::set(&plain, set.ctx)?
            }
            Type::CU_GRAPH_NODE_TYPE_HOST => {
                check_rest(record, size_of::<CUDA_HOST_NODE_PARAMS_v2>())?;
                let host = members.host;
                let plain = CUDA_HOST_NODE_PARAMS {
                    r#fn: host.r#fn,
                    userData: host.userData,
                };
                params::host(&plain, host.syncMode, host.anonymous.ctx)?
            }
            Type::CU_GRAPH_NODE_TYPE_GRAPH => {
                check_rest(record, size_of::<CUDA_CHILD_GRAPH_NODE_PARAMS>())?;
                let child = members.graph;
                let moves = match child.ownership {
                    CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE => false,
                    CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE => true,
                    _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
                };
                let parent = graph.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
                Work::Child(find(child.graph)?.into_child(parent, moves)?)
            }
            Type::CU_GRAPH_NODE_TYPE_EMPTY => {
                check_rest(record, 0)?;
                Work::Empty
            }
            Type::CU_GRAPH_NODE_TYPE_WAIT_EVENT => {
                check_rest(record, size_of::<CUDA_EVENT_WAIT_NODE_PARAMS>())?;
                Work::WaitEvent(params::event(members.eventWait.event)?)
            }
            Type::CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
                check_rest(record, size_of::<CUDA_EVENT_RECORD_NODE_PARAMS>())?;
                Work::RecordEvent(params::event(members.eventRecord.event)?)
            }
            Type::CU_GRAPH_NODE_TYPE_MEM_ALLOC => {
                check_rest(record, size_of::<CUDA_MEM_ALLOC_NODE_PARAMS_v2>())?;
                keep = Keep::Allocation;
                params::allocation(&allocation_of(members.alloc))?.0
            }
            Type::CU_GRAPH_NODE_TYPE_MEM_FREE => {
                check_rest(record, size_of::<CUDA_MEM_FREE_NODE_PARAMS>())?;
                params::free(members.free.dptr)?
            }
            Type::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => {
                check_rest(record, size_of::<CUDA_BATCH_MEM_OP_NODE_PARAMS_v2>())?;
                let batch = members.memOp;
                params::batch(&CUDA_BATCH_MEM_OP_NODE_PARAMS {
                    ctx: batch.ctx,
                    count: batch.count,
                    paramArray: batch.paramArray,
                    flags: batch.flags,
                })?
            }
            Type::CU_GRAPH_NODE_TYPE_CONDITIONAL => {
                check_rest(record, size_of::<CUDA_CONDITIONAL_NODE_PARAMS>())?;
                keep = Keep::Bodies;
                params::conditional(&members.conditional)?
            }
            Type::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL => {
                check_rest(record, size_of::<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2>())?;
                let signal = members.extSemSignal;
                let plain = CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
                    extSemArray: signal.extSemArray,
                    paramsArray: signal.paramsArray,
                    numExtSems: signal.numExtSems,
                };
                external::signal(&plain, signal.anonymous.ctx)?
            }
            Type::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => {
                check_rest(record, size_of::<CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2>())?;
                let wait = members.extSemWait;
                let plain = CUDA_EXT_SEM_WAIT_NODE_PARAMS {
                    extSemArray: wait.extSemArray,
                    paramsArray: wait.paramsArray,
                    numExtSems: wait.numExtSems,
                };
                external::wait(&plain, wait.anonymous.ctx)?
            }
            Type::CU_GRAPH_NODE_TYPE_MEMCPY_BATCH => {
                check_rest(record, size_of::<CUDA_MEMCPY_BATCH_NODE_PARAMS>())?;
                external::copy_batch(&members.memcpyBatch)?
            }
            // Fabric copies, and numbers that are reserved.
            kind if kind.name().is_some() => return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    };
    Ok(Described { work, keep })
}

fn narrowed(kernel: CUDA_KERNEL_NODE_PARAMS_v3) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: kernel.func,
        gridDimX: kernel.gridDimX,
        gridDimY: kernel.gridDimY,
        gridDimZ: kernel.gridDimZ,
        blockDimX: kernel.blockDimX,
        blockDimY: kernel.blockDimY,
        blockDimZ: kernel.blockDimZ,
        sharedMemBytes: kernel.sharedMemBytes,
        kernelParams: kernel.kernelParams,
        extra: kernel.extra,
        kern: kernel.kern,
        ctx: kernel.ctx,
    }
}

fn allocation_of(alloc: CUDA_MEM_ALLOC_NODE_PARAMS_v2) -> CUDA_MEM_ALLOC_NODE_PARAMS {
    CUDA_MEM_ALLOC_NODE_PARAMS {
        poolProps: alloc.poolProps,
        accessDescs: alloc.accessDescs,
        accessDescCount: alloc.accessDescCount,
        bytesize: alloc.bytesize,
        dptr: alloc.dptr,
    }
}

/// The first version: edges without data.
pub fn graph_add_node(
    node_out: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    count: usize,
    record: Out<CUgraphNodeParams>,
) -> Answer {
    // SAFETY: a null pointer.
    let data = unsafe { In::from_c(std::ptr::null()) };
    graph_add_node_v2(node_out, graph, before, data, count, record)
}

/// The second and the third version. Some types write into the record: the address of an allocation, the bodies of a
/// conditional node.
pub fn graph_add_node_v2(
    node_out: Out<CUgraphNode>,
    graph: CUgraph,
    before: In<CUgraphNode>,
    data: In<CUgraphEdgeData>,
    count: usize,
    record: Out<CUgraphNodeParams>,
) -> Answer {
    node_out.required()?;
    let mut given = record.get_at(0)?;
    let graph = find(graph)?;
    let before = dependencies(before, data, count)?;
    let described = describe(&given, Some(&graph))?;
    let node = graph.add(described.work, &before)?;
    match described.keep {
        Keep::Nothing => {}
        Keep::Copy(kept) => node.keep(kept),
        Keep::Allocation => {
            // SAFETY: the member that goes with the type.
            let mut alloc = unsafe { given.anonymous.alloc };
            alloc.dptr = params::allocation_record(&node)?.dptr;
            params::keep_allocation(&node, &allocation_of(alloc))?;
            given.anonymous.alloc = alloc;
            record.set(given)?;
        }
        Keep::Bodies => {
            given.anonymous.conditional = params::conditional_record(&node)?;
            record.set(given)?;
        }
    }
    node_out.set(node.handle() as CUgraphNode)
}

/// Both versions.
pub fn graph_node_set_params(node: CUgraphNode, record: Out<CUgraphNodeParams>) -> Answer {
    let node = find_node(node)?;
    let given = record.get_at(0)?;
    require(given.r#type.0 == node.work().node_type() as u32)?;
    check_changeable(&node)?;
    // Attributes of kernels stay.
    if given.r#type == CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL {
        check_rest(&given, size_of::<CUDA_KERNEL_NODE_PARAMS_v3>())?;
        // SAFETY: the member that goes with the type.
        return super::graph_node::set_kernel(&node, &narrowed(unsafe { given.anonymous.kernel }));
    }
    let described = describe(&given, None)?;
    node.set_work(described.work)?;
    if let Keep::Copy(kept) = described.keep {
        node.keep(kept);
    }
    Ok(())
}

/// What memory, child graph and conditional nodes do cannot be changed by a record.
fn check_changeable(node: &Node) -> Answer {
    match node.work().node_type() {
        NodeType::Allocate | NodeType::Free | NodeType::Child | NodeType::Conditional => {
            Err(CUresult::CUDA_ERROR_NOT_SUPPORTED)
        }
        _ => Ok(()),
    }
}

pub fn graph_exec_node_set_params(exec: CUgraphExec, node: CUgraphNode, record: Out<CUgraphNodeParams>) -> Answer {
    let exec = Exec::from_handle(exec as usize)?;
    let node = find_node(node)?;
    let given = record.get_at(0)?;
    require(given.r#type.0 == node.work().node_type() as u32)?;
    if given.r#type == CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH {
        // SAFETY: the member that goes with the type.
        let child = unsafe { given.anonymous.graph };
        return Ok(exec.set_child(node.handle(), &find(child.graph)?)?);
    }
    check_changeable(&node)?;
    Ok(exec.set_work(node.handle(), describe(&given, None)?.work)?)
}

pub fn graph_node_get_params(node: CUgraphNode, record: Out<CUgraphNodeParams>) -> Answer {
    record.required()?;
    record.set(node_params(&*find_node(node)?)?)
}

/// What a node does, as C has it.
pub fn node_params(node: &Node) -> Answer<CUgraphNodeParams> {
    let mut found = CUgraphNodeParams {
        r#type: CUgraphNodeType::from_raw(node.work().node_type() as u32),
        reserved0: [0; 3],
        anonymous: CUgraphNodeParams_st_anonymous { asBytes: [0; 232] },
        reserved2: 0,
    };
    let members = &mut found.anonymous;
    match &*node.work() {
        Work::Kernel(_) => {
            let kernel = params::kernel_record(node)?;
            members.kernel = CUDA_KERNEL_NODE_PARAMS_v3 {
                func: kernel.func,
                gridDimX: kernel.gridDimX,
                gridDimY: kernel.gridDimY,
                gridDimZ: kernel.gridDimZ,
                blockDimX: kernel.blockDimX,
                blockDimY: kernel.blockDimY,
                blockDimZ: kernel.blockDimZ,
                sharedMemBytes: kernel.sharedMemBytes,
                kernelParams: kernel.kernelParams,
                extra: kernel.extra,
                kern: kernel.kern,
                ctx: kernel.ctx,
            };
        }
        Work::Copy(copy) => {
            members.memcpy = CUDA_MEMCPY_NODE_PARAMS {
                flags: 0,
                reserved: 0,
                copyCtx: copy.context as CUcontext,
                copyParams: params::copy_record(node)?,
            };
        }
        Work::Set(_) => {
            let (set, ctx) = params::set_record(node)?;
            members.memset = CUDA_MEMSET_NODE_PARAMS_v2 {
                dst: set.dst,
                pitch: set.pitch,
                value: set.value,
                elementSize: set.elementSize,
                width: set.width,
                height: set.height,
                ctx,
            };
        }
        Work::Host(_) => members.host = params::host_record(node)?,
        Work::Child(child) => {
            members.graph = CUDA_CHILD_GRAPH_NODE_PARAMS {
                graph: child.handle() as CUgraph,
                ownership: CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_INVALID,
            };
        }
        Work::Empty => {}
        Work::WaitEvent(event) => {
            members.eventWait = CUDA_EVENT_WAIT_NODE_PARAMS {
                event: event.handle() as CUevent,
            };
        }
        Work::RecordEvent(event) => {
            members.eventRecord = CUDA_EVENT_RECORD_NODE_PARAMS {
                event: event.handle() as CUevent,
                anonymous: CUDA_EVENT_RECORD_NODE_PARAMS_st_anonymous {
                    ctx: std::ptr::null_mut(),
                },
            };
        }
        Work::Allocate(_) => {
            let alloc = params::allocation_record(node)?;
            members.alloc = CUDA_MEM_ALLOC_NODE_PARAMS_v2 {
                poolProps: alloc.poolProps,
                accessDescs: alloc.accessDescs,
                accessDescCount: alloc.accessDescCount,
                bytesize: alloc.bytesize,
                dptr: alloc.dptr,
            };
        }
        Work::Free(memory) => {
            members.free = CUDA_MEM_FREE_NODE_PARAMS { dptr: memory.address() };
        }
        Work::Batch(_) => {
            let batch = params::batch_record(node)?;
            members.memOp = CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 {
                ctx: batch.ctx,
                count: batch.count,
                paramArray: batch.paramArray,
                flags: batch.flags,
            };
        }
        Work::Conditional(_) => members.conditional = params::conditional_record(node)?,
        Work::Signal(signal) => {
            let plain = external::signal_record(node)?;
            members.extSemSignal = CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2 {
                extSemArray: plain.extSemArray,
                paramsArray: plain.paramsArray,
                numExtSems: plain.numExtSems,
                anonymous: CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st_anonymous {
                    ctx: signal.context as CUcontext,
                },
            };
        }
        Work::Await(wait) => {
            let plain = external::wait_record(node)?;
            members.extSemWait = CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2 {
                extSemArray: plain.extSemArray,
                paramsArray: plain.paramsArray,
                numExtSems: plain.numExtSems,
                anonymous: CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_st_anonymous {
                    ctx: wait.context as CUcontext,
                },
            };
        }
        Work::CopyBatch(_) => members.memcpyBatch = external::copy_batch_record(node)?,
    }
    Ok(found)
}
