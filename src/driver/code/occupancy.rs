//! Occupancy: how many blocks a multiprocessor would hold (CUDA programming guide, "Multiprocessor Level"). Cooperative
//! launches are held to it, and programs size their grids by it.

use crate::driver::profile::{Profile, REGISTERS, SHARED_PER_BLOCK, WARP, multiprocessors};
use crate::driver::{Error, Function, Result, launch::Config};

/// Registers are given to warps in such portions, and each of so many parts of a multiprocessor has its own.
const REGISTER_PORTION: u32 = 256;
const PARTS: u32 = 4;

/// Shared memory is given to blocks in such portions.
fn shared_portion(profile: &Profile) -> u64 {
    if profile.capability.0 >= 8 { 128 } else { 256 }
}

/// What is set aside for shared memory when so much is wanted.
fn set_aside(profile: &Profile, wanted: u64) -> u64 {
    let bytes = profile.carveouts.iter().map(|kib| u64::from(*kib) << 10);
    bytes
        .filter(|bytes| *bytes >= wanted)
        .min()
        .unwrap_or(profile.shared_per_multiprocessor.into())
}

/// What the function would like to be set aside (`CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`).
fn preferred(function: &Function, profile: &Profile) -> u64 {
    let all = u64::from(profile.shared_per_multiprocessor);
    match u64::try_from(function.carveout()) {
        Ok(percent) => set_aside(profile, percent * all / 100),
        Err(_) => all,
    }
}

/// `cuOccupancyMaxActiveBlocksPerMultiprocessor`: 0 when a block does not fit at all.
pub fn active_blocks(function: &Function, threads: u32, dynamic_shared: u64) -> Result<u32> {
    if threads == 0 {
        return Err(Error::InvalidValue);
    }
    let profile = function.device().profile();
    let lowered = function.lowered()?;
    let shared = u64::from(lowered.shared_bytes).saturating_add(dynamic_shared);
    if threads > function.max_threads()
        || shared > u64::from(profile.shared_per_block_optin)
        || dynamic_shared > u64::from(function.max_dynamic_shared(0)?)
    {
        return Ok(0);
    }
    let warps = threads.div_ceil(WARP);
    let by_warps = profile.threads_per_multiprocessor / WARP / warps;
    let for_warp = (function.registers() * WARP).next_multiple_of(REGISTER_PORTION);
    let by_registers = match for_warp * warps.next_multiple_of(PARTS) {
        more if more > REGISTERS => 0,
        _ => REGISTERS / PARTS / for_warp * PARTS / warps,
    };
    let taken = shared + u64::from(profile.shared_reserved_per_block);
    let by_shared = match taken.next_multiple_of(shared_portion(profile)) {
        0 => u32::MAX,
        taken => {
            // A preference counts as long as a block has room in it.
            let there = match preferred(function, profile) {
                preferred if preferred >= taken => preferred,
                _ => set_aside(profile, taken),
            };
            (there / taken) as u32
        }
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
    Ok((best.1 * multiprocessors(), best.2))
}

/// `cuOccupancyAvailableDynamicSMemPerBlock`: what each of so many blocks could have, within what the function may ask for.
pub fn available_shared(function: &Function, blocks: u32, threads: u32) -> Result<u64> {
    if blocks == 0 || threads == 0 || active_blocks(function, threads, 0)? < blocks {
        return Err(Error::InvalidValue);
    }
    let profile = function.device().profile();
    let (fixed, most) = (function.lowered()?.shared_bytes, function.max_dynamic_shared(0)?);
    let reserved = u64::from(profile.shared_reserved_per_block);
    let limit = if most + fixed > SHARED_PER_BLOCK {
        profile.shared_per_block_optin
    } else {
        SHARED_PER_BLOCK
    };
    let limit = u64::from(limit) + reserved;
    // A block that is alone need not mind the preference.
    let there = match blocks {
        1 => limit,
        _ => set_aside(profile, preferred(function, profile).max(1)),
    };
    let portion = shared_portion(profile);
    let each = (there / u64::from(blocks) / portion * portion).min(limit);
    Ok(each.saturating_sub(u64::from(fixed) + reserved).min(most.into()))
}

/// `cuOccupancyMaxPotentialClusterSize`: that of the function, or the largest; the configuration's is of no matter.
pub fn potential_cluster(function: &Function, config: &Config) -> Result<u32> {
    require_clusters(function)?;
    if let Some(required) = function.required_cluster() {
        return Ok(required.iter().product());
    }
    match blocks_of(function, config)? {
        0 => Err(Error::InvalidValue),
        _ => Ok(function.max_cluster(config.portable_cluster)),
    }
}

/// `cuOccupancyMaxActiveClusters`: a cluster's size is given, or the function's own.
pub fn active_clusters(function: &Function, config: &Config) -> Result<u32> {
    require_clusters(function)?;
    let cluster = match (config.cluster, function.required_cluster()) {
        ([0, 0, 0], None) => return Err(Error::InvalidClusterSize),
        ([0, 0, 0], Some(required)) => required,
        (asked, Some(required)) if asked != required => return Err(Error::InvalidClusterSize),
        (asked, _) => asked,
    };
    let size = cluster
        .iter()
        .try_fold(1_u32, |product, size| product.checked_mul(*size));
    let most = function.max_cluster(config.portable_cluster);
    let size = size
        .filter(|size| (1..=most).contains(size))
        .ok_or(Error::InvalidClusterSize)?;
    Ok(blocks_of(function, config)? * multiprocessors() / size)
}

/// Blocks of a configuration that a multiprocessor holds.
fn blocks_of(function: &Function, config: &Config) -> Result<u32> {
    let threads = config
        .block
        .iter()
        .try_fold(1_u32, |product, size| product.checked_mul(*size));
    active_blocks(
        function,
        threads.ok_or(Error::InvalidValue)?,
        config.dynamic_shared.into(),
    )
}

fn require_clusters(function: &Function) -> Result<()> {
    match function.device().profile().clusters {
        true => Ok(()),
        false => Err(Error::NotSupported),
    }
}
