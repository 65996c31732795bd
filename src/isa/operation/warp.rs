//! What the lanes of a warp, or the threads of a block, do together (PTX ISA, Parallel Synchronization and
//! Communication Instructions).

use crate::isa::types::Type;
use crate::isa::words::Words;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierOp {
    Sync,
    Arrive,
    /// `.red.popc`, `.red.and`, `.red.or`
    Popc,
    And,
    Or,
}

/// `bar`, `barrier`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Barrier {
    pub op: BarrierOp,
    /// All threads of a warp come together; `bar` says so without the word.
    pub aligned: bool,
}

impl Barrier {
    pub(super) fn read(w: Words) -> Barrier {
        let op = match () {
            () if w.has("popc") => BarrierOp::Popc,
            () if w.has("and") => BarrierOp::And,
            () if w.has("or") => BarrierOp::Or,
            () if w.has("arrive") => BarrierOp::Arrive,
            () => BarrierOp::Sync,
        };
        let aligned = w.mnemonic == "bar" || w.has("aligned");
        Barrier { op, aligned }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum ShuffleMode { Up, Down, Bfly, Idx }

impl ShuffleMode {
    pub(super) fn from_word(word: &str) -> Option<ShuffleMode> {
        Some(match word {
            "up" => ShuffleMode::Up,
            "down" => ShuffleMode::Down,
            "bfly" => ShuffleMode::Bfly,
            "idx" => ShuffleMode::Idx,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum VoteMode { All, Any, Uni, Ballot }

impl VoteMode {
    pub(super) fn from_word(word: &str) -> Option<VoteMode> {
        Some(match word {
            "all" => VoteMode::All,
            "any" => VoteMode::Any,
            "uni" => VoteMode::Uni,
            "ballot" => VoteMode::Ballot,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum ReduxOp { Add, MinU, MaxU, MinS, MaxS, And, Or, Xor,
    /// f32 min and max: `.abs`, `.NaN` as flags.
    MinF { abs: bool, nan: bool }, MaxF { abs: bool, nan: bool } }

impl ReduxOp {
    pub(super) fn read(w: Words) -> Option<ReduxOp> {
        let (abs, nan) = (w.has("abs"), w.has("NaN"));
        let ty = w.ty(0);
        w.find(|word| {
            Some(match (word, ty) {
                ("add", _) => ReduxOp::Add,
                ("and", _) => ReduxOp::And,
                ("or", _) => ReduxOp::Or,
                ("xor", _) => ReduxOp::Xor,
                ("min", Type::F32) => ReduxOp::MinF { abs, nan },
                ("max", Type::F32) => ReduxOp::MaxF { abs, nan },
                ("min", Type::S32) => ReduxOp::MinS,
                ("max", Type::S32) => ReduxOp::MaxS,
                ("min", Type::U32) => ReduxOp::MinU,
                ("max", Type::U32) => ReduxOp::MaxU,
                _ => return None,
            })
        })
    }
}
