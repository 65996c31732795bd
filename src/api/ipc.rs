//! Sharing between processes: memory and events by handle.
//!
//! The work is in `driver/sharing/ipc.rs` (memory) and `interprocess.rs` (events).

use super::call::{Answer, Out};
use super::types::*;
use crate::driver::{Context, Event, ipc};
use std::sync::Arc;

/// C's `char` may be signed.
fn bytes(reserved: [c_char; 64]) -> [u8; 64] {
    reserved.map(|byte| byte as u8)
}

pub fn ipc_get_event_handle(_: &Arc<Context>, handle: Out<CUipcEventHandle>, event: CUevent) -> Answer {
    handle.required()?;
    // Programs look for zeros there when it has failed.
    handle.set(CUipcEventHandle { reserved: [0; 64] })?;
    let reserved = Event::from_handle(event as usize)?.ipc_handle()?;
    handle.set(CUipcEventHandle {
        reserved: reserved.map(|byte| byte as c_char),
    })
}

pub fn ipc_open_event_handle(_: &Arc<Context>, event: Out<CUevent>, handle: CUipcEventHandle) -> Answer {
    event.required()?;
    event.set(Event::open_ipc(&bytes(handle.reserved))?.handle() as CUevent)
}

pub fn ipc_get_mem_handle(_: &Arc<Context>, handle: Out<CUipcMemHandle>, dptr: CUdeviceptr) -> Answer {
    handle.required()?;
    let reserved = ipc::memory_handle(dptr)?;
    handle.set(CUipcMemHandle {
        reserved: reserved.map(|byte| byte as c_char),
    })
}

/// Both versions: the flag of the first one had to be given, too. All devices share one memory, so that there is no peer
/// access to be enabled.
pub fn ipc_open_mem_handle(_: &Arc<Context>, dptr: Out<CUdeviceptr>, handle: CUipcMemHandle, flags: c_uint) -> Answer {
    dptr.required()?;
    if CUipcMem_flags::from_raw(flags) != CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    dptr.set(ipc::open_memory(&bytes(handle.reserved))?)
}

pub fn ipc_close_mem_handle(_: &Arc<Context>, dptr: CUdeviceptr) -> Answer {
    Ok(ipc::close_memory(dptr)?)
}
