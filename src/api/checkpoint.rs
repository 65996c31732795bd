//! Checkpointing: this process locked, checkpointed, restored, unlocked.
//!
//! The stages and what waits for them are in `driver/process/checkpoint.rs`. Only the calling process can be named: any
//! other number is not a CUDA process of ours.

use super::call::{Answer, Out, require};
use super::types::*;
use crate::driver::{self, checkpoint};
use std::time::Duration;

/// Only a process can lock its own calls here: nobody listens for others.
fn own(pid: c_int) -> Answer {
    require(pid > 0)?;
    if pid.unsigned_abs() == std::process::id() {
        return match driver::is_initialised() {
            true => Ok(()),
            false => Err(CUresult::CUDA_ERROR_NOT_INITIALIZED),
        };
    }
    // SAFETY: signal 0 only asks whether there is such a process.
    require(unsafe { libc::kill(pid, 0) } == 0)?;
    tracing::warn!(target: "cuda::api", "cuCheckpoint*: process {pid}: only the calling process can be locked here");
    Err(CUresult::CUDA_ERROR_NOT_SUPPORTED)
}

/// No thread of its own brings memory back.
pub fn checkpoint_process_get_restore_thread_id(pid: c_int, tid: Out<c_int>) -> Answer {
    tid.required()?;
    own(pid)?;
    tracing::warn!(target: "cuda::api", "cuCheckpointProcessGetRestoreThreadId: there is no thread for it");
    Err(CUresult::CUDA_ERROR_NOT_SUPPORTED)
}

pub fn checkpoint_process_get_state(pid: c_int, state: Out<CUprocessState>) -> Answer {
    state.required()?;
    own(pid)?;
    state.set(CUprocessState::from_raw(checkpoint::state() as u32))
}

pub fn checkpoint_process_lock(pid: c_int, args: Out<CUcheckpointLockArgs>) -> Answer {
    own(pid)?;
    let mut limit = None;
    if !args.is_null() {
        let args = args.get_at(0)?;
        require(args.reserved0 == 0 && args.reserved1.iter().all(|word| *word == 0))?;
        limit = (args.timeoutMs > 0).then(|| Duration::from_millis(args.timeoutMs.into()));
    }
    Ok(checkpoint::lock(limit)?)
}

/// The calling process cannot be checkpointed to storage of its own choice (manual).
pub fn checkpoint_process_checkpoint(pid: c_int, args: Out<CUcheckpointCheckpointArgs>) -> Answer {
    own(pid)?;
    if !args.is_null() {
        let args = args.get_at(0)?;
        require(args.reserved.iter().all(|word| *word == 0))?;
        custom_storage(args.customStorageInfo_out)?;
    }
    Ok(checkpoint::checkpoint()?)
}

fn custom_storage(wanted: *mut *mut CUcheckpointCustomStorageInfo) -> Answer {
    match wanted.is_null() {
        true => Ok(()),
        false => Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
    }
}

pub fn checkpoint_process_restore(pid: c_int, args: Out<CUcheckpointRestoreArgs>) -> Answer {
    own(pid)?;
    let mut pairs = Vec::new();
    if !args.is_null() {
        let args = args.get_at(0)?;
        custom_storage(args.customStorageInfo_out)?;
        require(args.gpuPairsCount == 0 || !args.gpuPairs.is_null())?;
        // SAFETY: the caller's array of as many pairs.
        let list = unsafe { Out::from_c(args.gpuPairs) };
        for index in 0..args.gpuPairsCount as usize {
            let pair = list.get_at(index)?;
            let plain = |uuid: CUuuid| uuid.bytes.map(|byte| byte as u8);
            pairs.push((plain(pair.oldUuid), plain(pair.newUuid)));
        }
    }
    Ok(checkpoint::restore(&pairs)?)
}

/// No operation here is left open: there is no custom storage.
pub fn checkpoint_operation_complete(handle: CUcheckpointOperationHandle) -> Answer {
    let _ = handle;
    Err(CUresult::CUDA_ERROR_INVALID_VALUE)
}

pub fn checkpoint_process_unlock(pid: c_int, args: Out<CUcheckpointUnlockArgs>) -> Answer {
    own(pid)?;
    if !args.is_null() {
        require(args.get_at(0)?.reserved.iter().all(|word| *word == 0))?;
    }
    Ok(checkpoint::unlock()?)
}
