//! Whether a grid gets on: threads that look at the same words again and again, while nobody writes, wait for somebody else.
//!
//! A thread is taken for one that waits only if that is all it does: who computes, or reads anything in the ordinary way, gets on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering as Relaxed};

use crate::isa::lanes::WARP;
use crate::program::{Ordering, Space};
use crate::ptx::ast::Span;
use crate::simt::Site;
use crate::simt::observe::{Access, Direction, Who};

use super::{Block, Checker, Party, Place, lanes, threads_of_warp};

/// Moments after which a look is long ago.
const RECENT: u64 = 5;
/// Places that are named of those where a grid's threads wait.
const MOST: usize = 4;

static CHANGED: AtomicBool = AtomicBool::new(false);
static MOMENT: AtomicU64 = AtomicU64::new(0);
/// Nothing has happened in the last moment.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Something has happened for which a thread may wait.
pub(super) fn changed() {
    if !CHANGED.load(Relaxed::Relaxed) {
        CHANGED.store(true, Relaxed::Relaxed);
    }
}

/// Memory is touched in the ordinary way.
pub(super) fn touched(space: Space) {
    if !matches!(space, Space::Local | Space::Param | Space::Const) {
        changed();
    }
}

/// Whether anything has happened in any grid since this was asked last: the next moment begins.
pub fn next_moment() -> bool {
    MOMENT.fetch_add(1, Relaxed::Relaxed);
    let has_changed = CHANGED.swap(false, Relaxed::Relaxed);
    QUIET.store(!has_changed, Relaxed::Relaxed);
    has_changed
}

pub(super) fn moment() -> u64 {
    MOMENT.load(Relaxed::Relaxed)
}

/// Whether it is worth knowing who goes round in circles.
pub(super) fn is_quiet() -> bool {
    QUIET.load(Relaxed::Relaxed) && !CHANGED.load(Relaxed::Relaxed)
}

/// What lanes of a warp look at.
pub(super) struct Look {
    place: Place,
    address: u64,
    lanes: u32,
    moment: u64,
}

/// What an atomic has found, before it is done.
pub(super) struct Before {
    lanes: u32,
    values: [u64; WARP],
}

/// Threads that look at a word.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub party: Party,
    pub address: u64,
}

/// A grid that does not get on by itself.
#[derive(Clone, Debug)]
pub struct Stuck {
    pub kernel: Arc<str>,
    /// Blocks that have begun, of how many.
    pub begun: u64,
    pub blocks: u64,
    pub waiting: Vec<Waiting>,
    /// Other places where threads look at words.
    pub more: usize,
    /// All words at which threads look.
    pub addresses: Vec<u64>,
}

/// The values at a warp's addresses; `None`: they are of no size that can be read as one.
fn values(access: &Access<'_>) -> Option<[u64; WARP]> {
    let mut values = [0; WARP];
    for lane in lanes(access.lanes) {
        let at = access.addresses[lane];
        // SAFETY: observers are told of accesses when all checks have passed: the bytes are there, and a multiple of their
        // number is their address, as atomics ask for.
        values[lane] = unsafe {
            match access.bytes {
                4 => u64::from((*(at as *const AtomicU32)).load(Relaxed::Relaxed)),
                8 => (*(at as *const AtomicU64)).load(Relaxed::Relaxed),
                _ => return None,
            }
        };
    }
    Some(values)
}

impl Block {
    /// Whether a warp does the same again and again.
    fn goes_round(&self, warp: usize, now: u64) -> bool {
        let mut circles = self.circles.values();
        circles.any(|circle| circle.has(warp) && circle.is_closed() && circle.is_recent(now.saturating_sub(RECENT)))
    }

    /// Lanes of a warp have looked at words, and have found what was there.
    pub(super) fn looks(&mut self, warp: usize, mask: u32, place: Place, addresses: &[u64; WARP]) {
        let moment = MOMENT.load(Relaxed::Relaxed);
        if let Some(gathered) = self.gathered.get_mut(&warp) {
            *gathered &= !mask;
        }
        let looks = self.looks.entry(warp).or_default();
        for look in looks.iter_mut() {
            look.lanes &= !mask;
        }
        for lane in lanes(mask) {
            let address = addresses[lane];
            let known = looks
                .iter_mut()
                .find(|look| look.place == place && look.address == address);
            match known {
                Some(look) => (look.lanes, look.moment) = (look.lanes | 1 << lane, moment),
                None => looks.push(Look {
                    place,
                    address,
                    lanes: 1 << lane,
                    moment,
                }),
            }
        }
        looks.retain(|look| look.lanes != 0);
    }
}

