//! What compiled code and the interpreter hand each other: one structure, laid out as C would, whose places the emitter
//! knows.

use crate::isa::lanes::{LaneFn, Mask, Operands};

use super::Pc;
use super::moves::Move;

/// Lanes that have left the code, and the instruction before which they stand.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Cut {
    /// With [`ENDED`], if the threads have ended there.
    pub pc: Pc,
    pub lanes: u32,
}

/// In [`Cut::pc`]: the threads have carried out the `exit` that is there.
pub const ENDED: u32 = 1 << 31;

/// Addresses that the last access of an instruction found itself among: from `low` on, `room` bytes in which an access may
/// begin. The least of addresses, and no room: none. Of a check of accesses to the object a pointer points into, the extent that
/// follows has the pointer as its `low`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Extent {
    pub low: u64,
    pub room: u64,
}

impl Extent {
    pub const NONE: Extent = Extent { low: 0, room: 0 };
}

/// Bytes of such memory for a warp's numbers of 64 bits.
pub const ROOM: u32 = 256;

/// An operation that a kernel of the interpreter carries out, on lanes in scratch memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LaneCall {
    pub run: LaneFn,
    pub operands: Operands,
    pub mask: Mask,
}

/// Instructions one after the other that the interpreter is asked to carry out.
#[derive(Clone, Debug, Default)]
pub struct Stretch {
    pub count: u32,
    /// They may have guards. Code has seen to those of single instructions.
    pub guarded: bool,
    /// Registers that go to the window before, and those that come from there behind.
    pub operands: Box<[Move]>,
    pub results: Box<[Move]>,
    /// Those that learn where memory is, as places within the stretch, with their sites.
    pub sites: Box<[(u32, u32)]>,
}

/// What the code says when it returns.
pub mod outcome {
    /// All lanes have left it: [`super::Context::cuts`] says where they stand.
    pub const LEFT: u32 = 0;
    /// A fault, which the helper has taken down.
    pub const FAULT: u32 = 1;
    /// Lanes differ in what the code takes for the same: nothing was done.
    pub const NOT_ENTERED: u32 = 2;
}

/// What [`Context::step`] answers.
pub mod step {
    pub const DONE: u32 = 0;
    pub const FAULT: u32 = 1;
    /// Somebody is missing: nothing was done.
    pub const MISSING: u32 = 2;
}

/// What [`Context::together`] says.
pub mod together {
    /// In the window, and somebody may have touched them: lines are to be proved.
    pub const IN_WINDOW: u64 = 0;
    /// In the window as code has left them, and in [`super::Warp::saved`], unless it was other code ([`super::Warp::left`]).
    pub const UNTOUCHED: u64 = 1;
    /// In [`super::Warp::saved`].
    pub const PACKED: u64 = 2;
    /// There, too, and the code is to bring them to the window and leave at once.
    pub const UNPACK: u64 = 3;
}

/// One of a block's warps, as code that runs them in turn knows it.
#[derive(Debug)]
#[repr(C)]
pub struct Warp {
    /// Its window.
    pub regs: *mut u8,
    /// Where its registers stay while it waits at a barrier of the block, and pass through on their way in and out.
    pub saved: *mut u8,
    /// Local memory of its first lane.
    pub local: u64,
    /// Whose turn it is after this one's, if anybody's.
    pub next: *mut Warp,
    /// Its bit in [`Context::ended`].
    pub bit: u32,
    pub first_thread: u32,
    /// Its lanes that have not ended.
    pub live: u32,
    /// The code whose lanes have last left it from one place, by its number; 0: none, or from several. What they want there is
    /// among [`Warp::saved`] still.
    pub left: u64,
}

/// In [`Context::met`], [`Context::since`], [`Context::came`]: no place.
pub const NOWHERE: Pc = Pc::MAX;

/// Where lanes that take no part in a store write to.
pub const SCRATCH: usize = 64;

/// Bytes before and behind a block's shared window that code may read, and write as they are: lanes that do not run lie there.
pub const AROUND: u64 = 2048;

