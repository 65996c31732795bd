//! Lowered code: what a function is once it is ready to run. Made by [`super::lower`], consumed by the executor; knows
//! neither the tree it came from nor who runs it.

use std::sync::Arc;

use super::affine::Affine;
use super::runtime::{Generation, RuntimeCall};
use super::texture::{Attribute, Opaque, SurfaceOp, TextureOp};
use crate::isa::lanes::{LaneKernel, Operands, Width};
use crate::ptx::ast::Span;

/// Index into [`Function::code`].
pub type Pc = u32;

/// A register slot: byte offset for a bundle of one warp, and width. Offsets scale with the bundle's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    pub offset: u32,
    pub width: Width,
}

/// The executor runs the instruction for the lanes in which predicate `slot` is set (or clear, if `negated`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    pub slot: Slot,
    pub negated: bool,
}

#[derive(Clone, Debug)]
pub struct Instr {
    pub guard: Option<Guard>,
    pub kind: Kind,
    /// Where in the PTX text; faults and traces name it.
    pub span: Span,
}

/// Spaces as the executor distinguishes them. Const and global addresses are generic addresses; shared and local ones
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
/// ([`Kind::FrameAddress`] makes those of locals).
#[derive(Clone, Copy, Debug)]
pub struct Address {
    pub space: Space,
    /// `B64` or `B32` slot.
    pub register: Option<Slot>,
    pub offset: i64,
}

/// What an element of a memory access is, and how it becomes a register value and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Element {
    /// 1, 2, 4, 8 or 16 bytes.
    pub bytes: u8,
    /// Loads into a wider slot extend by sign; otherwise by zero.
    pub signed: bool,
}

/// How strongly an access or a fence is ordered (PTX ISA, Memory Consistency Model).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ordering {
    Weak,
    Volatile,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    /// `fence.sc` and `membar` alone.
    Sc,
}

/// The threads that a strong access or a fence is meant for (PTX ISA, Scope). On one machine all see it alike; observers
/// want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    Cta,
    Cluster,
    Gpu,
    Sys,
}

/// By which way an access goes to memory (PTX ISA, Proxies).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proxy {
    Generic,
    /// Another virtual address of the same memory.
    Alias,
    Async,
    Tensormap,
    Texture,
    Surface,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum AtomicOp { Add, Min, Max, And, Or, Xor, Inc, Dec, Exch, Cas }

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum AtomicType { U32, S32, B32, U64, S64, B64, F32, F64, F16, F16x2, Bf16, Bf16x2, B16, B128 }

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierOp {
    Sync,
    Arrive,
    /// `.red.popc`, `.red.and`, `.red.or`
    Popc,
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum ShuffleMode { Up, Down, Bfly, Idx }

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum VoteMode { All, Any, Uni, Ballot }

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum ReduxOp { Add, MinU, MaxU, MinS, MaxS, And, Or, Xor,
    /// f32 min and max: `.abs`, `.NaN` as flags.
    MinF { abs: bool, nan: bool }, MaxF { abs: bool, nan: bool } }

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
    // where the running kernel's shared memory holds that variable of the module ([`Function::shared`])
    SharedBase(u32),
    // change from one reading to the next
    Clock, ClockHi, Clock64, Globaltimer, GlobaltimerLo, GlobaltimerHi, Pm(u8), Pm64(u8),
}

impl Special {
    /// The same value in every lane of every block of a launch.
    pub fn is_launch_constant(self) -> bool {
        use Special::*;
        matches!(
            self,
            Ntid(_)
                | Nctaid(_)
                | Nwarpid
                | Nsmid
                | Gridid
                | CurrentGraphExec
                | Envreg(_)
                | DynamicSmemSize
                | TotalSmemSize
                | AggrSmemSize
                | ReservedSmem(_)
                | NclusterId(_)
                | ClusterNctaid(_)
                | ClusterNctarank
                | IsExplicitCluster
                | SharedBase(_)
        )
    }
    /// Must be read where the instruction stands.
    pub fn is_volatile(self) -> bool {
        use Special::*;
        matches!(
            self,
            Clock | ClockHi | Clock64 | Globaltimer | GlobaltimerLo | GlobaltimerHi | Pm(_) | Pm64(_)
        )
    }
}

