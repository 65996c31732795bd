//! Contexts: life, current stacks, limits, context-local storage, sticky errors.

use std::sync::Arc;

use super::{Device, Handle, Result};

pub struct Context {
    handle: Handle,
}

/// Destructor of context-local storage: `(context, key, value)`.
pub type StorageDrop = extern "C" fn(Handle, usize, usize);

impl Context {
    /// The calling thread's, as it is (`cuCtxGetCurrent`).
    pub fn current_or_none() -> Option<Arc<Context>> {
        todo!()
    }
    /// The calling thread's: 201 if none, 709 if destroyed.
    pub fn current() -> Result<Arc<Context>> {
        todo!()
    }
    /// The calling thread's, and fit for work: also its sticky error, if it has one. Most calls begin with this.
    pub fn usable() -> Result<Arc<Context>> {
        todo!()
    }
    /// 201 for what is not a context.
    pub fn from_handle(_handle: Handle) -> Result<Arc<Context>> {
        todo!()
    }
    /// `cuCtxSetCurrent` (`None`: NULL), `cuCtxPushCurrent`, `cuCtxPopCurrent`.
    pub fn set_current(_context: Option<Arc<Context>>) -> Result<()> {
        todo!()
    }
    pub fn push(_context: Arc<Context>) -> Result<()> {
        todo!()
    }
    pub fn pop() -> Result<Arc<Context>> {
        todo!()
    }
    /// `cuCtxCreate`: becomes current.
    pub fn create(_device: &'static Device, _flags: u32) -> Result<Arc<Context>> {
        todo!()
    }
    /// `cuCtxDestroy`: waits for its work; invalid on primary contexts.
    pub fn destroy(self: &Arc<Context>) -> Result<()> {
        todo!()
    }
    /// `cuDevicePrimaryCtxRetain`, `…Release`, `…Reset`, `…GetState` (flags, active), `…SetFlags`.
    pub fn primary_retain(_device: &'static Device) -> Result<Arc<Context>> {
        todo!()
    }
    pub fn primary_release(_device: &'static Device) -> Result<()> {
        todo!()
    }
    pub fn primary_reset(_device: &'static Device) -> Result<()> {
        todo!()
    }
    pub fn primary_state(_device: &'static Device) -> (u32, bool) {
        todo!()
    }
    pub fn primary_set_flags(_device: &'static Device, _flags: u32) -> Result<()> {
        todo!()
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }
    /// `cuCtxGetId`.
    pub fn id(&self) -> u64 {
        todo!()
    }
    pub fn device(&self) -> &'static Device {
        todo!()
    }
    pub fn flags(&self) -> u32 {
        todo!()
    }
    pub fn set_flags(&self, _flags: u32) -> Result<()> {
        todo!()
    }
    pub fn api_version(&self) -> u32 {
        todo!()
    }
    /// Its sticky error.
    pub fn check(&self) -> Result<()> {
        todo!()
    }
    /// `cuCtxSynchronize`.
    pub fn synchronize(&self) -> Result<()> {
        todo!()
    }
    /// `CUlimit` by number.
    pub fn limit(&self, _which: u32) -> Result<u64> {
        todo!()
    }
    pub fn set_limit(&self, _which: u32, _value: u64) -> Result<()> {
        todo!()
    }
    pub fn cache_config(&self) -> u32 {
        todo!()
    }
    pub fn set_cache_config(&self, _config: u32) -> Result<()> {
        todo!()
    }
    pub fn shared_config(&self) -> u32 {
        todo!()
    }
    pub fn set_shared_config(&self, _config: u32) -> Result<()> {
        todo!()
    }
    /// `(least, greatest)`.
    pub fn priority_range() -> (i32, i32) {
        todo!()
    }
    pub fn enable_peer(&self, _peer: &Arc<Context>, _flags: u32) -> Result<()> {
        todo!()
    }
    pub fn disable_peer(&self, _peer: &Arc<Context>) -> Result<()> {
        todo!()
    }
    /// `(free, total)`.
    pub fn memory_info(&self) -> (u64, u64) {
        todo!()
    }
    /// Context-local storage of the private tables (`put`, `delete`, `get`): a few nanoseconds.
    pub fn storage_put(&self, _key: usize, _value: usize, _drop: Option<StorageDrop>) {
        todo!()
    }
    pub fn storage_delete(&self, _key: usize) -> Result<()> {
        todo!()
    }
    pub fn storage_get(&self, _key: usize) -> Option<usize> {
        todo!()
    }
}
