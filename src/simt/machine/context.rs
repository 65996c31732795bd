//! What an operation sees of the world while it runs: its lanes and their registers, the block with its windows, and
//! the grid around it.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::isa::lanes::{MAX_WARPS, Mask, WARP};
use crate::memory::View;
use crate::program::{Function, Space};
use crate::ptx::ast::Span;
use crate::simt::cause::Cause;
use crate::simt::launch::Launch;
use crate::tile;

use super::observe::{HeapEvent, SyncEvent, Use, Watch, Who};
use super::queue::Queue;

/// Marks an absent slot or guard in a field that is otherwise an offset.
pub const NONE: u32 = u32::MAX;

/// Lanes of a bundle.
pub const LANES: usize = MAX_WARPS * WARP;

/// What operations ask of the grid around a block.
pub trait Surroundings: Sync {
    fn launch(&self) -> &Launch;
    /// The kernel that was launched.
    fn kernel(&self) -> &Function;
    /// Who looks on.
    fn watch(&self) -> &Watch;
    /// The number of a block, in the order in which they start.
    fn block_number(&self, ctaid: [u32; 3]) -> u64;
    /// What its kernels have put in line.
    fn queue(&self) -> &Queue;
    /// Whether what is in line can run here and now.
    fn can_wait(&self) -> bool;
    /// Runs what is in line, to its end; `false`: it failed, and the grid ends with that.
    fn wait(&self) -> bool;
    /// Takes a block or a cluster from those of the grid that have not started, which then never do: its first block.
    fn cancel(&self) -> Option<[u32; 3]>;
    /// Tile blocks that have had a turn and are not through, by their numbers.
    fn tile_blocks(&self) -> &Mutex<HashMap<u64, TileBlock>>;
    /// A number below `n`, drawn; `None`: nothing is, for want of a seed.
    fn draw(&self, n: u64) -> Option<u64>;
    /// Whether what goes on asynchronously ends as soon as it can, or as late; `None`: that is drawn, if anything is.
    fn completes(&self) -> Option<bool> {
        None
    }
}

/// A block as its lanes see it, in a grid of which those who run it know more than its operations do ([`Env`]).
pub struct BlockEnv<G: ?Sized> {
    pub view: View,
    pub ctaid: [u32; 3],
    /// Which of the places for blocks this one runs in: what `%smid` reads.
    pub seat: u32,
    /// Shared window: address, bytes that the kernel has, bytes that count as shared for `isspacep`.
    pub shared: u64,
    pub shared_bytes: u32,
    pub shared_window: u32,
    /// Which of its cluster's blocks it is, of how many ([`super::peers`]), and those that have ended, by bit. A block without
    /// a cluster is the only one of its own.
    pub rank: u32,
    pub peers: u32,
    pub gone: u32,
    /// Local window of thread 0; thread `t` has `[local + t·stride, …)`.
    pub local: u64,
    pub local_stride: u32,
    pub local_bytes: u64,
    /// The launch's parameter block.
    pub param: u64,
    pub param_bytes: u32,
    pub env: G,
}

/// A block in any grid.
pub type Env<'l> = BlockEnv<dyn Surroundings + 'l>;

/// Lanes of the shortest runs through which values follow the lane's number.
pub const SHORTEST_RUN: usize = 8;
/// As many as a bundle has of these.
pub const MAX_RUNS: usize = LANES / SHORTEST_RUN;

/// A value that follows the lane's number: in lane `l` of run `r`, `base[r] + step · l`, modulo 2^64 or 2^32. A run is
/// the whole bundle, or a warp of it, or part of one ([`Cx::run`]).
#[derive(Clone, Copy, Default)]
pub struct Line {
    pub base: [u64; MAX_RUNS],
    pub step: u64,
    /// Of an address, the least and the greatest base of the runs that there are.
    pub low: u64,
    pub high: u64,
    /// The bits of what any base of them has more than the first one: all are multiples of a power of two if one of them is, and
    /// these bits are.
    pub spread: u64,
}

impl Line {
    /// Looks at the bases of so many runs, for whoever makes addresses of them.
    #[inline(always)]
    pub fn look_at_bases(&mut self, runs: usize) {
        let bases = &self.base[..runs];
        let (mut low, mut high, mut spread) = (u64::MAX, 0, 0);
        for &base in bases {
            (low, high) = (low.min(base), high.max(base));
            spread |= base.wrapping_sub(bases[0]);
        }
        (self.low, self.high, self.spread) = (low, high, spread);
    }
}

