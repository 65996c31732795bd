//! Who looks on: an observer sees every access to memory, everything that synchronises, and the life of memory.
//!
//! Operations are compiled twice, with and without the code that tells: `WATCHED` is a constant of theirs, and a grid
//! that nobody watches pays for nothing. One that is watched has its accesses told warp by warp, and those of whole warps whose lanes
//! touch what lies side by side as one.

use std::ops::Range;
use std::sync::Arc;

use crate::isa::floats::Floats;
use crate::isa::joint::fabric::Submit;
use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::program::{Compute, CopyGroup, Decision, Function, Ordering, Proxy, Register, Scope, Space};
use crate::ptx::ast::Span;

pub use super::mbarrier::Mbarrier;
pub use super::uses::{Elsewhere, ProductEvent, Use};

/// Sees what kernels do. It is asked by all workers of a grid at once.
pub trait Observer: Send + Sync + 'static {
    /// Lanes of one warp touch memory; every check has passed.
    fn access(&self, _by: &Who<'_>, _access: &Access<'_>) {}
    /// All lanes of some warps touch memory in rows.
    fn rows(&self, by: &Who<'_>, rows: &RowAccess<'_>) {
        for warp in 0..rows.warps {
            rows.of_warp(warp, |access| self.access(by, access));
        }
    }
    /// The strong read, or the atomic, of which [`Self::access`] told is done.
    fn has_read(&self, _by: &Who<'_>, _access: &Access<'_>) {}
    /// Some lanes synchronise with others, or with copies of their own.
    fn synchronise(&self, _by: &Who<'_>, _event: &SyncEvent) {}
    /// Something begins or ends for a whole block or grid, or is done on its behalf.
    fn grid(&self, _grid: u64, _event: &GridEvent) {}
    /// Lanes of one warp have computed with floats, and something may be wrong with what came out (`MARGAY_CHECK=fp`).
    fn computed(&self, _by: &Who<'_>, _computed: &Computed<'_>) {}
    /// Why the grid is to end that it looks at, if nothing else will end it.
    fn gives_up(&self) -> Option<String> {
        None
    }
    /// Whether it wants to be told now how warps stand ([`Self::stands`]).
    fn follows_stands(&self) -> bool {
        false
    }
    /// All that these warps of a block do next follows from what this number stands for, and from memory that others may write.
    fn stands(&self, _block: [u32; 3], _warps: Range<usize>, _stand: u64) {}
    /// Some lanes meet bits that nobody has written, where the program has shadows.
    fn undefined(&self, _by: &Who<'_>, _event: &Undefined<'_>) {}
    /// A lane copies: bytes at the second address, of whose being written [`Self::access`] tells, are those at the first.
    fn copied(&self, _by: &Who<'_>, _lane: usize, _from: u64, _to: u64, _bytes: u64) {}
    /// Whether it wants to be told how instructions are used ([`SyncEvent::Use`]).
    fn follows_uses(&self) -> bool {
        false
    }
    /// Whether it wants to be told of loads and stores. If nobody does, they keep their quick ways.
    fn follows_accesses(&self) -> bool {
        true
    }
    /// A kernel allocates or frees. What the host does is told by [`crate::memory::life`].
    fn heap(&self, _by: &Who<'_>, _event: &HeapEvent) {}
}

/// Who does something, and by which instruction.
pub struct Who<'a> {
    pub grid: u64,
    pub block: [u32; 3],
    /// Linear index in the block of lane 0 of the bundle.
    pub first_thread: u32,
    /// The running function, and where its text has the instruction.
    pub function: &'a Function,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    Read,
    Write,
    /// Reads and writes as one.
    Atomic,
}

/// One instruction's access for lanes of one warp.
pub struct Access<'a> {
    /// Warp of the bundle.
    pub warp: usize,
    pub lanes: u32,
    /// Of the lanes that take part; as the process knows them, also where the instruction counts from a window's start.
    pub addresses: &'a [u64; WARP],
    /// Bytes that each lane touches.
    pub bytes: u32,
    /// Bytes of each of the elements that these are: an access of a vector is one for each element (PTX ISA, Memory Consistency
    /// Model: Vector Data-types).
    pub element: u32,
    /// As the instruction says.
    pub space: Space,
    pub direction: Direction,
    pub ordering: Ordering,
    pub scope: Option<Scope>,
    pub proxy: Proxy,
    /// The asynchronous operation that makes it, some time between [`SyncEvent::Begin`] and [`GridEvent::Complete`].
    pub operation: Option<u64>,
    /// Of a store: what is about to be written.
    pub stored: Option<&'a Stored<'a>>,
    /// Of `atom` and `red`.
    pub atomic: Option<Atomic>,
}