/// What an instruction does, decided as far as it can be before anything runs.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Pure function of lanes.
    Lane {
        kernel: LaneKernel,
        operands: Operands,
        /// Widths of the destinations and sources that `operands` names, in order.
        dst: &'static [Width],
        src: &'static [Width],
    },
    /// `dst[i]` receives element `i`; a vector access is one access of `dst.len() × element.bytes`. `None`: `_` sink.
    Load {
        address: Address,
        element: Element,
        ordering: Ordering,
        /// `None` for weak accesses.
        scope: Option<Scope>,
        dst: Box<[Option<Slot>]>,
    },
    Store {
        address: Address,
        element: Element,
        ordering: Ordering,
        scope: Option<Scope>,
        src: Box<[Slot]>,
    },
    /// `dst` is `None` for `red`. `b` is the value, `c` the new value of `cas`. Vector forms have several elements.
    Atomic {
        op: AtomicOp,
        ty: AtomicType,
        ftz: bool,
        ordering: Ordering,
        scope: Scope,
        address: Address,
        dst: Option<Box<[Slot]>>,
        b: Box<[Slot]>,
        c: Option<Slot>,
    },
    /// Direct jump; with a guard, divergent.
    Branch {
        target: Pc,
    },
    /// `brx.idx`: lane's index into `targets`; out of range is undefined by the ISA and faults here.
    BranchIndexed {
        index: Slot,
        targets: Box<[Pc]>,
    },
    /// Copies `args` (caller frame offset, callee frame offset, bytes), runs the callee, copies `results` (callee frame
    /// offset, caller frame offset, bytes). `frame` is the caller's frame size: the callee's frame starts above it.
    Call {
        callee: Callee,
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
        id: Value,
        threads: Option<Value>,
        dst: Option<Slot>,
        pred: Option<(Slot, bool)>,
    },
    /// `bar.warp.sync`
    WarpBarrier {
        members: Value,
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
        dst: Slot,
        dst_pred: Option<Slot>,
        a: Slot,
        b: Slot,
        c: Slot,
        members: Option<Value>,
    },
    Vote {
        mode: VoteMode,
        dst: Slot,
        pred: (Slot, bool),
        members: Option<Value>,
    },
    /// `match.any` / `match.all` over `a` (B32 or B64).
    Match {
        all: bool,
        dst: Slot,
        dst_pred: Option<Slot>,
        a: Slot,
        members: Value,
    },
    Redux {
        op: ReduxOp,
        dst: Slot,
        a: Slot,
        members: Value,
    },
    Activemask {
        dst: Slot,
    },
    Elect {
        dst: Option<Slot>,
        dst_pred: Slot,
        members: Value,
    },
    ReadSpecial {
        which: Special,
        dst: Slot,
    },
    /// Address of a byte of the running frame: its offset in the lane's local window, `offset` bytes above the frame's
    /// start (each activation of a recursive function has its own).
    FrameAddress {
        dst: Slot,
        offset: u32,
    },
    /// `cvta` between shared or local windows and generic addresses (the other spaces are the identity).
    ConvertAddress {
        space: Space,
        to_generic: bool,
        dst: Slot,
        src: Slot,
    },
    IsSpace {
        space: Space,
        dst: Slot,
        src: Slot,
    },
    Nanosleep,
    /// `alloca`, `stacksave`, `stackrestore` on the lane's local frame.
    Alloca {
        dst: Slot,
        size: Slot,
        align: u32,
    },
    StackSave {
        dst: Slot,
    },
    StackRestore {
        src: Slot,
    },
    /// `cp.async`: `bytes` copied, of which `src_size` (if given) are read and the rest is zero.
    CopyAsync {
        dst: Address,
        src: Address,
        bytes: u8,
        src_size: Option<Slot>,
        ignore: Option<(Slot, bool)>,
    },
    Texture(Box<TextureOp>),
    Surface(Box<SurfaceOp>),
    /// `txq`, `suq`: `level` is the level that is asked about.
    HandleQuery {
        handle: Slot,
        attribute: Attribute,
        level: Option<Slot>,
        dst: Slot,
    },
    /// `istypep`
    IsHandle {
        opaque: Opaque,
        dst: Slot,
        src: Slot,
    },
    /// A system call of the ABI: arguments and results are in the callee frame, laid out as for a call.
    Syscall {
        which: Syscall,
        args: Box<[Copy3]>,
        results: Box<[Copy3]>,
    },
}