/// Lanes of a bundle, with what an operation needs to know of them.
pub struct Cx<'a> {
    /// Register window of the running frame.
    pub regs: *mut u8,
    /// Lanes that carry out the operation.
    pub mask: Mask,
    pub block: &'a Env<'a>,
    /// Linear index in the block of the bundle's first thread.
    pub first_thread: u32,
    /// Where the running frame starts in a lane's local window.
    pub frame: u32,
    /// The bundle's values that follow the lane's number, for accesses that name one.
    pub affine: *const Line,
    /// Lanes of the runs through which those count: 8, 16, 32, or [`LANES`] for the whole bundle.
    pub run: usize,
    /// It goes ahead without what it waits for: nobody else gets on, or it has waited for long.
    pub forced: bool,
    pub fault: Option<RawFault>,
    /// The running function, and the instruction where an operation does not bring its own; for observers.
    pub function: &'a Function,
    pub span: Span,
    /// The asynchronous operation whose accesses are told; for observers.
    pub operation: Option<u64>,
}

impl<'a> Cx<'a> {
    /// Start of a lane's local window.
    #[inline(always)]
    pub fn local(&self, lane: usize) -> u64 {
        self.block.local + (u64::from(self.first_thread) + lane as u64) * u64::from(self.block.local_stride)
    }

    /// The number of the bundle's first warp in the block.
    pub fn first_warp(&self) -> usize {
        self.first_thread as usize / WARP
    }

    pub fn launch(&self) -> &'a Launch {
        self.block.env.launch()
    }

    pub(in crate::simt) fn who(&self, span: Span) -> Who<'a> {
        Who {
            grid: self.launch().grid_id,
            block: self.block.ctaid,
            first_thread: self.first_thread,
            function: self.function,
            span,
        }
    }

    /// Tells the observer of what synchronises lanes.
    #[inline(always)]
    pub(in crate::simt) fn synchronised<const WATCHED: bool>(&self, event: impl FnOnce() -> SyncEvent) {
        if WATCHED && let Some(observer) = self.block.env.watch().observer() {
            observer.synchronise(&self.who(self.span), &event());
        }
    }

    /// Tells the observer how an instruction is used, if it wants to know.
    #[inline(always)]
    pub(in crate::simt) fn used<const WATCHED: bool>(&self, how: impl FnOnce() -> Use) {
        if WATCHED && let Some(observer) = self.block.env.watch().observer_of_uses() {
            observer.synchronise(&self.who(self.span), &SyncEvent::Use(how()));
        }
    }

    /// Tells the observer of a lane's copy: bytes at the second address, which it was told are written, are those at the first.
    #[inline(always)]
    pub(in crate::simt) fn copied<const WATCHED: bool>(&self, lane: usize, from: u64, to: u64, bytes: u64) {
        if WATCHED && let Some(observer) = self.block.env.watch().observer() {
            observer.copied(&self.who(self.span), lane, from, to, bytes);
        }
    }

    #[inline(always)]
    pub(super) fn heap_changed<const WATCHED: bool>(&self, event: impl FnOnce() -> HeapEvent) {
        if WATCHED && let Some(observer) = self.block.env.watch().observer() {
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
    /// Other lanes of its warp that are wrong in the same way, as far as anybody has looked.
    pub others: u32,
}

/// A block of a kernel over tiles between two turns of it.
pub struct TileBlock {
    pub run: Box<tile::Run>,
    /// What its last operation came to; it is reported where that operation stands.
    pub fault: Option<RawFault>,
}

/// What an operation came to: nothing, or a fault.
pub type Outcome = Option<RawFault>;

impl RawFault {
    pub fn new(cause: Cause, lane: usize) -> RawFault {
        RawFault { cause, lane, others: 0 }
    }

    /// Where the instruction names a window, the address counts from its start.
    #[cold]
    pub(super) fn illegal(address: u64, bytes: u64, write: bool, lane: usize, space: Space) -> RawFault {
        let cause = Cause::IllegalAddress {
            address,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            write,
            space,
        };
        RawFault::new(cause, lane)
    }

    #[cold]
    pub(super) fn misaligned(address: u64, bytes: u64, lane: usize) -> RawFault {
        RawFault::new(
            Cause::Misaligned {
                address,
                bytes: bytes as u32,
            },
            lane,
        )
    }

    /// What is to reach all members of a team, by an address that stands for none.
    #[cold]
    pub(super) fn no_team(address: u64, bytes: u64, lane: usize) -> RawFault {
        let why = format!("multimem of {bytes} bytes at {address:#x}, which is no multicast address");
        RawFault::misuse(why, lane)
    }

    #[cold]
    pub fn misuse(why: String, lane: usize) -> RawFault {
        RawFault::new(Cause::Misuse { why }, lane)
    }

    #[cold]
    pub fn instruction(why: String, lane: usize) -> RawFault {
        RawFault::new(Cause::IllegalInstruction { why }, lane)
    }
}
