//! Copies, stores and reductions that go on without the thread (PTX ISA, Data Movement and Conversion Instructions:
//! cp.async.bulk, cp.reduce.async.bulk, st.async, red.async, st.bulk).

use std::fmt;

use crate::isa::operation::{AtomicOp, AtomicType, ReadModifyWrite};
use crate::isa::types::{Scope, Type};
use crate::isa::words::{Words, opcode};

/// What stands behind an operation is its addresses, and its registers in the representation. Cache policies are hints,
/// and left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// To, from (barrier); bytes (ignored bytes at the start, at the end), (blocks), (mask of bytes)
    Copy(Copy),
    /// To, from (barrier); bytes
    Reduce {
        route: Route,
        op: AtomicOp,
        ty: AtomicType,
        /// Subnormals of `f32` are kept.
        noftz: bool,
    },
    CommitGroup,
    /// Groups that may stay.
    WaitGroup {
        read: bool,
    },
    /// To, barrier; values
    Store {
        ty: Type,
        elements: u8,
    },
    /// To, barrier; value
    Update {
        op: AtomicOp,
        ty: AtomicType,
    },
    /// `st.async.release`, in global memory. To; value
    StoreGlobal {
        ty: Type,
        scope: Scope,
    },
    /// `red.async.release`, in global memory. To; value
    UpdateGlobal {
        op: AtomicOp,
        ty: AtomicType,
        scope: Scope,
    },
    /// `st.bulk`: zeros. To; bytes
    Clear,
}

/// From where to where, and thereby how the end is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Route {
    /// Into shared memory of this block or another one, which a barrier there tells.
    GlobalToShared,
    /// Into another block of the cluster, likewise.
    SharedToCluster,
    /// By a group.
    SharedToGlobal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Copy {
    pub route: Route,
    /// To the same place in several blocks.
    pub multicast: bool,
    /// `.ignore_oob`: some bytes at the ends may not be there.
    pub ignores_ends: bool,
    /// `.cp_mask`: some bytes of each sixteen.
    pub masked: bool,
    pub report: Option<Pattern>,
}

/// What data a copy reports (PTX ISA, Report Mechanisms for Asynchronous Copy Operations).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// An element of each 16 bytes is -0 in a format of so many bits.
    NegativeZero { bits: u8 },
    /// Any byte is 0xff.
    Ones,
}

impl Pattern {
    /// What the words of an opcode ask for.
    pub fn read(w: Words) -> Option<Pattern> {
        w.find(|word| {
            Some(match word.strip_prefix("mbarrier::report::validity::")? {
                "per_16bytes::8" => Pattern::NegativeZero { bits: 4 },
                "per_16bytes::80" => Pattern::NegativeZero { bits: 8 },
                "per_16bytes::8000" => Pattern::NegativeZero { bits: 16 },
                "per_16bytes::80000000" => Pattern::NegativeZero { bits: 32 },
                "per_element::ff" => Pattern::Ones,
                _ => return None,
            })
        })
    }

    pub fn word(self) -> &'static str {
        match self {
            Pattern::NegativeZero { bits: 4 } => "mbarrier::report::validity::per_16bytes::8",
            Pattern::NegativeZero { bits: 8 } => "mbarrier::report::validity::per_16bytes::80",
            Pattern::NegativeZero { bits: 16 } => "mbarrier::report::validity::per_16bytes::8000",
            Pattern::NegativeZero { .. } => "mbarrier::report::validity::per_16bytes::80000000",
            Pattern::Ones => "mbarrier::report::validity::per_element::ff",
        }
    }

    /// Whether a copy of these bytes, of which the first is that of 16 aligned ones, is reported. Of each 16 bytes the
    /// element at the lowest address is looked at, since which one is "sampled" is not said.
    pub fn matches(self, bytes: &[u8]) -> bool {
        match self {
            Pattern::Ones => bytes.contains(&0xff),
            Pattern::NegativeZero { bits } => bytes.chunks(16).any(|chunk| match bits {
                4 => chunk[0] & 15 == 8,
                8 => chunk[0] == 0x80,
                16 => chunk.starts_with(&[0, 0x80]),
                _ => chunk.starts_with(&[0, 0, 0, 0x80]),
            }),
        }
    }
}

