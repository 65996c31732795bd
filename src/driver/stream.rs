//! Streams: queues with CUDA's order.

use std::sync::Arc;

use super::{Context, Event, Handle, Result};

pub struct Stream {
    handle: Handle,
}

/// `cuLaunchHostFunc`: `(function, user data)`; `cuStreamAddCallback`: `(stream handle, CUresult, user data)`.
pub type HostFunction = extern "C" fn(usize);
pub type Callback = extern "C" fn(Handle, u32, usize);

impl Stream {
    /// `cuStreamCreateWithPriority`: flags 0 or 1 (non-blocking).
    pub fn create(_flags: u32, _priority: i32) -> Result<Arc<Stream>> {
        todo!()
    }
    /// A `CUstream` as a call was given it: 0 is the legacy default stream, or the thread's own when `per_thread` (the
    /// `_ptsz` entry points); 1 and 2 are those two by name. 400 for what is not a stream; the context's sticky error.
    pub fn resolve(_handle: Handle, _per_thread: bool) -> Result<Arc<Stream>> {
        todo!()
    }
    pub fn handle(&self) -> Handle {
        self.handle
    }
    pub fn id(&self) -> u64 {
        todo!()
    }
    pub fn flags(&self) -> u32 {
        todo!()
    }
    pub fn priority(&self) -> i32 {
        todo!()
    }
    pub fn context(&self) -> Result<Arc<Context>> {
        todo!()
    }
    /// Lets queued work finish (400 for the default streams).
    pub fn destroy(self: &Arc<Stream>) -> Result<()> {
        todo!()
    }
    pub fn synchronize(self: &Arc<Stream>) -> Result<()> {
        todo!()
    }
    /// 600 while there is work.
    pub fn query(self: &Arc<Stream>) -> Result<()> {
        todo!()
    }
    pub fn wait_event(self: &Arc<Stream>, _event: &Arc<Event>) -> Result<()> {
        todo!()
    }
    pub fn host_function(self: &Arc<Stream>, _function: HostFunction, _data: usize) -> Result<()> {
        todo!()
    }
    pub fn callback(self: &Arc<Stream>, _callback: Callback, _data: usize) -> Result<()> {
        todo!()
    }
    /// `cuStreamWriteValue32/64` and `cuStreamWaitValue32/64` (`flags`: `CUstreamWaitValue_flags`).
    pub fn write_value(self: &Arc<Stream>, _address: u64, _bytes: u32, _value: u64) -> Result<()> {
        todo!()
    }
    pub fn wait_value(self: &Arc<Stream>, _address: u64, _bytes: u32, _value: u64, _flags: u32) -> Result<()> {
        todo!()
    }
}
