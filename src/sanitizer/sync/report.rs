//! What is said of misuse.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::program::BarrierOp;
use crate::simt::Site;

/// What is wrong. Of two sides the first is where the finding is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Lanes of one warp come to a barrier at two instructions.
    Parted {
        barrier: u32,
    },
    /// Threads of a warp are not at the barrier: they have exited, or are elsewhere.
    PartOfWarp {
        barrier: u32,
        missing: BTreeSet<u32>,
        have_exited: bool,
    },
    /// Warps of a block meet at a barrier of all by different instructions.
    Meets {
        barrier: u32,
    },
    /// A barrier waits for more threads than there are.
    TooMany {
        barrier: u32,
        threads: u32,
        block: u32,
    },
    /// Those who meet wait for different numbers of threads; `None`: for all.
    Counts {
        barrier: u32,
        threads: Option<u32>,
        other: Option<u32>,
    },
    /// A reduction meets something else.
    Operations {
        barrier: u32,
        ops: [BarrierOp; 2],
    },
    /// A wait at the cluster's barrier of who has not arrived.
    ClusterNotArrived,
    /// An exit of who has arrived at the cluster's barrier, and not waited.
    ClusterNotAwaited,
    /// A mask that lacks who names it.
    NotMember {
        mask: u32,
    },
    /// Members that a mask names, and that never come.
    NeverCame {
        mask: u32,
        missing: BTreeSet<u32>,
    },
    /// Members name different masks.
    MasksDiffer {
        masks: [u32; 2],
    },
    /// A shuffle reads from lanes that take no part.
    Source {
        from: BTreeSet<u32>,
    },
    /// A vote without a mask by part of a warp.
    Vote,
    /// An mbarrier is initialised again.
    Reinitialised {
        offset: u64,
        missing: u32,
        expected: u32,
        bytes: i64,
        waiting: BTreeSet<u32>,
    },
    /// A wait with a token of a phase that is long over.
    OldToken {
        offset: u64,
        phases: u64,
    },
    /// The phase that a thread waits for, and the next one, went by.
    Overtaken {
        offset: u64,
    },
    /// A block ends, and bytes have not come, or came unannounced (below 0).
    BytesLeft {
        offset: u64,
        bytes: i64,
    },
    /// A block reaches into another one that may not have begun.
    PeerNotBegun {
        peer: [u32; 3],
    },
    /// Likewise one that may have ended.
    PeerEnded {
        peer: [u32; 3],
    },
    /// Copies that are in no group when their thread exits; `bulk`: of the other kind.
    NotCommitted {
        bulk: bool,
    },
    /// Copies for whose group nobody has waited.
    NotAwaited {
        bulk: bool,
    },
    /// An asynchronous operation that a barrier in memory counts, at which nobody has waited for it.
    BytesNotAwaited {
        offset: u64,
    },
    /// A product without a fence before it.
    ProductNotFenced,
    /// Registers of a product are touched before a wait.
    ProductTouched,
    ProductNotCommitted,
    ProductNotAwaited,
}

/// Threads at an instruction.
#[derive(Clone, Debug)]
pub struct Party {
    pub block: [u32; 3],
    /// By number in the block.
    pub threads: BTreeSet<u32>,
    pub site: Site,
}

#[derive(Clone, Debug)]
pub struct Misuse {
    pub kernel: Arc<str>,
    /// Of a block of the launch.
    pub shape: [u32; 3],
    pub wrong: Wrong,
    pub first: Party,
    pub second: Option<Party>,
}
