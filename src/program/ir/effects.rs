//! What an operation does besides writing its registers: which memory it reads and writes, how strongly ordered, whom it
//! waits for, where it may go. Passes and tiers ask this instead of listing operations of their own.

use super::op::{CopyGroup, Op, Ordering, Space};
use super::texture::SurfaceAction;

/// Which memory an operation may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By addresses of this space; generic ones may lie in any.
    Space(Space),
    /// Texels of arrays, or of memory that is bound as a texture.
    Texels,
    /// Whatever a called function or the system touches.
    Anything,
}

/// What an operation does besides writing its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Effects {
    /// Memory that it reads.
    pub reads: Option<Reach>,
    /// Memory that it writes.
    pub writes: Option<Reach>,
    /// How strongly its accesses are ordered; weak where there are none.
    pub ordering: Ordering,
    /// Its result depends on other lanes, or other lanes wait for it: it may neither move nor be done again.
    pub synchronises: bool,
    /// A lane may have to wait here for others: a tier must be able to stop and go on later.
    pub waits: bool,
    /// It may end the launch with a fault.
    pub faults: bool,
    /// Reads state that changes by itself, as clocks do, or is a lane's own at this moment.
    pub volatile: bool,
    /// Changes the running frame or the lane's stack.
    pub frame: bool,
    /// Nothing runs after it on this path.
    pub leaves: bool,
}

impl Effects {
    /// Nothing but its registers.
    pub const NONE: Effects = Effects {
        reads: None,
        writes: None,
        ordering: Ordering::Weak,
        synchronises: false,
        waits: false,
        faults: false,
        volatile: false,
        frame: false,
        leaves: false,
    };

    /// The same operands give the same results, whenever and however often it is done.
    pub fn is_pure(&self) -> bool {
        *self == Effects::NONE
    }
}

impl<R> Op<R> {
    pub fn effects(&self) -> Effects {
        let none = Effects::NONE;
        let together = Effects {
            synchronises: true,
            ..none
        };
        let meeting = Effects {
            waits: true,
            ..together
        };
        match self {
            Op::Compute { .. } | Op::FrameAddress { .. } | Op::ConvertAddress { .. } | Op::IsSpace { .. } => none,
            // Whether a handle is a texture's depends on the host, which makes and destroys them.
            Op::IsHandle { .. } => Effects { volatile: true, ..none },
            Op::Load { address, ordering, .. } => Effects {
                reads: Some(Reach::Space(address.space)),
                ordering: *ordering,
                faults: true,
                ..none
            },
            Op::Store { address, ordering, .. } => Effects {
                writes: Some(Reach::Space(address.space)),
                ordering: *ordering,
                faults: true,
                ..none
            },
            Op::Atomic { address, ordering, .. } => Effects {
                reads: Some(Reach::Space(address.space)),
                writes: Some(Reach::Space(address.space)),
                ordering: *ordering,
                synchronises: true,
                faults: true,
                ..none
            },
            Op::CopyAsync { dst, src, .. } => Effects {
                reads: Some(Reach::Space(src.space)),
                writes: Some(Reach::Space(dst.space)),
                faults: true,
                ..none
            },
            // A wait makes what was copied visible to the thread.
            Op::CopyGroup(CopyGroup::Wait(_) | CopyGroup::WaitAll) => Effects {
                reads: Some(Reach::Anything),
                writes: Some(Reach::Anything),
                ..together
            },
            Op::CopyGroup(CopyGroup::Commit) => together,
            Op::Call { .. } => Effects {
                reads: Some(Reach::Anything),
                writes: Some(Reach::Anything),
                faults: true,
                frame: true,
                ..meeting
            },
            Op::Syscall { .. } => Effects {
                reads: Some(Reach::Anything),
                writes: Some(Reach::Anything),
                faults: true,
                ..meeting
            },
            Op::Return | Op::Exit => Effects { leaves: true, ..none },
            Op::Trap => Effects {
                leaves: true,
                faults: true,
                ..none
            },
            Op::Breakpoint => Effects { faults: true, ..none },
            // Lanes that pass a barrier see what the others wrote before it.
            Op::Barrier { .. } | Op::WarpBarrier { .. } => Effects {
                reads: Some(Reach::Anything),
                writes: Some(Reach::Anything),
                faults: true,
                ..meeting
            },
            Op::Fence { ordering, .. } => Effects {
                reads: Some(Reach::Anything),
                writes: Some(Reach::Anything),
                ordering: *ordering,
                ..together
            },
            Op::Shuffle { .. } | Op::Vote { .. } | Op::Match { .. } | Op::Redux { .. } | Op::Elect { .. } => meeting,
            Op::Activemask { .. } => Effects {
                volatile: true,
                ..together
            },
            Op::ReadSpecial { which, .. } => Effects {
                volatile: which.is_volatile(),
                ..none
            },
            Op::Nanosleep => Effects { waits: true, ..none },
            Op::Alloca { .. } | Op::StackSave { .. } | Op::StackRestore { .. } => Effects {
                frame: true,
                faults: true,
                ..none
            },
            Op::Texture(_) => Effects {
                reads: Some(Reach::Texels),
                faults: true,
                ..none
            },
            Op::Surface(op) => {
                let (reads, writes) = match op.action {
                    SurfaceAction::Load(_) => (true, false),
                    SurfaceAction::Store(_) => (false, true),
                    SurfaceAction::Reduce { .. } => (true, true),
                };
                Effects {
                    reads: reads.then_some(Reach::Texels),
                    writes: writes.then_some(Reach::Texels),
                    faults: true,
                    ..none
                }
            }
            Op::HandleQuery { .. } => Effects {
                reads: Some(Reach::Texels),
                faults: true,
                ..none
            },
        }
    }

    /// Nothing runs after it on this path (when it has no guard).
    pub fn ends_path(&self) -> bool {
        self.effects().leaves
    }
}
