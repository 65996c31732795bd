//! Limits and preferences of a context: `cuCtxSetLimit`, `cuCtxSetCacheConfig`.

use std::sync::atomic::Ordering;

use super::Context;
use super::heap::DEFAULT_HEAP;
use crate::driver::{Error, Result};

/// `CUlimit`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    StackSize,
    PrintfFifoSize,
    MallocHeapSize,
    RuntimeSyncDepth,
    RuntimePendingLaunchCount,
    MaxL2FetchGranularity,
    PersistingL2CacheSize,
    /// CUDA in graphics, which there is not: asked for, it is off (cuBLAS asks), and cannot be set.
    Graphics,
}

impl Limit {
    fn from_number(number: u32) -> Result<Limit> {
        use Limit::*;
        let all = [
            StackSize,
            PrintfFifoSize,
            MallocHeapSize,
            RuntimeSyncDepth,
            RuntimePendingLaunchCount,
            MaxL2FetchGranularity,
            PersistingL2CacheSize,
        ];
        match number {
            0..7 => Ok(all[number as usize]),
            // CIG_ENABLED, CIG_SHMEM_FALLBACK_ENABLED
            8 | 9 => Ok(Graphics),
            // SHMEM_SIZE, PER_BLOCK_MEMORY_SIZE
            7 | 10 => Err(Error::UnsupportedLimit),
            _ => Err(Error::InvalidValue),
        }
    }
}

/// More stack than this cannot be had for a lane.
const MOST_STACK: u64 = 512 << 10;

impl Context {
    /// `cuCtxGetLimit`.
    pub fn limit(&self, which: u32) -> Result<u64> {
        Ok(match Limit::from_number(which)? {
            Limit::StackSize => self.shared.stack_limit.load(Ordering::Relaxed),
            Limit::PrintfFifoSize => self.shared.printer.capacity.load(Ordering::Relaxed),
            Limit::MallocHeapSize => self.shared.heap.limit.load(Ordering::Relaxed),
            Limit::RuntimeSyncDepth => self.runtime_limits[0].load(Ordering::Relaxed),
            Limit::RuntimePendingLaunchCount => self.runtime_limits[1].load(Ordering::Relaxed),
            Limit::MaxL2FetchGranularity => self.runtime_limits[2].load(Ordering::Relaxed),
            Limit::PersistingL2CacheSize => self.runtime_limits[3].load(Ordering::Relaxed),
            Limit::Graphics => 0,
        })
    }

    /// `cuCtxSetLimit`: values are brought into the range that can be had.
    pub fn set_limit(&self, which: u32, value: u64) -> Result<()> {
        match Limit::from_number(which)? {
            Limit::StackSize if value > MOST_STACK => return Err(Error::InvalidValue),
            Limit::StackSize => self
                .shared
                .stack_limit
                .store(value.next_multiple_of(16), Ordering::Relaxed),
            Limit::PrintfFifoSize => {
                let value = value.clamp(4096, 1 << 30);
                self.shared.printer.capacity.store(value, Ordering::Relaxed);
            }
            // Manual: only before the first kernel that uses the heap.
            Limit::MallocHeapSize if self.shared.heap.is_used() => return Err(Error::InvalidValue),
            Limit::MallocHeapSize if value > self.device.total_memory() => return Err(Error::OutOfMemory),
            Limit::MallocHeapSize => {
                let value = value.max(DEFAULT_HEAP / 8);
                self.shared.heap.limit.store(value, Ordering::Relaxed);
            }
            Limit::RuntimeSyncDepth => self.runtime_limits[0].store(value, Ordering::Relaxed),
            Limit::RuntimePendingLaunchCount => self.runtime_limits[1].store(value, Ordering::Relaxed),
            Limit::MaxL2FetchGranularity if value > 128 => return Err(Error::InvalidValue),
            Limit::MaxL2FetchGranularity => self.runtime_limits[2].store(value, Ordering::Relaxed),
            // No such cache: the most that can be set aside is nothing.
            Limit::PersistingL2CacheSize => {}
            Limit::Graphics => return Err(Error::UnsupportedLimit),
        }
        Ok(())
    }

    pub fn cache_config(&self) -> u32 {
        self.cache_config.load(Ordering::Relaxed)
    }

    /// `cuCtxSetCacheConfig`: a preference, kept and without effect.
    pub fn set_cache_config(&self, config: u32) -> Result<()> {
        if config > 3 {
            return Err(Error::InvalidValue);
        }
        self.cache_config.store(config, Ordering::Relaxed);
        Ok(())
    }

    pub fn shared_config(&self) -> u32 {
        self.shared_config.load(Ordering::Relaxed)
    }

    /// `cuCtxSetSharedMemConfig`: a preference, too.
    pub fn set_shared_config(&self, config: u32) -> Result<()> {
        if config > 2 {
            return Err(Error::InvalidValue);
        }
        self.shared_config.store(config, Ordering::Relaxed);
        Ok(())
    }
}