/// What there is to know of an atomic besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atomic {
    /// Nobody looks at what it finds: a `red`, or no more than one.
    pub is_blind: bool,
    /// A compare-and-swap, which writes only if it finds what it compares with.
    pub is_swap: bool,
    /// Of one that is done: lanes that have found something else.
    pub failed: u32,
}

/// What lanes of a warp have computed.
pub struct Computed<'a> {
    pub op: &'a Compute,
    pub floats: &'a Floats,
    /// Warp of the bundle.
    pub warp: usize,
    /// Lanes with which something may be wrong.
    pub lanes: u32,
    /// The first destination; of conversions to integers, the source.
    pub results: &'a [u64; WARP],
    /// So many sources, as they were before.
    pub sources: &'a [[u64; WARP]; 4],
    pub count: usize,
}

/// Puts into the bytes what a lane stores.
pub type Stored<'a> = dyn Fn(usize, &mut [u8]) + 'a;

/// Bits that nobody has written.
pub enum Undefined<'a> {
    /// Lanes of one warp have loaded some, from so many bytes at their addresses.
    Loaded {
        warp: usize,
        lanes: u32,
        addresses: &'a [u64; WARP],
        bytes: u32,
        space: Space,
    },
    /// Lanes of one warp store some, among so many bytes at their addresses.
    Stored {
        warp: usize,
        lanes: u32,
        addresses: &'a [u64; WARP],
        bytes: u32,
    },
    /// Lanes of one warp have elements of a product of which some are missing: from which of the instruction's sources each lane has
    /// its first, and which lane holds that.
    Multiplied {
        warp: usize,
        lanes: u32,
        sources: &'a [(u8, u8); WARP],
    },
    /// Something depends on them, in lanes of one warp, which a register of the running function holds.
    Decides {
        warp: usize,
        lanes: u32,
        decision: Decision,
        register: Register,
    },
}

/// Cells of tensor memory have no addresses that anybody else has: a bit tells these from others.
const CELL: u64 = 1 << 63;

/// From the first place of a block's cells to behind the last.
pub const CELLS: u64 = 1 << 18;

/// A place that stands for a cell of tensor memory, of the block whose shared window is this.
pub fn cell(window: u64, lane: usize, column: usize) -> u64 {
    CELL | window >> 12 << 18 | ((lane << 9 | column) << 2) as u64
}

/// The lane and the column, if the place stands for a cell.
pub fn cell_of(address: u64) -> Option<(u32, u32)> {
    let number = address >> 2;
    (address & CELL != 0).then_some((number as u32 >> 9 & 127, number as u32 & 511))
}

/// One instruction's weak access for all lanes of some warps of the bundle, in runs of lanes that follow each other by the same step.
pub struct RowAccess<'a> {
    /// The first of those warps, and how many there are.
    pub warp: usize,
    pub warps: usize,
    /// Of the first lane of each run.
    pub firsts: &'a [u64],
    /// How many lanes each run has: all of them, or a power of two up to a warp.
    pub lanes: usize,
    /// From one lane of a run to the next.
    pub step: u64,
    pub bytes: u32,
    pub element: u32,
    pub space: Space,
    pub direction: Direction,
    /// Of a store: lanes count from the first of these.
    pub stored: Option<&'a Stored<'a>>,
}

