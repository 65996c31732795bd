//! Occupancy: how many blocks a multiprocessor would hold.
//!
//! The computation is in `driver/code/occupancy.rs`.

use super::call::{Answer, In, Out, require};
use super::execution::{extended, find};
use super::types::*;
use crate::driver::{Context, occupancy};
use std::sync::Arc;

fn positive(number: c_int) -> Answer<u32> {
    u32::try_from(number)
        .ok()
        .filter(|number| *number > 0)
        .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
}

/// The one flag there is concerns caching of global memory in L1.
fn check_flags(flags: c_uint) -> Answer {
    require(CUoccupancy_flags::from_raw(flags).name().is_some())
}

pub fn occupancy_max_active_blocks_per_multiprocessor(
    _: &Arc<Context>,
    num_blocks: Out<c_int>,
    func: CUfunction,
    block_size: c_int,
    dynamic_smem_size: usize,
) -> Answer {
    num_blocks.required()?;
    let blocks = occupancy::active_blocks(&*find(func)?, positive(block_size)?, dynamic_smem_size as u64)?;
    num_blocks.set(blocks as c_int)
}

pub fn occupancy_max_active_blocks_per_multiprocessor_with_flags(
    context: &Arc<Context>,
    num_blocks: Out<c_int>,
    func: CUfunction,
    block_size: c_int,
    dynamic_smem_size: usize,
    flags: c_uint,
) -> Answer {
    check_flags(flags)?;
    occupancy_max_active_blocks_per_multiprocessor(context, num_blocks, func, block_size, dynamic_smem_size)
}

pub fn occupancy_max_potential_block_size(
    _: &Arc<Context>,
    min_grid_size: Out<c_int>,
    block_size: Out<c_int>,
    func: CUfunction,
    block_size_to_dynamic_smem_size: CUoccupancyB2DSize,
    dynamic_smem_size: usize,
    block_size_limit: c_int,
) -> Answer {
    require(!min_grid_size.is_null() && !block_size.is_null() && block_size_limit >= 0)?;
    let shared = |threads: u32| match block_size_to_dynamic_smem_size {
        // SAFETY: the caller's function, called as the manual says.
        Some(of) => unsafe { of(threads as c_int) as u64 },
        None => dynamic_smem_size as u64,
    };
    let (grid, block) = occupancy::potential_block_size(&*find(func)?, &shared, block_size_limit as u32)?;
    min_grid_size.set(grid as c_int)?;
    block_size.set(block as c_int)
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn occupancy_max_potential_block_size_with_flags(
    context: &Arc<Context>,
    min_grid_size: Out<c_int>,
    block_size: Out<c_int>,
    func: CUfunction,
    block_size_to_dynamic_smem_size: CUoccupancyB2DSize,
    dynamic_smem_size: usize,
    block_size_limit: c_int,
    flags: c_uint,
) -> Answer {
    check_flags(flags)?;
    occupancy_max_potential_block_size(
        context,
        min_grid_size,
        block_size,
        func,
        block_size_to_dynamic_smem_size,
        dynamic_smem_size,
        block_size_limit,
    )
}

pub fn occupancy_available_dynamic_smem_per_block(
    _: &Arc<Context>,
    dynamic_smem_size: Out<usize>,
    func: CUfunction,
    num_blocks: c_int,
    block_size: c_int,
) -> Answer {
    dynamic_smem_size.required()?;
    let bytes = occupancy::available_shared(&*find(func)?, positive(num_blocks)?, positive(block_size)?)?;
    dynamic_smem_size.set(bytes as usize)
}

pub fn occupancy_max_potential_cluster_size(
    _: &Arc<Context>,
    cluster_size: Out<c_int>,
    func: CUfunction,
    config: In<CUlaunchConfig>,
) -> Answer {
    cluster_size.required()?;
    let config = extended(&config.get()?)?.config;
    cluster_size.set(occupancy::potential_cluster(&*find(func)?, &config)? as c_int)
}

pub fn occupancy_max_active_clusters(
    _: &Arc<Context>,
    num_clusters: Out<c_int>,
    func: CUfunction,
    config: In<CUlaunchConfig>,
) -> Answer {
    num_clusters.required()?;
    let config = extended(&config.get()?)?.config;
    num_clusters.set(occupancy::active_clusters(&*find(func)?, &config)? as c_int)
}
