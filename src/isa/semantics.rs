//! What kind of thing an instruction does, for readers that ask the form for its words. [`super::Operation`] says all of
//! it; this goes when its last reader has.

use super::table::Meaning;
use super::{Form, Lane, Operation};

#[derive(Clone, Copy)]
#[rustfmt::skip]
pub enum Semantics {
    Lane(fn(&Form) -> Option<Lane>),
    Move, Video, Load, Store, Atomic, Reduction, Branch, BranchIndexed, Call, Return, Exit, Trap, Breakpoint, Nanosleep,
    Barrier, WarpBarrier, Fence, Shuffle, Vote, Match, Redux, Activemask, Elect, ConvertAddress, IsSpace, CreatePolicy,
    Alloca, StackSave, StackRestore, CopyAsync, Texture, TextureQuery, IsHandle, SurfaceLoad, SurfaceStore,
    SurfaceReduce, SurfaceQuery, Hint, Later,
}

fn lane(form: &Form) -> Option<Lane> {
    match form.op {
        Operation::Compute(compute) => Some(compute.lane()),
        _ => None,
    }
}

impl Semantics {
    pub(super) const fn of(meaning: Meaning) -> Semantics {
        macro_rules! same {
            ($($name:ident)*) => {
                match meaning {
                    Meaning::Compute(_) => Semantics::Lane(lane),
                    Meaning::Video(_) => Semantics::Video,
                    Meaning::Hint(_) => Semantics::Hint,
                    $(Meaning::$name => Semantics::$name,)*
                }
            };
        }
        same!(
            Move Load Store Atomic Reduction Branch BranchIndexed Call Return Exit Trap Breakpoint Nanosleep Barrier
            WarpBarrier Fence Shuffle Vote Match Redux Activemask Elect ConvertAddress IsSpace CreatePolicy Alloca
            StackSave StackRestore CopyAsync Texture TextureQuery IsHandle SurfaceLoad SurfaceStore SurfaceReduce
            SurfaceQuery Later
        )
    }
}
