//! Stream capture: streams that record into a graph.
//!
//! What streams do while they record is in `driver/graph/capture.rs`.

use super::call::{Answer, DefaultStream, In, Out, require};
use super::graph::{dependencies, find};
use super::graph_any_node::node_params;
use super::types::*;
use crate::driver::Context;
use crate::driver::graph::{CaptureInfo, Mode, OnMismatch, exchange_mode};
use std::sync::Arc;

fn mode_of(mode: CUstreamCaptureMode) -> Answer<Mode> {
    match mode {
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL => Ok(Mode::Global),
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL => Ok(Mode::ThreadLocal),
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED => Ok(Mode::Relaxed),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn thread_exchange_stream_capture_mode(mode: Out<CUstreamCaptureMode>) -> Answer {
    let wanted = mode_of(mode.get_at(0)?)?;
    mode.set(match exchange_mode(wanted) {
        Mode::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
        Mode::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        Mode::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
    })
}

/// The first version knew one mode.
pub fn stream_begin_capture(context: &Arc<Context>, default: DefaultStream, stream: CUstream) -> Answer {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    stream_begin_capture_v2(context, default, stream, mode)
}

pub fn stream_begin_capture_v2(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    mode: CUstreamCaptureMode,
) -> Answer {
    let mode = mode_of(mode)?;
    Ok(default.resolve(stream)?.begin_capture(mode, None)?)
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn stream_begin_capture_to_graph(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    graph: CUgraph,
    nodes: In<CUgraphNode>,
    data: In<CUgraphEdgeData>,
    count: usize,
    mode: CUstreamCaptureMode,
) -> Answer {
    let mode = mode_of(mode)?;
    let graph = find(graph)?;
    let before = dependencies(nodes, data, count)?;
    Ok(default.resolve(stream)?.begin_capture(mode, Some((graph, before)))?)
}

/// A pointer of the program's that goes back to the program.
struct UserData(*mut c_void);

// SAFETY: it is handed back as it came; what may be done with it on which thread is between the program and itself.
unsafe impl Send for UserData {}
// SAFETY: nothing here looks at what it points to.
unsafe impl Sync for UserData {}

/// The program hears of each node whose parameters differ from what the graph has.
pub fn stream_begin_recapture_to_graph(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    mode: CUstreamCaptureMode,
    graph: CUgraph,
    callback: CUgraphRecaptureCallback,
    user_data: *mut c_void,
) -> Answer {
    let mode = mode_of(mode)?;
    let graph = find(graph)?;
    let user_data = UserData(user_data);
    let on_mismatch = callback.map(|callback| -> OnMismatch {
        Box::new(move |before, node, eligible| {
            let user_data = &user_data;
            let (Ok(original), Ok(recorded)) = (node_params(before), node_params(node)) else {
                return false;
            };
            let status = match eligible {
                true => CUgraphRecaptureStatus::CU_GRAPH_RECAPTURE_ELIGIBLE_FOR_UPDATE,
                false => CUgraphRecaptureStatus::CU_GRAPH_RECAPTURE_INELIGIBLE_FOR_UPDATE,
            };
            let handle = before.handle() as CUgraphNode;
            // SAFETY: the program's function, called as the manual says; the records live through the call.
            unsafe { callback(user_data.0, handle, &original, &recorded, status) == CUresult::CUDA_SUCCESS }
        })
    });
    Ok(default.resolve(stream)?.begin_recapture(mode, &graph, on_mismatch)?)
}

/// The graph is NULL when there is none.
pub fn stream_end_capture(_: &Arc<Context>, default: DefaultStream, stream: CUstream, graph: Out<CUgraph>) -> Answer {
    let stream = default.resolve(stream)?;
    // Who gave the graph need not be told which it is.
    require(!graph.is_null() || stream.records_into_given_graph())?;
    match stream.end_capture() {
        Ok(captured) => {
            graph.set_if_any(captured.handle() as CUgraph);
            Ok(())
        }
        Err(error) => {
            graph.set_if_any(std::ptr::null_mut());
            Err(error.into())
        }
    }
}

fn status_of(info: Option<&CaptureInfo>) -> CUstreamCaptureStatus {
    match info {
        None => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
        Some(info) if info.is_invalid => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED,
        Some(_) => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
    }
}

pub fn stream_is_capturing(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    status: Out<CUstreamCaptureStatus>,
) -> Answer {
    status.required()?;
    let info = default.resolve(stream)?.capture_info()?;
    status.set(status_of(info.as_ref()))
}

/// The other outputs are written only while the stream records (manual).
pub fn stream_get_capture_info(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    status: Out<CUstreamCaptureStatus>,
    id: Out<cuuint64_t>,
) -> Answer {
    status.required()?;
    let info = default.resolve(stream)?.capture_info()?;
    if let Some(info) = info.as_ref().filter(|info| !info.is_invalid) {
        id.set_if_any(info.id);
    }
    status.set(status_of(info.as_ref()))
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn stream_get_capture_info_v2(
    context: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    status: Out<CUstreamCaptureStatus>,
    id: Out<cuuint64_t>,
    graph: Out<CUgraph>,
    nodes: Out<*const CUgraphNode>,
    count: Out<usize>,
) -> Answer {
    // SAFETY: a null pointer.
    let data = unsafe { Out::from_c(std::ptr::null_mut()) };
    stream_get_capture_info_v3(context, default, stream, status, id, graph, nodes, data, count)
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn stream_get_capture_info_v3(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    status: Out<CUstreamCaptureStatus>,
    id: Out<cuuint64_t>,
    graph: Out<CUgraph>,
    nodes: Out<*const CUgraphNode>,
    data: Out<*const CUgraphEdgeData>,
    count: Out<usize>,
) -> Answer {
    require(!status.is_null() && (data.is_null() || !nodes.is_null()))?;
    let info = default.resolve(stream)?.capture_info()?;
    if let Some(info) = info.as_ref().filter(|info| !info.is_invalid) {
        if !nodes.is_null() && data.is_null() && info.has_data {
            return Err(CUresult::CUDA_ERROR_LOSSY_QUERY);
        }
        id.set_if_any(info.id);
        graph.set_if_any(info.graph.handle() as CUgraph);
        // A handle is a number of a pointer's size, the data of an edge eight bytes.
        nodes.set_if_any(info.nodes.cast());
        data.set_if_any(info.data.cast());
        count.set_if_any(info.count);
    }
    status.set(status_of(info.as_ref()))
}

pub fn stream_update_capture_dependencies(
    context: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    nodes: Out<CUgraphNode>,
    count: usize,
    flags: c_uint,
) -> Answer {
    // SAFETY: a null pointer.
    let data = unsafe { In::from_c(std::ptr::null()) };
    stream_update_capture_dependencies_v2(context, default, stream, nodes, data, count, flags)
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn stream_update_capture_dependencies_v2(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    nodes: Out<CUgraphNode>,
    data: In<CUgraphEdgeData>,
    count: usize,
    flags: c_uint,
) -> Answer {
    let set = CUstreamUpdateCaptureDependencies_flags::CU_STREAM_SET_CAPTURE_DEPENDENCIES;
    require(flags <= set.0)?;
    // SAFETY: an array that the call reads.
    let nodes = unsafe { In::from_c(nodes.as_ptr().cast_const()) };
    let nodes = dependencies(nodes, data, count)?;
    Ok(default.resolve(stream)?.update_capture(nodes, flags == set.0)?)
}
