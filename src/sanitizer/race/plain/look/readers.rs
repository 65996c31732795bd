//! Who has read a band, a row or a word since it was written: two threads are kept, the second with others.

use crate::isa::lanes::WARP;

use super::super::cell::{Cell, Others, Touched};
use super::order::{Class, Verdict};
use super::{Entries, Looker, Me, Span, WORD};

/// Of whom what is read tells so much that another reader adds nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Other threads may add something.
    More,
    /// No thread of this block.
    Block,
    /// Nobody: two other blocks have read it.
    Blocks,
}

impl<E: Entries + ?Sized> Looker<'_, E> {
    /// Notes that threads have read a band, a row or a word.
    #[inline(always)]
    pub(super) fn read<const SPAN: usize>(
        &mut self,
        known: &mut Touched,
        shifts: &mut [u8; 3],
        me: Me,
    ) -> Option<Readers> {
        let (one, two) = ((known.reads[0], shifts[1]), (known.reads[1], shifts[2]));
        let own = (self.cell(me.thread), me.shift);
        let rest = if SPAN == WORD { me.lanes & (me.lanes - 1) } else { 0 };
        if rest == 0 && one == own && two.0.is_empty() {
            return Some(Readers::More);
        }
        if let Some(readers) = self.is_told::<SPAN>(two, me)? {
            return Some(readers);
        }
        let is_after_one = self.is_after::<SPAN>(one, me)?;
        if !is_after_one && self.are_of_other_blocks(one.0, two.0) {
            // Whoever writes is in no order with one of them.
            return Some(Readers::Blocks);
        }
        let second = match rest {
            0 => Cell::EMPTY,
            _ => {
                let lane = rest.trailing_zeros();
                let others = if rest & (rest - 1) == 0 {
                    Others::None
                } else {
                    Others::Warp
                };
                let thread = me.thread / WARP as u32 * WARP as u32 + lane;
                self.layout.one(self.number, thread, others)
            }
        };
        if is_after_one && self.is_after::<SPAN>(two, me)? {
            known.reads = [own.0, second];
            (shifts[1], shifts[2]) = (me.shift, me.shift);
            return Some(Readers::More);
        }
        let mut reads = [one, two];
        self.add_read::<SPAN>(&mut reads, own, me)?;
        if !second.is_empty() {
            self.add_read::<SPAN>(&mut reads, (second, me.shift), me)?;
        }
        known.reads = reads.map(|(cell, _)| cell);
        (shifts[1], shifts[2]) = (reads[0].1, reads[1].1);
        Some(Readers::More)
    }

    /// Whether a cell stands for more threads of all this block, or of all this warp, that have read as late as this one.
    #[inline(always)]
    pub(super) fn is_told<const SPAN: usize>(&mut self, (cell, shift): Span, me: Me) -> Option<Option<Readers>> {
        Some(match self.layout.parts(cell) {
            // Several warps have read it, and none of them has met since.
            Some((number, _, Others::Block)) if matches!(self.seen(number).class, Class::Here(step) if self.met < step) => {
                Some(Readers::Block)
            }
            Some((number, thread, Others::Block)) => {
                let verdict = self.verdict::<SPAN>((number, thread), shift, me)?;
                matches!(verdict, Verdict::Block | Verdict::Warp).then_some(Readers::Block)
            }
            Some((number, thread, Others::Warp)) => {
                let verdict = self.verdict::<SPAN>((number, thread), shift, me)?;
                (verdict == Verdict::Warp).then_some(Readers::More)
            }
            Some((.., Others::None | Others::Blocks)) | None => None,
        })
    }

    /// Whether two blocks have read, neither of which is this one.
    #[inline(always)]
    pub(super) fn are_of_other_blocks(&mut self, one: Cell, two: Cell) -> bool {
        let (Some((one, ..)), Some((two, ..))) = (self.layout.parts(one), self.layout.parts(two)) else {
            return false;
        };
        self.seen(one).class == Class::Elsewhere
            && self.seen(two).class == Class::Elsewhere
            && self.entries.entry(one).block != self.entries.entry(two).block
    }

    /// One more who comes to what has readers. Where two blocks have read, one of each is named; else two threads.
    pub(super) fn add_read<const SPAN: usize>(&mut self, reads: &mut [Span; 2], own: Span, me: Me) -> Option<()> {
        let Some((number, thread, others)) = self.layout.parts(own.0) else {
            return Some(());
        };
        if let Some(free) = reads.iter().position(|(cell, _)| cell.is_empty()) {
            if free == 1 && self.are_one_thread::<SPAN>(reads[0], own)? {
                reads[0] = self.joined::<SPAN>(reads[0], own)?;
            } else {
                reads[free] = own;
            }
            return Some(());
        }
        // Whoever comes after this one comes after those, too.
        if others == Others::None {
            let one = Me {
                thread,
                lanes: 1 << (thread % WARP as u32),
                ..me
            };
            for before in &mut *reads {
                if self.is_after::<SPAN>(*before, one)? {
                    *before = own;
                    return Some(());
                }
            }
        }
        for read in &mut *reads {
            if self.are_one_thread::<SPAN>(*read, own)? {
                *read = self.joined::<SPAN>(*read, own)?;
                return Some(());
            }
        }
        let here = self.entries.entry(number).block;
        let block = |(cell, _): Span| {
            self.layout
                .parts(cell)
                .map(|(number, ..)| self.entries.entry(number).block)
        };
        let [one, two] = *reads;
        match (block(one), block(two)) {
            (first, second) if first == second && Some(here) == first => reads[1] = self.joined::<SPAN>(two, own)?,
            (first, second) if first == second => *reads = [self.joined::<SPAN>(one, two)?, own],
            (first, _) if Some(here) == first => reads[0] = self.joined::<SPAN>(one, own)?,
            (_, second) if Some(here) == second => reads[1] = self.joined::<SPAN>(two, own)?,
            _ => {}
        }
        Some(())
    }

    /// The later of two cells of one block, which then stands for the other as well.
    pub(super) fn joined<const SPAN: usize>(&self, old: Span, new: Span) -> Option<Span> {
        let (Some((first, one, before)), Some((second, other, now))) =
            (self.layout.parts(old.0), self.layout.parts(new.0))
        else {
            return Some(new);
        };
        let (first, second) = (self.entries.entry(first), self.entries.entry(second));
        let between = match () {
            () if first.block != second.block => Others::Blocks,
            () if first.epoch != second.epoch => Others::Block,
            () => {
                let warp = |(thread, shift): (u32, u8)| {
                    let (first, last) = Self::threads::<SPAN>(thread, shift);
                    (first / WARP as u32 == last / WARP as u32).then_some(first / WARP as u32)
                };
                match (warp((one, old.1))?, warp((other, new.1))?) {
                    (one, other) if one != other => Others::Block,
                    _ if SPAN == WORD && one == other => Others::None,
                    _ if SPAN != WORD && Self::are_same::<SPAN>((one, old.1), (other, new.1))? => Others::None,
                    _ => Others::Warp,
                }
            }
        };
        Some((self.layout.with(new.0, before.max(now).max(between)), new.1))
    }

    /// Whether two cells name one thread.
    pub(super) fn are_one_thread<const SPAN: usize>(&self, one: Span, other: Span) -> Option<bool> {
        let (Some((first, thread, _)), Some((second, same, _))) =
            (self.layout.parts(one.0), self.layout.parts(other.0))
        else {
            return Some(false);
        };
        let are_same = match SPAN {
            WORD => thread == same,
            _ => Self::are_same::<SPAN>((thread, one.1), (same, other.1))?,
        };
        if !are_same || first == second {
            return Some(are_same);
        }
        let (one, other) = (self.entries.entry(first), self.entries.entry(second));
        Some((one.block, one.operation) == (other.block, other.operation))
    }
}
