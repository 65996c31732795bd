//! Barriers in shared memory that count arrivals and bytes (PTX ISA, Parallel Synchronization and Communication
//! Instructions: mbarrier).

use std::fmt;

use crate::isa::types::{Ordering, Scope};
use crate::isa::words::{Words, opcode};

/// What stands behind an operation is its registers in the representation; the address of the barrier is the one
/// address that each but `pending_count` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `count`
    Init { layout: Layout },
    /// None.
    Invalidate,
    /// → predicate
    CheckLayout { layout: Layout },
    /// `expect_tx`, `complete_tx`: bytes (and blocks) →
    Transactions {
        complete: bool,
        scope: Scope,
        multicast: bool,
    },
    /// Count, or bytes if it `expects` (and blocks) → state
    Arrive(Arrive),
    /// State or parity → predicate (report's predicate, report's value); how long to wait is a hint, and left out.
    Wait(Wait),
    /// State → count
    PendingCount,
    /// `cp.async.mbarrier.arrive`: when the thread's copies so far are complete. None.
    CopiesArrive { increments: bool },
}

/// What an object can keep (PTX ISA, Layouts of the mbarrier object).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Layout { V0,
    /// Reports of copies, too; fewer arrivals.
    V1 }

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arrive {
    /// The thread is expected no more in later phases.
    pub drops: bool,
    /// Expects bytes before it arrives, once.
    pub expects: bool,
    /// `.noComplete`: the phase must not be over by this.
    pub completes: bool,
    /// At barriers of several blocks.
    pub multicast: bool,
    pub ordering: Ordering,
    pub scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wait {
    /// `try_wait`
    pub suspends: bool,
    /// By the parity of a phase; otherwise by the state that an arrival gave.
    pub parity: bool,
    /// Of the conditional phase; otherwise of the primary one.
    pub conditional: bool,
    pub ordering: Ordering,
    pub scope: Scope,
}

impl Layout {
    fn read(w: Words) -> Layout {
        match w.has("layout::v1") {
            true => Layout::V1,
            false => Layout::V0,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Layout::V0 => "layout::v0",
            Layout::V1 => "layout::v1",
        }
    }
}

/// Reads the lines of `mbarrier` and `cp.async.mbarrier.arrive`.
pub fn read(w: Words) -> Option<Op> {
    let scope = w.scope().unwrap_or(Scope::Cta);
    let multicast = w.has("multicast::cluster::32b");
    let arrival = w.has("arrive") || w.has("arrive_drop");
    Some(match () {
        () if w.mnemonic == "cp" => Op::CopiesArrive {
            increments: !w.has("noinc"),
        },
        () if w.has("init") => Op::Init {
            layout: Layout::read(w),
        },
        () if w.has("inval") => Op::Invalidate,
        () if w.has("check_layout") => Op::CheckLayout {
            layout: Layout::read(w),
        },
        () if w.has("pending_count") => Op::PendingCount,
        () if arrival => Op::Arrive(Arrive {
            drops: w.has("arrive_drop"),
            expects: w.has("expect_tx"),
            completes: !w.has("noComplete"),
            multicast,
            ordering: w.ordering().unwrap_or(Ordering::Release),
            scope,
        }),
        () if w.has("expect_tx") || w.has("complete_tx") => Op::Transactions {
            complete: w.has("complete_tx"),
            scope,
            multicast,
        },
        () if w.has("test_wait") || w.has("try_wait") => Op::Wait(Wait {
            suspends: w.has("try_wait"),
            parity: w.has("parity"),
            conditional: w.has("phase_type::conditional"),
            ordering: w.ordering().unwrap_or(Ordering::Acquire),
            scope,
        }),
        () => return None,
    })
}

impl Op {
    pub(super) fn takes_whole_warps(self) -> bool {
        false
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = "multicast::cluster::32b";
        match *self {
            Op::Init { layout } => opcode!(f, "mbarrier.init", layout.word()),
            Op::Invalidate => opcode!(f, "mbarrier.inval"),
            Op::CheckLayout { layout } => opcode!(f, "mbarrier.check_layout", layout.word()),
            Op::Transactions {
                complete,
                scope,
                multicast,
            } => {
                let name = if complete { "complete_tx" } else { "expect_tx" };
                opcode!(f, "mbarrier", name, "relaxed", scope, (multicast, several))
            }
            Op::Arrive(a) => {
                let name = if a.drops { "arrive_drop" } else { "arrive" };
                opcode!(
                    f,
                    "mbarrier",
                    name,
                    (a.expects, "expect_tx"),
                    (!a.completes, "noComplete"),
                    a.ordering,
                    a.scope,
                    (a.multicast, several)
                )
            }
            Op::Wait(wait) => {
                let name = if wait.suspends { "try_wait" } else { "test_wait" };
                opcode!(
                    f,
                    "mbarrier",
                    name,
                    (wait.parity, "parity"),
                    (wait.conditional, "phase_type::conditional"),
                    wait.ordering,
                    wait.scope
                )
            }
            Op::PendingCount => opcode!(f, "mbarrier.pending_count"),
            Op::CopiesArrive { increments } => opcode!(f, "cp.async.mbarrier.arrive", (!increments, "noinc")),
        }
    }
}
