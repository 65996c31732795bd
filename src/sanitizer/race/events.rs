//! What puts accesses in order: barriers, fences, mbarriers, and the ends of copies.

use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::program::{CopyGroup, Ordering, Proxy};
use crate::simt::observe::{Completes, MbarrierEvent, SyncEvent, Who};

use super::block::{ASYNC, Block, CHANNELS, Warp};
use super::clock::Step;
use super::flags::Message;
use super::ledger::{Ledger, Reach};
use super::{Detector, lanes};

impl Detector {
    pub(super) fn synchronised(&self, block: &mut Block, by: &Who<'_>, event: &SyncEvent) {
        let book = self.book.read();
        let ledger = &book.ledger;
        let first = by.first_thread as usize / WARP;
        let number = block.number;
        match event {
            SyncEvent::Arrive { barrier, lanes, waits } => {
                for (warp, mask) in warps(first, lanes, block) {
                    let gathering = block.barriers.entry(*barrier).or_default();
                    gathering.come((number, warp), &block.warps[warp], mask, self.channels());
                    if *waits {
                        gathering.waits(warp, mask);
                    }
                    block.warps[warp].next_step();
                }
            }
            SyncEvent::Warp { warp, members } => block.meet(first + warp, members, self.channels()),
            SyncEvent::Collective { warp, members } => {
                if !self.options.benign {
                    block.meet(first + warp, members, self.channels());
                }
            }
            SyncEvent::Together { lanes, is_barrier } => {
                if *is_barrier || !self.options.benign {
                    for (warp, mask) in warps(first, lanes, block) {
                        let members = std::array::from_fn(|lane| mask & (mask >> lane & 1).wrapping_neg());
                        block.meet(warp, &members, self.channels());
                    }
                }
            }
            SyncEvent::Fence {
                lanes,
                ordering,
                scope,
                proxy,
            } => {
                let reach = Reach::of(*scope);
                let channels = match proxy {
                    Proxy::Generic => 0..reach as usize + 1,
                    Proxy::Async => ASYNC[0]..CHANNELS,
                    Proxy::AsyncGlobal => ASYNC[0]..ASYNC[1],
                    Proxy::AsyncShared => ASYNC[1]..CHANNELS,
                    // Other proxies are not told apart from the generic one.
                    Proxy::Alias | Proxy::Tensormap | Proxy::Texture | Proxy::Surface | Proxy::Fabric => return,
                };
                let is_generic = *proxy == Proxy::Generic;
                for (warp, mask) in warps(first, lanes, block) {
                    let warp = &mut block.warps[warp];
                    if is_generic && *ordering != Ordering::Release {
                        warp.catch_up(mask, reach);
                    }
                    if !is_generic || *ordering != Ordering::Acquire {
                        warp.fence(mask, channels.clone());
                    }
                }
            }
            SyncEvent::Copies { lanes, group } => {
                for (warp, mask) in warps(first, lanes, block) {
                    let own = &mut block.warps[warp];
                    let step = own.step;
                    let end = |operation: u32, over: u32| ledger.operation(operation).end(over, step, false);
                    match group {
                        CopyGroup::Commit => own.copies.commit(mask),
                        CopyGroup::Wait(but) => own.copies.wait(mask, Some(*but), false, end),
                        CopyGroup::WaitAll => own.copies.wait(mask, None, false, end),
                    }
                }
            }
            SyncEvent::BulkCopies { lanes, group, read } => {
                for (warp, mask) in warps(first, lanes, block) {
                    let own = &mut block.warps[warp];
                    let step = own.step;
                    let end = |operation: u32, over: u32| ledger.operation(operation).end(over, step, *read);
                    match group {
                        CopyGroup::Commit => own.bulk.commit(mask),
                        CopyGroup::Wait(but) => own.bulk.wait(mask, Some(*but), *read, end),
                        CopyGroup::WaitAll => own.bulk.wait(mask, None, *read, end),
                    }
                }
            }
            SyncEvent::ClusterArrive { lanes, relaxed } => self.cluster_arrives(block, first, lanes, *relaxed),
            SyncEvent::ClusterWait { lanes } => {
                let met = self.clusters.lock().get(&block.cluster).map(|(_, met)| met.clone());
                if let Some(met) = met {
                    for (warp, mask) in warps(first, lanes, block) {
                        let warp = &mut block.warps[warp];
                        warp.change(mask, |state| {
                            state.seen.join(&met.clock);
                            for &channel in self.channels() {
                                state.channels[channel].others.join(&met.channels[channel]);
                            }
                        });
                    }
                }
            }
            SyncEvent::Begin {
                operation,
                warp,
                lanes,
                completes,
            } => {
                let own = &mut block.warps[first + warp];
                let begun = ledger.begin();
                own.begin(*operation, begun);
                match completes {
                    Completes::Group => own.copies.begin(begun, *lanes),
                    Completes::BulkGroup => own.bulk.begin(begun, *lanes),
                    Completes::Bytes { barrier, .. } => {
                        let phase = self.counts_on(*barrier, own, *lanes);
                        ledger.operation(begun).ends_with(phase);
                    }
                    Completes::Arrival { barrier } => {
                        let phase = self.counts_on(*barrier, own, *lanes);
                        for begun in own.commit(*operation, *lanes) {
                            ledger.operation(*begun).ends_with(phase);
                        }
                    }
                    Completes::Nothing => own.uncommitted.push((begun, *lanes)),
                }
            }
            SyncEvent::Mbarrier {
                warp,
                lanes: mask,
                addresses,
                parities,
                ordering,
                // Not looked at: within a block it makes no difference, and of a cluster a scope too small is not found.
                scope: _,
                what,
            } => self.mbarrier(
                block,
                ledger,
                first + warp,
                (*mask, addresses, *parities),
                *ordering,
                *what,
            ),
            SyncEvent::Fabric { .. } | SyncEvent::HostCall { .. } | SyncEvent::Use(_) => {}
        }
    }

