//! Shared memory of a cluster (PTX ISA, Shared State Space; Cluster of Cooperative Thread Arrays).
//!
//! The windows of a cluster's blocks lie [`STRIDE`] bytes apart, in the order of their ranks. A 32-bit address of the
//! shared space is an offset into all of them: the rank stands in the bits above 24, as hardware has it (programs
//! clear bit 24 to reach the first block of a pair). The generic address is the same offset, behind the first
//! window's start. A block without a cluster has rank 0, and its addresses are offsets into its own window.
//!
//! All blocks of a cluster run on one thread, so accesses to their windows need no care for each other.

use std::ops::Range;

use super::context::BlockEnv;

/// Bytes from one block's window to the next one's.
pub const STRIDE: u64 = 1 << RANK;
/// The bit from which on an address holds the rank.
const RANK: u32 = 24;

/// Why a block's shared memory cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// No block of the cluster has such a rank, or its window ends before.
    Outside,
    /// All threads of the block have exited.
    Gone,
}

impl<G: ?Sized> BlockEnv<G> {
    /// The 32-bit address at which the block's own window starts.
    #[inline(always)]
    pub fn shared_start(&self) -> u32 {
        self.rank << RANK
    }

    /// Where the first window of the cluster starts: the difference between a generic address and one of the shared
    /// space.
    #[inline(always)]
    pub fn cluster_shared(&self) -> u64 {
        self.shared - u64::from(self.shared_start())
    }

    /// What surely lies in memory of the cluster's own: from its first window to the end of this block's local memory.
    pub fn own_memory(&self) -> Range<u64> {
        self.cluster_shared()..self.local + self.local_bytes
    }

    /// The range of a window of the cluster that an address of the shared space names, as the process knows it.
    ///
    /// # Errors
    /// It lies in no window, or the block has ended.
    pub fn in_cluster(&self, address: u32, bytes: u64) -> Result<u64, Unreachable> {
        let (rank, offset) = (address >> RANK, u64::from(address) % STRIDE);
        let rest = u64::from(self.shared_bytes).checked_sub(offset);
        if rank >= self.peers || rest.is_none_or(|rest| bytes > rest) {
            Err(Unreachable::Outside)
        } else if self.gone >> rank & 1 == 1 {
            Err(Unreachable::Gone)
        } else {
            Ok(self.cluster_shared() + u64::from(address))
        }
    }

    /// The address of the shared space that a generic address stands for; `None`: it is in no window of the cluster.
    pub fn shared_address(&self, generic: u64) -> Option<u32> {
        let address = u32::try_from(generic.wrapping_sub(self.cluster_shared())).ok()?;
        let within = address >> RANK < self.peers && u64::from(address) % STRIDE < u64::from(self.shared_window);
        within.then_some(address)
    }
}

/// The rank of the block in whose window an address of the shared space lies.
pub fn rank_of(address: u32) -> u32 {
    address >> RANK
}

/// The same place in the window of the block of that rank. One beyond all ranks gives an address in no window.
pub fn address_in(address: u32, rank: u32) -> u32 {
    (address % (1 << RANK)) | (rank.min(u32::MAX >> RANK) << RANK)
}
