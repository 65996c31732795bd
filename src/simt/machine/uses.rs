//! How instructions that synchronise are used: what only somebody asks who looks for misuse. What they put in order is told
//! apart, by the other events of [`super::observe::SyncEvent`].

use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::program::BarrierOp;
use crate::ptx::ast::Span;

use super::observe::{Mbarrier, MbarrierEvent};

/// Masks are of the bundle's warps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// Lanes come to a barrier of the block.
    Barrier {
        barrier: u32,
        lanes: [u32; MAX_WARPS],
        op: BarrierOp,
        /// All threads of a warp are to come together.
        aligned: bool,
        /// How many threads the instruction waits for; `None`: for all of the block.
        threads: Option<u32>,
    },
    /// Lanes of one warp stand at a `.sync` instruction, whose members each of them names.
    Members {
        warp: usize,
        lanes: u32,
        named: [u32; WARP],
        /// Lanes that have not exited.
        live: u32,
        /// They go on now, whoever is with them; otherwise they have just come.
        goes_on: bool,
        /// Where one of those is that they go on without.
        elsewhere: Option<Elsewhere>,
    },
    /// Lanes of one warp read registers of each other.
    Shuffle {
        warp: usize,
        lanes: u32,
        /// By lane, who takes part with it.
        partners: [u32; WARP],
        /// By lane, whose register it reads; `None`: its own, for want of another one in range.
        sources: [Option<u8>; WARP],
    },
    /// A vote without a mask of members.
    Vote { warp: usize, lanes: u32, live: u32 },
    /// Lanes wait at the barrier of the cluster without having arrived there.
    ClusterAwait { lanes: [u32; MAX_WARPS] },
    /// Lanes of one warp do something to barriers in memory.
    Mbarrier {
        warp: usize,
        lanes: u32,
        addresses: [u64; WARP],
        /// By lane, the object as the lane found it; when it looks, as it is then. `None`: there was none.
        found: Box<[Option<Mbarrier>; WARP]>,
        /// By lane, the first operand: a count, bytes, a phase.
        values: Box<[u64; WARP]>,
        what: MbarrierEvent,
    },
    /// A warp does something with products of `wgmma`.
    Products { warp: usize, what: ProductEvent },
    /// Lanes exit.
    Exit { lanes: [u32; MAX_WARPS] },
}

/// Lanes of a warp that are at another instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    pub lanes: u32,
    /// The address of the function, as a number, and where its text has the instruction.
    pub function: usize,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductEvent {
    Fence,
    /// A product begins; `late`: nobody touches its sum before a wait.
    Multiply {
        late: bool,
    },
    Commit,
    /// For all groups but so many.
    Wait(u64),
}
