//! The machine under all tiers: what an operation does to memory and to other lanes, whoever runs the code.
//!
//! A tier decides what runs next, and for which lanes; here stands what then happens. Operations take a context ([`Cx`]:
//! the register window, the mask, the block) and register slots as plain offsets; they know neither how a tier represents
//! code nor how it schedules. Every access to memory passes one funnel (`access.rs`), which checks bounds, alignment and
//! rights and tells the observer (`observe.rs`), if there is one. A tier calls operations through [`Operations`], the table
//! that was made for the grid's observer.
//!
//! ```text
//! access.rs    the funnel: addresses of lanes, checks       observe.rs   who looks on, and what he is told
//! transfer.rs  ld, st                                       raw.rs       elements of 1 to 16 bytes, strong and weak
//! atomic.rs    atom, red                                    copy.rs      cp.async
//! texture.rs   tex, tld4, txq, istypep                      surface.rs   suld, sust, sured
//! warp.rs      shfl, vote, match, redux, elect, barriers    window.rs    cvta, isspacep, frame addresses, special registers
//! frame.rs     arguments and results of calls, alloca       slots.rs     one lane of a register
//! syscall.rs   vprintf, malloc, free, __assertfail          format.rs    formatted output
//! device_runtime.rs  what kernels call that launch kernels
//! ```

pub mod access;
pub mod atomic;
mod copy;
mod device_runtime;
mod format;
pub mod frame;
pub mod observe;
mod raw;
pub mod slots;
mod surface;
mod syscall;
mod texture;
mod transfer;
pub mod warp;
pub mod window;

use crate::isa::lanes::{MAX_WARPS, Mask, WARP, Width};
use crate::program::ir::texture::{Attribute, Opaque, SurfaceOp, TextureOp};
use crate::program::{AtomicOp, AtomicType, Copy3, Element, Function, Ordering, Proxy, Scope, Space, Syscall, Value};
use crate::ptx::ast::Span;

use super::Cause;
use super::block::BlockEnv;
pub use access::{AccessFn, MemOp};
pub use atomic::{AtomOp, AtomicFn};
use observe::{GridEvent, HeapEvent, Observer, SyncEvent, Watch, Who};
use slots::Slot;

/// Marks an absent slot or guard in a field that is otherwise an offset.
pub const NONE: u32 = u32::MAX;

/// A value that follows the lane's number: in lane `l` of run `r`, `base[r] + step · l`, modulo 2^64 or 2^32. A run is the
/// whole bundle, or a warp of it.
#[derive(Clone, Copy, Default)]
pub struct Line {
    pub base: [u64; MAX_WARPS],
    pub step: u64,
}

/// What an operation sees of the world while it runs.
pub struct Cx<'a, 'l> {
    /// Register window of the running frame.
    pub regs: *mut u8,
    /// Lanes that carry out the operation.
    pub mask: Mask,
    pub block: &'a BlockEnv<'l>,
    /// Linear index in the block of the bundle's first thread.
    pub first_thread: u32,
    /// Where the running frame starts in a lane's local window.
    pub frame: u32,
    /// The bundle's values that follow the lane's number, for accesses that name one.
    pub affine: *const Line,
    /// Those count through each warp by itself.
    pub by_warp: bool,
    pub fault: Option<RawFault>,
    /// The running function, and the instruction where an operation does not bring its own; for observers.
    pub function: &'a Function,
    pub span: Span,
}

impl Cx<'_, '_> {
    /// Start of a lane's local window.
    #[inline(always)]
    pub fn local(&self, lane: usize) -> u64 {
        self.block.local + (u64::from(self.first_thread) + lane as u64) * u64::from(self.block.local_stride)
    }

    fn who(&self, span: Span) -> Who<'_> {
        Who {
            grid: self.block.env.launch.grid_id,
            block: self.block.ctaid,
            first_thread: self.first_thread,
            function: self.function,
            span,
        }
    }

    /// Tells the observer of what synchronises lanes.
    #[inline(always)]
    fn synchronised<O: Observer>(&self, event: impl FnOnce() -> SyncEvent) {
        if let Some(observer) = self.block.env.watch.observer::<O>() {
            observer.synchronise(&self.who(self.span), &event());
        }
    }

    #[inline(always)]
    fn heap_changed<O: Observer>(&self, event: impl FnOnce() -> HeapEvent) {
        if let Some(observer) = self.block.env.watch.observer::<O>() {
            observer.heap(&self.who(self.span), &event());
        }
    }
}

