//! Stream capture: the questions that programs ask about it. Capture itself is not offered yet, so nothing is capturing.
//!
//! Flows in: streams. Flows out: "not capturing". It must never know graphs.

use super::call::{Answer, DefaultStream, Out, require};
use super::types::*;
use crate::driver::Context;
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    /// Which calls would be unsafe during a capture: a property of the thread, kept for who asks for it back.
    static MODE: Cell<CUstreamCaptureMode> = const { Cell::new(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL) };
}

pub fn thread_exchange_stream_capture_mode(mode: Out<CUstreamCaptureMode>) -> Answer {
    let wanted = mode.get_at(0)?;
    require(wanted.name().is_some())?;
    mode.set(MODE.replace(wanted))
}

pub fn stream_is_capturing(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    status: Out<CUstreamCaptureStatus>,
) -> Answer {
    status.required()?;
    default.resolve(stream)?;
    status.set(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
}

/// The other outputs are written only when there is a capture (manual).
pub fn stream_get_capture_info(
    context: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    status: Out<CUstreamCaptureStatus>,
    _id: Out<cuuint64_t>,
) -> Answer {
    stream_is_capturing(context, default, stream, status)
}

#[allow(clippy::too_many_arguments)]
pub fn stream_get_capture_info_v2(
    context: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    status: Out<CUstreamCaptureStatus>,
    _id: Out<cuuint64_t>,
    _graph: Out<CUgraph>,
    _dependencies: Out<*const CUgraphNode>,
    _num_dependencies: Out<usize>,
) -> Answer {
    stream_is_capturing(context, default, stream, status)
}

#[allow(clippy::too_many_arguments)]
pub fn stream_get_capture_info_v3(
    context: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    status: Out<CUstreamCaptureStatus>,
    _id: Out<cuuint64_t>,
    _graph: Out<CUgraph>,
    _dependencies: Out<*const CUgraphNode>,
    _edge_data: Out<*const CUgraphEdgeData>,
    _num_dependencies: Out<usize>,
) -> Answer {
    stream_is_capturing(context, default, stream, status)
}
