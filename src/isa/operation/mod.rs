//! What an instruction does, typed: one variant for every kind of line in the table.

mod access;
mod fidelity;
mod image;
mod warp;

pub use self::access::{
    Access, Advice, AtomicOp, AtomicType, Cache, CacheOperator, CopyAsync, Eviction, Fence, Policy, PolicyKind, Proxy,
    ReadModifyWrite, Restriction, SectorPromotion,
};
pub use self::image::{Attribute, Coordinates, Detail, Geometry, Opaque, Outside, Surface, SurfaceReduction, Texture};
pub use self::warp::{Barrier, BarrierOp, ReduxOp, ShuffleMode, VoteMode};
use super::types::{LongBits, Space, Type, Vector};
use super::words::Words;
use super::{Compute, Joint, table::Meaning, video};

/// What an instruction does. Operands are the text's: an operation knows what they mean, not which they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A function of each lane's registers.
    Compute(Compute),
    /// `mov`: copies, packs, unpacks, and takes addresses, as its operands say.
    Move {
        ty: Type,
        vector: Vector,
    },
    /// Lane-wise, by the selectors of its operands.
    Video(video::Opcode),
    Load(Access),
    Store(Access),
    /// `atom`
    Atomic(ReadModifyWrite),
    /// `red`: without a result.
    Reduction(ReadModifyWrite),
    Branch {
        uniform: bool,
    },
    BranchIndexed {
        uniform: bool,
    },
    Call {
        uniform: bool,
    },
    Return {
        uniform: bool,
    },
    Exit,
    Trap,
    Breakpoint,
    Nanosleep,
    Barrier(Barrier),
    /// `bar.warp.sync`
    WarpBarrier,
    /// `membar`, `fence`
    Fence(Fence),
    /// `sync`: with a mask of members.
    Shuffle {
        mode: ShuffleMode,
        sync: bool,
    },
    Vote {
        mode: VoteMode,
        sync: bool,
    },
    Match {
        all: bool,
        ty: LongBits,
    },
    Redux {
        op: ReduxOp,
    },
    Activemask,
    Elect,
    ConvertAddress {
        space: Space,
        to_generic: bool,
    },
    IsSpace {
        space: Space,
    },
    /// A value that only hints take.
    CreatePolicy(Policy),
    Alloca,
    StackSave,
    StackRestore,
    CopyAsync(CopyAsync),
    /// For threads together, or beside them.
    Joint(Joint),
    /// `tex`, `tld4`
    Texture(Texture),
    /// `txq`; `level`: of one level.
    TextureQuery {
        attribute: Attribute,
        level: bool,
    },
    /// `istypep`
    IsHandle(Opaque),
    SurfaceLoad(Surface),
    SurfaceStore(Surface),
    SurfaceReduce {
        op: SurfaceReduction,
        surface: Surface,
    },
    SurfaceQuery {
        attribute: Attribute,
    },
    /// No effect on results.
    Hint(Advice),
}

impl Operation {
    /// What it takes an image for: textures and surfaces that are read or written.
    #[rustfmt::skip]
    pub fn geometry(self) -> Option<Geometry> {
        match self {
            Operation::Texture(texture) => Some(texture.geometry),
            Operation::SurfaceLoad(surface)
            | Operation::SurfaceStore(surface)
            | Operation::SurfaceReduce { surface, .. } => Some(surface.geometry),
            // About a handle, not about what it stands for.
            Operation::TextureQuery { .. } | Operation::SurfaceQuery { .. } | Operation::IsHandle(_) => None,
            Operation::Compute(_) | Operation::Move { .. } | Operation::Video(_) => None,
            Operation::Load(_) | Operation::Store(_) | Operation::Atomic(_) | Operation::Reduction(_)
            | Operation::CopyAsync(_) | Operation::ConvertAddress { .. } | Operation::IsSpace { .. }
            | Operation::CreatePolicy(_) | Operation::Alloca | Operation::StackSave | Operation::StackRestore => None,
            Operation::Branch { .. } | Operation::BranchIndexed { .. } | Operation::Call { .. }
            | Operation::Return { .. } | Operation::Exit | Operation::Trap | Operation::Breakpoint
            | Operation::Nanosleep => None,
            Operation::Barrier(_) | Operation::WarpBarrier | Operation::Fence(_) | Operation::Shuffle { .. }
            | Operation::Vote { .. } | Operation::Match { .. } | Operation::Redux { .. } | Operation::Activemask
            | Operation::Elect | Operation::Joint(_) => None,
            Operation::Hint(_) => None,
        }
    }

