//! The operations of the representation: what an instruction does, with typed fields, over any kind of register.
//!
//! [`Op`] is generic over `R`, the name of a value: a virtual register ([`Reg`]) in the representation, a place in a
//! window of registers in the interpreter's code. Nobody else lists the operations: a new one is a compile error in the
//! walk over registers (`visit`), in its effects (`effects`), in its printed form (`show`) and in each tier.

use arrayvec::ArrayVec;

use super::shadow::ShadowOp;
use super::texture::{Attribute, Opaque, SurfaceOp, TextureOp};
use crate::isa::Compute;
use crate::isa::joint::Joint;
use crate::isa::lanes::Width;
pub use crate::isa::operation::{AtomicOp, AtomicType, BarrierOp, ReduxOp, ShuffleMode, VoteMode};
use crate::program::runtime::{Generation, RuntimeCall};
use crate::ptx::ast::Span;

/// A virtual register's number.
pub type Register = u32;

/// A virtual register with its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reg {
    pub number: Register,
    pub width: Width,
}

/// The instruction runs in the lanes in which predicate `reg` is set (or clear, if `negated`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard<R = Reg> {
    pub reg: R,
    pub negated: bool,
}

/// An operation with its guard and where it comes from.
#[derive(Clone, Debug)]
pub struct Inst<R = Reg> {
    pub guard: Option<Guard<R>>,
    pub op: Op<R>,
    /// Where in the PTX text; faults and traces name it.
    pub span: Span,
    /// Place in the source by `.loc`: (file, line), if any.
    pub line: Option<(u32, u32)>,
}

/// Spaces as tiers distinguish them. Const and global addresses are generic addresses; shared and local ones
/// are 32-bit offsets into the block's and the lane's window; `Param` is the kernel's parameter block, by offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    Generic,
    Global,
    Const,
    Shared,
    Local,
    /// Kernel parameters: offset into the launch's parameter block.
    Param,
}

/// A memory operand: `[register + offset]`. Without a register the offset is the address itself: absolute for generic,
/// global and const, from the start of the block's window for shared, of the *running frame* for local, of the
/// parameter block for param. With a register, shared and local addresses count from the window's start
/// ([`Op::FrameAddress`] makes those of locals).
#[derive(Clone, Copy, Debug)]
pub struct Address<R = Reg> {
    pub space: Space,
    /// 64 or 32 bits wide.
    pub register: Option<R>,
    pub offset: i64,
}

impl<R> Address<R> {
    /// Where in the running frame it lies, if it names no register.
    pub fn in_frame(&self) -> Option<u32> {
        let is_direct = self.space == Space::Local && self.register.is_none();
        is_direct.then(|| u32::try_from(self.offset).ok()).flatten()
    }
}

/// What an element of a memory access is, and how it becomes a register value and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Element {
    /// 1, 2, 4, 8 or 16 bytes.
    pub bytes: u8,
    /// Loads into a wider register extend by sign; otherwise by zero.
    pub signed: bool,
}

/// How strongly an access or a fence is ordered (PTX ISA, Memory Consistency Model).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ordering {
    #[default]
    Weak,
    Volatile,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    /// `fence.sc` and `membar` alone.
    Sc,
}

/// Scopes: on one machine all see an access alike; observers want to know.
pub use crate::isa::types::Scope;

/// By which way an access goes to memory (PTX ISA, Proxies).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proxy {
    Generic,
    /// Another virtual address of the same memory.
    Alias,
    Async,
    /// Of global memory alone: of fences.
    AsyncGlobal,
    /// Of shared memory alone, likewise.
    AsyncShared,
    Tensormap,
    Texture,
    Surface,
    /// By a logical endpoint.
    Fabric,
}

