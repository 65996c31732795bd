//! The barrier of a cluster (PTX ISA, barrier.cluster): what one block knows of it.
//!
//! A phase is complete when all threads of the cluster that have not exited have arrived. Each thread waits for the
//! phase in which it arrived. Who runs the blocks looks when that is so ([`complete`]), for no block sees the others.

use crate::isa::lanes::MAX_WARPS;

use super::context::{Cx, RawFault};
use super::observe::{SyncEvent, Use};
use super::slots::bits;

/// Lanes by warp of the block.
#[derive(Default)]
pub struct ClusterBarrier {
    /// Those that have arrived in the phase under way.
    arrived: Vec<u32>,
    /// Those that have arrived in a phase that is complete, and have not waited for it yet.
    released: Vec<u32>,
    /// Somebody has arrived since the block started.
    used: bool,
    /// In the phase under way.
    pub awaited: bool,
}

impl ClusterBarrier {
    /// As a block starts.
    pub fn reset(&mut self) {
        if self.used {
            self.arrived.fill(0);
            self.released.fill(0);
        }
        (self.used, self.awaited) = (false, false);
    }

    /// The phase is complete as far as these lanes go, which have not exited.
    pub fn has_all<'a>(&self, live: impl Iterator<Item = &'a u32>) -> bool {
        live.enumerate()
            .all(|(w, live)| live & !self.arrived.get(w).copied().unwrap_or(0) == 0)
    }

    /// The next phase begins.
    pub fn complete(&mut self) {
        self.awaited = false;
        for (released, arrived) in self.released.iter_mut().zip(&mut self.arrived) {
            *released |= std::mem::take(arrived);
        }
    }

    /// Threads that have arrived in the phase under way.
    pub fn count(&self) -> u32 {
        self.arrived.iter().map(|lanes| lanes.count_ones()).sum()
    }

    /// The lanes of the mask arrive.
    ///
    /// # Errors
    /// One of them has arrived already, and the phase is not complete.
    pub fn arrive<const WATCHED: bool>(&mut self, cx: &Cx<'_>, relaxed: bool) -> Result<(), RawFault> {
        let first = cx.first_warp();
        let room = first + cx.mask.warps as usize;
        if self.arrived.len() < room {
            self.arrived.resize(room, 0);
            self.released.resize(room, 0);
        }
        for (w, lanes) in cx.mask.lanes.iter().enumerate().take(cx.mask.warps as usize) {
            let twice = self.arrived[first + w] & lanes;
            if let Some(lane) = bits(twice).next() {
                let why = "barrier.cluster.arrive of a thread that has arrived and not yet waited".to_owned();
                return Err(RawFault::instruction(why, w * 32 + lane));
            }
            self.arrived[first + w] |= lanes;
            self.released[first + w] &= !lanes;
        }
        (self.used, self.awaited) = (true, true);
        cx.synchronised::<WATCHED>(|| SyncEvent::ClusterArrive {
            lanes: cx.mask.lanes,
            relaxed,
        });
        Ok(())
    }

    /// Those lanes of the mask whose phase is complete.
    pub fn wait<const WATCHED: bool>(&mut self, cx: &Cx<'_>) -> [u32; MAX_WARPS] {
        let first = cx.first_warp();
        let mut done = [0; MAX_WARPS];
        for (w, done) in done.iter_mut().enumerate().take(cx.mask.warps as usize) {
            if let Some(released) = self.released.get_mut(first + w) {
                *done = *released & cx.mask.lanes[w];
                *released &= !*done;
            }
        }
        if WATCHED {
            let absent = |w: usize| {
                let known = self.arrived.get(first + w).zip(self.released.get(first + w));
                // Those that go on are no longer among the released.
                cx.mask.lanes[w] & !done[w] & !known.map_or(0, |(arrived, released)| arrived | released)
            };
            let lanes: [u32; MAX_WARPS] = std::array::from_fn(absent);
            if lanes != [0; MAX_WARPS] {
                cx.used::<WATCHED>(|| Use::ClusterAwait { lanes });
            }
        }
        if done != [0; MAX_WARPS] {
            cx.synchronised::<WATCHED>(|| SyncEvent::ClusterWait { lanes: done });
        }
        done
    }
}
