//! Whether two accesses that are in no order are a race, and for want of what.

use std::sync::Arc;

use crate::isa::lanes::WARP;
use crate::simt::observe::{Access, Direction};

use super::ledger::{Entry, Kind, Reach};
use super::report::{self, Missing};
use super::{Detector, guess};

/// Two accesses that are in no order, the second about to be made.
pub(super) struct Pair<'a> {
    pub other: &'a Entry,
    pub own: &'a Entry,
    /// Both are accesses by one instruction, of one warp in one step.
    pub is_one: bool,
    /// A lane of each; `None`: one of several that were not told apart.
    pub lanes: (Option<usize>, usize),
    /// They are in order but for a proxy fence.
    pub lacks_fence: bool,
    /// The block in whose shared memory it is, and the offset there, where that is known.
    pub shared: Option<(u32, u64)>,
}

impl Detector {
    /// Notes a race, if a pair is one. Whether it would be, were it not forgiven.
    pub(super) fn judge(&self, pair: &Pair<'_>, at: (u64, usize), access: &Access<'_>) -> bool {
        let Pair { other, own, .. } = *pair;
        let (their, lane) = pair.lanes;
        if !other.kind.writes() && !own.kind.writes() {
            return false;
        }
        let here = (own.block, own.cluster);
        if self.are_strong_for_each_other(here, other, own.kind) {
            return false;
        }
        let reach = self.reach(here, other);
        let is_same_warp = reach == Reach::Block && other.warp == own.warp;
        let missing = match () {
            () if pair.lacks_fence => Missing::ProxyFence,
            () if self.is_guess(other.site, other.kind, own.kind) || self.is_guess(own.site, own.kind, other.kind) => {
                Missing::Guess
            }
            () if self.is_same_value(pair, at, access) => Missing::SameValue,
            () if other.kind.strong.is_some() && own.kind.strong.is_some() => {
                match other.kind.element == own.kind.element {
                    true => Missing::Scope,
                    false => Missing::Size,
                }
            }
            () if other.operation.is_some() => Missing::Completion,
            () if is_same_warp => Missing::Warp,
            () => match reach {
                Reach::Block => Missing::Barrier,
                Reach::Cluster => Missing::Cluster,
                Reach::Device => Missing::Device,
            },
        };
        if matches!(missing, Missing::SameValue | Missing::Guess) && !self.options.benign {
            return true;
        }
        let side = |entry: &Entry, lane: Option<usize>| report::Side {
            site: entry.site,
            kind: entry.kind,
            block: entry.block,
            thread: lane.map(|lane| entry.warp * WARP as u32 + lane as u32),
            operation: entry.operation.is_some(),
        };
        self.note(side(other, their), side(own, Some(lane)), at, missing, pair.shared);
        false
    }

    /// Whether an access only guesses what an atomic by others, the second, has left there.
    pub(super) fn is_guess(&self, site: u32, kind: Kind, other: Kind) -> bool {
        if kind.writes() || kind.strong.is_some() || other.direction != Direction::Atomic {
            return false;
        }
        let mut sites = self.sites.lock();
        let (at, span) = sites.all[site as usize];
        *sites.guesses.entry(site).or_insert_with(|| {
            let lowered = self.launch.code.module.functions.iter();
            let lowered = lowered.filter_map(|entry| entry.lowered.get()?.as_ref().ok());
            let mut own = lowered.filter(|function| Arc::as_ptr(function) as usize == at);
            own.next().is_some_and(|function| guess::is_guess(function, span))
        })
    }

    /// Whether two stores that race store the same.
    pub(super) fn is_same_value(&self, pair: &Pair<'_>, (address, bytes): (u64, usize), access: &Access<'_>) -> bool {
        let (their, lane) = pair.lanes;
        // What an asynchronous operation writes may not be there yet.
        let is_store = pair.other.kind.direction == Direction::Write && pair.other.operation.is_none();
        let Some(stored) = access.stored.filter(|_| is_store) else {
            return false;
        };
        let size = access.bytes as usize;
        let value = |of: usize| {
            let mut all = [0u8; 64];
            stored(of, &mut all[..size]);
            let offset = address.wrapping_sub(access.addresses[of]) as usize;
            all.get(offset..)?.get(..bytes).map(<[u8]>::to_vec)
        };
        let Some(own) = value(lane) else { return false };
        let touches = |of: usize| address.wrapping_sub(access.addresses[of]) < u64::from(access.bytes);
        let is_now = |their: &usize| pair.is_one && access.lanes >> their & 1 == 1 && touches(*their);
        if let Some(their) = their.filter(is_now) {
            // Both store in this instruction.
            return value(their) == Some(own);
        }
        // What the other has stored is still there, unless a third has come, who then has a race of his own.
        own.iter().enumerate().all(|(i, own)| {
            // SAFETY: the access was checked, so the bytes are the kernel's, which runs; others may be writing them.
            let there = unsafe { (address as *const u8).add(i).read_volatile() };
            there == *own
        })
    }

    fn note(
        &self,
        first: report::Side,
        second: report::Side,
        at: (u64, usize),
        missing: Missing,
        shared: Option<(u32, u64)>,
    ) {
        let in_a_window = || {
            self.windows.lock().iter().find_map(|(block, (start, bytes))| {
                let offset = at.0.wrapping_sub(*start);
                (offset < *bytes).then_some((*block, offset))
            })
        };
        let key = report::Key::of(&first, &second, missing);
        let mut found = self.found.lock();
        let times = &mut found
            .entry(key)
            .or_insert_with(|| report::Found {
                first,
                second,
                address: at.0,
                bytes: at.1 as u32,
                shared: shared.or_else(in_a_window),
                times: 0,
            })
            .times;
        *times += 1;
    }

    /// How near a block, by its number and its cluster's, is to who made an entry.
    pub(super) fn reach(&self, (block, cluster): (u32, u32), entry: &Entry) -> Reach {
        match () {
            () if entry.block == block => Reach::Block,
            () if entry.cluster == cluster && self.launch.cluster.is_some() => Reach::Cluster,
            () => Reach::Device,
        }
    }

    /// Whether an entry and an access of this kind by a block are morally strong (PTX ISA, Memory Consistency Model).
    pub(super) fn are_strong_for_each_other(&self, by: (u32, u32), entry: &Entry, kind: Kind) -> bool {
        let reach = Some(self.reach(by, entry));
        entry.kind.strong >= reach && kind.strong >= reach && entry.kind.element == kind.element
    }

    /// Whether an atomic of a block that has found this written need not be told from it: another that finds the one finds this
    /// one, too, what is forgiven for the one is for this one, and what this one has found the other finds behind it. To a third of the
    /// atomic's own block this one may be too far away, unless all reach as far as they can.
    pub(super) fn is_hidden(&self, entry: &Entry, block: u32, atomic: Kind) -> bool {
        entry.kind.direction == Direction::Atomic
            && entry.kind.strong == atomic.strong
            && (entry.block == block || self.is_wide)
    }
}
