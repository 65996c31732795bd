//! Memory: what `cuMemAlloc*`, `cuMemHost*` and `cuPointerGetAttribute` do.

use super::{Handle, Result};

/// `cuMemAlloc`.
pub fn device(_bytes: u64) -> Result<u64> {
    todo!()
}
/// `cuMemAllocPitch`: (address, pitch).
pub fn pitched(_width: u64, _height: u64, _element: u32) -> Result<(u64, u64)> {
    todo!()
}
/// `cuMemAllocManaged`: flags 1 global, 2 host, 4 single.
pub fn managed(_bytes: u64, _flags: u32) -> Result<u64> {
    todo!()
}
/// `cuMemFree`: 0 is nothing to free.
pub fn free(_address: u64) -> Result<()> {
    todo!()
}
/// `cuMemHostAlloc` (flags 0: `cuMemAllocHost`).
pub fn host(_bytes: u64, _flags: u32) -> Result<u64> {
    todo!()
}
pub fn free_host(_address: u64) -> Result<()> {
    todo!()
}
pub fn host_flags(_address: u64) -> Result<u32> {
    todo!()
}
/// `cuMemHostGetDevicePointer`.
pub fn host_device_pointer(_address: u64) -> Result<u64> {
    todo!()
}
pub fn register(_address: u64, _bytes: u64, _flags: u32) -> Result<()> {
    todo!()
}
pub fn unregister(_address: u64) -> Result<()> {
    todo!()
}
/// `cuMemGetAddressRange`: (start, bytes).
pub fn range(_address: u64) -> Result<(u64, u64)> {
    todo!()
}
/// `cuMemAdvise`, `cuMemPrefetchAsync`: only validated.
pub fn check_managed(_address: u64, _bytes: u64) -> Result<()> {
    todo!()
}

/// What is known of a pointer (`cuPointerGetAttribute`).
#[derive(Clone, Copy, Debug)]
pub struct Pointer {
    /// 0 when no context owns it.
    pub context: Handle,
    /// `CUmemorytype`: 1 host, 2 device, 3 array, 4 unified.
    pub memory_type: u32,
    pub device_pointer: u64,
    /// 0: the host cannot reach it (device memory).
    pub host_pointer: u64,
    pub buffer_id: u64,
    pub managed: bool,
    pub ordinal: i32,
    pub start: u64,
    pub bytes: u64,
    /// The pool it came from.
    pub pool: Handle,
    pub sync_memops: bool,
}

/// `None`: memory that the driver does not know (an ordinary host pointer).
pub fn pointer(_address: u64) -> Option<Pointer> {
    todo!()
}
