//! Syntax tree → [`Function`]s ready to execute: names resolved, types checked, registers slotted, control-flow graph
//! laid out, calling convention decided. Knows nothing of threads or of the C ABI.
//!
//! In: linked PTX modules ([`crate::ptx`]), the instruction table ([`crate::isa`]), addresses for variables. Out: code
//! in an order such that the fragment of a bundle with the lowest pc is always the right one to run next.
//!
//! **Calling convention.** `.param` variables of device functions, and those that a caller declares for a call, live in
//! the lane's local memory frame, as the PTX ABI guide lets them: `st.param`/`ld.param` are local accesses at static
//! offsets. A call copies the argument bytes from the caller's frame to the start of the callee's, a return copies
//! results back. Kernel parameters are constants of the launch.
//!
//! **Frame of a function** in local memory: `[return params][params][.local variables][call areas]`, sizes known.

use std::sync::{Arc, OnceLock};

use crate::isa::lanes::{LaneKernel, Operands, Width};
use crate::ptx::ast::Span;
use crate::ptx::diagnostic::Diagnostics;

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

/// How strongly an access is ordered (PTX ISA, Memory Consistency Model). Scope does not matter on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ordering {
    Weak,
    Volatile,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
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
    Ntid(u8), Nctaid(u8), Nwarpid, Nsmid, Gridid, Envreg(u8), DynamicSmemSize, TotalSmemSize, AggrSmemSize,
    ReservedSmem(u8), NclusterId(u8), ClusterNctaid(u8), ClusterNctarank, IsExplicitCluster,
    // a block's, warp's or lane's own, constant while it lives
    Ctaid(u8), Tid(u8), Laneid, Warpid, Smid, LanemaskEq, LanemaskLt, LanemaskLe, LanemaskGt, LanemaskGe,
    ClusterId(u8), ClusterCtaid(u8), ClusterCtarank,
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
                | Envreg(_)
                | DynamicSmemSize
                | TotalSmemSize
                | AggrSmemSize
                | ReservedSmem(_)
                | NclusterId(_)
                | ClusterNctaid(_)
                | ClusterNctarank
                | IsExplicitCluster
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
    },
    /// `dst[i]` receives element `i`; a vector access is one access of `dst.len() × element.bytes`. `None`: `_` sink.
    Load {
        address: Address,
        element: Element,
        ordering: Ordering,
        dst: Box<[Option<Slot>]>,
    },
    Store {
        address: Address,
        element: Element,
        ordering: Ordering,
        src: Box<[Slot]>,
    },
    /// `dst` is `None` for `red`. `b` is the value, `c` the new value of `cas`. Vector forms have several elements.
    Atomic {
        op: AtomicOp,
        ty: AtomicType,
        ftz: bool,
        ordering: Ordering,
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
    Fence,
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
}

/// A value put into a slot before the first instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initial {
    /// Same in all lanes; the low bytes that fit the slot's width.
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
    /// Bytes of this function's frame in a lane's local memory, multiple of `local_align`.
    pub local: u32,
    pub local_align: u32,
    /// Bytes of return parameters and of parameters at the start of the frame (device functions).
    pub return_bytes: u32,
    pub param_bytes: u32,
    /// Functions called directly (module indices).
    pub callees: Vec<u32>,
    pub calls_indirectly: bool,
    /// Uses `bar`/`barrier` other than by syscalls; lets simple kernels skip bookkeeping.
    pub uses_barriers: bool,
    /// `(first pc, file index, line)`, ascending, from `.loc`.
    pub lines: Vec<(Pc, u32, u32)>,
    /// The text this came from.
    pub source: Arc<crate::ptx::Source>,
    /// The executor's own forms of this function, for bundles of 1, 2 and 4 warps, once somebody ran it.
    pub executable: [OnceLock<Arc<dyn std::any::Any + Send + Sync>>; 3],
}

/// What can be said of a kernel without lowering it.
#[derive(Debug, Clone, Default)]
pub struct KernelInfo {
    /// `(offset, bytes)` of each parameter in the parameter block.
    pub params: Vec<(u32, u32)>,
    pub param_bytes: u32,
    /// `.maxntid` / `.reqntid` (0: none).
    pub max_threads: u32,
    pub maxntid: Option<[u32; 3]>,
    pub reqntid: Option<[u32; 3]>,
    pub required_cluster: Option<[u32; 3]>,
    pub min_ctas_per_sm: u32,
    pub max_registers: u32,
    /// Static shared memory of the kernel and everything it can reach.
    pub shared_bytes: u32,
    /// Module's constant memory.
    pub const_bytes: u32,
    /// `.target` number of its PTX, e.g. 75 (`CU_FUNC_ATTRIBUTE_PTX_VERSION`).
    pub target: u32,
}

/// A symbol of a linked module that lives in memory.
#[derive(Debug, Clone)]
pub struct Global {
    pub name: Arc<str>,
    pub space: crate::ptx::ast::Space,
    pub bytes: u64,
    pub align: u64,
    pub managed: bool,
    /// Visible to the host by name.
    pub visible: bool,
    pub address: u64,
}

/// Where the linker of a module puts its variables: the driver allocates.
pub trait Allocate {
    /// Memory of at least `bytes`, aligned, readable by kernels, writable by them unless `constant`; zeroed.
    fn allocate(&mut self, bytes: u64, align: u64, constant: bool, managed: bool) -> Result<u64, AllocateError>;
}

/// No memory for a module's variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocateError;

/// A linked module: one or more PTX texts, their symbols resolved against each other, variables placed and initialised.
pub struct Module {
    pub functions: Vec<FunctionEntry>,
    pub globals: Vec<Global>,
    /// Functions' addresses are `code_base + 16 × index`: values that kernels may store and call, never memory.
    pub code_base: u64,
}

pub struct FunctionEntry {
    pub name: Arc<str>,
    pub entry: bool,
    /// Its address is taken somewhere: an indirect call may reach it.
    pub address_taken: bool,
    pub kernel: Option<KernelInfo>,
    /// Lowered when first used.
    pub lowered: OnceLock<Result<Arc<Function>, Diagnostics>>,
}

impl Module {
    /// Links units (one for an ordinary image, several for `-rdc=true`): one instance of each visible symbol, calls and
    /// variables resolved across units, `.weak` and `.common` by the ISA's rules, initialisers written.
    ///
    /// # Errors
    /// What does not resolve, or is defined twice, and where.
    pub fn link(_units: &[Arc<crate::ptx::ast::Module>], _allocate: &mut dyn Allocate) -> Result<Module, LinkError> {
        todo!("the linker lands next")
    }

    /// Lowers `function` and all that it can reach, if that has not happened yet.
    ///
    /// # Errors
    /// What the instruction table or the type rules refuse.
    pub fn prepare(&self, _function: u32) -> Result<Arc<Function>, Diagnostics> {
        todo!("lowering lands next")
    }
}

#[derive(Debug, Clone)]
pub enum LinkError {
    Invalid(Diagnostics),
    /// An `.extern` that nobody defines.
    Undefined(Vec<String>),
    /// Two strong definitions of a name.
    Duplicate(Vec<String>),
    OutOfMemory,
}
