//! What lanes of a warp do together (PTX ISA, bar.warp.sync, shfl.sync and others): the members that each names, and whose
//! registers it reads.
//!
//! Lanes that have exited are no members any more, whatever a mask says: nobody waits for them, and naming them is no mistake.

use std::collections::BTreeSet;

use crate::isa::lanes::WARP;
use crate::simt::observe::{Elsewhere, Who};

use super::{Block, Checker, Place, Wrong, lanes, spot, spot_elsewhere, threads_of_warp};

/// The target that brought independent thread scheduling: before, votes were of those who were active.
const VOLTA: u32 = 70;

pub(super) struct Members<'a> {
    /// Of the block.
    pub warp: usize,
    pub lanes: u32,
    pub named: &'a [u32; WARP],
    pub live: u32,
    pub goes_on: bool,
    pub elsewhere: Option<Elsewhere>,
}

impl Checker {
    pub(super) fn members(&self, block: &mut Block, by: &Who<'_>, members: &Members<'_>) {
        let Members {
            warp,
            lanes: mask,
            named,
            live,
            ..
        } = *members;
        let one = named[mask.trailing_zeros() as usize % WARP];
        let are_all_here = one & live == mask && lanes(mask).all(|lane| named[lane] == one);
        if are_all_here {
            if members.goes_on {
                block.incomplete = None;
                let last = block.masks.entry((warp, Place::of(by))).or_default();
                lanes(mask).for_each(|lane| last[lane] = one);
            }
            return;
        }
        let is_outside = |lane: &usize| named[*lane] >> lane & 1 == 0;
        let outside: u32 = lanes(mask).filter(is_outside).fold(0, |all, lane| all | 1 << lane);
        if outside != 0 {
            let wrong = Wrong::NotMember {
                mask: named[outside.trailing_zeros() as usize],
            };
            self.tell(wrong, &spot(by, threads_of_warp(warp, outside)), None);
        }
        if !members.goes_on {
            return;
        }
        let place = Place::of(by);
        let last = block.masks.entry((warp, place)).or_default();
        block.incomplete = None;
        for lane in lanes(mask & !outside) {
            let own = named[lane] & live;
            let missing = own & !mask;
            if missing != 0 {
                block.incomplete = Some((warp, place));
            }
            // Those that are here, or were before with another mask, so that neither met the other.
            let other = lanes(own).find_map(|other| {
                let of = if mask >> other & 1 == 1 {
                    named[other]
                } else {
                    last[other]
                };
                (of != 0 && of & live != own).then_some(of)
            });
            if let Some(other) = other {
                let naming = |wanted: u32| {
                    let of = |lane: usize| if mask >> lane & 1 == 1 { named[lane] } else { last[lane] };
                    let naming: BTreeSet<u32> = (0..WARP)
                        .filter(|lane| of(*lane) == wanted)
                        .map(|lane| (warp * WARP + lane) as u32)
                        .collect();
                    spot(by, naming)
                };
                let masks = [named[lane], other];
                self.tell(Wrong::MasksDiffer { masks }, &naming(masks[0]), Some(&naming(masks[1])));
            } else if missing != 0 {
                let wrong = Wrong::NeverCame {
                    mask: named[lane],
                    missing: threads_of_warp(warp, missing),
                };
                let there = members.elsewhere.map(|elsewhere| spot_elsewhere(by, warp, &elsewhere));
                self.tell(wrong, &spot(by, threads_of_warp(warp, mask)), there.as_ref());
            }
        }
        for lane in lanes(mask) {
            last[lane] = named[lane];
        }
    }

    pub(super) fn shuffles(
        &self,
        block: &Block,
        by: &Who<'_>,
        (warp, mask): (usize, u32),
        partners: &[u32; WARP],
        sources: &[Option<u8>; WARP],
    ) {
        // Of members that have not come it is known already.
        if block.incomplete == Some((warp, Place::of(by))) {
            return;
        }
        let (mut readers, mut from) = (0_u32, 0_u32);
        for lane in lanes(mask) {
            if let Some(source) = sources[lane].filter(|source| partners[lane] >> source & 1 == 0) {
                readers |= 1 << lane;
                from |= 1 << source;
            }
        }
        if readers != 0 {
            let from = threads_of_warp(warp, from);
            self.tell(Wrong::Source { from }, &spot(by, threads_of_warp(warp, readers)), None);
        }
    }

    pub(super) fn votes(&self, by: &Who<'_>, warp: usize, mask: u32, live: u32) {
        let entry = &self.launch.code.module.functions[self.launch.kernel as usize];
        let target = entry.kernel.as_ref().map_or(0, |kernel| kernel.target);
        if mask != live && target >= VOLTA {
            self.tell(Wrong::Vote, &spot(by, threads_of_warp(warp, mask)), None);
        }
    }
}
