//! Devices: what `cuDevice*` answers.

use std::sync::Arc;

use super::{Context, Pool, Result};

pub struct Device {
    ordinal: u32,
}

impl Device {
    /// `cuDeviceGetCount`: those that `MARGAY_DEVICES` makes and `CUDA_VISIBLE_DEVICES` shows.
    pub fn count() -> u32 {
        todo!()
    }
    /// `cuDeviceGet`; also the validation of a `CUdevice`. Error 101.
    pub fn get(_ordinal: i32) -> Result<&'static Device> {
        todo!()
    }
    pub fn all() -> &'static [Device] {
        todo!()
    }
    /// `cuDeviceGetByPCIBusId`.
    pub fn by_pci_bus_id(_text: &str) -> Result<&'static Device> {
        todo!()
    }
    pub fn ordinal(&self) -> i32 {
        self.ordinal as i32
    }
    pub fn name(&self) -> &str {
        todo!()
    }
    /// Any `CUdevice_attribute`: 0 for numbers that mean nothing (start-up of cudart fails on an error).
    pub fn attribute(&self, _number: i32) -> i32 {
        todo!()
    }
    pub fn capability(&self) -> (u32, u32) {
        todo!()
    }
    pub fn uuid(&self) -> [u8; 16] {
        todo!()
    }
    pub fn total_memory(&self) -> u64 {
        todo!()
    }
    /// `dddd:bb:dd.0`
    pub fn pci_bus_id(&self) -> String {
        todo!()
    }
    /// The primary context: its handle exists before it is retained.
    pub fn primary(&self) -> &Arc<Context> {
        todo!()
    }
    pub fn can_access_peer(&self, _peer: &Device) -> bool {
        todo!()
    }
    /// `cuDeviceGetP2PAttribute`.
    pub fn p2p_attribute(&self, _attribute: u32, _peer: &Device) -> Result<i32> {
        todo!()
    }
    pub fn default_pool(&self) -> Arc<Pool> {
        todo!()
    }
    pub fn pool(&self) -> Arc<Pool> {
        todo!()
    }
    pub fn set_pool(&self, _pool: &Arc<Pool>) -> Result<()> {
        todo!()
    }
}