    /// The phase of an mbarrier by which lanes have an operation end. Whoever finds it over comes after all that they had waited for
    /// before they began the operation.
    pub(super) fn counts_on(&self, barrier: u64, own: &Warp, by: u32) -> (u64, Step) {
        let mut mbarriers = self.mbarriers.lock();
        for lane in lanes(by) {
            let message = Message {
                clock: own.lane(lane).seen.clone(),
                ..Message::default()
            };
            mbarriers.arrive(barrier, &message);
        }
        (barrier, mbarriers.phase(barrier))
    }

    pub(super) fn mbarrier(
        &self,
        block: &mut Block,
        ledger: &Ledger,
        warp: usize,
        (mask, addresses, parities): (u32, &[u64; WARP], u32),
        ordering: Ordering,
        what: MbarrierEvent,
    ) {
        let mut mbarriers = self.mbarriers.lock();
        let at = (block.number, warp);
        match what {
            MbarrierEvent::Init => lanes(mask).for_each(|lane| mbarriers.begin(addresses[lane])),
            MbarrierEvent::Arriving => {
                let own = &mut block.warps[warp];
                for lane in lanes(mask) {
                    let message = match ordering {
                        Ordering::Release | Ordering::AcqRel | Ordering::Sc => Message {
                            clock: own.known_by(at, lane),
                            asynchronous: own.proxy_fenced_by(at, lane),
                        },
                        Ordering::Weak | Ordering::Volatile | Ordering::Relaxed | Ordering::Acquire => Message {
                            clock: own.fenced_by(at, lane, Reach::Block as usize),
                            asynchronous: own.proxy_fenced_by(at, lane),
                        },
                    };
                    mbarriers.arrive(addresses[lane], &message);
                }
                own.next_step();
            }
            MbarrierEvent::Look { over } => {
                let own = &mut block.warps[warp];
                for lane in lanes(mask) {
                    let message = mbarriers.look(addresses[lane], parities >> lane & 1 == 1);
                    if over >> lane & 1 == 1 {
                        own.change(1 << lane, |state| {
                            state.learn(message);
                        });
                    }
                }
            }
            MbarrierEvent::CopiesArrive => {
                for lane in lanes(mask) {
                    mbarriers.look(addresses[lane], parities >> lane & 1 == 1);
                    let phase: Step = mbarriers.phase(addresses[lane]);
                    block.warps[warp]
                        .copies
                        .ends_with(ledger, 1 << lane, (addresses[lane], phase));
                }
            }
            MbarrierEvent::Arrive | MbarrierEvent::Expect | MbarrierEvent::Complete => {
                for lane in lanes(mask) {
                    mbarriers.look(addresses[lane], parities >> lane & 1 == 1);
                }
            }
            MbarrierEvent::Invalidate => {}
        }
    }

    pub(super) fn cluster_arrives(&self, block: &mut Block, first: usize, masks: &[u32; MAX_WARPS], relaxed: bool) {
        let mut clusters = self.clusters.lock();
        let (gathering, _) = clusters.entry(block.cluster).or_default();
        for (warp, mask) in warps(first, masks, block) {
            let at = (block.number, warp);
            match relaxed {
                true => gathering.come_relaxed(at, &block.warps[warp], mask, Reach::Cluster as usize),
                false => gathering.come(at, &block.warps[warp], mask, self.channels()),
            }
            block.warps[warp].next_step();
        }
    }
}

/// Warps of the block that have lanes in a bundle's masks.
fn warps(first: usize, masks: &[u32; MAX_WARPS], block: &Block) -> Vec<(usize, u32)> {
    let all = masks.iter().enumerate().map(|(i, mask)| (first + i, *mask));
    all.filter(|(warp, mask)| *mask != 0 && *warp < block.warps.len())
        .collect()
}
