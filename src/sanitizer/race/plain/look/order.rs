//! How the accesses that entries stand for lie to those of who looks: before, after, or in no order.

use crate::isa::lanes::WARP;

use super::super::super::ledger::{Kind, Reach};
use super::super::cell::Others;
use super::{Cell, Entries, Looker, Me, Span, WORD};

/// How an entry's accesses lie to somebody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All of them before.
    Before,
    /// Of his warp, whose lanes have not met since.
    Warp,
    /// Of other warps of his block, since its last barrier.
    Block,
    /// Of another block.
    Elsewhere,
    /// Made by an asynchronous operation.
    Operation,
}

/// What is found out of an entry alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Before,
    /// Of this block since its last barrier, in this step of their warp.
    Here(u32),
    Elsewhere,
    Operation,
}

#[derive(Clone, Copy)]
pub struct Seen {
    /// The entry's number, and when it was looked at ([`Memory::now`]).
    key: (u32, u32),
    pub(super) class: Class,
    /// Its accesses and those of who looks are morally strong.
    pub(super) is_strong: bool,
    pub(super) is_weaker: bool,
}

/// Entries of which it is remembered what was found out, by number.
const MEMORY: usize = 32;

/// What was found out by accesses of one kind, since nobody can have changed it.
pub struct Memory {
    of: Option<(Kind, Since)>,
    /// What was found out at another time does not count.
    now: u32,
    seen: [Seen; MEMORY],
}

impl Memory {
    const NOTHING: Memory = Memory {
        of: None,
        now: 1,
        seen: [Seen {
            key: (0, 0),
            class: Class::Before,
            is_strong: false,
            is_weaker: false,
        }; MEMORY],
    };

    fn forget(&mut self) {
        self.now = self.now.wrapping_add(1);
        if self.now == 0 {
            *self = Memory::NOTHING;
        }
    }
}

/// What a block remembers, for reads and writes of memory of its own and of all.
pub struct Memories([Memory; 4]);

/// A block, the number of its barriers, and since when entries have the numbers that they have: what is found out counts for these.
pub type Since = (u32, u32, u32);

impl Memories {
    pub fn new() -> Memories {
        Memories([const { Memory::NOTHING }; 4])
    }

    /// For accesses of a kind that no operation makes.
    #[inline(always)]
    pub fn of(&mut self, (kind, is_global): (Kind, bool), operation: Option<u32>, since: Since) -> &mut Memory {
        let memory = &mut self.0[usize::from(kind.writes()) * 2 + usize::from(is_global)];
        if operation.is_some() || memory.of != Some((kind, since)) {
            memory.forget();
            // What one operation finds is not what others do.
            memory.of = operation.is_none().then_some((kind, since));
        }
        memory
    }
}

