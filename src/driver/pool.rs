//! Stream-ordered allocation.

use std::sync::Arc;

use super::{Device, Handle, Result, Stream};

pub struct Pool {
    handle: Handle,
}

impl Pool {
    pub fn create(_device: &'static Device) -> Result<Arc<Pool>> {
        todo!()
    }
    pub fn from_handle(_handle: Handle) -> Result<Arc<Pool>> {
        todo!()
    }
    pub fn handle(&self) -> Handle {
        self.handle
    }
    pub fn destroy(self: &Arc<Pool>) -> Result<()> {
        todo!()
    }
    /// `cuMemAllocFromPoolAsync`; `cuMemAllocAsync` with the device's current pool.
    pub fn allocate(self: &Arc<Pool>, _bytes: u64, _stream: &Arc<Stream>) -> Result<u64> {
        todo!()
    }
    pub fn trim(&self, _keep: u64) -> Result<()> {
        todo!()
    }
    /// `CUmemPool_attribute` by number.
    pub fn attribute(&self, _which: u32) -> Result<u64> {
        todo!()
    }
    pub fn set_attribute(&self, _which: u32, _value: u64) -> Result<()> {
        todo!()
    }
    /// `CUmemAccess_flags` of a device.
    pub fn access(&self, _device: &Device) -> Result<u32> {
        todo!()
    }
    pub fn set_access(&self, _device: &Device, _flags: u32) -> Result<()> {
        todo!()
    }
}

/// `cuMemFreeAsync`.
pub fn free(_address: u64, _stream: &Arc<Stream>) -> Result<()> {
    todo!()
}
