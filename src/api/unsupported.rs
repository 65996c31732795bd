//! Calls that this machine cannot serve: each says so with `CUDA_ERROR_NOT_SUPPORTED` and one line in the log.
//!
//! A line of the table whose body is in here is listed as refused (`margay info --api`), and the body gets the symbol in
//! place of the arguments.

use super::call::Answer;
use super::types::CUresult;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ffi::c_void;

/// `CUeglFrame` of `cudaEGL.h`: passed by value, never looked at.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EglFrame([u64; 8]);

/// `CUeglStreamConnection` of `cudaEGL.h`.
pub type EglStreamConnection = *mut c_void;

fn refuse(symbol: &'static str, why: &str) -> Answer {
    static TOLD: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    if TOLD.lock().insert(symbol) {
        tracing::warn!(target: "cuda::api", "{symbol}: not supported: {why}");
    }
    Err(CUresult::CUDA_ERROR_NOT_SUPPORTED)
}

pub fn opengl(symbol: &'static str) -> Answer {
    refuse(symbol, "no device here shares memory with OpenGL")
}

pub fn egl(symbol: &'static str) -> Answer {
    refuse(symbol, "no device here shares memory with EGL")
}

pub fn vdpau(symbol: &'static str) -> Answer {
    refuse(symbol, "no device here shares memory with VDPAU")
}

pub fn graphics(symbol: &'static str) -> Answer {
    refuse(symbol, "no graphics library shares memory with a device here")
}

/// CUDA in graphics: `CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED` and the one for Vulkan say 0.
pub fn cig(symbol: &'static str) -> Answer {
    refuse(symbol, "no graphics library runs CUDA work here")
}

pub fn nvsci(symbol: &'static str) -> Answer {
    refuse(symbol, "there is no NvSciSync here")
}

/// The first versions of many calls (before CUDA 3.2) have device pointers of 32 bits.
pub fn narrow(symbol: &'static str) -> Answer {
    refuse(
        symbol,
        "device addresses have 64 bits, and this version of the call takes 32: use version 2",
    )
}

/// No device here is connected to those of other machines: `CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED` and
/// `…_LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES` say 0. Logical endpoints are of the process that makes them.
pub fn fabric(symbol: &'static str) -> Answer {
    refuse(
        symbol,
        "no device here is connected to those of other machines by a fabric",
    )
}

/// Deprecated since CUDA 11.0: profilers are told what to do on their command line.
pub fn profiler(symbol: &'static str) -> Answer {
    refuse(symbol, "no profiler reads its configuration by this call")
}

/// `CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED` says 0.
pub fn rdma(symbol: &'static str) -> Answer {
    refuse(symbol, "no peripheral writes to the memory of a device here")
}

/// Nothing here has a budget that it could be told of.
pub fn notification(symbol: &'static str) -> Answer {
    refuse(symbol, "no device here sends notifications")
}

/// `CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED` says 0.
pub fn sparse(symbol: &'static str) -> Answer {
    refuse(symbol, "arrays here are never sparse")
}