impl<E: Entries + ?Sized> Looker<'_, E> {
    #[inline(always)]
    pub(super) fn seen(&mut self, number: u32) -> Seen {
        let seen = self.memory.seen[number as usize % MEMORY];
        if seen.key == (number, self.memory.now) {
            return seen;
        }
        self.find(number)
    }

    #[inline(never)]
    fn find(&mut self, number: u32) -> Seen {
        let entry = self.entries.entry(number);
        let is_here = entry.block == self.own.block;
        let class = match entry.operation {
            Some(operation) if is_here => match self.operations.get(operation) {
                _ if entry.operation == self.own.operation => Class::Before,
                None => Class::Before,
                Some(operation) if operation.is_over(self.epoch) => Class::Before,
                Some(_) => Class::Operation,
            },
            Some(_) => Class::Operation,
            None if !is_here => Class::Elsewhere,
            None if entry.epoch < self.epoch => Class::Before,
            None => Class::Here(entry.step),
        };
        let reach = Some(if is_here { Reach::Block } else { Reach::Device });
        let (kind, own) = (entry.kind, self.own.kind);
        let seen = Seen {
            key: (number, self.memory.now),
            class,
            is_strong: kind.strong >= reach && own.strong >= reach && kind.element == own.element,
            is_weaker: kind.strong < own.strong,
        };
        self.memory.seen[number as usize % MEMORY] = seen;
        seen
    }

    /// First and last thread of a cell, in a band, a row or a word.
    #[inline(always)]
    pub(super) fn threads<const SPAN: usize>(thread: u32, shift: u8) -> (u32, u32) {
        match SPAN {
            WORD => (thread, thread),
            _ => (thread, thread + ((SPAN - 1) >> shift) as u32),
        }
    }

    #[inline(always)]
    pub(super) fn verdict<const SPAN: usize>(
        &mut self,
        (number, thread): (u32, u32),
        shift: u8,
        me: Me,
    ) -> Option<Verdict> {
        Some(match self.seen(number).class {
            Class::Before => Verdict::Before,
            Class::Elsewhere => Verdict::Elsewhere,
            Class::Operation => Verdict::Operation,
            Class::Here(step) => {
                let warps = |(first, last): (u32, u32)| (first / WARP as u32, last / WARP as u32);
                let (first, last) = warps(Self::threads::<SPAN>(thread, shift));
                let (from, to) = warps(Self::threads::<SPAN>(me.thread, me.shift));
                match () {
                    () if last < from || to < first => Verdict::Block,
                    () if (first, last) != (from, to) || first != last => return None,
                    () if self.warps[first as usize].met >= step => Verdict::Before,
                    () => Verdict::Warp,
                }
            }
        })
    }

    /// Whether a cell of this block names the thread that looks, and no other.
    #[inline(always)]
    pub(super) fn is_mine<const SPAN: usize>(thread: u32, shift: u8, me: Me) -> Option<bool> {
        match SPAN {
            WORD => Some(thread == me.thread && me.lanes & (me.lanes - 1) == 0),
            _ => Self::are_same::<SPAN>((thread, shift), (me.thread, me.shift)),
        }
    }

    /// Whether the threads of two cells of a band or a row are the same everywhere, or nowhere.
    #[inline(always)]
    pub(super) fn are_same<const SPAN: usize>((one, shift): (u32, u8), (other, same): (u32, u8)) -> Option<bool> {
        if shift == same {
            return Some(one == other);
        }
        let ((first, last), (from, to)) = (Self::threads::<SPAN>(one, shift), Self::threads::<SPAN>(other, same));
        (last < from || to < first).then_some(false)
    }

    /// Whether all that a cell stands for lies before what these threads do.
    #[inline(always)]
    pub(super) fn is_after<const SPAN: usize>(&mut self, (cell, shift): Span, me: Me) -> Option<bool> {
        let Some((number, thread, others)) = self.layout.parts(cell) else {
            return Some(true);
        };
        if SPAN != WORD
            && others == Others::None
            && (thread, shift) == (me.thread, me.shift)
            && matches!(self.seen(number).class, Class::Here(_))
        {
            // Each thread comes to what it has touched itself, of whatever warp it is.
            return Some(true);
        }
        let verdict = self.verdict::<SPAN>((number, thread), shift, me)?;
        Some(match (others, verdict) {
            (Others::Blocks, _) | (_, Verdict::Elsewhere | Verdict::Block) => false,
            (_, Verdict::Before) => true,
            (Others::Block | Others::Warp, Verdict::Warp) => false,
            // What all lanes know of each other was looked at for the verdict.
            (Others::None, Verdict::Warp) => Self::is_mine::<SPAN>(thread, shift, me)?,
            (_, Verdict::Operation) if SPAN != WORD => return None,
            (_, Verdict::Operation) => {
                self.is_particular = true;
                self.is_after_operation(number, thread, me)
            }
        })
    }

    #[inline(never)]
    pub(super) fn is_after_operation(&self, number: u32, thread: u32, me: Me) -> bool {
        let entry = self.entries.entry(number);
        if entry.block != self.own.block {
            return false;
        }
        let operation = entry.operation.and_then(|operation| self.operations.get(operation));
        let (lane, warp) = (thread % WARP as u32, (me.thread / WARP as u32) as usize);
        let Some((operation, (step, epoch))) =
            operation.and_then(|operation| Some((operation, operation.seen_by(lane)?)))
        else {
            return false;
        };
        epoch < self.epoch || operation.warp == warp && (me.lanes == 1 << lane || self.warps[warp].met >= step)
    }

    /// Who else there is when those who look, who have not seen the end of `cell`, come to a word.
    pub(super) fn others(&mut self, cell: Cell, me: Me) -> Others {
        let Some((number, thread, others)) = self.layout.parts(cell) else {
            return Others::None;
        };
        let entry = self.entries.entry(number);
        others.max(match () {
            () if entry.block != self.own.block => Others::Blocks,
            () if thread / WARP as u32 != me.thread / WARP as u32 || entry.epoch != self.own.epoch => Others::Block,
            () => Others::Warp,
        })
    }
}
