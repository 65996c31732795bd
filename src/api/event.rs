//! Event management.
//!
//! Events are `driver/streams/event.rs`.

use super::call::{Answer, DefaultStream, Out, require};
use super::types::*;
use crate::driver::{Context, Event};
use std::sync::Arc;

fn find(event: CUevent) -> Answer<Arc<Event>> {
    Ok(Event::from_handle(event as usize)?)
}

/// An event for other processes cannot keep time (manual, cuEventCreate).
pub fn event_create(_: &Arc<Context>, event: Out<CUevent>, flags: c_uint) -> Answer {
    let known = CUevent_flags::CU_EVENT_BLOCKING_SYNC.0
        | CUevent_flags::CU_EVENT_DISABLE_TIMING.0
        | CUevent_flags::CU_EVENT_INTERPROCESS.0;
    let set = |flag: CUevent_flags| flags & flag.0 != 0;
    require(!event.is_null() && flags & !known == 0)?;
    require(!set(CUevent_flags::CU_EVENT_INTERPROCESS) || set(CUevent_flags::CU_EVENT_DISABLE_TIMING))?;
    event.set(Event::create(flags)?.handle() as CUevent)
}

pub fn event_record(context: &Arc<Context>, default: DefaultStream, event: CUevent, stream: CUstream) -> Answer {
    let stream = default.resolve_in(context, stream)?;
    Ok(find(event)?.record(&stream, false)?)
}

/// With `CU_EVENT_RECORD_EXTERNAL` the recording becomes a node of the graph that the stream records into; elsewhere it
/// is 1.
pub fn event_record_with_flags(
    _: &Arc<Context>,
    default: DefaultStream,
    event: CUevent,
    stream: CUstream,
    flags: c_uint,
) -> Answer {
    let flags = CUevent_record_flags::from_raw(flags);
    require(flags.name().is_some())?;
    let stream = default.resolve(stream)?;
    let external = flags == CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL;
    Ok(find(event)?.record(&stream, external)?)
}

pub fn event_query(_: &Arc<Context>, event: CUevent) -> Answer {
    Ok(find(event)?.query()?)
}

pub fn event_synchronize(_: &Arc<Context>, event: CUevent) -> Answer {
    Ok(find(event)?.synchronize()?)
}

pub fn event_destroy(event: CUevent) -> Answer {
    Ok(find(event)?.destroy()?)
}

/// Both versions.
pub fn event_elapsed_time(_: &Arc<Context>, milliseconds: Out<f32>, start: CUevent, end: CUevent) -> Answer {
    milliseconds.required()?;
    milliseconds.set(Event::elapsed(&*find(start)?, &*find(end)?)?)
}
