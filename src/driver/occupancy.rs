//! Occupancy: how many blocks a multiprocessor would hold.

use super::{Function, Result, launch::Config};

/// `cuOccupancyMaxActiveBlocksPerMultiprocessor`.
pub fn active_blocks(_function: &Function, _threads: u32, _dynamic_shared: u64) -> Result<u32> {
    todo!()
}
/// `cuOccupancyMaxPotentialBlockSize`: (grid, block); `shared` gives dynamic shared bytes for a block size.
pub fn potential_block_size(_function: &Function, _shared: &dyn Fn(u32) -> u64, _limit: u32) -> Result<(u32, u32)> {
    todo!()
}
/// `cuOccupancyAvailableDynamicSMemPerBlock`.
pub fn available_shared(_function: &Function, _blocks: u32, _threads: u32) -> Result<u64> {
    todo!()
}
/// `cuOccupancyMaxPotentialClusterSize`, `cuOccupancyMaxActiveClusters`.
pub fn potential_cluster(_function: &Function, _config: &Config) -> Result<u32> {
    todo!()
}
pub fn active_clusters(_function: &Function, _config: &Config) -> Result<u32> {
    todo!()
}
