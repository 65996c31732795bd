//! The instruction table and what each instruction computes. Knows nothing of the API, of programs, of scheduling.
//!
//! `table/` lists each syntax line of the PTX manual once, in the manual's notation, with its minimum PTX version and
//! target and its [`Semantics`]; [`decode`] matches an opcode against it.

pub mod lanes;

use self::lanes::{LaneKernel, Width};
use crate::ptx::ast::Type;

/// What kind of thing an instruction does; for lane-wise ones, how to get the function that computes it.
#[derive(Clone, Copy)]
pub enum Semantics {
    /// A pure function of each lane's registers. `None`: this form is legal but not computed yet.
    Lane(fn(&Form) -> Option<Lane>),
    /// Everything else is carried out by the executor, which asks the form for its modifiers.
    Move,
    Load,
    Store,
    Atomic,
    Reduction,
    Branch,
    BranchIndexed,
    Call,
    Return,
    Exit,
    Trap,
    Breakpoint,
    Nanosleep,
    /// `bar`, `barrier`
    Barrier,
    WarpBarrier,
    /// `membar`, `fence`
    Fence,
    Shuffle,
    Vote,
    Match,
    Redux,
    Activemask,
    Elect,
    ConvertAddress,
    IsSpace,
    Alloca,
    StackSave,
    StackRestore,
    /// `cp.async` and its groups (non-bulk).
    CopyAsync,
    /// No effect on results: prefetch, discard of nothing, policies that only hint, pmevent.
    Hint,
    /// Legal, recognised, not executed yet: a kernel that reaches it is refused at load with a message.
    Later,
}

/// A lane-wise operation, ready to run.
#[derive(Clone, Copy)]
pub struct Lane {
    pub kernel: LaneKernel,
    /// Slot widths of the destinations in operand order; for `add.cc` the carry-out is a last destination `Pred`.
    pub dst: &'static [Width],
    /// Slot widths of the sources in operand order; for `addc` the carry-in is a last source `Pred`.
    pub src: &'static [Width],
    /// The operand (index among sources as written) that goes to `Operands::imm` instead of a slot, if any.
    pub imm: Option<usize>,
    pub carry_out: bool,
    pub carry_in: bool,
}

/// An opcode that the table knows, with its modifiers sorted out.
pub struct Form {
    pub line: &'static table::Line,
    /// The types in written order (`cvt.rn.f16.f32` → `[F16, F32]`).
    pub types: Vec<Type>,
    /// All other words in the order of the syntax line.
    pub words: Vec<&'static str>,
}

pub mod table {
    //! Placeholder of the table's shape.
    /// One syntax line.
    pub struct Line {
        pub syntax: &'static str,
        pub ptx: (u8, u8),
        pub target: u16,
        pub semantics: super::Semantics,
    }
}

impl Form {
    /// Whether the modifier is present, e.g. `form.has("sat")`, `form.has("L2::cache_hint")`.
    pub fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }
}
