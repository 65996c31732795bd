//! Operations on memory that logical endpoints name (PTX ISA, Fabric Instructions): an endpoint's number and an offset stand
//! for memory of a device, or of all devices of a team.

use std::fmt;

use super::multimem::Reduction;
use super::tensor::Tensor;
use crate::isa::operation::{AtomicOp, AtomicType, ReadModifyWrite};
use crate::isa::types::Type;
use crate::isa::words::{Words, opcode};

/// What stands behind an operation is its addresses, and its registers in the representation: always the endpoint and the
/// offset, then what is named here. Of tensors the registers that [`Tensor::places`] counts come first, with the offset
/// as their address. Cache policies are hints, and left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `fabric.try_get`. To, barrier; bytes
    Get,
    /// `fabric.try_get.async.tensor`. To, barrier, map
    GetTensor(Tensor),
    /// `fabric.try_put`. From, barrier; (counter), bytes, (mask of bytes)
    Put {
        target: Target,
        masked: bool,
    },
    /// `fabric.try_red`. From, barrier; (counter), bytes
    Reduce {
        target: Target,
        op: AtomicOp,
        ty: AtomicType,
    },
    /// `fabric.try_put.async.tensor`, `fabric.try_red.async.tensor`. From, barrier, map; (counter), bytes
    PutTensor {
        target: Target,
        tensor: Tensor,
        reduction: Option<AtomicOp>,
    },
    /// `fabric.try_atom`. To, from, barrier
    Atom {
        op: AtomicOp,
        ty: AtomicType,
    },
    /// `fabric.try_pullred`, of a whole warp. To, barrier; bytes
    PullReduce {
        reduction: Reduction,
        ty: Type,
    },
    Submit(Submit),
    /// `fabric.wait`. (Groups that may stay)
    Wait,
}

/// What is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// `.multimem`: the memory of all members of a team.
    pub team: bool,
    /// `.counted::bytes`: a counter beside the data counts what has come.
    pub counted: bool,
}

/// Which operations of a thread may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Submit {
    All,
    /// `.commit_group`: all, which are then a group.
    Group,
    /// `.op_restrict::fetching`: those that read from endpoints.
    Fetching,
}

impl Target {
    fn read(w: Words) -> Target {
        Target {
            team: w.has("multimem"),
            counted: w.has("counted::bytes"),
        }
    }
}

impl Submit {
    fn word(self) -> Option<&'static str> {
        match self {
            Submit::All => None,
            Submit::Group => Some("commit_group"),
            Submit::Fetching => Some("op_restrict::fetching"),
        }
    }
}

/// Reads the lines of `fabric`.
pub fn read(w: Words) -> Option<Op> {
    let target = Target::read(w);
    let tensor = w.has("tensor");
    Some(match () {
        () if w.has("submit") => Op::Submit(match () {
            () if w.has("commit_group") => Submit::Group,
            () if w.has("op_restrict::fetching") => Submit::Fetching,
            () => Submit::All,
        }),
        () if w.has("try_get") && tensor => Op::GetTensor(Tensor::read(w)?),
        () if w.has("try_get") => Op::Get,
        () if w.has("try_put") && tensor => Op::PutTensor {
            target,
            tensor: Tensor::read(w)?,
            reduction: None,
        },
        () if w.has("try_put") => Op::Put {
            target,
            masked: w.has("cp_mask"),
        },
        () if w.has("try_red") && tensor => Op::PutTensor {
            target,
            tensor: Tensor::read(w)?,
            reduction: Some(w.find(AtomicOp::from_word)?),
        },
        () if w.has("try_red") => {
            let ReadModifyWrite { op, ty, .. } = ReadModifyWrite::read(w)?;
            Op::Reduce { target, op, ty }
        }
        () if w.has("try_atom") => {
            let ReadModifyWrite { op, ty, .. } = ReadModifyWrite::read(w)?;
            Op::Atom { op, ty }
        }
        () if w.has("try_pullred") => Op::PullReduce {
            reduction: Reduction::read(w)?,
            ty: w.ty(0),
        },
        () if w.has("wait") => Op::Wait,
        () => return None,
    })
}

impl Op {
    pub(super) fn takes_whole_warps(self) -> bool {
        match self {
            Op::PullReduce { .. } => true,
            Op::Get
            | Op::GetTensor(_)
            | Op::Put { .. }
            | Op::Reduce { .. }
            | Op::PutTensor { .. }
            | Op::Atom { .. }
            | Op::Submit(_)
            | Op::Wait => false,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const TO: &str = "shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric";
        const FROM: &str = "shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric";
        let team = |target: Target| (target.team, "multimem");
        let counted = |target: Target| (target.counted, "counted::bytes");
        match *self {
            Op::Get => opcode!(f, "fabric.try_get.async", TO, "relaxed.sys.b128"),
            Op::GetTensor(tensor) => {
                write!(f, "fabric.try_get.async.tensor.{}d", tensor.dims)?;
                let (address, sizes) = tensor.over();
                opcode!(f, "", "shared::cta.tile", &TO["shared::cta.".len()..])?;
                write!(f, "{address}{sizes}.relaxed.sys.b128")
            }
            Op::Put { target, masked } => opcode!(
                f,
                "fabric.try_put.async",
                team(target),
                FROM,
                counted(target),
                (masked, "cp_mask"),
                "relaxed.sys.b128"
            ),
            Op::Reduce { target, op, ty } => opcode!(
                f,
                "fabric.try_red.async",
                team(target),
                FROM,
                counted(target),
                "relaxed.sys",
                op.word(),
                ty.ty()
            ),
            Op::PutTensor {
                target,
                tensor,
                reduction,
            } => {
                let name = match reduction {
                    None => "fabric.try_put.async.tensor",
                    Some(_) => "fabric.try_red.async.tensor",
                };
                opcode!(f, name, team(target))?;
                let (address, sizes) = tensor.over();
                write!(f, ".{}d.shared::cta.tile", tensor.dims)?;
                opcode!(f, "", &FROM["shared::cta.".len()..], counted(target))?;
                write!(f, "{address}{sizes}.relaxed.sys")?;
                opcode!(f, "", reduction.map_or("b128", AtomicOp::word))
            }
            Op::Atom { op, ty } => opcode!(f, "fabric.try_atom.async", FROM, "relaxed.sys", op.word(), ty.ty()),
            Op::PullReduce { reduction, ty } => opcode!(
                f,
                "fabric.try_pullred.async.multimem",
                TO,
                "relaxed.sys",
                reduction.op.word(),
                reduction.sums_word(),
                ty,
                "sync"
            ),
            Op::Submit(submit) => opcode!(f, "fabric.submit", submit.word()),
            Op::Wait => opcode!(f, "fabric.wait.sync_restrict::read"),
        }
    }
}
