//! Who has read a row or a word since it was written: two threads are kept, the second with others.

use crate::isa::lanes::WARP;

use super::super::shadow::{Cell, Others, Touched};
use super::order::{Class, Verdict};
use super::{Entries, Looker, Me, Span};

impl<E: Entries + ?Sized> Looker<'_, E> {
    /// Notes that threads have read a row or a word.
    #[inline(always)]
    pub(super) fn read<const ROW: bool>(&mut self, known: &mut Touched, shifts: &mut [u8; 3], me: Me) -> Option<()> {
        let (one, two) = ((known.reads[0], shifts[1]), (known.reads[1], shifts[2]));
        let own = (self.cell(me.thread), me.shift);
        let rest = if ROW { 0 } else { me.lanes & (me.lanes - 1) };
        if rest == 0 && one == own && two.0.is_empty() {
            return Some(());
        }
        let is_after_one = self.is_after::<ROW>(one, me)?;
        if !is_after_one && self.is_told::<ROW>(two, me)? {
            return Some(());
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
        if is_after_one && self.is_after::<ROW>(two, me)? {
            known.reads = [own.0, second];
            (shifts[1], shifts[2]) = (me.shift, me.shift);
            return Some(());
        }
        if self.are_of_other_blocks(one.0, two.0) {
            // Whoever writes is in no order with one of them.
            return Some(());
        }
        let mut reads = [one, two];
        self.add_read::<ROW>(&mut reads, own, me)?;
        if !second.is_empty() {
            self.add_read::<ROW>(&mut reads, (second, me.shift), me)?;
        }
        known.reads = reads.map(|(cell, _)| cell);
        (shifts[1], shifts[2]) = (reads[0].1, reads[1].1);
        Some(())
    }

    /// Whether a cell stands for more threads of all this block, or of all this warp, that have read as late as this one.
    #[inline(always)]
    pub(super) fn is_told<const ROW: bool>(&mut self, (cell, shift): Span, me: Me) -> Option<bool> {
        Some(match self.layout.parts(cell) {
            Some((number, thread, Others::Block)) => {
                let verdict = self.verdict::<ROW>((number, thread), shift, me)?;
                matches!(verdict, Verdict::Block | Verdict::Warp)
            }
            Some((number, thread, Others::Warp)) => self.verdict::<ROW>((number, thread), shift, me)? == Verdict::Warp,
            Some((.., Others::None | Others::Blocks)) | None => false,
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
    pub(super) fn add_read<const ROW: bool>(&mut self, reads: &mut [Span; 2], own: Span, me: Me) -> Option<()> {
        let Some((number, thread, others)) = self.layout.parts(own.0) else {
            return Some(());
        };
        if let Some(free) = reads.iter().position(|(cell, _)| cell.is_empty()) {
            if free == 1 && self.are_one_thread::<ROW>(reads[0], own)? {
                reads[0] = self.joined::<ROW>(reads[0], own)?;
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
                if self.is_after::<ROW>(*before, one)? {
                    *before = own;
                    return Some(());
                }
            }
        }
        for read in &mut *reads {
            if self.are_one_thread::<ROW>(*read, own)? {
                *read = self.joined::<ROW>(*read, own)?;
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
            (first, second) if first == second && Some(here) == first => reads[1] = self.joined::<ROW>(two, own)?,
            (first, second) if first == second => *reads = [self.joined::<ROW>(one, two)?, own],
            (first, _) if Some(here) == first => reads[0] = self.joined::<ROW>(one, own)?,
            (_, second) if Some(here) == second => reads[1] = self.joined::<ROW>(two, own)?,
            _ => {}
        }
        Some(())
    }

    /// The later of two cells of one block, which then stands for the other as well.
    pub(super) fn joined<const ROW: bool>(&self, old: Span, new: Span) -> Option<Span> {
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
                    let (first, last) = Self::threads::<ROW>(thread, shift);
                    (first / WARP as u32 == last / WARP as u32).then_some(first / WARP as u32)
                };
                match (warp((one, old.1))?, warp((other, new.1))?) {
                    (one, other) if one != other => Others::Block,
                    _ if !ROW && one == other => Others::None,
                    _ if ROW && Self::are_same((one, old.1), (other, new.1))? => Others::None,
                    _ => Others::Warp,
                }
            }
        };
        Some((self.layout.with(new.0, before.max(now).max(between)), new.1))
    }

    /// Whether two cells name one thread.
    pub(super) fn are_one_thread<const ROW: bool>(&self, one: Span, other: Span) -> Option<bool> {
        let (Some((first, thread, _)), Some((second, same, _))) =
            (self.layout.parts(one.0), self.layout.parts(other.0))
        else {
            return Some(false);
        };
        let are_same = match ROW {
            true => Self::are_same((thread, one.1), (same, other.1))?,
            false => thread == same,
        };
        if !are_same || first == second {
            return Some(are_same);
        }
        let (one, other) = (self.entries.entry(first), self.entries.entry(second));
        Some((one.block, one.operation) == (other.block, other.operation))
    }
}