/// A special register that is not constant for a launch or a block, read where it stands, or needed at set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Special {
    // the same for a whole launch
    Ntid(u8), Nctaid(u8), Nwarpid, Nsmid, Gridid, CurrentGraphExec, Envreg(u8), DynamicSmemSize, TotalSmemSize, AggrSmemSize,
    ReservedSmem(u8), NclusterId(u8), ClusterNctaid(u8), ClusterNctarank, IsExplicitCluster,
    // a block's, warp's or lane's own, constant while it lives
    Ctaid(u8), Tid(u8), Laneid, Warpid, Smid, LanemaskEq, LanemaskLt, LanemaskLe, LanemaskGt, LanemaskGe,
    ClusterId(u8), ClusterCtaid(u8), ClusterCtarank,
    // where the running kernel's shared memory holds that variable of the module ([`Function::shared`]), as an address
    SharedBase(u32),
    // the address of a byte of the block's own shared memory: its offset, and in the bits above 24 which of its cluster's
    // blocks it is
    SharedAddress(i32),
    // change from one reading to the next
    Clock, ClockHi, Clock64, Globaltimer, GlobaltimerLo, GlobaltimerHi, Pm(u8), Pm64(u8),
}

/// For how long a special register keeps its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lasting {
    Launch,
    /// As long as the thread lives.
    Thread,
    Moment,
}

impl Special {
    #[rustfmt::skip]
    fn lasting(self) -> Lasting {
        use Special::*;
        match self {
            Ntid(_) | Nctaid(_) | Nwarpid | Nsmid | Gridid | CurrentGraphExec | Envreg(_) | DynamicSmemSize
            | TotalSmemSize | AggrSmemSize | ReservedSmem(_) | NclusterId(_) | ClusterNctaid(_) | ClusterNctarank
            | IsExplicitCluster | SharedBase(_) | SharedAddress(_) => Lasting::Launch,
            Ctaid(_) | Tid(_) | Laneid | Warpid | Smid | LanemaskEq | LanemaskLt | LanemaskLe | LanemaskGt | LanemaskGe
            | ClusterId(_) | ClusterCtaid(_) | ClusterCtarank => Lasting::Thread,
            Clock | ClockHi | Clock64 | Globaltimer | GlobaltimerLo | GlobaltimerHi | Pm(_) | Pm64(_) => Lasting::Moment,
        }
    }
    /// The same value in every lane of every block that runs in one place: blocks of a cluster keep their ranks.
    pub fn is_launch_constant(self) -> bool {
        self.lasting() == Lasting::Launch
    }
    /// Must be read where the instruction stands.
    pub fn is_volatile(self) -> bool {
        self.lasting() == Lasting::Moment
    }
}

/// What becomes of a thread's asynchronous copies (PTX ISA, cp.async.commit_group, cp.async.wait_group).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyGroup {
    /// Those since the last group become one.
    Commit,
    /// All groups but the last so many are to be complete.
    Wait(u32),
    /// All copies are, those of no group too.
    WaitAll,
}

/// An instruction of [`Joint`], with its operands in the order in which its family's lowering puts them.
#[derive(Clone, Debug)]
pub struct JointOp<R = Reg> {
    pub what: Joint,
    pub addresses: Box<[Address<R>]>,
    pub src: Box<[R]>,
    /// `None`: `_`.
    pub dst: Box<[Option<R>]>,
    /// What its operands were made from by which it reaches memory, where that is known, and only the operation itself knows how
    /// far it reaches: by its addresses, or its descriptors of A and B and then addresses in tensor memory. Empty, but where
    /// accesses are checked to the variable.
    pub objects: Box<[Option<Object<R>>]>,
}

/// What an operand of an operation was made from that itself knows how far it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object<R = Reg> {
    /// Holds its address.
    pub base: R,
    pub what: ObjectKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// As of [`MadeFrom::Shared`].
    Shared { bytes: Option<u32> },
    /// As of [`MadeFrom::Pointer`].
    Pointer { parameter: Option<u32> },
    /// Columns of tensor memory, as `tcgen05.alloc` gave them.
    Columns,
}

/// Accesses by one register, one after the other, and the object from whose address the register's was made.
#[derive(Clone, Debug)]
pub struct Within<R = Reg> {
    pub space: Space,
    pub register: R,
    pub from: MadeFrom<R>,
    pub accesses: Box<[Reached]>,
}

