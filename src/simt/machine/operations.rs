//! The table of operations by which a tier reaches memory and synchronises: one for grids that are watched, one for the
//! others, and one for grids of which nobody wants to know what they load and store.

use crate::isa::lanes::{MAX_WARPS, Width};
use crate::program::ir::texture::{Attribute, Opaque, SurfaceOp, TextureOp};
use crate::program::{AtomicOp, AtomicType, Copy3, CopyGroup, Element, Ordering, Proxy, Scope, Syscall, Value};

use super::access::AccessFn;
use super::atomic::{self, AtomicFn};
use super::barrier::{self, Barriers};
use super::context::{Cx, Outcome, RawFault};
use super::copy::{self, Copy};
use super::frame::{self, Between};
use super::joint::{self, Step};
use super::observe::Watch;
use super::slots::Slot;
use super::state::State;
use super::{surface, syscall, texture, transfer, warp};

/// Loads and stores, as functions of element, slot and strength.
pub type Loads = fn(Element, Option<Width>, Ordering) -> AccessFn;
pub type Stores = fn(Element, Width, Ordering) -> AccessFn;

/// Carries out a system call whose arguments and results lie in the frame of a callee.
pub type SyscallFn = fn(Syscall, &[Copy3], &[Copy3], &mut Cx<'_>) -> Result<(), RawFault>;

/// Carries out an instruction that the machine does for threads together, or beside them.
pub type JointFn = unsafe fn(&joint::Operands, &mut Cx<'_>, &mut State) -> Step;

/// Slots that are passed lie in the running window; what is `unsafe` counts on that, and on nothing else.
pub struct Operations {
    /// Somebody looks: a tier then takes no short cut around an operation.
    pub watched: bool,
    pub load: Loads,
    pub store: Stores,
    pub atomic: fn(AtomicOp, AtomicType) -> AtomicFn,
    pub copy_async: unsafe fn(&mut Cx<'_>, &Copy<'_>, &mut State) -> Outcome,
    pub joint: JointFn,
    pub copy_group: fn(&Cx<'_>, CopyGroup, &mut State) -> Outcome,
    pub texture: unsafe fn(&TextureOp<Slot>, &mut Cx<'_>) -> Outcome,
    pub surface: unsafe fn(&SurfaceOp<Slot>, &mut Cx<'_>) -> Outcome,
    pub query: unsafe fn(&mut Cx<'_>, Slot, Attribute, Option<Slot>, Slot) -> Outcome,
    pub is_handle: unsafe fn(&mut Cx<'_>, Opaque, Slot, Slot) -> Outcome,
    pub syscall: SyscallFn,
    pub fence: fn(&Cx<'_>, Ordering, Option<Scope>, Proxy),
    /// Lanes of the mask come to a barrier of the block; its number.
    pub barrier: unsafe fn(&Cx<'_>, &mut Barriers, &barrier::Arrival) -> Result<u32, RawFault>,
    pub warp_barrier: unsafe fn(&Cx<'_>, Value<Slot>),
    /// Pieces of one frame of the local window to another, for the lanes of the mask.
    pub copy_frame: fn(&Cx<'_>, &[u32; MAX_WARPS], &[Copy3], Between),
}

impl Operations {
    /// Those for a grid at which `watch` looks.
    pub fn of(watch: &Watch) -> &'static Operations {
        match watch.observer() {
            Some(observer) if !observer.follows_accesses() => {
                const {
                    &Operations {
                        load: transfer::load_fn::<false>,
                        store: transfer::store_fn::<false>,
                        ..Operations::table::<true>()
                    }
                }
            }
            Some(_) => const { &Operations::table::<true>() },
            None => const { &Operations::table::<false>() },
        }
    }

    const fn table<const WATCHED: bool>() -> Operations {
        Operations {
            watched: WATCHED,
            load: transfer::load_fn::<WATCHED>,
            store: transfer::store_fn::<WATCHED>,
            atomic: atomic::function::<WATCHED>,
            copy_async: copy::copy_async::<WATCHED>,
            joint: joint::execute::<WATCHED>,
            copy_group: copy::group::<WATCHED>,
            texture: texture::fetch::<WATCHED>,
            surface: surface::access::<WATCHED>,
            query: texture::query,
            is_handle: texture::is_handle,
            syscall: syscall::call::<WATCHED>,
            fence: warp::fence::<WATCHED>,
            barrier: barrier::arrive::<WATCHED>,
            warp_barrier: warp::warp_barrier::<WATCHED>,
            copy_frame: frame::copy::<WATCHED>,
        }
    }
}
