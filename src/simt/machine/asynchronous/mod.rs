//! What goes on without the threads that began it (PTX ISA, Asynchronous operations): copies, reductions, matrix
//! products that run beside a block, and how their ends are told.
//!
//! An operation is **begun** by a lane ([`State::begin`]): its operands have been checked, and faults are precise. What
//! it does to memory it does when it **completes**: its sources are read then, its destinations written, and whoever
//! waits is told ([`Completion`]). Until then its destination holds what it held, so that a missing wait shows in
//! results.
//!
//! When that is: as late as can be, and always at the same moment, without a seed. A wait for groups completes those
//! that it waits for, a look (`mbarrier.test_wait`) at a barrier whose phase is not over completes what that barrier
//! waits for, oldest first, until the phase is over ([`State::hurry`]); when nobody in the block gets on, for all wait,
//! everything completes ([`State::advance`]), and so it does when the block ends ([`State::end`]), before its windows
//! are used again. Under a seed the moment is drawn besides ([`State::draw`]).
//!
//! `cp.async` is what kernels do most often, a warp at a time: its copies have a room of their own ([`copies`]), a
//! record a warp. Everything else is an [`Operation`] with its [`Work`]: whoever adds a family of them writes a `Work`,
//! checks and tells accesses through `access.rs`, and begins it. Memory that is not the block's own may have gone
//! meanwhile: a `Work` asks again before it touches it (`access::still`).
//!
//! Fabric operations begin in two steps ([`fabric`]): what a thread has not submitted does not happen.
//!
//! Blocks of a cluster may see each other's operations: those that end at another block's barrier have to be found by
//! who waits there. Whoever runs a cluster lets its blocks have them in turn ([`Asynchronous::hand_over`]).

mod completion;
pub mod copies;
mod fabric;

use crate::simt::cause::Cause;

use self::copies::Copies;
use super::context::{Cx, Env};
use super::mbarrier::{Places, Report};

const WARP: u32 = crate::isa::lanes::WARP as u32;

/// The thread that began something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub block: [u32; 3],
    /// Linear index in the block.
    pub thread: u32,
}

impl Owner {
    pub fn of(cx: &Cx<'_>, lane: usize) -> Owner {
        Owner {
            block: cx.block.ctaid,
            thread: cx.first_thread + lane as u32,
        }
    }
}

/// Operations of a line complete in the order in which they began: one that is to complete completes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// What a thread hands to the tensor cores of the fifth generation.
    Tcgen05(Owner),
}

/// How the end of an operation is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Not at all, or by what follows in its line.
    Nothing,
    /// Its thread waits for a group of bulk copies (PTX ISA, cp.async.bulk.commit_group).
    Group,
    /// So many bytes have come, for the mbarrier at this address.
    Bytes { barrier: u64, bytes: u32 },
    /// An arrival at the mbarrier at this address.
    Arrival { barrier: u64 },
    /// So much has come or gone through a logical endpoint, for the mbarrier at this address.
    Fabric { barrier: u64, count: u32 },
}

impl Completion {
    fn barrier(self) -> Option<u64> {
        match self {
            Completion::Bytes { barrier, .. }
            | Completion::Arrival { barrier }
            | Completion::Fabric { barrier, .. } => Some(barrier),
            Completion::Nothing | Completion::Group => None,
        }
    }
}

/// What an operation does to memory.
pub trait Work: Send {
    /// Takes what it reads, so that others may change it: what `.read` waits for. What cannot do that completes
    /// instead.
    ///
    /// # Errors
    /// The memory is gone.
    fn read(&mut self, _env: &Env<'_>) -> Result<bool, Cause> {
        Ok(false)
    }

    /// Does it, once; what it reports of the data to a barrier of the second layout.
    ///
    /// # Errors
    /// The memory is gone.
    fn finish(&mut self, env: &Env<'_>) -> Result<Report, Cause>;
}

/// Nothing but the end of what stands before it in its line.
pub struct Nothing;

impl Work for Nothing {
    fn finish(&mut self, _env: &Env<'_>) -> Result<Report, Cause> {
        Ok(Report::default())
    }
}

/// Something that is under way.
pub struct Operation {
    pub owner: Owner,
    pub line: Option<Line>,
    pub work: Box<dyn Work>,
    pub completion: Completion,
    /// [`Asynchronous::number`]
    pub number: u64,
}

/// A thread has made a group of what it began before operation number `before`.
struct Group {
    owner: Owner,
    before: u64,
}

/// A fabric operation that has begun, and is not submitted yet: until then nothing of it happens.
pub struct Held {
    pub operation: Operation,
    /// Threads of its owner's warp that have begun it together.
    pub lanes: u32,
    /// It reads from an endpoint.
    pub fetches: bool,
}

impl Held {
    fn is_of(&self, owner: Owner) -> bool {
        let own = self.operation.owner;
        own.block == owner.block
            && own.thread / WARP == owner.thread / WARP
            && self.lanes >> (owner.thread % WARP) & 1 == 1
    }
}

/// What is under way of a block, or of the blocks of a cluster.
#[derive(Default)]
pub struct Asynchronous {
    pub copies: Copies,
    /// Where its barriers in memory are.
    pub barriers: Places,
    /// In the order in which they began.
    operations: Vec<Operation>,
    /// Groups that are not complete, oldest first.
    groups: Vec<Group>,
    held: Vec<Held>,
    /// Groups of fabric operations, oldest first.
    fabric_groups: Vec<Group>,
    next: u64,
}

impl Asynchronous {
    /// The number of an operation that is about to begin: observers know it by that.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// What the blocks of a cluster have begun goes from the one that ran to the one that runs next, `to`. Copies of
    /// `cp.async` stay: nobody but their own threads, and barriers of their own block, wait for those.
    pub fn hand_over(&mut self, to: &mut Asynchronous) {
        std::mem::swap(&mut self.operations, &mut to.operations);
        std::mem::swap(&mut self.groups, &mut to.groups);
        std::mem::swap(&mut self.held, &mut to.held);
        std::mem::swap(&mut self.fabric_groups, &mut to.fabric_groups);
        std::mem::swap(&mut self.next, &mut to.next);
        std::mem::swap(&mut self.barriers, &mut to.barriers);
    }

    /// Whether nothing is left of a block.
    pub fn is_fresh(&self) -> bool {
        let groups = self.groups.is_empty() && self.fabric_groups.is_empty();
        self.is_idle() && groups && self.copies.is_fresh() && self.barriers.is_empty() && self.held.is_empty()
    }

    pub fn is_idle(&self) -> bool {
        self.operations.is_empty() && self.copies.is_idle()
    }

    /// How many fabric operations have not been submitted.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// The one that has to complete first if operation `i` is to complete.
    fn first_of_line(&self, i: usize) -> usize {
        match self.operations[i].line {
            None => i,
            line => (0..i).find(|&j| self.operations[j].line == line).unwrap_or(i),
        }
    }

    fn has_open(&self, owner: Owner) -> bool {
        let in_group = |o: &Operation| o.owner == owner && o.completion == Completion::Group;
        self.operations.iter().any(in_group)
    }
}
