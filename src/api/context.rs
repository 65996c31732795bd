//! Context management, with the deprecated calls.
//!
//! What is current is a stack that each thread has (`driver/context/mod.rs`). A `CUcontext` is looked up, and keeps
//! nothing alive.

use super::call::{Answer, Out, require};
use super::types::*;
use crate::driver::{Context, Device, Event};
use std::sync::Arc;

/// The context of this handle, or the calling thread's for NULL.
fn given_or_current(ctx: CUcontext) -> Answer<Arc<Context>> {
    Ok(if ctx.is_null() {
        Context::current()?
    } else {
        Context::from_handle(ctx as usize)?
    })
}

/// The first two versions.
pub fn ctx_create(pctx: Out<CUcontext>, flags: c_uint, dev: CUdevice) -> Answer {
    pctx.required()?;
    pctx.set(Context::create(Device::get(dev)?, flags)?.handle() as CUcontext)
}

/// With execution affinity, which no device here supports.
pub fn ctx_create_v3(
    pctx: Out<CUcontext>,
    params: Out<CUexecAffinityParam>,
    num_params: c_int,
    flags: c_uint,
    dev: CUdevice,
) -> Answer {
    require(num_params >= 0 && (num_params == 0 || !params.is_null()))?;
    if num_params > 0 {
        Device::get(dev)?;
        return Err(CUresult::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    }
    ctx_create(pctx, flags, dev)
}

/// With creation parameters: execution affinity, or sharing with a graphics context.
pub fn ctx_create_v4(pctx: Out<CUcontext>, params: Out<CUctxCreateParams>, flags: c_uint, dev: CUdevice) -> Answer {
    if !params.is_null() {
        let params = params.get_at(0)?;
        if params.numExecAffinityParams != 0 {
            return ctx_create_v3(
                pctx,
                // SAFETY: the C caller's array, which is only compared with null.
                unsafe { Out::from_c(params.execAffinityParams) },
                params.numExecAffinityParams,
                flags,
                dev,
            );
        }
        if !params.cigParams.is_null() {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
    }
    ctx_create(pctx, flags, dev)
}

pub fn ctx_destroy(ctx: CUcontext) -> Answer {
    Ok(Context::from_handle(ctx as usize)?.destroy()?)
}

pub fn ctx_push_current(ctx: CUcontext) -> Answer {
    Context::push(Context::from_handle(ctx as usize)?);
    Ok(())
}

pub fn ctx_pop_current(pctx: Out<CUcontext>) -> Answer {
    pctx.set_if_any(Context::pop()?.handle() as CUcontext);
    Ok(())
}

pub fn ctx_set_current(ctx: CUcontext) -> Answer {
    let context = if ctx.is_null() {
        None
    } else {
        Some(Context::from_handle(ctx as usize)?)
    };
    Context::set_current(context);
    Ok(())
}

pub fn ctx_get_current(pctx: Out<CUcontext>) -> Answer {
    pctx.set(Context::current_or_none().map_or(0, |context| context.handle()) as CUcontext)
}

pub fn ctx_get_device(device: Out<CUdevice>) -> Answer {
    device.required()?;
    device.set(Context::current()?.device().ordinal())
}

pub fn ctx_get_device_v2(device: Out<CUdevice>, ctx: CUcontext) -> Answer {
    device.required()?;
    device.set(given_or_current(ctx)?.device().ordinal())
}

pub fn ctx_get_flags(flags: Out<c_uint>) -> Answer {
    flags.required()?;
    flags.set(Context::current()?.flags())
}

pub fn ctx_set_flags(flags: c_uint) -> Answer {
    Ok(Context::current()?.set_flags(flags)?)
}

pub fn ctx_get_id(ctx: CUcontext, ctx_id: Out<c_ulonglong>) -> Answer {
    ctx_id.required()?;
    ctx_id.set(given_or_current(ctx)?.id())
}

pub fn ctx_get_api_version(ctx: CUcontext, version: Out<c_uint>) -> Answer {
    version.required()?;
    version.set(given_or_current(ctx)?.api_version())
}

pub fn ctx_synchronize(context: &Arc<Context>) -> Answer {
    Ok(context.synchronize()?)
}

pub fn ctx_synchronize_v2(ctx: CUcontext) -> Answer {
    Ok(given_or_current(ctx)?.synchronize()?)
}

pub fn ctx_set_limit(context: &Arc<Context>, limit: CUlimit, value: usize) -> Answer {
    Ok(context.set_limit(limit.0, value as u64)?)
}

pub fn ctx_get_limit(context: &Arc<Context>, pvalue: Out<usize>, limit: CUlimit) -> Answer {
    pvalue.required()?;
    pvalue.set(context.limit(limit.0)? as usize)
}

pub fn ctx_get_cache_config(context: &Arc<Context>, pconfig: Out<CUfunc_cache>) -> Answer {
    pconfig.set(CUfunc_cache::from_raw(context.cache_config()))
}

pub fn ctx_set_cache_config(context: &Arc<Context>, config: CUfunc_cache) -> Answer {
    Ok(context.set_cache_config(config.0)?)
}

pub fn ctx_get_shared_mem_config(context: &Arc<Context>, pconfig: Out<CUsharedconfig>) -> Answer {
    pconfig.set(CUsharedconfig::from_raw(context.shared_config()))
}

pub fn ctx_set_shared_mem_config(context: &Arc<Context>, config: CUsharedconfig) -> Answer {
    Ok(context.set_shared_config(config.0)?)
}

/// Either output may be NULL.
pub fn ctx_get_stream_priority_range(_: &Arc<Context>, least: Out<c_int>, greatest: Out<c_int>) -> Answer {
    let range = Context::priority_range();
    least.set_if_any(range.0);
    greatest.set_if_any(range.1);
    Ok(())
}

/// No line of a cache is ever set aside here, so that all of them are in the normal state this call asks for.
pub fn ctx_reset_persisting_l2_cache(_: &Arc<Context>) -> Answer {
    Ok(())
}

/// A context here never has execution affinity: green contexts are the newer way to a part of a device.
pub fn ctx_get_exec_affinity(affinity: Out<CUexecAffinityParam>, kind: CUexecAffinityType) -> Answer {
    require(!affinity.is_null() && kind.0 < CUexecAffinityType::CU_EXEC_AFFINITY_TYPE_MAX.0)?;
    Context::current()?;
    Err(CUresult::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY)
}

/// What is in the context's streams now. NULL is not the current context here (201).
pub fn ctx_record_event(ctx: CUcontext, event: CUevent) -> Answer {
    let context = Context::from_handle(ctx as usize)?;
    Ok(context.record(&Event::from_handle(event as usize)?)?)
}

pub fn ctx_wait_event(ctx: CUcontext, event: CUevent) -> Answer {
    let context = Context::from_handle(ctx as usize)?;
    Ok(context.wait(&Event::from_handle(event as usize)?)?)
}

/// Deprecated: counts a further user of the current context, which `cuCtxCreate` has made.
pub fn ctx_attach(pctx: Out<CUcontext>, flags: c_uint) -> Answer {
    require(!pctx.is_null() && flags == 0)?;
    pctx.set(Context::attach()?.handle() as CUcontext)
}

/// Deprecated: the last user who leaves a context destroys it.
pub fn ctx_detach(ctx: CUcontext) -> Answer {
    Ok(Context::from_handle(ctx as usize)?.detach()?)
}
