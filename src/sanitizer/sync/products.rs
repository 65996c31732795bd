//! Products of `wgmma` (PTX ISA, Asynchronous Warpgroup Level Matrix Instructions): a fence before the first, a group, a wait, and
//! until then nobody touches their registers.

use std::collections::VecDeque;

use crate::simt::observe::{ProductEvent, Who};

use super::{Block, Checker, Place, Spot, Wrong, spot, threads_of_warp};

/// Products of a warp.
#[derive(Default)]
pub(super) struct Pending {
    is_fenced: bool,
    open: Option<Place>,
    groups: VecDeque<Option<Place>>,
}

impl Checker {
    pub(super) fn products(&self, block: &mut Block, by: &Who<'_>, warp: usize, what: ProductEvent) {
        let pending = block.products.entry(warp).or_default();
        let here = || spot(by, threads_of_warp(warp, self.exist(warp)));
        match what {
            ProductEvent::Fence => pending.is_fenced = true,
            ProductEvent::Multiply { late } => {
                if !pending.is_fenced {
                    self.tell(Wrong::ProductNotFenced, &here(), None);
                }
                if !late {
                    self.tell(Wrong::ProductTouched, &here(), None);
                }
                pending.open.get_or_insert(Place::of(by));
            }
            ProductEvent::Commit => {
                let group = pending.open.take();
                pending.groups.push_back(group);
            }
            ProductEvent::Wait(but) => {
                while pending.groups.len() as u64 > but {
                    pending.groups.pop_front();
                }
            }
        }
    }

    /// All of the warp have exited.
    pub(super) fn left_products(&self, by: &Who<'_>, warp: usize, pending: &Pending) {
        let at = |place: Place| Spot {
            place,
            ..spot(by, threads_of_warp(warp, self.exist(warp)))
        };
        if let Some(place) = pending.open {
            self.tell(Wrong::ProductNotCommitted, &at(place), None);
        }
        if let Some(place) = pending.groups.iter().flatten().next() {
            self.tell(Wrong::ProductNotAwaited, &at(*place), None);
        }
    }
}
