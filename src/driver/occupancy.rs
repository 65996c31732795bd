//! Occupancy: how many blocks a multiprocessor would hold (CUDA programming guide, "Multiprocessor Level"). Cooperative
//! launches are held to it, and programs size their grids by it.
//!
//! Flows in: a function and a block's size. Flows out: numbers.

use super::profile::{MULTIPROCESSORS, REGISTERS, WARP};
use super::{Error, Function, Result, launch::Config};

/// `cuOccupancyMaxActiveBlocksPerMultiprocessor`: 0 when a block does not fit at all.
pub fn active_blocks(function: &Function, threads: u32, dynamic_shared: u64) -> Result<u32> {
    if threads == 0 {
        return Err(Error::InvalidValue);
    }
    let profile = function.device().profile();
    let lowered = function.lowered()?;
    let shared = u64::from(lowered.shared_bytes) + dynamic_shared;
    if threads > function.max_threads() || shared > u64::from(profile.shared_per_block_optin) {
        return Ok(0);
    }
    let warps = threads.div_ceil(WARP);
    let by_warps = profile.threads_per_multiprocessor / WARP / warps;
    let by_registers = REGISTERS / (function.registers() * warps * WARP);
    let reserved = shared + u64::from(profile.shared_reserved_per_block);
    let by_shared = match reserved {
        0 => u32::MAX,
        bytes => (u64::from(profile.shared_per_multiprocessor) / bytes) as u32,
    };
    let limits = [profile.blocks_per_multiprocessor, by_warps, by_registers, by_shared];
    Ok(limits.into_iter().min().unwrap_or(0))
}

/// `cuOccupancyMaxPotentialBlockSize`: (grid, block); `shared` gives dynamic shared bytes for a block size; `limit` 0 is
/// none.
pub fn potential_block_size(function: &Function, shared: &dyn Fn(u32) -> u64, limit: u32) -> Result<(u32, u32)> {
    let most = match limit {
        0 => function.max_threads(),
        limit => limit.min(function.max_threads()),
    };
    let mut best = (0, 0, 0);
    // From the largest down: of equals, the largest block.
    let mut threads = most.next_multiple_of(WARP);
    while threads > 0 {
        let block = threads.min(most);
        let blocks = active_blocks(function, block, shared(block))?;
        if blocks * block > best.0 {
            best = (blocks * block, blocks, block);
        }
        threads -= WARP;
    }
    Ok((best.1 * MULTIPROCESSORS, best.2))
}

/// `cuOccupancyAvailableDynamicSMemPerBlock`: what each of so many blocks could have.
pub fn available_shared(function: &Function, blocks: u32, threads: u32) -> Result<u64> {
    if blocks == 0 || threads == 0 || active_blocks(function, threads, 0)? < blocks {
        return Err(Error::InvalidValue);
    }
    let profile = function.device().profile();
    let fixed = u64::from(function.lowered()?.shared_bytes);
    let each = u64::from(profile.shared_per_multiprocessor / blocks);
    let each = each.saturating_sub(u64::from(profile.shared_reserved_per_block));
    let most = each.min(profile.shared_per_block_optin.into());
    Ok(most.saturating_sub(fixed) / 128 * 128)
}

/// `cuOccupancyMaxPotentialClusterSize`.
pub fn potential_cluster(function: &Function, config: &Config) -> Result<u32> {
    require_clusters(function)?;
    let threads = config.block.iter().product();
    match active_blocks(function, threads, config.dynamic_shared.into())? {
        0 => Err(Error::InvalidValue),
        _ => Ok(function.max_cluster(config.portable_cluster)),
    }
}

/// `cuOccupancyMaxActiveClusters`.
pub fn active_clusters(function: &Function, config: &Config) -> Result<u32> {
    require_clusters(function)?;
    let threads = config.block.iter().product();
    let blocks = active_blocks(function, threads, config.dynamic_shared.into())? * MULTIPROCESSORS;
    let cluster: u32 = config.cluster.iter().map(|size| (*size).max(1)).product();
    if cluster > function.max_cluster(config.portable_cluster) {
        return Err(Error::InvalidClusterSize);
    }
    Ok(blocks / cluster)
}

fn require_clusters(function: &Function) -> Result<()> {
    match function.device().profile().clusters {
        true => Ok(()),
        false => Err(Error::NotSupported),
    }
}
