//! Asynchronous operations: those that a thread puts into groups and waits for (PTX ISA, cp.async, cp.async.bulk), and those that
//! barriers in memory count. One for whose end nobody has waited was of no use, or reads and writes memory of a block that has
//! ended.

use std::collections::{BTreeSet, VecDeque};

use crate::program::CopyGroup;
use crate::simt::observe::Who;

use super::{Checker, Map, Place, Spot, Wrong, spot};

/// What a thread has begun and not waited for: where.
#[derive(Default)]
pub(super) struct Lines {
    open: Vec<Place>,
    groups: VecDeque<Vec<Place>>,
}

/// An operation of which a barrier in memory is told.
pub(super) struct Begun {
    pub spot: Spot,
    pub barrier: u64,
    pub is_complete: bool,
}

pub(super) fn begin(all: &mut Map<u32, Lines>, threads: &BTreeSet<u32>, place: Place) {
    for thread in threads {
        let open = &mut all.entry(*thread).or_default().open;
        if open.last() != Some(&place) {
            open.push(place);
        }
    }
}

/// Threads make groups, or have waited for all but some; `open`: also for what is in none.
pub(super) fn grouped(all: &mut Map<u32, Lines>, threads: &BTreeSet<u32>, group: CopyGroup, open: bool) {
    for thread in threads {
        let Some(lines) = all.get_mut(thread) else { continue };
        let left = match group {
            CopyGroup::Commit => {
                let group = std::mem::take(&mut lines.open);
                lines.groups.push_back(group);
                continue;
            }
            CopyGroup::Wait(but) => but as usize,
            CopyGroup::WaitAll => 0,
        };
        while lines.groups.len() > left {
            lines.groups.pop_front();
        }
        if open {
            lines.open.clear();
        }
    }
}

impl Checker {
    /// A thread exits.
    pub(super) fn left_copies(&self, by: &Who<'_>, thread: u32, lines: &Lines, bulk: bool) {
        let at = |place: Place| Spot {
            place,
            ..spot(by, [thread].into())
        };
        for place in &lines.open {
            self.tell(Wrong::NotCommitted { bulk }, &at(*place), None);
        }
        for place in lines.groups.iter().flatten() {
            self.tell(Wrong::NotAwaited { bulk }, &at(*place), None);
        }
    }
}