impl<R> Within<R> {
    /// From where behind the register's address to where all accesses together reach. `None`: there are none, or they reach
    /// around the address space.
    pub fn span(&self) -> Option<(i64, i64)> {
        let mut span: Option<(i64, i64)> = None;
        for reached in &self.accesses {
            let end = reached.offset.checked_add(reached.bytes.into())?;
            let (low, high) = span.unwrap_or((reached.offset, end));
            span = Some((low.min(reached.offset), high.max(end)));
        }
        span
    }
}

/// What an access reaches: so many bytes, from so many behind its register's address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    pub offset: i64,
    pub bytes: u32,
    pub write: bool,
    /// Of the instruction.
    pub span: Span,
}

/// What an address was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeFrom<R = Reg> {
    /// The shared variable whose address `base` holds, in the shared space. `None`: dynamic shared memory.
    Shared { base: R, bytes: Option<u32> },
    /// Bytes of the running frame.
    Frame { offset: u32, bytes: u32 },
    /// What an `alloca` took, whose address and bytes these registers hold.
    Block { base: R, size: R },
    /// A parameter of the kernel, by its place among them.
    Parameter { offset: u32, bytes: u32 },
    /// The allocation into which `base` points, if it does: the kernel's parameter at this offset, or a variable of the
    /// module.
    Pointer { base: R, parameter: Option<u32> },
    /// Not known; what lies in the thread's local memory, lies in no frame that has been left.
    Unknown,
}