/// What code and its helpers share: the code's one argument besides who enters where.
#[repr(C)]
pub struct Context {
    /// Carries out a stretch of instructions, by its number, from a place of the interpreter's code on, for lanes of the warp: registers
    /// come by way of [`Warp::saved`], and go back there. Looks up the extents of its sites.
    pub step: extern "C" fn(context: *mut Context, regs: *mut u8, pc: Pc, lanes: u32, stretch: u32) -> u32,
    /// Registers that a unit wants come from the window to [`Warp::saved`]; 0: these lanes may not enter there.
    pub enter: extern "C" fn(context: *mut Context, regs: *const u8, unit: u32, lanes: u32) -> u32,
    /// They go back, and the lanes, if any, stand before the unit.
    pub leave: extern "C" fn(context: *mut Context, regs: *mut u8, unit: u32, lanes: u32),
    /// Multiplies matrices, by the product's number: registers of 32 bits lie one after the other, those of A, B and C, and behind them
    /// those of D. Answers as `step` does.
    pub product: extern "C" fn(context: *mut Context, product: u32, registers: *mut u8) -> u32,
    /// Carries out a call on scratch memory.
    pub lane: extern "C" fn(call: *const LaneCall, scratch: *mut u8),
    pub calls: *const LaneCall,
    pub extents: *mut Extent,
    /// The block's shared window: where it lies, what its first byte is called, how long it is; where offsets of generic
    /// addresses count from.
    pub shared: u64,
    pub shared_start: u64,
    pub shared_bytes: u64,
    pub cluster_shared: u64,
    /// Local memory: bytes from one lane to the next, where the frame starts.
    pub local_stride: u64,
    pub frame: u64,
    /// Local memory of all threads of the block.
    pub locals: u64,
    pub local_bytes: u64,
    pub param: u64,
    pub param_bytes: u64,
    /// The window from which values are read that are the same in the whole block: that of the first warp, or the own one.
    pub same: *mut u8,
    /// Where the registers are of a warp all of whose lanes enter: [`together`].
    pub together: u64,
    /// The warp that runs; null: all of them stand at [`Context::since`].
    pub warp: *mut Warp,
    /// How many warps go on together, or 0: when one waits at a barrier, pauses or has ended, code goes on with the next one, and with
    /// the first one again when all have come to one place. Those that have ended are no longer among them.
    pub abreast: u64,
    pub first: *mut Warp,
    /// Not 0: code is left when all have come to one place, for others of the block are to come there, too.
    pub stops: u64,
    /// Not 0: the block's threads lie in a line, so that from one warp to the next `%tid.x` grows.
    pub straight: u64,
    /// Not 0: the block has no other warp.
    pub only: u64,
    /// Those that have ended, by bit; not 0: one did while somebody before it had not, and [`Warp::next`] passes over it.
    pub ended: u32,
    pub gaps: u32,
    /// Where those stand that had their turn since the first one had, where the others do (unless that is where they have
    /// entered), and where the one that runs has come to, if code has not been left otherwise. Their registers have stayed in
    /// [`Warp::saved`].
    pub met: Pc,
    pub since: Pc,
    pub came: Pc,
    /// Set to 1 when the registers of a warp that runs by itself have stayed there.
    pub packed: u32,
    /// Not 0: somebody has looked at what others change since the last turn of a loop.
    pub looked: u64,
    /// Not 0: copies of `cp.async` are under way in the block, or groups of them.
    pub copying: u64,
    /// Instructions until the code is to return.
    pub budget: i64,
    /// What the budget was when a turn of a loop was paid for last that looks at what others change.
    pub paid: i64,
    /// What of the budget went to loops that spin.
    pub spun: i64,
    /// Turns of loops through memory after which a warp pauses, that others of its block may read what lies beside: with its
    /// registers as at a barrier.
    pub turns: i64,
    /// Loops whose turns were seen to be many pages apart, a bit each: there a warp pauses after few.
    pub apart: u64,
    /// Code for warps that lack lanes is left where lanes come to one of these, or to one before the other: others of the warp stand
    /// there.
    pub limit: Pc,
    pub floor: Pc,
    pub cut_count: u64,
    /// As many as a warp has lanes.
    pub cuts: [Cut; 32],
    pub scratch: [u8; SCRATCH],
    /// What lanes copy that read nothing.
    pub zeros: [u32; 4],
}

/// Code of a kernel or a function: its context, the number of the entry, the lanes that enter.
pub type Entry = unsafe extern "C" fn(*mut Context, u32, u32) -> u32;