    /// Special registers may stand among its operands: in `mov`, and in conversions between integers.
    #[rustfmt::skip]
    pub fn takes_special_registers(self) -> bool {
        match self {
            Operation::Move { .. } => true,
            Operation::Compute(compute) => compute.is_between_integers(),
            Operation::Video(_) => false,
            Operation::Load(_) | Operation::Store(_) | Operation::Atomic(_) | Operation::Reduction(_)
            | Operation::CopyAsync(_) | Operation::ConvertAddress { .. } | Operation::IsSpace { .. }
            | Operation::CreatePolicy(_) | Operation::Alloca | Operation::StackSave | Operation::StackRestore => false,
            Operation::Branch { .. } | Operation::BranchIndexed { .. } | Operation::Call { .. }
            | Operation::Return { .. } | Operation::Exit | Operation::Trap | Operation::Breakpoint
            | Operation::Nanosleep => false,
            Operation::Barrier(_) | Operation::WarpBarrier | Operation::Fence(_) | Operation::Shuffle { .. }
            | Operation::Vote { .. } | Operation::Match { .. } | Operation::Redux { .. } | Operation::Activemask
            | Operation::Elect | Operation::Joint(_) => false,
            Operation::Texture(_) | Operation::TextureQuery { .. } | Operation::IsHandle(_)
            | Operation::SurfaceLoad(_) | Operation::SurfaceStore(_) | Operation::SurfaceReduce { .. }
            | Operation::SurfaceQuery { .. } => false,
            Operation::Hint(_) => false,
        }
    }
}

/// The operation of a line for the words that an opcode has. `None`: a word that the line has and its reader does not
/// know, which is a mistake of the table; a test looks for one.
pub(super) fn read(meaning: Meaning, w: Words) -> Option<Operation> {
    let uniform = w.has("uni");
    Some(match meaning {
        Meaning::Compute(read) => Operation::Compute(read(w)?),
        Meaning::Move => Operation::Move {
            ty: w.ty(0),
            vector: w.vector(),
        },
        Meaning::Video(read) => Operation::Video(read(w)?),
        Meaning::Load => Operation::Load(Access::read(w)),
        Meaning::Store => Operation::Store(Access::read(w)),
        Meaning::Atomic => Operation::Atomic(ReadModifyWrite::read(w)?),
        Meaning::Reduction => Operation::Reduction(ReadModifyWrite::read(w)?),
        Meaning::Branch => Operation::Branch { uniform },
        Meaning::BranchIndexed => Operation::BranchIndexed { uniform },
        Meaning::Call => Operation::Call { uniform },
        Meaning::Return => Operation::Return { uniform },
        Meaning::Exit => Operation::Exit,
        Meaning::Trap => Operation::Trap,
        Meaning::Breakpoint => Operation::Breakpoint,
        Meaning::Nanosleep => Operation::Nanosleep,
        Meaning::Barrier => Operation::Barrier(Barrier::read(w)),
        Meaning::WarpBarrier => Operation::WarpBarrier,
        Meaning::Fence => Operation::Fence(Fence::read(w)),
        Meaning::Shuffle => Operation::Shuffle {
            mode: w.find(ShuffleMode::from_word)?,
            sync: w.has("sync"),
        },
        Meaning::Vote => Operation::Vote {
            mode: w.find(VoteMode::from_word)?,
            sync: w.has("sync"),
        },
        Meaning::Match => Operation::Match {
            all: w.has("all"),
            ty: LongBits::of(w.ty(0))?,
        },
        Meaning::Redux => Operation::Redux { op: ReduxOp::read(w)? },
        Meaning::Activemask => Operation::Activemask,
        Meaning::Elect => Operation::Elect,
        Meaning::ConvertAddress => Operation::ConvertAddress {
            space: w.space(),
            to_generic: !w.has("to"),
        },
        Meaning::IsSpace => Operation::IsSpace { space: w.space() },
        Meaning::CreatePolicy => Operation::CreatePolicy(Policy::read(w)),
        Meaning::Alloca => Operation::Alloca,
        Meaning::StackSave => Operation::StackSave,
        Meaning::StackRestore => Operation::StackRestore,
        Meaning::CopyAsync => Operation::CopyAsync(CopyAsync::read(w)?),
        Meaning::Joint(read) => Operation::Joint(read(w)?),
        Meaning::Texture => Operation::Texture(Texture::read(w)?),
        Meaning::TextureQuery => Operation::TextureQuery {
            attribute: w.find(Attribute::from_word)?,
            level: w.has("level"),
        },
        Meaning::IsHandle => Operation::IsHandle(Opaque::of(w.ty(0))?),
        Meaning::SurfaceLoad => Operation::SurfaceLoad(Surface::read(w)?),
        Meaning::SurfaceStore => Operation::SurfaceStore(Surface::read(w)?),
        Meaning::SurfaceReduce => Operation::SurfaceReduce {
            op: w.find(SurfaceReduction::from_word)?,
            surface: Surface::read(w)?,
        },
        Meaning::SurfaceQuery => Operation::SurfaceQuery {
            attribute: w.find(Attribute::from_word)?,
        },
        Meaning::Hint(advice) => Operation::Hint(advice),
    })
}
