//! What strong accesses let others know, and what they learn (PTX ISA, Memory Consistency Model: Release and Acquire Patterns).

use crate::program::Ordering;
use crate::simt::observe::{Access, Direction};

use super::block::{Block, Told};
use super::clock::{Knowledge, Writers};
use super::flags::{For, Message};
use super::ledger::{Cell, Kind, Ledger, Reach};
use super::{Book, Detector, lanes};

impl Detector {
    /// Lanes that read flags learn what was left there for them.
    pub(super) fn acquire(&self, block: &mut Block, warp: usize, access: &Access<'_>, reach: Reach) {
        let flags = self.flags.lock();
        if flags.is_empty() {
            return;
        }
        let acquires = matches!(access.ordering, Ordering::Acquire | Ordering::AcqRel | Ordering::Sc);
        let at_once = acquires || !self.options.benign;
        let own = (block.number, block.cluster);
        let there = block.warps[warp].there;
        for (address, some) in by_address(access) {
            let Some(state) = flags.state(address, reach) else {
                continue;
            };
            // Who waits reads the same again and again.
            let read = Some((address, state, acquires, reach));
            if lanes(some).all(|lane| block.warps[warp].read[lane] == read) {
                continue;
            }
            lanes(some).for_each(|lane| block.warps[warp].read[lane] = read);
            flags.read(address, reach, own, |whom, message| {
                block.warps[warp].lanes.change(some, there, |state| {
                    // Who is farther away has to be met by a fence that reaches him.
                    if at_once && whom <= reach {
                        state.seen.join(&message.clock);
                    } else {
                        state.unfenced[whom as usize].join(&message.clock);
                    }
                    state.learn_of_proxy(message);
                });
            });
        }
    }

    /// Lanes read words: writes that they find there, as strong as their reads, lie before what they do from now on.
    pub(super) fn observe(&self, block: &mut Block, book: &Book, warp: usize, access: &Access<'_>) {
        let kind = Kind::of(access);
        let mut cursor = book.shadow.cursor();
        for (address, some) in by_address(access) {
            cursor.each(address, access.bytes.into(), |known, at, _| {
                let mut writers = Writers::default();
                for (number, lanes) in self.found_by(block, kind, &book.ledger, known.writes) {
                    let entry = book.ledger.entry(number);
                    let is_hidden = kind.direction == Direction::Atomic && self.is_hidden(entry, block.number, kind);
                    if !is_hidden {
                        writers.join(&Writers(vec![entry.writer(lanes)]));
                    }
                }
                let own = &mut block.warps[warp];
                let is_new = |lane| {
                    let known = own.lanes.get(lane).seen.writes.get(at);
                    !known.is_some_and(|known| known.covers(&writers))
                };
                if !writers.0.is_empty() && lanes(some).any(is_new) {
                    let there = own.there;
                    own.lanes
                        .change(some, there, |state| state.seen.writes.insert(at, writers.clone()));
                }
            });
        }
    }

    /// What an access of this kind finds written: the last write, and if that was an atomic the one before, and so on.
    pub(super) fn found_by(&self, block: &Block, kind: Kind, ledger: &Ledger, writes: Cell) -> Vec<(u32, u32)> {
        let mut members = Vec::new();
        ledger.each(writes, |member| members.push(member));
        let mut goes_on = true;
        let found = members.into_iter().rev().take_while(|(number, _)| {
            let entry = ledger.entry(*number);
            let is_found = goes_on
                && entry.operation.is_none()
                && self.are_strong_for_each_other((block.number, block.cluster), entry, kind);
            goes_on = entry.kind.direction == Direction::Atomic;
            is_found
        });
        found.collect()
    }

    /// What a strong write of a lane lets others know.
    pub(super) fn messages(
        &self,
        block: &Block,
        warp: usize,
        lane: usize,
        ordering: Ordering,
        reach: Reach,
    ) -> Vec<(For, Message)> {
        let at = (block.number, warp);
        let own = &block.warps[warp];
        let releases = is_release(ordering);
        let mut messages = Vec::new();
        for (channel, whom) in Reach::ALL.into_iter().enumerate() {
            let number = whom.number((block.number, block.cluster));
            let has_fence = !own.lanes.get(lane).channels[channel].is_empty();
            let clock = match () {
                () if releases && whom <= reach => own.known_by(at, lane),
                // The fence may reach farther than the write, and another's write may carry it there.
                () if has_fence => own.fenced_by(at, lane, channel),
                () => continue,
            };
            let asynchronous = own.proxy_fenced_by(at, lane);
            messages.push(((whom, number), Message { clock, asynchronous }));
        }
        messages
    }

    /// Lanes are about to write words by strong accesses, from which others may learn.
    pub(super) fn release(&self, block: &mut Block, warp: usize, access: &Access<'_>, reach: Reach) {
        let mut any = false;
        let goes_on = access.direction == Direction::Atomic;
        let may_repeat = goes_on && !is_release(access.ordering);
        let at = (block.number, block.cluster);
        let told = (reach, reach.number(at));
        let mut flags = self.flags.lock();
        for lane in lanes(access.lanes) {
            let address = access.addresses[lane];
            let own = &block.warps[warp];
            let is_repeated = |told: &&Told| {
                may_repeat
                    && (told.address, told.reach, Some(told.version)) == (address, reach, flags.version(address))
                    && told.is_still(own.lanes.get(lane))
            };
            if own.told[lane].as_deref().filter(is_repeated).is_some() {
                flags.repeated(address, at);
                continue;
            }
            let messages = self.messages(block, warp, lane, access.ordering, reach);
            any |= flags.written(address, ((at.0, warp, lane), at.1), told, goes_on, messages);
            let own = &mut block.warps[warp];
            own.told[lane] = flags.version(address).filter(|_| may_repeat).map(|version| {
                Box::new(Told {
                    address,
                    reach,
                    version,
                    channels: own.lanes.get(lane).channels.clone(),
                })
            });
        }
        drop(flags);
        if any {
            block.warps[warp].next_step();
        }
    }
}

fn is_release(ordering: Ordering) -> bool {
    matches!(ordering, Ordering::Release | Ordering::AcqRel | Ordering::Sc)
}

/// The addresses of an access, with the lanes of each.
fn by_address(access: &Access<'_>) -> Vec<(u64, u32)> {
    let mut all: Vec<(u64, u32)> = Vec::new();
    for lane in lanes(access.lanes) {
        let address = access.addresses[lane];
        match all.iter_mut().find(|(other, _)| *other == address) {
            Some((_, lanes)) => *lanes |= 1 << lane,
            None => all.push((address, 1 << lane)),
        }
    }
    all
}
