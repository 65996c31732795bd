//! Events: points in streams.

use std::sync::Arc;

use super::{Handle, Result, Stream};

pub struct Event {
    handle: Handle,
}

impl Event {
    /// `cuEventCreate`: flags 1 blocking sync, 2 no timing, 4 interprocess.
    pub fn create(_flags: u32) -> Result<Arc<Event>> {
        todo!()
    }
    pub fn from_handle(_handle: Handle) -> Result<Arc<Event>> {
        todo!()
    }
    pub fn handle(&self) -> Handle {
        self.handle
    }
    pub fn record(self: &Arc<Event>, _stream: &Arc<Stream>) -> Result<()> {
        todo!()
    }
    pub fn query(&self) -> Result<()> {
        todo!()
    }
    pub fn synchronize(&self) -> Result<()> {
        todo!()
    }
    /// Milliseconds.
    pub fn elapsed(_start: &Event, _end: &Event) -> Result<f32> {
        todo!()
    }
    pub fn destroy(self: &Arc<Event>) -> Result<()> {
        todo!()
    }
}
