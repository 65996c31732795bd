//! What strong accesses let others know, and what they learn (PTX ISA, Memory Consistency Model: Release and Acquire Patterns).

use crate::program::Ordering;
use crate::simt::observe::{Access, Direction};

use super::block::{Block, Told};
use super::clock::{Knowledge, Writers};
use super::flags::{For, Message, Over};
use super::ledger::{Cell, Entry, Kind, Ledger, Reach, Swap};
use super::{Book, Detector, lanes};

impl Detector {
    /// Lanes that read flags learn what was left there for them.
    pub(super) fn acquire(&self, block: &mut Block, warp: usize, access: &Access<'_>, reach: Reach) {
        let flags = self.flags.lock();
        if flags.is_empty() {
            return;
        }
        let acquires = matches!(access.ordering, Ordering::Acquire | Ordering::AcqRel | Ordering::Sc);
        // Nobody waits by what is not looked at.
        let is_blind = access.atomic.is_some_and(|atomic| atomic.is_blind);
        let at_once = acquires || !self.options.benign && !is_blind;
        let own = (block.number, block.cluster);
        for (address, some) in by_address(access) {
            let Some(state) = flags.state(address, reach) else {
                continue;
            };
            // Who waits reads the same again and again.
            let read = Some((address, state, at_once, reach));
            if lanes(some).all(|lane| block.warps[warp].read[lane] == read) {
                continue;
            }
            lanes(some).for_each(|lane| block.warps[warp].read[lane] = read);
            flags.read(address, reach, own, |whom, message| {
                block.warps[warp].change(some, |state| {
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

    /// Lanes read words: writes that they find there lie before what they do from now on. Returns those that do not lie before an
    /// atomic itself, to be learnt when it has been looked at.
    pub(super) fn observe(&self, block: &mut Block, book: &Book, warp: usize, access: &Access<'_>) -> Vec<Observed> {
        let kind = Kind::of(access);
        let at = (block.number, block.cluster);
        let (mut now, mut later) = (Vec::new(), Vec::new());
        let mut cursor = book.shadow.cursor();
        for (address, lanes) in by_address(access) {
            cursor.each(address, access.bytes.into(), |known, address, _| {
                let (mut before, mut behind) = (Writers::default(), Writers::default());
                for found in self.found_by(at, kind, &book.ledger, known.writes) {
                    let writer = book.ledger.entry(found.number).writer(found.lanes);
                    match kind.direction {
                        Direction::Atomic if found.is_hidden => {}
                        Direction::Atomic if !found.is_strong => behind.join(&Writers(vec![writer])),
                        _ => before.join(&Writers(vec![writer])),
                    }
                }
                now.push(Observed {
                    address,
                    lanes,
                    writers: before,
                });
                if !behind.0.is_empty() {
                    later.push(Observed {
                        address,
                        lanes,
                        writers: behind,
                    });
                }
            });
        }
        drop(cursor);
        learn_of_writes(block, warp, now);
        later
    }

    /// What an access of this kind, of a block and cluster, finds written: the last write, and if that was an atomic the one that it
    /// has found, and so on (PTX ISA, Memory Consistency Model: Observation order). A compare-and-swap may have written nothing: what
    /// it is too weak to pass on may still be what is found.
    pub(super) fn found_by(&self, at: (u32, u32), kind: Kind, ledger: &Ledger, writes: Cell) -> Vec<Found> {
        let mut members = Vec::new();
        ledger.each(writes, |member| members.push(member));
        let mut found: Vec<Found> = Vec::new();
        // The last of them that goes on what was there.
        let mut atomic: Option<(&Entry, u32)> = None;
        for (number, lanes) in members.into_iter().rev() {
            let entry = ledger.entry(number);
            if entry.operation.is_some() {
                break;
            }
            if entry.kind.swap == Swap::Failed {
                continue;
            }
            let is_strong = self.are_strong_for_each_other(at, entry, kind);
            let is_passed_on = atomic.is_some_and(|(atomic, _)| {
                self.are_strong_for_each_other((atomic.block, atomic.cluster), entry, atomic.kind)
            });
            // Operations of one thread are morally strong, however weak.
            let is_own = atomic.is_some_and(|(atomic, by)| {
                lanes.is_power_of_two()
                    && lanes & by != 0
                    && (entry.block, entry.warp, entry.kind.element) == (atomic.block, atomic.warp, atomic.kind.element)
            });
            // Past an atomic that may have written nothing, one reads what lies behind it oneself.
            let may_be_read = atomic.is_none_or(|(atomic, _)| atomic.kind.swap == Swap::Open);
            let is_found = is_strong && may_be_read || is_passed_on || is_own;
            if is_found {
                if !is_strong
                    && !is_passed_on
                    && let Some(atomic) = found.last_mut()
                {
                    // Without the atomic nobody would find it.
                    atomic.is_hidden = false;
                }
                found.push(Found {
                    number,
                    lanes,
                    is_strong,
                    is_hidden: kind.direction == Direction::Atomic && self.is_hidden(entry, at.0, kind),
                });
                atomic = Some((entry, lanes));
            }
            let is_missed = !is_found && entry.kind.swap == Swap::No;
            if is_missed || entry.kind.direction != Direction::Atomic {
                break;
            }
        }
        found
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
            let has_fence = !own.lane(lane).channels[channel].is_empty();
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
        let is_swap = access.atomic.is_some_and(|atomic| atomic.is_swap);
        let over = match access.direction {
            Direction::Atomic if is_swap => Over::MayGoOn,
            Direction::Atomic => Over::GoesOn,
            Direction::Read | Direction::Write => Over::New,
        };
        let may_repeat = over != Over::New && !is_release(access.ordering);
        let at = (block.number, block.cluster);
        let told = (reach, reach.number(at));
        let mut flags = self.flags.lock();
        if let Some(swap) = &mut block.warps[warp].swap
            && is_swap
            && swap.says_again(&mut flags)
        {
            return;
        }
        for lane in lanes(access.lanes) {
            let address = access.addresses[lane];
            let own = &block.warps[warp];
            let is_repeated = |told: &&Told| {
                may_repeat
                    && (told.address, told.reach, Some(told.version)) == (address, reach, flags.version(address))
                    && told.is_still(own.lane(lane))
            };
            let repeats = own.told[lane].as_deref().filter(is_repeated).is_some();
            let before = is_swap.then(|| flags.before(address, repeats));
            let messages = match repeats {
                true => Vec::new(),
                false => self.messages(block, warp, lane, access.ordering, reach),
            };
            let said = before.as_ref().map(|_| messages.clone()).unwrap_or_default();
            match repeats {
                true => flags.repeated(address, at),
                false => any |= flags.written(address, ((at.0, warp, lane), at.1), told, over, messages),
            }
            let own = &mut block.warps[warp];
            if let (Some(before), Some(swap)) = (before, &mut own.swap)
                && (before.is_some_flag() || !said.is_empty())
            {
                swap.said(lane, before, said, flags.last_write(address));
            }
            if repeats {
                continue;
            }
            own.told[lane] = flags.version(address).filter(|_| may_repeat).map(|version| {
                Box::new(Told {
                    address,
                    reach,
                    version,
                    channels: own.lane(lane).channels.clone(),
                })
            });
        }
        drop(flags);
        let own = &mut block.warps[warp];
        match &mut own.swap {
            Some(swap) if any => swap.ends_the_step(),
            None if any => own.next_step(),
            Some(_) | None => {}
        }
    }
}

/// A write that a strong read finds.
pub(super) struct Found {
    pub number: u32,
    pub lanes: u32,
    /// The two are strong for each other; where not, others have passed it on.
    pub is_strong: bool,
    /// Who reads is an atomic, and whoever finds that finds this.
    pub is_hidden: bool,
}

/// Writes to a word that lanes have found there.
pub(super) struct Observed {
    pub address: u64,
    pub lanes: u32,
    pub writers: Writers,
}

/// What lanes have found lies before what they do from now on.
pub(super) fn learn_of_writes(block: &mut Block, warp: usize, observed: Vec<Observed>) {
    let own = &mut block.warps[warp];
    for Observed {
        address,
        lanes: some,
        writers,
    } in observed
    {
        let is_new = |lane| {
            let known = own.lane(lane).seen.writes.get(address);
            !known.is_some_and(|known| known.covers(&writers))
        };
        if !writers.0.is_empty() && lanes(some).any(is_new) {
            own.change(some, |state| state.seen.writes.insert(address, writers.clone()));
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
