//! What an operation does besides writing its registers: which memory it reads and writes, how strongly ordered among
//! whom and by which way, whom it waits for, where it may go. Passes and tiers ask this instead of listing operations
//! of their own.

use super::op::{Address, BarrierOp, CopyGroup, Op, Ordering, Proxy, Scope, Space, Value};
use super::shadow::Shadow;
use super::texture::SurfaceAction;
use crate::isa::joint::matrix;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    /// Memory that it reads.
    pub reads: Option<Reach>,
    /// Memory that it writes.
    pub writes: Option<Reach>,
    /// How strongly its accesses are ordered, or how strongly it orders others; weak where it does neither.
    pub ordering: Ordering,
    /// Among whom; none of what is weak, and of a fence between proxies alone.
    pub scope: Option<Scope>,
    /// By which way its accesses go to memory; of a fence, which way it orders with the generic one.
    pub proxy: Proxy,
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
        scope: None,
        proxy: Proxy::Generic,
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

    /// It may see what other threads have changed meanwhile: a strong access that reads, or a call of whoever may do so.
    pub fn looks_at_others(&self) -> bool {
        self.reads.is_some() && self.ordering != Ordering::Weak
    }

    /// Nobody can tell whether it was done, unless by what it wrote to registers.
    pub fn is_removable(&self) -> bool {
        let Effects {
            reads: _,
            writes,
            ordering: _,
            scope: _,
            proxy: _,
            // Others do not wait for it unless it waits for them.
            synchronises: _,
            waits,
            faults,
            volatile: _,
            frame,
            leaves,
        } = *self;
        writes.is_none() && !waits && !faults && !frame && !leaves
    }
}

/// It is always there: a kernel's parameter, or a byte of the frame, by its offset alone.
fn is_there<R>(address: &Address<R>) -> bool {
    match address.space {
        Space::Param | Space::Local => address.register.is_none(),
        Space::Generic | Space::Global | Space::Const | Space::Shared => false,
    }
}

impl<R> Op<R> {
    /// The bytes of the running frame that it loads, stores or changes by their offset alone: where they begin, and how many.
    pub fn direct_access(&self) -> Option<(u32, u32)> {
        // No element has more than 16 bytes.
        let (address, bytes) = if let Op::Load {
            address, element, dst, ..
        } = self
        {
            (address, u32::from(element.bytes) * dst.len() as u32)
        } else if let Op::Store {
            address, element, src, ..
        } = self
        {
            (address, u32::from(element.bytes) * src.len() as u32)
        } else if let Op::Atomic { address, b, .. } = self {
            (address, 16 * b.len() as u32)
        } else {
            return None;
        };
        Some((address.in_frame()?, bytes))
    }

    /// The number of a barrier at which all threads of the block meet and that does no more: what `__syncthreads` is.
    pub fn barrier_of_all(&self) -> Option<u32> {
        match *self {
            Op::Barrier {
                op: BarrierOp::Sync,
                id: Value::Immediate(id @ 0..16),
                threads: None,
                ..
            } => Some(id),
            _ => None,
        }
    }

    /// What is asked at a barrier at which all threads of the block meet and say yes or no, as at `__syncthreads_and`.
    pub fn reduction_of_all(&self) -> Option<BarrierOp> {
        match *self {
            Op::Barrier {
                op: op @ (BarrierOp::And | BarrierOp::Or | BarrierOp::Popc),
                id: Value::Immediate(0..16),
                threads: None,
                ..
            } => Some(op),
            _ => None,
        }
    }

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
        // What a callee does is in no operation's fields: the strongest that there is.
        let unknown = Effects {
            reads: Some(Reach::Anything),
            writes: Some(Reach::Anything),
            ordering: Ordering::Sc,
            scope: Some(Scope::Sys),
            faults: true,
            ..meeting
        };
        match self {
            Op::Compute { .. } | Op::FrameAddress { .. } | Op::ConvertAddress { .. } | Op::IsSpace { .. } => none,
            Op::Within(_) => Effects { faults: true, ..none },
            // Whether a handle is a texture's depends on the host, which makes and destroys them.
            Op::IsHandle { .. } => Effects { volatile: true, ..none },
            Op::Load {
                address,
                ordering,
                scope,
                ..
            } => Effects {
                reads: Some(Reach::Space(address.space)),
                ordering: *ordering,
                scope: *scope,
                faults: !is_there(address),
                ..none
            },
            Op::Store {
                address,
                ordering,
                scope,
                ..
            } => Effects {
                writes: Some(Reach::Space(address.space)),
                ordering: *ordering,
                scope: *scope,
                faults: !is_there(address),
                ..none
            },
            Op::Atomic {
                address,
                ordering,
                scope,
                ..
            } => Effects {
                reads: Some(Reach::Space(address.space)),
                writes: Some(Reach::Space(address.space)),
                ordering: *ordering,
                scope: Some(*scope),
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
            // Copies of a group may be written from its commit on; after the wait they are, and the thread sees them.
            Op::CopyGroup(CopyGroup::Commit | CopyGroup::Wait(_) | CopyGroup::WaitAll) => Effects {
                reads: Some(Reach::Anything),
                writes: Some(Reach::Anything),
                ..together
            },
            Op::Call { .. } => Effects { frame: true, ..unknown },
            Op::Syscall { .. } => unknown,
            Op::Return | Op::Exit => Effects { leaves: true, ..none },
            Op::Trap => Effects {
                leaves: true,
                faults: true,
                ..none
            },
            Op::Breakpoint => Effects { faults: true, ..none },
            // Lanes that pass a barrier see what the others wrote before it; those that only arrive do not.
            Op::Barrier { op, .. } => Effects {
                ordering: match op {
                    BarrierOp::Arrive => Ordering::Release,
                    BarrierOp::Sync | BarrierOp::Popc | BarrierOp::And | BarrierOp::Or => Ordering::AcqRel,
                },
                scope: Some(Scope::Cta),
                ..unknown
            },
            // A warp has no scope of its own.
            Op::WarpBarrier { .. } => Effects {
                ordering: Ordering::AcqRel,
                scope: Some(Scope::Cta),
                ..unknown
            },
            Op::Fence { ordering, scope, proxy } => Effects {
                reads: Some(Reach::Anything),
                writes: Some(Reach::Anything),
                ordering: *ordering,
                scope: *scope,
                proxy: *proxy,
                ..together
            },
            Op::Joint(joint) => joint.effects(),
            Op::Shadow(op) => match op.what {
                Shadow::Load(_) | Shadow::Follow(_) | Shadow::Also | Shadow::Undefine | Shadow::Warpgroup(_) => none,
                Shadow::Matrix(
                    matrix::Op::LoadRows(_) | matrix::Op::LoadTile(_) | matrix::Op::Transpose | matrix::Op::Multiply(_),
                ) => none,
                Shadow::Matrix(matrix::Op::StoreRows(_) | matrix::Op::StoreTile(_)) => Effects { faults: true, ..none },
                Shadow::Match { .. } => meeting,
                // They check addresses and tell of what they find.
                Shadow::Store(_) | Shadow::Frame(..) | Shadow::Check { .. } => Effects { faults: true, ..none },
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
            Op::Texture(_) | Op::HandleQuery { .. } => Effects {
                reads: Some(Reach::Texels),
                proxy: Proxy::Texture,
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
                    proxy: Proxy::Surface,
                    faults: true,
                    ..none
                }
            }
        }
    }

    /// Nothing runs after it on this path (when it has no guard).
    pub fn ends_path(&self) -> bool {
        self.effects().leaves
    }
}