/// What an instruction does, decided as far as it can be before anything runs.
#[derive(Clone, Debug)]
pub enum Op<R = Reg> {
    /// A pure function of each lane's registers.
    Compute {
        op: Compute,
        dst: ArrayVec<R, 2>,
        src: ArrayVec<R, 4>,
    },
    /// `dst[i]` receives element `i`; a vector access is one access of `dst.len() × element.bytes`. `None`: `_` sink.
    Load {
        address: Address<R>,
        element: Element,
        ordering: Ordering,
        /// `None` for weak accesses.
        scope: Option<Scope>,
        dst: Box<[Option<R>]>,
    },
    Store {
        address: Address<R>,
        element: Element,
        ordering: Ordering,
        scope: Option<Scope>,
        src: Box<[R]>,
    },
    /// `dst` is `None` for `red`. `b` is the value, `c` the new value of `cas`. Vector forms have several elements.
    Atomic {
        op: AtomicOp,
        ty: AtomicType,
        /// Global memory adds in its own way ([`adds_in_memory`](crate::isa::operation::ReadModifyWrite::adds_in_memory)).
        in_memory: bool,
        ordering: Ordering,
        scope: Scope,
        address: Address<R>,
        dst: Option<Box<[R]>>,
        b: Box<[R]>,
        c: Option<R>,
    },
    /// Copies `args` (caller frame offset, callee frame offset, bytes), runs the callee, copies `results` (callee frame
    /// offset, caller frame offset, bytes). `frame` is the caller's frame size: the callee's frame starts above it.
    Call {
        callee: Callee<R>,
        args: Box<[Copy3]>,
        results: Box<[Copy3]>,
    },
    Return,
    Exit,
    Trap,
    Breakpoint,
    /// `bar`/`barrier`; counts are threads. `dst`/`pred` for reductions.
    Barrier {
        op: BarrierOp,
        /// All threads of a warp come together.
        aligned: bool,
        id: Value<R>,
        threads: Option<Value<R>>,
        dst: Option<R>,
        pred: Option<(R, bool)>,
    },
    /// `bar.warp.sync`
    WarpBarrier {
        members: Value<R>,
    },
    /// `membar`, `fence`; between the generic proxy and another one where that is named. Those of a proxy alone have no
    /// scope.
    Fence {
        ordering: Ordering,
        scope: Option<Scope>,
        proxy: Proxy,
    },
    /// `shfl.sync`; `members` is `None` for the form without `.sync`.
    Shuffle {
        mode: ShuffleMode,
        dst: R,
        dst_pred: Option<R>,
        a: R,
        b: R,
        c: R,
        members: Option<Value<R>>,
    },
    Vote {
        mode: VoteMode,
        dst: R,
        pred: (R, bool),
        members: Option<Value<R>>,
    },
    /// `match.any` / `match.all` over `a` (B32 or B64).
    Match {
        all: bool,
        dst: R,
        dst_pred: Option<R>,
        a: R,
        members: Value<R>,
    },
    Redux {
        op: ReduxOp,
        dst: R,
        a: R,
        members: Value<R>,
    },
    Activemask {
        dst: R,
    },
    Elect {
        dst: Option<R>,
        dst_pred: R,
        members: Value<R>,
    },
    ReadSpecial {
        which: Special,
        dst: R,
    },
    /// Address of a byte of the running frame: its offset in the lane's local window, `offset` bytes above the frame's
    /// start (each activation of a recursive function has its own).
    FrameAddress {
        dst: R,
        offset: u32,
    },
    /// `cvta` between shared or local windows and generic addresses (the other spaces are the identity).
    ConvertAddress {
        space: Space,
        to_generic: bool,
        dst: R,
        src: R,
    },
    IsSpace {
        space: Space,
        dst: R,
        src: R,
    },
    /// Before accesses whose address was made from that of one object: a fault, if one of them does not stay in it and lies in
    /// another. There where accesses are checked to the variable (`passes/provenance.rs`).
    Within(Box<Within<R>>),
    Nanosleep,
    /// `alloca`, `stacksave`, `stackrestore` on the lane's local frame.
    Alloca {
        dst: R,
        size: R,
        align: u32,
    },
    StackSave {
        dst: R,
    },
    StackRestore {
        src: R,
    },
    /// `cp.async`: `bytes` copied, of which `src_size` (if given) are read and the rest is zero.
    CopyAsync {
        dst: Address<R>,
        src: Address<R>,
        bytes: u8,
        src_size: Option<R>,
        ignore: Option<(R, bool)>,
    },
    /// `cp.async.commit_group`, `cp.async.wait_group`, `cp.async.wait_all`
    CopyGroup(CopyGroup),
    Joint(Box<JointOp<R>>),
    Texture(Box<TextureOp<R>>),
    Surface(Box<SurfaceOp<R>>),
    /// `txq`, `suq`: `level` is the level that is asked about.
    HandleQuery {
        handle: R,
        attribute: Attribute,
        level: Option<R>,
        dst: R,
    },
    /// `istypep`
    IsHandle {
        opaque: Opaque,
        dst: R,
        src: R,
    },
    /// A system call of the ABI: arguments and results are in the callee frame, laid out as for a call.
    Syscall {
        which: Syscall,
        args: Box<[Copy3]>,
        results: Box<[Copy3]>,
    },
    /// What follows values that nobody has written; of no text.
    Shadow(Box<ShadowOp<R>>),
}

/// An operand that is the same for the whole warp, by the ISA's rule or as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<R = Reg> {
    Immediate(u32),
    Register(R),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy3 {
    pub from: u32,
    pub to: u32,
    pub bytes: u32,
}

#[derive(Clone, Debug)]
pub enum Callee<R = Reg> {
    /// Index into [`Module::functions`].
    Direct(u32),
    /// Address in a 64-bit register; checked against `prototype` (parameter and result sizes).
    Indirect { address: R, params: u32, returns: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syscall {
    Vprintf,
    Malloc,
    Free,
    AssertFail,
    GraphSetConditional,
    /// Runs a tile block for a while ([`crate::tile`]).
    TileBlock,
    Runtime(RuntimeCall, Generation),
}

/// A value that a register holds before the first instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Initial {
    /// Same in all lanes; the low bytes that fit the register's width. A predicate is set in all lanes unless this is 0.
    Constant(u128),
    /// Bytes of the launch's parameter block at this offset; `element` says how many and how they extend.
    Param {
        offset: u32,
        element: Element,
    },
    Special(Special),
}