impl RowAccess<'_> {
    /// The address of a lane, counted from the first of these.
    #[inline(always)]
    pub fn address(&self, lane: usize) -> u64 {
        let (run, lane) = match self.firsts {
            [_] => (0, lane),
            _ => (lane >> self.lanes.trailing_zeros(), lane & (self.lanes - 1)),
        };
        self.firsts[run].wrapping_add(self.step.wrapping_mul(lane as u64))
    }

    /// The part of a warp, counted from the first of these.
    pub fn of_warp<T>(&self, warp: usize, act: impl FnOnce(&Access<'_>) -> T) -> T {
        let lane = warp * WARP;
        let stored = self
            .stored
            .map(|stored| move |own: usize, out: &mut [u8]| stored(lane + own, out));
        act(&Access {
            warp: self.warp + warp,
            lanes: u32::MAX,
            addresses: &std::array::from_fn(|own| self.address(lane + own)),
            bytes: self.bytes,
            element: self.element,
            space: self.space,
            direction: self.direction,
            ordering: Ordering::Weak,
            scope: None,
            proxy: Proxy::Generic,
            operation: None,
            stored: stored.as_ref().map(|stored| stored as &Stored<'_>),
            atomic: None,
        })
    }
}

/// What orders a lane's accesses against those of others. Masks are of the bundle's warps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncEvent {
    /// Lanes come to a barrier of the block, and wait there or go on.
    Arrive {
        barrier: u32,
        lanes: [u32; MAX_WARPS],
        waits: bool,
    },
    /// `bar.warp.sync`: by lane of one warp, the members that it waits for.
    Warp { warp: usize, members: [u32; WARP] },
    /// Another `.sync` instruction of a warp, likewise: members meet there, and memory is not promised to be in order.
    Collective { warp: usize, members: [u32; WARP] },
    /// As [`Self::Warp`], or else as [`Self::Collective`], for several warps: each of these lanes names all those of its warp.
    Together { lanes: [u32; MAX_WARPS], is_barrier: bool },
    Fence {
        lanes: [u32; MAX_WARPS],
        ordering: Ordering,
        scope: Option<Scope>,
        proxy: Proxy,
    },
    /// `cp.async`: copies of these lanes become a group, or have been waited for.
    Copies { lanes: [u32; MAX_WARPS], group: CopyGroup },
    /// `barrier.cluster.arrive`; unless `relaxed`, it releases what these lanes have done.
    ClusterArrive { lanes: [u32; MAX_WARPS], relaxed: bool },
    /// `barrier.cluster.wait` of lanes that go on behind it.
    ClusterWait { lanes: [u32; MAX_WARPS] },
    /// Likewise of bulk copies; with `read`, only their sources are free again.
    BulkCopies {
        lanes: [u32; MAX_WARPS],
        group: CopyGroup,
        read: bool,
    },
    /// Lanes of one warp begin something that goes on without them. Its accesses are told now, by the instruction that
    /// began it, with this number; they are made until its end is told ([`GridEvent::Complete`]), and nobody may count on
    /// them before he has seen that end in the way that `completes` names.
    Begin {
        operation: u64,
        warp: usize,
        lanes: u32,
        completes: Completes,
    },
    /// Lanes of one warp do something to barriers in memory, at these addresses.
    Mbarrier {
        warp: usize,
        lanes: u32,
        addresses: [u64; WARP],
        /// By lane, the parity of the current phase behind it, where the object is still there.
        parities: u32,
        ordering: Ordering,
        scope: Option<Scope>,
        what: MbarrierEvent,
    },
    /// Lanes let their fabric operations go on, or wait until those have read their sources.
    Fabric { lanes: [u32; MAX_WARPS], what: FabricEvent },
    /// The context is asked for something: output, memory, launches.
    HostCall { lanes: [u32; MAX_WARPS] },
    /// How an instruction is used; it puts nothing in order.
    Use(Use),
}