impl Checker {
    /// Lanes touch memory.
    pub(super) fn touches(&self, by: &Who<'_>, access: &Access<'_>) {
        if matches!(access.space, Space::Local | Space::Param | Space::Const) {
            return;
        }
        let is_strong = access.ordering != Ordering::Weak && access.operation.is_none();
        match access.direction {
            Direction::Read if is_strong => {}
            Direction::Read | Direction::Write => changed(),
            // Whatever threads look at while something else happens is forgotten.
            Direction::Atomic if CHANGED.load(Relaxed::Relaxed) => {}
            Direction::Atomic => {
                let before = values(access);
                let warp = by.first_thread as usize / WARP + access.warp;
                self.with_team(by.block, |team| {
                    let Some(block) = team.blocks.get_mut(&by.block) else {
                        return;
                    };
                    let unfinished = match before {
                        Some(values) => block.before.insert(
                            warp,
                            Before {
                                lanes: access.lanes,
                                values,
                            },
                        ),
                        None => block.before.remove(&warp),
                    };
                    if unfinished.is_some() || before.is_none() {
                        changed();
                    }
                });
            }
        }
    }

    /// They have read what is there.
    pub(super) fn has_looked(&self, by: &Who<'_>, access: &Access<'_>) {
        if matches!(access.space, Space::Local | Space::Param | Space::Const) {
            return;
        }
        let is_forgotten = CHANGED.load(Relaxed::Relaxed);
        if is_forgotten && access.direction == Direction::Read {
            return;
        }
        let warp = by.first_thread as usize / WARP + access.warp;
        self.with_team(by.block, |team| {
            let Some(block) = team.blocks.get_mut(&by.block) else {
                return;
            };
            if is_forgotten {
                block.before.remove(&warp);
                return;
            }
            if access.direction == Direction::Atomic {
                let is_same = |before: Before| {
                    let now = values(access);
                    now.is_some_and(|now| {
                        before.lanes == access.lanes && lanes(access.lanes).all(|lane| now[lane] == before.values[lane])
                    })
                };
                if !block.before.remove(&warp).is_some_and(is_same) {
                    changed();
                }
            }
            block.looks(warp, access.lanes, Place::of(by), access.addresses);
        });
    }

    /// Something has happened: what threads have looked at since does not count.
    pub fn forget(&self) {
        for team in self.teams.read().values() {
            for block in team.lock().blocks.values_mut() {
                block.looks.clear();
                block.circles.clear();
            }
        }
    }

    /// Who waits where, if all threads that are left wait for words that others would have to write, or for each other.
    pub fn stuck(&self) -> Option<Stuck> {
        let now = MOMENT.load(Relaxed::Relaxed);
        let module = &self.launch.code.module;
        let mut all: HashMap<(Place, u64), ([u32; 3], BTreeSet<u32>)> = HashMap::new();
        // In order, so that the first of several blocks stands for all.
        let teams = self.teams.read().clone();
        for (_, team) in teams.into_iter().collect::<BTreeMap<_, _>>() {
            let team = team.lock();
            for (at, block) in team.blocks.iter().collect::<BTreeMap<_, _>>() {
                for warp in 0..(self.threads() as usize).div_ceil(WARP) {
                    let live = self.exist(warp) & !block.exited.get(warp).copied().unwrap_or(0);
                    let looks = block.looks.get(&warp).into_iter().flatten();
                    let recent = looks.filter(|look| look.moment + RECENT >= now);
                    let mut waits = block.gathered.get(&warp).copied().unwrap_or(0);
                    waits |= block
                        .barriers
                        .values()
                        .fold(0, |all, barrier| all | barrier.waits(warp));
                    // A thread that looks and does not go round in a circle may count, and end by itself.
                    for look in recent.filter(|_| block.goes_round(warp, now)) {
                        waits |= look.lanes;
                        // One block stands for others that wait at the same place for the same.
                        let (of, threads) = all
                            .entry((look.place, look.address))
                            .or_insert_with(|| (*at, BTreeSet::new()));
                        if of == at {
                            threads.extend(threads_of_warp(warp, look.lanes));
                        }
                    }
                    if live & !waits != 0 {
                        return None;
                    }
                }
            }
        }
        if all.is_empty() {
            return None;
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by_key(|((place, address), (block, _))| (*block, *place, *address));
        let more = all.len().saturating_sub(MOST);
        let addresses = all.iter().map(|((_, address), _)| *address).collect();
        let waiting = all.into_iter().take(MOST).map(|((place, address), (block, threads))| {
            let span = Span {
                start: place.start,
                end: place.end,
            };
            let site = Site::of_instruction(module, place.function, span);
            Waiting {
                party: Party { block, threads, site },
                address,
            }
        });
        Some(Stuck {
            kernel: Arc::clone(&module.functions[self.launch.kernel as usize].name),
            begun: self.begun.load(Relaxed::Relaxed),
            blocks: self.launch.grid.iter().map(|n| u64::from(*n)).product(),
            waiting: waiting.collect(),
            more,
            addresses,
        })
    }

    /// The grid is to end, for this reason.
    pub fn give_up(&self, why: String) {
        // The first reason is as good as any later one.
        let _ = self.verdict.set(why);
    }
}
