//! Barriers of a block (PTX ISA, bar, barrier): who comes to which, by which instruction.
//!
//! What a barrier has of a warp is looked at when it lets go: then all have come who will.

use std::collections::BTreeMap;

use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::program::BarrierOp;
use crate::simt::observe::Who;

use super::{Block, Checker, Place, Spot, Wrong, progress, spot, threads_of_warp, warps};

/// Those of a warp who have come.
#[derive(Clone, Copy)]
pub(super) struct Came {
    pub place: Place,
    pub lanes: u32,
    pub op: BarrierOp,
    pub is_aligned: bool,
    pub threads: Option<u32>,
}

/// Who has come to a barrier since it let go last.
#[derive(Default)]
pub(super) struct Gathering {
    /// By whom all others are measured.
    first: Option<(usize, Came)>,
    warps: BTreeMap<usize, Came>,
    /// Lanes that wait, by warp.
    waits: BTreeMap<usize, u32>,
    /// Lanes of one warp came at several instructions, which was told.
    has_parted: bool,
}

impl Gathering {
    /// Lanes of a warp that wait.
    pub(super) fn waits(&self, warp: usize) -> u32 {
        self.waits.get(&warp).copied().unwrap_or(0)
    }
}

/// What may meet: a reduction meets its own kind alone (PTX ISA, barrier.red: otherwise execution is unpredictable).
fn kind(op: BarrierOp) -> u32 {
    match op {
        BarrierOp::Sync | BarrierOp::Arrive => 0,
        BarrierOp::Popc => 1,
        BarrierOp::And => 2,
        BarrierOp::Or => 3,
    }
}

impl Checker {
    pub(super) fn arrives(
        &self,
        block: &mut Block,
        by: &Who<'_>,
        barrier: u32,
        masks: &[u32; MAX_WARPS],
        of_all: Came,
    ) {
        progress::changed();
        let whole = self.threads().next_multiple_of(WARP as u32);
        let gathering = block.barriers.entry(barrier).or_default();
        for (warp, lanes) in warps(by, masks) {
            let came = Came { lanes, ..of_all };
            let here = || spot(by, threads_of_warp(warp, lanes));
            if came.op != BarrierOp::Arrive {
                *gathering.waits.entry(warp).or_default() |= lanes;
            }
            if let Some(threads) = came.threads.filter(|threads| *threads > whole) {
                let block = self.threads();
                self.tell(
                    Wrong::TooMany {
                        barrier,
                        threads,
                        block,
                    },
                    &here(),
                    None,
                );
            }
            match gathering.first {
                None => gathering.first = Some((warp, came)),
                Some((of, first)) => {
                    let there = || spot_of(by.block, of, &first);
                    if first.threads != came.threads {
                        let (threads, other) = (came.threads, first.threads);
                        let wrong = Wrong::Counts {
                            barrier,
                            threads,
                            other,
                        };
                        self.tell(wrong, &here(), Some(&there()));
                    } else if kind(first.op) != kind(came.op) {
                        let ops = [came.op, first.op];
                        self.tell(Wrong::Operations { barrier, ops }, &here(), Some(&there()));
                    }
                }
            }
            if !came.is_aligned {
                continue;
            }
            let known = gathering.warps.entry(warp).or_insert(came);
            if known.place == came.place {
                known.lanes |= lanes;
            } else {
                gathering.has_parted = true;
                let there = spot_of(by.block, warp, known);
                self.tell(Wrong::Parted { barrier }, &here(), Some(&there));
            }
        }
    }

    pub(super) fn released(&self, block: &mut Block, at: [u32; 3], barrier: u32) {
        let Some(gathering) = block.barriers.remove(&barrier) else {
            return;
        };
        if gathering.has_parted {
            return;
        }
        for (&warp, came) in &gathering.warps {
            let missing = self.exist(warp) & !came.lanes;
            let exited = block.exited.get(warp).copied().unwrap_or(0);
            if missing != 0 {
                let wrong = Wrong::PartOfWarp {
                    barrier,
                    missing: threads_of_warp(warp, missing),
                    have_exited: missing & !exited == 0,
                };
                self.tell(wrong, &spot_of(at, warp, came), None);
            }
        }
        let is_of_all = |came: &Came| came.threads.is_none() && came.op != BarrierOp::Arrive;
        let mut of_all = gathering.warps.iter().filter(|(_, came)| is_of_all(came));
        let Some((first, came)) = of_all.next() else { return };
        if let Some((other, there)) =
            of_all.find(|(_, there)| there.place != came.place && kind(there.op) == kind(came.op))
        {
            let (one, other) = (spot_of(at, *first, came), spot_of(at, *other, there));
            self.tell(Wrong::Meets { barrier }, &one, Some(&other));
        }
    }
}

fn spot_of(block: [u32; 3], warp: usize, came: &Came) -> Spot {
    Spot {
        block,
        threads: threads_of_warp(warp, came.lanes),
        place: came.place,
    }
}
