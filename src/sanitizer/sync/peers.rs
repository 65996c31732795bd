//! Shared memory of other blocks of a cluster: it is there once all have begun, and until its block ends. What makes sure of
//! both is the barrier of the cluster, or, for the end, a barrier in the other block's memory at which that one waits.

use std::collections::BTreeSet;

use crate::isa::lanes::WARP;
use crate::program::{Ordering, Space};
use crate::simt::observe::{Access, Direction, Who};

use super::{Checker, Spot, Team, Wrong, lanes, spot, threads_of_warp};

/// A block has reached into another one, which does not know that it is done.
pub(super) struct Remote {
    owner: [u32; 3],
    by: Spot,
    /// Whoever of the block arrives somewhere says it for this one, too: a barrier of the block lies between.
    is_shared: bool,
    /// Its thread has arrived at the barrier of the cluster since.
    has_arrived: bool,
    /// The barrier in memory that will tell, and its phase.
    via: Option<(u64, u64)>,
}

/// The block, other than `own`, whose shared memory has an address.
fn owner(team: &Team, own: [u32; 3], address: u64) -> Option<[u32; 3]> {
    let has = |(start, bytes): (u64, u64)| (start..start + bytes).contains(&address);
    let mut others = team.blocks.iter().filter(|(block, _)| **block != own);
    others.find(|(_, block)| has(block.shared)).map(|(block, _)| *block)
}

pub(super) fn arrive(team: &mut Team, block: [u32; 3], threads: &BTreeSet<u32>) {
    for remote in &mut team.remote {
        remote.has_arrived |= remote.by.block == block && remote.by.threads.is_subset(threads);
    }
}

/// All have come to the barrier of the cluster.
pub(super) fn release(team: &mut Team) {
    team.releases += 1;
    team.remote.retain(|remote| !remote.has_arrived);
}

/// Threads of a block have met.
pub(super) fn share(team: &mut Team, block: [u32; 3]) {
    for remote in team.remote.iter_mut().filter(|remote| remote.by.block == block) {
        remote.is_shared = true;
    }
}

/// A warp arrives at a barrier in memory.
pub(super) fn via(team: &mut Team, block: [u32; 3], warp: usize, at: u64, phase: u64) {
    let Some(there) = owner(team, block, at) else { return };
    for remote in &mut team.remote {
        let is_of_warp = remote.by.threads.iter().any(|thread| *thread as usize / WARP == warp);
        if remote.owner == there && remote.by.block == block && (remote.is_shared || is_of_warp) && remote.via.is_none()
        {
            remote.via = Some((at, phase));
        }
    }
}

/// Somebody has seen that the phase of a barrier in memory is over, before `phase`.
pub(super) fn seen(team: &mut Team, at: u64, phase: u64) {
    team.remote
        .retain(|remote| remote.via.is_none_or(|(barrier, of)| barrier != at || of >= phase));
}

/// Threads set a flag, or are about to: by it the others may see that they are done.
pub(super) fn flag(team: &mut Team, block: [u32; 3], threads: &BTreeSet<u32>) {
    team.remote
        .retain(|remote| remote.by.block != block || !remote.by.threads.is_subset(threads));
}

impl Checker {
    pub(super) fn reaches(&self, team: &mut Team, by: &Who<'_>, access: &Access<'_>) {
        let warp = by.first_thread as usize / WARP + access.warp;
        let releases = matches!(access.ordering, Ordering::Release | Ordering::AcqRel | Ordering::Sc);
        if releases && access.direction != Direction::Read {
            return flag(team, by.block, &threads_of_warp(warp, access.lanes));
        }
        match access.space {
            Space::Shared | Space::Generic => {}
            Space::Global | Space::Local | Space::Param | Space::Const => return,
        }
        for lane in lanes(access.lanes) {
            if let Some(there) = owner(team, by.block, access.addresses[lane]) {
                self.reaches_into(team, by, (warp * WARP + lane) as u32, there);
            }
        }
    }

    /// A thread does something to a barrier in memory.
    pub(super) fn reaches_barrier(&self, team: &mut Team, by: &Who<'_>, thread: u32, at: u64) {
        if let Some(there) = owner(team, by.block, at) {
            self.reaches_into(team, by, thread, there);
        }
    }

    fn reaches_into(&self, team: &mut Team, by: &Who<'_>, thread: u32, there: [u32; 3]) {
        let by = spot(by, [thread].into());
        if team.releases == 0 {
            self.tell(Wrong::PeerNotBegun { peer: there }, &by, None);
        }
        let is_known =
            |remote: &Remote| remote.owner == there && remote.by.block == by.block && remote.by.threads == by.threads;
        team.remote
            .retain(|remote| !is_known(remote) || remote.by.place != by.place);
        team.remote.push(Remote {
            owner: there,
            by,
            is_shared: false,
            has_arrived: false,
            via: None,
        });
    }

    /// A block ends. Its memory is where it was, until all of the cluster have ended.
    pub(super) fn block_ends(&self, team: &mut Team, block: [u32; 3]) {
        for remote in team.remote.extract_if(.., |remote| remote.owner == block) {
            self.tell(Wrong::PeerEnded { peer: block }, &remote.by, None);
        }
    }
}