fn route(w: Words) -> Option<Route> {
    let from_global = w.words.iter().rposition(|&word| word == "global")
        > w.words.iter().position(|&word| word.starts_with("shared"));
    Some(match () {
        () if w.has("bulk_group") => Route::SharedToGlobal,
        () if w.has("global") && from_global => Route::GlobalToShared,
        () if w.has("shared::cluster") => Route::SharedToCluster,
        () => return None,
    })
}

/// Reads the lines of `cp.async.bulk`, `cp.reduce.async.bulk`, `st.async`, `red.async` and `st.bulk`.
pub fn read(w: Words) -> Option<Op> {
    let barrier = w.has("mbarrier::complete_tx::bytes");
    Some(match w.mnemonic {
        "cp" if w.has("commit_group") => Op::CommitGroup,
        // What `.sync_restrict::proxy::async` leaves out are other proxies' accesses.
        "cp" if w.has("wait_group") => Op::WaitGroup { read: w.has("read") },
        "cp" if w.has("reduce") => {
            let ReadModifyWrite { op, ty, .. } = ReadModifyWrite::read(w)?;
            Op::Reduce {
                route: route(w)?,
                op,
                ty,
                noftz: w.has("noftz"),
            }
        }
        "cp" => Op::Copy(Copy {
            route: route(w)?,
            multicast: w.has("multicast::cluster") || w.has("multicast::cluster::32b"),
            ignores_ends: w.has("ignore_oob"),
            masked: w.has("cp_mask"),
            report: Pattern::read(w),
        }),
        "st" if w.has("bulk") => Op::Clear,
        "st" if barrier => Op::Store {
            ty: w.ty(0),
            elements: w.vector().count(),
        },
        "st" => Op::StoreGlobal {
            ty: w.ty(0),
            scope: w.scope()?,
        },
        "red" => {
            let ReadModifyWrite { op, ty, .. } = ReadModifyWrite::read(w)?;
            match barrier {
                true => Op::Update { op, ty },
                false => Op::UpdateGlobal {
                    op,
                    ty,
                    scope: w.scope()?,
                },
            }
        }
        _ => return None,
    })
}

impl Op {
    pub(super) fn takes_whole_warps(self) -> bool {
        false
    }
}

impl Route {
    fn word(self) -> &'static str {
        match self {
            Route::GlobalToShared => "shared::cluster.global.mbarrier::complete_tx::bytes",
            Route::SharedToCluster => "shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
            Route::SharedToGlobal => "global.shared::cta.bulk_group",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Op::Copy(copy) => opcode!(
                f,
                "cp.async.bulk",
                copy.route.word(),
                (copy.multicast, "multicast::cluster"),
                (copy.ignores_ends, "ignore_oob"),
                (copy.masked, "cp_mask"),
                copy.report.map(Pattern::word)
            ),
            Op::Reduce { route, op, ty, noftz } => opcode!(
                f,
                "cp.reduce.async.bulk",
                route.word(),
                op.word(),
                (noftz, "noftz"),
                ty.ty()
            ),
            Op::CommitGroup => opcode!(f, "cp.async.bulk.commit_group"),
            Op::WaitGroup { read } => opcode!(f, "cp.async.bulk.wait_group", (read, "read")),
            Op::Store { ty, elements } => {
                let vector = match elements {
                    1 => None,
                    2 => Some("v2"),
                    _ => Some("v4"),
                };
                opcode!(f, "st.async.mbarrier::complete_tx::bytes", vector, ty)
            }
            Op::Update { op, ty } => opcode!(f, "red.async.mbarrier::complete_tx::bytes", op.word(), ty.ty()),
            Op::StoreGlobal { ty, scope } => opcode!(f, "st.async.release", scope, "global", ty),
            Op::UpdateGlobal { op, ty, scope } => {
                opcode!(f, "red.async.release", scope, "global", op.word(), ty.ty())
            }
            Op::Clear => opcode!(f, "st.bulk"),
        }
    }
}
