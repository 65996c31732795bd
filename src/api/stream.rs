//! Stream management. Capture is in `capture.rs`.
//!
//! Streams are `driver/streams/stream.rs`, which has their order, too.

use super::call::{Answer, DefaultStream, In, Out, require};
use super::types::*;
use crate::driver::stream::Callback;
use crate::driver::{Context, Event, Stream, managed};
use std::sync::Arc;

pub fn stream_create(context: &Arc<Context>, stream: Out<CUstream>, flags: c_uint) -> Answer {
    stream_create_with_priority(context, stream, flags, 0)
}

pub fn stream_create_with_priority(_: &Arc<Context>, stream: Out<CUstream>, flags: c_uint, priority: c_int) -> Answer {
    require(!stream.is_null() && flags <= CUstream_flags::CU_STREAM_NON_BLOCKING.0)?;
    stream.set(Stream::create(flags, priority)?.handle() as CUstream)
}

/// The default streams cannot be destroyed.
pub fn stream_destroy(stream: CUstream) -> Answer {
    if (stream as usize) <= CU_STREAM_PER_THREAD_HANDLE {
        return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
    }
    // Whatever has become of its context, a stream can be destroyed.
    Ok(Stream::from_handle(stream as usize)?.destroy()?)
}

/// `CU_STREAM_PER_THREAD`; 1 is `CU_STREAM_LEGACY`, 0 the default.
const CU_STREAM_PER_THREAD_HANDLE: usize = 2;

pub fn stream_get_priority(_: &Arc<Context>, default: DefaultStream, stream: CUstream, priority: Out<c_int>) -> Answer {
    priority.required()?;
    priority.set(default.resolve(stream)?.priority())
}

pub fn stream_get_id(_: &Arc<Context>, default: DefaultStream, stream: CUstream, id: Out<c_ulonglong>) -> Answer {
    id.required()?;
    id.set(default.resolve(stream)?.id())
}

pub fn stream_get_flags(_: &Arc<Context>, default: DefaultStream, stream: CUstream, flags: Out<c_uint>) -> Answer {
    flags.required()?;
    flags.set(default.resolve(stream)?.flags())
}

pub fn stream_get_device(_: &Arc<Context>, default: DefaultStream, stream: CUstream, device: Out<CUdevice>) -> Answer {
    device.required()?;
    device.set(default.resolve(stream)?.context()?.device().ordinal())
}

pub fn stream_get_ctx(
    current: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    pctx: Out<CUcontext>,
) -> Answer {
    pctx.required()?;
    let found = default.resolve(stream)?;
    // Default streams are those of the current context.
    let context = match found.is_default() {
        true => Arc::clone(current),
        false => found.context()?,
    };
    pctx.set(context.handle() as CUcontext)
}

/// The green context of a stream, or of the current context for a default stream, and the context beneath it.
pub fn stream_get_ctx_v2(
    current: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    pctx: Out<CUcontext>,
    green_out: Out<CUgreenCtx>,
) -> Answer {
    pctx.required()?;
    let found = default.resolve(stream)?;
    let green = if found.is_default() {
        current.green()
    } else {
        found.green()
    };
    if green.is_some() && stream as usize == CU_STREAM_PER_THREAD_HANDLE {
        return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
    }
    pctx.set(found.context()?.owner().handle() as CUcontext)?;
    green_out.set_if_any(green.map_or(0, |green| green.handle()) as CUgreenCtx);
    Ok(())
}

/// With `CU_EVENT_WAIT_EXTERNAL` the wait becomes a node of the graph that the stream records into; elsewhere it is 1.
pub fn stream_wait_event(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    event: CUevent,
    flags: c_uint,
) -> Answer {
    let flags = CUevent_wait_flags::from_raw(flags);
    require(flags.name().is_some())?;
    let stream = default.resolve(stream)?;
    let external = flags == CUevent_wait_flags::CU_EVENT_WAIT_EXTERNAL;
    Ok(stream.wait_event(&Event::from_handle(event as usize)?, external)?)
}