/// How the end of an asynchronous operation is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completes {
    /// By a group of `cp.async`, or an arrival that `cp.async.mbarrier.arrive` asks for.
    Group,
    /// By a group of bulk copies.
    BulkGroup,
    /// By the phase of the mbarrier at this address, which counts so many bytes, or units of 16 bytes where something is
    /// written to logical endpoints.
    Bytes { barrier: u64, bytes: u32 },
    /// By the phase of the mbarrier at this address, at which it arrives.
    Arrival { barrier: u64 },
    /// By nothing but the kernel's end, or what follows in the order of its kind.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricEvent {
    /// Until then nothing of an operation happens.
    Submit(Submit),
    /// But for so many groups.
    WaitReads(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MbarrierEvent {
    Init,
    Invalidate,
    /// More bytes are to come.
    Expect,
    /// Bytes have come.
    Complete,
    /// These lanes are about to arrive.
    Arriving,
    /// They have.
    Arrive,
    /// An arrival is asked for, when the thread's copies (`cp.async`) are complete.
    CopiesArrive,
    /// These lanes found the phase over, of those that looked.
    Look {
        over: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GridEvent {
    /// An asynchronous operation has been done, for these lanes of the warp that began it.
    Complete {
        block: [u32; 3],
        operation: u64,
        lanes: u32,
    },
    Launch,
    End,
    /// A block starts; its windows hold nothing that it may count on.
    Block {
        block: [u32; 3],
        /// Start and bytes.
        shared: (u64, u64),
        local: (u64, u64),
        /// Bytes of each lane's part of the local window.
        local_stride: u32,
    },
    /// All threads that barrier `barrier` of a block waited for have come.
    Release {
        block: [u32; 3],
        barrier: u32,
    },
    BlockEnd {
        block: [u32; 3],
    },
    /// A block has ended, or all of a cluster, of which this is one: the barriers that it leaves in shared memory, by address.
    Left {
        block: [u32; 3],
        barriers: Vec<(u64, Mbarrier)>,
    },
    /// All threads of a cluster have come to its barrier.
    ClusterRelease {
        /// The cluster's first block, and how many it has in each dimension.
        first: [u32; 3],
        shape: [u32; 3],
    },
    /// A row of a copy or fill that a kernel of the grid has put in line, before it is done.
    Transfer {
        address: u64,
        bytes: u64,
        direction: Direction,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeapEvent {
    Allocate { lane: usize, address: u64, bytes: u64 },
    Free { lane: usize, address: u64 },
}

/// The observer of a grid, if it has one.
#[derive(Clone, Default)]
pub struct Watch {
    observer: Option<Arc<dyn Observer>>,
    /// It wants to be told how instructions are used.
    uses: bool,
}

/// Two observers of one grid, told one after the other.
struct Both(Arc<dyn Observer>, Arc<dyn Observer>);

impl Observer for Both {
    fn access(&self, by: &Who<'_>, access: &Access<'_>) {
        self.0.access(by, access);
        self.1.access(by, access);
    }
    fn rows(&self, by: &Who<'_>, rows: &RowAccess<'_>) {
        self.0.rows(by, rows);
        self.1.rows(by, rows);
    }
    fn has_read(&self, by: &Who<'_>, access: &Access<'_>) {
        self.0.has_read(by, access);
        self.1.has_read(by, access);
    }
    fn synchronise(&self, by: &Who<'_>, event: &SyncEvent) {
        self.0.synchronise(by, event);
        self.1.synchronise(by, event);
    }
    fn grid(&self, grid: u64, event: &GridEvent) {
        self.0.grid(grid, event);
        self.1.grid(grid, event);
    }
    fn computed(&self, by: &Who<'_>, computed: &Computed<'_>) {
        self.0.computed(by, computed);
        self.1.computed(by, computed);
    }
    fn gives_up(&self) -> Option<String> {
        self.0.gives_up().or_else(|| self.1.gives_up())
    }
    fn follows_stands(&self) -> bool {
        self.0.follows_stands() || self.1.follows_stands()
    }
    fn stands(&self, block: [u32; 3], warps: Range<usize>, stand: u64) {
        self.0.stands(block, warps.clone(), stand);
        self.1.stands(block, warps, stand);
    }
    fn heap(&self, by: &Who<'_>, event: &HeapEvent) {
        self.0.heap(by, event);
        self.1.heap(by, event);
    }
    fn undefined(&self, by: &Who<'_>, event: &Undefined<'_>) {
        self.0.undefined(by, event);
        self.1.undefined(by, event);
    }
    fn copied(&self, by: &Who<'_>, lane: usize, from: u64, to: u64, bytes: u64) {
        self.0.copied(by, lane, from, to, bytes);
        self.1.copied(by, lane, from, to, bytes);
    }
    fn follows_uses(&self) -> bool {
        self.0.follows_uses() || self.1.follows_uses()
    }
    fn follows_accesses(&self) -> bool {
        self.0.follows_accesses() || self.1.follows_accesses()
    }
}

impl Watch {
    pub fn new(observer: Arc<impl Observer>) -> Watch {
        Watch {
            uses: observer.follows_uses(),
            observer: Some(observer),
        }
    }

    /// One more looks on.
    pub fn add(&mut self, observer: Arc<impl Observer>) {
        self.uses |= observer.follows_uses();
        self.observer = Some(match self.observer.take() {
            None => observer,
            Some(first) => Arc::new(Both(first, observer)),
        });
    }

    pub fn observer(&self) -> Option<&dyn Observer> {
        self.observer.as_deref()
    }

    /// The observer, if it wants to be told how instructions are used.
    #[inline(always)]
    pub fn observer_of_uses(&self) -> Option<&dyn Observer> {
        self.observer().filter(|_| self.uses)
    }

    /// Tells of what concerns a whole grid or block.
    pub fn grid(&self, grid: u64, event: &GridEvent) {
        if let Some(observer) = self.observer() {
            observer.grid(grid, event);
        }
    }
}
