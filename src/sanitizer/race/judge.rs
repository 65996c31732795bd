//! Whether two accesses that are in no order are a race, and for want of what.

use std::sync::Arc;

use crate::isa::lanes::WARP;
use crate::simt::observe::{Access, Direction};

use super::access::Actor;
use super::block::Block;
use super::ledger::{Entry, Kind, Ledger, Reach};
use super::report::{self, Missing};
use super::{Detector, guess};

impl Detector {
    /// Two accesses are in no order: notes a race, if they are one. Whether they would be, were it not forgiven.
    #[allow(
        clippy::too_many_arguments,
        reason = "both accesses, and what is known of each: it is at hand here and nowhere together before"
    )]
    pub(super) fn judge(
        &self,
        actor: &Actor<'_>,
        ledger: &Ledger,
        at: (u64, usize),
        (number, their): (u32, Option<usize>),
        lane: usize,
        access: &Access<'_>,
        lacks_fence: bool,
    ) -> bool {
        let entry = ledger.entry(number);
        if !entry.kind.writes() && !actor.kind.writes() {
            return false;
        }
        if self.are_strong_for_each_other(actor.block, entry, actor.kind) {
            return false;
        }
        let reach = self.reach(actor.block, entry);
        let is_same_warp = reach == Reach::Block && entry.warp == actor.warp as u32;
        let missing = match () {
            () if lacks_fence => Missing::ProxyFence,
            () if self.is_guess(entry.site, entry.kind, actor.kind)
                || self.is_guess(ledger.entry(actor.entry).site, actor.kind, entry.kind) =>
            {
                Missing::Guess
            }
            () if self.is_same_value(number == actor.entry, their, lane, at, entry, access) => Missing::SameValue,
            () if entry.kind.strong.is_some() && actor.kind.strong.is_some() => {
                match entry.kind.element == actor.kind.element {
                    true => Missing::Scope,
                    false => Missing::Size,
                }
            }
            () if entry.operation.is_some() => Missing::Completion,
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
        let other = report::Side {
            site: entry.site,
            kind: entry.kind,
            block: entry.block,
            thread: their.map(|their| entry.warp * WARP as u32 + their as u32),
            operation: entry.operation.is_some(),
        };
        let own = report::Side {
            site: ledger.entry(actor.entry).site,
            kind: actor.kind,
            block: actor.block.number,
            thread: Some((actor.warp * WARP + lane) as u32),
            operation: actor.operation.is_some(),
        };
        self.note(other, own, at, missing);
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
    pub(super) fn is_same_value(
        &self,
        is_one_entry: bool,
        their: Option<usize>,
        lane: usize,
        (address, bytes): (u64, usize),
        entry: &Entry,
        access: &Access<'_>,
    ) -> bool {
        // What an asynchronous operation writes may not be there yet.
        let is_store = entry.kind.direction == Direction::Write && entry.operation.is_none();
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
        let is_now = |their: &usize| is_one_entry && access.lanes >> their & 1 == 1 && touches(*their);
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

    pub(super) fn note(&self, first: report::Side, second: report::Side, at: (u64, usize), missing: Missing) {
        let shared = self.windows.lock().iter().find_map(|(block, (start, bytes))| {
            let offset = at.0.wrapping_sub(*start);
            (offset < *bytes).then_some((*block, offset))
        });
        let key = report::Key::of(&first, &second, missing);
        let mut found = self.found.lock();
        let times = &mut found
            .entry(key)
            .or_insert_with(|| report::Found {
                first,
                second,
                address: at.0,
                bytes: at.1 as u32,
                shared,
                times: 0,
            })
            .times;
        *times += 1;
    }

    /// How near a block is to who made an entry.
    pub(super) fn reach(&self, block: &Block, entry: &Entry) -> Reach {
        match () {
            () if entry.block == block.number => Reach::Block,
            () if entry.cluster == block.cluster && self.launch.cluster.is_some() => Reach::Cluster,
            () => Reach::Device,
        }
    }

    /// Whether an entry and an access of this kind by a block are morally strong (PTX ISA, Memory Consistency Model).
    pub(super) fn are_strong_for_each_other(&self, block: &Block, entry: &Entry, kind: Kind) -> bool {
        let reach = Some(self.reach(block, entry));
        entry.kind.strong >= reach && kind.strong >= reach && entry.kind.element == kind.element
    }
}
