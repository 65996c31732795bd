//! What blocks of a cluster do together (PTX ISA: barrier.cluster, mapa, getctarank, isspacep, clusterlaunchcontrol).

use std::fmt;

use crate::isa::words::{Words, opcode};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `barrier.cluster.arrive`
    Arrive { relaxed: bool, aligned: bool },
    /// `barrier.cluster.wait`
    Wait { aligned: bool },
    /// `mapa`: address, rank → address
    Map(Kind),
    /// `getctarank`: address → rank
    Rank(Kind),
    /// `isspacep.shared::cluster`: generic address → predicate
    IsShared,
    /// `clusterlaunchcontrol.try_cancel [response], [mbarrier]`; `multicast`: in every block of the cluster
    TryCancel { multicast: bool },
    /// `clusterlaunchcontrol.query_cancel.is_canceled`: response → predicate
    IsCanceled,
    /// `clusterlaunchcontrol.query_cancel.get_first_ctaid`: response → coordinates, from this axis on
    FirstCtaid(Axis),
}

/// What an address is one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Generic,
    Shared,
}

/// Which coordinate of a block; all of them as a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Axis { X, Y, Z, All }

impl Op {
    /// Threads of a warp need not come at the same time: each is counted by itself, also where the program promises
    /// that they do (`.aligned`).
    pub(super) fn takes_whole_warps(self) -> bool {
        match self {
            Op::Arrive { .. }
            | Op::Wait { .. }
            | Op::Map(_)
            | Op::Rank(_)
            | Op::IsShared
            | Op::TryCancel { .. }
            | Op::IsCanceled
            | Op::FirstCtaid(_) => false,
        }
    }
}

impl Kind {
    fn read(w: Words) -> Kind {
        match w.has("shared::cluster") {
            true => Kind::Shared,
            false => Kind::Generic,
        }
    }
    fn word(self) -> Option<&'static str> {
        match self {
            Kind::Generic => None,
            Kind::Shared => Some("shared::cluster"),
        }
    }
}

pub fn barrier(w: Words) -> Option<Op> {
    let aligned = w.has("aligned");
    Some(match w.has("arrive") {
        true => Op::Arrive {
            relaxed: w.has("relaxed"),
            aligned,
        },
        false => Op::Wait { aligned },
    })
}

pub fn mapa(w: Words) -> Option<Op> {
    Some(Op::Map(Kind::read(w)))
}

pub fn getctarank(w: Words) -> Option<Op> {
    Some(Op::Rank(Kind::read(w)))
}

pub fn launch_control(w: Words) -> Option<Op> {
    Some(match () {
        () if w.has("try_cancel") => Op::TryCancel {
            multicast: w.has("multicast::cluster::all"),
        },
        () if w.has("is_canceled") => Op::IsCanceled,
        () if w.has("get_first_ctaid::x") => Op::FirstCtaid(Axis::X),
        () if w.has("get_first_ctaid::y") => Op::FirstCtaid(Axis::Y),
        () if w.has("get_first_ctaid::z") => Op::FirstCtaid(Axis::Z),
        () => Op::FirstCtaid(Axis::All),
    })
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Op::Arrive { relaxed, aligned } => {
                let order = if relaxed { "relaxed" } else { "release" };
                opcode!(f, "barrier.cluster.arrive", order, (aligned, "aligned"))
            }
            Op::Wait { aligned } => opcode!(f, "barrier.cluster.wait.acquire", (aligned, "aligned")),
            Op::Map(kind) => opcode!(f, "mapa", kind.word()),
            Op::Rank(kind) => opcode!(f, "getctarank", kind.word()),
            Op::IsShared => f.write_str("isspacep.shared::cluster"),
            Op::TryCancel { multicast } => opcode!(
                f,
                "clusterlaunchcontrol.try_cancel.async",
                (multicast, "multicast::cluster::all"),
                "b128"
            ),
            Op::IsCanceled => f.write_str("clusterlaunchcontrol.query_cancel.is_canceled"),
            Op::FirstCtaid(axis) => {
                let axis = match axis {
                    Axis::X => "::x",
                    Axis::Y => "::y",
                    Axis::Z => "::z",
                    Axis::All => ".v4",
                };
                write!(f, "clusterlaunchcontrol.query_cancel.get_first_ctaid{axis}")
            }
        }
    }
}