/// A fault as an operation reports it: the tier adds where.
#[derive(Debug)]
pub struct RawFault {
    pub cause: Cause,
    /// Lane of the bundle.
    pub lane: usize,
}

impl RawFault {
    /// Where the instruction names a window, the address counts from its start.
    #[cold]
    fn illegal(address: u64, bytes: u64, write: bool, lane: usize, space: Space) -> RawFault {
        let cause = Cause::IllegalAddress {
            address,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            write,
            space,
        };
        RawFault { cause, lane }
    }

    #[cold]
    fn misaligned(address: u64, bytes: u64, lane: usize) -> RawFault {
        RawFault {
            cause: Cause::Misaligned {
                address,
                bytes: bytes as u32,
            },
            lane,
        }
    }

    #[cold]
    pub fn instruction(why: String, lane: usize) -> RawFault {
        RawFault {
            cause: Cause::IllegalInstruction { why },
            lane,
        }
    }
}

/// Loads and stores, as functions of element, slot and strength.
pub type Loads = fn(Element, Option<Width>, Ordering) -> AccessFn;
pub type Stores = fn(Element, Width, Ordering) -> AccessFn;
/// What an operation came to: nothing, or a fault.
pub type Outcome = Option<RawFault>;

/// Carries out a system call whose arguments and results lie in the frame of a callee.
pub type SyscallFn = fn(Syscall, &[Copy3], &[Copy3], &mut Cx<'_, '_>) -> Result<(), RawFault>;

/// The operations that touch memory or synchronise, made for one observer. Slots that are passed lie in the running
/// window; what is `unsafe` counts on that, and on nothing else.
pub struct Operations {
    /// Somebody looks: a tier then takes no short cut around an operation.
    pub watched: bool,
    pub load: Loads,
    pub store: Stores,
    pub atomic: fn(AtomicOp, AtomicType) -> AtomicFn,
    pub copy_async: unsafe fn(&mut Cx<'_, '_>, &copy::Copy<'_>) -> Outcome,
    pub texture: unsafe fn(&TextureOp<Slot>, &mut Cx<'_, '_>) -> Outcome,
    pub surface: unsafe fn(&SurfaceOp<Slot>, &mut Cx<'_, '_>) -> Outcome,
    pub query: unsafe fn(&mut Cx<'_, '_>, Slot, Attribute, Option<Slot>, Slot) -> Outcome,
    pub is_handle: unsafe fn(&mut Cx<'_, '_>, Opaque, Slot, Slot) -> Outcome,
    pub syscall: SyscallFn,
    pub fence: fn(&Cx<'_, '_>, Ordering, Option<Scope>, Proxy),
    /// Lanes of the mask have come to a barrier of the block; whether they wait.
    pub arrive: fn(&Cx<'_, '_>, u32, bool),
    pub warp_barrier: unsafe fn(&Cx<'_, '_>, Value<Slot>),
    /// Pieces of one frame of the local window to another, for the lanes of the mask.
    pub copy_frame: fn(&Cx<'_, '_>, &[u32; MAX_WARPS], &[Copy3], frame::Between),
    grid: fn(&Watch, u64, &GridEvent),
}

impl Operations {
    pub const fn of<O: Observer>() -> &'static Operations {
        const {
            &Operations {
                watched: O::WATCHES,
                load: transfer::load_fn::<O>,
                store: transfer::store_fn::<O>,
                atomic: atomic::function::<O>,
                copy_async: copy::copy_async::<O>,
                texture: texture::fetch::<O>,
                surface: surface::access::<O>,
                query: texture::query,
                is_handle: texture::is_handle,
                syscall: syscall::call::<O>,
                fence: warp::fence::<O>,
                arrive: warp::arrive::<O>,
                warp_barrier: warp::warp_barrier::<O>,
                copy_frame: frame::copy::<O>,
                grid: observe::grid::<O>,
            }
        }
    }
}

pub use copy::Copy;

/// Lanes of a bundle.
const LANES: usize = MAX_WARPS * WARP;