pub fn stream_add_callback(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    callback: CUstreamCallback,
    user_data: *mut c_void,
    flags: c_uint,
) -> Answer {
    require(flags == 0)?;
    let callback = callback.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
    // SAFETY: handles and pointers are passed like numbers of their size, and a C caller's function is called with what it
    // was given for.
    let callback =
        unsafe { std::mem::transmute::<unsafe extern "C" fn(CUstream, CUresult, *mut c_void), Callback>(callback) };
    Ok(default.resolve(stream)?.callback(callback, user_data as usize)?)
}

pub fn stream_attach_mem_async(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    dptr: CUdeviceptr,
    length: usize,
    flags: c_uint,
) -> Answer {
    Ok(managed::attach(dptr, length as u64, flags, &default.resolve(stream)?)?)
}

pub fn stream_query(context: &Arc<Context>, default: DefaultStream, stream: CUstream) -> Answer {
    Ok(default.resolve_in(context, stream)?.query()?)
}

pub fn stream_synchronize(context: &Arc<Context>, default: DefaultStream, stream: CUstream) -> Answer {
    Ok(default.resolve_in(context, stream)?.synchronize()?)
}

/// The attributes that streams have (`CUlaunchAttributeID`: the manual says of each where it applies).
fn check_attribute(attr: CUstreamAttrID) -> Answer {
    use CUlaunchAttributeID as Id;
    require(matches!(
        attr,
        Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
            | Id::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY
            | Id::CU_LAUNCH_ATTRIBUTE_PRIORITY
            | Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
            | Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN
    ))
}

/// What was never set: no window, the automatic policy, domain 0, and a map of domains to themselves.
pub fn stream_get_attribute(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    attr: CUstreamAttrID,
    value_out: Out<CUstreamAttrValue>,
) -> Answer {
    use CUlaunchAttributeID as Id;
    value_out.required()?;
    let stream = default.resolve(stream)?;
    check_attribute(attr)?;
    let mut value = CUstreamAttrValue { pad: [0; 64] };
    match (attr, stream.attribute(attr.0)) {
        (Id::CU_LAUNCH_ATTRIBUTE_PRIORITY, _) => value.priority = stream.priority(),
        // SAFETY: both are 64 bytes of numbers.
        (_, Some(words)) => value = unsafe { std::mem::transmute::<[u64; 8], CUstreamAttrValue>(words) },
        (Id::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, None) => {
            value.syncPolicy = CUsynchronizationPolicy::CU_SYNC_POLICY_AUTO;
        }
        (Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, None) => {
            value.memSyncDomainMap = CUlaunchMemSyncDomainMap { default_: 0, remote: 1 };
        }
        _ => {}
    }
    value_out.set(value)
}

/// They concern caches, waiting threads and memory domains: kept, and nothing changes. A stream's priority is for good.
pub fn stream_set_attribute(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    attr: CUstreamAttrID,
    value: In<CUstreamAttrValue>,
) -> Answer {
    use CUlaunchAttributeID as Id;
    let value = value.get()?;
    let stream = default.resolve(stream)?;
    check_attribute(attr)?;
    // SAFETY: every bit pattern is a number.
    let (policy, domain) = unsafe { (value.syncPolicy, value.memSyncDomain) };
    match attr {
        Id::CU_LAUNCH_ATTRIBUTE_PRIORITY => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        Id::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => require(policy.name().is_some())?,
        Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => require(domain.name().is_some())?,
        _ => {}
    }
    // SAFETY: both are 64 bytes; what the caller left unset is whatever it was.
    let words = unsafe { std::mem::transmute::<CUstreamAttrValue, [u64; 8]>(value) };
    stream.set_attribute(attr.0, words);
    Ok(())
}

pub fn stream_copy_attributes(_: &Arc<Context>, default: DefaultStream, dst: CUstream, src: CUstream) -> Answer {
    let (dst, src) = (default.resolve(dst)?, default.resolve(src)?);
    Ok(dst.copy_attributes(&src)?)
}