/// An operand that is the same for the whole warp, by the ISA's rule or as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Immediate(u32),
    Slot(Slot),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy3 {
    pub from: u32,
    pub to: u32,
    pub bytes: u32,
}

#[derive(Clone, Debug)]
pub enum Callee {
    /// Index into [`Module::functions`].
    Direct(u32),
    /// Address in a `B64` slot; checked against `prototype` (parameter and result sizes).
    Indirect { address: Slot, params: u32, returns: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syscall {
    Vprintf,
    Malloc,
    Free,
    AssertFail,
    GraphSetConditional,
    Runtime(RuntimeCall, Generation),
}

/// A value put into a slot before the first instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Initial {
    /// Same in all lanes; the low bytes that fit the slot's width. A predicate is set in all lanes unless this is 0.
    Constant(u128),
    /// Bytes of the launch's parameter block at this offset; `element` says how many and how they extend.
    Param {
        offset: u32,
        element: Element,
    },
    Special(Special),
}

/// A function or kernel as executed.
#[derive(Debug)]
pub struct Function {
    pub name: Arc<str>,
    pub code: Vec<Instr>,
    /// Bytes of the register window for a bundle of one warp (multiple of 64); scale with the bundle's width.
    pub window: u32,
    /// Slots set before the function runs and never reused for anything else. Kernels: once for each worker and launch
    /// where constant, once a block otherwise. Device functions: at each call (constants and specials only).
    pub initial: Vec<(Slot, Initial)>,
    /// Pure instructions whose operands are launch constants, hoisted out of `code` in order; run once after `initial`
    /// (kernels only, empty for device functions). Only [`Kind::Lane`].
    pub prologue: Vec<Instr>,
    /// Kernels: what follows the lane's number and need not be computed lane by lane.
    pub affine: Option<Affine>,
    /// Bytes of this function's frame in a lane's local memory, multiple of `local_align`.
    pub local: u32,
    pub local_align: u32,
    /// Bytes of return parameters and of parameters at the start of the frame (device functions).
    pub return_bytes: u32,
    pub param_bytes: u32,
    /// Kernels: the shared variables that it can reach (index as in [`Special::SharedBase`]) and their offsets, ascending
    /// by index. A device function reads its own from the kernel that is running, since kernels differ in layout.
    pub shared: Vec<(u32, u32)>,
    /// Kernels: bytes of static shared memory.
    pub shared_bytes: u32,
    /// Kernels: where dynamic shared memory starts, the aligned end of the static.
    pub dynamic_shared: u32,
    /// Functions called directly (module indices).
    pub callees: Vec<u32>,
    pub calls_indirectly: bool,
    /// Uses `bar`/`barrier` other than by syscalls; lets simple kernels skip bookkeeping.
    pub uses_barriers: bool,
    /// `(first pc, file index, line)`, ascending, from `.loc`.
    pub lines: Vec<(Pc, u32, u32)>,
    /// The text this came from.
    pub source: Arc<crate::ptx::Source>,
}
